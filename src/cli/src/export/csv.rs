//! The CSV files of rocprofv3, with its names, columns and values. It writes one file per type of record, so the user
//! chooses a type, or all of them ([`Kind`]). Strings are quoted, numbers are not.
//!
//! The columns are as in `source/lib/output/generateCSV.cpp` in rocprofiler-sdk, and the names of the files as in
//! `source/lib/output/domain_type.cpp`. As in rocprofv3, `Stream_Id` is 0 for the NULL stream
//! (`source/lib/rocprofiler-sdk/hip/stream.cpp`). Differences:
//!
//! - Agents are named as with rocprofv3's `--agent-index=type-relative`: `GPU 0` ([`Trace::agent`]).
//! - `Stream_Id` is also 0 if no API call named the stream.
//! - The `Correlation_Id` of markers is 0, because nothing refers to them.
//! - rocprofv3 does not record fills. Their `Direction` is `MEMORY_FILL`, and they have no source.
//! - The field of an agent that is not known is empty.
//!
//! rocprofv3 writes the files of one process. For several traces, the rows of all of them are in one file, with further
//! columns after rocprofv3's: the process ID, unless the file has it already, the host, and the number of the trace in
//! the order of the command line. Processes on different hosts can have the same ID.

use super::writer::{Writer, flush};
use crate::csv::quoted;
use crate::trace_reader::inputs::{Input, Member};
use crate::trace_reader::{Record, Records, Request, Trace};
use clap::ValueEnum;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tracefile::format::{Call, Dispatch, Marker, MemoryCopy, NO_AGENT, direction};

/// The type of the records to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Kernel dispatches: rocprofv3's kernel_trace
    #[default]
    Kernels,
    /// Copies and fills: memory_copy_trace
    Copies,
    /// API calls: hip_api_trace
    Api,
    /// Markers and ranges: marker_api_trace
    Markers,
    /// A file for each type, named as by rocprofv3: OUT.csv becomes OUT_kernel_trace.csv and so on
    All,
}

impl Kind {
    /// The types that have a file, and rocprofv3's name of it.
    const FILES: [(Kind, Records, &str); 4] = [
        (Kind::Kernels, Records::Dispatches, "kernel_trace"),
        (Kind::Copies, Records::Copies, "memory_copy_trace"),
        (Kind::Api, Records::Calls, "hip_api_trace"),
        (Kind::Markers, Records::Markers, "marker_api_trace"),
    ];

    /// The types of records that are written, and the names of their files.
    fn files(self) -> impl Iterator<Item = (Records, &'static str)> {
        let files = Kind::FILES.into_iter();
        files.filter_map(move |(kind, records, name)| {
            (self == kind || self == Kind::All).then_some((records, name))
        })
    }

    /// Whether records of this type are written.
    pub fn has(self, records: Records) -> bool {
        self.files().any(|(own, _)| own == records)
    }

    /// The files to write if the user asked for `out`.
    pub fn outputs(self, out: &Path) -> Vec<PathBuf> {
        if self != Kind::All {
            return vec![out.to_owned()];
        }
        let stem = out.file_stem().unwrap_or_default().to_string_lossy();
        let named = |(_, name)| out.with_file_name(format!("{stem}_{name}.csv"));
        self.files().map(named).collect()
    }
}

/// rocprofv3's columns.
fn columns(records: Records) -> &'static str {
    match records {
        Records::Dispatches => {
            "Kind Agent_Id Queue_Id Stream_Id Thread_Id Dispatch_Id Kernel_Id Kernel_Name Correlation_Id \
            Start_Timestamp End_Timestamp LDS_Block_Size Scratch_Size VGPR_Count Accum_VGPR_Count SGPR_Count \
            Workgroup_Size_X Workgroup_Size_Y Workgroup_Size_Z Grid_Size_X Grid_Size_Y Grid_Size_Z"
        }
        Records::Copies => {
            "Kind Direction Stream_Id Source_Agent_Id Destination_Agent_Id Correlation_Id Start_Timestamp End_Timestamp"
        }
        Records::Calls | Records::Markers => {
            "Domain Function Process_Id Thread_Id Correlation_Id Start_Timestamp End_Timestamp"
        }
    }
}

/// rocprofiler-sdk's name of the table that has a function of HIP (`ROCPROFILER_BUFFER_TRACING_…`). Only functions that
/// the compiler calls begin with an underscore.
pub fn domain(function: &str) -> &'static str {
    if function.starts_with("__hip") {
        "HIP_COMPILER_API"
    } else {
        "HIP_RUNTIME_API"
    }
}

/// rocprofiler-sdk's name of the operation (`ROCPROFILER_MEMORY_COPY_…`).
pub fn operation(copy: &MemoryCopy) -> &'static str {
    match copy.direction.get() {
        direction::HOST_TO_HOST => "MEMORY_COPY_HOST_TO_HOST",
        direction::HOST_TO_DEVICE => "MEMORY_COPY_HOST_TO_DEVICE",
        direction::DEVICE_TO_HOST => "MEMORY_COPY_DEVICE_TO_HOST",
        direction::DEVICE_TO_DEVICE => "MEMORY_COPY_DEVICE_TO_DEVICE",
        direction::FILL => "MEMORY_FILL",
        _ => "MEMORY_COPY_NONE",
    }
}

/// A file with the records of one type.
struct Table {
    records: Records,
    out: BufWriter<File>,
    /// The fields after rocprofv3's, with a comma before each.
    of_trace: String,
}

impl Table {
    /// The columns and fields after rocprofv3's, which include the process ID of API calls and markers.
    fn of_trace(&self, member: &Member) -> (&'static str, String) {
        let host = quoted(member.host.as_deref().unwrap_or_default());
        let (pid, number) = (member.pid, member.number);
        match self.records {
            Records::Calls | Records::Markers => ("Host Trace", format!(",{host},{number}")),
            Records::Copies => ("Process_Id Host Trace", format!(",{pid},{host},{number}")),
            // The build ID depends on the kernel.
            Records::Dispatches => (
                "Process_Id Host Trace Build_Id",
                format!(",{pid},{host},{number}"),
            ),
        }
    }
}

pub struct Csv {
    tables: Vec<Table>,
    has_columns: bool,
}

impl Csv {
    /// Writes to the files of [`Kind::outputs`], which are open for writing.
    pub fn new(kind: Kind, files: Vec<BufWriter<File>>) -> Csv {
        let tables = kind.files().zip(files).map(|((records, _), out)| Table {
            records,
            out,
            of_trace: String::new(),
        });
        Csv {
            tables: tables.collect(),
            has_columns: false,
        }
    }
}

fn dispatch(out: &mut impl Write, dispatch: &Dispatch, trace: &mut Trace) -> io::Result<()> {
    let (start, end) = trace.times_or_submission(dispatch);
    let kernel = trace.kernel(dispatch.kernel.get());
    write!(
        out,
        "\"KERNEL_DISPATCH\",\"{}\",{},{},{},{},{},{}",
        trace.agent(dispatch.agent.get()),
        dispatch.queue,
        trace.stream_id(dispatch.stream.get()),
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
        write!(out, ",{number}")?;
    }
    for size in dispatch
        .workgroup
        .map(u32::from)
        .into_iter()
        .chain(dispatch.grid.map(u32::from))
    {
        write!(out, ",{size}")?;
    }
    Ok(())
}

fn copy(out: &mut impl Write, copy: &MemoryCopy, trace: &Trace) -> io::Result<()> {
    let (start, end) = trace.copy_times_or_submission(copy);
    let agent = |id: u32| match id {
        NO_AGENT => String::new(),
        id => trace.agent(id),
    };
    write!(
        out,
        "\"MEMORY_COPY\",\"{}\",{},\"{}\",\"{}\",{},{start},{end}",
        operation(copy),
        trace.stream_id(copy.stream.get()),
        agent(copy.source.get()),
        agent(copy.destination.get()),
        copy.correlation,
    )
}

fn call(out: &mut impl Write, call: &Call, trace: &Trace) -> io::Result<()> {
    let name = trace.function(call);
    write!(
        out,
        "\"{}\",{},{},{},{},{},{}",
        domain(name),
        quoted(name),
        trace.header.pid,
        call.thread,
        call.head.id,
        trace.ns(call.start.get()),
        trace.ns(call.end.get()),
    )
}

fn marker(out: &mut impl Write, marker: &Marker, trace: &Trace) -> io::Result<()> {
    write!(
        out,
        "\"MARKER_CORE_RANGE_API\",{},{},{},0,{},{}",
        quoted(trace.tables.text(marker.text.get()).unwrap_or_default()),
        trace.header.pid,
        marker.thread,
        trace.ns(marker.start.get()),
        trace.ns(marker.end.get()),
    )
}

impl Writer for Csv {
    fn begin(&mut self, input: &Input, _: Request) -> anyhow::Result<()> {
        for table in &mut self.tables {
            let of_trace = input.member.as_ref().map(|member| table.of_trace(member));
            let (more, fields) = of_trace.unwrap_or_default();
            table.of_trace = fields;
            if !self.has_columns {
                let names = columns(table.records).split(' ');
                let names = names.chain(more.split_whitespace()).map(quoted);
                writeln!(table.out, "{}", names.collect::<Vec<_>>().join(","))?;
            }
        }
        self.has_columns = true;
        Ok(())
    }

    fn record(&mut self, record: &Record, trace: &mut Trace) -> anyhow::Result<()> {
        for table in &mut self.tables {
            let out = &mut table.out;
            match (table.records, record) {
                (Records::Dispatches, Record::Dispatch(record)) => dispatch(out, record, trace)?,
                (Records::Copies, Record::Copy(record)) => copy(out, record, trace)?,
                (Records::Calls, Record::Call(record)) => call(out, record, trace)?,
                (Records::Markers, Record::Marker(record)) => marker(out, record, trace)?,
                _ => continue,
            }
            write!(out, "{}", table.of_trace)?;
            if let Record::Dispatch(record) = record
                && !table.of_trace.is_empty()
            {
                let build_id = trace.build_id(record.kernel.get());
                write!(out, ",{}", quoted(build_id.unwrap_or_default()))?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> anyhow::Result<()> {
        let mut tables = self.tables.into_iter();
        tables.try_for_each(|table| flush(table.out))
    }
}
