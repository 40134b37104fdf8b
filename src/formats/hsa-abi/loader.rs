//! The extension `HSA_EXTENSION_AMD_LOADER` (hsa_ven_amd_loader.h), versions 1.00 to 1.03.

use crate::handle::{AgentHandle, ExecutableHandle, LoadedCodeObjectHandle, ReaderHandle};
use crate::status::Status;
use std::ffi::{c_int, c_void};

constants! {
    "`hsa_ven_amd_loader_code_object_storage_type_t` (hsa_ven_amd_loader.h)": u32 {
        HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_MEMORY = 2;
    }
    "`hsa_ven_amd_loader_loaded_code_object_kind_t` (hsa_ven_amd_loader.h)": u32 {
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_KIND_AGENT = 2;
    }
    "`hsa_ven_amd_loader_loaded_code_object_info_t` (hsa_ven_amd_loader.h)": u32 {
        /// [`ExecutableHandle`].
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_EXECUTABLE = 1;
        /// An `hsa_ven_amd_loader_loaded_code_object_kind_t`, u32.
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_KIND = 2;
        /// [`AgentHandle`].
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_AGENT = 3;
        /// An `hsa_ven_amd_loader_code_object_storage_type_t`, u32.
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_TYPE = 4;
        /// u64, an address in the host's memory.
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_BASE = 5;
        /// u64, bytes.
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_SIZE = 6;
        /// i64, bytes between the addresses in the ELF file and those in the agent's memory.
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_DELTA = 8;
        /// u64, an address in the agent's memory.
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE = 9;
        /// u64, bytes of the one allocation that holds all segments.
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_SIZE = 10;
        /// u32, bytes without a terminator.
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI_LENGTH = 11;
        /// The bytes of the URI, not terminated.
        HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI = 12;
    }
}

/// `hsa_ven_amd_loader_segment_descriptor_t` (hsa_ven_amd_loader.h)
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SegmentDescriptor {
    /// The agent that has the segment in its memory.
    pub agent: AgentHandle,
    /// The executable that the code object is loaded in.
    pub executable: ExecutableHandle,
    /// `code_object_storage_type`
    pub storage_type: u32,
    /// `code_object_storage_base`
    pub storage_base: *const c_void,
    /// `code_object_storage_size`: bytes.
    pub storage_size: usize,
    /// `code_object_storage_offset`: bytes.
    pub storage_offset: usize,
    /// An address in the agent's memory.
    pub segment_base: *const c_void,
    /// Bytes.
    pub segment_size: usize,
}

/// The callback of `hsa_ven_amd_loader_executable_iterate_loaded_code_objects` (hsa_ven_amd_loader.h).
pub type LoadedCodeObjectCallback =
    unsafe extern "C" fn(ExecutableHandle, LoadedCodeObjectHandle, *mut c_void) -> Status;
/// The callback of `hsa_ven_amd_loader_iterate_executables` (hsa_ven_amd_loader.h).
pub type ExecutableCallback = unsafe extern "C" fn(ExecutableHandle, *mut c_void) -> Status;

macro_rules! loader_table {
    ($($(#[$doc:meta])* $name:ident: fn($($arg:ty),*) -> $ret:ty;)*) => {
        /// `hsa_ven_amd_loader_1_03_pfn_t` (hsa_ven_amd_loader.h). The tables of earlier versions are prefixes of it. In
        /// the header, the names of the functions start with `hsa_ven_amd_loader_`.
        #[derive(Clone, Copy)]
        #[repr(C)]
        pub struct LoaderTable {
            $($(#[$doc])* pub $name: unsafe extern "C" fn($($arg),*) -> $ret,)*
        }

        /// The names of the functions of [`LoaderTable`], in its order.
        pub const LOADER_FUNCTIONS: &[&str] = &[$(concat!("hsa_ven_amd_loader_", stringify!($name))),*];
    };
}

loader_table! {
    /// Finds the host's copy of an address in an agent's memory.
    query_host_address: fn(*const c_void, *mut *const c_void) -> Status;
    /// Lists all segments of all loaded code objects.
    query_segment_descriptors: fn(*mut SegmentDescriptor, *mut usize) -> Status;
    /// Finds the executable that contains an address in an agent's memory.
    query_executable: fn(*const c_void, *mut ExecutableHandle) -> Status;
    /// Lists the code objects of an executable.
    executable_iterate_loaded_code_objects: fn(ExecutableHandle, LoadedCodeObjectCallback, *mut c_void) -> Status;
    /// Returns an attribute (`hsa_ven_amd_loader_loaded_code_object_info_t`) of a loaded code object.
    loaded_code_object_get_info: fn(LoadedCodeObjectHandle, u32, *mut c_void) -> Status;
    /// Creates a reader for a part of a file: file descriptor, offset and size in bytes.
    code_object_reader_create_from_file_with_offset_size: fn(c_int, usize, usize, *mut ReaderHandle) -> Status;
    /// Lists all executables.
    iterate_executables: fn(ExecutableCallback, *mut c_void) -> Status;
}

/// The number of functions in the table of each minor version.
pub const LOADER_VERSIONS: [usize; 4] = [3, 5, 6, 7];
