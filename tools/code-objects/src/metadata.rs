//! The metadata note of a code object (msgpack; LLVM's AMDGPU usage guide, "Code Object Metadata"): its kernels.

use crate::bytes::Bad;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// A kernel, and what it takes of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Kernel {
    /// As the compiler has it (mangled).
    #[serde(rename(deserialize = ".name"))]
    pub name: String,
    #[serde(rename(deserialize = ".vgpr_count"), default)]
    pub vgprs: u32,
    #[serde(rename(deserialize = ".agpr_count"), default)]
    pub agprs: u32,
    #[serde(rename(deserialize = ".sgpr_count"), default)]
    pub sgprs: u32,
    #[serde(rename(deserialize = ".vgpr_spill_count"), default)]
    pub vgpr_spills: u32,
    #[serde(rename(deserialize = ".sgpr_spill_count"), default)]
    pub sgpr_spills: u32,
    /// Bytes of LDS a workgroup, without what is asked for at the launch.
    #[serde(rename(deserialize = ".group_segment_fixed_size"), default)]
    pub lds: u32,
    /// Bytes of scratch a work item.
    #[serde(rename(deserialize = ".private_segment_fixed_size"), default)]
    pub scratch: u32,
    /// Its calls may need more scratch than is known.
    #[serde(rename(deserialize = ".uses_dynamic_stack"), default)]
    pub dynamic_stack: bool,
    /// Bytes of arguments.
    #[serde(rename(deserialize = ".kernarg_segment_size"), default)]
    pub arguments: u32,
    /// Work items of the largest workgroup.
    #[serde(rename(deserialize = ".max_flat_workgroup_size"), default)]
    pub workgroup: u32,
    /// Work items a wave.
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

/// The kernels in a note's description.
pub fn kernels(note: &[u8]) -> Result<Vec<Kernel>, Bad> {
    let mut input = std::io::Cursor::new(note);
    let mut decoder = rmp_serde::Deserializer::new(&mut input);
    // Real metadata is six deep.
    decoder.set_max_depth(64);
    let metadata = Metadata::deserialize(&mut decoder);
    let at = input.position();
    match metadata {
        Ok(metadata) => Ok(metadata.kernels),
        Err(error) => Err(Bad::new(
            at.min(note.len() as u64),
            format!("the metadata of the kernels: {error}"),
        )),
    }
}
