//! The layers of all crates of the workspace. [`layers::check`] defines layers.

use layers::{check, check_users, members};

/// src/runtime/README.md explains the layers.
#[test]
fn the_runtime() {
    // A drain knows no vendor, and the vendors do not know each other.
    let layers = "
        sys
        support
        gpu
        output
        drain amd nvidia
        trace::queues trace::recorder
        trace::session
        trace::devices trace::hsa trace::calls
        trace::dispatches trace::copies trace::cuda trace::markers
        trace
        process
        exports
    ";
    // Handling a request may register the exit handler again, and the exit handler sends requests.
    let pointers = ["process::handler::EXIT_HANDLER"];
    check("src/runtime/lib.rs", layers, &pointers);
    // The two pipelines are independent.
    check_users("src/runtime/lib.rs", "trace", "drain", &[]);
    // The sources of records that only one vendor's runtime has call that runtime. The rest of the trace knows no vendor: it gets
    // `gpu::traced::TracedRuntimes`.
    let of_hsa = ["trace::dispatches", "trace::hsa"];
    check_users("src/runtime/lib.rs", "trace", "amd", &of_hsa);
    check_users("src/runtime/lib.rs", "trace", "nvidia", &["trace::cuda"]);
}

/// The modules of `report` are in the order in which the data passes through them.
#[test]
fn the_command_line() {
    let layers = "
        color csv exit git names parallel paths progress readable times
        console cuda_registers gpus llvm locate
        functions returns table traces
        clang cuda_installation outfile triton
        run_log trace_reader
        cuda_toolkit extract flags inspect
        cc doctor
        export merge stats
        run
        demo
        report::inputs
        report::lines report::numbers report::python report::source
        report::mcdc
        report::counters
        report::mapping
        report::cuda report::diff report::select
        report::llvm_cov
        report::model report::objects report::trace
        report::column_data report::counts
        report::decisions report::formula report::xml
        report::attribution
        report::test_database report::lcov
        report::baseline
        report::notes
        report::census
        report::build
        report::matching report::plan
        report::read
        report::paths report::text report::output
        report::thresholds
        report::cobertura report::coverage_py report::github report::html report::markdown report::sonar
        report::render
        report
        affected cover
        docs
    ";
    check("src/cli/src/lib.rs", layers, &[]);
}

#[test]
fn hsa_sim() {
    let layers = "
        sync
        faults
        results
        settings system_events
        device
        memory
        signals executables
        state
        copies queues
        hsa
        tools
        api
    ";
    // A callback for tests.
    let pointers = ["hsa::lifecycle::DURING_INIT"];
    check("tools/simulator/hsa-sim/src/lib.rs", layers, &pointers);
}

/// Crates whose statics hold no function pointers.
#[test]
fn other_crates() {
    for (root, layers) in [
        (
            "src/device/ptx/src/lib.rs",
            "
            problem
            tokens
            parse
            blocks calls
            lines
            flags
            mapping update variable
            object record
        ",
        ),
        (
            "src/formats/code-objects/src/lib.rs",
            "
            budget error location target
            bytes metadata
            archive elf kpack object offload packed profile
            without_code
            amd bundle cuda host returns
            found kind
            walk
            extract
            ",
        ),
        (
            "tools/simulator/gpu-model/src/lib.rs",
            "
            clock fault isa thread
            memory topology wave
            exec
            dispatch
            queue
            rocr
            ",
        ),
        (
            "src/formats/hsa-abi/lib.rs",
            "
            status handle
            agent executable memory system queue
            loader signal
            newer
            tables
            ",
        ),
        (
            "src/formats/cuda-abi/lib.rs",
            "driver nvtx\n cupti\n activity functions",
        ),
        (
            "src/formats/profraw/lib.rs",
            "format\n kind names reader\n counts",
        ),
        ("src/formats/fatbin/lib.rs", "id"),
        ("src/formats/tracefile/lib.rs", "format\n reader"),
        (
            "tools/bench/src/main.rs",
            "measure\n drain load merge model objects report snapshot start trace",
        ),
        ("tools/fuzz/src/lib.rs", "corpus\n hostile"),
        // One file.
        ("src/formats/runlog/lib.rs", ""),
        ("src/formats/settings/lib.rs", ""),
        ("src/cli/src/main.rs", ""),
        ("tools/simulator/gpu-model/src/main.rs", ""),
        ("tools/fuzz/src/main.rs", ""),
        ("tools/layers/src/lib.rs", ""),
    ] {
        check(root, layers, &[]);
    }
}

/// Every crate has a test above, and the product does not use the laboratory.
#[test]
fn every_crate() {
    let members = members();
    assert!(members.len() > 10, "the crates are found");
    for member in members {
        for root in member.roots() {
            let root = root.display().to_string();
            let tests = include_str!("crates.rs");
            assert!(
                tests.contains(&format!("\"{root}\"")),
                "{root} has no test of its layers"
            );
        }
        for used in member.dependencies() {
            let is_product = member.folder.starts_with("src");
            assert!(
                !is_product || used.starts_with("src"),
                "{} uses {}",
                member.folder.display(),
                used.display()
            );
        }
    }
}
