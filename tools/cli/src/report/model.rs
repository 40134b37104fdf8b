//! What a report says, of whatever form: coverage of lines, branches and functions on each architecture and on the
//! host, and of each kernel how often and how long it ran. This is also what `--format json` writes.

use super::gather::Gathered;
use super::lines::{self, Position};
use super::llvm_cov::{Function, Variant};
use super::source::Source;
use super::trace::Ran;
use crate::names::Naming;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Of the JSON form. A change that a reader of the old one would misread makes it larger.
pub const VERSION: u32 = 1;

#[derive(Serialize)]
pub struct Report {
    /// `devprof report`
    pub format: &'static str,
    pub version: u32,
    /// The binaries.
    pub title: String,
    /// What a reader must know before the numbers.
    pub notes: Vec<Note>,
    /// The architectures, in the order of all lists of counts, and after them the host when it was asked for.
    pub columns: Vec<Column>,
    /// All architectures that ran.
    pub device: Totals,
    pub host: Option<Totals>,
    /// The most time in the least covered kernel first; AMD's own last.
    pub kernels: Vec<Kernel>,
    /// Whether calls and times of kernels are known.
    pub traced: bool,
    pub functions: Vec<Listed>,
    pub files: Vec<File>,
}

#[derive(Serialize)]
pub struct Note {
    pub level: Level,
    pub text: String,
    /// What it is about, if that is many things.
    pub items: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Note,
    /// Numbers are missing, or mean something else than they seem to.
    Warning,
}

#[derive(Serialize)]
pub struct Column {
    /// The processor (`gfx1100`), or `host`.
    pub name: String,
    pub host: bool,
    /// Whether there is a profile of it. Without one nothing is known of its code, which counts in no total.
    pub ran: bool,
    pub code_objects: usize,
    pub totals: Totals,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ratio {
    pub covered: u64,
    pub total: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Lines that have code.
    pub lines: Ratio,
    /// Two for each condition: it was true, it was false.
    pub branches: Ratio,
    /// Functions of the source: a template is one, whatever its instances.
    pub functions: Ratio,
}

/// A kernel of the trace or of an instrumented code object.
#[derive(Serialize)]
pub struct Kernel {
    pub name: String,
    pub symbol: String,
    pub state: State,
    /// Its place in `functions`.
    pub function: Option<usize>,
    /// Dispatches, when there is a trace.
    pub calls: Option<u64>,
    /// Those of them that have no times.
    pub untimed: u64,
    /// Nanoseconds of the others.
    pub time: Option<u64>,
    /// Where the trace saw it.
    pub architectures: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Covered,
    /// In the trace, and its code object has no coverage mapping.
    NotInstrumented,
    /// Part of AMD's own runtime (`__amd_rocclr_…`).
    Runtime,
    /// Neither counted nor in the trace.
    NeverRan,
    /// Counted, and not in the trace.
    NotInTrace,
    /// In the trace, and nothing was counted.
    NotCounted,
}

#[derive(Serialize)]
pub struct Listed {
    pub name: String,
    pub symbol: String,
    pub kernel: bool,
    /// The code objects do not have it, as nothing there calls it: it counts as a function that never ran.
    pub unused: bool,
    /// Its place in `files`.
    pub file: usize,
    pub line: u32,
    pub columns: Vec<Option<Cell>>,
    /// How often it was entered on all architectures, each lane for itself; none of the host's functions.
    pub count: Option<u64>,
    pub lines: Ratio,
    pub branches: Ratio,
}

/// A count, or that the code is there and did not run for lack of such a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    Count(u64),
    NotRun(NotRun),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum NotRun {
    #[serde(rename = "not run")]
    NotRun,
}

#[derive(Serialize)]
pub struct File {
    pub path: Arc<str>,
    #[serde(flatten)]
    pub source: Source,
    /// All architectures that ran; none when only the host has code here.
    pub device: Option<Totals>,
    pub host: Option<Totals>,
    pub columns: Vec<Option<Totals>>,
    /// Lines that have code somewhere.
    pub lines: Vec<Line>,
}

#[derive(Serialize)]
pub struct Line {
    pub number: u32,
    /// The sum of the architectures that ran.
    pub device: Option<u64>,
    pub columns: Vec<Option<Cell>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<Site>,
}

/// A condition.
#[derive(Serialize)]
pub struct Site {
    pub column: u32,
    pub end: Position,
    /// The sum of the architectures that ran: how often true, how often false.
    pub device: Option<(u64, u64)>,
    pub columns: Vec<Option<(u64, u64)>>,
}

impl Ratio {
    fn of(counts: impl IntoIterator<Item = u64>) -> Ratio {
        let mut ratio = Ratio::default();
        for count in counts {
            ratio.total += 1;
            ratio.covered += u64::from(count > 0);
        }
        ratio
    }

    fn add(&mut self, other: Ratio) {
        self.covered += other.covered;
        self.total += other.total;
    }

    /// Of nothing, nothing is missing, and there is no such number.
    pub fn percent(self) -> Option<f64> {
        (self.total > 0).then(|| 100.0 * self.covered as f64 / self.total as f64)
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
    }

    fn sum(all: impl IntoIterator<Item = Totals>) -> Totals {
        let mut sum = Totals::default();
        all.into_iter().for_each(|totals| sum.add(totals));
        sum
    }
}

type Sites = BTreeMap<(Position, Position), (u64, u64)>;

/// What some functions say of a file.
#[derive(Default)]
struct Counted {
    lines: BTreeMap<u32, u64>,
    sites: Sites,
    /// By where they are defined: templates have many at a place.
    functions: BTreeMap<Position, u64>,
}

impl Counted {
    /// What functions of one column say of a file. Variants of a function are looked at one by one: what one of them
    /// does not compile, another may.
    fn of<'a>(functions: impl IntoIterator<Item = &'a Function>, path: &str) -> Counted {
        let mut variants: BTreeMap<Variant, Vec<&Function>> = BTreeMap::new();
        for function in functions {
            variants.entry(function.variant).or_default().push(function);
        }
        let mut counted = Counted::default();
        for (variant, functions) in variants {
            let own = Counted::of_variant(&functions, path);
            match variant.shares_counts {
                true => counted.join(&own, u64::max),
                false => counted.join(&own, u64::saturating_add),
            }
        }
        counted
    }

    fn of_variant(functions: &[&Function], path: &str) -> Counted {
        let mut counted = Counted::default();
        let mut regions = Vec::new();
        for function in functions {
            let here = |file: usize| &*function.files[file] == path;
            let own = function.regions.iter().filter(|(file, _)| here(*file));
            regions.extend(own.map(|(_, region)| *region));
            for (_, branch) in function.branches.iter().filter(|(file, _)| here(*file)) {
                let sides = counted.sites.entry((branch.start, branch.end)).or_default();
                sides.0 = sides.0.saturating_add(branch.taken);
                sides.1 = sides.1.saturating_add(branch.not_taken);
            }
            if let Some((file, position)) = function.definition()
                && here(file)
            {
                let count = counted.functions.entry(position).or_default();
                *count = count.saturating_add(function.count);
            }
        }
        counted.lines = lines::counts(regions);
        counted
    }

    /// The counts of both, where both have some.
    fn join(&mut self, other: &Counted, both: fn(u64, u64) -> u64) {
        for (line, count) in &other.lines {
            let sum = self.lines.entry(*line).or_default();
            *sum = both(*sum, *count);
        }
        for (site, (taken, not_taken)) in &other.sites {
            let sum = self.sites.entry(*site).or_default();
            *sum = (both(sum.0, *taken), both(sum.1, *not_taken));
        }
        for (position, count) in &other.functions {
            let sum = self.functions.entry(*position).or_default();
            *sum = both(*sum, *count);
        }
    }

    fn add(&mut self, other: &Counted) {
        self.join(other, u64::saturating_add);
    }

    fn totals(&self) -> Totals {
        Totals {
            lines: Ratio::of(self.lines.values().copied()),
            branches: Ratio::of(self.sites.values().flat_map(|&(taken, not)| [taken, not])),
            functions: Ratio::of(self.functions.values().copied()),
        }
    }
}

/// Joins the columns and the trace.
pub fn build(
    title: &str,
    gathered: &[Gathered],
    ran: Option<&BTreeMap<String, Ran>>,
    naming: Naming,
    find: impl Fn(&str) -> Source,
) -> Report {
    let files = files(gathered, find);
    let functions = functions(gathered, &files, naming);
    let kernels = kernels(gathered, &functions, ran, naming);
    let mut columns = Vec::new();
    for (index, side) in gathered.iter().enumerate() {
        columns.push(Column {
            name: side.name.clone(),
            host: side.host,
            ran: side.ran,
            code_objects: side.objects,
            totals: Totals::sum(files.iter().filter_map(|file| file.columns[index])),
        });
    }
    let with_host = gathered.iter().any(|side| side.host);
    Report {
        format: "devprof report",
        version: VERSION,
        title: title.to_owned(),
        notes: Vec::new(),
        columns,
        device: Totals::sum(files.iter().filter_map(|file| file.device)),
        host: with_host.then(|| Totals::sum(files.iter().filter_map(|file| file.host))),
        kernels,
        traced: ran.is_some(),
        functions,
        files,
    }
}

fn files(gathered: &[Gathered], find: impl Fn(&str) -> Source) -> Vec<File> {
    // Which functions have anything in a file, by column.
    let mut within: BTreeMap<Arc<str>, Vec<Vec<&Function>>> = BTreeMap::new();
    for (index, side) in gathered.iter().enumerate() {
        for function in &side.functions {
            let paths: BTreeSet<&Arc<str>> = function.files.iter().collect();
            for path in paths {
                let columns = within
                    .entry(path.clone())
                    .or_insert_with(|| vec![Vec::new(); gathered.len()]);
                columns[index].push(function);
            }
        }
    }
    let file = |(path, functions): (Arc<str>, Vec<Vec<&Function>>)| {
        let counted: Vec<Option<Counted>> = functions
            .into_iter()
            .map(|own| (!own.is_empty()).then(|| Counted::of(own, &path)))
            .collect();
        let mut device: Option<Counted> = None;
        for (side, own) in gathered.iter().zip(&counted) {
            if let Some(own) = own
                && side.ran
                && !side.host
            {
                device.get_or_insert_default().add(own);
            }
        }
        let totals = |(side, own): (&Gathered, &Option<Counted>)| {
            own.as_ref().filter(|_| side.ran).map(Counted::totals)
        };
        let columns: Vec<_> = gathered.iter().zip(&counted).map(totals).collect();
        let host = gathered.iter().zip(&columns).find(|(side, _)| side.host);
        File {
            source: find(&path),
            device: device.as_ref().map(Counted::totals),
            host: host.and_then(|(_, totals)| *totals),
            lines: joined(gathered, &counted, device.as_ref()),
            columns,
            path,
        }
    };
    within.into_iter().map(file).collect()
}

fn joined(
    gathered: &[Gathered],
    counted: &[Option<Counted>],
    device: Option<&Counted>,
) -> Vec<Line> {
    let all = || counted.iter().flatten();
    let numbers: BTreeSet<u32> = all().flat_map(|own| own.lines.keys().copied()).collect();
    let sites: BTreeSet<(Position, Position)> =
        all().flat_map(|own| own.sites.keys().copied()).collect();
    let cell = |(side, own): (&Gathered, &Option<Counted>), number| {
        let count = own.as_ref()?.lines.get(&number)?;
        Some(cell(side, *count))
    };
    let line = |number: u32| Line {
        number,
        device: device.and_then(|device| device.lines.get(&number).copied()),
        columns: gathered
            .iter()
            .zip(counted)
            .map(|own| cell(own, number))
            .collect(),
        branches: Vec::new(),
    };
    let mut lines: BTreeMap<u32, Line> = numbers
        .into_iter()
        .map(|number| (number, line(number)))
        .collect();
    for site in sites {
        // A condition is on a line that has code.
        let Some(line) = lines.get_mut(&site.0.0) else {
            continue;
        };
        let counts = |(side, own): (&Gathered, &Option<Counted>)| {
            own.as_ref().filter(|_| side.ran)?.sites.get(&site).copied()
        };
        line.branches.push(Site {
            column: site.0.1,
            end: site.1,
            device: device.and_then(|device| device.sites.get(&site).copied()),
            columns: gathered.iter().zip(counted).map(counts).collect(),
        });
    }
    lines.into_values().collect()
}

fn cell(side: &Gathered, count: u64) -> Cell {
    match side.ran {
        true => Cell::Count(count),
        false => Cell::NotRun(NotRun::NotRun),
    }
}

fn functions(gathered: &[Gathered], files: &[File], naming: Naming) -> Vec<Listed> {
    let places: HashMap<&str, usize> = files
        .iter()
        .enumerate()
        .map(|(n, file)| (&*file.path, n))
        .collect();
    let kernels: BTreeSet<&str> = gathered
        .iter()
        .flat_map(|side| &side.kernels)
        .map(String::as_str)
        .collect();
    let mut named: BTreeMap<(&str, &str, Position), Vec<Vec<&Function>>> = BTreeMap::new();
    for (index, side) in gathered.iter().enumerate() {
        for function in &side.functions {
            let Some((file, position)) = function.definition() else {
                continue;
            };
            let columns = named
                .entry((&function.files[file], &function.name, position))
                .or_insert_with(|| vec![Vec::new(); gathered.len()]);
            columns[index].push(function);
        }
    }
    let listed = |((path, name, position), own): ((&str, &str, Position), Vec<Vec<&Function>>)| {
        let counted: Vec<Counted> = own
            .iter()
            .map(|own| Counted::of(own.iter().copied(), path))
            .collect();
        let entered = |column: usize| {
            counted[column]
                .functions
                .get(&position)
                .copied()
                .unwrap_or(0)
        };
        let sides = || {
            gathered
                .iter()
                .enumerate()
                .filter(|(column, _)| !own[*column].is_empty())
        };
        // Its lines on the GPUs, or, of a host's function, there.
        let on_device = sides().any(|(_, side)| !side.host);
        let mut together = Counted::default();
        for (column, _) in sides().filter(|(_, side)| side.ran && side.host != on_device) {
            together.add(&counted[column]);
        }
        let totals = together.totals();
        let on_devices = sides().filter(|(_, side)| side.ran && !side.host);
        let symbol = crate::names::symbol(name);
        Listed {
            name: naming.shown(name),
            kernel: on_device && kernels.contains(symbol),
            symbol: symbol.to_owned(),
            unused: sides()
                .filter(|(_, side)| side.host != on_device)
                .flat_map(|(column, _)| &own[column])
                .all(|function| function.mapped.unused),
            file: places[path],
            line: position.0,
            count: on_devices
                .map(|(column, _)| entered(column))
                .reduce(u64::saturating_add),
            columns: gathered
                .iter()
                .enumerate()
                .map(|(column, side)| {
                    (!own[column].is_empty()).then(|| cell(side, entered(column)))
                })
                .collect(),
            lines: totals.lines,
            branches: totals.branches,
        }
    };
    let mut all: Vec<Listed> = named.into_iter().map(listed).collect();
    all.sort_by_key(|function| (function.file, function.line));
    all
}

fn kernels(
    gathered: &[Gathered],
    functions: &[Listed],
    ran: Option<&BTreeMap<String, Ran>>,
    naming: Naming,
) -> Vec<Kernel> {
    // A kernel whose architecture did not run is none that never ran.
    let known = |function: &&(usize, &Listed)| {
        let cells = function.1.columns.iter().zip(gathered);
        cells
            .filter(|(_, side)| !side.host)
            .any(|(cell, _)| matches!(cell, Some(Cell::Count(_))))
    };
    let counted: BTreeMap<&str, usize> = functions
        .iter()
        .enumerate()
        .filter(|(_, function)| function.kernel)
        .collect::<Vec<_>>()
        .iter()
        .filter(known)
        .map(|(index, function)| (function.symbol.as_str(), *index))
        .collect();
    let traced = ran.into_iter().flatten().map(|(symbol, _)| symbol.as_str());
    let symbols: BTreeSet<&str> = counted.keys().copied().chain(traced).collect();
    let kernel = |symbol: &str| {
        let function = counted.get(symbol).copied();
        let in_trace = ran.and_then(|ran| ran.get(symbol));
        let count = function.and_then(|function| functions[function].count);
        let state = match (count, in_trace) {
            (None, _) if symbol.starts_with("__amd_rocclr_") => State::Runtime,
            (None, _) => State::NotInstrumented,
            (Some(0), Some(_)) => State::NotCounted,
            (Some(0), None) => State::NeverRan,
            (Some(_), None) if ran.is_some() => State::NotInTrace,
            (Some(_), _) => State::Covered,
        };
        Kernel {
            name: naming.shown(symbol),
            symbol: symbol.to_owned(),
            state,
            function,
            calls: ran.map(|_| in_trace.map_or(0, |ran| ran.calls)),
            untimed: in_trace.map_or(0, |ran| ran.untimed),
            time: ran.map(|_| in_trace.map_or(0, |ran| ran.time)),
            architectures: in_trace
                .map(|ran| ran.architectures.clone())
                .unwrap_or_default(),
        }
    };
    let mut kernels: Vec<Kernel> = symbols.into_iter().map(kernel).collect();
    kernels.sort_by_cached_key(|kernel| {
        let mut own = Ratio::default();
        if let Some(function) = kernel.function {
            own.add(functions[function].lines);
            own.add(functions[function].branches);
        }
        let time = kernel.time.unwrap_or(0);
        // The part of the time that its lines and branches that never ran are of all; all of it, when nothing is known.
        let missed = match own.total {
            0 => u128::from(time),
            total => u128::from(time) * u128::from(own.missed()) / u128::from(total),
        };
        (
            kernel.state == State::Runtime,
            Reverse(missed),
            Reverse(time),
            Reverse(own.missed()),
            kernel.name.clone(),
        )
    });
    kernels
}
