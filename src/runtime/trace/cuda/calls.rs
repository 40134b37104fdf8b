//! The program's calls of CUDA's APIs. The calls that a call of CUDA makes itself are not recorded.

use super::launches::{self, Entry, Launch};
use crate::gpu::observers::{ApiCall, ApiStream};
use crate::nvidia::activity;
use crate::sys::threads;
use crate::trace::calls::{self, Started, state};
use crate::trace::recorder::clock;
use crate::trace::recorder::streams::NamedStream;
use crate::trace::session::recording;
use std::cell::Cell;

/// The calls in progress on a thread.
#[derive(Clone, Copy)]
struct Nest {
    depth: u32,
    /// CUPTI's number of the outermost call, if it submits work.
    correlation: Option<u32>,
    /// The outermost call submits one kernel, which is to be recorded.
    is_awaited: bool,
    /// The outermost call, if it is recorded.
    started: Option<Started>,
}

const NO_CALLS: Nest = Nest {
    depth: 0,
    correlation: None,
    is_awaited: false,
    started: None,
};

thread_local! {
    static NEST: Cell<Nest> = const { Cell::new(NO_CALLS) };
}

/// The program, or devprof, has called a function.
pub fn began(call: &ApiCall) {
    if call.is_own || calls::state() != state::ON {
        return;
    }
    let mut nest = NEST.get();
    nest.depth += 1;
    if nest.depth == 1 {
        nest.correlation = call.submits.then_some(call.correlation);
        nest.is_awaited = false;
        nest.started = calls::begin(call.function, named(call.stream)).map(calls::Call::started);
    }
    // A function of the runtime may call several of the driver, and records may have the numbers of these.
    let is_pushed = nest.depth == 1 || nest.correlation != Some(call.correlation);
    if is_pushed && call.submits && activity::is_enabled() {
        let submit = match nest.started {
            Some(started) => Some(started.start()),
            // The call is nested in one of HIP.
            None => recording::is_on().then(clock::now),
        };
        let outer = nest.correlation.unwrap_or(call.correlation);
        launches::QUEUES.push(Entry::Launched(launch(call, outer, submit)));
        nest.is_awaited |= nest.depth == 1 && call.submits_once;
    }
    NEST.set(nest);
}

/// `submit`: when the work is submitted; `None`: it is not recorded.
fn launch(call: &ApiCall, outer: u32, submit: Option<u64>) -> Launch {
    let current = calls::current();
    Launch {
        correlation: call.correlation,
        outer,
        thread: threads::thread_id(),
        id: submit.map_or(0, |_| current.id),
        submit: submit.unwrap_or(0),
        stream: current.stream,
        is_single: call.submits_once,
        function: call.function,
    }
}

/// The call is over.
pub fn ended(is_own: bool, status: i32) {
    let mut nest = NEST.get();
    // A call that began before the trace did has no beginning.
    if is_own || nest.depth == 0 {
        return;
    }
    nest.depth -= 1;
    let started = match nest.depth {
        0 => nest.started.take(),
        _ => None,
    };
    if nest.depth == 0
        && status != 0
        && let Some(correlation) = nest.correlation.filter(|_| nest.is_awaited)
    {
        launches::QUEUES.push(Entry::Failed { correlation });
    }
    NEST.set(nest);
    if let Some(started) = started {
        started.end(status);
    }
}

fn named(stream: ApiStream) -> NamedStream {
    match stream {
        ApiStream::Unknown => NamedStream::None,
        ApiStream::Handle(handle) => NamedStream::of(handle as *mut _),
        ApiStream::PerThreadHandle(handle) => NamedStream::of_spt(handle as *mut _),
    }
}

/// In the child of a fork.
pub fn in_child() {
    NEST.set(NO_CALLS);
}
