//! The operations of each architecture, with their opcodes and operands. Decoder, assembly text and executors use these
//! tables. [`rows`] has one row for all architectures; an architecture's table is expanded from it before its first use.

mod generation;
mod kind;
mod rows;
mod spec;

pub use kind::{Kind, flag};
pub use rows::Op;
pub use spec::Spec;

use std::sync::OnceLock;

use super::architecture::Architecture;
use super::encoding::Encoding;
use rows::{OTHERS, ROWS};

/// The operations of an architecture, by opcode and by operation.
struct Table {
    specs: &'static [Spec],
    by_code: Vec<[Option<&'static Spec>; 1024]>,
    by_op: Vec<Option<&'static Spec>>,
}

impl Table {
    fn new(arch: Architecture) -> Table {
        let rows = [ROWS, OTHERS].into_iter().flatten().copied().flatten();
        let specs: Vec<Spec> = rows
            .flat_map(|row| (0..row.ops.len()).filter_map(move |i| Spec::new(row, i, arch)))
            .collect();
        let mut table = Table {
            specs: specs.leak(),
            by_code: vec![[None; 1024]; Encoding::COUNT],
            by_op: vec![None; Op::ALL.len()],
        };
        for spec in table.specs {
            let code = &mut table.by_code[spec.format as usize][usize::from(spec.code)];
            assert!(code.is_none(), "two rows with one opcode: {spec:?}");
            *code = Some(spec);
            let first = *table.by_op[spec.op as usize].get_or_insert(spec);
            let unique = first == spec || first.format != spec.format;
            assert!(unique, "two rows with one operation: {spec:?}");
        }
        table
    }
}

impl Architecture {
    fn table(self) -> &'static Table {
        static TABLES: [OnceLock<Table>; 4] = [const { OnceLock::new() }; 4];
        TABLES[self as usize].get_or_init(|| Table::new(self))
    }

    /// The operation's first row, if the architecture has the operation.
    pub fn row(self, op: Op) -> Option<&'static Spec> {
        self.table().by_op[op as usize]
    }

    /// The rows of all operations of the architecture.
    pub fn rows(self) -> impl Iterator<Item = &'static Spec> {
        self.table().specs.iter()
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
