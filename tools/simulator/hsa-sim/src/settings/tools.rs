//! Settings for tools: whether they are loaded, and which tables they get.

use super::variable::is_chosen;
use hsa_abi::API_TABLE_MAJOR_VERSION;

/// How tools are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolSettings {
    /// The libraries of `HSA_TOOLS_LIB` are skipped.
    pub skipped: bool,
    /// The major version of the table for tools.
    pub table_major: u32,
    /// The `AmdExtTable` ends where ROCr 7.2.4's does.
    pub older_table: bool,
}

impl ToolSettings {
    /// Reads the settings from the environment.
    pub fn from_env() -> Result<ToolSettings, String> {
        let registered = is_chosen("HSA_SIM_TOOLS", "load", "registered")?;
        let no_registration = std::env::var_os("HSA_TOOLS_DISABLE_REGISTER");
        let skipped = registered
            && no_registration.is_none_or(|value| value != "1")
            && !v1_tools_enabled(std::env::var("HSA_TOOLS_ROCPROFILER_V1_TOOLS").ok())?;
        let table_major = match std::env::var("HSA_SIM_TABLE_MAJOR") {
            Err(_) => API_TABLE_MAJOR_VERSION,
            Ok(text) => text.parse().map_err(|_| {
                format!("HSA_SIM_TABLE_MAJOR={text}: not a version number from 0 to 4294967295")
            })?,
        };
        let older_table = is_chosen("HSA_SIM_TABLE", "newest", "rocr-7.2")?;
        Ok(ToolSettings {
            skipped,
            table_major,
            older_table,
        })
    }
}

/// Whether a value of `HSA_TOOLS_ROCPROFILER_V1_TOOLS` enables the tools of `HSA_TOOLS_LIB`. If the variable is not set,
/// rocprofiler-sdk sets it to 0 when it registers. As in ROCr, a number that is too large is an error of `hsa_init`.
fn v1_tools_enabled(value: Option<String>) -> Result<bool, String> {
    let Some(value) = value else {
        return Ok(false);
    };
    if value.is_empty() {
        return Ok(true);
    }
    if value.bytes().all(|byte| byte.is_ascii_digit()) {
        let number: Result<i32, _> = value.parse();
        return number.map(|number| number != 0).map_err(|_| {
            format!("HSA_TOOLS_ROCPROFILER_V1_TOOLS={value}: the number is too large")
        });
    }
    let off = ["off", "false", "no", "n", "f"];
    Ok(!off.iter().any(|word| value.eq_ignore_ascii_case(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_same_meaning_as_in_rocr() {
        let enabled = |value: &str| v1_tools_enabled(Some(value.into()));
        assert_eq!(v1_tools_enabled(None), Ok(false));
        for off in ["0", "000", "off", "OFF", "False", "no", "N", "f"] {
            assert_eq!(enabled(off), Ok(false), "{off}");
        }
        for on in [
            "", "1", "42", "on", "true", "offf", " 0", "-1", "yes", "nope",
        ] {
            assert_eq!(enabled(on), Ok(true), "{on}");
        }
        assert_eq!(enabled("2147483647"), Ok(true));
        assert!(enabled("2147483648").is_err());
    }
}
