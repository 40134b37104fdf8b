//! A drain of 70 agents with 256 executables each is complete, reads each table twice, and takes time that is linear in
//! their number. devprof cannot observe their destruction, so what it has read before it waits for kernels is not used after it.

mod common;

use common::{RAW10, RAW11, Session, fixtures};
use std::path::Path;
use std::time::Duration;

/// The number of different code objects of each agent.
const KINDS: usize = 2;
const AGENTS: usize = 70;
const MANY: usize = 256;
const FEW: usize = 64;

/// The processor time of this thread, which does not depend on other processes.
fn processor_time() -> Duration {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Collects, and checks that each code object is in one profile. Returns the processor time of the drain.
fn collect(session: &Session, objects: usize, run: usize) -> Duration {
    session.plan("");
    let start = processor_time();
    let (result, stderr) = session.collect();
    let time = processor_time() - start;
    assert_eq!((result, stderr.as_str()), (0, ""));
    assert_eq!(
        session.calls("hsa_executable_iterate_agent_symbols"),
        2 * objects as u64
    );
    // Each copy has its own signal: of a code object's table, names and records, twice, and of its counters. Of half of the code
    // objects (RAW10), the names are so close to the records that one copy has both. The caches are written back once per agent.
    let copies = session.calls("hsa_signal_store_relaxed");
    let most = 2 * 5 * objects / 2 + objects + AGENTS;
    assert!(copies <= most as u64, "{copies} copies, not {most}");
    let profiles = session.take_profiles();
    // A code object has one file per agent, even if it is loaded several times.
    let files = KINDS * AGENTS;
    assert_eq!(profiles.len(), files);
    let [not_run, runs] = [0, 1].map(|runs| fixtures(&profiles, runs));
    assert_eq!((runs, not_run), (run, files - run));
    time
}

#[test]
fn eighteen_thousand_code_objects_on_seventy_agents() {
    // In memory if possible: these are tens of thousands of files.
    let memory = Path::new("/dev/shm");
    let directory = if memory.is_dir() {
        memory
    } else {
        Path::new(env!("CARGO_TARGET_TMPDIR"))
    };
    let session = Session::start_in(
        directory,
        &format!("devprof-scale-{}", std::process::id()),
        &[
            ("HSA_SIM_AGENTS", "gfx1100*66,gfx1101*4"),
            ("DEVPROF_SYNC_MS", "300000"),
        ],
    );
    assert_eq!(session.gpus.len(), AGENTS);
    // The target of a code object is in the flags of its ELF header.
    let for_gfx1101 = |file: &[u8]| {
        let mut file = file.to_vec();
        file[48] = 0x46;
        Vec::leak(file) as &'static [u8]
    };
    let files = [[RAW10, RAW11], [for_gfx1101(RAW10), for_gfx1101(RAW11)]];
    let mut run = 0;
    let mut load = |executables: std::ops::Range<usize>| {
        for (n, &gpu) in session.gpus.iter().enumerate() {
            for m in executables.clone() {
                let executable = session.load(gpu, files[usize::from(n >= 66)][m % 2]);
                if m == n {
                    session.run(executable, gpu);
                    run += 1;
                }
            }
        }
        run
    };
    let run = load(0..FEW);
    let few = collect(&session, AGENTS * FEW, run);
    let run = load(FEW..MANY);
    let many = collect(&session, AGENTS * MANY, run);
    eprintln!(
        "{} code objects: {few:?}, {}: {many:?}",
        AGENTS * FEW,
        AGENTS * MANY
    );
    let dir = session.out.parent().expect("a directory").to_path_buf();
    drop(session);
    std::fs::remove_dir_all(dir).expect("removable");
    // There are four times as many objects. With quadratic growth, the time would be sixteen times as long.
    assert!(many < few * 8, "{few:?}, then {many:?}");
}
