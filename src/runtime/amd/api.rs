//! The functions of the HSA runtime in the process. This module never loads or initializes HSA: if HSA is not loaded, no
//! device code can have run.

use super::libraries::Libraries;
use crate::gpu::runtime::{Code, Error};
use crate::support::sync::lock;
use crate::sys::loader;
use hsa_abi::*;
use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};
use std::ffi::{CStr, c_void};
use std::mem::offset_of;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// The HSA runtime.
pub const LIBRARIES: Libraries = Libraries {
    names: &["libhsa-runtime64.so.1"],
    renamed: Some(("libhsa-runtime64", c"hsa_init")),
};

/// Where HSA's functions come from.
enum Source<'a> {
    Library(&'a Library),
    /// A ROCr that is linked statically into the program, together with the archive. See [`LINKED`].
    Linked,
    /// ROCr's API tables, as passed to a tool.
    Tables(&'a Tables),
}

/// A function's table, and its offset in the table, in bytes.
#[derive(Clone, Copy)]
enum Slot {
    CoreApiTable(usize),
    AmdExtTable(usize),
}

macro_rules! api {
    ($($table:ident $name:ident),* $(,)?) => {
        /// The functions of HSA that drains call.
        pub struct Api {
            $(pub $name: function::$name,)*
            /// `hsa_ven_amd_loader` 1.03 or later, after the first use.
            loader: OnceLock<LoaderTable>,
        }

        /// The functions' names, in the order of [`LINKED`].
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        // Weak references, which are null if the program does not contain the functions.
        std::arch::global_asm!(
            ".pushsection .data.rel.ro.devprof_hsa,\"aw\",@progbits",
            $(concat!(".weakref devprof_weak_", stringify!($name), ", ", stringify!($name)),)*
            ".hidden devprof_linked_hsa",
            ".globl devprof_linked_hsa",
            ".balign 8",
            "devprof_linked_hsa:",
            $(concat!(".quad devprof_weak_", stringify!($name)),)*
            ".popsection",
        );

        impl Api {
            fn resolve(source: Source) -> Result<Api, Error> {
                let mut n = 0..;
                Ok(Api {
                    $($name: {
                        let function = source
                            .function(n.next().unwrap_or(0), Slot::$table(offset_of!(hsa_abi::$table, $name)))
                            .ok_or(missing(stringify!($name)))?;
                        // SAFETY: the type of the function in HSA's headers; the library is never unloaded.
                        unsafe { std::mem::transmute::<*const c_void, function::$name>(function) }
                    },)*
                    loader: OnceLock::new(),
                })
            }
        }
    };
}

api! {
    CoreApiTable hsa_init,
    CoreApiTable hsa_system_get_info,
    CoreApiTable hsa_iterate_agents,
    CoreApiTable hsa_agent_get_info,
    CoreApiTable hsa_queue_load_read_index_scacquire,
    CoreApiTable hsa_queue_load_write_index_scacquire,
    CoreApiTable hsa_queue_cas_write_index_scacq_screl,
    CoreApiTable hsa_memory_copy,
    CoreApiTable hsa_signal_create,
    CoreApiTable hsa_signal_destroy,
    CoreApiTable hsa_signal_store_relaxed,
    CoreApiTable hsa_signal_store_screlease,
    CoreApiTable hsa_signal_wait_scacquire,
    CoreApiTable hsa_executable_get_info,
    CoreApiTable hsa_executable_symbol_get_info,
    CoreApiTable hsa_system_get_major_extension_table,
    CoreApiTable hsa_executable_get_symbol_by_name,
    CoreApiTable hsa_executable_iterate_agent_symbols,
    AmdExtTable hsa_amd_signal_async_handler,
    AmdExtTable hsa_amd_memory_pool_get_info,
    AmdExtTable hsa_amd_agent_iterate_memory_pools,
    AmdExtTable hsa_amd_memory_pool_allocate,
    AmdExtTable hsa_amd_memory_pool_free,
    AmdExtTable hsa_amd_memory_async_copy,
    AmdExtTable hsa_amd_memory_async_copy_on_engine,
    AmdExtTable hsa_amd_agents_allow_access,
}

unsafe extern "C" {
    /// In the order of [`NAMES`].
    #[link_name = "devprof_linked_hsa"]
    static LINKED: [*const c_void; NAMES.len()];
}

impl Source<'_> {
    /// A function, by its index in [`NAMES`] and its slot in ROCr's tables.
    fn function(&self, n: usize, slot: Slot) -> Option<*const c_void> {
        let found = match self {
            Source::Library(library) => {
                let name = NAMES.get(n)?;
                // SAFETY: not called here.
                let found = unsafe { library.get::<*const c_void>(name.as_bytes()) };
                *found.ok()?
            }
            // SAFETY: written only by the static and the dynamic linker.
            Source::Linked => unsafe { *LINKED.get(n)? },
            Source::Tables(tables) => match slot {
                Slot::CoreApiTable(offset) => tables.core.function(offset)?,
                Slot::AmdExtTable(offset) => tables.amd_ext.function(offset)?,
            },
        };
        (!found.is_null()).then_some(found)
    }
}

/// A copy of ROCr's API tables, made before devprof installs hooks.
struct Tables {
    core: Functions,
    amd_ext: Functions,
}

struct Functions(Vec<*const c_void>);

// SAFETY: addresses of functions in a library that is never unloaded.
unsafe impl Send for Functions {}

impl Functions {
    /// # Safety
    /// `table` is one of ROCr's tables: a version, whose `minor` is the size of the table in bytes, and functions.
    unsafe fn copy(table: *const TableVersion) -> Functions {
        // SAFETY: the caller's promise.
        unsafe {
            let size = ((*table).minor as usize).saturating_sub(size_of::<TableVersion>());
            let first = table.add(1).cast::<*const c_void>();
            let all = std::slice::from_raw_parts(first, size / size_of::<*const c_void>());
            Functions(all.to_vec())
        }
    }

    /// The function at an offset in the table, in bytes.
    fn function(&self, offset: usize) -> Option<*const c_void> {
        let functions = offset.checked_sub(size_of::<TableVersion>())?;
        self.0.get(functions / size_of::<*const c_void>()).copied()
    }
}

/// Set by [`save_tables`].
static TABLES: Mutex<Option<Tables>> = Mutex::new(None);

/// Saves ROCr's functions, for a ROCr whose library has another name or that is linked statically into the program.
///
/// # Safety
/// The tables are ROCr's, in versions that devprof supports.
pub unsafe fn save_tables(core: *const CoreApiPrefix, amd: *const AmdExtPrefix) {
    // SAFETY: the caller's promise.
    let (core, amd_ext) = unsafe {
        (
            Functions::copy(&raw const (*core).version),
            Functions::copy(&raw const (*amd).version),
        )
    };
    *lock(&TABLES) = Some(Tables { core, amd_ext });
}

const RUNTIME: &str = "HSA";

/// The HSA runtime lacks a function.
pub fn missing(function: &'static str) -> Error {
    Error::Missing {
        runtime: RUNTIME,
        function,
    }
}

/// The error if `call` returned `status`, or failed in an equivalent way.
pub fn failed(call: &'static str, status: Status) -> Error {
    let code = Code {
        runtime: RUNTIME,
        number: status.0,
    };
    Error::Call { call, code }
}

/// `Ok` if `call` succeeded.
pub fn check(call: &'static str, status: Status) -> Result<(), Error> {
    match status {
        Status::SUCCESS => Ok(()),
        status => Err(failed(call, status)),
    }
}

/// The HSA runtime, if it is in this process. Searched for at each call until it is found.
pub fn find() -> Option<Result<&'static Api, Error>> {
    static API: OnceLock<Api> = OnceLock::new();
    if let Some(api) = API.get() {
        return Some(Ok(api));
    }
    match resolve()? {
        Ok(api) => Some(Ok(API.get_or_init(|| api))),
        Err(error) => Some(Err(error)),
    }
}

fn resolve() -> Option<Result<Api, Error>> {
    if let Some(library) = LIBRARIES.loaded() {
        let api = Api::resolve(Source::Library(&library));
        // The functions are used until the process ends.
        std::mem::forget(library);
        return Some(api);
    }
    if let Some(tables) = &*lock(&TABLES) {
        return Some(Api::resolve(Source::Tables(tables)));
    }
    // A library with another name, or the program if it exports the functions.
    if let Some(library) = with_symbol(c"hsa_system_get_info") {
        return Some(Api::resolve(Source::Library(&library)));
    }
    let is_linked = Source::Linked
        .function(
            1,
            Slot::CoreApiTable(offset_of!(hsa_abi::CoreApiTable, hsa_system_get_info)),
        )
        .is_some();
    is_linked.then(|| Api::resolve(Source::Linked))
}

/// The first file in symbol search order that defines a symbol. devprof itself must not define it.
fn with_symbol(symbol: &CStr) -> Option<Library> {
    // SAFETY: `dlsym` with a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, symbol.as_ptr()) };
    if found.is_null() {
        return None;
    }
    let library = loader::path_of(found).and_then(|path| {
        // SAFETY: with RTLD_NOLOAD no constructor runs.
        unsafe { Library::open(Some(path), RTLD_LAZY | RTLD_LOCAL | libc::RTLD_NOLOAD) }.ok()
    });
    // The program itself cannot be opened by its name.
    Some(library.unwrap_or_else(Library::this))
}

/// The HSA runtime, for functions that HSA calls.
pub fn loaded_api() -> Result<&'static Api, Error> {
    find().unwrap_or(Err(failed("hsa_init", Status::NOT_INITIALIZED)))
}

impl Api {
    /// Whether HSA is initialized, or a thread is initializing it. Reads the version, which is a constant: while ROCr is
    /// initialized, it divides by a frequency that is still 0 to get the time (ReadSystemClock in os_linux.cpp).
    pub fn is_initialized(&self) -> Result<bool, Error> {
        let mut version = 0u16;
        // SAFETY: the attribute is a u16. A runtime that is not initialized returns an error.
        let status = unsafe {
            (self.hsa_system_get_info)(HSA_SYSTEM_INFO_VERSION_MAJOR, (&raw mut version).cast())
        };
        if status == Status::NOT_INITIALIZED {
            return Ok(false);
        }
        check("hsa_system_get_info(HSA_SYSTEM_INFO_VERSION_MAJOR)", status).map(|()| true)
    }

    /// Keeps HSA initialized until the process ends. HSA must be initialized, or a thread must be initializing it: then this
    /// waits for that thread.
    pub fn hold(&self) -> Result<(), Error> {
        // SAFETY: HSA has a user, so this only increments its reference count (hsa.h, hsa_init).
        check("hsa_init", unsafe { (self.hsa_init)() })
    }

    /// Creates a signal, which any agent may use.
    pub fn create_signal(&self, value: SignalValue) -> Result<SignalHandle, Error> {
        let mut signal = SignalHandle(0);
        // SAFETY: no consumers are specified, so any agent may use the signal.
        check("hsa_signal_create", unsafe {
            (self.hsa_signal_create)(value, 0, std::ptr::null(), &raw mut signal)
        })?;
        Ok(signal)
    }

    /// Destroys a signal of [`Api::create_signal`], to which no packet and no copy refers any more.
    pub fn destroy_signal(&self, signal: SignalHandle) {
        // SAFETY: devprof's own signal, which nothing uses.
        unsafe { (self.hsa_signal_destroy)(signal) };
    }

    /// Waits until the value of one of devprof's own signals is less than 1. Returns the value. `time` is a hint: it is passed in
    /// ticks of HSA's clock, which take at least a nanosecond.
    pub fn wait_for_signal(&self, signal: SignalHandle, time: Duration) -> SignalValue {
        let (condition, time) = (HSA_SIGNAL_CONDITION_LT, time.as_nanos() as u64);
        // SAFETY: the signal is not destroyed.
        unsafe {
            (self.hsa_signal_wait_scacquire)(signal, condition, 1, time, HSA_WAIT_STATE_BLOCKED)
        }
    }

    /// The AMD loader extension. HSA must be initialized.
    pub fn loader(&self) -> Result<&LoaderTable, Error> {
        if let Some(table) = self.loader.get() {
            return Ok(table);
        }
        let mut table = std::mem::MaybeUninit::<LoaderTable>::zeroed();
        // SAFETY: the runtime writes at most the given number of bytes.
        let status = unsafe {
            (self.hsa_system_get_major_extension_table)(
                HSA_EXTENSION_AMD_LOADER,
                1,
                size_of::<LoaderTable>(),
                table.as_mut_ptr().cast(),
            )
        };
        check(
            "hsa_system_get_major_extension_table(HSA_EXTENSION_AMD_LOADER)",
            status,
        )?;
        // SAFETY: zero if the runtime's table is smaller, so it is read as a number.
        let last = unsafe {
            (&raw const (*table.as_ptr()).iterate_executables)
                .cast::<usize>()
                .read()
        };
        if last == 0 {
            return Err(missing("hsa_ven_amd_loader_iterate_executables"));
        }
        // SAFETY: the call succeeded. It has written the last function, and so all functions before it.
        Ok(self.loader.get_or_init(|| unsafe { table.assume_init() }))
    }
}
