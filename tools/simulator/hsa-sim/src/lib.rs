//! A simulated HSA runtime in a shared library. Programs that use HSA run with it on machines without a GPU and without
//! AMD's software. Tests use it for behaviour that real hardware shows rarely.
//!
//! `libhsa_sim.so` has the soname of AMD's runtime, `libhsa-runtime64.so.1`. So once it is loaded under any name,
//! `dlopen("libhsa-runtime64.so.1", RTLD_NOLOAD)` finds it. Programs that are linked against AMD's runtime find it through
//! a link of that name in a directory of `LD_LIBRARY_PATH`. `tools/simulator/hsa-sim/build` links a library with the symbol versions
//! of AMD's library, so that such programs start without a warning. Kernels run on the GPU model of `tools/simulator/gpu-model`.
//!
//! A module uses only modules of its own layer and of lower layers, and there are no dependency cycles. The layers, lowest
//! first:
//!
//! | layer | contents |
//! | --- | --- |
//! | [`sync`] | locks |
//! | [`faults`] | the fault plan: fault injection |
//! | [`results`] | how functions return results |
//! | [`settings`], [`system_events`] | settings from the environment; handlers of system events |
//! | [`device`] | agents, clocks, mapped memory, caches |
//! | [`memory`] | pools and allocations |
//! | [`signals`], [`executables`] | signals and their handlers; code objects, executables, symbols |
//! | [`state`] | everything that lives until shutdown |
//! | [`copies`], [`queues`] | the copy engine; queues of all kinds |
//! | [`hsa`] | HSA's functions |
//! | [`tools`] | the libraries of `HSA_TOOLS_LIB` |
//! | [`api`] | the API tables and the exported functions |
//!
//! [`hsa_abi`] declares HSA's constants, layouts and function types.

pub mod api;
pub mod copies;
pub mod device;
pub mod executables;
pub mod faults;
pub mod hsa;
pub mod memory;
pub mod queues;
pub mod results;
pub mod settings;
pub mod signals;
pub mod state;
pub mod sync;
pub mod system_events;
pub mod tools;
