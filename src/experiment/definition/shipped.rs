//! Grammars that need no file, and what may help where none has a name.

use crate::grammar::suggest;

/// A set of grammars that need no file. A function from names to texts is one whose names nobody can list.
pub trait GrammarTexts {
    /// The grammar of this name, in GBNF.
    fn text(&self, name: &str) -> Option<&'static str>;

    /// The names, where they can be listed: an error about an unknown one then says which may be meant.
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

/// What may help where no grammar has this name.
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
