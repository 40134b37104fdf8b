//! The GPUs of this machine, from the topology that the amdgpu driver (or, with `HSA_MODEL_TOPOLOGY`, the GPU model)
//! describes.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The different architectures (`gfx1100`) of the GPUs.
pub fn architectures() -> BTreeSet<String> {
    all().into_iter().collect()
}

/// The architecture of each GPU.
pub fn all() -> Vec<String> {
    let model = env::var_os("HSA_MODEL_TOPOLOGY").filter(|dir| !dir.is_empty());
    let topology = model.map_or("/sys/class/kfd/kfd/topology".into(), PathBuf::from);
    in_topology(&topology)
}

fn in_topology(topology: &Path) -> Vec<String> {
    let nodes = fs::read_dir(topology.join("nodes")).into_iter().flatten();
    nodes
        .flatten()
        .filter_map(|node| fs::read_to_string(node.path().join("properties")).ok())
        .filter_map(|properties| architecture(&properties))
        .collect()
}

/// The architecture of a node. `None` if the node is a CPU.
fn architecture(properties: &str) -> Option<String> {
    let mut lines = properties.lines();
    let number = lines.find_map(|line| line.strip_prefix("gfx_target_version "))?;
    let number: u32 = number.trim().parse().ok().filter(|&number| number > 0)?;
    let (major, minor, step) = (number / 10_000, number / 100 % 100, number % 100);
    Some(format!("gfx{major}{minor:x}{step:x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gfx_target_versions_are_decoded() {
        let decoded = |number: u32| architecture(&format!("cpu 0\ngfx_target_version {number}\n"));
        assert_eq!(decoded(110_000).as_deref(), Some("gfx1100"));
        assert_eq!(decoded(90_010).as_deref(), Some("gfx90a"));
        assert_eq!(decoded(90_402).as_deref(), Some("gfx942"));
        assert_eq!(decoded(0), None);
    }
}
