//! A workgroup in execution: its waves take turns on one host thread.

use super::interpreter::Interpreter;
use crate::exec::{Flow, Scratch};
use crate::fault::Fault;
use crate::wave::Wave;

/// The number of instructions after which the next wave gets its turn.
const WAVE_TURN: u32 = 4_000;
/// The number of instructions after which another workgroup gets its turn.
const WORKGROUP_TURN: u32 = 64_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    AtBarrier,
    Ended,
}

struct ResidentWave {
    wave: Wave,
    scratch: Scratch,
    state: State,
}

/// Why a workgroup stopped running.
#[derive(PartialEq, Eq)]
pub enum Pause {
    /// All its waves have ended.
    Ended,
    /// Its turn is over.
    Turn,
    /// Its waves wait for something outside of the workgroup: each that ran ended its turn with `s_sleep`.
    Waiting,
}

/// A fault, and the wave that caused it.
pub struct WaveFault {
    pub wave: usize,
    pub fault: Fault,
}

/// A workgroup that has been started.
pub struct Workgroup {
    pub id: [u32; 3],
    lds: Vec<u8>,
    waves: Vec<ResidentWave>,
}

impl Workgroup {
    /// `lds_size`: bytes of LDS. `private_size`: bytes of private memory per lane.
    pub fn new(
        id: [u32; 3],
        lds_size: usize,
        private_size: usize,
        waves: impl Iterator<Item = Wave>,
    ) -> Workgroup {
        let resident = |wave: Wave| ResidentWave {
            scratch: Scratch::new(private_size, wave.lanes),
            wave,
            state: State::Ready,
        };
        let waves = waves.map(resident).collect();
        Workgroup {
            id,
            lds: vec![0; lds_size],
            waves,
        }
    }

    pub fn wave(&self, number: usize) -> &Wave {
        &self.waves[number].wave
    }

    /// Runs the waves until the workgroup's turn is over.
    pub fn run(&mut self, interpreter: &mut Interpreter) -> Result<Pause, WaveFault> {
        let single = self.waves.len() == 1;
        let mut left = WORKGROUP_TURN;
        loop {
            let waves = self.waves.iter();
            let active = waves.filter(|resident| resident.state != State::Ended);
            // The number of barriers that all waves have signalled.
            let Some(complete) = active.map(|it| it.wave.barriers_signalled).min() else {
                return Ok(Pause::Ended);
            };
            let mut worked = false;
            for (number, resident) in self.waves.iter_mut().enumerate() {
                match resident.state {
                    State::Ready => {}
                    State::AtBarrier if resident.wave.barriers_passed <= complete => {
                        resident.state = State::Ready;
                    }
                    _ => continue,
                }
                let mut budget = WAVE_TURN;
                let ResidentWave { wave, scratch, .. } = resident;
                let result = interpreter.run(wave, &mut self.lds, scratch, &mut budget, single);
                left = left.saturating_sub(WAVE_TURN - budget);
                match result {
                    Ok(Flow::Barrier) => resident.state = State::AtBarrier,
                    Ok(Flow::End) => resident.state = State::Ended,
                    Ok(_) => {}
                    Err(fault) => {
                        return Err(WaveFault {
                            wave: number,
                            fault,
                        });
                    }
                }
                worked |= result != Ok(Flow::Yield);
            }
            if !worked {
                return Ok(Pause::Waiting);
            }
            if left == 0 {
                return Ok(Pause::Turn);
            }
        }
    }
}
