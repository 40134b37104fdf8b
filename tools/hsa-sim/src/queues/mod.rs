//! Queues: their memory, who processes their packets, and the kinds of queues that ROCr has.

pub mod block;
pub mod cooperative;
pub mod counted;
pub mod create;
pub mod host;
pub mod intercept;
pub mod interception;
pub mod lifetime;
pub mod notifier;
