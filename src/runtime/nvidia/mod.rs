//! The CUDA driver, for NVIDIA GPUs. CUPTI, which comes with the CUDA Toolkit, reports the code that is loaded.
//!
//! A cubin has no bounds tables, and its counters are single variables that the driver finds by name. A module is
//! therefore presented as a code object of its own layout: its *virtual* addresses begin with a bounds table, which is
//! followed by the version, the names, the records and the counters. The rest of the pipeline then handles it like any
//! other code object.

/// The variable with the path of a library that the driver loads when it is initialized.
pub const INJECTION: &str = "CUDA_INJECTION64_PATH";

pub mod activity;
mod api_calls;
mod code;
mod copies;
pub mod cuda_runtime;
mod cupti;
mod driver;
mod handles;
pub mod image;
mod instrument;
mod observed;
mod prepare;
mod primary;
mod ptx_of_code;
mod registry;
mod saved;
pub mod subscriber;
pub mod traced;
mod transfer;
pub mod wait;
pub mod without_cupti;
pub mod wrapped;
