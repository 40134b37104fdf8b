//! Times, numbers and tables as a person reads them, paths as a shell does.

use std::fmt::Write as _;
use std::path::Path;

/// Nanoseconds in the unit that leaves one to three digits before the point.
pub fn time(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs")];
    match units.iter().find(|(size, _)| ns >= *size) {
        Some((size, unit)) => format!("{:.3} {unit}", ns as f64 / *size as f64),
        None => format!("{ns} ns"),
    }
}

/// Digits in threes.
pub fn grouped(number: u128, separator: char) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(separator);
        }
        text.push(digit);
    }
    text
}

/// So many of `what`, in the plural but for one.
pub fn plural(number: usize, what: &str) -> String {
    let what = if number == 1 {
        what.into()
    } else {
        several(what)
    };
    format!("{} {what}", grouped(number as u128, ','))
}

/// The plural of a noun.
pub fn several(what: &str) -> String {
    let end = if what.ends_with(['s', 'h']) {
        "es"
    } else {
        "s"
    };
    format!("{what}{end}")
}

/// As a shell reads it.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "_-./,:@%+=".contains(char);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// A text that stays on its line and changes nothing else on a terminal: control characters are escaped.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        match char.is_control() {
            true => shown.extend(char.escape_default()),
            false => shown.push(char),
        }
    }
    shown
}

/// A table: columns to the right but for the last, two spaces between them.
pub fn columns(rows: &[Vec<String>]) -> String {
    let visible = |row: &Vec<String>| row.iter().map(|cell| visible(cell)).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(visible).collect();
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.saturating_sub(1)).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(text, "{}{cell}  ", " ".repeat(width - cell.chars().count()));
        }
        let _ = writeln!(text, "{}", row.last().map_or("", String::as_str));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_nouns_read_well() {
        assert_eq!(plural(1_234_567, "file"), "1,234,567 files");
        assert_eq!(plural(123, "process"), "123 processes");
        assert_eq!(plural(1, "process"), "1 process");
        assert_eq!(plural(0, "dispatch"), "0 dispatches");
    }

    #[test]
    fn a_path_is_quoted_where_a_shell_wants_it() {
        assert_eq!(quoted(Path::new("it's")), "'it'\\''s'");
    }
}
