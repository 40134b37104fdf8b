//! The records to which others refer, with their names, and the times of records in nanoseconds.

use crate::names::Naming;
use std::collections::HashMap;
use std::rc::Rc;
use tracefile::Tables;
use tracefile::format::{
    Call, Dispatch, Header, MemoryCopy, NO_AGENT, agent, direction, flag, named, stream,
};
pub use tracefile::reader::Item as Record;

const SECOND: u64 = 1_000_000_000;

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
    pub fn new(header: Header, naming: Naming, shift: u64) -> Trace {
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

    /// The build ID of a kernel's code object in hexadecimal, if it is recorded.
    pub fn build_id(&self, kernel: u32) -> Option<&str> {
        self.tables
            .text(self.tables.kernels.get(&kernel)?.build_id.get())
    }

    /// Whether different kernels are shown with one name, because names are short.
    pub fn joins_kernels(&self) -> bool {
        self.naming.joins()
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

    /// How many agents of its type precede an agent: of a GPU, the number that HIP or CUDA gives it, unless
    /// `HIP_VISIBLE_DEVICES` selects some. `None` if it is not recorded.
    pub fn number(&self, agent: u32) -> Option<u32> {
        self.tables.agents.get(&agent)?.number.get().checked_sub(1)
    }

    /// The type and number of an agent, as in rocprofv3 with `--agent-index=type-relative`: `GPU 0`. If the number is not
    /// recorded, its node, as with `--agent-index=absolute`: `Agent 1`.
    pub fn agent(&self, id: u32) -> String {
        match self.number(id) {
            Some(number) if self.is_gpu(id) => format!("GPU {number}"),
            Some(number) => format!("CPU {number}"),
            None => format!("Agent {}", self.node(id)),
        }
    }

    /// [`Trace::agent`] with the name that the program gave it, or else the architecture of a GPU: `GPU 0 gfx942`.
    pub fn agent_name(&self, id: u32, given: Option<&str>) -> String {
        let known = self.tables.agents.get(&id);
        let architecture = known.and_then(|known| self.tables.text(known.name.get()));
        let architecture = architecture.unwrap_or("(unknown)");
        let name = given.or(self.is_gpu(id).then_some(architecture));
        let name = name.map_or(String::new(), |name| format!(" {name}"));
        self.agent(id) + &name
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
