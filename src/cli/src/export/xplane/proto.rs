//! The messages and fields of xplane.proto that are used here.

use crate::export::messages::messages;
use prost::encoding::{WireType, encode_key};
use prost::{Message, Oneof};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};

/// Field numbers of the messages whose contents are too large for memory.
pub mod field {
    /// In an XSpace: an [`super::XPlane`].
    pub const PLANES: u32 = 1;
    /// In an [`super::XPlane`]: an [`super::XLine`].
    pub const LINES: u32 = 3;
    /// In an [`super::XLine`]: an [`super::XEvent`].
    pub const EVENTS: u32 = 4;
}

messages! {
    /// Without its lines.
    XPlane {
        id: i64 = 1 (int64);
        name: String = 2 (string);
        /// By ID.
        event_metadata: BTreeMap<i64, Metadata> = 4 (btree_map = "int64, message");
        /// By ID.
        stat_metadata: BTreeMap<i64, Metadata> = 5 (btree_map = "int64, message");
        stats: Vec<XStat> = 6 (message, repeated);
    }

    /// Without its events.
    XLine {
        id: i64 = 1 (int64);
        name: String = 2 (string);
        /// The time to which the offsets of its events relate.
        timestamp_ns: i64 = 3 (int64);
    }

    XEvent {
        metadata_id: i64 = 1 (int64);
        /// Part of a oneof, so that 0 is written, too.
        offset_ps: Option<i64> = 2 (int64, optional);
        duration_ps: i64 = 3 (int64);
        stats: Vec<XStat> = 4 (message, repeated);
    }

    /// XEventMetadata or XStatMetadata.
    Metadata {
        id: i64 = 1 (int64);
        name: String = 2 (string);
    }
}

#[derive(Clone, PartialEq, Message)]
pub struct XStat {
    #[prost(int64, tag = "1")]
    pub metadata_id: i64,
    #[prost(oneof = "Value", tags = "3, 4, 5, 7")]
    pub value: Option<Value>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum Value {
    #[prost(uint64, tag = "3")]
    Uint(u64),
    #[prost(int64, tag = "4")]
    Int(i64),
    #[prost(string, tag = "5")]
    Text(String),
    /// The ID of the stat metadata whose name is the value.
    #[prost(uint64, tag = "7")]
    Ref(u64),
}

/// The size in bytes of the length of a message, if the length is written before the contents are known. Readers accept
/// a number with more bytes than necessary.
const LENGTH: usize = 5;

/// A file of messages. Large messages are written piece by piece.
pub struct Output {
    file: BufWriter<File>,
    at: u64,
    buffer: Vec<u8>,
}

impl Output {
    pub fn new(file: BufWriter<File>) -> Output {
        Output {
            file,
            at: 0,
            buffer: Vec::new(),
        }
    }

    /// Writes the buffer and clears it.
    fn write_buffer(&mut self) -> io::Result<()> {
        self.file.write_all(&self.buffer)?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// A message in a field of the message that was begun last.
    pub fn message(&mut self, field: u32, message: &impl Message) -> io::Result<()> {
        encode_key(field, WireType::LengthDelimited, &mut self.buffer);
        message.encode_length_delimited(&mut self.buffer)?;
        self.write_buffer()
    }

    /// Fields of the message that was begun last.
    pub fn fields(&mut self, fields: &impl Message) -> io::Result<()> {
        fields.encode(&mut self.buffer)?;
        self.write_buffer()
    }

    /// Begins a message in a field. Returns what [`Output::end`] needs.
    pub fn begin(&mut self, field: u32) -> io::Result<u64> {
        encode_key(field, WireType::LengthDelimited, &mut self.buffer);
        self.buffer.extend([0; LENGTH]);
        self.write_buffer()?;
        Ok(self.at)
    }

    /// Ends a message.
    pub fn end(&mut self, begin: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(begin - LENGTH as u64))?;
        self.file.write_all(&long_number(self.at - begin))?;
        self.file.seek(SeekFrom::Start(self.at))?;
        Ok(())
    }

    /// Completes the file. Returns its size in bytes.
    pub fn finish(&mut self) -> io::Result<u64> {
        self.file.flush()?;
        Ok(self.at)
    }
}

/// A number of less than 35 bits with all its leading zeros.
fn long_number(number: u64) -> [u8; LENGTH] {
    std::array::from_fn(|byte| {
        let has_more = byte + 1 < LENGTH;
        (number >> (7 * byte)) as u8 & 0x7f | u8::from(has_more) << 7
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_valid_numbers() {
        for number in [0, 1, 127, 128, 300, 1 << 21, (1 << 31) - 1, (1 << 35) - 1] {
            let bytes = long_number(number);
            assert_eq!(prost::encoding::decode_varint(&mut &bytes[..]), Ok(number));
        }
    }
}
