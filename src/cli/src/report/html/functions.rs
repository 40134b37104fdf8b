//! The functions: one row for each function in the source, and pages with the instances of templates.

use super::list::List;
use super::pages::{Depth, Pages, plain_name};
use super::source_page::Sources;
use super::widgets::{count, function_name, grouped, head, instance_name, location, ratio};
use crate::readable::plural;
use crate::report::model::{Cell, CountKind, Definition, FunctionCoverage, entered};
use maud::{Markup, html};
use std::io;
use std::ops::Range;

/// A template with more instances has a page of them. The others are in its row.
const IN_ROW: usize = 10;
/// The same for the sum of the lengths of their names.
const NAMES_IN_ROW: usize = 4000;

impl Pages<'_> {
    /// Writes the pages of functions and of instances. `sources` has the pages of source lines.
    pub fn write_functions(&self, sources: &Sources) -> io::Result<()> {
        let report = self.report;
        for index in 0..report.definitions.len() {
            if let Some(path) = self.instances_page(index) {
                std::fs::create_dir_all(self.dir.join("instances"))?;
                self.write_instances(index, &path, sources)?;
            }
        }
        let rows = report.definitions.iter().enumerate();
        let rows = rows.map(|(index, definition)| {
            html! {
                tr {
                    th scope="row" { (self.definition(Depth::Top, index, sources)) }
                    td { (location(report, self.first(definition))) }
                    @for (cell, column) in definition.columns.iter().zip(&self.report.columns) { (count(*cell, column.counts)) }
                    (ratio(definition.lines)) (ratio(definition.branches)) (self.mcdc(definition.mcdc))
                }
            }
        });
        let list = List::sorted("Functions", self.head(&["Function", "Location"]), rows);
        let ran: usize = report.definitions.iter().map(|own| own.ran).sum();
        let hint = html! {
            p.hint {
                "How often each function was entered, counted per thread. All instances of a template are one function. "
                (grouped(ran as u64)) " of " (grouped(report.functions.len() as u64)) " functions and instances ran."
            }
        };
        let label = |page: usize, rows: Range<usize>| {
            let first = self.first(&report.definitions[rows.start]);
            let path = &report.files[first.file].path;
            let name = path.rsplit('/').next().unwrap_or_default();
            format!("{} ({name})", page + 1)
        };
        self.write_list("functions.html", "Functions", &hint, &list, label)
    }

    /// The headings of a table of functions: `first`, and then all that is counted.
    fn head(&self, first: &[&str]) -> Markup {
        let counts = self.report.columns.iter();
        let counts: Vec<String> = counts.map(|column| format!("#{}", column.name)).collect();
        let mut headings = first.to_vec();
        headings.extend(counts.iter().map(String::as_str));
        headings.extend(["#Lines", "#Branches"]);
        headings.extend(self.mcdc_heading());
        head(&headings)
    }

    fn first(&self, definition: &Definition) -> &FunctionCoverage {
        &self.report.functions[definition.instances.start]
    }

    /// The path of the page with the instances of a definition, if there are too many for its row.
    fn instances_page(&self, index: usize) -> Option<String> {
        let definition = &self.report.definitions[index];
        let instances = &self.report.functions[definition.instances.clone()];
        let names: usize = instances.iter().map(|own| own.name.len()).sum();
        let is_long = instances.len() > IN_ROW || names > NAMES_IN_ROW;
        (is_long && instances.len() > 1)
            .then(|| format!("instances/{index}-{}.html", plain_name(&definition.name)))
    }

    /// The name of a function, with its properties, and its instances if it is a template.
    pub fn definition(&self, depth: Depth, index: usize, sources: &Sources) -> Markup {
        let definition = &self.report.definitions[index];
        let instances = &self.report.functions[definition.instances.clone()];
        let all = |has: fn(&FunctionCoverage) -> bool| instances.iter().all(has);
        let first = self.first(definition);
        let page = sources.line(depth, first.file, first.line);
        let number = plural(instances.len(), "instance");
        let summary = format!("{number}, {} ran", definition.ran);
        html! {
            (function_name(&definition.name, Some(&page)))
            @if all(|own| own.kernel) { " " span.tag { "kernel" } }
            @if all(|own| own.unused) { " " span.tag { "not called" } }
            @if instances.iter().any(|own| own.mismatched) { " " span.tag.bad { "counts lost" } }
            @match self.instances_page(index) {
                Some(page) => div.instances { a href=(depth.link(&page)) { (summary) } },
                None if instances.len() > 1 => details.instances {
                    summary { (summary) }
                    ul {
                        @for (n, own) in instances.iter().enumerate() {
                            li {
                                (name_among(instances, n))
                                " " span.small { (self.entered(own)) }
                            }
                        }
                    }
                },
                None => {}
            }
        }
    }

    /// How often a function was entered in all columns that ran, and its lines.
    fn entered(&self, function: &FunctionCoverage) -> String {
        let lines = function.lines;
        match entered(function.count, &function.columns).and_then(Cell::count) {
            None => "not run".to_owned(),
            Some(0) => "never ran".to_owned(),
            Some(count) => {
                let entered = match self.report.entered_counts(function.count) {
                    CountKind::Executions => format!("entered {}", grouped(count)),
                    CountKind::Ran => "ran".to_owned(),
                };
                format!("{entered}, lines {}/{}", lines.covered, lines.total)
            }
        }
    }

    fn write_instances(&self, index: usize, path: &str, sources: &Sources) -> io::Result<()> {
        let report = self.report;
        let definition = &report.definitions[index];
        let instances = &report.functions[definition.instances.clone()];
        let rows = instances.iter().enumerate().map(|(n, own)| {
            html! {
                tr {
                    th scope="row" {
                        (name_among(instances, n))
                        @if own.unused { " " span.tag { "not called" } }
                        @if own.mismatched { " " span.tag.bad { "counts lost" } }
                    }
                    @for (cell, column) in own.columns.iter().zip(&report.columns) { (count(*cell, column.counts)) }
                    (ratio(own.lines)) (ratio(own.branches)) (self.mcdc(own.mcdc))
                }
            }
        });
        let list = List::sorted("Instances", self.head(&["Instance"]), rows);
        let first = self.first(definition);
        let page = sources.line(Depth::Below, first.file, first.line);
        let hint = html! {
            p.path { a href=(page) { code { (report.files[first.file].path) ":" (first.line) } } }
            p.hint {
                (grouped(definition.ran as u64)) " of " (grouped(instances.len() as u64))
                " instances ran. Together they cover " (definition.lines.covered) " of " (definition.lines.total)
                " lines and " (definition.branches.covered) " of " (definition.branches.total) " branches."
                @if report.has_decisions { " The effect of " (definition.mcdc.covered) " of " (definition.mcdc.total) " conditions was shown." }
            }
        };
        let number = |page: usize, _| (page + 1).to_string();
        self.write_list(path, &definition.name, &hint, &list, number)
    }
}

/// The name of one of the instances of a template.
fn name_among(instances: &[FunctionCoverage], n: usize) -> Markup {
    let name = |n: usize| Some(instances.get(n)?.name.as_str());
    let previous = n.checked_sub(1).and_then(name);
    instance_name(previous, &instances[n].name, name(n + 1))
}
