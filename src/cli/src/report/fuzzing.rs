//! The fuzz targets of the report: names from a hostile binary and profile in its formats, and coverage mappings.

use super::column_data::ColumnData;
use super::counts::Which;
use super::lines::{Kind, Position, Region};
use super::llvm_cov::{Branch, Function, Variant};
use super::mapping::{self, Mapping};
use super::mcdc::{Condition, Decision, Span, Vector};
use super::model::Report;
use super::select::Select;
use super::source::Source;
use super::{build, lcov, markdown};
use crate::names::{self, Naming};
use std::collections::BTreeSet;

/// A decision of two conditions.
fn decision(start: Position, end: Position, executed: bool) -> Decision {
    let span = Span {
        file: 0,
        start,
        end,
    };
    let condition = Condition {
        span,
        constant: false,
    };
    let vector = |value| Vector {
        result: value,
        conditions: vec![Some(value), value.then_some(true)],
    };
    let vectors = [false, true].map(vector);
    Decision {
        span,
        conditions: vec![condition.clone(), condition],
        executed: vectors.into_iter().filter(|_| executed).collect(),
        is_computed: executed,
    }
}

/// A report with functions whose names and files are in `bytes`, in pairs, separated by zeros.
fn report(bytes: &[u8]) -> Report {
    let text = String::from_utf8_lossy(bytes);
    let texts: Vec<&str> = text.split('\0').take(128).collect();
    let function = |(n, pair): (usize, &[&str])| {
        let (name, path) = (pair[0], pair.last().copied().unwrap_or_default());
        let (line, count) = (n as u32 / 2 + 1, name.len() as u64);
        let (start, end) = ((line, 1), (line + 2, 9));
        let region = Region {
            start,
            end,
            kind: Kind::Code,
            count,
        };
        let branch = Branch {
            start,
            end,
            taken: path.len() as u64,
            not_taken: n as u64,
        };
        Function {
            name: name.to_owned(),
            mapping: Mapping {
                hash: 1,
                unused: false,
            },
            files: vec![path.into()],
            regions: vec![(0, region)],
            branches: vec![(0, branch)],
            decisions: vec![decision(start, end, path.len() % 2 == 0)],
            count,
            variant: Variant::default(),
            mismatched: false,
            build_ids: BTreeSet::new(),
        }
    };
    let functions: Vec<Function> = texts.chunks(2).enumerate().map(function).collect();
    let kernels = functions.iter().step_by(2);
    let column = ColumnData {
        name: "gfx1100".into(),
        ran: true,
        objects: 1,
        kernels: kernels.map(|kernel| kernel.name.clone()).collect(),
        functions,
        ..ColumnData::default()
    };
    let source = |path: &str| Source {
        location: path.to_owned(),
        ..Source::default()
    };
    let title = texts.first().copied().unwrap_or_default();
    let naming = Naming::default();
    let contents = build::Contents {
        columns: vec![column],
        traces: Vec::new(),
        attribution: None,
        census: None,
    };
    let report = build::report(title, &contents, naming, &Select::default(), None, source);
    let _ = names::refused();
    report
}

/// Each line has a record.
pub fn lcov(bytes: &[u8]) {
    let mut written = Vec::new();
    // Writing to memory does not fail.
    let _ = lcov::write(&report(bytes), Which::All, &mut written);
    let text = String::from_utf8_lossy(&written);
    assert!(!text.contains('\r'));
    for line in text.lines() {
        let records = [
            "TN:", "SF:", "FN:", "FNDA:", "FNF:", "FNH:", "BRDA:", "BRF:", "BRH:", "MCDC:", "MCF:",
            "MCH:", "DA:", "LF:", "LH:",
        ];
        let is_record = records.iter().any(|record| line.starts_with(record));
        assert!(is_record || line == "end_of_record", "{line:?}");
    }
}

/// Names do not become markup.
pub fn markdown(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = markdown::report(&report(bytes), &[text.clone().into_owned()]);
    let plain = markdown::plain(&text);
    let mut rest = plain.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => assert!(rest.next().is_some_and(|c| c.is_ascii_punctuation())),
            '`' => {
                assert_ne!(rest.peek(), Some(&'`'), "{plain:?}");
                assert!(rest.any(|c| c == '`'), "{plain:?}");
                assert_ne!(rest.peek(), Some(&'`'), "{plain:?}");
            }
            c => assert!(!"*_<>[]#|\n\r".contains(c), "{plain:?}"),
        }
    }
    let code = markdown::code(&text);
    let inside = code
        .strip_prefix('`')
        .and_then(|code| code.strip_suffix('`'));
    assert!(inside.is_some_and(|inside| !inside.contains(['`', '\n', '\r'])));
}

/// The sections of a code object. If the first byte is 0, the other bytes are the section `__llvm_covfun`.
pub fn mapping(bytes: &[u8]) {
    if let [0, section @ ..] = bytes {
        let mut found = std::collections::HashMap::new();
        let _ = mapping::read(section, &mut found);
        assert!(found.len() <= section.len());
    } else {
        let _ = mapping::functions(bytes);
        let _ = mapping::names(bytes);
    }
}
