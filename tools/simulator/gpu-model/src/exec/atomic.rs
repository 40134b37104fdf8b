//! The atomic operations of LDS and global memory: compute the new value from the old value.

use half::f16;

/// An atomic operation on 32 or 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomic {
    Add,
    Sub,
    /// Subtracts, clamped at zero.
    ClampedSub,
    /// Subtracts, unless the result would be negative.
    ConditionalSub,
    ReverseSub,
    Inc,
    Dec,
    MinSigned,
    MaxSigned,
    MinUnsigned,
    MaxUnsigned,
    And,
    Or,
    Xor,
    /// `(old & !data) | second`
    MaskOr,
    Swap,
    /// Writes the data if the old value equals the second operand.
    CompareSwap,
    /// Like `CompareSwap`, but compares floats.
    CompareSwapFloat,
    /// `flush`: denormal operands and results become zeros.
    AddFloat {
        flush: bool,
    },
    /// Adds both 16-bit floats of 32 bits.
    AddPacked {
        bf16: bool,
    },
    MinFloat,
    MaxFloat,
    /// `old - data` if that is not negative, otherwise `old + second`.
    Wrap,
}

impl Atomic {
    /// Whether it has a second data operand.
    pub fn has_second(self) -> bool {
        use Atomic::*;
        matches!(self, MaskOr | CompareSwap | CompareSwapFloat | Wrap)
    }
}

fn add_packed(a: u32, b: u32, bf16: bool) -> u32 {
    let sum = |a: u16, b: u16| {
        if bf16 {
            (half::bf16::from_bits(a) + half::bf16::from_bits(b)).to_bits()
        } else {
            (f16::from_bits(a) + f16::from_bits(b)).to_bits()
        }
    };
    let high = sum((a >> 16) as u16, (b >> 16) as u16);
    u32::from(sum(a as u16, b as u16)) | u32::from(high) << 16
}

macro_rules! apply {
    ($name:ident, $unsigned:ty, $signed:ty, $float:ty) => {
        /// The new value.
        pub fn $name(op: Atomic, old: $unsigned, data: $unsigned, second: $unsigned) -> $unsigned {
            let float = <$float>::from_bits;
            let either = |is_first, a, b| if is_first { a } else { b };
            match op {
                Atomic::Add => old.wrapping_add(data),
                Atomic::Sub => old.wrapping_sub(data),
                Atomic::ClampedSub => old.saturating_sub(data),
                Atomic::ConditionalSub => old.checked_sub(data).unwrap_or(old),
                Atomic::ReverseSub => data.wrapping_sub(old),
                Atomic::Inc => either(old >= data, 0, old.wrapping_add(1)),
                Atomic::Dec => either(old == 0 || old > data, data, old.wrapping_sub(1)),
                Atomic::MinSigned => (old as $signed).min(data as $signed) as $unsigned,
                Atomic::MaxSigned => (old as $signed).max(data as $signed) as $unsigned,
                Atomic::MinUnsigned => old.min(data),
                Atomic::MaxUnsigned => old.max(data),
                Atomic::And => old & data,
                Atomic::Or => old | data,
                Atomic::Xor => old ^ data,
                Atomic::MaskOr => old & !data | second,
                Atomic::Swap => data,
                Atomic::CompareSwap => either(old == second, data, old),
                Atomic::CompareSwapFloat => either(float(old) == float(second), data, old),
                Atomic::AddFloat { flush } => {
                    let flushed = |value: $float| {
                        if flush && value.is_subnormal() {
                            (0.0 as $float).copysign(value)
                        } else {
                            value
                        }
                    };
                    flushed(flushed(float(old)) + flushed(float(data))).to_bits()
                }
                Atomic::AddPacked { bf16 } => {
                    add_packed(old as u32, data as u32, bf16) as $unsigned
                }
                Atomic::MinFloat => either(float(data) < float(old), data, old),
                Atomic::MaxFloat => either(float(data) > float(old), data, old),
                Atomic::Wrap => either(
                    old >= data,
                    old.wrapping_sub(data),
                    old.wrapping_add(second),
                ),
            }
        }
    };
}

apply!(apply32, u32, i32, f32);
apply!(apply64, u64, i64, f64);
