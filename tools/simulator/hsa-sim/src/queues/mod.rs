//! Queues of all kinds that ROCr supports.

pub mod block;
pub mod cooperative;
pub mod counted;
pub mod create;
pub mod gaps;
pub mod host;
pub mod intercept;
pub mod interception;
pub mod lifetime;
pub mod notifier;
