//! An HSA runtime in a shared library, so that a program that speaks HSA runs where there is neither a GPU nor AMD's
//! stack, and so that a tool can be tried against what the real stack will not produce on order.
//!
//! `libhsa_sim.so` has the soname of AMD's runtime, `libhsa-runtime64.so.1`: once it is loaded under any name,
//! `dlopen("libhsa-runtime64.so.1", RTLD_NOLOAD)` finds it; for programs that are linked against AMD's, a link of that
//! name in a directory of `LD_LIBRARY_PATH` does. `tools/hsa-sim/build` links one with the symbol versions of AMD's, so that
//! such programs start without a message. Kernels run on the GPU model of `tools/gpu-model`.
//!
//! | part | module |
//! | --- | --- |
//! | numbers and layouts, checked against AMD's headers | [`abi`], [`headers`] |
//! | every function: its table, signature and module | [`api`] |
//! | initialisation, and what lives until shutdown | [`runtime`] |
//! | agents, ISAs | [`agent`], configured by [`settings`] |
//! | pools, regions, allocations, access | [`memory`] |
//! | mappings that the host can or cannot use, caches | [`device_memory`], [`l2`] |
//! | copies | [`copy`] |
//! | signals, waits, handlers | [`signal`] |
//! | queues, those of an agent, and queues with tools between | [`queue`], [`cooperative`], [`intercept`] |
//! | newer ways to get queues | [`queue_create`], [`counted`] |
//! | ELF files, executables, symbols | [`code_object`], [`executable`] |
//! | `hsa_ven_amd_loader` | [`loader`] |
//! | clocks and times | [`profiling`] |
//! | `HSA_TOOLS_LIB` | [`tools`] |
//! | faults on demand | [`plan`] |

pub mod agent;
pub mod api;
pub mod code_object;
pub mod cooperative;
pub mod copy;
pub mod counted;
pub mod device_memory;
pub mod executable;
pub mod intercept;
pub mod l2;
pub mod loader;
pub mod memory;
pub mod plan;
pub mod profiling;
pub mod queue;
pub mod queue_create;
pub mod runtime;
pub mod settings;
pub mod signal;
pub mod system;
pub mod tools;
