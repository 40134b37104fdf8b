//! Fallible allocation, for sizes that a device or a file determines. If it fails, a profile is lost, but the program
//! continues.

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot allocate {0} bytes for its profile")]
pub struct OutOfMemory(pub usize);

/// Allocates memory for `more` elements.
pub fn reserve<T>(vec: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    vec.try_reserve_exact(more)
        .map_err(|_| OutOfMemory(more.saturating_mul(size_of::<T>())))
}

/// `count` elements that are all 0, or the default of their type.
pub fn zeroed<T: Clone + Default>(count: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut zeros = Vec::new();
    reserve(&mut zeros, count)?;
    zeros.resize(count, T::default());
    Ok(zeros)
}

pub fn copy_of(bytes: &[u8]) -> Result<Vec<u8>, OutOfMemory> {
    let mut copy = Vec::new();
    reserve(&mut copy, bytes.len())?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}
