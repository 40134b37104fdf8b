//! The properties of GPUs and the launch parameters of kernels, as in a profile.

use super::plane::stat;
use super::proto::Value;
use crate::trace_reader::{Trace, has};
use tracefile::format::{Agent, Dispatch, flag};

/// The parameters of a launch, with the keys that XProf reads and those that XLA writes for AMD's GPUs.
pub fn kernel_details(dispatch: &Dispatch, trace: &Trace) -> String {
    let block = dispatch.workgroup.map(|size| u32::from(size.get()));
    let [bx, by, bz] = block;
    let [gx, gy, gz] = [0, 1, 2].map(|axis| dispatch.grid[axis].get().div_ceil(block[axis].max(1)));
    let kernel = trace.tables.kernels.get(&dispatch.kernel.get());
    let lds = dispatch.lds.get();
    let fixed = kernel.map_or(lds, |kernel| kernel.lds.get().min(lds));
    let mut details = String::new();
    if !has(dispatch, flag::NO_REGISTERS) {
        details = format!("regs:{} ", registers(dispatch, trace));
    }
    details
        + &format!(
            "static_shared:{fixed} dynamic_shared:{} grid:{gx},{gy},{gz} block:{bx},{by},{bz} private_mem:{} group_mem:{lds}",
            lds - fixed,
            dispatch.scratch,
        )
}

/// The vector registers per work-item. On GPUs with one file for both types, they are allocated one after the other.
fn registers(dispatch: &Dispatch, trace: &Trace) -> u32 {
    let vector: u32 = dispatch.vgprs.get().into();
    let accumulation: u32 = dispatch.accum_vgprs.get().into();
    let has_one_file = matches!(version(target(dispatch.agent.get(), trace)), Some((9, minor, stepping)) if minor >= 4 || stepping == 10);
    if has_one_file && accumulation != 0 {
        vector.next_multiple_of(4) + accumulation
    } else {
        vector.max(accumulation)
    }
}

fn target(agent: u32, trace: &Trace) -> &str {
    let agent = trace.tables.agents.get(&agent);
    let name = agent.and_then(|agent| trace.tables.text(agent.name.get()));
    name.unwrap_or_default()
}

/// Major version, minor version and stepping of a target, such as (9, 0, 10) for `gfx90a`.
fn version(target: &str) -> Option<(u64, u64, u64)> {
    let digits = target.split(':').next()?.strip_prefix("gfx")?;
    let (major, rest) = digits.split_at_checked(digits.len().checked_sub(2)?)?;
    let mut rest = rest.chars().map(|digit| digit.to_digit(16));
    let minor = rest.next()??;
    let stepping = rest.next()??;
    Some((major.parse().ok()?, minor.into(), stepping.into()))
}

/// The properties of a GPU.
pub fn capabilities(agent: Option<&Agent>, trace: &Trace) -> Vec<(&'static str, Value)> {
    let mut stats = vec![(stat::VENDOR, Value::Text("AMD".into()))];
    let Some(agent) = agent else {
        return stats;
    };
    let target = target(agent.head.id.get() as u32, trace);
    stats.push((stat::DEVICE_NAME, Value::Text(target.into())));
    if let Some((major, minor, _)) = version(target) {
        stats.push((stat::MAJOR, Value::Uint(major)));
        stats.push((stat::MINOR, Value::Uint(minor)));
    }
    match agent.compute_units.get() {
        0 => {}
        units => stats.push((stat::COMPUTE_UNITS, Value::Uint(units.into()))),
    }
    stats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_targets() {
        for (target, expected) in [
            ("gfx1100", Some((11, 0, 0))),
            ("gfx90a:sramecc+:xnack-", Some((9, 0, 10))),
            ("gfx942", Some((9, 4, 2))),
            ("gfx9-generic", None),
            ("gfx9", None),
            ("gfx", None),
            ("", None),
            ("gfx1\u{e9}0", None),
        ] {
            assert_eq!(version(target), expected, "{target}");
        }
    }
}
