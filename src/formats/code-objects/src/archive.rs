//! Static archives in the formats of System V, GNU and BSD, and GNU's thin archives, whose members are other files.

use crate::bytes::Bytes;
use crate::error::Error;

pub const FULL: &[u8] = b"!<arch>\n";
pub const THIN: &[u8] = b"!<thin>\n";
/// Size of a member's header in bytes.
pub const HEADER: u64 = 60;
/// Limit on the table of long names. A larger size is damage.
const MAX_NAMES: u64 = 256 << 20;
/// Limit on the length of a member's name in bytes.
const MAX_NAME: usize = 4096;

fn is_archive(head: &[u8]) -> bool {
    head.starts_with(FULL) || head.starts_with(THIN)
}

/// A member of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub name: String,
    /// Offset of its contents in the archive, in bytes. A thin archive does not contain them.
    pub at: u64,
    /// In bytes.
    pub size: u64,
    /// A thin archive can name a member of another archive: offset of the header in that archive, in bytes.
    pub origin: Option<u64>,
}

/// Reads the members of an archive in order. Stops at the first damage, because later members cannot be located.
pub struct Members<'a> {
    bytes: &'a Bytes,
    pub thin: bool,
    at: u64,
    /// GNU's table of long names.
    names: Vec<u8>,
}

impl Members<'_> {
    pub fn new(bytes: &Bytes) -> Result<Members<'_>, Error> {
        let head = bytes.head(8)?;
        if !is_archive(&head) {
            return Err(Error::new(0, "not an archive"));
        }
        Ok(Members {
            bytes,
            thin: head == THIN,
            at: 8,
            names: Vec::new(),
        })
    }

    fn member(&mut self) -> Result<Option<Member>, Error> {
        loop {
            if self.at >= self.bytes.size() {
                return Ok(None);
            }
            let start = self.at;
            let header = self
                .bytes
                .read(start, HEADER)
                .map_err(|_| Error::new(start, "truncated member header"))?;
            if header[58..] != *b"`\n" {
                return Err(Error::new(start, "invalid end of a member header"));
            }
            let text = |range: std::ops::Range<usize>| {
                String::from_utf8_lossy(&header[range])
                    .trim_end()
                    .to_owned()
            };
            let size: u64 = text(48..58)
                .parse()
                .map_err(|_| Error::new(start + 48, "invalid size of a member"))?;
            let name = text(0..16);
            let is_table = matches!(name.as_str(), "/" | "//" | "/SYM64/");
            let data = start + HEADER;
            let stored = if self.thin && !is_table { 0 } else { size };
            let end = data.checked_add(stored);
            if end.is_none_or(|end| end > self.bytes.size()) {
                let what =
                    format!("member {name} ({size} bytes) extends past the end of the archive");
                return Err(Error::new(start, what));
            }
            // Members begin at even offsets.
            self.at = (data + stored).next_multiple_of(2);
            if name == "//" {
                if size > MAX_NAMES {
                    return Err(error!(start; "table of long names with {size} bytes"));
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
            self.read_name(&mut member, start)?;
            if member.name.starts_with("__.SYMDEF") {
                continue;
            }
            return Ok(Some(member));
        }
    }

    /// Replaces the short name in the header by the complete one, which is in the table or in front of the contents.
    fn read_name(&self, member: &mut Member, start: u64) -> Result<(), Error> {
        let wrong = |what: &str| error!(start; "invalid name of a member: {what}");
        if let Some(length) = member.name.strip_prefix("#1/") {
            let length: u64 = length.parse().map_err(|_| wrong("not a valid length"))?;
            if length > member.size || length > MAX_NAME as u64 {
                return Err(wrong("longer than the member"));
            }
            let name = self.bytes.read(member.at, length)?;
            member.name = trimmed(&name, b"\0");
            member.at += length;
            member.size -= length;
        } else if let Some(offset) = member.name.clone().strip_prefix('/') {
            let (offset, origin) = offset.split_once(':').unwrap_or((offset, ""));
            let offset: usize = offset.parse().map_err(|_| wrong("not a valid offset"))?;
            let rest = self
                .names
                .get(offset..)
                .ok_or_else(|| wrong("past the end of the table of long names"))?;
            let rest = &rest[..rest.len().min(MAX_NAME + 1)];
            let name = rest.split(|&byte| byte == b'\n').next().unwrap_or_default();
            member.name = trimmed(name, b"/");
            if !origin.is_empty() {
                member.origin = Some(origin.parse().map_err(|_| wrong("not a valid offset"))?);
            }
        } else if let Some(name) = member.name.strip_suffix('/') {
            member.name = name.to_owned();
        }
        Ok(())
    }
}

/// A name without its terminator, cut to [`MAX_NAME`] bytes.
fn trimmed(name: &[u8], end: &[u8]) -> String {
    let mut name = name;
    while let [rest @ .., last] = name
        && end.contains(last)
    {
        name = rest;
    }
    String::from_utf8_lossy(&name[..name.len().min(MAX_NAME)]).into_owned()
}

impl Iterator for Members<'_> {
    type Item = Result<Member, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.member().transpose();
        if let Some(Err(_)) = found {
            self.at = self.bytes.size();
        }
        found
    }
}
