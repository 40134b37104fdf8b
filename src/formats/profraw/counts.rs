//! Adds the counters of raw profiles of one code object: files that differ only in the parts that change while the
//! code object runs.

use crate::format;
use crate::reader::{self, Layout};
use std::ops::Range;

/// The largest count. llvm-profdata refuses a raw profile with a larger one (`MaxCounterValue` in LLVM's
/// `InstrProfReader.cpp`).
pub const MAX_COUNT: u64 = 1 << 56;

/// Why the counters of two files cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    #[error(transparent)]
    Raw(#[from] reader::Error),
    #[error("it belongs to another build of the code object, or was changed")]
    Build,
}

/// A section of a file that changes while the code object runs.
#[derive(Clone, Debug)]
struct Part {
    /// In bytes from the beginning of the file.
    range: Range<usize>,
    content: Content,
}

impl Part {
    /// The ranges that change: the complete section, or the wave size of each record.
    fn ranges(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let Range { start, end } = self.range;
        let (first, size, step) = match self.content {
            Content::WaveSizes { at, record } => (start + at, 2, record),
            Content::Words | Content::Bytes | Content::Bits => {
                (start, end - start, (end - start).max(1))
            }
        };
        (first..end)
            .step_by(step)
            .map(move |start| start..start + size)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// 64-bit counters.
    Words,
    /// Counters of one byte (byte coverage): 0 if the code ran, 0xff if not.
    Bytes,
    /// MC/DC bitmaps: a bit is 1 if its test vector was executed.
    Bits,
    /// Data records. `OffloadDeviceWaveSize`, at offset `at` in each, is 0 until the function has run. `record`: the size of
    /// a record.
    WaveSizes { at: usize, record: usize },
}

/// The positions of the counters in a file. They are the same in all files of one code object.
///
/// A file contains one raw profile per table of section bounds, one after another. Two files are of the same code object
/// if everything outside of the counters, the bitmaps and the wave sizes (headers, binary ids, records, names, padding) is
/// equal in them.
#[derive(Clone, Debug)]
pub struct Counts {
    /// In the order of the file, not overlapping.
    parts: Vec<Part>,
    /// Size of the file in bytes.
    size: usize,
    sums_like_llvm: bool,
}

impl Counts {
    /// Finds the counters in a file of raw profiles that have no value profiles.
    ///
    /// # Errors
    /// A profile is damaged, has a version other than 10 and 11, or is followed by other data.
    pub fn read(file: &[u8]) -> Result<Counts, reader::Error> {
        let mut counts = Counts {
            parts: Vec::new(),
            size: file.len(),
            sums_like_llvm: true,
        };
        let mut base = 0;
        while base < file.len() {
            let profile = &file[base..];
            let layout = Layout::read(profile)?;
            counts.add_parts(profile, base, &layout)?;
            base += layout.end;
        }
        Ok(counts)
    }

    fn add_parts(
        &mut self,
        profile: &[u8],
        base: usize,
        layout: &Layout,
    ) -> Result<(), reader::Error> {
        let format = layout.format();
        let reserved = self.parts.try_reserve(4);
        reserved.map_err(|_| reader::Error::OutOfMemory)?;
        let mut add = |range: Range<usize>, content| {
            let range = base + range.start..base + range.end;
            if !range.is_empty() {
                self.parts.push(Part { range, content });
            }
        };
        if let Some(at) = format.wave_size {
            let record = format.record;
            add(layout.data.clone(), Content::WaveSizes { at, record });
        }
        let counters = match layout.header.counter() {
            1 => Content::Bytes,
            _ => Content::Words,
        };
        add(layout.counters.clone(), counters);
        add(layout.bitmap.clone(), Content::Bits);
        add(layout.uniform.clone(), Content::Words);
        let mut records = format.records(&profile[layout.data.clone()]);
        self.sums_like_llvm &=
            format::sums(layout.header.version) && !records.any(|record| record.has_value_sites());
        Ok(())
    }

    /// Whether llvm-profdata's merge gives the same counts as [`Counts::add_exactly`]. It does not add byte coverage, time
    /// stamps and value profiles, but merges them in other ways.
    pub fn sums_like_llvm(&self) -> bool {
        self.sums_like_llvm
    }

    /// The 64-bit counters of a file of this code object, in order.
    pub fn words<'a>(&'a self, file: &'a [u8]) -> impl Iterator<Item = u64> + 'a {
        let parts = self.parts.iter();
        let parts = parts.filter(|part| part.content == Content::Words);
        parts.flat_map(|part| words(&file[part.range.clone()]))
    }

    /// Checks that two files are of the same code object.
    fn check_same(&self, one: &[u8], other: &[u8]) -> Result<(), Mismatch> {
        if one.len() != self.size || other.len() != self.size {
            return Err(Mismatch::Build);
        }
        let mut fixed = 0;
        for part in &self.parts {
            let is_wave_size = matches!(part.content, Content::WaveSizes { .. });
            for range in part.ranges() {
                let both = [&one[range.clone()], &other[range.clone()]];
                let differs =
                    is_wave_size && both[0] != both[1] && both.iter().all(|&size| size != [0, 0]);
                if differs || one[fixed..range.start] != other[fixed..range.start] {
                    return Err(Mismatch::Build);
                }
                fixed = range.end;
            }
        }
        if one[fixed..] != other[fixed..] {
            return Err(Mismatch::Build);
        }
        Ok(())
    }

    /// Adds the counts of `new` to the counts of `sum`. Counts saturate at [`MAX_COUNT`]; returns how many did. With byte
    /// coverage, code ran according to the sum if it ran according to either file; the same holds for test vectors in bitmaps.
    ///
    /// `before` is an earlier state of `new` that `sum` contains already: only the counts since then are added. A counter
    /// that is lower than before was reset in between, so its complete value is added.
    ///
    /// # Errors
    /// The files are not of the same code object. Then `sum` is unchanged.
    pub fn add(
        &self,
        sum: &mut [u8],
        new: &[u8],
        before: Option<&[u8]>,
    ) -> Result<usize, Mismatch> {
        self.check_same(sum, new)?;
        if before.is_some_and(|before| before.len() != self.size) {
            return Err(Mismatch::Build);
        }
        Ok(self.add_same(sum, new, before))
    }

    /// Like [`Counts::add`], but leaves `sum` unchanged if a sum exceeds [`MAX_COUNT`]. Returns whether `new` was
    /// added.
    ///
    /// # Errors
    /// The files are not of the same code object. Then `sum` is unchanged.
    pub fn add_exactly(&self, sum: &mut [u8], new: &[u8]) -> Result<bool, Mismatch> {
        self.check_same(sum, new)?;
        let mut pairs = self.words(sum).zip(self.words(new));
        let fits = pairs.all(|(sum, new)| sum.saturating_add(new) <= MAX_COUNT);
        drop(pairs);
        if fits {
            self.add_same(sum, new, None);
        }
        Ok(fits)
    }

    fn add_same(&self, sum: &mut [u8], new: &[u8], before: Option<&[u8]>) -> usize {
        let mut saturated = 0;
        for part in &self.parts {
            for range in part.ranges() {
                let before = before.map(|before| &before[range.clone()]);
                let (sum, new) = (&mut sum[range.clone()], &new[range]);
                let both = sum.iter_mut().zip(new);
                match part.content {
                    Content::Words => saturated += add_words(sum, new, before),
                    Content::Bytes => both.for_each(|(sum, new)| *sum &= new),
                    // Of wave sizes, one is 0, or they are equal.
                    Content::Bits | Content::WaveSizes { .. } => {
                        both.for_each(|(sum, new)| *sum |= new)
                    }
                }
            }
        }
        saturated
    }

    /// Limits counts to [`MAX_COUNT`]. Returns how many were larger.
    fn saturate(&self, file: &mut [u8]) -> usize {
        let mut saturated = 0;
        for part in self.parts.iter() {
            if part.content != Content::Words {
                continue;
            }
            let (words, _) = file[part.range.clone()].as_chunks_mut();
            for word in words {
                if u64::from_le_bytes(*word) > MAX_COUNT {
                    *word = MAX_COUNT.to_le_bytes();
                    saturated += 1;
                }
            }
        }
        saturated
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let (words, _) = bytes.as_chunks();
    words.iter().map(|&word| u64::from_le_bytes(word))
}

/// See [`Counts::add`]. The slices have the same size.
fn add_words(sum: &mut [u8], new: &[u8], before: Option<&[u8]>) -> usize {
    let mut saturated = 0;
    let mut add = |sum: &mut [u8; 8], more: u64| {
        // A sum that is already too large is neither changed nor reported if nothing is added.
        if more == 0 {
            return;
        }
        let total = u64::from_le_bytes(*sum).saturating_add(more);
        saturated += usize::from(total > MAX_COUNT);
        *sum = total.min(MAX_COUNT).to_le_bytes();
    };
    let (sums, _) = sum.as_chunks_mut();
    match before {
        None => sums
            .iter_mut()
            .zip(words(new))
            .for_each(|(sum, new)| add(sum, new)),
        Some(before) => {
            let news = words(new).zip(words(before));
            for (sum, (new, before)) in sums.iter_mut().zip(news) {
                add(sum, new.checked_sub(before).unwrap_or(new));
            }
        }
    }
    saturated
}

/// Checks that two files are of the same code object. See [`Counts`].
///
/// # Errors
/// One of them is damaged, or they are of different code objects.
pub fn check_same(one: &[u8], other: &[u8]) -> Result<(), Mismatch> {
    Layout::read(one)?;
    Counts::read(other)?.check_same(one, other)
}

/// See [`Counts::add`].
///
/// # Errors
/// A file is damaged, or they are of different code objects. Then `sum` is unchanged.
pub fn add(sum: &mut [u8], new: &[u8], before: Option<&[u8]>) -> Result<usize, Mismatch> {
    Layout::read(sum)?;
    Counts::read(new)?.add(sum, new, before)
}

/// Limits counts to [`MAX_COUNT`]. Returns how many were larger.
///
/// # Errors
/// The file is damaged.
pub fn saturate(file: &mut [u8]) -> Result<usize, Mismatch> {
    Ok(Counts::read(file)?.saturate(file))
}

/// Whether a counter in `new` is lower than in `before`, an earlier file of the same code object. With byte coverage,
/// whether code that ran according to `before` did not run according to `new`. Test vectors in bitmaps likewise.
///
/// # Errors
/// `new` is damaged, or the sizes differ.
pub fn has_decreased(new: &[u8], before: &[u8]) -> Result<bool, Mismatch> {
    let counts = Counts::read(new)?;
    if new.len() != before.len() {
        return Err(Mismatch::Build);
    }
    let has_decreased = |part: &Part| {
        let (new, before) = (&new[part.range.clone()], &before[part.range.clone()]);
        match part.content {
            Content::Words => words(new).zip(words(before)).any(|(new, old)| new < old),
            Content::Bytes => new.iter().zip(before).any(|(new, old)| new & !old != 0),
            Content::Bits => new.iter().zip(before).any(|(new, old)| old & !new != 0),
            Content::WaveSizes { .. } => false,
        }
    };
    Ok(counts.parts.iter().any(has_decreased))
}

/// Whether a counter has a count, or a test vector was executed. False as well if the file is damaged.
pub fn has_any(file: &[u8]) -> bool {
    let Ok(counts) = Counts::read(file) else {
        return false;
    };
    let has_any = |part: &Part| {
        let initial = match part.content {
            Content::Words | Content::Bits => 0,
            Content::Bytes => 0xff,
            Content::WaveSizes { .. } => return false,
        };
        file[part.range.clone()].iter().any(|&byte| byte != initial)
    };
    counts.parts.iter().any(has_any)
}

/// Sets all counters to their state before the code object has run. Wave sizes are kept.
///
/// # Errors
/// The file is damaged.
pub fn reset(file: &mut [u8]) -> Result<(), Mismatch> {
    for part in Counts::read(file)?.parts {
        match part.content {
            Content::Words | Content::Bits => file[part.range].fill(0),
            Content::Bytes => file[part.range].fill(0xff),
            Content::WaveSizes { .. } => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Header;

    /// A file of version 11 with one function of two counters; its uniform counters are equal to its counters.
    fn file(counts: [u64; 2], name: u8) -> Vec<u8> {
        let header = Header {
            version: 11,
            num_data: 1,
            num_counters: 2,
            num_uniform: 2,
            counters_delta: 72,
            uniform_delta: 88,
            names: 3,
            ..Header::default()
        };
        let mut words = header.words();
        words.extend([u64::from(name), 7, 72, 88, 0, 0, 0, 2, 0]);
        words.extend([counts, counts].concat());
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(b"\x01\0f\0\0\0\0\0");
        bytes
    }

    fn sum(old: &[u8], new: &[u8], before: Option<&[u8]>) -> Result<Vec<u8>, Mismatch> {
        let mut sum = old.to_vec();
        add(&mut sum, new, before).map(|_| sum)
    }

    #[test]
    fn counts_add_up_beyond_32_bits_and_saturate() {
        let most = u32::MAX.into();
        assert_eq!(
            sum(&file([most, 1 << 40], 0), &file([most, 1 << 55], 0), None),
            Ok(file([2 * most, (1 << 40) + (1 << 55)], 0))
        );
        for old in [MAX_COUNT - 6, MAX_COUNT, u64::MAX] {
            // Each counter has a uniform counter.
            let mut sum = file([1, old], 0);
            assert_eq!(add(&mut sum, &file([5, 7], 0), None), Ok(2), "{old}");
            assert_eq!(sum, file([6, MAX_COUNT], 0));
        }
        let mut sum = file([1, MAX_COUNT - 7], 0);
        assert_eq!(add(&mut sum, &file([5, 7], 0), None), Ok(0));
        assert_eq!(sum, file([6, MAX_COUNT], 0));
    }

    #[test]
    fn an_exact_addition_does_not_saturate() {
        let new = file([5, 7], 0);
        let counts = Counts::read(&new).unwrap();
        assert!(counts.sums_like_llvm());
        for old in [MAX_COUNT - 6, MAX_COUNT, u64::MAX] {
            let mut sum = file([1, old], 0);
            assert_eq!(counts.add_exactly(&mut sum, &new), Ok(false), "{old}");
            assert_eq!(sum, file([1, old], 0));
        }
        let mut sum = file([1, MAX_COUNT - 7], 0);
        assert_eq!(counts.add_exactly(&mut sum, &new), Ok(true));
        assert_eq!(sum, file([6, MAX_COUNT], 0));
        let other = file([1, 2], 9);
        assert_eq!(counts.add_exactly(&mut sum, &other), Err(Mismatch::Build));
    }

    #[test]
    fn profiles_that_llvm_profdata_does_not_add_are_recognized() {
        let plain = file([1, 2], 0);
        for (at, value) in [
            // Byte coverage, entries only, temporal, an unknown flag.
            (15, 0x10),
            (15, 0x20),
            (15, 0x80),
            (13, 1),
            // Value sites.
            (19 * 8 + 60, 1),
        ] {
            let mut file = plain.clone();
            file[at] = value;
            // Byte coverage has smaller counters: the rest is padding after them.
            if value == 0x10 {
                file[6 * 8] = 14;
            }
            let counts = Counts::read(&file).unwrap();
            assert!(!counts.sums_like_llvm(), "{at}: {value:#x}");
        }
    }

    #[test]
    fn counts_that_llvm_profdata_would_refuse_are_saturated() {
        let mut large = file([MAX_COUNT + 1, MAX_COUNT], 0);
        assert_eq!(saturate(&mut large), Ok(2));
        assert_eq!(large, file([MAX_COUNT, MAX_COUNT], 0));
        assert_eq!(saturate(&mut large), Ok(0));
    }

    #[test]
    fn all_profiles_of_a_file_are_added() {
        let two = |a, b| [file(a, 0), file(b, 1)].concat();
        let sum = sum(&two([1, 2], [3, 4]), &two([5, 6], [7, 8]), None);
        assert_eq!(sum, Ok(two([6, 8], [10, 12])));
    }

    #[test]
    fn earlier_counts_are_not_added_again() {
        let (first, second) = (file([5, 7], 0), file([6, 7], 0));
        assert_eq!(
            sum(&file([100, 100], 0), &second, Some(&first)),
            Ok(file([101, 100], 0))
        );
        // Reset since, and counted to 2.
        assert_eq!(
            sum(&file([100, 100], 0), &file([2, 0], 0), Some(&first)),
            Ok(file([102, 100], 0))
        );
    }

    #[test]
    fn a_lower_counter_is_found_and_a_reset_one_is_zero() {
        let (one, two) = (file([5, 7], 0), file([6, 6], 0));
        assert_eq!(has_decreased(&two, &one), Ok(true));
        assert_eq!(has_decreased(&one, &one), Ok(false));
        assert_eq!(has_decreased(&file([5, 8], 0), &one), Ok(false));
        let mut zero = one.clone();
        assert_eq!(reset(&mut zero), Ok(()));
        assert_eq!(zero, file([0, 0], 0));
    }

    #[test]
    fn byte_coverage_is_joined() {
        let bytes = |counts: [u8; 2]| {
            let header = Header {
                version: 10 | format::BYTE_COVERAGE,
                num_counters: 2,
                padding_after_counters: 6,
                ..Header::default()
            };
            let words = header.words().into_iter();
            let mut bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
            bytes.extend(counts);
            bytes.extend([0; 6]);
            bytes
        };
        let (one, other) = (bytes([0, 0xff]), bytes([0xff, 0xff]));
        assert_eq!(sum(&one, &other, None), Ok(one.clone()));
        assert_eq!(sum(&other, &one, None), Ok(one.clone()));
        assert_eq!(has_decreased(&other, &one), Ok(true));
        assert_eq!(has_decreased(&one, &other), Ok(false));
        let mut after_reset = one.clone();
        assert_eq!(reset(&mut after_reset), Ok(()));
        assert_eq!(after_reset, other);
    }

    #[test]
    fn bitmaps_are_joined() {
        let with = |count: u64, bitmap: [u8; 2]| {
            let header = Header {
                version: 10,
                num_counters: 1,
                num_bitmap_bytes: 2,
                padding_after_bitmaps: 6,
                ..Header::default()
            };
            let words = header.words().into_iter().chain([count]);
            let mut bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
            bytes.extend(bitmap);
            bytes.extend([0; 6]);
            bytes
        };
        let (one, other) = (with(1, [0b101, 0]), with(2, [0b110, 0x80]));
        let both = with(3, [0b111, 0x80]);
        assert_eq!(sum(&one, &other, None), Ok(both.clone()));
        // A part of `other` was added before.
        assert_eq!(
            sum(&one, &other, Some(&with(1, [0b10, 0]))),
            Ok(with(2, [0b111, 0x80]))
        );
        let counts = Counts::read(&one).unwrap();
        assert!(counts.sums_like_llvm());
        let mut exact = one.clone();
        assert_eq!(counts.add_exactly(&mut exact, &other), Ok(true));
        assert_eq!(exact, both);
        assert_eq!(has_decreased(&with(1, [1, 0]), &one), Ok(true));
        assert_eq!(has_decreased(&with(1, [0b111, 0]), &one), Ok(false));
        let mut after_reset = both;
        assert_eq!(reset(&mut after_reset), Ok(()));
        assert_eq!(after_reset, with(0, [0, 0]));
    }

    #[test]
    fn a_function_that_has_not_run_has_no_wave_size() {
        let with = |counts, size: u8| {
            let mut file = file(counts, 0);
            let data = Layout::read(&file).unwrap().data.start;
            file[data + 66] = size;
            file
        };
        let mut sum = with([0, 0], 0);
        assert_eq!(add(&mut sum, &with([1, 2], 32), None), Ok(0));
        assert_eq!(sum, with([1, 2], 32));
        assert_eq!(add(&mut sum, &with([0, 0], 0), None), Ok(0));
        assert_eq!(sum, with([1, 2], 32));
        assert_eq!(check_same(&sum, &with([1, 2], 64)), Err(Mismatch::Build));
    }

    #[test]
    fn files_of_another_build_and_damaged_files_are_refused() {
        let new = file([5, 7], 0);
        assert_eq!(sum(&file([1, 2], 9), &new, None), Err(Mismatch::Build));
        let is_raw = |old: &[u8], new| matches!(sum(old, new, None), Err(Mismatch::Raw(_)));
        assert!(is_raw(&new[..new.len() - 8], &new));
        let twice = [new.clone(), new.clone()].concat();
        assert_eq!(sum(&twice, &new, None), Err(Mismatch::Build));
        assert!(is_raw(b"", &new));
        assert!(is_raw(&[0; 400], &new));
        let mut huge = new.clone();
        huge[8 * 5..8 * 6].fill(0xff);
        assert!(is_raw(&huge, &new));
    }
}
