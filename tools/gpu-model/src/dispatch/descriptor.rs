//! Kernel descriptors.
//!
//! The fields, the order of the initial SGPRs and the packed work-item ids are those of gfx11 in LLVM's "User Guide for
//! AMDGPU Backend", "Kernel Descriptor" and "Initial Kernel Execution State".

use super::packet::Packet;
use crate::memory::View;

/// The fields of a kernel descriptor.
#[derive(Clone, Debug)]
pub struct Descriptor {
    pub entry: u64,
    pub lanes: usize,
    pub vgprs: usize,
    pub mode: u32,
    /// Whether the waves of a workgroup may be on both compute units of a WGP.
    pub wgp_mode: bool,
    properties: u16,
    user_sgprs: usize,
    /// ENABLE_SGPR_WORKGROUP_ID_X, _Y, _Z.
    pub workgroup_ids: [bool; 3],
    pub workgroup_info: bool,
    /// ENABLE_VGPR_WORKITEM_ID: the highest dimension of the work-item id that is in v0.
    pub work_item_ids: u32,
}

/// KERNEL_CODE_PROPERTIES.
mod property {
    pub const DISPATCH_PTR: u16 = 1 << 1;
    pub const QUEUE_PTR: u16 = 1 << 2;
    pub const KERNARG_SEGMENT_PTR: u16 = 1 << 3;
    pub const DISPATCH_ID: u16 = 1 << 4;
    pub const PRIVATE_SEGMENT_SIZE: u16 = 1 << 6;
    pub const WAVEFRONT_SIZE32: u16 = 1 << 10;
    pub const USES_DYNAMIC_STACK: u16 = 1 << 11;
    pub const KNOWN: u16 = DISPATCH_PTR
        | QUEUE_PTR
        | KERNARG_SEGMENT_PTR
        | DISPATCH_ID
        | PRIVATE_SEGMENT_SIZE
        | WAVEFRONT_SIZE32
        | USES_DYNAMIC_STACK;
}

impl Descriptor {
    /// The descriptor at `address`, or why the model cannot execute its kernel.
    pub fn read(address: u64, memory: &mut View) -> Result<Descriptor, String> {
        let mut words = [0; 16];
        memory
            .load_dwords(address, &mut words)
            .map_err(|fault| format!("cannot read its descriptor: {fault}"))?;
        let offset = u64::from(words[4]) | u64::from(words[5]) << 32;
        let (rsrc1, rsrc2) = (words[12], words[13]);
        let properties = words[14] as u16;
        let preload = words[14] >> 16;
        if properties & !property::KNOWN != 0 {
            return Err(format!(
                "unknown kernel code properties {properties:#x} in its descriptor"
            ));
        }
        if preload != 0 {
            return Err(
                "its descriptor preloads kernel arguments, which gfx11 does not support".into(),
            );
        }
        let lanes = if properties & property::WAVEFRONT_SIZE32 != 0 {
            32
        } else {
            64
        };
        let granule = if lanes == 32 { 8 } else { 4 };
        let bit = |n: u32| rsrc2 >> n & 1 == 1;
        let descriptor = Descriptor {
            entry: address.wrapping_add(offset),
            lanes,
            vgprs: ((rsrc1 & 63) as usize + 1) * granule,
            // Rounding and denormals, DX10_CLAMP, IEEE, FP16_OVFL.
            mode: rsrc1 >> 12 & 0xff
                | (rsrc1 >> 21 & 1) << 8
                | (rsrc1 >> 23 & 1) << 9
                | (rsrc1 >> 26 & 1) << 23,
            wgp_mode: rsrc1 >> 29 & 1 == 1,
            properties,
            user_sgprs: (rsrc2 >> 1 & 31) as usize,
            workgroup_ids: [bit(7), bit(8), bit(9)],
            workgroup_info: bit(10),
            work_item_ids: rsrc2 >> 11 & 3,
        };
        if descriptor.vgprs > 256 {
            return Err(format!(
                "its descriptor requests {} VGPRs",
                descriptor.vgprs
            ));
        }
        Ok(descriptor)
    }

    /// Whether the kernel gets the address of its packet.
    pub fn reads_packet(&self) -> bool {
        self.properties & property::DISPATCH_PTR != 0
    }

    /// The values of the user SGPRs, in their fixed order, or why one of them cannot be set.
    pub fn user_sgprs(&self, packet: &Packet) -> Result<Vec<u32>, String> {
        let mut sgprs = Vec::with_capacity(16);
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
        if self.properties & property::PRIVATE_SEGMENT_SIZE != 0 {
            sgprs.push(packet.private_segment_size);
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
