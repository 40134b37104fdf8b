//! Finds loaded modules without CUPTI: the functions that the shared library wraps
//! ([`super::wrapped`]) give the code that the program loads, the driver the module that it has made of it.
//!
//! The driver does not say which image of a fat binary it uses, nor in which contexts it has loaded a library. So the image
//! is chosen as the driver chooses it, and each drain requests the modules of the libraries that may count, in each
//! context. The driver then loads those that the program has not used there: they have counted nothing, and get no profile.

use super::code::{Code, Content, Counting, Damage};
use super::driver::{self, Current, Driver};
use super::image::{self, Image};
use super::registry::{self, Module, Search, registry};
use super::{handles, prepare, primary, saved, transfer};
use crate::gpu::copy_layout::VARIABLE;
use crate::gpu::observers;
use crate::gpu::runtime::{Error, ExecutableId};
use crate::support::diagnostics;
use crate::support::sync::lock;
use crate::sys::elf_sections;
use cuda_abi::driver::*;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

/// Whether this build has the wrapped functions: not the archives.
pub const IS_BUILT: bool = cfg!(any(feature = "shared", not(feature = "interpose")));

/// Why CUPTI cannot be used. Set if modules are found without it.
static WHY: OnceLock<String> = OnceLock::new();

/// From now on, modules are found without CUPTI.
pub fn start(why: String) {
    WHY.get_or_init(|| why);
}

/// Whether modules are found without CUPTI.
#[inline]
pub fn is_active() -> bool {
    IS_BUILT && WHY.get().is_some()
}

/// The code that a program has loaded.
pub type Loaded = Result<Code, Damage>;

/// The program uses a context.
pub fn context_used(context: CUcontext) {
    if context == CUcontext::NULL {
        return;
    }
    let mut registry = registry();
    let is_new = registry.context(context).is_none();
    registry.context_mut(context);
    drop(registry);
    if is_new && let Some(drain) = observers::drain() {
        drain.context_created();
    }
}

/// The call in progress has created a context, or retained the primary one.
pub fn context_created(context: CUcontext) {
    if registry().context(context).is_none() {
        registry().add_new_context(context);
        if let Some(drain) = observers::drain() {
            drain.context_created();
        }
    }
}

/// The calling thread's current context; if that is a green one, its primary context.
pub fn current_context() -> CUcontext {
    primary::real(driver::current_context())
}

/// The program has loaded a module into the current context.
pub fn module_loaded(handle: CUmodule, loaded: Loaded) {
    let context = current_context();
    context_used(context);
    let Some(code) = readable(loaded) else {
        return;
    };
    if let Some(Ok(driver)) = driver::find()
        && let Err(error) = add(driver, context, &code, Source::Module(handle))
    {
        report_unread(&error);
    }
}

/// The program has loaded a library.
pub fn library_loaded(handle: CUlibrary, loaded: Loaded) {
    context_used(current_context());
    match readable(loaded) {
        Some(code) => {
            let counting = code.counting();
            registry().add_library(handle, counting, Some(code.into()));
            if counting == Counting::Yes
                && let Some(drain) = observers::drain()
            {
                drain.code_loaded();
            }
        }
        None => registry().add_library(handle, Counting::No, None),
    }
}

/// The code, if it may count.
fn readable(loaded: Loaded) -> Option<Code> {
    match loaded {
        Ok(code) => (code.counting() != Counting::No).then_some(code),
        Err(damage) => {
            report_unread(&damage);
            None
        }
    }
}

/// The next drain reports that code could not be read.
fn report_unread(why: &dyn std::fmt::Display) {
    let mut registry = registry();
    let n = registry.next();
    let lost = format!("lost the counters of CUDA module {n}: {why}");
    registry.damaged.push(lost);
}

/// Adds the modules of the libraries that may count, in all contexts, to the registry.
pub fn find_modules() {
    if !is_active() {
        return;
    }
    let Some(Ok(driver)) = driver::find() else {
        return;
    };
    let _search = Search::begin();
    let mut missing = Vec::new();
    {
        let mut registry = registry();
        let contexts: Vec<CUcontext> = registry.contexts.iter().map(|of| of.handle).collect();
        for library in &mut registry.libraries {
            if !library.is_usable() {
                continue;
            }
            let Some(code) = &library.code else { continue };
            for &context in &contexts {
                // Only once: if the library is loaded there, its module stays as long as both.
                if !library.searched.contains(&context) {
                    library.searched.push(context);
                    missing.push((context, library.handle, code.clone()));
                }
            }
        }
    }
    for (context, library, code) in missing {
        if let Err(error) = add(driver, context, &code, Source::Library(library)) {
            report_unread(&error);
        }
    }
}

/// As [`handles::load`]: adds a library's module in a context, before the program can launch its kernels there.
pub fn load(driver: &Driver, context: CUcontext, handle: CUlibrary) -> Vec<ExecutableId> {
    let code = {
        let mut registry = registry();
        let mut libraries = registry.libraries.iter_mut();
        let library = libraries.find(|library| library.handle == handle);
        let library = library.filter(|library| !library.searched.contains(&context));
        library.and_then(|library| {
            library.searched.push(context);
            library.code.clone()
        })
    };
    registry::set_loading(true);
    let added = code.map(|code| add(driver, context, &code, Source::Library(handle)));
    registry::set_loading(false);
    match added {
        Some(Ok(added)) => added.into_iter().collect(),
        Some(Err(error)) => {
            report_unread(&error);
            Vec::new()
        }
        None => Vec::new(),
    }
}

/// The driver's object for code.
#[derive(Clone, Copy)]
enum Source {
    Module(CUmodule),
    Library(CUlibrary),
}

/// Why a module cannot be added.
#[derive(Debug, thiserror::Error)]
enum Unread {
    #[error(transparent)]
    Driver(#[from] Error),
    #[error(transparent)]
    Image(#[from] image::Damage),
    #[error(
        "the driver compiles its PTX for this device, which devprof observes only with CUPTI: compile the code for {0}, too, or set DEVPROF_CUPTI to the path of libcupti.so"
    )]
    Ptx(String),
    #[error("the driver's module has the functions of none of its images; please report this")]
    NoImage,
}

/// Adds the module that the driver has made of code in a context, if it is instrumented.
fn add(
    driver: &Driver,
    context: CUcontext,
    code: &Code,
    source: Source,
) -> Result<Option<ExecutableId>, Unread> {
    let arch = architecture(driver, context)?;
    let chosen = code.chosen(arch);
    match chosen.first() {
        Some(Content::Counting(_) | Content::OfProcess(_)) => {}
        None | Some(Content::Plain) => return Ok(None),
        Some(Content::CountingPtx) => return Err(Unread::Ptx(format!("sm_{arch}"))),
        Some(Content::OutOfMemory(error)) => {
            return Err(image::Damage::from(error.clone()).into());
        }
        Some(Content::Compressed) => {
            if is_instrumented(driver, context, code, source)? {
                report_compressed();
            }
            return Ok(None);
        }
    }
    let (_current, _) = transfer::enter(driver, context)?;
    let (handle, library) = match source {
        Source::Module(handle) => (handle, None),
        Source::Library(library) => (handles::module_of(driver, library)?, Some(library)),
    };
    let n = registry().next();
    let mut images = Vec::new();
    for content in chosen {
        let cubin = match content {
            Content::Counting(cubin) => Cow::Borrowed(&cubin[..]),
            Content::OfProcess(object) => object.cubin(arch).into(),
            _ => continue,
        };
        if let Some(image) = image::read(&cubin, registry::base(n))? {
            saved::save(&image, &cubin);
            images.push(image);
        }
    }
    let is_right = |image: &Image| handles::has_same_records(driver, handle, image);
    let image = match images.len() {
        0 => return Ok(None),
        1 => images.pop(),
        _ => images.into_iter().find(is_right),
    };
    let image = image.ok_or(Unread::NoImage)?;
    let mut module = Module::new(n, context, Arc::new(image));
    module.handle = Some(handle);
    module.library = library;
    module.may_be_unused = library.is_some();
    if library.is_none() {
        // It is prepared below.
        (module.is_loading, module.is_prepared) = (false, false);
    }
    let executable = module.executable;
    registry().modules.push(module);
    if library.is_none() {
        prepare::set_up(driver, executable);
        if let Some(drain) = observers::drain() {
            drain.code_loaded();
        }
    }
    Ok(Some(executable))
}

/// The architecture of a context's device, for example 90.
fn architecture(driver: &Driver, context: CUcontext) -> Result<u32, Error> {
    let device = handles::device_of(driver, context)?;
    let attribute = |number| driver::attribute(driver.cuDeviceGetAttribute, device, number);
    let major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    Ok(major * 10 + minor)
}

/// Whether compressed code may be instrumented. Most is not: neither clang nor a toolkit of `devprof cuda-toolkit` compresses code.
fn is_instrumented(
    driver: &Driver,
    context: CUcontext,
    code: &Code,
    source: Source,
) -> Result<bool, Error> {
    match source {
        // The driver has loaded it.
        Source::Module(module) => {
            let _current = Current::enter(driver, context)?;
            Ok(handles::variable(driver, module, VARIABLE).is_ok())
        }
        // The code is part of a program or library. The flags that instrument device code instrument host code, too.
        Source::Library(_) => Ok(code.file().is_none_or(|file| has_counters(&file))),
    }
}

/// Whether a file has instrumented host code. Asked once for each file.
fn has_counters(file: &Path) -> bool {
    const COUNTERS: &[u8] = b"__llvm_prf_cnts";
    static KNOWN: Mutex<BTreeMap<PathBuf, bool>> = Mutex::new(BTreeMap::new());
    let mut known = lock(&KNOWN);
    let found = || elf_sections::has_section(file, COUNTERS).unwrap_or(true);
    *known.entry(file.into()).or_insert_with(found)
}

/// Reported once, and no error of a drain.
fn report_compressed() {
    let why = WHY.get().map_or("", String::as_str);
    diagnostics::lost(format_args!(
        "instrumented CUDA code is compressed, so devprof collects from it only with CUPTI ({why}): set DEVPROF_CUPTI to the path of libcupti.so, or do not compress it"
    ));
}
