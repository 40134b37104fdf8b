//! A cubin: an ELF file for NVIDIA's GPUs.

use super::attributes::{self, Attribute, Value};
use super::{coverage, profile, target};
use crate::budget::Limit;
use crate::bytes::Bytes;
use crate::elf::{Elf, Symbol};
use crate::error::Error;
use crate::metadata::Kernel;
use crate::object::{CUDA_TRIPLE, CodeObject};
use fatbin::CubinId;
use goblin::elf::header::ET_REL;
use goblin::elf::sym::STT_FUNC;
use std::collections::HashMap;

/// `STO_CUDA_ENTRY`: in `st_other` of a kernel's symbol.
const ENTRY: u8 = 0x10;
/// Kernels that LLVM adds for global constructors and destructors (llvm/lib/Target/NVPTX/NVPTXCtorDtorLowering.cpp). The
/// source does not have them, and CUDA launches neither.
const ADDED_BY_LLVM: [&str; 2] = ["nvptx$device$init", "nvptx$device$fini"];
/// Limit on the size of a section of attributes in bytes.
const MAX_ATTRIBUTES: u64 = 64 << 20;
/// Threads per block, unless the kernel limits them.
const MAX_THREADS: u32 = 1024;
const WARP: u32 = 32;

/// Reads a cubin. Also returns what could not be read.
pub fn read(mut elf: Elf) -> (CodeObject, Vec<Error>) {
    let compat = elf.section(".nv.compat").and_then(|s| s.range());
    let compat = compat.and_then(|(at, size)| elf.bytes.read(at, size.min(MAX_ATTRIBUTES)).ok());
    let is_specific = attributes::is_architecture_specific(&compat.unwrap_or_default());
    let profile = profile::read(&mut elf);
    let object = CodeObject {
        triple: CUDA_TRIPLE.to_owned(),
        target: target::of_flags(elf.header.e_flags, elf.abi_version(), is_specific),
        version: elf.abi_version(),
        relocatable: elf.header.e_type == ET_REL,
        size: elf.bytes.size(),
        build_id: profile.as_ref().and_then(|_| build_id(&elf.bytes).ok()),
        kernels: kernels(&mut elf),
        profile,
        coverage: coverage::sizes(&mut elf),
    };
    (object, elf.problems)
}

/// The build ID of a cubin in hexadecimal, as the runtime computes it. Reads the cubin to its end.
///
/// # Errors
/// Its code was not kept: it is compressed.
pub fn build_id(cubin: &Bytes) -> Result<String, Error> {
    const CHUNK: u64 = 1 << 20;
    let mut id = CubinId::new();
    for at in (0..cubin.size()).step_by(CHUNK as usize) {
        id.update(&cubin.read(at, CHUNK.min(cubin.size() - at))?);
    }
    Ok(profraw::hex(&id.finish()))
}

fn kernels(elf: &mut Elf) -> Vec<Kernel> {
    let mut symbols =
        elf.all_symbols(|_, symbol| symbol.st_type() == STT_FUNC && symbol.st_other & ENTRY != 0);
    symbols.retain(|symbol| !symbol.undefined && !ADDED_BY_LLVM.contains(&symbol.name.as_str()));
    // Each kernel has a section of its own, but several can claim the same one.
    let limit = Limit::of_size(elf.bytes.size(), "MiB of attributes of kernels");
    let mut problem = None;
    let common = section(elf, ".nv.info");
    let (mut registers, mut frames) = (HashMap::new(), HashMap::new());
    // With the functions that a kernel calls; only in a linked cubin.
    let mut stacks = HashMap::new();
    for attribute in attributes::all(&common) {
        let table = match attribute.number {
            attributes::REGCOUNT => &mut registers,
            attributes::FRAME_SIZE => &mut frames,
            attributes::MIN_STACK_SIZE => &mut stacks,
            _ => continue,
        };
        table.extend(attribute.of_symbol());
    }
    frames.extend(stacks);
    // The sections of a kernel link to the section with its code.
    let own = |prefix: &str| -> HashMap<usize, usize> {
        let sections = elf.sections.iter().enumerate();
        sections
            .filter(|(_, section)| section.name.starts_with(prefix))
            .map(|(n, section)| (section.header.sh_info as usize, n))
            .collect()
    };
    let (info, shared) = (own(".nv.info."), own(".nv.shared."));
    let mut kernel = |symbol: Symbol| {
        let of = |table: &HashMap<usize, u32>| table.get(&symbol.index).copied().unwrap_or(0);
        let info = info.get(&symbol.section).map(|n| &elf.sections[*n]);
        let info = info.and_then(|section| {
            let allowed = limit.take(section.header.sh_size);
            let allowed = allowed.map_err(|why| problem = Some(why));
            allowed.ok().map(|()| contents(elf, section.range()))
        });
        let shared = shared.get(&symbol.section).map(|n| &elf.sections[*n]);
        let mut kernel = Kernel {
            vgprs: of(&registers),
            scratch: of(&frames),
            lds: shared.map_or(0, |section| clamped(section.header.sh_size)),
            workgroup: MAX_THREADS,
            wave: WARP,
            name: symbol.name,
            ..Kernel::default()
        };
        for attribute in attributes::all(&info.unwrap_or_default()) {
            add(&mut kernel, attribute);
        }
        kernel
    };
    let kernels = symbols.into_iter().map(&mut kernel).collect();
    let problem = problem.map(|why| error!(0; "a cubin has {why}: the rest is not read"));
    elf.problems.extend(problem);
    kernels
}

/// Adds an attribute of the kernel.
fn add(kernel: &mut Kernel, attribute: Attribute) {
    match (attribute.number, attribute.value) {
        (attributes::CBANK_PARAM_SIZE, Value::Number(size)) => kernel.arguments = size.into(),
        // The dimensions of the largest block, or of the only one.
        (attributes::MAX_THREADS | attributes::REQNTID, Value::Bytes(_)) => {
            let threads = attribute.words().fold(1, u32::saturating_mul);
            kernel.workgroup = threads.min(MAX_THREADS);
        }
        _ => {}
    }
}

fn section(elf: &Elf, name: &str) -> Vec<u8> {
    contents(elf, elf.section(name).and_then(|section| section.range()))
}

/// The bytes in a range of the file. Empty if it is out of bounds, which was reported.
fn contents(elf: &Elf, range: Option<(u64, u64)>) -> Vec<u8> {
    let read = |(at, size): (u64, u64)| elf.bytes.read(at, size.min(MAX_ATTRIBUTES)).ok();
    range.and_then(read).unwrap_or_default()
}

fn clamped(size: u64) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}
