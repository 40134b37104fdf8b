//! Reads a trace file for the other commands: each valid record in the order of the file, with its names, and with its
//! times in nanoseconds of one clock. Damage is reported with its offset.
//!
//! Other records refer to a record by its ID only after it, except to API calls ([`tracefile::format`]). Records are not
//! sorted by time: each is written when something ends or when its end is observed. So a range or call follows the
//! records that it contains, and records of different queues, threads and types are mixed.

pub mod inputs;
mod selection;
mod trace;

pub use selection::Selection;
pub use trace::{Record, Trace, Untimed, clock, direction, has, nanoseconds};

use crate::console::Console;
use crate::exit::Outcome;
use crate::names::Naming;
use crate::progress;
use crate::readable::{plural, several};
use anyhow::{Context, bail};
use indicatif::ProgressBar;
use selection::Filter;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use tracefile::Tables;
use tracefile::format::{Count, Header, NO_AGENT, RECORD_SIZE};
use tracefile::reader::{Damage, Reader};

/// How many problems of one kind are reported one by one. Further ones are only counted.
const MAX_REPORTED: u64 = 10;

/// A set of IDs, as a bit map: most of them are consecutive.
#[derive(Default)]
struct Ids(HashMap<u64, u64>);

impl Ids {
    fn insert(&mut self, id: u64) {
        *self.0.entry(id / 64).or_default() |= 1 << (id % 64);
    }

    /// The number of IDs that are not in `other`, and the lowest of them.
    fn missing_from(&self, other: &Ids) -> (u64, BTreeSet<u64>) {
        let (mut count, mut lowest) = (0, BTreeSet::new());
        for (&word, &bits) in &self.0 {
            let mut missing = bits & !other.0.get(&word).copied().unwrap_or_default();
            count += u64::from(missing.count_ones());
            while missing != 0 {
                lowest.insert(word * 64 + u64::from(missing.trailing_zeros()));
                missing &= missing - 1;
                if lowest.len() as u64 > MAX_REPORTED {
                    lowest.pop_last();
                }
            }
        }
        (count, lowest)
    }
}

/// Reports the problems of a trace file.
struct Problems<'a, 'c> {
    file: &'a Path,
    bar: ProgressBar,
    console: &'a mut Console<'c>,
    is_damaged: bool,
    /// For each message, without its digits: how often it occurred, and the last offset.
    seen: BTreeMap<String, (u64, u64)>,
}

impl Problems<'_, '_> {
    fn report(&mut self, what: &str) {
        let message = format!("{}: {what}", self.file.display());
        self.bar.suspend(|| self.console.warn(message));
    }

    fn damage(&mut self, damage: &Damage) {
        self.is_damaged = true;
        let chars = damage.what.chars();
        let kind = chars.filter(|char| !char.is_ascii_digit()).collect();
        let (count, last) = self.seen.entry(kind).or_default();
        *count += 1;
        *last = damage.offset;
        if *count <= MAX_REPORTED {
            self.report(&format!("byte {}: {}", damage.offset, damage.what));
        }
    }

    /// Reports the number of problems that were not reported one by one.
    fn report_rest(&mut self) {
        for (kind, (count, last)) in std::mem::take(&mut self.seen) {
            if let Some(more) = count.checked_sub(MAX_REPORTED).filter(|&more| more != 0) {
                self.report(&format!(
                    "{more} more of this kind, the last at byte {last}: {kind}"
                ));
            }
        }
    }
}

/// The types of records that a [`Summary`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    Dispatches,
    Calls,
    Copies,
    Markers,
}

/// The selected contents of a trace file.
#[derive(Debug, Default)]
pub struct Summary {
    /// Parts of the file are damaged.
    pub is_damaged: bool,
    /// Dispatches that were submitted, but are not in the file. 0 if the counter is damaged.
    pub dropped: u64,
    pub dispatches: u64,
    pub calls: u64,
    pub copies: u64,
    pub markers: u64,
    /// Dispatches without a duration.
    pub untimed: BTreeMap<Untimed, u64>,
    /// Copies without a duration.
    pub untimed_copies: BTreeMap<Untimed, u64>,
}

impl Summary {
    /// The outcome of a command that used the file.
    pub fn outcome(&self) -> Outcome {
        Outcome::of(!self.is_damaged)
    }

    /// Adds the contents of another trace.
    pub fn add(&mut self, other: &Summary) {
        self.is_damaged |= other.is_damaged;
        self.dropped += other.dropped;
        self.dispatches += other.dispatches;
        self.calls += other.calls;
        self.copies += other.copies;
        self.markers += other.markers;
        for (sum, part) in [
            (&mut self.untimed, &other.untimed),
            (&mut self.untimed_copies, &other.untimed_copies),
        ] {
            for (&why, count) in part {
                *sum.entry(why).or_default() += count;
            }
        }
    }

    /// The number of records of each of these types: `8 dispatches, 4 API calls`. Types without records are left out,
    /// unless there is nothing else.
    pub fn text(&self, is_included: impl Fn(Records) -> bool) -> String {
        let all = [
            (Records::Dispatches, self.dispatches, "dispatch"),
            (Records::Calls, self.calls, "API call"),
            (Records::Copies, self.copies, "copy"),
            (Records::Markers, self.markers, "marker"),
        ];
        let is_included = |&(records, ..): &(Records, u64, &str)| is_included(records);
        let mut counts: Vec<_> = all.into_iter().filter(is_included).collect();
        if counts.iter().any(|&(_, count, _)| count != 0) {
            counts.retain(|&(_, count, _)| count != 0);
        }
        let texts = counts.into_iter();
        let texts = texts.map(|(_, count, noun)| plural(count as usize, noun));
        texts.collect::<Vec<_>>().join(", ")
    }
}

/// The problems of a trace to report.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Checks {
    /// Damage, dropped records, and dispatches and copies without times.
    Records,
    /// Also dispatches and copies without an API call.
    All,
}

/// Opens a trace with times.
fn open(path: &Path) -> anyhow::Result<Reader<BufReader<File>>> {
    let reader = Reader::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    if reader.header().frequency.get() == 0 {
        bail!(
            "cannot read {}: the clock frequency in the header (byte 24) is 0",
            path.display()
        );
    }
    Ok(reader)
}

/// The valid records, up to an error.
fn valid_records(reader: &mut Reader<BufReader<File>>) -> impl Iterator<Item = Record> {
    std::iter::from_fn(|| reader.next_item().ok().flatten()).flatten()
}

/// The header of a trace and the name of its host, if it is recorded. Does not report damage.
pub fn header_and_host(path: &Path) -> anyhow::Result<(Header, Option<String>)> {
    let mut reader = open(path)?;
    let header = *reader.header();
    let mut tables = Tables::default();
    for record in valid_records(&mut reader) {
        // Only texts are needed, and the process, which is one of the first records.
        if !matches!(record, Record::Text(_) | Record::Process(_)) || tables.take(&record).is_err()
        {
            continue;
        }
        if let Record::Process(process) = record {
            let host = tables.text(process.host.get());
            return Ok((header, host.map(str::to_owned)));
        }
    }
    Ok((header, None))
}

/// The records to take from a trace, and how to show them.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub selection: &'a Selection,
    pub naming: Naming,
    /// Nanoseconds to add to all times.
    pub shift: u64,
    /// The time to which the selection's windows are relative. `None`: the start of the trace.
    pub origin: Option<u64>,
}

impl<'a> Request<'a> {
    pub fn new(selection: &'a Selection, naming: Naming) -> Request<'a> {
        Request {
            selection,
            naming,
            shift: 0,
            origin: None,
        }
    }

    /// The trace without records, and the filter of its records.
    fn begin(self, header: &Header) -> (Trace, Filter<'a>) {
        let trace = Trace::new(*header, self.naming, self.shift);
        let origin = self.origin.unwrap_or(trace.started());
        (trace, Filter::new(self.selection, origin))
    }
}

/// The start of the trace, or of an earlier API call, marker, dispatch or copy. Does not report damage.
pub fn first_event(path: &Path, request: Request) -> anyhow::Result<u64> {
    let mut first = u64::MAX;
    let trace = each_record(path, request, |record, trace| {
        let start = match record {
            Record::Call(call) => trace.ns(call.start.get()),
            Record::Marker(marker) => trace.ns(marker.start.get()),
            Record::Dispatch(dispatch) => trace.times_or_submission(dispatch).0,
            Record::Copy(copy) => trace.copy_times_or_submission(copy).0,
            _ => return,
        };
        first = first.min(start);
    })?;
    Ok(first.min(trace.started()))
}

/// Calls `take` with each valid record, in the order of the file. Does not report damage.
pub fn each_record(
    path: &Path,
    request: Request,
    mut take: impl FnMut(&Record, &mut Trace),
) -> anyhow::Result<Trace> {
    let mut reader = open(path)?;
    let (mut trace, mut filter) = request.begin(reader.header());
    for record in valid_records(&mut reader) {
        if trace.tables.take(&record).is_ok() && filter.has(&record, &mut trace) {
            take(&record, &mut trace);
        }
    }
    Ok(trace)
}

/// Calls `take` with each valid record that is selected, in the order of the file, and reports problems of the file.
pub fn read(
    path: &Path,
    request: Request,
    checks: Checks,
    console: &mut Console,
    mut take: impl FnMut(&Record, &mut Trace) -> anyhow::Result<()>,
) -> anyhow::Result<(Trace, Summary)> {
    let mut reader = open(path)?;
    let (mut trace, mut filter) = request.begin(reader.header());
    let mut problems = Problems {
        file: path,
        bar: progress::bar(
            fs::metadata(path).map_or(0, |data| data.len()),
            "{wide_bar} {bytes} of {total_bytes}, {eta} left",
        ),
        console,
        is_damaged: false,
        seen: BTreeMap::new(),
    };
    let mut summary = Summary::default();
    let mut missing = Missing::default();
    let (mut called, mut referred) = (Ids::default(), Ids::default());
    // Dispatches and copies without an API call.
    let (mut no_call, mut copies_no_call, mut unknown) = (0u64, 0u64, 0u64);
    let mut next_tick = 0;
    loop {
        let at = reader.offset();
        if at >= next_tick {
            problems.bar.set_position(at);
            next_tick = at + (8 << 20);
        }
        let record = match reader.next_item() {
            Ok(Some(Ok(record))) => record,
            Ok(Some(Err(damage))) => {
                problems.damage(&damage);
                continue;
            }
            Ok(None) => break,
            Err(error) => {
                let what = format!("cannot read the rest of the file: {error}");
                problems.damage(&Damage { offset: at, what });
                break;
            }
        };
        if let Err(what) = trace.tables.take(&record) {
            let offset = reader.offset() - RECORD_SIZE as u64;
            problems.damage(&Damage { offset, what });
            continue;
        }
        missing.check(&record, &trace.tables);
        if let Record::Call(call) = &record {
            called.insert(call.head.id.get());
        }
        if !filter.has(&record, &mut trace) {
            continue;
        }
        match &record {
            Record::Call(_) => summary.calls += 1,
            Record::Dispatch(dispatch) => {
                summary.dispatches += 1;
                match dispatch.correlation.get() {
                    0 => no_call += 1,
                    id => referred.insert(id),
                }
                if let Err(why) = trace.times(dispatch) {
                    *summary.untimed.entry(why).or_default() += 1;
                }
            }
            Record::Copy(copy) => {
                summary.copies += 1;
                match copy.correlation.get() {
                    0 => copies_no_call += 1,
                    id => referred.insert(id),
                }
                if let Err(why) = trace.copy_times(copy) {
                    *summary.untimed_copies.entry(why).or_default() += 1;
                }
            }
            Record::Marker(_) => summary.markers += 1,
            Record::Text(_) => continue,
            Record::Unknown(_) => {
                unknown += 1;
                continue;
            }
            _ => {}
        }
        take(&record, &mut trace)?;
    }
    problems.bar.finish_and_clear();
    problems.report_rest();
    check_header_counters(&reader, &mut problems);
    missing.report(&mut problems);
    if unknown != 0 {
        problems.report(&format!(
            "{} of a type that this version of devprof does not know: use a later version",
            plural(unknown as usize, "record")
        ));
    }
    for (noun, untimed) in [
        ("dispatch", &summary.untimed),
        ("copy", &summary.untimed_copies),
    ] {
        for (why, count) in untimed {
            let what = match (why, noun) {
                (Untimed::Unfinished, "dispatch") => {
                    "without an observed end: launched or still running when the program exited or the queue was destroyed"
                }
                (Untimed::Unfinished, _) => {
                    "without an observed end: submitted or still running when the program exited"
                }
                (Untimed::NoClock, _) => "without times",
                (Untimed::Backwards, _) => "with an end before the start",
            };
            problems.report(&format!("{} {what}", plural(*count as usize, noun)));
        }
    }
    if checks == Checks::All {
        for (count, noun) in [(no_call, "dispatch"), (copies_no_call, "copy")] {
            if count != 0 {
                problems.report(&format!(
                    "{} without a recorded API call",
                    plural(count as usize, noun)
                ));
            }
        }
        let (count, lowest) = referred.missing_from(&called);
        for id in lowest.iter().take(MAX_REPORTED as usize) {
            problems.report(&format!(
                "no record of the API call with correlation ID {id}"
            ));
        }
        if count > MAX_REPORTED {
            problems.report(&format!(
                "no record of {} more API calls",
                count - MAX_REPORTED
            ));
        }
    }
    summary.dropped = reader.count(Count::DroppedDispatches).unwrap_or(0);
    summary.is_damaged = problems.is_damaged;
    Ok((trace, summary))
}

/// IDs in records for which the file has no valid record, and the number of the records that have them.
#[derive(Default)]
struct Missing(BTreeMap<(&'static str, &'static str, u32), u64>);

impl Missing {
    /// Counts a record for each ID in it that is not known. Text 0 is no text, stream 0 no stream, and kernel 0 an unknown
    /// one.
    fn check(&mut self, record: &Record, tables: &Tables) {
        let is_text = |id| id == 0 || tables.text(id).is_some();
        let is_stream = |id| id == 0 || tables.streams.contains_key(&id);
        let is_agent = |id| tables.agents.contains_key(&id);
        let mut check = |noun, what, id, is_known: bool| {
            if !is_known {
                *self.0.entry((noun, what, id)).or_default() += 1;
            }
        };
        match record {
            Record::Call(call) => {
                const NOUN: &str = "API call";
                let (name, stream) = (call.name.get(), call.stream.get());
                check(NOUN, "function name", name, is_text(name));
                check(NOUN, "stream", stream, is_stream(stream));
            }
            Record::Dispatch(dispatch) => {
                const NOUN: &str = "dispatch";
                let (kernel, agent) = (dispatch.kernel.get(), dispatch.agent.get());
                let (queue, stream) = (dispatch.queue.get(), dispatch.stream.get());
                let known = tables.kernels.get(&kernel);
                let has_name = known.is_some_and(|known| tables.text(known.name.get()).is_some());
                check(NOUN, "kernel", kernel, kernel == 0 || has_name);
                check(NOUN, "agent", agent, is_agent(agent));
                check(NOUN, "queue", queue, tables.queues.contains_key(&queue));
                check(NOUN, "stream", stream, is_stream(stream));
            }
            Record::Copy(copy) => {
                const NOUN: &str = "copy";
                for agent in [copy.source.get(), copy.destination.get()] {
                    check(NOUN, "agent", agent, agent == NO_AGENT || is_agent(agent));
                }
                let (function, stream) = (copy.function.get(), copy.stream.get());
                check(NOUN, "function name", function, is_text(function));
                check(NOUN, "stream", stream, is_stream(stream));
            }
            Record::Marker(marker) => {
                let text = marker.text.get();
                check("marker", "message", text, is_text(text));
            }
            Record::Name(name) => {
                let text = name.text.get();
                check("name", "string", text, is_text(text));
            }
            _ => {}
        }
    }

    fn report(&self, problems: &mut Problems) {
        for ((noun, what, id), count) in self.0.iter().take(MAX_REPORTED as usize) {
            problems.is_damaged = true;
            let records = plural(*count as usize, noun);
            problems.report(&match *what {
                "kernel" | "agent" | "queue" | "stream" => {
                    format!("{records} of {what} {id}, which has no valid record")
                }
                text => format!("{records} whose {text} (text {id}) has no valid record"),
            });
        }
        if let Some(more) = self.0.len().checked_sub(MAX_REPORTED as usize + 1) {
            problems.report(&format!(
                "records of {} more kernels, agents, queues, streams or texts without a valid record",
                more + 1
            ));
        }
    }
}

/// Reports records that are not in the file according to the counters in its header, and traces that were not closed.
fn check_header_counters(reader: &Reader<impl std::io::Read>, problems: &mut Problems) {
    const DROPPED: &str = "dropped for lack of space";
    const UNKNOWN: &str = "not recorded because devprof does not know their type";
    for (count, noun, what) in [
        (Count::DroppedDispatches, "dispatch", DROPPED),
        (Count::DroppedCalls, "API call", DROPPED),
        (Count::DroppedCopies, "copy", DROPPED),
        (Count::DroppedMarkers, "marker", DROPPED),
        (
            Count::DroppedOthers,
            "name, kernel, queue, stream or agent record",
            DROPPED,
        ),
        (Count::UnknownPackets, "packet", UNKNOWN),
    ] {
        match reader.count(count) {
            Some(0) => {}
            Some(n) => problems.report(&format!("{} {what}", plural(n as usize, noun))),
            None => problems.damage(&Damage {
                offset: count.offset() as u64,
                what: format!(
                    "damaged counter: it is not known how many {} were {what}",
                    several(noun)
                ),
            }),
        }
    }
    match reader.count(Count::Closed) {
        Some(1) => {}
        Some(_) => problems.report("not closed: the program is still running or was killed"),
        None => problems.damage(&Damage {
            offset: Count::Closed.offset() as u64,
            what: "damaged counter: it is not known whether the trace was closed".into(),
        }),
    }
}
