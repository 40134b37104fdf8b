//! Matrix multiplication across the wave (WMMA): D = A × B + C, 16 by 16 (guide, 7.9).
//!
//! Each of the lanes 0 to 15 has a row of A and a column of B. The other lanes have copies. A register of C and D has one
//! row per 16 lanes.

use half::{bf16, f16};

use super::alu::{Alu, Lanes};
use super::float::odd_single;
use super::integer::{Integer, part};
use super::value::Value;
use crate::exec::operand::scalar32;
use crate::fault::Fault;
use crate::isa::Operand;

const N: usize = 16;
type Matrix<T> = [[T; N]; N];

/// A 16-bit float format.
#[derive(Clone, Copy)]
pub enum Half {
    F16,
    Bf16,
}

impl Half {
    fn single(self, bits: u16) -> f32 {
        match self {
            Half::F16 => f16::from_bits(bits).to_f32(),
            Half::Bf16 => bf16::from_bits(bits).to_f32(),
        }
    }
    fn round(self, value: f64) -> u16 {
        match self {
            Half::F16 => f16::from_f32(odd_single(value)).to_bits(),
            Half::Bf16 => bf16::from_f32(odd_single(value)).to_bits(),
        }
    }
}

impl Alu<'_> {
    /// All lanes must be active: the guide does not specify inactive lanes.
    fn matrix_checks(&self) -> Result<(), Fault> {
        if self.active != self.all() || self.has_dpp() {
            return Err(Fault::Unknown);
        }
        Ok(())
    }

    /// Source `i`: one row or column of 16 numbers in each of 16 lanes.
    fn matrix_source<T: Copy + Default>(
        &self,
        i: usize,
        bits: u32,
        number: impl Fn(u32) -> T,
    ) -> Result<Matrix<T>, Fault> {
        let first = self.src[i].as_vgpr().ok_or(Fault::Unknown)?;
        let in_register = 32 / bits as usize;
        let mut matrix = [[T::default(); N]; N];
        for register in 0..N / in_register {
            let lanes = self.vgpr(first + register)?;
            for (line, word) in matrix.iter_mut().zip(lanes) {
                for k in 0..in_register {
                    let value = part(*word, k as u32, bits, false) as u32;
                    line[register * in_register + k] = number(value);
                }
            }
        }
        Ok(matrix)
    }

    fn half_matrix(&self, i: usize, format: Half) -> Result<Matrix<f64>, Fault> {
        let (neg_low, neg_high) = self.modifiers(i);
        let mut matrix = self.matrix_source(i, 16, |half| f64::from(format.single(half as u16)))?;
        for line in &mut matrix {
            for (k, value) in line.iter_mut().enumerate() {
                if if k % 2 == 0 { neg_low } else { neg_high } {
                    *value = -*value;
                }
            }
        }
        Ok(matrix)
    }

    /// The registers of the accumulator source. A constant is the value of all elements.
    fn accumulator(&self) -> Result<Vec<Lanes<u32>>, Fault> {
        let registers = 256 / self.lanes();
        match self.src[2].as_vgpr() {
            Some(first) => (0..registers)
                .map(|i| self.vgpr(first + i).copied())
                .collect(),
            None if self.src[2] == Operand::LITERAL => Err(Fault::Unknown),
            None => {
                let value = scalar32(self.wave, self.inst, self.src[2])?;
                Ok(vec![[value; 64]; registers])
            }
        }
    }

    /// Computes all elements of D. `f` gets row, column and the accumulator's element.
    fn matrix_result(&mut self, f: impl Fn(usize, usize, u32) -> u32) -> Result<(), Fault> {
        self.matrix_checks()?;
        let rows = self.lanes() / N;
        let mut registers = self.accumulator()?;
        for (r, register) in registers.iter_mut().enumerate() {
            for (lane, value) in register.iter_mut().enumerate().take(rows * N) {
                *value = f(rows * r + lane / N, lane % N, *value);
            }
        }
        let n = self.destination()?;
        self.vgpr(n + registers.len() - 1)?;
        for (r, register) in registers.iter().enumerate() {
            self.write_register(n + r, register)?;
        }
        Ok(())
    }

    pub fn wmma_f32(&mut self, format: Half) -> Result<(), Fault> {
        self.clamp = false;
        let (a, b) = (self.half_matrix(0, format)?, self.half_matrix(1, format)?);
        let (neg, abs) = self.modifiers(2);
        self.matrix_result(|row, column, c| {
            let c = signed(f64::from(f32::from_bits(c)), neg, abs);
            ((dot(&a[row], &b[column]) + c) as f32).to_bits()
        })
    }

    /// OP_SEL of source 2 selects the half of the accumulator's and the destination's registers.
    pub fn wmma_half(&mut self, format: Half) -> Result<(), Fault> {
        self.clamp = false;
        let (a, b) = (self.half_matrix(0, format)?, self.half_matrix(1, format)?);
        let (neg, abs) = self.modifiers(2);
        let shift = if self.high_half(2) { 16 } else { 0 };
        if self.src[2].as_vgpr().is_none() {
            return Err(Fault::Unknown);
        }
        // The other half of the destination does not change.
        let first = self.destination()?;
        let rows = self.lanes() / N;
        let old: Vec<Lanes<u32>> = (0..256 / self.lanes())
            .map(|i| self.vgpr(first + i).copied())
            .collect::<Result<_, _>>()?;
        self.matrix_result(|row, column, c| {
            let c = signed(f64::from(format.single((c >> shift) as u16)), neg, abs);
            let d = u32::from(format.round(dot(&a[row], &b[column]) + c));
            let old = old[row / rows][row % rows * N + column];
            old & !(0xffff << shift) | d << shift
        })
    }

    pub fn wmma_integer(&mut self, bits: u32) -> Result<(), Fault> {
        if self.inst.abs != 0 || self.inst.neg & !0b011 != 0 {
            return Err(Fault::Unknown);
        }
        let saturate = self.take_clamp();
        let number = |signed: bool| move |value: u32| part(value, 0, bits, signed);
        let a = self.matrix_source(0, bits, number(self.modifiers(0).0))?;
        let b = self.matrix_source(1, bits, number(self.modifiers(1).0))?;
        self.matrix_result(|row, column, c| {
            let products = a[row].iter().zip(&b[column]).map(|(a, b)| a * b);
            let sum = i64::from(c as i32) + products.sum::<i64>();
            let sum = if saturate {
                i32::saturated(sum)
            } else {
                i32::wrapped(sum)
            };
            sum.raw()
        })
    }
}

fn dot(a: &[f64; N], b: &[f64; N]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn signed(value: f64, neg: bool, abs: bool) -> f64 {
    let value = if abs { value.abs() } else { value };
    if neg { -value } else { value }
}
