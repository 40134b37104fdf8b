//! Instruments PTX with LLVM's byte coverage, for compilers that cannot do it themselves: nvcc, NVRTC's users, Triton.
//!
//! A flag is one byte: 0xff, or 0 if its basic block ran. Only the blocks that decide which source lines ran have one, and it
//! is tested before it is changed ([`update`]). The flags, their records, the names of functions and the coverage mapping are variables with
//! the names and contents that clang gives them in CUDA's device code, so everything that reads clang's profiles reads these.
//! The mapping is made from the line table (`.loc`): a line has code if an instruction belongs to it.
//!
//! The text of the module is kept, and text is inserted: variables in front of the first function, registers per function, and
//! instructions that clear the flags.
//!
//! Source: PTX ISA 9.0; LLVM's InstrProfData.inc and CoverageMappingWriter.cpp for the variables.

#![forbid(unsafe_code)]

mod blocks;
mod calls;
mod flags;
mod lines;
mod mapping;
mod object;
mod parse;
mod problem;
mod record;
mod tokens;
mod update;
mod variable;

pub use object::Object;
pub use parse::is_ptx;
pub use problem::Problem;
pub use record::{MARKER, Origin};

use parse::Function;
use std::collections::HashSet;
use std::path::Path;
use variable::Variable;

/// An instrumented module.
#[derive(Debug)]
pub struct Instrumented {
    pub text: String,
    /// Its variables and kernels, as the compiled module has them.
    pub object: Object,
    /// The functions that have flags.
    pub functions: usize,
    /// The functions that have flags, but no lines: the module was compiled without line information. They have one flag,
    /// which tells whether the function ran.
    pub without_lines: Vec<String>,
    /// The functions that were not changed, and why.
    pub not_instrumented: Vec<(String, Problem)>,
}

/// Instruments a module. `directory` is that of relative paths in it: where the compiler ran. Of files that `is_excluded`
/// names, functions are not instrumented, and lines are not mapped: those of the toolkit's headers. Nor are functions of the
/// compiler itself instrumented, such as `__uAtomicAdd` in code that is not optimized: they have no `.loc`, although others have.
///
/// Returns `None` if the module has LLVM's instrumentation already, or no function with code.
///
/// # Errors
/// The module could not be read, or is for 32 bits or an older version than PTX 6.0.
pub fn instrument(
    text: &str,
    directory: &Path,
    origin: Origin,
    is_excluded: impl Fn(&str) -> bool,
) -> Result<Option<Instrumented>, Problem> {
    let mut module = parse::module(text)?;
    calls::find(text, &mut module);
    if module.is_instrumented || module.functions.is_empty() {
        return Ok(None);
    }
    let excluded = module.files.iter().filter(|(_, name)| is_excluded(name));
    let excluded: HashSet<u32> = excluded.map(|(number, _)| *number).collect();
    let directory = directory.to_string_lossy();
    let files = mapping::Files::new(&module.files, &directory);
    let mut done = Instrumented {
        text: String::new(),
        object: Object::default(),
        functions: 0,
        without_lines: Vec::new(),
        not_instrumented: Vec::new(),
    };
    let mut insertions = Vec::new();
    let mut names = Vec::new();
    // A compiler writes line information for a module, not for single functions.
    let has_lines = module.functions.iter().any(lines::has_location);
    let is_compilers =
        |function: &Function| has_lines && !function.is_kernel && !lines::has_location(function);
    let functions = module.functions.iter();
    for function in functions.filter(|function| !is_compilers(function)) {
        match of_function(function, &files, &excluded) {
            Ok(Some(own)) => {
                done.object.variables.extend(own.variables);
                insertions.extend(own.insertions);
                names.push(function.name);
                if !own.has_lines {
                    done.without_lines.push(function.name.to_owned());
                }
            }
            Ok(None) => {}
            Err(why) => done.not_instrumented.push((function.name.to_owned(), why)),
        }
    }
    if names.is_empty() && done.not_instrumented.is_empty() {
        return Ok(None);
    }
    done.functions = names.len();
    if !names.is_empty() {
        let of_module = record::of_module(&names, &files, origin);
        done.object.variables.extend(of_module);
        let kernels = module
            .functions
            .iter()
            .filter(|function| function.is_kernel);
        done.object.kernels = kernels.map(|function| function.name.to_owned()).collect();
        let variables = done.object.variables.iter().map(Variable::to_string);
        let variables = std::iter::once("\n".to_owned()).chain(variables);
        insertions.push((module.header_end, variables.collect()));
    }
    done.text = inserted(text, insertions);
    Ok(Some(done))
}

/// What is inserted for a function.
struct OfFunction {
    variables: Vec<Variable>,
    /// Positions in the module, and the text that is inserted there.
    insertions: Vec<(usize, String)>,
    has_lines: bool,
}

/// `None` if the function is excluded, or has no instructions.
fn of_function(
    function: &Function,
    files: &mapping::Files,
    excluded: &HashSet<u32>,
) -> Result<Option<OfFunction>, Problem> {
    if lines::position(function).is_some_and(|(file, ..)| excluded.contains(&file)) {
        return Ok(None);
    }
    let graph = blocks::Graph::new(function)?;
    if graph.blocks.is_empty() {
        return Ok(None);
    }
    let lines = lines::Lines::new(function, &graph, excluded);
    let flags = flags::Flags::new(&graph, &lines);
    let mapping = mapping::of_function(&lines, &graph, &flags, files);
    let known = mapping.as_deref().unwrap_or_default();
    let record = record::Record::new(function.name, flags.number, known);
    let insertions = update::insertions(function, &graph, &flags, &record.flags);
    Ok(Some(OfFunction {
        variables: record.variables(mapping.as_deref(), files),
        insertions,
        has_lines: mapping.is_some(),
    }))
}

fn inserted(text: &str, mut insertions: Vec<(usize, String)>) -> String {
    insertions.sort_by_key(|(at, _)| *at);
    let added: usize = insertions.iter().map(|(_, text)| text.len()).sum();
    let mut result = String::with_capacity(text.len() + added);
    let mut from = 0;
    for (at, new) in insertions {
        result.push_str(&text[from..at]);
        result.push_str(&new);
        from = at;
    }
    result.push_str(&text[from..]);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: &str = "// a comment
.version 9.0
.target sm_90
.address_size 64 // 64 bits
.func empty() { }
.weak .func f(.param .b32 a) {
    .loc 1 1 0
    ret; }
.visible .entry k()
{
    .reg .pred %p<2>;
L:
    .pragma \"nounroll\";
    @%p1 bra L;
    ret;
}
.file 1 \"f.cu\"
";

    fn run(text: &str) -> Result<Option<Instrumented>, Problem> {
        instrument(text, Path::new("/tmp"), Origin::Build, |name| {
            name.starts_with("/cuda/")
        })
    }

    #[test]
    fn text_is_inserted_and_the_rest_is_kept() {
        let done = run(MODULE).unwrap().unwrap();
        assert_eq!(
            (done.functions, &done.without_lines[..]),
            (2, &["k".to_owned()][..])
        );
        assert_eq!(done.not_instrumented, []);
        let added = |line: &&str| {
            line.contains("__devprof_")
                || line.starts_with(".weak .global")
                || line.contains("__llvm_")
        };
        let (added, kept): (Vec<&str>, Vec<&str>) = done.text.lines().partition(added);
        assert_eq!(
            kept.concat().replace(char::is_whitespace, ""),
            MODULE.replace(char::is_whitespace, "")
        );
        let code = added.iter().filter(|line| line.contains("%__devprof"));
        let code: Vec<&str> = code.map(|line| line.trim()).collect();
        assert_eq!(code.len(), 10);
        // Behind the loop's directive, in front of its first instruction.
        let at = done
            .text
            .find("\"nounroll\";\n    ld.global.u8 %__devprof_flag, [__profc_k_");
        assert!(at.is_some(), "{}", done.text);
        assert!(
            done.text
                .contains("@%__devprof_is_new st.global.u8 [__profc_k_")
        );
        let variables = done.text.find("__profc_").unwrap();
        assert!(
            variables > MODULE.find("// 64").unwrap() - 1
                && variables < done.text.find(".func").unwrap()
        );
    }

    #[test]
    fn a_module_is_instrumented_once() {
        let done = run(MODULE).unwrap().unwrap();
        assert!(run(&done.text).unwrap().is_none());
        let header = MODULE.split_once(".func").unwrap().0;
        assert!(run(header).unwrap().is_none());
        assert!(
            run(&format!("{header}.func empty() {{ }}"))
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn functions_of_excluded_files_are_not_instrumented() {
        let text = MODULE.replace("f.cu", "/cuda/f.h");
        let done = run(&text).unwrap().unwrap();
        assert_eq!(done.functions, 1);
        assert!(!done.text.contains("__profc_f_") && done.text.contains("__profc_k_"));
    }

    #[test]
    fn functions_of_the_compiler_are_not_instrumented() {
        let text = MODULE
            .replace(".loc 1 1 0", "")
            .replace("ret;\n}", ".loc 1 1 0\n    ret;\n}");
        let done = run(&text).unwrap().unwrap();
        assert_eq!((done.functions, &done.without_lines[..]), (1, &[][..]));
        assert!(!done.text.contains("__profc_f_") && done.text.contains("__profc_k_"));
        // Without line information, nobody can say whose functions they are.
        let done = run(&text.replace(".loc 1 1 0", "")).unwrap().unwrap();
        assert_eq!((done.functions, done.without_lines.len()), (2, 2));
    }

    #[test]
    fn a_function_that_is_not_understood_is_left_as_it_is() {
        let text = MODULE.replace("bra L;", "bra M;");
        let done = run(&text).unwrap().unwrap();
        let problem = Problem::NoLabel("M".to_owned());
        assert_eq!(done.not_instrumented, [("k".to_owned(), problem)]);
        assert_eq!(done.functions, 1);
        assert!(done.text.ends_with(&text[text.find(".visible").unwrap()..]));
    }

    /// The result is an error, or text that is read again.
    #[test]
    fn damaged_modules_do_no_harm() {
        let (mut done, mut refused) = (0, 0);
        let mut check = |text: &str| match run(text) {
            Ok(Some(instrumented)) => {
                done += 1;
                let again = run(&instrumented.text);
                assert!(
                    matches!(again, Ok(None)) || instrumented.functions == 0,
                    "{text}"
                );
            }
            Ok(None) => {}
            Err(_) => refused += 1,
        };
        for at in 0..MODULE.len() {
            check(&MODULE[..at]);
            for new in [
                "",
                "{",
                "}",
                "\"",
                ";",
                ":",
                "@",
                "/*",
                "0",
                ".loc",
                "ü",
                "4294967295",
            ] {
                check(&[&MODULE[..at], new, &MODULE[at + 1..]].concat());
            }
        }
        assert!(done > 1000 && refused > 1000, "{done} {refused}");
    }

    #[test]
    fn the_hash_depends_on_the_lines() {
        let suffix = |text: &str| {
            let text = run(text).unwrap().unwrap().text;
            let at = text.find("__profc_f_").unwrap();
            text[at..at + 26].to_owned()
        };
        assert_eq!(suffix(MODULE), suffix(&format!("{MODULE}\n// the end")));
        assert_ne!(
            suffix(MODULE),
            suffix(&MODULE.replace(".loc 1 1", ".loc 1 2"))
        );
    }
}
