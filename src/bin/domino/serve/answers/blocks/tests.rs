//! Events and whole answers of both APIs.

use super::*;

/// The events of a thought, a text and a call, and the whole answer.
fn told(endpoint: Endpoint, custom: &str) -> (Vec<NamedEvent>, Value) {
    let shape = AnswerShape { custom: [custom.to_owned()].into(), ..AnswerShape::default() };
    let mut blocks = Blocks::new(Form::new(endpoint, "small", Map::new()), shape, 7);
    let spent = Spent { prompt: 7, completion: 5, thought: Some(2), ..Spent::default() };
    let mut events = blocks.begin();
    for piece in [
        Piece::News(News::Reasoning("hm".into())),
        Piece::News(News::Content("so ".into())),
        Piece::News(News::Content("it is".into())),
        Piece::News(News::Begin(0, ToolCall::new("look"))),
        Piece::News(News::Arguments(0, r#"{"input": ""#.into())),
        Piece::News(News::Arguments(0, r#"a\nb"}"#.into())),
        Piece::End("tool_calls", spent, Map::new()),
    ] {
        events.extend(blocks.take(piece));
    }
    (events, blocks.into_whole())
}

#[test]
fn responses_are_told_item_by_item() {
    let (events, whole) = told(Endpoint::Responses, "");
    let names: Vec<&str> = events.iter().map(|(name, _)| *name).collect();
    let item = |kind: &[&'static str]| {
        [&["response.output_item.added"], kind, &["response.output_item.done"]].concat()
    };
    let wanted = [
        vec!["response.created", "response.in_progress"],
        item(&["response.reasoning_text.delta", "response.reasoning_text.done"]),
        item(&[
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
        ]),
        item(&[
            "response.function_call_arguments.delta",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
        ]),
        vec!["response.completed"],
    ];
    assert_eq!(names, wanted.concat());
    for (count, (name, event)) in events.iter().enumerate() {
        assert_eq!(
            (event["type"].as_str(), event["sequence_number"].as_u64()),
            (Some(*name), Some(count as u64))
        );
    }
    let kinds: Vec<_> = whole["output"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["reasoning", "message", "function_call"]);
    assert_eq!(whole["output"][1]["content"][0]["text"], "so it is");
    assert_eq!(whole["output"][2]["arguments"], "{\"input\": \"a\\nb\"}");
    assert_eq!(whole["usage"]["output_tokens_details"]["reasoning_tokens"], 2);
    assert_eq!(events.last().unwrap().1["response"], whole);
}

#[test]
fn a_tool_that_takes_a_text_is_called_with_one() {
    let (events, whole) = told(Endpoint::Responses, "look");
    assert_eq!(
        (&whole["output"][2]["type"], &whole["output"][2]["input"]),
        (&json!("custom_tool_call"), &json!("a\nb"))
    );
    let inputs = |name: &str| events.iter().filter(|(told, _)| *told == name).count();
    assert_eq!(inputs("response.custom_tool_call_input.delta"), 1);
    assert_eq!(inputs("response.function_call_arguments.delta"), 0);
}

#[test]
fn messages_are_told_block_by_block() {
    let (events, whole) = told(Endpoint::Messages, "");
    let names: Vec<&str> = events.iter().map(|(name, _)| *name).collect();
    let block = |deltas: usize| {
        [&["content_block_start"][..], &vec!["content_block_delta"; deltas], &["content_block_stop"]].concat()
    };
    let wanted =
        [vec!["message_start"], block(1), block(2), block(2), vec!["message_delta", "message_stop"]].concat();
    assert_eq!(names, wanted);
    assert_eq!(whole["content"][0], json!({ "type": "thinking", "thinking": "hm", "signature": "" }));
    assert_eq!(whole["content"][2]["input"], json!({ "input": "a\nb" }));
    assert_eq!((&whole["stop_reason"], &whole["usage"]["input_tokens"]), (&json!("tool_use"), &json!(7)));
}

#[test]
fn a_text_that_is_cut_or_stopped_says_so() {
    for (finish, stop, wanted) in
        [("length", None, "max_tokens"), ("stop", None, "end_turn"), ("stop", Some("END"), "stop_sequence")]
    {
        let form = || Form::new(Endpoint::Messages, "small", Map::new());
        let mut blocks = Blocks::new(form(), AnswerShape::default(), 1);
        let said = stop.map(|stop| (STOP.to_owned(), Value::from(stop))).into_iter().collect();
        blocks.take(Piece::End(finish, Spent::default(), said));
        let whole = blocks.into_whole();
        assert_eq!((&whole["stop_reason"], whole["stop_sequence"].as_str()), (&json!(wanted), stop));
    }
    let mut cut = Blocks::new(Form::new(Endpoint::Responses, "small", Map::new()), AnswerShape::default(), 1);
    cut.take(Piece::Text("{\"a".to_owned(), Vec::new(), 1));
    cut.take(Piece::End("length", Spent::default(), Map::new()));
    let whole = cut.into_whole();
    assert_eq!(
        (&whole["status"], &whole["output"][0]["status"]),
        (&json!("incomplete"), &json!("incomplete"))
    );
    assert_eq!(whole["incomplete_details"]["reason"], "max_output_tokens");
}

#[test]
fn a_failure_is_told_in_the_words_of_the_api() {
    let failed = |endpoint| {
        let mut blocks = Blocks::new(Form::new(endpoint, "small", Map::new()), AnswerShape::default(), 1);
        blocks.take(Piece::Failed(Problem::engine("gone"))).pop().unwrap()
    };
    let (name, event) = failed(Endpoint::Messages);
    assert_eq!((name, &event["error"]["type"]), ("error", &json!("api_error")));
    let (name, event) = failed(Endpoint::Responses);
    assert_eq!((name, &event["response"]["error"]["code"]), ("response.failed", &json!("engine_error")));
}
