//! The CUDA driver, for NVIDIA GPUs. CUPTI, which comes with the CUDA Toolkit, reports what is loaded.
//!
//! | module | what |
//! | --- | --- |
//! | [`driver`] | the driver's functions |
//! | [`cupti`] | CUPTI's functions, and the search for its library |
//! | [`image`] | a cubin's counters, records and names |
//! | [`code`] | the images in code that a program loads, and which of them the driver uses |
//! | [`registry`] | the contexts, libraries and instrumented modules of this process |
//! | [`primary`] | the users of primary contexts |
//! | [`observed`] | what the driver's functions load and unload: fills the registry and reports events |
//! | [`subscriber`] | CUPTI's callbacks about loaded modules and calls |
//! | [`wrapped`] | functions of the driver that the shared library wraps, for the case that CUPTI cannot be used |
//! | [`without_cupti`] | finds the modules then |
//! | [`api_calls`] | API calls, for a trace |
//! | [`activity`] | CUPTI's records of kernels and copies, for a trace |
//! | [`devices`] | the descriptions of devices, for a trace |
//! | [`handles`] | the module handle of each image, and the addresses of its counters |
//! | [`transfer`] | batches of reads and fills |
//! | [`copies`] | copies of the counters, one for each multiprocessor |
//! | [`prepare`] | sets them up |
//! | [`cuda_runtime`] | implements [`Runtime`](crate::gpu::runtime::Runtime) |
//! | [`wait`] | waits for running kernels |
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
pub mod devices;
mod driver;
mod handles;
mod image;
mod observed;
mod prepare;
mod primary;
mod registry;
pub mod subscriber;
mod transfer;
pub mod wait;
pub mod without_cupti;
pub mod wrapped;
