//! devprof
