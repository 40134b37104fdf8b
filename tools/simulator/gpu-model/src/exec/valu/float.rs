//! Floats of 16, 32 and 64 bits, and exact arithmetic for the rounding modes that the host's instructions do not have.

use half::f16;

use super::mode::Round;

/// A float of an IEEE format.
pub trait Float: Copy + PartialOrd {
    /// Whether the fields of MODE for f64 and f16 apply, not those for f32.
    const WIDE_MODE: bool;
    const WIDTH: u32;
    /// The number of stored mantissa bits.
    const MANTISSA: u32;
    /// The exponent of the smallest normal number.
    const MIN_EXPONENT: i32;
    fn bits(self) -> u64;
    fn from_bits64(bits: u64) -> Self;
    fn to_f64(self) -> f64;
    /// Rounds to nearest, ties to even.
    fn from_f64(value: f64) -> Self;
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    fn fma(self, b: Self, c: Self) -> Self;

    fn infinity(negative: bool) -> Self {
        Self::from_bits64(((1 << (Self::WIDTH - 1 - Self::MANTISSA)) - 1) << Self::MANTISSA)
            .signed(negative)
    }
    /// This value with the given sign.
    fn signed(self, negative: bool) -> Self {
        let sign = 1 << (Self::WIDTH - 1);
        Self::from_bits64(self.bits() & !sign | if negative { sign } else { 0 })
    }
    fn zero(negative: bool) -> Self {
        Self::from_bits64(0).signed(negative)
    }
    fn is_negative(self) -> bool {
        self.bits() >> (Self::WIDTH - 1) != 0
    }
    fn magnitude(self) -> u64 {
        self.bits() & !(1 << (Self::WIDTH - 1))
    }
    fn negated(self) -> Self {
        self.signed(!self.is_negative())
    }
    fn is_zero(self) -> bool {
        self.magnitude() == 0
    }
    fn is_nan(self) -> bool {
        self.magnitude() > Self::infinity(false).bits()
    }
    fn is_finite(self) -> bool {
        self.magnitude() < Self::infinity(false).bits()
    }
    fn is_infinite(self) -> bool {
        self.magnitude() == Self::infinity(false).bits()
    }
    fn is_signaling(self) -> bool {
        self.is_nan() && self.bits() >> (Self::MANTISSA - 1) & 1 == 0
    }
    fn quieted(self) -> Self {
        Self::from_bits64(self.bits() | 1 << (Self::MANTISSA - 1))
    }
    fn is_denormal(self) -> bool {
        self.magnitude().wrapping_sub(1) < (1 << Self::MANTISSA) - 1
    }
    /// The stored exponent, including the bias.
    fn biased_exponent(self) -> i32 {
        (self.magnitude() >> Self::MANTISSA) as i32
    }
    /// Replaces a denormal by a zero of the same sign.
    fn flushed(self) -> Self {
        if self.is_denormal() {
            Self::zero(self.is_negative())
        } else {
            self
        }
    }
    /// Clamps to [0, 1].
    fn clamped(self, dx10: bool) -> Self {
        if self.is_nan() {
            if dx10 { Self::zero(false) } else { self }
        } else if self.is_negative() {
            Self::zero(false)
        } else if self.to_f64() > 1.0 {
            Self::from_f64(1.0)
        } else {
            self
        }
    }
}

macro_rules! host_floats {
    ($($type:ident $wide:literal $bits:literal $mantissa:literal $min:literal;)*) => {$(
        impl Float for $type {
            const WIDE_MODE: bool = $wide;
            const WIDTH: u32 = $bits;
            const MANTISSA: u32 = $mantissa;
            const MIN_EXPONENT: i32 = $min;
            #[inline(always)]
            fn bits(self) -> u64 {
                u64::from(self.to_bits())
            }
            #[inline(always)]
            fn from_bits64(bits: u64) -> Self {
                $type::from_bits(bits as _)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $type
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                self / other
            }
            #[inline(always)]
            fn fma(self, b: Self, c: Self) -> Self {
                self.mul_add(b, c)
            }
        }
    )*};
}

host_floats! {
    f32 false 32 23 -126;
    f64 true 64 52 -1022;
}

impl Float for f16 {
    const WIDE_MODE: bool = true;
    const WIDTH: u32 = 16;
    const MANTISSA: u32 = 10;
    const MIN_EXPONENT: i32 = -14;
    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self.to_bits())
    }
    #[inline(always)]
    fn from_bits64(bits: u64) -> Self {
        f16::from_bits(bits as u16)
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(single(self))
    }
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        half(odd_single(value))
    }
    // Computing in f32 (fused operations in f64) and rounding to f16 gives the same result as rounding once: f32 has enough
    // additional bits that the first rounding cannot create a tie for the second one.
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        half(single(self) + single(other))
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        half(single(self) * single(other))
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        half(single(self) / single(other))
    }
    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        let exact = Float::to_f64(self) * Float::to_f64(b) + Float::to_f64(c);
        // The half crate's from_f64 rounds twice on hosts that have f16 instructions.
        <f16 as Float>::from_f64(exact)
    }
}

/// Converts f16 to f32. The half crate's conversion has branches that prevent vectorization.
#[inline(always)]
fn single(value: f16) -> f32 {
    let bits = u32::from(value.to_bits());
    // The exponent's bias is 112 less than the bias of f32, also for denormals.
    let scaled = f32::from_bits((bits & 0x7fff) << 13) * f32::from_bits((127 + 112) << 23);
    let special = if bits & 0x7c00 == 0x7c00 {
        0xff << 23
    } else {
        0
    };
    f32::from_bits(scaled.to_bits() | special | (bits & 0x8000) << 16)
}

/// Converts f32 to f16. Rounds to nearest, ties to even.
#[inline(always)]
fn half(value: f32) -> f16 {
    let bits = value.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    // Adding this rounds to nearest, ties to even.
    let to_even = 0xfff + (magnitude >> 13 & 1);
    let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(to_even) >> 13;
    // Adding 0.5 aligns the last place of a denormal f16 with the last place of the sum.
    let denormal = (f32::from_bits(magnitude) + 0.5)
        .to_bits()
        .wrapping_sub(126 << 23);
    let nan = 0x7e00 | magnitude >> 13 & 0x3ff;
    let rounded = if magnitude > 0xff << 23 {
        nan
    } else if magnitude >= (127 + 16) << 23 {
        0x7c00
    } else if magnitude < (127 - 14) << 23 {
        denormal
    } else {
        normal
    };
    f16::from_bits((rounded | bits >> 16 & 0x8000) as u16)
}

/// Converts f64 to f32 with rounding to odd. Rounding the result to a format with fewer bits gives the same result as
/// rounding `value` directly.
#[inline(always)]
pub fn odd_single(value: f64) -> f32 {
    let single = value as f32;
    let back = f64::from(single);
    let farther = back.abs() > value.abs();
    let inexact = back != value && !value.is_nan();
    f32::from_bits((single.to_bits() - u32::from(farther)) | u32::from(inexact))
}

/// A finite number: a significand times a power of two.
#[derive(Clone, Copy)]
struct Parts {
    negative: bool,
    significand: u128,
    exponent: i32,
}

fn parts<T: Float>(value: T) -> Parts {
    let stored = value.magnitude() & ((1 << T::MANTISSA) - 1);
    let biased = value.biased_exponent();
    let (significand, biased) = if biased == 0 {
        (stored, 1)
    } else {
        (stored | 1 << T::MANTISSA, biased)
    };
    Parts {
        negative: value.is_negative(),
        significand: u128::from(significand),
        exponent: biased - 1 + T::MIN_EXPONENT - T::MANTISSA as i32,
    }
}

/// Rounds `significand` × 2^`exponent` to a float. If `significand` has more bits than the format's significand, its lowest
/// bit may be a sticky bit.
pub fn encode<T: Float>(negative: bool, significand: u128, exponent: i32, round: Round) -> T {
    if significand == 0 {
        return T::zero(negative);
    }
    let length = 128 - significand.leading_zeros() as i32;
    let mantissa = T::MANTISSA as i32;
    let lowest = T::MIN_EXPONENT - mantissa;
    let ulp = (exponent + length - 1 - mantissa).max(lowest);
    let shift = ulp - exponent;
    let kept = if shift <= 0 {
        significand << -shift
    } else {
        let (kept, rest, half) = if shift < 128 {
            let rest = significand & ((1 << shift) - 1);
            (significand >> shift, rest, 1 << (shift - 1))
        } else {
            (0, 1, 2)
        };
        let up = match round {
            Round::Nearest => rest > half || rest == half && kept & 1 != 0,
            Round::Up => rest != 0 && !negative,
            Round::Down => rest != 0 && negative,
            Round::Zero => false,
        };
        kept + u128::from(up)
    };
    // The addition also adds the implicit bit, and a carry of the rounding, to the exponent.
    let magnitude = (((ulp - lowest) as u128) << mantissa) + kept;
    let infinity = T::infinity(false).bits();
    let magnitude = if magnitude < u128::from(infinity) {
        magnitude as u64
    } else {
        let to_infinity = match round {
            Round::Nearest => true,
            Round::Up => !negative,
            Round::Down => negative,
            Round::Zero => false,
        };
        infinity - u64::from(!to_infinity)
    };
    T::from_bits64(magnitude).signed(negative)
}

/// (`a` × `b` + `c`) × 2^`scale`, rounded once.
pub fn fma<T: Float>(a: T, b: T, c: T, scale: i32, round: Round) -> T {
    if !a.is_finite() || !b.is_finite() || !c.is_finite() {
        return a.fma(b, c);
    }
    let (a, b, c) = (parts(a), parts(b), parts(c));
    let product = Parts {
        negative: a.negative != b.negative,
        significand: a.significand * b.significand,
        exponent: a.exponent + b.exponent,
    };
    if product.significand == 0 && c.significand == 0 {
        let negative = if product.negative == c.negative {
            c.negative
        } else {
            round == Round::Down
        };
        return T::zero(negative);
    }
    if product.significand == 0 || c.significand == 0 {
        let one = if c.significand == 0 { product } else { c };
        return encode(one.negative, one.significand, one.exponent + scale, round);
    }
    // In both, bit 125 is the highest set bit, so the sum does not overflow. After a shift of two or more bits, at most one
    // bit cancels, so the sticky bit stays below the rounding position.
    let (product, c) = (aligned(product), aligned(c));
    let (large, small) = if product.exponent >= c.exponent {
        (product, c)
    } else {
        (c, product)
    };
    let shift = (large.exponent - small.exponent) as u32;
    let addend = if shift < 128 {
        let lost = small.significand & ((1 << shift) - 1) != 0;
        small.significand >> shift | u128::from(lost)
    } else {
        1
    };
    let (negative, sum) = if large.negative == small.negative {
        (large.negative, large.significand + addend)
    } else if large.significand == addend {
        return T::zero(round == Round::Down);
    } else if large.significand > addend {
        (large.negative, large.significand - addend)
    } else {
        (small.negative, addend - large.significand)
    };
    encode(negative, sum, large.exponent + scale, round)
}

fn aligned(number: Parts) -> Parts {
    let shift = number.significand.leading_zeros() - 2;
    Parts {
        significand: number.significand << shift,
        exponent: number.exponent - shift as i32,
        ..number
    }
}

/// `value` × 2^`power`.
pub fn scale<T: Float>(value: T, power: i32, round: Round) -> T {
    if !value.is_finite() || value.is_zero() {
        return if value.is_nan() {
            value.quieted()
        } else {
            value
        };
    }
    let Parts {
        negative,
        significand,
        exponent,
    } = parts(value);
    // Larger powers have the same result: this exceeds the exponent range of every format.
    let power = power.clamp(-5000, 5000);
    encode(negative, significand, exponent + power, round)
}

/// Converts from one format to another.
pub fn convert<S: Float, D: Float>(value: S, round: Round) -> D {
    if round == Round::Nearest || !value.is_finite() {
        return D::from_f64(value.to_f64());
    }
    let Parts {
        negative,
        significand,
        exponent,
    } = parts(value);
    encode(negative, significand, exponent, round)
}

/// The exponent for a significand in [0.5, 1); 0 for zero, infinities and NaN.
pub fn frexp_exponent<T: Float>(value: T) -> i32 {
    if !value.is_finite() || value.is_zero() {
        return 0;
    }
    let number = parts(value);
    number.exponent + 128 - number.significand.leading_zeros() as i32
}

pub fn frexp_mantissa<T: Float>(value: T) -> T {
    scale(value, -frexp_exponent(value), Round::Nearest)
}

/// The minimum, with -0 less than +0. If one operand is a quiet NaN, returns the other one. With `ieee`, a signaling NaN is
/// returned, quieted.
pub fn min<T: Float>(a: T, b: T, ieee: bool) -> T {
    pick(a, b, ieee, a < b || a == b && a.is_negative())
}

pub fn max<T: Float>(a: T, b: T, ieee: bool) -> T {
    pick(a, b, ieee, a > b || a == b && !a.is_negative())
}

fn pick<T: Float>(a: T, b: T, ieee: bool, first: bool) -> T {
    if ieee && a.is_signaling() {
        a.quieted()
    } else if ieee && b.is_signaling() {
        b.quieted()
    } else if b.is_nan() || first {
        a
    } else {
        b
    }
}

/// The minimum of IEEE 754-2019: a NaN if one of the numbers is a NaN.
pub fn minimum<T: Float>(a: T, b: T) -> T {
    nan_of(a, b).unwrap_or_else(|| min(a, b, false))
}

pub fn maximum<T: Float>(a: T, b: T) -> T {
    nan_of(a, b).unwrap_or_else(|| max(a, b, false))
}

/// The first signaling NaN, or else the first NaN, quieted.
fn nan_of<T: Float>(a: T, b: T) -> Option<T> {
    let signaling = [a, b].into_iter().find(|value| value.is_signaling());
    let nan = signaling.or_else(|| [a, b].into_iter().find(|value| value.is_nan()));
    nan.map(T::quieted)
}

pub fn med3<T: Float>(a: T, b: T, c: T, ieee: bool) -> T {
    if a.is_nan() || b.is_nan() || c.is_nan() {
        return min(min(a, b, ieee), c, ieee);
    }
    let largest = max(max(a, b, ieee), c, ieee);
    if largest == a {
        max(b, c, ieee)
    } else if largest == b {
        max(a, c, ieee)
    } else {
        max(a, b, ieee)
    }
}

/// How to round to an integer.
#[derive(Clone, Copy)]
pub enum Integral {
    Trunc,
    Ceil,
    Floor,
    NearestEven,
}

pub fn integral<T: Float>(value: T, how: Integral) -> T {
    let wide = value.to_f64();
    // The conversion is exact: the integers next to a float are representable in its format.
    T::from_f64(match how {
        Integral::Trunc => wide.trunc(),
        Integral::Ceil => wide.ceil(),
        Integral::Floor => wide.floor(),
        Integral::NearestEven => wide.round_ties_even(),
    })
}

/// `value` minus its floor, always less than 1.
pub fn fract<T: Float>(value: T, round: Round) -> T {
    let floor = integral(value, Integral::Floor).negated();
    let rest = fma(value, T::from_f64(1.0), floor, 0, round);
    let below_one = T::from_bits64(T::from_f64(1.0).bits() - 1);
    if rest > below_one { below_one } else { rest }
}

pub fn sum<T: Float>(a: T, b: T, round: Round) -> T {
    fma(a, T::from_f64(1.0), b, 0, round)
}

pub fn product<T: Float>(a: T, b: T, round: Round) -> T {
    // Adding a zero with the product's sign does not change the product in any rounding mode.
    fma(a, b, T::zero(a.is_negative() != b.is_negative()), 0, round)
}
