//! The end of the process.

use super::handler::report_if_interrupted;
use super::leader;
use super::lifecycle;
use super::request::Request;
use super::snapshot;
use super::tool;
use crate::amd::wait;
use crate::support::features::HAS_TRACE;
use crate::support::panic_guard::{Cost, guarded};
use crate::support::run_log::{self, Event};
use crate::support::wait_limit::{self, Waiting};
use crate::trace;
use std::time::Duration;

/// The exit handler: the last drain, and the end of the trace.
pub extern "C" fn at_exit() {
    if report_if_interrupted() {
        return;
    }
    guarded(Cost::Counters, (), || {
        if lifecycle::is_owner() {
            wait_limit::begin_ending();
            if leader::leads() {
                lifecycle::begin_ending();
                lifecycle::await_initialization();
            }
        }
    });
    leader::request(Request::Exiting {});
    guarded(Cost::Counters, (), || {
        if lifecycle::is_owner() {
            snapshot::stop();
            if lifecycle::hsa_is_up() {
                tool::report_if_skipped();
            }
            within_limit(wait::wait_for_all);
            if HAS_TRACE {
                within_limit(trace::finish);
            }
            run_log::append(Event::Ended, b"");
        }
    });
}

/// Waits up to the rest of the time limit, which this instance shares with the leader.
#[inline(never)]
fn within_limit(wait: fn(Duration)) {
    let waiting = Waiting::begin();
    let left = Duration::from_nanos(leader::request(Request::TimeLeft {}));
    wait(waiting.limit.min(left));
}

/// The exit handler of an instance that does not lead. It also runs when its library is closed. The thread then holds the
/// dynamic loader's lock, so the drain does not wait for other threads.
pub extern "C" fn at_close() {
    leader::request(Request::Closing {});
}

/// Runs after the program's exit handlers. In a shared library, glibc runs a handler that the library's constructor has registered
/// only after this function.
pub extern "C" fn after_exit() {
    guarded(Cost::Counters, (), || {
        if lifecycle::is_owner() && !report_if_interrupted() {
            // LLVM's collector may be in the program, too. Its files have the same names and fewer records.
            if tool::is_shared_library() {
                lifecycle::rewrite_replaced_files();
            }
            if HAS_TRACE {
                trace::end();
            }
        }
    });
}
