//! Kernels with the same name in several code objects, which the trace tells apart by their build IDs.

use crate::files::*;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use tracefile::format::{Header, Kernel, Record, flag};

const FIRST: &str = "aaaaaaaa00000001";
const SECOND: &str = "aaaaaaaa00000002";

/// A trace with a dispatch of each of these kernels. Kernels 4 and 5 have the name of kernel 1, which has no build ID, and kernel 6
/// has another one with the same base name.
fn trace(pid: u32, kernels: &[u32]) -> Vec<u8> {
    let mut records = definitions_of(pid, "a host");
    records.extend(texts(&[
        (40, FIRST),
        (41, SECOND),
        (42, "_ZN5space6halvedEi"),
    ]));
    for (id, name, build_id) in [(4, 4, 40), (5, 4, 41), (6, 42, 41)] {
        let kernel = with!(Kernel::new(id, 0); name = name, agent = 1, build_id = build_id);
        records.push(kernel.seal());
    }
    let dispatches = kernels.iter().zip(1..).map(|(&kernel, id)| {
        let (start, end) = (id * 10_000, id * 10_000 + u64::from(kernel) * 100);
        timed(dispatch(id, flag::NO_CALL, 1, kernel, 0), start, start, end).seal()
    });
    records.extend(dispatches);
    let header = Header::new(pid, 1_000_000_000, 1000, STARTED_UNIX);
    file_with(&header, &records)
}

/// A directory with two traces.
fn two(test: &str) -> PathBuf {
    let dir = written(test, &trace(4242, &[4, 5, 4, 6]));
    fs::write(dir.join("b.trace"), trace(5000, &[5, 6])).unwrap();
    dir
}

#[test]
fn kernels_of_one_name_have_a_row_for_each_code_object() {
    let dir = two("build-ids-stats");
    let rows = |arguments: &str| -> Value {
        let report = succeed(&dir, &format!("stats --json {arguments}"));
        serde_json::from_slice(&report.stdout).unwrap()
    };
    let both = rows("a.trace b.trace");
    assert_table(
        elements(&both["kernels"]),
        "name | build_id | calls | total
        space::halved(int) | aaaaaaaa00000002 | 2 | 1200
        halved(unsigned int) | aaaaaaaa00000002 | 2 | 1000
        halved(unsigned int) | aaaaaaaa00000001 | 2 | 800",
    );
    let gaps = rows("--gaps a.trace");
    assert_table(
        elements(&gaps["gaps"][0]["after"]),
        "name | build_id | calls
        halved(unsigned int) | aaaaaaaa00000001 | 2
        halved(unsigned int) | aaaaaaaa00000002 | 1",
    );
    let short = rows("--short-names a.trace");
    assert_table(
        elements(&short["kernels"]),
        "name | build_id | calls | total
        halved | null | 4 | 1900",
    );
    let csv = succeed(&dir, "stats --csv a.trace");
    let csv = csv::Reader::from_reader(&csv.stdout[..]).into_records();
    let ids: Vec<_> = csv.map(|row| row.unwrap()[10].to_owned()).collect();
    assert_eq!(ids, [FIRST, SECOND, SECOND]);
}

/// Only build IDs of names that occur several times, if they are known, and as many characters as are needed.
#[test]
fn tables_have_the_beginnings_of_build_ids() {
    let dir = written("build-ids-text", &trace(4242, &[1, 4, 5, 6]));
    let names = |text: &str| -> Vec<String> {
        let lines = text.lines().skip(1);
        let after = |line: &str| line.split_once(" %  ").map(|(_, name)| name.to_owned());
        lines.filter_map(after).collect()
    };
    let all = succeed(&dir, "stats a.trace");
    assert_eq!(
        names(all.text()),
        [
            "space::halved(int)",
            "halved(unsigned int) [aaaaaaaa00000002]",
            "halved(unsigned int) [aaaaaaaa00000001]",
            "halved(unsigned int)",
        ]
    );
    fs::write(dir.join("a.trace"), trace(4242, &[5, 6])).unwrap();
    let once = succeed(&dir, "stats a.trace");
    assert_eq!(
        names(once.text()),
        ["space::halved(int)", "halved(unsigned int)"]
    );
}

#[test]
fn exports_have_the_build_ids() {
    let dir = two("build-ids-export");
    succeed(&dir, "export a.trace -o a.jsonl");
    let lines = json_lines(&dir.join("a.jsonl"));
    assert_table(
        of_type(&lines, "kernel").into_iter().skip(3),
        "id | name | build_id
        4 | halved(unsigned int) | aaaaaaaa00000001
        5 | halved(unsigned int) | aaaaaaaa00000002
        6 | space::halved(int) | aaaaaaaa00000002",
    );
    assert!(of_type(&lines, "kernel")[0].get("build_id").is_none());

    succeed(&dir, "export a.trace b.trace -o both.csv");
    let rows = csv::Reader::from_path(dir.join("both.csv")).unwrap();
    let rows = rows.into_records().map(Result::unwrap);
    let ids: Vec<_> = rows.map(|row| row[row.len() - 1].to_owned()).collect();
    assert_eq!(ids, [FIRST, SECOND, FIRST, SECOND, SECOND, SECOND]);

    succeed(&dir, "export a.trace -o a.db");
    assert_database(
        &dir.join("a.db"),
        r#"
            SELECT d.dispatch_id, json_extract(s.extdata, '$.build_id') FROM rocpd_kernel_dispatch d
                JOIN rocpd_info_kernel_symbol s ON s.id = d.kernel_id ORDER BY 1
            = 1 | aaaaaaaa00000001
            = 2 | aaaaaaaa00000002
            = 3 | aaaaaaaa00000001
            = 4 | aaaaaaaa00000002
            SELECT extdata FROM rocpd_info_kernel_symbol WHERE id = 1
            = {}
        "#,
    );
}

#[test]
#[ignore = "needs node and an npm package; tools/test runs it"]
fn perfettos_trace_processor_shows_build_ids() {
    let dir = two("build-ids-perfetto");
    succeed(&dir, "export a.trace b.trace -o both.pftrace");
    assert_perfetto(
        &dir.join("both.pftrace"),
        "
            SELECT s.name, extract_arg(s.arg_set_id, 'debug.build_id') AS id, count(*) FROM slice s
                WHERE s.category = 'kernel' GROUP BY 1, 2 ORDER BY 1, 2
            = halved(unsigned int) | aaaaaaaa00000001 | 2
            = halved(unsigned int) | aaaaaaaa00000002 | 2
            = space::halved(int) | aaaaaaaa00000002 | 2
        ",
    );
}
