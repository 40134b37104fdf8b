//! The recorder: the trace file, and the tables to which its records refer: agents, kernels, queues, streams and texts.
//! Sources of records call it with plain data. It knows GPU runtimes by [`TracedRuntimes`].

mod agents;
pub mod clock;
mod file;
mod file_name;
mod kernels;
pub mod streams;
pub mod times;

use crate::gpu::traced::{Agent, AgentKey, Kernel, Registers, TracedRuntimes};
use crate::sys::env::host_name;
use agents::Agents;
use file::TraceFile;
use kernels::Kernels;
use std::io;
use std::path::Path;
use tracefile::format::{self, Count, Dispatch, Header, MemoryCopy, Record, flag};

pub struct Recorder {
    pub file: TraceFile,
    pub runtimes: TracedRuntimes,
    /// Ticks per second of the system clock.
    pub frequency: u64,
    pub agents: Agents,
    kernels: Kernels,
    /// The highest id of a stream whose record was written. Ids count up.
    last_stream: u32,
    /// The ids of the last records.
    last_queue: u32,
    last_dispatch: u64,
    last_copy: u64,
}

impl Recorder {
    /// Creates the trace file.
    pub fn create(path: &Path, header: &Header, runtimes: TracedRuntimes) -> io::Result<Recorder> {
        Ok(Recorder {
            file: TraceFile::create(path, header)?,
            runtimes,
            frequency: header.frequency.get(),
            agents: Agents::default(),
            kernels: Kernels::default(),
            last_stream: 0,
            last_queue: 0,
            last_dispatch: 0,
            last_copy: 0,
        })
    }

    /// Records the process that writes the file.
    pub fn add_process(&mut self) {
        let host = host_name().unwrap_or_default();
        let command: Vec<_> = std::env::args_os().collect();
        let command = command.join(std::ffi::OsStr::new(" "));
        let mut record = format::Process::new(std::process::id().into(), 0);
        record.host = self.file.text(&host.to_string_lossy()).into();
        record.command = self.file.text(&command.to_string_lossy()).into();
        record.parent = std::os::unix::process::parent_id().into();
        self.file.append(record, Count::DroppedOthers);
        self.file.publish();
    }

    /// Records a new agent. Returns its number. `None`: it is not recorded.
    pub fn add_agent(&mut self, key: AgentKey, found: Option<Agent>) -> Option<usize> {
        if let Some(found) = &found {
            let mut record = format::Agent::new(found.index.into(), 0);
            record.frequency = found.frequency.into();
            record.name = self.file.text(&found.target).into();
            if let Some(product) = &found.product {
                record.product = self.file.text(product).into();
            }
            record.node = found.node.into();
            record.number = (found.number + 1).into();
            record.compute_units = found.compute_units.into();
            record.what = if found.is_gpu {
                format::agent::GPU
            } else {
                format::agent::CPU
            }
            .into();
            // After a shutdown and a new initialization, HSA has the same agents.
            if self.agents.is_new(record.seal()) {
                self.file.append(record, Count::DroppedOthers);
            }
        }
        self.agents.add(key, found)
    }

    /// The id of a kernel, which is recorded if it is new. `object`: the address of its descriptor, or 0.
    pub fn add_kernel(&mut self, kernel: &Kernel, object: u64) -> u32 {
        let (id, is_new) = self.kernels.add(kernel);
        if !is_new {
            return id;
        }
        let mut record = format::Kernel::new(id.into(), 0);
        record.object = object.into();
        record.name = self.file.text(&kernel.name).into();
        record.agent = kernel.agent.into();
        record.kernarg = kernel.kernarg.into();
        record.lds = kernel.lds.into();
        record.scratch = kernel.scratch.into();
        let registers = kernel.registers.fields();
        [record.vgprs, record.accum_vgprs, record.sgprs] = registers.map(Into::into);
        record.head.flags = registers_flag(kernel.registers).into();
        if let Some(build_id) = &kernel.build_id {
            record.build_id = self.file.text(build_id).into();
        }
        self.file.append(record, Count::DroppedOthers);
        id
    }

    /// Records a new queue, and returns its id. `agent`: the agent's index. `size`: in packets, 0 if unknown.
    pub fn add_queue(&mut self, agent: u32, size: u32) -> u32 {
        self.last_queue += 1;
        let mut record = format::Queue::new(self.last_queue.into(), 0);
        record.created = clock::now().into();
        record.agent = agent.into();
        record.size = size.into();
        self.file.append(record, Count::DroppedOthers);
        self.last_queue
    }

    /// Writes the records of the streams up to `id`, unless they are written. To be called before a record that refers
    /// to the stream `id` is written.
    pub fn add_streams_up_to(&mut self, id: u32) {
        if id <= self.last_stream {
            return;
        }
        for mut record in streams::take_new() {
            // It was used before HSA's clock was available.
            if record.first_use.get() == 0 {
                record.first_use = self.file.started().into();
            }
            self.last_stream = record.head.id.get() as u32;
            self.file.append(record, Count::DroppedOthers);
        }
    }

    /// Records a dispatch. Adds its id, its stream and its kernel's registers.
    pub fn add_dispatch(&mut self, mut record: Dispatch) {
        self.add_streams_up_to(record.stream.get());
        self.last_dispatch += 1;
        record.head.id = self.last_dispatch.into();
        let registers = self.kernels.registers(record.kernel.get());
        [record.vgprs, record.accum_vgprs, record.sgprs] = registers.fields().map(Into::into);
        record.head.flags = (record.head.flags.get() | registers_flag(registers)).into();
        self.file.append(record, Count::DroppedDispatches);
    }

    /// Records a copy or fill by `function`. Adds its id and its stream.
    pub fn add_copy(&mut self, mut record: MemoryCopy, function: &'static str) {
        self.add_streams_up_to(record.stream.get());
        self.last_copy += 1;
        record.head.id = self.last_copy.into();
        record.function = self.file.static_text(function).into();
        self.file.append(record, Count::DroppedCopies);
    }

    /// Records a call of `function`. Adds its stream.
    pub fn add_call(&mut self, mut record: format::Call, function: &'static str) {
        self.add_streams_up_to(record.stream.get());
        record.name = self.file.static_text(function).into();
        self.file.append(record, Count::DroppedCalls);
    }
}

/// The flag of a record with these registers.
fn registers_flag(registers: Registers) -> u16 {
    match registers {
        Registers::Unknown => flag::NO_REGISTERS,
        Registers::Amd { .. } | Registers::Nvidia { .. } => 0,
    }
}
