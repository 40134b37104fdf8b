//! The cost of devprof in a program that uses no GPU: the time to load the shared library, the time of a fork, and the size of
//! the archive.

use crate::measure::{in_root, median, repo, target};
use clap::Args;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

#[derive(Args)]
pub struct Options {
    /// Runs with and without the library, alternating
    #[arg(long, default_value_t = 500)]
    runs: usize,
    /// Runs of a program that forks 100 times, with and without the library, alternating
    #[arg(long, default_value_t = 40)]
    forking_runs: usize,
}

pub fn run(options: &Options) -> Result<(), String> {
    let dist = crate::measure::runtime()?;
    let library = dist.join("libdevprof.so");
    let run_once = |preload: bool| -> Result<f64, String> {
        let mut command = Command::new("/bin/true");
        if preload {
            command.env("LD_PRELOAD", &library);
        }
        let start = Instant::now();
        let status = command
            .status()
            .map_err(|e| format!("cannot start /bin/true: {e}"))?;
        let time = start.elapsed().as_secs_f64() * 1e6;
        if status.success() {
            Ok(time)
        } else {
            Err(format!("/bin/true ended with {status}"))
        }
    };
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..options.runs {
        without.push(run_once(false)?);
        with.push(run_once(true)?);
    }
    let (with, without) = (median(with), median(without));
    println!("| /bin/true | with libdevprof.so loaded | added |");
    println!("| ---: | ---: | ---: |");
    println!(
        "| {without:.0} µs | {with:.0} µs | {:.0} µs |\n",
        with - without
    );

    forks(&library, options.forking_runs)?;

    let dir = target().join("bench/load");
    let (out, programs) = (dir.display(), repo().join("tools/bench/programs"));
    let sizes = in_root(&format!(
        "mkdir -p {out}; cd {out}
clang++-23 -x hip --offload-arch=gfx1100 -O1 -nogpuinc -nogpulib -DN=0 -c {}/kernel.hip -o kernel.o
echo 'int main() {{}}' | clang++-23 -x c++ -c - -o main.o
clang++-23 --hip-link main.o kernel.o -o without -lamdhip64
clang++-23 --hip-link main.o kernel.o -Wl,-u,__llvm_profile_hip_collect_device_data {}/libdevprof.a \
-o with -lamdhip64
llvm-strip with without
stat -c %s without with",
        programs.display(),
        dist.display()
    ))?;
    let sizes: Vec<u64> = sizes.lines().filter_map(|line| line.parse().ok()).collect();
    let [without, with] = sizes[..] else {
        return Err(format!("stat printed {sizes:?}"));
    };
    println!("| stripped executable | with libdevprof.a | added |");
    println!("| ---: | ---: | ---: |");
    println!(
        "| {} KiB | {} KiB | {} KiB |",
        without >> 10,
        with >> 10,
        (with - without) >> 10
    );
    Ok(())
}

/// The time of a fork whose child ends at once, in a program with and without the library. A small program is the worst
/// case: the kernel copies what it knows of each mapped library.
fn forks(library: &Path, runs: usize) -> Result<(), String> {
    let dir = target().join("bench/load");
    let (source, program) = (
        repo().join("tools/bench/programs/forks.c"),
        dir.join("forks"),
    );
    std::fs::create_dir_all(&dir).map_err(|e| format!("cannot create {}: {e}", dir.display()))?;
    let compiled = Command::new("cc")
        .arg("-O2")
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        return Err(format!("cannot compile {}", source.display()));
    }
    let run_once = |memory: &str, preload: bool| -> Result<f64, String> {
        let mut command = Command::new(&program);
        command.args(["100", memory]);
        if preload {
            command.env("LD_PRELOAD", library);
        }
        let output = command
            .output()
            .map_err(|e| format!("cannot start {}: {e}", program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let time = text.trim().parse();
        time.map_err(|_| format!("{} printed {text:?}", program.display()))
    };
    println!("| memory of the program | a fork | with libdevprof.so loaded | ratio |");
    println!("| ---: | ---: | ---: | ---: |");
    for memory in ["0", "16"] {
        let (mut with, mut without, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..runs {
            let times = (run_once(memory, false)?, run_once(memory, true)?);
            without.push(times.0);
            with.push(times.1);
            ratios.push(times.1 / times.0);
        }
        println!(
            "| {memory} MiB | {:.0} µs | {:.0} µs | {:.2} |",
            median(without),
            median(with),
            median(ratios)
        );
    }
    println!();
    Ok(())
}
