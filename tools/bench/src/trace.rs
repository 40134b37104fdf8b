//! The cost of tracing for the thread that launches kernels, copies, calls HIP or sets markers: devprof, a tool that
//! passes every packet on, the naive design, and no tool. They run on AMD's ROCr with a GPU that completes packets
//! without executing them. The variants alternate, and two variants are compared within one round. Interrupts are on,
//! which is ROCr's default: a signal that is created with default attributes has an event, also in the naive design.

use crate::measure::{alternate, directory, in_memory, in_root, median, numbers, programs, target};
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

/// The results of a case: for each variant, one run per round.
struct Measured {
    case: Case,
    runs: Vec<(Variant, Vec<Times>)>,
}

pub fn run(options: &Options) -> Result<(), String> {
    let dir = directory("trace")?;
    build(&dir)?;
    for &program in &options.programs {
        if program == Program::Copy {
            copies_table(&dir, options.runs)?;
            continue;
        }
        let mut cases = program.cases();
        cases.truncate(if options.short { 1 } else { cases.len() });
        let measured = measure(&dir, program, cases, options.runs)?;
        match program {
            Program::Aql | Program::Hip => {
                times_table(program, &measured);
                stopped_table(program, &measured);
                singles_table(program, &measured);
                if !options.short {
                    idle_table(program, &measured);
                }
                counts_table(&dir, &measured[0])?;
            }
            Program::Null => streams_table(&measured),
            Program::Copy => {}
            Program::Api | Program::Markers => added_table(program, &measured),
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

fn library() -> PathBuf {
    target().join("dist/libdevprof.so")
}

/// Runs the program of a case once. Returns the numbers that it printed.
fn run_once(dir: &Path, case: &Case, variant: Variant, counted: bool) -> Result<[f64; 7], String> {
    let (errors, library) = (dir.join("errors"), library());
    let (dir, library) = (dir.display(), library.display());
    let trace = in_memory();
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
    let numbers = numbers(&case.name, &output)?;
    if variant == Stopped {
        fs::remove_file(&trace).map_err(|e| format!("cannot remove {}: {e}", trace.display()))?;
    }
    if let Some((recorded, _)) = variant.traced() {
        let checked = check_trace(&trace, recorded, numbers[6] as u64);
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
        let [cpu, single, single_p99, wall, wall_p99, other_threads, _] =
            run_once(dir, case, variant, false)?;
        Ok(Times {
            cpu,
            single,
            single_p99,
            wall,
            wall_p99,
            other_threads,
        })
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

    fn median(&self, of: Variant, part: Part) -> String {
        let median = median(self.runs(of).iter().map(part).collect());
        format!("{median:.0}")
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

impl Program {
    /// The variant in which devprof records everything.
    fn complete_trace(self) -> Variant {
        self.variants().last().copied().unwrap_or(NoTool)
    }
}

/// Prints a table, with one row per case.
fn table<'m>(
    title: &str,
    program: Program,
    columns: &[&str],
    measured: impl IntoIterator<Item = &'m Measured>,
    cells: impl Fn(&Measured) -> Vec<String>,
) {
    let dashes = " ---: |".repeat(columns.len());
    println!(
        "{title}:\n\n| {} | {} |\n| --- |{dashes}",
        program.name(),
        columns.join(" | ")
    );
    for measured in measured {
        println!(
            "| {} | {} |",
            measured.case.name,
            cells(measured).join(" | ")
        );
    }
    println!();
}

/// One of the times.
type Part = fn(&Times) -> f64;

const CPU: Part = |times| times.cpu;
const OTHER_THREADS: Part = |times| times.other_threads;

fn times_table(program: Program, measured: &[Measured]) {
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
    let title = "CPU time of the launching thread, and of the tool on other threads, ns per dispatch (in brackets the middle half \
                 of the rounds)";
    let with_calls: &[Variant] = if program == Program::Hip {
        &[Devprof, Calls]
    } else {
        &[Devprof]
    };
    table(title, program, &columns, measured, |measured| {
        let ratio = |of: Variant, part: Part| {
            let ratio =
                median(measured.added(Naive, Pass, part)) / median(measured.added(of, Pass, part));
            format!("{ratio:.1}")
        };
        let mut cells = vec![
            measured.median(NoTool, CPU),
            spread(measured.added(Off, NoTool, CPU)),
            measured.median(Pass, CPU),
            spread(measured.added(Naive, Pass, CPU)),
        ];
        cells.extend(
            with_calls
                .iter()
                .map(|&of| spread(measured.added(of, Pass, CPU))),
        );
        cells.extend(with_calls.iter().map(|&of| ratio(of, CPU)));
        let complete = program.complete_trace();
        cells.extend([Naive, complete].map(|variant| measured.median(variant, OTHER_THREADS)));
        cells.push(ratio(complete, all));
        cells
    });
}

/// The cost of a stopped trace: ROCr's intercept queues, and devprof's own part.
fn stopped_table(program: Program, measured: &[Measured]) {
    let columns = [
        "no tool",
        "tracing off, added",
        "pass-through, added",
        "stopped, added",
        "stopped over pass-through",
    ];
    let title = "A trace that is stopped: CPU time of the launching thread, ns per dispatch";
    table(title, program, &columns, measured, |measured| {
        let pairs = [
            (Off, NoTool),
            (Pass, NoTool),
            (Stopped, NoTool),
            (Stopped, Pass),
        ];
        let mut cells = vec![measured.median(NoTool, CPU)];
        cells.extend(pairs.map(|(of, over)| spread(measured.added(of, over, CPU))));
        cells
    });
}

fn singles_table(program: Program, measured: &[Measured]) {
    let parts: [(&str, Part); 4] = [
        ("CPU time, median", |times| times.single),
        ("CPU time, 99th percentile", |times| times.single_p99),
        ("elapsed time, median", |times| times.wall),
        ("elapsed time, 99th percentile", |times| times.wall_p99),
    ];
    let columns = ["no tool", "pass-through", "devprof, added", "naive, added"];
    for (name, part) in parts {
        let title = format!("A single launch, {name}, ns, and the difference to pass-through");
        let singles = measured.iter().filter(|measured| measured.case.batch == 1);
        table(&title, program, &columns, singles, |measured| {
            vec![
                measured.median(NoTool, part),
                measured.median(Pass, part),
                spread(measured.added(program.complete_trace(), Pass, part)),
                spread(measured.added(Naive, Pass, part)),
            ]
        });
    }
}

/// The cost of a copy without a tool, in a trace without and with copies, and with the naive tool.
fn copies_table(dir: &Path, runs: usize) -> Result<(), String> {
    let trace = in_memory();
    let traced = format!(
        "HSA_TOOLS_LIB={} DEVPROF_TRACE={}",
        library().display(),
        trace.display()
    );
    let with_copies = format!("{traced} DEVPROF_TRACE_COPIES=1");
    let variants = [
        ("no tool", ""),
        ("devprof, without copies", &traced),
        ("devprof", &with_copies),
        ("naive", "HSA_TOOLS_LIB=./naive-copies.so"),
    ];
    let costs = alternate(runs, &variants, |(name, environment)| {
        let output = in_root(&format!(
            "cd {dir}
env HSA_MODEL_LIB={dir}/silent.so HSA_ENABLE_INTERRUPT=1 {environment} timeout 60 ./copy-hsa",
            dir = dir.display()
        ))?;
        let [cost, copies] = numbers(&format!("copies, {name}:"), &output)?;
        if *name == "devprof" {
            check_copies(&trace, copies as u64)?;
        }
        Ok(cost)
    })?;
    let _ = fs::remove_file(&trace);
    let [devprof, with_copies, naive] = [1, 2, 3].map(|of| {
        let pairs = costs[of].iter().zip(&costs[0]);
        spread(pairs.map(|(of, none)| of - none).collect())
    });
    println!("CPU time of a copy and the reset of its signal, ns:\n");
    println!("| no tool | devprof, without copies, added | devprof, added | naive, added |");
    println!("| ---: | ---: | ---: | ---: |");
    println!(
        "| {:.0} | {devprof} | {with_copies} | {naive} |\n",
        median(costs[0].clone())
    );
    Ok(())
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
    if timed != copies {
        return Err(format!("{timed} of {copies} copies have times"));
    }
    Ok(())
}

/// The effect of idle queues on a launch.
fn idle_table(program: Program, measured: &[Measured]) {
    let variants = [NoTool, Pass, program.complete_trace()];
    let title = "CPU time of a launch, in percent of a launch without idle queues";
    let none = &measured[0];
    let idle = measured.iter().filter(|measured| measured.case.idle > 0);
    table(
        title,
        program,
        &variants.map(Variant::name),
        idle,
        |measured| {
            let cells = variants.map(|variant| {
                let pairs = measured.runs(variant).iter().zip(none.runs(variant));
                spread(
                    pairs
                        .map(|(some, none)| 100.0 * some.cpu / none.cpu)
                        .collect(),
                )
            });
            cells.into()
        },
    );
}

/// Launches on the NULL stream.
fn streams_table(measured: &[Measured]) {
    let columns = [
        "no tool",
        "pass-through",
        "devprof, with API calls: over pass-through",
        "other threads",
    ];
    let title = "CPU time of the launching thread, ns per launch";
    table(title, Program::Null, &columns, measured, |measured| {
        // Between waits, the thread is often preempted: the median of single launches does not contain that.
        let cpu = match measured.case.mode {
            "null-sync" => |times: &Times| times.single,
            _ => CPU,
        };
        vec![
            measured.median(NoTool, cpu),
            measured.median(Pass, cpu),
            spread(measured.added(Calls, Pass, cpu)),
            measured.median(Calls, OTHER_THREADS),
        ]
    });
}

/// What recording adds to a call or a marker.
fn added_table(program: Program, measured: &[Measured]) {
    let columns = [
        "no tool",
        "added: naive",
        "devprof",
        "naive / devprof",
        "99th percentile, added: naive",
        "devprof",
        "goal",
    ];
    let title = format!(
        "CPU time of the calling thread, ns per {}. The goal is that devprof adds at most {:.0} ns",
        program.name(),
        program.goal()
    );
    table(&title, program, &columns, measured, |measured| {
        let added = |of: Variant, part| measured.added(of, NoTool, part);
        let (naive, devprof) = (measured.runs[1].0, program.complete_trace());
        let ratio = median(added(naive, CPU)) / median(added(devprof, CPU));
        let is_met = median(added(devprof, CPU)) <= program.goal();
        vec![
            measured.median(NoTool, CPU),
            spread(added(naive, CPU)),
            spread(added(devprof, CPU)),
            format!("{ratio:.1}"),
            spread(added(naive, |times| times.single_p99)),
            spread(added(devprof, |times| times.single_p99)),
            if is_met { "met" } else { "missed" }.into(),
        ]
    });
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
        println!("| {} | {} |", variant.name(), cells.join(" | "));
    }
    println!();
    Ok(())
}
