//! What a clang command does, from the phases that its driver prints (`-ccc-print-phases`). So options, response files,
//! configuration files and the languages of files are clang's own.

/// A language with device code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Hip,
    Cuda,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Task {
    /// The language of the device code that is compiled or linked.
    pub language: Option<Language>,
    /// Host code is compiled from source.
    pub compiles_host: bool,
    pub compiles_device: bool,
    /// A program or a shared library is linked.
    pub links: bool,
    /// Device code is linked on its own, to a module.
    pub links_device: bool,
    /// The device code is relocatable: it is linked with the program.
    pub is_rdc: bool,
    /// The source files with device code.
    pub sources: Vec<String>,
}

impl Task {
    /// Reads the phases, one per line: `|  +- 5: compiler, {4}, ir, (device-hip, gfx1100)`.
    pub fn read(phases: &str) -> Task {
        let mut task = Task::default();
        let mut has_fat_binary = false;
        for line in phases.lines() {
            let line = line.trim_start_matches([' ', '|', '+', '-']);
            let phase = line.split_once(": ").and_then(|(number, phase)| {
                number.parse::<u32>().ok()?;
                phase.split_once(", ")
            });
            let Some((action, rest)) = phase else {
                continue;
            };
            let (rest, offload) = match rest.rsplit_once(", (") {
                Some((rest, offload)) if offload.ends_with(')') => (rest, offload),
                _ => (rest, ""),
            };
            let (inputs, kind) = rest.rsplit_once(", ").unwrap_or(("", rest));
            let is_device = offload.starts_with("device-");
            let mut language = offload.split_once('-').and_then(|(_, after)| {
                match after.split([',', ')']).next()? {
                    "hip" => Some(Language::Hip),
                    "cuda" => Some(Language::Cuda),
                    _ => None,
                }
            });
            has_fat_binary |= kind.ends_with("-fatbin");
            match action {
                "input" if kind == "object" => language = language.or_else(|| of_library(inputs)),
                "input" if is_device => task.sources.push(inputs.trim_matches('"').to_owned()),
                // Without a result, only the syntax is checked.
                "compiler" if kind != "none" => {
                    task.compiles_device |= is_device;
                    task.compiles_host |= !is_device;
                }
                "linker" if is_device && kind == "image" => task.links_device = true,
                "linker" | "clang-linker-wrapper" if !is_device && kind == "image" => {
                    task.links = true;
                }
                _ => {}
            }
            task.language = task.language.or(language);
        }
        task.is_rdc = task.compiles_device && task.compiles_host && !has_fat_binary;
        task.sources.dedup();
        task
    }

    /// Whether it compiles or links anything.
    pub fn makes_code(&self) -> bool {
        self.compiles_host || self.compiles_device || self.links
    }
}

/// The language whose runtime library this is.
fn of_library(path: &str) -> Option<Language> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = name.trim_matches('"');
    let name = name.strip_prefix("lib").unwrap_or(name);
    match name {
        _ if name.starts_with("amdhip64") => Some(Language::Hip),
        _ if name.starts_with("cudart") => Some(Language::Cuda),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Phases of clang 23.
    const HIP: &str = r#"            +- 0: input, "a, (b).hip", hip, (host-hip)
         +- 1: preprocessor, {0}, hip-cpp-output, (host-hip)
      +- 2: compiler, {1}, ir, (host-hip)
      |                 +- 3: input, "a, (b).hip", hip, (device-hip, gfx1100)
      |              +- 4: preprocessor, {3}, hip-cpp-output, (device-hip, gfx1100)
      |           +- 5: compiler, {4}, ir, (device-hip, gfx1100)
      |        +- 6: backend, {5}, lto-bc, (device-hip, gfx1100)
      |     +- 7: offload, "device-hip (amdgcn-amd-amdhsa:gfx1100)" {6}, lto-bc
      |  +- 8: llvm-offload-binary, {7}, image, (device-hip)
      |- 9: clang-linker-wrapper, {8}, hip-fatbin, (device-hip)
   +- 10: offload, "host-hip (x86_64-pc-linux-gnu)" {2}, "device-hip (amdgcn-amd-amdhsa)" {9}, ir
+- 11: backend, {10}, assembler, (host-hip)
12: assembler, {11}, object, (host-hip)
"#;

    #[test]
    fn the_steps_of_a_command_are_found() {
        let hip = Task::read(HIP);
        let expected = Task {
            language: Some(Language::Hip),
            compiles_host: true,
            compiles_device: true,
            sources: vec!["a, (b).hip".to_owned()],
            ..Task::default()
        };
        assert_eq!(hip, expected);
        let rdc = Task::read(&HIP.replace("hip-fatbin", "image"));
        assert!(rdc.is_rdc && !rdc.links);
        let syntax = Task::read(&HIP.replace("}, ir,", "}, none,"));
        assert!(!syntax.makes_code());
    }

    #[test]
    fn libraries_and_offloading_tell_the_language_of_a_link() {
        for (input, action, language) in [
            (
                r#""cudart_static", object"#,
                "linker, {0}, image",
                Some(Language::Cuda),
            ),
            (
                r#""/usr/lib/libamdhip64.so.7", object"#,
                "linker, {0}, image",
                Some(Language::Hip),
            ),
            (
                r#""a.o", object, (host-hip)"#,
                "clang-linker-wrapper, {0}, image, (host-hip)",
                Some(Language::Hip),
            ),
            (r#""a.o", object"#, "linker, {0}, image", None),
        ] {
            let task = Task::read(&format!("+- 0: input, {input}\n1: {action}\n"));
            assert_eq!((task.links, task.language), (true, language), "{input}");
        }
        assert_eq!(
            Task::read("clang version 23.1.4\nTarget: x\n"),
            Task::default()
        );
    }
}
