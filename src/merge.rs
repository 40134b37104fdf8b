//! Adding a profile to one that another process, or an earlier drain, has written (%m in the pattern).

use crate::format::{BYTE_COVERAGE, MAGIC, V10, V11, VARIANT_MASK};
use byteorder::{ByteOrder, LittleEndian};
use std::ops::Range;

/// Why two profiles do not add up.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    #[error("it is no raw profile of version 10 or 11")]
    Format,
    #[error("it is of another build of the code object")]
    Build,
}

/// Adds to `old` what `new` counts beyond `before`, the state of the same counters that is in `old` already. All three
/// are images as [`crate::encode`] makes them. Counters stop at their largest value.
pub fn merge(old: &[u8], new: &[u8], before: Option<&[u8]>) -> Result<Vec<u8>, Mismatch> {
    let parts = counters(new).ok_or(Mismatch::Format)?;
    counters(old).ok_or(Mismatch::Format)?;
    if old.len() != new.len() || before.is_some_and(|before| before.len() != new.len()) {
        return Err(Mismatch::Build);
    }
    let mut out = old.to_vec();
    let mut fixed = 0;
    for (part, bytes) in &parts {
        if old[fixed..part.start] != new[fixed..part.start] {
            return Err(Mismatch::Build);
        }
        fixed = part.end;
        if *bytes {
            // Covered is 0, not covered 0xff.
            for n in part.clone() {
                out[n] &= new[n];
            }
            continue;
        }
        for at in part.clone().step_by(8) {
            let word = |image: &[u8]| LittleEndian::read_u64(&image[at..]);
            let seen = before.map_or(0, word);
            // Fewer than before: the program has set them back in between.
            let more = word(new).checked_sub(seen).unwrap_or(word(new));
            LittleEndian::write_u64(&mut out[at..], word(old).saturating_add(more));
        }
    }
    if old[fixed..] != new[fixed..] {
        Err(Mismatch::Build)
    } else {
        Ok(out)
    }
}

/// The counters and the uniform counters in an image, and whether they are single bytes.
fn counters(image: &[u8]) -> Option<[(Range<usize>, bool); 2]> {
    let word = |n: usize| image.get(8 * n..8 * n + 8).map(LittleEndian::read_u64);
    let (magic, version) = (word(0)?, word(1)?);
    let (format, header, uniform) = match version & !VARIANT_MASK {
        10 => (&V10, 16, 0),
        11 => (&V11, 19, word(9)?),
        _ => return None,
    };
    if magic != MAGIC {
        return None;
    }
    let bytes = version & BYTE_COVERAGE != 0;
    let size = |n: u64, unit: u64| usize::try_from(n.checked_mul(unit)?).ok();
    let data = size(word(3)?, format.record as u64)?;
    let start = (8usize * header)
        .checked_add(usize::try_from(word(2)?).ok()?)?
        .checked_add(data)?;
    let end = start.checked_add(size(word(5)?, if bytes { 1 } else { 8 })?)?;
    let second = end.checked_add(usize::try_from(word(6)?).ok()?)?;
    let last = second.checked_add(size(uniform, 8)?)?;
    (last <= image.len()).then_some([(start..end, bytes), (second..last, false)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{Sections, encode};
    use crate::format::V11;

    fn image(counts: [u64; 2], name: u8) -> Vec<u8> {
        let mut record = [0u8; 72];
        record[0] = name;
        LittleEndian::write_u64(&mut record[16..], 0x1000u64.wrapping_sub(0x2000));
        LittleEndian::write_u64(&mut record[24..], 0x1010u64.wrapping_sub(0x2000));
        record[56] = 2;
        let bytes: Vec<u8> = counts.iter().flat_map(|c| c.to_le_bytes()).collect();
        let sections = Sections {
            version: 11,
            format: &V11,
            data: &record,
            data_start: 0x2000,
            counters: &bytes,
            counters_start: 0x1000,
            uniform: &bytes,
            uniform_start: 0x1010,
            names: b"\x01\0f",
        };
        encode(&sections, Some(&[1; 20])).unwrap().bytes
    }

    #[test]
    fn counts_add_up_and_stop_at_the_largest() {
        assert_eq!(
            merge(&image([1, u64::MAX - 1], 0), &image([5, 7], 0), None),
            Ok(image([6, u64::MAX], 0))
        );
    }

    #[test]
    fn what_was_added_before_is_not_added_again() {
        let (first, second) = (image([5, 7], 0), image([6, 7], 0));
        assert_eq!(
            merge(&image([100, 100], 0), &second, Some(&first)),
            Ok(image([101, 100], 0))
        );
        // Set back to 0 since, and counted to 2.
        assert_eq!(
            merge(&image([100, 100], 0), &image([2, 0], 0), Some(&first)),
            Ok(image([102, 100], 0))
        );
    }

    #[test]
    fn what_is_of_another_build_or_damaged_is_refused() {
        let new = image([5, 7], 0);
        assert_eq!(merge(&image([1, 2], 9), &new, None), Err(Mismatch::Build));
        assert_eq!(
            merge(&new[..new.len() - 8], &new, None),
            Err(Mismatch::Build)
        );
        assert_eq!(merge(b"", &new, None), Err(Mismatch::Format));
        assert_eq!(merge(&[0; 400], &new, None), Err(Mismatch::Format));
        let mut huge = new.clone();
        huge[8 * 5..8 * 6].fill(0xff);
        assert_eq!(merge(&huge, &new, None), Err(Mismatch::Format));
    }
}
