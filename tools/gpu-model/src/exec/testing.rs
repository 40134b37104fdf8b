//! What the unit tests of the executors share.

use crate::isa::{Dpp, Encoding, Inst, Op, Operand};
use crate::wave::Wave;

/// A wave with 32 vector registers, all lanes active.
pub fn wave(lanes: usize) -> Wave {
    let mut wave = Wave {
        pc: 0,
        lanes,
        sgpr: [0; 128],
        scc: false,
        vgpr: vec![[0; 64]; 32],
        mode: 0,
    };
    wave.set_exec(u64::MAX);
    wave
}

/// An instruction without operands.
pub fn inst(op: Op, enc: Encoding) -> Inst {
    Inst {
        op,
        enc,
        len: 4,
        dst: Operand::NONE,
        dst2: Operand::NONE,
        src: [Operand::NONE; 3],
        literal: 0,
        neg: 0,
        abs: 0,
        opsel: 0,
        opsel_hi: 0,
        clamp: false,
        omod: 0,
        imm: 0,
        imm2: 0,
        glc: false,
        slc: false,
        dlc: false,
        flag: false,
        dpp: Dpp::None,
        dual: None,
    }
}
