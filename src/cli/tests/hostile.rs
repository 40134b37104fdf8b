//! Hostile files: each command ends in time, within its memory, and with a message that names the limit.

use fuzz::hostile::{FILES, Hostile};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Limit on the address space of a command, in KiB.
const MEMORY: u32 = 512 << 10;
/// A command takes less than 2 s if it was compiled with optimizations and the machine is idle.
const TIME: Duration = Duration::from_secs(120);

#[test]
fn limits_hold_for_a_file_and_not_for_each_part() {
    for hostile in &FILES {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(hostile.name);
        hostile.write(&file).unwrap();
        let temporary = dir.path().join("tmp");
        fs::create_dir(&temporary).unwrap();
        let output = run(hostile, &file, &temporary);
        let err = String::from_utf8_lossy(&output.stderr);
        let first: Vec<&str> = err.lines().take(4).collect();
        assert!(err.contains(hostile.message), "{}: {first:?}", hostile.name);
        assert!(
            output.status.code().is_some_and(|code| code < 4),
            "{}: {first:?}",
            hostile.name
        );
        // Two code objects of 256 MiB are the most.
        let written = fs::read_dir(dir.path().join("out")).into_iter().flatten();
        let written = written.map(|entry| entry.unwrap().metadata().unwrap().len());
        assert!(written.sum::<u64>() <= 512 << 20, "{}", hostile.name);
    }
}

/// A command of the shell, run in a directory.
fn shell(dir: &Path, command: &str) -> Output {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(dir);
    shell.env("devprof", env!("CARGO_BIN_EXE_devprof"));
    shell.output().unwrap()
}

#[test]
fn extracted_files_respect_the_umask() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.co"), fuzz::corpus::RAW_11).unwrap();
    for (umask, expected) in [("077", 0o600), ("022", 0o644)] {
        let output = shell(
            dir.path(),
            &format!("umask {umask}; $devprof extract a.co -o {umask}"),
        );
        assert!(output.status.success(), "{output:?}");
        let file = String::from_utf8(output.stdout).unwrap();
        let mode = fs::metadata(dir.path().join(file.trim_end()))
            .unwrap()
            .mode();
        assert_eq!(mode & 0o777, expected, "{umask}");
    }
}

#[test]
fn names_of_files_need_not_be_utf_8() {
    let dir = tempfile::tempdir().unwrap();
    let name = OsStr::from_bytes(b"a\xff.co");
    fs::write(dir.path().join(name), fuzz::corpus::RAW_11).unwrap();
    let output = shell(dir.path(), "$devprof inspect --json a*.co");
    assert!(output.status.success(), "{output:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let file = &json["files"][0];
    assert_eq!(file["file"], "a\u{fffd}.co");
    assert_eq!(file["found"][0]["location"]["file"], "a\u{fffd}.co");
}

/// Runs the command on the file with limited memory. `temporary` is its directory for temporary files. The
/// readers' files have no names: nothing is left if the command is killed.
fn run(hostile: &Hostile, file: &Path, temporary: &Path) -> Output {
    let dir = file.parent().unwrap().to_str().unwrap();
    let arguments = hostile.arguments.iter().map(|argument| {
        let argument = argument.replace("FILE", file.to_str().unwrap());
        argument.replace("DIR", dir)
    });
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -v {MEMORY} && exec \"$@\""), "sh"])
        .arg(env!("CARGO_BIN_EXE_devprof"))
        .args(arguments)
        .env("TMPDIR", temporary)
        .stdout(Stdio::null())
        .stderr(fs::File::create(file.with_extension("err")).unwrap())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        let reads = hostile.arguments[0] != "merge";
        let named = fs::read_dir(temporary).unwrap().filter(|_| reads).count();
        if named > 0 || start.elapsed() > TIME {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!(
                "{}: {named} temporary files, {:?}",
                hostile.name,
                start.elapsed()
            );
        }
        thread::sleep(Duration::from_millis(5));
    }
    let mut output = child.wait_with_output().unwrap();
    output.stderr = fs::read(file.with_extension("err")).unwrap();
    output
}
