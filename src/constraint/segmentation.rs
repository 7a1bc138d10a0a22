//! Assigns the bytes of a text to terminals, over all readings of the text (forward-backward).
//!
//! The forward pass finds the threads after each byte. Unlike in `StateAutomaton::step`, the parser sets in
//! which a terminal may have ended are not merged, so a thread knows what was read before it. The backward
//! pass drops the threads from which the rest cannot be read. The remaining threads lie on a reading of the
//! whole text: exact, ambiguity included.

use std::ops::Range;

use hashbrown::HashMap;

use super::{
    constraint::Constraint, error::StepError, program::Program, state_automaton::StateAutomaton,
    states::Thread,
};
use crate::{
    ids::{StateId, TerminalId},
    limits::{LimitExceeded, Work},
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
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Compiler, Grammar, Limits, Syntax, Terminals, TokenId, Vocabulary};

    fn constraint(grammar: &str) -> Constraint {
        let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build().unwrap();
        let grammar = Grammar::parse(Syntax::Gbnf, grammar, &Limits::default()).unwrap();
        let compiler = Compiler::new(vocabulary).terminals(Terminals::Written);
        compiler.compile(&grammar).unwrap().constraint()
    }

    /// Returns the runs with the terminals' names.
    fn named(constraint: &mut Constraint, text: &str) -> Option<Vec<(String, Vec<String>)>> {
        let runs = constraint.terminal_runs(text.as_bytes()).unwrap()?;
        let names = constraint.look(|program, _, _| program.lowered.terminal_names());
        let run = |run: &TerminalRun| {
            let names = run.terminals.iter().map(|terminal| names[terminal.index()].clone()).collect();
            (text[run.bytes.clone()].to_owned(), names)
        };
        Some(runs.iter().map(run).collect())
    }

    fn plain(runs: &[(&str, &[&str])]) -> Option<Vec<(String, Vec<String>)>> {
        let run = |(text, names): &(&str, &[&str])| {
            ((*text).to_owned(), names.iter().map(|name| (*name).to_owned()).collect())
        };
        Some(runs.iter().map(run).collect())
    }

    #[test]
    fn the_future_decides_between_readings() {
        let grammar = r#"root ::= a "!" | b "?"   a ::= [a-m]+ [0-9]   b ::= [a-z]+ [0-9]+"#;
        let mut constraint = constraint(grammar);
        let [ended, cut] = ["ab1?", "ab1"].map(|text| named(&mut constraint, text).unwrap());
        assert!(ended.iter().all(|(_, terminals)| terminals.len() == 1), "{ended:?}");
        assert!(cut.iter().all(|(_, terminals)| terminals.len() == 2), "{cut:?}");
        assert_eq!(named(&mut constraint, "ab1??"), None);
        assert_eq!(named(&mut constraint, ""), Some(Vec::new()));
        // From a place in the middle of a terminal on.
        assert_eq!(constraint.advance_bytes(b"a").unwrap(), 1);
        let rest = named(&mut constraint, "b1?").unwrap();
        assert_eq!(rest.concat_texts(), "b1?");
        assert_eq!(rest.len(), ended.len());
    }

    trait Texts {
        fn concat_texts(&self) -> String;
    }

    impl Texts for Vec<(String, Vec<String>)> {
        fn concat_texts(&self) -> String {
            self.iter().map(|(text, _)| text.as_str()).collect()
        }
    }

    #[test]
    fn terminals_that_repeat_are_told_apart() {
        let mut constraint = constraint(r#"root ::= "(" root ")" | x   x ::= "a" | "b" x "b""#);
        let expected: [(&str, &[&str]); 5] =
            [("(", &["\"(\""]), ("(", &["\"(\""]), ("a", &["\"a\""]), (")", &["\")\""]), (")", &["\")\""])];
        assert_eq!(named(&mut constraint, "((a))"), plain(&expected));
    }

    /// One reading: terminals and their bytes.
    type Reading = Vec<(TerminalId, Range<usize>)>;

    /// Lists every reading by itself: the terminals it goes through, as spans.
    fn all_readings(constraint: &Constraint, text: &[u8]) -> Vec<Reading> {
        struct Walk<'a> {
            program: &'a Program,
            machine: &'a mut StateAutomaton,
            text: &'a [u8],
            found: Vec<(bool, Reading)>,
        }
        impl Walk<'_> {
            fn from(&mut self, at: usize, set: crate::ids::SetId, spans: &mut Reading) {
                let work = &mut Work::unlimited();
                let program = self.program;
                let step = |scan, byte| program.lowered.scanner.step(scan, byte).unwrap();
                for terminal in self.machine.parser().accepts(set).to_vec() {
                    let mut scan = self.program.lowered.scanner.start(terminal);
                    for end in at..self.text.len() {
                        let Some(to) = step(scan, self.text[end]) else { break };
                        scan = to;
                        spans.push((terminal, at..end + 1));
                        let accepts = self.program.lowered.scanner.accepts(scan);
                        let shifted = if accepts {
                            let cfg = &self.program.lowered.cfg;
                            self.machine.parser_mut().shift(cfg, set, terminal, work).unwrap()
                        } else {
                            None
                        };
                        if end + 1 == self.text.len() {
                            let complete = shifted.is_some_and(|set| self.machine.parser().is_complete(set));
                            self.found.push((complete, spans.clone()));
                        } else if let Some(set) = shifted {
                            self.from(end + 1, set, spans);
                        }
                        spans.pop();
                    }
                }
            }
        }
        let program = std::sync::Arc::clone(&constraint.program);
        let mut machine = StateAutomaton::new(&program).unwrap();
        let start = machine.boundary(machine.start()).unwrap();
        let mut walk = Walk { program: &program, machine: &mut machine, text, found: Vec::new() };
        walk.from(0, start, &mut Vec::new());
        let complete = walk.found.iter().any(|(complete, _)| *complete);
        walk.found.into_iter().filter(|(whole, _)| !complete || *whole).map(|(_, spans)| spans).collect()
    }

    /// Merges readings that were listed one by one into runs.
    fn slow(readings: &[Reading], length: usize) -> Option<Vec<TerminalRun>> {
        if readings.is_empty() {
            return None;
        }
        let spans = || readings.iter().flatten();
        let mut runs: Vec<TerminalRun> = Vec::new();
        for at in 0..length {
            let mut terminals: Vec<TerminalId> =
                spans().filter(|(_, bytes)| bytes.contains(&at)).map(|(terminal, _)| *terminal).collect();
            terminals.sort_unstable();
            terminals.dedup();
            let begins = spans().any(|(_, bytes)| bytes.start == at);
            match runs.last_mut().filter(|run| !begins && run.terminals == terminals) {
                Some(run) => run.bytes.end = at + 1,
                None => runs.push(TerminalRun { bytes: at..at + 1, terminals }),
            }
        }
        Some(runs)
    }

    proptest! {
        #[test]
        fn as_one_reading_after_the_other(which in 0..5_usize, text in "[ab(), ]{1,7}") {
            let grammar = [
                r#"root ::= x root | x   x ::= "a" | "ab" | "b" | [ab]+ "," | "(" root ")""#,
                r#"root ::= "(" root ")" | a b | b a   a ::= [ab]+   b ::= "b"* "," | [a]+"#,
                r#"root ::= l   l ::= x ws ("," ws x ws)*   x ::= "(" ws x ws ")" | [ab]  ws ::= [ ]*"#,
                r#"root ::= root root | "a" | "(" root ")" | "aa""#,
                r#"root ::= s s | s   s ::= "a" s "b" | [ab]* | "(" s ")" [ ,]*"#,
            ][which];
            let mut constraint = constraint(grammar);
            let readings = all_readings(&constraint, text.as_bytes());
            let found = constraint.terminal_runs(text.as_bytes()).unwrap();
            prop_assert_eq!(found, slow(&readings, text.len()));
        }
    }
}
