//! `--kernel`, `--exclude-kernel` and `--time`: the records that a command takes from a trace.

use super::trace::{Record, Trace};
use crate::times::nanoseconds;
use clap::Args;
use regex::Regex;
use std::collections::HashMap;
use std::str::FromStr;

#[derive(Args, Clone, Debug, Default)]
pub struct Selection {
    /// Only kernels whose names, as they are shown, match this regular expression. Several: one of them
    #[arg(long, value_name = "REGEX", visible_alias = "kernel-include-regex")]
    kernel: Vec<Regex>,
    /// No kernels whose names match this regular expression
    #[arg(long, value_name = "REGEX", visible_alias = "kernel-exclude-regex")]
    exclude_kernel: Vec<Regex>,
    /// Only what was in progress at these times since the start of the (first) trace, such as 1s..1500ms, 2s.. or ..10ms.
    /// Several: in one of them
    #[arg(long, value_name = "FROM..TO")]
    time: Vec<Window>,
}

impl Selection {
    pub fn has_kernels(&self) -> bool {
        !self.kernel.is_empty() || !self.exclude_kernel.is_empty()
    }

    /// The number of windows of time.
    pub fn windows(&self) -> usize {
        self.time.len()
    }

    fn has_name(&self, name: &str) -> bool {
        let any = |all: &[Regex]| all.iter().any(|regex| regex.is_match(name));
        (self.kernel.is_empty() || any(&self.kernel)) && !any(&self.exclude_kernel)
    }
}

/// A part of the time since the start of a trace, in nanoseconds. The end is not a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    from: Option<u64>,
    to: Option<u64>,
}

impl Window {
    /// Whether something that lasted for this time, which can be a point, was in progress in the window of a trace that
    /// started at `origin`.
    fn has(self, origin: u64, (start, end): (u64, u64)) -> bool {
        let from = self.from.map(|from| origin.saturating_add(from));
        let to = self.to.map(|to| origin.saturating_add(to));
        from.is_none_or(|from| start >= from || end > from) && to.is_none_or(|to| start < to)
    }
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Window, String> {
        let (from, to) = text
            .split_once("..")
            .ok_or("write two times with .. between them, such as 1s..2s")?;
        let bound = |text: &str| (!text.is_empty()).then(|| nanoseconds(text)).transpose();
        let window = Window {
            from: bound(from)?,
            to: bound(to)?,
        };
        match window {
            Window {
                from: None,
                to: None,
            } => Err("write at least one time, such as 1s..".into()),
            Window {
                from: Some(from),
                to: Some(to),
            } if from >= to => Err("the second time must be later than the first".into()),
            window => Ok(window),
        }
    }
}

/// Applies a [`Selection`] to the records of one trace.
pub struct Filter<'a> {
    selection: &'a Selection,
    /// The time to which windows are relative.
    origin: u64,
    /// Whether the kernels with these IDs are selected.
    kernels: HashMap<u32, bool>,
}

impl Filter<'_> {
    pub fn new(selection: &Selection, origin: u64) -> Filter<'_> {
        Filter {
            selection,
            origin,
            kernels: HashMap::new(),
        }
    }

    /// Whether the record is selected. Records to which others refer always are.
    pub fn has(&mut self, record: &Record, trace: &mut Trace) -> bool {
        self.has_time(record, trace)
            && match record {
                Record::Dispatch(dispatch) => self.has_kernel(dispatch.kernel.get(), trace),
                _ => true,
            }
    }

    fn has_time(&self, record: &Record, trace: &Trace) -> bool {
        if self.selection.time.is_empty() {
            return true;
        }
        let times = match record {
            Record::Dispatch(dispatch) => trace.times_or_submission(dispatch),
            Record::Copy(copy) => trace.copy_times_or_submission(copy),
            Record::Call(call) => (trace.ns(call.start.get()), trace.ns(call.end.get())),
            Record::Marker(marker) => (trace.ns(marker.start.get()), trace.ns(marker.end.get())),
            _ => return true,
        };
        let mut windows = self.selection.time.iter();
        windows.any(|window| window.has(self.origin, times))
    }

    fn has_kernel(&mut self, id: u32, trace: &mut Trace) -> bool {
        if !self.selection.has_kernels() {
            return true;
        }
        let find = || self.selection.has_name(&trace.kernel(id));
        *self.kernels.entry(id).or_insert_with(find)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_have_units_and_can_be_open() {
        let window = |from, to| Ok(Window { from, to });
        for (text, expected) in [
            (
                "1s..1500ms",
                window(Some(1_000_000_000), Some(1_500_000_000)),
            ),
            ("2.5us..", window(Some(2500), None)),
            ("..10ns", window(None, Some(10))),
        ] {
            assert_eq!(text.parse::<Window>(), expected, "{text}");
        }
        for (text, message) in [
            ("1s", "write two times with .. between them, such as 1s..2s"),
            ("..", "write at least one time, such as 1s.."),
            ("2s..1s", "the second time must be later than the first"),
            ("1s..1s", "the second time must be later than the first"),
            ("1..2", "1 has no unit: add ns, us, ms, s, min or h"),
        ] {
            assert_eq!(text.parse::<Window>(), Err(message.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_window_has_what_was_in_progress_in_it() {
        let has = |window: &str, times| window.parse::<Window>().unwrap().has(100, times);
        for (times, expected) in [
            ((105, 109), false),
            ((105, 110), false),
            ((105, 111), true),
            ((110, 110), true),
            ((119, 300), true),
            ((120, 120), false),
            ((90, 300), true),
        ] {
            assert_eq!(has("10ns..20ns", times), expected, "{times:?}");
        }
        // Records that began before the trace.
        assert!(has("..20ns", (90, 95)));
        assert!(!has("0ns..20ns", (90, 95)));
        assert!(has("10ns..", (u64::MAX, u64::MAX)));
    }

    #[test]
    fn kernels_match_one_pattern_and_no_excluded_one() {
        let regexes = |all: &[&str]| all.iter().map(|text| Regex::new(text).unwrap()).collect();
        let selection = Selection {
            kernel: regexes(&["^add", "scale"]),
            exclude_kernel: regexes(&["float"]),
            time: Vec::new(),
        };
        let names = ["add(int)", "add(float)", "upscale()", "readd()"];
        let found = names.map(|name| selection.has_name(name));
        assert_eq!(found, [true, false, true, false]);
    }
}
