//! The library is found by its soname, whatever its file is called: programs look for AMD's.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libhsa-runtime64.so.1");
    println!("cargo::rerun-if-changed=build.rs");
}
