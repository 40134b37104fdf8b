//! Runs llvm-profdata: merges a list of files into one indexed profile, and reads its messages about single files.

use super::inputs::{Input, Inputs};
use super::output_group::OutputGroup;
use super::profile::{Arch, Kind};
use crate::llvm::{Llvm, Tool};
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The result of merging a group.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Number of files in the output. 0: llvm-profdata refused all of them, and there is no output.
    pub files: usize,
    /// Their architectures.
    pub archs: BTreeSet<Arch>,
    pub problems: Vec<Problem>,
    /// The llvm-profdatas that were used. The last one wrote the output.
    pub tools: Vec<Tool>,
}

/// A file or function that llvm-profdata refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The first one, if the counters of several files were added.
    file: PathBuf,
    /// The number of files whose counters were added.
    files: usize,
    /// llvm-profdata refused the complete file, not only a function.
    pub complete_file: bool,
    /// llvm-profdata's message. If it is about a function, it begins with the function's name.
    message: String,
}

impl Problem {
    fn new(diagnostic: &Diagnostic, inputs: &Inputs) -> Option<Problem> {
        let input = &inputs.all[diagnostic.input?];
        Some(Problem {
            file: input.files[0].clone(),
            files: input.files.len(),
            complete_file: diagnostic.complete_file,
            message: diagnostic.message.clone(),
        })
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}", self.file.display())?;
        if self.files > 1 {
            write!(f, " and {} more of the same code object", self.files - 1)?;
        }
        write!(f, ": llvm-profdata: {}", self.message)
    }
}

/// One run of llvm-profdata.
struct Step {
    tool: Tool,
    /// Indices into [`Inputs::all`]. The output of the previous step is merged, too.
    inputs: Vec<usize>,
}

/// Merges a group into `out`. Each llvm-profdata gets the raw profiles that it can read, the oldest llvm-profdata
/// first. Each one also gets the output of the previous one, because it reads the indexed profiles of older versions.
///
/// # Errors
/// An llvm-profdata is missing, or fails for a reason other than its input.
pub fn merge(
    group: &OutputGroup,
    inputs: &Inputs,
    llvm: &Llvm,
    sparse: bool,
    scratch: &Path,
    out: &Path,
) -> Result<Outcome> {
    let steps = steps(group, inputs, llvm)?;
    let mut outcome = Outcome::default();
    let mut refused = HashSet::new();
    let mut previous: Option<PathBuf> = None;
    for (n, step) in steps.iter().enumerate() {
        let is_last = n + 1 == steps.len();
        let to = if is_last {
            out.to_owned()
        } else {
            scratch.join(format!("step-{n}.profdata"))
        };
        let previous_output = previous.take();
        // llvm-profdata may refuse a file after it has merged a part of it. In that case, merge again without the file.
        let result = loop {
            let mut list = List::new(scratch);
            if let Some(path) = &previous_output {
                list.add(path, None)?;
            }
            for input in &step.inputs {
                if !refused.contains(input) {
                    list.add(&inputs.file(*input, scratch)?, Some(*input))?;
                }
            }
            let result = list.merge(&step.tool, sparse && is_last, &to)?;
            let complete_files = || result.diagnostics.iter().filter(|d| d.complete_file);
            let before = refused.len();
            refused.extend(complete_files().filter_map(|diagnostic| diagnostic.input));
            if refused.len() == before || !result.has_output {
                break result;
            }
            let problems = complete_files().filter_map(|d| Problem::new(d, inputs));
            outcome.problems.extend(problems);
        };
        let problems = result.diagnostics.iter();
        let problems = problems.filter_map(|diagnostic| Problem::new(diagnostic, inputs));
        outcome.problems.extend(problems);
        if result.has_output {
            outcome.tools.push(step.tool.clone());
            previous = Some(to);
        }
    }
    if previous.is_some() {
        let merged = group.inputs.iter().filter(|input| !refused.contains(input));
        for Input { files, arch, .. } in merged.map(|&input| &inputs.all[input]) {
            outcome.files += files.len();
            outcome.archs.insert(arch.clone());
        }
    }
    Ok(outcome)
}

/// Number of functions in an indexed profile. A function with several hashes counts once per hash.
///
/// # Errors
/// llvm-profdata does not print it.
pub fn functions(tool: &Tool, profile: &Path) -> Result<usize> {
    let output = tool.command().arg("show").arg(profile).output();
    let output = output.with_context(|| format!("cannot start {}", tool.path.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines = text.lines();
    lines
        .find_map(|line| line.strip_prefix("Total functions: ")?.trim().parse().ok())
        .with_context(|| {
            let tool = tool.path.display();
            format!("{tool} show does not print the number of functions")
        })
}

/// The runs of llvm-profdata that merge a group, the lowest version first.
fn steps(group: &OutputGroup, inputs: &Inputs, llvm: &Llvm) -> Result<Vec<Step>> {
    let mut raw: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    let mut others = Vec::new();
    // The highest version of an indexed profile.
    let mut indexed = 0;
    for &input in &group.inputs {
        match inputs.all[input].kind {
            Kind::Raw(version) => raw.entry(version).or_default().push(input),
            Kind::Indexed(version) => {
                indexed = indexed.max(version);
                others.push(input);
            }
            Kind::Text => others.push(input),
        }
    }
    let mut steps = Vec::new();
    for (version, inputs) in raw {
        let tool = llvm.profdata(version)?;
        steps.push(Step { tool, inputs });
    }
    steps.sort_by_key(|step: &Step| step.tool.version.numbers);
    if others.is_empty() {
        return Ok(steps);
    }
    // The last one merges indexed and text profiles too, if it is new enough.
    let is_enough = |tool: &Tool| match tool.indexed_version() {
        Ok(version) => *version >= indexed,
        Err(_) => false,
    };
    match steps.last_mut() {
        Some(last) if indexed == 0 || is_enough(&last.tool) => last.inputs.extend(&others),
        _ => steps.push(Step {
            tool: llvm.newest("llvm-profdata")?,
            inputs: others,
        }),
    }
    Ok(steps)
}

/// The list of files for one run of llvm-profdata.
struct List<'a> {
    scratch: &'a Path,
    text: Vec<u8>,
    /// Indices into [`Inputs::all`], by the path in the list. `None`: the output of an earlier step.
    inputs: HashMap<Vec<u8>, Option<usize>>,
}

/// The result of one run of llvm-profdata.
struct MergeResult {
    diagnostics: Vec<Diagnostic>,
    has_output: bool,
}

/// A line that llvm-profdata printed about a file.
struct Diagnostic {
    /// llvm-profdata refuses the complete file, not only a function.
    complete_file: bool,
    /// See [`List::inputs`].
    input: Option<usize>,
    message: String,
}

impl List<'_> {
    fn new(scratch: &Path) -> List<'_> {
        List {
            scratch,
            text: Vec::new(),
            inputs: HashMap::new(),
        }
    }

    fn add(&mut self, path: &Path, input: Option<usize>) -> Result<()> {
        let bytes = path.as_os_str().as_bytes();
        // llvm-profdata trims the lines of the list, and `-` means stdin.
        let is_plain = bytes != b"-"
            && !bytes.contains(&b'\n')
            && !bytes.last().is_some_and(u8::is_ascii_whitespace);
        let link;
        let path = if is_plain {
            path
        } else {
            link = self.scratch.join(format!("link-{}", self.inputs.len()));
            let target = std::path::absolute(path);
            target
                .and_then(|target| symlink(target, &link))
                .with_context(|| format!("cannot create the link {}", link.display()))?;
            &link
        };
        // The weight is explicit because llvm-profdata would parse the part of the path before a comma as a weight.
        self.text.extend_from_slice(b"1,");
        let bytes = path.as_os_str().as_bytes();
        self.text.extend_from_slice(bytes);
        self.text.push(b'\n');
        self.inputs.insert(bytes.to_vec(), input);
        Ok(())
    }

    fn merge(&self, tool: &Tool, sparse: bool, to: &Path) -> Result<MergeResult> {
        let list = self.scratch.join("list");
        fs::write(&list, &self.text).with_context(|| format!("cannot write {}", list.display()))?;
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
            .with_context(|| format!("cannot start {}", tool.path.display()))?;
        let diagnostics = self.diagnostics(&output.stderr);
        let has_output = output.status.success();
        if !has_output && !diagnostics.iter().any(|known| known.complete_file) {
            let text = String::from_utf8_lossy(&output.stderr);
            let line = text.lines().find(|line| line.starts_with("error"));
            let line = line.or(text.lines().last()).unwrap_or("no message");
            bail!(
                "{} merge, of {} files: {}: {line}",
                tool.path.display(),
                self.inputs.len(),
                output.status
            );
        }
        Ok(MergeResult {
            diagnostics,
            has_output,
        })
    }

    /// `warning: FILE: why` if llvm-profdata refuses a file, `FILE: FUNCTION: why` if it refuses a function. Other
    /// lines are advice.
    fn diagnostics(&self, stderr: &[u8]) -> Vec<Diagnostic> {
        let lines = stderr.split(|&byte| byte == b'\n');
        lines
            .filter_map(|line| {
                let warning = line.strip_prefix(b"warning: ");
                let text = warning.unwrap_or(line);
                let mut breaks = text.windows(2).enumerate().filter(|(_, two)| two == b": ");
                let (path, input) =
                    breaks.find_map(|(at, _)| Some((at, self.inputs.get(&text[..at])?)))?;
                Some(Diagnostic {
                    complete_file: warning.is_some(),
                    input: *input,
                    message: OsStr::from_bytes(&text[path + 2..]).display().to_string(),
                })
            })
            .collect()
    }
}
