//! Execution: what each instruction does to a wave and to memory.

mod access;
mod address_spaces;
mod atomic;
mod flat;
mod flow;
mod gws;
mod lds;
mod operand;
mod salu;
mod smem;
#[cfg(test)]
mod testing;
mod valu;

pub use crate::clock::clock_ticks;
pub use crate::fault::Fault;
pub use address_spaces::{AddressSpaces, FLAT_SCRATCH_INIT, SCRATCH_RESOURCE, Scratch};
pub use flow::Flow;
pub use gws::Gws;

use crate::isa::{Encoding, Inst};
use crate::wave::Wave;

/// Executes one instruction. The program counter is already at the next one.
#[inline]
pub fn execute(
    wave: &mut Wave,
    inst: &Inst,
    spaces: &mut AddressSpaces<'_>,
) -> Result<Flow, Fault> {
    match inst.enc {
        Encoding::Vop1
        | Encoding::Vop2
        | Encoding::Vopc
        | Encoding::Vop3
        | Encoding::Vop3Sd
        | Encoding::Vop3p
        | Encoding::Mai
        | Encoding::Vopd
        | Encoding::ScalarFloat => valu::execute(wave, inst).map(|()| Flow::Next),
        Encoding::Sop1 => salu::sop1(wave, inst).map(|()| Flow::Next),
        Encoding::Sop2 => salu::sop2(wave, inst).map(|()| Flow::Next),
        Encoding::Sopc => salu::sopc(wave, inst).map(|()| Flow::Next),
        Encoding::Sopk => salu::sopk(wave, inst).map(|()| Flow::Next),
        Encoding::Sopp => salu::sopp(wave, inst),
        Encoding::Smem => smem::execute(wave, inst, spaces.global).map(|()| Flow::Next),
        // The model has no caches.
        Encoding::Cache => Ok(Flow::Next),
        Encoding::Ds if inst.flag => gws::execute(wave, inst, spaces.gws),
        Encoding::Ds => lds::execute(wave, inst, spaces.lds).map(|()| Flow::Next),
        Encoding::Flat | Encoding::Global | Encoding::Scratch | Encoding::Mubuf => {
            flat::execute(wave, inst, spaces).map(|()| Flow::Next)
        }
    }
}
