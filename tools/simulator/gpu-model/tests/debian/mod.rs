//! The harness of tests that need the Debian root of `tools/rocm-env setup`. If it is missing, they are ignored, and a line
//! says why, unless `DEVPROF_NEED_ROCM_ENV` is set (`tools/test`).

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use libtest_mimic::{Arguments, Trial};

pub fn repo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// A command in the root. `arguments` are the arguments of `tools/rocm-env run`.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(repo().join("tools/rocm-env"));
    command.arg("run").args(arguments).current_dir(repo());
    command
}

pub fn text(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// Why no command can run in the root.
fn obstacle() -> Option<String> {
    if std::env::var_os("DEVPROF_NEED_ROCM_ENV").is_some() {
        return None;
    }
    let output = command(&["--no-model", "--", "true"])
        .output()
        .expect("tools/rocm-env starts");
    (!output.status.success()).then(|| text(&output))
}

/// A test's name and function.
pub struct Test(String, Box<dyn FnOnce() + Send>);

impl Test {
    pub fn new(name: &str, run: impl FnOnce() + Send + 'static) -> Test {
        Test(name.to_string(), Box::new(run))
    }

    fn trial(self) -> Trial {
        let Test(name, run) = self;
        Trial::test(name, move || {
            run();
            Ok(())
        })
    }
}

/// Runs tests of the suite that need the root, and other tests.
pub fn main(suite: &str, tests: Vec<Test>, others: Vec<Test>) {
    let arguments = Arguments::from_args();
    let obstacle = if arguments.list { None } else { obstacle() };
    if let Some(reason) = &obstacle {
        eprintln!(
            "gpu-model: {suite}: {} tests are skipped, because they need `tools/rocm-env setup` (Debian, as root): {}",
            tests.len(),
            reason.trim()
        );
    }
    let tests = tests
        .into_iter()
        .map(|test| test.trial().with_ignored_flag(obstacle.is_some()));
    let trials = tests.chain(others.into_iter().map(Test::trial)).collect();
    libtest_mimic::run(&arguments, trials).exit();
}
