//! Operations across lanes, and registers selected by M0.

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
fn mbcnt_counts_the_lower_lanes() {
    let mut wave = wave(64);
    let all = Operand(193);
    let zero = Operand(128);
    let low = Inst {
        src: [all, zero, Operand::NONE],
        ..inst(V_MBCNT_LO_U32_B32)
    };
    let high = Inst {
        src: [all, Operand::vgpr(0), Operand::NONE],
        ..inst(V_MBCNT_HI_U32_B32)
    };
    assert_eq!(execute(&mut wave, &low), Ok(()));
    assert_eq!(execute(&mut wave, &high), Ok(()));
    assert_eq!(wave.vgpr[0], std::array::from_fn(|lane| lane as u32));
}

#[test]
fn permutations_across_lanes() {
    let numbered: [u32; 64] = std::array::from_fn(|lane| 100 + lane as u32);
    let mut wave = wave(64);
    wave.vgpr[4] = numbered;
    // Each lane reads the next lane, cyclically within the row.
    wave.sgpr[2] = 0x87654321;
    wave.sgpr[3] = 0x0fedcba9;
    let mut inst = inst(V_PERMLANE16_B32);
    inst.src = [Operand::vgpr(4), Operand(2), Operand(3)];
    assert_eq!(execute(&mut wave, &inst), Ok(()));
    for lane in 0..64 {
        assert_eq!(
            wave.vgpr[0][lane],
            100 + (lane / 16 * 16 + (lane + 1) % 16) as u32
        );
    }
    inst.op = V_PERMLANEX16_B32;
    assert_eq!(execute(&mut wave, &inst), Ok(()));
    for lane in 0..64 {
        assert_eq!(
            wave.vgpr[0][lane],
            100 + (((lane / 16) ^ 1) * 16 + (lane + 1) % 16) as u32
        );
    }
    // If the source lane is inactive, the destination is kept or becomes 0. With FI, the source is read.
    for (opsel, expected) in [(0b00, 7), (0b10, 0), (0b01, 101), (0b11, 101)] {
        wave.vgpr[0] = [7; 64];
        wave.set_exec(0b1);
        inst.op = V_PERMLANE16_B32;
        inst.opsel = opsel;
        assert_eq!(execute(&mut wave, &inst), Ok(()));
        assert_eq!(wave.vgpr[0][0], expected, "op_sel {opsel}");
        assert_eq!(wave.vgpr[0][1], 7);
    }
    wave.set_exec(!0);
    inst.op = V_PERMLANE64_B32;
    inst.opsel = 0;
    assert_eq!(execute(&mut wave, &inst), Ok(()));
    assert_eq!((wave.vgpr[0][1], wave.vgpr[0][33]), (133, 101));
    wave.lanes = 32;
    wave.vgpr[0] = [7; 64];
    assert_eq!(execute(&mut wave, &inst), Ok(()));
    assert_eq!(wave.vgpr[0], [7; 64]);
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
pub fn dpp16_moves_within_rows() {
    type From = fn(usize) -> Option<usize>;
    let rows: &[(u16, From)] = &[
        (0b00_01_10_11, |lane| Some(lane ^ 3)),
        (0b11_00_00_10, |lane| {
            Some(lane & !3 | [2, 0, 0, 3][lane & 3])
        }),
        (0x101, |lane| Some(lane + 1).filter(|from| from % 16 != 0)),
        (0x10f, |lane| (lane % 16 == 0).then_some(lane + 15)),
        (0x111, |lane| (lane % 16 != 0).then(|| lane - 1)),
        (0x118, |lane| (lane % 16 >= 8).then(|| lane - 8)),
        (0x121, |lane| Some(lane / 16 * 16 + (lane + 15) % 16)),
        (0x140, |lane| Some(lane ^ 15)),
        (0x141, |lane| Some(lane ^ 7)),
        (0x153, |lane| Some(lane / 16 * 16 + 3)),
        (0x165, |lane| Some(lane ^ 5)),
    ];
    for (ctrl, from) in rows {
        for lanes in [32, 64] {
            let got = dpp(lanes, !0, dpp16(*ctrl));
            for (lane, got) in got.iter().enumerate().take(lanes) {
                let expected = from(lane).map_or(7, |from| 100 + from as u32);
                assert_eq!(*got, expected, "control {ctrl:#x} lane {lane} of {lanes}");
            }
        }
    }
    // DPP controls of other generations are not supported.
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
fn invalid_dpp_sources() {
    let shift_right = |row_mask, bank_mask, bound_ctrl, fi| Dpp::Dpp16 {
        ctrl: 0x111,
        row_mask,
        bank_mask,
        bound_ctrl,
        fi,
    };
    // If the source is outside of the row or inactive, the destination is not written, or 0. FI reads inactive lanes.
    let exec = 0xfffffff7;
    let got = dpp(32, exec, shift_right(0xf, 0xf, false, false));
    assert_eq!(got[..6], [7, 100, 101, 7, 7, 104]);
    let got = dpp(32, exec, shift_right(0xf, 0xf, true, false));
    assert_eq!(got[..6], [0, 100, 101, 7, 0, 104]);
    let got = dpp(32, exec & !0x10001, shift_right(0xf, 0xf, false, true));
    assert_eq!(got[..6], [7, 100, 101, 7, 103, 104]);
    // Rows and banks that the masks disable.
    let got = dpp(32, !0, shift_right(0b01, 0b0010, true, false));
    assert_eq!(got[3..9], [7, 103, 104, 105, 106, 7]);
    assert_eq!(got[20], 7);
    // DPP8 reads any of eight lanes. The value of an inactive lane is 0.
    let reversed = 0o01234567;
    let got = dpp(
        32,
        !0,
        Dpp::Dpp8 {
            sel: reversed,
            fi: false,
        },
    );
    assert_eq!(got[..9], [107, 106, 105, 104, 103, 102, 101, 100, 115]);
    let got = dpp(
        32,
        !0x80,
        Dpp::Dpp8 {
            sel: reversed,
            fi: false,
        },
    );
    assert_eq!(got[..2], [0, 106]);
    let got = dpp(
        32,
        !0x80,
        Dpp::Dpp8 {
            sel: reversed,
            fi: true,
        },
    );
    assert_eq!(got[..2], [107, 106]);
    // The result of a comparison is 0 for lanes that the masks disable.
    let mut wave = wave(32);
    let dst = Operand::VCC_LO;
    let inst = Inst {
        dst,
        dpp: shift_right(0b01, 0xf, true, false),
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
