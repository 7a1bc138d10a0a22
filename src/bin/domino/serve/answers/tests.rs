//! Tests of the parts of answers.

use domino::grammar::tools::{Spelling, Tools};
use proptest::prelude::*;

use super::*;

#[test]
fn usage_sums_the_tokens_of_all_texts() {
    let grammar = GrammarSpent { passes: 3, drafted: 5, accepted: 4, mask_micros: 10, closed: 0 };
    let one = Spent { prompt: 7, cached: 5, completion: 6, thought: Some(2), grammar: Some(grammar) };
    let again = Spent { prompt: 0, cached: 0, ..one };
    let usage = one.and(again).and(Spent::default()).usage();
    assert_eq!(usage["prompt_tokens"], 7);
    assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 5);
    assert_eq!(usage["completion_tokens"], 12);
    assert_eq!(usage["total_tokens"], 19);
    assert_eq!(usage["completion_tokens_details"]["rejected_prediction_tokens"], 2);
    assert_eq!(usage["domino"]["accepted"], 8);
    assert!(Spent::default().usage().get("domino").is_none());
}

#[test]
fn answers_have_the_forms_of_chat_and_completions() {
    let chat = Form::new(Endpoint::Chat, "m", Map::new());
    let first = chat.chunk(1, chat.piece("a", None, true, None));
    assert_eq!(first["choices"][0]["delta"], json!({ "role": "assistant", "content": "a" }));
    assert_eq!(
        (&first["choices"][0]["index"], &first["object"]),
        (&json!(1), &json!("chat.completion.chunk"))
    );
    assert_eq!(chat.piece("", None, false, Some("stop"))["delta"], json!({}));
    let plain = Form::new(Endpoint::Completions, "m", Map::from_iter([("relaxed".to_owned(), json!(["r"]))]));
    let whole = plain.whole(
        vec![plain.choice("a".to_owned(), None, "stop"), plain.choice("b".to_owned(), None, "length")],
        Spent::default(),
    );
    assert_eq!((&whole["choices"][1]["text"], &whole["choices"][1]["index"]), (&json!("b"), &json!(1)));
    assert_eq!(whole["relaxed"], json!(["r"]));
    assert_ne!(chat.id, Form::new(Endpoint::Chat, "m", Map::new()).id);
}

/// The parts, put together, are the message, whatever pieces the text comes in.
#[test]
fn streamed_parts_add_up_to_the_whole_message() {
    let tools = Tools::parse(r#"[{"name": "add"}, {"name": "now"}]"#).unwrap();
    let reader = Reader::new(Spelling::Hermes, &tools);
    let text = "I think <of> it.\n\
                <tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": [1, \"}\"]}}\n</tool_call>\n\
                <tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
    let whole = reader.read(text, true);
    for length in 1..7 {
        let mut growing = Growing::new(Some(reader.clone()), None);
        let mut news = Vec::new();
        for piece in text.as_bytes().chunks(length) {
            news.extend(growing.push(std::str::from_utf8(piece).unwrap()));
        }
        news.extend(growing.finish());
        let (mut content, mut calls) = (String::new(), Vec::new());
        for news in news {
            match news {
                News::Content(text) => content += &text,
                News::Begin(index, call) => {
                    assert_eq!(index, calls.len());
                    calls.push(call);
                }
                News::Arguments(index, text) => calls[index].extend(&text),
                News::Reasoning(text) => panic!("{text}"),
            }
        }
        assert_eq!(content, whole.content);
        assert!(growing.calls() && calls.len() == 2);
        for (call, wanted) in calls.iter().zip(&whole.calls) {
            assert_eq!((&call.name, &call.arguments), (&wanted.name, &wanted.arguments));
        }
    }
}

fn stop_strings(stops: &[String]) -> StopStrings {
    StopStrings::new(stops.iter().map(String::as_str)).unwrap()
}

/// Returns the bytes before the stop string that ends first, of several the longest; by looking at all.
fn before_stop<'t>(text: &'t [u8], stops: &[String]) -> Option<&'t [u8]> {
    (1..=text.len()).find_map(|end| {
        let ending = stops.iter().filter(|stop| text[..end].ends_with(stop.as_bytes()));
        Some(&text[..end - ending.map(String::len).max()?])
    })
}

proptest! {
    /// However the bytes are cut, what is shown is the lossy text before the first stop string.
    #[test]
    fn shown_text_is_the_lossy_text_before_the_first_stop_string(
        pieces in prop::collection::vec(
            prop::collection::vec(prop::sample::select(b"ab\xc3\xa9\xe2".to_vec()), 0..4),
            0..8,
        ),
        stops in prop::collection::vec("[ab\u{e9}]{1,3}", 0..3),
    ) {
        let whole = pieces.concat();
        let expected = before_stop(&whole, &stops);
        let mut shown = Shown::new(&stop_strings(&stops));
        let mut text = String::new();
        let mut stopped = None;
        for piece in &pieces {
            let (more, stop) = shown.push(piece);
            text += &more;
            if stop.is_some() {
                stopped = stop;
                break;
            }
        }
        prop_assert_eq!(stopped.is_some(), expected.is_some());
        prop_assert!(stopped.as_ref().is_none_or(|stop| stops.contains(stop)));
        if stopped.is_none() {
            text += &shown.finish();
        }
        prop_assert_eq!(&*String::from_utf8_lossy(expected.unwrap_or(&whole)), text.as_str());
    }
}

#[test]
fn no_part_of_a_stop_string_is_shown() {
    let mut shown = Shown::new(&StopStrings::new(["END"]).unwrap());
    assert_eq!(shown.push(b"a E"), ("a ".to_owned(), None));
    assert_eq!(shown.push(b"N"), (String::new(), None));
    assert_eq!(shown.push(b"x E"), ("ENx ".to_owned(), None));
    assert_eq!(shown.push(b"ND more"), (String::new(), Some("END".to_owned())));
}
