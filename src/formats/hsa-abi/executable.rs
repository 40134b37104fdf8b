//! Executables and their symbols.

use crate::handle::{AgentHandle, ExecutableHandle, SymbolHandle};
use crate::status::Status;
use std::ffi::c_void;

constants! {
    "`hsa_executable_state_t` (hsa.h)": u32 {
        HSA_EXECUTABLE_STATE_FROZEN = 1;
    }
    "`hsa_executable_info_t` (hsa.h)": u32 {
        /// An `hsa_profile_t`, u32.
        HSA_EXECUTABLE_INFO_PROFILE = 1;
        /// An `hsa_executable_state_t`, u32.
        HSA_EXECUTABLE_INFO_STATE = 2;
        /// An `hsa_default_float_rounding_mode_t`, u32.
        HSA_EXECUTABLE_INFO_DEFAULT_FLOAT_ROUNDING_MODE = 3;
    }
    "`hsa_symbol_kind_t` (hsa.h)": u32 {
        HSA_SYMBOL_KIND_VARIABLE = 0;
        HSA_SYMBOL_KIND_KERNEL = 1;
    }
    "`hsa_symbol_linkage_t` (hsa.h)": u32 {
        HSA_SYMBOL_LINKAGE_MODULE = 0;
        HSA_SYMBOL_LINKAGE_PROGRAM = 1;
    }
    "`hsa_variable_allocation_t` (hsa.h)": u32 {
        HSA_VARIABLE_ALLOCATION_PROGRAM = 1;
    }
    "`hsa_variable_segment_t` (hsa.h)": u32 {
        HSA_VARIABLE_SEGMENT_GLOBAL = 0;
    }
    "`hsa_executable_symbol_info_t` (hsa.h)": u32 {
        /// An `hsa_symbol_kind_t`, u32.
        HSA_EXECUTABLE_SYMBOL_INFO_TYPE = 0;
        /// u32, bytes without a terminator.
        HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH = 1;
        /// The bytes of the name, not terminated.
        HSA_EXECUTABLE_SYMBOL_INFO_NAME = 2;
        /// u32, bytes without a terminator.
        HSA_EXECUTABLE_SYMBOL_INFO_MODULE_NAME_LENGTH = 3;
        /// The bytes of the name, not terminated.
        HSA_EXECUTABLE_SYMBOL_INFO_MODULE_NAME = 4;
        /// An `hsa_symbol_linkage_t`, u32.
        HSA_EXECUTABLE_SYMBOL_INFO_LINKAGE = 5;
        /// An `hsa_variable_allocation_t`, u32.
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ALLOCATION = 6;
        /// An `hsa_variable_segment_t`, u32.
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SEGMENT = 7;
        /// u32, bytes.
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ALIGNMENT = 8;
        /// u32, bytes.
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE = 9;
        /// bool.
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_IS_CONST = 10;
        /// u32, bytes.
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE = 11;
        /// u32, bytes.
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT = 12;
        /// u32, bytes.
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE = 13;
        /// u32, bytes per work-item.
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE = 14;
        /// bool.
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK = 15;
        /// bool.
        HSA_EXECUTABLE_SYMBOL_INFO_IS_DEFINITION = 17;
        /// u32.
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_CALL_CONVENTION = 18;
        /// [`AgentHandle`].
        HSA_EXECUTABLE_SYMBOL_INFO_AGENT = 20;
        /// u64, an address in the agent's memory.
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS = 21;
        /// u64, the `kernel_object` of a dispatch packet.
        HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT = 22;
    }
}

/// The callback of `hsa_executable_iterate_symbols` and `hsa_executable_iterate_program_symbols` (hsa.h).
pub type SymbolCallback =
    unsafe extern "C" fn(ExecutableHandle, SymbolHandle, *mut c_void) -> Status;
/// The callback of `hsa_executable_iterate_agent_symbols` (hsa.h).
pub type AgentSymbolCallback =
    unsafe extern "C" fn(ExecutableHandle, AgentHandle, SymbolHandle, *mut c_void) -> Status;
