//! The two lexicalisations: which parts of a grammar are terminals.

/// The choice of the parts of a grammar that are terminals.
///
/// With unbounded [`Lookahead`](crate::Lookahead) masks are the same. A finite `k` counts terminals, so it
/// depends on this: only with [`Written`](Self::Written) does it mean what the paper's `k` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Terminals {
    /// The largest regular parts, up to [`Limits::fold_states`](crate::Limits::fold_states) states each. They
    /// are few, so masks are fastest; a whole statement may be one terminal.
    #[default]
    Folded,
    /// The terminals of a lexer that a person would write for the grammar (the scanner of the paper, 3.2):
    ///
    /// * A literal is a terminal. A class, alone or repeated, is one.
    /// * A *token-like rule* is one: a rule over characters, such as `string`, `number`, `name` or `ws`. It
    ///   has a class and
    ///   - no literal that is a word: one with a letter, of at least three characters or two letters
    ///     (`"<job>"`, `"if"`);
    ///   - no two literals next to each other, which would be one literal if they were one token;
    ///   - no repetition of a part that itself has any number of characters, as `[0-9]+ ("," [0-9]+)*`, which
    ///     is a list;
    ///   - no recursion, but for that which repeats single characters (`ws ::= ([ \t\n] ws)?`);
    ///   - no mention of another rule, but for *fragments*: rules of bounded length that are, or have as an
    ///     alternative, or are an alternative to, a single character (`hex`, `[^"\\] | escape`); and rules
    ///     that nothing else mentions, all but one of them optional, in a sequence without literals, as
    ///     `int frac? exp?`.
    /// * So are two kinds of stretches inside other rules, as if they had a name: neighbouring parts with
    ///   classes and without literals between them, and such parts in quotes, that is, between two equal
    ///   literals (`"\"" [^"]* "\""` in `string ::= "\"" [^"]* "\"" ws`).
    /// * A regular expression is one terminal.
    ///
    /// In `job ::= "\"job\"" ws ":" ws string` the terminals are `"job"`, `ws`, `:` and `string`. Automata
    /// may have 16 times as many states as folded ones before they fall apart into smaller terminals.
    Written,
}
