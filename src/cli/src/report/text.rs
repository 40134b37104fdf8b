//! The report for a terminal: the notes, the kernels, the files and the totals.

use super::counts::{Counted, Counts, Which};
use super::decisions;
use super::model::{Change, Comparison, Kernel, KernelState, Ratio, Report, Totals};
use crate::readable;
use crate::table::Table;
use clap::Args;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::Path;

#[derive(Args, Clone, Copy, Debug, Default)]
#[group(skip)]
pub struct Options {
    /// In the format text: list the lines that never ran
    #[arg(long)]
    show_missing_lines: bool,
    /// In the format text: list the conditions without an independence pair (MC/DC)
    #[arg(long)]
    show_missing_conditions: bool,
    /// In the format text: only the notes and the totals
    #[arg(long, conflicts_with_all = ["show_missing_lines", "show_missing_conditions"])]
    summary_only: bool,
}

impl Options {
    pub fn is_about_lines(&self) -> bool {
        self.show_missing_lines || self.show_missing_conditions
    }
}

/// The path of the report, and the totals.
pub fn totals(path: &Path, report: &Report) -> String {
    let totals = report.overall();
    let mut each = vec![
        ("lines", totals.lines),
        ("branches", totals.branches),
        ("functions", totals.functions),
    ];
    if !report.has_coverage() {
        each.clear();
    }
    each.push(("kernels", report.kernel_coverage));
    if report.has_decisions {
        each.push(("MC/DC", totals.mcdc));
    }
    let each = each.into_iter().map(|(what, ratio)| {
        let percent = ratio.percent_text();
        format!("{what} {percent} ({} of {})", ratio.covered, ratio.total)
    });
    let each: Vec<String> = each.collect();
    format!("{}: {}\n", path.display(), each.join(", "))
}

pub fn report(report: &Report, options: Options) -> String {
    let mut text = String::new();
    for note in &report.notes {
        let _ = writeln!(text, "{}", note.text);
        for item in &note.items {
            let _ = writeln!(text, "    {item}");
        }
    }
    if !report.notes.is_empty() {
        text.push('\n');
    }
    if !options.summary_only {
        text += &kernels(report);
        text.push('\n');
    }
    if let Some(census) = census(report) {
        text += &(census + "\n");
    }
    if !report.has_coverage() {
        return text + &traces(report);
    }
    if report.census.is_some() {
        text.push('\n');
    }
    text += &files(report, !options.summary_only);
    if options.summary_only {
        return text;
    }
    if options.show_missing_lines {
        text.push('\n');
        text += &missing_lines(report);
    }
    if options.show_missing_conditions {
        text.push('\n');
        text += &decisions::missing(report);
    }
    text += &traces(report);
    if let Some(baseline) = &report.baseline {
        text.push('\n');
        text += &changes(baseline, &str::to_owned);
    }
    text
}

/// How many of the binaries' kernels ran, if it is known.
pub fn census(report: &Report) -> Option<String> {
    let Ratio { covered, total } = report.census?;
    let covered = readable::grouped(covered.into(), ',');
    let kernels = readable::plural(total as usize, "kernel");
    let states = report.kernels.iter().map(|kernel| kernel.state);
    let others = states
        .filter(|state| *state == KernelState::OtherGpu)
        .count();
    let others = match others {
        0 => String::new(),
        _ => format!(
            "; {} only for other GPUs",
            readable::plural(others, "kernel")
        ),
    };
    Some(format!(
        "{covered} of {kernels} of the binaries ran{others}"
    ))
}

/// The traces, if there are several.
fn traces(report: &Report) -> String {
    if report.traces.len() < 2 {
        return String::new();
    }
    let mut table = Table::new(&["Calls", "Time", "Process", "Trace"], &[3]);
    for trace in &report.traces {
        table.row([
            trace.calls.to_string(),
            readable::time(trace.time),
            trace.process.to_string(),
            trace.path.clone(),
        ]);
    }
    format!("\n{}", table.text(false))
}

/// The differences from an earlier report. `name` formats paths and names.
pub fn changes(baseline: &Comparison, name: &dyn Fn(&str) -> String) -> String {
    let mut text = format!(
        "Compared with {}: {}\n",
        name(&baseline.path),
        points(&baseline.change)
    );
    let mut item = |line: String| {
        let _ = writeln!(text, "- {line}");
    };
    let shown = |totals: Option<Totals>| match totals {
        None => "not in the report".to_owned(),
        Some(totals) => {
            let [percent, fraction] = ratio(Some(totals.lines));
            format!("lines {percent} {fraction}").trim_end().to_owned()
        }
    };
    for file in &baseline.files {
        let (before, after) = (shown(file.before), shown(file.after));
        let change = if before == after {
            format!("{after} (other totals differ)")
        } else {
            format!("{before} → {after}")
        };
        item(format!("{}: {change}", name(&file.path)));
    }
    for function in &baseline.functions {
        let kernel = if function.kernel { "kernel " } else { "" };
        let change = function.change.text();
        item(format!("{kernel}{}: {change}", name(&function.name)));
    }
    text
}

/// The changes of the percentages.
pub fn points(change: &Change) -> String {
    let parts = [
        ("lines", change.lines),
        ("branches", change.branches),
        ("functions", change.functions),
        ("kernels", change.kernels),
        ("MC/DC", change.mcdc),
    ];
    let shown = parts.into_iter().filter_map(|(what, points)| {
        let points = points?;
        // Without a minus sign for a small number that is rounded to 0.
        let points = if points.abs() < 0.05 { 0.0 } else { points };
        Some(format!("{what} {points:+.1} points"))
    });
    let shown: Vec<String> = shown.collect();
    shown.join(", ")
}

fn kernels(report: &Report) -> String {
    let mut headings = Vec::new();
    if report.has_coverage() {
        headings.extend(["Lines", "", "Branches", ""]);
    }
    if report.has_decisions {
        headings.extend(["MC/DC", ""]);
    }
    if report.traced {
        headings.extend(["Calls", "Time"]);
    }
    headings.push("Kernel");
    let last = [headings.len() - 1];
    let mut table = Table::new(&headings, &last);
    for Row { kernel, name } in rows(report) {
        let function = kernel.function.map(|function| &report.functions[function]);
        let mut row = Vec::new();
        if report.has_coverage() {
            row.extend(ratio(function.map(|function| function.lines)));
            row.extend(ratio(function.map(|function| function.branches)));
        }
        if report.has_decisions {
            row.extend(ratio(function.map(|function| function.mcdc)));
        }
        if report.traced {
            let calls = kernel.calls.map(|calls| calls.to_string());
            let time = kernel.time.map(readable::time);
            row.extend([calls, time].map(|cell| cell.unwrap_or("–".to_owned())));
        }
        row.push(format!("{name}{}", remark(kernel, report.has_coverage())));
        table.row(row);
    }
    table.text(false)
}

/// A row of the table of kernels.
pub struct Row<'a> {
    /// The kernel, or the first of several.
    pub kernel: &'a Kernel,
    pub name: Cow<'a, str>,
}

/// The kernels, without those for other GPUs. The instances of a template that are not instrumented and never ran are one row.
pub fn rows<'a>(report: &'a Report) -> Vec<Row<'a>> {
    let mut instances: HashMap<&str, usize> = HashMap::new();
    let of_gpu = report.kernels.iter();
    let of_gpu = of_gpu.filter(|kernel| kernel.state != KernelState::OtherGpu);
    for template in of_gpu
        .clone()
        .filter_map(|kernel| kernel.template.as_deref())
    {
        *instances.entry(template).or_default() += 1;
    }
    let row = |kernel: &'a Kernel| {
        let template = kernel.template.as_deref();
        let Some((template, number)) = template.and_then(|own| instances.remove_entry(own)) else {
            // A row has all instances.
            return template.is_none().then(|| Row {
                kernel,
                name: (&*kernel.name).into(),
            });
        };
        let name = match number {
            1 => (&*kernel.name).into(),
            _ => format!("{template} ({number} instances)").into(),
        };
        Some(Row { kernel, name })
    };
    of_gpu.filter_map(row).collect()
}

/// `has_coverage`: of the report.
pub fn remark(kernel: &Kernel, has_coverage: bool) -> &'static str {
    match kernel.state {
        KernelState::Covered | KernelState::Ambiguous | KernelState::Ran => "",
        KernelState::NotInBinaries => "  (in none of the binaries)",
        KernelState::OtherGpu => "  (only for other GPUs)",
        KernelState::NotInstrumented => "  (not instrumented)",
        KernelState::Runtime => "  (part of HIP)",
        KernelState::NeverRan if has_coverage && kernel.function.is_none() => {
            "  (not instrumented, never ran)"
        }
        KernelState::NeverRan => "  (never ran)",
        KernelState::NotInTrace => "  (not in the trace)",
        KernelState::NotCounted => "  (no counts)",
    }
}

/// The lines that never ran, such as `3, 5-7`, one file per line.
fn missing_lines(report: &Report) -> String {
    let mut table = Table::new(&["Lines that never ran", "File"], &[0, 1]);
    for (file, counts) in Counts::of_files(report, Which::All) {
        // Lines without code between two lines that never ran do not separate them.
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        let mut before_ran = true;
        for line in &counts.lines {
            match ranges.last_mut() {
                _ if line.count > 0 => {}
                Some((_, last)) if !before_ran => *last = line.number,
                _ => ranges.push((line.number, line.number)),
            }
            before_ran = line.count > 0;
        }
        let shown = ranges.iter().map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        });
        let shown: Vec<String> = shown.collect();
        if !shown.is_empty() {
            table.row([shown.join(", "), file.location().to_owned()]);
        }
    }
    table.text(false)
}

/// The sources with the count of each line, as `llvm-cov show` prints them. A decision follows its line, with the number of conditions
/// whose effect was shown, and the others.
pub fn sources(report: &Report) -> String {
    let mut text = String::new();
    let kind = report.counts();
    for (file, counts) in Counts::of_files(report, Which::All) {
        let _ = writeln!(text, "{}:", file.location());
        let by_number = counts.lines.iter().map(|line| (line.number, line));
        let by_number: BTreeMap<u32, &Counted> = by_number.collect();
        let mut line = |number: u32, line: Option<&Counted>, source: &str| {
            let count = line.map_or_else(String::new, |line| {
                let mark = kind.mark(line.count).map(str::to_owned);
                mark.unwrap_or_else(|| line.count.to_string())
            });
            let _ = writeln!(text, "{number:>5}|{count:>10}|{source}");
            for own in line.map(|line| &line.decisions[..]).unwrap_or_default() {
                let _ = writeln!(
                    text,
                    "{:>5}|{:>10}|  {}",
                    "",
                    "",
                    decisions::summary(report, file, own)
                );
            }
        };
        match &file.source.text {
            Some(source) => {
                for (number, source) in (1..).zip(source.lines()) {
                    line(number, by_number.get(&number).copied(), source);
                }
            }
            None => by_number
                .iter()
                .for_each(|(number, own)| line(*number, Some(own), "")),
        }
        text.push('\n');
    }
    text
}

/// `with_each`: not only the totals.
fn files(report: &Report, with_each: bool) -> String {
    let mut headings = vec!["Lines", "", "Branches", ""];
    if report.has_decisions {
        headings.extend(["MC/DC", ""]);
    }
    headings.extend(["Functions", "", "File"]);
    let last = [headings.len() - 1];
    let mut table = Table::new(&headings, &last);
    let mut push = |totals: Option<Totals>, name: String| {
        let Some(totals) = totals else { return };
        let mcdc = report.has_decisions.then_some(totals.mcdc);
        let each = [
            Some(totals.lines),
            Some(totals.branches),
            mcdc,
            Some(totals.functions),
        ];
        let each = each.into_iter().flatten();
        let mut cells: Vec<String> = each.flat_map(|one| ratio(Some(one))).collect();
        cells.push(name);
        table.row(cells);
    };
    let each = report.files.iter().filter(|_| with_each);
    for file in each.clone() {
        push(file.device, file.location().to_owned());
    }
    let all = "all files, all architectures";
    push(Some(report.device), all.to_owned());
    let columns = report.columns.iter();
    for column in columns.filter(|column| column.ran && !column.host) {
        push(Some(column.totals), format!("all files, {}", column.name));
    }
    if report.host.is_some() {
        for file in each {
            push(file.host, format!("{} (host)", file.location()));
        }
        push(report.host, "all files, host".to_owned());
        push(report.combined, "all files, device and host".to_owned());
    }
    table.text(false)
}

/// The percentage, and the two numbers.
fn ratio(ratio: Option<Ratio>) -> [String; 2] {
    match ratio.filter(|ratio| ratio.total > 0) {
        None => ["–".to_owned(), String::new()],
        Some(ratio) => {
            let fraction = format!("{}/{}", ratio.covered, ratio.total);
            [ratio.percent_text(), fraction]
        }
    }
}
