//! LLVM's coverage mapping of a function's lines.

use crate::blocks::Graph;
use crate::flags::{Flag, Flags};
use crate::lines::{Line, Lines};
use md5::{Digest, Md5};
use std::collections::{BTreeMap, HashMap};

/// The mapping of the function's lines (LLVM's `RawCoverageMappingReader`): the files, expressions that add counters, and the
/// regions of each file. Each line is a region. `None` if no line is known.
pub fn of_function(lines: &Lines, graph: &Graph, flags: &Flags, files: &Files) -> Option<Vec<u8>> {
    let known = |(file, lines)| Some((*files.numbers.get(file)?, lines));
    let groups: Vec<(u64, &Vec<Line>)> = lines
        .groups
        .iter()
        .map(|(file, lines)| (file, lines))
        .filter_map(known)
        .collect();
    if groups.is_empty() {
        return None;
    }
    let mut sums = Sums::default();
    let mut regions = Vec::new();
    for (_, lines) in &groups {
        uleb128(&mut regions, lines.len() as u64);
        let mut last = 0;
        for line in *lines {
            let counters: Vec<Flag> = flags.of(graph, &line.blocks).into_iter().collect();
            uleb128(&mut regions, sums.counter(&counters));
            uleb128(&mut regions, u64::from(line.number - last));
            last = line.number;
            // From column 0 to column 0 of the same line: the complete line.
            regions.extend([0, 0, 0]);
        }
    }
    let mut mapping = Vec::new();
    uleb128(&mut mapping, groups.len() as u64);
    for (file, _) in &groups {
        uleb128(&mut mapping, *file);
    }
    uleb128(&mut mapping, sums.expressions.len() as u64);
    for (left, right) in sums.expressions {
        uleb128(&mut mapping, left);
        uleb128(&mut mapping, right);
    }
    mapping.extend(regions);
    Some(mapping)
}

/// The expressions of a mapping: pairs of counters that are added.
#[derive(Default)]
struct Sums {
    expressions: Vec<(u64, u64)>,
    known: HashMap<Vec<Flag>, u64>,
}

impl Sums {
    /// The sum of some counters, which is 0 if and only if none of their blocks ran, as LLVM encodes it.
    fn counter(&mut self, flags: &[Flag]) -> u64 {
        const COUNTER: u64 = 1;
        const ADDITION: u64 = 3;
        if let [flag] = flags {
            return u64::from(*flag) << 2 | COUNTER;
        }
        if let Some(known) = self.known.get(flags) {
            return *known;
        }
        let (left, right) = flags.split_at(flags.len() / 2);
        let expression = (self.counter(left), self.counter(right));
        let encoded = (self.expressions.len() as u64) << 2 | ADDITION;
        self.expressions.push(expression);
        self.known.insert(flags.to_vec(), encoded);
        encoded
    }
}

/// The list of files of a module (LLVM's `CoverageFilenamesSectionWriter`, not compressed).
pub struct Files {
    pub encoded: Vec<u8>,
    /// The position in the list of each file of the module.
    numbers: HashMap<u32, u64>,
}

impl Files {
    /// `directory`: where the compiler ran. It is the first of the list.
    pub fn new(files: &BTreeMap<u32, &str>, directory: &str) -> Files {
        let names = std::iter::once(directory).chain(files.values().copied());
        let mut list = Vec::new();
        for name in names {
            uleb128(&mut list, name.len() as u64);
            list.extend(name.as_bytes());
        }
        let mut encoded = Vec::new();
        uleb128(&mut encoded, 1 + files.len() as u64);
        uleb128(&mut encoded, list.len() as u64);
        uleb128(&mut encoded, 0);
        encoded.extend(list);
        Files {
            encoded,
            numbers: files.keys().copied().zip(1..).collect(),
        }
    }
}

/// LLVM's hash of names, lists of files and functions: the first 8 bytes of the MD5 digest.
pub fn hash(bytes: &[u8]) -> u64 {
    let digest = Md5::digest(bytes);
    let first: [u8; 8] = std::array::from_fn(|at| digest[at]);
    u64::from_le_bytes(first)
}

pub fn uleb128(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::tests::lines;

    #[test]
    fn lines_of_several_blocks_are_sums() {
        let mut sums = Sums::default();
        assert_eq!(sums.counter(&[2]), 9);
        assert_eq!(sums.counter(&[0, 1, 2]), 7);
        assert_eq!(sums.counter(&[1, 2]), 3);
        // Counter 1 + counter 2, and counter 0 + that.
        assert_eq!(sums.expressions, [(5, 9), (1, 3)]);
    }

    #[test]
    fn a_mapping_has_its_files_and_lines() {
        let (graph, found) = lines(".loc 7 5 0\na; .loc 7 300 0\n@p ret; .loc 9 2 1\nret;");
        let flags = Flags::new(&graph, &found);
        let files =
            |files: &[(u32, &'static str)]| Files::new(&files.iter().copied().collect(), "/tmp");
        let mapping = |of: &Files| of_function(&found, &graph, &flags, of);
        let both = files(&[(7, "a.cu"), (9, "/b.h")]);
        let expected = [
            [2, 1, 2, 0, 2].as_slice(),
            &[1, 5, 0, 0, 0, 1, 0xa7, 2, 0, 0, 0],
            &[1, 5, 2, 0, 0, 0],
        ];
        assert_eq!(mapping(&both), Some(expected.concat()));
        assert_eq!(both.encoded, b"\x03\x0f\0\x04/tmp\x04a.cu\x04/b.h");
        let one = files(&[(9, "/b.h")]);
        assert_eq!(mapping(&one), Some(vec![1, 1, 0, 1, 5, 2, 0, 0, 0]));
        assert_eq!(mapping(&files(&[])), None);
    }

    /// LLVM's hash of a name: the record of `branch` in fixtures/covered.cubin.
    #[test]
    fn hashes_are_those_of_llvm() {
        assert_eq!(hash(b"branch"), 7_456_568_675_401_859_990);
    }
}
