//! Marks the shared library so that it stays loaded when it is closed. ROCr closes its tools, but threads that have run
//! devprof's code still have to exit, and its exit handler still has to run.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
