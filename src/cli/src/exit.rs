//! How commands end, and the exit status for each case. clap also exits with [`USAGE`] for the errors that it finds.

use std::io;
use thiserror::Error;

/// The exit statuses, for the help text and the man page.
pub const HELP: &str = "\
Exit status:
  0  success
  1  error: there is no output
  2  the command line is not valid
  3  finished, but some of the input was skipped or lost; see stderr
  4  `devprof report` and `devprof cover`: the coverage is below a --fail-under-… threshold

`devprof run` exits as its program did, or with 3 if the program succeeded and counts were lost. `devprof cover` exits as its program did if that failed, and else as `devprof report`. `devprof cc` exits as the compiler. Results are written to stdout, diagnostics to stderr.";

const SUCCESS: u8 = 0;
const FAILURE: u8 = 1;
const USAGE: u8 = 2;
const INCOMPLETE: u8 = 3;
const BELOW_THRESHOLD: u8 = 4;
/// `devprof run` could not start the program: the statuses that a shell uses.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

/// How a command ended if it did not return an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Complete,
    /// Some of the input is missing from the result.
    Incomplete,
    /// There is no result. Diagnostics have reported why.
    Failed,
    /// The result is below a threshold that the user has set.
    BelowThreshold,
    /// The program that `devprof run` started exited with this status.
    Program(u8),
}

impl Outcome {
    /// `Complete` if all of the input is in the result.
    pub fn of(is_complete: bool) -> Outcome {
        if is_complete {
            return Outcome::Complete;
        }
        Outcome::Incomplete
    }
}

/// The command line is not valid, although clap accepted it.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct UsageError(String);

pub fn usage(message: impl Into<String>) -> anyhow::Error {
    UsageError(message.into()).into()
}

/// The program of `devprof run` could not be started.
#[derive(Debug, Error)]
#[error("cannot start {program}")]
pub struct StartError {
    pub program: String,
    pub source: io::Error,
}

pub fn status(result: &anyhow::Result<Outcome>) -> u8 {
    let error = match result {
        Ok(Outcome::Complete) => return SUCCESS,
        Ok(Outcome::Incomplete) => return INCOMPLETE,
        Ok(Outcome::Failed) => return FAILURE,
        Ok(Outcome::BelowThreshold) => return BELOW_THRESHOLD,
        Ok(Outcome::Program(status)) => return *status,
        Err(error) => error,
    };
    if error.is::<UsageError>() {
        return USAGE;
    }
    match error.downcast_ref::<StartError>() {
        Some(start) if start.source.kind() == io::ErrorKind::NotFound => NOT_FOUND,
        Some(_) => NOT_EXECUTABLE,
        None => FAILURE,
    }
}
