//! The numbers of a coverage mapping.

/// The numbers in a mapping, which are in LEB128.
pub struct Numbers<'a>(std::slice::Iter<'a, u8>);

impl<'a> Numbers<'a> {
    pub fn new(bytes: &'a [u8]) -> Numbers<'a> {
        Numbers(bytes.iter())
    }

    pub fn next(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.0.next()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    pub fn skip(&mut self, number: u64) -> Option<()> {
        for _ in 0..number {
            self.next()?;
        }
        Some(())
    }
}
