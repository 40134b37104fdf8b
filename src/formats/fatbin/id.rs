//! The build ID that devprof gives to a cubin. ptxas and nvlink write none, so it is computed from the bytes.

/// Computes the id of a cubin from its bytes, which can be added in several parts. The order of its words matters, and every bit
/// of the result depends on every byte.
#[derive(Clone, Debug)]
pub struct CubinId {
    halves: [u64; 2],
    /// The last bytes so far, if they are not a complete word.
    rest: [u8; 8],
    /// Number of bytes so far.
    size: u64,
}

/// One for each half: odd, so that a multiplication loses nothing. (The digits of pi and e.)
const FACTORS: [u64; 2] = [0x2437_d5b4_7e2b_73c5, 0x2b7e_1516_28ae_d2a7];

impl CubinId {
    pub const fn new() -> CubinId {
        CubinId {
            halves: FACTORS,
            rest: [0; 8],
            size: 0,
        }
    }

    /// Adds the next bytes.
    pub fn update(&mut self, mut bytes: &[u8]) {
        let pending = (self.size % 8) as usize;
        self.size += bytes.len() as u64;
        if pending > 0 {
            let (first, others) = bytes.split_at(bytes.len().min(8 - pending));
            self.rest[pending..pending + first.len()].copy_from_slice(first);
            if pending + first.len() < 8 {
                return;
            }
            self.add(u64::from_le_bytes(self.rest));
            bytes = others;
        }
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        self.rest[..rest.len()].copy_from_slice(rest);
    }

    fn add(&mut self, word: u64) {
        for (half, factor) in self.halves.iter_mut().zip(FACTORS) {
            let product = (*half ^ word).wrapping_mul(factor);
            *half = product ^ product >> 32;
        }
    }

    /// The id of the bytes so far.
    pub fn finish(mut self) -> [u8; 16] {
        let pending = (self.size % 8) as usize;
        self.rest[pending..].fill(0);
        self.add(u64::from_le_bytes(self.rest));
        // The size distinguishes zeros at the end. The second one mixes the last word into the lower bits.
        self.add(self.size);
        self.add(self.size);
        let [first, second] = self.halves.map(u64::to_le_bytes);
        let mut id = [0; 16];
        id[..8].copy_from_slice(&first);
        id[8..].copy_from_slice(&second);
        id
    }
}

impl Default for CubinId {
    fn default() -> CubinId {
        CubinId::new()
    }
}

#[cfg(test)]
mod tests {
    use super::CubinId;

    fn id(parts: &[&[u8]]) -> [u8; 16] {
        let mut id = CubinId::new();
        parts.iter().for_each(|part| id.update(part));
        id.finish()
    }

    const BYTES: [u8; 21] = *b"\x7fELF, and some others";

    #[test]
    fn the_parts_do_not_matter() {
        for first in 0..=BYTES.len() {
            for second in first..=BYTES.len() {
                let parts = [&BYTES[..first], &BYTES[first..second], &BYTES[second..]];
                assert_eq!(id(&parts), id(&[&BYTES]), "{first} {second}");
            }
        }
    }

    #[test]
    fn every_bit_matters() {
        let known = id(&[&BYTES]);
        for bit in 0..8 * BYTES.len() {
            let mut changed = BYTES;
            changed[bit / 8] ^= 1 << (bit % 8);
            let other = id(&[&changed]);
            let differing = known.iter().zip(other).map(|(a, b)| (a ^ b).count_ones());
            // Half of 128 bits, on average.
            assert!((32..=96).contains(&differing.sum::<u32>()), "{bit}");
        }
        assert_ne!(id(&[&[0; 8]]), id(&[&[0; 16]]));
        assert_ne!(id(&[&[0; 7]]), id(&[&[0; 8]]));
        assert_ne!(id(&[&[]]), id(&[&[0]]));
    }
}
