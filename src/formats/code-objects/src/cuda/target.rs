//! The architecture of a cubin, from its ELF header.

use crate::target::{Feature, Target};

/// The first ABI version (`EI_ABIVERSION`) in which the architecture is in the second byte of the flags: CUDA 13's.
const SECOND_BYTE: u8 = 8;
/// Code that uses features of only one architecture (`sm_90a`), in the flags of earlier ABI versions.
const ARCHITECTURE_SPECIFIC: u32 = 0x800;

/// `flags`: `e_flags`. `abi`: `EI_ABIVERSION`. From version 8 on, `e_flags` does not tell `sm_90a` from `sm_90`:
/// see [`super::attributes::is_architecture_specific`].
pub fn of_flags(flags: u32, abi: u8, is_specific: bool) -> Target {
    let (number, is_specific) = if abi >= SECOND_BYTE {
        (flags >> 8 & 0xff, is_specific)
    } else {
        (flags & 0xff, flags & ARCHITECTURE_SPECIFIC != 0)
    };
    Target {
        processor: name(number, if is_specific { "a" } else { "" }),
        xnack: Feature::Unsupported,
        sramecc: Feature::Unsupported,
        generic_version: 0,
    }
}

/// For example `sm_90` for 90. `suffix`: `a` or `f`, if the code uses features of one architecture or family.
pub fn name(number: u32, suffix: &str) -> String {
    format!("sm_{number}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::of_flags;

    /// The flags that ptxas of CUDA 12.4 (ABI version 7) and 13.0 (8) writes.
    #[test]
    fn architectures_of_both_abi_versions() {
        let name = |flags, abi, specific| of_flags(flags, abi, specific).to_string();
        for (flags, abi, specific, expected) in [
            (0x0034_0534, 7, false, "sm_52"),
            (0x004b_054b, 7, false, "sm_75"),
            (0x005a_055a, 7, false, "sm_90"),
            (0x005a_0d5a, 7, false, "sm_90a"),
            (0x0600_4b04, 8, false, "sm_75"),
            (0x0600_5a04, 8, false, "sm_90"),
            (0x0600_5a04, 8, true, "sm_90a"),
            (0x0600_7902, 8, false, "sm_121"),
        ] {
            assert_eq!(name(flags, abi, specific), expected, "{flags:#x}");
        }
    }
}
