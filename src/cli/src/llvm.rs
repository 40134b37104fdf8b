//! Finds LLVM's tools, of which several releases can be installed, and determines which profiles each of them reads. An
//! llvm-profdata reads only the raw profiles of its own release.

use crate::exit::usage;
use anyhow::{Context, anyhow, bail};
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

pub const INSTALL: &str = "apt-get install clang-23 llvm-23 lld-23 clang-tools-23 (Debian), or name an installation with --llvm DIR";

/// Where to find LLVM's tools, for the commands that need them.
#[derive(Args, Clone, Debug, Default)]
// clap would name the group after the type, and the command's own type has the same name.
#[group(skip)]
pub struct Options {
    /// Use LLVM's tools from this directory: an installation of LLVM, or its bin directory
    ///
    /// By default, devprof searches PATH (for names with and without a version suffix), $ROCM_PATH, /opt/rocm* and
    /// /usr/lib/llvm-*, and uses the highest version that is suitable.
    #[arg(long, value_name = "DIR")]
    llvm: Option<PathBuf>,
}

/// The version that a tool's `--version` prints.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Major, minor, patch.
    pub numbers: [u32; 3],
    /// As printed: `23.1.4`, `20.0.0git`.
    pub text: String,
}

/// An LLVM program with a known version.
#[derive(Clone, Debug)]
pub struct Tool {
    /// The path at which it was found, which may be a symbolic link.
    pub path: PathBuf,
    pub version: Version,
    // The errors are messages because an `anyhow::Error` cannot be cloned with its tool.
    raw: OnceLock<Result<u64, String>>,
    indexed: OnceLock<Result<u64, String>>,
}

/// The programs of one name: the usable ones, highest version first, and the others.
#[derive(Debug, Default)]
pub struct Found {
    pub tools: Vec<Tool>,
    /// The path, and why its version is not known.
    pub broken: Vec<(PathBuf, String)>,
}

/// The directories to search for LLVM's tools, most preferred first, and the tools that were found there.
#[derive(Debug)]
pub struct Llvm {
    dirs: Vec<PathBuf>,
    found: Mutex<HashMap<String, Arc<Found>>>,
    /// The directory of `--llvm`, for error messages.
    given: Option<PathBuf>,
}

impl Options {
    /// The tools in the directories that the options select.
    ///
    /// # Errors
    /// The argument of `--llvm` is not a directory.
    pub fn search(&self) -> anyhow::Result<Llvm> {
        match &self.llvm {
            None => Ok(Llvm::new(everywhere())),
            Some(dir) if dir.is_dir() => Ok(Llvm {
                given: Some(dir.clone()),
                ..Llvm::new(within(dir))
            }),
            Some(dir) => Err(usage(format!(
                "--llvm {}: no such directory; name an installation of LLVM, or its bin directory",
                dir.display()
            ))),
        }
    }
}

/// The directories of an installation that may have programs. ROCm has LLVM in a subdirectory.
fn within(prefix: &Path) -> Vec<PathBuf> {
    ["", "bin", "llvm/bin", "lib/llvm/bin"]
        .map(|dir| prefix.join(dir))
        .into()
}

fn everywhere() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = env::split_paths(&path).collect();
    dirs.retain(|dir| dir.is_absolute());
    if let Some(rocm) = env::var_os("ROCM_PATH").filter(|rocm| !rocm.is_empty()) {
        dirs.extend(within(Path::new(&rocm)));
    }
    dirs.extend(entries("/opt", "rocm").iter().flat_map(|rocm| within(rocm)));
    let releases = entries("/usr/lib", "llvm-");
    dirs.extend(releases.iter().map(|llvm| llvm.join("bin")));
    dirs
}

/// The sorted entries of a directory whose names have this prefix. Empty if the directory does not exist.
pub fn entries(dir: impl AsRef<Path>, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let named = entries.filter(|entry| {
        entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(prefix.as_bytes())
    });
    let mut paths: Vec<PathBuf> = named.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

impl Llvm {
    /// The tools in these directories, most preferred first.
    pub fn new(dirs: Vec<PathBuf>) -> Llvm {
        Llvm {
            dirs,
            found: Mutex::default(),
            given: None,
        }
    }

    /// All programs with this name (`llvm-profdata`), with or without a version suffix (`llvm-profdata-22`). The result
    /// is cached.
    pub fn all(&self, name: &str) -> Arc<Found> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = found.get(name) {
            return found.clone();
        }
        let new = Arc::new(self.find(name));
        found.insert(name.to_owned(), new.clone());
        new
    }

    fn find(&self, name: &str) -> Found {
        let mut found = Found::default();
        let mut seen = Vec::new();
        let mut started = Vec::new();
        for path in self.dirs.iter().flat_map(|dir| candidates(dir, name)) {
            let Ok(program) = path.canonicalize() else {
                continue;
            };
            if program.is_file() && !seen.contains(&program) {
                seen.push(program);
                // All of them run at the same time, because each takes a while to start.
                let child = query(&path, &["--version"]).spawn();
                started.push((path, child));
            }
        }
        for (path, child) in started {
            let mut version = version(child);
            if version.is_err() && name == PROFDATA {
                // Before LLVM 17 only its subcommands have --version.
                version = self::version(query(&path, &["merge", "--version"]).spawn());
            }
            match version {
                Ok(version) => found.tools.push(Tool {
                    path,
                    version,
                    raw: OnceLock::new(),
                    indexed: OnceLock::new(),
                }),
                Err(error) => found.broken.push((path, format!("{error:#}"))),
            }
        }
        // The sort is stable: among equal versions the first one found stays first.
        found
            .tools
            .sort_by_key(|tool| Reverse(tool.version.numbers));
        found
    }

    /// The highest version of a program.
    ///
    /// # Errors
    /// There is no such program. The message has the directories that were searched and how to install the program.
    pub fn newest(&self, name: &str) -> anyhow::Result<Tool> {
        let found = self.all(name);
        let newest = found.tools.first().cloned();
        newest.with_context(|| self.missing(name, &found))
    }

    /// The highest version of a program from the same release as another program.
    ///
    /// # Errors
    /// There is no such program of that release.
    pub fn of_release(&self, name: &str, release: &Version) -> anyhow::Result<Tool> {
        let found = self.all(name);
        let same = |tool: &&Tool| tool.version.numbers[0] == release.numbers[0];
        found.tools.iter().find(same).cloned().ok_or_else(|| {
            let why = self.missing(name, &found);
            anyhow!("no {name} of LLVM {}: {why}", release.numbers[0])
        })
    }

    /// The llvm-profdata with the highest version that reads raw profiles of this version.
    ///
    /// # Errors
    /// There is no such llvm-profdata. The message lists the installed ones and the versions that they read.
    pub fn profdata(&self, raw: u64) -> anyhow::Result<Tool> {
        let found = self.all(PROFDATA);
        let fits = |tool: &&Tool| tool.raw_version().as_ref() == Ok(&raw);
        if let Some(tool) = found.tools.iter().find(fits) {
            return Ok(tool.clone());
        }
        if found.tools.is_empty() {
            bail!(self.missing(PROFDATA, &found));
        }
        let others = found.tools.iter().map(|tool| match tool.raw_version() {
            Ok(version) => format!("{} reads version {version}", tool.path.display()),
            Err(why) => format!("{}: {why}", tool.path.display()),
        });
        let others: Vec<String> = others.collect();
        let searched = match &self.given {
            Some(dir) => format!(" in {}", dir.display()),
            None => String::new(),
        };
        let advice = match release_of(raw) {
            Some(release) => {
                format!("use LLVM {release}'s: apt-get install llvm-{release}, or --llvm DIR")
            }
            None => "use the LLVM that belongs to the clang with which the program was compiled: --llvm DIR".to_owned(),
        };
        bail!(
            "no llvm-profdata reads raw profiles of version {raw}{searched} ({}); {advice}",
            others.join("; "),
        )
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

/// The release whose llvm-profdata reads this raw version. Used only to suggest a package. To find out which
/// version an installed tool reads, devprof runs it.
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
        let is_part = |byte: u8| byte.is_ascii_digit() || byte == b'.';
        !number.is_empty() && number.bytes().all(is_part)
    };
    let plain = dir.join(name);
    let mut found: Vec<PathBuf> = plain.exists().then_some(plain).into_iter().collect();
    found.extend(entries(dir, &prefix).into_iter().filter(release));
    found
}

/// The command that runs a program for its output.
fn query(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The version in the output of a program's `--version`.
fn version(child: std::io::Result<Child>) -> anyhow::Result<Version> {
    let result = child
        .and_then(Child::wait_with_output)
        .context("cannot start it")?;
    if !result.status.success() {
        bail!("{}: {}", result.status, first_line(&result.stderr));
    }
    let text = String::from_utf8_lossy(&result.stdout);
    let mut words = text.split_whitespace();
    words
        .find(|word| *word == "version")
        .and_then(|_| words.next())
        .and_then(Version::parse)
        .with_context(|| {
            let line = text.lines().next().unwrap_or_default();
            format!("--version prints no version: {line:?}")
        })
}

impl Version {
    /// Parses `23.1.4` or `20.0.0git`, up to the first part that is not a number.
    pub fn parse(text: &str) -> Option<Version> {
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
        // A tool that is itself instrumented must not write to the profile of the user's program.
        command.env_remove("LLVM_PROFILE_FILE").stdin(Stdio::null());
        command
    }

    /// The version of raw profiles that this llvm-profdata reads.
    pub fn raw_version(&self) -> &Result<u64, String> {
        let query = || self.query_raw_version();
        self.raw
            .get_or_init(|| query().map_err(|error| format!("{error:#}")))
    }

    /// Runs it on an empty profile of each version that devprof writes. If it rejects them, runs it on one of an unknown
    /// version, because the error then names the version that it expects.
    fn query_raw_version(&self) -> anyhow::Result<u64> {
        for format in [&V11, &V10] {
            if self.show_empty(format.version)?.is_ok() {
                return Ok(format.version);
            }
        }
        let stderr = self.show_empty(UNKNOWN_VERSION)?.err().unwrap_or_default();
        stderr
            .split_once("expected version = ")
            .and_then(|(_, number)| number.split_whitespace().next()?.parse().ok())
            .with_context(|| {
                // "error: FILE: why", where FILE is a temporary file.
                let line = first_line(stderr.as_bytes());
                let why = line.rsplit(": ").next().unwrap_or(&line);
                format!("it reads neither version 10 nor version 11 of raw profiles: {why}")
            })
    }

    /// The version of indexed profiles (`.profdata`) that this llvm-profdata writes, which is the highest that it reads.
    pub fn indexed_version(&self) -> &Result<u64, String> {
        let query = || self.query_indexed_version();
        self.indexed
            .get_or_init(|| query().map_err(|error| format!("{error:#}")))
    }

    fn query_indexed_version(&self) -> anyhow::Result<u64> {
        let raw = self.raw_version().clone().map_err(anyhow::Error::msg)?;
        let empty = empty(raw)?;
        let out = temporary(".profdata")?;
        let arguments = ["merge".as_ref(), empty.path(), "-o".as_ref(), out.path()];
        let result = self.output(self.command().args(arguments))?;
        let bytes = fs::read(out.path()).context("cannot read its output")?;
        match Kind::of(&bytes) {
            Some(Kind::Indexed {
                version: Some(version),
            }) => Ok(version & !VARIANT_MASK),
            _ => bail!(
                "it cannot merge an empty profile: {}",
                first_line(&result.stderr)
            ),
        }
    }

    /// Runs `llvm-profdata show` on an empty raw profile of a version. The inner error is its output to stderr.
    fn show_empty(&self, version: u64) -> anyhow::Result<Result<(), String>> {
        let file = empty(version)?;
        let result = self.output(self.command().arg("show").arg(file.path()))?;
        if result.status.success() {
            return Ok(Ok(()));
        }
        Ok(Err(String::from_utf8_lossy(&result.stderr).into_owned()))
    }

    fn output(&self, command: &mut Command) -> anyhow::Result<Output> {
        command
            .output()
            .with_context(|| format!("cannot start {}", self.path.display()))
    }
}

/// The first line that a program wrote to stderr.
fn first_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    text.lines().next().unwrap_or("no message").to_owned()
}

fn temporary(suffix: &str) -> anyhow::Result<NamedTempFile> {
    let created = tempfile::Builder::new().suffix(suffix).tempfile();
    created.with_context(|| format!("cannot create a file in {}", env::temp_dir().display()))
}

/// A raw profile without functions.
fn empty(version: u64) -> anyhow::Result<NamedTempFile> {
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
    let mut file = temporary(".profraw")?;
    file.write_all(&bytes)
        .with_context(|| format!("cannot write {}", file.path().display()))?;
    Ok(file)
}

/// A version that no release has, and that does not overlap the variant flags.
const UNKNOWN_VERSION: u64 = 0x7fff_ffff;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locate::program;
    use std::os::unix::fs::symlink;

    /// An llvm-profdata that checks the version of the profile, as LLVM's does.
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
        let tools = found.tools.iter();
        tools.map(|tool| tool.version.text.as_str()).collect()
    }

    #[test]
    fn the_highest_version_that_reads_a_raw_profile_is_used() {
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
        // One program, two names.
        assert_eq!(found.tools[0].path, first.join("llvm-profdata-23"));
        let [(_, why)] = &found.broken[..] else {
            panic!("{found:?}")
        };
        assert!(why.contains("cannot run"), "{why}");
        let used = |raw| llvm.profdata(raw).map(|tool| tool.version.text);
        assert_eq!(used(11).unwrap(), "23.1.4");
        assert_eq!(used(10).unwrap(), "22.1.8");
        assert_eq!(used(4).unwrap(), "9.0.1");
        let error = used(12).unwrap_err().to_string();
        assert!(
            error.contains("version 12") && error.contains("llvm-profdata-22 reads version 10"),
            "{error}"
        );
        let release = &found.tools[2].version;
        let same = llvm.of_release("llvm-profdata", release).unwrap();
        assert_eq!(same.version, *release);
        let error = llvm.of_release("llvm-cov", release).unwrap_err();
        assert!(error.to_string().contains("no llvm-cov of LLVM 21"));
    }

    #[test]
    fn llvm_is_an_installation_or_its_bin_directory() {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("lib/llvm/bin");
        profdata(&bin.join("llvm-profdata"), "20.0.0", 10);
        let search = |dir: &Path| {
            Options {
                llvm: Some(dir.to_owned()),
            }
            .search()
        };
        for given in [dir.path(), &dir.path().join("lib/llvm"), &bin] {
            let found = search(given).unwrap().newest("llvm-profdata").unwrap();
            assert_eq!(found.version.numbers, [20, 0, 0]);
        }
        let error = search(&dir.path().join("other")).unwrap_err().to_string();
        assert!(error.contains("no such directory"), "{error}");
        let empty = tempfile::tempdir().unwrap();
        let error = search(empty.path()).unwrap().profdata(11).unwrap_err();
        assert!(error.to_string().contains("no llvm-profdata in"), "{error}");
    }

    #[test]
    fn versions_are_parsed_up_to_the_first_part_that_is_not_a_number() {
        let numbers = |text| Version::parse(text).map(|version| version.numbers);
        assert_eq!(numbers("23.1.4"), Some([23, 1, 4]));
        assert_eq!(numbers("20.0.0git"), Some([20, 0, 0]));
        assert_eq!(numbers("22.1.0-rc2"), Some([22, 1, 0]));
        assert_eq!(numbers("trunk"), None);
        assert_eq!(numbers(""), None);
    }
}
