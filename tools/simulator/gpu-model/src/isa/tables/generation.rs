//! Which architectures a part of a row is for.

use super::super::architecture::Architecture;

/// The architectures that a part of a row is for.
#[expect(non_camel_case_types)]
#[derive(Clone, Copy)]
pub enum Generation {
    gfx9,
    gfx90a,
    rdna,
    gfx12,
}

impl Generation {
    pub fn includes(self, arch: Architecture) -> bool {
        match self {
            Generation::gfx9 => arch.is_gfx9(),
            Generation::gfx90a => arch == Architecture::Gfx90a,
            Generation::rdna => !arch.is_gfx9(),
            Generation::gfx12 => arch == Architecture::Gfx12,
        }
    }
}
