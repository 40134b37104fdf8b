//! Every operation of the tables. (Placeholder until the tables land.)
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    S_NOP,
}
