//! The operations of each architecture, with their opcodes and operands. Decoder, assembly text and executors use these
//! tables. [`rows`] has one row for all architectures; the tables are expanded from it at compile time.

mod kind;
mod rows;
mod spec;

pub use kind::{Kind, flag};
pub use rows::Op;
pub use spec::Spec;

use super::architecture::Architecture;
use super::encoding::Encoding;
use rows::{OTHERS, ROWS};

/// The rows of an architecture. The other elements are `None`.
type Specs = [Option<Spec>; ROWS.len() + OTHERS.len()];

const fn specs(arch: Architecture) -> Specs {
    let mut specs = [const { None }; ROWS.len() + OTHERS.len()];
    let mut i = 0;
    while i < specs.len() {
        let row = if i < ROWS.len() {
            &ROWS[i]
        } else {
            &OTHERS[i - ROWS.len()]
        };
        specs[i] = Spec::new(row, arch);
        i += 1;
    }
    specs
}

/// The operations of an architecture, by opcode and by operation.
struct Table {
    by_code: [[Option<&'static Spec>; 1024]; Encoding::COUNT],
    by_op: [Option<&'static Spec>; Op::ALL.len()],
}

impl Table {
    const fn new(specs: &'static Specs) -> Table {
        let mut table = Table {
            by_code: [[None; 1024]; Encoding::COUNT],
            by_op: [None; Op::ALL.len()],
        };
        let mut i = 0;
        while i < specs.len() {
            if let Some(row) = &specs[i] {
                let code = &mut table.by_code[row.format as usize][row.code as usize];
                assert!(code.is_none(), "two rows with one opcode");
                *code = Some(row);
                let op = &mut table.by_op[row.op as usize];
                assert!(op.is_none(), "two rows with one operation");
                *op = Some(row);
            }
            i += 1;
        }
        table
    }
}

impl Architecture {
    fn table(self) -> &'static Table {
        static SPECS: [Specs; 3] = [
            specs(Architecture::Gfx11),
            specs(Architecture::Gfx90a),
            specs(Architecture::Gfx942),
        ];
        static TABLES: [Table; 3] = [
            Table::new(&SPECS[0]),
            Table::new(&SPECS[1]),
            Table::new(&SPECS[2]),
        ];
        &TABLES[self as usize]
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
