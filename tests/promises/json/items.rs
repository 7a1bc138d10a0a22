//! Arrays with distinct items: masks against all texts of small schemas, each judged by itself.

use std::collections::BTreeSet;

use domino::{
    Compiler, Constraint, Limits, TokenId, TokenSet, Vocabulary,
    grammar::json_schema::{Escapes, SchemaOptions, WhiteSpace},
};
use proptest::{collection::vec, option::weighted, prelude::*, sample::select};
use serde_json::{Value, json};

use crate::promises::generate::config;

/// Most texts of a schema that are written out.
const TEXTS: usize = 60_000;
/// Tokens beside single bytes; many span items.
const WORDS: [&str; 49] = [
    "\\u00", "61", "22", " \"", "\n ", ".0", "00", "e0", "0e", ".5,", "\",\"", "\"]", "[\"", "\"a\"",
    "\"a\",", "a\"", "a\",", "b\",\"a", "ab", "\"b", "1,1]", "1,", "0,1", ",1", "12", "10", "11,", "[1",
    "[1,1", "[[", "]]", "],[", "[],", "[],[]", "true", "true,", "e,", "e]", "null]", ",t", "},{", "{\"k\":",
    "\":1}", "\"aa", "e,false", "},{}", "\"},{}", "],[]", "],[1]",
];
/// Longer ones.
const LONG_WORDS: [&str; 6] =
    ["\"a\",\"a\"]", "\",\"a\",", "\":\"a\"}", "1},{\"k\":1", "[\"a\",\"", "},{\"k\":1}"];

/// A set of values, small enough to write them all down.
#[derive(Debug, Clone)]
enum Set {
    Few(Vec<Value>),
    /// Strings that match `^[ab]{0,n}$`.
    Strings(usize),
    Integers(i64, i64),
    Array {
        item: Box<Set>,
        first: Option<Box<Set>>,
        min: usize,
        max: usize,
        unique: bool,
    },
    /// Closed objects, with their member or without.
    Object(Box<Set>, bool),
    Either(Box<Set>, Box<Set>),
    /// Arrays with an item of each of these sets.
    Having(Box<Set>, Vec<Set>),
}

impl Set {
    fn schema(&self) -> Value {
        match self {
            Self::Few(values) => json!({ "enum": values }),
            Self::Strings(most) => json!({ "type": "string", "pattern": format!("^[ab]{{0,{most}}}$") }),
            Self::Integers(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
            Self::Array { item, first, min, max, unique } => {
                let mut schema =
                    json!({ "type": "array", "minItems": min, "maxItems": max, "uniqueItems": unique });
                schema["items"] = item.schema();
                if let Some(first) = first {
                    schema["prefixItems"] = json!([first.schema()]);
                }
                schema
            }
            Self::Object(member, required) => json!({
                "type": "object", "properties": { "k": member.schema() }, "additionalProperties": false,
                "required": if *required { vec!["k"] } else { vec![] },
            }),
            Self::Either(one, other) => json!({ "anyOf": [one.schema(), other.schema()] }),
            Self::Having(array, sets) => {
                let asked: Vec<Value> = sets.iter().map(|set| json!({ "contains": set.schema() })).collect();
                json!({ "allOf": [array.schema(), { "allOf": asked }] })
            }
        }
    }

    /// All values of the set; `None` if they are too many.
    fn values(&self) -> Option<BTreeSet<String>> {
        let mut found = BTreeSet::new();
        match self {
            Self::Few(values) => found.extend(values.iter().map(Value::to_string)),
            Self::Strings(most) => {
                let mut longest = vec![String::new()];
                for _ in 0..=*most {
                    found.extend(longest.iter().map(|text| format!("\"{text}\"")));
                    longest =
                        longest.iter().flat_map(|text| ["a", "b"].map(|end| text.clone() + end)).collect();
                }
            }
            Self::Integers(least, most) => found.extend((*least..=*most).map(|number| number.to_string())),
            Self::Array { item, first, min, max, unique } => {
                let items = item.values()?;
                let firsts = first.as_ref().map_or(Some(items.clone()), |first| first.values())?;
                let mut lists: Vec<Vec<String>> = vec![Vec::new()];
                for length in 0..=*max {
                    if length >= *min {
                        found.extend(lists.iter().map(|list| format!("[{}]", list.join(","))));
                    }
                    let more = if length == 0 { &firsts } else { &items };
                    let longer = lists.iter().flat_map(|list| more.iter().map(move |item| (list, item)));
                    let longer = longer.filter(|(list, item)| !unique || !list.contains(item));
                    lists = longer
                        .map(|(list, item)| [&list[..], std::slice::from_ref(item)].concat())
                        .take(TEXTS + 1)
                        .collect();
                    if found.len() + lists.len() > TEXTS {
                        return None;
                    }
                }
            }
            Self::Object(member, required) => {
                found.extend((!required).then(|| "{}".to_owned()));
                found.extend(member.values()?.into_iter().map(|value| format!("{{\"k\":{value}}}")));
            }
            Self::Either(one, other) => {
                found.append(&mut one.values()?);
                found.append(&mut other.values()?);
            }
            Self::Having(array, sets) => {
                let sets = sets.iter().map(Self::values).collect::<Option<Vec<_>>>()?;
                found.extend(array.values()?.into_iter().filter(|text| {
                    let items: Vec<Value> = serde_json::from_str(text).unwrap();
                    sets.iter().all(|set| items.iter().any(|item| set.contains(&item.to_string())))
                }));
            }
        }
        (found.len() <= TEXTS).then_some(found)
    }
}

fn scalars() -> impl Strategy<Value = Set> {
    prop_oneof![
        2 => (0..4_usize).prop_map(Set::Strings),
        2 => (-2..2_i64, 1..13_i64).prop_map(|(least, more)| Set::Integers(least, least + more)),
        1 => (94..101_i64, 5..25_i64).prop_map(|(least, more)| Set::Integers(least, least + more)),
        1 => Just(Set::Few(vec![json!(true), json!(null), json!("a"), json!("aa"), json!(1), json!(11)])),
        1 => Just(Set::Few(vec![json!(true), json!(false)])),
        1 => Just(Set::Few((0..12).map(|at| json!("ab".repeat(at % 4) + &"a".repeat(at / 4))).collect())),
    ]
}

fn set() -> impl Strategy<Value = Set> {
    scalars().prop_recursive(3, 10, 2, |inner| {
        let array = (inner.clone(), weighted(0.2, inner.clone()), 0..3_usize, 0..3_usize, any::<bool>());
        prop_oneof![
            5 => array.prop_map(|(item, first, min, more, repeats)| Set::Array {
                item: Box::new(item),
                first: first.map(Box::new),
                min,
                max: min + more,
                unique: !repeats,
            }),
            2 => (inner.clone(), any::<bool>()).prop_map(|(one, must)| Set::Object(Box::new(one), must)),
            1 => (inner.clone(), inner).prop_map(|(one, other)| Set::Either(Box::new(one), Box::new(other))),
        ]
    })
}

/// An array with distinct items, or alternatives of which one has them.
fn array() -> impl Strategy<Value = Set> {
    let unique = (set(), weighted(0.2, set()), select(vec![0_usize, 0, 1, 2]), 1..4_usize);
    let unique = unique.prop_map(|(item, first, min, more)| Set::Array {
        item: Box::new(item),
        first: first.map(Box::new),
        min,
        max: min + more,
        unique: true,
    });
    let either = |one: Set, other: Set| Set::Either(Box::new(one), Box::new(other));
    let unique = unique.boxed();
    let having = (unique.clone(), vec(scalars(), 1..3));
    let having = having.prop_map(|(array, sets)| Set::Having(Box::new(array), sets));
    let other = (unique.clone(), set()).prop_map(move |(one, other)| either(one, other));
    prop_oneof![3 => unique, 2 => having, 1 => other]
}

fn vocabulary() -> Vocabulary {
    let end = TokenId::new(256);
    let builder = Vocabulary::builder().all_bytes().special(end, "<end>").end_of_text(end);
    let words = (257..).map(TokenId::new).zip(WORDS.into_iter().chain(LONG_WORDS));
    words.fold(builder, |builder, (id, word)| builder.token(id, word)).build().unwrap()
}

fn options() -> SchemaOptions {
    SchemaOptions::default().with_white_space(WhiteSpace::Compact).with_escapes(Escapes::Minimal)
}

/// The mask after `text` in a language of these texts alone.
fn judged(texts: &BTreeSet<String>, text: &[u8], vocabulary: &Vocabulary) -> TokenSet {
    let mut mask = TokenSet::empty(vocabulary.size());
    let text = std::str::from_utf8(text).unwrap();
    for (token, bytes) in vocabulary.text_tokens() {
        let Ok(bytes) = std::str::from_utf8(bytes) else { continue };
        let longer = text.to_owned() + bytes;
        if texts.range(longer.clone()..).next().is_some_and(|next| next.starts_with(&longer)) {
            mask.insert(token);
        }
    }
    if texts.contains(text) {
        mask.insert(TokenId::new(256));
    }
    mask
}

fn shown(mask: &TokenSet, vocabulary: &Vocabulary) -> Vec<String> {
    let name = |token| String::from_utf8_lossy(vocabulary.bytes(token).unwrap_or(b"<end>")).into_owned();
    mask.iter().map(name).collect()
}

/// Checks that mask, single tokens and bytes agree.
fn compare(
    constraint: &mut Constraint,
    (texts, text): (&BTreeSet<String>, &[u8]),
    vocabulary: &Vocabulary,
    context: &str,
) -> TokenSet {
    let wanted = judged(texts, text, vocabulary);
    let mut fresh = constraint.fork();
    let mask = fresh.mask().unwrap().clone();
    let here = String::from_utf8_lossy(text).into_owned();
    assert_eq!(shown(&mask, vocabulary), shown(&wanted, vocabulary), "{context} after {here}");
    let mut bytes = constraint.next_bytes().unwrap();
    bytes.retain(u8::is_ascii);
    let is_byte = |token: TokenId| u8::try_from(token.raw()).ok().filter(u8::is_ascii);
    assert_eq!(bytes, wanted.iter().filter_map(is_byte).collect::<Vec<_>>(), "{context} after {here}");
    for (token, word) in vocabulary.text_tokens().filter(|(token, _)| token.raw() > 256) {
        let mut other = constraint.clone();
        assert_eq!(other.allows(token).unwrap(), wanted.contains(token), "{context} after {here}: {word:?}");
        assert_eq!(other.advance(token).is_ok(), wanted.contains(token), "{context} after {here}: {word:?}");
        // `advance_bytes` takes as many bytes as can follow, and no more.
        let word = std::str::from_utf8(word).unwrap();
        let follows = |end: &usize| {
            let longer = here.clone() + &word[..*end];
            texts.range(longer.clone()..).next().is_some_and(|next| next.starts_with(&longer))
        };
        let most = (0..=word.len()).rev().find(follows).unwrap();
        let mut other = constraint.fork();
        assert_eq!(other.advance_bytes(word.as_bytes()).unwrap(), most, "{context} after {here}: {word:?}");
    }
    let completion = constraint.clone().shortest_completion().unwrap().bytes;
    let whole = here.clone() + std::str::from_utf8(&completion).unwrap();
    assert!(texts.contains(&whole), "{context} after {here}: {whole}");
    mask
}

/// Walks through texts by random tokens, and back. Returns the number of masks compared; `None` if the schema
/// is refused or too large.
fn walk(set: &Set, choices: &[u16]) -> Option<usize> {
    let texts = set.values()?;
    let (schema, vocabulary) = (set.schema().to_string(), vocabulary());
    let grammar = match options().parse(&schema, &Limits::default()) {
        Ok(read) => read.grammar,
        Err(error) => {
            let reason = error.to_string();
            let is_known = reason.contains("must differ") || texts.is_empty();
            assert!(is_known, "{schema}: {reason}");
            return None;
        }
    };
    let compiled = Compiler::new(vocabulary.clone()).compile(&grammar);
    let compiled = compiled.unwrap_or_else(|error| panic!("{schema}: {error}"));
    let mut compared = 0;
    // The second text comes to places that the first has left something of.
    for choices in [choices, &choices[choices.len().min(1)..]] {
        let mut constraint = compiled.constraint();
        let (mut text, mut masks) = (Vec::new(), Vec::new());
        for &choice in choices {
            let mask = compare(&mut constraint, (&texts, &text), &vocabulary, &schema);
            // Longer tokens first: they reach further.
            let tokens: Vec<TokenId> = mask.iter().collect();
            let long: Vec<TokenId> = mask.iter().filter(|token| token.raw() > 256).collect();
            let tokens = if long.is_empty() || choice % 2 == 0 { tokens } else { long };
            let Some(&token) = tokens.get(usize::from(choice / 2) % tokens.len().max(1)) else { break };
            masks.push(mask);
            constraint.advance(token).unwrap();
            if constraint.is_ended() {
                break;
            }
            text.extend_from_slice(vocabulary.bytes(token).unwrap());
        }
        compared += masks.len();
        for before in masks.into_iter().rev() {
            constraint.rollback(1).unwrap();
            assert_eq!(constraint.mask().unwrap(), &before, "{schema}");
        }
    }
    Some(compared)
}

/// Values with many spellings.
fn spelled() -> impl Strategy<Value = Set> {
    let values = [
        json!(0),
        json!(1),
        json!(10),
        json!(-1),
        json!(2.5),
        json!(0.01),
        json!(1000),
        json!("a"),
        json!("\""),
        json!("/\n"),
        json!("\u{e9}"),
        json!("\u{1f600}b"),
        json!(""),
        json!(null),
        json!(true),
    ];
    let few = prop::sample::subsequence(values.to_vec(), 1..5).prop_map(Set::Few);
    let array = |item: Set, min, more| Set::Array {
        item: Box::new(item),
        first: None,
        min,
        max: min + more,
        unique: true,
    };
    let nested =
        (few.clone(), 0..2_usize, 0..2_usize).prop_map(move |(item, min, more)| array(item, min, more));
    let object =
        (few.clone(), any::<bool>()).prop_map(|(member, required)| Set::Object(Box::new(member), required));
    let many = Just(Set::Few((0..11).map(|number| json!(f64::from(number) / 2.0 - 1.0)).collect()));
    let more = prop_oneof![nested.clone(), object.clone()].prop_map(Box::new);
    let mixed = (few.clone().prop_map(Box::new), more).prop_map(|(one, other)| Set::Either(one, other));
    let item = prop_oneof![2 => few, 2 => nested, 2 => object, 1 => mixed, 1 => many];
    (item, 0..2_usize, 1..3_usize).prop_map(move |(item, min, more)| array(item, min, more))
}

/// Walks through a text by random tokens, values spelled in any way: masks are those of all listed values.
fn walk_spelled(set: &Set, choices: &[u16]) {
    let Some(values) = set.values().filter(|values| (1..300).contains(&values.len())) else { return };
    let values: Vec<Value> = values.iter().map(|value| serde_json::from_str(value).unwrap()).collect();
    let (schema, listed) = (set.schema().to_string(), json!({ "enum": values }).to_string());
    let vocabulary = vocabulary();
    let [mut constraint, mut wanted] = [&schema, &listed].map(|schema| {
        let read = SchemaOptions::default().parse(schema, &Limits::default());
        let grammar = read.unwrap_or_else(|error| panic!("{schema}: {error}")).grammar;
        Compiler::new(vocabulary.clone()).compile(&grammar).unwrap().constraint()
    });
    let mut text = Vec::new();
    for &choice in choices {
        let (mask, listed) = (constraint.mask().unwrap().clone(), wanted.mask().unwrap().clone());
        let here = String::from_utf8_lossy(&text).into_owned();
        assert_eq!(shown(&mask, &vocabulary), shown(&listed, &vocabulary), "{schema} after {here:?}");
        let is_blank =
            |token: &TokenId| matches!(vocabulary.bytes(*token), Some(b" " | b"\t" | b"\r" | b"\n"));
        let mut tokens: Vec<TokenId> =
            mask.iter().filter(|token| choice % 7 == 0 || !is_blank(token)).collect();
        tokens.sort_by_key(|token| token.raw() <= 256);
        let Some(&token) = tokens.get(usize::from(choice / 7) % tokens.len().max(1)) else { return };
        for session in [&mut constraint, &mut wanted] {
            session.advance(token).unwrap();
        }
        let Some(bytes) = vocabulary.bytes(token) else { return };
        text.extend_from_slice(bytes);
    }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn unique_items_come_once_however_they_are_spelled(set in spelled(), choices in vec(any::<u16>(), 24)) {
        walk_spelled(&set, &choices);
    }

    #[test]
    fn unique_items_come_once(set in array(), choices in vec(any::<u16>(), 14)) {
        walk(&set, &choices);
    }
}

/// A schema of items that all have endlessly many values.
fn endless() -> impl Strategy<Value = Value> {
    let few = select(vec![
        json!({ "enum": [1, 11] }),
        json!({ "type": "boolean" }),
        json!({ "enum": ["a", "aa", "b"] }),
        json!({
            "type": "object", "properties": { "k": { "enum": ["a", 1] } }, "additionalProperties": false,
        }),
        json!({ "type": "array", "items": { "enum": [1, "a"] }, "maxItems": 2 }),
    ]);
    let object = (few.clone(), few.clone()).prop_map(|(member, others)| {
        json!({ "type": "object", "properties": { "k": member }, "additionalProperties": others })
    });
    let array = (few.clone(), prop::option::of(few)).prop_map(|(item, first)| match first {
        Some(first) => json!({ "type": "array", "items": item, "prefixItems": [first] }),
        None => json!({ "type": "array", "items": item }),
    });
    let item = prop_oneof![3 => object, 2 => array].boxed();
    prop_oneof![
        3 => item.clone(),
        1 => item.clone().prop_map(|item| json!({ "anyOf": [item, { "type": "boolean" }] })),
        1 => item.prop_map(|item| json!({ "type": "array", "items": item })),
    ]
}

/// The complete items in a prefix of an array, and the text behind the last of them.
fn items_of(text: &str) -> (Vec<Value>, &str) {
    let (mut items, mut rest) = (Vec::new(), text.strip_prefix('[').unwrap_or_default());
    loop {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let Some(Ok(value)) = values.next() else { return (items, rest) };
        items.push(value);
        let Some(more) = rest[values.byte_offset()..].strip_prefix(',') else { return (items, "") };
        rest = more;
    }
}

/// True if a prefix of an array can still be completed with distinct items.
fn may_differ(text: &str) -> bool {
    let (items, rest) = items_of(text);
    let words = [("true", json!(true)), ("false", json!(false))];
    let mut begun = words.iter().filter(|(word, _)| !rest.is_empty() && word.starts_with(rest));
    let differ = items.iter().enumerate().all(|(at, item)| !items[..at].contains(item));
    differ && begun.all(|(_, value)| !items.contains(value))
}

/// Walks through a text by random tokens: masks are those of arrays of the same items, without tokens that
/// complete a repeated item.
fn walk_endless(item: &Value, choices: &[u16]) {
    let vocabulary = vocabulary();
    let [mut constraint, mut any] = [true, false].map(|unique| {
        let schema = json!({ "type": "array", "items": item, "uniqueItems": unique }).to_string();
        let read = options().parse(&schema, &Limits::default());
        let grammar = read.unwrap_or_else(|error| panic!("{schema}: {error}")).grammar;
        Compiler::new(vocabulary.clone()).compile(&grammar).unwrap().constraint()
    });
    let mut text = String::new();
    for &choice in choices {
        let mut wanted = any.mask().unwrap().clone();
        for (token, bytes) in vocabulary.text_tokens() {
            // A character cut in two begins nothing that repeats.
            let Ok(bytes) = std::str::from_utf8(bytes) else { continue };
            if wanted.contains(token) && !may_differ(&(text.clone() + bytes)) {
                wanted.remove(token);
            }
        }
        let mask = constraint.mask().unwrap().clone();
        assert_eq!(shown(&mask, &vocabulary), shown(&wanted, &vocabulary), "{item} after {text}");
        let is_whole =
            |token: &TokenId| std::str::from_utf8(vocabulary.bytes(*token).unwrap_or(b"\xff")).is_ok();
        let tokens: Vec<TokenId> = mask.iter().filter(is_whole).collect();
        // The walk prefers tokens that close, open and go on, and those of the schema, to new strings.
        let likely = |token: &TokenId| {
            let bytes = vocabulary.bytes(*token).unwrap_or_default();
            token.raw() > 256 || b"{}[],:\"k1at".contains(&bytes[0])
        };
        let few: Vec<TokenId> = tokens.iter().copied().filter(likely).collect();
        let tokens = if few.is_empty() || choice % 16 == 0 { tokens } else { few };
        let Some(&token) = tokens.get(usize::from(choice / 16) % tokens.len().max(1)) else { break };
        let bytes = vocabulary.bytes(token).unwrap();
        for session in [&mut constraint, &mut any] {
            session.advance(token).unwrap();
        }
        text.push_str(std::str::from_utf8(bytes).unwrap());
        let completion = constraint.clone().shortest_completion().unwrap().bytes;
        let whole = text.clone() + std::str::from_utf8(&completion).unwrap();
        assert!(may_differ(&whole) && serde_json::from_str::<Value>(&whole).is_ok(), "{item}: {whole}");
    }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn unique_items_of_endless_languages_come_once(item in endless(), choices in vec(any::<u16>(), 30)) {
        walk_endless(&item, &choices);
    }
}

/// Keys for objects with at most two members, more than are written out in the grammar.
fn pairs() -> (Value, Vec<String>) {
    let letters = 'a'..='p';
    let keys = letters.clone().flat_map(|one| letters.clone().map(move |other| format!("{one}{other}")));
    let object = json!({
        "type": "object", "additionalProperties": false,
        "patternProperties": { "^[a-p]{2}$": { "enum": [1] } },
    });
    (object, keys.collect())
}

fn session(schema: &Value) -> Constraint {
    let grammar = options().parse(&schema.to_string(), &Limits::default()).unwrap().grammar;
    Compiler::new(vocabulary()).compile(&grammar).unwrap().constraint()
}

/// Follows a text; mask and completion agree before and after each of its `last` last bytes.
fn follow(constraint: &mut Constraint, text: &str, last: usize) -> Vec<String> {
    let most = constraint.advance_bytes(&text.as_bytes()[..text.len() - last]).unwrap();
    assert_eq!(most, text.len() - last, "{text}");
    let vocabulary = vocabulary();
    let mut shown_last = Vec::new();
    for at in text.len() - last..=text.len() {
        let mask = constraint.mask().unwrap().clone();
        for (token, bytes) in vocabulary.text_tokens() {
            let mut other = constraint.fork();
            let most = other.advance_bytes(bytes).unwrap();
            assert_eq!(most == bytes.len(), mask.contains(token), "{bytes:?} after {at} bytes of {text}");
            if most == bytes.len() {
                let completion = other.shortest_completion().unwrap().bytes;
                assert!(!completion.is_empty() || other.is_complete());
            }
        }
        shown_last = shown(&mask, &vocabulary);
        if let Some(&byte) = text.as_bytes().get(at) {
            assert_eq!(constraint.advance_bytes(&[byte]).unwrap(), 1, "{text} at {at}");
        }
    }
    shown_last
}

/// An array that has no value left for a second item must end.
#[test]
fn an_array_without_a_value_left_must_end() {
    let item = json!({ "type": "array", "prefixItems": [{ "enum": [1, 11] }, false] });
    let schema = json!({ "type": "array", "items": item, "uniqueItems": true });
    let shown = follow(&mut session(&schema), "[[],[1],[11]", 4);
    assert_eq!(shown, ["]"]);
}

/// A comma is allowed by the item before it, of which its token may hold a part.
#[test]
fn a_comma_depends_on_the_item_before_it() {
    let strings = json!({ "type": "string", "pattern": "^[ab]{0,5}$" });
    let schema = json!({
        "type": "array", "prefixItems": [strings, { "const": "a" }], "items": false, "uniqueItems": true,
    });
    let shown = follow(&mut session(&schema), "[\"", 2);
    assert!(shown.contains(&"\",".to_owned()) || shown.contains(&"\"".to_owned()), "{shown:?}");
    assert!(!shown.contains(&"a\",".to_owned()), "{shown:?}");
}

/// Finitely many keys: after the last no comma may come.
#[test]
fn no_comma_comes_after_the_last_key() {
    let (object, keys) = pairs();
    let members: Vec<String> = keys.iter().map(|key| format!("\"{key}\":1")).collect();
    let text = format!("{{{}", members.join(","));
    assert_eq!(follow(&mut session(&object), &text, 2), ["}"]);
    // If more members are required than there are keys, no object is possible.
    let mut more = object.clone();
    more["minProperties"] = json!(257);
    let compiled = options()
        .parse(&more.to_string(), &Limits::default())
        .map(|read| Compiler::new(vocabulary()).compile(&read.grammar).is_ok());
    assert!(!matches!(compiled, Ok(true)), "{compiled:?}");
    let fewer = format!("{{{}", members[1..].join(","));
    assert!(follow(&mut session(&object), &fewer, 2).contains(&",".to_owned()));
}

/// A new key is refused if it makes the object equal to an earlier item.
#[test]
fn a_key_that_repeats_an_earlier_item_is_refused() {
    let (mut object, keys) = pairs();
    object["maxProperties"] = json!(2);
    let schema = json!({ "type": "array", "items": object, "uniqueItems": true });
    let pairs = keys[1..].iter().map(|key| format!("{{\"aa\":1,\"{key}\":1}}")).collect::<Vec<_>>().join(",");
    // All objects with `aa` have come.
    let first = follow(&mut session(&schema), &format!("[{{\"aa\":1}},{pairs},{{\"a"), 3);
    assert!(!first.contains(&"a".to_owned()) && first.contains(&"b".to_owned()), "{first:?}");
    let second = follow(&mut session(&schema), &format!("[{{\"aa\":1}},{pairs},{{\"bb\":1,\"a"), 3);
    assert!(!second.contains(&"a".to_owned()) && second.contains(&"b".to_owned()), "{second:?}");
    // One of them has not.
    let third = follow(&mut session(&schema), &format!("[{pairs},{{\"aa\":1"), 8);
    assert!(third.contains(&"}".to_owned()) && !third.contains(&",".to_owned()), "{third:?}");
}
