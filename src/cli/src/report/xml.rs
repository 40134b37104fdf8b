//! Writing XML.

use quick_xml::Writer;
use std::borrow::Cow;
use std::io::{self, Write};

/// Writes an element. `inner` writes its contents.
pub fn element<W: Write>(
    xml: &mut Writer<W>,
    name: &str,
    attributes: &[(&str, &str)],
    inner: impl FnOnce(&mut Writer<W>) -> io::Result<()>,
) -> io::Result<()> {
    let element = xml.create_element(name);
    let element = element.with_attributes(attributes.iter().copied());
    element.write_inner_content(inner).map(drop)
}

/// The text without characters that XML cannot represent, even escaped.
pub fn plain(text: &str) -> Cow<'_, str> {
    let is_invalid = |c: char| {
        (c.is_control() && !matches!(c, '\t' | '\n' | '\r')) || matches!(c, '\u{fffe}' | '\u{ffff}')
    };
    if text.contains(is_invalid) {
        return text.replace(is_invalid, "\u{fffd}").into();
    }
    text.into()
}
