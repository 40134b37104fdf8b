//! Each HSA call of a drain fails, one after the other, with several statuses. Copies also fail after their start, never
//! complete, or are slow. In each case the other code objects are drained, losses are reported, the return value is correct,
//! the next drain is complete, and nothing leaks.

mod common;

use common::{Session, fixtures, library};
use hsa_sim::faults::functions::fallible;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// If one of these fails, no code object is found.
const NEEDED: &[&str] = &[
    "hsa_system_get_info",
    "hsa_system_get_major_extension_table",
    "hsa_iterate_agents",
    "hsa_ven_amd_loader_iterate_executables",
];

/// If one of these fails, devprof uses another function, and nothing is lost.
const REPLACEABLE: &[&str] = &[
    "hsa_amd_agent_iterate_memory_pools",
    "hsa_amd_memory_pool_get_info",
    "hsa_amd_memory_pool_allocate",
    "hsa_amd_agents_allow_access",
    "hsa_amd_memory_async_copy",
];

/// The statuses for the cases of a call. The last status is different each time, since devprof prints each message once.
fn statuses() -> [String; 3] {
    static NEXT: AtomicU32 = AtomicU32::new(0x10_0000);
    let own = NEXT.fetch_add(1, Relaxed);
    [
        "ERROR".into(),
        "ERROR_OUT_OF_RESOURCES".into(),
        own.to_string(),
    ]
}

/// Two agents with two code objects each, a drain under `plan`, and one without.
struct Case {
    result: i32,
    stderr: String,
    /// The number of complete profiles with the correct counts.
    good: usize,
    /// The number of other profiles.
    wrong: usize,
}

const OBJECTS: usize = 4;

fn case(session: &mut Session, plan: &str) -> Case {
    session.plan("");
    let loaded = session.load_all();
    let before = session.live();
    session.plan(plan);
    let (result, stderr) = session.collect();
    let profiles = session.take_profiles();
    let good = fixtures(&profiles, 1);
    for bug in ["panicked", "internal error"] {
        assert!(!stderr.contains(bug), "{plan}: {stderr}");
    }

    session.plan("");
    let again = session.collect();
    assert_eq!(again, (0, String::new()), "the drain after {plan}");
    let complete = session.take_profiles();
    assert_eq!(complete.len(), OBJECTS, "the drain after {plan}");
    assert_eq!(fixtures(&complete, 1), OBJECTS, "the drain after {plan}");
    let after = session.live();
    let agents = session.gpus.len() as u64;
    // The target of a copy that may not be finished cannot be freed.
    let unfinished = plan.ends_with("error") || plan.ends_with("drop");
    assert!(
        // The signals of eight copies and of the write-back.
        unfinished || after[0] <= before[0] + 9 * agents && after[1] <= before[1] + agents,
        "{plan}: {before:?} {after:?}"
    );
    for executable in loaded {
        session.unload(executable);
    }
    Case {
        result,
        stderr,
        good,
        wrong: profiles.len() - good,
    }
}

fn fails(session: &mut Session, function: &str, call: u64, status: &str) {
    let plan = format!("{function} {call} fail {status}");
    let Case {
        result,
        stderr,
        good,
        wrong,
    } = case(session, &plan);
    session.plan("");
    session.restart();
    // OnUnload releases everything that a drain has allocated.
    for (create, destroy) in [
        ("hsa_signal_create", "hsa_signal_destroy"),
        ("hsa_amd_memory_pool_allocate", "hsa_amd_memory_pool_free"),
        ("hsa_queue_create", "hsa_queue_destroy"),
    ] {
        let (created, destroyed) = (session.calls(create), session.calls(destroy));
        assert!(created <= destroyed, "{plan}: {create}");
    }
    session.take_profiles();
    assert_eq!(wrong, 0, "{plan}: {stderr}");
    if result == 0 {
        assert_eq!((good, &*stderr), (OBJECTS, ""), "{plan}: nothing is lost");
        return;
    }
    assert_eq!(result, -1, "{plan}");
    let mut lines = stderr.lines();
    assert!(
        lines.all(|line| line.starts_with("devprof: ")),
        "{plan}: {stderr}"
    );
    if let Ok(own) = status.parse::<u32>() {
        let is_reported = stderr.contains(&format!("{own:#x}"));
        assert!(is_reported, "{plan}: the loss is not reported: {stderr}");
    }
    let least = if NEEDED.contains(&function) {
        0
    } else if REPLACEABLE.contains(&function) {
        panic!("{plan}: there is a replacement: {stderr}");
    } else if function == "hsa_agent_get_info" {
        // The other agent's objects remain, or all objects if the call was for the CPU.
        OBJECTS / 2
    } else {
        OBJECTS - 1
    };
    assert!(good >= least, "{plan}: {good} are drained: {stderr}");
}

#[test]
fn every_call_fails_at_every_position() {
    let devprof = library("devprof");
    let environment = [
        ("HSA_SIM_AGENTS", "gfx1100*2"),
        ("HSA_TOOLS_LIB", devprof.to_str().expect("a path")),
        ("DEVPROF_SYNC_MS", "3000"),
    ];
    let mut session = Session::start("faults", &environment);
    // devprof calls this once per process, so this has to be the first drain.
    let first = "hsa_system_get_major_extension_table";
    for status in statuses() {
        fails(&mut session, first, 1, &status);
    }
    let loaded = session.load_all();
    session.plan("");
    assert_eq!(session.collect().0, 0);
    // All functions that can fail, including those that a drain does not call. hsa_init is tested in versions.rs.
    let others = fallible().filter(|name| !["hsa_init", first].contains(name));
    let calls: Vec<(&str, u64)> = others.map(|f| (f, session.calls(f))).collect();
    for executable in loaded {
        session.unload(executable);
    }
    session.take_profiles();
    session.restart();
    session.take_profiles();
    let mut cases = 0;
    for (function, count) in calls {
        for call in 1..=count {
            // There are hundreds of similar symbols: test all of one code object, then a sample.
            if function == "hsa_executable_symbol_get_info" && call > 60 && call % 7 != 0 {
                continue;
            }
            // devprof does not distinguish statuses. The last one is reported each time.
            for status in &statuses()[if call == 1 { 0 } else { 2 }..] {
                fails(&mut session, function, call, status);
                cases += 1;
            }
        }
        eprintln!("{function}: {count} calls");
    }
    eprintln!("{cases} cases");
    assert!(
        cases > 110,
        "{cases} cases are too few: did the drain find the code objects?"
    );

    let mut special = |plan: &str| {
        let case = case(&mut session, plan);
        session.restart();
        session.take_profiles();
        assert_eq!(case.wrong, 0, "{plan}: {}", case.stderr);
        case
    };
    // Both ways to copy fail: every code object is lost and reported.
    let both = "hsa_amd_memory_async_copy * fail ERROR; hsa_memory_copy * fail ERROR";
    let lost = special(both);
    assert_eq!((lost.result, lost.good), (-1, 0), "{}", lost.stderr);
    let named = lost.stderr.matches("code object memory://").count();
    assert_eq!(named, OBJECTS, "{}", lost.stderr);
    // A loss is also reported if the URI of the code object cannot be read. (For each code object, discovery calls the
    // first function once and the second one three times.)
    let discovery = [OBJECTS, 3 * OBJECTS];
    for (n, function) in hsa_abi::LOADER_FUNCTIONS[3..5].iter().enumerate() {
        let status = 0x20_0000 + n;
        let next = discovery[n] + 1;
        let lost = special(&format!(
            "hsa_amd_memory_async_copy * fail ERROR; hsa_memory_copy 2 fail {status}; {function} {next} fail ERROR"
        ));
        let found = (lost.result, lost.good);
        assert_eq!(found, (-1, OBJECTS - 1), "{}", lost.stderr);
        assert!(lost.stderr.contains("without a URI"), "{}", lost.stderr);
    }
    for plan in [
        // A copy that fails after its start is repeated with the other function.
        "hsa_amd_memory_async_copy 2 error",
        // If a copy never completes, a kernel copies.
        "hsa_amd_memory_async_copy 1 drop",
        // A slow runtime causes no loss.
        "hsa_amd_memory_async_copy 1 block 50; hsa_iterate_agents * block 50",
    ] {
        let case = special(plan);
        let found = (case.result, case.good, case.stderr.as_str());
        assert_eq!(found, (0, OBJECTS, ""), "{plan}");
    }
    // If the copy of the kernel does not complete either, only the code objects of this agent are lost, after the time limit.
    let dropped =
        special("hsa_amd_memory_async_copy 1 drop; hsa_amd_memory_async_copy_on_engine 1 drop");
    assert_eq!(dropped.result, -1, "{}", dropped.stderr);
    assert!(dropped.good >= OBJECTS / 2, "{}", dropped.stderr);
}
