//! Selects the start and end time of a dispatch or copy, and their clock, from the times that the GPU runtime reports.

use std::ops::RangeInclusive;
use tracefile::format::flag;

/// Assumed frequency of an agent's clock if the runtime does not report one: the frequency of AMD's GPUs since gfx9.
/// Scaled times are used only if they place the dispatch between its submission and its observation.
const DEFAULT_AGENT_FREQUENCY: u64 = 100_000_000;
/// The largest distance, in nanoseconds, by which times are moved so that they are between submission and observation.
/// Clocks drift apart between two synchronizations.
const MAX_DRIFT: u64 = 1_000_000;

/// From a start to an end, in ticks of some clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    pub start: u64,
    pub end: u64,
}

/// The times that the GPU runtime reports for a completed dispatch or copy.
pub struct ReportedTimes {
    /// The runtime's translation to the system clock.
    pub translated: Option<Interval>,
    /// Ticks of the agent's clock.
    pub raw: Interval,
    /// From submission to observation, in ticks of the system clock.
    pub window: RangeInclusive<u64>,
    /// Ticks per second of the system clock.
    pub frequency: u64,
    /// Ticks per second of the agent's clock, 0 if unknown.
    pub agent_frequency: u64,
}

/// The times in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedTime {
    pub time: Interval,
    /// Their clock and whether they were moved: [`flag::CLOCK`], [`flag::MOVED`].
    pub flags: u16,
}

impl RecordedTime {
    pub const NONE: RecordedTime = RecordedTime {
        time: Interval { start: 0, end: 0 },
        flags: flag::CLOCK_NONE,
    };
    pub const UNFINISHED: RecordedTime = RecordedTime {
        flags: flag::CLOCK_NONE | flag::UNFINISHED,
        ..RecordedTime::NONE
    };
}

impl ReportedTimes {
    fn is_in_window(&self, time: Interval) -> bool {
        time.start <= time.end
            && self.window.contains(&time.start)
            && self.window.contains(&time.end)
    }

    /// Moves times into the window, keeping their length. `None`: they would move by more than [`MAX_DRIFT`].
    fn move_into_window(&self, time: Interval) -> Option<Interval> {
        let length = time.end.checked_sub(time.start)?;
        let drift = u128::from(MAX_DRIFT) * u128::from(self.frequency) / 1_000_000_000;
        let latest = self.window.end().checked_sub(length)?;
        let start = time
            .start
            .clamp(*self.window.start(), latest.max(*self.window.start()));
        let moved = Interval {
            start,
            end: start + length,
        };
        (u128::from(start.abs_diff(time.start)) <= drift && self.is_in_window(moved))
            .then_some(moved)
    }

    /// Selects, in this order: times in the window, times that can be moved into it, the agent's ticks.
    pub fn select(&self) -> RecordedTime {
        let scale = |ticks: u64| {
            let scaled = u128::from(ticks) * u128::from(self.frequency);
            scaled
                .checked_div(match self.agent_frequency {
                    0 => DEFAULT_AGENT_FREQUENCY.into(),
                    frequency => frequency.into(),
                })
                .and_then(|scaled| u64::try_from(scaled).ok())
        };
        let scaled = scale(self.raw.start)
            .zip(scale(self.raw.end))
            .map(|(start, end)| Interval { start, end });
        let candidates = [
            (self.translated, flag::CLOCK_SYSTEM),
            (scaled, flag::CLOCK_SCALED),
        ];
        for (time, flags) in candidates {
            if let Some(time) = time.filter(|&time| self.is_in_window(time)) {
                return RecordedTime { time, flags };
            }
        }
        for (time, flags) in candidates {
            if let Some(time) = time.and_then(|time| self.move_into_window(time)) {
                let flags = flags | flag::MOVED;
                return RecordedTime { time, flags };
            }
        }
        if self.raw.start != 0 && self.raw.start <= self.raw.end {
            return RecordedTime {
                time: self.raw,
                flags: flag::CLOCK_AGENT,
            };
        }
        RecordedTime::NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn time(start: u64, end: u64) -> Interval {
        Interval { start, end }
    }

    /// Selects the times of a dispatch that was submitted at 10 ms and observed at 20 ms. The system clock counts
    /// nanoseconds, the agent's clock hundreds of nanoseconds.
    fn selected(translated: Option<Interval>, raw: Interval) -> (u64, u64, u16) {
        let reported = ReportedTimes {
            translated,
            raw,
            window: 10_000_000..=20_000_000,
            frequency: 1_000_000_000,
            agent_frequency: 10_000_000,
        };
        let RecordedTime { time, flags } = reported.select();
        (time.start, time.end, flags)
    }

    #[test]
    fn times_between_submission_and_observation_are_preferred() {
        let inside = time(11_000_000, 12_000_000);
        let fits = (11_000_000, 12_000_000);
        let ticks = time(110_000, 120_000);
        let unusable = time(7, 9);
        let cases = [
            (Some(inside), unusable, (fits.0, fits.1, flag::CLOCK_SYSTEM)),
            // ROCr returns this if it has no clock counters.
            (
                Some(time(1 << 63, 1 << 63)),
                ticks,
                (fits.0, fits.1, flag::CLOCK_SCALED),
            ),
            (None, ticks, (fits.0, fits.1, flag::CLOCK_SCALED)),
            (Some(time(12, 11)), unusable, (7, 9, flag::CLOCK_AGENT)),
            (None, time(9, 7), (0, 0, flag::CLOCK_NONE)),
            (None, time(0, 0), (0, 0, flag::CLOCK_NONE)),
            // Slightly early; slightly late; as long as the window; longer than the window; too early.
            (
                Some(time(9_500_000, 11_000_000)),
                unusable,
                (10_000_000, 11_500_000, flag::CLOCK_SYSTEM | flag::MOVED),
            ),
            (
                Some(time(19_000_000, 20_000_001)),
                unusable,
                (18_999_999, 20_000_000, flag::CLOCK_SYSTEM | flag::MOVED),
            ),
            (
                Some(time(10_000_001, 20_000_001)),
                unusable,
                (10_000_000, 20_000_000, flag::CLOCK_SYSTEM | flag::MOVED),
            ),
            (
                Some(time(10_000_001, 20_000_002)),
                unusable,
                (7, 9, flag::CLOCK_AGENT),
            ),
            (
                Some(time(8_000_000, 8_500_000)),
                unusable,
                (7, 9, flag::CLOCK_AGENT),
            ),
        ];
        for (translated, raw, expected) in cases {
            assert_eq!(
                selected(translated, raw),
                expected,
                "{translated:?} {raw:?}"
            );
        }
    }
}
