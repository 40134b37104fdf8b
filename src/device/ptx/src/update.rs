//! The code that clears flags.
//!
//! A kernel without calls keeps the blocks that a thread has entered in registers, a bit each, and clears their flags where the
//! thread ends. An instruction per block then, and nothing that waits for memory. Other functions clear each flag in its block: a
//! called function may end the thread, and in a function that is called often, the loads at its end cost more than those that they
//! replace.

use crate::blocks::Graph;
use crate::flags::Flags;
use crate::parse::{Function, Kind};
use std::fmt::Write;

/// Names of registers. No compiler has such names.
const FLAG: &str = "%__devprof_flag";
const TEST: &str = "%__devprof_is_new";
const NOT_ENTERED: &str = "%__devprof_not_entered";
const WORD: &str = "%__devprof_word";
const BYTES: &str = "%__devprof_bytes";

/// Flags that are loaded at once: a word.
const FLAGS: usize = 4;
/// Words in one register.
const WORDS: usize = 8;
/// The largest number of flags that a thread keeps in registers.
const MOST: usize = 2 * WORDS * FLAGS;
/// The selector of `prmt` that fills each byte with its highest bit.
const SIGNS: u32 = 0xba98;
/// The table of `lop3` for `a & ~b`.
const WITHOUT: u32 = 0xf0 & !0xcc;
/// Of all ends of a kernel, the largest number of words of flags that are cleared there.
const MOST_WORDS: usize = 64;

/// Positions in the module, and what is inserted there. `variable`: the flags' name.
pub fn insertions(
    function: &Function,
    graph: &Graph,
    flags: &Flags,
    variable: &str,
) -> Vec<(usize, String)> {
    match ends(function, graph, flags.number) {
        Some(ends) => at_ends(function, graph, flags, variable, &ends),
        None => in_blocks(function, graph, flags, variable),
    }
}

/// The positions of all instructions that end the kernel. `None`: its flags are cleared in the blocks.
fn ends(function: &Function, graph: &Graph, flags: usize) -> Option<Vec<usize>> {
    let is_entered_once = graph.blocks[0].predecessors.is_empty();
    let is_small = (2..=MOST).contains(&flags);
    if !function.is_kernel || !is_entered_once || graph.has_open_end || !is_small {
        return None;
    }
    let mut ends = Vec::new();
    for statement in &function.statements {
        match statement.kind {
            Kind::Instruction {
                operation: "call", ..
            } => return None,
            Kind::Instruction {
                operation: "ret" | "exit",
                ..
            } => ends.push(statement.at),
            _ => {}
        }
    }
    (ends.len() * flags.div_ceil(FLAGS) <= MOST_WORDS).then_some(ends)
}

/// The register and the bit of a flag. Each byte of a register has flags that are at the same position of their words. The highest
/// bits are those of the register's first word.
fn bit(flag: usize) -> (usize, u32) {
    let word = flag / FLAGS;
    let in_byte = 7 - word % WORDS;
    (word / WORDS, 1 << (8 * (flag % FLAGS) + in_byte))
}

/// A thread's registers: the bit of a flag is 0 if the thread has entered a block of it.
fn at_ends(
    function: &Function,
    graph: &Graph,
    flags: &Flags,
    variable: &str,
    ends: &[usize],
) -> Vec<(usize, String)> {
    let registers = flags.number.div_ceil(WORDS * FLAGS);
    let mut insertions = vec![(
        function.body,
        format!(
            "\n\t.reg .b32 {NOT_ENTERED}<{registers}>;\n\t.reg .b32 {WORD};\n\t.reg .b32 {BYTES};\n\t.reg .pred {TEST};"
        ),
    )];
    let ones = (0..registers).map(|n| format!("mov.b32 {NOT_ENTERED}{n}, -1;\n\t"));
    insertions.push((graph.blocks[0].start, ones.collect()));
    for &(block, flag) in &flags.locations {
        let (register, bit) = bit(flag as usize);
        let register = format!("{NOT_ENTERED}{register}");
        let text = format!("and.b32 {register}, {register}, {};\n\t", !bit);
        insertions.push((graph.blocks[block].start, text));
    }
    let mut text = String::new();
    for first in (0..flags.number).step_by(FLAGS) {
        let (register, bit) = bit(first);
        // The bits become the highest of their bytes, and fill them. Flags are 0xff or 0. A word's other bytes
        // belong to other variables, and are not changed.
        let _ = write!(
            text,
            "shl.b32 {BYTES}, {NOT_ENTERED}{register}, {};\n\t\
             prmt.b32 {BYTES}, {BYTES}, 0, {SIGNS};\n\t\
             ld.global.b32 {WORD}, [{variable}+{first}];\n\t\
             lop3.b32 {WORD}, {WORD}, {BYTES}, 0, {WITHOUT};\n\t\
             setp.ne.b32 {TEST}, {WORD}, 0;\n\t\
             @{TEST} red.global.and.b32 [{variable}+{first}], {BYTES};\n\t",
            7 - bit.trailing_zeros()
        );
    }
    insertions.extend(ends.iter().map(|at| (*at, text.clone())));
    insertions
}

fn in_blocks(
    function: &Function,
    graph: &Graph,
    flags: &Flags,
    variable: &str,
) -> Vec<(usize, String)> {
    let mut insertions = vec![(
        function.body,
        format!("\n\t.reg .b16 {FLAG};\n\t.reg .pred {TEST};"),
    )];
    for (block, flag) in &flags.locations {
        let address = format!("[{variable}+{flag}]");
        let text = format!(
            "ld.global.u8 {FLAG}, {address};\n\tsetp.ne.u16 {TEST}, {FLAG}, 0;\n\t@{TEST} st.global.u8 {address}, 0;\n\t"
        );
        insertions.push((graph.blocks[*block].start, text));
    }
    insertions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::Lines;
    use crate::parse::{self, tests::HEADER};
    use std::collections::HashSet;

    /// What is inserted into a function, in its order: `e` for a block that a thread has entered, `c` for a flag that is cleared in
    /// its block, `w` for a word of flags at an end.
    fn inserted(kind: &str, body: &str) -> String {
        let text = format!("{HEADER}{kind} k() {{\n.loc 1 9999 1\n{body}\n}}");
        let module = parse::module(&text).unwrap();
        let function = &module.functions[0];
        let graph = Graph::new(function).unwrap();
        let lines = Lines::new(function, &graph, &HashSet::new());
        let flags = Flags::new(&graph, &lines);
        let mut all = insertions(function, &graph, &flags, "flags");
        all.sort_by_key(|(at, _)| *at);
        let all: String = all.into_iter().map(|(_, text)| text).collect();
        let signs = all.split(['\n', '\t', ';']).filter_map(|line| {
            let start = line.split(' ').next().unwrap_or_default();
            match start {
                "and.b32" => Some('e'),
                "ld.global.u8" => Some('c'),
                "ld.global.b32" => Some('w'),
                _ => None,
            }
        });
        signs.collect()
    }

    /// A body with so many flags, and one end.
    fn body(flags: usize) -> String {
        let mut text = String::new();
        for n in 1..flags {
            text += &format!(
                ".loc 1 {n} 1\na; @p bra L{n}; .loc 1 {} 1\nb; L{n}: ",
                1000 + n
            );
        }
        text + "ret;"
    }

    #[test]
    fn kernels_without_calls_clear_their_flags_where_they_end() {
        assert_eq!(inserted(".entry", &body(2)), "eew");
        assert_eq!(inserted(".entry", &body(5)), "eeeeeww");
        assert_eq!(
            inserted(
                ".entry",
                "a; @p ret; .loc 1 1 1\nb; @q exit; .loc 1 2 1\nc; ret;"
            ),
            "ewewew"
        );
        // The last block ends the kernel, or does not end. A label that no branch has follows (LLVM).
        for last in ["trap;", "L: bra L;", "bra L; c; L: trap; end: .loc 1 2 1\n"] {
            let body = format!("a; @p ret; .loc 1 1 1\nb; {last}");
            assert_eq!(inserted(".entry", &body), "ewe");
        }
    }

    #[test]
    fn other_functions_clear_them_in_their_blocks() {
        assert_eq!(inserted(".func", &body(2)), "cc");
        assert_eq!(inserted(".entry", &body(1)), "c");
        assert_eq!(inserted(".entry", &format!("call f; {}", body(2))), "cc");
        assert_eq!(inserted(".entry", &body(MOST + 1)), "c".repeat(MOST + 1));
        assert_eq!(inserted(".entry", &body(MOST)).len(), MOST + MOST / FLAGS);
        // The entry is in a loop; control reaches the end of the text; it has very many ends.
        assert_eq!(
            inserted(".entry", &format!("L: c; @r bra L; {}", body(2))),
            "cc"
        );
        for last in ["", "@q ret;", "@q bra L; ret; L:"] {
            let body = format!("a; @p ret; .loc 1 1 1\nb; {last}");
            assert_eq!(inserted(".entry", &body), "cc", "{last}");
        }
        assert_eq!(
            inserted(".entry", &format!("{}{}", "@p ret; ".repeat(99), body(9))),
            "c".repeat(10)
        );
    }

    /// The arithmetic of the code at the ends.
    #[test]
    fn bits_become_bytes() {
        let all: HashSet<(usize, u32)> = (0..MOST).map(bit).collect();
        assert_eq!(all.len(), MOST);
        for first in (0..MOST).step_by(FLAGS) {
            let shift = 7 - bit(first).1.trailing_zeros();
            for entered in 0..16 {
                // Other flags of the register must not matter.
                for others in [0, u32::MAX] {
                    let (mut register, mut expected) = (others, [0; FLAGS]);
                    for (n, byte) in expected.iter_mut().enumerate() {
                        let own = bit(first + n);
                        assert_eq!(own.0, bit(first).0);
                        register &= !own.1;
                        if entered >> n & 1 == 0 {
                            register |= own.1;
                            *byte = 0xff;
                        }
                    }
                    let bytes = (register << shift).to_le_bytes();
                    let filled = bytes.map(|byte| ((byte as i8) >> 7) as u8);
                    assert_eq!(filled, expected);
                }
            }
        }
    }
}
