//! Real vocabularies: the oracle, and the engine against masks that other programs computed.
//!
//! `shared/peers` has texts of five grammars, token by token, and the exact mask of every step as a number of
//! tokens and a hash (`FORMAT.md` there).

use std::{fs, path::Path};

use domino::{
    Compiler, Grammar, Limits, Syntax, TokenId, TokenSet, Vocabulary,
    oracle::{Oracle, SortedTokens},
};
use serde_json::Value;

use crate::{grammar::corpus::shipped, support::shared_data::shared};

const GRAMMARS: [&str; 5] = ["json_basic", "gsm8k", "xml_person", "rpg_template", "c_simple"];
const MISTRAL: (&str, &str) = ("mistral32k", "mistral-v1-32k");
const TEKKEN: (&str, &str) = ("tekken131k", "tekken-131k");

/// The mask of one step.
#[derive(Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) pop: u64,
    pub(crate) hash: String,
    pub(crate) eos: bool,
}

/// One text.
struct Trace {
    text: String,
    tokens: Vec<TokenId>,
    /// Masks before each token, and the one at the end.
    steps: Vec<Step>,
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn vocabulary(name: &str) -> Option<Vocabulary> {
    let path = shared("data/tokenizers")?.join(name).join("tokenizer.json");
    Some(Vocabulary::from_tokenizer_json(&read(&path)).unwrap())
}

fn gbnf(path: &Path) -> Grammar {
    let text = read(path);
    Grammar::parse(Syntax::Gbnf, &text, &Limits::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn traces(peers: &Path, grammar: &str, vocabulary: &str) -> Vec<Trace> {
    let json = |path: String| -> Value { serde_json::from_str(&read(&peers.join(path))).unwrap() };
    let traces = json(format!("traces/{grammar}.{vocabulary}.traces.json"));
    let expected = json(format!("expected/{grammar}.{vocabulary}.json"));
    let array = |value: &Value| value.as_array().unwrap().clone();
    let number = |value: &Value| value.as_u64().unwrap();
    array(&traces["traces"])
        .iter()
        .zip(array(&expected["traces"]))
        .map(|(trace, masks)| {
            let token = |id| TokenId::new(u32::try_from(number(id)).unwrap());
            let tokens: Vec<_> = array(&trace["tokens"]).iter().map(token).collect();
            let steps = (0..=tokens.len())
                .map(|step| Step {
                    pop: number(&masks["pop"][step]),
                    hash: masks["hash"][step].as_str().unwrap().to_owned(),
                    eos: number(&masks["eos"][step]) == 1,
                })
                .collect();
            Trace { text: trace["text"].as_str().unwrap().to_owned(), tokens, steps }
        })
        .collect()
}

/// Encodes a mask by `FORMAT.md`: its bytes without special tokens.
pub(crate) fn step(mask: &TokenSet, vocabulary: &Vocabulary) -> Step {
    let mut mask = mask.clone();
    let mut eos = false;
    for &token in vocabulary.end_of_text() {
        eos |= mask.contains(token);
        mask.remove(token);
    }
    let words = mask.words();
    let bytes = words.iter().flat_map(|word| word.to_le_bytes()).take(mask.size().div_ceil(32) * 4);
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    Step { pop: u64::try_from(mask.len()).unwrap(), hash: format!("{hash:016x}"), eos }
}

#[test]
fn oracle_makes_the_expected_masks() {
    let (Some(peers), Some(vocabulary)) = (shared("peers"), vocabulary(MISTRAL.1)) else { return };
    let tokens = SortedTokens::new(&vocabulary);
    for (number, grammar) in GRAMMARS.into_iter().enumerate() {
        let oracle = Oracle::new(&gbnf(&peers.join(format!("grammars/{grammar}.gbnf")))).unwrap();
        // One trace of each, and of that every so many steps.
        let trace = &traces(&peers, grammar, MISTRAL.0)[number];
        let mut session = oracle.session();
        let mut compared = 0;
        for (at, expected) in trace.steps.iter().enumerate() {
            if at % 6 == 0 || at == trace.tokens.len() {
                let mask = step(&session.mask(&tokens), &vocabulary);
                assert_eq!(&mask, expected, "{grammar}, step {at} of {:?}", trace.text);
                compared += 1;
            }
            if let Some(token) = trace.tokens.get(at) {
                assert!(session.push_all(vocabulary.bytes(*token).unwrap()));
            }
        }
        assert!(compared > 6, "{grammar}: too short a trace");
    }
}

/// Every mask of every trace.
fn engine_makes_the_expected_masks(grammar_file: impl Fn(&str) -> String) {
    for (short, folder) in [MISTRAL, TEKKEN] {
        let (Some(peers), Some(vocabulary)) = (shared("peers"), vocabulary(folder)) else { return };
        let compiler = Compiler::new(vocabulary.clone());
        for grammar in GRAMMARS {
            let path = peers.join("grammars").join(grammar_file(grammar));
            if !path.exists() {
                continue;
            }
            // Trees that grow as they are needed, that were grown ahead, and that were read, in turn.
            let ways = [(); 3].map(|()| compiler.compile(&gbnf(&path)).unwrap());
            ways[2].load_artefact(&ways[1].artefact()).unwrap();
            for (number, trace) in traces(&peers, grammar, short).into_iter().enumerate() {
                let mut constraint = ways[number % 3].constraint();
                for (at, expected) in trace.steps.iter().enumerate() {
                    let mask = step(constraint.mask().unwrap(), &vocabulary);
                    let place = || format!("{}, {short}, step {at} of {:?}", path.display(), trace.text);
                    assert_eq!(&mask, expected, "{}", place());
                    assert_eq!(constraint.is_complete(), expected.eos, "{}", place());
                    if let Some(&token) = trace.tokens.get(at) {
                        assert!(constraint.allows(token).unwrap(), "{}", place());
                        constraint.advance(token).unwrap_or_else(|error| panic!("{}: {error}", place()));
                    }
                }
            }
        }
    }
}

#[test]
fn engine_makes_the_expected_masks_of_the_reference_grammars() {
    engine_makes_the_expected_masks(|grammar| format!("{grammar}.gbnf"));
}

#[test]
fn engine_makes_the_expected_masks_of_the_printed_grammars() {
    engine_makes_the_expected_masks(|grammar| format!("{grammar}_listing.gbnf"));
}

/// Masks at several places in texts of every shipped grammar are the oracle's, token for token.
#[test]
fn masks_of_shipped_grammars_are_exact() {
    // The shipped model's vocabulary is the one of Mistral v1, so nothing needs to be there for this.
    let folder = Path::new(env!("DOMINO_ROOT")).join("models/domino-small");
    let vocabulary = Vocabulary::from_tokenizer_file(folder).unwrap();
    let (tokens, compiler) = (SortedTokens::new(&vocabulary), Compiler::new(vocabulary.clone()));
    for (name, text, examples) in shipped() {
        let grammar = Grammar::parse(Syntax::Gbnf, &text, &Limits::default()).unwrap();
        let (oracle, compiled) = (Oracle::new(&grammar).unwrap(), compiler.compile(&grammar).unwrap());
        let mut texts = examples.accepted;
        texts.sort_by_key(String::len);
        // The longest text at nine places, and every fifth other one at an odd place and at its end.
        let longest = texts.pop().unwrap_or_default();
        let places = (0..=8).map(|part| (&longest[..], longest.len() * part / 8));
        let others = texts.iter().step_by(5);
        let places =
            places.chain(others.flat_map(|text| [(&text[..], text.len() / 3), (&text[..], text.len())]));
        for (text, end) in places {
            let prefix = &text.as_bytes()[..end];
            let mut session = oracle.session();
            assert!(session.push_all(prefix), "{name}: {text:?} up to {end}");
            let mut constraint = compiled.constraint();
            assert_eq!(constraint.advance_bytes(prefix).unwrap(), end, "{name}: {text:?}");
            let (mask, exact) = (constraint.mask().unwrap(), session.mask(&tokens));
            if mask != &exact {
                let odd = (0..exact.size())
                    .filter_map(TokenId::from_index)
                    .find(|&token| exact.contains(token) != mask.contains(token));
                panic!(
                    "{name}: after {:?} {odd:?} ({:?}) is {} allowed",
                    prefix.escape_ascii().to_string(),
                    odd.and_then(|token| vocabulary.bytes(token))
                        .map(|bytes| bytes.escape_ascii().to_string()),
                    if odd.is_some_and(|token| mask.contains(token)) { "wrongly" } else { "not" },
                );
            }
        }
    }
}
