//! JSON lines: one object per record, in the order of the file. `type` is the record's type. IDs are those of the file,
//! times are in nanoseconds of HSA's system clock, sizes in bytes or work-items. Fields that a record does not have are
//! omitted.
//!
//! The first object has the type `trace`: the process ID, and the same point in time on HSA's system clock (`started`)
//! and on the realtime clock (`started_unix`).

use super::source::{Record, Trace, clock, has};
use super::{Writer, flush};
use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, Write};
use tracefile::format::{Dispatch, flag};

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line<'a> {
    Trace {
        pid: u32,
        started: u64,
        started_unix: u64,
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
        node: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        product: Option<&'a str>,
        compute_units: u32,
        /// Ticks per second.
        frequency: u64,
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
        object: u64,
        kernarg: u32,
        lds: u32,
        scratch: u32,
        vgprs: u16,
        accum_vgprs: u16,
        sgprs: u16,
    },
    Call {
        /// The correlation ID of its dispatches.
        id: u64,
        name: &'a str,
        thread: u32,
        start: u64,
        end: u64,
        /// `hipError_t`.
        status: i32,
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
        thread: u32,
        submit: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        start: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        end: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        observed: Option<u64>,
        /// `system`, `scaled`, `agent` (only the duration was measured; the end is `observed`) or `none`.
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
        registers: Option<Registers>,
    },
}

#[derive(Serialize)]
struct Registers {
    vgprs: u16,
    accum_vgprs: u16,
    sgprs: u16,
}

impl Registers {
    fn of(dispatch: &Dispatch) -> Option<Registers> {
        (!has(dispatch, flag::NO_REGISTERS)).then(|| Registers {
            vgprs: dispatch.vgprs.get(),
            accum_vgprs: dispatch.accum_vgprs.get(),
            sgprs: dispatch.sgprs.get(),
        })
    }
}

pub struct Json {
    out: BufWriter<File>,
    has_header: bool,
}

impl Json {
    pub fn new(out: BufWriter<File>) -> Json {
        Json {
            out,
            has_header: false,
        }
    }

    fn line(&mut self, line: &Line) -> anyhow::Result<()> {
        serde_json::to_writer(&mut self.out, line)?;
        Ok(self.out.write_all(b"\n")?)
    }

    /// Writes the first object, once.
    fn begin(&mut self, trace: &Trace) -> anyhow::Result<()> {
        if std::mem::replace(&mut self.has_header, true) {
            return Ok(());
        }
        self.line(&Line::Trace {
            pid: trace.header.pid.get(),
            started: trace.ns(trace.header.started.get()),
            started_unix: trace.header.started_unix.get(),
        })
    }
}

impl Writer for Json {
    fn record(&mut self, record: &Record, trace: &mut Trace) -> anyhow::Result<()> {
        self.begin(trace)?;
        match record {
            Record::Process(process) => self.line(&Line::Process {
                pid: process.head.id.get(),
                parent: process.parent.get(),
                host: trace.tables.text(process.host.get()),
                command: trace.tables.text(process.command.get()),
            }),
            Record::Agent(agent) => self.line(&Line::Agent {
                id: agent.head.id.get(),
                node: agent.node.get(),
                name: trace.tables.text(agent.name.get()),
                product: trace.tables.text(agent.product.get()),
                compute_units: agent.compute_units.get(),
                frequency: agent.frequency.get(),
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
                    object: kernel.object.get(),
                    kernarg: kernel.kernarg.get(),
                    lds: kernel.lds.get(),
                    scratch: kernel.scratch.get(),
                    vgprs: kernel.vgprs.get(),
                    accum_vgprs: kernel.accum_vgprs.get(),
                    sgprs: kernel.sgprs.get(),
                })
            }
            Record::Call(call) => self.line(&Line::Call {
                id: call.head.id.get(),
                name: trace.function(call),
                thread: call.thread.get(),
                start: trace.ns(call.start.get()),
                end: trace.ns(call.end.get()),
                status: call.status.get(),
            }),
            Record::Dispatch(dispatch) => {
                let times = trace.times(dispatch).ok();
                let non_zero = |value: u64| (value != 0).then_some(value);
                let name = trace.kernel(dispatch.kernel.get());
                self.line(&Line::Dispatch {
                    id: dispatch.head.id.get(),
                    correlation: non_zero(dispatch.correlation.get()),
                    kernel: dispatch.kernel.get(),
                    kernel_name: &name,
                    agent: dispatch.agent.get(),
                    queue: dispatch.queue.get(),
                    thread: dispatch.thread.get(),
                    submit: trace.ns(dispatch.submit.get()),
                    start: times.map(|(start, _)| start),
                    end: times.map(|(_, end)| end),
                    observed: non_zero(dispatch.observed.get()).map(|ticks| trace.ns(ticks)),
                    clock: clock(dispatch),
                    unfinished: has(dispatch, flag::UNFINISHED),
                    vendor: has(dispatch, flag::VENDOR),
                    moved: has(dispatch, flag::MOVED),
                    grid: dispatch.grid.map(|size| size.get()),
                    workgroup: dispatch.workgroup.map(|size| size.get()),
                    lds: dispatch.lds.get(),
                    scratch: dispatch.scratch.get(),
                    registers: Registers::of(dispatch),
                })
            }
        }
    }

    fn finish(mut self: Box<Self>, trace: &mut Trace) -> anyhow::Result<()> {
        self.begin(trace)?;
        flush(self.out)
    }
}
