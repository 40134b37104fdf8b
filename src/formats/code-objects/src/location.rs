//! Locations: a file, and the path through the containers in it.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::fmt;
use std::path::{Path, PathBuf};

/// A part of a container.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Of a static archive.
    Member(String),
    /// Of an ELF file.
    Section(String),
    /// One of several consecutive offload bundles, one per translation unit. Counts from 1.
    Bundle(u32),
    /// One of several consecutive fat binaries of CUDA, one per translation unit or device link. Counts from 1.
    FatBinary(u32),
    /// The uncompressed contents. Further offsets are in these.
    Unpacked,
    /// Of an offload bundle or a fat binary. The number counts from 1.
    Entry { number: u32, id: String },
    /// Of one of several consecutive offload binaries. The number counts from 1 across all of them.
    Image { number: u32, id: String },
    /// Of a kpack archive: the name of the binary that they were moved from, and their architecture.
    Kernels { binary: String, arch: String },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Step::Member(name) => write!(f, "member {name}"),
            Step::Section(name) => write!(f, "section {name}"),
            Step::Bundle(number) => write!(f, "bundle {number}"),
            Step::FatBinary(number) => write!(f, "fat binary {number}"),
            Step::Unpacked => write!(f, "unpacked"),
            Step::Entry { number, id } => write!(f, "entry {number} {id}"),
            Step::Image { number, id } => write!(f, "image {number} {id}"),
            Step::Kernels { binary, arch } => write!(f, "kernels of {binary} for {arch}"),
        }
    }
}

/// The location of something that was found.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
pub struct Location {
    #[serde(serialize_with = "lossy")]
    pub file: PathBuf,
    pub steps: Vec<Step>,
    /// Bytes from the beginning of the file, or after [`Step::Unpacked`], of the uncompressed contents.
    pub offset: u64,
}

/// A path as text, although it need not be UTF-8.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

impl Location {
    pub fn new(file: &Path) -> Location {
        Location {
            file: file.into(),
            steps: Vec::new(),
            offset: 0,
        }
    }

    /// The location of a part, `at` bytes after the beginning of this one.
    pub fn step(&self, step: Step, at: u64) -> Location {
        let mut location = self.at(at);
        if step == Step::Unpacked {
            location.offset = 0;
        }
        location.steps.push(step);
        location
    }

    /// The location `at` bytes after the beginning of this one.
    pub fn at(&self, at: u64) -> Location {
        Location {
            offset: self.offset.saturating_add(at),
            ..self.clone()
        }
    }
}

/// For example `lib.so: section .hip_fatbin, bundle 1, entry 2 hip-amdgcn-amd-amdhsa--gfx1100, at 0x1000`. A file is only
/// its name.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.steps.is_empty() && self.offset == 0 {
            return Ok(());
        }
        write!(f, ": ")?;
        for step in &self.steps {
            write!(f, "{step}, ")?;
        }
        write!(f, "at {:#x}", self.offset)
    }
}
