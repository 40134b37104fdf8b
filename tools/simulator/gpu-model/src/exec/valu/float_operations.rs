//! Operations on floats.

use std::cell::Cell;

use super::alu::Alu;
use super::float::{Float, Integral, fma, fract, frexp_mantissa, integral, product, scale, sum};
use super::map::over_lanes;
use super::mode::Round;
use super::value::{Moved, Value};
use crate::fault::Fault;
use crate::isa::Architecture;

/// The result of a minimum or maximum of gfx12, which is not a signaling NaN.
pub fn quiet<T: Float>(value: T) -> T {
    if value.is_nan() {
        value.quieted()
    } else {
        value
    }
}

impl Alu<'_> {
    pub fn add<T: Float + Value>(&mut self) -> Result<(), Fault> {
        match self.round::<T>() {
            Round::Nearest => self.map2(|a: T, b: T| a.add(b)),
            round => self.map2(|a: T, b: T| sum(a, b, round)),
        }
    }
    pub fn sub<T: Float + Value>(&mut self) -> Result<(), Fault> {
        match self.round::<T>() {
            Round::Nearest => self.map2(|a: T, b: T| a.add(b.negated())),
            round => self.map2(|a: T, b: T| sum(a, b.negated(), round)),
        }
    }
    pub fn subrev<T: Float + Value>(&mut self) -> Result<(), Fault> {
        match self.round::<T>() {
            Round::Nearest => self.map2(|a: T, b: T| b.add(a.negated())),
            round => self.map2(|a: T, b: T| sum(b, a.negated(), round)),
        }
    }
    pub fn mul<T: Float + Value>(&mut self) -> Result<(), Fault> {
        match self.round::<T>() {
            Round::Nearest => self.map2(|a: T, b: T| a.mul(b)),
            round => self.map2(|a: T, b: T| product(a, b, round)),
        }
    }
    pub fn fma<T: Float + Value>(&mut self) -> Result<(), Fault> {
        match self.round::<T>() {
            Round::Nearest => self.fma_nearest::<T>(),
            round => self.map3(|a: T, b: T, c: T| fma(a, b, c, 0, round)),
        }
    }
    pub fn fmac<T: Float + Value>(&mut self) -> Result<(), Fault> {
        self.accumulate();
        self.fma::<T>()
    }

    /// A product and a sum that round separately and flush denormals, whatever MODE says (`v_mad_f32` of gfx90a). It is not
    /// documented whether the product is flushed, so lanes for which that matters are not modelled.
    pub fn mad_f32(&mut self) -> Result<(), Fault> {
        if self.round::<f32>() != Round::Nearest {
            return Err(Fault::Unknown);
        }
        let unclear = Cell::new(0u64);
        // Flushes the sources and the result.
        self.mode.0 &= !0b0011_0000;
        let active = self.active;
        let mad = |lane: usize, a: f32, b: f32, c: f32| {
            let product = a * b;
            let sum = (product + c).flushed();
            if sum.to_bits() != (product.flushed() + c).flushed().to_bits() {
                unclear.set(unclear.get() | 1 << lane);
            }
            sum
        };
        // A fault does not change the registers.
        let before = *self.vgpr(self.destination()?)?;
        self.map3_lane(mad)?;
        if unclear.get() & active != 0 {
            let n = self.destination()?;
            *self.vgpr_mut(n)? = before;
            return Err(Fault::Unknown);
        }
        Ok(())
    }
    pub fn mac_f32(&mut self) -> Result<(), Fault> {
        self.accumulate();
        self.mad_f32()
    }

    /// The most frequent float operation. It uses the host's FMA instruction if the host has one.
    fn fma_nearest<T: Float + Value>(&mut self) -> Result<(), Fault> {
        let (mut a, mut b) = ([T::Raw::default(); 64], [T::Raw::default(); 64]);
        let (mut c, mut d) = ([T::Raw::default(); 64], [T::Raw::default(); 64]);
        let a = T::fetch(self, 0, &mut a)?;
        let b = T::fetch(self, 1, &mut b)?;
        let c = T::fetch(self, 2, &mut c)?;
        over_lanes(T::fma, [a, b, c], &mut d, self.lanes());
        T::store(self, &mut d)
    }

    /// A product that is 0 if a factor is 0, even if the other one is infinite or NaN.
    pub fn mul_dx9(&mut self) -> Result<(), Fault> {
        let round = self.round::<f32>();
        self.map2(|a: f32, b: f32| {
            if a.is_zero() || b.is_zero() {
                0.0
            } else {
                product(a, b, round)
            }
        })
    }
    pub fn fma_dx9(&mut self) -> Result<(), Fault> {
        let round = self.round::<f32>();
        self.map3(|a: f32, b: f32, c: f32| {
            if a.is_zero() || b.is_zero() {
                c
            } else {
                fma(a, b, c, 0, round)
            }
        })
    }

    pub fn integral<T: Float + Value>(&mut self, how: Integral) -> Result<(), Fault> {
        self.map1(|a: T| integral(a, how))
    }
    pub fn fract<T: Float + Value>(&mut self) -> Result<(), Fault> {
        let round = self.round::<T>();
        self.map1(|a: T| fract(a, round))
    }
    pub fn ldexp<T: Float + Value, I: Value + Into<i32>>(&mut self) -> Result<(), Fault> {
        let round = self.round::<T>();
        self.map2(|a: T, power: I| scale(a, power.into(), round))
    }
    pub fn frexp_mantissa<T: Float + Value>(&mut self) -> Result<(), Fault> {
        self.map1(|a: T| frexp_mantissa(a))
    }

    /// An operation that returns one of its two sources. Denormal results are kept.
    pub fn pick2<T: Float + Value>(&mut self, f: impl Fn(T, T, bool) -> T) -> Result<(), Fault> {
        let ieee = self.mode.ieee();
        self.keep_denormal_results();
        if self.inst.arch == Architecture::Gfx12 {
            return self.map2(|a: T, b: T| quiet(f(a, b, ieee)));
        }
        self.map2(|a: T, b: T| f(a, b, ieee))
    }
    pub fn pick3<T: Float + Value>(&mut self, f: impl Fn(T, T, T, bool) -> T) -> Result<(), Fault> {
        let ieee = self.mode.ieee();
        self.keep_denormal_results();
        if self.inst.arch == Architecture::Gfx12 {
            return self.map3(|a: T, b: T, c: T| quiet(f(a, b, c, ieee)));
        }
        self.map3(|a: T, b: T, c: T| f(a, b, c, ieee))
    }
    pub fn keep_denormal_results(&mut self) {
        if self.inst.omod == 0 {
            self.mode.0 |= 0b1010_0000;
        }
    }

    pub fn cndmask<T: Float + Value>(&mut self) -> Result<(), Fault>
    where
        Moved<T>: Value,
    {
        let mask = self.mask_source(2)?;
        self.map2_lane(
            |lane, a: Moved<T>, b: Moved<T>| {
                if mask >> lane & 1 != 0 { b } else { a }
            },
        )
    }
}
