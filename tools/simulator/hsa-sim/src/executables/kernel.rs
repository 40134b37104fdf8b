//! Kernel descriptors.

/// The fields of a kernel descriptor that are attributes of the kernel's symbol. Sizes are in bytes.
#[derive(Clone, Copy, Default)]
pub struct Kernel {
    pub group: u32,
    pub private: u32,
    pub arguments: u32,
    pub dynamic_stack: bool,
}

/// The size of a kernel descriptor.
pub const DESCRIPTOR_BYTES: usize = 64;

const USES_DYNAMIC_STACK: u16 = 1 << 11;

impl Kernel {
    pub fn read(descriptor: &[u8]) -> Option<Kernel> {
        let word = |at: usize| {
            Some(u32::from_le_bytes(
                descriptor.get(at..at + 4)?.try_into().ok()?,
            ))
        };
        Some(Kernel {
            group: word(0)?,
            private: word(4)?,
            arguments: word(8)?,
            dynamic_stack: word(56)? as u16 & USES_DYNAMIC_STACK != 0,
        })
    }
}
