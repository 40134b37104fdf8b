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
//! What the model does not know ends the dispatch with the place: it never guesses. Under ROCr that ends the
//! process.
//!
//! # As a library
//!
//! Whoever has the memory and the packets needs no ROCr. [`memory::Memory`] is told which addresses are allocated
//! (in a process that is its own GPU, with base 0, GPU addresses are its own); [`dispatch::Gpu::dispatch`] runs one
//! kernel on the calling thread, [`queue::Queue`] processes an AQL ring on a thread of its own.
//!
//! ```
//! use gpu_model::{dispatch::{Gpu, Packet}, memory::Memory};
//!
//! // A kernel without arguments that ends at once, and its descriptor at a multiple of 64.
//! #[repr(align(64))]
//! struct Image([u32; 32]);
//! let mut image = Image([0; 32]);
//! image.0[4] = 64; // KERNEL_CODE_ENTRY_BYTE_OFFSET
//! image.0[16] = 0xbfb0_0000; // s_endpgm
//!
//! let address = &raw const image as u64;
//! let memory = Memory::new(0);
//! // SAFETY: `image` stays where it is until the GPU has gone, and nobody writes to it.
//! unsafe { memory.allocated(address, 128, false) };
//! let gpu = Gpu::new(memory);
//! let packet = Packet {
//!     workgroup_size: [256, 1, 1],
//!     grid_size: [1000, 1, 1],
//!     kernel_object: address,
//!     ..Packet::default()
//! };
//! gpu.dispatch(&packet, || false)?;
//! # Ok::<(), gpu_model::dispatch::Error>(())
//! ```

mod clock;
pub mod dispatch;
pub mod exec;
mod fault;
pub mod isa;
pub mod memory;
pub mod queue;
pub mod rocr;
mod thread;
pub mod topology;
pub mod wave;
