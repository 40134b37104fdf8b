//! Traces of earlier versions of the format are read completely. fixtures/version-1.hip says how version-1.trace was made.

use crate::files::*;
use serde_json::Value;
use std::path::{Path, PathBuf};

const INIT: &str = "__amd_rocclr_initHeap";
const ADD: &str = "add(int*, int)";
const SCALE: &str = "scale(int*, int)";

/// Runs a command that reads the trace, which must not be damaged.
fn run(dir: &Path, arguments: &str) -> Run {
    let run = succeed(dir, arguments);
    assert_eq!(run.stderr, "");
    run
}

/// A new directory with the trace.
fn version_1(test: &str) -> PathBuf {
    written(test, include_bytes!("../../../../fixtures/version-1.trace"))
}

fn export(dir: &Path, out: &str) -> PathBuf {
    run(dir, &format!("export a.trace -o {out}"));
    dir.join(out)
}

#[test]
fn stats_and_exports_read_version_1() {
    let dir = version_1("version-1");
    let report: Value = serde_json::from_slice(&run(&dir, "stats --json a.trace").stdout).unwrap();
    assert_eq!(report["dispatches"], 5);
    assert_table(
        elements(&report["kernels"]),
        "name | total
        __amd_rocclr_initHeap | 326600
        add(int*, int) | 165940
        scale(int*, int) | 132130",
    );

    // The number of the GPU is not recorded, its node is.
    let by_agent = run(&dir, "stats --by agent a.trace");
    assert!(
        by_agent.text().contains("\nAgent 1 gfx1100\n"),
        "{}",
        by_agent.text()
    );

    let rows = csv::Reader::from_path(export(&dir, "out.csv")).unwrap();
    let rows: Vec<_> = rows.into_records().map(Result::unwrap).collect();
    let column = |n: usize| rows.iter().map(|row| row[n].to_owned()).collect::<Vec<_>>();
    assert_eq!(column(7), [INIT, ADD, ADD, SCALE, SCALE]);
    assert_eq!(column(3), ["0"; 5]);
    assert_eq!(column(8), ["1", "1", "3", "2", "4"]);

    let lines = json_lines(&export(&dir, "out.jsonl"));
    for (kind, count) in [
        ("agent", 1),
        ("queue", 2),
        ("kernel", 17),
        ("call", 4),
        ("dispatch", 5),
    ] {
        assert_eq!(of_type(&lines, kind).len(), count, "{kind}");
    }

    assert_database(
        &export(&dir, "out.db"),
        "
            SELECT count(*) FROM kernels k JOIN regions r USING (stack_id) WHERE k.agent_type = 'GPU'
            = 5
            SELECT sum(duration) FROM kernels
            = 624670
        ",
    );
}

#[test]
#[ignore = "needs node and an npm package; tools/test runs it"]
fn perfettos_trace_processor_reads_version_1() {
    assert_perfetto(
        &export(&version_1("version-1-perfetto"), "out.pftrace"),
        "
            SELECT t.name, s.name FROM slice s JOIN track t ON s.track_id = t.id ORDER BY 1, 2
            = null | hipLaunchKernel
            = null | hipLaunchKernel
            = null | hipLaunchKernel
            = null | hipLaunchKernel
            = Queue 1 | scale(int*, int)
            = Queue 1 | scale(int*, int)
            = Queue 2 | __amd_rocclr_initHeap
            = Queue 2 | add(int*, int)
            = Queue 2 | add(int*, int)
            SELECT count(*) FROM flow
            = 5
        ",
    );
}
