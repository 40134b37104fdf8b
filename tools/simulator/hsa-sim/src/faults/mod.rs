//! Fault injection, for tests of behaviour that real hardware shows rarely.
//!
//! The fault plan is a text in `HSA_SIM_PLAN`, in the file `HSA_SIM_PLAN_FILE`, or an argument of
//! [`hsa_sim_plan`](crate::hsa::control::hsa_sim_plan). Line breaks and semicolons separate faults. `#` starts a comment:
//!
//! ```text
//! FUNCTION CALL ACTION [ARGUMENT]
//! ```
//!
//! FUNCTION is the name of an HSA function, `dispatch` for the kernel packets of all queues, `copy-engine` for the copies
//! that copy engines execute, or `discovery` for the first part of `hsa_init`, in which HSA seems to be initialized. CALL is the number of the
//! call, counted from 1 since the plan was set. `N+` means call N and all later calls, `*` means all calls. Numbers are decimal or
//! `0x…`.
//!
//! | action | what happens at that call |
//! | --- | --- |
//! | `fail STATUS` | the function does nothing and returns this status: a number, or a name without `HSA_STATUS_` (`ERROR_OUT_OF_RESOURCES`) |
//! | `block MS` | the function first waits MS milliseconds; `dispatch`: the kernel runs MS milliseconds longer |
//! | `lie VALUE` | the function returns VALUE: the attribute of a `…_get_info` function (truncated to its size), the value of a signal, the number of segment descriptors or the size of the first one, both times of a dispatch or a copy, ticks of the system's clock |
//! | `short BYTES` | a copy: only the first BYTES bytes are copied |
//! | `torn BYTES` | a copy: all bytes after the first BYTES bytes are inverted |
//! | `error` | an asynchronous copy, or `copy-engine`: nothing is copied and the completion signal becomes negative; `dispatch`: the kernel runs, and its completion signal becomes negative |
//! | `drop` | an asynchronous copy, `copy-engine`, or `dispatch`: the completion signal never changes |
//! | `late MS` | `dispatch`: the completion signal changes MS milliseconds later, and the queue does not wait for that |
//! | `times HOW` | `dispatch`: the completion signal gets wrong times: `swapped` (the start after the end), `before` (a second too early), `after` (an hour too late) or `zero` |
//! | `load FILE` | before the call, the code object in FILE is loaded on the first GPU agent |
//!
//! Unknown words, functions that are not simulated, and actions that do not apply to the function are errors: `hsa_init`
//! reports the line and fails.

pub mod functions;
pub mod injection;
pub mod plan;
