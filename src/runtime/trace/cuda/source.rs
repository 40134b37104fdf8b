//! Writes the records of CUDA's kernels, copies and fills, and of the kernels' names and queues. A queue is a stream of
//! CUPTI: graphs run on streams of their own.

use super::delivery::{self, Cupti};
use super::launches::{Launch, Launches};
use super::modules::{self, Ran, Validity};
use crate::gpu::traced::{AgentKey, Kernel, Registers};
use crate::nvidia::activity::{self, Activity, CopyRun, KernelRun, Run, Side};
use crate::support::diagnostics;
use crate::sys::threads;
use crate::trace::devices;
use crate::trace::recorder::times::{Interval, RecordedTime, ReportedTimes};
use crate::trace::recorder::{Recorder, clock};
use crate::trace::session::{Delivery, Progress, Runtime, Source};
use std::collections::HashMap;
use std::ffi::CString;
use tracefile::format::{Count, Dispatch, MemoryCopy, NO_AGENT, Record, direction, flag};

/// Sets the fields that the records of dispatches and of copies have: the launch, and the times.
macro_rules! set_origin {
    ($record:ident, $launch:ident, $times:ident) => {
        if let Some(launch) = $launch {
            $record.correlation = launch.id.into();
            $record.thread = launch.thread.into();
            $record.stream = launch.stream.into();
        }
        $record.submit = $times.submit.into();
        $record.start = $times.time.start.into();
        $record.end = $times.time.end.into();
        $record.observed = $times.observed.into();
    };
}

/// The constants of all runs of a kernel.
#[derive(Clone, PartialEq, Eq, Hash)]
struct KernelKey {
    /// The address of the name, which all runs of a kernel have in common.
    name: usize,
    device: u32,
    context: u32,
    registers: u16,
    shared: u32,
    local: u32,
}

/// A kernel that was recorded.
struct KnownKernel {
    name: CString,
    id: u32,
    /// For which runs the id is valid: another module may have a kernel with the same constants.
    validity: Validity,
}

#[derive(Default)]
pub struct Activities {
    launches: Launches,
    /// Ids of queues, by context and stream.
    queues: HashMap<(u32, u32), u32>,
    kernels: HashMap<KernelKey, KnownKernel>,
    /// How many records of complete kernels and copies had no times. Not reported yet.
    untimed: u64,
    /// How many records CUPTI has dropped, since the last check for missing ones.
    dropped: u64,
}

impl Source for Activities {
    /// Records the activities that CUPTI has delivered.
    fn poll(&mut self, to: &mut Recorder) -> Progress {
        let all = activity::take_full();
        // Their calls were pushed before the buffers were filled.
        let lost = self.launches.collect();
        if lost > 0 {
            diagnostics::lost(format_args!(
                "the trace does not know the API calls of {lost} kernels or copies: threads launched faster than calls can be written"
            ));
        }
        let mut progress = Progress::default();
        if all.is_empty() {
            return progress;
        }
        for full in all {
            let is_complete = full.is_complete;
            activity::read(full, &mut |activity| {
                progress.recorded += 1;
                match activity {
                    Activity::Kernel(kernel) => self.record_kernel_run(&kernel, is_complete, to),
                    Activity::Copy(copy) => self.record_copy(&copy, is_complete, to),
                }
            });
        }
        let dropped = activity::take_dropped();
        self.dropped += dropped;
        if dropped > 0 {
            diagnostics::lost(format_args!(
                "CUPTI has dropped {dropped} records of kernels or copies: the trace does not have them"
            ));
            to.file.add_to_counter(Count::DroppedDispatches, dropped);
        }
        progress
    }

    fn end(&mut self, to: &mut Recorder) {
        if delivery::was_idle() {
            self.report_missing(u64::MAX, to);
        }
    }

    fn runtime(&self) -> Runtime {
        if delivery::is_traced() {
            Runtime::Usable
        } else {
            Runtime::Stopped
        }
    }

    fn has_work(&self) -> bool {
        activity::has_full()
    }

    fn starting(&mut self) {
        delivery::set_enabled(true);
    }

    fn switched(&mut self, on: bool) {
        delivery::set_enabled(on);
    }

    fn has_missing(&mut self, time: u64) -> bool {
        self.launches.collect();
        self.launches.has_before(time)
    }

    /// Kernels that were launched by the program, have completed, and have no record or no times.
    fn report_missing(&mut self, time: u64, to: &mut Recorder) -> bool {
        let missing = self.launches.take_missing(time, threads::thread_id());
        let missing = missing.saturating_sub(std::mem::take(&mut self.dropped));
        if missing > 0 {
            diagnostics::lost(format_args!(
                "CUPTI has delivered no record of {missing} kernels: another library in the process uses CUPTI's activities"
            ));
            to.file.add_to_counter(Count::DroppedDispatches, missing);
        }
        let untimed = std::mem::take(&mut self.untimed);
        if untimed > 0 {
            diagnostics::lost(format_args!(
                "CUPTI has recorded {untimed} kernels or copies without times: the trace does not know when they ran"
            ));
        }
        missing + untimed > 0
    }

    fn delivery(&self) -> Option<&'static dyn Delivery> {
        Some(&Cupti)
    }
}

impl Activities {
    fn queue(&mut self, run: &Run, agent: u32, to: &mut Recorder) -> u32 {
        let queue = self.queues.entry((run.context, run.stream));
        *queue.or_insert_with(|| to.add_queue(agent, 0))
    }

    fn kernel(&mut self, run: &KernelRun<'_>, times: &Times, agent: u32, to: &mut Recorder) -> u32 {
        let key = KernelKey {
            name: run.name.as_ptr() as usize,
            device: run.run.device,
            context: run.run.context,
            registers: run.registers,
            shared: run.static_shared,
            local: run.local,
        };
        // Another name may be at an address later.
        if let Some(known) = self.kernels.get(&key)
            && known.validity.has(times.submit)
            && known.name.as_c_str() == run.name
        {
            return known.id;
        }
        let (build_id, validity) = modules::find(Ran {
            name: run.name,
            context: run.run.context,
            submit: times.submit,
            end: times.latest_end(),
        });
        let kernel = Kernel {
            name: run.name.to_string_lossy().into_owned(),
            agent,
            kernarg: 0,
            lds: run.static_shared,
            scratch: run.local,
            registers: Registers::Nvidia {
                per_thread: run.registers,
            },
            build_id,
        };
        let id = to.add_kernel(&kernel, 0);
        // A run from before the last change of the modules may be of another module than the next ones.
        if validity.has(times.submit) {
            let name = run.name.into();
            self.kernels.insert(key, KnownKernel { name, id, validity });
        }
        id
    }

    fn record_kernel_run(&mut self, kernel: &KernelRun<'_>, is_complete: bool, to: &mut Recorder) {
        let launch = self.launches.find(kernel.run.correlation);
        if launch.is_some_and(|launch| launch.id == 0) {
            return;
        }
        let agent = devices::index(AgentKey::Cuda(kernel.run.device), to);
        let queue = self.queue(&kernel.run, agent, to);
        let times = Times::of(&kernel.run, is_complete, launch.as_ref(), to.frequency);
        let id = self.kernel(kernel, &times, agent, to);
        self.untimed += u64::from(times.are_missing());
        let mut record = Dispatch::new(0, times.flags);
        set_origin!(record, launch, times);
        record.agent = agent.into();
        record.queue = queue.into();
        record.kernel = id.into();
        for n in 0..3 {
            record.grid[n] = kernel.grid[n].saturating_mul(kernel.block[n]).into();
            record.workgroup[n] = u16::try_from(kernel.block[n]).unwrap_or(u16::MAX).into();
        }
        record.lds = (kernel.static_shared.saturating_add(kernel.dynamic_shared)).into();
        record.scratch = kernel.local.into();
        to.add_dispatch(record);
    }

    fn record_copy(&mut self, copy: &CopyRun, is_complete: bool, to: &mut Recorder) {
        let launch = self
            .launches
            .find(copy.run.correlation)
            .or_else(|| self.launches.find(copy.runtime_correlation));
        if launch.is_some_and(|launch| launch.id == 0) {
            return;
        }
        let times = Times::of(&copy.run, is_complete, launch.as_ref(), to.frequency);
        self.untimed += u64::from(times.are_missing());
        let mut side = |side| match side {
            Some(Side::Device(device)) => devices::index(AgentKey::Cuda(device), to),
            Some(Side::Host | Side::Unknown) | None => NO_AGENT,
        };
        let (source, destination) = (side(copy.source), side(Some(copy.destination)));
        let mut record = MemoryCopy::new(0, times.flags);
        set_origin!(record, launch, times);
        record.size = copy.bytes.into();
        record.source = source.into();
        record.destination = destination.into();
        record.direction = direction_of(copy).into();
        to.add_copy(record, launch.map_or("", |launch| launch.function));
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
    time: Interval,
    observed: u64,
    flags: u16,
}

impl Times {
    /// `is_complete`: all activities in its buffer are.
    fn of(run: &Run, is_complete: bool, launch: Option<&Launch>, frequency: u64) -> Times {
        let observed = clock::now();
        let has_times = run.start != 0 && run.end != 0;
        let submit = match launch {
            Some(launch) => launch.submit,
            None if has_times => run.start.min(observed),
            None => observed,
        };
        let recorded = if has_times {
            select(run, submit, observed, frequency)
        } else if is_complete {
            RecordedTime::NONE
        } else {
            RecordedTime::UNFINISHED
        };
        let no_call = if launch.is_none() { flag::NO_CALL } else { 0 };
        Times {
            submit,
            time: recorded.time,
            observed,
            flags: recorded.flags | no_call,
        }
    }

    /// When it ended, or when it was observed.
    fn latest_end(&self) -> u64 {
        match self.time.end {
            0 => self.observed,
            end => end,
        }
    }

    /// It is complete, and CUPTI does not know when it ran.
    fn are_missing(&self) -> bool {
        self.flags & (flag::CLOCK | flag::UNFINISHED) == flag::CLOCK_NONE
    }
}

/// CUPTI translates the device's times to the system clock.
fn select(run: &Run, submit: u64, observed: u64, frequency: u64) -> RecordedTime {
    let time = Interval {
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
