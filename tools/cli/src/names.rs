//! Names of functions: out of a profile's names section, by their hashes, and as a person writes them.

use clap::Args;
use flate2::read::ZlibDecoder;
use md5::{Digest, Md5};
use profraw::names::{Chunk, chunks};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Read;

/// How a verb shows names of functions.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Naming {
    /// Show names as the code object has them, not as the source does
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

/// zlib packs at most about 1,032 to 1.
const MOST_EXPANSION: u64 = 1040;

/// The names in a names section, by the hash that records have.
pub fn by_hash(section: &[u8]) -> Result<HashMap<u64, String>, String> {
    let mut names = HashMap::new();
    for text in texts(section) {
        for name in text?.split('\x01').filter(|name| !name.is_empty()) {
            names.insert(hash(name), name.to_owned());
        }
    }
    Ok(names)
}

/// The texts of a names section, unpacked: names with a byte 1 between them.
pub fn texts(section: &[u8]) -> impl Iterator<Item = Result<Cow<'_, str>, String>> {
    chunks(section).map(|chunk| match chunk.map_err(|e| e.to_string())? {
        Chunk::Plain(text) => Ok(text.into()),
        Chunk::Packed { bytes, size } => {
            if size > bytes.len() as u64 * MOST_EXPANSION {
                return Err(format!(
                    "{} bytes of names claim to unpack to {size}",
                    bytes.len()
                ));
            }
            let mut text = String::new();
            let mut decoder = ZlibDecoder::new(bytes).take(size);
            decoder
                .read_to_string(&mut text)
                .map_err(|e| format!("the compressed names do not unpack: {e}"))?;
            Ok(text.into())
        }
    })
}

/// The low 64 bits of the MD5, as LLVM has it for a function's name.
pub fn hash(name: &str) -> u64 {
    let digest = Md5::digest(name.as_bytes());
    let mut low = [0; 8];
    low.copy_from_slice(&digest[..8]);
    u64::from_le_bytes(low)
}

/// The symbol's name, of the name that a profile has. A function that is local to a file has that before it:
/// `file;name`, or, by clang's own instrumentation, `file:name`.
pub fn symbol(name: &str) -> &str {
    name.rsplit([';', ':']).next().unwrap_or(name)
}

/// A name as its source has it.
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
    fn compressed_names_unpack_and_do_not_lie_about_their_size() {
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
        assert!(by_hash(&huge).unwrap_err().contains("claim"));
    }

    #[test]
    fn names_read_as_in_the_source() {
        assert_eq!(demangled("_Z6halvedj"), "halved(unsigned int)");
        assert_eq!(demangled("a.hip;_ZL4donePi"), "done(int*)");
        assert_eq!(demangled("a.hip:_ZL4donePi"), "done(int*)");
        assert_eq!(demangled("branch"), "branch");
    }
}
