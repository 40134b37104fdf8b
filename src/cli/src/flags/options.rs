//! The options of `devprof flags`.

use crate::llvm;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Args)]
#[group(skip)]
pub struct Options {
    #[command(flatten)]
    pub profiling: Profiling,
    /// The GPUs to compile for (gfx1100, gfx90a:xnack-, sm_90, native, …) [default: this machine's GPUs]
    #[arg(long, value_name = "ARCH", value_delimiter = ',')]
    pub arch: Vec<String>,
    /// Print only the flags for compiling to an object file
    #[arg(long, conflicts_with = "link")]
    pub compile: bool,
    /// Print only the flags for linking
    #[arg(long, conflicts_with_all = ["max_threads", "hoist"])]
    pub link: bool,
    /// Print flags for a module (a file for hipModuleLoad or cuModuleLoad), which has no host code
    #[arg(long, conflicts_with_all = ["compile", "link"])]
    pub module: bool,
    /// Print flags for CUDA (`clang++ -x cuda`) instead of HIP
    ///
    /// nvcc needs no flags but -lineinfo, in a toolkit of `devprof cuda-toolkit`. Triton's kernels need none: see `devprof run
    /// --coverage`.
    #[arg(long, conflicts_with = "device_only")]
    pub cuda: bool,
    /// For CUDA: compile relocatable device code, so that device functions can be called across source files
    #[arg(long, requires = "cuda", conflicts_with = "module")]
    pub rdc: bool,
    /// The compiler [default: clang++ in PATH, or else the newest]
    #[arg(long, value_name = "CLANG")]
    pub clang: Option<PathBuf>,
    #[command(flatten)]
    pub llvm: llvm::Options,
}

/// What is recorded, and how.
#[derive(Args, Clone)]
#[group(skip)]
pub struct Profiling {
    #[command(flatten)]
    pub purpose: Purpose,
    /// Instrument (or optimize) only device code, not host code
    #[arg(long)]
    pub device_only: bool,
    /// For CUDA: compile kernels so that they can be launched with blocks of N threads, although instrumentation needs registers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    #[arg(conflicts_with = "pgo_use")]
    pub max_threads: Option<u32>,
    /// Do not link devprof's archive into the program; run the program with `devprof run`
    ///
    /// With the archive, devprof replaces LLVM's own collector. Without it, the program contains LLVM's, if the toolchain
    /// has one.
    #[arg(long)]
    pub no_runtime: bool,
    /// Count only one of eight blocks: faster, but the counts of rare code are inaccurate
    #[arg(long, conflicts_with_all = ["coverage", "pgo_use"])]
    pub sampling: bool,
    /// Also record which combinations of conditions decisions had (MC/DC)
    ///
    /// llvm-cov shows them (`--show-mcdc`). clang warns about decisions that it does not record, by default those with more than
    /// 32767 conditions or 2147483646 combinations (`-Xclang -fmcdc-max-conditions=N`, `-Xclang -fmcdc-max-test-vectors=N`). Each
    /// combination needs a bit of the GPU's memory.
    #[arg(long, conflicts_with_all = ["pgo_generate", "pgo_use"])]
    pub mcdc: bool,
    /// Count in registers in loops, and add to the counters when a loop ends: the same counts with fewer memory accesses
    ///
    /// Needs clang 23 or later, and devprof's plugin for its exact version. Counts of a loop that still runs are missing in a
    /// snapshot.
    #[arg(long, conflicts_with = "pgo_use")]
    pub hoist: bool,
    /// Without devprof's plugin for clang, with which coverage costs less time and, on AMD GPUs, code with counters is smaller
    #[arg(long, conflicts_with = "pgo_use")]
    pub no_plugin: bool,
}

/// A flag for the compilation of device code.
pub fn for_device(flag: &str) -> [String; 2] {
    ["-Xarch_device".to_owned(), flag.to_owned()]
}

/// What coverage records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Coverage {
    /// Whether each block was executed
    Ran,
    /// How often each block was executed, which costs much more time
    Counts,
}

#[derive(Args, Clone)]
#[group(required = true, multiple = false)]
pub struct Purpose {
    /// Record which code ran, and add the coverage mapping
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "ran")]
    pub coverage: Option<Coverage>,
    /// Count every block for profile-guided optimization
    #[arg(long)]
    pub pgo_generate: bool,
    /// Optimize with a profile that `devprof merge` wrote
    #[arg(long, value_name = "FILE.profdata")]
    pub pgo_use: Option<PathBuf>,
}

impl Profiling {
    /// Whether only the fact that code ran is recorded.
    pub fn only_ran(&self) -> bool {
        self.purpose.coverage == Some(Coverage::Ran)
    }
}
