//! Thoughts before texts of random grammars, with random marks: masks are those of the definition, with
//! budgets and without; decoders write the same with drafts and without, alone and in a batch.

use domino::{
    CompiledGrammar, Constraint, ThoughtWatch, TokenId, TokenSet, Vocabulary,
    decode::{BatchDecoder, BatchEvent, DecodeOptions, Decoder, Finish, Generation, Sampling, StopStrings},
    grammar::{
        Reasoning, Thought, ThoughtMarks, ThoughtPlace,
        json_schema::{SchemaOptions, WhiteSpace},
    },
    model::{OneByOne, ScriptedModel},
    oracle::Oracle,
    proposer::{BestOf, CountProposer, DraftLength, Drafter, Learning, Lookup, Prior},
};
use proptest::prelude::*;

use crate::promises::generate::{Case, SPECIAL, World, case, config};

/// Marks of one token and of many, that overlap themselves and each other, and a special token.
const MARKS: [&str; 9] = ["a", "b", "ab", "aab", "aba", "éb", "bca", SPECIAL, "<special>a"];

const PLACES: [Reasoning; 4] = [Reasoning::Off, Reasoning::Optional, Reasoning::Open, Reasoning::Required];

/// A thought before the texts of a random grammar.
struct Thinking {
    world: World,
    thought: Thought,
    /// The vocabulary with the special token spelled out where a mark has it.
    spelled: Vocabulary,
    compiled: CompiledGrammar,
    open: Vec<u8>,
    close: Vec<u8>,
}

fn spelled(mark: &str) -> Vec<u8> {
    mark.replace(SPECIAL, "\u{0}").bytes().fold(Vec::new(), |mut bytes, byte| {
        match byte {
            0 => bytes.extend([b"\xFF", SPECIAL.as_bytes(), b"\xFF"].concat()),
            byte => bytes.push(byte),
        }
        bytes
    })
}

fn is_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok()
}

fn begins_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true)
}

impl Thinking {
    /// Builds all of it; `None` if the grammar has no text.
    fn new(case: &Case, (open, close): (usize, usize), place: usize) -> Option<Self> {
        let world = case.build();
        let marks = ThoughtMarks::new(MARKS[open % MARKS.len()], MARKS[close % MARKS.len()]).unwrap();
        let special = world.vocabulary.special_tokens().filter(|(_, name)| *name == SPECIAL);
        let special: Vec<(TokenId, &str)> = special.collect();
        let reasoning = PLACES[place % PLACES.len()];
        let thought = Thought::new(&marks, reasoning, special.iter().map(|(_, name)| *name));
        let grammar = world.grammar.after_thought(&thought, &domino::Limits::default()).unwrap();
        let asked = !grammar.specials().is_empty();
        let spelled_vocabulary = match asked {
            true => world.vocabulary.with_spelled(&special).unwrap(),
            false => world.vocabulary.clone(),
        };
        let compiled = world.compiler().compile(&grammar);
        assert_eq!(compiled.is_ok(), world.oracle.has_sentence());
        let (open, close) = (spelled(marks.open()), spelled(marks.close()));
        Some(Self { thought, spelled: spelled_vocabulary, compiled: compiled.ok()?, open, close, world })
    }

    /// The end of the first closing mark in a text that begins inside of the thought.
    fn end(&self, inside: &[u8]) -> Option<usize> {
        (0..=inside.len()).find(|&end| inside[..end].ends_with(&self.close))
    }

    /// Does `judge` hold for some way to cut line feeds off?
    fn behind(rest: &[u8], judge: impl Fn(&[u8]) -> bool) -> bool {
        let feeds = rest.iter().take(2).take_while(|&&byte| byte == b'\n').count();
        (0..=feeds).any(|feeds| judge(&rest[feeds..]))
    }

    /// Does a text go on like this that begins inside of the thought?
    fn goes_on_inside(&self, inside: &[u8]) -> bool {
        match self.end(inside) {
            Some(end) => {
                is_text(&inside[..end - self.close.len()])
                    && Self::behind(&inside[end..], |rest| self.world.oracle.viable(rest))
            }
            // What has come may be cut inside of a character, or inside of a special mark.
            None => {
                let cut = |length: usize| inside.ends_with(&self.close[..length]);
                let mut cuts = (1..self.close.len()).filter(|&length| cut(length));
                begins_text(inside) || cuts.any(|length| is_text(&inside[..inside.len() - length]))
            }
        }
    }

    /// Does a text of the language go on like this?
    fn goes_on(&self, text: &[u8]) -> bool {
        let opened = || match text.strip_prefix(&self.open[..]) {
            Some(inside) => self.goes_on_inside(inside),
            None => self.open.starts_with(text),
        };
        match self.thought.reasoning() {
            Reasoning::Off => self.world.oracle.viable(text),
            Reasoning::Open => self.goes_on_inside(text),
            Reasoning::Optional => self.world.oracle.viable(text) || opened(),
            _ => opened(),
        }
    }

    /// Is it a text of the language?
    fn accepts(&self, text: &[u8]) -> bool {
        let inside = |inside: &[u8]| {
            self.end(inside).is_some_and(|end| {
                is_text(&inside[..end - self.close.len()])
                    && Self::behind(&inside[end..], |rest| self.world.oracle.accepts(rest))
            })
        };
        let opened = || text.strip_prefix(&self.open[..]).is_some_and(inside);
        match self.thought.reasoning() {
            Reasoning::Off => self.world.oracle.accepts(text),
            Reasoning::Open => inside(text),
            Reasoning::Optional => self.world.oracle.accepts(text) || opened(),
            _ => opened(),
        }
    }

    /// Returns what is left of the closing mark in a text inside of its thought; `None` elsewhere.
    fn left(&self, text: &[u8]) -> Option<Vec<u8>> {
        let inside = match self.thought.reasoning() {
            Reasoning::Off => return None,
            Reasoning::Open => text,
            _ => text.strip_prefix(&self.open[..])?,
        };
        if self.end(inside).is_some() {
            return None;
        }
        let mut begun = (0..self.close.len()).rev();
        let begun = begun.find(|&length| inside.ends_with(&self.close[..length])).unwrap();
        Some(self.close[begun..].to_vec())
    }

    /// The tokens that may follow, where the thought must be closed or need not.
    fn mask(&self, text: &[u8], closing: bool) -> TokenSet {
        let left = self.left(text).filter(|_| closing);
        // The mark cannot begin inside of a character.
        let last = text.rsplit(|&byte| byte == 0xFF).next().unwrap_or_default();
        let inside = !is_text(last) && left.as_ref().is_some_and(|left| *left == self.close);
        let is_rest = |bytes: &[u8]| bytes.iter().all(|byte| matches!(byte, 0x80..=0xBF));
        let mut mask = self.world.vocabulary.empty_set();
        for number in 0..mask.size() {
            let token = TokenId::from_index(number).unwrap();
            let may = match self.spelled.bytes(token) {
                _ if self.world.ends(token) => self.accepts(text),
                None | Some(b"") => false,
                Some(bytes) => {
                    self.goes_on(&[text, bytes].concat())
                        && if inside {
                            is_rest(bytes)
                        } else {
                            left.as_ref().is_none_or(|left| left.starts_with(bytes))
                        }
                }
            };
            if may {
                mask.insert(token);
            }
        }
        mask
    }

    /// Checks where a text is, and what it shows of its thought.
    fn check_place(&self, constraint: &Constraint, watch: &ThoughtWatch, text: &[u8], shown: &[u8]) {
        let place = constraint.thought();
        assert_eq!(place.is_some(), self.thought.reasoning() != Reasoning::Off);
        let Some(place) = place else { return };
        assert_eq!(place == ThoughtPlace::Inside, self.left(text).is_some(), "{}", text.escape_ascii());
        assert_eq!(watch.place(), place);
        let (thought, answer) = constraint.split_thought(shown);
        assert!(shown.ends_with(answer));
        if place == ThoughtPlace::Behind {
            assert_eq!(watch.split(shown, true), (thought, answer));
        } else {
            assert_eq!(watch.split(shown, false).1, b"");
            assert_eq!(constraint.thought_bytes(), shown.len());
        }
    }
}

/// Walks along the masks of the definition, with a budget or without, and steps back now and then.
fn walk(thinking: &Thinking, choices: &[u16], most: Option<usize>) {
    let mut constraint = thinking.compiled.constraint().reasoning_tokens(most);
    let watch = ThoughtWatch::new(thinking.thought.clone(), thinking.world.vocabulary.clone());
    let mut places = vec![(Vec::new(), Vec::new(), 0_usize, watch)];
    for &choice in choices {
        if choice % 7 == 0 && places.len() > 2 {
            constraint.rollback(2).unwrap();
            places.truncate(places.len() - 2);
        }
        let (text, shown, tokens, watch) = places.last().unwrap().clone();
        thinking.check_place(&constraint, &watch, &text, &shown);
        let closing = most.is_some_and(|most| tokens >= most);
        let exact = thinking.mask(&text, closing);
        assert_eq!(constraint.clone().mask().unwrap(), &exact, "{}", text.escape_ascii());
        for number in 0..exact.size() {
            let token = TokenId::from_index(number).unwrap();
            assert_eq!(constraint.clone().allows(token).unwrap(), exact.contains(token), "allows({token})");
            assert_eq!(constraint.clone().advance(token).is_ok(), exact.contains(token), "advance({token})");
        }
        let token = thinking.world.choose(&exact, choice);
        let Some(token) = token.filter(|&token| !thinking.world.ends(token)) else { return };
        constraint.advance(token).unwrap();
        let bytes = constraint.text_of(token).to_vec();
        let mut watch = watch;
        watch.push(token, &bytes);
        let text = [&text[..], thinking.spelled.bytes(token).unwrap()].concat();
        places.push((text, [&shown[..], &bytes].concat(), tokens + 1, watch));
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn masks_with_thoughts_are_those_of_the_definition(
        case in case(14), marks in (0..9_usize, 0..9_usize), place in 0..4_usize,
        most in prop::option::of(0..6_usize),
    ) {
        if let Some(thinking) = Thinking::new(&case, marks, place) {
            walk(&thinking, &case.choices, most);
        }
    }
}

/// What holds for whole texts, that no key and no item comes twice, holds behind the thought alone.
#[test]
fn keys_and_items_are_distinct_behind_the_thought() {
    let limits = domino::Limits::default();
    let words = ["\"a\"", "\"a\":", ",\"", "1,", "[1", "</th", "ink>{", "{\"a\":1,\"a\":2}", "think>"];
    let builder = words
        .iter()
        .zip(257..)
        .fold(Vocabulary::builder().all_bytes(), |builder, (word, id)| builder.token(TokenId::new(id), word));
    let vocabulary = builder.end_of_text(TokenId::new(256)).build().unwrap();
    let marks = |open: &str, close: &str| ThoughtMarks::new(open, close).unwrap();
    let usual = ThoughtMarks::default();
    let square = marks("[THINK]", "[/THINK]");
    let options = SchemaOptions::default().with_white_space(WhiteSpace::Compact);
    let schema = |text: &str| options.parse(text, &limits).unwrap().grammar;
    let keys = schema("true");
    let items = schema(r#"{"type": "array", "uniqueItems": true, "items": {"type": ["integer", "string"]}}"#);
    assert!(keys.distinct_keys().is_some() && items.distinct_items().is_some());
    for (schema, marks, text, taken) in [
        (&keys, &usual, r#"<think>{"a":1,"a":2}</think>{"a":1,"b":{"a":1}}"#, 47),
        (&items, &usual, r#"<think>[1,1]</think>[1,2]"#, 25),
        (&keys, &usual, r#"<think></think>{"a":1,"a":2}"#, 24),
        (&items, &usual, r#"<think></think>[1,1]"#, 19),
        (&keys, &usual, r#"{"a":1,"a":2}"#, 9),
        (&items, &usual, r#"[1,1]"#, 4),
        (&items, &square, r#"[THINK][1,1][/THINK][2,1]"#, 25),
        (&items, &square, r#"["THINK",1]"#, 11),
        (&keys, &square, r#"[{"a":1,"a":2}]"#, 10),
        (&items, &square, r#"[1,1]"#, 4),
    ] {
        let thought = Thought::new(marks, Reasoning::Optional, []);
        let grammar = schema.after_thought(&thought, &limits).unwrap();
        let compiled = domino::Compiler::new(vocabulary.clone()).compile(&grammar).unwrap();
        let oracle = schema.distinct_keys().map(|_| Oracle::new(&grammar).unwrap());
        let mut constraint = compiled.constraint();
        for (at, &byte) in text.as_bytes().iter().enumerate() {
            // The oracle knows of keys alone.
            if let Some(oracle) = &oracle {
                let exact = oracle.mask(&text.as_bytes()[..at], &vocabulary);
                assert_eq!(constraint.mask().unwrap(), &exact, "{}", &text[..at]);
            }
            if constraint.advance_bytes(&[byte]).unwrap() == 0 {
                assert_eq!(at, taken, "{text}");
                break;
            }
            assert!(at < taken, "{text}");
        }
        assert_eq!(constraint.is_complete(), taken == text.len(), "{text}");
        assert!(constraint.shortest_completion().is_ok());
    }
}

const PROMPT: [TokenId; 2] = [TokenId::new(0), TokenId::new(1)];

fn drafter(thinking: &Thinking) -> Drafter {
    // What the grammar's texts have taught is none of a thought's business, and guesses nothing there.
    let counts = CountProposer::new(Prior::new(&thinking.compiled), Learning::PerText);
    let proposer = BestOf::new(vec![Box::new(counts), Box::new(Lookup::default())]);
    Drafter::new(Box::new(proposer), DraftLength::up_to(4, 0.0).unwrap())
}

fn model(thinking: &Thinking, seed: u64) -> ScriptedModel {
    ScriptedModel::new(thinking.world.vocabulary.size(), 64, seed)
}

fn alone(thinking: &Thinking, options: &DecodeOptions, drafts: bool) -> Option<Generation> {
    let mut builder = Decoder::builder(model(thinking, options.seed))
        .vocabulary(thinking.world.vocabulary.clone())
        .constraint(thinking.compiled.constraint())
        .options(options.clone());
    if drafts {
        builder = builder.drafter(drafter(thinking));
    }
    builder.build().unwrap().generate(&PROMPT).ok()
}

fn in_a_batch(thinking: &Thinking, options: &DecodeOptions) -> Option<Vec<Generation>> {
    let models = vec![model(thinking, options.seed); 2];
    let mut batch = BatchDecoder::new(OneByOne::new(models), thinking.world.vocabulary.clone()).unwrap();
    for drafts in [false, true, true] {
        let constraint = Some(thinking.compiled.constraint());
        match drafts {
            false => batch.add(&PROMPT, constraint, options).unwrap(),
            true => batch.add_with_drafter(&PROMPT, constraint, options, drafter(thinking)).unwrap(),
        };
    }
    let mut all = Vec::new();
    while !batch.is_empty() {
        for event in batch.step() {
            match event {
                BatchEvent::Finished { generation, .. } => all.push(generation),
                BatchEvent::Failed { .. } => return None,
                _ => {}
            }
        }
    }
    Some(all)
}

/// Returns what of a text must not depend on drafts and batches.
fn told(generation: &Generation) -> impl PartialEq + std::fmt::Debug + use<> {
    let Generation { tokens, text, finish, reasoning, answer_at, completion, .. } = generation;
    let thought = generation.stats.reasoning_tokens;
    (tokens.clone(), text.clone(), *finish, reasoning.clone(), *answer_at, completion.clone(), thought)
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn decoders_write_the_same_thoughts_whatever_is_drafted(
        case in case(1), marks in (0..9_usize, 0..9_usize), place in 0..4_usize, seed: u64,
        (most, close, stops) in (prop::option::of(0..6_usize), any::<bool>(), prop::bool::weighted(0.2)),
    ) {
        let Some(thinking) = Thinking::new(&case, marks, place) else { return Ok(()) };
        let mut options = DecodeOptions::default();
        options.sampling = Sampling::with_temperature(1.0).unwrap();
        options.seed = seed;
        options.max_new_tokens = 12;
        options.reasoning_tokens = most;
        options.close = close;
        if stops {
            options.stop = StopStrings::new(["bb"]).unwrap();
        }
        // Some vocabularies cannot spell what must come.
        let Some(plain) = alone(&thinking, &options, false) else { return Ok(()) };
        prop_assert_eq!(told(&alone(&thinking, &options, true).unwrap()), told(&plain));
        for generation in in_a_batch(&thinking, &options).unwrap() {
            prop_assert_eq!(told(&generation), told(&plain));
        }
        prop_assert_eq!(plain.reasoning.is_some(), thinking.thought.reasoning() != Reasoning::Off);
        let cut = plain.finish == Finish::Thought;
        // Texts of the grammar that begin like a thought are read as one.
        let alike = thinking.thought.reasoning() == Reasoning::Optional
            && thinking.world.oracle.viable(&thinking.open);
        if close && cut && !alike {
            // The thought is closed, and what is behind it is of the grammar.
            prop_assert!(plain.complete);
        }
        if plain.complete && plain.reasoning.is_some() && !alike {
            let answer = &plain.text[plain.answer_at..];
            prop_assert!(thinking.world.oracle.accepts(answer), "{}", plain.text.escape_ascii());
        }
        if cut && !close && !alike {
            prop_assert!(!plain.complete && plain.answer_at == plain.text.len());
        }
    }
}
