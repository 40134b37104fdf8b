//! Finds the module handle of each image, and the device addresses of its counters.
//!
//! CUPTI reports an image and its context, but no handle. A module that was loaded by `cuModuleLoad…` is reported during
//! that call, and modules of libraries that count while devprof requests them ([`super::prepare`]). The other modules belong to
//! libraries of which devprof cannot see whether they count: it finds those that have the image's kernels, and compares
//! their variables with the image. It never loads a library that the program has not loaded.

use super::code::Counting;
use super::driver::{self, Current, Driver, check};
use super::image::Image;
use super::registry::{self, Located, Module, Search, registry, take_loaded};
use super::transfer::{self, Part, enter};
use crate::gpu::runtime::{Error, ExecutableId};
use crate::support::settings::settings;
use cuda_abi::driver::*;
use profraw::format::V11;
use std::ffi::CStr;
use std::sync::Arc;

/// Finds the modules of libraries whose handles are not known. A module whose handle cannot be found is reported when it is
/// read. (A module with a handle is left alone: another thread may unload it.)
pub fn locate_all() {
    let Some(Ok(driver)) = driver::find() else {
        return;
    };
    let missing: Vec<ExecutableId> = {
        let registry = registry();
        let is_closing = |handle| {
            let context = registry.context(handle);
            context.is_none_or(|context| context.is_closing)
        };
        let missing = registry.readable().filter(|module| {
            module.located.is_none() && module.handle.is_none() && !is_closing(module.context)
        });
        missing.map(|module| module.executable).collect()
    };
    for executable in missing {
        // Reading the module tries again, and reports the error.
        let _ = locate(driver, executable);
    }
}

/// The handle of a module, and the addresses of its counters.
pub fn locate(driver: &Driver, executable: ExecutableId) -> Result<Located, Error> {
    let module = registry().module(executable).cloned();
    let module = module.ok_or(Error::Unloaded)?;
    if let Some(located) = module.located {
        return Ok(located);
    }
    let (_current, _) = enter(driver, module.context)?;
    let located = match module.handle {
        Some(handle) => Located {
            module: handle,
            library: module.library,
            addresses: addresses(driver, handle, &module)?,
        },
        None => find_library(driver, &module)?,
    };
    let mut registry = registry();
    let known = registry.module_mut(executable).ok_or(Error::Unloaded)?;
    known.located = Some(located.clone());
    Ok(located)
}

/// Loads a library's module in a context, as a launch does. The program must not be able to launch its kernels there yet.
/// Returns the instrumented modules, which the call in progress may have loaded itself.
pub fn load(driver: &Driver, context: CUcontext, library: CUlibrary) -> Vec<ExecutableId> {
    // The context may be unusable after an error of a kernel, and the library may have no code for this device.
    let Ok((_current, _)) = enter(driver, context) else {
        return Vec::new();
    };
    take_loaded();
    registry::set_loading(true);
    let handle = module_of(driver, library);
    registry::set_loading(false);
    let mut loaded = take_loaded();
    let Ok(handle) = handle else {
        return loaded;
    };
    if loaded.is_empty() {
        let is_same = |module: &Module| has_same_records(driver, handle, &module.image);
        let found = unlocated(context)
            .into_iter()
            .find(|module| !module.is_prepared && is_same(module));
        loaded.extend(found.map(|module| module.executable));
    }
    for &executable in &loaded {
        let module = registry().module(executable).cloned();
        let addresses = module.and_then(|module| addresses(driver, handle, &module).ok());
        // If it has no addresses, reading it tries again, and reports the error.
        if let Some(module) = registry().module_mut(executable) {
            module.handle = Some(handle);
            module.library = Some(library);
            module.may_be_unused = true;
            module.located = addresses.map(|addresses| Located {
                module: handle,
                library: Some(library),
                addresses,
            });
        }
    }
    loaded
}

/// The module of a library in the current context. Loads it if necessary.
pub fn module_of(driver: &Driver, library: CUlibrary) -> Result<CUmodule, Error> {
    let mut handle = CUmodule::NULL;
    // SAFETY: a handle of a library that is loaded; writes the module.
    let result = unsafe { (driver.cuLibraryGetModule)(&raw mut handle, library) };
    check("cuLibraryGetModule", result).map(|()| handle)
}

/// The modules of a context whose handles are not known: modules of libraries.
fn unlocated(context: CUcontext) -> Vec<Module> {
    let registry = registry();
    let modules = registry.modules.iter().filter(|module| {
        module.context == context && module.handle.is_none() && module.located.is_none()
    });
    modules.cloned().collect()
}

/// The module of one of the libraries. The module's context is the current one.
fn find_library(driver: &Driver, module: &Module) -> Result<Located, Error> {
    let _search = Search::begin();
    for library in libraries_with(driver, module) {
        let Ok(handle) = module_of(driver, library) else {
            continue;
        };
        if has_same_records(driver, handle, &module.image) {
            return Ok(Located {
                module: handle,
                library: Some(library),
                addresses: addresses(driver, handle, module)?,
            });
        }
    }
    Err(Error::NoHandle)
}

/// The libraries that may be a module's, the most likely ones first, if it is certain that all of them are loaded in the
/// module's context: there are not more of them than modules with the same kernel. To request the module of another library
/// would load it, which can take much time and memory.
fn libraries_with(driver: &Driver, module: &Module) -> Vec<CUlibrary> {
    let Some(kernel) = &module.image.kernel else {
        return Vec::new();
    };
    let mut libraries: Vec<(Counting, CUlibrary)> = {
        let registry = registry();
        let is_taken = |library: CUlibrary| {
            registry.modules.iter().any(|other| {
                let located = other.located.as_ref();
                other.context == module.context
                    && located.and_then(|located| located.library) == Some(library)
            })
        };
        let libraries = registry.libraries.iter();
        let free = libraries.filter(|library| {
            library.counting != Counting::No && library.is_usable() && !is_taken(library.handle)
        });
        // The latest library is the most likely one.
        free.map(|library| (library.counting, library.handle))
            .rev()
            .collect()
    };
    libraries.retain(|&(_, library)| {
        let mut found = CUkernel::NULL;
        // SAFETY: a handle of a library that is loaded; a C string; writes the kernel.
        let result =
            unsafe { (driver.cuLibraryGetKernel)(&raw mut found, library, kernel.as_ptr()) };
        result == CUresult::SUCCESS
    });
    libraries.sort_by_key(|&(counting, _)| counting != Counting::Yes);
    let modules = unlocated(module.context);
    let with_kernel = modules
        .iter()
        .filter(|module| module.image.kernel.as_ref() == Some(kernel));
    if libraries.len() <= with_kernel.count() {
        libraries.into_iter().map(|(_, library)| library).collect()
    } else {
        Vec::new()
    }
}

/// The address and the size of a variable. Its context is the current one.
pub fn variable(
    driver: &Driver,
    module: CUmodule,
    name: &CStr,
) -> Result<(CUdeviceptr, usize), Error> {
    let (mut address, mut size) = (0, 0);
    // SAFETY: a module of the current context; a C string; writes address and size.
    let result = unsafe {
        (driver.cuModuleGetGlobal_v2)(&raw mut address, &raw mut size, module, name.as_ptr())
    };
    check("cuModuleGetGlobal", result)?;
    Ok((address, size))
}

/// Whether the functions of a module have the structure of the image's. The module's context is the current one.
pub fn has_same_records(driver: &Driver, handle: CUmodule, image: &Image) -> bool {
    let context = driver::current_context();
    let (mut expected, mut parts) = (Vec::new(), Vec::new());
    for (name, record) in image.records() {
        match variable(driver, handle, &name) {
            Ok((start, size)) if size >= V11.record => parts.push(Part {
                context,
                range: start..start + V11.record as u64,
            }),
            _ => return false,
        }
        expected.push((record.name_ref, record.func_hash, record.num_counters));
    }
    let mut is_same = true;
    transfer::read(&parts, settings().sync_limit, &mut |n, bytes| {
        let found = bytes.ok().and_then(|bytes| V11.read_record(bytes));
        let found = found.map(|found| (found.name_ref, found.func_hash, found.num_counters));
        is_same &= found == Some(expected[n]);
    });
    is_same
}

/// The addresses of all counters.
fn addresses(
    driver: &Driver,
    handle: CUmodule,
    module: &Module,
) -> Result<Arc<Vec<CUdeviceptr>>, Error> {
    let mut all = Vec::new();
    for counters in &module.image.counters {
        let (address, size) = variable(driver, handle, &counters.symbol)?;
        if (size as u64) < counters.range.end - counters.range.start {
            return Err(Error::TooShort(
                counters.symbol.to_string_lossy().into_owned(),
            ));
        }
        all.push(address);
    }
    Ok(all.into())
}

/// The device of a context.
pub fn device_of(driver: &Driver, context: CUcontext) -> Result<CUdevice, Error> {
    if let Some(device) = registry()
        .context(context)
        .and_then(|context| context.device)
    {
        return Ok(device);
    }
    let _current = Current::enter(driver, context)?;
    let mut device = 0;
    // SAFETY: writes the number.
    check("cuCtxGetDevice", unsafe {
        (driver.cuCtxGetDevice)(&raw mut device)
    })?;
    registry().context_mut(context).device = Some(device);
    Ok(device)
}
