//! A functional model of AMD GPUs: gfx1100 (RDNA3), gfx90a (CDNA2) and gfx942 (CDNA3).
//!
//! The layers, from the highest to the lowest. Each uses only layers below it:
//!
//! | module | task |
//! | --- | --- |
//! | [`rocr`] | ROCr registers memory and queues (the only C interface) |
//! | [`queue`] | reads a queue's AQL packets in order |
//! | [`dispatch`] | runs the workgroups and waves of a kernel dispatch |
//! | [`exec`] | executes one instruction: changes a [`wave::Wave`] and [`memory::Memory`] |
//! | [`isa`] | decodes instruction words to an [`isa::Inst`] |
//!
//! The model never guesses. If a kernel needs something that the model does not support, the dispatch fails with an error
//! that names the kernel and the instruction. With ROCr, such an error aborts the process.
//!
//! The README.md of this package describes the tests and how to add instructions.
//!
//! # As a library
//!
//! A program that has the memory and the packets does not need ROCr. It registers the allocated addresses with
//! [`memory::Memory`] (with base 0, GPU addresses are the process's own). [`dispatch::Gpu::dispatch`] runs one kernel on
//! the calling thread, [`queue::Queue`] processes an AQL ring on its own thread.
//!
//! ```
//! use gpu_model::{dispatch::{Gpu, Packet}, memory::Memory};
//!
//! // A kernel descriptor, at a multiple of 64, and a kernel that ends immediately.
//! #[repr(align(64))]
//! struct Image([u32; 32]);
//! let mut image = Image([0; 32]);
//! image.0[4] = 64; // KERNEL_CODE_ENTRY_BYTE_OFFSET
//! image.0[16] = 0xbfb0_0000; // s_endpgm
//!
//! let address = &raw const image as u64;
//! let memory = Memory::new(0);
//! // SAFETY: `image` outlives the GPU, and nothing writes to it.
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
pub mod thread;
pub mod topology;
pub mod wave;
