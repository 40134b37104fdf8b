//! The devices: agents, their memory and their clocks.

pub mod agents;
pub mod clock;
pub mod l2;
pub mod mapping;
pub mod shared_file;
