//! AMD GPUs: HSA (ROCr), and HIP if the program uses it. All calls of their functions are in this folder.

pub mod api;
pub mod cooperative;
pub mod copy_hooks;
mod device_memory;
pub mod doorbell;
pub mod hip;
pub mod hsa_runtime;
pub mod intercept;
pub mod kernels;
pub mod libraries;
pub mod observed_calls;
mod pools;
mod query;
mod queue_functions;
pub mod queue_request;
pub mod queues;
pub mod signals;
mod staging;
pub mod tables;
pub mod tool_hooks;
pub mod tools_variable;
pub mod trace_hooks;
pub mod traced;
pub mod wait;
