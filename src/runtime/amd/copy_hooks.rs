//! The hooks that a trace of copies installs in ROCr's API tables. They report the program's copies and fills of memory.
//! ROCr's own copies, for example those that load code objects, do not go through the tables.

use super::api::loaded_api;
use super::queue_functions::{self, Function};
use super::tables::saved;
use crate::gpu::observers::{self, CopyCall, Owner, StartedCopy, observes_launches};
use crate::gpu::runtime::AgentId;
use crate::support::diagnostics;
use hsa_abi::newer::*;
use hsa_abi::*;
use std::ffi::c_void;
use std::mem::offset_of;
use std::sync::atomic::{AtomicPtr, Ordering};

/// ROCr's `hsa_amd_memory_async_copy_rect`, which older tables do not have.
static COPY_RECT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
/// ROCr's `hsa_amd_memory_async_batch_copy`, a function of ROCm 10.
static BATCH_COPY: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Installs the hooks and enables the times of asynchronous copies.
///
/// # Safety
/// As for [`super::tables::save`], which must have been called before with these tables.
pub unsafe fn install(core: *mut CoreApiPrefix, amd: *mut AmdExtPrefix) {
    // SAFETY: ROCr's tables, and a function of the library that owns them. The slots have functions of the hooks' types.
    unsafe {
        (*core).hsa_memory_copy = memory_copy;
        (*amd).hsa_amd_memory_fill = memory_fill;
        (*amd).hsa_amd_memory_async_copy = async_copy;
        (*amd).hsa_amd_memory_async_copy_on_engine = async_copy_on_engine;
        (*amd).hsa_amd_profiling_async_copy_enable = async_copy_enable;
        let rect = (offset_of!(AmdExtTable, hsa_amd_memory_async_copy_rect)
            - size_of::<TableVersion>())
            / size_of::<Function>();
        let rocr = loaded_api().map_or(std::ptr::null(), |api| api.hsa_agent_get_info as Function);
        let batch = queue_functions::find_slot(amd, rocr, c"hsa_amd_memory_async_batch_copy");
        let copy_rect: function::hsa_amd_memory_async_copy_rect = async_copy_rect;
        let batch_copy: function::hsa_amd_memory_async_batch_copy = async_batch_copy;
        replace(amd, Some(rect), copy_rect as Function, &COPY_RECT);
        replace(amd, batch, batch_copy as Function, &BATCH_COPY);
    }
    let Some(saved) = saved() else {
        return;
    };
    // SAFETY: HSA is initialized.
    let status = unsafe { (saved.amd.hsa_amd_profiling_async_copy_enable)(true) };
    if status != Status::SUCCESS {
        diagnostics::lost(format_args!(
            "the trace may have no times for copies: hsa_amd_profiling_async_copy_enable failed: {status:?}"
        ));
    }
}

/// Replaces the function in a slot of the table, if it has the slot, and saves the function.
///
/// # Safety
/// As [`queue_functions::functions`]; the slot has a function of the hook's type.
unsafe fn replace(
    table: *mut AmdExtPrefix,
    slot: Option<usize>,
    hook: Function,
    saved: &AtomicPtr<c_void>,
) {
    // SAFETY: the caller's promise.
    let functions = unsafe { queue_functions::functions(table) };
    if let Some(function) = slot.and_then(|slot| functions.get_mut(slot))
        && *function != hook
    {
        saved.store(function.cast_mut(), Ordering::Release);
        *function = hook;
    }
}

fn begin(call: &CopyCall) -> Option<StartedCopy> {
    observers::trace().and_then(|trace| trace.copying(call))
}

fn end(call: &CopyCall, started: StartedCopy, status: Status) {
    if let Some(trace) = observers::trace() {
        trace.copy_requested(call, started, status == Status::SUCCESS);
    }
}

/// Reports a copy, which `copy` requests.
#[inline]
fn observe(call: &CopyCall, copy: impl FnOnce() -> Status) -> Status {
    let started = begin(call);
    let status = copy();
    if let Some(started) = started {
        end(call, started, status);
    }
    status
}

fn agent(handle: AgentHandle) -> Owner {
    Owner::Agent(AgentId::Hsa(handle.0))
}

/// The owner of the memory at an address, if copies are recorded now.
fn owner(address: *const c_void) -> Owner {
    if !observes_launches() {
        return Owner::Unknown;
    }
    // SAFETY: plain data, of which zeros are HSA_EXT_POINTER_TYPE_UNKNOWN and null.
    let mut info = unsafe { std::mem::zeroed::<PointerInfo>() };
    info.size = size_of::<PointerInfo>() as u32;
    let Some(saved) = saved() else {
        return Owner::Unknown;
    };
    // SAFETY: `info` contains its size. Without an allocator, no list is written.
    let status = unsafe {
        (saved.amd.hsa_amd_pointer_info)(
            address,
            &raw mut info,
            None,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
    match (status, info.kind, info.owner) {
        // Memory that HSA does not know: its copies treat it as the host's.
        (Status::SUCCESS, HSA_EXT_POINTER_TYPE_UNKNOWN, _) => Owner::Host,
        (Status::SUCCESS, _, owner) if owner.0 != 0 => agent(owner),
        _ => Owner::Unknown,
    }
}

unsafe extern "C" fn memory_copy(to: *mut c_void, from: *const c_void, size: usize) -> Status {
    let Some(saved) = saved() else {
        return Status::ERROR;
    };
    // SAFETY: the program's arguments, passed to the function that it called.
    let copy = || unsafe { (saved.core.hsa_memory_copy)(to, from, size) };
    if size == 0 {
        return copy();
    }
    let call = CopyCall::new("hsa_memory_copy", size as u64, owner(from), owner(to));
    observe(&call, copy)
}

unsafe extern "C" fn memory_fill(base: *mut c_void, value: u32, count: usize) -> Status {
    let Some(saved) = saved() else {
        return Status::ERROR;
    };
    // SAFETY: the program's arguments, passed to the function that it called.
    let fill = || unsafe { (saved.amd.hsa_amd_memory_fill)(base, value, count) };
    if count == 0 {
        return fill();
    }
    let bytes = (count as u64).saturating_mul(size_of_val(&value) as u64);
    let call = CopyCall {
        is_fill: true,
        ..CopyCall::new("hsa_amd_memory_fill", bytes, Owner::Unknown, owner(base))
    };
    observe(&call, fill)
}

/// An asynchronous copy by `function`. `from` and `to`: the addresses, and the agents that the program names for them.
fn linear(
    function: &'static str,
    size: usize,
    from: (*const c_void, AgentHandle),
    to: (*const c_void, AgentHandle),
    completion: SignalHandle,
    engine: u32,
) -> CopyCall {
    // HIP names the GPU that copies for both, also if it reads or writes the memory of another GPU.
    let is_one = from.1 == to.1;
    let owner_of = |(address, named)| match is_one.then(|| owner(address)) {
        Some(Owner::Agent(owner)) => Owner::Agent(owner),
        _ => agent(named),
    };
    CopyCall {
        engine,
        completion: Some(completion.0),
        ..CopyCall::new(function, size as u64, owner_of(from), owner_of(to))
    }
}

/// Defines the hook of a function that copies asynchronously. In parentheses its last arguments; after `on` the engine.
macro_rules! linear_copy {
    ($name:ident = $function:ident($($last:ident: $type:ty),*) on $engine:expr) => {
        unsafe extern "C" fn $name(
            to: *mut c_void,
            to_agent: AgentHandle,
            from: *const c_void,
            from_agent: AgentHandle,
            size: usize,
            count: u32,
            dependencies: *const SignalHandle,
            completion: SignalHandle,
            $($last: $type,)*
        ) -> Status {
            let Some(saved) = saved() else {
                return Status::ERROR;
            };
            let real = saved.amd.$function;
            // SAFETY: the program's arguments, passed to the function that it called.
            let copy = || unsafe {
                real(to, to_agent, from, from_agent, size, count, dependencies, completion, $($last),*)
            };
            // HSA does nothing, and does not decrement the signal.
            if size == 0 {
                return copy();
            }
            let (from, to) = ((from, from_agent), (to.cast_const(), to_agent));
            observe(&linear(stringify!($function), size, from, to, completion, $engine), copy)
        }
    };
}

linear_copy!(async_copy = hsa_amd_memory_async_copy() on 0);
linear_copy!(async_copy_on_engine = hsa_amd_memory_async_copy_on_engine(engine: u32, force: bool) on engine);

unsafe extern "C" fn async_copy_rect(
    to: *const PitchedPointer,
    to_offset: *const Dim3,
    from: *const PitchedPointer,
    from_offset: *const Dim3,
    range: *const Dim3,
    copy_agent: AgentHandle,
    direction: u32,
    count: u32,
    dependencies: *const SignalHandle,
    completion: SignalHandle,
) -> Status {
    let real = COPY_RECT.load(Ordering::Acquire);
    if real.is_null() {
        return Status::ERROR;
    }
    // SAFETY: the function was in the slot of this one. The arguments are the program's.
    let copy = || unsafe {
        std::mem::transmute::<*mut c_void, function::hsa_amd_memory_async_copy_rect>(real)(
            to,
            to_offset,
            from,
            from_offset,
            range,
            copy_agent,
            direction,
            count,
            dependencies,
            completion,
        )
    };
    // SAFETY: the program passes structs of these types, or null, which HSA rejects.
    let (Some(to), Some(from), Some(range)) =
        (unsafe { (to.as_ref(), from.as_ref(), range.as_ref()) })
    else {
        return copy();
    };
    let bytes = [range.y, range.z]
        .iter()
        .fold(u64::from(range.x), |bytes, &n| {
            bytes.saturating_mul(n.into())
        });
    if bytes == 0 {
        return copy();
    }
    // The arguments name only the agent that copies, which can access both.
    let (source, destination) = (owner(from.base), owner(to.base));
    let call = CopyCall {
        completion: Some(completion.0),
        ..CopyCall::new("hsa_amd_memory_async_copy_rect", bytes, source, destination)
    };
    observe(&call, copy)
}

unsafe extern "C" fn async_batch_copy(
    copies: *const MemoryCopyOp,
    copy_count: u32,
    count: u32,
    dependencies: *const SignalHandle,
) -> Status {
    let real = BATCH_COPY.load(Ordering::Acquire);
    if real.is_null() {
        return Status::ERROR;
    }
    let mut all: Vec<(CopyCall, StartedCopy)> = Vec::new();
    if !copies.is_null() {
        for n in 0..copy_count as usize {
            // SAFETY: the program passes `copy_count` descriptors. If the version is not known, neither are the size of a
            // descriptor and the locations of the next ones.
            let Some(call) = (unsafe {
                let copy = copies.add(n);
                if (*copy).version > HSA_AMD_MEMORY_COPY_OP_VERSION {
                    diagnostics::lost(
                        "the trace misses copies of hsa_amd_memory_async_batch_copy: this HSA runtime is newer than devprof",
                    );
                    break;
                }
                batch_call(&*copy)
            }) else {
                continue;
            };
            all.extend(begin(&call).map(|started| (call, started)));
        }
    }
    // SAFETY: the function was in the slot of this one. The arguments are the program's.
    let status = unsafe {
        std::mem::transmute::<*mut c_void, function::hsa_amd_memory_async_batch_copy>(real)(
            copies,
            copy_count,
            count,
            dependencies,
        )
    };
    for (call, started) in all {
        end(&call, started, status);
    }
    status
}

/// One of a batch's copies. All of its entries have one completion signal, and therefore one record.
///
/// # Safety
/// The program has passed the descriptor to `hsa_amd_memory_async_batch_copy`.
unsafe fn batch_call(copy: &MemoryCopyOp) -> Option<CopyCall> {
    let is_broadcast = copy.kind == HSA_AMD_MEMORY_COPY_OP_LINEAR_BROADCAST;
    if copy.kind > HSA_AMD_MEMORY_COPY_OP_LINEAR_INDIRECT_SRCDST
        || is_broadcast && copy.entries == 0
    {
        return None;
    }
    let (mut bytes, mut destination) = (copy.size, agent(AgentHandle(copy.to_agent)));
    if copy.entries > 0 {
        let entries = usize::from(copy.entries);
        let (agents, sizes) = (copy.to_agent as *const AgentHandle, copy.size as *const u64);
        if agents.is_null() || !is_broadcast && sizes.is_null() {
            return None;
        }
        // SAFETY: lists with `entries` elements (hsa_ext_amd.h), except for the size of a broadcast.
        unsafe {
            let agents = std::slice::from_raw_parts(agents, entries);
            let is_one = agents.iter().all(|agent| *agent == agents[0]);
            destination = if is_one {
                agent(agents[0])
            } else {
                Owner::Unknown
            };
            bytes = if is_broadcast {
                copy.size.saturating_mul(entries as u64)
            } else {
                let sizes = std::slice::from_raw_parts(sizes, entries);
                sizes
                    .iter()
                    .fold(0, |all: u64, size| all.saturating_add(*size))
            };
        }
    }
    if copy.kind == HSA_AMD_MEMORY_COPY_OP_LINEAR_SWAP {
        let back = if copy.entries > 0 {
            bytes
        } else {
            copy.to_size
        };
        bytes = bytes.saturating_add(back);
    }
    let source = agent(copy.from_agent);
    (bytes > 0).then(|| CopyCall {
        completion: Some(copy.completion.0),
        ..CopyCall::new(
            "hsa_amd_memory_async_batch_copy",
            bytes,
            source,
            destination,
        )
    })
}

/// Keeps the times of asynchronous copies enabled.
unsafe extern "C" fn async_copy_enable(_enable: bool) -> Status {
    let Some(saved) = saved() else {
        return Status::ERROR;
    };
    // SAFETY: the program's call.
    unsafe { (saved.amd.hsa_amd_profiling_async_copy_enable)(true) }
}
