//! Which SIMD executes a wave: the register HW_ID1 (guide, "Hardware registers"; HIP's amd_device_functions.h).
//!
//! The model executes waves on host threads, so this is only a number that kernels can read. It is that of a GPU with the
//! topology's compute units: two shader engines with two shader arrays each, and one workgroup processor (WGP) per array.
//! A WGP has two compute units, a compute unit has two SIMDs. WGP_ID is the physical number, so an array's only WGP need
//! not have number 0.

use crate::topology::{SHADER_ARRAYS_PER_ENGINE, SHADER_ENGINES};

const WGPS: u64 = SHADER_ENGINES * SHADER_ARRAYS_PER_ENGINE;
const WAVES_PER_SIMD: u64 = 16;

/// The value of HW_ID1 for a wave of a workgroup. The workgroups of a dispatch go to the WGPs in turn, each to the next SIMDs
/// of its WGP. In WGP mode (WGP_MODE in the kernel descriptor), the waves of a workgroup are on all four SIMDs, otherwise on
/// the two of a compute unit.
pub fn hw_id1(workgroup: u64, wave: usize, wgp_mode: bool) -> u32 {
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
    use crate::topology::COMPUTE_UNITS;

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
            let units: BTreeSet<_> = (0..COMPUTE_UNITS)
                .map(|workgroup| hw_id1(workgroup, 0, wgp_mode))
                .map(|id| (wgp(id), field(id, 8, 1)))
                .collect();
            assert_eq!(units.len() as u64, COMPUTE_UNITS, "{units:?}");
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
