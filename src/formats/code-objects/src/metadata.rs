//! The kernels in the metadata note of a code object. The note is MessagePack ("Code Object Metadata" in LLVM's AMDGPU
//! usage guide).

use crate::error::Error;
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// A kernel and the resources that it needs. Of a CUDA kernel, the fields that NVIDIA's GPUs do not have are 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Kernel {
    /// Mangled.
    #[serde(rename(deserialize = ".name"))]
    pub name: String,
    /// Vector registers per work item; registers per thread.
    #[serde(rename(deserialize = ".vgpr_count"), default)]
    pub vgprs: u32,
    /// Accumulation vector registers per work item.
    #[serde(rename(deserialize = ".agpr_count"), default)]
    pub agprs: u32,
    /// Scalar registers per wave.
    #[serde(rename(deserialize = ".sgpr_count"), default)]
    pub sgprs: u32,
    #[serde(rename(deserialize = ".vgpr_spill_count"), default)]
    pub vgpr_spills: u32,
    #[serde(rename(deserialize = ".sgpr_spill_count"), default)]
    pub sgpr_spills: u32,
    /// Bytes of LDS per workgroup, without the bytes that the launch requests; of shared memory per block.
    #[serde(rename(deserialize = ".group_segment_fixed_size"), default)]
    pub lds: u32,
    /// Bytes of scratch memory per work item; of stack per thread.
    #[serde(rename(deserialize = ".private_segment_fixed_size"), default)]
    pub scratch: u32,
    /// It may need more scratch memory, depending on its calls.
    #[serde(rename(deserialize = ".uses_dynamic_stack"), default)]
    pub dynamic_stack: bool,
    /// Bytes of arguments.
    #[serde(rename(deserialize = ".kernarg_segment_size"), default)]
    pub arguments: u32,
    /// Maximum number of work items per workgroup, or of threads per block.
    #[serde(rename(deserialize = ".max_flat_workgroup_size"), default)]
    pub workgroup: u32,
    /// Work items per wave, or threads per warp.
    #[serde(rename(deserialize = ".wavefront_size"), default)]
    pub wave: u32,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(rename = "amdhsa.kernels", default)]
    kernels: Vec<Kernel>,
    #[serde(rename = "amdhsa.target", default)]
    _target: Option<IgnoredAny>,
}

/// Reads the kernels from a note's description.
pub fn kernels(note: &[u8]) -> Result<Vec<Kernel>, Error> {
    let mut input = std::io::Cursor::new(note);
    let mut decoder = rmp_serde::Deserializer::new(&mut input);
    // Real metadata has a depth of six.
    decoder.set_max_depth(64);
    let metadata = Metadata::deserialize(&mut decoder);
    let at = input.position();
    match metadata {
        Ok(metadata) => Ok(metadata.kernels),
        Err(error) => Err(error!(at.min(note.len() as u64); "kernel metadata: {error}")),
    }
}
