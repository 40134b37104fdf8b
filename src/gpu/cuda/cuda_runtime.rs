//! Implements [`Runtime`] for CUDA.

use super::copies::{Copies, Sums};
use super::driver::{self, Driver, check};
use super::image::TABLE;
use super::registry::{self, Module, module_at, registry};
use super::{handles, wait, without_cupti};
use crate::gpu::runtime::*;
use cuda_abi::driver::*;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::ops::Range;
use std::time::{Duration, Instant};

pub use super::registry::is_module;

/// The largest piece of a read, bytes. Its memory is allocated for each read.
const LARGEST_PIECE: usize = 16 << 20;
/// The pause between two polls of a stream.
const POLL: Duration = Duration::from_micros(20);
/// The name of the bounds table that each module seems to have.
const TABLE_NAME: &str = "__llvm_profile_sections";
const UNSUPPORTED: Error = Error::Unsupported("copies of counters", "CUDA");

/// The driver.
#[derive(Clone, Copy)]
pub struct Cuda {
    driver: &'static Driver,
    _included: Included,
}

/// Has no values in the archive for HIP (tools/build-runtime), so that the compiler removes all code for CUDA.
#[cfg(any(feature = "cuda", feature = "shared", not(feature = "interpose")))]
#[derive(Clone, Copy)]
struct Included(());
#[cfg(not(any(feature = "cuda", feature = "shared", not(feature = "interpose"))))]
#[derive(Clone, Copy)]
enum Included {}

#[cfg(any(feature = "cuda", feature = "shared", not(feature = "interpose")))]
impl Cuda {
    fn new(driver: &'static Driver) -> Cuda {
        Cuda {
            driver,
            _included: Included(()),
        }
    }
}

/// The driver, if it is loaded. Searched for at each call until it is found.
#[cfg(any(feature = "cuda", feature = "shared", not(feature = "interpose")))]
pub fn find() -> Option<Result<Cuda, Error>> {
    let driver = super::driver::find()?;
    Some(driver.map(Cuda::new))
}

/// The driver, if it was found before.
#[cfg(any(feature = "cuda", feature = "shared", not(feature = "interpose")))]
pub fn known() -> Option<Cuda> {
    super::driver::known().map(Cuda::new)
}

/// Nothing, in this build.
#[cfg(not(any(feature = "cuda", feature = "shared", not(feature = "interpose"))))]
pub fn find() -> Option<Result<Cuda, Error>> {
    None
}

/// Nothing, in this build.
#[cfg(not(any(feature = "cuda", feature = "shared", not(feature = "interpose"))))]
pub fn known() -> Option<Cuda> {
    None
}

impl Cuda {
    /// Whether the driver is initialized.
    pub fn is_up(&self) -> bool {
        let _own = driver::OwnCalls::begin();
        let mut count = 0;
        // SAFETY: writes the number.
        unsafe { (self.driver.cuDeviceGetCount)(&raw mut count) == CUresult::SUCCESS }
    }

    /// The instrumented modules that are loaded, in the order of loading.
    pub fn executables(&self) -> Vec<ExecutableId> {
        without_cupti::find_modules();
        let registry = registry();
        let modules = registry.modules.iter();
        modules.map(|module| module.executable).collect()
    }

    /// Why images could not be read, since the last call.
    pub fn take_damaged(&self) -> Vec<String> {
        std::mem::take(&mut registry().damaged)
    }

    fn agent_of(&self, module: &Module) -> Result<AgentId, Error> {
        let device = handles::device_of(self.driver, module.context)?;
        Ok(registry::agent(device, &module.image.arch))
    }

    fn segment(&self, module: &Module) -> Result<Segment, Error> {
        let range = module.image.range();
        Ok(Segment {
            agent: self.agent_of(module)?,
            executable: module.executable,
            base: range.start,
            size: range.end - range.start,
        })
    }

    /// Waits until the stream is idle. False at the limit.
    fn wait_for(&self, stream: CUstream, end: Instant) -> Result<bool, Error> {
        loop {
            // SAFETY: devprof's stream of the current context.
            match unsafe { (self.driver.cuStreamQuery)(stream) } {
                CUresult::NOT_READY if Instant::now() >= end => return Ok(false),
                CUresult::NOT_READY => std::thread::sleep(POLL),
                result => return check("cuStreamQuery", result).map(|()| true),
            }
        }
    }

    /// The counters of a module that overlap with virtual addresses: the index and the device address of each.
    fn counters_in(
        &self,
        module: &Module,
        range: &Range<u64>,
    ) -> Result<Vec<(usize, CUdeviceptr)>, Error> {
        let all = &module.image.counters;
        let first = all.partition_point(|counters| counters.range.end <= range.start);
        let last = all.partition_point(|counters| counters.range.start < range.end);
        if first >= last {
            return Ok(Vec::new());
        }
        let located = handles::locate(self.driver, module.executable)?;
        Ok((first..last).map(|n| (n, located.addresses[n])).collect())
    }

    /// Reads one range of virtual addresses into `to`. `sums`: what the module's copies add to the counters.
    fn read_range(
        &self,
        module: &Module,
        range: &Range<u64>,
        sums: Option<&Sums>,
        end: Instant,
        to: &mut [u8],
    ) -> Result<(), Error> {
        let image = &module.image;
        let head = image.base..image.base + image.head.len() as u64;
        let known = range.start.max(head.start)..range.end.min(head.end);
        if known.start < known.end {
            let from = (known.start - image.base) as usize..(known.end - image.base) as usize;
            let at = (known.start - range.start) as usize;
            to[at..at + from.len()].copy_from_slice(&image.head[from]);
        }
        let counters = self.counters_in(module, range)?;
        if counters.is_empty() {
            return Ok(());
        }
        let (_current, stream) = handles::enter(self.driver, module.context)?;
        // The driver refuses a copy of more than one variable.
        let (mut ranges, mut parts) = (Vec::new(), Vec::new());
        for (n, address) in counters {
            let of = &image.counters[n].range;
            let part = of.start.max(range.start)..of.end.min(range.end);
            let start = part.start - of.start;
            let size = part.end - part.start;
            ranges.push(address + start..address + start + size);
            parts.push((n, start, (part.start - range.start) as usize, size as usize));
        }
        let read = self.copy(&ranges, stream, end)?;
        for ((n, start, at, size), bytes) in parts.into_iter().zip(read) {
            let to = &mut to[at..at + size];
            to.copy_from_slice(&bytes);
            if let (Some(copies), Some(sums)) = (&module.copies, sums) {
                copies.add(sums, n, start, to);
            }
        }
        Ok(())
    }

    /// Copies ranges of device addresses, on devprof's stream of the current context.
    fn copy(
        &self,
        ranges: &[Range<CUdeviceptr>],
        stream: CUstream,
        end: Instant,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let mut copies = Vec::new();
        for range in ranges {
            let mut bytes = vec![0; (range.end - range.start) as usize];
            // SAFETY: memory of that size, which is kept until the stream is idle; a part of a variable, or of the
            // copies of counters.
            let result = unsafe {
                let to = bytes.as_mut_ptr().cast();
                (self.driver.cuMemcpyDtoHAsync_v2)(to, range.start, bytes.len(), stream)
            };
            copies.push(bytes);
            if let Err(error) = check("cuMemcpyDtoHAsync", result) {
                // SAFETY: devprof's stream. Earlier copies write to memory that is freed below.
                unsafe { (self.driver.cuStreamSynchronize)(stream) };
                return Err(error);
            }
        }
        if !self.wait_for(stream, end)? {
            // The device may still write to this memory.
            std::mem::forget(copies);
            return Err(Error::TimedOut("cuMemcpyDtoHAsync"));
        }
        Ok(copies)
    }

    /// The sums of a module's copies.
    fn sums(&self, module: &Module, copies: &Copies, end: Instant) -> Result<Sums, Error> {
        let (_current, stream) = handles::enter(self.driver, module.context)?;
        copies.sums(|range, to| {
            for bytes in self.copy(&[range], stream, end)? {
                to.copy_from_slice(&bytes);
            }
            Ok(())
        })
    }
}

/// The module that contains virtual addresses.
fn module_of(range: &Range<u64>) -> Result<Module, Error> {
    let module = registry().module(module_at(range.start)).cloned();
    module.ok_or(Error::Unloaded)
}

impl Runtime for Cuda {
    fn name(&self) -> &'static str {
        "CUDA"
    }

    fn agents(&self) -> Result<Agents, Error> {
        let modules = registry().modules.clone();
        let mut gpus = BTreeMap::new();
        for module in &modules {
            // If that fails, the search for segments fails, too, and reports it.
            if let Ok(id) = self.agent_of(module) {
                let name = module.image.arch.clone();
                gpus.insert(id, Agent { id, name });
            }
        }
        Ok(Agents {
            gpus: gpus.into_values().collect(),
            unknown: Vec::new(),
        })
    }

    fn segments(&self) -> Result<Segments, Error> {
        let modules = registry().modules.clone();
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        for module in &modules {
            match self.segment(module) {
                Ok(segment) => found.push(segment),
                Err(error) => failed.push((module.executable, error)),
            }
        }
        Ok(Segments { found, failed })
    }

    fn segments_of(&self, executable: ExecutableId) -> Result<Vec<Segment>, Error> {
        let module = registry().module(executable).cloned();
        module.iter().map(|module| self.segment(module)).collect()
    }

    fn variables(
        &self,
        executable: ExecutableId,
        _agent: AgentId,
        is_wanted: fn(&[u8]) -> bool,
    ) -> Result<Vec<Variable>, Error> {
        let module = registry().module(executable).cloned();
        let table = module.map(|module| Variable {
            name: TABLE_NAME.to_owned(),
            address: module.image.base,
            size: TABLE,
        });
        let wanted = table.filter(|table| is_wanted(table.name.as_bytes()));
        Ok(wanted.into_iter().collect())
    }

    /// None: [`prepare`](super::prepare) sets up the copies of counters.
    fn variable(
        &self,
        _executable: ExecutableId,
        _agent: AgentId,
        _name: &CStr,
    ) -> Result<Option<Variable>, Error> {
        Ok(None)
    }

    fn device_addresses(
        &self,
        _executable: ExecutableId,
        _range: &Range<u64>,
    ) -> Result<Vec<(Range<u64>, u64)>, Error> {
        Err(UNSUPPORTED)
    }

    fn origin(&self, executable: ExecutableId, _agent: AgentId) -> Option<String> {
        let registry = registry();
        let module = registry.module(executable)?;
        Some(format!("CUDA module {}", module.id))
    }

    fn may_be_unused(&self, executable: ExecutableId) -> bool {
        let registry = registry();
        let module = registry.module(executable);
        module.is_some_and(|module| module.may_be_unused)
    }

    fn largest_piece(&self, _agent: AgentId, _total: usize) -> usize {
        LARGEST_PIECE
    }

    fn read(
        &self,
        _agent: AgentId,
        pieces: &[Range<u64>],
        limit: Duration,
        take: Take,
    ) -> Result<(), Error> {
        let end = Instant::now() + limit;
        let mut bytes = Vec::new();
        // The sums of the latest module that has copies.
        let mut latest: Option<(ExecutableId, Sums)> = None;
        for (n, piece) in pieces.iter().enumerate() {
            bytes.clear();
            bytes.resize((piece.end - piece.start) as usize, 0);
            let mut read = || {
                let module = module_of(piece)?;
                let has_counters = piece.end > module.image.base + module.image.head.len() as u64;
                let sums = match &module.copies {
                    Some(copies) if has_counters => {
                        let is_known = latest.as_ref().is_some_and(|of| of.0 == module.executable);
                        if !is_known {
                            let sums = self.sums(&module, copies, end)?;
                            latest = Some((module.executable, sums));
                        }
                        latest.as_ref().map(|(_, sums)| sums)
                    }
                    _ => None,
                };
                self.read_range(&module, piece, sums, end, &mut bytes)
            };
            let result = read();
            take(n, result.map(|()| &bytes[..]));
        }
        Ok(())
    }

    fn fill(
        &self,
        _agent: AgentId,
        ranges: &[(Range<u64>, u8)],
        limit: Duration,
    ) -> Result<Vec<(usize, Error)>, Error> {
        let end = Instant::now() + limit;
        let mut failed = Vec::new();
        for (n, (range, value)) in ranges.iter().enumerate() {
            let fill = || {
                let module = module_of(range)?;
                let counters = self.counters_in(&module, range)?;
                let (_current, stream) = handles::enter(self.driver, module.context)?;
                for (n, address) in counters {
                    let size = module.image.counters[n].range.clone().count();
                    // SAFETY: a variable of that size.
                    let result =
                        unsafe { (self.driver.cuMemsetD8Async)(address, *value, size, stream) };
                    check("cuMemsetD8Async", result)?;
                }
                if let (Some(copies), 0) = (&module.copies, *value) {
                    copies.clear(self.driver, stream)?;
                }
                match self.wait_for(stream, end)? {
                    true => Ok(()),
                    false => Err(Error::TimedOut("cuMemsetD8Async")),
                }
            };
            failed.extend(fill().err().map(|error| (n, error)));
        }
        Ok(failed)
    }

    fn write(
        &self,
        _agent: AgentId,
        _address: u64,
        _bytes: &[u8],
        _limit: Duration,
    ) -> Result<(), Error> {
        Err(UNSUPPORTED)
    }

    fn units(&self, _agent: &Agent) -> Result<Option<Units>, Error> {
        Ok(None)
    }

    fn allocate(
        &self,
        _executable: ExecutableId,
        _agent: AgentId,
        _size: usize,
    ) -> Result<u64, Error> {
        Err(UNSUPPORTED)
    }

    fn free(&self, _address: u64) {}

    /// Copies read the GPU's L2 cache, where atomic additions are made: there is nothing to write back.
    fn write_back(&self, _agent: AgentId, _limit: Duration) -> Result<bool, Error> {
        Ok(true)
    }

    fn wait(&self, _all: bool, limit: Duration) -> Box<dyn Wait> {
        wait::begin(self.driver, limit)
    }

    /// Streams are destroyed with their contexts.
    fn release(&self) {}
}
