//! Grammars that need no file, and advice about unknown names.

use crate::grammar::suggest;

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
