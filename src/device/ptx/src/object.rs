//! A cubin with the variables of an instrumented module, but without code.
//!
//! If the driver compiles PTX, nobody else sees the result. What reads profiles needs only the variables, which are known: this
//! file has them as the compiled cubin has.

use crate::variable::{Content, Variable};

/// `EM_CUDA`
const MACHINE: u16 = 190;
/// Since CUDA 13, the architecture is in the second byte of the flags (LLVM's ELF.h).
const ABI_VERSION: u8 = 8;
const HEADER: u64 = 64;
const SECTION_HEADER: u64 = 64;
const SYMBOL: u64 = 24;
const PROGBITS: u32 = 1;
const SYMTAB: u32 = 2;
const STRTAB: u32 = 3;
const NOBITS: u32 = 8;
const OBJECT: u8 = 1;
const FUNCTION: u8 = 2;
const GLOBAL: u8 = 1 << 4;
const WEAK: u8 = 2 << 4;
/// In `st_other`: the function is a kernel.
const ENTRY: u8 = 0x10;

/// The sections, in this order.
const CODE: u16 = 1;
const VARIABLES: u16 = 2;
const SYMBOLS: u16 = 3;
const NAMES: u16 = 4;
const SECTIONS: [(&str, u32); 5] = [
    ("", 0),
    (".text", NOBITS),
    (".nv.global.init", PROGBITS),
    (".symtab", SYMTAB),
    (".strtab", STRTAB),
];

/// The kernels and variables of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object {
    pub(crate) kernels: Vec<String>,
    pub(crate) variables: Vec<Variable>,
}

struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

impl Object {
    /// The cubin for an architecture, for example 90.
    pub fn cubin(&self, arch: u32) -> Vec<u8> {
        let mut names = vec![0];
        let mut name = |text: &str| {
            let at = names.len() as u32;
            names.extend(text.as_bytes());
            names.push(0);
            at
        };
        let section_names = SECTIONS.map(|(text, _)| if text.is_empty() { 0 } else { name(text) });
        let mut content = Vec::new();
        let mut symbols = Vec::new();
        for variable in &self.variables {
            // The pointer to the flags, which are found by their name, would need a relocation.
            let bytes = variable.content.bytes();
            if !matches!(variable.content, Content::Flags(_) | Content::Byte(_)) {
                content.resize(content.len().next_multiple_of(8), 0);
            }
            symbols.push(Symbol {
                name: name(&variable.name),
                info: OBJECT | if variable.is_weak { WEAK } else { 0 },
                other: 0,
                section: VARIABLES,
                value: content.len() as u64,
                size: bytes.len() as u64,
            });
            content.extend(bytes);
        }
        symbols.extend(self.kernels.iter().map(|kernel| Symbol {
            name: name(kernel),
            info: FUNCTION | GLOBAL,
            other: ENTRY,
            section: CODE,
            value: 0,
            size: 0,
        }));
        // Local symbols come first, after the null symbol.
        symbols.sort_by_key(|symbol| symbol.info >= GLOBAL);
        let locals = 1 + symbols.iter().filter(|symbol| symbol.info < GLOBAL).count() as u32;
        let mut table = vec![0; SYMBOL as usize];
        for symbol in &symbols {
            table.extend(symbol.name.to_le_bytes());
            table.extend([symbol.info, symbol.other]);
            table.extend(symbol.section.to_le_bytes());
            table.extend(symbol.value.to_le_bytes());
            table.extend(symbol.size.to_le_bytes());
        }
        content.resize(content.len().next_multiple_of(8), 0);
        names.resize(names.len().next_multiple_of(8), 0);

        let sizes = [0, 0, content.len(), table.len(), names.len()].map(|size| size as u64);
        let end = HEADER + sizes.iter().sum::<u64>();
        let mut file = b"\x7fELF\x02\x01\x01\x41".to_vec();
        file.push(ABI_VERSION);
        file.resize(16, 0);
        // ET_EXEC
        file.extend([2, MACHINE].map(u16::to_le_bytes).as_flattened());
        file.extend(1u32.to_le_bytes());
        // Entry, program headers, section headers.
        file.extend([0, 0, end].map(u64::to_le_bytes).as_flattened());
        file.extend((arch << 8).to_le_bytes());
        let count = SECTIONS.len() as u16;
        let rest = [HEADER as u16, 56, 0, SECTION_HEADER as u16, count, NAMES];
        file.extend(rest.map(u16::to_le_bytes).as_flattened());
        for part in [content, table, names] {
            file.extend(part);
        }
        let mut at = HEADER;
        for (n, (_, kind)) in SECTIONS.into_iter().enumerate() {
            let is_table = n == usize::from(SYMBOLS);
            let link = if is_table { u32::from(NAMES) } else { 0 };
            let info = if is_table { locals } else { 0 };
            let element = if is_table { SYMBOL } else { 0 };
            file.extend(
                [section_names[n], kind]
                    .map(u32::to_le_bytes)
                    .as_flattened(),
            );
            // Flags, address.
            file.extend([0, 0, at, sizes[n]].map(u64::to_le_bytes).as_flattened());
            file.extend([link, info].map(u32::to_le_bytes).as_flattened());
            file.extend([8, element].map(u64::to_le_bytes).as_flattened());
            at += sizes[n];
        }
        file
    }
}
