//! Notes about the numbers of a report. They are part of the report, and warnings are also reported on stderr.

use super::column_data::ColumnData;
use super::lcov;
use super::model::{KernelState, Note, Report};
use super::objects::{Object, ObjectGroup};
use super::source::Source;
use crate::console::{Console, Diagnostic, Severity};
use crate::names;
use code_objects::Sampling;
use std::collections::BTreeSet;

/// The flag for counting every block.
pub const EVERY_BLOCK: &str = "-Xarch_device -mllvm=--offload-pgo-sampling=0";

/// The notes so far.
#[derive(Default)]
pub struct Notes {
    notes: Vec<Note>,
    /// How many of the first notes have been reported on stderr.
    reported: usize,
    /// Some of the input is missing from the report.
    is_incomplete: bool,
}

impl Notes {
    fn add(&mut self, level: Severity, text: impl Into<String>, items: Vec<String>) {
        let text = text.into();
        self.notes.push(Note { level, text, items });
    }

    /// Adds a note about these items, if there are any.
    fn about(&mut self, level: Severity, text: impl Into<String>, items: Vec<String>) {
        if !items.is_empty() {
            self.add(level, text, items);
        }
    }

    pub fn note(&mut self, text: impl Into<String>) {
        self.add(Severity::Note, text, Vec::new());
    }

    pub fn warning(&mut self, text: impl Into<String>) {
        self.add(Severity::Warning, text, Vec::new());
    }

    /// A warning about these items.
    pub fn warning_about(&mut self, text: String, items: Vec<String>) {
        self.about(Severity::Warning, text, items);
    }

    /// A warning about something that is missing from the report.
    pub fn loss(&mut self, text: impl Into<String>) {
        self.is_incomplete = true;
        self.warning(text);
    }

    /// A warning about things that are missing from the report, if there are any.
    pub fn losses(&mut self, text: &str, items: Vec<String>) {
        self.is_incomplete |= !items.is_empty();
        self.about(Severity::Warning, format!("{text}."), items);
    }

    /// Like [`Notes::losses`], for losses that have already been reported on stderr.
    pub fn reported_loss(&mut self, text: &str, items: Vec<String>) {
        self.losses(text, items);
        self.notes.rotate_right(1);
        self.reported += 1;
    }

    /// Adds warnings about counts of an architecture that are missing or mixed.
    pub fn problems(&mut self, column: &ColumnData) {
        let problems = &column.problems;
        let shown = |names: &BTreeSet<String>| -> Vec<String> {
            names.iter().map(|name| names::demangled(name)).collect()
        };
        let name = &column.name;
        self.losses(
            &format!("Counts of functions of {name} are lost, because the profile is from a different build: they are shown as not run"),
            shown(&problems.mismatched),
        );
        self.losses(
            &format!("Decisions (MC/DC) of {name} are left out, because this llvm-cov does not list test vectors: use LLVM 22 or later (`--llvm DIR`)"),
            shown(&problems.without_vectors),
        );
        self.losses(
            &format!("Decisions (MC/DC) of {name} are left out, because llvm-cov finds others in the coverage mapping than devprof"),
            shown(&problems.other_decisions),
        );
        self.losses(
            &format!("Code objects of {name} are missing: llvm-cov cannot read them"),
            problems.unread.clone(),
        );
        self.losses(
            &format!("The profile of {name} has one count for several functions of the same name and hash: each shows the count of all, and may never have run. To tell them apart, use raw profiles, of code objects with a build ID (`devprof flags`)"),
            shown(&problems.shared),
        );
    }

    /// Adds a warning if nothing ran.
    pub fn not_run(&mut self, column: &ColumnData) {
        let not_run = column.functions.iter().all(|function| function.count == 0);
        if column.ran && not_run && !column.functions.is_empty() {
            let text = format!(
                "No kernel of these binaries ran on {}: all counts in its profile are 0.",
                column.name
            );
            self.warning(text);
        }
    }

    /// Adds notes about code objects in which not every block is counted.
    pub fn sampled(&mut self, columns: &[ObjectGroup]) {
        let ran = columns.iter().filter(|column| column.ran && !column.host);
        let objects = ran.flat_map(|column| &column.objects);
        let objects: Vec<&Object> = objects.map(|(object, _)| *object).collect();
        let origins = |sampling| -> Vec<String> {
            let these = objects.iter().filter(|object| object.sampling == sampling);
            these.map(|object| object.origin.clone()).collect()
        };
        let (sampled, unknown) = (origins(Sampling::Yes), origins(Sampling::Unknown));
        let number = |origins: &[String]| match (origins.len(), objects.len()) {
            (some, all) if some == all => "the code objects".to_owned(),
            (some, all) => format!("{some} of {all} code objects"),
        };
        let text = format!(
            "Sampled build (1 block in 8) in {}: coverage is under-reported. Rebuild with `{EVERY_BLOCK}`.",
            number(&sampled)
        );
        self.about(Severity::Warning, text, sampled);
        let text = format!(
            "It is not known whether {} count every block. By default clang counts one in eight, and coverage is under-reported. `{EVERY_BLOCK}` counts all.",
            number(&unknown)
        );
        self.about(Severity::Note, text, unknown);
    }

    /// Adds the notes about a report.
    pub fn report(&mut self, report: &Report, has_lcov: bool) {
        self.sources(report);
        self.kernels(report);
        if has_lcov {
            self.not_in_lcov(report);
        }
    }

    /// Adds warnings about sources that are missing, or were changed after they were compiled.
    fn sources(&mut self, report: &Report) {
        let paths = |which: fn(&Source) -> bool| -> Vec<String> {
            let these = report.files.iter().filter(|file| which(&file.source));
            these.map(|file| file.path.to_string()).collect()
        };
        let text = "Sources are not at the paths at which they were compiled, so their lines are shown without text. Name their location with `--sources-from DIR` or `--path-map FROM=TO`.";
        let missing = paths(|source| source.missing.is_some());
        self.about(Severity::Warning, text, missing);
        let text = "Sources are outside of the working tree, so their lines are shown without text. Name their directory with `--sources-from DIR`.";
        let outside = paths(|source| source.outside);
        self.about(Severity::Note, text, outside);
        let text = "Sources were changed after the program was built: counts may be shown next to the wrong lines.";
        let changed = paths(|source| source.changed_since);
        self.about(Severity::Warning, text, changed);
    }

    /// Adds a warning about files whose paths the LCOV format cannot represent.
    fn not_in_lcov(&mut self, report: &Report) {
        let files = report.files.iter();
        let broken = files.filter(|file| !lcov::can_name(file.location()));
        let paths = broken.map(|file| format!("{:?}", file.path)).collect();
        self.losses(
            "The LCOV output leaves out files whose paths it cannot represent",
            paths,
        );
    }

    /// Adds notes about kernels for which the trace and the counts do not agree.
    fn kernels(&mut self, report: &Report) {
        let names = |state| -> Vec<String> {
            let these = report.kernels.iter().filter(|kernel| kernel.state == state);
            these.map(|kernel| kernel.name.clone()).collect()
        };
        let text = "Kernels are in the trace, but their counts are 0: the trace and the profile are from different runs, or none of their counted blocks ran.";
        self.about(Severity::Warning, text, names(KernelState::NotCounted));
        let text = "Kernels have counts, but are not in the trace: the trace and the profile are from different runs, or not all of the runs were traced.";
        self.about(Severity::Note, text, names(KernelState::NotInTrace));
    }

    /// The notes, warnings first, and whether the report includes all of the input. Reports the warnings, unless the
    /// report is printed with them.
    pub fn finish(mut self, is_printed: bool, console: &mut Console) -> (Vec<Note>, bool) {
        const MAX_ITEMS: usize = 3;
        if !is_printed {
            let warnings = self.notes.iter().skip(self.reported);
            for note in warnings.filter(|note| note.level == Severity::Warning) {
                let mut warning = Diagnostic::warning(note.text.clone());
                let items = note.items.iter().take(MAX_ITEMS).cloned();
                warning.items.extend(items);
                if let Some(more @ 1..) = note.items.len().checked_sub(MAX_ITEMS) {
                    warning.items.push(format!("and {more} more"));
                }
                console.report(&warning);
            }
        }
        self.notes.sort_by_key(|note| note.level == Severity::Note);
        (self.notes, !self.is_incomplete)
    }
}
