//! A decision below its line: its conditions, the test vectors that were executed, and the pairs that show the effect of each condition.

use super::view::View;
use super::widgets::{function_name, grouped};
use crate::readable::plural;
use crate::report::decisions::{self, Shown};
use crate::report::mcdc::{Independence, NoPair, Vector};
use crate::report::model::{Decision, DecisionCondition, Evaluation, Ratio};
use maud::{Markup, html};

/// How many functions or instances have a table. The first ones show the most.
const MAX_TABLES: usize = 10;
/// How many cells a table has at most.
const MAX_CELLS: usize = 4000;

/// How to read a decision.
pub fn legend() -> Markup {
    html! {
        p.hint {
            "MC/DC: a row of a decision’s table is a combination of values of its conditions (test vector) that was executed: T true, F false, – not evaluated. "
            "A pair of rows shows the effect of a condition: the results differ, and it is the only condition that both evaluated with different values."
        }
    }
}

impl View<'_> {
    /// Whether the effect of each condition was shown on the architectures, or on the host for code that only the host has.
    pub fn is_complete(&self, decision: &Decision) -> bool {
        let own = self.overall(decision);
        own.covered == own.total
    }

    fn overall(&self, decision: &Decision) -> Ratio {
        let device = effects(decision, |own| own.device);
        if device.total > 0 {
            return device;
        }
        let host = self.report.host_column();
        effects(decision, |own| own.columns[host?])
    }

    pub fn decision(&self, decision: &Decision) -> Markup {
        let is_complete = self.is_complete(decision);
        let conditions = decision.conditions.iter();
        let conditions = conditions.map(|own| decisions::condition(self.report, self.file, own));
        let conditions: Vec<Shown> = conditions.collect();
        let overall = self.overall(decision);
        let mut evaluations: Vec<&Evaluation> = decision.evaluations.iter().collect();
        evaluations.sort_by_key(|own| (own.column, std::cmp::Reverse(shown_effects(own).covered)));
        html! {
            tr.decision {
                td {}
                @if self.has_sum { (cell(effects(decision, |own| own.device))) }
                @for &column in &self.columns { (cell(effects(decision, |own| own.columns[column]))) }
                @if self.has_tests() { td {} }
                td.src {
                    details open[!is_complete] {
                        summary {
                            "MC/DC " (overall.covered) " of " (plural(overall.total as usize, "condition")) " "
                            @if let Some(text) = decisions::decision_text(self.file, decision) { code { (text) } }
                        }
                        @for own in evaluations.iter().take(MAX_TABLES) { (self.table_of(own, &conditions)) }
                        @if let Some(more @ 1..) = evaluations.len().checked_sub(MAX_TABLES) {
                            p.hint { (grouped(more as u64)) " more functions or instances; " code { "report.json" } " has all" }
                        }
                    }
                }
            }
        }
    }

    /// The vectors of a function.
    fn table_of(&self, own: &Evaluation, conditions: &[Shown]) -> Markup {
        let column = &self.report.columns[own.column].name;
        let rows = (MAX_CELLS / conditions.len().max(1)).max(2);
        html! {
            p.small {
                (column) ": " (function_name(&own.function, None))
                @if !own.results_from_source { " " span.tag.bad { "results of llvm-cov" } }
            }
            table.vectors {
                caption { "Test vectors in " (own.function) ", " (column) }
                thead {
                    tr {
                        th.n scope="col" { "Vector" }
                        @for (n, condition) in conditions.iter().enumerate() {
                            th scope="col" title=(condition.position) {
                                b { "C" (n + 1) } " "
                                @match &condition.text { Some(text) => code { (text) }, None => span.small { (condition.position) } }
                            }
                        }
                        th scope="col" { "Result" }
                    }
                }
                tbody {
                    @for (n, vector) in own.vectors.iter().enumerate().take(rows) { (row(n, vector)) }
                    @if let Some(more @ 1..) = own.vectors.len().checked_sub(rows) {
                        tr { td colspan=(conditions.len() + 2) { (grouped(more as u64)) " more vectors; " code { "report.json" } " has all" } }
                    }
                    @if own.vectors.is_empty() { tr { td colspan=(conditions.len() + 2) { "never evaluated" } } }
                }
                tfoot {
                    tr {
                        th.n scope="row" { "Pair" }
                        @for pair in &own.pairs { (pair_cell(*pair)) }
                        @let effects = shown_effects(own);
                        td { (effects.covered) " of " (effects.total) }
                    }
                }
            }
        }
    }
}

fn row(n: usize, vector: &Vector) -> Markup {
    let value = |value: bool| if value { "T" } else { "F" };
    html! {
        tr {
            th.n scope="row" { (n + 1) }
            @for condition in &vector.conditions { td { (condition.map_or("–", value)) } }
            td { b { (value(vector.result)) } }
        }
    }
}

fn pair_cell(pair: Independence) -> Markup {
    match pair {
        Independence::Pair(one, other) => html! { td.covered { (one + 1) ", " (other + 1) } },
        Independence::None(NoPair::Missing) => html! { td.zero { "missing" } },
        Independence::None(NoPair::Constant) => html! { td { "constant" } },
    }
}

/// How many conditions of a decision have an effect that was shown.
fn effects(decision: &Decision, of: impl Fn(&DecisionCondition) -> Option<bool>) -> Ratio {
    Ratio::of_effects(decision.conditions.iter().map(of))
}

fn shown_effects(own: &Evaluation) -> Ratio {
    Ratio::of_effects(own.pairs.iter().map(|pair| pair.covered()))
}

/// The cell of a column: how many conditions have a pair there.
fn cell(own: Ratio) -> Markup {
    html! {
        td.n {
            @if own.total > 0 {
                @if own.covered < own.total { b.zero { (own.covered) "/" (own.total) } } @else { (own.covered) "/" (own.total) }
            }
        }
    }
}
