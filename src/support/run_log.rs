//! Appends to the run log, the file that DEVPROF_LOG names. [`runlog`] has the format.

use super::sync::lock;
use crate::sys::env::env;
use crate::sys::writes;
pub use runlog::Event;
use runlog::{Entry, entries};
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, absolute};
use std::sync::{Mutex, Once, OnceLock};

/// The log's name. It is not one of the settings, because reading those reports invalid values in the log.
fn file() -> Option<&'static OsString> {
    static FILE: OnceLock<Option<OsString>> = OnceLock::new();
    let read = || env("DEVPROF_LOG").filter(|name| !name.is_empty());
    FILE.get_or_init(read).as_ref()
}

/// Appends an entry, unless this process has appended the same one. Does nothing without a log, or if the log was
/// removed.
pub fn append(event: Event, text: &[u8]) {
    static APPENDED: Mutex<Option<HashSet<Vec<u8>>>> = Mutex::new(None);
    static REPORTED: Once = Once::new();
    let Some(file) = file() else {
        return;
    };
    let entry = Entry {
        pid: std::process::id(),
        event,
        text: text.into(),
    };
    let line = entry.to_line();
    let mut appended = lock(&APPENDED);
    if !appended.get_or_insert_default().insert(line.clone()) {
        return;
    }
    // A single write, so that lines of several processes are not mixed.
    let write = || {
        File::options()
            .append(true)
            .open(file)
            .and_then(|mut file| file.write_all(&line))
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
    file().is_some()
}

/// Appends an entry whose text is the absolute path of a file.
pub fn append_path(event: Event, path: &Path) {
    if is_enabled() {
        let absolute = absolute(path);
        let path = absolute.as_deref().unwrap_or(path);
        append(event, path.as_os_str().as_bytes());
    }
}

/// Whether the log has an entry of this event with this path, of any process.
pub fn has_path(event: Event, path: &Path) -> bool {
    let Some(Ok(log)) = file().map(fs::read) else {
        return false;
    };
    let absolute = absolute(path);
    let path = absolute.as_deref().unwrap_or(path);
    let text = path.as_os_str().as_bytes();
    entries(&log).any(|entry| entry.event == event && entry.text == text)
}
