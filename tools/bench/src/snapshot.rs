//! The cost of snapshots (DEVPROF_SNAPSHOT_MS) in a program that launches kernels without pause and has loaded code
//! objects of RCCL's size, compared with the same program without snapshots. On the GPU model the copies are kernels,
//! which use a processor that the program needs; on a GPU they do not.

use crate::{in_root, median, repo, target};
use clap::Args;
use std::fs;

#[derive(Args)]
pub struct Options {
    /// Code objects. Each has 2,568 counters and as many uniform counters, 40 KiB in total
    #[arg(long, default_value_t = 26)]
    objects: usize,
    /// Milliseconds between snapshots
    #[arg(long, value_delimiter = ',', default_value = "1000,100,10")]
    periods: Vec<u32>,
    /// Launches in a run
    #[arg(long, default_value_t = 100_000)]
    launches: usize,
    /// Rounds; each variant runs once in a round
    #[arg(long, default_value_t = 9)]
    runs: usize,
}

pub fn run(options: &Options) -> Result<(), String> {
    let dir = target().join("bench/snapshot");
    fs::create_dir_all(&dir).map_err(|e| format!("cannot create {}: {e}", dir.display()))?;
    let programs = repo().join("tools/bench/programs");
    let library = crate::runtime()?.join("libdevprof.so");
    in_root(&format!(
        "cd {dir}
flags='-x hip --offload-arch=gfx1100 -O1 -nogpuinc -nogpulib -I{programs}'
export flags
seq 0 {last} | xargs -P 2 -I '{{}}' sh -c '
    [ -s {{}}.hsafb ] || {{
        clang++-23 $flags -fprofile-instr-generate -Xarch_device -mllvm=--offload-pgo-sampling=0 -DN={{}} \
            -c {programs}/wide.hip -o {{}}.o
        llvm-objcopy --dump-section .hip_fatbin={{}}.hsafb {{}}.o /dev/null
    }}'
clang++-23 $flags -c {programs}/snapshot.hip -o snapshot.o
clang++-23 --hip-link snapshot.o -o snapshot -lamdhip64",
        dir = dir.display(),
        programs = programs.display(),
        last = options.objects - 1,
    ))?;
    let variants: Vec<Option<u32>> = std::iter::once(None)
        .chain(options.periods.iter().copied().map(Some))
        .collect();
    let mut times: Vec<Vec<f64>> = variants.iter().map(|_| Vec::new()).collect();
    for _ in 0..options.runs {
        for (variant, times) in variants.iter().zip(&mut times) {
            let period = variant.map_or(String::new(), |ms| format!("DEVPROF_SNAPSHOT_MS={ms}"));
            let out = format!("/dev/shm/devprof-bench-{}", std::process::id());
            let printed = in_root(&format!(
                "cd {dir}; rm -rf {out}
env LD_PRELOAD={library}:$LD_PRELOAD LLVM_PROFILE_FILE={out}/x.profraw {period} \
    ./snapshot {launches} $(seq -f %g.hsafb 0 {last})
rm -rf {out}",
                dir = dir.display(),
                library = library.display(),
                launches = options.launches,
                last = options.objects - 1,
            ))?;
            let time = printed.trim().parse();
            times.push(time.map_err(|e| format!("the program printed {printed:?}: {e}"))?);
        }
    }
    println!("| snapshots | time per launch | slower by (median of rounds) | minimum to maximum |");
    println!("| --- | ---: | ---: | --- |");
    for (variant, all) in variants.iter().zip(&times) {
        let mut slower: Vec<f64> = all
            .iter()
            .zip(&times[0])
            .map(|(time, without)| 100.0 * (time / without - 1.0))
            .collect();
        slower.sort_by(f64::total_cmp);
        let range = format!("{:+.1} to {:+.1} %", slower[0], slower[slower.len() - 1]);
        println!(
            "| {} | {:.2} µs | {:+.2} % | {range} |",
            variant.map_or("none".into(), |ms| format!("every {ms} ms")),
            median(all.clone()) / 1e3,
            median(slower),
        );
    }
    Ok(())
}
