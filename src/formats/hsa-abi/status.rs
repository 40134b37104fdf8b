//! `hsa_status_t` (hsa.h, hsa_ext_amd.h).

use std::ffi::CStr;
use std::fmt;

/// `hsa_status_t`: the result of most functions.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Status(pub u32);

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HSA status {:#x}", self.0)
    }
}

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $header:literal, $value:literal;)*) => {
        impl Status {
            $(
                #[doc = concat!("`", $header, "`")]
                ///
                $(#[$doc])*
                pub const $name: Status = Status($value);
            )*
        }

        /// Every status and its name in the header.
        const NAMES: &[(Status, &CStr)] = &[$((
            Status($value),
            match CStr::from_bytes_with_nul(concat!($header, "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!(),
            },
        ),)*];
    };
}

statuses! {
    SUCCESS = "HSA_STATUS_SUCCESS", 0;
    /// A callback has ended an iteration.
    INFO_BREAK = "HSA_STATUS_INFO_BREAK", 1;
    ERROR = "HSA_STATUS_ERROR", 0x1000;
    INVALID_ARGUMENT = "HSA_STATUS_ERROR_INVALID_ARGUMENT", 0x1001;
    INVALID_QUEUE_CREATION = "HSA_STATUS_ERROR_INVALID_QUEUE_CREATION", 0x1002;
    INVALID_ALLOCATION = "HSA_STATUS_ERROR_INVALID_ALLOCATION", 0x1003;
    INVALID_AGENT = "HSA_STATUS_ERROR_INVALID_AGENT", 0x1004;
    INVALID_REGION = "HSA_STATUS_ERROR_INVALID_REGION", 0x1005;
    INVALID_SIGNAL = "HSA_STATUS_ERROR_INVALID_SIGNAL", 0x1006;
    INVALID_QUEUE = "HSA_STATUS_ERROR_INVALID_QUEUE", 0x1007;
    OUT_OF_RESOURCES = "HSA_STATUS_ERROR_OUT_OF_RESOURCES", 0x1008;
    INVALID_PACKET_FORMAT = "HSA_STATUS_ERROR_INVALID_PACKET_FORMAT", 0x1009;
    RESOURCE_FREE = "HSA_STATUS_ERROR_RESOURCE_FREE", 0x100a;
    NOT_INITIALIZED = "HSA_STATUS_ERROR_NOT_INITIALIZED", 0x100b;
    REFCOUNT_OVERFLOW = "HSA_STATUS_ERROR_REFCOUNT_OVERFLOW", 0x100c;
    INCOMPATIBLE_ARGUMENTS = "HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS", 0x100d;
    INVALID_INDEX = "HSA_STATUS_ERROR_INVALID_INDEX", 0x100e;
    INVALID_ISA = "HSA_STATUS_ERROR_INVALID_ISA", 0x100f;
    INVALID_CODE_OBJECT = "HSA_STATUS_ERROR_INVALID_CODE_OBJECT", 0x1010;
    INVALID_EXECUTABLE = "HSA_STATUS_ERROR_INVALID_EXECUTABLE", 0x1011;
    FROZEN_EXECUTABLE = "HSA_STATUS_ERROR_FROZEN_EXECUTABLE", 0x1012;
    INVALID_SYMBOL_NAME = "HSA_STATUS_ERROR_INVALID_SYMBOL_NAME", 0x1013;
    VARIABLE_ALREADY_DEFINED = "HSA_STATUS_ERROR_VARIABLE_ALREADY_DEFINED", 0x1014;
    VARIABLE_UNDEFINED = "HSA_STATUS_ERROR_VARIABLE_UNDEFINED", 0x1015;
    EXCEPTION = "HSA_STATUS_ERROR_EXCEPTION", 0x1016;
    INVALID_ISA_NAME = "HSA_STATUS_ERROR_INVALID_ISA_NAME", 0x1017;
    INVALID_CODE_SYMBOL = "HSA_STATUS_ERROR_INVALID_CODE_SYMBOL", 0x1018;
    INVALID_EXECUTABLE_SYMBOL = "HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL", 0x1019;
    INVALID_FILE = "HSA_STATUS_ERROR_INVALID_FILE", 0x1020;
    INVALID_CODE_OBJECT_READER = "HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER", 0x1021;
    INVALID_CACHE = "HSA_STATUS_ERROR_INVALID_CACHE", 0x1022;
    INVALID_WAVEFRONT = "HSA_STATUS_ERROR_INVALID_WAVEFRONT", 0x1023;
    INVALID_SIGNAL_GROUP = "HSA_STATUS_ERROR_INVALID_SIGNAL_GROUP", 0x1024;
    INVALID_RUNTIME_STATE = "HSA_STATUS_ERROR_INVALID_RUNTIME_STATE", 0x1025;
    FATAL = "HSA_STATUS_ERROR_FATAL", 0x1026;
    INVALID_MEMORY_POOL = "HSA_STATUS_ERROR_INVALID_MEMORY_POOL", 40;
    MEMORY_APERTURE_VIOLATION = "HSA_STATUS_ERROR_MEMORY_APERTURE_VIOLATION", 41;
    ILLEGAL_INSTRUCTION = "HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION", 42;
    MEMORY_FAULT = "HSA_STATUS_ERROR_MEMORY_FAULT", 43;
    NOT_SUPPORTED = "HSA_STATUS_ERROR_NOT_SUPPORTED", 47;
}

impl Status {
    /// The header's name for this status, such as `HSA_STATUS_SUCCESS`.
    pub fn name(self) -> Option<&'static CStr> {
        let entry = NAMES.iter().find(|(status, _)| *status == self)?;
        Some(entry.1)
    }

    /// The status with this name in the header.
    pub fn from_name(name: &str) -> Option<Status> {
        let mut names = NAMES.iter();
        let entry = names.find(|(_, known)| known.to_bytes() == name.as_bytes())?;
        Some(entry.0)
    }
}
