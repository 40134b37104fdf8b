//! `devprof stats`: what is counted and what is left out.

use crate::files::*;
use serde_json::Value;
use std::fs;

#[test]
fn kernels_are_sorted_by_total_time_without_dispatches_that_have_no_duration() {
    let file = directory("stats").join("a.trace");
    fs::write(&file, trace()).unwrap();
    let output = devprof(&[&"stats", &"--json", &file]);
    let stderr = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(
        stderr.contains("1 dispatch without an observed end"),
        "{stderr}"
    );
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let all = 10_000 + 4500 + 3000 + 100;
    let expected = [
        ("says \"a, b\"", GRAPH, 10 * GRAPH, 10, 10, 10),
        // One has times of the agent's clock: 400 ticks of 10 ns.
        (&*long_name(), 2, 4500, 2250, 500, 4000),
        ("halved(unsigned int)", 2, 3000, 1500, 1000, 2000),
        ("(unknown kernel)", 1, 100, 100, 100, 100),
    ];
    let kernels = report["kernels"].as_array().unwrap();
    assert_eq!(kernels.len(), expected.len());
    for (kernel, (name, calls, total, mean, min, max)) in kernels.iter().zip(expected) {
        assert_eq!(kernel["name"], name);
        assert_eq!(kernel["calls"], calls, "{name}");
        assert_eq!(kernel["total"], total, "{name}");
        assert_eq!(kernel["mean"], mean, "{name}");
        assert_eq!(kernel["min"], min, "{name}");
        assert_eq!(kernel["max"], max, "{name}");
        let share = 100.0 * total as f64 / all as f64;
        assert!(
            (kernel["share"].as_f64().unwrap() - share).abs() < 1e-9,
            "{name}"
        );
    }
    for (field, value) in [
        ("dispatches", 8 + GRAPH),
        ("unfinished", 1),
        ("without_times", 1),
        ("backwards", 1),
    ] {
        assert_eq!(report[field], value, "{field}");
    }
}

#[test]
fn the_table_is_aligned_and_the_csv_is_valid() {
    let file = directory("stats-table").join("a.trace");
    fs::write(&file, trace()).unwrap();
    let plain = String::from_utf8(devprof(&[&"stats", &file]).stdout).unwrap();
    let lines: Vec<&str> = plain.lines().collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(
        lines[1].trim_start(),
        "1000  10.000 µs     10 ns     10 ns     10 ns  56.8 %  says \"a, b\""
    );
    let colored = devprof(&[&"--color=always", &"stats", &file]);
    let colored = String::from_utf8(colored.stdout).unwrap();
    assert_eq!(
        colored,
        plain.replacen(lines[0], &format!("\x1b[1m{}\x1b[0m", lines[0]), 1)
    );
    let column = |line: &str, text| line.find(text).map(|at| line[..at].chars().count());
    assert_eq!(column(lines[0], "Kernel"), column(lines[3], "halved"));

    let output = devprof(&[&"stats", &"--csv", &"--no-demangle", &file]);
    let rows: Vec<_> = csv::Reader::from_reader(&output.stdout[..])
        .records()
        .map(Result::unwrap)
        .collect();
    let expected = ["_Z6halvedj", "2", "3000", "1500", "1000", "2000", "17.0455"];
    assert_eq!(rows[2], csv::StringRecord::from(expected.to_vec()));
}
