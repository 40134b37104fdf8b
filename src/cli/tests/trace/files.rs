//! Creates trace files record by record.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tracefile::format::{
    Agent, Call, Count, Counter, Dispatch, Header, Kernel, Process, Queue, RECORD_SIZE, Record,
    flag, pieces,
};
use zerocopy::IntoBytes;

/// The start time of the traces, in nanoseconds since 1970.
pub const STARTED_UNIX: u64 = 1_700_000_000_000_000_000;
/// Dispatches of [`trace`]'s graph launch, which has correlation ID 5.
pub const GRAPH: u64 = 1000;
/// A name that needs more than one record.
pub fn long_name() -> String {
    format!("kernel_{}", "0123456789".repeat(25))
}

/// A complete trace file with these records.
pub fn file(records: &[[u8; RECORD_SIZE]]) -> Vec<u8> {
    let header = Header::new(4242, 1_000_000_000, 1000, STARTED_UNIX);
    file_with(&header, records)
}

pub fn file_with(header: &Header, records: &[[u8; RECORD_SIZE]]) -> Vec<u8> {
    let mut bytes = header.page().to_vec();
    for (count, value) in [(Count::Records, records.len() as u64), (Count::Closed, 1)] {
        set(&mut bytes, count, value);
    }
    bytes.extend(records.concat());
    bytes
}

/// Sets a counter of the header.
pub fn set(file: &mut [u8], count: Count, value: u64) {
    let at = count.offset();
    file[at..at + size_of::<Counter>()].copy_from_slice(Counter::new(value).as_bytes());
}

/// The records that others refer to: two GPUs (nodes 1 and 2), two queues on the first GPU and one on the second, and
/// three kernels.
pub fn definitions() -> Vec<[u8; RECORD_SIZE]> {
    definitions_of(4242, "a host")
}

/// [`definitions`], for another process.
pub fn definitions_of(pid: u32, host: &str) -> Vec<[u8; RECORD_SIZE]> {
    let mut records = Vec::new();
    for (id, text) in [
        (1, "gfx1100"),
        (2, host),
        (3, "./app \"an argument\""),
        (4, "_Z6halvedj"),
        (5, &long_name()),
        (6, "says \"a, b\""),
        (7, "hipLaunchKernel"),
        (8, "hipGraphLaunch"),
    ] {
        records.extend(pieces(id, text).map(Record::seal));
    }
    let mut process = Process::new(pid.into(), 0);
    process.parent = 1.into();
    process.host = 2.into();
    process.command = 3.into();
    records.push(process.seal());
    for id in [1, 2] {
        let mut agent = Agent::new(id, 0);
        agent.frequency = 100_000_000.into();
        agent.name = 1.into();
        agent.node = (id as u32).into();
        agent.compute_units = 96.into();
        records.push(agent.seal());
    }
    for (id, agent) in [(1, 1), (2, 1), (3, 2)] {
        let mut queue = Queue::new(id, 0);
        queue.created = (1000 + id).into();
        queue.agent = agent.into();
        queue.size = 16384.into();
        records.push(queue.seal());
    }
    for (id, name) in [(1, 4), (2, 5), (3, 6)] {
        let mut kernel = Kernel::new(id, 0);
        kernel.object = (0x1000 * id).into();
        kernel.name = name.into();
        kernel.agent = 1.into();
        kernel.vgprs = 24.into();
        kernel.sgprs = 106.into();
        records.push(kernel.seal());
    }
    records
}

/// A dispatch on one of the queues of [`definitions`].
pub fn dispatch(id: u64, flags: u16, queue: u32, kernel: u32, correlation: u64) -> Dispatch {
    let mut dispatch = Dispatch::new(id, flags);
    dispatch.correlation = correlation.into();
    dispatch.agent = if queue == 3 { 2 } else { 1 }.into();
    dispatch.queue = queue.into();
    // The thread of the call in [`trace`].
    dispatch.thread = match correlation {
        1 | 3 => 10,
        2 | 5 => 11,
        _ => 77,
    }
    .into();
    dispatch.kernel = kernel.into();
    dispatch.grid = [1024, 2, 1].map(Into::into);
    dispatch.workgroup = [256, 2, 1].map(Into::into);
    dispatch.lds = 512.into();
    dispatch.scratch = 16.into();
    dispatch.vgprs = 24.into();
    dispatch.sgprs = 106.into();
    dispatch
}

pub fn timed(mut dispatch: Dispatch, submit: u64, start: u64, end: u64) -> Dispatch {
    dispatch.submit = submit.into();
    dispatch.start = start.into();
    dispatch.end = end.into();
    dispatch.observed = (end + 10).into();
    dispatch
}

pub fn call(id: u64, name: u32, thread: u32, start: u64, end: u64) -> Call {
    let mut call = Call::new(id, 0);
    call.name = name.into();
    call.thread = thread.into();
    call.start = start.into();
    call.end = end.into();
    call
}

/// A trace with all kinds of records. Dispatches 1 and 2 overlap in queue 1, 4 has times of the agent's clock, 5 has no
/// times, 6 did not end, 7 has an unknown kernel, and 8 ends before it starts. IDs from 100 on are those of a graph.
pub fn trace() -> Vec<u8> {
    let mut records = definitions();
    let mut agents_clock = timed(dispatch(4, flag::CLOCK_AGENT, 3, 2, 3), 3500, 500, 900);
    agents_clock.observed = 10_000.into();
    let mut unfinished = dispatch(6, flag::UNFINISHED | flag::CLOCK_NONE, 1, 1, 4);
    unfinished.submit = 9000.into();
    let strange = flag::NO_REGISTERS | flag::VENDOR | flag::NO_CALL | flag::MOVED;
    records.push(call(1, 7, 10, 1500, 1700).seal());
    records.extend(
        [
            timed(dispatch(1, 0, 1, 1, 1), 1600, 2000, 3000),
            timed(dispatch(2, 0, 1, 1, 1), 1610, 2500, 4500),
            timed(dispatch(3, flag::CLOCK_SCALED, 2, 2, 2), 2900, 3000, 3500),
            agents_clock,
            timed(
                dispatch(5, flag::CLOCK_NONE | flag::NO_CALL, 3, 3, 0),
                4000,
                0,
                0,
            ),
            unfinished,
            timed(dispatch(7, strange, 1, 0, 0), 10_900, 11_000, 11_100),
            timed(dispatch(8, 0, 2, 1, 2), 3900, 5000, 4000),
        ]
        .map(Record::seal),
    );
    records.push(call(2, 7, 11, 2800, 4000).seal());
    records.push(call(3, 7, 10, 3400, 3600).seal());
    records.extend((0..GRAPH).map(|n| {
        let start = 20_000 + 10 * n;
        timed(dispatch(100 + n, 0, 2, 3, 5), 15_000, start, start + 10).seal()
    }));
    records.push(call(5, 8, 11, 14_000, 16_000).seal());
    file(&records)
}

/// An empty directory for a test.
pub fn directory(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// Runs devprof.
pub fn devprof(arguments: &[&dyn AsRef<std::ffi::OsStr>]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_devprof"))
        .args(arguments.iter().map(|argument| argument.as_ref()))
        .output()
        .unwrap()
}

/// What a run wrote to stderr.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
