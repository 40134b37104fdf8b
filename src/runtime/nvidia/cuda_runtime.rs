//! Implements [`Runtime`] for CUDA.

use super::driver::{self, Driver};
use super::image::TABLE;
use super::registry::{self, Module, module_at, registry};
use super::transfer::{self, LARGEST_BATCH, Part};
use super::{handles, wait, without_cupti};
use crate::gpu::copy_layout::sums::Sums;
use crate::gpu::runtime::*;
use crate::support::alloc;
use cuda_abi::driver::*;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

/// The name of the bounds table that each module seems to have.
const TABLE_NAME: &str = "__llvm_profile_sections";

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
        let modules = registry.readable();
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

    /// Splits a range of virtual addresses: copies constant bytes from the image to `to`, and returns the parts to read from
    /// the device.
    fn split(
        &self,
        module: &Module,
        range: &Range<u64>,
        to: &mut [u8],
    ) -> Result<Vec<CounterPart>, Error> {
        let image = &module.image;
        let head = image.base..image.base + image.head.len() as u64;
        let known = range.start.max(head.start)..range.end.min(head.end);
        if known.start < known.end {
            let from = (known.start - image.base) as usize..(known.end - image.base) as usize;
            let at = (known.start - range.start) as usize;
            to[at..at + from.len()].copy_from_slice(&image.head[from]);
        }
        let counters = self.counters_in(module, range)?;
        let part = |(n, address): (usize, CUdeviceptr)| {
            let of = &image.counters[n].range;
            let part = of.start.max(range.start)..of.end.min(range.end);
            let start = part.start - of.start;
            CounterPart {
                n,
                start,
                to: (part.start - range.start) as usize..(part.end - range.start) as usize,
                device: address + start..address + start + (part.end - part.start),
            }
        };
        Ok(counters.into_iter().map(part).collect())
    }

    /// Adds the copies of modules up.
    fn sums(
        &self,
        modules: impl Iterator<Item = Module>,
        limit: Duration,
    ) -> IdMap<ExecutableId, Result<Sums, Error>> {
        let (mut sums, mut parts, mut owners) = (IdMap::default(), Vec::new(), Vec::new());
        for module in modules {
            let Some(copies) = module.copies else {
                continue;
            };
            let zeros = Sums::new(copies.layout).map_err(|_| Error::OutOfMemory);
            if sums.insert(module.executable, zeros).is_some() {
                continue;
            }
            let Range { start, end } = copies.range();
            for at in (start..end).step_by(LARGEST_BATCH) {
                parts.push(Part {
                    context: module.context,
                    range: at..end.min(at + LARGEST_BATCH as u64),
                });
                owners.push((module.executable, (at - start) as usize));
            }
        }
        transfer::read(&parts, limit, &mut |n, bytes| {
            let (executable, offset) = owners[n];
            if let Some(of) = sums.get_mut(&executable)
                && let Ok(sums) = of
            {
                match bytes {
                    Ok(bytes) => sums.take(offset, bytes),
                    Err(error) => *of = Err(error),
                }
            }
        });
        sums
    }
}

/// A part of a variable with counters.
struct CounterPart {
    /// The index of the variable in the image.
    n: usize,
    /// Where the part begins in the variable, bytes.
    start: u64,
    /// Where it belongs in the piece that is read.
    to: Range<usize>,
    device: Range<CUdeviceptr>,
}

/// The module that contains virtual addresses.
fn module_of(range: &Range<u64>) -> Result<Module, Error> {
    let module = registry().module(module_at(range.start)).cloned();
    module.ok_or(Error::Unloaded)
}

/// [`prepare`](super::prepare) sets up the copies of counters, not a drain. Streams are destroyed with their contexts, so there
/// is nothing to release.
impl Runtime for Cuda {
    fn name(&self) -> &'static str {
        "CUDA"
    }

    fn agents(&self) -> Result<Agents, Error> {
        let modules: Vec<Module> = registry().readable().cloned().collect();
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
        let modules: Vec<Module> = registry().readable().cloned().collect();
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

    fn origin(&self, executable: ExecutableId, _agent: AgentId) -> Option<String> {
        let registry = registry();
        let module = registry.module(executable)?;
        Some(format!("CUDA module {}", module.id))
    }

    fn build_id(&self, executable: ExecutableId) -> Option<[u8; 16]> {
        let registry = registry();
        let module = registry.module(executable);
        // Without a module, the drain of the executable fails when it reads the counters.
        Some(module.map_or([0; 16], |module| module.image.id))
    }

    fn may_be_unused(&self, executable: ExecutableId) -> bool {
        let registry = registry();
        let module = registry.module(executable);
        module.is_some_and(|module| module.may_be_unused)
    }

    fn largest_piece(&self, _agent: AgentId, _total: usize) -> usize {
        LARGEST_BATCH
    }

    fn read(
        &self,
        _agent: AgentId,
        pieces: &[Range<u64>],
        limit: Duration,
        take: Take,
    ) -> Result<(), Error> {
        let mut read = Vec::with_capacity(pieces.len());
        let (mut parts, mut owners) = (Vec::new(), Vec::new());
        for (n, piece) in pieces.iter().enumerate() {
            let size = (piece.end - piece.start) as usize;
            let zeroed = alloc::zeroed(size).map_err(|_| Error::OutOfMemory);
            let split = zeroed.and_then(|mut bytes| {
                let module = module_of(piece)?;
                let counters = self.split(&module, piece, &mut bytes)?;
                Ok((bytes, module, counters))
            });
            read.push(split.map(|(bytes, module, counters)| {
                for counters in counters {
                    parts.push(Part {
                        context: module.context,
                        range: counters.device.clone(),
                    });
                    owners.push((n, module.clone(), counters));
                }
                bytes
            }));
        }
        let sums = self.sums(owners.iter().map(|(_, module, _)| module.clone()), limit);
        transfer::read(&parts, limit, &mut |part, bytes| {
            let (n, module, counters) = &owners[part];
            let Ok(piece) = &mut read[*n] else {
                return;
            };
            let to = &mut piece[counters.to.clone()];
            let sums = sums.get(&module.executable);
            let result = bytes.and_then(|bytes| {
                to.copy_from_slice(bytes);
                if let (Some(copies), Some(sums)) = (&module.copies, sums) {
                    let sums = sums.as_ref().map_err(Error::clone)?;
                    copies.add(sums, counters.n, counters.start, to);
                }
                Ok(())
            });
            if let Err(error) = result {
                read[*n] = Err(error);
            }
        });
        for (n, result) in read.into_iter().enumerate() {
            match result {
                Ok(bytes) => take(n, Ok(&bytes)),
                Err(error) => take(n, Err(error)),
            }
        }
        Ok(())
    }

    fn fill(
        &self,
        _agent: AgentId,
        ranges: &[(Range<u64>, u8)],
        limit: Duration,
    ) -> Result<Vec<(usize, Error)>, Error> {
        let (mut parts, mut owners) = (Vec::new(), Vec::new());
        let mut failed = BTreeMap::new();
        for (n, (range, value)) in ranges.iter().enumerate() {
            let found = module_of(range).and_then(|module| {
                let counters = self.counters_in(&module, range)?;
                Ok((module, counters))
            });
            let (module, counters) = match found {
                Ok(found) => found,
                Err(error) => {
                    failed.insert(n, error);
                    continue;
                }
            };
            let counters = counters.into_iter().map(|(variable, address)| {
                let Range { start, end } = module.image.counters[variable].range;
                address..address + (end - start)
            });
            let copies = module.copies.as_ref().filter(|_| *value == 0);
            for range in counters.chain(copies.map(|copies| copies.range())) {
                let context = module.context;
                parts.push((Part { context, range }, *value));
                owners.push(n);
            }
        }
        for (part, error) in transfer::fill(self.driver, &parts, limit) {
            failed.entry(owners[part]).or_insert(error);
        }
        Ok(failed.into_iter().collect())
    }

    /// Copies read the GPU's L2 cache, where atomic additions are made: there is nothing to write back.
    fn write_back(&self, _agent: AgentId, _limit: Duration) -> Result<bool, Error> {
        Ok(true)
    }

    fn wait(&self, _all: bool, limit: Duration) -> Box<dyn Wait> {
        wait::begin(self.driver, limit)
    }
}
