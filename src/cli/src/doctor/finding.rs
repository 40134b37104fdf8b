//! The result of a check.

use schemars::JsonSchema;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// No problem.
    Ok,
    /// Something may not work as expected, or a component is missing that only some programs need.
    Warning,
    /// A required component is missing.
    Missing,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    pub topic: &'static str,
    pub state: State,
    pub what: String,
    /// How to fix the problem: a command, in most cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Finding {
    pub fn ok(topic: &'static str, what: impl Into<String>) -> Finding {
        Finding {
            topic,
            state: State::Ok,
            what: what.into(),
            fix: None,
        }
    }

    pub fn warning(
        topic: &'static str,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> Finding {
        Finding::problem(State::Warning, topic, what, fix)
    }

    pub fn missing(
        topic: &'static str,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> Finding {
        Finding::problem(State::Missing, topic, what, fix)
    }

    pub fn problem(
        state: State,
        topic: &'static str,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) -> Finding {
        Finding {
            state,
            fix: Some(fix.into()),
            ..Finding::ok(topic, what)
        }
    }
}
