//! The contents of a file as text.

use super::contents::{Contents, Part};
use crate::color::Paint;
use crate::functions::{Function, entered_and_blocks};
use crate::names::Naming;
use crate::readable::plural;
use crate::table::Table;
use code_objects::{CodeObject, Host, Kernel, Location, Method, Profile, Ptx, Sampling, What};
use std::collections::BTreeMap;

/// If a file has more code objects than this, they are not listed one by one.
const MAX_LISTED: usize = 16;

/// `lists_kernels`: whether to show the kernels of each code object.
pub fn text(contents: &Contents, lists_kernels: bool, naming: &Naming, colors: bool) -> String {
    let mut text = Paint::Heading.on(colors, &contents.file.display().to_string()) + "\n";
    let (mut archives, mut bundles, mut fat_binaries) = (0usize, 0usize, 0usize);
    let mut uncompiled: BTreeMap<String, usize> = BTreeMap::new();
    let mut objects: Vec<(&Location, &CodeObject)> = Vec::new();
    let outermost = |location: &Location| location.steps.is_empty();
    for Part { location, what, .. } in &contents.found {
        let line = match what {
            What::CodeObject(object) => {
                objects.push((location, object));
                continue;
            }
            What::Bitcode | What::SpirV => {
                let is_bitcode = *what == What::Bitcode;
                let mut target = if is_bitcode { "LLVM bitcode" } else { "SPIR-V" }.to_owned();
                if let Some(step) = location.steps.last() {
                    target += &format!(", {step}");
                }
                *uncompiled.entry(target).or_default() += 1;
                continue;
            }
            What::Host(host) if outermost(location) => host_line(host),
            // Not listed, because an archive can have very many members.
            What::Host(_) => continue,
            What::Archive { thin } => {
                archives += 1;
                if archives > 1 {
                    continue;
                }
                if *thin { "thin archive" } else { "archive" }.into()
            }
            What::Bundle(bundle) => {
                bundles += 1;
                match &bundle.packed {
                    Some(packed) if bundles <= MAX_LISTED => format!(
                        "{}: {} decompress to {} ({}, version {})",
                        path_within(location),
                        packed.packed.map_or("the rest".into(), size),
                        size(packed.unpacked),
                        packed.method.name(),
                        packed.version,
                    ),
                    _ => continue,
                }
            }
            What::OffloadBinary { .. } => {
                bundles += 1;
                continue;
            }
            What::FatBinary { .. } => {
                fat_binaries += 1;
                continue;
            }
            What::Ptx(ptx) => {
                *uncompiled.entry(ptx_line(ptx)).or_default() += 1;
                continue;
            }
            What::Kpack(kpack) => format!(
                "kpack archive of {}, for {}: {} code objects, {}",
                kpack.group,
                kpack.family,
                kpack.kernels,
                if kpack.packed {
                    Method::Zstd.name()
                } else {
                    "not compressed"
                },
            ),
            What::RawProfile(raw) => raw_line(raw),
            What::Profile(profile) => format!(
                "indexed profile, format version {}{}",
                profile.version,
                with(&profile.variants)
            ),
            What::Trace(trace) => {
                let records = match trace.records {
                    Some(records) => plural(records as usize, "record"),
                    None => "damaged count of records".into(),
                };
                let open = ", not closed: its program is running or was killed";
                let state = if trace.closed { "" } else { open };
                format!("trace of process {}, {records}{state}", trace.process)
            }
            What::Unknown { .. } | What::Damage { .. } => continue,
        };
        text += &format!("  {line}\n");
    }
    let several = [
        (bundles, "bundles of device code"),
        (fat_binaries, "fat binaries"),
    ];
    for (count, what) in several.into_iter().filter(|(count, _)| *count > 1) {
        text += &format!("  {count} {what}, one for each translation unit or device link\n");
    }
    for (target, count) in &uncompiled {
        text += &match count {
            1 => format!("  {target}\n"),
            _ => format!("  {target}, {count} times\n"),
        };
    }
    if !objects.is_empty() {
        text += &by_target(&objects, colors);
    }
    text += sampling(&objects);
    for functions in contents
        .found
        .iter()
        .filter_map(|part| part.functions.as_ref())
    {
        text += &functions_table(functions, naming, colors);
    }
    if lists_kernels {
        for (location, object) in &objects {
            text += &in_full(location, object, naming, colors);
        }
    } else if objects.len() > MAX_LISTED {
        text += &format!(
            "  {} code objects; --kernels shows each with its kernels\n",
            objects.len()
        );
    } else if !objects.is_empty() && contents.found.len() > 1 {
        for (location, object) in &objects {
            text += &format!("  {}\n", one_line(location, object));
        }
    }
    text
}

fn functions_table(functions: &[Function], naming: &Naming, colors: bool) -> String {
    let mut table = Table::new(&["Entered", "Blocks", "Function"], &[1, 2]).indented(2);
    for function in functions {
        let [entered, blocks] = entered_and_blocks(&function.record);
        table.row([entered, blocks, naming.shown(&function.symbol)]);
    }
    table.text(colors)
}

fn host_line(host: &Host) -> String {
    let mut line = format!("{} {}", host.machine, host.kind);
    if let Some(id) = &host.build_id {
        line += &format!(", build ID {id}");
    }
    if host.profile {
        line += ", its host code is instrumented";
        if host.coverage {
            line += ", with coverage mapping";
        }
    }
    if let Some(kpack) = &host.kpack {
        line += &format!(
            ", device code in kpack archives as {}: {}",
            kpack.binary,
            kpack.archives.join(", ")
        );
    } else if !host.device_code {
        line += ", no device code";
    }
    line
}

fn ptx_line(ptx: &Ptx) -> String {
    let mut line = match ptx.target.as_str() {
        "" => "PTX".to_owned(),
        target => format!("PTX for {target} and later"),
    };
    if !ptx.version.is_empty() {
        line += &format!(", version {}", ptx.version);
    }
    line
}

fn raw_line(raw: &code_objects::Raw) -> String {
    let mut line = format!(
        "raw profile, version {}, {}-bit {}-endian{}",
        raw.version,
        raw.bits,
        if raw.big_endian { "big" } else { "little" },
        with(&raw.variants),
    );
    if raw.profiles > 1 {
        line += &format!(", {} profiles", raw.profiles);
    }
    if let (Some(functions), Some(counters)) = (raw.functions, raw.counters) {
        let (functions, counters) = (functions as usize, counters as usize);
        line += &format!(
            ", {}, {}",
            plural(functions, "function"),
            plural(counters, "counter")
        );
    }
    if !raw.binary_ids.is_empty() {
        line += &format!(", binary ID {}", raw.binary_ids.join(", "));
    }
    line
}

fn with(variants: &[String]) -> String {
    let variants = variants.iter();
    variants.map(|variant| format!(", {variant}")).collect()
}

/// The location within its file.
fn path_within(location: &Location) -> String {
    let steps: Vec<String> = location.steps.iter().map(ToString::to_string).collect();
    if steps.is_empty() {
        return "at its start".into();
    }
    steps.join(", ")
}

/// A number of bytes, in the largest unit in which the number is at least 1.
fn size(bytes: u64) -> String {
    let units = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} B"),
    }
}

/// A table with one row per target.
fn by_target(objects: &[(&Location, &CodeObject)], colors: bool) -> String {
    let mut rows: BTreeMap<String, Vec<&CodeObject>> = BTreeMap::new();
    for (_, object) in objects {
        let row = rows.entry(object.target.to_string());
        row.or_default().push(object);
    }
    let headings = [
        "Target", "Objects", "Size", "Kernels", "Counters", "Coverage",
    ];
    let mut table = Table::new(&headings, &[0, 4, 5]).indented(2);
    for (target, objects) in &rows {
        let profiles: Vec<&Profile> = objects.iter().filter_map(|o| o.profile.as_ref()).collect();
        let covered = objects.iter().filter(|o| o.coverage.is_some()).count();
        let kernels: usize = objects.iter().map(|o| o.kernels.len()).sum();
        let cell = |n: usize, all: &str| match n {
            0 => "no".to_owned(),
            n if n == objects.len() => all.to_owned(),
            n => format!("{all}, in {n}"),
        };
        let mut kinds: Vec<String> = profiles.iter().map(|profile| counters(profile)).collect();
        kinds.sort();
        kinds.dedup();
        table.row([
            target.clone(),
            objects.len().to_string(),
            size(objects.iter().map(|o| o.size).sum()),
            kernels.to_string(),
            cell(profiles.len(), &kinds.join("; ")),
            cell(covered, "yes"),
        ]);
    }
    table.text(colors)
}

/// The instrumentation of a code object.
fn counters(profile: &Profile) -> String {
    let mut text = match profile.raw_version {
        Some(version) => format!("raw version {version}"),
        None => "raw version unknown".into(),
    };
    text += &with(&profile.variants);
    text += match profile.sampling {
        Sampling::No => "",
        Sampling::Yes => ", sampled",
        Sampling::Unknown => ", possibly sampled",
    };
    text
}

/// An explanation of sampling, if there are sampled code objects.
fn sampling(objects: &[(&Location, &CodeObject)]) -> &'static str {
    let any = |sampling| {
        let mut profiles = objects
            .iter()
            .filter_map(|(_, object)| object.profile.as_ref());
        profiles.any(|profile| profile.sampling == sampling)
    };
    let is_cuda = objects.iter().all(|(_, object)| object.is_cuda());
    if any(Sampling::Yes) && is_cuda {
        "  sampled: only one block in eight is counted (or as set by --offload-pgo-sampling): fine for PGO, wrong for coverage.\n  \
         To count every block, compile without -DDEVPROF_SAMPLING\n"
    } else if any(Sampling::Yes) {
        "  sampled: only one block in eight is counted (or as set by --offload-pgo-sampling): fine for PGO, wrong for coverage.\n  \
         To count every block, compile with -Xarch_device -mllvm=--offload-pgo-sampling=0\n"
    } else if any(Sampling::Unknown) {
        "  possibly sampled: the code object does not have this information. clang 23 counts only one block in eight\n  \
         unless the code is compiled with -Xarch_device -mllvm=--offload-pgo-sampling=0\n"
    } else {
        ""
    }
}

fn one_line(location: &Location, object: &CodeObject) -> String {
    let mut line = format!(
        "{}: {}, {}, {} at {:#x}",
        object.target,
        size(object.size),
        plural(object.kernels.len(), "kernel"),
        path_within(location),
        location.offset,
    );
    if let Some(id) = &object.build_id {
        line += &format!(", build ID {id}");
    }
    line
}

/// All details of a code object.
fn in_full(location: &Location, object: &CodeObject, naming: &Naming, colors: bool) -> String {
    let heading = format!("{} at {:#x}", path_within(location), location.offset);
    let mut text = format!("\n  {}\n", Paint::Heading.on(colors, &heading));
    let mut facts = vec![
        format!("{}--{}", object.triple, object.target),
        format!(
            "{} version {}",
            if object.is_cuda() {
                "ABI"
            } else {
                "code object"
            },
            object.version
        ),
        size(object.size),
    ];
    if object.target.generic_version > 0 {
        facts.push(format!("generic version {}", object.target.generic_version));
    }
    if object.relocatable {
        facts.push("not linked".into());
    }
    facts.extend(object.build_id.iter().map(|id| format!("build ID {id}")));
    text += &format!("  {}\n", facts.join(", "));
    if let Some(profile) = &object.profile {
        text += &format!("  counters: {}\n", counters(profile));
        let sections = profile.sections.iter();
        let sections: Vec<String> = sections
            .map(|section| format!("{} {}", section.name, size(section.size)))
            .collect();
        text += &format!("  {}\n", sections.join(", "));
    }
    if let Some(coverage) = &object.coverage {
        let (functions, files) = (size(coverage.functions), size(coverage.files));
        text += &format!("  coverage mapping: functions {functions}, files {files}\n");
    }
    if object.kernels.is_empty() {
        return text + "  no kernels\n";
    }
    let columns: &[Column] = if object.is_cuda() { &CUDA } else { &AMD };
    let headings = columns.iter().map(|(heading, _)| *heading);
    let headings: Vec<&str> = headings.chain(["Kernel"]).collect();
    let left = [columns.len()];
    let mut table = Table::new(&headings, &left).indented(2);
    for kernel in &object.kernels {
        let cells = columns.iter().map(|(_, cell)| cell(kernel));
        table.row(cells.chain([naming.shown(&kernel.name)]));
    }
    text + &table.text(colors)
}

/// A resource that kernels need: the heading, and the cell of a kernel.
type Column = (&'static str, fn(&Kernel) -> String);

const CUDA: [Column; 4] = [
    ("Registers", |kernel| kernel.vgprs.to_string()),
    ("Shared", |kernel| kernel.lds.to_string()),
    ("Stack", |kernel| kernel.scratch.to_string()),
    ("Block", |kernel| kernel.workgroup.to_string()),
];

const AMD: [Column; 8] = [
    ("VGPRs", |kernel| kernel.vgprs.to_string()),
    ("AGPRs", |kernel| kernel.agprs.to_string()),
    ("SGPRs", |kernel| kernel.sgprs.to_string()),
    ("Spills", |kernel| {
        (u64::from(kernel.vgpr_spills) + u64::from(kernel.sgpr_spills)).to_string()
    }),
    ("LDS", |kernel| kernel.lds.to_string()),
    ("Scratch", |kernel| {
        let dynamic = if kernel.dynamic_stack { "+" } else { "" };
        format!("{}{dynamic}", kernel.scratch)
    }),
    ("Group", |kernel| kernel.workgroup.to_string()),
    ("Wave", |kernel| kernel.wave.to_string()),
];
