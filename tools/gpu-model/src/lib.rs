//! A functional model of a gfx1100 GPU (RDNA3).
//!
//! The way of the data:
//!
//! | stage | module |
//! | --- | --- |
//! | ROCr hands over memory and queues | [`rocr`] (the only FFI) |
//! | a queue's AQL packets are read in order | [`queue`] |
//! | a kernel dispatch becomes workgroups and waves | [`dispatch`] |
//! | instruction words become an [`isa::Inst`] | [`isa`] |
//! | an instruction changes a [`wave::Wave`] and [`memory::Memory`] | [`exec`] |
//!
//! What the model does not know ends the process with the place: it never guesses.

mod code;
pub mod dispatch;
pub mod exec;
pub mod isa;
pub mod memory;
pub mod queue;
pub mod rocr;
mod symbol;
mod thread;
pub mod topology;
pub mod wave;
