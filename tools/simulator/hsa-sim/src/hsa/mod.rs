//! HSA's functions, by subject. [`crate::api`] exports them. `hsa.h`, `hsa_ext_amd.h`, `hsa_api_trace.h` and
//! `hsa_ven_amd_loader.h` specify their arguments, results and safety conditions. A comment at a function says what is
//! different here.

#![expect(clippy::missing_safety_doc, reason = "specified by HSA's headers")]
#![expect(clippy::too_many_arguments, reason = "HSA's signatures")]

pub mod agent;
pub mod allocation;
pub mod calls;
pub mod code_object;
pub mod control;
pub mod copy;
pub mod counted_queue;
pub mod executable;
pub mod intercept_queue;
pub mod ipc;
pub mod isa;
pub mod lifecycle;
pub mod loader;
pub mod memory_lock;
pub mod planned_objects;
pub mod pointer;
pub mod pool;
pub mod profiling;
pub mod queue;
pub mod queue_create;
pub mod reader;
pub mod signal;
pub mod signal_handler;
pub mod symbol;
pub mod system;
pub mod unsupported;
