//! Ranking inversion (arXiv 2407.08103, appendix A): where tokens must not cross the borders of terminals,
//! the likelier of two texts can become the less likely one.
//!
//! The fixture is the appendix's: four token sequences of two calls, their scores, and the grammar of A.1.
//! The paper prints `(456)` and `(123)` as one; they are cut at the brackets here, which are terminals.

use super::*;
use crate::{
    Compiler, Lookahead,
    decode::Sampling,
    grammar::{Grammar, Syntax},
    limits::Limits,
    model::{Logits, Rows, ScriptedError},
    vocab::Vocabulary,
};

const GRAMMAR: &str = r#"root ::= function "(" number ")"
function ::= "foo" | "bar"
number ::= "123" | "456""#;
const TEXTS: [&str; 2] = ["foo(123)", "bar(456)"];
const TOKENS: [&str; 14] =
    ["fo", "o(1", "2", "3)", "bar", "(", "456", ")", "foo", "123", "ba", "r(4", "5", "6)"];
const END: u32 = 14;
const PROMPT: u32 = 0;

/// The model's sequences with their scores, the likeliest first; every other continuation has a millionth.
const SEQUENCES: [(f32, [u32; 4]); 4] =
    [(0.4, [0, 1, 2, 3]), (0.3, [4, 5, 6, 7]), (0.2, [8, 5, 9, 7]), (0.1, [10, 11, 12, 13])];

/// A model of listed sequences.
struct ListedModel {
    tokens: Vec<TokenId>,
}

impl Model for ListedModel {
    type Error = ScriptedError;

    fn position(&self) -> usize {
        self.tokens.len()
    }

    fn context(&self) -> usize {
        20
    }

    fn vocabulary_size(&self) -> usize {
        TOKENS.len() + 1
    }

    fn forward(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Result<Logits, ScriptedError> {
        let mut values = Vec::new();
        for (index, &token) in tokens.iter().enumerate() {
            self.tokens.push(token);
            if index + rows.count(tokens.len()) >= tokens.len() {
                values.extend(row(&self.tokens[1..]).map(f32::ln));
            }
        }
        Ok(Logits::new(values, self.vocabulary_size()))
    }

    fn truncate(&mut self, position: usize) -> Result<(), ScriptedError> {
        self.tokens.truncate(position);
        Ok(())
    }
}

/// Returns the probabilities after some tokens.
fn row(tokens: &[TokenId]) -> [f32; 15] {
    let mut row = [1e-6; 15];
    for (score, sequence) in SEQUENCES {
        let sequence = sequence.map(TokenId::new);
        if let Some(rest) = sequence.strip_prefix(tokens) {
            let next = rest.first().map_or(END, |token| token.raw());
            // Only the first token leaves a choice.
            row[TokenId::new(next).index()] = if tokens.is_empty() { score } else { 1.0 };
        }
    }
    row
}

fn vocabulary() -> Vocabulary {
    let builder = (0..)
        .zip(TOKENS)
        .fold(Vocabulary::builder(), |builder, (id, text)| builder.token(TokenId::new(id), text));
    builder.end_of_text(TokenId::new(END)).build().unwrap()
}

fn variant(method: MethodName) -> Variant {
    let k = if method == MethodName::Naive { K::Terminals(0) } else { K::Infinite };
    Variant { method, k: Some(k), s: None, threshold: None, warm_ups: None, think: None }
}

fn compiled(variant: &Variant) -> CompiledGrammar {
    let grammar = Grammar::parse(Syntax::Gbnf, GRAMMAR, &Limits::default()).unwrap();
    let compiler = Compiler::new(vocabulary()).lookahead(Lookahead::from(variant.k.unwrap()));
    compiler.terminals(variant.terminals()).compile(&grammar).unwrap()
}

/// Returns the sequences that the masks of a method let through, as texts with their probabilities, the
/// likeliest first. Sequences that end where no token of the vocabulary may follow are left out.
fn through(method: MethodName) -> Vec<(f64, String)> {
    let mut whole = Vec::new();
    let mut open = vec![(Vec::new(), compiled(&variant(method)).constraint(), 1.0)];
    while let Some((tokens, mut constraint, share)) = open.pop() {
        let (row, mask) = (row(&tokens), constraint.mask().unwrap().clone());
        let of = |token: TokenId| f64::from(row[token.index()]);
        for token in mask.iter() {
            let share = share * of(token);
            if token.raw() == END {
                let text: String = tokens.iter().map(|token: &TokenId| TOKENS[token.index()]).collect();
                whole.push((share, text));
                continue;
            }
            let mut next = constraint.clone();
            next.advance(token).unwrap();
            open.push(([&tokens[..], &[token]].concat(), next, share));
        }
    }
    whole.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    whole
}

/// Returns the probabilities of the two texts among all sequences that a method lets through.
fn shares(method: MethodName) -> [f64; 2] {
    let whole = through(method);
    let all: f64 = whole.iter().map(|(share, _)| share).sum();
    TEXTS.map(|text| whole.iter().filter(|(_, other)| other == text).map(|(share, _)| share / all).sum())
}

/// Returns the text that a method writes; `None` if it comes to where no token may follow.
fn written(method: &MethodName, temperature: f64, seed: u64) -> Option<String> {
    let tokenizer = include_str!("../../../tests/fixtures/byte_level.json");
    let tokenizer = Tokenizer::from_tokenizer_json(tokenizer).unwrap();
    let variant = variant(method.clone());
    let grammar = compiled(&variant);
    let mut decoder = Decoder::builder(ListedModel { tokens: Vec::new() })
        .vocabulary(vocabulary())
        .sampling(Sampling::with_temperature(temperature).unwrap())
        .seed(seed)
        .build()
        .unwrap();
    let mut made = variant.method::<ListedModel>(Some(&grammar), &tokenizer, None, None).unwrap();
    let mut stage = Stage { decoder: &mut decoder, grammar: Some(&grammar), tokenizer: &tokenizer };
    let outcome = made.generate(&mut stage, &[TokenId::new(PROMPT)]).ok()?;
    assert!(outcome.complete);
    Some(String::from_utf8(outcome.text).unwrap())
}

#[test]
fn cutting_terminals_at_tokens_turns_the_ranking_round() {
    // The paper ranks by the best sequence.
    let best = |method: MethodName| through(method).swap_remove(0);
    let is = |found: (f64, String), share: f64, text: &str| (found.0 - share).abs() < 1e-3 && found.1 == text;
    assert!(is(best(MethodName::Masks), 0.4, TEXTS[0]));
    assert!(is(best(MethodName::Naive), 0.3, TEXTS[1]));
    let [foo, bar] = shares(MethodName::Masks);
    assert!((foo - 0.6).abs() < 1e-3 && (bar - 0.4).abs() < 1e-3, "{foo} {bar}");
    let [foo, bar] = shares(MethodName::Naive);
    assert!((foo - 0.4).abs() < 1e-3 && (bar - 0.6).abs() < 1e-3, "{foo} {bar}");
    for exact in [MethodName::Masks, MethodName::Always, MethodName::Online, MethodName::Rejection] {
        assert_eq!(written(&exact, 0.0, 0).as_deref(), Some(TEXTS[0]), "{exact}");
    }
    let foo = |method: &MethodName| {
        let texts: Vec<String> = (0..400).filter_map(|seed| written(method, 1.0, seed)).collect();
        (texts.iter().filter(|text| *text == TEXTS[0]).count(), texts.len())
    };
    // 240 of 400 and 80 of 200 are expected, with standard deviations of about 10 and 7.
    let (masks, all) = foo(&MethodName::Masks);
    assert!(all == 400 && masks > 205, "{masks} of {all}");
    let (naive, all) = foo(&MethodName::Naive);
    assert!(all > 150 && 2 * naive < all, "{naive} of {all}");
}
