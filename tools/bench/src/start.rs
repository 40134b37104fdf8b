//! The start of a HIP program on the simulated GPUs of `devprof run --model`: tools/simulator/hsa-sim, and ROCr's model mode.

use crate::measure::{alternate, directory, in_root, median, numbers, programs, repo, target};
use clap::Args;
use std::process::Command;

#[derive(Args)]
pub struct Options {
    /// Runs of each variant, alternating
    #[arg(long, default_value_t = 20)]
    runs: usize,
}

/// The variants: the options of `devprof run`.
const VARIANTS: [(&str, &str); 3] = [
    ("simulator, 1 GPU", "--model"),
    (
        "simulator, 8 GPUs (gfx1100 and gfx942)",
        "--model --gpus 8 --arch gfx1100,gfx942",
    ),
    ("ROCr's model mode", "--model=rocr"),
];

pub fn run(options: &Options) -> Result<(), String> {
    let prefix = target().join("bench/prefix");
    let installed = Command::new(repo().join("tools/install"))
        .arg(&prefix)
        .stdout(std::process::Stdio::null())
        .status();
    if !installed.is_ok_and(|status| status.success()) {
        return Err("tools/install has failed".into());
    }
    let dir = directory("start")?;
    let (out, programs) = (dir.display(), programs());
    in_root(&format!(
        "cd {out}
clang++-23 -x hip --offload-arch=gfx1100 --offload-arch=gfx942 -O1 -nogpuinc -nogpulib -I{programs} {programs}/start.hip -o start -lamdhip64",
        programs = programs.display(),
    ))?;
    println!("| platform | a program with one kernel | processor time while it waits a second |");
    println!("| --- | ---: | ---: |");
    let times = alternate(options.runs, &VARIANTS, |(_, variant)| {
        // The variables of tools/rocm-env choose ROCr's model mode.
        let printed = in_root(&format!(
            "cd {out}; unset LD_PRELOAD HSA_MODEL_LIB HSA_MODEL_TOPOLOGY HSA_ENABLE_INTERRUPT HSA_ENABLE_SDMA
run() {{ {prefix}/bin/devprof run -q {variant} ./start \"$@\"; }}
before=$(date +%s%N); run; after=$(date +%s%N)
echo $((after - before)); run wait",
            prefix = prefix.display(),
        ))?;
        numbers::<2>(variant, &printed)
    })?;
    for ((name, _), times) in VARIANTS.iter().zip(times) {
        let of = |n: usize| median(times.iter().map(|run| run[n]).collect());
        println!("| {name} | {:.0} ms | {:.0} ms |", of(0) / 1e6, of(1));
    }
    Ok(())
}
