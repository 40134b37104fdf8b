//! What the semantics test (`lanes.hip`) does not generate of the operations across lanes, and registers selected by M0.

use super::*;

#[test]
fn readlane_and_writelane_ignore_exec() {
    let mut wave = wave(32);
    wave.vgpr[4] = std::array::from_fn(|lane| 100 + lane as u32);
    wave.set_exec(0b1000);
    let mut read = Inst {
        dst: Operand(9),
        ..inst(V_READFIRSTLANE_B32)
    };
    assert_eq!(execute(&mut wave, &read), Ok(()));
    assert_eq!(wave.sgpr[9], 103);
    wave.set_exec(0);
    assert_eq!(execute(&mut wave, &read), Ok(()));
    assert_eq!(wave.sgpr[9], 100);
    wave.sgpr[3] = 32 + 5;
    read.op = V_READLANE_B32;
    read.src[1] = Operand(3);
    assert_eq!(execute(&mut wave, &read), Ok(()));
    assert_eq!(wave.sgpr[9], 105);
    read.dst = Operand::NULL;
    assert_eq!(execute(&mut wave, &read), Ok(()));
    assert_eq!(wave.sgpr[124], 0);
    let mut write = inst(V_WRITELANE_B32);
    write.src = [Operand(9), Operand(128 + 31), Operand::NONE];
    assert_eq!(execute(&mut wave, &write), Ok(()));
    assert_eq!((wave.vgpr[0][31], wave.vgpr[0][30]), (105, 0));
}

#[test]
fn permlane64_of_a_wave32_does_nothing() {
    let mut wave = wave(32);
    wave.vgpr[0] = [7; 64];
    assert_eq!(execute(&mut wave, &inst(V_PERMLANE64_B32)), Ok(()));
    assert_eq!(wave.vgpr[0], [7; 64]);
}

#[test]
fn permlane16_with_fetch_inactive_reads_an_inactive_lane() {
    let mut wave = wave(32);
    wave.vgpr[4] = std::array::from_fn(|lane| 100 + lane as u32);
    wave.sgpr[2] = 1;
    wave.set_exec(0b1);
    let mut inst = inst(V_PERMLANE16_B32);
    inst.src = [Operand::vgpr(4), Operand(2), Operand(3)];
    inst.opsel = 0b01;
    assert_eq!(execute(&mut wave, &inst), Ok(()));
    assert_eq!(wave.vgpr[0][..2], [101, 0]);
}

/// The result of `v_mov_b32_dpp`. In each lane, the source is 100 + lane, and the destination is 7 before the move.
fn dpp(lanes: usize, exec: u64, dpp: Dpp) -> [u32; 64] {
    let mut wave = wave(lanes);
    wave.vgpr[4] = std::array::from_fn(|lane| 100 + lane as u32);
    wave.vgpr[0] = [7; 64];
    wave.set_exec(exec);
    let inst = Inst {
        dpp,
        ..inst(V_MOV_B32)
    };
    assert_eq!(execute(&mut wave, &inst), Ok(()));
    wave.vgpr[0]
}

#[test]
fn controls_of_other_generations_are_not_supported() {
    let mut wave = wave(32);
    for ctrl in [0x100, 0x110, 0x120, 0x130, 0x142, 0x170] {
        let inst = Inst {
            dpp: dpp16(ctrl),
            ..inst(V_MOV_B32)
        };
        assert_eq!(execute(&mut wave, &inst), Err(Fault::Unknown), "{ctrl:#x}");
    }
}

#[test]
fn dpp_with_fetch_inactive_and_in_comparisons() {
    let shift_right = |row_mask, fi: bool| Dpp::Dpp16 {
        ctrl: 0x111,
        row_mask,
        bank_mask: 0xf,
        bound_ctrl: !fi,
        fi,
    };
    // FI reads inactive lanes. If the source is outside of the row, the destination is not written.
    let exec = 0xfffffff7;
    let got = dpp(32, exec & !0x10001, shift_right(0xf, true));
    assert_eq!(got[..6], [7, 100, 101, 7, 103, 104]);
    // DPP8 with an inactive source.
    for (fi, first) in [(false, 0), (true, 107)] {
        let sel = 0o01234567;
        assert_eq!(dpp(32, !0x80, Dpp::Dpp8 { sel, fi })[..2], [first, 106]);
    }
    // The result of a comparison is 0 for lanes that the masks disable.
    let mut wave = wave(32);
    let dst = Operand::VCC_LO;
    let inst = Inst {
        dst,
        dpp: shift_right(0b01, false),
        ..inst(V_CMP_EQ_U32)
    };
    assert_eq!(execute(&mut wave, &inst), Ok(()));
    assert_eq!(wave.vcc(), 0xffff);
}

#[test]
fn registers_selected_by_m0() {
    let mut wave = wave(32);
    for n in 0..40 {
        wave.vgpr[n] = [n as u32; 64];
    }
    wave.sgpr[125] = 10;
    assert_eq!(execute(&mut wave, &inst(V_MOVRELS_B32)), Ok(()));
    assert_eq!(wave.vgpr[0][0], 14);
    assert_eq!(execute(&mut wave, &inst(V_MOVRELD_B32)), Ok(()));
    assert_eq!(wave.vgpr[10][0], 4);
    assert_eq!(execute(&mut wave, &inst(V_MOVRELSD_B32)), Ok(()));
    assert_eq!(wave.vgpr[10][0], 14);
    wave.sgpr[125] = 20 << 16 | 1;
    assert_eq!(execute(&mut wave, &inst(V_MOVRELSD_2_B32)), Ok(()));
    assert_eq!(wave.vgpr[20][0], 5);
    assert_eq!(execute(&mut wave, &inst(V_SWAPREL_B32)), Ok(()));
    assert_eq!((wave.vgpr[20][0], wave.vgpr[5][0]), (5, 5));
    wave.sgpr[125] = 36;
    assert_eq!(
        execute(&mut wave, &inst(V_MOVRELS_B32)),
        Err(Fault::Vgpr(40))
    );
    wave.sgpr[125] = u32::MAX;
    assert_eq!(
        execute(&mut wave, &inst(V_MOVRELS_B32)),
        Err(Fault::Vgpr(4 + u32::MAX as usize))
    );
}
