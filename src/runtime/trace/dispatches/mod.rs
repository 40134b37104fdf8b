//! The source of HSA's dispatches. The way of a dispatch: [`packet_origins`], [`capture`], [`in_flight`], [`source`].

pub mod capture;
mod doorbells;
mod in_flight;
mod kernel_addresses;
pub mod packet_origins;
mod queue;
pub mod signal_times;
mod source;

pub use source::Dispatches;
