//! The functions that a fault plan can name, and which faults each can have.

use hsa_abi::*;

/// The name for kernel packets in a fault plan.
pub const DISPATCH: &str = "dispatch";

/// The name for copies of the copy engines in a fault plan.
pub const ENGINE: &str = "copy-engine";
/// The name for the first part of `hsa_init` in a fault plan.
pub const DISCOVERY: &str = "discovery";

/// The functions that copy.
pub const COPIES: &[&str] = &[
    "hsa_memory_copy",
    "hsa_amd_memory_async_copy",
    "hsa_amd_memory_async_copy_on_engine",
    "hsa_amd_memory_async_copy_rect",
    "hsa_amd_memory_async_batch_copy",
];

/// The kind of a function's result.
#[derive(Clone, Copy)]
pub enum Kind {
    /// A status: the function can fail.
    Status,
    /// A value, which the plan can replace.
    Value,
    Nothing,
}

/// The types of results.
pub trait Returned: Copy {
    /// The kind of the type.
    const KIND: Kind = Kind::Value;
    /// The result of a call that fails with `status`.
    fn failed(_status: Status) -> Option<Self> {
        None
    }
    /// The result for a value of the plan.
    fn replaced(_value: u64) -> Option<Self> {
        None
    }
}

impl Returned for Status {
    const KIND: Kind = Kind::Status;
    fn failed(status: Status) -> Option<Status> {
        Some(status)
    }
}

impl Returned for u32 {}

impl Returned for i64 {
    fn replaced(value: u64) -> Option<i64> {
        Some(value as i64)
    }
}

impl Returned for u64 {
    fn replaced(value: u64) -> Option<u64> {
        Some(value)
    }
}

impl Returned for () {
    const KIND: Kind = Kind::Nothing;
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

/// The kind of a function's result. `None`: the function is unknown or not simulated.
pub fn kind(function: &str) -> Option<Kind> {
    if matches!(function, DISPATCH | ENGINE | DISCOVERY) {
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

/// Whether a function writes values to memory that the plan can replace.
pub fn writes_values(function: &str) -> bool {
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
