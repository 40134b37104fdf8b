//! Triton, whose kernels `devprof run --coverage` instruments, and PyTorch, which uses it. Only the files of the packages are read:
//! Python is not started.

use super::finding::{Finding, Topic};
use crate::llvm::entries;
use crate::triton::{ASSEMBLERS, assembler};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where the packages of a Python are, below `lib/python3.N`.
const PACKAGES: [&str; 2] = ["site-packages", "dist-packages"];
/// Below `/`: the packages of Debian's Python, and those that pip installs there.
const DEBIAN: [&str; 2] = ["usr/lib/python3/dist-packages", "usr/local"];

/// The findings about the Triton that Python would load. Empty if there is none for NVIDIA's GPUs. `python`: the one in PATH.
pub fn check(
    topic: Topic,
    root: &Path,
    variable: &dyn Fn(&str) -> Option<OsString>,
    python: Option<&Path>,
) -> Vec<Finding> {
    let dirs = packages(root, variable, python);
    let mut triton = dirs.iter().map(|dir| dir.join("triton"));
    let Some(triton) = triton.find(|triton| triton.join("backends/nvidia").is_dir()) else {
        return Vec::new();
    };
    let named = |path: &Path, name: &str| {
        let version = path.parent().and_then(|dir| version(dir, name));
        version.map_or(String::new(), |version| format!(" {version}"))
    };
    let (name, own) = ASSEMBLERS[0];
    let set = variable(own).filter(|value| !value.is_empty());
    let ptxas = set.map_or_else(|| assembler(&triton, name), PathBuf::from);
    let what = format!("Triton{} ({})", named(&triton, "triton"), triton.display());
    let mut findings = vec![if ptxas.is_file() {
        topic.ok(format!(
            "{what}: `devprof run --coverage python …` instruments its kernels"
        ))
    } else {
        topic.warning(
            format!(
                "{what} has no ptxas, so its kernels cannot be compiled: {} is not a file",
                ptxas.display()
            ),
            format!("export {own}=PATH_OF_PTXAS"),
        )
    }];
    let mut torch = dirs.iter().map(|dir| dir.join("torch"));
    if let Some(torch) = torch.find(|torch| torch.join("_inductor").is_dir()) {
        let version = named(&torch, "torch");
        findings.push(topic.ok(format!(
            "PyTorch{version}: torch.compile compiles kernels with Triton"
        )));
    }
    findings
}

/// The directories in which Python searches packages, in its order.
fn packages(
    root: &Path,
    variable: &dyn Fn(&str) -> Option<OsString>,
    python: Option<&Path>,
) -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> = variable("PYTHONPATH")
        .iter()
        .flat_map(std::env::split_paths)
        .collect();
    // A virtual environment, the user's packages, and where the Python in PATH is installed.
    let of_python = python.and_then(|python| Some(python.parent()?.parent()?.to_owned()));
    let prefixes = [
        variable("VIRTUAL_ENV").map(PathBuf::from),
        of_python,
        variable("HOME").map(|home| Path::new(&home).join(".local")),
        Some(root.join(DEBIAN[1])),
    ];
    for prefix in prefixes.into_iter().flatten() {
        for python in entries(prefix.join("lib"), "python3") {
            dirs.extend(PACKAGES.map(|name| python.join(name)));
        }
    }
    dirs.push(root.join(DEBIAN[0]));
    dirs
}

/// The version in the name of a package's directory of metadata: `triton-3.6.0.dist-info`.
fn version(dir: &Path, package: &str) -> Option<String> {
    let found = entries(dir, &format!("{package}-"));
    found.iter().find_map(|path| {
        let name = path.file_name()?.to_str()?.strip_suffix(".dist-info")?;
        Some(name.strip_prefix(package)?.strip_prefix('-')?.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locate::directory;

    #[test]
    fn triton_is_found_where_python_finds_it() {
        const PTXAS: &str = "triton/backends/nvidia/bin/ptxas";
        let packages = "lib/python3.12/site-packages";
        let found = |files: &[&str], variables: &[(&str, &str)]| {
            let dir = directory(files);
            let path = |name: &str| dir.path().join(name);
            let variable = |name: &str| {
                let value = variables.iter().find(|(own, _)| *own == name);
                value.map(|(_, value)| path(value).into_os_string())
            };
            let python = Some(path("conda/bin/python3"));
            let found = check(Topic("CUDA"), dir.path(), &variable, python.as_deref());
            let shown = found
                .iter()
                .map(|own| format!("{:?}: {}", own.state, own.what));
            let root = dir.path().display().to_string();
            shown.collect::<Vec<_>>().join("\n").replace(&root, "")
        };
        let in_conda = [
            format!("conda/{packages}/{PTXAS}"),
            format!("conda/{packages}/triton-3.6.0.dist-info/METADATA"),
            format!("conda/{packages}/torch/_inductor/x"),
            format!("conda/{packages}/torch-2.11.0+cu130.dist-info/METADATA"),
        ];
        let in_conda = in_conda.each_ref().map(String::as_str);
        assert_eq!(
            found(&in_conda, &[]),
            "Ok: Triton 3.6.0 (/conda/lib/python3.12/site-packages/triton): `devprof run --coverage python …` instruments its kernels\n\
             Ok: PyTorch 2.11.0+cu130: torch.compile compiles kernels with Triton"
        );
        // The virtual environment comes first, and a package for AMD's GPUs is not Triton for NVIDIA's.
        let in_venv = format!("venv/{packages}/triton/backends/nvidia/driver.c");
        let both = [&in_conda[..], &[&in_venv]].concat();
        let text = found(&both, &[("VIRTUAL_ENV", "venv")]);
        assert!(
            text.starts_with(
                "Warning: Triton (/venv/lib/python3.12/site-packages/triton) has no ptxas"
            ),
            "{text}"
        );
        let text = found(
            &both,
            &[("VIRTUAL_ENV", "venv"), ("TRITON_PTXAS_PATH", in_conda[0])],
        );
        assert!(text.starts_with("Ok: Triton (/venv/"), "{text}");
        let amd = format!("conda/{packages}/triton/backends/amd/driver.c");
        assert_eq!(found(&[&amd], &[]), "");
        for (file, variables) in [
            ("usr/lib/python3/dist-packages", &[][..]),
            ("usr/local/lib/python3.13/dist-packages", &[]),
            (
                "home/.local/lib/python3.13/site-packages",
                &[("HOME", "home")],
            ),
            ("own", &[("PYTHONPATH", "own")]),
        ] {
            let text = found(&[&format!("{file}/{PTXAS}")], variables);
            assert!(
                text.starts_with(&format!("Ok: Triton (/{file}/triton)")),
                "{text}"
            );
        }
    }
}
