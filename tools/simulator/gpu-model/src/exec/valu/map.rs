//! Applies functions to all lanes. The loops do not depend on the instruction, so the compiler can vectorize them.

use super::alu::{Alu, Lanes};
use super::float::Float;
use super::value::Value;
use crate::fault::Fault;

impl Alu<'_> {
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

    /// Like [`Alu::map2`], with the lane number.
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

    /// Like [`Alu::map3`], with the lane number.
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

    /// A result and a bit per lane. The bits are written to `dst2`.
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

    /// Like [`Alu::map2_carry`], with three sources.
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

/// The mask with one bit per flag.
#[inline]
pub fn ballot(flags: &[bool; 64]) -> u64 {
    let mut bits = 0;
    for (i, eight) in flags.as_chunks::<8>().0.iter().enumerate() {
        let bytes = u64::from_le_bytes(eight.map(u8::from));
        // Collects the lowest bits of the bytes in the highest byte.
        bits |= (bytes.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * i);
    }
    bits
}

/// Applies `f` to the first `n` lanes, using the host's widest vectors.
pub fn over_lanes<T: Float + Value>(
    f: impl Fn(T, T, T) -> T,
    [a, b, c]: [&Lanes<T::Raw>; 3],
    d: &mut Lanes<T::Raw>,
    n: usize,
) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor has both features.
        return unsafe { over_lanes_avx2(f, [a, b, c], d, n) };
    }
    over_lanes_any(f, [a, b, c], d, n);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn over_lanes_avx2<T: Float + Value>(
    f: impl Fn(T, T, T) -> T,
    sources: [&Lanes<T::Raw>; 3],
    d: &mut Lanes<T::Raw>,
    n: usize,
) {
    over_lanes_any(f, sources, d, n);
}

#[inline(always)]
fn over_lanes_any<T: Float + Value>(
    f: impl Fn(T, T, T) -> T,
    [a, b, c]: [&Lanes<T::Raw>; 3],
    d: &mut Lanes<T::Raw>,
    n: usize,
) {
    for i in 0..n.min(64) {
        d[i] = f(T::of(a[i]), T::of(b[i]), T::of(c[i])).raw();
    }
}
