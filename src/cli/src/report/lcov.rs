//! LCOV tracefiles (geninfo(1)). Function names are symbols, as in llvm-cov's output: genhtml demangles them. Each
//! function in the source has one record, so readers count as many functions as the other formats.

use super::attribution::{Attribution, Location};
use super::counts::{Counted, CountedDecision, Counts, Which};
use super::decisions;
use super::model::{File, Ratio, Report};
use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// The name of the file in the directory of a report, which editors search for.
pub const NAME: &str = "lcov.info";
/// The file with the lines of each test, next to the database.
pub const TESTS_NAME: &str = "tests.info";

/// Writes `lcov.info`, with all architectures and the host if it is included, and one file per column that ran.
pub fn write_all(report: &Report, dir: &Path) -> io::Result<()> {
    let mut bytes = Vec::new();
    write(report, Which::All, &mut bytes)?;
    std::fs::write(dir.join(NAME), bytes)?;
    let columns = report.columns.iter().enumerate();
    for (index, column) in columns.filter(|(_, column)| column.ran) {
        let mut bytes = Vec::new();
        write(report, Which::Column(index), &mut bytes)?;
        std::fs::write(dir.join(format!("{}.lcov", column.name)), bytes)?;
    }
    Ok(())
}

/// Whether a path can be written. It cannot if it has a line break, because a record is one line.
pub fn can_name(path: &str) -> bool {
    !path.contains(['\n', '\r'])
}

/// A symbol without line breaks, which only a damaged or hostile profile has.
fn one_line(symbol: &str) -> String {
    symbol.replace(['\n', '\r'], "?")
}

pub fn write(report: &Report, which: Which, out: &mut impl Write) -> io::Result<()> {
    for (file, counts) in Counts::of_files(report, which) {
        if can_name(file.location()) {
            write_file(report, file, &counts, out)?;
        }
    }
    Ok(())
}

/// Writes which lines each test ran, in sections with its name (TN). Readers add up the counts of all tests, so a line has the number
/// of the tests that ran it. As in lcov, names have only letters, digits and underscores.
pub fn write_tests(
    attribution: &Attribution,
    locations: &BTreeMap<Arc<str>, Location>,
    out: &mut impl Write,
) -> io::Result<()> {
    for (name, ran) in &attribution.tests {
        let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        for (path, lines) in &ran.lines {
            let location = &locations[path].shown;
            if !can_name(location) {
                continue;
            }
            writeln!(out, "TN:{name}\nSF:{location}")?;
            let code = attribution.code[path].iter();
            let mut ratio = Ratio::default();
            for line in code.flat_map(|&(first, last)| first..=last) {
                let is_in = |&(first, last): &(u32, u32)| (first..=last).contains(&line);
                let count = u64::from(lines.iter().any(is_in));
                ratio.add(Ratio::of([count]));
                writeln!(out, "DA:{line},{count}")?;
            }
            writeln!(out, "LF:{}\nLH:{}", ratio.total, ratio.covered)?;
            writeln!(out, "end_of_record")?;
        }
    }
    Ok(())
}

fn write_file(
    report: &Report,
    file: &File,
    counts: &Counts,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "TN:")?;
    writeln!(out, "SF:{}", file.location())?;
    for function in &counts.functions {
        writeln!(out, "FN:{},{}", function.line, one_line(&function.symbol))?;
    }
    for function in &counts.functions {
        writeln!(
            out,
            "FNDA:{},{}",
            function.count,
            one_line(&function.symbol)
        )?;
    }
    let ratio = counts.function_ratio();
    writeln!(out, "FNF:{}\nFNH:{}", ratio.total, ratio.covered)?;
    for (number, conditions) in conditions_by_line(&counts.lines) {
        for (block, (taken, not_taken)) in conditions.into_iter().enumerate() {
            for (branch, count) in [taken, not_taken].into_iter().enumerate() {
                // `-` means that the condition was never evaluated.
                let is_evaluated = taken > 0 || not_taken > 0;
                let count = is_evaluated.then(|| count.to_string());
                let count = count.as_deref().unwrap_or("-");
                writeln!(out, "BRDA:{number},{block},{branch},{count}")?;
            }
        }
    }
    let ratio = counts.branch_ratio();
    writeln!(out, "BRF:{}\nBRH:{}", ratio.total, ratio.covered)?;
    let ratio = counts.mcdc_ratio();
    if ratio.total > 0 {
        for line in &counts.lines {
            for group in groups(&line.decisions) {
                write_group(report, file, line.number, &group, out)?;
            }
        }
        // Each condition counts for its change to true and to false.
        writeln!(out, "MCF:{}\nMCH:{}", 2 * ratio.total, 2 * ratio.covered)?;
    }
    for line in &counts.lines {
        writeln!(out, "DA:{},{}", line.number, line.count)?;
    }
    let ratio = counts.line_ratio();
    writeln!(out, "LF:{}\nLH:{}", ratio.total, ratio.covered)?;
    writeln!(out, "end_of_record")
}

/// The decisions of a line in groups. A reader identifies a group by its line and its number of conditions, so decisions with the same
/// number are in one group with all others of the line.
fn groups<'a, 'b>(decisions: &'b [CountedDecision<'a>]) -> Vec<Vec<&'b CountedDecision<'a>>> {
    let number = |own: &CountedDecision| own.effects.iter().flatten().count();
    let numbers: HashSet<usize> = decisions.iter().map(number).collect();
    if numbers.len() == decisions.len() {
        return decisions.iter().map(|own| vec![own]).collect();
    }
    vec![decisions.iter().collect()]
}

/// Writes the conditions of a group, except for constant ones. An independence pair shows both changes of a condition, to true and to
/// false.
fn write_group(
    report: &Report,
    file: &File,
    line: u32,
    group: &[&CountedDecision],
    out: &mut impl Write,
) -> io::Result<()> {
    let size: usize = group
        .iter()
        .map(|own| own.effects.iter().flatten().count())
        .sum();
    let mut index = 0;
    for CountedDecision { decision, effects } in group {
        let conditions = decision.conditions.iter().zip(effects);
        for (condition, effect) in conditions.filter_map(|(own, effect)| Some((own, (*effect)?))) {
            let shown = decisions::condition(report, file, condition);
            let text = shown.text.unwrap_or(shown.position);
            let within = decisions::decision_text(file, decision);
            let within = within.map_or_else(String::new, |text| format!(" in '{text}'"));
            let expression = one_line(&format!("'{text}'{within}"));
            let taken = u8::from(effect);
            for sense in ["t", "f"] {
                writeln!(
                    out,
                    "MCDC:{line},{size},{sense},{taken},{index},{expression}"
                )?;
            }
            index += 1;
        }
    }
    Ok(())
}

/// The conditions of each line, for records that genhtml 2 accepts: a line ran if, and only if, one of the conditions on
/// it was evaluated. That is not so for a label (`default:`), whose condition is evaluated at the `switch`, or for
/// `} else if (…)`, which starts with the end of another block. Their conditions are moved to the nearest line where they
/// are accepted, before it if possible.
fn conditions_by_line(lines: &[Counted]) -> BTreeMap<u32, Vec<(u64, u64)>> {
    let was_evaluated = |line: &Counted| line.conditions.iter().any(|&(a, b)| a > 0 || b > 0);
    let is_accepted =
        |line: &Counted| line.conditions.is_empty() || (line.count > 0) == was_evaluated(line);
    let mut moved: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    for (n, line) in lines.iter().enumerate() {
        let accepts = |other: &&Counted| {
            let agrees = if was_evaluated(line) {
                other.count > 0
            } else {
                other.count == 0 || was_evaluated(other)
            };
            is_accepted(other) && agrees
        };
        let nearest = || {
            let before = lines[..n].iter().rev().find(accepts);
            before.or_else(|| lines[n + 1..].iter().find(accepts))
        };
        let nearest = if is_accepted(line) { None } else { nearest() };
        let number = nearest.unwrap_or(line).number;
        let conditions = moved.entry(number).or_default();
        conditions.extend(&line.conditions);
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::model::Decision;

    fn line(number: u32, count: u64, conditions: &[(u64, u64)]) -> Counted<'static> {
        Counted {
            decisions: Vec::new(),
            number,
            count,
            conditions: conditions.to_vec(),
        }
    }

    #[test]
    fn decisions_of_the_same_size_are_in_one_group() {
        let decision = Decision {
            start: (1, 1),
            end: (1, 9),
            conditions: Vec::new(),
            evaluations: Vec::new(),
        };
        let counted = |size: &usize| CountedDecision {
            decision: &decision,
            // A constant condition has no record.
            effects: [&vec![Some(true); *size][..], &[None]].concat(),
        };
        for (sizes, expected) in [
            (&[][..], &[][..]),
            (&[3], &[1]),
            (&[2, 3, 4], &[1, 1, 1]),
            (&[2, 3, 2], &[3]),
        ] {
            let decisions: Vec<CountedDecision> = sizes.iter().map(counted).collect();
            let found: Vec<usize> = groups(&decisions).iter().map(Vec::len).collect();
            assert_eq!(found, expected, "{sizes:?}");
        }
    }

    #[test]
    fn a_symbol_is_on_one_line() {
        assert_eq!(one_line("_Z1av"), "_Z1av");
        assert_eq!(one_line("a\nSF:b\rc"), "a?SF:b?c");
    }

    #[test]
    fn conditions_are_on_lines_that_agree_with_them() {
        let lines = [
            // Neither can take conditions that were not evaluated.
            line(1, 5, &[]),
            line(2, 5, &[(2, 3)]),
            // Accepted.
            line(3, 0, &[(0, 0)]),
            line(4, 0, &[]),
            // A label that was not reached, but its condition was evaluated.
            line(5, 0, &[(0, 7)]),
            // The end of a block that ran, and a condition that was never evaluated.
            line(6, 1, &[(0, 0)]),
        ];
        let placed = conditions_by_line(&lines);
        let of = |number: u32| placed.get(&number).cloned().unwrap_or_default();
        assert_eq!(of(2), [(2, 3), (0, 7)]);
        assert_eq!(of(3), [(0, 0)]);
        assert_eq!(of(4), [(0, 0)]);
        assert!(of(5).is_empty() && of(6).is_empty());
        // No other line.
        assert_eq!(
            conditions_by_line(&lines[5..]),
            BTreeMap::from([(6, vec![(0, 0)])])
        );
    }
}
