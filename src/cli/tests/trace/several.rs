//! `devprof export` of several traces to one output.

use crate::files::*;
use crate::records::{one_of_each, query};
use crate::xplane::xprof_hosts;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tracefile::format::{HEADER_SIZE, Header, RECORD_SIZE, Record};

/// How much later than the others the second host booted, in nanoseconds.
const LATER: u64 = 5_000_000;

/// A process, when its trace started (on its host's system clock), when its host booted, and when its kernel started.
struct Program {
    name: &'static str,
    pid: u32,
    host: &'static str,
    started: u64,
    boot: u64,
    kernel: u64,
}

/// Two processes on one host, and one on another host with the ID of the first.
const PROGRAMS: [Program; 3] = [
    Program {
        name: "rank0.trace",
        pid: 4242,
        host: "a host",
        started: 1000,
        boot: STARTED_UNIX,
        kernel: 2000,
    },
    Program {
        name: "rank1.trace",
        pid: 5000,
        host: "a host",
        started: 1200,
        boot: STARTED_UNIX,
        kernel: 2500,
    },
    Program {
        name: "rank2.trace",
        pid: 4242,
        host: "b, \"host\"",
        started: 1100,
        boot: STARTED_UNIX + LATER,
        kernel: 2200,
    },
];

impl Program {
    /// A trace with a call that launches a kernel, a copy, a range, a name and a pause. All IDs are the same in each trace.
    fn trace(&self) -> Vec<u8> {
        let header = Header::new(
            self.pid,
            1_000_000_000,
            self.started,
            self.boot + self.started,
        );
        let mut records = definitions_of(self.pid, self.host);
        records.extend([
            call(1, 7, 10, 1500, 1700).seal(),
            timed(
                dispatch(1, 0, 1, 1, 1),
                1600,
                self.kernel,
                self.kernel + 400,
            )
            .seal(),
        ]);
        records.extend(one_of_each());
        file_with(&header, &records)
    }
}

/// Writes the traces of the programs. Returns their paths.
fn traces(dir: &Path) -> Vec<PathBuf> {
    let write = |program: &Program| {
        let path = dir.join(program.name);
        fs::write(&path, program.trace()).unwrap();
        path
    };
    PROGRAMS.iter().map(write).collect()
}

/// Exports traces to a file or directory in `dir`. Returns its path, the status, and stdout with stderr.
fn export(traces: &[PathBuf], dir: &Path, out: &str, options: &[&str]) -> (PathBuf, i32, String) {
    let out = dir.join(out);
    let mut arguments: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&"export", &"-o", &out];
    arguments.extend(traces.iter().map(|trace| trace as &dyn AsRef<_>));
    arguments.extend(options.iter().map(|option| option as &dyn AsRef<_>));
    let output = devprof(&arguments);
    let text = String::from_utf8(output.stdout.clone()).unwrap() + &stderr(&output);
    (out, output.status.code().unwrap(), text)
}

/// Exports the traces of the programs without a problem.
fn export_all(dir: &Path, out: &str, options: &[&str]) -> PathBuf {
    let (out, status, text) = export(&traces(dir), dir, out, options);
    assert_eq!(status, 0, "{text}");
    let counts = ": 3 traces, 3 dispatches, 3 API calls, 3 copies, 3 markers\n";
    assert!(
        options.contains(&"--csv-of") || text.contains(counts),
        "{text}"
    );
    let note = "the traces are of 2 hosts or boots";
    assert_eq!(text.matches(note).count(), 1, "{text}");
    out
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

#[test]
fn json_lines_have_the_number_of_their_trace_and_times_of_one_clock() {
    let dir = directory("several-json");
    let found = lines(&export_all(&dir, "out.jsonl", &[]));
    let of = |kind: &str, fields: &[&str]| -> Vec<Value> {
        let of_kind = found.iter().filter(|line| line["type"] == kind);
        of_kind
            .map(|line| fields.iter().map(|field| line[*field].clone()).collect())
            .collect()
    };
    let path = |name: &str| dir.join(name).display().to_string();
    assert_eq!(
        of(
            "trace",
            &["trace", "file", "version", "pid", "started", "started_unix"]
        ),
        [
            json!([1, path("rank0.trace"), 1, 4242, 1000, STARTED_UNIX + 1000]),
            json!([2, path("rank1.trace"), 1, 5000, 1200, STARTED_UNIX + 1200]),
            json!([
                3,
                path("rank2.trace"),
                1,
                4242,
                1100 + LATER,
                STARTED_UNIX + LATER + 1100
            ]),
        ]
    );
    assert_eq!(
        of("process", &["trace", "pid", "host"]),
        [
            json!([1, 4242, "a host"]),
            json!([2, 5000, "a host"]),
            json!([3, 4242, "b, \"host\""]),
        ]
    );
    assert_eq!(
        of(
            "dispatch",
            &[
                "trace",
                "id",
                "correlation",
                "submit",
                "start",
                "end",
                "observed"
            ]
        ),
        [
            json!([1, 1, 1, 1600, 2000, 2400, 2410]),
            json!([2, 1, 1, 1600, 2500, 2900, 2910]),
            json!([
                3,
                1,
                1,
                1600 + LATER,
                2200 + LATER,
                2600 + LATER,
                2610 + LATER
            ]),
        ]
    );
    assert_eq!(
        of("call", &["trace", "start", "end"])[2],
        json!([3, 1500 + LATER, 1700 + LATER])
    );
    assert_eq!(
        of("copy", &["trace", "submit", "start", "end", "observed"])[2],
        json!([3, 1550 + LATER, 1600 + LATER, 1700 + LATER, 1710 + LATER])
    );
    assert_eq!(
        of("marker", &["trace", "start", "end"])[2],
        json!([3, 1400 + LATER, 1800 + LATER])
    );
    assert_eq!(
        of("recording", &["trace", "time"])[2],
        json!([3, 1900 + LATER])
    );
    assert_eq!(
        of("queue", &["trace", "created"])[6],
        json!([3, 1001 + LATER])
    );
    // Every line has a number, and a trace's lines follow its first one.
    let numbers: Vec<_> = found
        .iter()
        .map(|line| line["trace"].as_u64().unwrap())
        .collect();
    assert!(numbers.is_sorted());
    let first_of_third = numbers.iter().position(|&number| number == 3).unwrap();
    assert_eq!(found[first_of_third]["type"], "trace");
    // The lines of one trace have no number.
    let one = &traces(&dir)[..1];
    let (out, status, text) = export(one, &dir, "one.jsonl", &[]);
    assert_eq!(
        (status, &*text),
        (
            0,
            &*format!(
                "{}: 1 dispatch, 1 API call, 1 copy, 1 marker\n",
                out.display()
            )
        )
    );
    assert!(
        lines(&out)
            .iter()
            .all(|line| line.get("trace").is_none() && line.get("file").is_none())
    );
}

#[test]
fn csv_rows_have_their_process_host_and_trace() {
    let dir = directory("several-csv");
    export_all(&dir, "out.csv", &["--csv-of", "all"]);
    let table = |name: &str| {
        let text = fs::read_to_string(dir.join(format!("out_{name}.csv"))).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let kernels = table("kernel_trace");
    assert!(
        kernels[0].ends_with(",\"Grid_Size_Z\",\"Process_Id\",\"Host\",\"Trace\""),
        "{}",
        kernels[0]
    );
    let row = |start: u64, more: &str| {
        let end = start + 400;
        format!(
            "\"KERNEL_DISPATCH\",\"Agent 1\",1,0,10,1,1,\"halved(unsigned int)\",1,{start},{end},512,16,24,0,106,256,2,1,1024,2,1,{more}"
        )
    };
    let second_host = "\"b, \"\"host\"\"\",3";
    assert_eq!(
        kernels[1..],
        [
            row(2000, "4242,\"a host\",1"),
            row(2500, "5000,\"a host\",2"),
            row(2200 + LATER, &format!("4242,{second_host}")),
        ]
    );
    let (start, end) = (1600 + LATER, 1700 + LATER);
    let copies = table("memory_copy_trace");
    assert!(copies[0].ends_with(",\"End_Timestamp\",\"Process_Id\",\"Host\",\"Trace\""));
    let copy = "\"MEMORY_COPY\",\"MEMORY_COPY_DEVICE_TO_DEVICE\",1,\"Agent 1\",\"Agent 2\",1";
    assert_eq!(copies[1], format!("{copy},1600,1700,4242,\"a host\",1"));
    assert_eq!(
        copies[3],
        format!("{copy},{start},{end},4242,{second_host}")
    );
    // rocprofv3 writes the process ID of API calls and markers.
    let calls = table("hip_api_trace");
    let call = "\"HIP_RUNTIME_API\",\"hipLaunchKernel\"";
    let (start, end) = (1500 + LATER, 1700 + LATER);
    assert_eq!(
        calls,
        [
            "\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\",\"Host\",\"Trace\"".to_owned(),
            format!("{call},4242,10,1,1500,1700,\"a host\",1"),
            format!("{call},5000,10,1,1500,1700,\"a host\",2"),
            format!("{call},4242,10,1,{start},{end},{second_host}"),
        ]
    );
    let markers = table("marker_api_trace");
    let (start, end) = (1400 + LATER, 1800 + LATER);
    assert!(
        markers[3].ends_with(&format!(",4242,10,0,{start},{end},{second_host}")),
        "{}",
        markers[3]
    );
    // One header for all rows.
    assert_eq!((kernels.len(), copies.len(), markers.len()), (4, 4, 4));
}

#[test]
fn the_database_keeps_processes_apart_and_its_references_are_valid() {
    let out = export_all(&directory("several-rocpd"), "out.db", &[]);
    let db = rusqlite::Connection::open(out).unwrap();
    let rows = |sql: &str| -> Vec<Value> {
        let mut query = db.prepare(sql).unwrap();
        let columns = query.column_count();
        let rows = query.query_map([], |row| {
            let value = |column| match row.get_ref(column).unwrap() {
                rusqlite::types::ValueRef::Integer(number) => json!(number),
                rusqlite::types::ValueRef::Text(text) => json!(str::from_utf8(text).unwrap()),
                other => panic!("{other:?}"),
            };
            Ok((0..columns).map(value).collect())
        });
        rows.unwrap().map(Result::unwrap).collect()
    };
    let later = |time: u64| time + LATER;
    for (sql, expected) in [
        (
            "SELECT count(*) FROM pragma_foreign_key_check",
            json!([[0]]),
        ),
        ("PRAGMA integrity_check", json!([["ok"]])),
        (
            "SELECT nid, pid, hostname, init FROM processes ORDER BY init",
            json!([
                [1, 4242, "a host", 1000],
                [1, 5000, "a host", 1200],
                [2, 4242, "b, \"host\"", later(1100)],
            ]),
        ),
        // The joins of the view do not combine rows of different traces.
        (
            "SELECT nid, pid, tid, name, start, \"end\", queue, stack_id FROM kernels ORDER BY start",
            json!([
                [
                    1,
                    4242,
                    10,
                    "halved(unsigned int)",
                    2000,
                    2400,
                    "Queue 1",
                    1
                ],
                [
                    1,
                    5000,
                    10,
                    "halved(unsigned int)",
                    2500,
                    2900,
                    "Queue 1",
                    1
                ],
                [
                    2,
                    4242,
                    10,
                    "halved(unsigned int)",
                    later(2200),
                    later(2600),
                    "Queue 1",
                    1
                ],
            ]),
        ),
        (
            "SELECT hostname, k.pid, r.name FROM kernels k JOIN regions r USING (guid, stack_id)
            JOIN processes USING (guid) ORDER BY k.start",
            json!([
                ["a host", 4242, "hipLaunchKernel"],
                ["a host", 5000, "hipLaunchKernel"],
                ["b, \"host\"", 4242, "hipLaunchKernel"],
            ]),
        ),
        (
            "SELECT nid, pid, start, src_agent_abs_index, dst_agent_abs_index FROM memory_copies ORDER BY start, pid",
            json!([
                [1, 4242, 1600, 1, 2],
                [1, 5000, 1600, 1, 2],
                [2, 4242, later(1600), 1, 2]
            ]),
        ),
        (
            "SELECT name, start FROM markers ORDER BY start, name",
            json!([
                ["a host", 1400],
                ["a host", 1400],
                ["b, \"host\"", later(1400)]
            ]),
        ),
        (
            "SELECT count(*), count(DISTINCT guid) FROM rocpd_info_agent",
            json!([[6, 3]]),
        ),
        (
            "SELECT count(*), count(DISTINCT value) FROM rocpd_metadata WHERE tag = 'guid'",
            json!([[3, 3]]),
        ),
        (
            "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd\\_%' ESCAPE '\\'",
            json!([[60]]),
        ),
    ] {
        assert_eq!(Value::Array(rows(sql)), expected, "{sql}");
    }
}

#[test]
#[ignore = "needs node and an npm package; tools/test runs it"]
fn perfettos_trace_processor_keeps_processes_apart() {
    let dir = directory("several-perfetto");
    let out = export_all(&dir, "out.pftrace", &[]);
    let later = |time: u64| time + LATER;
    let second = "process 4242 on b, \"host\"";
    let gpu = |of: &str| format!("GPU 1 gfx1100 ({of})");
    let (first, sibling) = ("process 4242 on a host", "process 5000 on a host");
    let app = |of: &str| format!("./app ({of})");
    let queries = [
        (
            "SELECT name FROM stats WHERE value > 0 AND severity IN ('error', 'data_loss')",
            json!([]),
        ),
        (
            "SELECT p.name, t.name, s.name, s.ts, s.dur FROM slice s JOIN process_track t ON s.track_id = t.id \
             JOIN process p USING (upid) WHERE s.category IN ('kernel', 'copy') ORDER BY s.ts, 1",
            json!([
                [
                    gpu(first),
                    "Copies device to device",
                    "Copy device to device",
                    1600,
                    100
                ],
                [
                    gpu(sibling),
                    "Copies device to device",
                    "Copy device to device",
                    1600,
                    100
                ],
                [gpu(first), "Queue 1", "halved(unsigned int)", 2000, 400],
                [gpu(sibling), "Queue 1", "halved(unsigned int)", 2500, 400],
                [
                    gpu(second),
                    "Copies device to device",
                    "Copy device to device",
                    later(1600),
                    100
                ],
                [
                    gpu(second),
                    "Queue 1",
                    "halved(unsigned int)",
                    later(2200),
                    400
                ],
            ]),
        ),
        (
            "SELECT p.name, tid, s.name, s.ts, s.dur FROM slice s JOIN thread_track t ON s.track_id = t.id \
             JOIN thread USING (utid) JOIN process p USING (upid) WHERE s.category = 'api' ORDER BY s.ts, 1",
            json!([
                [app(first), 10, "hipLaunchKernel", 1500, 200],
                [app(sibling), 10, "hipLaunchKernel", 1500, 200],
                [app(second), 10, "hipLaunchKernel", later(1500), 200],
            ]),
        ),
        // The names of a trace are not those of another one.
        (
            "SELECT p.name, s.name, s.ts FROM slice s JOIN thread_track t ON s.track_id = t.id \
             JOIN thread USING (utid) JOIN process p USING (upid) WHERE s.category = 'marker' ORDER BY s.ts, 1",
            json!([
                [app(first), "a host", 1400],
                [app(sibling), "a host", 1400],
                [app(second), "b, \"host\"", later(1400)],
            ]),
        ),
        (
            "SELECT p.name, s.ts, s.dur FROM slice s JOIN process_track t ON s.track_id = t.id \
             JOIN process p USING (upid) WHERE s.category = 'recording' ORDER BY s.ts, 1",
            json!([
                [app(first), 1900, 500],
                [app(sibling), 1900, 1000],
                [app(second), later(1900), 700]
            ]),
        ),
        // Flows do not connect different processes.
        (
            "SELECT c.ts, k.ts, k.name FROM flow JOIN slice c ON slice_out = c.id JOIN slice k ON slice_in = k.id \
             ORDER BY 1, 2",
            json!([
                [1500, 1600, "Copy device to device"],
                [1500, 1600, "Copy device to device"],
                [1500, 2000, "halved(unsigned int)"],
                [1500, 2500, "halved(unsigned int)"],
                [later(1500), later(1600), "Copy device to device"],
                [later(1500), later(2200), "halved(unsigned int)"],
            ]),
        ),
        (
            "SELECT p.name, c.ts, value FROM counter c JOIN process_counter_track t ON c.track_id = t.id \
             JOIN process p USING (upid) ORDER BY c.ts, 1",
            json!([
                [gpu(first), 1600, 1],
                [gpu(sibling), 1600, 1],
                [gpu(first), 2400, 0],
                [gpu(sibling), 2900, 0],
                [gpu(second), later(1600), 1],
                [gpu(second), later(2600), 0],
            ]),
        ),
        // Processes: three programs and the two GPUs of each. The ID of the second program 4242 is replaced.
        (
            "SELECT count(*), count(DISTINCT pid) FROM process WHERE upid != 0",
            json!([[9, 9]]),
        ),
        (
            "SELECT name, pid < 4194304 FROM process WHERE name LIKE './app%' ORDER BY upid",
            json!([[app(first), 1], [app(sibling), 1], [app(second), 0]]),
        ),
    ];
    let sql: Vec<_> = queries.iter().map(|(sql, _)| *sql).collect();
    for ((sql, expected), answer) in queries.iter().zip(query(&out, &sql)) {
        assert_eq!(answer, *expected, "{sql}");
    }
    // Without other hosts, Perfetto's process ID is enough.
    let (out, status, text) = export(&traces(&dir)[..2], &dir, "one-host.pftrace", &[]);
    assert_eq!(status, 0, "{text}");
    assert!(!text.contains("realtime clocks"), "{text}");
    let sql = "SELECT name, pid FROM process WHERE upid != 0 AND pid < 4194304 ORDER BY pid";
    let gpus = "SELECT DISTINCT p.name FROM slice s JOIN process_track t ON s.track_id = t.id \
        JOIN process p USING (upid) WHERE s.category = 'kernel' ORDER BY 1";
    assert_eq!(
        query(&out, &[sql, gpus]),
        [
            json!([["./app", 4242], ["./app", 5000]]),
            json!([[gpu("process 4242")], [gpu("process 5000")]]),
        ]
    );
}

#[test]
#[ignore = "needs Perfetto's protobuf classes from PyPI; tools/test runs it"]
fn perfetto_has_a_sequence_with_names_and_flows_for_each_trace() {
    let out = export_all(&directory("several-sequences"), "out.pftrace", &[]);
    let check = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/perfetto-check");
    let output = Command::new(check).arg(&out).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    // That of the first trace.
    assert_eq!(
        found["clocks"],
        json!({"6": 1000, "1": STARTED_UNIX + 1000})
    );
    let slices = found["slices"].as_array().unwrap();
    let markers = slices
        .iter()
        .filter(|slice| slice["categories"][0] == "marker");
    let names: Vec<_> = markers
        .map(|slice| slice["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["a host", "a host", "b, \"host\""]);
    let tracks: BTreeSet<u64> = slices
        .iter()
        .map(|slice| slice["track"].as_u64().unwrap())
        .collect();
    // A thread, a queue, copies and pauses in each trace.
    assert_eq!(tracks.len(), 3 * 4);
    // Each call has a flow to its kernel, and one to its copy.
    let flows: Vec<_> = found["flows"].as_object().unwrap().values().collect();
    assert_eq!(flows.len(), 3 * 2);
    assert!(
        flows
            .iter()
            .all(|flow| flow[0] == "hipLaunchKernel" && flow.as_array().unwrap().len() == 2)
    );
}

/// The names of the profiles in a log directory with one run.
fn profiles(logs: &Path) -> BTreeSet<String> {
    let runs: Vec<_> = fs::read_dir(logs.join("plugins/profile"))
        .unwrap()
        .collect();
    assert_eq!(runs.len(), 1);
    let run = runs[0].as_ref().unwrap().path();
    // The start of the first trace.
    assert!(run.ends_with("2023_11_14_22_13_20"), "{}", run.display());
    let profiles = fs::read_dir(run).unwrap();
    profiles
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn xplane_profiles_are_the_hosts_of_one_run() {
    let dir = directory("several-xplane");
    let logs = export_all(&dir, "logs/", &["-f", "xplane"]);
    let expected = [
        "a_host_4242.xplane.pb",
        "a_host_5000.xplane.pb",
        "b___host__4242.xplane.pb",
    ];
    assert_eq!(profiles(&logs), expected.map(str::to_owned).into());
    assert_eq!(
        fs::read_dir(&logs).unwrap().count(),
        1,
        "a temporary file is left"
    );
    // A process with the same ID on the same host, after it was booted again.
    let again = Program {
        boot: STARTED_UNIX + 900_000_000_000,
        ..PROGRAMS[0]
    };
    let path = dir.join("again.trace");
    fs::write(&path, again.trace()).unwrap();
    let (logs, status, text) = export(
        &[traces(&dir)[0].clone(), path],
        &dir,
        "again/",
        &["-f", "xplane"],
    );
    assert_eq!(status, 0, "{text}");
    let expected = ["a_host_4242.xplane.pb", "a_host_4242_2.xplane.pb"];
    assert_eq!(profiles(&logs), expected.map(str::to_owned).into());
}

#[test]
#[ignore = "needs XProf from PyPI; tools/test runs it"]
fn xprof_shows_several_processes_as_hosts_with_one_start() {
    let logs = export_all(&directory("several-xprof"), "logs/", &["-f", "xplane"]);
    let mut hosts = xprof_hosts(&logs);
    hosts.sort_by_key(|host| host["host"].as_str().unwrap().to_owned());
    let found: Vec<_> = hosts
        .iter()
        .map(|host| {
            let (host_plane, gpu) = (
                &host["planes"]["/host:CPU"],
                &host["planes"]["/device:GPU:0"],
            );
            let environment = &host["planes"]["Task Environment"]["stats"];
            json!([
                host["run"],
                host["host"],
                gpu["stats"]["process_id"],
                host_plane["lines"]["Host Threads/10"][1]["name"],
                host_plane["lines"]["Host Threads/10"][1]["start"],
                gpu["lines"]["Queue #1(Compute)"][0]["start"],
                environment["profile_start_time"],
            ])
        })
        .collect();
    // All times relate to the start of the first trace.
    let run = "2023_11_14_22_13_20";
    let start = (STARTED_UNIX + 1000).to_string();
    let later = (LATER as f64, LATER);
    assert_eq!(
        found,
        [
            json!([
                run,
                "a_host_4242",
                "4242",
                "hipLaunchKernel",
                500.0,
                1000.0,
                start
            ]),
            json!([
                run,
                "a_host_5000",
                "5000",
                "hipLaunchKernel",
                500.0,
                1500.0,
                start
            ]),
            json!([
                run,
                "b___host__4242",
                "4242",
                "hipLaunchKernel",
                later.0 + 500.0,
                later.0 + 1200.0,
                start
            ]),
        ]
    );
    // XProf's trace viewer shows all of them together: process, name and start in microseconds.
    let events = hosts[0]["all_hosts"]["traceEvents"].as_array().unwrap();
    let is_name = |event: &&Value| event["name"] == "process_name";
    let names: Vec<_> = events.iter().filter(is_name).collect();
    let process = |event: &Value| {
        let is_named = |name: &&&Value| name["pid"] == event["pid"];
        names.iter().find(is_named).unwrap()["args"]["name"].clone()
    };
    let kernels = events
        .iter()
        .filter(|event| event["name"] == "halved(unsigned int)");
    let mut kernels: Vec<_> = kernels
        .map(|event| json!([process(event), event["ts"].as_f64()]))
        .collect();
    kernels.sort_by_key(ToString::to_string);
    assert_eq!(
        kernels,
        [
            json!(["a_host_4242 /device:GPU:0", 1.0]),
            json!(["a_host_5000 /device:GPU:0", 1.5]),
            json!(["b___host__4242 /device:GPU:0", (later.0 + 1200.0) / 1000.0]),
        ]
    );
}

#[test]
fn directories_and_patterns_name_the_same_traces() {
    let dir = directory("several-names");
    fs::create_dir(dir.join("in")).unwrap();
    let all = traces(&dir.join("in"));
    fs::write(dir.join("in/notes.txt"), "not a trace").unwrap();
    let (expected, status, text) = export(&all, &dir, "files.jsonl", &[]);
    assert_eq!(status, 0, "{text}");
    let expected = fs::read(expected).unwrap();
    for name in ["in", "in/*.trace", "i*/rank[0-2].trace"] {
        let (out, status, text) = export(&[dir.join(name)], &dir, "out.jsonl", &[]);
        assert_eq!(status, 0, "{name}: {text}");
        assert!(fs::read(out).unwrap() == expected, "{name}");
    }
    // The only trace has its default output.
    let output = devprof(&[&"export", &dir.join("in/*2.trace")]);
    let printed = String::from_utf8(output.stdout).unwrap();
    let out = dir.join("in/rank2.pftrace");
    assert!(printed.starts_with(&out.display().to_string()), "{printed}");
    // Statistics take the same names.
    let stats = |names: &[PathBuf]| {
        let mut arguments: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&"stats", &"--by", &"process"];
        arguments.extend(names.iter().map(|name| name as &dyn AsRef<_>));
        let output = devprof(&arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        output.stdout
    };
    assert!(stats(&[dir.join("in")]) == stats(&all));
}

#[test]
fn traces_that_cannot_be_in_one_output_are_errors_and_leave_no_file() {
    let dir = directory("several-refused");
    let all = traces(&dir);
    fs::copy(&all[0], dir.join("copy")).unwrap();
    fs::write(dir.join("other"), "not a trace").unwrap();
    let pipe = CString::new(dir.join("pipe").as_os_str().as_bytes()).unwrap();
    // SAFETY: the path is a C string that outlives the call.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    let many: Vec<String> = (0..501).map(|number| format!("missing{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let two = ["rank0.trace", "rank1.trace"];
    for (names, options, status, expected) in [
        (
            &two[..],
            &[][..],
            2,
            "there are 2 traces: name the output with -o",
        ),
        (
            &["rank0.trace", "./rank0.trace"],
            &["-o", "out.csv"],
            2,
            "rank0.trace is given twice: remove one",
        ),
        (
            &["rank0.trace", "copy"],
            &["-o", "out.csv"],
            2,
            "are the same trace, of process 4242: remove one",
        ),
        (
            &two,
            &["-o", "out.xplane.pb"],
            2,
            "name a log directory, such as -o logs/",
        ),
        (
            &two,
            &["-f", "xplane", "-o", "-"],
            2,
            "name a log directory, such as -o logs/",
        ),
        (
            &two,
            &["-f", "csv", "-o", "rank1.trace"],
            2,
            "rank1.trace is the trace itself",
        ),
        (
            &["rank0.trace", "pipe"],
            &["-o", "out.csv"],
            2,
            "pipe together with other traces",
        ),
        (
            &["rank0.trace", "other"],
            &["-o", "out.db"],
            1,
            "other: not a trace of devprof",
        ),
        (
            &["rank0.trace", "missing"],
            &["-o", "out.db"],
            1,
            "missing: No such file",
        ),
        (
            &["rank0.trace", "*.none"],
            &["-o", "out.db"],
            1,
            "*.none: no file matches",
        ),
        (
            &many,
            &["-o", "out.db"],
            2,
            "cannot export 501 traces to one database, at most 500",
        ),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_devprof"));
        let output = command
            .arg("export")
            .args(names)
            .args(options)
            .current_dir(&dir)
            .output()
            .unwrap();
        let text = stderr(&output);
        assert_eq!(
            output.status.code(),
            Some(status),
            "{names:?} {options:?}: {text}"
        );
        assert!(text.contains(expected), "{names:?} {options:?}: {text}");
        assert!(output.stdout.is_empty(), "{names:?} {options:?}");
    }
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 6);
    for program in &PROGRAMS {
        assert!(fs::read(dir.join(program.name)).unwrap() == program.trace());
    }
}

#[test]
fn a_damaged_trace_is_reported_and_the_others_are_complete() {
    let dir = directory("several-damaged");
    let all = traces(&dir);
    let mut damaged = PROGRAMS[1].trace();
    // The dispatch.
    let dispatch = HEADER_SIZE + (definitions().len() + 1) * RECORD_SIZE;
    damaged[dispatch + 50] ^= 1;
    fs::write(&all[1], damaged).unwrap();
    let (out, status, text) = export(&all, &dir, "out.jsonl", &[]);
    assert_eq!(status, 3, "{text}");
    assert!(
        text.contains(&format!("rank1.trace: byte {dispatch}: a damaged record")),
        "{text}"
    );
    let counts = ": 3 traces, 2 dispatches, 3 API calls, 3 copies, 3 markers; parts of the traces are damaged\n";
    assert!(text.contains(counts), "{text}");
    let found = lines(&out);
    let dispatches = found.iter().filter(|line| line["type"] == "dispatch");
    let traces: Vec<_> = dispatches.map(|line| &line["trace"]).collect();
    assert_eq!(traces, [1, 3]);
}
