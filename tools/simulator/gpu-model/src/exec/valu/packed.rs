//! VOP3P: packed 16-bit operations, dot products, and the fused multiply-add of mixed formats. OP_SEL and OP_SEL_HI select
//! the halves of the sources, NEG_LO and NEG_HI negate them.

use half::{bf16, f16};

use super::alu::{Alu, Lanes, inline_f16};
use super::convert::pack;
use super::float::{Float, convert, fma, product};
use super::float_operations::quiet;
use super::integer::{Integer, part};
use super::map::over_lanes;
use super::mode::Round;
use super::value::Value;
use crate::exec::operand::scalar32;
use crate::fault::Fault;
use crate::isa::{Architecture, Encoding, Operand};

/// Both halves of a packed source, each in the low bits.
struct Halves {
    low: Lanes<u32>,
    high: Lanes<u32>,
}

impl Default for Halves {
    fn default() -> Self {
        Halves {
            low: [0; 64],
            high: [0; 64],
        }
    }
}

/// The value of an inline constant in a packed source.
#[derive(Clone, Copy, PartialEq)]
enum Inline {
    /// 32 bits. Integers are sign-extended.
    Word,
    /// An f16 in the low half (guide, 7.5.1).
    Low,
    /// An f16 in both halves.
    Both,
    /// Not modelled: the guide and LLVM disagree.
    Unknown,
}

fn is_inline(operand: Operand) -> bool {
    (128..=248).contains(&operand.0)
}

impl Alu<'_> {
    /// The 32 bits of a packed source.
    fn packed_word<'b>(
        &'b self,
        i: usize,
        inline: Inline,
        buffer: &'b mut Lanes<u32>,
    ) -> Result<&'b Lanes<u32>, Fault> {
        let operand = self.src[i];
        if !is_inline(operand) || inline == Inline::Word {
            return self.source32(i, buffer);
        }
        let word = if operand.0 >= 240 {
            u32::from(inline_f16(operand).to_bits())
        } else {
            self.source32(i, buffer)?[0]
        };
        buffer.fill(match inline {
            Inline::Both => pack(word as u16, word as u16),
            Inline::Low => word,
            Inline::Word | Inline::Unknown => return Err(Fault::Unknown),
        });
        Ok(buffer)
    }

    /// The selected halves of source `i`, with NEG_LO and NEG_HI for floats.
    fn halves(&self, i: usize, inline: Inline) -> Result<Halves, Fault> {
        let mut buffer = [0; 64];
        let words = self.packed_word(i, inline, &mut buffer)?;
        // VOP2 does not have OP_SEL and OP_SEL_HI.
        let (low, high) = if self.inst.enc == Encoding::Vop3p {
            (self.opsel >> i & 1, self.inst.opsel_hi >> i & 1)
        } else {
            (0, 1)
        };
        let (neg_low, neg_high) = self.modifiers(i);
        let mut halves = Halves::default();
        for (half, high, neg) in [
            (&mut halves.low, low, neg_low),
            (&mut halves.high, high, neg_high),
        ] {
            let flip = u32::from(neg) << 15;
            for (half, word) in half.iter_mut().zip(words) {
                *half = word >> (16 * high) & 0xffff ^ flip;
            }
        }
        Ok(halves)
    }

    fn half_floats(&self, i: usize, inline: Inline) -> Result<Halves, Fault> {
        let mut halves = self.halves(i, inline)?;
        if self.mode.flushes_input(true) {
            for half in halves.low.iter_mut().chain(&mut halves.high) {
                *half = f16::of(*half).flushed().raw();
            }
        }
        Ok(halves)
    }

    /// Applies `f` to both halves of `sources` sources.
    fn packed_float(
        &mut self,
        sources: usize,
        inline: Inline,
        f: impl Fn(f16, f16, f16) -> f16 + Copy,
    ) -> Result<(), Fault> {
        let a = self.half_floats(0, inline)?;
        let b = self.half_floats(1, inline)?;
        let c = match sources {
            3 => self.half_floats(2, inline)?,
            _ => Halves::default(),
        };
        let (flush, dx10) = (self.mode.flushes_output(true), self.mode.dx10_clamp());
        let clamp = self.take_clamp();
        let mut d = Halves::default();
        over_lanes(f, [&a.low, &b.low, &c.low], &mut d.low, self.lanes());
        over_lanes(f, [&a.high, &b.high, &c.high], &mut d.high, self.lanes());
        for half in d.low.iter_mut().chain(&mut d.high) {
            if flush {
                *half = f16::of(*half).flushed().raw();
            }
            if clamp {
                *half = f16::of(*half).clamped(dx10).raw();
            }
        }
        for (word, high) in d.low.iter_mut().zip(d.high) {
            *word |= high << 16;
        }
        self.write_word(&d.low)
    }

    /// Like `packed_float` for integers: the exact result wraps, or saturates with CLAMP.
    fn packed_integer<T: Integer<Raw = u32> + Into<i64>>(
        &mut self,
        sources: usize,
        f: impl Fn(i64, i64, i64) -> i64,
    ) -> Result<(), Fault> {
        if self.inst.neg != 0 || self.inst.abs != 0 {
            return Err(Fault::Unknown);
        }
        let a = self.halves(0, Inline::Word)?;
        let b = self.halves(1, Inline::Word)?;
        let c = match sources {
            3 => self.halves(2, Inline::Word)?,
            _ => Halves::default(),
        };
        let saturate = self.take_clamp();
        let one = |a: u32, b: u32, c: u32| {
            let exact = f(T::of(a).into(), T::of(b).into(), T::of(c).into());
            let result = if saturate {
                T::saturated(exact)
            } else {
                T::wrapped(exact)
            };
            result.raw() as u16
        };
        let mut d = [0; 64];
        for (i, d) in d.iter_mut().enumerate().take(self.lanes()) {
            let low = one(a.low[i], b.low[i], c.low[i]);
            *d = pack(low, one(a.high[i], b.high[i], c.high[i]));
        }
        self.write_word(&d)
    }

    pub fn pk_i16(&mut self, f: impl Fn(i64, i64) -> i64) -> Result<(), Fault> {
        self.packed_integer::<i16>(2, |a, b, _| f(a, b))
    }
    pub fn pk_u16(&mut self, f: impl Fn(i64, i64) -> i64) -> Result<(), Fault> {
        self.packed_integer::<u16>(2, |a, b, _| f(a, b))
    }
    pub fn pk_mad_i16(&mut self) -> Result<(), Fault> {
        self.packed_integer::<i16>(3, |a, b, c| a * b + c)
    }
    pub fn pk_mad_u16(&mut self) -> Result<(), Fault> {
        self.packed_integer::<u16>(3, |a, b, c| a * b + c)
    }

    pub fn pk_add_f16(&mut self) -> Result<(), Fault> {
        match self.round::<f16>() {
            Round::Nearest => self.packed_float(2, Inline::Low, |a, b, _| a.add(b)),
            round => self.packed_float(2, Inline::Low, |a, b, _| fma(a, f16::ONE, b, 0, round)),
        }
    }
    pub fn pk_mul_f16(&mut self) -> Result<(), Fault> {
        match self.round::<f16>() {
            Round::Nearest => self.packed_float(2, Inline::Low, |a, b, _| a.mul(b)),
            round => self.packed_float(2, Inline::Low, |a, b, _| product(a, b, round)),
        }
    }
    pub fn pk_fma_f16(&mut self) -> Result<(), Fault> {
        self.pk_fma(Inline::Low)
    }
    pub fn pk_fmac_f16(&mut self) -> Result<(), Fault> {
        self.accumulate();
        self.pk_fma(Inline::Both)
    }
    fn pk_fma(&mut self, inline: Inline) -> Result<(), Fault> {
        match self.round::<f16>() {
            Round::Nearest => self.packed_float(3, inline, Float::fma),
            round => self.packed_float(3, inline, |a, b, c| fma(a, b, c, 0, round)),
        }
    }
    pub fn pk_pick_f16(&mut self, f: impl Fn(f16, f16, bool) -> f16 + Copy) -> Result<(), Fault> {
        let ieee = self.mode.ieee();
        self.keep_denormal_results();
        if self.inst.arch == Architecture::Gfx12 {
            return self.packed_float(2, Inline::Low, |a, b, _| quiet(f(a, b, ieee)));
        }
        self.packed_float(2, Inline::Low, |a, b, _| f(a, b, ieee))
    }

    /// Writes 32 bits of each lane. OP_SEL applies only to the sources.
    fn write_word(&mut self, lanes: &Lanes<u32>) -> Result<(), Fault> {
        let n = self.destination()?;
        self.write_register(n, lanes)
    }

    /// The sum of an f32 and two f16 products.
    pub fn dot2_f32_f16(&mut self) -> Result<(), Fault> {
        self.dot2(Inline::Unknown, |half| f16::from_bits(half).to_f32())
    }
    pub fn dot2_f32_bf16(&mut self) -> Result<(), Fault> {
        self.dot2(Inline::Unknown, |half| bf16::from_bits(half).to_f32())
    }
    pub fn dot2acc_f32_f16(&mut self) -> Result<(), Fault> {
        self.accumulate();
        self.dot2(Inline::Both, |half| f16::from_bits(half).to_f32())
    }
    pub fn dot2acc_f32_bf16(&mut self) -> Result<(), Fault> {
        self.accumulate();
        self.dot2(Inline::Unknown, |half| bf16::from_bits(half).to_f32())
    }

    fn dot2(&mut self, inline: Inline, single: impl Fn(u16) -> f32) -> Result<(), Fault> {
        if self.modifiers(2) != (false, false) {
            return Err(Fault::Unknown);
        }
        // CLAMP does not apply to float dot products (guide, 7.2.3.1).
        self.clamp = false;
        let (a, b) = (self.halves(0, inline)?, self.halves(1, inline)?);
        let mut c = [0; 64];
        let c = self.source32(2, &mut c)?;
        let mut d = [0; 64];
        let product = |a: u32, b: u32| single(a as u16) * single(b as u16);
        for i in 0..self.lanes() {
            let sum = f32::from_bits(c[i]) + product(a.low[i], b.low[i]);
            d[i] = (sum + product(a.high[i], b.high[i])).to_bits();
        }
        self.write_word(&d)
    }

    /// The sum of two products and a third source, all 16 bits wide. Each step rounds to nearest.
    pub fn dot2_f16(&mut self) -> Result<(), Fault> {
        self.dot2_16(f16::from_bits, f16::to_bits, Float::mul, Float::add)
    }
    /// Like [`Alu::dot2_f16`] for bf16, whose denormals are flushed (guide, 7.2.4).
    pub fn dot2_bf16(&mut self) -> Result<(), Fault> {
        let flush = |value: bf16| {
            let normal = value.to_bits() & 0x7f80 != 0;
            bf16::from_bits(if normal {
                value.to_bits()
            } else {
                value.to_bits() & 0x8000
            })
        };
        self.dot2_16(
            |bits| flush(bf16::from_bits(bits)),
            bf16::to_bits,
            |a, b| flush(a * b),
            |a, b| flush(a + b),
        )
    }
    fn dot2_16<T: Copy>(
        &mut self,
        of: impl Fn(u16) -> T,
        bits: impl Fn(T) -> u16,
        mul: impl Fn(T, T) -> T,
        add: impl Fn(T, T) -> T,
    ) -> Result<(), Fault> {
        if self.inst.neg != 0 || self.inst.abs != 0 || is_inline(self.src[2]) {
            return Err(Fault::Unknown);
        }
        self.clamp = false;
        let (a, b) = (self.halves(0, Inline::Both)?, self.halves(1, Inline::Both)?);
        let mut c = [0; 64];
        let c = u16::fetch(self, 2, &mut c)?;
        let mut d = [0; 64];
        let product = |a: u32, b: u32| mul(of(a as u16), of(b as u16));
        for i in 0..self.lanes() {
            let sum = add(of(c[i] as u16), product(a.low[i], b.low[i]));
            d[i] = u32::from(bits(add(sum, product(a.high[i], b.high[i]))));
        }
        u16::store(self, &mut d)
    }

    /// The sum of the products of the `width`-bit parts of two words, and a third word. NEG selects the signed ones.
    pub fn dot_integer(&mut self, width: u32, may_be_signed: bool) -> Result<(), Fault> {
        let signed = if may_be_signed { self.inst.neg } else { 0 };
        if self.inst.abs != 0 || self.inst.neg & !0b011 != 0 || signed != self.inst.neg {
            return Err(Fault::Unknown);
        }
        self.dot_parts(width, signed, may_be_signed)
    }

    /// Like [`Alu::dot_integer`] for gfx9, where the operation determines the sign. OP_SEL only selects 16-bit parts.
    pub fn dot_gfx9(&mut self, width: u32, signed: bool) -> Result<(), Fault> {
        let halves_in_order = self.opsel == 0 && self.inst.opsel_hi & 3 == 3;
        if self.inst.abs != 0
            || self.inst.neg != 0
            || self.inst.enc == Encoding::Vop3p && !halves_in_order
        {
            return Err(Fault::Unknown);
        }
        self.dot_parts(width, if signed { 3 } else { 0 }, signed)
    }
    pub fn dot_accumulate(&mut self, width: u32) -> Result<(), Fault> {
        self.accumulate();
        self.dot_gfx9(width, true)
    }

    fn dot_parts(&mut self, width: u32, signed: u8, may_be_signed: bool) -> Result<(), Fault> {
        let saturate = self.take_clamp();
        let (mut a, mut b, mut c) = ([0; 64], [0; 64], [0; 64]);
        let a = self.source32(0, &mut a)?;
        let b = self.source32(1, &mut b)?;
        let c = self.source32(2, &mut c)?;
        let mut d = [0; 64];
        for lane in 0..self.lanes() {
            let start = if may_be_signed {
                i64::from(c[lane] as i32)
            } else {
                i64::from(c[lane])
            };
            let sum = (0..32 / width).fold(start, |sum, i| {
                sum + part(a[lane], i, width, signed & 1 != 0)
                    * part(b[lane], i, width, signed & 2 != 0)
            });
            d[lane] = match (saturate, may_be_signed) {
                (false, _) => u32::wrapped(sum),
                (true, true) => i32::saturated(sum).raw(),
                (true, false) => u32::saturated(sum),
            };
        }
        self.write_word(&d)
    }

    /// Both words of source `i` of a packed 32-bit operation. A constant has only the low one.
    fn words(&self, i: usize) -> Result<(Lanes<u32>, Option<Lanes<u32>>), Fault> {
        let operand = self.src[i];
        if let Some(n) = operand.as_vgpr() {
            return Ok((*self.vgpr(n)?, Some(*self.vgpr(n + 1)?)));
        }
        let low = [scalar32(self.wave, self.inst, operand)?; 64];
        let high = match operand.as_sgpr() {
            Some(n) if n % 2 == 0 => Some([(self.wave.sgpr64(Operand(n as u16)) >> 32) as u32; 64]),
            _ => None,
        };
        Ok((low, high))
    }

    /// The word of source `i` that a bit of OP_SEL or OP_SEL_HI selects.
    fn selected_word(&self, i: usize, high: bool) -> Result<Lanes<u32>, Fault> {
        match self.words(i)? {
            (low, _) if !high => Ok(low),
            (_, Some(high)) => Ok(high),
            _ => Err(Fault::Unknown),
        }
    }

    fn write_pair(&mut self, low: &Lanes<u32>, high: &Lanes<u32>) -> Result<(), Fault> {
        let n = self.destination()?;
        self.vgpr(n + 1)?;
        self.write_register(n, low)?;
        self.write_register(n + 1, high)
    }

    /// Moves a word of source 0 to the low word of the destination, and a word of source 1 to the high word.
    pub fn pk_mov_b32(&mut self) -> Result<(), Fault> {
        if self.inst.neg != 0 || self.inst.abs != 0 {
            return Err(Fault::Unknown);
        }
        let low = self.selected_word(0, self.high_half(0))?;
        let high = self.selected_word(1, self.high_half(1))?;
        self.write_pair(&low, &high)
    }

    /// Applies `f` to both words of the sources.
    fn packed_f32(
        &mut self,
        sources: usize,
        f: impl Fn(f32, f32, f32) -> f32 + Copy,
    ) -> Result<(), Fault> {
        let (flush_input, flush) = (
            self.mode.flushes_input(false),
            self.mode.flushes_output(false),
        );
        let (clamp, dx10) = (self.take_clamp(), self.mode.dx10_clamp());
        let mut results = [[0; 64]; 2];
        for (half, result) in results.iter_mut().enumerate() {
            let (select, neg) = if half == 0 {
                (self.opsel, self.inst.neg)
            } else {
                (self.inst.opsel_hi, self.inst.abs)
            };
            let mut operands = [[0; 64]; 3];
            for (i, operand) in operands.iter_mut().enumerate().take(sources) {
                *operand = self.selected_word(i, select >> i & 1 != 0)?;
                let flip = u32::from(neg >> i & 1) << 31;
                for word in operand.iter_mut() {
                    *word ^= flip;
                    if flush_input {
                        *word = f32::from_bits(*word).flushed().to_bits();
                    }
                }
            }
            over_lanes(
                f,
                [&operands[0], &operands[1], &operands[2]],
                result,
                self.lanes(),
            );
            for word in result.iter_mut() {
                if flush {
                    *word = f32::from_bits(*word).flushed().to_bits();
                }
                if clamp {
                    *word = f32::from_bits(*word).clamped(dx10).to_bits();
                }
            }
        }
        let [low, high] = &results;
        self.write_pair(low, high)
    }
    pub fn pk_add_f32(&mut self) -> Result<(), Fault> {
        match self.round::<f32>() {
            Round::Nearest => self.packed_f32(2, |a, b, _| a.add(b)),
            round => self.packed_f32(2, |a, b, _| fma(a, 1.0, b, 0, round)),
        }
    }
    pub fn pk_mul_f32(&mut self) -> Result<(), Fault> {
        match self.round::<f32>() {
            Round::Nearest => self.packed_f32(2, |a, b, _| a.mul(b)),
            round => self.packed_f32(2, |a, b, _| product(a, b, round)),
        }
    }
    pub fn pk_fma_f32(&mut self) -> Result<(), Fault> {
        match self.round::<f32>() {
            Round::Nearest => self.packed_f32(3, Float::fma),
            round => self.packed_f32(3, |a, b, c| fma(a, b, c, 0, round)),
        }
    }

    /// Source `i` of a mixed operation: an f32, or with OP_SEL_HI an f16 in the half that OP_SEL selects.
    fn mixed(&self, i: usize) -> Result<Lanes<f32>, Fault> {
        let (neg, abs) = self.modifiers(i);
        let mut word = [0; 64];
        let mut singles = if self.inst.opsel_hi >> i & 1 == 0 {
            let flush = self.mode.flushes_input(false);
            let word = self.source32(i, &mut word)?;
            word.map(|word| {
                let value = f32::from_bits(word);
                if flush { value.flushed() } else { value }
            })
        } else {
            if is_inline(self.src[i]) && self.high_half(i) {
                return Err(Fault::Unknown);
            }
            let shift = if self.high_half(i) { 16 } else { 0 };
            let flush = self.mode.flushes_input(true);
            let words = self.packed_word(i, Inline::Low, &mut word)?;
            words.map(|word| {
                let value = f16::from_bits((word >> shift) as u16);
                if flush { value.flushed() } else { value }.to_f32()
            })
        };
        for single in &mut singles {
            let magnitude = if abs { single.abs() } else { *single };
            *single = if neg { -magnitude } else { magnitude };
        }
        Ok(singles)
    }

    fn mixed_fma(&self) -> Result<Lanes<f32>, Fault> {
        let (a, b, c) = (self.mixed(0)?, self.mixed(1)?, self.mixed(2)?);
        let round = self.round::<f32>();
        let mut d = [0.0; 64];
        for i in 0..self.lanes() {
            d[i] = fma(a[i], b[i], c[i], 0, round);
        }
        Ok(d)
    }

    pub fn fma_mix_f32(&mut self) -> Result<(), Fault> {
        let mut d = self.mixed_fma()?.map(f32::to_bits);
        self.opsel = 0;
        f32::store(self, &mut d)
    }

    /// The result as an f16 in one half of the destination.
    pub fn fma_mix_f16(&mut self, high: bool) -> Result<(), Fault> {
        let round = self.round::<f16>();
        let mut d = self
            .mixed_fma()?
            .map(|d| convert::<f32, f16>(d, round).raw());
        self.opsel = if high { 0b1000 } else { 0 };
        f16::store(self, &mut d)
    }
}
