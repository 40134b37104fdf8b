//! The database of coverage.py, an SQLite file, so that `coverage combine` adds the lines of kernels to those of the host.
//!
//! Source: `doc/dbschema.rst` of coverage.py, version 7 of the schema, and `numbits.py`.

use super::counts::{Counts, Which};
use super::model::Report;
use super::python;
use rusqlite::{Connection, Result, params};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, absolute};

/// The beginning of the names of databases. `coverage combine` takes `.coverage.*`.
pub const NAME: &str = ".coverage";
/// The names of the files in the directory of a report.
pub const FILE_NAME: &str = ".coverage.devprof";
pub const BRANCH_FILE_NAME: &str = ".coverage.devprof-branch";

const SCHEMA: &str = "
CREATE TABLE coverage_schema (version INTEGER);
CREATE TABLE meta (key TEXT UNIQUE, value TEXT);
CREATE TABLE file (id INTEGER PRIMARY KEY, path TEXT UNIQUE);
CREATE TABLE context (id INTEGER PRIMARY KEY, context TEXT UNIQUE);
CREATE TABLE line_bits (file_id INTEGER, context_id INTEGER, numbits BLOB, UNIQUE (file_id, context_id));
CREATE TABLE arc (file_id INTEGER, context_id INTEGER, fromno INTEGER, tono INTEGER,
    UNIQUE (file_id, context_id, fromno, tono));
CREATE TABLE tracer (file_id INTEGER PRIMARY KEY, tracer TEXT);
INSERT INTO coverage_schema VALUES (7);
INSERT INTO context VALUES (1, '');
";

/// How coverage.py measured the host. It combines only data of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The lines that ran.
    Lines,
    /// With `--branch`: pairs of lines that ran one after the other. Of a kernel, only those are known that follow from the lines.
    Branches,
}

/// Whether a path names a database of coverage.py.
pub fn is_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let rest = name.and_then(|name| name.strip_prefix(NAME));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The database with the files of Python whose source was found.
///
/// # Errors
/// There are none, or the database cannot be written to a temporary file.
pub fn database(report: &Report, kind: Kind) -> io::Result<Vec<u8>> {
    let files = files(report)?;
    if files.is_empty() {
        return Err(io::Error::other(
            "the report has no Python source that can be read (--sources-from names further directories)",
        ));
    }
    let file = tempfile::NamedTempFile::new()?;
    write(file.path(), &files, kind).map_err(io::Error::other)?;
    std::fs::read(file.path())
}

/// The lines that ran, by the absolute path of the file.
fn files(report: &Report) -> io::Result<BTreeMap<String, BTreeSet<u32>>> {
    let mut files = BTreeMap::new();
    for (file, counts) in Counts::of_files(report, Which::All) {
        let path = Path::new(file.location());
        let is_python = path.extension().is_some_and(|extension| extension == "py");
        let Some(text) = file.source.text.as_deref().filter(|_| is_python) else {
            continue;
        };
        let counts = counts.lines.iter().map(|line| (line.number, line.count));
        let path = absolute(path)?.to_string_lossy().into_owned();
        files.insert(path, python::ran(text, &counts.collect()));
    }
    Ok(files)
}

fn write(path: &Path, files: &BTreeMap<String, BTreeSet<u32>>, kind: Kind) -> Result<()> {
    let mut database = Connection::open(path)?;
    let transaction = database.transaction()?;
    transaction.execute_batch(SCHEMA)?;
    let meta = "INSERT INTO meta VALUES (?1, ?2)";
    let has_arcs = if kind == Kind::Branches { "1" } else { "0" };
    transaction.execute(meta, ["has_arcs", has_arcs])?;
    transaction.execute(
        meta,
        ["version", concat!("devprof ", env!("CARGO_PKG_VERSION"))],
    )?;
    for (id, (path, lines)) in (1..).zip(files) {
        let id: i64 = id;
        transaction.execute("INSERT INTO file VALUES (?1, ?2)", params![id, path])?;
        match kind {
            Kind::Lines => {
                let sql = "INSERT INTO line_bits VALUES (?1, 1, ?2)";
                transaction.execute(sql, params![id, bits(lines)])?;
            }
            Kind::Branches => {
                // -1: the start of a function.
                let mut from = -1;
                for &line in lines {
                    let sql = "INSERT INTO arc VALUES (?1, 1, ?2, ?3)";
                    transaction.execute(sql, params![id, from, line])?;
                    from = i64::from(line);
                }
            }
        }
    }
    transaction.commit()
}

/// A set of numbers, one bit each.
fn bits(numbers: &BTreeSet<u32>) -> Vec<u8> {
    let size = numbers.last().map_or(0, |last| *last as usize / 8 + 1);
    let mut bits = vec![0; size];
    for number in numbers {
        bits[*number as usize / 8] |= 1 << (number % 8);
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_bits() {
        assert_eq!(bits(&BTreeSet::from([1, 8, 17])), [2, 1, 2]);
        assert!(bits(&BTreeSet::new()).is_empty());
    }

    #[test]
    fn databases_are_known_by_their_names() {
        for (name, expected) in [
            (".coverage", true),
            ("a/.coverage.devprof", true),
            (".coveragerc", false),
            ("coverage.xml", false),
        ] {
            assert_eq!(is_name(Path::new(name)), expected, "{name}");
        }
    }
}
