//! Runs .ci/run on a small repository: it runs README's commands in a clean clone and removes all of its files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const README: &str = "# x\n\n    not this\n\n## Try it without a GPU\n\n    echo first\n\nand\n\n    tools/example/run\n\n    tools/test\n\n## Next\n\n    nor this\n";

struct Repository {
    dir: tempfile::TempDir,
}

impl Repository {
    /// `example` and `test` are what tools/example/run and tools/test do.
    fn new(readme: &str, example: &str, test: &str) -> Repository {
        let repository = Repository {
            dir: tempfile::tempdir().expect("a directory"),
        };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.ci/run");
        repository.write(".ci/run", &fs::read_to_string(script).expect(".ci/run"));
        repository.write("README.md", readme);
        repository.write("tools/example/run", &format!("#!/bin/sh\n{example}\n"));
        repository.write("tools/test", &format!("#!/bin/sh\n{test}\n"));
        fs::create_dir(repository.temporary()).expect("a directory");
        fs::create_dir(repository.dir.path().join("shared")).expect("a directory");
        for arguments in [
            &["init", "-q"][..],
            &["add", "-A"],
            &[
                "-c",
                "user.name=x",
                "-c",
                "user.email=x",
                "commit",
                "-qm",
                "x",
            ],
        ] {
            let status = Command::new("git")
                .current_dir(repository.path())
                .args(arguments)
                .status();
            assert!(status.expect("git").success());
        }
        repository
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("checkout")
    }

    /// TMPDIR of .ci/run.
    fn temporary(&self) -> PathBuf {
        self.dir.path().join("tmp")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.path().join(".ci/run"));
        command
            .env("TMPDIR", self.temporary())
            .env("DEVPROF_ROCM_ENV", "/an/old/root")
            .env("CARGO_TARGET_DIR", "/an/old/target")
            .stdin(Stdio::null());
        command
    }

    fn run(&self) -> (Output, String) {
        let output = self.command().output().expect(".ci/run");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        (output, printed)
    }

    fn is_clean(&self) -> bool {
        fs::read_dir(self.temporary())
            .expect("a directory")
            .next()
            .is_none()
    }
}

#[test]
fn the_commands_of_the_readme_run_in_a_clean_clone() {
    let example =
        "echo \"in ${PWD##*/} $DEVPROF_ROCM_ENV$CARGO_TARGET_DIR $CI\"; ls ..; ls; touch made";
    let repository = Repository::new(README, example, "ls made; cat");
    repository.write("uncommitted", "");
    let (output, printed) = repository.run();
    assert!(output.status.success(), "{printed}");
    let lines = [
        "first",
        "in devprof  true",
        "devprof",
        "shared",
        "README.md",
        "tools",
        "made",
    ];
    let is_from_command = |line: &&str| !line.starts_with(".ci/run:");
    assert_eq!(
        printed.lines().filter(is_from_command).collect::<Vec<_>>(),
        lines
    );
    assert!(printed.contains("warning: uncommitted changes are not tested"));
    assert!(printed.contains("tools/test succeeded after 0 min"));
    assert!(repository.is_clean());
}

#[test]
fn no_command_runs_after_one_that_failed() {
    let repository = Repository::new(README, "exit 7", "echo test");
    let (output, printed) = repository.run();
    assert_eq!(output.status.code(), Some(1));
    assert!(printed.contains("tools/example/run failed with status 7 after 0 min"));
    assert!(!printed.contains("\ntest\n"));
    assert!(repository.is_clean());
}

#[test]
fn a_readme_with_other_last_commands_is_rejected() {
    let other = README.replace("    tools/example/run", "    tools/example/walk");
    let repository = Repository::new(&other, "echo example", "echo test");
    let (output, printed) = repository.run();
    assert_eq!(output.status.code(), Some(1));
    assert!(printed.contains("must end with the commands"));
    assert!(!printed.contains("\nfirst\n"));
    assert!(repository.is_clean());
}

#[test]
fn a_signal_to_the_script_also_ends_the_command() {
    let repository = Repository::new(README, "touch running; sleep 1000", "");
    let mut child = repository
        .command()
        .stdout(Stdio::null())
        .spawn()
        .expect(".ci/run");
    let limit = Instant::now() + Duration::from_secs(60);
    let is_running = || {
        let mut clones = fs::read_dir(repository.temporary()).expect("a directory");
        clones.any(|clone| clone.is_ok_and(|clone| clone.path().join("devprof/running").exists()))
    };
    while !is_running() {
        assert!(
            Instant::now() < limit,
            ".ci/run did not start the command in time"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    // SAFETY: kill has no memory-safety requirements. The child was not waited for, so the id is still its own.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) };
    assert_eq!(child.wait().expect("a status").code(), Some(143));
    assert!(repository.is_clean());
}

#[test]
fn the_last_line_of_tools_test_counts_the_tests() {
    let real = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/test");
    let real = fs::read_to_string(real).expect("tools/test");
    let run = |lit: &str| {
        let repository = Repository::new(README, "", "");
        repository.write("tools/test", &real);
        repository.write("tools/rocm-env", "#!/bin/sh\n");
        let cargo = "#!/bin/sh\n[ \"$1\" != test ] || echo 'test result: ok. 4 passed; 0 failed; 2 ignored; 0 measured'\n";
        repository.write("bin/cargo", cargo);
        repository.write("bin/npm", "#!/bin/sh\n");
        repository.write("llvm-tests/run", &format!("#!/bin/sh\n{lit}\n"));
        let path = std::env::var("PATH").expect("a path");
        let output = Command::new(repository.path().join("tools/test"))
            .env(
                "PATH",
                format!("{}:{path}", repository.path().join("bin").display()),
            )
            .output()
            .expect("tools/test");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let last = printed.lines().last().unwrap_or_default().to_owned();
        (output.status.code(), last)
    };
    let lit = "printf 'Total Discovered Tests: 9\\n  Unsupported: 1 (1%%)\\n  Passed     : 5 (5%%)\\n  Failed     : 3 (3%%)\\n'; exit";
    assert_eq!(
        run(&format!("{lit} 1")),
        (Some(1), "17 passed, 3 failed".to_owned())
    );
    assert_eq!(
        run("echo '  Passed: 5 (100.00%)'"),
        // lit runs twice: on ROCr and on the simulator.
        (Some(0), "22 passed, 0 failed".to_owned())
    );
    // lit did not start.
    assert_eq!(run("exit 9"), (Some(9), "12 passed, 1 failed".to_owned()));
}
