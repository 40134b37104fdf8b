//! How decisions (MC/DC) and their conditions are shown: their source text, and which conditions lack an independence pair.

use super::counts::{CountedDecision, Counts, Which};
use super::lines::Position;
use super::model::{Decision, DecisionCondition, File, Ratio, Report};
use crate::table::Table;

/// A longer text is shortened, in bytes.
const MAX_TEXT: usize = 160;

/// The source text of a part of a file in one line. `None` if the source is not shown, or has no such part.
fn text(file: &File, start: Position, end: Position) -> Option<String> {
    let source = file.source.text.as_deref()?;
    let (first, last) = (start.0.max(1) as usize, end.0 as usize);
    let mut words: Vec<&str> = Vec::new();
    let mut length = 0;
    for (number, line) in (1..).zip(source.lines()).skip(first - 1) {
        if number > last || length > MAX_TEXT {
            break;
        }
        // Columns are in bytes.
        let column = |at: Position, other: usize| match at.0 as usize == number {
            true => (at.1.max(1) as usize - 1).min(line.len()),
            false => other,
        };
        let part = line.get(column(start, 0)..column(end, line.len()))?;
        words.extend(part.split_whitespace());
        length += part.len();
    }
    let text = words.join(" ");
    let is_long = text.len() > MAX_TEXT;
    let shown = &text[..text.floor_char_boundary(MAX_TEXT)];
    let ellipsis = if is_long { " …" } else { "" };
    (!shown.is_empty()).then(|| format!("{shown}{ellipsis}"))
}

/// The source text of a decision.
pub fn decision_text(file: &File, decision: &Decision) -> Option<String> {
    text(file, decision.start, decision.end)
}

/// The source text of a condition, and its position, with the name of its file if that is not the decision's.
pub struct Shown {
    pub text: Option<String>,
    pub position: String,
}

pub fn condition(report: &Report, file: &File, condition: &DecisionCondition) -> Shown {
    let (line, column) = condition.start;
    let Some(path) = &condition.path else {
        return Shown {
            text: text(file, condition.start, condition.end),
            position: format!("{line}:{column}"),
        };
    };
    // Files are sorted by their paths.
    let found = report.files.binary_search_by(|file| file.path.cmp(path));
    let found = found.ok().map(|index| &report.files[index]);
    let name = path.rsplit('/').next().unwrap_or_default();
    Shown {
        text: found.and_then(|file| text(file, condition.start, condition.end)),
        position: format!("{name}:{line}:{column}"),
    }
}

impl Shown {
    /// `C2 b`, or `C2 (6:14)` without the source.
    pub fn label(&self, number: usize) -> String {
        match &self.text {
            Some(text) => format!("C{} {text}", number + 1),
            None => format!("C{} ({})", number + 1, self.position),
        }
    }
}

/// The function that has the decision, or one of the instances of a template.
fn function(decision: &Decision) -> String {
    let mut functions = decision.evaluations.iter().map(|own| &own.function);
    let first = functions.next().cloned().unwrap_or_default();
    match functions.filter(|other| **other != first).count() {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// The conditions without an independence pair.
pub fn missing(report: &Report) -> String {
    let headings = [
        "Condition without an independence pair",
        "Decision",
        "Function",
        "Location",
    ];
    let mut table = Table::new(&headings, &[0, 1, 2, 3]);
    for (file, counts) in Counts::of_files(report, Which::All) {
        let decisions = counts.lines.iter().flat_map(|line| &line.decisions);
        for CountedDecision { decision, effects } in decisions {
            let conditions = decision.conditions.iter().zip(effects).enumerate();
            for (n, (own, _)) in conditions.filter(|(_, (_, effect))| **effect == Some(false)) {
                table.row([
                    condition(report, file, own).label(n),
                    decision_text(file, decision).unwrap_or_default(),
                    function(decision),
                    format!(
                        "{}:{}:{}",
                        file.location(),
                        decision.start.0,
                        decision.start.1
                    ),
                ]);
            }
        }
    }
    table.text(false)
}

/// `MC/DC 2/3 of a && (b || c): no independence pair for C2 b`.
pub fn summary(report: &Report, file: &File, counted: &CountedDecision) -> String {
    let CountedDecision { decision, effects } = counted;
    let Ratio { covered, total } = Ratio::of_effects(effects.iter().copied());
    let conditions = decision.conditions.iter().zip(effects).enumerate();
    let missing = conditions.filter(|(_, (_, effect))| **effect == Some(false));
    let missing = missing.map(|(n, (own, _))| condition(report, file, own).label(n));
    let missing: Vec<String> = missing.collect();
    let mut text = format!("MC/DC {covered}/{total}");
    if let Some(decision) = decision_text(file, decision) {
        text += &format!(" of {decision}");
    }
    if !missing.is_empty() {
        text += &format!(": no independence pair for {}", missing.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::source::Source;
    use std::collections::BTreeMap;

    #[test]
    fn the_text_of_a_part_is_one_line() {
        let source = Source {
            text: Some("if (a &&\n    b  || é)\n".to_owned()),
            ..Source::default()
        };
        let file = File {
            path: "a.hip".into(),
            source,
            device: None,
            host: None,
            combined: None,
            columns: Vec::new(),
            lines: Vec::new(),
            changed: None,
            tests: BTreeMap::new(),
        };
        for (start, end, expected) in [
            ((1, 5), (2, 13), Some("a && b || é")),
            ((1, 5), (1, 6), Some("a")),
            ((2, 5), (2, 6), Some("b")),
            // Positions of another source.
            ((1, 5), (1, 99), Some("a &&")),
            ((2, 12), (2, 13), None),
            ((2, 6), (2, 5), None),
            ((7, 1), (8, 1), None),
            ((0, 0), (0, 0), None),
        ] {
            assert_eq!(
                text(&file, start, end).as_deref(),
                expected,
                "{start:?} {end:?}"
            );
        }
    }
}
