//! Memory for what a device or a file holds, whose size is theirs to say: where there is none, that costs a profile and
//! not the program.

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no memory for {0} bytes of its profile")]
pub struct NoRoom(pub usize);

/// Sees to it that `vec` can take so many more elements.
pub fn reserve<T>(vec: &mut Vec<T>, more: usize) -> Result<(), NoRoom> {
    vec.try_reserve_exact(more)
        .map_err(|_| NoRoom(more.saturating_mul(size_of::<T>())))
}

pub fn copy_of(bytes: &[u8]) -> Result<Vec<u8>, NoRoom> {
    let mut copy = Vec::new();
    reserve(&mut copy, bytes.len())?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}
