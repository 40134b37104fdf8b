//! Several instances of devprof in one process: the archive in the program and in some of its libraries, and the shared
//! library. The first instance leads; the others send it their requests. The instances find each other by an ELF note in the
//! file of each, so symbol visibility does not matter. FFI between the instances.

use super::handler;
use super::request::{KINDS, REFUSED, Request, VERSION};
use crate::sys::loader;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

/// The state that other instances read. `version` is at the same offset in all versions of devprof. The other fields are valid
/// only if the version is the same.
#[repr(C)]
pub struct Instance {
    version: u32,
    /// Not 0: this instance leads.
    leads: AtomicU32,
    /// Not 0: a trace was requested, and this instance records it.
    traces: AtomicU32,
    /// Takes a [`Request`].
    handle: unsafe extern "C" fn(*const Request) -> u64,
}

static INSTANCE: Instance = Instance {
    version: VERSION,
    leads: AtomicU32::new(0),
    traces: AtomicU32::new(0),
    handle,
};
/// The instance that leads, if it is another one.
static LEADER: AtomicPtr<Instance> = AtomicPtr::new(std::ptr::null_mut());
/// An instance of another version leads. It gets no requests.
static OTHER_VERSION_LEADS: AtomicBool = AtomicBool::new(false);

// A note of type 1 and the name devprof. Its description is the distance to the instance.
std::arch::global_asm!(
    ".pushsection .note.devprof,\"a\",@note",
    ".balign 4",
    ".long 8",
    ".long 8",
    ".long 1",
    ".asciz \"devprof\"",
    ".quad {instance} - .",
    ".popsection",
    instance = sym INSTANCE,
);

/// Which instance leads.
pub enum Leader {
    This,
    Other,
    /// An instance of another version. It gets no requests.
    OtherVersion,
}

/// Finds the instance that leads, or makes this one the leader. Called once, by the constructor: the dynamic linker runs
/// constructors one after the other.
pub fn find() -> Leader {
    let mut found = Leader::This;
    for other in loader::notes(c"devprof", 1) {
        let other = other.cast::<Instance>();
        if std::ptr::eq(other, &INSTANCE) {
            continue;
        }
        // SAFETY: the note points to an instance in a loaded file. Only its version is read: the rest may differ.
        let version = unsafe { (*other).version };
        if version != VERSION {
            found = Leader::OtherVersion;
            continue;
        }
        // SAFETY: an instance of this version.
        let leads = unsafe { (*other).leads.load(Ordering::Acquire) };
        if leads != 0 {
            LEADER.store(other.cast_mut(), Ordering::Release);
            return Leader::Other;
        }
    }
    match found {
        Leader::This => INSTANCE.leads.store(1, Ordering::Release),
        _ => OTHER_VERSION_LEADS.store(true, Ordering::Release),
    }
    found
}

/// Whether this instance leads.
pub fn leads() -> bool {
    INSTANCE.leads.load(Ordering::Relaxed) != 0
}

/// Sends a request to the instance that leads. Returns its answer.
#[inline(never)]
pub fn request(request: Request) -> u64 {
    let leader = LEADER.load(Ordering::Acquire);
    if !leader.is_null() {
        // SAFETY: the leader stays loaded (see `startup`), and has this version.
        return unsafe { ((*leader).handle)(&raw const request) };
    }
    if leads() {
        return handler::handle(request);
    }
    match (request, OTHER_VERSION_LEADS.load(Ordering::Acquire)) {
        // The caller needs an answer.
        (Request::Collect {} | Request::Reset {} | Request::Test { .. }, true) => REFUSED,
        _ => 0,
    }
}

/// This instance records the trace.
pub fn set_traces() {
    INSTANCE.traces.store(1, Ordering::Release);
}

/// Sends a request to the instance that records the trace, which need not lead. Without one, the answer is 0.
pub fn request_to_trace(request: Request) -> u64 {
    if INSTANCE.traces.load(Ordering::Relaxed) != 0 {
        return handler::handle(request);
    }
    for other in loader::notes(c"devprof", 1) {
        let other = other.cast::<Instance>();
        // SAFETY: the note points to an instance in a loaded file, which is of this version if its version is. ROCr's tool
        // stays loaded while the program runs, if it is preloaded, or else until HSA is shut down.
        unsafe {
            if (*other).version == VERSION && (*other).traces.load(Ordering::Acquire) != 0 {
                return ((*other).handle)(&raw const request);
            }
        }
    }
    // An instance of another version may have a trace.
    if OTHER_VERSION_LEADS.load(Ordering::Acquire) {
        REFUSED
    } else {
        0
    }
}

/// # Safety
/// `request` is a request of an instance of this version.
unsafe extern "C" fn handle(request: *const Request) -> u64 {
    // SAFETY: the caller's promise. A request begins with its kind (`repr(u32)`).
    unsafe {
        if *request.cast::<u32>() >= KINDS {
            return REFUSED;
        }
        handler::handle(*request)
    }
}

/// The return value of a C function, from the answer of a request: 0, or -1 if something was lost.
pub fn status(lost: u64) -> c_int {
    if lost == 0 { 0 } else { -1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_begins_with_its_kind_and_an_unknown_one_is_refused() {
        let last = Request::Test { name: 0, size: 0 };
        // SAFETY: a request begins with its kind.
        assert_eq!(unsafe { *(&raw const last).cast::<u32>() }, KINDS - 1);
        for kind in [KINDS, u32::MAX] {
            let request = [u64::from(kind), 0, 0, 0];
            // SAFETY: only the kind is read.
            let answer = unsafe { handle(request.as_ptr().cast()) };
            assert_eq!(answer, REFUSED);
        }
        assert_eq!(status(REFUSED), -1);
    }

    #[test]
    fn an_instance_finds_its_own_note() {
        let notes = loader::notes(c"devprof", 1);
        assert!(
            notes
                .iter()
                .any(|&note| std::ptr::eq(note.cast(), &INSTANCE))
        );
    }
}
