//! The tables that can be requested.

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    Kernels,
    Api,
    Copies,
    Markers,
    Gaps,
}

impl Part {
    pub fn noun(self) -> &'static str {
        match self {
            Part::Kernels => "kernels",
            Part::Api => "API calls",
            Part::Copies => "copies",
            Part::Markers => "markers",
            Part::Gaps => "gaps",
        }
    }
}
