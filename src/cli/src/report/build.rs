//! Builds the report from the coverage data of its columns and from the trace.

use super::attribution::Attribution;
use super::census::{self, Census};
use super::column_data::ColumnData;
use super::counts::sum;
use super::diff::{self, Changed};
use super::lines::{self, Position};
use super::llvm_cov::{DecisionKey, Function, Variant};
use super::mcdc::Independence;
use super::model::{
    Cell, Column, Condition, CountKind, Decision, DecisionCondition, Definition, Evaluation, File,
    FunctionCoverage, Kernel, KernelState, Line, NotRun, Ratio, Report, Totals, TraceTotals,
    TracedCalls, VERSION,
};
use super::select::Select;
use super::source::Source;
use super::trace::{Dispatches, Trace};
use crate::names::Naming;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The counts of conditions (true and false) by their start and end.
type Conditions = BTreeMap<(Position, Position), (u64, u64)>;

/// The counts of a file.
#[derive(Default)]
struct FileCounts {
    lines: BTreeMap<u32, u64>,
    conditions: Conditions,
    /// Whether the effect of each condition of a decision was shown. See [`Independence::covered`].
    decisions: BTreeMap<DecisionKey, Vec<Option<bool>>>,
    /// By the position of the definition, which the instances of a template share.
    functions: BTreeMap<Position, u64>,
}

impl FileCounts {
    /// The counts of a file, from functions of one column. The lines of each variant of a function are computed
    /// separately, because one may skip code that another one compiles.
    /// `changed`: only these lines.
    fn of<'a>(
        functions: impl IntoIterator<Item = &'a Function>,
        kind: CountKind,
        path: &str,
        changed: Option<&[RangeInclusive<u32>]>,
    ) -> FileCounts {
        let mut variants: BTreeMap<Variant, Vec<&Function>> = BTreeMap::new();
        for function in functions {
            variants.entry(function.variant).or_default().push(function);
        }
        let mut counts = FileCounts::default();
        for (variant, functions) in variants {
            let mut own = FileCounts::of_variant(&functions, path, changed);
            if let Some(changed) = changed {
                own.lines
                    .retain(|line, _| diff::overlaps(changed, *line, *line));
                own.conditions
                    .retain(|(start, _), _| diff::overlaps(changed, start.0, start.0));
                // A change of one condition is a change of the decision.
                own.decisions
                    .retain(|key, _| diff::overlaps(changed, key.start.0, key.end.0));
            }
            if variant.shares_counts {
                counts.combine(&own, u64::max);
            } else {
                counts.add(&own);
            }
        }
        counts.limited(kind)
    }

    fn of_variant(
        functions: &[&Function],
        path: &str,
        changed: Option<&[RangeInclusive<u32>]>,
    ) -> FileCounts {
        let mut counts = FileCounts::default();
        let mut regions = Vec::new();
        for function in functions {
            let here = |file: usize| &*function.files[file] == path;
            let own = function.regions.iter().filter(|(file, _)| here(*file));
            let is_changed = changed.is_none_or(|changed| function.is_in(path, changed));
            regions.extend(own.map(|(_, region)| *region));
            for (_, branch) in function.branches.iter().filter(|(file, _)| here(*file)) {
                let condition = (branch.start, branch.end);
                let sum = counts.conditions.entry(condition).or_default();
                sum.0 = sum.0.saturating_add(branch.taken);
                sum.1 = sum.1.saturating_add(branch.not_taken);
            }
            for (key, decision) in function.decisions_in(path) {
                let own = decision.independence().into_iter();
                counts.add_decision(key, own.map(Independence::covered));
            }
            if let Some((file, position)) = function.definition()
                && here(file)
                && is_changed
            {
                let count = counts.functions.entry(position).or_default();
                *count = count.saturating_add(function.count);
            }
        }
        counts.lines = lines::counts(regions);
        counts
    }

    /// Adds other counts. `both` combines two counts of the same line, condition or function.
    fn combine(&mut self, other: &FileCounts, both: fn(u64, u64) -> u64) {
        for (line, count) in &other.lines {
            let sum = self.lines.entry(*line).or_default();
            *sum = both(*sum, *count);
        }
        for (condition, (taken, not_taken)) in &other.conditions {
            let sum = self.conditions.entry(*condition).or_default();
            *sum = (both(sum.0, *taken), both(sum.1, *not_taken));
        }
        for (key, conditions) in &other.decisions {
            self.add_decision(key.clone(), conditions.iter().copied());
        }
        for (position, count) in &other.functions {
            let sum = self.functions.entry(*position).or_default();
            *sum = both(*sum, *count);
        }
    }

    /// The effect of a condition was shown if it was in one of the functions: a pair is always of one function.
    fn add_decision(&mut self, key: DecisionKey, conditions: impl Iterator<Item = Option<bool>>) {
        let own = self.decisions.entry(key.clone()).or_default();
        own.resize(key.conditions.len(), None);
        for (own, other) in own.iter_mut().zip(conditions) {
            *own = sum(*own, other, |one, two| one || two);
        }
    }

    /// The counts or sums, of this kind.
    fn limited(mut self, kind: CountKind) -> FileCounts {
        let conditions = self.conditions.values_mut();
        let counts = conditions.flat_map(|(taken, not_taken)| [taken, not_taken]);
        let counts = counts.chain(self.lines.values_mut());
        for count in counts.chain(self.functions.values_mut()) {
            *count = kind.limit(*count);
        }
        self
    }

    fn add(&mut self, other: &FileCounts) {
        self.combine(other, u64::saturating_add);
    }

    fn totals(&self) -> Totals {
        Totals {
            lines: Ratio::of(self.lines.values().copied()),
            branches: Ratio::of_conditions(self.conditions.values()),
            functions: Ratio::of(self.functions.values().copied()),
            mcdc: Ratio::of_effects(self.decisions.values().flatten().copied()),
        }
    }
}

/// What a report is built from.
pub struct Contents {
    pub columns: Vec<ColumnData>,
    pub traces: Vec<Trace>,
    /// All kernels of the binaries.
    pub census: Option<Census>,
    /// Of the tests, if they were asked for.
    pub attribution: Option<Attribution>,
}

/// Builds the report. `find` reads a source file. `changed`: only these lines.
pub fn report(
    title: &str,
    contents: &Contents,
    naming: Naming,
    select: &Select,
    changed: Option<&Changed>,
    find: impl Fn(&str) -> Source,
) -> Report {
    let (data, traces) = (&contents.columns[..], &contents.traces[..]);
    let census = contents.census.as_ref();
    let files = files(data, select, changed, naming, find);
    let (functions, definitions) = functions(data, &files, naming);
    let kernels = kernels(data, &functions, &files, traces, census, naming);
    let census = census.map(|census| how_many_ran(census, &kernels));
    let mut columns = Vec::new();
    for (index, column) in data.iter().enumerate() {
        columns.push(Column {
            name: column.name.clone(),
            host: column.host,
            ran: column.ran,
            counts: column.counts,
            code_objects: column.objects,
            totals: Totals::sum(files.iter().filter_map(|file| file.columns[index])),
        });
    }
    let has_host = data.iter().any(|column| column.host);
    Report {
        format: "devprof report",
        version: VERSION,
        title: title.to_owned(),
        notes: Vec::new(),
        columns,
        device: Totals::sum(files.iter().filter_map(|file| file.device)),
        device_counts: device_counts(data),
        host: has_host.then(|| Totals::sum(files.iter().filter_map(|file| file.host))),
        combined: has_host.then(|| Totals::sum(files.iter().filter_map(|file| file.combined))),
        kernel_coverage: match census {
            Some(all) if data.is_empty() => all,
            _ => kernel_coverage(&kernels),
        },
        census,
        baseline: None,
        kernels,
        traced: !traces.is_empty(),
        traces: traces.iter().map(trace_totals).collect(),
        functions,
        definitions,
        files,
        has_decisions: data
            .iter()
            .flat_map(|column| &column.functions)
            .any(|function| !function.decisions.is_empty()),
    }
}

/// The kind of the sums of all architectures that ran.
fn device_counts(data: &[ColumnData]) -> CountKind {
    let added = data.iter().filter(|column| column.ran && !column.host);
    CountKind::of_sum(added.map(|column| column.counts))
}

fn trace_totals(trace: &Trace) -> TraceTotals {
    let mut sum = Dispatches::default();
    let all = trace.kernels.values().flat_map(BTreeMap::values);
    all.for_each(|own| sum.add(own));
    TraceTotals {
        path: trace.path.clone(),
        process: trace.pid,
        calls: sum.calls,
        untimed: sum.untimed,
        time: sum.time,
    }
}

/// How many of the instrumented kernels ran.
fn kernel_coverage(kernels: &[Kernel]) -> Ratio {
    let instrumented = kernels.iter().filter(|kernel| kernel.function.is_some());
    let counts = instrumented.filter_map(|kernel| match kernel.state {
        KernelState::Covered | KernelState::NotInTrace => Some(1),
        KernelState::NeverRan | KernelState::NotCounted => Some(0),
        _ => None,
    });
    Ratio::of(counts)
}

/// How many of the binaries' kernels ran. Those without code for the GPUs of the run are not included.
fn how_many_ran(census: &Census, kernels: &[Kernel]) -> Ratio {
    let mut ran: BTreeMap<&str, bool> = BTreeMap::new();
    for kernel in kernels
        .iter()
        .filter(|kernel| kernel.state != KernelState::OtherGpu)
    {
        if census.find(&kernel.symbol).is_some() {
            *ran.entry(&kernel.symbol).or_default() |= kernel.state != KernelState::NeverRan;
        }
    }
    Ratio::of(ran.into_values().map(u64::from))
}

fn files(
    data: &[ColumnData],
    select: &Select,
    changed: Option<&Changed>,
    naming: Naming,
    find: impl Fn(&str) -> Source,
) -> Vec<File> {
    // For each file and column, the functions that have code in the file.
    let mut by_file: BTreeMap<Arc<str>, Vec<Vec<&Function>>> = BTreeMap::new();
    let no_functions = || vec![Vec::new(); data.len()];
    for (index, column) in data.iter().enumerate() {
        for function in &column.functions {
            let paths: BTreeSet<&Arc<str>> = function.files.iter().collect();
            for path in paths {
                let columns = by_file.entry(path.clone());
                columns.or_insert_with(no_functions)[index].push(function);
            }
        }
    }
    let has_host = data.iter().any(|column| column.host);
    let file = |(path, functions): (Arc<str>, Vec<Vec<&Function>>)| {
        let source = find(&path);
        if !select.includes(&path, &source.location) {
            return None;
        }
        let changed = changed.map(|changed| changed.lines(&path, &source));
        let counts = |(own, column): (Vec<_>, &ColumnData)| {
            (!own.is_empty()).then(|| FileCounts::of(own, column.counts, &path, changed))
        };
        let evaluated = evaluations(&functions, data, &path, naming);
        let counted: Vec<_> = functions.into_iter().zip(data).map(counts).collect();
        let has_lines = |own: &FileCounts| !own.lines.is_empty();
        if changed.is_some() && !counted.iter().flatten().any(has_lines) {
            return None;
        }
        let (mut device, mut combined) = (None::<FileCounts>, None::<FileCounts>);
        for (column, own) in data.iter().zip(&counted) {
            let Some(own) = own.as_ref().filter(|_| column.ran) else {
                continue;
            };
            if !column.host {
                device.get_or_insert_default().add(own);
            }
            if has_host {
                combined.get_or_insert_default().add(own);
            }
        }
        let device = device.map(|device| device.limited(device_counts(data)));
        let totals = |(column, own): (&ColumnData, &Option<FileCounts>)| {
            own.as_ref().filter(|_| column.ran).map(FileCounts::totals)
        };
        let columns: Vec<_> = data.iter().zip(&counted).map(totals).collect();
        let host = data.iter().zip(&columns).find(|(column, _)| column.host);
        Some(File {
            source,
            device: device.as_ref().map(FileCounts::totals),
            host: host.and_then(|(_, totals)| *totals),
            combined: combined.as_ref().map(FileCounts::totals),
            lines: lines(data, &counted, device.as_ref(), &path, evaluated),
            columns,
            changed: changed.map(<[_]>::to_vec),
            tests: BTreeMap::new(),
            path,
        })
    };
    by_file.into_iter().filter_map(file).collect()
}

/// The executed test vectors of the decisions in a file. `functions`: those of each column that have code in the file.
fn evaluations(
    functions: &[Vec<&Function>],
    data: &[ColumnData],
    path: &str,
    naming: Naming,
) -> BTreeMap<DecisionKey, Vec<Evaluation>> {
    let mut evaluated: BTreeMap<DecisionKey, Vec<Evaluation>> = BTreeMap::new();
    let columns = functions.iter().zip(data).enumerate();
    for (column, (functions, _)) in columns.filter(|(_, (_, column))| column.ran) {
        for function in functions {
            for (key, decision) in function.decisions_in(path) {
                evaluated.entry(key).or_default().push(Evaluation {
                    column,
                    function: naming.shown(&function.name),
                    symbol: crate::names::symbol(&function.name).to_owned(),
                    results_from_source: decision.is_computed,
                    vectors: decision.executed.iter().cloned().collect(),
                    pairs: decision.independence(),
                });
            }
        }
    }
    evaluated
}

/// The lines of a file with the counts of all columns.
fn lines(
    data: &[ColumnData],
    counted: &[Option<FileCounts>],
    device: Option<&FileCounts>,
    file: &str,
    mut evaluated: BTreeMap<DecisionKey, Vec<Evaluation>>,
) -> Vec<Line> {
    let mut all = FileCounts::default();
    counted.iter().flatten().for_each(|own| all.add(own));
    let mut lines: BTreeMap<u32, Line> = BTreeMap::new();
    for &number in all.lines.keys() {
        let cell = |(column, own): (&ColumnData, &Option<FileCounts>)| {
            let count = own.as_ref()?.lines.get(&number)?;
            Some(cell(column, *count))
        };
        let line = Line {
            number,
            device: device.and_then(|device| device.lines.get(&number).copied()),
            columns: data.iter().zip(counted).map(cell).collect(),
            branches: Vec::new(),
            decisions: Vec::new(),
        };
        lines.insert(number, line);
    }
    for position in all.conditions.into_keys() {
        // The line of a condition has code, unless the mapping is damaged.
        let Some(line) = lines.get_mut(&position.0.0) else {
            continue;
        };
        let counts = |(column, own): (&ColumnData, &Option<FileCounts>)| {
            let own = own.as_ref().filter(|_| column.ran)?;
            own.conditions.get(&position).copied()
        };
        line.branches.push(Condition {
            column: position.0.1,
            end: position.1,
            device: device.and_then(|device| device.conditions.get(&position).copied()),
            columns: data.iter().zip(counted).map(counts).collect(),
        });
    }
    for key in all.decisions.into_keys() {
        // The first line, or with --diff the first one that is included.
        let Some((_, line)) = lines.range_mut(key.start.0..=key.end.0).next() else {
            continue;
        };
        let effects = |counts: &FileCounts, n: usize| counts.decisions.get(&key)?[n];
        let condition = |(n, (path, start, end)): (usize, &(Arc<str>, Position, Position))| {
            let column = |(column, own): (&ColumnData, &Option<FileCounts>)| {
                effects(own.as_ref().filter(|_| column.ran)?, n)
            };
            DecisionCondition {
                path: (**path != *file).then(|| path.clone()),
                start: *start,
                end: *end,
                device: device.and_then(|device| effects(device, n)),
                columns: data.iter().zip(counted).map(column).collect(),
            }
        };
        line.decisions.push(Decision {
            start: key.start,
            end: key.end,
            conditions: key.conditions.iter().enumerate().map(condition).collect(),
            evaluations: evaluated.remove(&key).unwrap_or_default(),
        });
    }
    lines.into_values().collect()
}

fn cell(column: &ColumnData, count: u64) -> Cell {
    if !column.ran {
        return Cell::NotRun(NotRun::NotRun);
    }
    Cell::Count(count)
}

/// The functions of the selected files in the order of their positions, and the definitions, of which some have several.
fn functions(
    data: &[ColumnData],
    files: &[File],
    naming: Naming,
) -> (Vec<FunctionCoverage>, Vec<Definition>) {
    let indices = files.iter().enumerate();
    let indices: HashMap<&str, usize> = indices.map(|(n, file)| (&*file.path, n)).collect();
    let kernels = data.iter().flat_map(|column| &column.kernels);
    let kernels: BTreeSet<&str> = kernels.map(String::as_str).collect();
    let mut named: BTreeMap<(usize, Position, &str), Vec<Vec<&Function>>> = BTreeMap::new();
    let no_functions = || vec![Vec::new(); data.len()];
    for (index, column) in data.iter().enumerate() {
        for function in &column.functions {
            let Some((file, position)) = function.definition() else {
                continue;
            };
            let Some(&file) = indices.get(&*function.files[file]) else {
                continue;
            };
            let changed = files[file].changed.as_deref();
            if changed.is_some_and(|changed| !function.is_in(&files[file].path, changed)) {
                continue;
            }
            let columns = named.entry((file, position, &function.name));
            columns.or_insert_with(no_functions)[index].push(function);
        }
    }
    let kind = device_counts(data);
    let mut functions: Vec<FunctionCoverage> = Vec::with_capacity(named.len());
    let mut definitions: Vec<Definition> = Vec::new();
    let mut named = named.into_iter().peekable();
    while let Some(&((file, position, _), _)) = named.peek() {
        let first = functions.len();
        let mut definition = Definition::default();
        // The counts of instances on devices, and of instances that only the host has.
        let (mut device, mut host) = (None::<FileCounts>, FileCounts::default());
        while let Some(((.., name), own)) =
            named.next_if(|((other, at, _), _)| (*other, *at) == (file, position))
        {
            let (coverage, on_device, counts) = coverage(data, &own, &files[file], position);
            if on_device {
                device.get_or_insert_default().add(&counts);
            } else {
                host.add(&counts);
            }
            add_instance(&mut definition, &coverage, data);
            let symbol = crate::names::symbol(name);
            functions.push(FunctionCoverage {
                name: naming.shown(name),
                kernel: on_device && kernels.contains(symbol),
                symbol: symbol.to_owned(),
                file,
                line: position.0,
                column: position.1,
                ..coverage
            });
        }
        let name = match &functions[first..] {
            [single] => single.name.clone(),
            [template, ..] => naming.without_arguments(&template.symbol),
            [] => String::new(),
        };
        let totals = device.unwrap_or(host).totals();
        definitions.push(Definition {
            name,
            instances: first..functions.len(),
            count: definition.count.map(|count| kind.limit(count)),
            lines: totals.lines,
            branches: totals.branches,
            mcdc: totals.mcdc,
            ..definition
        });
    }
    (functions, definitions)
}

/// The coverage of a function with its code in each column, without names and position; whether a device has it; and its
/// counts on the devices, or on the host if only the host has it.
fn coverage(
    data: &[ColumnData],
    own: &[Vec<&Function>],
    file: &File,
    position: Position,
) -> (FunctionCoverage, bool, FileCounts) {
    let mut present = data.iter().zip(own).filter(|(_, own)| !own.is_empty());
    let on_device = present.any(|(column, _)| !column.host);
    let mut together = FileCounts::default();
    let mut coverage = FunctionCoverage {
        unused: true,
        mismatched: own.iter().flatten().any(|own| own.mismatched),
        build_ids: own
            .iter()
            .flatten()
            .flat_map(|own| own.build_ids.iter().cloned())
            .collect(),
        ..FunctionCoverage::default()
    };
    for (column, own) in data.iter().zip(own) {
        let changed = file.changed.as_deref();
        let counts = FileCounts::of(own.iter().copied(), column.counts, &file.path, changed);
        let entered = counts.functions.get(&position).copied();
        let cell = (!own.is_empty()).then(|| cell(column, entered.unwrap_or(0)));
        if !column.host {
            let count = cell.and_then(Cell::count);
            coverage.count = sum(coverage.count, count, u64::saturating_add);
        }
        if column.host != on_device {
            coverage.unused &= own.iter().all(|function| function.mapping.unused);
            if column.ran {
                together.add(&counts);
            }
        }
        coverage.columns.push(cell);
    }
    coverage.count = coverage.count.map(|count| device_counts(data).limit(count));
    let totals = together.totals();
    (coverage.lines, coverage.branches) = (totals.lines, totals.branches);
    coverage.mcdc = totals.mcdc;
    (coverage, on_device, together)
}

fn add_instance(definition: &mut Definition, instance: &FunctionCoverage, data: &[ColumnData]) {
    definition.ran += usize::from(instance.ran());
    definition.columns.resize(instance.columns.len(), None);
    let columns = instance.columns.iter().zip(data);
    for (total, (cell, column)) in definition.columns.iter_mut().zip(columns) {
        *total = match (*total, *cell) {
            (Some(Cell::Count(one)), Some(Cell::Count(other))) => {
                Some(Cell::Count(column.counts.limit(one.saturating_add(other))))
            }
            (total, cell) => total.or(cell),
        };
    }
    definition.count = sum(definition.count, instance.count, u64::saturating_add);
}

fn kernels(
    data: &[ColumnData],
    functions: &[FunctionCoverage],
    files: &[File],
    traces: &[Trace],
    census: Option<&Census>,
    naming: Naming,
) -> Vec<Kernel> {
    // Kernels that exist only on architectures that did not run are left out.
    let may_have_run = |function: &FunctionCoverage| {
        let mut cells = function.columns.iter().zip(data);
        cells.any(|(cell, column)| !column.host && matches!(cell, Some(Cell::Count(_))))
    };
    // Kernels in anonymous namespaces of several files have the same symbol.
    let mut counted: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, function) in functions.iter().enumerate() {
        if function.kernel && may_have_run(function) {
            counted.entry(&function.symbol).or_default().push(index);
        }
    }
    let is_hidden = Hidden::new(data, functions);
    let mut traced: BTreeMap<&str, Vec<TracedKernel>> = BTreeMap::new();
    for (index, trace) in traces.iter().enumerate() {
        for (symbol, of_symbol) in &trace.kernels {
            let own = of_symbol.iter().map(|(build_id, dispatches)| TracedKernel {
                trace: index,
                build_id: build_id.as_deref(),
                dispatches,
            });
            let own = own.filter(|own| !is_hidden.has(symbol, own.build_id));
            let own: Vec<_> = own.collect();
            if !own.is_empty() {
                traced.entry(symbol).or_default().extend(own);
            }
        }
    }
    let symbols = counted.keys().chain(traced.keys()).copied();
    let in_binaries = census.iter().flat_map(|census| census.symbols());
    let symbols: BTreeSet<&str> = symbols.chain(in_binaries).collect();
    let mut kernels = Vec::new();
    let no_calls = OwnCalls::new();
    for symbol in symbols {
        let own = counted.remove(symbol).unwrap_or_default();
        let traced = traced.remove(symbol).unwrap_or_default();
        let calls = Calls::assign(&own, functions, &traced);
        let is_for_gpu = census.and_then(|census| census.find(symbol));
        let kernel = |function, own| {
            let name = naming.shown(symbol);
            kernel(symbol, name, function, functions, traces.len(), own)
        };
        if own.is_empty() && traced.is_empty() {
            kernels.push(Kernel {
                state: match is_for_gpu {
                    Some(false) => KernelState::OtherGpu,
                    _ => KernelState::NeverRan,
                },
                template: Some(naming.without_arguments(symbol)),
                ..kernel(None, Some(&no_calls))
            });
        }
        for (&index, own) in own.iter().zip(&calls.own) {
            kernels.push(kernel(Some(index), own.as_ref()));
        }
        if !calls.others.is_empty() {
            let mut others = kernel(None, Some(&calls.others));
            if data.is_empty() && others.state != KernelState::Runtime {
                others.state = match is_for_gpu {
                    Some(_) => KernelState::Ran,
                    None => KernelState::NotInBinaries,
                };
            }
            kernels.push(others);
        }
        if !calls.ambiguous.is_empty() {
            kernels.push(Kernel {
                state: KernelState::Ambiguous,
                ..kernel(None, Some(&calls.ambiguous))
            });
        }
    }
    tell_apart(&mut kernels, functions, files);
    kernels.sort_by_cached_key(|kernel| {
        let mut own = Ratio::default();
        if let Some(function) = kernel.function {
            own.add(functions[function].lines);
            own.add(functions[function].branches);
        }
        let time = kernel.time.unwrap_or(0);
        // The time, weighted with the share of lines and branches that never ran. Without coverage data, all of the time.
        let missed = match own.total {
            0 => u128::from(time),
            total => u128::from(time) * u128::from(own.missed()) / u128::from(total),
        };
        (
            match kernel.state {
                KernelState::NeverRan if kernel.function.is_none() => 1,
                KernelState::Runtime => 2,
                KernelState::OtherGpu => 3,
                _ => 0,
            },
            Reverse(missed),
            Reverse(time),
            Reverse(own.missed()),
            kernel.name.clone(),
        )
    });
    kernels
}

/// Adds to names that several kernels have which kernel it is. Their symbols may differ: CUDA's linker gives internal kernels of
/// several files one each.
fn tell_apart(kernels: &mut [Kernel], functions: &[FunctionCoverage], files: &[File]) {
    let (mut names, mut symbols) = (HashMap::new(), HashMap::new());
    for kernel in &*kernels {
        *names.entry(kernel.name.clone()).or_insert(0) += 1;
        *symbols.entry(kernel.symbol.clone()).or_insert(0) += 1;
    }
    for kernel in kernels {
        let which = match kernel.function.map(|index| &functions[index]) {
            _ if kernel.state == KernelState::Ambiguous => {
                "calls of all kernels of this name".to_owned()
            }
            Some(function) if names[&kernel.name] > 1 => {
                let path = files[function.file].location();
                let file = path.rsplit('/').next().unwrap_or(path);
                format!("{file}:{}", function.line)
            }
            None if symbols[&kernel.symbol] > 1 => "in other code objects".to_owned(),
            _ => continue,
        };
        kernel.name = format!("{} ({which})", kernel.name);
    }
}

/// A kernel in a trace.
struct TracedKernel<'a> {
    /// The index of the trace.
    trace: usize,
    build_id: Option<&'a str>,
    dispatches: &'a Dispatches,
}

/// The kernels of files that are not selected.
struct Hidden<'a> {
    /// Symbols of hidden kernels, if no selected kernel has the same symbol.
    symbols: BTreeSet<&'a str>,
    /// The code objects of the other hidden kernels, by symbol.
    code_objects: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

impl Hidden<'_> {
    fn new<'a>(data: &'a [ColumnData], shown: &'a [FunctionCoverage]) -> Hidden<'a> {
        let mut ids: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for function in shown {
            let own = ids.entry(&function.symbol).or_default();
            own.extend(function.build_ids.iter().map(String::as_str));
        }
        let mut hidden = Hidden {
            symbols: BTreeSet::new(),
            code_objects: BTreeMap::new(),
        };
        let all = data.iter().filter(|column| !column.host);
        for function in all.flat_map(|column| &column.functions) {
            let symbol = crate::names::symbol(&function.name);
            let Some(shown) = ids.get(symbol) else {
                hidden.symbols.insert(symbol);
                continue;
            };
            let own = function.build_ids.iter().map(String::as_str);
            let own = own.filter(|id| !shown.contains(id));
            let of_symbol = hidden.code_objects.entry(symbol).or_default();
            of_symbol.extend(own);
        }
        hidden
    }

    fn has(&self, symbol: &str, build_id: Option<&str>) -> bool {
        let of_symbol = self.code_objects.get(symbol);
        let is_hidden = |id| of_symbol.is_some_and(|hidden| hidden.contains(id));
        self.symbols.contains(symbol) || build_id.is_some_and(is_hidden)
    }
}

/// Calls by the index of their trace.
type OwnCalls = BTreeMap<usize, Dispatches>;

/// The calls of a symbol.
struct Calls {
    /// Of each kernel. `None`: no calls are known to be of it, and others may be.
    own: Vec<Option<OwnCalls>>,
    /// In code objects that have none of these kernels.
    others: OwnCalls,
    /// In unknown code objects, of one of these kernels.
    ambiguous: OwnCalls,
}

impl Calls {
    /// Assigns the calls in the traces by the build IDs of their code objects. `kernels`: their indices in `functions`.
    fn assign(kernels: &[usize], functions: &[FunctionCoverage], traced: &[TracedKernel]) -> Calls {
        let mut own = vec![OwnCalls::new(); kernels.len()];
        let (mut others, mut unknown) = (OwnCalls::new(), OwnCalls::new());
        for call in traced {
            let in_object = |id: &str| {
                let mut kernels = kernels.iter();
                kernels.position(|&index| functions[index].build_ids.contains(id))
            };
            let to = match call.build_id.map(in_object) {
                Some(Some(kernel)) => &mut own[kernel],
                Some(None) => &mut others,
                None => &mut unknown,
            };
            to.entry(call.trace).or_default().add(call.dispatches);
        }
        // If only one kernel has counts, all calls in unknown code objects are of it.
        let may_be =
            |&kernel: &usize| kernels.len() == 1 || functions[kernels[kernel]].count != Some(0);
        let candidates: Vec<usize> = (0..kernels.len()).filter(may_be).collect();
        let is_known = |kernel| unknown.is_empty() || candidates == [kernel];
        let known: Vec<bool> = (0..kernels.len()).map(is_known).collect();
        let mut ambiguous = OwnCalls::new();
        let to = match candidates[..] {
            [only] => &mut own[only],
            _ if kernels.is_empty() => &mut others,
            _ => &mut ambiguous,
        };
        for (trace, dispatches) in unknown {
            to.entry(trace).or_default().add(&dispatches);
        }
        let own = own.into_iter().zip(known);
        let known_calls = |(own, is_known): (OwnCalls, bool)| {
            let has_calls = is_known || !own.is_empty();
            has_calls.then_some(own)
        };
        Calls {
            own: own.map(known_calls).collect(),
            others,
            ambiguous,
        }
    }
}

/// A kernel. `function`: its index in `functions`, if it is instrumented. `traces`: their number. `own`: its calls, if they are known.
fn kernel(
    symbol: &str,
    name: String,
    function: Option<usize>,
    functions: &[FunctionCoverage],
    traces: usize,
    own: Option<&OwnCalls>,
) -> Kernel {
    let is_known = traces > 0 && own.is_some();
    let own = || own.into_iter().flatten();
    let mut all = Dispatches::default();
    own().for_each(|(_, dispatches)| all.add(dispatches));
    let by_trace = own().filter(|_| traces > 1);
    let by_trace = by_trace.map(|(&trace, own)| TracedCalls {
        trace,
        calls: own.calls,
        untimed: own.untimed,
        time: own.time,
    });
    let has_calls = own().next().is_some();
    let count = function.and_then(|function| functions[function].count);
    let state = match count {
        None if symbol.starts_with(census::RUNTIME) => KernelState::Runtime,
        None => KernelState::NotInstrumented,
        Some(0) if !has_calls => KernelState::NeverRan,
        Some(0) => KernelState::NotCounted,
        Some(_) if is_known && !has_calls => KernelState::NotInTrace,
        Some(_) => KernelState::Covered,
    };
    Kernel {
        name,
        symbol: symbol.to_owned(),
        state,
        function,
        calls: is_known.then_some(all.calls),
        untimed: all.untimed,
        time: is_known.then_some(all.time),
        by_trace: by_trace.collect(),
        architectures: all.architectures,
        template: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::Region;
    use super::super::mapping::Mapping;
    use super::super::mcdc::{self, Span, Vector};
    use super::*;

    /// Kernels with their counts and build IDs, and calls in traces with the build IDs of their code objects.
    fn assigned(kernels: &[(u64, &str)], traced: &[(u64, Option<&str>)]) -> String {
        let function = |&(count, ids): &(u64, &str)| FunctionCoverage {
            count: Some(count),
            build_ids: ids.split_whitespace().map(str::to_owned).collect(),
            ..FunctionCoverage::default()
        };
        let functions: Vec<_> = kernels.iter().map(function).collect();
        let dispatches = |&(calls, _): &(u64, Option<&str>)| Dispatches {
            calls,
            ..Dispatches::default()
        };
        let dispatches: Vec<_> = traced.iter().map(dispatches).collect();
        let traced = traced.iter().zip(&dispatches);
        let traced = traced.map(|(&(_, build_id), dispatches)| TracedKernel {
            trace: 0,
            build_id,
            dispatches,
        });
        let indices: Vec<usize> = (0..kernels.len()).collect();
        let calls = Calls::assign(&indices, &functions, &traced.collect::<Vec<_>>());
        let sum = |calls: &OwnCalls| calls.values().map(|own| own.calls).sum::<u64>();
        let own = |calls: &Option<OwnCalls>| match calls {
            Some(calls) => sum(calls).to_string(),
            None => "-".to_owned(),
        };
        let own: Vec<_> = calls.own.iter().map(own).collect();
        let (others, ambiguous) = (sum(&calls.others), sum(&calls.ambiguous));
        format!("{}; {others} {ambiguous}", own.join(" "))
    }

    #[test]
    fn calls_are_of_the_kernel_in_the_same_code_object() {
        let one = &[(1, "a b")][..];
        let two = &[(1, "a"), (1, "b c")][..];
        let one_of_two = &[(1, "a"), (0, "b")][..];
        let none_of_two = &[(0, ""), (0, "")][..];
        let known = &[
            (1, Some("a")),
            (2, Some("b")),
            (4, Some("c")),
            (8, Some("x")),
        ][..];
        let unknown = &[(16, None)][..];
        let both = &[known, unknown].concat()[..];
        for (kernels, traced, expected) in [
            (&[][..], both, "; 31 0"),
            (one, known, "3; 12 0"),
            (one, unknown, "16; 0 0"),
            (one, both, "19; 12 0"),
            (two, known, "1 6; 8 0"),
            (two, unknown, "- -; 0 16"),
            (two, both, "1 6; 8 16"),
            (one_of_two, known, "1 2; 12 0"),
            (one_of_two, unknown, "16 -; 0 0"),
            (one_of_two, both, "17 2; 12 0"),
            (none_of_two, unknown, "- -; 0 16"),
            (none_of_two, &[], "0 0; 0 0"),
        ] {
            assert_eq!(
                assigned(kernels, traced),
                expected,
                "{kernels:?} {traced:?}"
            );
        }
    }

    /// The symbols and states of the kernels, and how many of the binaries' kernels ran.
    fn states(columns: Vec<ColumnData>, traced: &[(&str, u64)]) -> (String, Ratio, Ratio) {
        let calls = |&(symbol, calls): &(&str, u64)| {
            let own = Dispatches {
                calls,
                time: calls,
                ..Dispatches::default()
            };
            (symbol.to_owned(), BTreeMap::from([(None, own)]))
        };
        let trace = Trace {
            kernels: traced.iter().map(calls).collect(),
            ..Trace::default()
        };
        let in_binaries = [
            ("one", true),
            ("two", true),
            ("never", true),
            ("gfx9", false),
        ];
        let contents = Contents {
            columns,
            traces: vec![trace],
            attribution: None,
            census: Some(Census::of_kernels(&in_binaries)),
        };
        let naming = Naming::default();
        let report = report("", &contents, naming, &Select::default(), None, source);
        let kernels = report.kernels.iter();
        let shown = kernels.map(|kernel| format!("{} {:?}", kernel.symbol, kernel.state));
        let shown: Vec<String> = shown.collect();
        (
            shown.join(", "),
            report.census.unwrap(),
            report.kernel_coverage,
        )
    }

    fn source(path: &str) -> Source {
        Source {
            location: path.to_owned(),
            ..Source::default()
        }
    }

    #[test]
    fn a_trace_has_some_of_the_kernels_of_the_binaries() {
        let ratio = |covered, total| Ratio { covered, total };
        let traced = [
            ("one", 3),
            ("two", 2),
            ("jit", 1),
            ("__amd_rocclr_copyBuffer", 9),
        ];
        let (shown, census, coverage) = states(Vec::new(), &traced);
        assert_eq!(
            shown,
            "one Ran, two Ran, jit NotInBinaries, never NeverRan, __amd_rocclr_copyBuffer Runtime, gfx9 OtherGpu"
        );
        assert_eq!((census, coverage), (ratio(2, 3), ratio(2, 3)));
        // A kernel without code for the GPU ran nevertheless: its code was compiled while the program ran.
        let (shown, census, _) = states(Vec::new(), &[("gfx9", 1)]);
        assert!(shown.starts_with("gfx9 Ran, never NeverRan"), "{shown}");
        assert_eq!(census, ratio(1, 4));
        // Of instrumented kernels, the counts decide.
        let column = ColumnData {
            name: "gfx1100".into(),
            ran: true,
            objects: 1,
            kernels: BTreeSet::from(["one".to_owned()]),
            functions: vec![deciding("one", 5, [Some(false), None])],
            ..ColumnData::default()
        };
        let (shown, census, coverage) = states(vec![column], &traced[1..]);
        assert_eq!(
            shown,
            "two NotInstrumented, jit NotInstrumented, one NotInTrace, never NeverRan, __amd_rocclr_copyBuffer Runtime, gfx9 OtherGpu"
        );
        assert_eq!((census, coverage), (ratio(2, 3), ratio(1, 1)));
    }

    /// A function at a position with a decision, of which one vector is false and one true.
    fn deciding(name: &str, line: u32, false_vector: [Option<bool>; 2]) -> Function {
        let span = |columns: (u32, u32)| Span {
            file: 0,
            start: (9, columns.0),
            end: (9, columns.1),
        };
        let condition = |columns| mcdc::Condition {
            span: span(columns),
            constant: false,
        };
        let vector = |result, conditions: [Option<bool>; 2]| Vector {
            result,
            conditions: conditions.to_vec(),
        };
        let region = Region {
            start: (line, 1),
            end: (line + 10, 1),
            kind: lines::Kind::Code,
            count: 1,
        };
        Function {
            name: name.to_owned(),
            mapping: Mapping {
                hash: 1,
                unused: false,
            },
            files: vec!["a.hip".into()],
            regions: vec![(0, region)],
            branches: Vec::new(),
            decisions: vec![mcdc::Decision {
                span: span((5, 11)),
                conditions: vec![condition((5, 6)), condition((10, 11))],
                executed: BTreeSet::from([
                    vector(false, false_vector),
                    vector(true, [Some(true), Some(true)]),
                ]),
                is_computed: true,
            }],
            count: 1,
            variant: Variant::default(),
            mismatched: false,
            build_ids: BTreeSet::new(),
        }
    }

    /// The number of conditions with a pair, as all of these functions have it together.
    fn shown(functions: &[&Function], changed: Option<&[RangeInclusive<u32>]>) -> Ratio {
        let functions = functions.iter().copied();
        let counts = FileCounts::of(functions, CountKind::Executions, "a.hip", changed);
        counts.totals().mcdc
    }

    #[test]
    fn instances_of_a_template_share_their_decisions() {
        let ratio = |covered, total| Ratio { covered, total };
        let (first, second) = ([Some(false), None], [Some(true), Some(false)]);
        let one = deciding("one", 5, first);
        let other = deciding("other", 5, second);
        let elsewhere = deciding("elsewhere", 6, second);
        assert_eq!(shown(&[&one], None), ratio(1, 2));
        assert_eq!(shown(&[&one, &one], None), ratio(1, 2));
        assert_eq!(shown(&[&one, &other], None), ratio(2, 2));
        // Another function that uses the same macro has decisions of its own.
        assert_eq!(shown(&[&one, &elsewhere], None), ratio(2, 4));
        // Vectors of different functions are no pair.
        let (mut only_false, mut only_true) = (one.clone(), other);
        only_false.decisions[0].executed.retain(|own| !own.result);
        only_true.decisions[0].executed.retain(|own| own.result);
        assert_eq!(shown(&[&only_false, &only_true], None), ratio(0, 2));
        // The same function in another code object adds its vectors.
        only_false.add(&only_true);
        assert_eq!(shown(&[&only_false], None), ratio(1, 2));
        assert_eq!(shown(&[&one], Some(&[9..=9])), ratio(1, 2));
        assert_eq!(shown(&[&one], Some(&[8..=8])), ratio(0, 0));
    }
}
