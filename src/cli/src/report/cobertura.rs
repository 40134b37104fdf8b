//! Cobertura's XML (coverage-04.dtd), which GitLab, Jenkins, Azure and others read. A directory is a package, a file is a
//! class, and a function is a method.

use super::counts::{Counted, CountedFunction, Counts, Which};
use super::model::{Ratio, Report};
use super::paths;
use super::xml::{element, plain};
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

/// The name of the file in the directory of a report.
pub const NAME: &str = "coverage.xml";

const DTD: &str = "coverage SYSTEM \"http://cobertura.sourceforge.net/xml/coverage-04.dtd\"";

struct Class<'a> {
    /// Relative to the source directory.
    path: &'a str,
    counts: Counts<'a>,
}

pub fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let root = paths::root(report);
    let mut packages: BTreeMap<String, Vec<Class>> = BTreeMap::new();
    for (file, counts) in Counts::of_files(report, Which::All) {
        let path = paths::below(&root, file.location());
        let directory = path
            .rsplit_once('/')
            .map_or(".", |(directory, _)| directory);
        let package = packages.entry(directory.replace('/', "."));
        package.or_default().push(Class { path, counts });
    }
    let totals = report.overall();
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    let time = time.map_or(0, |time| time.as_secs()).to_string();
    let mut xml = Writer::new_with_indent(out, b' ', 1);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    xml.write_event(Event::DocType(BytesText::from_escaped(DTD)))?;
    let number = |number: u64| number.to_string();
    let attributes = [
        ("line-rate", &*rate(totals.lines)),
        ("branch-rate", &rate(totals.branches)),
        ("lines-covered", &number(totals.lines.covered)),
        ("lines-valid", &number(totals.lines.total)),
        ("branches-covered", &number(totals.branches.covered)),
        ("branches-valid", &number(totals.branches.total)),
        ("complexity", "0"),
        ("version", concat!("devprof ", env!("CARGO_PKG_VERSION"))),
        ("timestamp", &time),
    ];
    element(&mut xml, "coverage", &attributes, |xml| {
        element(xml, "sources", &[], |xml| {
            let root = plain(&root);
            let source = xml.create_element("source");
            source.write_text_content(BytesText::new(&root)).map(drop)
        })?;
        element(xml, "packages", &[], |xml| {
            let mut packages = packages.iter();
            packages.try_for_each(|(name, classes)| package(xml, name, classes))
        })
    })?;
    xml.get_mut().write_all(b"\n")
}

fn package<W: Write>(xml: &mut Writer<W>, name: &str, classes: &[Class]) -> io::Result<()> {
    let (mut lines, mut branches) = (Ratio::default(), Ratio::default());
    for class in classes {
        lines.add(class.counts.line_ratio());
        branches.add(class.counts.branch_ratio());
    }
    let attributes = [
        ("name", &*plain(name)),
        ("line-rate", &rate(lines)),
        ("branch-rate", &rate(branches)),
        ("complexity", "0"),
    ];
    element(xml, "package", &attributes, |xml| {
        element(xml, "classes", &[], |xml| {
            classes.iter().try_for_each(|own| class(xml, own))
        })
    })
}

fn class<W: Write>(xml: &mut Writer<W>, class: &Class) -> io::Result<()> {
    let name = class.path.rsplit('/').next().unwrap_or_default();
    let attributes = [
        ("name", &*plain(name)),
        ("filename", &plain(class.path)),
        ("line-rate", &rate(class.counts.line_ratio())),
        ("branch-rate", &rate(class.counts.branch_ratio())),
        ("complexity", "0"),
    ];
    let Counts { lines, functions } = &class.counts;
    element(xml, "class", &attributes, |xml| {
        element(xml, "methods", &[], |xml| {
            functions.iter().try_for_each(|own| method(xml, own))
        })?;
        element(xml, "lines", &[], |xml| {
            lines.iter().try_for_each(|own| line(xml, own))
        })
    })
}

fn method<W: Write>(xml: &mut Writer<W>, function: &CountedFunction) -> io::Result<()> {
    let covered = if function.count > 0 { "1" } else { "0" };
    let attributes = [
        ("name", &*plain(function.name)),
        ("signature", &plain(&function.symbol)),
        ("line-rate", covered),
        ("branch-rate", covered),
        ("complexity", "0"),
    ];
    let line = [
        ("number", &*function.line.to_string()),
        ("hits", &function.count.to_string()),
    ];
    element(xml, "method", &attributes, |xml| {
        element(xml, "lines", &[], |xml| {
            let element = xml.create_element("line").with_attributes(line);
            element.write_empty().map(drop)
        })
    })
}

fn line<W: Write>(xml: &mut Writer<W>, line: &Counted) -> io::Result<()> {
    let (number, hits) = (line.number.to_string(), line.count.to_string());
    let attributes = [("number", &*number), ("hits", &hits)];
    if line.conditions.is_empty() {
        let element = xml.create_element("line").with_attributes(attributes);
        let element = element.with_attribute(("branch", "false"));
        return element.write_empty().map(drop);
    }
    let all = Ratio::of_conditions(&line.conditions);
    let coverage = format!("{} ({}/{})", percent(all), all.covered, all.total);
    let branches = [("branch", "true"), ("condition-coverage", &*coverage)];
    element(xml, "line", &[attributes, branches].concat(), |xml| {
        element(xml, "conditions", &[], |xml| {
            for (index, condition) in line.conditions.iter().enumerate() {
                let coverage = percent(Ratio::of_conditions([condition]));
                let condition = xml.create_element("condition").with_attributes([
                    ("number", &*index.to_string()),
                    ("type", "jump"),
                    ("coverage", &coverage),
                ]);
                condition.write_empty()?;
            }
            Ok(())
        })
    })
}

/// A share from 0 to 1. Nothing to cover is complete, as in other writers of this format.
fn rate(ratio: Ratio) -> String {
    match ratio.total {
        0 => "1".to_owned(),
        total => format!("{:.6}", ratio.covered as f64 / total as f64),
    }
}

fn percent(ratio: Ratio) -> String {
    format!("{:.0}%", ratio.percent().unwrap_or(0.0).floor())
}
