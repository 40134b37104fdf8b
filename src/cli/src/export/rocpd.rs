//! An SQLite database with the dispatches, copies, API calls and markers of a trace, in version 3 of rocpd's schema
//! (`source/share/rocprofiler-sdk-rocpd/*.sql` in rocprofiler-sdk). The contents of the rows are as in rocprofv3
//! (`source/lib/output/generateRocpd.cpp`).
//!
//! The name of each table ends in the UUID of the trace, and a view without this suffix refers to it, so that a reader
//! can attach the databases of several processes. A database with several traces is like one that `rocpd merge` writes:
//! it has the tables of each trace, and views that are the union of the tables of all traces. All tables have a column
//! with the UUID (`guid`), by which readers join, too, because IDs are unique only within a trace. Readers join each
//! dispatch with a thread, an event, a kernel symbol, a code object and a stream, and each copy with two agents. There
//! are placeholder rows for code objects, which traces do not have, for stream 0 (see [`Trace::stream_id`]) and for
//! agents that are not known.
//!
//! An API call or a range is a region, and a mark is a sample. The message of a marker is in the additional data of its
//! event. Its `stack_id` is null, because no dispatch or copy refers to a marker.

use super::csv::{domain, operation};
use super::writer::Writer;
use crate::trace_reader::inputs::Input;
use crate::trace_reader::{Record, Request, Trace, clock};
use md5::{Digest, Md5};
use rusqlite::{Connection, Result, ToSql};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use tracefile::format::{
    Call, Dispatch, Kernel, Marker, MemoryCopy, NO_AGENT, agent, flag, marker, named,
};
use zerocopy::IntoBytes;

/// The tables, and their columns after `id` and `guid`. `@x@` is replaced with a reference to table x, and `%x` with
/// the columns in [`SHARED`].
const TABLES: &str = r#"
string: string TEXT NOT NULL UNIQUE;
info_node: hash BIGINT NOT NULL UNIQUE, machine_id TEXT NOT NULL UNIQUE, system_name TEXT, hostname TEXT,
        release TEXT, version TEXT, hardware_name TEXT, domain_name TEXT;
info_process: nid INTEGER NOT NULL @info_node@, ppid INTEGER, pid INTEGER NOT NULL, init BIGINT, fini BIGINT,
        start BIGINT, "end" BIGINT, command TEXT, environment JSONB NOT NULL DEFAULT '{}', %ext;
info_thread: %nid, ppid INTEGER, %pid, tid INTEGER NOT NULL, name TEXT, start BIGINT, "end" BIGINT, %ext;
info_agent: %nid, %pid, type TEXT CHECK (type IN ('CPU', 'GPU')), absolute_index INTEGER, logical_index INTEGER,
        type_index INTEGER, uuid INTEGER, name TEXT, model_name TEXT, vendor_name TEXT, product_name TEXT,
        user_name TEXT, %ext;
info_queue: %nid, %pid, name TEXT, %ext;
info_stream: %nid, %pid, name TEXT, %ext;
info_pmc: %nid, %pid, agent_id INTEGER @info_agent@, target_arch TEXT CHECK (target_arch IN ('CPU', 'GPU')),
        event_code INT, instance_id INTEGER, name TEXT NOT NULL, symbol TEXT NOT NULL, description TEXT,
        long_description TEXT DEFAULT '', component TEXT, units TEXT DEFAULT '',
        value_type TEXT CHECK (value_type IN ('ABS', 'ACCUM', 'RELATIVE')), block TEXT, expression TEXT,
        is_constant INTEGER, is_derived INTEGER, %ext;
info_code_object: %nid, %pid, agent_id INTEGER @info_agent@, uri TEXT, load_base BIGINT, load_size BIGINT,
        load_delta BIGINT, storage_type TEXT CHECK (storage_type IN ('FILE', 'MEMORY')), %ext;
info_kernel_symbol: %nid, %pid, code_object_id INTEGER NOT NULL @info_code_object@, kernel_name TEXT, display_name TEXT,
        kernel_object INTEGER, kernarg_segment_size INTEGER, kernarg_segment_alignment INTEGER,
        group_segment_size INTEGER, private_segment_size INTEGER, sgpr_count INTEGER, arch_vgpr_count INTEGER,
        accum_vgpr_count INTEGER, %ext;
track: %nid, pid INTEGER @info_process@, tid INTEGER @info_thread@, name_id INTEGER @string@, %ext;
event: category_id INTEGER @string@, stack_id INTEGER, parent_stack_id INTEGER, correlation_id INTEGER,
        call_stack JSONB NOT NULL DEFAULT '{}', line_info JSONB NOT NULL DEFAULT '{}', %ext;
arg: event_id INTEGER NOT NULL @event@, position INTEGER NOT NULL, type TEXT NOT NULL, name TEXT NOT NULL,
        value TEXT, %ext;
pmc_event: event_id INTEGER @event@, pmc_id INTEGER NOT NULL @info_pmc@, value REAL DEFAULT 0.0, %ext;
region: %nid, %pid, tid INTEGER NOT NULL @info_thread@, %span, name_id INTEGER NOT NULL @string@,
        event_id INTEGER @event@, %ext;
sample: track_id INTEGER NOT NULL @track@, timestamp BIGINT NOT NULL, event_id INTEGER @event@, %ext;
kernel_dispatch: %nid, %pid, tid INTEGER @info_thread@, agent_id INTEGER NOT NULL @info_agent@,
        kernel_id INTEGER NOT NULL @info_kernel_symbol@, dispatch_id INTEGER NOT NULL,
        queue_id INTEGER NOT NULL @info_queue@, stream_id INTEGER NOT NULL @info_stream@, %span,
        private_segment_size INTEGER, group_segment_size INTEGER, workgroup_size_x INTEGER NOT NULL,
        workgroup_size_y INTEGER NOT NULL, workgroup_size_z INTEGER NOT NULL, grid_size_x INTEGER NOT NULL,
        grid_size_y INTEGER NOT NULL, grid_size_z INTEGER NOT NULL, region_name_id INTEGER @string@,
        event_id INTEGER @event@, %ext;
memory_copy: %nid, %pid, tid INTEGER @info_thread@, %span, name_id INTEGER NOT NULL @string@,
        dst_agent_id INTEGER @info_agent@, dst_address INTEGER, src_agent_id INTEGER @info_agent@,
        src_address INTEGER, size INTEGER NOT NULL, queue_id INTEGER @info_queue@,
        stream_id INTEGER @info_stream@, region_name_id INTEGER @string@, event_id INTEGER @event@, %ext;
memory_allocate: %nid, %pid, tid INTEGER @info_thread@, agent_id INTEGER @info_agent@,
        type TEXT CHECK (type IN ('ALLOC', 'FREE', 'REALLOC', 'RECLAIM')),
        level TEXT CHECK (level IN ('REAL', 'VIRTUAL', 'SCRATCH')), %span, address INTEGER,
        size INTEGER NOT NULL, queue_id INTEGER @info_queue@, stream_id INTEGER @info_stream@,
        event_id INTEGER @event@, %ext;
"#;

/// Columns that many tables have.
const SHARED: [(&str, &str); 4] = [
    ("%nid", "nid INTEGER NOT NULL @info_node@"),
    ("%pid", "pid INTEGER NOT NULL @info_process@"),
    ("%span", "start BIGINT NOT NULL, \"end\" BIGINT NOT NULL"),
    ("%ext", "extdata JSONB NOT NULL DEFAULT '{}'"),
];

/// The views that tools query, as far as a trace has the data.
const VIEWS: &str = "
CREATE VIEW processes AS
    SELECT n.id AS nid, n.machine_id, n.system_name, n.hostname, n.release AS system_release,
        n.version AS system_version, p.guid, p.ppid, p.pid, p.init, p.start, p.\"end\", p.fini, p.command
    FROM rocpd_info_process p JOIN rocpd_info_node n ON n.id = p.nid AND n.guid = p.guid;
CREATE VIEW threads AS
    SELECT p.nid, p.machine_id, p.system_name, p.hostname, p.system_release, p.system_version, p.guid, p.ppid,
        p.pid, t.tid, t.start, t.\"end\", t.name
    FROM rocpd_info_thread t JOIN rocpd_info_process i ON i.id = t.pid AND i.guid = t.guid
        JOIN processes p ON p.pid = i.pid AND p.guid = i.guid;
CREATE VIEW kernel_symbols AS
    SELECT s.id, s.guid, s.nid, p.pid, s.code_object_id, s.kernel_name, s.display_name, s.kernel_object,
        s.kernarg_segment_size, s.kernarg_segment_alignment, s.group_segment_size, s.private_segment_size,
        s.sgpr_count, s.arch_vgpr_count, s.accum_vgpr_count
    FROM rocpd_info_kernel_symbol s JOIN rocpd_info_process p ON p.id = s.pid AND p.guid = s.guid;
CREATE VIEW regions AS
    SELECT r.id, r.guid, c.string AS category, s.string AS name, r.nid, p.pid, t.tid, r.start, r.\"end\",
        r.\"end\" - r.start AS duration, r.event_id, e.stack_id, e.parent_stack_id, e.correlation_id AS corr_id,
        e.extdata, e.call_stack, e.line_info
    FROM rocpd_region r JOIN rocpd_event e ON e.id = r.event_id AND e.guid = r.guid
        LEFT JOIN rocpd_string c ON c.id = e.category_id AND c.guid = e.guid
        JOIN rocpd_string s ON s.id = r.name_id AND s.guid = r.guid
        JOIN rocpd_info_process p ON p.id = r.pid AND p.guid = r.guid
        JOIN rocpd_info_thread t ON t.id = r.tid AND t.guid = r.guid;
CREATE VIEW kernels AS
    SELECT k.id, k.guid, t.tid, c.string AS category, r.string AS region, s.display_name AS name, k.nid, p.pid,
        a.absolute_index AS agent_abs_index, a.logical_index AS agent_log_index, a.type_index AS agent_type_index,
        a.type AS agent_type, s.code_object_id, k.kernel_id, k.dispatch_id, k.stream_id, k.queue_id,
        q.name AS queue, m.name AS stream, k.start, k.\"end\", k.\"end\" - k.start AS duration,
        k.grid_size_x AS grid_x, k.grid_size_y AS grid_y, k.grid_size_z AS grid_z,
        k.workgroup_size_x AS workgroup_x, k.workgroup_size_y AS workgroup_y, k.workgroup_size_z AS workgroup_z,
        k.group_segment_size AS lds_size, k.private_segment_size AS scratch_size,
        s.group_segment_size AS static_lds_size, s.private_segment_size AS static_scratch_size,
        s.arch_vgpr_count AS vgpr_count, s.accum_vgpr_count, s.sgpr_count, k.event_id,
        e.stack_id, e.parent_stack_id, e.correlation_id AS corr_id
    FROM rocpd_kernel_dispatch k JOIN rocpd_info_agent a ON a.id = k.agent_id AND a.guid = k.guid
        JOIN rocpd_event e ON e.id = k.event_id AND e.guid = k.guid
        LEFT JOIN rocpd_string c ON c.id = e.category_id AND c.guid = e.guid
        JOIN rocpd_string r ON r.id = k.region_name_id AND r.guid = k.guid
        JOIN rocpd_info_kernel_symbol s ON s.id = k.kernel_id AND s.guid = k.guid
        JOIN rocpd_info_stream m ON m.id = k.stream_id AND m.guid = k.guid
        JOIN rocpd_info_queue q ON q.id = k.queue_id AND q.guid = k.guid
        JOIN rocpd_info_process p ON p.id = k.pid AND p.guid = k.guid
        JOIN rocpd_info_thread t ON t.id = k.tid AND t.guid = k.guid;
CREATE VIEW memory_copies AS
    SELECT m.id, m.guid, c.string AS category, m.nid, p.pid, t.tid, m.start, m.\"end\",
        m.\"end\" - m.start AS duration, s.string AS name, r.string AS region_name, m.stream_id, m.queue_id,
        l.name AS stream_name, q.name AS queue_name, m.size,
        d.name AS dst_device, d.absolute_index AS dst_agent_abs_index, d.logical_index AS dst_agent_log_index,
        d.type_index AS dst_agent_type_index, d.type AS dst_agent_type, m.dst_address,
        f.name AS src_device, f.absolute_index AS src_agent_abs_index, f.logical_index AS src_agent_log_index,
        f.type_index AS src_agent_type_index, f.type AS src_agent_type, m.src_address,
        e.stack_id, e.parent_stack_id, e.correlation_id AS corr_id
    FROM rocpd_memory_copy m JOIN rocpd_string s ON s.id = m.name_id AND s.guid = m.guid
        JOIN rocpd_info_agent d ON d.id = m.dst_agent_id AND d.guid = m.guid
        JOIN rocpd_info_agent f ON f.id = m.src_agent_id AND f.guid = m.guid
        JOIN rocpd_event e ON e.id = m.event_id AND e.guid = m.guid
        JOIN rocpd_info_process p ON p.id = m.pid AND p.guid = m.guid
        JOIN rocpd_info_thread t ON t.id = m.tid AND t.guid = m.guid
        LEFT JOIN rocpd_string c ON c.id = e.category_id AND c.guid = e.guid
        LEFT JOIN rocpd_string r ON r.id = m.region_name_id AND r.guid = m.guid
        LEFT JOIN rocpd_info_queue q ON q.id = m.queue_id AND q.guid = m.guid
        LEFT JOIN rocpd_info_stream l ON l.id = m.stream_id AND l.guid = m.guid;
CREATE VIEW samples AS
    SELECT s.id, s.guid, c.string AS category, n.string AS name, k.nid, p.pid, t.tid, s.timestamp, s.event_id,
        e.stack_id, e.parent_stack_id, e.correlation_id AS corr_id, e.extdata, e.call_stack, e.line_info
    FROM rocpd_sample s JOIN rocpd_track k ON k.id = s.track_id AND k.guid = s.guid
        JOIN rocpd_event e ON e.id = s.event_id AND e.guid = s.guid
        JOIN rocpd_info_process p ON p.id = k.pid AND p.guid = k.guid
        JOIN rocpd_info_thread t ON t.id = k.tid AND t.guid = k.guid
        LEFT JOIN rocpd_string c ON c.id = e.category_id AND c.guid = e.guid
        LEFT JOIN rocpd_string n ON n.id = k.name_id AND n.guid = k.guid;
CREATE VIEW sample_regions AS
    SELECT id, guid, category, name, nid, pid, tid, timestamp AS start, timestamp AS \"end\", 0 AS duration,
        event_id, stack_id, parent_stack_id, corr_id, extdata, call_stack, line_info
    FROM samples;
CREATE VIEW regions_and_samples AS SELECT * FROM regions UNION ALL SELECT * FROM sample_regions;
CREATE VIEW range_markers AS
    SELECT e.id, e.guid, c.string AS category, json_extract(e.extdata, '$.message') AS name, r.start, r.\"end\",
        r.\"end\" - r.start AS duration, e.stack_id, e.parent_stack_id, e.correlation_id, e.call_stack,
        e.line_info, r.pid, r.tid, r.nid, o.string AS operation
    FROM rocpd_region r JOIN rocpd_event e ON e.id = r.event_id AND e.guid = r.guid
        JOIN rocpd_string c ON c.id = e.category_id AND c.guid = e.guid
        JOIN rocpd_string o ON o.id = r.name_id AND o.guid = r.guid
    WHERE c.string LIKE '%MARKER%';
CREATE VIEW single_markers AS
    SELECT e.id, e.guid, c.string AS category, json_extract(e.extdata, '$.message') AS name, s.timestamp,
        e.stack_id, e.parent_stack_id, e.correlation_id, e.call_stack, e.line_info, k.pid, k.tid, k.nid
    FROM rocpd_sample s JOIN rocpd_event e ON e.id = s.event_id AND e.guid = s.guid
        JOIN rocpd_string c ON c.id = e.category_id AND c.guid = e.guid
        JOIN rocpd_track k ON k.id = s.track_id AND k.guid = s.guid
    WHERE c.string LIKE '%MARKER%';
CREATE VIEW markers AS
    SELECT * FROM range_markers
    UNION ALL
    SELECT id, guid, category, name, timestamp, timestamp, 0, stack_id, parent_stack_id, correlation_id, call_stack,
        line_info, pid, tid, nid, 'roctxMarkA'
    FROM single_markers;
";

/// The ID of the placeholder for streams that are not known.
const STREAM: u32 = 0;
/// rocprofiler-sdk's name for markers and ranges (`ROCPROFILER_BUFFER_TRACING_MARKER_CORE_RANGE_API`).
const MARKERS: &str = "MARKER_CORE_RANGE_API";

/// SQLite's default limit of the number of tables in a union. Readers use their own SQLite.
pub const MAX_TRACES: usize = 500;

/// Adds a row to a table of the trace. `of process`: one that refers to the trace's host and process.
macro_rules! insert {
    ($to:ident.$table:ident { $($column:ident: $value:expr),* $(,)? }) => {
        $to.insert(stringify!($table), &[$((stringify!($column), &$value as &dyn ToSql)),*])
    };
    ($to:ident.$table:ident of process { $($column:ident: $value:expr),* $(,)? }) => {
        insert!($to.$table { nid: $to.rows.node, pid: $to.rows.pid, $($column: $value),* })
    };
}

pub struct Rocpd {
    db: Connection,
    /// The suffixes of the tables of all traces.
    suffixes: Vec<String>,
    rows: Rows,
}

/// The rows of a trace.
#[derive(Default)]
struct Rows {
    /// The suffix of the trace's tables. Empty until they exist.
    suffix: String,
    /// The ID of the row of the host. Traces of one host have the same ID.
    node: u32,
    pid: u32,
    events: i64,
    /// The IDs of strings.
    strings: HashMap<String, i64>,
    /// The IDs of the tracks with the marks of each thread.
    tracks: BTreeMap<u32, i64>,
    /// The IDs that records refer to.
    agents: BTreeSet<u32>,
    queues: BTreeSet<u32>,
    streams: BTreeSet<u32>,
    kernels: BTreeSet<u32>,
    threads: BTreeSet<u32>,
}

/// SQLite's integers are signed. Times do not reach the sign bit; addresses wrap around, as in rocpd.
fn int(value: impl Into<u64>) -> i64 {
    value.into() as i64
}

/// The additional data of a row that has none.
const NO_EXTRA: &str = "{}";

/// Additional data about the times of a dispatch or copy with these flags, unless they are the usual ones.
fn add_clock(extra: &mut Value, flags: u16) {
    let (clock, unfinished) = (clock(flags), flags & flag::UNFINISHED != 0);
    if clock != "system" || unfinished {
        extra["clock"] = clock.into();
        extra["unfinished"] = unfinished.into();
    }
}

/// The ID of the placeholder for all code objects of an agent.
fn code_object(agent: u32) -> i64 {
    i64::from(agent) + 1
}

impl Rocpd {
    pub fn new(path: &Path) -> Result<Rocpd> {
        let db = Connection::open(path)?;
        // The file becomes the output only when it is complete, so nothing is ever rolled back. References are valid
        // by construction, but the rows that they refer to are written last.
        db.execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; BEGIN;",
        )?;
        Ok(Rocpd {
            db,
            suffixes: Vec::new(),
            rows: Rows::default(),
        })
    }

    /// Adds a row to a table of the trace.
    fn insert(&self, table: &str, row: &[(&str, &dyn ToSql)]) -> Result<()> {
        let suffix = &self.rows.suffix;
        let (columns, values): (Vec<_>, Vec<_>) = row.iter().copied().unzip();
        // Some are keywords of SQL.
        let columns = columns.join("\", \"");
        let parameters = vec!["?"; values.len()].join(", ");
        let sql =
            format!("INSERT INTO \"rocpd_{table}{suffix}\" (\"{columns}\") VALUES ({parameters})");
        self.db.prepare_cached(&sql)?.execute(&*values)?;
        Ok(())
    }

    /// Creates the tables of a trace at its first record.
    fn create_tables(&mut self, trace: &Trace) -> Result<()> {
        if !self.rows.suffix.is_empty() {
            return Ok(());
        }
        // The ID depends only on the trace's header (process, start time and clock), so it is the same in each export.
        let hex = format!("{:x}", Md5::digest(trace.header.as_bytes()));
        let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &hex[part]);
        let (guid, suffix) = (parts.join("-"), format!("_{}", parts.join("_")));
        self.db.execute_batch(&tables(&suffix, &guid))?;
        self.suffixes.push(suffix.clone());
        self.rows.suffix = suffix.clone();
        self.rows.pid = trace.header.pid.get();
        for (tag, value) in [("schema_version", "3"), ("uuid", &suffix), ("guid", &guid)] {
            insert!(self.metadata { tag: tag, value: value })?;
        }
        Ok(())
    }

    /// The ID of a string, which is added at its first use. Not for messages of markers, of which there can be many.
    fn string(&mut self, string: &str) -> Result<i64> {
        if let Some(&id) = self.rows.strings.get(string) {
            return Ok(id);
        }
        let id = self.rows.strings.len() as i64 + 1;
        insert!(self.string { id: id, string: string })?;
        self.rows.strings.insert(string.to_owned(), id);
        Ok(id)
    }

    /// Adds the event of a record, which an API call submitted unless its correlation ID is 0. Returns its ID.
    fn event(&mut self, category: &str, correlation: u64, extra: &str) -> Result<i64> {
        let category = self.string(category)?;
        self.rows.events += 1;
        let stack = (correlation != 0).then(|| int(correlation));
        let id = self.rows.events;
        insert!(self.event {
            id: id, category_id: category, stack_id: stack, parent_stack_id: stack, correlation_id: stack, extdata: extra,
        })?;
        Ok(id)
    }

    fn dispatch(&mut self, dispatch: &Dispatch, trace: &Trace) -> Result<()> {
        let event = self.event("KERNEL_DISPATCH", dispatch.correlation.get(), NO_EXTRA)?;
        let region = self.string("")?;
        let stream = trace.stream_id(dispatch.stream.get());
        let ids = [
            dispatch.thread,
            dispatch.agent,
            dispatch.kernel,
            dispatch.queue,
        ];
        let [thread, agent, kernel, queue] = ids.map(|id| id.get());
        self.rows.agents.insert(agent);
        self.rows.queues.insert(queue);
        self.rows.streams.insert(stream);
        self.rows.kernels.insert(kernel);
        self.rows.threads.insert(thread);
        let (start, end) = trace.times_or_submission(dispatch);
        let [wx, wy, wz] = dispatch.workgroup.map(|size| size.get());
        let [gx, gy, gz] = dispatch.grid.map(|size| size.get());
        let mut extra = json!({});
        add_clock(&mut extra, dispatch.head.flags.get());
        insert!(self.kernel_dispatch of process {
            tid: thread, agent_id: agent, kernel_id: kernel, dispatch_id: int(dispatch.head.id),
            queue_id: queue, stream_id: stream, start: int(start), end: int(end),
            private_segment_size: dispatch.scratch.get(), group_segment_size: dispatch.lds.get(),
            workgroup_size_x: wx, workgroup_size_y: wy, workgroup_size_z: wz,
            grid_size_x: gx, grid_size_y: gy, grid_size_z: gz,
            region_name_id: region, event_id: event, extdata: extra.to_string(),
        })
    }

    fn copy(&mut self, copy: &MemoryCopy, trace: &Trace) -> Result<()> {
        let event = self.event("MEMORY_COPY", copy.correlation.get(), NO_EXTRA)?;
        let name = self.string(operation(copy))?;
        let stream = trace.stream_id(copy.stream.get());
        let (from, to) = (copy.source.get(), copy.destination.get());
        self.rows.agents.extend([from, to]);
        self.rows.streams.insert(stream);
        self.rows.threads.insert(copy.thread.get());
        let (start, end) = trace.copy_times_or_submission(copy);
        let mut extra = json!({"function": trace.copy_function(copy)});
        if copy.engine.get() != 0 {
            extra["engine"] = copy.engine.get().into();
        }
        add_clock(&mut extra, copy.head.flags.get());
        insert!(self.memory_copy of process {
            tid: copy.thread.get(), start: int(start), end: int(end), name_id: name,
            dst_agent_id: to, src_agent_id: from, size: int(copy.size.get()), stream_id: stream, event_id: event,
            extdata: extra.to_string(),
        })
    }

    fn call(&mut self, call: &Call, trace: &Trace) -> Result<()> {
        let name = trace.function(call);
        let event = self.event(domain(name), call.head.id.get(), NO_EXTRA)?;
        let extra = json!({"status": call.status.get()});
        let times = (trace.ns(call.start.get()), trace.ns(call.end.get()));
        self.region(name, call.thread.get(), times, event, &extra)
    }

    fn marker(&mut self, marker: &Marker, trace: &Trace) -> Result<()> {
        let message = match trace.tables.text(marker.text.get()) {
            Some(message) => json!({"message": message}),
            None => json!({}),
        };
        let event = self.event(MARKERS, 0, &message.to_string())?;
        let thread = marker.thread.get();
        let times = (trace.ns(marker.start.get()), trace.ns(marker.end.get()));
        let mut extra = json!({});
        if marker.head.flags.get() & flag::UNFINISHED != 0 {
            extra["unfinished"] = true.into();
        }
        let name = match marker.what.get() {
            marker::MARK => return self.sample(thread, times.0, event),
            marker::RANGE => "roctxThreadRangeA",
            _ => {
                extra["range"] = int(marker.range).into();
                extra["end_thread"] = marker.end_thread.get().into();
                "roctxProcessRangeA"
            }
        };
        self.region(name, thread, times, event, &extra)
    }

    /// Adds a region of a thread, which may be the first record of the thread.
    fn region(
        &mut self,
        name: &str,
        thread: u32,
        (start, end): (u64, u64),
        event: i64,
        extra: &Value,
    ) -> Result<()> {
        let name = self.string(name)?;
        self.rows.threads.insert(thread);
        insert!(self.region of process {
            tid: thread, start: int(start), end: int(end), name_id: name, event_id: event, extdata: extra.to_string(),
        })
    }

    /// Adds a mark, as a sample on the track of its thread.
    fn sample(&mut self, thread: u32, time: u64, event: i64) -> Result<()> {
        self.rows.threads.insert(thread);
        let track = match self.rows.tracks.get(&thread) {
            Some(&track) => track,
            None => {
                let name = self.string(MARKERS)?;
                let track = self.rows.tracks.len() as i64 + 1;
                insert!(self.track of process { id: track, tid: thread, name_id: name })?;
                self.rows.tracks.insert(thread, track);
                track
            }
        };
        insert!(self.sample { track_id: track, timestamp: int(time), event_id: event })
    }

    /// Adds the rows that other records refer to.
    fn infos(&mut self, trace: &mut Trace) -> Result<()> {
        let process = trace.tables.process;
        let text = |id: u32| trace.tables.text(id);
        let host = process.and_then(|process| text(process.host.get()));
        let machine = host.unwrap_or("unknown");
        let hash = Md5::digest(machine.as_bytes());
        let hash = hash.iter().take(8);
        let hash = hash.fold(0, |hash, byte| hash << 8 | i64::from(*byte));
        insert!(self.info_node {
            id: self.rows.node, hash: hash, machine_id: machine, system_name: "Linux", hostname: host,
        })?;
        let parent = process.map(|process| process.parent.get());
        let started = int(trace.started());
        let command = process.and_then(|process| text(process.command.get()));
        insert!(self.info_process of process {
            id: self.rows.pid, ppid: parent, init: started, start: started, command: command,
        })?;
        for &thread in &self.rows.threads {
            let name = trace.given_name(named::THREAD, thread.into());
            insert!(self.info_thread of process { id: thread, ppid: parent, tid: thread, name: name })?;
        }
        // The NULL stream has an ID of its own in the trace, by which it is named.
        let mut null = None;
        for &id in trace.tables.streams.keys() {
            match trace.stream_id(id) {
                STREAM => null = null.or(trace.given_name(named::STREAM, id.into())),
                id => {
                    self.rows.streams.insert(id);
                }
            }
        }
        self.rows.streams.insert(STREAM);
        for &stream in &self.rows.streams {
            let name = match stream {
                STREAM => null.unwrap_or("Default Stream").to_owned(),
                id => trace.stream_name(id),
            };
            insert!(self.info_stream of process { id: stream, name: name })?;
        }
        self.rows.queues.extend(trace.tables.queues.keys());
        for &queue in &self.rows.queues {
            let name = format!("Queue {queue}");
            insert!(self.info_queue of process { id: queue, name: name })?;
        }
        self.rows.kernels.extend(trace.tables.kernels.keys());
        let of_kernels = trace.tables.kernels.values();
        let of_kernels = of_kernels.map(|kernel| kernel.agent.get());
        let agents = trace.tables.agents.keys().copied().chain(of_kernels);
        self.rows.agents.extend(agents);
        let code_object_of = |id: i64, agent: Option<u32>| insert!(self.info_code_object of process { id: id, agent_id: agent });
        // The placeholder for kernels that have no record.
        code_object_of(0, None)?;
        for &id in &self.rows.agents {
            let agent = trace.tables.agents.get(&id);
            let what = match agent.map(|agent| agent.what.get()) {
                Some(agent::CPU) => Some("CPU"),
                None if id == NO_AGENT => None,
                _ => Some("GPU"),
            };
            insert!(self.info_agent of process {
                id: id, type: what, absolute_index: what.map(|_| trace.node(id)),
                logical_index: what.map(|_| id), type_index: trace.number(id),
                name: agent.and_then(|agent| text(agent.name.get())),
                product_name: agent.and_then(|agent| text(agent.product.get())),
                user_name: trace.given_name(named::AGENT, id.into()),
            })?;
            code_object_of(code_object(id), Some(id))?;
        }
        for &id in &self.rows.kernels {
            let name = trace.kernel(id);
            let kernel = trace.tables.kernels.get(&id);
            let of = |value: fn(&Kernel) -> u64| kernel.map(|kernel| int(value(kernel)));
            let build_id = trace.build_id(id);
            let extra = build_id.map(|build_id| json!({ "build_id": build_id }).to_string());
            insert!(self.info_kernel_symbol of process {
                id: id, code_object_id: kernel.map_or(0, |kernel| code_object(kernel.agent.get())),
                kernel_name: trace.kernel_symbol(id), display_name: &*name,
                kernel_object: of(|kernel| kernel.object.get()),
                kernarg_segment_size: of(|kernel| kernel.kernarg.get().into()),
                group_segment_size: of(|kernel| kernel.lds.get().into()),
                private_segment_size: of(|kernel| kernel.scratch.get().into()),
                sgpr_count: of(|kernel| kernel.sgprs.get().into()),
                arch_vgpr_count: of(|kernel| kernel.vgprs.get().into()),
                accum_vgpr_count: of(|kernel| kernel.accum_vgprs.get().into()),
                extdata: extra.as_deref().unwrap_or(NO_EXTRA),
            })?;
        }
        Ok(())
    }
}

/// The name and the columns of each of the [`TABLES`].
fn names_and_columns() -> impl Iterator<Item = (&'static str, &'static str)> {
    let tables = TABLES.split(";\n");
    tables.filter_map(|table| table.trim().split_once(": "))
}

/// The statements that create the tables of a trace.
fn tables(suffix: &str, guid: &str) -> String {
    let mut sql = format!(
        "CREATE TABLE \"rocpd_metadata{suffix}\" (id INTEGER PRIMARY KEY NOT NULL, tag TEXT NOT NULL,
        value TEXT NOT NULL);"
    );
    for (table, columns) in names_and_columns() {
        let mut columns = columns.to_owned();
        for (short, shared) in SHARED {
            columns = columns.replace(short, shared);
        }
        for (other, _) in names_and_columns() {
            let reference = format!("REFERENCES \"rocpd_{other}{suffix}\" (id) ON UPDATE CASCADE");
            columns = columns.replace(&format!("@{other}@"), &reference);
        }
        sql += &format!(
            "CREATE TABLE \"rocpd_{table}{suffix}\" (id INTEGER PRIMARY KEY NOT NULL,
            guid TEXT NOT NULL DEFAULT '{guid}', {columns});"
        );
    }
    sql
}

/// The statements that create the views of the tables with these suffixes.
fn views(suffixes: &[String]) -> String {
    let tables = names_and_columns().map(|(table, _)| format!("rocpd_{table}"));
    let tables: Vec<String> = tables.chain(["rocpd_metadata".to_owned()]).collect();
    let mut sql = String::new();
    for table in &tables {
        sql += &union(table, suffixes);
    }
    if suffixes.len() == 1 {
        return sql + VIEWS;
    }
    // SQLite does not use the primary keys of tables in a union, so a join of unions would take minutes. Therefore the
    // tables of each trace are joined first.
    let views = VIEWS
        .split("CREATE VIEW ")
        .filter_map(|rest| rest.split_once(" AS"));
    let views: Vec<&str> = views.map(|(view, _)| view).collect();
    for suffix in suffixes {
        let is_name =
            |word: &str| views.contains(&word) || tables.iter().any(|table| table == word);
        sql += &with_suffixes(VIEWS, is_name, suffix);
    }
    for view in views {
        sql += &union(view, suffixes);
    }
    sql
}

/// The statement that creates a view of all rows of the tables or views with the same name and these suffixes.
fn union(name: &str, suffixes: &[String]) -> String {
    let selects = suffixes
        .iter()
        .map(|suffix| format!("SELECT * FROM \"{name}{suffix}\""));
    let selects: Vec<_> = selects.collect();
    format!("CREATE VIEW {name} AS {};", selects.join(" UNION ALL "))
}

/// Adds the suffix to each word of the statements that is a name.
fn with_suffixes(sql: &str, is_name: impl Fn(&str) -> bool, suffix: &str) -> String {
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
    let mut result = String::new();
    for piece in sql.split_inclusive(|char| !is_part(char)) {
        let word = piece.trim_end_matches(|char| !is_part(char));
        result += word;
        if is_name(word) {
            result += suffix;
        }
        result += &piece[word.len()..];
    }
    result
}

impl Writer for Rocpd {
    fn begin(&mut self, input: &Input, _: Request) -> anyhow::Result<()> {
        let member = input.member.as_ref();
        self.rows = Rows {
            node: member.map_or(1, |member| member.host_number),
            ..Rows::default()
        };
        Ok(())
    }

    fn record(&mut self, record: &Record, trace: &mut Trace) -> anyhow::Result<()> {
        self.create_tables(trace)?;
        match record {
            Record::Dispatch(dispatch) => self.dispatch(dispatch, trace)?,
            Record::Call(call) => self.call(call, trace)?,
            Record::Copy(copy) => self.copy(copy, trace)?,
            Record::Marker(marker) => self.marker(marker, trace)?,
            // rocpd has no table for pauses. `infos` takes the others from the trace's tables, which are complete at the
            // end.
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, trace: &mut Trace) -> anyhow::Result<()> {
        self.create_tables(trace)?;
        Ok(self.infos(trace)?)
    }

    fn finish(self: Box<Self>) -> anyhow::Result<()> {
        self.db.execute_batch(&views(&self.suffixes))?;
        self.db.execute_batch("COMMIT")?;
        self.db.close().map_err(|(_, error)| error)?;
        Ok(())
    }
}
