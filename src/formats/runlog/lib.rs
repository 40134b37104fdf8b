//! The run log: the actions of devprof in the processes of a run. The runtime appends to the file that `DEVPROF_LOG` names,
//! and `devprof run` reads it.
//!
//! An entry is one line: `<process id> <word> <text>\n`, with the id in decimal and a single space between the parts.
//! The word names the [`Event`]. The text is the rest of the line, any bytes: the path of a file, or a message. In it
//! `\\` stands for a backslash and `\n` for a line feed, so that an entry stays on one line. Lines of several processes
//! are interleaved; a process writes each of its lines with a single call, and a process that is killed can leave the
//! last one incomplete.
//!
//! A log can also be a directory, with one such file per node ([`file_of_node`]). On a file system that several nodes
//! share, only the processes of one node can append to the same file: others would overwrite their lines.
//!
//! The format has no version number. Readers skip words that they do not know, so a later runtime can add some. The
//! meaning of a word never changes.

#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The events. Each variant's comment describes the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The runtime was loaded. Text: path of the program.
    Loaded,
    /// Device code was loaded. Text: empty.
    Code,
    /// A library that was in the process when device code was loaded. Text: its path.
    Mapped,
    /// A profile was written. It has the counters of this process only. Text: path of the profile.
    Wrote,
    /// The counters were added to a profile of other processes. Text: path of the profile.
    Added,
    /// A trace was written. Text: path of the trace.
    Traced,
    /// A loss was reported on stderr. Text: the message.
    Lost,
    /// The counters were read because the process ends. Text: empty.
    Ended,
}

impl Event {
    const ALL: [Event; 8] = [
        Event::Loaded,
        Event::Code,
        Event::Mapped,
        Event::Wrote,
        Event::Added,
        Event::Traced,
        Event::Lost,
        Event::Ended,
    ];

    /// Its word in the log.
    pub fn word(self) -> &'static str {
        match self {
            Event::Loaded => "loaded",
            Event::Code => "code",
            Event::Mapped => "mapped",
            Event::Wrote => "wrote",
            Event::Added => "added",
            Event::Traced => "traced",
            Event::Lost => "lost",
            Event::Ended => "ended",
        }
    }
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Process id.
    pub pid: u32,
    pub event: Event,
    /// Without escapes.
    pub text: Cow<'a, [u8]>,
}

impl<'a> Entry<'a> {
    /// Reads a line without its line feed. `None` if it is incomplete or its word is unknown.
    pub fn parse(line: &'a [u8]) -> Option<Entry<'a>> {
        let mut parts = line.splitn(3, |&byte| byte == b' ');
        let pid = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
        let word = parts.next()?;
        let text = unescape(parts.next()?);
        let mut events = Event::ALL.into_iter();
        let event = events.find(|event| event.word().as_bytes() == word)?;
        Some(Entry { pid, event, text })
    }

    /// The line, with its line feed.
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = format!("{} {} ", self.pid, self.event.word()).into_bytes();
        for &byte in self.text.iter() {
            match byte {
                b'\n' => line.extend(b"\\n"),
                b'\\' => line.extend(b"\\\\"),
                byte => line.push(byte),
            }
        }
        line.push(b'\n');
        line
    }
}

/// The entries of a log in order. Skips lines for which [`Entry::parse`] returns `None`.
pub fn entries(log: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    log.split(|&byte| byte == b'\n').filter_map(Entry::parse)
}

/// The file to which the processes of this node append: the log itself or, if it is a directory, a file in it, which may
/// not exist yet.
pub fn file_of_node(log: &Path) -> PathBuf {
    if log.is_dir() {
        return log.join(node());
    }
    log.to_owned()
}

/// Identifies the running system. Processes in different containers have the same one.
fn node() -> &'static str {
    static NODE: OnceLock<String> = OnceLock::new();
    NODE.get_or_init(|| {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        match id.trim() {
            "" => format!("process-{}", std::process::id()),
            id => id.to_owned(),
        }
    })
}

/// Reads a log: the name and content of each of its files.
pub fn read(log: &Path) -> io::Result<Vec<(OsString, Vec<u8>)>> {
    if !log.is_dir() {
        let name = log.file_name().unwrap_or_default();
        return Ok(vec![(name.to_owned(), fs::read(log)?)]);
    }
    let mut files = fs::read_dir(log)?
        .map(|file| {
            let file = file?;
            Ok((file.file_name(), fs::read(file.path())?))
        })
        .collect::<io::Result<Vec<_>>>()?;
    files.sort_unstable();
    Ok(files)
}

fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'\\') {
        return text.into();
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(&byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => match bytes.next() {
                Some(b'n') => b'\n',
                Some(&other) => other,
                None => b'\\',
            },
            byte => byte,
        });
    }
    plain.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(event: Event, text: &[u8]) -> Entry<'_> {
        Entry {
            pid: 7,
            event,
            text: text.into(),
        }
    }

    #[test]
    fn an_entry_is_one_line_and_reads_back() {
        let odd = b"a b\nc\\n\\\xff";
        let line = entry(Event::Lost, odd).to_line();
        assert_eq!(line, b"7 lost a b\\nc\\\\n\\\\\xff\n");
        let (_, line) = line.split_last().unwrap();
        assert_eq!(Entry::parse(line), Some(entry(Event::Lost, odd)));
        for event in Event::ALL {
            let line = entry(event, b"").to_line();
            assert_eq!(entries(&line).next(), Some(entry(event, b"")));
        }
    }

    #[test]
    fn incomplete_lines_and_unknown_words_are_skipped() {
        let log = b"7 wrote /p\nx wrote /p\n-1 wrote /p\n7 later /p\n\n7 lost end\\\n7 wro";
        let read: Vec<_> = entries(log).collect();
        let expected = [entry(Event::Wrote, b"/p"), entry(Event::Lost, b"end\\")];
        assert_eq!(read, expected);
    }
}
