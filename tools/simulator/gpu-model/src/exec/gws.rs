//! GWS, global wave sync: barriers between waves of different workgroups (guide of MI200, "DS_GWS_INIT" and
//! "DS_GWS_BARRIER"). HIP uses it for cooperative launches on gfx90a.

use super::flow::Flow;
use super::operand::{file_mut, lanes, vectors};
use crate::fault::Fault;
use crate::isa::{Inst, Op, Operand};
use crate::thread::lock;
use crate::wave::Wave;
use std::sync::Mutex;

const RESOURCES: usize = 64;

#[derive(Clone, Copy, Default)]
struct Resource {
    /// The number of waves that arrive before the wave that releases all.
    counter: u32,
    /// How often waves were released.
    releases: u64,
}

/// The resources of a GPU.
pub struct Gws(Mutex<[Resource; RESOURCES]>);

impl Default for Gws {
    fn default() -> Gws {
        Gws(Mutex::new([Resource::default(); RESOURCES]))
    }
}

/// Executes a GWS instruction. A wave that waits executes its barrier again when it has its next turn.
pub fn execute(wave: &mut Wave, inst: &Inst, gws: &Gws) -> Result<Flow, Fault> {
    if !inst.arch.is_gfx9() || !matches!(inst.op, Op::DS_GWS_INIT | Op::DS_GWS_BARRIER) {
        return Err(Fault::Unknown);
    }
    let data = vectors(wave, inst.src[0], 1)?;
    let acc = inst.src[0].as_agpr().is_some();
    // The guide does not specify the value if no lane is active.
    let lane = lanes(wave.exec()).next().ok_or(Fault::Unknown)?;
    let value = file_mut(wave, acc)[data][lane];
    let base = wave.sgpr[Operand::M0.0 as usize] >> 16;
    let number = (base as usize + inst.imm as usize) % RESOURCES;
    let resource = &mut lock(&gws.0)[number];
    if inst.op == Op::DS_GWS_INIT {
        resource.counter = value;
        return Ok(Flow::Next);
    }
    match wave.gws_wait {
        // The last wave sets the counter for the next barrier.
        None if resource.counter == 0 => {
            resource.counter = value;
            resource.releases += 1;
            return Ok(Flow::Next);
        }
        None => {
            resource.counter -= 1;
            wave.gws_wait = Some(resource.releases);
        }
        Some(releases) if releases != resource.releases => {
            wave.gws_wait = None;
            return Ok(Flow::Next);
        }
        Some(_) => {}
    }
    wave.pc -= u64::from(inst.len);
    Ok(Flow::Yield)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{inst, wave};
    use super::*;
    use crate::isa::{Architecture, Encoding};

    fn gws(op: Op, offset: i32) -> Inst {
        Inst {
            arch: Architecture::Gfx90a,
            src: [Operand::vgpr(3), Operand::NONE, Operand::NONE],
            imm: offset,
            len: 8,
            ..inst(op, Encoding::Ds)
        }
    }

    /// A wave whose data is `value`, in its first active lane.
    fn waiter(value: u32) -> Wave {
        let mut wave = wave(64);
        wave.set_exec(4);
        wave.vgpr[3] = [99; 64];
        wave.vgpr[3][2] = value;
        wave.sgpr[125] = 5 << 16;
        wave
    }

    #[test]
    fn the_last_wave_releases_all_and_sets_the_next_count() {
        let state = Gws::default();
        let barrier = gws(Op::DS_GWS_BARRIER, 1);
        let run = |wave: &mut Wave| {
            wave.pc = 0x108;
            let flow = execute(wave, &barrier, &state).unwrap();
            assert_eq!(wave.pc, if flow == Flow::Next { 0x108 } else { 0x100 });
            flow
        };
        execute(&mut waiter(2), &gws(Op::DS_GWS_INIT, 1), &state).unwrap();
        // Another resource.
        execute(&mut waiter(7), &gws(Op::DS_GWS_INIT, 2), &state).unwrap();
        let mut waves = [waiter(1), waiter(1), waiter(1)];
        for n in [0, 1, 0, 1, 0] {
            assert_eq!(run(&mut waves[n]), Flow::Yield);
        }
        assert_eq!(run(&mut waves[2]), Flow::Next);
        assert_eq!(run(&mut waves[0]), Flow::Next);
        // The next barrier has two waves. A wave that has not left the first one does not count.
        assert_eq!(run(&mut waves[0]), Flow::Yield);
        assert_eq!(run(&mut waves[1]), Flow::Next);
        assert_eq!(run(&mut waves[0]), Flow::Yield);
        assert_eq!(run(&mut waves[1]), Flow::Next);
        assert_eq!(run(&mut waves[0]), Flow::Next);
    }

    #[test]
    fn what_is_not_modelled_is_refused() {
        let state = Gws::default();
        let mut idle = waiter(1);
        idle.set_exec(0);
        let barrier = gws(Op::DS_GWS_BARRIER, 0);
        assert_eq!(execute(&mut idle, &barrier, &state), Err(Fault::Unknown));
        let semaphore = gws(Op::DS_GWS_SEMA_V, 0);
        let result = execute(&mut waiter(1), &semaphore, &state);
        assert_eq!(result, Err(Fault::Unknown));
        let gfx11 = Inst {
            arch: Architecture::Gfx11,
            ..barrier
        };
        let result = execute(&mut waiter(1), &gfx11, &state);
        assert_eq!(result, Err(Fault::Unknown));
    }
}
