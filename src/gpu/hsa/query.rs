//! What is loaded where: agents, loaded segments, symbols.

use super::api::{Api, Error, ok};
use super::types::*;
use crate::discover::{Agent, Segment, Table, is_table_name};
use std::ffi::c_void;

/// An iteration of HSA's that collects into a vector: the first error ends it and is kept.
struct Collect<'a, T> {
    api: &'a Api,
    found: Vec<T>,
    error: Option<Error>,
}

impl<'a, T> Collect<'a, T> {
    fn new(api: &'a Api) -> Self {
        Collect {
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
            None => ok(what, status).map(|()| self.found),
        }
    }
}

/// The process's agents.
pub struct Agents {
    /// In HSA's order.
    pub gpus: Vec<Agent>,
    /// The first CPU agent.
    pub cpu: Option<AgentHandle>,
    /// Agents that do not tell what they are, and the error that came instead.
    pub unknown: Vec<(AgentHandle, Error)>,
}

/// All agents, in HSA's order.
pub fn all_agents(api: &Api) -> Result<Vec<AgentHandle>, Error> {
    unsafe extern "C" fn visit(handle: AgentHandle, data: *mut c_void) -> Status {
        // SAFETY: `data` is the collection that `all_agents` passed, alive and not otherwise used during the call.
        let collect = unsafe { &mut *data.cast::<Collect<AgentHandle>>() };
        collect.step(Ok(Some(handle)))
    }
    let mut collect = Collect::<AgentHandle>::new(api);
    // SAFETY: `visit` gets back the pointer given here.
    let status = unsafe { (api.hsa_iterate_agents)(visit, (&raw mut collect).cast()) };
    collect.finish("hsa_iterate_agents", status)
}

/// Asks every agent what it is.
pub fn agents(api: &Api) -> Result<Agents, Error> {
    let mut agents = Agents {
        gpus: Vec::new(),
        cpu: None,
        unknown: Vec::new(),
    };
    for handle in all_agents(api)? {
        let described = device(api, handle).and_then(|device| match device {
            DEVICE_TYPE_GPU => gpu(api, handle).map(|gpu| agents.gpus.push(gpu)),
            DEVICE_TYPE_CPU => {
                agents.cpu.get_or_insert(handle);
                Ok(())
            }
            // Signal processors and the like run no code objects of ours.
            _ => Ok(()),
        });
        if let Err(error) = described {
            agents.unknown.push((handle, error));
        }
    }
    Ok(agents)
}

/// Whether an agent is a GPU.
pub fn is_gpu(api: &Api, handle: AgentHandle) -> Result<bool, Error> {
    device(api, handle).map(|device| device == DEVICE_TYPE_GPU)
}

fn device(api: &Api, handle: AgentHandle) -> Result<u32, Error> {
    let mut device = 0u32;
    // SAFETY: the attribute is a 32-bit enumeration.
    let status =
        unsafe { (api.hsa_agent_get_info)(handle, AGENT_INFO_DEVICE, (&raw mut device).cast()) };
    ok("hsa_agent_get_info(HSA_AGENT_INFO_DEVICE)", status).map(|()| device)
}

fn gpu(api: &Api, handle: AgentHandle) -> Result<Agent, Error> {
    let mut name = [0u8; 64];
    // SAFETY: the attribute is char[64].
    let status =
        unsafe { (api.hsa_agent_get_info)(handle, AGENT_INFO_NAME, name.as_mut_ptr().cast()) };
    ok("hsa_agent_get_info(HSA_AGENT_INFO_NAME)", status)?;
    Ok(Agent {
        handle,
        name: text(&name),
    })
}

/// A text attribute, as far as its first zero.
pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// An executable that does not tell what is loaded, and the error that came instead.
pub type Silent = (ExecutableHandle, Error);

/// Where the code objects of all frozen executables are loaded, one segment each; and the executables that do not tell.
///
/// `hsa_ven_amd_loader_query_segment_descriptors` would tell the same, but ROCr 7.2.4 ends the process in it (an
/// assertion in `ExecutableImpl::QuerySegmentDescriptors`) while another thread has an executable that nothing was
/// loaded into yet.
pub fn segments(api: &Api) -> Result<(Vec<Segment>, Vec<Silent>), Error> {
    type Found = (ExecutableHandle, Result<Vec<Segment>, Error>);
    unsafe extern "C" fn visit(executable: ExecutableHandle, data: *mut c_void) -> Status {
        // SAFETY: `data` is the collection that `segments` passed, alive and not otherwise used during the call.
        let collect = unsafe { &mut *data.cast::<Collect<Found>>() };
        // No executable is destroyed during the iteration (hsa_ven_amd_loader.h).
        let found = segments_of(collect.api, executable);
        collect.step(Ok(Some((executable, found))))
    }
    let loader = api.loader()?;
    let mut collect = Collect::<Found>::new(api);
    // SAFETY: `visit` gets back the pointer given here.
    let status = unsafe { (loader.iterate_executables)(visit, (&raw mut collect).cast()) };
    let (mut segments, mut unknown) = (Vec::new(), Vec::new());
    for (executable, found) in collect.finish("hsa_ven_amd_loader_iterate_executables", status)? {
        match found {
            Ok(found) => segments.extend(found),
            Err(error) => unknown.push((executable, error)),
        }
    }
    Ok((segments, unknown))
}

/// Where the code objects of an executable are loaded; nowhere before it is frozen.
pub fn segments_of(api: &Api, executable: ExecutableHandle) -> Result<Vec<Segment>, Error> {
    let mut state = 0u32;
    // SAFETY: the attribute is a 32-bit enumeration.
    let status = unsafe {
        (api.hsa_executable_get_info)(executable, EXECUTABLE_INFO_STATE, (&raw mut state).cast())
    };
    ok("hsa_executable_get_info(HSA_EXECUTABLE_INFO_STATE)", status)?;
    if state != EXECUTABLE_STATE_FROZEN {
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
                    LOADED_CODE_OBJECT_INFO_AGENT,
                    (&raw mut agent).cast(),
                ),
                info(
                    object,
                    LOADED_CODE_OBJECT_INFO_LOAD_BASE,
                    (&raw mut base).cast(),
                ),
                info(
                    object,
                    LOADED_CODE_OBJECT_INFO_LOAD_SIZE,
                    (&raw mut size).cast(),
                ),
            ]
        };
        for status in statuses {
            ok("hsa_ven_amd_loader_loaded_code_object_get_info", status)?;
        }
        segments.push(Segment {
            agent,
            executable,
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
        // SAFETY: `data` is the collection that `code_objects` passed, alive and not otherwise used during the call.
        let collect = unsafe { &mut *data.cast::<Collect<LoadedCodeObjectHandle>>() };
        collect.step(Ok(Some(object)))
    }
    let iterate = api.loader()?.executable_iterate_loaded_code_objects;
    let mut collect = Collect::<LoadedCodeObjectHandle>::new(api);
    // SAFETY: `visit` gets back the pointer given here.
    let status = unsafe { iterate(executable, visit, (&raw mut collect).cast()) };
    collect.finish(
        "hsa_ven_amd_loader_executable_iterate_loaded_code_objects",
        status,
    )
}

/// What `look` finds among the symbols of an executable on an agent.
fn symbols<T>(
    api: &Api,
    executable: ExecutableHandle,
    agent: AgentHandle,
    look: fn(&Api, SymbolHandle) -> Result<Option<T>, Error>,
) -> Result<Vec<T>, Error> {
    struct Search<'a, T> {
        collect: Collect<'a, T>,
        look: fn(&Api, SymbolHandle) -> Result<Option<T>, Error>,
    }
    unsafe extern "C" fn visit<T>(
        _: ExecutableHandle,
        _: AgentHandle,
        symbol: SymbolHandle,
        data: *mut c_void,
    ) -> Status {
        // SAFETY: `data` is the search that `symbols` passed, alive and not otherwise used during the call.
        let search = unsafe { &mut *data.cast::<Search<T>>() };
        let found = (search.look)(search.collect.api, symbol);
        search.collect.step(found)
    }
    let mut search = Search {
        collect: Collect::<T>::new(api),
        look,
    };
    // SAFETY: `visit` gets back the pointer given here.
    let status = unsafe {
        (api.hsa_executable_iterate_agent_symbols)(
            executable,
            agent,
            visit::<T>,
            (&raw mut search).cast(),
        )
    };
    search
        .collect
        .finish("hsa_executable_iterate_agent_symbols", status)
}

/// A symbol's name, in `short` where it fits: that of a kernel can be long.
fn symbol_name<'a>(
    api: &Api,
    symbol: SymbolHandle,
    short: &'a mut [u8],
    long: &'a mut Vec<u8>,
) -> Result<&'a [u8], Error> {
    const WHAT: &str = "hsa_executable_symbol_get_info(HSA_EXECUTABLE_SYMBOL_INFO_NAME)";
    let length = symbol_u32(api, symbol, SYMBOL_INFO_NAME_LENGTH)? as usize;
    let name = match short.get_mut(..length) {
        Some(name) => name,
        None => {
            long.try_reserve_exact(length)
                .map_err(|_| Error::Call(WHAT, Status::ERROR))?;
            long.resize(length, 0);
            &mut long[..]
        }
    };
    // SAFETY: the attribute is as many bytes as the length says (hsa.h, HSA_EXECUTABLE_SYMBOL_INFO_NAME).
    let status = unsafe {
        (api.hsa_executable_symbol_get_info)(symbol, SYMBOL_INFO_NAME, name.as_mut_ptr().cast())
    };
    ok(WHAT, status).map(|()| &*name)
}

fn symbol_u64(
    api: &Api,
    symbol: SymbolHandle,
    attribute: u32,
    what: &'static str,
) -> Result<u64, Error> {
    let mut value = 0u64;
    // SAFETY: the attributes that this file asks for here are 64-bit addresses.
    let status =
        unsafe { (api.hsa_executable_symbol_get_info)(symbol, attribute, (&raw mut value).cast()) };
    ok(what, status).map(|()| value)
}

/// The bounds tables among the variables of an executable on an agent.
pub fn tables(
    api: &Api,
    executable: ExecutableHandle,
    agent: AgentHandle,
) -> Result<Vec<Table>, Error> {
    symbols(api, executable, agent, table)
}

fn table(api: &Api, symbol: SymbolHandle) -> Result<Option<Table>, Error> {
    let (mut short, mut long) = ([0u8; 256], Vec::new());
    let name = symbol_name(api, symbol, &mut short, &mut long)?;
    if !is_table_name(name) || symbol_u32(api, symbol, SYMBOL_INFO_TYPE)? != SYMBOL_KIND_VARIABLE {
        return Ok(None);
    }
    let address = symbol_u64(
        api,
        symbol,
        SYMBOL_INFO_VARIABLE_ADDRESS,
        "hsa_executable_symbol_get_info(HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS)",
    )?;
    let size = u64::from(symbol_u32(api, symbol, SYMBOL_INFO_VARIABLE_SIZE)?);
    Ok(Some(Table {
        name: String::from_utf8_lossy(name).into_owned(),
        address,
        size,
    }))
}

/// A kernel symbol of an executable on an agent.
pub struct KernelSymbol {
    /// Without the `.kd` of its descriptor.
    pub name: String,
    /// Device address of its descriptor, as dispatch packets have it.
    pub object: u64,
    /// Bytes.
    pub kernarg: u32,
    /// Bytes a workgroup.
    pub group: u32,
    /// Bytes a work-item.
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
    if symbol_u32(api, symbol, SYMBOL_INFO_TYPE)? != SYMBOL_KIND_KERNEL {
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
            SYMBOL_INFO_KERNEL_OBJECT,
            "hsa_executable_symbol_get_info(HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT)",
        )?,
        kernarg: symbol_u32(api, symbol, SYMBOL_INFO_KERNARG_SIZE)?,
        group: symbol_u32(api, symbol, SYMBOL_INFO_GROUP_SIZE)?,
        private: symbol_u32(api, symbol, SYMBOL_INFO_PRIVATE_SIZE)?,
    }))
}

fn symbol_u32(api: &Api, symbol: SymbolHandle, attribute: u32) -> Result<u32, Error> {
    let mut value = 0u32;
    // SAFETY: the attributes that this file asks for here are 32-bit values.
    let status =
        unsafe { (api.hsa_executable_symbol_get_info)(symbol, attribute, (&raw mut value).cast()) };
    ok("hsa_executable_symbol_get_info", status).map(|()| value)
}

/// Where an executable's code object for an agent came from, for a message: its URI (`file://…#offset=…&size=…` or
/// `memory://…`). `None` when the loader cannot say.
pub fn describe(api: &Api, executable: ExecutableHandle, agent: AgentHandle) -> Option<String> {
    let info = api.loader().ok()?.loaded_code_object_get_info;
    for object in code_objects(api, executable).ok()? {
        let (mut owner, mut length) = (AgentHandle(0), 0u32);
        // SAFETY: the attribute is an hsa_agent_t.
        let owned = unsafe {
            info(
                object,
                LOADED_CODE_OBJECT_INFO_AGENT,
                (&raw mut owner).cast(),
            )
        };
        // SAFETY: the attribute is a u32.
        let sized = unsafe {
            info(
                object,
                LOADED_CODE_OBJECT_INFO_URI_LENGTH,
                (&raw mut length).cast(),
            )
        };
        if owned != Status::SUCCESS
            || sized != Status::SUCCESS
            || owner != agent
            || length > 1 << 16
        {
            continue;
        }
        let mut uri = vec![0u8; length as usize];
        // SAFETY: the attribute is as many bytes as the length says.
        if unsafe { info(object, LOADED_CODE_OBJECT_INFO_URI, uri.as_mut_ptr().cast()) }
            == Status::SUCCESS
        {
            return Some(String::from_utf8_lossy(&uri).into_owned());
        }
    }
    None
}
