//! The GPU targets that the model runs.

use gpu_model::isa::Architecture;

/// A processor that stands for several targets.
#[derive(Debug, PartialEq, Eq)]
pub struct Generic {
    pub name: &'static str,
    /// `EF_AMDGPU_MACH` in a code object's ELF flags.
    pub mach: u32,
    /// Whether it has the features SRAMECC and XNACK.
    pub has_features: bool,
}

pub const GFX11_GENERIC: Generic = Generic {
    name: "gfx11-generic",
    mach: 0x54,
    has_features: false,
};

pub const GFX9_4_GENERIC: Generic = Generic {
    name: "gfx9-4-generic",
    mach: 0x5f,
    has_features: true,
};

/// A GPU target.
#[derive(Debug, PartialEq, Eq)]
pub struct Target {
    pub name: &'static str,
    /// `EF_AMDGPU_MACH` in a code object's ELF flags.
    pub mach: u32,
    /// The generic processor whose code it also runs.
    pub generic: Option<&'static Generic>,
    /// `HSA_AMD_AGENT_INFO_CHIP_ID`.
    pub chip: u32,
    /// `HSA_AMD_AGENT_INFO_ASIC_FAMILY_ID`.
    pub family: u32,
    /// The highest clock of the compute units, in MHz.
    pub clock: u32,
    /// Bits of the interface of the memory.
    pub memory_width: u32,
    /// The highest clock of the memory, in MHz.
    pub memory_clock: u32,
}

impl Target {
    /// The targets of the model.
    pub const ALL: &[Target] = &[
        Target {
            name: "gfx1100",
            mach: 0x41,
            generic: Some(&GFX11_GENERIC),
            chip: 0x744c,
            family: 145,
            clock: 100,
            memory_width: 256,
            memory_clock: 1000,
        },
        Target {
            name: "gfx1101",
            mach: 0x46,
            generic: Some(&GFX11_GENERIC),
            chip: 0x747e,
            family: 145,
            clock: 100,
            memory_width: 256,
            memory_clock: 1000,
        },
        Target {
            name: "gfx1102",
            mach: 0x47,
            generic: Some(&GFX11_GENERIC),
            chip: 0x7480,
            family: 145,
            clock: 100,
            memory_width: 256,
            memory_clock: 1000,
        },
        Target {
            name: "gfx1103",
            mach: 0x44,
            generic: Some(&GFX11_GENERIC),
            chip: 0x15bf,
            family: 148,
            clock: 100,
            memory_width: 256,
            memory_clock: 1000,
        },
        // MI210.
        Target {
            name: "gfx90a",
            mach: 0x3f,
            generic: None,
            chip: 0x740f,
            family: 141,
            clock: 100,
            memory_width: 256,
            memory_clock: 1000,
        },
        // MI300X.
        Target {
            name: "gfx942",
            mach: 0x4c,
            generic: Some(&GFX9_4_GENERIC),
            chip: 0x74a1,
            family: 141,
            clock: 2100,
            memory_width: 8192,
            memory_clock: 1300,
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

    /// Whether its target ID has the features SRAMECC and XNACK.
    pub fn has_features(&self) -> bool {
        self.architecture().is_gfx9()
    }

    /// Finds a target by its name.
    pub fn find(name: &str) -> Option<&'static Target> {
        Target::ALL.iter().find(|target| target.name == name)
    }
}
