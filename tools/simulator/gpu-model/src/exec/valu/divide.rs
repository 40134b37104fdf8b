//! Division: the operations around the compiler's Newton iteration that avoid overflow and denormals.
//!
//! `v_div_scale` scales numerator and denominator by powers of two, and sets the mask bits of the quotients that have to be
//! scaled back. `v_div_fmas` scales them back in the last step of the iteration. `v_div_fixup` handles the special cases.
//!
//! The guide's pseudocode has three errors: `v_div_scale` scales up a denominator that is already close to overflow;
//! `v_div_fmas` scales back by the square root of the scale, and only in one direction; `v_div_fixup` tests for overflow
//! with an infinite denominator, which an earlier test has handled. This implementation makes the quotients correct.

use half::f16;

use super::alu::Alu;
use super::float::{Float, encode, fma, scale};
use super::mode::Round;
use super::value::Value;
use crate::fault::Fault;

/// The constants of a format.
pub trait Divide: Float + Value {
    /// The exponent of the scale.
    const STEP: i32;
    /// If the exponents differ by this much, the quotient is close to overflow.
    const NEAR_MAX: i32;
    /// A numerator with this biased exponent or less is scaled up.
    const TINY: i32;
    /// If the exponents differ by more than this, the quotient underflows.
    const UNDERFLOW: i32;
}

impl Divide for f32 {
    const STEP: i32 = 64;
    const NEAR_MAX: i32 = 96;
    const TINY: i32 = 23;
    const UNDERFLOW: i32 = 150;
}

impl Divide for f64 {
    const STEP: i32 = 128;
    const NEAR_MAX: i32 = 768;
    const TINY: i32 = 53;
    const UNDERFLOW: i32 = 1075;
}

impl Alu<'_> {
    pub fn div_scale<T: Divide>(&mut self) -> Result<(), Fault> {
        self.map3_carry(div_scale::<T>)
    }

    /// Input denormals are never flushed (guide, V_DIV_FMAS_F32).
    pub fn div_fmas<T: Divide>(&mut self) -> Result<(), Fault> {
        let (vcc, round) = (self.wave.vcc(), self.round::<T>());
        self.mode.0 |= 0b0101_0000;
        if vcc & self.active == 0 {
            return self.fma::<T>();
        }
        self.map3_lane(|lane, a: T, b: T, c: T| {
            let power = match vcc >> lane & 1 {
                0 => 0,
                _ if c.to_f64().abs() < 1.0 => -T::STEP,
                _ => T::STEP,
            };
            fma(a, b, c, power, round)
        })
    }

    pub fn div_fixup<T: Divide>(&mut self) -> Result<(), Fault> {
        let round = self.round::<T>();
        self.map3(|quotient: T, denominator: T, numerator: T| {
            fixup(denominator, numerator, |negative| {
                let apart = numerator.biased_exponent() - denominator.biased_exponent();
                if apart < -T::UNDERFLOW {
                    encode(negative, 1, -5000, round)
                } else if !quotient.is_finite() {
                    encode(negative, 1, 5000, round)
                } else {
                    quotient.signed(negative)
                }
            })
        })
    }

    pub fn div_fixup_f16(&mut self) -> Result<(), Fault> {
        self.map3(|quotient: f16, denominator: f16, numerator: f16| {
            fixup(denominator, numerator, |negative| quotient.signed(negative))
        })
    }
}

fn div_scale<T: Divide>(value: T, denominator: T, numerator: T) -> (T, bool) {
    let scaled = |power| scale(value, power, Round::Nearest);
    // The first source is the same register as one of the others (guide), so equal bits identify it.
    let is_denominator = value.bits() == denominator.bits();
    let is_numerator = value.bits() == numerator.bits();
    if numerator.is_zero() || denominator.is_zero() {
        return (T::infinity(false).quieted(), false);
    }
    let (n, d) = (numerator.biased_exponent(), denominator.biased_exponent());
    let reciprocal_denormal = T::from_f64(1.0).div(denominator).is_denormal();
    let quotient_denormal = numerator.div(denominator).is_denormal();
    if n - d >= T::NEAR_MAX {
        (
            if is_denominator {
                scaled(T::STEP)
            } else {
                value
            },
            true,
        )
    } else if denominator.is_denormal() {
        (scaled(T::STEP), false)
    } else if reciprocal_denormal && quotient_denormal {
        (
            if is_denominator {
                scaled(-T::STEP)
            } else {
                value
            },
            true,
        )
    } else if reciprocal_denormal {
        (scaled(-T::STEP), false)
    } else if quotient_denormal {
        (if is_numerator { scaled(T::STEP) } else { value }, true)
    } else if n <= T::TINY {
        (scaled(T::STEP), false)
    } else {
        (value, false)
    }
}

/// The quotient if an operand is infinite, NaN or 0. Otherwise the result of `ordinary`, whose argument is whether the
/// quotient is negative.
fn fixup<T: Float>(denominator: T, numerator: T, ordinary: impl Fn(bool) -> T) -> T {
    let negative = denominator.is_negative() != numerator.is_negative();
    if numerator.is_nan() {
        numerator.quieted()
    } else if denominator.is_nan() {
        denominator.quieted()
    } else if denominator.is_zero() && numerator.is_zero()
        || denominator.is_infinite() && numerator.is_infinite()
    {
        T::infinity(true).quieted()
    } else if denominator.is_zero() || numerator.is_infinite() {
        T::infinity(negative)
    } else if denominator.is_infinite() || numerator.is_zero() {
        T::zero(negative)
    } else {
        ordinary(negative)
    }
}
