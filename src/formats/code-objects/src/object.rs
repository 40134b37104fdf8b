//! A GPU code object: [`crate::amd`] reads ELF files for AMD's GPUs, [`crate::cuda::cubin`] ELF files for NVIDIA's.

use crate::metadata::Kernel;
use crate::target::Target;
use schemars::JsonSchema;
use serde::Serialize;

/// The triple of cubins.
pub const CUDA_TRIPLE: &str = "nvptx64-nvidia-cuda";

// Symbols of instrumented code.
pub const SAMPLING: &str = "__llvm_profile_sampling_gpu";
pub const COUNTING: &str = "__llvm_profile_instrument_gpu";
pub const VERSION: &str = "__llvm_profile_raw_version";

/// A profile section (`__llvm_prf_*`) of an instrumented code object. A cubin has symbols instead, and the size is the size of
/// all symbols that belong in the section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ProfileSection {
    pub name: String,
    /// In bytes.
    pub size: u64,
}

/// Whether only some blocks (workgroups) count (clang's `--offload-pgo-sampling`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sampling {
    /// Every block counts.
    No,
    Yes,
    /// The code object does not record it. Its compiler samples by default.
    Unknown,
}

/// The instrumentation of a code object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Profile {
    pub sections: Vec<ProfileSection>,
    /// Version of its raw profiles, without variant flags.
    pub raw_version: Option<u64>,
    /// Names of the variant flags; and `instrumented PTX` if devprof has instrumented the PTX that a cubin was compiled from.
    pub variants: Vec<String>,
    pub sampling: Sampling,
    /// Symbols of the tables of section bounds, with which a runtime finds the counters. Cubins have none.
    pub tables: Vec<String>,
}

/// The coverage mapping, which llvm-cov needs to show counts in the source code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Coverage {
    /// Size of `__llvm_covfun` in bytes; in a cubin, of all `__covrec_*`.
    pub functions: u64,
    /// Size of `__llvm_covmap` in bytes; in a cubin, of all `__llvm_coverage_mapping`.
    pub files: u64,
}

/// A GPU code object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CodeObject {
    /// For example `amdgcn-amd-amdhsa` or `nvptx64-nvidia-cuda`.
    pub triple: String,
    pub target: Target,
    /// Code object version of AMD's ABI, 2 to 6. Of a cubin, `EI_ABIVERSION`.
    pub version: u8,
    /// It is not linked, so it cannot be loaded.
    pub relocatable: bool,
    /// In bytes.
    pub size: u64,
    /// In hexadecimal. A cubin has none; if it is instrumented and not compressed, this is the digest of its bytes that the
    /// runtime writes into its profile.
    pub build_id: Option<String>,
    /// Serialized by the command line, which adds a name to each.
    #[serde(skip)]
    pub kernels: Vec<Kernel>,
    pub profile: Option<Profile>,
    pub coverage: Option<Coverage>,
}

impl CodeObject {
    /// Whether it is a cubin.
    pub fn is_cuda(&self) -> bool {
        self.triple == CUDA_TRIPLE
    }
}
