//! CUDA as a trace sees it.

use super::driver::{self, OwnCalls, check};
use crate::gpu::runtime::Error;
use crate::gpu::traced::{Agent, AgentKey, TracedRuntime};
use crate::support::diagnostics;
use cuda_abi::driver::*;
use std::ffi::{CStr, c_char, c_int};

pub struct TracedCuda;

impl TracedRuntime for TracedCuda {
    /// Devices are described when they are used, by their numbers.
    fn agents(&self) -> Vec<AgentKey> {
        Vec::new()
    }

    fn numbered(&self, number: u64) -> Option<AgentKey> {
        Some(AgentKey::Cuda(number as u32))
    }

    /// A device whose name is not known is recorded without it.
    fn describe(&self, agent: AgentKey) -> Option<Agent> {
        let AgentKey::Cuda(device) = agent else {
            return None;
        };
        let mut description = Agent {
            index: device,
            frequency: 1_000_000_000,
            node: device,
            number: device,
            is_gpu: true,
            ..Agent::default()
        };
        if let Err(error) = add_properties(device, &mut description) {
            diagnostics::lost(format_args!(
                "the trace does not have the name of CUDA device {device}: {error}"
            ));
        }
        Some(description)
    }
}

/// Adds the properties of the device with this number in this process, if the driver is loaded.
fn add_properties(number: u32, to: &mut Agent) -> Result<(), Error> {
    let Some(functions) = driver::devices() else {
        return Ok(());
    };
    let functions = functions?;
    let _own = OwnCalls::begin();
    let mut device = 0;
    let mut name: [c_char; 256] = [0; 256];
    // SAFETY: writes the device, and a string of at most the given size.
    unsafe {
        let found = (functions.cuDeviceGet)(&raw mut device, number as c_int);
        check("cuDeviceGet", found)?;
        let named = (functions.cuDeviceGetName)(name.as_mut_ptr(), name.len() as c_int - 1, device);
        check("cuDeviceGetName", named)?;
    }
    let attribute = |number| driver::attribute(functions.cuDeviceGetAttribute, device, number);
    let major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    // SAFETY: the last byte was not written.
    let product = unsafe { CStr::from_ptr(name.as_ptr()) };
    to.compute_units = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
    to.target = format!("sm_{major}{minor}");
    to.product = Some(product.to_string_lossy().into_owned());
    Ok(())
}
