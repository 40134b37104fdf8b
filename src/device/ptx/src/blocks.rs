//! The basic blocks of a function, and which of them dominate others.

use crate::parse::{Function, Kind, Location, Statement};
use crate::problem::Problem;
use std::collections::HashMap;

/// A number of a block.
pub type Block = usize;

/// A basic block. It has at least one instruction.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// The position of its first instruction.
    pub start: usize,
    /// What its instructions were compiled from, without repetitions in a row.
    pub locations: Vec<Location>,
    pub successors: Vec<Block>,
    pub predecessors: Vec<Block>,
    /// The function can end here.
    pub is_exit: bool,
}

/// The blocks of a function. The first one is the entry.
#[derive(Debug)]
pub struct Graph {
    pub blocks: Vec<Body>,
    /// Control can reach the end of the text, where no instruction ends the function.
    pub has_open_end: bool,
    dominators: Tree,
    post_dominators: Tree,
}

impl Graph {
    /// # Errors
    /// A branch has a target that the function does not define.
    pub fn new(function: &Function) -> Result<Graph, Problem> {
        let (mut blocks, has_open_end) = read(function)?;
        let exit = blocks.len();
        let forward = |block: Block| blocks[block].successors.clone();
        let dominators = Tree::new(exit, 0, forward);
        // Predecessors that cannot be reached do not count.
        for block in (0..exit).filter(|block| dominators.contains(*block)) {
            for successor in blocks[block].successors.clone() {
                blocks[successor].predecessors.push(block);
            }
        }
        let post_dominators = post_dominators(&blocks);
        Ok(Graph {
            blocks,
            has_open_end,
            dominators,
            post_dominators,
        })
    }

    /// Whether control can reach a block.
    pub fn is_reachable(&self, block: Block) -> bool {
        self.dominators.contains(block)
    }

    /// Whether each path to `other` passes through `block`. Both are reachable.
    pub fn dominates(&self, block: Block, other: Block) -> bool {
        self.dominators.is_above(block, other)
    }

    /// The first of the blocks that run if and only if `block` runs.
    pub fn leader(&self, mut block: Block) -> Block {
        while block != 0 {
            let above = self.dominators.parents[block];
            if !self.post_dominators.is_above(block, above) {
                break;
            }
            block = above;
        }
        block
    }

    /// A number for each block: blocks that dominate others have lower ones.
    pub fn order(&self, block: Block) -> usize {
        self.dominators.ranges[block].0
    }
}

/// Reads the blocks and their successors, and whether control can reach the end of the text.
fn read(function: &Function) -> Result<(Vec<Body>, bool), Problem> {
    let mut blocks: Vec<Body> = Vec::new();
    // The block that starts after a label. It may be past the last block.
    let mut labels: HashMap<(usize, &str), Block> = HashMap::new();
    let mut lists: HashMap<(usize, &str), &[&str]> = HashMap::new();
    let mut branches: Vec<(Block, usize, &str)> = Vec::new();
    let mut is_open = false;
    let mut falls_through = false;
    let mut location = None;
    // Whether it is of an earlier block, and which blocks begin with such a location.
    let mut is_earlier = true;
    let mut inheriting = Vec::new();
    let mut last_label = None;
    for Statement { at, scope, kind } in &function.statements {
        match kind {
            Kind::Label(label) => {
                (is_open, is_earlier) = (false, true);
                labels.insert((*scope, label), blocks.len());
                last_label = Some(*label);
            }
            Kind::Targets(targets) => {
                lists.extend(last_label.map(|label| ((*scope, label), &targets[..])));
            }
            Kind::Location(found) => (location, is_earlier) = (Some(*found), false),
            Kind::Instruction {
                is_predicated,
                operation,
                target,
            } => {
                if !is_open {
                    let next = blocks.len();
                    if falls_through {
                        blocks[next - 1].successors.push(next);
                    }
                    blocks.push(Body {
                        start: *at,
                        ..Body::default()
                    });
                    inheriting.push(is_earlier);
                }
                (is_open, falls_through) = (true, true);
                let block = blocks.len() - 1;
                let own = &mut blocks[block].locations;
                if own.last() != location.as_ref() {
                    own.extend(location);
                }
                match *operation {
                    "bra" | "brx" => branches.push((block, *scope, target)),
                    "ret" | "exit" | "trap" => blocks[block].is_exit = true,
                    _ => continue,
                }
                (is_open, is_earlier, falls_through) = (false, true, *is_predicated);
            }
        }
    }
    if let Some(last) = blocks.last_mut() {
        last.is_exit |= falls_through;
    }
    let mut has_open_end = falls_through;
    for (block, scope, target) in branches {
        let list = find(function, scope, target, &lists);
        for label in list.copied().unwrap_or(&[target]) {
            let to = find(function, scope, label, &labels);
            match *to.ok_or_else(|| Problem::NoLabel((*label).to_owned()))? {
                // Only the end of the function follows.
                to if to == blocks.len() => (blocks[block].is_exit, has_open_end) = (true, true),
                to => {
                    blocks[block].successors.push(to);
                    // The line of the text before a label is not that of the branches to it.
                    if std::mem::take(&mut inheriting[to]) && !blocks[to].locations.is_empty() {
                        blocks[to].locations.remove(0);
                    }
                }
            }
        }
    }
    for block in &mut blocks {
        block.successors.sort_unstable();
        block.successors.dedup();
    }
    Ok((blocks, has_open_end))
}

/// Finds a label in a scope, or in those around it.
fn find<'a, T>(
    function: &Function,
    mut scope: usize,
    label: &'a str,
    known: &'a HashMap<(usize, &str), T>,
) -> Option<&'a T> {
    loop {
        match known.get(&(scope, label)) {
            None if scope != 0 => scope = function.scopes[scope],
            found => return found,
        }
    }
}

/// The exit is the root, with the number after the last block. A block that cannot reach the exit is taken to be followed by it.
fn post_dominators(blocks: &[Body]) -> Tree {
    let exit = blocks.len();
    let mut ends: Vec<Block> = (0..exit).filter(|block| blocks[*block].is_exit).collect();
    loop {
        let backward = |block: Block| match blocks.get(block) {
            Some(body) => body.predecessors.clone(),
            None => ends.clone(),
        };
        let tree = Tree::new(exit + 1, exit, backward);
        let is_missing = |block: &Block| !tree.contains(*block);
        let endless: Vec<Block> = (0..exit).filter(is_missing).collect();
        if endless.is_empty() {
            return tree;
        }
        ends.extend(endless);
    }
}

const NONE: Block = usize::MAX;

/// A tree of dominators (Cooper, Harvey and Kennedy: A Simple, Fast Dominance Algorithm).
#[derive(Debug)]
struct Tree {
    /// The block directly above each. `NONE`: the block cannot be reached.
    parents: Vec<Block>,
    /// The numbers of each block's subtree, in an order in which blocks precede those below them.
    ranges: Vec<(usize, usize)>,
}

impl Tree {
    fn new(size: usize, root: Block, next: impl Fn(Block) -> Vec<Block>) -> Tree {
        let mut tree = Tree {
            parents: vec![NONE; size],
            ranges: vec![(0, 0); size],
        };
        if size == 0 {
            return tree;
        }
        let edges: Vec<Vec<Block>> = (0..size).map(next).collect();
        let order = post_order(&edges, root);
        let mut number = vec![NONE; size];
        for (at, block) in order.iter().enumerate() {
            number[*block] = at;
        }
        let mut from = vec![Vec::new(); size];
        for block in &order {
            for to in &edges[*block] {
                from[*to].push(*block);
            }
        }
        let parents = &mut tree.parents;
        parents[root] = root;
        let mut is_changed = true;
        while is_changed {
            is_changed = false;
            for block in order.iter().rev().filter(|block| **block != root) {
                let known = from[*block].iter().filter(|from| parents[**from] != NONE);
                let nearest = known.copied().reduce(|mut a, mut b| {
                    while a != b {
                        while number[a] < number[b] {
                            a = parents[a];
                        }
                        while number[b] < number[a] {
                            b = parents[b];
                        }
                    }
                    a
                });
                let nearest = nearest.unwrap_or(NONE);
                is_changed |= parents[*block] != nearest;
                parents[*block] = nearest;
            }
        }
        let mut below = vec![Vec::new(); size];
        for block in order.iter().filter(|block| **block != root) {
            below[tree.parents[*block]].push(*block);
        }
        let reversed = post_order(&below, root);
        let last = reversed.len();
        // In the reverse of a post-order, a subtree follows its root.
        let mut sizes = vec![1; size];
        for (at, block) in reversed.iter().enumerate() {
            let start = last - 1 - at;
            tree.ranges[*block] = (start, start + sizes[*block]);
            if *block != root {
                sizes[tree.parents[*block]] += sizes[*block];
            }
        }
        tree
    }

    fn contains(&self, block: Block) -> bool {
        self.parents[block] != NONE
    }

    fn is_above(&self, block: Block, other: Block) -> bool {
        let (start, end) = self.ranges[block];
        (start..end).contains(&self.ranges[other].0)
    }
}

/// The nodes that a root reaches, each after those that it reaches first.
fn post_order(edges: &[Vec<Block>], root: Block) -> Vec<Block> {
    let mut order = Vec::new();
    let mut is_seen = vec![false; edges.len()];
    is_seen[root] = true;
    let mut path = vec![(root, 0)];
    while let Some((block, next)) = path.last_mut() {
        let to = edges[*block].get(*next);
        *next += 1;
        match to {
            Some(to) if is_seen[*to] => {}
            Some(&to) => {
                is_seen[to] = true;
                path.push((to, 0));
            }
            None => {
                order.push(*block);
                path.pop();
            }
        }
    }
    order
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::parse::{self, tests::HEADER};

    /// The graph of a function with this body.
    pub fn graph(body: &str) -> Result<Graph, Problem> {
        let text = format!("{HEADER}.entry k() {{\n{body}\n}}");
        let module = parse::module(&text).unwrap();
        Graph::new(&module.functions[0])
    }

    fn successors(body: &str) -> Vec<Vec<Block>> {
        let graph = graph(body).unwrap();
        graph
            .blocks
            .into_iter()
            .map(|block| block.successors)
            .collect()
    }

    #[test]
    fn labels_and_branches_end_blocks() {
        for (body, expected) in [
            ("ret;", vec![vec![]]),
            (
                "a; b; @p bra L; c; L: ret;",
                vec![vec![1, 2], vec![2], vec![]],
            ),
            ("L: a; @p bra L; ret;", vec![vec![0, 1], vec![]]),
            ("A: B: a; bra.uni A; ret;", vec![vec![0], vec![]]),
            (
                "@p ret; @p exit; trap; a;",
                vec![vec![1], vec![2], vec![], vec![]],
            ),
            ("bra E; E:", vec![vec![]]),
            // A call returns. A list of labels is not code, but its name starts a block.
            (
                "call f; t: .branchtargets A, B; brx.idx r, t; A: ret; B: ret;",
                vec![vec![1], vec![2, 3], vec![], vec![]],
            ),
        ] {
            assert_eq!(successors(body), expected, "{body}");
        }
    }

    #[test]
    fn labels_belong_to_scopes() {
        let body = "{ L: a; @p bra L; } { L: b; @p bra L; bra M; } c; M: ret;";
        assert_eq!(
            successors(body),
            [vec![0, 1], vec![1, 2], vec![4], vec![4], vec![]]
        );
        let problem = graph("{ L: a; } bra L;").unwrap_err();
        assert_eq!(problem, Problem::NoLabel("L".to_owned()));
    }

    #[test]
    fn blocks_have_the_locations_of_their_instructions() {
        let graph =
            graph(".loc 1 2 3\n.loc 1 3 3\na; b; .loc 1 4 3\nc; L: d; .loc 1 5 5\n@p bra L; ret;")
                .unwrap();
        let lines = graph.blocks.iter().map(|block| {
            let lines = block.locations.iter().map(|location| location.position.1);
            lines.collect::<Vec<u32>>()
        });
        assert_eq!(lines.collect::<Vec<_>>(), [vec![3, 4], vec![5], vec![5]]);
    }

    /// Random numbers below a limit.
    pub fn random(seed: &mut u32, below: u32) -> u32 {
        *seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (*seed >> 8) % below
    }

    /// A function with random branches. Each block has an instruction of one of a few lines.
    pub fn random_body(seed: &mut u32) -> String {
        let size = 1 + random(seed, 9);
        let mut body = String::new();
        for block in 0..size {
            body += &format!("L{block}: .loc 1 {} 1\na; ", 1 + random(seed, 6));
            let predicate = if random(seed, 4) > 0 { "@p " } else { "" };
            body += &match random(seed, 4) {
                0 => String::new(),
                1 => format!("{predicate}ret; "),
                _ => format!("{predicate}bra L{}; ", random(seed, size)),
            };
        }
        body
    }

    /// Compares with the definition: each path from the entry contains the block, each path to the exit does.
    #[test]
    fn dominators_are_those_of_the_definition() {
        let mut seed = 7;
        for _ in 0..500 {
            let body = random_body(&mut seed);
            let graph = graph(&body).unwrap();
            let reachable: Vec<Block> = reach(&graph, 0, NONE);
            let all = 0..graph.blocks.len();
            for block in all.clone() {
                assert_eq!(
                    graph.is_reachable(block),
                    reachable.contains(&block),
                    "{body}"
                );
            }
            let ends = |from: Block, without: Block| {
                reach(&graph, from, without)
                    .iter()
                    .any(|block| graph.blocks[*block].is_exit)
            };
            for &block in &reachable {
                let leader = graph.leader(block);
                for &other in &reachable {
                    let dominates = block == other || !reach(&graph, 0, block).contains(&other);
                    assert_eq!(
                        graph.dominates(block, other),
                        dominates,
                        "{block} {other} {body}"
                    );
                    if dominates {
                        assert!(graph.order(block) <= graph.order(other));
                    }
                    // With endless loops, blocks may have leaders of their own.
                    let is_endless = reachable.iter().any(|block| !ends(*block, NONE));
                    let is_same = dominates && (block == other || !ends(block, other));
                    if is_same && !is_endless {
                        assert_eq!(graph.leader(other), leader, "{block} {other} {body}");
                    }
                }
                assert!(graph.dominates(leader, block));
                if leader != block {
                    assert!(!ends(leader, block), "{leader} {block} {body}");
                }
            }
        }
    }

    /// The blocks that a path from a block reaches without another one.
    fn reach(graph: &Graph, from: Block, without: Block) -> Vec<Block> {
        let mut found = Vec::new();
        let mut open = vec![from];
        while let Some(block) = open.pop() {
            if block != without && !found.contains(&block) {
                found.push(block);
                open.extend(&graph.blocks[block].successors);
            }
        }
        found
    }
}
