//! A compressed offload bundle ("CCOB"): a header, of version 1 to 3, then a zlib or zstd stream.

use crate::budget::Limit;
use crate::bytes::{Bytes, Reader};
use crate::error::Error;
use flate2::bufread::ZlibDecoder;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, BufReader, Read};
use zstd::stream::read::Decoder;

pub const MAGIC: &[u8] = b"CCOB";

/// Compression method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    Zlib,
    Zstd,
}

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Method::Zlib => "zlib",
            Method::Zstd => "zstd",
        }
    }
}

/// The header of a compressed offload bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Packed {
    /// Version of the header.
    pub version: u16,
    pub method: Method,
    /// Compressed size in bytes, with the header. Not in version 1.
    pub packed: Option<u64>,
    /// Uncompressed size in bytes.
    pub unpacked: u64,
    /// First half of the MD5 of the uncompressed bundle.
    pub hash: u64,
    /// Size of the header in bytes.
    #[serde(skip)]
    pub header: u64,
}

/// Whether `bytes` begin with a header. Other data may contain the four letters of the magic by chance, so the version
/// and the method must be valid, too.
pub fn is_packed(bytes: &[u8]) -> bool {
    matches!(bytes, [b'C', b'C', b'O', b'B', 1..=3, 0, 0 | 1, 0, ..])
}

/// Reads the header at the beginning of `bytes`.
pub fn read(bytes: &Bytes) -> Result<Packed, Error> {
    let cut_off = |_| Error::new(0, "truncated header of a compressed offload bundle");
    let head = bytes.read(0, 8).map_err(cut_off)?;
    if !head.starts_with(MAGIC) {
        return Err(Error::new(0, "not a compressed offload bundle"));
    }
    let version = u16::from_le_bytes([head[4], head[5]]);
    let method = match u16::from_le_bytes([head[6], head[7]]) {
        0 => Method::Zlib,
        1 => Method::Zstd,
        other => {
            let what = format!(
                "unknown compression method {other} of an offload bundle; 0 (zlib) and 1 (zstd) are known"
            );
            return Err(Error::new(6, what));
        }
    };
    let short = |at: u64| -> Result<u64, Error> {
        let bytes = bytes.read(at, 4).map_err(cut_off)?;
        Ok(u64::from(u32::from_le_bytes(
            bytes.try_into().unwrap_or_default(),
        )))
    };
    let long = |at: u64| -> Result<u64, Error> {
        let bytes = bytes.read(at, 8).map_err(cut_off)?;
        Ok(u64::from_le_bytes(bytes.try_into().unwrap_or_default()))
    };
    let (packed, unpacked, hash, header) = match version {
        1 => (None, short(8)?, long(12)?, 20),
        2 => (Some(short(8)?), short(12)?, long(16)?, 24),
        3 => (Some(long(8)?), long(16)?, long(24)?, 32),
        other => {
            return Err(
                error!(4; "compressed offload bundle version {other} is not supported; versions 1 to 3 are"),
            );
        }
    };
    let available = bytes.size();
    if packed.is_some_and(|packed| packed > available || packed < header) {
        let claimed = packed.unwrap_or_default();
        return Err(
            error!(8; "a compressed offload bundle claims {claimed} bytes, but there are {available}"),
        );
    }
    Ok(Packed {
        version,
        method,
        packed,
        unpacked,
        hash,
        header,
    })
}

/// Decompresses a stream, up to the size that its header claims.
pub struct Unpacker<'a> {
    stream: Stream,
    limit: &'a Limit,
    /// Bytes that are still to be unpacked.
    left: u64,
}

enum Stream {
    Zlib(ZlibDecoder<BufReader<Reader>>),
    Zstd(Box<Decoder<'static, BufReader<Reader>>>),
}

/// Checks that `unpacked` bytes, which `packed` bytes claim to have, can be unpacked. The error is a message.
pub fn check(packed: u64, unpacked: u64, limit: &Limit) -> Result<(), String> {
    if unpacked > limit.left() {
        return Err(format!(
            "{packed} bytes claim to unpack to {unpacked}: {limit}"
        ));
    }
    Ok(())
}

/// Limit on the window: 128 MiB, which is also the default of the zstd program.
const WINDOW_LOG: u32 = 27;

impl Unpacker<'_> {
    /// `bytes` begin with the stream; other data may follow. `unpacked`: the claimed size in bytes. `limit`: on all data
    /// that are unpacked.
    ///
    /// # Errors
    /// The claimed size exceeds the limit, or there is no memory. The error is a message.
    pub fn new<'a>(
        bytes: &Bytes,
        method: Method,
        unpacked: u64,
        limit: &'a Limit,
    ) -> Result<Unpacker<'a>, String> {
        check(bytes.size(), unpacked, limit)?;
        let input = BufReader::with_capacity(1 << 18, bytes.reader());
        let stream = match method {
            Method::Zlib => Stream::Zlib(ZlibDecoder::new(input)),
            Method::Zstd => {
                let failed = |error: io::Error| error.to_string();
                let decoder = Decoder::with_buffer(input).map_err(failed)?;
                let mut decoder = decoder.single_frame();
                decoder.window_log_max(WINDOW_LOG).map_err(failed)?;
                Stream::Zstd(Box::new(decoder))
            }
        };
        Ok(Unpacker {
            stream,
            limit,
            left: unpacked,
        })
    }

    /// Reads the rest. Returns the size of the compressed stream in bytes.
    ///
    /// # Errors
    /// The stream is damaged, or does not unpack to the claimed size.
    pub fn finish(mut self, bytes: &Bytes) -> Result<u64, String> {
        let mut buffer = vec![0; 1 << 18];
        loop {
            match self.read(&mut buffer) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        if self.left > 0 {
            return Err(format!("{} bytes fewer than claimed", self.left));
        }
        // Also reads the stream's trailer, which can follow the last byte of the contents.
        match self.read_more(&mut buffer[..1]) {
            Ok(0) => {}
            Ok(_) => return Err("more bytes than claimed".into()),
            Err(error) => return Err(error.to_string()),
        }
        let input = match self.stream {
            Stream::Zlib(decoder) => return Ok(decoder.total_in()),
            Stream::Zstd(decoder) => decoder.finish(),
        };
        Ok(bytes.size() - input.get_ref().left() - input.buffer().len() as u64)
    }

    fn read_more(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.stream {
            Stream::Zlib(decoder) => decoder.read(buffer),
            Stream::Zstd(decoder) => decoder.read(buffer),
        }
    }
}

impl Read for Unpacker<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = (buffer.len() as u64).min(self.left) as usize;
        if most == 0 {
            return Ok(0);
        }
        let n = self.read_more(&mut buffer[..most])?;
        self.left -= n as u64;
        // A part may be unpacked and walked through before the rest of the stream is read.
        self.limit.take(n as u64).map_err(io::Error::other)?;
        Ok(n)
    }
}
