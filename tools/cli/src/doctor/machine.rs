//! The GPUs, and whether this user may use them.

use super::Finding;
use crate::gpus;
use crate::parts::Part;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const TOPIC: &str = "GPU";
const KFD: &str = "/dev/kfd";
/// GPUs' own devices, beside [`KFD`].
const DRI: &str = "/dev/dri";

pub fn look() -> Vec<Finding> {
    let gpus = counted(gpus::all());
    if let Some(library) = std::env::var_os("HSA_MODEL_LIB").filter(|library| !library.is_empty()) {
        return vec![match Path::new(&library).is_file() {
            true => Finding::good(
                TOPIC,
                format!("the GPU model {}: {gpus}", library.display()),
            ),
            false => Finding::missing(
                TOPIC,
                format!(
                    "HSA_MODEL_LIB names {}, which is not there",
                    library.display()
                ),
                "unset HSA_MODEL_LIB HSA_MODEL_TOPOLOGY, or let `devprof run --model` set them",
            ),
        }];
    }
    let kfd = Path::new(KFD);
    if !kfd.exists() {
        let driver = "a GPU of AMD's needs the kernel's amdgpu driver: modprobe amdgpu";
        return vec![match Part::Model.find() {
            Ok(_) => Finding::warning(
                TOPIC,
                format!("no {KFD}: programs run on the GPU model only"),
                format!("devprof run --model PROGRAM; {driver}"),
            ),
            Err(why) => {
                Finding::missing(TOPIC, format!("no {KFD}, and no GPU model ({why})"), driver)
            }
        }];
    }
    let mut findings = Vec::new();
    findings.push(match gpus.is_empty() {
        false => Finding::good(TOPIC, gpus),
        true => Finding::missing(
            TOPIC,
            format!("{KFD} is there and its driver knows no GPU"),
            "dmesg | grep -i amdgpu",
        ),
    });
    let entries = fs::read_dir(DRI).into_iter().flatten().flatten();
    let render = entries.filter(|entry| entry.file_name().as_bytes().starts_with(b"renderD"));
    let mut devices = vec![kfd.to_owned()];
    devices.extend(render.map(|entry| entry.path()));
    let refused: Vec<String> = devices
        .iter()
        .filter(|path| !may_use(path))
        .map(|path| path.display().to_string())
        .collect();
    findings.push(match refused.is_empty() {
        true => Finding::good(TOPIC, format!("this user may use {KFD} and {DRI}")),
        false => Finding::missing(
            TOPIC,
            format!("this user may not read and write {}", refused.join(", ")),
            "sudo usermod -a -G render,video $USER, then log in again",
        ),
    });
    findings
}

/// `gfx90a, 2 gfx942`
fn counted(gpus: Vec<String>) -> String {
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    for gpu in gpus {
        *numbers.entry(gpu).or_default() += 1;
    }
    let each = numbers.iter().map(|(gpu, number)| match number {
        1 => gpu.clone(),
        _ => format!("{number} {gpu}"),
    });
    each.collect::<Vec<_>>().join(", ")
}

/// Without opening it, which would start something in the driver.
fn may_use(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: the path is a C string that outlives the call, and the call only reads it.
    unsafe { libc::access(path.as_ptr(), libc::R_OK | libc::W_OK) == 0 }
}
