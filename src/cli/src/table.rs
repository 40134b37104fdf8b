//! Tables for terminals.

use crate::color::Paint;

/// Rows of cells in columns, with two spaces between columns. Control characters in cells are escaped.
pub struct Table<'a> {
    /// The columns that are aligned to the left. The others, numbers mostly, are aligned to the right.
    left: &'a [usize],
    /// Spaces before each row.
    indent: usize,
    rows: Vec<Line>,
}

enum Line {
    Cells(Vec<String>),
    /// Not in columns.
    Text(String),
    /// The title of the rows that follow.
    Group(String),
}

impl<'a> Table<'a> {
    pub fn new(headings: &[&str], left: &'a [usize]) -> Table<'a> {
        Table {
            left,
            indent: 0,
            rows: vec![Line::Cells(
                headings.iter().map(ToString::to_string).collect(),
            )],
        }
    }

    pub fn indented(self, indent: usize) -> Table<'a> {
        Table { indent, ..self }
    }

    /// Adds a row, which has as many cells as there are headings.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells = cells.into_iter();
        let cells = cells.map(|cell| escaped(&cell)).collect();
        self.rows.push(Line::Cells(cells));
    }

    /// Adds a line of text about the rows next to it.
    pub fn line(&mut self, text: impl AsRef<str>) {
        self.rows.push(Line::Text(escaped(text.as_ref())));
    }

    /// Adds the title of the rows that follow, after an empty line.
    pub fn group(&mut self, title: impl AsRef<str>) {
        self.rows.push(Line::Group(escaped(title.as_ref())));
    }

    /// The table as text. The headings and titles are highlighted if `colored`.
    pub fn text(&self, colored: bool) -> String {
        let mut widths = Vec::new();
        for row in &self.rows {
            if let Line::Cells(cells) = row {
                widths.resize(cells.len(), 0);
                for (width, cell) in widths.iter_mut().zip(cells) {
                    *width = (*width).max(cell.chars().count());
                }
            }
        }
        let mut text = String::new();
        let indent = " ".repeat(self.indent);
        for (number, row) in self.rows.iter().enumerate() {
            let row = match row {
                Line::Cells(cells) => cells,
                Line::Text(line) => {
                    text += &format!("{indent}{line}\n");
                    continue;
                }
                Line::Group(title) => {
                    let title = Paint::Heading.on(colored, title);
                    text += &format!("\n{indent}{title}\n");
                    continue;
                }
            };
            let mut cells = Vec::new();
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                if self.left.contains(&column) {
                    cells.push(format!("{cell:width$}"));
                } else {
                    cells.push(format!("{cell:>width$}"));
                }
            }
            let line = format!("{indent}{}", cells.join("  "));
            text += &match number {
                0 => Paint::Heading.on(colored, line.trim_end()),
                _ => line.trim_end().to_owned(),
            };
            text.push('\n');
        }
        text
    }
}

/// The text with its control characters escaped, so that it stays on its line and does not control the terminal.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_control() {
            escaped.extend(char.escape_default());
        } else {
            escaped.push(char);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_control_characters_escaped() {
        let mut table = Table::new(&["Name", "Size", "Kernel"], &[0, 2]).indented(2);
        table.row(["a\u{1b}[2J".into(), "1".into(), "first".into()]);
        table.line("about\tb");
        table.group("a group");
        table.row(["b".into(), "12345".into(), String::new()]);
        let expected = "  \
  Name         Size  Kernel
  a\\u{1b}[2J      1  first
  about\\tb

  a group
  b           12345\n";
        assert_eq!(table.text(false), expected);
    }
}
