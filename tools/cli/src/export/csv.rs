//! The CSV format of rocprofv3's kernel_trace, with one line per dispatch. Strings are quoted, numbers are not.

use super::source::{Record, Trace};
use super::{Writer, flush};
use std::fs::File;
use std::io::{BufWriter, Write};

const COLUMNS: [&str; 22] = [
    "Kind",
    "Agent_Id",
    "Queue_Id",
    "Stream_Id",
    "Thread_Id",
    "Dispatch_Id",
    "Kernel_Id",
    "Kernel_Name",
    "Correlation_Id",
    "Start_Timestamp",
    "End_Timestamp",
    "LDS_Block_Size",
    "Scratch_Size",
    "VGPR_Count",
    "Accum_VGPR_Count",
    "SGPR_Count",
    "Workgroup_Size_X",
    "Workgroup_Size_Y",
    "Workgroup_Size_Z",
    "Grid_Size_X",
    "Grid_Size_Y",
    "Grid_Size_Z",
];

pub struct Csv {
    out: BufWriter<File>,
    has_header: bool,
}

impl Csv {
    pub fn new(out: BufWriter<File>) -> Csv {
        Csv {
            out,
            has_header: false,
        }
    }

    /// Writes the header line, once.
    fn begin(&mut self) -> std::io::Result<()> {
        if !std::mem::replace(&mut self.has_header, true) {
            writeln!(self.out, "{}", COLUMNS.map(quoted).join(","))?;
        }
        Ok(())
    }
}

/// The text in quotes. Quotes within it are doubled.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

impl Writer for Csv {
    fn record(&mut self, record: &Record, trace: &mut Trace) -> anyhow::Result<()> {
        let Record::Dispatch(dispatch) = record else {
            return Ok(());
        };
        self.begin()?;
        let (start, end) = trace.times_or_submission(dispatch);
        let kernel = trace.kernel(dispatch.kernel.get());
        write!(
            self.out,
            "\"KERNEL_DISPATCH\",\"Agent {}\",{},0,{},{},{},{}",
            trace.node(dispatch.agent.get()),
            dispatch.queue,
            dispatch.thread,
            dispatch.head.id,
            dispatch.kernel,
            quoted(&kernel),
        )?;
        for number in [
            dispatch.correlation.get(),
            start,
            end,
            dispatch.lds.get().into(),
            dispatch.scratch.get().into(),
            dispatch.vgprs.get().into(),
            dispatch.accum_vgprs.get().into(),
            dispatch.sgprs.get().into(),
        ] {
            write!(self.out, ",{number}")?;
        }
        for size in dispatch.workgroup {
            write!(self.out, ",{size}")?;
        }
        for size in dispatch.grid {
            write!(self.out, ",{size}")?;
        }
        writeln!(self.out)?;
        Ok(())
    }

    fn finish(mut self: Box<Self>, _: &mut Trace) -> anyhow::Result<()> {
        self.begin()?;
        flush(self.out)
    }
}
