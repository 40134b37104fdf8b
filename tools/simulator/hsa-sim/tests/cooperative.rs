//! Cooperative queues: an agent has one for all users. It lives until the last user has destroyed it, or until an intercept
//! queue around it is destroyed.

mod common;

use common::{RAW11, Session, attribute, ok};
use hsa_abi::*;
use std::ffi::c_void;
use std::process::Command;

/// Cases that end the process, and a part of the message. Each runs in a child process.
const FATAL: &[(&str, &str)] = &[
    ("create", "hsa_queue_create returns"),
    ("destroy", "hsa_queue_destroy is called for"),
    ("shut down", "hsa_shut_down deletes"),
    ("destroy below", "there is still an intercept queue"),
    ("twice", "a second intercept queue"),
];

/// The environment variable that selects the case of a child process.
const CASE: &str = "COOPERATIVE_CASE";

unsafe extern "C" fn pass(
    packets: *const c_void,
    count: u64,
    _index: u64,
    _data: *mut c_void,
    write: PacketWriter,
) {
    // SAFETY: the runtime's own arguments.
    unsafe { write(packets, count) };
}

fn intercepted(session: &Session, gpu: AgentHandle) -> *mut Queue {
    let mut queue = std::ptr::null_mut();
    // SAFETY: as specified by HSA.
    unsafe {
        let (kind, data, most) = (HSA_QUEUE_TYPE_COOPERATIVE, std::ptr::null_mut(), u32::MAX);
        let create = session.hsa.hsa_amd_queue_intercept_create;
        ok(create(gpu, 64, kind, None, data, most, most, &mut queue));
        let register = session.hsa.hsa_amd_queue_intercept_register;
        ok(register(queue, pass, data));
    }
    queue
}

fn fatal(session: &Session, case: &str) {
    let gpu = session.gpus[0];
    let below = session.queue(gpu, HSA_QUEUE_TYPE_COOPERATIVE);
    let around = intercepted(session, gpu);
    match case {
        "create" => {
            session.destroy(around);
            session.queue(gpu, HSA_QUEUE_TYPE_COOPERATIVE);
        }
        "destroy" => {
            session.destroy(around);
            session.destroy(below);
        }
        "shut down" => {
            session.destroy(around);
            // SAFETY: the last reference.
            ok(unsafe { (session.hsa.hsa_shut_down)() });
        }
        "destroy below" => {
            session.destroy(below);
            session.destroy(below);
        }
        "twice" => {
            intercepted(session, gpu);
        }
        other => panic!("unknown case {other}"),
    }
}

#[test]
fn an_agent_has_one_cooperative_queue() {
    let start = |name: &str| Session::start(name, &[("HSA_SIM_AGENTS", "gfx1100*2")]);
    if let Ok(case) = std::env::var(CASE) {
        fatal(&start(&format!("cooperative-{case}")), &case);
        return;
    }
    let session = start("cooperative");
    let gpu = session.gpus[0];
    for (agent, expected) in [(session.cpu, false), (gpu, true)] {
        let (get, name) = (
            session.hsa.hsa_agent_get_info,
            HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES,
        );
        // SAFETY: the attribute is a bool.
        let found: bool = attribute(|value| unsafe { get(agent, name, value) });
        assert_eq!(found, expected);
    }
    let executable = session.load(gpu, RAW11);
    let first = session.queue(gpu, HSA_QUEUE_TYPE_COOPERATIVE);
    let second = session.queue(gpu, HSA_QUEUE_TYPE_COOPERATIVE);
    assert_eq!(first, second);
    // SAFETY: a queue that is not destroyed.
    let (size, kind) = unsafe { ((*first).size, (*first).kind) };
    assert_eq!((size, kind), (0x4000, HSA_QUEUE_TYPE_COOPERATIVE));
    let other = session.queue(session.gpus[1], HSA_QUEUE_TYPE_COOPERATIVE);
    assert_ne!(first, other);
    assert_eq!(session.live()[3], 2);
    let limit = 60_000_000_000;
    session.run_on(first, executable, gpu, limit);
    session.destroy(first);
    // The second user can still use the queue.
    session.run_on(second, executable, gpu, limit);
    session.destroy(second);
    assert_eq!(session.live()[3], 1);
    for (size, kind, error) in [
        (100, HSA_QUEUE_TYPE_COOPERATIVE, Status::INVALID_ARGUMENT),
        (64, 3, Status::INVALID_QUEUE_CREATION),
    ] {
        assert_eq!(session.try_queue(gpu, size, kind).0, error);
    }

    // An intercept queue that is never destroyed, and users of the queue underneath.
    let around = intercepted(&session, gpu);
    // SAFETY: a queue that is not destroyed.
    assert_eq!(unsafe { (*around).size }, 0x4000);
    session.run_on(around, executable, gpu, limit);
    let below = session.queue(gpu, HSA_QUEUE_TYPE_COOPERATIVE);
    assert_ne!(below, around);
    session.destroy(below);
    session.run_on(around, executable, gpu, limit);

    for &(case, expected) in FATAL {
        let program = std::env::current_exe().expect("this program");
        let output = Command::new(program)
            .env(CASE, case)
            .arg("--nocapture")
            .output();
        let output = output.expect("a process");
        let stderr = String::from_utf8_lossy(&output.stderr);
        let line = stderr.lines().find(|line| line.starts_with("hsa-sim: "));
        assert!(!output.status.success(), "{case}: {stderr}");
        let line = line.unwrap_or_else(|| panic!("{case}: {stderr}"));
        assert!(line.contains(expected), "{case}: {line}");
        assert_eq!(line.contains("use after free"), case != "twice", "{line}");
    }
}
