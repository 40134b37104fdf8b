//! Asynchronous handlers of signals, and the thread that calls them.

use super::changes::{LOOK_AGAIN, changed, holds, version, wait_since};
use super::pool::at;
use crate::sync::locked;
use hsa_abi::*;
use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Acquire;
use std::thread::JoinHandle;
use std::time::Duration;

/// Something that the events' thread does when a signal has changed, or at once.
pub struct Handler {
    /// `None`: at once.
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

/// Adds a handler.
pub fn add(handler: Handler) -> Status {
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
