//! The GPUs, and whether this user may use them.

use super::finding::{Finding, Topic};
use crate::gpus;
use crate::llvm::entries;
use crate::locate::Component;
use crate::readable::listed;
use rustix::fs::Access;
use std::collections::BTreeMap;
use std::path::Path;

const TOPIC: Topic = Topic("GPU");
const KFD: &str = "/dev/kfd";
/// The directory of the GPUs' device files, which programs need in addition to [`KFD`].
const DRI: &str = "/dev/dri";

pub fn check() -> Vec<Finding> {
    let gpus = counted(gpus::all());
    if let Some(library) = std::env::var_os("HSA_MODEL_LIB").filter(|library| !library.is_empty()) {
        let path = library.display();
        return vec![if Path::new(&library).is_file() {
            TOPIC.ok(format!("the GPU model {path}: {gpus}"))
        } else {
            TOPIC.missing(
                format!("HSA_MODEL_LIB is {path}, which does not exist"),
                "unset HSA_MODEL_LIB HSA_MODEL_TOPOLOGY; `devprof run --model` sets them",
            )
        }];
    }
    let kfd = Path::new(KFD);
    if !kfd.exists() {
        let driver = "AMD GPUs need the amdgpu kernel driver: modprobe amdgpu";
        return vec![match Component::HsaRuntime.find() {
            Ok(_) => TOPIC.warning(
                format!("no {KFD}: programs can run only on simulated GPUs"),
                format!("devprof run --model PROGRAM; {driver}"),
            ),
            Err(error) => TOPIC.missing(format!("no {KFD}, and no simulator ({error:#})"), driver),
        }];
    }
    let mut findings = Vec::new();
    findings.push(if gpus.is_empty() {
        TOPIC.missing(
            format!("{KFD} exists, but its driver lists no GPU"),
            "dmesg | grep -i amdgpu",
        )
    } else {
        TOPIC.ok(gpus)
    });
    let mut denied = entries(DRI, "renderD");
    denied.insert(0, kfd.to_owned());
    denied.retain(|path| !is_accessible(path));
    findings.push(if denied.is_empty() {
        TOPIC.ok(format!("this user can access {KFD} and {DRI}"))
    } else {
        TOPIC.missing(
            format!("this user cannot read and write {}", listed(&denied)),
            "sudo usermod -a -G render,video $USER, then log in again",
        )
    });
    findings
}

/// Whether this machine has AMD's kernel driver. `root`: `/`, or the directory that a test uses instead.
pub fn has_amd_gpu(root: &Path) -> bool {
    root.join("dev/kfd").exists()
}

/// Lists the GPUs with their numbers: `gfx90a, 2 gfx942`.
pub fn counted(gpus: Vec<String>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for gpu in gpus {
        *counts.entry(gpu).or_default() += 1;
    }
    let each = counts.iter().map(|(gpu, count)| match count {
        1 => gpu.clone(),
        _ => format!("{count} {gpu}"),
    });
    each.collect::<Vec<_>>().join(", ")
}

/// Whether this user can read and write the device. It is not opened, because that would have side effects in the driver.
fn is_accessible(path: &Path) -> bool {
    rustix::fs::access(path, Access::READ_OK | Access::WRITE_OK).is_ok()
}
