//! One lane's access to global memory, LDS or private memory.

use super::atomic::{Atomic, apply32, apply64};
use crate::fault::Fault;
use crate::memory::Storage;
use crate::wave::VReg;

/// Bytes that only this host thread uses: a workgroup's LDS or a lane's private segment. Addresses are offsets.
pub struct Local<'a> {
    bytes: &'a mut [u8],
    /// Makes the fault for an access outside of the bytes. The arguments are the access's offset and size, and the number of
    /// bytes.
    fault: fn(u64, usize, usize) -> Fault,
}

impl<'a> Local<'a> {
    pub fn lds(bytes: &'a mut [u8]) -> Self {
        Local {
            bytes,
            fault: |offset, size, limit| Fault::Lds {
                offset,
                size,
                limit,
                lane: None,
            },
        }
    }
    pub fn private(bytes: &'a mut [u8]) -> Self {
        Local {
            bytes,
            fault: |offset, size, limit| Fault::Scratch {
                offset,
                size,
                limit,
                lane: None,
            },
        }
    }
    fn at(&mut self, offset: u64, size: usize) -> Result<&mut [u8], Fault> {
        let limit = self.bytes.len();
        usize::try_from(offset)
            .ok()
            .and_then(|start| self.bytes.get_mut(start..start.checked_add(size)?))
            .ok_or_else(|| (self.fault)(offset, size, limit))
    }
    fn array<const N: usize>(&mut self, offset: u64) -> Result<&mut [u8; N], Fault> {
        let bytes = self.at(offset, N)?;
        Ok(bytes
            .try_into()
            .expect("`at` gives the requested number of bytes"))
    }
}

macro_rules! update {
    ($update:ident, $int:ty) => {
        fn $update(
            &mut self,
            offset: u64,
            mut change: impl FnMut($int) -> $int,
        ) -> Result<$int, Fault> {
            Fault::check_alignment(offset, size_of::<$int>())?;
            let bytes = self.array(offset)?;
            let old = <$int>::from_le_bytes(*bytes);
            *bytes = change(old).to_le_bytes();
            Ok(old)
        }
    };
}

impl Storage for Local<'_> {
    fn load_u8(&mut self, offset: u64) -> Result<u8, Fault> {
        Ok(self.array::<1>(offset)?[0])
    }
    fn load_u16(&mut self, offset: u64) -> Result<u16, Fault> {
        self.array(offset).map(|bytes| u16::from_le_bytes(*bytes))
    }
    #[inline]
    fn load_u32(&mut self, offset: u64) -> Result<u32, Fault> {
        self.array(offset).map(|bytes| u32::from_le_bytes(*bytes))
    }
    fn load_dwords(&mut self, offset: u64, into: &mut [u32]) -> Result<(), Fault> {
        let bytes = self.at(offset, size_of_val(into))?;
        for (dword, bytes) in into.iter_mut().zip(bytes.as_chunks::<4>().0) {
            *dword = u32::from_le_bytes(*bytes);
        }
        Ok(())
    }
    fn store_u8(&mut self, offset: u64, value: u8) -> Result<(), Fault> {
        self.array::<1>(offset)?[0] = value;
        Ok(())
    }
    fn store_u16(&mut self, offset: u64, value: u16) -> Result<(), Fault> {
        *self.array(offset)? = value.to_le_bytes();
        Ok(())
    }
    #[inline]
    fn store_u32(&mut self, offset: u64, value: u32) -> Result<(), Fault> {
        *self.array(offset)? = value.to_le_bytes();
        Ok(())
    }
    fn store_dwords(&mut self, offset: u64, from: &[u32]) -> Result<(), Fault> {
        let bytes = self.at(offset, size_of_val(from))?;
        for (dword, bytes) in from.iter().zip(bytes.as_chunks_mut::<4>().0) {
            *bytes = dword.to_le_bytes();
        }
        Ok(())
    }
    update!(update_u32, u32);
    update!(update_u64, u64);
}

/// The part of the destination register that a load of one or two bytes writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// All 32 bits: the value is extended.
    Full,
    /// D16: the low half. The high half keeps its value.
    Low,
    High,
}

/// The access of an instruction at the address of one lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Loads one or two bytes.
    LoadNarrow { size: u8, signed: bool, half: Half },
    /// Loads this number of dwords.
    Load(usize),
    /// Stores one or two bytes, from the high half of the register if `high`.
    StoreNarrow { size: u8, high: bool },
    /// Stores this number of dwords.
    Store(usize),
    /// An atomic operation on 32 bits, or on 64 if `wide`.
    Atomic { op: Atomic, wide: bool },
}

/// The numbers of the vector registers of an access.
#[derive(Clone, Copy, Debug)]
pub struct Registers {
    /// `None` for stores and for atomic operations that do not return the old value.
    pub dst: Option<usize>,
    pub data: usize,
    /// The second data operand of an atomic operation that has one.
    pub second: usize,
}

fn pair(vgpr: &[VReg], first: usize, lane: usize) -> u64 {
    u64::from(vgpr[first][lane]) | u64::from(vgpr[first + 1][lane]) << 32
}

/// Performs one lane's access. The caller has checked that the registers exist.
#[inline]
pub fn perform(
    storage: &mut impl Storage,
    access: Access,
    address: u64,
    vgpr: &mut [VReg],
    regs: Registers,
    lane: usize,
) -> Result<(), Fault> {
    match access {
        Access::LoadNarrow { size, signed, half } => {
            let dst = regs.dst.ok_or(Fault::Unknown)?;
            let value = match (size, signed) {
                (1, false) => u32::from(storage.load_u8(address)?),
                (1, true) => storage.load_u8(address)? as i8 as u32,
                (_, false) => u32::from(storage.load_u16(address)?),
                (_, true) => storage.load_u16(address)? as i16 as u32,
            };
            let to = &mut vgpr[dst][lane];
            *to = match half {
                Half::Full => value,
                Half::Low => *to & 0xffff_0000 | value & 0xffff,
                Half::High => *to & 0xffff | value << 16,
            };
        }
        Access::Load(1) => {
            let dst = regs.dst.ok_or(Fault::Unknown)?;
            vgpr[dst][lane] = storage.load_u32(address)?;
        }
        Access::Load(dwords) => {
            let dst = regs.dst.ok_or(Fault::Unknown)?;
            let mut data = [0; 4];
            storage.load_dwords(address, &mut data[..dwords])?;
            for (n, dword) in data[..dwords].iter().enumerate() {
                vgpr[dst + n][lane] = *dword;
            }
        }
        Access::StoreNarrow { size, high } => {
            let value = vgpr[regs.data][lane] >> if high { 16 } else { 0 };
            match size {
                1 => storage.store_u8(address, value as u8)?,
                _ => storage.store_u16(address, value as u16)?,
            }
        }
        Access::Store(1) => storage.store_u32(address, vgpr[regs.data][lane])?,
        Access::Store(dwords) => {
            let mut data = [0; 4];
            for (n, dword) in data[..dwords].iter_mut().enumerate() {
                *dword = vgpr[regs.data + n][lane];
            }
            storage.store_dwords(address, &data[..dwords])?;
        }
        Access::Atomic { op, wide: false } => {
            let data = vgpr[regs.data][lane];
            let second = if op.has_second() {
                vgpr[regs.second][lane]
            } else {
                0
            };
            let old = storage.update_u32(address, |old| apply32(op, old, data, second))?;
            if let Some(dst) = regs.dst {
                vgpr[dst][lane] = old;
            }
        }
        Access::Atomic { op, wide: true } => {
            let data = pair(vgpr, regs.data, lane);
            let second = if op.has_second() {
                pair(vgpr, regs.second, lane)
            } else {
                0
            };
            let old = storage.update_u64(address, |old| apply64(op, old, data, second))?;
            if let Some(dst) = regs.dst {
                vgpr[dst][lane] = old as u32;
                vgpr[dst + 1][lane] = (old >> 32) as u32;
            }
        }
    }
    Ok(())
}
