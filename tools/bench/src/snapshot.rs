//! The cost of snapshots (DEVPROF_SNAPSHOT_MS) in a program that launches kernels without pause and has loaded code
//! objects of RCCL's size, compared with the same program without snapshots. On the GPU model the copies are kernels,
//! which use a processor that the program needs; on a GPU they do not. To show how much of the cost is the model's, each
//! period is also measured with copies that the model does not execute (instant-copies.cpp).

use crate::measure::{alternate, directory, in_memory, in_root, median, numbers, programs};
use clap::Args;

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
    let (dir, programs) = (directory("snapshot")?, programs());
    let library = crate::measure::runtime()?.join("libdevprof.so");
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
clang++-23 -O2 -Wall -shared -fPIC {programs}/instant-copies.cpp -o instant-copies.so
clang++-23 --hip-link snapshot.o -o snapshot -lamdhip64",
        dir = dir.display(),
        programs = programs.display(),
        last = options.objects - 1,
    ))?;
    let mut variants = vec![Variant {
        period: None,
        instant_copies: false,
    }];
    for &period in &options.periods {
        variants.extend([false, true].map(|instant_copies| Variant {
            period: Some(period),
            instant_copies,
        }));
    }
    let runs = alternate(options.runs, &variants, |variant| {
        let period = variant
            .period
            .map_or(String::new(), |ms| format!("DEVPROF_SNAPSHOT_MS={ms}"));
        let tool = if variant.instant_copies {
            format!("HSA_TOOLS_LIB={}/instant-copies.so", dir.display())
        } else {
            String::new()
        };
        let printed = in_root(&format!(
            "cd {dir}; rm -rf {out}
env LD_PRELOAD={library}:$LD_PRELOAD LLVM_PROFILE_FILE={out}/x.profraw {period} {tool} \
    ./snapshot {launches} $(seq -f %g.hsafb 0 {last})
rm -rf {out}",
            dir = dir.display(),
            out = in_memory().display(),
            library = library.display(),
            launches = options.launches,
            last = options.objects - 1,
        ))?;
        let [time, devprof, model] = numbers("snapshot", &printed)?;
        Ok(Run {
            time,
            devprof,
            model,
        })
    })?;
    println!(
        "| snapshots | time per launch | slower by (median of rounds) | minimum to maximum | CPU time: devprof's thread | the model |"
    );
    println!("| --- | ---: | ---: | --- | ---: | ---: |");
    for (variant, all) in variants.iter().zip(&runs) {
        let mut slower: Vec<f64> = all
            .iter()
            .zip(&runs[0])
            .map(|(run, without)| 100.0 * (run.time / without.time - 1.0))
            .collect();
        slower.sort_by(f64::total_cmp);
        let range = format!("{:+.1} to {:+.1} %", slower[0], slower[slower.len() - 1]);
        println!(
            "| {} | {:.2} µs | {:+.2} % | {range} | {:.2} % | {:.2} % |",
            variant.name(),
            median(all.iter().map(|run| run.time).collect()) / 1e3,
            median(slower),
            median(all.iter().map(|run| run.devprof).collect()),
            median(all.iter().map(|run| run.model).collect()),
        );
    }
    Ok(())
}

struct Variant {
    /// Milliseconds between snapshots.
    period: Option<u32>,
    /// The model does not execute devprof's copies.
    instant_copies: bool,
}

impl Variant {
    fn name(&self) -> String {
        match (self.period, self.instant_copies) {
            (None, _) => "none".into(),
            (Some(ms), false) => format!("every {ms} ms"),
            (Some(ms), true) => format!("every {ms} ms, instant copies"),
        }
    }
}

/// The numbers that the program printed.
struct Run {
    /// Nanoseconds per launch.
    time: f64,
    /// CPU time of devprof's thread, in percent of the elapsed time.
    devprof: f64,
    /// CPU time of the GPU model, in percent of the elapsed time.
    model: f64,
}
