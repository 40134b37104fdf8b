//! `devprof export` and `devprof stats`, on trace files that the tests create record by record.

#[macro_use]
mod files;
mod build_ids;
mod damage;
mod export;
mod python;
mod records;
mod several;
mod stats;
mod versions;
mod xplane;
