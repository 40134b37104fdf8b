//! An SQLite database with the dispatches and API calls of a trace, in version 3 of rocpd's schema.
//!
//! The name of each table ends in the UUID of the trace, and a view without this suffix refers to it, so that a reader
//! can attach the databases of several processes. Readers join each dispatch with a thread, an event, a kernel symbol, a
//! code object and a stream. Traces have neither code objects nor streams, so they have placeholder rows.

use super::Writer;
use super::source::{Record, Trace, clock, has};
use md5::{Digest, Md5};
use rusqlite::{Connection, params};
use std::collections::BTreeSet;
use std::path::Path;
use tracefile::format::{Call, Dispatch, flag};
use zerocopy::IntoBytes;

/// The tables, and their columns after `id` and `guid`. `@x@` is replaced with a reference to table x, and `%x` with
/// the columns in [`SHARED`].
const TABLES: [(&str, &str); 19] = [
    ("string", "string TEXT NOT NULL UNIQUE"),
    (
        "info_node",
        "hash BIGINT NOT NULL UNIQUE, machine_id TEXT NOT NULL UNIQUE, system_name TEXT, hostname TEXT,
        release TEXT, version TEXT, hardware_name TEXT, domain_name TEXT",
    ),
    (
        "info_process",
        "nid INTEGER NOT NULL @info_node@, ppid INTEGER, pid INTEGER NOT NULL, init BIGINT, fini BIGINT,
        start BIGINT, \"end\" BIGINT, command TEXT, environment JSONB NOT NULL DEFAULT '{}', %ext",
    ),
    (
        "info_thread",
        "%nid, ppid INTEGER, %pid, tid INTEGER NOT NULL, name TEXT, start BIGINT, \"end\" BIGINT, %ext",
    ),
    (
        "info_agent",
        "%nid, %pid, type TEXT CHECK (type IN ('CPU', 'GPU')), absolute_index INTEGER, logical_index INTEGER,
        type_index INTEGER, uuid INTEGER, name TEXT, model_name TEXT, vendor_name TEXT, product_name TEXT,
        user_name TEXT, %ext",
    ),
    ("info_queue", "%nid, %pid, name TEXT, %ext"),
    ("info_stream", "%nid, %pid, name TEXT, %ext"),
    (
        "info_pmc",
        "%nid, %pid, agent_id INTEGER @info_agent@, target_arch TEXT CHECK (target_arch IN ('CPU', 'GPU')),
        event_code INT, instance_id INTEGER, name TEXT NOT NULL, symbol TEXT NOT NULL, description TEXT,
        long_description TEXT DEFAULT '', component TEXT, units TEXT DEFAULT '',
        value_type TEXT CHECK (value_type IN ('ABS', 'ACCUM', 'RELATIVE')), block TEXT, expression TEXT,
        is_constant INTEGER, is_derived INTEGER, %ext",
    ),
    (
        "info_code_object",
        "%nid, %pid, agent_id INTEGER @info_agent@, uri TEXT, load_base BIGINT, load_size BIGINT,
        load_delta BIGINT, storage_type TEXT CHECK (storage_type IN ('FILE', 'MEMORY')), %ext",
    ),
    (
        "info_kernel_symbol",
        "%nid, %pid, code_object_id INTEGER NOT NULL @info_code_object@, kernel_name TEXT, display_name TEXT,
        kernel_object INTEGER, kernarg_segment_size INTEGER, kernarg_segment_alignment INTEGER,
        group_segment_size INTEGER, private_segment_size INTEGER, sgpr_count INTEGER, arch_vgpr_count INTEGER,
        accum_vgpr_count INTEGER, %ext",
    ),
    (
        "track",
        "%nid, pid INTEGER @info_process@, tid INTEGER @info_thread@, name_id INTEGER @string@, %ext",
    ),
    (
        "event",
        "category_id INTEGER @string@, stack_id INTEGER, parent_stack_id INTEGER, correlation_id INTEGER,
        call_stack JSONB NOT NULL DEFAULT '{}', line_info JSONB NOT NULL DEFAULT '{}', %ext",
    ),
    (
        "arg",
        "event_id INTEGER NOT NULL @event@, position INTEGER NOT NULL, type TEXT NOT NULL, name TEXT NOT NULL,
        value TEXT, %ext",
    ),
    (
        "pmc_event",
        "event_id INTEGER @event@, pmc_id INTEGER NOT NULL @info_pmc@, value REAL DEFAULT 0.0, %ext",
    ),
    (
        "region",
        "%nid, %pid, tid INTEGER NOT NULL @info_thread@, %span, name_id INTEGER NOT NULL @string@,
        event_id INTEGER @event@, %ext",
    ),
    (
        "sample",
        "track_id INTEGER NOT NULL @track@, timestamp BIGINT NOT NULL, event_id INTEGER @event@, %ext",
    ),
    (
        "kernel_dispatch",
        "%nid, %pid, tid INTEGER @info_thread@, agent_id INTEGER NOT NULL @info_agent@,
        kernel_id INTEGER NOT NULL @info_kernel_symbol@, dispatch_id INTEGER NOT NULL,
        queue_id INTEGER NOT NULL @info_queue@, stream_id INTEGER NOT NULL @info_stream@, %span,
        private_segment_size INTEGER, group_segment_size INTEGER, workgroup_size_x INTEGER NOT NULL,
        workgroup_size_y INTEGER NOT NULL, workgroup_size_z INTEGER NOT NULL, grid_size_x INTEGER NOT NULL,
        grid_size_y INTEGER NOT NULL, grid_size_z INTEGER NOT NULL, region_name_id INTEGER @string@,
        event_id INTEGER @event@, %ext",
    ),
    (
        "memory_copy",
        "%nid, %pid, tid INTEGER @info_thread@, %span, name_id INTEGER NOT NULL @string@,
        dst_agent_id INTEGER @info_agent@, dst_address INTEGER, src_agent_id INTEGER @info_agent@,
        src_address INTEGER, size INTEGER NOT NULL, queue_id INTEGER @info_queue@,
        stream_id INTEGER @info_stream@, region_name_id INTEGER @string@, event_id INTEGER @event@, %ext",
    ),
    (
        "memory_allocate",
        "%nid, %pid, tid INTEGER @info_thread@, agent_id INTEGER @info_agent@,
        type TEXT CHECK (type IN ('ALLOC', 'FREE', 'REALLOC', 'RECLAIM')),
        level TEXT CHECK (level IN ('REAL', 'VIRTUAL', 'SCRATCH')), %span, address INTEGER,
        size INTEGER NOT NULL, queue_id INTEGER @info_queue@, stream_id INTEGER @info_stream@,
        event_id INTEGER @event@, %ext",
    ),
];

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
";

/// The rows of `rocpd_string` in every database.
const STRINGS: [(i64, &str); 3] = [(1, "KERNEL_DISPATCH"), (2, "HIP_RUNTIME_API"), (3, "")];
const DISPATCHES: i64 = 1;
const CALLS: i64 = 2;
const NO_REGION: i64 = 3;
/// The IDs of the row of the host, and of the placeholder for streams, which are not recorded.
const NODE: i64 = 1;
const STREAM: i64 = 0;

pub struct Rocpd {
    db: Connection,
    /// The suffix of the tables, once they exist.
    suffix: Option<String>,
    events: i64,
    /// The IDs that records refer to.
    agents: BTreeSet<u32>,
    queues: BTreeSet<u32>,
    kernels: BTreeSet<u32>,
    threads: BTreeSet<u32>,
}

/// SQLite's integers are signed. Times do not reach the sign bit; addresses wrap around, as in rocpd.
fn int(value: impl Into<u64>) -> i64 {
    value.into() as i64
}

/// The ID of the placeholder for all code objects of an agent.
fn code_object(agent: u32) -> i64 {
    i64::from(agent) + 1
}

impl Rocpd {
    pub fn new(path: &Path) -> Result<Rocpd, rusqlite::Error> {
        let db = Connection::open(path)?;
        // The file becomes the output only when it is complete, so nothing is ever rolled back. References are valid
        // by construction, but the rows that they refer to are written last.
        db.execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; BEGIN;",
        )?;
        Ok(Rocpd {
            db,
            suffix: None,
            events: 0,
            agents: BTreeSet::new(),
            queues: BTreeSet::new(),
            kernels: BTreeSet::new(),
            threads: BTreeSet::new(),
        })
    }

    /// Creates the tables at the first record. Returns the suffix of their names.
    fn begin(&mut self, trace: &Trace) -> Result<String, rusqlite::Error> {
        if let Some(suffix) = &self.suffix {
            return Ok(suffix.clone());
        }
        // The ID depends only on the trace's header (process, start time and clock), so it is the same in each export.
        let hex = format!("{:x}", Md5::digest(trace.header.as_bytes()));
        let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &hex[part]);
        let (guid, suffix) = (parts.join("-"), format!("_{}", parts.join("_")));
        self.db.execute_batch(&schema(&suffix, &guid))?;
        for (tag, value) in [("schema_version", "3"), ("uuid", &suffix), ("guid", &guid)] {
            let sql = format!("INSERT INTO \"rocpd_metadata{suffix}\" (tag, value) VALUES (?, ?)");
            self.db.execute(&sql, params![tag, value])?;
        }
        for (id, string) in STRINGS {
            let sql = format!("INSERT INTO \"rocpd_string{suffix}\" (id, string) VALUES (?, ?)");
            self.db.execute(&sql, params![id, string])?;
        }
        self.suffix = Some(suffix.clone());
        Ok(suffix)
    }

    /// Adds the event of a record. Returns its ID.
    fn event(&mut self, suffix: &str, category: i64, id: u64) -> Result<i64, rusqlite::Error> {
        self.events += 1;
        let stack = (id != 0).then(|| int(id));
        let sql = format!(
            "INSERT INTO \"rocpd_event{suffix}\" (id, category_id, stack_id, parent_stack_id, correlation_id)
            VALUES (?1, ?2, ?3, ?3, ?3)"
        );
        let mut insert = self.db.prepare_cached(&sql)?;
        insert.execute(params![self.events, category, stack])?;
        Ok(self.events)
    }

    fn dispatch(&mut self, dispatch: &Dispatch, trace: &Trace) -> Result<(), rusqlite::Error> {
        let suffix = self.begin(trace)?;
        let event = self.event(&suffix, DISPATCHES, dispatch.correlation.get())?;
        self.agents.insert(dispatch.agent.get());
        self.queues.insert(dispatch.queue.get());
        self.kernels.insert(dispatch.kernel.get());
        self.threads.insert(dispatch.thread.get());
        let (start, end) = trace.times_or_submission(dispatch);
        let sql = format!(
            "INSERT INTO \"rocpd_kernel_dispatch{suffix}\" (nid, pid, tid, agent_id, kernel_id, dispatch_id,
            queue_id, stream_id, start, \"end\", private_segment_size, group_segment_size, workgroup_size_x,
            workgroup_size_y, workgroup_size_z, grid_size_x, grid_size_y, grid_size_z, region_name_id, event_id,
            extdata) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        );
        let [wx, wy, wz] = dispatch.workgroup.map(|size| size.get());
        let [gx, gy, gz] = dispatch.grid.map(|size| size.get());
        let extra = match (
            clock(dispatch.head.flags.get()),
            has(dispatch, flag::UNFINISHED),
        ) {
            ("system", false) => "{}".to_owned(),
            (clock, unfinished) => format!("{{\"clock\":\"{clock}\",\"unfinished\":{unfinished}}}"),
        };
        self.db.prepare_cached(&sql)?.execute(params![
            NODE,
            trace.header.pid.get(),
            dispatch.thread.get(),
            dispatch.agent.get(),
            dispatch.kernel.get(),
            int(dispatch.head.id),
            dispatch.queue.get(),
            STREAM,
            int(start),
            int(end),
            dispatch.scratch.get(),
            dispatch.lds.get(),
            wx,
            wy,
            wz,
            gx,
            gy,
            gz,
            NO_REGION,
            event,
            extra,
        ])?;
        Ok(())
    }

    fn call(&mut self, call: &Call, trace: &Trace) -> Result<(), rusqlite::Error> {
        let suffix = self.begin(trace)?;
        let event = self.event(&suffix, CALLS, call.head.id.get())?;
        self.threads.insert(call.thread.get());
        let name = trace.function(call);
        let sql = format!("INSERT OR IGNORE INTO \"rocpd_string{suffix}\" (string) VALUES (?)");
        self.db.prepare_cached(&sql)?.execute([name])?;
        let sql = format!(
            "INSERT INTO \"rocpd_region{suffix}\" (nid, pid, tid, start, \"end\", event_id, extdata, name_id)
            SELECT ?, ?, ?, ?, ?, ?, json_object('status', ?), id FROM \"rocpd_string{suffix}\" WHERE string = ?"
        );
        self.db.prepare_cached(&sql)?.execute(params![
            NODE,
            trace.header.pid.get(),
            call.thread.get(),
            int(trace.ns(call.start.get())),
            int(trace.ns(call.end.get())),
            event,
            call.status.get(),
            name,
        ])?;
        Ok(())
    }

    /// Adds the rows that dispatches and calls refer to.
    fn infos(&mut self, trace: &mut Trace) -> Result<(), rusqlite::Error> {
        let suffix = self.begin(trace)?;
        let pid = trace.header.pid.get();
        let process = trace.tables.process;
        let text = |id: u32| trace.tables.text(id);
        let host = process.and_then(|process| text(process.host.get()));
        let machine = host.unwrap_or("unknown");
        let hash = Md5::digest(machine.as_bytes());
        let hash = hash
            .iter()
            .take(8)
            .fold(0, |hash, byte| hash << 8 | i64::from(*byte));
        self.db.execute(
            &format!(
                "INSERT INTO \"rocpd_info_node{suffix}\" (id, hash, machine_id, system_name, hostname)
                VALUES (?, ?, ?, 'Linux', ?)"
            ),
            params![NODE, hash, machine, host],
        )?;
        self.db.execute(
            &format!(
                "INSERT INTO \"rocpd_info_process{suffix}\" (id, nid, ppid, pid, init, start, command)
                VALUES (?1, ?2, ?3, ?1, ?4, ?4, ?5)"
            ),
            params![
                pid,
                NODE,
                process.map(|process| process.parent.get()),
                int(trace.ns(trace.header.started.get())),
                process.and_then(|process| text(process.command.get())),
            ],
        )?;
        for &thread in &self.threads {
            let sql = format!(
                "INSERT INTO \"rocpd_info_thread{suffix}\" (id, nid, ppid, pid, tid) VALUES (?1, ?2, ?3, ?4, ?1)"
            );
            let parent = process.map(|process| process.parent.get());
            self.db.execute(&sql, params![thread, NODE, parent, pid])?;
        }
        let sql = format!(
            "INSERT INTO \"rocpd_info_stream{suffix}\" (id, nid, pid, name) VALUES (?, ?, ?, 'Default Stream')"
        );
        self.db.execute(&sql, params![STREAM, NODE, pid])?;
        self.queues.extend(trace.tables.queues.keys());
        for &queue in &self.queues {
            let sql = format!(
                "INSERT INTO \"rocpd_info_queue{suffix}\" (id, nid, pid, name) VALUES (?, ?, ?, ?)"
            );
            let name = format!("Queue {queue}");
            self.db.execute(&sql, params![queue, NODE, pid, name])?;
        }
        self.kernels.extend(trace.tables.kernels.keys());
        let of_kernels = trace
            .tables
            .kernels
            .values()
            .map(|kernel| kernel.agent.get());
        self.agents
            .extend(trace.tables.agents.keys().copied().chain(of_kernels));
        // Code object 0 is the placeholder for kernels that have no record.
        let code_objects = format!(
            "INSERT INTO \"rocpd_info_code_object{suffix}\" (id, nid, pid, agent_id) VALUES (?, ?, ?, ?)"
        );
        let no_agent: Option<u32> = None;
        self.db
            .execute(&code_objects, params![0, NODE, pid, no_agent])?;
        for (index, &id) in (0u32..).zip(&self.agents) {
            let agent = trace.tables.agents.get(&id);
            let name = agent.and_then(|agent| text(agent.name.get()));
            let product = agent.and_then(|agent| text(agent.product.get()));
            self.db.execute(
                &format!(
                    "INSERT INTO \"rocpd_info_agent{suffix}\" (id, nid, pid, type, absolute_index, logical_index,
                    type_index, name, product_name) VALUES (?, ?, ?, 'GPU', ?, ?, ?, ?, ?)"
                ),
                params![id, NODE, pid, trace.node(id), index, index, name, product],
            )?;
            self.db
                .execute(&code_objects, params![code_object(id), NODE, pid, id])?;
        }
        for &id in &self.kernels {
            let name = trace.kernel(id);
            let kernel = trace.tables.kernels.get(&id);
            let of = |value: fn(&tracefile::format::Kernel) -> u64| {
                kernel.map(|kernel| int(value(kernel)))
            };
            self.db.execute(
                &format!(
                    "INSERT INTO \"rocpd_info_kernel_symbol{suffix}\" (id, nid, pid, code_object_id, kernel_name,
                    display_name, kernel_object, kernarg_segment_size, group_segment_size, private_segment_size,
                    sgpr_count, arch_vgpr_count, accum_vgpr_count) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                ),
                params![
                    id,
                    NODE,
                    pid,
                    kernel.map_or(0, |kernel| code_object(kernel.agent.get())),
                    trace.kernel_symbol(id),
                    &*name,
                    of(|kernel| kernel.object.get()),
                    of(|kernel| kernel.kernarg.get().into()),
                    of(|kernel| kernel.lds.get().into()),
                    of(|kernel| kernel.scratch.get().into()),
                    of(|kernel| kernel.sgprs.get().into()),
                    of(|kernel| kernel.vgprs.get().into()),
                    of(|kernel| kernel.accum_vgprs.get().into()),
                ],
            )?;
        }
        Ok(())
    }
}

/// The statements that create all tables and views.
fn schema(suffix: &str, guid: &str) -> String {
    let mut sql = format!(
        "CREATE TABLE \"rocpd_metadata{suffix}\" (id INTEGER PRIMARY KEY NOT NULL, tag TEXT NOT NULL,
        value TEXT NOT NULL);
        CREATE VIEW rocpd_metadata AS SELECT * FROM \"rocpd_metadata{suffix}\";"
    );
    for (table, columns) in TABLES {
        let mut columns = columns.to_owned();
        for (short, shared) in SHARED {
            columns = columns.replace(short, shared);
        }
        for (other, _) in TABLES {
            let reference = format!("REFERENCES \"rocpd_{other}{suffix}\" (id) ON UPDATE CASCADE");
            columns = columns.replace(&format!("@{other}@"), &reference);
        }
        sql += &format!(
            "CREATE TABLE \"rocpd_{table}{suffix}\" (id INTEGER PRIMARY KEY NOT NULL,
            guid TEXT NOT NULL DEFAULT '{guid}', {columns});
            CREATE VIEW rocpd_{table} AS SELECT * FROM \"rocpd_{table}{suffix}\";"
        );
    }
    sql + VIEWS
}

impl Writer for Rocpd {
    fn record(&mut self, record: &Record, trace: &mut Trace) -> anyhow::Result<()> {
        match record {
            Record::Dispatch(dispatch) => Ok(self.dispatch(dispatch, trace)?),
            Record::Call(call) => Ok(self.call(call, trace)?),
            Record::Copy(_)
            | Record::Marker(_)
            | Record::Stream(_)
            | Record::Name(_)
            | Record::Recording(_) => Ok(()),
            // `infos` takes them from the trace's tables, which are complete at the end.
            Record::Process(_) | Record::Agent(_) | Record::Queue(_) | Record::Kernel(_) => Ok(()),
        }
    }

    fn finish(mut self: Box<Self>, trace: &mut Trace) -> anyhow::Result<()> {
        self.infos(trace)?;
        self.db.execute_batch("COMMIT")?;
        self.db.close().map_err(|(_, error)| error)?;
        Ok(())
    }
}
