//! The cost of tracing for the thread that launches kernels, copies, calls HIP or sets markers: devprof, a tool that
//! passes every packet on, the naive design, and no tool. They run on AMD's ROCr with a GPU that completes packets
//! without executing them. The variants alternate, and two variants are compared within one round. Interrupts are on,
//! which is ROCr's default: a signal that is created with default attributes has an event, also in the naive design.

use crate::measure::{alternate, directory, in_memory, in_root, median, numbers, programs, target};
use clap::{Args, ValueEnum};
use std::fs;
use std::path::Path;
use tracefile::format::{Count, flag};
use tracefile::reader::{Item, Reader};

#[derive(Args)]
pub struct Options {
    /// Rounds; each variant of each case runs once in a round
    #[arg(long, default_value_t = 9)]
    runs: usize,
    /// The programs to run
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "aql,hip,null,api,copy,markers"
    )]
    programs: Vec<Program>,
    /// Run only the first case of each program: no idle queues, one thread, one packet per doorbell
    #[arg(long)]
    short: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Program {
    /// AQL packets that the program writes
    Aql,
    /// hipLaunchKernel
    Hip,
    /// hsa_amd_memory_async_copy
    Copy,
    /// hipLaunchKernel on the NULL stream, next to idle blocking streams
    Null,
    /// HIP functions that launch nothing
    Api,
    /// roctxRangePushA and roctxRangePop
    Markers,
}

/// One way to launch kernels, call functions or set markers.
struct Case {
    name: String,
    program: Program,
    /// The part of the program that is measured, if it has several.
    mode: &'static str,
    /// Idle queues or streams.
    idle: usize,
    batch: usize,
    threads: usize,
    /// The completion signals of the packets of launch-aql: `none`, `each`, or one that is `shared` by all.
    signals: &'static str,
}

const IDLE: [usize; 5] = [0, 1, 8, 32, 64];
const BLOCKING_STREAMS: [usize; 6] = [0, 1, 8, 20, 32, 64];
/// What launch-hip does on the NULL stream.
const NULL_MODES: [(&str, &str); 3] = [
    ("null", "launch"),
    (BETWEEN_WAITS, "launch between synchronizations"),
    ("null-copies", "copy and launch"),
];
const BETWEEN_WAITS: &str = "null-sync";
const BATCHES: [usize; 2] = [16, 256];
const THREADS: usize = 4;

impl Program {
    fn name(self) -> &'static str {
        match self {
            Program::Aql => "raw AQL",
            Program::Hip => "HIP",
            Program::Copy => "copy",
            Program::Null => "HIP, NULL stream",
            Program::Api => "API call",
            Program::Markers => "marker",
        }
    }

    /// The first variant does not trace, the last one records everything.
    fn variants(self) -> &'static [Variant] {
        match self {
            Program::Aql => &[NoTool, Off, Pass, Naive, Stopped, Devprof],
            Program::Hip => &[NoTool, Off, Pass, Naive, Stopped, Devprof, Calls],
            // The naive tool runs out of ROCr's event slots here.
            Program::Null => &[NoTool, Pass, Calls],
            Program::Api => &[NoTool, NaiveCalls, AllCalls],
            Program::Markers => &[NoTool, NaiveCalls, WithMarkers],
            Program::Copy => &[NoTool, NaiveCopies, WithoutCopies, WithCopies],
        }
    }

    /// The variant in which devprof records everything.
    fn complete_trace(self) -> Variant {
        self.variants().last().copied().unwrap_or(NoTool)
    }

    /// The first case, and others that each differ from it in one respect.
    fn cases(self) -> Vec<Case> {
        let case = |name: &str| Case {
            name: name.into(),
            program: self,
            mode: "",
            idle: 0,
            batch: 1,
            threads: 1,
            signals: "none",
        };
        let with_mode = |name: &str, mode| Case { mode, ..case(name) };
        let with_idle = |name: &str, mode, idle| Case {
            idle,
            ..with_mode(name, mode)
        };
        let launches = |what: &str| {
            let idle = IDLE.map(|idle| with_idle(&format!("{idle} {what}"), "", idle));
            let threads = Case {
                threads: THREADS,
                ..case(&format!("{THREADS} threads"))
            };
            idle.into_iter().chain([threads])
        };
        let with_signals = |name: &str, signals| Case {
            signals,
            ..case(name)
        };
        match self {
            Program::Aql => {
                let batches = BATCHES.map(|batch| Case {
                    batch,
                    ..case(&format!("batches of {batch}"))
                });
                let signals = [
                    with_signals("a completion signal per dispatch", "each"),
                    with_signals("a completion signal for all dispatches", "shared"),
                ];
                let cases = launches("idle queues").chain(batches).chain(signals);
                cases.collect()
            }
            Program::Hip => launches("idle streams").collect(),
            Program::Null => {
                let cases = NULL_MODES.iter().flat_map(|(mode, what)| {
                    BLOCKING_STREAMS
                        .map(|idle| with_idle(&format!("{what}, {idle} streams"), mode, idle))
                });
                cases.collect()
            }
            Program::Api => ["hipGetDevice", "hipStreamQuery"]
                .map(|name| with_mode(name, name))
                .into(),
            Program::Markers => vec![Case {
                batch: 2,
                ..with_mode("roctxRangePushA, roctxRangePop", "markers")
            }],
            Program::Copy => vec![case("a copy and the reset of its signal")],
        }
    }
}

/// The tool that is loaded into the program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    NoTool,
    Off,
    Pass,
    Naive,
    /// With a trace that begins stopped.
    Stopped,
    Devprof,
    /// Preloaded, so that API calls are recorded too.
    Calls,
    AllCalls,
    WithMarkers,
    WithoutCopies,
    WithCopies,
    /// A preloaded library that records API calls and markers.
    NaiveCalls,
    NaiveCopies,
}

use Variant::*;

/// How a variant is started. The text is for a shell with the variables `devprof` and `dir`.
struct Start {
    name: &'static str,
    preloaded: &'static str,
    /// What ROCr loads.
    tool: &'static str,
    /// A trace, and its settings.
    trace: Option<&'static str>,
    /// The type of the records that the trace must have.
    recorded: Option<Recorded>,
}

impl Variant {
    fn start(self) -> Start {
        use Recorded as R;
        let devprof = "$devprof";
        let (api, markers) = ("DEVPROF_TRACE_API=1", "DEVPROF_TRACE_MARKERS=1");
        let (stopped, copies) = ("DEVPROF_TRACE_STOPPED=1", "DEVPROF_TRACE_COPIES=1");
        let (name, preloaded, tool, trace, recorded) = match self {
            NoTool => ("no tool", "", "", None, None),
            Off => ("devprof, tracing off", devprof, "", None, None),
            Pass => ("pass-through", "", "$dir/pass.so", None, None),
            Naive => ("naive", "", "$dir/naive.so", None, None),
            NaiveCalls => ("naive", "$dir/naive-calls.so", "", None, None),
            NaiveCopies => ("naive", "", "$dir/naive-copies.so", None, None),
            Stopped => ("devprof, stopped", devprof, "", Some(stopped), None),
            Devprof => ("devprof", "", devprof, Some(""), Some(R::Dispatches)),
            Calls => {
                let name = "devprof, with API calls";
                (name, devprof, "", Some(""), Some(R::Dispatches))
            }
            AllCalls => {
                let name = "devprof, with all API calls";
                (name, devprof, "", Some(api), Some(R::Calls))
            }
            WithMarkers => {
                let name = "devprof, with markers";
                (name, devprof, "", Some(markers), Some(R::Markers))
            }
            WithoutCopies => ("devprof, without copies", "", devprof, Some(""), None),
            WithCopies => ("devprof", "", devprof, Some(copies), Some(R::Copies)),
        };
        Start {
            name,
            preloaded,
            tool,
            trace,
            recorded,
        }
    }
}

/// The type of the records by which a complete trace is recognized.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Recorded {
    Dispatches,
    Calls,
    /// With times.
    Copies,
    /// One record per range, which the program pushes and pops.
    Markers,
}

/// The output of one run of a program: times in nanoseconds, and the number of dispatches, calls or copies. When it was counted:
/// numbers for [`COUNTS`].
type Times = [f64; 7];
/// One of the times, or a sum.
type Part = fn(&Times) -> f64;

/// CPU time of a launching thread per dispatch, or of a calling thread per call, copy or marker.
const CPU: Part = |times| times[0];
/// CPU time of single launches, and elapsed time: medians and 99th percentiles.
const SINGLE: Part = |times| times[1];
const SINGLE_P99: Part = |times| times[2];
const WALL: Part = |times| times[3];
const WALL_P99: Part = |times| times[4];
/// CPU time of the tool on other threads, per dispatch.
const OTHER_THREADS: Part = |times| times[5];
const ALL_THREADS: Part = |times| times[0] + times[5];

/// The results of a case: for each variant, one run per round.
struct Measured {
    case: Case,
    runs: Vec<(Variant, Vec<Times>)>,
}

pub fn run(options: &Options) -> Result<(), String> {
    let dir = directory("trace")?;
    build(&dir)?;
    for &program in &options.programs {
        let mut cases = program.cases();
        cases.truncate(if options.short { 1 } else { cases.len() });
        let measured = measure(&dir, program, cases, options.runs)?;
        match program {
            Program::Aql | Program::Hip => {
                launch_tables(program, &measured);
                if !options.short {
                    idle_table(program, &measured);
                }
                counts_table(&dir, &measured[0])?;
            }
            Program::Null => streams_table(&measured),
            Program::Copy => copies_table(&measured),
            Program::Api => added_table(program, &measured, 100.0),
            Program::Markers => added_table(program, &measured, 50.0),
        }
    }
    Ok(())
}

fn build(dir: &Path) -> Result<(), String> {
    crate::measure::runtime()?;
    in_root(&format!(
        "cd {}
programs={}
tool='clang++-23 -O2 -Wall -shared -fPIC'
hip='clang++-23 -x hip --offload-arch=gfx1100 -O1 -nogpuinc -nogpulib -DN=0'
clang-23 -O2 -Wall -shared -fPIC $programs/silent.c -o silent.so
$tool $programs/intercept.cpp -o pass.so
$tool -DNAIVE $programs/intercept.cpp -o naive.so
$tool $programs/counts.cpp -o counts.so
$tool $programs/naive-calls.cpp -o naive-calls.so
$hip --offload-device-only --no-gpu-bundle-output $programs/kernel.hip -o kernel.co
$hip -c $programs/kernel.hip -o kernel.o
$tool $programs/naive-copies.cpp -o naive-copies.so
clang++-23 -O2 -Wall $programs/launch-aql.cpp -o launch-aql -lhsa-runtime64
clang++-23 -O2 -Wall $programs/copy-hsa.cpp -o copy-hsa -lhsa-runtime64
clang++-23 -O2 -Wall -c $programs/launch-hip.cpp -o launch-hip.o
clang++-23 --hip-link launch-hip.o kernel.o -o launch-hip -lamdhip64
clang++-23 -O2 -Wall $programs/calls.cpp -o calls -lamdhip64",
        dir.display(),
        programs().display()
    ))
    .map(|_| ())
}

/// Runs the program of a case once. Returns the numbers that it printed.
fn run_once(dir: &Path, case: &Case, variant: Variant, counted: bool) -> Result<Times, String> {
    let trace = in_memory();
    let start = variant.start();
    let (idle, batch, threads) = (case.idle, case.batch, case.threads);
    let (mode, signals) = (case.mode, case.signals);
    let program = match case.program {
        Program::Aql => format!("./launch-aql kernel.co {idle} {batch} {threads} {signals}"),
        Program::Hip | Program::Null => {
            format!("GPU_MAX_HW_QUEUES=80 ./launch-hip {idle} {threads} {mode}")
        }
        Program::Api | Program::Markers => format!("./calls {mode}"),
        Program::Copy => "./copy-hsa".to_owned(),
    };
    let traced = start.trace.map_or(String::new(), |settings| {
        format!("DEVPROF_TRACE={} {settings}", trace.display())
    });
    let script = format!(
        "cd {dir}
dir=$PWD devprof={library} counts={counts}
env LD_PRELOAD=\"$LD_PRELOAD:{preloaded}:$counts\" HSA_MODEL_LIB=$dir/silent.so HSA_ENABLE_INTERRUPT=1 HSA_TOOLS_LIB=\"${{counts:+$counts }}{tool}\" {traced} \
timeout 60 env {program} 2> errors || {{ echo $? >> errors; cat errors >&2; exit 1; }}",
        dir = dir.display(),
        library = target().join("dist/libdevprof.so").display(),
        counts = if counted { "$dir/counts.so" } else { "" },
        preloaded = start.preloaded,
        tool = start.tool,
    );
    let output = in_root(&script)?;
    let what = format!("{}, {}", case.name, start.name);
    let errors = dir.join("errors");
    let errors = fs::read_to_string(&errors)
        .map_err(|e| format!("cannot read {}: {e}", errors.display()))?;
    let is_shown =
        |line: &&str| line.contains("devprof:") || line.starts_with("system calls are not");
    for line in errors.lines().filter(is_shown) {
        eprintln!("bench: {what}: {line}");
    }
    let mut numbers: Times = numbers(&case.name, &output)?;
    if start.trace.is_some() {
        let checked = start.recorded.map_or(Ok(()), |recorded| {
            check_trace(&trace, recorded, numbers[6] as u64)
        });
        fs::remove_file(&trace).map_err(|e| format!("cannot remove {}: {e}", trace.display()))?;
        checked.map_err(|error| format!("{what}: {error}"))?;
    }
    if case.mode == BETWEEN_WAITS {
        // The thread is often preempted between waits: the median of single launches does not contain that.
        numbers[0] = numbers[1];
    }
    Ok(numbers)
}

/// Checks that the trace is complete: one with missing records would seem cheap.
fn check_trace(trace: &Path, recorded: Recorded, expected: u64) -> Result<(), String> {
    let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", trace.display());
    let mut reader = Reader::open(trace).map_err(|e| fail(&e))?;
    let mut found = 0;
    while let Some(item) = reader.next_item().map_err(|e| fail(&e))? {
        let kind = match item {
            Ok(Item::Dispatch(_)) => Recorded::Dispatches,
            Ok(Item::Call(_)) => Recorded::Calls,
            Ok(Item::Marker(_)) => Recorded::Markers,
            Ok(Item::Copy(copy)) if copy.head.flags.get() & flag::CLOCK != flag::CLOCK_NONE => {
                Recorded::Copies
            }
            Ok(_) => continue,
            Err(damage) => return Err(format!("byte {}: {}", damage.offset, damage.what)),
        };
        found += u64::from(kind == recorded);
    }
    let counts = [
        Count::DroppedDispatches,
        Count::DroppedCalls,
        Count::DroppedCopies,
        Count::DroppedMarkers,
    ];
    let dropped = counts.map(|count| reader.count(count));
    let is_complete = match recorded {
        Recorded::Markers => found >= expected / 2,
        Recorded::Copies => found == expected,
        Recorded::Dispatches | Recorded::Calls => found >= expected,
    };
    if !is_complete || dropped != [Some(0); 4] {
        return Err(format!(
            "{recorded:?}: {found} of {expected} were recorded, {dropped:?} dropped"
        ));
    }
    Ok(())
}

/// Runs all variants of all cases, alternating.
fn measure(
    dir: &Path,
    program: Program,
    cases: Vec<Case>,
    rounds: usize,
) -> Result<Vec<Measured>, String> {
    let variants = program.variants();
    let all: Vec<(&Case, Variant)> = cases
        .iter()
        .flat_map(|case| variants.iter().map(move |&variant| (case, variant)))
        .collect();
    let mut runs = alternate(rounds, &all, |&(case, variant)| {
        run_once(dir, case, variant, false)
    })?
    .into_iter();
    let mut measured = Vec::new();
    for case in cases {
        let runs = variants.iter().copied().zip(runs.by_ref()).collect();
        measured.push(Measured { case, runs });
    }
    Ok(measured)
}

impl Measured {
    fn runs(&self, of: Variant) -> &[Times] {
        self.runs
            .iter()
            .find(|(variant, _)| *variant == of)
            .map_or(&[], |(_, times)| times)
    }

    /// The difference between `of` and `over` in each round.
    fn added(&self, of: Variant, over: Variant, part: Part) -> Vec<f64> {
        let pairs = self.runs(of).iter().zip(self.runs(over));
        pairs.map(|(of, over)| part(of) - part(over)).collect()
    }
}

/// The median, and the range of the middle half.
fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let last = values.len() - 1;
    let (low, high) = (values[last / 4], values[last - last / 4]);
    format!("{:.0} ({low:.0} to {high:.0})", median(values))
}

/// A column of a table: the title, and the cell of each row.
type Column = (&'static str, Box<dyn Fn(&Measured) -> String>);

/// The median of a variant.
fn median_of(title: &'static str, of: Variant, part: Part) -> Column {
    let cell = move |row: &Measured| {
        let median = median(row.runs(of).iter().map(part).collect());
        format!("{median:.0}")
    };
    (title, Box::new(cell))
}

/// The time that `of` adds to `over`.
fn added(title: &'static str, of: Variant, over: Variant, part: Part) -> Column {
    let cell = move |row: &Measured| spread(row.added(of, over, part));
    (title, Box::new(cell))
}

/// How many times as much `of` adds to `over` as `other`.
fn ratio(title: &'static str, of: Variant, other: Variant, over: Variant, part: Part) -> Column {
    let cell = move |row: &Measured| {
        let [of, other] = [of, other].map(|variant| median(row.added(variant, over, part)));
        format!("{:.1}", of / other)
    };
    (title, Box::new(cell))
}

/// Prints a table, with one row per case.
fn table<'m>(
    title: &str,
    program: Program,
    rows: impl IntoIterator<Item = &'m Measured>,
    columns: &[Column],
) {
    let titles: Vec<&str> = columns.iter().map(|(title, _)| *title).collect();
    println!(
        "{title}:\n\n| {} | {} |\n| --- |{}",
        program.name(),
        titles.join(" | "),
        " ---: |".repeat(columns.len())
    );
    for row in rows {
        let cells: Vec<String> = columns.iter().map(|(_, cell)| cell(row)).collect();
        println!("| {} | {} |", row.case.name, cells.join(" | "));
    }
    println!();
}

fn launch_tables(program: Program, measured: &[Measured]) {
    let complete = program.complete_trace();
    let mut columns = vec![
        median_of("no tool", NoTool, CPU),
        added("tracing off, added", Off, NoTool, CPU),
        median_of("pass-through", Pass, CPU),
        added("over pass-through: naive", Naive, Pass, CPU),
        added("devprof", Devprof, Pass, CPU),
        ratio("naive / devprof", Naive, Devprof, Pass, CPU),
    ];
    if complete == Calls {
        let title = "naive / devprof, with API calls";
        columns.insert(5, added("devprof, with API calls", Calls, Pass, CPU));
        columns.push(ratio(title, Naive, Calls, Pass, CPU));
    }
    let all_threads = "all threads, naive / devprof";
    columns.extend([
        median_of("other threads: naive", Naive, OTHER_THREADS),
        median_of("devprof", complete, OTHER_THREADS),
        ratio(all_threads, Naive, complete, Pass, ALL_THREADS),
    ]);
    let title = "CPU time of the launching thread, and of the tool on other threads, ns per dispatch (in brackets the middle half \
                 of the rounds)";
    table(title, program, measured, &columns);

    // ROCr's intercept queues, and devprof's own part.
    let columns = [
        median_of("no tool", NoTool, CPU),
        added("tracing off, added", Off, NoTool, CPU),
        added("pass-through, added", Pass, NoTool, CPU),
        added("stopped, added", Stopped, NoTool, CPU),
        added("stopped over pass-through", Stopped, Pass, CPU),
    ];
    let title = "A trace that is stopped: CPU time of the launching thread, ns per dispatch";
    table(title, program, measured, &columns);

    for (name, part) in [
        ("CPU time, median", SINGLE),
        ("CPU time, 99th percentile", SINGLE_P99),
        ("elapsed time, median", WALL),
        ("elapsed time, 99th percentile", WALL_P99),
    ] {
        let columns = [
            median_of("no tool", NoTool, part),
            median_of("pass-through", Pass, part),
            added("devprof, added", complete, Pass, part),
            added("naive, added", Naive, Pass, part),
        ];
        let title = format!("A single launch, {name}, ns, and the difference to pass-through");
        let singles = measured.iter().filter(|row| row.case.batch == 1);
        table(&title, program, singles, &columns);
    }
}

/// The effect of idle queues on a launch.
fn idle_table(program: Program, measured: &[Measured]) {
    let columns = [NoTool, Pass, program.complete_trace()].map(|variant| -> Column {
        let none: Vec<f64> = measured[0].runs(variant).iter().map(CPU).collect();
        let cell = move |row: &Measured| {
            let pairs = row.runs(variant).iter().zip(&none);
            spread(pairs.map(|(some, none)| 100.0 * CPU(some) / none).collect())
        };
        (variant.start().name, Box::new(cell))
    });
    let title = "CPU time of a launch, in percent of a launch without idle queues";
    let idle = measured.iter().filter(|row| row.case.idle > 0);
    table(title, program, idle, &columns);
}

/// Launches on the NULL stream.
fn streams_table(measured: &[Measured]) {
    let over = "devprof, with API calls: over pass-through";
    let columns = [
        median_of("no tool", NoTool, CPU),
        median_of("pass-through", Pass, CPU),
        added(over, Calls, Pass, CPU),
        median_of("other threads", Calls, OTHER_THREADS),
    ];
    let title = "CPU time of the launching thread, ns per launch";
    table(title, Program::Null, measured, &columns);
}

fn copies_table(measured: &[Measured]) {
    let columns = [
        median_of("no tool", NoTool, CPU),
        added("devprof, without copies, added", WithoutCopies, NoTool, CPU),
        added("devprof, added", WithCopies, NoTool, CPU),
        added("naive, added", NaiveCopies, NoTool, CPU),
    ];
    table("CPU time, ns", Program::Copy, measured, &columns);
}

/// The time that recording adds to a call or a marker. `goal`: the limit for it, in nanoseconds.
fn added_table(program: Program, measured: &[Measured], goal: f64) {
    let devprof = program.complete_trace();
    let is_met = move |row: &Measured| {
        let is_met = median(row.added(devprof, NoTool, CPU)) <= goal;
        if is_met { "met" } else { "missed" }.to_owned()
    };
    let p99 = "99th percentile, added: naive";
    let columns = [
        median_of("no tool", NoTool, CPU),
        added("added: naive", NaiveCalls, NoTool, CPU),
        added("devprof", devprof, NoTool, CPU),
        ratio("naive / devprof", NaiveCalls, devprof, NoTool, CPU),
        added(p99, NaiveCalls, NoTool, SINGLE_P99),
        added("devprof", devprof, NoTool, SINGLE_P99),
        ("goal", Box::new(is_met)),
    ];
    let title = format!(
        "CPU time of the calling thread, ns per {}. The goal is that devprof adds at most {goal:.0} ns",
        program.name()
    );
    table(&title, program, measured, &columns);
}

/// The columns of `counts_table`, and where a program prints their numbers.
const COUNTS: [(&str, usize); 6] = [
    ("allocations", 2),
    ("mutexes locked", 5),
    ("signals created", 3),
    ("handlers set", 4),
    ("system calls", 1),
    ("preempted", 6),
];

fn counts_table(dir: &Path, measured: &Measured) -> Result<(), String> {
    let (program, case) = (measured.case.program.name(), &measured.case.name);
    println!("The launching thread in the steady state, per thousand dispatches:\n");
    println!(
        "| {program}, {case} | {} |",
        COUNTS.map(|(name, _)| name).join(" | ")
    );
    println!("| --- |{}", " ---: |".repeat(COUNTS.len()));
    for (variant, _) in &measured.runs {
        let counts = run_once(dir, &measured.case, *variant, true)?;
        // The kernel may not count system calls for this user.
        let cells = COUNTS.map(|(_, at)| match counts[at] * 1e3 / counts[0] {
            count if count.is_nan() => "not counted".to_owned(),
            count => format!("{count:.1}"),
        });
        println!("| {} | {} |", variant.start().name, cells.join(" | "));
    }
    println!();
    Ok(())
}
