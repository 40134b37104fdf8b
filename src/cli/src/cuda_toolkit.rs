//! `devprof cuda-toolkit`: makes a CUDA toolkit whose nvcc gives its device code LLVM's byte coverage.
//!
//! nvcc compiles all device code to PTX and starts `ptxas` with it. The new toolkit has links to the original one, and scripts in
//! place of the programs that get PTX: they start this program ([`tool`]), which instruments the PTX and starts the original
//! program. nvcc finds its programs next to itself, so it is copied.

pub mod tool;

use crate::console::Console;
use crate::cuda_installation::{CudaInstallation, missing_part};
use crate::exit::{Outcome, usage};
use crate::locate::this_program;
use anyhow::{Context, bail};
use clap::Args;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Options {
    /// The directory to make. If it was made by this command, it is made again
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// The CUDA toolkit to use [default: CUDA_PATH, CUDA_HOME, where ptxas in PATH is, or /usr/local/cuda]
    #[arg(long, value_name = "DIR")]
    cuda: Option<PathBuf>,
}

/// The file that marks a directory that this command made.
const MARK: &str = ".devprof-cuda-toolkit";
/// The program that is copied.
const NVCC: &str = "nvcc";

pub fn run(options: &Options, console: &mut Console) -> anyhow::Result<Outcome> {
    let cuda = match &options.cuda {
        Some(path) => match missing_part(path) {
            None => path.clone(),
            Some(part) => {
                return Err(usage(format!(
                    "--cuda {}: not a CUDA toolkit: it has no {part}",
                    path.display()
                )));
            }
        },
        None => CudaInstallation::find()?.path,
    };
    let cuda = cuda
        .canonicalize()
        .with_context(|| format!("cannot open {}", cuda.display()))?;
    let directory = &options.directory;
    make(&cuda, directory, &this_program()?)?;
    let path = directory
        .canonicalize()
        .context("cannot find the new directory")?;
    let path = path.display();
    console.print(&format!(
        "{path}: a CUDA toolkit whose nvcc gives device code coverage. Compile with line information:\n    \
         {path}/bin/nvcc -lineinfo app.cu -o app\n    \
         cmake -DCMAKE_CUDA_COMPILER={path}/bin/nvcc -DCMAKE_CUDA_FLAGS=-lineinfo\n"
    ))?;
    Ok(Outcome::Complete)
}

/// Whether a program is in the `bin` of a toolkit that this command made.
pub fn has_program(program: &Path) -> bool {
    let directory = program.parent().and_then(Path::parent);
    directory.is_some_and(|directory| directory.join(MARK).exists())
}

/// Makes the toolkit. `program`: this program.
fn make(cuda: &Path, directory: &Path, program: &Path) -> anyhow::Result<()> {
    if cuda.join(MARK).exists() {
        bail!(
            "{}: this toolkit was made by `devprof cuda-toolkit`; name the original one with --cuda",
            cuda.display()
        );
    }
    if !cuda.join("bin").join(NVCC).exists() {
        bail!(
            "{} has no bin/nvcc: install the compiler of NVIDIA's CUDA toolkit, or name another toolkit with --cuda",
            cuda.display()
        );
    }
    clear(directory)?;
    let bin = directory.join("bin");
    let failed = |path: &Path| format!("cannot create {}", path.display());
    fs::create_dir_all(&bin).with_context(|| failed(&bin))?;
    let mark = directory.join(MARK);
    fs::write(&mark, "").with_context(|| failed(&mark))?;
    for (from, to) in entries(cuda, directory)? {
        if to != bin {
            symlink(&from, &to).with_context(|| failed(&to))?;
        }
    }
    for (from, to) in entries(&cuda.join("bin"), &bin)? {
        let name = to.file_name().and_then(|name| name.to_str());
        let made = match name {
            Some(NVCC) => fs::copy(&from, &to).map(drop),
            Some(name) if tool::Tool::named(name).is_some() => {
                write_script(&to, program, &[], &from)
            }
            _ => symlink(&from, &to),
        };
        made.with_context(|| failed(&to))?;
    }
    Ok(())
}

/// Removes a toolkit that this command made.
fn clear(directory: &Path) -> anyhow::Result<()> {
    let path = directory.display();
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.with_context(|| format!("cannot read {path}"))?,
    };
    match entries.count() {
        0 => Ok(()),
        _ if directory.join(MARK).exists() => {
            fs::remove_dir_all(directory).with_context(|| format!("cannot remove {path}"))
        }
        _ => {
            bail!("{path} is not empty, and was not made by this command: name another directory")
        }
    }
}

/// The paths of a directory's entries, and of the same entries in another directory.
fn entries(from: &Path, to: &Path) -> anyhow::Result<Vec<(PathBuf, PathBuf)>> {
    let failed = || format!("cannot read {}", from.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(from).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        found.push((entry.path(), to.join(entry.file_name())));
    }
    Ok(found)
}

/// Writes a script that starts this program in place of a tool. `options`: of `devprof cuda-tool`.
pub fn write_script(path: &Path, program: &Path, options: &[&str], tool: &Path) -> io::Result<()> {
    let quoted = |path: &Path| match path.to_str() {
        Some(path) => Ok(format!("'{}'", path.replace('\'', r"'\''"))),
        None => Err(io::Error::other("a path that is not UTF-8")),
    };
    let (program, tool) = (quoted(program)?, quoted(tool)?);
    let options: String = options.iter().map(|option| format!("{option} ")).collect();
    fs::write(
        path,
        format!(
            "#!/bin/sh\nexec {program} {} {options}{tool} -- \"$@\"\n",
            tool::NAME
        ),
    )?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locate::directory;

    const PARTS: [&str; 7] = [
        "bin/nvcc",
        "bin/nvcc.profile",
        "bin/ptxas",
        "bin/nvlink",
        "bin/fatbinary",
        "include/cuda.h",
        "nvvm/libdevice/libdevice.10.bc",
    ];

    #[test]
    fn a_toolkit_has_links_and_scripts() {
        let cuda = directory(&PARTS);
        let parent = tempfile::tempdir().unwrap();
        let made = parent.path().join("it's new");
        // Twice: it is made again.
        for _ in 0..2 {
            make(cuda.path(), &made, Path::new("/d p/devprof")).unwrap();
        }
        for part in ["include", "nvvm", "bin/nvcc.profile"] {
            assert_eq!(
                fs::read_link(made.join(part)).unwrap(),
                cuda.path().join(part)
            );
        }
        assert!(fs::read_link(made.join("bin/nvcc")).is_err());
        for tool in ["ptxas", "nvlink", "fatbinary"] {
            let script = made.join("bin").join(tool);
            let original = cuda.path().join("bin").join(tool);
            let expected = format!(
                "#!/bin/sh\nexec '/d p/devprof' cuda-tool '{}' -- \"$@\"\n",
                original.display()
            );
            assert_eq!(fs::read_to_string(&script).unwrap(), expected);
            assert_eq!(
                fs::metadata(&script).unwrap().permissions().mode() & 0o777,
                0o755
            );
        }
        let error = make(&made, &parent.path().join("other"), Path::new("/devprof"));
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("name the original one with --cuda"),
            "{error}"
        );
    }

    #[test]
    fn other_directories_and_incomplete_toolkits_are_refused() {
        let (cuda, other) = (directory(&PARTS), directory(&["file"]));
        let error = make(cuda.path(), other.path(), Path::new("/devprof")).unwrap_err();
        assert!(
            error.to_string().contains("not made by this command"),
            "{error}"
        );
        assert!(other.path().join("file").exists());
        let without = directory(&PARTS[1..]);
        let new = other.path().join("new");
        let error = make(without.path(), &new, Path::new("/devprof")).unwrap_err();
        assert!(error.to_string().contains("has no bin/nvcc"), "{error}");
        assert!(!new.exists());
    }
}
