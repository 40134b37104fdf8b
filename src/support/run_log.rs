//! What devprof did in this process, for whoever started it (`devprof run`): lines appended to the file that DEVPROF_LOG
//! names. A line is `<process id> <word> <text>`; in the text `\\` is a backslash and `\n` a new line.

use super::sync::lock;
use crate::sys::env::env;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

/// What a line tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// devprof is in this program.
    Loaded,
    /// A profile of this process alone.
    Wrote,
    /// A profile that other processes had added to before.
    Added,
    Traced,
    /// What was said on stderr.
    Lost,
}

impl Event {
    fn word(self) -> &'static str {
        match self {
            Event::Loaded => "loaded",
            Event::Wrote => "wrote",
            Event::Added => "added",
            Event::Traced => "traced",
            Event::Lost => "lost",
        }
    }
}

/// Read when it is first needed, which is before the settings are: they say what they cannot use.
fn file() -> Option<&'static OsString> {
    static FILE: OnceLock<Option<OsString>> = OnceLock::new();
    let read = || env("DEVPROF_LOG").filter(|name| !name.is_empty());
    FILE.get_or_init(read).as_ref()
}

fn escaped(text: &[u8]) -> Vec<u8> {
    let mut line = Vec::with_capacity(text.len());
    for &byte in text {
        match byte {
            b'\n' => line.extend(b"\\n"),
            b'\\' => line.extend(b"\\\\"),
            byte => line.push(byte),
        }
    }
    line
}

/// Appends a line, once. Does nothing where nobody asked for it, or nobody listens any more: the file is gone.
pub fn note(event: Event, text: &[u8]) {
    static NOTED: Mutex<Option<HashSet<Vec<u8>>>> = Mutex::new(None);
    let Some(file) = file() else {
        return;
    };
    let mut line = format!("{} {} ", std::process::id(), event.word()).into_bytes();
    line.extend(escaped(text));
    line.push(b'\n');
    let mut noted = lock(&NOTED);
    if !noted.get_or_insert_default().insert(line.clone()) {
        return;
    }
    // One write, so that lines of several processes do not mix.
    let appended = File::options()
        .append(true)
        .open(file)
        .and_then(|mut file| file.write_all(&line));
    if let Err(error) = appended
        && error.kind() != io::ErrorKind::NotFound
    {
        let _ = writeln!(
            io::stderr(),
            "devprof: cannot append to {} (DEVPROF_LOG): {error}",
            file.display()
        );
    }
}

/// Whether somebody will read what [`note`] writes.
pub fn is_kept() -> bool {
    file().is_some()
}

/// As [`note`], of a file.
pub fn note_file(event: Event, path: &Path) {
    if is_kept() {
        let whole = std::path::absolute(path);
        let path = whole.as_deref().unwrap_or(path);
        note(event, path.as_os_str().as_bytes());
    }
}

/// Whether a process has told this of a file.
pub fn has_file(event: Event, path: &Path) -> bool {
    let Some(Ok(lines)) = file().map(fs::read) else {
        return false;
    };
    let whole = std::path::absolute(path);
    let path = whole.as_deref().unwrap_or(path);
    let mut end = format!(" {} ", event.word()).into_bytes();
    end.extend(escaped(path.as_os_str().as_bytes()));
    lines.split(|&byte| byte == b'\n').any(|line| {
        let digits = line.iter().take_while(|byte| byte.is_ascii_digit());
        line[digits.count()..] == end
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_a_line() {
        assert_eq!(escaped(b"a\nb\\n"), b"a\\nb\\\\n");
    }
}
