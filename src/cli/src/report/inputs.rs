//! The files that the arguments name.

use crate::exit::usage;
use crate::merge;
use crate::paths::Found;
use crate::run_log::saved;
use crate::traces;
use anyhow::Context;
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

pub struct Inputs {
    pub binaries: Vec<PathBuf>,
    /// `None`: the report is only of traces.
    pub profiles: Option<Found>,
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
        let traces = traces::expand(traces)?;
        if profiles.is_empty() {
            return Ok(Inputs {
                binaries: binaries.to_owned(),
                profiles: None,
                traces,
            });
        }
        let profiles = merge::expand(profiles)?;
        let dirs = merge::directories(&profiles.files);
        let mut saved = saved_code(&dirs)?;
        let mut binaries = match binaries {
            [] => logged_binaries(&dirs, !saved.is_empty())?,
            named => named.to_owned(),
        };
        saved.retain(|path| !binaries.contains(path));
        binaries.extend(saved);
        Ok(Inputs {
            binaries,
            profiles: Some(profiles),
            traces,
        })
    }

    /// The title of the report: the names of the binaries, or else of the traces.
    pub fn title(&self) -> String {
        let name = |path: &PathBuf| {
            path.file_name()
                .unwrap_or(path.as_os_str())
                .to_string_lossy()
                .into_owned()
        };
        let named = match &self.binaries[..] {
            [] => &self.traces,
            _ => &self.binaries,
        };
        match &named[..] {
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

/// The device code that the runtime has saved next to profiles: PTX that it has instrumented in the process.
fn saved_code(dirs: &BTreeSet<PathBuf>) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for dir in dirs {
        let failed = || format!("cannot read {}", dir.display());
        let files = match fs::read_dir(dir) {
            // Of the profile, that is reported later.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            files => files.with_context(failed)?,
        };
        for file in files {
            let path = file.with_context(failed)?.path();
            let name = path.file_name().unwrap_or_default().as_bytes();
            if name.ends_with(profraw::DEVICE_CODE.as_bytes()) {
                found.push(path);
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// The binaries in the logs of the runs that wrote the profiles. `has_saved_code`: there may be none.
fn logged_binaries(dirs: &BTreeSet<PathBuf>, has_saved_code: bool) -> anyhow::Result<Vec<PathBuf>> {
    let found = saved::binaries(dirs.iter().map(PathBuf::as_path))?;
    if found.is_empty() && !has_saved_code {
        return Err(usage(
            "name the binaries that ran; they can be left out only if `devprof run` has saved its log (a .runlog file) next to the profiles",
        ));
    }
    Ok(found)
}
