//! The kernels of the binaries, instrumented or not. With a trace, the report shows which of them never ran.

use super::notes::Notes;
use super::objects;
use super::trace::Trace;
use crate::exit::usage;
use crate::gpus;
use crate::readable::{listed, plural};
use anyhow::bail;
use code_objects::{Options, What};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// AMD's runtime has kernels of its own, which fill and copy memory.
pub const RUNTIME: &str = "__amd_rocclr_";

/// The kernels by their symbols: those of several code objects and architectures are one.
#[derive(Debug, Default)]
pub struct Census {
    /// Whether there is code for one of the GPUs on which the program ran.
    kernels: BTreeMap<String, bool>,
    /// The architectures of the code.
    targets: BTreeSet<String>,
    /// Parts that are compiled when they are loaded, so that their kernels are not known.
    uncompiled: Vec<String>,
    damage: Vec<String>,
}

impl Census {
    /// The kernels of the binaries, or else of the code that the programs loaded, for a report without profiles. Adds notes about
    /// everything that is missing.
    ///
    /// # Errors
    /// There are no kernels, or the traces do not have them.
    pub fn read(
        binaries: &[PathBuf],
        traces: &[Trace],
        notes: &mut Notes,
    ) -> anyhow::Result<Census> {
        if binaries.is_empty() {
            notes.note("The binaries are not named: these are the kernels of the code that the program loaded. HIP loads a file’s code when its first kernel is launched.");
            return Census::loaded(traces);
        }
        let census = Census::of_binaries(binaries, traces);
        if census.kernels.is_empty() {
            match census.damage.first() {
                Some(damage) => bail!("no kernel could be read: {damage}"),
                None => bail!(
                    "{}: no kernels found; name the library that contains them (`devprof inspect` shows the contents of a file)",
                    listed(binaries)
                ),
            }
        }
        notes.losses(
            "Parts of the binaries could not be read, so their kernels are missing",
            census.damage.clone(),
        );
        notes.losses(
            "Code is compiled when it is loaded (SPIR-V), so its kernels that never ran are not known",
            census.uncompiled.clone(),
        );
        if !census.kernels.values().any(|is_for_gpu| *is_for_gpu) {
            let list =
                |names: &BTreeSet<&str>| names.iter().copied().collect::<Vec<_>>().join(", ");
            notes.warning(format!(
                "The binaries have no code for the GPU of the run ({}), only for {}.",
                list(&gpus_of(traces)),
                list(&census.targets.iter().map(String::as_str).collect())
            ));
        }
        Ok(census)
    }

    /// The kernels of all code objects that the program loaded.
    fn loaded(traces: &[Trace]) -> anyhow::Result<Census> {
        let is_nvidia = |gpu: &&str| gpus::compute_capability(gpu).is_some();
        if gpus_of(traces).iter().any(is_nvidia) {
            return Err(usage(
                "name the binaries that have the kernels: a trace of CUDA has only those that ran",
            ));
        }
        let loaded = traces.iter().flat_map(|trace| &trace.loaded);
        let loaded = loaded.filter(|symbol| !symbol.starts_with(RUNTIME));
        let kernels: BTreeMap<String, bool> = loaded.map(|own| (own.clone(), true)).collect();
        if kernels.is_empty() {
            return Err(usage(
                "name the binaries that have the kernels: the program loaded none while it was traced",
            ));
        }
        Ok(Census {
            kernels,
            ..Census::default()
        })
    }

    /// The kernels of the binaries.
    pub fn of_binaries(binaries: &[PathBuf], traces: &[Trace]) -> Census {
        let mut census = Census::default();
        let gpus = gpus_of(traces);
        let compiles = |target: &str| gpus.iter().any(|gpu| is_compiled_for(target, gpu));
        let options = Options {
            ptx: Some(&compiles),
            ..Options::default()
        };
        for binary in binaries {
            code_objects::walk(binary, options, &mut |found| {
                match found.what {
                    What::CodeObject(object) if !object.relocatable => {
                        let kernels = object.kernels.into_iter().map(|kernel| kernel.name);
                        census.add(object.target.processor, kernels, &gpus);
                    }
                    What::Ptx(ptx) if compiles(&ptx.target) => {
                        let text = found.bytes.map(|ptx| ptx.read(0, ptx.size()));
                        match text.transpose() {
                            Ok(text) => {
                                let text = text.unwrap_or_default();
                                let names = entries(&String::from_utf8_lossy(&text));
                                census
                                    .kernels
                                    .extend(names.into_iter().map(|name| (name, true)));
                            }
                            Err(why) => census.damage.push(format!("{}: {why}", found.location)),
                        }
                    }
                    What::SpirV => census.uncompiled.push(found.location.to_string()),
                    What::Damage { why } => {
                        census.damage.push(format!("{}: {why}", found.location))
                    }
                    _ => {}
                }
                ControlFlow::Continue(())
            });
        }
        census
    }

    /// Adds the kernels of a code object.
    fn add(
        &mut self,
        processor: String,
        kernels: impl Iterator<Item = String>,
        gpus: &BTreeSet<&str>,
    ) {
        let runs_on = |gpu: &&str| *gpu == processor || objects::includes(&processor, gpu);
        // If the GPUs are not known, all code may be for them.
        let runs = gpus.is_empty() || gpus.iter().any(runs_on);
        for name in kernels {
            *self.kernels.entry(name).or_default() |= runs;
        }
        self.targets.insert(processor);
    }

    #[cfg(test)]
    pub fn of_kernels(kernels: &[(&str, bool)]) -> Census {
        let kernels = kernels.iter();
        Census {
            kernels: kernels
                .map(|(name, runs)| (name.to_string(), *runs))
                .collect(),
            ..Census::default()
        }
    }

    /// If a kernel is in the binaries: whether there is code for a GPU of the runs.
    pub fn find(&self, symbol: &str) -> Option<bool> {
        self.kernels.get(symbol).copied()
    }

    pub fn symbols(&self) -> impl Iterator<Item = &str> {
        self.kernels.keys().map(String::as_str)
    }
}

/// Adds notes about kernels that may have run although the traces do not have them.
pub fn add_losses(traces: &[Trace], notes: &mut Notes) {
    let paused = traces.iter().filter(|trace| trace.was_stopped);
    notes.warning_about(
        "The recording was stopped for a part of the run: kernels that ran only then are shown as never run.".to_owned(),
        paused.map(|trace| trace.path.clone()).collect(),
    );
    let dropped: u64 = traces.iter().map(|trace| trace.dropped).sum();
    if dropped > 0 {
        notes.loss(format!(
            "The traces lack {}, whose kernels may be shown as never run.",
            plural(dropped as usize, "dispatch")
        ));
    }
}

/// The architectures of the GPUs of the runs.
fn gpus_of(traces: &[Trace]) -> BTreeSet<&str> {
    let gpus = traces.iter().flat_map(|trace| &trace.gpus);
    gpus.map(String::as_str).collect()
}

/// Whether the driver of a GPU can compile PTX for this architecture.
fn is_compiled_for(target: &str, gpu: &str) -> bool {
    let capability = gpus::compute_capability;
    match (capability(target), capability(gpu)) {
        (Some((target, "")), Some((gpu, _))) => target <= gpu,
        (Some(target), Some(gpu)) => gpus::runs_on(target, gpu),
        _ => false,
    }
}

/// The names of the kernels in PTX.
fn entries(text: &str) -> Vec<String> {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let names = lines.filter_map(|line| {
        let (_, rest) = line.split_once(".entry")?;
        let name = rest.strip_prefix([' ', '\t'])?.trim_start();
        let end = name.find(|c: char| c == '(' || c.is_whitespace());
        let name = &name[..end.unwrap_or(name.len())];
        (!name.is_empty()).then(|| name.to_owned())
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fuzz::corpus::{Compression, Fat, fat_binary, fat_entry};

    const CUBIN: &[u8] = include_bytes!("../../../../fixtures/counted.cubin");
    const CODE_OBJECT: &[u8] = include_bytes!("../../../../fixtures/counted.raw11.co");

    fn trace(gpus: &[&str]) -> Trace {
        Trace {
            gpus: gpus.iter().map(ToString::to_string).collect(),
            ..Trace::default()
        }
    }

    #[test]
    fn kernels_are_for_a_gpu_if_it_has_code_or_ptx_for_it() {
        let ptx = |arch, kernel: &str| {
            let text = format!(
                ".version 9.0\n.target sm_80\n.visible .entry {kernel}(\n\t.param .u64 p\n)\n{{ ret; }}\n"
            );
            fat_entry(Fat::Ptx, arch, Compression::Zstd, text.as_bytes())
        };
        let cubin = fat_entry(Fat::Cubin, 90, Compression::Lz4, CUBIN);
        let fat = fat_binary(&[cubin, ptx(80, "old"), ptx(90, "branch"), ptx(120, "new")]);
        let dir = tempfile::tempdir().unwrap();
        let files = [
            ("a.fatbin", &fat[..]),
            ("b.co", CODE_OBJECT),
            ("c.cubin", CUBIN),
        ];
        let files = files.map(|(name, bytes)| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        });
        for (gpus, expected) in [
            (
                &["sm_90"][..],
                "loop: yes, branch: yes, old: yes, new: none",
            ),
            (&["sm_100"], "loop: no, branch: yes, old: yes, new: none"),
            (
                &["sm_100", "gfx1100"],
                "loop: yes, branch: yes, old: yes, new: none",
            ),
            (&["sm_120"], "loop: no, branch: yes, old: yes, new: yes"),
            (&["gfx942"], "loop: no, branch: no, old: none, new: none"),
            (&[], "loop: yes, branch: yes, old: none, new: none"),
        ] {
            let mut notes = Notes::default();
            let census = Census::read(&files, &[trace(gpus)], &mut notes).unwrap();
            let shown = ["loop", "branch", "old", "new"].map(|symbol| {
                let is_for_gpu = match census.find(symbol) {
                    Some(true) => "yes",
                    Some(false) => "no",
                    None => "none",
                };
                format!("{symbol}: {is_for_gpu}")
            });
            assert_eq!(shown.join(", "), expected, "{gpus:?}");
            assert_eq!(census.symbols().filter(|own| *own == "branch").count(), 1);
        }
    }

    #[test]
    fn without_binaries_the_kernels_are_those_that_were_loaded() {
        let read = |traces: &[Trace]| {
            let census = Census::read(&[], traces, &mut Notes::default());
            let names = census.map(|census| census.symbols().collect::<Vec<_>>().join(" "));
            names.map_err(|error| error.to_string())
        };
        let loaded = |names: &[&str], gpu| Trace {
            loaded: names.iter().map(ToString::to_string).collect(),
            ..trace(&[gpu])
        };
        let amd = loaded(&["b", "a", "__amd_rocclr_fillBufferAligned"], "gfx1100");
        assert_eq!(read(&[amd, loaded(&["c"], "gfx1100")]).unwrap(), "a b c");
        // A trace of CUDA has only kernels that ran.
        let error = read(&[loaded(&["a"], "sm_90")]).unwrap_err();
        assert!(error.starts_with("name the binaries"), "{error}");
    }

    #[test]
    fn the_names_of_kernels_in_ptx() {
        let text = "// .entry comment(\n.visible .entry a(\n)\n.entry\tb ()\n.weak .entry c\n(\n.func d()\n.entry";
        assert_eq!(entries(text), ["a", "b", "c"]);
    }
}
