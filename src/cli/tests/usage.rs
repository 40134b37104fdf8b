//! The exit status of usage errors, from clap and from devprof itself, is 2.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Runs devprof with arguments that are separated by spaces.
fn devprof(dir: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_devprof"))
        .args(arguments.split_whitespace())
        .current_dir(dir)
        .env_remove("DEVPROF_LIBRARY")
        .output()
        .unwrap()
}

/// Command lines, and a part of the message. `--profile` takes only one argument, and a binary follows.
const USAGE_ERRORS: &str = "
 | Usage: devprof
unknown | unrecognized subcommand 'unknown'
--unknown | unexpected argument '--unknown'
--color maybe demo | invalid value 'maybe'
run | <PROG>
run --snapshot 0 true | invalid value '0'
run --sync 1x true | 500ms, 5s or 2m
run --trace-api true | --trace <FILE>
run --trace-copies true | --trace <FILE>
run --trace-markers true | --trace <FILE>
run --trace-stopped true | --trace <FILE>
run --trace-start-after 1 true | --trace <FILE>
run --trace-duration 1 true | --trace <FILE>
run --trace a --trace-duration 0 true | invalid value '0'
run --trace %p.csv true | cannot have %
run --trace a --trace-start-after -1 true | unexpected argument '-1'
run --library none.so true | none.so
run --library . true | not a file
flags | --coverage
flags --coverage --pgo-generate | cannot be used
flags --coverage --compile --link | cannot be used
flags --coverage --rdc | --cuda
flags --pgo-generate --mcdc | cannot be used
flags --coverage --max-threads 1024 | --cuda
flags --coverage --cuda --device-only | cannot be used
flags --coverage --clang ./none | cannot start ./none
flags --coverage --clang true | not a clang
cc --coverage | <COMPILER>
cc clang++ -c a.c | --coverage
cc --coverage false -c a.c | not a clang
cc --coverage=counts nvcc a.cu | only --coverage
cover | <PROG>
cover --dir %h true | --dir
cover --format html true | -o DIR
cover --fail-under-lines 101 true | from 0 to 100
cuda-toolkit | <DIR>
cuda-toolkit new --cuda none | --cuda none: not a CUDA toolkit: it has no bin/ptxas
inspect | <FILES>
extract a | --output <DIR>
extract -o out | <FILES>
merge a | --output <FILE>
merge -o out | <FILE>
merge a -o - --by-arch | --by-arch
merge text -o text | another with -o
merge a -o out --llvm none | --llvm none
report a | --profile <FILE>
report --profile a | name the binaries that ran
report a --profile b --format pdf | 'pdf'
report a --profile b --format html | -o DIR
report a --profile b --format lcov,json | -o DIR
report a --profile b --path-map from | FROM=TO
report a --profile b --format html -o - | -o DIR
report a --profile b --open | -o DIR
report a --profile b -o a.xml --open | -o DIR
report a --profile b --fail-under-lines 101 | from 0 to 100
report a --profile b --include [a | invalid value '[a'
report a --profile b --ignore-filename-regex (a | invalid value '(a'
report --profile a raw.profraw | raw.profraw: a profile, not a binary
report --profile a . | .: a directory, not a binary
report a --profile b --baseline | --baseline <REPORT>
report a --profile b --llvm none | --llvm none
stats | <FILE>
stats a --json --csv | cannot be used
stats a --csv --api --copies | -o DIR
stats a -o b --json | cannot be used
stats a -o - --api --copies | -o DIR
stats a --by kernel | 'kernel'
stats a --api --by agent | API calls cannot be grouped by agent, only by process, stream, thread
stats a --copies --by queue | copies cannot be grouped by queue
stats a --markers --by stream | markers cannot be grouped by stream
stats a --gaps --by thread | gaps cannot be grouped by thread, only by process, agent, queue
stats a --top 0 | invalid value '0'
stats a --short-names --no-demangle | cannot be used
stats text ./text | given twice
export a -f xml | 'xml'
export | <FILE>...
export a b | there are 2 traces: name the output with -o
export a b -f xplane -o c | for several traces, name a log directory
export a -o b.txt | .pftrace, .csv, .jsonl, .db, .xplane.pb
export text -f csv -o text | trace itself
export a -o b.db --csv-of api | --csv-of is only for the format of .csv files
doctor --llvm none | --llvm none
doctor --unknown | unexpected argument
demo extra | unexpected argument 'extra'
docs | <SHARE>
";

#[test]
fn usage_errors_exit_with_status_2() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("text"), ":ir\nmain\n1\n1\n2\n").unwrap();
    let magic = b"\x81rforpl\xff\x0b\0\0\0\0\0\0\0";
    fs::write(dir.path().join("raw.profraw"), magic).unwrap();
    for case in USAGE_ERRORS.lines().skip(1) {
        let (arguments, message) = case.split_once(" | ").unwrap();
        let output = devprof(dir.path(), arguments);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {stderr}");
        assert!(stderr.contains(message), "{arguments}: {stderr}");
        assert!(output.stdout.is_empty(), "{arguments}");
    }
    let files = fs::read_dir(dir.path()).unwrap();
    assert_eq!(files.count(), 2, "no command has written a file");
}

#[test]
fn a_prefix_of_ccache_is_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_devprof"))
        .args(["cc", "--coverage", "true"])
        .env("CCACHE_PREFIX", "/usr/bin/devprof cc --coverage --")
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("-- ccache COMPILER"), "{stderr}");
}

#[test]
fn other_errors_have_other_statuses() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("data"), "").unwrap();
    for (arguments, status) in [
        ("--version", 0),
        ("help run", 0),
        ("stats none", 1),
        ("export none", 1),
        ("inspect none", 1),
        ("extract none -o out", 1),
        ("merge none -o out", 1),
        ("report none --profile none", 1),
        // The library need not be valid, because the program is not started.
        ("run --library data ./none", 127),
        ("run --library data ./data", 126),
        // Before the program is started, which would fail with 127.
        ("run --library data --profile data/x.profraw ./none", 1),
        ("run --library data --trace data/x.trace ./none", 1),
        ("run --library data --trace . ./none", 1),
    ] {
        let output = devprof(dir.path(), arguments);
        assert_eq!(output.status.code(), Some(status), "{arguments}");
    }
}
