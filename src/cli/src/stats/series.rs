//! The statistics of many times, in bounded memory.
//!
//! All but the median are exact, except for the rounding of floating point. The median is exact for up to [`EXACT`]
//! values. For more, it is read from a histogram whose buckets have at most 1/1024 of their values as width, and is at
//! most 0.05 % off.

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::Serialize;

/// How many values a series keeps. They need about as much memory as the histogram.
pub const EXACT: usize = 16_384;
/// Significant decimal digits of the histogram.
const DIGITS: u8 = 3;
/// The largest value that the histogram can count: 146 years of nanoseconds.
const LARGEST: u64 = i64::MAX as u64 / 2;

/// Times. They are kept until there are more than [`EXACT`], and then summed up all at once, which is faster than one
/// at a time.
#[derive(Clone, Debug, Default)]
pub struct Series {
    kept: Vec<u64>,
    summed: Sums,
    /// The values in `summed`, if there are any.
    counts: Option<Box<Histogram<u64>>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    calls: u64,
    total: u128,
    min: u64,
    max: u64,
    mean: f64,
    /// The sum of the squares of the differences from the mean.
    squares: f64,
}

/// The times of a row.
// The unit is the unit of the values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Statistics {
    pub calls: u64,
    pub total: u64,
    pub mean: f64,
    // The middle value, or the mean of both middle values.
    pub median: f64,
    /// The median is at most 0.05 % off. See [`super::series`].
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub median_is_approximate: bool,
    pub min: u64,
    pub max: u64,
    // The standard deviation of a sample (divided by n - 1), as in rocprofv3. 0 for one value.
    #[serde(rename = "stddev")]
    pub deviation: f64,
}

impl Series {
    pub fn add(&mut self, value: u64) {
        if self.kept.len() == EXACT {
            self.sum_up();
        }
        self.kept.push(value);
    }

    /// Adds the values of another series.
    pub fn merge(&mut self, other: Series) {
        if let Some(others) = other.counts {
            self.sum_up();
            // Cannot fail, because both histograms have the same digits and grow.
            let _ = self.counts.get_or_insert_with(histogram).add(&*others);
            self.summed.merge(other.summed);
        }
        other.kept.into_iter().for_each(|value| self.add(value));
    }

    fn sum_up(&mut self) {
        let counts = self.counts.get_or_insert_with(histogram);
        for &value in &self.kept {
            // Cannot fail, because the histogram grows up to `LARGEST`.
            let _ = counts.record(value.min(LARGEST));
        }
        self.summed.merge(Sums::of(&self.kept));
        self.kept.clear();
    }

    pub fn statistics(mut self) -> Statistics {
        if self.counts.is_some() {
            self.sum_up();
        }
        let mut sums = self.summed;
        sums.merge(Sums::of(&self.kept));
        let (low, high) = match &self.counts {
            None => middle(&mut self.kept),
            Some(counts) => {
                let ranks = [counts.len().div_ceil(2), counts.len() / 2 + 1];
                let [low, high] = ranks.map(|rank| ranked(counts, rank));
                (low, high)
            }
        };
        // Buckets can begin before the lowest value, and end after the highest.
        let within = |value: u64| value.clamp(sums.min, sums.max) as f64;
        Statistics {
            calls: sums.calls,
            total: u64::try_from(sums.total).unwrap_or(u64::MAX),
            mean: sums.total as f64 / sums.calls.max(1) as f64,
            median: within(low).midpoint(within(high)),
            median_is_approximate: self.counts.is_some(),
            min: sums.min,
            max: sums.max,
            deviation: match sums.calls {
                0 | 1 => 0.0,
                calls => (sums.squares / (calls - 1) as f64).sqrt(),
            },
        }
    }
}

impl Sums {
    fn of(values: &[u64]) -> Sums {
        let total: u128 = values.iter().map(|&value| u128::from(value)).sum();
        let mean = total as f64 / values.len().max(1) as f64;
        let square = |&value: &u64| (value as f64 - mean).powi(2);
        Sums {
            calls: values.len() as u64,
            total,
            min: values.iter().min().copied().unwrap_or_default(),
            max: values.iter().max().copied().unwrap_or_default(),
            mean,
            squares: values.iter().map(square).sum(),
        }
    }

    /// Adds the sums of other values, by Chan's formula.
    fn merge(&mut self, other: Sums) {
        if self.calls == 0 {
            *self = other;
            return;
        }
        if other.calls == 0 {
            return;
        }
        let (own, others) = (self.calls as f64, other.calls as f64);
        let difference = other.mean - self.mean;
        *self = Sums {
            calls: self.calls + other.calls,
            total: self.total + other.total,
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            mean: self.mean + difference * others / (own + others),
            squares: self.squares
                + other.squares
                + difference * difference * own * others / (own + others),
        };
    }
}

/// The two middle values. They are the same if the number of values is odd.
fn middle(values: &mut [u64]) -> (u64, u64) {
    if values.is_empty() {
        return (0, 0);
    }
    let is_even = values.len().is_multiple_of(2);
    let (lower, &mut high, _) = values.select_nth_unstable(values.len() / 2);
    let low = lower.iter().max().copied().filter(|_| is_even);
    (low.unwrap_or(high), high)
}

fn histogram() -> Box<Histogram<u64>> {
    // Fails only for more than five digits.
    Box::new(Histogram::new(DIGITS).expect("a valid number of digits"))
}

/// The middle of the bucket of the value with this rank, from 1.
fn ranked(counts: &Histogram<u64>, rank: u64) -> u64 {
    let mut seen = 0;
    for step in counts.iter_recorded() {
        seen += step.count_since_last_iteration();
        if seen >= rank {
            return counts.median_equivalent(step.value_iterated_to());
        }
    }
    counts.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers without a pattern, in a wide range.
    fn numbers(count: usize) -> impl Iterator<Item = u64> {
        let mut state = 1u64;
        (0..count).map(move |_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            (state >> 33) >> ((state >> 60) * 2)
        })
    }

    fn series(values: impl IntoIterator<Item = u64>) -> Series {
        let mut series = Series::default();
        values.into_iter().for_each(|value| series.add(value));
        series
    }

    fn statistics(values: impl IntoIterator<Item = u64>) -> Statistics {
        series(values).statistics()
    }

    fn exact_median(values: &[u64]) -> f64 {
        let mut values = values.to_vec();
        values.sort_unstable();
        let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        (low as f64).midpoint(high as f64)
    }

    #[test]
    fn few_values_have_exact_statistics() {
        let four = statistics([40, 10, 30, 10]);
        assert_eq!((four.calls, four.total), (4, 90));
        assert_eq!((four.min, four.max), (10, 40));
        assert_eq!((four.mean, four.median, four.deviation), (22.5, 20.0, 15.0));
        let one = statistics([7]);
        assert_eq!((one.median, one.deviation, one.min), (7.0, 0.0, 7));
        assert_eq!(statistics([3, 1, 2]).median, 2.0);
        assert_eq!(statistics([u64::MAX, u64::MAX]).total, u64::MAX);
        assert_eq!(statistics([u64::MAX, u64::MAX]).mean, u64::MAX as f64);
        assert_eq!(statistics([]).median, 0.0);
    }

    #[test]
    fn the_deviation_of_close_large_values_is_not_rounded_away() {
        for count in [1000, 100_000] {
            let close = (0..count).map(|n| 1_000_000_000_000_000 + n % 2);
            let exact = (0.25 * count as f64 / (count - 1) as f64).sqrt();
            assert!((statistics(close).deviation - exact).abs() < 1e-9);
        }
    }

    #[test]
    fn the_median_is_exact_up_to_the_limit_and_then_at_most_a_2000th_off() {
        for count in [
            EXACT - 1,
            EXACT,
            EXACT + 1,
            EXACT + 2,
            10 * EXACT,
            10 * EXACT + 1,
        ] {
            let values: Vec<u64> = numbers(count).collect();
            let (found, exact) = (statistics(values.clone()), exact_median(&values));
            assert_eq!(found.median_is_approximate, count > EXACT);
            let error = (found.median - exact).abs() / exact;
            let limit = if count <= EXACT { 0.0 } else { 0.0005 };
            assert!(error <= limit, "{count}: {} {exact}", found.median);
            assert_eq!(found.calls, count as u64);
            assert_eq!(found.total, values.iter().sum::<u64>());
            assert_eq!(Some(&found.min), values.iter().min());
            assert_eq!(Some(&found.max), values.iter().max());
        }
        // Both middle values are in different buckets, and no bucket exceeds the extremes.
        let halves = (0..EXACT as u64 * 2).map(|n| [1_000_000, 3_000_000][n as usize % 2]);
        assert!((statistics(halves).median / 2_000_000.0 - 1.0).abs() < 0.0005);
        let same = (0..EXACT * 2).map(|_| 1_000_003);
        assert_eq!(statistics(same).median, 1_000_003.0);
        let huge = (0..EXACT * 2).map(|_| u64::MAX);
        assert_eq!(statistics(huge).median, u64::MAX as f64);
    }

    #[test]
    fn merged_series_are_the_series_of_all_values() {
        for (first, second) in [
            (3, 0),
            (0, 3),
            (10, 20),
            (20_000, 10),
            (10, 20_000),
            (40_000, 40_000),
        ] {
            let values: Vec<u64> = numbers(first + second).collect();
            let all = statistics(values.clone());
            let mut merged = series(values[..first].to_vec());
            merged.merge(series(values[first..].to_vec()));
            let merged = merged.statistics();
            let error = (merged.deviation / all.deviation - 1.0).abs();
            assert!(error < 1e-12, "{first} {second}");
            let deviation = all.deviation;
            assert_eq!(
                Statistics {
                    deviation,
                    ..merged
                },
                all,
                "{first} {second}"
            );
        }
    }
}
