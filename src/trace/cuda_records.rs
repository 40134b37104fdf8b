//! Writes the records of CUDA's kernels, copies and fills, and of the kernels' names and queues. A queue is a stream of
//! CUPTI: graphs run on streams of their own.

use super::agents::Agents;
use super::clock;
use super::cuda_launches::{Launch, Launches};
use super::dispatch_clock::{RecordedTime, ReportedTimes};
use super::file::TraceFile;
use super::kernel_index::Kernels;
use super::stream_records::StreamRecords;
use crate::amd::kernels::{Kernel, Registers};
use crate::nvidia::activity::{self, Activity, CopyRun, KernelRun, Run, Side};
use crate::support::diagnostics;
use crate::sys::threads;
use hsa_abi::DispatchTime;
use std::collections::HashMap;
use std::ffi::CString;
use tracefile::format::{self, Count, Dispatch, MemoryCopy, NO_AGENT, Record, direction, flag};

/// The parts of the completer that records need.
pub struct Output<'a> {
    pub file: &'a mut TraceFile,
    pub agents: &'a mut Agents,
    pub kernels: &'a mut Kernels,
    pub streams: &'a mut StreamRecords,
    /// Ticks per second of the system clock.
    pub frequency: u64,
    /// The ids of the next records.
    pub next_queue: &'a mut u32,
    pub next_dispatch: &'a mut u64,
    /// The number of recorded copies.
    pub copies: &'a mut u64,
}

/// What is constant in all runs of a kernel.
#[derive(Clone, PartialEq, Eq, Hash)]
struct KernelKey {
    /// The address of the name, which all runs of a kernel have in common.
    name: usize,
    device: u32,
    registers: u16,
    shared: u32,
    local: u32,
}

#[derive(Default)]
pub struct CudaRecords {
    launches: Launches,
    /// Ids of queues, by context and stream.
    queues: HashMap<(u32, u32), u32>,
    /// Names and ids of kernels.
    kernels: HashMap<KernelKey, (CString, u32)>,
    /// Agents' ids, by the number of the device.
    agents: HashMap<u32, u32>,
    /// How many records of complete kernels and copies had no times. Not reported yet.
    untimed: u64,
    /// How many records CUPTI has dropped, since the last check for missing ones.
    dropped: u64,
}

impl CudaRecords {
    /// Records the activities that CUPTI has delivered. Returns their number.
    pub fn record(&mut self, output: &mut Output<'_>) -> usize {
        let all = activity::take_full();
        // Their calls were pushed before the buffers were filled.
        let lost = self.launches.collect();
        if lost > 0 {
            diagnostics::lost(format_args!(
                "the trace does not know the API calls of {lost} kernels or copies: threads launched faster than calls can be written"
            ));
        }
        if all.is_empty() {
            return 0;
        }
        let mut recorded = 0;
        for full in all {
            let is_complete = full.is_complete();
            activity::read(full, &mut |activity| {
                recorded += 1;
                match activity {
                    Activity::Kernel(kernel) => {
                        self.record_kernel_run(&kernel, is_complete, output)
                    }
                    Activity::Copy(copy) => self.record_copy(&copy, is_complete, output),
                }
            });
        }
        let dropped = activity::take_dropped();
        self.dropped += dropped;
        if dropped > 0 {
            diagnostics::lost(format_args!(
                "CUPTI has dropped {dropped} records of kernels or copies: the trace does not have them"
            ));
            output
                .file
                .add_to_counter(Count::DroppedDispatches, dropped);
        }
        recorded
    }

    /// Adds the calls that were made until now. Returns whether records of calls before `time` may be missing.
    pub fn has_missing(&mut self, time: u64) -> bool {
        self.launches.collect();
        self.launches.has_before(time)
    }

    /// Reports kernels that were launched before `time` by the program, have completed, and have no record or no times.
    /// CUPTI has delivered everything that it had. Returns whether there were any.
    pub fn report_missing(&mut self, time: u64, file: &mut TraceFile) -> bool {
        let missing = self.launches.take_missing(time, threads::thread_id());
        let missing = missing.saturating_sub(std::mem::take(&mut self.dropped));
        if missing > 0 {
            diagnostics::lost(format_args!(
                "CUPTI has delivered no record of {missing} kernels: another library in the process uses CUPTI's activities"
            ));
            file.add_to_counter(Count::DroppedDispatches, missing);
        }
        let untimed = std::mem::take(&mut self.untimed);
        if untimed > 0 {
            diagnostics::lost(format_args!(
                "CUPTI has recorded {untimed} kernels or copies without times: the trace does not know when they ran"
            ));
        }
        missing + untimed > 0
    }

    fn agent(&mut self, device: u32, output: &mut Output<'_>) -> u32 {
        *self.agents.entry(device).or_insert_with(|| {
            let found = output.agents.find_cuda(device, output.file);
            output.agents.get(found).index
        })
    }

    fn queue(&mut self, run: &Run, agent: u32, output: &mut Output<'_>) -> u32 {
        *self
            .queues
            .entry((run.context, run.stream))
            .or_insert_with(|| {
                let id = *output.next_queue;
                *output.next_queue += 1;
                let mut record = format::Queue::new(id.into(), 0);
                record.created = clock::now().into();
                record.agent = agent.into();
                output.file.append(record, Count::DroppedOthers);
                id
            })
    }

    fn kernel(&mut self, run: &KernelRun<'_>, agent: u32, output: &mut Output<'_>) -> u32 {
        let key = KernelKey {
            name: run.name.as_ptr() as usize,
            device: run.run.device,
            registers: run.registers,
            shared: run.static_shared,
            local: run.local,
        };
        // Another name may be at an address later.
        if let Some((name, id)) = self.kernels.get(&key)
            && name.as_c_str() == run.name
        {
            return *id;
        }
        let kernel = Kernel {
            name: run.name.to_string_lossy().into_owned(),
            agent,
            kernarg: 0,
            lds: run.static_shared,
            scratch: run.local,
            registers: Some(registers(run)),
        };
        let id = output.kernels.id(kernel, |id, kernel| {
            let mut record = format::Kernel::new(id.into(), 0);
            record.name = output.file.text(&kernel.name).into();
            record.agent = agent.into();
            record.lds = kernel.lds.into();
            record.scratch = kernel.scratch.into();
            record.vgprs = run.registers.into();
            output.file.append(record, Count::DroppedOthers);
        });
        self.kernels.insert(key, (run.name.into(), id));
        id
    }

    fn record_kernel_run(
        &mut self,
        kernel: &KernelRun<'_>,
        is_complete: bool,
        output: &mut Output<'_>,
    ) {
        let launch = self.launches.find(kernel.run.correlation);
        if launch.is_some_and(|launch| launch.id == 0) {
            return;
        }
        let agent = self.agent(kernel.run.device, output);
        let queue = self.queue(&kernel.run, agent, output);
        let id = self.kernel(kernel, agent, output);
        let times = Times::of(&kernel.run, is_complete, launch.as_ref(), output);
        self.untimed += u64::from(times.are_missing());
        let mut record = Dispatch::new(*output.next_dispatch, times.flags);
        *output.next_dispatch += 1;
        if let Some(launch) = launch {
            output.streams.write_up_to(launch.stream, output.file);
            record.correlation = launch.id.into();
            record.thread = launch.thread.into();
            record.stream = launch.stream.into();
        }
        record.submit = times.submit.into();
        record.start = times.time.start.into();
        record.end = times.time.end.into();
        record.observed = times.observed.into();
        record.agent = agent.into();
        record.queue = queue.into();
        record.kernel = id.into();
        for n in 0..3 {
            record.grid[n] = kernel.grid[n].saturating_mul(kernel.block[n]).into();
            record.workgroup[n] = u16::try_from(kernel.block[n]).unwrap_or(u16::MAX).into();
        }
        record.lds = (kernel.static_shared.saturating_add(kernel.dynamic_shared)).into();
        record.scratch = kernel.local.into();
        record.vgprs = kernel.registers.into();
        output.file.append(record, Count::DroppedDispatches);
    }

    fn record_copy(&mut self, copy: &CopyRun, is_complete: bool, output: &mut Output<'_>) {
        let launch = self
            .launches
            .find(copy.run.correlation)
            .or_else(|| self.launches.find(copy.runtime_correlation));
        if launch.is_some_and(|launch| launch.id == 0) {
            return;
        }
        let times = Times::of(&copy.run, is_complete, launch.as_ref(), output);
        self.untimed += u64::from(times.are_missing());
        let mut side = |side| match side {
            Some(Side::Device(device)) => self.agent(device, output),
            Some(Side::Host | Side::Unknown) | None => NO_AGENT,
        };
        let (source, destination) = (side(copy.source), side(Some(copy.destination)));
        *output.copies += 1;
        let mut record = MemoryCopy::new(*output.copies, times.flags);
        if let Some(launch) = launch {
            output.streams.write_up_to(launch.stream, output.file);
            record.correlation = launch.id.into();
            record.thread = launch.thread.into();
            record.stream = launch.stream.into();
            record.function = output.file.static_text(launch.function).into();
        } else {
            record.function = output.file.static_text("").into();
        }
        record.submit = times.submit.into();
        record.start = times.time.start.into();
        record.end = times.time.end.into();
        record.observed = times.observed.into();
        record.size = copy.bytes.into();
        record.source = source.into();
        record.destination = destination.into();
        record.direction = direction_of(copy).into();
        output.file.append(record, Count::DroppedCopies);
    }
}

fn registers(run: &KernelRun<'_>) -> Registers {
    Registers {
        vgprs: run.registers,
        accum_vgprs: 0,
        sgprs: 0,
    }
}

fn direction_of(copy: &CopyRun) -> u32 {
    use Side::{Device, Host, Unknown};
    match (copy.source, copy.destination) {
        (None, _) => direction::FILL,
        (Some(Host), Host) => direction::HOST_TO_HOST,
        (Some(Host), Device(_)) => direction::HOST_TO_DEVICE,
        (Some(Device(_)), Host) => direction::DEVICE_TO_HOST,
        (Some(Device(_)), Device(_)) => direction::DEVICE_TO_DEVICE,
        (Some(Unknown), _) | (_, Unknown) => direction::UNKNOWN,
    }
}

/// The times of an activity, and the flags of its record.
struct Times {
    submit: u64,
    time: DispatchTime,
    observed: u64,
    flags: u16,
}

impl Times {
    /// `is_complete`: all activities in its buffer are.
    fn of(run: &Run, is_complete: bool, launch: Option<&Launch>, output: &Output<'_>) -> Times {
        let observed = clock::now();
        let has_times = run.start != 0 && run.end != 0;
        let submit = match launch {
            Some(launch) => launch.submit,
            None if has_times => run.start.min(observed),
            None => observed,
        };
        let recorded = match has_times {
            true => select(run, submit, observed, output.frequency),
            false if is_complete => RecordedTime::NONE,
            false => RecordedTime {
                flags: flag::CLOCK_NONE | flag::UNFINISHED,
                ..RecordedTime::NONE
            },
        };
        let no_call = if launch.is_none() { flag::NO_CALL } else { 0 };
        Times {
            submit,
            time: recorded.time,
            observed,
            flags: recorded.flags | no_call,
        }
    }
}

impl Times {
    /// It is complete, and CUPTI does not know when it ran.
    fn are_missing(&self) -> bool {
        self.flags & (flag::CLOCK | flag::UNFINISHED) == flag::CLOCK_NONE
    }
}

/// CUPTI translates the device's times to the system clock.
fn select(run: &Run, submit: u64, observed: u64, frequency: u64) -> RecordedTime {
    let time = DispatchTime {
        start: run.start,
        end: run.end,
    };
    ReportedTimes {
        translated: Some(time),
        raw: time,
        window: submit..=observed,
        frequency,
        agent_frequency: frequency,
    }
    .select()
}
