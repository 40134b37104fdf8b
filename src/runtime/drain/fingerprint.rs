//! Identifies the profile of a code object by its build id, and by the names and structure of its functions: not every code object
//! has a build id. It is the same in each run and on each machine.

use profraw::format::Format;
use zerocopy::IntoBytes;

/// 64-bit FNV-1a over the build id, the raw version, the names, and the NameRef, the FuncHash and the size of the bitmap of
/// each record.
pub struct Fingerprint(u64);

impl Fingerprint {
    /// `build_id`: empty if there is none.
    pub fn new(build_id: &[u8]) -> Fingerprint {
        let mut fingerprint = Fingerprint(0xcbf2_9ce4_8422_2325);
        fingerprint.update(build_id);
        fingerprint
    }

    /// Adds the sections of one table.
    pub fn add(&mut self, version: u64, format: &'static Format, names: &[u8], data: &[u8]) {
        self.update(&version.to_le_bytes());
        self.update(names);
        for record in format.records(data) {
            self.update(record.name_ref.as_bytes());
            self.update(record.func_hash.as_bytes());
            if record.num_bitmap_bytes != 0 {
                self.update(record.num_bitmap_bytes.as_bytes());
            }
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    pub fn finish(self) -> u64 {
        self.0
    }
}
