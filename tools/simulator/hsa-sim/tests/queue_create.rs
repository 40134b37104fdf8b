//! Newer ROCr's functions that create queues: from descriptors, and queues that share a hardware queue.

mod common;

use common::{RAW11, Session, ok};
use hsa_abi::newer::QueueCreateDesc;
use hsa_abi::*;
use std::ffi::c_void;

const LIMIT: u64 = 60_000_000_000;

fn desc() -> QueueCreateDesc {
    QueueCreateDesc {
        version: 1,
        flags: 0,
        engine: 0,
        reserved_header: [0; 3],
        size: 64 * 64,
        priority: 1,
        callback: None,
        data: std::ptr::null_mut(),
        // If the creation fails, the runtime must set this to null.
        queue: std::ptr::dangling_mut(),
        cu_mask: std::ptr::null(),
        kind: HSA_QUEUE_TYPE_MULTI,
        private_segment_size: u32::MAX,
        cu_mask_count: 0,
        reserved_compute: [0; 3],
        traffic_class: 0,
        reserved: [0; 20],
    }
}

fn create(session: &Session, agent: AgentHandle, descs: &mut [QueueCreateDesc]) -> Status {
    // SAFETY: `descs` has this length.
    unsafe { (session.hsa.hsa_amd_queue_create)(agent, descs.as_mut_ptr(), descs.len() as u32) }
}

fn destroy(session: &Session, queue: *mut Queue) -> Status {
    // SAFETY: it is empty. The runtime checks whether it can be destroyed.
    unsafe { (session.hsa.hsa_queue_destroy)(queue) }
}

fn descriptors(session: &Session, gpu: AgentHandle, executable: ExecutableHandle) {
    let hsa = &session.hsa;
    session.plan("");
    let mask = 1u32;
    let cooperative = QueueCreateDesc {
        kind: HSA_QUEUE_TYPE_COOPERATIVE,
        ..desc()
    };
    let masked = QueueCreateDesc {
        cu_mask: &raw const mask,
        cu_mask_count: 32,
        ..desc()
    };
    let mut made = [desc(), cooperative, masked];
    ok(create(session, gpu, &mut made));
    // The hsa_queue_create of the API table is not called.
    assert_eq!(session.calls("hsa_amd_queue_create"), 1);
    assert_eq!(session.calls("hsa_queue_create"), 0);
    for desc in &made {
        session.run_on(desc.queue, executable, gpu, LIMIT);
        // SAFETY: a queue that is not destroyed.
        let (size, kind) = unsafe { ((*desc.queue).size, (*desc.queue).kind) };
        let expected = if kind == HSA_QUEUE_TYPE_COOPERATIVE {
            0x4000
        } else {
            64
        };
        assert_eq!((size, kind), (expected, desc.kind));
    }
    let own = session.queue(gpu, HSA_QUEUE_TYPE_COOPERATIVE);
    assert_eq!(own, made[1].queue);
    ok(destroy(session, own));
    let mut back = [7u32; 2];
    // SAFETY: 64 bits.
    ok(unsafe { (hsa.hsa_amd_queue_cu_get_mask)(made[2].queue, 64, back.as_mut_ptr()) });
    assert_eq!(back, [1, 0]);
    for desc in made {
        ok(destroy(session, desc.queue));
    }

    let with = |change: fn(&mut QueueCreateDesc)| {
        let mut changed = desc();
        change(&mut changed);
        changed
    };
    for wrong in [
        with(|desc| desc.version = 2),
        with(|desc| desc.size = 0),
        with(|desc| desc.size = 3),
        with(|desc| desc.size = 32),
        with(|desc| desc.kind = 3),
        with(|desc| desc.priority = 3),
        with(|desc| desc.engine = 3),
        with(|desc| desc.cu_mask_count = 32),
        with(|desc| desc.cu_mask = std::ptr::dangling()),
        with(|desc| desc.reserved[0] = 1),
    ] {
        // The other queues are created, and the result is the first error.
        let other = with(|desc| desc.flags = 1);
        let mut descs = [desc(), wrong, other];
        let status = create(session, gpu, &mut descs);
        assert_eq!(status, Status::INVALID_ARGUMENT, "{wrong:?}");
        let nulls = descs.map(|desc| desc.queue.is_null());
        assert_eq!(nulls, [false, true, true], "{wrong:?}");
        ok(destroy(session, descs[0].queue));
    }
    for unsupported in [with(|desc| desc.engine = 1), with(|desc| desc.flags = 2)] {
        let status = create(session, gpu, &mut [unsupported]);
        assert_eq!(status, Status::INVALID_QUEUE_CREATION);
    }
    let mut descs = [desc()];
    let status = create(session, session.cpu, &mut descs);
    assert_eq!(status, Status::INVALID_AGENT);
    assert!(descs[0].queue.is_null());
    let status = create(session, gpu, &mut []);
    assert_eq!(status, Status::INVALID_ARGUMENT);
}

fn acquire(
    session: &Session,
    gpu: AgentHandle,
    kind: u32,
    priority: u32,
) -> Result<*mut Queue, Status> {
    let mut queue = std::ptr::null_mut();
    // SAFETY: as specified in the header.
    let status = unsafe {
        let data = std::ptr::null_mut();
        let acquire = session.hsa.hsa_amd_counted_queue_acquire;
        acquire(gpu, kind, priority, None, data, 0, &mut queue)
    };
    match status {
        Status::SUCCESS => Ok(queue),
        status => Err(status),
    }
}

fn counted(session: &Session, gpu: AgentHandle, executable: ExecutableHandle) {
    let hsa = &session.hsa;
    session.plan("");
    let before = session.live()[3];
    let multi = |priority| acquire(session, gpu, HSA_QUEUE_TYPE_MULTI, priority).expect("a queue");
    let queues: Vec<*mut Queue> = (0..5).map(|_| multi(1)).collect();
    let other = multi(2);
    assert_eq!(session.calls("hsa_queue_create"), 0);
    // GPU_MAX_HW_QUEUES is 2, for each priority.
    assert_eq!(session.live()[3] - before, 3);
    // SAFETY: queues that are not destroyed.
    let ring = |queue: *mut Queue| unsafe { (*queue).base_address };
    let rings: Vec<*mut c_void> = queues.iter().copied().map(ring).collect();
    assert_ne!(rings[0], rings[1]);
    assert!(rings[2..].iter().all(|ring| rings[..2].contains(ring)));
    assert!(!rings.contains(&ring(other)));
    let twin = (1..5).find(|&n| rings[n] == rings[0]).expect("a third one");
    let (first, second) = (queues[0], queues[twin]);
    assert_ne!(first, second);
    // Both have the same indexes, and kernels run.
    session.run_on(first, executable, gpu, LIMIT);
    session.run_on(second, executable, gpu, LIMIT);
    // SAFETY: queues that are not destroyed.
    let written = unsafe { [first, second].map(|q| (hsa.hsa_queue_load_write_index_relaxed)(q)) };
    assert_eq!(written, [4, 4]);
    // SAFETY: as above; one word of a mask.
    unsafe {
        let status = (hsa.hsa_amd_queue_set_priority)(first, 1);
        assert_eq!(status, Status::INVALID_QUEUE);
        let status = (hsa.hsa_amd_queue_cu_set_mask)(first, 32, &1);
        assert_eq!(status, Status::INVALID_QUEUE);
        assert_eq!(destroy(session, first), Status::INVALID_QUEUE);
        ok((hsa.hsa_amd_counted_queue_release)(first));
        let again = (hsa.hsa_amd_counted_queue_release)(first);
        assert_eq!(again, Status::ERROR);
        let plain = session.queue(gpu, HSA_QUEUE_TYPE_MULTI);
        let status = (hsa.hsa_amd_counted_queue_release)(plain);
        assert_eq!(status, Status::ERROR);
        ok(destroy(session, plain));
    }
    session.run_on(second, executable, gpu, LIMIT);
    for (kind, priority) in [(HSA_QUEUE_TYPE_COOPERATIVE, 1), (HSA_QUEUE_TYPE_MULTI, 3)] {
        let refused = acquire(session, gpu, kind, priority);
        assert_eq!(refused, Err(Status::INVALID_ARGUMENT));
    }
    let refused = acquire(session, session.cpu, HSA_QUEUE_TYPE_MULTI, 1);
    assert_eq!(refused, Err(Status::INVALID_AGENT));
    // Queues that are not released are freed at shutdown.
    assert_eq!(session.live()[3] - before, 3);
}

#[test]
fn queues_are_created_from_descriptors_and_counted_queues_are_shared() {
    let mut session = Session::start("queue_create", &[("GPU_MAX_HW_QUEUES", "2")]);
    for _ in 0..2 {
        let gpu = session.gpus[0];
        let executable = session.load(gpu, RAW11);
        descriptors(&session, gpu, executable);
        counted(&session, gpu, executable);
        session.unload(executable);
        session.restart();
    }
}
