//! The types of operands and results. A type determines how an operand is read and how a result is written: its width, which
//! half OP_SEL selects, and what NEG, ABS, OMOD and CLAMP do.

use half::f16;

use super::alu::{Alu, Lanes, Literal64};
use super::float::Float;
use crate::fault::Fault;

/// The type of an operand or a result.
pub trait Value: Copy {
    /// The type of the bits of a lane: `u32` for 16 and 32 bits, `u64` for 64.
    type Raw: Copy + Default;
    fn of(raw: Self::Raw) -> Self;
    fn raw(self) -> Self::Raw;
    /// Reads source `i` with its modifiers. Returns the register itself if its value does not have to be changed, otherwise
    /// `buffer`.
    fn fetch<'b>(
        alu: &'b Alu,
        i: usize,
        buffer: &'b mut Lanes<Self::Raw>,
    ) -> Result<&'b Lanes<Self::Raw>, Fault>;
    /// Applies the output modifiers and writes the destination.
    fn store(alu: &mut Alu, lanes: &mut Lanes<Self::Raw>) -> Result<(), Fault>;
}

/// Checks that an integer source does not have float modifiers, and has OP_SEL only if it is 16 bits wide (`half`).
fn check_integer_modifiers(alu: &Alu, i: usize, half: bool) -> Result<(), Fault> {
    if alu.modifiers(i) != (false, false) || !half && alu.high_half(i) {
        return Err(Fault::Unknown);
    }
    Ok(())
}

macro_rules! integers {
    ($($type:ty: $raw:ty, $fetch:expr, $store:expr;)*) => {$(
        impl Value for $type {
            type Raw = $raw;
            #[inline(always)]
            fn of(raw: $raw) -> Self {
                raw as $type
            }
            #[inline(always)]
            fn raw(self) -> $raw {
                self as $raw
            }
            fn fetch<'b>(
                alu: &'b Alu,
                i: usize,
                buffer: &'b mut Lanes<$raw>,
            ) -> Result<&'b Lanes<$raw>, Fault> {
                check_integer_modifiers(alu, i, size_of::<$type>() == 2)?;
                $fetch(alu, i, buffer)
            }
            fn store(alu: &mut Alu, lanes: &mut Lanes<$raw>) -> Result<(), Fault> {
                if alu.clamp {
                    return Err(Fault::Unknown);
                }
                $store(alu, lanes)
            }
        }
    )*};
}

fn half_word<'b>(
    alu: &'b Alu,
    i: usize,
    buffer: &'b mut Lanes<u32>,
) -> Result<&'b Lanes<u32>, Fault> {
    alu.source16(i, false, buffer)?;
    Ok(buffer)
}

fn signed64<'b>(
    alu: &'b Alu,
    i: usize,
    buffer: &'b mut Lanes<u64>,
) -> Result<&'b Lanes<u64>, Fault> {
    alu.source64(i, Literal64::Signed, buffer)?;
    Ok(buffer)
}

fn unsigned64<'b>(
    alu: &'b Alu,
    i: usize,
    buffer: &'b mut Lanes<u64>,
) -> Result<&'b Lanes<u64>, Fault> {
    alu.source64(i, Literal64::Unsigned, buffer)?;
    Ok(buffer)
}

integers! {
    u16: u32, half_word, Alu::write16;
    i16: u32, half_word, Alu::write16;
    u32: u32, Alu::source32, |alu: &mut Alu, lanes: &mut Lanes<u32>| alu.write32(lanes);
    i32: u32, Alu::source32, |alu: &mut Alu, lanes: &mut Lanes<u32>| alu.write32(lanes);
    u64: u64, unsigned64, |alu: &mut Alu, lanes: &mut Lanes<u64>| alu.write64(lanes);
    i64: u64, signed64, |alu: &mut Alu, lanes: &mut Lanes<u64>| alu.write64(lanes);
}

/// A float that is moved, not computed with: NEG and ABS apply, denormals are kept, and there are no output modifiers.
#[derive(Clone, Copy)]
pub struct Moved<T: Float>(pub T);

macro_rules! floats {
    ($($type:ty: $raw:ty, $bits:ty, $fetch:expr, $store:expr;)*) => {$(
        impl Value for $type {
            type Raw = $raw;
            #[inline(always)]
            fn of(raw: $raw) -> Self {
                <$type>::from_bits(raw as $bits)
            }
            #[inline(always)]
            fn raw(self) -> $raw {
                <$raw>::from(self.to_bits())
            }
            fn fetch<'b>(
                alu: &'b Alu,
                i: usize,
                buffer: &'b mut Lanes<$raw>,
            ) -> Result<&'b Lanes<$raw>, Fault> {
                if !alu.mode.flushes_input(<$type>::WIDE_MODE) {
                    return Moved::<$type>::fetch(alu, i, buffer);
                }
                let mut source = [0; 64];
                let source = Moved::<$type>::fetch(alu, i, &mut source)?;
                for (flushed, raw) in buffer.iter_mut().zip(source) {
                    *flushed = Self::of(*raw).flushed().raw();
                }
                Ok(buffer)
            }
            fn store(alu: &mut Alu, lanes: &mut Lanes<$raw>) -> Result<(), Fault> {
                let flush = alu.mode.flushes_output(<$type>::WIDE_MODE);
                // OMOD is ignored with IEEE rules or denormal results (guide, 7.2.3.1).
                let omod = if flush && !alu.mode.ieee() { alu.inst.omod } else { 0 };
                if flush || alu.clamp {
                    let factor = <$type>::from_f64([1.0, 2.0, 4.0, 0.5][usize::from(omod & 3)]);
                    let dx10 = alu.mode.dx10_clamp();
                    for raw in lanes.iter_mut() {
                        let mut value = Self::of(*raw);
                        if omod != 0 {
                            value = value.mul(factor);
                        }
                        if flush {
                            value = value.flushed();
                            if omod != 0 && value.is_zero() {
                                value = Self::of(0);
                            }
                        }
                        if alu.clamp {
                            value = value.clamped(dx10);
                        }
                        *raw = value.raw();
                    }
                }
                $store(alu, lanes)
            }
        }

        impl Value for Moved<$type> {
            type Raw = $raw;
            #[inline(always)]
            fn of(raw: $raw) -> Self {
                Moved(<$type>::of(raw))
            }
            #[inline(always)]
            fn raw(self) -> $raw {
                self.0.raw()
            }
            fn fetch<'b>(
                alu: &'b Alu,
                i: usize,
                buffer: &'b mut Lanes<$raw>,
            ) -> Result<&'b Lanes<$raw>, Fault> {
                const SIGN: $raw = 1 << (<$type>::WIDTH - 1);
                if <$type>::WIDTH != 16 && alu.high_half(i) {
                    return Err(Fault::Unknown);
                }
                let (neg, abs) = alu.modifiers(i);
                if !neg && !abs {
                    return $fetch(alu, i, buffer);
                }
                let mut kept = [0; 64];
                let kept: &Lanes<$raw> = $fetch(alu, i, &mut kept)?;
                let keep = if abs { !SIGN } else { !0 };
                let flip = if neg { SIGN } else { 0 };
                for (modified, raw) in buffer.iter_mut().zip(kept) {
                    *modified = raw & keep ^ flip;
                }
                Ok(buffer)
            }
            fn store(alu: &mut Alu, lanes: &mut Lanes<$raw>) -> Result<(), Fault> {
                if alu.clamp {
                    return Err(Fault::Unknown);
                }
                $store(alu, lanes)
            }
        }
    )*};
}

fn half_float<'b>(
    alu: &'b Alu,
    i: usize,
    buffer: &'b mut Lanes<u32>,
) -> Result<&'b Lanes<u32>, Fault> {
    alu.source16(i, true, buffer)?;
    Ok(buffer)
}

fn double<'b>(alu: &'b Alu, i: usize, buffer: &'b mut Lanes<u64>) -> Result<&'b Lanes<u64>, Fault> {
    alu.source64(i, Literal64::High, buffer)?;
    Ok(buffer)
}

floats! {
    f16: u32, u16, half_float, Alu::write16;
    f32: u32, u32, Alu::source32, |alu: &mut Alu, lanes: &mut Lanes<u32>| alu.write32(lanes);
    f64: u64, u64, double, |alu: &mut Alu, lanes: &mut Lanes<u64>| alu.write64(lanes);
}
