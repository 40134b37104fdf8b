//! LLVM's raw profile format (`.profraw`), versions 10 and 11, for the runtime that writes it and the tools that read
//! it. `profile/InstrProfData.inc` of LLVM 22 and 23 defines the format.

#![forbid(unsafe_code)]

pub mod counts;
pub mod format;
pub mod kind;
pub mod names;
pub mod reader;

pub use reader::{
    CounterRanges, DEVICE_CODE, Error, Layout, Record, TEST_NAME, TESTS, binary_ids,
    counter_ranges, counts_in, end, end_of_file, hex, records,
};
