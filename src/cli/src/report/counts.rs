//! The counts of a file as LCOV and Cobertura describe them: lines, the conditions on them, and one function per position.

use super::model::{Cell, Condition, File, FunctionCoverage, Line, Ratio, Report};
use std::collections::{BTreeMap, HashSet};

/// Which counts to show.
#[derive(Clone, Copy)]
pub enum Which {
    /// Everything that the report includes: all architectures, and the host if it is included.
    All,
    Column(usize),
}

pub struct Counts<'a> {
    pub lines: Vec<Counted>,
    pub functions: Vec<Definition<'a>>,
}

/// A line with code.
pub struct Counted {
    pub number: u32,
    pub count: u64,
    /// How often each condition on it was true and false.
    pub conditions: Vec<(u64, u64)>,
}

/// A function in the source. The instances of a template are one function.
pub struct Definition<'a> {
    pub line: u32,
    /// The symbol of the first instance. If a function at another position has the same symbol, with a suffix, because
    /// readers identify functions by their names.
    pub symbol: String,
    /// The name of the first instance in the source.
    pub name: &'a str,
    pub count: u64,
}

impl Which {
    fn count(self, report: &Report, device: Option<u64>, columns: &[Option<Cell>]) -> Option<u64> {
        match self {
            Which::Column(column) => columns[column]?.count(),
            Which::All => {
                let host = report.host_column().and_then(|host| columns[host]);
                sum(device, host.and_then(Cell::count), u64::saturating_add)
            }
        }
    }

    fn condition(self, report: &Report, condition: &Condition) -> Option<(u64, u64)> {
        match self {
            Which::Column(column) => condition.columns[column],
            Which::All => {
                let host = report.host_column();
                let host = host.and_then(|host| condition.columns[host]);
                sum(condition.device, host, |a, b| {
                    (a.0.saturating_add(b.0), a.1.saturating_add(b.1))
                })
            }
        }
    }
}

pub fn sum<T>(one: Option<T>, other: Option<T>, add: impl Fn(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(add(one, other)),
        (one, other) => one.or(other),
    }
}

impl<'a> Counts<'a> {
    /// The counts of each file that has any, with its index.
    pub fn of_files(
        report: &'a Report,
        which: Which,
    ) -> impl Iterator<Item = (usize, &'a File, Counts<'a>)> {
        let mut functions: BTreeMap<usize, Vec<&FunctionCoverage>> = BTreeMap::new();
        for function in &report.functions {
            functions.entry(function.file).or_default().push(function);
        }
        let files = report.files.iter().enumerate();
        files.filter_map(move |(index, file)| {
            let own = functions.remove(&index).unwrap_or_default();
            let counts = Counts::new(report, file, &own, which);
            (!counts.lines.is_empty()).then_some((index, file, counts))
        })
    }

    fn new(
        report: &Report,
        file: &File,
        functions: &[&'a FunctionCoverage],
        which: Which,
    ) -> Counts<'a> {
        let line = |line: &Line| {
            let conditions = line.branches.iter();
            Some(Counted {
                number: line.number,
                count: which.count(report, line.device, &line.columns)?,
                conditions: conditions
                    .filter_map(|condition| which.condition(report, condition))
                    .collect(),
            })
        };
        let mut positions: BTreeMap<(u32, u32), Definition> = BTreeMap::new();
        for function in functions {
            let Some(count) = which.count(report, function.count, &function.columns) else {
                continue;
            };
            let known = positions.entry((function.line, function.column));
            let known = known.or_insert_with(|| Definition {
                line: function.line,
                symbol: function.symbol.clone(),
                name: &function.name,
                count: 0,
            });
            known.count = known.count.saturating_add(count);
        }
        let mut functions: Vec<Definition> = positions.into_values().collect();
        let mut symbols = HashSet::new();
        for function in &mut functions {
            let plain = function.symbol.clone();
            let mut number = 1;
            while !symbols.insert(function.symbol.clone()) {
                number += 1;
                // Demanglers show this as a clone.
                function.symbol = format!("{plain}.{number}");
            }
        }
        Counts {
            lines: file.lines.iter().filter_map(line).collect(),
            functions,
        }
    }

    pub fn line_ratio(&self) -> Ratio {
        Ratio::of(self.lines.iter().map(|line| line.count))
    }

    pub fn branch_ratio(&self) -> Ratio {
        Ratio::of_conditions(self.lines.iter().flat_map(|line| &line.conditions))
    }

    pub fn function_ratio(&self) -> Ratio {
        Ratio::of(self.functions.iter().map(|function| function.count))
    }
}
