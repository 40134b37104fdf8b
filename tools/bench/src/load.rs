//! The cost of devprof in a program that uses no GPU: the time to load the shared library, the time of a fork, and the size of
//! the archive.

use crate::measure::{alternate, build, directory, in_root, median, numbers, programs};
use clap::Args;
use std::path::{Path, PathBuf};
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
    let true_program = Path::new("/bin/true");
    let times = alternate(options.runs, &[false, true], |&preload| {
        let start = Instant::now();
        run_once(true_program, &[], preload.then_some(&library))?;
        Ok(start.elapsed().as_secs_f64() * 1e6)
    })?;
    let [without, with] = [0, 1].map(|n| median(times[n].clone()));
    println!("| /bin/true | with libdevprof.so loaded | added |");
    println!("| ---: | ---: | ---: |");
    println!(
        "| {without:.0} µs | {with:.0} µs | {:.0} µs |\n",
        with - without
    );

    forks(&library, options.forking_runs)?;

    let dir = directory("load")?;
    let sizes = in_root(&format!(
        "cd {}
clang++-23 -x hip --offload-arch=gfx1100 -O1 -nogpuinc -nogpulib -DN=0 -c {}/kernel.hip -o kernel.o
echo 'int main() {{}}' | clang++-23 -x c++ -c - -o main.o
clang++-23 --hip-link main.o kernel.o -o without -lamdhip64
clang++-23 --hip-link main.o kernel.o -Wl,-u,__llvm_profile_hip_collect_device_data {}/libdevprof.a \
-o with -lamdhip64
llvm-strip with without
stat -c %s without with",
        dir.display(),
        programs().display(),
        dist.display()
    ))?;
    let [without, with] = numbers::<2>("stat", &sizes)?.map(|size| size as u64);
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

/// The time of a fork whose child ends at once, in a program with and without the library, and with an empty library. A small
/// program is the worst case: the kernel copies what it knows of each mapped library.
fn forks(library: &PathBuf, runs: usize) -> Result<(), String> {
    let dir = directory("load")?;
    let (source, program, empty) = (
        programs().join("forks.c"),
        dir.join("forks"),
        dir.join("empty.so"),
    );
    let mut compile = Command::new("cc");
    compile.arg("-O2").arg(&source).arg("-o").arg(&program);
    build(&mut compile)?;
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-x", "c", "/dev/null", "-o"]);
    build(compile.arg(&empty))?;
    println!(
        "| memory of the program | a fork | with an empty library | ratio | with libdevprof.so | ratio |"
    );
    println!("| ---: | ---: | ---: | ---: | ---: | ---: |");
    for memory in ["0", "16"] {
        let times = alternate(runs, &[None, Some(&empty), Some(library)], |preload| {
            let printed = run_once(&program, &["100", memory], *preload)?;
            Ok(numbers::<1>("forks", &printed)?[0])
        })?;
        let with = |n: usize| {
            let ratios = times[n].iter().zip(&times[0]);
            let ratios = ratios.map(|(with, without)| with / without).collect();
            format!("{:.0} µs | {:.2}", median(times[n].clone()), median(ratios))
        };
        let without = median(times[0].clone());
        println!(
            "| {memory} MiB | {without:.0} µs | {} | {} |",
            with(1),
            with(2)
        );
    }
    println!();
    Ok(())
}

/// Runs a program, and returns what it printed.
fn run_once(
    program: &Path,
    arguments: &[&str],
    preload: Option<&PathBuf>,
) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(library) = preload {
        command.env("LD_PRELOAD", library);
    }
    let output = command
        .output()
        .map_err(|e| format!("cannot start {}: {e}", program.display()))?;
    if !output.status.success() {
        return Err(format!(
            "{} ended with {}",
            program.display(),
            output.status
        ));
    }
    String::from_utf8(output.stdout).map_err(|e| e.to_string())
}
