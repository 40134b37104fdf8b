//! `devprof export` of several traces to one output.

use crate::files::*;
use crate::records::one_of_each;
use crate::xplane::xprof_hosts;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
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
        let started_unix = self.boot + self.started;
        let header = Header::new(self.pid, 1_000_000_000, self.started, started_unix);
        let kernel = timed(
            dispatch(1, 0, 1, 1, 1),
            1600,
            self.kernel,
            self.kernel + 400,
        );
        let mut records = definitions_of(self.pid, self.host);
        records.extend([call(1, 7, 10, 1500, 1700).seal(), kernel.seal()]);
        records.extend(one_of_each());
        file_with(&header, &records)
    }
}

/// The names of the traces.
const ALL: &str = "rank0.trace rank1.trace rank2.trace";

/// A new directory with the traces of the programs.
fn traces(test: &str) -> PathBuf {
    let dir = directory(test);
    for program in &PROGRAMS {
        fs::write(dir.join(program.name), program.trace()).unwrap();
    }
    dir
}

/// Exports the traces of the programs to this output in a new directory, without a problem. Returns the directory.
fn exported(test: &str, options: &str) -> PathBuf {
    let dir = traces(test);
    let text = succeed(&dir, &format!("export {ALL} {options}")).shown();
    let counts = ": 3 traces, 3 dispatches, 3 API calls, 3 copies, 3 markers\n";
    assert!(
        options.contains("--csv-of") || text.contains(counts),
        "{text}"
    );
    let note = "the traces are of 2 hosts or boots";
    assert_eq!(text.matches(note).count(), 1, "{text}");
    dir
}

#[test]
fn json_lines_have_the_number_of_their_trace_and_times_of_one_clock() {
    let dir = exported("several-json", "-o out.jsonl");
    let found = json_lines(&dir.join("out.jsonl"));
    // The times of the third trace are 5 ms later.
    for (kind, expected) in [
        (
            "trace",
            "trace | file | version | pid | started | started_unix
            1 | rank0.trace | 1 | 4242 | 1000 | 1700000000000001000
            2 | rank1.trace | 1 | 5000 | 1200 | 1700000000000001200
            3 | rank2.trace | 1 | 4242 | 5001100 | 1700000000005001100",
        ),
        (
            "process",
            "trace | pid | host
            1 | 4242 | a host
            2 | 5000 | a host
            3 | 4242 | b, \"host\"",
        ),
        (
            "dispatch",
            "trace | id | correlation | submit | start | end | observed
            1 | 1 | 1 | 1600 | 2000 | 2400 | 2410
            2 | 1 | 1 | 1600 | 2500 | 2900 | 2910
            3 | 1 | 1 | 5001600 | 5002200 | 5002600 | 5002610",
        ),
        (
            "call",
            "trace | start | end
            1 | 1500 | 1700
            2 | 1500 | 1700
            3 | 5001500 | 5001700",
        ),
        (
            "copy",
            "trace | submit | start | end | observed
            1 | 1550 | 1600 | 1700 | 1710
            2 | 1550 | 1600 | 1700 | 1710
            3 | 5001550 | 5001600 | 5001700 | 5001710",
        ),
        (
            "marker",
            "trace | start | end
            1 | 1400 | 1800
            2 | 1400 | 1800
            3 | 5001400 | 5001800",
        ),
        (
            "recording",
            "trace | time
            1 | 1900
            2 | 1900
            3 | 5001900",
        ),
    ] {
        assert_table(of_type(&found, kind), expected);
    }
    assert_table(
        [of_type(&found, "queue")[6]],
        "trace | created
        3 | 5001001",
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
    let one = succeed(&dir, "export rank0.trace -o one.jsonl").shown();
    let counts = "one.jsonl: 1 dispatch, 1 API call, 1 copy, 1 marker\n";
    assert_eq!(one, counts);
    let lines = json_lines(&dir.join("one.jsonl"));
    let has_number = |line: &Value| line.get("trace").or(line.get("file")).is_some();
    assert!(!lines.iter().any(has_number));
}

#[test]
fn csv_rows_have_their_process_host_and_trace() {
    let dir = exported("several-csv", "-o out.csv --csv-of all");
    let table = |name: &str| {
        let text = fs::read_to_string(dir.join(format!("out_{name}.csv"))).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let kernels = table("kernel_trace");
    assert!(
        kernels[0].ends_with(",\"Grid_Size_Z\",\"Process_Id\",\"Host\",\"Trace\",\"Build_Id\""),
        "{}",
        kernels[0]
    );
    let row = |start: u64, more: &str| {
        let end = start + 400;
        format!(
            "\"KERNEL_DISPATCH\",\"GPU 0\",1,0,10,1,1,\"halved(unsigned int)\",1,{start},{end},512,16,24,0,106,256,2,1,1024,2,1,{more},\"\""
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
    let copy = "\"MEMORY_COPY\",\"MEMORY_COPY_DEVICE_TO_DEVICE\",1,\"GPU 0\",\"GPU 1\",1";
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
    let dir = exported("several-rocpd", "-o out.db");
    assert_database(
        &dir.join("out.db"),
        r#"
            SELECT nid, pid, hostname, init FROM processes ORDER BY init
            = 1 | 4242 | a host | 1000
            = 1 | 5000 | a host | 1200
            = 2 | 4242 | b, "host" | 5001100
            -- The joins of the view do not combine rows of different traces.
            SELECT nid, pid, tid, name, start, "end", queue, stack_id FROM kernels ORDER BY start
            = 1 | 4242 | 10 | halved(unsigned int) | 2000 | 2400 | Queue 1 | 1
            = 1 | 5000 | 10 | halved(unsigned int) | 2500 | 2900 | Queue 1 | 1
            = 2 | 4242 | 10 | halved(unsigned int) | 5002200 | 5002600 | Queue 1 | 1
            SELECT hostname, k.pid, r.name FROM kernels k JOIN regions r USING (guid, stack_id)
                JOIN processes USING (guid) ORDER BY k.start
            = a host | 4242 | hipLaunchKernel
            = a host | 5000 | hipLaunchKernel
            = b, "host" | 4242 | hipLaunchKernel
            SELECT nid, pid, start, src_agent_abs_index, dst_agent_abs_index FROM memory_copies ORDER BY start, pid
            = 1 | 4242 | 1600 | 1 | 2
            = 1 | 5000 | 1600 | 1 | 2
            = 2 | 4242 | 5001600 | 1 | 2
            SELECT name, start FROM markers ORDER BY start, name
            = a host | 1400
            = a host | 1400
            = b, "host" | 5001400
            SELECT count(*), count(DISTINCT guid) FROM rocpd_info_agent
            = 6 | 3
            SELECT count(*), count(DISTINCT value) FROM rocpd_metadata WHERE tag = 'guid'
            = 3 | 3
            SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd\_%' ESCAPE '\'
            = 60
        "#,
    );
}

#[test]
#[ignore = "needs node and an npm package; tools/test runs it"]
fn perfettos_trace_processor_keeps_processes_apart() {
    let dir = exported("several-perfetto", "-o out.pftrace");
    assert_perfetto(
        &dir.join("out.pftrace"),
        r#"
            SELECT p.name, t.name, s.name, s.ts, s.dur FROM slice s JOIN process_track t ON s.track_id = t.id
                JOIN process p USING (upid) WHERE s.category IN ('kernel', 'copy') ORDER BY s.ts, 1
            = GPU 0 gfx1100 (process 4242 on a host) | Copies device to device | Copy device to device | 1600 | 100
            = GPU 0 gfx1100 (process 5000 on a host) | Copies device to device | Copy device to device | 1600 | 100
            = GPU 0 gfx1100 (process 4242 on a host) | Queue 1 | halved(unsigned int) | 2000 | 400
            = GPU 0 gfx1100 (process 5000 on a host) | Queue 1 | halved(unsigned int) | 2500 | 400
            = GPU 0 gfx1100 (process 4242 on b, "host") | Copies device to device | Copy device to device | 5001600 | 100
            = GPU 0 gfx1100 (process 4242 on b, "host") | Queue 1 | halved(unsigned int) | 5002200 | 400
            SELECT p.name, tid, s.name, s.ts, s.dur FROM slice s JOIN thread_track t ON s.track_id = t.id
                JOIN thread USING (utid) JOIN process p USING (upid) WHERE s.category = 'api' ORDER BY s.ts, 1
            = ./app (process 4242 on a host) | 10 | hipLaunchKernel | 1500 | 200
            = ./app (process 5000 on a host) | 10 | hipLaunchKernel | 1500 | 200
            = ./app (process 4242 on b, "host") | 10 | hipLaunchKernel | 5001500 | 200
            SELECT clock_id, clock_value FROM clock_snapshot ORDER BY 1
            = 1 | 1700000000000001000
            = 6 | 1000
            -- A thread, a queue, copies and pauses in each trace.
            SELECT count(DISTINCT track_id) FROM slice
            = 12
            -- Each trace has its own names.
            SELECT p.name, s.name, s.ts FROM slice s JOIN thread_track t ON s.track_id = t.id
                JOIN thread USING (utid) JOIN process p USING (upid) WHERE s.category = 'marker' ORDER BY s.ts, 1
            = ./app (process 4242 on a host) | a host | 1400
            = ./app (process 5000 on a host) | a host | 1400
            = ./app (process 4242 on b, "host") | b, "host" | 5001400
            SELECT p.name, s.ts, s.dur FROM slice s JOIN process_track t ON s.track_id = t.id
                JOIN process p USING (upid) WHERE s.category = 'recording' ORDER BY s.ts, 1
            = ./app (process 4242 on a host) | 1900 | 500
            = ./app (process 5000 on a host) | 1900 | 1000
            = ./app (process 4242 on b, "host") | 5001900 | 700
            -- Flows do not connect different processes.
            SELECT c.ts, k.ts, k.name FROM flow JOIN slice c ON slice_out = c.id JOIN slice k ON slice_in = k.id
                ORDER BY 1, 2
            = 1500 | 1600 | Copy device to device
            = 1500 | 1600 | Copy device to device
            = 1500 | 2000 | halved(unsigned int)
            = 1500 | 2500 | halved(unsigned int)
            = 5001500 | 5001600 | Copy device to device
            = 5001500 | 5002200 | halved(unsigned int)
            SELECT p.name, c.ts, value FROM counter c JOIN process_counter_track t ON c.track_id = t.id
                JOIN process p USING (upid) ORDER BY c.ts, 1
            = GPU 0 gfx1100 (process 4242 on a host) | 1600 | 1
            = GPU 0 gfx1100 (process 5000 on a host) | 1600 | 1
            = GPU 0 gfx1100 (process 4242 on a host) | 2400 | 0
            = GPU 0 gfx1100 (process 5000 on a host) | 2900 | 0
            = GPU 0 gfx1100 (process 4242 on b, "host") | 5001600 | 1
            = GPU 0 gfx1100 (process 4242 on b, "host") | 5002600 | 0
            -- Processes: three programs and the two GPUs of each. The ID of the second program 4242 is replaced.
            SELECT count(*), count(DISTINCT pid) FROM process WHERE upid != 0
            = 9 | 9
            SELECT name, pid < 4194304 FROM process WHERE name LIKE './app%' ORDER BY upid
            = ./app (process 4242 on a host) | 1
            = ./app (process 5000 on a host) | 1
            = ./app (process 4242 on b, "host") | 0
        "#,
    );
    // Without other hosts, Perfetto's process ID is enough.
    let run = succeed(&dir, "export rank0.trace rank1.trace -o one-host.pftrace");
    assert!(!run.stderr.contains("realtime clocks"), "{}", run.stderr);
    assert_perfetto(
        &dir.join("one-host.pftrace"),
        "
            SELECT name, pid FROM process WHERE upid != 0 AND pid < 4194304 ORDER BY pid
            = ./app | 4242
            = ./app | 5000
            SELECT DISTINCT p.name FROM slice s JOIN process_track t ON s.track_id = t.id
                JOIN process p USING (upid) WHERE s.category = 'kernel' ORDER BY 1
            = GPU 0 gfx1100 (process 4242)
            = GPU 0 gfx1100 (process 5000)
        ",
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
    let dir = exported("several-xplane", "-o logs/ -f xplane");
    let expected = [
        "a_host_4242.xplane.pb",
        "a_host_5000.xplane.pb",
        "b___host__4242.xplane.pb",
    ];
    let logs = dir.join("logs");
    assert_eq!(profiles(&logs), expected.map(str::to_owned).into());
    let count = fs::read_dir(&logs).unwrap().count();
    assert_eq!(count, 1, "a temporary file is left");
    // A process with the same ID on the same host, after it was booted again.
    let again = Program {
        boot: STARTED_UNIX + 900_000_000_000,
        ..PROGRAMS[0]
    };
    fs::write(dir.join("again.trace"), again.trace()).unwrap();
    succeed(&dir, "export rank0.trace again.trace -o again/ -f xplane");
    let expected = ["a_host_4242.xplane.pb", "a_host_4242_2.xplane.pb"];
    let found = profiles(&dir.join("again"));
    assert_eq!(found, expected.map(str::to_owned).into());
}

#[test]
#[ignore = "needs XProf from PyPI; tools/test runs it"]
fn xprof_shows_several_processes_as_hosts_with_one_start() {
    let dir = exported("several-xprof", "-o logs/ -f xplane");
    let mut hosts = xprof_hosts(&dir.join("logs"));
    hosts.sort_by_key(|host| host["host"].as_str().unwrap().to_owned());
    let row = |host: &Value| -> Value {
        let fields = [
            "/run",
            "/host",
            "/planes/~1device:GPU:0/stats/process_id",
            "/planes/~1host:CPU/lines/Host Threads~110/1/name",
            "/planes/~1host:CPU/lines/Host Threads~110/1/start",
            "/planes/~1device:GPU:0/lines/Queue #1(Compute)/0/start",
            "/planes/Task Environment/stats/profile_start_time",
        ];
        fields
            .map(|field| host.pointer(field).unwrap().clone())
            .into()
    };
    // All times relate to the start of the first trace.
    assert_eq!(
        table(&hosts.iter().map(row).collect()),
        trimmed(
            "2023_11_14_22_13_20 | a_host_4242 | \"4242\" | hipLaunchKernel | 500 | 1000 | \"1700000000000001000\"
            2023_11_14_22_13_20 | a_host_5000 | \"5000\" | hipLaunchKernel | 500 | 1500 | \"1700000000000001000\"
            2023_11_14_22_13_20 | b___host__4242 | \"4242\" | hipLaunchKernel | 5000500 | 5001200 | \"1700000000000001000\""
        )
    );
    // XProf's trace viewer shows all of them together: process, name and start in microseconds.
    let events = elements(&hosts[0]["all_hosts"]["traceEvents"]).iter();
    let process = |event: &Value| {
        let is_name = |name: &&Value| name["name"] == "process_name" && name["pid"] == event["pid"];
        events.clone().find(is_name).unwrap()["args"]["name"].clone()
    };
    let kernels = events
        .clone()
        .filter(|event| event["name"] == "halved(unsigned int)");
    let mut kernels: Vec<_> = kernels
        .map(|event| json!([process(event), event["ts"].as_f64()]))
        .collect();
    kernels.sort_by_key(ToString::to_string);
    assert_eq!(
        table(&kernels.into()),
        trimmed(
            "a_host_4242 /device:GPU:0 | 1
            a_host_5000 /device:GPU:0 | 1.5
            b___host__4242 /device:GPU:0 | 5001.2"
        )
    );
}

#[test]
fn directories_and_patterns_name_the_same_traces() {
    let dir = traces("several-names");
    fs::create_dir(dir.join("in")).unwrap();
    for program in &PROGRAMS {
        fs::rename(dir.join(program.name), dir.join("in").join(program.name)).unwrap();
    }
    fs::write(dir.join("in/notes.txt"), "not a trace").unwrap();
    let files = "in/rank0.trace in/rank1.trace in/rank2.trace";
    let exported = |names: &str| {
        succeed(&dir, &format!("export {names} -o out.jsonl"));
        fs::read(dir.join("out.jsonl")).unwrap()
    };
    let expected = exported(files);
    for names in ["in", "in/*.trace", "i*/rank[0-2].trace"] {
        assert!(exported(names) == expected, "{names}");
    }
    // The only trace has its default output.
    let run = devprof(&dir, "export in/*2.trace");
    assert!(run.text().starts_with("in/rank2.pftrace"), "{}", run.text());
    // Statistics take the same names.
    let stats = |names: &str| succeed(&dir, &format!("stats --by process {names}")).stdout;
    assert!(stats("in") == stats(files));
}

#[test]
fn traces_that_cannot_be_in_one_output_are_errors_and_leave_no_file() {
    let dir = traces("several-refused");
    fs::copy(dir.join("rank0.trace"), dir.join("copy")).unwrap();
    fs::write(dir.join("other"), "not a trace").unwrap();
    let pipe = CString::new(dir.join("pipe").as_os_str().as_bytes()).unwrap();
    // SAFETY: the path is a C string that outlives the call.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    let many: String = (0..501).map(|number| format!("missing{number} ")).collect();
    assert_refused(
        &dir,
        "2 | rank0.trace rank1.trace | there are 2 traces: name the output with -o
        2 | rank0.trace ./rank0.trace -o out.csv | rank0.trace is given twice: remove one
        2 | rank0.trace copy -o out.csv | are the same trace, of process 4242: remove one
        2 | rank0.trace rank1.trace -o out.xplane.pb | name a log directory, such as -o logs/
        2 | rank0.trace rank1.trace -f xplane -o - | name a log directory, such as -o logs/
        2 | rank0.trace rank1.trace -f csv -o rank1.trace | rank1.trace is the trace itself
        2 | rank0.trace pipe -o out.csv | pipe together with other traces
        1 | rank0.trace other -o out.db | other: not a trace of devprof
        1 | rank0.trace missing -o out.db | missing: No such file
        1 | rank0.trace *.none -o out.db | *.none: no file matches",
    );
    let message = "cannot export 501 traces to one database, at most 500";
    assert_refused(&dir, &format!("2 | {many}-o out.db | {message}"));
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 6);
    for program in &PROGRAMS {
        assert!(fs::read(dir.join(program.name)).unwrap() == program.trace());
    }
}

#[test]
fn a_damaged_trace_is_reported_and_the_others_are_complete() {
    let dir = traces("several-damaged");
    let mut damaged = PROGRAMS[1].trace();
    // The dispatch.
    let dispatch = HEADER_SIZE + (definitions().len() + 1) * RECORD_SIZE;
    damaged[dispatch + 50] ^= 1;
    fs::write(dir.join("rank1.trace"), damaged).unwrap();
    let run = devprof(&dir, &format!("export {ALL} -o out.jsonl"));
    let text = run.shown();
    assert_eq!(run.status, 3, "{text}");
    let damage = format!("rank1.trace: byte {dispatch}: a damaged record");
    assert!(text.contains(&damage), "{text}");
    let counts = ": 3 traces, 2 dispatches, 3 API calls, 3 copies, 3 markers; parts of the traces are damaged\n";
    assert!(text.contains(counts), "{text}");
    let found = json_lines(&dir.join("out.jsonl"));
    assert_table(
        of_type(&found, "dispatch"),
        "trace
        1
        3",
    );
}
