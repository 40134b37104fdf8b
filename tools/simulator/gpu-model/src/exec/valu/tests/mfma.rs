//! Matrix operations of gfx9: the positions of the elements, and the products. The semantics test compares the layouts with
//! the host's (`cdna.hip`).

use std::collections::HashSet;

use super::super::mfma::{Element, Shape, float8, shape};
use super::*;
use crate::isa::Architecture;

/// All dense operations.
fn operations() -> Vec<(Op, Shape)> {
    let all: Vec<_> = Op::ALL
        .iter()
        .filter_map(|&op| Some((op, shape(op)?)))
        .collect();
    assert_eq!(all.len(), 37);
    all
}

#[test]
fn each_element_has_its_own_position() {
    for (op, shape) in operations() {
        let Shape { n, k, blocks, .. } = shape;
        let name = format!("X{n}X{k}");
        assert!(inst(op).spec.name.contains(&name), "{op:?}: {shape:?}");
        let mut sources = HashSet::new();
        let mut results = HashSet::new();
        for block in 0..blocks {
            for i in 0..n {
                for j in 0..k {
                    let (lane, element) = shape.source(i, j, block);
                    assert!(lane < 64 && element < n * k * blocks / 64);
                    assert!(sources.insert((lane, element)), "{op:?}");
                }
                for j in 0..n {
                    let (lane, element) = shape.result(i, j, block);
                    assert!(lane < 64 && element < n * n * blocks / 64);
                    assert!(results.insert((lane, element)), "{op:?}");
                }
            }
        }
        // The registers of the operands.
        let bits = |elements: usize, bits: usize| elements * bits / 64;
        let spec = inst(op).spec;
        let a = bits(n * k * blocks, spec_bits(shape.a));
        assert_eq!(a.max(32), spec.src[0].bits(64), "{op:?}");
        let result = if shape.a == Element::F64 { 64 } else { 32 };
        assert_eq!(bits(n * n * blocks, result), spec.dst[0].bits(64), "{op:?}");
    }
}

fn spec_bits(element: Element) -> usize {
    match element {
        Element::F64 => 64,
        Element::F32 => 32,
        Element::F16 | Element::Bf16 => 16,
        Element::I8 | Element::Fp8 | Element::Bf8 => 8,
    }
}

/// Writes an element to the registers that start at `first`.
fn put(file: &mut [[u32; 64]], first: usize, (lane, n): (usize, usize), bits: usize, value: u64) {
    if bits == 64 {
        file[first + 2 * n][lane] = value as u32;
        file[first + 2 * n + 1][lane] = (value >> 32) as u32;
        return;
    }
    let shift = n * bits % 32;
    let mask = (((1u64 << bits) - 1) << shift) as u32;
    let word = &mut file[first + n * bits / 32][lane];
    *word = *word & !mask | (value << shift) as u32 & mask;
}

/// The code of a small integer.
fn code(element: Element, value: i32) -> u64 {
    match element {
        Element::F64 => f64::from(value).to_bits(),
        Element::F32 => (value as f32).to_bits().into(),
        Element::F16 => f16::from_f32(value as f32).to_bits().into(),
        Element::Bf16 => half::bf16::from_f32(value as f32).to_bits().into(),
        Element::I8 => value as u8 as u64,
        Element::Fp8 | Element::Bf8 => {
            let mantissa = if element == Element::Fp8 { 3 } else { 2 };
            let found = (0..=255).find(|&bits| float8(bits, mantissa) == f64::from(value));
            found.expect("a small integer").into()
        }
    }
}

/// A = v0, B = v4 or a4, C = a64, D = a128 or v64.
fn multiply(
    op: Op,
    broadcast: [u8; 3],
    acc: bool,
    expected: impl Fn(&Run, usize, usize, usize) -> i32,
) {
    let shape = shape(op).unwrap();
    let Shape { n, k, blocks, .. } = shape;
    let mut random = Random(op as u64 + 1);
    let mut small = || (random.next() % 7) as i32 - 3;
    let mut matrix = |count: usize| (0..count).map(|_| small()).collect::<Vec<_>>();
    let run = Run {
        shape,
        a: matrix(blocks * n * k),
        b: matrix(blocks * n * k),
        c: matrix(blocks * n * n),
    };
    let mut wave = wave(64);
    wave.vgpr = vec![[0; 64]; 256];
    wave.agpr = vec![[0; 64]; 256];
    // EXEC is ignored.
    wave.set_exec(0xff);
    let result = match shape.a {
        Element::F64 => Element::F64,
        Element::I8 => Element::I8,
        _ => Element::F32,
    };
    let result_bits = if result == Element::F64 { 64 } else { 32 };
    let result_code = |value: i32| match result {
        Element::I8 => value as u32 as u64,
        other => code(other, value),
    };
    for block in 0..blocks {
        for i in 0..n {
            for j in 0..k {
                let at = shape.source(i, j, block);
                let index = (block * n + i) * k + j;
                put(
                    &mut wave.vgpr,
                    0,
                    at,
                    spec_bits(shape.a),
                    code(shape.a, run.a[index]),
                );
                let file = if acc { &mut wave.agpr } else { &mut wave.vgpr };
                put(file, 4, at, spec_bits(shape.b), code(shape.b, run.b[index]));
            }
            for j in 0..n {
                let at = shape.result(i, j, block);
                let c = run.c[(block * n + i) * n + j];
                put(&mut wave.agpr, 64, at, result_bits, result_code(c));
            }
        }
    }
    let instruction = Inst {
        dst: if acc {
            Operand::agpr(128)
        } else {
            Operand::vgpr(64)
        },
        src: [
            Operand::vgpr(0),
            if acc {
                Operand::agpr(4)
            } else {
                Operand::vgpr(4)
            },
            Operand::agpr(64),
        ],
        broadcast,
        ..inst(op)
    };
    assert_eq!(execute(&mut wave, &instruction), Ok(()), "{op:?}");
    let (file, first) = if acc {
        (&wave.agpr, 128)
    } else {
        (&wave.vgpr, 64)
    };
    for block in 0..blocks {
        for i in 0..n {
            for j in 0..n {
                let (lane, element) = shape.result(i, j, block);
                let got = if result_bits == 64 {
                    let high = file[first + 2 * element + 1][lane];
                    u64::from(file[first + 2 * element][lane]) | u64::from(high) << 32
                } else {
                    file[first + element][lane].into()
                };
                let wanted = result_code(expected(&run, block, i, j));
                assert_eq!(
                    got, wanted,
                    "{op:?} {broadcast:?}: block {block}, ({i}, {j})"
                );
            }
        }
    }
}

struct Run {
    shape: Shape,
    a: Vec<i32>,
    b: Vec<i32>,
    c: Vec<i32>,
}

impl Run {
    fn a(&self, block: usize, row: usize, k: usize) -> i32 {
        self.a[(block * self.shape.n + row) * self.shape.k + k]
    }
    fn b(&self, block: usize, column: usize, k: usize) -> i32 {
        self.b[(block * self.shape.n + column) * self.shape.k + k]
    }
    fn c(&self, block: usize, row: usize, column: usize) -> i32 {
        self.c[(block * self.shape.n + row) * self.shape.n + column]
    }
    fn product(&self, a: usize, b: usize, row: usize, column: usize) -> i32 {
        (0..self.shape.k)
            .map(|k| self.a(a, row, k) * self.b(b, column, k))
            .sum()
    }
}

#[test]
fn products_of_all_shapes() {
    for (op, _) in operations() {
        for acc in [false, true] {
            multiply(op, [0; 3], acc, |run, block, row, column| {
                run.product(block, block, row, column) + run.c(block, row, column)
            });
        }
    }
}

#[test]
fn broadcasts() {
    // CBSZ 1, ABID 1: two blocks use the second one of A.
    multiply(
        V_MFMA_F32_16X16X1_4B_F32,
        [1, 1, 0],
        false,
        |run, block, row, column| {
            run.product(block / 2 * 2 + 1, block, row, column) + run.c(block, row, column)
        },
    );
    multiply(
        V_MFMA_F32_4X4X4_16B_F16,
        [4, 9, 0],
        false,
        |run, block, row, column| run.product(9, block, row, column) + run.c(block, row, column),
    );
    // BLGP of a shape whose blocks are 16 lanes: the block of B.
    for (blgp, from) in [
        (1, [0, 1, 0, 1]),
        (2, [2, 3, 2, 3]),
        (3, [1, 2, 3, 0]),
        (4, [0; 4]),
        (5, [1; 4]),
        (6, [2; 4]),
        (7, [3; 4]),
    ] {
        multiply(
            V_MFMA_I32_16X16X4_4B_I8,
            [0, 0, blgp],
            false,
            |run, block, row, column| {
                run.product(block, from[block], row, column) + run.c(block, row, column)
            },
        );
    }
}

#[test]
fn f64_has_neg_only_in_gfx942() {
    for (arch, expected) in [
        (Architecture::Gfx90a, Err(Fault::Unknown)),
        (Architecture::Gfx942, Ok(())),
    ] {
        let mut wave = wave(64);
        wave.vgpr = vec![[0; 64]; 64];
        let instruction = Inst {
            arch,
            // C is 1.0.
            src: [Operand::vgpr(0), Operand::vgpr(2), Operand(242)],
            dst: Operand::vgpr(8),
            broadcast: [0, 0, 4],
            ..inst(V_MFMA_F64_4X4X4_4B_F64)
        };
        assert_eq!(execute(&mut wave, &instruction), expected, "{arch:?}");
        if expected.is_ok() {
            assert_eq!(wave.vgpr[9], [0xbff0_0000; 64]);
        }
    }
}

#[test]
fn floats_of_8_bits() {
    for (bits, mantissa, expected) in [
        (0x00, 3, 0.0),
        (0x40, 3, 1.0),
        (0xc0, 3, -1.0),
        (0x7f, 3, 240.0),
        (0x01, 3, 2f64.powi(-10)),
        (0x40, 2, 1.0),
        (0x7f, 2, 57344.0),
        (0x01, 2, 2f64.powi(-17)),
        (0x84, 2, -(2f64.powi(-15))),
    ] {
        assert_eq!(float8(bits, mantissa), expected, "{bits:#x} {mantissa}");
    }
    assert!(float8(0x80, 3).is_nan());
}
