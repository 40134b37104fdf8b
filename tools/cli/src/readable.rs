//! Times and numbers in a readable form, and paths quoted for a shell.

use std::path::Path;

/// Nanoseconds, in the largest unit in which the number is at least 1.
pub fn time(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs")];
    match units.iter().find(|(size, _)| ns >= *size) {
        Some((size, unit)) => format!("{:.3} {unit}", ns as f64 / *size as f64),
        None => format!("{ns} ns"),
    }
}

/// The number with its digits in groups of three.
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

/// A number and its noun: `1 file`, `2 files`.
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
    if let Some(stem) = what.strip_suffix('y')
        && !stem.ends_with(['a', 'e', 'o', 'u'])
    {
        return format!("{stem}ies");
    }
    let end = if what.ends_with(['s', 'h']) {
        "es"
    } else {
        "s"
    };
    format!("{what}{end}")
}

/// The path, quoted for a shell if necessary.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "_-./,:@%+=".contains(char);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_nouns_in_the_plural() {
        assert_eq!(plural(1_234_567, "file"), "1,234,567 files");
        assert_eq!(plural(123, "process"), "123 processes");
        assert_eq!(plural(1, "process"), "1 process");
        assert_eq!(plural(0, "dispatch"), "0 dispatches");
        assert_eq!(plural(2, "copy"), "2 copies");
        assert_eq!(plural(2, "key"), "2 keys");
    }

    #[test]
    fn paths_are_quoted_for_a_shell() {
        assert_eq!(quoted(Path::new("it's")), "'it'\\''s'");
    }
}
