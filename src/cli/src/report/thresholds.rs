//! `--fail-under-…`: the coverage that is required.

use super::model::{Ratio, Report, Totals};
use crate::console::{Console, Diagnostic, Severity};
use clap::Args;

#[derive(Args, Clone, Copy, Debug, Default)]
#[group(skip)]
pub struct Options {
    /// Exit with status 4 if less than N percent of the lines ran
    #[arg(long, value_name = "N", value_parser = percentage)]
    fail_under_lines: Option<f64>,
    /// Exit with status 4 if less than N percent of the functions ran
    #[arg(long, value_name = "N", value_parser = percentage)]
    fail_under_functions: Option<f64>,
    /// Exit with status 4 if less than N percent of the branches were taken
    #[arg(long, value_name = "N", value_parser = percentage)]
    fail_under_branches: Option<f64>,
    /// Exit with status 4 if less than N percent of the instrumented kernels ran, or without profiles of all kernels
    #[arg(long, value_name = "N", value_parser = percentage)]
    fail_under_kernels: Option<f64>,
    /// Exit with status 4 if the effect of less than N percent of the conditions was shown (MC/DC)
    #[arg(long, value_name = "N", value_parser = percentage)]
    fail_under_mcdc: Option<f64>,
}

fn percentage(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if (0.0..=100.0).contains(&number) => Ok(number),
        _ => Err("expected a percentage from 0 to 100".to_owned()),
    }
}

impl Options {
    /// The option of a threshold that needs profiles, if one is given.
    pub fn of_lines(&self) -> Option<&'static str> {
        let each = [
            ("--fail-under-lines", self.fail_under_lines),
            ("--fail-under-functions", self.fail_under_functions),
            ("--fail-under-branches", self.fail_under_branches),
            ("--fail-under-mcdc", self.fail_under_mcdc),
        ];
        let mut each = each.into_iter();
        each.find_map(|(option, value)| value.map(|_| option))
    }

    /// Messages about the thresholds that the report does not reach. With `--host`, they apply to the sum of device and
    /// host.
    pub fn failures(&self, report: &Report) -> Vec<String> {
        let totals = report.overall();
        let checks = [
            ("lines", totals.lines, self.fail_under_lines),
            ("functions", totals.functions, self.fail_under_functions),
            ("branches", totals.branches, self.fail_under_branches),
            ("kernels", report.kernel_coverage, self.fail_under_kernels),
        ];
        let checks = checks.into_iter();
        let failures = checks.filter_map(|(option, ratio, threshold)| {
            failure(option, ratio, threshold?, report.has_coverage())
        });
        let mcdc = self.fail_under_mcdc;
        let mcdc = mcdc.and_then(|threshold| mcdc_failure(report.has_decisions, totals, threshold));
        failures.chain(mcdc).collect()
    }
}

/// `has_coverage`: there are profiles, so only instrumented kernels are included.
fn failure(option: &str, ratio: Ratio, threshold: f64, has_coverage: bool) -> Option<String> {
    let what = match option {
        "kernels" if has_coverage => "instrumented kernels",
        other => other,
    };
    if ratio.total > 0 {
        return below(option, ratio, threshold, &format!("of the {what} ran"));
    }
    // Code without conditions has no branches. But a report without lines, functions or kernels shows nothing.
    (option != "branches").then(|| {
        format!(
            "there are no {what} in the report, but {}",
            required(option, threshold)
        )
    })
}

/// `has_decisions`: the code was compiled for MC/DC. Then selected lines without decisions reach each threshold.
fn mcdc_failure(has_decisions: bool, totals: Totals, threshold: f64) -> Option<String> {
    if has_decisions {
        let what = "of the conditions have an independence pair";
        return below("mcdc", totals.mcdc, threshold, what);
    }
    Some(format!(
        "there are no decisions for MC/DC in the binaries, but {}: compile with the flags of `devprof flags --coverage --mcdc`",
        required("mcdc", threshold)
    ))
}

fn required(option: &str, threshold: f64) -> String {
    format!("--fail-under-{option} requires {threshold} %")
}

fn below(option: &str, ratio: Ratio, threshold: f64, what: &str) -> Option<String> {
    match ratio.percent()? {
        percent if percent >= threshold => None,
        percent => {
            let rounded = format!("{percent:.1}")
                .parse()
                .is_ok_and(|rounded: f64| rounded >= threshold);
            let shown = if rounded && percent < 99.9 {
                format!("{percent:.3} %")
            } else {
                ratio.percent_text()
            };
            Some(format!(
                "{shown} {what} ({} of {}), but {}",
                ratio.covered,
                ratio.total,
                required(option, threshold)
            ))
        }
    }
}

pub fn print(failures: &[String], console: &mut Console) {
    for failure in failures {
        console.report(&Diagnostic::new(Severity::Error, failure));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_is_compared_with_the_exact_percentage() {
        let check = |covered, total, threshold| {
            let ratio = Ratio { covered, total };
            failure("lines", ratio, threshold, true)
        };
        assert_eq!(check(18, 19, 94.7), None);
        assert_eq!(
            check(18, 19, 94.8).unwrap(),
            "94.7 % of the lines ran (18 of 19), but --fail-under-lines requires 94.8 %"
        );
        // Rounded, it would look as if it reached the threshold.
        assert!(check(1895, 2000, 94.8).unwrap().starts_with("94.750 % of"));
        assert_eq!(check(1, 3, 100.0 / 3.0), None);
        assert_eq!(check(7, 7, 100.0), None);
        assert!(check(9999, 10000, 100.0).unwrap().contains("99.9 %"));
        assert!(check(0, 0, 0.0).unwrap().contains("no lines"));
        assert_eq!(failure("branches", Ratio::default(), 100.0, true), None);
    }

    #[test]
    fn kernels_are_instrumented_only_if_there_are_profiles() {
        let check = |covered, total, has_coverage| {
            let ratio = Ratio { covered, total };
            failure("kernels", ratio, 75.0, has_coverage)
        };
        assert_eq!(check(3, 4, false), None);
        assert_eq!(
            check(2, 4, false).unwrap(),
            "50.0 % of the kernels ran (2 of 4), but --fail-under-kernels requires 75 %"
        );
        assert!(check(2, 4, true).unwrap().contains("instrumented kernels"));
        assert!(
            check(0, 0, false)
                .unwrap()
                .starts_with("there are no kernels in")
        );
    }

    #[test]
    fn code_that_was_not_compiled_for_mcdc_fails() {
        let check = |has_decisions, covered, total| {
            let mcdc = Ratio { covered, total };
            let totals = Totals {
                mcdc,
                ..Totals::default()
            };
            mcdc_failure(has_decisions, totals, 75.0)
        };
        assert_eq!(check(true, 3, 4), None);
        // The selected lines have none.
        assert_eq!(check(true, 0, 0), None);
        assert_eq!(
            check(true, 2, 3).unwrap(),
            "66.7 % of the conditions have an independence pair (2 of 3), but --fail-under-mcdc requires 75 %"
        );
        assert!(check(false, 0, 0).unwrap().contains("devprof flags"));
    }

    #[test]
    fn a_percentage_is_a_number_from_0_to_100() {
        assert_eq!(percentage("97.5"), Ok(97.5));
        for wrong in ["101", "-1", "NaN", "x", ""] {
            assert!(percentage(wrong).is_err(), "{wrong}");
        }
    }
}
