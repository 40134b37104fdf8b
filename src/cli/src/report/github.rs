//! Annotations for GitHub Actions: a workflow command per function that never ran, and per group of lines that did not
//! run in functions that did. The largest are first, because GitHub shows only the first ten of a step.

use super::counts::{Counted, CountedFunction, Counts, Which};
use super::model::Report;
use super::paths;
use crate::readable::plural;
use std::fmt::Write as _;

struct Annotation {
    path: String,
    lines: (u32, u32),
    title: &'static str,
    message: String,
}

/// The annotations. `failures` are messages about thresholds.
pub fn report(report: &Report, failures: &[String]) -> String {
    let root = paths::root(report);
    let mut annotations = Vec::new();
    for (file, counts) in Counts::of_files(report, Which::All) {
        let path = paths::below(&root, file.location());
        annotations.extend(of_file(path, &counts));
    }
    annotations.sort_by_key(|one| {
        let length = one.lines.1 - one.lines.0;
        (std::cmp::Reverse(length), one.path.clone(), one.lines)
    });
    let mut text = String::new();
    for failure in failures {
        let _ = writeln!(text, "::error title=Coverage::{}", data(failure));
    }
    for one in annotations {
        let (first, last) = one.lines;
        let _ = writeln!(
            text,
            "::warning file={},line={first},endLine={last},title={}::{}",
            property(&one.path),
            one.title,
            data(&one.message)
        );
    }
    text
}

fn of_file(path: &str, counts: &Counts) -> Vec<Annotation> {
    let mut annotations = Vec::new();
    let mut run: Vec<&Counted> = Vec::new();
    let starts = |line: u32| counts.functions.iter().find(|own| own.line == line);
    let mut end = |run: &mut Vec<&Counted>| {
        if let (Some(first), Some(last)) = (run.first(), run.last()) {
            let lines = (first.number, last.number);
            annotations.push(annotation(path, lines, run.len(), starts(first.number)));
        }
        run.clear();
    };
    for line in &counts.lines {
        // Functions that follow each other have annotations of their own.
        if line.count > 0 || starts(line.number).is_some() {
            end(&mut run);
        }
        if line.count == 0 {
            run.push(line);
        }
    }
    end(&mut run);
    annotations
}

fn annotation(
    path: &str,
    lines: (u32, u32),
    number: usize,
    function: Option<&CountedFunction>,
) -> Annotation {
    let verb = if number == 1 { "was" } else { "were" };
    let mut annotation = Annotation {
        path: path.to_owned(),
        lines,
        title: "Lines not executed",
        message: format!("{} {verb} not executed", plural(number, "line")),
    };
    if let Some(function) = function.filter(|function| function.count == 0) {
        annotation.title = "Function never ran";
        annotation.message = format!("{} never ran", function.name);
    }
    annotation
}

/// A message, escaped as workflow commands require.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// A property, in which the separators are escaped as well.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_are_escaped() {
        assert_eq!(data("100 %\nof a:b"), "100 %25%0Aof a:b");
        assert_eq!(property("a:b,c"), "a%3Ab%2Cc");
    }

    #[test]
    fn lines_that_did_not_run_are_grouped_by_function() {
        // Lines 3 and 7 have no code.
        let ran = [(1, 5), (5, 5)];
        let not_executed = [2, 4, 6, 8, 9, 10, 11].map(|number| (number, 0));
        let mut lines = [&ran[..], &not_executed].concat();
        lines.sort();
        let line = |(number, count)| Counted {
            number,
            count,
            conditions: Vec::new(),
            decisions: Vec::new(),
        };
        let function = |line, count| CountedFunction {
            line,
            symbol: "f".to_owned(),
            name: "f",
            count,
        };
        let counts = Counts {
            lines: lines.into_iter().map(line).collect(),
            functions: vec![function(1, 5), function(8, 0), function(10, 0)],
        };
        let expected = [
            ((2, 4), "2 lines were not executed"),
            ((6, 6), "1 line was not executed"),
            ((8, 9), "f never ran"),
            ((10, 11), "f never ran"),
        ];
        let found = of_file("a.hip", &counts);
        let found: Vec<_> = found.iter().map(|one| (one.lines, &*one.message)).collect();
        assert_eq!(found, expected);
    }
}
