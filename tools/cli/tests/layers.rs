//! A module of the command line uses only modules of lower layers. The commands are above everything that they share.

#[test]
fn the_command_line() {
    layers::check(
        concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs"),
        &[
            &["color", "csv", "exit", "names", "progress", "readable"],
            &["console", "cuda_registers", "gpus", "llvm", "locate"],
            &["returns", "table", "traces"],
            &["clang", "cuda_installation", "outfile"],
            &["run_log", "trace_reader"],
            &["doctor", "extract", "flags", "inspect"],
            &["export", "merge", "run", "stats"],
            &["demo", "report"],
            &["docs"],
        ],
    );
}
