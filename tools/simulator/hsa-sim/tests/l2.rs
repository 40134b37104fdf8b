//! The write-back cache: the fences of packets decide when copies and the host read what kernels have written, and when
//! kernels read the copied bytes.

mod common;

use common::{RAW11, Session, ok};
use hsa_abi::*;
use std::ffi::c_void;

const ACQUIRE: u32 = 9;
const RELEASE: u32 = 11;
const AGENT: u64 = 1;
const SYSTEM: u64 = 2;

struct Test<'a> {
    session: &'a Session,
    gpu: AgentHandle,
    queue: *mut Queue,
    executable: ExecutableHandle,
    arguments: *mut u64,
    /// The address of `branch`'s counters.
    counters: u64,
}

impl Test<'_> {
    fn submit(&self, queue: *mut Queue, mut packet: [u64; 8], acquire: u64, release: u64) {
        packet[0] |= acquire << ACQUIRE | release << RELEASE;
        self.session.submit(queue, self.gpu, packet, 60_000_000_000);
    }

    /// Runs `branch`, which adds 64 to its first counter.
    fn run(&self, acquire: u64, release: u64) {
        let packet = self
            .session
            .kernel(self.executable, self.gpu, "branch.kd", self.arguments);
        self.submit(self.queue, packet, acquire, release);
    }

    fn barrier(&self, queue: *mut Queue, acquire: u64, release: u64) {
        let packet = [u64::from(HSA_PACKET_TYPE_BARRIER_AND), 0, 0, 0, 0, 0, 0, 0];
        self.submit(queue, packet, acquire, release);
    }

    fn read(&self, from: u64) -> u64 {
        let mut value = 0;
        self.session.read_into(from, &mut value);
        value
    }

    fn count(&self) -> u64 {
        self.read(self.counters)
    }

    fn set_count(&self, value: u64) {
        // SAFETY: eight bytes of device memory.
        ok(unsafe {
            let copy = self.session.hsa.hsa_memory_copy;
            copy(self.counters as *mut c_void, (&raw const value).cast(), 8)
        });
    }
}

fn code_objects(test: &Test, other_queue: *mut Queue) {
    test.run(0, 0);
    test.run(AGENT, AGENT);
    assert_eq!(test.count(), 0, "the counts are in the cache");
    test.barrier(test.queue, SYSTEM, AGENT);
    assert_eq!(test.count(), 0, "a fence for the agent is not enough");
    // A fence on another queue of the agent has the same effect.
    test.barrier(other_queue, 0, SYSTEM);
    assert_eq!(test.count(), 128);
    test.run(0, SYSTEM);
    assert_eq!(test.count(), 192);

    // Kernels read copied bytes after an acquire fence.
    test.set_count(1_000_000);
    test.run(AGENT, SYSTEM);
    assert_eq!(
        test.count() & 0xff,
        (192 + 64) & 0xff,
        "a stale count is written back"
    );
    test.set_count(1_000_000);
    test.run(SYSTEM, SYSTEM);
    assert_eq!(test.count(), 1_000_064);
    test.set_count(5);
    test.barrier(other_queue, SYSTEM, 0);
    test.run(0, SYSTEM);
    assert_eq!(test.count(), 69);
}

/// The kernel writes 64 numbers, the second one 1, to memory of a pool.
fn pools(test: &Test) {
    let session = test.session;
    for (flags, cached) in [
        (HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED, true),
        (
            HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_EXTENDED_SCOPE_FINE_GRAINED,
            false,
        ),
    ] {
        let memory = session.allocate(session.pool(test.gpu, flags), 4096);
        // SAFETY: the first argument, in memory of the host.
        unsafe { *test.arguments = memory as u64 };
        test.run(0, 0);
        assert_eq!(test.read(memory as u64) == 0, cached, "{flags}");
        test.barrier(test.queue, 0, SYSTEM);
        assert_eq!(test.read(memory as u64), 1 << 32, "{flags}");
        session.free(memory);
    }
}

/// Calls `work` with a loaded code object and a queue.
fn with(session: &Session, work: impl FnOnce(&Test)) {
    let gpu = session.gpus[0];
    let executable = session.load(gpu, RAW11);
    let test = Test {
        session,
        gpu,
        queue: session.queue(gpu, HSA_QUEUE_TYPE_MULTI),
        executable,
        arguments: session.arguments(gpu),
        counters: session.variable(executable, gpu, "__profc_branch"),
    };
    work(&test);
    session.unload(executable);
    session.destroy(test.queue);
    session.free(test.arguments.cast());
}

#[test]
fn only_fences_at_system_scope_synchronize_cache_and_memory() {
    let mut session = Session::start(
        "l2",
        &[
            ("HSA_SIM_L2", "writeback"),
            ("HSA_SIM_WATCH", "off"),
            // Kernels write to the counters themselves.
            ("DEVPROF_COUNTER_COPIES_MB", "0"),
        ],
    );
    with(&session, |test| {
        let other = test.session.queue(test.gpu, HSA_QUEUE_TYPE_MULTI);
        code_objects(test, other);
        pools(test);
        test.session.destroy(other);
    });
    session.restart_with("HSA_SIM_L2", "coherent");
    with(&session, |test| {
        test.run(0, 0);
        assert_eq!(test.count(), 64);
        test.set_count(1000);
        test.run(0, 0);
        assert_eq!(test.count(), 1064);
    });
    // With a large BAR the host reads memory, not the cache.
    session.restart_with("HSA_SIM_L2", "writeback");
    session.restart_with("HSA_SIM_BAR", "large");
    with(&session, |test| {
        // SAFETY: the host can read the counter, and no kernel is running.
        let host = || unsafe { *(test.counters as *const u64) };
        test.run(0, 0);
        assert_eq!(host(), 0);
        test.barrier(test.queue, 0, SYSTEM);
        assert_eq!(host(), 64);
    });

    // devprof itself makes the GPU write its cache back.
    session.forget();
    let executable = session.load(session.gpus[0], RAW11);
    session.run(executable, session.gpus[0]);
    let profiles = session.drain();
    assert!(profiles[0].1.is_fixture(1), "{profiles:?}");
    session.unload(executable);
}
