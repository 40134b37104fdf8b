//! Writes a report in the formats that were requested.

use super::counts::Which;
use super::model::Report;
use super::{cobertura, coverage_py, github, html, lcov, markdown, output, sonar, text};
use crate::console::Console;
use crate::exit::usage;
use crate::outfile;
use anyhow::Context;
use clap::ValueEnum;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Format {
    /// Kernels, files, and notes about the numbers
    Text,
    /// The sources with the count of each line
    Source,
    /// Pages that need no server; the first is index.html
    Html,
    /// For genhtml and other tools that read LCOV's tracefiles
    Lcov,
    /// All data, for programs
    Json,
    /// Cobertura's XML, for GitLab, Jenkins and others
    Cobertura,
    /// SonarQube's generic coverage
    Sonar,
    /// Markdown, for the summary of a CI job
    Markdown,
    /// Annotations of lines that did not run, as workflow commands of GitHub Actions
    Github,
    /// The database of coverage.py with the lines of Python that ran, for `coverage combine`
    CoveragePy,
    /// The same for data of `coverage run --branch`
    CoveragePyBranch,
}

impl Format {
    /// The format of a single file with this name.
    fn of(path: &Path) -> Option<Format> {
        if coverage_py::is_name(path) {
            return Some(Format::CoveragePy);
        }
        if sonar::is_name(path) {
            return Some(Format::Sonar);
        }
        match path.extension()?.to_str()? {
            "info" | "lcov" => Some(Format::Lcov),
            "json" => Some(Format::Json),
            "xml" => Some(Format::Cobertura),
            "md" => Some(Format::Markdown),
            "txt" => Some(Format::Text),
            _ => None,
        }
    }

    /// Whether it has nothing but lines and what is in them.
    pub fn is_of_lines(&self) -> bool {
        !matches!(
            self,
            Format::Text | Format::Html | Format::Json | Format::Markdown
        )
    }

    /// Its name on the command line.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The name of its file in the directory of a report. `None` if it has several files.
    fn file_name(self) -> Option<&'static str> {
        match self {
            Format::Html | Format::Lcov => None,
            Format::Text => Some("report.txt"),
            Format::Source => Some("sources.txt"),
            Format::Json => Some("report.json"),
            Format::Cobertura => Some(cobertura::NAME),
            Format::Sonar => Some(sonar::NAME),
            Format::Markdown => Some("report.md"),
            Format::Github => Some("annotations.txt"),
            Format::CoveragePy => Some(coverage_py::FILE_NAME),
            Format::CoveragePyBranch => Some(coverage_py::BRANCH_FILE_NAME),
        }
    }
}

/// Where to write the report.
pub enum Target<'a> {
    Stdout(Format),
    File(Format, &'a Path),
    Directory(BTreeSet<Format>, &'a Path),
}

impl Target<'_> {
    /// Where to write which formats. `opens`: the pages are opened in the browser.
    pub fn new<'a>(
        formats: &[Format],
        output: Option<&'a Path>,
        opens: bool,
    ) -> anyhow::Result<Target<'a>> {
        let mut formats: BTreeSet<Format> = formats.iter().copied().collect();
        let output = output.filter(|output| !outfile::is_stdout(output));
        if formats.is_empty() {
            let file = output.filter(|output| !outfile::is_directory(output));
            let named = file.and_then(Format::of);
            let default = output.map_or(Format::Text, |_| Format::Html);
            formats.insert(named.unwrap_or(default));
        }
        if let Some(path) = output
            && formats.contains(&Format::Html)
            && path
                .extension()
                .is_some_and(|extension| extension == "html")
            && !outfile::is_directory(path)
        {
            return Err(usage(format!(
                "-o {}: the format html has several pages, the first of which is index.html: name a directory, such as {}/",
                path.display(),
                path.with_extension("").display()
            )));
        }
        let single = formats.first().copied();
        let single = single.filter(|format| formats.len() == 1 && *format != Format::Html);
        let target = match (single, output) {
            (Some(format), None) => Target::Stdout(format),
            (Some(format), Some(path)) if !outfile::is_directory(path) => {
                Target::File(format, path)
            }
            (_, Some(dir)) => Target::Directory(formats, dir),
            (None, None) => {
                return Err(usage(
                    "html, and more than one format, require a directory: name it with -o DIR",
                ));
            }
        };
        let has_pages =
            matches!(&target, Target::Directory(formats, _) if formats.contains(&Format::Html));
        if opens && !has_pages {
            return Err(usage(
                "--open requires the format html: name its directory with -o DIR",
            ));
        }
        Ok(target)
    }

    /// # Errors
    /// The directory has files that are not a report.
    pub fn check(&self) -> anyhow::Result<()> {
        match self {
            Target::Directory(_, dir) => output::check(dir),
            _ => Ok(()),
        }
    }

    pub fn formats(&self) -> BTreeSet<Format> {
        match self {
            Target::Stdout(own) | Target::File(own, _) => BTreeSet::from([*own]),
            Target::Directory(formats, _) => formats.clone(),
        }
    }

    pub fn has(&self, format: Format) -> bool {
        self.formats().contains(&format)
    }
}

/// Writes the report, and prints the totals unless it is written to stdout.
pub fn write(
    target: &Target,
    report: &Report,
    options: text::Options,
    failures: &[String],
    opens: bool,
    console: &mut Console,
) -> anyhow::Result<()> {
    let bytes = |format| bytes(format, report, options, failures);
    match target {
        Target::Stdout(format) => {
            let bytes = bytes(*format).context("cannot write the report")?;
            match format {
                Format::Text | Format::Source => console.print(&String::from_utf8_lossy(&bytes))?,
                _ => console.print_bytes(&bytes)?,
            }
        }
        Target::File(format, path) => {
            let failed = || format!("cannot write {}", path.display());
            let bytes = bytes(*format).with_context(failed)?;
            outfile::write(path, |out| out.write_all(&bytes)).with_context(failed)?;
            console.print(&text::totals(path, report))?;
        }
        Target::Directory(formats, dir) => {
            output::replace(dir, |dir| write_files(formats, report, &bytes, dir))?;
            console.print(&text::totals(dir, report))?;
            if opens {
                open(&dir.join("index.html"), console);
            }
        }
    }
    Ok(())
}

/// Opens a page in the browser.
fn open(page: &Path, console: &mut Console) {
    let opener = "xdg-open";
    let status = std::process::Command::new(opener).arg(page).status();
    let why = match status {
        Ok(status) if status.success() => return,
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    console.warn(format!(
        "--open: {opener} failed ({why}); open {} in a browser",
        page.display()
    ));
}

/// A format that is a single file.
fn bytes(
    format: Format,
    report: &Report,
    options: text::Options,
    failures: &[String],
) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    match format {
        Format::Text => out = text::report(report, options).into_bytes(),
        Format::Source => out = text::sources(report).into_bytes(),
        Format::Lcov => lcov::write(report, Which::All, &mut out)?,
        Format::Json => {
            serde_json::to_writer(&mut out, report)?;
            out.push(b'\n');
        }
        Format::Cobertura => cobertura::write(report, &mut out)?,
        Format::Sonar => sonar::write(report, &mut out)?,
        Format::Markdown => out = markdown::report(report, failures).into_bytes(),
        Format::Github => out = github::report(report, failures).into_bytes(),
        Format::CoveragePy => out = coverage_py::database(report, coverage_py::Kind::Lines)?,
        Format::CoveragePyBranch => {
            out = coverage_py::database(report, coverage_py::Kind::Branches)?;
        }
        // It has several files.
        Format::Html => {}
    }
    Ok(out)
}

/// Writes all formats to a directory.
fn write_files(
    formats: &BTreeSet<Format>,
    report: &Report,
    bytes: &dyn Fn(Format) -> std::io::Result<Vec<u8>>,
    dir: &Path,
) -> std::io::Result<()> {
    for format in formats {
        match (format, format.file_name()) {
            (Format::Lcov, _) => lcov::write_all(report, dir)?,
            (_, Some(name)) => std::fs::write(dir.join(name), bytes(*format)?)?,
            (_, None) => html::write(report, dir)?,
        }
    }
    Ok(())
}
