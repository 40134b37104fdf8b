//! Recognizes files by their first bytes.

use crate::cuda::fatbin;
use crate::{archive, bundle, kpack, offload, packed};
use goblin::elf::header::ELFMAG;
use profraw::kind::Kind as Profile;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An ELF file of the host or of a GPU.
    Elf,
    /// A static archive.
    Archive,
    /// Clang's offload bundle, compressed or not.
    Bundle,
    /// LLVM's offload binary.
    OffloadBinary,
    /// CUDA's fat binary.
    FatBinary,
    /// A kpack archive.
    Kpack,
    /// A profile, raw or indexed.
    Profile(Profile),
    /// A devprof trace.
    Trace,
    /// LLVM bitcode, with or without its wrapper (`isBitcode` in LLVM's `BitcodeReader.h`).
    Bitcode,
    SpirV,
    Unknown,
}

impl Kind {
    /// `head`: the first bytes of the file; 32 are enough.
    pub fn of(head: &[u8]) -> Kind {
        if let Some(profile) = Profile::of(head) {
            return Kind::Profile(profile);
        }
        let kinds: [(&[u8], Kind); 12] = [
            (ELFMAG, Kind::Elf),
            (archive::FULL, Kind::Archive),
            (archive::THIN, Kind::Archive),
            (bundle::MAGIC, Kind::Bundle),
            (packed::MAGIC, Kind::Bundle),
            (offload::MAGIC, Kind::OffloadBinary),
            (fatbin::MAGIC, Kind::FatBinary),
            (kpack::MAGIC, Kind::Kpack),
            (&tracefile::format::MAGIC, Kind::Trace),
            (b"BC\xc0\xde", Kind::Bitcode),
            (b"\xde\xc0\x17\x0b", Kind::Bitcode),
            (b"\x03\x02\x23\x07", Kind::SpirV),
        ];
        let kind = kinds.into_iter().find(|(magic, _)| head.starts_with(magic));
        kind.map_or(Kind::Unknown, |(_, kind)| kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_recognized_by_their_first_bytes() {
        let indexed = Profile::Indexed { version: None };
        for (head, kind) in [
            (&b"\x7fELF\x02\x01"[..], Kind::Elf),
            (b"!<arch>\n", Kind::Archive),
            (b"!<thin>\n", Kind::Archive),
            (b"__CLANG_OFFLOAD_BUNDLE__", Kind::Bundle),
            (b"CCOB\x03\0", Kind::Bundle),
            (b"\x10\xff\x10\xad", Kind::OffloadBinary),
            (b"\x50\xed\x55\xba\x01\0", Kind::FatBinary),
            (b"KPAK\x01\0\0\0", Kind::Kpack),
            (b"\xfflprofi\x81", Kind::Profile(indexed)),
            (b"DEVPROFT", Kind::Trace),
            (b"BC\xc0\xde", Kind::Bitcode),
            (b"\x03\x02\x23\x07", Kind::SpirV),
            (b"#include", Kind::Unknown),
            (b"", Kind::Unknown),
        ] {
            assert_eq!(Kind::of(head), kind, "{head:?}");
        }
    }
}
