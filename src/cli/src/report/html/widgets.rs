//! Parts that several pages have.

use crate::console::Severity;
use crate::readable;
use crate::report::model::{
    Cell, CountKind, FunctionCoverage, Kernel, Note, Ratio, Report, Totals,
};
use maud::{Markup, html};
use std::borrow::Cow;

/// How many items of a note are shown.
const MAX_ITEMS: usize = 100;
/// A longer item is shortened, in bytes.
const MAX_ITEM: usize = 2000;

pub fn notes(notes: &[Note]) -> Markup {
    html! {
        section.notes id="notes" aria-label="Notes" {
            @for note in notes {
                div class=(match note.level { Severity::Note => "note", Severity::Warning | Severity::Error => "warning" }) {
                    p { (with_code(&note.text)) }
                    @if !note.items.is_empty() {
                        details {
                            summary { (note.items.len()) @if note.items.len() == 1 { " item" } @else { " items" } }
                            ul {
                                @for item in note.items.iter().take(MAX_ITEMS) { li { code { @if item.len() <= MAX_ITEM { (item) } @else { (shortened(item)) } } } }
                                @if let Some(more @ 1..) = note.items.len().checked_sub(MAX_ITEMS) { li { "and " (grouped(more as u64)) " more" } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A text in which text between backticks is code.
fn with_code(text: &str) -> Markup {
    html! {
        @for (n, part) in text.split('`').enumerate() {
            @if n % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

pub fn card(title: &str, device: Ratio, host: Option<Ratio>) -> Markup {
    html! {
        div.card {
            h2 { (title) }
            p.big { (device.percent_text()) }
            (bar(device))
            p.small {
                (grouped(device.covered)) " of " (grouped(device.total))
                @if let Some(host) = host.filter(|host| host.total > 0) { br; "host " (host.percent_text()) ", " (grouped(host.covered)) " of " (grouped(host.total)) }
            }
        }
    }
}

/// The file and line of a function.
pub fn location(report: &Report, function: &FunctionCoverage) -> Markup {
    let path = &report.files[function.file].path;
    let name = path.rsplit('/').next().unwrap_or_default();
    html! { code.location { (name) ":" (function.line) } }
}

/// The headings of columns. Columns of numbers have the prefix #.
pub fn head(names: &[&str]) -> Markup {
    html! {
        thead {
            tr {
                @for name in names {
                    @match name.strip_prefix('#') {
                        Some(name) => th.n scope="col" { (name) },
                        None if name.is_empty() => th scope="col" { span.hidden { "State" } },
                        None => th scope="col" { (name) },
                    }
                }
            }
        }
    }
}

pub fn number(n: u64) -> Markup {
    html! { td.n data-v=(n) { (grouped(n)) } }
}

/// A count as text: a check mark if the profile says only that the code ran.
pub fn count_text(count: u64, kind: CountKind) -> String {
    let mark = kind.mark(count).map(str::to_owned);
    mark.unwrap_or_else(|| grouped(count))
}

pub fn count(cell: Option<Cell>, kind: CountKind) -> Markup {
    match cell {
        Some(Cell::Count(count)) => html! { td.n data-v=(count) { (count_text(count, kind)) } },
        Some(Cell::NotRun(_)) => html! { td.n.off data-v="-1" { "not run" } },
        None => html! { td.n data-v="-2" {} },
    }
}

pub fn calls(kernel: &Kernel) -> Markup {
    number(kernel.calls.unwrap_or(0))
}

pub fn time(kernel: &Kernel, max: u64) -> Markup {
    let time = kernel.time.unwrap_or(0);
    html! {
        td.n.bars data-v=(time) {
            span.weight style=(format!("--p:{:.1}%", 100.0 * time as f64 / max as f64)) {}
            (readable::time(time))
            @if kernel.untimed > 0 { span.small { " (" (kernel.untimed) " without times)" } }
        }
    }
}

pub fn totals(totals: Option<Totals>, which: impl Fn(Totals) -> Ratio) -> Markup {
    match totals {
        Some(totals) => ratio(which(totals)),
        None => html! { td.n data-v="-1" { "–" } },
    }
}

pub fn ratio(ratio: Ratio) -> Markup {
    let Some(percent_of) = ratio.percent() else {
        return html! { td.n data-v="-1" { "–" } };
    };
    html! {
        td.n.bars data-v=(format!("{percent_of:.4}")) {
            (bar(ratio))
            span.pct { (ratio.percent_text()) }
            span.frac { (grouped(ratio.covered)) "/" (grouped(ratio.total)) }
        }
    }
}

fn bar(ratio: Ratio) -> Markup {
    let part = ratio.percent().unwrap_or(0.0);
    let class = match part {
        full if full >= 100.0 => "bar full",
        good if good >= 75.0 => "bar good",
        fair if fair >= 40.0 => "bar fair",
        _ => "bar poor",
    };
    html! { span class=(class) style=(format!("--p:{part:.1}%")) aria-hidden="true" {} }
}

/// The maximum time of the kernels, which the bars are relative to.
pub fn longest(kernels: &[&Kernel]) -> u64 {
    let times = kernels.iter().filter_map(|kernel| kernel.time);
    times.max().unwrap_or(0).max(1)
}

/// The number with its digits in groups of three, separated by narrow no-break spaces.
pub fn grouped(n: u64) -> String {
    readable::grouped(n.into(), '\u{202f}')
}

/// The longest name that is shown completely, in characters.
const COMPLETE: usize = 100;
/// How many characters of the beginning and the end of longer names are shown. The end has the arguments of templates and
/// the parameters, in which instances differ.
const BEGIN: usize = 60;
const END: usize = 30;

/// The longest name that is on a page at all, in bytes. `report.json` has longer ones.
const MAX_NAME: usize = 20_000;

/// The name of a function, a link if `page` is given. A long one is shortened, and shown completely on demand.
pub fn function_name(name: &str, page: Option<&str>) -> Markup {
    let link = |text: &str| {
        html! {
            @match page {
                Some(page) => a href=(page) { code { (text) } },
                None => code { (text) },
            }
        }
    };
    if name.chars().nth(COMPLETE).is_none() {
        return link(name);
    }
    html! {
        (link(&shortened(name)))
        " "
        (full_name(name))
    }
}

fn full_name(name: &str) -> Markup {
    html! {
        @if name.len() <= MAX_NAME { details.full-name { summary { "full name" } code { (name) } } }
        @else { span.small { (grouped(name.len() as u64)) " bytes" } }
    }
}

/// How many characters of an instance's name are shown in front of and from the position where it differs from others.
const BEFORE: usize = 30;
const FROM: usize = 150;

/// The name of an instance of a template in the order of their names. A long one is shortened so that the part is shown
/// where it begins to differ from the previous and the next one.
pub fn instance_name(previous: Option<&str>, name: &str, next: Option<&str>) -> Markup {
    let others = [previous, next].into_iter().flatten();
    let same = others.map(|other| {
        let pairs = name.chars().zip(other.chars());
        pairs.take_while(|(own, other)| own == other).count()
    });
    let characters: Vec<char> = name.chars().collect();
    let differs = same.max().unwrap_or(0);
    let (begin, end) = (BEGIN, characters.len().saturating_sub(END));
    let start = differs.saturating_sub(BEFORE).max(begin);
    let stop = (differs + FROM).min(end);
    if characters.len() <= COMPLETE || start >= stop {
        return function_name(name, None);
    }
    let part = |from: usize, to: usize| characters[from..to].iter().collect::<String>();
    let gap = |from: usize, to: usize| if from < to { " … " } else { "" };
    let shown = [
        &part(0, begin),
        gap(begin, start),
        &part(start, stop),
        gap(stop, end),
        &part(end, characters.len()),
    ];
    let is_complete = start == begin && stop == end;
    html! {
        code { (shown.concat()) }
        @if !is_complete { " " (full_name(name)) }
    }
}

/// The beginning and the end of a long name.
fn shortened(name: &str) -> Cow<'_, str> {
    let start = |(at, _)| at;
    if name.char_indices().nth(COMPLETE).is_none() {
        return name.into();
    }
    let begin = name.char_indices().nth(BEGIN).map_or(name.len(), start);
    let end = name.char_indices().nth_back(END - 1).map_or(0, start);
    format!("{} … {}", &name[..begin], &name[end..]).into()
}

#[cfg(test)]
mod tests {
    use super::{function_name, grouped, instance_name};

    #[test]
    fn long_names_are_shortened() {
        let short = function_name("f<int>(int)", Some("p.html")).into_string();
        assert_eq!(
            short,
            r#"<a href="p.html"><code>f&lt;int&gt;(int)</code></a>"#
        );
        let name = format!("é{}end", "x".repeat(200));
        let long = function_name(&name, None).into_string();
        let shown = format!("<code>é{} … {}end</code>", "x".repeat(59), "x".repeat(27));
        assert!(long.starts_with(&shown), "{long}");
        assert!(
            long.ends_with(&format!("<code>{name}</code></details>")),
            "{long}"
        );
    }

    #[test]
    fn names_of_instances_show_where_they_differ() {
        let name = |middle: &str| format!("f<{}, {middle}, {}>", "a".repeat(400), "z".repeat(400));
        let (one, two, three) = (name("first"), name("second"), name("third"));
        let shown = |markup: maud::Markup| markup.into_string();
        let middle = shown(instance_name(Some(&one), &two, Some(&three)));
        let expected = format!(
            "<code>f<{} … {}, second, {} … {}></code>",
            "a".repeat(58),
            "a".repeat(28),
            "z".repeat(142),
            "z".repeat(29)
        );
        let expected = expected.replace("f<", "f&lt;").replace("></c", "&gt;</c");
        assert!(middle.starts_with(&expected), "{middle}\n{expected}");
        assert!(middle.contains("full name"));
        // It is complete if the parts meet.
        let short = format!("f<{}>", "a".repeat(150));
        let alone = shown(instance_name(None, &short, None));
        assert_eq!(alone, format!("<code>f&lt;{}&gt;</code>", "a".repeat(150)));
        let begins = shown(instance_name(None, &one, Some(&one)));
        assert!(begins.contains(" … ") && begins.contains("full name"));
    }

    #[test]
    fn digits_are_grouped() {
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1234567), "1\u{202f}234\u{202f}567");
    }
}
