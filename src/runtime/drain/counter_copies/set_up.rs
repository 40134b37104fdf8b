//! Allocates the copies of a code object's counters, and writes where they are to a variable of the device runtime, before
//! its first kernel runs. If anything fails, there are no copies: kernels count slower, but nothing is lost.

use super::super::code_object::{self, Object};
use super::super::copy::Device;
use super::super::discover::{self, CodeObject, LoadedOn};
use super::Registry;
use super::span::{CounterCopies, Counters, Scattered, Span};
use crate::gpu::copy_layout::{DESCRIPTOR, Layout, budget};
use crate::gpu::runtime::{Agent, Error, Variable, inside};
use zerocopy::IntoBytes;

/// Why there are no copies.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("copying from or to the GPU has failed before")]
    Failing,
    #[error("its variable {0} has {1} bytes; {DESCRIPTOR} bytes are supported")]
    Size(String, u64),
    #[error("its variable {0} is outside the loaded segments")]
    Outside(String),
    #[error("it cannot be read completely")]
    Unread,
    #[error("not all of its counters are updated by the device runtime (raw version 11)")]
    NotUpdated,
    #[error(transparent)]
    Scattered(#[from] Scattered),
    #[error("the number of a compute unit cannot be read on this GPU")]
    Units,
    #[error("the budget (DEVPROF_COUNTER_COPIES_MB, and a part of the GPU's memory) is used up")]
    Budget,
    #[error("the memory cannot be allocated: {0}")]
    Allocation(Error),
    #[error(transparent)]
    Runtime(Error),
    /// Its counts would be missing in the profile.
    #[error(
        "another collector has set up copies of its counters, and devprof cannot collect what they count; load only one"
    )]
    Foreign,
}

/// Sets the copies of one code object up. `limit`: for all copies on the agent, bytes. Returns what was read of the code
/// object, and the number and the bytes of its copies.
pub fn set_up(
    device: Device,
    agent: &Agent,
    code: CodeObject,
    variable: &Variable,
    registry: &mut Registry,
    limit: u64,
) -> Result<(Object, Layout), Refused> {
    if registry.failing.contains(&agent.id) {
        return Err(Refused::Failing);
    }
    let at = LoadedOn {
        executable: code.executable,
        agent: agent.id,
    };
    let fail = |registry: &mut Registry, error: Error| {
        registry.failing.insert(agent.id);
        Refused::Runtime(error)
    };
    check(variable, &code)?;
    let units = device.runtime.units(agent).map_err(Refused::Runtime)?;
    let units = units.ok_or(Refused::Units)?;
    let object = read(device, agent, code).map_err(|refused| match refused {
        Refused::Runtime(error) => fail(registry, error),
        refused => refused,
    })?;
    let is_zero = is_zero(device, variable).map_err(|error| fail(registry, error))?;
    if !is_zero {
        return Err(Refused::Foreign);
    }
    let span = span(device, &object)?;
    let used = registry.used.get(&agent.id).copied().unwrap_or(0);
    let budget = budget::for_code_object(limit, used, device.runtime.memory(agent));
    let mut refused = Refused::Budget;
    for layout in Layout::all(span.size(), units, budget) {
        let size = layout.size() as usize;
        match device.runtime.allocate(at.executable, agent.id, size) {
            Ok(memory) => {
                let copies = span.copies(layout, memory);
                if let Err(error) = clear(device, &copies) {
                    // A copy may still write to the memory, so it is not freed.
                    return Err(fail(registry, error));
                }
                announce(device, &copies, variable)
                    // It may still be executed, so these copies are collected, too.
                    .unwrap_or_else(|error| drop(fail(registry, error)));
                registry.insert(at, copies);
                return Ok((object, layout));
            }
            Err(error) => refused = Refused::Allocation(error),
        }
    }
    Err(refused)
}

fn check(variable: &Variable, code: &CodeObject) -> Result<(), Refused> {
    if variable.size != DESCRIPTOR {
        return Err(Refused::Size(variable.name.clone(), variable.size));
    }
    let outside = || Refused::Outside(variable.name.clone());
    let end = variable.address.checked_add(DESCRIPTOR);
    let range = variable.address..end.ok_or_else(outside)?;
    if inside(&range, &code.segments) {
        Ok(())
    } else {
        Err(outside())
    }
}

/// Reads the tables, as the first drain would.
fn read(device: Device, agent: &Agent, mut code: CodeObject) -> Result<Object, Refused> {
    let tables = discover::tables(device.runtime, code.executable, agent);
    code.tables = tables.map_err(Refused::Runtime)?;
    let read = code_object::read(device, agent, vec![code]).map_err(Refused::Runtime)?;
    let object = read.into_iter().next();
    object
        .filter(|object| object.is_complete && object.losses.is_empty())
        .ok_or(Refused::Unread)
}

/// Whether nobody has written to the variable.
fn is_zero(device: Device, variable: &Variable) -> Result<bool, Error> {
    let range = variable.address..variable.address + DESCRIPTOR;
    device
        .runtime
        .largest_piece(device.agent, DESCRIPTOR as usize);
    let mut found = Ok(false);
    device
        .runtime
        .read(device.agent, &[range], device.limit, &mut |_, bytes| {
            found = bytes.map(|bytes| bytes.iter().all(|&byte| byte == 0));
        })?;
    found
}

/// All counters that device code may update: the counters in the device runtime's own table, which has all of the code object.
fn span(device: Device, object: &Object) -> Result<Span, Refused> {
    let ranges = object.updated_counters().ok_or(Refused::NotUpdated)?;
    let mut all = Vec::new();
    for range in ranges {
        let parts = device
            .runtime
            .device_addresses(object.code.executable, &range)
            .map_err(Refused::Runtime)?;
        all.extend(
            parts
                .into_iter()
                .map(|(range, device)| Counters { range, device }),
        );
    }
    Ok(Span::new(all)?)
}

fn clear(device: Device, copies: &CounterCopies) -> Result<(), Error> {
    let ranges = [(copies.range(), 0)];
    let failed = device.runtime.fill(device.agent, &ranges, device.limit)?;
    failed
        .into_iter()
        .next()
        .map_or(Ok(()), |(_, error)| Err(error))
}

/// Writes the variable. From now on kernels that are launched use the copies.
fn announce(device: Device, copies: &CounterCopies, variable: &Variable) -> Result<(), Error> {
    let descriptor = copies.descriptor();
    let (runtime, agent, limit) = (device.runtime, device.agent, device.limit);
    runtime.write(agent, variable.address, descriptor.as_bytes(), limit)?;
    // Also invalidates the GPU's caches, so that kernels read the new values.
    if runtime.write_back(agent, limit)? {
        Ok(())
    } else {
        Err(Error::TimedOut("writing the caches back"))
    }
}
