//! Identifies a code object's profile: the functions that it counts, by name and structure. The same in each run and on
//! each machine.

use profraw::format::Format;
use zerocopy::IntoBytes;

/// 64-bit FNV-1a over raw version, names, and each record's NameRef and FuncHash.
pub struct Fingerprint(u64);

impl Fingerprint {
    pub fn new() -> Fingerprint {
        Fingerprint(0xcbf2_9ce4_8422_2325)
    }

    /// Adds the sections of one table.
    pub fn add(&mut self, version: u64, format: &'static Format, names: &[u8], data: &[u8]) {
        self.bytes(&version.to_le_bytes());
        self.bytes(names);
        for record in format.records(data) {
            self.bytes(record.name_ref.as_bytes());
            self.bytes(record.func_hash.as_bytes());
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    pub fn finish(self) -> u64 {
        self.0
    }
}
