//! `devprof export` and `devprof stats`, on trace files that are made record by record.

mod damage;
mod export;
mod files;
mod stats;
