//! The page of a source file: its lines with their counts.

use super::decision;
use super::list::{List, links, nth};
use super::pages::{Depth, Pages, page_name};
use super::view::{View, has_cell};
use super::widgets::{card, count, count_text, grouped, head, number, ratio};
use crate::readable::plural;
use crate::report::model::{Cell, Condition, CountKind, File, Line, entered};
use maud::{Markup, html};
use std::borrow::Cow;
use std::io;
use std::ops::Range;

/// The longest part of a line that is shown, in bytes.
const MAX_TEXT: usize = 10_000;
/// How many links to lines that never ran a page has.
const MAX_JUMPS: usize = 200;

/// The class of a line that never ran.
const MISSED: &str = "miss";

/// The pages of all files, for links to lines.
#[derive(Default)]
pub struct Sources {
    /// The path of the first page of each file, and the first line of each of its pages.
    files: Vec<(String, Vec<u32>)>,
}

impl Sources {
    /// A link to a line.
    pub fn line(&self, depth: Depth, file: usize, line: u32) -> String {
        let Some((path, starts)) = self.files.get(file) else {
            return String::new();
        };
        let page = starts.partition_point(|&start| start <= line);
        let path = nth(path, page.saturating_sub(1));
        format!("{}#L{line}", depth.link(&path))
    }
}

impl Pages<'_> {
    pub fn write_sources(&self) -> io::Result<Sources> {
        std::fs::create_dir(self.dir.join("files"))?;
        let mut sources = Sources::default();
        for index in 0..self.report.files.len() {
            self.write_source(index, &mut sources)?;
        }
        Ok(sources)
    }

    /// Writes the pages of a file, of which most have one, and adds them to `sources`.
    fn write_source(&self, index: usize, sources: &mut Sources) -> io::Result<()> {
        let file = &self.report.files[index];
        let path = page_name(index, &file.path);
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let view = View::new(self.report, file);
        let (numbers, list) = view.source();
        let mut pages = list.pages();
        let starts = pages.iter().map(|rows| numbers[rows.start]).collect();
        sources.files.push((path.clone(), starts));
        let label =
            |rows: &Range<usize>| format!("{}–{}", numbers[rows.start], numbers[rows.end - 1]);
        let labels: Vec<String> = pages.iter().map(label).collect();
        // A source without lines has a page, too.
        if pages.is_empty() {
            pages.push(0..0);
        }
        for (page, rows) in pages.into_iter().enumerate() {
            let first = page == 0;
            let body = html! {
                h1 { (name) }
                p.path { code { (file.path) } }
                @if first { (summary(file, self.report.has_decisions)) (view.uncovered(index, sources)) (view.without_pairs(index, sources)) (self.own_functions(index, &path, sources)?) }
                (links(&path, page, &labels))
                (view.table(&list, rows))
                (links(&path, page, &labels))
            };
            self.write(&nth(&path, page), &format!("{name} – coverage"), body)?;
        }
        Ok(())
    }

    fn own_functions(&self, file: usize, path: &str, sources: &Sources) -> io::Result<Markup> {
        let report = self.report;
        let definitions = report.definitions_of(file);
        let rows = definitions.clone().map(|index| {
            let definition = &report.definitions[index];
            let line = report.functions[definition.instances.start].line;
            html! {
                tr {
                    th scope="row" { (self.definition(Depth::Below, index, sources)) }
                    (number(u64::from(line)))
                    (count(entered(definition.count, &definition.columns), report.entered_counts(definition.count)))
                    (ratio(definition.lines)) (ratio(definition.branches)) (self.mcdc(definition.mcdc))
                }
            }
        });
        let mut names = vec!["Function", "#Line", "#Entered", "#Lines", "#Branches"];
        names.extend(self.mcdc_heading());
        let list = List::sorted("Functions of this file", head(&names), rows);
        let path = path.strip_suffix(".html").unwrap_or(path);
        let path = format!("{path}.functions.html");
        let table = self.part(&path, &html! {}, &list)?;
        Ok(html! {
            @if !definitions.is_empty() {
                details {
                    summary { (plural(definitions.len(), "function")) }
                    (table)
                }
            }
        })
    }
}

/// Facts about a file, except for its lines.
fn summary(file: &File, has_decisions: bool) -> Markup {
    html! {
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
                @if has_decisions { (card("MC/DC", device.mcdc, file.host.map(|host| host.mcdc))) }
            } @else if let Some(host) = file.host {
                (card("Host lines", host.lines, None))
                (card("Host branches", host.branches, None))
                (card("Host functions", host.functions, None))
                @if has_decisions { (card("Host MC/DC", host.mcdc, None)) }
            }
        }
    }
}

impl View<'_> {
    fn kind(&self, column: usize) -> CountKind {
        self.report.columns[column].counts
    }

    /// The class of a line, which determines its color.
    fn class(&self, line: &Line) -> &'static str {
        let host = self.report.columns.iter().position(|column| column.host);
        let on_host = || line.columns[host?]?.count();
        let is_partial = |condition: &Condition| {
            let counts = condition.device.or_else(|| condition.columns[host?]);
            counts.is_some_and(|(taken, not)| (taken == 0) != (not == 0))
        };
        match line.device.or_else(on_host) {
            // Only architectures that did not run have it.
            None => "off",
            Some(0) => MISSED,
            // It ran, but a condition on it was never true or never false.
            Some(_) if line.branches.iter().any(is_partial) => "part",
            Some(_) => "hit",
        }
    }

    /// Links to the lines that never ran.
    fn uncovered(&self, file: usize, sources: &Sources) -> Markup {
        let is_missed = |line: &Line| self.class(line) == MISSED;
        let groups = self
            .file
            .lines
            .chunk_by(|one, next| is_missed(one) == is_missed(next));
        let missed = groups.filter(|lines| is_missed(&lines[0]));
        let spans: Vec<&[Line]> = missed.collect();
        html! {
            @if !spans.is_empty() {
                p.jumps {
                    "Never ran: "
                    @for (n, lines) in spans.iter().take(MAX_JUMPS).enumerate() {
                        @let (first, last) = (lines[0].number, lines[lines.len() - 1].number);
                        @if n > 0 { ", " }
                        a href=(sources.line(Depth::Below, file, first)) {
                            (first) @if last > first { "–" (last) }
                        }
                    }
                    @if let Some(more @ 1..) = spans.len().checked_sub(MAX_JUMPS) { " and " (grouped(more as u64)) " more" }
                }
            }
        }
    }

    /// Links to the lines with conditions that have no independence pair.
    fn without_pairs(&self, file: usize, sources: &Sources) -> Markup {
        let is_incomplete = |line: &&Line| line.decisions.iter().any(|own| !self.is_complete(own));
        let lines: Vec<&Line> = self.file.lines.iter().filter(is_incomplete).collect();
        html! {
            @if !lines.is_empty() {
                p.jumps {
                    "MC/DC not complete: "
                    @for (n, line) in lines.iter().take(MAX_JUMPS).enumerate() {
                        @if n > 0 { ", " }
                        a href=(sources.line(Depth::Below, file, line.number)) { (line.number) }
                    }
                    @if let Some(more @ 1..) = lines.len().checked_sub(MAX_JUMPS) { " and " (grouped(more as u64)) " more" }
                }
            }
        }
    }

    /// The numbers of all lines, and their rows.
    fn source(&self) -> (Vec<u32>, List) {
        let text = self.file.source.text.as_deref().unwrap_or_default();
        let mut lines = self.file.lines.iter().peekable();
        let mut known: Vec<(u32, Option<&Line>, &str)> = Vec::new();
        for (number, text) in (1..).zip(text.lines()) {
            let line = lines.next_if(|line| line.number == number);
            known.push((number, line, text));
        }
        // The mapping of a damaged or malicious file can name any line.
        known.extend(lines.map(|line| (line.number, Some(line), "")));
        let head = html! {
            thead {
                tr {
                    th.n scope="col" { "Line" }
                    @if self.has_sum { th.n scope="col" { "all" } }
                    @for &column in &self.columns { th.n scope="col" { (self.report.columns[column].name) } }
                    @if self.has_tests() { th.n scope="col" { "Tests" } }
                    th scope="col" { "Source" }
                }
            }
        };
        let row =
            |&(number, line, text): &(u32, Option<&Line>, &str)| self.line(number, line, text);
        let list = List {
            class: "source",
            ..List::sorted("Source", head, known.iter().map(row))
        };
        (known.iter().map(|&(number, ..)| number).collect(), list)
    }

    /// Some of the rows, and hints for the reader.
    fn table(&self, list: &List, rows: Range<usize>) -> Markup {
        let host = self.report.columns.iter().any(|column| column.host);
        let last = self.file.lines.last().map_or(0, |line| line.number);
        let text = self.file.source.text.as_deref();
        let known = text.map(|text| text.lines().count());
        html! {
            @if self.file.lines.iter().any(|line| !line.branches.is_empty()) {
                label.toggle { input type="checkbox" id="branches"; " Show conditions that were both true and false" }
            }
            @if self.has_tests() { p.hint { "A click on the number of tests shows their names." } }
            (list.table(rows))
            @if let Some(known) = known.filter(|&known| last as usize > known) {
                p.warning { "The mapping refers to line " (last) ", but the source has " (known) " lines: it is not the source that was compiled." }
            }
            @if self.file.lines.iter().any(|line| !line.decisions.is_empty()) { (decision::legend()) }
            @if host { p.hint { "Colors show the coverage on devices for lines that have device code, and otherwise on the host." } }
        }
    }

    fn line(&self, number: u32, line: Option<&Line>, text: &str) -> Markup {
        let class = line.map_or("", |line| self.class(line));
        html! {
            tr class=(class) id=(format!("L{number}")) {
                th.n scope="row" { a href=(format!("#L{number}")) { (number) } }
                @if self.has_sum { (count(line.and_then(|line| line.device).map(Cell::Count), self.report.device_counts)) }
                @for &column in &self.columns { (count(line.filter(|line| has_cell(line, column)).and_then(|line| line.columns[column]), self.kind(column))) }
                @if self.has_tests() { td.n.tests { (self.tests(number)) } }
                td.src { code { (cut(text)) } }
            }
            @for condition in line.map(|line| &line.branches[..]).unwrap_or_default() {
                (self.condition(number, condition, text))
            }
            @for decision in line.map(|line| &line.decisions[..]).unwrap_or_default() {
                (self.decision(decision))
            }
        }
    }

    /// How many tests ran a line, and the names of the first ones.
    fn tests(&self, number: u32) -> Markup {
        html! {
            @if let Some(tests) = self.file.tests.get(&number) {
                details {
                    summary { (grouped(tests.number as u64)) }
                    ul {
                        @for name in &tests.first { li { (name) } }
                        @if let Some(more @ 1..) = tests.number.checked_sub(tests.first.len()) { li { "and " (grouped(more as u64)) " more" } }
                    }
                }
            }
        }
    }

    fn condition(&self, number: u32, condition: &Condition, text: &str) -> Markup {
        let source = condition_text(number, condition, text);
        let columns = condition.columns.iter().flatten();
        let mut counts = columns.chain(&condition.device);
        // By default, conditions are shown only if they are partially covered.
        let is_partial = counts.any(|&(taken, not)| (taken == 0) != (not == 0));
        html! {
            tr class=(if is_partial { "br" } else { "br usual" }) {
                td {}
                @if self.has_sum { (sides(condition.device, self.report.device_counts)) }
                @for &column in &self.columns { (sides(condition.columns[column], self.kind(column))) }
                @if self.has_tests() { td {} }
                td.src {
                    span.what { "true / false " }
                    @if source.is_empty() { "column " (condition.column) } @else { code { (cut(source)) } }
                }
            }
        }
    }
}

/// The text, or the beginning of a long one.
fn cut(text: &str) -> Cow<'_, str> {
    if text.len() > MAX_TEXT {
        return format!("{} …", &text[..text.floor_char_boundary(MAX_TEXT)]).into();
    }
    text.into()
}

/// The source text of a condition that starts on a line, up to the end of the line. Columns are in bytes.
fn condition_text<'a>(number: u32, condition: &Condition, text: &'a str) -> &'a str {
    let start = condition.column.saturating_sub(1) as usize;
    let mut end = text.len();
    if condition.end.0 == number {
        end = end.min(condition.end.1.saturating_sub(1) as usize);
    }
    text.get(start..end).unwrap_or_default().trim()
}

/// A cell with the two counts of a condition.
fn sides(counts: Option<(u64, u64)>, kind: CountKind) -> Markup {
    let side = |count: u64| {
        html! {
            @if count == 0 { b.zero { "0" } } @else { (count_text(count, kind)) }
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
