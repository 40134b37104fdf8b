//! Reads a trace file for the other commands: each valid record in the order of the file, with its names, and with its
//! times in nanoseconds of one clock. Damage is reported with its offset.
//!
//! Other records refer to a record by its ID only after it, except to API calls ([`tracefile::format`]). Records are not
//! sorted by time: each is written when something ends or when its end is observed. So a range or call follows the
//! records that it contains, and records of different queues, threads and types are mixed.

use crate::console::Console;
use crate::exit::Outcome;
use crate::names::Naming;
use crate::progress;
use crate::readable::{plural, several};
use anyhow::{Context, bail};
use indicatif::ProgressBar;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::rc::Rc;
use tracefile::Tables;
use tracefile::format::{
    Call, Count, Dispatch, Header, MemoryCopy, NO_AGENT, RECORD_SIZE, agent, direction, flag,
    named, stream,
};
pub use tracefile::reader::Item as Record;
use tracefile::reader::{Damage, Reader};

const SECOND: u64 = 1_000_000_000;
/// How many problems of one kind are reported one by one. Further ones are only counted.
const MAX_REPORTED: u64 = 10;

/// Why a dispatch or copy has no duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Untimed {
    /// Its end was not observed.
    Unfinished,
    /// It has no times, or times of a clock whose frequency is not known.
    NoClock,
    /// It ends before it starts.
    Backwards,
}

/// The header, and the texts, agents, queues and kernels that have been read, to which other records refer.
pub struct Trace {
    pub header: Header,
    pub tables: Tables,
    naming: Naming,
    names: HashMap<u32, Rc<str>>,
    /// Nanoseconds between the system clock and the clock that several traces share.
    shift: u64,
}

impl Trace {
    fn new(header: Header, naming: Naming, shift: u64) -> Trace {
        Trace {
            header,
            tables: Tables::default(),
            naming,
            names: HashMap::new(),
            shift,
        }
    }

    /// Nanoseconds of HSA's system clock, or of the clock that several traces share.
    pub fn ns(&self, ticks: u64) -> u64 {
        nanoseconds(ticks, self.header.frequency.get()).saturating_add(self.shift)
    }

    /// When the trace started.
    pub fn started(&self) -> u64 {
        self.ns(self.header.started.get())
    }

    /// The name of a kernel, or a placeholder if it is not known.
    pub fn kernel(&mut self, id: u32) -> Rc<str> {
        if let Some(name) = self.names.get(&id) {
            return name.clone();
        }
        let Some(name) = self.kernel_symbol(id) else {
            return match id {
                0 => "(unknown kernel)".into(),
                id => format!("(kernel {id})").into(),
            };
        };
        let name: Rc<str> = self.naming.shown(name).into();
        self.names.insert(id, name.clone());
        name
    }

    /// The symbol of a kernel in its code object.
    pub fn kernel_symbol(&self, id: u32) -> Option<&str> {
        self.tables.text(self.tables.kernels.get(&id)?.name.get())
    }

    /// The name of an API function.
    pub fn function(&self, call: &Call) -> &str {
        self.function_name(call.name.get())
    }

    /// The name of HSA's function that a copy called.
    pub fn copy_function(&self, copy: &MemoryCopy) -> &str {
        self.function_name(copy.function.get())
    }

    fn function_name(&self, text: u32) -> &str {
        self.tables.text(text).unwrap_or("(unknown function)")
    }

    /// The node (`HSA_AGENT_INFO_NODE`) of an agent, or the agent's ID if it has no record.
    pub fn node(&self, agent: u32) -> u32 {
        match self.tables.agents.get(&agent) {
            Some(agent) => agent.node.get(),
            None => agent,
        }
    }

    /// Whether an ID belongs to a GPU. An agent without a record is one, unless its ID is [`NO_AGENT`].
    pub fn is_gpu(&self, id: u32) -> bool {
        let known = self.tables.agents.get(&id);
        id != NO_AGENT && known.is_none_or(|known| known.what.get() != agent::CPU)
    }

    /// Whether the kernel is one with which HIP copies or fills memory (rocclr/device/blitcl.cpp in CLR). HIP's other
    /// kernels, such as `__amd_rocclr_initHeap`, do neither.
    pub fn is_blit(&self, kernel: u32) -> bool {
        let symbol = self.kernel_symbol(kernel);
        let is_blit = |symbol: &str| {
            let own = symbol.strip_prefix("__amd_rocclr_");
            own.is_some_and(|own| own.starts_with("copy") || own.starts_with("fill"))
        };
        symbol.is_some_and(is_blit)
    }

    /// The name that the program gave to a thread, a stream or an agent ([`tracefile::format::named`]), if its record
    /// has been read.
    pub fn given_name(&self, what: u32, id: u64) -> Option<&str> {
        self.tables
            .text(self.tables.names.get(&(what, id))?.text.get())
    }

    /// The ID of a stream as in rocprofv3: 0 for the NULL stream, and if the stream is not known.
    pub fn stream_id(&self, id: u32) -> u32 {
        match self.tables.streams.get(&id) {
            Some(known) if known.what.get() == stream::NULL => 0,
            _ => id,
        }
    }

    /// The name that the program gave to a stream, if its record has been read, or else its default name.
    pub fn stream_name(&self, id: u32) -> String {
        let given = self.given_name(named::STREAM, id.into());
        given.map_or_else(|| self.default_stream_name(id), str::to_owned)
    }

    /// The name of a stream that the program gave no name.
    pub fn default_stream_name(&self, id: u32) -> String {
        match self.tables.streams.get(&id) {
            Some(known) if known.what.get() == stream::NULL => "NULL stream".into(),
            Some(known) if known.what.get() == stream::PER_THREAD => {
                format!("Stream {id} of thread {}", known.thread)
            }
            _ => format!("Stream {id}"),
        }
    }

    /// The duration of a dispatch in nanoseconds.
    pub fn duration(&self, dispatch: &Dispatch) -> Result<u64, Untimed> {
        let flags = dispatch.head.flags.get();
        let frequency = if flags & flag::CLOCK == flag::CLOCK_AGENT {
            let agent = self.tables.agents.get(&dispatch.agent.get());
            agent.map_or(0, |agent| agent.frequency.get())
        } else {
            self.header.frequency.get()
        };
        duration(flags, frequency, dispatch.start.get(), dispatch.end.get())
    }

    /// Start and end of a dispatch, in nanoseconds of the system clock. If its times are of the agent's clock, the end
    /// is the time at which its completion was observed.
    pub fn times(&self, dispatch: &Dispatch) -> Result<(u64, u64), Untimed> {
        let duration = self.duration(dispatch)?;
        if dispatch.head.flags.get() & flag::CLOCK == flag::CLOCK_AGENT {
            let end = self.ns(dispatch.observed.get());
            return Ok((end.saturating_sub(duration), end));
        }
        Ok((self.ns(dispatch.start.get()), self.ns(dispatch.end.get())))
    }

    /// Start and end of a copy, in nanoseconds of the system clock.
    pub fn copy_times(&self, copy: &MemoryCopy) -> Result<(u64, u64), Untimed> {
        let flags = copy.head.flags.get();
        if flags & (flag::CLOCK | flag::UNFINISHED) == flag::CLOCK_AGENT {
            return Err(Untimed::NoClock);
        }
        let (start, end) = (copy.start.get(), copy.end.get());
        duration(flags, self.header.frequency.get(), start, end)?;
        Ok((self.ns(start), self.ns(end)))
    }

    /// Start and end of a dispatch. If it has no times, both are the time of its submission.
    pub fn times_or_submission(&self, dispatch: &Dispatch) -> (u64, u64) {
        let submit = self.ns(dispatch.submit.get());
        self.times(dispatch).unwrap_or((submit, submit))
    }

    /// Start and end of a copy. If it has no times, both are the time of its submission.
    pub fn copy_times_or_submission(&self, copy: &MemoryCopy) -> (u64, u64) {
        let submit = self.ns(copy.submit.get());
        self.copy_times(copy).unwrap_or((submit, submit))
    }
}

/// The duration in nanoseconds of a dispatch or a copy with these flags, in ticks of a clock.
fn duration(flags: u16, frequency: u64, start: u64, end: u64) -> Result<u64, Untimed> {
    if flags & flag::UNFINISHED != 0 {
        return Err(Untimed::Unfinished);
    }
    if flags & flag::CLOCK == flag::CLOCK_NONE || frequency == 0 {
        return Err(Untimed::NoClock);
    }
    let ticks = end.checked_sub(start).ok_or(Untimed::Backwards)?;
    Ok(nanoseconds(ticks, frequency))
}

/// The name of the clock of a dispatch or a copy with these flags.
pub fn clock(flags: u16) -> &'static str {
    match flags & flag::CLOCK {
        flag::CLOCK_SYSTEM => "system",
        flag::CLOCK_SCALED => "scaled",
        flag::CLOCK_AGENT => "agent",
        _ => "none",
    }
}

/// The direction of a copy.
pub fn direction(copy: &MemoryCopy) -> &'static str {
    match copy.direction.get() {
        direction::HOST_TO_HOST => "host_to_host",
        direction::HOST_TO_DEVICE => "host_to_device",
        direction::DEVICE_TO_HOST => "device_to_host",
        direction::DEVICE_TO_DEVICE => "device_to_device",
        direction::FILL => "fill",
        _ => "unknown",
    }
}

/// Whether the flag of a dispatch is set.
pub fn has(dispatch: &Dispatch, flag: u16) -> bool {
    dispatch.head.flags.get() & flag != 0
}

/// Ticks of a clock in nanoseconds.
pub fn nanoseconds(ticks: u64, frequency: u64) -> u64 {
    if frequency == SECOND {
        return ticks;
    }
    let ns = u128::from(ticks) * u128::from(SECOND) / u128::from(frequency.max(1));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

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

/// The contents of a trace file.
#[derive(Debug, Default)]
pub struct Summary {
    /// Parts of the file are damaged.
    pub is_damaged: bool,
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

fn open(path: &Path) -> anyhow::Result<Reader<BufReader<File>>> {
    Reader::open(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Opens a trace with times.
fn open_clocked(path: &Path) -> anyhow::Result<Reader<BufReader<File>>> {
    let reader = open(path)?;
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
    let mut reader = open_clocked(path)?;
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

/// The start of the trace, or of an earlier API call, marker, dispatch or copy, with `shift` added as in
/// [`read`]. Does not report damage.
pub fn first_event(path: &Path, shift: u64) -> anyhow::Result<u64> {
    let mut reader = open_clocked(path)?;
    let mut trace = Trace::new(*reader.header(), Naming::default(), shift);
    let mut first = trace.started();
    for record in valid_records(&mut reader) {
        let start = match &record {
            Record::Call(call) => trace.ns(call.start.get()),
            Record::Marker(marker) => trace.ns(marker.start.get()),
            Record::Dispatch(dispatch) => trace.times_or_submission(dispatch).0,
            Record::Copy(copy) => trace.copy_times_or_submission(copy).0,
            // Times of agents' clocks need the clocks' frequencies.
            Record::Agent(_) => {
                let _ = trace.tables.take(&record);
                continue;
            }
            _ => continue,
        };
        first = first.min(start);
    }
    Ok(first)
}

/// Calls `take` with each valid record, in the order of the file. Does not report damage.
pub fn each_record(path: &Path, mut take: impl FnMut(&Record)) -> anyhow::Result<()> {
    valid_records(&mut open(path)?).for_each(|record| take(&record));
    Ok(())
}

/// Calls `take` with each valid record, in the order of the file, and reports problems of the file. Adds `shift`
/// nanoseconds to all times.
pub fn read(
    path: &Path,
    shift: u64,
    naming: Naming,
    checks: Checks,
    console: &mut Console,
    mut take: impl FnMut(&Record, &mut Trace) -> anyhow::Result<()>,
) -> anyhow::Result<(Trace, Summary)> {
    let mut reader = open_clocked(path)?;
    let mut trace = Trace::new(*reader.header(), naming, shift);
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
        match &record {
            Record::Call(call) => {
                summary.calls += 1;
                called.insert(call.head.id.get());
            }
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
