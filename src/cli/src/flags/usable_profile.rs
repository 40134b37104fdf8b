//! Checks of an indexed profile that `devprof flags` makes itself: clang ignores a profile of the wrong kind silently.

use crate::clang::Clang;
use anyhow::{Context, bail};
use profraw::kind::Kind;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Set in the version of an indexed profile that was made with IR-level instrumentation (`VARIANT_MASK_IR_PROF` in
/// InstrProfData.inc).
const IR_LEVEL: u64 = 1 << 56;

/// Whether an indexed profile has counts of IR-level instrumentation.
///
/// # Errors
/// The file cannot be read, or has less than 16 bytes.
pub fn is_ir_level(profile: &Path) -> anyhow::Result<bool> {
    let mut head = [0; 16];
    File::open(profile)
        .and_then(|mut file| file.read_exact(&mut head))
        .with_context(|| format!("cannot read the header of {}", profile.display()))?;
    let kind = Kind::of(&head);
    Ok(matches!(kind, Some(Kind::Indexed { version: Some(version) }) if version & IR_LEVEL != 0))
}

/// The absolute path of a profile that this clang can use.
pub fn checked(clang: &Clang, profile: &Path) -> anyhow::Result<String> {
    let path = match profile.canonicalize() {
        Ok(path) => path.display().to_string(),
        Err(error) => bail!(
            "cannot read {}: {error}; create it from raw profiles with `devprof merge`",
            profile.display()
        ),
    };
    if let Some(error) = clang.profile_error(&path)? {
        bail!(
            "{clang} cannot use {path}: {error}; create it from raw profiles with `devprof merge`, using the llvm-profdata of the clang that compiled the program"
        );
    }
    Ok(path)
}
