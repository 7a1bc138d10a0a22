//! Greedy lexing (longest match) against a lexer written by its definition, on terminals that are lists of
//! words.

use std::collections::{HashSet, VecDeque};

use domino::{
    CompiledGrammar, Compiler, Constraint, Grammar, Limits, Lookahead, StepErrorKind, Syntax, TokenId,
    Vocabulary,
};
use proptest::prelude::*;

use crate::promises::generate::config;

/// Most bytes of a text and of a completion: no shortest one has more than three for each of four terminals
/// and of what stands between them.
const LONGEST: usize = 8;
const LONGEST_COMPLETION: usize = 24;

/// A terminal: one of these words, or a run of one byte.
#[derive(Debug, Clone)]
enum Terminal {
    Words(Vec<String>),
    Repeated(u8),
}

impl Terminal {
    fn written(&self) -> String {
        match self {
            Self::Words(words) => {
                words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" | ")
            }
            Self::Repeated(byte) => format!("/{}+/", *byte as char),
        }
    }

    fn has(&self, text: &[u8]) -> bool {
        match self {
            Self::Words(words) => words.iter().any(|word| word.as_bytes() == text),
            Self::Repeated(byte) => !text.is_empty() && text.iter().all(|one| one == byte),
        }
    }

    fn has_beginning(&self, text: &[u8]) -> bool {
        match self {
            Self::Words(words) => words.iter().any(|word| word.as_bytes().starts_with(text)),
            Self::Repeated(byte) => text.iter().all(|one| one == byte),
        }
    }
}

fn terminal() -> impl Strategy<Value = Terminal> {
    let listed = prop::collection::hash_set("[abc]{1,3}", 1..4);
    let listed = listed.prop_map(|words| Terminal::Words(words.into_iter().collect()));
    let repeated = prop::sample::select(vec![b'a', b'b']).prop_map(Terminal::Repeated);
    prop_oneof![3 => listed, 1 => repeated]
}

/// Terminals, sequences of them that are texts, and what is ignored behind each.
#[derive(Debug, Clone)]
struct Case {
    terminals: Vec<Terminal>,
    sequences: Vec<Vec<usize>>,
    ignored: Option<Terminal>,
    tokens: Vec<String>,
    choices: Vec<usize>,
}

fn case() -> impl Strategy<Value = Case> {
    let sequences = prop::collection::vec(prop::collection::vec(0..4_usize, 1..5), 1..6);
    let terminals = prop::collection::vec(terminal(), 4);
    let tokens = prop::collection::vec("[abc]{2,4}", 0..9);
    let choices = prop::collection::vec(any::<usize>(), LONGEST);
    (terminals, sequences, prop::option::of(terminal()), tokens, choices).prop_map(
        |(terminals, sequences, ignored, tokens, choices)| Case {
            terminals,
            sequences,
            ignored,
            tokens,
            choices,
        },
    )
}

impl Case {
    fn compiled(&self, lookahead: Lookahead) -> CompiledGrammar {
        let names =
            |sequence: &Vec<usize>| sequence.iter().map(|at| format!("T{at}")).collect::<Vec<_>>().join(" ");
        let mut text =
            format!("start: {}\n", self.sequences.iter().map(names).collect::<Vec<_>>().join(" | "));
        for (at, terminal) in self.terminals.iter().enumerate() {
            text += &format!("T{at}: {}\n", terminal.written());
        }
        if let Some(ignored) = &self.ignored {
            text += &format!("IGNORED: {}\n%ignore IGNORED\n", ignored.written());
        }
        let grammar = Grammar::parse(Syntax::LarkGreedy, &text, &Limits::default()).unwrap();
        assert!(grammar.is_greedy() && domino::oracle::Oracle::new(&grammar).is_err());
        let mut vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256));
        for (token, id) in self.tokens.iter().zip(257..) {
            vocabulary = vocabulary.token(TokenId::new(id), token.as_bytes());
        }
        Compiler::new(vocabulary.build().unwrap()).lookahead(lookahead).compile(&grammar).unwrap()
    }
}

/// A state of a lexer: sequence, terminal of it, and whether it is in what is ignored before that one.
type Place = (usize, usize, bool);

/// A longest-match lexer: takes a byte into the current lexeme as long as any can go on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Lexer {
    places: Vec<Place>,
    begun: Vec<u8>,
}

impl Lexer {
    fn new(case: &Case) -> Self {
        Self { places: (0..case.sequences.len()).map(|at| (at, 0, false)).collect(), begun: Vec::new() }
    }

    fn terminal<'c>(case: &'c Case, &(sequence, at, ignoring): &Place) -> &'c Terminal {
        match (&case.ignored, ignoring) {
            (Some(ignored), true) => ignored,
            _ => &case.terminals[case.sequences[sequence][at]],
        }
    }

    /// Sequences whose current terminal ends with the current lexeme, with the number of the next one.
    fn ended(&self, case: &Case) -> Vec<(usize, usize)> {
        let whole = self.places.iter().filter(|place| Self::terminal(case, place).has(&self.begun));
        whole.map(|&(sequence, at, ignoring)| (sequence, if ignoring { at } else { at + 1 })).collect()
    }

    fn is_complete(&self, case: &Case) -> bool {
        self.ended(case).iter().any(|&(sequence, at)| at == case.sequences[sequence].len())
    }

    /// The lexer after one more byte, and whether that begins a lexeme; `None` if it cannot follow.
    fn after(&self, case: &Case, byte: u8) -> Option<(Self, bool)> {
        let goes = |places: &[Place], begun: &[u8]| {
            places.iter().any(|place| Self::terminal(case, place).has_beginning(begun))
        };
        let longer = [&self.begun[..], &[byte]].concat();
        if goes(&self.places, &longer) {
            return Some((Self { places: self.places.clone(), begun: longer }, false));
        }
        let mut places: Vec<Place> = Vec::new();
        for (sequence, at) in self.ended(case) {
            places.extend((at < case.sequences[sequence].len()).then_some((sequence, at, false)));
            places.extend(case.ignored.is_some().then_some((sequence, at, true)));
        }
        places.sort_unstable();
        places.dedup();
        goes(&places, &[byte]).then_some((Self { places, begun: vec![byte] }, true))
    }

    /// The lexer after a token that begins at most `most` lexemes past the one with its first byte.
    fn after_token(&self, case: &Case, token: &[u8], most: usize) -> Option<Self> {
        let (mut lexer, mut begun) = (self.clone(), 0);
        for (at, &byte) in token.iter().enumerate() {
            let (next, begins) = lexer.after(case, byte)?;
            begun += usize::from(begins && at > 0);
            lexer = next;
        }
        (begun <= most).then_some(lexer)
    }

    /// Fewest bytes to a complete text.
    fn missing(&self, case: &Case) -> Option<usize> {
        let mut open = VecDeque::from([(self.clone(), 0)]);
        let mut seen = HashSet::from([self.clone()]);
        while let Some((lexer, length)) = open.pop_front() {
            if lexer.is_complete(case) {
                return Some(length);
            }
            if length == LONGEST_COMPLETION {
                return None;
            }
            for byte in *b"abc" {
                if let Some((next, _)) = lexer.after(case, byte)
                    && seen.insert(next.clone())
                {
                    open.push_back((next, length + 1));
                }
            }
        }
        None
    }
}

fn agrees(case: &Case, constraint: &mut Constraint, lexer: &Lexer, most: usize) {
    let mask = constraint.mask().unwrap().clone();
    let complete = lexer.is_complete(case);
    assert_eq!((constraint.is_complete(), mask.contains(TokenId::new(256))), (complete, complete));
    let bytes = (0..=u8::MAX).map(|byte| (u32::from(byte), vec![byte]));
    let tokens = (257..).zip(case.tokens.iter().map(|token| token.clone().into_bytes()));
    for (id, token) in bytes.chain(tokens) {
        let may = lexer.after_token(case, &token, most).is_some();
        assert_eq!(mask.contains(TokenId::new(id)), may, "{:?} after {lexer:?}", token.escape_ascii());
        assert_eq!(constraint.allows(TokenId::new(id)).unwrap(), may);
    }
}

proptest! {
    #![proptest_config(config(300))]

    /// Masks, ends and shortest completions are those of the lexer, at any lookahead.
    #[test]
    fn greedy_lexing_agrees_with_the_lexer_of_its_definition(
        case in case(), k in prop_oneof![Just(None), (0..3_u32).prop_map(Some)],
    ) {
        let lookahead = k.map_or(Lookahead::Unbounded, Lookahead::Terminals);
        let most = k.map_or(usize::MAX, |k| k as usize);
        let compiled = case.compiled(lookahead);
        compiled.grow_trees();
        let mut constraint = compiled.constraint();
        let (mut lexer, mut text) = (Lexer::new(&case), Vec::new());
        for &choice in &case.choices {
            agrees(&case, &mut constraint, &lexer, most);
            let found = constraint.shortest_completion();
            match lexer.missing(&case) {
                Some(missing) => {
                    let bytes = found.unwrap().bytes;
                    prop_assert_eq!(bytes.len(), missing, "{:?} after {:?}", bytes, &text);
                    let end = lexer.after_token(&case, &bytes, usize::MAX);
                    prop_assert!(end.is_some_and(|end| end.is_complete(&case)));
                }
                None => {
                    let error = found.unwrap_err();
                    prop_assert_eq!(error.kind(), &StepErrorKind::NoCompletion);
                }
            }
            let next: Vec<(u8, Lexer)> =
                b"abc".iter().filter_map(|&byte| Some((byte, lexer.after(&case, byte)?.0))).collect();
            if next.is_empty() {
                break;
            }
            let (byte, after) = next[choice % next.len()].clone();
            prop_assert_eq!(constraint.advance_bytes(&[byte]).unwrap(), 1);
            text.push(byte);
            lexer = after;
        }
    }
}

/// Examples of `docs/lark.md` of texts that greedy lexing refuses.
#[test]
fn greedy_lexing_refuses_the_documented_texts() {
    let lark = "start: \"return\" NAME | NAME NAME\nNAME: /[a-z]+/\n%ignore \" \"\n";
    let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build().unwrap();
    let reads = |syntax: Syntax, text: &str| {
        let grammar = Grammar::parse(syntax, lark, &Limits::default()).unwrap();
        let mut constraint = Compiler::new(vocabulary.clone()).compile(&grammar).unwrap().constraint();
        constraint.advance_bytes(text.as_bytes()).unwrap() == text.len() && constraint.is_complete()
    };
    for (text, every_way, greedy) in
        [("return x", true, true), ("returnx", true, false), ("ab", true, false), ("a b", true, true)]
    {
        assert_eq!(reads(Syntax::Lark, text), every_way, "{text}");
        assert_eq!(reads(Syntax::LarkGreedy, text), greedy, "{text}");
    }
}
