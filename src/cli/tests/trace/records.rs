//! A trace with streams, copies, markers, names and pauses, and how each format exports it.

use crate::files::*;
use std::fs;
use std::path::{Path, PathBuf};
use tracefile::format::{
    Agent, Kernel, MemoryCopy, NO_AGENT, Record, agent, direction, flag, marker, named, stream,
};

/// Further records, to which [`trace`] refers: a CPU (agent 0), the kernel that HIP copies with (4), and streams: NULL
/// (1), created (2 and 4), of thread 11 (3).
fn new_definitions() -> Records {
    let mut records = definitions();
    records.extend(texts(&[
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
    ]));
    records.extend([
        with!(Agent::new(0, 0); what = agent::CPU, number = 1, name = 25).seal(),
        with!(Kernel::new(4, 0); name = 30, agent = 1).seal(),
    ]);
    records.extend(streams(&[
        (1, stream::NULL, 0),
        (2, stream::CREATED, 0),
        (3, stream::PER_THREAD, 11),
        (4, stream::CREATED, 0),
    ]));
    records
}

/// A copy by an API call (0: none) with its flags, direction, agents, stream, and times of submission, start and end.
type Copied = (u64, u16, u32, (u32, u32), u64, u32, (u64, u64, u64));

fn copied((id, flags, way, agents, call, stream, times): Copied) -> MemoryCopy {
    let no_call = if call == 0 { flag::NO_CALL } else { 0 };
    let copy = with!(copy(id, way, agents, (times.1, times.2)); head.flags = flags | no_call, function = 20);
    with!(copy; correlation = call, stream = stream, submit = times.0)
}

/// A stream, a copy on it, a marker, a name and a pause, which refer only to [`definitions`] and to each other.
pub fn one_of_each() -> Records {
    let copied = copy(1, direction::DEVICE_TO_DEVICE, (1, 2), (1600, 1700));
    let range = marked(1, marker::RANGE, 2, 10, (1400, 1800));
    let mut records = streams(&[(1, stream::CREATED, 0)]);
    records.extend([
        with!(copied; correlation = 1u64, stream = 1, function = 1, submit = 1550u64).seal(),
        with!(range; depth = 1).seal(),
        name(named::STREAM, 1, 2),
        recording(1, 1900, false),
    ]);
    records
}

/// On thread 10, the range "epoch" contains everything. The call of thread 10 that begins with it, the range "compute",
/// which has exactly the times of the second call, and the third call follow each other without gaps.
fn trace() -> Vec<u8> {
    let mut records = new_definitions();
    let on_stream = |id, queue, kernel, correlation, stream: u32| {
        let dispatch = dispatch(id, 0, queue, kernel, correlation);
        with!(dispatch; stream = stream)
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
        records.push(with!(call(id, name, thread, start, end); stream = stream).seal());
    }
    use direction::*;
    use flag::{CLOCK_NONE, CLOCK_SCALED, UNFINISHED};
    let none = (NO_AGENT, NO_AGENT);
    let lost = CLOCK_NONE | UNFINISHED;
    let (scaled, between) = (CLOCK_SCALED, DEVICE_TO_DEVICE);
    let copies: [Copied; 8] = [
        (1, 0, HOST_TO_DEVICE, (0, 1), 2, 2, (1110, 1250, 1350)),
        (2, 0, HOST_TO_DEVICE, (0, 1), 2, 2, (1120, 1300, 1400)),
        (3, 0, DEVICE_TO_HOST, (1, 0), 4, 1, (1210, 1400, 1500)),
        (4, scaled, between, (1, 2), 0, 0, (1300, 1400, 1450)),
        (5, 0, FILL, (NO_AGENT, 1), 0, 0, (1300, 1500, 1510)),
        (6, 0, HOST_TO_HOST, (0, 0), 0, 0, (1300, 1500, 1520)),
        (7, CLOCK_NONE, UNKNOWN, none, 0, 0, (1330, 0, 0)),
        (8, lost, HOST_TO_DEVICE, (0, 2), 0, 0, (1340, 0, 0)),
    ];
    let mut copies = copies.map(copied);
    copies[3].engine = 2.into();
    records.extend(copies.map(Record::seal));
    let compute = marked(2, marker::RANGE, 23, 10, (1100, 1200));
    let step = marked(4, marker::PROCESS_RANGE, 22, 10, (1000, 1400));
    let unfinished = marked(6, marker::RANGE, 23, 11, (1060, 2000));
    records.extend([
        marked(1, marker::MARK, 31, 10, (1150, 1150)).seal(),
        with!(compute; depth = 1).seal(),
        marked(3, marker::RANGE, 24, 10, (1000, 1300)).seal(),
        with!(step; end_thread = 11, range = 77u64).seal(),
        marked(5, marker::PROCESS_RANGE, 22, 11, (1100, 1500)).seal(),
        with!(unfinished; head.flags = UNFINISHED).seal(),
        recording(1, 1600, false),
        recording(2, 1700, true),
        recording(3, 1900, false),
        name(named::THREAD, 10, 26),
        name(named::STREAM, 2, 27),
        name(named::AGENT, 1, 28),
    ]);
    file(&records)
}

/// A new directory with the export of [`trace`] to a file. Returns the path of the file.
fn exported(test: &str, out: &str) -> PathBuf {
    let dir = written(test, &trace());
    succeed(&dir, &format!("export a.trace -o {out}"));
    dir.join(out)
}

const COPIES: &str =
    "\"Kind\",\"Direction\",\"Stream_Id\",\"Source_Agent_Id\",\"Destination_Agent_Id\",\
    \"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"
\"MEMORY_COPY\",\"MEMORY_COPY_HOST_TO_DEVICE\",2,\"CPU 0\",\"GPU 0\",2,1250,1350
\"MEMORY_COPY\",\"MEMORY_COPY_HOST_TO_DEVICE\",2,\"CPU 0\",\"GPU 0\",2,1300,1400
\"MEMORY_COPY\",\"MEMORY_COPY_DEVICE_TO_HOST\",0,\"GPU 0\",\"CPU 0\",4,1400,1500
\"MEMORY_COPY\",\"MEMORY_COPY_DEVICE_TO_DEVICE\",0,\"GPU 0\",\"GPU 1\",0,1400,1450
\"MEMORY_COPY\",\"MEMORY_FILL\",0,\"\",\"GPU 0\",0,1500,1510
\"MEMORY_COPY\",\"MEMORY_COPY_HOST_TO_HOST\",0,\"CPU 0\",\"CPU 0\",0,1500,1520
\"MEMORY_COPY\",\"MEMORY_COPY_NONE\",0,\"\",\"\",0,1330,1330
\"MEMORY_COPY\",\"MEMORY_COPY_HOST_TO_DEVICE\",0,\"CPU 0\",\"GPU 1\",0,1340,1340
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
    let dir = written("csv-all", &trace());
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    succeed(&dir, "export a.trace -o kernels.csv");
    let kernels = read("kernels.csv");
    let rows = csv::Reader::from_reader(kernels.as_bytes()).into_records();
    // The NULL stream, and a stream that is not known, are 0.
    let streams: Vec<_> = rows.map(|row| row.unwrap()[3].to_owned()).collect();
    assert_eq!(streams, ["2", "3", "0", "0"]);

    let all = succeed(&dir, "export a.trace -o all.csv --csv-of all").shown();
    let summary = "all_kernel_trace.csv, all_memory_copy_trace.csv, all_hip_api_trace.csv, \
        all_marker_api_trace.csv: 4 dispatches, 5 API calls, 8 copies, 6 markers\n";
    assert!(all.ends_with(summary), "{all}");
    assert!(!dir.join("all.csv").exists());
    // Only records that were written are counted.
    for (option, name, counted, expected) in [
        ("kernels", "kernel", "4 dispatches", &*kernels),
        ("copies", "memory_copy", "8 copies", COPIES),
        ("api", "hip_api", "5 API calls", API),
        ("markers", "marker_api", "6 markers", MARKERS),
    ] {
        assert_eq!(read(&format!("all_{name}_trace.csv")), expected, "{name}");
        let export = format!("export a.trace --csv-of {option}");
        let one = succeed(&dir, &format!("{export} -o one.csv")).shown();
        assert!(one.ends_with(&format!("one.csv: {counted}\n")), "{one}");
        assert_eq!(read("one.csv"), expected, "{option}");
        let piped = devprof(&dir, &format!("{export} -fcsv -o-"));
        assert_eq!(piped.text(), expected, "{option}");
    }
}

#[test]
fn only_selected_records_are_exported() {
    let dir = written("selected", &trace());
    let selection = "--kernel halved --time 250ns..340ns --time 500ns..501ns";
    let all = succeed(
        &dir,
        &format!("export a.trace -o all.csv --csv-of all {selection}"),
    );
    let summary = "3 dispatches, 1 API call, 5 copies, 4 markers\n";
    assert!(all.shown().ends_with(summary), "{}", all.shown());
    let rows = csv::Reader::from_path(dir.join("all_kernel_trace.csv")).unwrap();
    let starts: Vec<_> = rows
        .into_records()
        .map(|row| row.unwrap()[9].to_owned())
        .collect();
    assert_eq!(starts, ["1200", "1250", "1500"]);
    for out in ["a.jsonl", "a.db", "a.pftrace", "a.xplane.pb"] {
        let run = succeed(&dir, &format!("export a.trace -o {out} {selection}"));
        assert!(
            run.shown().ends_with(&format!("{out}: {summary}")),
            "{}",
            run.shown()
        );
    }
    let lines = json_lines(&dir.join("a.jsonl"));
    assert_table(
        of_type(&lines, "agent"),
        "id | number | what
        1 | 0 | gpu
        2 | 1 | gpu
        0 | 0 | cpu",
    );
}

#[test]
#[ignore = "needs node and an npm package; tools/test runs it"]
fn flows_and_counts_are_of_selected_dispatches() {
    let dir = written("selected-perfetto", &trace());
    succeed(
        &dir,
        "export a.trace -o a.pftrace --exclude-kernel copyBuffer",
    );
    assert_perfetto(
        &dir.join("a.pftrace"),
        "
            SELECT count(*) FROM flow
            = 5
            SELECT extract_arg(arg_set_id, 'debug.dispatches') FROM slice WHERE name = 'hipMemcpyAsync' ORDER BY ts
            = 0
            = 0
        ",
    );
}

#[test]
fn options_of_other_formats_are_usage_errors() {
    let dir = written("options", &trace());
    fs::write(dir.join("a_kernel_trace.csv"), trace()).unwrap();
    assert_refused(
        &dir,
        "2 | a.trace -o a.db --csv-of api | --csv-of is only for the format of .csv files
        2 | a.trace -o a.csv --tracks queue | --tracks is only for the format of .pftrace files
        2 | a.trace -f csv -o - --csv-of all | cannot write several files to stdout
        2 | a_kernel_trace.csv -o a.csv --csv-of all | a_kernel_trace.csv is the trace itself",
    );
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 2);
}

#[test]
fn csv_of_implies_csv() {
    let dir = written("csv-of", &trace());
    for (output, file) in [
        ("", Some("a.csv")),
        ("-o other", Some("other")),
        ("-o -", None),
    ] {
        let run = succeed(&dir, &format!("export a.trace {output} --csv-of copies"));
        let written = match file {
            Some(file) => fs::read_to_string(dir.join(file)).unwrap(),
            None => run.text().to_owned(),
        };
        assert_eq!(written, COPIES, "{output}");
    }
}

#[test]
fn the_database_has_copies_markers_streams_and_names() {
    assert_database(
        &exported("rocpd-records", "out.db"),
        r#"
            SELECT id, name FROM rocpd_info_stream ORDER BY id
            = 0 | Default Stream
            = 2 | uploads
            = 3 | Stream 3 of thread 11
            = 4 | Stream 4
            SELECT dispatch_id, stream_id, stream FROM kernels ORDER BY 1
            = 1 | 2 | uploads
            = 2 | 3 | Stream 3 of thread 11
            = 3 | 0 | Default Stream
            = 4 | 0 | Default Stream
            SELECT tid, name FROM threads ORDER BY 1
            = 10 | worker
            = 11 | null
            = 77 | null
            SELECT id, type, absolute_index, logical_index, type_index, name, user_name FROM rocpd_info_agent
                ORDER BY id
            = 0 | CPU | 0 | 0 | 0 | a CPU | null
            = 1 | GPU | 1 | 1 | 0 | gfx1100 | the large one
            = 2 | GPU | 2 | 2 | 1 | gfx1100 | null
            = 4294967295 | null | null | null | null | null | null
            SELECT category, name, tid, start, duration, size, stream_name, src_agent_type, src_agent_abs_index,
                dst_agent_type, dst_agent_abs_index, stack_id FROM memory_copies ORDER BY id
            = MEMORY_COPY | MEMORY_COPY_HOST_TO_DEVICE | 10 | 1250 | 100 | 4096 | uploads | CPU | 0 | GPU | 1 | 2
            = MEMORY_COPY | MEMORY_COPY_HOST_TO_DEVICE | 10 | 1300 | 100 | 4096 | uploads | CPU | 0 | GPU | 1 | 2
            = MEMORY_COPY | MEMORY_COPY_DEVICE_TO_HOST | 10 | 1400 | 100 | 4096 | Default Stream | GPU | 1 | CPU | 0 | 4
            = MEMORY_COPY | MEMORY_COPY_DEVICE_TO_DEVICE | 10 | 1400 | 50 | 4096 | Default Stream | GPU | 1 | GPU | 2 | null
            = MEMORY_COPY | MEMORY_FILL | 10 | 1500 | 10 | 4096 | Default Stream | null | null | GPU | 1 | null
            = MEMORY_COPY | MEMORY_COPY_HOST_TO_HOST | 10 | 1500 | 20 | 4096 | Default Stream | CPU | 0 | CPU | 0 | null
            = MEMORY_COPY | MEMORY_COPY_NONE | 10 | 1330 | 0 | 4096 | Default Stream | null | null | null | null | null
            = MEMORY_COPY | MEMORY_COPY_HOST_TO_DEVICE | 10 | 1340 | 0 | 4096 | Default Stream | CPU | 0 | GPU | 2 | null
            SELECT extdata FROM rocpd_memory_copy WHERE id IN (1, 4, 8)
            = {"function":"hsa_amd_memory_async_copy"}
            = {"clock":"scaled","engine":2,"function":"hsa_amd_memory_async_copy","unfinished":false}
            = {"clock":"none","function":"hsa_amd_memory_async_copy","unfinished":true}
            -- A call can be joined with its copies.
            SELECT r.name, count(*) FROM memory_copies c JOIN regions r USING (stack_id) GROUP BY r.id
            = hipMemcpyAsync | 2
            = hipMemcpyAsync | 1
            SELECT category, name, operation, tid, start, duration FROM markers ORDER BY start, duration
            = MARKER_CORE_RANGE_API | epoch | roctxThreadRangeA | 10 | 1000 | 300
            = MARKER_CORE_RANGE_API | step | roctxProcessRangeA | 10 | 1000 | 400
            = MARKER_CORE_RANGE_API | compute | roctxThreadRangeA | 11 | 1060 | 940
            = MARKER_CORE_RANGE_API | compute | roctxThreadRangeA | 10 | 1100 | 100
            = MARKER_CORE_RANGE_API | step | roctxProcessRangeA | 11 | 1100 | 400
            = MARKER_CORE_RANGE_API | here, "now" | roctxMarkA | 10 | 1150 | 0
            SELECT category, count(*) FROM regions_and_samples GROUP BY 1 ORDER BY 1
            = HIP_COMPILER_API | 1
            = HIP_RUNTIME_API | 4
            = MARKER_CORE_RANGE_API | 6
            SELECT extdata FROM rocpd_region WHERE extdata LIKE '%range%' OR extdata LIKE '%unfinished%' ORDER BY 1
            = {"end_thread":11,"range":0}
            = {"end_thread":11,"range":77}
            = {"unfinished":true}
        "#,
    );
}

#[test]
fn json_has_copies_whose_times_were_moved() {
    let mut records = new_definitions();
    for (id, flags) in [(1, flag::MOVED), (2, 0)] {
        let copy = copy(id, direction::HOST_TO_DEVICE, (0, 1), (2, 3));
        records.push(with!(copy; head.flags = flags).seal());
    }
    let dir = written("json-moved", &file(&records));
    devprof(&dir, "export a.trace -f json -o out");
    let lines = json_lines(&dir.join("out"));
    assert_table(
        of_type(&lines, "copy"),
        "moved
        true
        null",
    );
}

#[test]
fn missing_data_of_copies_and_markers_is_reported() {
    let mut records = definitions();
    let elsewhere = with!(dispatch(1, flag::NO_CALL, 1, 1, 0); stream = 8);
    let called = with!(call(1, 40, 10, 1, 2); stream = 7);
    let none = (NO_AGENT, NO_AGENT);
    use direction::{HOST_TO_DEVICE, UNKNOWN};
    let copies: [Copied; 3] = [
        (1, 0, HOST_TO_DEVICE, (8, 1), 9, 6, (1, 3, 2)),
        (2, flag::CLOCK_NONE, UNKNOWN, none, 0, 0, (1, 0, 0)),
        (3, flag::UNFINISHED, UNKNOWN, none, 0, 0, (1, 0, 0)),
    ];
    records.extend(copies.map(|of| copied(of).seal()));
    records.extend([
        timed(elsewhere, 1, 2, 3).seal(),
        called.seal(),
        marked(1, marker::MARK, 41, 10, (5, 5)).seal(),
        // A marker without a message is not damaged.
        marked(2, marker::MARK, 0, 10, (5, 5)).seal(),
        name(named::STREAM, 1, 42),
    ]);
    let dir = written("missing-records", &file(&records));
    for format in ["csv", "json", "perfetto", "rocpd"] {
        let run = devprof(&dir, &format!("export a.trace -f {format} -o out"));
        assert_eq!(run.status, 3, "{format}: {}", run.stderr);
        let lines = run.stderr.lines();
        let lines: Vec<_> = lines
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
    assert_database(
        &dir.join("out"),
        "
            SELECT count(*) FROM rocpd_info_stream
            = 3
        ",
    );
}

/// Slices on tracks that are not of threads: process, track, and the names, starts and durations of the slices.
const ON_PROCESSES: &str = "SELECT p.name, t.name, s.category, s.name, s.ts, s.dur FROM slice s \
    JOIN process_track t ON s.track_id = t.id JOIN process p USING (upid) ORDER BY 1, 2, 5, 6";

#[test]
#[ignore = "needs node and an npm package; tools/test runs it"]
fn perfettos_trace_processor_shows_streams_copies_markers_and_pauses() {
    let out = exported("perfetto-records", "out.pftrace");
    assert_perfetto(
        &out,
        r#"
            SELECT tid, t.name, s.category, s.name, s.ts, s.dur, s.depth, o.name FROM slice s
                JOIN thread_track k ON s.track_id = k.id JOIN thread t USING (utid)
                LEFT JOIN slice o ON s.parent_id = o.id ORDER BY tid, s.ts, s.depth
            = 10 | worker | marker | epoch | 1000 | 300 | 0 | null
            = 10 | worker | api | hipLaunchKernel | 1000 | 100 | 1 | epoch
            = 10 | worker | marker | compute | 1100 | 100 | 1 | epoch
            = 10 | worker | api | hipMemcpyAsync | 1100 | 100 | 2 | compute
            = 10 | worker | marker | here, "now" | 1150 | 0 | 3 | hipMemcpyAsync
            = 10 | worker | api | hipMemcpyAsync | 1200 | 100 | 1 | epoch
            = 11 | null | api | hipLaunchKernel | 1000 | 50 | 0 | null
            = 11 | null | api | __hipPushCallConfiguration | 1050 | 10 | 0 | null
            = 11 | null | marker | compute | 1060 | 940 | 0 | null
            -- A CPU is not shown as a GPU.
            SELECT name FROM process WHERE name IS NOT NULL ORDER BY 1
            = ./app
            = GPU 0 the large one
            = GPU 1 gfx1100
            SELECT c.name, c.ts, k.category, k.ts FROM flow JOIN slice c ON slice_out = c.id
                JOIN slice k ON slice_in = k.id ORDER BY c.ts, k.ts, k.category
            = hipLaunchKernel | 1000 | kernel | 1200
            = hipLaunchKernel | 1000 | kernel | 1250
            = hipMemcpyAsync | 1100 | copy | 1250
            = hipMemcpyAsync | 1100 | copy | 1300
            = hipMemcpyAsync | 1200 | blit | 1300
            = hipMemcpyAsync | 1200 | copy | 1400
            SELECT key, display_value FROM slice JOIN args USING (arg_set_id)
                WHERE name = 'Copy device to device' AND key LIKE 'debug.%' ORDER BY 1
            = debug.bandwidth_gb_s | "81.92"
            = debug.bytes | "4096"
            = debug.clock | scaled
            = debug.copy | "4"
            = debug.destination | GPU 1
            = debug.engine | "2"
            = debug.function | hsa_amd_memory_async_copy
            = debug.source | GPU 0
            = debug.submit | "1300"
            = debug.thread | "10"
            SELECT extract_arg(arg_set_id, 'debug.bandwidth_gb_s') FROM slice WHERE name = 'Fill'
            = 409.6
            SELECT s.ts, key, display_value FROM slice s JOIN args USING (arg_set_id)
                WHERE key IN ('debug.stream', 'debug.copies', 'debug.unfinished', 'debug.end_thread', 'debug.range')
                AND s.name != 'halved(unsigned int)' ORDER BY s.ts, key, 3
            = 1000 | debug.end_thread | "11"
            = 1000 | debug.range | "77"
            = 1000 | debug.stream | Stream 3 of thread 11
            = 1000 | debug.stream | uploads
            = 1060 | debug.unfinished | "true"
            = 1100 | debug.copies | "2"
            = 1100 | debug.end_thread | "11"
            = 1100 | debug.range | "0"
            = 1100 | debug.stream | uploads
            = 1200 | debug.copies | "1"
            = 1200 | debug.stream | NULL stream
            = 1250 | debug.stream | uploads
            = 1300 | debug.stream | NULL stream
            = 1300 | debug.stream | uploads
            = 1340 | debug.unfinished | "true"
            = 1400 | debug.stream | NULL stream
        "#,
    );
    // Process, track, category, name, start and duration of each slice. The last pause lasts until the last event.
    let on_processes = |null, by_thread, uploads| {
        format!(
            "./app | Copies | copy | Copy | 1330 | 0
            ./app | Copies host to host | copy | Copy host to host | 1500 | 20
            ./app | Process ranges | marker | step | 1000 | 400
            ./app | Process ranges | marker | step | 1100 | 400
            ./app | Recording | recording | Not recorded | 1600 | 100
            ./app | Recording | recording | Not recorded | 1900 | 100
            GPU 0 the large one | Copies device to device | copy | Copy device to device | 1400 | 50
            GPU 0 the large one | Copies device to host | copy | Copy device to host | 1400 | 100
            GPU 0 the large one | Copies host to device | copy | Copy host to device | 1250 | 100
            GPU 0 the large one | Copies host to device | copy | Copy host to device | 1300 | 100
            GPU 0 the large one | Fills | copy | Fill | 1500 | 10
            GPU 0 the large one | Queue 2 | kernel | halved(unsigned int) | 1500 | 100
            GPU 0 the large one | {null} | blit | __amd_rocclr_copyBuffer | 1300 | 100
            GPU 0 the large one | {by_thread} | kernel | halved(unsigned int) | 1250 | 100
            GPU 0 the large one | {uploads} | kernel | halved(unsigned int) | 1200 | 100
            GPU 1 gfx1100 | Copies host to device | copy | Copy host to device | 1340 | 0"
        )
    };
    let assert_slices = |out: &Path, expected: String| {
        let sorted = |text: String| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let found = table(&perfetto_answers(out, &[ON_PROCESSES])[0]);
        assert_eq!(sorted(found), sorted(trimmed(&expected)));
    };
    let streams = on_processes("NULL stream", "Stream 3 of thread 11", "uploads");
    assert_slices(&out, streams);
    let dir = out.parent().unwrap();
    succeed(dir, "export a.trace -o queues.pftrace --tracks queue");
    let queues = on_processes("Queue 2", "Queue 1", "Queue 1");
    assert_slices(&dir.join("queues.pftrace"), queues);
}
