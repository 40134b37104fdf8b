//! The frame of all pages, and their names.

use super::origin::Origin;
use crate::console::Severity;
use crate::report::model::Report;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::io;
use std::path::Path;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("sort.js");

/// The directory of a page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    Top,
    /// The directory of the source pages, or of the instances of templates.
    Below,
}

impl Depth {
    fn of(path: &str) -> Depth {
        let is_below = path.contains('/');
        if is_below { Depth::Below } else { Depth::Top }
    }

    /// A link from a page to a path in the directory of the report.
    pub fn link(self, path: &str) -> String {
        match self {
            Depth::Top => path.to_owned(),
            Depth::Below => format!("../{path}"),
        }
    }
}

/// The path of a source file's first page, relative to the directory of the report.
pub fn page_name(index: usize, path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    format!("files/{index}-{}.html", plain_name(name))
}

/// The name with only those characters that are safe in file systems and URLs.
pub fn plain_name(name: &str) -> String {
    let is_unsafe = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '_' | '-');
    let beginning: String = name.chars().take(60).collect();
    beginning.replace(is_unsafe, "_")
}

pub struct Pages<'a> {
    pub report: &'a Report,
    pub origin: Origin,
    /// The directory to write to.
    pub dir: &'a Path,
}

impl Pages<'_> {
    /// Writes a page to this path, relative to the directory.
    pub fn write(&self, path: &str, title: &str, body: Markup) -> io::Result<()> {
        let page = self.page(Depth::of(path), title, body);
        std::fs::write(self.dir.join(path), page.into_string())
    }

    fn page(&self, depth: Depth, title: &str, body: Markup) -> Markup {
        let index = depth.link("index.html");
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta name="generator" content=(concat!("devprof ", env!("CARGO_PKG_VERSION")));
                    link rel="icon" href="data:,";
                    title { (title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    a.skip href="#main" { "Skip to the content" }
                    nav aria-label="Report" {
                        a.brand href=(index) { "Device coverage" }
                        @match self.warnings() {
                            0 => {}
                            1 => a.warnings href=(format!("{index}#notes")) { "1 warning" },
                            n => a.warnings href=(format!("{index}#notes")) { (n) " warnings" },
                        }
                        a href=(format!("{index}#kernels")) { "Kernels" }
                        @if self.report.has_coverage() {
                            a href=(format!("{index}#files")) { "Files" }
                            a href=(depth.link("functions.html")) { "Functions" }
                        }
                    }
                    main id="main" { (body) (self.footer()) }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        }
    }

    fn footer(&self) -> Markup {
        html! {
            footer {
                "Made by devprof " (env!("CARGO_PKG_VERSION")) " on " (self.origin.time)
                @if let Some(commit) = &self.origin.commit { ", at commit " code { (commit) } }
                ", with " code { (self.origin.command) }
            }
        }
    }

    fn warnings(&self) -> usize {
        let notes = self.report.notes.iter();
        notes.filter(|note| note.level == Severity::Warning).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_names_are_safe_for_any_path() {
        assert_eq!(
            page_name(3, "/src/a b/../<x>&\"'#?%.hip"),
            "files/3-_x_______.hip.html"
        );
        assert_eq!(page_name(0, ".."), "files/0-...html");
        assert!(page_name(1, &"é".repeat(300)).len() < 100);
    }
}
