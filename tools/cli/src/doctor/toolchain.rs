//! LLVM's tools and the compilers: which raw profiles each reads or makes, and whether these go together.

use super::Finding;
use crate::clang::Clang;
use crate::llvm::{self, INSTALL, Llvm, Tool};
use crate::parts::{Part, device_runtime_build};
use std::path::Path;

const TOOLS: &str = "LLVM tools";
const CLANG: &str = "clang";

pub fn look(options: &llvm::Options, llvm: &Llvm) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in ["llvm-profdata", "llvm-cov"] {
        let found = llvm.all(name);
        for tool in &found.tools {
            let path = tool.path.display();
            let reads = match name {
                "llvm-profdata" => tool
                    .raw_version()
                    .clone()
                    .map(|raw| format!(", reads raw profiles of version {raw}")),
                _ => Ok(String::new()),
            };
            findings.push(match reads {
                Ok(reads) => {
                    Finding::good(TOOLS, format!("{name} {}{reads} ({path})", tool.version))
                }
                Err(why) => Finding::warning(
                    TOOLS,
                    format!("{name} {} ({path}): {why}", tool.version),
                    INSTALL,
                ),
            });
        }
        for (path, why) in &found.broken {
            findings.push(Finding::warning(
                TOOLS,
                format!("{}: {why}", path.display()),
                INSTALL,
            ));
        }
        let reads = |tool: &Tool| matches!(tool.raw_version(), Ok(10 | 11));
        if name == "llvm-profdata" && !found.tools.is_empty() && !found.tools.iter().any(reads) {
            findings.push(Finding::missing(
                TOOLS,
                "no llvm-profdata that reads raw profiles of version 10 or 11",
                INSTALL,
            ));
        }
        if found.tools.is_empty() {
            findings.push(Finding::missing(TOOLS, format!("no {name}"), INSTALL));
        }
    }
    let clangs = llvm.all("clang++");
    let mut unfit = Vec::new();
    let mut fit = Vec::new();
    for tool in &clangs.tools {
        match compiler(&tool.path, options, llvm) {
            Ok(found) => fit.extend(found),
            Err(why) => unfit.push(why),
        }
    }
    unfit.extend(
        clangs
            .broken
            .iter()
            .map(|(path, why)| format!("{}: {why}", path.display())),
    );
    if fit.is_empty() {
        let why = match unfit.is_empty() {
            true => "no clang++".to_owned(),
            false => format!("no clang++ that instruments GPU code: {}", unfit.join("; ")),
        };
        fit.push(Finding::missing(CLANG, why, INSTALL));
    } else {
        fit.extend(unfit.into_iter().map(|why| {
            Finding::warning(CLANG, why, "take another one: devprof flags --clang CLANG")
        }));
    }
    findings.extend(fit);
    findings
}

/// # Errors
/// It makes no code that counts.
fn compiler(path: &Path, options: &llvm::Options, llvm: &Llvm) -> Result<Vec<Finding>, String> {
    let clang = Clang::find(Some(path), options)?;
    let kind = clang.instrumentation()?;
    let sampling = match kind.samples {
        true => {
            ", counts one block in eight unless told otherwise (`devprof flags --coverage` tells it)"
        }
        false => "",
    };
    let mut findings = vec![Finding::good(
        CLANG,
        format!(
            "{} ({}), makes raw profiles of version {}{sampling}",
            clang.path.display(),
            clang.version,
            kind.raw_version
        ),
    )];
    let own = clang.device_runtime()?;
    findings.push(if own.exists() {
        Finding::good(CLANG, format!("its device runtime {}", own.display()))
    } else if let Ok(path) = Part::DeviceRuntime(clang.major).find() {
        Finding::good(
            CLANG,
            format!(
                "devprof's device runtime for it, {}, which `devprof flags` names",
                path.display()
            ),
        )
    } else {
        Finding::missing(
            CLANG,
            format!(
                "no device runtime for it: {} is not there, and devprof has none for clang {}",
                own.display(),
                clang.major
            ),
            format!(
                "{} --clang {} --install",
                device_runtime_build(),
                clang.path.display()
            ),
        )
    });
    if let Err(why) = llvm.profdata(kind.raw_version) {
        findings.push(Finding::missing(
            CLANG,
            format!("nothing reads its profiles: {why}"),
            format!("apt-get install llvm-{}", clang.major),
        ));
    }
    // What it needs to compile HIP at all; gfx1100 stands for any GPU.
    if let Err(why) = clang.device_libraries(&["gfx1100".to_owned()]) {
        findings.push(Finding::warning(
            CLANG,
            why,
            "apt-get install rocm-device-libs-22 (Debian), rocm-device-libs (AMD's packages)",
        ));
    }
    Ok(findings)
}
