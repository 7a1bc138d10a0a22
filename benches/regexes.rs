//! Domino and outlines-core on regular expressions of five kinds: time until there is a first mask, and time
//! of a mask along a text. `cargo measure regexes -- [OPTIONS]`.
//!
//! The five constraints are those of Koo, Liu and He (arXiv 2407.08103, table 2 and appendix C.4), verbatim.
//! For two of them each system has a writing of its own there: quoted text is an expression for Outlines,
//! which the paper calls equivalent to its `(?P<QUOTED_TEXT>)`, and a JSON object is a schema, which both
//! make automata of in their own ways. The languages differ then, so that only the masks of the first
//! three are compared. The paper gives speed-ups of its system over Outlines v0.0.34 and no times: of
//! compiling 7,970, 7,110, 6,850, 13,400 and 7,240 times in the order of `KINDS`, of a step 29.5, 24.3,
//! 26.1, 6.5 and 33.6 times; in words, a few milliseconds to compile the JSON object, hundreds of
//! microseconds the others, and a few microseconds a step (Gemma's vocabulary, a workstation).
//!
//! `--vocabulary NAME` is a folder of `data/tokenizers` in `DOMINO_SHARED` (default `mistral-v1-32k`),
//! `--passes N` how often each is done (default 5); times are medians of processor time of this thread. Both
//! engines have the same tokens, and go along the same ones: at each place the longest token of the text.
//! Exits with 1 where masks differ that are to be the same.
//!
//! The table tells: from the expression to the first mask, with the tables of terminals empty (*cold*) and
//! with those of an earlier compilation (*again*); and the mean of a mask with the step behind it, in the
//! first text of a compiled grammar (*first*) and in later ones (*later*). outlines-core has all masks when
//! it has compiled, as lists of tokens; making one is to copy that list.

use std::{
    env,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use domino::{CompiledGrammar, Compiler, Grammar, Limits, Patience, Syntax, TokenId, Vocabulary};
use outlines_core::{
    json_schema::regex_from_str, prelude::Index, vocabulary::Vocabulary as OutlinesVocabulary,
};
use rustix::time::{ClockId, clock_gettime};

/// A constraint for both engines.
struct Kind {
    name: &'static str,
    /// Domino's expression.
    ours: (Syntax, &'static str),
    theirs: Theirs,
    /// A text in both languages.
    text: &'static str,
}

/// A constraint for outlines-core.
enum Theirs {
    /// Domino's own expression.
    Same,
    /// Another expression.
    Other(&'static str),
    /// The expression that outlines-core makes of the same schema.
    OfSchema,
}

const fn same(name: &'static str, regex: &'static str, text: &'static str) -> Kind {
    Kind { name, ours: (Syntax::Regex, regex), theirs: Theirs::Same, text }
}

const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {
    "name": {"type": "string"},
    "class": {
      "type": "string",
      "enum": ["Warrior", "Rogue", "Sorceror"]
    },
    "life": {"type": "integer"},
    "mana": {"type": "integer"},
    "equipment": {
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "name": {"type": "string"},
          "durability": {"type": "integer"},
          "quality": {
            "type": "string",
            "enum": ["Normal", "Magic", "Unique"]
          }
        }
      }
    }
  }
}"#;

const KINDS: [Kind; 5] = [
    same("choice", r"Red|Orange|Yellow|Green|Blue|Indigo|Violet", "Indigo"),
    same(
        "date and time",
        r"\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d([+][0-2]\d:[0-5]\d|Z)",
        "2024-07-08T10:30:05+02:00",
    ),
    same(
        "IP address",
        r"((25[0-5]|2[0-4]\d|[01]?\d\d?)\.){3}(25[0-5]|2[0-4]\d|[01]?\d\d?)",
        "192.168.10.254",
    ),
    // The other expression has a blank before each character but the first.
    Kind {
        name: "quoted text",
        ours: (Syntax::Regex, r"(?P<QUOTED_TEXT>)"),
        theirs: Theirs::Other(r#"" *(?:[^\s"\\]|\\["n\\])?(?: [^\s"\\]|\\["n\\])*""#),
        text: r#""I s a y\" y e s\" a n d n o t h i n g e l s e\n""#,
    },
    Kind {
        name: "JSON object",
        ours: (Syntax::JsonSchema, SCHEMA),
        theirs: Theirs::OfSchema,
        text: concat!(
            r#"{"name": "Mira", "class": "Rogue", "life": 12, "mana": 7, "#,
            r#""equipment": [{"name": "Ring", "durability": 3, "quality": "Magic"}]}"#
        ),
    },
];

impl Kind {
    /// The expression for outlines-core.
    fn theirs(&self) -> String {
        match self.theirs {
            Theirs::Same => self.ours.1.to_owned(),
            Theirs::Other(regex) => regex.to_owned(),
            Theirs::OfSchema => regex_from_str(self.ours.1, None, None).expect("a schema"),
        }
    }
}

/// Processor time of this thread, so that other work on the machine does not count.
fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().expect("seconds"), time.tv_nsec.try_into().expect("nanoseconds"))
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = now();
    let done = work();
    (done, now() - start)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Times of one engine on one expression.
#[derive(Default)]
struct Times {
    cold: Vec<Duration>,
    again: Vec<Duration>,
    first: Vec<Duration>,
    later: Vec<Duration>,
}

impl Times {
    fn print(self, engine: &str, kind: &str) {
        let Self { cold, again, first, later } = self;
        let [cold, again, first, later] = [cold, again, first, later].map(median);
        println!(
            "{kind:<14} {engine:<14} {:>12.1} {:>12.1} {:>12.2} {:>12.2}",
            cold.as_secs_f64() * 1e6,
            again.as_secs_f64() * 1e6,
            first.as_secs_f64() * 1e6,
            later.as_secs_f64() * 1e6
        );
    }
}

/// The longest token at each place of a text.
fn tokens(vocabulary: &Vocabulary, text: &str) -> Vec<TokenId> {
    let (mut found, mut rest) = (Vec::new(), text.as_bytes());
    while !rest.is_empty() {
        let longest = (1..=rest.len().min(64)).rev().find_map(|length| {
            let token = vocabulary.token_of(&rest[..length])?;
            Some((token, length))
        });
        let (token, length) = longest.expect("a token for each byte");
        found.push(token);
        rest = &rest[length..];
    }
    found
}

fn compile(compiler: &Compiler, (syntax, text): (Syntax, &str)) -> CompiledGrammar {
    let grammar = Grammar::parse(syntax, text, &Limits::default()).expect("a grammar");
    compiler.compile(&grammar).expect("a grammar that compiles")
}

/// Measures Domino; also returns the allowed tokens at each place and at the end.
fn ours(
    vocabulary: &Vocabulary,
    grammar: (Syntax, &str),
    text: &[TokenId],
    passes: usize,
) -> (Times, Vec<Vec<u32>>) {
    let mut times = Times::default();
    let mut masks = Vec::new();
    for _ in 0..passes {
        let compiler = Compiler::new(vocabulary.clone());
        let first_mask = || {
            timed(|| {
                let compiled = compile(&compiler, grammar);
                compiled.constraint().patient(Patience::whole()).mask().map(|_| ()).expect("a mask");
                compiled
            })
        };
        let (_kept, cold) = first_mask();
        let (compiled, again) = first_mask();
        times.cold.push(cold);
        times.again.push(again);
        let walk = || {
            let mut constraint = compiled.constraint().patient(Patience::whole());
            let (_, time) = timed(|| {
                for &token in text {
                    std::hint::black_box(constraint.mask().expect("a mask"));
                    constraint.advance(token).expect("a token of the text");
                }
            });
            time / u32::try_from(text.len()).expect("a short text")
        };
        times.first.push(walk());
        times.later.push(walk());
        let mut constraint = compiled.constraint().patient(Patience::whole());
        masks.clear();
        for at in 0..=text.len() {
            masks.push(constraint.mask().expect("a mask").iter().map(TokenId::raw).collect());
            if let Some(&token) = text.get(at) {
                constraint.advance(token).expect("a token of the text");
            }
        }
    }
    (times, masks)
}

/// Measures outlines-core likewise, without the time in which it makes an expression of a schema.
fn theirs(
    vocabulary: &OutlinesVocabulary,
    regex: &str,
    text: &[TokenId],
    passes: usize,
) -> (Times, Vec<Vec<u32>>) {
    let mut times = Times::default();
    let mut masks = Vec::new();
    for _ in 0..passes {
        let first_mask = || {
            timed(|| {
                let index = Index::new(regex, vocabulary).expect("an expression");
                std::hint::black_box(index.allowed_tokens(&index.initial_state()));
                index
            })
        };
        let (index, cold) = first_mask();
        let (_, again) = first_mask();
        times.cold.push(cold);
        times.again.push(again);
        let walk = || {
            let (_, time) = timed(|| {
                let mut state = index.initial_state();
                for token in text {
                    std::hint::black_box(index.allowed_tokens(&state));
                    state = index.next_state(&state, &token.raw()).expect("a token of the text");
                }
            });
            time / u32::try_from(text.len()).expect("a short text")
        };
        times.first.push(walk());
        times.later.push(walk());
        masks.clear();
        let mut state = index.initial_state();
        for at in 0..=text.len() {
            let mut mask = index.allowed_tokens(&state).unwrap_or_default();
            mask.sort_unstable();
            masks.push(mask);
            if let Some(token) = text.get(at) {
                state = index.next_state(&state, &token.raw()).expect("a token of the text");
            }
        }
    }
    (times, masks)
}

/// The vocabulary for outlines-core: the same tokens, with the end of the text as its own.
fn outlines(vocabulary: &Vocabulary, end: TokenId) -> OutlinesVocabulary {
    let mut made = OutlinesVocabulary::new(end.raw());
    for id in 0..u32::try_from(vocabulary.size()).expect("fewer tokens") {
        let token = TokenId::new(id);
        if let Some(bytes) = vocabulary.bytes(token).filter(|bytes| token != end && !bytes.is_empty()) {
            made.try_insert(bytes.to_vec(), id).expect("a token");
        }
    }
    made
}

fn main() -> ExitCode {
    let (mut name, mut passes) = ("mistral-v1-32k".to_owned(), 5_usize);
    let mut arguments = env::args().skip(1).filter(|argument| argument != "--bench");
    while let Some(argument) = arguments.next() {
        let value = arguments.next().unwrap_or_else(|| panic!("{argument} wants a value"));
        match argument.as_str() {
            "--vocabulary" => name = value,
            "--passes" => passes = value.parse().expect("a number"),
            other => panic!("unknown option {other}"),
        }
    }
    let shared = env::var_os("DOMINO_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let tokenizer = shared.join("data/tokenizers").join(&name).join("tokenizer.json");
    let vocabulary = match Vocabulary::from_tokenizer_file(&tokenizer) {
        Ok(vocabulary) => vocabulary,
        Err(error) => {
            eprintln!("error: nothing was compared: {error} (DOMINO_SHARED names the folder)");
            return ExitCode::FAILURE;
        }
    };
    let end = vocabulary.end_of_text()[0];
    let vocabulary = vocabulary.with_end_of_text([end]).expect("one of its tokens");
    let tables = outlines(&vocabulary, end);
    println!("{name}, {passes} passes; microseconds of processor time");
    println!("{:<14} {:<14} {:>12} {:>12} {:>12} {:>12}", "", "", "cold", "again", "mask: first", "later");
    let mut same = true;
    for kind in KINDS {
        let text = tokens(&vocabulary, kind.text);
        let (our_times, our_masks) = ours(&vocabulary, kind.ours, &text, passes);
        let (their_times, their_masks) = theirs(&tables, &kind.theirs(), &text, passes);
        our_times.print("domino", kind.name);
        their_times.print("outlines-core", kind.name);
        if !matches!(kind.theirs, Theirs::Same) {
            continue;
        }
        for (at, (ours, theirs)) in our_masks.iter().zip(&their_masks).enumerate() {
            if ours != theirs {
                same = false;
                println!("  masks differ at token {at}: {} and {} tokens", ours.len(), theirs.len());
            }
        }
    }
    if same { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
