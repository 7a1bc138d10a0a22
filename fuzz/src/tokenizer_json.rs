//! Files `tokenizer.json`: read or refused, and what is read is a sound vocabulary.

use domino::{Compiler, Grammar, Limits, Syntax, Vocabulary};

/// Most ids of a vocabulary that is looked through: one id can make 2^24 of them.
const MOST_IDS: usize = 1 << 12;

/// Fails if a tokenizer file is mishandled.
pub fn check(data: &[u8]) {
    let Ok(json) = std::str::from_utf8(data) else { return };
    match Vocabulary::from_tokenizer_json(json) {
        Ok(vocabulary) => check_vocabulary(&vocabulary),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn check_vocabulary(vocabulary: &Vocabulary) {
    assert!(!vocabulary.end_of_text().is_empty());
    if vocabulary.size() > MOST_IDS {
        return;
    }
    let mut builder = Vocabulary::builder();
    for (id, bytes) in vocabulary.text_tokens() {
        assert!(!bytes.is_empty() && id.index() < vocabulary.size() && !vocabulary.is_special(id));
        builder = builder.token(id, bytes);
    }
    for (id, name) in vocabulary.special_tokens() {
        assert!(id.index() < vocabulary.size() && vocabulary.bytes(id).is_none());
        builder = builder.special(id, name);
    }
    for &id in vocabulary.end_of_text() {
        assert!(vocabulary.is_special(id));
        builder = builder.end_of_text(id);
    }
    let again = builder.build().expect("built once");
    assert_eq!(&again, vocabulary);
    // A grammar of all bytes allows all tokens, and end of text.
    let grammar = Grammar::parse(Syntax::Regex, "(?s-u:.)*", &Limits::default()).expect("a grammar");
    let compiled = Compiler::new(again).compile(&grammar).expect("it is not empty");
    let mut constraint = compiled.constraint();
    let mask = constraint.mask().expect("small");
    let tokens = vocabulary.text_tokens().map(|(id, _)| id).chain(vocabulary.end_of_text().iter().copied());
    let mut allowed = 0;
    for token in tokens {
        assert!(mask.contains(token), "{token}");
        allowed += 1;
    }
    assert_eq!(mask.len(), allowed);
}
