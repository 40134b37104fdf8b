//! Which operand codes are valid.

use super::super::operand::Operand;
use super::super::tables::Kind;
use super::error::DecodeError::{self, Unknown};

/// Which registers an operand field can name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum File {
    Scalar,
    Any,
}

/// The operand of gfx11 `code`, if it is valid for this kind.
pub fn gfx11(kind: Kind, code: u32, file: File) -> Result<Operand, DecodeError> {
    use Kind::*;
    let operand = Operand(code as u16);
    let vgpr_only = matches!(kind, V16 | V32 | V64 | V128 | V256);
    let register_only = matches!(kind, R32 | R64 | MASK | NULL);
    let constant = !vgpr_only && !register_only;
    let ok = match code {
        _ if kind == BARRIER => matches!(code, 125 | 128..=208 | 240..=248),
        _ if kind == NULL => operand == Operand::NULL,
        0..=127 => !vgpr_only && kind != ACC && gfx11_scalar_range(kind, code),
        128..=208 | 240..=248 => constant,
        255 => constant && !matches!(kind, ACC | LANE),
        235..=238 | 253 => constant && kind != ACC,
        256..=511 => {
            let registers = kind.bits(64).div_ceil(32) as u32;
            let vector = !register_only && !matches!(kind, S32 | SF16 | SF32 | LANE);
            file == File::Any && vector && code + registers <= 512
        }
        _ => false,
    };
    if ok { Ok(operand) } else { Err(Unknown) }
}

/// Whether an operand of this kind may start at this scalar register: pairs start at even numbers, larger ranges at
/// multiples of four, and no range exceeds its register file.
fn gfx11_scalar_range(kind: Kind, code: u32) -> bool {
    let registers = match kind {
        // One or two registers, depending on the wave size.
        Kind::MASK => return code != 125,
        kind => kind.bits(64).div_ceil(32) as u32,
    };
    if registers == 1 || code == 124 {
        return true;
    }
    let end = code + registers;
    // LLVM does not have triples of TTMPs or VCC.
    if registers == 3 && end > 106 {
        return false;
    }
    code.is_multiple_of(registers.next_power_of_two().min(4))
        && match code {
            0..=107 => end <= 108,
            108..=123 => end <= 124,
            126 => registers == 2,
            _ => false,
        }
}

/// The operand `code`, if it is valid for this kind. `code` is a code of gfx9.
pub fn gfx9(kind: Kind, code: u32, file: File) -> Result<Operand, DecodeError> {
    use Kind::*;
    // M0, and a reserved code that is NULL in gfx11.
    let code = match code {
        124 => 125,
        125 => return Err(Unknown),
        code => code,
    };
    let registers = kind.bits(64).div_ceil(32) as u32;
    let vgpr_only = matches!(
        kind,
        V16 | V32 | V64 | V128 | A32 | AV32 | AV64 | AV128 | AV256 | AV512 | AV1024
    );
    let register_only = matches!(kind, R32 | R64 | MASK);
    let constant = !vgpr_only && !register_only;
    let ok = match code {
        0..=127 => !vgpr_only && gfx9_scalar_range(registers, code),
        128..=208 | 240..=248 => constant,
        255 => constant && kind != LANE,
        235..=238 | 251..=253 => constant,
        256..=511 => {
            let vector = !register_only && !matches!(kind, S32 | LANE | A32);
            file == File::Any && vector && vector_range(registers, code - 256)
        }
        _ => false,
    };
    if ok {
        Ok(Operand(code as u16))
    } else {
        Err(Unknown)
    }
}

/// Whether that many scalar registers can start at this number: pairs start at even numbers, larger ranges at multiples
/// of four.
fn gfx9_scalar_range(registers: u32, code: u32) -> bool {
    let end = code + registers;
    match code {
        _ if registers == 1 => true,
        _ if !code.is_multiple_of(registers.min(4)) => false,
        0..=101 => end <= 102,
        102..=107 | 126 => registers == 2,
        108..=123 => end <= 124,
        _ => false,
    }
}

/// Whether that many vector registers can start at this number. Ranges start at even numbers.
fn vector_range(registers: u32, first: u32) -> bool {
    first + registers <= 256 && (registers <= 1 || first.is_multiple_of(2))
}

/// An AccVGPR operand, or several.
pub fn agpr(kind: Kind, n: u32) -> Result<Operand, DecodeError> {
    if vector_range(kind.bits(64).div_ceil(32) as u32, n) {
        Ok(Operand::agpr(n as u16))
    } else {
        Err(Unknown)
    }
}
