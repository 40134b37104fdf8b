//! Times and numbers in a readable form, and paths quoted for a shell.

use std::path::{Path, PathBuf};

/// Nanoseconds, in the largest unit in which the number is at least 1.
pub fn time(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs")];
    match units.iter().find(|(size, _)| ns >= *size) {
        Some((size, unit)) => format!("{:.3} {unit}", ns as f64 / *size as f64),
        None => format!("{ns} ns"),
    }
}

/// Nanoseconds with this number of significant digits, in the largest unit in which the number is at least 1.
pub fn short_time(ns: f64, digits: usize) -> String {
    scaled(ns, digits, &[(1e9, "s"), (1e6, "ms"), (1e3, "µs")], "ns")
}

/// Bytes with three significant digits.
pub fn bytes(bytes: f64) -> String {
    let unit = |exponent| f64::from(1024u32).powi(exponent);
    let units = [(4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")];
    let units = units.map(|(exponent, name)| (unit(exponent), name));
    scaled(bytes, 3, &units, "B")
}

/// Bytes per second with three significant digits.
pub fn bandwidth(rate: f64) -> String {
    let units = [(1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")];
    scaled(rate, 3, &units, "B/s")
}

/// The number with this number of significant digits, in the first unit in which it is at least 1, or in the smallest
/// unit, in which zeros after the decimal point are left out.
fn scaled(number: f64, digits: usize, units: &[(f64, &str)], smallest: &str) -> String {
    let decimals = |number: f64| {
        let before = (1..digits).take_while(|&n| number >= 10f64.powi(n as i32));
        digits - 1 - before.count()
    };
    for &(size, unit) in units {
        // Rounded before the unit is chosen: 999.96 ns with four digits are 1.000 µs.
        let scale = number / size;
        let last = 10f64.powi(digits as i32 - 1);
        if scale >= 1.0 || (scale * last * 10.0).round() >= last * 10.0 {
            let rounded = format!("{scale:.*}", decimals(scale));
            let rounded: f64 = rounded.parse().unwrap_or(scale);
            return format!("{rounded:.*} {unit}", decimals(rounded));
        }
    }
    let mut text = format!("{number:.*}", decimals(number));
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    format!("{text} {smallest}")
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
    let several = if number == 1 { what } else { &several(what) };
    format!("{} {several}", grouped(number as u128, ','))
}

/// The plural of a noun.
pub fn several(what: &str) -> String {
    if let Some(stem) = what.strip_suffix('y')
        && !stem.ends_with(['a', 'e', 'o', 'u'])
    {
        return format!("{stem}ies");
    }
    let is_hiss = what.ends_with(['s', 'h']);
    format!("{what}{}", if is_hiss { "es" } else { "s" })
}

/// The first three names, separated by commas.
pub fn first_names(names: impl ExactSizeIterator<Item = String>) -> String {
    const NAMED: usize = 3;
    let more = (names.len() > NAMED).then(|| "…".to_owned());
    let shown: Vec<String> = names.take(NAMED).chain(more).collect();
    shown.join(", ")
}

/// The paths, separated by commas.
pub fn listed(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    names.join(", ")
}

/// The first of a number of files: `a`, or `a and 2 more`.
pub fn and_more(first: &Path, number: usize) -> String {
    match number.saturating_sub(1) {
        0 => first.display().to_string(),
        more => format!("{} and {more} more", first.display()),
    }
}

/// The path, quoted for a shell if necessary.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "_-./,:@%+=".contains(char);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', "'\\''"))
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
    fn numbers_have_a_unit_and_significant_digits() {
        for (ns, digits, text) in [
            (0.0, 4, "0 ns"),
            (10.0, 4, "10 ns"),
            (12.5, 4, "12.5 ns"),
            (999.0, 4, "999 ns"),
            (999.96, 4, "1.000 µs"),
            (1000.0, 4, "1.000 µs"),
            (12_345.0, 4, "12.35 µs"),
            (99_996.0, 4, "100.0 µs"),
            (999_949.0, 4, "999.9 µs"),
            (999_951.0, 4, "1.000 ms"),
            (999_400.0, 3, "999 µs"),
            (999_600.0, 3, "1.00 ms"),
            (1.5e13, 4, "15000 s"),
        ] {
            assert_eq!(short_time(ns, digits), text, "{ns}");
        }
        assert_eq!(bytes(1023.0), "1023 B");
        assert_eq!(bytes(1024.0), "1.00 KiB");
        assert_eq!(bytes(1.5 * 1024.0 * 1024.0), "1.50 MiB");
        assert_eq!(bytes(1023.0 * 1024.0), "1023 KiB");
        assert_eq!(bandwidth(26_843_545_600.0), "26.8 GB/s");
        assert_eq!(bandwidth(12.0), "12 B/s");
    }

    #[test]
    fn paths_are_quoted_for_a_shell() {
        assert_eq!(quoted(Path::new("it's")), "'it'\\''s'");
    }
}
