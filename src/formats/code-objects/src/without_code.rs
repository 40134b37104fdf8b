//! Reads a code object from a stream and keeps everything except its machine code. That is most of the file, and only
//! [`crate::returns`] needs it.

use crate::bytes::{Bytes, Keeper, read_some};
use crate::elf::Elf;
use goblin::elf::program_header::{PF_X, PT_LOAD};
use std::io::{self, Read};
use std::ops::Range;

/// Bytes to read before the code is searched for. In every linked code object, the program headers follow the ELF
/// header.
const START: usize = 4096;

/// Reads a code object from `stream`. `head` was read from it already. `keep`: its code is kept after all.
pub fn read(stream: &mut dyn Read, head: Vec<u8>, keep: bool) -> io::Result<Bytes> {
    let mut keeper = Keeper::new();
    let mut buffer = vec![0; 1 << 18];
    let mut start = head;
    while start.len() < START {
        let most = buffer.len().min(START - start.len());
        let n = read_some(stream, &mut buffer[..most])?;
        if n == 0 {
            break;
        }
        start.extend_from_slice(&buffer[..n]);
    }
    let code = if keep { Vec::new() } else { code(&start) };
    keep_except(&mut keeper, &code, 0, &start)?;
    let mut at = start.len() as u64;
    loop {
        let n = read_some(stream, &mut buffer)?;
        if n == 0 {
            break;
        }
        keep_except(&mut keeper, &code, at, &buffer[..n])?;
        at += n as u64;
    }
    Ok(keeper.finish(at))
}

/// Keeps the parts of `bytes` that are outside of all `ranges`. `at`: the offset of `bytes` in the stream.
fn keep_except(
    keeper: &mut Keeper,
    ranges: &[Range<u64>],
    mut at: u64,
    mut bytes: &[u8],
) -> io::Result<()> {
    while !bytes.is_empty() {
        let inside = ranges.iter().find(|range| range.contains(&at));
        let next = match inside {
            Some(range) => range.end,
            None => {
                let starts = ranges.iter().map(|range| range.start);
                starts.filter(|start| *start > at).min().unwrap_or(u64::MAX)
            }
        };
        let n = (next - at).min(bytes.len() as u64) as usize;
        if inside.is_none() {
            keeper.keep(at, &bytes[..n])?;
        }
        bytes = &bytes[n..];
        at += n as u64;
    }
    Ok(())
}

/// The segments of code that follow `start`, the first bytes of a code object.
fn code(start: &[u8]) -> Vec<Range<u64>> {
    let Ok(elf) = Elf::read(&Bytes::of_memory(start.to_vec())) else {
        return Vec::new();
    };
    let segments = elf.segments.iter();
    segments
        .filter(|segment| segment.p_type == PT_LOAD && segment.p_flags & PF_X != 0)
        .map(|segment| segment.p_offset..segment.p_offset.saturating_add(segment.p_filesz))
        .filter(|range| range.start >= start.len() as u64 && !range.is_empty())
        .collect()
}
