//! Sets up copies of the counters of modules, one for each multiprocessor.
//!
//! All warps of a GPU add to the same few counters, and an address takes about one addition per clock. The device runtime
//! (src/device/device-rt/counting.h) adds to the copy of the warp's multiprocessor instead, if the host has set up copies. Reads
//! of counters add them up.
//!
//! A kernel may load the variable with the copies' address once, and parts of it later. Therefore copies are set up before
//! the first kernel of a module can run, and never changed: when a call that loads a module returns. The driver loads the
//! modules of libraries when it needs them, usually during a launch, which is not observed. So devprof itself requests the
//! modules of the libraries that count: when the library is loaded, in all contexts that are idle and in the current one,
//! and when a context is created. A module that the driver loads at any other time has no copies, because its kernels may
//! run already.

use super::copies::{Copies, CounterOffset};
use super::driver::{self, Driver, check};
use super::handles::{self, variable};
use super::image::{COUNTERS, UNIFORM, is_bitmap};
use super::registry::{self, Module, Registry, Unprepared, registry};
use super::transfer;
use super::wait;
use crate::gpu::copy_layout::{DESCRIPTOR, Layout, VARIABLE, budget};
use crate::gpu::runtime::{Error, ExecutableId, Memory, Units};
use crate::support::settings::settings;
use crate::support::sync::lock;
use crate::sys::threads;
use cuda_abi::driver::*;
use profraw::format::COUNTER;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use zerocopy::IntoBytes;

/// Other variables may lie between the counters. Copies contain at most this many bytes per byte of counters, and
/// [`SPREAD`] bytes more.
const MAX_SPREAD: u64 = 64;
const SPREAD: u64 = 64 << 10;

/// How long to wait until copies are clear, and, once, for the kernels of another context: 1 % of DEVPROF_SYNC_MS, at least
/// 100 ms. Then there are no copies.
fn short_limit() -> Duration {
    (settings().sync_limit / 100).max(Duration::from_millis(100))
}

/// Sets up copies for a module, before its first kernel. If that is not possible, the kernels add to the counters
/// themselves, which is slower.
pub fn set_up(driver: &Driver, executable: ExecutableId) {
    if settings().copies_budget == 0 {
        return;
    }
    let module = {
        let mut registry = registry();
        let module = registry.module_mut(executable);
        let Some(module) = module.filter(|module| !module.is_prepared) else {
            return;
        };
        module.is_prepared = true;
        module.clone()
    };
    if let Ok(Some(copies)) = allocate(driver, &module)
        && let Some(module) = registry().module_mut(executable)
    {
        module.copies = Some(Arc::new(copies));
    }
}

fn allocate(driver: &Driver, module: &Module) -> Result<Option<Copies>, Error> {
    if module.image.counter != COUNTER {
        // Its code writes a byte once, and does not count.
        return Ok(None);
    }
    let located = handles::locate(driver, module.executable)?;
    let (_current, stream) = transfer::enter(driver, module.context)?;
    let Ok((address, size)) = variable(driver, located.module, VARIABLE) else {
        return Ok(None);
    };
    if size as u64 != DESCRIPTOR {
        // The device runtime is of another version.
        return Ok(None);
    }
    let Some((counters, offsets)) = offsets(module, &located.addresses) else {
        return Ok(None);
    };
    if is_occupied(driver, module.context) {
        return Ok(None);
    }
    let device = handles::device_of(driver, module.context)?;
    let units = Units {
        count: driver::attribute(
            driver.cuDeviceGetAttribute,
            device,
            CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
        )?,
        is_limited: true,
    };
    let (limit, used) = (settings().copies_budget, used(device));
    let budget = budget::for_code_object(limit, used, memory(driver));
    for layout in Layout::all(counters.end - counters.start, units, budget) {
        let mut memory = 0;
        // SAFETY: writes the address.
        let result = unsafe { (driver.cuMemAlloc_v2)(&raw mut memory, layout.size() as usize) };
        if result == CUresult::SUCCESS {
            let copies = Copies {
                memory,
                layout,
                offsets,
            };
            if let Err(error) = enable(driver, stream, &copies, counters.start, address) {
                if let Error::TimedOut(_) = error {
                    abandon(module.context, stream);
                }
                // No kernel knows this memory.
                free_memory(driver, stream, memory);
                return Err(error);
            }
            return Ok(Some(copies));
        }
    }
    Ok(None)
}

/// The memory of the current context's device.
fn memory(driver: &Driver) -> Memory {
    let (mut free, mut size) = (0, 0);
    // SAFETY: writes both numbers.
    let result = unsafe { (driver.cuMemGetInfo_v2)(&raw mut free, &raw mut size) };
    let known = |bytes: usize| (result == CUresult::SUCCESS).then_some(bytes as u64);
    Memory {
        size: known(size),
        free: known(free),
    }
}

/// Clears the copies and writes the module's variable at `address`.
fn enable(
    driver: &Driver,
    stream: CUstream,
    copies: &Copies,
    counters: CUdeviceptr,
    address: CUdeviceptr,
) -> Result<(), Error> {
    copies.clear(driver, stream)?;
    // A large fill is a kernel. If other kernels occupy all multiprocessors, it waits for them, and they may wait for what
    // the program does next.
    if !transfer::wait_for(driver, stream, short_limit())? {
        return Err(Error::TimedOut("cuMemsetD8Async"));
    }
    let descriptor = Box::new(copies.layout.descriptor(copies.memory, counters));
    let bytes = descriptor.as_bytes();
    // SAFETY: a variable of that size; the bytes are kept until the copy is complete.
    let result = unsafe {
        (driver.cuMemcpyHtoDAsync_v2)(address, bytes.as_ptr().cast(), bytes.len(), stream)
    };
    check("cuMemcpyHtoDAsync", result)?;
    // Copies do not wait for kernels.
    if !transfer::wait_for(driver, stream, settings().sync_limit)? {
        // It may still be executed, so the copies must stay.
        std::mem::forget(descriptor);
    }
    Ok(())
}

/// Streams with a fill that was not complete at the limit, each with its context.
static ABANDONED: Mutex<Vec<(CUcontext, CUstream)>> = Mutex::new(Vec::new());

/// The next use of a context gets a new stream: nothing else has to wait for the work that this one waits for.
fn abandon(context: CUcontext, stream: CUstream) {
    lock(&ABANDONED).push((context, stream));
    registry().context_mut(context).stream = None;
}

/// Whether a fill in a context that was too late still waits. The context is the current one.
fn is_occupied(driver: &Driver, context: CUcontext) -> bool {
    let mut abandoned = lock(&ABANDONED);
    // SAFETY: devprof's streams, which are never destroyed, of the current context.
    let is_busy = |stream| unsafe { (driver.cuStreamQuery)(stream) } == CUresult::NOT_READY;
    abandoned.retain(|&(of, stream)| of != context || is_busy(stream));
    abandoned.iter().any(|(of, _)| *of == context)
}

/// Frees memory after the work of devprof's stream. `cuMemFree` would wait for all kernels of the context, perhaps for ever;
/// it serves where there are no memory pools.
fn free_memory(driver: &Driver, stream: CUstream, memory: CUdeviceptr) {
    // SAFETY: memory of `cuMemAlloc`, which no kernel uses any more, and nothing on an idle stream.
    unsafe {
        if (driver.cuMemFreeAsync)(memory, stream) != CUresult::SUCCESS
            && (driver.cuStreamQuery)(stream) == CUresult::SUCCESS
        {
            (driver.cuMemFree_v2)(memory);
        }
    }
}

/// The device addresses of all counters, and where each variable with counters is in them. `None` if too much else is between
/// them.
fn offsets(
    module: &Module,
    addresses: &[CUdeviceptr],
) -> Option<(Range<CUdeviceptr>, Vec<CounterOffset>)> {
    let image = &module.image;
    let variables = || image.counters.iter().zip(addresses);
    let mut by_function = HashMap::new();
    let (mut start, mut end, mut total) = (u64::MAX, 0, 0);
    for (counters, &address) in variables() {
        if let Some(function) = counters.symbol.to_bytes().strip_prefix(COUNTERS) {
            let size = counters.range.end - counters.range.start;
            start = start.min(address);
            end = end.max(address.checked_add(size)?);
            total += size;
            by_function.insert(function, address);
        }
    }
    let is_dense = start < end && end - start <= MAX_SPREAD * total + SPREAD;
    // The bitmaps follow the counters.
    let counters = variables().take_while(|(counters, _)| !is_bitmap(counters));
    let offsets = counters.map(|(counters, &address)| {
        let uniform = counters.symbol.to_bytes().strip_prefix(UNIFORM);
        let of = match uniform {
            Some(function) => *by_function.get(function)?,
            None => address,
        };
        Some(CounterOffset {
            offset: of - start,
            is_uniform: uniform.is_some(),
        })
    });
    let offsets: Option<Vec<CounterOffset>> = offsets.collect();
    is_dense.then_some((start..end, offsets?))
}

/// The size of all copies on a device, bytes. The devices of contexts with copies are known.
fn used(device: CUdevice) -> u64 {
    let registry = registry();
    let is_on_device = |context| {
        let context = registry.context(context);
        context.and_then(|context| context.device) == Some(device)
    };
    let modules = registry.modules.iter();
    modules
        .filter_map(|module| Some((module.context, module.copies.as_ref()?)))
        .filter(|&(context, _)| is_on_device(context))
        .map(|(_, copies)| copies.layout.size())
        .sum()
}

/// Prepares libraries: loads their modules with `load`, which returns them, and sets up copies. To be called when a call of
/// this thread is over that has loaded a library or created a context, before it returns to the program.
pub fn libraries(load: impl Fn(&'static Driver, CUcontext, CUlibrary) -> Vec<ExecutableId>) {
    let Some(Ok(driver)) = driver::find().filter(|_| !registry().unprepared.is_empty()) else {
        return;
    };
    while let Some(Claimed(pair)) = &claim() {
        if !can_load(driver, pair) {
            continue;
        }
        for executable in load(driver, pair.context, pair.library) {
            set_up(driver, executable);
            if let Some(module) = registry().module_mut(executable) {
                module.is_loading = false;
            }
        }
    }
}

/// A library that this thread loads in a context. It stays in the registry's list until it is prepared.
struct Claimed(Unprepared);

impl Drop for Claimed {
    fn drop(&mut self) {
        registry().unprepared.retain(|pair| *pair != self.0);
        registry::notify();
    }
}

fn claim() -> Option<Claimed> {
    let thread = threads::thread_id();
    let mut registry = registry();
    let mut pairs = registry.unprepared.iter_mut();
    let pair = pairs.find(|pair| pair.thread == thread)?;
    pair.is_claimed = true;
    Some(Claimed(*pair))
}

/// Waits until other threads have prepared the libraries that are concerned.
fn wait_for(is_concerned: impl Fn(&Unprepared) -> bool) {
    registry::wait_while(|registry| registry.unprepared.iter().any(&is_concerned));
}

/// The program gets a context from a call that is over. If the call of another thread has created it, that one may still
/// prepare libraries there.
pub fn context_returned(handle: CUcontext) {
    wait_for(|pair| pair.context == handle && pair.is_new_context);
}

/// Whether devprof may load a library. The driver would wait for the kernels of the context, which perhaps wait for what the
/// program does next. In the current context, the program has to wait for them, too, when it uses the library.
fn can_load(driver: &'static Driver, pair: &Unprepared) -> bool {
    if pair.is_new_context || pair.context == driver::current_context() {
        return true;
    }
    let is_busy = |registry: &Registry| {
        let context = registry.context(pair.context);
        context.is_none_or(|context| context.is_busy)
    };
    if is_busy(&registry()) {
        return false;
    }
    let is_idle = wait::is_idle(driver, pair.context, short_limit());
    registry().context_mut(pair.context).is_busy = !is_idle;
    is_idle
}

/// The program destroys a context: no library is prepared in it any more.
pub fn close_context(handle: CUcontext) {
    let mut registry = registry();
    let mut contexts = registry.contexts.iter_mut();
    if let Some(context) = contexts.find(|context| context.handle == handle) {
        context.is_closing = true;
    }
    cancel(registry, |pair| pair.context == handle);
}

/// The program unloads a library: it is not prepared any more, and no other thread uses its handle.
pub fn close_library(handle: CUlibrary) {
    let mut registry = registry();
    let mut libraries = registry.libraries.iter_mut();
    if let Some(library) = libraries.find(|library| library.handle == handle) {
        library.closed_by = Some(threads::thread_id());
    }
    cancel(registry, |pair| pair.library == handle);
    registry::wait_while(|registry| registry.searching > 0);
}

/// Prepares no more of these libraries, and waits for the threads that prepare one.
fn cancel(mut registry: MutexGuard<Registry>, is_concerned: impl Fn(&Unprepared) -> bool) {
    let is_kept = |pair: &Unprepared| pair.is_claimed || !is_concerned(pair);
    registry.unprepared.retain(is_kept);
    drop(registry);
    wait_for(is_concerned);
}

/// Frees the copies of modules that were unloaded.
pub fn free_unused(driver: &Driver) {
    let unused = std::mem::take(&mut registry().unused);
    for (context, copies) in unused {
        // The modules that used it were unloaded. The memory of destroyed contexts is not in the list.
        if let Ok((_current, stream)) = transfer::enter(driver, context) {
            free_memory(driver, stream, copies.memory);
        }
    }
}
