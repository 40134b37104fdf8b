//! The structure of a module: its files, and the statements of its functions.

use crate::problem::Problem;
use crate::tokens::{self, Located, Token};
use std::collections::BTreeMap;

/// Whether a file with this content is PTX: its first directive is `.version`.
pub fn is_ptx(content: &[u8]) -> bool {
    let mut lines = content.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(b"//"));
    first.is_some_and(|line| line.starts_with(b".version"))
}

#[derive(Debug, Default)]
pub struct Module<'a> {
    /// The position after the directives that a module begins with.
    pub header_end: usize,
    /// The files of the line table, by their numbers.
    pub files: BTreeMap<u32, &'a str>,
    /// The functions that have a body.
    pub functions: Vec<Function<'a>>,
    /// The module has records of LLVM's instrumentation.
    pub is_instrumented: bool,
}

#[derive(Debug)]
pub struct Function<'a> {
    pub name: &'a str,
    /// It can be launched.
    pub is_kernel: bool,
    /// The position after the `{` of its body.
    pub body: usize,
    pub statements: Vec<Statement<'a>>,
    /// The enclosing scope of each scope. The body is scope 0.
    pub scopes: Vec<usize>,
    /// The calls that were inlined. A function that was inlined several times has several copies of the calls in it.
    pub calls: Vec<Call>,
}

#[derive(Debug)]
pub struct Statement<'a> {
    /// The position of its first token.
    pub at: usize,
    pub scope: usize,
    pub kind: Kind<'a>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Kind<'a> {
    Label(&'a str),
    /// `.branchtargets`: the labels. The statement before is the label of the list.
    Targets(Vec<&'a str>),
    Location(Location),
    Instruction {
        is_predicated: bool,
        /// Without modifiers.
        operation: &'a str,
        /// The last word, of a branch: the label, or the list of labels.
        target: &'a str,
    },
}

/// A position in a source file: its number, line and column.
pub type Position = (u32, u32, u32);

/// `.loc`: what the instructions that follow were compiled from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    pub position: Position,
    /// If the code was inlined: the call.
    pub inlined_at: Option<Position>,
    /// The same, as a number in [`Function::calls`]. `calls::find` sets it.
    pub call: Option<usize>,
}

/// A call that was inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    pub position: Position,
    /// If the call is in a function that was inlined itself: its call, which has a lower number.
    pub outer: Option<usize>,
}

/// Reads a module.
pub fn module(text: &str) -> Result<Module<'_>, Problem> {
    let mut parser = Parser {
        text,
        tokens: tokens::read(text)?,
        next: 0,
    };
    let mut module = Module::default();
    let mut is_64_bit = false;
    while let Some((at, token)) = parser.token() {
        match token {
            Token::Word(".version") => check_version(parser.word()?)?,
            Token::Word(".target") => {
                parser.word()?;
                while parser.take(b',') {
                    parser.word()?;
                }
            }
            Token::Word(".address_size") => {
                let size = parser.word()?;
                is_64_bit = size == "64";
                module.header_end = parser.end_of(size);
            }
            Token::Word(".file") => {
                let number = parser.number()?;
                let Some((_, Token::Text(name))) = parser.token() else {
                    return Err(parser.problem("a file has no name"));
                };
                module.files.insert(number, name);
                while parser.take(b',') {
                    parser.word()?;
                }
            }
            Token::Word(".section") => {
                parser.word()?;
                if !parser.take(b'{') {
                    return Err(parser.problem("a section has no content"));
                }
                parser.skip_to_end_of(b'{', b'}')?;
            }
            // Lines of debug information in an older form.
            Token::Sign(b'@') => parser.skip_line(at),
            Token::Sign(b';') => {}
            _ => parser.definition(token, &mut module)?,
        }
    }
    if !is_64_bit {
        return Err(Problem::AddressSize);
    }
    Ok(module)
}

fn check_version(version: &str) -> Result<(), Problem> {
    let major = version
        .split('.')
        .next()
        .and_then(|major| major.parse().ok());
    match major {
        Some(6..=u32::MAX) => Ok(()),
        _ => Err(Problem::Version(version.to_owned())),
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Located<'a>>,
    next: usize,
}

impl<'a> Parser<'a> {
    fn problem(&self, what: &'static str) -> Problem {
        let last = self.next.saturating_sub(1);
        let at = self.tokens.get(last).map_or(self.text.len(), |(at, _)| *at);
        Problem::at(self.text, at, what)
    }

    fn token(&mut self) -> Option<Located<'a>> {
        let token = self.tokens.get(self.next).copied();
        self.next += usize::from(token.is_some());
        token
    }

    fn word(&mut self) -> Result<&'a str, Problem> {
        match self.token() {
            Some((_, Token::Word(word))) => Ok(word),
            _ => Err(self.problem("a word is missing")),
        }
    }

    fn number(&mut self) -> Result<u32, Problem> {
        let word = self.word()?;
        word.parse().map_err(|_| self.problem("not a number"))
    }

    fn position(&mut self) -> Result<Position, Problem> {
        Ok((self.number()?, self.number()?, self.number()?))
    }

    /// Takes a sign, if it is the next token.
    fn take(&mut self, sign: u8) -> bool {
        let is_next =
            matches!(self.tokens.get(self.next), Some((_, Token::Sign(next))) if *next == sign);
        self.next += usize::from(is_next);
        is_next
    }

    /// The position after a word that was the last token.
    fn end_of(&self, word: &str) -> usize {
        self.tokens[self.next - 1].0 + word.len()
    }

    /// Skips to the sign that closes one that was read.
    fn skip_to_end_of(&mut self, open: u8, close: u8) -> Result<(), Problem> {
        let mut depth = 1;
        while depth > 0 {
            match self.token() {
                Some((_, Token::Sign(sign))) if sign == open => depth += 1,
                Some((_, Token::Sign(sign))) if sign == close => depth -= 1,
                Some(_) => {}
                None => return Err(self.problem("a bracket is not closed")),
            }
        }
        Ok(())
    }

    fn skip_line(&mut self, at: usize) {
        let line = self.text[at..].find('\n').unwrap_or(self.text.len());
        while self
            .tokens
            .get(self.next)
            .is_some_and(|(next, _)| *next < at + line)
        {
            self.next += 1;
        }
    }

    /// Reads a variable, or the declaration or definition of a function. `token` is its first one.
    fn definition(&mut self, token: Token<'a>, module: &mut Module<'a>) -> Result<(), Problem> {
        let (mut is_function, mut is_kernel) = (false, false);
        let mut name = None;
        let mut token = token;
        loop {
            match token {
                Token::Word(word @ (".entry" | ".func")) => {
                    (is_function, is_kernel) = (true, word == ".entry");
                }
                Token::Word(word) if !word.starts_with('.') => {
                    module.is_instrumented |= word.starts_with("__profd_");
                    name = name.or(Some(word).filter(|_| is_function));
                }
                Token::Sign(b'(') => self.skip_to_end_of(b'(', b')')?,
                Token::Sign(b'{') => match name {
                    Some(name) => return self.function(name, is_kernel, module),
                    None => self.skip_to_end_of(b'{', b'}')?,
                },
                Token::Sign(b';') => return Ok(()),
                _ => {}
            }
            (_, token) = self
                .token()
                .ok_or_else(|| self.problem("a definition does not end"))?;
        }
    }

    /// Reads the body of a function.
    fn function(
        &mut self,
        name: &'a str,
        is_kernel: bool,
        module: &mut Module<'a>,
    ) -> Result<(), Problem> {
        let mut function = Function {
            name,
            is_kernel,
            body: self.tokens[self.next - 1].0 + 1,
            statements: Vec::new(),
            scopes: vec![0],
            calls: Vec::new(),
        };
        let mut scope = 0;
        loop {
            let (at, token) = self
                .token()
                .ok_or_else(|| self.problem("a function does not end"))?;
            let kind = match token {
                Token::Sign(b'{') => {
                    function.scopes.push(scope);
                    scope = function.scopes.len() - 1;
                    continue;
                }
                Token::Sign(b'}') if scope == 0 => break,
                Token::Sign(b'}') => {
                    scope = function.scopes[scope];
                    continue;
                }
                Token::Sign(b';') => continue,
                Token::Word(".loc") => Kind::Location(self.location()?),
                Token::Word(".branchtargets") => self.targets()?,
                Token::Word(word) if self.take(b':') => Kind::Label(word),
                Token::Word(word) if word.starts_with('.') => {
                    self.rest(|_| {})?;
                    continue;
                }
                Token::Word(word) => self.instruction(word, false)?,
                Token::Sign(b'@') => {
                    self.take(b'!');
                    self.word()?;
                    let word = self.word()?;
                    self.instruction(word, true)?
                }
                Token::Sign(_) | Token::Text(_) => {
                    return Err(self.problem("not the start of a statement"));
                }
            };
            function.statements.push(Statement { at, scope, kind });
        }
        module.functions.push(function);
        Ok(())
    }

    /// Reads a statement up to its end, and passes on its words.
    fn rest(&mut self, mut found: impl FnMut(&'a str)) -> Result<(), Problem> {
        loop {
            match self.token() {
                Some((_, Token::Sign(b';'))) => return Ok(()),
                Some((_, Token::Word(word))) => found(word),
                Some(_) => {}
                None => return Err(self.problem("a statement does not end")),
            }
        }
    }

    fn targets(&mut self) -> Result<Kind<'a>, Problem> {
        let mut words = Vec::new();
        self.rest(|word| words.push(word))?;
        Ok(Kind::Targets(words))
    }

    fn instruction(&mut self, word: &'a str, is_predicated: bool) -> Result<Kind<'a>, Problem> {
        let mut target = "";
        self.rest(|word| target = word)?;
        Ok(Kind::Instruction {
            is_predicated,
            operation: word.split('.').next().unwrap_or(word),
            target,
        })
    }

    fn location(&mut self) -> Result<Location, Problem> {
        let mut location = Location {
            position: self.position()?,
            inlined_at: None,
            call: None,
        };
        while self.take(b',') {
            match self.word()? {
                "function_name" => {
                    self.word()?;
                    if self.take(b'+') {
                        self.number()?;
                    }
                }
                "inlined_at" => location.inlined_at = Some(self.position()?),
                _ => return Err(self.problem("an attribute of .loc that is not known")),
            }
        }
        Ok(location)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub const HEADER: &str = ".version 9.0\n.target sm_90, debug\n.address_size 64\n";

    #[test]
    fn functions_are_found_between_variables_and_sections() {
        let text = [
            HEADER,
            ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n",
            ".global .align 1 .b8 text[5] = {120, 37, 100, 10};\n",
            ".weak .func (.param .align 8 .b8 out[8]) _Z1fi(.param .b32 a) .noreturn\n{ ret; }\n",
            ".visible .entry k(.param .u64 a)\n.maxntid 32, 1, 1\n{ ret;\n}\n",
            ".file 1 \"/a b.cu\", 12, 34\n.section .debug_str { L: .b8 0, 1 }\n.alias a, b;",
        ]
        .concat();
        let module = module(&text).unwrap();
        let names: Vec<_> = module
            .functions
            .iter()
            .map(|function| function.name)
            .collect();
        assert_eq!(names, ["_Z1fi", "k"]);
        let kernels = module.functions.iter().map(|function| function.is_kernel);
        assert!(kernels.eq([false, true]));
        assert_eq!(module.files, BTreeMap::from([(1, "/a b.cu")]));
        assert_eq!(&text[module.header_end..][..2], "\n.");
        assert!(!module.is_instrumented);
        for function in &module.functions {
            assert_eq!(&text[function.body - 1..][..2].trim(), &"{");
        }
    }

    #[test]
    fn statements_of_a_function() {
        let body = "
            .reg .pred %p<3>;
            .loc 1 2 3, function_name $L__info_string0+16, inlined_at 1 7 8
            ld.v2.u32 {%r1, %r2}, [%rd1+-4];
            @!%p1 bra.uni $L1;
            { // callseq 0, 0
            .param .b32 param0;
            call.uni (retval0), f, (param0);
            }
            ts: .branchtargets $L1, $L2;
            brx.idx %r1, ts;
            $L1: $L2: ret;";
        let text = format!("{HEADER}.entry k() {{{body}}}");
        let module = module(&text).unwrap();
        let function = &module.functions[0];
        let instruction = |is_predicated, operation, target| Kind::Instruction {
            is_predicated,
            operation,
            target,
        };
        let expected = [
            Kind::Location(Location {
                position: (1, 2, 3),
                inlined_at: Some((1, 7, 8)),
                call: None,
            }),
            instruction(false, "ld", "4"),
            instruction(true, "bra", "$L1"),
            instruction(false, "call", "param0"),
            Kind::Label("ts"),
            Kind::Targets(vec!["$L1", "$L2"]),
            instruction(false, "brx", "ts"),
            Kind::Label("$L1"),
            Kind::Label("$L2"),
            instruction(false, "ret", ""),
        ];
        let kinds = function.statements.iter().map(|statement| &statement.kind);
        assert!(kinds.eq(&expected), "{:?}", function.statements);
        assert_eq!(function.scopes, [0, 0]);
        let scopes = function.statements.iter().map(|statement| statement.scope);
        assert_eq!(scopes.max(), Some(1));
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        let text = |line, what| Problem::Text { line, what };
        for (module, problem) in [
            (".version 5.0\n", Problem::Version("5.0".to_owned())),
            (".version 9.0\n.target sm_90\n", Problem::AddressSize),
            (".version 9.0\n.address_size 32\n", Problem::AddressSize),
            (".file 1 x", text(1, "a file has no name")),
            (".entry k()\n{ ret; ", text(2, "a function does not end")),
            (".entry k()\n{ ret }", text(2, "a statement does not end")),
            (".entry k()\n{ + }", text(2, "not the start of a statement")),
            (
                ".global .b8 a[2] = {1, 2",
                text(1, "a bracket is not closed"),
            ),
            (".global .b8 a[2]", text(1, "a definition does not end")),
            (
                ".func k()\n{\n.loc 1 2 3, view 1\n}",
                text(3, "an attribute of .loc that is not known"),
            ),
        ] {
            assert_eq!(super::module(module).unwrap_err(), problem, "{module}");
        }
    }

    #[test]
    fn ptx_is_recognized_by_its_first_directive() {
        assert!(is_ptx(b"//\n// Generated\n\n.version 9.0\n"));
        assert!(!is_ptx(b"\x7fELF") && !is_ptx(b"// .version 9.0\n") && !is_ptx(b""));
    }
}
