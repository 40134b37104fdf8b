//! What of a program's GPU code counts, and how.

use super::{Finding, State};
use crate::llvm::Llvm;
use code_objects::{CodeObject, Found, Options, Place, Sampling, What};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

const TOPIC: &str = "binaries";
const NAME: &str = "name the program or the library that has the kernels";
const INSTALL: &str = "name an installation of the LLVM whose clang compiled it: --llvm DIR";

/// A state, what is to be said, and what mends it.
type Judgement = (State, String, Option<String>);

pub fn look(file: &Path, llvm: &Llvm) -> Vec<Finding> {
    // Code objects of which the same is to be said: how many, and for which GPUs.
    let mut said: BTreeMap<Judgement, (usize, BTreeSet<String>)> = BTreeMap::new();
    let mut findings = Vec::new();
    code_objects::walk(file, Options::default(), &mut |found: Found| {
        match found.what {
            What::CodeObject(object) => {
                let (number, gpus) = said.entry(judge(&object, llvm)).or_default();
                *number += 1;
                gpus.insert(object.target.to_string());
            }
            // Nothing of it could be read.
            What::Damage { why } if found.place == Place::new(file) => findings.push(
                Finding::missing(TOPIC, format!("{}: {why}", found.place), NAME),
            ),
            What::Damage { why } => findings.push(Finding::warning(
                TOPIC,
                format!("{}: {why}", found.place),
                "`devprof inspect` shows the rest of it",
            )),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    if said.is_empty() && findings.is_empty() {
        findings.push(Finding::warning(
            TOPIC,
            format!("{}: there is no GPU code in it", file.display()),
            NAME,
        ));
    }
    findings.extend(
        said.into_iter()
            .map(|((state, what, mend), (number, gpus))| {
                let objects = match number {
                    1 => "a code object".to_owned(),
                    _ => format!("{number} code objects"),
                };
                let gpus: Vec<String> = gpus.into_iter().collect();
                Finding {
                    topic: TOPIC,
                    state,
                    what: format!(
                        "{}: {objects} for {}: {what}",
                        file.display(),
                        gpus.join(", ")
                    ),
                    mend,
                }
            }),
    );
    findings
}

fn judge(object: &CodeObject, llvm: &Llvm) -> Judgement {
    let warning = |what: &str, mend: &str| (State::Warning, what.to_owned(), Some(mend.to_owned()));
    let Some(profile) = &object.profile else {
        return warning(
            "not instrumented, so that nothing is counted",
            "clang++ -x hip FILE $(devprof flags --coverage), or --pgo-generate",
        );
    };
    if let Some(raw) = profile.raw_version
        && let Err(why) = llvm.profdata(raw)
    {
        return (
            State::Missing,
            format!("nothing reads its profiles: {why}"),
            Some(INSTALL.to_owned()),
        );
    }
    if profile.tables.is_empty() && !object.relocatable {
        return warning(
            "no runtime finds the counters, as it was linked without the device runtime",
            "link it with $(devprof flags --coverage --link)",
        );
    }
    match (profile.sampling, &object.coverage) {
        (Sampling::Yes, Some(_)) => warning(
            "one block in eight counts: coverage would show code that ran as code that did not",
            "compile it with $(devprof flags --coverage), which has -Xarch_device -mllvm=--offload-pgo-sampling=0",
        ),
        (Sampling::Unknown, Some(_)) => warning(
            "it does not tell whether every block counts; clang 23 counts one in eight unless told otherwise",
            "compile it with $(devprof flags --coverage)",
        ),
        (Sampling::Yes, None) => (
            State::Good,
            "one block in eight counts, for PGO".to_owned(),
            None,
        ),
        (_, Some(_)) => (
            State::Good,
            "every block counts, and there is a coverage mapping".to_owned(),
            None,
        ),
        (_, None) => (
            State::Good,
            "instrumented, without a coverage mapping: for PGO".to_owned(),
            None,
        ),
    }
}
