//! Grammars that come with the program.

use domino::grammar::suggest;

use super::notation::Notation;

/// A grammar that comes with the program, in GBNF.
#[derive(Debug)]
pub(crate) struct Shipped {
    /// The name that `--grammar` takes.
    pub(crate) name: &'static str,
    /// The text of the grammar.
    pub(crate) text: &'static str,
    /// The notation of the text: for one of them more than GBNF can say.
    pub(crate) notation: Notation,
}

impl Shipped {
    /// Describes the grammar in a line, by the comment that it begins with.
    pub(crate) fn about(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']).trim_end_matches('.')
    }
}

/// Lists the grammars of these names, each in its notation.
macro_rules! shipped {
    ($($notation:ident: $($name:literal)*;)*) => {
        &[$($(Shipped {
            name: $name,
            text: include_str!(concat!("../../../../grammars/", $name, ".gbnf")),
            notation: Notation::$notation,
        }),*),*]
    };
}

/// All grammars that come with the program.
pub(crate) const SHIPPED: &[Shipped] = shipped![
    Gbnf: "json" "rfc8259" "gsm8k" "xml_person" "rpg" "c"
    "arithmetic" "sql_select" "call" "csv" "email" "iso8601"
    "paper/json" "paper/gsm8k" "paper/xml_person" "paper/rpg" "paper/c";
];

/// A hint for a name that no grammar has.
pub(crate) fn shipped_hint(name: &str) -> String {
    let names: Vec<&str> = SHIPPED.iter().map(|shipped| shipped.name).collect();
    let near = suggest::did_you_mean(name, names.iter().copied());
    // A word of a name is how people remember it: `xml` or `person` for `xml_person`.
    let of_word = || {
        let has = |one: &&&str| one.split(['_', '/']).any(|word| word == name);
        names.iter().find(has).map(|one| format!("did you mean `{one}`?"))
    };
    near.or_else(of_word).unwrap_or_else(|| format!("grammars that need no file: {}", names.join(", ")))
}
