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

pub const GFX12_GENERIC: Generic = Generic {
    name: "gfx12-generic",
    mach: 0x59,
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

/// A target with the clocks and the memory that most of them have here.
const fn target(
    name: &'static str,
    mach: u32,
    generic: Option<&'static Generic>,
    chip: u32,
    family: u32,
) -> Target {
    Target {
        name,
        mach,
        generic,
        chip,
        family,
        clock: 100,
        memory_width: 256,
        memory_clock: 1000,
    }
}

const GFX11: Option<&Generic> = Some(&GFX11_GENERIC);
const GFX12: Option<&Generic> = Some(&GFX12_GENERIC);

impl Target {
    /// The targets of the model.
    pub const ALL: &[Target] = &[
        target("gfx1100", 0x41, GFX11, 0x744c, 145),
        target("gfx1101", 0x46, GFX11, 0x747e, 145),
        target("gfx1102", 0x47, GFX11, 0x7480, 145),
        target("gfx1103", 0x44, GFX11, 0x15bf, 148),
        target("gfx1200", 0x48, GFX12, 0x7590, 152),
        target("gfx1201", 0x4e, GFX12, 0x7550, 152),
        // MI210.
        target("gfx90a", 0x3f, None, 0x740f, 141),
        // MI300X.
        Target {
            clock: 2100,
            memory_width: 8192,
            memory_clock: 1300,
            ..target("gfx942", 0x4c, Some(&GFX9_4_GENERIC), 0x74a1, 141)
        },
    ];

    /// The instruction set of the model's GPU.
    pub fn architecture(&self) -> Architecture {
        Architecture::find(self.name).expect("the model has the instruction sets of all targets")
    }

    /// The default wave size.
    pub fn wave_size(&self) -> u32 {
        self.architecture().wave_size() as u32
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
