//! devprof saves what GPU kernels counted.
//!
//! A HIP program built with clang's profile instrumentation keeps its counters in GPU memory. devprof finds them on
//! every HSA agent, in every loaded code object, checks them, copies them back and writes `.profraw` files that
//! `llvm-profdata` and `llvm-cov` read. It is linked in (`libdevprof.a`) or loaded beside the program (`libdevprof.so`).
//!
//! The way of the data, a module a stage:
//!
//! | stage | module |
//! | --- | --- |
//! | a trigger: exit, collect call, an executable's end, HSA's end; a snapshot's time, a signal | [`entry`], and [`instance`] where there are several copies; [`snapshot`], [`signals`] |
//! | agents, loaded executables, bounds tables | [`discover`] |
//! | every range inside a loaded segment | [`check`], for what [`object`] reads |
//! | the GPU's caches to its memory; device memory to its place in the profile, in the fewest copies | [`hsa::copy`], [`copy`] |
//! | raw profile, version 10 or 11 | [`encode`], by the rules of [`profraw`] |
//! | name, pattern, rename | [`files`], [`pattern`], [`place`], and [`merge`] for %m |
//!
//! Beside that, [`trace`] records every kernel dispatch, when DEVPROF_TRACE asks for it; its stages are listed there.
//!
//! [`drain`] leads one drain through them. [`hsa`] and [`host`] are the only modules that call foreign functions.

mod build_id;
mod check;
mod copy;
mod discover;
mod drain;
mod encode;
mod entry;
mod files;
mod guard;
mod host;
mod hsa;
mod instance;
mod journal;
mod merge;
mod object;
mod pattern;
mod place;
mod registry;
mod report;
mod room;
mod settings;
mod signals;
mod signature;
mod snapshot;
mod trace;
mod unwind;
