//! Computes the counts of lines from the regions of functions, as llvm-cov does. llvm-cov's own line counts cannot be
//! used: given several code objects, it uses only the first function of each name, even if that code object only declares
//! it or has a different version of it. So its output depends on the order of the code objects.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Line and column, from 1.
pub type Position = (u32, u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Code,
    /// The use of a macro.
    Expansion,
    /// Not compiled, or a comment.
    Skipped,
    /// The space between a condition and the code that it guards. It has the count of that code, but is not code itself.
    Gap,
}

/// A part of a file. `end` is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    pub start: Position,
    pub end: Position,
    pub kind: Kind,
    pub count: u64,
}

/// The count of each line that has code: the maximum of the counts of the region that continues from the line before and
/// of the regions that start on the line. At each position the innermost region applies.
pub fn counts(regions: Vec<Region>) -> BTreeMap<u32, u64> {
    let regions = sorted(regions);
    let ends = regions.iter().map(|region| region.end);
    let changes: BTreeSet<Position> = ends.chain(regions.iter().map(|r| r.start)).collect();

    let mut lines = BTreeMap::new();
    let mut next = regions.iter().peekable();
    let mut open: Vec<&Region> = Vec::new();
    // The current line, the region that continues from the line before, and the regions that start on the line.
    let (mut line, mut continued, mut started) = (0, None, Vec::new());
    for position in changes {
        if position.0 != line {
            set_count(&mut lines, line, continued, &started);
            continued = open.last().copied();
            started.clear();
            for between in line + 1..position.0 {
                set_count(&mut lines, between, continued, &started);
            }
            line = position.0;
        }
        open.retain(|region| region.end > position);
        let mut last = None;
        while let Some(region) = next.next_if(|region| region.start == position) {
            last = Some(region);
            if region.end > region.start {
                open.push(region);
            }
        }
        // For an empty region, the region around it applies, except on a blank line, which is an empty skipped region.
        if let Some(region) = last.filter(|region| region.kind != Kind::Gap) {
            started.push(match region.kind {
                Kind::Skipped => region,
                _ => open.last().copied().unwrap_or(region),
            });
        }
    }
    set_count(&mut lines, line, continued, &started);
    lines
}

/// The regions, sorted so that outer regions precede inner ones, and without duplicates. Several functions can have the
/// same region (instances of a template, uses of a macro). Its count is their sum.
fn sorted(mut regions: Vec<Region>) -> Vec<Region> {
    regions.sort_by_key(|region| (region.start, Reverse(region.end), region.kind));
    regions.dedup_by(|other, first| {
        let same = (other.start, other.end) == (first.start, first.end);
        if same && other.kind == first.kind {
            first.count = first.count.saturating_add(other.count);
        }
        same
    });
    regions
}

/// Sets the count of a line, if it has code.
fn set_count(
    lines: &mut BTreeMap<u32, u64>,
    line: u32,
    continued: Option<&Region>,
    started: &[&Region],
) {
    let is_compiled = |region: &&&Region| region.kind != Kind::Skipped;
    let continued = continued.filter(|region| is_compiled(&region));
    // If the first region that starts on the line is skipped, the line has code only if other code starts on it.
    let is_skipped = started.first().is_some_and(|first| !is_compiled(&first));
    if started.iter().any(|region| is_compiled(&region)) || (continued.is_some() && !is_skipped) {
        let counts = started
            .iter()
            .filter(|region| region.kind != Kind::Gap && is_compiled(region));
        let max = counts.map(|region| region.count).max().unwrap_or(0);
        lines.insert(line, max.max(continued.map_or(0, |region| region.count)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(start: Position, end: Position, kind: Kind, count: u64) -> Region {
        Region {
            start,
            end,
            kind,
            count,
        }
    }

    fn lines(regions: &[Region]) -> Vec<(u32, u64)> {
        counts(regions.to_vec()).into_iter().collect()
    }

    /// `{` on line 1, `if (x)` on 2, `return;` on 3, another statement on 4, `}` on 5.
    fn early_return() -> [Region; 4] {
        [
            region((1, 10), (5, 2), Kind::Code, 100),
            region((2, 7), (2, 8), Kind::Code, 100),
            region((2, 9), (3, 5), Kind::Gap, 30),
            region((3, 5), (3, 11), Kind::Code, 30),
        ]
    }

    #[test]
    fn the_innermost_region_counts() {
        let expected = [(1, 100), (2, 100), (3, 30), (4, 100), (5, 100)];
        assert_eq!(lines(&early_return()), expected);
    }

    #[test]
    fn instances_of_a_template_add_up() {
        let twice = [early_return(), early_return()].concat();
        let expected = [(1, 200), (2, 200), (3, 60), (4, 200), (5, 200)];
        assert_eq!(lines(&twice), expected);
    }

    #[test]
    fn what_is_not_compiled_has_no_count() {
        let function = region((1, 1), (6, 2), Kind::Code, 7);
        let skipped = region((2, 1), (4, 7), Kind::Skipped, 0);
        assert_eq!(lines(&[function, skipped]), [(1, 7), (5, 7), (6, 7)]);
    }

    #[test]
    fn a_blank_line_has_no_count() {
        let function = region((1, 1), (4, 2), Kind::Code, 7);
        let blank = region((2, 1), (2, 1), Kind::Skipped, 0);
        assert_eq!(lines(&[function, blank]), [(1, 7), (3, 7), (4, 7)]);
    }

    #[test]
    fn a_line_has_the_largest_count_of_what_begins_on_it() {
        let body = region((1, 1), (3, 2), Kind::Code, 1);
        let condition = region((2, 8), (2, 13), Kind::Code, 11);
        let empty = region((3, 1), (3, 1), Kind::Code, 99);
        assert_eq!(lines(&[body, condition, empty]), [(1, 1), (2, 11), (3, 1)]);
    }
}
