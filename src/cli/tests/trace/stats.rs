//! `devprof stats`: what is counted and what is left out.

use crate::files::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tracefile::format::{
    Agent, Call, Dispatch, Kernel, Marker, MemoryCopy, NO_AGENT, Name, Process, RECORD_SIZE,
    Record, Recording, Stream, agent, direction, flag, marker, named, pieces, stream,
};
use zerocopy::FromBytes;

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
        assert_eq!(kernel["mean"], f64::from(mean), "{name}");
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
fn the_fields_of_json_are_in_a_readable_order() {
    let trace = written("stats-order", &records());
    let output = devprof(&[
        &"stats",
        &"--json",
        &"--kernels",
        &"--gaps",
        &"--by=queue",
        &trace,
    ]);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut rest = &*text;
    for key in [
        "processes",
        "dispatches",
        "untimed",
        "kernels",
        "agent",
        "queue",
        "name",
        "calls",
        "total",
        "mean",
        "median",
        "min",
        "max",
        "stddev",
        "share",
        "gaps",
        "queue",
        "idle_share",
        "calls",
        "after",
        "gpus",
    ] {
        let key = format!("\"{key}\": ");
        let (_, next) = rest
            .split_once(&key)
            .unwrap_or_else(|| panic!("{key} in\n{text}"));
        rest = next;
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
        "1000  10.00 µs     10 ns     10 ns     10 ns     10 ns      0 ns  56.8 %  says \"a, b\""
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
    let expected = [
        "_Z6halvedj",
        "2",
        "3000",
        "1500.000000",
        "17.045455",
        "1000",
        "2000",
        "707.106781",
        "1500.0",
        "0",
    ];
    assert_eq!(rows[2], csv::StringRecord::from(expected.to_vec()));
    let header = output.stdout.split(|&byte| byte == b'\n').next().unwrap();
    assert_eq!(
        str::from_utf8(header).unwrap(),
        "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\",\"MinNs\",\"MaxNs\",\
        \"StdDev\",\"MedianNs\",\"Blit\""
    );
}

/// The texts of [`records`], with the ids from 20.
const TEXTS: [&str; 9] = [
    "__amd_rocclr_copyBuffer",
    "_ZN5space4workIiEEvPT_",
    "hipMalloc",
    "hsa_amd_memory_async_copy",
    "step",
    "compute",
    "worker",
    "first GPU",
    "_ZN5space4workIfEEvPT_",
];

fn text(text: &str) -> u32 {
    20 + TEXTS.iter().position(|&own| own == text).unwrap() as u32
}

/// The records that those of [`records`] refer to: those of [`definitions`], a CPU, four streams, a kernel of HIP (4), and
/// two with the same base name (5 and 6).
fn all_definitions() -> Vec<[u8; RECORD_SIZE]> {
    let mut records = definitions();
    for own in TEXTS {
        records.extend(pieces(text(own), own).map(Record::seal));
    }
    let mut cpu = Agent::new(0, 0);
    cpu.what = agent::CPU.into();
    records.push(cpu.seal());
    for (id, name) in [(4, TEXTS[0]), (5, TEXTS[1]), (6, TEXTS[8])] {
        let mut kernel = Kernel::new(id, 0);
        kernel.name = text(name).into();
        kernel.agent = 1.into();
        records.push(kernel.seal());
    }
    for (id, what, thread) in [
        (1, stream::NULL, 0),
        (2, stream::CREATED, 0),
        (3, stream::PER_THREAD, 77),
        (4, stream::CREATED, 0),
    ] {
        let mut stream = Stream::new(id, 0);
        stream.what = what.into();
        stream.thread = thread.into();
        records.push(stream.seal());
    }
    records
}

fn name(what: u32, id: u64, own: &str) -> [u8; RECORD_SIZE] {
    let mut name = Name::new(id, 0);
    name.what = what.into();
    name.text = text(own).into();
    name.seal()
}

fn on_stream(mut dispatch: Dispatch, stream: u32) -> [u8; RECORD_SIZE] {
    dispatch.stream = stream.into();
    dispatch.seal()
}

/// A copy on stream 2 by thread 10.
fn copied(id: u64, way: u32, agents: (u32, u32), size: u64, times: (u64, u64)) -> MemoryCopy {
    let mut copy = MemoryCopy::new(id, 0);
    copy.direction = way.into();
    copy.source = agents.0.into();
    copy.destination = agents.1.into();
    copy.size = size.into();
    copy.start = times.0.into();
    copy.end = times.1.into();
    copy.observed = times.1.into();
    copy.stream = 2.into();
    copy.thread = 10.into();
    copy.function = text("hsa_amd_memory_async_copy").into();
    copy
}

fn marked(id: u64, flags: u16, what: u32, own: &str, times: (u64, u64)) -> [u8; RECORD_SIZE] {
    let mut marker = Marker::new(id, flags);
    marker.what = what.into();
    marker.text = text(own).into();
    marker.start = times.0.into();
    marker.end = times.1.into();
    marker.thread = if own == "step" { 10 } else { 11 }.into();
    marker.seal()
}

fn called(id: u64, name: u32, stream: u32, start: u64, end: u64) -> [u8; RECORD_SIZE] {
    let call: Call = call(id, name, 10, start, end);
    Call {
        stream: stream.into(),
        ..call
    }
    .seal()
}

/// A trace with all that has statistics.
fn records() -> Vec<[u8; RECORD_SIZE]> {
    let mut records = all_definitions();
    records.extend([
        // Kernel 5 and 6 take as long in total.
        on_stream(timed(dispatch(1, 0, 1, 5, 0), 90, 100, 110), 1),
        on_stream(timed(dispatch(2, 0, 1, 5, 0), 100, 120, 140), 2),
        on_stream(timed(dispatch(3, 0, 2, 5, 0), 100, 100, 190), 3),
        on_stream(timed(dispatch(4, 0, 3, 6, 0), 100, 100, 220), 4),
        on_stream(timed(dispatch(5, 0, 1, 4, 0), 100, 150, 180), 0),
    ]);
    for (id, way, agents, size, times) in [
        (1, direction::HOST_TO_DEVICE, (0, 1), 1000, (10, 20)),
        (2, direction::HOST_TO_DEVICE, (0, 1), 3000, (30, 60)),
        (3, direction::HOST_TO_DEVICE, (0, 2), 500, (30, 40)),
        (4, direction::DEVICE_TO_DEVICE, (1, 2), 64, (70, 75)),
        (5, direction::FILL, (NO_AGENT, 2), 4096, (80, 80)),
    ] {
        records.push(copied(id, way, agents, size, times).seal());
    }
    let mut unfinished = copied(6, direction::DEVICE_TO_HOST, (1, 0), 1, (0, 0));
    unfinished.head.flags = flag::UNFINISHED.into();
    records.push(unfinished.seal());
    records.extend([
        called(1, 7, 1, 100, 110),
        called(2, 7, 2, 120, 150),
        called(3, text("hipMalloc"), 0, 200, 300),
        called(4, text("hipMalloc"), 0, 300, 200),
        marked(1, 0, marker::MARK, "step", (5, 5)),
        marked(2, 0, marker::RANGE, "step", (10, 40)),
        marked(3, 0, marker::RANGE, "step", (50, 60)),
        marked(4, 0, marker::PROCESS_RANGE, "worker", (50, 150)),
        marked(5, flag::UNFINISHED, marker::RANGE, "step", (50, 1500)),
        // Names can follow what they name.
        name(named::STREAM, 2, "compute"),
        name(named::THREAD, 10, "worker"),
        name(named::AGENT, 1, "first GPU"),
    ]);
    records
}

/// Writes a trace into a new directory.
fn written(test: &str, records: &[[u8; RECORD_SIZE]]) -> PathBuf {
    let path = directory(test).join("a.trace");
    fs::write(&path, file(records)).unwrap();
    path
}

/// Runs `devprof stats --json` with these options, and returns its object and stderr.
fn stats(files: &[&Path], options: &[&str]) -> (Value, String) {
    let mut arguments: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&"stats", &"--json"];
    arguments.extend(options.iter().map(|option| option as &dyn AsRef<_>));
    arguments.extend(files.iter().map(|file| file as &dyn AsRef<_>));
    let output = devprof(&arguments);
    let stderr = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    (serde_json::from_slice(&output.stdout).unwrap(), stderr)
}

/// The value as it is read back: floating-point numbers are rounded.
fn read_back(value: Value) -> Value {
    serde_json::from_str(&value.to_string()).unwrap()
}

/// These fields of each row.
fn fields(rows: &Value, fields: &[&str]) -> Value {
    let rows = rows.as_array().unwrap().iter();
    let of = |row: &Value| fields.iter().map(|&field| row[field].clone()).collect();
    rows.map(of).collect::<Vec<Value>>().into()
}

const TIMES: [&str; 8] = [
    "name", "calls", "total", "mean", "median", "min", "max", "stddev",
];

/// The standard deviation of a sample.
fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares = values.iter().map(|value| (value - mean).powi(2));
    (squares.sum::<f64>() / (values.len() - 1) as f64).sqrt()
}

#[test]
fn rows_with_the_same_total_are_in_the_order_of_their_names() {
    let trace = written("stats-kernels", &records());
    let (report, _) = stats(&[&trace], &[]);
    let three = deviation(&[10.0, 20.0, 90.0]);
    let expected = json!([
        [
            "void space::work<float>(float*)",
            1,
            120,
            120.0,
            120.0,
            120,
            120,
            0.0
        ],
        [
            "void space::work<int>(int*)",
            3,
            120,
            40.0,
            20.0,
            10,
            90,
            three
        ],
        ["__amd_rocclr_copyBuffer", 1, 30, 30.0, 30.0, 30, 30, 0.0]
    ]);
    assert_eq!(fields(&report["kernels"], &TIMES), read_back(expected));
    let shares = json!([
        [null, 100.0 * 120.0 / 270.0],
        [null, 100.0 * 120.0 / 270.0],
        [true, 100.0 * 30.0 / 270.0]
    ]);
    assert_eq!(
        fields(&report["kernels"], &["blit", "share"]),
        read_back(shares)
    );
    assert_eq!(report.get("api"), None);
}

#[test]
fn rows_are_kept_apart_by_agent_queue_stream_and_thread() {
    let trace = written("stats-by", &records());
    let by = |by: &str, more: &[&str]| {
        let (report, _) = stats(&[&trace], &["--by", by]);
        let columns = [more, &["name", "total", "share"]].concat();
        fields(&report["kernels"], &columns)
    };
    let (int, float) = (
        "void space::work<int>(int*)",
        "void space::work<float>(float*)",
    );
    let blit = "__amd_rocclr_copyBuffer";
    // The group with the longest total time is first, and shares are of the group.
    assert_eq!(
        by("agent", &["agent", "node", "host"]),
        json!([
            ["first GPU", 1, "a host", int, 120, 80.0],
            ["first GPU", 1, "a host", blit, 30, 20.0],
            ["GPU 2 gfx1100", 2, "a host", float, 120, 100.0]
        ])
    );
    assert_eq!(
        by("queue", &["agent", "queue"]),
        json!([
            ["GPU 2 gfx1100", 3, float, 120, 100.0],
            ["first GPU", 2, int, 90, 100.0],
            ["first GPU", 1, blit, 30, 50.0],
            ["first GPU", 1, int, 30, 50.0]
        ]),
    );
    assert_eq!(
        by("stream", &["stream", "stream_name"]),
        json!([
            [4, "Stream 4", float, 120, 100.0],
            [3, "Stream 3 of thread 77", int, 90, 100.0],
            [0, "no stream", blit, 30, 100.0],
            [2, "compute", int, 20, 100.0],
            [1, "NULL stream", int, 10, 100.0]
        ])
    );
    assert_eq!(
        by(
            "thread,process",
            &["process", "thread", "thread_name", "host"]
        )[0],
        read_back(json!([
            4242,
            77,
            "thread 77",
            "a host",
            float,
            120,
            100.0 * 120.0 / 270.0
        ]))
    );
    let plain = devprof(&[&"stats", &"--by", &"queue,stream,process", &trace]).stdout;
    let plain = String::from_utf8(plain).unwrap();
    assert!(
        plain.contains("\nprocess 4242 (app), first GPU, queue 1, compute\n"),
        "{plain}"
    );
    assert!(
        plain.contains("  __amd_rocclr_copyBuffer (blit)\n"),
        "{plain}"
    );
}

#[test]
fn groups_are_visible() {
    let trace = written("stats-groups", &records());
    let shown = |color: &str| {
        let output = devprof(&[&color, &"stats", &"--by=agent", &trace]);
        String::from_utf8(output.stdout).unwrap()
    };
    let plain = shown("--color=never");
    for label in ["first GPU", "GPU 2 gfx1100"] {
        let line = format!("\n\n{label}\n");
        assert!(plain.contains(&line), "{plain}");
        let bold = format!("\n\n\x1b[1m{label}\x1b[0m\n");
        assert!(shown("--color=always").contains(&bold), "{plain}");
    }
}

/// The records on another host, which has the same kernels, GPUs and queues.
fn on_another_host(mut records: Vec<[u8; RECORD_SIZE]>) -> Vec<[u8; RECORD_SIZE]> {
    records.extend(pieces(50, "another host").map(Record::seal));
    let mut process = Process::new(4242, 0);
    process.host = 50.into();
    process.command = 3.into();
    records.push(process.seal());
    records
}

#[test]
fn rows_of_several_files_add_up_unless_they_are_kept_apart_by_process() {
    let first = written("stats-files", &records());
    let second = first.with_file_name("b.trace");
    let mut records = on_another_host(records());
    records.push(on_stream(timed(dispatch(6, 0, 1, 5, 0), 90, 400, 1400), 1));
    fs::write(&second, file(&records)).unwrap();
    let files = [&*first, &*second];
    let int = "void space::work<int>(int*)";
    let columns = ["process", "host", "agent", "queue", "calls", "total"];
    let of_int = |by: &[&str]| {
        let (report, _) = stats(&files, by);
        assert_eq!(report["dispatches"], 11);
        assert_eq!(report["processes"][1]["host"], "another host");
        let mut rows = report["kernels"].clone();
        rows.as_array_mut()
            .unwrap()
            .retain(|row| row["name"] == int);
        fields(&rows, &columns)
    };
    assert_eq!(of_int(&[]), json!([[null, null, null, null, 7, 1240]]));
    assert_eq!(
        of_int(&["--by", "process"]),
        json!([
            [4242, "another host", null, null, 4, 1120],
            [4242, "a host", null, null, 3, 120]
        ])
    );
    // Queues are of one process, GPUs of one host.
    assert_eq!(
        of_int(&["--by", "queue"]),
        json!([
            [4242, "another host", "first GPU", 1, 2 + 1, 1030],
            [4242, "a host", "first GPU", 2, 1, 90],
            [4242, "another host", "first GPU", 2, 1, 90],
            [4242, "a host", "first GPU", 1, 2, 30]
        ])
    );
    assert_eq!(
        of_int(&["--by", "agent"]),
        json!([
            [null, "another host", "first GPU", null, 4, 1120],
            [null, "a host", "first GPU", null, 3, 120]
        ])
    );
    let plain = devprof(&[&"stats", &"--by", &"agent", &first, &second]).stdout;
    let plain = String::from_utf8(plain).unwrap();
    assert!(plain.contains("\nanother host, first GPU\n"), "{plain}");
    // On one host, it is the same GPU.
    fs::copy(&first, &second).unwrap();
    assert_eq!(
        of_same_host(&files),
        json!([[null, "a host", "first GPU", null, 6, 240]])
    );
}

fn of_same_host(files: &[&Path]) -> Value {
    let (report, _) = stats(files, &["--by", "agent", "--top", "1"]);
    let mut rows = report["kernels"].clone();
    rows.as_array_mut().unwrap().truncate(1);
    fields(
        &rows,
        &["process", "host", "agent", "queue", "calls", "total"],
    )
}

#[test]
fn copies_of_several_hosts_have_their_host() {
    let first = written("stats-hosts", &records());
    let second = first.with_file_name("b.trace");
    fs::write(&second, file(&on_another_host(records()))).unwrap();
    let (report, _) = stats(&[&first, &second], &["--copies"]);
    let columns = ["name", "source", "destination", "host", "calls"];
    let rows = fields(&report["copies"], &columns);
    for host in ["a host", "another host"] {
        let (cpu, gpu) = ("CPU 0", "first GPU");
        let row = json!(["host_to_device", cpu, gpu, host, 2]);
        assert!(rows.as_array().unwrap().contains(&row), "{rows}");
    }
    // The kernels that copy have no source and no destination, and add up.
    let blit = json!(["__amd_rocclr_copyBuffer", null, null, null, 2]);
    assert!(rows.as_array().unwrap().contains(&blit), "{rows}");
    assert_eq!(rows.as_array().unwrap().len(), 2 * 4 + 1);

    let shown = |option: &str| {
        let output = devprof(&[&"stats", &"--copies", &option, &first, &second]);
        String::from_utf8(output.stdout).unwrap()
    };
    let plain = shown("--by=agent");
    for row in [
        "host to device, CPU 0 to GPU 2 gfx1100 on a host",
        "host to device, CPU 0 to GPU 2 gfx1100 on another host",
        "fill, GPU 2 gfx1100 on another host",
        "__amd_rocclr_copyBuffer (blit), first GPU on another host",
    ] {
        assert_eq!(plain.matches(&format!("  {row}\n")).count(), 1, "{plain}");
    }
    // The group has the host.
    assert!(!shown("--by=process").contains(" on a host\n"));
    let csv = shown("--csv");
    let end = "\"first GPU\",\"GPU 2 gfx1100\",\"another host\"\n";
    assert_eq!(csv.matches(end).count(), 1, "{csv}");
    let csv = shown("--csv").lines().count();
    assert_eq!(csv, 1 + 2 * 4 + 1);
}

#[test]
fn api_calls_and_markers_have_the_same_statistics() {
    let trace = written("stats-api", &records());
    let (report, stderr) = stats(&[&trace], &["--api", "--markers"]);
    let launches = deviation(&[10.0, 30.0]);
    let expected = json!([
        ["hipMalloc", 1, 100, 100.0, 100.0, 100, 100, 0.0],
        ["hipLaunchKernel", 2, 40, 20.0, 20.0, 10, 30, launches]
    ]);
    assert_eq!(fields(&report["api"], &TIMES), read_back(expected));
    assert!(stderr.contains("a.trace: 1 API call with an end before the start: left out"));
    let expected = json!([
        ["worker", 1, 100, 100.0, 100.0, 100, 100, 0.0],
        ["step", 2, 40, 20.0, 20.0, 10, 30, deviation(&[30.0, 10.0])],
        ["step", 1, 0, 0.0, 0.0, 0, 0, 0.0]
    ]);
    assert_eq!(fields(&report["markers"], &TIMES), read_back(expected));
    let what = json!([["process range"], ["range"], ["mark"]]);
    assert_eq!(fields(&report["markers"], &["what"]), what);
    assert!(stderr.contains("a.trace: 1 range that did not end: left out"));
    assert_eq!(report["untimed"], json!({"api": 1, "markers": 1}));
    let (report, _) = stats(&[&trace], &["--api", "--by", "stream,thread"]);
    let expected = json!([
        ["hipMalloc", "no stream", "thread 10 (worker)", 100],
        ["hipLaunchKernel", "compute", "thread 10 (worker)", 30],
        ["hipLaunchKernel", "NULL stream", "thread 10 (worker)", 10]
    ]);
    let columns = ["name", "stream_name", "thread_name", "total"];
    assert_eq!(fields(&report["api"], &columns), expected);
    // A point in time has no duration.
    let plain = devprof(&[&"stats", &"--markers", &trace]).stdout;
    let plain = String::from_utf8(plain).unwrap();
    let mark = plain.lines().last().unwrap().split_whitespace();
    assert!(
        mark.eq(["1", "-", "-", "-", "-", "-", "-", "-", "step"]),
        "{plain}"
    );
}

#[test]
fn copies_are_by_direction_and_with_several_gpus_by_their_agents() {
    let trace = written("stats-copies", &records());
    let (report, stderr) = stats(&[&trace], &["--copies"]);
    assert!(
        stderr.contains("1 copy without an observed end"),
        "{stderr}"
    );
    let columns = [
        "name",
        "source",
        "destination",
        "calls",
        "bytes",
        "mean_size",
        "total",
        "median",
        "bandwidth",
    ];
    let expected = json!([
        [
            "host_to_device",
            "CPU 0",
            "first GPU",
            2,
            4000,
            2000.0,
            40,
            20.0,
            1e11
        ],
        [
            "__amd_rocclr_copyBuffer",
            null,
            null,
            1,
            null,
            null,
            30,
            30.0,
            null
        ],
        [
            "host_to_device",
            "CPU 0",
            "GPU 2 gfx1100",
            1,
            500,
            500.0,
            10,
            10.0,
            5e10
        ],
        [
            "device_to_device",
            "first GPU",
            "GPU 2 gfx1100",
            1,
            64,
            64.0,
            5,
            5.0,
            1.28e10
        ],
        ["fill", null, "GPU 2 gfx1100", 1, 4096, 4096.0, 0, 0.0, null]
    ]);
    assert_eq!(fields(&report["copies"], &columns), expected);
    let (report, _) = stats(&[&trace], &["--copies", "--by", "agent"]);
    assert_eq!(report["copies"][1]["destination"], "first GPU");
    let (report, _) = stats(&[&trace], &["--copies", "--by", "stream"]);
    let by_stream = fields(&report["copies"], &["stream_name", "name"]);
    assert_eq!(by_stream[0], json!(["compute", "host_to_device"]));
    assert_eq!(
        by_stream[4],
        json!(["no stream", "__amd_rocclr_copyBuffer"])
    );
    let output = devprof(&[&"stats", &"--csv", &"--copies", &trace]).stdout;
    let text = String::from_utf8(output).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].ends_with(
        "\"MedianNs\",\"Bytes\",\"BytesPerSecond\",\"Source\",\"Destination\",\"Host\""
    ));
    assert_eq!(
        lines[1],
        "\"MEMORY_COPY_HOST_TO_DEVICE\",2,40,20.000000,47.058824,10,30,14.142136,20.0,4000,\
        100000000000,\"CPU 0\",\"first GPU\",\"a host\""
    );
    assert!(lines[5].starts_with("\"MEMORY_FILL\",1,0,"), "{text}");
    let plain = devprof(&[&"stats", &"--copies", &trace]).stdout;
    let plain = String::from_utf8(plain).unwrap();
    assert!(
        plain.contains("  host to device, CPU 0 to GPU 2 gfx1100\n"),
        "{plain}"
    );

    // With one GPU, the agents are known without saying.
    let mut records = records();
    records.retain(|bytes| {
        let (kind, id) = (bytes[4], bytes[8]);
        kind != tracefile::format::kind::AGENT as u8 || id != 2
    });
    records.retain(|bytes| {
        let (kind, id) = (bytes[4], bytes[8]);
        kind != tracefile::format::kind::DISPATCH as u8 || id != 4
    });
    for bytes in &mut records {
        if bytes[4] == tracefile::format::kind::COPY as u8 {
            let mut copy = MemoryCopy::read_from_bytes(bytes).unwrap();
            for agent in [&mut copy.source, &mut copy.destination] {
                if agent.get() == 2 {
                    agent.set(1);
                }
            }
            *bytes = copy.seal();
        }
    }
    let trace = written("stats-copies-one", &records);
    let (report, _) = stats(&[&trace], &["--copies"]);
    let expected = json!([
        [
            "host_to_device",
            null,
            null,
            3,
            4500,
            1500.0,
            50,
            10.0,
            9e10
        ],
        [
            "__amd_rocclr_copyBuffer",
            null,
            null,
            1,
            null,
            null,
            30,
            30.0,
            null
        ],
        ["device_to_device", null, null, 1, 64, 64.0, 5, 5.0, 1.28e10],
        ["fill", null, null, 1, 4096, 4096.0, 0, 0.0, null]
    ]);
    assert_eq!(fields(&report["copies"], &columns), expected);
}

#[test]
fn only_the_kernels_of_hip_that_copy_or_fill_are_blit_kernels() {
    let mut records = all_definitions();
    records.extend(pieces(60, "__amd_rocclr_initHeap").map(Record::seal));
    let mut kernel = Kernel::new(7, 0);
    kernel.name = 60.into();
    records.extend([
        kernel.seal(),
        timed(dispatch(1, 0, 1, 7, 0), 90, 100, 200).seal(),
        timed(dispatch(2, 0, 1, 4, 0), 90, 200, 250).seal(),
    ]);
    let trace = written("stats-blit", &records);
    let (report, _) = stats(&[&trace], &["--kernels", "--copies"]);
    let expected = json!([
        ["__amd_rocclr_initHeap", null],
        ["__amd_rocclr_copyBuffer", true]
    ]);
    assert_eq!(fields(&report["kernels"], &["name", "blit"]), expected);
    assert_eq!(report["copies"].as_array().unwrap().len(), 1);
    let out = trace.with_file_name("out.jsonl");
    assert!(devprof(&[&"export", &trace, &"-o", &out]).status.success());
    let text = fs::read_to_string(out).unwrap();
    let kernels = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line["type"] == "kernel");
    let blits: Vec<Value> = kernels.filter(|line| line["blit"] == true).collect();
    assert_eq!(blits.len(), 1, "{blits:?}");
    assert_eq!(blits[0]["name"], "__amd_rocclr_copyBuffer");
}

fn recording(id: u64, time: u64, is_on: bool) -> [u8; RECORD_SIZE] {
    let mut recording = Recording::new(id, 0);
    recording.time = time.into();
    recording.is_on = u32::from(is_on).into();
    recording.seal()
}

#[test]
fn gaps_are_counted_where_nothing_can_have_run() {
    let mut records = all_definitions();
    let in_queue = |id, queue, kernel, submit, start, end| {
        timed(dispatch(id, 0, queue, kernel, 0), submit, start, end).seal()
    };
    let mut agents_clock = timed(dispatch(30, flag::CLOCK_AGENT, 2, 5, 0), 150, 1, 2);
    agents_clock.observed = 250.into();
    records.extend([
        // Queue 1: 2 overlaps 1 and ends after 3. The order of the file is that of the ends.
        in_queue(1, 1, 5, 90, 100, 200),
        in_queue(3, 1, 6, 90, 160, 170),
        in_queue(2, 1, 5, 90, 150, 300),
        in_queue(4, 1, 6, 90, 310, 400),
        in_queue(5, 1, 5, 400, 450, 500),
        in_queue(6, 1, 5, 400, 500, 510),
        // Two gaps after kernel 5.
        in_queue(7, 1, 6, 400, 530, 600),
        recording(1, 610, false),
        recording(2, 690, true),
        in_queue(8, 1, 5, 695, 700, 800),
        // Queue 2: what has no times may have run in the first gap.
        in_queue(20, 2, 5, 90, 100, 200),
        in_queue(21, 2, 5, 90, 300, 400),
        agents_clock.seal(),
        in_queue(22, 2, 5, 90, 401, 500),
        // Queue 3 has one dispatch only.
        in_queue(40, 3, 6, 90, 100, 1100),
    ]);
    let trace = written("stats-gaps", &records);
    let (report, _) = stats(&[&trace], &["--gaps", "--short-names"]);
    let columns = [
        "agent",
        "queue",
        "busy",
        "active",
        "calls",
        "total",
        "mean",
        "median",
        "max",
        "uncounted",
        "late",
    ];
    let expected = json!([
        ["GPU 2 gfx1100", 3, 1000, 1000, 0, 0, 0.0, 0.0, 0, 0, 0],
        [
            "GPU 1 gfx1100",
            1,
            520,
            600,
            3,
            80,
            80.0 / 3.0,
            20.0,
            50,
            1,
            0
        ],
        ["GPU 1 gfx1100", 2, 299, 300, 1, 1, 1.0, 1.0, 1, 1, 0]
    ]);
    let sorted = |rows: Value| {
        let mut rows = rows.as_array().unwrap().clone();
        rows.sort_by_key(|row| row.to_string());
        rows
    };
    assert_eq!(
        sorted(fields(&report["gaps"], &columns)),
        sorted(read_back(expected))
    );
    let queue = report["gaps"].as_array().unwrap().iter();
    let queue = queue.clone().find(|queue| queue["queue"] == 1).unwrap();
    // Both kernels have the same base name, and are one row.
    let after = fields(&queue["after"], &["name", "calls", "total", "share"]);
    assert_eq!(after, json!([["work", 3, 80, 100.0]]));
    assert_eq!(queue["idle_share"], read_back(json!(100.0 * 80.0 / 600.0)));
    let (full, _) = stats(&[&trace], &["--gaps", "--top", "1"]);
    let queues = full["gaps"].as_array().unwrap().iter();
    let queue = queues.clone().find(|queue| queue["queue"] == 1).unwrap();
    let after = fields(&queue["after"], &["name", "calls", "total", "share"]);
    let longest = json!([["void space::work<float>(float*)", 1, 50, 62.5]]);
    assert_eq!(after, longest);
    // The first GPU is idle when none of its queues has a kernel: from 400 to 401, and from 510 to 530. In the pause, it is
    // not known.
    let busy = json!([
        ["GPU 1 gfx1100", 300 + 109 + 70 + 100, 600],
        ["GPU 2 gfx1100", 1000, 1000]
    ]);
    assert_eq!(fields(&report["gpus"], &["agent", "busy", "active"]), busy);
    let plain = devprof(&[&"stats", &"--gaps", &trace]).stdout;
    let plain = String::from_utf8(plain).unwrap();
    let expected = "\
GPU 1 gfx1100, queue 1: idle 13.3 % of 600 ns, 3 gaps, median 20 ns, 1 not counted
   1  50 ns  50 ns   50 ns    50 ns   62.5 %  void space::work<float>(float*)
   2  30 ns  15 ns   15 ns    20 ns   37.5 %  void space::work<int>(int*)
";
    assert!(plain.contains(expected), "{plain}");
    // The busy time of the first GPU does not contain its uncounted gap.
    let busy = "\n
GPU 1 gfx1100: busy 96.5 % of 600 ns, 1 gap not counted
GPU 2 gfx1100: busy 100.0 % of 1.000 µs
";
    assert!(plain.ends_with(busy), "{plain}");
}

#[test]
fn gaps_in_which_a_kernel_of_another_queue_may_run_after_a_pause_are_not_counted() {
    let mut records = all_definitions();
    let in_queue = |id, queue, submit, start, end| {
        timed(dispatch(id, 0, queue, 5, 0), submit, start, end).seal()
    };
    records.extend([
        in_queue(1, 1, 90, 100, 200),
        in_queue(2, 2, 90, 100, 200),
        recording(1, 210, false),
        recording(2, 220, true),
        // What was launched in the pause has ended in queue 1, but it can still run in queue 2.
        in_queue(3, 1, 230, 240, 250),
        in_queue(4, 1, 260, 300, 310),
        // Now it has ended in both.
        in_queue(5, 2, 320, 330, 340),
        in_queue(6, 1, 345, 350, 360),
        // In queue 3, kernels overlap. So one that was launched in the pause can run until the next gap.
        in_queue(7, 3, 200, 205, 1000),
        in_queue(8, 3, 225, 230, 240),
        in_queue(9, 3, 226, 1100, 1200),
        in_queue(10, 3, 227, 1300, 1400),
    ]);
    let trace = written("stats-pause", &records);
    let (report, _) = stats(&[&trace], &["--gaps"]);
    let of = |rows: &str, columns: &[&str]| {
        let mut rows = fields(&report[rows], columns).as_array().unwrap().clone();
        rows.sort_by_key(Value::to_string);
        rows
    };
    // Number and total of the counted gaps, and the number of the others.
    assert_eq!(
        of("gaps", &["queue", "calls", "total", "uncounted"]),
        [
            json!([1, 2, 50 + 40, 1]),
            json!([2, 0, 0, 1]),
            json!([3, 1, 100, 1])
        ]
    );
    assert_eq!(
        of("gpus", &["node", "calls", "total", "uncounted"]),
        [json!([1, 1, 10, 3]), json!([2, 1, 100, 1])]
    );
}

#[test]
fn the_statistics_are_those_of_the_exported_records() {
    // Overlapping kernels, in the order of their ends, with more values than a median keeps.
    let mut records = all_definitions();
    let mut state = 1u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
        (state >> 33) % below
    };
    let mut dispatches = Vec::new();
    let mut start = 1000;
    for id in 1..=60_000 {
        start += random(700);
        let length = 100 + random(1 << (3 + id % 9));
        let queue = 1 + random(3) as u32;
        let own = dispatch(id, 0, queue, 5 + (id % 9 / 7) as u32, 0);
        dispatches.push(timed(own, start - 10, start, start + length));
    }
    dispatches.sort_by_key(|dispatch| dispatch.end.get());
    records.extend(dispatches.into_iter().map(Record::seal));
    let trace = written("stats-check", &records);
    let (report, _) = stats(&[&trace], &["--kernels", "--gaps"]);
    let out = trace.with_file_name("out.jsonl");
    let output = devprof(&[&"export", &trace, &"-o", &out]);
    assert!(output.status.success());
    let mut times: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut queues: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for line in fs::read_to_string(out).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        if line["type"] == "dispatch" {
            let [start, end, queue] =
                ["start", "end", "queue"].map(|field| line[field].as_u64().unwrap());
            let own = times.entry(line["kernel_name"].as_str().unwrap().into());
            own.or_default().push((end - start) as f64);
            queues.entry(queue).or_default().push((start, end));
        }
    }
    assert_eq!(times.len(), 2);
    let kernels = report["kernels"].as_array().unwrap();
    for (name, mut times) in times {
        let row = kernels.iter().find(|row| row["name"] == *name).unwrap();
        let of = |field: &str| row[field].as_f64().unwrap();
        times.sort_by(f64::total_cmp);
        let total: f64 = times.iter().sum();
        let close = |field: &str, expected: f64, error: f64| {
            let found = of(field);
            let difference = (found - expected).abs();
            assert!(
                difference <= error * expected,
                "{name} {field}: {found} {expected}"
            );
        };
        close("calls", times.len() as f64, 0.0);
        close("total", total, 0.0);
        close("mean", total / times.len() as f64, 1e-12);
        close("min", times[0], 0.0);
        close("max", times[times.len() - 1], 0.0);
        close("stddev", deviation(&times), 1e-9);
        let (low, high) = (times[(times.len() - 1) / 2], times[times.len() / 2]);
        let is_approximate = times.len() > 16_384;
        close(
            "median",
            (low + high) / 2.0,
            if is_approximate { 5e-4 } else { 0.0 },
        );
        assert_eq!(row["median_is_approximate"] == true, is_approximate);
    }
    for (queue, mut spans) in queues {
        spans.sort_unstable();
        let gaps = report["gaps"].as_array().unwrap().iter();
        let row = gaps.clone().find(|row| row["queue"] == queue).unwrap();
        let (mut end, mut gaps) = (spans[0].0, Vec::new());
        for (start, own_end) in spans {
            if start > end {
                gaps.push(start - end);
            }
            end = end.max(own_end);
        }
        assert!(gaps.len() > 1000);
        gaps.sort_unstable();
        let expected = json!([gaps.len(), gaps.iter().sum::<u64>(), gaps[gaps.len() - 1]]);
        let found = json!([row["calls"], row["total"], row["max"]]);
        assert_eq!(found, expected, "queue {queue}");
        assert_eq!(row["late"], 0);
        let after = row["after"].as_array().unwrap().iter();
        let calls = after.map(|row| row["calls"].as_u64().unwrap());
        assert_eq!(calls.sum::<u64>(), gaps.len() as u64);
    }
}

#[test]
fn tables_fit_into_100_columns() {
    let trace = written("stats-width", &records());
    let output = devprof(&[
        &"stats",
        &"--kernels",
        &"--api",
        &"--copies",
        &"--markers",
        &"--gaps",
        &"--top",
        &"2",
        &"--short-names",
        &trace,
    ]);
    let text = String::from_utf8(output.stdout).unwrap();
    let titles = [
        "KERNELS",
        "API CALLS",
        "COPIES AND FILLS",
        "MARKERS",
        "GAPS BETWEEN KERNELS",
    ];
    let mut at = 0;
    for title in titles {
        at += text[at..]
            .find(title)
            .unwrap_or_else(|| panic!("{title}: {text}"));
    }
    // Names, which can be long, are last, and there are at least 20 columns for them.
    for last in ["Kernel", "Function", "Direction", "Marker", "After"] {
        let line = text.lines().find(|line| line.ends_with(last)).unwrap();
        assert!(line.chars().count() <= 80 + last.len(), "{line}");
    }
    assert!(text.contains("\n3 more rows: "), "{text}");
}

#[test]
fn copies_and_markers_have_shares_and_deviations() {
    let trace = written("stats-columns", &records());
    for (option, row) in [
        (
            "--copies",
            "14.1 ns 47.1 % host to device, CPU 0 to first GPU",
        ),
        ("--markers", "14.14 ns 28.6 % step"),
    ] {
        let output = devprof(&[&"stats", &option, &trace]);
        let plain = String::from_utf8(output.stdout).unwrap();
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut lines = plain.lines().map(words);
        let headings = lines.next().unwrap();
        assert!(headings.contains(" Max StdDev Share "), "{plain}");
        assert!(lines.any(|line| line.ends_with(row)), "{plain}");
    }
}

#[test]
fn tables_that_the_trace_does_not_have_are_reported_with_the_option_that_records_them() {
    let trace = written("stats-none", &definitions());
    for (option, next) in [
        ("--api", "--trace-api"),
        ("--copies", "--trace-copies"),
        ("--markers", "--trace-markers"),
        ("--gaps", "no kernels with times"),
    ] {
        let output = devprof(&[&"stats", &option, &trace]);
        let stderr = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(
            stderr.contains("the trace has no ") && stderr.contains(next),
            "{stderr}"
        );
        assert!(output.stdout.is_empty());
        let (report, stderr) = stats(&[&trace], &["--kernels", option]);
        assert!(stderr.contains(next), "{stderr}");
        assert_eq!(report["kernels"], json!([]));
        let keys = match option {
            "--gaps" => vec!["gaps", "gpus"],
            option => vec![option.trim_start_matches("--")],
        };
        for key in keys {
            assert_eq!(report[key], json!([]), "{key}");
        }
        let output = devprof(&[&"stats", &"--kernels", &option, &trace]).stdout;
        let lines = String::from_utf8(output).unwrap();
        let lines = lines.lines().filter(|line| line.contains("Mean"));
        assert_eq!(lines.count(), 1, "{option}");
    }
}

#[test]
fn several_tables_are_written_to_one_csv_file_each() {
    let trace = written("stats-csv", &records());
    let out = trace.with_file_name("out");
    let output = devprof(&[
        &"stats",
        &"--kernels",
        &"--api",
        &"--copies",
        &"--markers",
        &"--gaps",
        &"--by",
        &"process",
        &"-o",
        &out,
        &trace,
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let printed = String::from_utf8(output.stdout).unwrap();
    for (name, rows, last) in [
        ("kernel_stats.csv", 3, "Process"),
        ("hip_api_stats.csv", 2, "Process"),
        ("memory_copy_stats.csv", 5, "Process"),
        ("marker_api_stats.csv", 3, "Process"),
        ("gap_stats.csv", 1, "Queue"),
    ] {
        let path = out.join(name);
        let mut reader = csv::Reader::from_path(&path).unwrap();
        let header = reader.headers().unwrap().clone();
        assert_eq!(&header[1], "Calls");
        assert_eq!(&header[header.len() - 1], last);
        assert_eq!(reader.records().map(Result::unwrap).count(), rows, "{name}");
        let noun = if rows == 1 { "row" } else { "rows" };
        let line = format!("{}: {rows} {noun}\n", path.display());
        assert!(printed.contains(&line), "{printed}");
    }
}
