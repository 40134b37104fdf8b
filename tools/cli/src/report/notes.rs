//! What a reader of a report must know beside its numbers, in the report and, where numbers are missing or mislead, on
//! stderr.

use super::Planned;
use super::gather::Gathered;
use super::lcov;
use super::model::{Level, Note, Report, State};
use super::source::Source;
use crate::Console;
use crate::names;
use code_objects::Sampling;
use std::collections::BTreeSet;

/// The flag that has every block count.
const EVERY_BLOCK: &str = "-Xarch_device -mllvm=--offload-pgo-sampling=0";

/// Notes as they come up.
#[derive(Default)]
pub struct Notes {
    notes: Vec<Note>,
    /// Warnings that are on stderr already.
    said: usize,
    /// A part of what was named is not in the report.
    partly: bool,
}

impl Notes {
    fn add(&mut self, level: Level, text: impl Into<String>, items: Vec<String>) {
        let text = text.into();
        self.notes.push(Note { level, text, items });
    }

    pub fn note(&mut self, text: impl Into<String>) {
        self.add(Level::Note, text, Vec::new());
    }

    pub fn warning(&mut self, text: impl Into<String>) {
        self.add(Level::Warning, text, Vec::new());
    }

    /// A warning of something that is not in the report.
    pub fn loss(&mut self, text: impl Into<String>) {
        self.partly = true;
        self.warning(text);
    }

    /// The same of many things, if there are any.
    pub fn lost(&mut self, text: &str, items: Vec<String>) {
        if !items.is_empty() {
            self.partly = true;
            self.add(Level::Warning, format!("{text}."), items);
        }
    }

    /// The same of what was said when it was found.
    pub fn left_out(&mut self, text: &str, items: Vec<String>) {
        self.lost(text, items);
        self.notes.rotate_right(1);
        self.said += 1;
    }

    /// What of an architecture's counts is missing or mixed.
    pub fn problems(&mut self, column: &Gathered) {
        let problems = &column.problems;
        let shown = |names: &BTreeSet<String>| {
            names
                .iter()
                .map(|name| names::demangled(name))
                .collect::<Vec<_>>()
        };
        let name = &column.name;
        self.lost(
            &format!("Functions of {name} are left out: their counts are of another build of the program than this binary"),
            shown(&problems.mismatched),
        );
        self.lost(
            &format!("Code objects of {name} are left out"),
            problems.unread.clone(),
        );
        if !problems.shared.is_empty() {
            let text = format!(
                "Functions of {name} differ from code object to code object under one name and one structure, so that the profile has one count for all of their code: lines that only some of it has show the count of all."
            );
            self.add(Level::Warning, text, shown(&problems.shared));
        }
    }

    /// A profile of another program fits as one in which nothing ran.
    pub fn idle(&mut self, column: &Gathered) {
        let idle = column.functions.iter().all(|function| function.count == 0);
        if column.ran && idle && !column.functions.is_empty() {
            let text = format!(
                "Nothing ran on {}, as its profile has it: no kernel of these binaries was launched, or the profile is of other binaries.",
                column.name
            );
            self.warning(text);
        }
    }

    /// Code objects in which not every block counts.
    pub fn sampled(&mut self, columns: &[Planned]) {
        let ran = columns
            .iter()
            .filter(|column| column.profile.is_some() && !column.host);
        let objects: Vec<_> = ran.flat_map(|column| &column.objects).collect();
        let places = |sampling| -> Vec<String> {
            let these = objects.iter().filter(|object| object.sampling == sampling);
            these.map(|object| object.place.clone()).collect()
        };
        let (sampled, unknown) = (places(Sampling::Yes), places(Sampling::Unknown));
        let of = |places: &[String]| match places.len() == objects.len() {
            true => "The code objects".to_owned(),
            false => format!("{} of {} code objects", places.len(), objects.len()),
        };
        if !sampled.is_empty() {
            let text = format!(
                "{} count in some blocks only (clang’s default is one in eight): counts are a part of the truth, and code that ran can look as if it never did. For coverage compile with `{EVERY_BLOCK}`.",
                of(&sampled)
            );
            self.add(Level::Warning, text, sampled);
        }
        if !unknown.is_empty() {
            let text = format!(
                "{} do not tell whether every block counts. clang’s default is one block in eight, which is too few for coverage; compiled with `{EVERY_BLOCK}` all do.",
                of(&unknown)
            );
            self.add(Level::Note, text, unknown);
        }
    }

    /// Sources that are not there, or not what was compiled.
    pub fn sources(&mut self, report: &Report) {
        let paths = |which: fn(&Source) -> bool| -> Vec<String> {
            let these = report.files.iter().filter(|file| which(&file.source));
            these.map(|file| file.path.to_string()).collect()
        };
        let missing = paths(|source| source.missing.is_some());
        if !missing.is_empty() {
            let text = "Sources are not where they were compiled: their lines are shown without text. Say where they are with `--sources-from DIR` or `--path-map FROM=TO`.";
            self.add(Level::Warning, text, missing);
        }
        let changed = paths(|source| source.changed_since);
        if !changed.is_empty() {
            let text = "Sources were changed after the program was made: counts may stand beside other lines than were compiled.";
            self.add(Level::Warning, text, changed);
        }
    }

    /// Files that one of the formats cannot name.
    pub fn unnamed(&mut self, report: &Report) {
        let broken = report.files.iter().filter(|file| !lcov::names(&file.path));
        let paths = broken.map(|file| format!("{:?}", file.path)).collect();
        self.lost(
            "LCOV has no way to write these paths, and is without the files",
            paths,
        );
    }

    /// Where the trace and the counts do not agree.
    pub fn kernels(&mut self, report: &Report) {
        let names = |state| -> Vec<String> {
            let these = report.kernels.iter().filter(|kernel| kernel.state == state);
            these.map(|kernel| kernel.name.clone()).collect()
        };
        let uncounted = names(State::NotCounted);
        if !uncounted.is_empty() {
            let text = "Kernels are in the trace and counted nothing: the trace and the profile are of different runs, or the blocks that count were not among those that ran.";
            self.add(Level::Warning, text, uncounted);
        }
        let untraced = names(State::NotInTrace);
        if !untraced.is_empty() {
            let text = "Kernels counted and are not in the trace: the trace and the profile are of different runs, or not all of the runs were traced.";
            self.add(Level::Note, text, untraced);
        }
    }

    /// The notes, warnings first, and whether all that was named is in the report. Says the warnings, unless the
    /// report is shown with them.
    pub fn finish(mut self, shown: bool, console: &mut Console) -> (Vec<Note>, bool) {
        let said = if shown { self.notes.len() } else { self.said };
        let warnings = self
            .notes
            .iter()
            .filter(|note| note.level == Level::Warning);
        for note in warnings.skip(said) {
            (console.say)(&format!("devprof: {}", note.text));
            for item in note.items.iter().take(3) {
                (console.say)(&format!("    {item}"));
            }
            if note.items.len() > 3 {
                (console.say)(&format!("    and {} more", note.items.len() - 3));
            }
        }
        self.notes.sort_by_key(|note| note.level == Level::Note);
        (self.notes, !self.partly)
    }
}
