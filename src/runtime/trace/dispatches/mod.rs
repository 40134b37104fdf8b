//! The source of HSA's dispatches. The way of a dispatch: [`packet_origins`], [`capture`], [`in_flight`], [`source`].

mod capture;
mod doorbells;
mod events;
mod in_flight;
mod kernel_addresses;
mod packet_origins;
mod queue;
mod signal_times;
mod source;

pub use events::{
    dispatch_time, frozen, pause, queue_created, release, resume, signal_changed, signal_changing,
    signal_comparing, signal_destroying, slots_reserved,
};
pub use source::Dispatches;
