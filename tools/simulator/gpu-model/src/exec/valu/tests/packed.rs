//! Packed operations, accumulators, VOPD, matrices.

use super::*;

#[test]
fn packed_halves() {
    check(&[
        (V_PK_ADD_I16, &[0x7fff_0001, 0x0001_0003], 0x8000_0004),
        (V_PK_SUB_U16, &[0x0000_0003, 0x0001_0001], 0xffff_0002),
        (V_PK_MAX_U16, &[0xffff_0001, 0x0000_0002], 0xffff_0002),
        (V_PK_MIN_I16, &[0xffff_0001, 0x0000_0002], 0xffff_0001),
        (V_PK_SUB_I16, &[0x0000_0001, 0x0001_0002], 0xffff_ffff),
        (
            V_PK_MAD_I16,
            &[0xffff_0002, 0x0003_0003, 0x0001_0001],
            0xfffe_0007,
        ),
        (V_PK_LSHLREV_B16, &[0x0011_0001, 0x8001_8001], 0x0002_0002),
        (V_PK_LSHRREV_B16, &[0x000f_0001, 0x8001_8001], 0x0001_4000),
        (V_PK_MAX_F16, &[0x7e00_8000, 0x3c00_0000], 0x3c00_0000),
        (V_PK_MIN_F16, &[0x7e00_8000, 0x3c00_0000], 0x3c00_8000),
    ]);
    // OP_SEL and OP_SEL_HI select the halves, NEG_LO and NEG_HI negate them.
    let got = run_with(MODE, V_PK_ADD_U16, &[0x0001_0002, 0x0010_0020], |inst| {
        (inst.opsel, inst.opsel_hi) = (0b01, 0b10);
    });
    assert_eq!(got, 0x0012_0021);
    let got = run_with(MODE, V_PK_ADD_F16, &[0x3c00_4000, 0x3c00_3c00], |inst| {
        (inst.neg, inst.abs) = (0b10, 0b01);
    });
    assert_eq!(got, 0x0000_3c00);
    let got = run_with(MODE, V_DOT4_I32_IU8, &[0xff, 0xff, 0], |inst| {
        inst.neg = 0b01
    });
    assert_eq!(got as u32 as i32, -255);
    // An f32, the low half of a second register, and the high half of a third one. NEG_HI is the absolute value.
    let mix = |inst: &mut Inst| (inst.opsel, inst.opsel_hi) = (0b100, 0b110);
    assert_eq!(
        run_with(MODE, V_FMA_MIX_F32, &[ONE, 0xffff_4000, 0xc200_ffff], mix),
        0xbf800000
    );
    let absolute = |inst: &mut Inst| {
        mix(inst);
        inst.abs = 0b100;
    };
    assert_eq!(
        run_with(
            MODE,
            V_FMA_MIXLO_F16,
            &[ONE, 0xffff_4000, 0xc200_ffff],
            absolute
        ),
        0x4500
    );
    assert_eq!(
        run_with(
            MODE,
            V_FMA_MIXHI_F16,
            &[ONE, 0xffff_4000, 0xc200_ffff],
            absolute
        ),
        0x4500_0000
    );
}

#[test]
fn accumulators() {
    let mut wave = wave(32);
    for (op, values, before, after) in [
        (V_FMAC_F32, [0x40000000, 0x40400000], ONE, 0x40e00000),
        (V_FMAC_DX9_ZERO_F32, [0, INF], ONE, ONE),
        (
            V_DOT2ACC_F32_F16,
            [0x4000_3c00, 0x4200_4000],
            ONE,
            0x41100000,
        ),
        (
            V_PK_FMAC_F16,
            [0x3c00_4000, 0x4000_4000],
            0x3c00_3c00,
            0x4200_4500,
        ),
    ] {
        load(&mut wave, &values);
        wave.vgpr[0] = [before as u32; 64];
        assert_eq!(execute(&mut wave, &inst(op)), Ok(()));
        assert_eq!(wave.vgpr[0][0], after as u32, "{op:?}");
    }
    // A constant is the value of both halves.
    for (op, after) in [
        (V_PK_FMAC_F16, 0x4000_4000),
        (V_DOT2ACC_F32_F16, 0x40400000),
    ] {
        load(&mut wave, &[0, 0x3c00_3c00]);
        wave.vgpr[0] = [if op == V_PK_FMAC_F16 {
            0x3c00_3c00
        } else {
            0x3f800000
        }; 64];
        let mut inst = inst(op);
        inst.src[0] = Operand(242);
        assert_eq!(execute(&mut wave, &inst), Ok(()));
        assert_eq!(wave.vgpr[0][0], after, "{op:?}");
    }
    // The low half of the constant.
    load(&mut wave, &[0x4000, 0x4200]);
    let v = Operand::vgpr;
    for (op, src, after) in [
        (V_FMAMK_F16, [v(4), Operand::LITERAL, v(8)], 11.0f32),
        (V_FMAAK_F16, [v(4), v(8), Operand::LITERAL], 10.0),
    ] {
        wave.vgpr[0] = [0; 64];
        let inst = Inst {
            src,
            literal: 0xffff_4400,
            ..inst(op)
        };
        assert_eq!(execute(&mut wave, &inst), Ok(()));
        let after = u32::from(f16::from_f32(after).to_bits());
        assert_eq!(wave.vgpr[0][0], after, "{op:?}");
    }
}

#[test]
fn both_halves_of_vopd_read_before_either_writes() {
    let mut wave = wave(32);
    wave.vgpr[4] = [3; 64];
    wave.vgpr[5] = [5; 64];
    let v = Operand::vgpr;
    let swap = Inst {
        enc: Encoding::Vopd,
        dst: v(4),
        src: [v(5), Operand::NONE, Operand::NONE],
        dual: Some(Dual {
            op: V_ADD_NC_U32,
            dst: v(5),
            src: [v(4), v(4), Operand::NONE],
        }),
        ..inst(V_MOV_B32)
    };
    assert_eq!(execute(&mut wave, &swap), Ok(()));
    assert_eq!((wave.vgpr[4][0], wave.vgpr[5][0]), (5, 6));
    // The constant in each half.
    wave.vgpr[4] = [2f32.to_bits(); 64];
    wave.vgpr[8] = [3f32.to_bits(); 64];
    let both = Inst {
        enc: Encoding::Vopd,
        literal: 10f32.to_bits(),
        src: [v(4), Operand::LITERAL, v(8)],
        dual: Some(Dual {
            op: V_FMAAK_F32,
            dst: v(1),
            src: [v(4), v(8), Operand::LITERAL],
        }),
        ..inst(V_FMAMK_F32)
    };
    assert_eq!(execute(&mut wave, &both), Ok(()));
    assert_eq!(f32::from_bits(wave.vgpr[0][0]), 23.0);
    assert_eq!(f32::from_bits(wave.vgpr[1][0]), 16.0);
    wave.lanes = 64;
    assert_eq!(execute(&mut wave, &both), Err(Fault::Unknown));
}

#[test]
fn vopd_multiply_add_and_minimum() {
    let mut wave = wave(32);
    load(&mut wave, &[0x40000000, 0x40400000]);
    wave.vgpr[0] = [0x3f800000; 64];
    let mut both = inst(V_FMAC_F32);
    both.enc = Encoding::Vopd;
    both.dual = Some(Dual {
        op: V_MIN_F32,
        dst: Operand::vgpr(1),
        src: [Operand::vgpr(4), Operand::vgpr(8), Operand::NONE],
    });
    assert_eq!(execute(&mut wave, &both), Ok(()));
    assert_eq!([0, 1].map(|n| f32::from_bits(wave.vgpr[n][0])), [7.0, 2.0]);
}

#[test]
fn vopd_dot_product_of_bf16() {
    let mut wave = wave(32);
    load(&mut wave, &[0x4000_3f80, 0x4040_4000]);
    wave.vgpr[0] = [0x3f800000; 64];
    let mut dot = inst(V_DOT2ACC_F32_BF16);
    dot.dual = Some(Dual {
        op: V_LSHLREV_B32,
        dst: Operand::vgpr(1),
        src: [Operand(129), Operand::vgpr(4), Operand::NONE],
    });
    assert_eq!(execute(&mut wave, &dot), Ok(()));
    assert_eq!(f32::from_bits(wave.vgpr[0][0]), 9.0);
    assert_eq!(wave.vgpr[1][0], 0x8000_7f00);
}

#[test]
fn matrices() {
    for lanes in [32, 64] {
        // A[i][k] = i + k, B[k][j] = k - j, C[i][j] = 100 i + j. All results are exact.
        let mut wave = wave(lanes);
        for lane in 0..lanes {
            for k in 0..16 {
                let half = |value: i32| u32::from(f16::from_f32(value as f32).to_bits());
                let row = lane as i32 % 16;
                let at = k as usize / 2;
                wave.vgpr[8 + at][lane] |= half(row + k) << (16 * (k % 2));
                wave.vgpr[16 + at][lane] |= half(k - row) << (16 * (k % 2));
                let at = k as usize / 4;
                wave.vgpr[24 + at][lane] |= ((row + k) as u32 & 0xff) << (8 * (k % 4));
                wave.vgpr[28 + at][lane] |= ((k - row) as u32 & 0xff) << (8 * (k % 4));
            }
        }
        let place = |i: usize, j: usize| (i / (lanes / 16), i % (lanes / 16) * 16 + j);
        for (i, j) in (0..256).map(|n| (n / 16, n % 16)) {
            let (register, lane) = place(i, j);
            wave.vgpr[32 + register][lane] = (100 * i + j) as u32;
        }
        let v = Operand::vgpr;
        let exact = |i: i32, j: i32| (0..16).map(|k| (i + k) * (k - j)).sum::<i32>();
        let integer = Inst {
            src: [v(24), v(28), v(32)],
            neg: 0b10,
            ..inst(V_WMMA_I32_16X16X16_IU8)
        };
        let constant = Inst {
            src: [v(8), v(16), Operand(242)],
            ..inst(V_WMMA_F32_16X16X16_F16)
        };
        let integers = wave_result(&mut wave, &integer, place);
        let floats = wave_result(&mut wave, &constant, place);
        for (n, (integer, float)) in integers.iter().zip(&floats).enumerate() {
            let (i, j) = (n as i32 / 16, n as i32 % 16);
            assert_eq!(
                *integer as i32,
                exact(i, j) + 100 * i + j,
                "{i} {j}, wave{lanes}"
            );
            assert_eq!(
                f32::from_bits(*float),
                exact(i, j) as f32 + 1.0,
                "{i} {j}, wave{lanes}"
            );
        }
        // NEG applies to even elements, NEG_HI to odd ones.
        let odd = |i: i32, j: i32| {
            (0..16)
                .map(|k| (i + k) * (k - j) * (1 - k % 2 * 2))
                .sum::<i32>()
        };
        let zero = Operand(128);
        let odd_negated = Inst {
            src: [v(8), v(16), zero],
            abs: 1,
            ..constant
        };
        for (n, float) in wave_result(&mut wave, &odd_negated, place)
            .iter()
            .enumerate()
        {
            let (i, j) = (n as i32 / 16, n as i32 % 16);
            assert_eq!(
                f32::from_bits(*float),
                odd(i, j) as f32,
                "{i} {j}, wave{lanes}"
            );
        }
        // f16: the selected half of C and D, and -A with both NEG and NEG_HI.
        for r in 0..256 / lanes {
            wave.vgpr[32 + r] = [0x3c00_7777; 64];
            wave.vgpr[r] = [0x1234_5678; 64];
        }
        let half = Inst {
            src: [v(8), v(16), v(32)],
            opsel: 0b100,
            neg: 1,
            abs: 1,
            ..inst(V_WMMA_F16_16X16X16_F16)
        };
        for (n, word) in wave_result(&mut wave, &half, place).iter().enumerate() {
            let (i, j) = (n as i32 / 16, n as i32 % 16);
            assert_eq!(word & 0xffff, 0x5678);
            let exact = f16::from_f32((1 - exact(i, j)) as f32);
            assert_eq!(
                word >> 16,
                u32::from(exact.to_bits()),
                "{i} {j}, wave{lanes}"
            );
        }
    }
    let mut partial = wave(32);
    partial.set_exec(1);
    assert_eq!(
        execute(&mut partial, &inst(V_WMMA_F32_16X16X16_F16)),
        Err(Fault::Unknown)
    );
}

fn wave_result(
    wave: &mut Wave,
    inst: &Inst,
    place: impl Fn(usize, usize) -> (usize, usize),
) -> Vec<u32> {
    assert_eq!(execute(wave, inst), Ok(()), "{:?}", inst.op);
    (0..256)
        .map(|n| place(n / 16, n % 16))
        .map(|(register, lane)| wave.vgpr[register][lane])
        .collect()
}
