//! Copies and fills.

use crate::copies::{self, COPY_ENGINES, Executor, Job, Piece};
use crate::device::l2::L2;
use crate::faults::injection;
use crate::results::{Outcome, put};
use crate::signals::pool;
use crate::state::with;
use hsa_abi::newer::{
    HSA_AMD_MEMORY_COPY_OP_LINEAR, HSA_AMD_MEMORY_COPY_OP_LINEAR_BROADCAST,
    HSA_AMD_MEMORY_COPY_OP_VERSION, MemoryCopyOp,
};
use hsa_abi::*;
use std::ffi::c_void;
use std::sync::Arc;

pub unsafe fn hsa_memory_copy(to: *mut c_void, from: *const c_void, size: usize) -> Outcome {
    if to.is_null() || from.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    if size == 0 {
        return with(|_| Ok(()));
    }
    let (to, from) = copies::check(to as usize, from as usize, size)?;
    // SAFETY: the caller's promise, and the runtime has checked the range where it knows the memory.
    unsafe { copies::transfer(to, from, size, injection::copy_fault()) };
    Ok(())
}

pub unsafe fn hsa_amd_memory_fill(base: *mut c_void, value: u32, count: usize) -> Outcome {
    if base.is_null() || !(base as usize).is_multiple_of(4) {
        return Err(Status::INVALID_ARGUMENT);
    }
    let size = count.checked_mul(4).ok_or(Status::INVALID_ARGUMENT)?;
    let end = (base as usize).checked_add(size);
    let bytes = with(|state| {
        let range = base as usize..end.ok_or(Status::INVALID_ARGUMENT)?;
        if state.memory.is_allocated(&range) {
            Ok(state.memory.host_address(base as usize))
        } else {
            Err(Status::INVALID_ALLOCATION)
        }
    })?;
    // SAFETY: inside one allocation.
    unsafe { std::slice::from_raw_parts_mut(bytes as *mut u32, count) }.fill(value);
    Ok(())
}

/// Copies the list of signals that a copy depends on.
///
/// # Safety
/// There are `count` signals.
unsafe fn dependencies(
    count: u32,
    signals: *const SignalHandle,
) -> Result<Vec<SignalHandle>, Status> {
    if (count > 0) == signals.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    if count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the caller's promise.
    let all = unsafe { std::slice::from_raw_parts(signals, count as usize) }.to_vec();
    // SAFETY: a handle of this runtime, or 0.
    let is_unknown = |&signal: &SignalHandle| unsafe { pool::get(signal) }.is_none();
    if all.iter().any(is_unknown) {
        return Err(Status::INVALID_SIGNAL);
    }
    Ok(all)
}

/// The copy engines of each GPU, one bit for each.
const ENGINES: u32 = (1 << COPY_ENGINES) - 1;

/// From this size on, a kernel copies between two locations of a GPU (`HSA_FORCE_SDMA_SIZE` in ROCr's flag.h).
const KERNEL_SIZE: usize = 1 << 20;

/// Starts a copy of `size` bytes between two addresses, each with its agent. `signals` are those on which it depends.
/// `on_engine`: the copy engine that the program selects, and whether it must be used.
///
/// # Safety
/// `signals` are a number and a list of as many.
unsafe fn start(
    (to, to_agent): (*mut c_void, AgentHandle),
    (from, from_agent): (*const c_void, AgentHandle),
    size: usize,
    (count, signals): (u32, *const SignalHandle),
    completion: SignalHandle,
    on_engine: Option<(u32, bool)>,
) -> Outcome {
    if to.is_null() || from.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    // SAFETY: the caller's promise.
    let dependencies = unsafe { dependencies(count, signals) }?;
    let (executor, l2) = path(to_agent, from_agent, || match on_engine {
        Some((engine, _)) if !engine.is_power_of_two() || engine & ENGINES == 0 => {
            Err(Status::INVALID_ARGUMENT)
        }
        // As in ROCr (`GpuAgent::DmaCopyOnEngine`).
        Some((_, force)) => Ok(!force),
        None => Ok(size >= KERNEL_SIZE),
    })?;
    check_completion(completion)?;
    // As in ROCr, nothing is copied, and the signal does not change.
    if size == 0 {
        return Ok(());
    }
    let (to, from) = copies::check(to as usize, from as usize, size)?;
    copies::start(Job {
        pieces: vec![Piece { to, from, size }],
        executor,
        l2,
        fault: injection::copy_fault(),
        dependencies,
        completion,
    })
}

/// The executor of a copy between two agents, and the cache through which it copies. `by_kernel`: whether a kernel copies between two locations of a
/// GPU. As in ROCr (`GpuAgent::GetBlitObject`).
fn path(
    to: AgentHandle,
    from: AgentHandle,
    by_kernel: impl FnOnce() -> Result<bool, Status>,
) -> Result<(Executor, Option<Arc<L2>>), Status> {
    with(|state| {
        let (to, from) = (state.agents.number(to)?, state.agents.number(from)?);
        let by_kernel = by_kernel()?;
        let executor = match (to, from) {
            (0, 0) => Executor::Host,
            _ if !state.settings.copy_engines => Executor::Kernel,
            (to, from) if to == from && by_kernel => Executor::Kernel,
            _ => Executor::Engine,
        };
        Ok((executor, state.agents.cache(&[to, from])))
    })
}

fn check_completion(signal: SignalHandle) -> Outcome {
    // SAFETY: a handle of this runtime, or 0.
    let found = unsafe { pool::get(signal) };
    found.map(|_| ()).ok_or(Status::INVALID_SIGNAL)
}

pub unsafe fn hsa_amd_memory_async_copy(
    to: *mut c_void,
    to_agent: AgentHandle,
    from: *const c_void,
    from_agent: AgentHandle,
    size: usize,
    count: u32,
    signals: *const SignalHandle,
    completion: SignalHandle,
) -> Outcome {
    let (to, from, signals) = ((to, to_agent), (from, from_agent), (count, signals));
    // SAFETY: the caller's promise.
    unsafe { start(to, from, size, signals, completion, None) }
}

/// The engines that can copy between two agents, of which one is a GPU. As in ROCr (`Runtime::CopyMemoryStatus`,
/// `GpuAgent::DmaEngineIsFree`), also if `HSA_ENABLE_SDMA` disables them. They are never busy for long.
pub unsafe fn hsa_amd_memory_copy_engine_status(
    to: AgentHandle,
    from: AgentHandle,
    mask: *mut u32,
) -> Outcome {
    if mask.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    if with(|state| Ok(state.agents.number(to)? == state.agents.number(from)?))? {
        return Err(Status::INVALID_AGENT);
    }
    // SAFETY: the caller's promise.
    unsafe { put(mask, ENGINES) }
}

pub unsafe fn hsa_amd_memory_get_preferred_copy_engine(
    to: AgentHandle,
    from: AgentHandle,
    mask: *mut u32,
) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { hsa_amd_memory_copy_engine_status(to, from, mask) }
}

pub unsafe fn hsa_amd_memory_async_copy_on_engine(
    to: *mut c_void,
    to_agent: AgentHandle,
    from: *const c_void,
    from_agent: AgentHandle,
    size: usize,
    count: u32,
    signals: *const SignalHandle,
    completion: SignalHandle,
    engine: u32,
    force: bool,
) -> Outcome {
    let (to, from, signals) = ((to, to_agent), (from, from_agent), (count, signals));
    // SAFETY: the caller's promise.
    unsafe { start(to, from, size, signals, completion, Some((engine, force))) }
}

pub unsafe fn hsa_amd_memory_async_copy_rect(
    to: *const PitchedPointer,
    to_offset: *const Dim3,
    from: *const PitchedPointer,
    from_offset: *const Dim3,
    range: *const Dim3,
    agent: AgentHandle,
    direction: u32,
    count: u32,
    signals: *const SignalHandle,
    completion: SignalHandle,
) -> Outcome {
    /// `hsaHostToHost`
    const HOST_TO_HOST: u32 = 0;
    // SAFETY: the caller's promise: structs or null.
    let (Some(to), Some(to_offset), Some(from), Some(from_offset), Some(range)) = (unsafe {
        (
            to.as_ref(),
            to_offset.as_ref(),
            from.as_ref(),
            from_offset.as_ref(),
            range.as_ref(),
        )
    }) else {
        return Err(Status::INVALID_ARGUMENT);
    };
    // SAFETY: the caller's promise.
    let dependencies = unsafe { dependencies(count, signals) }?;
    if direction == HOST_TO_HOST {
        return Err(Status::INVALID_ARGUMENT);
    }
    let has_engines = with(|state| {
        state.agents.gpu(agent)?;
        Ok(state.settings.copy_engines)
    })?;
    check_completion(completion)?;
    if range.x == 0 || range.y == 0 || range.z == 0 {
        return Ok(());
    }
    if !has_engines {
        return Err(Status::OUT_OF_RESOURCES);
    }
    let row = |pointer: &PitchedPointer, offset: &Dim3, y: u32, z: u32| {
        (pointer.base as usize)
            .wrapping_add(offset.x as usize)
            .wrapping_add((offset.y + y) as usize * pointer.pitch)
            .wrapping_add((offset.z + z) as usize * pointer.slice)
    };
    let size = range.x as usize;
    let mut pieces = Vec::new();
    for (z, y) in (0..range.z).flat_map(|z| (0..range.y).map(move |y| (z, y))) {
        let (to, from) = (row(to, to_offset, y, z), row(from, from_offset, y, z));
        let (to, from) = copies::check(to, from, size)?;
        pieces.push(Piece { to, from, size });
    }
    copies::start(Job {
        pieces,
        executor: Executor::Engine,
        l2: None,
        fault: injection::copy_fault(),
        dependencies,
        completion,
    })
}

/// Exchanges and indirect copies are not simulated.
pub unsafe fn hsa_amd_memory_async_batch_copy(
    ops: *const MemoryCopyOp,
    op_count: u32,
    count: u32,
    signals: *const SignalHandle,
) -> Outcome {
    if ops.is_null() || op_count == 0 {
        return Err(Status::INVALID_ARGUMENT);
    }
    // SAFETY: the caller's promise.
    let ops = unsafe { std::slice::from_raw_parts(ops, op_count as usize) };
    // SAFETY: the caller's promise.
    let jobs = ops
        .iter()
        .map(|op| unsafe { batch_job(op, count, signals) });
    let jobs: Vec<Job> = jobs.collect::<Result<_, _>>()?;
    jobs.into_iter().try_for_each(copies::start)
}

/// The job of one of a batch's operations.
///
/// # Safety
/// As specified in `hsa_ext_amd.h`.
unsafe fn batch_job(
    op: &MemoryCopyOp,
    count: u32,
    signals: *const SignalHandle,
) -> Result<Job, Status> {
    if op.version != HSA_AMD_MEMORY_COPY_OP_VERSION {
        return Err(Status::INVALID_ARGUMENT);
    }
    let n = usize::from(op.entries);
    // SAFETY: the caller's promise: lists of `n` elements.
    let list = |at: u64| unsafe { std::slice::from_raw_parts(at as *const u64, n) }.to_vec();
    let (to, to_agents, from, sizes) = match (op.kind, n) {
        (HSA_AMD_MEMORY_COPY_OP_LINEAR, 0) => {
            (vec![op.to], vec![op.to_agent], vec![op.from], vec![op.size])
        }
        (HSA_AMD_MEMORY_COPY_OP_LINEAR, _) => {
            (list(op.to), list(op.to_agent), list(op.from), list(op.size))
        }
        (HSA_AMD_MEMORY_COPY_OP_LINEAR_BROADCAST, 1..) => (
            list(op.to),
            list(op.to_agent),
            vec![op.from; n],
            vec![op.size; n],
        ),
        _ => return Err(Status::INVALID_ARGUMENT),
    };
    // SAFETY: the caller's promise.
    let dependencies = unsafe { dependencies(count, signals) }?;
    check_completion(op.completion)?;
    let mut pieces = Vec::new();
    let (mut executor, mut l2) = (Executor::Host, None);
    for (n, &to_agent) in to_agents.iter().enumerate() {
        let size = sizes[n] as usize;
        let to_agent = AgentHandle(to_agent);
        (executor, l2) = path(to_agent, op.from_agent, || Ok(size >= KERNEL_SIZE))?;
        let (to, from) = copies::check(to[n] as usize, from[n] as usize, size)?;
        pieces.push(Piece { to, from, size });
    }
    Ok(Job {
        pieces,
        executor,
        l2,
        fault: injection::copy_fault(),
        dependencies,
        completion: op.completion,
    })
}
