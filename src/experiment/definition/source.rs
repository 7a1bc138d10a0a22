//! A definition's file and errors about it, the grammars that need no file, and the notations of those that
//! have one.

use std::{collections::HashSet, hash::Hash, path::Path};

use crate::experiment::error::ExperimentError;
use crate::grammar::{Syntax, suggest};

/// A definition's name in errors, and the folder of its files.
#[derive(Clone, Copy)]
pub(super) struct DefinitionSource<'a> {
    pub(super) name: &'a str,
    pub(super) folder: &'a Path,
    pub(super) shipped: ShippedGrammars<'a>,
}

impl DefinitionSource<'_> {
    pub(super) fn wrong(&self, message: impl Into<String>) -> ExperimentError {
        ExperimentError::definition(self.name, message)
    }

    /// Refuses an empty list, and one with the same thing twice.
    pub(super) fn list<T: std::fmt::Debug, I: Eq + Hash>(
        &self,
        key: &str,
        list: &[T],
        identity: impl Fn(&T) -> I,
    ) -> Result<(), ExperimentError> {
        if list.is_empty() {
            return Err(self
                .wrong(format!("`{key}` is empty"))
                .with_hint(format!("leave `{key}` out, or fill it")));
        }
        let mut seen = HashSet::new();
        match list.iter().find(|item| !seen.insert(identity(item))) {
            Some(twice) => Err(self.wrong(format!("`{key}` has {twice:?} twice"))),
            None => Ok(()),
        }
    }
}

/// A set of grammars that need no file. A function from names to texts is one that cannot list its names.
pub trait GrammarTexts {
    /// The grammar of this name, in GBNF.
    fn text(&self, name: &str) -> Option<&'static str>;

    /// Lists the names, if possible: an error about an unknown one then suggests a similar one.
    fn names(&self) -> Vec<&str> {
        Vec::new()
    }
}

impl<F: Fn(&str) -> Option<&'static str>> GrammarTexts for F {
    fn text(&self, name: &str) -> Option<&'static str> {
        self(name)
    }
}

/// Grammars that need no file, by name.
pub type ShippedGrammars<'a> = &'a dyn GrammarTexts;

/// Advises about a name that no grammar has.
pub(super) fn advice(shipped: ShippedGrammars<'_>, name: &str) -> String {
    let names = shipped.names();
    match suggest::did_you_mean(name, names.iter().copied()) {
        Some(near) => near,
        None if name.contains(['.', '/']) => {
            format!("a grammar in a file is written {{ name = \"NAME\", file = {name:?} }}")
        }
        None => "`domino grammars` lists them; or give it a `file`".to_owned(),
    }
}

/// Returns the notation of a file by its ending, as the program's flags do.
pub(super) fn of_ending(path: &Path) -> Syntax {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("regex" | "re") => Syntax::Regex,
        Some("ebnf") => Syntax::Ebnf,
        Some("lark") => Syntax::Lark,
        Some("json") if path.to_str().is_some_and(|path| path.ends_with(".tags.json")) => {
            Syntax::StructuralTag
        }
        Some("json") => Syntax::JsonSchema,
        _ => Syntax::Gbnf,
    }
}
