//! The instrumentation of a cubin. A cubin has a symbol for the data of each function where other files have sections.

use crate::elf::{Elf, Symbol};
use crate::object::{COUNTING, Profile, ProfileSection, SAMPLING, Sampling, VERSION};
use profraw::format::{V10, V11, VARIANT_MASK, variants};

const RECORD: &str = "__profd_";
/// Variables of devprof's device runtime (src/device/device-rt/cuda.h): some code samples, or some code does not.
const SAMPLES: &str = "__devprof_sampling";
const EXACT: &str = "__devprof_exact";
/// A variable of devprof's PTX instrumenter (src/device/ptx).
const PTX: &str = "__devprof_ptx";

/// LLVM's names of the sections, and the prefix of the symbols that belong in each.
const SECTIONS: [(&str, &str); 4] = [
    ("__llvm_prf_cnts", "__profc_"),
    ("__llvm_prf_ucnts", "__llvm_prf_unifcnt_"),
    ("__llvm_prf_data", RECORD),
    ("__llvm_prf_names", super::coverage::NAMES),
];

/// `None` if it is not instrumented.
pub fn read(elf: &mut Elf) -> Option<Profile> {
    let starts = SECTIONS.map(|(_, prefix)| prefix);
    let mut symbols = elf.all_symbols(|name, _| {
        starts.iter().any(|start| name.starts_with(start))
            || [VERSION, SAMPLES, EXACT, PTX].contains(&name)
            || name.ends_with(SAMPLING)
            || name.ends_with(COUNTING)
    });
    let is_undefined = |function: &str| {
        let mut symbols = symbols.iter();
        symbols.any(|symbol| symbol.undefined && symbol.name == function)
    };
    let (samples, counts) = (is_undefined(SAMPLING), is_undefined(COUNTING));
    symbols.retain(|symbol| !symbol.undefined);
    let starting = |start: &'static str| {
        let symbols = symbols.iter();
        symbols.filter(move |symbol| symbol.name.starts_with(start))
    };
    let record = starting(RECORD).next()?.size;
    let sections = SECTIONS.iter().filter_map(|(name, start)| {
        let size = starting(start).map(|symbol| symbol.size);
        let size = size.fold(0, u64::saturating_add);
        let name = (*name).to_owned();
        (size > 0).then_some(ProfileSection { name, size })
    });
    let version = symbols.iter().find(|symbol| symbol.name == VERSION);
    let word = version.and_then(|symbol| {
        let bytes = elf.value(symbol, 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    });
    // ptxas removes the version if only the host's code refers to it.
    let by_record = || {
        let formats = [V10, V11].into_iter();
        let mut formats = formats.filter(|format| format.record as u64 == record);
        formats.next().map(|format| format.version)
    };
    // A copy in each kernel that calls it, as `$KERNEL$NAME`, unless it was inlined.
    let has = |function: &str| {
        let is_copy = |symbol: &Symbol| symbol.name.ends_with(function);
        symbols.iter().any(is_copy)
    };
    let samples = samples || has(SAMPLING) || has(SAMPLES);
    let is_exact = counts || has(COUNTING) || has(EXACT);
    let sampling = match (samples, is_exact) {
        (true, _) => Sampling::Yes,
        (false, true) => Sampling::No,
        (false, false) => Sampling::Unknown,
    };
    let mut variants = word.map(variants).unwrap_or_default();
    if symbols.iter().any(|symbol| symbol.name == PTX) {
        variants.push("instrumented PTX".to_owned());
    }
    Some(Profile {
        sections: sections.collect(),
        raw_version: word.map(|word| word & !VARIANT_MASK).or_else(by_record),
        variants,
        sampling,
        tables: Vec::new(),
    })
}
