//! The README's first command, as a user runs it.

use std::process::Command;

#[test]
fn the_demo_shows_each_function_with_its_counts_and_the_files_written() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("demo");
    let output = Command::new(env!("CARGO_BIN_EXE_devprof"))
        .args(["demo", "--output"])
        .arg(&dir)
        .output()
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert_eq!(said, "");
    // 64 work-items: every fourth calls the function, with an even argument; 63 rounds of `for n in 0..item % 3`.
    let lines: Vec<Vec<&str>> = shown
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    for expected in [
        &["halved(unsigned", "int)", "device", "function", "16", "16"][..],
        &["branch", "kernel", "64", "16"],
        &["loop", "kernel", "64", "63"],
    ] {
        let times = lines.iter().filter(|line| *line == expected).count();
        assert_eq!(
            times, 4,
            "two GPUs, two code objects: {expected:?} in\n{shown}"
        );
    }
    for name in [
        "gfx1100.demo",
        "gfx1100.1.demo",
        "gfx1100.2.demo",
        "gfx1100.3.demo",
    ] {
        let path = dir.join(format!("{name}.profraw"));
        assert!(path.exists(), "{}", path.display());
        assert!(shown.contains(path.to_str().unwrap()), "{shown}");
    }
}
