//! A trace file as the exporters and the statistics want it: each whole record in the file's order, its names at hand
//! and its times in nanoseconds of one clock. What is not whole is said, with its place.

use crate::PARTLY;
use crate::names::Naming;
use crate::readable::{plural, several};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::IsTerminal;
use std::path::Path;
use std::rc::Rc;
use tracefile::Tables;
use tracefile::format::{
    Agent, Call, Count, Dispatch, Header, Kernel, Process, Queue, RECORD_SIZE, flag,
};
use tracefile::reader::{Damage, Item, Reader};

const SECOND: u64 = 1_000_000_000;
/// How many lines about the same thing are printed before the rest is only counted.
const LINES: u64 = 10;

/// A whole record that stands for something in the program.
#[derive(Clone, Copy, Debug)]
pub enum Record {
    Process(Process),
    Agent(Agent),
    Queue(Queue),
    Kernel(Kernel),
    Call(Call),
    Dispatch(Dispatch),
}

/// Why a dispatch has no duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Untimed {
    /// It was not seen to end.
    Unfinished,
    /// It has no times, or they are of a clock whose frequency is not known.
    NoClock,
    /// It ends before it starts.
    Backwards,
}

/// What the records read so far have named.
pub struct Trace {
    pub header: Header,
    pub tables: Tables,
    naming: Naming,
    names: HashMap<u32, Rc<str>>,
}

impl Trace {
    /// Nanoseconds of HSA's system clock.
    pub fn ns(&self, ticks: u64) -> u64 {
        scaled(ticks, self.header.frequency.get())
    }

    /// The name of a dispatch's kernel. One that is not known has one all the same, for formats that must name it.
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

    /// The name that the code object has.
    pub fn kernel_symbol(&self, id: u32) -> Option<&str> {
        self.tables.text(self.tables.kernels.get(&id)?.name.get())
    }

    /// The name of an API function.
    pub fn function(&self, call: &Call) -> &str {
        self.tables
            .text(call.name.get())
            .unwrap_or("(unknown function)")
    }

    /// `HSA_AGENT_INFO_NODE`, or, of an agent that the file does not describe, its id.
    pub fn node(&self, agent: u32) -> u32 {
        match self.tables.agents.get(&agent) {
            Some(agent) => agent.node.get(),
            None => agent,
        }
    }

    /// How long a dispatch ran, in nanoseconds.
    pub fn duration(&self, dispatch: &Dispatch) -> Result<u64, Untimed> {
        let flags = dispatch.head.flags.get();
        if flags & flag::UNFINISHED != 0 {
            return Err(Untimed::Unfinished);
        }
        let frequency = match flags & flag::CLOCK {
            flag::CLOCK_NONE => 0,
            flag::CLOCK_AGENT => {
                let agent = self.tables.agents.get(&dispatch.agent.get());
                agent.map_or(0, |agent| agent.frequency.get())
            }
            _ => self.header.frequency.get(),
        };
        if frequency == 0 {
            return Err(Untimed::NoClock);
        }
        match dispatch.end.get().checked_sub(dispatch.start.get()) {
            Some(ticks) => Ok(scaled(ticks, frequency)),
            None => Err(Untimed::Backwards),
        }
    }

    /// Start and end of a dispatch, nanoseconds of the system clock. One whose times are of its agent's clock ends
    /// when it was seen to be complete.
    pub fn times(&self, dispatch: &Dispatch) -> Result<(u64, u64), Untimed> {
        let duration = self.duration(dispatch)?;
        if dispatch.head.flags.get() & flag::CLOCK == flag::CLOCK_AGENT {
            let end = self.ns(dispatch.observed.get());
            return Ok((end.saturating_sub(duration), end));
        }
        Ok((self.ns(dispatch.start.get()), self.ns(dispatch.end.get())))
    }

    /// The same for formats that must place each dispatch: one without times stands where it was submitted.
    pub fn placed(&self, dispatch: &Dispatch) -> (u64, u64) {
        self.times(dispatch).unwrap_or_else(|_| {
            let submit = self.ns(dispatch.submit.get());
            (submit, submit)
        })
    }
}

/// The clock's name in the output.
pub fn clock(dispatch: &Dispatch) -> &'static str {
    match dispatch.head.flags.get() & flag::CLOCK {
        flag::CLOCK_SYSTEM => "system",
        flag::CLOCK_SCALED => "scaled",
        flag::CLOCK_AGENT => "agent",
        _ => "none",
    }
}

/// Whether the flag is set.
pub fn has(dispatch: &Dispatch, flag: u16) -> bool {
    dispatch.head.flags.get() & flag != 0
}

fn scaled(ticks: u64, frequency: u64) -> u64 {
    if frequency == SECOND {
        return ticks;
    }
    let ns = u128::from(ticks) * u128::from(SECOND) / u128::from(frequency.max(1));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

/// A set of ids that mostly follow each other: a bit each.
#[derive(Default)]
struct Ids(HashMap<u64, u64>);

impl Ids {
    fn insert(&mut self, id: u64) {
        *self.0.entry(id / 64).or_default() |= 1 << (id % 64);
    }

    /// How many of these are not in `other`, and the lowest of them.
    fn lacking_in(&self, other: &Ids) -> (u64, BTreeSet<u64>) {
        let (mut count, mut lowest) = (0, BTreeSet::new());
        for (&word, &bits) in &self.0 {
            let mut lacking = bits & !other.0.get(&word).copied().unwrap_or_default();
            count += u64::from(lacking.count_ones());
            while lacking != 0 {
                lowest.insert(word * 64 + u64::from(lacking.trailing_zeros()));
                lacking &= lacking - 1;
                if lowest.len() as u64 > LINES {
                    lowest.pop_last();
                }
            }
        }
        (count, lowest)
    }
}

/// Says what is wrong with a file.
struct Problems<'a> {
    file: &'a Path,
    bar: ProgressBar,
    say: &'a mut dyn FnMut(&str),
    damaged: bool,
    /// By what is said, without its numbers: how often, and where last.
    seen: BTreeMap<String, (u64, u64)>,
}

impl Problems<'_> {
    fn say(&mut self, what: &str) {
        let line = format!("devprof: {}: {what}", self.file.display());
        self.bar.suspend(|| (self.say)(&line));
    }

    fn damage(&mut self, damage: &Damage) {
        self.damaged = true;
        let kind = damage
            .what
            .chars()
            .filter(|char| !char.is_ascii_digit())
            .collect();
        let (count, last) = self.seen.entry(kind).or_default();
        *count += 1;
        *last = damage.offset;
        if *count <= LINES {
            self.say(&format!("byte {}: {}", damage.offset, damage.what));
        }
    }

    fn rest_of_damages(&mut self) {
        for (kind, (count, last)) in std::mem::take(&mut self.seen) {
            if let Some(more) = count.checked_sub(LINES).filter(|&more| more != 0) {
                self.say(&format!("{more} more of these up to byte {last}: {kind}"));
            }
        }
    }
}

/// What was in a file.
#[derive(Debug, Default)]
pub struct Summary {
    /// Something of the file is not whole.
    pub damaged: bool,
    pub dispatches: u64,
    pub calls: u64,
    /// Dispatches without a duration.
    pub untimed: BTreeMap<Untimed, u64>,
}

impl Summary {
    /// The exit status of what came to its end.
    pub fn status(&self) -> u8 {
        if self.damaged { PARTLY } else { 0 }
    }
}

/// What a reading tells beside the records.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Tell {
    /// Damage, dropped records, and dispatches without times.
    Problems,
    /// And dispatches without an API call.
    All,
}

fn failed(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("cannot read {}: {error}", path.display())
}

/// Hands each whole dispatch to `take`, and says nothing of what is not whole: the reading that follows does.
pub fn each_dispatch(path: &Path, mut take: impl FnMut(&Dispatch)) -> Result<(), String> {
    let mut reader = Reader::open(path).map_err(|error| failed(path, &error))?;
    while let Ok(Some(item)) = reader.next_item() {
        if let Ok(Item::Dispatch(dispatch)) = item {
            take(&dispatch);
        }
    }
    Ok(())
}

/// Hands each record to `take`, in the file's order, and says what is wrong with the file, line by line.
pub fn read(
    path: &Path,
    naming: Naming,
    tell: Tell,
    say: &mut dyn FnMut(&str),
    mut take: impl FnMut(&Record, &mut Trace) -> Result<(), String>,
) -> Result<(Trace, Summary), String> {
    let mut reader = Reader::open(path).map_err(|error| failed(path, &error))?;
    let mut trace = Trace {
        header: *reader.header(),
        tables: Tables::default(),
        naming,
        names: HashMap::new(),
    };
    if trace.header.frequency.get() == 0 {
        return Err(failed(
            path,
            &"the header (byte 24) says that the clock has 0 ticks a second",
        ));
    }
    let mut problems = Problems {
        file: path,
        bar: progress(path),
        say,
        damaged: false,
        seen: BTreeMap::new(),
    };
    let mut summary = Summary::default();
    let mut missing = Missing::default();
    let (mut called, mut dispatched) = (Ids::default(), Ids::default());
    let (mut no_call, mut unknown) = (0u64, 0u64);
    let mut next_tick = 0;
    loop {
        let at = reader.offset();
        if at >= next_tick {
            problems.bar.set_position(at);
            next_tick = at + (8 << 20);
        }
        let item = match reader.next_item() {
            Ok(Some(Ok(item))) => item,
            Ok(Some(Err(damage))) => {
                problems.damage(&damage);
                continue;
            }
            Ok(None) => break,
            Err(error) => {
                let what = format!("cannot be read from here on: {error}");
                problems.damage(&Damage { offset: at, what });
                break;
            }
        };
        if let Err(what) = trace.tables.take(&item) {
            let offset = reader.offset() - RECORD_SIZE as u64;
            problems.damage(&Damage { offset, what });
            continue;
        }
        let record = match item {
            Item::Process(process) => Record::Process(process),
            Item::Agent(agent) => Record::Agent(agent),
            Item::Queue(queue) => Record::Queue(queue),
            Item::Kernel(kernel) => Record::Kernel(kernel),
            Item::Call(call) => {
                summary.calls += 1;
                called.insert(call.head.id.get());
                Record::Call(call)
            }
            Item::Dispatch(dispatch) => {
                summary.dispatches += 1;
                match dispatch.correlation.get() {
                    0 => no_call += 1,
                    id => dispatched.insert(id),
                }
                if let Err(why) = trace.times(&dispatch) {
                    *summary.untimed.entry(why).or_default() += 1;
                }
                missing.look(&dispatch, &trace.tables);
                Record::Dispatch(dispatch)
            }
            Item::Text(_) => continue,
            Item::Unknown(_) => {
                unknown += 1;
                continue;
            }
        };
        take(&record, &mut trace)?;
    }
    problems.bar.finish_and_clear();
    problems.rest_of_damages();
    told_by_the_header(&reader, &mut problems);
    missing.say(&mut problems);
    if unknown != 0 {
        problems.say(&format!(
            "{} of a kind that this devprof does not know: a later one reads it",
            plural(unknown as usize, "record")
        ));
    }
    for (why, count) in &summary.untimed {
        let what = match why {
            Untimed::Unfinished => {
                "never seen to end: launched, or still running, as the program ended, or its queue went"
            }
            Untimed::NoClock => "without times",
            Untimed::Backwards => "with an end before the start",
        };
        problems.say(&format!("{} {what}", plural(*count as usize, "dispatch")));
    }
    if tell == Tell::All {
        if no_call != 0 {
            problems.say(&format!(
                "{} came from no API call that was watched",
                plural(no_call as usize, "dispatch")
            ));
        }
        let (count, lowest) = dispatched.lacking_in(&called);
        for id in lowest.iter().take(LINES as usize) {
            problems.say(&format!(
                "there is no record of the API call with correlation id {id}"
            ));
        }
        if count > LINES {
            problems.say(&format!("nor of {} more", count - LINES));
        }
    }
    summary.damaged = problems.damaged;
    Ok((trace, summary))
}

/// What dispatches name and the file does not have.
#[derive(Default)]
struct Missing(BTreeMap<(&'static str, u32), u64>);

impl Missing {
    fn look(&mut self, dispatch: &Dispatch, tables: &Tables) {
        let (kernel, agent, queue) = (
            dispatch.kernel.get(),
            dispatch.agent.get(),
            dispatch.queue.get(),
        );
        let named = tables
            .kernels
            .get(&kernel)
            .is_some_and(|kernel| tables.text(kernel.name.get()).is_some());
        for (what, id, there) in [
            ("kernel", kernel, kernel == 0 || named),
            ("agent", agent, tables.agents.contains_key(&agent)),
            ("queue", queue, tables.queues.contains_key(&queue)),
        ] {
            if !there {
                *self.0.entry((what, id)).or_default() += 1;
            }
        }
    }

    fn say(&self, problems: &mut Problems) {
        for ((what, id), count) in self.0.iter().take(LINES as usize) {
            problems.damaged = true;
            problems.say(&format!(
                "{} of {what} {id}, of which there is no whole record",
                plural(*count as usize, "dispatch")
            ));
        }
        if let Some(more) = self.0.len().checked_sub(LINES as usize + 1) {
            problems.say(&format!("so do others with {} more ids", more + 1));
        }
    }
}

/// What the header's counters say about records that are not in the file.
fn told_by_the_header(reader: &Reader<impl std::io::Read>, problems: &mut Problems) {
    const NO_ROOM: &str = "dropped: there was no room";
    const UNKNOWN: &str = "of a type that devprof did not know, and not recorded";
    for (count, noun, what) in [
        (Count::DroppedDispatches, "dispatch", NO_ROOM),
        (Count::DroppedCalls, "API call", NO_ROOM),
        (
            Count::DroppedOthers,
            "name, kernel, queue or agent record",
            NO_ROOM,
        ),
        (Count::UnknownPackets, "packet", UNKNOWN),
    ] {
        match reader.count(count) {
            Some(0) => {}
            Some(n) => problems.say(&format!("{} {what}", plural(n as usize, noun))),
            None => problems.damage(&Damage {
                offset: count.offset() as u64,
                what: format!(
                    "a counter is damaged: it is not known how many {} were {what}",
                    several(noun)
                ),
            }),
        }
    }
    match reader.count(Count::Closed) {
        Some(1) => {}
        Some(_) => {
            problems.say("its writer has not ended in order: the program still runs, or was killed")
        }
        None => problems.damage(&Damage {
            offset: Count::Closed.offset() as u64,
            what: "a counter is damaged: it is not known whether the writer ended in order".into(),
        }),
    }
}

/// A bar on stderr, if that is a terminal.
fn progress(path: &Path) -> ProgressBar {
    let length = File::open(path)
        .and_then(|file| file.metadata())
        .map_or(0, |data| data.len());
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let bar = ProgressBar::with_draw_target(Some(length), target);
    // The template is a constant: a wrong one shows in the first run, and costs only the bar's form.
    if let Ok(style) =
        ProgressStyle::with_template("{wide_bar} {bytes} of {total_bytes}, {eta} left")
    {
        bar.set_style(style);
    }
    bar
}
