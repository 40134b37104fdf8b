//! Which modules have which kernels. CUPTI's record of a kernel has its name and its context, but not its module. The module
//! follows from the times at which modules were loaded and unloaded, unless several that have the kernel were loaded at the
//! same time: a launch is not observed more closely, because that would cost the program's threads time.

use crate::nvidia::{activity, image};
use crate::support::sync::lock;
use crate::trace::recorder::clock;
use crate::trace::session;
use cuda_abi::driver::CUcontext;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

/// The end of a time in which a module is still loaded.
const OPEN: u64 = u64::MAX;

static MODULES: LazyLock<Mutex<Modules>> = LazyLock::new(Mutex::default);
/// Incremented when a module is loaded or unloaded, while [`MODULES`] is locked.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// A module in a context, and when it was loaded.
struct Module {
    /// CUPTI's number of the context.
    context: u32,
    build_id: Arc<str>,
    /// CUPTI's numbers, each with the times from the load to the unload, system clock.
    loaded: Vec<(u32, Range<u64>)>,
}

#[derive(Default)]
struct Modules {
    all: Vec<Module>,
    /// Indices in `all`, by context and build ID. A module that is loaded again has the same one.
    by_id: HashMap<(u32, [u8; 16]), usize>,
    by_kernel: HashMap<CString, Vec<usize>>,
    /// The time of the last change, system clock.
    changed: u64,
}

/// A run of a kernel.
#[derive(Clone, Copy)]
pub struct Ran<'a> {
    pub name: &'a CStr,
    /// CUPTI's number of the context.
    pub context: u32,
    /// When it was submitted, system clock. The module was not unloaded yet.
    pub submit: u64,
    /// When it ended, or a later time, system clock. The module was loaded: perhaps only after the submission, by the
    /// call that submitted it.
    pub end: u64,
}

/// For which runs of a kernel a build ID is valid.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    generation: u64,
    /// The earliest time of submission.
    since: u64,
}

impl Validity {
    /// Whether [`find`] finds the same for the same kernel, submitted at `submit`.
    pub fn has(&self, submit: u64) -> bool {
        submit >= self.since && self.generation == GENERATION.load(Ordering::Acquire)
    }
}

/// The build ID of a kernel's module, in hexadecimal, if it is known.
pub fn find(ran: Ran) -> (Option<Arc<str>>, Validity) {
    let modules = lock(&MODULES);
    let validity = Validity {
        generation: GENERATION.load(Ordering::Acquire),
        since: modules.changed,
    };
    (modules.find(ran), validity)
}

/// CUDA has loaded a module.
pub fn module_loaded(context: u64, number: u32, cubin: &[u8]) {
    let Some(context) = traced_context(context) else {
        return;
    };
    let id = image::id(cubin);
    // The kernels of code that cannot be read, for example in a later format, have no build ID.
    let kernels = image::kernels(cubin).unwrap_or_default();
    let mut modules = lock(&MODULES);
    modules.load(context, number, id, &kernels, clock::now());
    GENERATION.fetch_add(1, Ordering::Release);
}

/// CUDA is about to unload a module, or all modules of a context.
pub fn modules_unloading(context: u64, number: Option<u32>) {
    let Some(context) = traced_context(context) else {
        return;
    };
    let mut modules = lock(&MODULES);
    modules.unload(context, number, clock::now());
    GENERATION.fetch_add(1, Ordering::Release);
}

/// CUPTI's number of a context, if CUDA is traced.
fn traced_context(context: u64) -> Option<u32> {
    if !session::is_traced() {
        return None;
    }
    activity::context_number(CUcontext(context as usize))
}

impl Modules {
    fn load(&mut self, context: u32, number: u32, id: [u8; 16], kernels: &[&CStr], now: u64) {
        self.changed = now;
        let next = self.all.len();
        let module = *self.by_id.entry((context, id)).or_insert(next);
        if module == next {
            self.all.push(Module {
                context,
                build_id: profraw::hex(&id).into(),
                loaded: Vec::new(),
            });
            for &kernel in kernels {
                match self.by_kernel.get_mut(kernel) {
                    Some(known) => known.push(next),
                    None => _ = self.by_kernel.insert(kernel.to_owned(), vec![next]),
                }
            }
        }
        self.all[module].loaded.push((number, now..OPEN));
    }

    fn unload(&mut self, context: u32, number: Option<u32>, now: u64) {
        self.changed = now;
        let own = self.all.iter_mut().filter(|own| own.context == context);
        for (loaded, time) in own.flat_map(|own| &mut own.loaded) {
            if time.end == OPEN && number.is_none_or(|number| number == *loaded) {
                time.end = now;
            }
        }
    }

    fn find(&self, ran: Ran) -> Option<Arc<str>> {
        let was_loaded = |module: &&Module| {
            let mut times = module.loaded.iter();
            times.any(|(_, time)| time.start <= ran.end && ran.submit < time.end)
        };
        let with_kernel = self.by_kernel.get(ran.name)?.iter();
        let loaded: Vec<&Module> = with_kernel
            .map(|&index| &self.all[index])
            .filter(was_loaded)
            .collect();
        let in_context = loaded.iter().filter(|own| own.context == ran.context);
        // The modules of a green context are loaded into another one.
        only(in_context).or_else(|| {
            let is_known = loaded.iter().any(|own| own.context == ran.context);
            only(loaded.iter().filter(|_| !is_known))
        })
    }
}

/// The build ID of all modules, if they have the same one.
fn only<'a>(mut modules: impl Iterator<Item = &'a &'a Module>) -> Option<Arc<str>> {
    let first = modules.next()?;
    let is_same = modules.all(|other| other.build_id == first.build_id);
    is_same.then(|| first.build_id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: [u8; 16] = [0xa; 16];
    const B: [u8; 16] = [0xb; 16];

    fn found(modules: &Modules, name: &CStr, context: u32, submit: u64, end: u64) -> String {
        let found = modules.find(Ran {
            name,
            context,
            submit,
            end,
        });
        found.map_or(String::new(), |id| id[..2].to_owned())
    }

    #[test]
    fn a_kernel_is_of_the_module_that_was_loaded_when_it_ran() {
        let mut modules = Modules::default();
        modules.load(1, 10, A, &[c"kernel", c"a"], 100);
        modules.unload(1, Some(10), 200);
        modules.load(1, 11, B, &[c"kernel"], 300);
        modules.unload(1, None, 400);
        modules.load(1, 12, A, &[c"kernel", c"a"], 500);
        let at = |name, submit, end| found(&modules, name, 1, submit, end);
        for (submit, end, expected) in [
            (10, 20, ""),
            // The call that submits the kernel loads its module.
            (90, 110, "0a"),
            (150, 160, "0a"),
            (199, 250, "0a"),
            (200, 250, ""),
            (200, 310, "0b"),
            (399, 410, "0b"),
            (450, 510, "0a"),
            (600, 700, "0a"),
            // Both were loaded while it may have run.
            (150, 350, ""),
        ] {
            assert_eq!(at(c"kernel", submit, end), expected, "{submit}..{end}");
        }
        assert_eq!(at(c"a", 350, 360), "");
        assert_eq!(at(c"other", 150, 160), "");
    }

    #[test]
    fn modules_that_are_loaded_together_are_told_apart_by_their_contexts() {
        let mut modules = Modules::default();
        modules.load(1, 10, A, &[c"kernel", c"a"], 100);
        modules.load(2, 10, B, &[c"kernel"], 100);
        modules.load(3, 11, A, &[c"kernel", c"a"], 100);
        modules.load(3, 12, B, &[c"kernel", c"b"], 100);
        let at = |name, context| found(&modules, name, context, 200, 300);
        for (name, context, expected) in [
            (c"kernel", 1, "0a"),
            (c"kernel", 2, "0b"),
            (c"kernel", 3, ""),
            (c"a", 3, "0a"),
            (c"b", 3, "0b"),
            // A context into which no module was loaded.
            (c"kernel", 4, ""),
            (c"a", 4, "0a"),
        ] {
            assert_eq!(at(name, context), expected, "{name:?} {context}");
        }
        modules.unload(1, Some(10), 400);
        assert_eq!(found(&modules, c"kernel", 2, 500, 600), "0b");
        assert_eq!(found(&modules, c"kernel", 1, 500, 600), "");
    }
}
