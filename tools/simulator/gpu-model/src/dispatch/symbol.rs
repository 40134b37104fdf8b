//! Finds the name of a kernel in memory: a loaded code object starts with its ELF header and includes its dynamic symbols.

use crate::fault::Fault;
use crate::memory::{Storage, View};

const MAGIC: u32 = u32::from_le_bytes(*b"\x7fELF");
const PT_DYNAMIC: u32 = 2;
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const SYMBOL_SIZE: u64 = 24;
const MAX_NAME_LENGTH: u64 = 4096;

/// The name of the kernel whose descriptor is at `object`, or the address if there is no symbol.
pub fn kernel_name(object: u64, memory: &mut View) -> String {
    match find(object, memory) {
        Ok(Some(name)) => name,
        Ok(None) | Err(_) => format!("with its descriptor at {object:#x} (no symbol)"),
    }
}

/// Returns `None` if the code object has no symbol for the descriptor. Fails if its tables refer to memory that is not
/// allocated.
fn find(object: u64, memory: &mut View) -> Result<Option<String>, Fault> {
    let Some(allocation) = memory.memory().allocation(object) else {
        return Ok(None);
    };
    let mut base = object & !0xfff;
    while memory.load_u32(base)? != MAGIC {
        if base < allocation.start + 0x1000 {
            return Ok(None);
        }
        base -= 0x1000;
    }
    let headers = base.wrapping_add(memory.load_u64(base + 32)?);
    let size = u64::from(memory.load_u16(base + 54)?);
    let count = u64::from(memory.load_u16(base + 56)?);
    let mut dynamic = None;
    for header in (0..count).map(|n| headers.wrapping_add(n * size)) {
        if memory.load_u32(header)? == PT_DYNAMIC {
            let address = memory.load_u64(header + 16)?;
            let length = memory.load_u64(header + 40)?;
            dynamic = Some((base.wrapping_add(address), length));
        }
    }
    let Some((table, length)) = dynamic else {
        return Ok(None);
    };
    let (mut strings, mut symbols, mut hash) = (None, None, None);
    for entry in (0..length / 16).map(|n| table.wrapping_add(16 * n)) {
        // The loader may or may not have relocated the addresses in the table.
        let value = memory.load_u64(entry + 8)?;
        let address = if value >= base {
            value
        } else {
            base.wrapping_add(value)
        };
        match memory.load_u64(entry)? {
            DT_STRTAB => strings = Some(address),
            DT_SYMTAB => symbols = Some(address),
            DT_HASH => hash = Some(address),
            _ => {}
        }
    }
    let (Some(strings), Some(symbols), Some(hash)) = (strings, symbols, hash) else {
        return Ok(None);
    };
    // DT_HASH has as many chains as there are symbols.
    let count = u64::from(memory.load_u32(hash.wrapping_add(4))?);
    for symbol in (0..count).map(|n| symbols.wrapping_add(SYMBOL_SIZE * n)) {
        if base.wrapping_add(memory.load_u64(symbol + 8)?) != object {
            continue;
        }
        let start = strings.wrapping_add(u64::from(memory.load_u32(symbol)?));
        let mut name = Vec::new();
        for at in start..start.saturating_add(MAX_NAME_LENGTH) {
            match memory.load_u8(at)? {
                0 => break,
                byte => name.push(byte),
            }
        }
        let name = String::from_utf8_lossy(&name);
        return Ok(Some(name.strip_suffix(".kd").unwrap_or(&name).to_string()));
    }
    Ok(None)
}
