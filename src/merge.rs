//! Adding a profile to one that another process, or an earlier drain, has written (%m in the pattern).

pub use profraw::counts::{
    add, check_same as fits, has_decreased as has_fallen, reset, saturate as cap,
};
