//! devprof as a tool of ROCr: what `HSA_TOOLS_LIB` loads at the end of `hsa_init`. Mirrors `hsa/hsa_api_trace.h`.

use super::api::there;
use super::queue_functions::{
    self, ENGINE_COMPUTE, Function, Hooks, QueueCreateDesc, Saved, Slots,
};
use super::types::*;
use crate::host;
use std::ffi::{OsStr, OsString, c_char, c_void};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::atomic::{AtomicPtr, Ordering};

use hsa_abi::function::{
    hsa_executable_destroy as ExecutableDestroy, hsa_executable_freeze as ExecutableFreeze,
    hsa_shut_down as ShutDown,
};
pub use hsa_abi::function::{hsa_queue_create as QueueCreate, hsa_queue_destroy as QueueEnd};
pub use hsa_abi::{
    API_TABLE_MAJOR_VERSION, AmdExtPrefix as AmdExtTable, ApiPrefix as ApiTable,
    CoreApiPrefix as CoreTable, PacketWriter, TableVersion as Version,
};

/// The version of `CoreApiTable` whose beginning is known here.
pub const CORE_API_TABLE_MAJOR_VERSION: u32 = hsa_abi::CoreApiTable::MAJOR;
/// The version of `AmdExtTable` whose beginning is known here.
pub const AMD_EXT_API_TABLE_MAJOR_VERSION: u32 = hsa_abi::AmdExtTable::MAJOR;

/// ROCr's tables, if they are of the versions that are known here.
///
/// # Safety
/// `table` is null or ROCr's, as `OnLoad` gets it, and nobody else uses it while the tables are borrowed.
pub unsafe fn tables<'a>(table: *mut ApiTable) -> Option<(&'a mut CoreTable, &'a mut AmdExtTable)> {
    // SAFETY: the caller's promise; the versions say that the fields are there.
    unsafe {
        let table = table.as_ref()?;
        if table.version.major != API_TABLE_MAJOR_VERSION
            || (table.version.minor as usize) < size_of::<ApiTable>()
        {
            return None;
        }
        let (core, amd) = (table.core.as_mut()?, table.amd_ext.as_mut()?);
        let known = core.version.major == CORE_API_TABLE_MAJOR_VERSION
            && core.version.minor as usize >= size_of::<CoreTable>()
            && amd.version.major == AMD_EXT_API_TABLE_MAJOR_VERSION
            && amd.version.minor as usize >= size_of::<AmdExtTable>();
        known.then_some((core, amd))
    }
}

/// What a tool is told. A function that comes before a change is done when that happens.
#[derive(Clone, Copy)]
pub struct Ears {
    /// After an executable was frozen.
    pub frozen: fn(ExecutableHandle),
    /// Before an executable is destroyed. What it returns goes to `gone`.
    pub going: fn(ExecutableHandle) -> u64,
    /// After that, and whether it was.
    pub gone: fn(ExecutableHandle, u64, bool),
    /// After a queue was made: its address, and whether it has a single producer.
    pub queue_made: fn(usize, bool),
    /// Before a queue is destroyed or made inactive.
    pub queue_gone: fn(usize),
    /// Before each `hsa_shut_down`: when ROCr calls `OnUnload`, its functions are out of use already.
    pub shut_down: fn(),
    /// After that.
    pub is_down: fn(),
}

/// What the table had: ROCr's own functions, or those of a tool before us.
struct Heard {
    ears: Ears,
    freeze: ExecutableFreeze,
    destroy: ExecutableDestroy,
    queue_create: QueueCreate,
    queue_destroy: QueueEnd,
    queue_inactivate: QueueEnd,
    shut_down: ShutDown,
    slots: Slots,
    queue_functions: Saved,
}

/// Never freed: threads may be in a hook while HSA is shut down and initialised again.
static HEARD: AtomicPtr<Heard> = AtomicPtr::new(std::ptr::null_mut());

fn heard() -> Option<&'static Heard> {
    // SAFETY: null, or a box that was leaked.
    unsafe { HEARD.load(Ordering::Acquire).as_ref() }
}

/// False when the tables are not of the versions that are known here; then nothing is changed.
///
/// # Safety
/// `table` is null or ROCr's, as `OnLoad` gets it.
pub unsafe fn listen(table: *mut ApiTable, ears: Ears) -> bool {
    // SAFETY: the caller's promise.
    let Some((core, amd)) = (unsafe { tables(table) }) else {
        return false;
    };
    // A table that was changed already, by an earlier OnLoad, leads back here.
    if core.hsa_shut_down as usize != shut_down as *const () as usize {
        // SAFETY: ROCr's table; its own functions are those that HSA's names lead to.
        let slots = unsafe {
            let rocr = there().map_or(std::ptr::null(), |api| api.hsa_agent_get_info as Function);
            queue_functions::find(amd, rocr)
        };
        // SAFETY: ROCr's table, with the slots that were found in it.
        let queue_functions = unsafe { slots.saved(amd) };
        let heard = Heard {
            ears,
            freeze: core.hsa_executable_freeze,
            destroy: core.hsa_executable_destroy,
            queue_create: core.hsa_queue_create,
            queue_destroy: core.hsa_queue_destroy,
            queue_inactivate: core.hsa_queue_inactivate,
            shut_down: core.hsa_shut_down,
            slots,
            queue_functions,
        };
        HEARD.store(Box::into_raw(Box::new(heard)), Ordering::Release);
        core.hsa_executable_freeze = executable_freeze;
        core.hsa_executable_destroy = executable_destroy;
        core.hsa_queue_create = queue_create;
        core.hsa_queue_destroy = queue_destroy;
        core.hsa_queue_inactivate = queue_inactivate;
        core.hsa_shut_down = shut_down;
        let hooks = Hooks {
            create: amd_queue_create_hook,
            acquire: counted_queue_acquire_hook,
            release: counted_queue_release_hook,
        };
        // SAFETY: as above.
        unsafe { slots.replace(amd, hooks) };
    }
    true
}

/// Where the table of this ROCr has the functions of [`queue_functions`].
pub fn slots() -> Slots {
    heard().map_or(Slots::default(), |heard| heard.slots)
}

/// Whether queues are made by the library that has `function`, ROCr's, and by no tool before us.
pub fn makes_queues_in_the_library_of(function: *const c_void) -> bool {
    heard().is_none_or(|heard| host::are_of_one_file(heard.queue_create as *const c_void, function))
}

unsafe extern "C" fn shut_down() -> Status {
    let Some(heard) = heard() else {
        return Status::ERROR;
    };
    (heard.ears.shut_down)();
    // SAFETY: what the table had for it.
    let status = unsafe { (heard.shut_down)() };
    (heard.ears.is_down)();
    status
}

unsafe extern "C" fn executable_freeze(
    executable: ExecutableHandle,
    options: *const c_char,
) -> Status {
    let Some(heard) = heard() else {
        return Status::ERROR;
    };
    // SAFETY: the program's arguments, to what the table had.
    let status = unsafe { (heard.freeze)(executable, options) };
    if status == Status::SUCCESS {
        (heard.ears.frozen)(executable);
    }
    status
}

unsafe extern "C" fn executable_destroy(executable: ExecutableHandle) -> Status {
    let Some(heard) = heard() else {
        return Status::ERROR;
    };
    let token = (heard.ears.going)(executable);
    // SAFETY: the program's argument, to what the table had.
    let status = unsafe { (heard.destroy)(executable) };
    (heard.ears.gone)(executable, token, status == Status::SUCCESS);
    status
}

unsafe extern "C" fn queue_create(
    agent: AgentHandle,
    size: u32,
    kind: u32,
    callback: Option<QueueErrorCallback>,
    data: *mut c_void,
    private: u32,
    group: u32,
    queue: *mut *mut QueueHead,
) -> Status {
    let Some(heard) = heard() else {
        return Status::ERROR;
    };
    // SAFETY: the program's arguments, to what the table had.
    let status =
        unsafe { (heard.queue_create)(agent, size, kind, callback, data, private, group, queue) };
    if status == Status::SUCCESS {
        // SAFETY: the call succeeded, so it has written the queue's address.
        let queue = unsafe { *queue };
        (heard.ears.queue_made)(queue as usize, kind == QUEUE_TYPE_SINGLE);
    }
    status
}

/// `hsa_amd_queue_create`.
unsafe extern "C" fn amd_queue_create_hook(
    agent: AgentHandle,
    descs: *mut QueueCreateDesc,
    count: u32,
) -> Status {
    let Some((heard, create)) = heard().and_then(|h| Some((h, h.queue_functions.create?))) else {
        return Status::ERROR;
    };
    // SAFETY: the program's arguments, to what the table had.
    let status = unsafe { create(agent, descs, count) };
    if descs.is_null() {
        return status;
    }
    for n in 0..count as usize {
        // SAFETY: the call has looked at as many descriptors, and has set the queue of each, also where it failed.
        let desc = unsafe { &*descs.add(n) };
        if !desc.queue.is_null() && desc.engine == ENGINE_COMPUTE {
            (heard.ears.queue_made)(desc.queue as usize, desc.kind == QUEUE_TYPE_SINGLE);
        }
    }
    status
}

/// `hsa_amd_counted_queue_acquire`.
unsafe extern "C" fn counted_queue_acquire_hook(
    agent: AgentHandle,
    kind: u32,
    priority: u32,
    callback: Option<QueueErrorCallback>,
    data: *mut c_void,
    flags: u64,
    queue: *mut *mut QueueHead,
) -> Status {
    let Some((heard, acquire)) = heard().and_then(|h| Some((h, h.queue_functions.acquire?))) else {
        return Status::ERROR;
    };
    // SAFETY: the program's arguments, to what the table had.
    let status = unsafe { acquire(agent, kind, priority, callback, data, flags, queue) };
    if status == Status::SUCCESS {
        // SAFETY: the call succeeded, so it has written the queue's address.
        let queue = unsafe { *queue };
        // Its ring is shared with others.
        (heard.ears.queue_made)(queue as usize, false);
    }
    status
}

/// `hsa_amd_counted_queue_release`.
unsafe extern "C" fn counted_queue_release_hook(queue: *mut QueueHead) -> Status {
    let Some((heard, release)) = heard().and_then(|h| Some((h, h.queue_functions.release?))) else {
        return Status::ERROR;
    };
    (heard.ears.queue_gone)(queue as usize);
    // SAFETY: the program's argument, to what the table had.
    unsafe { release(queue) }
}

unsafe extern "C" fn queue_destroy(queue: *mut QueueHead) -> Status {
    let Some(heard) = heard() else {
        return Status::ERROR;
    };
    (heard.ears.queue_gone)(queue as usize);
    // SAFETY: the program's argument, to what the table had.
    unsafe { (heard.queue_destroy)(queue) }
}

unsafe extern "C" fn queue_inactivate(queue: *mut QueueHead) -> Status {
    let Some(heard) = heard() else {
        return Status::ERROR;
    };
    (heard.ears.queue_gone)(queue as usize);
    // SAFETY: the program's argument, to what the table had.
    unsafe { (heard.queue_inactivate)(queue) }
}

/// The value of HSA_TOOLS_LIB that adds `library` to the tools in `old`, or `None` when it is among them. ROCr splits
/// the value at spaces and takes what is in double quotes as one name.
pub fn with_tool(old: Option<&OsStr>, library: &OsStr) -> Option<OsString> {
    let name = library.as_bytes();
    let old = old.map(OsStr::as_bytes).unwrap_or_default();
    if !name.is_empty() && old.windows(name.len()).any(|window| window == name) {
        return None;
    }
    let mut value = old.to_vec();
    if !value.is_empty() {
        value.push(b' ');
    }
    if name.contains(&b' ') {
        value.extend([b"\"", name, b"\""].concat());
    } else {
        value.extend(name);
    }
    Some(OsString::from_vec(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_added_once_beside_others() {
        let with = |old: Option<&str>, name: &str| with_tool(old.map(OsStr::new), OsStr::new(name));
        assert_eq!(with(None, "/x/d.so"), Some("/x/d.so".into()));
        assert_eq!(with(Some("/a.so"), "/x/d.so"), Some("/a.so /x/d.so".into()));
        assert_eq!(with(Some("/x/d.so /a.so"), "/x/d.so"), None);
        assert_eq!(with(None, "/x y/d.so"), Some("\"/x y/d.so\"".into()));
    }
}
