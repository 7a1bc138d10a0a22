//! White space between the parts of a value, and the punctuation that it is written with.
//!
//! A mark and the white space around it are one terminal, the same in every schema. So its subterminals are
//! computed once for a vocabulary, and a token such as `", "` takes two terminals only.

use super::{SchemaEmitter, states::ListFrame};
use crate::{
    grammar::{
        Automaton, Pattern,
        automaton::{AutomatonError, Edge, State},
        json_schema::{
            automata::{AutomataCache, recipe},
            error::Checked,
            leaf::LeafError,
            options::{SchemaOptions, WhiteSpace},
        },
    },
    ids::{ExprId, Numbered, as_index},
    limits::{AUTOMATON_STATES, LimitExceeded},
};

/// Limit on the line breaks in one run of white space: one ends a line, another leaves a line empty.
const MOST_BREAKS: usize = 2;
/// Limits on the indentation behind line breaks: that of eight levels, by four blanks or by one tab each.
const INDENTATION: [(&[u8], usize); 2] = [(b" ", 32), (b"\t", 8)];
/// Limit on the blanks and tabs in one run of [`WhiteSpace::Wide`].
const MOST_BLANKS: usize = 80;

/// A punctuation mark, with its white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Punctuation {
    /// The white space before and after the whole value.
    Around,
    OpenObject,
    CloseObject,
    EmptyObject,
    OpenArray,
    CloseArray,
    EmptyArray,
    Comma,
    Colon,
    /// The opening bracket of a call's arguments.
    OpenCall,
    CloseCall,
    EmptyCall,
    Equals,
}

/// The name of a mark's automaton with free runs of white space, bounded or not.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Free(Punctuation, WhiteSpace);
recipe!(Free, |_| 0, |_| true);

/// A piece of a mark.
#[derive(Debug, Clone, Copy)]
enum MarkPiece {
    /// A run of white space.
    Run,
    Byte(u8),
}

impl Punctuation {
    fn pieces(self, kind: WhiteSpace) -> &'static [MarkPiece] {
        use MarkPiece::{Byte, Run};
        match self {
            Self::Comma if kind == WhiteSpace::Flexible => &[Byte(b','), Run],
            Self::Colon if kind == WhiteSpace::Flexible => &[Byte(b':'), Run],
            Self::Around => &[Run],
            Self::OpenObject => &[Byte(b'{'), Run],
            Self::CloseObject => &[Run, Byte(b'}')],
            Self::EmptyObject => &[Byte(b'{'), Run, Byte(b'}')],
            Self::OpenArray => &[Byte(b'['), Run],
            Self::CloseArray => &[Run, Byte(b']')],
            Self::EmptyArray => &[Byte(b'['), Run, Byte(b']')],
            Self::Comma => &[Run, Byte(b','), Run],
            Self::Colon => &[Run, Byte(b':'), Run],
            Self::OpenCall => &[Byte(b'(')],
            Self::CloseCall => &[Byte(b')')],
            Self::EmptyCall => &[Byte(b'('), Byte(b')')],
            Self::Equals => &[Byte(b'=')],
        }
    }

    /// The name of the mark's rule.
    fn name(self) -> &'static str {
        match self {
            Self::Around => "space",
            Self::OpenObject => "open-object",
            Self::CloseObject => "close-object",
            Self::EmptyObject => "empty-object",
            Self::OpenArray => "open-array",
            Self::CloseArray => "close-array",
            Self::EmptyArray => "empty-array",
            Self::Comma => "comma",
            Self::Colon => "colon",
            Self::OpenCall | Self::CloseCall | Self::EmptyCall | Self::Equals => "call",
        }
    }

    /// The text of the mark, where white space depends on the level alone.
    fn text(self, kind: WhiteSpace, level: u32) -> String {
        let signs = self.pieces(kind).iter().filter_map(|piece| match piece {
            MarkPiece::Byte(byte) => Some(char::from(*byte)),
            MarkPiece::Run => None,
        });
        let signs: String = signs.collect();
        let WhiteSpace::Pretty(width) = kind else { return signs };
        let indent = |level: u32| "\n".to_owned() + &" ".repeat(usize::from(width) * level as usize);
        match self {
            Self::OpenObject | Self::OpenArray | Self::Comma => signs + &indent(level + 1),
            Self::CloseObject | Self::CloseArray => indent(level) + &signs,
            Self::Colon => signs + " ",
            _ => signs,
        }
    }

    /// The automaton of the mark, where runs of white space are free.
    fn automaton(self, kind: WhiteSpace, automata: &AutomataCache) -> Option<Automaton> {
        let make = || -> Result<Automaton, LeafError> {
            let mut states = Numbered::default();
            let mut ends = vec![push(&mut states)?];
            for piece in self.pieces(kind) {
                ends = match (piece, kind) {
                    (MarkPiece::Byte(byte), _) => sign(&mut states, &ends, *byte)?,
                    (MarkPiece::Run, WhiteSpace::Any) => endless_run(&mut states, &ends),
                    (MarkPiece::Run, WhiteSpace::UpTo(0)) => ends,
                    (MarkPiece::Run, WhiteSpace::UpTo(most)) => {
                        let longest = push(&mut states)?;
                        let more = up_to(&mut states, &ends, (b" \t\n\r", most.into()), longest)?;
                        [ends, more, vec![longest]].concat()
                    }
                    (MarkPiece::Run, _) => bounded_run(&mut states, &ends, kind)?,
                };
            }
            let limit = AUTOMATON_STATES;
            accepting(states, &ends).map_err(|_| LeafError::Budget { what: "states of white space", limit })
        };
        automata.automaton(Free(self, kind), make).ok()
    }
}

/// The white space that may be written around arguments between tags: what is written behind marks, or any.
pub(in crate::grammar) fn around_arguments(options: &SchemaOptions, automata: &AutomataCache) -> Pattern {
    let kind = match options.white_space {
        most @ WhiteSpace::UpTo(_) => most,
        _ if options.spaces_arguments() => WhiteSpace::Any,
        _ => WhiteSpace::Flexible,
    };
    let automaton = Punctuation::Around.automaton(kind, automata);
    automaton.map_or_else(|| Pattern::literal(b""), Pattern::automaton)
}

impl SchemaEmitter<'_, '_> {
    /// The expression of a mark at a level.
    pub(super) fn mark(&mut self, mark: Punctuation, level: u32) -> Checked<ExprId> {
        self.made_mark(mark, level, false)
    }

    /// The expression of a mark behind a part of a list.
    pub(super) fn mark_of(&mut self, mark: Punctuation, frame: ListFrame) -> Checked<ExprId> {
        self.made_mark(mark, frame.level, frame.distinct)
    }

    fn made_mark(&mut self, mark: Punctuation, level: u32, after_new_item: bool) -> Checked<ExprId> {
        let kind = self.algebra.options.white_space;
        let level = if matches!(kind, WhiteSpace::Pretty(_)) { level } else { 0 };
        if let Some(&known) = self.marks.get(&(mark, level, after_new_item)) {
            return Ok(known);
        }
        let automaton = match kind {
            WhiteSpace::Flexible | WhiteSpace::Wide | WhiteSpace::Any | WhiteSpace::UpTo(_) => {
                mark.automaton(kind, self.algebra.automata.common)
            }
            WhiteSpace::Compact | WhiteSpace::Pretty(_) if after_new_item => literal(&mark.text(kind, level)),
            WhiteSpace::Compact | WhiteSpace::Pretty(_) => None,
        };
        let pattern = match automaton {
            Some(automaton) if after_new_item => Pattern::automaton(automaton).after_new_item(),
            Some(automaton) => Pattern::automaton(automaton),
            None => Pattern::literal(mark.text(kind, level).as_bytes()),
        };
        let body = self.pattern(pattern)?;
        let made = self.as_rule(mark.name(), body)?;
        self.marks.insert((mark, level, after_new_item), made);
        Ok(made)
    }
}

/// The automaton of one text.
fn literal(text: &str) -> Option<Automaton> {
    let mut states = Numbered::default();
    let start = vec![push(&mut states).ok()?];
    let ends = text.bytes().try_fold(start, |ends, byte| sign(&mut states, &ends, byte)).ok()?;
    accepting(states, &ends).ok()
}

/// The automaton of these states, in some of which texts end.
fn accepting(mut states: Numbered<State>, ends: &[u32]) -> Result<Automaton, AutomatonError> {
    ends.iter().for_each(|&end| states[as_index(end)].accepts = true);
    Automaton::minimal(states.into_iter().collect())
}

/// Adds a state.
fn push(states: &mut Numbered<State>) -> Result<u32, LimitExceeded> {
    states.push(State::default(), "states of white space")
}

fn edge(states: &mut [State], from: u32, byte: u8, to: u32) {
    states[as_index(from)].edges.push(Edge { first: byte, last: byte, to });
}

/// Adds a byte after any of these states.
fn sign(states: &mut Numbered<State>, from: &[u32], byte: u8) -> Result<Vec<u32>, LimitExceeded> {
    let after = push(states)?;
    from.iter().for_each(|&from| edge(states, from, byte, after));
    Ok(vec![after])
}

/// Adds white space without a bound after any of these states.
fn endless_run(states: &mut [State], from: &[u32]) -> Vec<u32> {
    for &state in from {
        b" \t\n\r".iter().for_each(|&byte| edge(states, state, byte, state));
    }
    from.to_vec()
}

/// Adds line breaks and indentation, all of them optional, after any of these states.
fn bounded_run(
    states: &mut Numbered<State>,
    from: &[u32],
    kind: WhiteSpace,
) -> Result<Vec<u32>, LimitExceeded> {
    let breaks = line_breaks(states, from)?;
    let mut ends = [from, &breaks].concat();
    // Nothing may follow the longest runs of each kind, so one state is the end of all: no two are alike.
    let longest = push(states)?;
    if kind == WhiteSpace::Wide {
        let all = ends.clone();
        ends.extend(up_to(states, &all, (b" \t", MOST_BLANKS), longest)?);
    } else {
        ends.extend(up_to(states, from, (b" ", 1), longest)?);
        for run in INDENTATION {
            ends.extend(up_to(states, &breaks, run, longest)?);
        }
    }
    ends.push(longest);
    Ok(ends)
}

/// Adds line breaks after any of these states. Returns the state after each of them.
fn line_breaks(states: &mut Numbered<State>, from: &[u32]) -> Result<Vec<u32>, LimitExceeded> {
    let (mut breaks, mut last) = (Vec::new(), from.to_vec());
    for _ in 0..MOST_BREAKS {
        let (return_key, next) = (push(states)?, push(states)?);
        for from in last {
            edge(states, from, b'\r', return_key);
            edge(states, from, b'\n', next);
        }
        edge(states, return_key, b'\n', next);
        breaks.push(next);
        last = vec![next];
    }
    Ok(breaks)
}

/// Adds one to `most` of these bytes after any of these states; the longest run leads to `longest`. Returns
/// the states after the shorter ones.
fn up_to(
    states: &mut Numbered<State>,
    from: &[u32],
    (bytes, most): (&[u8], usize),
    longest: u32,
) -> Result<Vec<u32>, LimitExceeded> {
    let (mut ends, mut last) = (Vec::new(), from.to_vec());
    for count in 1..=most {
        let next = if count == most { longest } else { push(states)? };
        for from in last {
            bytes.iter().for_each(|&byte| edge(states, from, byte, next));
        }
        if next != longest {
            ends.push(next);
        }
        last = vec![next];
    }
    Ok(ends)
}
