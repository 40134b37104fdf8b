//! 70 agents with 256 executables each: complete, each table once, in time that grows with their number.

mod common;

use common::{RAW10, RAW11, Session};
use std::path::Path;
use std::time::Duration;

/// Different code objects of an agent.
const KINDS: usize = 2;
const AGENTS: usize = 70;
const MANY: usize = 256;
const FEW: usize = 64;

/// The processor time of this thread, which does not care what else the machine does.
fn processor_time() -> Duration {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a timespec to write to.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Collects, and sees to it that every code object there is is in one profile. Returns the processor time it took.
fn collect(session: &Session, objects: usize, run: usize) -> Duration {
    session.plan("");
    let start = processor_time();
    let (result, said) = session.collect();
    let time = processor_time() - start;
    assert_eq!((result, said.as_str()), (0, ""));
    assert_eq!(
        session.calls("hsa_executable_iterate_agent_symbols"),
        objects as u64
    );
    let batches = session.calls("hsa_signal_store_relaxed");
    assert!(
        batches <= 4 * AGENTS as u64,
        "{batches}: an agent's tables at once, then its records, its caches, its counters"
    );
    let profiles = session.take_profiles();
    // The same code object has one file an agent, however often it is loaded.
    let files = KINDS * AGENTS;
    assert_eq!(profiles.len(), files);
    let runs = profiles
        .iter()
        .filter(|(_, profile)| profile.is_fixture(1))
        .count();
    let still = profiles
        .iter()
        .filter(|(_, profile)| profile.is_fixture(0))
        .count();
    assert_eq!((runs, still), (run, files - run));
    time
}

#[test]
fn eighteen_thousand_code_objects_on_seventy_agents() {
    // Tens of thousands of files: in memory, where there is a place for that.
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() {
        memory
    } else {
        Path::new(env!("CARGO_TARGET_TMPDIR"))
    };
    let session = Session::start_in(
        place,
        &format!("devprof-scale-{}", std::process::id()),
        &[
            ("HSA_SIM_AGENTS", "gfx1100*66,gfx1101*4"),
            ("DEVPROF_SYNC_MS", "300000"),
        ],
    );
    assert_eq!(session.gpus.len(), AGENTS);
    // clang's code object says for which target it is, in its ELF header's flags.
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
    // Four times the work. Quadratic growth would be sixteen times the time.
    assert!(many < few * 8, "{few:?}, then {many:?}");
}
