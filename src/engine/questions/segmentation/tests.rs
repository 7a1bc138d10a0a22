//! Segmentations of a text into terminals, held to all readings of it, one after the other.

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
fn later_text_decides_between_segmentations() {
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
fn terminals_that_repeat_are_separate_runs() {
    let mut constraint = constraint(r#"root ::= "(" root ")" | x   x ::= "a" | "b" x "b""#);
    let expected: [(&str, &[&str]); 5] =
        [("(", &["\"(\""]), ("(", &["\"(\""]), ("a", &["\"a\""]), (")", &["\")\""]), (")", &["\")\""])];
    assert_eq!(named(&mut constraint, "((a))"), plain(&expected));
}

/// One reading: terminals and their bytes.
type TextSpans = Vec<(TerminalId, Range<usize>)>;

/// Lists every reading by itself: the terminals it goes through, as spans.
fn all_readings(constraint: &Constraint, text: &[u8]) -> Vec<TextSpans> {
    struct SlowWalk<'a> {
        program: &'a Program,
        machine: &'a mut StateAutomaton,
        text: &'a [u8],
        found: Vec<(bool, TextSpans)>,
    }
    impl SlowWalk<'_> {
        fn from(&mut self, at: usize, set: crate::ids::SetId, spans: &mut TextSpans) {
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
    let mut walk = SlowWalk { program: &program, machine: &mut machine, text, found: Vec::new() };
    walk.from(0, start, &mut Vec::new());
    let complete = walk.found.iter().any(|(complete, _)| *complete);
    walk.found.into_iter().filter(|(whole, _)| !complete || *whole).map(|(_, spans)| spans).collect()
}

/// Merges readings that were listed one by one into runs.
fn slow(readings: &[TextSpans], length: usize) -> Option<Vec<TerminalRun>> {
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
    fn terminal_runs_are_those_of_all_readings(which in 0..5_usize, text in "[ab(), ]{1,7}") {
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
