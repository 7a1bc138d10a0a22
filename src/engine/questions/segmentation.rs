//! Assigns the bytes of a text to terminals, over all readings of the text (forward-backward).
//!
//! The forward pass finds the threads after each byte. Unlike in `StateAutomaton::step`, the parser sets in
//! which a terminal may have ended are not merged, so a thread knows what was read before it. The backward
//! pass drops the threads from which the rest cannot be read. The remaining threads lie on a reading of the
//! whole text: exact, ambiguity included.

use std::ops::Range;

use hashbrown::HashMap;

use crate::{
    ids::{StateId, TerminalId},
    limits::{LimitExceeded, Work},
    machine::StateAutomaton,
    program::{Program, Thread},
    session::{Constraint, StepError},
};

/// Bytes of a text that belong to the same terminals.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TerminalRun {
    /// The bytes, by offset in the text. At the first of them a terminal begins in at least one reading, or
    /// readings part or meet.
    pub bytes: Range<usize>,
    /// The terminals that the bytes may belong to, ascending; more than one only where the text is
    /// ambiguous. Their names are in [`Inspection::terminals`](crate::inspect::Inspection::terminals).
    pub terminals: Vec<TerminalId>,
}

/// A step from a thread to one after the next byte; `None` is the boundary before the text.
struct ThreadEdge {
    from: Option<usize>,
    to: usize,
    /// Does a terminal begin with the byte?
    begins: bool,
}

/// The threads after a byte, and the steps to them.
struct Layer {
    threads: Vec<Thread>,
    edges: Vec<ThreadEdge>,
}

impl Constraint {
    /// Assigns the bytes of `text` to terminals if it comes next: runs in order and without gaps. If the text
    /// may end there, complete readings count, otherwise those that can go on. `None` if it cannot follow.
    /// Nothing moves. Costs a step for each byte and thread, and keeps them all until the end.
    ///
    /// # Errors
    /// When a budget is used up; the whole text is one step.
    ///
    /// # Examples
    /// ```
    /// use domino::{Compiler, Grammar, Limits, Syntax, Terminals, TokenId, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build()?;
    /// let grammar = "root ::= name \"=\" number\nname ::= [a-z]+\nnumber ::= [0-9]+";
    /// let grammar = Grammar::parse(Syntax::Gbnf, grammar, &Limits::default())?;
    /// let compiler = Compiler::new(vocabulary).terminals(Terminals::Written);
    /// let mut constraint = compiler.compile(&grammar)?.constraint();
    /// let runs = constraint.terminal_runs(b"ab=12")?.ok_or("it cannot follow")?;
    /// let bytes: Vec<_> = runs.iter().map(|run| run.bytes.clone()).collect();
    /// assert_eq!(bytes, [0..2, 2..3, 3..5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn terminal_runs(&mut self, text: &[u8]) -> Result<Option<Vec<TerminalRun>>, StepError> {
        if self.is_ended() {
            return Ok(text.is_empty().then(Vec::new));
        }
        let mut state = self.here.state();
        self.run_over(&mut state, text.len(), |machine, program, state, work| {
            machine.readings(program, state, text, work)
        })
    }
}

impl StateAutomaton {
    /// Returns the runs of `text` after `state`.
    fn readings(
        &mut self,
        program: &Program,
        state: StateId,
        text: &[u8],
        work: &mut Work,
    ) -> Result<Option<Vec<TerminalRun>>, LimitExceeded> {
        let mut layers = Vec::with_capacity(text.len());
        let mut before = self.threads(state).to_vec();
        for (at, &byte) in text.iter().enumerate() {
            let boundary = if at == 0 { Some(state) } else { None };
            let layer = self.layer(program, &before, boundary, byte, work)?;
            if layer.threads.is_empty() {
                return Ok(None);
            }
            before.clone_from(&layer.threads);
            layers.push(layer);
        }
        let ends = self.ends(program, &before, work)?;
        Ok(Some(runs(program, &layers, ends)))
    }

    /// Returns the threads after one more byte.
    fn layer(
        &mut self,
        program: &Program,
        before: &[Thread],
        boundary: Option<StateId>,
        byte: u8,
        work: &mut Work,
    ) -> Result<Layer, LimitExceeded> {
        let (scanner, cfg) = (&program.lowered.scanner, &program.lowered.cfg);
        let mut layer = Layer { threads: Vec::new(), edges: Vec::new() };
        let mut known: HashMap<Thread, usize> = HashMap::new();
        // Adds a step by the byte. Threads that are equal after it are one.
        let mut reach = |from: Option<usize>, begins: bool, thread: Thread| {
            let scan = scanner.step(thread.scan, byte).map_err(|limit| *limit)?;
            let Some(scan) = scan else { return Ok::<(), LimitExceeded>(()) };
            let next = Thread { set: thread.set, scan };
            let to = *known.entry(next).or_insert_with(|| {
                layer.threads.push(next);
                layer.threads.len() - 1
            });
            layer.edges.push(ThreadEdge { from, to, begins });
            Ok(())
        };
        // Before the text no terminal need be open: all that the parser accepts may begin.
        if let Some(set) = boundary.and_then(|state| self.boundary(state)) {
            let starts = self.parser().accepts(set);
            work.spend(2 * starts.len())?;
            for &terminal in starts {
                reach(None, true, Thread { set, scan: scanner.start(terminal) })?;
            }
        }
        // An open terminal goes on with the byte; where it may have ended, another one may begin.
        for (from, &thread) in before.iter().enumerate() {
            work.spend(4)?;
            reach(Some(from), false, thread)?;
            if !scanner.accepts(thread.scan) {
                continue;
            }
            // If a terminal may have ended before this byte, the next one may begin with it.
            let ended = self.parser_mut().shift(cfg, thread.set, scanner.terminal(thread.scan), work)?;
            let Some(set) = ended else { continue };
            let starts = self.parser().accepts(set);
            work.spend(2 * starts.len())?;
            for &terminal in starts {
                reach(Some(from), true, Thread { set, scan: scanner.start(terminal) })?;
            }
        }
        Ok(layer)
    }

    /// Marks the final threads that count: those with which the text is complete, or all if there are none.
    fn ends(
        &mut self,
        program: &Program,
        threads: &[Thread],
        work: &mut Work,
    ) -> Result<Vec<bool>, LimitExceeded> {
        let (scanner, cfg) = (&program.lowered.scanner, &program.lowered.cfg);
        let mut complete = vec![false; threads.len()];
        for (thread, complete) in threads.iter().zip(&mut complete) {
            if scanner.accepts(thread.scan) {
                let ended = self.parser_mut().shift(cfg, thread.set, scanner.terminal(thread.scan), work)?;
                *complete = ended.is_some_and(|set| self.parser().is_complete(set));
            }
        }
        Ok(if complete.contains(&true) { complete } else { vec![true; threads.len()] })
    }
}

/// The backward pass: drops threads that reach no counting one, and lists the terminals of each byte.
fn runs(program: &Program, layers: &[Layer], ends: Vec<bool>) -> Vec<TerminalRun> {
    let scanner = &program.lowered.scanner;
    let mut alive = ends;
    let mut runs: Vec<TerminalRun> = Vec::new();
    // Does a terminal begin with the first byte of the run that was found last?
    let mut begun = true;
    for (at, layer) in layers.iter().enumerate().rev() {
        let living = layer.threads.iter().zip(&alive).filter(|(_, alive)| **alive);
        let mut terminals: Vec<TerminalId> =
            living.map(|(thread, _)| scanner.terminal(thread.scan)).collect();
        terminals.sort_unstable();
        terminals.dedup();
        match runs.last_mut().filter(|next| !begun && next.terminals == terminals) {
            Some(next) => next.bytes.start = at,
            None => runs.push(TerminalRun { bytes: at..at + 1, terminals }),
        }
        let earlier = at.checked_sub(1).map_or(0, |at| layers[at].threads.len());
        let mut before = vec![false; earlier];
        begun = false;
        for edge in layer.edges.iter().filter(|edge| alive[edge.to]) {
            begun |= edge.begins;
            if let Some(before) = edge.from.and_then(|from| before.get_mut(from)) {
                *before = true;
            }
        }
        alive = before;
    }
    runs.reverse();
    runs
}

#[cfg(test)]
mod tests;
