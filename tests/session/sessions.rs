//! Sessions of one compiled grammar share caches; on however many threads, none changes the others' masks.

use domino::{CompiledGrammar, Compiler, Constraint, Grammar, Limits, Syntax, TokenId, TokenSet, Vocabulary};

use crate::grammar::corpus::shipped;

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
fn sessions_on_several_threads_have_the_masks_of_one() {
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

/// A session survives others that use up the shared budget, and can be rolled back.
#[test]
fn a_session_survives_others_that_use_up_the_budget() {
    let text = r#"root ::= "(" root* ")" | "[" root* "]" | [a-z]"#;
    let grammar = Grammar::parse(Syntax::Gbnf, text, &Limits::default()).expect("a grammar");
    let mut limits = Limits::default();
    (limits.state_bytes, limits.parser_bytes) = (60_000, 60_000);
    let compiler = Compiler::new(vocabulary());
    let small = compiler.clone().limits(limits).compile(&grammar).expect("a grammar that compiles");
    let mut straight = compiler.compile(&grammar).expect("a grammar that compiles").constraint();
    let mut first = small.constraint();
    let mut steps = 0;
    for round in 0..12_u32 {
        // Another that never comes back to where it was, until nothing is left.
        let mut greedy = small.constraint();
        let mut hash = round;
        while greedy.advance_bytes(if hash >> 31 == 0 { b"(" } else { b"[" }).is_ok() {
            hash = hash.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        }
        for byte in *b"([a(b" {
            let token = TokenId::new(u32::from(byte));
            first.advance(token).expect("room for a few more");
            straight.advance(token).expect("a token");
            steps += 1;
        }
        assert_eq!(first.mask().expect("a mask"), straight.mask().expect("a mask"));
    }
    while steps > 0 {
        let back = steps.min(7);
        first.rollback(back).expect("steps taken");
        straight.rollback(back).expect("steps taken");
        steps -= back;
        assert_eq!(first.mask().expect("a mask"), straight.mask().expect("a mask"));
        assert_eq!(first.next_bytes(), straight.next_bytes());
    }
}

#[test]
fn public_types_can_cross_threads() {
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
