//! Whether the GPU code of a program is instrumented, and how.

use super::finding::{Finding, State, Topic};
use crate::llvm::Llvm;
use crate::returns;
use code_objects::{CodeObject, Found, Location, Options, Sampling, What};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

const TOPIC: Topic = Topic("binaries");
const NAME_KERNELS: &str = "name the program or library that contains the kernels";
const INSTALL: &str = "name an installation of the LLVM whose clang compiled it: --llvm DIR";

/// State, message and fix of a finding.
type Assessment = (State, String, Option<String>);

pub fn check(file: &Path, llvm: &Llvm) -> Vec<Finding> {
    // The number and the targets of the code objects with the same assessment.
    let mut assessments: BTreeMap<Assessment, (usize, BTreeSet<String>)> = BTreeMap::new();
    let mut findings = Vec::new();
    let options = Options {
        code: true,
        ..Options::default()
    };
    code_objects::walk(file, options, &mut |found: Found| {
        match found.what {
            What::CodeObject(object) => {
                let overwritten = returns::overwritten(found.bytes.as_ref());
                let problem = returns::problem(&overwritten)
                    .map(|problem| (State::Warning, problem, Some(returns::fix())));
                for assessment in [assess(&object, llvm)].into_iter().chain(problem) {
                    let (count, targets) = assessments.entry(assessment).or_default();
                    *count += 1;
                    targets.insert(object.target.to_string());
                }
            }
            // Nothing in the file could be read.
            What::Damage { why } if found.location == Location::new(file) => {
                findings.push(TOPIC.missing(format!("{}: {why}", found.location), NAME_KERNELS))
            }
            What::Damage { why } => findings.push(TOPIC.warning(
                format!("{}: {why}", found.location),
                "`devprof inspect` shows the parts that can be read",
            )),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    if assessments.is_empty() && findings.is_empty() {
        findings.push(TOPIC.warning(
            format!("{}: contains no GPU code", file.display()),
            NAME_KERNELS,
        ));
    }
    for ((state, what, fix), (count, targets)) in assessments {
        let objects = match count {
            1 => "a code object".to_owned(),
            _ => format!("{count} code objects"),
        };
        let targets: Vec<String> = targets.into_iter().collect();
        let (file, targets) = (file.display(), targets.join(", "));
        findings.push(Finding {
            topic: TOPIC.0,
            state,
            what: format!("{file}: {objects} for {targets}: {what}"),
            fix,
        });
    }
    findings
}

fn assess(object: &CodeObject, llvm: &Llvm) -> Assessment {
    let ok = |what: &str| (State::Ok, what.to_owned(), None);
    let warning = |what: &str, fix: &str| (State::Warning, what.to_owned(), Some(fix.to_owned()));
    let (mut language, mut flags) = ("hip", "devprof flags --coverage");
    let mut every_block = "includes -Xarch_device -mllvm=--offload-pgo-sampling=0";
    let mut why = "";
    if object.is_cuda() {
        (language, flags) = ("cuda", "devprof flags --cuda --coverage");
        every_block = "does not include -DDEVPROF_SAMPLING";
        why = " (clang can instrument it, and nvcc in a toolkit of `devprof cuda-toolkit`)";
    }
    let Some(profile) = &object.profile else {
        return warning(
            &format!("not instrumented, so nothing is counted{why}"),
            &format!("clang++ -x {language} FILE $({flags}), or --pgo-generate"),
        );
    };
    if let Some(raw) = profile.raw_version
        && let Err(error) = llvm.profdata(raw)
    {
        return (
            State::Missing,
            format!("no tool reads its profiles: {error:#}"),
            Some(INSTALL.to_owned()),
        );
    }
    if profile.tables.is_empty() && !object.relocatable && !object.is_cuda() {
        return warning(
            "linked without the device runtime, so devprof cannot find the counters",
            "link it with $(devprof flags --coverage --link)",
        );
    }
    match (profile.sampling, &object.coverage) {
        (Sampling::Yes, Some(_)) => warning(
            "only one block in eight is counted: coverage would show code that ran as not run",
            &format!("compile it with $({flags}), which {every_block}"),
        ),
        (Sampling::Unknown, Some(_)) => warning(
            "it is not known whether every block is counted; by default clang 23 counts one in eight",
            &format!("compile it with $({flags})"),
        ),
        (Sampling::Yes, None) => ok("one block in eight is counted: for PGO"),
        (_, Some(_)) => ok("every block is counted, with a coverage mapping"),
        (_, None) => ok("instrumented without a coverage mapping: for PGO"),
    }
}
