//! The report as Markdown, for the summary of a CI job.

use super::model::{FunctionCoverage, KernelState, Ratio, Report, Totals};
use super::text::{self, Row};
use crate::console::Severity;
use crate::readable;
use std::fmt::Write as _;

/// The maximum number of rows of a table. CI services limit the size of summaries.
const MAX_ROWS: usize = 500;

/// `failures` are messages about thresholds.
pub fn report(report: &Report, failures: &[String]) -> String {
    let mut out = format!("## {}\n\n", plain(&report.heading()));
    for failure in failures {
        let _ = writeln!(out, "- ❌ {}", plain(failure));
    }
    let warnings = report.notes.iter();
    for note in warnings.filter(|note| note.level == Severity::Warning) {
        let _ = writeln!(out, "- ⚠️ {}", plain(&note.text));
        for item in &note.items {
            let _ = writeln!(out, "  - {}", code(item));
        }
    }
    if !out.ends_with("\n\n") {
        out.push('\n');
    }
    if let Some(census) = text::census(report) {
        let _ = writeln!(out, "{census}.\n");
    }
    if !report.has_coverage() {
        traced_kernels(report, &mut out);
        return out;
    }
    let has_mcdc = report.has_decisions;
    out += &head("", &["Lines", "Branches", "Functions", "Kernels"], has_mcdc);
    let mut row = |name: &str, totals: Totals, kernels: Option<Ratio>| {
        let kernels = kernels.map(ratio).unwrap_or_default();
        let _ = writeln!(
            out,
            "| {name} | {} | {kernels} |{}",
            cells(totals),
            mcdc(has_mcdc, totals.mcdc)
        );
    };
    if let Some(combined) = report.combined {
        row("device and host", combined, None);
    }
    row("device", report.device, Some(report.kernel_coverage));
    if let Some(host) = report.host {
        row("host", host, None);
    }
    if let Some(baseline) = &report.baseline {
        row("baseline", baseline.totals, Some(baseline.kernel_coverage));
        out.push('\n');
        out += &text::changes(baseline, &code);
    }
    let mut files = Vec::new();
    for file in &report.files {
        if let Some(totals) = file.overall() {
            let mcdc = mcdc(has_mcdc, totals.mcdc);
            files.push(format!(
                "| {} | {} |{mcdc}",
                code(file.location()),
                cells(totals)
            ));
        }
    }
    let columns = head("File", &["Lines", "Branches", "Functions"], has_mcdc);
    details(&mut out, "Files", &columns, &files);
    let mut kernels = Vec::new();
    for Row { kernel, name } in rows(report) {
        let function = kernel.function.map(|function| &report.functions[function]);
        let of = |which: fn(&FunctionCoverage) -> Ratio| function.map(which).unwrap_or_default();
        let [lines, branches] = [ratio(of(|own| own.lines)), ratio(of(|own| own.branches))];
        let mcdc = mcdc(has_mcdc, of(|own| own.mcdc));
        let name = code(&name);
        let remark = text::remark(kernel, true).trim();
        kernels.push(format!("| {name} {remark} | {lines} | {branches} |{mcdc}"));
    }
    let columns = head("Kernel", &["Lines", "Branches"], has_mcdc);
    details(&mut out, "Kernels", &columns, &kernels);
    out
}

/// The kernels of a report without profiles.
fn traced_kernels(report: &Report, out: &mut String) {
    let row = |row: Row| {
        let remark = text::remark(row.kernel, false).trim();
        let [calls, time] = [row.kernel.calls, row.kernel.time].map(Option::unwrap_or_default);
        let (name, time) = (code(&row.name), readable::time(time));
        format!("| {name} {remark} | {calls} | {time} |")
    };
    let kernels: Vec<String> = rows(report).map(row).collect();
    let head = head("Kernel", &["Calls", "Time"], false);
    details(out, "Kernels", &head, &kernels);
}

/// The rows of the table of kernels, without those of AMD's runtime.
fn rows(report: &Report) -> impl Iterator<Item = Row<'_>> {
    let rows = text::rows(report).into_iter();
    rows.filter(|row| row.kernel.state != KernelState::Runtime)
}

/// The heading of a table: names, and then numbers, of which the last is MC/DC if the code has decisions.
fn head(first: &str, numbers: &[&str], has_mcdc: bool) -> String {
    let mcdc = if has_mcdc { &["MC/DC"][..] } else { &[] };
    let numbers = [numbers, mcdc].concat();
    let first = if first.is_empty() {
        "|".to_owned()
    } else {
        format!("| {first} |")
    };
    format!(
        "{first} {} |\n| --- |{}\n",
        numbers.join(" | "),
        " --: |".repeat(numbers.len())
    )
}

/// The last cell of a row.
fn mcdc(has_mcdc: bool, own: Ratio) -> String {
    if has_mcdc {
        format!(" {} |", ratio(own))
    } else {
        String::new()
    }
}

/// A table that can be opened, if it has rows.
fn details(out: &mut String, name: &str, head: &str, rows: &[String]) {
    if rows.is_empty() {
        return;
    }
    let number = rows.len();
    *out += &format!("\n<details><summary>{name} ({number})</summary>\n\n{head}");
    for row in rows.iter().take(MAX_ROWS) {
        let _ = writeln!(out, "{row}");
    }
    if let Some(more @ 1..) = rows.len().checked_sub(MAX_ROWS) {
        let _ = writeln!(out, "\nand {more} more");
    }
    *out += "\n</details>\n";
}

fn cells(totals: Totals) -> String {
    [totals.lines, totals.branches, totals.functions]
        .map(ratio)
        .join(" | ")
}

fn ratio(ratio: Ratio) -> String {
    match ratio.total {
        0 => "–".to_owned(),
        total => format!("{} ({}/{total})", ratio.percent_text(), ratio.covered),
    }
}

/// A name as code, which is safe in a table.
pub fn code(name: &str) -> String {
    let name = name.replace('`', "'").replace('|', "\\|");
    format!("`{}`", name.replace(['\n', '\r'], " "))
}

/// A text in which only pairs of backticks are markup.
pub fn plain(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    let mut parts = text.split('`');
    let mut plain = without_markup(parts.next().unwrap_or_default());
    while let Some(part) = parts.next() {
        match parts.next() {
            Some(after) if !part.is_empty() => {
                // Two backticks in a row would end no code.
                if plain.ends_with('`') {
                    plain.push(' ');
                }
                plain += &format!("`{part}`{}", without_markup(after));
            }
            Some(after) => plain += &format!("\\`\\`{}", without_markup(after)),
            // A backtick without another one.
            None => plain += &format!("\\`{}", without_markup(part)),
        }
    }
    plain
}

/// A text without backticks in which nothing is markup.
fn without_markup(text: &str) -> String {
    let mut plain = String::new();
    for c in text.chars() {
        if "\\*_<>[]#|".contains(c) {
            plain.push('\\');
        }
        plain.push(c);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_break_tables() {
        assert_eq!(code("a|b`c\nd"), "`a\\|b'c d`");
        for (text, expected) in [
            ("a_b `c_d` <x>", "a\\_b `c_d` \\<x\\>"),
            ("`c_d`", "`c_d`"),
            ("a`b <x>", "a\\`b \\<x\\>"),
            ("`a_b` `<x>", "`a_b` \\`\\<x\\>"),
            ("``<x>`", "\\`\\`\\<x\\>\\`"),
            ("`` ``` <x> `", "\\`\\` \\`\\` ` <x> `"),
            ("`a``b`", "`a` `b`"),
        ] {
            assert_eq!(plain(text), expected, "{text}");
        }
    }
}
