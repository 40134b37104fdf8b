//! Ten thousand code objects that lie, and every copy watched.

mod common;
#[path = "common/lies.rs"]
mod lies;

#[test]
fn ten_thousand_code_objects_that_lie() {
    lies::drain("mutations", 10_000, 0x9e37_79b9_7f4a_7c15);
}
