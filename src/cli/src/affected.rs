//! `devprof affected`: the tests that a change can affect, from the database of `devprof cover --per-test`.
//!
//! A test is left out only if it certainly did not run what was changed. Everything else leads to all tests, with the reason.

use crate::console::Console;
use crate::exit::Outcome;
use crate::git;
use crate::readable::plural;
use crate::report::diff::hunk;
use crate::report::test_database::{self, DATABASE};
use anyhow::Context;
use clap::{Args, ValueEnum};
use glob::Pattern;
use rusqlite::{Connection, params};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Options {
    /// Print the tests that the changes since this commit affect, in the working tree
    #[arg(long, value_name = "REV")]
    since: String,
    /// The database of `devprof cover --per-test`
    #[arg(long, value_name = "FILE", default_value_os_t = Path::new("devprof-cover").join(DATABASE))]
    db: PathBuf,
    /// Changes in these files affect no test, for example '*.md' or 'docs/*'; can be repeated
    ///
    /// A path relative to the git tree's directory. * also matches slashes.
    #[arg(long, value_name = "GLOB", value_parser = Pattern::new)]
    ignore: Vec<Pattern>,
    /// How to print the tests
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A name per line; if all tests are affected, those of the database
    #[default]
    Names,
    /// An option for GoogleTest
    Gtest,
    /// The regular expression for ctest -R
    Ctest,
    /// The test specification for Catch2
    Catch2,
}

/// Which tests a change affects.
#[derive(Debug, Default, PartialEq, Eq)]
struct Affected {
    tests: BTreeSet<String>,
    /// Why all tests are affected. Empty if only `tests` are.
    all_because: Vec<String>,
    /// Changed lines that no test ran.
    not_run: Vec<String>,
    /// How many files are different in the commit that the tests ran and in the one of the change.
    other_files: usize,
}

/// How many reasons for all tests are printed.
const MAX_REASONS: usize = 10;

/// Of `git diff`: the start and the number of the lines before and after.
#[derive(Debug, Default, PartialEq, Eq)]
struct Hunk {
    before: (u32, u32),
    after: (u32, u32),
    removed: Vec<String>,
    added: Vec<String>,
}

pub fn run(options: &Options, console: &mut Console) -> anyhow::Result<Outcome> {
    let database = test_database::open(&options.db)?;
    let mut affected = affected(Path::new("."), &database, options)?;
    let all = all_tests(&database)?;
    let is_ctest = options.format == Format::Ctest;
    if is_ctest && affected.all_because.is_empty() && !fits_ctest(&affected.tests) {
        affected.all_because.push(format!(
            "ctest -R cannot read an expression for {}; ctest --tests-from-file reads their names",
            plural(affected.tests.len(), "test")
        ));
    }
    for reason in affected.all_because.iter().take(MAX_REASONS) {
        console.warn(format!("all tests are affected: {reason}"));
    }
    if let Some(more @ 1..) = affected.all_because.len().checked_sub(MAX_REASONS) {
        let reasons = plural(more, "other reason");
        console.warn(format!("all tests are affected: {reasons}"));
    }
    if affected.all_because.is_empty() {
        for lines in &affected.not_run {
            console.warn(format!("no test ran {lines}"));
        }
        if affected.other_files > 0 {
            console.warn(format!(
                "the tests ran another commit than {}, with differences in {}: a test that runs a changed line only since then is missing",
                options.since,
                plural(affected.other_files, "file")
            ));
        }
    }
    let text = options.format.text(&affected, &all);
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(Outcome::Complete)
}

impl Format {
    fn text(self, affected: &Affected, all: &BTreeSet<String>) -> String {
        let is_all = !affected.all_because.is_empty();
        let tests = if is_all { all } else { &affected.tests };
        let joined = |separator: &str, escaped: &dyn Fn(&String) -> String| {
            let names: Vec<String> = tests.iter().map(escaped).collect();
            names.join(separator)
        };
        match self {
            Format::Names => tests.iter().map(|name| format!("{name}\n")).collect(),
            // Also tests that the database does not have.
            Format::Gtest if is_all => "--gtest_filter=*\n".to_owned(),
            Format::Gtest if tests.is_empty() => "--gtest_filter=-*\n".to_owned(),
            Format::Gtest => format!("--gtest_filter={}\n", joined(":", &String::clone)),
            Format::Ctest if is_all => ".\n".to_owned(),
            Format::Ctest if tests.is_empty() => "^$\n".to_owned(),
            Format::Ctest => format!("^({})$\n", joined("|", &|name| regex::escape(name))),
            Format::Catch2 if is_all => "*\n".to_owned(),
            Format::Catch2 if tests.is_empty() => "~*\n".to_owned(),
            Format::Catch2 => {
                let escaped = |name: &String| {
                    let special = |c: char| if "\\,[]*\"".contains(c) { "\\" } else { "" };
                    name.chars().map(|c| format!("{}{c}", special(c))).collect()
                };
                format!("{}\n", joined(",", &escaped))
            }
        }
    }
}

/// Whether ctest can compile the regular expression for tests. A longer one selects no test, and ctest succeeds.
fn fits_ctest(tests: &BTreeSet<String>) -> bool {
    // CMake's regular expressions are programs (kwsys, RegularExpression.cxx): 7 bytes for each name, and 4 for each escape. Their limit
    // was 32,767 bytes, and is 65,535 in CMake 4.
    let size = |name: &String| {
        let escapes = regex::escape(name).len() - name.len();
        name.len() + 7 + 4 * escapes
    };
    tests.iter().map(size).sum::<usize>() < 32_000
}

fn all_tests(database: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    let mut query = database.prepare("SELECT name FROM test WHERE name <> ''")?;
    query.query_map([], |row| row.get(0))?.collect()
}

/// # Errors
/// There is no such commit, or git or the database cannot be read.
fn affected(dir: &Path, database: &Connection, options: &Options) -> anyhow::Result<Affected> {
    let top = git::top(dir).context("`devprof affected` needs a git tree")?;
    let since =
        git::commit(&top, &options.since).with_context(|| format!("--since {}", options.since))?;
    let mut affected = Affected::default();
    let recorded = test_database::meta(database, "commit")?;
    let recorded = match recorded {
        _ if test_database::meta(database, "complete")?.as_deref() != Some("1") => {
            Err("counts were lost when the tests ran, so it is not known what they ran".to_owned())
        }
        None => Err("the tests did not run in a git tree with a commit".to_owned()),
        Some(commit) => git::commit(&top, &commit)
            .map_err(|_| format!("the commit of the tests, {commit}, is not in this repository")),
    };
    let recorded = match recorded {
        Ok(recorded) => recorded,
        Err(reason) => {
            affected.all_because.push(reason);
            return Ok(affected);
        }
    };
    let database = Database {
        database,
        top: &top,
        recorded,
    };
    let is_ignored = |path: &String| options.ignore.iter().any(|pattern| pattern.matches(path));
    let mut changed = changed_files(&top, &[&since])?;
    changed.extend(untracked_files(&top)?);
    changed.retain(|path, _| !is_ignored(path));
    if !changed.is_empty() {
        let mut others = changed_files(&top, &[&database.recorded, &since])?;
        others.retain(|path, _| !is_ignored(path));
        affected.other_files = others.len();
    }
    for (path, is_modified) in changed {
        let result = match is_modified {
            true => database.changed_lines(&path, &since, &mut affected)?,
            false => Err("is new, removed, or of another kind".to_owned()),
        };
        if let Err(reason) = result {
            affected.all_because.push(format!("{path} {reason}"));
        }
    }
    if affected.tests.remove("") {
        let reason = "code that was changed ran outside of tests";
        affected.all_because.push(reason.to_owned());
    }
    Ok(affected)
}

/// The files that differ between two commits, or from one, and whether only their contents do.
fn changed_files(top: &Path, commits: &[&str]) -> anyhow::Result<BTreeMap<String, bool>> {
    // A submodule's commit is a change.
    let options = ["diff", "--no-renames", "--ignore-submodules=dirty"];
    let names = ["--name-status", "-z"];
    let listed = git::run(top, &[&options[..], &names, commits, &["--"]].concat())?;
    let mut fields = listed.split(|byte| *byte == 0);
    let mut files = BTreeMap::new();
    while let (Some(status @ [_, ..]), Some(path)) = (fields.next(), fields.next()) {
        files.insert(String::from_utf8_lossy(path).into_owned(), status == b"M");
    }
    Ok(files)
}

/// The files that git neither has nor ignores. More than their contents is changed.
fn untracked_files(top: &Path) -> anyhow::Result<Vec<(String, bool)>> {
    let others = ["ls-files", "--others", "--exclude-standard", "-z"];
    let others = git::run(top, &others)?;
    let others = others
        .split(|byte| *byte == 0)
        .filter(|path| !path.is_empty());
    let others = others.map(|path| (String::from_utf8_lossy(path).into_owned(), false));
    Ok(others.collect())
}

struct Database<'a> {
    database: &'a Connection,
    /// The git tree.
    top: &'a Path,
    /// The commit that the tests ran.
    recorded: String,
}

impl Database<'_> {
    /// Adds the tests that the changed lines of a file affect. `Err`: why all tests are.
    fn changed_lines(
        &self,
        path: &str,
        since: &str,
        affected: &mut Affected,
    ) -> anyhow::Result<Result<(), String>> {
        let mut query = self
            .database
            .prepare("SELECT id, blob FROM file WHERE path = ?1")?;
        let mut rows = query.query_map([path], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let Some((file, blob)): Option<(i64, Option<String>)> = rows.next().transpose()? else {
            return Ok(Err("is not in the database".to_owned()));
        };
        let name = format!("{}:{path}", self.recorded);
        let recorded = git::run(self.top, &["rev-parse", "--verify", &name]).ok();
        let recorded = recorded.map(|id| String::from_utf8_lossy(&id).trim().to_owned());
        if recorded.is_none() || recorded != blob {
            return Ok(Err(
                "was different from its commit when the tests ran".to_owned()
            ));
        }
        let text = git::run(self.top, &["show", &name])?;
        let text = String::from_utf8_lossy(&text);
        let text: Vec<&str> = text.lines().collect();
        let earlier = self.hunks(&[&self.recorded, since], path)?;
        let hunks = self.hunks(&[since], path)?;
        if hunks.is_empty() {
            return Ok(Err("was changed, but not its lines".to_owned()));
        }
        for hunk in hunks {
            let (first, last) = hunk.lines_before();
            let lines = recorded_lines(&earlier, first, last);
            if hunk.has_directive() || continues(&text, lines.0) {
                return Ok(Err(format!("has a changed directive at line {}", lines.0)));
            }
            if self.changes_head(file, &hunk, lines, &text)? {
                let line = lines.0;
                return Ok(Err(format!("has a changed function head at line {line}")));
            }
            let tests = match self.tests(file, lines, &text)? {
                Ok(tests) => tests,
                Err(reason) => return Ok(Err(format!("{reason} at line {}", lines.0))),
            };
            if tests.is_empty() {
                let (first, last) = lines;
                affected.not_run.push(format!("{path}:{first}-{last}"));
            }
            affected.tests.extend(tests);
        }
        Ok(Ok(()))
    }

    /// The tests that ran these lines. `text`: the lines of the file. `Err`: why all tests are affected.
    fn tests(
        &self,
        file: i64,
        (first, last): (u32, u32),
        text: &[&str],
    ) -> anyhow::Result<Result<BTreeSet<String>, String>> {
        let within = "SELECT first FROM function WHERE file = ?1 AND first <= ?2 AND last >= ?3";
        let mut query = self.database.prepare(within)?;
        let starts = query.query_map(params![file, first, last], |row| row.get(0))?;
        let starts: BTreeSet<u32> = starts.collect::<rusqlite::Result<_>>()?;
        if starts.is_empty() {
            return Ok(Err("was changed outside of functions".to_owned()));
        }
        if starts.iter().any(|start| may_run_elsewhere(text, *start)) {
            let reason = "has a changed function that is constexpr or also runs on the host";
            return Ok(Err(reason.to_owned()));
        }
        // What replaces a line that has no code, such as a comment, runs whenever the code around it does.
        let ran = match self.are_code(file, first, last)? {
            true => "SELECT test FROM test_line WHERE file = ?1 AND first <= ?3 AND last >= ?2",
            false => {
                "SELECT test FROM test_function JOIN function ON function.id = function
                 WHERE file = ?1 AND first <= ?2 AND last >= ?3"
            }
        };
        let names = format!("SELECT name FROM test WHERE id IN ({ran})");
        let mut query = self.database.prepare(&names)?;
        let tests = query.query_map(params![file, first, last], |row| row.get(0))?;
        Ok(Ok(tests.collect::<rusqlite::Result<_>>()?))
    }

    /// Whether the head of a function that begins on these lines is not in the hunk's new lines: another function may be called now.
    fn changes_head(
        &self,
        file: i64,
        hunk: &Hunk,
        (first, last): (u32, u32),
        text: &[&str],
    ) -> rusqlite::Result<bool> {
        if hunk.removed.is_empty() {
            return Ok(false);
        }
        let sql = "SELECT first FROM function WHERE file = ?1 AND first BETWEEN ?2 AND ?3";
        let mut query = self.database.prepare(sql)?;
        let starts = query.query_map(params![file, first, last], |row| row.get(0))?;
        let starts: Vec<u32> = starts.collect::<rusqlite::Result<_>>()?;
        Ok(starts.into_iter().any(|start| {
            let line = text.get(start.saturating_sub(1) as usize);
            let head = line.and_then(|line| line.split_inclusive('{').next());
            !head.is_some_and(|head| hunk.added.iter().any(|line| line.starts_with(head)))
        }))
    }

    /// Whether all of these lines have code.
    fn are_code(&self, file: i64, first: u32, last: u32) -> rusqlite::Result<bool> {
        let sql =
            "SELECT EXISTS (SELECT 1 FROM code WHERE file = ?1 AND first <= ?2 AND last >= ?3)";
        let mut query = self.database.prepare(sql)?;
        query.query_row(params![file, first, last], |row| row.get(0))
    }

    /// The changes of a file between two commits, or since one.
    fn hunks(&self, commits: &[&str], path: &str) -> anyhow::Result<Vec<Hunk>> {
        let rest = ["--", path];
        let options = ["--literal-pathspecs"];
        let arguments = [&options, git::DIFF, &["--no-renames"], commits, &rest].concat();
        Ok(hunks(&git::run(self.top, &arguments)?))
    }
}

/// The hunks in a diff of one file.
fn hunks(diff: &[u8]) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    // Lines of the file that are still to come in a hunk.
    let mut rest = 0;
    for line in diff.split(|&byte| byte == b'\n') {
        if rest > 0 && matches!(line.first(), Some(b'+' | b'-')) {
            rest -= 1;
            let text = String::from_utf8_lossy(&line[1..]).into_owned();
            if let Some(hunk) = hunks.last_mut() {
                match line[0] {
                    b'-' => hunk.removed.push(text),
                    _ => hunk.added.push(text),
                }
            }
        } else if let Some((before, after)) = hunk(line) {
            rest = before.1 + after.1;
            hunks.push(Hunk {
                before,
                after,
                ..Hunk::default()
            });
        }
    }
    hunks
}

impl Hunk {
    /// Whether it has a line of the preprocessor, or one that the next line continues: it may be a macro's.
    fn has_directive(&self) -> bool {
        let mut lines = self.removed.iter().chain(&self.added);
        lines.any(|line| line.trim_start().starts_with('#') || is_continued(line))
    }

    /// The lines that were changed, or the ones around what was added.
    fn lines_before(&self) -> (u32, u32) {
        match self.before {
            (start, 0) => (start, start + 1),
            (start, number) => (start, start.saturating_add(number - 1)),
        }
    }
}

/// Whether the next line is a part of this one.
fn is_continued(line: &str) -> bool {
    line.trim_end().ends_with('\\')
}

/// Whether a line is a part of the one before.
fn continues(text: &[&str], line: u32) -> bool {
    let before = (line as usize).checked_sub(2);
    before
        .and_then(|before| text.get(before))
        .is_some_and(|line| is_continued(line))
}

/// Where lines were before these hunks: if they were changed, what they replace.
fn recorded_lines(hunks: &[Hunk], first: u32, last: u32) -> (u32, u32) {
    let recorded = |line: u32| {
        let mut offset = 0i64;
        for hunk in hunks {
            let (start, number) = hunk.after;
            if number > 0 && (start..start + number).contains(&line) {
                return hunk.lines_before();
            }
            let is_after = match number {
                0 => line > start,
                number => line >= start + number,
            };
            if is_after {
                offset += i64::from(hunk.before.1) - i64::from(number);
            }
        }
        let line = u32::try_from(i64::from(line) + offset).unwrap_or(0);
        (line, line)
    };
    (recorded(first).0, recorded(last).1)
}

/// Whether the head of the function that begins on a line has a word with which it runs in the compiler or on the host as well. The head
/// ends on this line, and begins after the statement before.
fn may_run_elsewhere(text: &[&str], start: u32) -> bool {
    let start = (start as usize).min(text.len());
    let head = text[..start].iter().rev().enumerate();
    let head = head
        .take_while(|(n, line)| *n == 0 || !(line.contains([';', '}']) || line.trim().is_empty()));
    let words = ["constexpr", "consteval", "__host__"];
    head.take(20)
        .any(|(_, line)| words.iter().any(|word| line.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const SOURCE: &str = "// comment
__device__ int twice(int x) {
    return 2 * x;
}

__global__ void kernel(int *out, int which) {
    if (which)
        out[0] = twice(which);
    else
        out[0] = 5;
    // end
}
__host__ __device__ int both() {
    return 1;
}
__global__ void other() {
}
";

    struct Tree {
        dir: tempfile::TempDir,
        database: Connection,
    }

    impl Tree {
        /// A git tree with a source and a document, and the database of the tests big and small, and of one without device code.
        fn new() -> Tree {
            let tree = Tree {
                dir: tempfile::tempdir().expect("a directory"),
                database: Connection::open_in_memory().expect("a database"),
            };
            tree.git(&["init", "-q"]);
            tree.write("a.hip", SOURCE);
            tree.write("README.md", "text\n");
            tree.commit();
            let blob = git::run(tree.dir.path(), &["rev-parse", "HEAD:a.hip"]).expect("a blob");
            let blob = String::from_utf8(blob).expect("text");
            let head = git::commit(tree.dir.path(), "HEAD").expect("a commit");
            let rows = format!(
                "INSERT INTO meta VALUES ('format', '1'), ('complete', '1'), ('commit', '{head}');
                 INSERT INTO file VALUES (7, 'a.hip', '{}');
                 INSERT INTO test VALUES (0, ''), (1, 'big'), (2, 'small'), (3, 'host');
                 INSERT INTO code VALUES (7, 2, 4), (7, 6, 10), (7, 12, 17);
                 INSERT INTO function VALUES (0, 7, 2, 4, '', '', 0), (1, 7, 6, 12, '', '', 1), (2, 7, 13, 15, '', '', 0),
                     (3, 7, 16, 17, '', '', 1);
                 INSERT INTO test_line VALUES (1, 7, 2, 4), (1, 7, 6, 8), (1, 7, 12, 12), (2, 7, 6, 7), (2, 7, 9, 10),
                     (2, 7, 12, 12);
                 INSERT INTO test_function VALUES (1, 0), (1, 1), (2, 1);",
                blob.trim()
            );
            let filled = tree.database.execute_batch(test_database::SCHEMA);
            filled
                .and_then(|()| tree.database.execute_batch(&rows))
                .expect("rows");
            tree
        }

        fn git(&self, arguments: &[&str]) {
            let user = ["-c", "user.name=a", "-c", "user.email=a"];
            git::run(self.dir.path(), &[&user, arguments].concat()).expect("git runs");
        }

        fn commit(&self) {
            self.git(&["add", "-A"]);
            self.git(&["commit", "-q", "-m", "a"]);
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.dir.path().join(name), text).expect("written");
        }

        fn affected(&self, since: &str, ignore: &str) -> Affected {
            let options = Options {
                since: since.to_owned(),
                db: PathBuf::new(),
                ignore: vec![Pattern::new(ignore).expect("a pattern")],
                format: Format::Names,
            };
            affected(self.dir.path(), &self.database, &options).expect("a commit")
        }

        /// The tests, the reason for all of them, or the lines that no test ran.
        fn shown(&self, since: &str) -> String {
            let affected = self.affected(since, "*.txt");
            match &affected.all_because[..] {
                [] => {
                    let tests: Vec<_> = affected.tests.into_iter().collect();
                    let not_run = affected.not_run.iter().map(|lines| format!("; {lines}"));
                    tests.join(" ") + &not_run.collect::<String>()
                }
                reasons => format!("all: {}", reasons.join("; ")),
            }
        }
    }

    /// Each case replaces a text in the source.
    const CHANGES: &[(&str, &str, &str)] = &[
        ("out[0] = twice(which)", "out[1] = 3", "big"),
        ("out[0] = 5", "out[0] = 6", "small"),
        ("return 2 * x", "return x", "big"),
        ("if (which)", "if (!which)", "big small"),
        ("return 2 * x;\n", "", "big"),
        ("    else\n", "    else // here\n", "small"),
        // Between a line of one test and a line of the other one.
        ("    else\n", "    /* */\n    else\n", "big small"),
        // A comment has no code, so it is not known which tests would run its replacement.
        ("// end", "out[1] = 0;", "big small"),
        (
            "}\n__host__",
            "}\n\n__host__",
            "all: a.hip was changed outside of functions at line 12",
        ),
        (
            "// comment",
            "int x;",
            "all: a.hip was changed outside of functions at line 1",
        ),
        (
            "return 1",
            "return 2",
            "all: a.hip has a changed function that is constexpr or also runs on the host at line 14",
        ),
        (
            "out[0] = 5",
            "\n#define X 5\n",
            "all: a.hip has a changed directive at line 10",
        ),
        (
            "out[0] = 5",
            "out[0] = 5 \\\n",
            "all: a.hip has a changed directive at line 10",
        ),
        ("other() {\n", "other() { // here\n", "; a.hip:16-16"),
        (
            "(int x)",
            "(long x)",
            "all: a.hip has a changed function head at line 2",
        ),
    ];

    #[test]
    fn changed_lines_affect_the_tests_that_ran_them() {
        let tree = Tree::new();
        assert_eq!(tree.shown("HEAD"), "");
        for (text, replacement, expected) in CHANGES {
            assert_eq!(SOURCE.matches(text).count(), 1, "{text}");
            tree.write("a.hip", &SOURCE.replace(text, replacement));
            assert_eq!(&tree.shown("HEAD"), expected, "{text:?} {replacement:?}");
        }
    }

    #[test]
    fn what_is_not_known_affects_all_tests() {
        let tree = Tree::new();
        tree.write("new.txt", "ignored");
        assert_eq!(tree.shown("HEAD"), "");
        let changed = |name: &str, text: &str, expected: &str| {
            tree.write(name, text);
            assert_eq!(tree.shown("HEAD"), expected);
            tree.git(&["checkout", "-q", "."]);
            tree.git(&["clean", "-fdq"]);
        };
        changed(
            "README.md",
            "new\n",
            "all: README.md is not in the database",
        );
        changed("b.h", "", "all: b.h is new, removed, or of another kind");
        fs::remove_file(tree.dir.path().join("a.hip")).expect("removed");
        assert_eq!(
            tree.shown("HEAD"),
            "all: a.hip is new, removed, or of another kind"
        );
        tree.write("a.hip", &SOURCE.replace("= 5", "= 6"));
        let set = |sql: &str| tree.database.execute(sql, []).expect("a row");
        set("UPDATE test_line SET test = 0 WHERE test = 2");
        let outside = "all: code that was changed ran outside of tests";
        assert_eq!(tree.shown("HEAD"), outside);
        set("UPDATE file SET blob = 'x'");
        let different = "all: a.hip was different from its commit when the tests ran";
        assert_eq!(tree.shown("HEAD"), different);
        set("UPDATE meta SET value = 'abcd' WHERE key = 'commit'");
        let unknown = "all: the commit of the tests, abcd, is not in this repository";
        assert_eq!(tree.shown("HEAD"), unknown);
        set("DELETE FROM meta WHERE key = 'commit'");
        let none = "all: the tests did not run in a git tree with a commit";
        assert_eq!(tree.shown("HEAD"), none);
        set("UPDATE meta SET value = '0' WHERE key = 'complete'");
        assert!(tree.shown("HEAD").starts_with("all: counts were lost"));
        let options = Options {
            since: "none".to_owned(),
            db: PathBuf::new(),
            ignore: Vec::new(),
            format: Format::Names,
        };
        let error = affected(tree.dir.path(), &tree.database, &options).expect_err("no commit");
        assert!(error.to_string().contains("--since none"), "{error:#}");
    }

    #[test]
    fn the_tests_may_have_run_another_commit() {
        let tree = Tree::new();
        // After the tests ran, lines were added and one was removed.
        let later = SOURCE
            .replace("// comment", "//\n//\n// comment")
            .replace("    // end\n", "");
        tree.write("a.hip", &later);
        tree.commit();
        assert_eq!(tree.shown("HEAD"), "");
        tree.write("a.hip", &later.replace("= 5", "= 6"));
        assert_eq!(tree.shown("HEAD"), "small");
        assert_eq!(tree.affected("HEAD", "").other_files, 1);
        assert_eq!(tree.affected("HEAD~1", "").other_files, 0);
        // Since the tests ran, it is also the beginning of the file.
        assert!(tree.shown("HEAD~1").starts_with("all: "));
        let hunk = |before, after| Hunk {
            before,
            after,
            ..Hunk::default()
        };
        let hunks = [
            hunk((3, 0), (4, 2)),
            hunk((8, 2), (10, 1)),
            hunk((20, 1), (20, 0)),
        ];
        for (lines, expected) in [
            ((1, 3), (1, 3)),
            ((4, 4), (3, 4)),
            ((6, 6), (4, 4)),
            ((6, 10), (4, 9)),
            ((11, 12), (10, 11)),
            ((21, 21), (21, 21)),
        ] {
            assert_eq!(
                recorded_lines(&hunks, lines.0, lines.1),
                expected,
                "{lines:?}"
            );
        }
    }

    #[test]
    fn ctest_cannot_read_long_expressions() {
        let tests = |number: usize| (0..number).map(|n| format!("test/{n:05}")).collect();
        assert!(fits_ctest(&tests(1_800)));
        assert!(!fits_ctest(&tests(1_900)));
    }

    #[test]
    fn runners_take_the_tests() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let all = names(&["A.b/0", "c, d"]);
        let affected = |tests: &[&str], is_all: bool| Affected {
            tests: names(tests),
            all_because: is_all.then(String::new).into_iter().collect(),
            ..Affected::default()
        };
        let some = affected(&["A.b/0", "c, d"], false);
        for (format, expected) in [
            (Format::Names, ["A.b/0\nc, d\n", "", "A.b/0\nc, d\n"]),
            (
                Format::Gtest,
                [
                    "--gtest_filter=A.b/0:c, d\n",
                    "--gtest_filter=-*\n",
                    "--gtest_filter=*\n",
                ],
            ),
            (Format::Ctest, ["^(A\\.b/0|c, d)$\n", "^$\n", ".\n"]),
            (Format::Catch2, ["A.b/0,c\\, d\n", "~*\n", "*\n"]),
        ] {
            let texts = [&some, &affected(&[], false), &affected(&[], true)];
            let texts = texts.map(|affected| format.text(affected, &all));
            assert_eq!(texts, expected);
        }
    }
}
