//! The command `gpu-model`: writes the topology files that ROCr needs in addition to the library.

use std::path::Path;
use std::process::ExitCode;

use gpu_model::topology;

const USAGE: &str = "usage: gpu-model topology DIR [--gfx gfx1100]

Writes the topology of the modelled GPU to DIR. Then run a HIP or HSA program with
HSA_MODEL_TOPOLOGY=DIR HSA_MODEL_LIB=/path/to/libgpu_model.so HSA_ENABLE_INTERRUPT=0 HSA_ENABLE_SDMA=0
GPU_PINNED_MIN_XFER_SIZE=4095 (ROCr's model mode cannot pin host memory).
GPU_MODEL_STATS=1 prints the number of executed instructions at exit.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (directory, gfx) = match arguments[..] {
        ["topology", directory] if !directory.starts_with('-') => (directory, "gfx1100"),
        ["topology", directory, "--gfx", gfx] => (directory, gfx),
        ["-h" | "--help"] | ["topology", "-h" | "--help"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    let Some(target) = topology::TARGETS.iter().find(|target| target.name == gfx) else {
        let known: Vec<&str> = topology::TARGETS.iter().map(|t| t.name).collect();
        eprintln!(
            "gpu-model: unknown target {gfx}; supported: {}",
            known.join(", ")
        );
        return ExitCode::FAILURE;
    };
    match topology::create(Path::new(directory), *target) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gpu-model: cannot write the topology to {directory}: {error}");
            ExitCode::FAILURE
        }
    }
}
