//! Integer operations that need more than one expression.

use super::alu::Alu;
use super::value::Value;
use crate::fault::Fault;

/// An integer type that an exact result can be converted to.
pub trait Integer: Value {
    fn wrapped(exact: i64) -> Self;
    fn saturated(exact: i64) -> Self;
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Integer for $type {
            fn wrapped(exact: i64) -> Self {
                exact as $type
            }
            fn saturated(exact: i64) -> Self {
                exact.clamp(i64::from(<$type>::MIN), i64::from(<$type>::MAX)) as $type
            }
        }
    )*};
}

integers! { u16 i16 u32 i32 }

impl Alu<'_> {
    /// An operation with two forms. CLAMP selects the saturating one.
    pub fn clampable2<A: Value, B: Value, D: Value>(
        &mut self,
        wrapping: impl Fn(A, B) -> D,
        saturating: impl Fn(A, B) -> D,
    ) -> Result<(), Fault> {
        if self.take_clamp() {
            self.map2(saturating)
        } else {
            self.map2(wrapping)
        }
    }

    /// An operation with three sources and an exact result, which wraps, or saturates with CLAMP.
    pub fn exact3<A, B, D>(&mut self, f: impl Fn(A, B, D) -> i64) -> Result<(), Fault>
    where
        A: Value,
        B: Value,
        D: Integer,
    {
        if self.take_clamp() {
            self.map3(|a: A, b: B, c: D| D::saturated(f(a, b, c)))
        } else {
            self.map3(|a: A, b: B, c: D| D::wrapped(f(a, b, c)))
        }
    }

    /// Sum or difference with carry. `f` returns the exact result of two words and the carry-in.
    pub fn carry(&mut self, carry_in: u64, f: impl Fn(i64, i64, i64) -> i64) -> Result<(), Fault> {
        let saturate = self.take_clamp();
        self.map2_carry(|lane, a: u32, b: u32| {
            let exact = f(i64::from(a), i64::from(b), (carry_in >> lane & 1) as i64);
            let value = if saturate {
                u32::saturated(exact)
            } else {
                u32::wrapped(exact)
            };
            (value, u32::try_from(exact).is_err())
        })
    }

    /// Adds the number of lower lanes whose bit is set in source 0 to source 1. Source 0 is the mask of the 32 lanes that
    /// start at `first`.
    pub fn mbcnt(&mut self, first: usize) -> Result<(), Fault> {
        self.map2_lane(|lane, bits: u32, start: u32| {
            let below = lane.saturating_sub(first);
            let mask = if below < 32 { (1 << below) - 1 } else { !0 };
            start.wrapping_add((bits & mask).count_ones())
        })
    }

    /// Four sums of absolute differences between the bytes of source 1 and four windows of source 0, packed in 64 bits.
    pub fn quad_sad(&mut self, masked: bool) -> Result<(), Fault> {
        let saturate = self.take_clamp();
        self.map3(|bytes: u64, reference: u32, start: u64| {
            (0..4).fold(0, |packed, i| {
                let window = (bytes >> (8 * i)) as u32;
                let start = i64::from((start >> (16 * i)) as u16);
                let sum = start + i64::from(sad_u8(window, reference, masked));
                let sum = if saturate {
                    u16::saturated(sum)
                } else {
                    u16::wrapped(sum)
                };
                packed | u64::from(sum) << (16 * i)
            })
        })
    }

    /// The masked sums of [`Alu::quad_sad`], in four registers.
    pub fn quad_sad_wide(&mut self) -> Result<(), Fault> {
        if self.clamp {
            return Err(Fault::Unknown);
        }
        let (mut bytes, mut reference) = ([0; 64], [0; 64]);
        let bytes = u64::fetch(self, 0, &mut bytes)?;
        let reference = u32::fetch(self, 1, &mut reference)?;
        let start = self.src[2].as_vgpr().ok_or(Fault::Unknown)?;
        let mut sums = [[0; 64]; 4];
        for (i, sums) in sums.iter_mut().enumerate() {
            let start = self.vgpr(start + i)?;
            for lane in 0..self.lanes() {
                let window = (bytes[lane] >> (8 * i)) as u32;
                sums[lane] = start[lane].wrapping_add(sad_u8(window, reference[lane], true));
            }
        }
        let n = self.destination()?;
        self.vgpr(n + 3)?;
        for (i, sums) in sums.iter().enumerate() {
            self.write_register(n + i, sums)?;
        }
        Ok(())
    }
}

/// The low 24 bits, sign-extended.
pub fn low24(a: i32) -> i64 {
    i64::from(a << 8 >> 8)
}

pub fn low24u(a: u32) -> i64 {
    i64::from(a & 0xff_ffff)
}

/// The sum of absolute differences of four bytes. If `masked`, skips the bytes whose reference, the byte of `b`, is 0.
pub fn sad_u8(a: u32, b: u32, masked: bool) -> u32 {
    let pairs = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
    pairs
        .filter(|&(_, b)| !masked || b != 0)
        .map(|(a, b)| u32::from(a.abs_diff(b)))
        .sum()
}

pub fn sad_u16(a: u32, b: u32) -> u32 {
    let difference = |shift| u32::from(((a >> shift) as u16).abs_diff((b >> shift) as u16));
    difference(0) + difference(16)
}

/// Averages of bytes, rounded up if the lowest bit of the byte in `up` is set.
pub fn lerp_u8(a: u32, b: u32, up: u32) -> u32 {
    let byte = |word: u32, i: usize| u32::from(word.to_le_bytes()[i]);
    (0..4).fold(0, |word, i| {
        word | (byte(a, i) + byte(b, i) + (byte(up, i) & 1)) >> 1 << (8 * i)
    })
}

/// The low word of `high:low` shifted right.
pub fn align(high: u32, low: u32, shift: u32) -> u32 {
    ((u64::from(high) << 32 | u64::from(low)) >> shift) as u32
}

/// Each byte of the selector determines a byte of the result. 0 to 7: this byte of `high:low`. 8 to 11: the sign of byte 1,
/// 3, 5 or 7, extended. 12: 0. 13 or more: 0xff.
pub fn perm(high: u32, low: u32, selector: u32) -> u32 {
    let bytes = (u64::from(high) << 32 | u64::from(low)).to_le_bytes();
    let pick = |selector: u8| match selector {
        0..=7 => bytes[usize::from(selector)],
        8..=11 => (bytes[usize::from(selector - 8) * 2 + 1] as i8 >> 7) as u8,
        12 => 0,
        13.. => 0xff,
    };
    u32::from_le_bytes(selector.to_le_bytes().map(pick))
}

pub fn bfe_u32(a: u32, offset: u32, width: u32) -> u32 {
    a >> (offset & 31) & ((1 << (width & 31)) - 1)
}

pub fn bfe_i32(a: i32, offset: u32, width: u32) -> i32 {
    match width & 31 {
        0 => 0,
        width => a >> (offset & 31) << (32 - width) >> (32 - width),
    }
}

pub fn bfm(width: u32, offset: u32) -> u32 {
    ((1 << (width & 31)) - 1) << (offset & 31)
}

/// The number of leading zeros; -1 for 0.
pub fn clz(a: u32) -> i32 {
    if a == 0 { -1 } else { a.leading_zeros() as i32 }
}

pub fn ctz(a: u32) -> i32 {
    if a == 0 {
        -1
    } else {
        a.trailing_zeros() as i32
    }
}

/// The number of leading bits that equal the sign bit; -1 if all do.
pub fn cls(a: i32) -> i32 {
    clz((a ^ a >> 31) as u32)
}

pub fn med3<T: Ord + Copy>(a: T, b: T, c: T) -> T {
    a.max(b).min(a.min(b).max(c))
}

/// The `i`th `width`-bit part of a word.
pub fn part(word: u32, i: u32, width: u32, signed: bool) -> i64 {
    let top = word << (32 - width * (i + 1));
    if signed {
        i64::from(top as i32 >> (32 - width))
    } else {
        i64::from(top >> (32 - width))
    }
}
