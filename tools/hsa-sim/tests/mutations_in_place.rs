//! Code objects that lie, on agents whose memory the host reads in place.

mod common;
#[path = "common/lies.rs"]
mod lies;

#[test]
fn code_objects_that_lie_are_read_in_place() {
    lies::drain("mutations_in_place", "large", 5_000, 0x2545_f491_4f6c_dd1d);
}
