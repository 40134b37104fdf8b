//! The file name pattern that applies: LLVM's host runtime uses the same.

use super::pattern::{
    DEFAULT, Destination, ObjectId, Substitutions, Token, expand, is_plain_name, is_valid, tokenize,
};
use crate::support::environment::{Environment, Values};
use crate::sys::env;
use crate::sys::llvm_runtime::{self, Runtime};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// Where to write profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A pattern that is expanded when a file is written. Only TMPDIR has the value from when the pattern was read, as
    /// in LLVM.
    Pattern {
        pattern: Vec<u8>,
        tmp: Option<OsString>,
    },
    /// A file name. Percent signs in it are literal.
    Name(Vec<u8>),
    /// The name of a file in a merge pool.
    PoolFile {
        /// The name up to the signature.
        prefix: Vec<u8>,
        /// The name after the file's number.
        suffix: Vec<u8>,
        number: u32,
    },
}

impl Target {
    /// `start`: the environment when the program started.
    pub fn new(start: &Environment) -> Target {
        let runtime = llvm_runtime::find();
        if env::is_secure() {
            // The runtime's name may come from the environment, which is not trusted in a set-user-ID program.
            let compiled = runtime.map(|runtime| runtime.compiled).unwrap_or_default();
            return Target::from_pattern(Some(compiled), &start.values);
        }
        Target::choose(
            start,
            std::process::id(),
            Environment::now,
            runtime.as_ref(),
        )
    }

    fn from_pattern(pattern: Option<Vec<u8>>, values: &Values) -> Target {
        let pattern = pattern.filter(|pattern| !pattern.is_empty());
        Target::Pattern {
            pattern: pattern.unwrap_or(DEFAULT.into()),
            tmp: values.tmp.clone(),
        }
    }

    /// Chooses the pattern or name that LLVM's runtime uses.
    ///
    /// In LLVM's runtime, a name that the program sets overrides LLVM_PROFILE_FILE, which overrides the compiler's
    /// option, which overrides the default. It reads the environment when the program starts, and when the program
    /// calls `__llvm_profile_initialize_file`. It expands %p at that time; devprof expands it when a file is written.
    ///
    /// The runtime provides only the expanded name. Therefore devprof expands the patterns that the runtime may have
    /// read, and uses the pattern that results in its name. If there is none, the program has set the name: devprof uses
    /// that name. If it contains the program's signature, it is a file in a merge pool, and the signature is replaced
    /// with the code object's. (%p and %b in a name that the program sets stay expanded, and %c in it is not
    /// detected.)
    ///
    /// If the runtime cannot be accessed, the program has none, or devprof is preloaded and the runtime's symbols are
    /// hidden in the program. Then neither the compiler's option nor a name that the program sets is known: the
    /// environment's pattern applies, or else the default.
    ///
    /// `now` is called only if `start` does not match, because another thread may be changing the environment.
    fn choose(
        start: &Environment,
        pid: u32,
        now: impl FnOnce() -> Environment,
        runtime: Option<&Runtime>,
    ) -> Target {
        let environment = |at: &Environment| at.pattern.clone().map(OsString::into_vec);
        let Some(runtime) = runtime else {
            return Target::from_pattern(environment(start), &start.values);
        };
        let read = |at: &Environment| {
            let patterns = [environment(at), Some(runtime.compiled.clone())];
            let mut patterns = patterns.into_iter().flatten();
            patterns
                .find(|pattern| {
                    !pattern.is_empty() && expands_to_name(pattern, &at.values, pid, runtime)
                })
                .map(|pattern| Target::from_pattern(Some(pattern), &at.values))
        };
        let is_default = runtime.name == DEFAULT.as_bytes();
        let later = || (!is_default).then(|| read(&now())).flatten();
        read(start)
            .or_else(later)
            .unwrap_or_else(|| Target::from_name(runtime))
    }

    /// The runtime's name, which the program has set.
    fn from_name(runtime: &Runtime) -> Target {
        let name = &runtime.name;
        if name.is_empty() {
            return Target::Name(DEFAULT.into());
        }
        let signature = format!("{}_", runtime.signature).into_bytes();
        let found = name
            .windows(signature.len())
            .position(|at| at == signature && runtime.signature != 0);
        let pool_file = found.and_then(|at| {
            let rest = &name[at + signature.len()..];
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let number = str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
            Some(Target::PoolFile {
                prefix: name[..at].to_vec(),
                suffix: rest[digits..].to_vec(),
                number,
            })
        });
        pool_file.unwrap_or_else(|| Target::Name(name.clone()))
    }

    /// Whether file names contain the process's id, so that no other process writes these files.
    pub fn names_process(&self) -> bool {
        match self {
            Target::Pattern { pattern, .. } => tokenize(pattern).contains(&Token::Process),
            Target::Name(_) | Target::PoolFile { .. } => false,
        }
    }

    /// The file name for a code object. `values` apply except for TMPDIR.
    pub fn destination(&self, values: &Values, object: ObjectId) -> Destination {
        let named = |name: Vec<u8>, merge| Destination {
            path: PathBuf::from(OsString::from_vec(name)),
            merge,
            warning: None,
        };
        match self {
            Target::Pattern { pattern, tmp } => {
                let tmp = tmp.clone();
                expand(
                    pattern,
                    &Values {
                        tmp,
                        ..values.clone()
                    },
                    object,
                )
            }
            Target::Name(name) => named(name.clone(), false),
            Target::PoolFile {
                prefix,
                suffix,
                number,
            } => {
                let signature = format!("{}_{number}", object.fingerprint);
                named([prefix, signature.as_bytes(), suffix].concat(), true)
            }
        }
    }
}

/// Whether `pattern` with `values` expands to the runtime's name if process `pid` requests it.
fn expands_to_name(pattern: &[u8], values: &Values, pid: u32, runtime: &Runtime) -> bool {
    let name = &runtime.name[..];
    let tokens = tokenize(pattern);
    if !is_valid(&tokens, values) {
        return name == DEFAULT.as_bytes();
    }
    if is_plain_name(&tokens) {
        return name == pattern;
    }
    let with_id = |tokens: &[Token], build_id: &[u8]| {
        Substitutions {
            values,
            pool_pid: pid,
            signature: runtime.signature,
            build_id,
        }
        .expand(tokens)
    };
    let is_id = |token: &Token| *token == Token::BuildId;
    let Some(first) = tokens.iter().position(is_id) else {
        return name == with_id(&tokens, b"");
    };
    // The length of the program's build id is the difference in length to the name without one. If the program has no
    // build id, LLVM uses the default name.
    let ids = tokens.iter().filter(|token| is_id(token)).count();
    let start = with_id(&tokens[..first], b"").len();
    let size = name.len().saturating_sub(with_id(&tokens, b"").len()) / ids;
    let id = name.get(start..start + size);
    name == DEFAULT.as_bytes() || id.is_some_and(|id| name == with_id(&tokens, id))
}

#[cfg(test)]
mod tests {
    use super::super::pattern::tests::{OBJECT, values};
    use super::*;

    #[test]
    fn the_pattern_that_expands_to_the_runtimes_name_is_used() {
        let at = |pattern: Option<&str>, pid, tmp: &str| Environment {
            pattern: pattern.map(OsString::from),
            values: Values {
                pid,
                host: "box".into(),
                tmp: Some(tmp.into()),
            },
        };
        let pattern = |pattern: &str, tmp: &str| Target::Pattern {
            pattern: pattern.into(),
            tmp: Some(tmp.into()),
        };
        let name = |name: &str| Target::Name(name.into());
        let pool_file = |prefix: &str, number, suffix: &str| Target::PoolFile {
            prefix: prefix.into(),
            suffix: suffix.into(),
            number,
        };
        // LLVM_PROFILE_FILE at the start and now, the compiler's option, the runtime's name. At the start, the process
        // is 5 and TMPDIR is /old; now, they are 7 and /new.
        for (start, now, compiled, runtime_name, target) in [
            (Some("a"), Some("a"), "c", "a", pattern("a", "/old")),
            (Some("a"), Some("b"), "c", "a", pattern("a", "/old")),
            (Some("a"), Some("b"), "c", "b", pattern("b", "/new")),
            (Some("a"), Some("a"), "c", "d", name("d")),
            (None, None, "c", "c", pattern("c", "/old")),
            (None, None, "c-%p", "c-5", pattern("c-%p", "/old")),
            (None, Some("%p"), "", "7", pattern("%p", "/new")),
            (None, None, "", DEFAULT, name(DEFAULT)),
            (Some("%m%m"), None, "", DEFAULT, pattern("%m%m", "/old")),
            (Some("%t%p"), None, "", "/old/5", pattern("%t%p", "/old")),
            (
                Some("%tx"),
                Some("%tx"),
                "",
                "/new/x",
                pattern("%tx", "/new"),
            ),
            // The process that requests the name selects the file of a merge pool.
            (Some("%p%9m"), None, "", "51234_7", pattern("%p%9m", "/old")),
            (Some("%b.x"), None, "", "00ff.x", pattern("%b.x", "/old")),
            (
                Some("%b-%b"),
                None,
                "",
                "00ff-00ff",
                pattern("%b-%b", "/old"),
            ),
            (Some("%b-%b"), None, "", "00ff-00fe", name("00ff-00fe")),
            (Some("%b"), None, "", DEFAULT, pattern("%b", "/old")),
            (Some("a"), None, "", "x1234_3.y", pool_file("x", 3, ".y")),
            (Some("a"), None, "", "x1234_.y", name("x1234_.y")),
            (Some("a"), None, "", "1234%m", name("1234%m")),
            (Some("a"), None, "", "", name(DEFAULT)),
        ] {
            let runtime = Runtime {
                name: runtime_name.into(),
                compiled: compiled.into(),
                signature: 1234,
            };
            let (start_at, now_at) = (at(start, 5, "/old"), || at(now, 7, "/new"));
            let chosen = Target::choose(&start_at, 7, now_at, Some(&runtime));
            assert_eq!(
                chosen, target,
                "{start:?} {now:?} {compiled} {runtime_name}"
            );
        }
        let start = at(Some("a%%"), 5, "/old");
        let now = || at(Some("b"), 7, "/new");
        assert_eq!(Target::choose(&start, 7, now, None), pattern("a%%", "/old"));
        assert_eq!(
            pool_file("x", 3, ".y").destination(&values(), OBJECT),
            Destination {
                path: "x99_3.y".into(),
                merge: true,
                warning: None
            }
        );
    }
}
