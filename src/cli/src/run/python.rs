//! Coverage of the kernels that Triton compiles while the program runs, and a plugin that shows it in pytest's summary.

use super::profiles;
use crate::cuda_toolkit::write_script;
use crate::exit::usage;
use crate::locate::{find_in_path, this_program};
use crate::triton;
use anyhow::Context;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The plugin, after two lines that define `REPORT`, the command that prints a report, and `COMPILED`, the directory of what Triton
/// has compiled. Its name is that of a Python module.
const PLUGIN: &str = include_str!("pytest_plugin.py");
const PLUGIN_NAME: &str = "devprof_pytest";

/// The plugin for pytest, and scripts in place of Triton's `ptxas`, as long as the program runs.
pub struct Coverage {
    scripts: TempDir,
    /// The directory of the profiles.
    profiles: PathBuf,
}

impl Coverage {
    /// `profiles`: the pattern for their names.
    ///
    /// # Errors
    /// The pattern names no directory, or the scripts cannot be written.
    pub fn new(profiles: &profiles::Profiles) -> anyhow::Result<Coverage> {
        let Some(directory) = profiles.directory() else {
            return Err(usage(format!(
                "--coverage keeps compiled kernels next to the profiles, so their directory must be fixed, but it is {}: name another one with --profile",
                profiles.pattern().display()
            )));
        };
        let scripts = profiles::scratch(profiles.pattern())?;
        let program = this_program()?;
        for (name, variable) in triton::ASSEMBLERS {
            let named = env::var_os(variable).filter(|path| !path.is_empty());
            let named = named.and_then(|path| find_in_path(&path));
            let original = named.unwrap_or_else(|| name.into());
            let script = scripts.path().join(name);
            write_script(&script, &program, &["--triton"], &original)
                .with_context(|| format!("cannot create {}", script.display()))?;
        }
        let plugin = scripts.path().join(PLUGIN_NAME).with_extension("py");
        fs::write(&plugin, plugin_text(&program, directory)?)
            .with_context(|| format!("cannot create {}", plugin.display()))?;
        Ok(Coverage {
            scripts,
            profiles: directory.to_owned(),
        })
    }

    /// Sets the variables of the program.
    pub fn prepare(&self, command: &mut Command) {
        for (name, variable) in triton::ASSEMBLERS {
            command.env(variable, self.scripts.path().join(name));
        }
        for (variable, directory) in triton::caches(&self.profiles) {
            command.env(variable, directory);
        }
        let directory = self.scripts.path().as_os_str();
        for (variable, added, separator) in [
            ("PYTHONPATH", directory, ":"),
            ("PYTEST_PLUGINS", OsStr::new(PLUGIN_NAME), ","),
        ] {
            let old = env::var_os(variable).filter(|old| !old.is_empty());
            let old = old.iter().flat_map(|old| [OsStr::new(separator), old]);
            let list: OsString = [added].into_iter().chain(old).collect();
            command.env(variable, list);
        }
    }
}

/// The plugin. `program`: this program.
fn plugin_text(program: &Path, profiles: &Path) -> anyhow::Result<String> {
    let text = |path: &Path| {
        let text = path.to_str().map(str::to_owned);
        text.with_context(|| format!("{}: not UTF-8", path.display()))
    };
    let (program, profiles_text) = (text(program)?, text(profiles)?);
    let report = serde_json::to_string(&[&program, "report", "--profile", &profiles_text])?;
    let compiled = serde_json::to_string(&text(&triton::cache(profiles))?)?;
    // A string of JSON is one of Python.
    Ok(format!(
        "REPORT = {report}\nCOMPILED = {compiled}\n{PLUGIN}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn a_program_gets_scripts_caches_and_the_plugin() {
        let dir = tempfile::tempdir().unwrap();
        let pattern = dir.path().join("it's/%m.profraw");
        let profiles = profiles::Profiles::new(Some(pattern.as_os_str())).unwrap();
        let coverage = Coverage::new(&profiles).unwrap();
        let mut command = Command::new("true");
        coverage.prepare(&mut command);
        let variables = command.get_envs();
        let variables: HashMap<_, _> = variables
            .map(|(name, value)| (name.to_str().unwrap(), PathBuf::from(value.unwrap())))
            .collect();
        let directory = dir.path().join("it's");
        assert_eq!(variables["TRITON_CACHE_DIR"], directory.join("triton"));
        let script = fs::read_to_string(&variables["TRITON_PTXAS_BLACKWELL_PATH"]).unwrap();
        let end = " cuda-tool --triton 'ptxas-blackwell' -- \"$@\"\n";
        assert!(script.ends_with(end), "{script}");
        let plugin = coverage.scripts.path().join("devprof_pytest.py");
        let plugin = fs::read_to_string(plugin).unwrap();
        let first = format!("\"report\",\"--profile\",\"{}\"]\n", directory.display());
        assert!(plugin.contains(&first), "{plugin}");
    }

    #[test]
    fn the_directory_of_profiles_must_be_known() {
        let profiles = profiles::Profiles::new(Some(OsStr::new("%h/x"))).unwrap();
        let error = Coverage::new(&profiles).err().unwrap().to_string();
        assert!(error.contains("%h/x: name another one"), "{error}");
    }
}
