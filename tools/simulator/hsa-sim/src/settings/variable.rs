//! Environment variables with two values.

/// Whether a variable has the value that is not the default.
pub fn is_chosen(variable: &str, default: &str, other: &str) -> Result<bool, String> {
    match std::env::var(variable) {
        Err(_) => Ok(false),
        Ok(value) if value == default || value == other => Ok(value == other),
        Ok(value) => Err(format!(
            "{variable}={value}: expected '{default}' or '{other}'"
        )),
    }
}
