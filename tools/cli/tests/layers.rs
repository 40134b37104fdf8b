//! A module of the command line uses only modules of lower layers. The commands are above everything that they share.
//! The modules of `report` are in the order in which the data passes through them.

#[test]
fn the_command_line() {
    layers::check(
        concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs"),
        &[
            &[
                "color", "csv", "exit", "names", "paths", "progress", "readable",
            ],
            &["console", "cuda_registers", "gpus", "llvm", "locate"],
            &["returns", "table", "traces"],
            &["clang", "cuda_installation", "outfile"],
            &["run_log", "trace_reader"],
            &["doctor", "extract", "flags", "inspect"],
            &["export", "merge", "run", "stats"],
            &["demo"],
            &["report::inputs"],
            &["report::lines", "report::mapping", "report::source"],
            &["report::cuda", "report::llvm_cov", "report::select"],
            &["report::model", "report::objects", "report::trace"],
            &["report::column_data", "report::counts", "report::matching"],
            &["report::baseline", "report::build", "report::lcov"],
            &["report::notes"],
            &["report::plan"],
            &["report::read"],
            &["report::paths", "report::text", "report::output"],
            &["report::thresholds"],
            &[
                "report::cobertura",
                "report::github",
                "report::html",
                "report::markdown",
            ],
            &["report::render"],
            &["report"],
            &["docs"],
        ],
    );
}
