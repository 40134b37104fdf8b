//! `devprof stats`: the numbers, and the records that are left out.

use crate::files::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tracefile::format::{
    Agent, Dispatch, Header, Kernel, MemoryCopy, NO_AGENT, Process, RECORD_SIZE, Record, agent,
    direction, flag, kind, marker, named, stream,
};
use zerocopy::FromBytes;

#[test]
fn kernels_are_sorted_by_total_time_without_dispatches_that_have_no_duration() {
    let (report, stderr) = stats(&written("stats", &trace()), "");
    assert!(
        stderr.contains("1 dispatch without an observed end"),
        "{stderr}"
    );
    // One dispatch of the second kernel has times of the agent's clock: 400 ticks of 10 ns.
    let expected = format!(
        "name | calls | total | mean | min | max | share
        says \"a, b\" | 1000 | 10000 | 10 | 10 | 10 | 56.818181818
        {} | 2 | 4500 | 2250 | 500 | 4000 | 25.568181818
        halved(unsigned int) | 2 | 3000 | 1500 | 1000 | 2000 | 17.045454545
        (unknown kernel) | 1 | 100 | 100 | 100 | 100 | 0.568181818",
        long_name()
    );
    assert_table(elements(&report["kernels"]), &expected);
    assert_table(
        [&report],
        "dispatches | unfinished | without_times | backwards
        1008 | 1 | 1 | 1",
    );
}

#[test]
fn the_fields_of_json_are_in_a_readable_order() {
    let dir = written("stats-order", &file(&records()));
    let run = devprof(&dir, "stats --json --kernels --gaps --by=queue a.trace");
    let mut rest = run.text();
    let keys = "processes dispatches untimed kernels agent queue name calls total mean median min max stddev share \
        gaps queue idle_share calls after gpus";
    for key in keys.split(' ') {
        let found = rest.split_once(&format!("\"{key}\": "));
        (_, rest) = found.unwrap_or_else(|| panic!("{key} in\n{}", run.text()));
    }
}

#[test]
fn the_table_is_aligned_and_the_csv_is_valid() {
    let dir = written("stats-table", &trace());
    let run = devprof(&dir, "stats a.trace");
    let plain = run.text();
    let lines: Vec<&str> = plain.lines().collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(
        lines[1].trim_start(),
        "1000  10.00 µs     10 ns     10 ns     10 ns     10 ns      0 ns  56.8 %  says \"a, b\""
    );
    let bold = format!("\x1b[1m{}\x1b[0m", lines[0]);
    let colored = devprof(&dir, "--color=always stats a.trace");
    assert_eq!(colored.text(), plain.replacen(lines[0], &bold, 1));
    let column = |line: &str, text| line.find(text).map(|at| line[..at].chars().count());
    assert_eq!(column(lines[0], "Kernel"), column(lines[3], "halved"));

    let run = devprof(&dir, "stats --csv --no-demangle a.trace");
    let rows = csv::Reader::from_reader(&run.stdout[..]).into_records();
    let halved: Vec<_> = rows.map(Result::unwrap).collect();
    let expected = "_Z6halvedj 2 3000 1500.000000 17.045455 1000 2000 707.106781 1500.0 0 ";
    assert_eq!(halved[2], expected.split(' ').collect::<Vec<_>>());
    assert_eq!(
        run.text().lines().next().unwrap(),
        "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\",\"MinNs\",\"MaxNs\",\
        \"StdDev\",\"MedianNs\",\"Blit\",\"BuildId\""
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

/// The records to which [`records`] refers: [`definitions`], a CPU, four streams, a kernel of HIP (4), and two with the
/// same base name (5 and 6).
fn all_definitions() -> Records {
    let mut records = definitions();
    records.extend(texts(&TEXTS.map(|own| (text(own), own))));
    records.push(with!(Agent::new(0, 0); what = agent::CPU, number = 1).seal());
    for (id, name) in [(4, TEXTS[0]), (5, TEXTS[1]), (6, TEXTS[8])] {
        records.push(with!(Kernel::new(id, 0); name = text(name), agent = 1).seal());
    }
    records.extend(streams(&[
        (1, stream::NULL, 0),
        (2, stream::CREATED, 0),
        (3, stream::PER_THREAD, 77),
        (4, stream::CREATED, 0),
    ]));
    records
}

/// A dispatch of a kernel in a queue, with its times of submission, start and end.
fn run_in(id: u64, queue: u32, kernel: u32, (submit, start, end): (u64, u64, u64)) -> Dispatch {
    timed(dispatch(id, 0, queue, kernel, 0), submit, start, end)
}

fn on_stream(dispatch: Dispatch, stream: u32) -> [u8; RECORD_SIZE] {
    with!(dispatch; stream = stream).seal()
}

/// A copy on stream 2.
fn copied(id: u64, way: u32, agents: (u32, u32), size: u64, times: (u64, u64)) -> MemoryCopy {
    let function = text("hsa_amd_memory_async_copy");
    with!(copy(id, way, agents, times); size = size, stream = 2, function = function)
}

/// A range or mark with a text of [`TEXTS`].
fn named_marker(id: u64, flags: u16, what: u32, own: &str, times: (u64, u64)) -> [u8; RECORD_SIZE] {
    let thread = if own == "step" { 10 } else { 11 };
    with!(marked(id, what, text(own), thread, times); head.flags = flags).seal()
}

fn called(id: u64, name: u32, stream: u32, start: u64, end: u64) -> [u8; RECORD_SIZE] {
    with!(call(id, name, 10, start, end); stream = stream).seal()
}

/// A trace with all that has statistics.
fn records() -> Records {
    let mut records = all_definitions();
    records.extend([
        // Kernel 5 and 6 take as long in total.
        on_stream(run_in(1, 1, 5, (90, 100, 110)), 1),
        on_stream(run_in(2, 1, 5, (100, 120, 140)), 2),
        on_stream(run_in(3, 2, 5, (100, 100, 190)), 3),
        on_stream(run_in(4, 3, 6, (100, 100, 220)), 4),
        on_stream(run_in(5, 1, 4, (100, 150, 180)), 0),
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
    let unfinished = copied(6, direction::DEVICE_TO_HOST, (1, 0), 1, (0, 0));
    records.push(with!(unfinished; head.flags = flag::UNFINISHED).seal());
    records.extend([
        called(1, 7, 1, 100, 110),
        called(2, 7, 2, 120, 150),
        called(3, text("hipMalloc"), 0, 200, 300),
        called(4, text("hipMalloc"), 0, 300, 200),
        named_marker(1, 0, marker::MARK, "step", (5, 5)),
        named_marker(2, 0, marker::RANGE, "step", (10, 40)),
        named_marker(3, 0, marker::RANGE, "step", (50, 60)),
        named_marker(4, 0, marker::PROCESS_RANGE, "worker", (50, 150)),
        named_marker(5, flag::UNFINISHED, marker::RANGE, "step", (50, 1500)),
        // Names can follow the objects that they name.
        name(named::STREAM, 2, text("compute")),
        name(named::THREAD, 10, text("worker")),
        name(named::AGENT, 1, text("first GPU")),
    ]);
    records
}

/// Runs `devprof stats --json` on `a.trace` with these options and further files. Returns its object and stderr.
fn stats(dir: &Path, options: &str) -> (Value, String) {
    let run = succeed(dir, &format!("stats --json a.trace {options}"));
    (serde_json::from_slice(&run.stdout).unwrap(), run.stderr)
}

/// The text of `devprof stats` with these options.
fn shown(dir: &Path, options: &str) -> String {
    let run = devprof(dir, &format!("stats {options} a.trace"));
    run.text().to_owned()
}

/// Checks the rows of `key` that `devprof stats` prints with these options.
#[track_caller]
fn assert_stats(dir: &Path, options: &str, key: &str, expected: &str) {
    assert_table(elements(&stats(dir, options).0[key]), expected);
}

/// The standard deviation of a sample.
fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares = values.iter().map(|value| (value - mean).powi(2));
    (squares.sum::<f64>() / (values.len() - 1) as f64).sqrt()
}

#[test]
fn rows_with_the_same_total_are_in_the_order_of_their_names() {
    let dir = written("stats-kernels", &file(&records()));
    let (report, _) = stats(&dir, "");
    assert_table(
        elements(&report["kernels"]),
        "name | calls | total | mean | median | min | max | stddev | blit | share
        void space::work<float>(float*) | 1 | 120 | 120 | 120 | 120 | 120 | 0 | null | 44.444444444
        void space::work<int>(int*) | 3 | 120 | 40 | 20 | 10 | 90 | 43.588989435 | null | 44.444444444
        __amd_rocclr_copyBuffer | 1 | 30 | 30 | 30 | 30 | 30 | 0 | true | 11.111111111",
    );
    assert_eq!(report.get("api"), None);
}

#[test]
fn rows_are_kept_apart_by_agent_queue_stream_and_thread() {
    let dir = written("stats-by", &file(&records()));
    // Groups are in order, and shares are of the group.
    for (by, expected) in [
        (
            "agent",
            "agent | gpu | node | host | name | total | share
            GPU 0 first GPU | 0 | 1 | a host | void space::work<int>(int*) | 120 | 80
            GPU 0 first GPU | 0 | 1 | a host | __amd_rocclr_copyBuffer | 30 | 20
            GPU 1 gfx1100 | 1 | 2 | a host | void space::work<float>(float*) | 120 | 100",
        ),
        (
            "queue",
            "agent | queue | name | total | share
            GPU 0 first GPU | 1 | __amd_rocclr_copyBuffer | 30 | 50
            GPU 0 first GPU | 1 | void space::work<int>(int*) | 30 | 50
            GPU 0 first GPU | 2 | void space::work<int>(int*) | 90 | 100
            GPU 1 gfx1100 | 3 | void space::work<float>(float*) | 120 | 100",
        ),
        (
            "stream",
            "stream | stream_name | name | total | share
            0 | no stream | __amd_rocclr_copyBuffer | 30 | 100
            1 | NULL stream | void space::work<int>(int*) | 10 | 100
            2 | compute | void space::work<int>(int*) | 20 | 100
            3 | Stream 3 of thread 77 | void space::work<int>(int*) | 90 | 100
            4 | Stream 4 | void space::work<float>(float*) | 120 | 100",
        ),
    ] {
        assert_stats(&dir, &format!("--by {by}"), "kernels", expected);
    }
    let (report, _) = stats(&dir, "--by thread,process");
    assert_table(
        &elements(&report["kernels"])[..1],
        "process | thread | thread_name | host | name | total | share
        4242 | 77 | thread 77 | a host | void space::work<float>(float*) | 120 | 44.444444444",
    );
    let plain = shown(&dir, "--by queue,stream,process");
    for line in [
        "\nprocess 4242 (app), GPU 0 first GPU, queue 1, compute\n",
        "  __amd_rocclr_copyBuffer (blit)\n",
    ] {
        assert!(plain.contains(line), "{plain}");
    }
}

#[test]
fn groups_are_visible() {
    let dir = written("stats-groups", &file(&records()));
    let plain = shown(&dir, "--color=never --by=agent");
    let colored = shown(&dir, "--color=always --by=agent");
    for label in ["GPU 0 first GPU", "GPU 1 gfx1100"] {
        assert!(plain.contains(&format!("\n\n{label}\n")), "{plain}");
        let bold = format!("\n\n\x1b[1m{label}\x1b[0m\n");
        assert!(colored.contains(&bold), "{colored}");
    }
}

/// The records on another host, which has the same kernels, GPUs and queues.
fn on_another_host(mut records: Records) -> Records {
    records.extend(texts(&[(50, "another host")]));
    records.push(with!(Process::new(4242, 0); host = 50, command = 3).seal());
    records
}

#[test]
fn rows_of_several_files_add_up_unless_they_are_kept_apart_by_process() {
    let dir = written("stats-files", &file(&records()));
    let mut records = on_another_host(records());
    records.push(on_stream(run_in(6, 1, 5, (90, 400, 1400)), 1));
    fs::write(dir.join("b.trace"), file(&records)).unwrap();
    // Queues are of one process, GPUs of one host.
    for (by, expected) in [
        ("", "null | null | null | null | 7 | 1240"),
        (
            "--by process",
            "4242 | a host | null | null | 3 | 120
            4242 | another host | null | null | 4 | 1120",
        ),
        (
            "--by queue",
            "4242 | a host | GPU 0 first GPU | 1 | 2 | 30
            4242 | a host | GPU 0 first GPU | 2 | 1 | 90
            4242 | another host | GPU 0 first GPU | 1 | 3 | 1030
            4242 | another host | GPU 0 first GPU | 2 | 1 | 90",
        ),
        (
            "--by agent",
            "null | a host | GPU 0 first GPU | null | 3 | 120
            null | another host | GPU 0 first GPU | null | 4 | 1120",
        ),
    ] {
        let (report, _) = stats(&dir, &format!("b.trace {by}"));
        assert_eq!(report["dispatches"], 11);
        assert_eq!(report["processes"][1]["host"], "another host");
        let rows = elements(&report["kernels"]).iter();
        let header = "process | host | agent | queue | calls | total";
        assert_table(
            rows.filter(|row| row["name"] == "void space::work<int>(int*)"),
            &format!("{header}\n{expected}"),
        );
    }
    let plain = shown(&dir, "--by agent b.trace");
    assert!(
        plain.contains("\nanother host, GPU 0 first GPU\n"),
        "{plain}"
    );
    // On one host, it is the same GPU.
    fs::copy(dir.join("a.trace"), dir.join("b.trace")).unwrap();
    let (report, _) = stats(&dir, "b.trace --by agent --top 1");
    assert_table(
        &elements(&report["kernels"])[..1],
        "process | host | agent | queue | calls | total
        null | a host | GPU 0 first GPU | null | 6 | 240",
    );
}

#[test]
fn gpus_with_the_same_number_in_two_processes_have_their_nodes() {
    let dir = written("stats-visible", &file(&records()));
    // The GPU of agent 2 is the first visible one of another process.
    let mut records = definitions_of(5000, "a host");
    records.retain(|record| u16::from(record[4]) != kind::AGENT);
    let gpu = with!(Agent::new(2, 0); frequency = 1u64, name = 1, node = 2, number = 1);
    records.push(gpu.seal());
    records.push(run_in(1, 3, 1, (90, 100, 200)).seal());
    fs::write(dir.join("b.trace"), file(&records)).unwrap();
    let (report, _) = stats(&dir, "b.trace --by agent --gaps");
    assert_table(
        elements(&report["gpus"]),
        "agent | gpu | node
        GPU 0 first GPU | 0 | 1
        GPU 1 gfx1100 | 1 | 2
        GPU 0 gfx1100 | 0 | 2",
    );
    let mut named = self::records();
    named.retain(|record| u16::from(record[4]) != kind::NAME);
    fs::write(dir.join("a.trace"), file(&named)).unwrap();
    let plain = shown(&dir, "b.trace --by agent");
    let labels = plain.lines().filter(|line| line.starts_with("GPU"));
    assert_eq!(
        labels.collect::<Vec<_>>(),
        [
            "GPU 0 gfx1100 (node 1)",
            "GPU 0 gfx1100 (node 2)",
            "GPU 1 gfx1100"
        ]
    );
}

#[test]
fn only_selected_records_are_in_the_tables() {
    let dir = written("stats-selected", &trace());
    let kernels = |selection: &str, expected: &str| {
        assert_stats(
            &dir,
            selection,
            "kernels",
            &format!("name | calls | total\n{expected}"),
        );
    };
    kernels("--kernel ^halved", "halved(unsigned int) | 2 | 3000");
    kernels("--kernel ^halved$ --short-names", "halved | 2 | 3000");
    kernels(
        "--kernel-exclude-regex says --exclude-kernel ^kernel_",
        "halved(unsigned int) | 2 | 3000
        (unknown kernel) | 1 | 100",
    );
    // Two kernels end in the first window, and one is in the second. The trace starts at 1000 ns.
    kernels(
        "--kernel halved --kernel unknown --time 1500ns..2.1us --time 10us..10.05us",
        "halved(unsigned int) | 2 | 3000
        (unknown kernel) | 1 | 100",
    );
    let (report, _) = stats(&dir, "--time 1.9us..2us --api");
    assert_table(
        elements(&report["api"]),
        "name | calls | total
        hipLaunchKernel | 1 | 1200",
    );
    assert_eq!(report["dispatches"], 2);
    // The windows of several traces are relative to the start of the first.
    let later = Header::new(4243, 1_000_000_000, 2000, STARTED_UNIX + 1000);
    let mut records = definitions_of(4243, "a host");
    records.push(timed(dispatch(1, 0, 1, 1, 0), 2000, 2600, 2700).seal());
    fs::write(dir.join("b.trace"), file_with(&later, &records)).unwrap();
    kernels(
        "b.trace --time 1.6us..1.61us",
        "halved(unsigned int) | 3 | 3100",
    );

    for (selection, status, message) in [
        (
            "--kernel none",
            1,
            "the trace has no such kernels: change --kernel, ",
        ),
        (
            "--api --time 1s..",
            1,
            "the trace has no API calls at these times: change --time",
        ),
        (
            "--gaps --kernel halved",
            2,
            "the gaps are between all kernels: request",
        ),
        (
            "--gaps --time ..1s --time 2s..",
            2,
            "the gaps are between kernels of one window",
        ),
        (
            "--time 1..2",
            2,
            "1 has no unit: add ns, us, ms, s, min or h",
        ),
        ("--kernel (", 2, "regex parse error"),
    ] {
        let run = devprof(&dir, &format!("stats a.trace {selection}"));
        assert_eq!(run.status, status, "{selection}: {}", run.stderr);
        assert!(run.stderr.contains(message), "{selection}: {}", run.stderr);
    }
    let (report, _) = stats(&dir, "--gaps --time 20us..");
    assert_eq!(report["gaps"][0]["busy"], 10 * (GRAPH - 100));
}

#[test]
fn copies_of_several_hosts_have_their_host() {
    let dir = written("stats-hosts", &file(&records()));
    fs::write(dir.join("b.trace"), file(&on_another_host(records()))).unwrap();
    let (report, _) = stats(&dir, "b.trace --copies");
    let rows = elements(&report["copies"]);
    let text = table(&fields(
        rows,
        &["name", "source", "destination", "host", "calls"],
    ));
    for row in [
        "host_to_device | CPU 0 | GPU 0 first GPU | a host | 2",
        "host_to_device | CPU 0 | GPU 0 first GPU | another host | 2",
        // The kernels that copy have no source and no destination, and add up.
        "__amd_rocclr_copyBuffer | null | null | null | 2",
    ] {
        assert!(text.lines().any(|line| line == row), "{text}");
    }
    assert_eq!(rows.len(), 2 * 4 + 1);

    let plain = shown(&dir, "--copies --by=agent b.trace");
    for row in [
        "host to device, CPU 0 to GPU 1 gfx1100 on a host",
        "host to device, CPU 0 to GPU 1 gfx1100 on another host",
        "fill, GPU 1 gfx1100 on another host",
        "__amd_rocclr_copyBuffer (blit), GPU 0 first GPU on another host",
    ] {
        assert_eq!(plain.matches(&format!("  {row}\n")).count(), 1, "{plain}");
    }
    // The group has the host.
    assert!(!shown(&dir, "--copies --by=process b.trace").contains(" on a host\n"));
    let csv = shown(&dir, "--copies --csv b.trace");
    let end = "\"GPU 0 first GPU\",\"GPU 1 gfx1100\",\"another host\"\n";
    assert_eq!(csv.matches(end).count(), 1, "{csv}");
    assert_eq!(csv.lines().count(), 1 + 2 * 4 + 1);
}

#[test]
fn api_calls_and_markers_have_the_same_statistics() {
    let dir = written("stats-api", &file(&records()));
    let (report, stderr) = stats(&dir, "--api --markers");
    assert_table(
        elements(&report["api"]),
        "name | calls | total | mean | median | min | max | stddev
        hipMalloc | 1 | 100 | 100 | 100 | 100 | 100 | 0
        hipLaunchKernel | 2 | 40 | 20 | 20 | 10 | 30 | 14.142135624",
    );
    assert_table(
        elements(&report["markers"]),
        "what | name | calls | total | mean | median | min | max | stddev
        process range | worker | 1 | 100 | 100 | 100 | 100 | 100 | 0
        range | step | 2 | 40 | 20 | 20 | 10 | 30 | 14.142135624
        mark | step | 1 | 0 | 0 | 0 | 0 | 0 | 0",
    );
    for left_out in [
        "a.trace: 1 API call with an end before the start: left out",
        "a.trace: 1 range that did not end: left out",
    ] {
        assert!(stderr.contains(left_out), "{stderr}");
    }
    assert_eq!(report["untimed"], json!({"api": 1, "markers": 1}));
    assert_stats(
        &dir,
        "--api --by stream,thread",
        "api",
        "name | stream_name | thread_name | total
        hipMalloc | no stream | thread 10 (worker) | 100
        hipLaunchKernel | NULL stream | thread 10 (worker) | 10
        hipLaunchKernel | compute | thread 10 (worker) | 30",
    );
    // A point in time has no duration.
    let plain = shown(&dir, "--markers");
    let mark = plain.lines().last().unwrap().split_whitespace();
    assert!(mark.eq("1 - - - - - - - step".split(' ')), "{plain}");
}

#[test]
fn copies_are_by_direction_and_with_several_gpus_by_their_agents() {
    let dir = written("stats-copies", &file(&records()));
    let (report, stderr) = stats(&dir, "--copies");
    assert!(
        stderr.contains("1 copy without an observed end"),
        "{stderr}"
    );
    assert_table(
        elements(&report["copies"]),
        "name | source | destination | calls | bytes | mean_size | total | median | bandwidth
        host_to_device | CPU 0 | GPU 0 first GPU | 2 | 4000 | 2000 | 40 | 20 | 100000000000
        __amd_rocclr_copyBuffer | null | null | 1 | null | null | 30 | 30 | null
        host_to_device | CPU 0 | GPU 1 gfx1100 | 1 | 500 | 500 | 10 | 10 | 50000000000
        device_to_device | GPU 0 first GPU | GPU 1 gfx1100 | 1 | 64 | 64 | 5 | 5 | 12800000000
        fill | null | GPU 1 gfx1100 | 1 | 4096 | 4096 | 0 | 0 | null",
    );
    let (report, _) = stats(&dir, "--copies --by agent");
    assert_eq!(report["copies"][1]["destination"], "GPU 0 first GPU");
    let (report, _) = stats(&dir, "--copies --by stream");
    let rows = elements(&report["copies"]);
    assert_table(
        &rows[..2],
        "stream_name | name
        no stream | __amd_rocclr_copyBuffer
        compute | host_to_device",
    );
    let text = shown(&dir, "--csv --copies");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].ends_with(
        "\"MedianNs\",\"Bytes\",\"BytesPerSecond\",\"Source\",\"Destination\",\"Host\""
    ));
    assert_eq!(
        lines[1],
        "\"MEMORY_COPY_HOST_TO_DEVICE\",2,40,20.000000,47.058824,10,30,14.142136,20.0,4000,\
        100000000000,\"CPU 0\",\"GPU 0 first GPU\",\"a host\""
    );
    assert!(lines[5].starts_with("\"MEMORY_FILL\",1,0,"), "{text}");
    let plain = shown(&dir, "--copies");
    assert!(
        plain.contains("  host to device, CPU 0 to GPU 1 gfx1100\n"),
        "{plain}"
    );

    // With one GPU, rows do not have the agents.
    let mut records = records();
    let second = [(kind::AGENT, 2), (kind::DISPATCH, 4)];
    records.retain(|bytes| !second.contains(&(bytes[4].into(), bytes[8])));
    for bytes in &mut records {
        if u16::from(bytes[4]) == kind::COPY {
            let mut copy = MemoryCopy::read_from_bytes(bytes).unwrap();
            for agent in [&mut copy.source, &mut copy.destination] {
                if agent.get() == 2 {
                    agent.set(1);
                }
            }
            *bytes = copy.seal();
        }
    }
    assert_stats(
        &written("stats-copies-one", &file(&records)),
        "--copies",
        "copies",
        "name | source | destination | calls | bytes | mean_size | total | median | bandwidth
        host_to_device | null | null | 3 | 4500 | 1500 | 50 | 10 | 90000000000
        __amd_rocclr_copyBuffer | null | null | 1 | null | null | 30 | 30 | null
        device_to_device | null | null | 1 | 64 | 64 | 5 | 5 | 12800000000
        fill | null | null | 1 | 4096 | 4096 | 0 | 0 | null",
    );
}

#[test]
fn only_the_kernels_of_hip_that_copy_or_fill_are_blit_kernels() {
    let mut records = all_definitions();
    records.extend(texts(&[(60, "__amd_rocclr_initHeap")]));
    records.extend([
        with!(Kernel::new(7, 0); name = 60).seal(),
        run_in(1, 1, 7, (90, 100, 200)).seal(),
        run_in(2, 1, 4, (90, 200, 250)).seal(),
    ]);
    let dir = written("stats-blit", &file(&records));
    let (report, _) = stats(&dir, "--kernels --copies");
    assert_table(
        elements(&report["kernels"]),
        "name | blit
        __amd_rocclr_initHeap | null
        __amd_rocclr_copyBuffer | true",
    );
    assert_eq!(elements(&report["copies"]).len(), 1);
    succeed(&dir, "export a.trace -o out.jsonl");
    let lines = json_lines(&dir.join("out.jsonl"));
    let kernels = of_type(&lines, "kernel").into_iter();
    assert_table(
        kernels.filter(|line| line["blit"] == true),
        "name
        __amd_rocclr_copyBuffer",
    );
}

#[test]
fn gaps_are_counted_where_nothing_can_have_run() {
    let mut records = all_definitions();
    let agents_clock = timed(dispatch(30, flag::CLOCK_AGENT, 2, 5, 0), 150, 1, 2);
    records.extend([
        // Queue 1: 2 overlaps 1 and ends after 3. The file is in the order of the ends.
        run_in(1, 1, 5, (90, 100, 200)).seal(),
        run_in(3, 1, 6, (90, 160, 170)).seal(),
        run_in(2, 1, 5, (90, 150, 300)).seal(),
        run_in(4, 1, 6, (90, 310, 400)).seal(),
        run_in(5, 1, 5, (400, 450, 500)).seal(),
        run_in(6, 1, 5, (400, 500, 510)).seal(),
        // Two gaps after kernel 5.
        run_in(7, 1, 6, (400, 530, 600)).seal(),
        recording(1, 610, false),
        recording(2, 690, true),
        run_in(8, 1, 5, (695, 700, 800)).seal(),
        // Queue 2: a dispatch without times may have run in the first gap.
        run_in(20, 2, 5, (90, 100, 200)).seal(),
        run_in(21, 2, 5, (90, 300, 400)).seal(),
        with!(agents_clock; observed = 250u64).seal(),
        run_in(22, 2, 5, (90, 401, 500)).seal(),
        // Queue 3 has one dispatch only.
        run_in(40, 3, 6, (90, 100, 1100)).seal(),
    ]);
    let dir = written("stats-gaps", &file(&records));
    let (report, _) = stats(&dir, "--gaps --short-names");
    assert_table(
        elements(&report["gaps"]),
        "agent | queue | busy | active | calls | total | mean | median | max | uncounted | late | idle_share
        GPU 0 gfx1100 | 1 | 520 | 600 | 3 | 80 | 26.666666667 | 20 | 50 | 1 | 0 | 13.333333333
        GPU 0 gfx1100 | 2 | 299 | 300 | 1 | 1 | 1 | 1 | 1 | 1 | 0 | 0.333333333
        GPU 1 gfx1100 | 3 | 1000 | 1000 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0",
    );
    // Both kernels have the same base name, and are one row.
    assert_table(
        elements(&report["gaps"][0]["after"]),
        "name | calls | total | share
        work | 3 | 80 | 100",
    );
    let (full, _) = stats(&dir, "--gaps --top 1");
    assert_table(
        elements(&full["gaps"][0]["after"]),
        "name | calls | total | share
        void space::work<float>(float*) | 1 | 50 | 62.5",
    );
    // The first GPU is idle when none of its queues has a kernel: from 400 to 401, and from 510 to 530. In the pause, it is
    // not known. So it is busy for 300 + 109 + 70 + 100 ns.
    assert_table(
        elements(&report["gpus"]),
        "agent | busy | active
        GPU 0 gfx1100 | 579 | 600
        GPU 1 gfx1100 | 1000 | 1000",
    );
    let plain = shown(&dir, "--gaps");
    let expected = "\
GPU 0 gfx1100, queue 1: idle 13.3 % of 600 ns, 3 gaps, median 20 ns, 1 not counted
   1  50 ns  50 ns   50 ns    50 ns   62.5 %  void space::work<float>(float*)
   2  30 ns  15 ns   15 ns    20 ns   37.5 %  void space::work<int>(int*)
";
    assert!(plain.contains(expected), "{plain}");
    // The busy time of the first GPU does not contain its uncounted gap.
    let busy = "\n
GPU 0 gfx1100: busy 96.5 % of 600 ns, 1 gap not counted
GPU 1 gfx1100: busy 100.0 % of 1.000 µs
";
    assert!(plain.ends_with(busy), "{plain}");
}

#[test]
fn gaps_in_which_a_kernel_of_another_queue_may_run_after_a_pause_are_not_counted() {
    let mut records = all_definitions();
    records.extend([
        run_in(1, 1, 5, (90, 100, 200)).seal(),
        run_in(2, 2, 5, (90, 100, 200)).seal(),
        recording(1, 210, false),
        recording(2, 220, true),
        // A kernel that was launched in the pause has ended in queue 1, but it can still run in queue 2.
        run_in(3, 1, 5, (230, 240, 250)).seal(),
        run_in(4, 1, 5, (260, 300, 310)).seal(),
        // Now it has ended in both.
        run_in(5, 2, 5, (320, 330, 340)).seal(),
        run_in(6, 1, 5, (345, 350, 360)).seal(),
        // In queue 3, kernels overlap. So one that was launched in the pause can run until the next gap.
        run_in(7, 3, 5, (200, 205, 1000)).seal(),
        run_in(8, 3, 5, (225, 230, 240)).seal(),
        run_in(9, 3, 5, (226, 1100, 1200)).seal(),
        run_in(10, 3, 5, (227, 1300, 1400)).seal(),
    ]);
    let dir = written("stats-pause", &file(&records));
    let (report, _) = stats(&dir, "--gaps");
    // Number and total of the counted gaps, and the number of the others.
    assert_table(
        elements(&report["gaps"]),
        "queue | calls | total | uncounted
        1 | 2 | 90 | 1
        2 | 0 | 0 | 1
        3 | 1 | 100 | 1",
    );
    assert_table(
        elements(&report["gpus"]),
        "node | calls | total | uncounted
        1 | 1 | 10 | 3
        2 | 1 | 100 | 1",
    );
}

#[test]
fn statistics_agree_with_the_exported_records() {
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
        let times = (start - 10, start, start + length);
        let queue = 1 + random(3) as u32;
        dispatches.push(run_in(id, queue, 5 + (id % 9 / 7) as u32, times));
    }
    dispatches.sort_by_key(|dispatch| dispatch.end.get());
    records.extend(dispatches.into_iter().map(Record::seal));
    let dir = written("stats-check", &file(&records));
    let (report, _) = stats(&dir, "--kernels --gaps");
    succeed(&dir, "export a.trace -o out.jsonl");
    let mut times: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut queues: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for line in of_type(&json_lines(&dir.join("out.jsonl")), "dispatch") {
        let [start, end, queue] =
            ["start", "end", "queue"].map(|field| line[field].as_u64().unwrap());
        let own = times.entry(line["kernel_name"].as_str().unwrap().into());
        own.or_default().push((end - start) as f64);
        queues.entry(queue).or_default().push((start, end));
    }
    assert_eq!(times.len(), 2);
    for (name, mut times) in times {
        let mut rows = elements(&report["kernels"]).iter();
        let row = rows.find(|row| row["name"] == *name).unwrap();
        times.sort_by(f64::total_cmp);
        let total: f64 = times.iter().sum();
        let (low, high) = (times[(times.len() - 1) / 2], times[times.len() / 2]);
        let is_approximate = times.len() > 16_384;
        assert_eq!(row["median_is_approximate"] == true, is_approximate);
        let median_error = if is_approximate { 5e-4 } else { 0.0 };
        for (field, expected, error) in [
            ("calls", times.len() as f64, 0.0),
            ("total", total, 0.0),
            ("mean", total / times.len() as f64, 1e-12),
            ("min", times[0], 0.0),
            ("max", times[times.len() - 1], 0.0),
            ("stddev", deviation(&times), 1e-9),
            ("median", (low + high) / 2.0, median_error),
        ] {
            let found = row[field].as_f64().unwrap();
            assert!(
                (found - expected).abs() <= error * expected,
                "{name} {field}: {found} {expected}"
            );
        }
    }
    for (queue, mut spans) in queues {
        spans.sort_unstable();
        let mut rows = elements(&report["gaps"]).iter();
        let row = rows.find(|row| row["queue"] == queue).unwrap();
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
        let after = elements(&row["after"]).iter();
        let calls = after.map(|row| row["calls"].as_u64().unwrap());
        assert_eq!(calls.sum::<u64>(), gaps.len() as u64);
    }
}

#[test]
fn tables_fit_into_100_columns() {
    let dir = written("stats-width", &file(&records()));
    let options = "--kernels --api --copies --markers --gaps --top 2 --short-names";
    let text = shown(&dir, options);
    let mut rest = &*text;
    for title in [
        "KERNELS",
        "API CALLS",
        "COPIES AND FILLS",
        "MARKERS",
        "GAPS BETWEEN KERNELS",
    ] {
        let found = rest.split_once(title);
        (_, rest) = found.unwrap_or_else(|| panic!("{title}: {text}"));
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
    let dir = written("stats-columns", &file(&records()));
    for (option, row) in [
        (
            "--copies",
            "14.1 ns 47.1 % host to device, CPU 0 to GPU 0 first GPU",
        ),
        ("--markers", "14.14 ns 28.6 % step"),
    ] {
        let plain = shown(&dir, option);
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut lines = plain.lines().map(words);
        let headings = lines.next().unwrap();
        assert!(headings.contains(" Max StdDev Share "), "{plain}");
        assert!(lines.any(|line| line.ends_with(row)), "{plain}");
    }
}

#[test]
fn tables_that_the_trace_does_not_have_are_reported_with_the_option_that_records_them() {
    let dir = written("stats-none", &file(&definitions()));
    for (option, next, keys) in [
        ("--api", "--trace-api", &["api"][..]),
        ("--copies", "--trace-copies", &["copies"]),
        ("--markers", "--trace-markers", &["markers"]),
        ("--gaps", "no kernels with times", &["gaps", "gpus"]),
    ] {
        let run = devprof(&dir, &format!("stats {option} a.trace"));
        assert_eq!((run.status, run.text()), (1, ""), "{}", run.stderr);
        for part in ["the trace has no ", next] {
            assert!(run.stderr.contains(part), "{}", run.stderr);
        }
        let options = format!("--kernels {option}");
        let (report, stderr) = stats(&dir, &options);
        assert!(stderr.contains(next), "{stderr}");
        for key in [&["kernels"], keys].concat() {
            assert_eq!(report[key], json!([]), "{key}");
        }
        let text = shown(&dir, &options);
        let headings = text.lines().filter(|line| line.contains("Mean"));
        assert_eq!(headings.count(), 1, "{option}");
    }
}

#[test]
fn several_tables_are_written_to_one_csv_file_each() {
    let dir = written("stats-csv", &file(&records()));
    let options = "--kernels --api --copies --markers --gaps --by process -o out";
    let run = succeed(&dir, &format!("stats {options} a.trace"));
    for (name, rows, last) in [
        ("kernel_stats.csv", "3 rows", "Process"),
        ("hip_api_stats.csv", "2 rows", "Process"),
        ("memory_copy_stats.csv", "5 rows", "Process"),
        ("marker_api_stats.csv", "3 rows", "Process"),
        ("gap_stats.csv", "1 row", "Queue"),
    ] {
        let mut reader = csv::Reader::from_path(dir.join("out").join(name)).unwrap();
        let header = reader.headers().unwrap().clone();
        assert_eq!(&header[1], "Calls");
        assert_eq!(&header[header.len() - 1], last);
        let count = reader.records().map(Result::unwrap).count();
        assert!(rows.starts_with(&format!("{count} ")), "{name}");
        let line = format!("out/{name}: {rows}\n");
        assert!(run.text().contains(&line), "{}", run.text());
    }
}
