//! Faults on demand: what real hardware will not do when a test asks for it.
//!
//! The plan is text, in `HSA_SIM_PLAN` or in the file that `HSA_SIM_PLAN_FILE` names, or given by the program itself
//! to [`hsa_sim_plan`]. One fault a line or between semicolons; `#` begins a comment:
//!
//! ```text
//! FUNCTION CALL ACTION [ARGUMENT]
//! ```
//!
//! FUNCTION is the name of an HSA function, or `dispatch` for the kernel packets of all queues. CALL is which of its
//! calls, counted from 1 since the plan was set; with a `+` behind it, each from that one on; or `*` for each. Numbers
//! are decimal or `0x…`.
//!
//! | action | what happens at that call |
//! | --- | --- |
//! | `fail STATUS` | nothing but that status comes back: a number, or a name without `HSA_STATUS_` (`ERROR_OUT_OF_RESOURCES`) |
//! | `block MS` | it waits that many milliseconds first; `dispatch`: the kernel runs that much longer |
//! | `lie VALUE` | what it tells is that value: the attribute of a `…_get_info` function (as many of its low bytes as the attribute has), a signal's value, the number of segment descriptors, or the size of the first one, both times of a dispatch or a copy, a tick in the system's clock |
//! | `short BYTES` | a copy: only that many bytes are copied |
//! | `torn BYTES` | a copy: the bytes from there on come out inverted |
//! | `error` | an asynchronous copy: nothing is copied and the completion signal becomes negative; `dispatch`: the kernel runs, and its completion signal becomes negative |
//! | `drop` | an asynchronous copy, or `dispatch`: the completion signal never changes |
//! | `late MS` | `dispatch`: the completion signal changes that many milliseconds later, and the queue goes on meanwhile |
//! | `times HOW` | `dispatch`: the completion signal gets wrong times: `swapped` (the start after the end), `before` (a second ago), `after` (in an hour) or `zero` |
//! | `load FILE` | first, the code object in FILE is loaded on the first GPU agent |
//! | `unload N` | first, the N-th executable there is, in the order of their making, is destroyed |
//!
//! A word that is none of these, a function that is not simulated, and an action that its function cannot do are
//! errors: `hsa_init` says which line it is and fails.

use hsa_abi::*;
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a fault does.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Fail(Status),
    Block(Duration),
    Lie(u64),
    Copy(CopyFault),
    Dispatch(DispatchFault),
    Load(String),
    Unload(usize),
}

/// What goes wrong with a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyFault {
    /// Only so many bytes are copied.
    Short(usize),
    /// From this byte on they are inverted.
    Torn(usize),
    /// It fails on its way.
    Error,
    /// Its completion is not told.
    Drop,
}

/// What goes wrong with a kernel packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispatchFault {
    /// It takes so much longer.
    Block(Duration),
    /// Its completion is not told.
    Drop,
    /// It completes with an error.
    Error,
    /// Its completion is told so much later.
    Late(Duration),
    Times(WrongTimes),
}

/// How the times of a kernel are wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongTimes {
    Swapped,
    Before,
    After,
    Zero,
}

/// Which calls of a function, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Calls {
    Each,
    Only(u64),
    From(u64),
}

impl Calls {
    fn parse(text: &str) -> Result<Calls, String> {
        let calls = match (text, text.strip_suffix('+')) {
            ("*", _) => return Ok(Calls::Each),
            (_, Some(first)) => Calls::From(number(first)?),
            (one, None) => Calls::Only(number(one)?),
        };
        match calls {
            Calls::Only(0) | Calls::From(0) => Err("calls are counted from 1".into()),
            calls => Ok(calls),
        }
    }

    fn has(self, call: u64) -> bool {
        match self {
            Calls::Each => true,
            Calls::Only(one) => call == one,
            Calls::From(first) => call >= first,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    calls: Calls,
    action: Action,
}

/// A plan and how far it has come.
#[derive(Debug, Default)]
struct Plan {
    faults: HashMap<String, Vec<Fault>>,
    calls: HashMap<&'static str, u64>,
}

/// Why a plan is none.
#[derive(Debug, PartialEq, Eq)]
pub struct Error {
    line: usize,
    what: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fault plan, line {}: {}", self.line, self.what)
    }
}

/// The pseudo-function of kernel packets.
pub const DISPATCH: &str = "dispatch";

const COPIES: &[&str] = &[
    "hsa_memory_copy",
    "hsa_amd_memory_async_copy",
    "hsa_amd_memory_async_copy_on_engine",
];

/// How a function's result comes back, as far as faults care.
#[derive(Clone, Copy)]
pub enum Kind {
    /// A status, so it can fail.
    Status,
    /// A value, which can be a lie.
    Value,
    Nothing,
}

macro_rules! kinds {
    ($(
        $table:ident: $type:ident v($major:literal, $step:literal)
        $(prefix $prefix:ident { $($p:ident $(($($p_arg:ident: $p_ty:ty),*) -> $p_ret:ty)?;)* })?
        rest { $($r:ident $(($($r_arg:ident: $r_ty:ty),*) -> $r_ret:ty)?;)* }
    )*) => {
        /// Every function of the API tables; `None`: it is not simulated.
        const FUNCTIONS: &[(&str, Option<Kind>)] = &[$(
            $($((stringify!($p), kinds!(@of $($p_ret)?)),)*)?
            $((stringify!($r), kinds!(@of $($r_ret)?)),)*
        )*];
    };
    (@of) => { None };
    (@of $ret:ty) => { Some(<$ret as Returned>::KIND) };
}

api_tables! { kinds }

fn kind(function: &str) -> Option<Kind> {
    if function == DISPATCH {
        return Some(Kind::Nothing);
    }
    if LOADER_FUNCTIONS.contains(&function) {
        return Some(Kind::Status);
    }
    let known = FUNCTIONS.iter().find(|(name, _)| *name == function)?;
    known.1
}

/// The functions that can fail with a status.
pub fn fallible() -> impl Iterator<Item = &'static str> {
    let functions = FUNCTIONS
        .iter()
        .filter(|(_, kind)| matches!(kind, Some(Kind::Status)))
        .map(|(name, _)| *name);
    functions.chain(LOADER_FUNCTIONS.iter().copied())
}

fn tells(function: &str) -> bool {
    function.ends_with("_get_info")
        || function.ends_with("_get_info_alt")
        || matches!(
            function,
            "hsa_ven_amd_loader_query_segment_descriptors"
                | "hsa_amd_profiling_get_dispatch_time"
                | "hsa_amd_profiling_get_async_copy_time"
                | "hsa_amd_profiling_convert_tick_to_system_domain"
        )
}

fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => match text.strip_prefix('-') {
            Some(_) => text.parse::<i64>().map(|n| n as u64),
            None => text.parse(),
        },
    };
    parsed.map_err(|_| format!("'{text}' is no number"))
}

fn status(text: &str) -> Result<Status, String> {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return number(text).map(|n| Status(n as u32));
    }
    Status::from_name(&format!("HSA_STATUS_{text}"))
        .ok_or_else(|| format!("unknown status '{text}'"))
}

fn fault(line: &str) -> Result<(String, Fault), String> {
    let mut words = line.split_whitespace();
    let mut word = |what| words.next().ok_or_else(|| format!("{what} is missing"));
    let function = word("the call's number")
        .map_err(|_| "the function is missing".to_string())?
        .to_string();
    let kind = kind(&function).ok_or_else(|| format!("unknown function '{function}'"))?;
    let calls = Calls::parse(word("the call's number")?)?;
    let name = word("the action")?;
    let unable = |able: bool| {
        if able {
            Ok(())
        } else {
            Err(format!("{function} cannot '{name}'"))
        }
    };
    let copy = COPIES.contains(&function.as_str());
    let asynchronous = copy && function != "hsa_memory_copy";
    let dispatch = function == DISPATCH;
    let millis = |text: &str| number(text).map(Duration::from_millis);
    let action = match name {
        "fail" => {
            unable(matches!(kind, Kind::Status))?;
            Action::Fail(status(word("the status")?)?)
        }
        "block" if dispatch => Action::Dispatch(DispatchFault::Block(millis(word("the time")?)?)),
        "drop" if dispatch => Action::Dispatch(DispatchFault::Drop),
        "error" if dispatch => Action::Dispatch(DispatchFault::Error),
        "late" => {
            unable(dispatch)?;
            Action::Dispatch(DispatchFault::Late(millis(word("the time")?)?))
        }
        "times" => {
            unable(dispatch)?;
            Action::Dispatch(DispatchFault::Times(match word("how they are wrong")? {
                "swapped" => WrongTimes::Swapped,
                "before" => WrongTimes::Before,
                "after" => WrongTimes::After,
                "zero" => WrongTimes::Zero,
                other => return Err(format!("unknown times '{other}'")),
            }))
        }
        "block" => Action::Block(millis(word("the time")?)?),
        "lie" => {
            unable(matches!(kind, Kind::Value) || tells(&function))?;
            Action::Lie(number(word("the value")?)?)
        }
        "short" => {
            unable(copy)?;
            Action::Copy(CopyFault::Short(
                number(word("the number of bytes")?)? as usize
            ))
        }
        "torn" => {
            unable(copy)?;
            Action::Copy(CopyFault::Torn(
                number(word("the number of bytes")?)? as usize
            ))
        }
        "error" => {
            unable(asynchronous)?;
            Action::Copy(CopyFault::Error)
        }
        "drop" => {
            unable(asynchronous)?;
            Action::Copy(CopyFault::Drop)
        }
        "load" => {
            unable(!dispatch)?;
            Action::Load(word("the file")?.to_string())
        }
        "unload" => {
            unable(!dispatch)?;
            Action::Unload(number(word("the executable's number")?)? as usize)
        }
        other => return Err(format!("unknown action '{other}'")),
    };
    match words.next() {
        None => Ok((function, Fault { calls, action })),
        Some(more) => Err(format!("unknown word '{more}'")),
    }
}

impl Plan {
    fn parse(text: &str) -> Result<Plan, Error> {
        let mut plan = Plan::default();
        for (n, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            for part in line.split(';').map(str::trim).filter(|p| !p.is_empty()) {
                let (function, fault) = fault(part).map_err(|what| Error { line: n + 1, what })?;
                plan.faults.entry(function).or_default().push(fault);
            }
        }
        Ok(plan)
    }

    /// Counts a call and gives what goes wrong with it.
    fn count(&mut self, function: &'static str) -> Vec<Action> {
        let calls = self.calls.entry(function).or_default();
        *calls += 1;
        let now = *calls;
        let faults = self.faults.get(function).into_iter().flatten();
        faults
            .filter(|fault| fault.calls.has(now))
            .map(|fault| fault.action.clone())
            .collect()
    }
}

static PLAN: Mutex<Option<Plan>> = Mutex::new(None);
/// Whether calls are counted at all: without a plan a call costs no lock.
static COUNTING: AtomicBool = AtomicBool::new(false);

fn plan() -> MutexGuard<'static, Option<Plan>> {
    PLAN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn set(text: &str) -> Result<(), Error> {
    let parsed = Plan::parse(text)?;
    *plan() = Some(parsed);
    COUNTING.store(true, Release);
    Ok(())
}

/// Takes the plan of the environment, once, when the runtime is first initialised.
pub fn from_env() -> Result<(), String> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if TAKEN.swap(true, Relaxed) {
        return Ok(());
    }
    let taken = match (
        std::env::var("HSA_SIM_PLAN").ok(),
        std::env::var_os("HSA_SIM_PLAN_FILE"),
    ) {
        (None, None) => return Ok(()),
        (Some(_), Some(_)) => Err("HSA_SIM_PLAN and HSA_SIM_PLAN_FILE are both set".to_string()),
        (Some(text), None) => set(&text).map_err(|error| error.to_string()),
        (None, Some(path)) => std::fs::read_to_string(&path)
            .map_err(|error| format!("HSA_SIM_PLAN_FILE={}: {error}", path.display()))
            .and_then(|text| set(&text).map_err(|error| error.to_string())),
    };
    // A plan that is wrong stays wrong: the next hsa_init must not go on without it.
    if taken.is_err() {
        TAKEN.store(false, Relaxed);
    }
    taken
}

/// What the call in progress on this thread does wrong.
#[derive(Clone, Copy, Default)]
struct Current {
    lie: Option<u64>,
    copy: Option<CopyFault>,
}

thread_local! {
    static CURRENT: Cell<Current> = const { Cell::new(Current { lie: None, copy: None }) };
}

/// What a function may return.
pub trait Returned: Copy {
    const KIND: Kind;
    /// The result of a call that fails with `status`.
    fn failed(status: Status) -> Option<Self>;
    /// The result as a lie has it.
    fn lie(value: u64) -> Option<Self>;
}

impl Returned for Status {
    const KIND: Kind = Kind::Status;
    fn failed(status: Status) -> Option<Status> {
        Some(status)
    }
    fn lie(_: u64) -> Option<Status> {
        None
    }
}

impl Returned for u32 {
    const KIND: Kind = Kind::Value;
    fn failed(_: Status) -> Option<u32> {
        None
    }
    fn lie(_: u64) -> Option<u32> {
        None
    }
}

impl Returned for i64 {
    const KIND: Kind = Kind::Value;
    fn failed(_: Status) -> Option<i64> {
        None
    }
    fn lie(value: u64) -> Option<i64> {
        Some(value as i64)
    }
}

impl Returned for u64 {
    const KIND: Kind = Kind::Value;
    fn failed(_: Status) -> Option<u64> {
        None
    }
    fn lie(value: u64) -> Option<u64> {
        Some(value)
    }
}

impl Returned for () {
    const KIND: Kind = Kind::Nothing;
    fn failed(_: Status) -> Option<()> {
        None
    }
    fn lie(_: u64) -> Option<()> {
        None
    }
}

/// Does a call as the plan wants it.
#[inline]
pub fn call<R: Returned>(function: &'static str, work: impl FnOnce() -> R) -> R {
    if !COUNTING.load(Acquire) {
        return work();
    }
    faulty(function, work)
}

#[cold]
fn faulty<R: Returned>(function: &'static str, work: impl FnOnce() -> R) -> R {
    let actions = plan()
        .as_mut()
        .map(|plan| plan.count(function))
        .unwrap_or_default();
    let mut current = Current::default();
    for action in actions {
        match action {
            Action::Fail(status) => {
                if let Some(result) = R::failed(status) {
                    return result;
                }
            }
            Action::Block(time) => std::thread::sleep(time),
            Action::Lie(value) => current.lie = Some(value),
            Action::Copy(fault) => current.copy = Some(fault),
            Action::Dispatch(_) => {
                eprintln!("hsa-sim: {function} is no dispatch");
                std::process::abort();
            }
            Action::Load(path) => crate::executable::load_file(&path),
            Action::Unload(n) => crate::executable::unload_nth(n),
        }
    }
    let before = CURRENT.replace(current);
    let result = work();
    CURRENT.set(before);
    current.lie.and_then(R::lie).unwrap_or(result)
}

/// What goes wrong with the copy that this thread is asked for.
pub fn copy_fault() -> Option<CopyFault> {
    CURRENT.get().copy
}

/// What goes wrong with the next kernel packet.
pub fn dispatch_faults() -> Vec<DispatchFault> {
    if !COUNTING.load(Acquire) {
        return Vec::new();
    }
    let actions = plan()
        .as_mut()
        .map(|plan| plan.count(DISPATCH))
        .unwrap_or_default();
    let faults = actions.into_iter().filter_map(|action| match action {
        Action::Dispatch(fault) => Some(fault),
        _ => None,
    });
    faults.collect()
}

/// The lie that is to be told once by the call in progress.
pub fn take_lie() -> Option<u64> {
    let mut current = CURRENT.get();
    let lie = current.lie.take();
    CURRENT.set(current);
    lie
}

/// Sets another plan and counts from 0 again; null: no plan. 0, or -1 when the text is no plan, which is said.
///
/// # Safety
/// `text` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_sim_plan(text: *const c_char) -> c_int {
    if text.is_null() {
        COUNTING.store(false, Release);
        *plan() = None;
        return 0;
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    match set(&text) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("hsa-sim: {error}");
            -1
        }
    }
}

/// How often a function was called since the plan was set. An empty plan counts too.
///
/// # Safety
/// `function` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hsa_sim_calls(function: *const c_char) -> u64 {
    // SAFETY: the caller's promise.
    let function = unsafe { CStr::from_ptr(function) }.to_string_lossy();
    plan()
        .as_ref()
        .and_then(|plan| plan.calls.get(&*function).copied())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_line_by_line() {
        let plan = Plan::parse(
            "# two faults of one function\n\
             hsa_memory_copy 2 fail ERROR_OUT_OF_RESOURCES; hsa_memory_copy * block 5\n\
             hsa_agent_get_info 0x1 lie 0xffff # a comment\n\
             hsa_signal_wait_scacquire 1 lie -1\n\
             dispatch 3 drop\n",
        )
        .unwrap();
        let block = Action::Block(Duration::from_millis(5));
        assert_eq!(
            plan.faults["hsa_memory_copy"],
            [
                Fault {
                    calls: Calls::Only(2),
                    action: Action::Fail(Status::OUT_OF_RESOURCES)
                },
                Fault {
                    calls: Calls::Each,
                    action: block.clone()
                },
            ]
        );
        let mut plan = plan;
        assert_eq!(plan.count("hsa_memory_copy"), std::slice::from_ref(&block));
        assert_eq!(
            plan.count("hsa_memory_copy"),
            [Action::Fail(Status::OUT_OF_RESOURCES), block]
        );
        assert_eq!(
            plan.count("hsa_signal_wait_scacquire"),
            [Action::Lie(u64::MAX)]
        );
    }

    #[test]
    fn what_is_no_plan_is_an_error_that_says_where() {
        for (text, line, what) in [
            (
                "hsa_memory_kopy 1 fail 1",
                1,
                "unknown function 'hsa_memory_kopy'",
            ),
            ("\nhsa_memory_copy 1 explode", 2, "unknown action 'explode'"),
            (
                "hsa_memory_copy 1 fail ERROR_NO_SUCH",
                1,
                "unknown status 'ERROR_NO_SUCH'",
            ),
            ("hsa_memory_copy x fail 1", 1, "'x' is no number"),
            ("hsa_memory_copy 0 fail 1", 1, "calls are counted from 1"),
            ("hsa_memory_copy 1 fail", 1, "the status is missing"),
            ("hsa_memory_copy 1 fail 1 now", 1, "unknown word 'now'"),
            ("hsa_memory_copy 1", 1, "the action is missing"),
            ("hsa_memory_copy", 1, "the call's number is missing"),
            (
                "hsa_signal_store_relaxed 1 fail 1",
                1,
                "hsa_signal_store_relaxed cannot 'fail'",
            ),
            ("hsa_memory_copy 1 lie 1", 1, "hsa_memory_copy cannot 'lie'"),
            ("hsa_memory_copy 1 drop", 1, "hsa_memory_copy cannot 'drop'"),
            ("hsa_memory_copy 0+ fail 1", 1, "calls are counted from 1"),
            (
                "hsa_memory_copy 1 late 1",
                1,
                "hsa_memory_copy cannot 'late'",
            ),
            ("dispatch 1 load x", 1, "dispatch cannot 'load'"),
            ("dispatch 1 times odd", 1, "unknown times 'odd'"),
            (
                "hsa_amd_memory_migrate 1 fail 1",
                1,
                "unknown function 'hsa_amd_memory_migrate'",
            ),
        ] {
            let error = Plan::parse(text).unwrap_err();
            assert_eq!((error.line, error.what.as_str()), (line, what), "{text}");
        }
    }
}
