//! devprof saves the counters of instrumented GPU kernels and traces kernel dispatches. README.md in this folder
//! describes the design.
//!
//! From top to bottom; a module uses only layers below its own (tools/layers checks that):
//!
//! | layer | what |
//! | --- | --- |
//! | [`exports`] | every exported symbol |
//! | [`process`] | when to act: loading, events, snapshots, signals, forks, exit |
//! | [`trace`] | the pipeline of dispatches |
//! | [`drain`] | the pipeline of profiles |
//! | [`amd`], [`nvidia`] | a GPU runtime each |
//! | [`output`] | profile files and their names |
//! | [`gpu`] | the interface to GPU runtimes |
//! | [`support`] | memory, locks, settings, messages |
//! | [`sys`] | the operating system |

mod amd;
mod drain;
mod exports;
mod gpu;
mod nvidia;
mod output;
mod process;
mod support;
mod sys;
mod trace;
