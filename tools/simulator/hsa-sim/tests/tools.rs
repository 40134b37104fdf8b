//! The tools of `HSA_TOOLS_LIB` are loaded unless a tool of rocprofiler-sdk has registered.

mod common;

use common::{Session, library};

#[test]
fn tools_are_skipped_if_another_tool_has_registered() {
    let devprof = library("devprof");
    let mut session = Session::start(
        "tools",
        &[("HSA_TOOLS_LIB", devprof.to_str().expect("a path"))],
    );
    let mut calls = session.on_load_calls();
    assert_eq!(calls, 1);
    let mut loads = |name: &str, value: &str| {
        session.restart_with(name, value);
        let before = std::mem::replace(&mut calls, session.on_load_calls());
        calls - before
    };
    // HSA_TOOLS_ROCPROFILER_V1_TOOLS is 1.
    assert_eq!(loads("HSA_SIM_TOOLS", "registered"), 1);
    assert_eq!(loads("HSA_TOOLS_ROCPROFILER_V1_TOOLS", "0"), 0);
    assert_eq!(loads("HSA_TOOLS_ROCPROFILER_V1_TOOLS", "on"), 1);
    assert_eq!(loads("HSA_TOOLS_ROCPROFILER_V1_TOOLS", "Off"), 0);
    assert_eq!(loads("HSA_TOOLS_DISABLE_REGISTER", "1"), 1);
    assert_eq!(loads("HSA_TOOLS_DISABLE_REGISTER", "0"), 0);
    assert_eq!(loads("HSA_SIM_TOOLS", "load"), 1);
}
