//! How a vector instruction meets the registers: operands are fetched for all lanes at once, with their modifiers,
//! a function runs over the lanes, and the result is written where EXEC allows.
//!
//! The functions over lanes know nothing of instructions, so the compiler can turn them into vector code.

use half::f16;

use super::dpp::Permutation;
use super::float::{Float, Mode, Round};
use crate::exec::{Fault, scalar32};
use crate::isa::{Dpp, Inst, Operand};
use crate::wave::{VReg, Wave};

/// A value of each lane. A wave32 uses the first 32.
pub type Lanes<T> = [T; 64];

/// What reads of one bit pattern: the type of an operand or a result.
pub trait Value: Copy {
    /// The bits as they are kept in lanes: `u32` for 16 and 32 bits, `u64` for 64.
    type Raw: Copy + Default;
    fn of(raw: Self::Raw) -> Self;
    fn raw(self) -> Self::Raw;
    /// Source `i`, in `buffer` or straight from the register file.
    fn fetch<'b>(
        alu: &'b Alu,
        i: usize,
        buffer: &'b mut Lanes<Self::Raw>,
    ) -> Result<&'b Lanes<Self::Raw>, Fault>;
    /// Writes the destination, after the output modifiers.
    fn store(alu: &mut Alu, lanes: &mut Lanes<Self::Raw>) -> Result<(), Fault>;
}

/// One instruction at work on one wave.
pub struct Alu<'a> {
    pub wave: &'a mut Wave,
    pub inst: &'a Inst,
    pub src: [Operand; 3],
    pub dst: Operand,
    pub opsel: u8,
    pub mode: Mode,
    /// The lanes that write: EXEC without those that DPP turned off.
    pub active: u64,
    /// The clamp bit, until somebody has acted on it.
    pub clamp: bool,
    permutation: Option<Permutation>,
}

impl<'a> Alu<'a> {
    pub fn new(wave: &'a mut Wave, inst: &'a Inst) -> Result<Self, Fault> {
        let mut active = wave.exec();
        let mut permutation = None;
        if inst.dpp != Dpp::None {
            let (p, written) = Permutation::new(inst.dpp, active, wave.lanes)?;
            permutation = Some(p);
            active &= written;
        }
        Ok(Alu {
            src: inst.src,
            dst: inst.dst,
            opsel: inst.opsel,
            mode: Mode(wave.mode),
            active,
            clamp: inst.clamp,
            permutation,
            wave,
            inst,
        })
    }

    pub fn lanes(&self) -> usize {
        self.wave.lanes.min(64)
    }

    /// All lanes of the wave as a mask.
    pub fn all(&self) -> u64 {
        !0 >> (64 - self.lanes())
    }

    pub fn has_dpp(&self) -> bool {
        self.permutation.is_some()
    }

    /// Takes the clamp bit as "saturate" for an integer operation.
    pub fn saturates(&mut self) -> bool {
        std::mem::take(&mut self.clamp)
    }

    pub fn round<T: Float>(&self) -> Round {
        self.mode.round(T::WIDE_MODE)
    }

    /// Lets the third source be what the destination holds (`v_fmac` and its like).
    pub fn accumulate(&mut self) {
        self.src[2] = self.dst;
        self.opsel = self.opsel & 0b1011 | (self.opsel >> 1 & 0b0100);
    }

    pub fn vgpr(&self, n: usize) -> Result<&VReg, Fault> {
        self.wave.vgpr.get(n).ok_or(Fault::Vgpr(n))
    }

    pub fn vgpr_mut(&mut self, n: usize) -> Result<&mut VReg, Fault> {
        self.wave.vgpr.get_mut(n).ok_or(Fault::Vgpr(n))
    }

    /// The number of the destination VGPR.
    pub fn destination(&self) -> Result<usize, Fault> {
        self.dst.as_vgpr().ok_or(Fault::Unknown)
    }

    /// NEG and ABS of source `i`.
    pub fn modifiers(&self, i: usize) -> (bool, bool) {
        (self.inst.neg >> i & 1 != 0, self.inst.abs >> i & 1 != 0)
    }

    /// OP_SEL of source `i`, or of the destination (3).
    pub fn high_half(&self, i: usize) -> bool {
        self.opsel >> i & 1 != 0
    }

    /// A 32-bit source without any modifier but DPP.
    pub fn source32<'b>(
        &'b self,
        i: usize,
        buffer: &'b mut Lanes<u32>,
    ) -> Result<&'b Lanes<u32>, Fault> {
        match self.src[i].as_vgpr() {
            Some(n) => {
                let register = self.vgpr(n)?;
                match &self.permutation {
                    Some(permutation) if i == 0 => {
                        permutation.apply(register, buffer);
                        Ok(buffer)
                    }
                    _ => Ok(register),
                }
            }
            None => {
                buffer.fill(scalar32(self.wave, self.inst, self.src[i])?);
                Ok(buffer)
            }
        }
    }

    /// A 16-bit source: half a register, or a constant of that width.
    fn source16(&self, i: usize, float: bool, buffer: &mut Lanes<u32>) -> Result<(), Fault> {
        let shift = if self.high_half(i) { 16 } else { 0 };
        let inline = (128..=248).contains(&self.src[i].0);
        if inline && shift != 0 {
            return Err(Fault::Unknown);
        }
        if inline && self.src[i].0 >= 240 {
            // An inline float is one of the operand's own width; an integer operand has no such width.
            if !float {
                return Err(Fault::Unknown);
            }
            buffer.fill(u32::from(inline_f16(self.src[i]).to_bits()));
            return Ok(());
        }
        let mut whole = [0; 64];
        let whole = self.source32(i, &mut whole)?;
        for (half, word) in buffer.iter_mut().zip(whole) {
            *half = word >> shift & 0xffff;
        }
        Ok(())
    }

    fn source64(&self, i: usize, literal: Literal64, buffer: &mut Lanes<u64>) -> Result<(), Fault> {
        if self.has_dpp() || self.high_half(i) {
            return Err(Fault::Unknown);
        }
        let Some(n) = self.src[i].as_vgpr() else {
            buffer.fill(self.scalar64(self.src[i], literal)?);
            return Ok(());
        };
        let (low, high) = (self.vgpr(n)?, self.vgpr(n + 1)?);
        for (wide, (low, high)) in buffer.iter_mut().zip(low.iter().zip(high)) {
            *wide = u64::from(*low) | u64::from(*high) << 32;
        }
        Ok(())
    }

    fn scalar64(&self, operand: Operand, literal: Literal64) -> Result<u64, Fault> {
        Ok(match operand.0 {
            0..=127 if operand.0.is_multiple_of(2) => self.wave.sgpr64(operand),
            128..=208 => i64::from(scalar32(self.wave, self.inst, operand)? as i32) as u64,
            240..=247 => {
                f64::from(f32::from_bits(scalar32(self.wave, self.inst, operand)?)).to_bits()
            }
            248 => 0x3fc4_5f30_6dc9_c882,
            255 => match literal {
                Literal64::High => u64::from(self.inst.literal) << 32,
                Literal64::Signed => i64::from(self.inst.literal as i32) as u64,
                Literal64::Unsigned => u64::from(self.inst.literal),
            },
            _ => return Err(Fault::Unknown),
        })
    }

    /// The bit-per-lane source `i`: a scalar register, or a pair in a wave64.
    pub fn mask_source(&self, i: usize) -> Result<u64, Fault> {
        self.check_mask(self.src[i])?;
        Ok(self.wave.mask(self.src[i]))
    }

    /// Writes a bit per lane: 0 for the lanes that do not execute.
    pub fn store_mask(&mut self, dst: Operand, bits: u64) -> Result<(), Fault> {
        self.check_mask(dst)?;
        self.wave.set_mask(dst, bits & self.active);
        Ok(())
    }

    fn check_mask(&self, operand: Operand) -> Result<(), Fault> {
        let pair = self.wave.lanes == 64 && operand != Operand::NULL;
        if operand.0 > 127 || pair && !operand.0.is_multiple_of(2) {
            return Err(Fault::Unknown);
        }
        Ok(())
    }

    pub fn write32(&mut self, lanes: &Lanes<u32>) -> Result<(), Fault> {
        if self.high_half(3) {
            return Err(Fault::Unknown);
        }
        let n = self.destination()?;
        self.write_register(n, lanes)
    }

    /// Writes the active lanes of one register.
    pub fn write_register(&mut self, n: usize, lanes: &Lanes<u32>) -> Result<(), Fault> {
        let (active, all, count) = (self.active, self.all(), self.lanes());
        let register = self.vgpr_mut(n)?;
        if active == all {
            register[..count].copy_from_slice(&lanes[..count]);
        } else {
            blend(register, lanes, active);
        }
        Ok(())
    }

    fn write16(&mut self, lanes: &mut Lanes<u32>) -> Result<(), Fault> {
        let (n, high) = (self.destination()?, self.high_half(3));
        for (new, old) in lanes.iter_mut().zip(self.vgpr(n)?) {
            *new = if high {
                *new << 16 | old & 0xffff
            } else {
                *new & 0xffff | old & 0xffff_0000
            };
        }
        self.write_register(n, lanes)
    }

    pub fn write64(&mut self, lanes: &Lanes<u64>) -> Result<(), Fault> {
        if self.high_half(3) {
            return Err(Fault::Unknown);
        }
        let n = self.destination()?;
        self.vgpr(n + 1)?;
        for (n, shift) in [(n, 0), (n + 1, 32)] {
            let mut words = [0; 64];
            for (word, wide) in words.iter_mut().zip(lanes) {
                *word = (wide >> shift) as u32;
            }
            self.write_register(n, &words)?;
        }
        Ok(())
    }

    pub fn map1<A: Value, D: Value>(&mut self, f: impl Fn(A) -> D) -> Result<(), Fault> {
        let (mut a, mut d) = ([A::Raw::default(); 64], [D::Raw::default(); 64]);
        let a = A::fetch(self, 0, &mut a)?;
        for i in 0..self.lanes() {
            d[i] = f(A::of(a[i])).raw();
        }
        D::store(self, &mut d)
    }

    pub fn map2<A: Value, B: Value, D: Value>(
        &mut self,
        f: impl Fn(A, B) -> D,
    ) -> Result<(), Fault> {
        self.map2_lane(|_, a, b| f(a, b))
    }

    /// Like [`Alu::map2`], with the lane's number.
    pub fn map2_lane<A: Value, B: Value, D: Value>(
        &mut self,
        f: impl Fn(usize, A, B) -> D,
    ) -> Result<(), Fault> {
        let (mut a, mut b) = ([A::Raw::default(); 64], [B::Raw::default(); 64]);
        let mut d = [D::Raw::default(); 64];
        let (a, b) = (A::fetch(self, 0, &mut a)?, B::fetch(self, 1, &mut b)?);
        for i in 0..self.lanes() {
            d[i] = f(i, A::of(a[i]), B::of(b[i])).raw();
        }
        D::store(self, &mut d)
    }

    pub fn map3<A: Value, B: Value, C: Value, D: Value>(
        &mut self,
        f: impl Fn(A, B, C) -> D,
    ) -> Result<(), Fault> {
        self.map3_lane(|_, a, b, c| f(a, b, c))
    }

    /// Like [`Alu::map3`], with the lane's number.
    pub fn map3_lane<A: Value, B: Value, C: Value, D: Value>(
        &mut self,
        f: impl Fn(usize, A, B, C) -> D,
    ) -> Result<(), Fault> {
        let (mut a, mut b) = ([A::Raw::default(); 64], [B::Raw::default(); 64]);
        let (mut c, mut d) = ([C::Raw::default(); 64], [D::Raw::default(); 64]);
        let a = A::fetch(self, 0, &mut a)?;
        let b = B::fetch(self, 1, &mut b)?;
        let c = C::fetch(self, 2, &mut c)?;
        for i in 0..self.lanes() {
            d[i] = f(i, A::of(a[i]), B::of(b[i]), C::of(c[i])).raw();
        }
        D::store(self, &mut d)
    }

    /// A result and a bit for each lane, the bits to `dst2`.
    pub fn map2_carry<A: Value, B: Value, D: Value>(
        &mut self,
        f: impl Fn(usize, A, B) -> (D, bool),
    ) -> Result<(), Fault> {
        let (mut a, mut b) = ([A::Raw::default(); 64], [B::Raw::default(); 64]);
        let (mut d, mut carry) = ([D::Raw::default(); 64], [false; 64]);
        let (a, b) = (A::fetch(self, 0, &mut a)?, B::fetch(self, 1, &mut b)?);
        for i in 0..self.lanes() {
            let (value, bit) = f(i, A::of(a[i]), B::of(b[i]));
            (d[i], carry[i]) = (value.raw(), bit);
        }
        D::store(self, &mut d)?;
        self.store_mask(self.inst.dst2, ballot(&carry))
    }

    /// Like [`Alu::map2_carry`], of three sources.
    pub fn map3_carry<A: Value, B: Value, C: Value, D: Value>(
        &mut self,
        f: impl Fn(A, B, C) -> (D, bool),
    ) -> Result<(), Fault> {
        let (mut a, mut b) = ([A::Raw::default(); 64], [B::Raw::default(); 64]);
        let (mut c, mut d) = ([C::Raw::default(); 64], [D::Raw::default(); 64]);
        let mut carry = [false; 64];
        let a = A::fetch(self, 0, &mut a)?;
        let b = B::fetch(self, 1, &mut b)?;
        let c = C::fetch(self, 2, &mut c)?;
        for i in 0..self.lanes() {
            let (value, bit) = f(A::of(a[i]), B::of(b[i]), C::of(c[i]));
            (d[i], carry[i]) = (value.raw(), bit);
        }
        D::store(self, &mut d)?;
        self.store_mask(self.inst.dst2, ballot(&carry))
    }
}

/// How a 32-bit literal becomes a 64-bit operand.
#[derive(Clone, Copy)]
enum Literal64 {
    High,
    Signed,
    Unsigned,
}

/// The inline float constants 240 to 248, as half floats.
pub fn inline_f16(operand: Operand) -> f16 {
    const BITS: [u16; 9] = [
        0x3800, 0xb800, 0x3c00, 0xbc00, 0x4000, 0xc000, 0x4400, 0xc400, 0x3118,
    ];
    f16::from_bits(BITS[usize::from(operand.0) - 240])
}

/// One bit of each flag.
pub fn ballot(flags: &[bool; 64]) -> u64 {
    let mut bits = 0;
    for (i, eight) in flags.as_chunks::<8>().0.iter().enumerate() {
        let bytes = u64::from_le_bytes(eight.map(u8::from));
        // Gathers the lowest bit of each byte in the top byte.
        bits |= (bytes.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * i);
    }
    bits
}

fn blend(register: &mut VReg, lanes: &Lanes<u32>, active: u64) {
    let halves = register.as_chunks_mut::<32>().0.iter_mut();
    for (half, (old, new)) in halves.zip(lanes.as_chunks::<32>().0).enumerate() {
        let bits = (active >> (32 * half)) as u32;
        for i in 0..32 {
            old[i] = if bits & 1 << i != 0 { new[i] } else { old[i] };
        }
    }
}

/// Refuses modifiers that mean something for floats only, and halves of what is whole.
fn plain(alu: &Alu, i: usize, half: bool) -> Result<(), Fault> {
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
                plain(alu, i, size_of::<$type>() == 2)?;
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

/// A float that is passed on, not computed with: NEG and ABS apply, denormals stay, results are not modified.
#[derive(Clone, Copy)]
pub struct Carried<T: Float>(pub T);

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
                    return Carried::<$type>::fetch(alu, i, buffer);
                }
                let mut kept = [0; 64];
                let kept = Carried::<$type>::fetch(alu, i, &mut kept)?;
                for (flushed, raw) in buffer.iter_mut().zip(kept) {
                    *flushed = Self::of(*raw).flushed().raw();
                }
                Ok(buffer)
            }
            fn store(alu: &mut Alu, lanes: &mut Lanes<$raw>) -> Result<(), Fault> {
                let flush = alu.mode.flushes_output(<$type>::WIDE_MODE);
                // OMOD is void with IEEE rules or with denormal results (guide, 7.2.3.1).
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

        impl Value for Carried<$type> {
            type Raw = $raw;
            #[inline(always)]
            fn of(raw: $raw) -> Self {
                Carried(<$type>::of(raw))
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
