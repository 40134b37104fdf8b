//! `devprof demo`, from the directory into which cargo builds it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The libraries that the demo loads. Cargo builds them as dependencies of this test, into the test's directory.
const LIBRARIES: [&str; 2] = ["libhsa_sim.so", "libdevprof.so"];

/// A directory with the program and some libraries.
fn directory(name: &str, libraries: &[&str]) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    let test = std::env::current_exe().unwrap();
    fs::hard_link(env!("CARGO_BIN_EXE_devprof"), dir.join("devprof")).unwrap();
    // In directories of cargo, the program is next to this file.
    fs::write(dir.join(".cargo-lock"), "").unwrap();
    for library in libraries {
        fs::hard_link(test.with_file_name(library), dir.join(library)).unwrap();
    }
    dir
}

fn demo(dir: &Path) -> Output {
    Command::new(dir.join("devprof"))
        .args(["demo", "--output"])
        .arg(dir.join("out"))
        .output()
        .unwrap()
}

#[test]
fn the_demo_shows_the_counters_of_each_function_and_the_profiles_written() {
    let dir = directory("demo", &LIBRARIES);
    let output = demo(&dir);
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    assert_eq!(stderr, "");
    // 64 work-items: every fourth calls the function, with an even argument; 63 iterations of `for n in 0..item % 3`.
    let lines = stdout.lines().map(|line| line.split_whitespace().collect());
    let lines: Vec<Vec<&str>> = lines.collect();
    for expected in [
        &["halved(unsigned", "int)", "device", "function", "16", "16"][..],
        &["branch", "kernel", "64", "16"],
        &["loop", "kernel", "64", "63"],
    ] {
        let times = lines.iter().filter(|line| *line == expected).count();
        // Two GPUs, two code objects.
        assert_eq!(times, 4, "{expected:?} in\n{stdout}");
    }
    // The next steps are devprof's own commands.
    let merge = format!(
        "  devprof merge {} -o demo.profdata\n",
        dir.join("out").display()
    );
    assert!(stdout.contains(&merge), "{stdout}");
    assert!(
        stdout.contains("\n  devprof report a --profile "),
        "{stdout}"
    );
    assert!(stdout.contains("\n\"entered\" is "), "{stdout}");
    for number in ["", ".1", ".2", ".3"] {
        let path = dir.join(format!("out/gfx1100{number}.demo.profraw"));
        assert!(path.exists(), "{}", path.display());
        assert!(stdout.contains(path.to_str().unwrap()), "{stdout}");
    }
}

#[test]
fn without_its_libraries_the_demo_prints_the_command_that_builds_them() {
    for (name, library) in [("demo-none", 0), ("demo-simulator", 1)] {
        let output = demo(&directory(name, &LIBRARIES[..library]));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        // Only the missing ones are named.
        for (n, name) in LIBRARIES.iter().enumerate() {
            assert_eq!(stderr.contains(name), n >= library, "{stderr}");
        }
        let build = "cargo build -p devprof -p hsa-sim\n";
        assert!(
            stderr.replace("--release ", "").ends_with(build),
            "{stderr}"
        );
    }
}
