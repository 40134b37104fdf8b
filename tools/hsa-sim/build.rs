//! The library is found by its soname, whatever its file is called: programs look for AMD's.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libhsa-runtime64.so.1");
    // Threads of the program outlive it: what Rust does at their end must still be there.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
