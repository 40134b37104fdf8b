//! The variables that are added to a module: their PTX, and their bytes.

use std::fmt;

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Of several modules' variables of this name, the linker keeps one.
    pub is_weak: bool,
    pub name: String,
    pub content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// So many flags that are not cleared. They are aligned to words of 4 bytes ([`update`](crate::update)).
    Flags(usize),
    Byte(u8),
    /// ptxas takes the square of the time for longer lists of bytes.
    Words(Vec<u64>),
    /// A function's record: the hashes of its name and of its mapping, the variable of its flags, and their number.
    Record {
        name: u64,
        hash: u64,
        flags: String,
        number: usize,
    },
}

impl Content {
    /// The bytes, and zeros up to a multiple of 8.
    pub fn words(bytes: &[u8]) -> Content {
        let words = bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        });
        Content::Words(words.collect())
    }

    /// The bytes. In a record, the pointer to the flags is null.
    pub fn bytes(&self) -> Vec<u8> {
        let of_words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
        match self {
            Content::Flags(number) => vec![0xff; *number],
            Content::Byte(byte) => vec![*byte],
            Content::Words(words) => of_words(words),
            Content::Record {
                name, hash, number, ..
            } => of_words(&[*name, *hash, 0, 0, 0, 0, 0, *number as u64, 0]),
        }
    }
}

impl Variable {
    pub fn weak(name: String, content: Content) -> Variable {
        Variable {
            is_weak: true,
            name,
            content,
        }
    }

    pub fn local(name: &str, content: Content) -> Variable {
        Variable {
            is_weak: false,
            name: name.to_owned(),
            content,
        }
    }
}

/// Its definition in PTX.
impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.is_weak {
            f.write_str(".weak ")?;
        }
        let (kind, (number, list)) = match &self.content {
            Content::Flags(number) => (".align 4 .b8", listed(&vec![0xff; *number])),
            Content::Byte(byte) => (".align 1 .b8", listed(&[*byte])),
            Content::Words(words) => (".align 8 .u64", listed(words)),
            // Uniform counters, values and bitmaps: none.
            Content::Record {
                name,
                hash,
                flags,
                number,
            } => {
                let list = format!("{name}, {hash}, generic({flags}), 0, 0, 0, 0, {number}, 0");
                (".align 8 .u64", (9, list))
            }
        };
        writeln!(f, ".global {kind} {}[{number}] = {{{list}}};", self.name)
    }
}

/// The number of elements, and the elements.
fn listed<T: fmt::Display>(list: &[T]) -> (usize, String) {
    let words: Vec<String> = list.iter().map(T::to_string).collect();
    (list.len(), words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_padded() {
        let content = Content::words(&[1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(
            content.bytes(),
            [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 0, 0, 0, 0]
        );
        let expected = ".weak .global .align 8 .u64 a[2] = {578437695752307201, 9};\n";
        assert_eq!(
            Variable::weak("a".to_owned(), content).to_string(),
            expected
        );
    }
}
