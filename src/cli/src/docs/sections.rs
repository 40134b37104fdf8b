//! The sections of the man pages that clap does not know: ENVIRONMENT, EXAMPLES and SEE ALSO.

use clap_mangen::roff::{Roff, bold, roman};
use settings::{Described, RUNTIME, Value};

/// The sections of a page.
pub struct Page {
    /// The name of the page without the section number.
    pub name: &'static str,
    environment: &'static [&'static [Described]],
    /// For each example a line with its purpose, and its indented commands.
    examples: &'static str,
    see_also: &'static str,
}

/// Where CUDA's parts are.
const CUDA: Described = Described::text(
    "CUDA_PATH, CUDA_HOME",
    "The CUDA installation that clang compiles with, and in which the runtime searches for CUPTI.",
);

/// Read by `devprof run`.
const RUN: Described = Described::text(
    "DEVPROF_LIBRARY",
    "The libdevprof.so to load, instead of the installed one.",
);

/// Read by the commands that start LLVM's tools.
const TOOLS: [Described; 2] = [
    Described::text("PATH", "Where clang and LLVM's tools are searched first."),
    Described::text(
        "ROCM_PATH",
        "A ROCm in which clang and LLVM's tools are searched, too, before /opt/rocm* and /usr/lib/llvm-*.",
    ),
];

/// Read by every command.
const COMMON: Described = Described::text(
    "NO_COLOR",
    "If set and not empty, --color=auto does not color anything.",
);

pub static PAGES: [Page; 15] = [
    Page {
        name: "devprof",
        environment: &[RUNTIME, &[RUN], &TOOLS, &[COMMON]],
        examples: "
Compile a program with coverage, run it, and see which lines ran on the GPU:
    clang++ -x hip a.hip $(devprof flags --coverage) -o a
    devprof cover ./a
Check this machine for missing components:
    devprof doctor
",
        see_also: "devprof-cover(1), devprof-affected(1), devprof-cc(1), devprof-run(1), devprof-flags(1), devprof-cuda-toolkit(1), devprof-inspect(1), devprof-extract(1), devprof-merge(1), \
                   devprof-report(1), devprof-stats(1), devprof-export(1), devprof-doctor(1), devprof-demo(1), \
                   clang(1), llvm-profdata(1), llvm-cov(1)",
    },
    Page {
        name: "devprof-cover",
        environment: &[&[RUN], RUNTIME, &TOOLS, &[COMMON]],
        examples: "
Run tests, and see which lines ran on the GPU:
    devprof cover -- ctest --test-dir build
For CI: a file for other tools, and a threshold:
    devprof cover -o lcov.info --fail-under-lines 80 -- pytest
Another run, in addition to the first, in the browser:
    devprof cover --append --open ./a
",
        see_also: "devprof(1), devprof-affected(1), devprof-cc(1), devprof-run(1), devprof-report(1)",
    },
    Page {
        name: "devprof-affected",
        environment: &[&[COMMON]],
        examples: "
Record what each test runs, and later run the tests that a change affects:
    devprof cover --per-test -- ctest --test-dir build
    ctest --test-dir build -R \"$(devprof affected --since origin/main --format ctest)\"
The same for GoogleTest, if documents do not matter:
    ./a \"$(devprof affected --since HEAD~1 --format gtest --ignore '*.md')\"
",
        see_also: "devprof(1), devprof-cover(1)",
    },
    Page {
        name: "devprof-cc",
        environment: &[&[CUDA], &TOOLS, &[COMMON]],
        examples: "
Coverage of a CMake project with HIP, without a change of the project:
    cmake -B build -DCMAKE_HIP_COMPILER_LAUNCHER=\"devprof;cc;--coverage\" -DCMAKE_HIP_LINKER_LAUNCHER=\"devprof;cc;--coverage\"
    cmake --build build
    devprof cover -- ctest --test-dir build
Coverage with exact counts, with make:
    make CXX=\"devprof cc --coverage=counts -- clang++\"
",
        see_also: "devprof(1), devprof-cover(1), devprof-flags(1), devprof-cuda-toolkit(1), clang(1)",
    },
    Page {
        name: "devprof-run",
        environment: &[&[RUN], RUNTIME, &[COMMON]],
        examples: "
Write the profiles to a new directory (devprof-1, devprof-2, …):
    devprof run ./a --option-of-a
One profile per process, and a trace with copies, on a simulated GPU:
    devprof run --model --profile 'out/%p.profraw' --trace a.trace --trace-copies ./a
Keep most counts of a program that crashes:
    devprof run --snapshot 1s ./a
The times of kernels, without a file:
    devprof run --stats ./a
",
        see_also: "devprof(1), devprof-flags(1), devprof-report(1), devprof-stats(1)",
    },
    Page {
        name: "devprof-flags",
        environment: &[&TOOLS, &[COMMON]],
        examples: "
Compile and link in one step:
    clang++ -x hip a.hip $(devprof flags --coverage) -o a
Compile and link separately, with another compiler, for a GPU that is not in this machine:
    clang++-23 -x hip -c a.hip $(devprof flags --coverage --compile --arch gfx1100 --clang clang++-23)
    clang++-23 a.o $(devprof flags --coverage --link --arch gfx1100 --clang clang++-23) -o a
Optimize with a profile:
    clang++ -x hip -O2 a.hip $(devprof flags --pgo-use a.profdata) -o a
Compile CUDA:
    clang++ -x cuda a.cu $(devprof flags --coverage --cuda --arch sm_90) -o a
",
        see_also: "devprof(1), devprof-run(1), clang(1)",
    },
    Page {
        name: "devprof-cuda-toolkit",
        environment: &[&[CUDA], &[COMMON]],
        examples: "
Compile with nvcc, run the program, and see which lines ran on the GPU:
    devprof cuda-toolkit cuda
    cuda/bin/nvcc -lineinfo a.cu -o a
    devprof run ./a
    devprof report a --profile devprof-1
",
        see_also: "devprof(1), devprof-run(1), devprof-report(1)",
    },
    Page {
        name: "devprof-inspect",
        environment: &[&[COMMON]],
        examples: "
Is this program instrumented, and for which GPUs?
    devprof inspect a
The registers of each kernel in a library, as JSON:
    devprof inspect --kernels --json libkernels.so
The counts of a raw profile, by function:
    devprof inspect --functions gfx1100.default.profraw
",
        see_also: "devprof(1), devprof-extract(1), llvm-readelf(1)",
    },
    Page {
        name: "devprof-extract",
        environment: &[&[COMMON]],
        examples: "
Write the code objects for one GPU to the directory objects:
    devprof extract libkernels.so --target gfx1100 -o objects
",
        see_also: "devprof(1), devprof-inspect(1), llvm-objdump(1)",
    },
    Page {
        name: "devprof-merge",
        environment: &[&TOOLS, &[COMMON]],
        examples: "
Merge all profiles in a directory:
    devprof merge devprof-1 -o a.profdata
One merged profile per architecture, from the files of several runs:
    devprof merge 'run-*/*.profraw' --by-arch -o profiles
",
        see_also: "devprof(1), devprof-report(1), llvm-profdata(1)",
    },
    Page {
        name: "devprof-report",
        environment: &[&TOOLS, &[COMMON]],
        examples: "
Print the coverage of kernels and files:
    devprof report a --profile devprof-1
HTML pages with the kernels' times:
    devprof report a --profile devprof-1 --trace a.trace --format html -o pages
",
        see_also: "devprof(1), devprof-run(1), devprof-merge(1), llvm-cov(1), genhtml(1)",
    },
    Page {
        name: "devprof-stats",
        environment: &[&[COMMON]],
        examples: "
The ten kernels with the longest total times, and gaps between kernels:
    devprof stats a.trace --top 10 --gaps
API calls and copies as JSON:
    devprof stats a.trace --api --copies --json
",
        see_also: "devprof(1), devprof-run(1), devprof-export(1)",
    },
    Page {
        name: "devprof-export",
        environment: &[&[COMMON]],
        examples: "
For Perfetto (writes a.pftrace):
    devprof export a.trace
As JSON lines, one object per record:
    devprof export a.trace -o a.jsonl
All processes of a run on one time line:
    devprof export 'rank*.trace' -o run.pftrace
",
        see_also: "devprof(1), devprof-run(1), devprof-stats(1)",
    },
    Page {
        name: "devprof-doctor",
        environment: &[RUNTIME, &[CUDA], &TOOLS, &[COMMON]],
        examples: "
Check this machine:
    devprof doctor
Also check how a program was compiled, for a script:
    devprof doctor --json a
",
        see_also: "devprof(1), devprof-flags(1), devprof-inspect(1)",
    },
    Page {
        name: "devprof-demo",
        environment: &[&[COMMON]],
        examples: "
Run on two simulated GPUs, and keep the profiles in the directory demo:
    devprof demo -o demo
",
        see_also: "devprof(1), devprof-run(1)",
    },
];

impl Page {
    /// The purpose of each example, and its commands.
    fn examples(&self) -> Vec<(&str, Vec<&str>)> {
        let mut examples: Vec<(&str, Vec<&str>)> = Vec::new();
        for line in self.examples.trim().lines() {
            match (line.strip_prefix("    "), examples.last_mut()) {
                (Some(command), Some((_, commands))) => commands.push(command),
                _ => examples.push((line, Vec::new())),
            }
        }
        examples
    }

    /// The sections as a part of a man page.
    pub fn roff(&self) -> String {
        let mut roff = Roff::default();
        roff.control("SH", ["ENVIRONMENT"]);
        for Described { variable, help } in self.environment.iter().copied().flatten() {
            roff.control("TP", []);
            roff.text([bold(variable.name)]);
            roff.text([roman(match variable.value {
                Value::Flag => format!("1: {help}"),
                _ => (*help).to_owned(),
            })]);
        }
        roff.control("SH", ["EXAMPLES"]);
        for (what, commands) in self.examples() {
            roff.control("PP", []);
            roff.text([roman(what)]);
            // No filling and indented: one command per line.
            roff.control("RS", ["4"]);
            roff.control("nf", []);
            for command in commands {
                roff.text([roman(command)]);
            }
            roff.control("fi", []);
            roff.control("RE", []);
        }
        roff.control("SH", ["SEE ALSO"]);
        roff.text([roman(self.see_also)]);
        // Without the definition of the apostrophe, which the page already has.
        let text = roff.render();
        let start = text.find(".SH").unwrap_or_default();
        text[start..].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;
    use clap::CommandFactory;
    use std::collections::BTreeSet;

    #[test]
    fn each_command_has_a_page() {
        let commands = Cli::command();
        let mut expected: Vec<String> = commands
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(|command| format!("devprof-{}", command.get_name()))
            .collect();
        expected.insert(0, "devprof".to_owned());
        assert_eq!(
            PAGES.iter().map(|page| page.name).collect::<Vec<_>>(),
            expected
        );
        let names: BTreeSet<String> = expected.iter().map(|name| format!("{name}(1)")).collect();
        for page in &PAGES {
            for other in page.see_also.split(", ") {
                assert!(!other.starts_with("devprof") || names.contains(other));
            }
        }
    }

    #[test]
    fn the_examples_are_valid_command_lines() {
        for page in &PAGES {
            assert!(!page.examples().is_empty());
            for (_, commands) in page.examples() {
                let commands = commands.join("\n");
                assert!(commands.contains("devprof "), "{commands}");
                for part in commands.split(['\n', '(', ')']) {
                    if part.starts_with("devprof ") {
                        let words = part.split(' ').map(|word| word.trim_matches('\''));
                        let result = Cli::command().try_get_matches_from(words);
                        assert!(result.is_ok(), "{part}: {}", result.unwrap_err());
                    }
                }
            }
        }
    }

    /// The variables in the table of README.md.
    #[test]
    fn the_readme_has_the_same_environment_variables() {
        let readme = include_str!("../../../../README.md");
        let (_, section) = readme.split_once("## Environment variables").unwrap();
        let (section, _) = section.split_once("\n## ").unwrap();
        let cells = section.lines().filter_map(|line| line.split('|').nth(1));
        let documented: BTreeSet<&str> = cells
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
            .collect();
        let listed = RUNTIME.iter().chain([&RUN]);
        let listed: BTreeSet<&str> = listed.map(|own| own.variable.name).collect();
        assert_eq!(listed, documented);
    }
}
