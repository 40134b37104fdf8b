//! The MODE register: rounding, denormals, clamping and IEEE rules.

/// The MODE register (guide, 3.3).
#[derive(Clone, Copy)]
pub struct Mode(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    Nearest,
    Up,
    Down,
    Zero,
}

impl Mode {
    /// `wide` takes the field of doubles and halves.
    pub fn round(self, wide: bool) -> Round {
        [Round::Nearest, Round::Up, Round::Down, Round::Zero]
            [(self.0 >> if wide { 2 } else { 0 } & 3) as usize]
    }
    pub fn flushes_input(self, wide: bool) -> bool {
        self.0 >> if wide { 6 } else { 4 } & 1 == 0
    }
    pub fn flushes_output(self, wide: bool) -> bool {
        self.0 >> if wide { 7 } else { 5 } & 1 == 0
    }
    /// Clamping makes 0 of a NaN.
    pub fn dx10_clamp(self) -> bool {
        self.0 >> 8 & 1 != 0
    }
    /// Minimum and maximum quiet and return a signaling NaN.
    pub fn ieee(self) -> bool {
        self.0 >> 9 & 1 != 0
    }
}
