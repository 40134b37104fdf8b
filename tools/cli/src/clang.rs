//! What a clang can do for device code with profiles. It is asked, not known by its version: vendors' clangs carry
//! changes of their own.

use crate::llvm;
use crate::parts::in_path;
use profraw::format::VARIANT_MASK;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::NamedTempFile;

/// What the driver says where it finds no ROCm (clang/Basic/DiagnosticDriverKinds.td).
const NO_DEVICE_LIBRARY: &str = "cannot find ROCm device library";

/// A compiler driver.
#[derive(Debug)]
pub struct Clang {
    pub path: PathBuf,
    /// Its first line of `--version`.
    pub version: String,
    /// The number of its release.
    pub major: u32,
    probe: NamedTempFile,
}

/// How it instruments device code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instrumentation {
    /// The version of raw profiles, without flags.
    pub raw_version: u64,
    /// It counts one block in eight unless told otherwise (`--offload-pgo-sampling`).
    pub samples: bool,
}

impl Clang {
    /// The one that is named; else `clang++` in PATH, which is what a person types; else the newest that there is.
    ///
    /// # Errors
    /// There is none, or it does not start.
    pub fn find(named: Option<&Path>, llvm: &llvm::Options) -> Result<Clang, String> {
        if let Some(path) = named {
            let found = in_path(path.as_os_str()).unwrap_or_else(|| path.to_owned());
            return Clang::at(found);
        }
        match in_path(OsStr::new("clang++")) {
            Some(path) => Clang::at(path),
            None => Clang::at(llvm.search()?.newest("clang++")?.path),
        }
    }

    fn at(path: PathBuf) -> Result<Clang, String> {
        let mut probe = tempfile::Builder::new()
            .prefix("devprof-")
            .suffix(".c")
            .tempfile()
            .map_err(|error| {
                format!("cannot make a file to try {} with: {error}", path.display())
            })?;
        probe
            .write_all(b"void probe(void) {}\n")
            .map_err(|error| format!("cannot write {}: {error}", probe.path().display()))?;
        let mut clang = Clang {
            path,
            version: String::new(),
            major: 0,
            probe,
        };
        let output = clang.run(&["--version"])?;
        let text = text(&output.stdout);
        let line = text.lines().next().unwrap_or_default();
        let number = line.split_once("clang version ").map(|(_, after)| {
            let digits = after.find(|char: char| !char.is_ascii_digit());
            after[..digits.unwrap_or(after.len())].parse().ok()
        });
        match number.flatten() {
            Some(major) => clang.major = major,
            None => {
                return Err(format!(
                    "{} is no clang: --version says {line:?}; name one with --clang",
                    clang.path.display()
                ));
            }
        }
        clang.version = line.to_owned();
        Ok(clang)
    }

    fn run(&self, arguments: &[&str]) -> Result<Output, String> {
        Command::new(&self.path)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("cannot start {}: {error}", self.path.display()))
    }

    /// A C source that is compiled when something is tried.
    fn probe(&self) -> &str {
        self.probe.path().to_str().unwrap_or_default()
    }

    /// Its own directory of headers and libraries.
    pub fn resource_dir(&self) -> Result<PathBuf, String> {
        let output = self.run(&["-print-resource-dir"])?;
        Ok(PathBuf::from(text(&output.stdout).trim_end()))
    }

    /// The device side of the profile runtime, where the driver looks for it.
    pub fn device_runtime(&self) -> Result<PathBuf, String> {
        let place = "lib/amdgcn-amd-amdhsa/libclang_rt.profile.a";
        Ok(self.resource_dir()?.join(place))
    }

    /// # Errors
    /// It makes no code for AMD's GPUs, or does not instrument it.
    pub fn instrumentation(&self) -> Result<Instrumentation, String> {
        // At IR level the code has the version in it, in front-end instrumentation the runtime.
        let device = [
            "--target=amdgcn-amd-amdhsa",
            "-nogpulib",
            "-nogpuinc",
            "-ffreestanding",
            "-nostdlibinc",
            "-Xclang",
            "-fprofile-instrument=llvm",
            "-S",
            "-emit-llvm",
            "-o",
            "-",
            self.probe(),
        ];
        let sampling = [&["-mllvm", "--offload-pgo-sampling=0"], &device[..]].concat();
        let mut output = self.run(&sampling)?;
        let samples = output.status.success();
        if !samples {
            output = self.run(&device)?;
        }
        let code = text(&output.stdout);
        let version = code
            .lines()
            .find(|line| line.starts_with("@__llvm_profile_raw_version"))
            .and_then(|line| line.split_once(" i64 "))
            .and_then(|(_, after)| after.split([',', ' ']).next()?.parse::<u64>().ok());
        match version {
            Some(version) => Ok(Instrumentation {
                raw_version: version & !VARIANT_MASK,
                samples,
            }),
            None => Err(format!(
                "{} ({}) does not instrument code for AMD's GPUs{}",
                self.path.display(),
                self.version,
                said(&output)
            )),
        }
    }

    /// The GPUs that it makes code for.
    pub fn architectures(&self) -> Result<Vec<String>, String> {
        let output = self.run(&["--target=amdgcn-amd-amdhsa", "--print-supported-cpus"])?;
        let all = text(&output.stderr) + &text(&output.stdout);
        let names = all.lines().map(str::trim);
        Ok(names
            .filter(|name| name.starts_with("gfx") && !name.contains(' '))
            .map(str::to_owned)
            .collect())
    }

    /// The flag that leads it to ROCm's device libraries, if it needs one.
    ///
    /// # Errors
    /// It cannot compile HIP here; its own words.
    pub fn device_libraries(&self, architectures: &[String]) -> Result<Option<String>, String> {
        if self.hip(architectures, None)?.is_none() {
            return Ok(None);
        }
        let mut refused = String::new();
        for dir in places() {
            let flag = format!("--rocm-device-lib-path={}", dir.display());
            match self.hip(architectures, Some(&flag))? {
                None => return Ok(Some(flag)),
                Some(error) => refused = error,
            }
        }
        let error = match refused.is_empty() {
            true => self.hip(architectures, None)?.unwrap_or_default(),
            false => refused,
        };
        let advice = match error.contains(NO_DEVICE_LIBRARY) {
            true => "install them (apt-get install rocm-device-libs), or name them with ROCM_PATH",
            false => "see `devprof doctor`",
        };
        Err(format!(
            "{} ({}) cannot compile HIP here: {error}; {advice}",
            self.path.display(),
            self.version
        ))
    }

    /// What keeps the driver from compiling HIP for these; nothing is compiled.
    fn hip(&self, architectures: &[String], flag: Option<&str>) -> Result<Option<String>, String> {
        let offload: Vec<String> = architectures
            .iter()
            .map(|name| format!("--offload-arch={name}"))
            .collect();
        let mut arguments = vec!["-x", "hip", "-###", "-c", self.probe(), "-o", "/dev/null"];
        arguments.extend(offload.iter().map(String::as_str));
        arguments.extend(flag);
        let output = self.run(&arguments)?;
        let said = text(&output.stderr);
        let error = said.lines().find_map(|line| line.split_once("error: "));
        Ok(error.map(|(_, error)| error.to_owned()))
    }

    /// Why it cannot use a profile.
    pub fn refuses_profile(&self, profile: &str) -> Result<Option<String>, String> {
        let uses = format!("-fprofile-use={profile}");
        let output = self.run(&[&uses, "-c", "-o", "/dev/null", self.probe()])?;
        let said = text(&output.stderr);
        let error = said.lines().find_map(|line| line.split_once("error: "));
        match (output.status.success(), error) {
            (true, _) => Ok(None),
            (false, Some((_, error))) => Ok(Some(error.to_owned())),
            (false, None) => Ok(Some(format!("it ended with {}", output.status))),
        }
    }
}

/// Directories in which ROCm's device libraries may be.
fn places() -> Vec<PathBuf> {
    let mut prefixes: Vec<PathBuf> = ["ROCM_PATH", "HIP_PATH"]
        .iter()
        .filter_map(std::env::var_os)
        .map(PathBuf::from)
        .collect();
    prefixes.extend(entries("/opt", "rocm"));
    prefixes.extend([PathBuf::from("/usr"), PathBuf::from("/usr/local")]);
    let mut places: Vec<PathBuf> = Vec::new();
    for prefix in prefixes {
        places.push(prefix.join("amdgcn/bitcode"));
        places.push(prefix.join("lib/x86_64-linux-gnu/amdgcn/bitcode"));
    }
    // Debian puts them into a clang's own directory, of which others do not know.
    for llvm in entries("/usr/lib", "llvm-").into_iter().rev() {
        for clang in entries(llvm.join("lib/clang"), "") {
            places.push(clang.join("amdgcn/bitcode"));
        }
    }
    places.retain(|place| place.join("ockl.bc").exists());
    places
}

/// The entries of a directory whose names begin so, in order.
fn entries(dir: impl AsRef<Path>, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| {
            let name = entry.file_name();
            name.as_encoded_bytes().starts_with(prefix.as_bytes())
        })
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The first line of what a program has complained about.
fn said(output: &Output) -> String {
    match text(&output.stderr).lines().next() {
        Some(line) => format!(": {line}"),
        None => String::new(),
    }
}
