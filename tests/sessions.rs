//! Sessions of one compiled grammar share what they find out; on however many threads, none sees another.

use domino::{CompiledGrammar, Compiler, Constraint, Grammar, Limits, Syntax, TokenId, TokenSet, Vocabulary};

use crate::corpus::shipped;

/// A token for every byte, one for some pairs, and end of text.
fn vocabulary() -> Vocabulary {
    let mut builder = Vocabulary::builder();
    let mut next = 0;
    let bytes = (0..=u8::MAX).map(|byte| vec![byte]);
    let pairs =
        ["\":", "\", ", "}}", "[1", " {", "\n ", "</", ");", "= "].map(|pair| pair.as_bytes().to_vec());
    for token in bytes.chain(pairs) {
        builder = builder.token(TokenId::new(next), token);
        next += 1;
    }
    builder.end_of_text(TokenId::new(next)).build().expect("a vocabulary")
}

/// The masks along a text.
fn masks(compiled: &CompiledGrammar, text: &str) -> Vec<TokenSet> {
    let mut constraint = compiled.constraint();
    let mut found = vec![constraint.mask().expect("a mask").clone()];
    for byte in text.bytes() {
        constraint.advance(TokenId::new(u32::from(byte))).expect("a byte of the text");
        found.push(constraint.mask().expect("a mask").clone());
    }
    found
}

#[test]
fn threads_see_what_one_would() {
    let vocabulary = vocabulary();
    for (name, text, examples) in shipped() {
        let grammar = Grammar::parse(Syntax::Gbnf, &text, &Limits::default()).expect("a grammar");
        let compiler = Compiler::new(vocabulary.clone());
        let compile = || compiler.compile(&grammar).expect("a grammar that compiles");
        let texts: Vec<&String> = examples.accepted.iter().take(8).collect();
        let alone: Vec<_> = texts.iter().map(|text| masks(&compile(), text)).collect();
        let together = compile();
        std::thread::scope(|scope| {
            for turn in 0..4 {
                let (name, texts, alone, together) = (&name, &texts, &alone, &together);
                scope.spawn(move || {
                    for at in 0..texts.len() {
                        let at = (at + turn) % texts.len();
                        assert_eq!(masks(together, texts[at]), alone[at], "{name}: {:?}", texts[at]);
                    }
                });
            }
        });
    }
}

#[test]
fn what_users_hold_can_cross_threads() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    send::<Constraint>();
    send::<CompiledGrammar>();
    sync::<CompiledGrammar>();
    send::<Vocabulary>();
    sync::<Vocabulary>();
    send::<Compiler>();
    sync::<Grammar>();
}
