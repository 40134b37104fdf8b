//! The counts of a file as LCOV and Cobertura describe them: lines, the conditions on them, and one function per position.

use super::model::{
    Cell, Condition, Decision, DecisionCondition, Definition, File, FunctionCoverage, Line, Ratio,
    Report,
};
use std::collections::HashSet;

#[derive(Clone, Copy)]
pub enum Which {
    /// Everything that the report includes: all architectures, and the host if it is included.
    All,
    Column(usize),
}

pub struct Counts<'a> {
    pub lines: Vec<Counted<'a>>,
    pub functions: Vec<CountedFunction<'a>>,
}

/// A line with code.
pub struct Counted<'a> {
    pub number: u32,
    pub count: u64,
    /// How often each condition on it was true and false.
    pub conditions: Vec<(u64, u64)>,
    /// The decisions on it.
    pub decisions: Vec<CountedDecision<'a>>,
}

/// A decision, and whether the effect of each of its conditions was shown. `None`: the condition is constant.
#[derive(Clone)]
pub struct CountedDecision<'a> {
    pub decision: &'a Decision,
    pub effects: Vec<Option<bool>>,
}

/// A function in the source. The instances of a template are one function.
pub struct CountedFunction<'a> {
    pub line: u32,
    /// The symbol of the first instance that has counts. If a function at another position has the same symbol, with a suffix, because
    /// readers identify functions by their names.
    pub symbol: String,
    /// The name of this instance in the source.
    pub name: &'a str,
    pub count: u64,
}

impl Which {
    fn count(self, report: &Report, device: Option<u64>, columns: &[Option<Cell>]) -> Option<u64> {
        match self {
            Which::Column(column) => columns[column]?.count(),
            Which::All => {
                let host = report.host_column().and_then(|host| columns[host]);
                let total = sum(device, host.and_then(Cell::count), u64::saturating_add);
                total.map(|total| report.counts().limit(total))
            }
        }
    }

    fn condition(self, report: &Report, condition: &Condition) -> Option<(u64, u64)> {
        match self {
            Which::Column(column) => condition.columns[column],
            Which::All => {
                let host = report.host_column();
                let host = host.and_then(|host| condition.columns[host]);
                let total = sum(condition.device, host, |a, b| {
                    (a.0.saturating_add(b.0), a.1.saturating_add(b.1))
                });
                let kind = report.counts();
                total.map(|(taken, not)| (kind.limit(taken), kind.limit(not)))
            }
        }
    }

    fn effect(self, report: &Report, condition: &DecisionCondition) -> Option<bool> {
        match self {
            Which::Column(column) => condition.columns[column],
            Which::All => {
                let host = report.host_column();
                let host = host.and_then(|host| condition.columns[host]);
                sum(condition.device, host, |one, two| one || two)
            }
        }
    }

    /// A decision, unless no code object has it, or all of its conditions are constant.
    fn decision<'a>(self, report: &Report, decision: &'a Decision) -> Option<CountedDecision<'a>> {
        let conditions = decision.conditions.iter();
        let effects = conditions.map(|condition| self.effect(report, condition));
        let effects: Vec<Option<bool>> = effects.collect();
        let has_any = effects.iter().any(Option::is_some);
        has_any.then_some(CountedDecision { decision, effects })
    }
}

pub fn sum<T>(one: Option<T>, other: Option<T>, add: impl Fn(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(add(one, other)),
        (one, other) => one.or(other),
    }
}

impl<'a> Counts<'a> {
    /// The counts of each file that has any.
    pub fn of_files(
        report: &'a Report,
        which: Which,
    ) -> impl Iterator<Item = (&'a File, Counts<'a>)> {
        let files = report.files.iter().enumerate();
        files.filter_map(move |(index, file)| {
            let counts = Counts::new(report, index, which);
            (!counts.lines.is_empty()).then_some((file, counts))
        })
    }

    fn new(report: &'a Report, file: usize, which: Which) -> Counts<'a> {
        let line = |line: &'a Line| {
            let conditions = line.branches.iter();
            Some(Counted {
                number: line.number,
                count: which.count(report, line.device, &line.columns)?,
                conditions: conditions
                    .filter_map(|condition| which.condition(report, condition))
                    .collect(),
                decisions: line
                    .decisions
                    .iter()
                    .filter_map(|decision| which.decision(report, decision))
                    .collect(),
            })
        };
        let function = |definition: &Definition| {
            let count = which.count(report, definition.count, &definition.columns)?;
            let has_count =
                |own: &&FunctionCoverage| which.count(report, own.count, &own.columns).is_some();
            let mut instances = report.functions[definition.instances.clone()].iter();
            let first = instances.find(has_count)?;
            Some(CountedFunction {
                line: first.line,
                symbol: first.symbol.clone(),
                name: &first.name,
                count,
            })
        };
        let definitions = report.definitions[report.definitions_of(file)].iter();
        let mut functions: Vec<CountedFunction> = definitions.filter_map(function).collect();
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
            lines: report.files[file].lines.iter().filter_map(line).collect(),
            functions,
        }
    }

    pub fn line_ratio(&self) -> Ratio {
        Ratio::of(self.lines.iter().map(|line| line.count))
    }

    pub fn branch_ratio(&self) -> Ratio {
        Ratio::of_conditions(self.lines.iter().flat_map(|line| &line.conditions))
    }

    pub fn mcdc_ratio(&self) -> Ratio {
        let decisions = self.lines.iter().flat_map(|line| &line.decisions);
        Ratio::of_effects(decisions.flat_map(|own| own.effects.iter().copied()))
    }

    pub fn function_ratio(&self) -> Ratio {
        Ratio::of(self.functions.iter().map(|function| function.count))
    }
}
