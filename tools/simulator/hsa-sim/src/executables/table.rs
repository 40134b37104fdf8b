//! All executables, loaded code objects, symbols and code object readers.

use super::code_object::Defined;
use super::kernel::Kernel;
use super::storage::Storage;
use crate::sync::die;
use hsa_abi::*;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// The lock of ROCr's loader. As in ROCr, it is held during an iteration over all executables, so that none is created, frozen or
/// destroyed, and a callback that calls a function which takes it waits for ever.
pub static LOADER: Mutex<()> = Mutex::new(());

/// A code object that is loaded on an agent.
pub struct Loaded {
    pub handle: LoadedCodeObjectHandle,
    pub executable: ExecutableHandle,
    pub agent: usize,
    pub storage: Arc<Storage>,
    /// Its addresses in the agent's memory.
    pub range: Range<u64>,
    /// The host's copy of the image at load time: the loader extension returns its addresses. Kernels do not write to
    /// it.
    pub shadow: Vec<u8>,
    /// The load address minus the address in the file.
    pub delta: i64,
    pub uri: String,
}

pub struct ExecutableState {
    pub frozen: bool,
    pub profile: u32,
    pub rounding: u32,
    /// Addresses of variables that the program has defined, by agent (`None`: for all agents) and name.
    pub defined: HashMap<(Option<usize>, String), u64>,
    pub loaded: Vec<Loaded>,
    pub symbols: Vec<SymbolHandle>,
}

pub struct SymbolState {
    pub executable: ExecutableHandle,
    pub agent: usize,
    pub defined: Defined,
    pub address: u64,
    pub kernel: Kernel,
}

/// All executables, symbols and readers.
#[derive(Default)]
pub struct Executables {
    pub all: BTreeMap<ExecutableHandle, ExecutableState>,
    pub symbols: HashMap<SymbolHandle, SymbolState>,
    /// The executable of each loaded code object.
    pub owners: HashMap<LoadedCodeObjectHandle, ExecutableHandle>,
    pub readers: HashMap<ReaderHandle, Arc<Storage>>,
}

impl Executables {
    /// The number of executables that are not destroyed.
    pub fn live(&self) -> u64 {
        self.all.len() as u64
    }

    /// The number of readers that are not destroyed.
    pub fn live_readers(&self) -> u64 {
        self.readers.len() as u64
    }

    /// The executables in the order of creation.
    pub fn handles(&self) -> Vec<ExecutableHandle> {
        self.all.keys().copied().collect()
    }

    /// All loaded code objects, in the order of executables and of loading.
    pub fn loaded(&self) -> impl Iterator<Item = &Loaded> {
        self.all.values().flat_map(|executable| &executable.loaded)
    }

    /// A loaded code object.
    pub fn code_object(&self, handle: LoadedCodeObjectHandle) -> Result<&Loaded, Status> {
        let owner = self.owners.get(&handle);
        owner
            .and_then(|owner| self.all.get(owner))
            .and_then(|executable| executable.loaded.iter().find(|l| l.handle == handle))
            .ok_or_else(|| missing(handle.0, Status::INVALID_CODE_OBJECT))
    }

    pub fn get(&mut self, handle: ExecutableHandle) -> Result<&mut ExecutableState, Status> {
        let found = self.all.get_mut(&handle);
        found.ok_or_else(|| missing(handle.0, Status::INVALID_EXECUTABLE))
    }

    /// An executable that is not frozen.
    pub fn unfrozen(&mut self, handle: ExecutableHandle) -> Result<&mut ExecutableState, Status> {
        let executable = self.get(handle)?;
        if executable.frozen {
            return Err(Status::FROZEN_EXECUTABLE);
        }
        Ok(executable)
    }

    pub fn symbol(&self, handle: SymbolHandle) -> Result<&SymbolState, Status> {
        let found = self.symbols.get(&handle);
        found.ok_or_else(|| missing(handle.0, Status::INVALID_EXECUTABLE_SYMBOL))
    }
}

const FIRST_HANDLE: u64 = 0x5151_0000_0000;
static NEXT_HANDLE: AtomicU64 = AtomicU64::new(FIRST_HANDLE);

/// A new number for a handle, unique in the process.
pub fn new_handle() -> u64 {
    NEXT_HANDLE.fetch_add(16, Relaxed)
}

/// The error for a handle of no object. If its object was destroyed, the process ends: in ROCr, the handle is an address in memory
/// that was freed.
fn missing(handle: u64, error: Status) -> Status {
    if (FIRST_HANDLE..NEXT_HANDLE.load(Relaxed)).contains(&handle) {
        die(&format!(
            "the program uses {handle:#x}, which was destroyed"
        ));
    }
    error
}
