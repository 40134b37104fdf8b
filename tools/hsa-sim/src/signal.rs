//! Signals: `amd_signal_t`s in blocks that every GPU may use, waits on them, and handlers that run when they change.

use crate::memory::{self, Kind};
use crate::queue;
use crate::runtime::{State, locked, put, status, with};
use hsa_abi::*;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::atomic::{
    AtomicI64, AtomicU64, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Release,
    Ordering::SeqCst,
};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Signals that are not in use, and how many are.
#[derive(Default)]
pub struct Signals {
    free: VecDeque<SignalHandle>,
    used: u64,
}

/// Bytes of a block of signals.
const BLOCK: usize = 1 << 16;

impl Signals {
    /// Signals that the program has created and not destroyed.
    pub fn live(&self) -> u64 {
        self.used
    }
}

/// A new signal. `event_id` is not 0, so that the model tells of its changes.
pub fn create(state: &mut State, kind: i64, value: SignalValue) -> Result<SignalHandle, Status> {
    if state.signals.free.is_empty() {
        let users = memory::all_gpus(&state.agents);
        let base = state
            .memory
            .allocate(&state.agents, BLOCK, Kind::Runtime, 0, 0, users)
            .ok_or(Status::OUT_OF_RESOURCES)?;
        let each = size_of::<AmdSignal>();
        let all = (base..base + BLOCK).step_by(each);
        state
            .signals
            .free
            .extend(all.map(|at| SignalHandle(at as u64)));
    }
    let signal = state
        .signals
        .free
        .pop_front()
        .ok_or(Status::OUT_OF_RESOURCES)?;
    // SAFETY: the place is aligned, in a block of ours, and used by nobody.
    unsafe {
        (signal.0 as *mut AmdSignal).write(AmdSignal {
            kind,
            value: AtomicI64::new(value),
            event_mailbox_ptr: 0,
            event_id: 1,
            reserved1: 0,
            start_ts: AtomicU64::new(0),
            end_ts: AtomicU64::new(0),
            queue_ptr: std::ptr::null_mut(),
            reserved3: [0; 2],
        });
    }
    state.signals.used += 1;
    Ok(signal)
}

/// Gives a signal back.
pub fn destroy(state: &mut State, signal: SignalHandle) {
    // SAFETY: from `create`, and the program uses it no longer.
    unsafe { (*(signal.0 as *mut AmdSignal)).kind = 0 };
    state.signals.free.push_back(signal);
    state.signals.used -= 1;
}

/// The signal of a handle; `None` for the null signal and for one that was destroyed.
///
/// # Safety
/// The handle is 0 or was given out by this runtime since it was initialised.
pub unsafe fn at<'a>(signal: SignalHandle) -> Option<&'a AmdSignal> {
    // SAFETY: the caller's promise; blocks live until shutdown.
    unsafe { (signal.0 as *const AmdSignal).as_ref() }.filter(|signal| signal.kind != 0)
}

/// As [`at`], for functions without a status: a bad handle ends the process, as in ROCr.
///
/// # Safety
/// As for [`at`].
unsafe fn valid<'a>(signal: SignalHandle) -> &'a AmdSignal {
    // SAFETY: the caller's promise.
    match unsafe { at(signal) } {
        Some(signal) => signal,
        None => {
            eprintln!("hsa-sim: {:#x} is no signal", signal.0);
            std::process::abort();
        }
    }
}

static VERSION: AtomicU64 = AtomicU64::new(0);
static WAITERS: AtomicUsize = AtomicUsize::new(0);
static BELL: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());

/// Counts the changes that were told.
pub fn version() -> u64 {
    VERSION.load(SeqCst)
}

/// Tells whoever waits that something has changed.
pub fn changed() {
    VERSION.fetch_add(1, SeqCst);
    if WAITERS.load(SeqCst) > 0 {
        drop(locked(&BELL.0));
        BELL.1.notify_all();
    }
}

/// Waits until something has changed since [`version`] was `seen`, but not longer than `most`.
pub fn wait_since(seen: u64, most: Duration) {
    WAITERS.fetch_add(1, SeqCst);
    let bell = locked(&BELL.0);
    drop(
        BELL.1
            .wait_timeout_while(bell, most, |()| version() == seen)
            .unwrap_or_else(PoisonError::into_inner),
    );
    WAITERS.fetch_sub(1, SeqCst);
}

fn holds(condition: u32, value: SignalValue, compare: SignalValue) -> bool {
    match condition {
        HSA_SIGNAL_CONDITION_EQ => value == compare,
        HSA_SIGNAL_CONDITION_NE => value != compare,
        HSA_SIGNAL_CONDITION_LT => value < compare,
        HSA_SIGNAL_CONDITION_GTE => value >= compare,
        _ => {
            eprintln!("hsa-sim: {condition} is no signal condition");
            std::process::abort();
        }
    }
}

/// How long a wait looks at the value without sleeping.
const SPIN: Duration = Duration::from_micros(30);
/// Kernels change signals without telling.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Waits until `met` gives something, at most `timeout` ticks of the system's clock.
fn wait<T>(timeout: u64, met: impl Fn() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        let seen = version();
        if let Some(found) = met() {
            return Some(found);
        }
        let waited = start.elapsed();
        let left = Duration::from_nanos(timeout).saturating_sub(waited);
        if left.is_zero() {
            return None;
        }
        if waited < SPIN {
            std::thread::yield_now();
        } else {
            wait_since(seen, left.min(LOOK_AGAIN));
        }
    }
}

/// See `hsa.h`.
///
/// # Safety
/// As `hsa.h` says.
pub unsafe fn hsa_signal_create(
    value: SignalValue,
    consumers: u32,
    agents: *const AgentHandle,
    signal: *mut SignalHandle,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe { hsa_amd_signal_create(value, consumers, agents, 0, signal) }
}

/// See `hsa_ext_amd.h`.
///
/// # Safety
/// As `hsa_ext_amd.h` says.
pub unsafe fn hsa_amd_signal_create(
    value: SignalValue,
    consumers: u32,
    agents: *const AgentHandle,
    attributes: u64,
    signal: *mut SignalHandle,
) -> Status {
    if signal.is_null() || (consumers > 0 && agents.is_null()) {
        return Status::INVALID_ARGUMENT;
    }
    // HSA_AMD_SIGNAL_AMD_GPU_ONLY makes no difference here; HSA_AMD_SIGNAL_IPC is not simulated.
    if attributes & !1 != 0 {
        return Status::NOT_SUPPORTED;
    }
    // SAFETY: the caller's promise.
    status(
        with(|state| create(state, AMD_SIGNAL_KIND_USER, value))
            .and_then(|new| unsafe { put(signal, new) }),
    )
}

/// See `hsa.h`.
///
/// # Safety
/// As `hsa.h` says.
pub unsafe fn hsa_signal_destroy(signal: SignalHandle) -> Status {
    if signal == SignalHandle(0) {
        return Status::INVALID_ARGUMENT;
    }
    status(with(|state| {
        // SAFETY: the caller's promise.
        match unsafe { at(signal) } {
            Some(found) if found.kind == AMD_SIGNAL_KIND_USER => {
                destroy(state, signal);
                Ok(())
            }
            _ => Err(Status::INVALID_SIGNAL),
        }
    }))
}

macro_rules! loads {
    ($($name:ident)*) => {$(
        /// See `hsa.h`.
        ///
        /// # Safety
        /// As `hsa.h` says.
        pub unsafe fn $name(signal: SignalHandle) -> SignalValue {
            // SAFETY: the caller's promise.
            unsafe { valid(signal) }.value.load(Acquire)
        }
    )*};
}

loads! { hsa_signal_load_relaxed hsa_signal_load_scacquire }

/// A store: to a doorbell, it rings.
///
/// # Safety
/// As for [`at`].
unsafe fn store(signal: SignalHandle, value: SignalValue, tell: bool) {
    // SAFETY: the caller's promise.
    let found = unsafe { valid(signal) };
    found.value.store(value, Release);
    if found.kind == AMD_SIGNAL_KIND_DOORBELL {
        // SAFETY: a doorbell has its queue, which lives as long as the doorbell.
        unsafe { queue::ring(found.queue_ptr) };
    } else if tell {
        changed();
    }
}

macro_rules! stores {
    ($($name:ident: $tell:literal)*) => {$(
        /// See `hsa.h`.
        ///
        /// # Safety
        /// As `hsa.h` says.
        pub unsafe fn $name(signal: SignalHandle, value: SignalValue) {
            // SAFETY: the caller's promise.
            unsafe { store(signal, value, $tell) }
        }
    )*};
}

stores! {
    hsa_signal_store_relaxed: true
    hsa_signal_store_screlease: true
    hsa_signal_silent_store_relaxed: false
    hsa_signal_silent_store_screlease: false
}

macro_rules! updates {
    ($($name:ident: $fetch:ident)*) => {$(
        /// See `hsa.h`. As strong an order as any of its kind.
        ///
        /// # Safety
        /// As `hsa.h` says.
        pub unsafe fn $name(signal: SignalHandle, value: SignalValue) {
            // SAFETY: the caller's promise.
            unsafe { valid(signal) }.value.$fetch(value, AcqRel);
            changed();
        }
    )*};
}

updates! {
    hsa_signal_and_relaxed: fetch_and
    hsa_signal_and_scacquire: fetch_and
    hsa_signal_and_screlease: fetch_and
    hsa_signal_and_scacq_screl: fetch_and
    hsa_signal_or_relaxed: fetch_or
    hsa_signal_or_scacquire: fetch_or
    hsa_signal_or_screlease: fetch_or
    hsa_signal_or_scacq_screl: fetch_or
    hsa_signal_xor_relaxed: fetch_xor
    hsa_signal_xor_scacquire: fetch_xor
    hsa_signal_xor_screlease: fetch_xor
    hsa_signal_xor_scacq_screl: fetch_xor
    hsa_signal_add_relaxed: fetch_add
    hsa_signal_add_scacquire: fetch_add
    hsa_signal_add_screlease: fetch_add
    hsa_signal_add_scacq_screl: fetch_add
    hsa_signal_subtract_relaxed: fetch_sub
    hsa_signal_subtract_scacquire: fetch_sub
    hsa_signal_subtract_screlease: fetch_sub
    hsa_signal_subtract_scacq_screl: fetch_sub
}

macro_rules! exchanges {
    ($($name:ident)*) => {$(
        /// See `hsa.h`.
        ///
        /// # Safety
        /// As `hsa.h` says.
        pub unsafe fn $name(signal: SignalHandle, value: SignalValue) -> SignalValue {
            // SAFETY: the caller's promise.
            let old = unsafe { valid(signal) }.value.swap(value, AcqRel);
            changed();
            old
        }
    )*};
}

exchanges! {
    hsa_signal_exchange_relaxed
    hsa_signal_exchange_scacquire
    hsa_signal_exchange_screlease
    hsa_signal_exchange_scacq_screl
}

macro_rules! compares {
    ($($name:ident)*) => {$(
        /// See `hsa.h`.
        ///
        /// # Safety
        /// As `hsa.h` says.
        pub unsafe fn $name(
            signal: SignalHandle,
            expected: SignalValue,
            value: SignalValue,
        ) -> SignalValue {
            // SAFETY: the caller's promise.
            let of = &unsafe { valid(signal) }.value;
            let old = of.compare_exchange(expected, value, AcqRel, Acquire);
            changed();
            old.unwrap_or_else(|old| old)
        }
    )*};
}

compares! {
    hsa_signal_cas_relaxed
    hsa_signal_cas_scacquire
    hsa_signal_cas_screlease
    hsa_signal_cas_scacq_screl
}

macro_rules! waits {
    ($($name:ident)*) => {$(
        /// See `hsa.h`.
        ///
        /// # Safety
        /// As `hsa.h` says.
        pub unsafe fn $name(
            signal: SignalHandle,
            condition: u32,
            compare: SignalValue,
            timeout: u64,
            _hint: u32,
        ) -> SignalValue {
            // SAFETY: the caller's promise.
            let of = &unsafe { valid(signal) }.value;
            let met = wait(timeout, || {
                let value = of.load(Acquire);
                holds(condition, value, compare).then_some(value)
            });
            met.unwrap_or_else(|| of.load(Acquire))
        }
    )*};
}

waits! { hsa_signal_wait_relaxed hsa_signal_wait_scacquire }

/// What a wait for several signals is given, checked.
///
/// # Safety
/// The three arrays have `count` elements.
unsafe fn several<'a>(
    count: u32,
    signals: *const SignalHandle,
    conditions: *const u32,
    values: *const SignalValue,
) -> Vec<(Option<&'a AmdSignal>, u32, SignalValue)> {
    (0..count as usize)
        .map(|n| {
            // SAFETY: the caller's promise.
            unsafe { (at(*signals.add(n)), *conditions.add(n), *values.add(n)) }
        })
        .collect()
}

/// See `hsa_ext_amd.h`.
///
/// # Safety
/// As `hsa_ext_amd.h` says.
pub unsafe fn hsa_amd_signal_wait_any(
    count: u32,
    signals: *const SignalHandle,
    conditions: *const u32,
    values: *const SignalValue,
    timeout: u64,
    _hint: u32,
    satisfying: *mut SignalValue,
) -> u32 {
    // SAFETY: the caller's promise.
    let all = unsafe { several(count, signals, conditions, values) };
    let met = wait(timeout, || {
        all.iter()
            .enumerate()
            .find_map(|(n, (signal, condition, compare))| {
                let value = signal.as_ref()?.value.load(Acquire);
                holds(*condition, value, *compare).then_some((n as u32, value))
            })
    });
    match met {
        Some((n, value)) => {
            if !satisfying.is_null() {
                // SAFETY: the caller's promise.
                unsafe { satisfying.write(value) };
            }
            n
        }
        None => u32::MAX,
    }
}

/// See `hsa_ext_amd.h`.
///
/// # Safety
/// As `hsa_ext_amd.h` says.
pub unsafe fn hsa_amd_signal_wait_all(
    count: u32,
    signals: *const SignalHandle,
    conditions: *const u32,
    values: *const SignalValue,
    timeout: u64,
    _hint: u32,
    satisfying: *mut SignalValue,
) -> u32 {
    // SAFETY: the caller's promise.
    let all = unsafe { several(count, signals, conditions, values) };
    let met = wait(timeout, || {
        let values = all.iter().map(|(signal, condition, compare)| {
            let value = signal.map_or(0, |signal| signal.value.load(Acquire));
            (signal.is_none() || holds(*condition, value, *compare)).then_some(value)
        });
        values.collect::<Option<Vec<_>>>()
    });
    match met {
        Some(values) => {
            if !satisfying.is_null() {
                // SAFETY: the caller's promise: room for as many values as there are signals.
                unsafe {
                    std::ptr::copy_nonoverlapping(values.as_ptr(), satisfying, values.len());
                }
            }
            0
        }
        None => u32::MAX,
    }
}

/// See `hsa_ext_amd.h`.
///
/// # Safety
/// `value` may be written.
pub unsafe fn hsa_amd_signal_value_pointer(
    signal: SignalHandle,
    value: *mut *mut SignalValue,
) -> Status {
    status(with(|_| Ok(())).and_then(|()| {
        // SAFETY: the caller's promise. A pointer has the size of usize.
        unsafe {
            let found = at(signal).ok_or(Status::INVALID_ARGUMENT)?;
            put(value.cast(), found.value.as_ptr() as usize)
        }
    }))
}

/// Completes a signal with an error.
pub fn fail(signal: SignalHandle, times: Option<(u64, u64)>) {
    complete(signal, times, |value| value.store(-1, Release));
}

fn complete(signal: SignalHandle, times: Option<(u64, u64)>, how: impl FnOnce(&AtomicI64)) {
    // SAFETY: a signal of a packet; blocks of signals live until shutdown, which waits for those who come here late.
    let Some(signal) = (unsafe { at(signal) }) else {
        return;
    };
    if let Some((start, end)) = times {
        signal.start_ts.store(start, Release);
        signal.end_ts.store(end, Release);
    }
    how(&signal.value);
    changed();
}

/// Threads that complete a signal late.
static LATE: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// Completes a signal after some time, if it is still there.
pub fn complete_later(signal: SignalHandle, times: Option<(u64, u64)>, after: Duration) {
    let thread = std::thread::Builder::new()
        .name("hsa-sim late".into())
        .spawn(move || {
            std::thread::sleep(after);
            complete(signal, times, |value| {
                value.fetch_sub(1, AcqRel);
            });
        });
    match thread {
        Ok(thread) => {
            let mut late = locked(&LATE);
            late.retain(|thread| !thread.is_finished());
            late.push(thread);
        }
        Err(error) => {
            eprintln!("hsa-sim: no thread for a late completion: {error}");
            std::process::abort();
        }
    }
}

/// Something that the events' thread does when a signal has changed, or at once.
struct Handler {
    /// `None`: at once.
    on: Option<(SignalHandle, u32, SignalValue)>,
    call: Call,
}

#[derive(Clone, Copy)]
enum Call {
    Handler(SignalHandler, usize),
    Function(unsafe extern "C" fn(*mut c_void), usize),
}

#[derive(Default)]
struct Events {
    handlers: Vec<Handler>,
    /// The signal whose handler is being called.
    running: Option<SignalHandle>,
    thread: Option<JoinHandle<()>>,
    stop: bool,
}

static EVENTS: Mutex<Events> = Mutex::new(Events {
    handlers: Vec::new(),
    running: None,
    thread: None,
    stop: false,
});

fn add(handler: Handler) -> Status {
    if let Err(status) = with(|_| Ok(())) {
        return status;
    }
    let mut events = locked(&EVENTS);
    events.handlers.push(handler);
    if events.thread.is_none() {
        events.stop = false;
        let thread = std::thread::Builder::new()
            .name("hsa-sim events".into())
            .spawn(run);
        match thread {
            Ok(thread) => events.thread = Some(thread),
            Err(_) => {
                events.handlers.pop();
                return Status::OUT_OF_RESOURCES;
            }
        }
    }
    drop(events);
    changed();
    Status::SUCCESS
}

/// See `hsa_ext_amd.h`.
///
/// # Safety
/// As `hsa_ext_amd.h` says.
pub unsafe fn hsa_amd_signal_async_handler(
    signal: SignalHandle,
    condition: u32,
    value: SignalValue,
    handler: SignalHandler,
    data: *mut c_void,
) -> Status {
    // SAFETY: the caller's promise.
    if signal == SignalHandle(0) || unsafe { at(signal) }.is_none() {
        return Status::INVALID_SIGNAL;
    }
    if condition > HSA_SIGNAL_CONDITION_GTE {
        return Status::INVALID_ARGUMENT;
    }
    add(Handler {
        on: Some((signal, condition, value)),
        call: Call::Handler(handler, data as usize),
    })
}

/// See `hsa_ext_amd.h`.
///
/// # Safety
/// As `hsa_ext_amd.h` says.
pub unsafe fn hsa_amd_async_function(
    callback: unsafe extern "C" fn(*mut c_void),
    data: *mut c_void,
) -> Status {
    add(Handler {
        on: None,
        call: Call::Function(callback, data as usize),
    })
}

/// The events' thread.
fn run() {
    loop {
        let seen = version();
        let mut idle = Duration::from_secs(1);
        let ready = {
            let mut events = locked(&EVENTS);
            if events.stop {
                return;
            }
            if !events.handlers.is_empty() {
                idle = LOOK_AGAIN;
            }
            let next = events.handlers.iter().enumerate().find_map(|(n, handler)| {
                let Some((signal, condition, compare)) = handler.on else {
                    return Some((n, 0));
                };
                // SAFETY: a signal with a handler lives, as HSA asks of the program; a destroyed one is not called for.
                let value = unsafe { at(signal) }?.value.load(Acquire);
                holds(condition, value, compare).then_some((n, value))
            });
            next.map(|(n, value)| {
                let handler = events.handlers.remove(n);
                events.running = handler.on.map(|(signal, ..)| signal);
                (handler, value)
            })
        };
        match ready {
            None => wait_since(seen, idle),
            Some((handler, value)) => match handler.call {
                // SAFETY: the program registered the function with this argument.
                Call::Function(function, data) => unsafe { function(data as *mut c_void) },
                Call::Handler(function, data) => {
                    // SAFETY: as above.
                    let again = unsafe { function(value, data as *mut c_void) };
                    let mut events = locked(&EVENTS);
                    events.running = None;
                    if again {
                        events.handlers.push(handler);
                    }
                }
            },
        }
    }
}

/// Removes the handlers of a signal and waits for the one that is being called, unless that is the caller.
pub fn forget(signal: SignalHandle) {
    loop {
        let mut events = locked(&EVENTS);
        events
            .handlers
            .retain(|handler| handler.on.is_none_or(|(on, ..)| on != signal));
        let here = events
            .thread
            .as_ref()
            .is_some_and(|thread| thread.thread().id() == std::thread::current().id());
        if events.running != Some(signal) || here {
            return;
        }
        drop(events);
        std::thread::yield_now();
    }
}

/// Ends the thread; what was not called by then never is.
pub fn stop() {
    for thread in std::mem::take(&mut *locked(&LATE)) {
        if thread.join().is_err() {
            eprintln!("hsa-sim: internal error in a thread that completes a signal");
            std::process::abort();
        }
    }
    let thread = {
        let mut events = locked(&EVENTS);
        events.stop = true;
        events.handlers.clear();
        events.thread.take()
    };
    changed();
    if let Some(thread) = thread
        && thread.thread().id() != std::thread::current().id()
        && thread.join().is_err()
    {
        eprintln!("hsa-sim: internal error in the events' thread");
        std::process::abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn a_wait_ends_with_the_change_or_with_its_time() {
        let value = AtomicI64::new(1);
        let is_zero = || (value.load(Relaxed) == 0).then_some(());
        let start = Instant::now();
        assert_eq!(wait(20_000_000, is_zero), None);
        assert!(start.elapsed() >= Duration::from_millis(20));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(5));
                value.store(0, Relaxed);
                changed();
            });
            assert_eq!(wait(u64::MAX, is_zero), Some(()));
        });
    }

    #[test]
    fn conditions_are_those_of_the_header() {
        let met: Vec<_> = (0..4).map(|c| [-1, 0, 1].map(|v| holds(c, v, 0))).collect();
        assert_eq!(
            met,
            [
                [false, true, false],
                [true, false, true],
                [true, false, false],
                [false, true, true]
            ]
        );
    }
}
