//! What a source page shows of a file.

use crate::report::model::{File, Line, Report};

/// Whether to show a column's count of a line. Columns that did not run are shown if all columns with code did not run.
pub fn has_cell(line: &Line, column: usize) -> bool {
    let mut all = line.columns.iter().flatten();
    line.columns[column]
        .is_some_and(|cell| cell.count().is_some() || all.all(|cell| cell.count().is_none()))
}

/// The lines of a file with their counts.
pub struct View<'a> {
    pub report: &'a Report,
    pub file: &'a File,
    /// The columns in which the file has code.
    pub columns: Vec<usize>,
    /// Whether there is a column for the sum of the architectures.
    pub has_sum: bool,
}

impl<'a> View<'a> {
    pub fn new(report: &'a Report, file: &'a File) -> View<'a> {
        // The columns in which the file has code, and their sum if there are several.
        let has_code = |column: &usize| file.lines.iter().any(|line| has_cell(line, *column));
        let columns: Vec<usize> = (0..report.columns.len()).filter(has_code).collect();
        let shown = columns.iter().map(|&column| &report.columns[column]);
        let summands = shown.filter(|column| column.ran && !column.host).count();
        View {
            report,
            file,
            columns,
            has_sum: summands > 1,
        }
    }

    /// Whether it is known which tests ran the lines.
    pub fn has_tests(&self) -> bool {
        !self.file.tests.is_empty()
    }
}
