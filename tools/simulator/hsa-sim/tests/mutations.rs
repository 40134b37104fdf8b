//! Drains ten thousand corrupt code objects, and checks every copy.

mod common;
#[path = "common/corrupt.rs"]
mod corrupt;

#[test]
fn ten_thousand_corrupt_code_objects_are_drained() {
    corrupt::drain("mutations", 10_000, 0x9e37_79b9_7f4a_7c15);
}
