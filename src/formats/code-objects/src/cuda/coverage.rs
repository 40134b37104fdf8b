//! The coverage mapping of a cubin: a symbol for each function and each translation unit, where other files have sections.

use crate::bytes::Bytes;
use crate::elf::{Elf, Symbol};
use crate::error::Error;
use crate::object::Coverage;

/// The names of the functions of a translation unit.
pub const NAMES: &str = "__llvm_prf_nm";
/// The files of a translation unit.
const FILES: &str = "__llvm_coverage_mapping";
/// The record of a function.
const FUNCTION: &str = "__covrec_";

/// llvm-cov reads the parts of a section at multiples of this.
const ALIGNMENT: usize = 8;
/// Limit on the total size in bytes.
const MAX_SIZE: u64 = 1 << 30;

/// The contents of the sections in which llvm-cov expects a coverage mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sections {
    /// `__llvm_covmap`.
    pub files: Vec<u8>,
    /// `__llvm_covfun`.
    pub functions: Vec<u8>,
    /// `__llvm_prf_names`.
    pub names: Vec<u8>,
}

/// The size of the mapping. `None` if there is none.
pub fn sizes(elf: &mut Elf) -> Option<Coverage> {
    let mut coverage = Coverage {
        functions: 0,
        files: 0,
    };
    for symbol in symbols(elf) {
        match symbol.name.as_str() {
            name if is(name, FILES) => coverage.files += symbol.size.min(MAX_SIZE),
            name if name.starts_with(FUNCTION) => coverage.functions += symbol.size.min(MAX_SIZE),
            _ => {}
        }
    }
    (coverage.functions > 0 && coverage.files > 0).then_some(coverage)
}

/// Reads the mapping of a linked cubin.
///
/// # Errors
/// A part of it is not in the file.
pub fn read(cubin: &Bytes) -> Result<Sections, Error> {
    let mut elf = Elf::read(cubin)?;
    let mut sections = Sections::default();
    let known = elf.problems.len();
    let symbols = symbols(&mut elf);
    if let Some(problem) = elf.problems.get(known) {
        return Err(problem.clone());
    }
    let total = symbols.iter().map(|symbol| symbol.size);
    let total = total.fold(0, u64::saturating_add);
    // Symbols can share their bytes, so the size of the file does not limit them.
    if total > MAX_SIZE.min(cubin.size()) {
        let what = format!(
            "the symbols of the coverage mapping claim {total} bytes, but the cubin has {}",
            cubin.size()
        );
        return Err(Error::new(0, what));
    }
    for symbol in symbols {
        let to = match symbol.name.as_str() {
            name if is(name, FILES) => &mut sections.files,
            name if is(name, NAMES) => &mut sections.names,
            _ => &mut sections.functions,
        };
        let value = elf.value(&symbol, symbol.size).ok_or_else(
            || error!(symbol.value; "{} ({} bytes) is not in the cubin", symbol.name, symbol.size),
        )?;
        to.extend(value);
        if !is(&symbol.name, NAMES) {
            to.resize(to.len().next_multiple_of(ALIGNMENT), 0);
        }
    }
    Ok(sections)
}

/// The symbols of a mapping. Local ones of several translation units can have the same name.
fn symbols(elf: &mut Elf) -> Vec<Symbol> {
    let mut symbols = elf.all_symbols(|name, symbol| {
        let is_part = is(name, FILES) || is(name, NAMES) || name.starts_with(FUNCTION);
        is_part && symbol.st_size > 0
    });
    symbols.retain(|symbol| !symbol.undefined);
    symbols
}

/// Whether a symbol has this name, or this name with a number that makes it unique.
fn is(symbol: &str, name: &str) -> bool {
    symbol.strip_prefix(name).is_some_and(|rest| {
        let is_number = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'_' | b'$' | b'.');
        rest.bytes().all(is_number)
    })
}
