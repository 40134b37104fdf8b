//! Every function, once: its place in ROCr's API tables, its signature, and the module that does it.
//!
//! As in ROCr, what the library exports calls through the tables, so what a tool puts into a table is what every
//! caller gets; and the tables hold functions that first ask the fault plan ([`crate::plan`]) and then do the work. A
//! function that is not simulated has its place in the table and is not exported: a call through the table says so and
//! fails.

use crate::abi::*;
use crate::plan;
use crate::queue_create::QueueCreateDesc;
use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_void};

/// What a table holds for a function that is not simulated.
pub type NotSimulated = unsafe extern "C" fn() -> Status;

/// A function's name and, if it is simulated, the sizes of its result and its parameters.
pub type Shape = (&'static str, Option<(usize, &'static [usize])>);

macro_rules! pointer {
    () => { NotSimulated };
    ($($ty:ty),* => $ret:ty) => { unsafe extern "C" fn($($ty),*) -> $ret };
}

macro_rules! shape {
    () => { None };
    ($($ty:ty),* => $ret:ty) => { Some((size_of::<$ret>(), &[$(size_of::<$ty>()),*])) };
}

macro_rules! entry {
    ($name:ident) => {
        pub unsafe extern "C" fn $name() -> Status {
            eprintln!("hsa-sim: {} is not simulated", stringify!($name));
            HSA_STATUS_ERROR_NOT_SUPPORTED
        }
    };
    ($name:ident, $($arg:ident: $ty:ty),* => $ret:ty, $module:ident) => {
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            plan::call(stringify!($name), || {
                // SAFETY: the caller's promise is that of HSA's specification for this function.
                unsafe { crate::$module::$name($($arg),*) }
            })
        }
    };
}

macro_rules! export {
    ($table:ident, $name:ident) => {};
    ($table:ident, $name:ident, $($arg:ident: $ty:ty),* => $ret:ty) => {
        /// The function of HSA's of this name.
        ///
        /// # Safety
        /// As HSA's specification says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            // SAFETY: the table's function has this signature, and the caller's promise is passed on.
            unsafe { ((*TABLES.get()).$table.$name)($($arg),*) }
        }
    };
}

macro_rules! tables {
    ($($table:ident: $type:ident = $c:literal v($major:literal, $step:literal) {
        $($name:ident $(($($arg:ident: $ty:ty),*) -> $ret:ty = $module:ident)?;)*
    })*) => {
        $(
            #[doc = concat!("`", $c, "`.")]
            #[repr(C)]
            pub struct $type {
                pub version: TableVersion,
                $(pub $name: pointer!($($($ty),* => $ret)?),)*
            }

            impl $type {
                /// The table as the runtime makes it.
                pub const NEW: $type = $type {
                    version: TableVersion {
                        major: $major,
                        minor: size_of::<$type>() as u32,
                        step: $step,
                        reserved: 0,
                    },
                    $($name: entry::$name,)*
                };
            }
        )*

        /// The tables, in the order in which they stand in `HsaApiTableContainer`.
        #[repr(C)]
        pub struct Tables {
            $(pub $table: $type,)*
        }

        impl Tables {
            const NEW: Tables = Tables { $($table: $type::NEW,)* };
        }

        mod entry {
            use super::*;
            $($(entry! { $name $(, $($arg: $ty),* => $ret, $module)? })*)*
        }

        mod export {
            use super::*;
            $($(export! { $table, $name $(, $($arg: $ty),* => $ret)? })*)*
        }
        pub use export::*;

        /// Every table: its C name, size, version, step, and functions in order.
        pub const SHAPES: &[(&str, usize, u32, u32, &[Shape])] = &[$((
            $c,
            size_of::<$type>(),
            $major,
            $step,
            &[$((stringify!($name), shape!($($($ty),* => $ret)?)),)*],
        ),)*];
    };
}

/// What of the newest `AmdExtTable` is in ROCr 7.2.4's: functions, and the step of its version.
pub const AMD_EXT_7_2: (usize, u32) = (76, 8);

/// The version of ROCr 7.2.4's `AmdExtTable`, whose functions are the first of the newest one.
pub fn amd_ext_7_2() -> TableVersion {
    let (functions, step) = AMD_EXT_7_2;
    let size = size_of::<TableVersion>() + functions * size_of::<usize>();
    TableVersion {
        minor: size as u32,
        step,
        ..AmdExtTable::NEW.version
    }
}

tables! {
    core: CoreTable = "CoreApiTable" v(2, 0) {
        hsa_init() -> Status = runtime;
        hsa_shut_down() -> Status = runtime;
        hsa_system_get_info(attribute: u32, value: *mut c_void) -> Status = system;
        hsa_system_extension_supported(extension: u16, major: u16, minor: u16, result: *mut bool) -> Status = system;
        hsa_system_get_extension_table(extension: u16, major: u16, minor: u16, table: *mut c_void) -> Status = system;
        hsa_iterate_agents(callback: Visit, data: *mut c_void) -> Status = agent;
        hsa_agent_get_info(agent: Agent, attribute: u32, value: *mut c_void) -> Status = agent;
        hsa_queue_create(agent: Agent, size: u32, kind: u32, callback: Option<QueueError>, data: *mut c_void, private: u32, group: u32, queue: *mut *mut Queue) -> Status = queue;
        hsa_soft_queue_create;
        hsa_queue_destroy(queue: *mut Queue) -> Status = queue;
        hsa_queue_inactivate(queue: *mut Queue) -> Status = queue;
        hsa_queue_load_read_index_scacquire(queue: *const Queue) -> u64 = queue;
        hsa_queue_load_read_index_relaxed(queue: *const Queue) -> u64 = queue;
        hsa_queue_load_write_index_scacquire(queue: *const Queue) -> u64 = queue;
        hsa_queue_load_write_index_relaxed(queue: *const Queue) -> u64 = queue;
        hsa_queue_store_write_index_relaxed(queue: *const Queue, value: u64) -> () = queue;
        hsa_queue_store_write_index_screlease(queue: *const Queue, value: u64) -> () = queue;
        hsa_queue_cas_write_index_scacq_screl(queue: *const Queue, expected: u64, value: u64) -> u64 = queue;
        hsa_queue_cas_write_index_scacquire(queue: *const Queue, expected: u64, value: u64) -> u64 = queue;
        hsa_queue_cas_write_index_relaxed(queue: *const Queue, expected: u64, value: u64) -> u64 = queue;
        hsa_queue_cas_write_index_screlease(queue: *const Queue, expected: u64, value: u64) -> u64 = queue;
        hsa_queue_add_write_index_scacq_screl(queue: *const Queue, value: u64) -> u64 = queue;
        hsa_queue_add_write_index_scacquire(queue: *const Queue, value: u64) -> u64 = queue;
        hsa_queue_add_write_index_relaxed(queue: *const Queue, value: u64) -> u64 = queue;
        hsa_queue_add_write_index_screlease(queue: *const Queue, value: u64) -> u64 = queue;
        hsa_queue_store_read_index_relaxed(queue: *const Queue, value: u64) -> () = queue;
        hsa_queue_store_read_index_screlease(queue: *const Queue, value: u64) -> () = queue;
        hsa_agent_iterate_regions(agent: Agent, callback: Visit, data: *mut c_void) -> Status = memory;
        hsa_region_get_info(region: Pool, attribute: u32, value: *mut c_void) -> Status = memory;
        hsa_agent_get_exception_policies;
        hsa_agent_extension_supported(extension: u16, agent: Agent, major: u16, minor: u16, result: *mut bool) -> Status = system;
        hsa_memory_register(base: *mut c_void, size: usize) -> Status = memory;
        hsa_memory_deregister(base: *mut c_void, size: usize) -> Status = memory;
        hsa_memory_allocate(region: Pool, size: usize, base: *mut *mut c_void) -> Status = memory;
        hsa_memory_free(base: *mut c_void) -> Status = memory;
        hsa_memory_copy(to: *mut c_void, from: *const c_void, size: usize) -> Status = copy;
        hsa_memory_assign_agent(base: *mut c_void, agent: Agent, access: u32) -> Status = memory;
        hsa_signal_create(value: SignalValue, consumers: u32, agents: *const Agent, signal: *mut Signal) -> Status = signal;
        hsa_signal_destroy(signal: Signal) -> Status = signal;
        hsa_signal_load_relaxed(signal: Signal) -> SignalValue = signal;
        hsa_signal_load_scacquire(signal: Signal) -> SignalValue = signal;
        hsa_signal_store_relaxed(signal: Signal, value: SignalValue) -> () = signal;
        hsa_signal_store_screlease(signal: Signal, value: SignalValue) -> () = signal;
        hsa_signal_wait_relaxed(signal: Signal, condition: u32, value: SignalValue, timeout: u64, hint: u32) -> SignalValue = signal;
        hsa_signal_wait_scacquire(signal: Signal, condition: u32, value: SignalValue, timeout: u64, hint: u32) -> SignalValue = signal;
        hsa_signal_and_relaxed(signal: Signal, value: SignalValue) -> () = signal;
        hsa_signal_and_scacquire(signal: Signal, value: SignalValue) -> () = signal;
        hsa_signal_and_screlease(signal: Signal, value: SignalValue) -> () = signal;
        hsa_signal_and_scacq_screl(signal: Signal, value: SignalValue) -> () = signal;
        hsa_signal_or_relaxed(signal: Signal, value: SignalValue) -> () = signal;
        hsa_signal_or_scacquire(signal: Signal, value: SignalValue) -> () = signal;
        hsa_signal_or_screlease(signal: Signal, value: SignalValue) -> () = signal;
        hsa_signal_or_scacq_screl(signal: Signal, value: SignalValue) -> () = signal;
        hsa_signal_xor_relaxed(signal: Signal, value: SignalValue) -> () = signal;
        hsa_signal_xor_scacquire(signal: Signal, value: SignalValue) -> () = signal;
        hsa_signal_xor_screlease(signal: Signal, value: SignalValue) -> () = signal;
        hsa_signal_xor_scacq_screl(signal: Signal, value: SignalValue) -> () = signal;
        hsa_signal_exchange_relaxed(signal: Signal, value: SignalValue) -> SignalValue = signal;
        hsa_signal_exchange_scacquire(signal: Signal, value: SignalValue) -> SignalValue = signal;
        hsa_signal_exchange_screlease(signal: Signal, value: SignalValue) -> SignalValue = signal;
        hsa_signal_exchange_scacq_screl(signal: Signal, value: SignalValue) -> SignalValue = signal;
        hsa_signal_add_relaxed(signal: Signal, value: SignalValue) -> () = signal;
        hsa_signal_add_scacquire(signal: Signal, value: SignalValue) -> () = signal;
        hsa_signal_add_screlease(signal: Signal, value: SignalValue) -> () = signal;
        hsa_signal_add_scacq_screl(signal: Signal, value: SignalValue) -> () = signal;
        hsa_signal_subtract_relaxed(signal: Signal, value: SignalValue) -> () = signal;
        hsa_signal_subtract_scacquire(signal: Signal, value: SignalValue) -> () = signal;
        hsa_signal_subtract_screlease(signal: Signal, value: SignalValue) -> () = signal;
        hsa_signal_subtract_scacq_screl(signal: Signal, value: SignalValue) -> () = signal;
        hsa_signal_cas_relaxed(signal: Signal, expected: SignalValue, value: SignalValue) -> SignalValue = signal;
        hsa_signal_cas_scacquire(signal: Signal, expected: SignalValue, value: SignalValue) -> SignalValue = signal;
        hsa_signal_cas_screlease(signal: Signal, expected: SignalValue, value: SignalValue) -> SignalValue = signal;
        hsa_signal_cas_scacq_screl(signal: Signal, expected: SignalValue, value: SignalValue) -> SignalValue = signal;
        hsa_isa_from_name(name: *const c_char, isa: *mut Isa) -> Status = agent;
        hsa_isa_get_info(isa: Isa, attribute: u32, index: u32, value: *mut c_void) -> Status = agent;
        hsa_isa_compatible(code: Isa, agent: Isa, result: *mut bool) -> Status = agent;
        hsa_code_object_serialize;
        hsa_code_object_deserialize;
        hsa_code_object_destroy;
        hsa_code_object_get_info;
        hsa_code_object_get_symbol;
        hsa_code_symbol_get_info;
        hsa_code_object_iterate_symbols;
        hsa_executable_create(profile: u32, state: u32, options: *const c_char, executable: *mut Executable) -> Status = executable;
        hsa_executable_destroy(executable: Executable) -> Status = executable;
        hsa_executable_load_code_object;
        hsa_executable_freeze(executable: Executable, options: *const c_char) -> Status = executable;
        hsa_executable_get_info(executable: Executable, attribute: u32, value: *mut c_void) -> Status = executable;
        hsa_executable_global_variable_define(executable: Executable, name: *const c_char, address: *mut c_void) -> Status = executable;
        hsa_executable_agent_global_variable_define(executable: Executable, agent: Agent, name: *const c_char, address: *mut c_void) -> Status = executable;
        hsa_executable_readonly_variable_define(executable: Executable, agent: Agent, name: *const c_char, address: *mut c_void) -> Status = executable;
        hsa_executable_validate(executable: Executable, result: *mut u32) -> Status = executable;
        hsa_executable_get_symbol(executable: Executable, module: *const c_char, name: *const c_char, agent: Agent, convention: i32, symbol: *mut Symbol) -> Status = executable;
        hsa_executable_symbol_get_info(symbol: Symbol, attribute: u32, value: *mut c_void) -> Status = executable;
        hsa_executable_iterate_symbols(executable: Executable, callback: VisitOf, data: *mut c_void) -> Status = executable;
        hsa_status_string(status: Status, text: *mut *const c_char) -> Status = system;
        hsa_extension_get_name(extension: u16, name: *mut *const c_char) -> Status = system;
        hsa_system_major_extension_supported(extension: u16, major: u16, minor: *mut u16, result: *mut bool) -> Status = system;
        hsa_system_get_major_extension_table(extension: u16, major: u16, length: usize, table: *mut c_void) -> Status = system;
        hsa_agent_major_extension_supported(extension: u16, agent: Agent, major: u16, minor: *mut u16, result: *mut bool) -> Status = system;
        hsa_cache_get_info;
        hsa_agent_iterate_caches(agent: Agent, callback: Visit, data: *mut c_void) -> Status = agent;
        hsa_signal_silent_store_relaxed(signal: Signal, value: SignalValue) -> () = signal;
        hsa_signal_silent_store_screlease(signal: Signal, value: SignalValue) -> () = signal;
        hsa_signal_group_create;
        hsa_signal_group_destroy;
        hsa_signal_group_wait_any_scacquire;
        hsa_signal_group_wait_any_relaxed;
        hsa_agent_iterate_isas(agent: Agent, callback: Visit, data: *mut c_void) -> Status = agent;
        hsa_isa_get_info_alt(isa: Isa, attribute: u32, value: *mut c_void) -> Status = agent;
        hsa_isa_get_exception_policies;
        hsa_isa_get_round_method;
        hsa_wavefront_get_info(wavefront: Wavefront, attribute: u32, value: *mut c_void) -> Status = agent;
        hsa_isa_iterate_wavefronts(isa: Isa, callback: Visit, data: *mut c_void) -> Status = agent;
        hsa_code_object_get_symbol_from_name;
        hsa_code_object_reader_create_from_file(file: c_int, reader: *mut Reader) -> Status = executable;
        hsa_code_object_reader_create_from_memory(base: *const c_void, size: usize, reader: *mut Reader) -> Status = executable;
        hsa_code_object_reader_destroy(reader: Reader) -> Status = executable;
        hsa_executable_create_alt(profile: u32, rounding: u32, options: *const c_char, executable: *mut Executable) -> Status = executable;
        hsa_executable_load_program_code_object;
        hsa_executable_load_agent_code_object(executable: Executable, agent: Agent, reader: Reader, options: *const c_char, loaded: *mut LoadedCodeObject) -> Status = executable;
        hsa_executable_validate_alt(executable: Executable, options: *const c_char, result: *mut u32) -> Status = executable;
        hsa_executable_get_symbol_by_name(executable: Executable, name: *const c_char, agent: *const Agent, symbol: *mut Symbol) -> Status = executable;
        hsa_executable_iterate_agent_symbols(executable: Executable, agent: Agent, callback: VisitAgentSymbol, data: *mut c_void) -> Status = executable;
        hsa_executable_iterate_program_symbols(executable: Executable, callback: VisitOf, data: *mut c_void) -> Status = executable;
    }
    amd_ext: AmdExtTable = "AmdExtTable" v(2, 0x10) {
        hsa_amd_coherency_get_type;
        hsa_amd_coherency_set_type;
        hsa_amd_profiling_set_profiler_enabled(queue: *mut Queue, enable: c_int) -> Status = profiling;
        hsa_amd_profiling_async_copy_enable(enable: bool) -> Status = profiling;
        hsa_amd_profiling_get_dispatch_time(agent: Agent, signal: Signal, time: *mut Times) -> Status = profiling;
        hsa_amd_profiling_get_async_copy_time(signal: Signal, time: *mut Times) -> Status = profiling;
        hsa_amd_profiling_convert_tick_to_system_domain(agent: Agent, tick: u64, system: *mut u64) -> Status = profiling;
        hsa_amd_signal_async_handler(signal: Signal, condition: u32, value: SignalValue, handler: SignalHandler, data: *mut c_void) -> Status = signal;
        hsa_amd_async_function(callback: unsafe extern "C" fn(*mut c_void), data: *mut c_void) -> Status = signal;
        hsa_amd_signal_wait_any(count: u32, signals: *const Signal, conditions: *const u32, values: *const SignalValue, timeout: u64, hint: u32, satisfying: *mut SignalValue) -> u32 = signal;
        hsa_amd_queue_cu_set_mask(queue: *mut Queue, bits: u32, mask: *const u32) -> Status = queue;
        hsa_amd_memory_pool_get_info(pool: Pool, attribute: u32, value: *mut c_void) -> Status = memory;
        hsa_amd_agent_iterate_memory_pools(agent: Agent, callback: Visit, data: *mut c_void) -> Status = memory;
        hsa_amd_memory_pool_allocate(pool: Pool, size: usize, flags: u32, base: *mut *mut c_void) -> Status = memory;
        hsa_amd_memory_pool_free(base: *mut c_void) -> Status = memory;
        hsa_amd_memory_async_copy(to: *mut c_void, to_agent: Agent, from: *const c_void, from_agent: Agent, size: usize, count: u32, dependencies: *const Signal, completion: Signal) -> Status = copy;
        hsa_amd_memory_async_copy_on_engine(to: *mut c_void, to_agent: Agent, from: *const c_void, from_agent: Agent, size: usize, count: u32, dependencies: *const Signal, completion: Signal, engine: u32, force: bool) -> Status = copy;
        hsa_amd_memory_copy_engine_status;
        hsa_amd_agent_memory_pool_get_info(agent: Agent, pool: Pool, attribute: u32, value: *mut c_void) -> Status = memory;
        hsa_amd_agents_allow_access(count: u32, agents: *const Agent, flags: *const u32, base: *const c_void) -> Status = memory;
        hsa_amd_memory_pool_can_migrate;
        hsa_amd_memory_migrate;
        hsa_amd_memory_lock(base: *mut c_void, size: usize, agents: *const Agent, count: c_int, agent_base: *mut *mut c_void) -> Status = memory;
        hsa_amd_memory_unlock(base: *mut c_void) -> Status = memory;
        hsa_amd_memory_fill(base: *mut c_void, value: u32, count: usize) -> Status = copy;
        hsa_amd_interop_map_buffer;
        hsa_amd_interop_unmap_buffer;
        hsa_amd_image_create;
        hsa_amd_pointer_info(address: *const c_void, info: *mut PointerInfo, alloc: Option<unsafe extern "C" fn(usize) -> *mut c_void>, count: *mut u32, agents: *mut *mut Agent) -> Status = memory;
        hsa_amd_pointer_info_set_userdata(address: *const c_void, data: *mut c_void) -> Status = memory;
        hsa_amd_ipc_memory_create;
        hsa_amd_ipc_memory_attach;
        hsa_amd_ipc_memory_detach;
        hsa_amd_signal_create(value: SignalValue, consumers: u32, agents: *const Agent, attributes: u64, signal: *mut Signal) -> Status = signal;
        hsa_amd_ipc_signal_create;
        hsa_amd_ipc_signal_attach;
        hsa_amd_register_system_event_handler(callback: SystemEvent, data: *mut c_void) -> Status = system;
        hsa_amd_queue_intercept_create(agent: Agent, size: u32, kind: u32, callback: Option<QueueError>, data: *mut c_void, private: u32, group: u32, queue: *mut *mut Queue) -> Status = intercept;
        hsa_amd_queue_intercept_register(queue: *mut Queue, callback: PacketHandler, data: *mut c_void) -> Status = intercept;
        hsa_amd_queue_set_priority(queue: *mut Queue, priority: u32) -> Status = queue;
        hsa_amd_memory_async_copy_rect;
        hsa_amd_runtime_queue_create_register(callback: Option<QueueNotifier>, data: *mut c_void) -> Status = queue;
        hsa_amd_memory_lock_to_pool(base: *mut c_void, size: usize, agents: *const Agent, count: c_int, pool: Pool, flags: u32, agent_base: *mut *mut c_void) -> Status = memory;
        hsa_amd_register_deallocation_callback(base: *mut c_void, callback: Deallocated, data: *mut c_void) -> Status = memory;
        hsa_amd_deregister_deallocation_callback(base: *mut c_void, callback: Deallocated) -> Status = memory;
        hsa_amd_signal_value_pointer(signal: Signal, value: *mut *mut SignalValue) -> Status = signal;
        hsa_amd_svm_attributes_set;
        hsa_amd_svm_attributes_get;
        hsa_amd_svm_prefetch_async;
        hsa_amd_spm_acquire;
        hsa_amd_spm_release;
        hsa_amd_spm_set_dest_buffer;
        hsa_amd_queue_cu_get_mask(queue: *mut Queue, bits: u32, mask: *mut u32) -> Status = queue;
        hsa_amd_portable_export_dmabuf;
        hsa_amd_portable_close_dmabuf;
        hsa_amd_vmem_address_reserve;
        hsa_amd_vmem_address_free;
        hsa_amd_vmem_handle_create;
        hsa_amd_vmem_handle_release;
        hsa_amd_vmem_map;
        hsa_amd_vmem_unmap;
        hsa_amd_vmem_set_access;
        hsa_amd_vmem_get_access;
        hsa_amd_vmem_export_shareable_handle;
        hsa_amd_vmem_import_shareable_handle;
        hsa_amd_vmem_retain_alloc_handle;
        hsa_amd_vmem_get_alloc_properties_from_handle;
        hsa_amd_agent_set_async_scratch_limit;
        hsa_amd_queue_get_info(queue: *mut Queue, attribute: u32, value: *mut c_void) -> Status = queue;
        hsa_amd_vmem_address_reserve_align;
        hsa_amd_enable_logging;
        hsa_amd_signal_wait_all(count: u32, signals: *const Signal, conditions: *const u32, values: *const SignalValue, timeout: u64, hint: u32, satisfying: *mut SignalValue) -> u32 = signal;
        hsa_amd_memory_get_preferred_copy_engine;
        hsa_amd_portable_export_dmabuf_v2;
        hsa_amd_ais_file_write;
        hsa_amd_ais_file_read;
        hsa_amd_counted_queue_acquire(agent: Agent, kind: u32, priority: u32, callback: Option<QueueError>, data: *mut c_void, flags: u64, queue: *mut *mut Queue) -> Status = counted;
        hsa_amd_counted_queue_release(queue: *mut Queue) -> Status = counted;
        hsa_amd_memory_async_batch_copy;
        hsa_amd_agent_preload;
        hsa_amd_svm_discard_batch_async;
        hsa_amd_signal_get_event_id;
        hsa_amd_external_semaphore_handle_open;
        hsa_amd_external_semaphore_handle_close;
        hsa_amd_vmem_export_fabric_handle;
        hsa_amd_vmem_import_fabric_handle;
        hsa_amd_queue_create(agent: Agent, descs: *mut QueueCreateDesc, count: u32) -> Status = queue_create;
    }
    finalizer_ext: FinalizerTable = "FinalizerExtTable" v(2, 0) {
        hsa_ext_program_create;
        hsa_ext_program_destroy;
        hsa_ext_program_add_module;
        hsa_ext_program_iterate_modules;
        hsa_ext_program_get_info;
        hsa_ext_program_finalize;
    }
    image_ext: ImageTable = "ImageExtTable" v(2, 1) {
        hsa_ext_image_get_capability;
        hsa_ext_image_data_get_info;
        hsa_ext_image_create;
        hsa_ext_image_import;
        hsa_ext_image_export;
        hsa_ext_image_copy;
        hsa_ext_image_clear;
        hsa_ext_image_destroy;
        hsa_ext_sampler_create;
        hsa_ext_sampler_destroy;
        hsa_ext_image_get_capability_with_layout;
        hsa_ext_image_data_get_info_with_layout;
        hsa_ext_image_create_with_layout;
        hsa_ext_sampler_create_v2;
    }
    tools: ToolsTable = "ToolsApiTable" v(1, 0) {
        hsa_amd_tool_scratch_event_alloc_start;
        hsa_amd_tool_scratch_event_alloc_end;
        hsa_amd_tool_scratch_event_free_start;
        hsa_amd_tool_scratch_event_free_end;
        hsa_amd_tool_scratch_event_async_reclaim_start;
        hsa_amd_tool_scratch_event_async_reclaim_end;
    }
    pc_sampling_ext: PcSamplingTable = "PcSamplingExtTable" v(1, 0) {
        hsa_ven_amd_pcs_iterate_configuration;
        hsa_ven_amd_pcs_create;
        hsa_ven_amd_pcs_create_from_id;
        hsa_ven_amd_pcs_destroy;
        hsa_ven_amd_pcs_start;
        hsa_ven_amd_pcs_stop;
        hsa_ven_amd_pcs_flush;
    }
}

/// The older names, which ROCr still exports, of functions in the table.
macro_rules! older {
    ($($old:ident = $new:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => {$(
        /// The older name of the function that it calls.
        ///
        /// # Safety
        /// As HSA's specification says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $old($($arg: $ty),*) -> $ret {
            // SAFETY: the caller's promise is passed on.
            unsafe { $new($($arg),*) }
        }
    )*};
}

older! {
    hsa_signal_load_acquire = hsa_signal_load_scacquire(signal: Signal) -> SignalValue;
    hsa_signal_store_release = hsa_signal_store_screlease(signal: Signal, value: SignalValue) -> ();
    hsa_signal_wait_acquire = hsa_signal_wait_scacquire(signal: Signal, condition: u32, value: SignalValue, timeout: u64, hint: u32) -> SignalValue;
    hsa_signal_and_acquire = hsa_signal_and_scacquire(signal: Signal, value: SignalValue) -> ();
    hsa_signal_and_release = hsa_signal_and_screlease(signal: Signal, value: SignalValue) -> ();
    hsa_signal_and_acq_rel = hsa_signal_and_scacq_screl(signal: Signal, value: SignalValue) -> ();
    hsa_signal_or_acquire = hsa_signal_or_scacquire(signal: Signal, value: SignalValue) -> ();
    hsa_signal_or_release = hsa_signal_or_screlease(signal: Signal, value: SignalValue) -> ();
    hsa_signal_or_acq_rel = hsa_signal_or_scacq_screl(signal: Signal, value: SignalValue) -> ();
    hsa_signal_xor_acquire = hsa_signal_xor_scacquire(signal: Signal, value: SignalValue) -> ();
    hsa_signal_xor_release = hsa_signal_xor_screlease(signal: Signal, value: SignalValue) -> ();
    hsa_signal_xor_acq_rel = hsa_signal_xor_scacq_screl(signal: Signal, value: SignalValue) -> ();
    hsa_signal_exchange_acquire = hsa_signal_exchange_scacquire(signal: Signal, value: SignalValue) -> SignalValue;
    hsa_signal_exchange_release = hsa_signal_exchange_screlease(signal: Signal, value: SignalValue) -> SignalValue;
    hsa_signal_exchange_acq_rel = hsa_signal_exchange_scacq_screl(signal: Signal, value: SignalValue) -> SignalValue;
    hsa_signal_add_acquire = hsa_signal_add_scacquire(signal: Signal, value: SignalValue) -> ();
    hsa_signal_add_release = hsa_signal_add_screlease(signal: Signal, value: SignalValue) -> ();
    hsa_signal_add_acq_rel = hsa_signal_add_scacq_screl(signal: Signal, value: SignalValue) -> ();
    hsa_signal_subtract_acquire = hsa_signal_subtract_scacquire(signal: Signal, value: SignalValue) -> ();
    hsa_signal_subtract_release = hsa_signal_subtract_screlease(signal: Signal, value: SignalValue) -> ();
    hsa_signal_subtract_acq_rel = hsa_signal_subtract_scacq_screl(signal: Signal, value: SignalValue) -> ();
    hsa_signal_cas_acquire = hsa_signal_cas_scacquire(signal: Signal, expected: SignalValue, value: SignalValue) -> SignalValue;
    hsa_signal_cas_release = hsa_signal_cas_screlease(signal: Signal, expected: SignalValue, value: SignalValue) -> SignalValue;
    hsa_signal_cas_acq_rel = hsa_signal_cas_scacq_screl(signal: Signal, expected: SignalValue, value: SignalValue) -> SignalValue;
    hsa_queue_load_read_index_acquire = hsa_queue_load_read_index_scacquire(queue: *const Queue) -> u64;
    hsa_queue_load_write_index_acquire = hsa_queue_load_write_index_scacquire(queue: *const Queue) -> u64;
    hsa_queue_store_write_index_release = hsa_queue_store_write_index_screlease(queue: *const Queue, value: u64) -> ();
    hsa_queue_store_read_index_release = hsa_queue_store_read_index_screlease(queue: *const Queue, value: u64) -> ();
    hsa_queue_cas_write_index_acquire = hsa_queue_cas_write_index_scacquire(queue: *const Queue, expected: u64, value: u64) -> u64;
    hsa_queue_cas_write_index_release = hsa_queue_cas_write_index_screlease(queue: *const Queue, expected: u64, value: u64) -> u64;
    hsa_queue_cas_write_index_acq_rel = hsa_queue_cas_write_index_scacq_screl(queue: *const Queue, expected: u64, value: u64) -> u64;
    hsa_queue_add_write_index_acquire = hsa_queue_add_write_index_scacquire(queue: *const Queue, value: u64) -> u64;
    hsa_queue_add_write_index_release = hsa_queue_add_write_index_screlease(queue: *const Queue, value: u64) -> u64;
    hsa_queue_add_write_index_acq_rel = hsa_queue_add_write_index_scacq_screl(queue: *const Queue, value: u64) -> u64;
}

/// Tables that tools write to.
pub struct Shared(UnsafeCell<Tables>);

// SAFETY: tools write while they are loaded, inside hsa_init, as ROCr's tables ask of them; a reader of a pointer that
// is being replaced gets the old or the new one.
unsafe impl Sync for Shared {}

impl Shared {
    /// Where the tables lie.
    pub fn get(&self) -> *mut Tables {
        self.0.get()
    }

    /// Puts the runtime's own functions back.
    pub fn reset(&self) {
        // SAFETY: called when the last tool has been told to go, under the runtime's lock.
        unsafe { *self.get() = Tables::NEW };
    }
}

/// The process's tables.
pub static TABLES: Shared = Shared(UnsafeCell::new(Tables::NEW));

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn what_newer_releases_have_added_is_where_they_have_it() {
        for (at, offset) in [
            (616, offset_of!(AmdExtTable, hsa_amd_ais_file_read)),
            (624, offset_of!(AmdExtTable, hsa_amd_counted_queue_acquire)),
            (632, offset_of!(AmdExtTable, hsa_amd_counted_queue_release)),
            (704, offset_of!(AmdExtTable, hsa_amd_queue_create)),
            (712, size_of::<AmdExtTable>()),
        ] {
            assert_eq!(at, offset);
        }
        let older = amd_ext_7_2();
        assert_eq!((older.major, older.minor, older.step), (2, 624, 8));
    }
}
