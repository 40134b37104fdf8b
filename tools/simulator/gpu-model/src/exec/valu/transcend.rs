//! Transcendental functions. They are computed in f64 and rounded. This is more accurate than the guide requires (one unit
//! in the last place). In f32, denormal arguments and results are flushed, except for sine and cosine (guide, 16.8).

use super::alu::Alu;
use super::float::{Float, scale};
use super::mode::Round;
use super::value::Value;
use crate::fault::Fault;

/// The NaN of an invalid operation.
const INVALID: f64 = f64::from_bits(0xfff8_0000_0000_0000);

impl Alu<'_> {
    /// Applies `f` to the lanes, with the hardware's NaNs: a NaN argument is quieted, other invalid operations return
    /// [`INVALID`].
    pub fn transcend<T: Float + Value>(&mut self, f: impl Fn(f64) -> f64) -> Result<(), Fault> {
        let flush = |value: T| {
            if T::WIDTH == 32 {
                value.flushed()
            } else {
                value
            }
        };
        self.map1(|a: T| flush(number(flush(a), &f)))
    }

    /// Applies a function of an angle in turns.
    pub fn trigonometric<T: Float + Value>(&mut self, f: impl Fn(f64) -> f64) -> Result<(), Fault> {
        self.map1(|a: T| number(a, &f))
    }

    pub fn trig_preop(&mut self) -> Result<(), Fault> {
        self.map2(trig_preop)
    }
}

fn number<T: Float>(a: T, f: impl Fn(f64) -> f64) -> T {
    if a.is_nan() {
        return a.quieted();
    }
    let result = f(a.to_f64());
    T::from_f64(if result.is_nan() { INVALID } else { result })
}

pub fn rcp(a: f64) -> f64 {
    1.0 / a
}

/// -infinity for -0, because the square root of -0 is -0.
pub fn rsq(a: f64) -> f64 {
    1.0 / a.sqrt()
}

/// The sine of an angle in turns, exact at multiples of a quarter turn. The sine of ±0 is ±0, and the sine of other
/// integers is +0.
pub fn sin(turns: f64) -> f64 {
    if turns == 0.0 {
        return turns;
    }
    match quarters(turns) {
        (0, angle) => angle.sin() + 0.0,
        (1, angle) => angle.cos(),
        (2, angle) => 0.0 - angle.sin(),
        (_, angle) => -angle.cos(),
    }
}

pub fn cos(turns: f64) -> f64 {
    match quarters(turns) {
        (0, angle) => angle.cos(),
        (1, angle) => 0.0 - angle.sin(),
        (2, angle) => -angle.cos(),
        (_, angle) => angle.sin() + 0.0,
    }
}

/// The nearest quarter of a turn, 0 to 3, and the remaining angle in radians.
fn quarters(turns: f64) -> (i64, f64) {
    let nearest = (turns * 4.0).round_ties_even();
    let angle = (turns - nearest / 4.0) * std::f64::consts::TAU;
    (nearest.rem_euclid(4.0) as i64, angle)
}

/// The binary digits of 2/π after the point, highest bit first. The guide uses the first 1201 digits.
const TWO_OVER_PI: [u64; 19] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
];

/// The 53 digits of 2/π for an argument of the magnitude of `a`. Segments 0, 1, 2 have decreasing weight (guide,
/// V_TRIG_PREOP_F64).
fn trig_preop(a: f64, segment: u32) -> f64 {
    let exponent = a.biased_exponent();
    let shift = (segment & 31) as i32 * 53 + (exponent - 1077).max(0);
    let digits = (shift..shift + 53).fold(0, |digits, i| {
        let i = i as usize;
        let word = if i < 1201 { TWO_OVER_PI[i / 64] } else { 0 };
        digits << 1 | word >> (63 - i % 64) & 1
    });
    let power = -53 - shift + if exponent >= 1968 { 128 } else { 0 };
    scale(digits as f64, power, Round::Nearest)
}
