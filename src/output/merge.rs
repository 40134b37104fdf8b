//! Adding a profile to one that another process, or an earlier drain, has written (%m in the pattern).

use byteorder::{ByteOrder, LittleEndian};
use profraw::Layout;
use std::ops::Range;

/// Why two profiles do not add up.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    #[error(transparent)]
    Raw(#[from] profraw::Error),
    #[error("it is of another build of the code object, or was changed")]
    Build,
}

/// A part of an image that changes while the code object runs.
struct Part {
    range: Range<usize>,
    holds: Holds,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// 64-bit numbers.
    Words,
    /// A byte each, 0 where the code ran and 0xff where it did not.
    Bytes,
    /// What a function's record says of the device that ran it, 0 before that.
    WaveSize,
}

/// All the parts that change, in order. A code object with several tables has several profiles, one behind the other.
fn parts(image: &[u8]) -> Result<Vec<Part>, Mismatch> {
    let mut parts = Vec::new();
    let mut base = 0;
    while base < image.len() {
        let layout = Layout::read(&image[base..])?;
        let format = layout.format();
        let mut part = |range: Range<usize>, holds| {
            parts.push(Part {
                range: base + range.start..base + range.end,
                holds,
            });
        };
        if let Some(at) = format.wave_size {
            for record in layout.data.clone().step_by(format.record) {
                part(record + at..record + at + 2, Holds::WaveSize);
            }
        }
        let counters = match layout.header.counter() {
            1 => Holds::Bytes,
            _ => Holds::Words,
        };
        part(layout.counters, counters);
        part(layout.uniform, Holds::Words);
        base += layout.end;
    }
    Ok(parts)
}

fn words(part: &Part) -> impl Iterator<Item = usize> {
    part.range.clone().step_by(8)
}

/// Whether two images are of the same build of a code object: the same bytes but for what changes as it runs.
pub fn fits(one: &[u8], other: &[u8]) -> Result<(), Mismatch> {
    same_parts(one, other).map(|_| ())
}

/// The parts that change, of two images that are otherwise the same.
fn same_parts(one: &[u8], other: &[u8]) -> Result<Vec<Part>, Mismatch> {
    Layout::read(one)?;
    let parts = parts(other)?;
    if one.len() != other.len() {
        return Err(Mismatch::Build);
    }
    let mut fixed = 0;
    for part in &parts {
        if one[fixed..part.range.start] != other[fixed..part.range.start] {
            return Err(Mismatch::Build);
        }
        let both = [&one[part.range.clone()], &other[part.range.clone()]];
        let is_known = |bytes: &&[u8]| bytes.iter().any(|&byte| byte != 0);
        if part.holds == Holds::WaveSize && both.iter().all(is_known) && both[0] != both[1] {
            return Err(Mismatch::Build);
        }
        fixed = part.range.end;
    }
    match one[fixed..] == other[fixed..] {
        true => Ok(parts),
        false => Err(Mismatch::Build),
    }
}

/// The largest count. llvm-profdata takes a larger one for damage and refuses all of its file (`MaxCounterValue` of
/// LLVM's InstrProfReader.cpp).
const LARGEST: u64 = 1 << 56;

/// Sets counters that are larger than the largest count to that. How many there were.
pub fn cap(image: &mut [u8]) -> Result<usize, Mismatch> {
    let mut stopped = 0;
    for part in parts(image)? {
        for at in words(&part).filter(|_| part.holds == Holds::Words) {
            if LittleEndian::read_u64(&image[at..]) > LARGEST {
                LittleEndian::write_u64(&mut image[at..], LARGEST);
                stopped += 1;
            }
        }
    }
    Ok(stopped)
}

/// Adds to `sum` what `new` counts beyond `before`, the state of the same counters that is in `sum` already. All three
/// are images as [`crate::encode`] makes them. How many counters stop at the largest value; `sum` is as it was when the
/// images do not fit.
pub fn add(sum: &mut [u8], new: &[u8], before: Option<&[u8]>) -> Result<usize, Mismatch> {
    let parts = same_parts(sum, new)?;
    if before.is_some_and(|before| before.len() != new.len()) {
        return Err(Mismatch::Build);
    }
    let mut stopped = 0;
    for part in &parts {
        match part.holds {
            Holds::Words => {}
            Holds::Bytes => {
                part.range.clone().for_each(|n| sum[n] &= new[n]);
                continue;
            }
            // One of them is 0, or they are the same.
            Holds::WaveSize => {
                part.range.clone().for_each(|n| sum[n] |= new[n]);
                continue;
            }
        }
        for at in words(part) {
            let word = |image: &[u8]| LittleEndian::read_u64(&image[at..]);
            let seen = before.map_or(0, word);
            // Fewer than before: the program has set them back in between.
            let more = word(new).checked_sub(seen).unwrap_or(word(new));
            if more == 0 {
                continue;
            }
            let total = word(sum)
                .checked_add(more)
                .filter(|&total| total <= LARGEST);
            stopped += usize::from(total.is_none());
            LittleEndian::write_u64(&mut sum[at..], total.unwrap_or(LARGEST));
        }
    }
    Ok(stopped)
}

/// Whether a counter in `new` is lower than it was in `before`, an image of the same code object.
pub fn has_fallen(new: &[u8], before: &[u8]) -> Result<bool, Mismatch> {
    let parts = parts(new)?;
    if new.len() != before.len() {
        return Err(Mismatch::Build);
    }
    let word = |image: &[u8], at| LittleEndian::read_u64(&image[at..]);
    let fallen = |part: &Part| match part.holds {
        Holds::Words => words(part).any(|at| word(new, at) < word(before, at)),
        Holds::Bytes => part.range.clone().any(|n| new[n] & !before[n] != 0),
        Holds::WaveSize => false,
    };
    Ok(parts.iter().any(fallen))
}

/// Sets all counters of an image back to what they are before the code has run.
pub fn reset(image: &mut [u8]) -> Result<(), Mismatch> {
    for part in parts(image)? {
        match part.holds {
            Holds::Words => image[part.range].fill(0),
            Holds::Bytes => image[part.range].fill(0xff),
            Holds::WaveSize => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{Sections, encode};
    use profraw::format::V11;

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
            data: 0x2000..0x2048,
            counters: 0x1000..0x1010,
            uniform: 0x1010..0x1020,
            names: b"\x01\0f",
        };
        encode(sections, [&record, &bytes, &bytes], Some(&[1; 20]))
            .unwrap()
            .bytes
    }

    fn merge(old: &[u8], new: &[u8], before: Option<&[u8]>) -> Result<Vec<u8>, Mismatch> {
        let mut sum = old.to_vec();
        add(&mut sum, new, before).map(|_| sum)
    }

    #[test]
    fn counts_add_up_beyond_32_bits_and_stop_at_the_largest() {
        let most = u32::MAX.into();
        assert_eq!(
            merge(&image([most, 1 << 40], 0), &image([most, 1 << 55], 0), None),
            Ok(image([2 * most, (1 << 40) + (1 << 55)], 0))
        );
        for old in [LARGEST - 6, LARGEST, u64::MAX] {
            // A uniform counter stands beside each of the two.
            let mut sum = image([1, old], 0);
            assert_eq!(add(&mut sum, &image([5, 7], 0), None), Ok(2), "{old}");
            assert_eq!(sum, image([6, LARGEST], 0));
        }
        let mut sum = image([1, LARGEST - 7], 0);
        assert_eq!(add(&mut sum, &image([5, 7], 0), None), Ok(0));
        assert_eq!(sum, image([6, LARGEST], 0));
    }

    #[test]
    fn what_llvm_profdata_would_refuse_is_capped() {
        let mut image_of = image([LARGEST + 1, LARGEST], 0);
        assert_eq!(cap(&mut image_of), Ok(2));
        assert_eq!(image_of, image([LARGEST, LARGEST], 0));
        assert_eq!(cap(&mut image_of), Ok(0));
    }

    #[test]
    fn all_profiles_of_a_file_add_up() {
        let two = |a, b| [image(a, 0), image(b, 1)].concat();
        let sum = merge(&two([1, 2], [3, 4]), &two([5, 6], [7, 8]), None);
        assert_eq!(sum, Ok(two([6, 8], [10, 12])));
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
    fn a_fallen_counter_is_seen_and_a_reset_one_is_zero() {
        let (one, two) = (image([5, 7], 0), image([6, 6], 0));
        assert_eq!(has_fallen(&two, &one), Ok(true));
        assert_eq!(has_fallen(&one, &one), Ok(false));
        assert_eq!(has_fallen(&image([5, 8], 0), &one), Ok(false));
        let mut zero = one.clone();
        assert_eq!(reset(&mut zero), Ok(()));
        assert_eq!(zero, image([0, 0], 0));
    }

    #[test]
    fn a_function_that_has_not_run_knows_no_wave_size() {
        let with = |counts, size: u8| {
            let mut image = image(counts, 0);
            let data = Layout::read(&image).unwrap().data.start;
            image[data + 66] = size;
            image
        };
        let mut sum = with([0, 0], 0);
        assert_eq!(add(&mut sum, &with([1, 2], 32), None), Ok(0));
        assert_eq!(sum, with([1, 2], 32));
        assert_eq!(add(&mut sum, &with([0, 0], 0), None), Ok(0));
        assert_eq!(sum, with([1, 2], 32));
        assert_eq!(fits(&sum, &with([1, 2], 64)), Err(Mismatch::Build));
    }

    #[test]
    fn what_is_of_another_build_or_damaged_is_refused() {
        let new = image([5, 7], 0);
        assert_eq!(merge(&image([1, 2], 9), &new, None), Err(Mismatch::Build));
        assert!(matches!(
            merge(&new[..new.len() - 8], &new, None),
            Err(Mismatch::Raw(_))
        ));
        let twice = [new.clone(), new.clone()].concat();
        assert_eq!(merge(&twice, &new, None), Err(Mismatch::Build));
        assert!(matches!(merge(b"", &new, None), Err(Mismatch::Raw(_))));
        assert!(matches!(
            merge(&[0; 400], &new, None),
            Err(Mismatch::Raw(_))
        ));
        let mut huge = new.clone();
        huge[8 * 5..8 * 6].fill(0xff);
        assert!(matches!(merge(&huge, &new, None), Err(Mismatch::Raw(_))));
    }
}
