//! Questions about a text: its shortest completion, its terminals, the characters and bytes that may come
//! next, and where it is in the grammar.
//!
//! *Invariant:* an answer moves nothing, and no mask and no step depends on what was asked.
//!
//! Below it is the session that is asked. Which parts of a text named rules have matched is a question of its
//! own, with a parse of its own: `captures`.

mod completion;
mod next_characters;
mod segmentation;

use crate::ids::{SetId, TerminalId};
use crate::machine::{StateAutomaton, lock};
use crate::session::{Constraint, StepError, TextPosition};

pub use completion::Completion;
pub use next_characters::NextChars;
pub use segmentation::TerminalRun;

/// One live thread, for display: where the text may be in the grammar.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct ThreadView {
    /// Number of the parser set in which the terminal was started. Distinguishes threads of one moment only.
    pub parser_set: u32,
    /// The terminal, as its rule's name or as a regular expression.
    pub terminal: String,
    /// The terminal's number, as in [`inspect`](crate::inspect).
    #[serde(skip)]
    pub number: TerminalId,
    /// Is the text inside the terminal? Otherwise the terminal may come next.
    pub begun: bool,
    /// State of the terminal's DFA; 0 is its start, to which it may come back.
    pub scanner_state: u32,
    /// May the terminal end here?
    pub may_end: bool,
    /// Dotted rules of the parser set that wait for the terminal.
    pub items: Vec<String>,
}

impl Constraint {
    /// The bytes that may follow, ascending; for messages. 256 lookups.
    ///
    /// # Errors
    /// When a budget is used up.
    pub fn next_bytes(&mut self) -> Result<Vec<u8>, StepError> {
        let TextPosition::In(mut state) = self.here else { return Ok(Vec::new()) };
        let mut found = self.run(&mut state, |machine, program, state, work| {
            let mut bytes = Vec::new();
            for byte in 0..=u8::MAX {
                if machine.step(program, state, byte, work)?.is_some() {
                    bytes.push(byte);
                }
            }
            Ok(bytes)
        })?;
        if !self.readers.are_none() {
            for byte in std::mem::take(&mut found) {
                found.extend(self.leads(&[byte])?.is_ok().then_some(byte));
            }
            self.keep_closing(&mut found);
        }
        Ok(found)
    }

    /// The threads of the text: those inside a terminal, then the terminals that may start.
    #[must_use]
    pub fn threads(&self) -> Vec<ThreadView> {
        let TextPosition::In(state) = self.here else { return Vec::new() };
        let machine = lock(&self.machine);
        let scanner = &self.program.lowered.scanner;
        let inside = machine.threads(state).iter().map(|thread| (true, thread.set, thread.scan));
        let starting = machine.boundary(state).into_iter().flat_map(|set| {
            machine.parser().accepts(set).iter().map(move |&terminal| (false, set, scanner.start(terminal)))
        });
        inside
            .chain(starting)
            .map(|(begun, set, scan)| {
                let terminal = scanner.terminal(scan);
                ThreadView {
                    parser_set: set.raw(),
                    terminal: self.program.lowered.terminal_name(terminal),
                    number: terminal,
                    begun,
                    scanner_state: scanner.local(scan),
                    may_end: scanner.accepts(scan),
                    items: self.items(&machine, set, terminal),
                }
            })
            .collect()
    }

    fn items(&self, machine: &StateAutomaton, set: SetId, terminal: TerminalId) -> Vec<String> {
        let lowered = &self.program.lowered;
        let mut items: Vec<String> =
            machine.parser().waiting(&lowered.cfg, set, terminal).map(|dot| lowered.show(dot)).collect();
        items.dedup();
        items
    }
}

#[cfg(test)]
mod tests {
    use crate::{Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary};

    #[test]
    fn a_terminal_that_is_back_at_its_start_has_begun() {
        let vocabulary = Vocabulary::builder()
            .token(TokenId::new(0), "a")
            .token(TokenId::new(1), "b")
            .token(TokenId::new(2), "c")
            .end_of_text(TokenId::new(3))
            .build()
            .unwrap();
        let grammar = Grammar::parse(Syntax::Regex, "(ab)*c", &Limits::default()).unwrap();
        let mut constraint = Compiler::new(vocabulary).compile(&grammar).unwrap().constraint();
        for (text, begun, state) in [("", false, 0), ("ab", true, 0)] {
            assert_eq!(constraint.advance_bytes(text.as_bytes()).unwrap(), text.len());
            let threads = constraint.threads();
            assert_eq!(threads.len(), 1);
            assert_eq!((threads[0].begun, threads[0].scanner_state), (begun, state), "{text}");
        }
    }
}
