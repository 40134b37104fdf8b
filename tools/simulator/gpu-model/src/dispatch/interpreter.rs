//! The loop over the instructions of a wave.

use std::sync::Arc;

use super::code_cache::CodeCache;
use crate::exec::{self, AddressSpaces, Flow, Gws, Scratch};
use crate::fault::Fault;
use crate::isa::Architecture;
use crate::memory::{Memory, View};
use crate::wave::Wave;

/// The state of a host thread that runs waves.
pub struct Interpreter {
    pub memory: View,
    pub code: CodeCache,
    gws: Arc<Gws>,
    /// Wave instructions executed.
    pub instructions: u64,
    /// Vector instructions executed, times their active lanes.
    pub lane_instructions: u64,
}

impl Interpreter {
    pub fn new(memory: Arc<Memory>, gws: Arc<Gws>, arch: Architecture) -> Interpreter {
        Interpreter {
            memory: View::new(memory),
            code: CodeCache::new(arch),
            gws,
            instructions: 0,
            lane_instructions: 0,
        }
    }

    /// Runs a wave until it waits, yields or ends, or until it has executed `budget` instructions. On return, `budget` is
    /// the number of instructions that are left. After a fault, the program counter is the address of the faulting
    /// instruction.
    ///
    /// `single`: the wave is the only one in its workgroup, so it does not wait at barriers.
    #[inline]
    pub fn run(
        &mut self,
        wave: &mut Wave,
        lds: &mut [u8],
        scratch: &mut Scratch,
        budget: &mut u32,
        single: bool,
    ) -> Result<Flow, Fault> {
        let before = *budget;
        let mut lane_instructions = 0;
        let result = loop {
            if *budget == 0 {
                break Ok(Flow::Next);
            }
            *budget -= 1;
            let pc = wave.pc;
            let inst = match self.code.fetch(pc, &mut self.memory) {
                Ok(inst) => inst,
                Err(fault) => break Err(fault),
            };
            if inst.enc.is_vector() {
                lane_instructions += wave.active_lanes();
            }
            wave.pc = pc + u64::from(inst.len);
            let mut spaces = AddressSpaces {
                global: &mut self.memory,
                lds,
                scratch,
                gws: &self.gws,
            };
            match exec::execute(wave, inst, &mut spaces) {
                Ok(Flow::Next) => {}
                Ok(Flow::Barrier) if single => {}
                Ok(Flow::Refetch) => self.code.invalidate(),
                Ok(flow) => break Ok(flow),
                Err(fault) => {
                    wave.pc = pc;
                    break Err(fault);
                }
            }
        };
        self.instructions += u64::from(before - *budget);
        self.lane_instructions += lane_instructions;
        result
    }
}
