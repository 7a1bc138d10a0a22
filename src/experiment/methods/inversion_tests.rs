//! Ranking inversion (arXiv 2407.08103, appendix A): where terminals are cut at the borders of tokens, the
//! likelier of two texts can become the less likely one, since the token that spells most of it is refused.
//!
//! The fixture: a call `f(x)` or `f[x]`, whose names and brackets are terminals. The model likes the token
//! `f(`, which reaches over a border; of those texts that begin with the token `f` it likes `f[x]`.

use super::*;
use crate::{
    compile::Compiler,
    decode::Sampling,
    grammar::{Grammar, Syntax},
    limits::Limits,
    model::{Logits, Rows, ScriptedError},
    subterminal::Lookahead,
    vocab::Vocabulary,
};

const GRAMMAR: &str = r#"root ::= name (round | square)
name ::= [a-z]+
round ::= "(" name ")"
square ::= "[" name "]""#;
const TOKENS: [&str; 8] = ["f", "f(", "(", "[", "x", ")", "]", "x)"];
const END: u32 = 8;
const PROMPT: u32 = 0;

/// What follows a text, with probabilities; everything else has a millionth. Whole texts end.
const TABLE: [(&str, &[(u32, f32)]); 6] = [
    ("", &[(1, 0.6), (0, 0.4)]),
    ("f", &[(3, 0.9), (2, 0.1)]),
    ("f(", &[(4, 0.5), (7, 0.5)]),
    ("f[", &[(4, 1.0)]),
    ("f(x", &[(5, 1.0)]),
    ("f[x", &[(6, 1.0)]),
];

/// A model of probabilities that are written down, by the text so far.
struct Table {
    tokens: Vec<TokenId>,
}

impl Model for Table {
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

/// The probabilities after a text.
fn row(text: &[TokenId]) -> [f32; 9] {
    let text: String = text.iter().filter_map(|token| TOKENS.get(token.index()).copied()).collect();
    let found = TABLE.iter().find(|(before, _)| *before == text);
    let mut row = [1e-6; 9];
    for &(token, share) in found.map_or(&[(END, 1.0)][..], |(_, next)| next) {
        row[TokenId::new(token).index()] = share;
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
    Variant { method, k: Some(k), s: None, threshold: None, warm_ups: None }
}

fn compiled(variant: &Variant) -> CompiledGrammar {
    let grammar = Grammar::parse(Syntax::Gbnf, GRAMMAR, &Limits::default()).unwrap();
    let compiler = Compiler::new(vocabulary()).lookahead(Lookahead::from(variant.k.unwrap()));
    compiler.terminals(variant.terminals()).compile(&grammar).unwrap()
}

/// The probabilities of the two texts under the masks of a method, by all of their tokenisations.
fn shares(method: MethodName) -> [f64; 2] {
    let mut shares = [0.0; 2];
    let mut open = vec![(Vec::new(), compiled(&variant(method)).constraint(), 1.0)];
    while let Some((tokens, mut constraint, share)) = open.pop() {
        let (row, mask) = (row(&tokens), constraint.mask().unwrap().clone());
        let of = |token: TokenId| f64::from(row[token.index()]);
        let kept: f64 = mask.iter().map(of).sum();
        for token in mask.iter() {
            let share = share * of(token) / kept;
            if share < 1e-5 {
                // Names may be of any length.
                continue;
            }
            if token.raw() == END {
                let text: String = tokens.iter().map(|token: &TokenId| TOKENS[token.index()]).collect();
                let texts = ["f(x)", "f[x]"];
                texts
                    .iter()
                    .zip(&mut shares)
                    .filter(|(other, _)| **other == text)
                    .for_each(|(_, sum)| *sum += share);
                continue;
            }
            let mut next = constraint.clone();
            next.advance(token).unwrap();
            open.push(([&tokens[..], &[token]].concat(), next, share));
        }
    }
    shares
}

/// What a method writes.
fn written(method: &MethodName, temperature: f64, seed: u64) -> String {
    let tokenizer = include_str!("../../../tests/fixtures/byte_level.json");
    let tokenizer = Tokenizer::from_tokenizer_json(tokenizer).unwrap();
    let variant = variant(method.clone());
    let grammar = compiled(&variant);
    let mut decoder = Decoder::builder(Table { tokens: Vec::new() })
        .vocabulary(vocabulary())
        .sampling(Sampling::with_temperature(temperature).unwrap())
        .seed(seed)
        .build()
        .unwrap();
    let mut made = variant.method::<Table>(Some(&grammar), &tokenizer, None, None).unwrap();
    let mut stage = Stage { decoder: &mut decoder, grammar: Some(&grammar), tokenizer: &tokenizer };
    let outcome = made.generate(&mut stage, &[TokenId::new(PROMPT)]).unwrap();
    assert!(outcome.complete);
    String::from_utf8(outcome.text).unwrap()
}

#[test]
fn cutting_terminals_at_tokens_turns_the_ranking_round() {
    let [round, square] = shares(MethodName::Masks);
    assert!((round - 0.64).abs() < 1e-3 && (square - 0.36).abs() < 1e-3, "{round} {square}");
    let [round, square] = shares(MethodName::Naive);
    assert!((round - 0.1).abs() < 1e-3 && (square - 0.9).abs() < 1e-3, "{round} {square}");
    for exact in [MethodName::Masks, MethodName::Always, MethodName::Online, MethodName::Rejection] {
        assert_eq!(written(&exact, 0.0, 0), "f(x)", "{exact}");
    }
    assert_eq!(written(&MethodName::Naive, 0.0, 0), "f[x]");
    let often = |method: &MethodName| (0..400).filter(|&seed| written(method, 1.0, seed) == "f(x)").count();
    // 256 and 40 are expected; ten standard deviations are about 96 and 60.
    let (masks, naive) = (often(&MethodName::Masks), often(&MethodName::Naive));
    assert!(masks > 200 && naive < 100, "{masks} {naive}");
}
