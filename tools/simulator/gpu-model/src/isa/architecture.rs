//! The instruction sets.

/// An instruction set, by the name of its target in LLVM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Architecture {
    /// RDNA3: gfx1100 to gfx1103.
    #[default]
    Gfx11,
    /// RDNA4: gfx1200 and gfx1201.
    Gfx12,
    /// CDNA2: MI200.
    Gfx90a,
    /// CDNA3: MI300.
    Gfx942,
}

impl Architecture {
    pub const ALL: &[Architecture] = &[
        Architecture::Gfx11,
        Architecture::Gfx12,
        Architecture::Gfx90a,
        Architecture::Gfx942,
    ];

    /// The instruction set of a target, by the target's name without features.
    pub fn find(target: &str) -> Option<Architecture> {
        Some(match target {
            "gfx1100" | "gfx1101" | "gfx1102" | "gfx1103" => Architecture::Gfx11,
            "gfx1200" | "gfx1201" => Architecture::Gfx12,
            "gfx90a" => Architecture::Gfx90a,
            "gfx942" => Architecture::Gfx942,
            _ => return None,
        })
    }

    /// The name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Architecture::Gfx11 => "gfx1100",
            Architecture::Gfx12 => "gfx1201",
            Architecture::Gfx90a => "gfx90a",
            Architecture::Gfx942 => "gfx942",
        }
    }

    /// Whether it belongs to the GFX9 family: CDNA.
    #[inline]
    pub const fn is_gfx9(self) -> bool {
        match self {
            Architecture::Gfx90a | Architecture::Gfx942 => true,
            Architecture::Gfx11 | Architecture::Gfx12 => false,
        }
    }

    /// The number of lanes of a wave, unless a kernel says otherwise.
    pub const fn wave_size(self) -> usize {
        match self {
            Architecture::Gfx11 | Architecture::Gfx12 => 32,
            Architecture::Gfx90a | Architecture::Gfx942 => 64,
        }
    }
}
