//! The target of a code object, from its ELF header ("ELF Code Object" in LLVM's AMDGPU usage guide).

use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// `EM_AMDGPU`.
pub const AMDGPU: u16 = 224;

/// Processors by `EF_AMDGPU_MACH`.
const PROCESSORS: &[(u32, &str)] = &[
    (0x20, "gfx600"),
    (0x21, "gfx601"),
    (0x22, "gfx700"),
    (0x23, "gfx701"),
    (0x24, "gfx702"),
    (0x25, "gfx703"),
    (0x26, "gfx704"),
    (0x28, "gfx801"),
    (0x29, "gfx802"),
    (0x2a, "gfx803"),
    (0x2b, "gfx810"),
    (0x2c, "gfx900"),
    (0x2d, "gfx902"),
    (0x2e, "gfx904"),
    (0x2f, "gfx906"),
    (0x30, "gfx908"),
    (0x31, "gfx909"),
    (0x32, "gfx90c"),
    (0x33, "gfx1010"),
    (0x34, "gfx1011"),
    (0x35, "gfx1012"),
    (0x36, "gfx1030"),
    (0x37, "gfx1031"),
    (0x38, "gfx1032"),
    (0x39, "gfx1033"),
    (0x3a, "gfx602"),
    (0x3b, "gfx705"),
    (0x3c, "gfx805"),
    (0x3d, "gfx1035"),
    (0x3e, "gfx1034"),
    (0x3f, "gfx90a"),
    (0x40, "gfx940"),
    (0x41, "gfx1100"),
    (0x42, "gfx1013"),
    (0x43, "gfx1150"),
    (0x44, "gfx1103"),
    (0x45, "gfx1036"),
    (0x46, "gfx1101"),
    (0x47, "gfx1102"),
    (0x48, "gfx1200"),
    (0x49, "gfx1250"),
    (0x4a, "gfx1151"),
    (0x4b, "gfx941"),
    (0x4c, "gfx942"),
    (0x4e, "gfx1201"),
    (0x4f, "gfx950"),
    (0x50, "gfx1310"),
    (0x51, "gfx9-generic"),
    (0x52, "gfx10-1-generic"),
    (0x53, "gfx10-3-generic"),
    (0x54, "gfx11-generic"),
    (0x55, "gfx1152"),
    (0x57, "gfx1154"),
    (0x58, "gfx1153"),
    (0x59, "gfx12-generic"),
    (0x5a, "gfx1251"),
    (0x5b, "gfx12-5-generic"),
    (0x5c, "gfx1172"),
    (0x5d, "gfx1170"),
    (0x5e, "gfx1171"),
    (0x5f, "gfx9-4-generic"),
    (0x62, "gfx11-7-generic"),
    (0x63, "gfx13-generic"),
];

/// The setting of a feature that can be switched on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Feature {
    Unsupported,
    /// The code runs with both settings.
    Any,
    Off,
    On,
}

/// The target of a code object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Target {
    /// For example `gfx90a` or `gfx11-generic`.
    pub processor: String,
    pub xnack: Feature,
    pub sramecc: Feature,
    /// Version of a generic processor; 0 for others.
    pub generic_version: u8,
}

impl Target {
    /// `flags`: `e_flags`. `version`: the code object version, 2 to 6.
    pub fn from_flags(flags: u32, version: u8) -> Target {
        let mach = flags & 0xff;
        let processor = match PROCESSORS.iter().find(|(known, _)| *known == mach) {
            Some((_, name)) => (*name).to_owned(),
            None => format!("unknown-{mach:#x}"),
        };
        // A feature has one bit in version 3, and two since version 4.
        let bit = |mask: u32| match flags & mask {
            0 => Feature::Off,
            _ => Feature::On,
        };
        let bits = |shift: u32| match flags >> shift & 3 {
            0 => Feature::Unsupported,
            1 => Feature::Any,
            2 => Feature::Off,
            _ => Feature::On,
        };
        let (xnack, sramecc) = match version {
            2 => (Feature::Unsupported, Feature::Unsupported),
            3 => (bit(0x100), bit(0x200)),
            _ => (bits(8), bits(10)),
        };
        Target {
            processor,
            xnack,
            sramecc,
            generic_version: if version >= 6 { (flags >> 24) as u8 } else { 0 },
        }
    }

    /// The features that are on (`+`) or off (`-`), in the order of a target ID.
    fn features(&self) -> impl Iterator<Item = (&'static str, char)> {
        let signs = [("sramecc", self.sramecc), ("xnack", self.xnack)];
        signs
            .into_iter()
            .filter_map(|(name, feature)| match feature {
                Feature::On => Some((name, '+')),
                Feature::Off => Some((name, '-')),
                Feature::Any | Feature::Unsupported => None,
            })
    }

    /// The target as a part of a file name, without colons.
    pub fn file_name(&self) -> String {
        let mut name = self.processor.clone();
        for (feature, sign) in self.features() {
            name += &format!(".{feature}{sign}");
        }
        name
    }

    /// Whether `wanted` matches: a processor, or a processor with features as in a target ID.
    pub fn is(&self, wanted: &str) -> bool {
        let (processor, features) = wanted.split_once(':').unwrap_or((wanted, ""));
        let mut features = features.split(':').filter(|feature| !feature.is_empty());
        self.processor == processor
            && features.all(|wanted| {
                self.features()
                    .any(|(name, sign)| wanted.strip_suffix(sign) == Some(name))
            })
    }
}

/// The target ID, for example `gfx90a:sramecc+:xnack-`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.processor)?;
        for (feature, sign) in self.features() {
            write!(f, ":{feature}{sign}")?;
        }
        Ok(())
    }
}
