//! The program that tools/fuzz/run starts: libFuzzer with the target that DEVPROF_TARGET names.
#![no_main]

use devprof_cli::fuzzing;
use fuzz::{TARGETS, Target};
use std::sync::LazyLock;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("DEVPROF_TARGET").unwrap_or_default();
    let mut targets = TARGETS.iter().chain(fuzzing::TARGETS);
    let found = targets.find(|(target, _)| *target == name);
    found.expect("DEVPROF_TARGET is the name of a target").1
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| TARGET(bytes));
