//! The report as HTML pages, which need no server, network or fonts. Tables can be sorted if scripts are enabled. maud
//! escapes all text that comes from files and programs.

mod census;
mod decision;
mod functions;
mod list;
mod origin;
mod pages;
mod source_page;
mod view;
mod widgets;

use super::model::{Comparison, CountKind, FunctionCoverage, Kernel, KernelState, Ratio, Report};
use super::{paths, text};
use crate::readable;
use list::List;
use maud::{Markup, html};
use origin::Origin;
use pages::{Depth, Pages, page_name};
use source_page::Sources;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use widgets::{
    calls, card, function_name, grouped, head, location, longest, notes, number, ratio, time,
    totals,
};

/// Writes all pages to a directory. The first page is `index.html`.
pub fn write(report: &Report, dir: &Path) -> io::Result<()> {
    let origin = Origin::find();
    let pages = Pages {
        report,
        origin,
        dir,
    };
    if !report.has_coverage() {
        return pages.write_census();
    }
    let sources = pages.write_sources()?;
    pages.write_functions(&sources)?;
    pages.write_index(&sources)
}

impl Pages<'_> {
    fn write_index(&self, sources: &Sources) -> io::Result<()> {
        let report = self.report;
        let ran = self.in_states(&[
            KernelState::Covered,
            KernelState::NotInTrace,
            KernelState::NotCounted,
            KernelState::Ambiguous,
        ]);
        let not_instrumented =
            self.in_states(&[KernelState::NotInstrumented, KernelState::Runtime]);
        let mut never_ran = self.in_states(&[KernelState::NeverRan]);
        never_ran.retain(|kernel| kernel.function.is_some());
        let title = report.heading();
        let body = html! {
            h1 { (title) }
            @if !report.notes.is_empty() { (notes(&report.notes)) }
            section.cards aria-label="Totals" {
                (card("Lines", report.device.lines, report.host.map(|host| host.lines)))
                (card("Branches", report.device.branches, report.host.map(|host| host.branches)))
                (card("Functions", report.device.functions, report.host.map(|host| host.functions)))
                @if report.has_decisions { (card("MC/DC", report.device.mcdc, report.host.map(|host| host.mcdc))) }
                (self.kernel_card(ran.iter().filter(|own| own.state != KernelState::Ambiguous).count(), self.in_states(&[KernelState::NotInstrumented]).len(), never_ran.len()))
            }
            @if let Some(baseline) = &report.baseline { (self.changes(baseline, sources)?) }
            @if report.columns.len() > 1 { (self.columns()) }
            @if report.traces.len() > 1 { (self.traces()) }
            section id="kernels" {
                h2 { "Kernels" }
                @if ran.is_empty() {
                    p.none { "No instrumented kernel ran." }
                } @else {
                    p.hint {
                        @if report.traced { "Sorted by time spent and coverage missing." }
                        @else { "Sorted by code that never ran. A trace (" code { "--trace" } ") adds calls and times." }
                        " Coverage includes only the kernel’s own lines, not the functions that it calls."
                    }
                    (self.kernels(&ran, sources)?)
                }
            }
            @if !not_instrumented.is_empty() {
                section id="not-instrumented" {
                    h2 { "Ran, but not instrumented" }
                    p.hint { "These kernels are in the trace, but their code has no coverage mapping. To include them, compile them with the flags of " code { "devprof flags --coverage" } ". Kernels that are part of HIP fill and copy memory." }
                    (self.traced("not-instrumented.html", "Kernels that ran and are not instrumented", &not_instrumented)?)
                }
            }
            @if !never_ran.is_empty() {
                section id="never-ran" {
                    h2 { "Instrumented, never ran" }
                    (self.never_ran(&never_ran, sources)?)
                }
            }
            (self.never_ran_in_binaries()?)
            section id="files" {
                h2 { "Files" }
                (self.files()?)
            }
        };
        self.write("index.html", &title, body)
    }

    fn kernel_card(&self, ran: usize, not_instrumented: usize, never_ran: usize) -> Markup {
        let times = self.report.kernels.iter().filter_map(|kernel| kernel.time);
        let time = times.fold(0, u64::saturating_add);
        html! {
            div.card {
                h2 { "Kernels" }
                p.big { (grouped(ran as u64)) span.of { " ran" } }
                p.small {
                    @if self.report.traced { (readable::time(time)) " in all" }
                    @if not_instrumented > 0 { br; a href="#not-instrumented" { (not_instrumented) " not instrumented" } }
                    @if never_ran > 0 { br; a href="#never-ran" { (never_ran) " never ran" } }
                }
            }
        }
    }

    fn changes(&self, baseline: &Comparison, sources: &Sources) -> io::Result<Markup> {
        let files = self.report.files.iter().enumerate();
        let files: HashMap<&str, usize> = files.map(|(n, file)| (file.location(), n)).collect();
        let has_mcdc = self.report.has_decisions;
        let file_rows = baseline.files.iter().map(|file| {
            html! {
                tr {
                    th scope="row" {
                        @match files.get(file.path.as_str()) {
                            Some(&index) => a href=(page_name(index, &self.report.files[index].path)) { code { (file.path) } },
                            None => code { (file.path) },
                        }
                    }
                    (totals(file.before, |t| t.lines)) (totals(file.after, |t| t.lines))
                    (totals(file.before, |t| t.branches)) (totals(file.after, |t| t.branches))
                    @if has_mcdc { (totals(file.before, |t| t.mcdc)) (totals(file.after, |t| t.mcdc)) }
                }
            }
        });
        let counts = [
            "#Lines before",
            "#Lines now",
            "#Branches before",
            "#Branches now",
        ];
        let mcdc = if has_mcdc {
            &["#MC/DC before", "#MC/DC now"][..]
        } else {
            &[]
        };
        let headings = head(&[&["File"], &counts[..], mcdc].concat());
        let changed_files = List::sorted("Changed files", headings, file_rows);
        let function_rows = baseline.functions.iter().map(|function| {
            let file = files.get(function.path.as_str());
            let page = file.map(|&file| sources.line(Depth::Top, file, function.line));
            html! {
                tr {
                    th scope="row" {
                        (function_name(&function.name, page.as_deref()))
                        @if function.kernel { " " span.tag { "kernel" } }
                    }
                    td { (function.change.text()) }
                }
            }
        });
        let headings = head(&["Function", "Change"]);
        let functions = List::sorted("Changed functions", headings, function_rows);
        let none = html! {};
        Ok(html! {
            section id="changes" {
                h2 { "Changes since " code { (baseline.path) } }
                p.hint { (text::points(&baseline.change)) }
                @if !baseline.files.is_empty() { (self.part("changed-files.html", &none, &changed_files)?) }
                @if !baseline.functions.is_empty() { (self.part("changed-functions.html", &none, &functions)?) }
            }
        })
    }

    /// The traces, if there are several.
    fn traces(&self) -> Markup {
        let rows = self.report.traces.iter().map(|trace| {
            html! {
                tr {
                    th scope="row" { code { (trace.path) } }
                    td.n { (trace.process) }
                    (number(trace.calls))
                    td.n data-v=(trace.time) { (readable::time(trace.time)) }
                }
            }
        });
        let head = head(&["Trace", "#Process", "#Calls", "#Total time"]);
        let list = List::sorted("Processes", head, rows);
        html! { section id="traces" { h2 { "Processes" } (list.complete()) } }
    }

    fn columns(&self) -> Markup {
        let mut names = vec!["Architecture", "", "#Code objects", "#Lines", "#Branches"];
        names.extend(self.mcdc_heading());
        names.push("#Functions");
        let rows = self.report.columns.iter().map(|column| {
            html! {
                tr {
                    th scope="row" { (column.name) }
                    @if column.ran {
                        td { "ran" }
                        (number(column.code_objects as u64))
                        (ratio(column.totals.lines)) (ratio(column.totals.branches)) (self.mcdc(column.totals.mcdc)) (ratio(column.totals.functions))
                    } @else {
                        td.off.location { "did not run" }
                        (number(column.code_objects as u64))
                        @for _ in 0..names.len() - 3 { td.n.off data-v="-1" { "–" } }
                    }
                }
            }
        });
        let list = List::sorted("Architectures", head(&names), rows);
        html! { section id="architectures" { h2 { "Architectures" } (list.complete()) } }
    }

    /// The heading of the column with MC/DC, if the code was compiled for it.
    fn mcdc_heading(&self) -> Option<&'static str> {
        self.report.has_decisions.then_some("#MC/DC")
    }

    /// A cell of this column.
    fn mcdc(&self, own: Ratio) -> Markup {
        html! { @if self.report.has_decisions { (ratio(own)) } }
    }

    /// The name of a kernel, and its function.
    fn link(&self, kernel: &Kernel, sources: &Sources) -> Markup {
        let function = self.function(kernel);
        let page = function.map(|own| sources.line(Depth::Top, own.file, own.line));
        function_name(&kernel.name, page.as_deref())
    }

    fn function(&self, kernel: &Kernel) -> Option<&FunctionCoverage> {
        let function = kernel.function?;
        self.report.functions.get(function)
    }

    fn kernels(&self, kernels: &[&Kernel], sources: &Sources) -> io::Result<Markup> {
        let traced = self.report.traced;
        let max = longest(kernels);
        let mut headings = vec!["Kernel"];
        if traced {
            headings.extend(["#Calls", "#Total time"]);
        }
        headings.extend(["#Lines", "#Branches"]);
        headings.extend(self.mcdc_heading());
        let counts_threads = self.report.device_counts == CountKind::Executions;
        if counts_threads {
            headings.push("#Threads");
        }
        let rows = kernels.iter().map(|kernel| {
            let function = self.function(kernel);
            html! {
                tr {
                    th scope="row" {
                        (self.link(kernel, sources))
                        @if kernel.state == KernelState::NotInTrace { " " span.tag { "not in the trace" } }
                        @if kernel.state == KernelState::NotCounted { " " span.tag.bad { "no counts" } }
                    }
                    @if traced { (calls(kernel)) (time(kernel, max)) }
                    (ratio(function.map(|own| own.lines).unwrap_or_default()))
                    (ratio(function.map(|own| own.branches).unwrap_or_default()))
                    (self.mcdc(function.map(|own| own.mcdc).unwrap_or_default()))
                    @if counts_threads { (number(function.and_then(|f| f.count).unwrap_or(0))) }
                }
            }
        });
        let list = List::sorted("Kernels that ran", head(&headings), rows);
        self.part("kernels.html", &html! {}, &list)
    }

    fn never_ran(&self, kernels: &[&Kernel], sources: &Sources) -> io::Result<Markup> {
        let rows = kernels.iter().filter_map(|kernel| {
            let function = self.function(kernel)?;
            Some(html! {
                tr {
                    th scope="row" { (self.link(kernel, sources)) }
                    td { (location(self.report, function)) }
                    (number(function.lines.total))
                }
            })
        });
        let caption = "Instrumented kernels that never ran";
        let list = List::sorted(caption, head(&["Kernel", "File", "#Lines"]), rows);
        self.part("never-ran.html", &html! {}, &list)
    }

    fn files(&self) -> io::Result<Markup> {
        let report = self.report;
        let has_host = report.host.is_some();
        let mut headings = vec!["File", "#Lines", "#Branches"];
        headings.extend(self.mcdc_heading());
        headings.push("#Functions");
        if has_host {
            headings.extend(["#Host lines", "#Host branches"]);
            if report.has_decisions {
                headings.push("#Host MC/DC");
            }
        }
        let prefix = paths::common_directory(report.files.iter().map(|file| &*file.path));
        let rows = report.files.iter().enumerate().map(|(index, file)| {
            html! {
                tr {
                    th scope="row" {
                        a href=(page_name(index, &file.path)) { code { (&file.path[prefix.len()..]) } }
                        @if file.source.missing.is_some() { " " span.tag.bad { "source missing" } }
                        @if file.source.changed_since { " " span.tag.bad { "changed" } }
                    }
                    (totals(file.device, |t| t.lines)) (totals(file.device, |t| t.branches))
                    @if report.has_decisions { (totals(file.device, |t| t.mcdc)) }
                    (totals(file.device, |t| t.functions))
                    @if has_host {
                        (totals(file.host, |t| t.lines)) (totals(file.host, |t| t.branches))
                        @if report.has_decisions { (totals(file.host, |t| t.mcdc)) }
                    }
                }
            }
        });
        let list = List::sorted("Files", head(&headings), rows);
        let hint = html! {
            @if !prefix.is_empty() { p.hint { "In " code { (prefix) } } }
        };
        let table = self.part("files.html", &hint, &list)?;
        Ok(html! { (hint) (table) })
    }
}
