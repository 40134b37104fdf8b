//! The shared library stays when it is closed, as ROCr does with its tools: threads of the program that have run
//! through it still have to end, and its exit handler still has to run.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=src/build.rs");
}
