//! Names of functions: read from the names section of a profile, hashed as LLVM does, and demangled.

use anyhow::{Context, bail};
use clap::Args;
use cpp_demangle::{DemangleNodeType, DemangleOptions, DemangleWrite, Symbol};
use flate2::read::ZlibDecoder;
use md5::{Digest, Md5};
use profraw::names::{Chunk, chunks};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::io::Read;

/// How a command shows names of functions.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Naming {
    /// Show mangled names, as in the code object
    #[arg(long)]
    no_demangle: bool,
    /// Show names without scopes, template arguments and parameters: `bar` for `void foo::bar<int>(float*)`
    #[arg(long, conflicts_with = "no_demangle")]
    short_names: bool,
}

impl Naming {
    pub fn shown(self, name: &str) -> String {
        match self {
            Naming {
                no_demangle: true, ..
            } => name.to_owned(),
            Naming {
                short_names: true, ..
            } => short(name),
            _ => demangled(name),
        }
    }

    /// Whether different functions are shown with the same name.
    pub fn joins(self) -> bool {
        self.short_names
    }

    /// The name of a template, given the name of one of its instances.
    pub fn without_arguments(self, name: &str) -> String {
        if self.no_demangle || self.short_names {
            self.shown(name)
        } else {
            without_arguments(name)
        }
    }
}

/// The longest demangled name, in bytes.
pub const MAX_NAME: usize = 1 << 20;

/// Limit on all demangled names of a command together, in MiB.
const MAX_NAMES: usize = 128;

/// Limit on the decompressed names of a profile, in MiB.
const MAX_TEXT: u64 = 256;

/// zlib's highest compression ratio is about 1,032 to 1.
const MAX_RATIO: u64 = 1040;

/// The names in a names section, by their hashes, which records contain.
pub fn by_hash(section: &[u8]) -> anyhow::Result<HashMap<u64, String>> {
    let mut names = HashMap::new();
    for text in texts(section) {
        for name in text?.split('\x01').filter(|name| !name.is_empty()) {
            names.insert(hash(name), name.to_owned());
        }
    }
    Ok(names)
}

/// The decompressed texts of a names section. Each is a list of names, separated by bytes of value 1.
pub fn texts(section: &[u8]) -> impl Iterator<Item = anyhow::Result<Cow<'_, str>>> {
    let mut left = MAX_TEXT << 20;
    chunks(section).map(move |chunk| match chunk? {
        Chunk::Plain(text) => Ok(text.into()),
        Chunk::Packed { bytes, size } => {
            let Some(rest) = left.checked_sub(size) else {
                bail!("more than {MAX_TEXT} MiB of names: compressed names claim {size} bytes");
            };
            left = rest;
            if size > bytes.len() as u64 * MAX_RATIO {
                bail!(
                    "{} bytes of compressed names claim to decompress to {size} bytes",
                    bytes.len()
                );
            }
            let mut text = String::new();
            let mut decoder = ZlibDecoder::new(bytes).take(size);
            decoder
                .read_to_string(&mut text)
                .context("cannot decompress the names")?;
            Ok(text.into())
        }
    })
}

/// LLVM's hash of a function's name: the low 64 bits of its MD5.
pub fn hash(name: &str) -> u64 {
    let digest = Md5::digest(name.as_bytes());
    let mut low = [0; 8];
    low.copy_from_slice(&digest[..8]);
    u64::from_le_bytes(low)
}

/// The symbol of a name in a profile. The names of functions that are local to a file have the file as a prefix:
/// `file;name`, or, with clang's front-end instrumentation, `file:name`.
pub fn symbol(name: &str) -> &str {
    name.rsplit([';', ':']).next().unwrap_or(name)
}

/// The part of a symbol before the suffix by which clang makes a kernel or variable with internal linkage visible to the
/// host, with -fgpu-rdc: a word and the hash of the source file. `None`: it has no such suffix.
fn without_suffix(symbol: &str) -> Option<&str> {
    // The latter two in PTX, which has no names with dots.
    let words = [".intern.", ".static.", "__intern__", "__static__"];
    let (name, hash) = words.iter().find_map(|word| symbol.rsplit_once(word))?;
    let is_hash = !hash.is_empty() && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_hash && !name.is_empty()).then_some(name)
}

/// A mangled symbol. The parser would also take the names `f` and `a` of C functions, as `float` and `signed char`.
fn parsed(symbol: &str) -> Option<Symbol<&str>> {
    let is_mangled = symbol.starts_with("_Z");
    is_mangled.then(|| Symbol::new(symbol).ok()).flatten()
}

/// The name as in the source.
pub fn demangled(name: &str) -> String {
    let own = symbol(name);
    if let Some(own) = without_suffix(own) {
        return format!("{} [internal]", demangled(own));
    }
    let Some(symbol) = parsed(own) else {
        return own.to_owned();
    };
    match limited(&symbol, DemangleOptions::new()) {
        Some(name) => name,
        None => own.to_owned(),
    }
}

thread_local! {
    /// The demangled names of a command, which runs on one thread.
    static DEMANGLED: Cell<Demangled> = const { Cell::new(Demangled { size: 0, refused: 0 }) };
}

#[derive(Clone, Copy)]
struct Demangled {
    /// Bytes that were written, also of the names that were refused.
    size: usize,
    /// The number of names that exceeded a limit.
    refused: usize,
}

/// Ends the count of demangled names of a command. Returns a message if limits were reached.
pub fn refused() -> Option<String> {
    let counts = DEMANGLED.replace(Demangled {
        size: 0,
        refused: 0,
    });
    let names = match counts.refused {
        0 => return None,
        1 => "a name is shown as its symbol:".to_owned(),
        number => format!("names are shown as their symbols, {number} times:"),
    };
    let (one, all) = (MAX_NAME >> 20, MAX_NAMES);
    Some(format!(
        "{names} demangled, one has more than {one} MiB, or all together have more than {all} MiB"
    ))
}

/// The demangled name, as far as a writer keeps it. `None`: there is no name, or it would exceed a limit.
fn limited<W: DemangleWrite + Default>(
    symbol: &Symbol<&str>,
    options: DemangleOptions,
) -> Option<W> {
    let mut counts = DEMANGLED.get();
    let left = (MAX_NAMES << 20).saturating_sub(counts.size);
    let mut name = Limited {
        writer: W::default(),
        left: left.min(MAX_NAME),
        is_exceeded: false,
    };
    let most = name.left;
    let is_printed = symbol.structured_demangle(&mut name, &options).is_ok();
    counts.size += most - name.left;
    counts.refused += usize::from(name.is_exceeded);
    DEMANGLED.set(counts);
    is_printed.then_some(name.writer)
}

/// A writer of demangled names of limited size. A symbol can repeat parts of itself, so its name can be exponentially longer.
struct Limited<W> {
    writer: W,
    /// How many more bytes may be written, including the parts that the writer leaves out.
    left: usize,
    is_exceeded: bool,
}

impl<W: DemangleWrite> DemangleWrite for Limited<W> {
    fn push_demangle_node(&mut self, node: DemangleNodeType) {
        self.writer.push_demangle_node(node);
    }

    fn write_string(&mut self, text: &str) -> fmt::Result {
        let Some(left) = self.left.checked_sub(text.len()) else {
            self.is_exceeded = true;
            return Err(fmt::Error);
        };
        self.left = left;
        self.writer.write_string(text)
    }

    fn pop_demangle_node(&mut self) {
        self.writer.pop_demangle_node();
    }
}

/// The last component of the name in the source, without template arguments and parameters. This is the name that
/// rocprofv3 shows with `--truncate-kernels` (`truncate_name` in rocprofiler-sdk's lib/common/demangle.cpp), except for
/// operators, const functions and lambdas, which have names here, too.
///
/// The demangler reports the syntax of the text that it prints. A parser of demangled text would have to guess whether
/// `<` and `(` are part of an operator.
pub fn short(name: &str) -> String {
    printed(name, |base: BaseName| match base.text.find("[abi:") {
        Some(tag) => base.text[..tag].to_owned(),
        None => base.text,
    })
}

/// The name in the source with `<…>` instead of template arguments, without parameters.
fn without_arguments(name: &str) -> String {
    printed(name, |template: Template| template.text)
}

/// The part of the name without parameters and return type that a writer keeps, or the demangled name if it keeps nothing.
fn printed<W: DemangleWrite + Default>(name: &str, text: impl Fn(W) -> String) -> String {
    let own = symbol(name);
    let own = without_suffix(own).unwrap_or(own);
    let Some(parsed) = parsed(own) else {
        return own.to_owned();
    };
    let options = DemangleOptions::new().no_params().no_return_type();
    let kept = limited(&parsed, options).map(text);
    kept.filter(|text| !text.is_empty())
        .unwrap_or_else(|| demangled(name))
}

/// Leaves out template arguments.
#[derive(Default)]
struct Template {
    /// How many of the productions that contain the next text are template arguments or in them.
    arguments: usize,
    text: String,
}

impl DemangleWrite for Template {
    fn push_demangle_node(&mut self, node: DemangleNodeType) {
        if self.arguments == 0 && matches!(node, DemangleNodeType::TemplateArgs) {
            self.text.push('…');
            self.arguments = 1;
        } else if self.arguments > 0 {
            self.arguments += 1;
        }
    }

    fn write_string(&mut self, text: &str) -> fmt::Result {
        if self.arguments == 0 {
            self.text.push_str(text);
        }
        Ok(())
    }

    fn pop_demangle_node(&mut self) {
        self.arguments = self.arguments.saturating_sub(1);
    }
}

/// Keeps the last unqualified name that is not in template arguments.
#[derive(Default)]
struct BaseName {
    /// The productions that contain the next text.
    nodes: Vec<DemangleNodeType>,
    /// How many of them are in unqualified names, or are such names.
    names: usize,
    /// How many of them are template arguments of other names.
    arguments: usize,
    text: String,
}

impl DemangleWrite for BaseName {
    fn push_demangle_node(&mut self, node: DemangleNodeType) {
        match node {
            _ if self.names > 0 => self.names += 1,
            DemangleNodeType::TemplateArgs => self.arguments += 1,
            DemangleNodeType::UnqualifiedName if self.arguments == 0 => {
                self.names = 1;
                self.text.clear();
            }
            _ => {}
        }
        self.nodes.push(node);
    }

    fn write_string(&mut self, text: &str) -> fmt::Result {
        if self.names > 0 {
            self.text.push_str(text);
        }
        Ok(())
    }

    fn pop_demangle_node(&mut self) {
        match self.nodes.pop() {
            _ if self.names > 0 => self.names -= 1,
            Some(DemangleNodeType::TemplateArgs) => self.arguments -= 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use std::io::Write;

    #[test]
    fn names_are_found_by_llvms_hash() {
        // The NameRef that clang writes for `main`.
        assert_eq!(by_hash(b"\x04\0main").unwrap()[&0xdb956436e78dd5fa], "main");
    }

    #[test]
    fn names_are_decompressed_and_their_sizes_checked() {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(b"_Z1av\x01_Z1bv").unwrap();
        let packed = encoder.finish().unwrap();
        let section = [&[11, packed.len() as u8], &packed[..]].concat();
        let mut names: Vec<_> = by_hash(&section).unwrap().into_values().collect();
        names.sort();
        assert_eq!(names, ["_Z1av", "_Z1bv"]);
        let huge = [
            &[0xff, 0xff, 0xff, 0xff, 0x7f, packed.len() as u8],
            &packed[..],
        ]
        .concat();
        assert!(by_hash(&huge).unwrap_err().to_string().contains("claim"));
        // Two chunks of 200 MiB, compressed to 2^18 bytes each.
        let chunk = [&b"\x80\x80\x80\x64\x80\x80\x10"[..], &[0xff; 1 << 18]].concat();
        let last = texts(&chunk.repeat(2)).last().map(Result::unwrap_err);
        let expected = "more than 256 MiB of names: compressed names claim 209715200 bytes";
        assert_eq!(last.unwrap().to_string(), expected);
    }

    #[test]
    fn names_are_demangled() {
        for (name, expected) in [
            ("_Z6halvedj", "halved(unsigned int)"),
            ("f", "f"),
            ("a.hip;_ZL4donePi", "done(int*)"),
            ("a.hip:_ZL4donePi", "done(int*)"),
            ("branch", "branch"),
            (
                "_ZL4statPi.intern.7475e112c114f8e7",
                "stat(int*) [internal]",
            ),
            (
                "_ZN12_GLOBAL__N_16hiddenEPi__intern__7475e112",
                "(anonymous namespace)::hidden(int*) [internal]",
            ),
            ("table.static.7475e112", "table [internal]"),
            ("a.intern.", "a.intern."),
            ("a.intern.z", "a.intern.z"),
            (".intern.7475e112", ".intern.7475e112"),
        ] {
            assert_eq!(demangled(name), expected);
        }
    }

    #[test]
    fn a_name_that_would_be_too_long_stays_mangled() {
        // Each type is a pair of the previous one: 2^40 times `int` in all.
        let digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ".chars();
        let pairs: String = digits.clone().map(|n| format!("S_IS{n}_S{n}_E")).collect();
        let bomb = format!("_Z1f1PIiiES_IS0_S0_E{pairs}");
        assert_eq!(demangled(&bomb), bomb);
        assert_eq!(demangled("_Z1f1PIiiE"), "f(P<int, int>)");
        // Parameters are left out. Template arguments would be, too, but only after they were demangled.
        assert_eq!(
            (short(&bomb), without_arguments(&bomb)),
            ("f".to_owned(), "f".to_owned())
        );
        let pairs: String = digits.skip(2).map(|n| format!("S0_IS{n}_S{n}_E")).collect();
        let bomb = format!("_Z1fI1PIiiES0_IS1_S1_E{pairs}Evv");
        assert_eq!(
            (demangled(&bomb), short(&bomb), without_arguments(&bomb)),
            (bomb.clone(), bomb.clone(), bomb)
        );
    }

    #[test]
    fn all_names_together_are_limited() {
        assert_eq!(refused(), None);
        let (name, expected) = ("_Z6halvedj", "halved(unsigned int)");
        // Memory for one more name.
        let size = (MAX_NAMES << 20) - expected.len();
        DEMANGLED.set(Demangled { size, refused: 0 });
        assert_eq!(demangled(name), expected);
        assert_eq!(refused(), None);
        DEMANGLED.set(Demangled { size, refused: 0 });
        assert_eq!(demangled(name), expected);
        assert_eq!((demangled(name), short(name)), (name.into(), name.into()));
        let message = refused().unwrap();
        // `short` tries it with parameters, too.
        let start = "names are shown as their symbols, 3 times: ";
        assert!(message.starts_with(start), "{message}");
        assert!(message.ends_with("more than 128 MiB"), "{message}");
        assert_eq!(demangled(name), expected);
        assert_eq!(refused(), None);
    }

    #[test]
    fn templates_have_no_arguments() {
        for (name, expected) in [
            ("_Z2rtIiEPFT_iES0_", "rt<…>"),
            ("_Z2ttISt6vectorEvT_IJiEE", "tt<…>"),
            ("_ZN3foo1SIfE3barIdEEvPT_PFviE", "foo::S<…>::bar<…>"),
            ("_ZNK3foo1SIiEclEi", "foo::S<…>::operator()"),
            ("_ZNK3foo1SIiEltES1_", "foo::S<…>::operator<"),
            ("a.hip:_ZN3foo1SIS_IiEE3barEv", "foo::S<…>::bar"),
            ("_ZL4statIiEvPi.intern.7475e112c114f8e7", "stat<…>"),
            ("plain", "plain"),
        ] {
            assert_eq!(without_arguments(name), expected, "{}", demangled(name));
        }
    }

    #[test]
    fn short_names_are_the_last_component() {
        for (name, expected) in [
            ("_Z10returns_fpi", "returns_fp"),
            ("_Z2rtIiEPFT_iES0_", "rt"),
            ("_Z2ttISt6vectorEvT_IJiEE", "tt"),
            ("_Z4valsILi1ELb1EEvv", "vals"),
            ("_Z5vals2ILi4ELb1EEiv", "vals2"),
            ("_Z6launchIZ4mainEUliE_EvT_i", "launch"),
            ("_Z6taggedB5cxx11i", "tagged"),
            ("_Z7launch2IZ4mainEUlT_E0_ES0_S0_i", "launch2"),
            ("_ZN3foo12_GLOBAL__N_16hiddenEi", "hidden"),
            ("_ZN3foo1SIfE3barIdEEvPT_PFviE", "bar"),
            ("_ZN3foo1SIiEC1Ev", "S"),
            ("_ZN3foo1SIiED1Ev", "~S"),
            ("_ZN3foo3bazIiEEvT_St6vectorIS2_IS1_SaIS1_EESaIS4_EE", "baz"),
            ("_ZNK3foo1SIiEclEi", "operator()"),
            (
                "_ZNK3foo1SIiEcvSt6vectorIiSaIiEEEv",
                "operator std::vector<int, std::allocator<int> >",
            ),
            ("_ZNK3foo1SIiEltES1_", "operator<"),
            ("_ZZ4mainENKUlT_E0_clIiEEDaS_", "operator()"),
            ("_ZZZ4mainENKUliE_clEiEN1L1mEi", "m"),
            ("a.hip;_ZL4donePi", "done"),
            ("_ZL4statPi.intern.7475e112c114f8e7", "stat"),
            ("Cijk_Ailk_Bljk_SB_MT64x64x8", "Cijk_Ailk_Bljk_SB_MT64x64x8"),
            ("__amd_rocclr_copyBuffer", "__amd_rocclr_copyBuffer"),
        ] {
            assert_eq!(short(name), expected, "{}", demangled(name));
        }
    }
}
