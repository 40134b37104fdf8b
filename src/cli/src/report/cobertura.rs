//! Cobertura's XML (coverage-04.dtd), which GitLab, Jenkins, Azure and others read. A directory is a package, a file is a
//! class, and a function is a method.

use super::counts::{Counted, Counts, Definition, Which};
use super::model::{Ratio, Report};
use super::paths;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

/// The name of the file in the directory of a report.
pub const NAME: &str = "coverage.xml";

const DTD: &str = "coverage SYSTEM \"http://cobertura.sourceforge.net/xml/coverage-04.dtd\"";

/// A file's name and counts.
struct Class<'a> {
    /// Relative to the source directory.
    path: &'a str,
    counts: Counts<'a>,
}

pub fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let root = paths::root(report);
    let mut packages: BTreeMap<String, Vec<Class>> = BTreeMap::new();
    for (_, file, counts) in Counts::of_files(report, Which::All) {
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
    xml.create_element("coverage")
        .with_attributes([
            ("line-rate", &*rate(totals.lines)),
            ("branch-rate", &rate(totals.branches)),
            ("lines-covered", &number(totals.lines.covered)),
            ("lines-valid", &number(totals.lines.total)),
            ("branches-covered", &number(totals.branches.covered)),
            ("branches-valid", &number(totals.branches.total)),
            ("complexity", "0"),
            ("version", concat!("devprof ", env!("CARGO_PKG_VERSION"))),
            ("timestamp", &time),
        ])
        .write_inner_content(|xml| {
            xml.create_element("sources").write_inner_content(|xml| {
                let source = xml.create_element("source");
                let root = plain(&root);
                source.write_text_content(BytesText::new(&root))?;
                Ok(())
            })?;
            xml.create_element("packages").write_inner_content(|xml| {
                packages
                    .iter()
                    .try_for_each(|(name, classes)| package(xml, name, classes))
            })?;
            Ok(())
        })?;
    xml.get_mut().write_all(b"\n")
}

fn package<W: Write>(xml: &mut Writer<W>, name: &str, classes: &[Class]) -> io::Result<()> {
    let (mut lines, mut branches) = (Ratio::default(), Ratio::default());
    for class in classes {
        lines.add(class.counts.line_ratio());
        branches.add(class.counts.branch_ratio());
    }
    xml.create_element("package")
        .with_attributes([
            ("name", &*plain(name)),
            ("line-rate", &rate(lines)),
            ("branch-rate", &rate(branches)),
            ("complexity", "0"),
        ])
        .write_inner_content(|xml| {
            xml.create_element("classes")
                .write_inner_content(|xml| classes.iter().try_for_each(|own| class(xml, own)))?;
            Ok(())
        })?;
    Ok(())
}

fn class<W: Write>(xml: &mut Writer<W>, class: &Class) -> io::Result<()> {
    let name = class.path.rsplit('/').next().unwrap_or_default();
    xml.create_element("class")
        .with_attributes([
            ("name", &*plain(name)),
            ("filename", &plain(class.path)),
            ("line-rate", &rate(class.counts.line_ratio())),
            ("branch-rate", &rate(class.counts.branch_ratio())),
            ("complexity", "0"),
        ])
        .write_inner_content(|xml| {
            xml.create_element("methods").write_inner_content(|xml| {
                let mut functions = class.counts.functions.iter();
                functions.try_for_each(|function| method(xml, function))
            })?;
            xml.create_element("lines").write_inner_content(|xml| {
                let mut lines = class.counts.lines.iter();
                lines.try_for_each(|counted| line(xml, counted))
            })?;
            Ok(())
        })?;
    Ok(())
}

fn method<W: Write>(xml: &mut Writer<W>, function: &Definition) -> io::Result<()> {
    let covered = if function.count > 0 { "1" } else { "0" };
    xml.create_element("method")
        .with_attributes([
            ("name", &*plain(function.name)),
            ("signature", &plain(&function.symbol)),
            ("line-rate", covered),
            ("branch-rate", covered),
            ("complexity", "0"),
        ])
        .write_inner_content(|xml| {
            xml.create_element("lines").write_inner_content(|xml| {
                xml.create_element("line")
                    .with_attributes([
                        ("number", &*function.line.to_string()),
                        ("hits", &function.count.to_string()),
                    ])
                    .write_empty()?;
                Ok(())
            })?;
            Ok(())
        })?;
    Ok(())
}

fn line<W: Write>(xml: &mut Writer<W>, line: &Counted) -> io::Result<()> {
    let number = line.number.to_string();
    let hits = line.count.to_string();
    let element = xml
        .create_element("line")
        .with_attributes([("number", &*number), ("hits", &hits)]);
    if line.conditions.is_empty() {
        element.with_attribute(("branch", "false")).write_empty()?;
        return Ok(());
    }
    let both = |(taken, not_taken): &(u64, u64)| Ratio::of([*taken, *not_taken]);
    let mut all = Ratio::default();
    line.conditions
        .iter()
        .for_each(|condition| all.add(both(condition)));
    let coverage = format!("{} ({}/{})", percent(all), all.covered, all.total);
    element
        .with_attributes([("branch", "true"), ("condition-coverage", &*coverage)])
        .write_inner_content(|xml| {
            xml.create_element("conditions")
                .write_inner_content(|xml| {
                    for (index, condition) in line.conditions.iter().enumerate() {
                        xml.create_element("condition")
                            .with_attributes([
                                ("number", &*index.to_string()),
                                ("type", "jump"),
                                ("coverage", &percent(both(condition))),
                            ])
                            .write_empty()?;
                    }
                    Ok(())
                })?;
            Ok(())
        })?;
    Ok(())
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

/// The text without characters that XML cannot represent, even escaped.
fn plain(text: &str) -> Cow<'_, str> {
    let is_invalid = |c: char| {
        (c.is_control() && !matches!(c, '\t' | '\n' | '\r')) || matches!(c, '\u{fffe}' | '\u{ffff}')
    };
    match text.contains(is_invalid) {
        true => text.replace(is_invalid, "\u{fffd}").into(),
        false => text.into(),
    }
}
