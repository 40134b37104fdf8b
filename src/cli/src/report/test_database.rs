//! The database of which test ran which lines, an SQLite file. `docs/tests.md` describes its tables.

use super::attribution::{Attribution, Location};
use crate::{git, names, outfile};
use anyhow::{Context, bail};
use rusqlite::{Connection, OpenFlags, Transaction, params};
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

/// The name of the database in the directory of `devprof cover`.
pub const DATABASE: &str = "tests.db";
/// The version of the tables. Incremented with every incompatible change.
pub const FORMAT: &str = "1";

pub const SCHEMA: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE test (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE file (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, blob TEXT);
CREATE TABLE code (file INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL);
CREATE TABLE function (id INTEGER PRIMARY KEY, file INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    name TEXT NOT NULL, symbol TEXT NOT NULL, is_kernel INTEGER NOT NULL);
CREATE TABLE function_build (function INTEGER NOT NULL, build_id TEXT NOT NULL);
CREATE TABLE test_line (test INTEGER NOT NULL, file INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL);
CREATE TABLE test_function (test INTEGER NOT NULL, function INTEGER NOT NULL);
";

/// They are made at the end, because that is faster.
const INDICES: &str = "
CREATE INDEX code_file ON code (file);
CREATE INDEX function_file ON function (file);
CREATE INDEX test_line_file ON test_line (file);
CREATE INDEX test_line_test ON test_line (test);
CREATE INDEX test_function_function ON test_function (function);
CREATE INDEX test_function_test ON test_function (test);
";

type Locations = BTreeMap<Arc<str>, Location>;

/// The database of a run.
pub struct Output<'a> {
    pub path: &'a Path,
    /// Tests that the runner has listed. Some of them may not have run device code.
    pub listed: &'a [String],
    /// Whether no counts were lost.
    pub is_complete: bool,
}

/// Writes the database.
///
/// # Errors
/// The file cannot be written.
pub fn write(
    output: &Output,
    attribution: &Attribution,
    locations: &Locations,
) -> anyhow::Result<()> {
    let failed = || format!("cannot write {}", output.path.display());
    let temporary = outfile::create_temporary(output.path).with_context(failed)?;
    let mut database = Connection::open(temporary.path()).with_context(failed)?;
    // The file is renamed when it is complete.
    let fast = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;";
    database.execute_batch(fast).with_context(failed)?;
    let transaction = database.transaction().with_context(failed)?;
    fill(&transaction, output, attribution, locations).with_context(failed)?;
    transaction.commit().with_context(failed)?;
    database
        .close()
        .map_err(|(_, error)| error)
        .with_context(failed)?;
    outfile::commit(temporary, output.path).with_context(failed)
}

fn fill(
    to: &Transaction,
    output: &Output,
    attribution: &Attribution,
    locations: &Locations,
) -> anyhow::Result<()> {
    to.execute_batch(SCHEMA)?;
    // Without a git tree, or a commit in it, the database has none, and `devprof affected` prints all tests.
    let top = git::top(Path::new(".")).ok();
    let commit = top.as_deref().and_then(|top| git::commit(top, "HEAD").ok());
    let is_complete = output.is_complete && attribution.lost.is_empty();
    for (key, value) in [
        ("format", Some(FORMAT.to_owned())),
        ("devprof", Some(env!("CARGO_PKG_VERSION").to_owned())),
        ("complete", Some(u8::from(is_complete).to_string())),
        ("commit", commit),
    ] {
        if let Some(value) = value {
            to.execute("INSERT INTO meta VALUES (?1, ?2)", [key, &value])?;
        }
    }
    let files = files(to, locations, top.as_deref())?;
    let mut insert_code = to.prepare("INSERT INTO code VALUES (?1, ?2, ?3)")?;
    for (path, lines) in &attribution.code {
        for (first, last) in lines {
            insert_code.execute(params![files[path], first, last])?;
        }
    }
    let mut insert_function =
        to.prepare("INSERT INTO function VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    let mut insert_build = to.prepare("INSERT INTO function_build VALUES (?1, ?2)")?;
    for (function, id) in attribution.functions.iter().zip(0i64..) {
        let symbol = names::symbol(&function.name);
        insert_function.execute(params![
            id,
            files[&function.path],
            function.first,
            function.last,
            names::demangled(symbol),
            symbol,
            function.is_kernel
        ])?;
        for build_id in &function.build_ids {
            insert_build.execute(params![id, build_id])?;
        }
    }
    let mut insert_test = to.prepare("INSERT INTO test VALUES (?1, ?2)")?;
    let mut insert_line = to.prepare("INSERT INTO test_line VALUES (?1, ?2, ?3, ?4)")?;
    let mut insert_ran = to.prepare("INSERT INTO test_function VALUES (?1, ?2)")?;
    let listed = output.listed.iter().map(|name| (name, None));
    let mut tests: BTreeMap<&String, _> = listed.collect();
    tests.extend(
        attribution
            .tests
            .iter()
            .map(|(name, ran)| (name, Some(ran))),
    );
    for ((name, ran), id) in tests.into_iter().zip(0i64..) {
        insert_test.execute(params![id, name])?;
        let Some(ran) = ran else { continue };
        for (path, lines) in &ran.lines {
            for (first, last) in lines {
                insert_line.execute(params![id, files[path], first, last])?;
            }
        }
        for function in &ran.functions {
            insert_ran.execute(params![id, *function as i64])?;
        }
    }
    to.execute_batch(INDICES)?;
    Ok(())
}

/// Adds the files, whose paths are relative to the git tree's directory if they are in it. Returns their ids.
fn files(
    to: &Transaction,
    locations: &Locations,
    top: Option<&Path>,
) -> anyhow::Result<HashMap<Arc<str>, i64>> {
    // Several paths may be of one file.
    let mut found: BTreeMap<String, Vec<&Arc<str>>> = BTreeMap::new();
    for (path, Location { file, .. }) in locations {
        let in_tree = top.and_then(|top| file.strip_prefix(top).ok());
        let name = in_tree.unwrap_or(file).to_string_lossy().into_owned();
        found.entry(name).or_default().push(path);
    }
    let blobs = match top {
        Some(top) => blobs(top, found.keys())?,
        None => HashMap::new(),
    };
    let mut insert = to.prepare("INSERT INTO file VALUES (?1, ?2, ?3)")?;
    let mut ids = HashMap::new();
    for ((name, paths), id) in found.into_iter().zip(0i64..) {
        insert.execute(params![id, name, blobs.get(&name)])?;
        ids.extend(paths.into_iter().map(|path| (path.clone(), id)));
    }
    Ok(ids)
}

/// The names that git gives the contents of the files in its tree.
fn blobs<'a>(
    top: &Path,
    names: impl Iterator<Item = &'a String>,
) -> anyhow::Result<HashMap<String, String>> {
    let is_in_tree = |name: &&String| {
        let is_line = !name.contains('\n') && !name.starts_with('"');
        is_line && !name.starts_with('/') && top.join(name).is_file()
    };
    let names: Vec<&String> = names.filter(is_in_tree).collect();
    let mut command = git::command();
    command
        .args(["hash-object", "--no-filters", "--stdin-paths"])
        .current_dir(top);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start git")?;
    let mut input = child.stdin.take().context("git has no input")?;
    let list: String = names.iter().map(|name| format!("{name}\n")).collect();
    // git reads all of it before it writes more than a pipe holds.
    let writer = std::thread::spawn(move || input.write_all(list.as_bytes()));
    let output = child.wait_with_output().context("cannot run git")?;
    let written = writer.join().is_ok_and(|written| written.is_ok());
    let ids: Vec<&str> = std::str::from_utf8(&output.stdout)?.lines().collect();
    if !output.status.success() || !written || ids.len() != names.len() {
        bail!("git hash-object failed");
    }
    let ids = ids.into_iter().map(str::to_owned);
    Ok(names.into_iter().cloned().zip(ids).collect())
}

/// Opens a database of this version.
///
/// # Errors
/// The file cannot be read, or is another file.
pub fn open(path: &Path) -> anyhow::Result<Connection> {
    let failed = || {
        format!(
            "cannot read {}: `devprof cover --per-test` writes it",
            path.display()
        )
    };
    let database = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
    let database = database.with_context(failed)?;
    let format = meta(&database, "format").with_context(failed)?;
    if format.as_deref() != Some(FORMAT) {
        bail!(
            "{} has format {}, this devprof reads format {FORMAT}: run `devprof cover --per-test` again",
            path.display(),
            format.as_deref().unwrap_or("?")
        );
    }
    Ok(database)
}

/// A value of the table `meta`.
pub fn meta(database: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    let mut rows = database.prepare("SELECT value FROM meta WHERE key = ?1")?;
    let mut found = rows.query_map([key], |row| row.get(0))?;
    found.next().transpose()
}
