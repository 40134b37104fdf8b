//! Which file name pattern applies, and what it expands to: both as LLVM's host runtime has them (its "Source-based Code
//! Coverage", "Running the instrumented program"), so that the device's files are beside the host's.

use crate::support::environment::{Environment, Values};
use crate::sys::env;
use crate::sys::llvm_runtime::{self, Runtime};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// LLVM's name where nobody gave one, or one that makes no sense.
pub const DEFAULT: &str = "default.profraw";

/// A file name, expanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    pub path: PathBuf,
    /// %m or %Nm: several processes add up in the file.
    pub merge: bool,
    /// What is not as the pattern has it, in words.
    pub differs: Option<&'static str>,
}

/// %c needs counters in host memory.
const CONTINUOUS: &str =
    "%c in LLVM_PROFILE_FILE (continuous mode) is left out: device counters are not in host memory";
const REFUSED: &str = "the pattern for profiles has %m or %c twice, or %t where TMPDIR is not set: they go to default.profraw, as LLVM has it";

/// What tells one code object from another in a file name.
#[derive(Clone, Copy)]
pub struct ObjectId<'a> {
    /// Identifies its functions, for %m: programs with different device code get different files.
    pub fingerprint: u64,
    /// Its build id, for %b. Without one, the fingerprint is used.
    pub build_id: Option<&'a [u8]>,
}

/// A piece of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part<'a> {
    Text(&'a [u8]),
    /// %p
    Process,
    /// %h
    Host,
    /// %t: TMPDIR and a slash.
    Temporary,
    /// %b
    BuildId,
    /// %m and %Nm: the signature, and which of so many files.
    Pool(u32),
    /// %c
    Continuous,
    /// No specifier: a percent sign and what follows it, perhaps nothing.
    Unknown,
}

fn parts(pattern: &[u8]) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = pattern;
    while !rest.is_empty() {
        let text = rest.iter().position(|&byte| byte == b'%');
        let (before, after) = rest.split_at(text.unwrap_or(rest.len()));
        if !before.is_empty() {
            parts.push(Part::Text(before));
        }
        let Some((_, after)) = after.split_first() else {
            break;
        };
        let (part, size) = match after.first() {
            Some(b'p') => (Part::Process, 1),
            Some(b'h') => (Part::Host, 1),
            Some(b't') => (Part::Temporary, 1),
            Some(b'b') => (Part::BuildId, 1),
            Some(b'c') => (Part::Continuous, 1),
            _ => pool(after).unwrap_or((Part::Unknown, after.len().min(1))),
        };
        parts.push(part);
        rest = &after[size..];
    }
    parts
}

/// %m or %Nm, without the percent sign, and its length. The number is as large as a C `unsigned`, and 0 is 1.
fn pool(text: &[u8]) -> Option<(Part<'static>, usize)> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let add = |number: u32, digit: &u8| {
        number
            .wrapping_mul(10)
            .wrapping_add(u32::from(digit - b'0'))
    };
    let size = text[..digits].iter().fold(0, add);
    (text.get(digits) == Some(&b'm')).then_some((Part::Pool(size.max(1)), digits + 1))
}

/// Whether LLVM's runtime takes the pattern. It warns and takes the default name for one that has %m or %c twice, or %t
/// without a TMPDIR.
fn is_good(parts: &[Part], values: &Values) -> bool {
    let count = |is: fn(&Part) -> bool| parts.iter().filter(|part| is(part)).count();
    count(|part| matches!(part, Part::Pool(_))) < 2
        && count(|part| *part == Part::Continuous) < 2
        && (values.tmp.is_some() || !parts.contains(&Part::Temporary))
}

/// A pattern in which nothing is to be put in is a name, percent signs included.
fn is_name(parts: &[Part]) -> bool {
    parts
        .iter()
        .all(|part| matches!(part, Part::Text(_) | Part::Unknown))
}

/// What is put in.
struct Inserts<'a> {
    values: &'a Values,
    /// The process that chooses a file of a pool.
    chooser: u32,
    signature: u64,
    build_id: &'a [u8],
}

impl Inserts<'_> {
    /// The name. What is no specifier vanishes, a second percent sign too.
    fn expand(&self, parts: &[Part]) -> Vec<u8> {
        let mut name = Vec::new();
        for part in parts {
            match part {
                Part::Text(text) => name.extend_from_slice(text),
                Part::Process => name.extend(self.values.pid.to_string().bytes()),
                Part::Host => name.extend_from_slice(self.values.host.as_bytes()),
                Part::Temporary => {
                    name.extend_from_slice(
                        self.values.tmp.as_deref().unwrap_or_default().as_bytes(),
                    );
                    name.push(b'/');
                }
                Part::BuildId => name.extend_from_slice(self.build_id),
                Part::Pool(size) => {
                    name.extend(format!("{}_{}", self.signature, self.chooser % size).bytes());
                }
                Part::Continuous | Part::Unknown => {}
            }
        }
        name
    }
}

/// Expands `pattern` for a code object.
fn expand(pattern: &[u8], values: &Values, object: ObjectId) -> Destination {
    let parts = parts(pattern);
    let named = |name: &[u8], differs| Destination {
        path: PathBuf::from(OsStr::from_bytes(name)),
        merge: false,
        differs,
    };
    if !is_good(&parts, values) {
        return named(DEFAULT.as_bytes(), Some(REFUSED));
    }
    if is_name(&parts) {
        return named(pattern, None);
    }
    let build_id = match object.build_id {
        Some(id) => id.iter().map(|byte| format!("{byte:02x}")).collect(),
        None => object.fingerprint.to_string(),
    };
    let inserts = Inserts {
        values,
        chooser: values.pid,
        signature: object.fingerprint,
        build_id: build_id.as_bytes(),
    };
    Destination {
        path: PathBuf::from(OsString::from_vec(inserts.expand(&parts))),
        merge: parts.iter().any(|part| matches!(part, Part::Pool(_))),
        differs: parts.contains(&Part::Continuous).then_some(CONTINUOUS),
    }
}

/// Whether the runtime's name is `pattern` with `values`; process `pid` has asked for it.
fn is_of(pattern: &[u8], values: &Values, pid: u32, runtime: &Runtime) -> bool {
    let name = &runtime.name[..];
    let parts = parts(pattern);
    if !is_good(&parts, values) {
        return name == DEFAULT.as_bytes();
    }
    if is_name(&parts) {
        return name == pattern;
    }
    let with = |parts: &[Part], build_id: &[u8]| {
        Inserts {
            values,
            chooser: pid,
            signature: runtime.signature,
            build_id,
        }
        .expand(parts)
    };
    let is_id = |part: &Part| *part == Part::BuildId;
    let Some(first) = parts.iter().position(is_id) else {
        return name == with(&parts, b"");
    };
    // The program's build id is what is longer than it would be without. A program that has none has the default name.
    let ids = parts.iter().filter(|part| is_id(part)).count();
    let start = with(&parts[..first], b"").len();
    let size = name.len().saturating_sub(with(&parts, b"").len()) / ids;
    let id = name.get(start..start + size);
    name == DEFAULT.as_bytes() || id.is_some_and(|id| name == with(&parts, id))
}

/// Where profiles are to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A pattern, to be expanded when a file is written, but for TMPDIR: LLVM reads that when it reads the pattern.
    Pattern {
        pattern: Vec<u8>,
        tmp: Option<OsString>,
    },
    /// A name in which a percent sign is a percent sign.
    Name(Vec<u8>),
    /// A file of a pool: what stands before and after the signature, and which of the files.
    Member {
        before: Vec<u8>,
        after: Vec<u8>,
        number: u32,
    },
}

impl Target {
    /// `start`: the environment when the program started.
    pub fn new(start: &Environment) -> Target {
        let runtime = llvm_runtime::find();
        if env::is_secure() {
            // What the runtime says may come from the environment, which is somebody else's.
            let compiled = runtime.map(|runtime| runtime.compiled).unwrap_or_default();
            return Target::of(Some(compiled), &start.values);
        }
        Target::choose(
            start,
            std::process::id(),
            Environment::now,
            runtime.as_ref(),
        )
    }

    fn of(pattern: Option<Vec<u8>>, values: &Values) -> Target {
        let pattern = pattern.filter(|pattern| !pattern.is_empty());
        Target::Pattern {
            pattern: pattern.unwrap_or(DEFAULT.into()),
            tmp: values.tmp.clone(),
        }
    }

    /// In LLVM's runtime a name that the program sets goes before LLVM_PROFILE_FILE, that before the compiler's, that
    /// before the default. It reads the environment when the program starts, and again where the program calls
    /// `__llvm_profile_initialize_file`; it expands %p then, and devprof when a file is written.
    ///
    /// The runtime only tells the expanded name. So the patterns that it may have read are expanded as it does, and the
    /// one that gives its name applies. If none does, the program has set the name: that one holds, with the code
    /// object's signature in the place of the program's, and is a pool's then. (What the program set with %p or %b stays
    /// as it was expanded; %c is not seen in it.)
    ///
    /// A program whose runtime cannot be asked either has none, or devprof is preloaded: the runtime's symbols are hidden
    /// in the program. Then neither what the compiler was told nor what the program sets can be known; it is the
    /// environment's, else the default.
    ///
    /// `now` is only asked where `start` does not do: another thread may be changing the environment.
    fn choose(
        start: &Environment,
        pid: u32,
        now: impl FnOnce() -> Environment,
        runtime: Option<&Runtime>,
    ) -> Target {
        let environment = |at: &Environment| at.pattern.clone().map(OsString::into_vec);
        let Some(runtime) = runtime else {
            return Target::of(environment(start), &start.values);
        };
        let read = |at: &Environment| {
            let patterns = [environment(at), Some(runtime.compiled.clone())];
            let mut patterns = patterns.into_iter().flatten();
            patterns
                .find(|pattern| !pattern.is_empty() && is_of(pattern, &at.values, pid, runtime))
                .map(|pattern| Target::of(Some(pattern), &at.values))
        };
        let is_default = runtime.name == DEFAULT.as_bytes();
        let later = || (!is_default).then(|| read(&now())).flatten();
        read(start)
            .or_else(later)
            .unwrap_or_else(|| Target::set(runtime))
    }

    /// A name that the program has set, expanded.
    fn set(runtime: &Runtime) -> Target {
        let name = &runtime.name;
        if name.is_empty() {
            return Target::Name(DEFAULT.into());
        }
        let signature = format!("{}_", runtime.signature).into_bytes();
        let found = name
            .windows(signature.len())
            .position(|at| at == signature && runtime.signature != 0);
        let member = found.and_then(|at| {
            let rest = &name[at + signature.len()..];
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let number = str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
            Some(Target::Member {
                before: name[..at].to_vec(),
                after: rest[digits..].to_vec(),
                number,
            })
        });
        member.unwrap_or_else(|| Target::Name(name.clone()))
    }

    /// The name for a code object, with `values` but for TMPDIR.
    pub fn destination(&self, values: &Values, object: ObjectId) -> Destination {
        let named = |name: Vec<u8>, merge| Destination {
            path: PathBuf::from(OsString::from_vec(name)),
            merge,
            differs: None,
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
            Target::Member {
                before,
                after,
                number,
            } => {
                let signature = format!("{}_{number}", object.fingerprint);
                named([before, signature.as_bytes(), after].concat(), true)
            }
        }
    }
}

/// A pattern for a file that belongs to no code object: %p, %h and %t, and %% for a percent sign.
pub fn expand_process(pattern: &OsStr, values: &Values) -> PathBuf {
    let mut path = Vec::new();
    let mut bytes = pattern.as_bytes().iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'%' {
            path.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'p') => path.extend(values.pid.to_string().bytes()),
            Some(b'h') => path.extend(values.host.as_bytes()),
            Some(b't') => path.extend(values.tmp.as_deref().unwrap_or("/tmp".as_ref()).as_bytes()),
            Some(b'%') => path.push(b'%'),
            // No specifier: as it stands.
            Some(&other) => path.extend([b'%', other]),
            None => path.push(b'%'),
        }
    }
    PathBuf::from(OsString::from_vec(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const OBJECT: ObjectId = ObjectId {
        fingerprint: 99,
        build_id: Some(&[0x0a, 0xff]),
    };

    fn values() -> Values {
        Values {
            pid: 4711,
            host: "box".into(),
            tmp: Some("/var/tmp".into()),
        }
    }

    fn expanded(pattern: &str) -> (String, bool) {
        let to = expand(pattern.as_bytes(), &values(), OBJECT);
        (to.path.to_str().unwrap().to_owned(), to.merge)
    }

    #[test]
    fn patterns_are_llvms() {
        for (pattern, name, merge) in [
            ("a.profraw", "a.profraw", false),
            ("d/%p-%h.profraw", "d/4711-box.profraw", false),
            ("%t/x", "/var/tmp//x", false),
            ("x-%m", "x-99_0", true),
            ("x-%0m", "x-99_0", true),
            ("x-%4m", "x-99_3", true),
            ("x-%100m", "x-99_11", true),
            ("x-%4294967297m", "x-99_0", true),
            ("%m%2m", "default.profraw", false),
            ("x-%b", "x-0aff", false),
            // Nothing to put in: a name.
            ("100%%.%q4%", "100%%.%q4%", false),
            ("100%%.%q4%p%", "100.44711", false),
            ("%12x%p", "2x4711", false),
            ("%%m%p", "m4711", false),
            ("%3%m", "99_0", true),
        ] {
            assert_eq!(expanded(pattern), (name.into(), merge), "{pattern}");
        }
        let expand = |pattern: &str, values| expand(pattern.as_bytes(), &values, OBJECT);
        assert_eq!(expand("%c%p", values()).differs, Some(CONTINUOUS));
        assert_eq!(expand("a%c%q", values()).path, Path::new("a"));
        assert_eq!(expand("%c%c", values()).differs, Some(REFUSED));
        let without = Values {
            tmp: None,
            ..values()
        };
        assert_eq!(expand("%tx", without).path, Path::new(DEFAULT));
    }

    #[test]
    fn the_pattern_that_applies_is_the_one_that_gives_the_runtimes_name() {
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
        let member = |before: &str, number, after: &str| Target::Member {
            before: before.into(),
            after: after.into(),
            number,
        };
        // The environment at the start and now, what the compiler was told, the runtime's name; in process 5 at the
        // start and 7 now, with /old and /new as TMPDIR.
        for (start, now, compiled, told, target) in [
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
            // A pool's file is chosen by the process that asks.
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
            (Some("a"), None, "", "x1234_3.y", member("x", 3, ".y")),
            (Some("a"), None, "", "x1234_.y", name("x1234_.y")),
            (Some("a"), None, "", "1234%m", name("1234%m")),
            (Some("a"), None, "", "", name(DEFAULT)),
        ] {
            let runtime = Runtime {
                name: told.into(),
                compiled: compiled.into(),
                signature: 1234,
            };
            let (start_at, now_at) = (at(start, 5, "/old"), || at(now, 7, "/new"));
            let chosen = Target::choose(&start_at, 7, now_at, Some(&runtime));
            assert_eq!(chosen, target, "{start:?} {now:?} {compiled} {told}");
        }
        let start = at(Some("a%%"), 5, "/old");
        let now = || at(Some("b"), 7, "/new");
        assert_eq!(Target::choose(&start, 7, now, None), pattern("a%%", "/old"));
        assert_eq!(
            member("x", 3, ".y").destination(&values(), OBJECT),
            Destination {
                path: "x99_3.y".into(),
                merge: true,
                differs: None
            }
        );
    }

    #[test]
    fn a_trace_has_a_name_a_process() {
        let expanded = |pattern| expand_process(OsStr::new(pattern), &values());
        assert_eq!(
            expanded("%t/%h-%p.trace"),
            Path::new("/var/tmp/box-4711.trace")
        );
        assert_eq!(expanded("100%%-%q%"), Path::new("100%-%q%"));
    }
}
