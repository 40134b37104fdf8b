//! `--baseline`: the differences from an earlier report, which was written with `--format json`.
//!
//! Files and functions are compared by path and symbol, not by line, because an edit moves the lines below it.

use super::model::{
    Change, Comparison, FileChange, FunctionChange, Kind, Ratio, Report, Totals, VERSION,
};
use super::select::Select;
use anyhow::{Context, ensure};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// The fields of an earlier report that are compared.
#[derive(Deserialize)]
struct Earlier {
    format: String,
    version: u32,
    device: Totals,
    combined: Option<Totals>,
    kernel_coverage: Option<Ratio>,
    files: Vec<EarlierFile>,
    functions: Vec<EarlierFunction>,
    #[serde(default)]
    kernels: Vec<EarlierKernel>,
}

#[derive(Deserialize)]
struct EarlierKernel {
    state: String,
    function: Option<usize>,
}

impl EarlierKernel {
    /// Whether it counts as covered. See [`super::model::KernelState`].
    fn has_run(&self) -> bool {
        matches!(&*self.state, "covered" | "not-in-trace")
    }
}

#[derive(Deserialize)]
struct EarlierFile {
    path: String,
    location: Option<String>,
    device: Option<Totals>,
    combined: Option<Totals>,
}

#[derive(Deserialize)]
struct EarlierFunction {
    symbol: String,
    file: usize,
    columns: Vec<serde_json::Value>,
}

impl EarlierFile {
    fn location(&self) -> &str {
        self.location.as_deref().unwrap_or(&self.path)
    }
}

/// Compares a report with an earlier one: a file, or a directory that has `report.json`.
///
/// # Errors
/// The earlier report cannot be read.
pub fn compare(path: &Path, select: &Select, report: &Report) -> anyhow::Result<Comparison> {
    let mut file = path.to_owned();
    if path.is_dir() {
        file.push("report.json");
    }
    let cannot_read = || format!("cannot read the baseline {}", file.display());
    let opened = File::open(&file).with_context(cannot_read)?;
    let mut earlier: Earlier =
        serde_json::from_reader(BufReader::new(opened)).with_context(|| {
            format!(
                "{}: not a report that `devprof report --format json` wrote",
                cannot_read()
            )
        })?;
    ensure!(
        earlier.format == "devprof report" && earlier.version == VERSION,
        "{}: it is a {:?} of version {}, not a devprof report of version {}",
        cannot_read(),
        earlier.format,
        earlier.version,
        VERSION
    );
    earlier.retain(select);
    Ok(compared(path, &earlier, report))
}

impl Earlier {
    /// Leaves out the files that are not selected. The totals then contain only the other files.
    fn retain(&mut self, select: &Select) {
        let is_selected = |file: &EarlierFile| select.includes(&file.path, file.location());
        if self.files.iter().all(is_selected) {
            return;
        }
        let selected: Vec<bool> = self.files.iter().map(is_selected).collect();
        let file = |function: &EarlierFunction| selected.get(function.file) == Some(&true);
        let kernels: Vec<&EarlierKernel> = self
            .kernels
            .iter()
            .filter(|kernel| {
                let function = kernel.function.and_then(|index| self.functions.get(index));
                function.is_some_and(file)
            })
            .collect();
        let ran = |kernel: &&EarlierKernel| u64::from(kernel.has_run());
        self.kernel_coverage = Some(Ratio::of(kernels.iter().map(ran)));
        // The files stay, because functions have their indices.
        for (file, _) in self
            .files
            .iter_mut()
            .zip(&selected)
            .filter(|(_, selected)| !**selected)
        {
            (file.device, file.combined) = (None, None);
        }
        self.functions
            .retain(|function| selected.get(function.file) == Some(&true));
        self.device = Totals::sum(self.files.iter().filter_map(|file| file.device));
        let has_host = self.combined.is_some();
        self.combined =
            has_host.then(|| Totals::sum(self.files.iter().filter_map(|file| file.combined)));
    }
}

fn compared(path: &Path, earlier: &Earlier, report: &Report) -> Comparison {
    // With the host, if both reports include it.
    let (before, after) = earlier
        .combined
        .zip(report.combined)
        .unwrap_or((earlier.device, report.device));
    let kernels = earlier.kernel_coverage.unwrap_or_default();
    let points = |before: Ratio, after: Ratio| Some(after.percent()? - before.percent()?);
    let change = Change {
        lines: points(before.lines, after.lines),
        branches: points(before.branches, after.branches),
        functions: points(before.functions, after.functions),
        kernels: points(kernels, report.kernel_coverage),
        mcdc: points(before.mcdc, after.mcdc),
    };
    Comparison {
        path: path.display().to_string(),
        totals: before,
        kernel_coverage: kernels,
        change,
        files: files(earlier, report),
        functions: functions(earlier, report),
    }
}

fn files(earlier: &Earlier, report: &Report) -> Vec<FileChange> {
    let has_host = earlier.combined.is_some() && report.combined.is_some();
    let choose = |combined: Option<Totals>, device| if has_host { combined } else { device };
    let mut paths: BTreeMap<&str, (Option<Totals>, Option<Totals>)> = BTreeMap::new();
    for file in &earlier.files {
        paths.entry(file.location()).or_default().0 = choose(file.combined, file.device);
    }
    for file in &report.files {
        paths.entry(file.location()).or_default().1 = choose(file.combined, file.device);
    }
    let changed = paths.into_iter();
    changed
        .filter(|(_, (before, after))| before != after)
        .map(|(path, (before, after))| FileChange {
            path: path.to_owned(),
            before,
            after,
        })
        .collect()
}

fn functions(earlier: &Earlier, report: &Report) -> Vec<FunctionChange> {
    let ran = |columns: &[serde_json::Value]| {
        let mut counts = columns.iter().filter_map(serde_json::Value::as_u64);
        counts.any(|count| count > 0)
    };
    // Instances of a template in several files are different functions.
    let mut before: BTreeMap<(&str, &str), bool> = BTreeMap::new();
    for function in &earlier.functions {
        let file = earlier.files.get(function.file);
        let path = file.map_or("", EarlierFile::location);
        *before.entry((path, &function.symbol)).or_default() |= ran(&function.columns);
    }
    let mut seen = BTreeSet::new();
    let mut changes = Vec::new();
    for function in &report.functions {
        let path = report.files[function.file].location();
        let key = (path, function.symbol.as_str());
        let change = match (before.get(&key), function.ran()) {
            (Some(true), false) => Kind::NoLongerRuns,
            (Some(false), true) => Kind::RunsNow,
            (None, false) => Kind::NewNeverRan,
            _ => continue,
        };
        if seen.insert(key) {
            changes.push(FunctionChange {
                name: function.name.clone(),
                symbol: function.symbol.clone(),
                path: path.to_owned(),
                line: function.line,
                kernel: function.kernel,
                change,
            });
        }
    }
    changes.sort_by_key(|function| function.change);
    changes
}
