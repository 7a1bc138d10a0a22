//! Token healing: the part taken back from a prompt is what the text begins with, for all tokenizers.

use domino::{
    Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary,
    decode::Healing,
    grammar::{GrammarBuilder, Pattern, Span},
    vocab::Tokenizer,
};

use crate::support::shared_data::shared;

const BYTE_LEVEL: &str = include_str!("../fixtures/byte_level.json");
const SENTENCEPIECE: &str = include_str!("../fixtures/sentencepiece.json");

const TEXTS: [&str; 4] = [
    "See http://example.com/path?x=1 for more.",
    "{\"name\": \"Ann\", \"age\": 31, \"tags\": [\"a\", \"b\"]}",
    "  def f(x):\n        return x + 1\n",
    "Zürich, 東京 and 😀: été.",
];

/// A grammar of exactly this text.
fn literal(text: &[u8]) -> Grammar {
    let mut builder = GrammarBuilder::new(&Limits::default());
    let body = builder.pattern(Pattern::literal(text), Span::default()).unwrap();
    builder.define("root", body, Span::default()).unwrap();
    builder.finish("root").unwrap()
}

/// Cuts every text at every character, and heals the part before the cut; returns the number of healed cuts.
fn check(name: &str, tokenizer: &Tokenizer, vocabulary: &Vocabulary) -> usize {
    let mut healed = 0;
    for text in TEXTS {
        for (cut, _) in text.char_indices().skip(1) {
            let prompt = tokenizer.encode(&text[..cut], false).unwrap();
            let Healing { kept, bytes, .. } = Healing::of(vocabulary, &prompt);
            let before = vocabulary.concat(&prompt[..kept]);
            assert_eq!(
                [before, bytes.clone()].concat(),
                vocabulary.concat(&prompt),
                "{name}: {text:?} at {cut}"
            );
            assert!(kept >= 1 && prompt.len() - kept <= 4, "{name}: {text:?} at {cut}");
            if bytes.is_empty() {
                continue;
            }
            healed += 1;
            // The text goes on as before, and tokens may cross its beginning.
            let grammar = literal(&text.as_bytes()[cut..]).after(&bytes).unwrap();
            let mut constraint = Compiler::new(vocabulary.clone()).compile(&grammar).unwrap().constraint();
            let whole = [&bytes[..], &text.as_bytes()[cut..]].concat();
            let wanted = vocabulary.prefixes_of(&whole);
            let allowed = constraint.mask().unwrap();
            assert_eq!(allowed, &wanted, "{name}: {text:?} at {cut}");
            assert_eq!(constraint.advance_bytes(&whole).unwrap(), whole.len());
            assert!(constraint.is_complete());
        }
    }
    healed
}

#[test]
fn prompts_are_continued_by_any_tokens() {
    for (name, json) in [("byte level", BYTE_LEVEL), ("SentencePiece", SENTENCEPIECE)] {
        let tokenizer = Tokenizer::from_tokenizer_json(json).unwrap();
        let vocabulary = Vocabulary::from_tokenizer_json(json).unwrap();
        assert!(check(name, &tokenizer, &vocabulary) > 0, "{name}");
    }
}

#[test]
fn prompts_of_all_tokenizers_are_continued() {
    for name in [
        "cl100k-100k",
        "gpt2-50k",
        "mistral-v1-32k",
        "mistral-v3-32k",
        "o200k-200k",
        "qwen2-152k",
        "tekken-131k",
    ] {
        let Some(folder) = shared(&format!("data/tokenizers/{name}")) else { return };
        let tokenizer = Tokenizer::from_tokenizer_file(&folder).unwrap();
        let vocabulary = Vocabulary::from_tokenizer_file(&folder).unwrap();
        assert!(check(name, &tokenizer, &vocabulary) > 50, "{name}");
    }
}

/// `http:` is one token and `:` the next; after healing `://` may come.
#[test]
fn a_token_crosses_the_end_of_the_prompt() {
    let words = ["http", ":", "://", "/", "x"];
    let builder = words
        .iter()
        .zip(0..)
        .fold(Vocabulary::builder(), |builder, (word, raw)| builder.token(TokenId::new(raw), word));
    let vocabulary = builder.end_of_text(TokenId::new(5)).build().unwrap();
    let healing = Healing::of(&vocabulary, &[TokenId::new(0), TokenId::new(1)]);
    assert_eq!((healing.kept, &*healing.bytes), (1, &b":"[..]));
    let grammar = Grammar::parse(Syntax::Gbnf, r#"root ::= "//" "x"+"#, &Limits::default()).unwrap();
    let after = grammar.after(&healing.bytes).unwrap();
    let compiled = Compiler::new(vocabulary).compile(&after).unwrap();
    let mask: Vec<u32> = compiled.constraint().mask().unwrap().iter().map(TokenId::raw).collect();
    assert_eq!(mask, [1, 2]);
    // Unique keys are a fact about whole texts, so there is no grammar of their ends.
    let open = Grammar::parse(Syntax::JsonSchema, r#"{"type": "object"}"#, &Limits::default()).unwrap();
    assert_eq!(open.after(b" ").is_none(), open.distinct_keys().is_some());
}
