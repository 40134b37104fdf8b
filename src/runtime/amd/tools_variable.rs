//! The value of HSA_TOOLS_LIB, the environment variable that names ROCr's tools.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The value of HSA_TOOLS_LIB that adds `library` to the tools in `old`, or `None` when it is among them. ROCr splits
/// the value at spaces and takes text in double quotes as one name.
pub fn with_tool(old: Option<&OsStr>, library: &OsStr) -> Option<OsString> {
    let name = library.as_bytes();
    let old = old.map(OsStr::as_bytes).unwrap_or_default();
    if !name.is_empty() && old.windows(name.len()).any(|window| window == name) {
        return None;
    }
    let mut value = old.to_vec();
    if !value.is_empty() {
        value.push(b' ');
    }
    if name.contains(&b' ') {
        value.extend([b"\"", name, b"\""].concat());
    } else {
        value.extend(name);
    }
    Some(OsString::from_vec(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_added_once_after_the_others() {
        let with = |old: Option<&str>, name: &str| with_tool(old.map(OsStr::new), OsStr::new(name));
        assert_eq!(with(None, "/x/d.so"), Some("/x/d.so".into()));
        assert_eq!(with(Some("/a.so"), "/x/d.so"), Some("/a.so /x/d.so".into()));
        assert_eq!(with(Some("/x/d.so /a.so"), "/x/d.so"), None);
        assert_eq!(with(None, "/x y/d.so"), Some("\"/x y/d.so\"".into()));
    }
}
