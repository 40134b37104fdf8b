//! Links to libraries, for paths that cannot be in lists of libraries.

use anyhow::{Context, bail};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Symbolic links to libraries whose paths the dynamic linker and ROCr would split into several.
#[derive(Default)]
pub struct Links(std::cell::OnceCell<TempDir>);

impl Links {
    /// The path, or, if it has a separator in it, a link to it without one.
    pub fn without_separators(&self, path: &Path) -> anyhow::Result<PathBuf> {
        let has_separator = |path: &Path| {
            let separators = b" :;\"$";
            let mut bytes = path.as_os_str().as_bytes().iter();
            bytes.any(|byte| separators.contains(byte))
        };
        if !has_separator(path) {
            return Ok(path.to_owned());
        }
        let failed = || {
            format!(
                "{}: the dynamic linker cannot load a library whose path has a space, colon, semicolon, quote or dollar sign, and a link to it could not be created",
                path.display()
            )
        };
        let dir = match self.0.get() {
            Some(dir) => dir,
            None => {
                let created = tempfile::Builder::new().prefix("devprof-run-").tempdir();
                let created = created.with_context(failed)?;
                self.0.get_or_init(|| created)
            }
        };
        let name = path.file_name().unwrap_or_default();
        let link = dir.path().join(name);
        if has_separator(&link) {
            bail!(
                "{}: the file name contains one of these characters, too",
                failed()
            );
        }
        std::os::unix::fs::symlink(path, &link).with_context(failed)?;
        Ok(link)
    }
}
