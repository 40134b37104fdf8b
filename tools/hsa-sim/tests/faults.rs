//! Every HSA call that a drain makes fails, in turn, at every position, with several statuses; and the copies fail in
//! every way that there is. Each time the other code objects are drained, what is lost is named, the return value is
//! right, the next drain is whole, and nothing is left over.

mod common;

use common::{Session, library};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Every function that can fail, whether a drain calls it or not.
fn functions() -> Vec<&'static str> {
    hsa_sim::faults::functions::fallible()
        // They have cases of their own.
        .filter(|name| !["hsa_init", "hsa_system_get_major_extension_table"].contains(name))
        .collect()
}

/// Without these nothing can be found.
const NEEDED: &[&str] = &[
    "hsa_system_get_info",
    "hsa_system_get_major_extension_table",
    "hsa_iterate_agents",
    "hsa_ven_amd_loader_iterate_executables",
];

/// Without these there is another way, so nothing is lost.
const REPLACEABLE: &[&str] = &[
    "hsa_amd_agent_iterate_memory_pools",
    "hsa_amd_memory_pool_get_info",
    "hsa_amd_memory_pool_allocate",
    "hsa_amd_agents_allow_access",
    "hsa_amd_memory_async_copy",
];

/// The statuses of a call's cases. The last is another each time: devprof says the same thing once.
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
    said: String,
    /// Whole profiles with the right counts, and others.
    good: usize,
    wrong: usize,
}

const OBJECTS: usize = 4;

fn case(session: &mut Session, plan: &str) -> Case {
    session.plan("");
    let loaded = session.load_all();
    let before = session.live();
    session.plan(plan);
    let (result, said) = session.collect();
    let profiles = session.take_profiles();
    let good = profiles.iter().filter(|(_, p)| p.is_fixture(1)).count();
    assert!(
        !said.contains("panicked") && !said.contains("internal error"),
        "{plan}: {said}"
    );

    session.plan("");
    let again = session.collect();
    assert_eq!(
        (again.0, again.1.as_str()),
        (0, ""),
        "the drain after {plan}"
    );
    let whole = session.take_profiles();
    assert_eq!(whole.len(), OBJECTS, "the drain after {plan}");
    assert!(
        whole.iter().all(|(_, p)| p.is_fixture(1)),
        "the drain after {plan}"
    );
    let after = session.live();
    let agents = session.gpus.len() as u64;
    // While a copy may still be on its way, where it goes to cannot be given back.
    let under_way = plan.ends_with("error") || plan.ends_with("drop");
    assert!(
        // The signals of copies and of write-backs, and the doorbell of the queue for write-backs.
        under_way || after[0] <= before[0] + 3 * agents && after[1] <= before[1] + agents,
        "{plan}: {before:?} {after:?}"
    );
    for executable in loaded {
        session.unload(executable);
    }
    Case {
        result,
        said,
        good,
        wrong: profiles.len() - good,
    }
}

fn fails(session: &mut Session, function: &str, call: u64, status: &str) {
    let plan = format!("{function} {call} fail {status}");
    let case = case(session, &plan);
    session.plan("");
    session.restart();
    // What a drain takes, OnUnload gives back.
    for (takes, gives) in [
        ("hsa_signal_create", "hsa_signal_destroy"),
        ("hsa_amd_memory_pool_allocate", "hsa_amd_memory_pool_free"),
        ("hsa_queue_create", "hsa_queue_destroy"),
    ] {
        assert!(
            session.calls(takes) <= session.calls(gives),
            "{plan}: {takes}"
        );
    }
    session.take_profiles();
    assert_eq!(case.wrong, 0, "{plan}: {}", case.said);
    if case.result == 0 {
        assert_eq!(
            (case.good, case.said.as_str()),
            (OBJECTS, ""),
            "{plan}: nothing is lost"
        );
        return;
    }
    assert_eq!(case.result, -1, "{plan}");
    assert!(
        case.said.lines().all(|line| line.starts_with("devprof: ")),
        "{plan}: {}",
        case.said
    );
    let own = status.parse::<u32>().map(|own| format!("{own:#x}"));
    assert!(
        own.is_err() || own.is_ok_and(|own| case.said.contains(&own)),
        "{plan}: what is lost is named: {}",
        case.said
    );
    let least = if NEEDED.contains(&function) {
        0
    } else if REPLACEABLE.contains(&function) {
        panic!("{plan}: there is another way: {}", case.said);
    } else if function == "hsa_agent_get_info" {
        // One agent's objects, or all if it was the CPU.
        OBJECTS / 2
    } else {
        OBJECTS - 1
    };
    assert!(
        case.good >= least,
        "{plan}: {} are drained: {}",
        case.good,
        case.said
    );
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
    // Asked for once a process, so before any drain has had it.
    for status in statuses() {
        fails(
            &mut session,
            "hsa_system_get_major_extension_table",
            1,
            &status,
        );
    }
    let loaded = session.load_all();
    session.plan("");
    assert_eq!(session.collect().0, 0);
    let calls: Vec<(&str, u64)> = functions()
        .into_iter()
        .map(|f| (f, session.calls(f)))
        .collect();
    loaded
        .into_iter()
        .for_each(|executable| session.unload(executable));
    session.take_profiles();
    session.restart();
    session.take_profiles();
    let mut cases = 0;
    for (function, count) in calls {
        for call in 1..=count {
            // Hundreds of symbols are alike: those of one code object in full, then a sample.
            if function == "hsa_executable_symbol_get_info" && call > 60 && call % 7 != 0 {
                continue;
            }
            for status in statuses() {
                fails(&mut session, function, call, &status);
                cases += 1;
            }
        }
        eprintln!("{function}: {count} calls");
    }
    eprintln!("{cases} cases");
    assert!(
        cases > 300,
        "{cases} cases are too few: does the drain call what is listed here?"
    );

    let mut special = |plan: &str| {
        let case = case(&mut session, plan);
        session.restart();
        session.take_profiles();
        assert_eq!(case.wrong, 0, "{plan}: {}", case.said);
        case
    };
    // Both ways to copy fail: every code object is lost, and said so.
    let both = "hsa_amd_memory_async_copy * fail ERROR; hsa_memory_copy * fail ERROR";
    let lost = special(both);
    assert_eq!((lost.result, lost.good), (-1, 0), "{}", lost.said);
    let named = lost.said.matches("code object memory://").count();
    assert_eq!(named, OBJECTS, "{}", lost.said);
    // That a code object cannot be named in the message does not hide its loss.
    // (What finds the code objects is called for each: once, and three times.)
    let finding = [OBJECTS, 3 * OBJECTS];
    for (n, function) in hsa_abi::LOADER_FUNCTIONS[3..5].iter().enumerate() {
        let status = 0x20_0000 + n;
        let next = finding[n] + 1;
        let lost = special(&format!(
            "hsa_amd_memory_async_copy * fail ERROR; hsa_memory_copy 2 fail {status}; {function} {next} fail ERROR"
        ));
        assert_eq!((lost.result, lost.good), (-1, OBJECTS - 1), "{}", lost.said);
        assert!(lost.said.contains("without a URI"), "{}", lost.said);
    }
    // A copy that fails on its way is made again in the other way.
    let error = special("hsa_amd_memory_async_copy 2 error");
    assert_eq!(
        (error.result, error.good, error.said.as_str()),
        (0, OBJECTS, "")
    );
    // One that never ends costs its agent's code objects, after the time limit, and no more.
    let dropped = special("hsa_amd_memory_async_copy 1 drop");
    assert_eq!(dropped.result, -1, "{}", dropped.said);
    assert!(dropped.good >= OBJECTS / 2, "{}", dropped.said);
    // A slow runtime is only slow.
    let slow = special("hsa_amd_memory_async_copy 1 block 50; hsa_iterate_agents * block 50");
    assert_eq!(
        (slow.result, slow.good, slow.said.as_str()),
        (0, OBJECTS, "")
    );
}
