//! Modules of the library stand in layers: each uses only those before it, and the engine knows no model.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use super::{
    packages::is_test,
    paths::{Path, paths, uses},
    source::{Source, root},
};

/// All modules right in `src/engine` and `src`, in the order in which data flows. The map in `src/lib.rs` has
/// the same order.
const LAYERS: [&str; 31] = [
    "clock",
    "cores",
    "automata",
    "limits",
    "ids",
    "split_mix",
    "store",
    "gguf",
    "special",
    "vocab",
    "chat",
    "grammar",
    "scanner",
    "lower",
    "subterminal",
    "parser",
    "program",
    "masks",
    "machine",
    "json_readers",
    "session",
    "questions",
    "captures",
    "compile",
    "oracle",
    "inspect",
    "proposer",
    "shipped",
    "model",
    "decode",
    "experiment",
];
/// The engine: knows nothing of models, and they know nothing of it.
const ENGINE: [&str; 17] = [
    "special",
    "grammar",
    "scanner",
    "lower",
    "subterminal",
    "parser",
    "program",
    "masks",
    "machine",
    "json_readers",
    "session",
    "questions",
    "captures",
    "compile",
    "oracle",
    "inspect",
    "proposer",
];
/// Modules that run models, and those above them.
const MODELS: [&str; 3] = ["model", "decode", "experiment"];
/// All rooms of the program, in the order in which they build on one another. The map in its `lib.rs` has
/// the same order.
const ROOMS: [&str; 11] =
    ["terminal", "files", "engine", "grammar", "session", "flags", "rows", "serve", "verbs", "help", "cli"];
/// Folders of programs, packages of their own.
const PROGRAMS: [&str; 3] = ["bin", "llama_cpp", "mistralrs"];
/// The folder of the program.
const PROGRAM: &str = "src/bin/domino/";
/// Imports between layers that are surely there.
const FEW_IMPORTS: usize = 100;

/// The module right in the folder of a crate that a file belongs to; `None` for `lib.rs` and programs.
fn top(path: &str) -> Option<&str> {
    let inside = path.strip_prefix("src/")?;
    let inside = inside.strip_prefix("engine/").unwrap_or(inside);
    let first = inside.split('/').next()?.trim_end_matches(".rs");
    (inside != "lib.rs" && !PROGRAMS.contains(&first)).then_some(first)
}

/// A module right in the folder of a crate uses something of another.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Import {
    /// The file that uses it.
    from: String,
    /// The module that it is of.
    to: String,
}

/// Returns what the files of a crate use of its modules, as far as paths say it that begin with `crate` or
/// lead up by `super`. The names that its `lib.rs` hands on are those of their modules.
fn imports(sources: &[Source], folder: &str, apart: &[&str]) -> BTreeSet<Import> {
    let files = || {
        let inside =
            sources.iter().filter(|source| source.path.starts_with(folder) && !is_test(&source.path));
        inside.filter(|source| !apart.iter().any(|apart| source.path.starts_with(apart)))
    };
    let mut handed_on: BTreeMap<String, String> = BTreeMap::new();
    for source in files().filter(|source| source.path == format!("{folder}lib.rs")) {
        for (path, name) in uses(&source.product()) {
            handed_on.insert(name, path[0].clone());
        }
    }
    let mut found = BTreeSet::new();
    for source in files() {
        let code = source.product();
        let module = module_of(&source.path, folder);
        let said = uses(&code).into_iter().map(|(path, _)| path);
        for path in said.chain(paths(&code).into_iter().map(|(_, path)| path)) {
            let ups = path.iter().take_while(|part| *part == "super").count();
            let rooted = path[0] == "crate" || (ups > 0 && ups == module.len());
            let Some(first) = path.get(ups.max(1)).filter(|_| rooted) else { continue };
            let to = handed_on.get(first).unwrap_or(first).clone();
            found.insert(Import { from: source.path.clone(), to });
        }
    }
    found
}

/// The module that a file is, by its path.
fn module_of(path: &str, folder: &str) -> Path {
    let inside = path.strip_prefix(folder).unwrap_or(path).trim_end_matches(".rs");
    let parts = inside.split('/').filter(|part| !["mod", "lib", "main"].contains(part));
    parts.map(str::to_owned).collect()
}

/// Modules of no layer, and layers without a module.
fn unlisted<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<String> {
    let modules: BTreeSet<&str> = paths.filter_map(top).collect();
    let no_layer = modules.iter().filter(|module| !LAYERS.contains(module));
    let no_module = LAYERS.iter().filter(|layer| !modules.contains(*layer));
    no_layer
        .map(|module| {
            format!(
                "src/{module} is in no layer: add it to LAYERS in tests/tidy/layers.rs, to the map in \
                 src/lib.rs and to docs/architecture.md"
            )
        })
        .chain(no_module.map(|layer| format!("the layer `{layer}` is no module: take it out of LAYERS")))
        .collect()
}

/// A complaint about an import that breaks the order.
fn upward(Import { from, to }: &Import) -> Option<String> {
    let own = top(from)?;
    let layer = |name| LAYERS.iter().position(|layer| *layer == name);
    // Modules of no layer are faults of their own, and other names are of no module.
    let rises = layer(own)? < layer(to)?;
    let to = to.as_str();
    let crosses = (own == "model" && ENGINE.contains(&to)) || (ENGINE.contains(&own) && MODELS.contains(&to));
    if rises {
        Some(format!("{from} imports from {to}, a later layer"))
    } else {
        crosses.then(|| format!("{from} imports from {to}: engine and models know nothing of each other"))
    }
}

/// The layers that a text names between backquotes, each where it is named first.
fn named(text: &str) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for name in text.split('`').skip(1).step_by(2).filter(|name| LAYERS.contains(name)) {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

#[test]
fn every_module_has_a_layer() {
    let sources = super::source::rust();
    let wrong = unlisted(sources.iter().map(|source| source.path.as_str()));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn modules_use_only_those_before_them() {
    let sources = super::source::rust();
    let mut imports = imports(sources, "src/", &["src/bin/", "src/engine/", "src/mistralrs/"]);
    imports.extend(super::layers::imports(sources, "src/engine/", &[]));
    let layered = |import: &&Import| LAYERS.contains(&import.to.as_str());
    let checked =
        imports.iter().filter(layered).filter(|import| top(&import.from) != Some(&import.to)).count();
    assert!(checked > FEW_IMPORTS, "only {checked} imports between layers were found");
    let wrong: Vec<_> = imports.iter().filter_map(upward).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The room of the program that a file belongs to; `None` for the files that stand above all.
fn room(path: &str) -> Option<&str> {
    let first = path.strip_prefix(PROGRAM)?.split('/').next()?.trim_end_matches(".rs");
    (!["main", "lib", "build", "allocator"].contains(&first)).then_some(first)
}

/// A complaint about an import of the program that breaks the order of its rooms.
fn upward_in_program(Import { from, to }: &Import) -> Option<String> {
    let layer = |name| ROOMS.iter().position(|room| *room == name);
    let own = room(from)?;
    match (layer(own), layer(to)) {
        (Some(own), Some(used)) => (own < used).then(|| format!("{from} imports from {to}, a later room")),
        (None, _) => Some(format!("{from} is in no room: add it to ROOMS in tests/tidy/layers.rs")),
        (_, None) => None,
    }
}

#[test]
fn rooms_of_the_program_use_only_those_before_them() {
    let imports = imports(super::source::rust(), PROGRAM, &[]);
    let rooms = |import: &&Import| ROOMS.contains(&import.to.as_str());
    let checked =
        imports.iter().filter(rooms).filter(|import| room(&import.from) != Some(&import.to)).count();
    assert!(checked > FEW_IMPORTS, "only {checked} imports between rooms were found");
    let wrong: Vec<_> = imports.iter().filter_map(upward_in_program).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let main = fs::read_to_string(root().join(PROGRAM).join("lib.rs")).expect("the program");
    let map: Vec<&str> = main
        .lines()
        .filter_map(|line| line.strip_prefix("//! * "))
        .flat_map(|line| line.split("[`").skip(1).filter_map(|name| name.split_once("`]")))
        .map(|(name, _)| name)
        .filter(|name| ROOMS.contains(name))
        .collect();
    assert_eq!(map, ROOMS, "the map in {PROGRAM}lib.rs has all rooms, in their order");
}

#[test]
fn maps_name_all_layers() {
    let read = |path| fs::read_to_string(root().join(path)).expect("a page");
    let library = read("src/lib.rs");
    let (_, map) =
        library.split_once("//! # Map").and_then(|(_, map)| map.split_once("//! * ")).expect("a map");
    let (map, _) = map.split_once("//!\n").expect("what follows the map");
    assert_eq!(named(map), LAYERS, "the map in src/lib.rs has all layers, in their order");
    let page = read("docs/architecture.md");
    let (_, modules) = page.split_once("## Modules").expect("a list of modules");
    let (modules, _) = modules.split_once("\n## ").expect("what follows the list");
    let named: BTreeSet<_> = named(modules).into_iter().collect();
    let missing: Vec<_> = LAYERS.iter().filter(|layer| !named.contains(*layer)).collect();
    assert!(missing.is_empty(), "docs/architecture.md does not name {missing:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_without_a_layer_are_found() {
        let all: Vec<String> = LAYERS.iter().map(|layer| format!("src/{layer}.rs")).collect();
        let with =
            |more: &[&'static str]| unlisted(all.iter().map(String::as_str).chain(more.iter().copied()));
        let others = ["src/lib.rs", "src/bin/domino/new.rs", "tests/new.rs", "src/engine/vocab/new.rs"];
        assert_eq!(with(&others), [] as [String; 0]);
        for new in ["src/new.rs", "src/new/mod.rs", "src/new/deep/file.rs"] {
            assert_eq!(with(&[new]).len(), 1, "{new}");
        }
        assert_eq!(unlisted(all[1..].iter().map(String::as_str)).len(), 1);
    }

    /// True if `text` may stand in a file of the module `own`.
    fn may(own: &str, text: &str) -> bool {
        let handed_on = Source::new("src/lib.rs", "pub use decode::Decoder; pub use ids::TokenId;");
        let sources = [handed_on, Source::new(&format!("src/{own}/b.rs"), text)];
        let imports = imports(&sources, "src/", &[]);
        assert_eq!(imports.len(), 1, "{text}");
        imports.iter().filter_map(upward).count() == 0
    }

    #[test]
    fn imports_of_later_rooms_are_found() {
        let import = |from: &str, to: &str| Import { from: format!("{PROGRAM}{from}"), to: to.to_owned() };
        for (from, to) in
            [("cli.rs", "flags"), ("verbs/a/b.rs", "rows"), ("main.rs", "cli"), ("rows/a.rs", "fmt")]
        {
            assert_eq!(upward_in_program(&import(from, to)), None, "{from} {to}");
        }
        let wrong = [("flags/a.rs", "cli"), ("files/mod.rs", "verbs"), ("new/a.rs", "cli")];
        for (from, to) in wrong {
            assert!(upward_in_program(&import(from, to)).is_some(), "{from} {to}");
        }
    }

    #[test]
    fn imports_of_later_layers_are_found() {
        assert!(may("decode", "use crate::model::A;"));
        assert!(may("subterminal", "use crate::automata::A;"));
        assert!(may("automata", "use crate::Unknown;") && may("vocab", "use crate::TokenId;"));
        for (own, text) in [
            ("special", "use crate::decode::A;"),
            ("automata", "use crate::{decode::{self, A}};"),
            ("automata", "fn b() { crate::ids::A::new() }"),
            ("vocab", "use crate::Decoder;"),
            ("grammar", "use super::super::lower::A;"),
            ("model", "use crate::grammar::A;"),
            ("model", "use crate::special::A;"),
        ] {
            assert!(!may(own, text), "{own}: {text}");
        }
    }
}
