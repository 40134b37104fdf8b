//! The start of a HIP program on the simulated GPUs of `devprof run --model`: tools/simulator/hsa-sim, and ROCr's model mode.

use crate::measure::{in_root, median, repo, target};
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
    let dir = target().join("bench/start");
    let (out, programs) = (dir.display(), repo().join("tools/bench/programs"));
    in_root(&format!(
        "mkdir -p {out}; cd {out}
clang++-23 -x hip --offload-arch=gfx1100 --offload-arch=gfx942 -O1 -nogpuinc -nogpulib -I{programs} {programs}/start.hip -o start -lamdhip64",
        programs = programs.display(),
    ))?;
    println!("| platform | a program with one kernel | processor time while it waits a second |");
    println!("| --- | ---: | ---: |");
    let mut times = VARIANTS.map(|_| (Vec::new(), Vec::new()));
    for _ in 0..options.runs {
        for ((_, variant), (starts, waits)) in VARIANTS.iter().zip(&mut times) {
            // The variables of tools/rocm-env choose ROCr's model mode.
            let printed = in_root(&format!(
                "cd {out}; unset LD_PRELOAD HSA_MODEL_LIB HSA_MODEL_TOPOLOGY HSA_ENABLE_INTERRUPT HSA_ENABLE_SDMA
run() {{ {prefix}/bin/devprof run -q {variant} ./start \"$@\"; }}
before=$(date +%s%N); run; after=$(date +%s%N)
echo $((after - before)); run wait",
                prefix = prefix.display(),
            ))?;
            let numbers: Vec<f64> = printed
                .split_whitespace()
                .filter_map(|number| number.parse().ok())
                .collect();
            let [start, wait] = numbers[..] else {
                return Err(format!("{variant}: the program printed {printed:?}"));
            };
            starts.push(start / 1e6);
            waits.push(wait);
        }
    }
    for ((name, _), (starts, waits)) in VARIANTS.iter().zip(times) {
        println!(
            "| {name} | {:.0} ms | {:.0} ms |",
            median(starts),
            median(waits)
        );
    }
    Ok(())
}
