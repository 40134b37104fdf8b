//! From the regions of functions to the counts of a file's lines, as llvm-cov has them. It is done here because
//! llvm-cov, when it is given several code objects, takes the first function of a name that it meets, be it one that the
//! code object only declares, or whose code is another: what it says depends on the order of the code objects.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Line and column, from 1.
pub type Position = (u32, u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Code,
    /// A macro's use.
    Expansion,
    /// Not compiled, or a comment.
    Skipped,
    /// Between a condition and what it guards: it says how often what follows ran, and is no code itself.
    Gap,
}

/// A part of a file. Its end is the position behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    pub start: Position,
    pub end: Position,
    pub kind: Kind,
    pub count: u64,
}

/// The count of each line that has code: the largest among what goes on from the line before and the regions that
/// begin on the line. At each position the innermost region counts.
pub fn counts(regions: Vec<Region>) -> BTreeMap<u32, u64> {
    let regions = distinct(regions);
    let ends = regions.iter().map(|region| region.end);
    let changes: BTreeSet<Position> = ends.chain(regions.iter().map(|r| r.start)).collect();

    let mut lines = BTreeMap::new();
    let mut next = regions.iter().peekable();
    let mut open: Vec<&Region> = Vec::new();
    // The line that is looked at, what went on from the one before, and what begins on it.
    let (mut line, mut before, mut begun) = (0, None, Vec::new());
    for position in changes {
        if position.0 != line {
            put(&mut lines, line, before, &begun);
            before = open.last().copied();
            begun.clear();
            for between in line + 1..position.0 {
                put(&mut lines, between, before, &begun);
            }
            line = position.0;
        }
        open.retain(|region| region.end > position);
        let mut starts = None;
        while let Some(region) = next.next_if(|region| region.start == position) {
            starts = Some(region);
            if region.end > region.start {
                open.push(region);
            }
        }
        // An empty region holds nothing, but is a place that its surroundings reach.
        if let Some(region) = starts.filter(|region| region.kind != Kind::Gap) {
            begun.push(open.last().copied().unwrap_or(region));
        }
    }
    put(&mut lines, line, before, &begun);
    lines
}

/// What holds another comes before it. The same place in several functions (a template's instances, a macro's uses)
/// has the sum of their counts.
fn distinct(mut regions: Vec<Region>) -> Vec<Region> {
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

fn put(lines: &mut BTreeMap<u32, u64>, line: u32, before: Option<&Region>, begun: &[&Region]) {
    let counted = |region: &&&Region| region.kind != Kind::Skipped;
    let goes_on = before.filter(|region| counted(&region));
    // A line on which something begins that is not compiled has no code unless some begins there, too.
    let skipped = begun.first().is_some_and(|first| !counted(&first));
    if begun.iter().any(|region| counted(&region)) || (goes_on.is_some() && !skipped) {
        let counts = begun
            .iter()
            .filter(|region| region.kind != Kind::Gap && counted(region));
        let most = counts.map(|region| region.count).max().unwrap_or(0);
        lines.insert(line, most.max(goes_on.map_or(0, |region| region.count)));
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

    /// `{` on 1, `if (x)` on 2, `return;` on 3, a line more, `}` on 5.
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
    fn a_line_has_the_largest_count_of_what_begins_on_it() {
        let body = region((1, 1), (3, 2), Kind::Code, 1);
        let condition = region((2, 8), (2, 13), Kind::Code, 11);
        let empty = region((3, 1), (3, 1), Kind::Code, 99);
        assert_eq!(lines(&[body, condition, empty]), [(1, 1), (2, 11), (3, 1)]);
    }
}
