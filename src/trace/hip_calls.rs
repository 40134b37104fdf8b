//! Wrappers of the HIP functions that can make the GPU do work. The shared library exports them under HIP's names; if
//! it is loaded before HIP, the program calls them instead of HIP's. This is FFI to HIP: the signatures are those of
//! `hip/hip_runtime_api.h` and `hip/hip_ext.h` of HIP 7.2. Enumerations are 32 bits wide; all pointers have the type
//! `P`.
//!
//! Each exported function jumps to the address in its slot. The first call sets the slot: without a trace, to HIP's
//! function, so that a call costs only the jump; otherwise to a function that records the call and calls HIP's.

use super::calls;
use crate::gpu::hsa::hip;
use crate::support::panic_guard::{Cost, guarded};
use crate::support::settings::settings;
use std::ffi::{CStr, c_void};
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A pointer of any type, or a handle.
type P = *mut c_void;

/// `dim3`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Dim3 {
    x: u32,
    y: u32,
    z: u32,
}

/// `hipPitchedPtr`.
#[derive(Clone, Copy)]
#[repr(C)]
struct PitchedPtr {
    ptr: P,
    pitch: usize,
    xsize: usize,
    ysize: usize,
}

/// `hipExtent`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Extent {
    width: usize,
    height: usize,
    depth: usize,
}

/// `hipErrorNotInitialized`, which the wrappers return if HIP is not loaded.
const NOT_INITIALIZED: i32 = 3;

/// Sets the slot of `symbol` and returns its new value. `None` if HIP is not loaded; the slot is then unchanged.
#[cold]
fn resolve(symbol: &CStr, real: &AtomicPtr<()>, slot: &AtomicPtr<()>, recorded: P) -> Option<P> {
    let function = catch_unwind(|| hip::function(symbol)).ok()??;
    // Stored before the slot: a thread that finds `recorded` in the slot must find HIP's function here.
    real.store(function.cast(), Ordering::Release);
    let is_tracing = guarded(Cost::Counters, false, || {
        !settings().disabled && settings().trace.is_some()
    });
    let target = if is_tracing { recorded } else { function };
    slot.store(target.cast(), Ordering::Release);
    Some(target)
}

macro_rules! symbol {
    ($name:ident) => {
        stringify!($name)
    };
    ($name:ident $symbol:literal) => {
        $symbol
    };
}

/// One row per function: the identifier, `=` the symbol `is` the recorded name if these differ from it, the parameters.
macro_rules! functions {
    ($($name:ident $(= $symbol:literal is $called:literal)? ($($arg:ident: $type:ty),*);)*) => {$(
        #[expect(non_snake_case)]
        mod $name {
            use super::*;

            type Function = unsafe extern "C-unwind" fn($($type),*) -> i32;

            static SLOT: AtomicPtr<()> = AtomicPtr::new(first as Function as *mut ());
            static REAL: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

            /// # Safety
            /// The requirements are those of HIP's function.
            #[unsafe(naked)]
            #[unsafe(export_name = symbol!($name $($symbol)?))]
            unsafe extern "C-unwind" fn exported($(_: $type),*) -> i32 {
                std::arch::naked_asm!("jmp qword ptr [rip + {slot}]", slot = sym SLOT)
            }

            /// The slot's initial value: resolves the function at the first call.
            unsafe extern "C-unwind" fn first($($arg: $type),*) -> i32 {
                const SYMBOL: &CStr =
                    match CStr::from_bytes_with_nul(concat!(symbol!($name $($symbol)?), "\0").as_bytes()) {
                        Ok(symbol) => symbol,
                        Err(_) => panic!("a symbol contains a NUL byte"),
                    };
                match resolve(SYMBOL, &REAL, &SLOT, recorded as Function as P) {
                    // SAFETY: HIP's function of this name or `recorded`; both have the type `Function`.
                    Some(target) => unsafe { std::mem::transmute::<P, Function>(target)($($arg),*) },
                    None => NOT_INITIALIZED,
                }
            }

            unsafe extern "C-unwind" fn recorded($($arg: $type),*) -> i32 {
                // SAFETY: HIP's function of this name, stored in `REAL` before `recorded` is stored in the slot.
                let real = unsafe { std::mem::transmute::<*mut (), Function>(REAL.load(Ordering::Acquire)) };
                let mut call = calls::begin(symbol!($name $($called)?));
                // SAFETY: the caller fulfills the requirements of HIP's function, and these are its arguments.
                let status = unsafe { real($($arg),*) };
                if let Some(call) = &mut call {
                    call.status = status;
                }
                status
            }
        }
    )*};
}

functions! {
    hipDrvLaunchKernelEx(config: P, f: P, params: P, extra: P);
    hipExtLaunchKernel(function_address: P, num_blocks: Dim3, dim_blocks: Dim3, args: P, shared_mem_bytes: usize, stream: P, start_event: P, stop_event: P, flags: i32);
    hipExtLaunchMultiKernelMultiDevice(launch_params_list: P, num_devices: i32, flags: u32);
    hipExtModuleLaunchKernel(f: P, global_work_size_x: u32, global_work_size_y: u32, global_work_size_z: u32, local_work_size_x: u32, local_work_size_y: u32, local_work_size_z: u32, shared_mem_bytes: usize, h_stream: P, kernel_params: P, extra: P, start_event: P, stop_event: P, flags: u32);
    hipExtModuleLaunchKernel_cpp = "_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j" is "hipExtModuleLaunchKernel"(f: P, global_work_size_x: u32, global_work_size_y: u32, global_work_size_z: u32, local_work_size_x: u32, local_work_size_y: u32, local_work_size_z: u32, shared_mem_bytes: usize, h_stream: P, kernel_params: P, extra: P, start_event: P, stop_event: P, flags: u32);
    hipGraphLaunch(graph_exec: P, stream: P);
    hipGraphLaunch_spt(graph_exec: P, stream: P);
    hipHccModuleLaunchKernel(f: P, global_work_size_x: u32, global_work_size_y: u32, global_work_size_z: u32, local_work_size_x: u32, local_work_size_y: u32, local_work_size_z: u32, shared_mem_bytes: usize, h_stream: P, kernel_params: P, extra: P, start_event: P, stop_event: P);
    hipHccModuleLaunchKernel_cpp = "_Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_" is "hipHccModuleLaunchKernel"(f: P, global_work_size_x: u32, global_work_size_y: u32, global_work_size_z: u32, local_work_size_x: u32, local_work_size_y: u32, local_work_size_z: u32, shared_mem_bytes: usize, h_stream: P, kernel_params: P, extra: P, start_event: P, stop_event: P);
    hipLaunchByPtr(func: P);
    hipLaunchCooperativeKernel(f: P, grid_dim: Dim3, block_dim_x: Dim3, kernel_params: P, shared_mem_bytes: u32, stream: P);
    hipLaunchCooperativeKernelMultiDevice(launch_params_list: P, num_devices: i32, flags: u32);
    hipLaunchCooperativeKernel_spt(f: P, grid_dim: Dim3, block_dim: Dim3, kernel_params: P, shared_mem_bytes: u32, h_stream: P);
    hipLaunchKernel(function_address: P, num_blocks: Dim3, dim_blocks: Dim3, args: P, shared_mem_bytes: usize, stream: P);
    hipLaunchKernelExC(config: P, f_ptr: P, args: P);
    hipLaunchKernel_spt(function_address: P, num_blocks: Dim3, dim_blocks: Dim3, args: P, shared_mem_bytes: usize, stream: P);
    hipModuleLaunchCooperativeKernel(f: P, grid_dim_x: u32, grid_dim_y: u32, grid_dim_z: u32, block_dim_x: u32, block_dim_y: u32, block_dim_z: u32, shared_mem_bytes: u32, stream: P, kernel_params: P);
    hipModuleLaunchCooperativeKernelMultiDevice(launch_params_list: P, num_devices: u32, flags: u32);
    hipModuleLaunchKernel(f: P, grid_dim_x: u32, grid_dim_y: u32, grid_dim_z: u32, block_dim_x: u32, block_dim_y: u32, block_dim_z: u32, shared_mem_bytes: u32, stream: P, kernel_params: P, extra: P);
    hipDrvMemcpy2DUnaligned(p_copy: P);
    hipDrvMemcpy3D(p_copy: P);
    hipDrvMemcpy3DAsync(p_copy: P, stream: P);
    hipMemcpy(dst: P, src: P, size_bytes: usize, kind: u32);
    hipMemcpy2D(dst: P, dpitch: usize, src: P, spitch: usize, width: usize, height: usize, kind: u32);
    hipMemcpy2DArrayToArray(dst: P, w_offset_dst: usize, h_offset_dst: usize, src: P, w_offset_src: usize, h_offset_src: usize, width: usize, height: usize, kind: u32);
    hipMemcpy2DAsync(dst: P, dpitch: usize, src: P, spitch: usize, width: usize, height: usize, kind: u32, stream: P);
    hipMemcpy2DAsync_spt(dst: P, dpitch: usize, src: P, spitch: usize, width: usize, height: usize, kind: u32, stream: P);
    hipMemcpy2DFromArray(dst: P, dpitch: usize, src: P, w_offset: usize, h_offset: usize, width: usize, height: usize, kind: u32);
    hipMemcpy2DFromArrayAsync(dst: P, dpitch: usize, src: P, w_offset: usize, h_offset: usize, width: usize, height: usize, kind: u32, stream: P);
    hipMemcpy2DFromArrayAsync_spt(dst: P, dpitch: usize, src: P, w_offset_src: usize, h_offset_src: usize, width: usize, height: usize, kind: u32, stream: P);
    hipMemcpy2DFromArray_spt(dst: P, dpitch: usize, src: P, w_offset: usize, h_offset: usize, width: usize, height: usize, kind: u32);
    hipMemcpy2DToArray(dst: P, w_offset: usize, h_offset: usize, src: P, spitch: usize, width: usize, height: usize, kind: u32);
    hipMemcpy2DToArrayAsync(dst: P, w_offset: usize, h_offset: usize, src: P, spitch: usize, width: usize, height: usize, kind: u32, stream: P);
    hipMemcpy2DToArrayAsync_spt(dst: P, w_offset: usize, h_offset: usize, src: P, spitch: usize, width: usize, height: usize, kind: u32, stream: P);
    hipMemcpy2DToArray_spt(dst: P, w_offset: usize, h_offset: usize, src: P, spitch: usize, width: usize, height: usize, kind: u32);
    hipMemcpy2D_spt(dst: P, dpitch: usize, src: P, spitch: usize, width: usize, height: usize, kind: u32);
    hipMemcpy3D(p: P);
    hipMemcpy3DAsync(p: P, stream: P);
    hipMemcpy3DAsync_spt(p: P, stream: P);
    hipMemcpy3DBatchAsync(num_ops: usize, op_list: P, fail_idx: P, flags: u64, stream: P);
    hipMemcpy3DPeer(p: P);
    hipMemcpy3DPeerAsync(p: P, stream: P);
    hipMemcpy3D_spt(p: P);
    hipMemcpyAsync(dst: P, src: P, size_bytes: usize, kind: u32, stream: P);
    hipMemcpyAsync_spt(dst: P, src: P, size_bytes: usize, kind: u32, stream: P);
    hipMemcpyAtoA(dst_array: P, dst_offset: usize, src_array: P, src_offset: usize, byte_count: usize);
    hipMemcpyAtoD(dst_device: P, src_array: P, src_offset: usize, byte_count: usize);
    hipMemcpyAtoH(dst: P, src_array: P, src_offset: usize, count: usize);
    hipMemcpyAtoHAsync(dst_host: P, src_array: P, src_offset: usize, byte_count: usize, stream: P);
    hipMemcpyBatchAsync(dsts: P, srcs: P, sizes: P, count: usize, attrs: P, attrs_idxs: P, num_attrs: usize, fail_idx: P, stream: P);
    hipMemcpyDtoA(dst_array: P, dst_offset: usize, src_device: P, byte_count: usize);
    hipMemcpyDtoD(dst: P, src: P, size_bytes: usize);
    hipMemcpyDtoDAsync(dst: P, src: P, size_bytes: usize, stream: P);
    hipMemcpyDtoH(dst: P, src: P, size_bytes: usize);
    hipMemcpyDtoHAsync(dst: P, src: P, size_bytes: usize, stream: P);
    hipMemcpyFromArray(dst: P, src_array: P, w_offset: usize, h_offset: usize, count: usize, kind: u32);
    hipMemcpyFromArray_spt(dst: P, src: P, w_offset_src: usize, h_offset: usize, count: usize, kind: u32);
    hipMemcpyFromSymbol(dst: P, symbol: P, size_bytes: usize, offset: usize, kind: u32);
    hipMemcpyFromSymbolAsync(dst: P, symbol: P, size_bytes: usize, offset: usize, kind: u32, stream: P);
    hipMemcpyFromSymbolAsync_spt(dst: P, symbol: P, size_bytes: usize, offset: usize, kind: u32, stream: P);
    hipMemcpyFromSymbol_spt(dst: P, symbol: P, size_bytes: usize, offset: usize, kind: u32);
    hipMemcpyHtoA(dst_array: P, dst_offset: usize, src_host: P, count: usize);
    hipMemcpyHtoAAsync(dst_array: P, dst_offset: usize, src_host: P, byte_count: usize, stream: P);
    hipMemcpyHtoD(dst: P, src: P, size_bytes: usize);
    hipMemcpyHtoDAsync(dst: P, src: P, size_bytes: usize, stream: P);
    hipMemcpyParam2D(p_copy: P);
    hipMemcpyParam2DAsync(p_copy: P, stream: P);
    hipMemcpyPeer(dst: P, dst_device_id: i32, src: P, src_device_id: i32, size_bytes: usize);
    hipMemcpyPeerAsync(dst: P, dst_device_id: i32, src: P, src_device: i32, size_bytes: usize, stream: P);
    hipMemcpyToArray(dst: P, w_offset: usize, h_offset: usize, src: P, count: usize, kind: u32);
    hipMemcpyToSymbol(symbol: P, src: P, size_bytes: usize, offset: usize, kind: u32);
    hipMemcpyToSymbolAsync(symbol: P, src: P, size_bytes: usize, offset: usize, kind: u32, stream: P);
    hipMemcpyToSymbolAsync_spt(symbol: P, src: P, size_bytes: usize, offset: usize, kind: u32, stream: P);
    hipMemcpyToSymbol_spt(symbol: P, src: P, size_bytes: usize, offset: usize, kind: u32);
    hipMemcpyWithStream(dst: P, src: P, size_bytes: usize, kind: u32, stream: P);
    hipMemcpy_spt(dst: P, src: P, size_bytes: usize, kind: u32);
    hipMemset(dst: P, value: i32, size_bytes: usize);
    hipMemset2D(dst: P, pitch: usize, value: i32, width: usize, height: usize);
    hipMemset2DAsync(dst: P, pitch: usize, value: i32, width: usize, height: usize, stream: P);
    hipMemset2DAsync_spt(dst: P, pitch: usize, value: i32, width: usize, height: usize, stream: P);
    hipMemset2D_spt(dst: P, pitch: usize, value: i32, width: usize, height: usize);
    hipMemset3D(pitched_dev_ptr: PitchedPtr, value: i32, extent: Extent);
    hipMemset3DAsync(pitched_dev_ptr: PitchedPtr, value: i32, extent: Extent, stream: P);
    hipMemset3DAsync_spt(pitched_dev_ptr: PitchedPtr, value: i32, extent: Extent, stream: P);
    hipMemset3D_spt(pitched_dev_ptr: PitchedPtr, value: i32, extent: Extent);
    hipMemsetAsync(dst: P, value: i32, size_bytes: usize, stream: P);
    hipMemsetAsync_spt(dst: P, value: i32, size_bytes: usize, stream: P);
    hipMemsetD16(dest: P, value: u16, count: usize);
    hipMemsetD16Async(dest: P, value: u16, count: usize, stream: P);
    hipMemsetD2D16(dst: P, dst_pitch: usize, value: u16, width: usize, height: usize);
    hipMemsetD2D16Async(dst: P, dst_pitch: usize, value: u16, width: usize, height: usize, stream: P);
    hipMemsetD2D32(dst: P, dst_pitch: usize, value: u32, width: usize, height: usize);
    hipMemsetD2D32Async(dst: P, dst_pitch: usize, value: u32, width: usize, height: usize, stream: P);
    hipMemsetD2D8(dst: P, dst_pitch: usize, value: u8, width: usize, height: usize);
    hipMemsetD2D8Async(dst: P, dst_pitch: usize, value: u8, width: usize, height: usize, stream: P);
    hipMemsetD32(dest: P, value: i32, count: usize);
    hipMemsetD32Async(dst: P, value: i32, count: usize, stream: P);
    hipMemsetD8(dest: P, value: u8, count: usize);
    hipMemsetD8Async(dest: P, value: u8, count: usize, stream: P);
    hipMemset_spt(dst: P, value: i32, size_bytes: usize);
    hipStreamBatchMemOp(stream: P, count: u32, param_array: P, flags: u32);
    hipStreamWaitValue32(stream: P, ptr: P, value: u32, flags: u32, mask: u32);
    hipStreamWaitValue64(stream: P, ptr: P, value: u64, flags: u32, mask: u64);
    hipStreamWriteValue32(stream: P, ptr: P, value: u32, flags: u32);
    hipStreamWriteValue64(stream: P, ptr: P, value: u64, flags: u32);
}
