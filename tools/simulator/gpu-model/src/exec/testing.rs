//! Helpers for the unit tests of the executors.

use crate::isa::{Encoding, Inst, Op, example};
use crate::wave::Wave;

/// A wave with 32 vector registers, all lanes active.
pub fn wave(lanes: usize) -> Wave {
    let mut wave = Wave {
        pc: 0,
        lanes,
        sgpr: [0; 128],
        scc: false,
        vgpr: vec![[0; 64]; 32],
        agpr: vec![[0; 64]; 32],
        mode: 0,
        hw_id: 0,
        xcc_id: 0,
        gws_wait: None,
        barriers_signalled: 0,
        barriers_passed: 0,
    };
    wave.set_exec(u64::MAX);
    wave
}

/// An instruction without operands.
pub fn inst(op: Op, enc: Encoding) -> Inst {
    Inst {
        len: 4,
        ..example(op, enc)
    }
}
