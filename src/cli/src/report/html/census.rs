//! The kernels of the binaries that a trace has or does not have, and the page of a report without profiles.

use super::list::List;
use super::pages::Pages;
use super::widgets::{calls, card, function_name, head, longest, notes, time};
use crate::report::model::{Kernel, KernelState};
use crate::report::text;
use maud::{Markup, html};
use std::io;

impl Pages<'_> {
    /// Writes the page of a report without profiles.
    pub fn write_census(&self) -> io::Result<()> {
        let report = self.report;
        let ran = self.in_states(&[KernelState::Ran]);
        let others = self.in_states(&[KernelState::NotInBinaries, KernelState::Runtime]);
        let title = report.heading();
        let body = html! {
            h1 { (title) }
            @if !report.notes.is_empty() { (notes(&report.notes)) }
            section.cards aria-label="Totals" { (card("Kernels", report.kernel_coverage, None)) }
            @if report.traces.len() > 1 { (self.traces()) }
            section id="kernels" {
                h2 { "Kernels" }
                p.hint {
                    @if let Some(census) = text::census(report) { (census) ". " }
                    "A kernel that several code objects have is one kernel."
                }
                (self.traced("kernels.html", "Kernels that ran", &ran)?)
            }
            @if !others.is_empty() {
                section id="elsewhere" {
                    h2 { "Ran, but in none of the binaries" }
                    p.hint { "These kernels are of other libraries, or were compiled while the program ran. Kernels that are part of HIP fill and copy memory." }
                    (self.traced("elsewhere.html", "Kernels that are in none of the binaries", &others)?)
                }
            }
            (self.never_ran_in_binaries()?)
        };
        self.write("index.html", &title, body)
    }

    /// The kernels that never ran and are not instrumented.
    pub fn never_ran_in_binaries(&self) -> io::Result<Markup> {
        let mut never_ran = self.in_states(&[KernelState::NeverRan]);
        never_ran.retain(|kernel| kernel.function.is_none());
        let other_gpu = self.in_states(&[KernelState::OtherGpu]);
        let title = match self.report.has_coverage() {
            true => "Not instrumented, never ran",
            false => "Never ran",
        };
        Ok(html! {
            @if !never_ran.is_empty() {
                section id="not-in-trace" {
                    h2 { (title) }
                    (self.names("not-in-trace.html", "Kernels that never ran", &never_ran)?)
                }
            }
            @if !other_gpu.is_empty() {
                section id="other-gpu" {
                    h2 { "Only for other GPUs" }
                    p.hint { "The binaries have no code of these kernels for a GPU on which the program ran." }
                    (self.names("other-gpu.html", "Kernels for other GPUs", &other_gpu)?)
                }
            }
        })
    }

    pub fn in_states(&self, states: &[KernelState]) -> Vec<&Kernel> {
        let kernels = self.report.kernels.iter();
        let kernels = kernels.filter(|kernel| states.contains(&kernel.state));
        kernels.collect()
    }

    /// Kernels with their calls and times.
    pub fn traced(&self, path: &str, caption: &str, kernels: &[&Kernel]) -> io::Result<Markup> {
        let max = longest(kernels);
        let rows = kernels.iter().map(|kernel| {
            html! {
                tr {
                    th scope="row" {
                        (function_name(&kernel.name, None))
                        @if kernel.state == KernelState::Runtime { " " span.tag { "part of HIP" } }
                    }
                    (calls(kernel)) (time(kernel, max))
                }
            }
        });
        let list = List::sorted(caption, head(&["Kernel", "#Calls", "#Total time"]), rows);
        self.part(path, &html! {}, &list)
    }

    fn names(&self, path: &str, caption: &str, kernels: &[&Kernel]) -> io::Result<Markup> {
        let rows = kernels.iter().map(|kernel| {
            html! { tr { th scope="row" { (function_name(&kernel.name, None)) } } }
        });
        let list = List::sorted(caption, head(&["Kernel"]), rows);
        self.part(path, &html! {}, &list)
    }
}
