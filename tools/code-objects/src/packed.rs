//! A compressed offload bundle ("CCOB"): a header of one of three versions, then zlib's or zstd's stream.

use crate::bytes::{Bad, Bytes, Reader};
use flate2::bufread::ZlibDecoder;
use serde::Serialize;
use std::io::{self, BufReader, Read};
use zstd::stream::read::Decoder;

const MAGIC: &[u8] = b"CCOB";

/// What packs more tightly is a bomb, unless it is small.
const MOST_RATIO: u64 = 1000;
const SMALL: u64 = 4 << 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Packed {
    /// Of the header.
    pub version: u16,
    pub method: Method,
    /// Bytes with the header, when it tells them (from version 2 on).
    pub packed: Option<u64>,
    /// Bytes, as the header has it.
    pub unpacked: u64,
    /// The first half of the MD5 of what is unpacked.
    pub hash: u64,
    #[serde(skip)]
    pub header: u64,
}

/// The most bytes that are unpacked from `packed` ones.
pub fn most(packed: u64) -> u64 {
    packed.saturating_mul(MOST_RATIO).max(SMALL)
}

/// Whether bytes look like one: text that happens to have the four letters has no version behind them.
pub fn is_packed(bytes: &[u8]) -> bool {
    matches!(bytes, [b'C', b'C', b'O', b'B', 1..=3, 0, 0 | 1, 0, ..])
}

/// Reads the header at the beginning of `bytes`.
pub fn read(bytes: &Bytes) -> Result<Packed, Bad> {
    let cut_off = |_| Bad::new(0, "the header of a compressed offload bundle is cut off");
    let head = bytes.read(0, 8).map_err(cut_off)?;
    if !head.starts_with(MAGIC) {
        return Err(Bad::new(0, "no compressed offload bundle"));
    }
    let version = u16::from_le_bytes([head[4], head[5]]);
    let method = match u16::from_le_bytes([head[6], head[7]]) {
        0 => Method::Zlib,
        1 => Method::Zstd,
        other => {
            let what = format!(
                "an offload bundle compressed by method {other}; 0 (zlib) and 1 (zstd) are known"
            );
            return Err(Bad::new(6, what));
        }
    };
    let short = |at: u64| -> Result<u64, Bad> {
        let bytes = bytes.read(at, 4).map_err(cut_off)?;
        Ok(u64::from(u32::from_le_bytes(
            bytes.try_into().unwrap_or_default(),
        )))
    };
    let long = |at: u64| -> Result<u64, Bad> {
        let bytes = bytes.read(at, 8).map_err(cut_off)?;
        Ok(u64::from_le_bytes(bytes.try_into().unwrap_or_default()))
    };
    let (packed, unpacked, hash, header) = match version {
        1 => (None, short(8)?, long(12)?, 20),
        2 => (Some(short(8)?), short(12)?, long(16)?, 24),
        3 => (Some(long(8)?), long(16)?, long(24)?, 32),
        other => {
            let what = format!(
                "a compressed offload bundle of version {other}; versions 1 to 3 are known"
            );
            return Err(Bad::new(4, what));
        }
    };
    let there = bytes.size();
    if packed.is_some_and(|packed| packed > there || packed < header) {
        let claimed = packed.unwrap_or_default();
        let what = format!("a compressed offload bundle claims {claimed} bytes, {there} are there");
        return Err(Bad::new(8, what));
    }
    let from = packed.unwrap_or(there);
    if unpacked > most(from) {
        let what = format!("{from} bytes claim to unpack to {unpacked}");
        return Err(Bad::new(8, what));
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

/// Unpacks a compressed stream, to at most the size that was claimed.
pub struct Unpacker {
    stream: Stream,
    left: u64,
}

enum Stream {
    Zlib(ZlibDecoder<BufReader<Reader>>),
    Zstd(Box<Decoder<'static, BufReader<Reader>>>),
}

/// zstd's own bound for what it unpacks without being asked: 128 MiB of window.
const WINDOW_LOG: u32 = 27;

impl Unpacker {
    /// `bytes` begin with the stream, and may go on behind it.
    pub fn new(bytes: &Bytes, method: Method, unpacked: u64) -> io::Result<Unpacker> {
        let input = BufReader::with_capacity(1 << 18, bytes.reader());
        let stream = match method {
            Method::Zlib => Stream::Zlib(ZlibDecoder::new(input)),
            Method::Zstd => {
                let mut decoder = Decoder::with_buffer(input)?.single_frame();
                decoder.window_log_max(WINDOW_LOG)?;
                Stream::Zstd(Box::new(decoder))
            }
        };
        Ok(Unpacker {
            stream,
            left: unpacked,
        })
    }

    /// Reads what is left, and says when it is not what was claimed. Bytes of the compressed stream.
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
            return Err(format!("{} bytes fewer than it claims", self.left));
        }
        // The end of the stream may come after its last byte.
        match self.read_more(&mut buffer[..1]) {
            Ok(0) => {}
            Ok(_) => return Err("it has more bytes than it claims".into()),
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

impl Read for Unpacker {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = (buffer.len() as u64).min(self.left) as usize;
        if most == 0 {
            return Ok(0);
        }
        let n = self.read_more(&mut buffer[..most])?;
        self.left -= n as u64;
        Ok(n)
    }
}
