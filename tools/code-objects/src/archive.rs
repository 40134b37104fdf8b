//! Static archives, as System V, GNU and BSD write them, and GNU's thin ones, whose members are files beside them.

use crate::bytes::{Bad, Bytes};

const FULL: &[u8] = b"!<arch>\n";
const THIN: &[u8] = b"!<thin>\n";
const HEADER: u64 = 60;
/// A table of long names beyond this is a damaged size.
const MOST_NAMES: u64 = 256 << 20;

pub fn is_archive(head: &[u8]) -> bool {
    head.starts_with(FULL) || head.starts_with(THIN)
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    /// Its contents, from the archive's beginning; nothing of a thin archive's.
    pub at: u64,
    pub size: u64,
    /// Where the member's own header is in the archive that the name means (a thin archive's members may be another
    /// archive's).
    pub origin: Option<u64>,
}

/// Reads an archive from front to back.
pub struct Members<'a> {
    bytes: &'a Bytes,
    pub thin: bool,
    at: u64,
    /// GNU's long names.
    names: Vec<u8>,
}

impl Members<'_> {
    pub fn new(bytes: &Bytes) -> Result<Members<'_>, Bad> {
        let head = bytes.head(8)?;
        if !is_archive(&head) {
            return Err(Bad::new(0, "no archive"));
        }
        Ok(Members {
            bytes,
            thin: head == THIN,
            at: 8,
            names: Vec::new(),
        })
    }

    fn member(&mut self) -> Result<Option<Member>, Bad> {
        loop {
            if self.at >= self.bytes.size() {
                return Ok(None);
            }
            let start = self.at;
            let header = self
                .bytes
                .read(start, HEADER)
                .map_err(|_| Bad::new(start, "a member's header is cut off"))?;
            if header[58..] != *b"`\n" {
                return Err(Bad::new(start, "a member's header does not end as one"));
            }
            let text = |range: std::ops::Range<usize>| {
                String::from_utf8_lossy(&header[range])
                    .trim_end()
                    .to_owned()
            };
            let size: u64 = text(48..58)
                .parse()
                .map_err(|_| Bad::new(start + 48, "a member's size is no number"))?;
            let name = text(0..16);
            let is_table = matches!(name.as_str(), "/" | "//" | "/SYM64/");
            let data = start + HEADER;
            let stored = if self.thin && !is_table { 0 } else { size };
            let end = data.checked_add(stored);
            if end.is_none_or(|end| end > self.bytes.size()) {
                let what = format!("member {name} of {size} bytes ends beyond the archive");
                return Err(Bad::new(start, what));
            }
            // Members begin at even offsets.
            self.at = (data + stored).next_multiple_of(2);
            if name == "//" {
                if size > MOST_NAMES {
                    return Err(Bad::new(start, format!("names of {size} bytes")));
                }
                self.names = self.bytes.read(data, size)?;
                continue;
            }
            if is_table || name.starts_with("__.SYMDEF") {
                continue;
            }
            let mut member = Member {
                name,
                at: data,
                size,
                origin: None,
            };
            self.name(&mut member, start)?;
            if member.name.starts_with("__.SYMDEF") {
                continue;
            }
            return Ok(Some(member));
        }
    }

    /// Finds out what the short name in the header stands for.
    fn name(&self, member: &mut Member, start: u64) -> Result<(), Bad> {
        let wrong = |what: &str| Bad::new(start, format!("a member's name is {what}"));
        if let Some(length) = member.name.strip_prefix("#1/") {
            let length: u64 = length.parse().map_err(|_| wrong("no length"))?;
            if length > member.size || length > 4096 {
                return Err(wrong("longer than the member"));
            }
            let name = self.bytes.read(member.at, length)?;
            member.name = trimmed(&name, b"\0");
            member.at += length;
            member.size -= length;
        } else if let Some(offset) = member.name.clone().strip_prefix('/') {
            let (offset, origin) = offset.split_once(':').unwrap_or((offset, ""));
            let offset: usize = offset.parse().map_err(|_| wrong("no offset"))?;
            let rest = self
                .names
                .get(offset..)
                .ok_or_else(|| wrong("beyond the table of names"))?;
            let name = rest.split(|&byte| byte == b'\n').next().unwrap_or_default();
            member.name = trimmed(name, b"/");
            if !origin.is_empty() {
                member.origin = Some(origin.parse().map_err(|_| wrong("no offset"))?);
            }
        } else if let Some(name) = member.name.strip_suffix('/') {
            member.name = name.to_owned();
        }
        Ok(())
    }
}

/// Without what ends a name.
fn trimmed(name: &[u8], end: &[u8]) -> String {
    let mut name = name;
    while let [rest @ .., last] = name
        && end.contains(last)
    {
        name = rest;
    }
    String::from_utf8_lossy(&name[..name.len().min(4096)]).into_owned()
}

/// The members; the first damage ends them, for what follows it cannot be found.
impl Iterator for Members<'_> {
    type Item = Result<Member, Bad>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.member().transpose();
        if let Some(Err(_)) = found {
            self.at = self.bytes.size();
        }
        found
    }
}
