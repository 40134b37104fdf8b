//! The values of scalar operands, the registers of vector operands, and the active lanes.

use crate::fault::Fault;
use crate::isa::{Inst, Operand};
use crate::memory::{LDS_APERTURE, SCRATCH_APERTURE};
use crate::wave::{VReg, Wave};

/// The inline constants from code 240 on.
const FLOATS: [f64; 8] = [0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0];

/// The 32-bit value of a scalar operand: SGPR, inline constant (an integer, or the bits of an f32), literal, SCC.
/// Fails with [`Fault::Unknown`] for VGPRs and apertures.
pub fn scalar32(wave: &Wave, inst: &Inst, operand: Operand) -> Result<u32, Fault> {
    Ok(match operand.0 {
        124 => 0,
        n @ 0..=127 => wave.sgpr[n as usize],
        n @ 128..=192 => u32::from(n) - 128,
        n @ 193..=208 => (192 - i32::from(n)) as u32,
        n @ 240..=247 => (FLOATS[usize::from(n) - 240] as f32).to_bits(),
        248 => 0x3e22_f983,
        251 => u32::from(wave.vcc() == 0),
        252 => u32::from(wave.exec() == 0),
        253 => u32::from(wave.scc),
        255 => inst.literal,
        _ => return Err(Fault::Unknown),
    })
}

/// The 64-bit value of a scalar operand: a pair of SGPRs, an inline constant (a sign-extended integer, or the bits of an
/// f64), an aperture. A literal is zero-extended; operations on signed numbers sign-extend it themselves.
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
        n @ 240..=247 => FLOATS[usize::from(n) - 240].to_bits(),
        248 => 0x3fc4_5f30_6dc9_c882,
        251 => u64::from(wave.vcc() == 0),
        252 => u64::from(wave.exec() == 0),
        253 => u64::from(wave.scc),
        255 => u64::from(inst.literal),
        _ => return Err(Fault::Unknown),
    })
}

/// The number of the first of the `count` vector registers that start at `operand`. Fails if one is not allocated.
#[inline]
pub fn vgprs(wave: &Wave, operand: Operand, count: usize) -> Result<usize, Fault> {
    let first = operand.as_vgpr().ok_or(Fault::Unknown)?;
    if first + count > wave.vgpr.len() {
        return Err(Fault::Vgpr(first + count - 1));
    }
    Ok(first)
}

/// Like [`vgprs`], for an operand that can be an AccVGPR: the number in the file of [`file_mut`].
#[inline]
pub fn vectors(wave: &Wave, operand: Operand, count: usize) -> Result<usize, Fault> {
    let Some(first) = operand.as_agpr() else {
        return vgprs(wave, operand, count);
    };
    if first + count > wave.agpr.len() {
        return Err(Fault::Agpr(first + count - 1));
    }
    Ok(first)
}

/// The AccVGPRs if `acc`, otherwise the VGPRs.
#[inline]
pub fn file_mut(wave: &mut Wave, acc: bool) -> &mut [VReg] {
    if acc { &mut wave.agpr } else { &mut wave.vgpr }
}

/// The set bits of a lane mask, lowest first.
#[inline]
pub fn lanes(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let lane = mask.trailing_zeros() as usize;
        mask &= mask - 1;
        Some(lane)
    })
}
