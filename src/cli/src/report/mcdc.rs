//! Modified condition/decision coverage (MC/DC): the decisions of a function, the test vectors that were executed, and the pairs of
//! them that show the effect of a condition.
//!
//! The coverage mapping has the decisions and their conditions, and llvm-cov lists the executed vectors, without positions.

use super::lines::Position;
use super::mapping::Numbers;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Several conditions that are combined with `&&` and `||`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub span: Span,
    /// In the order in which llvm-cov numbers them: the one that is evaluated first, and then as in the source, those in macros last.
    pub conditions: Vec<Condition>,
    pub executed: BTreeSet<Vector>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub span: Span,
    /// The compiler knows its value, so no test can change it.
    pub constant: bool,
}

/// A part of a source. `file` is an index of the function's files, `end` is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub file: usize,
    pub start: Position,
    pub end: Position,
}

/// A combination of the values of a decision's conditions (test vector), and the decision's result. A condition that was not evaluated
/// has no value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
pub struct Vector {
    pub result: bool,
    pub conditions: Vec<Option<bool>>,
}

/// Whether the effect of a condition was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Independence {
    /// Two vectors (their indices) with different results. Of the conditions that both evaluated, only this one differs.
    Pair(usize, usize),
    None(NoPair),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoPair {
    Missing,
    /// The condition is constant. It is not included in the totals.
    Constant,
}

impl Independence {
    /// `None`: the condition is constant.
    pub fn covered(self) -> Option<bool> {
        match self {
            Independence::Pair(..) => Some(true),
            Independence::None(NoPair::Missing) => Some(false),
            Independence::None(NoPair::Constant) => None,
        }
    }
}

impl Decision {
    /// For each condition, the first pair of the executed vectors that shows its effect.
    pub fn independence(&self) -> Vec<Independence> {
        let state = |condition: &Condition| {
            Independence::None(match condition.constant {
                true => NoPair::Constant,
                false => NoPair::Missing,
            })
        };
        let mut found: Vec<Independence> = self.conditions.iter().map(state).collect();
        let mut missing = found.iter().filter(|own| own.covered().is_some()).count();
        // Vectors with the result false are first.
        let vectors: Vec<&Vector> = self.executed.iter().collect();
        let (falses, trues) = vectors.split_at(vectors.partition_point(|vector| !vector.result));
        for (one, vector) in falses.iter().enumerate() {
            for (other, with) in trues.iter().enumerate() {
                if missing == 0 {
                    return found;
                }
                if let Some(condition) = vector.only_difference(with)
                    && let Some(own) = found.get_mut(condition)
                    && own.covered() == Some(false)
                {
                    *own = Independence::Pair(one, falses.len() + other);
                    missing -= 1;
                }
            }
        }
        found
    }

    /// Whether it is the same decision, whatever was executed.
    pub fn is_same(&self, other: &Decision) -> bool {
        self.span == other.span && self.conditions == other.conditions
    }
}

impl Vector {
    /// The condition in which two vectors differ, if it is the only one that both evaluated with different values.
    fn only_difference(&self, other: &Vector) -> Option<usize> {
        let pairs = self.conditions.iter().zip(&other.conditions);
        let differ = |(one, two): (&Option<bool>, &Option<bool>)| {
            one.is_some() && two.is_some() && one != two
        };
        let mut different = pairs.enumerate().filter(|(_, pair)| differ(*pair));
        let (first, _) = different.next()?;
        different.next().is_none().then_some(first)
    }
}

/// A decision whose conditions are not all known yet.
struct Open {
    decision: Decision,
    /// The identifiers of the conditions that are known.
    ids: Vec<u64>,
    number: u64,
    /// Files that stand for uses of macros in it.
    expansions: Vec<u64>,
}

impl Open {
    fn is_complete(&self) -> bool {
        self.ids.len() as u64 == self.number
    }

    fn contains(&self, span: &Span) -> bool {
        let own = &self.decision.span;
        (own.file == span.file && own.start <= span.start && span.end <= own.end)
            || self.expansions.contains(&(span.file as u64))
    }
}

/// The decisions in a function's coverage mapping, after its files and expressions (`CoverageMappingReader.cpp`). A condition belongs to
/// the innermost decision that contains it and still lacks it. `None` if the mapping is damaged.
pub fn decisions(files: u64, numbers: &mut Numbers) -> Option<Vec<Decision>> {
    let mut all: Vec<Open> = Vec::new();
    for file in 0..files {
        let mut line = 0;
        for _ in 0..numbers.next()? {
            let region = Region::read(numbers)?;
            let span = span(usize::try_from(file).ok()?, &mut line, numbers)?;
            let mut open = all.iter_mut().rev().filter(|open| !open.is_complete());
            match region {
                Region::Decision { number } => all.push(Open {
                    decision: Decision {
                        span,
                        conditions: Vec::new(),
                        executed: BTreeSet::new(),
                    },
                    ids: Vec::new(),
                    number,
                    expansions: Vec::new(),
                }),
                Region::Expansion { file } => {
                    if let Some(open) = open.find(|open| open.contains(&span)) {
                        open.expansions.push(file);
                    }
                }
                Region::Condition { id, constant } => {
                    let lacks = |open: &&mut Open| {
                        id < open.number && !open.ids.contains(&id) && open.contains(&span)
                    };
                    let open = open.find(lacks)?;
                    let own = &mut open.decision.conditions;
                    // The first one in the evaluation is the first one in llvm-cov's vectors.
                    let at = if id == 0 { 0 } else { own.len() };
                    own.insert(at, Condition { span, constant });
                    open.ids.push(id);
                }
                Region::Other => {}
            }
        }
    }
    let complete = all.into_iter().filter(Open::is_complete);
    Some(complete.map(|open| open.decision).collect())
}

/// The beginning of a region: its kind, and what is needed of it.
enum Region {
    Expansion { file: u64 },
    Decision { number: u64 },
    Condition { id: u64, constant: bool },
    Other,
}

impl Region {
    fn read(numbers: &mut Numbers) -> Option<Region> {
        // The two lowest bits are the kind of a counter. Without a counter, the third bit is set for expansions.
        let head = numbers.next()?;
        let (counter, kind) = (head & 3, head >> 3);
        Some(match kind {
            _ if counter != 0 => Region::Other,
            file if head & 4 != 0 => Region::Expansion { file },
            4 => {
                numbers.skip(2)?;
                Region::Other
            }
            5 => {
                // The position in the bitmap.
                numbers.skip(1)?;
                Region::Decision {
                    number: numbers.next()?,
                }
            }
            6 => {
                let is_zero = |counter: u64| counter & 3 == 0;
                let (taken, not_taken) = (numbers.next()?, numbers.next()?);
                let id = numbers.next()?.checked_sub(1)?;
                // The conditions that follow if it is true or false.
                numbers.skip(2)?;
                Region::Condition {
                    id,
                    constant: is_zero(taken) || is_zero(not_taken),
                }
            }
            _ => Region::Other,
        })
    }
}

/// The position of a region. `line`: the first line of the previous region, and then of this one.
fn span(file: usize, line: &mut u64, numbers: &mut Numbers) -> Option<Span> {
    *line = line.checked_add(numbers.next()?)?;
    let column = numbers.next()?;
    let last = line.checked_add(numbers.next()?)?;
    let position =
        |line: u64, column: u64| Some((u32::try_from(line).ok()?, u32::try_from(column).ok()?));
    Some(Span {
        file,
        start: position(*line, column)?,
        end: position(last, numbers.next()?)?,
    })
}

/// A decision in the output of `llvm-cov export`, which is an array.
#[derive(Deserialize)]
pub struct Record {
    line: u32,
    column: u32,
    end_line: u32,
    end_column: u32,
    _true_results: u64,
    _false_results: u64,
    file: usize,
    _expanded_file: u64,
    _kind: u64,
    /// Which conditions have an independence pair.
    covered: Vec<bool>,
    /// Listed from LLVM 22 on.
    #[serde(default)]
    executed: Option<Vec<Vector>>,
}

/// Why the executed vectors are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// This llvm-cov does not list vectors.
    NotListed,
    /// llvm-cov found other decisions in the mapping.
    Mismatch,
}

/// Adds the executed vectors to the decisions of a function.
pub fn add_executed(decisions: &mut [Decision], records: Vec<Record>) -> Result<(), Unknown> {
    let mut rest: Vec<&mut Decision> = decisions.iter_mut().collect();
    for record in records {
        let span = Span {
            file: record.file,
            start: (record.line, record.column),
            end: (record.end_line, record.end_column),
        };
        let number = record.covered.len();
        let is_it = |own: &&mut Decision| own.span == span && own.conditions.len() == number;
        let own = rest.iter().position(is_it).ok_or(Unknown::Mismatch)?;
        let executed = record.executed.ok_or(Unknown::NotListed)?;
        if executed
            .iter()
            .any(|vector| vector.conditions.len() != number)
        {
            return Err(Unknown::Mismatch);
        }
        rest.remove(own).executed.extend(executed);
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(Unknown::Mismatch)
    }
}
