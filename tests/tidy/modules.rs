//! The modules of a crate and who imports whom, as far as words alone tell: names are resolved by the tree of
//! modules and by `use`, to the file that defines what is named.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use super::{
    lexer::{closing, words},
    paths::{Path, next_word, paths, uses},
    source::{Source, test_items},
};

/// Links of re-exports that are followed for one name. Longer chains are taken to lead nowhere.
const MOST_LINKS: usize = 16;

/// One file imports from another.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Import {
    /// The file that imports.
    pub(super) from: String,
    /// The file that defines what is imported.
    pub(super) to: String,
}

/// The names in a module's scope.
#[derive(Default)]
struct Scope {
    /// By the name that it has here.
    names: BTreeMap<String, Path>,
    /// Modules of which everything is brought in.
    globs: Vec<Path>,
    /// Items that are defined here.
    items: BTreeSet<String>,
    /// The file that the module is in.
    file: String,
}

/// A part of a file that is a module.
struct Part {
    module: Path,
    /// Braces that are open around its items.
    depth: usize,
    range: Range<usize>,
}

/// A crate's modules.
pub(super) struct Crate {
    scopes: BTreeMap<Path, Scope>,
    /// Paths that code says, with the module that it says them in.
    said: BTreeSet<(Path, Path)>,
}

/// The place that a path leads to.
enum Target {
    Module(Path),
    /// An item of the module.
    Item(Path),
}

impl Crate {
    /// Reads the files below `folder` that are not below `apart`, nor modules of tests.
    pub(super) fn new(sources: &[Source], folder: &str, apart: Option<&str>) -> Self {
        let files: Vec<&Source> = sources
            .iter()
            .filter(|source| source.path.starts_with(folder))
            .filter(|source| apart.is_none_or(|apart| !source.path.starts_with(apart)))
            .collect();
        let tests: BTreeSet<String> = files.iter().flat_map(|source| test_files(source)).collect();
        let mut read = Self { scopes: BTreeMap::new(), said: BTreeSet::new() };
        for source in files {
            if !tests.iter().any(|test| belongs(&source.path, test)) {
                read.file(source, module_of(&source.path, folder));
            }
        }
        read
    }

    fn file(&mut self, source: &Source, module: Path) {
        let code = source.product();
        let mut parts = vec![Part { module, depth: 0, range: 0..code.len() }];
        inline_modules(&code, &mut parts);
        for part in &parts {
            let scope = self.scopes.entry(part.module.clone()).or_default();
            scope.file.clone_from(&source.path);
        }
        let uses = uses(&code);
        for one in &uses {
            let module = innermost(&parts, one.range.start).module.clone();
            for (path, name) in &one.names {
                let scope = self.scopes.entry(module.clone()).or_default();
                if name == "*" {
                    scope.globs.push(path[..path.len() - 1].to_vec());
                } else if name != "_" {
                    scope.names.insert(name.clone(), path.clone());
                }
                self.said.insert((module.clone(), path.clone()));
            }
        }
        let depths = depths(&code);
        for keyword in ["fn", "struct", "enum", "trait", "type", "union", "const", "static", "macro_rules!"] {
            for at in words(&code, keyword) {
                let part = innermost(&parts, at);
                if depths[at] == part.depth
                    && let Some(name) = next_word(&code, at + keyword.len())
                {
                    let scope = self.scopes.entry(part.module.clone()).or_default();
                    scope.items.insert(name.to_owned());
                }
            }
        }
        for (at, path) in paths(&code) {
            if !uses.iter().any(|one| one.range.contains(&at)) {
                self.said.insert((innermost(&parts, at).module.clone(), path));
            }
        }
    }

    /// The imports between files. A file does not import itself.
    pub(super) fn imports(&self) -> BTreeSet<Import> {
        let mut found = BTreeSet::new();
        for (module, path) in &self.said {
            let Some(Target::Item(owner)) = self.resolve(module, path, MOST_LINKS) else { continue };
            let (from, to) = (&self.scopes[module].file, &self.scopes[&owner].file);
            if from != to {
                found.insert(Import { from: from.clone(), to: to.clone() });
            }
        }
        found
    }

    /// The target of a path that code in `module` says; `None` if it leads out of the crate.
    fn resolve(&self, module: &Path, path: &[String], links: usize) -> Option<Target> {
        let links = links.checked_sub(1)?;
        let mut at = module.clone();
        let mut rest = path;
        let mut rooted = false;
        while let Some((first, others)) = rest.split_first() {
            match first.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => drop(at.pop()?),
                _ => break,
            }
            rooted = true;
            rest = others;
        }
        if !rooted {
            let first = rest.first()?;
            let known = self.scopes.contains_key(&child(&at, first))
                || self.scopes[&at].names.contains_key(first)
                || self.scopes[&at].items.contains(first);
            if !known {
                return None;
            }
        }
        while let Some((first, others)) = rest.split_first() {
            let below = child(&at, first);
            if self.scopes.contains_key(&below) {
                at = below;
            } else {
                match self.item(&at, first, links)? {
                    Target::Module(module) => at = module,
                    item @ Target::Item(_) => return Some(item),
                }
            }
            rest = others;
        }
        Some(Target::Module(at))
    }

    /// The item `name` of a module: where it is defined if that one only hands it on.
    fn item(&self, module: &Path, name: &str, links: usize) -> Option<Target> {
        let links = links.checked_sub(1)?;
        let scope = &self.scopes.get(module)?;
        if name == "*" || scope.items.contains(name) {
            return Some(Target::Item(module.clone()));
        }
        if let Some(path) = scope.names.get(name) {
            // Names of another crate are reached from this import.
            return self.resolve(module, path, links).or_else(|| Some(Target::Item(module.clone())));
        }
        for glob in &scope.globs {
            if let Some(Target::Module(from)) = self.resolve(module, glob, links)
                && from != *module
                && let Some(target) = self.known_item(&from, name, links)
            {
                return Some(target);
            }
        }
        // A macro makes it, or it is no item.
        Some(Target::Item(module.clone()))
    }

    /// As [`Self::item`], `None` if the module does not say the name.
    fn known_item(&self, module: &Path, name: &str, links: usize) -> Option<Target> {
        let scope = self.scopes.get(module)?;
        let below = child(module, name);
        if self.scopes.contains_key(&below) {
            return Some(Target::Module(below));
        }
        (scope.items.contains(name) || scope.names.contains_key(name))
            .then(|| self.item(module, name, links))
            .flatten()
    }
}

fn child(module: &Path, name: &str) -> Path {
    let mut path = module.clone();
    path.push(name.to_owned());
    path
}

/// The module that a file is, by its path.
fn module_of(path: &str, folder: &str) -> Path {
    let inside = path.strip_prefix(folder).unwrap_or(path).trim_start_matches('/');
    let mut parts: Path = inside.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if parts
        .last()
        .is_some_and(|last| last == "mod" || (parts.len() == 1 && (last == "lib" || last == "main")))
    {
        parts.pop();
    }
    parts
}

/// The files of the modules of tests that a file declares.
fn test_files(source: &Source) -> Vec<String> {
    let (folder, file) = source.path.rsplit_once('/').expect("a file in a folder");
    let inside = match file {
        "mod.rs" | "lib.rs" | "main.rs" => folder.to_owned(),
        _ => source.path.trim_end_matches(".rs").to_owned(),
    };
    let code = &source.lexed.code;
    let mut found = Vec::new();
    for range in test_items(code) {
        let Some(at) = words(&code[range.clone()], "mod").next() else { continue };
        let Some(name) = next_word(&code[range.clone()], at + 3) else { continue };
        let text = &source.text[range];
        if let Some((_, path)) = text.split_once("#[path = \"") {
            found.push(format!("{folder}/{}", path.split('"').next().expect("a path")));
        } else if text.trim_end().ends_with(';') {
            found.push(format!("{inside}/{name}.rs"));
            found.push(format!("{inside}/{name}/mod.rs"));
        }
    }
    found
}

/// True if a file is this one, or one of the modules below it.
fn belongs(path: &str, to: &str) -> bool {
    let folder = to.strip_suffix("/mod.rs").unwrap_or(to.trim_end_matches(".rs"));
    path == to || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// The innermost module at a byte.
fn innermost(parts: &[Part], at: usize) -> &Part {
    parts.iter().rev().find(|part| part.range.contains(&at)).unwrap_or(&parts[0])
}

/// The number of braces that are open at each byte.
fn depths(code: &str) -> Vec<usize> {
    let mut depth = 0_usize;
    code.bytes()
        .map(|byte| {
            match byte {
                b'{' => depth += 1,
                b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth
        })
        .collect()
}

/// Adds the modules that are written out in the file.
fn inline_modules(code: &str, parts: &mut Vec<Part>) {
    for at in words(code, "mod") {
        let Some(name) = next_word(code, at + 3) else { continue };
        let behind = at + code[at..].find(name).expect("the name") + name.len();
        let open = behind + code[behind..].len() - code[behind..].trim_start().len();
        if code[open..].starts_with('{') {
            let outer = innermost(parts, at);
            let (module, depth) = (child(&outer.module, name), outer.depth + 1);
            parts.push(Part { module, depth, range: open..closing(code, open) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The imports of a crate of these files, as `from to`.
    fn imports(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<_> =
            files.iter().map(|(path, text)| Source::new(&format!("src/{path}"), text)).collect();
        let found = Crate::new(&sources, "src/", Some("src/bin/")).imports();
        let short = |path: &str| path.strip_prefix("src/").expect("a file of src").to_owned();
        found.iter().map(|import| format!("{} {}", short(&import.from), short(&import.to))).collect()
    }

    #[test]
    fn paths_lead_to_the_file_that_defines() {
        let files = |text| {
            [
                ("lib.rs", "mod a; mod b; pub use a::deep::Deep;"),
                ("a/mod.rs", "pub mod deep; pub use deep::*; use deep::Other; pub struct Own;"),
                ("a/deep.rs", "pub struct Deep; pub struct Other; pub fn go() {}"),
                ("b.rs", text),
            ]
        };
        for (text, to) in [
            ("use crate::a::Own;", "a/mod.rs"),
            ("use crate::a::{deep::{self, Deep}, };", "a/deep.rs"),
            ("use crate::a::Deep;", "a/deep.rs"),
            ("use crate::Deep;", "a/deep.rs"),
            ("use super::a::go;", "a/deep.rs"),
            ("use crate::a::{Other as One};", "a/deep.rs"),
            ("use crate::a as first; fn b() { first::Own }", "a/mod.rs"),
            ("fn b() { crate::a::deep::go() }", "a/deep.rs"),
            ("fn b() { crate::a::deep::Deep::new() }", "a/deep.rs"),
            ("mod inside { fn b() { super::super::a::Own } }", "a/mod.rs"),
            ("macro_rules! m { () => { $crate::a::Own } }", "a/mod.rs"),
            ("use crate::a::*;", "a/mod.rs"),
        ] {
            let found = imports(&files(text));
            assert!(found.contains(&format!("b.rs {to}")), "{text}: {found:?}");
            assert_eq!(
                found.iter().filter(|import| import.starts_with("b.rs")).count(),
                1,
                "{text}: {found:?}"
            );
        }
    }

    #[test]
    fn texts_that_import_nothing_give_no_import() {
        for text in [
            "// crate::a::Own",
            "fn b() { \"crate::a::Own\" }",
            "#[cfg(test)] mod tests { use crate::a::Own; }",
            "use std::a::Own;",
            "fn b() { self.a::<Own>() }",
            "use crate::a;",
            "mod c;",
        ] {
            let files = [("lib.rs", ""), ("a.rs", "pub struct Own;"), ("b.rs", text), ("b/c.rs", "")];
            assert_eq!(imports(&files), [] as [&str; 0], "{text}");
        }
    }

    #[test]
    fn modules_of_tests_are_left_out() {
        let uses = "use crate::a::Own;";
        for (declares, file) in [
            ("#[cfg(test)] mod tests;", "b/tests.rs"),
            ("#[cfg(all(test, unix))] pub(super) mod tests;", "b/tests/mod.rs"),
            ("#[cfg(test)] mod tests;", "b/tests/deeper.rs"),
            ("#[cfg(test)]\n#[path = \"b_tests.rs\"]\nmod tests;", "b_tests.rs"),
        ] {
            let files = [("lib.rs", ""), ("a.rs", "pub struct Own;"), ("b.rs", declares), (file, uses)];
            assert_eq!(imports(&files), [] as [&str; 0], "{file}");
            let files = [("lib.rs", ""), ("a.rs", "pub struct Own;"), ("b.rs", ""), (file, uses)];
            assert_eq!(imports(&files).len(), 1, "{file}");
        }
    }

    #[test]
    fn methods_hide_no_names() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a/mod.rs", "pub use go::run; struct A; impl A { fn run() {} }"),
            ("a/go.rs", "pub fn run() {}"),
            ("b.rs", "use crate::a::run;"),
        ];
        assert_eq!(imports(&files), ["a/mod.rs a/go.rs", "b.rs a/go.rs"]);
    }
}
