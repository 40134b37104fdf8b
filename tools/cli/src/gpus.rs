//! The GPUs of this machine, as the kernel's driver describes them, or the model's that ROCr is told to take.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Their architectures (`gfx1100`), each once.
pub fn architectures() -> BTreeSet<String> {
    all().into_iter().collect()
}

/// The architecture of each.
pub fn all() -> Vec<String> {
    let model = env::var_os("HSA_MODEL_TOPOLOGY").filter(|dir| !dir.is_empty());
    let topology = model.map_or("/sys/class/kfd/kfd/topology".into(), PathBuf::from);
    described(&topology)
}

fn described(topology: &Path) -> Vec<String> {
    let nodes = fs::read_dir(topology.join("nodes")).into_iter().flatten();
    nodes
        .flatten()
        .filter_map(|node| fs::read_to_string(node.path().join("properties")).ok())
        .filter_map(|properties| architecture(&properties))
        .collect()
}

/// Of a node; `None`: a processor.
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
    fn the_drivers_number_is_a_name() {
        let named = |number: u32| architecture(&format!("cpu 0\ngfx_target_version {number}\n"));
        assert_eq!(named(110_000).as_deref(), Some("gfx1100"));
        assert_eq!(named(90_010).as_deref(), Some("gfx90a"));
        assert_eq!(named(90_402).as_deref(), Some("gfx942"));
        assert_eq!(named(0), None);
    }
}
