//! The descriptions of devices that a trace records.

use super::driver::{self, OwnCalls, check};
use crate::gpu::runtime::Error;
use crate::gpu::traced::Agent;
use cuda_abi::driver::*;
use std::ffi::{CStr, c_char, c_int};

/// Describes the device with this number in this process, if the driver is loaded.
pub fn describe(number: u32, to: &mut Agent) -> Result<(), Error> {
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
