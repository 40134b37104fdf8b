//! Data parallel primitives: the lane from which each lane reads its source 0 (guide, 7.7).

use crate::fault::Fault;
use crate::isa::{Architecture, Dpp};
use crate::wave::VReg;

/// For each lane, the lane that it reads, or `ZERO`.
pub struct Permutation([u8; 64]);

/// The lane reads 0.
const ZERO: u8 = u8::MAX;

impl Permutation {
    /// The permutation, and the mask of lanes that write their result.
    pub fn new(
        arch: Architecture,
        dpp: Dpp,
        exec: u64,
        lanes: usize,
    ) -> Result<(Self, u64), Fault> {
        let mut from = [ZERO; 64];
        let mut written = 0;
        for (lane, from) in from.iter_mut().enumerate().take(lanes) {
            let source = match dpp {
                Dpp::None => lane,
                Dpp::Dpp8 { sel, .. } => lane & !7 | (sel >> (3 * (lane & 7)) & 7) as usize,
                Dpp::Dpp16 { ctrl, .. } => match wave_source(ctrl, lane) {
                    Some(_) if !arch.is_gfx9() => return Err(Fault::Unknown),
                    Some(source) => source.unwrap_or(usize::MAX),
                    None => match row_source(ctrl, lane & 15)? {
                        Some(in_row) => lane & !15 | in_row,
                        None => usize::MAX,
                    },
                },
            };
            let in_range = source != usize::MAX;
            let active = in_range && exec >> source & 1 != 0;
            let (fetch_inactive, zero_invalid, enabled) = match dpp {
                Dpp::None => (true, true, true),
                Dpp::Dpp8 { fi, .. } => (fi, true, true),
                Dpp::Dpp16 {
                    row_mask,
                    bank_mask,
                    bound_ctrl,
                    fi,
                    ..
                } => (
                    fi,
                    bound_ctrl,
                    row_mask >> (lane / 16) & 1 != 0 && bank_mask >> (lane / 4 % 4) & 1 != 0,
                ),
            };
            // With FI, the guide's text and its table 31 disagree on the value for a lane that is out of range.
            if !in_range && fetch_inactive && enabled && exec >> lane & 1 != 0 {
                return Err(Fault::Unknown);
            }
            let valid = active || in_range && fetch_inactive;
            if valid {
                *from = source as u8;
            }
            if enabled && (valid || zero_invalid) {
                written |= 1 << lane;
            }
        }
        Ok((Permutation(from), written))
    }

    pub fn apply(&self, register: &VReg, out: &mut VReg) {
        for (out, &from) in out.iter_mut().zip(&self.0) {
            *out = register.get(usize::from(from)).copied().unwrap_or(0);
        }
    }
}

/// The lane of the wave that `lane` reads, with a control of gfx9 that crosses rows; `None` within if it is outside of the
/// wave, or if the control does not define one.
fn wave_source(ctrl: u16, lane: usize) -> Option<Option<usize>> {
    Some(match ctrl {
        // WAVE_SHL, WAVE_ROL, WAVE_SHR, WAVE_ROR: by one lane.
        0x130 => Some(lane + 1).filter(|&from| from < 64),
        0x134 => Some((lane + 1) % 64),
        0x138 => lane.checked_sub(1),
        0x13c => Some((lane + 63) % 64),
        // ROW_BCAST15: the last lane of a row to the next row. ROW_BCAST31: lane 31 to the upper half.
        0x142 => (lane / 16).checked_sub(1).map(|row| row * 16 + 15),
        0x143 => (lane >= 32).then_some(31),
        _ => return None,
    })
}

/// The lane within a row of 16 that `lane` reads; `None` if it is outside of the row.
fn row_source(ctrl: u16, lane: usize) -> Result<Option<usize>, Fault> {
    let n = usize::from(ctrl & 15);
    Ok(match ctrl {
        0x000..=0x0ff => Some(lane & !3 | usize::from(ctrl >> (2 * (lane & 3)) & 3)),
        0x101..=0x10f => Some(lane + n).filter(|&from| from < 16),
        0x111..=0x11f => lane.checked_sub(n),
        0x121..=0x12f => Some((lane + 16 - n) & 15),
        0x140 => Some(15 - lane),
        0x141 => Some(lane ^ 7),
        0x150..=0x15f => Some(n),
        0x160..=0x16f => Some(lane ^ n),
        _ => return Err(Fault::Unknown),
    })
}
