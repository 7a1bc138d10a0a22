//! Exhaustion of finite sets of keys and items: masks against an oracle that counts the strings left.

use domino::{
    Compiler, Limits, TokenId, TokenSet, Vocabulary,
    grammar::json_schema::{DuplicateKeys, Escapes, SchemaOptions, WhiteSpace},
};
use proptest::{
    collection::vec,
    prelude::*,
    sample::{select, subsequence},
};
use serde_json::{Value, json};

use crate::promises::generate::config;

/// Tokens beside single bytes.
const WORDS: [&str; 30] = [
    "[\"",
    "{\"",
    "\",\"",
    "\":1,\"",
    "\":1}",
    "\"]",
    "\",",
    ",\"",
    "a\"",
    "b\"",
    "ab",
    "ba",
    "aa",
    "bb",
    "aab",
    "\"a",
    "\"b",
    "\"aa",
    "a\",\"",
    "b\",\"a",
    "a\":1,\"a",
    "b\":1,\"",
    "bb\":1,\"b",
    "\"ab\"",
    "\"b\":1,\"ab",
    "null",
    "null,",
    ",null",
    "\",null",
    "\"\"",
];

/// A set of strings, finite except for loops.
#[derive(Debug, Clone)]
struct Strings {
    few: Vec<&'static str>,
    /// Prefixes of endless strings, each with the letters of which any number may follow it.
    endless: Vec<(&'static str, &'static str)>,
    /// Greatest length of the endless strings, which no text here comes near.
    most: Option<u32>,
}

impl Strings {
    fn schema(&self) -> Value {
        let endless = self.endless.iter().map(|(begun, letters)| format!("{begun}[{letters}]*"));
        let endless = endless.collect::<Vec<_>>().join("|");
        let mut more = json!({ "type": "string", "pattern": format!("^({endless})$") });
        match (self.most, self.endless.is_empty()) {
            (_, true) => json!({ "enum": self.few }),
            (Some(most), false) => {
                more["maxLength"] = most.into();
                json!({ "anyOf": [{ "enum": self.few }, more] })
            }
            (None, false) => {
                let all = [self.few.join("|"), endless].join("|");
                json!({ "type": "string", "pattern": format!("^({all})$") })
            }
        }
    }

    /// True if a string with this prefix is not among those that have come.
    fn are_left(&self, begun: &str, come: &[&str]) -> bool {
        let goes_on = |(from, letters): &(&str, &str)| match begun.strip_prefix(from) {
            Some(more) => more.chars().all(|letter| letters.contains(letter)),
            None => from.starts_with(begun),
        };
        self.endless.iter().any(goes_on)
            || self.few.iter().any(|string| string.starts_with(begun) && !come.contains(string))
    }
}

fn strings() -> impl Strategy<Value = Strings> {
    let few = subsequence(vec!["", "a", "b", "ab", "ba", "aab", "bbb"], 1..6);
    let endless = subsequence(vec![("b", "ab"), ("aa", "a"), ("ab", "b"), ("bb", "a"), ("", "ab")], 0..3);
    let most = select(vec![None, None, Some(30), Some(40), Some(100), Some(300)]);
    (few, endless, most).prop_map(|(few, endless, most)| Strings { few, endless, most })
}

/// True if this prefix of an array of such strings, or of an object with such keys, can be completed without
/// repeats.
fn may_differ(strings: &Strings, text: &str, has_null: bool) -> bool {
    let mut parts = text.split('"');
    let (mut come, mut nulls, mut between) = (Vec::new(), 0, parts.next().unwrap_or_default());
    loop {
        nulls += between.matches("nul").count();
        let Some(string) = parts.next() else { break };
        let Some(next) = parts.next() else { return nulls <= 1 && strings.are_left(string, &come) };
        if come.contains(&string) {
            return false;
        }
        come.push(string);
        between = next;
    }
    let begins_null = ["n", "nu"].iter().any(|begun| between.ends_with(begun));
    let is_left = strings.are_left("", &come) || has_null && nulls == 0;
    nulls <= 1 && !(begins_null && nulls == 1) && (!between.ends_with(',') || is_left)
}

fn vocabulary() -> Vocabulary {
    let end = TokenId::new(256);
    let builder = Vocabulary::builder().all_bytes().special(end, "<end>").end_of_text(end);
    let words = (257..).map(TokenId::new).zip(WORDS);
    words.fold(builder, |builder, (id, word)| builder.token(id, word)).build().unwrap()
}

/// Walks through a text by random tokens: masks are those of texts that may repeat, without tokens after
/// which nothing is left. Returns the number of tokens that this took away.
fn walk(strings: &Strings, is_object: bool, has_null: bool, choices: &[u16]) -> usize {
    let vocabulary = vocabulary();
    let schema = |unique: bool| match (is_object, has_null) {
        (true, _) => json!({
            "type": "object", "propertyNames": strings.schema(), "additionalProperties": { "enum": [1] },
        }),
        (false, false) => json!({ "type": "array", "items": strings.schema(), "uniqueItems": unique }),
        (false, true) => json!({
            "type": "array", "uniqueItems": unique,
            "items": { "anyOf": [strings.schema(), { "type": "null" }] },
        }),
    };
    let [mut constraint, mut any] = [true, false].map(|unique| {
        let options = SchemaOptions::default()
            .with_white_space(WhiteSpace::Compact)
            .with_escapes(Escapes::Minimal)
            .with_duplicate_keys(if unique { DuplicateKeys::Refuse } else { DuplicateKeys::Allow });
        let read = options.parse(&schema(unique).to_string(), &Limits::default());
        let grammar = read.unwrap_or_else(|error| panic!("{}: {error}", schema(unique))).grammar;
        Compiler::new(vocabulary.clone()).compile(&grammar).unwrap().constraint()
    });
    let (mut text, mut taken) = (String::new(), 0);
    for &choice in choices {
        let mut wanted: TokenSet = any.mask().unwrap().clone();
        for (token, bytes) in vocabulary.text_tokens() {
            let Ok(bytes) = std::str::from_utf8(bytes) else { continue };
            if wanted.contains(token) && !may_differ(strings, &(text.clone() + bytes), has_null) {
                wanted.remove(token);
                taken += 1;
            }
        }
        let mask = constraint.mask().unwrap().clone();
        let shown = |mask: &TokenSet| {
            let bytes = |token| vocabulary.bytes(token).unwrap_or(b"<end>");
            mask.iter().map(|token| String::from_utf8_lossy(bytes(token)).into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(shown(&mask), shown(&wanted), "{} after {text}", schema(true));
        let tokens: Vec<TokenId> = mask.iter().collect();
        let Some(&token) = tokens.get(usize::from(choice) % tokens.len().max(1)) else { break };
        let Some(bytes) = vocabulary.bytes(token) else { break };
        for session in [&mut constraint, &mut any] {
            session.advance(token).unwrap();
        }
        text.push_str(std::str::from_utf8(bytes).unwrap());
        let completion = constraint.clone().shortest_completion().unwrap().bytes;
        let whole = text.clone() + std::str::from_utf8(&completion).unwrap();
        assert!(may_differ(strings, &whole, has_null), "{}: {whole}", schema(true));
    }
    taken
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn masks_end_lists_when_keys_or_items_run_out(
        strings in strings(),
        is_object in any::<bool>(),
        has_null in any::<bool>(),
        choices in vec(any::<u16>(), 40),
    ) {
        walk(&strings, is_object, has_null && !is_object, &choices);
    }
}
