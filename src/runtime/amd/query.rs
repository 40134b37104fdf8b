//! Agents, loaded segments and symbols.

use super::api::{Api, check, failed};
use crate::gpu::runtime::Error;
use crate::gpu::runtime::{Agent, AgentId, Agents, ExecutableId, Segment, Segments, Variable};
use hsa_abi::{
    AgentHandle, ExecutableHandle, HSA_AGENT_INFO_DEVICE, HSA_AGENT_INFO_NAME,
    HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT, HSA_AMD_AGENT_INFO_MEMORY_AVAIL,
    HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES, HSA_AMD_AGENT_INFO_NUM_XCC, HSA_DEVICE_TYPE_CPU,
    HSA_DEVICE_TYPE_GPU, HSA_EXECUTABLE_INFO_STATE, HSA_EXECUTABLE_STATE_FROZEN,
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE,
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE,
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT,
    HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE, HSA_EXECUTABLE_SYMBOL_INFO_NAME,
    HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH, HSA_EXECUTABLE_SYMBOL_INFO_TYPE,
    HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS, HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE,
    HSA_SYMBOL_KIND_KERNEL, HSA_SYMBOL_KIND_VARIABLE,
    HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_AGENT,
    HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE,
    HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_SIZE,
    HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI,
    HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI_LENGTH, LoadedCodeObjectHandle, Status,
    SymbolHandle,
};
use std::ffi::{CStr, c_void};

/// Collects the results of one of HSA's iterations. The first error ends the iteration.
struct Collector<'a, T> {
    api: &'a Api,
    found: Vec<T>,
    error: Option<Error>,
}

impl<'a, T> Collector<'a, T> {
    fn new(api: &'a Api) -> Self {
        Collector {
            api,
            found: Vec::new(),
            error: None,
        }
    }

    fn step(&mut self, found: Result<Option<T>, Error>) -> Status {
        match found {
            Ok(found) => {
                self.found.extend(found);
                Status::SUCCESS
            }
            Err(error) => {
                self.error = Some(error);
                Status::INFO_BREAK
            }
        }
    }

    fn finish(self, what: &'static str, status: Status) -> Result<Vec<T>, Error> {
        match self.error {
            Some(error) => Err(error),
            None => check(what, status).map(|()| self.found),
        }
    }
}

/// All agents, in HSA's order.
pub fn all_agents(api: &Api) -> Result<Vec<AgentHandle>, Error> {
    unsafe extern "C" fn visit(handle: AgentHandle, data: *mut c_void) -> Status {
        // SAFETY: `data` is the collector that `all_agents` passed; it is valid, and nothing else uses it, during the
        // call.
        let collector = unsafe { &mut *data.cast::<Collector<AgentHandle>>() };
        collector.step(Ok(Some(handle)))
    }
    let mut collector = Collector::<AgentHandle>::new(api);
    // SAFETY: `visit` gets the pointer passed here.
    let status = unsafe { (api.hsa_iterate_agents)(visit, (&raw mut collector).cast()) };
    collector.finish("hsa_iterate_agents", status)
}

/// The GPU agents, and the first CPU agent.
pub fn agents(api: &Api) -> Result<(Agents, Option<AgentHandle>), Error> {
    let mut agents = Agents {
        gpus: Vec::new(),
        unknown: Vec::new(),
    };
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
    let mut device = 0u32;
    // SAFETY: the attribute is a 32-bit enumeration.
    let status = unsafe {
        (api.hsa_agent_get_info)(handle, HSA_AGENT_INFO_DEVICE, (&raw mut device).cast())
    };
    check("hsa_agent_get_info(HSA_AGENT_INFO_DEVICE)", status).map(|()| device)
}

/// An agent's name.
pub fn agent(api: &Api, handle: AgentHandle) -> Result<Agent, Error> {
    let mut name = [0u8; 64];
    // SAFETY: the attribute is char[64].
    let status =
        unsafe { (api.hsa_agent_get_info)(handle, HSA_AGENT_INFO_NAME, name.as_mut_ptr().cast()) };
    check("hsa_agent_get_info(HSA_AGENT_INFO_NAME)", status)?;
    Ok(Agent {
        id: AgentId::Hsa(handle.0),
        name: string(&name),
    })
}

/// The number of an agent's compute units.
pub fn compute_units(api: &Api, agent: AgentHandle) -> Result<u32, Error> {
    // SAFETY: the attribute is a u32.
    let count = unsafe { number(api, agent, HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT) };
    count.map_err(|status| {
        failed(
            "hsa_agent_get_info(HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT)",
            status,
        )
    })
}

/// The numbers of an agent's shader engines and accelerator complex dies (XCC), as far as they are known.
pub fn engines_and_xccs(api: &Api, agent: AgentHandle) -> [Option<u32>; 2] {
    [
        HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES,
        HSA_AMD_AGENT_INFO_NUM_XCC,
    ]
    // SAFETY: these attributes are a u32.
    .map(|attribute| unsafe { number(api, agent, attribute) }.ok())
}

/// The bytes of a GPU's memory that no process has allocated; `None` if the driver does not report it.
pub fn free_memory(api: &Api, agent: AgentHandle) -> Option<u64> {
    // SAFETY: the attribute is a u64.
    unsafe { number(api, agent, HSA_AMD_AGENT_INFO_MEMORY_AVAIL) }.ok()
}

/// An attribute of an agent that is a number.
///
/// # Safety
/// `T` is the attribute's type.
unsafe fn number<T: Default>(api: &Api, agent: AgentHandle, attribute: u32) -> Result<T, Status> {
    let mut value = T::default();
    // SAFETY: the caller's promise.
    match unsafe { (api.hsa_agent_get_info)(agent, attribute, (&raw mut value).cast()) } {
        Status::SUCCESS => Ok(value),
        status => Err(status),
    }
}

/// The value of a string attribute, up to its first NUL byte.
pub fn string(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// The segments of all frozen executables, one for each code object.
///
/// `hsa_ven_amd_loader_query_segment_descriptors` is not used: in ROCr 7.2.4 it aborts the process (an assertion in
/// `ExecutableImpl::QuerySegmentDescriptors`) if another thread has created an executable without a code object.
pub fn segments(api: &Api) -> Result<Segments, Error> {
    type Found = (ExecutableHandle, Result<Vec<Segment>, Error>);
    unsafe extern "C" fn visit(executable: ExecutableHandle, data: *mut c_void) -> Status {
        // SAFETY: `data` is the collector that `segments` passed; it is valid, and nothing else uses it, during the
        // call.
        let collector = unsafe { &mut *data.cast::<Collector<Found>>() };
        // No executable is destroyed during the iteration (hsa_ven_amd_loader.h).
        let found = segments_of(collector.api, executable);
        collector.step(Ok(Some((executable, found))))
    }
    let loader = api.loader()?;
    let mut collector = Collector::<Found>::new(api);
    // SAFETY: `visit` gets the pointer passed here.
    let status = unsafe { (loader.iterate_executables)(visit, (&raw mut collector).cast()) };
    let mut segments = Segments {
        found: Vec::new(),
        failed: Vec::new(),
    };
    for (executable, found) in collector.finish("hsa_ven_amd_loader_iterate_executables", status)? {
        match found {
            Ok(found) => segments.found.extend(found),
            Err(error) => segments
                .failed
                .push((ExecutableId::Hsa(executable.0), error)),
        }
    }
    Ok(segments)
}

/// The segments of an executable. Empty if it is not frozen.
pub fn segments_of(api: &Api, executable: ExecutableHandle) -> Result<Vec<Segment>, Error> {
    let mut state = 0u32;
    // SAFETY: the attribute is a 32-bit enumeration.
    let status = unsafe {
        (api.hsa_executable_get_info)(
            executable,
            HSA_EXECUTABLE_INFO_STATE,
            (&raw mut state).cast(),
        )
    };
    check("hsa_executable_get_info(HSA_EXECUTABLE_INFO_STATE)", status)?;
    if state != HSA_EXECUTABLE_STATE_FROZEN {
        return Ok(Vec::new());
    }
    let mut segments = Vec::new();
    for object in code_objects(api, executable)? {
        let (mut agent, mut base, mut size) = (AgentHandle(0), 0u64, 0u64);
        let info = api.loader()?.loaded_code_object_get_info;
        // SAFETY: the attributes are an hsa_agent_t and two 64-bit numbers.
        let statuses = unsafe {
            [
                info(
                    object,
                    HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_AGENT,
                    (&raw mut agent).cast(),
                ),
                info(
                    object,
                    HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE,
                    (&raw mut base).cast(),
                ),
                info(
                    object,
                    HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_SIZE,
                    (&raw mut size).cast(),
                ),
            ]
        };
        for status in statuses {
            check("hsa_ven_amd_loader_loaded_code_object_get_info", status)?;
        }
        segments.push(Segment {
            agent: AgentId::Hsa(agent.0),
            executable: ExecutableId::Hsa(executable.0),
            base,
            size,
        });
    }
    Ok(segments)
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
        // SAFETY: `data` is the collector that `code_objects` passed; it is valid, and nothing else uses it, during the
        // call.
        let collector = unsafe { &mut *data.cast::<Collector<LoadedCodeObjectHandle>>() };
        collector.step(Ok(Some(object)))
    }
    let iterate = api.loader()?.executable_iterate_loaded_code_objects;
    let mut collector = Collector::<LoadedCodeObjectHandle>::new(api);
    // SAFETY: `visit` gets the pointer passed here.
    let status = unsafe { iterate(executable, visit, (&raw mut collector).cast()) };
    collector.finish(
        "hsa_ven_amd_loader_executable_iterate_loaded_code_objects",
        status,
    )
}

/// The results of `read` for the symbols of an executable on an agent, without `None`.
fn symbols<T, F>(
    api: &Api,
    executable: ExecutableHandle,
    agent: AgentHandle,
    read: F,
) -> Result<Vec<T>, Error>
where
    F: Fn(&Api, SymbolHandle) -> Result<Option<T>, Error>,
{
    struct Search<'a, T, F> {
        collector: Collector<'a, T>,
        read: F,
    }
    unsafe extern "C" fn visit<T, F>(
        _: ExecutableHandle,
        _: AgentHandle,
        symbol: SymbolHandle,
        data: *mut c_void,
    ) -> Status
    where
        F: Fn(&Api, SymbolHandle) -> Result<Option<T>, Error>,
    {
        // SAFETY: `data` is the search that `symbols` passed; it is valid, and nothing else uses it, during the call.
        let search = unsafe { &mut *data.cast::<Search<T, F>>() };
        let found = (search.read)(search.collector.api, symbol);
        search.collector.step(found)
    }
    let mut search = Search {
        collector: Collector::<T>::new(api),
        read,
    };
    // SAFETY: `visit` gets the pointer passed here.
    let status = unsafe {
        (api.hsa_executable_iterate_agent_symbols)(
            executable,
            agent,
            visit::<T, F>,
            (&raw mut search).cast(),
        )
    };
    search
        .collector
        .finish("hsa_executable_iterate_agent_symbols", status)
}

/// The name of a symbol, in `short` if it fits, otherwise in `long`. Names of kernels can be long.
fn symbol_name<'a>(
    api: &Api,
    symbol: SymbolHandle,
    short: &'a mut [u8],
    long: &'a mut Vec<u8>,
) -> Result<&'a [u8], Error> {
    const WHAT: &str = "hsa_executable_symbol_get_info(HSA_EXECUTABLE_SYMBOL_INFO_NAME)";
    let length = symbol_u32(api, symbol, HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH)? as usize;
    let name = match short.get_mut(..length) {
        Some(name) => name,
        None => {
            long.try_reserve_exact(length)
                .map_err(|_| failed(WHAT, Status::ERROR))?;
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
    check(WHAT, status).map(|()| &*name)
}

fn symbol_u64(
    api: &Api,
    symbol: SymbolHandle,
    attribute: u32,
    what: &'static str,
) -> Result<u64, Error> {
    let mut value = 0u64;
    // SAFETY: the attributes that this file reads with it are 64-bit addresses.
    let status =
        unsafe { (api.hsa_executable_symbol_get_info)(symbol, attribute, (&raw mut value).cast()) };
    check(what, status).map(|()| value)
}

/// The variables of an executable on an agent for whose names `is_wanted` returns true.
pub fn variables(
    api: &Api,
    executable: ExecutableHandle,
    agent: AgentHandle,
    is_wanted: fn(&[u8]) -> bool,
) -> Result<Vec<Variable>, Error> {
    symbols(api, executable, agent, |api, symbol| {
        variable(api, symbol, is_wanted)
    })
}

fn variable(
    api: &Api,
    symbol: SymbolHandle,
    is_wanted: fn(&[u8]) -> bool,
) -> Result<Option<Variable>, Error> {
    let (mut short, mut long) = ([0u8; 256], Vec::new());
    let name = symbol_name(api, symbol, &mut short, &mut long)?;
    if !is_wanted(name)
        || symbol_u32(api, symbol, HSA_EXECUTABLE_SYMBOL_INFO_TYPE)? != HSA_SYMBOL_KIND_VARIABLE
    {
        return Ok(None);
    }
    let name = String::from_utf8_lossy(name).into_owned();
    located(api, symbol, name).map(Some)
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
    if symbol_u32(api, symbol, HSA_EXECUTABLE_SYMBOL_INFO_TYPE)? != HSA_SYMBOL_KIND_VARIABLE {
        return Ok(None);
    }
    let name = name.to_string_lossy().into_owned();
    located(api, symbol, name).map(Some)
}

/// A kernel symbol of an executable on an agent.
pub struct KernelSymbol {
    /// Without the `.kd` of its descriptor.
    pub name: String,
    /// The device address of its descriptor, as in dispatch packets.
    pub object: u64,
    /// Bytes.
    pub kernarg: u32,
    /// Bytes per workgroup.
    pub group: u32,
    /// Bytes per work-item.
    pub private: u32,
}

/// The kernels of an executable on an agent.
pub fn kernels(
    api: &Api,
    executable: ExecutableHandle,
    agent: AgentHandle,
) -> Result<Vec<KernelSymbol>, Error> {
    symbols(api, executable, agent, kernel)
}

fn kernel(api: &Api, symbol: SymbolHandle) -> Result<Option<KernelSymbol>, Error> {
    if symbol_u32(api, symbol, HSA_EXECUTABLE_SYMBOL_INFO_TYPE)? != HSA_SYMBOL_KIND_KERNEL {
        return Ok(None);
    }
    let (mut short, mut long) = ([0u8; 256], Vec::new());
    let name = symbol_name(api, symbol, &mut short, &mut long)?;
    let name = name.strip_suffix(b".kd").unwrap_or(name);
    Ok(Some(KernelSymbol {
        name: String::from_utf8_lossy(name).into_owned(),
        object: symbol_u64(
            api,
            symbol,
            HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT,
            "hsa_executable_symbol_get_info(HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT)",
        )?,
        kernarg: symbol_u32(
            api,
            symbol,
            HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE,
        )?,
        group: symbol_u32(
            api,
            symbol,
            HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE,
        )?,
        private: symbol_u32(
            api,
            symbol,
            HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE,
        )?,
    }))
}

fn symbol_u32(api: &Api, symbol: SymbolHandle, attribute: u32) -> Result<u32, Error> {
    let mut value = 0u32;
    // SAFETY: the attributes that this file reads with it are 32-bit values.
    let status =
        unsafe { (api.hsa_executable_symbol_get_info)(symbol, attribute, (&raw mut value).cast()) };
    check("hsa_executable_symbol_get_info", status).map(|()| value)
}

/// The URI of an executable's code object for an agent (`file://…#offset=…&size=…` or `memory://…`).
pub fn uri(api: &Api, executable: ExecutableHandle, agent: AgentHandle) -> Option<String> {
    let info = api.loader().ok()?.loaded_code_object_get_info;
    for object in code_objects(api, executable).ok()? {
        let (mut owner, mut length) = (AgentHandle(0), 0u32);
        // SAFETY: the attribute is an hsa_agent_t.
        let agent_status = unsafe {
            info(
                object,
                HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_AGENT,
                (&raw mut owner).cast(),
            )
        };
        // SAFETY: the attribute is a u32.
        let length_status = unsafe {
            info(
                object,
                HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI_LENGTH,
                (&raw mut length).cast(),
            )
        };
        if agent_status != Status::SUCCESS
            || length_status != Status::SUCCESS
            || owner != agent
            || length > 1 << 16
        {
            continue;
        }
        let mut uri = vec![0u8; length as usize];
        // SAFETY: the attribute has `length` bytes.
        if unsafe {
            info(
                object,
                HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI,
                uri.as_mut_ptr().cast(),
            )
        } == Status::SUCCESS
        {
            return Some(String::from_utf8_lossy(&uri).into_owned());
        }
    }
    None
}
