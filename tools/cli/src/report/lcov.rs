//! LCOV tracefiles (geninfo(1)). Function names are symbols, as in llvm-cov's output: genhtml demangles them.

use super::model::{Cell, Condition, File, Line, Report};
use std::io::{self, Write};
use std::path::Path;

/// Which counts to write.
#[derive(Clone, Copy)]
pub enum Which {
    /// All architectures together.
    Device,
    Column(usize),
}

/// Writes `coverage.lcov`, with all architectures, and one file per column that ran.
pub fn write_all(report: &Report, dir: &Path) -> io::Result<()> {
    let mut bytes = Vec::new();
    write(report, Which::Device, &mut bytes)?;
    std::fs::write(dir.join("coverage.lcov"), bytes)?;
    for (index, column) in report
        .columns
        .iter()
        .enumerate()
        .filter(|(_, column)| column.ran)
    {
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
    for (index, file) in report.files.iter().enumerate() {
        if !can_name(&file.path) {
            continue;
        }
        write_file(report, index, file, which, out)?;
    }
    Ok(())
}

fn write_file(
    report: &Report,
    index: usize,
    file: &File,
    which: Which,
    out: &mut impl Write,
) -> io::Result<()> {
    let lines: Vec<(&Line, u64)> = file
        .lines
        .iter()
        .filter_map(|line| Some((line, line_count(line, which)?)))
        .collect();
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out, "TN:")?;
    writeln!(out, "SF:{}", file.path)?;
    let functions: Vec<(u32, &str, u64)> = report
        .functions
        .iter()
        .filter(|function| function.file == index)
        .filter_map(|function| {
            let count = match which {
                Which::Device => function.count,
                Which::Column(column) => counted(function.columns[column]),
            };
            Some((function.line, function.symbol.as_str(), count?))
        })
        .collect();
    for (line, name, _) in &functions {
        writeln!(out, "FN:{line},{name}")?;
    }
    for (_, name, count) in &functions {
        writeln!(out, "FNDA:{count},{name}")?;
    }
    writeln!(out, "FNF:{}", functions.len())?;
    writeln!(
        out,
        "FNH:{}",
        functions.iter().filter(|(_, _, count)| *count > 0).count()
    )?;
    let (mut found, mut hit) = (0, 0);
    for (line, _) in &lines {
        let conditions = line.branches.iter();
        let counts = conditions.filter_map(|condition| condition_counts(condition, which));
        for (block, (taken, not_taken)) in counts.enumerate() {
            for (branch, count) in [taken, not_taken].into_iter().enumerate() {
                found += 1;
                hit += usize::from(count > 0);
                // `-` means that the condition was never evaluated.
                match taken == 0 && not_taken == 0 {
                    true => writeln!(out, "BRDA:{},{block},{branch},-", line.number)?,
                    false => writeln!(out, "BRDA:{},{block},{branch},{count}", line.number)?,
                }
            }
        }
    }
    writeln!(out, "BRF:{found}")?;
    writeln!(out, "BRH:{hit}")?;
    for (line, count) in &lines {
        writeln!(out, "DA:{},{count}", line.number)?;
    }
    writeln!(out, "LF:{}", lines.len())?;
    writeln!(
        out,
        "LH:{}",
        lines.iter().filter(|(_, count)| *count > 0).count()
    )?;
    writeln!(out, "end_of_record")
}

fn line_count(line: &Line, which: Which) -> Option<u64> {
    match which {
        Which::Device => line.device,
        Which::Column(column) => counted(line.columns[column]),
    }
}

fn condition_counts(condition: &Condition, which: Which) -> Option<(u64, u64)> {
    match which {
        Which::Device => condition.device,
        Which::Column(column) => condition.columns[column],
    }
}

fn counted(cell: Option<Cell>) -> Option<u64> {
    match cell? {
        Cell::Count(count) => Some(count),
        Cell::NotRun(_) => None,
    }
}
