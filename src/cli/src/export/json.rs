//! JSON lines: one object per record, in the order of the file. `type` is the record's type. IDs are as in the file,
//! times are in nanoseconds of HSA's system clock, sizes in bytes or work-items. Fields that a record does not have are
//! omitted.
//!
//! The first object has the type `trace`: the format and its version, the process ID, and the same point in time on
//! HSA's system clock (`started`) and on the realtime clock (`started_unix`).
//!
//! An export of several traces has such an object for each trace, with its path (`file`). The objects of its records
//! follow. All objects have the number of their trace (`trace`), because IDs are unique only within a trace. Times,
//! including `started`, are on the common time line ([`crate::trace_reader::inputs`]).

use super::writer::{Writer, flush};
use crate::trace_reader::inputs::Input;
use crate::trace_reader::{Record, Request, Trace, clock, direction, has};
use schemars::JsonSchema;
use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, Write};
use tracefile::format::{NO_AGENT, agent, flag, marker, named, stream};

/// The version of the format. Incremented with every incompatible change.
const VERSION: u32 = 1;

#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line<'a> {
    /// The first object of a trace.
    Trace {
        #[schemars(extend("const" = "devprof trace"))]
        format: &'static str,
        #[schemars(extend("const" = VERSION))]
        version: u32,
        pid: u32,
        started: u64,
        started_unix: u64,
        /// If there are several traces.
        #[serde(skip_serializing_if = "Option::is_none")]
        file: Option<&'a str>,
    },
    Process {
        pid: u64,
        parent: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        host: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        command: Option<&'a str>,
    },
    Agent {
        id: u64,
        /// How many agents of its type precede it: of a GPU, HIP's or CUDA's number.
        #[serde(skip_serializing_if = "Option::is_none")]
        number: Option<u32>,
        node: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        product: Option<&'a str>,
        compute_units: u32,
        /// Ticks per second.
        frequency: u64,
        #[schemars(extend("enum" = ["gpu", "cpu"]))]
        what: &'static str,
    },
    Queue {
        id: u64,
        agent: u32,
        packets: u32,
        created: u64,
    },
    Kernel {
        id: u64,
        agent: u32,
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        symbol: Option<&'a str>,
        /// The build ID of its code object in hexadecimal.
        #[serde(skip_serializing_if = "Option::is_none")]
        build_id: Option<&'a str>,
        object: u64,
        kernarg: u32,
        lds: u32,
        scratch: u32,
        vgprs: u16,
        accum_vgprs: u16,
        sgprs: u16,
        /// A kernel with which HIP copies or fills memory.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        blit: bool,
    },
    Call {
        /// The correlation ID of its dispatches and copies.
        id: u64,
        name: &'a str,
        thread: u32,
        start: u64,
        end: u64,
        /// `hipError_t`.
        status: i32,
        #[serde(skip_serializing_if = "Option::is_none")]
        stream: Option<u32>,
    },
    Dispatch {
        id: u64,
        /// The ID of the API call that launched it.
        #[serde(skip_serializing_if = "Option::is_none")]
        correlation: Option<u64>,
        kernel: u32,
        kernel_name: &'a str,
        agent: u32,
        queue: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        stream: Option<u32>,
        thread: u32,
        submit: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        start: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        end: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        observed: Option<u64>,
        /// `agent`: only the duration was measured; the end is `observed`.
        #[schemars(extend("enum" = ["system", "scaled", "agent", "none"]))]
        clock: &'static str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        unfinished: bool,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        vendor: bool,
        /// Start and end were shifted by the same amount, so that they are between `submit` and `observed`.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        moved: bool,
        grid: [u32; 3],
        workgroup: [u16; 3],
        lds: u32,
        scratch: u32,
        #[serde(flatten)]
        #[serde(skip_serializing_if = "Option::is_none")]
        registers: Option<Registers>,
    },
    /// A copy or fill by a function of HSA or CUDA.
    Copy {
        id: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        correlation: Option<u64>,
        function: &'a str,
        #[schemars(extend("enum" = ["host_to_device", "device_to_host", "device_to_device", "host_to_host", "fill", "unknown"]))]
        direction: &'static str,
        size: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        source: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        destination: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        stream: Option<u32>,
        /// The bit of the SDMA engine that the program chose.
        #[serde(skip_serializing_if = "Option::is_none")]
        engine: Option<u32>,
        thread: u32,
        submit: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        start: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        end: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        observed: Option<u64>,
        #[schemars(extend("enum" = ["system", "scaled", "agent", "none"]))]
        clock: &'static str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        unfinished: bool,
        /// As for a dispatch.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        moved: bool,
    },
    /// A mark or range of the program (roctx, NVTX).
    Marker {
        id: u64,
        /// A `range` belongs to a thread.
        #[schemars(extend("enum" = ["mark", "range", "process_range"]))]
        what: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<&'a str>,
        /// The name of its domain (NVTX), unless that is the default domain.
        #[serde(skip_serializing_if = "Option::is_none")]
        domain: Option<&'a str>,
        thread: u32,
        end_thread: u32,
        start: u64,
        end: u64,
        depth: u32,
        /// The value that `roctxRangeStartA` or `nvtxRangeStart` returned, for a `process_range`.
        range: u64,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        unfinished: bool,
    },
    Stream {
        id: u64,
        /// `per_thread` has a thread.
        #[schemars(extend("enum" = ["created", "null", "per_thread"]))]
        what: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        thread: Option<u32>,
        handle: u64,
        first_use: u64,
    },
    /// A name that the program gave to a thread, a stream or an agent.
    Name {
        #[schemars(extend("enum" = ["thread", "stream", "agent", "unknown"]))]
        what: &'static str,
        id: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<&'a str>,
    },
    /// The recording started or stopped.
    Recording { time: u64, is_on: bool },
}

/// The number or ID, unless it is 0.
fn non_zero<T: Default + PartialEq>(number: T) -> Option<T> {
    (number != T::default()).then_some(number)
}

#[derive(Serialize, JsonSchema)]
struct Registers {
    vgprs: u16,
    accum_vgprs: u16,
    sgprs: u16,
}

/// One line of the file: one object per record of the trace. New fields may be added without a new version.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "devprof export, .jsonl")]
pub struct Object<'a> {
    #[serde(flatten)]
    line: &'a Line<'a>,
    /// The number of the trace, if the export has several. IDs are unique within a trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<u32>,
}

pub struct Json {
    out: BufWriter<File>,
    has_header: bool,
    /// The number and path of the trace, if there are several.
    member: Option<(u32, String)>,
}

impl Json {
    pub fn new(out: BufWriter<File>) -> Json {
        Json {
            out,
            has_header: false,
            member: None,
        }
    }

    fn line(&mut self, line: &Line) -> anyhow::Result<()> {
        let trace = self.member.as_ref().map(|(number, _)| *number);
        serde_json::to_writer(&mut self.out, &Object { line, trace })?;
        Ok(self.out.write_all(b"\n")?)
    }

    /// Writes the first object of the trace, once.
    fn header(&mut self, trace: &Trace) -> anyhow::Result<()> {
        if std::mem::replace(&mut self.has_header, true) {
            return Ok(());
        }
        let file = self.member.as_ref().map(|(_, file)| file.clone());
        self.line(&Line::Trace {
            format: "devprof trace",
            version: VERSION,
            pid: trace.header.pid.get(),
            started: trace.started(),
            started_unix: trace.header.started_unix.get(),
            file: file.as_deref(),
        })
    }
}

impl Writer for Json {
    fn begin(&mut self, input: &Input, _: Request) -> anyhow::Result<()> {
        self.has_header = false;
        let file = || input.path.display().to_string();
        self.member = input.member.as_ref().map(|member| (member.number, file()));
        Ok(())
    }

    fn record(&mut self, record: &Record, trace: &mut Trace) -> anyhow::Result<()> {
        self.header(trace)?;
        match record {
            Record::Process(process) => self.line(&Line::Process {
                pid: process.head.id.get(),
                parent: process.parent.get(),
                host: trace.tables.text(process.host.get()),
                command: trace.tables.text(process.command.get()),
            }),
            Record::Agent(agent) => self.line(&Line::Agent {
                id: agent.head.id.get(),
                number: trace.number(agent.head.id.get() as u32),
                node: agent.node.get(),
                name: trace.tables.text(agent.name.get()),
                product: trace.tables.text(agent.product.get()),
                compute_units: agent.compute_units.get(),
                frequency: agent.frequency.get(),
                what: match agent.what.get() {
                    agent::CPU => "cpu",
                    _ => "gpu",
                },
            }),
            Record::Queue(queue) => self.line(&Line::Queue {
                id: queue.head.id.get(),
                agent: queue.agent.get(),
                packets: queue.size.get(),
                created: trace.ns(queue.created.get()),
            }),
            Record::Kernel(kernel) => {
                let id = kernel.head.id.get();
                let name = trace.kernel(id as u32);
                self.line(&Line::Kernel {
                    id,
                    agent: kernel.agent.get(),
                    name: &name,
                    symbol: trace.kernel_symbol(id as u32),
                    build_id: trace.build_id(id as u32),
                    object: kernel.object.get(),
                    kernarg: kernel.kernarg.get(),
                    lds: kernel.lds.get(),
                    scratch: kernel.scratch.get(),
                    vgprs: kernel.vgprs.get(),
                    accum_vgprs: kernel.accum_vgprs.get(),
                    sgprs: kernel.sgprs.get(),
                    blit: trace.is_blit(id as u32),
                })
            }
            Record::Call(call) => self.line(&Line::Call {
                id: call.head.id.get(),
                name: trace.function(call),
                thread: call.thread.get(),
                start: trace.ns(call.start.get()),
                end: trace.ns(call.end.get()),
                status: call.status.get(),
                stream: non_zero(call.stream.get()),
            }),
            Record::Dispatch(dispatch) => {
                let times = trace.times(dispatch).ok();
                let name = trace.kernel(dispatch.kernel.get());
                self.line(&Line::Dispatch {
                    id: dispatch.head.id.get(),
                    correlation: non_zero(dispatch.correlation.get()),
                    kernel: dispatch.kernel.get(),
                    kernel_name: &name,
                    agent: dispatch.agent.get(),
                    queue: dispatch.queue.get(),
                    stream: non_zero(dispatch.stream.get()),
                    thread: dispatch.thread.get(),
                    submit: trace.ns(dispatch.submit.get()),
                    start: times.map(|(start, _)| start),
                    end: times.map(|(_, end)| end),
                    observed: non_zero(dispatch.observed.get()).map(|ticks| trace.ns(ticks)),
                    clock: clock(dispatch.head.flags.get()),
                    unfinished: has(dispatch, flag::UNFINISHED),
                    vendor: has(dispatch, flag::VENDOR),
                    moved: has(dispatch, flag::MOVED),
                    grid: dispatch.grid.map(|size| size.get()),
                    workgroup: dispatch.workgroup.map(|size| size.get()),
                    lds: dispatch.lds.get(),
                    scratch: dispatch.scratch.get(),
                    registers: (!has(dispatch, flag::NO_REGISTERS)).then(|| Registers {
                        vgprs: dispatch.vgprs.get(),
                        accum_vgprs: dispatch.accum_vgprs.get(),
                        sgprs: dispatch.sgprs.get(),
                    }),
                })
            }
            Record::Copy(copy) => {
                let times = trace.copy_times(copy).ok();
                let known_agent = |id: u32| (id != NO_AGENT).then_some(id);
                self.line(&Line::Copy {
                    id: copy.head.id.get(),
                    correlation: non_zero(copy.correlation.get()),
                    function: trace.copy_function(copy),
                    direction: direction(copy),
                    size: copy.size.get(),
                    source: known_agent(copy.source.get()),
                    destination: known_agent(copy.destination.get()),
                    stream: non_zero(copy.stream.get()),
                    engine: non_zero(copy.engine.get()),
                    thread: copy.thread.get(),
                    submit: trace.ns(copy.submit.get()),
                    start: times.map(|(start, _)| start),
                    end: times.map(|(_, end)| end),
                    observed: non_zero(copy.observed.get()).map(|ticks| trace.ns(ticks)),
                    clock: clock(copy.head.flags.get()),
                    unfinished: copy.head.flags.get() & flag::UNFINISHED != 0,
                    moved: copy.head.flags.get() & flag::MOVED != 0,
                })
            }
            Record::Marker(marker) => self.line(&Line::Marker {
                id: marker.head.id.get(),
                what: match marker.what.get() {
                    marker::MARK => "mark",
                    marker::RANGE => "range",
                    _ => "process_range",
                },
                text: trace.tables.text(marker.text.get()),
                domain: non_zero(marker.domain.get()).and_then(|id| trace.tables.text(id)),
                thread: marker.thread.get(),
                end_thread: marker.end_thread.get(),
                start: trace.ns(marker.start.get()),
                end: trace.ns(marker.end.get()),
                depth: marker.depth.get(),
                range: marker.range.get(),
                unfinished: marker.head.flags.get() & flag::UNFINISHED != 0,
            }),
            Record::Stream(stream) => self.line(&Line::Stream {
                id: stream.head.id.get(),
                what: match stream.what.get() {
                    stream::NULL => "null",
                    stream::PER_THREAD => "per_thread",
                    _ => "created",
                },
                thread: non_zero(stream.thread.get()),
                handle: stream.handle.get(),
                first_use: trace.ns(stream.first_use.get()),
            }),
            Record::Name(name) => self.line(&Line::Name {
                what: match name.what.get() {
                    named::THREAD => "thread",
                    named::STREAM => "stream",
                    named::AGENT => "agent",
                    _ => "unknown",
                },
                id: name.head.id.get(),
                text: trace.tables.text(name.text.get()),
            }),
            Record::Recording(recording) => self.line(&Line::Recording {
                time: trace.ns(recording.time.get()),
                is_on: recording.is_on.get() != 0,
            }),
            // Texts are in the records that refer to them.
            Record::Text(_) | Record::Unknown(_) => Ok(()),
        }
    }

    fn end(&mut self, trace: &mut Trace) -> anyhow::Result<()> {
        self.header(trace)
    }

    fn finish(self: Box<Self>) -> anyhow::Result<()> {
        flush(self.out)
    }
}
