//! The source of CUDA's kernels and copies, which come from CUPTI (`nvidia/activity.rs`): [`calls`] observes the API
//! calls, [`launches`] keeps them until their records arrive, [`modules`] knows which modules have which kernels, and
//! [`source`] writes the records.

pub mod calls;
mod delivery;
mod launches;
mod modules;
mod source;

pub use delivery::{context_destroying, cuda_now, cuda_started, set_traced};
pub use modules::{module_loaded, modules_unloading};
pub use source::Activities;
