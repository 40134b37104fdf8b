//! If no code object was loaded or unloaded since the last drain, a drain reads no symbols, allocates neither GPU memory nor
//! pinned memory, waits four times for each agent, and only writes files that have changed.

mod common;

use common::{Session, fixtures};
use std::os::unix::fs::MetadataExt;

#[test]
fn a_drain_in_the_steady_state_only_copies_counters() {
    let mut session = Session::start("steady", &[("HSA_SIM_AGENTS", "gfx1100*3")]);
    // After the restart devprof is loaded as a tool, so that it observes the loading of code objects.
    session.restart();
    let mut loaded = session.load_all();
    session.collect_all();
    let before = session.live();
    let files = || {
        let entries = std::fs::read_dir(&session.out).expect("the directory");
        let mut all: Vec<_> = entries
            .map(|entry| {
                let entry = entry.expect("an entry");
                (entry.file_name(), entry.metadata().expect("a file").ino())
            })
            .collect();
        all.sort();
        all
    };
    let first = files();
    assert_eq!(first.len(), 6);

    for round in 0..3 {
        session.plan("");
        session.collect_all();
        for function in [
            "hsa_executable_iterate_agent_symbols",
            "hsa_amd_memory_pool_allocate",
            "hsa_queue_create",
            "hsa_signal_create",
            "hsa_amd_agents_allow_access",
            "hsa_memory_copy",
        ] {
            assert_eq!(session.calls(function), 0, "{round}: {function}");
        }
        // Four signals per agent: for the write-back of its caches, for the counters of each of the two code objects, and for
        // the copies of counters, which one of them has.
        assert_eq!(session.calls("hsa_signal_store_relaxed"), 12, "{round}");
        assert_eq!(session.live(), before, "{round}");
        assert_eq!(files(), first, "{round}: nothing has changed");
    }

    // The counters of one code object change: only its file is replaced.
    session.run(loaded[2], session.gpus[1]);
    session.collect_all();
    let second = files();
    let changed = first.iter().zip(&second).filter(|(a, b)| a != b).count();
    assert_eq!(changed, 1);

    // One more code object is loaded: only its symbols are read.
    session.plan("");
    loaded.push(session.load(session.gpus[0], common::RAW10));
    session.collect_all();
    assert_eq!(session.calls("hsa_executable_iterate_agent_symbols"), 1);
    let twice = session.take_profiles();
    assert_eq!(twice.len(), 6);
    assert_eq!(fixtures(&twice, 2), 1);
    for executable in loaded {
        session.unload(executable);
    }
}
