//! Times on the command line.

use humantime::DurationError;

/// Reads a time with units, such as `1.5s` or `1m 30s`. Returns nanoseconds.
pub fn nanoseconds(text: &str) -> Result<u64, String> {
    let failed = || format!("{text} is not a time, such as 1.5s");
    let time = humantime::parse_duration(text).map_err(|error| match error {
        DurationError::UnknownUnit { unit, .. } if unit.is_empty() => {
            format!("{text} has no unit: add ns, us, ms, s, min or h")
        }
        DurationError::UnknownUnit { unit, .. } => format!("{unit} is not ns, us, ms, s, min or h"),
        _ => failed(),
    })?;
    u64::try_from(time.as_nanos()).map_err(|_| failed())
}

/// Reads a time in milliseconds, or with units: `500ms`, `5s`, `2m`, `1m 30s`.
pub fn milliseconds(text: &str) -> Result<u64, String> {
    if text.bytes().all(|byte| byte.is_ascii_digit())
        && let Ok(milliseconds) = text.parse()
    {
        return Ok(milliseconds);
    }
    let time = nanoseconds(text)
        .map_err(|_| "not a time, such as 500 (milliseconds), 500ms, 5s or 2m".to_owned())?;
    if !time.is_multiple_of(1_000_000) {
        return Err("not a whole number of milliseconds".to_owned());
    }
    Ok(time / 1_000_000)
}

/// Reads a time as [`milliseconds`], which is not zero.
pub fn positive_milliseconds(text: &str) -> Result<u64, String> {
    match milliseconds(text)? {
        0 => Err("must be at least 1 ms".to_owned()),
        milliseconds => Ok(milliseconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, expected) in [
            ("10ns", Ok(10)),
            ("2.5us", Ok(2500)),
            ("1µs", Ok(1000)),
            ("1min", Ok(60_000_000_000)),
            ("1h", Ok(3_600_000_000_000)),
            ("1", Err("1 has no unit: add ns, us, ms, s, min or h")),
            ("1x", Err("x is not ns, us, ms, s, min or h")),
            ("-1s", Err("-1s is not a time, such as 1.5s")),
            ("1.2.3s", Err("1.2.3s is not a time, such as 1.5s")),
            ("1000y", Err("1000y is not a time, such as 1.5s")),
        ] {
            assert_eq!(nanoseconds(text), expected.map_err(str::to_owned), "{text}");
        }
    }

    #[test]
    fn times_are_in_milliseconds_or_have_units() {
        for (text, expected) in [
            ("0", Some(0)),
            ("5000", Some(5000)),
            ("500ms", Some(500)),
            ("5s", Some(5000)),
            ("2m", Some(120_000)),
            ("1m 30s", Some(90_000)),
            ("5x", None),
            ("s", None),
            ("", None),
            ("-1", None),
            ("+1", None),
            ("1us", None),
            ("1.5s", Some(1500)),
            ("0.5ms", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(milliseconds(text).ok(), expected, "{text}");
        }
        assert!(positive_milliseconds("0s").is_err());
        assert_eq!(positive_milliseconds("1s"), Ok(1000));
    }
}
