//! Computes the counts of a function's regions from its counters, as llvm-cov does, but for many profiles: the counts of a thousand
//! tests are computed from one reading of the mapping.
//!
//! Source: `CoverageMapping.h` (the encoding of `Counter`) and `CoverageMappingReader.cpp`.

use super::lines::Position;
use super::mcdc::{self, Region};
use super::numbers::Numbers;

/// How the counts of a function's regions follow from its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Each is the sum or the difference of two encoded counters.
    expressions: Vec<(u64, u64)>,
    /// The indices of the expressions, and whether each is a sum, in an order in which operands come first.
    order: Vec<(usize, bool)>,
    /// The start and the encoded counter of each region that llvm-cov lists, in the same order.
    regions: Vec<(Position, u64)>,
}

/// The lowest bits of an encoded counter: its kind. The others are the index of a counter or of an expression.
const KIND_BITS: u32 = 2;
const KIND: u64 = (1 << KIND_BITS) - 1;
const COUNTER: u64 = 1;
const DIFFERENCE: u64 = 2;
const SUM: u64 = 3;

impl Counters {
    /// Reads a function's mapping. `None` if it is damaged.
    pub fn read(mapping: &[u8]) -> Option<Counters> {
        let mut numbers = Numbers::new(mapping);
        let files = numbers.next()?;
        numbers.skip(files)?;
        let mut expressions = Vec::new();
        for _ in 0..numbers.next()? {
            expressions.push((numbers.next()?, numbers.next()?));
        }
        let mut regions = Vec::new();
        // Of each file, its first counter; and the file of each expansion, by its index in the regions.
        let (mut first, mut expansions) = (Vec::new(), Vec::new());
        for file in 0..files {
            let (mut line, mut own) = (0, None);
            for _ in 0..numbers.next()? {
                let region = Region::read(&mut numbers)?;
                let span = mcdc::span(usize::try_from(file).ok()?, &mut line, &mut numbers)?;
                let counter = match region {
                    Region::Code { counter } => counter,
                    Region::Expansion { file } => {
                        expansions.push((regions.len(), usize::try_from(file).ok()?));
                        0
                    }
                    Region::Branch | Region::Decision { .. } | Region::Condition { .. } => continue,
                };
                own.get_or_insert(regions.len());
                regions.push((span.start, counter));
            }
            first.push(own);
        }
        // A macro's use has the count of its text. The text of a macro may begin with the use of another one, whose file has a higher
        // number.
        for (region, file) in expansions.into_iter().rev() {
            if let Some(text) = *first.get(file)? {
                regions[region].1 = regions[text].1;
            }
        }
        Some(Counters {
            order: order(&expressions, &regions)?,
            expressions,
            regions,
        })
    }

    /// The starts of the regions.
    pub fn starts(&self) -> impl Iterator<Item = Position> + '_ {
        self.regions.iter().map(|(start, _)| *start)
    }

    /// The counts of the regions. `values`: the function's counters. Missing ones are 0.
    pub fn counts(&self, values: &[u64]) -> Vec<u64> {
        let mut results = vec![0u64; self.expressions.len()];
        let value = |counter: u64, results: &[u64]| {
            let known = match counter & KIND {
                COUNTER => values,
                DIFFERENCE | SUM => results,
                _ => &[],
            };
            known.get(index(counter)).copied().unwrap_or(0)
        };
        for &(expression, is_sum) in &self.order {
            let (left, right) = self.expressions[expression];
            let (left, right) = (value(left, &results), value(right, &results));
            results[expression] = match is_sum {
                true => left.saturating_add(right),
                false => left.saturating_sub(right),
            };
        }
        let counters = self.regions.iter().map(|(_, counter)| *counter);
        counters.map(|counter| value(counter, &results)).collect()
    }
}

/// The index of a counter or expression.
fn index(counter: u64) -> usize {
    (counter >> KIND_BITS) as usize
}

/// The expressions of the regions, operands first. `None`: one does not exist, or depends on itself.
fn order(expressions: &[(u64, u64)], regions: &[(Position, u64)]) -> Option<Vec<(usize, bool)>> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        /// The expressions that are above it on the stack are its operands.
        Open,
        Done,
    }
    let mut states = vec![State::New; expressions.len()];
    let mut order = Vec::new();
    let mut stack: Vec<u64> = regions.iter().map(|(_, counter)| *counter).collect();
    while let Some(&counter) = stack.last() {
        if counter & KIND < DIFFERENCE {
            stack.pop();
            continue;
        }
        let state = states.get_mut(index(counter))?;
        match *state {
            State::New => {
                *state = State::Open;
                let (left, right) = expressions[index(counter)];
                for operand in [left, right] {
                    let is_open = || states.get(index(operand)) == Some(&State::Open);
                    if operand & KIND >= DIFFERENCE && is_open() {
                        return None;
                    }
                    stack.push(operand);
                }
            }
            State::Open => {
                *state = State::Done;
                order.push((index(counter), counter & KIND == SUM));
                stack.pop();
            }
            State::Done => drop(stack.pop()),
        }
    }
    Some(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One file; the counter 1 - 0, and 0 + that; regions on the lines 1 to 4, the last of which is a branch.
    const MAPPING: &[u8] = &[
        1, 1, 2, 5, 1, 1, 2, 4, 1, 1, 1, 5, 2, 5, 1, 1, 0, 9, 2, 1, 1, 0, 9, 32, 1, 5, 1, 1, 0, 9,
    ];

    #[test]
    fn counts_follow_from_expressions() {
        let counters = Counters::read(MAPPING).expect("a mapping");
        let counts = |values: &[u64]| counters.counts(values);
        assert_eq!(counts(&[3, 7]), [3, 7, 4]);
        assert_eq!(counts(&[]), [0, 0, 0]);
        let starts: Vec<_> = counters.starts().collect();
        assert_eq!(starts, [(1, 1), (2, 1), (3, 1)]);
    }

    #[test]
    fn expressions_that_refer_to_each_other_are_damage() {
        // The only region has expression 0, which is the sum of itself.
        let cyclic = [1, 1, 1, 3, 1, 1, 3, 1, 1, 0, 9];
        assert_eq!(Counters::read(&cyclic), None);
        let missing = [1, 1, 0, 1, 3, 1, 1, 0, 9];
        assert_eq!(Counters::read(&missing), None);
        assert_eq!(Counters::read(&MAPPING[..9]), None);
    }
}
