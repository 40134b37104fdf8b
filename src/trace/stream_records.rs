//! Writes the records of streams.

use super::file::TraceFile;
use super::streams;
use tracefile::format::Count;

/// The records of streams in the file.
#[derive(Default)]
pub struct StreamRecords {
    /// The highest id that was written. Ids count up.
    written: u32,
}

impl StreamRecords {
    /// Writes the records of the streams up to `id`, unless they are written. To be called before a record that refers
    /// to the stream `id` is written.
    pub fn write_up_to(&mut self, id: u32, file: &mut TraceFile) {
        if id <= self.written {
            return;
        }
        for mut record in streams::take_new() {
            // It was used before HSA's clock was available.
            if record.first_use.get() == 0 {
                record.first_use = file.started().into();
            }
            self.written = record.head.id.get() as u32;
            file.append(record, Count::DroppedOthers);
        }
    }
}
