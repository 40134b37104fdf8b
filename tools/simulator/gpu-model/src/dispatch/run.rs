//! A dispatch in progress.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::descriptor::Descriptor;
use super::error::{Error, FaultReport};
use super::interpreter::Interpreter;
use super::packet::Packet;
use super::placement::{Placement, placement};
use super::stats::Stats;
use super::symbol;
use super::workgroup::{Pause, WaveFault, Workgroup};
use crate::isa::{self, Architecture};
use crate::memory::{Storage, View};
use crate::thread::lock;
use crate::topology::Units;
use crate::wave::Wave;

/// The number of waves of one dispatch that are resident at first. If all wait for something, more workgroups start, until
/// there are as many waves as the compute units hold: the waves of a cooperative launch wait for each other.
const RESIDENT_WAVES: u64 = 1024;

/// The register number of TTMP0.
const TTMP0: usize = 108;

struct Progress {
    /// The next workgroup to start, in x, y, z order.
    next: u64,
    suspended: VecDeque<Workgroup>,
    /// Workgroups that a thread is running now.
    running: usize,
    /// The maximum number of resident workgroups.
    limit: usize,
    error: Option<Error>,
}

/// A dispatch in progress. All threads that work on it share it.
pub struct Run {
    packet: Packet,
    units: Units,
    descriptor: Descriptor,
    user_sgprs: Vec<u32>,
    /// Workgroups in each dimension.
    workgroups: [u32; 3],
    total: u64,
    /// The limit of resident workgroups if they wait for each other.
    max_resident: usize,
    progress: Mutex<Progress>,
    /// Signalled when the turn of a workgroup ends.
    paused: Condvar,
    stop: AtomicBool,
    stats: Arc<Stats>,
}

impl Run {
    /// Checks the packet and reads the kernel descriptor. Fails with the reason if the model cannot execute the kernel.
    pub fn new(
        arch: Architecture,
        units: Units,
        packet: &Packet,
        memory: &mut View,
        stats: Arc<Stats>,
    ) -> Result<Run, String> {
        let size = packet.workgroup_size.map(u32::from);
        if size.contains(&0) || packet.grid_size.contains(&0) {
            return Err(format!(
                "a workgroup of {size:?} and a grid of {:?}: no size may be 0",
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
        let descriptor = Descriptor::read(arch, packet.kernel_object, memory)?;
        let lanes = descriptor.lanes as u32;
        let waves_of_each = u64::from(size.iter().product::<u32>().div_ceil(lanes));
        let workgroups_of = |waves: u64| (waves / waves_of_each).max(1) as usize;
        let workgroups: [u32; 3] = std::array::from_fn(|d| packet.grid_size[d].div_ceil(size[d]));
        if descriptor.has_workgroup_ids_in_ttmps()
            && let Some(dimension) = (1..3).find(|&d| workgroups[d] > 0x1_0000)
        {
            return Err(format!(
                "{} workgroups in dimension {dimension}: more than 65536",
                workgroups[dimension]
            ));
        }
        Ok(Run {
            packet: *packet,
            units,
            user_sgprs: descriptor.user_sgprs(packet, memory)?,
            descriptor,
            workgroups,
            total: workgroups
                .iter()
                .fold(1, |total: u64, &n| total.saturating_mul(n.into())),
            max_resident: workgroups_of(RESIDENT_WAVES.max(units.waves())),
            progress: Mutex::new(Progress {
                next: 0,
                suspended: VecDeque::new(),
                running: 0,
                limit: workgroups_of(RESIDENT_WAVES),
                error: None,
            }),
            paused: Condvar::new(),
            stop: AtomicBool::new(false),
            stats,
        })
    }

    /// Whether the dispatch has only one workgroup, so that helper threads would be idle.
    pub fn is_one_workgroup(&self) -> bool {
        self.total == 1
    }

    /// Stops the dispatch with [`Error::Stopped`].
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    fn start_workgroup(&self, number: u64) -> Workgroup {
        let [workgroups_x, workgroups_y, _] = self.workgroups.map(u64::from);
        let id = [
            (number % workgroups_x) as u32,
            (number / workgroups_x % workgroups_y) as u32,
            (number / workgroups_x / workgroups_y) as u32,
        ];
        // The last workgroup of a dimension may be smaller.
        let size: [u32; 3] = std::array::from_fn(|d| {
            let full = u32::from(self.packet.workgroup_size[d]);
            full.min(self.packet.grid_size[d] - id[d] * full)
        });
        let items = size.iter().product::<u32>() as usize;
        let lanes = self.descriptor.lanes;
        let count = items.div_ceil(lanes);
        let waves = (0..count).map(|wave| {
            let first = wave * lanes;
            let Descriptor { arch, wgp_mode, .. } = self.descriptor;
            let Placement { hw_id, xcc_id } = placement(arch, &self.units, number, wave, wgp_mode);
            let end = items.min(first + lanes);
            Wave {
                hw_id,
                xcc_id,
                ..self.start_wave(id, size, first, end, count)
            }
        });
        Workgroup::new(
            id,
            self.packet.group_segment_size as usize,
            self.packet.private_segment_size as usize,
            waves,
        )
    }

    /// The wave of work-items `first` to `end` (exclusive) of a workgroup, in its initial state.
    fn start_wave(
        &self,
        workgroup: [u32; 3],
        size: [u32; 3],
        first: usize,
        end: usize,
        waves: usize,
    ) -> Wave {
        let descriptor = &self.descriptor;
        let mut wave = Wave {
            pc: descriptor.entry,
            lanes: descriptor.lanes,
            sgpr: [0; 128],
            scc: false,
            vgpr: vec![[0; 64]; descriptor.vgprs],
            agpr: vec![[0; 64]; descriptor.agprs],
            mode: descriptor.mode,
            hw_id: 0,
            xcc_id: 0,
            gws_wait: None,
            barriers_signalled: 0,
            barriers_passed: 0,
        };
        wave.sgpr[..self.user_sgprs.len()].copy_from_slice(&self.user_sgprs);
        let mut next = self.user_sgprs.len();
        let in_ttmps = descriptor.has_workgroup_ids_in_ttmps();
        if in_ttmps {
            wave.sgpr[TTMP0 + 7] = workgroup[1] | workgroup[2] << 16;
            // The number of the wave in its workgroup.
            wave.sgpr[TTMP0 + 8] = ((first / descriptor.lanes) as u32) << 25;
            wave.sgpr[TTMP0 + 9] = workgroup[0];
        }
        for (enabled, id) in descriptor.workgroup_ids.into_iter().zip(workgroup) {
            if enabled && !in_ttmps {
                wave.sgpr[next] = id;
                next += 1;
            }
        }
        // The wave's offset in the scratch memory of gfx90a, which may follow, is 0.
        if descriptor.workgroup_info {
            wave.sgpr[next] = u32::from(first == 0) << 31 | waves as u32;
        }
        wave.set_exec(u64::MAX >> (64 - (end - first)));
        for (lane, item) in (first as u32..end as u32).enumerate() {
            let x = item % size[0];
            let y = item / size[0] % size[1];
            let z = item / size[0] / size[1];
            wave.vgpr[0][lane] = match descriptor.work_item_ids {
                0 => x,
                1 => x | y << 10,
                _ => x | y << 10 | z << 20,
            };
        }
        wave
    }

    /// Runs workgroups on the calling thread until there are no more to start or resume, or until the dispatch fails or is
    /// stopped. Calls `after_turn` after each workgroup's turn.
    pub fn work(&self, interpreter: &mut Interpreter, mut after_turn: impl FnMut()) {
        interpreter.code.invalidate();
        let mut waiting = 0u32;
        loop {
            let mut progress = lock(&self.progress);
            if progress.error.is_some() {
                break;
            }
            if self.stop.load(Relaxed) {
                progress.error = Some(Error::Stopped);
                break;
            }
            let resident = progress.running + progress.suspended.len();
            let taken = if progress.next < self.total && resident < progress.limit {
                progress.next += 1;
                Err(progress.next - 1)
            } else if let Some(workgroup) = progress.suspended.pop_front() {
                Ok(workgroup)
            } else {
                break;
            };
            progress.running += 1;
            drop(progress);
            let mut workgroup = taken.unwrap_or_else(|number| self.start_workgroup(number));
            let pause = workgroup.run(interpreter);
            // Before `running` changes: the counts must be complete when the dispatch is complete.
            self.stats.add(interpreter);
            let pause =
                pause.map_err(|fault| self.report(&workgroup, fault, &mut interpreter.memory));
            let mut progress = lock(&self.progress);
            progress.running -= 1;
            let mut all_wait = false;
            match pause {
                Ok(Pause::Ended) => waiting = 0,
                Ok(pause) => {
                    waiting = if pause == Pause::Waiting {
                        waiting + 1
                    } else {
                        0
                    };
                    progress.suspended.push_back(workgroup);
                    all_wait = waiting as usize > progress.suspended.len();
                    if all_wait && progress.next < self.total && progress.limit < self.max_resident
                    {
                        progress.limit = (2 * progress.limit).min(self.max_resident);
                        (all_wait, waiting) = (false, 0);
                    }
                }
                Err(error) => {
                    progress.error.get_or_insert(error);
                }
            }
            drop(progress);
            self.paused.notify_all();
            if all_wait {
                // All workgroups wait for another queue or for the host.
                std::thread::sleep(Duration::from_micros(20));
                waiting = 0;
            }
            after_turn();
        }
    }

    /// Call this after [`Run::work`]. If no other thread runs a workgroup, the dispatch is complete: returns true. Otherwise
    /// waits for the end of a workgroup's turn, for at most a millisecond, and returns false: call [`Run::work`] again,
    /// because the workgroup may have to be resumed by this thread.
    pub fn wait_for_others(&self) -> bool {
        let progress = lock(&self.progress);
        if progress.running == 0 {
            return true;
        }
        drop(
            self.paused
                .wait_timeout(progress, Duration::from_millis(1))
                .unwrap_or_else(PoisonError::into_inner),
        );
        false
    }

    pub fn take_error(&self) -> Option<Error> {
        lock(&self.progress).error.take()
    }

    #[cold]
    fn report(&self, workgroup: &Workgroup, fault: WaveFault, memory: &mut View) -> Error {
        let WaveFault { wave, fault } = fault;
        let number = wave;
        let wave = workgroup.wave(number);
        let words: Vec<u32> = (0..3)
            .map_while(|n| memory.load_u32(wave.pc.wrapping_add(4 * n)).ok())
            .collect();
        let inst = isa::decode(self.descriptor.arch, &words).ok();
        let count = inst.map_or(words.len(), |inst| usize::from(inst.len) / 4);
        Error::Fault(Box::new(FaultReport {
            kernel: symbol::kernel_name(self.packet.kernel_object, memory),
            entry: self.descriptor.entry,
            pc: wave.pc,
            words: words[..count].to_vec(),
            text: inst.map(|inst| inst.text(self.descriptor.lanes).to_string()),
            fault,
            workgroup: workgroup.id,
            wave: number,
            exec: wave.exec(),
        }))
    }
}
