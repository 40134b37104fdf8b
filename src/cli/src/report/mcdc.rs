//! Modified condition/decision coverage (MC/DC): the decisions of a function, the test vectors that were executed, and the pairs of
//! them that show the effect of a condition.
//!
//! The coverage mapping has the decisions and their conditions, and llvm-cov lists the executed vectors, without positions.

use super::lines::Position;
use super::numbers::Numbers;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};

/// Several conditions that are combined with `&&` and `||`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub span: Span,
    /// In the order of the source, as llvm-cov numbers them. A condition in a macro is where the macro is used.
    pub conditions: Vec<Condition>,
    pub executed: BTreeSet<Vector>,
    /// Whether the results of the vectors were computed from the source. Otherwise they are llvm-cov's.
    pub is_computed: bool,
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

/// Macros are not nested deeper, unless the mapping is damaged.
const MAX_NESTED: usize = 200;

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
    // The use of each macro, by the file that stands for it.
    let mut uses: HashMap<usize, Span> = HashMap::new();
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
                        is_computed: false,
                    },
                    ids: Vec::new(),
                    number,
                    expansions: Vec::new(),
                }),
                Region::Expansion { file } => {
                    uses.insert(usize::try_from(file).ok()?, span);
                    if let Some(open) = open.find(|open| open.contains(&span)) {
                        open.expansions.push(file);
                    }
                }
                Region::Condition { id, constant } => {
                    let lacks = |open: &&mut Open| {
                        id < open.number && !open.ids.contains(&id) && open.contains(&span)
                    };
                    let open = open.find(lacks)?;
                    open.decision.conditions.push(Condition { span, constant });
                    open.ids.push(id);
                }
                Region::Code { .. } | Region::Branch => {}
            }
        }
    }
    let complete = all.into_iter().filter(Open::is_complete);
    let sorted = complete.map(|open| {
        let mut decision = open.decision;
        let place = |own: &Condition| place(own.span, &uses);
        decision.conditions.sort_by_cached_key(place);
        decision
    });
    Some(sorted.collect())
}

/// The position of a condition in the source. In a macro, the positions of its use, and then in the text of the macro.
fn place(own: Span, uses: &HashMap<usize, Span>) -> Vec<Position> {
    let around = std::iter::successors(Some(own), |span| uses.get(&span.file).copied());
    let mut positions: Vec<Position> = around.take(MAX_NESTED).map(|span| span.start).collect();
    positions.reverse();
    positions
}

/// The beginning of a region: its kind, and what is needed of it.
pub enum Region {
    /// Code, a gap, or what is not compiled (its counter is 0, which has no count).
    Code {
        counter: u64,
    },
    /// The use of a macro, whose text is in a file of its own.
    Expansion {
        file: u64,
    },
    Branch,
    Decision {
        number: u64,
    },
    Condition {
        id: u64,
        constant: bool,
    },
}

impl Region {
    pub fn read(numbers: &mut Numbers) -> Option<Region> {
        // The two lowest bits are the kind of a counter. Without a counter, the third bit is set for expansions.
        let head = numbers.next()?;
        let (counter, kind) = (head & 3, head >> 3);
        Some(match kind {
            _ if counter != 0 => Region::Code { counter: head },
            file if head & 4 != 0 => Region::Expansion { file },
            4 => {
                numbers.skip(2)?;
                Region::Branch
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
            _ => Region::Code { counter: 0 },
        })
    }
}

/// The position of a region. `line`: the first line of the previous region, and then of this one.
pub fn span(file: usize, line: &mut u64, numbers: &mut Numbers) -> Option<Span> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A vector such as `TF-=F`.
    fn vector(text: &str) -> Vector {
        let value = |c: char| match c {
            'T' => Some(true),
            'F' => Some(false),
            _ => None,
        };
        let (conditions, result) = text.split_once('=').unwrap();
        Vector {
            result: result == "T",
            conditions: conditions.chars().map(value).collect(),
        }
    }

    fn span(file: usize, line: u32, columns: (u32, u32)) -> Span {
        Span {
            file,
            start: (line, columns.0),
            end: (line, columns.1),
        }
    }

    /// A decision. `constants`: one character per condition, `C` if it is constant.
    fn decision(constants: &str, executed: &[&str]) -> Decision {
        let condition = |c| Condition {
            span: span(0, 1, (1, 2)),
            constant: c == 'C',
        };
        Decision {
            span: span(0, 1, (1, 9)),
            conditions: constants.chars().map(condition).collect(),
            executed: executed.iter().map(|text| vector(text)).collect(),
            is_computed: false,
        }
    }

    /// For each condition the numbers of the vectors of its pair, counted from 1.
    fn independence(constants: &str, executed: &[&str]) -> String {
        let shown = |own: Independence| match own {
            Independence::Pair(one, other) => format!("{},{}", one + 1, other + 1),
            Independence::None(NoPair::Missing) => "missing".to_owned(),
            Independence::None(NoPair::Constant) => "constant".to_owned(),
        };
        let found = decision(constants, executed).independence();
        let found: Vec<String> = found.into_iter().map(shown).collect();
        found.join(" ")
    }

    #[test]
    fn a_pair_differs_in_one_condition_that_both_evaluated() {
        for (constants, executed, expected) in [
            ("..", &[][..], "missing missing"),
            ("..", &["F-=F"], "missing missing"),
            // a && b
            ("..", &["F-=F", "TT=T"], "1,2 missing"),
            ("..", &["F-=F", "TF=F", "TT=T"], "1,3 2,3"),
            ("..", &["F-=F", "TF=F"], "missing missing"),
            // (a || b) && c: C3 in TT, whatever the other conditions are
            ("...", &["FF-=F", "T-F=F", "T-T=T"], "1,3 missing 2,3"),
            ("...", &["FF-=F", "FTF=F", "T-T=T", "FTT=T"], "1,4 1,3 2,3"),
            // Two conditions differ, although the first one has no effect (masking).
            ("...", &["FTF=F", "T-T=T"], "missing missing missing"),
            // a && (b || (c && d))
            (
                "....",
                &["F---=F", "TFF-=F", "TFTF=F", "TT--=T"],
                "1,4 2,4 missing missing",
            ),
            // A constant has no pair.
            ("C.", &["TF=F", "TT=T"], "constant 1,2"),
            ("CC", &["TT=T"], "constant constant"),
        ] {
            assert_eq!(independence(constants, executed), expected, "{executed:?}");
        }
    }

    #[test]
    fn the_result_of_vectors_is_their_order() {
        let decision = decision("..", &["TT=T", "F-=F", "TF=F"]);
        let results: Vec<bool> = decision.executed.iter().map(|own| own.result).collect();
        assert_eq!(results, [false, false, true]);
    }

    /// A decision of two conditions, and what is in it in the order of the mapping.
    const DECISION: u64 = 5 << 3;
    const CONDITION: u64 = 6 << 3;
    const BRANCH: u64 = 4 << 3;
    /// Of file 1.
    const EXPANSION: u64 = 1 << 3 | 4;
    /// Counters.
    const ONE: u64 = 1;
    const SUM: u64 = 7 << 2 | 2;

    /// The position after a region's kind: the same line as before, and columns.
    fn at(columns: (u64, u64)) -> [u64; 4] {
        [0, columns.0, 0, columns.1]
    }

    fn region(kind: &[u64], columns: (u64, u64)) -> Vec<u64> {
        [kind, &at(columns)].concat()
    }

    fn condition(id: u64, columns: (u64, u64)) -> Vec<u64> {
        region(&[CONDITION, ONE, SUM, id + 1, 0, 0], columns)
    }

    fn encoded(files: &[Vec<Vec<u64>>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut push = |mut number: u64| {
            while number >= 0x80 {
                bytes.push(number as u8 | 0x80);
                number >>= 7;
            }
            bytes.push(number as u8);
        };
        for regions in files {
            push(regions.len() as u64);
            regions.iter().flatten().copied().for_each(&mut push);
        }
        bytes
    }

    /// Each decision as its columns and those of its conditions, with the file if it is another one, and `C` if it is constant.
    fn read(files: &[Vec<Vec<u64>>]) -> Option<Vec<String>> {
        let bytes = encoded(files);
        let found = decisions(files.len() as u64, &mut Numbers::new(&bytes))?;
        let columns = |span: Span| {
            let file = if span.file == 0 {
                String::new()
            } else {
                format!("{}:", span.file)
            };
            format!("{file}{}-{}", span.start.1, span.end.1)
        };
        let shown = |own: Decision| {
            let conditions = own.conditions.iter();
            let conditions =
                conditions.map(|own| columns(own.span) + if own.constant { "C" } else { "" });
            format!(
                "{}: {}",
                columns(own.span),
                conditions.collect::<Vec<_>>().join(" ")
            )
        };
        Some(found.into_iter().map(shown).collect())
    }

    #[test]
    fn conditions_belong_to_the_innermost_decision_that_lacks_them() {
        let decision = |number: u64, columns| region(&[DECISION, 8, number], columns);
        // g(b || c) && a
        let nested = vec![
            region(&[ONE], (1, 90)),
            decision(2, (10, 24)),
            condition(0, (10, 19)),
            decision(2, (12, 18)),
            condition(0, (12, 13)),
            condition(1, (17, 18)),
            condition(1, (23, 24)),
        ];
        // a && M && b, where M is (c)
        let expanded = vec![
            decision(3, (10, 30)),
            condition(0, (10, 11)),
            region(&[EXPANSION], (15, 16)),
            condition(2, (20, 21)),
        ];
        let in_macro = vec![condition(1, (50, 53))];
        // Without a decision, a branch is none of its conditions. One counter is missing for a constant.
        let others = vec![
            region(&[BRANCH, ONE, SUM], (40, 41)),
            region(&[2 << 3], (42, 42)),
            decision(2, (50, 60)),
            condition(1, (55, 56)),
            region(&[CONDITION, ONE, 0, 1, 2, 0], (50, 51)),
            // Incomplete.
            decision(2, (70, 80)),
            condition(0, (70, 71)),
        ];
        for (files, expected) in [
            (
                vec![nested],
                &["10-24: 10-19 23-24", "12-18: 12-13 17-18"][..],
            ),
            (vec![expanded, in_macro], &["10-30: 10-11 1:50-53 20-21"]),
            (vec![others], &["50-60: 50-51C 55-56"]),
            (vec![], &[]),
        ] {
            assert_eq!(read(&files).unwrap(), expected);
        }
        // A condition of no decision, and one with the identifier 0, which is not valid.
        assert_eq!(read(&[vec![condition(0, (1, 2))]]), None);
        let wrong = region(&[CONDITION, ONE, SUM, 0, 0, 0], (10, 11));
        assert_eq!(read(&[vec![decision(1, (10, 11)), wrong]]), None);
    }

    #[test]
    fn a_mapping_that_ends_too_early_is_damaged() {
        let regions = [
            region(&[DECISION, 8, 1], (10, 300)),
            condition(0, (10, 200)),
        ];
        let bytes = encoded(&[regions.to_vec()]);
        let of = |bytes: &[u8]| decisions(1, &mut Numbers::new(bytes));
        assert!(of(&bytes).is_some());
        for end in 0..bytes.len() {
            assert_eq!(of(&bytes[..end]), None, "{end}");
        }
    }

    fn record(line: u32, vectors: &str) -> String {
        format!("[{line},1,{line},9,1,1,0,0,5,[true,false]{vectors}]")
    }

    #[test]
    fn executed_vectors_are_of_the_decision_at_the_same_position() {
        let at = |line: u32| Decision {
            span: span(0, line, (1, 9)),
            ..decision("..", &[])
        };
        let listed = r#",[{"conditions":[false,null],"executed":true,"result":false}]"#;
        let more = r#",[{"conditions":[true,true],"executed":true,"result":true}]"#;
        let other = r#",[{"conditions":[true],"executed":true,"result":true}]"#;
        for (records, expected) in [
            (&[record(7, more), record(3, listed)][..], Ok("F-=F TT=T")),
            // Without vectors (LLVM 21).
            (&[record(7, ""), record(3, listed)], Err(Unknown::NotListed)),
            // A decision that is not in the mapping, and one that has no record.
            (
                &[record(8, more), record(3, listed)],
                Err(Unknown::Mismatch),
            ),
            (&[record(3, listed)], Err(Unknown::Mismatch)),
            (
                &[record(3, listed), record(3, listed)],
                Err(Unknown::Mismatch),
            ),
            (
                &[record(3, listed), record(7, other)],
                Err(Unknown::Mismatch),
            ),
        ] {
            let json = format!("[{}]", records.join(","));
            let records: Vec<Record> = serde_json::from_str(&json).unwrap();
            let mut decisions = [at(3), at(7)];
            let added = add_executed(&mut decisions, records);
            assert_eq!(added, expected.map(drop), "{json}");
            for (decision, text) in decisions
                .iter()
                .zip(expected.unwrap_or_default().split_whitespace())
            {
                assert_eq!(decision.executed, BTreeSet::from([vector(text)]));
            }
        }
    }
}
