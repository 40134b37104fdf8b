//! The fault plan's other actions, each seen to happen: what a test asks for is what it gets.

mod common;

use common::{RAW10, RAW11, Session, ok};
use hsa_sim::abi::*;
use std::ffi::{c_int, c_void};

#[test]
fn each_action_does_what_its_name_says() {
    let session = Session::start(
        "plan",
        &[("HSA_SIM_BAR", "small"), ("DEVPROF_SYNC_MS", "300")],
    );
    let hsa = &session.hsa;
    let gpu = session.gpus[0];
    let executable = session.load(gpu, RAW11);
    session.run(executable, gpu);
    let counters: u64 = session.symbol(
        executable,
        gpu,
        "__profc_branch",
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS,
    );
    let copy = |plan: &str| {
        session.plan(plan);
        let mut to = [7u64; 2];
        // SAFETY: 16 bytes of device memory that is loaded.
        ok(unsafe { (hsa.hsa_memory_copy)(to.as_mut_ptr().cast(), counters as *const c_void, 16) });
        to
    };
    assert_eq!(copy(""), [64, 16]);
    assert_eq!(copy("hsa_memory_copy 1 short 8"), [64, 7]);
    assert_eq!(copy("hsa_memory_copy 1 torn 8"), [64, !16]);
    assert_eq!(
        copy("hsa_memory_copy 2 short 8"),
        [64, 16],
        "another call's fault"
    );

    session.plan("hsa_executable_symbol_get_info 1 lie 0x123");
    let lie: u64 = session.symbol(
        executable,
        gpu,
        "__profc_branch",
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS,
    );
    assert_eq!(lie, 0x123);

    // A code object appears, and one goes, before a call is done.
    let path = session.out.parent().expect("a directory").join("loaded.co");
    std::fs::write(&path, RAW10).expect("a file");
    session.plan(&format!("hsa_iterate_agents 1 load {}", path.display()));
    let (result, said) = session.collect();
    assert_eq!((result, said.as_str()), (0, ""));
    let versions: Vec<u64> = session
        .take_profiles()
        .iter()
        .map(|(_, p)| p.version)
        .collect();
    assert!(
        versions.contains(&10) && versions.contains(&11),
        "{versions:?}"
    );
    assert_eq!(session.live()[2], 2);

    // Before its symbols are walked over: it is named as not seen, and the other one is drained.
    session.plan("hsa_executable_iterate_agent_symbols 2 unload 2");
    let (result, said) = session.collect();
    assert_eq!(result, -1, "{said}");
    assert!(
        said.contains("hsa_executable_iterate_agent_symbols failed: HSA status 0x1011"),
        "{said}"
    );
    let profiles = session.take_profiles();
    assert!(
        profiles.len() == 1 && profiles[0].1.is_fixture(1),
        "{profiles:?}"
    );
    assert_eq!(session.live()[2], 1);

    // A kernel whose completion is lost.
    session.plan("dispatch 2 drop");
    let lost = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        session.run_for(executable, gpu, 200_000_000)
    }));
    assert!(lost.is_err(), "the second kernel's end is not told");
    session.plan("");
    assert_eq!(session.collect().0, 0);
    assert!(session.take_profiles()[0].1.is_fixture(2), "but it ran");

    let wrong: c_int = {
        // SAFETY: a C string.
        unsafe { (hsa.hsa_sim_plan)(c"hsa_memory_copy 1 explode".as_ptr()) }
    };
    assert_eq!(wrong, -1, "an unknown word");
}
