//! The place of a text in the grammar with its stack forgotten: the key under which counts of tokens are
//! filed (paper, 3.6).
//!
//! Invariant: a context follows from the text and the compiled grammar alone. It is made of terminals,
//! scanner states and dotted rules, which lowering numbers in the grammar's order, never of the numbers of
//! sets and states, which depend on what was met first. So it means the same in every run and on every
//! machine.

use super::{memos::contexts::Context, state_automaton::StateAutomaton};
use crate::{
    grammar::any_order::Chosen,
    ids::{SetId, StateId},
    program::Program,
    split_mix::mixed,
};

/// One hash for a set of hashes.
fn of_set(mut hashes: Vec<u64>) -> u64 {
    hashes.sort_unstable();
    hashes.dedup();
    hashes.into_iter().fold(0, mixed)
}

impl Context {
    /// Computes the context of a state of `machine`. Linear in its threads and the kernels of their parser
    /// sets.
    pub(super) fn work_out(program: &Program, machine: &StateAutomaton, state: StateId) -> Self {
        const BEGUN: u64 = 1;
        let scanner = &program.lowered.scanner;
        let parser = machine.parser();
        let mut alpha = Vec::new();
        let mut beta = Vec::new();
        let kernel = |set: SetId, salt: u64| {
            let dots = parser.kernel_dots(&program.lowered.cfg, set).map(|(dot, chosen)| {
                let words = chosen.into_iter().flat_map(Chosen::words);
                words.fold(u64::from(dot.0), mixed)
            });
            mixed(of_set(dots.collect()), salt)
        };
        for thread in machine.threads(state) {
            let (terminal, name) = (scanner.terminal(thread.scan), scanner.name(thread.scan));
            alpha.push(mixed(mixed(BEGUN, terminal.raw().into()), name));
            beta.push(kernel(thread.set, BEGUN));
        }
        if let Some(set) = machine.boundary(state) {
            alpha.extend(parser.accepts(set).iter().map(|terminal| mixed(0, terminal.raw().into())));
            alpha.push(u64::from(parser.is_complete(set)));
            beta.push(kernel(set, 0));
        }
        Self { alpha: of_set(alpha), beta: of_set(beta) }
    }
}

impl StateAutomaton {
    /// Returns the state's key for counts of tokens. Cached by state.
    pub(crate) fn context(&mut self, shared: &Program, state: StateId) -> Context {
        let known = self.contexts.get(state);
        known.unwrap_or_else(|| {
            let context = Context::work_out(shared, self, state);
            self.contexts.keep(state, context);
            context
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Compiler, Constraint, Grammar, Limits, Syntax, TokenId, Vocabulary};

    const GRAMMAR: &str = r#"root ::= v   v ::= "[" (v ("," v)*)? "]" | n   n ::= [0-9]+ ("." [0-9]+)?"#;

    fn session() -> Constraint {
        let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build().unwrap();
        let grammar = Grammar::parse(Syntax::Gbnf, GRAMMAR, &Limits::default()).unwrap();
        Compiler::new(vocabulary).compile(&grammar).unwrap().constraint()
    }

    fn after(session: &Constraint, text: &str) -> Context {
        let mut session = session.clone();
        assert_eq!(session.advance_bytes(text.as_bytes()).unwrap(), text.len());
        session.context()
    }

    #[test]
    fn contexts_do_not_depend_on_earlier_texts() {
        let texts = ["[", "[[1.5", "[1,[2,3],", "[[[]],4", "17", "[1,2]"];
        let (one, other) = (session(), session());
        let forwards = texts.map(|text| after(&one, text));
        let mut backwards = texts;
        backwards.reverse();
        let mut found = backwards.map(|text| after(&other, text));
        found.reverse();
        assert_eq!(forwards, found);
    }

    #[test]
    fn contexts_differ_in_all_but_the_stack() {
        let session = session();
        // A first and a later element of a list are at different places of its rule.
        assert_eq!(after(&session, "[[2,3,"), after(&session, "[[[[4,[5],"));
        let different = ["", "[", "[1", "[1.", "[1.5", "[1,", "[]", "1"].map(|text| after(&session, text));
        for (at, one) in different.iter().enumerate() {
            assert!(!different[..at].contains(one), "{at}");
        }
    }
}
