//! Determines how a clang supports profiles of device code. It runs clang, because the version is not enough: vendors'
//! clangs have their own changes.

use crate::exit::usage;
use crate::llvm::{self, Version, entries};
use crate::locate::find_in_path;
use anyhow::{Context, bail};
use profraw::format::VARIANT_MASK;
use std::cell::OnceCell;
use std::ffi::OsStr;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::NamedTempFile;

/// The driver's error if it finds no ROCm (clang/Basic/DiagnosticDriverKinds.td).
const NO_DEVICE_LIBRARY: &str = "cannot find ROCm device library";

#[derive(Debug)]
pub struct Clang {
    pub path: PathBuf,
    /// The first line that `--version` prints.
    pub version: String,
    pub major: u32,
    /// A C source file for compilations that test the compiler.
    probe: NamedTempFile,
    /// See [`Clang::resource_dir`].
    resource_dir: OnceCell<PathBuf>,
}

/// How a clang instruments device code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instrumentation {
    /// The version of raw profiles, without the variant flags.
    pub raw_version: u64,
    /// By default, only one block in eight is counted (`--offload-pgo-sampling`).
    pub samples: bool,
}

impl fmt::Display for Clang {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} ({})", self.path.display(), self.version)
    }
}

impl Clang {
    /// Finds the compiler: the given one, or else `clang++` in PATH, or else the newest one.
    ///
    /// # Errors
    /// There is no clang, or it cannot be run. For the given one, this is a usage error.
    pub fn find(named: Option<&Path>, llvm: &llvm::Options) -> anyhow::Result<Clang> {
        if let Some(path) = named {
            let found = find_in_path(path.as_os_str()).unwrap_or_else(|| path.to_owned());
            return Clang::at(found).map_err(|error| {
                usage(format!(
                    "--clang {}: {error:#}; name a clang with --clang",
                    path.display()
                ))
            });
        }
        match find_in_path(OsStr::new("clang++")) {
            Some(path) => Clang::at(path),
            None => Clang::at(llvm.search()?.newest("clang++")?.path),
        }
    }

    /// # Errors
    /// The compiler cannot be run, or is not a clang.
    pub fn at(path: PathBuf) -> anyhow::Result<Clang> {
        let output = start(&path, &["--version"])?;
        Clang::with_version(path, &text(&output.stdout))
    }

    /// `printed`: begins with what `--version` prints, which `-v` prints, too.
    ///
    /// # Errors
    /// The compiler is not a clang.
    pub fn with_version(path: PathBuf, printed: &str) -> anyhow::Result<Clang> {
        let line = printed.lines().next().unwrap_or_default();
        let version = line.split_once("clang version ");
        let Some(version) = version.and_then(|(_, after)| Version::parse(after)) else {
            // In the build of a project, this is the compiler that the project uses.
            let advice = match line.starts_with("nvcc:") {
                true => "; nvcc instruments code in a toolkit of `devprof cuda-toolkit DIR`",
                false => "",
            };
            bail!(
                "{} is not a clang: --version prints {line:?}{advice}",
                path.display()
            );
        };
        let mut probe = tempfile::Builder::new()
            .prefix("devprof-")
            .suffix(".c")
            .tempfile()
            .context("cannot create a temporary source file")?;
        probe
            .write_all(b"void probe(void) {}\n")
            .with_context(|| format!("cannot write {}", probe.path().display()))?;
        Ok(Clang {
            path,
            version: line.to_owned(),
            major: version.numbers[0],
            probe,
            resource_dir: OnceCell::new(),
        })
    }

    fn run(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        start(&self.path, arguments)
    }

    /// Compiles the probe with these options, which are separated by spaces, to LLVM's IR on stdout. The output of `-v` has
    /// the resource directory, for which clang would otherwise be started again.
    fn device_code(&self, options: &str) -> anyhow::Result<Output> {
        let common = "-v -nogpulib -ffreestanding -nostdlibinc -S -emit-llvm -o -";
        let options = options.split(' ').chain(common.split(' '));
        let output = self.run(&options.chain([self.probe()]).collect::<Vec<_>>())?;
        if let Some(dir) = resource_dir_of_command(&text(&output.stderr)) {
            self.resource_dir.get_or_init(|| dir);
        }
        Ok(output)
    }

    fn probe(&self) -> &str {
        self.probe.path().to_str().unwrap_or_default()
    }

    /// The directory of clang's own headers and libraries.
    fn resource_dir(&self) -> anyhow::Result<&Path> {
        if let Some(known) = self.resource_dir.get() {
            return Ok(known);
        }
        let output = self.run(&["-print-resource-dir"])?;
        let path = PathBuf::from(text(&output.stdout).trim_end());
        Ok(self.resource_dir.get_or_init(|| path))
    }

    /// The path at which the driver expects the device side of the profile runtime.
    pub fn device_runtime(&self) -> anyhow::Result<PathBuf> {
        let path = "lib/amdgcn-amd-amdhsa/libclang_rt.profile.a";
        Ok(self.resource_dir()?.join(path))
    }

    /// # Errors
    /// This clang cannot compile for AMD GPUs, or cannot instrument device code.
    pub fn instrumentation(&self) -> anyhow::Result<Instrumentation> {
        // IR-level instrumentation puts the version into the code. (With front-end instrumentation, it is in the runtime.)
        let device = "--target=amdgcn-amd-amdhsa -nogpuinc -Xclang -fprofile-instrument=llvm";
        let sampling = "-mllvm --offload-pgo-sampling=0";
        let mut output = self.device_code(&format!("{device} {sampling}"))?;
        let samples = output.status.success();
        if !samples {
            output = self.device_code(device)?;
        }
        let code = text(&output.stdout);
        let version = code
            .lines()
            .find(|line| line.starts_with("@__llvm_profile_raw_version"))
            .and_then(|line| line.split_once(" i64 "))
            .and_then(|(_, after)| after.split([',', ' ']).next()?.parse::<u64>().ok());
        let Some(version) = version else {
            let why = first_error(&output).map(|error| format!(": {error}"));
            bail!(
                "{self} does not instrument code for AMD GPUs{}",
                why.unwrap_or_default()
            );
        };
        Ok(Instrumentation {
            raw_version: version & !VARIANT_MASK,
            samples,
        })
    }

    /// The architectures of AMD's GPUs that this clang supports (`gfx1100`).
    pub fn architectures(&self) -> anyhow::Result<Vec<String>> {
        self.processors("amdgcn-amd-amdhsa", "gfx")
    }

    /// The architectures of NVIDIA's GPUs that this clang supports (`sm_90`).
    pub fn nvptx_architectures(&self) -> anyhow::Result<Vec<String>> {
        self.processors("nvptx64-nvidia-cuda", "sm_")
    }

    fn processors(&self, target: &str, prefix: &str) -> anyhow::Result<Vec<String>> {
        let output = self.run(&[&format!("--target={target}"), "--print-supported-cpus"])?;
        let all = text(&output.stderr) + &text(&output.stdout);
        let names = all.lines().map(str::trim);
        let names = names.filter(|name| name.starts_with(prefix) && !name.contains(' '));
        Ok(names.map(str::to_owned).collect())
    }

    /// Whether the instrumentation of this clang calls the device runtime that devprof has for CUDA. (clang 22 increments
    /// the counters itself, and its backend cannot compile the records.)
    pub fn instruments_cuda(&self) -> anyhow::Result<bool> {
        let instrumented = "-march=sm_70 -Xclang -fprofile-instrument=clang";
        let output = self.device_code(&format!("--target=nvptx64-nvidia-cuda {instrumented}"))?;
        let code = text(&output.stdout);
        Ok(output.status.success() && code.contains("@__llvm_profile_instrument_gpu"))
    }

    /// The driver's error if it cannot compile the language with these flags. The driver does not compile anything
    /// (`-###`).
    pub fn driver_error(&self, language: &str, flags: &[String]) -> anyhow::Result<Option<String>> {
        let mut arguments = vec![
            "-x",
            language,
            "-###",
            "-c",
            self.probe(),
            "-o",
            "/dev/null",
        ];
        arguments.extend(flags.iter().map(String::as_str));
        Ok(first_error(&self.run(&arguments)?))
    }

    /// The flag with the path of ROCm's device libraries, if this clang needs it.
    ///
    /// # Errors
    /// This clang cannot compile HIP on this machine. The message includes the driver's.
    pub fn device_libraries(&self, architectures: &[String]) -> anyhow::Result<Option<String>> {
        let mut flags = offload_flags(architectures);
        let Some(mut error) = self.driver_error("hip", &flags)? else {
            return Ok(None);
        };
        for dir in device_library_dirs() {
            let flag = format!("--rocm-device-lib-path={}", dir.display());
            flags.push(flag.clone());
            match self.driver_error("hip", &flags)? {
                None => return Ok(Some(flag)),
                Some(refused) => error = refused,
            }
            flags.pop();
        }
        let advice = if error.contains(NO_DEVICE_LIBRARY) {
            "install them (apt-get install rocm-device-libs), or set ROCM_PATH"
        } else {
            "run `devprof doctor`"
        };
        bail!("{self} cannot compile HIP: {error}; {advice}")
    }

    /// The compiler's first error in HIP's header for half precision. `None` as well if HIP's headers are not installed.
    /// `flag`: from [`Clang::device_libraries`].
    pub fn half_precision_error(&self, flag: Option<&str>) -> anyhow::Result<Option<String>> {
        let mut arguments = vec!["-x", "hip", "--offload-arch=gfx1100", "-fsyntax-only", "-w"];
        arguments.extend(["--offload-device-only", "-include", "hip/hip_runtime.h"]);
        arguments.extend(["-include", "hip/hip_fp16.h", self.probe()]);
        arguments.extend(flag);
        let output = self.run(&arguments)?;
        let error = first_error(&output);
        Ok(error.filter(|error| !error.contains("file not found")))
    }

    /// The driver's error if it cannot read a profile.
    pub fn profile_error(&self, profile: &str) -> anyhow::Result<Option<String>> {
        let uses = format!("-fprofile-use={profile}");
        let output = self.run(&[&uses, "-c", "-o", "/dev/null", self.probe()])?;
        if output.status.success() {
            return Ok(None);
        }
        let unknown = || format!("it exited with {}", output.status);
        Ok(Some(first_error(&output).unwrap_or_else(unknown)))
    }
}

fn start(path: &Path, arguments: &[&str]) -> anyhow::Result<Output> {
    Command::new(path)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", path.display()))
}

/// The flags that select the architectures to compile for.
pub fn offload_flags(architectures: &[String]) -> Vec<String> {
    let names = architectures.iter();
    names.map(|name| format!("--offload-arch={name}")).collect()
}

fn first_error(output: &Output) -> Option<String> {
    let stderr = text(&output.stderr);
    let error = stderr.lines().find_map(|line| line.split_once("error: "));
    error.map(|(_, error)| error.to_owned())
}

fn device_library_dirs() -> Vec<PathBuf> {
    let named = ["ROCM_PATH", "HIP_PATH"]
        .iter()
        .filter_map(std::env::var_os);
    let mut prefixes: Vec<PathBuf> = named.map(PathBuf::from).collect();
    prefixes.extend(entries("/opt", "rocm"));
    prefixes.extend([PathBuf::from("/usr"), PathBuf::from("/usr/local")]);
    let mut dirs: Vec<PathBuf> = Vec::new();
    for prefix in prefixes {
        dirs.push(prefix.join("amdgcn/bitcode"));
        dirs.push(prefix.join(format!(
            "lib/{}-linux-gnu/amdgcn/bitcode",
            std::env::consts::ARCH
        )));
    }
    // Debian puts them into the resource directory of one clang, which other clangs do not search.
    for llvm in entries("/usr/lib", "llvm-").into_iter().rev() {
        for clang in entries(llvm.join("lib/clang"), "") {
            dirs.push(clang.join("amdgcn/bitcode"));
        }
    }
    dirs.retain(|dir| dir.join("ockl.bc").exists());
    dirs
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The resource directory in the first command that `-v` prints. `None` if its name is in quotes, because it has spaces.
fn resource_dir_of_command(printed: &str) -> Option<PathBuf> {
    let (_, after) = printed.split_once(" -resource-dir ")?;
    let dir = PathBuf::from(after.split_whitespace().next()?);
    dir.is_dir().then_some(dir)
}
