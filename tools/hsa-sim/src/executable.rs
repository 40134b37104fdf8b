//! Code object readers, executables, and their symbols.

use crate::agent::{self, GENERIC_MACH};
use crate::code_object::{CodeObject, Defined, SymbolKind};
use crate::memory::{Kind, PAGE};
use crate::runtime::{State, locked, new_handle, put, put_bytes, status, with};
use hsa_abi::*;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Held while somebody looks at all executables: none is made or destroyed meanwhile, as in ROCr.
pub static ALL: Mutex<()> = Mutex::new(());

/// Where a code object came from.
#[derive(Debug)]
pub enum Storage {
    File {
        path: PathBuf,
        offset: usize,
        /// The file's bytes at the time; they are where HSA says the code object is in memory.
        bytes: Vec<u8>,
    },
    Memory {
        base: usize,
        size: usize,
    },
}

impl Storage {
    fn bytes(&self) -> &[u8] {
        match self {
            Storage::File { bytes, .. } => bytes,
            Storage::Memory { base, size } => {
                // SAFETY: the program keeps the memory as long as readers and loaded code objects use it (hsa.h).
                unsafe { std::slice::from_raw_parts(*base as *const u8, *size) }
            }
        }
    }

    /// Where the code object's bytes are in this process.
    pub fn memory(&self) -> Range<usize> {
        let bytes = self.bytes();
        let base = bytes.as_ptr() as usize;
        base..base + bytes.len()
    }

    /// As `HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI` has it.
    fn uri(&self) -> String {
        match self {
            Storage::File {
                path,
                offset,
                bytes,
                ..
            } => {
                let mut uri = String::from("file://");
                for &byte in path.as_os_str().as_encoded_bytes() {
                    if byte.is_ascii_alphanumeric() || b"/_.~-".contains(&byte) {
                        uri.push(char::from(byte));
                    } else {
                        uri.push_str(&format!("%{byte:02X}"));
                    }
                }
                if *offset != 0 {
                    uri.push_str(&format!("#offset={offset}&size={}", bytes.len()));
                }
                uri
            }
            Storage::Memory { base, size } => {
                let process = std::process::id();
                format!("memory://{process}#offset={base:#x}&size={size}")
            }
        }
    }
}

/// A code object that is loaded on an agent.
pub struct Loaded {
    pub handle: LoadedCodeObjectHandle,
    pub executable: ExecutableHandle,
    pub agent: usize,
    pub storage: Arc<Storage>,
    /// Where it lies.
    pub range: Range<u64>,
    /// The image as it was loaded, in the host's memory: what the loader extension gives as the host's address. What
    /// kernels write does not get here.
    pub shadow: Vec<u8>,
    /// Load address minus address in the file.
    pub delta: i64,
    pub uri: String,
}

struct ExecutableState {
    frozen: bool,
    profile: u32,
    rounding: u32,
    /// By agent; `None` for those of all agents.
    defined: HashMap<(Option<usize>, String), u64>,
    loaded: Vec<Loaded>,
    symbols: Vec<SymbolHandle>,
}

struct SymbolState {
    executable: ExecutableHandle,
    agent: usize,
    defined: Defined,
    address: u64,
    kernel: Kernel,
}

/// What a kernel descriptor says.
#[derive(Clone, Copy, Default)]
struct Kernel {
    group: u32,
    private: u32,
    arguments: u32,
    dynamic_stack: bool,
}

const DESCRIPTOR: usize = 64;
const USES_DYNAMIC_STACK: u16 = 1 << 11;
const ARGUMENT_ALIGNMENT: u32 = 16;

impl Kernel {
    fn read(descriptor: &[u8]) -> Option<Kernel> {
        let word = |at: usize| {
            Some(u32::from_le_bytes(
                descriptor.get(at..at + 4)?.try_into().ok()?,
            ))
        };
        Some(Kernel {
            group: word(0)?,
            private: word(4)?,
            arguments: word(8)?,
            dynamic_stack: word(56)? as u16 & USES_DYNAMIC_STACK != 0,
        })
    }
}

/// All executables, symbols and readers.
#[derive(Default)]
pub struct Executables {
    all: BTreeMap<ExecutableHandle, ExecutableState>,
    symbols: HashMap<SymbolHandle, SymbolState>,
    /// The executables of loaded code objects.
    owners: HashMap<LoadedCodeObjectHandle, ExecutableHandle>,
    readers: HashMap<ReaderHandle, Arc<Storage>>,
}

impl Executables {
    /// Executables that the program has not destroyed.
    pub fn live(&self) -> u64 {
        self.all.len() as u64
    }

    /// Readers that the program has not destroyed.
    pub fn live_readers(&self) -> u64 {
        self.readers.len() as u64
    }

    /// The executables, in the order of their making.
    pub fn handles(&self) -> Vec<ExecutableHandle> {
        self.all.keys().copied().collect()
    }

    /// Every loaded code object, in the order of executables and loading.
    pub fn loaded(&self) -> impl Iterator<Item = &Loaded> {
        self.all.values().flat_map(|executable| &executable.loaded)
    }

    /// The code objects of one executable.
    pub fn loaded_of(&self, handle: ExecutableHandle) -> Result<&[Loaded], Status> {
        let executable = self.all.get(&handle);
        executable
            .map(|executable| &executable.loaded[..])
            .ok_or(Status::INVALID_EXECUTABLE)
    }

    /// A loaded code object.
    pub fn code_object(&self, handle: LoadedCodeObjectHandle) -> Result<&Loaded, Status> {
        let owner = self.owners.get(&handle);
        owner
            .and_then(|owner| self.all.get(owner))
            .and_then(|executable| executable.loaded.iter().find(|l| l.handle == handle))
            .ok_or(Status::INVALID_CODE_OBJECT)
    }

    fn get(&mut self, handle: ExecutableHandle) -> Result<&mut ExecutableState, Status> {
        self.all.get_mut(&handle).ok_or(Status::INVALID_EXECUTABLE)
    }

    fn symbol(&self, handle: SymbolHandle) -> Result<&SymbolState, Status> {
        self.symbols
            .get(&handle)
            .ok_or(Status::INVALID_EXECUTABLE_SYMBOL)
    }
}

/// A C string's text.
///
/// # Safety
/// `text` is null or a C string.
unsafe fn text(text: *const c_char) -> Result<String, Status> {
    if text.is_null() {
        return Err(Status::INVALID_ARGUMENT);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map(str::to_string)
        .map_err(|_| Status::INVALID_SYMBOL_NAME)
}

/// See `hsa.h`.
///
/// # Safety
/// `reader` may be written.
pub unsafe fn hsa_code_object_reader_create_from_file(
    file: c_int,
    reader: *mut ReaderHandle,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe { reader_of_file(file, 0, None, reader) }
}

/// A reader of a part of a file.
///
/// # Safety
/// `reader` may be written.
pub unsafe fn reader_of_file(
    file: c_int,
    offset: usize,
    size: Option<usize>,
    reader: *mut ReaderHandle,
) -> Status {
    if reader.is_null() {
        return Status::INVALID_ARGUMENT;
    }
    let link = format!("/proc/self/fd/{file}");
    let read = std::fs::read_link(&link).and_then(|path| Ok((path, std::fs::read(&link)?)));
    let Ok((path, mut bytes)) = read else {
        return Status::INVALID_FILE;
    };
    let end = match size {
        Some(size) => offset.checked_add(size).filter(|&end| end <= bytes.len()),
        None => Some(bytes.len()),
    };
    let Some(end) = end.filter(|&end| end > offset) else {
        return Status::INVALID_FILE;
    };
    bytes.truncate(end);
    bytes.drain(..offset);
    let storage = Storage::File {
        path,
        offset,
        bytes,
    };
    // SAFETY: the caller's promise.
    unsafe { add_reader(storage, reader) }
}

/// See `hsa.h`.
///
/// # Safety
/// As `hsa.h` says.
pub unsafe fn hsa_code_object_reader_create_from_memory(
    base: *const c_void,
    size: usize,
    reader: *mut ReaderHandle,
) -> Status {
    if base.is_null() || size == 0 || reader.is_null() {
        return Status::INVALID_ARGUMENT;
    }
    let base = base as usize;
    // SAFETY: the caller's promise.
    unsafe { add_reader(Storage::Memory { base, size }, reader) }
}

unsafe fn add_reader(storage: Storage, reader: *mut ReaderHandle) -> Status {
    let added = with(|state| {
        let handle = ReaderHandle(new_handle());
        state.executables.readers.insert(handle, Arc::new(storage));
        Ok(handle)
    });
    // SAFETY: the caller's promise.
    status(added.and_then(|handle| unsafe { put(reader, handle) }))
}

/// See `hsa.h`.
///
/// # Safety
/// Always sound.
pub unsafe fn hsa_code_object_reader_destroy(reader: ReaderHandle) -> Status {
    status(with(|state| {
        let removed = state.executables.readers.remove(&reader);
        removed
            .map(|_| ())
            .ok_or(Status::INVALID_CODE_OBJECT_READER)
    }))
}

/// See `hsa.h`.
///
/// # Safety
/// `executable` may be written.
pub unsafe fn hsa_executable_create(
    profile: u32,
    executable_state: u32,
    options: *const c_char,
    executable: *mut ExecutableHandle,
) -> Status {
    if executable_state > HSA_EXECUTABLE_STATE_FROZEN {
        return Status::INVALID_ARGUMENT;
    }
    // SAFETY: the caller's promise.
    let created = unsafe {
        hsa_executable_create_alt(
            profile,
            HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT,
            options,
            executable,
        )
    };
    if created == Status::SUCCESS && executable_state == HSA_EXECUTABLE_STATE_FROZEN {
        // SAFETY: just written.
        return unsafe { hsa_executable_freeze(*executable, options) };
    }
    created
}

/// See `hsa.h`.
///
/// # Safety
/// `executable` may be written.
pub unsafe fn hsa_executable_create_alt(
    profile: u32,
    rounding: u32,
    _options: *const c_char,
    executable: *mut ExecutableHandle,
) -> Status {
    if profile > HSA_PROFILE_FULL || rounding > 2 || executable.is_null() {
        return Status::INVALID_ARGUMENT;
    }
    let _all = locked(&ALL);
    let created = with(|state| {
        let handle = ExecutableHandle(new_handle());
        state.executables.all.insert(
            handle,
            ExecutableState {
                frozen: false,
                profile,
                rounding,
                defined: HashMap::new(),
                loaded: Vec::new(),
                symbols: Vec::new(),
            },
        );
        Ok(handle)
    });
    // SAFETY: the caller's promise.
    status(created.and_then(|handle| unsafe { put(executable, handle) }))
}

fn destroy(state: &mut State, handle: ExecutableHandle) -> Result<(), Status> {
    let executables = &mut state.executables;
    let executable = executables
        .all
        .remove(&handle)
        .ok_or(Status::INVALID_EXECUTABLE)?;
    for symbol in executable.symbols {
        executables.symbols.remove(&symbol);
    }
    for loaded in executable.loaded {
        executables.owners.remove(&loaded.handle);
        let base = loaded.range.start as usize;
        state.memory.free(&state.agents, base, Kind::Code);
    }
    Ok(())
}

/// See `hsa.h`.
///
/// # Safety
/// No kernel of it runs.
pub unsafe fn hsa_executable_destroy(executable: ExecutableHandle) -> Status {
    let _all = locked(&ALL);
    status(with(|state| destroy(state, executable)))
}

/// See `hsa.h`.
///
/// # Safety
/// As `hsa.h` says.
pub unsafe fn hsa_executable_load_agent_code_object(
    executable: ExecutableHandle,
    agent: AgentHandle,
    reader: ReaderHandle,
    _options: *const c_char,
    loaded: *mut LoadedCodeObjectHandle,
) -> Status {
    let done = with(|state| load(state, executable, agent, reader));
    status(done.map(|handle| {
        if !loaded.is_null() {
            // SAFETY: the caller's promise.
            unsafe { loaded.write(handle) };
        }
    }))
}

fn load(
    state: &mut State,
    handle: ExecutableHandle,
    agent: AgentHandle,
    reader: ReaderHandle,
) -> Result<LoadedCodeObjectHandle, Status> {
    let executable = state.executables.get(handle)?;
    if executable.frozen {
        return Err(Status::FROZEN_EXECUTABLE);
    }
    let (number, gpu) = state.agents.gpu(agent)?;
    let storage = state.executables.readers.get(&reader);
    let storage = storage.ok_or(Status::INVALID_CODE_OBJECT_READER)?.clone();
    let file = storage.bytes();
    let object = CodeObject::read(file).map_err(|error| {
        eprintln!("hsa-sim: {}: {error}", storage.uri());
        Status::INVALID_CODE_OBJECT
    })?;
    if object.mach != gpu.target.mach && object.mach != GENERIC_MACH {
        return Err(Status::INVALID_ISA_NAME);
    }
    let executable = state.executables.get(handle)?;
    let size = (object.span.end - object.span.start) as usize;
    for symbol in &object.symbols {
        let again = executable
            .defined
            .contains_key(&(None, symbol.name.clone()))
            || executable
                .defined
                .contains_key(&(Some(number), symbol.name.clone()));
        if again {
            return Err(Status::VARIABLE_ALREADY_DEFINED);
        }
    }
    let defined = executable
        .defined
        .iter()
        .filter(|((of, _), _)| of.is_none_or(|of| of == number))
        .map(|((_, name), &address)| (name.clone(), address))
        .collect();
    let base = state
        .memory
        .allocate(&state.agents, size, Kind::Code, number, 0, vec![number])
        .ok_or(Status::OUT_OF_RESOURCES)? as u64;
    let image = match object.image(file, base, &defined) {
        Ok(image) => image,
        Err(status) => {
            state.memory.free(&state.agents, base as usize, Kind::Code);
            return Err(status);
        }
    };
    let bytes = state.memory.host_address(base as usize) as *mut u8;
    for (n, page) in image.chunks(PAGE).enumerate() {
        // New memory is zero.
        if page.iter().any(|&byte| byte != 0) {
            // SAFETY: the allocation has the image's size, and nobody knows it yet.
            unsafe {
                std::ptr::copy_nonoverlapping(page.as_ptr(), bytes.add(n * PAGE), page.len())
            };
        }
    }
    state.memory.invalidate(&state.agents, base as usize);
    let delta = base.wrapping_sub(object.span.start);
    let mut handles = Vec::new();
    for symbol in object.symbols {
        let at = symbol.address.wrapping_sub(object.span.start) as usize;
        let descriptor = image.get(at..at.saturating_add(DESCRIPTOR));
        let kernel = match symbol.kind {
            SymbolKind::Kernel => descriptor.and_then(Kernel::read).unwrap_or_default(),
            SymbolKind::Variable { .. } => Kernel::default(),
        };
        let new = SymbolHandle(new_handle());
        handles.push(new);
        state.executables.symbols.insert(
            new,
            SymbolState {
                executable: handle,
                agent: number,
                address: delta.wrapping_add(symbol.address),
                defined: symbol,
                kernel,
            },
        );
    }
    let loaded = LoadedCodeObjectHandle(new_handle());
    state.executables.owners.insert(loaded, handle);
    let executable = state.executables.get(handle)?;
    executable.symbols.extend(handles);
    executable.loaded.push(Loaded {
        handle: loaded,
        executable: handle,
        agent: number,
        uri: storage.uri(),
        storage,
        range: base..base + size as u64,
        shadow: image,
        delta: delta as i64,
    });
    Ok(loaded)
}

/// See `hsa.h`.
///
/// # Safety
/// Always sound.
pub unsafe fn hsa_executable_freeze(
    executable: ExecutableHandle,
    _options: *const c_char,
) -> Status {
    status(with(|state| {
        let executable = state.executables.get(executable)?;
        if executable.frozen {
            return Err(Status::FROZEN_EXECUTABLE);
        }
        executable.frozen = true;
        Ok(())
    }))
}

/// See `hsa.h`.
///
/// # Safety
/// `value` has room for the attribute.
pub unsafe fn hsa_executable_get_info(
    executable: ExecutableHandle,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    let found = with(|state| {
        let executable = state.executables.get(executable)?;
        Ok(match attribute {
            HSA_EXECUTABLE_INFO_PROFILE => executable.profile,
            HSA_EXECUTABLE_INFO_STATE => u32::from(executable.frozen),
            HSA_EXECUTABLE_INFO_DEFAULT_FLOAT_ROUNDING_MODE => executable.rounding,
            _ => return Err(Status::INVALID_ARGUMENT),
        })
    });
    // SAFETY: the caller's promise: all three are 32-bit enumerations.
    status(found.and_then(|found| unsafe { put(value.cast(), found) }))
}

/// Defines a variable.
///
/// # Safety
/// `name` is null or a C string.
unsafe fn define(
    executable: ExecutableHandle,
    agent: Option<AgentHandle>,
    name: *const c_char,
    address: *mut c_void,
) -> Status {
    // SAFETY: the caller's promise.
    let name = match unsafe { text(name) } {
        Ok(name) => name,
        Err(status) => return status,
    };
    status(with(|state| {
        let agent = agent.map(|agent| state.agents.number(agent)).transpose()?;
        let executables = &mut state.executables;
        let executable = executables
            .all
            .get_mut(&executable)
            .ok_or(Status::INVALID_EXECUTABLE)?;
        if executable.frozen {
            return Err(Status::FROZEN_EXECUTABLE);
        }
        let loaded = executable.symbols.iter().any(|symbol| {
            let symbol = executables.symbols.get(symbol);
            symbol.is_some_and(|symbol| {
                symbol.defined.name == name && agent.is_none_or(|agent| agent == symbol.agent)
            })
        });
        if loaded || executable.defined.contains_key(&(agent, name.clone())) {
            return Err(Status::VARIABLE_ALREADY_DEFINED);
        }
        executable.defined.insert((agent, name), address as u64);
        Ok(())
    }))
}

/// See `hsa.h`.
///
/// # Safety
/// As `hsa.h` says.
pub unsafe fn hsa_executable_global_variable_define(
    executable: ExecutableHandle,
    name: *const c_char,
    address: *mut c_void,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe { define(executable, None, name, address) }
}

/// See `hsa.h`.
///
/// # Safety
/// As `hsa.h` says.
pub unsafe fn hsa_executable_agent_global_variable_define(
    executable: ExecutableHandle,
    agent: AgentHandle,
    name: *const c_char,
    address: *mut c_void,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe { define(executable, Some(agent), name, address) }
}

/// See `hsa.h`.
///
/// # Safety
/// As `hsa.h` says.
pub unsafe fn hsa_executable_readonly_variable_define(
    executable: ExecutableHandle,
    agent: AgentHandle,
    name: *const c_char,
    address: *mut c_void,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe { define(executable, Some(agent), name, address) }
}

/// See `hsa.h`. What could be wrong was refused when it was loaded.
///
/// # Safety
/// `result` may be written.
pub unsafe fn hsa_executable_validate(executable: ExecutableHandle, result: *mut u32) -> Status {
    let found = with(|state| state.executables.get(executable).map(|_| ()));
    // SAFETY: the caller's promise.
    status(found.and_then(|()| unsafe { put(result, 0) }))
}

/// See `hsa.h`.
///
/// # Safety
/// `result` may be written.
pub unsafe fn hsa_executable_validate_alt(
    executable: ExecutableHandle,
    _options: *const c_char,
    result: *mut u32,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe { hsa_executable_validate(executable, result) }
}

/// See `hsa.h`.
///
/// # Safety
/// As `hsa.h` says.
pub unsafe fn hsa_executable_get_symbol_by_name(
    executable: ExecutableHandle,
    name: *const c_char,
    agent: *const AgentHandle,
    symbol: *mut SymbolHandle,
) -> Status {
    // SAFETY: the caller's promise.
    let (name, agent) = match unsafe { (text(name), agent.as_ref()) } {
        (Ok(name), agent) => (name, agent.copied()),
        (Err(status), _) => return status,
    };
    let found = with(|state| {
        let agent = agent.map(|agent| state.agents.number(agent)).transpose()?;
        let executables = &mut state.executables;
        let handles = &executables.get(executable)?.symbols.clone();
        let found = handles.iter().copied().find(|handle| {
            executables
                .symbols
                .get(handle)
                .is_some_and(|symbol| symbol.defined.name == name && Some(symbol.agent) == agent)
        });
        found.ok_or(Status::INVALID_SYMBOL_NAME)
    });
    // SAFETY: the caller's promise.
    status(found.and_then(|found| unsafe { put(symbol, found) }))
}

/// See `hsa.h`.
///
/// # Safety
/// As `hsa.h` says.
pub unsafe fn hsa_executable_get_symbol(
    executable: ExecutableHandle,
    module: *const c_char,
    name: *const c_char,
    agent: AgentHandle,
    _convention: i32,
    symbol: *mut SymbolHandle,
) -> Status {
    // SAFETY: the caller's promise: null or a C string.
    if !module.is_null() && unsafe { *module } != 0 {
        return Status::INVALID_SYMBOL_NAME;
    }
    // SAFETY: the caller's promise.
    unsafe { hsa_executable_get_symbol_by_name(executable, name, &agent, symbol) }
}

/// See `hsa.h`.
///
/// # Safety
/// `value` has room for the attribute.
pub unsafe fn hsa_executable_symbol_get_info(
    symbol: SymbolHandle,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    status(with(|state| {
        let symbol = state.executables.symbol(symbol)?;
        let name = symbol.defined.name.as_bytes();
        let kernel = symbol.kernel;
        let is_kernel = symbol.defined.kind == SymbolKind::Kernel;
        let of = |kind: bool| {
            if kind {
                Ok(())
            } else {
                Err(Status::INVALID_ARGUMENT)
            }
        };
        // SAFETY: the caller's promise: room for the attribute's type, which each line below has from the header.
        unsafe {
            match attribute {
                HSA_EXECUTABLE_SYMBOL_INFO_TYPE => put(
                    value.cast(),
                    if is_kernel {
                        HSA_SYMBOL_KIND_KERNEL
                    } else {
                        HSA_SYMBOL_KIND_VARIABLE
                    },
                ),
                HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH => put(value.cast(), name.len() as u32),
                HSA_EXECUTABLE_SYMBOL_INFO_NAME => put_bytes(value.cast(), name),
                HSA_EXECUTABLE_SYMBOL_INFO_MODULE_NAME_LENGTH => put(value.cast(), 0u32),
                HSA_EXECUTABLE_SYMBOL_INFO_MODULE_NAME => put_bytes(value.cast(), b""),
                HSA_EXECUTABLE_SYMBOL_INFO_LINKAGE => put(
                    value.cast(),
                    if symbol.defined.weak {
                        HSA_SYMBOL_LINKAGE_MODULE
                    } else {
                        HSA_SYMBOL_LINKAGE_PROGRAM
                    },
                ),
                HSA_EXECUTABLE_SYMBOL_INFO_IS_DEFINITION => put(value.cast(), true),
                HSA_EXECUTABLE_SYMBOL_INFO_AGENT => put(value.cast(), agent::handle(symbol.agent)),
                HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS => {
                    of(!is_kernel)?;
                    put(value.cast(), symbol.address)
                }
                HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ALLOCATION => {
                    of(!is_kernel)?;
                    // As ROCr has it, though the variable is the agent's.
                    put(value.cast(), HSA_VARIABLE_ALLOCATION_PROGRAM)
                }
                HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SEGMENT => {
                    of(!is_kernel)?;
                    put(value.cast(), HSA_VARIABLE_SEGMENT_GLOBAL)
                }
                HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ALIGNMENT => {
                    of(!is_kernel)?;
                    put(value.cast(), 0u32)
                }
                HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE => {
                    of(!is_kernel)?;
                    put(value.cast(), symbol.defined.size as u32)
                }
                HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_IS_CONST => match symbol.defined.kind {
                    // ROCr 7.2.4 has it the wrong way round, and programs live with that.
                    SymbolKind::Variable { writable } => put(value.cast(), writable),
                    SymbolKind::Kernel => Err(Status::INVALID_ARGUMENT),
                },
                HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT => {
                    of(is_kernel)?;
                    put(value.cast(), symbol.address)
                }
                HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE => {
                    of(is_kernel)?;
                    put(value.cast(), kernel.arguments)
                }
                HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT => {
                    of(is_kernel)?;
                    put(value.cast(), ARGUMENT_ALIGNMENT)
                }
                HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE => {
                    of(is_kernel)?;
                    put(value.cast(), kernel.group)
                }
                HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE => {
                    of(is_kernel)?;
                    put(value.cast(), kernel.private)
                }
                HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK => {
                    of(is_kernel)?;
                    put(value.cast(), kernel.dynamic_stack)
                }
                HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_CALL_CONVENTION => {
                    of(is_kernel)?;
                    put(value.cast(), 0u32)
                }
                _ => Err(Status::INVALID_ARGUMENT),
            }
        }
    }))
}

/// See `hsa.h`.
///
/// # Safety
/// As `hsa.h` says.
pub unsafe fn hsa_executable_iterate_symbols(
    executable: ExecutableHandle,
    callback: SymbolCallback,
    data: *mut c_void,
) -> Status {
    let symbols = match with(|state| Ok(state.executables.get(executable)?.symbols.clone())) {
        Ok(symbols) => symbols,
        Err(status) => return status,
    };
    for symbol in symbols {
        // SAFETY: the caller's promise.
        let status = unsafe { callback(executable, symbol, data) };
        if status != Status::SUCCESS {
            return status;
        }
    }
    Status::SUCCESS
}

/// See `hsa.h`.
///
/// # Safety
/// As `hsa.h` says.
pub unsafe fn hsa_executable_iterate_agent_symbols(
    executable: ExecutableHandle,
    agent: AgentHandle,
    callback: AgentSymbolCallback,
    data: *mut c_void,
) -> Status {
    let symbols = with(|state| {
        let number = state.agents.number(agent)?;
        let executables = &mut state.executables;
        let handles = executables.get(executable)?.symbols.clone();
        let of_agent = |handle: &SymbolHandle| {
            let symbol = executables.symbols.get(handle);
            symbol.is_some_and(|symbol| symbol.agent == number && symbol.executable == executable)
        };
        Ok(handles.into_iter().filter(of_agent).collect::<Vec<_>>())
    });
    let symbols = match symbols {
        Ok(symbols) => symbols,
        Err(status) => return status,
    };
    for symbol in symbols {
        // SAFETY: the caller's promise.
        let status = unsafe { callback(executable, agent, symbol, data) };
        if status != Status::SUCCESS {
            return status;
        }
    }
    Status::SUCCESS
}

/// See `hsa.h`. Agent code objects define no program symbols.
///
/// # Safety
/// Always sound.
pub unsafe fn hsa_executable_iterate_program_symbols(
    executable: ExecutableHandle,
    _: SymbolCallback,
    _: *mut c_void,
) -> Status {
    status(with(|state| state.executables.get(executable).map(|_| ())))
}

/// For the fault plan: loads a code object on the first GPU agent. What cannot be loaded is said.
pub fn load_file(path: &str) {
    let loaded = (|| {
        let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
        let mut executable = ExecutableHandle::default();
        let mut reader = ReaderHandle::default();
        let agent = agent::handle(1);
        let storage = Storage::File {
            path: path.into(),
            offset: 0,
            bytes,
        };
        // SAFETY: plain calls with places to write to.
        let status = unsafe {
            let mut status = add_reader(storage, &mut reader);
            if status == Status::SUCCESS {
                status = hsa_executable_create_alt(0, 0, std::ptr::null(), &mut executable);
            }
            if status == Status::SUCCESS {
                status = hsa_executable_load_agent_code_object(
                    executable,
                    agent,
                    reader,
                    std::ptr::null(),
                    std::ptr::null_mut(),
                );
            }
            if status == Status::SUCCESS {
                status = hsa_executable_freeze(executable, std::ptr::null());
            }
            hsa_code_object_reader_destroy(reader);
            status
        };
        if status == Status::SUCCESS {
            Ok(())
        } else {
            Err(format!("status {:#x}", status.0))
        }
    })();
    if let Err(error) = loaded {
        eprintln!("hsa-sim: the fault plan cannot load {path}: {error}");
    }
}

/// For the fault plan: destroys the n-th executable, counted from 1, in the order of their making.
pub fn unload_nth(n: usize) {
    let unloaded = with(|state| {
        let handle = n
            .checked_sub(1)
            .and_then(|n| state.executables.handles().get(n).copied())
            .ok_or(Status::INVALID_EXECUTABLE)?;
        destroy(state, handle)
    });
    if unloaded.is_err() {
        eprintln!("hsa-sim: the fault plan cannot unload executable {n}: there is none");
    }
}
