//! The files that the arguments name.

use crate::exit::usage;
use crate::merge;
use crate::paths::Found;
use crate::run_log::saved;
use crate::traces;
use std::path::PathBuf;

pub struct Inputs {
    pub binaries: Vec<PathBuf>,
    pub profiles: Found,
    pub traces: Vec<PathBuf>,
}

impl Inputs {
    /// Expands the arguments.
    ///
    /// # Errors
    /// An argument names no file, or a file of another kind.
    pub fn find(
        binaries: &[PathBuf],
        profiles: &[PathBuf],
        traces: &[PathBuf],
    ) -> anyhow::Result<Inputs> {
        check_binaries(binaries)?;
        let profiles = merge::expand(profiles)?;
        Ok(Inputs {
            binaries: if binaries.is_empty() {
                logged_binaries(&profiles.files)?
            } else {
                binaries.to_owned()
            },
            traces: traces::expand(traces)?,
            profiles,
        })
    }

    /// The title of the report: the names of the binaries.
    pub fn title(&self) -> String {
        let name = |path: &PathBuf| {
            path.file_name()
                .unwrap_or(path.as_os_str())
                .to_string_lossy()
                .into_owned()
        };
        match &self.binaries[..] {
            [one] => name(one),
            [one, two] => format!("{} and {}", name(one), name(two)),
            [one, rest @ ..] => format!("{} and {} more", name(one), rest.len()),
            [] => String::new(),
        }
    }
}

/// Checks that no binary is a profile, because a shell has replaced the pattern after `--profile` with several names.
fn check_binaries(binaries: &[PathBuf]) -> anyhow::Result<()> {
    for path in binaries {
        let is_profile = merge::is_profile(path);
        if is_profile || path.is_dir() {
            let what = if is_profile { "profile" } else { "directory" };
            return Err(usage(format!(
                "{}: a {what}, not a binary; each profile needs its own --profile, and a pattern needs quotes: --profile '*.profraw'",
                path.display()
            )));
        }
    }
    Ok(())
}

/// The binaries in the logs of the runs that wrote the profiles.
fn logged_binaries(profiles: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let dirs = merge::directories(profiles);
    let found = saved::binaries(dirs.iter().map(PathBuf::as_path))?;
    if found.is_empty() {
        return Err(usage(
            "name the binaries that ran; they can be left out only if `devprof run` has saved its log (a .runlog file) next to the profiles",
        ));
    }
    Ok(found)
}
