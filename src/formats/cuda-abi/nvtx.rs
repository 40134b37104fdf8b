//! NVTX, version 2 and 3, as a tool sees it (`nvtxDetail/nvtxTypes.h`, `nvToolsExt.h`).

use std::ffi::{c_char, c_int, c_uint, c_void};

/// `NVTX_ETID_CALLBACKS`: the table of callbacks.
pub const NVTX_ETID_CALLBACKS: u32 = 1;

/// `NVTX_CB_MODULE_CORE`
pub const NVTX_CB_MODULE_CORE: u32 = 1;
/// `NVTX_CB_MODULE_CUDA`
pub const NVTX_CB_MODULE_CUDA: u32 = 2;
/// `NVTX_CB_MODULE_CUDART`
pub const NVTX_CB_MODULE_CUDART: u32 = 4;
/// `NVTX_CB_MODULE_CORE2`
pub const NVTX_CB_MODULE_CORE2: u32 = 5;

/// Gives a table of NVTX, null if the version does not have it.
pub type NvtxGetExportTableFunc_t = unsafe extern "C" fn(table: u32) -> *const c_void;

/// `NvtxExportTableCallbacks`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct NvtxExportTableCallbacks {
    /// The size of this struct, in bytes.
    pub struct_size: usize,
    /// Gives the functions of a module: an array of `size` pointers to where NVTX keeps the tool's functions. An entry can
    /// be null. Returns 1 if it exists.
    pub GetModuleFunctionTable: Option<
        unsafe extern "C" fn(
            module: u32,
            table: *mut *mut *mut *const c_void,
            size: *mut c_uint,
        ) -> c_int,
    >,
}

/// A message, by its type.
#[derive(Clone, Copy)]
#[repr(C)]
pub union nvtxMessageValue_t {
    /// [`NVTX_MESSAGE_TYPE_ASCII`]
    pub ascii: *const c_char,
    /// [`NVTX_MESSAGE_TYPE_UNICODE`]: UTF-32 on Linux.
    pub unicode: *const u32,
    /// [`NVTX_MESSAGE_TYPE_REGISTERED`]: the value that the tool returned when the string was registered.
    pub registered: usize,
}

/// `NVTX_MESSAGE_TYPE_ASCII`
pub const NVTX_MESSAGE_TYPE_ASCII: i32 = 1;
/// `NVTX_MESSAGE_TYPE_UNICODE`
pub const NVTX_MESSAGE_TYPE_UNICODE: i32 = 2;
/// `NVTX_MESSAGE_TYPE_REGISTERED`
pub const NVTX_MESSAGE_TYPE_REGISTERED: i32 = 3;

/// `nvtxEventAttributes_v2`
#[derive(Clone, Copy)]
#[repr(C)]
pub struct nvtxEventAttributes_t {
    /// The version of NVTX.
    pub version: u16,
    /// The size of this struct, in bytes.
    pub size: u16,
    /// A number that the program has chosen.
    pub category: u32,
    /// Not used.
    pub colorType: i32,
    /// Not used.
    pub color: u32,
    /// Not used.
    pub payloadType: i32,
    /// Not used.
    pub reserved0: i32,
    /// Not used.
    pub payload: u64,
    /// The type of `message`.
    pub messageType: i32,
    /// The text.
    pub message: nvtxMessageValue_t,
}

macro_rules! numbers {
    ($module:literal; $($name:ident = $number:literal;)*) => {
        $(
            #[doc = concat!("`NVTX_CBID_", $module, "_", stringify!($name), "`")]
            #[expect(non_upper_case_globals, reason = "NVTX's names")]
            pub const $name: usize = $number;
        )*
    };
}

/// The numbers of the functions in [`NVTX_CB_MODULE_CORE`] (`NVTX_CBID_CORE_…`).
pub mod core {
    numbers! { "CORE";
        MarkEx = 1;
        MarkA = 2;
        MarkW = 3;
        RangeStartEx = 4;
        RangeStartA = 5;
        RangeStartW = 6;
        RangeEnd = 7;
        RangePushEx = 8;
        RangePushA = 9;
        RangePushW = 10;
        RangePop = 11;
        NameOsThreadA = 14;
        NameOsThreadW = 15;
    }
}

/// The numbers of the functions in [`NVTX_CB_MODULE_CORE2`] (`NVTX_CBID_CORE2_…`).
pub mod core2 {
    numbers! { "CORE2";
        DomainMarkEx = 1;
        DomainRangeStartEx = 2;
        DomainRangeEnd = 3;
        DomainRangePushEx = 4;
        DomainRangePop = 5;
        DomainRegisterStringA = 10;
        DomainRegisterStringW = 11;
        DomainCreateA = 12;
        DomainCreateW = 13;
    }
}

/// The numbers of the functions in [`NVTX_CB_MODULE_CUDA`] (`NVTX_CBID_CUDA_…`).
pub mod cuda {
    numbers! { "CUDA";
        NameCuDeviceA = 1;
        NameCuDeviceW = 2;
        NameCuStreamA = 5;
        NameCuStreamW = 6;
    }
}

/// The numbers of the functions in [`NVTX_CB_MODULE_CUDART`] (`NVTX_CBID_CUDART_…`).
pub mod cudart {
    numbers! { "CUDART";
        NameCudaDeviceA = 1;
        NameCudaDeviceW = 2;
        NameCudaStreamA = 3;
        NameCudaStreamW = 4;
    }
}
