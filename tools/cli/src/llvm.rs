//! Finds LLVM's tools, which come in many releases side by side, and asks each what it can read: a llvm-profdata reads
//! the raw profiles of its own release only.

use clap::Args;
use profraw::format::{Header, V10, V11, VARIANT_MASK};
use profraw::kind::Kind;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tempfile::NamedTempFile;

const PROFDATA: &str = "llvm-profdata";

/// What to do where there is none of LLVM's tools.
pub const INSTALL: &str = "apt-get install clang-23 llvm-23 lld-23 clang-tools-23 (Debian), or name an installation with --llvm DIR";

/// Where LLVM's tools are, for each verb that needs one.
#[derive(Args, Clone, Debug, Default)]
// clap names a group after the type, and the verb's own is called so, too.
#[group(skip)]
pub struct Options {
    /// Take LLVM's tools from this directory: an installation, or its bin
    ///
    /// Without it they are looked for in PATH (with and without a release's number behind their names), in
    /// $ROCM_PATH, in /opt/rocm* and in /usr/lib/llvm-*, and the highest version that fits is taken.
    #[arg(long, value_name = "DIR")]
    llvm: Option<PathBuf>,
}

/// As a tool's `--version` tells it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Major, minor, patch.
    pub numbers: [u32; 3],
    /// As printed: `23.1.4`, `20.0.0git`.
    pub text: String,
}

/// One of LLVM's programs, of a known version.
#[derive(Clone, Debug)]
pub struct Tool {
    /// As it was found; what it links to is the program.
    pub path: PathBuf,
    pub version: Version,
    raw: OnceLock<Result<u64, String>>,
    indexed: OnceLock<Result<u64, String>>,
}

/// The programs of one name: those that tell their version, the highest first, and those that do not.
#[derive(Debug, Default)]
pub struct Found {
    pub tools: Vec<Tool>,
    /// Path, and what went wrong.
    pub broken: Vec<(PathBuf, String)>,
}

/// The directories in which LLVM's tools may be, best first, and what was found there.
#[derive(Debug)]
pub struct Llvm {
    dirs: Vec<PathBuf>,
    found: Mutex<HashMap<String, Arc<Found>>>,
    /// The directory that `--llvm` named, for what is said when a tool is not there.
    given: Option<PathBuf>,
}

impl Options {
    /// The directories to look in.
    ///
    /// # Errors
    /// `--llvm` names no directory.
    pub fn search(&self) -> Result<Llvm, String> {
        match &self.llvm {
            None => Ok(Llvm::new(everywhere())),
            Some(dir) if dir.is_dir() => Ok(Llvm {
                given: Some(dir.clone()),
                ..Llvm::new(within(dir))
            }),
            Some(dir) => Err(format!(
                "--llvm {}: no such directory; name an installation of LLVM, or its bin",
                dir.display()
            )),
        }
    }
}

/// An installation's directories of programs; ROCm has LLVM's a step or two further down.
fn within(prefix: &Path) -> Vec<PathBuf> {
    ["", "bin", "llvm/bin", "lib/llvm/bin"]
        .map(|dir| prefix.join(dir))
        .into()
}

fn everywhere() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = env::split_paths(&path)
        .filter(|dir| dir.is_absolute())
        .collect();
    if let Some(rocm) = env::var_os("ROCM_PATH").filter(|rocm| !rocm.is_empty()) {
        dirs.extend(within(Path::new(&rocm)));
    }
    for rocm in named("/opt", "rocm") {
        dirs.extend(within(&rocm));
    }
    dirs.extend(
        named("/usr/lib", "llvm-")
            .into_iter()
            .map(|llvm| llvm.join("bin")),
    );
    dirs
}

/// The entries of a directory whose names begin so. No directory, no entries.
fn named(dir: impl AsRef<Path>, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(&dir).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| {
            entry
                .file_name()
                .as_encoded_bytes()
                .starts_with(prefix.as_bytes())
        })
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

impl Llvm {
    /// To look in these directories, the best first.
    pub fn new(dirs: Vec<PathBuf>) -> Llvm {
        Llvm {
            dirs,
            found: Mutex::default(),
            given: None,
        }
    }

    /// Every program of this name (`llvm-profdata`), plain or with a release's number (`llvm-profdata-22`). They are
    /// looked for once.
    pub fn all(&self, name: &str) -> Arc<Found> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = found.get(name) {
            return found.clone();
        }
        let new = Arc::new(self.look_for(name));
        found.insert(name.to_owned(), new.clone());
        new
    }

    fn look_for(&self, name: &str) -> Found {
        let mut found = Found::default();
        let mut seen = Vec::new();
        let mut asked = Vec::new();
        for path in self.dirs.iter().flat_map(|dir| candidates(dir, name)) {
            let Ok(program) = path.canonicalize() else {
                continue;
            };
            if program.is_file() && !seen.contains(&program) {
                seen.push(program);
                // All at once: each takes a while to start.
                let child = asking(&path, &["--version"]).spawn();
                asked.push((path, child));
            }
        }
        for (path, child) in asked {
            let mut version = version(child);
            if version.is_err() && name == PROFDATA {
                // Before LLVM 17 only its commands tell.
                version = self::version(asking(&path, &["merge", "--version"]).spawn());
            }
            match version {
                Ok(version) => found.tools.push(Tool {
                    path,
                    version,
                    raw: OnceLock::new(),
                    indexed: OnceLock::new(),
                }),
                Err(why) => found.broken.push((path, why)),
            }
        }
        // Stable: of equal versions the first found stays first.
        found
            .tools
            .sort_by_key(|tool| Reverse(tool.version.numbers));
        found
    }

    /// The highest version of a program.
    ///
    /// # Errors
    /// There is none; says where it was looked for and how to get one.
    pub fn newest(&self, name: &str) -> Result<Tool, String> {
        let found = self.all(name);
        found
            .tools
            .first()
            .cloned()
            .ok_or_else(|| self.missing(name, &found))
    }

    /// The highest version of a program that is of the same release as another.
    ///
    /// # Errors
    /// There is none of that release.
    pub fn of_release(&self, name: &str, release: &Version) -> Result<Tool, String> {
        let found = self.all(name);
        let same = |tool: &&Tool| tool.version.numbers[0] == release.numbers[0];
        found.tools.iter().find(same).cloned().ok_or_else(|| {
            let why = self.missing(name, &found);
            format!("no {name} of LLVM {}: {why}", release.numbers[0])
        })
    }

    /// The llvm-profdata with the highest version that reads raw profiles of this version.
    ///
    /// # Errors
    /// There is none; says which there are and what they read.
    pub fn profdata(&self, raw: u64) -> Result<Tool, String> {
        let found = self.all(PROFDATA);
        let fits = |tool: &&Tool| tool.raw_version().as_ref() == Ok(&raw);
        if let Some(tool) = found.tools.iter().find(fits) {
            return Ok(tool.clone());
        }
        if found.tools.is_empty() {
            return Err(self.missing(PROFDATA, &found));
        }
        let others: Vec<String> = found
            .tools
            .iter()
            .map(|tool| match tool.raw_version() {
                Ok(version) => format!("{} reads version {version}", tool.path.display()),
                Err(why) => format!("{}: {why}", tool.path.display()),
            })
            .collect();
        Err(format!(
            "no llvm-profdata reads raw profiles of version {raw}{} ({}); {}",
            self.place(),
            others.join("; "),
            release_of(raw).map_or_else(
                || "use the one of the clang that compiled the program: --llvm DIR".to_owned(),
                |release| format!(
                    "that of LLVM {release} does: apt-get install llvm-{release}, or --llvm DIR"
                ),
            )
        ))
    }

    fn place(&self) -> String {
        match &self.given {
            Some(dir) => format!(" in {}", dir.display()),
            None => String::new(),
        }
    }

    fn missing(&self, name: &str, found: &Found) -> String {
        let mut text = match &self.given {
            Some(dir) => format!("no {name} in {} or its bin", dir.display()),
            None => format!("no {name} in PATH, $ROCM_PATH, /opt/rocm* or /usr/lib/llvm-*"),
        };
        for (path, why) in &found.broken {
            text += &format!(" ({}: {why})", path.display());
        }
        format!("{text}; {INSTALL}")
    }
}

/// The release whose llvm-profdata reads this raw version, to tell a person what to install. What a tool reads is
/// asked of the tool.
fn release_of(raw: u64) -> Option<u32> {
    match raw {
        10 => Some(22),
        11 => Some(23),
        _ => None,
    }
}

/// `dir/name`, then `dir/name-NN`.
fn candidates(dir: &Path, name: &str) -> Vec<PathBuf> {
    let prefix = format!("{name}-");
    let release = |path: &PathBuf| {
        let file = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let number = file.strip_prefix(&prefix).unwrap_or_default();
        !number.is_empty()
            && number
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    let plain = dir.join(name);
    let mut found: Vec<PathBuf> = plain.exists().then_some(plain).into_iter().collect();
    found.extend(named(dir, &prefix).into_iter().filter(release));
    found
}

/// A program that is to tell something.
fn asking(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What a program's `--version` tells.
fn version(child: std::io::Result<Child>) -> Result<Version, String> {
    let result = child
        .and_then(Child::wait_with_output)
        .map_err(|e| format!("cannot start it: {e}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !result.status.success() {
        let said = text(&result.stderr);
        let line = said.lines().next().unwrap_or("nothing said");
        return Err(format!("{}: {line}", result.status));
    }
    let text = text(&result.stdout);
    let mut words = text.split_whitespace();
    words
        .find(|word| *word == "version")
        .and_then(|_| words.next())
        .and_then(Version::parse)
        .ok_or_else(|| {
            let line = text.lines().next().unwrap_or_default();
            format!("--version tells no version: {line:?}")
        })
}

impl Version {
    /// From `23.1.4` or `20.0.0git`: what is no number ends it.
    fn parse(text: &str) -> Option<Version> {
        let mut parts = text.split(['.', '-']).map(|part| {
            let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            part[..digits].parse().ok()
        });
        let major = parts.next()??;
        let mut next = || parts.next().flatten().unwrap_or(0);
        Some(Version {
            numbers: [major, next(), next()],
            text: text.to_owned(),
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Tool {
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        // A tool that is itself instrumented does not write where the user's program does.
        command.env_remove("LLVM_PROFILE_FILE").stdin(Stdio::null());
        command
    }

    /// The version of raw profiles that this llvm-profdata reads. It is shown an empty profile of each version that
    /// devprof writes; of another it tells the number that it wants.
    pub fn raw_version(&self) -> &Result<u64, String> {
        self.raw.get_or_init(|| {
            for format in [&V11, &V10] {
                if self.shown(format.version)?.is_ok() {
                    return Ok(format.version);
                }
            }
            let said = self.shown(UNKNOWN_VERSION)?.err().unwrap_or_default();
            said.split_once("expected version = ")
                .and_then(|(_, number)| number.split_whitespace().next()?.parse().ok())
                .ok_or_else(|| {
                    // "error: FILE: why", of a file that is gone.
                    let line = said.lines().next().unwrap_or("nothing said");
                    let why = line.rsplit(": ").next().unwrap_or(line);
                    format!("it reads no raw profile of version 10 or 11: {why}")
                })
        })
    }

    /// The version of indexed profiles (`.profdata`) that this llvm-profdata writes, the highest that it reads.
    pub fn indexed_version(&self) -> &Result<u64, String> {
        self.indexed.get_or_init(|| {
            let raw = self.raw_version().clone()?;
            let empty = empty(raw)?;
            let out = scratch(".profdata")?;
            let mut merge = self.command();
            merge
                .arg("merge")
                .arg(empty.path())
                .arg("-o")
                .arg(out.path());
            let result = self.output(&mut merge)?;
            let bytes =
                fs::read(out.path()).map_err(|e| format!("cannot read what it wrote: {e}"))?;
            match Kind::of(&bytes) {
                Some(Kind::Indexed {
                    version: Some(version),
                }) => Ok(version & !VARIANT_MASK),
                _ => {
                    let said = String::from_utf8_lossy(&result.stderr);
                    let line = said.lines().next().unwrap_or("nothing said").to_owned();
                    Err(format!("it does not merge an empty profile: {line}"))
                }
            }
        })
    }

    /// Whether it shows an empty raw profile of a version, and what it says if not.
    fn shown(&self, version: u64) -> Result<Result<(), String>, String> {
        let file = empty(version)?;
        let result = self.output(self.command().arg("show").arg(file.path()))?;
        Ok(match result.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&result.stderr).into_owned()),
        })
    }

    fn output(&self, command: &mut Command) -> Result<Output, String> {
        command
            .output()
            .map_err(|e| format!("cannot start {}: {e}", self.path.display()))
    }
}

fn scratch(suffix: &str) -> Result<NamedTempFile, String> {
    let made = tempfile::Builder::new().suffix(suffix).tempfile();
    made.map_err(|e| format!("cannot make a file in {}: {e}", env::temp_dir().display()))
}

/// A raw profile of no function.
fn empty(version: u64) -> Result<NamedTempFile, String> {
    let header = Header {
        version,
        ..Header::default()
    };
    let mut words = header.words();
    if version == UNKNOWN_VERSION {
        // Long enough for a header of any version.
        words.resize(64, 0);
    }
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut file = scratch(".profraw")?;
    file.write_all(&bytes)
        .map_err(|e| format!("cannot write {}: {e}", file.path().display()))?;
    Ok(file)
}

/// No release has it, and it fits in the 32 bits that are not variant flags.
const UNKNOWN_VERSION: u64 = 0x7fff_ffff;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Written by another process: a file that this one had open for writing could be open in a child that another
    /// test starts, and then the kernel executes it not.
    fn program(path: &Path, script: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let write = "printf '#!/bin/sh\\n%s\\n' \"$1\" >\"$0\" && chmod 755 \"$0\"";
        let status = Command::new("sh")
            .args([OsStr::new("-c"), OsStr::new(write)])
            .arg(path)
            .arg(script)
            .status();
        assert!(status.unwrap().success());
    }

    /// A llvm-profdata that looks at the version in the profile, as LLVM's does.
    fn profdata(path: &Path, version: &str, raw: u64) {
        program(
            path,
            &format!(
                "[ $1 = --version ] && {{ echo 'AMD LLVM version {version}'; exit; }}
                 got=$(od -An -tu4 -j8 -N4 \"$2\" | tr -d ' ')
                 [ $got = {raw} ] && exit
                 echo \"error: Profile uses raw profile format version = $got; expected version = {raw}\" >&2
                 exit 1"
            ),
        );
    }

    fn versions(found: &Found) -> Vec<&str> {
        found
            .tools
            .iter()
            .map(|tool| tool.version.text.as_str())
            .collect()
    }

    #[test]
    fn the_highest_version_that_reads_a_raw_profile_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (dir.path().join("first"), dir.path().join("second"));
        profdata(&first.join("llvm-profdata"), "9.0.1", 4);
        let old = "[ \"$1\" = merge ] || exit 1; echo LLVM version 14.0.6";
        program(&second.join("llvm-profdata-14"), old);
        profdata(&first.join("llvm-profdata-22"), "22.1.8", 10);
        profdata(&second.join("llvm-profdata"), "23.1.4", 11);
        profdata(&second.join("llvm-profdata-21"), "21.0.0git", 10);
        program(&second.join("llvm-profdata-wrapper"), "echo version 99.0.0");
        program(
            &second.join("llvm-profdata-24"),
            "echo cannot run >&2; exit 3",
        );
        symlink(second.join("llvm-profdata"), first.join("llvm-profdata-23")).unwrap();
        let llvm = Llvm::new(vec![first.clone(), second.clone(), dir.path().join("none")]);

        let found = llvm.all("llvm-profdata");
        assert_eq!(
            versions(&found),
            ["23.1.4", "22.1.8", "21.0.0git", "14.0.6", "9.0.1"]
        );
        assert_eq!(
            found.tools[0].path,
            first.join("llvm-profdata-23"),
            "one program, two names"
        );
        assert_eq!(found.broken.len(), 1);
        assert!(
            found.broken[0].1.contains("cannot run"),
            "{:?}",
            found.broken
        );
        let taken = |raw| llvm.profdata(raw).map(|tool| tool.version.text);
        assert_eq!(taken(11), Ok("23.1.4".to_owned()));
        assert_eq!(taken(10), Ok("22.1.8".to_owned()));
        assert_eq!(taken(4), Ok("9.0.1".to_owned()));
        let error = taken(12).unwrap_err();
        assert!(
            error.contains("version 12") && error.contains("llvm-profdata-22 reads version 10"),
            "{error}"
        );
        let release = &found.tools[2].version;
        let same = llvm.of_release("llvm-profdata", release).unwrap();
        assert_eq!(same.version, *release);
        assert!(
            llvm.of_release("llvm-cov", release)
                .unwrap_err()
                .contains("no llvm-cov of LLVM 21")
        );
    }

    #[test]
    fn an_installation_is_named_by_its_prefix_or_by_its_bin() {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("lib/llvm/bin");
        profdata(&bin.join("llvm-profdata"), "20.0.0", 10);
        for given in [dir.path(), &dir.path().join("lib/llvm"), &bin] {
            let options = Options {
                llvm: Some(given.to_owned()),
            };
            let found = options.search().unwrap().newest("llvm-profdata").unwrap();
            assert_eq!(found.version.numbers, [20, 0, 0]);
        }
        let options = Options {
            llvm: Some(dir.path().join("other")),
        };
        assert!(options.search().unwrap_err().contains("no such directory"));
        let empty = tempfile::tempdir().unwrap();
        let options = Options {
            llvm: Some(empty.path().to_owned()),
        };
        let error = options.search().unwrap().profdata(11).unwrap_err();
        assert!(error.contains("no llvm-profdata in"), "{error}");
    }

    #[test]
    fn versions_are_numbers_first() {
        let numbers = |text| Version::parse(text).map(|version| version.numbers);
        assert_eq!(numbers("23.1.4"), Some([23, 1, 4]));
        assert_eq!(numbers("20.0.0git"), Some([20, 0, 0]));
        assert_eq!(numbers("22.1.0-rc2"), Some([22, 1, 0]));
        assert_eq!(numbers("trunk"), None);
        assert_eq!(numbers(""), None);
    }
}
