//! The variables of LLVM's instrumentation, as clang writes them for CUDA's device code (InstrProfData.inc).
//!
//! All variables of a function are weak: of an inline function that several files define, the linker keeps one. The hash is in
//! their names, so copies that were compiled to different blocks have flags of their own.

use crate::mapping::{Files, hash, uleb128};
use std::fmt::Write;

/// Front-end instrumentation of clang 23 (raw version 11) with byte coverage (`VARIANT_MASK_BYTE_COVERAGE`).
const VERSION: u64 = 11 | 1 << 60;
/// The version of the coverage mapping: `CovMapVersion::Version7`, whose number starts at 0.
const MAPPING_VERSION: u32 = 6;

/// What identifies a function in a profile.
pub struct Record {
    name_hash: u64,
    hash: u64,
    /// The number of flags.
    number: usize,
    /// The end of the names of its variables.
    suffix: String,
    /// The variable with the flags.
    pub flags: String,
}

impl Record {
    /// `mapping`: its coverage mapping, which distinguishes versions of the function.
    pub fn new(name: &str, number: usize, mapping: &[u8]) -> Record {
        let known = [
            &(number as u64).to_le_bytes(),
            name.as_bytes(),
            b"\0",
            mapping,
        ]
        .concat();
        let hash = hash(&known);
        let suffix = format!("{name}_{hash:016x}");
        Record {
            name_hash: crate::mapping::hash(name.as_bytes()),
            hash,
            number,
            flags: format!("__profc_{suffix}"),
            suffix,
        }
    }

    /// The flags, the record and the coverage record. Without a mapping, there is no coverage record.
    pub fn variables(&self, mapping: Option<&[u8]>, files: &Files) -> String {
        let Record {
            name_hash,
            hash: own_hash,
            number,
            suffix,
            flags,
        } = self;
        let mut text = bytes(".weak ", 1, flags, &vec![0xff; *number]);
        // Uniform counters, values and bitmaps: none.
        let _ = writeln!(
            text,
            ".weak .global .align 8 .u64 __profd_{suffix}[9] = {{{name_hash}, {own_hash}, generic({flags}), 0, 0, 0, 0, {number}, 0}};"
        );
        if let Some(mapping) = mapping {
            let mut record = name_hash.to_le_bytes().to_vec();
            record.extend((mapping.len() as u32).to_le_bytes());
            record.extend(own_hash.to_le_bytes());
            record.extend(hash(&files.encoded).to_le_bytes());
            record.extend(mapping);
            let name = format!("__covrec_{name_hash:X}_{own_hash:016x}");
            text += &bytes(".weak ", 8, &name, &record);
        }
        text
    }
}

/// The variables that a module has once. `__devprof_exact`: its code counts in every thread block.
pub fn of_module(names: &[&str], files: &Files) -> String {
    let mut text = format!(
        ".weak .global .align 8 .u64 __llvm_profile_raw_version = {VERSION};\n.weak .global .align 1 .u8 __devprof_exact;\n"
    );
    let size = files.encoded.len() as u32;
    let header = [0, size, 0, MAPPING_VERSION].map(u32::to_le_bytes);
    let mapping = [header.as_flattened(), &files.encoded].concat();
    text += &bytes("", 8, "__llvm_coverage_mapping", &mapping);
    let list = names.join("\x01");
    let mut encoded = Vec::new();
    uleb128(&mut encoded, list.len() as u64);
    uleb128(&mut encoded, 0);
    encoded.extend(list.as_bytes());
    text += &bytes("", 1, "__llvm_prf_nm", &encoded);
    text
}

/// A variable with this content.
fn bytes(linkage: &str, alignment: u32, name: &str, content: &[u8]) -> String {
    let numbers: Vec<String> = content.iter().map(u8::to_string).collect();
    format!(
        "{linkage}.global .align {alignment} .b8 {name}[{}] = {{{}}};\n",
        content.len(),
        numbers.join(", ")
    )
}
