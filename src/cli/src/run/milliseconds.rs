//! Times on the command line.

/// Reads a time in milliseconds, or with a unit: `500ms`, `5s`, `2m`, `1m 30s`.
pub fn any(text: &str) -> Result<u64, String> {
    if text.bytes().all(|byte| byte.is_ascii_digit())
        && let Ok(milliseconds) = text.parse()
    {
        return Ok(milliseconds);
    }
    let failed = || "not a time, such as 500 (milliseconds), 500ms, 5s or 2m".to_owned();
    let time = humantime::parse_duration(text).map_err(|_| failed())?;
    if !time.subsec_nanos().is_multiple_of(1_000_000) {
        return Err("not a whole number of milliseconds".to_owned());
    }
    u64::try_from(time.as_millis()).map_err(|_| failed())
}

/// Reads a time as [`any`], which is not zero.
pub fn positive(text: &str) -> Result<u64, String> {
    match any(text)? {
        0 => Err("must be at least 1 ms".to_owned()),
        milliseconds => Ok(milliseconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_or_are_milliseconds() {
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
            ("1us", None),
            ("1.5s", Some(1500)),
            ("0.5ms", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(any(text).ok(), expected, "{text}");
        }
        assert!(positive("0s").is_err());
        assert_eq!(positive("1s"), Ok(1000));
    }
}
