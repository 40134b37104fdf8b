//! Reads the inputs: the coverage of each architecture and of the host, and the calls of kernels.

use super::attribution;
use super::build::Contents;
use super::census::{self, Census};
use super::column_data::ColumnData;
use super::notes::{self, Notes};
use super::objects::{Object, ObjectGroup, Objects};
use super::plan::ArchProfiles;
use super::trace::{self, Trace};
use super::{matching, plan};
use crate::console::Console;
use crate::llvm::{Llvm, Tool};
use crate::merge::{self, Arch};
use crate::paths::Found;
use crate::{gpus, progress};
use anyhow::{Context, bail};
use code_objects::Sampling;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

#[derive(Clone, Copy)]
pub struct How<'a> {
    pub llvm: &'a Llvm,
    /// Include the host code of the binaries.
    pub host: bool,
    /// Accept code objects that count only some of their blocks.
    pub allow_sampled: bool,
    /// If there are traces, find all kernels of the binaries.
    pub census: bool,
    /// The directory of profiles that also has those of each test.
    pub tests: Option<&'a Path>,
}

/// Reads the traces, and finds the kernels of the binaries. There are no profiles.
///
/// # Errors
/// There are no kernels.
pub fn traces_only(
    binaries: &[PathBuf],
    traces: &[PathBuf],
    notes: &mut Notes,
    console: &mut Console,
) -> anyhow::Result<Contents> {
    let traces = read_traces(traces, notes, console)?;
    let census = Census::read(binaries, &traces, notes)?;
    census::add_losses(&traces, notes);
    Ok(Contents {
        columns: Vec::new(),
        traces,
        census: Some(census),
        attribution: None,
    })
}

/// Reads the inputs with LLVM's tools, and adds notes about everything that is missing.
///
/// # Errors
/// There are no counts, or they are not of the binaries.
pub fn read(
    binaries: &[PathBuf],
    profiles: Found,
    traces: &[PathBuf],
    how: How,
    notes: &mut Notes,
    console: &mut Console,
) -> anyhow::Result<Contents> {
    let scratch = tempfile::Builder::new()
        .prefix("devprof-report-")
        .tempdir()
        .with_context(|| {
            let parent = std::env::temp_dir();
            format!("cannot create a directory in {}", parent.display())
        })?;
    let objects = extract(binaries, how.host, &scratch.path().join("objects"), notes)?;
    let hosts: Vec<Object> = binaries.iter().map(|path| Object::host(path)).collect();
    let dirs = merge::directories(&profiles.files);
    let profiles = Profiles::merge(profiles, &hosts, how.llvm, scratch.path(), notes, console)?;
    let mut traces = read_traces(traces, notes, console)?;
    let hosts = if how.host { &hosts[..] } else { &[] };
    let groups = plan::groups(&objects, hosts, &profiles.by_arch, notes)?;
    if let Some(tool) = &profiles.tool {
        matching::check(&groups, tool, binaries, &dirs, notes)?;
    }
    if !how.allow_sampled {
        check_sampled(&groups)?;
    }
    let columns = columns(&groups, &profiles.llvm_cov)?;
    check_traces(&mut traces, &columns, notes);
    let census = (how.census && !traces.is_empty()).then(|| Census::of_binaries(binaries, &traces));
    if census.is_some() {
        census::add_losses(&traces, notes);
    }
    for column in &columns {
        notes.problems(column);
        notes.not_run(column);
    }
    notes.sampled(&groups);
    let attribution = match how.tests {
        Some(directory) => Some(attribution::read(directory, &objects, &profiles.llvm_cov)?),
        None => None,
    };
    if let Some(attribution) = &attribution {
        notes.losses(
            "Not everything that ran could be attributed to its test",
            attribution.lost.clone(),
        );
    }
    Ok(Contents {
        columns,
        traces,
        census,
        attribution,
    })
}

/// Extracts the code objects with a coverage mapping to a directory.
fn extract(
    binaries: &[PathBuf],
    host: bool,
    dir: &Path,
    notes: &mut Notes,
) -> anyhow::Result<Vec<Object>> {
    let objects = Objects::extract(binaries, dir)?;
    if objects.found.is_empty() && !host {
        bail!(objects.why_empty(binaries));
    }
    notes.losses("Parts of the binaries could not be read", objects.damage);
    Ok(objects.found)
}

/// The merged profiles.
struct Profiles {
    by_arch: BTreeMap<Arch, ArchProfiles>,
    /// A tool that reads them.
    tool: Option<Tool>,
    llvm_cov: Tool,
}

impl Profiles {
    /// `hosts`: the binaries. LLVM's own collector writes the build ID of the host's program into profiles of devices, so it says
    /// nothing about the code object there.
    fn merge(
        files: Found,
        hosts: &[Object],
        llvm: &Llvm,
        dir: &Path,
        notes: &mut Notes,
        console: &mut Console,
    ) -> anyhow::Result<Profiles> {
        let mut problems = Vec::new();
        let how = merge::How {
            by_arch: true,
            ..merge::How::default()
        };
        let path = dir.join("merged.profdata");
        let is_apart = |arch: &Arch, id: &str| match arch {
            Arch::Host => true,
            Arch::Gpu(_) => !hosts
                .iter()
                .any(|host| host.build_id.as_deref() == Some(id)),
            Arch::Unknown => false,
        };
        let merged = merge::merge(files, &path, how, &is_apart, llvm, &mut |diagnostic| {
            console.report(&diagnostic);
            problems.push(diagnostic.message.trim_end_matches("; left out").to_owned());
        })?;
        if merged.left_out > 0 {
            notes.reported_loss("Not all of the profiles could be used", problems);
        }
        let llvm_cov = llvm_cov(llvm, &merged)?;
        let tool = merged.outputs.iter().find_map(|output| output.tools.last());
        let tool = tool.cloned();
        let mut by_arch: BTreeMap<Arch, ArchProfiles> = BTreeMap::new();
        for mut output in merged.outputs {
            let Some(arch) = output.archs.pop_first() else {
                continue;
            };
            let own = by_arch.entry(arch).or_default();
            match output.build_id.clone() {
                Some(id) => drop(own.by_build.insert(id, output)),
                None => own.others = Some(output),
            }
        }
        Ok(Profiles {
            by_arch,
            tool,
            llvm_cov,
        })
    }
}

/// The llvm-cov of the release that merged the profiles, or of a later one, which reads them as well.
fn llvm_cov(llvm: &Llvm, merged: &merge::Merged) -> anyhow::Result<Tool> {
    let outputs = merged.outputs.iter();
    let tools = outputs.filter_map(|output| output.tools.last());
    let Some(profdata) = tools.max_by_key(|tool| tool.version.numbers) else {
        return llvm.newest("llvm-cov");
    };
    if let Ok(same) = llvm.of_release("llvm-cov", &profdata.version) {
        return Ok(same);
    }
    let newest = llvm.newest("llvm-cov")?;
    let release = profdata.version.numbers[0];
    if newest.version.numbers[0] < release {
        bail!(
            "llvm-cov {} ({}) cannot read a profile of LLVM {release}: apt-get install llvm-{release}, or name an installation of LLVM {release} with --llvm DIR",
            newest.version,
            newest.path.display()
        );
    }
    Ok(newest)
}

fn read_traces(
    paths: &[PathBuf],
    notes: &mut Notes,
    console: &mut Console,
) -> anyhow::Result<Vec<Trace>> {
    let traces = paths.iter().map(|path| trace::read(path, console));
    let traces = traces.collect::<anyhow::Result<Vec<Trace>>>()?;
    for trace in traces.iter().filter(|trace| !trace.is_complete) {
        notes.loss(format!(
            "Parts of the trace {} could not be read: calls and times are too low.",
            trace.path
        ));
    }
    Ok(traces)
}

/// If no trace has a kernel of the binaries’ code objects, the kernels are joined by their names: the traces are of another
/// build, or the driver has compiled the code again.
fn check_traces(traces: &mut [Trace], columns: &[ColumnData], notes: &mut Notes) {
    let on_devices = || columns.iter().filter(|column| !column.host);
    let ids: BTreeSet<&String> = on_devices().flat_map(|column| &column.build_ids).collect();
    let is_kernel = |symbol: &&str| on_devices().any(|column| column.kernels.contains(*symbol));
    let traced = traces
        .iter()
        .flat_map(|trace| trace.build_ids_of(is_kernel));
    let traced: BTreeSet<&String> = traced.collect();
    if traced.is_empty() || !ids.is_disjoint(&traced) {
        return;
    }
    if !ids.is_empty() {
        notes.warning("The traces have no kernel of the binaries’ code objects, whose build IDs differ: calls and times are from kernels with the same names.");
    }
    traces.iter_mut().for_each(Trace::remove_build_ids);
}

/// # Errors
/// Code objects that ran count only some of their blocks.
fn check_sampled(groups: &[ObjectGroup]) -> anyhow::Result<()> {
    let ran = groups.iter().filter(|group| group.ran);
    let mut objects = ran.flat_map(|group| &group.objects);
    let Some((object, _)) = objects.find(|(object, _)| object.sampling == Sampling::Yes) else {
        return Ok(());
    };
    let remedy = match gpus::compute_capability(&object.processor) {
        Some(_) => "without -DDEVPROF_SAMPLING",
        None => &format!("with {}", notes::EVERY_BLOCK),
    };
    bail!(
        "{}: sampled build (1 block in 8): coverage would be under-reported; rebuild {remedy}, or accept it with --allow-sampled",
        object.origin
    )
}

/// Reads the functions of each column.
fn columns(groups: &[ObjectGroup], llvm_cov: &Tool) -> anyhow::Result<Vec<ColumnData>> {
    let number: usize = groups.iter().map(|group| group.objects.len()).sum();
    let bar = progress::bar(number as u64, "{bar:40} {pos}/{len} code objects");
    let groups = groups.iter();
    let columns = groups.map(|group| ColumnData::read(group, llvm_cov, &bar));
    let columns: Vec<ColumnData> = columns.collect();
    bar.finish_and_clear();
    if columns.iter().all(|column| column.functions.is_empty()) {
        let errors = columns.iter().flat_map(|column| &column.problems.unread);
        let errors: Vec<&str> = errors.map(String::as_str).collect();
        bail!(
            "no function of the binaries could be read: {}",
            errors.join("; ")
        );
    }
    Ok(columns)
}
