//! `devprof cuda-tool`: what the scripts of `devprof cuda-toolkit` start in place of a program of the CUDA toolkit, and those of
//! `devprof run --coverage` in place of Triton's `ptxas`.
//!
//! `ptxas` and `fatbinary` get instrumented copies of the PTX files in their arguments. Code that cannot be instrumented is compiled
//! as it is, with a warning. Link-time optimization is refused: its code never is PTX that these programs get.

use crate::console::Console;
use crate::exit::{Outcome, StartError};
use crate::readable::first_names;
use crate::triton;
use anyhow::{Context, bail};
use clap::Args;
use runlog::{Entry, Event};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use tempfile::TempDir;

#[derive(Args)]
pub struct Options {
    /// Triton starts it: a name without a directory is that of a program in the Triton package of the process, and messages go to
    /// the run log, because Triton does not show those of `ptxas`
    #[arg(long)]
    triton: bool,
    /// The original program
    #[arg(value_name = "TOOL")]
    path: PathBuf,
    /// Its arguments
    #[arg(last = true, value_name = "ARG")]
    arguments: Vec<OsString>,
}

/// The name of the command in the scripts.
pub const NAME: &str = "cuda-tool";

/// A program of the CUDA toolkit that a script replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Compiles PTX.
    Assembler,
    /// Packs code for several GPUs, and PTX, into one file.
    Packer,
    /// Links relocatable device code.
    Linker,
}

impl Tool {
    pub fn named(name: &str) -> Option<Tool> {
        match name {
            "ptxas" => Some(Tool::Assembler),
            "fatbinary" => Some(Tool::Packer),
            "nvlink" => Some(Tool::Linker),
            _ => None,
        }
    }

    /// Whether an argument makes it optimize at link time.
    fn is_link_time(self, argument: &OsStr) -> bool {
        let bytes = argument.as_bytes();
        match self {
            Tool::Assembler => false,
            // The code for it in a fat binary.
            Tool::Packer => image(bytes).is_some_and(|kind| kind == b"nvvm"),
            Tool::Linker => matches!(bytes, b"-dlto" | b"--dlto" | b"-lto" | b"--lto"),
        }
    }
}

pub fn run(options: &Options, console: &mut Console) -> anyhow::Result<Outcome> {
    let log = options.triton.then(|| env::var_os(settings::LOG.name));
    let mut messages = Messages {
        console,
        log: log.flatten().map(PathBuf::from),
    };
    let outcome = run_tool(options, &mut messages);
    if let Err(error) = &outcome {
        messages.log(&format!("{error:#}"));
    }
    outcome
}

fn run_tool(options: &Options, messages: &mut Messages) -> anyhow::Result<Outcome> {
    let name = options
        .path
        .file_name()
        .and_then(OsStr::to_str)
        .unwrap_or_default();
    let tool = match options.triton {
        // The user may have given it another name.
        true => Some(Tool::Assembler),
        false => Tool::named(name),
    };
    let Some(tool) = tool else {
        bail!(
            "{}: not a program that devprof replaces",
            options.path.display()
        );
    };
    let given = &options.arguments;
    if let Some(argument) = given.iter().find(|argument| tool.is_link_time(argument)) {
        bail!(
            "{name} {}: link-time optimization of device code (-dlto, -code=lto_…) cannot be instrumented: compile without it",
            argument.display()
        );
    }
    let (path, library) = original(options)?;
    let mut copies = Copies {
        library,
        is_triton: options.triton,
        directories: Vec::new(),
    };
    let arguments = match tool {
        Tool::Assembler => copies.of_assembler(given, messages)?,
        Tool::Packer => copies.of_packer(given, messages)?,
        Tool::Linker => given.clone(),
    };
    let status = if copies.directories.is_empty() {
        start(&path, &arguments)?
    } else {
        start_instrumented(&path, &arguments, given, messages)?
    };
    Ok(Outcome::Program(exit_status(status)))
}

/// The path of the original program, and the directories of code that came with the compiler.
fn original(options: &Options) -> anyhow::Result<(PathBuf, Vec<PathBuf>)> {
    let path = &options.path;
    let existing = |path: PathBuf| path.canonicalize().ok();
    if !options.triton {
        let headers = path
            .parent()
            .and_then(|bin| Some(bin.parent()?.join("include")));
        let headers = headers.and_then(existing).into_iter();
        return Ok((path.clone(), headers.collect()));
    }
    let is_named = path.parent().is_some_and(|parent| parent == "");
    let package = match triton::package() {
        Err(error) if is_named => return Err(error),
        package => package.ok(),
    };
    let path = match &package {
        Some(package) if is_named => triton::assembler(package, &path.to_string_lossy()),
        _ => path.clone(),
    };
    // Of PyTorch, the functions that torch.compile's kernels call.
    let torch = package.as_ref().map(|own| own.with_file_name("torch"));
    let library = package.into_iter().chain(torch).filter_map(existing);
    Ok((path, library.collect()))
}

/// Where messages go.
struct Messages<'a, 'b> {
    console: &'a mut Console<'b>,
    /// The run log.
    log: Option<PathBuf>,
}

impl Messages<'_, '_> {
    fn warn(&mut self, message: String) {
        self.log(&message);
        self.console.warn(message);
    }

    /// Appends a loss to the run log.
    fn log(&mut self, message: &str) {
        let Some(log) = &self.log else { return };
        let entry = Entry {
            pid: std::process::id(),
            event: Event::Lost,
            text: message.as_bytes().into(),
        };
        let file = runlog::file_of_node(log);
        let mut options = fs::File::options();
        // A single write, so that lines of several processes are not mixed.
        let opened = options.append(true).create(true).open(&file);
        if let Err(error) = opened.and_then(|mut file| file.write_all(&entry.to_line())) {
            let file = file.display();
            self.console
                .warn(format!("cannot append to the run log {file}: {error}"));
        }
    }
}

/// Starts the tool with the instrumented files. If it fails, it is started with the original ones: their error is the one to
/// print, or, if there is none, they were instrumented wrongly.
fn start_instrumented(
    path: &Path,
    arguments: &[OsString],
    original: &[OsString],
    messages: &mut Messages,
) -> anyhow::Result<ExitStatus> {
    let output = Command::new(path).args(arguments).output();
    let output = output.map_err(|source| failed_to_start(path, source))?;
    if output.status.success() {
        messages.console.print_bytes(&output.stdout)?;
        // Its messages. There is no other stream to report that stderr cannot be written.
        let _ = messages.console.err.write_all(&output.stderr);
        return Ok(output.status);
    }
    let status = start(path, original)?;
    if status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        messages.warn(format!(
            "{} does not accept the instrumented code, so this code is not instrumented; please report it to devprof: {}",
            path.display(),
            reason.trim_end()
        ));
    }
    Ok(status)
}

fn start(path: &Path, arguments: &[OsString]) -> anyhow::Result<ExitStatus> {
    let status = Command::new(path).args(arguments).status();
    Ok(status.map_err(|source| failed_to_start(path, source))?)
}

fn failed_to_start(path: &Path, source: io::Error) -> StartError {
    let program = path.display().to_string();
    StartError { program, source }
}

/// The status that a shell gives to a program.
fn exit_status(status: ExitStatus) -> u8 {
    let signal = || 128 + status.signal().unwrap_or(0);
    u8::try_from(status.code().unwrap_or_else(signal)).unwrap_or(1)
}

/// The kind of an image in an argument of fatbinary: `--image3=kind=ptx,sm=90,file=a.ptx`.
fn image(argument: &[u8]) -> Option<&[u8]> {
    let mut fields = argument.split(|byte| matches!(byte, b',' | b'='));
    fields.find(|field| *field == b"kind")?;
    fields.next()
}

/// The instrumented copies of the files.
struct Copies {
    /// The directories of code that came with the compiler. It is not instrumented.
    library: Vec<PathBuf>,
    is_triton: bool,
    /// One for each copy: ptxas names the file in its messages, and two files can have the same name.
    directories: Vec<TempDir>,
}

impl Copies {
    /// The arguments of ptxas.
    fn of_assembler(
        &mut self,
        given: &[OsString],
        messages: &mut Messages,
    ) -> anyhow::Result<Vec<OsString>> {
        let mut arguments = given.to_vec();
        let is_output = |argument: &OsString| argument == "-o" || argument == "--output-file";
        let mut has_input = false;
        for at in 0..given.len() {
            let before = at.checked_sub(1).map(|at| &given[at]);
            let path = Path::new(&given[at]);
            if before.is_some_and(is_output) || !is_file(path) {
                continue;
            }
            let Some(text) = read_ptx(path)? else {
                continue;
            };
            has_input = true;
            if let Some(copy) = self.instrument(path, &text, true, messages)? {
                arguments[at] = copy.into();
            }
        }
        if !has_input && given.iter().any(is_output) {
            let why = "the arguments of ptxas name no PTX file (-ias and -optf are not supported): its code is not instrumented";
            messages.warn(why.to_owned());
        }
        Ok(arguments)
    }

    /// The arguments of fatbinary. Functions are reported when ptxas compiles them.
    fn of_packer(
        &mut self,
        given: &[OsString],
        messages: &mut Messages,
    ) -> anyhow::Result<Vec<OsString>> {
        const FILE: &[u8] = b"file=";
        // The runtime does not unpack code.
        let is_compression = |argument: &&OsString| {
            let bytes = argument.as_bytes();
            bytes.starts_with(b"-compress") || bytes.starts_with(b"--compress")
        };
        let kept = given.iter().filter(|argument| !is_compression(argument));
        let mut arguments: Vec<OsString> = kept.cloned().collect();
        arguments.insert(0, "--compress=false".into());
        for argument in &mut arguments {
            let bytes = argument.as_bytes();
            if image(bytes).is_none_or(|kind| kind != b"ptx") {
                continue;
            }
            // It is the last field, so that its value can have commas.
            let Some(at) = bytes.windows(FILE.len()).position(|part| part == FILE) else {
                continue;
            };
            let (fields, path) = bytes.split_at(at + FILE.len());
            let path = Path::new(OsStr::from_bytes(path));
            let Some(text) = read_ptx(path)? else {
                continue;
            };
            if let Some(copy) = self.instrument(path, &text, false, messages)? {
                let parts = [fields, copy.as_os_str().as_bytes()].concat();
                *argument = OsString::from_vec(parts);
            }
        }
        Ok(arguments)
    }

    /// Writes an instrumented copy of a PTX file. `None` if it cannot be or needs not be instrumented.
    fn instrument(
        &mut self,
        path: &Path,
        text: &[u8],
        is_reported: bool,
        messages: &mut Messages,
    ) -> anyhow::Result<Option<PathBuf>> {
        let directory = env::current_dir().context("cannot find the current directory")?;
        let mut warn = |message| {
            if is_reported {
                messages.warn(message);
            }
        };
        let file = path.display();
        let read = std::str::from_utf8(text).map_err(anyhow::Error::new);
        let is_library = |name: &str| {
            let path = directory.join(name).canonicalize().ok();
            path.is_some_and(|path| self.library.iter().any(|library| path.starts_with(library)))
        };
        let done = read.and_then(|text| {
            Ok(ptx::instrument(
                text,
                &directory,
                ptx::Origin::Build,
                is_library,
            )?)
        });
        let done = match done {
            Ok(Some(done)) => done,
            Ok(None) => return Ok(None),
            Err(why) => {
                warn(format!("{file} is not instrumented: {why}"));
                return Ok(None);
            }
        };
        for (function, why) in &done.not_instrumented {
            warn(format!(
                "{file}: the function {function} is not instrumented: {why}"
            ));
        }
        if !done.without_lines.is_empty() {
            let is_all = done.without_lines.len() == done.functions;
            let names = first_names(done.without_lines.into_iter());
            warn(if self.is_triton {
                format!(
                    "no line information, so the report does not show it: unset TRITON_DISABLE_LINE_INFO: {names}"
                )
            } else if is_all {
                format!(
                    "no line information, so only which functions ran is recorded: compile with -lineinfo (or set NVCC_APPEND_FLAGS=-lineinfo): {names}"
                )
            } else {
                format!(
                    "functions without line information, of which only is recorded whether they ran: {names}"
                )
            });
        }
        let own = tempfile::Builder::new().prefix("devprof-ptx-").tempdir();
        let own = own.context("cannot create a temporary directory")?;
        let copy = own.path().join(path.file_name().unwrap_or_default());
        fs::write(&copy, done.text).with_context(|| format!("cannot write {}", copy.display()))?;
        self.directories.push(own);
        Ok(Some(copy))
    }
}

fn is_file(path: &Path) -> bool {
    !path.as_os_str().as_bytes().starts_with(b"-") && path.is_file()
}

/// The content of a file, if it is PTX.
fn read_ptx(path: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    let content = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Some(content).filter(|content| ptx::is_ptx(content)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::color::Colors;
    use crate::locate::program;

    const PTX: &str = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n\t.loc 1 5 1\n\tret;\n}\n.file 1 \"/a.cu\"\n";

    /// A toolkit with one program, a shell script, and a PTX file.
    struct Toolkit {
        directory: TempDir,
        tool: PathBuf,
    }

    impl Toolkit {
        fn new(name: &str, script: &str, ptx: &str) -> Toolkit {
            let directory = tempfile::tempdir().unwrap();
            fs::write(directory.path().join("a.ptx"), ptx).unwrap();
            let tool = directory.path().join("bin").join(name);
            program(&tool, script);
            Toolkit { directory, tool }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.directory.path().join(name)
        }

        /// Runs the program. `DIR` in the arguments is the toolkit. Also returns what is printed to stderr.
        fn run(&self, arguments: &str) -> (anyhow::Result<Outcome>, String) {
            self.run_for(false, arguments)
        }

        fn run_for(&self, triton: bool, arguments: &str) -> (anyhow::Result<Outcome>, String) {
            let directory = self.directory.path().to_str().unwrap();
            let arguments = arguments.replace("DIR", directory);
            let options = Options {
                triton,
                path: self.tool.clone(),
                arguments: arguments.split(' ').map(OsString::from).collect(),
            };
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let mut console = Console {
                out: &mut out,
                err: &mut err,
                colors: Colors::default(),
            };
            let result = run(&options, &mut console);
            (result, String::from_utf8(err).unwrap())
        }
    }

    /// Copies its input, and prints a message, as ptxas does with -v.
    const COPY: &str = "cp \"$1\" \"$3\" && echo used 8 registers >&2";

    #[test]
    fn ptxas_gets_instrumented_code() {
        let toolkit = Toolkit::new("ptxas", COPY, PTX);
        let (result, err) = toolkit.run("DIR/a.ptx -o DIR/out");
        assert_eq!(
            (result.unwrap(), &*err),
            (Outcome::Program(0), "used 8 registers\n")
        );
        let compiled = fs::read_to_string(toolkit.path("out")).unwrap();
        assert!(compiled.contains("__profc_k_"));
        assert_eq!(fs::read_to_string(toolkit.path("a.ptx")).unwrap(), PTX);
        // The output is PTX now, but no input.
        let (_, err) = toolkit.run("DIR/none.ptx -o DIR/out");
        assert!(err.contains("name no PTX file"), "{err}");
    }

    #[test]
    fn code_that_is_not_instrumented_is_compiled_and_reported() {
        let refused =
            "grep -q __profc_ \"$1\" && echo 'no such thing' >&2 && exit 1; cp \"$1\" \"$3\"";
        let damaged = PTX.replace("ret;", "bra NONE; \"");
        let unknown = PTX.replace("ret;", "bra NONE;");
        for (script, ptx, message) in [
            (
                refused,
                PTX,
                "does not accept the instrumented code, so this code is not instrumented; please report it to devprof: no such thing",
            ),
            (COPY, &*damaged, "a.ptx is not instrumented: line "),
            (
                COPY,
                &*unknown,
                "a.ptx: the function k is not instrumented: it branches to NONE, which it does not define",
            ),
        ] {
            let toolkit = Toolkit::new("ptxas", script, ptx);
            let (result, err) = toolkit.run("DIR/a.ptx -o DIR/out");
            assert_eq!(result.unwrap(), Outcome::Program(0));
            assert!(err.contains(message), "{err}");
            assert_eq!(fs::read_to_string(toolkit.path("out")).unwrap(), ptx);
        }
    }

    #[test]
    fn functions_without_lines_are_named() {
        let plain = PTX.replace("\t.loc 1 5 1\n", "");
        let both = format!(
            "{PTX}{}",
            plain
                .split_once("64\n")
                .unwrap()
                .1
                .replace("k()", "other()")
        );
        for (ptx, message) in [
            (
                &*plain,
                "compile with -lineinfo (or set NVCC_APPEND_FLAGS=-lineinfo): k\n",
            ),
            (
                &*both,
                "functions without line information, of which only is recorded whether they ran: other\n",
            ),
        ] {
            let (_, err) = Toolkit::new("ptxas", COPY, ptx).run("DIR/a.ptx -o DIR/out");
            assert!(err.contains(message), "{err}");
        }
    }

    #[test]
    fn triton_can_have_an_assembler_of_another_name() {
        let toolkit = Toolkit::new("ptxas-12.9", COPY, PTX);
        let (result, _) = toolkit.run("DIR/a.ptx -o DIR/out");
        let error = result.unwrap_err().to_string();
        assert!(
            error.contains("not a program that devprof replaces"),
            "{error}"
        );
        let (result, _) = toolkit.run_for(true, "DIR/a.ptx -o DIR/out");
        assert_eq!(result.unwrap(), Outcome::Program(0));
        let compiled = fs::read_to_string(toolkit.path("out")).unwrap();
        assert!(compiled.contains("__profc_k_"));
    }

    #[test]
    fn errors_of_the_original_code_are_those_of_ptxas() {
        let toolkit = Toolkit::new("ptxas", "exit 7", PTX);
        let (result, err) = toolkit.run("DIR/a.ptx -o DIR/out");
        assert_eq!((result.unwrap(), &*err), (Outcome::Program(7), ""));
    }

    #[test]
    fn fat_binaries_are_not_compressed_and_have_instrumented_ptx() {
        let toolkit = Toolkit::new(
            "fatbinary",
            "echo \"$@\" >&2; cp \"${4#*file=}\" \"$5\"",
            PTX,
        );
        let (result, err) = toolkit.run(
            "-compress-all --compress-mode=size -64 --image3=kind=elf,sm=90,file=DIR/a.ptx --image3=kind=ptx,sm=90,file=DIR/a.ptx DIR/out",
        );
        assert_eq!(result.unwrap(), Outcome::Program(0));
        let start = format!(
            "--compress=false -64 --image3=kind=elf,sm=90,file={} --image3=kind=ptx,sm=90,file=",
            toolkit.path("a.ptx").display()
        );
        assert!(err.starts_with(&start), "{err}");
        let packed = fs::read_to_string(toolkit.path("out")).unwrap();
        assert!(packed.contains("__profc_k_"));
    }

    #[test]
    fn link_time_optimization_is_refused() {
        for (name, argument) in [
            ("nvlink", "-dlto"),
            ("fatbinary", "--image3=kind=nvvm,sm=90,file=a.ltoir"),
        ] {
            let (result, _) = Toolkit::new(name, "exit 0", PTX).run(argument);
            let error = result.unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("{name} {argument}: link-time")),
                "{error}"
            );
        }
        let (result, _) = Toolkit::new("nvlink", "exit 0", PTX).run("-arch=sm_90 a.o");
        assert_eq!(result.unwrap(), Outcome::Program(0));
    }
}
