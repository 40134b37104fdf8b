//! The variables of LLVM's instrumentation, as clang writes them for CUDA's device code (InstrProfData.inc).
//!
//! All variables of a function are weak: of an inline function that several files define, the linker keeps one. The hash is in
//! their names, so copies that were compiled to different blocks have flags of their own.

use crate::mapping::{Files, hash, uleb128};
use crate::variable::{Content, Variable};

/// Front-end instrumentation of clang 23 (raw version 11) with byte coverage (`VARIANT_MASK_BYTE_COVERAGE`).
const VERSION: u64 = 11 | 1 << 60;
/// The version of the coverage mapping: `CovMapVersion::Version7`, whose number starts at 0.
const MAPPING_VERSION: u32 = 6;

/// The variable of each instrumented module whose value is an [`Origin`].
pub const MARKER: &str = "__devprof_ptx";

/// Where a module is instrumented: the value of the variable [`MARKER`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// By a compiler that makes a program. The compiled code is in a file of the program.
    Build,
    /// By the runtime, in the process that runs it.
    Process,
}

/// What identifies a function in a profile.
pub struct Record {
    name_hash: u64,
    hash: u64,
    /// The number of flags.
    number: usize,
    /// The end of the names of its variables.
    suffix: String,
    /// The variable with the flags.
    pub flags: String,
}

impl Record {
    /// `mapping`: its coverage mapping, which distinguishes versions of the function.
    pub fn new(name: &str, number: usize, mapping: &[u8]) -> Record {
        let known = [
            &(number as u64).to_le_bytes(),
            name.as_bytes(),
            b"\0",
            mapping,
        ]
        .concat();
        let hash = hash(&known);
        let suffix = format!("{name}_{hash:016x}");
        Record {
            name_hash: crate::mapping::hash(name.as_bytes()),
            hash,
            number,
            flags: format!("__profc_{suffix}"),
            suffix,
        }
    }

    /// The flags, the record and the coverage record. Without a mapping, there is no coverage record.
    pub fn variables(&self, mapping: Option<&[u8]>, files: &Files) -> Vec<Variable> {
        let Record {
            name_hash,
            hash: own_hash,
            number,
            suffix,
            flags,
        } = self;
        let mut variables = vec![
            Variable::weak(flags.clone(), Content::Flags(*number)),
            Variable::weak(
                format!("__profd_{suffix}"),
                Content::Record {
                    name: *name_hash,
                    hash: *own_hash,
                    flags: flags.clone(),
                    number: *number,
                },
            ),
        ];
        if let Some(mapping) = mapping {
            let mut record = name_hash.to_le_bytes().to_vec();
            record.extend((mapping.len() as u32).to_le_bytes());
            record.extend(own_hash.to_le_bytes());
            record.extend(hash(&files.encoded).to_le_bytes());
            record.extend(mapping);
            let name = format!("__covrec_{name_hash:X}_{own_hash:016x}");
            variables.push(Variable::weak(name, Content::words(&record)));
        }
        variables
    }
}

/// The variables that a module has once. `__devprof_exact`: its code counts in every thread block. [`MARKER`] has the
/// [`Origin`].
pub fn of_module(names: &[&str], files: &Files, origin: Origin) -> Vec<Variable> {
    let size = files.encoded.len() as u32;
    let header = [0, size, 0, MAPPING_VERSION].map(u32::to_le_bytes);
    let mapping = [header.as_flattened(), &files.encoded].concat();
    let list = names.join("\x01");
    let mut encoded = Vec::new();
    uleb128(&mut encoded, list.len() as u64);
    uleb128(&mut encoded, 0);
    encoded.extend(list.as_bytes());
    vec![
        Variable::weak(
            "__llvm_profile_raw_version".to_owned(),
            Content::Words(vec![VERSION]),
        ),
        Variable::weak("__devprof_exact".to_owned(), Content::Byte(0)),
        Variable::weak(MARKER.to_owned(), Content::Byte(origin as u8)),
        Variable::local("__llvm_coverage_mapping", Content::words(&mapping)),
        Variable::local("__llvm_prf_nm", Content::words(&encoded)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// The variables of a function that has two flags and one line.
    #[test]
    fn variables_are_those_of_llvm() {
        let files = Files::new(&BTreeMap::new(), "");
        let record = Record::new("branch", 2, &[1, 1]);
        let hash = record.hash;
        let suffix = format!("branch_{hash:016x}");
        let text = |variables: Vec<Variable>| -> String {
            variables.iter().map(Variable::to_string).collect()
        };
        let all = text(record.variables(Some(&[1, 1]), &files));
        let lines: Vec<&str> = all.lines().collect();
        assert_eq!(
            lines[..2],
            [
                format!(".weak .global .align 4 .b8 __profc_{suffix}[2] = {{255, 255}};"),
                format!(
                    ".weak .global .align 8 .u64 __profd_{suffix}[9] = {{7456568675401859990, {hash}, generic(__profc_{suffix}), 0, 0, 0, 0, 2, 0}};"
                ),
            ]
        );
        // The hash of the name, 4 bytes of the size, and the rest.
        let start = format!(
            ".weak .global .align 8 .u64 __covrec_677B0DB424A20396_{hash:016x}[4] = {{7456568675401859990, {},",
            2 | hash << 32
        );
        assert!(lines[2].starts_with(&start), "{}", lines[2]);
        assert_eq!(record.variables(None, &files).len(), 2);
        let module = text(of_module(&["f", "branch"], &files, Origin::Process));
        assert!(module.contains(" .u64 __llvm_profile_raw_version[1] = {1152921504606846987};"));
        assert!(module.contains(".weak .global .align 1 .b8 __devprof_ptx[1] = {1};"));
        // 8 bytes of names, not compressed, and the names.
        assert!(module.contains("__llvm_prf_nm[2] = {7953764182168829960, 26723};"));
    }
}
