//! LLVM's offload binary ("Offload Binary" in LLVM's documentation of `.llvm.offloading`): images, each with its producer
//! and target. Version 1 has one image, version 2 any number.

use crate::budget::Limit;
use crate::bytes::Bytes;
use crate::error::Error;

pub const MAGIC: &[u8] = &[0x10, 0xff, 0x10, 0xad];

/// Limit on the number of images.
const MAX_IMAGES: u64 = 65_536;
/// Limit on the number of strings of an image.
const MAX_STRINGS: u64 = 1024;
/// Limit on the length of a string in bytes.
const MAX_TEXT: u64 = 4096;

/// An image of an offload binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Counts from 1.
    pub number: u32,
    /// `object`, `bitcode`…
    pub kind: &'static str,
    /// `hip`, `openmp`…
    pub producer: String,
    pub triple: String,
    pub arch: String,
    /// Bytes from the beginning of the offload binary.
    pub offset: u64,
    /// In bytes.
    pub size: u64,
}

impl Image {
    /// The id that clang-offload-bundler would give it.
    pub fn id(&self) -> String {
        format!("{}-{}-{}", self.producer, self.triple, self.arch)
    }
}

/// The valid images of an offload binary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binary {
    pub version: u32,
    pub images: Vec<Image>,
    /// In bytes.
    pub size: u64,
    /// Why other images were left out.
    pub problems: Vec<Error>,
}

/// `ImageKind`.
const KINDS: [&str; 8] = [
    "nothing",
    "object",
    "bitcode",
    "cubin",
    "fatbinary",
    "ptx",
    "spirv",
    "unknown",
];
/// By bit number in `OffloadKind`.
const PRODUCERS: [&str; 4] = ["openmp", "cuda", "hip", "sycl"];

/// Reads the tables of the offload binary at the beginning of `bytes`. Images that are out of bounds, or overlap others,
/// are left out.
pub fn read(bytes: &Bytes) -> Result<Binary, Error> {
    let cut_off = |_| Error::new(0, "truncated header of an offload binary");
    let head = bytes.read(0, 32).map_err(cut_off)?;
    if !head.starts_with(MAGIC) {
        return Err(Error::new(0, "not an offload binary"));
    }
    let version = u32_at(&head, 4);
    let size = u64_at(&head, 8);
    if size < 32 || size > bytes.size() {
        let available = bytes.size();
        return Err(error!(8; "an offload binary claims {size} bytes, but there are {available}"));
    }
    let bytes = bytes.slice(0, size)?;
    let (entries, count) = match version {
        // In version 1 the fourth word is the size of the entry, not the number of entries.
        1 => (u64_at(&head, 16), 1),
        2 => (u64_at(&head, 16), u64_at(&head, 24)),
        other => {
            let what =
                format!("offload binary version {other} is not supported; versions 1 and 2 are");
            return Err(Error::new(4, what));
        }
    };
    if count > MAX_IMAGES {
        return Err(error!(24; "an offload binary claims {count} images"));
    }
    let mut binary = Binary {
        version,
        size,
        ..Binary::default()
    };
    let mut end = 0;
    let limit = Limit::of_size(size, "MiB of tables of strings");
    for number in 1..=count as u32 {
        let at = entries.saturating_add(u64::from(number - 1) * ENTRY);
        match image(&bytes, version, number, at, &limit) {
            Ok(image) if image.offset < end => {
                binary.problems.push(error!(image.offset; "image {number} {} overlaps the one before it", image.id()));
            }
            Ok(image) => {
                end = image.offset + image.size;
                binary.images.push(image);
            }
            Err(error) => binary.problems.push(error),
        }
        if binary.problems.len() > 16 {
            break;
        }
    }
    Ok(binary)
}

/// Size of an image's entry in bytes.
const ENTRY: u64 = 40;

/// `limit`: on the tables of strings of all images, which can overlap.
fn image(bytes: &Bytes, version: u32, number: u32, at: u64, limit: &Limit) -> Result<Image, Error> {
    let outside = |what: &'static str| move |_| error!(at; "{what} of image {number} out of bounds of the offload binary");
    let entry = bytes.read(at, ENTRY).map_err(outside("entry"))?;
    let kind = u16::from_le_bytes([entry[0], entry[1]]);
    let producer = u16::from_le_bytes([entry[2], entry[3]]);
    let (strings, count) = (u64_at(&entry, 8), u64_at(&entry, 16));
    let (offset, size) = (u64_at(&entry, 24), u64_at(&entry, 32));
    bytes.slice(offset, size).map_err(outside("contents"))?;
    if count > MAX_STRINGS {
        return Err(error!(at; "image {number} claims {count} strings"));
    }
    // Since version 2, a pair also has the size of the value.
    let pair = if version == 1 { 16 } else { 24 };
    let allowed = limit.take(count * pair);
    allowed.map_err(|why| error!(at; "an offload binary has {why}: image {number} is not read"))?;
    let table = bytes
        .read(strings, count * pair)
        .map_err(outside("table of strings"))?;
    let mut image = Image {
        number,
        kind: KINDS[usize::from(kind).min(KINDS.len() - 1)],
        producer: match PRODUCERS
            .iter()
            .enumerate()
            .find(|(n, _)| producer == 1 << n)
        {
            Some((_, name)) => (*name).to_owned(),
            None => format!("producer{producer}"),
        },
        triple: String::new(),
        arch: String::new(),
        offset,
        size,
    };
    for pair in table.chunks_exact(pair as usize) {
        let key = string(bytes, u64_at(pair, 0)).map_err(outside("a string"))?;
        let value = |_: ()| string(bytes, u64_at(pair, 8)).map_err(outside("a string"));
        match key.as_str() {
            "triple" => image.triple = value(())?,
            "arch" => image.arch = value(())?,
            _ => {}
        }
    }
    Ok(image)
}

/// The text at offset `at`, up to a zero byte.
fn string(bytes: &Bytes, at: u64) -> Result<String, Error> {
    let rest = bytes.from(at);
    let text = rest.head(MAX_TEXT)?;
    let end = text.iter().position(|&byte| byte == 0);
    let text = &text[..end.ok_or_else(|| Error::new(at, ""))?];
    Ok(String::from_utf8_lossy(text).into_owned())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default())
}
