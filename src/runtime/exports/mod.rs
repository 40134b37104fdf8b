//! Every symbol that devprof exports. No panic leaves a function of this folder.
//!
//! | module | symbols | exported by |
//! | --- | --- | --- |
//! | [`entry_points`] | `__llvm_profile_…`, `devprof_…`; what ROCr, the CUDA driver and NVTX call | all libraries (ROCr's, the driver's and NVTX's: the shared library) |
//! | [`hsa`] | `hsa_init`, `hsa_shut_down`, executables and queues | all libraries |
//! | [`hip`] | HIP's functions | the shared library |
//! | [`roctx`] | roctx's functions | the shared library |
//! | [`cuda`] | functions of the CUDA driver | the shared library |
//! | [`dlsym`] | `dlsym`, which returns the functions of the three modules before | the shared library |
//! | [`exec`] | `execve` and its family | the shared library |
//!
//! HIP's and roctx's functions, `dlsym` and `execve` are tables of [`replaced`] functions.
//!
//! The names are real in the builds of tools/build-runtime: [`hsa`] with the feature `interpose`, and [`hip`], [`cuda`],
//! [`dlsym`] and [`exec`] with the feature `shared`. The archives must not define the latter, because their own calls would
//! reach them. tools/build-runtime lists the symbols that an archive exports.

mod cuda;
mod dlsym;
mod entry_points;
mod exec;
mod hip;
mod hsa;
mod machine;
mod replaced;
mod roctx;
