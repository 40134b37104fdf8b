//! Which calls were inlined.
//!
//! `.loc` has the call in `inlined_at`. LLVM writes that only if the compiler asks for it, which Triton does not; but the comment
//! after `.loc` has all calls: `// standard.py:170:27 @[ standard.py:191:40 @[ kernel.py:20:19 ] ]`, of files only their names.
//!
//! Source: `DebugLoc::print` and `NVPTXAsmPrinter` in LLVM.

use crate::parse::{Call, Kind, Module, Position};
use std::collections::{BTreeMap, HashMap};

/// Completes the locations of a module from the comments, and finds the calls of each location.
///
/// If the call is in a function that was inlined itself, it has a `.loc`, too. A function that was inlined several times has several
/// of it: the last one before is that of the same copy.
pub fn find(text: &str, module: &mut Module) {
    for function in &mut module.functions {
        let mut calls = Calls::default();
        // By which call the code at a position was inlined.
        let mut last: HashMap<Position, Option<usize>> = HashMap::new();
        for statement in &mut function.statements {
            let Kind::Location(location) = &mut statement.kind else {
                continue;
            };
            location.call = match location.inlined_at {
                Some(call) => {
                    let outer = last.get(&call).copied().flatten();
                    Some(calls.number(call, outer))
                }
                None => {
                    let line = text[statement.at..].lines().next().unwrap_or_default();
                    let chain = chain(line, &module.files);
                    location.inlined_at = chain.first().copied();
                    let outermost_first = chain.into_iter().rev();
                    outermost_first.fold(None, |outer, call| Some(calls.number(call, outer)))
                }
            };
            last.insert(location.position, location.call);
        }
        function.calls = calls.all;
    }
}

/// Numbers calls.
#[derive(Default)]
struct Calls {
    all: Vec<Call>,
    numbers: HashMap<Call, usize>,
}

impl Calls {
    fn number(&mut self, position: Position, outer: Option<usize>) -> usize {
        let call = Call { position, outer };
        *self.numbers.entry(call).or_insert_with(|| {
            self.all.push(call);
            self.all.len() - 1
        })
    }
}

/// The calls in the comment of a line, from the inside to the outside, up to the first one whose file is not known.
fn chain(line: &str, files: &BTreeMap<u32, &str>) -> Vec<Position> {
    let comment = line.split_once("//").map_or("", |(_, comment)| comment);
    let calls = comment.split(" @[ ").skip(1);
    calls.map_while(|call| position(call, files)).collect()
}

/// `NAME:LINE:COLUMN`, and perhaps brackets. `None` if several files have the name.
fn position(call: &str, files: &BTreeMap<u32, &str>) -> Option<Position> {
    let mut parts = call.trim_end_matches([' ', ']']).rsplitn(3, ':');
    let column = parts.next()?.parse().ok()?;
    let line = parts.next()?.parse().ok()?;
    let name = parts.next()?;
    let has_name = |path: &str| {
        let before = path.strip_suffix(name);
        before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
    };
    let mut found = files.iter().filter(|(_, path)| has_name(path));
    let (number, _) = found.next()?;
    found.next().is_none().then_some((*number, line, column))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_name_calls() {
        let files = BTreeMap::from([
            (1, "/a/k.py"),
            (2, "/t/s.py"),
            (3, "/b/x.py"),
            (4, "/c/x.py"),
        ]);
        for (line, expected) in [
            (".loc 1 2 3 // k.py:2:3", vec![]),
            (".loc 2 2 3 // s.py:2:3 @[ k.py:7:8 ]", vec![(1, 7, 8)]),
            (
                ".loc 2 2 3 // s.py:2:3 @[ s.py:4:5 @[ k.py:7:8 ] ]",
                vec![(2, 4, 5), (1, 7, 8)],
            ),
            (".loc 2 2 3 // @[ x.py:4:5 @[ k.py:7:8 ] ]", vec![]),
            (".loc 2 2 3 // @[ k.py:7 @[ y.py:7:8 @[", vec![]),
            (".loc 2 2 3 @[ k.py:7:8 ]", vec![]),
        ] {
            assert_eq!(chain(line, &files), expected, "{line}");
        }
    }
}
