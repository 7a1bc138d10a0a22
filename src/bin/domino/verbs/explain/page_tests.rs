//! Tests of pages with hostile tokens, prompts and grammars.

use std::collections::BTreeSet;

use domino::{
    Compiler, Grammar, Limits, Syntax, Terminals, TokenId, Vocabulary,
    decode::{Decoder, Generation},
    model::ScriptedModel,
};

use super::page;
use crate::verbs::explain::facts::{self, Draft, Facts, Name, ObservedPass, Underneath};

const SCRIPT: &str = "<script>alert(1)</script>";
const END: u32 = 9;

fn vocabulary() -> Vocabulary {
    let tokens: [&[u8]; 9] = [
        SCRIPT.as_bytes(),
        b"\"><img src=x onerror=alert(1)>",
        b"</style>",
        b"\x01\x1b\x7f",
        b"\xed\xa0\x80",
        "\u{202e}\u{301}".as_bytes(),
        b"]]><!--",
        b"&lt;'",
        b"\n  ",
    ];
    let builder = (0..)
        .map(TokenId::new)
        .zip(tokens)
        .fold(Vocabulary::builder(), |builder, (id, bytes)| builder.token(id, bytes));
    builder.special(TokenId::new(END), "<|end|>").end_of_text(TokenId::new(END)).build().unwrap()
}

fn name() -> Name {
    Name { label: format!("<b>\"{SCRIPT}"), whole: format!("<i>'{SCRIPT}") }
}

/// Makes the facts of a text that goes through all tokens and is drafted in part, as the program would.
fn facts() -> Facts {
    let vocabulary = vocabulary();
    let grammar = "root ::= [^a]*   ";
    let grammar = Grammar::parse(Syntax::Gbnf, grammar, &Limits::default()).unwrap();
    let compiler = Compiler::new(vocabulary.clone()).terminals(Terminals::Written);
    let compiled = compiler.compile(&grammar).unwrap();
    let all = |skip: &[u32]| (0..9).filter(|id| !skip.contains(id)).map(TokenId::new).collect::<Vec<_>>();
    // Bytes that are not UTF-8 are outside the grammar's language.
    let written = [&all(&[3, 4])[..], &[TokenId::new(END)]].concat();
    let model = ScriptedModel::new(10, 40, 7).script(1, written).favour(3, TokenId::new(4));
    let mut decoder = Decoder::builder(model)
        .vocabulary(vocabulary.clone())
        .constraint(compiled.constraint())
        .build()
        .unwrap();
    let prompt = [TokenId::new(0)];
    let generation: Generation = decoder.generate(&prompt).unwrap();
    let tokens = [&generation.tokens[..], generation.end_of_text.as_slice()].concat();
    let replayed = decoder.replay(&prompt, &tokens, 10).unwrap();
    let passes = [
        ObservedPass { first: 0, drafted: Vec::new() },
        ObservedPass { first: 1, drafted: vec![tokens[1], TokenId::new(4), TokenId::new(0)] },
        ObservedPass { first: 3, drafted: tokens[3..4].to_vec() },
    ];
    let underneath = Underneath {
        runs: compiled.constraint().terminal_runs(&generation.text).unwrap().unwrap(),
        names: compiled.inspect().terminals().map(|_| name()).collect(),
        trouble: Some(SCRIPT.to_owned()),
    };
    Facts {
        model: SCRIPT.to_owned(),
        grammar: Some(SCRIPT.to_owned()),
        prompt: format!("{SCRIPT}\0\u{202e}"),
        settings: vec![("seed", SCRIPT.to_owned())],
        finish: "stop",
        complete: generation.complete,
        tokens: facts::tokens(&vocabulary, &generation, replayed, &passes, Some(&underneath)),
        appended: Some(SCRIPT.as_bytes().to_vec()),
        underneath: Some(underneath),
        passes: 3,
        drafted: 4,
        accepted: 2,
        text: generation.text,
        vocabulary,
    }
}

/// The names of all tags, with their attributes' names.
fn tags(page: &str) -> BTreeSet<String> {
    page.split('<')
        .skip(1)
        .map(|rest| {
            let name: String = rest.chars().take_while(|c| !c.is_whitespace() && *c != '>').collect();
            name
        })
        .collect()
}

#[test]
fn hostile_tokens_prompts_and_grammars_become_no_markup() {
    let facts = facts();
    let page = page(&facts);
    let expected = "!doctype /article /aside /b /body /code /dd /del /details /div /dl /dt /h1 /h2 /header \
        /html /i /kbd \
        /main /p /pre /script /section /small /span /style /summary /table /tbody /thead /title article \
        aside b body \
        br code dd del details div dl dt h1 h2 header html i kbd main meta p pre script section small span \
        style \
        summary table tbody td th thead title tr";
    let expected: BTreeSet<&str> = expected.split_whitespace().collect();
    // The script compares with `<`, which begins no tag there.
    let before = page.split("<script>").next().unwrap();
    let unknown: Vec<String> =
        tags(before).into_iter().filter(|tag| !expected.contains(tag.as_str())).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (1, 1));
    assert_eq!((page.matches("<style").count(), page.matches("</style").count()), (1, 1));
    assert!(!page.contains("onerror=alert(1)>") && !page.contains("<!--") && !page.contains("://"));
    assert!(page.chars().all(|c| c == '\n' || !c.is_control() && c != '\u{202e}' && c != '\u{301}'));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && page.contains("\\u{202e}"));
    assert!(page.contains("<i>\\xED</i><i>\\xA0</i><i>\\x80</i>") && page.contains("&amp;lt;&#39;"));
}

/// A byte token and the token of the same text are told apart, also where the byte is a letter.
#[test]
fn byte_tokens_have_their_own_look() {
    let builder = Vocabulary::builder().token(TokenId::new(0), b"{").token(TokenId::new(1), b"{");
    let builder = builder.token(TokenId::new(2), b"}").special(TokenId::new(3), "<|end|>");
    let vocabulary = builder.end_of_text(TokenId::new(3)).build().unwrap();
    let facts = Facts { vocabulary, ..facts() };
    let shown: Vec<String> = (0..3).map(|id| facts.show(TokenId::new(id))).collect();
    assert_eq!(shown, ["<i>&lt;0x7B&gt;</i>", "{", "}"]);
}

#[test]
fn each_token_has_a_box_and_a_card() {
    let facts = facts();
    let page = page(&facts);
    let count = facts.tokens.len();
    assert!(count >= 8, "{count}");
    assert_eq!(page.matches("role=\"option\"").count(), count);
    assert_eq!(page.matches("<article").count(), count);
    for index in 0..count {
        assert!(page.contains(&format!("id=\"t{index}\"")) && page.contains(&format!("id=\"c{index}\"")));
    }
    assert!(page.contains("&lt;|end|&gt;"), "end of text is a token, too");
    assert!(page.contains("<br>"), "a line feed begins a line");
    // The model's own third token is not UTF-8.
    assert_eq!(facts.tokens[2].replayed.own, TokenId::new(4));
    assert!(facts.tokens[2].intervened() && facts.tokens[2].replayed.logprobs.kept.unwrap() < -0.1);
    assert_eq!(facts.interventions(), page.matches("class=\"t not\"").count());
    let drafts: Vec<Draft> = facts.tokens.iter().map(|token| token.draft).collect();
    let refused = Draft::Refused { said: TokenId::new(4), lost: 1 };
    assert_eq!(drafts[..5], [Draft::None, Draft::Accepted, refused, Draft::Accepted, Draft::Beyond]);
    assert_eq!(facts.tokens[4].pass, 2);
}

#[test]
fn the_data_has_all_that_the_page_shows() {
    let facts = facts();
    let object = facts::facts_as_json(&facts);
    let tokens = object["tokens"].as_array().unwrap();
    assert_eq!(tokens.len(), facts.tokens.len());
    let pieces: String = tokens
        .iter()
        .flat_map(|token| token["pieces"].as_array().unwrap())
        .map(|piece| piece["text"].as_str().unwrap())
        .collect();
    assert_eq!(Some(pieces.as_str()), object["text"].as_str());
    assert_eq!(tokens[2]["draft"]["what"], "refused");
    let sum: f64 = tokens.iter().filter_map(|token| token["log_kept"].as_f64()).sum();
    assert!((sum - object["log_kept"].as_f64().unwrap()).abs() < 1e-9);
    for (token, seen) in tokens.iter().zip(&facts.tokens) {
        let taken: Vec<_> = token["alternatives"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|alternative| alternative["token_id"] == token["token_id"])
            .collect();
        assert_eq!(taken.len(), 1);
        assert_eq!(taken[0]["logprob"], token["logprob"]);
        assert!((token["logprob"].as_f64().unwrap() + seen.surprise()).abs() < 1e-9);
    }
}
