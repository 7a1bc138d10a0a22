//! The oracle of finite lookahead: counts the terminals that a token begins, by brute force.
//!
//! Lookahead counts the terminals of the lowered grammar, so these and its productions are taken as given;
//! how they are read is not. The grammar becomes one over bytes in which every byte of the text and of the
//! token has a mark before it, and so has the beginning of a terminal, but only inside the token:
//!
//! * text `x` is `T x`, token `x` is `N x`;
//! * a terminal that begins in the text is `T x1 .. T xm N x(m+1) .. N xn`, with `m > 0`;
//! * a terminal that begins in the token is `B N x1 .. N xn`.
//!
//! A way to read the token is a way to put `B` between its bytes. All ways are tried, by the oracle's
//! recogniser.

use regex_syntax::hir::{Class, ClassBytes, ClassBytesRange};

use crate::{
    compile::CompiledGrammar,
    grammar::{GrammarBuilder, Pattern, Span, regular::RawDfa, spelled::Unfolded},
    ids::ExprId,
    limits::{Budget, LimitExceeded, Limits},
    lower::{AfterDot, AnyOrderList, Cfg},
    oracle::{Oracle, OracleError, Session},
    scanner::{NONE, TerminalDfa},
};

/// The mark of a byte of the text.
const TEXT: u8 = b'T';
/// The mark of a byte of the token.
const TOKEN: u8 = b'N';
/// The mark of a terminal that begins inside the token.
const BEGIN: u8 = b'B';

/// Counts the further terminals of tokens in one grammar, with the terminals it was compiled with.
#[derive(Debug)]
pub struct FurtherTerminals {
    oracle: Oracle,
}

/// A text in progress.
#[derive(Debug)]
pub struct FurtherSession<'o> {
    session: Session<'o>,
}

impl FurtherTerminals {
    /// Creates the counter of `grammar`. Linear in its productions and in the sizes of its automata.
    ///
    /// # Errors
    /// If the grammar over bytes would have more than 50 million symbols.
    pub fn new(grammar: &CompiledGrammar) -> Result<Self, OracleError> {
        let lowered = &grammar.program().lowered;
        let mut build = Build(GrammarBuilder::new(&Limits::default()));
        for (number, dfa) in lowered.scanner.dfas().iter().enumerate() {
            build.terminal(number, dfa)?;
        }
        for nonterminal in lowered.cfg.nonterminals() {
            let number = nonterminal.0;
            let mut rows = Vec::new();
            if let Some(list) = lowered.cfg.lists().of_symbol(nonterminal) {
                let list = build.list(&lowered.cfg, lowered.cfg.lists().get(list))?;
                build.define(&format!("n{number}"), vec![list])?;
                continue;
            }
            for &first in lowered.cfg.productions(nonterminal) {
                let row = lowered.cfg.symbols(first).map(|symbol| build.symbol(symbol));
                let row = row.collect::<Result<_, _>>()?;
                rows.push(build.0.sequence(row, Span::default())?);
            }
            build.define(&format!("n{number}"), rows)?;
        }
        let grammar = build.0.finish("n0").map_err(|_| OracleError::LookAround)?;
        Ok(Self { oracle: Oracle::new(&grammar)? })
    }

    /// Starts a session at the empty text.
    #[must_use]
    pub fn session(&self) -> FurtherSession<'_> {
        FurtherSession { session: self.oracle.session() }
    }
}

impl FurtherSession<'_> {
    /// Appends text. Returns `false`, and has not moved, if the text would be no viable prefix.
    pub fn push(&mut self, text: &[u8]) -> bool {
        let marked: Vec<u8> = text.iter().flat_map(|&byte| [TEXT, byte]).collect();
        self.session.push_all(&marked)
    }

    /// Returns the least number of terminals that `token` (at least one byte) begins past the first one it
    /// touches, over all ways to read it after the text; `None` if it cannot follow. Leaves the text as it
    /// is. Exponential in the token's length.
    #[must_use]
    pub fn further(&mut self, token: &[u8]) -> Option<u32> {
        let mut least = None;
        self.read(token, 0, 0, &mut least);
        least
    }

    /// Reads the token from byte `at` on in all ways, with `further` terminals begun so far (depth-first).
    fn read(&mut self, token: &[u8], at: usize, further: u32, least: &mut Option<u32>) {
        if least.is_some_and(|least| least <= further) {
            return;
        }
        let Some(&byte) = token.get(at) else {
            *least = Some(further);
            return;
        };
        let inside: &[u8] = &[TOKEN, byte];
        let begins: &[u8] = &[BEGIN, TOKEN, byte];
        for (marked, more) in [(inside, 0), (begins, u32::from(at > 0))] {
            if self.session.push_all(marked) {
                self.read(token, at + 1, further + more, least);
                marked.iter().for_each(|_| {
                    self.session.pop();
                });
            }
        }
    }
}

/// Builds the marked grammar.
struct Build(GrammarBuilder);

impl Build {
    fn rule(&mut self, name: &str) -> Result<ExprId, LimitExceeded> {
        self.0.rule_ref(name, Span::default())
    }

    fn symbol(&mut self, symbol: AfterDot) -> Result<ExprId, LimitExceeded> {
        match symbol {
            AfterDot::Terminal(terminal) => self.rule(&format!("t{}", terminal.index())),
            AfterDot::Nonterminal(part) | AfterDot::End(part) => self.rule(&format!("n{}", part.index())),
        }
    }

    fn list(&mut self, cfg: &Cfg, list: &AnyOrderList) -> Result<ExprId, LimitExceeded> {
        let parts = list.parts.iter().map(|&part| self.symbol(AfterDot::Nonterminal(part)));
        let parts: Vec<ExprId> = parts.collect::<Result<_, _>>()?;
        let separator = self.symbol(cfg.slot(list.between))?;
        self.0.any_order(list.choice.with(&parts, separator), Span::default())
    }

    fn define(&mut self, name: &str, ways: Vec<ExprId>) -> Result<(), LimitExceeded> {
        let body = self.0.alternatives(ways, Span::default())?;
        // Names are made of numbers, so none is defined twice.
        let _ = self.0.define(name, body, Span::default());
        Ok(())
    }

    /// Defines rule `t`, and two rules for each state: one for the text and what follows, one for the token.
    fn terminal(&mut self, number: usize, dfa: &TerminalDfa) -> Result<(), LimitExceeded> {
        if let Some((bounded, _)) = dfa.bounded() {
            let most = Limits::default().dfa_states;
            let product = TerminalDfa::from_raw(RawDfa::from(&bounded.product(most)?));
            return product.map_or(Ok(()), |dfa| self.terminal(number, &dfa));
        }
        if let Some((spelled, _)) = dfa.spelled() {
            let most = Limits::default().dfa_states;
            let product = TerminalDfa::from_raw(RawDfa::from(&spelled.product(most)?));
            return product.map_or(Ok(()), |dfa| self.terminal(number, &dfa));
        }
        if !dfa.is_table() {
            return Err(LimitExceeded::new(Budget::DfaStates, "DFA states of a terminal", 0));
        }
        let mut ways = self.steps(dfa, 0, &[TEXT], &format!("text{number}."))?;
        ways.extend(self.steps(dfa, 0, &[BEGIN, TOKEN], &format!("token{number}."))?);
        self.define(&format!("t{number}"), ways)?;
        for state in 0..dfa.len() {
            let end = if dfa.accepting()[state] {
                Some(self.0.sequence(Vec::new(), Span::default())?)
            } else {
                None
            };
            let in_token = self.steps(dfa, state, &[TOKEN], &format!("token{number}."))?;
            let mut in_text = self.steps(dfa, state, &[TEXT], &format!("text{number}."))?;
            in_text.extend(in_token.iter().chain(&end));
            self.define(&format!("text{number}.{state}"), in_text)?;
            self.define(&format!("token{number}.{state}"), in_token.into_iter().chain(end).collect())?;
        }
        Ok(())
    }

    /// Returns, for every byte, the marks, the byte, and the state it leads to, as a rule whose name begins
    /// with `prefix`.
    fn steps(
        &mut self,
        dfa: &TerminalDfa,
        state: usize,
        marks: &[u8],
        prefix: &str,
    ) -> Result<Vec<ExprId>, LimitExceeded> {
        let to = |byte: u8| {
            dfa.transitions()[state * dfa.class_count() + usize::from(dfa.classes()[usize::from(byte)])]
        };
        let mut targets: Vec<u32> = (0..=u8::MAX).map(to).filter(|&to| to != NONE).collect();
        targets.sort_unstable();
        targets.dedup();
        let mut ways = Vec::new();
        for target in targets {
            let bytes = (0..=u8::MAX).filter(|&byte| to(byte) == target);
            let class = ClassBytes::new(bytes.map(|byte| ClassBytesRange::new(byte, byte)));
            let marks = self.0.pattern(Pattern::literal(marks), Span::default())?;
            let byte = self.0.pattern(Pattern::byte_class(Class::Bytes(class)), Span::default())?;
            let rest = self.rule(&format!("{prefix}{target}"))?;
            ways.push(self.0.sequence(vec![marks, byte, rest], Span::default())?);
        }
        Ok(ways)
    }
}
