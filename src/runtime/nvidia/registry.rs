//! The contexts, libraries and instrumented modules of this process.
//!
//! CUPTI reports them while the driver holds its locks. Whoever holds [`REGISTRY`] therefore calls nothing of the driver.

#![forbid(unsafe_code)]

use super::code::{Code, Counting};
use super::copies::Copies;
use super::image::Image;
use crate::gpu::runtime::{AgentId, ExecutableId};
use crate::support::settings::settings;
use crate::support::sync::lock;
use crate::sys::threads;
use cuda_abi::driver::{CUcontext, CUdevice, CUdeviceptr, CUlibrary, CUmodule, CUstream};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// The virtual address of the first byte of module `n`. Each has 4 GiB.
pub fn base(n: u32) -> u64 {
    u64::from(n) << 32
}

/// The module whose virtual addresses contain an address.
pub fn module_at(address: u64) -> ExecutableId {
    ExecutableId::Cuda((address >> 32) as u32)
}

/// The agent of code for one architecture on a device. A device can run code for several.
pub fn agent(device: CUdevice, arch: &str) -> AgentId {
    let arch = arch.trim_start_matches("sm_").parse().unwrap_or(0);
    AgentId::Cuda { device, arch }
}

/// How a module is identified to the driver, and where its counters are.
#[derive(Clone, Debug)]
pub struct Located {
    pub module: CUmodule,
    pub library: Option<CUlibrary>,
    /// Device addresses, in the order of the image's counters.
    pub addresses: Arc<Vec<CUdeviceptr>>,
}

/// An instrumented module, loaded in one context.
#[derive(Clone, Debug)]
pub struct Module {
    pub executable: ExecutableId,
    /// CUPTI's number, or devprof's.
    pub id: u32,
    /// The call that loads it is not over: its handle is not known yet, and no kernel has run.
    pub is_loading: bool,
    pub context: CUcontext,
    /// The handle, if the module was loaded by a function that returns it.
    pub handle: Option<CUmodule>,
    /// The library, if the module is known to be one's.
    pub library: Option<CUlibrary>,
    /// devprof has requested the module of a library, so the program may not use it.
    pub may_be_unused: bool,
    pub image: Arc<Image>,
    /// `None` until it was searched for.
    pub located: Option<Located>,
    /// Copies of the counters, if there are any.
    pub copies: Option<Arc<Copies>>,
    /// Whether copies were set up, or cannot be: a kernel may have run. See [`prepare`](super::prepare).
    pub is_prepared: bool,
}

impl Module {
    /// Module `n`, of which only the image is known.
    pub fn new(n: u32, context: CUcontext, image: Arc<Image>) -> Module {
        Module {
            executable: ExecutableId::Cuda(n),
            id: n,
            is_loading: is_loading(),
            context,
            handle: None,
            library: None,
            may_be_unused: false,
            image,
            located: None,
            copies: None,
            is_prepared: !is_loading(),
        }
    }
}

/// A context.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    pub handle: CUcontext,
    /// `None` until it is needed.
    pub device: Option<CUdevice>,
    /// devprof's own stream, after the first use.
    pub stream: Option<CUstream>,
    /// The program destroys it.
    pub is_closing: bool,
    /// Its kernels ran for so long that a library was not loaded in it.
    pub is_busy: bool,
}

/// A library that is to be loaded in a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unprepared {
    pub context: CUcontext,
    pub library: CUlibrary,
    /// The thread whose call has created the context or loaded the library. It loads the library in the context before the
    /// call returns.
    pub thread: u32,
    /// The context is new, so no kernel runs in it.
    pub is_new_context: bool,
    /// It is being loaded.
    pub is_claimed: bool,
}

impl Unprepared {
    /// A pair of the calling thread.
    fn new(context: CUcontext, library: CUlibrary, is_new_context: bool) -> Unprepared {
        Unprepared {
            context,
            library,
            thread: threads::thread_id(),
            is_new_context,
            is_claimed: false,
        }
    }
}

/// A library. It may be loaded in each context.
#[derive(Clone, Debug)]
pub struct Library {
    pub handle: CUlibrary,
    pub counting: Counting,
    /// Its code, if devprof searches for its modules ([`super::without_cupti`]).
    pub code: Option<Arc<Code>>,
    /// The contexts in which it was searched for.
    pub searched: Vec<CUcontext>,
    /// The thread in which the program unloads it.
    pub closed_by: Option<u32>,
}

impl Library {
    /// Whether the calling thread may use the handle: no other thread unloads the library.
    pub fn is_usable(&self) -> bool {
        self.closed_by
            .is_none_or(|thread| thread == threads::thread_id())
    }
}

/// A stream capture.
#[derive(Clone, Copy, Debug)]
struct Capture {
    stream: CUstream,
    /// The thread whose default stream it is; 0 if it is a stream that was created.
    thread: u32,
    context: CUcontext,
}

impl Capture {
    fn is_of(&self, stream: CUstream, thread: u32) -> bool {
        (self.stream, self.thread) == (stream, thread)
    }
}

/// Whether the registry has captures: launching threads take no lock.
static IS_CAPTURING: AtomicBool = AtomicBool::new(false);

/// Whether a stream is being captured. Takes no lock.
pub fn is_capturing() -> bool {
    IS_CAPTURING.load(Ordering::Acquire)
}

/// `CU_STREAM_PER_THREAD`. Smaller numbers are default streams, too.
const LAST_DEFAULT_STREAM: usize = 2;

#[derive(Default)]
pub struct Registry {
    pub contexts: Vec<Context>,
    pub libraries: Vec<Library>,
    pub modules: Vec<Module>,
    /// New contexts with all instrumented libraries, and new libraries with all contexts, until the library is prepared there.
    /// See [`prepare`](super::prepare).
    pub unprepared: Vec<Unprepared>,
    /// How many threads use handles of libraries that others may unload. See [`Search`].
    pub searching: usize,
    /// The stream captures in progress.
    captures: Vec<Capture>,
    /// Copies of modules that were unloaded, to be freed.
    pub unused: Vec<(CUcontext, Arc<Copies>)>,
    /// Why images could not be read. They are reported by the next drain.
    pub damaged: Vec<String>,
    /// The modules that each thread has loaded in its current call. (Thread-local variables with destructors do not exist
    /// any more in exit handlers.)
    loaded: Vec<(u32, ExecutableId)>,
    /// The code that devprof has instrumented, and that the current call of each thread loads.
    of_process: Vec<(u32, Arc<Code>)>,
    /// The modules that the current call of each thread unloads, with the generation for
    /// [`destroyed`](crate::gpu::observers::DrainObserver::destroyed).
    pub unloading: Vec<(u32, (ExecutableId, u64))>,
    /// The last number that was given to a module.
    last: u32,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    contexts: Vec::new(),
    libraries: Vec::new(),
    modules: Vec::new(),
    unprepared: Vec::new(),
    searching: 0,
    captures: Vec::new(),
    unused: Vec::new(),
    damaged: Vec::new(),
    loaded: Vec::new(),
    of_process: Vec::new(),
    unloading: Vec::new(),
    last: 0,
});

thread_local! {
    static IS_LOADING: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is in a call after which the program can launch kernels of the modules that the call loads, but
/// not before.
pub fn is_loading() -> bool {
    IS_LOADING.get()
}

pub fn set_loading(is_loading: bool) {
    IS_LOADING.set(is_loading);
}

pub fn registry() -> MutexGuard<'static, Registry> {
    lock(&REGISTRY)
}

/// Notified when a library was prepared, or a [`Search`] is over.
static CHANGED: Condvar = Condvar::new();

pub fn notify() {
    CHANGED.notify_all();
}

/// Waits for other threads. If the limit (DEVPROF_SYNC_MS) is reached, or a thread has panicked, the program goes on.
pub fn wait_while(is_waiting: impl Fn(&mut Registry) -> bool) {
    drop(CHANGED.wait_timeout_while(registry(), settings().sync_limit, is_waiting));
}

/// The calling thread uses handles of libraries: no other thread goes on to unload one that is [usable](Library::is_usable) until
/// this is dropped.
pub struct Search(());

impl Search {
    pub fn begin() -> Search {
        registry().searching += 1;
        Search(())
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        registry().searching -= 1;
        notify();
    }
}

/// This thread has loaded a module.
pub fn add_loaded(executable: ExecutableId) {
    let thread = threads::thread_id();
    registry().loaded.push((thread, executable));
}

/// The modules that this thread has loaded since the last call of this function.
pub fn take_loaded() -> Vec<ExecutableId> {
    take_of_thread(&mut registry().loaded)
}

/// The call that the calling thread begins loads code that devprof has instrumented. `None`: no such code.
pub fn set_of_process(code: Option<Arc<Code>>) {
    let thread = threads::thread_id();
    let all = &mut registry().of_process;
    all.retain(|(of, _)| *of != thread);
    all.extend(code.map(|code| (thread, code)));
}

/// The code of [`set_of_process`].
pub fn take_of_process() -> Option<Arc<Code>> {
    take_of_thread(&mut registry().of_process).pop()
}

/// The entries of the calling thread.
pub fn take_of_thread<T: Clone>(all: &mut Vec<(u32, T)>) -> Vec<T> {
    let thread = threads::thread_id();
    let of_thread = all.iter().filter(|(of, _)| *of == thread);
    let taken = of_thread.map(|(_, entry)| entry.clone()).collect();
    all.retain(|(of, _)| *of != thread);
    taken
}

/// See [`Capture::thread`].
fn thread_of(stream: CUstream) -> u32 {
    if stream.0 <= LAST_DEFAULT_STREAM {
        threads::thread_id()
    } else {
        0
    }
}

impl Registry {
    /// A number for a new module.
    pub fn next(&mut self) -> u32 {
        self.last += 1;
        self.last
    }

    pub fn context(&self, handle: CUcontext) -> Option<&Context> {
        self.contexts
            .iter()
            .find(|context| context.handle == handle)
    }

    pub fn context_mut(&mut self, handle: CUcontext) -> &mut Context {
        let known = self
            .contexts
            .iter()
            .position(|context| context.handle == handle);
        let n = known.unwrap_or_else(|| {
            self.contexts.push(Context {
                handle,
                device: None,
                stream: None,
                is_closing: false,
                is_busy: false,
            });
            self.contexts.len() - 1
        });
        &mut self.contexts[n]
    }

    /// A context was created by the call in progress, before which no kernel can have run in it.
    pub fn add_new_context(&mut self, handle: CUcontext) {
        self.context_mut(handle);
        let libraries = self.libraries.iter();
        let counting = libraries
            .filter(|library| library.counting == Counting::Yes && library.closed_by.is_none())
            .map(|library| Unprepared::new(handle, library.handle, true));
        self.unprepared.extend(counting);
    }

    /// The call in progress has loaded a library, whose kernels no thread can launch yet.
    pub fn add_library(&mut self, handle: CUlibrary, counting: Counting, code: Option<Arc<Code>>) {
        // The driver reuses handles.
        self.remove_library(handle);
        self.libraries.push(Library {
            handle,
            counting,
            code,
            searched: Vec::new(),
            closed_by: None,
        });
        if counting == Counting::Yes {
            let contexts = self.contexts.iter().filter(|context| !context.is_closing);
            let contexts = contexts.map(|context| Unprepared::new(context.handle, handle, false));
            self.unprepared.extend(contexts);
        }
    }

    pub fn remove_library(&mut self, handle: CUlibrary) {
        self.libraries.retain(|library| library.handle != handle);
        self.unprepared.retain(|pair| pair.library != handle);
    }

    /// The contexts that have instrumented modules, in ascending order.
    pub fn instrumented_contexts(&self) -> Vec<CUcontext> {
        let modules = self.modules.iter();
        let mut contexts: Vec<CUcontext> = modules.map(|module| module.context).collect();
        contexts.sort_unstable();
        contexts.dedup();
        contexts
    }

    /// The calling thread has begun to capture a stream.
    pub fn begin_capture(&mut self, stream: CUstream, context: CUcontext) {
        let capture = Capture {
            stream,
            thread: thread_of(stream),
            context,
        };
        self.change_captures(|captures| {
            captures.retain(|known| !known.is_of(stream, capture.thread));
            captures.push(capture);
        });
    }

    /// A capture has ended, with or without success, or the stream was destroyed.
    pub fn end_capture(&mut self, stream: CUstream) {
        let thread = thread_of(stream);
        self.change_captures(|captures| captures.retain(|known| !known.is_of(stream, thread)));
    }

    /// The program destroys a context. The captures of its streams end with it.
    pub fn end_captures_in(&mut self, context: CUcontext) {
        self.change_captures(|captures| captures.retain(|capture| capture.context != context));
    }

    fn change_captures(&mut self, change: impl FnOnce(&mut Vec<Capture>)) {
        change(&mut self.captures);
        IS_CAPTURING.store(!self.captures.is_empty(), Ordering::Release);
    }

    /// A context is being destroyed, with its modules and streams.
    pub fn remove_context(&mut self, handle: CUcontext) {
        self.end_captures_in(handle);
        self.contexts.retain(|context| context.handle != handle);
        self.unprepared.retain(|pair| pair.context != handle);
        self.modules.retain(|module| module.context != handle);
        // The memory is freed with the context.
        self.unused.retain(|(context, _)| *context != handle);
        for library in &mut self.libraries {
            library.searched.retain(|context| *context != handle);
        }
    }

    /// The modules that can be read, in the order of loading.
    pub fn readable(&self) -> impl Iterator<Item = &Module> {
        self.modules.iter().filter(|module| !module.is_loading)
    }

    pub fn module(&self, executable: ExecutableId) -> Option<&Module> {
        self.modules
            .iter()
            .find(|module| module.executable == executable)
    }

    pub fn module_mut(&mut self, executable: ExecutableId) -> Option<&mut Module> {
        let mut modules = self.modules.iter_mut();
        modules.find(|module| module.executable == executable)
    }

    /// The driver unloads modules. Those that no call has announced were not read before.
    pub fn report_unannounced(&mut self, is_unloaded: impl Fn(&Module) -> bool) {
        let thread = threads::thread_id();
        let is_unloading = self.unloading.iter().any(|(of, _)| *of == thread);
        let announced = |module: &Module| {
            let mut unloading = self.unloading.iter();
            // Of equal modules that the call unloads, another one may have been announced.
            is_unloading && module.located.is_some()
                || unloading.any(|(_, (executable, _))| *executable == module.executable)
        };
        let modules = self.modules.iter();
        let lost = modules.filter(|module| is_unloaded(module) && !announced(module));
        let lost: Vec<String> = lost
            .map(|module| {
                format!(
                    "lost the counters of CUDA module {}: its unloading was not announced",
                    module.id
                )
            })
            .collect();
        self.damaged.extend(lost);
    }

    /// Modules were unloaded, or are being unloaded.
    pub fn remove_modules(&mut self, is_unloaded: impl Fn(&Module) -> bool) {
        let unloaded = self.modules.extract_if(.., |module| is_unloaded(module));
        let copies = unloaded.filter_map(|module| Some((module.context, module.copies?)));
        self.unused.extend(copies);
    }
}
