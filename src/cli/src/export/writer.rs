//! The interface of all formats.

use crate::trace_reader::inputs::Input;
use crate::trace_reader::{Record, Request, Trace};
use std::fs::File;
use std::io::{BufWriter, Write};

/// Writes traces in one format, one after the other.
pub trait Writer {
    /// Begins the next trace.
    fn begin(&mut self, _: &Input, _: Request) -> anyhow::Result<()> {
        Ok(())
    }
    /// Adds the next record of the trace.
    fn record(&mut self, record: &Record, trace: &mut Trace) -> anyhow::Result<()>;
    /// Completes the trace after its last record.
    fn end(&mut self, _: &mut Trace) -> anyhow::Result<()> {
        Ok(())
    }
    /// Completes the output after the last trace.
    fn finish(self: Box<Self>) -> anyhow::Result<()>;
}

/// Writes the rest of the buffer to the file.
pub fn flush(mut out: BufWriter<File>) -> anyhow::Result<()> {
    Ok(out.flush()?)
}
