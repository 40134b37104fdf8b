//! Matrix multiplication of gfx9 (MFMA): D = A × B + C for one or several blocks of matrices (MI300 guide, 7.1).
//!
//! [`shape`] is the table of the operations; the positions of the elements in registers and lanes follow from it. EXEC is
//! ignored. The sums are computed in f64 and rounded once, so f32 results may differ from the hardware in the last
//! places.

use half::{bf16, f16};

use super::alu::Alu;
use super::integer::part;
use crate::exec::operand::{scalar32, scalar64};
use crate::fault::Fault;
use crate::isa::{Architecture, Op, Operand};
use crate::wave::VReg;

const LANES: usize = 64;

/// The type of the elements of A and B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    F32,
    F64,
    F16,
    Bf16,
    I8,
    /// 8-bit floats with four exponent bits.
    Fp8,
    /// 8-bit floats with five exponent bits.
    Bf8,
}

impl Element {
    const fn bits(self) -> usize {
        match self {
            Element::F64 => 64,
            Element::F32 => 32,
            Element::F16 | Element::Bf16 => 16,
            Element::I8 | Element::Fp8 | Element::Bf8 => 8,
        }
    }

    fn number(self, bits: u64) -> f64 {
        match self {
            Element::F64 => f64::from_bits(bits),
            Element::F32 => f32::from_bits(bits as u32).into(),
            Element::F16 => f16::from_bits(bits as u16).into(),
            Element::Bf16 => bf16::from_bits(bits as u16).into(),
            Element::I8 => f64::from(bits as i8),
            Element::Fp8 => float8(bits as u8, 3),
            Element::Bf8 => float8(bits as u8, 2),
        }
    }
}

/// An 8-bit float of gfx942 (FNUZ: no infinity, no negative zero, whose code is NaN) with this number of mantissa bits.
pub fn float8(bits: u8, mantissa: u32) -> f64 {
    if bits == 0x80 {
        return f64::NAN;
    }
    let exponent = i32::from(bits & 0x7f) >> mantissa;
    let fraction = i32::from(bits) & ((1 << mantissa) - 1);
    let bias = 1 << (6 - mantissa);
    let (significand, exponent) = match exponent {
        0 => (fraction, 1),
        _ => (fraction | 1 << mantissa, exponent),
    };
    let value = f64::from(significand) * f64::from(exponent - bias - mantissa as i32).exp2();
    if bits >> 7 != 0 { -value } else { value }
}

/// The matrices of an operation: `blocks` times N × K, K × N and N × N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub n: usize,
    pub k: usize,
    pub blocks: usize,
    pub a: Element,
    pub b: Element,
}

/// The shape of a dense operation. Not modelled: XF32, whose rounding of the sources is not documented, and sparse matrices.
pub fn shape(op: Op) -> Option<Shape> {
    use Element::*;
    use Op::*;
    let (n, k, blocks, a) = match op {
        V_MFMA_F32_32X32X1_2B_F32 => (32, 1, 2, F32),
        V_MFMA_F32_16X16X1_4B_F32 => (16, 1, 4, F32),
        V_MFMA_F32_4X4X1_16B_F32 => (4, 1, 16, F32),
        V_MFMA_F32_32X32X2_F32 => (32, 2, 1, F32),
        V_MFMA_F32_16X16X4_F32 => (16, 4, 1, F32),
        V_MFMA_F32_32X32X4_2B_F16 => (32, 4, 2, F16),
        V_MFMA_F32_16X16X4_4B_F16 => (16, 4, 4, F16),
        V_MFMA_F32_4X4X4_16B_F16 => (4, 4, 16, F16),
        V_MFMA_F32_32X32X8_F16 => (32, 8, 1, F16),
        V_MFMA_F32_16X16X16_F16 => (16, 16, 1, F16),
        V_MFMA_F32_32X32X2BF16 => (32, 2, 2, Bf16),
        V_MFMA_F32_16X16X2BF16 => (16, 2, 4, Bf16),
        V_MFMA_F32_4X4X2BF16 => (4, 2, 16, Bf16),
        V_MFMA_F32_32X32X4BF16 => (32, 4, 1, Bf16),
        V_MFMA_F32_16X16X8BF16 => (16, 8, 1, Bf16),
        V_MFMA_F32_32X32X4_2B_BF16 => (32, 4, 2, Bf16),
        V_MFMA_F32_16X16X4_4B_BF16 => (16, 4, 4, Bf16),
        V_MFMA_F32_4X4X4_16B_BF16 => (4, 4, 16, Bf16),
        V_MFMA_F32_32X32X8_BF16 => (32, 8, 1, Bf16),
        V_MFMA_F32_16X16X16_BF16 => (16, 16, 1, Bf16),
        V_MFMA_I32_32X32X4_2B_I8 => (32, 4, 2, I8),
        V_MFMA_I32_16X16X4_4B_I8 => (16, 4, 4, I8),
        V_MFMA_I32_4X4X4_16B_I8 => (4, 4, 16, I8),
        V_MFMA_I32_32X32X8I8 => (32, 8, 1, I8),
        V_MFMA_I32_16X16X16I8 => (16, 16, 1, I8),
        V_MFMA_I32_32X32X16_I8 => (32, 16, 1, I8),
        V_MFMA_I32_16X16X32_I8 => (16, 32, 1, I8),
        V_MFMA_F64_16X16X4_F64 => (16, 4, 1, F64),
        V_MFMA_F64_4X4X4_4B_F64 => (4, 4, 4, F64),
        V_MFMA_F32_16X16X32_BF8_BF8 | V_MFMA_F32_16X16X32_BF8_FP8 => (16, 32, 1, Bf8),
        V_MFMA_F32_16X16X32_FP8_BF8 | V_MFMA_F32_16X16X32_FP8_FP8 => (16, 32, 1, Fp8),
        V_MFMA_F32_32X32X16_BF8_BF8 | V_MFMA_F32_32X32X16_BF8_FP8 => (32, 16, 1, Bf8),
        V_MFMA_F32_32X32X16_FP8_BF8 | V_MFMA_F32_32X32X16_FP8_FP8 => (32, 16, 1, Fp8),
        _ => return None,
    };
    let b = match op {
        V_MFMA_F32_16X16X32_BF8_FP8 | V_MFMA_F32_32X32X16_BF8_FP8 => Fp8,
        V_MFMA_F32_16X16X32_FP8_BF8 | V_MFMA_F32_32X32X16_FP8_BF8 => Bf8,
        _ => a,
    };
    Some(Shape { n, k, blocks, a, b })
}

impl Shape {
    /// Consecutive elements of a row of A, or a column of B, that one lane has.
    fn elements_per_lane(self) -> usize {
        self.k * self.n * self.blocks / LANES
    }

    /// The lane, and the element within the lane, of A\[row\]\[k\] or B\[k\]\[column\] of a block.
    pub fn source(self, line: usize, k: usize, block: usize) -> (usize, usize) {
        let each = self.elements_per_lane();
        let lane = line + self.n * (block + self.blocks * (k / each));
        (lane, k % each)
    }

    /// The lane, and the element within the lane, of C\[row\]\[column\] or D\[row\]\[column\] of a block.
    pub fn result(self, row: usize, column: usize, block: usize) -> (usize, usize) {
        // Consecutive rows in a lane.
        let height = if self.a == Element::F64 { 1 } else { 4 };
        // Blocks, and groups of rows after them, that are next to each other in the lanes.
        let blocks = (LANES * height / (self.n * self.n)).max(1);
        let groups = LANES / blocks / self.n;
        let tall = self.n / (height * groups);
        let lane = column + self.n * (block % blocks + blocks * (row / height % groups));
        let element = row % height + height * (row / (height * groups) + tall * (block / blocks));
        (lane, element)
    }
}

impl Alu<'_> {
    /// The registers that start at a VGPR or an AccVGPR.
    fn matrix_registers(&self, operand: Operand, count: usize) -> Result<&[VReg], Fault> {
        let (file, first, fault): (&[VReg], _, fn(usize) -> Fault) =
            match (operand.as_vgpr(), operand.as_agpr()) {
                (Some(n), _) => (&self.wave.vgpr, n, Fault::Vgpr),
                (_, Some(n)) => (&self.wave.agpr, n, Fault::Agpr),
                _ => return Err(Fault::Unknown),
            };
        file.get(first..first + count)
            .ok_or(fault(first + count - 1))
    }

    pub fn mfma(&mut self) -> Result<(), Fault> {
        let shape = shape(self.inst.op).ok_or(Fault::Unknown)?;
        let [cbsz, abid, blgp] = self.inst.broadcast.map(usize::from);
        let double = shape.a == Element::F64;
        // BLGP of f64 is NEG in gfx942, and not documented in gfx90a.
        let neg = if double { blgp } else { 0 };
        let documented = !double || blgp == 0 || self.inst.arch == Architecture::Gfx942;
        if !documented || self.lanes() != LANES {
            return Err(Fault::Unknown);
        }
        // The blocks of a group use the same block of A.
        let group = 1 << cbsz;
        if group > shape.blocks || abid >= group {
            return Err(Fault::Unknown);
        }
        let a = self.matrix(0, shape, shape.a, |lane| lane)?;
        let b = match if double { 0 } else { blgp } {
            0 => self.matrix(1, shape, shape.b, |lane| lane)?,
            1 => self.matrix(1, shape, shape.b, |lane| lane % 32)?,
            2 => self.matrix(1, shape, shape.b, |lane| 32 + lane % 32)?,
            // AMD's matrix instruction calculator has this direction.
            3 => self.matrix(1, shape, shape.b, |lane| (lane + 16) % LANES)?,
            four => self.matrix(1, shape, shape.b, |lane| 16 * (four - 4) + lane % 16)?,
        };
        let registers = shape.n * shape.n * shape.blocks / LANES * if double { 2 } else { 1 };
        let mut d = match self.src[2].0 {
            256.. => self.matrix_registers(self.src[2], registers)?.to_vec(),
            _ if double => constant64(scalar64(self.wave, self.inst, self.src[2])?, registers),
            _ => vec![[scalar32(self.wave, self.inst, self.src[2])?; LANES]; registers],
        };
        let sign = |bit: usize| if neg >> bit & 1 != 0 { -1.0 } else { 1.0 };
        let sign_ab = sign(0) * sign(1);
        for block in 0..shape.blocks {
            let of_a = block / group * group + abid;
            for row in 0..shape.n {
                let line_a = &a[(of_a * shape.n + row) * shape.k..][..shape.k];
                for column in 0..shape.n {
                    let line_b = &b[(block * shape.n + column) * shape.k..][..shape.k];
                    let products = line_a.iter().zip(line_b);
                    let (lane, element) = shape.result(row, column, block);
                    if double {
                        let (low, high) = (d[2 * element][lane], d[2 * element + 1][lane]);
                        let c = f64::from_bits(u64::from(low) | u64::from(high) << 32) * sign(2);
                        let sum = products.fold(c, |sum, (a, b)| (a * sign_ab).mul_add(*b, sum));
                        d[2 * element][lane] = sum.to_bits() as u32;
                        d[2 * element + 1][lane] = (sum.to_bits() >> 32) as u32;
                    } else {
                        let sum: f64 = products.map(|(a, b)| a * b).sum();
                        let c = &mut d[element][lane];
                        *c = if shape.a == Element::I8 {
                            c.wrapping_add(sum as i64 as u32)
                        } else {
                            ((sum + f64::from(f32::from_bits(*c))) as f32).to_bits()
                        };
                    }
                }
            }
        }
        self.matrix_registers(self.dst, registers)?;
        let (file, first) = match (self.dst.as_vgpr(), self.dst.as_agpr()) {
            (Some(n), _) => (&mut self.wave.vgpr, n),
            (_, Some(n)) => (&mut self.wave.agpr, n),
            _ => return Err(Fault::Unknown),
        };
        file[first..first + registers].copy_from_slice(&d);
        Ok(())
    }

    /// All lines of source `i`: rows of A or columns of B, block by block. `from`: the lane whose elements a lane uses.
    fn matrix(
        &self,
        i: usize,
        shape: Shape,
        element: Element,
        from: impl Fn(usize) -> usize,
    ) -> Result<Vec<f64>, Fault> {
        let bits = element.bits();
        let count = (shape.elements_per_lane() * bits).div_ceil(32);
        let registers = self.matrix_registers(self.src[i], count)?;
        let mut numbers = Vec::with_capacity(shape.blocks * shape.n * shape.k);
        for block in 0..shape.blocks {
            for line in 0..shape.n {
                for k in 0..shape.k {
                    let (lane, n) = shape.source(line, k, block);
                    let lane = from(lane);
                    let raw = if bits == 64 {
                        let high = registers[2 * n + 1][lane];
                        u64::from(registers[2 * n][lane]) | u64::from(high) << 32
                    } else {
                        let word = registers[n * bits / 32][lane];
                        let in_word = (n % (32 / bits)) as u32;
                        part(word, in_word, bits as u32, false) as u64
                    };
                    numbers.push(element.number(raw));
                }
            }
        }
        Ok(numbers)
    }
}

/// Registers whose pairs have this value.
fn constant64(value: u64, registers: usize) -> Vec<VReg> {
    (0..registers)
        .map(|n| [(value >> (32 * (n % 2))) as u32; LANES])
        .collect()
}
