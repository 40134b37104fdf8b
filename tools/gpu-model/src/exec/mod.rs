//! What each instruction does.

use crate::isa::{Encoding, Inst, Operand};
use crate::memory::{LDS_APERTURE, SCRATCH_APERTURE, View};
use crate::wave::Wave;

mod access;
mod atomic;
mod flat;
mod lds;
mod salu;
mod smem;
#[cfg(test)]
mod testing;
pub mod valu;

/// Why a wave cannot go on. Whoever runs the wave adds kernel, program counter and words.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Fault {
    /// The instruction, or this form of it, is not modelled.
    #[error("instruction not modelled")]
    Unknown,
    /// The words at the program counter are no instruction.
    #[error("no instruction of gfx1100")]
    Illegal,
    /// A register beyond those that the kernel descriptor granted.
    #[error("register v{0} beyond those the kernel was granted")]
    Vgpr(usize),
    /// A scalar register beyond s105.
    #[error("register s{0}, which does not exist")]
    Sgpr(usize),
    /// An access outside what was allocated.
    #[error("{} of {size} bytes at {address:#x}, where no {}memory is allocated",
        if *write { "write" } else { "read" }, if *write { "writable " } else { "" })]
    Memory {
        address: u64,
        size: usize,
        write: bool,
        /// The lane of a vector access; here and in the others.
        lane: Option<u8>,
    },
    /// An access outside the lane's private segment.
    #[error(
        "access of {size} bytes at private offset {offset:#x}, outside the {limit:#x} bytes of the lane"
    )]
    Scratch {
        offset: u64,
        size: usize,
        limit: usize,
        lane: Option<u8>,
    },
    /// An access outside the workgroup's LDS.
    #[error(
        "access of {size} bytes at LDS offset {offset:#x}, outside the {limit:#x} bytes of the workgroup"
    )]
    Lds {
        offset: u64,
        size: usize,
        limit: usize,
        lane: Option<u8>,
    },
    /// An atomic access must be naturally aligned.
    #[error("atomic access of {size} bytes at {address:#x}, which is not aligned")]
    Alignment {
        address: u64,
        size: usize,
        lane: Option<u8>,
    },
    /// `s_trap`: how `__builtin_trap`, `abort` and a failed `assert` of device code end.
    #[error("the kernel trapped (s_trap {0}: __builtin_trap, abort or a failed assert)")]
    Trap(u8),
}

impl Fault {
    /// The same, of this lane.
    fn in_lane(mut self, number: usize) -> Fault {
        use Fault::*;
        if let Memory { lane, .. }
        | Scratch { lane, .. }
        | Lds { lane, .. }
        | Alignment { lane, .. } = &mut self
        {
            *lane = Some(number as u8);
        }
        self
    }

    /// The lane whose access it was.
    pub fn lane(&self) -> Option<u8> {
        use Fault::*;
        match self {
            Memory { lane, .. }
            | Scratch { lane, .. }
            | Lds { lane, .. }
            | Alignment { lane, .. } => *lane,
            Unknown | Illegal | Vgpr(_) | Sgpr(_) | Trap(_) => None,
        }
    }
}

/// What a wave does after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Go on at the program counter.
    Next,
    /// Wait for the other waves of the workgroup.
    Barrier,
    /// Let others run first (`s_sleep`).
    Yield,
    /// Forget the decoded instructions (`s_icache_inv`).
    Refetch,
    End,
}

/// What a wave's instructions reach beside its registers.
pub struct Surroundings<'a> {
    pub memory: &'a mut View,
    /// The workgroup's.
    pub lds: &'a mut [u8],
    /// The wave's private segments.
    pub scratch: &'a mut Scratch,
}

/// The private segments of a wave's lanes, one behind the other. Made when first touched.
#[derive(Debug)]
pub struct Scratch {
    bytes: Vec<u8>,
    lane_size: usize,
    lanes: usize,
}

impl Scratch {
    pub fn new(lane_size: usize, lanes: usize) -> Scratch {
        Scratch {
            bytes: Vec::new(),
            lane_size,
            lanes,
        }
    }

    fn lane(&mut self, lane: usize) -> &mut [u8] {
        if self.bytes.is_empty() {
            self.bytes = vec![0; self.lane_size * self.lanes];
        }
        &mut self.bytes[lane * self.lane_size..][..self.lane_size]
    }
}

/// The ticks of the GPU's constant 100 MHz clock, as in a signal's start and end time.
pub fn clock_ticks() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a timespec to write to. CLOCK_MONOTONIC exists on every Linux, so it cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 100_000_000 + now.tv_nsec as u64 / 10
}

/// Runs one instruction. The program counter already stands behind it.
#[inline]
pub fn execute(wave: &mut Wave, inst: &Inst, around: &mut Surroundings<'_>) -> Result<Flow, Fault> {
    match inst.enc {
        Encoding::Vop1
        | Encoding::Vop2
        | Encoding::Vopc
        | Encoding::Vop3
        | Encoding::Vop3Sd
        | Encoding::Vop3p
        | Encoding::Vopd => valu::execute(wave, inst).map(|()| Flow::Next),
        Encoding::Sop1 => salu::sop1(wave, inst).map(|()| Flow::Next),
        Encoding::Sop2 => salu::sop2(wave, inst).map(|()| Flow::Next),
        Encoding::Sopc => salu::sopc(wave, inst).map(|()| Flow::Next),
        Encoding::Sopk => salu::sopk(wave, inst).map(|()| Flow::Next),
        Encoding::Sopp => salu::sopp(wave, inst),
        Encoding::Smem => smem::execute(wave, inst, around.memory).map(|()| Flow::Next),
        // The model has no caches.
        Encoding::Mubuf => Ok(Flow::Next),
        Encoding::Ds => lds::execute(wave, inst, around.lds).map(|()| Flow::Next),
        Encoding::Flat | Encoding::Global | Encoding::Scratch => {
            flat::execute(wave, inst, around).map(|()| Flow::Next)
        }
    }
}

/// The 32-bit value of a scalar operand: SGPR, inline constant (integers as such, floats as f32 bits),
/// literal, SCC. VGPRs and apertures are not scalar: [`Fault::Unknown`].
pub fn scalar32(wave: &Wave, inst: &Inst, operand: Operand) -> Result<u32, Fault> {
    Ok(match operand.0 {
        124 => 0,
        n @ 0..=127 => wave.sgpr[n as usize],
        n @ 128..=192 => u32::from(n) - 128,
        n @ 193..=208 => (192 - i32::from(n)) as u32,
        240 => 0.5f32.to_bits(),
        241 => (-0.5f32).to_bits(),
        242 => 1.0f32.to_bits(),
        243 => (-1.0f32).to_bits(),
        244 => 2.0f32.to_bits(),
        245 => (-2.0f32).to_bits(),
        246 => 4.0f32.to_bits(),
        247 => (-4.0f32).to_bits(),
        248 => 0x3e22_f983,
        253 => u32::from(wave.scc),
        255 => inst.literal,
        _ => return Err(Fault::Unknown),
    })
}

/// The 64-bit value of a scalar operand: a pair of SGPRs, an inline constant (integers sign-extended, floats
/// as f64 bits), an aperture. A literal is zero-extended; an operation on signed numbers extends it itself.
pub fn scalar64(wave: &Wave, inst: &Inst, operand: Operand) -> Result<u64, Fault> {
    Ok(match operand.0 {
        124 => 0,
        n @ 0..=126 => {
            if n == 105 || n == 123 {
                return Err(Fault::Sgpr(n as usize + 1));
            }
            wave.sgpr64(operand)
        }
        n @ 128..=192 => u64::from(n) - 128,
        n @ 193..=208 => (192 - i64::from(n)) as u64,
        235 => u64::from(LDS_APERTURE) << 32,
        236 => u64::from(LDS_APERTURE) << 32 | 0xffff_ffff,
        237 => u64::from(SCRATCH_APERTURE) << 32,
        238 => u64::from(SCRATCH_APERTURE) << 32 | 0xffff_ffff,
        240 => 0.5f64.to_bits(),
        241 => (-0.5f64).to_bits(),
        242 => 1.0f64.to_bits(),
        243 => (-1.0f64).to_bits(),
        244 => 2.0f64.to_bits(),
        245 => (-2.0f64).to_bits(),
        246 => 4.0f64.to_bits(),
        247 => (-4.0f64).to_bits(),
        248 => 0x3fc4_5f30_6dc9_c882,
        253 => u64::from(wave.scc),
        255 => u64::from(inst.literal),
        _ => return Err(Fault::Unknown),
    })
}

/// The number of the first of `count` vector registers that `operand` names.
fn vgprs(wave: &Wave, operand: Operand, count: usize) -> Result<usize, Fault> {
    let first = operand.as_vgpr().ok_or(Fault::Unknown)?;
    if first + count > wave.vgpr.len() {
        return Err(Fault::Vgpr(first + count - 1));
    }
    Ok(first)
}

/// The set bits of a lane mask, lowest first.
fn lanes(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let lane = mask.trailing_zeros() as usize;
        mask &= mask - 1;
        Some(lane)
    })
}
