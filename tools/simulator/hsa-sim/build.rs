//! Gives the library the soname of AMD's runtime, so that programs find it whatever its file name is.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libhsa-runtime64.so.1");
    // Threads that end after dlclose still run code of this library.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
