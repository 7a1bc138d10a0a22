//! Regular expressions: read or refused with places inside the text, compiled, walked, and held against an
//! automaton that is built from the same text without the library. There must be a warning where a bracket in
//! a class is a literal here and opens a class there.

use std::cell::LazyCell;

use domino::{Syntax, grammar::GrammarWarningKind};
use regex_automata::{
    Anchored, Input, MatchKind,
    dfa::{Automaton, StartKind, dense},
    nfa::thompson,
};
use regex_syntax::hir::{Hir, Look};

use super::walk;

/// Names of groups that are languages here, and mean nothing there.
const NAMED: [&str; 6] = [
    "QUOTED_TEXT",
    "UNQUOTED_TEXT",
    "TEXT_UNTIL",
    "SUBSTRING_OF",
    "DELIMITED_LIST",
    "DELIMITED_SUBSEQUENCE_OF",
];

/// Fails if a regular expression is mishandled.
pub fn check(data: &[u8]) {
    let Some(grammar) = walk::read(Syntax::Regex, data) else { return };
    let text = std::str::from_utf8(data).expect("what is read is UTF-8");
    for warning in grammar.warnings() {
        let span = warning.place().span();
        assert!(text.get(span.range()).is_some_and(|marked| !marked.is_empty()), "{span:?} of a warning");
    }
    let named = NAMED.iter().any(|name| text.contains(&format!("<{name}>")));
    let another =
        named || grammar.warnings().iter().any(|warning| warning.kind() == GrammarWarningKind::NestedClass);
    let automaton = LazyCell::new(|| if another { None } else { automaton(text) });
    walk::walk(&grammar, data, |text, complete| {
        let Some(automaton) = &*automaton else { return };
        let found =
            automaton.try_search_fwd(&Input::new(text).anchored(Anchored::Yes)).expect("no quit bytes");
        assert_eq!(complete, found.is_some(), "{:?}", text.escape_ascii().to_string());
    });
}

/// The automaton of whole texts that `regex` matches, if it is small.
fn automaton(regex: &str) -> Option<dense::DFA<Vec<u32>>> {
    let hir = regex_syntax::ParserBuilder::new().utf8(false).build().parse(regex).ok()?;
    let whole = Hir::concat(vec![Hir::look(Look::Start), hir, Hir::look(Look::End)]);
    let nfa = thompson::Compiler::new()
        .configure(thompson::Config::new().utf8(false).nfa_size_limit(Some(1 << 16)))
        .build_from_hir(&whole)
        .ok()?;
    let config = dense::Config::new()
        .match_kind(MatchKind::All)
        .start_kind(StartKind::Anchored)
        .determinize_size_limit(Some(1 << 18))
        .dfa_size_limit(Some(1 << 18));
    dense::Builder::new().configure(config).build_from_nfa(&nfa).ok()
}
