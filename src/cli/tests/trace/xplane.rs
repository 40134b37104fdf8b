//! `devprof export -f xplane`: XProf reads the output.

use crate::files::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tracefile::format::{
    Agent, Kernel, MemoryCopy, NO_AGENT, Record, agent, direction, flag, marker, named, stream,
};

/// The host's agent. Agents 1 and 2 are GPUs.
const CPU: u32 = 0;

/// A copy of `1 << (10 + id)` bytes.
fn copied(id: u64, what: u32, agents: (u32, u32), stream: u32, times: (u64, u64)) -> MemoryCopy {
    let copy = copy(id, what, agents, times);
    with!(copy; stream = stream, submit = times.0 - 10, size = 1u64 << (10 + id))
}

/// A trace with streams, copies and markers. Kernels 1 and 2 of stream 1 overlap, and were completed in the other order.
fn stream_trace() -> Vec<u8> {
    let mut records = definitions();
    records.extend(texts(&[
        (20, "step"),
        (21, "loss"),
        (22, "worker"),
        (23, "compute"),
        (24, "hipMemcpyAsync"),
        (25, "gfx90a:sramecc+"),
    ]));
    records.push(with!(Agent::new(CPU.into(), 0); what = agent::CPU, number = 1).seal());
    records.push(with!(Agent::new(2, 0); name = 25, compute_units = 104).seal());
    records.extend(streams(&[(1, stream::NULL, 0), (2, stream::CREATED, 0)]));
    records.push(name(named::THREAD, 10, 22));
    records.push(name(named::STREAM, 2, 23));
    records.push(with!(Kernel::new(1, 0); name = 4, agent = 1, lds = 128).seal());
    let on = |stream: u32, dispatch: tracefile::format::Dispatch| {
        with!(dispatch; stream = stream).seal()
    };
    let mut wide = timed(dispatch(4, 0, 3, 1, 4), 3600, 4000, 5000);
    wide.accum_vgprs = 6.into();
    wide.grid = [1000, 1, 1].map(Into::into);
    wide.workgroup = [256, 1, 1].map(Into::into);
    let unfinished = dispatch(6, flag::UNFINISHED | flag::CLOCK_NONE, 1, 1, 0);
    records.extend([
        // The call that initialized HSA began before the trace.
        call(1, 7, 10, 900, 1150).seal(),
        on(1, timed(dispatch(2, 0, 1, 1, 1), 1610, 2500, 4500)),
        on(1, timed(dispatch(1, 0, 1, 1, 1), 1600, 2000, 3000)),
        on(1, timed(dispatch(3, 0, 2, 2, 1), 1620, 4500, 4600)),
        on(2, wide),
        timed(dispatch(5, 0, 2, 3, 0), 4700, 5000, 5100).seal(),
        with!(unfinished; submit = 9000u64).seal(),
        with!(call(4, 7, 11, 3500, 3700); status = 1).seal(),
        with!(call(5, 24, 10, 5000, 5500); stream = 2).seal(),
    ]);
    let open = marked(5, marker::RANGE, 20, 11, (3600, 3800));
    for (id, what, agents, stream, times) in [
        (1, direction::HOST_TO_DEVICE, (CPU, 1), 2, (5100, 5400)),
        (2, direction::DEVICE_TO_HOST, (2, CPU), 0, (5600, 5700)),
        (3, direction::DEVICE_TO_DEVICE, (1, 2), 2, (5800, 5900)),
        (4, direction::DEVICE_TO_DEVICE, (1, 1), 2, (5900, 6000)),
        (5, direction::FILL, (NO_AGENT, 2), 0, (6000, 6100)),
        (6, direction::HOST_TO_HOST, (CPU, CPU), 0, (6200, 6300)),
    ] {
        let call = if id == 1 { 5 } else { 0u64 };
        let copy = copied(id, what, agents, stream, times);
        records.push(with!(copy; correlation = call).seal());
    }
    records.extend([
        marked(1, marker::RANGE, 20, 10, (1200, 6000)).seal(),
        marked(2, marker::MARK, 21, 10, (1300, 1300)).seal(),
        marked(3, marker::PROCESS_RANGE, 20, 10, (1000, 3000)).seal(),
        marked(4, marker::PROCESS_RANGE, 21, 11, (2000, 4000)).seal(),
        with!(open; head.flags = flag::UNFINISHED).seal(),
    ]);
    file(&records)
}

/// Exports [`stream_trace`] to a log directory. Returns the parent directory and the path of the profile.
fn log_directory(test: &str) -> (PathBuf, PathBuf) {
    let dir = written(test, &stream_trace());
    // The log directory is created, and the run is named by the start of the trace.
    let run = succeed(&dir, "export a.trace -f xplane -o logs/");
    let profile = "logs/plugins/profile/2023_11_14_22_13_20/a_host_4242.xplane.pb";
    let counts = "6 dispatches, 3 API calls, 6 copies, 5 markers";
    assert_eq!(run.text(), format!("{profile}: {counts}\n"));
    let profile = dir.join(profile);
    (dir, profile)
}

#[test]
fn a_profile_is_written_to_a_file_a_log_directory_or_stdout() {
    let (dir, profile) = log_directory("xplane-names");
    let expected = fs::read(profile).unwrap();
    for (options, file) in [
        ("-f xplane", "a.xplane.pb"),
        ("-o b.xplane.pb", "b.xplane.pb"),
        // A directory that does not exist, without a slash.
        ("-f xplane -o newlogs", "newlogs"),
    ] {
        let run = succeed(&dir, &format!("export a.trace {options}"));
        assert!(fs::read(dir.join(file)).unwrap() == expected, "{options}");
        let hint = "for a log directory, use -o newlogs/\n";
        let has_hint = run.stderr.ends_with(hint);
        assert_eq!(has_hint, file == "newlogs", "{}", run.stderr);
    }
    fs::remove_file(dir.join("newlogs")).unwrap();
    let run = succeed(&dir, "export a.trace -f xplane -o -");
    assert!(run.stdout == expected);
    // Only a part of the extension, and a directory without a format.
    for out in ["c.pb", ".xplane.pb", "logs/"] {
        let run = devprof(&dir, &format!("export a.trace -o {out}"));
        assert_eq!(run.status, 2, "{out}");
        let hint = ".xplane.pb: add one, or use --format";
        assert!(run.stderr.contains(hint), "{}", run.stderr);
    }
    // No temporary file is left.
    let count = |dir: &Path| fs::read_dir(dir).unwrap().count();
    assert_eq!((count(&dir), count(&dir.join("logs"))), (4, 1));
}

/// What XProf finds in a log directory, by run.
fn xprof(logs: &Path) -> BTreeMap<String, Value> {
    let by_name = |run: Value| (run["run"].as_str().unwrap().to_owned(), run);
    xprof_hosts(logs).into_iter().map(by_name).collect()
}

/// What XProf finds in a log directory, for each run and host.
pub fn xprof_hosts(logs: &Path) -> Vec<Value> {
    let check = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/xprof-check");
    serde_json::from_str(&printed(Command::new(check).arg(logs))).unwrap()
}

#[test]
#[ignore = "needs XProf from PyPI; tools/test runs it"]
fn xprof_shows_streams_kernels_copies_calls_and_markers() {
    let (dir, _) = log_directory("xplane-xprof");
    export_damaged_trace(&dir);
    // XProf's start takes most of the time.
    let runs = xprof(&dir.join("logs"));
    assert_eq!(runs.len(), 2);
    assert_damaged_trace(&runs["damaged"]);
    let found = &runs["2023_11_14_22_13_20"];
    assert_eq!(found["host"], "a_host_4242");
    assert_planes(&found["planes"]);
    assert_kernels(&found["kernels"]);
    assert_trace(&found["trace"]["traceEvents"]);
    let overview = found["overview"].as_array().unwrap();
    let mut devices = overview.iter().map(|part| &part["p"]["device_type"]);
    assert!(devices.any(|device| device == "AMD GPU - gfx1100"));
}

/// Adds the run "damaged" to the log directory.
fn export_damaged_trace(dir: &Path) {
    // 300 kernels of a queue begin at the same time, which is impossible: one line per kernel would be too much.
    let mut records = definitions();
    records
        .extend((1..=300).map(|id| timed(dispatch(id, 0, 1, 1, 0), 1500, 2000, 3000 + id).seal()));
    // Far later than anything else: its offset is the largest possible number.
    let last = timed(
        dispatch(301, 0, 3, 3, 0),
        u64::MAX - 50,
        u64::MAX - 40,
        u64::MAX - 30,
    );
    records.push(last.seal());
    fs::write(dir.join("damaged.trace"), file(&records)).unwrap();
    fs::create_dir_all(dir.join("logs/plugins/profile/damaged")).unwrap();
    let out = "logs/plugins/profile/damaged/host.xplane.pb";
    succeed(dir, &format!("export damaged.trace -o {out}"));
}

fn assert_damaged_trace(found: &Value) {
    let lines = found["planes"]["/device:GPU:0"]["lines"]
        .as_object()
        .unwrap();
    assert_eq!(lines.len(), 256);
    let count = |name: &str| lines[name].as_array().unwrap().len();
    assert_eq!(count("Queue #1(Compute)"), 1);
    assert_eq!(count("Queue #1(Compute) [255]"), 1);
    assert_eq!(count("Queue #1(Compute) [256]"), 45);
    assert_eq!(found["kernels"][0]["occurrences"], 300.0);
}

/// Statistics as text, in the order of their names.
fn statistics(stats: &Value) -> String {
    let stats: BTreeMap<_, _> = stats.as_object().unwrap().iter().collect();
    let stats = stats
        .iter()
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap()));
    stats.collect::<Vec<_>>().join(", ")
}

/// The contents of the file, read by XProf's `ProfileData`. All times relate to the start of the first API call, which is
/// 100 ns before the start of the trace. A line for each plane has its statistics. Lines for its events follow: the event's
/// line, name, start, duration and statistics.
fn assert_planes(planes: &Value) {
    let expected = "
        /device:GPU:0: compute_cap_major=11, compute_cap_minor=0, core_count=96, device_vendor=AMD, gpu_device_name=gfx1100, process_id=4242
        Queue #1(Compute) | halved(unsigned int) | 8100 | 0 | device_id=0, queue_id=1, unfinished=1
        Queue #2(Compute) | says \"a, b\" | 4100 | 100 | device_id=0, queue_id=2
        Stream #0 NULL (Compute) | halved(unsigned int) | 1100 | 1000 | correlation_id=1, device_id=0, queue_id=1
        Stream #0 NULL (Compute) | {long_name} | 3600 | 100 | correlation_id=1, device_id=0, queue_id=2
        Stream #0 NULL (Compute) [2] | halved(unsigned int) | 1600 | 2000 | correlation_id=1, device_id=0, queue_id=1
        Stream #2 compute (MemcpyH2D,MemcpyP2P,MemcpyD2D) | MemcpyH2D | 4200 | 300 | bytes_transferred=2048, correlation_id=5, device_id=0, memcpy_details=kind:Unknown size:2048 dest:0 async:1
        Stream #2 compute (MemcpyH2D,MemcpyP2P,MemcpyD2D) | MemcpyP2P | 4900 | 100 | bytes_transferred=8192, device_id=0, memcpy_details=kind:Unknown size:8192 dest:1 async:1
        Stream #2 compute (MemcpyH2D,MemcpyP2P,MemcpyD2D) | MemcpyD2D | 5000 | 100 | bytes_transferred=16384, device_id=0, memcpy_details=kind:Unknown size:16384 dest:0 async:1
        /device:GPU:1: compute_cap_major=9, compute_cap_minor=0, core_count=104, device_vendor=AMD, gpu_device_name=gfx90a:sramecc+, process_id=4242
        Copies(MemcpyD2H,Memset) | MemcpyD2H | 4700 | 100 | bytes_transferred=4096, device_id=1, memcpy_details=kind:Unknown size:4096 async:1
        Copies(MemcpyD2H,Memset) | Memset | 5100 | 100 | Memset_details=kind:Unknown num_bytes:32768 dest:1 async:1, bytes_transferred=32768, device_id=1
        Stream #2 compute (Compute) | halved(unsigned int) | 3100 | 1000 | correlation_id=4, device_id=1, queue_id=3
        /host:CPU: process_id=4242
        Copies(MemcpyOther) | MemcpyOther | 5300 | 100 | bytes_transferred=65536, memcpy_details=kind:Unknown size:65536 async:1
        Host Threads/11 | hipLaunchKernel | 2600 | 200 | correlation_id=4, status=1
        Host Threads/11 [2] | step | 2700 | 200 | unfinished=1
        Ranges of the process | step | 100 | 2000 |
        Ranges of the process [2] | loss | 1100 | 2000 |
        worker/10 | hipLaunchKernel | 0 | 250 | correlation_id=1
        worker/10 | step | 300 | 4800 |
        worker/10 | loss | 400 | 0 |
        worker/10 | hipMemcpyAsync | 4100 | 500 | correlation_id=5, stream=2
        Task Environment: profile_start_time={start}, profile_stop_time={stop}";
    let expected = expected.replace("{long_name}", &long_name());
    let expected = expected.replace("{start}", &(STARTED_UNIX - 100).to_string());
    let expected = expected.replace("{stop}", &(STARTED_UNIX + 8000).to_string());
    let mut found = String::new();
    let planes: BTreeMap<_, _> = planes.as_object().unwrap().iter().collect();
    for (plane, contents) in planes {
        found += &format!("\n{plane}: {}", statistics(&contents["stats"]));
        let lines: BTreeMap<_, _> = contents["lines"].as_object().unwrap().iter().collect();
        for (line, events) in lines {
            for event in elements(events) {
                let [start, duration] =
                    ["start", "duration"].map(|time| event[time].as_f64().unwrap());
                let (name, stats) = (event["name"].as_str().unwrap(), statistics(&event["stats"]));
                found += format!("\n{line} | {name} | {start} | {duration} | {stats}").trim_end();
            }
        }
    }
    assert_eq!(found, trimmed(&expected));
}

/// The page "Kernel Stats", which has times in microseconds. The second kernel has 24 vector registers and 6 accumulation
/// registers, and 1,000 work-items, which are four workgroups.
fn assert_kernels(kernels: &Value) {
    let expected = format!(
        "kernel_name | registers_per_thread | shmem_bytes | block_dim | grid_dim | occurrences | total_duration_us | max_duration_us
        halved(unsigned int) | 24 | 512 | 256,2,1 | 4,1,1 | 2 | 3 | 2
        halved(unsigned int) | 30 | 512 | 256,1,1 | 4,1,1 | 1 | 1 | 1
        {} | 24 | 512 | 256,2,1 | 4,1,1 | 1 | 0.1 | 0.1
        says \"a, b\" | 24 | 512 | 256,2,1 | 4,1,1 | 1 | 0.1 | 0.1",
        long_name()
    );
    assert_table(elements(kernels), &expected);
}

/// The page "Trace Viewer": events are in the process of their plane and the thread of their line, and flows connect each
/// call with its kernels and copies.
fn assert_trace(events: &Value) {
    let events: Vec<&Value> = events.as_array().unwrap().iter().collect();
    let named = |kind: &str, pid: &Value, tid: Option<&Value>| {
        let is = |event: &&&Value| {
            event["name"] == kind
                && event["pid"] == *pid
                && tid.is_none_or(|tid| event["tid"] == *tid)
        };
        let found = events.iter().find(is);
        found.map_or(Value::Null, |event| event["args"]["name"].clone())
    };
    let mut flows: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let mut found = Vec::new();
    for event in &events {
        let (pid, tid) = (&event["pid"], &event["tid"]);
        if event["ph"] != "X" && event["ph"] != "i" {
            continue;
        }
        let name = event["name"].as_str().unwrap();
        let process = named("process_name", pid, None);
        let thread = named("thread_name", pid, Some(tid));
        found.push(json!([process, thread, name, event["ts"]]));
        if let Some(flow) = event["args"]["flow"].as_str() {
            // The lowest bits are the direction.
            let id = flow.parse::<u64>().unwrap() >> 2;
            let correlation = event["args"]["correlation_id"].as_str().unwrap();
            let flow = flows.entry(id).or_default();
            flow.push(format!("{correlation} {name}"));
        }
    }
    let text = table(&json!(found));
    for event in [
        "/host:CPU | worker/10 | step | 0.3",
        "/host:CPU | Host Threads/11 | hipLaunchKernel | 2.6",
        "/device:GPU:0 | Stream #0 NULL (Compute) | halved(unsigned int) | 1.1",
        "/device:GPU:0 | Queue #2(Compute) | says \"a, b\" | 4.1",
        "/device:GPU:1 | Copies(MemcpyD2H,Memset) | Memset | 5.1",
    ] {
        assert!(text.lines().any(|line| line == event), "{event}: {text}");
    }
    // 9 of the host, 8 of the first GPU and 3 of the second one.
    assert_eq!(found.len(), 20, "{found:?}");
    let long = format!("1 {}", long_name());
    let expected = [
        vec![
            "1 hipLaunchKernel",
            "1 halved(unsigned int)",
            "1 halved(unsigned int)",
            &long,
        ],
        vec!["4 hipLaunchKernel", "4 halved(unsigned int)"],
        vec!["5 hipMemcpyAsync", "5 MemcpyH2D"],
    ];
    let mut flows: Vec<Vec<String>> = flows.into_values().collect();
    for flow in &mut flows {
        // Calls come first.
        flow.sort_by_key(|name| (!name[2..].starts_with("hip"), name.clone()));
    }
    flows.sort();
    assert_eq!(flows, expected);
    let details = events
        .iter()
        .find_map(|event| event["args"]["kernel_details"].as_str());
    assert_eq!(
        details,
        Some(
            "regs:24 static_shared:128 dynamic_shared:384 grid:4,1,1 block:256,2,1 private_mem:16 group_mem:512"
        )
    );
}
