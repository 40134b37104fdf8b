//! Sub-dword addressing of gfx9: parts of the sources and of the destination (MI300 guide, "SDWA").

use crate::isa::{Part, Sdwa, Unused};
use crate::wave::VReg;

/// The lowest bit and the number of bits of a part.
fn bits(part: Part) -> (u32, u32) {
    match part {
        Part::Byte(n) => (8 * u32::from(n), 8),
        Part::Word(n) => (16 * u32::from(n), 16),
        Part::Dword => (0, 32),
    }
}

/// The part of source `i` in the low bits, extended.
pub fn select(sdwa: &Sdwa, i: usize, word: u32) -> u32 {
    let (first, width) = bits(sdwa.src[i]);
    let top = word >> first << (32 - width);
    if sdwa.sext[i] {
        (top as i32 >> (32 - width)) as u32
    } else {
        top >> (32 - width)
    }
}

/// Moves the low bits of the results to their part of the destination, whose old value is `old`.
pub fn insert(sdwa: &Sdwa, results: &mut VReg, old: &VReg) {
    let (first, width) = bits(sdwa.dst);
    let mask = (u32::MAX >> (32 - width)) << first;
    for (result, old) in results.iter_mut().zip(old) {
        let part = *result << first & mask;
        let above = !(mask | (mask - 1));
        let sign = part >> (first + width - 1) & 1 != 0;
        *result = match sdwa.unused {
            Unused::Pad => part,
            Unused::SignExtend if sign => part | above,
            Unused::SignExtend => part,
            Unused::Preserve => part | old & !mask,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_sources_are_extended() {
        let word = 0x8091_a2b3;
        for (part, sext, expected) in [
            (Part::Byte(0), false, 0xb3),
            (Part::Byte(3), true, 0xffff_ff80),
            (Part::Byte(1), true, 0xffff_ffa2),
            (Part::Word(1), false, 0x8091),
            (Part::Word(1), true, 0xffff_8091),
            (Part::Dword, true, word),
        ] {
            let sdwa = Sdwa {
                dst: Part::Dword,
                unused: Unused::Pad,
                src: [Part::Dword, part],
                sext: [false, sext],
            };
            assert_eq!(select(&sdwa, 1, word), expected, "{part:?} {sext}");
        }
    }

    #[test]
    fn the_other_bits_of_the_destination() {
        for (dst, unused, expected) in [
            (Part::Byte(1), Unused::Pad, 0x0000_c300),
            (Part::Byte(1), Unused::SignExtend, 0xffff_c300),
            (Part::Byte(1), Unused::Preserve, 0x1122_c344),
            (Part::Word(1), Unused::Preserve, 0x02c3_3344),
            (Part::Word(1), Unused::SignExtend, 0x02c3_0000),
            (Part::Word(0), Unused::SignExtend, 0x0000_02c3),
            (Part::Byte(3), Unused::SignExtend, 0xc300_0000),
            (Part::Dword, Unused::Preserve, 0x0001_02c3),
        ] {
            let sdwa = Sdwa {
                dst,
                unused,
                src: [Part::Dword; 2],
                sext: [false; 2],
            };
            let mut results = [0x0001_02c3; 64];
            insert(&sdwa, &mut results, &[0x1122_3344; 64]);
            assert_eq!(results[63], expected, "{dst:?} {unused:?}");
        }
    }
}
