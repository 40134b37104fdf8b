//! The GPU targets that the model runs.

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

/// `EF_AMDGPU_MACH_AMDGCN_GFX11_GENERIC`: code for all targets of the model.
pub const GENERIC_MACH: u32 = 0x54;

impl Target {
    /// The targets of the model: all have the instruction set of gfx1100.
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
    ];

    /// Finds a target by its name.
    pub fn find(name: &str) -> Option<&'static Target> {
        Target::ALL.iter().find(|target| target.name == name)
    }
}
