//! The report for a terminal: the notes, the kernels, the files and the totals.

use super::model::{Kernel, KernelState, Ratio, Report, Totals};
use crate::readable;
use crate::table::Table;
use std::fmt::Write as _;
use std::path::Path;

/// The directory of the report, and the totals.
pub fn totals(dir: &Path, report: &Report) -> String {
    let totals = report.device;
    let text = |ratio: Ratio| {
        format!(
            "{} ({} of {})",
            ratio.percent_text(),
            ratio.covered,
            ratio.total
        )
    };
    format!(
        "{}: lines {}, branches {}, functions {}\n",
        dir.display(),
        text(totals.lines),
        text(totals.branches),
        text(totals.functions)
    )
}

pub fn report(report: &Report) -> String {
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
    text += &kernels(report);
    text.push('\n');
    text += &files(report);
    text
}

fn kernels(report: &Report) -> String {
    let mut headings = vec!["Lines", "", "Branches", ""];
    if report.traced {
        headings.extend(["Calls", "Time"]);
    }
    headings.push("Kernel");
    let last = [headings.len() - 1];
    let mut table = Table::new(&headings, &last);
    for kernel in &report.kernels {
        let function = kernel.function.map(|function| &report.functions[function]);
        let mut row = Vec::new();
        row.extend(ratio(function.map(|function| function.lines)));
        row.extend(ratio(function.map(|function| function.branches)));
        if report.traced {
            let calls = kernel.calls.map(|calls| calls.to_string());
            let time = kernel.time.map(readable::time);
            row.extend([calls, time].map(|cell| cell.unwrap_or("–".to_owned())));
        }
        row.push(format!("{}{}", kernel.name, remark(kernel)));
        table.row(row);
    }
    table.text(false)
}

fn remark(kernel: &Kernel) -> &'static str {
    match kernel.state {
        KernelState::Covered => "",
        KernelState::NotInstrumented => "  (not instrumented)",
        KernelState::Runtime => "  (part of HIP)",
        KernelState::NeverRan => "  (never ran)",
        KernelState::NotInTrace => "  (not in the trace)",
        KernelState::NotCounted => "  (no counts)",
    }
}

fn files(report: &Report) -> String {
    let headings = ["Lines", "", "Branches", "", "Functions", "", "File"];
    let mut table = Table::new(&headings, &[6]);
    let mut push = |totals: Option<Totals>, name: String| {
        let Some(totals) = totals else { return };
        let each = [totals.lines, totals.branches, totals.functions];
        let mut cells: Vec<String> = each.into_iter().flat_map(|one| ratio(Some(one))).collect();
        cells.push(name);
        table.row(cells);
    };
    for file in &report.files {
        push(file.device, file.path.to_string());
    }
    push(
        Some(report.device),
        "all files, all architectures".to_owned(),
    );
    for column in report
        .columns
        .iter()
        .filter(|column| column.ran && !column.host)
    {
        push(Some(column.totals), format!("all files, {}", column.name));
    }
    if report.host.is_some() {
        for file in &report.files {
            push(file.host, format!("{} (host)", file.path));
        }
        push(report.host, "all files, host".to_owned());
    }
    table.text(false)
}

/// The percentage, and the two numbers.
fn ratio(ratio: Option<Ratio>) -> [String; 2] {
    match ratio.filter(|ratio| ratio.total > 0) {
        None => ["–".to_owned(), String::new()],
        Some(ratio) => [
            ratio.percent_text(),
            format!("{}/{}", ratio.covered, ratio.total),
        ],
    }
}
