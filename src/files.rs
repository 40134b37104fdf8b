//! Last stage, for one process: which file belongs to which code object, from one drain to the next.

use crate::discover::Agent;
use crate::hsa::types::{AgentHandle, ExecutableHandle};
use crate::merge::merge;
use crate::place::{self, FileId, ObjectId, Values};
use crate::report::{self, Outcome};
use crate::settings::Settings;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A profile that only needs a name.
pub struct Profile {
    /// Index into the agents.
    pub agent: usize,
    pub identity: Identity,
    pub binary_id: Option<Vec<u8>>,
    pub image: Vec<u8>,
    pub records: usize,
}

/// A code object, told from another one that comes to lie in the same place later.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    pub agent: AgentHandle,
    pub executable: ExecutableHandle,
    pub signature: u64,
}

struct Known {
    /// The n of the file's name.
    number: usize,
    /// What this process has added to a file that it shares (%m).
    added: Option<Vec<u8>>,
    placed: Option<Placed>,
}

/// A file of this process's own, to be found again.
struct Placed {
    path: PathBuf,
    id: FileId,
    image: Vec<u8>,
}

/// The files that this process has written.
#[derive(Default)]
pub struct Files {
    known: HashMap<Identity, Known>,
    /// How many code objects of each architecture have a name.
    named: HashMap<String, usize>,
    /// Whether to remember what was written, for [`Files::place_again`].
    pub keep_images: bool,
}

impl Files {
    /// Names and writes the profiles.
    pub fn place(
        &mut self,
        agents: &[Agent],
        settings: &Settings,
        mut profiles: Vec<Profile>,
        outcome: &mut Outcome,
    ) {
        // New names are given in an order that is the same from run to run: by what the code object is, then by agent
        // and load order (the sort is stable).
        profiles.sort_by_key(|profile| (profile.identity.signature, profile.agent));
        let target = place::Target::new(settings.pattern.as_deref());
        let values = Values::now();
        for profile in profiles {
            let arch = &agents[profile.agent].name;
            let known = self.known.entry(profile.identity).or_insert_with(|| {
                let count = self.named.entry(arch.clone()).or_default();
                *count += 1;
                Known {
                    number: *count - 1,
                    added: None,
                    placed: None,
                }
            });
            let object = ObjectId {
                signature: profile.identity.signature,
                build_id: profile.binary_id.as_deref(),
            };
            let to = target.destination(&values, object);
            if to.continuous {
                report::lost(
                    "%c in LLVM_PROFILE_FILE (continuous mode) is left out: device counters are not in host memory",
                );
            }
            let written = if to.merge {
                let path = place::prefixed(&to.path, arch, 0);
                add(&path, &profile.image, known).map(|()| path)
            } else {
                let path = place::prefixed(&to.path, arch, known.number);
                place::write(&path, &profile.image)
                    .map_err(Unwritten::Place)
                    .map(|id| {
                        if self.keep_images {
                            known.placed = Some(Placed {
                                path: path.clone(),
                                id,
                                image: profile.image,
                            });
                        }
                        path
                    })
            };
            match written {
                Ok(path) => {
                    outcome.written += 1;
                    report::note(
                        settings.verbose,
                        format_args!(
                            "{} records of {arch} to {}",
                            profile.records,
                            path.display()
                        ),
                    );
                }
                Err(error) => outcome.lose(format_args!(
                    "lost the counters of a code object on {arch}: {error}"
                )),
            }
        }
    }

    /// Writes the files again that somebody has replaced since. LLVM's own collector, where it is in the program too,
    /// has the same names and leaves out the device functions that are no kernels.
    pub fn place_again(&mut self) {
        for placed in self
            .known
            .values_mut()
            .filter_map(|known| known.placed.as_mut())
        {
            if placed.id.is_replaced(&placed.path) {
                match place::write(&placed.path, &placed.image) {
                    Ok(id) => placed.id = id,
                    Err(error) => {
                        report::lost(format_args!("lost the counters of a code object: {error}"))
                    }
                }
            }
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum Unwritten {
    #[error(transparent)]
    Place(#[from] place::Error),
    #[error("{0} is left as it is: {1}")]
    Mismatch(PathBuf, crate::merge::Mismatch),
}

/// Adds an image to the file that other processes share.
fn add(path: &Path, image: &[u8], known: &mut Known) -> Result<(), Unwritten> {
    let mut mismatch = None;
    place::update(path, |old| match old.filter(|old| !old.is_empty()) {
        None => Some(image.to_vec()),
        Some(old) => merge(&old, image, known.added.as_deref())
            .map_err(|error| mismatch = Some(error))
            .ok(),
    })?;
    if let Some(mismatch) = mismatch {
        return Err(Unwritten::Mismatch(path.into(), mismatch));
    }
    known.added = Some(image.to_vec());
    Ok(())
}
