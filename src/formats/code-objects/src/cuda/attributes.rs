//! The attributes in `.nv.info`, `.nv.info.KERNEL` and `.nv.compat`: one after another, each with a format, a number and
//! a value. The names are those that cuobjdump prints.

pub const MAX_THREADS: u8 = 0x05;
pub const REQNTID: u8 = 0x10;
pub const FRAME_SIZE: u8 = 0x11;
pub const MIN_STACK_SIZE: u8 = 0x12;
pub const CBANK_PARAM_SIZE: u8 = 0x19;
pub const REGCOUNT: u8 = 0x2f;

/// Of `.nv.compat`: not 0 if the code uses features of only one architecture (`sm_90a`).
const ACCELERATOR_TARGET: u8 = 0x09;

/// An attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    pub number: u8,
    pub value: Value<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    None,
    Number(u16),
    Bytes(&'a [u8]),
}

/// The attributes in a section, up to the first one of an unknown format or that extends past the end.
pub fn all(mut section: &[u8]) -> impl Iterator<Item = Attribute<'_>> {
    std::iter::from_fn(move || {
        let (head, rest) = section.split_first_chunk::<4>()?;
        let short = u16::from_le_bytes([head[2], head[3]]);
        let (value, rest) = match head[0] {
            1 => (Value::None, rest),
            // A byte and its padding.
            2 => (Value::Number(short & 0xff), rest),
            3 => (Value::Number(short), rest),
            4 => {
                let (value, rest) = rest.split_at_checked(short.into())?;
                (Value::Bytes(value), rest)
            }
            _ => return None,
        };
        section = rest;
        Some(Attribute {
            number: head[1],
            value,
        })
    })
}

impl Attribute<'_> {
    /// The words of its value. Empty if it has another format.
    pub fn words(&self) -> impl Iterator<Item = u32> {
        let bytes = match self.value {
            Value::Bytes(bytes) => bytes,
            _ => &[],
        };
        let words = bytes.as_chunks().0.iter();
        words.map(|word| u32::from_le_bytes(*word))
    }

    /// The index of the symbol that it is about, and the value.
    pub fn of_symbol(&self) -> Option<(usize, u32)> {
        let mut words = self.words();
        Some((words.next()? as usize, words.next()?))
    }
}

/// Whether the code uses features of only one architecture. `compat`: `.nv.compat`.
pub fn is_architecture_specific(compat: &[u8]) -> bool {
    all(compat).any(|attribute| {
        attribute.number == ACCELERATOR_TARGET
            && matches!(attribute.value, Value::Number(value) if value != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_of_all_formats() {
        let section = [
            &[1, 7, 0, 0][..],
            &[2, 9, 1, 0xff],
            &[3, CBANK_PARAM_SIZE, 0x0c, 1],
            &[4, REGCOUNT, 8, 0, 54, 0, 0, 0, 30, 0, 0, 0],
        ]
        .concat();
        let found: Vec<_> = all(&section).collect();
        let numbers: Vec<u8> = found.iter().map(|attribute| attribute.number).collect();
        assert_eq!(numbers, [7, 9, CBANK_PARAM_SIZE, REGCOUNT]);
        assert_eq!(found[0].value, Value::None);
        assert_eq!(found[1].value, Value::Number(1));
        assert_eq!(found[2].value, Value::Number(0x10c));
        assert_eq!(found[3].of_symbol(), Some((54, 30)));
        assert_eq!(found[2].of_symbol(), None);
        assert!(is_architecture_specific(&section));
        assert!(!is_architecture_specific(&section[8..]));
        // A value that extends past the end, and an unknown format.
        assert_eq!(all(&section[..20]).count(), 3);
        assert_eq!(all(&[9, 1, 0, 0]).count(), 0);
    }
}
