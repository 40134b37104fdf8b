//! LCOV's tracefiles (geninfo(1)). Functions have their symbols' names there, as llvm-cov writes them: genhtml demangles.

use super::model::{Cell, File, Line, Report, Site};
use std::io::{self, Write};
use std::path::Path;

/// Whose counts to write.
#[derive(Clone, Copy)]
pub enum Which {
    /// All architectures together.
    Device,
    Column(usize),
}

/// `coverage.lcov` of all architectures, and a file for each column that ran.
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

/// Whether a path can be written: a record is a line.
pub fn names(path: &str) -> bool {
    !path.contains(['\n', '\r'])
}

pub fn write(report: &Report, which: Which, out: &mut impl Write) -> io::Result<()> {
    for (index, file) in report.files.iter().enumerate() {
        if !names(&file.path) {
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
        .filter_map(|line| Some((line, of_line(line, which)?)))
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
        let sites = line.branches.iter().filter_map(|site| of_site(site, which));
        for (block, (taken, not_taken)) in sites.enumerate() {
            for (branch, count) in [taken, not_taken].into_iter().enumerate() {
                found += 1;
                hit += usize::from(count > 0);
                // A condition that was never evaluated has no counts.
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

fn of_line(line: &Line, which: Which) -> Option<u64> {
    match which {
        Which::Device => line.device,
        Which::Column(column) => counted(line.columns[column]),
    }
}

fn of_site(site: &Site, which: Which) -> Option<(u64, u64)> {
    match which {
        Which::Device => site.device,
        Which::Column(column) => site.columns[column],
    }
}

fn counted(cell: Option<Cell>) -> Option<u64> {
    match cell? {
        Cell::Count(count) => Some(count),
        Cell::NotRun(_) => None,
    }
}
