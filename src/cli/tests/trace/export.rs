//! `devprof export`: the outputs are read back and compared with the trace.

use crate::files::*;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tracefile::format::{Count, HEADER_SIZE, Kernel, RECORD_SIZE, Record, flag, pieces};

/// Exports to a file with this extension. Returns its path, the exit status and stderr.
fn export(trace: &[u8], dir: &Path, extension: &str) -> (PathBuf, Option<i32>, String) {
    let file = dir.join("a.trace");
    fs::write(&file, trace).unwrap();
    let out = dir.join(format!("out.{extension}"));
    let output = devprof(&[&"export", &file, &"-o", &out]);
    (out, output.status.code(), stderr(&output))
}

fn json(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

#[test]
fn csv_has_rocprofv3s_columns_and_one_line_per_dispatch() {
    let (out, status, stderr) = export(&trace(), &directory("csv"), "csv");
    assert_eq!(status, Some(0), "{stderr}");
    let text = fs::read_to_string(&out).unwrap();
    let header = "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Thread_Id\",\"Dispatch_Id\",\
        \"Kernel_Id\",\"Kernel_Name\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\",\
        \"LDS_Block_Size\",\"Scratch_Size\",\"VGPR_Count\",\"Accum_VGPR_Count\",\"SGPR_Count\",\
        \"Workgroup_Size_X\",\"Workgroup_Size_Y\",\"Workgroup_Size_Z\",\"Grid_Size_X\",\
        \"Grid_Size_Y\",\"Grid_Size_Z\"\n";
    assert!(text.starts_with(header), "{text}");
    let first = "\"KERNEL_DISPATCH\",\"Agent 1\",1,0,10,1,1,\"halved(unsigned int)\",1,2000,3000,\
        512,16,24,0,106,256,2,1,1024,2,1\n";
    assert_eq!(text.lines().nth(1), first.lines().next());
    let rows: Vec<_> = csv::Reader::from_path(&out)
        .unwrap()
        .records()
        .map(Result::unwrap)
        .collect();
    assert_eq!(rows.len() as u64, 8 + GRAPH);
    let times = |row: usize| (rows[row][9].to_owned(), rows[row][10].to_owned());
    // Times of the agent's clock: 400 ticks of 10 ns. Completion was observed at 10,000.
    assert_eq!(times(3), ("6000".into(), "10000".into()));
    assert_eq!(&rows[3][1], "Agent 2");
    assert_eq!(rows[3][7], *long_name());
    assert_eq!(&rows[4][7], "says \"a, b\"");
    // Start and end of the unfinished dispatch are the time of its submission.
    assert_eq!(times(5), ("9000".into(), "9000".into()));
    assert!(rows[8..].iter().all(|row| &row[8] == "5"));
}

#[test]
fn json_has_one_object_per_record() {
    let (out, status, stderr) = export(&trace(), &directory("json"), "jsonl");
    assert_eq!(status, Some(0), "{stderr}");
    let lines = json(&out);
    assert_eq!(lines[0]["type"], "trace");
    assert_eq!(lines[0]["started_unix"], STARTED_UNIX);
    for (kind, count) in [
        ("process", 1),
        ("agent", 2),
        ("queue", 3),
        ("kernel", 3),
        ("call", 4),
        ("dispatch", 8 + GRAPH as usize),
    ] {
        assert_eq!(of_type(&lines, kind).len(), count, "{kind}");
    }
    assert_eq!(
        of_type(&lines, "process")[0]["command"],
        "./app \"an argument\""
    );
    assert_eq!(of_type(&lines, "kernel")[0]["symbol"], "_Z6halvedj");
    assert_eq!(of_type(&lines, "call")[3]["name"], "hipGraphLaunch");
    let dispatches = of_type(&lines, "dispatch");
    for (at, field, value) in [
        (0, "clock", Value::from("system")),
        (0, "kernel_name", "halved(unsigned int)".into()),
        (0, "correlation", 1.into()),
        (0, "observed", 3010.into()),
        (2, "clock", "scaled".into()),
        (3, "clock", "agent".into()),
        (3, "start", 6000.into()),
        (4, "clock", "none".into()),
        (4, "correlation", Value::Null),
        (4, "start", Value::Null),
        (5, "unfinished", true.into()),
        (5, "end", Value::Null),
        (6, "vendor", true.into()),
        (6, "moved", true.into()),
        (6, "vgprs", Value::Null),
        (6, "kernel_name", "(unknown kernel)".into()),
        (0, "vgprs", 24.into()),
    ] {
        assert_eq!(dispatches[at][field], value, "dispatch {at}, {field}");
    }
}

#[test]
fn the_database_has_rocpds_views_and_valid_references() {
    let (out, status, stderr) = export(&trace(), &directory("rocpd"), "db");
    assert_eq!(status, Some(0), "{stderr}");
    let db = rusqlite::Connection::open(out).unwrap();
    let number = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let text = |sql: &str| {
        db.query_row(sql, [], |row| row.get::<_, String>(0))
            .unwrap()
    };
    for (sql, expected) in [
        ("SELECT count(*) FROM pragma_foreign_key_check", 0),
        (
            "SELECT count(*) FROM pragma_foreign_key_list((SELECT name FROM sqlite_master
            WHERE name LIKE 'rocpd_kernel_dispatch\\_%' ESCAPE '\\'))",
            9,
        ),
        ("SELECT count(*) FROM kernels", 8 + GRAPH as i64),
        ("SELECT count(*) FROM regions", 4),
        (
            "SELECT sum(duration) FROM kernels WHERE name = 'halved(unsigned int)'",
            3000,
        ),
        ("SELECT start FROM kernels WHERE dispatch_id = 4", 6000),
        (
            "SELECT agent_abs_index FROM kernels WHERE dispatch_id = 4",
            2,
        ),
        ("SELECT start FROM kernels WHERE dispatch_id = 6", 9000),
        // A call can be joined with its dispatches.
        (
            "SELECT count(*) FROM kernels k JOIN regions r USING (stack_id)
            WHERE r.name = 'hipGraphLaunch'",
            GRAPH as i64,
        ),
        ("SELECT count(*) FROM kernels WHERE stack_id IS NULL", 2),
        ("SELECT pid FROM processes", 4242),
        ("SELECT count(*) FROM threads", 3),
        ("SELECT count(*) FROM kernel_symbols", 4),
        (
            "SELECT vgpr_count + sgpr_count FROM kernels WHERE dispatch_id = 1",
            130,
        ),
    ] {
        assert_eq!(number(sql), expected, "{sql}");
    }
    for (sql, expected) in [
        (
            "SELECT value FROM rocpd_metadata WHERE tag = 'schema_version'",
            "3",
        ),
        ("SELECT command FROM processes", "./app \"an argument\""),
        (
            "SELECT kernel_name FROM kernel_symbols WHERE id = 1",
            "_Z6halvedj",
        ),
        (
            "SELECT category || queue FROM kernels WHERE id = 1",
            "KERNEL_DISPATCHQueue 1",
        ),
        ("PRAGMA integrity_check", "ok"),
    ] {
        assert_eq!(text(sql), expected, "{sql}");
    }
    let suffix = text("SELECT value FROM rocpd_metadata WHERE tag = 'uuid'");
    let suffixed = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name LIKE '%' || ?";
    let tables: i64 = db.query_row(suffixed, [&suffix], |row| row.get(0)).unwrap();
    assert_eq!(tables, 20);
}

#[test]
#[ignore = "needs Perfetto's protobuf classes from PyPI; tools/test runs it"]
fn perfetto_has_a_process_for_each_gpu_a_track_for_each_queue_and_flows() {
    let (out, status, stderr) = export(&trace(), &directory("perfetto"), "pftrace");
    assert_eq!(status, Some(0), "{stderr}");
    let check = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/perfetto-check");
    let output = Command::new(check).arg(&out).output().unwrap();
    assert!(output.status.success(), "{}", crate::files::stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    // BUILTIN_CLOCK_BOOTTIME and BUILTIN_CLOCK_REALTIME.
    assert_eq!(found["clocks"], json!({"6": 1000, "1": STARTED_UNIX}));
    let slices = found["slices"].as_array().unwrap();
    let of = |category: &str| -> Vec<&Value> {
        let is = |slice: &&Value| slice["categories"][0] == category;
        slices.iter().filter(is).collect()
    };
    let (kernels, calls) = (of("kernel"), of("api"));
    assert_eq!(kernels.len() as u64, 8 + GRAPH);
    // Kernels must not nest: the importer would end the inner one with the outer one.
    assert!(kernels.iter().all(|kernel| kernel["depth"] == 0));
    let kernel = |id: u64| {
        let found = kernels
            .iter()
            .find(|kernel| kernel["args"]["dispatch"] == id);
        *found.unwrap()
    };
    for (id, field, expected) in [
        (1, "name", json!("halved(unsigned int)")),
        (1, "ts", json!(2000)),
        (1, "dur", json!(1000)),
        (1, "process", json!("GPU 1 gfx1100")),
        (1, "track_name", json!("Queue 1")),
        (2, "dur", json!(2000)),
        (2, "track_name", json!("Queue 1")),
        (3, "track_name", json!("Queue 2")),
        (4, "process", json!("GPU 2 gfx1100")),
        (4, "name", json!(long_name())),
        (4, "ts", json!(6000)),
        (4, "dur", json!(4000)),
        (5, "dur", Value::Null),
        (6, "ts", json!(9000)),
        (6, "dur", Value::Null),
        (7, "flows", json!([])),
        (5, "flows", json!([])),
    ] {
        assert_eq!(kernel(id)[field], expected, "dispatch {id}, {field}");
    }
    assert_ne!(kernel(1)["track"], kernel(2)["track"]);
    // The track whose last slice ended first is used again.
    assert_eq!(kernel(1)["track"], kernel(6)["track"]);
    assert_eq!(kernel(2)["track"], kernel(7)["track"]);
    for (id, argument, expected) in [
        (1, "grid", json!("1024 2 1")),
        (1, "lds", json!(512)),
        (1, "vgprs", json!(24)),
        (4, "clock", json!("agent")),
        (6, "unfinished", json!(true)),
        (7, "vgprs", Value::Null),
    ] {
        assert_eq!(
            kernel(id)["args"][argument],
            expected,
            "dispatch {id}, {argument}"
        );
    }
    assert_eq!(calls.len(), 4);
    assert!(
        calls
            .iter()
            .all(|call| call["pid"] == 4242 && call["process"] == "./app")
    );
    let graph = calls
        .iter()
        .find(|call| call["name"] == "hipGraphLaunch")
        .unwrap();
    assert_eq!(graph["tid"], 11);
    assert_eq!(graph["args"]["dispatches"], GRAPH);
    // One flow from the call to each of its dispatches.
    let flows = found["flows"].as_object().unwrap();
    let of_graph: Vec<_> = flows
        .values()
        .filter(|flow| flow[0] == "hipGraphLaunch")
        .collect();
    assert_eq!(of_graph.len() as u64, GRAPH);
    assert!(
        of_graph
            .iter()
            .all(|flow| flow.as_array().unwrap().len() == 2)
    );
    assert_eq!(graph["flows"].as_array().unwrap().len() as u64, GRAPH);
    assert_eq!(
        found["counters"]["Queue 1 in flight"],
        json!(in_flight_in_queue_1())
    );
}

/// A message of Perfetto's format, with the fields that a counter has.
#[derive(Clone, PartialEq, prost::Message)]
struct Packets {
    #[prost(message, repeated, tag = "1")]
    packets: Vec<Packet>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Packet {
    #[prost(uint64, tag = "8")]
    timestamp: u64,
    #[prost(message, optional, tag = "11")]
    event: Option<CounterEvent>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct CounterEvent {
    #[prost(int64, optional, tag = "30")]
    value: Option<i64>,
}

/// The values of all counters, in the order of the file.
fn counters(path: &Path) -> Vec<(u64, i64)> {
    let packets: Packets = prost::Message::decode(&*fs::read(path).unwrap()).unwrap();
    let values = packets.packets.into_iter();
    let value = |packet: Packet| Some((packet.timestamp, packet.event?.value?));
    values.filter_map(value).collect()
}

#[test]
fn dispatches_in_flight_are_counted_even_if_kernels_overtake() {
    let in_queue = |id, submit, start, end| timed(dispatch(id, 0, 1, 1, 0), submit, start, end);
    // In the order of their ends.
    let dispatches = [
        in_queue(1, 30, 35, 40),
        in_queue(2, 20, 25, 50),
        in_queue(3, 10, 15, 60),
        in_queue(4, 70, 75, 80),
    ];
    let expected = [
        (10, 1),
        (20, 2),
        (30, 3),
        (40, 2),
        (50, 1),
        (60, 0),
        (70, 1),
        (80, 0),
    ];
    let dir = directory("in-flight");
    let records = [definitions(), dispatches.map(Record::seal).to_vec()].concat();
    let (out, status, stderr) = export(&file(&records), &dir, "pftrace");
    assert_eq!(status, Some(0), "{stderr}");
    assert_eq!(counters(&out), expected);

    // A dispatch that too many have overtaken changes no value that was written, and the counter is correct again when
    // it ends.
    let count = 20_000;
    let mut dispatches: Vec<_> = (1..=count)
        .map(|n| in_queue(n, 100 * n, 100 * n + 10, 100 * n + 20))
        .collect();
    dispatches.push(in_queue(count + 1, 50, 60, 100 * count + 30));
    let dispatches = dispatches.into_iter().map(Record::seal).collect();
    let records = [definitions(), dispatches].concat();
    let (out, ..) = export(&file(&records), &dir, "pftrace");
    let values = counters(&out);
    assert_eq!(values.len() as u64, 2 * (count + 1));
    assert!(values.is_sorted_by_key(|(time, _)| time));
    assert_eq!(values.last(), Some(&(100 * count + 30, 0)));
    assert!(values.iter().all(|&(_, number)| (0..=2).contains(&number)));
}

/// When the number of dispatches in flight changes in queue 1 of [`trace`]. A dispatch without times is in flight until
/// its completion is observed.
fn in_flight_in_queue_1() -> Vec<(u64, u64)> {
    vec![
        (1600, 1),
        (1610, 2),
        (3000, 1),
        (4500, 0),
        (9000, 1),
        (9000, 0),
        (10_900, 1),
        (11_100, 0),
    ]
}

#[test]
#[ignore = "needs node and an npm package; tools/test runs it"]
fn perfettos_own_trace_processor_loses_nothing() {
    let (out, status, stderr) = export(&trace(), &directory("perfetto-query"), "pftrace");
    assert_eq!(status, Some(0), "{stderr}");
    let of_kernels = "FROM slice s JOIN process_track t ON s.track_id = t.id \
        JOIN process p USING (upid) WHERE s.category = 'kernel'";
    let queries = [
        (
            "SELECT name FROM stats WHERE value > 0 AND severity IN ('error', 'data_loss')".into(),
            json!([]),
        ),
        (
            format!("SELECT p.name, t.name, count(*), sum(s.dur), max(s.depth) {of_kernels} GROUP BY 1, 2, t.id ORDER BY 1, 2, 3"),
            json!([
                ["GPU 1 gfx1100", "Queue 1", 2, 1000, 0],
                ["GPU 1 gfx1100", "Queue 1", 2, 2100, 0],
                ["GPU 1 gfx1100", "Queue 2", 2 + GRAPH, 500 + 10 * GRAPH, 0],
                ["GPU 2 gfx1100", "Queue 3", 2, 4000, 0],
            ]),
        ),
        (
            "SELECT p.name, p.pid, tid, s.name, s.ts, s.dur FROM slice s JOIN thread_track t ON s.track_id = t.id \
             JOIN thread USING (utid) JOIN process p USING (upid) WHERE s.category = 'api' ORDER BY s.ts"
                .into(),
            json!([
                ["./app", 4242, 10, "hipLaunchKernel", 1500, 200],
                ["./app", 4242, 11, "hipLaunchKernel", 2800, 1200],
                ["./app", 4242, 10, "hipLaunchKernel", 3400, 200],
                ["./app", 4242, 11, "hipGraphLaunch", 14_000, 2000],
            ]),
        ),
        (
            // One flow from each API call to each of its dispatches, and no others.
            "SELECT c.name, c.ts, count(*), count(DISTINCT k.id) FROM flow JOIN slice c ON slice_out = c.id \
             JOIN slice k ON slice_in = k.id WHERE c.category = 'api' AND k.category = 'kernel' GROUP BY c.id ORDER BY c.ts"
                .into(),
            json!([
                ["hipLaunchKernel", 1500, 2, 2],
                ["hipLaunchKernel", 2800, 2, 2],
                ["hipLaunchKernel", 3400, 1, 1],
                ["hipGraphLaunch", 14_000, GRAPH, GRAPH],
            ]),
        ),
        ("SELECT count(*) FROM flow".into(), json!([[5 + GRAPH]])),
        (
            "SELECT ts, value FROM counter c JOIN process_counter_track t ON c.track_id = t.id \
             WHERE t.name = 'Queue 1 in flight' ORDER BY c.id"
                .into(),
            json!(in_flight_in_queue_1()),
        ),
        (
            "SELECT t.name, p.name, max(value), count(*) FROM counter c JOIN process_counter_track t ON c.track_id = t.id \
             JOIN process p USING (upid) GROUP BY 1 ORDER BY 1"
                .into(),
            json!([
                ["Queue 1 in flight", "GPU 1 gfx1100", 2, 8],
                ["Queue 2 in flight", "GPU 1 gfx1100", GRAPH, 4 + 2 * GRAPH],
                ["Queue 3 in flight", "GPU 2 gfx1100", 2, 4],
            ]),
        ),
        (
            "SELECT key, display_value FROM slice JOIN args USING (arg_set_id) WHERE ts = 2000 AND key LIKE 'debug.%' ORDER BY 1"
                .into(),
            json!([
                ["debug.accum_vgprs", "0"],
                ["debug.clock", "system"],
                ["debug.correlation", "1"],
                ["debug.dispatch", "1"],
                ["debug.grid", "1024 2 1"],
                ["debug.kernel", "1"],
                ["debug.lds", "512"],
                ["debug.queue", "1"],
                ["debug.scratch", "16"],
                ["debug.sgprs", "106"],
                ["debug.submit", "1600"],
                ["debug.thread", "10"],
                ["debug.vgprs", "24"],
                ["debug.workgroup", "256 2 1"],
            ]),
        ),
    ];
    let check = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/perfetto-query");
    let sql = queries.iter().map(|(sql, _)| sql);
    let output = Command::new(check).arg(&out).args(sql).output().unwrap();
    assert!(output.status.success(), "{}", crate::files::stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), queries.len(), "{text}");
    for ((sql, expected), answer) in queries.iter().zip(answers) {
        assert_eq!(answer, *expected, "{sql}");
    }
}

#[test]
fn only_the_export_is_written_to_stdout() {
    let dir = directory("stdout");
    let (out, _, _) = export(&trace(), &dir, "csv");
    let expected = fs::read(out).unwrap();
    let file = dir.join("a.trace");
    for name in ["-", "/dev/stdout"] {
        let output = devprof(&[&"export", &file, &"-f", &"csv", &"-o", &name]);
        assert!(output.stdout == expected, "{name}: not only the export");
        let summary = "\nstdout: 1,008 dispatches\n";
        assert!(stderr(&output).ends_with(summary), "{}", stderr(&output));
        let mut shared = File::create(dir.join("shared")).unwrap();
        shared.write_all(b"before\n").unwrap();
        let status = Command::new(env!("CARGO_BIN_EXE_devprof"))
            .args(["export", "-f", "csv", "-o", name])
            .arg(&file)
            .stdout(shared)
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        let expected = [b"before\n", expected.as_slice()].concat();
        let shared = fs::read(dir.join("shared")).unwrap();
        assert!(
            shared == expected,
            "{name}: not the previous contents and the export"
        );
    }
    assert!(!dir.join("-").exists());
}

#[test]
fn each_trace_has_its_own_default_output() {
    let dir = directory("default-names");
    for (file, out) in [
        ("app.trace", "app.pftrace"),
        ("app.trace.123", "app.trace.123.pftrace"),
        ("app.trace.456", "app.trace.456.pftrace"),
        ("app", "app.pftrace"),
        ("v1.5", "v1.5.pftrace"),
    ] {
        fs::write(dir.join(file), trace()).unwrap();
        let output = devprof(&[&"export", &dir.join(file)]);
        let printed = String::from_utf8(output.stdout).unwrap();
        let begin = format!("{}: 1,008", dir.join(out).display());
        assert!(printed.starts_with(&begin), "{file}: {printed}");
        fs::remove_file(dir.join(out)).unwrap();
    }
    let csv = devprof(&[&"export", &dir.join("app.trace.123"), &"--csv-of=all"]);
    assert!(csv.status.success());
    assert!(dir.join("app.trace.123_kernel_trace.csv").exists());
}

#[test]
fn as_an_input_a_dash_is_a_file_name() {
    let dir = directory("dash");
    fs::write(dir.join("-"), trace()).unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_devprof"))
        .args(["export", "-", "-o", "out.pftrace"])
        .current_dir(&dir)
        .status()
        .unwrap();
    assert!(status.success());
    assert!(dir.join("out.pftrace").exists());
}

#[test]
fn a_trace_can_be_a_pipe_unless_it_is_read_twice() {
    let dir = directory("from-pipe");
    let (expected, _, _) = export(&trace(), &dir, "jsonl");
    let out = dir.join("from-pipe");
    for (format, status, expected) in [
        ("json", 0, "from-pipe: 1,008 dispatches"),
        ("perfetto", 2, "requires reading it twice"),
    ] {
        let mut piped = Command::new(env!("CARGO_BIN_EXE_devprof"))
            .args(["export", "/dev/stdin", "-f", format, "-o"])
            .arg(&out)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Fails if devprof exits without reading its input.
        let _ = piped.stdin.take().unwrap().write_all(&trace());
        let output = piped.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{format}");
        let shown = String::from_utf8(output.stdout.clone()).unwrap() + &stderr(&output);
        assert!(shown.contains(expected), "{shown}");
    }
    assert_eq!(fs::read(out).unwrap(), fs::read(expected).unwrap());
}

#[test]
fn progress_is_shown_only_on_a_terminal() {
    let mut records = definitions();
    records.push(call(1, 7, 10, 1500, 1700).seal());
    records.push(timed(dispatch(1, 0, 1, 1, 1), 1600, 2000, 3000).seal());
    let dir = directory("progress");
    let (_, status, stderr) = export(&file(&records), &dir, "csv");
    assert_eq!((status, &*stderr), (Some(0), ""));

    let (mut main, mut terminal) = (-1, -1);
    let (name, modes) = (std::ptr::null_mut(), std::ptr::null_mut());
    let size = libc::winsize {
        ws_row: 24,
        ws_col: 80,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: the pointers to the descriptors and the size are valid; those to the name and the modes may be null.
    let status = unsafe { libc::openpty(&mut main, &mut terminal, name, modes, &size) };
    assert_eq!(status, 0);
    // SAFETY: the descriptors are not owned by anything else.
    let (mut main, terminal) = unsafe { (File::from_raw_fd(main), File::from_raw_fd(terminal)) };
    let exported = Command::new(env!("CARGO_BIN_EXE_devprof"))
        .arg("export")
        .args([dir.join("a.trace").as_os_str(), "-fcsv".as_ref()])
        .stdout(Stdio::null())
        .stderr(terminal)
        .status();
    assert!(exported.unwrap().success());
    // Reading a terminal that no process has open returns what was written, and then an error.
    let mut shown = Vec::new();
    let _ = main.read_to_end(&mut shown);
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.contains("4.00 KiB of 6.62 KiB, "), "{shown:?}");
}

/// Names with special characters, and a trace with one dispatch for each.
fn special_names() -> (Vec<String>, Vec<u8>) {
    let names = [
        "a,b",
        "\"quoted\"",
        "two\r\nlines",
        "tab\tand nul\0",
        "\x1b[31mred\x1b[0m",
        "ü→𝄞",
        "",
        "=cmd()",
        &"k".repeat(10_240),
    ];
    let mut records = definitions();
    for (id, name) in (10..).zip(names) {
        records.extend(pieces(id, name).map(Record::seal));
        let mut kernel = Kernel::new(id.into(), 0);
        kernel.name = id.into();
        kernel.agent = 1.into();
        let at = 1000 * u64::from(id);
        let dispatch = dispatch(id.into(), flag::NO_CALL, 1, id, 0);
        records.push(kernel.seal());
        records.push(timed(dispatch, at, at + 100, at + 200).seal());
    }
    (names.map(str::to_owned).to_vec(), file(&records))
}

#[test]
fn special_characters_in_names_are_preserved_in_every_format() {
    let (names, trace) = special_names();
    let dir = directory("special");
    let (out, status, stderr) = export(&trace, &dir, "csv");
    assert_eq!(status, Some(0), "{stderr}");
    let rows = csv::Reader::from_path(out).unwrap().into_records();
    let column: Vec<_> = rows.map(|row| row.unwrap()[7].to_owned()).collect();
    assert_eq!(column, names);
    let (out, ..) = export(&trace, &dir, "jsonl");
    let lines = json(&out);
    let dispatches = of_type(&lines, "dispatch");
    let column: Vec<_> = dispatches.iter().map(|line| &line["kernel_name"]).collect();
    assert_eq!(column, names.iter().collect::<Vec<_>>());
    let (out, ..) = export(&trace, &dir, "db");
    let db = rusqlite::Connection::open(out).unwrap();
    let mut query = db.prepare("SELECT name FROM kernels ORDER BY id").unwrap();
    let column = query.query_map([], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(column.map(Result::unwrap).collect::<Vec<_>>(), names);

    let shown = devprof(&[&"stats", &dir.join("a.trace")]).stdout;
    let shown = String::from_utf8(shown).unwrap();
    assert_eq!(shown.lines().count(), 1 + names.len());
    assert!(!shown.contains('\x1b'), "{shown}");
    for escaped in [
        "two\\r\\nlines\n",
        "  \\u{1b}[31mred\\u{1b}[0m\n",
        "  ü→𝄞\n",
    ] {
        assert!(shown.contains(escaped), "{escaped} in:\n{shown}");
    }
}

#[test]
fn a_name_that_is_not_utf_8_is_reported_with_its_offset() {
    let mut records = definitions();
    let mut text = pieces(4, "x").next().unwrap();
    text.bytes[0] = 0xff;
    let at = records
        .iter()
        .position(|record| *record == pieces(4, "_Z6halvedj").next().unwrap().seal());
    let at = at.unwrap();
    records[at] = text.seal();
    records.push(timed(dispatch(1, flag::NO_CALL, 1, 1, 0), 1, 2, 3).seal());
    let (out, status, stderr) = export(&file(&records), &directory("not-utf-8"), "csv");
    assert_eq!(status, Some(3));
    let offset = HEADER_SIZE + at * RECORD_SIZE;
    let expected = format!("a.trace: byte {offset}: text 4 is not UTF-8\n");
    assert!(stderr.contains(&expected), "{stderr}");
    assert!(fs::read_to_string(out).unwrap().contains("\"(kernel 1)\""));
}

#[test]
fn names_are_not_demangled_with_no_demangle() {
    let file = directory("symbols").join("a.trace");
    fs::write(&file, trace()).unwrap();
    let output = devprof(&[&"export", &file, &"--format", &"csv", &"--no-demangle"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = fs::read_to_string(file.with_extension("csv")).unwrap();
    assert!(text.contains("\"_Z6halvedj\""), "{text}");
}

#[test]
fn missing_data_is_reported_once() {
    let mut bytes = trace();
    set(&mut bytes, Count::DroppedDispatches, 12);
    set(&mut bytes, Count::UnknownPackets, 3);
    set(&mut bytes, Count::Closed, 0);
    let (_, status, stderr) = export(&bytes, &directory("missing-data"), "jsonl");
    assert_eq!(status, Some(0));
    for line in [
        "12 dispatches dropped for lack of space",
        "3 packets not recorded because devprof does not know their type",
        "not closed: the program is still running or was killed",
        "2 dispatches without a recorded API call",
        "no record of the API call with correlation ID 4",
        "1 dispatch without an observed end",
        "1 dispatch without times",
        "1 dispatch with an end before the start",
    ] {
        assert_eq!(stderr.matches(line).count(), 1, "{line} in:\n{stderr}");
    }
    assert_eq!(stderr.lines().count(), 8, "{stderr}");
}

#[test]
fn at_most_ten_missing_calls_are_listed() {
    let mut records = definitions();
    records.extend((1..=50).map(|id| timed(dispatch(id, 0, 1, 1, 3 * id), 1, 2, 3).seal()));
    let (_, _, stderr) = export(&file(&records), &directory("missing-calls"), "csv");
    assert!(stderr.contains("correlation ID 30\n"), "{stderr}");
    assert!(!stderr.contains("correlation ID 33\n"), "{stderr}");
    assert!(
        stderr.contains("no record of 40 more API calls"),
        "{stderr}"
    );
}

#[test]
fn failed_exports_report_an_error_and_leave_no_file() {
    let dir = directory("refused");
    let valid = dir.join("valid.trace");
    fs::write(&valid, trace()).unwrap();
    let mut later = trace();
    later[8] = 3;
    fs::write(dir.join("later.trace"), later).unwrap();
    fs::write(dir.join("other.trace"), "not a trace").unwrap();
    fs::write(dir.join("short.trace"), &trace()[..100]).unwrap();
    // The cause is reported once.
    let output = devprof(&[&"export", &dir.join("missing.trace")]);
    let shown = stderr(&output);
    assert_eq!(shown.matches("No such file").count(), 1, "{shown}");
    for (file, out, expected) in [
        (
            "later.trace",
            "out.csv",
            "later.trace: trace version 3 is not supported",
        ),
        (
            "other.trace",
            "out.csv",
            "other.trace: not a trace of devprof",
        ),
        (
            "short.trace",
            "out.csv",
            "short.trace: the file is truncated after 100 bytes",
        ),
        ("missing.trace", "out.csv", "missing.trace: No such file"),
        ("valid.trace", "no/such/out.csv", "cannot write "),
    ] {
        let output = devprof(&[&"export", &dir.join(file), &"-o", &dir.join(out)]);
        assert_eq!(output.status.code(), Some(1), "{file} to {out}");
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
    let overwriting = devprof(&[&"export", &valid, &"-f", &"csv", &"-o", &valid]);
    assert!(stderr(&overwriting).contains("is the trace itself"));
    for out in ["out.txt", "valid.trace"] {
        let output = devprof(&[&"export", &valid, &"-o", &dir.join(out)]);
        assert_eq!(output.status.code(), Some(2), "{out}");
        let message = "has none of the extensions";
        assert!(stderr(&output).contains(message), "{out}");
    }
    assert_eq!(fs::read(&valid).unwrap(), trace());
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 4);
}

#[test]
fn each_damaged_record_is_reported_with_its_offset_and_the_rest_is_exported() {
    let mut records = definitions();
    let first = records.len();
    records.extend((1..=30).map(|id| timed(dispatch(id, 0, 1, 1, 0), 1, 2, 3).seal()));
    let valid = file(&records);
    let dir = directory("damaged");
    let offset = |record: usize| HEADER_SIZE + record * RECORD_SIZE;

    let mut one = valid.clone();
    one[offset(first + 4) + 50] ^= 1;
    let (out, status, stderr) = export(&one, &dir, "jsonl");
    assert_eq!(status, Some(3));
    let line = format!("a.trace: byte {}: a damaged record", offset(first + 4));
    assert!(stderr.contains(&line), "{stderr}");
    assert_eq!(of_type(&json(&out), "dispatch").len(), 29);

    let mut many = valid.clone();
    (first..first + 25).for_each(|record| many[offset(record) + 50] ^= 1);
    let (out, status, stderr) = export(&many, &dir, "jsonl");
    assert_eq!(status, Some(3));
    assert_eq!(stderr.matches(": a damaged record").count(), 11, "{stderr}");
    let rest = format!(
        "15 more of this kind, the last at byte {}",
        offset(first + 24)
    );
    assert!(stderr.contains(&rest), "{stderr}");
    assert_eq!(of_type(&json(&out), "dispatch").len(), 5);

    // Without the kernel's record its dispatches are still exported.
    let mut nameless = valid.clone();
    nameless[offset(first - 3) + 50] ^= 1;
    let (out, status, stderr) = export(&nameless, &dir, "jsonl");
    assert_eq!(status, Some(3));
    assert!(
        stderr.contains("30 dispatches of kernel 1, which has no valid record"),
        "{stderr}"
    );
    let lines = json(&out);
    assert_eq!(of_type(&lines, "dispatch").len(), 30);
    assert_eq!(of_type(&lines, "dispatch")[0]["kernel_name"], "(kernel 1)");
}
