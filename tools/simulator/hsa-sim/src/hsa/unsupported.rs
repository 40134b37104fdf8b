//! Functions that the simulator does not support. The first call of each prints its name.

#![allow(clippy::too_many_arguments, reason = "HSA's signatures")]

use hsa_abi::*;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

macro_rules! unsupported {
    ($($name:ident($($ty:ty),*);)*) => {$(
        /// Not supported.
        pub unsafe fn $name($(_: $ty),*) -> Status {
            static IS_KNOWN: AtomicBool = AtomicBool::new(false);
            if !IS_KNOWN.swap(true, Relaxed) {
                eprintln!("hsa-sim: {} is not simulated", stringify!($name));
            }
            Status::NOT_SUPPORTED
        }
    )*};
}

unsupported! {
    hsa_amd_coherency_set_type(AgentHandle, u32);
    hsa_amd_interop_map_buffer(u32, *mut AgentHandle, c_int, u32, *mut usize, *mut *mut c_void, *mut usize, *mut *const c_void);
    hsa_amd_interop_unmap_buffer(*mut c_void);
    hsa_amd_image_create(AgentHandle, *const c_void, *const c_void, *const c_void, u32, *mut u64);
    hsa_amd_ipc_signal_create(SignalHandle, *mut IpcHandle);
    hsa_amd_ipc_signal_attach(*const IpcHandle, *mut SignalHandle);
    hsa_amd_svm_attributes_set(*mut c_void, usize, *mut SvmAttribute, usize);
    hsa_amd_svm_attributes_get(*mut c_void, usize, *mut SvmAttribute, usize);
    hsa_amd_svm_prefetch_async(*mut c_void, usize, AgentHandle, u32, *const SignalHandle, SignalHandle);
    hsa_amd_portable_export_dmabuf(*const c_void, usize, *mut c_int, *mut u64);
    hsa_amd_vmem_address_reserve(*mut *mut c_void, usize, u64, u64);
    hsa_amd_vmem_address_reserve_align(*mut *mut c_void, usize, u64, u64, u64);
    hsa_amd_vmem_address_free(*mut c_void, usize);
    hsa_amd_vmem_handle_create(PoolHandle, usize, u32, u64, *mut u64);
    hsa_amd_vmem_handle_release(u64);
    hsa_amd_vmem_map(*mut c_void, usize, usize, u64, u64);
    hsa_amd_vmem_unmap(*mut c_void, usize);
    hsa_amd_vmem_set_access(*mut c_void, usize, *const c_void, usize);
    hsa_amd_vmem_get_access(*mut c_void, *mut u32, AgentHandle);
    hsa_amd_vmem_export_shareable_handle(*mut c_int, u64, u64);
    hsa_amd_vmem_import_shareable_handle(c_int, *mut u64);
    hsa_amd_vmem_retain_alloc_handle(*mut u64, *mut c_void);
    hsa_amd_ais_file_write(u64, *mut c_void, u64, i64, *mut u64, *mut i32);
    hsa_amd_ais_file_read(u64, *mut c_void, u64, i64, *mut u64, *mut i32);
    hsa_ext_image_data_get_info(AgentHandle, *const c_void, u32, *mut c_void);
    hsa_ext_image_create(AgentHandle, *const c_void, *const c_void, u32, *mut u64);
    hsa_ext_image_import(AgentHandle, *const c_void, usize, usize, u64, *const c_void);
    hsa_ext_image_export(AgentHandle, u64, *mut c_void, usize, usize, *const c_void);
    hsa_ext_image_destroy(AgentHandle, u64);
    hsa_ext_sampler_destroy(AgentHandle, u64);
    hsa_ext_image_create_with_layout(AgentHandle, *const c_void, *const c_void, u32, u32, usize, usize, *mut u64);
    hsa_ext_sampler_create_v2(AgentHandle, *const c_void, *mut u64);
}
