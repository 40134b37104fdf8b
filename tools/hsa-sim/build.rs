//! Gives the library the soname of AMD's runtime, by which programs find it under any file name.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libhsa-runtime64.so.1");
    // Threads of the program may end after dlclose, and run code of this library then.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
