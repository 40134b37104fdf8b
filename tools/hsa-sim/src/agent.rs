//! Agents and instruction set architectures: one CPU, and any number of GPUs, each a [`Gpu`] with memory of its own.

use crate::l2::L2;
use crate::profiling;
use crate::runtime::{put, put_bytes, status, with};
use crate::settings::Settings;
use gpu_model::dispatch::Gpu;
use gpu_model::memory::Memory;
use hsa_abi::*;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;

/// A GPU target.
#[derive(Debug, PartialEq, Eq)]
pub struct Target {
    pub name: &'static str,
    /// `EF_AMDGPU_MACH` in a code object's ELF flags.
    pub mach: u32,
    /// `HSA_AMD_AGENT_INFO_CHIP_ID`.
    chip: u32,
}

/// `EF_AMDGPU_MACH_AMDGCN_GFX11_GENERIC`: code that runs on every target here.
pub const GENERIC_MACH: u32 = 0x54;

impl Target {
    /// What the model runs: these have gfx1100's instruction set.
    pub const ALL: &[Target] = &[
        Target {
            name: "gfx1100",
            mach: 0x41,
            chip: 0x744c,
        },
        Target {
            name: "gfx1101",
            mach: 0x46,
            chip: 0x747e,
        },
        Target {
            name: "gfx1102",
            mach: 0x47,
            chip: 0x7480,
        },
        Target {
            name: "gfx1103",
            mach: 0x44,
            chip: 0x15bf,
        },
    ];

    /// By name.
    pub fn find(name: &str) -> Option<&'static Target> {
        Target::ALL.iter().find(|target| target.name == name)
    }

    fn isa(&self) -> IsaHandle {
        let number = Target::ALL.iter().position(|t| t == self);
        IsaHandle(ISAS + number.map_or(0, |n| n as u64))
    }
}

const AGENTS: u64 = 0xa6e0_0000;
const ISAS: u64 = 0x15a0_0000;
/// The architecture that all of them run.
const GENERIC_ISA: IsaHandle = IsaHandle(ISAS + 0x100);
const GENERIC: &str = "gfx11-generic";
const WAVEFRONTS: u64 = 0x3a7e_0000;
const ISA_PREFIX: &str = "amdgcn-amd-amdhsa--";

/// A GPU agent.
pub struct GpuAgent {
    pub target: &'static Target,
    pub gpu: Arc<Gpu>,
    /// `None`: its memory is coherent.
    pub l2: Option<Arc<L2>>,
}

/// All agents: number 0 is the CPU, the GPUs follow.
pub struct Agents {
    pub gpus: Vec<GpuAgent>,
}

impl Agents {
    /// The agents that the settings ask for.
    pub fn new(settings: &Settings) -> Agents {
        let gpus = settings.gpus.iter().map(|&target| GpuAgent {
            target,
            // A GPU's addresses are the process's.
            gpu: Arc::new(Gpu::new(Memory::new(0))),
            l2: settings.write_back.then(Arc::default),
        });
        Agents {
            gpus: gpus.collect(),
        }
    }

    /// CPU and GPUs.
    pub fn count(&self) -> usize {
        self.gpus.len() + 1
    }

    /// An agent's number.
    pub fn number(&self, handle: AgentHandle) -> Result<usize, Status> {
        let number = handle.0.wrapping_sub(AGENTS);
        if number < self.count() as u64 {
            Ok(number as usize)
        } else {
            Err(Status::INVALID_AGENT)
        }
    }

    /// The GPU that a handle names.
    pub fn gpu(&self, handle: AgentHandle) -> Result<(usize, &GpuAgent), Status> {
        match self.number(handle)? {
            0 => Err(Status::INVALID_AGENT),
            number => Ok((number, &self.gpus[number - 1])),
        }
    }
}

/// The handle of the agent with this number.
pub fn handle(number: usize) -> AgentHandle {
    AgentHandle(AGENTS + number as u64)
}

/// Calls `callback` for each handle; the first status that is not success ends it.
///
/// # Safety
/// As the function's that has the callback.
pub unsafe fn visit<H>(
    handles: Result<Vec<H>, Status>,
    callback: unsafe extern "C" fn(H, *mut c_void) -> Status,
    data: *mut c_void,
) -> Status {
    let handles = match handles {
        Ok(handles) => handles,
        Err(status) => return status,
    };
    for handle in handles {
        // SAFETY: the caller's promise.
        let status = unsafe { callback(handle, data) };
        if status != Status::SUCCESS {
            return status;
        }
    }
    Status::SUCCESS
}

/// See `hsa.h`.
///
/// # Safety
/// As `hsa.h` says.
pub unsafe fn hsa_iterate_agents(callback: AgentCallback, data: *mut c_void) -> Status {
    let all = with(|state| Ok((0..state.agents.count()).map(handle).collect()));
    // SAFETY: the caller's promise.
    unsafe { visit(all, callback, data) }
}

/// A name in a field of 64 bytes.
fn name64(text: &str) -> [u8; 64] {
    let mut name = [0; 64];
    name[..text.len()].copy_from_slice(text.as_bytes());
    name
}

/// See `hsa.h` and `hsa_ext_amd.h`.
///
/// # Safety
/// `value` has room for the attribute.
pub unsafe fn hsa_agent_get_info(agent: AgentHandle, attribute: u32, value: *mut c_void) -> Status {
    let found = with(|state| {
        let number = state.agents.number(agent)?;
        let target = (number > 0).then(|| state.agents.gpus[number - 1].target);
        Ok((number, target))
    });
    let (number, target) = match found {
        Ok(found) => found,
        Err(status) => return status,
    };
    let is_gpu = target.is_some();
    let gpu_only = |n: u32| if is_gpu { n } else { 0 };
    // SAFETY: the caller's promise: room for the attribute's type, which each line below has from the headers.
    status(unsafe {
        match attribute {
            HSA_AGENT_INFO_NAME => match (target, crate::plan::take_lie()) {
                (_, Some(lie)) => put_bytes(value.cast(), &name64(&format!("gfx{lie}"))),
                (Some(target), None) => put_bytes(value.cast(), &name64(target.name)),
                (None, None) => put_bytes(value.cast(), &name64("CPU")),
            },
            HSA_AGENT_INFO_VENDOR_NAME => {
                put_bytes(value.cast(), &name64(if is_gpu { "AMD" } else { "CPU" }))
            }
            HSA_AGENT_INFO_FEATURE => {
                put(value.cast(), gpu_only(HSA_AGENT_FEATURE_KERNEL_DISPATCH))
            }
            HSA_AGENT_INFO_MACHINE_MODEL => put(value.cast(), HSA_MACHINE_MODEL_LARGE),
            HSA_AGENT_INFO_PROFILE => put(
                value.cast(),
                if is_gpu {
                    HSA_PROFILE_BASE
                } else {
                    HSA_PROFILE_FULL
                },
            ),
            HSA_AGENT_INFO_DEFAULT_FLOAT_ROUNDING_MODE => {
                put(value.cast(), HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR)
            }
            HSA_AGENT_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES => {
                put(value.cast(), gpu_only(HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR))
            }
            HSA_AGENT_INFO_FAST_F16_OPERATION => put(value.cast(), is_gpu),
            HSA_AGENT_INFO_WAVEFRONT_SIZE => put(value.cast(), gpu_only(32)),
            HSA_AGENT_INFO_WORKGROUP_MAX_DIM => put(value.cast(), [gpu_only(1024) as u16; 3]),
            HSA_AGENT_INFO_WORKGROUP_MAX_SIZE => put(value.cast(), gpu_only(1024)),
            HSA_AGENT_INFO_GRID_MAX_DIM => {
                let most = gpu_only(i32::MAX as u32);
                put(
                    value.cast(),
                    Dim3 {
                        x: most,
                        y: most.min(0xffff),
                        z: most.min(0xffff),
                    },
                )
            }
            HSA_AGENT_INFO_GRID_MAX_SIZE => put(value.cast(), gpu_only(u32::MAX)),
            HSA_AGENT_INFO_FBARRIER_MAX_SIZE => put(value.cast(), gpu_only(32)),
            HSA_AGENT_INFO_QUEUES_MAX => put(value.cast(), gpu_only(128)),
            HSA_AGENT_INFO_QUEUE_MIN_SIZE => {
                put(value.cast(), gpu_only(crate::queue::LEAST_PACKETS))
            }
            HSA_AGENT_INFO_QUEUE_MAX_SIZE => {
                put(value.cast(), gpu_only(crate::queue::MOST_PACKETS))
            }
            HSA_AGENT_INFO_QUEUE_TYPE => put(value.cast(), HSA_QUEUE_TYPE_MULTI),
            HSA_AGENT_INFO_NODE | HSA_AMD_AGENT_INFO_DRIVER_NODE_ID => {
                put(value.cast(), number as u32)
            }
            HSA_AGENT_INFO_DEVICE => put(
                value.cast(),
                if is_gpu {
                    HSA_DEVICE_TYPE_GPU
                } else {
                    HSA_DEVICE_TYPE_CPU
                },
            ),
            HSA_AGENT_INFO_CACHE_SIZE => put(value.cast(), [0u32; 4]),
            HSA_AGENT_INFO_ISA => put(
                value.cast(),
                target.map_or(IsaHandle::default(), Target::isa),
            ),
            HSA_AGENT_INFO_EXTENSIONS => put_bytes(value.cast(), &crate::system::extensions()),
            HSA_AGENT_INFO_VERSION_MAJOR => put(value.cast(), 1u16),
            HSA_AGENT_INFO_VERSION_MINOR => put(value.cast(), 1u16),
            HSA_AMD_AGENT_INFO_CHIP_ID => put(value.cast(), target.map_or(0, |target| target.chip)),
            HSA_AMD_AGENT_INFO_CACHELINE_SIZE => put(value.cast(), 64u32),
            HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT => put(value.cast(), 1u32),
            HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY => put(value.cast(), 100u32),
            HSA_AMD_AGENT_INFO_BDFID => put(value.cast(), gpu_only((number as u32) << 8)),
            HSA_AMD_AGENT_INFO_PRODUCT_NAME => put_bytes(value.cast(), &name64("hsa-sim")),
            HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU => put(value.cast(), gpu_only(32)),
            HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU => put(value.cast(), gpu_only(2)),
            HSA_AMD_AGENT_INFO_DOMAIN => put(value.cast(), 0u32),
            HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES => put(value.cast(), is_gpu),
            HSA_AMD_AGENT_INFO_UUID => {
                let kind = if is_gpu { "GPU" } else { "CPU" };
                let mut uuid = format!("{kind}-{number:016x}").into_bytes();
                uuid.push(0);
                put_bytes(value.cast(), &uuid)
            }
            HSA_AMD_AGENT_INFO_MEMORY_AVAIL => put(value.cast(), crate::memory::POOL_BYTES as u64),
            HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY => put(value.cast(), profiling::GPU_FREQUENCY),
            HSA_AMD_AGENT_INFO_DRIVER_UID => put(value.cast(), number as u32),
            HSA_AMD_AGENT_INFO_NEAREST_CPU => put(value.cast(), handle(0)),
            HSA_AMD_AGENT_INFO_CLOCK_COUNTERS => {
                if value.is_null() {
                    Err(Status::INVALID_ARGUMENT)
                } else {
                    value
                        .cast::<ClockCounters>()
                        .write_unaligned(profiling::counters());
                    Ok(())
                }
            }
            _ => Err(Status::INVALID_ARGUMENT),
        }
    })
}

/// See `hsa.h`. No cache is simulated.
///
/// # Safety
/// Always sound.
pub unsafe fn hsa_agent_iterate_caches(
    agent: AgentHandle,
    _: CacheCallback,
    _: *mut c_void,
) -> Status {
    status(with(|state| state.agents.number(agent).map(|_| ())))
}

/// The name of an architecture.
fn isa(handle: IsaHandle) -> Result<&'static str, Status> {
    if handle == GENERIC_ISA {
        return Ok(GENERIC);
    }
    let number = handle.0.wrapping_sub(ISAS);
    usize::try_from(number)
        .ok()
        .and_then(|number| Target::ALL.get(number))
        .map(|target| target.name)
        .ok_or(Status::INVALID_ISA)
}

/// See `hsa.h`.
///
/// # Safety
/// `name` is a C string, `out` may be written.
pub unsafe fn hsa_isa_from_name(name: *const c_char, out: *mut IsaHandle) -> Status {
    if name.is_null() {
        return Status::INVALID_ARGUMENT;
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    let target = name
        .to_str()
        .ok()
        .and_then(|name| name.strip_prefix(ISA_PREFIX))
        .and_then(|name| match name {
            GENERIC => Some(GENERIC_ISA),
            name => Target::find(name).map(Target::isa),
        });
    status(match with(|_| Ok(target)) {
        Err(status) => Err(status),
        Ok(None) => Err(Status::INVALID_ISA_NAME),
        // SAFETY: the caller's promise.
        Ok(Some(isa)) => unsafe { put(out, isa) },
    })
}

/// See `hsa.h`.
///
/// # Safety
/// As `hsa.h` says.
pub unsafe fn hsa_agent_iterate_isas(
    agent: AgentHandle,
    callback: IsaCallback,
    data: *mut c_void,
) -> Status {
    let isas = with(|state| {
        let number = state.agents.number(agent)?;
        Ok(match number.checked_sub(1) {
            Some(n) => vec![state.agents.gpus[n].target.isa(), GENERIC_ISA],
            None => Vec::new(),
        })
    });
    // SAFETY: the caller's promise.
    unsafe { visit(isas, callback, data) }
}

/// See `hsa.h`. There is one call convention, 0.
///
/// # Safety
/// `value` has room for the attribute.
pub unsafe fn hsa_isa_get_info(
    handle: IsaHandle,
    attribute: u32,
    index: u32,
    value: *mut c_void,
) -> Status {
    if index != 0 {
        return Status::INVALID_INDEX;
    }
    match attribute {
        // SAFETY: the caller's promise.
        HSA_ISA_INFO_CALL_CONVENTION_COUNT => status(unsafe { put(value.cast(), 1u32) }),
        HSA_ISA_INFO_CALL_CONVENTION_INFO_WAVEFRONT_SIZE => {
            // SAFETY: the caller's promise.
            status(unsafe { put(value.cast(), 32u32) })
        }
        // SAFETY: the caller's promise.
        _ => unsafe { hsa_isa_get_info_alt(handle, attribute, value) },
    }
}

/// See `hsa.h`.
///
/// # Safety
/// `value` has room for the attribute.
pub unsafe fn hsa_isa_get_info_alt(
    handle: IsaHandle,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    let name = match with(|_| isa(handle)) {
        Ok(name) => name,
        Err(status) => return status,
    };
    let name = format!("{ISA_PREFIX}{name}\0");
    // SAFETY: the caller's promise: room for the attribute's type, which each line below has from the header.
    status(unsafe {
        match attribute {
            HSA_ISA_INFO_NAME_LENGTH => put(value.cast(), name.len() as u32),
            HSA_ISA_INFO_NAME => put_bytes(value.cast(), name.as_bytes()),
            HSA_ISA_INFO_MACHINE_MODELS => put(value.cast(), [false, true]),
            HSA_ISA_INFO_PROFILES => put(value.cast(), [true, false]),
            HSA_ISA_INFO_DEFAULT_FLOAT_ROUNDING_MODES
            | HSA_ISA_INFO_BASE_PROFILE_DEFAULT_FLOAT_ROUNDING_MODES => {
                put(value.cast(), [false, false, true])
            }
            HSA_ISA_INFO_FAST_F16_OPERATION => put(value.cast(), true),
            HSA_ISA_INFO_WORKGROUP_MAX_DIM => put(value.cast(), [1024u16; 3]),
            HSA_ISA_INFO_WORKGROUP_MAX_SIZE => put(value.cast(), 1024u32),
            HSA_ISA_INFO_GRID_MAX_DIM => {
                let most = i32::MAX as u32;
                put(
                    value.cast(),
                    Dim3 {
                        x: most,
                        y: 0xffff,
                        z: 0xffff,
                    },
                )
            }
            HSA_ISA_INFO_GRID_MAX_SIZE => put(value.cast(), u64::from(u32::MAX)),
            HSA_ISA_INFO_FBARRIER_MAX_SIZE => put(value.cast(), 32u32),
            _ => Err(Status::INVALID_ARGUMENT),
        }
    })
}

/// See `hsa.h`.
///
/// # Safety
/// `result` may be written.
pub unsafe fn hsa_isa_compatible(code: IsaHandle, agent: IsaHandle, result: *mut bool) -> Status {
    status(
        with(|_| Ok(isa(code)? == isa(agent)? || code == GENERIC_ISA)).and_then(|same| {
            // SAFETY: the caller's promise.
            unsafe { put(result, same) }
        }),
    )
}

/// See `hsa.h`.
///
/// # Safety
/// As `hsa.h` says.
pub unsafe fn hsa_isa_iterate_wavefronts(
    handle: IsaHandle,
    callback: WavefrontCallback,
    data: *mut c_void,
) -> Status {
    let sizes = with(|_| {
        isa(handle).map(|_| {
            [32, 64]
                .map(|size| WavefrontHandle(WAVEFRONTS + size))
                .to_vec()
        })
    });
    // SAFETY: the caller's promise.
    unsafe { visit(sizes, callback, data) }
}

/// See `hsa.h`.
///
/// # Safety
/// `value` has room for the attribute.
pub unsafe fn hsa_wavefront_get_info(
    wavefront: WavefrontHandle,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    let size = wavefront.0.wrapping_sub(WAVEFRONTS);
    if let Err(status) = with(|_| Ok(())) {
        return status;
    }
    if size != 32 && size != 64 {
        return Status::INVALID_WAVEFRONT;
    }
    match attribute {
        // SAFETY: the caller's promise.
        HSA_WAVEFRONT_INFO_SIZE => status(unsafe { put(value.cast(), size as u32) }),
        _ => Status::INVALID_ARGUMENT,
    }
}
