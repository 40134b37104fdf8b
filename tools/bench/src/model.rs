//! How fast the GPU model executes: lane-instructions a second of a compute kernel.

use clap::Args;

#[derive(Args)]
pub struct Options {}

pub fn run(_options: &Options) -> Result<(), String> {
    Err("not measured yet".into())
}
