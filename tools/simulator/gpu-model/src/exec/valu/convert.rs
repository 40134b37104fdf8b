//! Conversions. Conversions of floats to integers truncate and saturate, and NaN becomes 0. Other conversions round as MODE
//! specifies.

use half::f16;

use super::alu::Alu;
use super::float::{Float, convert};
use super::mode::Round;
use super::value::Value;
use crate::fault::Fault;

impl Alu<'_> {
    /// Converts between float formats. Always uses MODE's rounding field for f64 and f16, because clang sets that field for
    /// a conversion with an explicit rounding mode.
    pub fn cvt_float<S: Float + Value, D: Float + Value>(&mut self) -> Result<(), Fault> {
        match self.mode.round(true) {
            Round::Nearest => self.map1(|a: S| D::from_f64(a.to_f64())),
            round => self.map1(|a: S| convert::<S, D>(a, round)),
        }
    }

    pub fn cvt_from_int<I: Value + Into<f64>, D: Float + Value>(&mut self) -> Result<(), Fault> {
        match self.round::<D>() {
            Round::Nearest => self.map1(|a: I| D::from_f64(a.into())),
            round => self.map1(|a: I| convert::<f64, D>(a.into(), round)),
        }
    }

    /// Converts a float to an integer. CLAMP only enables an exception (guide, 16.8).
    pub fn cvt_to_int<S: Float + Value, D: Value>(
        &mut self,
        f: impl Fn(f64) -> D,
    ) -> Result<(), Fault> {
        self.clamp = false;
        self.map1(|a: S| f(a.to_f64()))
    }

    pub fn cvt_ubyte(&mut self, byte: usize) -> Result<(), Fault> {
        self.map1(|a: u32| f32::from(a.to_le_bytes()[byte]))
    }

    /// Two 16-bit results, the first in the low half.
    pub fn cvt_pack<A: Value>(&mut self, f: impl Fn(A) -> u16) -> Result<(), Fault> {
        self.map2(|a: A, b: A| pack(f(a), f(b)))
    }
}

pub fn pack(low: u16, high: u16) -> u32 {
    u32::from(low) | u32::from(high) << 16
}

pub fn snorm<T: Float>(a: T) -> u16 {
    (a.to_f64().clamp(-1.0, 1.0) * 32767.0).round_ties_even() as i16 as u16
}

pub fn unorm<T: Float>(a: T) -> u16 {
    (a.to_f64().clamp(0.0, 1.0) * 65535.0).round_ties_even() as u16
}

pub fn half_toward_zero(a: f32) -> u16 {
    convert::<f32, f16>(a, Round::Zero).to_bits()
}

/// A signed 4-bit integer divided by 16.
pub fn offset_i4(a: u32) -> f32 {
    ((a << 28) as i32 >> 28) as f32 / 16.0
}

/// Saturates two signed 16-bit numbers to unsigned bytes.
pub fn saturate_u8(a: u32) -> u16 {
    let byte = |half: u32| (half as i16).clamp(0, 255) as u16;
    byte(a) | byte(a >> 16) << 8
}
