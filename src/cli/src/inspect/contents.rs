//! Reads the contents of a file.

use crate::console::Console;
use crate::functions::{self, Function};
use crate::{cuda_registers, returns};
use code_objects::{Found, Location, Options, What};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

pub struct Part {
    pub location: Location,
    pub what: What,
    /// The mangled names of device functions that overwrite their return address.
    pub overwritten_returns: Vec<String>,
    /// The functions of a raw profile, if they are shown.
    pub functions: Option<Vec<Function>>,
}

pub struct Contents {
    pub file: PathBuf,
    pub found: Vec<Part>,
    /// How many parts could not be read.
    pub damage: usize,
}

/// `shows_functions`: whether to read the functions of raw profiles.
pub fn read(file: &Path, shows_functions: bool, console: &mut Console) -> Contents {
    let mut contents = Contents {
        file: file.into(),
        found: Vec::new(),
        damage: 0,
    };
    let options = Options {
        code: true,
        ..Options::default()
    };
    code_objects::walk(file, options, &mut |found: Found| {
        let location = found.location;
        match found.what {
            What::Damage { why } => {
                contents.damage += 1;
                console.warn(format!("{location}: {why}"));
            }
            What::Unknown { first } => {
                contents.damage += 1;
                let kinds = "an ELF file, an archive, an offload bundle, a fat binary, a kpack archive, a profile or a trace";
                let begins = bytes(&first);
                console.warn(format!("{location}: not {kinds}: it begins with {begins}"));
            }
            what => {
                let mut overwritten_returns = Vec::new();
                if let What::CodeObject(object) = &what {
                    if let Some(warning) = cuda_registers::warning(object) {
                        console.warn(format!("{location}: {warning}"));
                    }
                    overwritten_returns = returns::overwritten(found.bytes.as_ref());
                    if let Some(problem) = returns::problem(&overwritten_returns) {
                        console.warn(format!("{location}: {problem}; {}", returns::fix()));
                    }
                }
                contents.found.push(Part {
                    location,
                    what,
                    overwritten_returns,
                    functions: None,
                });
            }
        }
        ControlFlow::Continue(())
    });
    if shows_functions && contents.damage == 0 {
        read_functions(&mut contents, console);
    }
    contents
}

/// Reads the functions of raw profiles.
fn read_functions(contents: &mut Contents, console: &mut Console) {
    for part in &mut contents.found {
        if !matches!(part.what, What::RawProfile(_)) {
            continue;
        }
        match functions::in_file(&contents.file) {
            Ok(functions) => part.functions = Some(functions),
            Err(error) => {
                contents.damage += 1;
                console.warn(format!("{}: {error:#}", part.location));
            }
        }
    }
}

/// The first bytes of an unknown file, in hexadecimal and as text.
fn bytes(first: &[u8]) -> String {
    if first.is_empty() {
        return "nothing: it is empty".into();
    }
    let hex: Vec<String> = first.iter().map(|byte| format!("{byte:02x}")).collect();
    let shown = |&byte: &u8| {
        if matches!(byte, b' '..=b'~') {
            char::from(byte)
        } else {
            '.'
        }
    };
    let text: String = first.iter().map(shown).collect();
    format!("{} \"{text}\"", hex.join(" "))
}
