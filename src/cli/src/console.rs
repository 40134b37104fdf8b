//! The output of commands: results on stdout, diagnostics on stderr.

use crate::color::{Colors, Paint, escaped};
use anyhow::Context;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, ErrorKind, Write};

/// How serious a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Information.
    Note,
    /// Something is missing from the result, or may be misleading.
    Warning,
    /// The command failed.
    Error,
}

impl Severity {
    fn paint(self) -> Paint {
        match self {
            Severity::Note => Paint::Good,
            Severity::Warning => Paint::Warning,
            Severity::Error => Paint::Error,
        }
    }
}

/// A message about the work of a command, as opposed to its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub severity: Severity,
    pub message: String,
    /// The objects that the message is about, one per line.
    pub items: Vec<String>,
}

impl Diagnostic {
    pub fn new(severity: Severity, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity,
            message: message.into(),
            items: Vec::new(),
        }
    }

    pub fn note(message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Note, message)
    }

    pub fn warning(message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Warning, message)
    }
}

/// Where commands write.
pub struct Console<'a> {
    pub out: &'a mut dyn Write,
    pub err: &'a mut dyn Write,
    pub colors: Colors,
}

impl Console<'_> {
    /// Writes a result to stdout. Control characters are escaped.
    pub(crate) fn print(&mut self, text: &str) -> anyhow::Result<()> {
        self.print_bytes(escaped(text, self.colors.stdout).as_bytes())
    }

    /// Writes a result that is not text to stdout.
    pub(crate) fn print_bytes(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        unless_closed(self.out.write_all(bytes)).context("cannot write to stdout")
    }

    /// Writes a result to stderr, because stdout carries data. Control characters are escaped.
    pub(crate) fn print_to_stderr(&mut self, text: &str) {
        let text = escaped(text, self.colors.stderr);
        // There is no other stream on which to report that stderr cannot be written.
        let _ = self.err.write_all(text.as_bytes());
    }

    pub(crate) fn report(&mut self, diagnostic: &Diagnostic) {
        let paint = diagnostic.severity.paint();
        let prefix = paint.on(self.colors.stderr, "devprof:");
        let mut text = format!("{prefix} {}\n", diagnostic.message);
        for item in &diagnostic.items {
            text += &format!("    {item}\n");
        }
        self.print_to_stderr(&text);
    }

    pub(crate) fn warn(&mut self, message: impl Into<String>) {
        self.report(&Diagnostic::warning(message));
    }

    pub(crate) fn error(&mut self, message: impl Into<String>) {
        self.report(&Diagnostic::new(Severity::Error, message));
    }
}

/// The result of a write to stdout. It is not an error if the reader has closed the pipe.
pub(crate) fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
