//! Agents, loaded segments and symbols.

use super::api::{Api, check, failed};
use crate::gpu::runtime::*;
use crate::gpu::traced::{Kernel, Registers};
use crate::support::panic_guard::{Cost, guarded};
use crate::support::sync::Busy;
use hsa_abi::*;
use std::cell::Cell;
use std::ffi::{CStr, c_void};
use zerocopy::FromZeros;

/// The value of an attribute, which `read` writes. `call`: for the error. `T` has to be the attribute's type.
pub fn info<T: FromZeros>(
    call: &'static str,
    read: impl FnOnce(*mut c_void) -> Status,
) -> Result<T, Error> {
    let mut value = T::new_zeroed();
    check(call, read((&raw mut value).cast())).map(|()| value)
}

/// For HSA's iterations: appends a handle to a list.
///
/// # Safety
/// `data` is a `Vec<T>`, and nothing else uses it during the call.
pub unsafe extern "C" fn push<T>(handle: T, data: *mut c_void) -> Status {
    // SAFETY: the caller's promise.
    unsafe { (*data.cast::<Vec<T>>()).push(handle) };
    Status::SUCCESS
}

/// All agents, in HSA's order.
pub fn all_agents(api: &Api) -> Result<Vec<AgentHandle>, Error> {
    let mut all = Vec::<AgentHandle>::new();
    // SAFETY: `push` gets the list.
    let status = unsafe { (api.hsa_iterate_agents)(push::<AgentHandle>, (&raw mut all).cast()) };
    check("hsa_iterate_agents", status).map(|()| all)
}

/// The GPU agents, and the first CPU agent.
pub fn agents(api: &Api) -> Result<(Agents, Option<AgentHandle>), Error> {
    let mut agents = Agents::default();
    let mut cpu = None;
    for handle in all_agents(api)? {
        let described = device(api, handle).and_then(|device| match device {
            HSA_DEVICE_TYPE_GPU => agent(api, handle).map(|gpu| agents.gpus.push(gpu)),
            HSA_DEVICE_TYPE_CPU => {
                cpu.get_or_insert(handle);
                Ok(())
            }
            // Other devices, such as signal processors, do not run instrumented code objects.
            _ => Ok(()),
        });
        if let Err(error) = described {
            agents.unknown.push((AgentId::Hsa(handle.0), error));
        }
    }
    Ok((agents, cpu))
}

/// Whether an agent is a GPU.
pub fn is_gpu(api: &Api, handle: AgentHandle) -> Result<bool, Error> {
    device(api, handle).map(|device| device == HSA_DEVICE_TYPE_GPU)
}

/// An agent's `hsa_device_type_t`.
pub fn device(api: &Api, handle: AgentHandle) -> Result<u32, Error> {
    // SAFETY: the attribute is a 32-bit enumeration.
    info("hsa_agent_get_info(HSA_AGENT_INFO_DEVICE)", |to| unsafe {
        (api.hsa_agent_get_info)(handle, HSA_AGENT_INFO_DEVICE, to)
    })
}

/// An agent's name.
pub fn agent(api: &Api, handle: AgentHandle) -> Result<Agent, Error> {
    // SAFETY: the attribute is char[64].
    let name: [u8; 64] = info("hsa_agent_get_info(HSA_AGENT_INFO_NAME)", |to| unsafe {
        (api.hsa_agent_get_info)(handle, HSA_AGENT_INFO_NAME, to)
    })?;
    Ok(Agent {
        id: AgentId::Hsa(handle.0),
        name: string(&name),
    })
}

/// The number of an agent's compute units.
pub fn compute_units(api: &Api, agent: AgentHandle) -> Result<u32, Error> {
    const CALL: &str = "hsa_agent_get_info(HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT)";
    // SAFETY: the attribute is a u32.
    info(CALL, |to| unsafe {
        (api.hsa_agent_get_info)(agent, HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT, to)
    })
}

/// The numbers of an agent's shader engines and accelerator complex dies (XCC), as far as they are known.
pub fn engines_and_xccs(api: &Api, agent: AgentHandle) -> [Option<u32>; 2] {
    [
        HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES,
        HSA_AMD_AGENT_INFO_NUM_XCC,
    ]
    .map(|attribute| {
        // SAFETY: these attributes are a u32.
        let read = |to| unsafe { (api.hsa_agent_get_info)(agent, attribute, to) };
        info("hsa_agent_get_info", read).ok()
    })
}

/// The bytes of a GPU's memory that no process has allocated; `None` if the driver does not report it.
pub fn free_memory(api: &Api, agent: AgentHandle) -> Option<u64> {
    // SAFETY: the attribute is a u64.
    info("hsa_agent_get_info", |to| unsafe {
        (api.hsa_agent_get_info)(agent, HSA_AMD_AGENT_INFO_MEMORY_AVAIL, to)
    })
    .ok()
}

/// The value of a string attribute, up to its first NUL byte.
pub fn string(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

thread_local! {
    static IS_ITERATING: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread iterates over the executables, so that it must not call HIP: see [`each_executable`].
pub fn is_iterating() -> bool {
    IS_ITERATING.get()
}

/// Calls `visit` with each executable. Until this returns, no executable is created, frozen or destroyed: ROCr holds its loader's
/// lock (`AmdHsaCodeLoader::IterateExecutables` in executable.cpp). `visit` must not call functions that take this lock, or HIP:
/// it may load code, or wait for a thread that does. HSA's copies, signals, memory pools and the symbols of an executable do not
/// take it.
fn each_executable(api: &Api, visit: &mut dyn FnMut(ExecutableHandle)) -> Result<(), Error> {
    unsafe extern "C" fn call(executable: ExecutableHandle, data: *mut c_void) -> Status {
        // SAFETY: `data` is the closure of `each_executable`, and nothing else uses it during the call.
        let visit = unsafe { &mut *data.cast::<&mut dyn FnMut(ExecutableHandle)>() };
        guarded(Cost::Counters, (), || visit(executable));
        Status::SUCCESS
    }
    let _iterating = Busy::begin(&IS_ITERATING);
    let mut visit = visit;
    // SAFETY: `call` gets the pointer passed here.
    let status = unsafe { (api.loader()?.iterate_executables)(call, (&raw mut visit).cast()) };
    check("hsa_ven_amd_loader_iterate_executables", status)
}

/// The segments of all frozen executables, one for each code object.
///
/// `hsa_ven_amd_loader_query_segment_descriptors` is not used: in ROCr 7.2.4 it aborts the process (an assertion in
/// `ExecutableImpl::QuerySegmentDescriptors`) if another thread has created an executable without a code object.
pub fn segments(api: &Api) -> Result<Segments, Error> {
    let mut segments = Segments::default();
    each_executable(api, &mut |executable| add(api, executable, &mut segments))?;
    Ok(segments)
}

/// See [`Runtime::with_segments`]. Calls `work` during the visit of the last executable. Which one that is, only an earlier
/// iteration can tell. If there are fewer now, `work` was not called, and the next iteration expects only as many, so there is an
/// end. If there are more now, the new ones are left out.
pub fn with_segments(api: &Api, work: &mut dyn FnMut(Segments)) -> Result<(), Error> {
    let mut expected = 0;
    loop {
        let (mut segments, mut count) = (Segments::default(), 0);
        each_executable(api, &mut |executable| {
            count += 1;
            if count <= expected {
                add(api, executable, &mut segments);
            }
            if count == expected {
                work(std::mem::take(&mut segments));
            }
        })?;
        if count == 0 {
            work(segments);
            return Ok(());
        }
        if (1..=count).contains(&expected) {
            return Ok(());
        }
        expected = count;
    }
}

/// Adds the segments of an executable.
fn add(api: &Api, executable: ExecutableHandle, segments: &mut Segments) {
    match segments_of(api, executable) {
        Ok(found) => segments.found.extend(found),
        Err(error) => segments
            .failed
            .push((ExecutableId::Hsa(executable.0), error)),
    }
}

/// The segments of an executable. Empty if it is not frozen.
pub fn segments_of(api: &Api, executable: ExecutableHandle) -> Result<Vec<Segment>, Error> {
    const STATE: &str = "hsa_executable_get_info(HSA_EXECUTABLE_INFO_STATE)";
    // SAFETY: the attribute is a 32-bit enumeration.
    let state: u32 = info(STATE, |to| unsafe {
        (api.hsa_executable_get_info)(executable, HSA_EXECUTABLE_INFO_STATE, to)
    })?;
    if state != HSA_EXECUTABLE_STATE_FROZEN {
        return Ok(Vec::new());
    }
    let mut segments = Vec::new();
    for object in code_objects(api, executable)? {
        // SAFETY: the attributes are an hsa_agent_t and two 64-bit numbers.
        let number = |attribute| unsafe { loaded_info::<u64>(api, object, attribute) };
        segments.push(Segment {
            agent: AgentId::Hsa(number(HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_AGENT)?),
            executable: ExecutableId::Hsa(executable.0),
            base: number(HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE)?,
            size: number(HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_SIZE)?,
        });
    }
    Ok(segments)
}

/// An attribute of a loaded code object.
///
/// # Safety
/// `T` is the attribute's type.
unsafe fn loaded_info<T: FromZeros>(
    api: &Api,
    object: LoadedCodeObjectHandle,
    attribute: u32,
) -> Result<T, Error> {
    let read = api.loader()?.loaded_code_object_get_info;
    // SAFETY: the caller's promise.
    info(
        "hsa_ven_amd_loader_loaded_code_object_get_info",
        |to| unsafe { read(object, attribute, to) },
    )
}

fn code_objects(
    api: &Api,
    executable: ExecutableHandle,
) -> Result<Vec<LoadedCodeObjectHandle>, Error> {
    unsafe extern "C" fn visit(
        _: ExecutableHandle,
        object: LoadedCodeObjectHandle,
        data: *mut c_void,
    ) -> Status {
        // SAFETY: `data` is the list of `code_objects`.
        unsafe { push(object, data) }
    }
    let iterate = api.loader()?.executable_iterate_loaded_code_objects;
    let mut all = Vec::new();
    // SAFETY: `visit` gets the pointer passed here.
    let status = unsafe { iterate(executable, visit, (&raw mut all).cast()) };
    check(
        "hsa_ven_amd_loader_executable_iterate_loaded_code_objects",
        status,
    )
    .map(|()| all)
}

/// The symbols of an executable on an agent.
fn symbols(
    api: &Api,
    executable: ExecutableHandle,
    agent: AgentHandle,
) -> Result<Vec<SymbolHandle>, Error> {
    unsafe extern "C" fn visit(
        _: ExecutableHandle,
        _: AgentHandle,
        symbol: SymbolHandle,
        data: *mut c_void,
    ) -> Status {
        // SAFETY: `data` is the list of `symbols`.
        unsafe { push(symbol, data) }
    }
    let iterate = api.hsa_executable_iterate_agent_symbols;
    let mut all = Vec::<SymbolHandle>::new();
    // SAFETY: `visit` gets the pointer passed here.
    let status = unsafe { iterate(executable, agent, visit, (&raw mut all).cast()) };
    check("hsa_executable_iterate_agent_symbols", status).map(|()| all)
}

/// The name of a symbol, in `short` if it fits, otherwise in `long`. Names of kernels can be long.
fn symbol_name<'a>(
    api: &Api,
    symbol: SymbolHandle,
    short: &'a mut [u8],
    long: &'a mut Vec<u8>,
) -> Result<&'a [u8], Error> {
    const CALL: &str = "hsa_executable_symbol_get_info(HSA_EXECUTABLE_SYMBOL_INFO_NAME)";
    let length = symbol_u32(api, symbol, HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH)? as usize;
    let name = match short.get_mut(..length) {
        Some(name) => name,
        None => {
            long.try_reserve_exact(length)
                .map_err(|_| failed(CALL, Status::ERROR))?;
            long.resize(length, 0);
            &mut long[..]
        }
    };
    // SAFETY: the attribute has `length` bytes (hsa.h, HSA_EXECUTABLE_SYMBOL_INFO_NAME).
    let status = unsafe {
        (api.hsa_executable_symbol_get_info)(
            symbol,
            HSA_EXECUTABLE_SYMBOL_INFO_NAME,
            name.as_mut_ptr().cast(),
        )
    };
    check(CALL, status).map(|()| &*name)
}

fn symbol_u64(
    api: &Api,
    symbol: SymbolHandle,
    attribute: u32,
    call: &'static str,
) -> Result<u64, Error> {
    // SAFETY: the attributes that this file reads with it are 64-bit addresses.
    info(call, |to| unsafe {
        (api.hsa_executable_symbol_get_info)(symbol, attribute, to)
    })
}

fn symbol_u32(api: &Api, symbol: SymbolHandle, attribute: u32) -> Result<u32, Error> {
    // SAFETY: the attributes that this file reads with it are 32-bit values.
    info("hsa_executable_symbol_get_info", |to| unsafe {
        (api.hsa_executable_symbol_get_info)(symbol, attribute, to)
    })
}

fn is_of_kind(api: &Api, symbol: SymbolHandle, kind: u32) -> Result<bool, Error> {
    Ok(symbol_u32(api, symbol, HSA_EXECUTABLE_SYMBOL_INFO_TYPE)? == kind)
}

/// The variables of an executable on an agent for whose names `is_wanted` returns true.
pub fn variables(
    api: &Api,
    executable: ExecutableHandle,
    agent: AgentHandle,
    is_wanted: fn(&[u8]) -> bool,
) -> Result<Vec<Variable>, Error> {
    let mut variables = Vec::new();
    for symbol in symbols(api, executable, agent)? {
        let (mut short, mut long) = ([0u8; 256], Vec::new());
        let name = symbol_name(api, symbol, &mut short, &mut long)?;
        if is_wanted(name) && is_of_kind(api, symbol, HSA_SYMBOL_KIND_VARIABLE)? {
            let name = String::from_utf8_lossy(name).into_owned();
            variables.push(located(api, symbol, name)?);
        }
    }
    Ok(variables)
}

/// A variable's address and size.
fn located(api: &Api, symbol: SymbolHandle, name: String) -> Result<Variable, Error> {
    let address = symbol_u64(
        api,
        symbol,
        HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS,
        "hsa_executable_symbol_get_info(HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS)",
    )?;
    let size = symbol_u32(api, symbol, HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE)?;
    Ok(Variable {
        name,
        address,
        size: size.into(),
    })
}

/// The variable of an executable on an agent with this name.
pub fn named_variable(
    api: &Api,
    executable: ExecutableHandle,
    agent: AgentHandle,
    name: &CStr,
) -> Result<Option<Variable>, Error> {
    let mut symbol = SymbolHandle(0);
    // SAFETY: a C string, and an agent.
    let status = unsafe {
        (api.hsa_executable_get_symbol_by_name)(executable, name.as_ptr(), &agent, &raw mut symbol)
    };
    if status == Status::INVALID_SYMBOL_NAME {
        return Ok(None);
    }
    check("hsa_executable_get_symbol_by_name", status)?;
    if !is_of_kind(api, symbol, HSA_SYMBOL_KIND_VARIABLE)? {
        return Ok(None);
    }
    let name = name.to_string_lossy().into_owned();
    located(api, symbol, name).map(Some)
}

/// The kernels of an executable on agent number `index`, without their registers. With each, the device address of its
/// descriptor, as in dispatch packets.
pub fn kernels(
    api: &Api,
    executable: ExecutableHandle,
    agent: AgentHandle,
    index: u32,
) -> Result<Vec<(u64, Kernel)>, Error> {
    let mut kernels = Vec::new();
    for symbol in symbols(api, executable, agent)? {
        if !is_of_kind(api, symbol, HSA_SYMBOL_KIND_KERNEL)? {
            continue;
        }
        let (mut short, mut long) = ([0u8; 256], Vec::new());
        let name = symbol_name(api, symbol, &mut short, &mut long)?;
        let name = name.strip_suffix(b".kd").unwrap_or(name);
        let object = symbol_u64(
            api,
            symbol,
            HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT,
            "hsa_executable_symbol_get_info(HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT)",
        )?;
        let number = |attribute| symbol_u32(api, symbol, attribute);
        let kernel = Kernel {
            name: String::from_utf8_lossy(name).into_owned(),
            agent: index,
            kernarg: number(HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE)?,
            lds: number(HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE)?,
            scratch: number(HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE)?,
            registers: Registers::Unknown,
            build_id: None,
        };
        kernels.push((object, kernel));
    }
    Ok(kernels)
}

/// The URI of an executable's code object for an agent (`file://…#offset=…&size=…` or `memory://…`).
pub fn uri(api: &Api, executable: ExecutableHandle, agent: AgentHandle) -> Option<String> {
    let read = api.loader().ok()?.loaded_code_object_get_info;
    code_objects(api, executable)
        .ok()?
        .into_iter()
        .find_map(|object| {
            // SAFETY: the attributes are an hsa_agent_t and a u32.
            let (owner, length) = unsafe {
                let owner = HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_AGENT;
                let length = HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI_LENGTH;
                (
                    loaded_info::<u64>(api, object, owner).ok()?,
                    loaded_info::<u32>(api, object, length).ok()?,
                )
            };
            if owner != agent.0 || length > 1 << 16 {
                return None;
            }
            let mut uri = vec![0u8; length as usize];
            let attribute = HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI;
            // SAFETY: the attribute has `length` bytes.
            let status = unsafe { read(object, attribute, uri.as_mut_ptr().cast()) };
            (status == Status::SUCCESS).then(|| String::from_utf8_lossy(&uri).into_owned())
        })
}
