//! The actions of the fault plan that tests/faults.rs does not use.

mod common;

use common::{RAW10, RAW11, Session, ok};
use hsa_abi::*;

#[test]
fn each_action_has_its_effect() {
    let session = Session::start("plan", &[("DEVPROF_SYNC_MS", "300")]);
    let hsa = &session.hsa;
    let gpu = session.gpus[0];
    let executable = session.load(gpu, RAW11);
    session.run(executable, gpu);
    let counters = session.variable(executable, gpu, "__profc_branch");
    let copy = |plan: &str| {
        session.plan(plan);
        let mut to = [7u64; 2];
        session.read_into(counters, &mut to);
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
    let lie = session.variable(executable, gpu, "__profc_branch");
    assert_eq!(lie, 0x123);

    // The completion of a kernel is lost.
    session.plan("dispatch 2 drop");
    let lost = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        session.run_for(executable, gpu, 200_000_000)
    }));
    assert!(lost.is_err(), "the second kernel does not complete");
    session.plan("");
    assert_eq!(session.collect().0, 0);
    assert!(session.take_profiles()[0].1.is_fixture(2), "the kernel ran");

    // Wrong times and values.
    let times = |plan: &str| {
        session.plan(plan);
        session.run(executable, gpu).swap_remove(1)
    };
    let true_ones = times("");
    assert!(true_ones.start > 0 && true_ones.start <= true_ones.end);
    let swapped = times("dispatch 2 times swapped");
    assert!(swapped.start > swapped.end && swapped.end >= true_ones.end);
    let before = times("dispatch 2+ times before");
    assert!(before.start <= before.end && before.end < true_ones.end);
    let after = times("dispatch * times after");
    assert!(after.start > true_ones.end + 3_000_000_000_000);
    let zero = times("dispatch 2 times zero");
    assert_eq!((zero.start, zero.end), (0, 0));
    let lie = times("hsa_amd_profiling_get_dispatch_time 2 lie 0x8000000000000000");
    assert_eq!((lie.start, lie.end), (1 << 63, 1 << 63));
    let longer = times("dispatch 2 block 30");
    assert!(longer.end - longer.start >= 30_000_000);
    let late = std::time::Instant::now();
    let on_time = times("dispatch 2 late 50");
    assert!(late.elapsed().as_millis() >= 50);
    assert!(on_time.end - on_time.start < 50_000_000);
    session.plan("dispatch 1 error");
    let error = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        session.run(executable, gpu);
    }));
    let message = error.expect_err("the first kernel fails");
    let message = message.downcast_ref::<String>().expect("text");
    assert!(message.contains("left: -1"), "{message}");

    // From the third call on.
    session.plan("hsa_amd_signal_create 3+ fail ERROR_OUT_OF_RESOURCES");
    let mut signals = Vec::new();
    for n in 0..5 {
        let mut signal = SignalHandle::default();
        // SAFETY: as specified by HSA.
        let status = unsafe { (hsa.hsa_amd_signal_create)(1, 0, std::ptr::null(), 1, &mut signal) };
        assert_eq!(status == Status::SUCCESS, n < 2, "{n}: {status:?}");
        signals.push(signal);
    }
    assert_eq!(session.calls("hsa_amd_signal_create"), 5);
    for &signal in &signals[..2] {
        // SAFETY: created above.
        ok(unsafe { (hsa.hsa_signal_destroy)(signal) });
    }

    // A code object is loaded before a call.
    let path = session.out.parent().expect("a directory").join("loaded.co");
    std::fs::write(&path, RAW10).expect("a file");
    session.plan(&format!("hsa_iterate_agents 1 load {}", path.display()));
    let profiles = session.drain();
    let versions: Vec<u64> = profiles.iter().map(|(_, p)| p.version).collect();
    assert!(
        versions.contains(&10) && versions.contains(&11),
        "{versions:?}"
    );
    assert_eq!(session.live()[2], 2);

    // Its symbols cannot be read, before and after the wait for kernels: it is reported as lost, and the other one is drained.
    let fails = |call| {
        format!("hsa_executable_iterate_agent_symbols {call} fail ERROR_INVALID_EXECUTABLE\n")
    };
    session.plan(&(fails(2) + &fails(4)));
    let (result, stderr) = session.collect();
    assert_eq!(result, -1, "{stderr}");
    assert!(
        stderr.contains("hsa_executable_iterate_agent_symbols failed: HSA status 0x1011"),
        "{stderr}"
    );
    let profiles = session.take_profiles();
    assert!(
        profiles.len() == 1 && profiles[0].1.version == 11,
        "{profiles:?}"
    );

    // SAFETY: a C string.
    let wrong = unsafe { (hsa.hsa_sim_plan)(c"hsa_memory_copy 1 explode".as_ptr()) };
    assert_eq!(wrong, -1, "an unknown word");
}
