//! Traces of earlier versions of the format are read completely. fixtures/version-1.hip says how version-1.trace was made.

use crate::files::*;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const VERSION_1: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../fixtures/version-1.trace"
);
const INIT: &str = "__amd_rocclr_initHeap";
const ADD: &str = "add(int*, int)";
const SCALE: &str = "scale(int*, int)";

/// Exports the trace, which must not be damaged.
fn export(dir: &Path, name: &str) -> PathBuf {
    let out = dir.join(name);
    let output = devprof(&[&"export", &VERSION_1, &"-o", &out]);
    assert_eq!((output.status.code(), &*stderr(&output)), (Some(0), ""));
    out
}

#[test]
fn stats_and_exports_read_version_1() {
    let dir = directory("version-1");
    let output = devprof(&[&"stats", &"--json", &VERSION_1]);
    assert_eq!((output.status.code(), &*stderr(&output)), (Some(0), ""));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["dispatches"], 5);
    let kernels = report["kernels"].as_array().unwrap().iter();
    let kernels: Vec<_> = kernels
        .map(|kernel| (kernel["name"].as_str().unwrap(), kernel["total"].as_u64()))
        .collect();
    let expected = [(INIT, 326_600), (ADD, 165_940), (SCALE, 132_130)];
    assert_eq!(kernels, expected.map(|(name, total)| (name, Some(total))));

    let rows = csv::Reader::from_path(export(&dir, "out.csv")).unwrap();
    let rows: Vec<_> = rows.into_records().map(Result::unwrap).collect();
    let column = |n: usize| rows.iter().map(|row| row[n].to_owned()).collect::<Vec<_>>();
    assert_eq!(column(7), [INIT, ADD, ADD, SCALE, SCALE]);
    assert_eq!(column(3), ["0"; 5]);
    assert_eq!(column(8), ["1", "1", "3", "2", "4"]);

    let text = fs::read_to_string(export(&dir, "out.jsonl")).unwrap();
    for (kind, count) in [
        ("agent", 1),
        ("queue", 2),
        ("kernel", 17),
        ("call", 4),
        ("dispatch", 5),
    ] {
        let found = text.matches(&format!("{{\"type\":\"{kind}\"")).count();
        assert_eq!(found, count, "{kind}");
    }

    let db = rusqlite::Connection::open(export(&dir, "out.db")).unwrap();
    let number = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let joined =
        "SELECT count(*) FROM kernels k JOIN regions r USING (stack_id) WHERE k.agent_type = 'GPU'";
    assert_eq!(number(joined), 5);
    assert_eq!(number("SELECT sum(duration) FROM kernels"), 624_670);
}

#[test]
#[ignore = "needs Perfetto's protobuf classes from PyPI; tools/test runs it"]
fn perfetto_has_everything_of_version_1() {
    let out = export(&directory("version-1-perfetto"), "out.pftrace");
    let check = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/perfetto-check");
    let output = Command::new(check).arg(&out).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let slices = found["slices"].as_array().unwrap();
    let track = |slice: &Value| {
        let track = slice["track_name"].as_str().unwrap();
        (track.to_owned(), slice["name"].as_str().unwrap().to_owned())
    };
    let mut tracks: Vec<_> = slices.iter().map(track).collect();
    tracks.sort();
    let launch = ("", "hipLaunchKernel");
    let expected = [
        launch,
        launch,
        launch,
        launch,
        ("Queue 1", SCALE),
        ("Queue 1", SCALE),
        ("Queue 2", INIT),
        ("Queue 2", ADD),
        ("Queue 2", ADD),
    ];
    let expected = expected.map(|(track, name)| (track.to_owned(), name.to_owned()));
    assert_eq!(tracks, expected);
    assert_eq!(found["flows"].as_object().unwrap().len(), 5);
}
