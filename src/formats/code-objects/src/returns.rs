//! Finds device functions whose long branches overwrite their return address (llvm/llvm-project#224205). A branch reaches
//! 128 KiB; for a longer one, LLVM's branch relaxation computes the target in two SGPRs that it has reserved. It takes
//! the lowest ones that the function does not use, and does not know that a function without calls returns through
//! s\[30:31].
//!
//! A function is reported if it has more than 128 KiB, is not a kernel, calls no function, and has a long branch in
//! s\[30:31] without an instruction before it that saves s30. The bytes are compared with the encodings of these
//! instructions, without decoding all others.

use crate::bytes::Bytes;
use crate::elf::{Elf, Symbol};
use crate::error::Error;
use crate::target::{AMDGPU, Target};
use goblin::elf::sym::STT_FUNC;
use std::collections::{BTreeMap, HashSet};

/// How far a branch reaches, in bytes: a signed offset of 16 bits, in words.
const REACH: u64 = 1 << 17;
/// Limit on the size of a function in bytes: larger ones are not read.
const MAX_SIZE: u64 = 64 << 20;
/// A long branch has fewer words than this, with the waits for hazards between its instructions.
const LONG_BRANCH: usize = 12;
/// `s_add_u32 s30, s30, literal`
const ADD: u32 = 0x801E_FF1E;
/// `s_addc_u32 s31, s31, literal`
const ADD_CARRY: u32 = 0x821F_FF1F;
/// `v_mov_b32 v0, s30`
const VECTOR_MOVE: u32 = 0x7E00_021E;

/// Instructions whose encodings differ between generations. The destination of moves is s0, and the destination of `v_writelane_b32`
/// is v0.
struct Encodings {
    /// `s_getpc_b64 s[30:31]`
    get_pc: u32,
    /// `s_setpc_b64 s[30:31]`
    set_pc: u32,
    /// `s_swappc_b64 s[30:31], s[0:1]`
    call: u32,
    /// `s_mov_b32 s0, s30`
    move_32: u32,
    /// `s_mov_b64 s[0:1], s[30:31]`
    move_64: u32,
    /// The first word of `v_writelane_b32 v0, …`.
    write_lane: u32,
}

const GFX8: Encodings = Encodings {
    get_pc: 0xBE9E_1C00,
    set_pc: 0xBE80_1D1E,
    call: 0xBE9E_1E00,
    move_32: 0xBE80_001E,
    move_64: 0xBE80_011E,
    write_lane: 0xD28A_0000,
};

const GFX10: Encodings = Encodings {
    get_pc: 0xBE9E_1F00,
    set_pc: 0xBE80_201E,
    call: 0xBE9E_2100,
    move_32: 0xBE80_031E,
    move_64: 0xBE80_041E,
    write_lane: 0xD761_0000,
};

const GFX11: Encodings = Encodings {
    get_pc: 0xBE9E_4700,
    set_pc: 0xBE80_481E,
    call: 0xBE9E_4900,
    move_32: 0xBE80_001E,
    move_64: 0xBE80_011E,
    write_lane: 0xD761_0000,
};

impl Encodings {
    /// The encodings of a processor, from gfx8 to gfx12.
    fn of(processor: &str) -> Option<&'static Encodings> {
        let is_one_of =
            |generations: &[&str]| generations.iter().any(|of| processor.starts_with(of));
        if is_one_of(&["gfx11", "gfx12"]) {
            Some(&GFX11)
        } else if is_one_of(&["gfx10"]) {
            Some(&GFX10)
        } else {
            is_one_of(&["gfx8", "gfx9"]).then_some(&GFX8)
        }
    }

    /// Whether `code` begins with a long branch in s[30:31].
    fn is_long_branch(&self, code: &[u32]) -> bool {
        let mut words = code.iter().take(LONG_BRANCH);
        words.next() == Some(&self.get_pc)
            && [ADD, ADD_CARRY, self.set_pc]
                .iter()
                .all(|instruction| words.any(|word| word == instruction))
    }

    /// Whether `code` begins with an instruction that copies s30.
    fn is_save(&self, code: &[u32]) -> bool {
        let &[first, ref rest @ ..] = code else {
            return false;
        };
        let without_scalar_destination = first & 0xFF80_FFFF;
        let source = rest.first().map(|second| second & 0x1FF);
        without_scalar_destination == self.move_32
            || without_scalar_destination == self.move_64
            || first & 0xFE01_FFFF == VECTOR_MOVE
            || (first & 0xFFFF_FF00 == self.write_lane && source == Some(30))
    }

    /// Whether a function with this code overwrites its return address.
    fn overwrite_return(&self, code: &[u32]) -> bool {
        if code.iter().any(|word| word & 0xFFFF_FF00 == self.call) {
            return false;
        }
        let branch = (0..code.len()).find(|&at| self.is_long_branch(&code[at..]));
        branch.is_some_and(|end| !(0..end).any(|at| self.is_save(&code[at..])))
    }
}

/// The mangled names of the device functions in a code object that overwrite their return address. None are found if it has
/// no `.symtab`, in which LLVM's device functions are.
///
/// # Errors
/// The ELF file is damaged.
pub fn overwritten(bytes: &Bytes) -> Result<Vec<String>, Error> {
    let mut elf = Elf::read(bytes)?;
    let version = elf.abi_version().saturating_add(2);
    let target = Target::from_flags(elf.header.e_flags, version);
    let Some(encodings) = Encodings::of(&target.processor) else {
        return Ok(Vec::new());
    };
    if elf.header.e_machine != AMDGPU {
        return Ok(Vec::new());
    }
    let is_large = |size: u64| (REACH + 1..=MAX_SIZE).contains(&size);
    let symbols = elf.all_symbols(|name, symbol| {
        name.ends_with(".kd") || symbol.st_type() == STT_FUNC && is_large(symbol.st_size)
    });
    let kernels: HashSet<&str> = symbols
        .iter()
        .filter_map(|symbol| symbol.name.strip_suffix(".kd"))
        .collect();
    let is_large_function = |symbol: &&Symbol| {
        symbol.kind == STT_FUNC && is_large(symbol.size) && !kernels.contains(symbol.name.as_str())
    };
    // Exported functions are in two tables.
    let functions: BTreeMap<(usize, u64), &Symbol> = symbols
        .iter()
        .filter(is_large_function)
        .map(|symbol| ((symbol.section, symbol.value), symbol))
        .collect();
    let mut left = bytes.size();
    let mut overwritten = Vec::new();
    for symbol in functions.values() {
        // Functions that overlap could be more than the file.
        let Some(rest) = left.checked_sub(symbol.size) else {
            break;
        };
        left = rest;
        let code = elf.value(symbol, symbol.size).unwrap_or_default();
        let words = code.as_chunks().0.iter();
        let words: Vec<u32> = words.map(|word| u32::from_le_bytes(*word)).collect();
        if encodings.overwrite_return(&words) {
            overwritten.push(symbol.name.clone());
        }
    }
    Ok(overwritten)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The long branch of a gfx1100, as LLVM 23 writes it.
    const BRANCH: [u32; 6] = [0xBE9E_4700, 0x801E_FF1E, 0x48, 0x821F_FF1F, 0, 0xBE80_481E];
    const RETURN: u32 = 0xBE80_481E;

    fn is_overwritten(parts: &[&[u32]]) -> bool {
        GFX11.overwrite_return(&parts.concat())
    }

    #[test]
    fn a_long_branch_overwrites_the_return_address() {
        assert!(is_overwritten(&[&[0xBF80_0000], &BRANCH, &[RETURN]]));
        assert!(!is_overwritten(&[&[0xBF80_0000], &[RETURN]]));
        // In s[0:1].
        let other = [0xBE80_4700, 0x8000_FF00, 0x48, 0x8201_FF01, 0, 0xBE80_4800];
        assert!(!is_overwritten(&[&other, &[RETURN]]));
        // gfx1201 waits between the instructions.
        let waits = [0xBE9E_4700, 0xBF88_FF9E, 0x801E_FF1E, 0x1C4, 0x821F_FF1F, 0];
        assert!(is_overwritten(&[
            &waits,
            &[0xBF88_FF9E, 0xBE80_481E],
            &[RETURN]
        ]));
    }

    #[test]
    fn what_was_saved_can_be_overwritten() {
        // v_writelane_b32 v40, s30, 3; s_mov_b64 s[34:35], s[30:31]; s_mov_b32 s36, s30; v_mov_b32 v3, s30
        let saves: [&[u32]; 4] = [
            &[0xD761_0028, 0x0201_061E],
            &[0xBEA2_011E],
            &[0xBEA4_001E],
            &[0x7E06_021E],
        ];
        for save in saves {
            assert!(!is_overwritten(&[save, &BRANCH, &[RETURN]]));
            assert!(is_overwritten(&[&BRANCH, save, &[RETURN]]));
        }
        // v_writelane_b32 v40, s29, 3
        let other = [0xD761_0028, 0x0201_061D];
        assert!(is_overwritten(&[&other, &BRANCH, &[RETURN]]));
        // s_swappc_b64 s[30:31], s[16:17]: a function that calls others saves its return address.
        assert!(!is_overwritten(&[&BRANCH, &[0xBE9E_4910], &[RETURN]]));
    }

    #[test]
    fn each_generation_has_its_encodings() {
        for processor in ["gfx803", "gfx90a", "gfx942", "gfx9-4-generic"] {
            let encodings = Encodings::of(processor).unwrap();
            assert_eq!(encodings.get_pc, 0xBE9E_1C00, "{processor}");
        }
        assert_eq!(Encodings::of("gfx1030").unwrap().get_pc, 0xBE9E_1F00);
        assert_eq!(Encodings::of("gfx1201").unwrap().get_pc, 0xBE9E_4700);
        assert!(Encodings::of("gfx600").is_none());
    }
}
