//! The report as HTML pages, which need no server, network or fonts. Tables can be sorted if scripts are enabled. maud
//! escapes all text that comes from files and programs.

mod origin;
mod source_page;
mod widgets;

use super::baseline::Comparison;
use super::model::{Column, File, FunctionCoverage, Kernel, KernelState, Report};
use super::{paths, text};
use crate::console::Severity;
use crate::readable;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use origin::Origin;
use std::io;
use std::path::Path;
use widgets::{
    calls, card, count, footer, function_name, grouped, head, location, longest, notes, number,
    ratio, table, time, totals,
};

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/sort.js");

/// The directory of a page.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Top,
    /// The directory of the source pages.
    Files,
}

/// Writes all pages to a directory. The first page is `index.html`.
pub fn write(report: &Report, dir: &Path) -> io::Result<()> {
    let origin = Origin::find();
    let pages = Pages { report, origin };
    std::fs::write(dir.join("index.html"), pages.index().into_string())?;
    std::fs::write(dir.join("functions.html"), pages.functions().into_string())?;
    std::fs::create_dir(dir.join("files"))?;
    for (index, file) in report.files.iter().enumerate() {
        std::fs::write(
            dir.join(page_name(index, &file.path)),
            pages.file(file).into_string(),
        )?;
    }
    Ok(())
}

/// The path of a source file's page, relative to the directory of the report: its number, and its name with only those
/// characters that are safe in file systems and URLs.
fn page_name(index: usize, path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') {
            c
        } else {
            '_'
        }
    };
    let name: String = name.chars().take(60).map(plain).collect();
    format!("files/{index}-{name}.html")
}

struct Pages<'a> {
    report: &'a Report,
    origin: Origin,
}

impl Pages<'_> {
    fn page(&self, depth: Depth, title: &str, body: Markup) -> Markup {
        let top = if depth == Depth::Top { "" } else { "../" };
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta name="generator" content=(concat!("devprof ", env!("CARGO_PKG_VERSION")));
                    link rel="icon" href="data:,";
                    title { (title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    a.skip href="#main" { "Skip to the content" }
                    nav aria-label="Report" {
                        a.brand href=(format!("{top}index.html")) { "Device coverage" }
                        @match self.warnings() {
                            0 => {}
                            1 => a.warnings href=(format!("{top}index.html#notes")) { "1 warning" },
                            n => a.warnings href=(format!("{top}index.html#notes")) { (n) " warnings" },
                        }
                        a href=(format!("{top}index.html#kernels")) { "Kernels" }
                        a href=(format!("{top}index.html#files")) { "Files" }
                        a href=(format!("{top}functions.html")) { "Functions" }
                    }
                    main id="main" { (body) }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        }
    }

    fn warnings(&self) -> usize {
        let notes = self.report.notes.iter();
        notes.filter(|note| note.level == Severity::Warning).count()
    }

    fn index(&self) -> Markup {
        let report = self.report;
        let in_state = |states: &[KernelState]| -> Vec<&Kernel> {
            report
                .kernels
                .iter()
                .filter(|kernel| states.contains(&kernel.state))
                .collect()
        };
        let ran = in_state(&[
            KernelState::Covered,
            KernelState::NotInTrace,
            KernelState::NotCounted,
        ]);
        let not_instrumented = in_state(&[KernelState::NotInstrumented, KernelState::Runtime]);
        let never_ran = in_state(&[KernelState::NeverRan]);
        let title = format!("Coverage of {}", report.title);
        let body = html! {
            h1 { (title) }
            @if !report.notes.is_empty() { (notes(&report.notes)) }
            section.cards aria-label="Totals" {
                (card("Lines", report.device.lines, report.host.map(|host| host.lines)))
                (card("Branches", report.device.branches, report.host.map(|host| host.branches)))
                (card("Functions", report.device.functions, report.host.map(|host| host.functions)))
                (self.kernel_card(ran.len(), in_state(&[KernelState::NotInstrumented]).len(), never_ran.len()))
            }
            @if let Some(baseline) = &report.baseline { (self.changes(baseline)) }
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
                    (self.kernels("Kernels that ran", &ran))
                }
            }
            @if !not_instrumented.is_empty() {
                section id="not-instrumented" {
                    h2 { "Ran, but not instrumented" }
                    p.hint { "These kernels are in the trace, but their code has no coverage mapping. To include them, compile them with the flags of " code { "devprof flags --coverage" } ". Kernels that are part of HIP fill and copy memory." }
                    (self.not_instrumented("Kernels that ran and are not instrumented", &not_instrumented))
                }
            }
            @if !never_ran.is_empty() {
                section id="never-ran" {
                    h2 { "Instrumented, never ran" }
                    (self.never_ran("Instrumented kernels that never ran", &never_ran))
                }
            }
            section id="files" {
                h2 { "Files" }
                (self.files())
            }
            (footer(&self.origin))
        };
        self.page(Depth::Top, &title, body)
    }

    fn kernel_card(&self, ran: usize, not_instrumented: usize, never_ran: usize) -> Markup {
        let time: u64 = self
            .report
            .kernels
            .iter()
            .filter_map(|kernel| kernel.time)
            .fold(0, u64::saturating_add);
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

    /// What changed since an earlier report.
    fn changes(&self, baseline: &Comparison) -> Markup {
        let files: Vec<_> = self.report.files.iter().map(File::location).collect();
        let page = |path: &str| {
            let index = files.iter().position(|file| *file == path)?;
            Some(page_name(index, &self.report.files[index].path))
        };
        html! {
            section id="changes" {
                h2 { "Changes since " code { (baseline.path) } }
                p.hint { (text::points(&baseline.change)) }
                @if !baseline.files.is_empty() {
                    (table("Changed files", html! {
                        (head(&["File", "#Lines before", "#Lines now", "#Branches before", "#Branches now"]))
                        tbody {
                            @for file in &baseline.files {
                                tr {
                                    th scope="row" {
                                        @match page(&file.path) {
                                            Some(page) => a href=(page) { code { (file.path) } },
                                            None => code { (file.path) },
                                        }
                                    }
                                    (totals(file.before, |t| t.lines)) (totals(file.after, |t| t.lines))
                                    (totals(file.before, |t| t.branches)) (totals(file.after, |t| t.branches))
                                }
                            }
                        }
                    }))
                }
                @if !baseline.functions.is_empty() {
                    (table("Changed functions", html! {
                        (head(&["Function", "Change"]))
                        tbody {
                            @for function in &baseline.functions {
                                tr {
                                    th scope="row" {
                                        @let page = page(&function.path).map(|page| format!("{page}#L{}", function.line));
                                        (function_name(&function.name, page.as_deref()))
                                        @if function.kernel { " " span.tag { "kernel" } }
                                    }
                                    td { (function.change.text()) }
                                }
                            }
                        }
                    }))
                }
            }
        }
    }

    /// The traces, if there are several.
    fn traces(&self) -> Markup {
        html! {
            section id="traces" {
                h2 { "Processes" }
                (table("Processes", html! {
                    (head(&["Trace", "#Process", "#Calls", "#Total time"]))
                    tbody {
                        @for trace in &self.report.traces {
                            tr {
                                th scope="row" { code { (trace.path) } }
                                td.n { (trace.process) }
                                (number(trace.calls))
                                td.n data-v=(trace.time) { (readable::time(trace.time)) }
                            }
                        }
                    }
                }))
            }
        }
    }

    fn columns(&self) -> Markup {
        let row = |column: &Column| {
            html! {
                tr {
                    th scope="row" { (column.name) }
                    @if column.ran {
                        td { "ran" }
                        (number(column.code_objects as u64))
                        (ratio(column.totals.lines)) (ratio(column.totals.branches)) (ratio(column.totals.functions))
                    } @else {
                        td.off.location { "did not run" }
                        (number(column.code_objects as u64))
                        td.n.off data-v="-1" { "–" } td.n.off data-v="-1" { "–" } td.n.off data-v="-1" { "–" }
                    }
                }
            }
        };
        html! {
            section id="architectures" {
                h2 { "Architectures" }
                (table("Architectures", html! {
                    (head(&["Architecture", "", "#Code objects", "#Lines", "#Branches", "#Functions"]))
                    tbody { @for column in &self.report.columns { (row(column)) } }
                }))
            }
        }
    }

    fn link(&self, kernel: &Kernel) -> Markup {
        match kernel
            .function
            .map(|function| &self.report.functions[function])
        {
            Some(function) => self.function_link(Depth::Top, function),
            None => function_name(&kernel.name, None),
        }
    }

    fn function_link(&self, depth: Depth, function: &FunctionCoverage) -> Markup {
        let page = page_name(function.file, &self.report.files[function.file].path);
        let page = match depth {
            Depth::Top => page,
            Depth::Files => page.trim_start_matches("files/").to_owned(),
        };
        function_name(&function.name, Some(&format!("{page}#L{}", function.line)))
    }

    fn kernels(&self, caption: &str, kernels: &[&Kernel]) -> Markup {
        let traced = self.report.traced;
        let max = longest(kernels);
        let mut headings = vec!["Kernel"];
        if traced {
            headings.extend(["#Calls", "#Total time"]);
        }
        headings.extend(["#Lines", "#Branches", "#Threads"]);
        table(
            caption,
            html! {
                (head(&headings))
                tbody {
                    @for kernel in kernels {
                        @let function = kernel.function.map(|function| &self.report.functions[function]);
                        tr {
                            th scope="row" {
                                (self.link(kernel))
                                @if kernel.state == KernelState::NotInTrace { " " span.tag { "not in the trace" } }
                                @if kernel.state == KernelState::NotCounted { " " span.tag.bad { "no counts" } }
                            }
                            @if traced { (calls(kernel)) (time(kernel, max)) }
                            (ratio(function.map(|f| f.lines).unwrap_or_default()))
                            (ratio(function.map(|f| f.branches).unwrap_or_default()))
                            (number(function.and_then(|f| f.count).unwrap_or(0)))
                        }
                    }
                }
            },
        )
    }

    fn not_instrumented(&self, caption: &str, kernels: &[&Kernel]) -> Markup {
        let max = longest(kernels);
        table(
            caption,
            html! {
                (head(&["Kernel", "#Calls", "#Total time"]))
                tbody {
                    @for kernel in kernels {
                        tr {
                            th scope="row" {
                                (self.link(kernel))
                                @if kernel.state == KernelState::Runtime { " " span.tag { "part of HIP" } }
                            }
                            (calls(kernel)) (time(kernel, max))
                        }
                    }
                }
            },
        )
    }

    fn never_ran(&self, caption: &str, kernels: &[&Kernel]) -> Markup {
        let function = |kernel: &Kernel| {
            kernel
                .function
                .map(|function| &self.report.functions[function])
        };
        table(
            caption,
            html! {
                (head(&["Kernel", "File", "#Lines"]))
                tbody {
                    @for (kernel, function) in kernels.iter().filter_map(|kernel| Some((kernel, function(kernel)?))) {
                        tr {
                            th scope="row" { (self.link(kernel)) }
                            td { (location(self.report, function)) }
                            (number(function.lines.total))
                        }
                    }
                }
            },
        )
    }

    fn files(&self) -> Markup {
        let report = self.report;
        let has_host = report.host.is_some();
        let mut headings = vec!["File", "#Lines", "#Branches", "#Functions"];
        if has_host {
            headings.extend(["#Host lines", "#Host branches"]);
        }
        let prefix = paths::common_directory(report.files.iter().map(|file| &*file.path));
        html! {
            @if !prefix.is_empty() { p.hint { "In " code { (prefix) } } }
            (table("Files", html! {
                (head(&headings))
                tbody {
                    @for (index, file) in report.files.iter().enumerate() {
                        tr {
                            th scope="row" {
                                a href=(page_name(index, &file.path)) { code { (&file.path[prefix.len()..]) } }
                                @if file.source.missing.is_some() { " " span.tag.bad { "source missing" } }
                                @if file.source.changed_since { " " span.tag.bad { "changed" } }
                            }
                            (totals(file.device, |t| t.lines)) (totals(file.device, |t| t.branches))
                            (totals(file.device, |t| t.functions))
                            @if has_host { (totals(file.host, |t| t.lines)) (totals(file.host, |t| t.branches)) }
                        }
                    }
                }
            }))
        }
    }

    fn functions(&self) -> Markup {
        let report = self.report;
        let mut headings = vec!["Function", "Location"];
        let columns: Vec<String> = report
            .columns
            .iter()
            .map(|column| format!("#{}", column.name))
            .collect();
        headings.extend(columns.iter().map(String::as_str));
        headings.extend(["#Lines", "#Branches"]);
        let body = html! {
            h1 { "Functions" }
            p.hint { "How often each function was entered, counted per thread. Each instance of a template is listed separately." }
            (table("Functions", html! {
                (head(&headings))
                tbody {
                    @for function in &report.functions {
                        tr {
                            th scope="row" {
                                (self.function_link(Depth::Top, function))
                                @if function.kernel { " " span.tag { "kernel" } }
                                @if function.unused { " " span.tag { "not called" } }
                                @if function.mismatched { " " span.tag.bad { "counts lost" } }
                            }
                            td { (location(report, function)) }
                            @for cell in &function.columns { (count(*cell)) }
                            (ratio(function.lines)) (ratio(function.branches))
                        }
                    }
                }
            }))
            (footer(&self.origin))
        };
        self.page(Depth::Top, "Functions", body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_names_are_safe_for_any_path() {
        assert_eq!(
            page_name(3, "/src/a b/../<x>&\"'#?%.hip"),
            "files/3-_x_______.hip.html"
        );
        assert_eq!(page_name(0, ".."), "files/0-...html");
        assert!(page_name(1, &"é".repeat(300)).len() < 100);
    }
}
