//! Prints the C++ program that checks this crate's numbers, layouts and signatures against AMD's headers.

fn main() {
    print!("{}", hsa_sim::headers::program());
}
