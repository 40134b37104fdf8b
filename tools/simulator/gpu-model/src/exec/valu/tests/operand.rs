//! Reading sources and writing results: modifiers, halves, constants, EXEC, registers that are not allocated.

use super::*;

#[test]
fn modifiers_of_sources_and_results() {
    let two = 0x40000000;
    let clamp: fn(&mut Inst) = |i| i.clamp = true;
    /// MODE, operation, sources, change of the instruction, result.
    type Case<'a> = (u32, Op, &'a [u64], fn(&mut Inst), u64);
    let table: &[Case] = &[
        (MODE, V_ADD_F32, &[ONE, two], |i| i.neg = 0b01, ONE),
        (
            MODE,
            V_ADD_F32,
            &[NEG | ONE, two],
            |i| i.abs = 0b01,
            0x40400000,
        ),
        (
            MODE,
            V_ADD_F32,
            &[ONE, two],
            |i| (i.abs, i.neg) = (3, 3),
            0xc0400000,
        ),
        (MODE, V_MOV_B32, &[1], |i| i.neg = 1, NEG | 1),
        (
            MODE,
            V_ADD_F64,
            &[0x3ff0 << 48, 0],
            |i| i.neg = 1,
            0xbff0 << 48,
        ),
        (MODE, V_ADD_F16, &[0x3c00, 0], |i| i.neg = 1, 0xbc00),
        // CLAMP to [0, 1]: NaN becomes 0 only with DX10_CLAMP, -0 becomes 0.
        (MODE, V_ADD_F32, &[ONE, two], clamp, ONE),
        (MODE, V_ADD_F32, &[NEG | ONE, 0], clamp, 0),
        (MODE, V_ADD_F32, &[NEG, NEG], clamp, 0),
        (MODE, V_ADD_F32, &[QNAN, 0], clamp, 0),
        (MODE & !0x100, V_ADD_F32, &[QNAN, 0], clamp, QNAN),
        (
            MODE,
            V_PK_ADD_F16,
            &[0x3c00_bc00, 0x3c00_0000],
            clamp,
            0x3c00_0000,
        ),
    ];
    for (mode, op, values, change, expected) in table {
        let got = run_with(*mode, *op, values, change);
        assert_eq!(got, *expected, "{op:?} {values:x?}");
    }
    let changed =
        |mode, op, values: &[u64], change: &dyn Fn(&mut Inst)| run_with(mode, op, values, change);
    // OMOD requires MODE without IEEE rules and without denormals.
    for (omod, expected) in [(1, two), (2, 0x40800000), (3, 0x3f000000)] {
        let scale = |i: &mut Inst| i.omod = omod;
        assert_eq!(changed(0, V_ADD_F32, &[ONE, 0], &scale), expected);
        assert_eq!(changed(0x200, V_ADD_F32, &[ONE, 0], &scale), ONE);
        assert_eq!(changed(0x020, V_ADD_F32, &[ONE, 0], &scale), ONE);
        assert_eq!(changed(0, V_ADD_F32, &[NEG, NEG], &scale), 0);
    }
    // Float modifiers of operands that are not floats are not specified.
    let mut bad = inst(V_ADD_NC_U32);
    bad.neg = 1;
    assert_eq!(execute(&mut wave(32), &bad), Err(Fault::Unknown));
}

#[test]
fn op_sel_selects_a_half_and_keeps_the_other_one() {
    let values = [0x1111_0003, 0x0005_2222, 0x0001_0007];
    let mut wave = wave(32);
    load(&mut wave, &values);
    wave.vgpr[0] = [0xaaaa_bbbb; 64];
    let mut inst = inst(V_MAD_U16);
    inst.opsel = 0b0010;
    assert_eq!(execute(&mut wave, &inst), Ok(()));
    assert_eq!(wave.vgpr[0][0], 0xaaaa_0000 | (3 * 5 + 7));
    inst.opsel = 0b1111;
    assert_eq!(execute(&mut wave, &inst), Ok(()));
    assert_eq!(wave.vgpr[0][0], (0x1111 * 5 + 1) << 16 | (3 * 5 + 7));
    // The accumulator of v_fmac is the half that is written.
    let mut inst = Inst {
        dst: Operand::vgpr(12),
        ..super::inst(V_FMAC_F16)
    };
    wave.vgpr[4] = [0x3c00; 64];
    wave.vgpr[8] = [0x4000; 64];
    wave.vgpr[12] = [0x4400_0000; 64];
    inst.opsel = 0b1000;
    assert_eq!(execute(&mut wave, &inst), Ok(()));
    assert_eq!(wave.vgpr[12][0], 0x4600_0000);
    // Moves of halves, negated.
    wave.vgpr[4] = [0x3c00_4000; 64];
    wave.vgpr[8] = [0x5555_6666; 64];
    wave.vgpr[0] = [0x1234_5678; 64];
    let mut inst = super::inst(V_MOV_B16);
    (inst.opsel, inst.neg) = (0b0001, 1);
    assert_eq!(execute(&mut wave, &inst), Ok(()));
    assert_eq!(wave.vgpr[0][0], 0x1234_bc00);
    wave.set_sgpr64(Operand(6), 0b10);
    let mut inst = super::inst(V_CNDMASK_B16);
    inst.src[2] = Operand(6);
    inst.opsel = 0b1010;
    assert_eq!(execute(&mut wave, &inst), Ok(()));
    assert_eq!(wave.vgpr[0][..2], [0x4000_bc00, 0x5555_bc00]);
    // 32-bit operands do not have halves.
    let mut inst = super::inst(V_ADD_NC_U32);
    inst.opsel = 1;
    assert_eq!(execute(&mut wave, &inst), Err(Fault::Unknown));
}

#[test]
fn constants_have_the_width_of_their_operand() {
    let constant = |op, code: u16, literal: u32| {
        run_with(MODE, op, &[], |inst| {
            inst.src[1] = Operand(code);
            inst.literal = literal;
        })
    };
    assert_eq!(constant(V_OR_B32, 193, 0), 0xffffffff);
    assert_eq!(constant(V_OR_B32, 242, 0), ONE);
    assert_eq!(constant(V_OR_B32, 255, 0x12345678), 0x12345678);
    assert_eq!(constant(V_ADD_F16, 242, 0), 0x3c00);
    assert_eq!(constant(V_ADD_F16, 248, 0), 0x3118);
    assert_eq!(constant(V_ADD_F16, 255, 0x7777_3c01), 0x3c01);
    assert_eq!(constant(V_OR_B16, 193, 0), 0xffff);
    assert_eq!(constant(V_ADD_F64, 242, 0), 0x3ff0000000000000);
    assert_eq!(constant(V_ADD_F64, 248, 0), 0x3fc45f306dc9c882);
    assert_eq!(constant(V_ADD_F64, 255, 0x40080000), 0x4008000000000000);
    assert_eq!(constant(V_LSHLREV_B64, 193, 0), !0);
    assert_eq!(constant(V_LSHLREV_B64, 255, 0x80000000), 0x80000000);
    assert_eq!(constant(V_ASHRREV_I64, 255, 0x80000000), 0xffffffff80000000);
    assert_eq!(constant(V_PK_ADD_U16, 193, 0), 0xffffffff);
    assert_eq!(constant(V_PK_ADD_F16, 242, 0), 0x3c00);
    assert_eq!(constant(V_OR_B32, 124, 0), 0, "NULL");
    // 1.0 is not specified for a 16-bit integer, and a pair starts at an even register.
    for (op, code) in [
        (V_OR_B16, 242),
        (V_ADD_F64, 5),
        (V_ADD_F64, 253),
        (V_OR_B32, 235),
    ] {
        let mut inst = inst(op);
        inst.src[1] = Operand(code);
        assert_eq!(
            execute(&mut wave(32), &inst),
            Err(Fault::Unknown),
            "{op:?} {code}"
        );
    }
}

#[test]
fn only_active_lanes_are_written() {
    for lanes in [32, 64] {
        let mut wave = wave(lanes);
        wave.vgpr[4] = std::array::from_fn(|lane| lane as u32);
        wave.vgpr[0] = [7; 64];
        wave.vgpr[1] = [7; 64];
        wave.set_exec(0x8000_0001_8000_0002);
        let active = wave.exec();
        for op in [V_MOV_B32, V_CVT_F64_U32, V_SWAP_B32] {
            assert_eq!(execute(&mut wave, &inst(op)), Ok(()));
            for lane in 0..64 {
                let written = active >> lane & 1 != 0;
                assert_eq!(
                    wave.vgpr[0][lane] != 7,
                    written,
                    "{op:?} lane {lane} of {lanes}"
                );
            }
            wave.vgpr[0] = [7; 64];
            wave.vgpr[4] = std::array::from_fn(|lane| lane as u32);
        }
    }
}

#[test]
fn cndmask_takes_a_lane_mask() {
    let mut wave = wave(64);
    load(&mut wave, &[10, 20]);
    wave.set_sgpr64(Operand(6), 0x8000_0000_0000_0001);
    let mut inst = inst(V_CNDMASK_B32);
    inst.src[2] = Operand(6);
    assert_eq!(execute(&mut wave, &inst), Ok(()));
    assert_eq!(
        (wave.vgpr[0][0], wave.vgpr[0][1], wave.vgpr[0][63]),
        (20, 10, 20)
    );
    // A mask cannot be a pair at an odd register or at the last one.
    for odd in [7, 127] {
        inst.src[2] = Operand(odd);
        assert_eq!(execute(&mut wave, &inst), Err(Fault::Unknown));
    }
}

#[test]
fn registers_that_are_not_allocated() {
    for (op, change, missing) in [
        (V_MOV_B32, (Operand::vgpr(40), Operand::vgpr(0)), 40),
        (V_MOV_B32, (Operand::vgpr(0), Operand::vgpr(255)), 255),
        (V_ADD_F64, (Operand::vgpr(39), Operand::vgpr(0)), 40),
        (V_ADD_F64, (Operand::vgpr(0), Operand::vgpr(39)), 40),
        (V_MQSAD_U32_U8, (Operand::vgpr(37), Operand::vgpr(0)), 40),
        (
            V_WMMA_F32_16X16X16_F16,
            (Operand::vgpr(33), Operand::vgpr(0)),
            40,
        ),
        (V_READFIRSTLANE_B32, (Operand(3), Operand::vgpr(99)), 99),
        (V_SWAP_B16, (Operand::vgpr(99), Operand::vgpr(0)), 99),
    ] {
        let mut inst = inst(op);
        (inst.dst, inst.src[0]) = change;
        assert_eq!(
            execute(&mut wave(32), &inst),
            Err(Fault::Vgpr(missing)),
            "{op:?}"
        );
    }
}
