//! LCOV tracefiles (geninfo(1)). Function names are symbols, as in llvm-cov's output: genhtml demangles them. Each
//! function in the source has one record, so readers count as many functions as the other formats.

use super::counts::{Counts, Which};
use super::model::{File, Report};
use std::io::{self, Write};
use std::path::Path;

/// The name of the file in the directory of a report, which editors search for.
pub const NAME: &str = "lcov.info";

/// Writes `lcov.info`, with all architectures and the host if it is included, and one file per column that ran.
pub fn write_all(report: &Report, dir: &Path) -> io::Result<()> {
    let mut bytes = Vec::new();
    write(report, Which::All, &mut bytes)?;
    std::fs::write(dir.join(NAME), bytes)?;
    let columns = report.columns.iter().enumerate();
    for (index, column) in columns.filter(|(_, column)| column.ran) {
        let mut bytes = Vec::new();
        write(report, Which::Column(index), &mut bytes)?;
        std::fs::write(dir.join(format!("{}.lcov", column.name)), bytes)?;
    }
    Ok(())
}

/// Whether a path can be written. It cannot if it has a line break, because a record is one line.
pub fn can_name(path: &str) -> bool {
    !path.contains(['\n', '\r'])
}

pub fn write(report: &Report, which: Which, out: &mut impl Write) -> io::Result<()> {
    for (_, file, counts) in Counts::of_files(report, which) {
        if can_name(file.location()) {
            write_file(file, &counts, out)?;
        }
    }
    Ok(())
}

fn write_file(file: &File, counts: &Counts, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "TN:")?;
    writeln!(out, "SF:{}", file.location())?;
    for function in &counts.functions {
        writeln!(out, "FN:{},{}", function.line, function.symbol)?;
    }
    for function in &counts.functions {
        writeln!(out, "FNDA:{},{}", function.count, function.symbol)?;
    }
    let ratio = counts.function_ratio();
    writeln!(out, "FNF:{}\nFNH:{}", ratio.total, ratio.covered)?;
    for line in &counts.lines {
        for (block, (taken, not_taken)) in line.conditions.iter().enumerate() {
            for (branch, count) in [taken, not_taken].into_iter().enumerate() {
                // `-` means that the condition was never evaluated.
                match *taken == 0 && *not_taken == 0 {
                    true => writeln!(out, "BRDA:{},{block},{branch},-", line.number)?,
                    false => writeln!(out, "BRDA:{},{block},{branch},{count}", line.number)?,
                }
            }
        }
    }
    let ratio = counts.branch_ratio();
    writeln!(out, "BRF:{}\nBRH:{}", ratio.total, ratio.covered)?;
    for line in &counts.lines {
        writeln!(out, "DA:{},{}", line.number, line.count)?;
    }
    let ratio = counts.line_ratio();
    writeln!(out, "LF:{}\nLH:{}", ratio.total, ratio.covered)?;
    writeln!(out, "end_of_record")
}
