//! Asynchronous handlers of signals, and the thread that calls them.

use super::changes::{POLL_INTERVAL, holds, notify, version, wait_since};
use super::pool::get;
use crate::sync::locked;
use gpu_model::thread::{self, Thread};
use hsa_abi::*;
use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Acquire;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

/// A function that the thread calls when a signal meets a condition, or as soon as possible.
pub struct Handler {
    /// The signal, the condition and the value to compare with. `None`: as soon as possible.
    pub on: Option<(SignalHandle, u32, SignalValue)>,
    pub call: Call,
}

#[derive(Clone, Copy)]
pub enum Call {
    Handler(SignalHandler, usize),
    Function(unsafe extern "C" fn(*mut c_void), usize),
}

#[derive(Default)]
struct Events {
    handlers: Vec<Handler>,
    /// The signal whose handler is running.
    running: Option<SignalHandle>,
    thread: Option<Thread>,
    stop: bool,
}

static EVENTS: Mutex<Events> = Mutex::new(Events {
    handlers: Vec::new(),
    running: None,
    thread: None,
    stop: false,
});

/// Adds a handler.
pub fn add(handler: Handler) -> Result<(), Status> {
    let mut events = locked(&EVENTS);
    events.handlers.push(handler);
    if events.thread.is_none() {
        events.stop = false;
        match thread::spawn(c"hsa-sim events", run) {
            Ok(thread) => events.thread = Some(thread),
            Err(_) => {
                events.handlers.pop();
                return Err(Status::OUT_OF_RESOURCES);
            }
        }
    }
    drop(events);
    notify();
    Ok(())
}

/// The thread that calls handlers.
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
                idle = POLL_INTERVAL;
            }
            let next = events.handlers.iter().enumerate().find_map(|(n, handler)| {
                let Some((signal, condition, compare)) = handler.on else {
                    return Some((n, 0));
                };
                // SAFETY: HSA requires that a signal with a handler is not destroyed. A destroyed one is skipped.
                let value = unsafe { get(signal) }?.value.load(Acquire);
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
                // SAFETY: the program has registered the function with this argument.
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

/// Removes the handlers of a signal. If one is running, waits for it, unless it is the caller.
pub fn remove(signal: SignalHandle) {
    loop {
        let mut events = locked(&EVENTS);
        events
            .handlers
            .retain(|handler| handler.on.is_none_or(|(on, ..)| on != signal));
        let here = events.thread.as_ref().is_some_and(Thread::is_current);
        if events.running != Some(signal) || here {
            return;
        }
        drop(events);
        std::thread::yield_now();
    }
}

/// Whether a handler of a signal runs, or can run because its condition holds.
pub fn can_run(signal: SignalHandle) -> bool {
    let events = locked(&EVENTS);
    // SAFETY: HSA requires that a signal with a handler is not destroyed. A destroyed one is skipped.
    let value = unsafe { get(signal) }.map(|signal| signal.value.load(Acquire));
    let is_ready = |handler: &Handler| match (handler.on, value) {
        (Some((on, condition, compare)), Some(value)) => {
            on == signal && holds(condition, value, compare)
        }
        _ => false,
    };
    events.running == Some(signal) || events.handlers.iter().any(is_ready)
}

/// The longest wait for handlers while the process exits: one may wait for the thread that exits.
const PASS_LIMIT: Duration = Duration::from_secs(10);

/// Waits until the thread has called all handlers that can run now.
pub fn pass() {
    unsafe extern "C" fn end(done: *mut c_void) {
        // SAFETY: from `pass`, and called once.
        let done = unsafe { Box::from_raw(done.cast::<Sender<()>>()) };
        // The receiver is dropped if the limit was reached.
        let _ = done.send(());
    }
    match &locked(&EVENTS).thread {
        Some(thread) if !thread.is_current() => {}
        _ => return,
    }
    let (done, is_done) = mpsc::channel::<()>();
    let done = Box::into_raw(Box::new(done));
    // The thread calls this function after the handlers in front of it.
    let added = add(Handler {
        on: None,
        call: Call::Function(end, done as usize),
    });
    if added.is_ok() {
        // An error: the limit was reached.
        let _ = is_done.recv_timeout(PASS_LIMIT);
    }
}

/// At shutdown: ends the thread. Handlers that it has not called are dropped.
pub fn stop() {
    let thread = {
        let mut events = locked(&EVENTS);
        events.stop = true;
        events.handlers.clear();
        events.thread.take()
    };
    notify();
    if let Some(thread) = thread {
        thread.join();
    }
}
