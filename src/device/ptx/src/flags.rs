//! Which blocks have a flag.
//!
//! A line ran if one of its blocks ran. Blocks that another block of the line dominates add nothing. Of the others, blocks that
//! run together share a flag, in the first of them, which is in the outermost loop. If the successors of a block are entered
//! only from it, and have flags, it needs none: it ran if one of them ran. Blocks that decide about the same lines, such as the
//! copies of a branch in an unrolled loop, share a flag, too.

use crate::blocks::{Block, Graph};
use crate::lines::Lines;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The number of a flag of a function.
pub type Flag = u32;

pub struct Flags {
    /// The number of flags.
    pub number: usize,
    /// The blocks that clear flags, in their order.
    pub locations: Vec<(Block, Flag)>,
    /// Of each block that decides about lines, the flags of which one is cleared if it ran.
    of_blocks: BTreeMap<Block, BTreeSet<Flag>>,
}

impl Flags {
    pub fn new(graph: &Graph, lines: &Lines) -> Flags {
        let mut wanted: BTreeSet<Block> = BTreeSet::from([0]);
        for line in lines.all() {
            wanted.extend(minimal(graph, &line.blocks).map(|block| graph.leader(block)));
        }
        let mut wanted: Vec<Block> = wanted.into_iter().collect();
        wanted.sort_by_key(|block| graph.order(*block));
        let mut flags = Flags {
            number: 0,
            locations: Vec::new(),
            of_blocks: BTreeMap::new(),
        };
        // Dominated blocks first: those are the successors that imply others.
        for &block in wanted.iter().rev() {
            let implied = flags.implied(graph, block);
            let own = implied.unwrap_or_else(|| {
                let new = flags.locations.len() as Flag;
                flags.locations.push((block, new));
                BTreeSet::from([new])
            });
            flags.of_blocks.insert(block, own);
        }
        flags.merge(graph, lines);
        flags
    }

    /// The flags of a block's successors, if one of them runs whenever the block runs, and no other block is the reason.
    fn implied(&self, graph: &Graph, block: Block) -> Option<BTreeSet<Flag>> {
        let body = &graph.blocks[block];
        if body.is_exit || body.successors.is_empty() {
            return None;
        }
        let mut flags = BTreeSet::new();
        for &next in &body.successors {
            // The entry is entered from outside, too.
            if next == 0 || graph.blocks[next].predecessors != [block] {
                return None;
            }
            flags.extend(self.of_blocks.get(&next)?);
        }
        Some(flags)
    }

    /// Merges flags that belong to the same lines. Their numbers follow the order of the blocks, so the entry has the first one if
    /// it has one.
    fn merge(&mut self, graph: &Graph, lines: &Lines) {
        let mut lines_of = vec![Vec::new(); self.locations.len()];
        for (number, line) in lines.all().enumerate() {
            for flag in self.of(graph, &line.blocks) {
                lines_of[flag as usize].push(number);
            }
        }
        self.locations.sort_unstable();
        let mut numbers = vec![0; lines_of.len()];
        let mut known = HashMap::new();
        for (_, flag) in &mut self.locations {
            let old = *flag as usize;
            let new = known.len() as Flag;
            *flag = *known.entry(&lines_of[old]).or_insert(new);
            numbers[old] = *flag;
        }
        self.number = known.len();
        for flags in self.of_blocks.values_mut() {
            *flags = flags.iter().map(|flag| numbers[*flag as usize]).collect();
        }
    }

    /// The flags of which one is cleared if one of these blocks ran.
    pub fn of(&self, graph: &Graph, blocks: &[Block]) -> BTreeSet<Flag> {
        let leaders = minimal(graph, blocks).map(|block| graph.leader(block));
        leaders
            .flat_map(|block| self.of_blocks[&block].iter().copied())
            .collect()
    }
}

/// The blocks that none of the others dominates.
fn minimal(graph: &Graph, blocks: &[Block]) -> impl Iterator<Item = Block> {
    let mut sorted = blocks.to_vec();
    sorted.sort_by_key(|block| graph.order(*block));
    let mut last: Option<Block> = None;
    sorted.retain(|block| {
        // In this order, a block is followed by all that it dominates.
        let is_new = last.is_none_or(|last| !graph.dominates(last, *block));
        if is_new {
            last = Some(*block);
        }
        is_new
    });
    sorted.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::tests::{random, random_body};
    use crate::parse::{self, tests::HEADER};
    use std::collections::HashSet;

    fn flags(body: &str) -> (Graph, Lines, Flags) {
        let text = format!("{HEADER}.entry k() {{\n{body}\n}}");
        let module = parse::module(&text).unwrap();
        let function = &module.functions[0];
        let graph = Graph::new(function).unwrap();
        let lines = Lines::new(function, &graph, &HashSet::new());
        let flags = Flags::new(&graph, &lines);
        (graph, lines, flags)
    }

    /// The blocks that have flags, if each block has a line of its own.
    fn locations(body: &str) -> Vec<Block> {
        let mut line = 0;
        let body: String = body
            .split_inclusive(';')
            .map(|statement| {
                line += 1;
                match statement.rsplit_once(':') {
                    Some((labels, code)) => format!("{labels}: .loc 1 {line} 1\n{code}"),
                    None => format!(".loc 1 {line} 1\n{statement}"),
                }
            })
            .collect();
        blocks(&flags(&body).2)
    }

    /// The blocks that clear flags.
    fn blocks(flags: &Flags) -> Vec<Block> {
        flags.locations.iter().map(|(block, _)| *block).collect()
    }

    #[test]
    fn blocks_that_others_imply_have_no_flags() {
        for (body, expected) in [
            ("a; ret;", vec![0]),
            // A branch without `else`.
            ("@p bra M; b; M: ret;", vec![0, 1]),
            // With `else`: one of the two runs.
            ("@p bra E; b; bra M; E: c; M: ret;", vec![1, 2]),
            // A loop that runs at least once, and one that may not run.
            ("a; L: b; @p bra L; ret;", vec![0]),
            ("a; @p bra X; L: b; @p bra L; X: ret;", vec![0, 1]),
            // An early end: what follows it may not run.
            ("a; @p ret; b; ret;", vec![0, 1]),
            // A successor that is entered from other blocks implies nothing.
            (
                "@p bra B; a; @q bra B; c; ret; B: b; ret;",
                vec![0, 1, 2, 3],
            ),
            // Code that cannot be reached.
            ("ret; a; ret;", vec![0]),
        ] {
            assert_eq!(locations(body), expected, "{body}");
        }
    }

    /// Blocks of one line that others of the line dominate, as in an unrolled loop, need no flag.
    #[test]
    fn copies_of_a_line_have_one_flag() {
        let body = ".loc 1 1 1\na; @p ret; .loc 1 2 1\nb; @p ret; b; @p ret; b; ret;";
        assert_eq!(blocks(&flags(body).2), [0, 1]);
    }

    #[test]
    fn blocks_of_the_same_lines_share_a_flag() {
        // A loop with two copies of a branch.
        let copy =
            |end: &str| format!(".loc 1 2 1\n@p bra {end}; .loc 1 3 1\nb; {end}: .loc 1 4 1\nc; ");
        let body = format!(".loc 1 1 1\na; L: {}{}@p bra L; ret;", copy("M"), copy("N"));
        let found = flags(&body).2;
        assert_eq!(
            (found.number, &found.locations[..]),
            (2, &[(0, 0), (2, 1), (4, 1)][..])
        );
        // With a line of its own, a copy has a flag of its own.
        let found = flags(&body.replacen("b;", "b; .loc 1 9 1\nd;", 1)).2;
        assert_eq!(
            (found.number, &found.locations[..]),
            (3, &[(0, 0), (2, 1), (4, 2)][..])
        );
    }

    /// Runs random functions. The flags must give the lines that ran.
    #[test]
    fn flags_tell_which_lines_ran() {
        let mut seed = 1;
        let (mut runs, mut saved) = (0, 0);
        for _ in 0..2000 {
            let body = random_body(&mut seed);
            let (graph, lines, flags) = flags(&body);
            saved += graph.blocks.len() - flags.number;
            for _ in 0..5 {
                let Some(ran) = run(&graph, &mut seed) else {
                    continue;
                };
                runs += 1;
                let is_set = |wanted: &Flag| {
                    let mut locations = flags.locations.iter();
                    locations.any(|(block, flag)| flag == wanted && ran.contains(block))
                };
                for line in lines.all() {
                    let expected = line.blocks.iter().any(|block| ran.contains(block));
                    let found = flags.of(&graph, &line.blocks).iter().any(is_set);
                    assert_eq!(found, expected, "line {} {ran:?} {body}", line.number);
                }
            }
        }
        assert!(runs > 4000 && saved > 1000, "{runs} {saved}");
    }

    /// The blocks of one random run. `None`: it did not end in time.
    fn run(graph: &Graph, seed: &mut u32) -> Option<BTreeSet<Block>> {
        let mut ran = BTreeSet::new();
        let mut block = 0;
        for _ in 0..200 {
            ran.insert(block);
            let body = &graph.blocks[block];
            let ways = body.successors.len() as u32 + u32::from(body.is_exit);
            match body.successors.get(random(seed, ways) as usize) {
                Some(next) => block = *next,
                None => return Some(ran),
            }
        }
        None
    }
}
