//! The GPU targets that the model runs.

use gpu_model::isa::Architecture;

/// A GPU target.
#[derive(Debug, PartialEq, Eq)]
pub struct Target {
    pub name: &'static str,
    /// `EF_AMDGPU_MACH` in a code object's ELF flags.
    pub mach: u32,
    /// `HSA_AMD_AGENT_INFO_CHIP_ID`.
    pub chip: u32,
    /// `HSA_AMD_AGENT_INFO_ASIC_FAMILY_ID`.
    pub family: u32,
}

/// `EF_AMDGPU_MACH_AMDGCN_GFX11_GENERIC`: code for all targets with the instruction set of gfx1100.
const GENERIC_MACH: u32 = 0x54;

impl Target {
    /// The targets of the model.
    pub const ALL: &[Target] = &[
        Target {
            name: "gfx1100",
            mach: 0x41,
            chip: 0x744c,
            family: 145,
        },
        Target {
            name: "gfx1101",
            mach: 0x46,
            chip: 0x747e,
            family: 145,
        },
        Target {
            name: "gfx1102",
            mach: 0x47,
            chip: 0x7480,
            family: 145,
        },
        Target {
            name: "gfx1103",
            mach: 0x44,
            chip: 0x15bf,
            family: 148,
        },
        // MI210.
        Target {
            name: "gfx90a",
            mach: 0x3f,
            chip: 0x740f,
            family: 141,
        },
        // MI300X.
        Target {
            name: "gfx942",
            mach: 0x4c,
            chip: 0x74a1,
            family: 141,
        },
    ];

    /// The instruction set of the model's GPU.
    pub fn architecture(&self) -> Architecture {
        Architecture::find(self.name).expect("the model has the instruction sets of all targets")
    }

    /// The default wave size.
    pub fn wave_size(&self) -> u32 {
        if self.architecture().is_gfx9() {
            64
        } else {
            32
        }
    }

    /// Whether it runs the code of a code object with this `EF_AMDGPU_MACH`.
    pub fn runs(&self, mach: u32) -> bool {
        mach == self.mach || mach == GENERIC_MACH && self.is_generic()
    }

    /// Whether it runs the code of gfx11-generic.
    pub fn is_generic(&self) -> bool {
        self.architecture() == Architecture::Gfx11
    }

    /// Finds a target by its name.
    pub fn find(name: &str) -> Option<&'static Target> {
        Target::ALL.iter().find(|target| target.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generic_code_runs_only_on_gfx11() {
        for target in Target::ALL {
            assert!(target.runs(target.mach), "{}", target.name);
            let gfx11 = target.name.starts_with("gfx11");
            assert_eq!(target.runs(GENERIC_MACH), gfx11, "{}", target.name);
            assert_eq!(target.wave_size(), if gfx11 { 32 } else { 64 });
        }
    }
}
