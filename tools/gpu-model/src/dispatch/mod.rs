//! A kernel dispatch: from packet and kernel descriptor to workgroups and waves, and their run to the end.
//!
//! Waves are interpreter states. Those of one workgroup stay together on one host thread and take turns: at
//! barriers, at `s_sleep`, and after a bounded number of instructions, so that a wave may wait for another. The
//! workgroups of a dispatch take turns in the same way, on the thread that calls [`Gpu::dispatch`] and, when the
//! dispatch turns out to be long, on helper threads.
//!
//! The descriptor, the order of the initial SGPRs and the packed work-item ids are those of LLVM's "User Guide
//! for AMDGPU Backend", "Kernel Descriptor" and "Initial Kernel Execution State", for gfx11.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use self::code_cache::Code;
use crate::exec::{self, AddressSpaces, Flow, Scratch};
use crate::fault::Fault;
use crate::isa::Encoding;
use crate::memory::{Memory, View};
use crate::thread;
use crate::wave::Wave;

mod code_cache;
mod symbol;

/// The fields of an AQL kernel dispatch packet, and where the packet lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    pub workgroup_size: [u16; 3],
    pub grid_size: [u32; 3],
    /// Bytes for each work-item.
    pub private_segment_size: u32,
    /// Bytes of LDS for each workgroup, static and dynamic.
    pub group_segment_size: u32,
    /// Address of the kernel descriptor.
    pub kernel_object: u64,
    pub kernarg_address: u64,
    /// Address of the packet itself, for kernels that read it; 0 if it lies in no GPU memory.
    pub address: u64,
    /// Address of the queue's `amd_queue_t`; 0 if there is none.
    pub queue: u64,
    /// The packet's number in its queue.
    pub id: u64,
}

/// Why a dispatch did not complete.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
    /// The packet, or the descriptor that it names, asks for something that there is not.
    #[error("kernel {kernel}: {what}")]
    Packet { kernel: String, what: String },
    /// A wave cannot go on.
    #[error(transparent)]
    Fault(Box<Place>),
}

/// A fault and everything that says where it happened.
#[derive(Debug)]
pub struct Place {
    /// The kernel's name, or the address of its descriptor if memory shows no symbol for it.
    pub kernel: String,
    pub entry: u64,
    pub pc: u64,
    /// The instruction's words, as far as they can be read.
    pub words: Vec<u32>,
    /// The instruction as text, if it is one.
    pub text: Option<String>,
    pub fault: Fault,
    pub workgroup: [u32; 3],
    pub wave: usize,
    pub exec: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, distance) = if self.pc >= self.entry {
            ('+', self.pc - self.entry)
        } else {
            ('-', self.entry - self.pc)
        };
        write!(
            f,
            "kernel {}: {}\n  at {:#x} (the kernel's entry {sign} {distance:#x}):",
            self.kernel, self.fault, self.pc
        )?;
        for word in &self.words {
            write!(f, " {word:08x}")?;
        }
        if let Some(text) = &self.text {
            write!(f, "  {text}")?;
        }
        let [x, y, z] = self.workgroup;
        write!(f, "\n  workgroup ({x}, {y}, {z}), wave {}", self.wave)?;
        if let Some(lane) = self.fault.lane() {
            write!(f, ", lane {lane}")?;
        }
        write!(f, ", exec {:#x}", self.exec)
    }
}

impl std::error::Error for Place {}

/// What a kernel descriptor says.
#[derive(Clone, Debug)]
struct Kernel {
    entry: u64,
    lanes: usize,
    vgprs: usize,
    mode: u32,
    properties: u16,
    user_sgprs: usize,
    /// ENABLE_SGPR_WORKGROUP_ID_X, _Y, _Z.
    workgroup_ids: [bool; 3],
    workgroup_info: bool,
    /// How many dimensions of the work-item id are in v0.
    work_item_ids: u32,
}

/// KERNEL_CODE_PROPERTIES.
mod property {
    pub const DISPATCH_PTR: u16 = 1 << 1;
    pub const QUEUE_PTR: u16 = 1 << 2;
    pub const KERNARG_SEGMENT_PTR: u16 = 1 << 3;
    pub const DISPATCH_ID: u16 = 1 << 4;
    pub const PRIVATE_SEGMENT_SIZE: u16 = 1 << 6;
    pub const WAVEFRONT_SIZE32: u16 = 1 << 10;
    pub const USES_DYNAMIC_STACK: u16 = 1 << 11;
    pub const KNOWN: u16 = DISPATCH_PTR
        | QUEUE_PTR
        | KERNARG_SEGMENT_PTR
        | DISPATCH_ID
        | PRIVATE_SEGMENT_SIZE
        | WAVEFRONT_SIZE32
        | USES_DYNAMIC_STACK;
}

impl Kernel {
    fn read(object: u64, memory: &mut View) -> Result<Kernel, String> {
        let mut words = [0; 16];
        memory
            .load_dwords(object, &mut words)
            .map_err(|fault| format!("cannot read its descriptor: {fault}"))?;
        let offset = u64::from(words[4]) | u64::from(words[5]) << 32;
        let (rsrc1, rsrc2) = (words[12], words[13]);
        let properties = words[14] as u16;
        let preload = words[14] >> 16;
        if properties & !property::KNOWN != 0 {
            return Err(format!(
                "its descriptor's kernel code properties {properties:#x} are none of gfx11's"
            ));
        }
        if preload != 0 {
            return Err("its descriptor preloads kernel arguments, which gfx11 cannot".into());
        }
        let lanes = if properties & property::WAVEFRONT_SIZE32 != 0 {
            32
        } else {
            64
        };
        let granule = if lanes == 32 { 8 } else { 4 };
        let bit = |n: u32| rsrc2 >> n & 1 == 1;
        let kernel = Kernel {
            entry: object.wrapping_add(offset),
            lanes,
            vgprs: ((rsrc1 & 63) as usize + 1) * granule,
            // Rounding and denormals, DX10_CLAMP, IEEE, FP16_OVFL.
            mode: rsrc1 >> 12 & 0xff
                | (rsrc1 >> 21 & 1) << 8
                | (rsrc1 >> 23 & 1) << 9
                | (rsrc1 >> 26 & 1) << 23,
            properties,
            user_sgprs: (rsrc2 >> 1 & 31) as usize,
            workgroup_ids: [bit(7), bit(8), bit(9)],
            workgroup_info: bit(10),
            work_item_ids: rsrc2 >> 11 & 3,
        };
        if kernel.vgprs > 256 {
            return Err(format!("its descriptor asks for {} VGPRs", kernel.vgprs));
        }
        Ok(kernel)
    }

    /// The user SGPRs, in their fixed order.
    fn user_sgprs(&self, packet: &Packet) -> Result<Vec<u32>, String> {
        let mut sgprs = Vec::with_capacity(16);
        let mut pair = |enabled: u16, value: u64, what: &str, needed: bool| {
            if self.properties & enabled != 0 {
                if needed && value == 0 {
                    return Err(format!("it reads {what}, and there is none"));
                }
                sgprs.extend([value as u32, (value >> 32) as u32]);
            }
            Ok(())
        };
        pair(
            property::DISPATCH_PTR,
            packet.address,
            "the dispatch packet",
            true,
        )?;
        pair(property::QUEUE_PTR, packet.queue, "the queue", true)?;
        pair(
            property::KERNARG_SEGMENT_PTR,
            packet.kernarg_address,
            "its arguments",
            false,
        )?;
        pair(property::DISPATCH_ID, packet.id, "the dispatch id", false)?;
        if self.properties & property::PRIVATE_SEGMENT_SIZE != 0 {
            sgprs.push(packet.private_segment_size);
        }
        if sgprs.len() > self.user_sgprs {
            return Err(format!(
                "its descriptor enables {} user SGPRs but counts {}",
                sgprs.len(),
                self.user_sgprs
            ));
        }
        sgprs.resize(self.user_sgprs, 0);
        Ok(sgprs)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Ready,
    AtBarrier,
    Ended,
}

struct Resident {
    wave: Wave,
    scratch: Scratch,
    turn: Turn,
}

/// A workgroup that has been started.
struct Group {
    id: [u32; 3],
    lds: Vec<u8>,
    waves: Vec<Resident>,
}

/// Instructions that a wave may run before the next wave of its workgroup has its turn.
const WAVE_TURN: u32 = 4_000;
/// Instructions that a workgroup may run before another one has its turn.
const GROUP_TURN: u32 = 64_000;
/// Waves of one dispatch that may be under way at once; four times as many as the topology's compute units hold.
const MOST_RESIDENT_WAVES: u32 = 1024;
/// A dispatch that takes longer than this asks the helper threads in.
const LONG: Duration = Duration::from_micros(100);

/// What one host thread needs to run waves.
struct Core {
    memory: View,
    code: Code,
    instructions: u64,
    lane_instructions: u64,
}

impl Core {
    fn new(memory: Arc<Memory>) -> Core {
        Core {
            memory: View::new(memory),
            code: Code::new(),
            instructions: 0,
            lane_instructions: 0,
        }
    }
}

#[derive(PartialEq, Eq)]
enum GroupEnd {
    Ended,
    /// Its turn is over.
    Turn,
    /// Its turn is over, and all its waves were only waiting.
    Waiting,
}

struct Progress {
    /// The next workgroup to start, in x, y, z order.
    next: u64,
    suspended: VecDeque<Group>,
    /// Workgroups on a thread right now.
    running: usize,
    error: Option<Error>,
}

/// A dispatch under way.
struct Run {
    packet: Packet,
    kernel: Kernel,
    user_sgprs: Vec<u32>,
    groups: [u32; 3],
    total: u64,
    /// Workgroups that may be under way at once.
    most_resident: usize,
    progress: Mutex<Progress>,
    /// Signalled when a workgroup leaves its thread.
    left: Condvar,
    stop: AtomicBool,
    stats: Arc<Stats>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Run {
    fn prepare(packet: &Packet, memory: &mut View, stats: Arc<Stats>) -> Result<Run, String> {
        let size = packet.workgroup_size.map(u32::from);
        if size.contains(&0) || packet.grid_size.contains(&0) {
            return Err(format!(
                "a workgroup of {size:?} and a grid of {:?} work-items",
                packet.grid_size
            ));
        }
        if size.iter().map(|&d| u64::from(d)).product::<u64>() > 1024 {
            return Err(format!(
                "a workgroup of {size:?}: more than 1024 work-items"
            ));
        }
        if packet.group_segment_size > 0x1_0000 {
            return Err(format!(
                "{} bytes of LDS: a workgroup has at most 65536",
                packet.group_segment_size
            ));
        }
        let kernel = Kernel::read(packet.kernel_object, memory)?;
        let kernel_lanes = kernel.lanes as u32;
        let groups: [u32; 3] = std::array::from_fn(|d| packet.grid_size[d].div_ceil(size[d]));
        Ok(Run {
            packet: *packet,
            user_sgprs: kernel.user_sgprs(packet)?,
            kernel,
            groups,
            total: groups
                .iter()
                .fold(1, |total: u64, &n| total.saturating_mul(n.into())),
            most_resident: (MOST_RESIDENT_WAVES
                / size.iter().product::<u32>().div_ceil(kernel_lanes))
            .max(1) as usize,
            progress: Mutex::new(Progress {
                next: 0,
                suspended: VecDeque::new(),
                running: 0,
                error: None,
            }),
            left: Condvar::new(),
            stop: AtomicBool::new(false),
            stats,
        })
    }

    fn start_group(&self, number: u64) -> Group {
        let [groups_x, groups_y, _] = self.groups.map(u64::from);
        let id = [
            (number % groups_x) as u32,
            (number / groups_x % groups_y) as u32,
            (number / groups_x / groups_y) as u32,
        ];
        // At the grid's far edges a workgroup may be smaller.
        let size: [u32; 3] = std::array::from_fn(|d| {
            let full = u32::from(self.packet.workgroup_size[d]);
            full.min(self.packet.grid_size[d] - id[d] * full)
        });
        let items = size.iter().product::<u32>() as usize;
        let lanes = self.kernel.lanes;
        let count = items.div_ceil(lanes);
        let waves = (0..count)
            .map(|number| {
                let first = number * lanes;
                Resident {
                    wave: self.start_wave(id, size, first, items.min(first + lanes), count),
                    scratch: Scratch::new(self.packet.private_segment_size as usize, lanes),
                    turn: Turn::Ready,
                }
            })
            .collect();
        Group {
            id,
            lds: vec![0; self.packet.group_segment_size as usize],
            waves,
        }
    }

    /// The wave of work-items `first` to `end` of a workgroup.
    fn start_wave(
        &self,
        group: [u32; 3],
        size: [u32; 3],
        first: usize,
        end: usize,
        waves: usize,
    ) -> Wave {
        let kernel = &self.kernel;
        let mut wave = Wave {
            pc: kernel.entry,
            lanes: kernel.lanes,
            sgpr: [0; 128],
            scc: false,
            vgpr: vec![[0; 64]; kernel.vgprs],
            mode: kernel.mode,
        };
        wave.sgpr[..self.user_sgprs.len()].copy_from_slice(&self.user_sgprs);
        let mut next = self.user_sgprs.len();
        for (enabled, id) in kernel.workgroup_ids.into_iter().zip(group) {
            if enabled {
                wave.sgpr[next] = id;
                next += 1;
            }
        }
        if kernel.workgroup_info {
            wave.sgpr[next] = u32::from(first == 0) << 31 | waves as u32;
        }
        wave.set_exec(u64::MAX >> (64 - (end - first)));
        for (lane, item) in (first as u32..end as u32).enumerate() {
            let x = item % size[0];
            let y = item / size[0] % size[1];
            let z = item / size[0] / size[1];
            wave.vgpr[0][lane] = match kernel.work_item_ids {
                0 => x,
                1 => x | y << 10,
                _ => x | y << 10 | z << 20,
            };
        }
        wave
    }

    /// Runs workgroups until none is left to take.
    fn work(&self, core: &mut Core, mut after_group: impl FnMut()) {
        core.code.invalidate();
        let mut waiting = 0u32;
        loop {
            let mut progress = locked(&self.progress);
            if progress.error.is_some() {
                break;
            }
            if self.stop.load(Relaxed) {
                progress.error = Some(Error::Stopped);
                break;
            }
            let resident = progress.running + progress.suspended.len();
            let taken = if progress.next < self.total && resident < self.most_resident {
                progress.next += 1;
                Err(progress.next - 1)
            } else if let Some(group) = progress.suspended.pop_front() {
                Ok(group)
            } else {
                break;
            };
            progress.running += 1;
            drop(progress);
            let mut group = taken.unwrap_or_else(|number| self.start_group(number));
            let end = self.run_group(&mut group, core);
            // Before the workgroup counts as ended, so that a dispatch's counts are complete with it.
            self.stats.add(core);
            let mut progress = locked(&self.progress);
            progress.running -= 1;
            let mut everyone_waits = false;
            match end {
                Ok(GroupEnd::Ended) => waiting = 0,
                Ok(end) => {
                    waiting = if end == GroupEnd::Waiting {
                        waiting + 1
                    } else {
                        0
                    };
                    progress.suspended.push_back(group);
                    everyone_waits = waiting as usize > progress.suspended.len();
                }
                Err(error) => {
                    progress.error.get_or_insert(error);
                }
            }
            drop(progress);
            self.left.notify_all();
            if everyone_waits {
                // Whatever they wait for comes from another queue or from the host.
                std::thread::sleep(Duration::from_micros(20));
                waiting = 0;
            }
            after_group();
        }
    }

    fn run_group(&self, group: &mut Group, core: &mut Core) -> Result<GroupEnd, Error> {
        let single = group.waves.len() == 1;
        let mut left = GROUP_TURN;
        loop {
            let mut ran = false;
            let mut worked = false;
            for number in 0..group.waves.len() {
                let resident = &mut group.waves[number];
                if resident.turn != Turn::Ready {
                    continue;
                }
                ran = true;
                let mut budget = WAVE_TURN;
                let result = run_wave(resident, &mut group.lds, core, &mut budget, single);
                left = left.saturating_sub(WAVE_TURN - budget);
                match result {
                    Ok(Flow::Barrier) => resident.turn = Turn::AtBarrier,
                    Ok(Flow::End) => resident.turn = Turn::Ended,
                    Ok(_) => {}
                    Err(fault) => return Err(self.place(group, number, fault, core)),
                }
                worked |= result != Ok(Flow::Yield);
            }
            if !ran {
                // Every wave that has not ended is at the barrier.
                let mut any = false;
                for resident in &mut group.waves {
                    if resident.turn == Turn::AtBarrier {
                        resident.turn = Turn::Ready;
                        any = true;
                    }
                }
                if !any {
                    return Ok(GroupEnd::Ended);
                }
            } else if !worked {
                return Ok(GroupEnd::Waiting);
            }
            if left == 0 {
                return Ok(GroupEnd::Turn);
            }
        }
    }

    #[cold]
    fn place(&self, group: &Group, number: usize, fault: Fault, core: &mut Core) -> Error {
        let wave = &group.waves[number].wave;
        let words: Vec<u32> = (0..3)
            .map_while(|n| core.memory.load_u32(wave.pc.wrapping_add(4 * n)).ok())
            .collect();
        let inst = crate::isa::decode(&words).ok();
        let count = inst.map_or(words.len(), |inst| usize::from(inst.len) / 4);
        Error::Fault(Box::new(Place {
            kernel: symbol::kernel_name(self.packet.kernel_object, &mut core.memory),
            entry: self.kernel.entry,
            pc: wave.pc,
            words: words[..count].to_vec(),
            text: inst.map(|inst| inst.to_string()),
            fault,
            workgroup: group.id,
            wave: number,
            exec: wave.exec(),
        }))
    }
}

/// Runs a wave until its flow changes or its budget is used up. On a fault, the program counter is that of the
/// faulting instruction.
fn run_wave(
    resident: &mut Resident,
    lds: &mut [u8],
    core: &mut Core,
    budget: &mut u32,
    single: bool,
) -> Result<Flow, Fault> {
    let wave = &mut resident.wave;
    let before = *budget;
    let mut lane_instructions = 0;
    let result = loop {
        if *budget == 0 {
            break Ok(Flow::Next);
        }
        *budget -= 1;
        let pc = wave.pc;
        let inst = match core.code.fetch(pc, &mut core.memory) {
            Ok(inst) => inst,
            Err(fault) => break Err(fault),
        };
        if inst.enc as u8 > Encoding::Mubuf as u8 {
            lane_instructions += u64::from(wave.exec().count_ones());
        }
        wave.pc = pc + u64::from(inst.len);
        let mut around = AddressSpaces {
            memory: &mut core.memory,
            lds,
            scratch: &mut resident.scratch,
        };
        match exec::execute(wave, inst, &mut around) {
            Ok(Flow::Next) => {}
            Ok(Flow::Barrier) if single => {}
            Ok(Flow::Refetch) => core.code.invalidate(),
            Ok(flow) => break Ok(flow),
            Err(fault) => {
                wave.pc = pc;
                break Err(fault);
            }
        }
    };
    core.instructions += u64::from(before - *budget);
    core.lane_instructions += lane_instructions;
    result
}

/// What has been executed, for benches.
#[derive(Debug, Default)]
pub struct Stats {
    pub dispatches: AtomicU64,
    /// Instructions of waves.
    pub instructions: AtomicU64,
    /// Vector instructions, times the lanes that were active.
    pub lane_instructions: AtomicU64,
    /// Processor time that threads spent in dispatches.
    pub busy_nanoseconds: AtomicU64,
}

impl Stats {
    /// Takes over what the core has counted.
    fn add(&self, core: &mut Core) {
        self.instructions
            .fetch_add(std::mem::take(&mut core.instructions), Relaxed);
        self.lane_instructions
            .fetch_add(std::mem::take(&mut core.lane_instructions), Relaxed);
    }

    /// `since`: the thread's [`processor_time`] when it began.
    fn add_time(&self, since: u64) {
        self.busy_nanoseconds
            .fetch_add(processor_time() - since, Relaxed);
    }
}

/// The calling thread's processor time in nanoseconds.
fn processor_time() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a timespec to write to, and every Linux thread has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[derive(Default)]
struct Jobs {
    runs: VecDeque<Arc<Run>>,
    helpers: usize,
    closed: bool,
}

/// The helper threads' work.
#[derive(Default)]
struct Pool {
    jobs: Mutex<Jobs>,
    changed: Condvar,
}

/// A GPU: memory, and the means to run kernels in it.
pub struct Gpu {
    memory: Arc<Memory>,
    pool: Arc<Pool>,
    most_helpers: usize,
    /// Cores of threads that are between dispatches; what they decoded stays of use.
    idle: Mutex<Vec<Core>>,
    stats: Arc<Stats>,
}

impl Gpu {
    /// A long dispatch uses as many threads as there are processors, but no more than 16.
    pub fn new(memory: Arc<Memory>) -> Gpu {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Gpu::with_threads(memory, threads.min(16))
    }

    /// A dispatch uses at most so many threads, that of its caller included.
    pub fn with_threads(memory: Arc<Memory>, threads: usize) -> Gpu {
        thread::prepare();
        Gpu {
            memory,
            pool: Arc::default(),
            most_helpers: threads.saturating_sub(1),
            idle: Mutex::default(),
            stats: Arc::default(),
        }
    }

    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Runs a dispatch to its end. Returns early with [`Error::Stopped`] once `stop` says so.
    pub fn dispatch(&self, packet: &Packet, stop: impl Fn() -> bool) -> Result<(), Error> {
        let since = processor_time();
        let mut core = locked(&self.idle)
            .pop()
            .unwrap_or_else(|| Core::new(self.memory.clone()));
        let result = self.run(packet, &mut core, stop);
        self.stats.dispatches.fetch_add(1, Relaxed);
        self.stats.add_time(since);
        locked(&self.idle).push(core);
        result
    }

    fn run(&self, packet: &Packet, core: &mut Core, stop: impl Fn() -> bool) -> Result<(), Error> {
        let since = Instant::now();
        let run = Run::prepare(packet, &mut core.memory, self.stats.clone()).map_err(|what| {
            Error::Packet {
                kernel: symbol::kernel_name(packet.kernel_object, &mut core.memory),
                what,
            }
        })?;
        let run = Arc::new(run);
        let mut shared = run.total == 1;
        loop {
            run.work(core, || {
                if stop() {
                    run.stop.store(true, Relaxed);
                }
                if !shared && since.elapsed() > LONG {
                    shared = true;
                    self.call_helpers(&run);
                }
            });
            let progress = locked(&run.progress);
            if progress.running == 0 {
                break;
            }
            // A helper still has a workgroup; when it gives it back, it may have to be taken up here.
            drop(
                run.left
                    .wait_timeout(progress, Duration::from_millis(1))
                    .unwrap_or_else(PoisonError::into_inner),
            );
            if stop() {
                run.stop.store(true, Relaxed);
            }
        }
        let error = locked(&run.progress).error.take();
        error.map_or(Ok(()), Err)
    }

    fn call_helpers(&self, run: &Arc<Run>) {
        let mut jobs = locked(&self.pool.jobs);
        for _ in 0..self.most_helpers {
            jobs.runs.push_back(run.clone());
        }
        while jobs.helpers < self.most_helpers {
            let (pool, memory) = (self.pool.clone(), self.memory.clone());
            // With fewer helpers the dispatch only takes longer.
            if thread::spawn("gpu-model help", move || help(&pool, memory)).is_err() {
                break;
            }
            jobs.helpers += 1;
        }
        if jobs.helpers == 0 {
            jobs.runs.clear();
        }
        drop(jobs);
        self.pool.changed.notify_all();
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        locked(&self.pool.jobs).closed = true;
        self.pool.changed.notify_all();
    }
}

/// A helper thread's life.
fn help(pool: &Pool, memory: Arc<Memory>) {
    let mut core = Core::new(memory);
    let mut jobs = locked(&pool.jobs);
    while !jobs.closed {
        let Some(run) = jobs.runs.pop_front() else {
            jobs = pool
                .changed
                .wait(jobs)
                .unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        drop(jobs);
        let since = processor_time();
        run.work(&mut core, || {});
        run.stats.add_time(since);
        jobs = locked(&pool.jobs);
    }
}
