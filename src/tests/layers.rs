//! The layers of the crates. [`layers::check`] says what a layer is.

use layers::{check, check_apart};

/// src/README.md explains the layers.
#[test]
fn the_runtime() {
    check(
        concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs"),
        &[
            &["sys"],
            &["support"],
            &["gpu"],
            &["output"],
            // A drain knows no vendor, and the vendors do not know each other.
            &["drain", "amd", "nvidia"],
            &["trace::queues", "trace::recorder"],
            &["trace::session"],
            &["trace::devices", "trace::hsa", "trace::calls"],
            &[
                "trace::dispatches",
                "trace::copies",
                "trace::cuda",
                "trace::markers",
            ],
            &["trace"],
            &["process"],
            &["exports"],
        ],
    );
    // The two pipelines are independent.
    check_apart(
        concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs"),
        "trace",
        "drain",
    );
}

#[test]
fn hsa_sim() {
    check(
        concat!(env!("CARGO_MANIFEST_DIR"), "/tools/hsa-sim/src/lib.rs"),
        &[
            &["sync"],
            &["faults"],
            &["results"],
            &["settings", "system_events"],
            &["device"],
            &["memory"],
            &["signals", "executables"],
            &["state"],
            &["copies", "queues"],
            &["hsa"],
            &["tools"],
            &["api"],
        ],
    );
    check(
        concat!(env!("CARGO_MANIFEST_DIR"), "/src/hsa-abi/lib.rs"),
        &[
            &["status", "handle"],
            &["agent", "executable", "memory", "system", "queue"],
            &["loader", "signal"],
            &["newer"],
            &["tables"],
        ],
    );
}

#[test]
fn gpu_model() {
    check(
        concat!(env!("CARGO_MANIFEST_DIR"), "/tools/gpu-model/src/lib.rs"),
        &[
            &["clock", "fault", "isa", "thread"],
            &["memory", "topology", "wave"],
            &["exec"],
            &["dispatch"],
            &["queue"],
            &["rocr"],
        ],
    );
}

#[test]
fn code_objects() {
    check(
        "tools/code-objects/src/lib.rs",
        &[
            &["error", "location", "target"],
            &["bytes", "metadata"],
            &[
                "archive", "elf", "kpack", "object", "offload", "packed", "profile",
            ],
            &["amd", "bundle", "cuda", "host", "returns", "without_code"],
            &["found", "kind"],
            &["walk"],
            &["extract"],
        ],
    );
}
