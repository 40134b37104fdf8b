//! `devprof export`: the outputs are read back and compared with the trace.

use crate::files::*;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tracefile::format::{Count, Dispatch, HEADER_SIZE, Kernel, RECORD_SIZE, Record, flag, pieces};

/// Exports to a file with this extension in a new directory. Returns its path, the exit status and stderr.
fn export(trace: &[u8], test: &str, extension: &str) -> (PathBuf, i32, String) {
    let dir = written(test, trace);
    let out = format!("out.{extension}");
    let run = devprof(&dir, &format!("export a.trace -o {out}"));
    (dir.join(out), run.status, run.stderr)
}

/// Exports [`trace`] to a file with this extension in a new directory. Returns its path.
fn exported(test: &str, extension: &str) -> PathBuf {
    let (out, status, stderr) = export(&trace(), test, extension);
    assert_eq!(status, 0, "{stderr}");
    out
}

#[test]
fn csv_has_rocprofv3s_columns_and_one_line_per_dispatch() {
    let out = exported("csv", "csv");
    let text = fs::read_to_string(&out).unwrap();
    let header = "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Thread_Id\",\"Dispatch_Id\",\
        \"Kernel_Id\",\"Kernel_Name\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\",\
        \"LDS_Block_Size\",\"Scratch_Size\",\"VGPR_Count\",\"Accum_VGPR_Count\",\"SGPR_Count\",\
        \"Workgroup_Size_X\",\"Workgroup_Size_Y\",\"Workgroup_Size_Z\",\"Grid_Size_X\",\
        \"Grid_Size_Y\",\"Grid_Size_Z\"\n";
    assert!(text.starts_with(header), "{text}");
    let first = "\"KERNEL_DISPATCH\",\"GPU 0\",1,0,10,1,1,\"halved(unsigned int)\",1,2000,3000,\
        512,16,24,0,106,256,2,1,1024,2,1";
    assert_eq!(text.lines().nth(1), Some(first));
    let rows = csv::Reader::from_path(&out).unwrap().into_records();
    let rows: Vec<_> = rows.map(Result::unwrap).collect();
    assert_eq!(rows.len() as u64, 8 + GRAPH);
    for (row, column, expected) in [
        // Times of the agent's clock: 400 ticks of 10 ns. Completion was observed at 10,000.
        (3, 9, "6000"),
        (3, 10, "10000"),
        (3, 1, "GPU 1"),
        (3, 7, &long_name()),
        (4, 7, "says \"a, b\""),
        // Start and end of the unfinished dispatch are the time of its submission.
        (5, 9, "9000"),
        (5, 10, "9000"),
    ] {
        assert_eq!(&rows[row][column], expected, "row {row}, column {column}");
    }
    assert!(rows[8..].iter().all(|row| &row[8] == "5"));
}

#[test]
fn json_has_one_object_per_record() {
    let lines = json_lines(&exported("json", "jsonl"));
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
    for (kind, at, field, value) in [
        ("process", 0, "command", json!("./app \"an argument\"")),
        ("kernel", 0, "symbol", json!("_Z6halvedj")),
        ("call", 3, "name", json!("hipGraphLaunch")),
        ("dispatch", 0, "clock", json!("system")),
        ("dispatch", 0, "kernel_name", json!("halved(unsigned int)")),
        ("dispatch", 0, "correlation", json!(1)),
        ("dispatch", 0, "observed", json!(3010)),
        ("dispatch", 2, "clock", json!("scaled")),
        ("dispatch", 3, "clock", json!("agent")),
        ("dispatch", 3, "start", json!(6000)),
        ("dispatch", 4, "clock", json!("none")),
        ("dispatch", 4, "correlation", Value::Null),
        ("dispatch", 4, "start", Value::Null),
        ("dispatch", 5, "unfinished", json!(true)),
        ("dispatch", 5, "end", Value::Null),
        ("dispatch", 6, "vendor", json!(true)),
        ("dispatch", 6, "moved", json!(true)),
        ("dispatch", 6, "vgprs", Value::Null),
        ("dispatch", 6, "kernel_name", json!("(unknown kernel)")),
        ("dispatch", 0, "vgprs", json!(24)),
    ] {
        let found = &of_type(&lines, kind)[at][field];
        assert_eq!(*found, value, "{kind} {at}, {field}");
    }
}

#[test]
fn the_database_has_rocpds_views_and_valid_references() {
    assert_database(
        &exported("rocpd", "db"),
        r#"
            SELECT count(*) FROM pragma_foreign_key_list((SELECT name FROM sqlite_master
                WHERE name LIKE 'rocpd_kernel_dispatch\_%' ESCAPE '\'))
            = 9
            SELECT count(*) FROM kernels
            = 1008
            SELECT count(*) FROM regions
            = 4
            SELECT sum(duration) FROM kernels WHERE name = 'halved(unsigned int)'
            = 3000
            SELECT start, agent_abs_index FROM kernels WHERE dispatch_id = 4
            = 6000 | 2
            SELECT start FROM kernels WHERE dispatch_id = 6
            = 9000
            -- A call can be joined with its dispatches.
            SELECT count(*) FROM kernels k JOIN regions r USING (stack_id) WHERE r.name = 'hipGraphLaunch'
            = 1000
            SELECT count(*) FROM kernels WHERE stack_id IS NULL
            = 2
            SELECT pid FROM processes
            = 4242
            SELECT count(*) FROM threads
            = 3
            SELECT count(*) FROM kernel_symbols
            = 4
            SELECT vgpr_count + sgpr_count FROM kernels WHERE dispatch_id = 1
            = 130
            SELECT value FROM rocpd_metadata WHERE tag = 'schema_version'
            = "3"
            SELECT command FROM processes
            = ./app "an argument"
            SELECT kernel_name FROM kernel_symbols WHERE id = 1
            = _Z6halvedj
            SELECT category || queue FROM kernels WHERE id = 1
            = KERNEL_DISPATCHQueue 1
            -- The names of all tables have the suffix.
            SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name LIKE '%' || (SELECT value
                FROM rocpd_metadata WHERE tag = 'uuid')
            = 20
        "#,
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
    let exported = |dispatches: Vec<Dispatch>| {
        let dispatches = dispatches.into_iter().map(Record::seal).collect();
        let trace = file(&[definitions(), dispatches].concat());
        let (out, status, stderr) = export(&trace, "in-flight", "pftrace");
        assert_eq!(status, 0, "{stderr}");
        counters(&out)
    };
    // In the order of their ends.
    let values = exported(vec![
        in_queue(1, 30, 35, 40),
        in_queue(2, 20, 25, 50),
        in_queue(3, 10, 15, 60),
        in_queue(4, 70, 75, 80),
    ]);
    let times = [10, 20, 30, 40, 50, 60, 70, 80];
    let numbers = [1, 2, 3, 2, 1, 0, 1, 0];
    assert_eq!(values, times.into_iter().zip(numbers).collect::<Vec<_>>());

    // A dispatch that too many have overtaken changes no value that was written, and the counter is correct again when
    // it ends.
    let count = 20_000;
    let mut dispatches: Vec<_> = (1..=count)
        .map(|n| in_queue(n, 100 * n, 100 * n + 10, 100 * n + 20))
        .collect();
    dispatches.push(in_queue(count + 1, 50, 60, 100 * count + 30));
    let values = exported(dispatches);
    assert_eq!(values.len() as u64, 2 * (count + 1));
    assert!(values.is_sorted_by_key(|(time, _)| time));
    assert_eq!(values.last(), Some(&(100 * count + 30, 0)));
    assert!(values.iter().all(|&(_, number)| (0..=2).contains(&number)));
}

#[test]
#[ignore = "needs node and an npm package; tools/test runs it"]
fn perfettos_own_trace_processor_loses_nothing() {
    assert_perfetto(
        &exported("perfetto-query", "pftrace"),
        &r#"
            SELECT p.name, t.name, count(*), sum(s.dur), max(s.depth) FROM slice s
                JOIN process_track t ON s.track_id = t.id JOIN process p USING (upid) WHERE s.category = 'kernel'
                GROUP BY 1, 2, t.id ORDER BY 1, 2, 3
            = GPU 0 gfx1100 | Queue 1 | 2 | 1000 | 0
            = GPU 0 gfx1100 | Queue 1 | 2 | 2100 | 0
            = GPU 0 gfx1100 | Queue 2 | 1002 | 10500 | 0
            = GPU 1 gfx1100 | Queue 3 | 2 | 4000 | 0
            SELECT clock_id, clock_value FROM clock_snapshot ORDER BY 1
            = 1 | 1700000000000000000
            = 6 | 1000
            SELECT extract_arg(s.arg_set_id, 'debug.dispatch'), s.name, s.ts, s.dur, p.name, t.name,
                extract_arg(s.arg_set_id, 'debug.clock'), extract_arg(s.arg_set_id, 'debug.vgprs'),
                extract_arg(s.arg_set_id, 'debug.unfinished') FROM slice s JOIN process_track t ON s.track_id = t.id
                JOIN process p USING (upid) WHERE s.category = 'kernel' AND s.ts NOT BETWEEN 20000 AND 30000 ORDER BY 1
            = 1 | halved(unsigned int) | 2000 | 1000 | GPU 0 gfx1100 | Queue 1 | system | 24 | null
            = 2 | halved(unsigned int) | 2500 | 2000 | GPU 0 gfx1100 | Queue 1 | system | 24 | null
            = 3 | {long_name} | 3000 | 500 | GPU 0 gfx1100 | Queue 2 | scaled | 24 | null
            = 4 | {long_name} | 6000 | 4000 | GPU 1 gfx1100 | Queue 3 | agent | 24 | null
            = 5 | says "a, b" | 4000 | 0 | GPU 1 gfx1100 | Queue 3 | none | 24 | null
            = 6 | halved(unsigned int) | 9000 | 0 | GPU 0 gfx1100 | Queue 1 | none | 24 | 1
            = 7 | (unknown kernel) | 11000 | 100 | GPU 0 gfx1100 | Queue 1 | system | null | null
            = 8 | halved(unsigned int) | 3900 | 0 | GPU 0 gfx1100 | Queue 2 | system | 24 | null
            SELECT p.name, p.pid, tid, s.name, s.ts, s.dur, extract_arg(s.arg_set_id, 'debug.dispatches')
                FROM slice s JOIN thread_track t ON s.track_id = t.id JOIN thread USING (utid)
                JOIN process p USING (upid) WHERE s.category = 'api' ORDER BY s.ts
            = ./app | 4242 | 10 | hipLaunchKernel | 1500 | 200 | 2
            = ./app | 4242 | 11 | hipLaunchKernel | 2800 | 1200 | 2
            = ./app | 4242 | 10 | hipLaunchKernel | 3400 | 200 | 1
            = ./app | 4242 | 11 | hipGraphLaunch | 14000 | 2000 | 1000
            -- One flow from each API call to each of its dispatches, and no others.
            SELECT c.name, c.ts, count(*), count(DISTINCT k.id) FROM flow JOIN slice c ON slice_out = c.id
                JOIN slice k ON slice_in = k.id WHERE c.category = 'api' AND k.category = 'kernel' GROUP BY c.id
                ORDER BY c.ts
            = hipLaunchKernel | 1500 | 2 | 2
            = hipLaunchKernel | 2800 | 2 | 2
            = hipLaunchKernel | 3400 | 1 | 1
            = hipGraphLaunch | 14000 | 1000 | 1000
            SELECT count(*) FROM flow
            = 1005
            SELECT ts, value FROM counter c JOIN process_counter_track t ON c.track_id = t.id
                WHERE t.name = 'Queue 1 in flight' ORDER BY c.id
            = 1600 | 1
            = 1610 | 2
            = 3000 | 1
            = 4500 | 0
            = 9000 | 1
            = 9000 | 0
            = 10900 | 1
            = 11100 | 0
            SELECT t.name, p.name, max(value), count(*) FROM counter c
                JOIN process_counter_track t ON c.track_id = t.id JOIN process p USING (upid) GROUP BY 1 ORDER BY 1
            = Queue 1 in flight | GPU 0 gfx1100 | 2 | 8
            = Queue 2 in flight | GPU 0 gfx1100 | 1000 | 2004
            = Queue 3 in flight | GPU 1 gfx1100 | 2 | 4
            SELECT key, display_value FROM slice JOIN args USING (arg_set_id) WHERE ts = 2000 AND key LIKE 'debug.%'
                ORDER BY 1
            = debug.accum_vgprs | "0"
            = debug.clock | system
            = debug.correlation | "1"
            = debug.dispatch | "1"
            = debug.grid | 1024 2 1
            = debug.kernel | "1"
            = debug.lds | "512"
            = debug.queue | "1"
            = debug.scratch | "16"
            = debug.sgprs | "106"
            = debug.submit | "1600"
            = debug.thread | "10"
            = debug.vgprs | "24"
            = debug.workgroup | 256 2 1
        "#
        .replace("{long_name}", &long_name()),
    );
}

#[test]
fn only_the_export_is_written_to_stdout() {
    let out = exported("stdout", "csv");
    let dir = out.parent().unwrap();
    let expected = fs::read(&out).unwrap();
    for name in ["-", "/dev/stdout"] {
        let arguments = format!("export a.trace -f csv -o {name}");
        let run = devprof(dir, &arguments);
        assert!(run.stdout == expected, "{name}: not only the export");
        let summary = "\nstdout: 1,008 dispatches\n";
        assert!(run.stderr.ends_with(summary), "{}", run.stderr);
        let mut shared = File::create(dir.join("shared")).unwrap();
        shared.write_all(b"before\n").unwrap();
        let mut devprof = command(dir, &arguments);
        let status = devprof.stdout(shared).stderr(Stdio::null()).status();
        assert!(status.unwrap().success());
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
        // As an input, a dash is a file name.
        ("-", "-.pftrace"),
    ] {
        fs::write(dir.join(file), trace()).unwrap();
        let run = devprof(&dir, &format!("export {file}"));
        let begin = format!("{out}: 1,008");
        assert!(run.text().starts_with(&begin), "{file}: {}", run.text());
        fs::remove_file(dir.join(out)).unwrap();
    }
    succeed(&dir, "export app.trace.123 --csv-of=all");
    assert!(dir.join("app.trace.123_kernel_trace.csv").exists());
}

#[test]
fn a_trace_can_be_a_pipe_unless_it_is_read_twice() {
    let expected = exported("from-pipe", "jsonl");
    let dir = expected.parent().unwrap();
    for (format, status, message) in [
        ("json", 0, "from-pipe: 1,008 dispatches"),
        ("perfetto", 2, "requires reading it twice"),
    ] {
        let arguments = format!("export /dev/stdin -f {format} -o from-pipe");
        let mut piped = command(dir, &arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Fails if devprof exits without reading its input.
        let _ = piped.stdin.take().unwrap().write_all(&trace());
        let run = Run::of(piped.wait_with_output().unwrap());
        assert_eq!(run.status, status, "{format}");
        assert!(run.shown().contains(message), "{}", run.shown());
    }
    let written = fs::read(dir.join("from-pipe")).unwrap();
    assert_eq!(written, fs::read(expected).unwrap());
}

#[test]
fn progress_is_shown_only_on_a_terminal() {
    let mut records = definitions();
    records.push(call(1, 7, 10, 1500, 1700).seal());
    records.push(timed(dispatch(1, 0, 1, 1, 1), 1600, 2000, 3000).seal());
    let (out, status, stderr) = export(&file(&records), "progress", "csv");
    assert_eq!((status, &*stderr), (0, ""));

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
    let mut devprof = command(out.parent().unwrap(), "export a.trace -fcsv");
    // Without it, nothing is known about the terminal.
    devprof.env("TERM", "linux");
    let status = devprof.stdout(Stdio::null()).stderr(terminal).status();
    assert!(status.unwrap().success());
    // The command has the terminal open.
    drop(devprof);
    // Reading a terminal that no process has open returns the written text, and then an error.
    let mut shown = Vec::new();
    let _ = main.read_to_end(&mut shown);
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.contains("4.00 KiB of 6.62 KiB, "), "{shown:?}");
}

/// Names with special characters.
fn special_names() -> [String; 9] {
    [
        "a,b",
        "\"quoted\"",
        "two\r\nlines",
        "tab\tand nul\0",
        "\x1b[31mred\x1b[0m",
        "ü→𝄞",
        "",
        "=cmd()",
        &"k".repeat(10_240),
    ]
    .map(str::to_owned)
}

#[test]
fn special_characters_in_names_are_preserved_in_every_format() {
    let names = special_names();
    // One dispatch for each name.
    let mut records = definitions();
    for (id, name) in (10..).zip(&names) {
        records.extend(texts(&[(id, name)]));
        let kernel = with!(Kernel::new(id.into(), 0); name = id, agent = 1);
        let at = 1000 * u64::from(id);
        let dispatch = dispatch(id.into(), flag::NO_CALL, 1, id, 0);
        records.push(kernel.seal());
        records.push(timed(dispatch, at, at + 100, at + 200).seal());
    }
    let dir = written("special", &file(&records));
    let exported = |out: &str| {
        succeed(&dir, &format!("export a.trace -o {out}"));
        dir.join(out)
    };
    let rows = csv::Reader::from_path(exported("out.csv")).unwrap();
    let column = rows.into_records().map(|row| row.unwrap()[7].to_owned());
    assert_eq!(column.collect::<Vec<_>>(), names);
    let lines = json_lines(&exported("out.jsonl"));
    let dispatches = of_type(&lines, "dispatch").into_iter();
    let column: Vec<_> = dispatches.map(|line| &line["kernel_name"]).collect();
    assert_eq!(column, names.iter().collect::<Vec<_>>());
    let db = rusqlite::Connection::open(exported("out.db")).unwrap();
    let mut query = db.prepare("SELECT name FROM kernels ORDER BY id").unwrap();
    let column = query.query_map([], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(column.map(Result::unwrap).collect::<Vec<_>>(), names);

    let run = devprof(&dir, "stats a.trace");
    let shown = run.text();
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
    let valid = texts(&[(4, "_Z6halvedj")])[0];
    let at = records.iter().position(|record| *record == valid).unwrap();
    records[at] = text.seal();
    records.push(timed(dispatch(1, flag::NO_CALL, 1, 1, 0), 1, 2, 3).seal());
    let (out, status, stderr) = export(&file(&records), "not-utf-8", "csv");
    assert_eq!(status, 3);
    let offset = HEADER_SIZE + at * RECORD_SIZE;
    let expected = format!("a.trace: byte {offset}: text 4 is not UTF-8\n");
    assert!(stderr.contains(&expected), "{stderr}");
    assert!(fs::read_to_string(out).unwrap().contains("\"(kernel 1)\""));
}

#[test]
fn names_are_not_demangled_with_no_demangle() {
    let dir = written("symbols", &trace());
    succeed(&dir, "export a.trace --format csv --no-demangle");
    let text = fs::read_to_string(dir.join("a.csv")).unwrap();
    assert!(text.contains("\"_Z6halvedj\""), "{text}");
}

#[test]
fn missing_data_is_reported_once() {
    let mut bytes = trace();
    set(&mut bytes, Count::DroppedDispatches, 12);
    set(&mut bytes, Count::UnknownPackets, 3);
    set(&mut bytes, Count::Closed, 0);
    let (_, status, stderr) = export(&bytes, "missing-data", "jsonl");
    assert_eq!(status, 0);
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
    let (_, _, stderr) = export(&file(&records), "missing-calls", "csv");
    for (message, count) in [
        ("correlation ID 30\n", 1),
        ("correlation ID 33\n", 0),
        ("no record of 40 more API calls", 1),
    ] {
        assert_eq!(stderr.matches(message).count(), count, "{stderr}");
    }
}

#[test]
fn failed_exports_report_an_error_and_leave_no_file() {
    let dir = directory("refused");
    let mut later = trace();
    later[8] = 3;
    for (name, bytes) in [
        ("valid.trace", &*trace()),
        ("later.trace", &later),
        ("other.trace", b"not a trace"),
        ("short.trace", &trace()[..100]),
    ] {
        fs::write(dir.join(name), bytes).unwrap();
    }
    // The cause is reported once.
    let run = devprof(&dir, "export missing.trace");
    let causes = run.stderr.matches("No such file").count();
    assert_eq!(causes, 1, "{}", run.stderr);
    assert_refused(
        &dir,
        "1 | later.trace -o out.csv | later.trace: trace version 3 is not supported
        1 | other.trace -o out.csv | other.trace: not a trace of devprof
        1 | short.trace -o out.csv | short.trace: the file is truncated after 100 bytes
        1 | missing.trace -o out.csv | missing.trace: No such file
        1 | valid.trace -o no/such/out.csv | cannot write 
        2 | valid.trace -f csv -o valid.trace | is the trace itself
        2 | valid.trace -o out.txt | has none of the extensions
        2 | valid.trace -o valid.trace | has none of the extensions",
    );
    assert_eq!(fs::read(dir.join("valid.trace")).unwrap(), trace());
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 4);
}

#[test]
fn each_damaged_record_is_reported_with_its_offset_and_the_rest_is_exported() {
    let mut records = definitions();
    let first = records.len();
    records.extend((1..=30).map(|id| timed(dispatch(id, 0, 1, 1, 0), 1, 2, 3).seal()));
    let offset = |record: usize| HEADER_SIZE + record * RECORD_SIZE;
    // Returns the names of the kernels of the exported dispatches, and stderr.
    let exported = |damaged: std::ops::Range<usize>| {
        let mut bytes = file(&records);
        damaged.for_each(|record| bytes[offset(record) + 50] ^= 1);
        let (out, status, stderr) = export(&bytes, "damaged", "jsonl");
        assert_eq!(status, 3);
        let lines = json_lines(&out);
        let names = fields(of_type(&lines, "dispatch"), &["kernel_name"]);
        (elements(&names).to_vec(), stderr)
    };

    let (dispatches, stderr) = exported(first + 4..first + 5);
    let line = format!("a.trace: byte {}: a damaged record", offset(first + 4));
    assert!(stderr.contains(&line), "{stderr}");
    assert_eq!(dispatches.len(), 29);

    let (dispatches, stderr) = exported(first..first + 25);
    assert_eq!(stderr.matches(": a damaged record").count(), 11, "{stderr}");
    let rest = format!(
        "15 more of this kind, the last at byte {}",
        offset(first + 24)
    );
    assert!(stderr.contains(&rest), "{stderr}");
    assert_eq!(dispatches.len(), 5);

    // Without the kernel's record its dispatches are still exported.
    let (dispatches, stderr) = exported(first - 3..first - 2);
    assert!(
        stderr.contains("30 dispatches of kernel 1, which has no valid record"),
        "{stderr}"
    );
    assert_eq!(dispatches, vec![json!(["(kernel 1)"]); 30]);
}
