//! Creates trace files record by record, runs devprof, and compares rows.

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tracefile::format::{
    Agent, Call, Count, Counter, Dispatch, Header, Kernel, Marker, MemoryCopy, Name, Process,
    Queue, RECORD_SIZE, Record, Recording, Stream, flag, pieces,
};
use zerocopy::IntoBytes;

/// The record with these values in its fields.
macro_rules! with {
    ($record:expr; $($($field:ident).+ = $value:expr),+) => {{
        let mut record = $record;
        $(record.$($field).+ = $value.into();)+
        record
    }};
}

/// Records with their checksums.
pub type Records = Vec<[u8; RECORD_SIZE]>;

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

/// The records that others refer to: two GPUs (0 and 1, nodes 1 and 2), two queues on the first GPU and one on the second, and
/// three kernels.
pub fn definitions() -> Records {
    definitions_of(4242, "a host")
}

/// [`definitions`], for another process.
pub fn definitions_of(pid: u32, host: &str) -> Records {
    let mut records = texts(&[
        (1, "gfx1100"),
        (2, host),
        (3, "./app \"an argument\""),
        (4, "_Z6halvedj"),
        (5, &long_name()),
        (6, "says \"a, b\""),
        (7, "hipLaunchKernel"),
        (8, "hipGraphLaunch"),
    ]);
    records.push(with!(Process::new(pid.into(), 0); parent = 1, host = 2, command = 3).seal());
    for id in [1, 2] {
        let agent = with!(Agent::new(id, 0); frequency = 100_000_000, name = 1, node = id as u32, number = id as u32);
        records.push(with!(agent; compute_units = 96).seal());
    }
    for (id, agent) in [(1, 1), (2, 1), (3, 2)] {
        let queue = with!(Queue::new(id, 0); created = 1000 + id, agent = agent, size = 16384);
        records.push(queue.seal());
    }
    for (id, name) in [(1, 4), (2, 5), (3, 6)] {
        let kernel = with!(Kernel::new(id, 0); object = 0x1000 * id, name = name, agent = 1);
        records.push(with!(kernel; vgprs = 24, sgprs = 106).seal());
    }
    records
}

/// A dispatch on one of the queues of [`definitions`].
pub fn dispatch(id: u64, flags: u16, queue: u32, kernel: u32, correlation: u64) -> Dispatch {
    // The thread of the call in [`trace`].
    let thread = match correlation {
        1 | 3 => 10,
        2 | 5 => 11,
        _ => 77,
    };
    let mut dispatch =
        with!(Dispatch::new(id, flags); correlation = correlation, queue = queue, kernel = kernel);
    dispatch.agent = if queue == 3 { 2 } else { 1 }.into();
    dispatch.grid = [1024, 2, 1].map(Into::into);
    dispatch.workgroup = [256, 2, 1].map(Into::into);
    with!(dispatch; thread = thread, lds = 512, scratch = 16, vgprs = 24, sgprs = 106)
}

pub fn timed(dispatch: Dispatch, submit: u64, start: u64, end: u64) -> Dispatch {
    with!(dispatch; submit = submit, start = start, end = end, observed = end + 10)
}

pub fn call(id: u64, name: u32, thread: u32, start: u64, end: u64) -> Call {
    with!(Call::new(id, 0); name = name, thread = thread, start = start, end = end)
}

/// A trace with all kinds of records. Dispatches 1 and 2 overlap in queue 1, 4 has times of the agent's clock, 5 has no
/// times, 6 did not end, 7 has an unknown kernel, and 8 ends before it starts. IDs from 100 on belong to a graph.
pub fn trace() -> Vec<u8> {
    let mut records = definitions();
    let agents_clock = timed(dispatch(4, flag::CLOCK_AGENT, 3, 2, 3), 3500, 500, 900);
    let unfinished = dispatch(6, flag::UNFINISHED | flag::CLOCK_NONE, 1, 1, 4);
    let no_times = dispatch(5, flag::CLOCK_NONE | flag::NO_CALL, 3, 3, 0);
    let strange = flag::NO_REGISTERS | flag::VENDOR | flag::NO_CALL | flag::MOVED;
    records.push(call(1, 7, 10, 1500, 1700).seal());
    records.extend(
        [
            timed(dispatch(1, 0, 1, 1, 1), 1600, 2000, 3000),
            timed(dispatch(2, 0, 1, 1, 1), 1610, 2500, 4500),
            timed(dispatch(3, flag::CLOCK_SCALED, 2, 2, 2), 2900, 3000, 3500),
            with!(agents_clock; observed = 10_000u64),
            timed(no_times, 4000, 0, 0),
            with!(unfinished; submit = 9000u64),
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

/// The records of texts with these IDs.
pub fn texts(texts: &[(u32, &str)]) -> Records {
    let pieces = texts.iter().flat_map(|&(id, text)| pieces(id, text));
    pieces.map(Record::seal).collect()
}

/// Streams with these IDs, types and threads.
pub fn streams(streams: &[(u64, u32, u32)]) -> Records {
    let sealed = |&(id, what, thread): &(u64, u32, u32)| {
        with!(Stream::new(id, 0); what = what, thread = thread, handle = 0x1000 * id).seal()
    };
    streams.iter().map(sealed).collect()
}

/// A copy of 4096 bytes by thread 10, from one agent to another, with its start and end.
pub fn copy(id: u64, direction: u32, agents: (u32, u32), times: (u64, u64)) -> MemoryCopy {
    let copy = with!(MemoryCopy::new(id, 0); direction = direction, source = agents.0, destination = agents.1);
    with!(copy; size = 4096, thread = 10, start = times.0, end = times.1, observed = times.1 + 10)
}

/// A marker of a thread, with its start and end.
pub fn marked(id: u64, what: u32, text: u32, thread: u32, times: (u64, u64)) -> Marker {
    let marker =
        with!(Marker::new(id, 0); what = what, text = text, thread = thread, end_thread = thread);
    with!(marker; start = times.0, end = times.1)
}

/// A name that the program gave to a thread, a stream or an agent.
pub fn name(what: u32, id: u64, text: u32) -> [u8; RECORD_SIZE] {
    with!(Name::new(id, 0); what = what, text = text).seal()
}

pub fn recording(id: u64, time: u64, is_on: bool) -> [u8; RECORD_SIZE] {
    with!(Recording::new(id, 0); time = time, is_on = u32::from(is_on)).seal()
}

/// An empty directory for a test.
pub fn directory(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// A new directory with a trace of these bytes, `a.trace`.
pub fn written(name: &str, trace: &[u8]) -> PathBuf {
    let dir = directory(name);
    fs::write(dir.join("a.trace"), trace).unwrap();
    dir
}

/// The results of a run of devprof.
pub struct Run {
    pub status: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Run {
    pub fn of(output: Output) -> Run {
        Run {
            status: output.status.code().unwrap(),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The text on stdout.
    pub fn text(&self) -> &str {
        str::from_utf8(&self.stdout).unwrap()
    }

    /// The text on stderr and stdout.
    pub fn shown(&self) -> String {
        self.stderr.clone() + self.text()
    }
}

/// devprof with these words as arguments, in a directory.
pub fn command(dir: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_devprof"));
    command.args(arguments.split_whitespace()).current_dir(dir);
    command
}

/// Runs devprof with these words as arguments, in a directory.
pub fn devprof(dir: &Path, arguments: &str) -> Run {
    Run::of(command(dir, arguments).output().unwrap())
}

/// [`devprof`], which must succeed.
pub fn succeed(dir: &Path, arguments: &str) -> Run {
    let run = devprof(dir, arguments);
    assert_eq!(run.status, 0, "{arguments}: {}", run.stderr);
    run
}

/// Checks that exports fail. Each line has the status, the arguments, and a part of the message.
#[track_caller]
pub fn assert_refused(dir: &Path, cases: &str) {
    for case in cases.lines() {
        let parts: Vec<&str> = case.trim().splitn(3, " | ").collect();
        let run = devprof(dir, &format!("export {}", parts[1]));
        assert_eq!(run.status.to_string(), parts[0], "{case}: {}", run.stderr);
        assert!(run.stderr.contains(parts[2]), "{case}: {}", run.stderr);
        assert_eq!(run.text(), "", "{case}");
    }
}

/// The lines of a file of JSON lines.
pub fn json_lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

/// The lines of this type.
pub fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

/// These fields of each row.
pub fn fields<'a>(rows: impl IntoIterator<Item = &'a Value>, fields: &[&str]) -> Value {
    let of = |row: &Value| fields.iter().map(|&field| row[field].clone()).collect();
    rows.into_iter().map(of).collect::<Vec<Value>>().into()
}

/// Rows as text: one line per row, with ` | ` between its values. Fractions have at most nine digits. A text that looks like
/// another value has quotes.
pub fn table(rows: &Value) -> String {
    let is_scalar = |text: &str| {
        let value = serde_json::from_str(text);
        matches!(value, Ok(Value::Null | Value::Bool(_) | Value::Number(_)))
    };
    let text = |value: &Value| match value {
        Value::String(text) if !is_scalar(text) => text.clone(),
        Value::Number(number) if number.is_f64() => {
            ((number.as_f64().unwrap() * 1e9).round() / 1e9).to_string()
        }
        other => other.to_string(),
    };
    let line = |row: &Value| {
        let values: Vec<_> = row.as_array().unwrap().iter().map(text).collect();
        values.join(" | ")
    };
    let lines: Vec<_> = rows.as_array().unwrap().iter().map(line).collect();
    lines.join("\n")
}

/// The text without the white space around its lines.
pub fn trimmed(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

/// Checks fields of rows. The first line of the [`table`] that is expected has the names of the fields.
#[track_caller]
pub fn assert_table<'a>(rows: impl IntoIterator<Item = &'a Value>, expected: &str) {
    let expected = trimmed(expected);
    let header = expected.lines().next().unwrap();
    let names: Vec<&str> = header.split(" | ").collect();
    let found = table(&fields(rows, &names));
    assert_eq!(trimmed(&format!("{header}\n{found}")), expected.trim_end());
}

/// The elements of a JSON array.
pub fn elements(array: &Value) -> &[Value] {
    array.as_array().unwrap()
}

/// The queries in a text, and the [`table`] that each returns: the lines of its table follow the query and begin with =.
/// Lines that begin with -- are comments.
fn queries(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().map(str::trim);
    let mut queries: Vec<(String, String)> = Vec::new();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with("--")) {
        match (line.strip_prefix("= "), queries.last_mut()) {
            (Some(row), Some((_, table))) if table.is_empty() => *table = row.to_owned(),
            (Some(row), Some((_, table))) => *table += &format!("\n{row}"),
            (None, Some((sql, table))) if table.is_empty() => *sql += &format!(" {line}"),
            _ => queries.push((line.to_owned(), String::new())),
        }
    }
    queries
}

/// Queries an SQLite database, which must be valid.
#[track_caller]
pub fn assert_database(path: &Path, text: &str) {
    let db = rusqlite::Connection::open(path).unwrap();
    let validity = "
        SELECT count(*) FROM pragma_foreign_key_check
        = 0
        PRAGMA integrity_check
        = ok
    ";
    for (sql, expected) in queries(validity).into_iter().chain(queries(text)) {
        let mut query = db.prepare(&sql).unwrap();
        let columns = query.column_count();
        let row = |row: &rusqlite::Row| {
            let value = |column| match row.get_ref(column).unwrap() {
                rusqlite::types::ValueRef::Null => Value::Null,
                rusqlite::types::ValueRef::Integer(number) => json!(number),
                text => json!(text.as_str().unwrap()),
            };
            Ok((0..columns).map(value).collect::<Value>())
        };
        let rows = query.query_map([], row).unwrap().map(Result::unwrap);
        assert_eq!(table(&rows.collect()), expected, "{sql}");
    }
}

/// Queries Perfetto's trace processor, which must report no error.
#[track_caller]
pub fn assert_perfetto(trace: &Path, text: &str) {
    let errors =
        "SELECT count(*) FROM stats WHERE value > 0 AND severity IN ('error', 'data_loss')\n= 0\n";
    let queries = queries(&format!("{errors}{text}"));
    let sql: Vec<_> = queries.iter().map(|(sql, _)| sql.as_str()).collect();
    for ((sql, expected), answer) in queries.iter().zip(perfetto_answers(trace, &sql)) {
        assert_eq!(table(&answer), *expected, "{sql}");
    }
}

/// The answers of Perfetto's trace processor.
pub fn perfetto_answers(trace: &Path, queries: &[&str]) -> Vec<Value> {
    let check = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/perfetto-query");
    let text = printed(Command::new(check).arg(trace).args(queries));
    let answers = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let answers: Vec<_> = answers.collect();
    assert_eq!(answers.len(), queries.len(), "{text}");
    answers
}

/// The output of a command, which must succeed.
pub fn printed(command: &mut Command) -> String {
    let run = Run::of(command.output().unwrap());
    assert_eq!(run.status, 0, "{}", run.stderr);
    run.text().to_owned()
}
