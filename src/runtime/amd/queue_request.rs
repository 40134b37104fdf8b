//! The arguments of `hsa_queue_create`, and of `hsa_amd_queue_intercept_create`, which has the same type.

use hsa_abi::{AgentHandle, HSA_QUEUE_TYPE_SINGLE, Queue, QueueErrorCallback, Status, function};
use std::ffi::c_void;

#[derive(Clone, Copy)]
pub struct QueueRequest {
    pub agent: AgentHandle,
    /// Packets.
    pub size: u32,
    pub kind: u32,
    pub callback: Option<QueueErrorCallback>,
    pub data: *mut c_void,
    pub private: u32,
    pub group: u32,
    pub queue: *mut *mut Queue,
}

impl QueueRequest {
    /// Calls `create` with the arguments. Returns the new queue, or HSA's error.
    ///
    /// # Safety
    /// As for `create`.
    pub unsafe fn send(&self, create: function::hsa_queue_create) -> Result<*mut Queue, Status> {
        // SAFETY: the caller's promise.
        let status = unsafe {
            create(
                self.agent,
                self.size,
                self.kind,
                self.callback,
                self.data,
                self.private,
                self.group,
                self.queue,
            )
        };
        // SAFETY: on success, the function has written the queue's address.
        unsafe { created(status, self.queue) }
    }

    /// Whether one thread at a time writes packets to the queue.
    pub fn is_single_producer(&self) -> bool {
        self.kind == HSA_QUEUE_TYPE_SINGLE
    }
}

/// The queue that a call has created, or HSA's error.
///
/// # Safety
/// If the call has succeeded, it has written the queue's address.
pub unsafe fn created(status: Status, queue: *const *mut Queue) -> Result<*mut Queue, Status> {
    match status {
        // SAFETY: the caller's promise.
        Status::SUCCESS => Ok(unsafe { *queue }),
        error => Err(error),
    }
}

/// The status of a call that creates a queue.
pub fn status(created: Result<*mut Queue, Status>) -> Status {
    created.err().unwrap_or(Status::SUCCESS)
}

/// Defines a function of the type of `hsa_queue_create`, from one that gets a [`QueueRequest`] and returns the queue or HSA's
/// error.
macro_rules! queue_create_function {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident = $request:ident) => {
        $(#[$attribute])*
        $visibility unsafe extern "C" fn $name(
            agent: hsa_abi::AgentHandle,
            size: u32,
            kind: u32,
            callback: Option<hsa_abi::QueueErrorCallback>,
            data: *mut std::ffi::c_void,
            private: u32,
            group: u32,
            queue: *mut *mut hsa_abi::Queue,
        ) -> hsa_abi::Status {
            let request = $crate::amd::queue_request::QueueRequest {
                agent,
                size,
                kind,
                callback,
                data,
                private,
                group,
                queue,
            };
            // SAFETY: the program's arguments.
            $crate::amd::queue_request::status(unsafe { $request(&request) })
        }
    };
}
pub(crate) use queue_create_function;
