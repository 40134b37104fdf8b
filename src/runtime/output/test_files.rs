//! The current test, and the directory of its files: `tests/NAME` next to the files of the process. `devprof cover --per-test` reads
//! them.

use super::atomic_file;
use crate::support::diagnostics::Outcome;
use crate::support::settings::Settings;
use crate::support::sync::lock;
use profraw::{TEST_NAME, TESTS};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The name that the program has set. `None`: DEVPROF_TEST applies.
static CURRENT: Mutex<Option<Vec<u8>>> = Mutex::new(None);

/// The directory's name has at most this many bytes of the test's.
const MAX_NAME: usize = 100;

/// A test begins. Its directory shows that it ran, even if it runs no device code. `profiles`: the directory of the process's files, if
/// they are written.
pub fn begin(name: &[u8], profiles: Option<&Path>, settings: &Settings, outcome: &mut Outcome) {
    *lock(&CURRENT) = Some(name.to_vec());
    let test = Test::current(settings).filter(|test| !test.name.is_empty());
    let Some((profiles, test)) = profiles.zip(test) else {
        return;
    };
    if let Err(error) = test.directory(profiles) {
        // It names the directory.
        outcome.lose(format_args!("cannot record a test: {error}"));
    }
}

/// A test, or what is of no test.
pub struct Test {
    /// Empty if it is of no test.
    name: Vec<u8>,
}

impl Test {
    /// `None`: counts are not attributed to tests.
    pub fn current(settings: &Settings) -> Option<Test> {
        let first = settings.test.as_ref()?;
        let name = lock(&CURRENT).clone();
        Some(Test {
            name: name.unwrap_or_else(|| first.as_bytes().to_vec()),
        })
    }

    /// The directory of its files, which has its name. `profiles`: the directory of the process's files.
    pub fn directory(&self, profiles: &Path) -> Result<PathBuf, atomic_file::Error> {
        let directory = profiles.join(TESTS).join(directory_name(&self.name));
        let name = directory.join(TEST_NAME);
        if !name.exists() {
            atomic_file::write(&name, &self.name)?;
        }
        Ok(directory)
    }
}

/// A name that is valid in all file systems: the beginning of the test's, and a hash (64-bit FNV-1a), because names may be long or have
/// any characters.
fn directory_name(test: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    let mut name = String::new();
    for byte in test.iter().take(MAX_NAME) {
        name.push(if is_plain(byte) { *byte as char } else { '_' });
    }
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = test.iter().fold(0xcbf2_9ce4_8422_2325, add);
    name + &format!("-{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::directory_name;

    #[test]
    fn each_test_has_a_directory() {
        for (test, expected) in [
            ("", "-cbf29ce484222325"),
            ("A.b/0", "A.b_0-c8d061f06a58170b"),
            ("A.b_0", "A.b_0-c973e1f06ae351db"),
            ("..", "..-07da1a07b4a03f2d"),
        ] {
            assert_eq!(directory_name(test.as_bytes()), expected);
        }
        let long = directory_name(&[b'x'; 300]);
        assert_eq!(long.len(), 100 + 17);
    }
}
