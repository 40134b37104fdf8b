//! What all formats have in common.

use super::inputs::Input;
use crate::trace_reader::{Record, Trace};
use std::fs::File;
use std::io::{BufWriter, Write};

/// Writes traces in one format, one after the other.
pub trait Writer {
    /// Begins the next trace.
    fn begin(&mut self, input: &Input) -> anyhow::Result<()>;
    /// Adds the next record of the trace.
    fn record(&mut self, record: &Record, trace: &mut Trace) -> anyhow::Result<()>;
    /// Adds what follows the last record of the trace.
    fn end(&mut self, trace: &mut Trace) -> anyhow::Result<()>;
    /// Completes the output after the last trace.
    fn finish(self: Box<Self>) -> anyhow::Result<()>;
}

/// Writes the rest of the buffer to the file.
pub fn flush(mut out: BufWriter<File>) -> anyhow::Result<()> {
    Ok(out.flush()?)
}
