//! The MODE register: rounding, denormals, clamping and IEEE rules.

/// The MODE register (guide, 3.3).
#[derive(Clone, Copy)]
pub struct Mode(pub u32);

/// A rounding mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    Nearest,
    Up,
    Down,
    Zero,
}

impl Mode {
    /// `wide`: the field of f64 and f16, not of f32.
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
    /// Whether clamping changes NaN to 0.
    pub fn dx10_clamp(self) -> bool {
        self.0 >> 8 & 1 != 0
    }
    /// Whether minimum and maximum return a signaling NaN, quieted.
    pub fn ieee(self) -> bool {
        self.0 >> 9 & 1 != 0
    }
}
