//! The HSA runtime's functions, looked up in the process. Nothing here loads or initialises HSA: where it is not,
//! or not alive, no device code can have run.

use super::types::*;
use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};
use std::ffi::c_void;
use std::sync::OnceLock;

/// Names under which HSA's library may be loaded.
pub(super) const LIBRARIES: &[&str] = &["libhsa-runtime64.so.1"];

type AgentCallback = unsafe extern "C" fn(AgentHandle, *mut c_void) -> Status;
type Handler = unsafe extern "C" fn(SignalValue, *mut c_void) -> bool;
type PoolCallback = unsafe extern "C" fn(PoolHandle, *mut c_void) -> Status;
type SymbolCallback =
    unsafe extern "C" fn(ExecutableHandle, AgentHandle, SymbolHandle, *mut c_void) -> Status;

macro_rules! api {
    ($($name:ident: fn($($arg:ty),*) -> $ret:ty),* $(,)?) => {
        /// HSA's functions that the drain calls (`hsa/hsa.h`, `hsa/hsa_ext_amd.h`).
        pub struct Api {
            $(pub $name: unsafe extern "C" fn($($arg),*) -> $ret,)*
            /// `hsa_ven_amd_loader` 1.03 or later, once HSA is alive to give it.
            loader: OnceLock<LoaderTable>,
        }

        impl Api {
            fn resolve(library: &Library) -> Result<Api, Error> {
                Ok(Api {
                    $($name: {
                        // SAFETY: the signature is that of the header that declares the function, and the library is
                        // never closed.
                        unsafe { *library.get(concat!(stringify!($name), "\0").as_bytes()).map_err(|_| Error::Missing(stringify!($name)))? }
                    },)*
                    loader: OnceLock::new(),
                })
            }
        }
    };
}

api! {
    hsa_init: fn() -> Status,
    hsa_system_get_info: fn(u32, *mut c_void) -> Status,
    hsa_system_get_major_extension_table: fn(u16, u16, usize, *mut c_void) -> Status,
    hsa_iterate_agents: fn(AgentCallback, *mut c_void) -> Status,
    hsa_agent_get_info: fn(AgentHandle, u32, *mut c_void) -> Status,
    hsa_executable_get_info: fn(ExecutableHandle, u32, *mut c_void) -> Status,
    hsa_executable_iterate_agent_symbols: fn(ExecutableHandle, AgentHandle, SymbolCallback, *mut c_void) -> Status,
    hsa_executable_symbol_get_info: fn(SymbolHandle, u32, *mut c_void) -> Status,
    hsa_memory_copy: fn(*mut c_void, *const c_void, usize) -> Status,
    hsa_queue_load_read_index_scacquire: fn(*const QueueHead) -> u64,
    hsa_queue_load_write_index_scacquire: fn(*const QueueHead) -> u64,
    hsa_queue_cas_write_index_scacq_screl: fn(*const QueueHead, u64, u64) -> u64,
    hsa_signal_create: fn(SignalValue, u32, *const AgentHandle, *mut SignalHandle) -> Status,
    hsa_signal_destroy: fn(SignalHandle) -> Status,
    hsa_signal_store_relaxed: fn(SignalHandle, SignalValue) -> (),
    hsa_signal_store_screlease: fn(SignalHandle, SignalValue) -> (),
    hsa_signal_wait_scacquire: fn(SignalHandle, u32, SignalValue, u64, u32) -> SignalValue,
    hsa_amd_agent_iterate_memory_pools: fn(AgentHandle, PoolCallback, *mut c_void) -> Status,
    hsa_amd_memory_pool_get_info: fn(PoolHandle, u32, *mut c_void) -> Status,
    hsa_amd_memory_pool_allocate: fn(PoolHandle, usize, u32, *mut *mut c_void) -> Status,
    hsa_amd_memory_pool_free: fn(*mut c_void) -> Status,
    hsa_amd_agents_allow_access: fn(u32, *const AgentHandle, *const u32, *const c_void) -> Status,
    hsa_amd_signal_async_handler: fn(SignalHandle, u32, SignalValue, Handler, *mut c_void) -> Status,
    hsa_amd_pointer_info: fn(*const c_void, *mut PointerInfo, usize, *mut u32, usize) -> Status,
    hsa_amd_memory_async_copy: fn(*mut c_void, AgentHandle, *const c_void, AgentHandle, usize, u32, *const SignalHandle, SignalHandle) -> Status,
}

/// Why HSA cannot be used although it is in the process.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("the HSA runtime in this process has no {0}: it is older than devprof knows")]
    Missing(&'static str),
    #[error("{0} failed: {1:?}")]
    Call(&'static str, Status),
}

/// `Ok` when the call named `what` succeeded.
pub(super) fn ok(what: &'static str, status: Status) -> Result<(), Error> {
    if status == Status::SUCCESS {
        Ok(())
    } else {
        Err(Error::Call(what, status))
    }
}

/// The HSA runtime of this process, if it is loaded. Found anew until it is.
pub fn find() -> Option<Result<&'static Api, Error>> {
    static API: OnceLock<Api> = OnceLock::new();
    if let Some(api) = API.get() {
        return Some(Ok(api));
    }
    let library = loaded(LIBRARIES)?;
    let api = Api::resolve(&library);
    // The functions are used until the process ends.
    std::mem::forget(library);
    match api {
        Ok(api) => Some(Ok(API.get_or_init(|| api))),
        Err(error) => Some(Err(error)),
    }
}

/// The HSA runtime, for a caller that HSA has called.
pub(super) fn there() -> Result<&'static Api, Error> {
    find().unwrap_or(Err(Error::Call("hsa_init", Status::NOT_INITIALIZED)))
}

/// The first of the named libraries that is in the process already.
pub(super) fn loaded(names: &[&str]) -> Option<Library> {
    names.iter().find_map(|name| {
        // SAFETY: RTLD_NOLOAD runs no constructor: the library is loaded already or the call fails.
        unsafe { Library::open(Some(*name), RTLD_LAZY | RTLD_LOCAL | libc::RTLD_NOLOAD) }.ok()
    })
}

impl Api {
    /// Whether somebody has HSA initialised now. Asks for the time, which every version answers and which starts
    /// nothing.
    pub fn is_alive(&self) -> Result<bool, Error> {
        let mut ticks = 0u64;
        // SAFETY: the attribute is a u64, and a runtime that is not initialised says so.
        let status =
            unsafe { (self.hsa_system_get_info)(SYSTEM_INFO_TIMESTAMP, (&raw mut ticks).cast()) };
        if status == Status::NOT_INITIALIZED {
            return Ok(false);
        }
        ok("hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP)", status).map(|()| true)
    }

    /// Keeps HSA alive until the process ends. To be called when it is alive.
    pub fn hold(&self) -> Result<(), Error> {
        // SAFETY: HSA is initialised; this only adds a reference (hsa.h, hsa_init).
        ok("hsa_init", unsafe { (self.hsa_init)() })
    }

    /// The AMD loader extension. HSA must be alive.
    pub fn loader(&self) -> Result<&LoaderTable, Error> {
        if let Some(table) = self.loader.get() {
            return Ok(table);
        }
        let mut table = std::mem::MaybeUninit::<LoaderTable>::zeroed();
        // SAFETY: the runtime writes at most the given number of bytes.
        let status = unsafe {
            (self.hsa_system_get_major_extension_table)(
                EXTENSION_AMD_LOADER,
                1,
                size_of::<LoaderTable>(),
                table.as_mut_ptr().cast(),
            )
        };
        ok(
            "hsa_system_get_major_extension_table(HSA_EXTENSION_AMD_LOADER)",
            status,
        )?;
        // SAFETY: zero where the runtime has less of the table, which is looked at as a number first.
        let last = unsafe {
            (&raw const (*table.as_ptr()).iterate_executables)
                .cast::<usize>()
                .read()
        };
        if last == 0 {
            return Err(Error::Missing("hsa_ven_amd_loader_iterate_executables"));
        }
        // SAFETY: its last function is there, and so are those before it; the call succeeded.
        Ok(self.loader.get_or_init(|| unsafe { table.assume_init() }))
    }
}
