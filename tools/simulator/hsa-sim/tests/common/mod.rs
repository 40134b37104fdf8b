//! A process with the simulator as its HSA runtime and with devprof, both loaded as in a program. devprof reads its settings
//! once per process, so each test file has one test.

#![allow(dead_code, reason = "each test file uses its own part")]

use hsa_abi::*;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CString, c_char, c_int, c_void};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// clang 22's code object of fixtures/counted.hip.
pub const RAW10: &[u8] = include_bytes!("../../../../../fixtures/counted.raw10.co");
/// clang 23's code object of fixtures/counted.hip.
pub const RAW11: &[u8] = include_bytes!("../../../../../fixtures/counted.raw11.co");

/// The fixture's counters after both kernels ran with 64 work-items: of `halved`, `branch` and `loop`.
pub const COUNTS: [[u64; 2]; 3] = [[16, 16], [64, 16], [64, 63]];

/// The path of a shared library that cargo has built for this test.
pub fn library(name: &str) -> PathBuf {
    let exe = std::env::current_exe().expect("the test has a path");
    let deps = exe.parent().expect("the test is in a directory");
    let file = deps.join(format!("lib{name}.so"));
    assert!(file.exists(), "{} is not built", file.display());
    file
}

macro_rules! functions {
    ($($hsa:ident)*; $($name:ident: fn($($arg:ty),*) -> $ret:ty,)*) => {
        /// The functions of the simulator that tests call.
        pub struct Hsa {
            library: Library,
            $(pub $hsa: hsa_abi::function::$hsa,)*
            $(pub $name: unsafe extern "C" fn($($arg),*) -> $ret,)*
        }

        impl Hsa {
            fn load(path: &Path) -> Hsa {
                // SAFETY: the simulator; the signatures match its exports.
                unsafe {
                    let library = Library::open(Some(path), RTLD_NOW | RTLD_LOCAL).expect("the simulator loads");
                    Hsa {
                        $($hsa: *library.get(concat!(stringify!($hsa), "\0").as_bytes()).expect(stringify!($hsa)),)*
                        $($name: *library.get(concat!(stringify!($name), "\0").as_bytes()).expect(stringify!($name)),)*
                        library,
                    }
                }
            }
        }
    };
}

functions! {
    hsa_init
    hsa_shut_down
    hsa_iterate_agents
    hsa_agent_get_info
    hsa_amd_agent_iterate_memory_pools
    hsa_amd_memory_pool_get_info
    hsa_amd_memory_pool_allocate
    hsa_amd_memory_pool_free
    hsa_amd_agents_allow_access
    hsa_amd_agent_memory_pool_get_info
    hsa_region_get_info
    hsa_amd_pointer_info
    hsa_amd_memory_fill
    hsa_memory_copy
    hsa_amd_memory_async_copy
    hsa_code_object_reader_create_from_memory
    hsa_code_object_reader_destroy
    hsa_executable_create_alt
    hsa_executable_load_agent_code_object
    hsa_executable_freeze
    hsa_executable_destroy
    hsa_executable_get_symbol_by_name
    hsa_executable_symbol_get_info
    hsa_queue_create
    hsa_queue_destroy
    hsa_amd_queue_intercept_create
    hsa_amd_queue_intercept_register
    hsa_amd_queue_create
    hsa_amd_counted_queue_acquire
    hsa_amd_counted_queue_release
    hsa_amd_queue_set_priority
    hsa_amd_queue_cu_set_mask
    hsa_amd_queue_cu_get_mask
    hsa_queue_load_write_index_relaxed
    hsa_queue_add_write_index_relaxed
    hsa_signal_create
    hsa_signal_destroy
    hsa_signal_load_scacquire
    hsa_signal_store_screlease
    hsa_signal_wait_scacquire
    hsa_signal_wait_relaxed
    hsa_amd_signal_create
    hsa_amd_profiling_set_profiler_enabled
    hsa_amd_profiling_get_dispatch_time
    hsa_system_get_info
    hsa_system_get_major_extension_table;
    hsa_sim_plan: fn(*const c_char) -> c_int,
    hsa_sim_calls: fn(*const c_char) -> u64,
    hsa_sim_live: fn(u32) -> u64,
    hsa_sim_on_load_calls: fn() -> u64,
}

/// Asserts success.
#[track_caller]
pub fn ok(status: Status) {
    assert_eq!(status, Status::SUCCESS, "{status:?}");
}

/// The attribute that `get` writes.
#[track_caller]
pub fn attribute<T: Default>(get: impl FnOnce(*mut c_void) -> Status) -> T {
    let mut value = T::default();
    ok(get((&raw mut value).cast()));
    value
}

/// How many profiles have the counts of a fixture whose kernels have run `runs` times.
pub fn fixtures(profiles: &[(String, Profile)], runs: u64) -> usize {
    let fixtures = profiles.iter().filter(|(_, p)| p.is_fixture(runs));
    fixtures.count()
}

unsafe extern "C" fn push<H>(handle: H, data: *mut c_void) -> Status {
    // SAFETY: every caller passes a vector.
    unsafe { (*data.cast::<Vec<H>>()).push(handle) };
    Status::SUCCESS
}

/// A function of devprof.
type Call = unsafe extern "C" fn() -> c_int;

/// A process with both libraries.
pub struct Session {
    pub hsa: Hsa,
    devprof: Library,
    collect: Call,
    reset: Call,
    /// The directory of the profiles.
    pub out: PathBuf,
    pub cpu: AgentHandle,
    pub gpus: Vec<AgentHandle>,
    kernargs: PoolHandle,
}

impl Session {
    /// Loads both libraries with these environment variables.
    pub fn start(test: &str, environment: &[(&str, &str)]) -> Session {
        Session::start_in(Path::new(env!("CARGO_TARGET_TMPDIR")), test, environment)
    }

    /// Like [`Session::start`], with the profiles in `parent`.
    pub fn start_in(parent: &Path, test: &str, environment: &[(&str, &str)]) -> Session {
        let dir = parent.join(test);
        let _ = std::fs::remove_dir_all(&dir);
        let out = dir.join("out");
        std::fs::create_dir_all(&out).expect("a directory for the test");
        let mut variables = vec![
            ("HSA_SIM_WATCH", "segments".to_string()),
            ("LLVM_PROFILE_FILE", format!("{}/p.profraw", out.display())),
        ];
        variables.extend(
            environment
                .iter()
                .map(|&(name, value)| (name, value.to_string())),
        );
        for (name, value) in variables {
            // SAFETY: this is the only test of the process, and it has no other threads yet.
            unsafe { std::env::set_var(name, value) };
        }
        let hsa = Hsa::load(&library("hsa_sim"));
        // SAFETY: as specified by HSA.
        ok(unsafe { (hsa.hsa_init)() });
        let (devprof, collect, reset) = Session::load_devprof();
        // After a restart, devprof is a tool. A library that is loaded later than the program does not set the variables.
        let library = library("devprof");
        for (name, value) in [
            ("HSA_TOOLS_LIB", library.as_os_str()),
            ("HSA_TOOLS_ROCPROFILER_V1_TOOLS", "1".as_ref()),
        ] {
            if std::env::var_os(name).is_none() {
                // SAFETY: the threads of HSA do not use the environment.
                unsafe { std::env::set_var(name, value) };
            }
        }
        let mut session = Session {
            hsa,
            devprof,
            collect,
            reset,
            out,
            cpu: AgentHandle(0),
            gpus: Vec::new(),
            kernargs: PoolHandle(0),
        };
        session.find_agents();
        session
    }

    /// Shuts the simulator down and initialises it again. The session must have the last reference.
    pub fn restart(&mut self) {
        // SAFETY: no object of HSA is in use.
        unsafe {
            ok((self.hsa.hsa_shut_down)());
            let mut ticks = 0u64;
            let status =
                (self.hsa.hsa_system_get_info)(HSA_SYSTEM_INFO_TIMESTAMP, (&raw mut ticks).cast());
            assert_eq!(status, Status::NOT_INITIALIZED, "HSA has another reference");
            ok((self.hsa.hsa_init)());
        }
        self.find_agents();
        self.forget();
    }

    /// Resets devprof's counts, so that later profiles start at 0.
    pub fn forget(&self) {
        // SAFETY: takes no arguments.
        assert_eq!(unsafe { (self.reset)() }, 0);
        // The next drain updates the files.
        self.drain();
    }

    fn find_agents(&mut self) {
        let hsa = &self.hsa;
        let mut agents = Vec::<AgentHandle>::new();
        // SAFETY: `push` gets the vector.
        ok(unsafe { (hsa.hsa_iterate_agents)(push, (&raw mut agents).cast()) });
        self.cpu = agents[0];
        self.gpus = agents[1..].to_vec();
        self.kernargs = self.pool(self.cpu, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT);
    }

    /// An agent's first pool of global memory that has one of the flags.
    pub fn pool(&self, agent: AgentHandle, flags: u32) -> PoolHandle {
        let hsa = &self.hsa;
        let mut pools = Vec::<PoolHandle>::new();
        // SAFETY: `push` gets the vector.
        ok(unsafe {
            (hsa.hsa_amd_agent_iterate_memory_pools)(agent, push, (&raw mut pools).cast())
        });
        let found = pools.into_iter().find(|&pool| {
            let (get, name) = (
                hsa.hsa_amd_memory_pool_get_info,
                HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS,
            );
            // SAFETY: the attribute is a u32.
            attribute::<u32>(|value| unsafe { get(pool, name, value) }) & flags != 0
        });
        found.expect("a pool with the flags")
    }

    /// Allocates memory from a pool.
    pub fn allocate(&self, pool: PoolHandle, size: usize) -> *mut c_void {
        let mut memory = std::ptr::null_mut();
        // SAFETY: a plain allocation.
        ok(unsafe { (self.hsa.hsa_amd_memory_pool_allocate)(pool, size, 0, &mut memory) });
        memory
    }

    /// Frees memory of a pool.
    pub fn free(&self, memory: *mut c_void) {
        // SAFETY: callers do not use it any more.
        ok(unsafe { (self.hsa.hsa_amd_memory_pool_free)(memory) });
    }

    /// Copies from device memory to `to`.
    pub fn read_into<T: Copy>(&self, from: u64, to: &mut T) {
        let to: *mut T = to;
        // SAFETY: callers pass the address of a loaded variable or of an allocation, of this size at least.
        let status =
            unsafe { (self.hsa.hsa_memory_copy)(to.cast(), from as *const c_void, size_of::<T>()) };
        ok(status);
    }

    /// Destroys a queue that is empty.
    pub fn destroy(&self, queue: *mut Queue) {
        // SAFETY: callers do not use it any more. The runtime checks whether it can be destroyed.
        ok(unsafe { (self.hsa.hsa_queue_destroy)(queue) });
    }

    /// Restarts the simulator with one changed setting.
    pub fn restart_with(&mut self, name: &str, value: &str) {
        // SAFETY: the only test of this process; no other thread reads the environment now.
        unsafe { std::env::set_var(name, value) };
        self.restart();
    }

    fn load_devprof() -> (Library, Call, Call) {
        // SAFETY: the library that is tested, and its exported functions.
        unsafe {
            let library = Library::open(Some(library("devprof")), RTLD_NOW | RTLD_LOCAL)
                .expect("devprof loads");
            let collect = *library
                .get(b"__llvm_profile_hip_collect_device_data\0")
                .expect("the collect call");
            let reset = *library
                .get(b"devprof_reset_counters\0")
                .expect("the reset call");
            (library, collect, reset)
        }
    }

    /// Calls the collect function. Returns its result and the text that it has written to stderr.
    pub fn collect(&self) -> (c_int, String) {
        let mut stderr = tempfile();
        // SAFETY: descriptors of this process; stderr is restored. The function takes no arguments.
        let result = unsafe {
            let before = libc::dup(2);
            libc::dup2(stderr.as_raw_fd(), 2);
            let result = (self.collect)();
            libc::dup2(before, 2);
            libc::close(before);
            result
        };
        let mut text = String::new();
        stderr.seek(SeekFrom::Start(0)).expect("a file");
        stderr.read_to_string(&mut text).expect("text");
        // Printed once, if devprof was loaded after the initialisation of HSA.
        let unobserved = "devprof: cannot observe when code objects are unloaded";
        let lines = text.split_inclusive('\n');
        let rest = lines.filter(|line| !line.starts_with(unobserved)).collect();
        (result, rest)
    }

    /// Collects without a loss, and returns the profiles.
    #[track_caller]
    pub fn drain(&self) -> Vec<(String, Profile)> {
        self.collect_all();
        self.take_profiles()
    }

    /// Collects without a loss.
    #[track_caller]
    pub fn collect_all(&self) {
        assert_eq!(self.collect(), (0, String::new()));
    }

    /// Sets the fault plan and resets the counts of calls.
    #[track_caller]
    pub fn plan(&self, text: &str) {
        let text = CString::new(text).expect("a plan");
        // SAFETY: a C string.
        assert_eq!(unsafe { (self.hsa.hsa_sim_plan)(text.as_ptr()) }, 0);
    }

    /// The number of calls of a function since the plan was set.
    pub fn calls(&self, function: &str) -> u64 {
        let function = CString::new(function).expect("a name");
        // SAFETY: a C string.
        unsafe { (self.hsa.hsa_sim_calls)(function.as_ptr()) }
    }

    /// Loads a code object and freezes its executable.
    pub fn try_load(&self, agent: AgentHandle, file: &[u8]) -> Result<ExecutableHandle, Status> {
        let (mut reader, mut executable) = Default::default();
        // SAFETY: `file` outlives the reader, and callers keep it until the executable is unloaded.
        unsafe {
            let read = self.hsa.hsa_code_object_reader_create_from_memory;
            ok(read(file.as_ptr().cast(), file.len(), &mut reader));
            let options = std::ptr::null();
            let create = self.hsa.hsa_executable_create_alt;
            ok(create(0, 0, options, &mut executable));
            let load = self.hsa.hsa_executable_load_agent_code_object;
            let status = load(executable, agent, reader, options, std::ptr::null_mut());
            ok((self.hsa.hsa_code_object_reader_destroy)(reader));
            if status != Status::SUCCESS {
                self.unload(executable);
                return Err(status);
            }
            ok((self.hsa.hsa_executable_freeze)(executable, options));
        }
        Ok(executable)
    }

    /// Like [`Session::try_load`], but panics on an error.
    #[track_caller]
    pub fn load(&self, agent: AgentHandle, file: &'static [u8]) -> ExecutableHandle {
        self.try_load(agent, file).expect("the code object loads")
    }

    pub fn unload(&self, executable: ExecutableHandle) {
        // SAFETY: no kernel of the executable is running.
        ok(unsafe { (self.hsa.hsa_executable_destroy)(executable) });
    }

    /// An attribute of a symbol.
    pub fn symbol<T: Default>(
        &self,
        executable: ExecutableHandle,
        agent: AgentHandle,
        name: &str,
        attribute: u32,
    ) -> T {
        let name = CString::new(name).expect("a name");
        let mut symbol = SymbolHandle::default();
        let find = self.hsa.hsa_executable_get_symbol_by_name;
        // SAFETY: as specified by HSA.
        ok(unsafe { find(executable, name.as_ptr(), &agent, &mut symbol) });
        let get = self.hsa.hsa_executable_symbol_get_info;
        // SAFETY: the test asks for attributes of type T.
        self::attribute(|value| unsafe { get(symbol, attribute, value) })
    }

    /// The address of a variable.
    pub fn variable(&self, executable: ExecutableHandle, agent: AgentHandle, name: &str) -> u64 {
        let address = HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS;
        self.symbol(executable, agent, name, address)
    }

    /// Runs both kernels of a fixture with 64 work-items and waits for them. Returns the dispatches' times.
    pub fn run(&self, executable: ExecutableHandle, agent: AgentHandle) -> Vec<DispatchTime> {
        self.run_for(executable, agent, 60_000_000_000)
    }

    /// Like [`Session::run`], but waits at most `limit` nanoseconds for each kernel.
    pub fn run_for(
        &self,
        executable: ExecutableHandle,
        agent: AgentHandle,
        limit: u64,
    ) -> Vec<DispatchTime> {
        let queue = self.queue(agent, HSA_QUEUE_TYPE_MULTI);
        let times = self.run_on(queue, executable, agent, limit);
        self.destroy(queue);
        times
    }

    /// Creates a queue of 64 packets, unless queues of this type have a fixed size.
    pub fn queue(&self, agent: AgentHandle, kind: u32) -> *mut Queue {
        let (status, queue) = self.try_queue(agent, 64, kind);
        ok(status);
        queue
    }

    /// Creates a queue of `size` packets.
    pub fn try_queue(&self, agent: AgentHandle, size: u32, kind: u32) -> (Status, *mut Queue) {
        let (mut queue, data, most) = (std::ptr::null_mut(), std::ptr::null_mut(), u32::MAX);
        let create = self.hsa.hsa_queue_create;
        // SAFETY: as specified by HSA.
        let status = unsafe { create(agent, size, kind, None, data, most, most, &mut queue) };
        (status, queue)
    }

    /// Like [`Session::run_for`], on an existing queue.
    pub fn run_on(
        &self,
        queue: *mut Queue,
        executable: ExecutableHandle,
        agent: AgentHandle,
        limit: u64,
    ) -> Vec<DispatchTime> {
        // SAFETY: the queue is the caller's.
        ok(unsafe { (self.hsa.hsa_amd_profiling_set_profiler_enabled)(queue, 1) });
        let arguments = self.arguments(agent);
        let times = ["branch.kd", "loop.kd"].map(|kernel| {
            let packet = self.kernel(executable, agent, kernel, arguments);
            self.submit(queue, agent, packet, limit)
        });
        self.free(arguments.cast());
        times.into()
    }

    /// Arguments for the fixtures' kernels, in memory of the host: the address that they write to, which follows them.
    pub fn arguments(&self, agent: AgentHandle) -> *mut u64 {
        let arguments = self.allocate(self.kernargs, 8192);
        let no_flags = std::ptr::null();
        // SAFETY: one agent, and memory of that size.
        unsafe {
            ok((self.hsa.hsa_amd_agents_allow_access)(
                1, &agent, no_flags, arguments,
            ));
            *arguments.cast::<u64>() = arguments as u64 + 4096;
        }
        arguments.cast()
    }

    /// A dispatch packet for 64 work-items in one workgroup. Its header has no fences.
    pub fn kernel(
        &self,
        executable: ExecutableHandle,
        agent: AgentHandle,
        kernel: &str,
        arguments: *const u64,
    ) -> [u64; 8] {
        let object = HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT;
        let private = HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE;
        let private: u32 = self.symbol(executable, agent, kernel, private);
        [
            u64::from(HSA_PACKET_TYPE_KERNEL_DISPATCH) | 1 << 16 | 64 << 32 | 1 << 48,
            1 | 64 << 32,
            1 | 1 << 32,
            u64::from(private),
            self.symbol(executable, agent, kernel, object),
            arguments as u64,
            0,
            0,
        ]
    }

    /// Submits a packet, waits at most `limit` nanoseconds for its completion, and returns its times.
    pub fn submit(
        &self,
        queue: *mut Queue,
        agent: AgentHandle,
        mut words: [u64; 8],
        limit: u64,
    ) -> DispatchTime {
        let hsa = &self.hsa;
        let mut time = DispatchTime { start: 0, end: 0 };
        // SAFETY: as specified by HSA; this call has reserved the packet's slot. The packet becomes valid with
        // the store of its header, which is the last one.
        unsafe {
            let mut signal = SignalHandle::default();
            ok((hsa.hsa_signal_create)(1, 0, std::ptr::null(), &mut signal));
            words[7] = signal.0;
            let index = (hsa.hsa_queue_add_write_index_relaxed)(queue, 1);
            let ring = (*queue).base_address.cast::<[u64; 8]>();
            let packet = &mut *ring.add(index as usize % (*queue).size as usize);
            packet[1..].copy_from_slice(&words[1..]);
            packet[0] = words[0] & !0xffff | u64::from(HSA_PACKET_TYPE_INVALID);
            let header = &*(&raw mut packet[0]).cast::<std::sync::atomic::AtomicU16>();
            header.store(words[0] as u16, std::sync::atomic::Ordering::Release);
            (hsa.hsa_signal_store_screlease)((*queue).doorbell_signal, index as i64);
            let value = (hsa.hsa_signal_wait_scacquire)(
                signal,
                HSA_SIGNAL_CONDITION_LT,
                1,
                limit,
                HSA_WAIT_STATE_BLOCKED,
            );
            assert_eq!(value, 0, "the packet {:#x} is not done", words[0]);
            let get_time = hsa.hsa_amd_profiling_get_dispatch_time;
            ok(get_time(agent, signal, &mut time));
            ok((hsa.hsa_signal_destroy)(signal));
        }
        time
    }

    /// Loads both fixtures on every GPU and runs their kernels.
    pub fn load_all(&self) -> Vec<ExecutableHandle> {
        let mut loaded = Vec::new();
        for &gpu in &self.gpus {
            for file in [RAW10, RAW11] {
                let executable = self.load(gpu, file);
                self.run(executable, gpu);
                loaded.push(executable);
            }
        }
        loaded
    }

    /// Reads and removes all profiles, sorted by file name. All must be complete.
    pub fn take_profiles(&self) -> Vec<(String, Profile)> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.out).expect("the directory") {
            let path = entry.expect("an entry").path();
            let bytes = std::fs::read(&path).expect("a profile");
            let name = path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            found.push((
                name.clone(),
                Profile::read(&bytes).unwrap_or_else(|| panic!("{name} is not a profile")),
            ));
            std::fs::remove_file(path).expect("removable");
        }
        found.sort();
        found
    }

    /// The number of calls of a tool's `OnLoad` in this process.
    pub fn on_load_calls(&self) -> u64 {
        // SAFETY: takes no arguments.
        unsafe { (self.hsa.hsa_sim_on_load_calls)() }
    }

    /// The numbers of objects that are not destroyed: signals, allocations, executables, queues, readers.
    pub fn live(&self) -> [u64; 5] {
        // SAFETY: takes a number.
        std::array::from_fn(|n| unsafe { (self.hsa.hsa_sim_live)(n as u32) })
    }
}

impl Drop for Session {
    /// Shuts HSA down, so that no drain at exit writes to the directory of the test.
    fn drop(&mut self) {
        // SAFETY: no object of HSA is in use.
        while unsafe { (self.hsa.hsa_shut_down)() } == Status::SUCCESS {}
    }
}

/// A file without a name.
fn tempfile() -> File {
    // SAFETY: memfd_create takes a C string and returns a new descriptor.
    unsafe {
        let fd = libc::memfd_create(c"stderr".as_ptr(), 0);
        assert!(fd >= 0);
        std::os::fd::FromRawFd::from_raw_fd(fd)
    }
}

/// The contents of a raw profile of one image.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Profile {
    pub version: u64,
    /// The counters of each record, in the order of the records.
    pub counts: Vec<Vec<u64>>,
}

impl Profile {
    /// Reads the first image of a file.
    pub fn read(bytes: &[u8]) -> Option<Profile> {
        let layout = profraw::Layout::read(bytes).ok()?;
        let format = layout.format();
        let at = |record: usize| (record * format.record) as u64;
        // Damaged code objects may have several records of the same counters.
        let records = format.records(&bytes[layout.data.clone()]).enumerate();
        let counts = records.map(|(n, record)| {
            let pointer = record.counter_ptr.get().wrapping_add(at(n));
            let from = pointer.wrapping_sub(layout.header.counters_delta);
            let from = layout.counters.start.checked_add(from as usize)?;
            let own = bytes.get(from..)?;
            let (words, _) = own.as_chunks();
            let words = words.get(..record.num_counters.get() as usize)?;
            Some(words.iter().map(|&word| u64::from_le_bytes(word)).collect())
        });
        Some(Profile {
            version: format.version,
            counts: counts.collect::<Option<_>>()?,
        })
    }

    /// Whether it has the counts of a fixture whose kernels have run `runs` times.
    pub fn is_fixture(&self, runs: u64) -> bool {
        let expected: Vec<Vec<u64>> = COUNTS
            .iter()
            .map(|counts| counts.iter().map(|n| n * runs).collect())
            .collect();
        self.counts == expected
    }
}
