//! The inputs of one output file, and their functions, as far as they are known.

use super::inputs::Added;
use super::profile::{Arch, Function};
use anyhow::{Result, ensure};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

#[derive(Default)]
pub struct OutputGroup {
    /// Indices into [`super::inputs::Inputs::all`], in the order in which they were added.
    pub inputs: Vec<usize>,
    /// The first architecture of each function, as an index into `archs`.
    functions: HashMap<Function, usize>,
    archs: Vec<Arch>,
    /// Functions of several architectures.
    shared: HashSet<Function>,
    shared_by: BTreeSet<Arch>,
    /// Whether the files say only which code ran, and the first file.
    kind: Option<(bool, PathBuf)>,
    /// A file was not read to its end, so that some of its functions may be unknown.
    is_incomplete: bool,
}

impl OutputGroup {
    /// Checks that a file has the same kind of counts as the others, because llvm-profdata would add counts to flags.
    ///
    /// # Errors
    /// It has not.
    pub fn check(&mut self, path: &Path, only_ran: bool) -> Result<()> {
        let (kind, first) = self.kind.get_or_insert_with(|| (only_ran, path.to_owned()));
        let has = |only_ran| {
            if only_ran {
                "says only which code ran"
            } else {
                "has counts"
            }
        };
        ensure!(
            *kind == only_ran,
            "it {}, and {} {}: merge them apart",
            has(only_ran),
            first.display(),
            has(*kind)
        );
        Ok(())
    }

    pub fn add(&mut self, added: Added, arch: &Arch) {
        let known = self.archs.iter().position(|known| known == arch);
        let own = known.unwrap_or_else(|| {
            self.archs.push(arch.clone());
            self.archs.len() - 1
        });
        self.is_incomplete |= added.functions.is_none();
        for function in added.functions.into_iter().flatten() {
            let first = *self.functions.entry(function).or_insert(own);
            if first != own {
                self.shared.insert(function);
                self.shared_by.insert(self.archs[first].clone());
                self.shared_by.insert(arch.clone());
            }
        }
        if added.is_new {
            self.inputs.push(added.input);
        }
    }

    /// Whether all files are of the host.
    pub fn is_of_host(&self) -> bool {
        self.archs == [Arch::Host]
    }

    /// Number of functions, if it is known. A function with several hashes counts once per hash.
    pub fn functions(&self) -> Option<usize> {
        (!self.is_incomplete).then_some(self.functions.len())
    }

    /// Number of functions that several architectures have, and these architectures.
    pub fn shared(&self) -> (usize, &BTreeSet<Arch>) {
        (self.shared.len(), &self.shared_by)
    }
}
