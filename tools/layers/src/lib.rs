//! Checks which modules use which others: a module uses only its own layer and the layers below it, and there are no
//! dependency cycles.
//!
//! A module is a source file. It uses another module if a path in its code refers to that module: in a `use` declaration,
//! in an expression or a type, or in the tokens of a macro. Code that is only compiled for tests does not count.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// A module's path from the crate's root: `["gpu", "hsa"]`.
type ModulePath = Vec<String>;

/// The modules that each module uses.
type Graph = BTreeMap<ModulePath, BTreeSet<ModulePath>>;

fn name(module: &[String]) -> String {
    match module {
        [] => "the crate's root".into(),
        module => module.join("::"),
    }
}

/// The parsed source files of all modules of a crate.
struct Crate {
    files: BTreeMap<ModulePath, syn::File>,
}

impl Crate {
    /// Parses the root file and, recursively, the files of its child modules.
    fn read(root: &Path) -> Crate {
        let mut files = BTreeMap::new();
        let mut rest: Vec<(ModulePath, PathBuf)> = vec![(Vec::new(), root.into())];
        while let Some((module, path)) = rest.pop() {
            let text = fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
            let file = syn::parse_file(&text)
                .unwrap_or_else(|error| panic!("cannot parse {}: {error}", path.display()));
            // The children of `lib.rs` and `mod.rs` are next to it, and the children of `a.rs` are in the folder `a`.
            let is_root = module.is_empty() || path.ends_with("mod.rs");
            let folder = if is_root {
                path.parent().expect("a folder").to_owned()
            } else {
                path.with_extension("")
            };
            for item in &file.items {
                if let syn::Item::Mod(item) = item
                    && item.content.is_none()
                    && !is_test(&item.attrs)
                {
                    let child = item.ident.to_string();
                    let flat = folder.join(format!("{child}.rs"));
                    let nested = folder.join(&child).join("mod.rs");
                    let path = if flat.exists() { flat } else { nested };
                    rest.push(([&module[..], &[child]].concat(), path));
                }
            }
            files.insert(module, file);
        }
        Crate { files }
    }

    #[cfg(test)]
    /// A crate from pairs of a module and its source text.
    fn of(files: &[(&str, &str)]) -> Crate {
        let module = |name: &str| match name {
            "" => Vec::new(),
            name => name.split("::").map(String::from).collect(),
        };
        let parse = |text| syn::parse_file(text).expect("Rust");
        let files = files.iter().map(|(name, text)| (module(name), parse(text)));
        Crate {
            files: files.collect(),
        }
    }

    fn graph(&self) -> Graph {
        self.files
            .iter()
            .map(|(module, file)| {
                let mut uses = Uses {
                    all: &self.files,
                    scope: module.clone(),
                    found: BTreeSet::new(),
                };
                uses.visit_file(file);
                uses.found.remove(module);
                (module.clone(), uses.found)
            })
            .collect()
    }
}

/// Whether the code under these attributes is only compiled for tests.
fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else {
            return attribute.path().is_ident("test");
        };
        let words: Vec<String> = words(list.tokens.clone());
        list.path.is_ident("cfg")
            && words.iter().any(|word| word == "test")
            && !words.iter().any(|word| word == "not")
    })
}

fn words(tokens: TokenStream) -> Vec<String> {
    tokens
        .into_iter()
        .flat_map(|token| match token {
            TokenTree::Group(group) => words(group.stream()),
            TokenTree::Ident(word) => vec![word.to_string()],
            _ => Vec::new(),
        })
        .collect()
}

/// Finds the modules that one module uses.
struct Uses<'a> {
    all: &'a BTreeMap<ModulePath, syn::File>,
    /// The module that paths are relative to: the file's module, or an inline module.
    scope: ModulePath,
    found: BTreeSet<ModulePath>,
}

impl Uses<'_> {
    /// Adds the module that a path refers to, if that is a module of this crate.
    fn path(&mut self, path: &[String]) {
        let Some(first) = path.first() else { return };
        let mut at = self.scope.clone();
        let mut rest = path;
        match first.as_str() {
            "crate" => {
                at.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|word| word == "super") {
                    at.pop();
                    rest = &rest[1..];
                }
            }
            // A path without a prefix refers to this crate if it begins with a child of this module.
            _ => {
                at.push(first.clone());
                if !self.all.contains_key(&at) {
                    return;
                }
                rest = &path[1..];
            }
        }
        for word in rest {
            at.push(word.clone());
            if !self.all.contains_key(&at) {
                at.pop();
                break;
            }
        }
        // An inline module belongs to the module of its file.
        while !self.all.contains_key(&at) {
            at.pop();
        }
        self.found.insert(at);
    }

    fn use_tree(&mut self, tree: &syn::UseTree, before: &[String]) {
        match tree {
            syn::UseTree::Path(path) => {
                let before = [before, &[path.ident.to_string()]].concat();
                self.use_tree(&path.tree, &before);
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.use_tree(tree, before);
                }
            }
            syn::UseTree::Name(syn::UseName { ident })
            | syn::UseTree::Rename(syn::UseRename { ident, .. }) => {
                if ident == "self" {
                    self.path(before);
                } else {
                    self.path(&[before, &[ident.to_string()]].concat());
                }
            }
            syn::UseTree::Glob(_) => self.path(before),
        }
    }

    /// Finds paths in a macro's tokens: words separated by `::`.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(point) if point.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Ident(word) => {
                    if colons != 2 {
                        self.path_with_prefix(&path);
                        path.clear();
                    }
                    path.push(word.to_string());
                }
                TokenTree::Group(group) => self.tokens(group.stream()),
                _ => {
                    self.path_with_prefix(&path);
                    path.clear();
                }
            }
            colons = 0;
        }
        self.path_with_prefix(&path);
    }

    /// Like [`Uses::path`], but ignores single words, which are usually not paths of this crate.
    fn path_with_prefix(&mut self, path: &[String]) {
        if path.len() > 1 {
            self.path(path);
        }
    }
}

impl<'ast> Visit<'ast> for Uses<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Const(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Static(item) => &item.attrs,
            syn::Item::Struct(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_test(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        // `mod name;` alone uses nothing.
        if item.content.is_some() {
            self.scope.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
            self.scope.pop();
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_test(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.use_tree(&item.tree, &[]);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let words: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        self.path_with_prefix(&words);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }
}

/// The modules of a cycle, if there is one: each uses the next, and the last one uses the first.
fn cycle(graph: &Graph) -> Option<Vec<ModulePath>> {
    fn follow(
        graph: &Graph,
        module: &ModulePath,
        stack: &mut Vec<ModulePath>,
        done: &mut BTreeSet<ModulePath>,
    ) -> Option<Vec<ModulePath>> {
        if let Some(start) = stack.iter().position(|user| user == module) {
            return Some(stack[start..].to_vec());
        }
        if !done.insert(module.clone()) {
            return None;
        }
        stack.push(module.clone());
        let found = graph[module]
            .iter()
            .find_map(|next| follow(graph, next, stack, done));
        stack.pop();
        found
    }
    let mut done = BTreeSet::new();
    graph
        .keys()
        .find_map(|module| follow(graph, module, &mut Vec::new(), &mut done))
}

/// The violations in a crate whose layers are the lines of `layers`, lowest first. A layer consists of one or more parts. A
/// module may use modules of its own part, but not of another part of its layer.
fn violations(graph: &Graph, layers: &str) -> Vec<String> {
    let mut violations = Vec::new();
    let layers = layers.lines().enumerate();
    let parts =
        layers.flat_map(|(height, parts)| parts.split_whitespace().map(move |part| (height, part)));
    let parts: Vec<(usize, &str)> = parts.collect();
    // The layer and the part that a module belongs to: of the parts that its path begins with, the longest.
    let layer_of = |module: &ModulePath| {
        let parts = parts.iter().filter(|(_, part)| is_in(part, module));
        parts.max_by_key(|(_, part)| part.len())
    };
    for (module, uses) in graph.iter().filter(|(module, _)| !module.is_empty()) {
        let Some((height, part)) = layer_of(module) else {
            violations.push(format!("{} is not in a layer", name(module)));
            continue;
        };
        for used in uses {
            let is_below = match layer_of(used) {
                Some((other, other_part)) => other < height || other_part == part,
                None => false,
            };
            if !is_below {
                violations.push(format!(
                    "{} uses {}, which is not in a lower layer",
                    name(module),
                    name(used)
                ));
            }
        }
    }
    for (_, part) in &parts {
        let is_of = |module| layer_of(module).is_some_and(|(_, of)| of == part);
        if !graph.keys().any(is_of) {
            violations.push(format!("the layer {part} has no modules"));
        }
    }
    if let Some(cycle) = cycle(graph) {
        let names: Vec<String> = cycle.iter().map(|module| name(module)).collect();
        violations.push(format!("a cycle: {}", names.join(" -> ")));
    }
    violations
}

/// The statics of a crate that hold a function pointer, as `module::NAME`. A call through one may go up, and no path shows
/// it. A static that only the dynamic loader reads (`#[used]`) does not count. The fields of a static's type are not looked at.
fn function_pointers(crate_: &Crate) -> Vec<String> {
    struct Pointers<'a> {
        module: &'a str,
        holder: Option<String>,
        found: Vec<String>,
    }
    impl<'ast> Visit<'ast> for Pointers<'_> {
        fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
            if !is_test(&item.attrs) {
                visit::visit_item_mod(self, item);
            }
        }

        fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
            if !item.attrs.iter().any(|a| a.path().is_ident("used")) {
                self.holder = Some(format!("{}::{}", self.module, item.ident));
                self.visit_type(&item.ty);
                self.holder = None;
            }
        }

        fn visit_type_bare_fn(&mut self, _: &'ast syn::TypeBareFn) {
            self.found.extend(self.holder.take());
        }
    }
    crate_
        .files
        .iter()
        .flat_map(|(module, file)| {
            let module = name(module);
            let mut pointers = Pointers {
                module: &module,
                holder: None,
                found: Vec::new(),
            };
            pointers.visit_file(file);
            pointers.found
        })
        .collect()
}

/// The root of the workspace.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Checks the crate whose root file is `root`, a path in the workspace. `layers`: see [`violations`]. `pointers`: the
/// statics that may hold a function pointer.
#[track_caller]
pub fn check(root: &str, layers: &str, pointers: &[&str]) {
    let crate_ = Crate::read(&workspace().join(root));
    let violations = violations(&crate_.graph(), layers);
    assert!(violations.is_empty(), "{root}:\n{}", violations.join("\n"));
    assert_eq!(
        function_pointers(&crate_),
        pointers,
        "{root}: statics that hold a function pointer, and the statics that may"
    );
}

/// Whether a module belongs to `part`: it is `part`, or a descendant.
fn is_in(part: &str, module: &ModulePath) -> bool {
    name(module) == part || name(module).starts_with(&format!("{part}::"))
}

/// The modules in `user` that use a module in `used`, although they are not in one of the parts `allowed`; and the allowed
/// parts that use none.
fn forbidden_uses(graph: &Graph, user: &str, used: &str, allowed: &[&str]) -> Vec<String> {
    let mut forbidden = Vec::new();
    let mut needed = BTreeSet::new();
    for (module, uses) in graph.iter().filter(|(module, _)| is_in(user, module)) {
        let part = allowed.iter().find(|part| is_in(part, module));
        for other in uses.iter().filter(|other| is_in(used, other)) {
            match part {
                Some(part) => {
                    needed.insert(part);
                }
                None => forbidden.push(format!("{} uses {}", name(module), name(other))),
            }
        }
    }
    let unneeded = allowed.iter().filter(|part| !needed.contains(part));
    forbidden.extend(unneeded.map(|part| format!("{part} does not use {used}")));
    forbidden
}

/// Checks that in `user` only the parts `allowed` use modules in `used`, and that each of them does. All are module paths of
/// the crate whose root file is `root`.
#[track_caller]
pub fn check_users(root: &str, user: &str, used: &str, allowed: &[&str]) {
    let graph = Crate::read(&workspace().join(root)).graph();
    let forbidden = forbidden_uses(&graph, user, used, allowed);
    assert!(forbidden.is_empty(), "{root}:\n{}", forbidden.join("\n"));
}

/// A crate of the workspace.
pub struct Member {
    /// Its folder, from the root of the workspace.
    pub folder: PathBuf,
}

impl Member {
    /// The root files of its libraries and programs that exist, from the root of the workspace.
    pub fn roots(&self) -> Vec<PathBuf> {
        ["lib.rs", "src/lib.rs", "src/main.rs"]
            .map(|file| self.folder.join(file))
            .into_iter()
            .filter(|file| workspace().join(file).exists())
            .collect()
    }

    /// The folders of the crates that it depends on, except for tests, from the root of the workspace.
    pub fn dependencies(&self) -> Vec<PathBuf> {
        let manifest = self.folder.join("Cargo.toml");
        let text = fs::read_to_string(workspace().join(manifest)).expect("a manifest");
        let section = text.split("[dependencies]").nth(1).unwrap_or_default();
        let section = section.split("\n[").next().unwrap_or_default();
        let paths = section.split("path = \"").skip(1);
        let paths = paths.filter_map(|rest| rest.split('"').next());
        paths.map(|path| normal(&self.folder.join(path))).collect()
    }
}

/// `path` without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        if part.as_os_str() == ".." {
            normal.pop();
        } else {
            normal.push(part);
        }
    }
    normal
}

/// The crates of the workspace.
pub fn members() -> Vec<Member> {
    let mut folders: Vec<PathBuf> = vec!["src".into(), "tools".into()];
    let mut members = Vec::new();
    while let Some(folder) = folders.pop() {
        if workspace().join(&folder).join("Cargo.toml").exists() {
            members.push(Member { folder });
            continue;
        }
        for entry in fs::read_dir(workspace().join(&folder)).expect("a folder") {
            let entry = entry.expect("an entry");
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(folder.join(entry.file_name()));
            }
        }
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_use_is_found() {
        let uses = |text: &str| {
            let others = ["", "a", "b", "b::c", "b::d", "b::d::e"];
            let mut files: Vec<_> = others.iter().map(|other| (*other, "")).collect();
            files.push(("b::x", text));
            let graph = Crate::of(&files).graph();
            let found = &graph[&vec!["b".to_owned(), "x".to_owned()]];
            found.iter().map(|module| name(module)).collect::<Vec<_>>()
        };
        for (text, found) in [
            ("use crate::a;", &["a"][..]),
            (
                "use crate::{a::{self, T}, b::{c::f, d::e}};",
                &["a", "b::c", "b::d::e"],
            ),
            ("use super::c::*;", &["b::c"]),
            ("use super::super::a as z;", &["a"]),
            ("use crate::function;", &["the crate's root"]),
            ("use std::fmt; use c::f;", &[]),
            (
                "fn f(x: crate::a::T) -> u8 { super::d::g(x) }",
                &["a", "b::d"],
            ),
            (
                "fn f() { println!(\"{}\", [crate::a::N, super::c::N]) }",
                &["a", "b::c"],
            ),
            ("mod inner { fn f() { super::super::c::g() } }", &["b::c"]),
            ("#[cfg(test)] mod tests { use crate::a; }", &[]),
            ("#[cfg(all(test, loom))] use crate::a;", &[]),
            ("#[cfg(not(test))] use crate::a;", &["a"]),
            ("#[test] fn f() { crate::a::g() }", &[]),
        ] {
            assert_eq!(uses(text), found, "{text}");
        }
        let parent = Crate::of(&[("", ""), ("b", "pub use c::T;"), ("b::c", "use super::T;")]);
        let cycle = cycle(&parent.graph()).map(|cycle| cycle.len());
        assert_eq!(
            cycle,
            Some(2),
            "a child that imports its own item from its parent"
        );
    }

    #[test]
    fn only_the_allowed_parts_may_use_a_module() {
        let graph = Crate::of(&[
            ("", ""),
            ("vendor", ""),
            ("vendor::x", ""),
            ("user", ""),
            ("user::allowed::inner", "use crate::vendor::x::f;"),
            ("user::allowed_not", "use crate::vendor::x::f;"),
            ("other", "use crate::vendor::x::f;"),
        ])
        .graph();
        let of = |allowed: &[&str]| forbidden_uses(&graph, "user", "vendor", allowed);
        let outside = "user::allowed_not uses vendor::x";
        assert_eq!(of(&["user::allowed", "user::allowed_not"]), [""; 0]);
        assert_eq!(of(&["user::allowed"]), [outside]);
        assert_eq!(of(&["user"]), [""; 0]);
        assert_eq!(of(&[]), ["user::allowed::inner uses vendor::x", outside]);
        assert_eq!(
            of(&["user::allowed", "user::none"]),
            [outside, "user::none does not use vendor"]
        );
    }

    #[test]
    fn function_pointers_in_statics_are_found() {
        let found = |text: &str| function_pointers(&Crate::of(&[("", ""), ("x", text)]));
        for (text, pointers) in [
            (
                "static S: OnceLock<extern \"C\" fn()> = OnceLock::new();",
                &["x::S"][..],
            ),
            (
                "fn f() { static S: [Option<fn(u8) -> u8>; 2] = [None; 2]; }",
                &["x::S"],
            ),
            (
                "#[used] static S: fn() = f; static N: u8 = 1; fn g(h: fn()) {}",
                &[],
            ),
            ("#[cfg(test)] mod tests { static S: fn() = f; }", &[]),
        ] {
            assert_eq!(found(text), pointers, "{text}");
        }
    }

    #[test]
    fn upward_and_cyclic_uses_are_violations() {
        let of = |low: &str, high: &str| {
            let graph =
                Crate::of(&[("", "mod low; mod high;"), ("low", low), ("high", high)]).graph();
            violations(&graph, "low\n high")
        };
        assert_eq!(of("", "use crate::low;"), [""; 0]);
        assert_eq!(
            of("use crate::high;", ""),
            ["low uses high, which is not in a lower layer"]
        );
        assert_eq!(of("use crate::high;", "use crate::low;").len(), 2);
        let graph = Crate::of(&[
            ("", ""),
            ("x", "use crate::y::f;"),
            ("y", "use crate::x::g;"),
            ("z", ""),
        ]);
        assert_eq!(
            violations(&graph.graph(), "x y\n empty"),
            [
                "x uses y, which is not in a lower layer",
                "y uses x, which is not in a lower layer",
                "z is not in a layer",
                "the layer empty has no modules",
                "a cycle: x -> y",
            ]
        );
    }
}
