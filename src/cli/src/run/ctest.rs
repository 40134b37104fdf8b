//! Runs ctest such that each test's processes know the test's name (DEVPROF_TEST), which ctest does not tell them.
//!
//! ctest gets another directory, whose file includes the build directory's and then adds the variable to the environment of each test.
//! So there is still one ctest, which runs tests in parallel and with their fixtures.

use crate::exit::usage;
use crate::locate::find_in_path;
use anyhow::{Context, bail};
use serde::Deserialize;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Options with which ctest does not read the tests of a build directory, or also uses other files in it.
const UNSUPPORTED: &[&str] = &[
    "--build-and-test",
    "--build-options",
    "--dashboard",
    "--preset",
    "--rerun-failed",
    "--script",
    "--script-new-process",
    "--test-action",
    "--test-model",
    "-D",
    "-M",
    "-S",
    "-SP",
    "-T",
];

/// A run of ctest.
#[derive(Debug)]
pub struct Ctest {
    /// The tests that it runs.
    pub tests: Vec<String>,
    /// The directory for ctest.
    directory: TempDir,
}

/// The output of `ctest --show-only=json-v1`.
#[derive(Deserialize)]
struct Listed {
    tests: Vec<Test>,
}

#[derive(Deserialize)]
struct Test {
    name: String,
}

/// Whether a command is ctest.
pub fn is_ctest(program: &OsStr) -> bool {
    Path::new(program).file_name() == Some(OsStr::new("ctest"))
}

impl Ctest {
    /// Lists the tests.
    ///
    /// # Errors
    /// ctest fails, or has an option with which it does not run tests of a build directory.
    pub fn new(program: &OsStr, arguments: &[OsString]) -> anyhow::Result<Ctest> {
        let is_unsupported = |argument: &&OsString| {
            let text = argument.to_string_lossy();
            let name = text.split_once('=').map_or(&*text, |(name, _)| name);
            UNSUPPORTED.contains(&name)
        };
        if let Some(option) = arguments.iter().find(is_unsupported) {
            return Err(usage(format!(
                "--per-test does not support ctest {}: use ctest --test-dir BUILD with options that select tests",
                option.display()
            )));
        }
        let program = find_in_path(program).context("cannot find ctest")?;
        let mut command = Command::new(&program);
        let output = command.args(arguments).arg("--show-only=json-v1").output();
        let output = output.with_context(|| format!("cannot start {}", program.display()))?;
        if !output.status.success() {
            bail!(
                "ctest --show-only=json-v1 failed: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        // Messages may precede it.
        let start = output.stdout.iter().position(|byte| *byte == b'{');
        let json = &output.stdout[start.unwrap_or(0)..];
        let listed: Listed = serde_json::from_slice(json).context(
            "cannot parse the output of ctest --show-only=json-v1 (CMake 3.14 or later)",
        )?;
        let tests = listed.tests.into_iter().map(|test| test.name).collect();
        let build = build_directory(arguments)?;
        Ctest::with(tests, &build)
    }

    fn with(tests: Vec<String>, build: &Path) -> anyhow::Result<Ctest> {
        let directory = tempfile::Builder::new()
            .prefix("devprof-ctest-")
            .tempdir()
            .context("cannot create a directory for ctest")?;
        let path = directory.path().join("CTestTestfile.cmake");
        fs::write(&path, file(&tests, build)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Ctest { tests, directory })
    }

    /// The arguments for ctest, which uses the last directory that it is given.
    pub fn arguments(&self, arguments: &[OsString]) -> Vec<OsString> {
        let own = ["--test-dir".into(), self.directory.path().into()];
        arguments.iter().cloned().chain(own).collect()
    }
}

/// The directory that `--test-dir` names, or else the current one.
fn build_directory(arguments: &[OsString]) -> anyhow::Result<PathBuf> {
    let mut named = PathBuf::from(".");
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy();
        if text == "--test-dir" {
            named = arguments
                .next()
                .context("--test-dir needs a directory")?
                .into();
        } else if let Some(directory) = text.strip_prefix("--test-dir=") {
            named = directory.into();
        }
    }
    let absolute = named.canonicalize();
    absolute.with_context(|| format!("cannot find {}", named.display()))
}

/// The file that ctest reads.
fn file(tests: &[String], build: &Path) -> anyhow::Result<String> {
    let build = build.to_str().context("the build directory is not UTF-8")?;
    let mut text = format!("subdirs({})\n", quoted(build));
    for name in tests {
        // A semicolon separates the elements of a list.
        let variable = format!("{}={}", settings::TEST.name, name.replace(';', "\\;"));
        text += &format!(
            "set_tests_properties({} PROPERTIES ENVIRONMENT {})\n",
            quoted(name),
            quoted(&variable)
        );
    }
    Ok(text)
}

/// A bracket argument, in which CMake replaces nothing.
fn quoted(text: &str) -> String {
    let mut equals = String::new();
    while text.contains(&format!("]{equals}]")) || text.ends_with(&format!("]{equals}")) {
        equals.push('=');
    }
    format!("[{equals}[{text}]{equals}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_gets_its_name() {
        let tests = ["a b".to_owned(), "c]];d]".to_owned()];
        let expected = "subdirs([[/build]])\n\
            set_tests_properties([[a b]] PROPERTIES ENVIRONMENT [[DEVPROF_TEST=a b]])\n\
            set_tests_properties([=[c]];d]]=] PROPERTIES ENVIRONMENT [=[DEVPROF_TEST=c]]\\;d]]=])\n";
        assert_eq!(file(&tests, Path::new("/build")).unwrap(), expected);
    }

    #[test]
    fn ctest_gets_another_directory() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let named = dir.to_str().unwrap();
        for arguments in [
            vec!["--test-dir", named, "-j4"],
            vec!["-R", "x", &format!("--test-dir={named}")],
        ] {
            let arguments: Vec<OsString> = arguments.into_iter().map(OsString::from).collect();
            assert_eq!(build_directory(&arguments).unwrap(), dir);
        }
        let ctest = Ctest::with(vec!["t".into()], &dir).unwrap();
        let arguments = ctest.arguments(&["-j4".into()]);
        assert_eq!(arguments[..2], ["-j4", "--test-dir"]);
        assert!(
            Path::new(&arguments[2])
                .join("CTestTestfile.cmake")
                .exists()
        );
        for option in ["-T", "--preset=x"] {
            let error = Ctest::new(OsStr::new("ctest"), &[option.into()]).unwrap_err();
            assert!(error.to_string().contains(option), "{error}");
        }
    }
}
