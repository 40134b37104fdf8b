//! Kernel descriptors.
//!
//! The fields, the order of the initial SGPRs and the packed work-item ids are from LLVM's "User Guide for AMDGPU
//! Backend", "Kernel Descriptor" and "Initial Kernel Execution State".
//!
//! The private segment of gfx90a: the kernel gets a buffer resource, the initial value of FLAT_SCRATCH, and the wave's
//! offset, which is always 0 here. The values only identify the private segment, see [`SCRATCH_RESOURCE`]. gfx11, gfx12 and gfx942
//! have architected flat scratch: there is nothing to initialize.

use super::packet::Packet;
use crate::exec::{FLAT_SCRATCH_INIT, SCRATCH_RESOURCE};
use crate::isa::Architecture;
use crate::memory::{Storage, View};

/// Where the code of a kernel with preloaded arguments starts, in bytes. Before it is code that loads the arguments, for
/// firmware that does not preload them.
const PRELOAD_PROLOGUE: u64 = 256;

/// The fields of a kernel descriptor.
#[derive(Clone, Debug)]
pub struct Descriptor {
    pub arch: Architecture,
    pub entry: u64,
    pub lanes: usize,
    pub vgprs: usize,
    /// AccVGPRs of gfx9.
    pub agprs: usize,
    pub mode: u32,
    /// Whether the waves of a workgroup may be on both compute units of a WGP.
    pub wgp_mode: bool,
    properties: u16,
    user_sgprs: usize,
    /// KERNARG_PRELOAD: how many dwords of the kernel arguments are in SGPRs, and the first one's number.
    preload: (usize, u64),
    /// ENABLE_SGPR_WORKGROUP_ID_X, _Y, _Z.
    pub workgroup_ids: [bool; 3],
    pub workgroup_info: bool,
    /// ENABLE_VGPR_WORKITEM_ID: the highest dimension of the work-item id that is in v0.
    pub work_item_ids: u32,
}

/// KERNEL_CODE_PROPERTIES.
mod property {
    use crate::isa::Architecture;

    pub const PRIVATE_SEGMENT_BUFFER: u16 = 1;
    pub const DISPATCH_PTR: u16 = 1 << 1;
    pub const QUEUE_PTR: u16 = 1 << 2;
    pub const KERNARG_SEGMENT_PTR: u16 = 1 << 3;
    pub const DISPATCH_ID: u16 = 1 << 4;
    pub const FLAT_SCRATCH_INIT: u16 = 1 << 5;
    pub const PRIVATE_SEGMENT_SIZE: u16 = 1 << 6;
    pub const WAVEFRONT_SIZE32: u16 = 1 << 10;
    pub const USES_DYNAMIC_STACK: u16 = 1 << 11;
    const ALL_TARGETS: u16 = DISPATCH_PTR
        | QUEUE_PTR
        | KERNARG_SEGMENT_PTR
        | DISPATCH_ID
        | PRIVATE_SEGMENT_SIZE
        | USES_DYNAMIC_STACK;

    pub const fn known(arch: Architecture) -> u16 {
        match arch {
            Architecture::Gfx11 | Architecture::Gfx12 => ALL_TARGETS | WAVEFRONT_SIZE32,
            Architecture::Gfx90a => ALL_TARGETS | PRIVATE_SEGMENT_BUFFER | FLAT_SCRATCH_INIT,
            Architecture::Gfx942 => ALL_TARGETS,
        }
    }
}

/// MODE: rounding and denormals, DX10_CLAMP, IEEE, FP16_OVFL. gfx12 does not have DX10_CLAMP and IEEE; it behaves as if only
/// DX10_CLAMP were set.
fn initial_mode(arch: Architecture, rsrc1: u32) -> u32 {
    let bit = |n: u32| rsrc1 >> n & 1;
    let (dx10_clamp, ieee) = match arch {
        Architecture::Gfx12 => (1, 0),
        _ => (bit(21), bit(23)),
    };
    rsrc1 >> 12 & 0xff | dx10_clamp << 8 | ieee << 9 | bit(26) << 23
}

impl Descriptor {
    /// The descriptor at `address`, or why the model cannot execute its kernel.
    pub fn read(arch: Architecture, address: u64, memory: &mut View) -> Result<Descriptor, String> {
        let mut words = [0; 16];
        memory
            .load_dwords(address, &mut words)
            .map_err(|fault| format!("cannot read its descriptor: {fault}"))?;
        let offset = u64::from(words[4]) | u64::from(words[5]) << 32;
        let (rsrc1, rsrc2, rsrc3) = (words[12], words[13], words[11]);
        let properties = words[14] as u16;
        let preload = words[14] >> 16;
        if properties & !property::known(arch) != 0 {
            return Err(format!(
                "unknown kernel code properties {properties:#x} in its descriptor"
            ));
        }
        let preload = ((preload & 127) as usize, u64::from(preload >> 7));
        if preload.0 != 0 && !arch.is_gfx9() {
            return Err(format!(
                "its descriptor preloads kernel arguments, which {} does not support",
                arch.name()
            ));
        }
        let entry = address.wrapping_add(offset);
        let lanes = if properties & property::WAVEFRONT_SIZE32 != 0 {
            32
        } else {
            64
        };
        let granule = if lanes == 32 || arch.is_gfx9() { 8 } else { 4 };
        let registers = ((rsrc1 & 63) as usize + 1) * granule;
        // In gfx9, AccVGPRs follow the VGPRs at ACCUM_OFFSET.
        let vgprs = if arch.is_gfx9() {
            registers.min(((rsrc3 & 63) as usize + 1) * 4)
        } else {
            registers
        };
        let bit = |n: u32| rsrc2 >> n & 1 == 1;
        let descriptor = Descriptor {
            arch,
            entry: match preload.0 {
                0 => entry,
                _ => entry + PRELOAD_PROLOGUE,
            },
            lanes,
            vgprs,
            agprs: registers - vgprs,
            mode: initial_mode(arch, rsrc1),
            wgp_mode: !arch.is_gfx9() && rsrc1 >> 29 & 1 == 1,
            properties,
            user_sgprs: (rsrc2 >> 1 & 31) as usize,
            preload,
            workgroup_ids: [bit(7), bit(8), bit(9)],
            workgroup_info: bit(10),
            work_item_ids: rsrc2 >> 11 & 3,
        };
        if descriptor.vgprs > 256 || descriptor.agprs > 256 {
            return Err(format!(
                "its descriptor requests {} VGPRs and {} AccVGPRs",
                descriptor.vgprs, descriptor.agprs
            ));
        }
        Ok(descriptor)
    }

    /// Whether the numbers of the workgroup are in TTMPs, not in SGPRs.
    pub fn has_workgroup_ids_in_ttmps(&self) -> bool {
        self.arch == Architecture::Gfx12
    }

    /// Whether the kernel gets the address of its packet.
    pub fn reads_packet(&self) -> bool {
        self.properties & property::DISPATCH_PTR != 0
    }

    /// The values of the user SGPRs, in their fixed order, or why one of them cannot be set.
    pub fn user_sgprs(&self, packet: &Packet, memory: &mut View) -> Result<Vec<u32>, String> {
        let mut sgprs = Vec::with_capacity(16);
        if self.properties & property::PRIVATE_SEGMENT_BUFFER != 0 {
            sgprs.extend(SCRATCH_RESOURCE);
        }
        let mut pair = |enabled: u16, value: u64, what: &str, needed: bool| {
            if self.properties & enabled != 0 {
                if needed && value == 0 {
                    return Err(format!(
                        "it reads {what}, which this dispatch does not have"
                    ));
                }
                sgprs.extend([value as u32, (value >> 32) as u32]);
            }
            Ok(())
        };
        pair(
            property::DISPATCH_PTR,
            packet.address,
            "the dispatch packet",
            true,
        )?;
        pair(property::QUEUE_PTR, packet.queue, "the queue", true)?;
        pair(
            property::KERNARG_SEGMENT_PTR,
            packet.kernarg_address,
            "its kernel arguments",
            false,
        )?;
        pair(property::DISPATCH_ID, packet.id, "the dispatch id", false)?;
        pair(
            property::FLAT_SCRATCH_INIT,
            FLAT_SCRATCH_INIT,
            "private memory",
            false,
        )?;
        if self.properties & property::PRIVATE_SEGMENT_SIZE != 0 {
            sgprs.push(packet.private_segment_size);
        }
        let (count, first) = self.preload;
        if count > 0 {
            let at = sgprs.len();
            sgprs.resize(at + count, 0);
            memory
                .load_dwords(packet.kernarg_address + 4 * first, &mut sgprs[at..])
                .map_err(|fault| format!("cannot preload its arguments: {fault}"))?;
        }
        if sgprs.len() > self.user_sgprs {
            return Err(format!(
                "its descriptor enables {} user SGPRs, but USER_SGPR_COUNT is {}",
                sgprs.len(),
                self.user_sgprs
            ));
        }
        sgprs.resize(self.user_sgprs, 0);
        Ok(sgprs)
    }
}
