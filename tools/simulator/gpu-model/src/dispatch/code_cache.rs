//! A cache of decoded instructions by address.
//!
//! A program can unload a code object and load another one at the same address, so a decoded instruction is valid only
//! while the words in memory are the same. Each page is compared with memory before its first use in a dispatch.

use std::collections::HashMap;

use crate::fault::Fault;
use crate::isa::{self, Architecture, Inst};
use crate::memory::{Storage, View};

const PAGE_WORDS: usize = 1024;
const PAGE_BYTES: u64 = 4 * PAGE_WORDS as u64;

struct Page {
    number: u64,
    /// The cache's epoch when the words were last compared with memory.
    epoch: u64,
    /// The part of the page that is allocated, in words.
    valid: std::ops::Range<usize>,
    words: Box<[u32; PAGE_WORDS]>,
    decoded: Box<[Option<Inst>; PAGE_WORDS]>,
}

/// The cache of one thread.
pub struct CodeCache {
    arch: Architecture,
    pages: Vec<Page>,
    by_number: HashMap<u64, usize>,
    current: usize,
    epoch: u64,
    /// The last instruction that crossed a page boundary. Such instructions are not cached.
    straddling: Option<Inst>,
}

/// The cache is cleared when it has this many pages. An `Inst` has about 60 bytes, so a page takes about 64 KiB.
const MAX_PAGES: usize = 512;

impl CodeCache {
    pub fn new(arch: Architecture) -> CodeCache {
        CodeCache {
            arch,
            pages: Vec::new(),
            by_number: HashMap::new(),
            current: usize::MAX,
            epoch: 0,
            straddling: None,
        }
    }

    fn illegal(&self) -> Fault {
        Fault::Illegal(self.arch.name())
    }

    /// From now on, memory may hold different code.
    pub fn invalidate(&mut self) {
        self.epoch += 1;
        self.current = usize::MAX;
    }

    /// The instruction at `pc`.
    #[inline]
    pub fn fetch(&mut self, pc: u64, memory: &mut View) -> Result<&Inst, Fault> {
        let current = self.current;
        let hit = self
            .pages
            .get(current)
            .is_some_and(|page| page.number == pc / PAGE_BYTES);
        let index = if hit {
            current
        } else {
            self.load_page(pc, memory)?
        };
        let word = (pc % PAGE_BYTES / 4) as usize;
        if self.pages[index].decoded[word].is_none() || !pc.is_multiple_of(4) {
            return self.decode(index, pc, memory);
        }
        Ok(self.pages[index].decoded[word]
            .as_ref()
            .expect("checked above"))
    }

    /// Makes the page of `pc` the current one.
    #[cold]
    fn load_page(&mut self, pc: u64, memory: &mut View) -> Result<usize, Fault> {
        let number = pc / PAGE_BYTES;
        let known = self.by_number.get(&number).copied();
        if let Some(index) = known
            && self.pages[index].epoch == self.epoch
            && self.pages[index].valid.contains(&word_of(pc))
        {
            self.current = index;
            return Ok(index);
        }
        let (words, valid) = read_page(pc, memory)?;
        let index = match known {
            Some(index) => {
                let page = &mut self.pages[index];
                if page.words != words || page.valid != valid {
                    page.decoded.fill(None);
                    page.words = words;
                    page.valid = valid;
                }
                page.epoch = self.epoch;
                index
            }
            None => {
                if self.pages.len() == MAX_PAGES {
                    self.pages.clear();
                    self.by_number.clear();
                }
                self.pages.push(Page {
                    number,
                    epoch: self.epoch,
                    valid,
                    words,
                    decoded: Box::new([const { None }; PAGE_WORDS]),
                });
                self.by_number.insert(number, self.pages.len() - 1);
                self.pages.len() - 1
            }
        };
        self.current = index;
        Ok(index)
    }

    #[cold]
    fn decode(&mut self, index: usize, pc: u64, memory: &mut View) -> Result<&Inst, Fault> {
        if !pc.is_multiple_of(4) {
            return Err(self.illegal());
        }
        let word = word_of(pc);
        if !self.pages[index].valid.contains(&word) {
            // The page has a gap between the words that have been read and this one: read the part around this one.
            self.invalidate();
            let index = self.load_page(pc, memory)?;
            return self.decode(index, pc, memory);
        }
        let (arch, illegal) = (self.arch, self.illegal());
        let page = &mut self.pages[index];
        let available = &page.words[word..page.valid.end];
        if available.len() >= 3 {
            let inst = isa::decode(arch, available).map_err(|_| illegal)?;
            return Ok(page.decoded[word].insert(inst));
        }
        let mut words = available.to_vec();
        while words.len() < 3 {
            match memory.load_u32(pc + 4 * words.len() as u64) {
                Ok(next) => words.push(next),
                // The code ends here, but the instruction may be short enough.
                Err(_) => break,
            }
        }
        let inst = isa::decode(arch, &words).map_err(|_| illegal)?;
        if usize::from(inst.len) <= 4 * available.len() {
            return Ok(page.decoded[word].insert(inst));
        }
        Ok(self.straddling.insert(inst))
    }
}

fn word_of(pc: u64) -> usize {
    (pc % PAGE_BYTES / 4) as usize
}

type Words = (Box<[u32; PAGE_WORDS]>, std::ops::Range<usize>);

/// The words of the page around `pc` that are allocated without a gap.
fn read_page(pc: u64, memory: &mut View) -> Result<Words, Fault> {
    let start = pc / PAGE_BYTES * PAGE_BYTES;
    let mut words = Box::new([0; PAGE_WORDS]);
    if memory.load_dwords(start, &mut words[..]).is_ok() {
        return Ok((words, 0..PAGE_WORDS));
    }
    let at = word_of(pc);
    words[at] = memory.load_u32(start + 4 * at as u64)?;
    let mut valid = at..at + 1;
    while valid.start > 0 {
        match memory.load_u32(start + 4 * (valid.start as u64 - 1)) {
            Ok(word) => words[valid.start - 1] = word,
            Err(_) => break,
        }
        valid.start -= 1;
    }
    while valid.end < PAGE_WORDS {
        match memory.load_u32(start + 4 * valid.end as u64) {
            Ok(word) => words[valid.end] = word,
            Err(_) => break,
        }
        valid.end += 1;
    }
    Ok((words, valid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Op;
    use crate::memory::Memory;

    const START: u64 = 0x10_0000;

    /// Memory of two pages at [`START`], with these words at `address`.
    fn code(address: u64, words: &[u32]) -> (Vec<u32>, View) {
        let mut bytes = vec![0; 2 * PAGE_WORDS];
        let at = (address - START) as usize / 4;
        bytes[at..at + words.len()].copy_from_slice(words);
        let memory = Memory::new((bytes.as_ptr() as usize).wrapping_sub(START as usize));
        // SAFETY: the bytes are returned with the view, and every test keeps both.
        unsafe { memory.allocated(START, 2 * PAGE_BYTES, false) };
        (bytes, View::new(memory))
    }

    /// s_mov_b32 s0, 0x12345678
    const MOVE: [u32; 2] = [0xbe80_00ff, 0x1234_5678];
    /// s_endpgm
    const END: u32 = 0xbfb0_0000;

    #[test]
    fn an_instruction_can_cross_a_page_boundary() {
        let (mut bytes, mut view) = code(START + PAGE_BYTES - 4, &MOVE);
        let mut code = CodeCache::new(Architecture::Gfx11);
        let inst = code.fetch(START + PAGE_BYTES - 4, &mut view).unwrap();
        assert_eq!((inst.len, inst.literal), (8, 0x1234_5678));
        // A change of its second half only.
        bytes[PAGE_WORDS] = 9;
        code.invalidate();
        let inst = code.fetch(START + PAGE_BYTES - 4, &mut view).unwrap();
        assert_eq!(inst.literal, 9);
    }

    #[test]
    fn the_last_instruction_before_the_end_of_memory() {
        let end = START + 2 * PAGE_BYTES;
        let (_bytes, mut view) = code(end - 4, &[END]);
        let mut code = CodeCache::new(Architecture::Gfx11);
        assert_eq!(code.fetch(end - 4, &mut view).unwrap().op, Op::S_ENDPGM);
        assert!(matches!(
            code.fetch(end, &mut view),
            Err(Fault::Memory { address, .. }) if address == end
        ));
        // A literal outside of the memory.
        let (_bytes, mut view) = self::code(end - 4, &MOVE[..1]);
        assert_eq!(
            CodeCache::new(Architecture::Gfx11).fetch(end - 4, &mut view),
            Err(Fault::Illegal("gfx1100"))
        );
    }

    #[test]
    fn a_page_is_read_on_both_sides_of_a_gap() {
        let (mut bytes, mut view) = code(START + 64, &[END]);
        bytes[64] = MOVE[0];
        view.memory().freed(START + 128, 64);
        let mut code = CodeCache::new(Architecture::Gfx11);
        assert_eq!(code.fetch(START + 64, &mut view).unwrap().op, Op::S_ENDPGM);
        assert!(matches!(
            code.fetch(START + 160, &mut view),
            Err(Fault::Memory { .. })
        ));
        assert_eq!(
            code.fetch(START + 256, &mut view).unwrap().op,
            Op::S_MOV_B32
        );
        assert_eq!(code.fetch(START + 64, &mut view).unwrap().op, Op::S_ENDPGM);
        assert_eq!(
            code.fetch(START + 66, &mut view),
            Err(Fault::Illegal("gfx1100"))
        );
    }
}
