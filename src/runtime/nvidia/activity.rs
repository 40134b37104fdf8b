//! CUPTI's activity records: the buffers that CUPTI fills, and their decoding.
//!
//! CUPTI fills the buffers on the program's threads and on a thread of its own. The trace's thread takes the full ones
//! ([`take_full`]) and reads them, so CUPTI's callbacks only move buffers.

use super::cupti::ActivityFunctions;
use crate::gpu::observers;
use crate::support::panic_guard::{Cost, guarded};
use crate::support::sync::lock;
use cuda_abi::activity::*;
use cuda_abi::cupti::CUptiResult;
use cuda_abi::driver::{CUcontext, CUstream};
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

/// The size of a buffer, bytes: about 4,500 kernels. CUPTI has one per thread of the program that submits work.
const SIZE: usize = 1 << 20;
/// How many full buffers may wait for the trace's thread. CUPTI then drops further records, and counts them.
const MAX_FULL: usize = 256;
/// How many unused buffers are kept.
const MAX_FREE: usize = 16;

/// A buffer, aligned for CUPTI's records.
type Memory = Box<[u64]>;

/// A buffer with records.
pub struct Full {
    memory: Memory,
    /// Bytes.
    valid: usize,
    /// The kernels and copies of all records are complete.
    pub is_complete: bool,
}

/// Which buffers CUPTI is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// Those in which all activities are complete.
    Complete,
    /// All. Some activities may still run; their records never become complete.
    Forced,
    /// All. No activity runs.
    Idle,
}

struct Buffers {
    free: Vec<Memory>,
    full: Vec<Full>,
    /// The addresses of those that CUPTI has.
    lent: Vec<usize>,
}

static BUFFERS: Mutex<Buffers> = Mutex::new(Buffers {
    free: Vec::new(),
    full: Vec::new(),
    lent: Vec::new(),
});
/// The number of buffers that CUPTI has.
static LENT: AtomicUsize = AtomicUsize::new(0);
/// CUPTI delivers buffers whose activities may still run.
static IS_FORCED: AtomicBool = AtomicBool::new(false);
static FUNCTIONS: OnceLock<ActivityFunctions> = OnceLock::new();
/// The kinds that are recorded.
static KINDS: OnceLock<&'static [u32]> = OnceLock::new();
/// Whether records are made. Changed under this lock.
static IS_ENABLED: Mutex<bool> = Mutex::new(false);
/// The state that launching threads read without a lock: see [`is_enabled`].
static MAY_RECORD: AtomicBool = AtomicBool::new(false);

/// devprof's streams, by CUPTI's numbers of their contexts and their own.
static OWN_STREAMS: Mutex<Vec<(u32, u32)>> = Mutex::new(Vec::new());

/// Why activities cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum Unrecorded {
    #[error("this CUPTI (version {0}) is too old: use the CUPTI of CUDA 11.8 or later")]
    TooOld(u32),
    #[error("{call} has failed: {result:?}")]
    Call {
        call: &'static str,
        result: CUptiResult,
    },
}

pub fn check(call: &'static str, result: CUptiResult) -> Result<(), Unrecorded> {
    match result {
        CUptiResult::SUCCESS => Ok(()),
        result => Err(Unrecorded::Call { call, result }),
    }
}

/// Prepares recording. `now`: the trace's clock, nanoseconds. `copies`: record copies and fills, too.
pub fn prepare(
    functions: ActivityFunctions,
    now: CUpti_TimestampCallbackFunc,
    copies: bool,
) -> Result<(), Unrecorded> {
    let mut version = 0;
    // SAFETY: writes the version.
    check("cuptiGetVersion", unsafe {
        (functions.cuptiGetVersion)(&raw mut version)
    })?;
    if version < OLDEST_VERSION {
        return Err(Unrecorded::TooOld(version));
    }
    let (mut is_cleared, mut size) = (1u8, size_of::<u8>());
    // SAFETY: functions that stay valid, because devprof is never unloaded; an attribute of this size.
    unsafe {
        // If this fails, CUPTI clears the buffers, too.
        (functions.cuptiActivitySetAttribute)(
            CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER,
            &raw mut size,
            (&raw mut is_cleared).cast::<c_void>(),
        );
        check(
            "cuptiActivityRegisterTimestampCallback",
            (functions.cuptiActivityRegisterTimestampCallback)(now),
        )?;
        check(
            "cuptiActivityRegisterCallbacks",
            (functions.cuptiActivityRegisterCallbacks)(requested, completed),
        )?;
    }
    const ALL: &[u32] = &[
        CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMCPY2,
        CUPTI_ACTIVITY_KIND_MEMSET,
    ];
    KINDS.get_or_init(|| if copies { ALL } else { &ALL[..1] });
    FUNCTIONS.get_or_init(|| functions);
    Ok(())
}

/// Starts or stops recording. Work that was submitted before a stop is recorded when it is complete.
pub fn set_enabled(is_on: bool) -> Result<(), Unrecorded> {
    let (Some(functions), Some(kinds)) = (FUNCTIONS.get(), KINDS.get()) else {
        return Ok(());
    };
    let mut is_enabled = lock(&IS_ENABLED);
    if *is_enabled == is_on {
        return Ok(());
    }
    *is_enabled = is_on;
    if is_on {
        MAY_RECORD.store(true, Ordering::SeqCst);
    }
    for &kind in *kinds {
        // SAFETY: kinds of the header.
        unsafe {
            if is_on {
                check("cuptiActivityEnable", (functions.cuptiActivityEnable)(kind))?;
            } else {
                let disabled = (functions.cuptiActivityDisable)(kind);
                check("cuptiActivityDisable", disabled)?;
            }
        }
    }
    if !is_on {
        MAY_RECORD.store(false, Ordering::SeqCst);
    }
    Ok(())
}

/// Whether work that is submitted now may be recorded.
#[inline]
pub fn is_enabled() -> bool {
    MAY_RECORD.load(Ordering::Relaxed)
}

/// Whether CUPTI has buffers, so records may not be delivered yet.
pub fn has_lent() -> bool {
    LENT.load(Ordering::Acquire) > 0
}

/// Makes CUPTI deliver its buffers. To be called without locks of devprof, by one thread at a time.
pub fn flush(flush: Flush) {
    if let Some(functions) = FUNCTIONS.get() {
        let flag = match flush {
            Flush::Complete => 0,
            Flush::Forced | Flush::Idle => CUPTI_ACTIVITY_FLAG_FLUSH_FORCED,
        };
        IS_FORCED.store(flush == Flush::Forced, Ordering::SeqCst);
        // SAFETY: `prepare` has registered the callbacks. If it fails, the records stay in their buffers.
        unsafe { (functions.cuptiActivityFlushAll)(flag) };
        IS_FORCED.store(false, Ordering::SeqCst);
    }
}

/// # Safety
/// Called by CUPTI with pointers to its variables.
unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, records: *mut usize) {
    let memory = guarded(Cost::Dispatches, None, || {
        let mut buffers = lock(&BUFFERS);
        if buffers.full.len() >= MAX_FULL {
            return None;
        }
        let memory = buffers.free.pop();
        drop(buffers);
        let memory = memory.unwrap_or_else(|| vec![0; SIZE / size_of::<u64>()].into());
        let address = Box::into_raw(memory).cast::<u8>();
        lock(&BUFFERS).lent.push(address as usize);
        LENT.fetch_add(1, Ordering::Release);
        Some(address)
    });
    // SAFETY: the caller's promise. The memory returns in `completed`.
    unsafe {
        *size = if memory.is_some() { SIZE } else { 0 };
        *records = 0;
        *buffer = memory.unwrap_or(std::ptr::null_mut());
    }
    guarded(Cost::Dispatches, (), || {
        if let Some(trace) = observers::trace() {
            trace.activities_expected();
        }
    });
}

/// # Safety
/// Called by CUPTI with a buffer from [`requested`], or with one of another library that has registered its own callbacks
/// before.
unsafe extern "C" fn completed(_: CUcontext, _: u32, buffer: *mut u8, _: usize, valid: usize) {
    guarded(Cost::Dispatches, (), || {
        let mut buffers = lock(&BUFFERS);
        let mut lent = buffers.lent.iter();
        let Some(n) = lent.position(|&lent| lent == buffer as usize) else {
            return;
        };
        buffers.lent.swap_remove(n);
        let memory =
            std::ptr::slice_from_raw_parts_mut(buffer.cast::<u64>(), SIZE / size_of::<u64>());
        buffers.full.push(Full {
            // SAFETY: a box that `requested` has released; its address was in the list, once.
            memory: unsafe { Box::from_raw(memory) },
            valid: valid.min(SIZE),
            is_complete: !IS_FORCED.load(Ordering::SeqCst),
        });
        drop(buffers);
        // After the buffer is in the list: see `has_lent`.
        LENT.fetch_sub(1, Ordering::Release);
        if let Some(trace) = observers::trace() {
            trace.activities_expected();
        }
    });
}

/// CUPTI's number of a context, which its records have. It is not used again.
pub fn context_number(context: CUcontext) -> Option<u32> {
    let functions = FUNCTIONS.get()?;
    let mut number = 0;
    // SAFETY: a context; writes its number.
    let result = unsafe { (functions.cuptiGetContextId)(context, &raw mut number) };
    (result == CUptiResult::SUCCESS).then_some(number)
}

/// A stream is devprof's: [`read`] does not pass on its activities. To be called before it is used.
pub fn add_own_stream(context: CUcontext, stream: CUstream) -> Result<(), Unrecorded> {
    let Some(functions) = FUNCTIONS.get() else {
        return Ok(());
    };
    let mut numbers = (0, 0);
    // SAFETY: a context and a stream in it; both calls write a number.
    unsafe {
        check(
            "cuptiGetContextId",
            (functions.cuptiGetContextId)(context, &raw mut numbers.0),
        )?;
        check(
            "cuptiGetStreamIdEx",
            (functions.cuptiGetStreamIdEx)(context, stream, 0, &raw mut numbers.1),
        )?;
    }
    lock(&OWN_STREAMS).push(numbers);
    Ok(())
}

/// Takes the full buffers.
pub fn take_full() -> Vec<Full> {
    std::mem::take(&mut lock(&BUFFERS).full)
}

/// Whether there are full buffers.
pub fn has_full() -> bool {
    !lock(&BUFFERS).full.is_empty()
}

/// How many records CUPTI has dropped since the last call.
pub fn take_dropped() -> u64 {
    let mut dropped = 0;
    if let Some(functions) = FUNCTIONS.get() {
        // SAFETY: writes the number. If it fails, it stays 0: the number belongs to no context or stream since CUDA 6.
        unsafe {
            (functions.cuptiActivityGetNumDroppedRecords)(CUcontext::NULL, 0, &raw mut dropped);
        }
    }
    dropped as u64
}

/// Where and when an activity ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The number of the call that submitted it.
    pub correlation: u32,
    /// Nanoseconds of the trace's clock; both are 0 if it is not complete, or if the times are not known.
    pub start: u64,
    pub end: u64,
    /// The device's number in this process.
    pub device: u32,
    pub context: u32,
    /// The stream's number in the context.
    pub stream: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelRun<'a> {
    pub run: Run,
    /// Mangled.
    pub name: &'a CStr,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads.
    pub block: [u32; 3],
    /// Registers per thread.
    pub registers: u16,
    /// Bytes per block.
    pub static_shared: u32,
    /// Bytes per block.
    pub dynamic_shared: u32,
    /// Bytes per thread.
    pub local: u32,
}

/// A side of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Host,
    /// The device's number in this process.
    Device(u32),
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyRun {
    pub run: Run,
    /// The number of the runtime's call, if it is another one.
    pub runtime_correlation: u32,
    pub bytes: u64,
    /// `None` for a fill.
    pub source: Option<Side>,
    pub destination: Side,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity<'a> {
    Kernel(KernelRun<'a>),
    Copy(CopyRun),
}

impl Activity<'_> {
    /// CUPTI's numbers of the context and of the stream.
    fn stream(&self) -> (u32, u32) {
        let run = match self {
            Activity::Kernel(kernel) => &kernel.run,
            Activity::Copy(copy) => &copy.run,
        };
        (run.context, run.stream)
    }
}

/// Passes the program's activities in a buffer to `take`, and returns the buffer to the pool.
pub fn read(full: Full, take: &mut dyn FnMut(Activity<'_>)) {
    let Full {
        mut memory, valid, ..
    } = full;
    if let Some(functions) = FUNCTIONS.get() {
        let start = memory.as_mut_ptr().cast::<u8>();
        let mut record = std::ptr::null_mut();
        let own = lock(&OWN_STREAMS).clone();
        loop {
            // SAFETY: a buffer that CUPTI has filled; the record before, which is in it.
            let result =
                unsafe { (functions.cuptiActivityGetNextRecord)(start, valid, &raw mut record) };
            if result != CUptiResult::SUCCESS || record.is_null() {
                break;
            }
            let end = start.wrapping_add(valid);
            let rest = (end as usize).saturating_sub(record as usize);
            // SAFETY: a record of CUPTI, of which `rest` bytes are in the buffer. Names are valid as long as CUPTI is.
            if let Some(activity) = unsafe { decode(record, rest) }
                && !own.contains(&activity.stream())
            {
                take(activity);
            }
        }
    }
    // Without unnecessary writes: a fresh buffer's pages have no memory until they are used.
    let used = valid.div_ceil(size_of::<u64>());
    memory[..used].fill(0);
    let mut buffers = lock(&BUFFERS);
    if buffers.free.len() < MAX_FREE {
        buffers.free.push(memory);
    }
}

/// Decodes a record; `None` if it is of another kind.
///
/// # Safety
/// `record` is a record of CUPTI. `rest` bytes can be read. Pointers in it are valid.
unsafe fn decode<'a>(record: *const u32, rest: usize) -> Option<Activity<'a>> {
    /// # Safety
    /// The struct is the beginning of the record.
    unsafe fn view<T: Copy>(record: *const u32, rest: usize) -> Option<T> {
        // SAFETY: the caller's promise; the size is checked.
        (rest >= size_of::<T>()).then(|| unsafe { record.cast::<T>().read_unaligned() })
    }
    // SAFETY: the caller's promise: the kind determines the type.
    unsafe {
        match view::<u32>(record, rest)? {
            CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL => {
                let kernel: CUpti_ActivityKernel = view(record, rest)?;
                let name = if kernel.name.is_null() {
                    c""
                } else {
                    CStr::from_ptr(kernel.name)
                };
                Some(Activity::Kernel(decode_kernel(&kernel, name)))
            }
            CUPTI_ACTIVITY_KIND_MEMCPY => Some(Activity::Copy(decode_copy(&view(record, rest)?))),
            CUPTI_ACTIVITY_KIND_MEMCPY2 => {
                Some(Activity::Copy(decode_peer_copy(&view(record, rest)?)))
            }
            CUPTI_ACTIVITY_KIND_MEMSET => Some(Activity::Copy(decode_fill(&view(record, rest)?))),
            _ => None,
        }
    }
}

/// The fields that the records of all activities have.
macro_rules! run {
    ($record:ident) => {
        Run {
            correlation: $record.correlationId,
            start: $record.start,
            end: $record.end,
            device: $record.deviceId,
            context: $record.contextId,
            stream: $record.streamId,
        }
    };
}

fn decode_kernel<'a>(kernel: &CUpti_ActivityKernel, name: &'a CStr) -> KernelRun<'a> {
    let positive = |number: i32| number.max(0) as u32;
    KernelRun {
        run: run!(kernel),
        name,
        grid: kernel.grid.map(positive),
        block: kernel.block.map(positive),
        registers: kernel.registersPerThread,
        static_shared: positive(kernel.staticSharedMemory),
        dynamic_shared: positive(kernel.dynamicSharedMemory),
        local: kernel.localMemoryPerThread,
    }
}

fn decode_copy(copy: &CUpti_ActivityMemcpy) -> CopyRun {
    use memcpy_kind::*;
    let device = Side::Device(copy.deviceId);
    let (source, destination) = match copy.copyKind {
        HTOD | HTOA => (Side::Host, device),
        DTOH | ATOH => (device, Side::Host),
        ATOA | ATOD | DTOA | DTOD => (device, device),
        HTOH => (Side::Host, Side::Host),
        // Copies between devices have records of another kind.
        _ => (Side::Unknown, Side::Unknown),
    };
    CopyRun {
        run: run!(copy),
        runtime_correlation: copy.runtimeCorrelationId,
        bytes: copy.bytes,
        source: Some(source),
        destination,
    }
}

fn decode_peer_copy(copy: &CUpti_ActivityMemcpyPtoP) -> CopyRun {
    CopyRun {
        run: run!(copy),
        runtime_correlation: copy.correlationId,
        bytes: copy.bytes,
        source: Some(Side::Device(copy.srcDeviceId)),
        destination: Side::Device(copy.dstDeviceId),
    }
}

fn decode_fill(fill: &CUpti_ActivityMemset) -> CopyRun {
    CopyRun {
        run: run!(fill),
        runtime_correlation: fill.correlationId,
        bytes: fill.bytes,
        source: None,
        destination: Side::Device(fill.deviceId),
    }
}
