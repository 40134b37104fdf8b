//! What `devprof flags` reads in an indexed profile itself: clang ignores a profile of the wrong kind silently.

use anyhow::Context;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Set in the version of an indexed profile that was made with IR-level instrumentation (`VARIANT_MASK_IR_PROF` in
/// InstrProfData.inc).
const IR_LEVEL: u64 = 1 << 56;

/// Whether an indexed profile has counts of IR-level instrumentation. The version is the second word of the file, in
/// little endian (llvm/ProfileData/InstrProf.h, `IndexedInstrProf::Header`).
///
/// # Errors
/// The file cannot be read, or has less than 16 bytes.
pub fn is_ir_level(profile: &Path) -> anyhow::Result<bool> {
    let mut words = [0; 16];
    File::open(profile)
        .and_then(|mut file| file.read_exact(&mut words))
        .with_context(|| format!("cannot read the header of {}", profile.display()))?;
    let version = words.last_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    Ok(version.is_some_and(|version| version & IR_LEVEL != 0))
}
