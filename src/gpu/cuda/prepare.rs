//! Sets up copies of the counters of modules, one for each multiprocessor.
//!
//! All warps of a GPU add to the same few counters, and an address takes about one addition per clock. The device runtime
//! (tools/device-rt/counting.h) adds to the copy of the warp's multiprocessor instead, if the host has set up copies. Reads
//! of counters add them up.
//!
//! A kernel may load the variable with the copies' address once, and parts of it later. Therefore copies are set up before
//! the first kernel of a module can run, and never changed: when a call that loads a module returns, or, because the
//! driver loads the modules of libraries when it needs them, before the first launch in a context.

use super::code::Counting;
use super::copies::{Copies, Place};
use super::driver::{self, Driver, check};
use super::handles::{self, variable};
use super::image::{COUNTERS, UNIFORM};
use super::registry::{Module, registry};
use crate::gpu::counter_copies::{DESCRIPTOR, Layout, VARIABLE};
use crate::gpu::runtime::{Error, ExecutableId, Units};
use crate::support::settings::settings;
use crate::support::sync::lock;
use cuda_abi::driver::*;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use zerocopy::IntoBytes;

/// Other variables may lie between the counters. Copies contain at most this many bytes per byte of counters, and
/// [`SPREAD`] bytes more.
const MAX_SPREAD: u64 = 64;
const SPREAD: u64 = 64 << 10;

/// Whether copies are to be set up.
pub fn are_wanted() -> bool {
    settings().copies_budget > 0
}

/// Sets up copies for a module, before its first kernel. If that is not possible, the kernels add to the counters
/// themselves, which is slower.
pub fn set_up(driver: &Driver, executable: ExecutableId) {
    if !are_wanted() {
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
    let located = handles::locate(driver, module.executable)?;
    let (_current, stream) = handles::enter(driver, module.context)?;
    let Ok((address, size)) = variable(driver, located.module, VARIABLE) else {
        return Ok(None);
    };
    if size as u64 != DESCRIPTOR {
        // The device runtime is of another version.
        return Ok(None);
    }
    let Some((counters, places)) = places(module, &located.addresses) else {
        return Ok(None);
    };
    let device = handles::device_of(driver, module.context)?;
    let units = Units {
        count: driver::attribute(
            driver.cuDeviceGetAttribute,
            device,
            CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
        )?,
        is_limited: true,
    };
    let budget = settings().copies_budget;
    let free = budget.saturating_sub(used(driver, device));
    for layout in Layout::all(counters.end - counters.start, units, free) {
        let mut memory = 0;
        // SAFETY: writes the address.
        let result = unsafe { (driver.cuMemAlloc_v2)(&raw mut memory, layout.size() as usize) };
        if result == CUresult::SUCCESS {
            let copies = Copies {
                memory,
                layout,
                places,
            };
            if let Err(error) = enable(driver, stream, &copies, counters.start, address) {
                // SAFETY: no kernel knows this memory.
                unsafe { (driver.cuMemFree_v2)(memory) };
                return Err(error);
            }
            return Ok(Some(copies));
        }
    }
    Ok(None)
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
    let descriptor = copies.layout.descriptor(copies.memory, counters);
    let bytes = descriptor.as_bytes();
    // SAFETY: a variable of that size; the bytes are kept until the copy is complete.
    let result = unsafe {
        (driver.cuMemcpyHtoDAsync_v2)(address, bytes.as_ptr().cast(), bytes.len(), stream)
    };
    // SAFETY: devprof's stream. It has no work that depends on the program's, so the wait is short.
    let waited = unsafe { (driver.cuStreamSynchronize)(stream) };
    check("cuMemcpyHtoDAsync", result)?;
    check("cuStreamSynchronize", waited)
}

/// The device addresses of all counters, and where each variable is in them. `None` if too much else is between them.
fn places(module: &Module, addresses: &[CUdeviceptr]) -> Option<(Range<CUdeviceptr>, Vec<Place>)> {
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
    let places = variables().map(|(counters, &address)| {
        let uniform = counters.symbol.to_bytes().strip_prefix(UNIFORM);
        let of = match uniform {
            Some(function) => *by_function.get(function)?,
            None => address,
        };
        Some(Place {
            offset: of - start,
            is_uniform: uniform.is_some(),
        })
    });
    let places: Option<Vec<Place>> = places.collect();
    is_dense.then_some((start..end, places?))
}

/// The size of all copies on a device, bytes.
fn used(driver: &Driver, device: CUdevice) -> u64 {
    let modules = registry().modules.clone();
    let on_device = modules.iter().filter(|module| {
        module.copies.is_some()
            && handles::device_of(driver, module.context).is_ok_and(|of| of == device)
    });
    on_device
        .filter_map(|module| module.copies.as_ref())
        .map(|copies| copies.layout.size())
        .sum()
}

/// Sets up copies for all modules in a context, and loads those of the libraries that are known to count. (To load other
/// libraries, which the program may not use, could take much time and memory.) To be called before each launch, until no context has a library that is
/// unprepared. The driver would load the modules of the libraries during the launch.
pub fn before_launch(driver: &Driver, context: CUcontext) {
    // A launch of another thread waits until the copies are set up.
    static PREPARING: Mutex<()> = Mutex::new(());
    let _preparing = lock(&PREPARING);
    let unprepared: Vec<CUlibrary> = {
        let mut registry = registry();
        let libraries = registry.libraries.iter_mut();
        let unprepared = libraries.filter(|library| {
            library.counting == Counting::Yes && !library.prepared.contains(&context)
        });
        let handles = unprepared.map(|library| {
            library.prepared.push(context);
            library.handle
        });
        handles.collect()
    };
    for library in unprepared {
        // The library may have no code for this device.
        let _ = handles::load(driver, context, library);
    }
    let modules: Vec<ExecutableId> = {
        let registry = registry();
        let modules = registry.modules.iter();
        let in_context = modules.filter(|module| module.context == context);
        in_context.map(|module| module.executable).collect()
    };
    for executable in modules {
        set_up(driver, executable);
    }
}

/// Frees the copies of modules that were unloaded.
pub fn free_unused(driver: &Driver) {
    let unused = std::mem::take(&mut registry().unused);
    for (context, copies) in unused {
        if let Ok((_current, _)) = handles::enter(driver, context) {
            // SAFETY: the module that used it was unloaded. The memory of destroyed contexts is not in the list.
            unsafe { (driver.cuMemFree_v2)(copies.memory) };
        }
    }
}
