//! The GPUs of this machine: AMD's from the topology that the amdgpu driver (or, with `HSA_MODEL_TOPOLOGY`, the GPU model)
//! describes, NVIDIA's from the files of its driver. No GPU runtime is loaded.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The directory in which NVIDIA's driver has a directory for each GPU.
const NVIDIA: &str = "proc/driver/nvidia/gpus";
/// WSL2 has NVIDIA's driver for Windows. There are the device file of all GPUs, the driver's library, and nvidia-smi.
const WSL_DEVICE: &str = "dev/dxg";
pub const WSL_DRIVER: &str = "usr/lib/wsl/lib/libcuda.so.1";
const WSL_SMI: &str = "usr/lib/wsl/lib/nvidia-smi";
/// The architecture of simulated GPUs by default, and the only one of ROCr's model mode.
pub const SIMULATED: &str = "gfx1100";
const UNKNOWN: &str = "a GPU of an unknown model";

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

/// Whether this is WSL2 with NVIDIA's driver. `root`: `/`, or the directory that a test uses instead.
pub fn is_wsl(root: &Path) -> bool {
    [WSL_DEVICE, WSL_DRIVER]
        .iter()
        .all(|file| root.join(file).exists())
}

/// A field of each GPU, which WSL2's nvidia-smi prints. Empty if it cannot be run.
pub fn ask_wsl(root: &Path, field: &str) -> Vec<String> {
    let answer = ask(&root.join(WSL_SMI), field).unwrap_or_default();
    answer.lines().map(|line| line.trim().to_owned()).collect()
}

/// A field of each GPU, which nvidia-smi prints, one per line. `None` if it cannot be run.
fn ask(nvidia_smi: &Path, field: &str) -> Option<String> {
    let output = Command::new(nvidia_smi)
        .args([&format!("--query-gpu={field}"), "--format=csv,noheader"])
        .stdin(Stdio::null())
        .output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The names of NVIDIA's GPUs. `root`: `/`, or the directory that a test uses instead.
pub fn nvidia(root: &Path) -> Vec<String> {
    let listed = in_driver_files(root);
    if !listed.is_empty() || !is_wsl(root) {
        return listed;
    }
    let mut named = ask_wsl(root, "name");
    if named.is_empty() {
        named.push(UNKNOWN.to_owned());
    }
    named
}

fn in_driver_files(root: &Path) -> Vec<String> {
    let entries = fs::read_dir(root.join(NVIDIA)).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let name = |path: PathBuf| {
        let text = fs::read_to_string(path.join("information")).unwrap_or_default();
        let model = text.lines().find_map(|line| line.strip_prefix("Model:"));
        model.map_or(UNKNOWN.to_owned(), |name| name.trim().to_owned())
    };
    paths.into_iter().map(name).collect()
}

/// The architectures (`sm_90`) of NVIDIA's GPUs, which nvidia-smi knows. Empty if it cannot be run.
pub fn nvidia_architectures() -> BTreeSet<String> {
    let in_wsl = Path::new("/").join(WSL_SMI);
    let mut programs = [Path::new("nvidia-smi"), &in_wsl].into_iter();
    let text = programs.find_map(|program| ask(program, "compute_cap"));
    sm(&text.unwrap_or_default()).collect()
}

/// The architectures for the compute capabilities (`9.0`) in the lines of a text.
fn sm(text: &str) -> impl Iterator<Item = String> {
    let capabilities = text.lines().filter_map(|line| line.trim().split_once('.'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    capabilities
        .filter(move |(major, minor)| is_number(major) && is_number(minor))
        .map(|(major, minor)| format!("sm_{major}{minor}"))
}

/// The number and the suffix of a CUDA architecture: 90 and `a` for `sm_90a`.
pub fn compute_capability(arch: &str) -> Option<(u32, &str)> {
    let rest = arch.strip_prefix("sm_")?;
    let digits = rest.trim_end_matches(['a', 'f']);
    Some((digits.parse().ok()?, &rest[digits.len()..]))
}

/// Whether a cubin for the first architecture runs on a GPU of the second: on one of the same generation that is not older,
/// or, if it uses features of only one architecture (`sm_90a`), on this one.
pub fn runs_on(cubin: (u32, &str), gpu: (u32, &str)) -> bool {
    match cubin.1 {
        "a" => cubin.0 == gpu.0,
        _ => cubin.0 / 10 == gpu.0 / 10 && cubin.0 <= gpu.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locate::directory;

    #[test]
    fn nvidias_gpus_are_listed_without_its_libraries() {
        assert_eq!(nvidia(directory(&[]).path()), [""; 0]);
        let files =
            ["0000:1b:00.0", "0000:43:00.0"].map(|bus| format!("{NVIDIA}/{bus}/information"));
        let root = directory(&[&files[0], &files[1]]);
        let text = "Model: \t\t NVIDIA H200\nIRQ:   \t\t 17\n";
        fs::write(root.path().join(&files[0]), text).unwrap();
        assert_eq!(nvidia(root.path()), ["NVIDIA H200", UNKNOWN]);
        let found: Vec<String> = sm("9.0\n12.1\n[N/A]\n").collect();
        assert_eq!(found, ["sm_90", "sm_121"]);
    }

    #[test]
    fn wsl_has_a_gpu_whose_name_nvidia_smi_knows() {
        assert_eq!(nvidia(directory(&[WSL_DEVICE]).path()), [""; 0]);
        let root = directory(&[WSL_DEVICE, WSL_DRIVER]);
        assert_eq!(nvidia(root.path()), [UNKNOWN]);
    }

    #[test]
    fn cubins_run_on_newer_gpus_of_their_generation() {
        let capability = |arch| compute_capability(arch).unwrap();
        let runs = |cubin, gpu| runs_on(capability(cubin), capability(gpu));
        assert_eq!(compute_capability("gfx90a"), None);
        assert!(runs("sm_80", "sm_86") && runs("sm_90a", "sm_90") && runs("sm_90", "sm_90"));
        assert!(runs("sm_120f", "sm_121") && runs("sm_100", "sm_103"));
        assert!(!runs("sm_86", "sm_80") && !runs("sm_80", "sm_90") && !runs("sm_100a", "sm_103"));
    }

    #[test]
    fn gfx_target_versions_are_decoded() {
        let decoded = |number: u32| architecture(&format!("cpu 0\ngfx_target_version {number}\n"));
        assert_eq!(decoded(110_000).as_deref(), Some("gfx1100"));
        assert_eq!(decoded(90_010).as_deref(), Some("gfx90a"));
        assert_eq!(decoded(90_402).as_deref(), Some("gfx942"));
        assert_eq!(decoded(0), None);
    }
}
