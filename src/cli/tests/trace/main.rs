//! `devprof export` and `devprof stats`, on trace files that the tests create record by record.

mod damage;
mod export;
mod files;
mod records;
mod several;
mod stats;
mod versions;
mod xplane;
