//! The functions in raw profiles, with their counts.

use crate::names::by_hash;
use crate::paths;
use profraw::format::BYTE_COVERAGE;
use profraw::{Layout, Record, end, records};
use std::path::Path;

/// A function that a raw profile has counts of.
#[derive(Debug)]
pub struct Function {
    /// The mangled name, or the hash in hexadecimal of a name that the profile does not have.
    pub symbol: String,
    /// The record says only whether code ran (byte coverage).
    pub only_ran: bool,
    pub record: Record,
}

/// The functions of a file, which may have several raw profiles, in their order.
///
/// # Errors
/// The file cannot be read, or a profile or its names are damaged.
pub fn in_file(path: &Path) -> anyhow::Result<Vec<Function>> {
    let (mut file, size) = paths::open(path)?;
    let mut bytes = Vec::new();
    paths::read_profiles(&mut file, size, &mut bytes)?;
    let mut functions = Vec::new();
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let layout = Layout::read(rest)?;
        let names = by_hash(&rest[layout.names.clone()])?;
        let only_ran = layout.header.version & BYTE_COVERAGE != 0;
        functions.extend(records(rest, &layout)?.into_iter().map(|record| Function {
            symbol: match names.get(&record.name) {
                Some(name) => name.clone(),
                None => format!("{:#x}", record.name),
            },
            only_ran,
            record,
        }));
        rest = &rest[end(rest, &layout)?..];
    }
    Ok(functions)
}

/// The number of executions of the function, and those of each of its other blocks that have a counter.
pub fn entered_and_blocks(record: &Record) -> [String; 2] {
    let mut counters = record.counters.iter().map(u64::to_string);
    let entered = counters.next().unwrap_or_else(|| "0".to_owned());
    [entered, counters.collect::<Vec<_>>().join(" ")]
}
