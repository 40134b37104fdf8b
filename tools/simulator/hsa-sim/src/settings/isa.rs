//! Instruction set architectures: processors, and the features of target IDs ("User Guide for AMDGPU Backend", Target ID).

use super::target::{GFX9_4_GENERIC, GFX11_GENERIC, GFX12_GENERIC, Generic, Target};
use std::sync::LazyLock;

/// A feature of a target ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// The processor does not have the feature.
    Unsupported,
    /// Code that runs with both settings.
    Any,
    Off,
    On,
}

/// The oldest version of the generic processors (`EF_AMDGPU_GENERIC_VERSION`). The targets run code of this version and of
/// newer ones, as in ROCr.
const GENERIC_VERSION: u32 = 1;

/// An instruction set architecture: of an agent, or of a code object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa {
    pub processor: &'static str,
    pub wave_size: u32,
    mach: u32,
    /// The generic processor whose code it also runs.
    generic: Option<&'static Generic>,
    sramecc: Feature,
    xnack: Feature,
}

/// All architectures: of agents, and of code objects only.
static ALL: LazyLock<Vec<Isa>> = LazyLock::new(|| {
    let mut all = Vec::new();
    let mut add = |isa: Isa, has_features: bool| {
        let settings: &[Feature] = match has_features {
            true => &[Feature::Any, Feature::Off, Feature::On],
            false => &[Feature::Unsupported],
        };
        for &sramecc in settings {
            all.extend(settings.iter().map(|&xnack| Isa {
                sramecc,
                xnack,
                ..isa
            }));
        }
    };
    let isa = |processor, mach, wave_size, generic| Isa {
        processor,
        wave_size,
        mach,
        generic,
        sramecc: Feature::Unsupported,
        xnack: Feature::Unsupported,
    };
    for target in Target::ALL {
        let wave_size = target.wave_size();
        let is = isa(target.name, target.mach, wave_size, target.generic);
        add(is, target.has_features());
    }
    for generic in [&GFX11_GENERIC, &GFX12_GENERIC, &GFX9_4_GENERIC] {
        let target = Target::ALL.iter().find(|t| t.generic == Some(generic));
        let wave_size = target.expect("a target of each generic").wave_size();
        let is = isa(generic.name, generic.mach, wave_size, None);
        add(is, generic.has_features);
    }
    all
});

impl Isa {
    /// The architecture with this number.
    pub fn numbered(number: usize) -> Option<Isa> {
        ALL.get(number).copied()
    }

    /// Its number.
    pub fn number(&self) -> usize {
        let number = ALL.iter().position(|isa| isa == self);
        number.expect("each is one of the list")
    }

    /// The architecture with this target ID.
    pub fn find(target_id: &str) -> Option<Isa> {
        ALL.iter().copied().find(|isa| isa.target_id() == target_id)
    }

    /// The architectures of agents of a target, the best one first. As on servers, SRAMECC is on and XNACK is off.
    pub fn of_target(target: &Target) -> Vec<Isa> {
        let names = [
            Some(target.name),
            target.generic.map(|generic| generic.name),
        ];
        let suffix = if target.has_features() {
            ":sramecc+:xnack-"
        } else {
            ""
        };
        let ids = names
            .into_iter()
            .flatten()
            .map(|name| format!("{name}{suffix}"));
        ids.filter_map(|id| Isa::find(&id)).collect()
    }

    /// The architecture of a code object of version 4 or newer, from its ELF flags. `None` for an unknown processor, a
    /// feature that the processor does not have, and a generic processor without a version.
    pub fn of_code(flags: u32) -> Option<Isa> {
        let setting = |shift: u32| match flags >> shift & 3 {
            2 => Feature::Off,
            3 => Feature::On,
            // As in ROCr, the name of the architecture is the same with and without support for the feature.
            _ => Feature::Any,
        };
        let (sramecc, xnack) = (setting(10), setting(8));
        let same = |has: Feature, wanted: Feature| {
            has == wanted || (has, wanted) == (Feature::Unsupported, Feature::Any)
        };
        let isa = ALL.iter().find(|isa| {
            isa.mach == flags & 0xff && same(isa.sramecc, sramecc) && same(isa.xnack, xnack)
        })?;
        (!isa.is_generic() || flags >> 24 >= GENERIC_VERSION).then_some(*isa)
    }

    fn is_generic(&self) -> bool {
        Target::find(self.processor).is_none()
    }

    /// Its name without the prefix of HSA, for example `gfx942:sramecc+:xnack-`.
    pub fn target_id(&self) -> String {
        let text = |name: &str, feature| match feature {
            Feature::Unsupported | Feature::Any => String::new(),
            Feature::Off => format!(":{name}-"),
            Feature::On => format!(":{name}+"),
        };
        format!(
            "{}{}{}",
            self.processor,
            text("sramecc", self.sramecc),
            text("xnack", self.xnack)
        )
    }

    /// Whether an agent with this architecture runs code of the architecture `code`.
    pub fn runs(&self, code: &Isa) -> bool {
        let processor = code.processor == self.processor
            || self
                .generic
                .is_some_and(|generic| generic.name == code.processor);
        let feature = |code: Feature, agent: Feature| {
            matches!(code, Feature::Any | Feature::Unsupported) || code == agent
        };
        processor && feature(code.sramecc, self.sramecc) && feature(code.xnack, self.xnack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(target: &str) -> Isa {
        Isa::of_target(Target::find(target).unwrap())[0]
    }

    #[test]
    fn agents_have_the_names_of_real_ones() {
        for (target, names) in [
            ("gfx1100", &["gfx1100", "gfx11-generic"][..]),
            ("gfx1201", &["gfx1201", "gfx12-generic"]),
            ("gfx90a", &["gfx90a:sramecc+:xnack-"]),
            (
                "gfx942",
                &["gfx942:sramecc+:xnack-", "gfx9-4-generic:sramecc+:xnack-"],
            ),
        ] {
            let isas = Isa::of_target(Target::find(target).unwrap());
            let found: Vec<_> = isas.iter().map(Isa::target_id).collect();
            assert_eq!(found, names);
        }
        for (number, isa) in ALL.iter().enumerate() {
            assert_eq!(isa.number(), number);
            assert_eq!(Isa::find(&isa.target_id()), Some(*isa));
        }
    }

    #[test]
    fn code_runs_if_its_features_match() {
        for (code, expected) in [
            ("gfx942", true),
            ("gfx942:xnack-", true),
            ("gfx942:xnack+", false),
            ("gfx942:sramecc+", true),
            ("gfx942:sramecc-", false),
            ("gfx942:sramecc+:xnack-", true),
            ("gfx942:sramecc+:xnack+", false),
            ("gfx9-4-generic", true),
            ("gfx9-4-generic:xnack+", false),
            ("gfx11-generic", false),
            ("gfx90a", false),
        ] {
            let code = Isa::find(code).unwrap();
            assert_eq!(
                agent("gfx942").runs(&code),
                expected,
                "{}",
                code.target_id()
            );
        }
        assert!(agent("gfx1103").runs(&Isa::find("gfx11-generic").unwrap()));
        assert!(!agent("gfx90a").runs(&Isa::find("gfx9-4-generic").unwrap()));
        for unknown in [
            "gfx942:xnack-:sramecc+",
            "gfx1100:xnack-",
            "gfx942:",
            "gfx906",
        ] {
            assert_eq!(Isa::find(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn flags_of_code_objects() {
        for (flags, id) in [
            (0x54c, Some("gfx942")),
            (0x64c, Some("gfx942:xnack-")),
            (0x74c, Some("gfx942:xnack+")),
            (0xe4c, Some("gfx942:sramecc+:xnack-")),
            (0x94c, Some("gfx942:sramecc-")),
            (0x41, Some("gfx1100")),
            (0x241, None),
            (0x100_0054, Some("gfx11-generic")),
            (0x54, None),
            (0x100_0d5f, Some("gfx9-4-generic:sramecc+")),
            (0x2f, None),
        ] {
            let found = Isa::of_code(flags).map(|isa| isa.target_id());
            assert_eq!(found.as_deref(), id, "{flags:#x}");
        }
    }
}
