//! Memory of GPUs for copies of counters, and the units that use it.

use super::api::{Api, failed};
use super::{pools, query};
use crate::gpu::runtime::{Error, Memory, Units};
use hsa_abi::{AgentHandle, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED, Status};

/// Allocates memory of a GPU, which only this GPU can access. ROCr aligns it to a page.
pub fn allocate(api: &Api, gpu: AgentHandle, size: usize) -> Result<u64, Error> {
    let no_pool = || failed("hsa_amd_memory_pool_allocate", Status::INVALID_MEMORY_POOL);
    let pool = pools::find(api, gpu, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED);
    let base = pools::allocate(api, pool.ok_or_else(no_pool)?, size)?;
    Ok(base as u64)
}

/// The size of a GPU's memory, and the free part of it.
pub fn memory(api: &Api, gpu: AgentHandle) -> Memory {
    let pool = pools::find(api, gpu, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED);
    Memory {
        size: pool.and_then(|pool| pools::size(api, pool)),
        free: query::free_memory(api, gpu),
    }
}

/// The compute units of a GPU, by its target's name. `None`: its waves cannot read their unit.
pub fn units(api: &Api, gpu: AgentHandle, target: &str) -> Result<Option<Units>, Error> {
    let Some(version) = Version::of(target) else {
        return Ok(None);
    };
    let [engines, xccs] = query::engines_and_xccs(api, gpu);
    let chip = Chip {
        units: query::compute_units(api, gpu)?,
        engines,
        xccs,
    };
    Ok(chip.numbers(version).map(|count| Units {
        count,
        is_limited: false,
    }))
}

/// The version of a target.
#[derive(Clone, Copy)]
struct Version {
    major: u32,
    minor: u32,
}

impl Version {
    /// `None` if `target` is not the name of one.
    fn of(target: &str) -> Option<Version> {
        // The last two digits are the minor version and the stepping. The stepping is hexadecimal.
        let digits = target.strip_prefix("gfx")?;
        let (major, rest) = digits.split_at_checked(digits.len().checked_sub(2)?)?;
        Some(Version {
            major: major.parse().ok()?,
            minor: rest.chars().next()?.to_digit(10)?,
        })
    }
}

/// The compute units of a GPU, or of a partition of it, as HSA describes them.
struct Chip {
    units: u32,
    /// Shader engines of all XCCs.
    engines: Option<u32>,
    xccs: Option<u32>,
}

impl Chip {
    /// How many numbers the units have in the device runtime (`find_copy` in src/device/device-rt/profile.c): a power of two.
    /// The fields that a number consists of have gaps, because not all units of a chip are in use. `None`: the device
    /// runtime does not read the number of a unit.
    fn numbers(&self, version: Version) -> Option<u32> {
        const CU_NUMBERS: u32 = 16;
        const ENGINES_PER_XCC: u32 = 4;
        let engines = self.engines.unwrap_or(0);
        let numbers = match (version.major, version.minor) {
            (..9, _) => return None,
            (9, 4..) => {
                // ROCr before 6.0 does not report XCCs.
                let xccs = self.xccs.unwrap_or(engines.div_ceil(ENGINES_PER_XCC));
                let power = xccs.checked_next_power_of_two()?;
                power.checked_mul(ENGINES_PER_XCC * CU_NUMBERS)
            }
            (9, _) => engines.checked_next_power_of_two()?.checked_mul(CU_NUMBERS),
            // Not all numbers of WGPs are in use.
            (12, 5..) => self.units.checked_mul(2),
            _ => Some(self.units),
        };
        numbers?.checked_next_power_of_two()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(target: &str, units: u32, engines: u32, xccs: u32) -> Option<u32> {
        let chip = Chip {
            units,
            engines: Some(engines),
            xccs: Some(xccs),
        };
        chip.numbers(Version::of(target)?)
    }

    #[test]
    fn waves_know_their_unit_from_gfx9_on() {
        for target in [
            "gfx900", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1250",
        ] {
            assert!(numbers(target, 64, 4, 1).is_some(), "{target}");
        }
        for target in ["gfx803", "gfx", "gfx1", "sm_90", "gfx\u{e9}\u{e9}"] {
            assert_eq!(numbers(target, 64, 4, 1), None, "{target}");
        }
    }

    #[test]
    fn there_is_a_number_for_each_unit_in_each_mode() {
        for (target, name, units, engines, xccs, expected) in [
            ("gfx942", "MI300X", 304, 32, 8, 512),
            ("gfx942", "MI300X DPX", 152, 16, 4, 256),
            ("gfx942", "MI300X QPX", 76, 8, 2, 128),
            ("gfx942", "MI300X CPX", 38, 4, 1, 64),
            ("gfx942", "MI300A", 228, 24, 6, 512),
            ("gfx942", "MI308X", 80, 16, 4, 256),
            ("gfx950", "MI350X", 256, 32, 8, 512),
            ("gfx90a", "MI210", 104, 8, 1, 128),
            ("gfx906", "MI50", 60, 4, 1, 64),
            ("gfx1030", "RX 6800", 60, 4, 1, 64),
            ("gfx1100", "RX 7900 XTX", 96, 12, 1, 128),
            ("gfx1250", "MI450X", 256, 32, 8, 512),
        ] {
            assert_eq!(
                numbers(target, units, engines, xccs),
                Some(expected),
                "{name}"
            );
        }
        let older = Chip {
            units: 304,
            engines: Some(32),
            xccs: None,
        };
        let gfx942 = Version { major: 9, minor: 4 };
        assert_eq!(older.numbers(gfx942), Some(512));
    }
}
