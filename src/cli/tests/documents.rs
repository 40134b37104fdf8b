//! The links in the repository's Markdown files, and the paths that these files mention, exist.

use regex::Regex;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A path, from the repository's root or from the document's directory.
const PATH: &str =
    r"(?:^|[^A-Za-z0-9._/-])((?:\.ci|\.github|fixtures|llvm-tests|src|tools)/[A-Za-z0-9._/-]*)";

fn repository() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository")
}

/// The Markdown files that git tracks or would add.
fn documents(root: &Path) -> Vec<PathBuf> {
    let output = Command::new("git")
        .current_dir(root)
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .args(["--", "*.md"])
        .output()
        .expect("git");
    let listed = String::from_utf8(output.stdout).expect("names in UTF-8");
    let files = listed.lines().map(|name| root.join(name));
    files.filter(|file| file.exists()).collect()
}

/// The first group of each match of a regular expression.
fn found<'a>(text: &'a str, regex: &str) -> Vec<&'a str> {
    let regex = Regex::new(regex).expect("a regular expression");
    let matches = regex.captures_iter(text);
    matches.map(|groups| groups.extract::<1>().1[0]).collect()
}

/// The targets of `[text](target)` that are not addresses.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = found(text, r"\]\(([^)]*)\)").into_iter();
    targets.filter(|target| !target.contains("://"))
}

/// The paths that the text mentions.
fn mentions(text: &str) -> impl Iterator<Item = &str> {
    let words = found(text, PATH).into_iter();
    words.map(|word| word.trim_end_matches('.'))
}

/// The anchors that GitHub gives to the headings.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

/// The errors in a document.
fn errors(root: &Path, document: &Path) -> Vec<String> {
    let text = fs::read_to_string(document).expect("a document");
    let directory = document.parent().expect("a directory");
    let mut errors = Vec::new();
    for link in links(&text) {
        let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
        let target = match path {
            "" => document.to_owned(),
            path => directory.join(path),
        };
        if !target.exists() {
            errors.push(format!("the link's target does not exist: {link}"));
        } else if !anchor.is_empty() {
            let headings = anchors(&fs::read_to_string(&target).unwrap_or_default());
            if !headings.iter().any(|heading| heading == anchor) {
                errors.push(format!("the link's heading does not exist: {link}"));
            }
        }
    }
    for path in mentions(&text) {
        if !root.join(path).exists() && !directory.join(path).exists() {
            errors.push(format!("the path does not exist: {path}"));
        }
    }
    errors
}

#[test]
fn links_and_paths_exist() {
    let root = repository();
    let documents = documents(&root);
    assert!(documents.contains(&root.join("README.md")));
    let errors: Vec<String> = documents
        .iter()
        .flat_map(|document| {
            let name = document.strip_prefix(&root).unwrap_or(document).display();
            let errors = errors(&root, document).into_iter();
            errors.map(move |error| format!("{name}: {error}"))
        })
        .collect();
    assert!(errors.is_empty(), "\n{}", errors.join("\n"));
}

#[test]
fn wrong_links_and_paths_are_found() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path();
    fs::write(root.join("other.md"), "# A `title`, x-y\n").expect("a file");
    let text = "# Here\n[a](other.md) [b](other.md#a-title-x-y) [c](#here) [d](https://x/y)\n\
        [e](missing.md) [f](other.md#title) [g](#there) `tools/x` (see src/y.rs).\n";
    let document = root.join("document.md");
    fs::write(&document, text).expect("a file");
    let expected = [
        "the link's target does not exist: missing.md",
        "the link's heading does not exist: other.md#title",
        "the link's heading does not exist: #there",
        "the path does not exist: tools/x",
        "the path does not exist: src/y.rs",
    ];
    assert_eq!(errors(root, &document), expected);
}

/// The text of all Rust files in a directory and below.
fn sources(directory: &Path) -> String {
    let entries = fs::read_dir(directory).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let text = paths.map(|path| match path.extension() {
        _ if path.is_dir() => sources(&path),
        Some(extension) if extension == "rs" => fs::read_to_string(&path).expect("a source"),
        _ => String::new(),
    });
    text.collect()
}

#[test]
fn the_messages_in_the_troubleshooting_page_are_devprofs() {
    let root = repository();
    // Without the page's own test.
    let sources = ["cli/src", "runtime", "formats"].map(|dir| sources(&root.join("src").join(dir)));
    let page = fs::read_to_string(root.join("src/cli/docs/troubleshooting.md")).expect("the page");
    let tables = page.split("\n## ");
    let tables = tables.filter(|table| table.contains("\n| message of devprof |"));
    let mut count = 0;
    for table in tables {
        let messages = found(table, r"\n\| `([^`]*)`");
        for message in &messages {
            let is_known = sources.iter().any(|text| text.contains(message));
            assert!(is_known, "no such message: {message}");
        }
        let sorted = messages.is_sorted_by_key(|message| message.to_lowercase());
        assert!(sorted, "not in alphabetical order: {messages:?}");
        count += messages.len();
    }
    assert!(count > 15, "{count}");
}

#[test]
fn the_readme_is_short() {
    let readme = fs::read_to_string(repository().join("README.md")).expect("the README");
    assert!(readme.lines().count() <= 150);
}
