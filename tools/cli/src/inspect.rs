//! `devprof inspect`: what is in a file, as far as GPUs are concerned.

use crate::names::Naming;
use crate::readable::plural;
use crate::{Console, Ink, PARTLY};
use clap::Args;
use code_objects::{
    CodeObject, Found, Host, Kernel, Method, Options as WalkOptions, Place, Profile, Sampling, What,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Options {
    /// Executables, libraries, objects, archives, code objects, profiles, traces
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// One JSON array with an object for each file
    #[arg(long)]
    json: bool,
    /// Each code object with its kernels: registers, spills, LDS and scratch
    #[arg(long)]
    kernels: bool,
    #[command(flatten)]
    naming: Naming,
}

/// Code objects are shown one by one up to this many in a file.
const FEW: usize = 16;

/// What is in one file.
struct Contents {
    file: PathBuf,
    found: Vec<(Place, What)>,
    damage: usize,
}

pub fn run(options: &Options, console: &mut Console) -> Result<u8, String> {
    let (mut whole, mut nothing) = (0, 0);
    let mut array = Vec::new();
    for (n, file) in options.files.iter().enumerate() {
        let contents = read(file, console);
        if contents.found.is_empty() {
            nothing += 1;
        } else if contents.damage == 0 {
            whole += 1;
        }
        if options.json {
            array.push(contents.json(&options.naming));
            continue;
        }
        if contents.found.is_empty() {
            continue;
        }
        let text = contents.text(options, console.colors.out);
        console.print(&format!("{}{text}", if n > 0 { "\n" } else { "" }))?;
    }
    if options.json {
        let text = serde_json::to_string_pretty(&array).map_err(|e| e.to_string())?;
        console.print(&(text + "\n"))?;
    }
    Ok(match options.files.len() {
        files if whole == files => 0,
        files if nothing == files => 1,
        _ => PARTLY,
    })
}

fn read(file: &Path, console: &mut Console) -> Contents {
    let mut contents = Contents {
        file: file.into(),
        found: Vec::new(),
        damage: 0,
    };
    code_objects::walk(file, WalkOptions::default(), &mut |found: Found| {
        let Found { place, what, .. } = found;
        match what {
            What::Damage { why } => {
                contents.damage += 1;
                (console.say)(&format!("devprof: {place}: {why}"));
            }
            What::Unknown { first } => {
                contents.damage += 1;
                let kinds = "an ELF file, an archive, an offload bundle, a kpack archive, a profile or a trace";
                let begins = bytes(&first);
                (console.say)(&format!(
                    "devprof: {place}: not {kinds}: it begins with {begins}"
                ));
            }
            what => contents.found.push((place, what)),
        }
        ControlFlow::Continue(())
    });
    contents
}

/// The first bytes of something unknown, as numbers and as text.
fn bytes(first: &[u8]) -> String {
    if first.is_empty() {
        return "nothing, as it is empty".into();
    }
    let hex: Vec<String> = first.iter().map(|byte| format!("{byte:02x}")).collect();
    let text: String = first
        .iter()
        .map(|&byte| match byte {
            b' '..=b'~' => char::from(byte),
            _ => '.',
        })
        .collect();
    format!("{} \"{text}\"", hex.join(" "))
}

impl Contents {
    fn json(&self, naming: &Naming) -> Value {
        let found: Vec<Value> = self
            .found
            .iter()
            .map(|(place, what)| {
                let mut value = json!(what);
                value["place"] = json!(place);
                if let What::CodeObject(object) = what {
                    value["target_id"] = json!(object.target.to_string());
                    let kernels = object.kernels.iter().map(|kernel| {
                        let mut value = json!(kernel);
                        value["demangled"] = json!(naming.shown(&kernel.name));
                        value
                    });
                    value["kernels"] = kernels.collect();
                }
                value
            })
            .collect();
        json!({ "file": self.file, "whole": self.damage == 0, "found": found })
    }

    fn text(&self, options: &Options, colors: bool) -> String {
        let mut text = Ink::Heading.on(colors, &self.file.display().to_string()) + "\n";
        let (mut archives, mut bundles) = (0usize, 0usize);
        let mut bitcode: BTreeMap<String, usize> = BTreeMap::new();
        let mut objects: Vec<(&Place, &CodeObject)> = Vec::new();
        let outermost = |place: &Place| place.steps.is_empty();
        for (place, what) in &self.found {
            let line = match what {
                What::CodeObject(object) => {
                    objects.push((place, object));
                    continue;
                }
                What::Bitcode | What::SpirV => {
                    let kind = if *what == What::Bitcode {
                        "LLVM bitcode"
                    } else {
                        "SPIR-V"
                    };
                    let target = match place.steps.last() {
                        Some(step) => format!("{kind}, {step}"),
                        None => kind.to_owned(),
                    };
                    *bitcode.entry(target).or_default() += 1;
                    continue;
                }
                What::Host(host) if outermost(place) => host_line(host),
                // An archive's members are too many to name.
                What::Host(_) => continue,
                What::Archive { thin } => {
                    archives += 1;
                    match thin {
                        true if archives == 1 => "thin archive".into(),
                        false if archives == 1 => "archive".into(),
                        _ => continue,
                    }
                }
                What::Bundle(bundle) => {
                    bundles += 1;
                    match &bundle.packed {
                        Some(packed) if bundles <= FEW => format!(
                            "{}: {} unpack to {} ({}, version {})",
                            place_in(place),
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
                What::Trace(trace) => format!(
                    "trace of process {}, {}{}",
                    trace.process,
                    match trace.records {
                        Some(records) => plural(records as usize, "record"),
                        None => "a number of records that is damaged".into(),
                    },
                    if trace.closed {
                        ""
                    } else {
                        ", not closed: its program runs or was killed"
                    },
                ),
                What::Unknown { .. } | What::Damage { .. } => continue,
            };
            text += &format!("  {line}\n");
        }
        if bundles > 1 {
            text += &format!(
                "  {bundles} bundles of device code, one for each translation unit or device link\n"
            );
        }
        for (target, count) in &bitcode {
            text += &format!("  {target}");
            text += &if *count > 1 {
                format!(", {count} times\n")
            } else {
                "\n".into()
            };
        }
        if !objects.is_empty() {
            text += &by_target(&objects, colors);
        }
        text += sampling(&objects);
        if options.kernels {
            for (place, object) in &objects {
                text += &in_full(place, object, &options.naming, colors);
            }
        } else if objects.len() > FEW {
            text += &format!(
                "  {} code objects; --kernels shows each with its kernels\n",
                objects.len()
            );
        } else if !objects.is_empty() && self.is_container() {
            for (place, object) in &objects {
                text += &format!("  {}\n", one_line(place, object));
            }
        }
        text
    }

    /// Whether code objects are inside of something.
    fn is_container(&self) -> bool {
        self.found.len() > 1
    }
}

fn host_line(host: &Host) -> String {
    let mut line = format!("{} {}", host.machine, host.kind);
    if let Some(id) = &host.build_id {
        line += &format!(", build ID {id}");
    }
    if host.profile {
        line += match host.coverage {
            true => ", its host code is instrumented, with coverage mapping",
            false => ", its host code is instrumented",
        };
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
    variants
        .iter()
        .map(|variant| format!(", {variant}"))
        .collect()
}

/// The way to a place, without its file.
fn place_in(place: &Place) -> String {
    let steps: Vec<String> = place.steps.iter().map(ToString::to_string).collect();
    match steps.is_empty() {
        true => "at its beginning".into(),
        false => steps.join(", "),
    }
}

/// Bytes in the unit that leaves few digits.
fn size(bytes: u64) -> String {
    let units = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} B"),
    }
}

/// A table with a row for each target.
fn by_target(objects: &[(&Place, &CodeObject)], colors: bool) -> String {
    let mut rows: BTreeMap<String, Vec<&CodeObject>> = BTreeMap::new();
    for (_, object) in objects {
        rows.entry(object.target.to_string())
            .or_default()
            .push(object);
    }
    let heads = [
        "Target", "Objects", "Size", "Kernels", "Counters", "Coverage",
    ];
    let mut table = Table::new(&heads, &[0, 4, 5]);
    for (target, objects) in &rows {
        let profiles: Vec<&Profile> = objects.iter().filter_map(|o| o.profile.as_ref()).collect();
        let covered = objects.iter().filter(|o| o.coverage.is_some()).count();
        let some = |n: usize, all: &str| match n {
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
            objects
                .iter()
                .map(|o| o.kernels.len())
                .sum::<usize>()
                .to_string(),
            some(profiles.len(), &kinds.join("; ")),
            some(covered, "yes"),
        ]);
    }
    table.text(colors)
}

/// What a code object counts, in a few words.
fn counters(profile: &Profile) -> String {
    let mut text = match profile.raw_version {
        Some(version) => format!("raw version {version}"),
        None => "raw version unknown".into(),
    };
    text += &with(&profile.variants);
    text += match profile.sampling {
        Sampling::No => "",
        Sampling::Yes => ", sampled",
        Sampling::Unknown => ", perhaps sampled",
    };
    text
}

/// What sampling means, where there is some.
fn sampling(objects: &[(&Place, &CodeObject)]) -> &'static str {
    let profiles = || {
        objects
            .iter()
            .filter_map(|(_, object)| object.profile.as_ref())
    };
    let some = |sampling| profiles().any(|profile| profile.sampling == sampling);
    if some(Sampling::Yes) {
        "  sampled: only one block in eight counts (or as --offload-pgo-sampling said): good for PGO, wrong for coverage.\n  \
         -Xarch_device -mllvm=--offload-pgo-sampling=0 counts in every block\n"
    } else if some(Sampling::Unknown) {
        "  perhaps sampled: clang 23 counts in one block of eight unless it is compiled with\n  \
         -Xarch_device -mllvm=--offload-pgo-sampling=0; the code object does not tell\n"
    } else {
        ""
    }
}

fn one_line(place: &Place, object: &CodeObject) -> String {
    let mut line = format!(
        "{}: {}, {}, {} at {:#x}",
        object.target,
        size(object.size),
        plural(object.kernels.len(), "kernel"),
        place_in(place),
        place.offset,
    );
    if let Some(id) = &object.build_id {
        line += &format!(", build ID {id}");
    }
    line
}

/// A code object with all that is known of it.
fn in_full(place: &Place, object: &CodeObject, naming: &Naming, colors: bool) -> String {
    let heading = format!("{} at {:#x}", place_in(place), place.offset);
    let mut text = format!("\n  {}\n", Ink::Heading.on(colors, &heading));
    let mut facts = vec![
        format!("{}--{}", object.triple, object.target),
        format!("code object version {}", object.version),
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
    let heads = [
        "VGPRs", "AGPRs", "SGPRs", "Spills", "LDS", "Scratch", "Group", "Wave", "Kernel",
    ];
    let mut table = Table::new(&heads, &[8]);
    for kernel in &object.kernels {
        table.row(kernel_row(kernel, naming));
    }
    text + &table.text(colors)
}

fn kernel_row(kernel: &Kernel, naming: &Naming) -> [String; 9] {
    let spills = u64::from(kernel.vgpr_spills) + u64::from(kernel.sgpr_spills);
    let scratch = match kernel.dynamic_stack {
        true => format!("{}+", kernel.scratch),
        false => kernel.scratch.to_string(),
    };
    [
        kernel.vgprs.to_string(),
        kernel.agprs.to_string(),
        kernel.sgprs.to_string(),
        spills.to_string(),
        kernel.lds.to_string(),
        scratch,
        kernel.workgroup.to_string(),
        kernel.wave.to_string(),
        naming.shown(&kernel.name),
    ]
}

/// Columns of text; numbers stand on the right.
struct Table<'a> {
    left: &'a [usize],
    rows: Vec<Vec<String>>,
}

impl<'a> Table<'a> {
    /// `left`: the columns that stand on the left.
    fn new(heads: &[&str], left: &'a [usize]) -> Table<'a> {
        Table {
            left,
            rows: vec![heads.iter().map(|&head| head.to_owned()).collect()],
        }
    }

    fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    fn text(&self, colors: bool) -> String {
        let columns = self.rows[0].len();
        let width = |n: usize| self.rows.iter().map(|row| row[n].chars().count()).max();
        let widths: Vec<usize> = (0..columns).map(|n| width(n).unwrap_or(0)).collect();
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            let mut line = String::from(" ");
            for (n, cell) in row.iter().enumerate() {
                let space = " ".repeat(widths[n] - cell.chars().count());
                line += &match self.left.contains(&n) {
                    true => format!(" {cell}{space} "),
                    false => format!(" {space}{cell} "),
                };
            }
            let line = line.trim_end();
            text += &match number {
                0 => Ink::Heading.on(colors, line),
                _ => line.to_owned(),
            };
            text.push('\n');
        }
        text
    }
}
