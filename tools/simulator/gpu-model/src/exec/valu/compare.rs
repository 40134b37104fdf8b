//! Comparisons: `v_cmp` writes a lane mask to a scalar register, `v_cmpx` to EXEC.

use half::f16;

use super::alu::Alu;
use super::float::Float;
use super::map::ballot;
use super::value::{Moved, Value};
use crate::fault::Fault;

/// Executes the comparison with the VOPC opcode `code` of gfx11. The bits of the opcode define the comparison (guide, 16.9):
/// bit 7 is set if it writes EXEC, bits 6 to 4 are the type, and the low bits are the condition: less, equal, greater,
/// unordered. In gfx9, bit 4 is set if it writes EXEC, and it writes the lane mask as well.
pub fn execute(alu: &mut Alu, code: u16) -> Result<(), Fault> {
    let gfx9 = alu.inst.arch.is_gfx9();
    let code = if gfx9 { gfx11_code(code)? } else { code };
    // For floats, CLAMP enables exceptions, which are not modelled. For other types, it is ignored.
    alu.clamp = false;
    let condition = code & 0xf;
    let bits = match code & 0x7f {
        0x7d => class::<f16, u16>(alu)?,
        0x7e => class::<f32, u32>(alu)?,
        0x7f => class::<f64, u32>(alu)?,
        0x00..=0x0f => relation::<f16>(alu, condition)?,
        0x10..=0x1f => relation::<f32>(alu, condition)?,
        0x20..=0x2f => relation::<f64>(alu, condition)?,
        0x30..=0x37 => relation::<i16>(alu, condition)?,
        0x38..=0x3f => relation::<u16>(alu, condition & 7)?,
        0x40..=0x47 => relation::<i32>(alu, condition)?,
        0x48..=0x4f => relation::<u32>(alu, condition & 7)?,
        0x50..=0x57 => relation::<i64>(alu, condition)?,
        0x58..=0x5f => relation::<u64>(alu, condition & 7)?,
        _ => return Err(Fault::Unknown),
    };
    if code & 0x80 == 0 || gfx9 {
        alu.store_mask(alu.dst, bits)?;
    }
    if code & 0x80 != 0 {
        alu.wave.set_exec(bits & alu.active);
    }
    Ok(())
}

/// Executes the comparison of floats with the SOPC opcode `code` of gfx12, whose low bits are the condition.
pub fn scalar(alu: &mut Alu, code: u16) -> Result<(), Fault> {
    let bits = match code {
        0x40..=0x4f => relation::<f32>(alu, code & 0xf)?,
        0x50..=0x5f => relation::<f16>(alu, code & 0xf)?,
        _ => return Err(Fault::Unknown),
    };
    // All lanes are equal.
    alu.wave.scc = bits & 1 != 0;
    Ok(())
}

/// The opcode in gfx11 of an opcode of gfx9.
fn gfx11_code(code: u16) -> Result<u16, Fault> {
    let (exec, rest) = (code << 3 & 0x80, code & !0x10);
    Ok(exec
        | match rest {
            // Classes: the last bit is set if it writes EXEC.
            0x00..=0x05 if exec != 0 => {
                let class = [0x7e, 0x7f, 0x7d][usize::from(rest / 2)];
                return Ok(class | (rest & 1) << 7);
            }
            0x20..=0x2f => rest - 0x20,
            0x40..=0x4f => rest - 0x30,
            0x60..=0x6f => rest - 0x40,
            0xa0..=0xaf => rest - 0x70,
            0xc0..=0xcf => rest - 0x80,
            0xe0..=0xef => rest - 0x90,
            _ => return Err(Fault::Unknown),
        })
}

fn relation<T: Value + PartialOrd>(alu: &mut Alu, condition: u16) -> Result<u64, Fault> {
    let (mut a, mut b) = ([T::Raw::default(); 64], [T::Raw::default(); 64]);
    let (a, b) = (T::fetch(alu, 0, &mut a)?, T::fetch(alu, 1, &mut b)?);
    let has = |bit: u16| condition >> bit & 1 != 0;
    let (less, equal, greater, unordered) = (has(0), has(1), has(2), has(3));
    let mut flags = [false; 64];
    for i in 0..alu.lanes() {
        let (a, b) = (T::of(a[i]), T::of(b[i]));
        let (lt, eq, gt) = (a < b, a == b, a > b);
        flags[i] = (lt & less) | (eq & equal) | (gt & greater) | (!(lt | eq | gt) & unordered);
    }
    Ok(ballot(&flags))
}

/// Whether the float belongs to one of the classes in the mask of the second source.
fn class<T: Float, M: Value + Into<u32>>(alu: &mut Alu) -> Result<u64, Fault>
where
    Moved<T>: Value,
{
    let mut a = [<Moved<T> as Value>::Raw::default(); 64];
    let mut b = [M::Raw::default(); 64];
    let a = Moved::<T>::fetch(alu, 0, &mut a)?;
    let b = M::fetch(alu, 1, &mut b)?;
    let mut flags = [false; 64];
    for i in 0..alu.lanes() {
        let classes: u32 = M::of(b[i]).into();
        flags[i] = classes >> class_of(Moved::<T>::of(a[i]).0) & 1 != 0;
    }
    Ok(ballot(&flags))
}

fn class_of<T: Float>(value: T) -> u32 {
    if value.is_nan() {
        return if value.is_signaling() { 0 } else { 1 };
    }
    let (negative, positive) = if value.is_infinite() {
        (2, 9)
    } else if value.is_zero() {
        (5, 6)
    } else if value.is_denormal() {
        (4, 7)
    } else {
        (3, 8)
    };
    if value.is_negative() {
        negative
    } else {
        positive
    }
}
