//! Code objects of clang 22 (raw profile version 10) and of clang 23 (11) in one process, on two agents.

mod common;

use common::{RAW10, RAW11, Session, attribute};
use hsa_abi::HSA_SYSTEM_INFO_TIMESTAMP;

#[test]
fn raw_10_and_raw_11_are_drained_together() {
    let session = Session::start("versions", &[("HSA_SIM_AGENTS", "gfx1100*2")]);
    let now = || {
        let get = session.hsa.hsa_system_get_info;
        // SAFETY: the attribute is a u64.
        attribute::<u64>(|value| unsafe { get(HSA_SYSTEM_INFO_TIMESTAMP, value) })
    };
    let mut loaded = Vec::new();
    for &gpu in &session.gpus {
        for file in [RAW10, RAW11] {
            let executable = session.load(gpu, file);
            let before = now();
            let times = session.run(executable, gpu);
            let after = now();
            assert!(
                before <= times[0].start && times[0].start <= times[0].end,
                "the times are correct"
            );
            assert!(
                times[0].end <= times[1].start && times[1].end <= after,
                "the times are correct"
            );
            loaded.push(executable);
        }
    }
    // If devprof cannot add a reference to HSA, this drain is still complete.
    session.plan("hsa_init 1 fail ERROR_REFCOUNT_OVERFLOW");
    session.collect_all();
    assert_eq!(session.calls("hsa_init"), 1);
    session.plan("");
    let profiles = session.take_profiles();
    for version in [10, 11] {
        let of_version = profiles.iter().filter(|(_, p)| p.version == version);
        assert_eq!(of_version.count(), 2, "{profiles:?}");
    }
    for (name, profile) in &profiles {
        assert!(profile.is_fixture(1), "{name}: {profile:?}");
    }

    // A second run of one of them: its new file has the larger counts, the others have the same counts as before.
    session.run(loaded[0], session.gpus[0]);
    assert_eq!(session.collect().0, 0);
    let runs: Vec<u64> = session
        .take_profiles()
        .iter()
        .map(|(_, profile)| 1 + u64::from(profile.is_fixture(2)))
        .collect();
    assert_eq!(runs.iter().sum::<u64>(), 5, "{runs:?}");
}
