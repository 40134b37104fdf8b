//! The primary contexts. A device's primary context is destroyed by the release of its last user: libraries retain and
//! release it, some for each message that they send, and green contexts use it.
//!
//! A green context is a part of a device's multiprocessors. It is used like a context, but its code and memory are the
//! primary context's. At one time it may be current to only one thread, so devprof never enters it.

use super::driver::{self, OwnCalls};
use crate::support::sync::lock;
use cuda_abi::driver::{CUcontext, CUdevice, CUgreenCtx, CUresult};
use std::cell::Cell;
use std::sync::Mutex;

struct Primaries {
    /// How many users of each device's primary context were observed. A reset of the context does not change their number.
    users: Vec<(CUdevice, u32)>,
    green: Vec<Green>,
}

struct Green {
    handle: CUgreenCtx,
    device: CUdevice,
    /// The program's handle of it as a context.
    context: CUcontext,
}

static PRIMARIES: Mutex<Primaries> = Mutex::new(Primaries {
    users: Vec::new(),
    green: Vec::new(),
});

thread_local! {
    static IS_CREATING_GREEN: Cell<bool> = const { Cell::new(false) };
}

impl Primaries {
    fn users(&mut self, device: CUdevice) -> &mut u32 {
        let known = self.users.iter().position(|(of, _)| *of == device);
        let n = known.unwrap_or_else(|| {
            self.users.push((device, 0));
            self.users.len() - 1
        });
        &mut self.users[n].1
    }

    fn green_mut(&mut self, handle: CUgreenCtx) -> Option<&mut Green> {
        self.green.iter_mut().find(|green| green.handle == handle)
    }
}

/// A device's primary context has one more user.
pub fn retained(device: CUdevice) {
    *lock(&PRIMARIES).users(device) += 1;
}

/// A user is about to release the primary context. Returns whether the context may be destroyed: no other user was observed.
pub fn releasing(device: CUdevice) -> bool {
    let mut primaries = lock(&PRIMARIES);
    let users = primaries.users(device);
    // If two threads release it at once, the second one may be the last user.
    *users = users.saturating_sub(1);
    *users == 0
}

/// Whether no user is known.
pub fn is_unused(device: CUdevice) -> bool {
    *lock(&PRIMARIES).users(device) == 0
}

/// The calling thread begins or ends to create a green context.
pub fn set_creating_green(is_creating: bool) {
    IS_CREATING_GREEN.set(is_creating);
}

/// Whether the contexts that the calling thread creates are a green one, and perhaps its primary one.
pub fn is_creating_green() -> bool {
    IS_CREATING_GREEN.get()
}

/// A green context was created, which uses its device's primary context.
pub fn green_created(handle: CUgreenCtx, device: CUdevice) {
    retained(device);
    lock(&PRIMARIES).green.push(Green {
        handle,
        device,
        context: CUcontext::NULL,
    });
}

/// The program has got a green context's handle as a context.
pub fn green_converted(handle: CUgreenCtx, context: CUcontext) {
    if let Some(green) = lock(&PRIMARIES).green_mut(handle) {
        green.context = context;
    }
}

pub fn green_destroyed(handle: CUgreenCtx) {
    lock(&PRIMARIES)
        .green
        .retain(|green| green.handle != handle);
}

/// The device of a green context.
pub fn device_of_green(handle: CUgreenCtx) -> Option<CUdevice> {
    Some(lock(&PRIMARIES).green_mut(handle)?.device)
}

/// The context that has the code and memory of a context: of a green one, the primary one.
pub fn real(context: CUcontext) -> CUcontext {
    let device = {
        let primaries = lock(&PRIMARIES);
        let mut green = primaries.green.iter();
        green
            .find(|green| green.context == context)
            .map(|green| green.device)
    };
    device.and_then(primary_context).unwrap_or(context)
}

/// The primary context of a device, if it exists.
pub fn primary_context(device: CUdevice) -> Option<CUcontext> {
    let contexts = driver::contexts()?;
    let _own = OwnCalls::begin();
    let (mut flags, mut is_active) = (0, 0);
    let mut context = CUcontext::NULL;
    // SAFETY: writes the variables. A context that exists is retained and released as often.
    unsafe {
        let known =
            (contexts.cuDevicePrimaryCtxGetState)(device, &raw mut flags, &raw mut is_active);
        if known != CUresult::SUCCESS || is_active == 0 {
            return None;
        }
        if (contexts.cuDevicePrimaryCtxRetain)(&raw mut context, device) != CUresult::SUCCESS {
            return None;
        }
        (contexts.cuDevicePrimaryCtxRelease_v2)(device);
    }
    Some(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_of_the_last_observed_user_destroys() {
        let device = 1000;
        assert!(releasing(device));
        retained(device);
        retained(device);
        green_created(CUgreenCtx(7), device);
        assert!(!releasing(device) && !releasing(device) && !is_unused(device));
        assert_eq!(device_of_green(CUgreenCtx(7)), Some(device));
        green_destroyed(CUgreenCtx(7));
        assert!(releasing(device) && is_unused(device));
        assert_eq!(device_of_green(CUgreenCtx(7)), None);
    }
}
