//! Several copies of devprof in one process: the archive in the program and in some of its libraries, the shared
//! library next to them. The first one leads; the others hand their requests to it. FFI between the copies, which find
//! one another by a note in the file that holds each, so that it does not matter which symbols are visible.

use crate::host;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

/// What a copy shows to the others. The same in all versions of devprof: `version`. In copies of one version: the rest.
#[repr(C)]
pub struct Instance {
    version: u32,
    /// Not 0: it leads.
    leads: AtomicU32,
    /// Takes a packed [`Request`].
    handle: extern "C" fn(u32, u64, u64, u32) -> u64,
}

/// The answer to a request that a copy does not know, or that was given to a copy that cannot handle it.
pub const REFUSED: u64 = u64::MAX;

/// Defines the requests, how they are packed, and [`VERSION`], which is made of the definition: copies that would not
/// understand one another have different ones.
macro_rules! requests {
    ($(#[$all:meta])* { $($(#[$doc:meta])* $kind:literal $name:ident($($field:ident: $type:tt),*);)* }) => {
        $(#[$all])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Request {
            $($(#[$doc])* $name { $($field: $type),* },)*
        }

        impl Request {
            /// Its kind and its fields.
            fn pack(self) -> (u32, Fields) {
                let mut fields = Fields::default();
                let kind = match self {
                    $(Request::$name { $($field),* } => {
                        $($field.put(&mut fields);)*
                        $kind
                    })*
                };
                fields.used = 0;
                (kind, fields)
            }

            fn unpack(kind: u32, mut fields: Fields) -> Option<Request> {
                Some(match kind {
                    $($kind => Request::$name { $($field: <$type>::take(&mut fields)?),* },)*
                    _ => return None,
                })
            }
        }

        const VERSION: u32 = fingerprint(concat!(
            env!("CARGO_PKG_VERSION"),
            $(stringify!($kind $name($($field: $type),*);),)*
        ));
    };
}

/// A request's fields on their way from one copy to another: up to two numbers, and a flag.
#[derive(Clone, Copy, Default)]
struct Fields {
    numbers: [u64; 2],
    /// Numbers that were put or taken.
    used: usize,
    flag: u32,
}

trait Field: Sized {
    fn put(self, fields: &mut Fields);
    fn take(fields: &mut Fields) -> Option<Self>;
}

impl Field for u64 {
    fn put(self, fields: &mut Fields) {
        fields.numbers[fields.used] = self;
        fields.used += 1;
    }

    fn take(fields: &mut Fields) -> Option<u64> {
        let number = fields.numbers.get(fields.used).copied();
        fields.used += 1;
        number
    }
}

impl Field for bool {
    fn put(self, fields: &mut Fields) {
        fields.flag = self.into();
    }

    fn take(fields: &mut Fields) -> Option<bool> {
        Some(fields.flag != 0)
    }
}

requests! {
    /// What one copy asks of the one that leads. An executable is its handle, a queue its address.
    {
        /// Drain all, after the kernels that still run; `wait`: for those of HIP, too. 0, or 1 if something was lost.
        0 Collect(wait: bool);
        /// Set all counters back. The same answer.
        1 Reset();
        /// An executable was frozen, and its end will be reported.
        2 Frozen(executable: u64);
        /// An executable is about to be destroyed. The answer is the generation that [`Request::Destroyed`] wants.
        3 Destroying(executable: u64);
        /// The end of that, and whether the executable was destroyed.
        4 Destroyed(executable: u64, generation: u64, destroyed: bool);
        /// HSA is about to be shut down.
        5 ShutDown();
        /// ROCr has loaded a copy as a tool: HSA is up, [`Request::ShutDown`] and [`Request::Unloaded`] will come in
        /// time, and executables and queues will be reported.
        6 Observes();
        /// The shutdown is over.
        7 IsDown();
        /// A queue was created; `single`: for one producer.
        8 QueueCreated(queue: u64, single: bool);
        /// A queue is about to be destroyed or made inactive.
        9 QueueDestroying(queue: u64);
        /// HSA is about to be initialized.
        10 Starts();
        /// That is over.
        11 Started();
        /// HSA is down.
        12 Unloaded();
        /// When the process exits there is to be a last drain, before what is registered already.
        13 AtExit();
        /// A library is being closed. As [`Request::Collect`], without waiting.
        14 Closing();
        /// 1 if a copy is a tool of ROCr, so that interposed functions have nothing to report.
        15 IsObserved();
        /// 1 if this thread is creating or destroying a queue of devprof's own, which is not the program's.
        16 IsOwnQueue();
    }
}

/// 32-bit FNV-1a.
const fn fingerprint(text: &str) -> u32 {
    let (bytes, mut hash, mut n) = (text.as_bytes(), 0x811c_9dc5u32, 0);
    while n < bytes.len() {
        hash = (hash ^ bytes[n] as u32).wrapping_mul(0x0100_0193);
        n += 1;
    }
    hash
}

static INSTANCE: Instance = Instance {
    version: VERSION,
    leads: AtomicU32::new(0),
    handle,
};
/// Another copy, which leads.
static LEADER: AtomicPtr<Instance> = AtomicPtr::new(std::ptr::null_mut());
/// Another version leads: nothing can be handed to it.
static GAVE_WAY: AtomicBool = AtomicBool::new(false);

// A note of type 1 by the name of devprof, which holds the distance to the instance.
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

/// What became of the other copies.
pub enum Found {
    /// This copy leads.
    None,
    /// Another one does.
    Leader,
    /// One of another version does, to which nothing can be handed.
    OtherVersion,
}

/// Finds the copy that leads, or makes this one lead. Called once, by the constructor: the dynamic linker runs those
/// one after the other.
pub fn find_leader() -> Found {
    let mut found = Found::None;
    for other in host::notes(c"devprof", 1) {
        let other = other.cast::<Instance>();
        if std::ptr::eq(other, &INSTANCE) {
            continue;
        }
        // SAFETY: an instance of another copy: its note says so, and a file that is loaded holds it. Only the version is
        // read of one that may have other fields.
        let version = unsafe { (*other).version };
        if version != VERSION {
            found = Found::OtherVersion;
            continue;
        }
        // SAFETY: an instance of this version.
        let leads = unsafe { (*other).leads.load(Ordering::Acquire) };
        if leads != 0 {
            LEADER.store(other.cast_mut(), Ordering::Release);
            return Found::Leader;
        }
    }
    match found {
        Found::None => INSTANCE.leads.store(1, Ordering::Release),
        _ => GAVE_WAY.store(true, Ordering::Release),
    }
    found
}

/// This copy works for the process.
pub fn leads() -> bool {
    INSTANCE.leads.load(Ordering::Relaxed) != 0
}

/// Has a request handled by the copy that leads.
pub fn request(request: Request) -> u64 {
    let leader = LEADER.load(Ordering::Acquire);
    if !leader.is_null() {
        let (kind, Fields { numbers, flag, .. }) = request.pack();
        // SAFETY: a copy that leads stays in the process (see the constructor), and is of this version.
        return unsafe { ((*leader).handle)(kind, numbers[0], numbers[1], flag) };
    }
    if leads() {
        return crate::entry::handle(request);
    }
    match (request, GAVE_WAY.load(Ordering::Acquire)) {
        // Whoever called was promised an answer.
        (Request::Collect { .. } | Request::Reset {}, true) => REFUSED,
        _ => 0,
    }
}

extern "C" fn handle(kind: u32, first: u64, second: u64, flag: u32) -> u64 {
    let fields = Fields {
        numbers: [first, second],
        used: 0,
        flag,
    };
    match Request::unpack(kind, fields) {
        Some(request) => crate::entry::handle(request),
        None => REFUSED,
    }
}

/// What C functions return for a request that may lose something.
pub fn status(lost: u64) -> c_int {
    if lost == 0 { 0 } else { -1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_arrives_as_it_was_given() {
        let all = [
            Request::Collect { wait: true },
            Request::Collect { wait: false },
            Request::Reset {},
            Request::Frozen { executable: 7 },
            Request::Destroyed {
                executable: 9,
                generation: 10,
                destroyed: true,
            },
            Request::QueueCreated {
                queue: 4,
                single: true,
            },
            Request::IsOwnQueue {},
        ];
        for request in all {
            let (kind, fields) = request.pack();
            assert_eq!(Request::unpack(kind, fields), Some(request));
        }
        let is_known = |&kind: &u32| Request::unpack(kind, Fields::default()).is_some();
        assert_eq!((0..).take_while(is_known).count(), 17);
    }

    #[test]
    fn an_unknown_request_is_refused() {
        assert_eq!(handle(17, 0, 0, 0), REFUSED);
        assert_eq!(status(REFUSED), -1);
    }

    #[test]
    fn the_version_is_that_of_the_definition() {
        assert_ne!(
            fingerprint("0 Collect(wait: bool);"),
            fingerprint("0 Collect(wait: u64);")
        );
        assert_eq!(fingerprint("a"), 0xe40c_292c);
    }

    #[test]
    fn a_copy_finds_its_own_note() {
        let notes = host::notes(c"devprof", 1);
        assert!(
            notes
                .iter()
                .any(|&note| std::ptr::eq(note.cast(), &INSTANCE))
        );
    }
}
