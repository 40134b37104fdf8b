//! The operations of each architecture, with their opcodes and operands. Decoder, assembly text and executors use these
//! tables.
//!
//! The syntax of a row is `opcode NAME: destinations = sources | flags;`, with operands in the assembler's order. If LLVM's
//! mnemonic for the architecture is not the operation's name, the row is `opcode NAME as MNEMONIC: …`. The `_e64` forms of
//! VOP1, VOP2 and VOPC do not have their own rows.

mod gfx11;
mod gfx9;
mod spec;

pub use spec::{Kind, Spec, flag};

use super::architecture::Architecture;
use super::encoding::Encoding;
use super::op::Op;

const FORMATS: usize = Encoding::COUNT;

/// The operations of an architecture, by opcode and by operation.
struct Table {
    by_code: [[Option<&'static Spec>; 1024]; FORMATS],
    by_op: [Option<&'static Spec>; Op::ALL.len()],
}

impl Table {
    const fn new(parts: &[&'static [Spec]]) -> Table {
        let mut table = Table {
            by_code: [[None; 1024]; FORMATS],
            by_op: [None; Op::ALL.len()],
        };
        let mut part = 0;
        while part < parts.len() {
            let mut i = 0;
            while i < parts[part].len() {
                let row = &parts[part][i];
                let code = &mut table.by_code[row.format as usize][row.code as usize];
                assert!(code.is_none(), "two rows with one opcode");
                *code = Some(row);
                let op = &mut table.by_op[row.op as usize];
                assert!(op.is_none(), "two rows with one operation");
                *op = Some(row);
                i += 1;
            }
            part += 1;
        }
        table
    }
}

static GFX11: Table = Table::new(&[gfx11::ROWS]);
static GFX90A: Table = Table::new(&[gfx9::ROWS, gfx9::GFX90A]);
static GFX942: Table = Table::new(&[gfx9::ROWS, gfx9::GFX942]);

impl Architecture {
    fn table(self) -> &'static Table {
        match self {
            Architecture::Gfx11 => &GFX11,
            Architecture::Gfx90a => &GFX90A,
            Architecture::Gfx942 => &GFX942,
        }
    }

    /// The operation's row, if the architecture has the operation.
    pub fn row(self, op: Op) -> Option<&'static Spec> {
        self.table().by_op[op as usize]
    }

    /// The rows of all operations of the architecture.
    pub fn rows(self) -> impl Iterator<Item = &'static Spec> {
        self.table().by_op.iter().filter_map(|row| *row)
    }

    /// The row with this opcode in the format's table.
    pub(super) fn lookup(self, format: Encoding, code: u32) -> Option<&'static Spec> {
        *self.table().by_code[format as usize].get(code as usize)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_belongs_to_an_architecture() {
        for &op in Op::ALL {
            let known = Architecture::ALL.iter().any(|arch| arch.row(op).is_some());
            assert!(known, "{op:?}");
        }
    }
}
