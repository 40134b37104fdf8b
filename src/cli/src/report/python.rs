//! Which statements of Python ran, from the lines that have code and ran.
//!
//! A tool that reads Python takes each statement to be code, but many statements of a kernel have no instructions: those that the
//! compiler computes, and those that became part of other lines. Such a statement ran if a later one of its block ran, because
//! Python has no jumps into a block, or if the one before it ran and does not leave the block.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// The number of columns to which a tab moves.
const TAB: usize = 8;

/// A statement, or the header of a compound one.
#[derive(Debug, PartialEq, Eq)]
struct Statement<'a> {
    lines: RangeInclusive<u32>,
    /// In columns.
    indentation: usize,
    /// Its first word.
    word: &'a str,
}

/// The lines of a file that ran. `counts`: those of the lines with code. Only functions with such lines are completed.
pub fn ran(text: &str, counts: &BTreeMap<u32, u64>) -> BTreeSet<u32> {
    let ran = counts.iter().filter(|(_, count)| **count > 0);
    let mut file = File {
        counts,
        ran: ran.map(|(line, _)| *line).collect(),
    };
    file.complete(&statements(text), None);
    file.ran
}

struct File<'a> {
    counts: &'a BTreeMap<u32, u64>,
    ran: BTreeSet<u32>,
}

/// What contains a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parent {
    /// A function with code. Its block begins when it is called: `is_called` is what its own line says.
    Function {
        is_called: bool,
    },
    Statement,
}

impl File<'_> {
    /// Adds the statements of a block that ran. `parent`: `None` outside of functions with code.
    fn complete(&mut self, block: &[Statement], parent: Option<Parent>) {
        let Some(first) = block.first() else { return };
        let is_start = |statement: &Statement| statement.indentation <= first.indentation;
        // Each statement with those below it.
        let mut parts: Vec<&[Statement]> = Vec::new();
        let mut rest = block;
        while !rest.is_empty() {
            let next = rest.iter().skip(1).position(is_start);
            let (part, after) = rest.split_at(next.map_or(rest.len(), |next| next + 1));
            parts.push(part);
            rest = after;
        }
        for part in &parts {
            let (header, below) = (&part[0], &part[1..]);
            let is_function = matches!(header.word, "def" | "async");
            let own = match parent {
                _ if is_function && self.has_code(part) => Some(Parent::Function {
                    is_called: self.has_run(&part[..1]),
                }),
                None => None,
                Some(_) => Some(Parent::Statement),
            };
            self.complete(below, own);
        }
        let Some(parent) = parent else { return };
        let mut is_after = false;
        let mut is_after_in_chain = false;
        for part in parts.iter().rev() {
            let (has_run, is_link) = (self.has_run(part), is_link(&part[0]));
            let is_implied = if is_link {
                is_after_in_chain
            } else {
                is_after || is_after_in_chain
            };
            if has_run || is_implied {
                self.add(&part[0]);
            }
            is_after_in_chain = is_link && (is_after_in_chain || has_run);
            is_after |= has_run;
        }
        // Whether the block was entered and reaches the next statement.
        let mut is_reached = match parent {
            Parent::Function { is_called } => is_called || is_after,
            Parent::Statement => false,
        };
        for part in &parts {
            if is_reached && !is_link(&part[0]) {
                self.add(&part[0]);
            }
            let is_simple = part.len() == 1;
            is_reached = is_simple && self.has_run(part) && !leaves(part[0].word);
        }
    }

    fn lines<'b>(part: &'b [Statement]) -> impl Iterator<Item = u32> + 'b {
        part.iter().flat_map(|statement| statement.lines.clone())
    }

    fn has_code(&self, part: &[Statement]) -> bool {
        File::lines(part).any(|line| self.counts.contains_key(&line))
    }

    fn has_run(&self, part: &[Statement]) -> bool {
        File::lines(part).any(|line| self.ran.contains(&line))
    }

    /// A statement with code ran only if its code did.
    fn add(&mut self, statement: &Statement) {
        if !self.has_code(std::slice::from_ref(statement)) {
            self.ran.insert(*statement.lines.start());
        }
    }
}

/// Whether it is a further part of the compound statement before it.
fn is_link(statement: &Statement) -> bool {
    matches!(
        statement.word,
        "elif" | "else" | "except" | "finally" | "case"
    )
}

fn leaves(word: &str) -> bool {
    matches!(word, "return" | "raise" | "break" | "continue")
}

/// The statements of a file, in order.
fn statements(text: &str) -> Vec<Statement<'_>> {
    let mut found: Vec<Statement> = Vec::new();
    // Brackets that are open, and the end of the string that is open.
    let (mut depth, mut string) = (0usize, None::<&str>);
    let mut continues = false;
    for (number, line) in (1u32..).zip(text.lines()) {
        let code = line.trim_start();
        let is_inside = depth > 0 || string.is_some() || continues;
        if !is_inside && (code.is_empty() || code.starts_with('#')) {
            continue;
        }
        match found.last_mut() {
            Some(last) if is_inside => last.lines = *last.lines.start()..=number,
            _ => found.push(Statement {
                lines: number..=number,
                indentation: indentation(line),
                word: word(code),
            }),
        }
        continues = scan(line, &mut depth, &mut string);
    }
    found
}

fn indentation(line: &str) -> usize {
    let blanks = line.chars().take_while(|c| c.is_whitespace());
    blanks.fold(0, |column, c| match c {
        '\t' => (column / TAB + 1) * TAB,
        _ => column + 1,
    })
}

fn word(code: &str) -> &str {
    let end = code.find(|c: char| !c.is_alphanumeric() && c != '_');
    &code[..end.unwrap_or(code.len())]
}

/// Reads a line. Returns whether it ends in a backslash that continues it.
fn scan(line: &str, depth: &mut usize, string: &mut Option<&'static str>) -> bool {
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let mut length = c.len_utf8();
        if c == '\\' {
            let Some(escaped) = rest[1..].chars().next() else {
                return true;
            };
            length += escaped.len_utf8();
        } else if let Some(end) = *string {
            if rest.starts_with(end) {
                length = end.len();
                *string = None;
            }
        } else {
            let quotes = ["\"\"\"", "'''", "\"", "'"].into_iter();
            if let Some(quote) = quotes.into_iter().find(|quote| rest.starts_with(quote)) {
                length = quote.len();
                *string = Some(quote);
            }
            match c {
                '#' => break,
                '(' | '[' | '{' => *depth += 1,
                ')' | ']' | '}' => *depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        rest = &rest[length..];
    }
    // A string in single quotes ends with the line.
    *string = string.filter(|end| end.len() > 1);
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_have_lines_and_indentation() {
        let text = "import a  # (\n\nx = f(1,\n   # [\n  2)\ns = '''a\n  b(\n''' + \"it's\\\"(\"\n\tif y \\\n  :\n pass\n";
        let found: Vec<_> = statements(text)
            .into_iter()
            .map(|own| (own.lines, own.indentation, own.word))
            .collect();
        let expected = [
            (1..=1, 0, "import"),
            (3..=5, 0, "x"),
            (6..=8, 0, "s"),
            (9..=10, 8, "if"),
            (11..=11, 1, "pass"),
        ];
        assert_eq!(found, expected);
    }

    /// Lines that have code and ran end in `#1`, and those that have code and did not run in `#0`; statements without code that ran
    /// end in `#r`, and others in `#`.
    #[test]
    fn statements_without_code_are_completed() {
        for text in [
            // A later statement of the block ran.
            "def k():#1\n a#r\n b#1\n c#r\n d#r",
            // A block that did not run, and one that has no code.
            "def k():#1\n if x:#1\n  a#\n  b#0\n if y:#r\n  c#\n  d#\n e#1",
            // Of a chain, only what was evaluated.
            "def k():#1\n if x:#r\n  a#1\n elif y:#\n  b#\n else:#\n  c#\n d#1",
            "def k():#1\n if x:#r\n  a#\n elif y:#r\n  b#\n else:#r\n  c#1\n d#1",
            // Nothing follows a return.
            "def k():#1\n a#r\n if x:#1\n  b#r\n  return#1\n  c#\n d#",
            // Loops, and a statement of several lines, of which one has code.
            "def k():#1\n for i in r:#r\n  a#r\n  f(b,\n    c)#1\n  d#r",
            // A function that was inlined. One without code is left alone.
            "def f():#\n a#r\n return b#1\ndef g():#\n a#\ndef h():#0\n a#\n b#0",
            "class C:#\n x#\n def k():#1\n  a#r\n  b#1\n y#",
        ] {
            let (mut counts, mut expected) = (BTreeMap::new(), BTreeSet::new());
            for (number, line) in (1u32..).zip(text.lines()) {
                match line.rsplit_once('#').map_or("", |(_, mark)| mark) {
                    "1" => {
                        counts.insert(number, 1);
                        expected.insert(number);
                    }
                    "0" => {
                        counts.insert(number, 0);
                    }
                    "r" => {
                        expected.insert(number);
                    }
                    _ => {}
                }
            }
            assert_eq!(ran(text, &counts), expected, "{text}");
        }
    }
}
