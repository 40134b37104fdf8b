//! The cost of tracing for the thread that launches kernels, copies, calls HIP or sets markers: devprof, a tool that
//! passes every packet on, the naive design, and no tool. They run on AMD's ROCr with a GPU that completes packets
//! without executing them. The variants alternate, and two variants are compared within one round. Interrupts are on,
//! which is ROCr's default: a signal that is created with default attributes has an event, also in the naive design.

use crate::measure::{in_root, median, repo, target};
use clap::{Args, ValueEnum};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
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
    signals: OwnSignals,
}

/// The completion signals of the program's packets.
#[derive(Clone, Copy)]
enum OwnSignals {
    None,
    /// One for all packets, which counts them.
    Shared,
    /// One for each packet.
    Each,
}

impl OwnSignals {
    /// The argument of launch-aql.
    fn name(self) -> &'static str {
        match self {
            OwnSignals::None => "none",
            OwnSignals::Shared => "shared",
            OwnSignals::Each => "each",
        }
    }
}

const IDLE: [usize; 5] = [0, 1, 8, 32, 64];
const BLOCKING_STREAMS: [usize; 6] = [0, 1, 8, 20, 32, 64];
/// What launch-hip does on the NULL stream.
const NULL_MODES: [(&str, &str); 3] = [
    ("null", "launch"),
    ("null-sync", "launch between synchronizations"),
    ("null-copies", "copy and launch"),
];
const BATCHES: [usize; 2] = [16, 256];
const THREADS: usize = 4;

impl Program {
    fn name(self) -> &'static str {
        match self {
            Program::Aql => "raw AQL",
            Program::Hip => "HIP",
            Program::Copy => "copies",
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
            // `copies_table` measures them.
            Program::Copy => &[],
        }
    }

    /// The most that a trace may add to a dispatch, copy, call or marker, in nanoseconds.
    fn goal(self) -> f64 {
        match self {
            Program::Aql | Program::Api => 100.0,
            Program::Hip | Program::Null | Program::Copy => 300.0,
            Program::Markers => 50.0,
        }
    }

    /// The first case, and others that each differ from it in one respect.
    fn cases(self) -> Vec<Case> {
        let base = |name: String| Case {
            name,
            program: self,
            mode: "",
            idle: 0,
            batch: 1,
            threads: 1,
            signals: OwnSignals::None,
        };
        let with_mode = |name: &str, mode| Case {
            mode,
            ..base(name.into())
        };
        let idle_name = match self {
            Program::Aql => "idle queues",
            Program::Hip => "idle streams",
            // `copies_table` measures them.
            Program::Copy => return Vec::new(),
            Program::Null => {
                let cases = NULL_MODES.map(|(mode, what)| {
                    BLOCKING_STREAMS.map(|idle| Case {
                        idle,
                        ..with_mode(&format!("{what}, {idle} streams"), mode)
                    })
                });
                return cases.into_iter().flatten().collect();
            }
            Program::Api => {
                return ["hipGetDevice", "hipStreamQuery"]
                    .map(|name| with_mode(name, name))
                    .into();
            }
            Program::Markers => {
                return vec![Case {
                    batch: 2,
                    ..with_mode("roctxRangePushA, roctxRangePop", "markers")
                }];
            }
        };
        let mut cases: Vec<Case> = IDLE
            .map(|idle| Case {
                idle,
                ..base(format!("{idle} {idle_name}"))
            })
            .into();
        cases.push(Case {
            threads: THREADS,
            ..base(format!("{THREADS} threads"))
        });
        if self == Program::Aql {
            cases.extend(BATCHES.map(|batch| Case {
                batch,
                ..base(format!("batches of {batch}"))
            }));
            cases.push(Case {
                signals: OwnSignals::Each,
                ..base("a completion signal per dispatch".into())
            });
            cases.push(Case {
                signals: OwnSignals::Shared,
                ..base("a completion signal for all dispatches".into())
            });
        }
        cases
    }
}

/// What is loaded into the program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    NoTool,
    Off,
    Pass,
    Naive,
    /// Preloaded, with a trace that begins stopped.
    Stopped,
    Devprof,
    /// Preloaded, so that API calls are recorded too.
    Calls,
    AllCalls,
    WithMarkers,
    /// A preloaded library that records API calls and markers.
    NaiveCalls,
}

use Variant::*;

impl Variant {
    fn name(self) -> &'static str {
        match self {
            NoTool => "no tool",
            Off => "devprof, tracing off",
            Pass => "pass-through",
            Naive => "naive",
            Stopped => "devprof, stopped",
            Devprof => "devprof",
            Calls => "devprof, with API calls",
            AllCalls => "devprof, with all API calls",
            WithMarkers => "devprof, with markers",
            NaiveCalls => "naive",
        }
    }

    /// What the trace must have a record of, and the variable that requests it, if any. `None`: the variant records
    /// nothing.
    fn traced(self) -> Option<(Recorded, &'static str)> {
        match self {
            Devprof | Calls => Some((Recorded::Dispatches, "")),
            AllCalls => Some((Recorded::Calls, "DEVPROF_TRACE_API=1")),
            WithMarkers => Some((Recorded::Markers, "DEVPROF_TRACE_MARKERS=1")),
            NoTool | Off | Pass | Naive | Stopped | NaiveCalls => None,
        }
    }
}

/// The type of the records by which a complete trace is recognized.
#[derive(Clone, Copy, Debug)]
enum Recorded {
    Dispatches,
    Calls,
    /// One record per range, which the program pushes and pops.
    Markers,
}

/// What one run of a program printed, in nanoseconds.
#[derive(Clone, Copy)]
struct Times {
    /// CPU time of a launching thread per dispatch, or of a calling thread per call or marker.
    cpu: f64,
    /// CPU time of single launches: median and 99th percentile.
    single: f64,
    single_p99: f64,
    /// Elapsed time of single launches.
    wall: f64,
    wall_p99: f64,
    /// CPU time of the tool on other threads, per dispatch.
    other_threads: f64,
}

/// What the launching threads did, per thousand dispatches.
struct Counts {
    allocations: f64,
    locks: f64,
    signals: f64,
    handlers: f64,
    /// NaN if the kernel does not count them.
    system_calls: f64,
    preemptions: f64,
}

/// The results of a case: for each variant, one run per round.
struct Measured {
    case: Case,
    runs: Vec<(Variant, Vec<Times>)>,
}

pub fn run(options: &Options) -> Result<(), String> {
    let dir = target().join("bench/trace");
    fs::create_dir_all(&dir).map_err(|e| format!("cannot create {}: {e}", dir.display()))?;
    build(&dir)?;
    for &program in &options.programs {
        if program == Program::Copy {
            print!("{}", copies_table(&dir, options.runs)?);
            continue;
        }
        let mut cases = program.cases();
        cases.truncate(if options.short { 1 } else { cases.len() });
        let mut measured: Vec<Measured> = cases.into_iter().map(Measured::new).collect();
        for round in 0..options.runs {
            for measured in &mut measured {
                let last = measured.runs.len() - 1;
                for n in 0..=last {
                    // Every other round in reverse order, so that no variant always follows the same one.
                    let (variant, times) =
                        &mut measured.runs[if round % 2 == 0 { n } else { last - n }];
                    times.push(measure_times(&dir, &measured.case, *variant)?);
                }
            }
        }
        match program {
            Program::Aql | Program::Hip => {
                print!("{}", times_table(program, &measured));
                print!("{}", stopped_table(program, &measured));
                print!("{}", singles_table(program, &measured));
                if !options.short {
                    print!("{}", idle_table(program, &measured));
                }
                print!("{}", counts_table(&dir, &measured[0])?);
            }
            Program::Null => print!("{}", streams_table(&measured)),
            Program::Copy => {}
            Program::Api | Program::Markers => {
                print!("{}", added_table(program, &measured));
            }
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
        repo().join("tools/bench/programs").display()
    ))
    .map(|_| ())
}

fn library() -> PathBuf {
    target().join("dist/libdevprof.so")
}

/// Runs the program of a case once. Returns the numbers that it printed.
fn run_once(dir: &Path, case: &Case, variant: Variant, counted: bool) -> Result<Vec<f64>, String> {
    let (errors, library) = (dir.join("errors"), library());
    let (dir, library) = (dir.display(), library.display());
    let trace = PathBuf::from(format!("/dev/shm/devprof-bench-{}", std::process::id()));
    let mut preloaded = String::new();
    let mut tools = String::new();
    match variant {
        Off | Stopped | Calls | AllCalls | WithMarkers => {
            let _ = write!(preloaded, ":{library}");
        }
        NaiveCalls => {
            let _ = write!(preloaded, ":{dir}/naive-calls.so");
        }
        NoTool | Pass | Naive | Devprof => {}
    }
    if counted {
        let _ = write!(preloaded, ":{dir}/counts.so");
        let _ = write!(tools, "{dir}/counts.so ");
    }
    match variant {
        Pass => tools += &format!("{dir}/pass.so"),
        Naive => tools += &format!("{dir}/naive.so"),
        Devprof => tools += &library.to_string(),
        NoTool | Off | Stopped | Calls | AllCalls | WithMarkers | NaiveCalls => {}
    }
    let traced = match variant.traced() {
        _ if variant == Stopped => {
            format!("DEVPROF_TRACE={} DEVPROF_TRACE_STOPPED=1", trace.display())
        }
        Some((_, variable)) => format!("DEVPROF_TRACE={} {variable}", trace.display()),
        None => String::new(),
    };
    let (idle, threads) = (case.idle, case.threads);
    let program = match case.program {
        Program::Aql => format!(
            "./launch-aql kernel.co {idle} {} {threads} {}",
            case.batch,
            case.signals.name()
        ),
        Program::Hip | Program::Null => {
            format!(
                "GPU_MAX_HW_QUEUES=80 ./launch-hip {idle} {threads} {}",
                case.mode
            )
        }
        Program::Api | Program::Markers => format!("./calls {}", case.mode),
        Program::Copy => "./copy-hsa".to_owned(),
    };
    let script = format!(
        "cd {dir}
env LD_PRELOAD=\"$LD_PRELOAD{preloaded}\" HSA_MODEL_LIB={dir}/silent.so HSA_ENABLE_INTERRUPT=1 HSA_TOOLS_LIB=\"{tools}\" {traced} \
timeout 60 env {program} 2> errors || {{ echo $? >> errors; cat errors >&2; exit 1; }}"
    );
    let output = in_root(&script)?;
    let errors = fs::read_to_string(&errors)
        .map_err(|e| format!("cannot read {}: {e}", errors.display()))?;
    let is_shown =
        |line: &&str| line.contains("devprof:") || line.starts_with("system calls are not");
    for line in errors.lines().filter(is_shown) {
        eprintln!("bench: {}, {}: {line}", case.name, variant.name());
    }
    let numbers: Vec<f64> = output
        .split_whitespace()
        .map(|word| word.parse().unwrap_or(f64::NAN))
        .collect();
    if variant == Stopped {
        fs::remove_file(&trace).map_err(|e| format!("cannot remove {}: {e}", trace.display()))?;
    }
    if let Some((recorded, _)) = variant.traced() {
        let checked = match numbers[..] {
            [.., expected] => check_trace(&trace, recorded, expected as u64),
            _ => Ok(()),
        };
        fs::remove_file(&trace).map_err(|e| format!("cannot remove {}: {e}", trace.display()))?;
        checked.map_err(|error| format!("{}, {}: {error}", case.name, variant.name()))?;
    }
    Ok(numbers)
}

/// Checks that the trace is complete: one with missing records would seem cheap.
fn check_trace(trace: &Path, recorded: Recorded, expected: u64) -> Result<(), String> {
    let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", trace.display());
    let mut reader = Reader::open(trace).map_err(|e| fail(&e))?;
    let mut found = 0;
    while let Some(item) = reader.next_item().map_err(|e| fail(&e))? {
        match (item, recorded) {
            (Ok(Item::Dispatch(_)), Recorded::Dispatches)
            | (Ok(Item::Call(_)), Recorded::Calls)
            | (Ok(Item::Marker(_)), Recorded::Markers) => found += 1,
            (Ok(_), _) => {}
            (Err(damage), _) => return Err(format!("byte {}: {}", damage.offset, damage.what)),
        }
    }
    let counts = [
        Count::DroppedDispatches,
        Count::DroppedCalls,
        Count::DroppedCopies,
        Count::DroppedMarkers,
    ];
    let dropped = counts.map(|count| reader.count(count));
    let needed = match recorded {
        Recorded::Markers => expected / 2,
        Recorded::Dispatches | Recorded::Calls => expected,
    };
    if found < needed || dropped != [Some(0); 4] {
        return Err(format!(
            "{recorded:?}: {found} of {expected} were recorded, {dropped:?} dropped"
        ));
    }
    Ok(())
}

fn measure_times(dir: &Path, case: &Case, variant: Variant) -> Result<Times, String> {
    match run_once(dir, case, variant, false)?[..] {
        [cpu, single, single_p99, wall, wall_p99, other_threads, _] => Ok(Times {
            cpu,
            single,
            single_p99,
            wall,
            wall_p99,
            other_threads,
        }),
        ref other => Err(format!("{} printed {other:?}", case.name)),
    }
}

fn measure_counts(dir: &Path, case: &Case, variant: Variant) -> Result<Counts, String> {
    match run_once(dir, case, variant, true)?[..] {
        [
            dispatches,
            calls,
            allocations,
            signals,
            handlers,
            locks,
            preemptions,
        ] => Ok(Counts {
            allocations: allocations * 1e3 / dispatches,
            locks: locks * 1e3 / dispatches,
            signals: signals * 1e3 / dispatches,
            handlers: handlers * 1e3 / dispatches,
            system_calls: calls * 1e3 / dispatches,
            preemptions: preemptions * 1e3 / dispatches,
        }),
        ref other => Err(format!("{} printed {other:?}", case.name)),
    }
}

impl Measured {
    fn new(case: Case) -> Measured {
        let variants = case.program.variants().iter();
        let runs = variants.map(|&variant| (variant, Vec::new())).collect();
        Measured { case, runs }
    }

    fn runs(&self, of: Variant) -> &[Times] {
        self.runs
            .iter()
            .find(|(variant, _)| *variant == of)
            .map_or(&[], |(_, times)| times)
    }

    fn median(&self, of: Variant, part: fn(&Times) -> f64) -> f64 {
        median(self.runs(of).iter().map(part).collect())
    }

    /// The difference between `of` and `over` in each round.
    fn added(&self, of: Variant, over: Variant, part: fn(&Times) -> f64) -> Vec<f64> {
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

impl Program {
    /// The variant in which devprof records everything.
    fn complete_trace(self) -> Variant {
        self.variants().last().copied().unwrap_or(NoTool)
    }
}

fn header(program: Program, columns: &[&str]) -> String {
    format!(
        "| {} | {} |\n| --- |{}\n",
        program.name(),
        columns.join(" | "),
        " ---: |".repeat(columns.len())
    )
}

fn times_table(program: Program, measured: &[Measured]) -> String {
    let cpu = |times: &Times| times.cpu;
    let all = |times: &Times| times.cpu + times.other_threads;
    let mut columns = vec![
        "no tool",
        "tracing off, added",
        "pass-through",
        "over pass-through: naive",
        "devprof",
        "devprof, with API calls",
        "naive / devprof",
        "naive / devprof, with API calls",
        "other threads: naive",
        "devprof",
        "all threads, naive / devprof",
    ];
    columns.retain(|&column| !column.ends_with("with API calls") || program == Program::Hip);
    let mut table = format!(
        "CPU time of the launching thread, and of the tool on other threads, ns per dispatch (in brackets the middle half \
         of the rounds):\n\n{}",
        header(program, &columns)
    );
    for measured in measured {
        let ratio = |of: Variant, part: fn(&Times) -> f64| {
            median(measured.added(Naive, Pass, part)) / median(measured.added(of, Pass, part))
        };
        let mut cells = vec![
            format!("{:.0}", measured.median(NoTool, cpu)),
            spread(measured.added(Off, NoTool, cpu)),
            format!("{:.0}", measured.median(Pass, cpu)),
            spread(measured.added(Naive, Pass, cpu)),
            spread(measured.added(Devprof, Pass, cpu)),
        ];
        if program == Program::Hip {
            cells.push(spread(measured.added(Calls, Pass, cpu)));
        }
        cells.push(format!("{:.1}", ratio(Devprof, cpu)));
        if program == Program::Hip {
            cells.push(format!("{:.1}", ratio(Calls, cpu)));
        }
        for variant in [Naive, program.complete_trace()] {
            cells.push(format!(
                "{:.0}",
                measured.median(variant, |times| times.other_threads)
            ));
        }
        cells.push(format!("{:.1}", ratio(program.complete_trace(), all)));
        let _ = writeln!(table, "| {} | {} |", measured.case.name, cells.join(" | "));
    }
    table + "\n"
}

/// The cost of a stopped trace: ROCr's intercept queues, and devprof's own part.
fn stopped_table(program: Program, measured: &[Measured]) -> String {
    let cpu = |times: &Times| times.cpu;
    let columns = [
        "no tool",
        "tracing off, added",
        "pass-through, added",
        "stopped, added",
        "stopped over pass-through",
    ];
    let mut table = format!(
        "A trace that is stopped: CPU time of the launching thread, ns per dispatch:\n\n{}",
        header(program, &columns)
    );
    for measured in measured {
        let cells = [
            format!("{:.0}", measured.median(NoTool, cpu)),
            spread(measured.added(Off, NoTool, cpu)),
            spread(measured.added(Pass, NoTool, cpu)),
            spread(measured.added(Stopped, NoTool, cpu)),
            spread(measured.added(Stopped, Pass, cpu)),
        ];
        let _ = writeln!(table, "| {} | {} |", measured.case.name, cells.join(" | "));
    }
    table + "\n"
}

fn singles_table(program: Program, measured: &[Measured]) -> String {
    let parts: [fn(&Times) -> f64; 4] = [
        |times| times.single,
        |times| times.single_p99,
        |times| times.wall,
        |times| times.wall_p99,
    ];
    let names = [
        "CPU time, median",
        "CPU time, 99th percentile",
        "elapsed time, median",
        "elapsed time, 99th percentile",
    ];
    let mut table = String::new();
    for (name, part) in names.into_iter().zip(parts) {
        let _ = write!(
            table,
            "A single launch, {name}, ns, and the difference to pass-through:\n\n{}",
            header(
                program,
                &["no tool", "pass-through", "devprof, added", "naive, added"]
            )
        );
        for measured in measured.iter().filter(|measured| measured.case.batch == 1) {
            let _ = writeln!(
                table,
                "| {} | {:.0} | {:.0} | {} | {} |",
                measured.case.name,
                measured.median(NoTool, part),
                measured.median(Pass, part),
                spread(measured.added(program.complete_trace(), Pass, part)),
                spread(measured.added(Naive, Pass, part)),
            );
        }
        table.push('\n');
    }
    table
}

/// The cost of a copy without a tool, in a trace without and with copies, and with the naive tool.
fn copies_table(dir: &Path, runs: usize) -> Result<String, String> {
    let library = library();
    let trace = PathBuf::from(format!("/dev/shm/devprof-bench-{}", std::process::id()));
    let traced = format!(
        "HSA_TOOLS_LIB={} DEVPROF_TRACE={}",
        library.display(),
        trace.display()
    );
    let variants = [
        ("no tool", String::new()),
        ("devprof, without copies", traced.clone()),
        ("devprof", format!("{traced} DEVPROF_TRACE_COPIES=1")),
        ("naive", "HSA_TOOLS_LIB=./naive-copies.so".into()),
    ];
    let mut costs = variants.each_ref().map(|_| Vec::new());
    for round in 0..runs {
        for n in 0..variants.len() {
            let n = if round % 2 == 0 {
                n
            } else {
                variants.len() - 1 - n
            };
            let (name, environment) = &variants[n];
            let output = in_root(&format!(
                "cd {dir}
env HSA_MODEL_LIB={dir}/silent.so HSA_ENABLE_INTERRUPT=1 {environment} timeout 60 ./copy-hsa",
                dir = dir.display()
            ))?;
            let numbers: Vec<f64> = output
                .split_whitespace()
                .filter_map(|word| word.parse().ok())
                .collect();
            let [cost, copies] = numbers[..] else {
                return Err(format!("copies, {name}: printed {output}"));
            };
            if n == 2 {
                check_copies(&trace, copies as u64)?;
            }
            costs[n].push(cost);
        }
    }
    let _ = fs::remove_file(&trace);
    let added = |of: usize| {
        let pairs = costs[of].iter().zip(&costs[0]);
        spread(pairs.map(|(of, none)| of - none).collect())
    };
    Ok(format!(
        "CPU time of a copy and the reset of its signal, ns:\n\n\
         | no tool | {}, added | {}, added | {}, added |\n| ---: | ---: | ---: | ---: |\n\
         | {:.0} | {} | {} | {} |\n\n",
        variants[1].0,
        variants[2].0,
        variants[3].0,
        median(costs[0].clone()),
        added(1),
        added(2),
        added(3)
    ))
}

/// Checks that all copies were recorded, with times.
fn check_copies(trace: &Path, copies: u64) -> Result<(), String> {
    let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", trace.display());
    let mut reader = Reader::open(trace).map_err(|e| fail(&e))?;
    let mut timed = 0;
    while let Some(item) = reader.next_item().map_err(|e| fail(&e))? {
        match item {
            Ok(Item::Copy(copy)) => {
                timed += u64::from(copy.head.flags.get() & flag::CLOCK != flag::CLOCK_NONE);
            }
            Ok(_) => {}
            Err(damage) => return Err(format!("byte {}: {}", damage.offset, damage.what)),
        }
    }
    match timed == copies {
        true => Ok(()),
        false => Err(format!("{timed} of {copies} copies have times")),
    }
}

/// The effect of idle queues on a launch.
fn idle_table(program: Program, measured: &[Measured]) -> String {
    let variants = [NoTool, Pass, program.complete_trace()];
    let mut table = format!(
        "CPU time of a launch, in percent of a launch without idle queues:\n\n{}",
        header(program, &variants.map(Variant::name))
    );
    let none = &measured[0];
    for measured in measured[1..]
        .iter()
        .filter(|measured| measured.case.idle > 0)
    {
        let cells = variants.map(|variant| {
            let pairs = measured.runs(variant).iter().zip(none.runs(variant));
            spread(
                pairs
                    .map(|(some, none)| 100.0 * some.cpu / none.cpu)
                    .collect(),
            )
        });
        let _ = writeln!(table, "| {} | {} |", measured.case.name, cells.join(" | "));
    }
    table + "\n"
}

/// Launches on the NULL stream.
fn streams_table(measured: &[Measured]) -> String {
    // Between waits, the thread is often preempted: the median of single launches does not contain that.
    let part = |case: &Case| -> fn(&Times) -> f64 {
        match case.mode {
            "null-sync" => |times| times.single,
            _ => |times| times.cpu,
        }
    };
    let mut table = format!(
        "CPU time of the launching thread, ns per launch:\n\n{}",
        header(
            Program::Null,
            &[
                "no tool",
                "pass-through",
                "devprof, with API calls: over pass-through",
                "other threads",
            ]
        )
    );
    for measured in measured {
        let cpu = part(&measured.case);
        let _ = writeln!(
            table,
            "| {} | {:.0} | {:.0} | {} | {:.0} |",
            measured.case.name,
            measured.median(NoTool, cpu),
            measured.median(Pass, cpu),
            spread(measured.added(Calls, Pass, cpu)),
            measured.median(Calls, |times| times.other_threads),
        );
    }
    table + "\n"
}

/// What recording adds to a call or a marker.
fn added_table(program: Program, measured: &[Measured]) -> String {
    let parts: [fn(&Times) -> f64; 2] = [|times| times.cpu, |times| times.single_p99];
    let mut table = format!(
        "CPU time of the calling thread, ns per {}. The goal is that devprof adds at most {:.0} ns:\n\n{}",
        program.name(),
        program.goal(),
        header(
            program,
            &[
                "no tool",
                "added: naive",
                "devprof",
                "naive / devprof",
                "99th percentile, added: naive",
                "devprof",
                "goal",
            ]
        )
    );
    for measured in measured {
        let [(naive, devprof), (naive_p99, devprof_p99)] = parts.map(|part| {
            let added = |of: Variant| measured.added(of, NoTool, part);
            (added(measured.runs[1].0), added(program.complete_trace()))
        });
        let is_met = median(devprof.clone()) <= program.goal();
        let _ = writeln!(
            table,
            "| {} | {:.0} | {} | {} | {:.1} | {} | {} | {} |",
            measured.case.name,
            measured.median(NoTool, parts[0]),
            spread(naive.clone()),
            spread(devprof.clone()),
            median(naive) / median(devprof),
            spread(naive_p99),
            spread(devprof_p99),
            if is_met { "met" } else { "missed" },
        );
    }
    table + "\n"
}

fn counts_table(dir: &Path, measured: &Measured) -> Result<String, String> {
    let mut table = format!(
        "The launching thread in the steady state, per thousand dispatches:\n\n\
         | {}, {} | allocations | mutexes locked | signals created | handlers set | system calls | preempted |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        measured.case.program.name(),
        measured.case.name
    );
    for (variant, _) in &measured.runs {
        let counts = measure_counts(dir, &measured.case, *variant)?;
        let system_calls = match counts.system_calls.is_nan() {
            true => "not counted".to_owned(),
            false => format!("{:.1}", counts.system_calls),
        };
        let _ = writeln!(
            table,
            "| {} | {:.1} | {:.1} | {:.1} | {:.1} | {system_calls} | {:.1} |",
            variant.name(),
            counts.allocations,
            counts.locks,
            counts.signals,
            counts.handlers,
            counts.preemptions
        );
    }
    Ok(table + "\n")
}
