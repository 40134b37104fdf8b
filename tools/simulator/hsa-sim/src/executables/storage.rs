//! The source of a code object: a file or memory of the program.

use std::ops::Range;
use std::path::PathBuf;

/// The source of a code object.
#[derive(Debug)]
pub enum Storage {
    File {
        path: PathBuf,
        offset: usize,
        /// A copy of the file's bytes. HSA's functions return its address as the storage of the code object.
        bytes: Vec<u8>,
    },
    /// Memory of the program.
    Memory { base: usize, size: usize },
    /// A copy of such memory.
    Copy { bytes: Box<[u8]> },
}

impl Storage {
    pub fn bytes(&self) -> &[u8] {
        match self {
            Storage::File { bytes, .. } => bytes,
            Storage::Copy { bytes } => bytes,
            Storage::Memory { base, size } => {
                // SAFETY: the program keeps the memory as long as readers and loaded code objects use it (hsa.h).
                unsafe { std::slice::from_raw_parts(*base as *const u8, *size) }
            }
        }
    }

    /// The range of the code object's bytes in this process.
    pub fn memory(&self) -> Range<usize> {
        let bytes = self.bytes();
        let base = bytes.as_ptr() as usize;
        base..base + bytes.len()
    }

    /// The value of `HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI`.
    pub fn uri(&self) -> String {
        match self {
            Storage::File {
                path,
                offset,
                bytes,
                ..
            } => {
                let mut uri = String::from("file://");
                for &byte in path.as_os_str().as_encoded_bytes() {
                    if byte.is_ascii_alphanumeric() || b"/_.~-".contains(&byte) {
                        uri.push(char::from(byte));
                    } else {
                        uri.push_str(&format!("%{byte:02X}"));
                    }
                }
                if *offset != 0 {
                    uri.push_str(&format!("#offset={offset}&size={}", bytes.len()));
                }
                uri
            }
            Storage::Memory { .. } | Storage::Copy { .. } => {
                let (process, memory) = (std::process::id(), self.memory());
                let (base, size) = (memory.start, memory.len());
                format!("memory://{process}#offset={base:#x}&size={size}")
            }
        }
    }
}
