//! Decides whether a text is complete and nothing but white space can follow it.
//!
//! Decided on what the threads and the boundary of a state may still read: a terminal is blank if every text
//! of it is white space, by its DFA beside one of white space; a rest of a production is blank if all
//! symbols in it are, and a nonterminal if all its productions are (a greatest fixed point). That is exact
//! for the context-free language. What only readers forbid (keys and items that would come twice), and what
//! greedy lexing forbids, counts as if it could follow, so that no text ends too early.

use super::constraint::{Constraint, TextEnd, TextPosition, TrailingSpace};
use crate::{
    ids::{ScanStateId, StateId},
    machine::{StateAutomaton, lock},
    program::{Program, is_blank},
};

impl StateAutomaton {
    /// Is the text complete in this state, and can nothing but white space follow?
    fn only_space_follows(&self, program: &Program, state: StateId) -> bool {
        let (cfg, scanner) = (&program.lowered.cfg, &program.lowered.scanner);
        let blank = |scan: ScanStateId| {
            let terminal = scanner.terminal(scan);
            is_blank(scanner.dfa(terminal), scanner.local(scan))
        };
        // Most texts that can go on go on by something else at once: they need no tables of the grammar.
        let starts = self.boundary(state).into_iter().flat_map(|set| self.parser().accepts(set));
        let starts = starts.map(|&terminal| scanner.start(terminal));
        if !self.is_complete(state)
            || !self.threads(state).iter().map(|thread| thread.scan).chain(starts).all(blank)
        {
            return false;
        }
        let rests = program.blank_rests().by_dot();
        let after_boundary = |set| self.parser().follows_only(cfg, rests, set, None);
        self.boundary(state).is_none_or(after_boundary)
            && self.threads(state).iter().all(|thread| {
                self.parser().follows_only(cfg, rests, thread.set, Some(scanner.terminal(thread.scan)))
            })
    }
}

impl Constraint {
    /// May anything but end of text follow? At most 256 lookups for each thread; makes no state and no mask.
    #[doc(hidden)]
    pub fn can_go_on(&self) -> bool {
        let TextPosition::In(state) = self.here else { return false };
        let machine = lock(&self.machine);
        let scanner = &self.program.lowered.scanner;
        let mut boundary = machine.boundary(state).into_iter();
        boundary.any(|set| machine.parser().accepts(set).iter().next().is_some())
            || machine.threads(state).iter().any(|thread| scanner.goes_on(thread.scan))
    }

    /// Sets what becomes of white space behind the text, for the decoders that ask for its end. Masks are the
    /// same whatever it is. Default: [`TrailingSpace::Stop`].
    #[must_use]
    pub fn trailing_space(mut self, trailing: TrailingSpace) -> Self {
        self.trailing = trailing;
        self
    }

    /// Tells why the text must end here, if it must: it is complete, and nothing can follow but perhaps
    /// white space that is [not wanted](Self::trailing_space).
    #[doc(hidden)]
    pub fn end(&self) -> Option<TextEnd> {
        if !self.is_complete() {
            None
        } else if !self.can_go_on() {
            Some(TextEnd::Nothing)
        } else {
            let stops = self.trailing == TrailingSpace::Stop && self.only_space_follows();
            stops.then_some(TextEnd::OnlySpace)
        }
    }

    /// Is the text complete, and is whatever can follow it white space (the characters of Unicode's property
    /// `White_Space`), or nothing? Then a model that goes on adds nothing to the text: the decoders of this
    /// crate end it here, unless [`TrailingSpace::Keep`] is set.
    ///
    /// By the grammar, not by tries: exact, but that white space alone must be what its rules allow. What
    /// keys or items that may not come twice, or greedy lexing, rule out counts as if it could follow.
    ///
    /// Makes no mask and takes no step. Of a text that can go on by something else it costs lookups of the
    /// terminals that may come; otherwise it is linear in the places of the grammar that are open, and the
    /// first time in the grammar.
    ///
    /// # Examples
    /// ```
    /// use domino::{Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary};
    /// let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build()?;
    /// let grammar = r#"root ::= "[" [0-9]* "]" ws   ws ::= [ \n]*"#;
    /// let grammar = Grammar::parse(Syntax::Gbnf, grammar, &Limits::default())?;
    /// let mut constraint = Compiler::new(vocabulary).compile(&grammar)?.constraint();
    /// constraint.advance_bytes(b"[12")?;
    /// assert!(!constraint.only_space_follows());
    /// constraint.advance_bytes(b"]")?;
    /// assert!(constraint.only_space_follows());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn only_space_follows(&self) -> bool {
        match self.here {
            TextPosition::In(state) => lock(&self.machine).only_space_follows(&self.program, state),
            TextPosition::Ended(_) => true,
        }
    }
}
