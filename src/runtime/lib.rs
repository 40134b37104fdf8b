//! devprof saves the counters of instrumented GPU kernels and traces kernel dispatches. README.md in this folder
//! describes the design and the layers.

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
