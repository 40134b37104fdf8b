//! What the statistics count, and what they leave out.

use crate::files::*;
use serde_json::Value;
use std::fs;

#[test]
fn kernels_stand_by_total_time_and_what_has_no_duration_is_apart() {
    let file = directory("stats").join("a.trace");
    fs::write(&file, trace()).unwrap();
    let output = devprof(&[&"stats", &"--json", &file]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("1 dispatch never seen to end"), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let all = 10_000 + 4500 + 3000 + 100;
    let expected = [
        ("says \"a, b\"", GRAPH, 10 * GRAPH, 10, 10, 10),
        // One in the agent's clock, 400 ticks of 10 ns.
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
fn the_table_is_aligned_and_the_csv_is_read_back() {
    let file = directory("stats-table").join("a.trace");
    fs::write(&file, trace()).unwrap();
    let shown = String::from_utf8(devprof(&[&"stats", &file]).stdout).unwrap();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(
        lines[1].trim_start(),
        "1000  10.000 µs     10 ns     10 ns     10 ns  56.8 %  says \"a, b\""
    );
    let colored = devprof(&[&"--color=always", &"stats", &file]);
    let colored = String::from_utf8(colored.stdout).unwrap();
    assert_eq!(
        colored,
        shown.replacen(lines[0], &format!("\x1b[1m{}\x1b[0m", lines[0]), 1)
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
