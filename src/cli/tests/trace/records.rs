//! A trace with streams, copies, markers, names and pauses, and what each export makes of it.

use crate::files::*;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tracefile::format::{
    Agent, Kernel, Marker, MemoryCopy, NO_AGENT, Name, RECORD_SIZE, Record, Recording, Stream,
    agent, direction, flag, marker, named, pieces, stream,
};

const PROCESS_RANGE: u32 = marker::PROCESS_RANGE;

fn copy(id: u64, flags: u16, direction: u32, source: u32, destination: u32) -> MemoryCopy {
    let mut copy = MemoryCopy::new(id, flags);
    copy.direction = direction.into();
    copy.source = source.into();
    copy.destination = destination.into();
    copy.size = 4096.into();
    copy.thread = 10.into();
    copy.function = 20.into();
    copy
}

fn times(mut copy: MemoryCopy, submit: u64, start: u64, end: u64) -> [u8; RECORD_SIZE] {
    copy.submit = submit.into();
    copy.start = start.into();
    copy.end = end.into();
    copy.observed = (end + 10).into();
    copy.seal()
}

fn marked(id: u64, what: u32, text: u32, thread: u32, start: u64, end: u64) -> Marker {
    let mut marker = Marker::new(id, 0);
    marker.what = what.into();
    marker.text = text.into();
    marker.thread = thread.into();
    marker.end_thread = thread.into();
    marker.start = start.into();
    marker.end = end.into();
    marker
}

/// What other records refer to: a CPU (agent 0), the kernel that HIP copies with (4), and streams: NULL (1), created (2
/// and 4), of thread 11 (3).
fn new_definitions() -> Vec<[u8; RECORD_SIZE]> {
    let mut records = definitions();
    for (id, text) in [
        (20, "hsa_amd_memory_async_copy"),
        (22, "step"),
        (23, "compute"),
        (24, "epoch"),
        (25, "a CPU"),
        (26, "worker"),
        (27, "uploads"),
        (28, "the large one"),
        (29, "hipMemcpyAsync"),
        (30, "__amd_rocclr_copyBuffer"),
        (31, "here, \"now\""),
        (32, "__hipPushCallConfiguration"),
    ] {
        records.extend(pieces(id, text).map(Record::seal));
    }
    let mut cpu = Agent::new(0, 0);
    cpu.what = agent::CPU.into();
    cpu.name = 25.into();
    let mut blit = Kernel::new(4, 0);
    blit.name = 30.into();
    blit.agent = 1.into();
    records.extend([cpu.seal(), blit.seal()]);
    for (id, what, thread) in [
        (1, stream::NULL, 0),
        (2, stream::CREATED, 0),
        (3, stream::PER_THREAD, 11),
        (4, stream::CREATED, 0),
    ] {
        let mut stream = Stream::new(id, 0);
        stream.what = what.into();
        stream.thread = thread.into();
        stream.handle = (0x1000 * id).into();
        records.push(stream.seal());
    }
    records
}

/// A stream, a copy on it, a marker, a name and a pause, which refer only to [`definitions`] and to each other.
pub fn one_of_each() -> Vec<[u8; RECORD_SIZE]> {
    let mut stream = Stream::new(1, 0);
    stream.handle = 0x1000.into();
    let mut copied = copy(1, 0, direction::DEVICE_TO_DEVICE, 1, 2);
    copied.correlation = 1.into();
    copied.stream = 1.into();
    copied.function = 1.into();
    let mut range = marked(1, marker::RANGE, 2, 10, 1400, 1800);
    range.depth = 1.into();
    vec![
        stream.seal(),
        times(copied, 1550, 1600, 1700),
        range.seal(),
        name(named::STREAM, 1, 2),
        recording(1, 1900, false),
    ]
}

fn name(what: u32, id: u64, text: u32) -> [u8; RECORD_SIZE] {
    let mut name = Name::new(id, 0);
    name.what = what.into();
    name.text = text.into();
    name.seal()
}

fn recording(id: u64, time: u64, is_on: bool) -> [u8; RECORD_SIZE] {
    let mut recording = Recording::new(id, 0);
    recording.time = time.into();
    recording.is_on = u32::from(is_on).into();
    recording.seal()
}

/// On thread 10, the range "epoch" contains everything. The call of thread 10 that begins with it, the range "compute",
/// which has exactly the times of the second call, and the third call follow each other without gaps.
fn trace() -> Vec<u8> {
    let mut records = new_definitions();
    let on_stream = |id, queue, kernel, correlation, stream: u32| {
        let mut dispatch = dispatch(id, 0, queue, kernel, correlation);
        dispatch.stream = stream.into();
        dispatch
    };
    records.extend([
        name(named::THREAD, 10, 22),
        timed(on_stream(1, 1, 1, 1, 2), 1010, 1200, 1300).seal(),
        timed(on_stream(2, 1, 1, 3, 3), 1020, 1250, 1350).seal(),
        timed(on_stream(3, 2, 4, 4, 1), 1210, 1300, 1400).seal(),
        // Without a stream.
        timed(dispatch(4, flag::NO_CALL, 2, 1, 0), 1210, 1500, 1600).seal(),
    ]);
    for (id, name, thread, start, end, stream) in [
        (1, 7, 10, 1000, 1100, 2),
        (2, 29, 10, 1100, 1200, 2),
        (3, 7, 11, 1000, 1050, 3),
        (4, 29, 10, 1200, 1300, 1),
        (6, 32, 11, 1050, 1060, 0),
    ] {
        let mut call = call(id, name, thread, start, end);
        call.stream = stream.into();
        records.push(call.seal());
    }
    let by_call = |mut copy: MemoryCopy, call: u64, stream: u32| {
        copy.correlation = call.into();
        copy.stream = stream.into();
        copy
    };
    let mut by_engine = copy(
        4,
        flag::CLOCK_SCALED | flag::NO_CALL,
        direction::DEVICE_TO_DEVICE,
        1,
        2,
    );
    by_engine.engine = 2.into();
    let untimed = flag::CLOCK_NONE | flag::NO_CALL;
    records.extend([
        times(
            by_call(copy(1, 0, direction::HOST_TO_DEVICE, 0, 1), 2, 2),
            1110,
            1250,
            1350,
        ),
        times(
            by_call(copy(2, 0, direction::HOST_TO_DEVICE, 0, 1), 2, 2),
            1120,
            1300,
            1400,
        ),
        times(
            by_call(copy(3, 0, direction::DEVICE_TO_HOST, 1, 0), 4, 1),
            1210,
            1400,
            1500,
        ),
        times(by_engine, 1300, 1400, 1450),
        times(
            copy(5, flag::NO_CALL, direction::FILL, NO_AGENT, 1),
            1300,
            1500,
            1510,
        ),
        times(
            copy(6, flag::NO_CALL, direction::HOST_TO_HOST, 0, 0),
            1300,
            1500,
            1520,
        ),
        times(
            copy(7, untimed, direction::UNKNOWN, NO_AGENT, NO_AGENT),
            1330,
            0,
            0,
        ),
        times(
            copy(
                8,
                untimed | flag::UNFINISHED,
                direction::HOST_TO_DEVICE,
                0,
                2,
            ),
            1340,
            0,
            0,
        ),
    ]);
    let mut compute = marked(2, marker::RANGE, 23, 10, 1100, 1200);
    compute.depth = 1.into();
    let mut step = marked(4, PROCESS_RANGE, 22, 10, 1000, 1400);
    step.end_thread = 11.into();
    step.range = 77.into();
    let mut unfinished = marked(6, marker::RANGE, 23, 11, 1060, 2000);
    unfinished.head.flags = flag::UNFINISHED.into();
    records.extend([
        marked(1, marker::MARK, 31, 10, 1150, 1150).seal(),
        compute.seal(),
        marked(3, marker::RANGE, 24, 10, 1000, 1300).seal(),
        step.seal(),
        marked(5, PROCESS_RANGE, 22, 11, 1100, 1500).seal(),
        unfinished.seal(),
    ]);
    records.extend([
        recording(1, 1600, false),
        recording(2, 1700, true),
        recording(3, 1900, false),
        name(named::THREAD, 10, 26),
        name(named::STREAM, 2, 27),
        name(named::AGENT, 1, 28),
    ]);
    file(&records)
}

/// Exports to a file with this name, with further options. Returns its path and stderr.
fn export(dir: &Path, out: &str, options: &[&str]) -> (PathBuf, String) {
    let file = dir.join("a.trace");
    fs::write(&file, trace()).unwrap();
    let out = dir.join(out);
    let mut arguments: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&"export", &file, &"-o", &out];
    arguments.extend(options.iter().map(|option| option as &dyn AsRef<_>));
    let output = devprof(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    (
        out,
        stderr(&output) + &String::from_utf8_lossy(&output.stdout),
    )
}

const COPIES: &str =
    "\"Kind\",\"Direction\",\"Stream_Id\",\"Source_Agent_Id\",\"Destination_Agent_Id\",\
    \"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"
\"MEMORY_COPY\",\"MEMORY_COPY_HOST_TO_DEVICE\",2,\"Agent 0\",\"Agent 1\",2,1250,1350
\"MEMORY_COPY\",\"MEMORY_COPY_HOST_TO_DEVICE\",2,\"Agent 0\",\"Agent 1\",2,1300,1400
\"MEMORY_COPY\",\"MEMORY_COPY_DEVICE_TO_HOST\",0,\"Agent 1\",\"Agent 0\",4,1400,1500
\"MEMORY_COPY\",\"MEMORY_COPY_DEVICE_TO_DEVICE\",0,\"Agent 1\",\"Agent 2\",0,1400,1450
\"MEMORY_COPY\",\"MEMORY_FILL\",0,\"\",\"Agent 1\",0,1500,1510
\"MEMORY_COPY\",\"MEMORY_COPY_HOST_TO_HOST\",0,\"Agent 0\",\"Agent 0\",0,1500,1520
\"MEMORY_COPY\",\"MEMORY_COPY_NONE\",0,\"\",\"\",0,1330,1330
\"MEMORY_COPY\",\"MEMORY_COPY_HOST_TO_DEVICE\",0,\"Agent 0\",\"Agent 2\",0,1340,1340
";
const API: &str = "\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\",\
    \"Start_Timestamp\",\"End_Timestamp\"
\"HIP_RUNTIME_API\",\"hipLaunchKernel\",4242,10,1,1000,1100
\"HIP_RUNTIME_API\",\"hipMemcpyAsync\",4242,10,2,1100,1200
\"HIP_RUNTIME_API\",\"hipLaunchKernel\",4242,11,3,1000,1050
\"HIP_RUNTIME_API\",\"hipMemcpyAsync\",4242,10,4,1200,1300
\"HIP_COMPILER_API\",\"__hipPushCallConfiguration\",4242,11,6,1050,1060
";
const MARKERS: &str = "\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\",\
    \"Start_Timestamp\",\"End_Timestamp\"
\"MARKER_CORE_RANGE_API\",\"here, \"\"now\"\"\",4242,10,0,1150,1150
\"MARKER_CORE_RANGE_API\",\"compute\",4242,10,0,1100,1200
\"MARKER_CORE_RANGE_API\",\"epoch\",4242,10,0,1000,1300
\"MARKER_CORE_RANGE_API\",\"step\",4242,10,0,1000,1400
\"MARKER_CORE_RANGE_API\",\"step\",4242,11,0,1100,1500
\"MARKER_CORE_RANGE_API\",\"compute\",4242,11,0,1060,2000
";

#[test]
fn csv_has_rocprofv3s_file_for_each_type_of_record() {
    let dir = directory("csv-all");
    let (kernels, _) = export(&dir, "kernels.csv", &[]);
    let kernels = fs::read_to_string(kernels).unwrap();
    let rows = csv::Reader::from_reader(kernels.as_bytes()).into_records();
    // The NULL stream, and a stream that is not known, are 0.
    let streams: Vec<_> = rows.map(|row| row.unwrap()[3].to_owned()).collect();
    assert_eq!(streams, ["2", "3", "0", "0"]);

    let (_, shown) = export(&dir, "all.csv", &["--csv-of", "all"]);
    let names = ["kernel", "memory_copy", "hip_api", "marker_api"];
    let path = |name: &str| dir.join(format!("all_{name}_trace.csv"));
    let paths = names
        .map(|name| path(name).display().to_string())
        .join(", ");
    // Only what was written is counted.
    for (option, counted) in [
        ("kernels", "4 dispatches"),
        ("copies", "8 copies"),
        ("api", "5 API calls"),
        ("markers", "6 markers"),
    ] {
        let (out, shown) = export(&dir, "counted.csv", &["--csv-of", option]);
        let summary = format!("{}: {counted}\n", out.display());
        assert!(shown.ends_with(&summary), "{shown}");
    }
    let summary = format!("{paths}: 4 dispatches, 5 API calls, 8 copies, 6 markers\n");
    assert!(shown.ends_with(&summary), "{shown}");
    assert!(!dir.join("all.csv").exists());
    let types = ["kernels", "copies", "api", "markers"];
    let all = [&kernels, COPIES, API, MARKERS];
    for ((name, one), expected) in names.iter().zip(types).zip(all) {
        assert_eq!(fs::read_to_string(path(name)).unwrap(), expected, "{name}");
        let (out, _) = export(&dir, "one.csv", &["--csv-of", one]);
        assert_eq!(fs::read_to_string(out).unwrap(), expected, "{one}");
        let file = dir.join("a.trace");
        let piped = devprof(&[&"export", &file, &"-fcsv", &"-o-", &"--csv-of", &one]);
        assert_eq!(String::from_utf8(piped.stdout).unwrap(), expected, "{one}");
    }
}

#[test]
fn options_of_other_formats_are_usage_errors() {
    let dir = directory("options");
    fs::write(dir.join("a.trace"), trace()).unwrap();
    fs::write(dir.join("a_kernel_trace.csv"), trace()).unwrap();
    for (file, arguments, message) in [
        (
            "a.trace",
            "-o a.db --csv-of api",
            "--csv-of is only for the format of .csv files",
        ),
        (
            "a.trace",
            "-o a.csv --tracks queue",
            "--tracks is only for the format of .pftrace files",
        ),
        (
            "a.trace",
            "-f csv -o - --csv-of all",
            "cannot write several files to stdout",
        ),
        (
            "a_kernel_trace.csv",
            "-o a.csv --csv-of all",
            "a_kernel_trace.csv is the trace itself",
        ),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_devprof"))
            .args(["export", file])
            .args(arguments.split(' '))
            .current_dir(&dir)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
    }
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 2);
}

#[test]
fn csv_of_implies_csv() {
    let dir = directory("csv-of");
    fs::write(dir.join("a.trace"), trace()).unwrap();
    for (arguments, file) in [
        ("--csv-of copies", Some("a.csv")),
        ("-o other --csv-of copies", Some("other")),
        ("-o - --csv-of copies", None),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_devprof"))
            .args(["export", "a.trace"])
            .args(arguments.split(' '))
            .current_dir(&dir)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let written = match file {
            Some(file) => fs::read_to_string(dir.join(file)).unwrap(),
            None => String::from_utf8(output.stdout).unwrap(),
        };
        assert_eq!(written, COPIES, "{arguments}");
    }
}

#[test]
fn the_database_has_copies_markers_streams_and_names() {
    let (out, _) = export(&directory("rocpd-records"), "out.db", &[]);
    let db = rusqlite::Connection::open(out).unwrap();
    let rows = |sql: &str| -> Vec<String> {
        let mut query = db.prepare(sql).unwrap();
        let columns = query.column_count();
        let row = |row: &rusqlite::Row| {
            let value = |n| match row.get_ref(n)? {
                rusqlite::types::ValueRef::Null => Ok("null".to_owned()),
                rusqlite::types::ValueRef::Integer(number) => Ok(number.to_string()),
                text => Ok(text.as_str()?.to_owned()),
            };
            Ok((0..columns)
                .map(value)
                .collect::<rusqlite::Result<Vec<_>>>()?
                .join(" "))
        };
        query
            .query_map([], row)
            .unwrap()
            .map(Result::unwrap)
            .collect()
    };
    for (sql, expected) in [
        ("SELECT count(*) FROM pragma_foreign_key_check", &["0"][..]),
        ("PRAGMA integrity_check", &["ok"]),
        (
            "SELECT id, name FROM rocpd_info_stream ORDER BY id",
            &["0 Default Stream", "2 uploads", "3 Stream 3 of thread 11", "4 Stream 4"],
        ),
        (
            "SELECT dispatch_id, stream_id, stream FROM kernels ORDER BY 1",
            &["1 2 uploads", "2 3 Stream 3 of thread 11", "3 0 Default Stream", "4 0 Default Stream"],
        ),
        ("SELECT tid, name FROM threads ORDER BY 1", &["10 worker", "11 null", "77 null"]),
        (
            "SELECT id, type, absolute_index, logical_index, type_index, name, user_name FROM rocpd_info_agent ORDER BY id",
            &[
                "0 CPU 0 0 0 a CPU null",
                "1 GPU 1 1 0 gfx1100 the large one",
                "2 GPU 2 2 1 gfx1100 null",
                "4294967295 null null null null null null",
            ],
        ),
        (
            "SELECT category, name, tid, start, duration, size, stream_name, src_agent_type, src_agent_abs_index,
            dst_agent_type, dst_agent_abs_index, stack_id FROM memory_copies ORDER BY id",
            &[
                "MEMORY_COPY MEMORY_COPY_HOST_TO_DEVICE 10 1250 100 4096 uploads CPU 0 GPU 1 2",
                "MEMORY_COPY MEMORY_COPY_HOST_TO_DEVICE 10 1300 100 4096 uploads CPU 0 GPU 1 2",
                "MEMORY_COPY MEMORY_COPY_DEVICE_TO_HOST 10 1400 100 4096 Default Stream GPU 1 CPU 0 4",
                "MEMORY_COPY MEMORY_COPY_DEVICE_TO_DEVICE 10 1400 50 4096 Default Stream GPU 1 GPU 2 null",
                "MEMORY_COPY MEMORY_FILL 10 1500 10 4096 Default Stream null null GPU 1 null",
                "MEMORY_COPY MEMORY_COPY_HOST_TO_HOST 10 1500 20 4096 Default Stream CPU 0 CPU 0 null",
                "MEMORY_COPY MEMORY_COPY_NONE 10 1330 0 4096 Default Stream null null null null null",
                "MEMORY_COPY MEMORY_COPY_HOST_TO_DEVICE 10 1340 0 4096 Default Stream CPU 0 GPU 2 null",
            ],
        ),
        (
            "SELECT extdata FROM rocpd_memory_copy WHERE id IN (1, 4, 8)",
            &[
                r#"{"function":"hsa_amd_memory_async_copy"}"#,
                r#"{"clock":"scaled","engine":2,"function":"hsa_amd_memory_async_copy","unfinished":false}"#,
                r#"{"clock":"none","function":"hsa_amd_memory_async_copy","unfinished":true}"#,
            ],
        ),
        // A call can be joined with its copies.
        (
            "SELECT r.name, count(*) FROM memory_copies c JOIN regions r USING (stack_id) GROUP BY r.id",
            &["hipMemcpyAsync 2", "hipMemcpyAsync 1"],
        ),
        (
            "SELECT category, name, operation, tid, start, duration FROM markers ORDER BY start, duration",
            &[
                "MARKER_CORE_RANGE_API epoch roctxThreadRangeA 10 1000 300",
                "MARKER_CORE_RANGE_API step roctxProcessRangeA 10 1000 400",
                "MARKER_CORE_RANGE_API compute roctxThreadRangeA 11 1060 940",
                "MARKER_CORE_RANGE_API compute roctxThreadRangeA 10 1100 100",
                "MARKER_CORE_RANGE_API step roctxProcessRangeA 11 1100 400",
                "MARKER_CORE_RANGE_API here, \"now\" roctxMarkA 10 1150 0",
            ],
        ),
        (
            "SELECT category, count(*) FROM regions_and_samples GROUP BY 1 ORDER BY 1",
            &["HIP_COMPILER_API 1", "HIP_RUNTIME_API 4", "MARKER_CORE_RANGE_API 6"],
        ),
        (
            "SELECT extdata FROM rocpd_region WHERE extdata LIKE '%range%' OR extdata LIKE '%unfinished%' ORDER BY 1",
            &[
                r#"{"end_thread":11,"range":0}"#,
                r#"{"end_thread":11,"range":77}"#,
                r#"{"unfinished":true}"#,
            ],
        ),
    ] {
        assert_eq!(rows(sql), expected, "{sql}");
    }
}

#[test]
fn json_has_copies_whose_times_were_moved() {
    let mut records = new_definitions();
    for (id, flags) in [(1, flag::MOVED), (2, 0)] {
        let copy = copy(id, flags, direction::HOST_TO_DEVICE, 0, 1);
        records.push(times(copy, 1, 2, 3));
    }
    let path = directory("json-moved").join("a.trace");
    fs::write(&path, file(&records)).unwrap();
    let output = devprof(&[&"export", &path, &"-f", &"json", &"-o", &"-"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let copies = lines.filter(|line: &Value| line["type"] == "copy");
    let moved: Vec<_> = copies.map(|line| line["moved"].clone()).collect();
    assert_eq!(moved, [json!(true), Value::Null]);
}

#[test]
fn json_marks_blit_kernels() {
    let (out, _) = export(&directory("json-records"), "out.jsonl", &[]);
    let text = fs::read_to_string(out).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let blits: Vec<Value> = lines.filter(|line: &Value| line["blit"] == true).collect();
    assert_eq!(blits.len(), 1);
    assert_eq!(blits[0]["name"], "__amd_rocclr_copyBuffer");
}

#[test]
fn missing_data_of_copies_and_markers_is_reported() {
    let mut records = definitions();
    let mut lost = copy(1, 0, direction::HOST_TO_DEVICE, 8, 1);
    lost.correlation = 9.into();
    lost.stream = 6.into();
    let mut elsewhere = dispatch(1, flag::NO_CALL, 1, 1, 0);
    elsewhere.stream = 8.into();
    let mut called = call(1, 40, 10, 1, 2);
    called.stream = 7.into();
    records.extend([
        times(lost, 1, 3, 2),
        times(
            copy(2, flag::CLOCK_NONE, direction::UNKNOWN, NO_AGENT, NO_AGENT),
            1,
            0,
            0,
        ),
        times(
            copy(3, flag::UNFINISHED, direction::UNKNOWN, NO_AGENT, NO_AGENT),
            1,
            0,
            0,
        ),
        timed(elsewhere, 1, 2, 3).seal(),
        called.seal(),
        marked(1, marker::MARK, 41, 10, 5, 5).seal(),
        // A marker without a message is not damaged.
        marked(2, marker::MARK, 0, 10, 5, 5).seal(),
        name(named::STREAM, 1, 42),
    ]);
    let dir = directory("missing-records");
    let path = dir.join("a.trace");
    fs::write(&path, file(&records)).unwrap();
    for format in ["csv", "json", "perfetto", "rocpd"] {
        let output = devprof(&[&"export", &path, &"-f", &format, &"-o", &dir.join("out")]);
        let shown = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{format}: {shown}");
        let lines: Vec<_> = shown
            .lines()
            .map(|line| line.rsplit_once("a.trace: ").unwrap().1)
            .collect();
        let expected = [
            "1 API call whose function name (text 40) has no valid record",
            "1 API call of stream 7, which has no valid record",
            "1 copy of agent 8, which has no valid record",
            "3 copies whose function name (text 20) has no valid record",
            "1 copy of stream 6, which has no valid record",
            "1 dispatch of stream 8, which has no valid record",
            "1 marker whose message (text 41) has no valid record",
            "1 name whose string (text 42) has no valid record",
            "1 copy without an observed end: submitted or still running when the program exited",
            "1 copy without times",
            "1 copy with an end before the start",
            "1 dispatch without a recorded API call",
            "2 copies without a recorded API call",
            "no record of the API call with correlation ID 9",
        ];
        assert_eq!(lines, expected, "{format}");
    }
    // The last format was rocpd. Streams without a record have rows.
    let db = rusqlite::Connection::open(dir.join("out")).unwrap();
    let number = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(number("SELECT count(*) FROM pragma_foreign_key_check"), 0);
    assert_eq!(number("SELECT count(*) FROM rocpd_info_stream"), 3);
}

/// The answers of Perfetto's trace processor.
pub fn query(trace: &Path, queries: &[&str]) -> Vec<Value> {
    let check = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/perfetto-query");
    let output = Command::new(check)
        .arg(trace)
        .args(queries)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<_> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), queries.len(), "{text}");
    answers
}

/// Slices on tracks that are not of threads: process, track, and the names, starts and durations of the slices.
const ON_PROCESSES: &str = "SELECT p.name, t.name, s.category, s.name, s.ts, s.dur FROM slice s \
    JOIN process_track t ON s.track_id = t.id JOIN process p USING (upid) ORDER BY 1, 2, 5, 6";

#[test]
#[ignore = "needs node and an npm package; tools/test runs it"]
fn perfettos_trace_processor_shows_streams_copies_markers_and_pauses() {
    let dir = directory("perfetto-records");
    let (out, _) = export(&dir, "out.pftrace", &[]);
    let (halved, gpu, app) = ("halved(unsigned int)", "GPU 1 the large one", "./app");
    let (to, copies_to) = ("Copy host to device", "Copies host to device");
    let kernels = |by_queue: bool| {
        let track =
            |stream: &'static str, queue: &'static str| if by_queue { queue } else { stream };
        vec![
            json!([
                gpu,
                track("NULL stream", "Queue 2"),
                "blit",
                "__amd_rocclr_copyBuffer",
                1300,
                100
            ]),
            json!([gpu, "Queue 2", "kernel", halved, 1500, 100]),
            json!([
                gpu,
                track("Stream 3 of thread 11", "Queue 1"),
                "kernel",
                halved,
                1250,
                100
            ]),
            json!([
                gpu,
                track("uploads", "Queue 1"),
                "kernel",
                halved,
                1200,
                100
            ]),
        ]
    };
    let others = vec![
        json!([app, "Copies", "copy", "Copy", 1330, 0]),
        json!([
            app,
            "Copies host to host",
            "copy",
            "Copy host to host",
            1500,
            20
        ]),
        json!([app, "Process ranges", "marker", "step", 1000, 400]),
        json!([app, "Process ranges", "marker", "step", 1100, 400]),
        json!([app, "Recording", "recording", "Not recorded", 1600, 100]),
        // Until the last event.
        json!([app, "Recording", "recording", "Not recorded", 1900, 100]),
        json!([gpu, copies_to, "copy", to, 1250, 100]),
        json!([gpu, copies_to, "copy", to, 1300, 100]),
        json!([
            gpu,
            "Copies device to device",
            "copy",
            "Copy device to device",
            1400,
            50
        ]),
        json!([
            gpu,
            "Copies device to host",
            "copy",
            "Copy device to host",
            1400,
            100
        ]),
        json!([gpu, "Fills", "copy", "Fill", 1500, 10]),
        json!(["GPU 2 gfx1100", copies_to, "copy", to, 1340, 0]),
    ];
    let sorted = |mut rows: Vec<Value>| {
        rows.sort_by_key(Value::to_string);
        rows
    };
    let found = |answer: &Value| sorted(answer.as_array().unwrap().clone());
    let queries = [
        (
            "SELECT name FROM stats WHERE value > 0 AND severity IN ('error', 'data_loss')",
            json!([]),
        ),
        (
            "SELECT tid, t.name, s.category, s.name, s.ts, s.dur, s.depth, o.name FROM slice s \
             JOIN thread_track k ON s.track_id = k.id JOIN thread t USING (utid) \
             LEFT JOIN slice o ON s.parent_id = o.id ORDER BY tid, s.ts, s.depth",
            json!([
                [10, "worker", "marker", "epoch", 1000, 300, 0, null],
                [
                    10,
                    "worker",
                    "api",
                    "hipLaunchKernel",
                    1000,
                    100,
                    1,
                    "epoch"
                ],
                [10, "worker", "marker", "compute", 1100, 100, 1, "epoch"],
                [
                    10,
                    "worker",
                    "api",
                    "hipMemcpyAsync",
                    1100,
                    100,
                    2,
                    "compute"
                ],
                [
                    10,
                    "worker",
                    "marker",
                    "here, \"now\"",
                    1150,
                    0,
                    3,
                    "hipMemcpyAsync"
                ],
                [10, "worker", "api", "hipMemcpyAsync", 1200, 100, 1, "epoch"],
                [11, null, "api", "hipLaunchKernel", 1000, 50, 0, null],
                [
                    11,
                    null,
                    "api",
                    "__hipPushCallConfiguration",
                    1050,
                    10,
                    0,
                    null
                ],
                [11, null, "marker", "compute", 1060, 940, 0, null],
            ]),
        ),
        (
            // A CPU is not shown as a GPU.
            "SELECT name FROM process WHERE name IS NOT NULL ORDER BY 1",
            json!([["./app"], ["GPU 1 the large one"], ["GPU 2 gfx1100"]]),
        ),
        (
            "SELECT c.name, c.ts, k.category, k.ts FROM flow JOIN slice c ON slice_out = c.id \
             JOIN slice k ON slice_in = k.id ORDER BY c.ts, k.ts, k.category",
            json!([
                ["hipLaunchKernel", 1000, "kernel", 1200],
                ["hipLaunchKernel", 1000, "kernel", 1250],
                ["hipMemcpyAsync", 1100, "copy", 1250],
                ["hipMemcpyAsync", 1100, "copy", 1300],
                ["hipMemcpyAsync", 1200, "blit", 1300],
                ["hipMemcpyAsync", 1200, "copy", 1400],
            ]),
        ),
        (
            "SELECT key, display_value FROM slice JOIN args USING (arg_set_id) \
             WHERE name = 'Copy device to device' AND key LIKE 'debug.%' ORDER BY 1",
            json!([
                ["debug.bandwidth_gb_s", "81.92"],
                ["debug.bytes", "4096"],
                ["debug.clock", "scaled"],
                ["debug.copy", "4"],
                ["debug.destination", "GPU 2"],
                ["debug.engine", "2"],
                ["debug.function", "hsa_amd_memory_async_copy"],
                ["debug.source", "GPU 1"],
                ["debug.submit", "1300"],
                ["debug.thread", "10"],
            ]),
        ),
        (
            "SELECT s.ts, key, display_value FROM slice s JOIN args USING (arg_set_id) WHERE key IN \
             ('debug.stream', 'debug.copies', 'debug.unfinished', 'debug.end_thread', 'debug.range') AND \
             s.name != 'halved(unsigned int)' ORDER BY s.ts, key, 3",
            json!([
                [1000, "debug.end_thread", "11"],
                [1000, "debug.range", "77"],
                [1000, "debug.stream", "Stream 3 of thread 11"],
                [1000, "debug.stream", "uploads"],
                [1060, "debug.unfinished", "true"],
                [1100, "debug.copies", "2"],
                [1100, "debug.end_thread", "11"],
                [1100, "debug.range", "0"],
                [1100, "debug.stream", "uploads"],
                [1200, "debug.copies", "1"],
                [1200, "debug.stream", "NULL stream"],
                [1250, "debug.stream", "uploads"],
                [1300, "debug.stream", "NULL stream"],
                [1300, "debug.stream", "uploads"],
                [1340, "debug.unfinished", "true"],
                [1400, "debug.stream", "NULL stream"],
            ]),
        ),
    ];
    let mut sql: Vec<_> = queries.iter().map(|(sql, _)| *sql).collect();
    sql.push(ON_PROCESSES);
    let answers = query(&out, &sql);
    for ((sql, expected), answer) in queries.iter().zip(&answers) {
        assert_eq!(answer, expected, "{sql}");
    }
    let all = |by_queue| sorted([kernels(by_queue), others.clone()].concat());
    assert_eq!(found(answers.last().unwrap()), all(false));

    let (out, _) = export(&dir, "queues.pftrace", &["--tracks", "queue"]);
    assert_eq!(found(&query(&out, &[ON_PROCESSES])[0]), all(true));
}

#[test]
#[ignore = "needs Perfetto's protobuf classes from PyPI; tools/test runs it"]
fn perfetto_has_the_fields_of_copies_markers_and_names() {
    let (out, _) = export(&directory("perfetto-fields"), "out.pftrace", &[]);
    let check = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/perfetto-check");
    let output = Command::new(check).arg(&out).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let slices = found["slices"].as_array().unwrap();
    let of = |category: &'static str| {
        slices
            .iter()
            .filter(move |slice| slice["categories"][0] == category)
    };
    for (category, count) in [
        ("kernel", 3),
        ("blit", 1),
        ("api", 5),
        ("copy", 8),
        ("marker", 6),
        ("recording", 2),
    ] {
        assert_eq!(of(category).count(), count, "{category}");
    }
    let fill = of("copy").find(|slice| slice["name"] == "Fill").unwrap();
    assert_eq!(fill["args"]["bandwidth_gb_s"], 409.6);
    let mark = of("marker")
        .find(|slice| slice["name"] == "here, \"now\"")
        .unwrap();
    assert_eq!(mark["parent"], "hipMemcpyAsync");
    assert_eq!(mark["thread_name"], "worker");
}
