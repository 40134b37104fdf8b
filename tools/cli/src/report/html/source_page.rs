//! The page of a source file: its lines with their counts.

use super::widgets::{card, count, footer, grouped, head, number, ratio, table, table_of};
use super::{Depth, Pages};
use crate::report::model::{Cell, Condition, File, FunctionCoverage, Line, Report};
use maud::{Markup, html};

impl Pages<'_> {
    /// The page of a file.
    pub fn file(&self, file: &File) -> Markup {
        let report = self.report;
        let own = report
            .functions
            .iter()
            .filter(|function| report.files[function.file].path == file.path);
        let own: Vec<&FunctionCoverage> = own.collect();
        let name = file.path.rsplit('/').next().unwrap_or_default();
        // The columns in which the file has code, and their sum if there are several.
        let columns: Vec<usize> = (0..report.columns.len())
            .filter(|&column| file.lines.iter().any(|line| has_cell(line, column)))
            .collect();
        let summands = columns
            .iter()
            .filter(|&&column| report.columns[column].ran && !report.columns[column].host)
            .count();
        let view = View {
            report,
            file,
            columns,
            has_sum: summands > 1,
        };
        let body = html! {
            h1 { (name) }
            p.path { code { (file.path) } }
            @if let Some(why) = &file.source.missing {
                p.warning { "The source cannot be read (" (why) "), so lines are shown without text. Name its location with "
                    code { "--sources-from DIR" } " or " code { "--path-map FROM=TO" } "." }
            }
            @if let Some(from) = &file.source.read_from { p.hint { "Read from " code { (from.display()) } } }
            @if file.source.changed_since {
                p.warning { "This file was changed after the program was built: counts may be shown next to the wrong lines." }
            }
            section.cards aria-label="Totals" {
                @if let Some(device) = file.device {
                    (card("Lines", device.lines, file.host.map(|host| host.lines)))
                    (card("Branches", device.branches, file.host.map(|host| host.branches)))
                    (card("Functions", device.functions, file.host.map(|host| host.functions)))
                } @else if let Some(host) = file.host {
                    (card("Host lines", host.lines, None))
                    (card("Host branches", host.branches, None))
                    (card("Host functions", host.functions, None))
                }
            }
            (view.uncovered())
            @if !own.is_empty() {
                details {
                    summary { (own.len()) @if own.len() == 1 { " function" } @else { " functions" } }
                    (table("Functions of this file", html! {
                        (head(&["Function", "#Line", "#Entered", "#Lines", "#Branches"]))
                        tbody {
                            @for function in &own {
                                tr {
                                    th scope="row" {
                                        (self.function_link(Depth::Files, function))
                                        @if function.kernel { " " span.tag { "kernel" } }
                                    }
                                    (number(u64::from(function.line)))
                                    (count(function.count.map(Cell::Count).or(function.columns.iter().flatten().next().copied())))
                                    (ratio(function.lines)) (ratio(function.branches))
                                }
                            }
                        }
                    }))
                }
            }
            (view.source())
            (footer(&self.origin))
        };
        self.page(Depth::Files, &format!("{name} – coverage"), body)
    }
}

/// Whether to show a column's count of a line. Columns that did not run are shown if all columns with code did not run.
fn has_cell(line: &Line, column: usize) -> bool {
    match line.columns[column] {
        None => false,
        Some(Cell::Count(_)) => true,
        Some(Cell::NotRun(_)) => line
            .columns
            .iter()
            .flatten()
            .all(|cell| matches!(cell, Cell::NotRun(_))),
    }
}

/// The lines of a file with their counts.
struct View<'a> {
    report: &'a Report,
    file: &'a File,
    /// The columns in which the file has code.
    columns: Vec<usize>,
    /// Whether there is a column for the sum of the architectures.
    has_sum: bool,
}

/// The coverage of a line, which determines its color.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineState {
    Hit,
    Miss,
    /// It ran, but a condition on it was never true or never false.
    Partial,
    /// Only architectures that did not run have it.
    NotRun,
}

impl LineState {
    fn class(self) -> &'static str {
        match self {
            LineState::Hit => "hit",
            LineState::Miss => "miss",
            LineState::Partial => "part",
            LineState::NotRun => "off",
        }
    }
}

impl View<'_> {
    fn state(&self, line: &Line) -> LineState {
        let host = self.report.columns.iter().position(|column| column.host);
        let on_host = || match line.columns[host?] {
            Some(Cell::Count(count)) => Some(count),
            _ => None,
        };
        let is_partial = |condition: &Condition| {
            let counts = condition.device.or_else(|| condition.columns[host?]);
            counts.is_some_and(|(taken, not)| (taken == 0) != (not == 0))
        };
        match line.device.or_else(on_host) {
            None => LineState::NotRun,
            Some(0) => LineState::Miss,
            Some(_) if line.branches.iter().any(is_partial) => LineState::Partial,
            Some(_) => LineState::Hit,
        }
    }

    /// Links to the lines that never ran.
    fn uncovered(&self) -> Markup {
        let mut spans: Vec<(u32, u32)> = Vec::new();
        let mut last_was_missed = false;
        for line in &self.file.lines {
            let is_missed = self.state(line) == LineState::Miss;
            match spans.last_mut() {
                Some(span) if is_missed && last_was_missed => span.1 = line.number,
                _ if is_missed => spans.push((line.number, line.number)),
                _ => {}
            }
            last_was_missed = is_missed;
        }
        html! {
            @if !spans.is_empty() {
                p.jumps {
                    "Never ran: "
                    @for (n, (first, last)) in spans.iter().enumerate() {
                        @if n > 0 { ", " }
                        a href=(format!("#L{first}")) {
                            (first) @if last > first { "–" (last) }
                        }
                    }
                }
            }
        }
    }

    fn source(&self) -> Markup {
        let text = self.file.source.text.as_deref();
        let source: Vec<&str> = text.map(|text| text.lines().collect()).unwrap_or_default();
        let last = self
            .file
            .lines
            .last()
            .map_or(0, |line| line.number as usize);
        // The mapping of a damaged or malicious file can name any line.
        let rows = match text {
            Some(_) => source.len(),
            None => 0,
        };
        let mut lines = self.file.lines.iter().peekable();
        let mut known = Vec::new();
        for number in 1..=rows {
            let line = lines.next_if(|line| line.number as usize == number);
            known.push((
                number,
                line,
                source.get(number - 1).copied().unwrap_or_default(),
            ));
        }
        known.extend(lines.map(|line| (line.number as usize, Some(line), "")));
        let host = self.report.columns.iter().any(|column| column.host);
        html! {
            @if self.file.lines.iter().any(|line| !line.branches.is_empty()) {
                label.toggle { input type="checkbox" id="branches"; " Show conditions that were both true and false" }
            }
            (table_of("source", "Source", html! {
                thead {
                    tr {
                        th.n scope="col" { "Line" }
                        @if self.has_sum { th.n scope="col" { "all" } }
                        @for &column in &self.columns { th.n scope="col" { (self.report.columns[column].name) } }
                        th scope="col" { "Source" }
                    }
                }
                tbody {
                    @for (number, line, text) in &known {
                        (self.line(*number, *line, text))
                    }
                }
            }))
            @if text.is_some() && last > rows {
                p.warning { "The mapping refers to line " (last) ", but the source has " (rows) " lines: it is not the source that was compiled." }
            }
            @if host { p.hint { "Colors show the coverage on devices for lines that have device code, and otherwise on the host." } }
        }
    }

    fn line(&self, number: usize, line: Option<&Line>, text: &str) -> Markup {
        let class = line.map_or("", |line| self.state(line).class());
        html! {
            tr class=(class) id=(format!("L{number}")) {
                th.n scope="row" { a href=(format!("#L{number}")) { (number) } }
                @if self.has_sum { (count(line.and_then(|line| line.device).map(Cell::Count))) }
                @for &column in &self.columns { (count(line.filter(|line| has_cell(line, column)).and_then(|line| line.columns[column]))) }
                td.src { code { (text) } }
            }
            @for condition in line.map(|line| &line.branches[..]).unwrap_or_default() {
                (self.condition(number, condition, text))
            }
        }
    }

    fn condition(&self, number: usize, condition: &Condition, text: &str) -> Markup {
        let source = condition_text(number, condition, text);
        let mut counts = condition
            .columns
            .iter()
            .copied()
            .chain([condition.device])
            .flatten();
        // By default, conditions are shown only if they are partially covered.
        let is_partial = counts.any(|(taken, not)| (taken == 0) != (not == 0));
        html! {
            tr class=(if is_partial { "br" } else { "br usual" }) {
                td {}
                @if self.has_sum { (sides(condition.device)) }
                @for &column in &self.columns { (sides(condition.columns[column])) }
                td.src {
                    span.what { "true / false " }
                    @if source.is_empty() { "column " (condition.column) } @else { code { (source) } }
                }
            }
        }
    }
}

/// The source text of a condition that starts on a line, up to the end of the line. Columns are in bytes.
fn condition_text<'a>(number: usize, condition: &Condition, text: &'a str) -> &'a str {
    let start = condition.column.saturating_sub(1) as usize;
    let end = match condition.end.0 as usize == number {
        true => condition.end.1.saturating_sub(1) as usize,
        false => text.len(),
    };
    text.get(start..end.min(text.len()))
        .unwrap_or_default()
        .trim()
}

/// A cell with the two counts of a condition.
fn sides(counts: Option<(u64, u64)>) -> Markup {
    let side = |count: u64| {
        html! {
            @if count == 0 { b.zero { "0" } } @else { (grouped(count)) }
        }
    };
    html! {
        td.n { @if let Some((taken, not)) = counts { (side(taken)) " / " (side(not)) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_condition_stays_within_its_line() {
        let condition = |column, end| Condition {
            column,
            end,
            device: None,
            columns: Vec::new(),
        };
        let text = |condition, line| condition_text(2, &condition, line).to_owned();
        assert_eq!(text(condition(5, (2, 10)), "if (x < 3) {"), "x < 3");
        assert_eq!(text(condition(5, (3, 4)), "if (x &&"), "x &&");
        assert_eq!(text(condition(5, (2, 99)), "if (x"), "x");
        assert_eq!(text(condition(9, (2, 5)), "if (x)"), "");
        assert_eq!(text(condition(0, (2, 2)), "é"), "");
    }
}
