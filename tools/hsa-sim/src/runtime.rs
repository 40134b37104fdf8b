//! The life of the runtime in a process: counted initialisation, everything that lives between the first `hsa_init`
//! and the last `hsa_shut_down`, and how the functions get at it.

use crate::agent::Agents;
use crate::executable::Executables;
use crate::memory::Memory;
use crate::settings::Settings;
use crate::signal::Signals;
use crate::{api, plan, tools};
use hsa_abi::*;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What there is while the runtime is initialised.
pub struct State {
    references: u32,
    pub settings: Settings,
    pub agents: Agents,
    pub memory: Memory,
    pub signals: Signals,
    pub executables: Executables,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);
/// Initialisation and shutdown call tools, which call back: they exclude each other with a lock of their own.
static LIFE: Mutex<()> = Mutex::new(());

/// Locks a mutex; a panic of another thread ends the process anyway.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A number that no other object of this process has.
pub fn new_handle() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0x5151_0000_0000);
    NEXT.fetch_add(16, Relaxed)
}

/// Does `work` with the state, if the runtime is initialised. Nothing that calls the program may run in it.
pub fn with<T>(work: impl FnOnce(&mut State) -> Result<T, Status>) -> Result<T, Status> {
    match locked(&STATE).as_mut() {
        Some(state) => work(state),
        None => Err(Status::NOT_INITIALIZED),
    }
}

/// The status of a call.
pub fn status(result: Result<(), Status>) -> Status {
    result.err().unwrap_or(Status::SUCCESS)
}

/// Writes a result, or the lie that the plan wants told instead.
///
/// # Safety
/// `to` is null or may be written.
pub unsafe fn put<T: Plain>(to: *mut T, value: T) -> Result<(), Status> {
    if to.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    let value = plan::take_lie().map_or(value, T::from_u64);
    // SAFETY: the caller's promise. Attributes need not be aligned in the program's memory.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Writes a string attribute: bytes without a terminator.
///
/// # Safety
/// `to` has room for them.
pub unsafe fn put_bytes(to: *mut u8, bytes: &[u8]) -> Result<(), Status> {
    if to.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    let lie = plan::take_lie();
    // SAFETY: the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    if let Some(lie) = lie {
        let size = bytes.len().min(8);
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(lie.to_le_bytes().as_ptr(), to, size) };
    }
    Ok(())
}

/// What an attribute can be, and what a lie makes of it.
pub trait Plain: Copy {
    fn from_u64(value: u64) -> Self;
}

macro_rules! plain {
    ($($ty:ty),*) => {$(
        impl Plain for $ty {
            fn from_u64(value: u64) -> $ty {
                value as $ty
            }
        }
    )*};
}

plain!(u8, u16, u32, i32, u64, i64, usize);

macro_rules! handles {
    ($($ty:ident),*) => {$(
        impl Plain for $ty {
            fn from_u64(value: u64) -> $ty {
                $ty(value)
            }
        }
    )*};
}

handles!(
    AgentHandle,
    ExecutableHandle,
    IsaHandle,
    ReaderHandle,
    SignalHandle,
    SymbolHandle
);

impl Plain for bool {
    fn from_u64(value: u64) -> bool {
        value != 0
    }
}

impl Plain for Dim3 {
    fn from_u64(value: u64) -> Dim3 {
        let x = value as u32;
        Dim3 { x, y: x, z: x }
    }
}

impl<T: Plain, const N: usize> Plain for [T; N] {
    fn from_u64(value: u64) -> [T; N] {
        [T::from_u64(value); N]
    }
}

/// See `hsa.h`.
///
/// # Safety
/// Always sound.
pub unsafe fn hsa_init() -> Status {
    let life = locked(&LIFE);
    if let Some(state) = locked(&STATE).as_mut() {
        if state.references == i32::MAX as u32 {
            return Status::REFCOUNT_OVERFLOW;
        }
        state.references += 1;
        return Status::SUCCESS;
    }
    let settings = match plan::from_env().and_then(|()| Settings::from_env()) {
        Ok(settings) => settings,
        Err(error) => {
            eprintln!("hsa-sim: {error}");
            return Status::ERROR;
        }
    };
    let agents = Agents::new(&settings);
    let for_tools = settings.clone();
    *locked(&STATE) = Some(State {
        references: 1,
        memory: Memory::new(&settings),
        signals: Signals::default(),
        executables: Executables::default(),
        agents,
        settings,
    });
    // Tools call HSA's functions, hsa_init among them, from their OnLoad.
    drop(life);
    tools::load(&for_tools);
    Status::SUCCESS
}

/// See `hsa.h`.
///
/// # Safety
/// Always sound; what was made before is gone after the last reference.
pub unsafe fn hsa_shut_down() -> Status {
    {
        let _life = locked(&LIFE);
        let mut state = locked(&STATE);
        let Some(state) = state.as_mut() else {
            return Status::NOT_INITIALIZED;
        };
        if state.references > 1 {
            state.references -= 1;
            return Status::SUCCESS;
        }
    }
    // The tools may still use everything.
    tools::unload();
    api::TABLES.reset();
    let _life = locked(&LIFE);
    let state = locked(&STATE).take();
    crate::queue::destroy_all();
    crate::signal::stop();
    crate::copy::stop();
    if let Some(mut state) = state {
        state.memory.free_all();
    }
    Status::SUCCESS
}

/// What the program has and has not given back: 0 signals, 1 allocations from pools, 2 executables, 3 queues, 4 code
/// object readers. For tests that look for leaks.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_sim_live(what: u32) -> u64 {
    with(|state| {
        Ok(match what {
            0 => state.signals.live(),
            1 => state.memory.live(),
            2 => state.executables.live(),
            3 => crate::queue::live(),
            4 => state.executables.live_readers(),
            _ => u64::MAX,
        })
    })
    .unwrap_or(0)
}
