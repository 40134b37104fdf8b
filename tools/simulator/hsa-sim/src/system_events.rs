//! Handlers of system events.

use crate::sync::locked;
use hsa_abi::*;
use std::ffi::c_void;
use std::sync::Mutex;

type EventHandler = (SystemEventCallback, usize);

static HANDLERS: Mutex<Vec<EventHandler>> = Mutex::new(Vec::new());

/// Adds a handler.
pub fn register(callback: SystemEventCallback, data: *mut c_void) {
    locked(&HANDLERS).push((callback, data as usize));
}

/// Reports a memory fault to the handlers. Returns whether one of them has handled it.
pub fn memory_fault(agent: AgentHandle, virtual_address: u64) -> bool {
    let event = MemoryFault {
        event_type: 0,
        agent,
        virtual_address,
        fault_reason_mask: 1,
    };
    let handlers = locked(&HANDLERS).clone();
    handlers.into_iter().any(|(callback, data)| {
        // SAFETY: the program has registered the function for this; the event lives as long as the call.
        let status = unsafe { callback((&raw const event).cast(), data as *mut c_void) };
        status == Status::SUCCESS
    })
}
