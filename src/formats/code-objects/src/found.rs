//! The parts that a walk finds.

use crate::bytes::Bytes;
use crate::host::Host;
use crate::location::{Location, Step};
use crate::object::CodeObject;
use crate::packed::Packed;
use crate::profile::{Indexed, Raw, Trace};
use schemars::JsonSchema;
use serde::Serialize;

/// Something in a file.
#[derive(Debug)]
pub struct Found {
    pub location: Location,
    pub what: What,
    /// Its bytes, except for the machine code of compressed code objects (see [`crate::Options::code`]). `None` for
    /// damage, for compressed bundles and for compressed PTX (see [`crate::Options::ptx`]).
    pub bytes: Option<Bytes>,
}

/// The kind of a part, and its properties. A container comes before its contents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum What {
    /// Serialized by the command line, which adds fields.
    #[serde(skip)]
    CodeObject(Box<CodeObject>),
    Host(Host),
    /// A static archive.
    Archive {
        thin: bool,
    },
    Bundle(Bundle),
    /// LLVM's offload binary.
    OffloadBinary {
        version: u32,
        /// Number of images.
        images: usize,
    },
    Kpack(Kpack),
    /// CUDA's fat binary.
    FatBinary {
        /// Number of entries that could be read.
        entries: usize,
    },
    /// CUDA's assembly language, which the driver compiles.
    Ptx(Ptx),
    /// LLVM bitcode: a translation unit before its device link.
    Bitcode,
    SpirV,
    RawProfile(Raw),
    /// An indexed profile.
    Profile(Indexed),
    Trace(Trace),
    /// A file of another kind.
    #[serde(skip)]
    Unknown {
        /// The first bytes, at most 16.
        first: Vec<u8>,
    },
    /// A part that could not be read.
    #[serde(skip)]
    Damage {
        why: String,
    },
}

/// An offload bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Bundle {
    /// The ids of the entries, in the bundle's order. They name the targets.
    pub entries: Vec<String>,
    /// The header of a compressed bundle.
    pub packed: Option<Packed>,
}

/// PTX.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Ptx {
    /// The lowest architecture that it can be compiled for: `sm_90`. Empty if it is unknown.
    pub target: String,
    /// Version of the language: `9.0`. Empty if it is unknown.
    pub version: String,
    /// In bytes, uncompressed.
    pub size: u64,
}

/// A kpack archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Kpack {
    pub group: String,
    /// Family of GPUs.
    pub family: String,
    /// The code objects are compressed.
    pub packed: bool,
    /// Number of code objects.
    pub kernels: usize,
}

impl Found {
    /// Approximate size in memory of everything but [`Found::bytes`].
    pub(crate) fn weight(&self) -> u64 {
        let steps = self.location.steps.iter().map(|step| match step {
            Step::Member(text) | Step::Section(text) => text.len(),
            Step::Entry { id, .. } | Step::Image { id, .. } => id.len(),
            Step::Kernels { binary, arch } => binary.len() + arch.len(),
            Step::Bundle(_) | Step::FatBinary(_) | Step::Unpacked => 0,
        });
        let what = match &self.what {
            What::CodeObject(object) => {
                let kernels = object.kernels.iter().map(|kernel| 80 + kernel.name.len());
                kernels.sum::<usize>() + 256
            }
            What::Bundle(bundle) => bundle.entries.iter().map(|id| 24 + id.len()).sum(),
            What::Damage { why } => why.len(),
            _ => 256,
        };
        let file = self.location.file.as_os_str().len();
        let location = file + steps.map(|text| 32 + text).sum::<usize>();
        (128 + location + what) as u64
    }
}
