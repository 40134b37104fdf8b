//! LLVM's offload binary ("Offload Binary" in LLVM's documentation of `.llvm.offloading`): images, each with what
//! produced it and the target that it is for. Version 1 holds one image, version 2 any number.

use crate::bytes::{Bad, Bytes};

pub const MAGIC: &[u8] = &[0x10, 0xff, 0x10, 0xad];

/// More images are a damaged number.
const MOST_IMAGES: u64 = 65_536;
const MOST_STRINGS: u64 = 1024;
const MOST_TEXT: u64 = 4096;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// From 1.
    pub number: u32,
    /// `object`, `bitcode`…
    pub kind: &'static str,
    /// `hip`, `openmp`…
    pub producer: String,
    pub triple: String,
    pub arch: String,
    /// From the binary's beginning.
    pub offset: u64,
    pub size: u64,
}

impl Image {
    /// As clang-offload-bundler would name it.
    pub fn id(&self) -> String {
        format!("{}-{}-{}", self.producer, self.triple, self.arch)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Binary {
    pub version: u32,
    pub images: Vec<Image>,
    /// Bytes of the whole.
    pub size: u64,
    pub problems: Vec<Bad>,
}

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
/// By bit.
const PRODUCERS: [&str; 4] = ["openmp", "cuda", "hip", "sycl"];

/// Reads the tables of the offload binary at the beginning of `bytes`.
pub fn read(bytes: &Bytes) -> Result<Binary, Bad> {
    let cut_off = |_| Bad::new(0, "the header of an offload binary is cut off");
    let head = bytes.read(0, 32).map_err(cut_off)?;
    if !head.starts_with(MAGIC) {
        return Err(Bad::new(
            0,
            "no offload binary: it does not begin with its magic",
        ));
    }
    let version = short(&head, 4);
    let size = long(&head, 8);
    if size < 32 || size > bytes.size() {
        let there = bytes.size();
        let what = format!("an offload binary claims {size} bytes, {there} are there");
        return Err(Bad::new(8, what));
    }
    let bytes = bytes.slice(0, size)?;
    let (entries, count) = match version {
        // The size of the one entry stands where there is a number of them later.
        1 => (long(&head, 16), 1),
        2 => (long(&head, 16), long(&head, 24)),
        other => {
            let what = format!("an offload binary of version {other}; versions 1 and 2 are known");
            return Err(Bad::new(4, what));
        }
    };
    if count > MOST_IMAGES {
        return Err(Bad::new(
            24,
            format!("an offload binary claims {count} images"),
        ));
    }
    let mut binary = Binary {
        version,
        size,
        ..Binary::default()
    };
    let mut end = 0;
    for number in 1..=count as u32 {
        let at = entries.saturating_add(u64::from(number - 1) * ENTRY);
        match image(&bytes, version, number, at) {
            Ok(image) if image.offset < end => {
                let what = format!("image {number} {} lies over the one before it", image.id());
                binary.problems.push(Bad::new(image.offset, what));
            }
            Ok(image) => {
                end = image.offset + image.size;
                binary.images.push(image);
            }
            Err(bad) => binary.problems.push(bad),
        }
        if binary.problems.len() > 16 {
            break;
        }
    }
    Ok(binary)
}

/// Bytes of an image's entry.
const ENTRY: u64 = 40;

fn image(bytes: &Bytes, version: u32, number: u32, at: u64) -> Result<Image, Bad> {
    let outside = |what: &str| {
        let what = format!("{what} of image {number} ends beyond the offload binary");
        move |_| Bad::new(at, what)
    };
    let entry = bytes.read(at, ENTRY).map_err(outside("the entry"))?;
    let kind = u16::from_le_bytes([entry[0], entry[1]]);
    let producer = u16::from_le_bytes([entry[2], entry[3]]);
    let (strings, count) = (long(&entry, 8), long(&entry, 16));
    let (offset, size) = (long(&entry, 24), long(&entry, 32));
    bytes.slice(offset, size).map_err(outside("the image"))?;
    if count > MOST_STRINGS {
        return Err(Bad::new(
            at,
            format!("image {number} claims {count} strings"),
        ));
    }
    // Later versions tell the value's size, too.
    let pair = if version == 1 { 16 } else { 24 };
    let table = bytes
        .read(strings, count * pair)
        .map_err(outside("the table of strings"))?;
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
        let key = string(bytes, long(pair, 0)).map_err(outside("a string"))?;
        let value = |_: ()| string(bytes, long(pair, 8)).map_err(outside("a string"));
        match key.as_str() {
            "triple" => image.triple = value(())?,
            "arch" => image.arch = value(())?,
            _ => {}
        }
    }
    Ok(image)
}

/// Text up to a zero.
fn string(bytes: &Bytes, at: u64) -> Result<String, Bad> {
    let rest = bytes.from(at);
    let text = rest.head(MOST_TEXT)?;
    let end = text.iter().position(|&byte| byte == 0);
    let text = &text[..end.ok_or_else(|| Bad::new(at, ""))?];
    Ok(String::from_utf8_lossy(text).into_owned())
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default())
}

fn short(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default())
}
