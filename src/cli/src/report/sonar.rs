//! SonarQube's generic test coverage (sonar-generic-coverage.xsd): the lines of each file, and the branches on them.

use super::counts::{Counted, Counts, Which};
use super::model::{Ratio, Report};
use super::paths;
use super::xml::{element, plain};
use quick_xml::Writer;
use std::io::{self, Write};
use std::path::Path;

/// The name of the file in the directory of a report. Another file of this name gets this format, too.
pub const NAME: &str = "sonar.xml";

pub fn is_name(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == NAME)
}

pub fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let root = paths::root(report);
    let mut xml = Writer::new_with_indent(out, b' ', 1);
    element(&mut xml, "coverage", &[("version", "1")], |xml| {
        for (file, counts) in Counts::of_files(report, Which::All) {
            let path = plain(paths::below(&root, file.location()));
            element(xml, "file", &[("path", &*path)], |xml| {
                counts.lines.iter().try_for_each(|own| line(xml, own))
            })?;
        }
        Ok(())
    })?;
    xml.get_mut().write_all(b"\n")
}

fn line<W: Write>(xml: &mut Writer<W>, line: &Counted) -> io::Result<()> {
    let number = line.number.to_string();
    let covered = if line.count > 0 { "true" } else { "false" };
    let mut element = xml.create_element("lineToCover");
    element = element.with_attributes([("lineNumber", &*number), ("covered", covered)]);
    if !line.conditions.is_empty() {
        let branches = Ratio::of_conditions(&line.conditions);
        element = element.with_attributes([
            ("branchesToCover", &*branches.total.to_string()),
            ("coveredBranches", &*branches.covered.to_string()),
        ]);
    }
    element.write_empty().map(drop)
}
