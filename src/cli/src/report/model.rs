//! The data of a report, which all formats show and `--format json` writes: coverage of lines, branches and functions on
//! each architecture and on the host, and calls and times of kernels.

use super::lines::Position;
use super::mcdc::{Independence, Vector};
use super::source::Source;
use crate::console::Severity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// The version of the JSON format. Incremented with every incompatible change.
pub const VERSION: u32 = 1;

/// Coverage of lines, branches and functions, and calls and times of kernels (report.json.md). New fields may be added
/// without a new version.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "devprof report --format json")]
pub struct Report {
    #[schemars(extend("const" = "devprof report"))]
    pub format: &'static str,
    #[schemars(extend("const" = VERSION))]
    pub version: u32,
    /// The binaries.
    pub title: String,
    /// Information that a reader needs to interpret the numbers.
    pub notes: Vec<Note>,
    /// The architectures, and after them the host if it is included. Lists of counts have the same order.
    pub columns: Vec<Column>,
    /// The sum of all architectures that ran.
    pub device: Totals,
    /// The kind of the counts that are sums of these architectures.
    pub device_counts: CountKind,
    pub host: Option<Totals>,
    /// All architectures that ran and the host together, if the host is included.
    pub combined: Option<Totals>,
    /// How many of the instrumented kernels ran, or without profiles the same as `census`.
    pub kernel_coverage: Ratio,
    /// How many of all kernels in the binaries ran, instrumented or not, of those with code for the GPUs of the run. `None` without a
    /// trace, and if only some source files or lines are included.
    pub census: Option<Ratio>,
    /// The changes since an earlier report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Comparison>,
    /// Sorted by time spent and coverage missing, most first. Last are those that are not instrumented and never ran, of AMD's runtime,
    /// and for other GPUs.
    pub kernels: Vec<Kernel>,
    /// Whether there is a trace, so that calls and times of kernels are known.
    pub traced: bool,
    /// The traces, one per process.
    pub traces: Vec<TraceTotals>,
    /// Sorted by file and position. Each instance of a template is a function.
    pub functions: Vec<FunctionCoverage>,
    /// The functions in the source.
    #[serde(skip)]
    pub definitions: Vec<Definition>,
    pub files: Vec<File>,
    /// The code was compiled for MC/DC: it has decisions, if not in the selected lines, then elsewhere.
    #[serde(skip)]
    pub has_decisions: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct Note {
    pub level: Severity,
    pub text: String,
    /// The objects that the text is about.
    pub items: Vec<String>,
}

/// The meaning of a count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CountKind {
    /// How often code was executed.
    #[default]
    Executions,
    /// 1: the code was executed. The profile does not say how often (byte coverage).
    Ran,
}

impl CountKind {
    /// The kind of sums of such counts.
    pub fn of_sum(all: impl IntoIterator<Item = CountKind>) -> CountKind {
        let mut all = all.into_iter();
        let is_known = all.all(|kind| kind == CountKind::Executions);
        if is_known {
            CountKind::Executions
        } else {
            CountKind::Ran
        }
    }

    /// The mark that is shown instead of a count.
    pub fn mark(self, count: u64) -> Option<&'static str> {
        (self == CountKind::Ran && count > 0).then_some("✓")
    }

    /// A count or sum of this kind.
    pub fn limit(self, count: u64) -> u64 {
        match self {
            CountKind::Executions => count,
            CountKind::Ran => count.min(1),
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub struct Column {
    /// The processor (`gfx1100`), `merged` for a merged profile of several architectures, or `host`.
    pub name: String,
    pub host: bool,
    /// Whether there is a profile of it. If not, the totals do not include its code.
    pub ran: bool,
    /// The kind of its counts. If its code objects have both kinds, all count as `ran`.
    pub counts: CountKind,
    pub code_objects: usize,
    pub totals: Totals,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Ratio {
    pub covered: u64,
    pub total: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct Totals {
    /// Lines with code.
    pub lines: Ratio,
    /// Two per condition: true and false.
    pub branches: Ratio,
    /// Functions in the source. All instances of a template are one function.
    pub functions: Ratio,
    /// Conditions of decisions (MC/DC), except for constant ones: those whose effect was shown.
    #[serde(default)]
    pub mcdc: Ratio,
}

/// A trace, and all of its dispatches.
#[derive(Serialize, JsonSchema)]
pub struct TraceTotals {
    pub path: String,
    pub process: u32,
    pub calls: u64,
    /// Number of dispatches without times.
    pub untimed: u64,
    /// Total time of the others in nanoseconds.
    pub time: u64,
}

/// The dispatches of a kernel in one trace.
#[derive(Serialize, JsonSchema)]
pub struct TracedCalls {
    /// The index of the trace in `traces`.
    pub trace: usize,
    pub calls: u64,
    pub untimed: u64,
    pub time: u64,
}

/// A kernel in the trace, in an instrumented code object, or, if there is a trace, in another code object of the binaries.
#[derive(Serialize, JsonSchema)]
pub struct Kernel {
    pub name: String,
    pub symbol: String,
    pub state: KernelState,
    /// Its index in `functions`.
    pub function: Option<usize>,
    /// Number of dispatches, if there is a trace.
    pub calls: Option<u64>,
    /// Number of dispatches without times.
    pub untimed: u64,
    /// Total time of the others in nanoseconds.
    pub time: Option<u64>,
    /// The architectures on which it ran, according to the trace.
    pub architectures: BTreeSet<String>,
    /// Of a kernel that is not instrumented and never ran: its name without the arguments of templates.
    #[serde(skip)]
    pub template: Option<String>,
    /// The same for each trace that has the kernel, if there are several traces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_trace: Vec<TracedCalls>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KernelState {
    Covered,
    /// In the trace, but its code object has no coverage mapping.
    NotInstrumented,
    /// In the trace and in the binaries. There are no profiles.
    Ran,
    /// In the trace, but in none of the binaries: it is of another library, or was compiled while the program ran. There are no
    /// profiles.
    NotInBinaries,
    /// Part of AMD's own runtime (`__amd_rocclr_…`).
    Runtime,
    /// It is not in the trace, and its counts are 0 if it is instrumented.
    NeverRan,
    /// It is not instrumented and never ran, and the binaries have no code of it for the GPUs of the run.
    OtherGpu,
    /// It has counts, but is not in the trace.
    NotInTrace,
    /// In the trace, but its counts are 0.
    NotCounted,
    /// The calls of several kernels with the same symbol, which the trace does not distinguish, because it does not know the build
    /// IDs of their code objects.
    Ambiguous,
}

/// A function in the source, with all of its instances if it is a template.
#[derive(Default)]
pub struct Definition {
    /// The name. If a template has several instances, it has `<…>` instead of the arguments.
    pub name: String,
    /// The indices of its instances in `functions`.
    pub instances: Range<usize>,
    /// How many of them ran.
    pub ran: usize,
    /// How often they were entered. See [`FunctionCoverage`].
    pub columns: Vec<Option<Cell>>,
    pub count: Option<u64>,
    /// The lines and branches that ran, and the conditions whose effect was shown, in any instance.
    pub lines: Ratio,
    pub branches: Ratio,
    pub mcdc: Ratio,
}

/// A function, or an instance of a template.
#[derive(Default, Serialize, JsonSchema)]
pub struct FunctionCoverage {
    pub name: String,
    pub symbol: String,
    pub kernel: bool,
    /// The code objects only declare it, because nothing in them calls it. It counts as not run.
    pub unused: bool,
    /// Its counts are from another build, so they are lost. It counts as not run.
    pub mismatched: bool,
    /// Its index in `files`.
    pub file: usize,
    pub line: u32,
    /// The column in the source, with which the line is the position of the definition.
    pub column: u32,
    pub columns: Vec<Option<Cell>>,
    /// How often it was entered on all architectures that ran, counted per work-item. `None` for functions of the host.
    pub count: Option<u64>,
    pub lines: Ratio,
    pub branches: Ratio,
    pub mcdc: Ratio,
    /// Of a kernel: the build IDs of the code objects that have it.
    #[serde(skip)]
    pub build_ids: BTreeSet<String>,
}

/// A count. `NotRun` if the code object of this architecture has the code, but did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Cell {
    Count(u64),
    NotRun(NotRun),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum NotRun {
    #[serde(rename = "not run")]
    NotRun,
}

#[derive(Serialize, JsonSchema)]
pub struct File {
    pub path: Arc<str>,
    #[serde(flatten)]
    pub source: Source,
    /// The sum of all architectures that ran. None if only the host has code in this file.
    pub device: Option<Totals>,
    pub host: Option<Totals>,
    /// The architectures and the host together, if the report includes the host.
    pub combined: Option<Totals>,
    pub columns: Vec<Option<Totals>>,
    /// The lines that have code in any column.
    pub lines: Vec<Line>,
    /// With `--diff`: the only lines that are included.
    #[serde(skip)]
    pub changed: Option<Vec<RangeInclusive<u32>>>,
    /// The tests that ran each line, if they are known.
    #[serde(skip)]
    pub tests: BTreeMap<u32, LineTests>,
}

/// The tests that ran a line.
#[derive(Default)]
pub struct LineTests {
    pub number: usize,
    /// The names of the first ones.
    pub first: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Line {
    pub number: u32,
    /// The sum of the architectures that ran.
    pub device: Option<u64>,
    pub columns: Vec<Option<Cell>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<Condition>,
    /// The decisions that start on the line. With `--diff`, of those that start on a line that is not included, also those whose first
    /// included line it is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
}

/// A condition, which has two branches.
#[derive(Serialize, JsonSchema)]
pub struct Condition {
    pub column: u32,
    pub end: Position,
    /// How often it was true and how often false: the sum of the architectures that ran.
    pub device: Option<(u64, u64)>,
    pub columns: Vec<Option<(u64, u64)>>,
}

/// Several conditions that are combined with `&&` and `||`, in a function in the source or in its use of a macro.
#[derive(Serialize, JsonSchema)]
pub struct Decision {
    pub start: Position,
    pub end: Position,
    pub conditions: Vec<DecisionCondition>,
    /// The functions that have it, in each column that ran. They are several if it is in a template.
    pub evaluations: Vec<Evaluation>,
}

#[derive(Serialize, JsonSchema)]
pub struct DecisionCondition {
    /// The path in the coverage mapping, if it is in another file, because of a macro.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Arc<str>>,
    pub start: Position,
    pub end: Position,
    /// Whether its effect was shown on one of the architectures that ran. `None` as well if it is constant there.
    pub device: Option<bool>,
    pub columns: Vec<Option<bool>>,
}

/// The test vectors of a decision that were executed in one column and function.
#[derive(Serialize, JsonSchema)]
pub struct Evaluation {
    /// The index of the column in `columns`.
    pub column: usize,
    /// The name of the function.
    pub function: String,
    pub symbol: String,
    /// Whether the results of the vectors were computed from the source. Otherwise they are llvm-cov's, which are wrong if a group of
    /// conditions is negated.
    pub results_from_source: bool,
    /// Those with the result false are first.
    pub vectors: Vec<Vector>,
    /// For each condition, the pair of vectors that shows its effect.
    pub pairs: Vec<Independence>,
}

/// The differences from an earlier report.
#[derive(Serialize, JsonSchema)]
pub struct Comparison {
    /// The earlier report.
    pub path: String,
    /// Its totals.
    pub totals: Totals,
    pub kernel_coverage: Ratio,
    /// The change of the percentages, in percentage points. `None` if there is nothing to compare.
    pub change: Change,
    /// The files whose totals differ.
    pub files: Vec<FileChange>,
    /// The functions that run now and did not, or do not run now and did, or are new and do not run.
    pub functions: Vec<FunctionChange>,
}

#[derive(Serialize, JsonSchema)]
pub struct Change {
    pub lines: Option<f64>,
    pub branches: Option<f64>,
    pub functions: Option<f64>,
    pub kernels: Option<f64>,
    pub mcdc: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
pub struct FileChange {
    pub path: String,
    /// `None`: the earlier report does not have it.
    pub before: Option<Totals>,
    /// `None`: this report does not have it.
    pub after: Option<Totals>,
}

#[derive(Serialize, JsonSchema)]
pub struct FunctionChange {
    pub name: String,
    pub symbol: String,
    pub path: String,
    pub line: u32,
    pub kernel: bool,
    pub change: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// It ran before, and does not run now.
    NoLongerRuns,
    /// It did not exist before, and does not run.
    NewNeverRan,
    /// It did not run before, and runs now.
    RunsNow,
}

impl Kind {
    pub fn text(self) -> &'static str {
        match self {
            Kind::NoLongerRuns => "no longer runs",
            Kind::NewNeverRan => "new, never ran",
            Kind::RunsNow => "runs now",
        }
    }
}

impl Report {
    /// Whether there are profiles, and not only traces.
    pub fn has_coverage(&self) -> bool {
        !self.columns.is_empty()
    }

    pub fn heading(&self) -> String {
        let what = if self.has_coverage() {
            "Coverage"
        } else {
            "Kernels"
        };
        format!("{what} of {}", self.title)
    }

    /// The totals of everything that the report includes.
    pub fn overall(&self) -> Totals {
        self.combined.unwrap_or(self.device)
    }

    /// The indices of the definitions in a file.
    pub fn definitions_of(&self, file: usize) -> Range<usize> {
        let of = |definition: &Definition| self.functions[definition.instances.start].file;
        let start = self.definitions.partition_point(|own| of(own) < file);
        start..self.definitions.partition_point(|own| of(own) <= file)
    }

    /// The kind of [`entered`] for a function with this count on devices.
    pub fn entered_counts(&self, device: Option<u64>) -> CountKind {
        let host = || self.columns.iter().find(|column| column.host);
        match device {
            Some(_) => self.device_counts,
            None => host().map_or(CountKind::Executions, |host| host.counts),
        }
    }

    /// The kind of the counts that are sums of everything that the report includes.
    pub fn counts(&self) -> CountKind {
        let host = self.host_column().map(|host| self.columns[host].counts);
        CountKind::of_sum([self.device_counts].into_iter().chain(host))
    }

    /// The index of the host's column, if there is a profile of it.
    pub fn host_column(&self) -> Option<usize> {
        let is_host = |column: &Column| column.host && column.ran;
        self.columns.iter().position(is_host)
    }
}

impl File {
    /// The totals of everything that the report includes.
    pub fn overall(&self) -> Option<Totals> {
        self.combined.or(self.device)
    }

    /// The path after `--path-map` and `--sources-from`.
    pub fn location(&self) -> &str {
        &self.source.location
    }
}

impl Cell {
    pub fn count(self) -> Option<u64> {
        match self {
            Cell::Count(count) => Some(count),
            Cell::NotRun(_) => None,
        }
    }
}

impl FunctionCoverage {
    pub fn ran(&self) -> bool {
        let mut cells = self.columns.iter().flatten();
        cells.any(|cell| matches!(cell, Cell::Count(1..)))
    }
}

/// How often a function was entered on all architectures that ran, or else on the host.
pub fn entered(count: Option<u64>, columns: &[Option<Cell>]) -> Option<Cell> {
    let first = || columns.iter().flatten().next().copied();
    count.map(Cell::Count).or_else(first)
}

impl Ratio {
    /// How many of the counts are not 0.
    pub fn of(counts: impl IntoIterator<Item = u64>) -> Ratio {
        let mut ratio = Ratio::default();
        for count in counts {
            ratio.total += 1;
            ratio.covered += u64::from(count > 0);
        }
        ratio
    }

    /// How many branches were taken: two per condition.
    pub fn of_conditions<'a>(counts: impl IntoIterator<Item = &'a (u64, u64)>) -> Ratio {
        let counts = counts.into_iter();
        Ratio::of(counts.flat_map(|&(taken, not)| [taken, not]))
    }

    /// How many conditions have an effect that was shown. Constant conditions (`None`) are not included.
    pub fn of_effects(effects: impl IntoIterator<Item = Option<bool>>) -> Ratio {
        Ratio::of(effects.into_iter().flatten().map(u64::from))
    }

    pub fn add(&mut self, other: Ratio) {
        self.covered += other.covered;
        self.total += other.total;
    }

    /// `None` if the total is 0.
    pub fn percent(self) -> Option<f64> {
        (self.total > 0).then(|| 100.0 * self.covered as f64 / self.total as f64)
    }

    /// The percentage, rounded as genhtml does: only complete coverage is 100 %, and only no coverage 0 %.
    pub fn percent_text(self) -> String {
        match self.percent() {
            None => "–".to_owned(),
            Some(100.0) => "100 %".to_owned(),
            Some(part) if part > 0.0 => format!("{:.1} %", part.clamp(0.1, 99.9)),
            Some(_) => "0 %".to_owned(),
        }
    }

    pub fn missed(self) -> u64 {
        self.total - self.covered
    }
}

impl Totals {
    fn add(&mut self, other: Totals) {
        self.lines.add(other.lines);
        self.branches.add(other.branches);
        self.functions.add(other.functions);
        self.mcdc.add(other.mcdc);
    }

    pub fn sum(all: impl IntoIterator<Item = Totals>) -> Totals {
        let mut sum = Totals::default();
        all.into_iter().for_each(|totals| sum.add(totals));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::Ratio;

    #[test]
    fn percentages_are_rounded_but_not_to_0_or_100() {
        let text = |covered, total| Ratio { covered, total }.percent_text();
        assert_eq!(text(9999, 10000), "99.9 %");
        assert_eq!(text(1, 10000), "0.1 %");
        assert_eq!(text(68, 71), "95.8 %");
        assert_eq!(text(7, 7), "100 %");
        assert_eq!(text(0, 7), "0 %");
        assert_eq!(text(0, 0), "–");
    }
}
