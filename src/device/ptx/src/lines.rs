//! The lines of a function.

use crate::blocks::{Block, Graph};
use crate::parse::{Call, Function, Kind, Location, Position};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// A line of a file that has instructions.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    pub number: u32,
    /// The blocks with instructions of the line.
    pub blocks: Vec<Block>,
}

/// The lines of a function. Each group is from one file, sorted by line. The first one is the function's own: the line of
/// the function, and what follows it in the same file. The others are code that was inlined, or is from other files, even if
/// they are lines of the function's file. Without line information, there are no groups.
#[derive(Debug, Default)]
pub struct Lines {
    pub groups: Vec<(u32, Vec<Line>)>,
}

/// Limit on the number of calls that were inlined into each other.
const MAX_DEPTH: usize = 64;

/// The position of a function: its first line that the compiler knows.
pub fn position(function: &Function) -> Option<Position> {
    let mut statements = function.statements.iter();
    statements.find_map(|statement| match statement.kind {
        Kind::Location(Location {
            position,
            inlined_at: None,
            ..
        }) if position.1 != 0 => Some(position),
        _ => None,
    })
}

/// Whether a function has line information.
pub fn has_location(function: &Function) -> bool {
    let mut statements = function.statements.iter();
    statements.any(|statement| matches!(statement.kind, Kind::Location(_)))
}

impl Lines {
    /// Finds the lines of a function, except those of excluded files. A call that was inlined ran if the inlined code did.
    pub fn new(function: &Function, graph: &Graph, excluded: &HashSet<u32>) -> Lines {
        let Some((file, line, _)) = position(function) else {
            return Lines::default();
        };
        let mut found: BTreeMap<(bool, u32), BTreeMap<u32, BTreeSet<Block>>> = BTreeMap::new();
        let mut add = |is_own: bool, (file, line, _): Position, block| {
            // Line 0: the compiler does not know it.
            if line == 0 || excluded.contains(&file) {
                return;
            }
            let group = found.entry((!is_own, file)).or_default();
            group.entry(line).or_default().insert(block);
        };
        // The line of the function, although the compiler may have moved or removed its instructions.
        add(true, (file, line, 0), 0);
        for (block, body) in graph.blocks.iter().enumerate() {
            for location in body.locations.iter().filter(|_| graph.is_reachable(block)) {
                let (mut position, mut call) = (location.position, location.call);
                for _ in 0..MAX_DEPTH {
                    let is_own = call.is_none() && position.0 == file && position.1 >= line;
                    add(is_own, position, block);
                    let Some(number) = call else { break };
                    Call {
                        position,
                        outer: call,
                    } = function.calls[number];
                }
            }
        }
        let line = |(number, blocks): (u32, BTreeSet<Block>)| Line {
            number,
            blocks: blocks.into_iter().collect(),
        };
        let groups = found.into_iter();
        let groups = groups.map(|((_, file), lines)| (file, lines.into_iter().map(line).collect()));
        Lines {
            groups: groups.collect(),
        }
    }

    pub fn all(&self) -> impl Iterator<Item = &Line> {
        self.groups.iter().flat_map(|(_, lines)| lines)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::calls;
    use crate::parse::{self, tests::HEADER};

    pub fn lines(body: &str) -> (Graph, Lines) {
        let text = format!("{HEADER}.entry k() {{\n{body}\n}}");
        let mut module = parse::module(&text).unwrap();
        calls::find(&text, &mut module);
        let function = &module.functions[0];
        let graph = Graph::new(function).unwrap();
        let lines = Lines::new(function, &graph, &HashSet::from([8]));
        (graph, lines)
    }

    /// The numbers of the lines of each group.
    fn numbers(body: &str) -> Vec<(u32, Vec<u32>)> {
        let groups = lines(body).1.groups.into_iter();
        let numbers = |lines: Vec<Line>| lines.iter().map(|line| line.number).collect();
        groups.map(|(file, lines)| (file, numbers(lines))).collect()
    }

    #[test]
    fn only_lines_with_instructions_are_lines() {
        let body =
            ".loc 1 5 0\n.loc 1 6 1\n.loc 1 7 1\na; .loc 1 0 0\nb; .loc 1 9 1\nret; .loc 1 10 1\n";
        assert_eq!(numbers(body), [(1, vec![5, 7, 9])]);
        assert_eq!(numbers("a; .loc 1 0 0\nret;"), []);
    }

    #[test]
    fn inlined_code_is_in_groups_of_its_own() {
        let body = ".loc 2 5 0\na;
            .loc 2 8 1, function_name $L__info_string0, inlined_at 2 6 3
            .loc 1 4 1, function_name $L__info_string1, inlined_at 2 8 1
            b; .loc 2 4 1\nc; .loc 3 1 1\nd;
            .loc 8 4 1, function_name $L__info_string0, inlined_at 2 7 3\nret;";
        // Line 6 calls the function of line 8, which calls that of line 4. Line 4 of file 2 is before the function.
        let expected = [
            (2, vec![5, 6, 7]),
            (1, vec![4]),
            (2, vec![4, 8]),
            (3, vec![1]),
        ];
        assert_eq!(numbers(body), expected);
    }

    /// The blocks of each line, of all groups.
    fn blocks(body: &str) -> Vec<(u32, Vec<Block>)> {
        let all = lines(body).1;
        let line = |line: &Line| (line.number, line.blocks.clone());
        all.all().map(line).collect()
    }

    #[test]
    fn copies_of_a_call_belong_to_different_calls() {
        // Lines 6 and 7 call the function of line 100, which calls that of line 200.
        let copy = |call: u32, code: &str| {
            format!(
                ".loc 1 100 1, function_name $L__info_string0, inlined_at 1 {call} 3
                .loc 1 200 1, function_name $L__info_string1, inlined_at 1 100 1
                {code}; "
            )
        };
        let body = format!(
            ".loc 1 5 0\na; @p bra L; {}L: .loc 1 8 1\nb; @q bra M; {}M: .loc 1 9 1\nret;",
            copy(6, "c"),
            copy(7, "d")
        );
        let expected = [
            (5, vec![0]),
            (6, vec![1]),
            (7, vec![3]),
            (8, vec![2]),
            (9, vec![4]),
            (100, vec![1, 3]),
            (200, vec![1, 3]),
        ];
        assert_eq!(blocks(&body), expected);
    }

    #[test]
    fn calls_of_a_recursive_function_end() {
        let circle = "\n.loc 1 6 1, inlined_at 1 7 1\n.loc 1 7 1, inlined_at 1 6 1";
        let body = format!(".loc 1 5 0{}\nret;", circle.repeat(2 * MAX_DEPTH));
        assert_eq!(numbers(&body), [(1, vec![5]), (1, vec![6, 7])]);
    }
}
