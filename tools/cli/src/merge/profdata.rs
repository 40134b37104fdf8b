//! LLVM's llvm-profdata at work: lists of files in, one indexed profile out, and what it says about single files.

use super::profile::Arch;
use super::sums::{Item, Pile, Sums};
use crate::llvm::{Llvm, Tool};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// What became of a pile.
#[derive(Debug, Default)]
pub struct Outcome {
    /// How many files are in the output. 0: llvm-profdata wanted none of them, and there is no output.
    pub files: usize,
    /// What these are of.
    pub archs: BTreeSet<Arch>,
    pub problems: Vec<Problem>,
    /// Those that worked, the one that wrote the output last.
    pub tools: Vec<Tool>,
}

/// What llvm-profdata did not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// A file, the first of several that were added up.
    file: PathBuf,
    /// How many there are of these.
    files: usize,
    /// All of the file is refused, not only a function.
    pub whole_file: bool,
    /// In its words; of a function, with its name before it.
    what: String,
}

impl Outcome {
    fn note<'a>(&mut self, said: impl Iterator<Item = &'a Said>, sums: &Sums) {
        for Said {
            whole_file,
            files,
            what,
        } in said
        {
            if let Some(first) = files.first() {
                self.problems.push(Problem {
                    file: sums.files[*first].0.clone(),
                    files: files.len(),
                    whole_file: *whole_file,
                    what: what.clone(),
                });
            }
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.files > 1 {
            write!(f, " and {} more of the same code object", self.files - 1)?;
        }
        write!(f, ": llvm-profdata: {}", self.what)
    }
}

/// A llvm-profdata, and what it is to merge beside what the one before it wrote.
struct Step {
    tool: Tool,
    items: Vec<Item>,
}

/// Merges a pile into `out`. Each llvm-profdata gets the raw profiles that it reads, the oldest first; the next one
/// gets what that one wrote, too, since the newer read the older ones' indexed profiles.
///
/// # Errors
/// A llvm-profdata is missing, or fails for another reason than its input.
pub fn merge(
    pile: &Pile,
    sums: &Sums,
    llvm: &Llvm,
    sparse: bool,
    scratch: &Path,
    out: &Path,
) -> Result<Outcome, String> {
    let steps = steps(pile, llvm)?;
    let mut outcome = Outcome::default();
    let mut refused = HashSet::new();
    let mut before: Option<PathBuf> = None;
    for (n, step) in steps.iter().enumerate() {
        let is_last = n + 1 == steps.len();
        let to = match is_last {
            true => out.to_owned(),
            false => scratch.join(format!("step-{n}.profdata")),
        };
        let carried = before.take();
        // What it refuses in the midst of a file it has merged up to there: then all is merged again without that file.
        let said = loop {
            let mut list = List::new(scratch);
            if let Some(carried) = &carried {
                list.add(carried, Vec::new())?;
            }
            for item in &step.items {
                let (path, files) = sums.file(*item, scratch)?;
                if files.first().is_some_and(|file| !refused.contains(file)) {
                    list.add(&path, files)?;
                }
            }
            let said = list.merge(&step.tool, sparse && is_last, &to)?;
            let before = refused.len();
            let whole = said.lines.iter().filter(|said| said.whole_file);
            refused.extend(whole.flat_map(|said| said.files.iter().copied()));
            if refused.len() == before || !said.wrote {
                break said;
            }
            outcome.note(said.lines.iter().filter(|said| said.whole_file), sums);
        };
        outcome.note(said.lines.iter(), sums);
        if said.wrote {
            let tool = &step.tool;
            outcome.tools.push(tool.clone());
            before = Some(to);
        }
    }
    if before.is_some() {
        let taken = pile.files.iter().filter(|file| !refused.contains(file));
        let archs = taken.map(|&file| sums.files[file].1.clone());
        outcome.files = archs.clone().count();
        outcome.archs = archs.collect();
    }
    Ok(outcome)
}

/// How many functions an indexed profile has, one of several hashes once for each.
///
/// # Errors
/// llvm-profdata does not say.
pub fn functions(tool: &Tool, profile: &Path) -> Result<usize, String> {
    let output = tool.command().arg("show").arg(profile).output();
    let output = output.map_err(|e| format!("cannot start {}: {e}", tool.path.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines = text.lines();
    lines
        .find_map(|line| line.strip_prefix("Total functions: ")?.trim().parse().ok())
        .ok_or_else(|| format!("{} show tells no number of functions", tool.path.display()))
}

/// What to merge with which llvm-profdata, the lowest version first.
fn steps(pile: &Pile, llvm: &Llvm) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    for (raw, items) in &pile.raw {
        steps.push(Step {
            tool: llvm.profdata(*raw).map_err(|error| format!("{error:#}"))?,
            items: items.clone(),
        });
    }
    steps.sort_by_key(|step: &Step| step.tool.version.numbers);
    if pile.others.is_empty() {
        return Ok(steps);
    }
    // What is merged already goes to the last of them, if that is new enough.
    let is_enough = |tool: &Tool| match tool.indexed_version() {
        Ok(version) => *version >= pile.indexed,
        Err(_) => false,
    };
    match steps.last_mut() {
        Some(last) if pile.indexed == 0 || is_enough(&last.tool) => last.items.extend(&pile.others),
        _ => steps.push(Step {
            tool: llvm
                .newest("llvm-profdata")
                .map_err(|error| format!("{error:#}"))?,
            items: pile.others.clone(),
        }),
    }
    Ok(steps)
}

/// Files for one llvm-profdata.
struct List<'a> {
    scratch: &'a Path,
    text: Vec<u8>,
    /// By the path in the list: indices into [`Sums::files`].
    files: HashMap<Vec<u8>, Vec<usize>>,
}

/// What llvm-profdata said.
struct Report {
    lines: Vec<Said>,
    /// There is an output.
    wrote: bool,
}

struct Said {
    /// All of the file is refused, not only a function.
    whole_file: bool,
    files: Vec<usize>,
    what: String,
}

impl List<'_> {
    fn new(scratch: &Path) -> List<'_> {
        List {
            scratch,
            text: Vec::new(),
            files: HashMap::new(),
        }
    }

    fn add(&mut self, path: &Path, files: Vec<usize>) -> Result<(), String> {
        let bytes = path.as_os_str().as_bytes();
        // A line of the list is trimmed, and `-` is stdin.
        let is_plain = bytes != b"-"
            && !bytes.contains(&b'\n')
            && !bytes.last().is_some_and(u8::is_ascii_whitespace);
        let link;
        let path = match is_plain {
            true => path,
            false => {
                link = self.scratch.join(format!("link-{}", self.files.len()));
                let whole = std::path::absolute(path).and_then(|path| symlink(path, &link));
                whole.map_err(|e| format!("cannot make the link {}: {e}", link.display()))?;
                &link
            }
        };
        // A weight before it: llvm-profdata would look for one where the name has a comma.
        self.text.extend_from_slice(b"1,");
        self.text.extend_from_slice(path.as_os_str().as_bytes());
        self.text.push(b'\n');
        self.files
            .insert(path.as_os_str().as_bytes().to_vec(), files);
        Ok(())
    }

    fn merge(&self, tool: &Tool, sparse: bool, to: &Path) -> Result<Report, String> {
        let list = self.scratch.join("list");
        fs::write(&list, &self.text)
            .map_err(|e| format!("cannot write {}: {e}", list.display()))?;
        let mut command = tool.command();
        command.args(["merge", "--failure-mode=all"]);
        if sparse {
            command.arg("--sparse");
        }
        let mut files = OsString::from("--input-files=");
        files.push(&list);
        command.arg(files).arg("-o").arg(to);
        let output = command
            .output()
            .map_err(|e| format!("cannot start {}: {e}", tool.path.display()))?;
        let lines = self.read(&output.stderr);
        let wrote = output.status.success();
        if !wrote && !lines.iter().any(|said| said.whole_file) {
            let said = String::from_utf8_lossy(&output.stderr);
            let line = said.lines().find(|line| line.starts_with("error"));
            let line = line.or(said.lines().last()).unwrap_or("it says nothing");
            return Err(format!(
                "{} merge, of {} files: {}: {line}",
                tool.path.display(),
                self.files.len(),
                output.status
            ));
        }
        Ok(Report { lines, wrote })
    }

    /// `warning: FILE: why` where a file is refused, `FILE: FUNCTION: why` where a function is; other lines are advice.
    fn read(&self, said: &[u8]) -> Vec<Said> {
        let lines = said.split(|&byte| byte == b'\n');
        lines
            .filter_map(|line| {
                let own = line.strip_prefix(b"warning: ");
                let text = own.unwrap_or(line);
                let mut breaks = text.windows(2).enumerate().filter(|(_, two)| two == b": ");
                let (path, files) =
                    breaks.find_map(|(at, _)| Some((at, self.files.get(&text[..at])?)))?;
                Some(Said {
                    whole_file: own.is_some(),
                    files: files.clone(),
                    what: OsStr::from_bytes(&text[path + 2..]).display().to_string(),
                })
            })
            .collect()
    }
}
