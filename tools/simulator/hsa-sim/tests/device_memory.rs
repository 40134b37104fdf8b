//! The host's access to GPUs' memory, with and without a large BAR. GPUs and copies always have access.

mod common;

use common::{RAW11, Session, attribute, ok};
use hsa_abi::*;
use std::ffi::c_void;

/// Whether the program can read a byte. Does not raise a signal.
fn readable(address: *const c_void) -> bool {
    let mut pipe = [0; 2];
    // SAFETY: a new pipe; the kernel checks the address.
    unsafe {
        assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
        let written = libc::write(pipe[1], address, 1);
        for end in pipe {
            libc::close(end);
        }
        written == 1
    }
}

/// The base addresses of an allocation for the host and for agents, from `hsa_amd_pointer_info`.
fn bases(session: &Session, address: *const c_void) -> (usize, usize) {
    // SAFETY: a C struct of numbers and pointers, and one bool; the call writes no more than its size.
    unsafe {
        let mut info: PointerInfo = std::mem::zeroed();
        info.size = size_of::<PointerInfo>() as u32;
        let no_count = std::ptr::null_mut();
        let (get, no_agents) = (session.hsa.hsa_amd_pointer_info, std::ptr::null_mut());
        ok(get(address, &mut info, None, no_count, no_agents));
        (info.host_base as usize, info.agent_base as usize)
    }
}

/// The access of an agent to a pool, and the number of links between them.
fn access(session: &Session, agent: AgentHandle, pool: PoolHandle) -> [u32; 2] {
    [
        HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS,
        HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS,
    ]
    .map(|name| {
        let get = session.hsa.hsa_amd_agent_memory_pool_get_info;
        // SAFETY: both attributes are 32-bit values.
        attribute(|value| unsafe { get(agent, pool, name, value) })
    })
}

fn host_accessible(session: &Session, region: PoolHandle) -> bool {
    let (get, name) = (
        session.hsa.hsa_region_get_info,
        HSA_AMD_REGION_INFO_HOST_ACCESSIBLE,
    );
    // SAFETY: the attribute is a bool.
    attribute(|value| unsafe { get(RegionHandle(region.0), name, value) })
}

/// The host's address for a device address, from the loader extension.
fn host_address(session: &Session, device: u64) -> *const c_void {
    type Query = unsafe extern "C" fn(u64, *mut *const c_void) -> Status;
    let (get, size) = (
        session.hsa.hsa_system_get_major_extension_table,
        size_of::<Query>(),
    );
    // SAFETY: the first entry of the extension's table has this type.
    let query: Option<Query> =
        attribute(|table| unsafe { get(HSA_EXTENSION_AMD_LOADER, 1, size, table) });
    let mut host = std::ptr::null();
    // SAFETY: a function of the simulator, which checks the address.
    ok(unsafe { query.expect("a function")(device, &mut host) });
    host
}

const COARSE: u32 = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED;
const FINE: u32 = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED;
const EXTENDED: u32 = HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_EXTENDED_SCOPE_FINE_GRAINED;

/// More than a page, but not a multiple of one.
const SIZE: usize = 10_000;

/// Fills memory and copies it from the host to one GPU, to another GPU, and back.
fn copy_around(session: &Session, memory: *mut c_void, other: *mut c_void, host: *mut c_void) {
    let hsa = &session.hsa;
    // SAFETY: all three have SIZE bytes, and `host` is memory of the host.
    unsafe {
        let bytes = std::slice::from_raw_parts_mut(host.cast::<u8>(), SIZE);
        for (n, byte) in bytes.iter_mut().enumerate() {
            *byte = (n * 7) as u8;
        }
        ok((hsa.hsa_memory_copy)(memory, host, SIZE));
        ok((hsa.hsa_amd_memory_fill)(memory.add(4096), 0x0403_0201, 2));
        let mut done = SignalHandle::default();
        ok((hsa.hsa_signal_create)(1, 0, std::ptr::null(), &mut done));
        let [first, second] = [0, 1].map(|n| session.gpus[n]);
        let (copy, no_signals) = (hsa.hsa_amd_memory_async_copy, std::ptr::null());
        ok(copy(
            other, second, memory, first, SIZE, 0, no_signals, done,
        ));
        let left = (hsa.hsa_signal_wait_scacquire)(done, HSA_SIGNAL_CONDITION_LT, 1, u64::MAX, 0);
        assert_eq!(left, 0);
        ok((hsa.hsa_signal_destroy)(done));
        let mut back = [0u8; SIZE - 1];
        session.read_into(other as u64 + 1, &mut back);
        bytes[4096..4104].copy_from_slice(&[1, 2, 3, 4, 1, 2, 3, 4]);
        assert_eq!(back, bytes[1..]);
    }
}

/// Allocates memory and loads code objects on both GPUs, and uses them. `large`: the host can read GPUs' memory.
fn check(session: &Session, large: bool) {
    let hsa = &session.hsa;
    let (gpu, peer) = (session.gpus[0], session.gpus[1]);
    let of_host = session.pool(session.cpu, FINE);
    let host = session.allocate(of_host, SIZE);
    assert!(readable(host) && host_accessible(session, of_host));
    assert_eq!(access(session, session.cpu, of_host), [1, 0]);
    assert_eq!(access(session, gpu, of_host), [2, 1]);
    for flags in [COARSE, EXTENDED] {
        let pool = session.pool(gpu, flags);
        let cpu_access = if large { [2, 1] } else { [0, 0] };
        assert_eq!(access(session, session.cpu, pool), cpu_access);
        assert_eq!(access(session, gpu, pool), [1, 0]);
        assert_eq!(access(session, peer, pool), [2, 1]);
        assert_eq!(host_accessible(session, pool), large);
        let memory = session.allocate(pool, SIZE);
        let inside = memory.wrapping_byte_add(SIZE - 1);
        assert_eq!(readable(inside), large);
        // The host's base address is reported in both cases.
        assert_eq!(bases(session, inside), (memory as usize, memory as usize));
        let agents = [session.cpu, gpu];
        // SAFETY: two handles, and memory of a pool.
        ok(unsafe {
            (hsa.hsa_amd_agents_allow_access)(2, agents.as_ptr(), std::ptr::null(), memory)
        });
        assert_eq!(
            readable(inside),
            large,
            "allow_access for the CPU has no effect"
        );
        let other = session.allocate(session.pool(peer, flags), SIZE);
        copy_around(session, memory, other, host);
        session.free(memory);
        session.free(other);
    }
    session.free(host);

    let executable = session.load(gpu, RAW11);
    let counters = session.variable(executable, gpu, "__profc_branch");
    assert_eq!(readable(counters as *const c_void), large);
    // Kernels run from there, and write their counters there.
    session.run(executable, gpu);
    let mut counts = [0u64; 2];
    session.read_into(counters, &mut counts);
    assert_eq!(counts, [64, 16]);
    // The host's address belongs to a copy of the image at load time.
    let object = HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT;
    let object: u64 = session.symbol(executable, gpu, "branch.kd", object);
    let mut descriptor = [0u8; 64];
    session.read_into(object, &mut descriptor);
    // SAFETY: 64 bytes of a descriptor and 16 bytes of counters, in the host's image.
    unsafe {
        let image = host_address(session, object);
        assert!(readable(image));
        assert_eq!(*image.cast::<[u8; 64]>(), descriptor);
        assert_eq!(*host_address(session, counters).cast::<[u64; 2]>(), [0, 0]);
    }
    session.unload(executable);
}

#[test]
fn the_host_can_access_gpu_memory_only_with_a_large_bar() {
    let mut session = Session::start(
        "device_memory",
        &[
            ("HSA_SIM_AGENTS", "gfx1100*2"),
            ("HSA_SIM_WATCH", "off"),
            // Kernels write to the counters themselves.
            ("DEVPROF_COUNTER_COPIES_MB", "0"),
        ],
    );
    check(&session, false);
    session.restart_with("HSA_SIM_BAR", "large");
    check(&session, true);
}
