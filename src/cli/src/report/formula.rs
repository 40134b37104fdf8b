//! The results of test vectors, from the source text of their decision.
//!
//! llvm-cov takes the value of the condition that was evaluated last for the result. That is wrong if a group of conditions is negated:
//! `a && !(b || c)` is true if `c` is evaluated last and is false. The coverage mapping does not have the negation, but the source does:
//! between the conditions of a decision are only operators, parentheses, comments, and uses of macros.

use super::column_data::ColumnData;
use super::lines::Position;
use super::mcdc::{Condition, Decision, Vector};
use super::select::Select;
use super::source::{Finder, Source};
use std::collections::{BTreeMap, BTreeSet};

/// How the conditions of a decision are combined. The numbers are indices of its conditions.
#[derive(Debug, PartialEq, Eq)]
enum Formula {
    Condition(usize),
    Not(Box<Formula>),
    All(Vec<Formula>),
    Any(Vec<Formula>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Condition(usize),
    And,
    Or,
    Not,
    Open,
    Close,
}

/// The warning about decisions whose formula is not known.
pub const UNKNOWN: &str = "The source of decisions (MC/DC) is not available, or is in a macro, so the results of their test vectors are llvm-cov’s. They are wrong if a group of conditions is negated, such as `a && !(b || c)`: then pairs may be shown that are none.";

/// Deeper nesting is not read.
const MAX_DEPTH: usize = 200;

/// Computes the results of the vectors in selected files from the sources. Returns the decisions whose formula is not known, as
/// `file:line`: their results stay those of llvm-cov.
pub fn compute_results(
    columns: &mut [ColumnData],
    select: &Select,
    finder: &Finder,
) -> BTreeSet<String> {
    let mut sources: BTreeMap<String, Source> = BTreeMap::new();
    let mut unknown = BTreeSet::new();
    let functions = columns.iter_mut().flat_map(|column| &mut column.functions);
    for function in functions {
        for decision in &mut function.decisions {
            let path = &*function.files[decision.span.file];
            if !sources.contains_key(path) {
                sources.insert(path.to_owned(), finder.find(path));
            }
            let source = &sources[path];
            if !select.includes(path, &source.location) {
                continue;
            }
            let text = source.text.as_deref();
            let computed = text.and_then(|text| computed(text, decision));
            decision.is_computed = computed.is_some();
            match computed {
                Some(vectors) => decision.executed = vectors,
                None => drop(unknown.insert(format!("{path}:{}", decision.span.start.0))),
            }
        }
    }
    unknown
}

/// The executed vectors with the results that the formula has. `None`: the formula is not known, or it evaluates other conditions, so
/// the source is another one.
fn computed(source: &str, decision: &Decision) -> Option<BTreeSet<Vector>> {
    let formula = formula(source, decision)?;
    let vectors = decision.executed.iter().map(|vector| {
        let mut evaluated = vec![false; vector.conditions.len()];
        let result = formula.value(&vector.conditions, &mut evaluated)?;
        let expected = vector.conditions.iter().map(Option::is_some);
        evaluated.iter().copied().eq(expected).then(|| Vector {
            result,
            conditions: vector.conditions.clone(),
        })
    });
    vectors.collect()
}

impl Formula {
    /// The value as C computes it, which is known if all conditions have values that are evaluated.
    fn value(&self, conditions: &[Option<bool>], evaluated: &mut [bool]) -> Option<bool> {
        let mut first = |all: &[Formula], ending: bool| {
            for one in all {
                if one.value(conditions, evaluated)? == ending {
                    return Some(ending);
                }
            }
            Some(!ending)
        };
        match self {
            Formula::All(all) => first(all, false),
            Formula::Any(all) => first(all, true),
            Formula::Not(negated) => negated.value(conditions, evaluated).map(|value| !value),
            Formula::Condition(n) => {
                *evaluated.get_mut(*n)? = true;
                *conditions.get(*n)?
            }
        }
    }
}

fn formula(source: &str, decision: &Decision) -> Option<Formula> {
    let tokens = tokens(source, decision)?;
    let mut rest = &tokens[..];
    let formula = any(&mut rest, 0)?;
    let conditions = tokens
        .iter()
        .filter(|token| matches!(token, Token::Condition(_)));
    (rest.is_empty() && conditions.count() == decision.conditions.len()).then_some(formula)
}

/// The offset of a position in the text. `starts`: the offset of each line.
fn offset(starts: &[usize], (line, column): Position) -> Option<usize> {
    let start = starts.get((line as usize).checked_sub(1)?)?;
    Some(start + (column as usize).checked_sub(1)?)
}

fn tokens(source: &str, decision: &Decision) -> Option<Vec<Token>> {
    let breaks = source.match_indices('\n').map(|(at, _)| at + 1);
    let starts: Vec<usize> = std::iter::once(0).chain(breaks).collect();
    let span = decision.span;
    let (mut at, end) = (offset(&starts, span.start)?, offset(&starts, span.end)?);
    source.get(at..end)?;
    // The conditions in the file by their offsets, and those that are uses of macros.
    let mut here: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    let mut expanded = Vec::new();
    for (n, Condition { span: own, .. }) in decision.conditions.iter().enumerate() {
        if own.file != span.file {
            expanded.push(n);
            continue;
        }
        let (from, to) = (offset(&starts, own.start)?, offset(&starts, own.end)?);
        if from >= to || here.insert(from, (to, n)).is_some() {
            return None;
        }
    }
    let mut expanded = expanded.into_iter();
    let mut tokens = Vec::new();
    while at < end {
        if let Some((to, n)) = here.remove(&at) {
            tokens.push(Token::Condition(n));
            at = to;
            continue;
        }
        let rest = source.get(at..end)?;
        let word = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let word = &rest[..word.unwrap_or(rest.len())];
        let (token, length) = match (word, rest.as_bytes()[0]) {
            ("and", _) => (Some(Token::And), 3),
            ("or", _) => (Some(Token::Or), 2),
            ("not", _) => (Some(Token::Not), 3),
            ("", b'!') => (Some(Token::Not), 1),
            ("", b'(') => (Some(Token::Open), 1),
            ("", b')') => (Some(Token::Close), 1),
            ("", _) if rest.starts_with("&&") => (Some(Token::And), 2),
            ("", _) if rest.starts_with("||") => (Some(Token::Or), 2),
            ("", _) if rest.starts_with("//") => (None, rest.find('\n').unwrap_or(rest.len())),
            ("", _) if rest.starts_with("/*") => (None, rest.find("*/")? + 2),
            ("", b'\\' | b' ' | b'\t' | b'\r' | b'\n') => (None, 1),
            ("", _) => return None,
            // The use of a macro that is one condition.
            (name, _) => (
                Some(Token::Condition(expanded.next()?)),
                use_of(name, rest)?,
            ),
        };
        tokens.extend(token);
        at += length;
    }
    (at == end && here.is_empty() && expanded.next().is_none()).then_some(tokens)
}

/// The length of a macro's name with its arguments, if it has any.
fn use_of(name: &str, rest: &str) -> Option<usize> {
    let after = &rest[name.len()..];
    let arguments = after.trim_start();
    if !arguments.starts_with('(') {
        return Some(name.len());
    }
    let mut depth = 0;
    let end = arguments.find(|c| {
        depth += i64::from(c == '(') - i64::from(c == ')');
        depth == 0
    })?;
    // A parenthesis in a string or comment is not an argument’s.
    let is_plain = !arguments[..end].contains(['"', '\'']) && !arguments[..end].contains("/*");
    is_plain.then_some(rest.len() - arguments.len() + end + 1)
}

fn any(tokens: &mut &[Token], depth: usize) -> Option<Formula> {
    joined(tokens, Token::Or, Formula::Any, |tokens| {
        joined(tokens, Token::And, Formula::All, |tokens| {
            unary(tokens, depth)
        })
    })
}

/// One or several operands between operators of one kind.
fn joined(
    tokens: &mut &[Token],
    operator: Token,
    join: fn(Vec<Formula>) -> Formula,
    operand: impl Fn(&mut &[Token]) -> Option<Formula>,
) -> Option<Formula> {
    let mut all = vec![operand(tokens)?];
    while let Some((first, rest)) = tokens.split_first()
        && *first == operator
    {
        *tokens = rest;
        all.push(operand(tokens)?);
    }
    match all.len() {
        1 => all.pop(),
        _ => Some(join(all)),
    }
}

fn unary(tokens: &mut &[Token], depth: usize) -> Option<Formula> {
    let (first, rest) = tokens.split_first()?;
    *tokens = rest;
    if depth > MAX_DEPTH {
        return None;
    }
    match *first {
        Token::Condition(n) => Some(Formula::Condition(n)),
        Token::Not => unary(tokens, depth + 1).map(|own| Formula::Not(Box::new(own))),
        Token::Open => {
            let inner = any(tokens, depth + 1)?;
            let (last, rest) = tokens.split_first()?;
            *tokens = rest;
            (*last == Token::Close).then_some(inner)
        }
        Token::Close | Token::And | Token::Or => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::mcdc::Span;
    use super::*;

    /// A decision that is the complete text. The conditions are the words in lower case, with a `!` in front; names in capitals are
    /// macros.
    fn decision(text: &str, vectors: &[&str]) -> Decision {
        let position = |at: usize| {
            let line = text[..at].matches('\n').count();
            let start = text[..at].rfind('\n').map_or(0, |at| at + 1);
            (line as u32 + 1, (at - start) as u32 + 1)
        };
        let span = |file, from, to| Span {
            file,
            start: position(from),
            end: position(to),
        };
        let words = regex::Regex::new(r"!?\b[a-z]\b|\b[A-Z]+\b").unwrap();
        let conditions: Vec<Condition> = words
            .find_iter(text)
            .map(|word| Condition {
                span: span(
                    usize::from(word.as_str() > "A" && word.as_str() < "Z"),
                    word.start(),
                    word.end(),
                ),
                constant: false,
            })
            .collect();
        let vector = |text: &&str| Vector {
            // As llvm-cov determines it.
            result: text.trim_end_matches('-').ends_with('T'),
            conditions: text
                .chars()
                .map(|c| (c != '-').then_some(c == 'T'))
                .collect(),
        };
        Decision {
            span: span(0, 0, text.len()),
            conditions,
            executed: vectors.iter().map(vector).collect(),
            is_computed: false,
        }
    }

    /// The result of each vector.
    fn results(text: &str, vectors: &[&str]) -> Option<String> {
        let of = |vector: &&str| {
            let found = computed(text, &decision(text, &[vector]))?;
            let result = found.first()?.result;
            Some(if result { 'T' } else { 'F' })
        };
        vectors.iter().map(of).collect()
    }

    #[test]
    fn negated_groups_have_the_results_of_the_source() {
        for (text, vectors, expected) in [
            ("a && b", &["F-", "TF", "TT"][..], "FFT"),
            ("a && !(b || c)", &["F--", "TFF", "TFT", "TT-"], "FTFF"),
            (
                "!(a && b) && c",
                &["F-F", "F-T", "TFF", "TFT", "TT-"],
                "FTFTF",
            ),
            ("!(a && b && c)", &["F--", "TTF", "TTT"], "TTF"),
            ("!(a || b) || c", &["FF-", "FTF", "FTT", "T-F"], "TFTF"),
            ("a && !(!(b || c))", &["F--", "TFF", "TFT", "TT-"], "FFTT"),
            // A negation that is part of the condition has been applied.
            ("!a && (!b || !c)", &["F--", "TFF", "TFT", "TT-"], "FFTT"),
            ("a and not(b or c)", &["F--", "TFF", "TT-"], "FTF"),
            (
                "a // && (\n && /* ! ( */ (b\n\t|| !(c))",
                &["F--", "TFF", "TFT"],
                "FTF",
            ),
            ("a || b && c", &["FF-", "FTF", "FTT", "T--"], "FFTT"),
            (
                "a && IS(1, (2)) && b",
                &["F--", "TF-", "TTT", "TTF"],
                "FFTF",
            ),
            ("!(a || ODD) && b", &["FT-", "FFT", "FFF", "T--"], "FTFF"),
        ] {
            assert_eq!(results(text, vectors).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_sources_have_no_formula() {
        for (text, vectors) in [
            // Other conditions are evaluated.
            ("a || b", &["F-"][..]),
            ("a && b", &["FT"]),
            ("a & b", &["F-"]),
            ("a && (b", &["F-"]),
            ("a && b)", &["F-"]),
            ("a b", &["F-"]),
            ("&& a", &["T"]),
            ("a && CALL(\")\") && b", &["F--"]),
            ("a && é", &["F"]),
        ] {
            assert_eq!(results(text, vectors), None, "{text}");
        }
        // A macro with two conditions.
        let mut two = decision("a && M", &["F--"]);
        two.conditions.push(two.conditions[1].clone());
        assert_eq!(computed("a && M", &two), None);
        // Two conditions at one position: the argument of a macro.
        let mut same = decision("a", &["F-"]);
        same.conditions.push(same.conditions[0].clone());
        assert_eq!(computed("a", &same), None);
        let deep = format!("{}a{}", "(".repeat(100_000), ")".repeat(100_000));
        assert_eq!(computed(&deep, &decision(&deep, &["T"])), None);
        for (start, end) in [
            ((0, 0), (1, 2)),
            ((7, 1), (7, 2)),
            ((1, 1), (1, 99)),
            ((1, 3), (1, 1)),
        ] {
            let mut outside = decision("a && b", &["F-"]);
            (outside.span.start, outside.span.end) = (start, end);
            assert_eq!(computed("a && b", &outside), None);
        }
    }
}
