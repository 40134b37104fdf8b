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

/// The subject of several findings.
#[derive(Clone, Copy)]
pub struct Topic(pub &'static str);

impl Topic {
    pub fn ok(self, what: impl Into<String>) -> Finding {
        Finding {
            topic: self.0,
            state: State::Ok,
            what: what.into(),
            fix: None,
        }
    }

    pub fn warning(self, what: impl Into<String>, fix: impl Into<String>) -> Finding {
        self.problem(State::Warning, what, fix)
    }

    pub fn missing(self, what: impl Into<String>, fix: impl Into<String>) -> Finding {
        self.problem(State::Missing, what, fix)
    }

    pub fn problem(self, state: State, what: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding {
            state,
            fix: Some(fix.into()),
            ..self.ok(what)
        }
    }
}
