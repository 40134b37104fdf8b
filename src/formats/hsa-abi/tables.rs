//! The API tables (hsa_api_trace.h) through which ROCr's exported functions call, and which tools change.

use crate::agent::*;
use crate::executable::*;
use crate::handle::*;
use crate::memory::*;
use crate::newer;
use crate::queue::*;
use crate::signal::*;
use crate::status::Status;
use crate::system::*;
use std::ffi::{c_char, c_int, c_void};

/// Calls the macro `$callback` with all API tables, in the order of `HsaApiTableContainer`. For each table,
/// it gets the name of the field there, the type, the major version, the step, and the list of functions. All tables of
/// this major version that devprof accepts have the functions of `prefix`. Functions that devprof does not need have no
/// type here.
///
/// The caller has to import this crate's types, `c_char`, `c_int` and `c_void`.
#[macro_export]
macro_rules! api_tables {
    ($callback:ident) => {
        $callback! {
            core: CoreApiTable v(2, 0)
            prefix CoreApiPrefix {
                hsa_init() -> Status;
                hsa_shut_down() -> Status;
                hsa_system_get_info(attribute: u32, value: *mut c_void) -> Status;
                hsa_system_extension_supported(extension: u16, major: u16, minor: u16, result: *mut bool) -> Status;
                hsa_system_get_extension_table(extension: u16, major: u16, minor: u16, table: *mut c_void) -> Status;
                hsa_iterate_agents(callback: AgentCallback, data: *mut c_void) -> Status;
                hsa_agent_get_info(agent: AgentHandle, attribute: u32, value: *mut c_void) -> Status;
                hsa_queue_create(agent: AgentHandle, size: u32, kind: u32, callback: Option<QueueErrorCallback>, data: *mut c_void, private: u32, group: u32, queue: *mut *mut Queue) -> Status;
                hsa_soft_queue_create;
                hsa_queue_destroy(queue: *mut Queue) -> Status;
                hsa_queue_inactivate(queue: *mut Queue) -> Status;
                hsa_queue_load_read_index_scacquire(queue: *const Queue) -> u64;
                hsa_queue_load_read_index_relaxed(queue: *const Queue) -> u64;
                hsa_queue_load_write_index_scacquire(queue: *const Queue) -> u64;
                hsa_queue_load_write_index_relaxed(queue: *const Queue) -> u64;
                hsa_queue_store_write_index_relaxed(queue: *const Queue, value: u64) -> ();
                hsa_queue_store_write_index_screlease(queue: *const Queue, value: u64) -> ();
                hsa_queue_cas_write_index_scacq_screl(queue: *const Queue, expected: u64, value: u64) -> u64;
                hsa_queue_cas_write_index_scacquire(queue: *const Queue, expected: u64, value: u64) -> u64;
                hsa_queue_cas_write_index_relaxed(queue: *const Queue, expected: u64, value: u64) -> u64;
                hsa_queue_cas_write_index_screlease(queue: *const Queue, expected: u64, value: u64) -> u64;
                hsa_queue_add_write_index_scacq_screl(queue: *const Queue, value: u64) -> u64;
                hsa_queue_add_write_index_scacquire(queue: *const Queue, value: u64) -> u64;
                hsa_queue_add_write_index_relaxed(queue: *const Queue, value: u64) -> u64;
                hsa_queue_add_write_index_screlease(queue: *const Queue, value: u64) -> u64;
                hsa_queue_store_read_index_relaxed(queue: *const Queue, value: u64) -> ();
                hsa_queue_store_read_index_screlease(queue: *const Queue, value: u64) -> ();
                hsa_agent_iterate_regions(agent: AgentHandle, callback: RegionCallback, data: *mut c_void) -> Status;
                hsa_region_get_info(region: RegionHandle, attribute: u32, value: *mut c_void) -> Status;
                hsa_agent_get_exception_policies;
                hsa_agent_extension_supported(extension: u16, agent: AgentHandle, major: u16, minor: u16, result: *mut bool) -> Status;
                hsa_memory_register(base: *mut c_void, size: usize) -> Status;
                hsa_memory_deregister(base: *mut c_void, size: usize) -> Status;
                hsa_memory_allocate(region: RegionHandle, size: usize, base: *mut *mut c_void) -> Status;
                hsa_memory_free(base: *mut c_void) -> Status;
                hsa_memory_copy(to: *mut c_void, from: *const c_void, size: usize) -> Status;
                hsa_memory_assign_agent(base: *mut c_void, agent: AgentHandle, access: u32) -> Status;
                hsa_signal_create(value: SignalValue, consumers: u32, agents: *const AgentHandle, signal: *mut SignalHandle) -> Status;
                hsa_signal_destroy(signal: SignalHandle) -> Status;
                hsa_signal_load_relaxed(signal: SignalHandle) -> SignalValue;
                hsa_signal_load_scacquire(signal: SignalHandle) -> SignalValue;
                hsa_signal_store_relaxed(signal: SignalHandle, value: SignalValue) -> ();
                hsa_signal_store_screlease(signal: SignalHandle, value: SignalValue) -> ();
                hsa_signal_wait_relaxed(signal: SignalHandle, condition: u32, value: SignalValue, timeout: u64, hint: u32) -> SignalValue;
                hsa_signal_wait_scacquire(signal: SignalHandle, condition: u32, value: SignalValue, timeout: u64, hint: u32) -> SignalValue;
                hsa_signal_and_relaxed(signal: SignalHandle, value: SignalValue) -> ();
                hsa_signal_and_scacquire(signal: SignalHandle, value: SignalValue) -> ();
                hsa_signal_and_screlease(signal: SignalHandle, value: SignalValue) -> ();
                hsa_signal_and_scacq_screl(signal: SignalHandle, value: SignalValue) -> ();
                hsa_signal_or_relaxed(signal: SignalHandle, value: SignalValue) -> ();
                hsa_signal_or_scacquire(signal: SignalHandle, value: SignalValue) -> ();
                hsa_signal_or_screlease(signal: SignalHandle, value: SignalValue) -> ();
                hsa_signal_or_scacq_screl(signal: SignalHandle, value: SignalValue) -> ();
                hsa_signal_xor_relaxed(signal: SignalHandle, value: SignalValue) -> ();
                hsa_signal_xor_scacquire(signal: SignalHandle, value: SignalValue) -> ();
                hsa_signal_xor_screlease(signal: SignalHandle, value: SignalValue) -> ();
                hsa_signal_xor_scacq_screl(signal: SignalHandle, value: SignalValue) -> ();
                hsa_signal_exchange_relaxed(signal: SignalHandle, value: SignalValue) -> SignalValue;
                hsa_signal_exchange_scacquire(signal: SignalHandle, value: SignalValue) -> SignalValue;
                hsa_signal_exchange_screlease(signal: SignalHandle, value: SignalValue) -> SignalValue;
                hsa_signal_exchange_scacq_screl(signal: SignalHandle, value: SignalValue) -> SignalValue;
                hsa_signal_add_relaxed(signal: SignalHandle, value: SignalValue) -> ();
                hsa_signal_add_scacquire(signal: SignalHandle, value: SignalValue) -> ();
                hsa_signal_add_screlease(signal: SignalHandle, value: SignalValue) -> ();
                hsa_signal_add_scacq_screl(signal: SignalHandle, value: SignalValue) -> ();
                hsa_signal_subtract_relaxed(signal: SignalHandle, value: SignalValue) -> ();
                hsa_signal_subtract_scacquire(signal: SignalHandle, value: SignalValue) -> ();
                hsa_signal_subtract_screlease(signal: SignalHandle, value: SignalValue) -> ();
                hsa_signal_subtract_scacq_screl(signal: SignalHandle, value: SignalValue) -> ();
                hsa_signal_cas_relaxed(signal: SignalHandle, expected: SignalValue, value: SignalValue) -> SignalValue;
                hsa_signal_cas_scacquire(signal: SignalHandle, expected: SignalValue, value: SignalValue) -> SignalValue;
                hsa_signal_cas_screlease(signal: SignalHandle, expected: SignalValue, value: SignalValue) -> SignalValue;
                hsa_signal_cas_scacq_screl(signal: SignalHandle, expected: SignalValue, value: SignalValue) -> SignalValue;
                hsa_isa_from_name(name: *const c_char, isa: *mut IsaHandle) -> Status;
                hsa_isa_get_info(isa: IsaHandle, attribute: u32, index: u32, value: *mut c_void) -> Status;
                hsa_isa_compatible(code: IsaHandle, agent: IsaHandle, result: *mut bool) -> Status;
                hsa_code_object_serialize;
                hsa_code_object_deserialize(base: *mut c_void, size: usize, options: *const c_char, object: *mut CodeObjectHandle) -> Status;
                hsa_code_object_destroy(object: CodeObjectHandle) -> Status;
                hsa_code_object_get_info;
                hsa_code_object_get_symbol;
                hsa_code_symbol_get_info;
                hsa_code_object_iterate_symbols;
                hsa_executable_create(profile: u32, state: u32, options: *const c_char, executable: *mut ExecutableHandle) -> Status;
                hsa_executable_destroy(executable: ExecutableHandle) -> Status;
                hsa_executable_load_code_object(executable: ExecutableHandle, agent: AgentHandle, object: CodeObjectHandle, options: *const c_char) -> Status;
                hsa_executable_freeze(executable: ExecutableHandle, options: *const c_char) -> Status;
                hsa_executable_get_info(executable: ExecutableHandle, attribute: u32, value: *mut c_void) -> Status;
                hsa_executable_global_variable_define(executable: ExecutableHandle, name: *const c_char, address: *mut c_void) -> Status;
                hsa_executable_agent_global_variable_define(executable: ExecutableHandle, agent: AgentHandle, name: *const c_char, address: *mut c_void) -> Status;
                hsa_executable_readonly_variable_define(executable: ExecutableHandle, agent: AgentHandle, name: *const c_char, address: *mut c_void) -> Status;
                hsa_executable_validate(executable: ExecutableHandle, result: *mut u32) -> Status;
                hsa_executable_get_symbol(executable: ExecutableHandle, module: *const c_char, name: *const c_char, agent: AgentHandle, convention: i32, symbol: *mut SymbolHandle) -> Status;
                hsa_executable_symbol_get_info(symbol: SymbolHandle, attribute: u32, value: *mut c_void) -> Status;
                hsa_executable_iterate_symbols(executable: ExecutableHandle, callback: SymbolCallback, data: *mut c_void) -> Status;
                hsa_status_string(status: Status, text: *mut *const c_char) -> Status;
                hsa_extension_get_name(extension: u16, name: *mut *const c_char) -> Status;
                hsa_system_major_extension_supported(extension: u16, major: u16, minor: *mut u16, result: *mut bool) -> Status;
                hsa_system_get_major_extension_table(extension: u16, major: u16, length: usize, table: *mut c_void) -> Status;
                hsa_agent_major_extension_supported(extension: u16, agent: AgentHandle, major: u16, minor: *mut u16, result: *mut bool) -> Status;
                hsa_cache_get_info;
                hsa_agent_iterate_caches(agent: AgentHandle, callback: CacheCallback, data: *mut c_void) -> Status;
                hsa_signal_silent_store_relaxed(signal: SignalHandle, value: SignalValue) -> ();
                hsa_signal_silent_store_screlease(signal: SignalHandle, value: SignalValue) -> ();
            }
            rest {
                hsa_signal_group_create;
                hsa_signal_group_destroy;
                hsa_signal_group_wait_any_scacquire;
                hsa_signal_group_wait_any_relaxed;
                hsa_agent_iterate_isas(agent: AgentHandle, callback: IsaCallback, data: *mut c_void) -> Status;
                hsa_isa_get_info_alt(isa: IsaHandle, attribute: u32, value: *mut c_void) -> Status;
                hsa_isa_get_exception_policies;
                hsa_isa_get_round_method;
                hsa_wavefront_get_info(wavefront: WavefrontHandle, attribute: u32, value: *mut c_void) -> Status;
                hsa_isa_iterate_wavefronts(isa: IsaHandle, callback: WavefrontCallback, data: *mut c_void) -> Status;
                hsa_code_object_get_symbol_from_name;
                hsa_code_object_reader_create_from_file(file: c_int, reader: *mut ReaderHandle) -> Status;
                hsa_code_object_reader_create_from_memory(base: *const c_void, size: usize, reader: *mut ReaderHandle) -> Status;
                hsa_code_object_reader_destroy(reader: ReaderHandle) -> Status;
                hsa_executable_create_alt(profile: u32, rounding: u32, options: *const c_char, executable: *mut ExecutableHandle) -> Status;
                hsa_executable_load_program_code_object;
                hsa_executable_load_agent_code_object(executable: ExecutableHandle, agent: AgentHandle, reader: ReaderHandle, options: *const c_char, loaded: *mut LoadedCodeObjectHandle) -> Status;
                hsa_executable_validate_alt(executable: ExecutableHandle, options: *const c_char, result: *mut u32) -> Status;
                hsa_executable_get_symbol_by_name(executable: ExecutableHandle, name: *const c_char, agent: *const AgentHandle, symbol: *mut SymbolHandle) -> Status;
                hsa_executable_iterate_agent_symbols(executable: ExecutableHandle, agent: AgentHandle, callback: AgentSymbolCallback, data: *mut c_void) -> Status;
                hsa_executable_iterate_program_symbols(executable: ExecutableHandle, callback: SymbolCallback, data: *mut c_void) -> Status;
            }
            amd_ext: AmdExtTable v(2, 0x10)
            prefix AmdExtPrefix {
                hsa_amd_coherency_get_type;
                hsa_amd_coherency_set_type(agent: AgentHandle, kind: u32) -> Status;
                hsa_amd_profiling_set_profiler_enabled(queue: *mut Queue, enable: c_int) -> Status;
                hsa_amd_profiling_async_copy_enable(enable: bool) -> Status;
                hsa_amd_profiling_get_dispatch_time(agent: AgentHandle, signal: SignalHandle, time: *mut DispatchTime) -> Status;
                hsa_amd_profiling_get_async_copy_time(signal: SignalHandle, time: *mut DispatchTime) -> Status;
                hsa_amd_profiling_convert_tick_to_system_domain(agent: AgentHandle, tick: u64, system: *mut u64) -> Status;
                hsa_amd_signal_async_handler(signal: SignalHandle, condition: u32, value: SignalValue, handler: SignalHandler, data: *mut c_void) -> Status;
                hsa_amd_async_function(callback: AsyncFunction, data: *mut c_void) -> Status;
                hsa_amd_signal_wait_any(count: u32, signals: *const SignalHandle, conditions: *const u32, values: *const SignalValue, timeout: u64, hint: u32, satisfying: *mut SignalValue) -> u32;
                hsa_amd_queue_cu_set_mask(queue: *mut Queue, bits: u32, mask: *const u32) -> Status;
                hsa_amd_memory_pool_get_info(pool: PoolHandle, attribute: u32, value: *mut c_void) -> Status;
                hsa_amd_agent_iterate_memory_pools(agent: AgentHandle, callback: PoolCallback, data: *mut c_void) -> Status;
                hsa_amd_memory_pool_allocate(pool: PoolHandle, size: usize, flags: u32, base: *mut *mut c_void) -> Status;
                hsa_amd_memory_pool_free(base: *mut c_void) -> Status;
                hsa_amd_memory_async_copy(to: *mut c_void, to_agent: AgentHandle, from: *const c_void, from_agent: AgentHandle, size: usize, count: u32, dependencies: *const SignalHandle, completion: SignalHandle) -> Status;
                hsa_amd_memory_async_copy_on_engine(to: *mut c_void, to_agent: AgentHandle, from: *const c_void, from_agent: AgentHandle, size: usize, count: u32, dependencies: *const SignalHandle, completion: SignalHandle, engine: u32, force: bool) -> Status;
                hsa_amd_memory_copy_engine_status(to: AgentHandle, from: AgentHandle, engines: *mut u32) -> Status;
                hsa_amd_agent_memory_pool_get_info(agent: AgentHandle, pool: PoolHandle, attribute: u32, value: *mut c_void) -> Status;
                hsa_amd_agents_allow_access(count: u32, agents: *const AgentHandle, flags: *const u32, base: *const c_void) -> Status;
                hsa_amd_memory_pool_can_migrate;
                hsa_amd_memory_migrate;
                hsa_amd_memory_lock(base: *mut c_void, size: usize, agents: *const AgentHandle, count: c_int, agent_base: *mut *mut c_void) -> Status;
                hsa_amd_memory_unlock(base: *mut c_void) -> Status;
                hsa_amd_memory_fill(base: *mut c_void, value: u32, count: usize) -> Status;
                hsa_amd_interop_map_buffer(count: u32, agents: *mut AgentHandle, handle: c_int, flags: u32, size: *mut usize, base: *mut *mut c_void, metadata_size: *mut usize, metadata: *mut *const c_void) -> Status;
                hsa_amd_interop_unmap_buffer(base: *mut c_void) -> Status;
                hsa_amd_image_create(agent: AgentHandle, descriptor: *const c_void, layout: *const c_void, data: *const c_void, permission: u32, image: *mut u64) -> Status;
                hsa_amd_pointer_info(address: *const c_void, info: *mut PointerInfo, alloc: Option<PointerInfoAllocator>, count: *mut u32, agents: *mut *mut AgentHandle) -> Status;
                hsa_amd_pointer_info_set_userdata(address: *const c_void, data: *mut c_void) -> Status;
                hsa_amd_ipc_memory_create(base: *mut c_void, size: usize, handle: *mut IpcHandle) -> Status;
                hsa_amd_ipc_memory_attach(handle: *const IpcHandle, size: usize, count: u32, agents: *const AgentHandle, base: *mut *mut c_void) -> Status;
                hsa_amd_ipc_memory_detach(base: *mut c_void) -> Status;
                hsa_amd_signal_create(value: SignalValue, consumers: u32, agents: *const AgentHandle, attributes: u64, signal: *mut SignalHandle) -> Status;
                hsa_amd_ipc_signal_create(signal: SignalHandle, handle: *mut IpcHandle) -> Status;
                hsa_amd_ipc_signal_attach(handle: *const IpcHandle, signal: *mut SignalHandle) -> Status;
                hsa_amd_register_system_event_handler(callback: SystemEventCallback, data: *mut c_void) -> Status;
                hsa_amd_queue_intercept_create(agent: AgentHandle, size: u32, kind: u32, callback: Option<QueueErrorCallback>, data: *mut c_void, private: u32, group: u32, queue: *mut *mut Queue) -> Status;
                hsa_amd_queue_intercept_register(queue: *mut Queue, callback: PacketHandler, data: *mut c_void) -> Status;
                hsa_amd_queue_set_priority(queue: *mut Queue, priority: u32) -> Status;
            }
            rest {
                hsa_amd_memory_async_copy_rect(to: *const PitchedPointer, to_offset: *const Dim3, from: *const PitchedPointer, from_offset: *const Dim3, range: *const Dim3, agent: AgentHandle, direction: u32, count: u32, dependencies: *const SignalHandle, completion: SignalHandle) -> Status;
                hsa_amd_runtime_queue_create_register(callback: Option<QueueNotifier>, data: *mut c_void) -> Status;
                hsa_amd_memory_lock_to_pool(base: *mut c_void, size: usize, agents: *const AgentHandle, count: c_int, pool: PoolHandle, flags: u32, agent_base: *mut *mut c_void) -> Status;
                hsa_amd_register_deallocation_callback(base: *mut c_void, callback: DeallocationCallback, data: *mut c_void) -> Status;
                hsa_amd_deregister_deallocation_callback(base: *mut c_void, callback: DeallocationCallback) -> Status;
                hsa_amd_signal_value_pointer(signal: SignalHandle, value: *mut *mut SignalValue) -> Status;
                hsa_amd_svm_attributes_set(base: *mut c_void, size: usize, attributes: *mut SvmAttribute, count: usize) -> Status;
                hsa_amd_svm_attributes_get(base: *mut c_void, size: usize, attributes: *mut SvmAttribute, count: usize) -> Status;
                hsa_amd_svm_prefetch_async(base: *mut c_void, size: usize, agent: AgentHandle, count: u32, dependencies: *const SignalHandle, completion: SignalHandle) -> Status;
                hsa_amd_spm_acquire;
                hsa_amd_spm_release;
                hsa_amd_spm_set_dest_buffer;
                hsa_amd_queue_cu_get_mask(queue: *mut Queue, bits: u32, mask: *mut u32) -> Status;
                hsa_amd_portable_export_dmabuf(base: *const c_void, size: usize, file: *mut c_int, offset: *mut u64) -> Status;
                hsa_amd_portable_close_dmabuf;
                hsa_amd_vmem_address_reserve(base: *mut *mut c_void, size: usize, address: u64, flags: u64) -> Status;
                hsa_amd_vmem_address_free(base: *mut c_void, size: usize) -> Status;
                hsa_amd_vmem_handle_create(pool: PoolHandle, size: usize, kind: u32, flags: u64, handle: *mut u64) -> Status;
                hsa_amd_vmem_handle_release(handle: u64) -> Status;
                hsa_amd_vmem_map(base: *mut c_void, size: usize, offset: usize, handle: u64, flags: u64) -> Status;
                hsa_amd_vmem_unmap(base: *mut c_void, size: usize) -> Status;
                hsa_amd_vmem_set_access(base: *mut c_void, size: usize, access: *const c_void, count: usize) -> Status;
                hsa_amd_vmem_get_access(base: *mut c_void, permission: *mut u32, agent: AgentHandle) -> Status;
                hsa_amd_vmem_export_shareable_handle(file: *mut c_int, handle: u64, flags: u64) -> Status;
                hsa_amd_vmem_import_shareable_handle(file: c_int, handle: *mut u64) -> Status;
                hsa_amd_vmem_retain_alloc_handle(handle: *mut u64, base: *mut c_void) -> Status;
                hsa_amd_vmem_get_alloc_properties_from_handle;
                hsa_amd_agent_set_async_scratch_limit(agent: AgentHandle, bytes: usize) -> Status;
                hsa_amd_queue_get_info(queue: *mut Queue, attribute: u32, value: *mut c_void) -> Status;
                hsa_amd_vmem_address_reserve_align(base: *mut *mut c_void, size: usize, address: u64, alignment: u64, flags: u64) -> Status;
                hsa_amd_enable_logging(flags: *mut u8, file: *mut c_void) -> Status;
                hsa_amd_signal_wait_all(count: u32, signals: *const SignalHandle, conditions: *const u32, values: *const SignalValue, timeout: u64, hint: u32, satisfying: *mut SignalValue) -> u32;
                hsa_amd_memory_get_preferred_copy_engine(to: AgentHandle, from: AgentHandle, engines: *mut u32) -> Status;
                hsa_amd_portable_export_dmabuf_v2;
                hsa_amd_ais_file_write(file: u64, base: *mut c_void, size: u64, offset: i64, copied: *mut u64, status: *mut i32) -> Status;
                hsa_amd_ais_file_read(file: u64, base: *mut c_void, size: u64, offset: i64, copied: *mut u64, status: *mut i32) -> Status;
                hsa_amd_counted_queue_acquire(agent: AgentHandle, kind: u32, priority: u32, callback: Option<QueueErrorCallback>, data: *mut c_void, flags: u64, queue: *mut *mut Queue) -> Status;
                hsa_amd_counted_queue_release(queue: *mut Queue) -> Status;
                hsa_amd_memory_async_batch_copy(copies: *const newer::MemoryCopyOp, copy_count: u32, count: u32, dependencies: *const SignalHandle) -> Status;
                hsa_amd_agent_preload;
                hsa_amd_svm_discard_batch_async;
                hsa_amd_signal_get_event_id;
                hsa_amd_external_semaphore_handle_open;
                hsa_amd_external_semaphore_handle_close;
                hsa_amd_vmem_export_fabric_handle;
                hsa_amd_vmem_import_fabric_handle;
                hsa_amd_queue_create(agent: AgentHandle, descs: *mut newer::QueueCreateDesc, count: u32) -> Status;
            }
            finalizer_ext: FinalizerExtTable v(2, 0)
            rest {
                hsa_ext_program_create;
                hsa_ext_program_destroy;
                hsa_ext_program_add_module;
                hsa_ext_program_iterate_modules;
                hsa_ext_program_get_info;
                hsa_ext_program_finalize;
            }
            image_ext: ImageExtTable v(2, 1)
            rest {
                hsa_ext_image_get_capability;
                hsa_ext_image_data_get_info(agent: AgentHandle, descriptor: *const c_void, permission: u32, info: *mut c_void) -> Status;
                hsa_ext_image_create(agent: AgentHandle, descriptor: *const c_void, data: *const c_void, permission: u32, image: *mut u64) -> Status;
                hsa_ext_image_import(agent: AgentHandle, from: *const c_void, row_pitch: usize, slice_pitch: usize, image: u64, region: *const c_void) -> Status;
                hsa_ext_image_export(agent: AgentHandle, image: u64, to: *mut c_void, row_pitch: usize, slice_pitch: usize, region: *const c_void) -> Status;
                hsa_ext_image_copy;
                hsa_ext_image_clear;
                hsa_ext_image_destroy(agent: AgentHandle, image: u64) -> Status;
                hsa_ext_sampler_create;
                hsa_ext_sampler_destroy(agent: AgentHandle, sampler: u64) -> Status;
                hsa_ext_image_get_capability_with_layout;
                hsa_ext_image_data_get_info_with_layout;
                hsa_ext_image_create_with_layout(agent: AgentHandle, descriptor: *const c_void, data: *const c_void, permission: u32, layout: u32, row_pitch: usize, slice_pitch: usize, image: *mut u64) -> Status;
                hsa_ext_sampler_create_v2(agent: AgentHandle, descriptor: *const c_void, sampler: *mut u64) -> Status;
            }
            tools: ToolsApiTable v(1, 0)
            rest {
                hsa_amd_tool_scratch_event_alloc_start;
                hsa_amd_tool_scratch_event_alloc_end;
                hsa_amd_tool_scratch_event_free_start;
                hsa_amd_tool_scratch_event_free_end;
                hsa_amd_tool_scratch_event_async_reclaim_start;
                hsa_amd_tool_scratch_event_async_reclaim_end;
            }
            pc_sampling_ext: PcSamplingExtTable v(1, 0)
            rest {
                hsa_ven_amd_pcs_iterate_configuration;
                hsa_ven_amd_pcs_create;
                hsa_ven_amd_pcs_create_from_id;
                hsa_ven_amd_pcs_destroy;
                hsa_ven_amd_pcs_start;
                hsa_ven_amd_pcs_stop;
                hsa_ven_amd_pcs_flush;
            }
        }
    };
}

/// `ApiTableVersion`: the version of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct TableVersion {
    /// `major_id`: tables of different major versions are not compatible.
    pub major: u32,
    /// `minor_id`: bytes of the table. Newer releases add functions to its end.
    pub minor: u32,
    /// `step_id`: changes when the meaning of a function changes.
    pub step: u32,
    /// Reserved.
    pub reserved: u32,
}

/// A function whose type is not declared here.
pub type OtherFunction = Option<unsafe extern "C" fn() -> Status>;

macro_rules! field {
    () => { OtherFunction };
    ($($ty:ty),* => $ret:ty) => { unsafe extern "C" fn($($ty),*) -> $ret };
}

macro_rules! function {
    ($name:ident) => {};
    ($name:ident, $($ty:ty),* => $ret:ty) => {
        #[doc = concat!("The type of `", stringify!($name), "`.")]
        pub type $name = unsafe extern "C" fn($($ty),*) -> $ret;
    };
}

macro_rules! define {
    ($(
        $table:ident: $type:ident v($major:literal, $step:literal)
        $(prefix $prefix:ident { $($p:ident $(($($p_arg:ident: $p_ty:ty),*) -> $p_ret:ty)?;)* })?
        rest { $($r:ident $(($($r_arg:ident: $r_ty:ty),*) -> $r_ret:ty)?;)* }
    )*) => {
        $(
            #[doc = concat!("`", stringify!($type), "` (hsa_api_trace.h); its fields have the suffix `_fn` there.")]
            #[repr(C)]
            pub struct $type {
                /// The table's version.
                pub version: TableVersion,
                $($(#[doc = concat!("`", stringify!($p), "`")] pub $p: field!($($($p_ty),* => $p_ret)?),)*)?
                $(#[doc = concat!("`", stringify!($r), "`")] pub $r: field!($($($r_ty),* => $r_ret)?),)*
            }

            impl $type {
                /// The major version.
                pub const MAJOR: u32 = $major;
                /// The step.
                pub const STEP: u32 = $step;
            }

            $(
                #[doc = concat!("The beginning of [`", stringify!($type), "`], which older releases have, too.")]
                #[derive(Clone, Copy)]
                #[repr(C)]
                pub struct $prefix {
                    /// The version of the complete table.
                    pub version: TableVersion,
                    $(#[doc = concat!("`", stringify!($p), "`")] pub $p: field!($($($p_ty),* => $p_ret)?),)*
                }
            )?
        )*

        /// The types of HSA's functions.
        #[expect(non_camel_case_types)]
        pub mod function {
            use super::*;
            $(
                $($(function! { $p $(, $($p_ty),* => $p_ret)? })*)?
                $(function! { $r $(, $($r_ty),* => $r_ret)? })*
            )*
        }
    };
}

api_tables! { define }

/// The number of functions in the [`AmdExtTable`] of ROCr 7.2.4.
pub const AMD_EXT_FUNCTIONS_7_2: usize = 76;
/// The step of ROCr 7.2.4's [`AmdExtTable`].
pub const AMD_EXT_STEP_7_2: u32 = 8;

/// `HSA_API_TABLE_MAJOR_VERSION`: the major version of [`ApiTable`].
pub const API_TABLE_MAJOR_VERSION: u32 = 3;
/// `HSA_API_TABLE_STEP_VERSION`: the step of [`ApiTable`].
pub const API_TABLE_STEP_VERSION: u32 = 1;

/// `HsaApiTable` (hsa_api_trace.h): the argument of a tool's `OnLoad`.
#[repr(C)]
pub struct ApiTable {
    /// The version of this table.
    pub version: TableVersion,
    /// `core_`
    pub core: *mut CoreApiTable,
    /// `amd_ext_`
    pub amd_ext: *mut AmdExtTable,
    /// `finalizer_ext_`
    pub finalizer_ext: *mut FinalizerExtTable,
    /// `image_ext_`
    pub image_ext: *mut ImageExtTable,
    /// `tools_`
    pub tools: *mut ToolsApiTable,
    /// `pc_sampling_ext_`
    pub pc_sampling_ext: *mut PcSamplingExtTable,
}

/// `HsaApiTable`: its beginning, with the tables as [`CoreApiPrefix`] and [`AmdExtPrefix`].
#[repr(C)]
pub struct ApiPrefix {
    /// The version of the complete table.
    pub version: TableVersion,
    /// `core_`
    pub core: *mut CoreApiPrefix,
    /// `amd_ext_`
    pub amd_ext: *mut AmdExtPrefix,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn functions_of_newer_releases_have_the_right_offsets() {
        for (offset, expected) in [
            (offset_of!(AmdExtTable, hsa_amd_ais_file_read), 616),
            (offset_of!(AmdExtTable, hsa_amd_counted_queue_acquire), 624),
            (offset_of!(AmdExtTable, hsa_amd_counted_queue_release), 632),
            (offset_of!(AmdExtTable, hsa_amd_queue_create), 704),
            (size_of::<AmdExtTable>(), 712),
        ] {
            assert_eq!(offset, expected);
        }
    }

    #[test]
    fn a_prefix_has_the_layout_of_the_complete_table() {
        let function = size_of::<usize>();
        assert_eq!(
            size_of::<CoreApiPrefix>(),
            offset_of!(CoreApiTable, hsa_signal_silent_store_screlease) + function
        );
        assert_eq!(
            size_of::<AmdExtPrefix>(),
            offset_of!(AmdExtTable, hsa_amd_queue_set_priority) + function
        );
        assert_eq!(
            offset_of!(ApiPrefix, amd_ext),
            offset_of!(ApiTable, amd_ext)
        );
    }
}
