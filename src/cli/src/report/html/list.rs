//! Lists that can be long. A page has at most 1 MB, so a list has as many pages as it needs, and a page that is not only
//! about the list has the first part of it.

use super::pages::Pages;
use super::widgets::grouped;
use maud::{Markup, html};
use std::io;
use std::ops::Range;

/// The size of the rows on a page of a list, in bytes. The rest of a page has at most 300 kB.
const PAGE: usize = 700_000;
/// The size of the rows of a list on another page.
const PART: usize = 100_000;

pub struct List {
    /// The class of the table.
    pub class: &'static str,
    pub caption: String,
    pub head: Markup,
    pub rows: Vec<Markup>,
}

impl List {
    pub fn sorted(caption: &str, head: Markup, rows: impl IntoIterator<Item = Markup>) -> List {
        List {
            class: "sorted",
            caption: caption.to_owned(),
            head,
            rows: rows.into_iter().collect(),
        }
    }

    /// The table with all rows.
    pub fn complete(&self) -> Markup {
        self.table(0..self.rows.len())
    }

    /// The rows of each page.
    pub fn pages(&self) -> Vec<Range<usize>> {
        let mut pages = Vec::new();
        let mut start = 0;
        while start < self.rows.len() {
            let end = start + self.fitting(start, PAGE);
            pages.push(start..end);
            start = end;
        }
        pages
    }

    /// How many of the rows from `start` on have `size` bytes in all, but at least one.
    fn fitting(&self, start: usize, size: usize) -> usize {
        let mut sum = 0;
        let mut rows = self.rows[start..].iter();
        let fitting = rows.position(|row| {
            sum += row.0.len();
            sum > size
        });
        fitting.unwrap_or(self.rows.len() - start).max(1)
    }

    /// A table with some of the rows, which scrolls horizontally if the window is narrow.
    pub fn table(&self, rows: Range<usize>) -> Markup {
        html! {
            div.scroll role="region" aria-label=(self.caption) tabindex="0" {
                table class=(self.class) {
                    caption { (self.caption) }
                    (self.head)
                    tbody { @for row in &self.rows[rows] { (row) } }
                }
            }
        }
    }
}

/// The path of one of several pages, of which the first one has the path `NAME.html`.
pub fn nth(path: &str, page: usize) -> String {
    match (page, path.strip_suffix(".html")) {
        (1.., Some(name)) => format!("{name}.{}.html", page + 1),
        _ => path.to_owned(),
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Links to the pages of a list, which are in the same directory.
pub fn links(path: &str, current: usize, labels: &[String]) -> Markup {
    let name = file_name(path);
    html! {
        @if labels.len() > 1 {
            nav.pages aria-label="Pages" {
                "Page " (current + 1) " of " (labels.len()) ": "
                @for (page, label) in labels.iter().enumerate() {
                    @if page > 0 { ", " }
                    @if page == current { b { (label) } }
                    @else { a href=(nth(name, page)) { (label) } }
                }
            }
        }
    }
}

impl Pages<'_> {
    /// Writes the pages of a list. `label` names a page by its rows.
    pub fn write_list(
        &self,
        path: &str,
        title: &str,
        hint: &Markup,
        list: &List,
        label: impl Fn(usize, Range<usize>) -> String,
    ) -> io::Result<()> {
        let pages = list.pages();
        let labels = pages.iter().cloned().enumerate();
        let labels: Vec<String> = labels.map(|(page, rows)| label(page, rows)).collect();
        for (page, rows) in pages.into_iter().enumerate() {
            let body = html! {
                h1 { (title) }
                (hint)
                (links(path, page, &labels))
                (list.table(rows))
                (links(path, page, &labels))
            };
            self.write(&nth(path, page), title, body)?;
        }
        Ok(())
    }

    /// A list on a page about more than the list. If it is long, only its first rows are on that page, and pages of its
    /// own in the same directory, which this function writes, have all of them.
    pub fn part(&self, path: &str, hint: &Markup, list: &List) -> io::Result<Markup> {
        let all = list.rows.len();
        let shown = list.fitting(0, PART).min(all);
        if shown < all {
            let number = |page: usize, _| (page + 1).to_string();
            self.write_list(path, &list.caption, hint, list, number)?;
        }
        Ok(html! {
            (list.table(0..shown))
            @if shown < all {
                p.hint {
                    "These are the first " (grouped(shown as u64)) " of " (grouped(all as u64)) ": "
                    a href=(file_name(path)) { "show all" }
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use maud::PreEscaped;

    #[test]
    fn a_list_has_as_many_pages_as_it_needs() {
        let list = |sizes: &[usize]| {
            let rows = sizes.iter().map(|&size| PreEscaped("x".repeat(size)));
            List::sorted("", html! {}, rows)
        };
        assert!(list(&[]).pages().is_empty());
        assert_eq!(list(&[PAGE]).pages().len(), 1);
        // A row that is too large for a page has its own.
        let large = [1, PAGE, 1, PAGE + 1, 1, PAGE / 2, PAGE / 2, 1];
        assert_eq!(list(&large).pages(), [0..1, 1..2, 2..3, 3..4, 4..6, 6..8]);
    }

    #[test]
    fn pages_are_numbered_from_the_second_on() {
        assert_eq!(nth("functions.html", 0), "functions.html");
        assert_eq!(nth("functions.html", 1), "functions.2.html");
        assert_eq!(nth("files/0-a.html.html", 2), "files/0-a.html.3.html");
    }
}
