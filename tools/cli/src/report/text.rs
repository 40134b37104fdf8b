//! The report for a terminal: what to know, the kernels, the files, and their sums.

use super::html::percent;
use super::model::{Kernel, Ratio, Report, State, Totals};
use crate::readable::{self, columns};
use std::fmt::Write as _;
use std::path::Path;

/// Where pages were written, and the totals.
pub fn line(dir: &Path, report: &Report) -> String {
    let totals = report.device;
    let of = |ratio: Ratio| format!("{} ({} of {})", percent(ratio), ratio.covered, ratio.total);
    format!(
        "{}: lines {}, branches {}, functions {}\n",
        dir.display(),
        of(totals.lines),
        of(totals.branches),
        of(totals.functions)
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
    let mut rows = vec![row([
        "Lines", "", "Branches", "", "Calls", "Time", "Kernel",
    ])];
    for kernel in &report.kernels {
        let function = kernel.function.map(|function| &report.functions[function]);
        let [lines, of_lines] = ratio(function.map(|function| function.lines));
        let [branches, of_branches] = ratio(function.map(|function| function.branches));
        let calls = kernel
            .calls
            .map_or("–".to_owned(), |calls| calls.to_string());
        let time = kernel.time.map_or("–".to_owned(), readable::time);
        let name = format!("{}{}", kernel.name, remark(kernel));
        rows.push(vec![
            lines,
            of_lines,
            branches,
            of_branches,
            calls,
            time,
            name,
        ]);
    }
    if !report.traced {
        for row in &mut rows {
            row.drain(4..6);
        }
    }
    columns(&rows)
}

fn remark(kernel: &Kernel) -> &'static str {
    match kernel.state {
        State::Covered => "",
        State::NotInstrumented => "  (not instrumented)",
        State::Runtime => "  (HIP's own)",
        State::NeverRan => "  (never ran)",
        State::NotInTrace => "  (not in the trace)",
        State::NotCounted => "  (nothing counted)",
    }
}

fn files(report: &Report) -> String {
    let mut rows = vec![row(["Lines", "", "Branches", "", "Functions", "", "File"])];
    let mut push = |totals: Option<Totals>, name: String| {
        let Some(totals) = totals else { return };
        let each = [totals.lines, totals.branches, totals.functions];
        let mut cells: Vec<String> = each.into_iter().flat_map(|one| ratio(Some(one))).collect();
        cells.push(name);
        rows.push(cells);
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
    columns(&rows)
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).into()
}

/// The part in per cent, and the numbers.
fn ratio(ratio: Option<Ratio>) -> [String; 2] {
    match ratio.filter(|ratio| ratio.total > 0) {
        None => ["–".to_owned(), String::new()],
        Some(ratio) => [percent(ratio), format!("{}/{}", ratio.covered, ratio.total)],
    }
}
