//! Instruments the PTX that a program passes to the driver (DEVPROF_PTX=1).
//!
//! The driver compiles the instrumented text. If it does not accept it, it gets the program's, and the program gets that result:
//! what it observes does not depend on the instrumentation. The compiled code is not known; what the drain and the report need is
//! made from the text ([`ptx::Object`]).
//!
//! Of a fat binary for several architectures, the driver gets PTX only if it would compile it anyway, or if the PTX has line
//! information: that of NVIDIA's libraries has none.

use super::code::{self, Code, Counting};
use super::driver;
use super::ptx_of_code::{self, Found, Part};
use super::registry;
use crate::gpu::owner::is_owner;
use crate::support::diagnostics;
use crate::support::panic_guard::{Cost, guarded};
use crate::support::settings::settings;
use crate::sys::loader;
use cuda_abi::cupti::cbid;
use cuda_abi::driver::*;
use ptx::Origin;
use std::borrow::Cow;
use std::ffi::{CStr, CString, OsStr, c_int, c_uint, c_void};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::{Arc, Once, OnceLock};

/// The numbers of functions that CUPTI's callbacks need not report.
pub const LINK_DATA: c_uint = c_uint::MAX;
pub const LINK_FILE: c_uint = c_uint::MAX - 1;

/// `CU_JIT_INPUT_PTX`
const INPUT_PTX: c_int = 1;

type P = *mut c_void;

/// The arguments of functions, as in exports/cuda.rs. `cuModuleLoad` and `cuModuleLoadFatBinary` have the first two of a module.
#[repr(C)]
struct OfModule {
    module: P,
    code: P,
    count: c_uint,
    options: P,
    values: *mut P,
}

#[repr(C)]
struct OfLibrary {
    library: P,
    code: P,
    options: P,
    values: *mut P,
    count: c_uint,
    library_options: P,
    library_values: P,
    library_count: c_uint,
}

#[repr(C)]
struct OfLinkData {
    state: P,
    kind: c_int,
    data: P,
    size: usize,
    name: P,
    count: c_uint,
    options: P,
    values: *mut P,
}

#[repr(C)]
struct OfLinkFile {
    state: P,
    kind: c_int,
    file: P,
    count: c_uint,
    options: P,
    values: *mut P,
}

type LoadModule = unsafe extern "C" fn(P, P) -> CUresult;
type LoadLibrary = unsafe extern "C" fn(P, P, P, *mut P, c_uint, P, P, c_uint) -> CUresult;
type AddData = unsafe extern "C" fn(P, c_int, P, usize, P, c_uint, P, *mut P) -> CUresult;

/// The arguments of a call that gets code.
#[derive(Clone, Copy)]
enum Arguments {
    ModuleData(*mut OfModule),
    ModuleDataOptions(*mut OfModule),
    ModuleFile(*mut OfModule),
    ModuleFatBinary(*mut OfModule),
    LibraryData(*mut OfLibrary),
    LibraryFile(*mut OfLibrary),
    LinkData(*mut OfLinkData),
    LinkFile(*mut OfLinkFile),
}
use Arguments::*;

impl Arguments {
    fn new(id: c_uint, arguments: P) -> Option<Arguments> {
        Some(match id {
            cbid::cuModuleLoadData => ModuleData(arguments.cast()),
            cbid::cuModuleLoadDataEx => ModuleDataOptions(arguments.cast()),
            cbid::cuModuleLoad => ModuleFile(arguments.cast()),
            cbid::cuModuleLoadFatBinary => ModuleFatBinary(arguments.cast()),
            cbid::cuLibraryLoadData => LibraryData(arguments.cast()),
            cbid::cuLibraryLoadFromFile => LibraryFile(arguments.cast()),
            LINK_DATA => LinkData(arguments.cast()),
            LINK_FILE => LinkFile(arguments.cast()),
            _ => return None,
        })
    }

    /// The code. `None`: the function gets something else than PTX.
    ///
    /// # Safety
    /// They are a call's arguments: the result is used only during this call.
    unsafe fn source<'a>(self) -> Option<Source<'a>> {
        /// # Safety
        /// A C string, or null.
        unsafe fn file<'a>(path: P) -> Option<Source<'a>> {
            // SAFETY: the caller's promise.
            let path = (!path.is_null()).then(|| unsafe { CStr::from_ptr(path.cast()) })?;
            Some(Source::File(Path::new(OsStr::from_bytes(path.to_bytes()))))
        }
        /// # Safety
        /// Code for the driver.
        unsafe fn memory<'a>(code: P) -> Option<Source<'a>> {
            // SAFETY: the caller's promise.
            unsafe {
                let is_linked = code::is_for_linker(code);
                let image = code::image_in_memory(code).ok().filter(|_| !is_linked)?;
                Some(Source::Memory(code, image))
            }
        }
        // SAFETY: the caller's promise; the driver reads the same.
        unsafe {
            match self {
                ModuleData(of) | ModuleDataOptions(of) | ModuleFatBinary(of) => memory((*of).code),
                LibraryData(of) => memory((*of).code),
                ModuleFile(of) => file((*of).code),
                LibraryFile(of) => file((*of).code),
                LinkFile(of) if (*of).kind == INPUT_PTX => file((*of).file),
                LinkData(of) if (*of).kind == INPUT_PTX && !(*of).data.is_null() => {
                    let data = std::slice::from_raw_parts((*of).data.cast::<u8>(), (*of).size);
                    Some(Source::Memory((*of).data, data))
                }
                LinkFile(_) | LinkData(_) => None,
            }
        }
    }

    /// The values of the options, in which the driver also returns values.
    ///
    /// # Safety
    /// They are a call's arguments.
    unsafe fn values<'a>(self) -> &'a mut [P] {
        // SAFETY: the caller's promise.
        unsafe {
            let (values, count) = match self {
                ModuleDataOptions(of) => ((*of).values, (*of).count),
                LibraryData(of) | LibraryFile(of) => ((*of).values, (*of).count),
                LinkData(of) => ((*of).values, (*of).count),
                LinkFile(of) => ((*of).values, (*of).count),
                ModuleData(_) | ModuleFile(_) | ModuleFatBinary(_) => return &mut [],
            };
            if values.is_null() {
                return &mut [];
            }
            std::slice::from_raw_parts_mut(values, count as usize)
        }
    }

    /// The number of options of a library that are not of the compiler.
    ///
    /// # Safety
    /// They are a call's arguments.
    unsafe fn library_options(self) -> c_uint {
        match self {
            // SAFETY: the caller's promise.
            LibraryData(of) | LibraryFile(of) => unsafe { (*of).library_count },
            _ => 0,
        }
    }
}

/// Where the program has its code.
enum Source<'a> {
    /// Its address, and the image.
    Memory(P, &'a [u8]),
    File(&'a Path),
}

/// A call whose PTX is instrumented.
pub struct Instrumented {
    arguments: Arguments,
    /// Of a library with options (`CU_LIBRARY_BINARY_IS_PRESERVED`), the driver may use it later, so it is never freed.
    text: Cow<'static, CStr>,
    /// What the linker makes of it is loaded later.
    code: Option<Arc<Code>>,
    name: String,
    /// Of functions.
    losses: Vec<Loss>,
    /// The values of the options before the call.
    values: Vec<P>,
}

/// Why PTX is not instrumented. To be reported if the driver accepts it.
pub struct Loss(String);

impl Loss {
    pub fn report(&self) {
        diagnostics::lost(&self.0);
    }
}

/// Instruments the PTX of a call. `None`: it has none, or it was not requested.
///
/// # Safety
/// These are the arguments of the function with this number, and stay valid as long as the result.
pub unsafe fn instrumented(id: c_uint, arguments: P) -> Option<Result<Instrumented, Loss>> {
    if !super::without_cupti::IS_BUILT || !settings().ptx || settings().disabled {
        return None;
    }
    // SAFETY: the caller's promise.
    guarded(Cost::Counters, None, || unsafe {
        let arguments = Arguments::new(id, arguments).filter(|_| is_owner())?;
        instrument(arguments, arguments.source()?)
    })
}

/// # Safety
/// As for [`instrumented`].
unsafe fn instrument(arguments: Arguments, source: Source) -> Option<Result<Instrumented, Loss>> {
    let read;
    let (image, file) = match source {
        Source::Memory(address, image) => (image, loader::path_of(address)),
        Source::File(path) => {
            // Reading a pipe would take its content away.
            let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
            read = std::fs::read(path).ok().filter(|_| is_file)?;
            (&read[..], Some(path.to_owned()))
        }
    };
    let of_file = |file: &Option<PathBuf>| {
        let file = file.as_ref();
        file.map_or(String::new(), |file| format!(" of {}", file.display()))
    };
    let Found {
        text,
        replaces_cubin,
    } = match ptx_of_code::find(image, oldest_device()?) {
        Ok(Part::Ptx(found)) => found,
        Ok(Part::Cubin) => {
            if file.is_none() && Code::read(image).is_ok_and(|code| code.counting() == Counting::No)
            {
                report_cubin();
            }
            return None;
        }
        Ok(Part::Other) => return None,
        Err(damage) => {
            let loss = format!("PTX{} is not instrumented: {damage}", of_file(&file));
            return Some(Err(Loss(loss)));
        }
    };
    let name = format!("PTX{}{}", of_kernel(&text), of_file(&file));
    if replaces_cubin && !text.contains(".loc\t") && !text.contains(".loc ") {
        diagnostics::note(
            settings().verbose,
            format_args!("{name} is not instrumented: it has no line information"),
        );
        return None;
    }
    let directory = std::env::current_dir().unwrap_or_default();
    let done = match ptx::instrument(&text, &directory, Origin::Process, is_toolkit_header) {
        Ok(done) => done?,
        Err(problem) => {
            let loss = format!("{name} is not instrumented: {problem}");
            return Some(Err(Loss(loss)));
        }
    };
    let losses = done.not_instrumented.iter().map(|(function, problem)| {
        Loss(format!(
            "{name}: the function {function} is not instrumented: {problem}"
        ))
    });
    let mut losses: Vec<Loss> = losses.collect();
    if done.functions == 0 {
        return losses.pop().map(Err);
    }
    if done.without_lines.len() == done.functions {
        report_without_lines(&name);
    }
    let text = CString::new(done.text).ok()?;
    // SAFETY: the caller's promise.
    let text = match unsafe { arguments.library_options() } {
        0 => text.into(),
        _ => Cow::Borrowed(&*Box::leak(text.into_boxed_c_str())),
    };
    let is_linked = matches!(arguments, LinkData(_) | LinkFile(_));
    Some(Ok(Instrumented {
        arguments,
        text,
        code: (!is_linked).then(|| Code::of_process(done.object).into()),
        name,
        losses,
        // SAFETY: the caller's promise.
        values: unsafe { arguments.values() }.to_vec(),
    }))
}

/// The first kernel of a module, for messages.
fn of_kernel(text: &str) -> impl fmt::Display {
    let name = text.split_once(".entry").and_then(|(_, rest)| {
        let rest = rest.trim_start();
        let end = rest.find(|byte: char| byte == '(' || byte.is_whitespace())?;
        Some(format!(" with the kernel {}", &rest[..end]))
    });
    name.unwrap_or_default()
}

/// The architecture of the oldest device, for example 90. `None`: the driver is not initialized.
fn oldest_device() -> Option<u32> {
    static ARCHITECTURE: OnceLock<u32> = OnceLock::new();
    if let Some(known) = ARCHITECTURE.get() {
        return Some(*known);
    }
    let driver = driver::find()?.ok()?;
    let _own = driver::OwnCalls::begin();
    let mut count = 0;
    // SAFETY: writes the number.
    let result = unsafe { (driver.cuDeviceGetCount)(&raw mut count) };
    driver::check("cuDeviceGetCount", result).ok()?;
    let of_device = |device| {
        let attribute = |number| driver::attribute(driver.cuDeviceGetAttribute, device, number);
        let major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR).ok()?;
        Some(major * 10 + attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR).ok()?)
    };
    let oldest = (0..count).filter_map(of_device).min()?;
    Some(*ARCHITECTURE.get_or_init(|| oldest))
}

/// Whether a file is a header of a CUDA toolkit: `…/cuda-13.0/include`, `…/bin/../include`, `…/targets/x86_64-linux/include`, or that of a Python
/// package, `…/nvidia/cuda_runtime/include`.
fn is_toolkit_header(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let include = parts.iter().rposition(|part| *part == "include");
    include.is_some_and(|at| {
        let before = |n: usize| at.checked_sub(n).map_or("", |at| parts[at]);
        let version = before(1).strip_prefix("cuda-").unwrap_or_default();
        before(1) == "cuda"
            || version.starts_with(|byte: char| byte.is_ascii_digit())
            || before(2) == "targets"
            || (before(2), before(1)) == ("bin", "..")
            || before(2) == "nvidia"
    })
}

fn report_without_lines(name: &str) {
    static REPORTED: Once = Once::new();
    REPORTED.call_once(|| {
        diagnostics::note(
            true,
            format_args!(
                "{name} and perhaps others: no line information, so only which functions ran is recorded (nvcc and NVRTC: -lineinfo)"
            ),
        );
    });
}

fn report_cubin() {
    static REPORTED: Once = Once::new();
    REPORTED.call_once(|| {
        diagnostics::note(
            true,
            "the program loads code that it has compiled itself and that is no PTX, so it is not instrumented (nvcc.md in devprof's documentation names the options of libraries)",
        );
    });
}

impl Instrumented {
    /// Calls the driver with the instrumented text. `call`: the function of the program's call.
    ///
    /// # Safety
    /// The call of [`instrumented`] is in progress.
    pub unsafe fn load(&self, call: &mut dyn FnMut() -> CUresult) -> CUresult {
        guarded(Cost::Counters, (), || {
            registry::set_of_process(self.code.clone());
        });
        let text = self.text.as_ptr().cast_mut().cast::<c_void>();
        // SAFETY: the caller's promise. The driver copies the text, unless the options of a library say that it stays.
        let result = unsafe {
            match self.arguments {
                ModuleData(of) | ModuleDataOptions(of) => {
                    with_replaced(&raw mut (*of).code, text, call)
                }
                LibraryData(of) => with_replaced(&raw mut (*of).code, text, call),
                LinkData(of) => {
                    let size = std::mem::replace(&mut (*of).size, self.size());
                    let result = with_replaced(&raw mut (*of).data, text, call);
                    (*of).size = size;
                    result
                }
                ModuleFile(of) | ModuleFatBinary(of) => {
                    match function::<LoadModule>(c"cuModuleLoadData") {
                        Some(load) => load((*of).module, text),
                        None => CUresult::NOT_FOUND,
                    }
                }
                LibraryFile(of) => match function::<LoadLibrary>(c"cuLibraryLoadData") {
                    Some(load) => {
                        let of = &*of;
                        load(
                            of.library,
                            text,
                            of.options,
                            of.values,
                            of.count,
                            of.library_options,
                            of.library_values,
                            of.library_count,
                        )
                    }
                    None => CUresult::NOT_FOUND,
                },
                LinkFile(of) => match function::<AddData>(c"cuLinkAddData_v2") {
                    Some(add) => {
                        let of = &*of;
                        add(
                            of.state,
                            INPUT_PTX,
                            text,
                            self.size(),
                            of.file,
                            of.count,
                            of.options,
                            of.values,
                        )
                    }
                    None => CUresult::NOT_FOUND,
                },
            }
        };
        if result != CUresult::SUCCESS {
            guarded(Cost::Counters, (), || registry::set_of_process(None));
        }
        result
    }

    /// The size of the text, with the NUL byte.
    fn size(&self) -> usize {
        self.text.to_bytes_with_nul().len()
    }

    /// Undoes what the driver has written to the values of the options.
    ///
    /// # Safety
    /// As for [`Instrumented::load`].
    pub unsafe fn restore(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.arguments.values() }.copy_from_slice(&self.values);
    }

    /// The driver has accepted the instrumented code: reports what is not instrumented in it.
    pub fn report_losses(&self) {
        self.losses.iter().for_each(Loss::report);
    }

    /// The driver has accepted only the program's code.
    pub fn report_refused(&self, error: CUresult) {
        diagnostics::lost(format_args!(
            "the driver does not accept the instrumented {} ({error:?}), so it is not instrumented; please report it to devprof",
            self.name
        ));
    }
}

/// Calls a function with another argument.
///
/// # Safety
/// `argument` is a variable from which `call` reads it.
unsafe fn with_replaced(argument: *mut P, new: P, call: &mut dyn FnMut() -> CUresult) -> CUresult {
    // SAFETY: the caller's promise.
    unsafe {
        let old = argument.replace(new);
        let result = call();
        argument.write(old);
        result
    }
}

/// A function of the driver. `None`: it does not exist.
///
/// # Safety
/// `F` is the type of a pointer to the function.
unsafe fn function<F>(name: &CStr) -> Option<F> {
    let found = guarded(Cost::Counters, null_mut(), || driver::address(name));
    // SAFETY: the caller's promise.
    (!found.is_null()).then(|| unsafe { std::mem::transmute_copy(&found) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_toolkits_are_known() {
        for (path, expected) in [
            ("/usr/local/cuda/include/cuda_fp16.hpp", true),
            ("/opt/cuda-13.0/include/cub/cub.cuh", true),
            ("/opt/x/bin/..//include/crt/a.h", true),
            ("/cuda/bin/../targets/x86_64-linux/include/crt/a.h", true),
            (
                "/lib/python3/site-packages/nvidia/cuda_runtime/include/a.h",
                true,
            ),
            ("/home/a/cuda-samples/include/a.h", false),
            ("/home/a/cudart/include/a.h", false),
            ("include/a.h", false),
            ("a.cu", false),
        ] {
            assert_eq!(is_toolkit_header(path), expected, "{path}");
        }
    }

    #[test]
    fn messages_name_the_first_kernel() {
        let text = ".visible .entry\t_Z1kPi(\n.param .u64 a)\n.entry other()";
        assert_eq!(of_kernel(text).to_string(), " with the kernel _Z1kPi");
        assert_eq!(of_kernel(".func f()").to_string(), "");
    }
}
