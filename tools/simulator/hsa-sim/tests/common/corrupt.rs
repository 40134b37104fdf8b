//! Corrupt code objects: real ones with one to four changes in their tables, records, section bounds, symbols, names or
//! headers. The simulator checks every copy, and ends the process if a copy leaves the loaded segments. Nothing may panic,
//! every profile must be readable, and a valid code object that is loaded at the same time must always have a complete
//! profile.

use crate::common::{RAW10, RAW11, Session, fixtures};
use goblin::elf::Elf;
use goblin::elf::program_header::PT_LOAD;
use std::ops::Range;

/// The number of code objects that are loaded at the same time.
const BATCH: usize = 20;

/// A xorshift generator, with the same numbers in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn choose<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn within(&mut self, range: &Range<usize>) -> usize {
        range.start + self.below(range.len())
    }
}

/// The offsets of data in a code object's file that a drain reads.
struct Offsets {
    /// The addends of relocations, which are the words of the tables.
    addends: Vec<usize>,
    symbols: Range<usize>,
    strings: Range<usize>,
    names: Range<usize>,
    records: Range<usize>,
    record: usize,
    head: Range<usize>,
    /// The offset of the table's name in the strings.
    table_name: u32,
}

impl Offsets {
    fn of(file: &[u8], record: usize) -> Offsets {
        let elf = Elf::parse(file).expect("a fixture");
        let section = |name: &str| {
            let mut all = elf.section_headers.iter();
            let found = all.find(|s| elf.shdr_strtab.get_at(s.sh_name) == Some(name));
            let found = found.expect(name);
            found.sh_offset as usize..(found.sh_offset + found.sh_size) as usize
        };
        let relocations = section(".rela.dyn");
        let table = elf
            .dynsyms
            .iter()
            .find(|symbol| elf.dynstrtab.get_at(symbol.st_name) == Some("__llvm_profile_sections"));
        let headers = elf.program_headers.iter().filter(|h| h.p_type == PT_LOAD);
        assert_eq!(headers.count(), 4, "a fixture of lld");
        Offsets {
            addends: relocations.step_by(24).map(|at| at + 16).collect(),
            symbols: section(".dynsym"),
            strings: section(".dynstr"),
            names: section("__llvm_prf_names"),
            records: section("__llvm_prf_data"),
            record,
            head: 0..section(".dynsym").start,
            table_name: table.expect("the table").st_name as u32,
        }
    }
}

/// A number that triggers errors in arithmetic and bounds checks.
fn hostile(random: &mut Random, near: u64) -> u64 {
    match random.below(8) {
        0 => 0,
        1 => u64::MAX,
        2 => near.wrapping_add(random.next() % 64).wrapping_sub(32),
        3 => near
            .wrapping_add(random.next() % 0x4000)
            .wrapping_sub(0x2000),
        4 => 1 << random.below(64),
        5 => near.wrapping_neg(),
        6 => near ^ 1 << random.below(64),
        _ => random.next(),
    }
}

fn read(file: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(file[at..at + 8].try_into().expect("8"))
}

fn write(file: &mut [u8], at: usize, size: usize, value: u64) {
    file[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
}

fn mutate(file: &mut [u8], offsets: &Offsets, random: &mut Random) {
    match random.below(8) {
        // A word of a table, such as the bounds of a section.
        0 | 1 => {
            let at = random.choose(&offsets.addends);
            let value = hostile(random, read(file, at));
            write(file, at, 8, value);
        }
        // A field of a record.
        2 | 3 => {
            let records = offsets.records.len() / offsets.record;
            let at = offsets.records.start + random.below(records) * offsets.record;
            let at = at + 4 * random.below(offsets.record / 4 - 1);
            let size = random.choose(&[2, 4, 8]);
            let value = hostile(random, read(file, at));
            write(file, at, size, value);
        }
        // A symbol's name, address or size.
        4 => {
            let symbol = offsets.symbols.start + 24 * random.below(offsets.symbols.len() / 24);
            let (address, size) = (symbol + 8, symbol + 16);
            match random.below(4) {
                0 => write(file, symbol, 4, u64::from(offsets.table_name)),
                1 => write(file, address, 8, random.next() % 0x6000),
                2 => {
                    let sizes = [0, 8, 48, 56, 64, 72, 1 << 20, 1 << 32 | 56];
                    write(file, size, 8, random.choose(&sizes));
                }
                _ => {
                    let at = random.choose(&[address, size]);
                    let value = hostile(random, read(file, at));
                    write(file, at, 8, value);
                }
            }
        }
        // The strings of symbols, the names of functions, the headers.
        5 => file[random.within(&offsets.strings)] = random.next() as u8,
        6 => file[random.within(&offsets.names)] = random.next() as u8,
        _ => {
            let at = random.within(&offsets.head);
            file[at] ^= 1 << random.below(8);
        }
    }
}

/// Drains `wanted` corrupt code objects.
pub fn drain(test: &str, wanted: usize, seed: u64) {
    let session = Session::start(test, &[("DEVPROF_SYNC_MS", "5000")]);
    let gpu = session.gpus[0];
    let originals = [
        (RAW10, Offsets::of(RAW10, 64)),
        (RAW11, Offsets::of(RAW11, 72)),
    ];
    let good = session.load(gpu, RAW11);
    session.run(good, gpu);
    let table = session.variable(good, gpu, "__llvm_profile_sections");
    assert_ne!(table, 0);
    let mut random = Random(seed);
    let (mut drained, mut refused, mut lost, mut kept) = (0, 0, 0, 0);
    while drained < wanted {
        let mut files = Vec::new();
        let mut loaded = Vec::new();
        while loaded.len() < BATCH {
            let (original, offsets) = &originals[random.below(2)];
            let mut file = original.to_vec();
            for _ in 0..1 + random.below(4) {
                mutate(&mut file, offsets, &mut random);
            }
            match session.try_load(gpu, &file) {
                Ok(executable) => loaded.push(executable),
                Err(_) => refused += 1,
            }
            files.push(file);
        }
        let (result, stderr) = session.collect();
        assert!(
            !stderr.contains("panicked") && !stderr.contains("internal error"),
            "{stderr}"
        );
        assert!(
            stderr.lines().all(|line| line.starts_with("devprof: ")),
            "{stderr}"
        );
        assert!(result == 0 || result == -1);
        lost += usize::from(result == -1);
        let profiles = session.take_profiles();
        assert_eq!(
            fixtures(&profiles, 1),
            1,
            "the valid code object, after {drained}: {profiles:?}"
        );
        kept += profiles.len() - 1;
        drained += loaded.len();
        loaded
            .into_iter()
            .for_each(|executable| session.unload(executable));
    }
    eprintln!(
        "{drained} drained, {refused} refused by the loader, {kept} with a profile, {lost} collects with a loss"
    );
    // Most code objects must be valid enough to be drained, and most batches must have one whose corruption is detected.
    assert!(
        lost > wanted / BATCH / 2 && kept > wanted / 4,
        "the mutations are too weak or too strong"
    );
}
