//! Which SIMD executes a wave: the registers HW_ID1 of gfx11 and gfx12, HW_ID of gfx9 and XCC_ID of gfx942 (guides, "Hardware
//! registers"; HIP's amd_device_functions.h).
//!
//! The model executes waves on host threads, so these are only numbers that kernels can read. They are the numbers of a GPU with
//! these compute units ([`Units`]):
//!
//! - gfx11 and gfx12: two shader engines with two shader arrays each, and one workgroup processor (WGP) per array. A WGP has two
//!   compute units, a compute unit has two SIMDs. WGP_ID is the physical number, so an array's only WGP need not have
//!   number 0.
//! - gfx90a: four shader engines with two compute units each. A compute unit has four SIMDs.
//! - gfx942, as MI300X: eight accelerator complex dies (XCC) with four shader engines each, which have ten or nine compute
//!   units, 38 per XCC.
//!
//! CU_ID of gfx9 is the number on the chip, so there are gaps where units are not in use. XCC_ID counts the XCCs of a
//! partition, and is 0 if there is only one (Linux, `gfx_v9_4_3_xcc_program_xcc_id`).

use crate::isa::Architecture;
use crate::topology::{SHADER_ARRAYS_PER_ENGINE, SHADER_ENGINES, Units};

const WGPS: u64 = SHADER_ENGINES * SHADER_ARRAYS_PER_ENGINE;
const WAVES_PER_SIMD: u64 = 16;

/// The registers of a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placement {
    /// HW_ID1 of gfx11, HW_ID of gfx9.
    pub hw_id: u32,
    pub xcc_id: u32,
}

/// The placement of a wave of a workgroup. `units`: the units of the GPU. gfx11 and gfx12 always have the same.
pub fn placement(
    arch: Architecture,
    units: &Units,
    workgroup: u64,
    wave: usize,
    wgp_mode: bool,
) -> Placement {
    match arch {
        Architecture::Gfx11 | Architecture::Gfx12 => Placement {
            hw_id: hw_id1(workgroup, wave, wgp_mode),
            xcc_id: 0,
        },
        Architecture::Gfx90a | Architecture::Gfx942 => gfx9(units, workgroup, wave),
    }
}

/// The workgroups of a dispatch go to the XCCs in turn, then to the shader engines of the XCC, then to the next compute unit
/// of the shader engine.
fn gfx9(units: &Units, workgroup: u64, wave: usize) -> Placement {
    const SIMDS: u64 = 4;
    let xcc = workgroup % units.xccs;
    let in_xcc = workgroup / units.xccs;
    let unit = in_xcc % units.per_xcc;
    let turn = in_xcc / units.per_xcc;
    // The first engines have one compute unit more if they cannot all have the same number.
    let engine = unit % units.engines_per_xcc;
    let in_use = (units.per_xcc - engine).div_ceil(units.engines_per_xcc);
    let cu = unit / units.engines_per_xcc * units.on_chip_per_engine / in_use;
    let wave = wave as u64;
    // 10 waves per SIMD in gfx90a, 8 in gfx942.
    let wave_id = (wave / SIMDS + turn) % 8;
    let simd = (wave + turn) % SIMDS;
    Placement {
        hw_id: (wave_id | simd << 4 | cu << 8 | engine << 13 | (turn % 16) << 16) as u32,
        xcc_id: xcc as u32,
    }
}

/// The value of HW_ID1 for a wave of a workgroup. The workgroups of a dispatch go to the WGPs in turn, each to the next SIMDs
/// of its WGP. In WGP mode (WGP_MODE in the kernel descriptor), the waves of a workgroup are on all four SIMDs, otherwise on
/// the two of a compute unit.
fn hw_id1(workgroup: u64, wave: usize, wgp_mode: bool) -> u32 {
    let wave = wave as u64;
    let wgp = workgroup % WGPS;
    let turn = workgroup / WGPS;
    // Bit 0 is the compute unit.
    let (simd, waves_of_simd) = if wgp_mode {
        ((wave + turn) % 4, wave / 4 + turn / 4)
    } else {
        ((turn % 2) | ((wave % 2) << 1), wave / 2 + turn / 2)
    };
    let shader_engine = wgp % SHADER_ENGINES;
    let shader_array = wgp / SHADER_ENGINES;
    ((waves_of_simd % WAVES_PER_SIMD)
        | simd << 8
        | wgp << 10
        | shader_array << 16
        | shader_engine << 18) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn field(hw_id1: u32, offset: u32, size: u32) -> u32 {
        hw_id1 >> offset & ((1 << size) - 1)
    }

    /// SE_ID, SA_ID, WGP_ID.
    fn wgp(hw_id1: u32) -> [u32; 3] {
        [
            field(hw_id1, 18, 3),
            field(hw_id1, 16, 1),
            field(hw_id1, 10, 4),
        ]
    }

    #[test]
    fn workgroups_of_one_wave_use_all_compute_units() {
        for wgp_mode in [false, true] {
            let count = Units::of(Architecture::Gfx11).count();
            let units: BTreeSet<_> = (0..count)
                .map(|workgroup| hw_id1(workgroup, 0, wgp_mode))
                .map(|id| (wgp(id), field(id, 8, 1)))
                .collect();
            assert_eq!(units.len() as u64, count, "{units:?}");
        }
    }

    #[test]
    fn workgroups_of_gfx9_use_all_compute_units_and_alternate_between_dies() {
        let variants = Units::variants(Architecture::Gfx942).iter();
        let others = variants.map(|&(_, units)| (Architecture::Gfx942, units));
        let own = [Architecture::Gfx90a, Architecture::Gfx942].map(|arch| (arch, Units::of(arch)));
        for (arch, all) in own.into_iter().chain(others) {
            let (xccs, engines, count) = (all.xccs, all.engines() as usize, all.count());
            let placement =
                |workgroup, wave, wgp_mode| placement(arch, &all, workgroup, wave, wgp_mode);
            let unit = |placement: Placement| {
                let id = placement.hw_id;
                (placement.xcc_id, field(id, 13, 3), field(id, 8, 4))
            };
            let units: BTreeSet<_> = (0..count)
                .map(|workgroup| unit(placement(workgroup, 0, false)))
                .collect();
            assert_eq!(units.len() as u64, count, "{units:?}");
            assert_eq!(unit(placement(count, 0, false)), (0, 0, 0));
            let used: BTreeSet<_> = units.iter().map(|(xcc, engine, _)| (xcc, engine)).collect();
            assert_eq!(used.len(), engines);
            assert!(
                units
                    .iter()
                    .all(|&(_, _, cu)| u64::from(cu) < all.on_chip_per_engine)
            );
            for workgroup in 0..1000 {
                let waves: Vec<_> = (0..16)
                    .map(|wave| placement(workgroup, wave, false))
                    .collect();
                assert!(waves.iter().all(|&wave| unit(wave) == unit(waves[0])));
                assert_eq!(u64::from(waves[0].xcc_id), workgroup % xccs);
                // No two of them have the same slot.
                assert_eq!(waves.iter().collect::<BTreeSet<_>>().len(), waves.len());
            }
        }
    }

    #[test]
    fn the_waves_of_a_workgroup_are_on_one_wgp_or_on_one_compute_unit() {
        for workgroup in 0..100 {
            for (wgp_mode, simds) in [(false, 2), (true, 4)] {
                let ids: Vec<_> = (0..32)
                    .map(|wave| hw_id1(workgroup, wave, wgp_mode))
                    .collect();
                assert!(ids.iter().all(|&id| wgp(id) == wgp(ids[0])));
                let used: BTreeSet<_> = ids.iter().map(|&id| field(id, 8, 2)).collect();
                assert_eq!(used.len(), simds);
                if !wgp_mode {
                    assert!(ids.iter().all(|&id| field(id, 8, 1) == field(ids[0], 8, 1)));
                }
                // No two of them have the same slot.
                assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
            }
        }
    }
}
