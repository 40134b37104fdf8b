//! LLVM's tools and the compilers: which raw profiles each reads or writes, and whether they match.

use super::finding::{Finding, State, Topic};
use crate::clang::Clang;
use crate::flags::{self, OLDEST_WITH_PLUGINS};
use crate::llvm::{self, INSTALL, Llvm, Tool};
use crate::locate::{Component, build_plugin, install_device_runtime};
use std::path::Path;

const TOOLS: Topic = Topic("LLVM tools");
const CLANG: Topic = Topic("clang");

/// Only the compiler that `devprof flags` picks must be complete. `has_amd`: also checks the parts that AMD's GPUs need.
pub fn check(options: &llvm::Options, llvm: &Llvm, has_amd: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in ["llvm-profdata", "llvm-cov"] {
        let found = llvm.all(name);
        for tool in &found.tools {
            let (version, path) = (&tool.version, tool.path.display());
            let raw = (name == "llvm-profdata").then(|| tool.raw_version());
            findings.push(match raw {
                None => TOOLS.ok(format!("{name} {version} ({path})")),
                Some(Ok(raw)) => TOOLS.ok(format!(
                    "{name} {version}, reads raw profiles of version {raw} ({path})"
                )),
                Some(Err(why)) => {
                    TOOLS.warning(format!("{name} {version} ({path}): {why}"), INSTALL)
                }
            });
        }
        for (path, why) in &found.broken {
            findings.push(TOOLS.warning(format!("{}: {why}", path.display()), INSTALL));
        }
        let reads = |tool: &Tool| matches!(tool.raw_version(), Ok(10 | 11));
        if name == "llvm-profdata" && !found.tools.is_empty() && !found.tools.iter().any(reads) {
            findings.push(TOOLS.missing(
                "no llvm-profdata that reads raw profiles of version 10 or 11",
                INSTALL,
            ));
        }
        if found.tools.is_empty() {
            findings.push(TOOLS.missing(format!("no {name}"), INSTALL));
        }
    }
    let clangs = llvm.all("clang++");
    let picked = Clang::find(None, options).and_then(|clang| Ok(clang.path.canonicalize()?));
    let picked = picked.ok();
    let mut unusable = Vec::new();
    let mut compilers = Vec::new();
    for tool in &clangs.tools {
        let is_picked = picked.is_some() && tool.path.canonicalize().ok() == picked;
        match compiler(&tool.path, options, llvm, has_amd) {
            Ok(found) => compilers.push((is_picked, found)),
            Err(error) => unusable.push(format!("{error:#}")),
        }
    }
    // If that one cannot be used, or is not in the directory of --llvm, the newest one.
    let required = compilers.iter().position(|(is_picked, _)| *is_picked);
    let required = required.unwrap_or_default();
    let compilers = compilers.into_iter().enumerate();
    let mut usable: Vec<Finding> = compilers
        .flat_map(|(n, (_, found))| found.into_iter().map(move |own| (n, own)))
        .map(|(n, own)| if n == required { own } else { optional(own) })
        .collect();
    let broken = clangs.broken.iter();
    unusable.extend(broken.map(|(path, why)| format!("{}: {why}", path.display())));
    if usable.is_empty() {
        let mut why = "no clang++".to_owned();
        if !unusable.is_empty() {
            why = format!("{why} that instruments GPU code: {}", unusable.join("; "));
        }
        usable.push(CLANG.missing(why, INSTALL));
    } else {
        usable.extend(
            unusable
                .into_iter()
                .map(|why| CLANG.warning(why, "use another one: devprof flags --clang CLANG")),
        );
    }
    findings.extend(usable);
    findings
}

/// A finding of a compiler that `devprof flags` does not pick.
fn optional(finding: Finding) -> Finding {
    match finding.state {
        State::Missing => Finding {
            state: State::Warning,
            what: format!("optional: {}", finding.what),
            ..finding
        },
        _ => finding,
    }
}

/// # Errors
/// It cannot instrument GPU code.
fn compiler(
    path: &Path,
    options: &llvm::Options,
    llvm: &Llvm,
    has_amd: bool,
) -> anyhow::Result<Vec<Finding>> {
    let clang = Clang::find(Some(path), options)?;
    let kind = clang.instrumentation()?;
    let mut sampling = "";
    if kind.samples {
        sampling = ", counts one block in eight by default (with the flags of `devprof flags` every block)";
    }
    let mut findings = vec![CLANG.ok(format!(
        "{clang}, makes raw profiles of version {}{sampling}",
        kind.raw_version
    ))];
    if has_amd {
        findings.push(device_runtime(&clang)?);
    }
    if let Err(error) = llvm.profdata(kind.raw_version) {
        findings.push(CLANG.missing(
            format!("no tool reads its profiles: {error:#}"),
            format!("apt-get install llvm-{}", clang.major),
        ));
    }
    if has_amd {
        findings.extend(device_libraries(&clang));
        findings.extend(swap_over_call(&clang));
    }
    if clang.major >= OLDEST_WITH_PLUGINS {
        findings.extend(PLUGINS.map(|(name, purpose)| plugin(&clang, name, purpose)));
    }
    Ok(findings)
}

/// A defect of LLVM 23, which llvm-tests/peer/swap-over-call.test documents. Machine code does not show it: an instruction
/// `v_swap_b32` after a call is also right if the function that is called returns a value in the register, and a code object
/// does not contain the types of functions.
fn swap_over_call(clang: &Clang) -> Option<Finding> {
    const WITH_DEFECT: u32 = 23;
    (clang.major == WITH_DEFECT).then(|| {
        CLANG.warning(
            format!(
                "{}: LLVM {WITH_DEFECT} compiles some calls of device functions wrongly, with and without instrumentation (since llvm/llvm-project#192452): a variable may have another value after the call",
                clang.path.display()
            ),
            "if a kernel's results are wrong, compile it with clang 22 (devprof flags --clang CLANG), or inline the functions that it calls",
        )
    })
}

/// devprof's plugins for clang, and what they are for.
const PLUGINS: [(&str, &str); 3] = [
    ("coverage", "fast coverage"),
    ("hoist", "`devprof flags --hoist`"),
    (flags::NAMES, "internal device functions of CUDA code"),
];

fn plugin(clang: &Clang, name: &'static str, purpose: &str) -> Finding {
    match Component::Plugin(name, clang.major).find() {
        Ok(path) => CLANG.ok(format!(
            "devprof's plugin for {purpose}, {}",
            path.display()
        )),
        Err(_) => CLANG.warning(
            format!("optional: no plugin for {purpose}"),
            build_plugin(name, &clang.path, clang.major),
        ),
    }
}

fn device_runtime(clang: &Clang) -> anyhow::Result<Finding> {
    let own = clang.device_runtime()?;
    Ok(if own.exists() {
        CLANG.ok(format!("its device runtime {}", own.display()))
    } else if let Ok(path) = Component::DeviceRuntime(clang.major).find() {
        CLANG.ok(format!(
            "devprof's device runtime for it, {}, which `devprof flags` links",
            path.display()
        ))
    } else {
        CLANG.missing(format!(
                "no device runtime for it: {} does not exist, and devprof does not have one for clang {}",
                own.display(),
                clang.major
            ),
            install_device_runtime(&clang.path)
                .unwrap_or_else(|| Component::DeviceRuntimeBuild.remedy()),
        )
    })
}

/// A problem with AMD's device libraries, or else with HIP's headers.
fn device_libraries(clang: &Clang) -> Option<Finding> {
    // They are needed to compile HIP at all, so any architecture will do.
    let flag = match clang.device_libraries(&["gfx1100".to_owned()]) {
        Ok(flag) => flag,
        Err(error) => {
            return Some(CLANG.warning(
                format!("{error:#}"),
                "apt-get install rocm-device-libs-22 (Debian), rocm-device-libs (AMD's packages)",
            ));
        }
    };
    let error = clang.half_precision_error(flag.as_deref()).ok()??;
    Some(CLANG.warning(format!(
            "{} cannot compile this machine's hip/hip_fp16.h, which many libraries include: {error}",
            clang.path.display()
        ),
        "use another clang (devprof flags --clang CLANG), or declare the missing functions: see \"HIP's half precision\" in the document \"Compiling and linking\"",
    ))
}
