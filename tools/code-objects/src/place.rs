//! Where something was found: the file, and the way into it.

use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// One thing inside of another.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Of an archive.
    Member(String),
    /// Of an ELF file.
    Section(String),
    /// Offload bundles follow one another, one a translation unit; they count from 1.
    Bundle(u32),
    /// Offsets from here on count in what was unpacked.
    Unpacked,
    /// Of an offload bundle; they count from 1.
    Entry { number: u32, id: String },
    /// Of LLVM's offload binary, several of which follow one another; they count from 1.
    Image { number: u32, id: String },
    /// Of a kpack archive: what the binary is called that it was taken from.
    Kernels { binary: String, arch: String },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Step::Member(name) => write!(f, "member {name}"),
            Step::Section(name) => write!(f, "section {name}"),
            Step::Bundle(number) => write!(f, "bundle {number}"),
            Step::Unpacked => write!(f, "unpacked"),
            Step::Entry { number, id } => write!(f, "entry {number} {id}"),
            Step::Image { number, id } => write!(f, "image {number} {id}"),
            Step::Kernels { binary, arch } => write!(f, "kernels of {binary} for {arch}"),
        }
    }
}

/// Where something was found.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Place {
    pub file: PathBuf,
    pub steps: Vec<Step>,
    /// Bytes from the file's beginning; behind [`Step::Unpacked`], from the beginning of what was unpacked.
    pub offset: u64,
}

impl Place {
    pub fn new(file: &Path) -> Place {
        Place {
            file: file.into(),
            steps: Vec::new(),
            offset: 0,
        }
    }

    /// What is `at` bytes further in.
    pub fn step(&self, step: Step, at: u64) -> Place {
        let mut place = self.at(at);
        if step == Step::Unpacked {
            place.offset = 0;
        }
        place.steps.push(step);
        place
    }

    pub fn at(&self, at: u64) -> Place {
        Place {
            offset: self.offset.saturating_add(at),
            ..self.clone()
        }
    }
}

/// `lib.so: section .hip_fatbin, bundle 1, entry 2 hip-amdgcn-amd-amdhsa--gfx1100, at 0x1000`; a whole file is its name.
impl fmt::Display for Place {
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
