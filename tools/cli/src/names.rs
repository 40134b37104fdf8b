//! Names of functions: read from the names section of a profile, hashed as LLVM does, and demangled.

use anyhow::{Context, bail};
use clap::Args;
use flate2::read::ZlibDecoder;
use md5::{Digest, Md5};
use profraw::names::{Chunk, chunks};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Read;

/// How a command shows names of functions.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Naming {
    /// Show mangled names, as in the code object
    #[arg(long)]
    no_demangle: bool,
}

impl Naming {
    pub fn shown(self, name: &str) -> String {
        match self.no_demangle {
            true => name.to_owned(),
            false => demangled(name),
        }
    }
}

/// zlib's highest compression ratio is about 1,032 to 1.
const MAX_RATIO: u64 = 1040;

/// The names in a names section, by their hash, which is what records contain.
pub fn by_hash(section: &[u8]) -> anyhow::Result<HashMap<u64, String>> {
    let mut names = HashMap::new();
    for text in texts(section) {
        for name in text?.split('\x01').filter(|name| !name.is_empty()) {
            names.insert(hash(name), name.to_owned());
        }
    }
    Ok(names)
}

/// The decompressed texts of a names section. Each is a list of names, separated by bytes of value 1.
pub fn texts(section: &[u8]) -> impl Iterator<Item = anyhow::Result<Cow<'_, str>>> {
    chunks(section).map(|chunk| match chunk? {
        Chunk::Plain(text) => Ok(text.into()),
        Chunk::Packed { bytes, size } => {
            if size > bytes.len() as u64 * MAX_RATIO {
                bail!(
                    "{} bytes of compressed names claim to decompress to {size} bytes",
                    bytes.len()
                );
            }
            let mut text = String::new();
            let mut decoder = ZlibDecoder::new(bytes).take(size);
            decoder
                .read_to_string(&mut text)
                .context("cannot decompress the names")?;
            Ok(text.into())
        }
    })
}

/// LLVM's hash of a function's name: the low 64 bits of its MD5.
pub fn hash(name: &str) -> u64 {
    let digest = Md5::digest(name.as_bytes());
    let mut low = [0; 8];
    low.copy_from_slice(&digest[..8]);
    u64::from_le_bytes(low)
}

/// The symbol of a name in a profile. The names of functions that are local to a file have the file as a prefix:
/// `file;name`, or, with clang's front-end instrumentation, `file:name`.
pub fn symbol(name: &str) -> &str {
    name.rsplit([';', ':']).next().unwrap_or(name)
}

/// The name as in the source.
pub fn demangled(name: &str) -> String {
    let own = symbol(name);
    match cpp_demangle::Symbol::new(own) {
        Ok(symbol) => symbol.demangle().unwrap_or_else(|_| own.to_owned()),
        Err(_) => own.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use std::io::Write;

    #[test]
    fn names_are_found_by_llvms_hash() {
        // The NameRef that clang writes for `main`.
        assert_eq!(by_hash(b"\x04\0main").unwrap()[&0xdb956436e78dd5fa], "main");
    }

    #[test]
    fn names_are_decompressed_and_their_sizes_checked() {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(b"_Z1av\x01_Z1bv").unwrap();
        let packed = encoder.finish().unwrap();
        let section = [&[11, packed.len() as u8], &packed[..]].concat();
        let mut names: Vec<_> = by_hash(&section).unwrap().into_values().collect();
        names.sort();
        assert_eq!(names, ["_Z1av", "_Z1bv"]);
        let huge = [
            &[0xff, 0xff, 0xff, 0xff, 0x7f, packed.len() as u8],
            &packed[..],
        ]
        .concat();
        assert!(by_hash(&huge).unwrap_err().to_string().contains("claim"));
    }

    #[test]
    fn names_are_demangled() {
        assert_eq!(demangled("_Z6halvedj"), "halved(unsigned int)");
        assert_eq!(demangled("a.hip;_ZL4donePi"), "done(int*)");
        assert_eq!(demangled("a.hip:_ZL4donePi"), "done(int*)");
        assert_eq!(demangled("branch"), "branch");
    }
}
