//! The program that `devprof demo` runs: a plain HSA program that does not know about devprof. It loads the fixture
//! code objects on every GPU, runs their kernels with 64 work-items each, and exits.

use crate::exit::Outcome;
use anyhow::{Context, bail};
use hsa_abi::*;
use libloading::os::unix::{Library, RTLD_NOW};
use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU16, Ordering};

/// The code objects that the program loads, with the raw version of their profiles: from clang 22 and from clang 23.
pub const FIXTURES: [(u64, &[u8]); 2] = [
    (10, include_bytes!("../../../../fixtures/counted.raw10.co")),
    (11, include_bytes!("../../../../fixtures/counted.raw11.co")),
];

/// The environment variable that names the HSA runtime to load.
pub const LIBRARY: &str = "DEVPROF_DEMO_HSA";

/// Work-items per dispatch, in one workgroup.
const ITEMS: u64 = 64;
/// Size of a queue in packets.
const QUEUE: u32 = 64;

macro_rules! functions {
    ($($name:ident),* $(,)?) => {
        /// The functions of HSA that the program calls.
        struct Hsa {
            $($name: function::$name,)*
        }

        impl Hsa {
            fn load(path: &std::ffi::OsStr) -> Result<Hsa, libloading::Error> {
                // SAFETY: the library is an HSA runtime; its exports have the signatures of HSA's headers.
                unsafe {
                    let library = Library::open(Some(path), RTLD_NOW)?;
                    let hsa = Hsa {
                        $($name: *library.get(concat!(stringify!($name), "\0").as_bytes())?,)*
                    };
                    // Its functions are used until the process exits.
                    std::mem::forget(library);
                    Ok(hsa)
                }
            }
        }
    };
}

functions! {
    hsa_init,
    hsa_iterate_agents,
    hsa_amd_agent_iterate_memory_pools,
    hsa_amd_memory_pool_get_info,
    hsa_amd_memory_pool_allocate,
    hsa_amd_agents_allow_access,
    hsa_code_object_reader_create_from_memory,
    hsa_executable_create_alt,
    hsa_executable_load_agent_code_object,
    hsa_executable_freeze,
    hsa_executable_get_symbol_by_name,
    hsa_executable_symbol_get_info,
    hsa_queue_create,
    hsa_queue_add_write_index_relaxed,
    hsa_signal_create,
    hsa_signal_store_screlease,
    hsa_signal_wait_scacquire,
}

fn ok(function: &str, status: Status) -> anyhow::Result<()> {
    match status {
        Status::SUCCESS => Ok(()),
        _ => bail!("{function} failed with {status:?}"),
    }
}

/// Calls a function of HSA, which must succeed. Unsafe.
macro_rules! call {
    ($hsa:ident.$function:ident($($argument:expr),* $(,)?)) => {
        ok(stringify!($function), ($hsa.$function)($($argument),*))?
    };
}

unsafe extern "C" fn push<H>(handle: H, data: *mut c_void) -> Status {
    // SAFETY: all callers in this file pass a `Vec<H>`.
    unsafe { (*data.cast::<Vec<H>>()).push(handle) };
    Status::SUCCESS
}

pub fn run() -> anyhow::Result<Outcome> {
    let path = std::env::var_os(LIBRARY)
        .with_context(|| format!("{LIBRARY} is not set: `devprof demo` sets it"))?;
    let hsa = Hsa::load(&path).with_context(|| format!("cannot load {}", path.display()))?;
    // SAFETY: here and below, as in HSA's specification: handles are from HSA, and attributes have the right types.
    unsafe { call!(hsa.hsa_init()) };
    let mut agents = Vec::<AgentHandle>::new();
    // SAFETY: `push` gets the vector.
    unsafe { call!(hsa.hsa_iterate_agents(push, (&raw mut agents).cast())) };
    let Some((&cpu, gpus)) = agents.split_first() else {
        bail!("HSA has no agent");
    };
    let arguments = argument_pool(&hsa, cpu)?;
    for &gpu in gpus {
        for (_, file) in FIXTURES {
            run_kernels(&hsa, gpu, arguments, file)?;
        }
    }
    Ok(Outcome::Complete)
}

/// The memory pool for kernel arguments.
fn argument_pool(hsa: &Hsa, cpu: AgentHandle) -> anyhow::Result<PoolHandle> {
    let mut pools = Vec::<PoolHandle>::new();
    // SAFETY: `push` gets the vector.
    unsafe { call!(hsa.hsa_amd_agent_iterate_memory_pools(cpu, push, (&raw mut pools).cast())) };
    for pool in pools {
        let mut flags = 0u32;
        let (attribute, value) = (
            HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS,
            (&raw mut flags).cast(),
        );
        // SAFETY: the attribute is a u32.
        unsafe { call!(hsa.hsa_amd_memory_pool_get_info(pool, attribute, value)) };
        if flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT != 0 {
            return Ok(pool);
        }
    }
    bail!("the CPU agent has no memory pool for kernel arguments")
}

/// Loads a code object on a GPU and runs its kernels one by one. The code object stays loaded.
fn run_kernels(
    hsa: &Hsa,
    gpu: AgentHandle,
    arguments: PoolHandle,
    file: &'static [u8],
) -> anyhow::Result<()> {
    let (mut reader, mut executable) = Default::default();
    let mut queue = null_mut();
    let mut memory = null_mut::<c_void>();
    // SAFETY: the arguments are as HSA's specification requires; the file is static.
    unsafe {
        let start = file.as_ptr().cast();
        call!(hsa.hsa_code_object_reader_create_from_memory(start, file.len(), &mut reader));
        call!(hsa.hsa_executable_create_alt(0, 0, null(), &mut executable));
        let nothing = null_mut();
        call!(hsa.hsa_executable_load_agent_code_object(executable, gpu, reader, null(), nothing));
        call!(hsa.hsa_executable_freeze(executable, null()));
        let (kind, none, any) = (HSA_QUEUE_TYPE_MULTI, null_mut(), u32::MAX);
        call!(hsa.hsa_queue_create(gpu, QUEUE, kind, None, none, any, any, &mut queue));
        call!(hsa.hsa_amd_memory_pool_allocate(arguments, 8192, 0, &mut memory));
        call!(hsa.hsa_amd_agents_allow_access(1, &gpu, null(), memory));
        // The kernels' only argument is the address to write to: memory after the argument itself.
        *memory.cast::<u64>() = memory as u64 + 4096;
    }
    for kernel in [c"branch.kd", c"loop.kd"] {
        let mut symbol = SymbolHandle::default();
        let name = kernel.as_ptr();
        // SAFETY: the name is a C string, the agent is HSA's.
        unsafe {
            call!(hsa.hsa_executable_get_symbol_by_name(executable, name, &gpu, &mut symbol))
        };
        dispatch(hsa, queue, symbol, memory as u64)?;
    }
    Ok(())
}

/// Runs a kernel and waits until it is complete.
fn dispatch(
    hsa: &Hsa,
    queue: *mut Queue,
    kernel: SymbolHandle,
    arguments: u64,
) -> anyhow::Result<()> {
    let (mut object, mut private, mut signal) = (0u64, 0u32, SignalHandle::default());
    // SAFETY: the attributes are a u64 and a u32. The packet's slot belongs to this thread, and the packet becomes
    // valid with the store of its header, which is last.
    unsafe {
        for (attribute, value) in [
            (
                HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT,
                (&raw mut object).cast(),
            ),
            (
                HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE,
                (&raw mut private).cast(),
            ),
        ] {
            call!(hsa.hsa_executable_symbol_get_info(kernel, attribute, value));
        }
        call!(hsa.hsa_signal_create(1, 0, null(), &mut signal));
        let index = (hsa.hsa_queue_add_write_index_relaxed)(queue, 1);
        let slot = (*queue)
            .base_address
            .cast::<[u64; 8]>()
            .add((index % u64::from(QUEUE)) as usize);
        // hsa_kernel_dispatch_packet_t: header and dimensions, workgroup, grid, segments, kernel, arguments, signal.
        let words = &mut *slot;
        words[1..].copy_from_slice(&[
            1 | ITEMS << 32,
            1 | 1 << 32,
            u64::from(private),
            object,
            arguments,
            0,
            signal.0,
        ]);
        words[0] = u64::from(HSA_PACKET_TYPE_INVALID) | 1 << 16 | ITEMS << 32 | 1 << 48;
        let header = &*slot.cast::<AtomicU16>();
        header.store(
            u16::from(HSA_PACKET_TYPE_KERNEL_DISPATCH),
            Ordering::Release,
        );
        (hsa.hsa_signal_store_screlease)((*queue).doorbell_signal, index as SignalValue);
        while (hsa.hsa_signal_wait_scacquire)(
            signal,
            HSA_SIGNAL_CONDITION_LT,
            1,
            u64::MAX,
            HSA_WAIT_STATE_BLOCKED,
        ) >= 1
        {}
    }
    Ok(())
}
