//! The requests that one instance of devprof sends to the instance that leads ([`super::leader`]).

use crate::gpu::runtime::ExecutableId;

/// The answer of an instance that does not know a request or cannot handle it.
pub const REFUSED: u64 = u64::MAX;

/// Defines the requests and [`VERSION`]. The version is a hash of devprof's version and of this definition, so instances with
/// different requests have different versions. Instances of the same version pass requests by address, so the layout must not
/// depend on the compiler: all types have `repr`.
macro_rules! requests {
    ($(#[$all:meta])* { $($(#[$doc:meta])* $kind:literal $name:ident($($field:ident: $type:tt),*);)* }) => {
        $(#[$all])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub enum Request {
            $($(#[$doc])* $name { $($field: $type),* } = $kind,)*
        }

        /// The requests have the kinds from 0 to this, exclusively.
        pub const KINDS: u32 = [$($kind),*].len() as u32;

        /// The version of the requests.
        pub const VERSION: u32 = fingerprint(concat!(
            env!("CARGO_PKG_VERSION"),
            "by address",
            $(stringify!($kind $name($($field: $type),*);),)*
        ));
    };
}

requests! {
    /// A request. Queues are passed by address.
    {
        /// Drain all executables, after the kernels that still run. The answer is 0, or 1 if something was lost.
        0 Collect();
        /// Reset all counters. The same answer.
        1 Reset();
        /// An executable was frozen, and its destruction will be reported. `generation`: the answer to
        /// [`Request::Freezing`].
        2 Frozen(executable: ExecutableId, generation: u64);
        /// An executable is about to be destroyed. The answer is the generation for [`Request::Destroyed`].
        3 Destroying(executable: ExecutableId);
        /// The call is over; `is_success`: the executable was destroyed.
        4 Destroyed(executable: ExecutableId, generation: u64, is_success: bool);
        /// HSA is about to be shut down.
        5 ShuttingDown();
        /// The call is over.
        6 ShutDown();
        /// ROCr has loaded an instance as its tool: HSA is initialized, and executables, queues, [`Request::ShuttingDown`]
        /// and [`Request::ToolUnloaded`] will be reported in time.
        7 ToolLoaded();
        /// ROCr has unloaded its tool: HSA is shut down.
        8 ToolUnloaded();
        /// A queue was created. `callback`: the address of the function for its errors, or 0.
        9 QueueCreated(queue: u64, callback: u64, is_single_producer: bool);
        /// A queue is about to be destroyed or inactivated.
        10 QueueDestroying(queue: u64);
        /// HSA is about to be initialized.
        11 Initializing();
        /// The call is over.
        12 Initialized();
        /// Register an exit handler, which drains before the handlers that are already registered.
        13 RegisterExit();
        /// A library is being closed: the drain does not wait for HIP.
        14 Closing();
        /// The answer is 1 if an instance is ROCr's tool, so that interposed functions have nothing to report.
        15 IsObserved();
        /// Start or stop the recording of the trace. The answer is 0. This and the next request go to the instance that records
        /// the trace ([`super::leader::request_to_trace`]).
        16 SetRecording(on: bool);
        /// Wait until everything that was submitted is in the trace. The answer is 0, or 1 if something is missing.
        17 FlushTrace();
        /// The answer is 1 if this thread copies memory for devprof.
        18 IsOwnCopy();
        /// The CUDA driver is being initialized. Refused by an instance without CUDA.
        19 CudaInitializing();
        /// Instrumented code of CUDA was loaded. The driver may hold its locks.
        20 CodeLoaded();
        /// The program uses CUDA, and the driver has not loaded devprof; `is_other`: but another tool. The instance that leads
        /// has wrapped functions of the driver.
        21 CudaUsed(is_other: bool);
        /// An executable is about to be frozen. The answer is the generation for [`Request::Frozen`]: if the call of one
        /// instance calls the function of another one, both report it.
        22 Freezing(executable: ExecutableId);
        /// The CUDA driver is being initialized, or was.
        23 CudaStarting();
        /// The answer is 1 if a GPU runtime is initialized, or may be. Handled without a lock.
        24 MayBeUp();
        /// The program is about to be replaced (`execve`). Saves the counters. Handled without a lock on the calling thread.
        25 BeforeExec();
        /// An exit handler runs: drain all executables, after the kernels that still run, unless nothing can have counted since
        /// the last such request. The answer is as for [`Request::Collect`].
        26 Exiting();
        /// The answer is how long the process's end may still wait for the GPU, in nanoseconds.
        27 TimeLeft();
        /// The current test ends, and the one whose name is at this address begins. The answer is as for [`Request::Collect`].
        28 Test(name: u64, size: u64);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_depends_on_the_definition() {
        assert_ne!(
            fingerprint("16 SetRecording(on: bool);"),
            fingerprint("16 SetRecording(on: u64);")
        );
        assert_eq!(fingerprint("a"), 0xe40c_292c);
    }
}
