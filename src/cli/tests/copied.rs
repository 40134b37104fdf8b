//! A copy of the program, and an installation that is not complete, name no command that needs a checkout.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Command lines that need other files of devprof, and their exit statuses.
const COMMANDS: [(&[&str], i32); 5] = [
    (&["demo"], 1),
    (&["run", "true"], 1),
    (&["run", "--library", "lib.so", "--model", "true"], 1),
    (&["flags", "--coverage", "--clang", "./clang++"], 1),
    (&["doctor"], 3),
];

/// A clang that instruments device code and has no device side of the profile runtime.
const CLANG: &str = r#"#!/bin/sh
case "$*" in
*--version*) echo 'clang version 22.1.8' ;;
*-print-resource-dir*) echo /nonexistent ;;
*-emit-llvm*) echo '@__llvm_profile_raw_version = weak_odr constant i64 72057594037927946' ;;
esac
"#;

fn devprof(program: &Path, arguments: &[&str]) -> Output {
    let dir = program.parent().unwrap();
    let path = format!("{}:/usr/bin:/bin", dir.display());
    Command::new(program)
        .args(arguments)
        .current_dir(dir)
        .env_remove("DEVPROF_LIBRARY")
        .env("LD_PRELOAD", "./libdevprof.so")
        .env("PATH", path)
        .output()
        .unwrap()
}

fn assert_names_no_checkout(text: &str, arguments: &[&str]) {
    for word in ["cargo", "checkout", "tools/"] {
        assert!(
            !text.contains(word),
            "{arguments:?} mentions {word}: {text}"
        );
    }
}

fn check(name: &str, is_installation: bool) {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&root);
    let dir = root.join("bin");
    fs::create_dir_all(&dir).unwrap();
    if is_installation {
        fs::create_dir_all(root.join("lib/devprof")).unwrap();
    }
    let program = dir.join("devprof");
    fs::write(dir.join("lib.so"), "").unwrap();
    let remedy = if is_installation {
        "install devprof again"
    } else {
        "run the devprof of an installation"
    };
    // By another process: a program that a concurrent test starts would inherit a file that is open for writing here, and the
    // kernel would refuse to execute it (ETXTBSY).
    let write = "cp \"$2\" devprof && printf %s \"$1\" > clang++ && chmod +x clang++";
    let mut programs = Command::new("sh");
    programs.args(["-c", write, "sh", CLANG, env!("CARGO_BIN_EXE_devprof")]);
    assert!(programs.current_dir(&dir).status().unwrap().success());
    for (arguments, status) in COMMANDS {
        let output = devprof(&program, arguments);
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {text}");
        assert!(text.contains(remedy), "{arguments:?}: {text}");
        assert_names_no_checkout(&text, arguments);
    }
}

#[test]
fn a_copy_names_the_installation() {
    check("copied", false);
}

#[test]
fn an_incomplete_installation_is_installed_again() {
    check("incomplete", true);
}

#[test]
fn the_help_names_no_checkout() {
    let program = Path::new(env!("CARGO_BIN_EXE_devprof"));
    for verb in [
        "run", "flags", "inspect", "extract", "merge", "report", "stats", "export", "doctor",
        "demo",
    ] {
        let output = devprof(program, &["help", verb]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("Usage: devprof"), "{verb}: {text}");
        assert_names_no_checkout(&text, &[verb]);
    }
}
