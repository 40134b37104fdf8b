//! Reads the text of a fault plan.

use super::functions::{COPIES, DISCOVERY, DISPATCH, ENGINE, Kind, kind, writes_values};
use hsa_abi::Status;
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

/// The action of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Fail(Status),
    Block(Duration),
    Lie(u64),
    Copy(CopyFault),
    Dispatch(DispatchFault),
    /// Before the call, the code object in this file is loaded on the first GPU agent.
    Load(String),
}

/// The fault of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyFault {
    /// Only this many bytes are copied.
    Short(usize),
    /// The bytes from this offset on are inverted.
    Torn(usize),
    /// Its completion signal becomes negative, and nothing is copied.
    Error,
    /// Its completion signal does not change.
    Drop,
}

/// The fault of a kernel packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispatchFault {
    /// It runs longer by this time.
    Block(Duration),
    /// Its completion signal does not change.
    Drop,
    /// Its completion signal becomes negative.
    Error,
    /// Its completion signal changes later by this time.
    Late(Duration),
    /// Its completion signal gets wrong times.
    Times(WrongTimes),
}

/// The kind of wrong times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongTimes {
    /// The start is after the end.
    Swapped,
    /// A second too early.
    Before,
    /// An hour too late.
    After,
    /// Both are 0.
    Zero,
}

/// Which calls of a function, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Calls {
    Each,
    Only(u64),
    From(u64),
}

impl Calls {
    fn parse(text: &str) -> Result<Calls, String> {
        let calls = match (text, text.strip_suffix('+')) {
            ("*", _) => return Ok(Calls::Each),
            (_, Some(first)) => Calls::From(number(first)?),
            (one, None) => Calls::Only(number(one)?),
        };
        match calls {
            Calls::Only(0) | Calls::From(0) => Err("calls are counted from 1".into()),
            calls => Ok(calls),
        }
    }

    fn has(self, call: u64) -> bool {
        match self {
            Calls::Each => true,
            Calls::Only(one) => call == one,
            Calls::From(first) => call >= first,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    calls: Calls,
    action: Action,
}

/// A plan, and the number of calls of each function.
#[derive(Debug, Default)]
pub struct Plan {
    faults: HashMap<String, Vec<Fault>>,
    pub calls: HashMap<&'static str, u64>,
}

/// An error in the text of a plan.
#[derive(Debug, PartialEq, Eq)]
pub struct Error {
    line: usize,
    what: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fault plan, line {}: {}", self.line, self.what)
    }
}

fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => match text.strip_prefix('-') {
            Some(_) => text.parse::<i64>().map(|n| n as u64),
            None => text.parse(),
        },
    };
    parsed.map_err(|_| format!("'{text}' is not a number"))
}

fn status(text: &str) -> Result<Status, String> {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return number(text).map(|n| Status(n as u32));
    }
    Status::from_name(&format!("HSA_STATUS_{text}"))
        .ok_or_else(|| format!("unknown status '{text}'"))
}

fn fault(line: &str) -> Result<(String, Fault), String> {
    let mut words = line.split_whitespace();
    let mut word = |what| words.next().ok_or_else(|| format!("{what} is missing"));
    let function = word("the function")?.to_string();
    let kind = kind(&function).ok_or_else(|| format!("unknown function '{function}'"))?;
    let calls = Calls::parse(word("the call's number")?)?;
    let name = word("the action")?;
    let copy = COPIES.contains(&function.as_str());
    let asynchronous = copy && function != "hsa_memory_copy" || function == ENGINE;
    let dispatch = function == DISPATCH;
    let is_call = !matches!(function.as_str(), DISPATCH | ENGINE | DISCOVERY);
    let applies = match name {
        "fail" => matches!(kind, Kind::Status),
        "lie" => matches!(kind, Kind::Value) || writes_values(&function),
        "late" | "times" => dispatch,
        "short" | "torn" => copy,
        "error" | "drop" => dispatch || asynchronous,
        "load" => is_call,
        _ => true,
    };
    if !applies {
        return Err(format!("'{name}' does not apply to {function}"));
    }
    let mut bytes = || Ok::<_, String>(number(word("the number of bytes")?)? as usize);
    let action = match name {
        "short" => Action::Copy(CopyFault::Short(bytes()?)),
        "torn" => Action::Copy(CopyFault::Torn(bytes()?)),
        "fail" => Action::Fail(status(word("the status")?)?),
        "lie" => Action::Lie(number(word("the value")?)?),
        "block" | "late" => {
            let time = Duration::from_millis(number(word("the time")?)?);
            match name {
                "late" => Action::Dispatch(DispatchFault::Late(time)),
                _ if dispatch => Action::Dispatch(DispatchFault::Block(time)),
                _ => Action::Block(time),
            }
        }
        "drop" if dispatch => Action::Dispatch(DispatchFault::Drop),
        "error" if dispatch => Action::Dispatch(DispatchFault::Error),
        "drop" => Action::Copy(CopyFault::Drop),
        "error" => Action::Copy(CopyFault::Error),
        "times" => Action::Dispatch(DispatchFault::Times(
            match word("the kind of wrong times")? {
                "swapped" => WrongTimes::Swapped,
                "before" => WrongTimes::Before,
                "after" => WrongTimes::After,
                "zero" => WrongTimes::Zero,
                other => return Err(format!("unknown times '{other}'")),
            },
        )),
        "load" => Action::Load(word("the file")?.to_string()),
        other => return Err(format!("unknown action '{other}'")),
    };
    match words.next() {
        None => Ok((function, Fault { calls, action })),
        Some(more) => Err(format!("unknown word '{more}'")),
    }
}

impl Plan {
    /// Reads a plan.
    pub fn parse(text: &str) -> Result<Plan, Error> {
        let mut plan = Plan::default();
        for (n, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            for part in line.split(';').map(str::trim).filter(|p| !p.is_empty()) {
                let (function, fault) = fault(part).map_err(|what| Error { line: n + 1, what })?;
                plan.faults.entry(function).or_default().push(fault);
            }
        }
        Ok(plan)
    }

    /// Counts a call and returns its actions.
    pub fn count(&mut self, function: &'static str) -> Vec<Action> {
        let calls = self.calls.entry(function).or_default();
        *calls += 1;
        let now = *calls;
        let faults = self.faults.get(function).into_iter().flatten();
        faults
            .filter(|fault| fault.calls.has(now))
            .map(|fault| fault.action.clone())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_line_by_line() {
        let plan = Plan::parse(
            "# two faults of one function\n\
             hsa_memory_copy 2 fail ERROR_OUT_OF_RESOURCES; hsa_memory_copy * block 5\n\
             hsa_agent_get_info 0x1 lie 0xffff # a comment\n\
             hsa_signal_wait_scacquire 1 lie -1\n\
             dispatch 3 drop\n",
        )
        .unwrap();
        let block = Action::Block(Duration::from_millis(5));
        let fail = Action::Fail(Status::OUT_OF_RESOURCES);
        let fault = |calls, action: &Action| Fault {
            calls,
            action: action.clone(),
        };
        let expected = [fault(Calls::Only(2), &fail), fault(Calls::Each, &block)];
        assert_eq!(plan.faults["hsa_memory_copy"], expected);
        let mut plan = plan;
        assert_eq!(plan.count("hsa_memory_copy"), std::slice::from_ref(&block));
        assert_eq!(plan.count("hsa_memory_copy"), [fail, block]);
        assert_eq!(
            plan.count("hsa_signal_wait_scacquire"),
            [Action::Lie(u64::MAX)]
        );
    }

    #[test]
    fn errors_have_the_line() {
        let error = |text: &str| {
            let error = Plan::parse(text).unwrap_err();
            (error.line, error.what)
        };
        let (line, what) = error("\nhsa_memory_copy 1 explode");
        assert_eq!((line, what.as_str()), (2, "unknown action 'explode'"));
        for (text, what) in [
            (
                "hsa_memory_kopy 1 fail 1",
                "unknown function 'hsa_memory_kopy'",
            ),
            (
                "hsa_memory_copy 1 fail ERROR_NO_SUCH",
                "unknown status 'ERROR_NO_SUCH'",
            ),
            ("hsa_memory_copy x fail 1", "'x' is not a number"),
            ("hsa_memory_copy 0 fail 1", "calls are counted from 1"),
            ("hsa_memory_copy 1 fail", "the status is missing"),
            ("hsa_memory_copy 1 fail 1 now", "unknown word 'now'"),
            ("hsa_memory_copy 1", "the action is missing"),
            ("hsa_memory_copy", "the call's number is missing"),
            ("hsa_memory_copy 0+ fail 1", "calls are counted from 1"),
            ("dispatch 1 times odd", "unknown times 'odd'"),
            (
                "hsa_amd_memory_migrate 1 fail 1",
                "unknown function 'hsa_amd_memory_migrate'",
            ),
        ] {
            assert_eq!(error(text), (1, what.into()), "{text}");
        }
        // Actions that do not apply to the function.
        for (function, action, argument) in [
            ("hsa_signal_store_relaxed", "fail", "1"),
            ("hsa_memory_copy", "lie", "1"),
            ("hsa_memory_copy", "drop", ""),
            ("hsa_memory_copy", "late", "1"),
            ("dispatch", "load", "x"),
            ("discovery", "drop", ""),
            ("copy-engine", "load", "x"),
        ] {
            let what = format!("'{action}' does not apply to {function}");
            assert_eq!(
                error(&format!("{function} 1 {action} {argument}")),
                (1, what)
            );
        }
    }
}
