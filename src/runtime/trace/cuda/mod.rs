//! The source of CUDA's kernels and copies, which come from CUPTI (`nvidia/activity.rs`): [`calls`] observes the API
//! calls, [`launches`] keeps them until their records arrive, and [`source`] writes these.

pub mod calls;
mod delivery;
mod launches;
mod source;

pub use delivery::{context_destroying, cuda_now, cuda_started, set_traced};
pub use source::Activities;
