//! Appends to the run log, the file or directory that DEVPROF_LOG names. [`runlog`] has the format.

use super::sync::lock;
use crate::sys::env::not_empty;
use crate::sys::writes;
pub use runlog::Event;
use runlog::{Entry, entries};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf, absolute};
use std::sync::{Mutex, Once, OnceLock};

/// The log's name. It is not one of the settings, because reading those reports invalid values in the log.
fn log() -> Option<&'static Path> {
    static LOG: OnceLock<Option<PathBuf>> = OnceLock::new();
    LOG.get_or_init(|| not_empty(settings::LOG.name).map(PathBuf::from))
        .as_deref()
}

/// Appends an entry, unless this process has appended the same one. Does nothing without a log, or if the log was
/// removed.
pub fn append(event: Event, text: &[u8]) {
    append_all(event, &mut std::iter::once(text));
}

/// As [`append`], for several texts.
fn append_all(event: Event, texts: &mut dyn Iterator<Item = &[u8]>) {
    static APPENDED: Mutex<Option<HashSet<Vec<u8>>>> = Mutex::new(None);
    static REPORTED: Once = Once::new();
    let Some(log) = log() else {
        return;
    };
    let mut lines = Vec::new();
    let mut appended = lock(&APPENDED);
    for text in texts {
        let entry = Entry {
            pid: std::process::id(),
            event,
            text: text.into(),
        };
        let line = entry.to_line();
        if !appended.get_or_insert_default().contains(&line) {
            lines.extend_from_slice(&line);
            appended.get_or_insert_default().insert(line);
        }
    }
    if lines.is_empty() {
        return;
    }
    let file = runlog::file_of_node(log);
    // A single write, so that lines of several processes are not mixed.
    let write = || {
        File::options()
            .append(true)
            .create(file != log)
            .open(&file)
            .and_then(|mut file| file.write_all(&lines))
    };
    if let Err(error) = writes::without_signals(write)
        && error.kind() != io::ErrorKind::NotFound
    {
        REPORTED.call_once(|| {
            let message = format!(
                "devprof: cannot append to {} (DEVPROF_LOG): {error}\n",
                file.display()
            );
            writes::to_stderr(message.as_bytes());
        });
    }
}

/// Whether DEVPROF_LOG names a log.
pub fn is_enabled() -> bool {
    log().is_some()
}

/// Appends an entry whose text is the absolute path of a file.
pub fn append_path(event: Event, path: &Path) {
    append_paths(event, &[path.to_owned()]);
}

/// As [`append_path`], for several paths.
pub fn append_paths(event: Event, paths: &[PathBuf]) {
    if is_enabled() {
        let paths = paths.iter();
        let absolute = paths.map(|path| absolute(path).unwrap_or_else(|_| path.clone()));
        let absolute: Vec<PathBuf> = absolute.collect();
        let mut texts = absolute.iter().map(|path| path.as_os_str().as_bytes());
        append_all(event, &mut texts);
    }
}

/// Whether the log has an entry of this event with this path, of any process.
pub fn has_path(event: Event, path: &Path) -> bool {
    let Some(Ok(files)) = log().map(runlog::read) else {
        return false;
    };
    let absolute = absolute(path);
    let path = absolute.as_deref().unwrap_or(path);
    let text = path.as_os_str().as_bytes();
    let mut entries = files.iter().flat_map(|(_, log)| entries(log));
    entries.any(|entry| entry.event == event && entry.text == text)
}
