//! The time of the collect call with N different instrumented code objects: devprof compared with LLVM 23's own runtime.
//! Each is linked into the same program as an archive. The code objects are static images, or modules loaded from files.

use crate::measure::{alternate, directory, in_memory, in_root, median, numbers, programs};
use clap::Args;
use std::fmt::Write;
use std::path::Path;

/// Kernels count without copies of the counters.
const NO_COPIES: &str = "DEVPROF_COUNTER_COPIES_MB=0";

#[derive(Args)]
pub struct Options {
    /// Numbers of code objects
    #[arg(long, value_delimiter = ',', default_value = "1,16,64,256")]
    counts: Vec<usize>,
    /// Runs of each program; the result is the median
    #[arg(long, default_value_t = 5)]
    runs: usize,
}

/// The result of one run of a program.
struct Run {
    first_ms: f64,
    second_ms: f64,
    /// Loading all modules.
    loading_ms: f64,
    /// Device profiles that it wrote.
    files: usize,
}

pub fn run(options: &Options) -> Result<(), String> {
    let most = options
        .counts
        .iter()
        .copied()
        .max()
        .ok_or("no counts given")?;
    let dir = directory("drain")?;
    build(&dir, most, &options.counts)?;
    println!("| loaded | code objects | LLVM 23 | devprof | devprof, again | LLVM 23 / devprof |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    let mut loading = String::new();
    for linking in ["static", "modules"] {
        for &count in &options.counts {
            let mut variants = vec![("llvm", ""), ("devprof", "")];
            if linking == "modules" {
                variants.push(("devprof", NO_COPIES));
            }
            let runs = alternate(options.runs, &variants, |(runtime, environment)| {
                run_once(&dir, linking, runtime, count, environment)
            })?;
            let (llvm, devprof) = (&runs[0], &runs[1]);
            for (runtime, runs) in [("LLVM", llvm), ("devprof", devprof)] {
                if let Some(run) = runs.iter().find(|run| run.files < count) {
                    eprintln!(
                        "bench: {runtime} wrote only {} profiles of {count} code objects ({linking})",
                        run.files
                    );
                }
            }
            let of = |runs: &[Run], part: fn(&Run) -> f64| median(runs.iter().map(part).collect());
            let [peer, first] = [llvm, devprof].map(|runs| of(runs, |run| run.first_ms));
            let again = of(devprof, |run| run.second_ms);
            println!(
                "| {linking} | {count} | {peer:.2} ms | {first:.2} ms | {again:.2} ms | {:.1} |",
                peer / first
            );
            if let [llvm, devprof, direct] = &runs[..] {
                let [peer, direct, copies] =
                    [llvm, direct, devprof].map(|runs| of(runs, |run| run.loading_ms));
                let each = (copies - direct) / count as f64;
                let _ = writeln!(
                    loading,
                    "| {count} | {peer:.2} ms | {direct:.2} ms | {copies:.2} ms | {each:.2} ms |"
                );
            }
        }
    }
    println!(
        "\n| modules | loading with LLVM 23 | devprof without copies of counters | devprof | added by copies, each |"
    );
    println!("| ---: | ---: | ---: | ---: | ---: |\n{loading}");
    Ok(())
}

/// Compiles the programs, and the code objects that do not exist yet.
fn build(dir: &Path, most: usize, counts: &[usize]) -> Result<(), String> {
    let (dir, programs) = (dir.display(), programs());
    let dist = crate::measure::runtime()?.join("libdevprof.a");
    let (programs, dist) = (programs.display(), dist.display());
    let mut script = format!(
        "cd {dir}
flags='-x hip --offload-arch=gfx1100 -O1 -nogpuinc -nogpulib -fprofile-instr-generate \
-Xarch_device -mllvm=--offload-pgo-sampling=0 -I{programs}'
export flags
seq 0 {last} | xargs -P 2 -I '{{}}' sh -c '
    [ -s {{}}.hsafb ] || {{
        clang++-23 $flags -DN={{}} -c {programs}/kernel.hip -o {{}}.o
        llvm-objcopy --dump-section .hip_fatbin={{}}.hsafb {{}}.o /dev/null
    }}'
clang++-23 $flags -c {programs}/drain.hip -o modules.o
clang++-23 -fprofile-instr-generate --hip-link modules.o -o modules-llvm -lamdhip64
clang++-23 -fprofile-instr-generate --hip-link modules.o {dist} -o modules-devprof -lamdhip64
",
        last = most - 1
    );
    for &count in counts {
        let _ = write!(
            script,
            "header=$PWD/launches-{count}.h
{{ seq -f 'void launch_%g(int *);' 0 {last}; echo 'static void (*launches[])(int *) = {{'; seq -f 'launch_%g,' 0 {last}; echo '}};'; }} >$header
clang++-23 $flags -DLAUNCHES=\"\\\"$header\\\"\" -c {programs}/drain.hip -o static-{count}.o
objects=$(seq -f %g.o 0 {last})
clang++-23 -fprofile-instr-generate --hip-link static-{count}.o $objects -o static-{count}-llvm -lamdhip64
clang++-23 -fprofile-instr-generate --hip-link static-{count}.o $objects {dist} -o static-{count}-devprof -lamdhip64
",
            last = count - 1
        );
    }
    in_root(&script).map(|_| ())
}

/// `environment`: a variable for the program.
fn run_once(
    dir: &Path,
    linking: &str,
    runtime: &str,
    count: usize,
    environment: &str,
) -> Result<Run, String> {
    let (program, arguments) = match linking {
        "static" => (format!("static-{count}-{runtime}"), String::new()),
        _ => (
            format!("modules-{runtime}"),
            format!("$(seq -f %g.hsafb 0 {})", count - 1),
        ),
    };
    let output = in_root(&format!(
        "cd {}; rm -rf {out}; mkdir {out}; {environment} LLVM_PROFILE_FILE={out}/x.profraw ./{program} {arguments}
find {out} -name 'gfx*' | wc -l; rm -r {out}",
        dir.display(),
        out = in_memory().display()
    ))?;
    let [first, second, loading, _, _, files] = numbers(&program, &output)?;
    Ok(Run {
        first_ms: first / 1e6,
        second_ms: second / 1e6,
        loading_ms: loading / 1e6,
        files: files as usize,
    })
}
