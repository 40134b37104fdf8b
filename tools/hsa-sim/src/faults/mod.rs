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

pub mod functions;
pub mod injection;
pub mod plan;
