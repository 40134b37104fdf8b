//! The report as pages that need nothing but themselves: no server, no network, no fonts. Tables can be sorted where
//! scripts run, and are in their most useful order where not. What comes from files and programs is escaped by maud.

use super::model::{
    Cell, Column, File, Kernel, Level, Line, Listed, Note, Ratio, Report, Site, State, Totals,
};
use crate::readable;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::io;
use std::path::Path;

const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/sort.js");

/// Where a page stands among the others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Top,
    /// In the directory of the sources' pages.
    Files,
}

/// Writes all pages into a directory. They begin at `index.html`.
pub fn write(report: &Report, dir: &Path) -> io::Result<()> {
    let pages = Pages { report };
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

/// A page's path from the top: the file's own name as far as it fits every file system and address, and its number.
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
}

impl Pages<'_> {
    fn page(&self, at: At, title: &str, body: Markup) -> Markup {
        let top = if at == At::Top { "" } else { "../" };
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
        notes.filter(|note| note.level == Level::Warning).count()
    }

    fn index(&self) -> Markup {
        let report = self.report;
        let of = |states: &[State]| -> Vec<&Kernel> {
            report
                .kernels
                .iter()
                .filter(|kernel| states.contains(&kernel.state))
                .collect()
        };
        let ran = of(&[State::Covered, State::NotInTrace, State::NotCounted]);
        let plain = of(&[State::NotInstrumented, State::Runtime]);
        let never = of(&[State::NeverRan]);
        let title = format!("Coverage of {}", report.title);
        let body = html! {
            h1 { (title) }
            @if !report.notes.is_empty() { (notes(&report.notes)) }
            section.cards aria-label="Totals" {
                (card("Lines", report.device.lines, report.host.map(|host| host.lines)))
                (card("Branches", report.device.branches, report.host.map(|host| host.branches)))
                (card("Functions", report.device.functions, report.host.map(|host| host.functions)))
                (self.kernel_card(ran.len(), of(&[State::NotInstrumented]).len(), never.len()))
            }
            @if report.columns.len() > 1 { (self.columns()) }
            section id="kernels" {
                h2 { "Kernels" }
                @if ran.is_empty() {
                    p.none { "No instrumented kernel ran." }
                } @else {
                    p.hint {
                        @if report.traced { "First those that spent the most time and are covered the least." }
                        @else { "First those with the most code that never ran. A trace (" code { "--trace" } ") adds calls and times." }
                        " Coverage is of the kernel’s own lines, without the functions it calls."
                    }
                    (self.kernels("Kernels that ran", &ran))
                }
            }
            @if !plain.is_empty() {
                section id="not-instrumented" {
                    h2 { "Ran, but not instrumented" }
                    p.hint { "In the trace, in code without a coverage mapping: to have it here, compile it with the coverage flags, too. HIP’s own fill and copy memory." }
                    (self.uncounted("Kernels that ran and are not instrumented", &plain))
                }
            }
            @if !never.is_empty() {
                section id="never-ran" {
                    h2 { "Instrumented, never ran" }
                    (self.never("Instrumented kernels that never ran", &never))
                }
            }
            section id="files" {
                h2 { "Files" }
                (self.files())
            }
            (footer())
        };
        self.page(At::Top, &title, body)
    }

    fn kernel_card(&self, ran: usize, plain: usize, never: usize) -> Markup {
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
                    @if plain > 0 { br; a href="#not-instrumented" { (plain) " not instrumented" } }
                    @if never > 0 { br; a href="#never-ran" { (never) " never ran" } }
                }
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
                        td.off.place { "did not run" }
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
            Some(function) => self.function_link(At::Top, function),
            None => html! { code { (kernel.name) } },
        }
    }

    fn function_link(&self, at: At, function: &Listed) -> Markup {
        let page = page_name(function.file, &self.report.files[function.file].path);
        let page = match at {
            At::Top => page,
            At::Files => page.trim_start_matches("files/").to_owned(),
        };
        html! { a href=(format!("{page}#L{}", function.line)) { code { (function.name) } } }
    }

    fn kernels(&self, caption: &str, kernels: &[&Kernel]) -> Markup {
        let traced = self.report.traced;
        let all = longest(kernels);
        let mut heads = vec!["Kernel"];
        if traced {
            heads.extend(["#Calls", "#Total time"]);
        }
        heads.extend(["#Lines", "#Branches", "#Threads"]);
        table(
            caption,
            html! {
                (head(&heads))
                tbody {
                    @for kernel in kernels {
                        @let function = kernel.function.map(|function| &self.report.functions[function]);
                        tr {
                            th scope="row" {
                                (self.link(kernel))
                                @if kernel.state == State::NotInTrace { " " span.tag { "not in the trace" } }
                                @if kernel.state == State::NotCounted { " " span.tag.bad { "nothing counted" } }
                            }
                            @if traced { (calls(kernel)) (time(kernel, all)) }
                            (ratio(function.map(|f| f.lines).unwrap_or_default()))
                            (ratio(function.map(|f| f.branches).unwrap_or_default()))
                            (number(function.and_then(|f| f.count).unwrap_or(0)))
                        }
                    }
                }
            },
        )
    }

    fn uncounted(&self, caption: &str, kernels: &[&Kernel]) -> Markup {
        let all = longest(kernels);
        table(
            caption,
            html! {
                (head(&["Kernel", "#Calls", "#Total time"]))
                tbody {
                    @for kernel in kernels {
                        tr {
                            th scope="row" {
                                (self.link(kernel))
                                @if kernel.state == State::Runtime { " " span.tag { "HIP’s own" } }
                            }
                            (calls(kernel)) (time(kernel, all))
                        }
                    }
                }
            },
        )
    }

    fn never(&self, caption: &str, kernels: &[&Kernel]) -> Markup {
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
                            td { (place(self.report, function)) }
                            (number(function.lines.total))
                        }
                    }
                }
            },
        )
    }

    fn files(&self) -> Markup {
        let report = self.report;
        let beside = report.host.is_some();
        let mut heads = vec!["File", "#Lines", "#Branches", "#Functions"];
        if beside {
            heads.extend(["#Host lines", "#Host branches"]);
        }
        let prefix = common_directory(report);
        html! {
            @if !prefix.is_empty() { p.hint { "In " code { (prefix) } } }
            (table("Files", html! {
                (head(&heads))
                tbody {
                    @for (index, file) in report.files.iter().enumerate() {
                        tr {
                            th scope="row" {
                                a href=(page_name(index, &file.path)) { code { (&file.path[prefix.len()..]) } }
                                @if file.source.missing.is_some() { " " span.tag.bad { "source missing" } }
                                @if file.source.changed_since { " " span.tag.bad { "changed since" } }
                            }
                            (totals(file.device, |t| t.lines)) (totals(file.device, |t| t.branches))
                            (totals(file.device, |t| t.functions))
                            @if beside { (totals(file.host, |t| t.lines)) (totals(file.host, |t| t.branches)) }
                        }
                    }
                }
            }))
        }
    }

    fn functions(&self) -> Markup {
        let report = self.report;
        let mut heads = vec!["Function", "Place"];
        let columns: Vec<String> = report
            .columns
            .iter()
            .map(|column| format!("#{}", column.name))
            .collect();
        heads.extend(columns.iter().map(String::as_str));
        heads.extend(["#Lines", "#Branches"]);
        let body = html! {
            h1 { "Functions" }
            p.hint { "How often each was entered, every thread for itself. A template’s instances stand for themselves." }
            (table("Functions", html! {
                (head(&heads))
                tbody {
                    @for function in &report.functions {
                        tr {
                            th scope="row" {
                                (self.function_link(At::Top, function))
                                @if function.kernel { " " span.tag { "kernel" } }
                                @if function.unused { " " span.tag { "not called" } }
                            }
                            td { (place(report, function)) }
                            @for cell in &function.columns { (count(*cell)) }
                            (ratio(function.lines)) (ratio(function.branches))
                        }
                    }
                }
            }))
            (footer())
        };
        self.page(At::Top, "Functions", body)
    }

    fn file(&self, file: &File) -> Markup {
        let report = self.report;
        let own = report
            .functions
            .iter()
            .filter(|function| report.files[function.file].path == file.path);
        let own: Vec<&Listed> = own.collect();
        let name = file.path.rsplit('/').next().unwrap_or_default();
        // Columns in which this file has code; the sum where there are several to add.
        let shown: Vec<usize> = (0..report.columns.len())
            .filter(|&column| file.lines.iter().any(|line| is_known(line, column)))
            .collect();
        let added = shown
            .iter()
            .filter(|&&column| report.columns[column].ran && !report.columns[column].host)
            .count();
        let view = View {
            report,
            file,
            shown,
            sum: added > 1,
        };
        let body = html! {
            h1 { (name) }
            p.path { code { (file.path) } }
            @if let Some(why) = &file.source.missing {
                p.warning { "The source cannot be read (" (why) "): lines are shown without their text. Say where it is: "
                    code { "--sources-from DIR" } " or " code { "--path-map FROM=TO" } "." }
            }
            @if let Some(from) = &file.source.read_from { p.hint { "Read from " code { (from.display()) } } }
            @if file.source.changed_since {
                p.warning { "This file was changed after the program was made: counts may stand beside other lines than were compiled." }
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
                                        (self.function_link(At::Files, function))
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
            (footer())
        };
        self.page(At::Files, &format!("{name} – coverage"), body)
    }
}

/// Whether a column says something of a line. One that did not run does where no other has code.
fn is_known(line: &Line, column: usize) -> bool {
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

/// A file's lines beside their counts.
struct View<'a> {
    report: &'a Report,
    file: &'a File,
    /// The columns in which the file has code.
    shown: Vec<usize>,
    /// Whether there is a column for the sum of the architectures.
    sum: bool,
}

/// How a line looks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    Hit,
    Miss,
    /// It ran, and a condition on it never had one of its values.
    Part,
    /// Only for architectures that did not run.
    Off,
}

impl Look {
    fn class(self) -> &'static str {
        match self {
            Look::Hit => "hit",
            Look::Miss => "miss",
            Look::Part => "part",
            Look::Off => "off",
        }
    }
}

impl View<'_> {
    fn look(&self, line: &Line) -> Look {
        let host = self.report.columns.iter().position(|column| column.host);
        let on_host = || match line.columns[host?] {
            Some(Cell::Count(count)) => Some(count),
            _ => None,
        };
        let missed = |site: &Site| {
            let counts = site.device.or_else(|| site.columns[host?]);
            counts.is_some_and(|(taken, not)| (taken == 0) != (not == 0))
        };
        match line.device.or_else(on_host) {
            None => Look::Off,
            Some(0) => Look::Miss,
            Some(_) if line.branches.iter().any(missed) => Look::Part,
            Some(_) => Look::Hit,
        }
    }

    /// Links to the parts that never ran.
    fn uncovered(&self) -> Markup {
        let mut spans: Vec<(u32, u32)> = Vec::new();
        let mut last_was_missed = false;
        for line in &self.file.lines {
            let missed = self.look(line) == Look::Miss;
            match spans.last_mut() {
                Some(span) if missed && last_was_missed => span.1 = line.number,
                _ if missed => spans.push((line.number, line.number)),
                _ => {}
            }
            last_was_missed = missed;
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
        // A mapping of a hostile or damaged file may name any line.
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
                label.toggle { input type="checkbox" id="branches"; " Conditions that were both true and false, too" }
            }
            (table_of("source", "Source", html! {
                thead {
                    tr {
                        th.n scope="col" { "Line" }
                        @if self.sum { th.n scope="col" { "all" } }
                        @for &column in &self.shown { th.n scope="col" { (self.report.columns[column].name) } }
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
                p.warning { "The mapping names line " (last) " of " (rows) ": this is not the source that was compiled." }
            }
            @if host { p.hint { "Colours are of the devices where they have code, else of the host." } }
        }
    }

    fn line(&self, number: usize, line: Option<&Line>, text: &str) -> Markup {
        let class = line.map_or("", |line| self.look(line).class());
        html! {
            tr class=(class) id=(format!("L{number}")) {
                th.n scope="row" { a href=(format!("#L{number}")) { (number) } }
                @if self.sum { (count(line.and_then(|line| line.device).map(Cell::Count))) }
                @for &column in &self.shown { (count(line.filter(|line| is_known(line, column)).and_then(|line| line.columns[column]))) }
                td.src { code { (text) } }
            }
            @for site in line.map(|line| &line.branches[..]).unwrap_or_default() {
                (self.site(number, site, text))
            }
        }
    }

    fn site(&self, number: usize, site: &Site, text: &str) -> Markup {
        let condition = condition(number, site, text);
        let mut counts = site.columns.iter().copied().chain([site.device]).flatten();
        // A line that never ran says it all.
        let telling = counts.any(|(taken, not)| (taken == 0) != (not == 0));
        html! {
            tr class=(if telling { "br" } else { "br usual" }) {
                td {}
                @if self.sum { (sides(site.device)) }
                @for &column in &self.shown { (sides(site.columns[column])) }
                td.src {
                    span.what { "true / false " }
                    @if condition.is_empty() { "column " (site.column) } @else { code { (condition) } }
                }
            }
        }
    }
}

/// The text of a condition that begins on a line, as far as it is on it. Columns count bytes.
fn condition<'a>(number: usize, site: &Site, text: &'a str) -> &'a str {
    let start = site.column.saturating_sub(1) as usize;
    let end = match site.end.0 as usize == number {
        true => site.end.1.saturating_sub(1) as usize,
        false => text.len(),
    };
    text.get(start..end.min(text.len()))
        .unwrap_or_default()
        .trim()
}

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

fn notes(notes: &[Note]) -> Markup {
    html! {
        section.notes id="notes" aria-label="Notes" {
            @for note in notes {
                div class=(match note.level { Level::Warning => "warning", Level::Note => "note" }) {
                    p { (words(&note.text)) }
                    @if !note.items.is_empty() {
                        details {
                            summary { (note.items.len()) @if note.items.len() == 1 { " item" } @else { " items" } }
                            ul { @for item in &note.items { li { code { (item) } } } }
                        }
                    }
                }
            }
        }
    }
}

/// A text in which `this` is code.
fn words(text: &str) -> Markup {
    html! {
        @for (n, part) in text.split('`').enumerate() {
            @if n % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn card(title: &str, device: Ratio, host: Option<Ratio>) -> Markup {
    html! {
        div.card {
            h2 { (title) }
            p.big { (percent(device)) }
            (bar(device))
            p.small {
                (grouped(device.covered)) " of " (grouped(device.total))
                @if let Some(host) = host.filter(|host| host.total > 0) { br; "host " (percent(host)) ", " (grouped(host.covered)) " of " (grouped(host.total)) }
            }
        }
    }
}

fn place(report: &Report, function: &Listed) -> Markup {
    let path = &report.files[function.file].path;
    let name = path.rsplit('/').next().unwrap_or_default();
    html! { code.place { (name) ":" (function.line) } }
}

/// The directory that all files are in, with the slash behind it.
fn common_directory(report: &Report) -> &str {
    let mut paths = report.files.iter().map(|file| &*file.path);
    let first = paths.next().unwrap_or_default();
    let directory = |path: &str| path.rfind('/').map_or(0, |slash| slash + 1);
    let mut length = directory(first);
    for path in paths {
        let same = first
            .bytes()
            .zip(path.bytes())
            .take_while(|(a, b)| a == b)
            .count();
        length = length.min(
            first.as_bytes()[..same]
                .iter()
                .rposition(|&byte| byte == b'/')
                .map_or(0, |slash| slash + 1),
        );
    }
    &first[..length]
}

/// A table that scrolls by itself where the window is narrow.
fn table(caption: &str, rows: Markup) -> Markup {
    table_of("sorted", caption, rows)
}

fn table_of(class: &str, caption: &str, rows: Markup) -> Markup {
    html! {
        div.scroll role="region" aria-label=(caption) tabindex="0" {
            table class=(class) { caption { (caption) } (rows) }
        }
    }
}

/// Heads of columns; those of numbers begin with #.
fn head(names: &[&str]) -> Markup {
    html! {
        thead {
            tr {
                @for name in names {
                    @match name.strip_prefix('#') {
                        Some(name) => th.n scope="col" { (name) },
                        None if name.is_empty() => th scope="col" { span.hidden { "State" } },
                        None => th scope="col" { (name) },
                    }
                }
            }
        }
    }
}

fn number(n: u64) -> Markup {
    html! { td.n data-v=(n) { (grouped(n)) } }
}

fn count(cell: Option<Cell>) -> Markup {
    match cell {
        Some(Cell::Count(count)) => html! { td.n data-v=(count) { (grouped(count)) } },
        Some(Cell::NotRun(_)) => html! { td.n.off data-v="-1" { "not run" } },
        None => html! { td.n data-v="-2" {} },
    }
}

fn calls(kernel: &Kernel) -> Markup {
    number(kernel.calls.unwrap_or(0))
}

fn time(kernel: &Kernel, most: u64) -> Markup {
    let time = kernel.time.unwrap_or(0);
    html! {
        td.n.bars data-v=(time) {
            span.weight style=(format!("--p:{:.1}%", 100.0 * time as f64 / most as f64)) {}
            (readable::time(time))
            @if kernel.untimed > 0 { span.small { " (" (kernel.untimed) " without times)" } }
        }
    }
}

fn totals(totals: Option<Totals>, which: impl Fn(Totals) -> Ratio) -> Markup {
    match totals {
        Some(totals) => ratio(which(totals)),
        None => html! { td.n data-v="-1" { "–" } },
    }
}

fn ratio(ratio: Ratio) -> Markup {
    let Some(percent_of) = ratio.percent() else {
        return html! { td.n data-v="-1" { "–" } };
    };
    html! {
        td.n.bars data-v=(format!("{percent_of:.4}")) {
            (bar(ratio))
            span.pct { (percent(ratio)) }
            span.frac { (grouped(ratio.covered)) "/" (grouped(ratio.total)) }
        }
    }
}

fn bar(ratio: Ratio) -> Markup {
    let part = ratio.percent().unwrap_or(0.0);
    let class = match part {
        full if full >= 100.0 => "bar full",
        good if good >= 75.0 => "bar good",
        fair if fair >= 40.0 => "bar fair",
        _ => "bar poor",
    };
    html! { span class=(class) style=(format!("--p:{part:.1}%")) aria-hidden="true" {} }
}

/// Rounded down, so that only all is 100 %, and something never 0.
pub fn percent(ratio: Ratio) -> String {
    match ratio.percent() {
        None => "–".to_owned(),
        Some(100.0) => "100 %".to_owned(),
        Some(part) if part > 0.0 => format!("{:.1} %", ((part * 10.0).floor() / 10.0).max(0.1)),
        Some(_) => "0 %".to_owned(),
    }
}

/// The most time that one of them took: what their bars are parts of.
fn longest(kernels: &[&Kernel]) -> u64 {
    let times = kernels.iter().filter_map(|kernel| kernel.time);
    times.max().unwrap_or(0).max(1)
}

/// Digits in threes, with narrow spaces that do not break.
fn grouped(n: u64) -> String {
    readable::grouped(n.into(), '\u{202f}')
}

fn footer() -> Markup {
    html! { footer { "Made by devprof " (env!("CARGO_PKG_VERSION")) "." } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_all_is_all_and_something_is_never_nothing() {
        let of = |covered, total| percent(Ratio { covered, total });
        assert_eq!(of(9999, 10000), "99.9 %");
        assert_eq!(of(1, 10000), "0.1 %");
        assert_eq!(
            (of(7, 7), of(0, 7), of(0, 0)),
            ("100 %".into(), "0 %".into(), "–".into())
        );
    }

    #[test]
    fn pages_have_names_that_no_path_can_bend() {
        assert_eq!(
            page_name(3, "/src/a b/../<x>&\"'#?%.hip"),
            "files/3-_x_______.hip.html"
        );
        assert_eq!(page_name(0, ".."), "files/0-...html");
        assert!(page_name(1, &"é".repeat(300)).len() < 100);
    }

    #[test]
    fn a_condition_is_cut_where_the_source_says_and_nowhere_else() {
        let site = |column, end| Site {
            column,
            end,
            device: None,
            columns: Vec::new(),
        };
        assert_eq!(condition(2, &site(5, (2, 10)), "if (x < 3) {"), "x < 3");
        assert_eq!(condition(2, &site(5, (3, 4)), "if (x &&"), "x &&");
        assert_eq!(condition(2, &site(5, (2, 99)), "if (x"), "x");
        assert_eq!(condition(2, &site(9, (2, 5)), "if (x)"), "");
        assert_eq!(condition(2, &site(0, (2, 2)), "é"), "");
    }

    #[test]
    fn digits_are_grouped() {
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1234567), "1\u{202f}234\u{202f}567");
    }
}
