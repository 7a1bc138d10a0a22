//! Calls of functions in all spellings: transcripts, single mutations of them, and what is read back.
//!
//! Transcripts are written here by the models' chat templates, not by the code under test.

use domino::{
    Compiler, Grammar, Limits,
    grammar::{
        Reasoning, Thought, ThoughtMarks,
        tools::{
            Calling, Choice, Spelling, Tools,
            calls::{Answer, Reader},
        },
    },
};
use serde_json::Value;

use crate::support::decider::byte_vocabulary;

const TOOLS: &str = r#"[
    {"type": "function", "function": {"name": "get_weather", "description": "Of a city", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}, "unit": {"enum": ["c", "f"]}},
        "required": ["city"]}}},
    {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {
        "a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}}},
    {"type": "function", "name": "note", "parameters": {"type": "object", "properties": {
        "text": {"type": "string"}}, "required": ["text"]}},
    {"type": "function", "function": {"name": "now"}}
]"#;

type Calls<'t> = &'t [(&'t str, &'t str)];

/// Writes an answer as a model of this spelling does.
fn written(spelling: Spelling, content: &str, calls: Calls<'_>) -> String {
    let all = |separator: &str, one: &dyn Fn(&str, &str) -> String| {
        calls.iter().map(|(name, arguments)| one(name, arguments)).collect::<Vec<_>>().join(separator)
    };
    let line = if content.is_empty() || calls.is_empty() { "" } else { "\n" };
    match spelling {
        Spelling::Hermes => {
            let one = |n: &str, a: &str| {
                format!("<tool_call>\n{{\"name\": \"{n}\", \"arguments\": {a}}}\n</tool_call>")
            };
            format!("{content}{line}{}", all("\n", &one))
        }
        Spelling::QwenCoder => {
            let one = |n: &str, a: &str| {
                let mut text = format!("<tool_call>\n<function={n}>\n");
                for (name, _, value) in arguments(a) {
                    text += &format!("<parameter={name}>\n{value}\n</parameter>\n");
                }
                text + "</function>\n</tool_call>"
            };
            format!("{content}{line}{}", all("\n", &one))
        }
        Spelling::Glm => format!("{content}{line}{}", all("\n", &|n, a| glm(n, a, "\n"))),
        Spelling::Llama => {
            let one = |n: &str, a: &str| format!("{{\"name\": \"{n}\", \"parameters\": {a}}}");
            format!("{content}{}", all("; ", &one))
        }
        Spelling::Mistral => {
            let one = |n: &str, a: &str| format!("{{\"name\": \"{n}\", \"arguments\": {a}}}");
            let list = format!("[TOOL_CALLS] [{}]", all(", ", &one));
            format!("{content}{}", if calls.is_empty() { "" } else { &list })
        }
        Spelling::MistralArgs => {
            format!("{content}{}", all("", &|n, a| format!("[TOOL_CALLS]{n}[ARGS]{a}")))
        }
        Spelling::DeepSeek | Spelling::DeepSeekV31 => {
            let fenced = |n: &str, a: &str| {
                format!(
                    "<｜tool▁call▁begin｜>function<｜tool▁sep｜>{n}\n```json\n{a}\n```<｜tool▁call▁end｜>"
                )
            };
            let plain =
                |n: &str, a: &str| format!("<｜tool▁call▁begin｜>{n}<｜tool▁sep｜>{a}<｜tool▁call▁end｜>");
            let list = if spelling == Spelling::DeepSeek { all("\n", &fenced) } else { all("", &plain) };
            let list = format!("<｜tool▁calls▁begin｜>{list}<｜tool▁calls▁end｜>");
            format!("{content}{}", if calls.is_empty() { "" } else { &list })
        }
        Spelling::Harmony => harmony(content, calls),
        _ => format!("{content}{}", listed(spelling, content, calls)),
    }
}

/// Writes a call with bare keys, and with a mark at both ends of strings.
fn gemma(begin: &str, name: &str, arguments: &str, mark: &str, end: &str) -> String {
    let arguments = bare_value(&serde_json::from_str(arguments).unwrap(), mark);
    format!("{begin}call:{name}{arguments}{end}")
}

/// Writes a value as Gemma's templates do: sorted, with bare keys, and with a mark at both ends of strings.
pub(crate) fn bare_value(value: &Value, mark: &str) -> String {
    let list = |parts: Vec<String>| parts.join(",");
    match value {
        Value::String(text) => format!("{mark}{text}{mark}"),
        Value::Array(items) => format!("[{}]", list(items.iter().map(|one| bare_value(one, mark)).collect())),
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            let written = members.iter().map(|(key, value)| format!("{key}:{}", bare_value(value, mark)));
            format!("{{{}}}", list(written.collect()))
        }
        other => other.to_string(),
    }
}

/// Writes calls in Python.
pub(crate) fn python(calls: Calls<'_>) -> String {
    let calls = calls.iter().map(|(name, arguments)| {
        let arguments: serde_json::Map<String, Value> = serde_json::from_str(arguments).unwrap();
        let arguments = arguments.iter().map(|(name, value)| format!("{name}={}", python_value(value)));
        format!("{name}({})", arguments.collect::<Vec<_>>().join(", "))
    });
    format!("<|tool_call_start|>[{}]<|tool_call_end|>", calls.collect::<Vec<_>>().join(", "))
}

fn python_value(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(python_value).collect::<Vec<_>>().join(", "))
        }
        Value::Object(members) => {
            let members = members.iter();
            let members =
                members.map(|(key, value)| format!("{}: {}", Value::from(&**key), python_value(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// Writes a list of calls between tags or tokens. What stands in front of it comes only behind content.
fn listed(spelling: Spelling, content: &str, calls: Calls<'_>) -> String {
    let all = |one: &dyn Fn(&str, &str) -> String| {
        calls.iter().map(|(name, arguments)| one(name, arguments)).collect::<String>()
    };
    let dsml = |tag: &str| {
        let calls = all(&|n, a| invoked(n, a, "｜DSML｜", [" string=\"true\"", " string=\"false\""]));
        format!("\n\n<｜DSML｜{tag}>\n{calls}</｜DSML｜{tag}>")
    };
    let list = match spelling {
        Spelling::DeepSeekV32 => dsml("function_calls"),
        Spelling::DeepSeekV4 => dsml("tool_calls"),
        Spelling::MiniMax => {
            let calls = all(&|n, a| invoked(n, a, "", ["", ""]));
            format!("\n<minimax:tool_call>\n{calls}</minimax:tool_call>")
        }
        Spelling::Gemma => all(&|n, a| gemma("<|tool_call>", n, a, "<|\"|>", "<tool_call|>")),
        Spelling::FunctionGemma => {
            all(&|n, a| gemma("<start_function_call>", n, a, "<escape>", "<end_function_call>"))
        }
        Spelling::Lfm2 => python(calls),
        Spelling::Kimi => {
            let calls = all(&|n, a| {
                format!("<|tool_call_begin|>functions.{n}:12<|tool_call_argument_begin|>{a}<|tool_call_end|>")
            });
            format!("<|tool_calls_section_begin|>{calls}<|tool_calls_section_end|>")
        }
        other => panic!("{other} has no writer"),
    };
    match (calls, content) {
        ([], _) => String::new(),
        (_, "") => list.trim_start().to_owned(),
        _ => list,
    }
}

/// The arguments of a call, with the texts that stand for them between tags.
fn arguments(text: &str) -> Vec<(String, Value, String)> {
    let arguments: serde_json::Map<String, Value> = serde_json::from_str(text).unwrap();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    arguments.into_iter().map(|(name, value)| (name, value.clone(), text(&value))).collect()
}

/// Writes a call as GLM does: the versions before 4.7 begin lines, later ones do not.
fn glm(name: &str, text: &str, line: &str) -> String {
    let arguments = arguments(text)
        .into_iter()
        .map(|(name, _, text)| format!("<arg_key>{name}</arg_key>{line}<arg_value>{text}</arg_value>{line}"));
    format!("<tool_call>{name}{line}{}</tool_call>", arguments.collect::<String>())
}

/// Writes a call in tags with attributes, which begin with `mark`; `told` are the attributes of strings and
/// of other values.
fn invoked(name: &str, text: &str, mark: &str, told: [&str; 2]) -> String {
    let arguments = arguments(text).into_iter().map(|(name, value, text)| {
        let told = told[usize::from(!value.is_string())];
        format!("<{mark}parameter name=\"{name}\"{told}>{text}</{mark}parameter>\n")
    });
    format!("<{mark}invoke name=\"{name}\">\n{}</{mark}invoke>\n", arguments.collect::<String>())
}

/// Writes an answer on the channels of Harmony, of which a call takes one.
fn harmony(content: &str, calls: Calls<'_>) -> String {
    let remark = format!("<|channel|>commentary<|message|>{content}<|end|><|start|>assistant");
    match calls {
        [] => format!("<|channel|>final<|message|>{content}"),
        [(name, arguments), ..] => format!(
            "{}<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{arguments}",
            if content.is_empty() { "" } else { &remark }
        ),
    }
}

fn accepts(calling: &Calling, text: &str) -> bool {
    let grammar = Tools::parse(TOOLS).unwrap().grammar(calling, &Limits::default()).unwrap();
    accepts_of(&grammar, text)
}

pub(crate) fn accepts_of(grammar: &Grammar, text: &str) -> bool {
    let compiled = Compiler::new(byte_vocabulary()).any_special().compile(grammar).unwrap();
    let mut constraint = compiled.constraint();
    constraint.advance_text(text.as_bytes()).unwrap() && constraint.is_complete()
}

const PARIS: (&str, &str) = ("get_weather", r#"{"city": "Paris"}"#);
const SUM: (&str, &str) = ("add", r#"{"a": 1, "b": -20}"#);

/// Contents with calls that every spelling can say.
fn answers() -> Vec<(&'static str, Vec<(&'static str, &'static str)>)> {
    vec![
        ("It is sunny.", vec![]),
        ("Two\nlines, and {\"a\": [1]}.", vec![]),
        ("", vec![PARIS]),
        ("", vec![SUM]),
        ("", vec![("now", "{}")]),
        ("", vec![("get_weather", r#"{"city": "São Paulo", "unit": "c"}"#)]),
        ("", vec![("note", r#"{"text": "<b> } ] </b> \"q\" \\ end"}"#)]),
        ("Let me see.", vec![PARIS]),
        ("", vec![PARIS, SUM]),
        ("", vec![SUM, SUM, ("now", "{}")]),
        ("Both:", vec![PARIS, ("now", "{}")]),
    ]
}

/// True if the spelling has such answers. Llama's models write a text or calls, and a call ends Harmony's
/// answers.
fn says(spelling: Spelling, content: &str, calls: Calls<'_>) -> bool {
    match spelling {
        Spelling::Llama => content.is_empty() || calls.is_empty(),
        Spelling::Harmony => calls.len() < 2,
        _ => true,
    }
}

#[test]
fn transcripts_are_in_the_grammar_and_read_back() {
    for spelling in Spelling::all() {
        let tools = Tools::parse(TOOLS).unwrap();
        let reader = Reader::new(spelling, &tools);
        let grammar = tools.grammar(&Calling::new(spelling), &Limits::default()).unwrap();
        for (content, calls) in answers() {
            if !says(spelling, content, &calls) {
                continue;
            }
            let text = written(spelling, content, &calls);
            assert!(accepts_of(&grammar, &text), "{spelling}: {text}");
            let read = reader.read(&text, true);
            assert_eq!((read.content.as_str(), read.reasoning.as_str()), (content, ""), "{spelling}: {text}");
            let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            let found: Vec<_> =
                read.calls.iter().map(|call| (call.name.as_str(), parsed(&call.arguments))).collect();
            let wanted: Vec<_> = calls.iter().map(|(name, arguments)| (*name, parsed(arguments))).collect();
            assert_eq!(found, wanted, "{spelling}: {text}");
            grows(&reader, &text, &read);
        }
    }
}

/// Between tags, white space around a listed text is dropped, and a line feed at the ends of any text.
#[test]
fn arguments_between_tags_are_read_by_their_schema() {
    let reader = Reader::new(Spelling::QwenCoder, &Tools::parse(TOOLS).unwrap());
    let arguments = |name: &str, inside: &str| {
        let text = format!("<tool_call>\n<function={name}>\n{inside}</function>\n</tool_call>");
        serde_json::from_str::<Value>(&reader.read(&text, true).calls[0].arguments).unwrap()
    };
    let weather = "<parameter=city>\n two\nlines \n</parameter>\n<parameter=unit>\n  c \n</parameter>\n";
    assert_eq!(arguments("get_weather", weather), serde_json::json!({ "city": " two\nlines ", "unit": "c" }));
    let sum = "<parameter=a>\n 1 \n</parameter><parameter=b>-2</parameter>";
    assert_eq!(arguments("add", sum), serde_json::json!({ "a": 1, "b": -2 }));
}

/// GLM's later versions begin no lines, and no spelling has a string where its tag says that it is none.
#[test]
fn details_of_spellings_follow_their_models() {
    let tools = Tools::parse(TOOLS).unwrap();
    let (weather, sum) = (r#"{"city":"\nParis "}"#, r#"{"a":1,"b":-20}"#);
    let calls = format!("{}{}", glm("get_weather", weather, ""), glm("add", sum, ""));
    for choice in [Choice::Auto, Choice::Required] {
        let calling = Calling::new(Spelling::Glm).choice(choice.clone());
        assert!(accepts(&calling, &calls) && accepts(&calling, &format!("\n{calls}")));
        assert!(accepts(&calling, "<tool_call>now</tool_call>"));
        for (spelling, lead) in [(Spelling::MiniMax, "\n"), (Spelling::DeepSeekV32, "\n\n")] {
            let call = format!("{lead}{}", written(spelling, "", &[PARIS]));
            assert!(accepts(&Calling::new(spelling).choice(choice.clone()), &call), "{spelling}");
            assert_eq!(Reader::new(spelling, &tools).read(&call, true).content, "", "{spelling}");
        }
    }
    let read = Reader::new(Spelling::Glm, &tools).read(&calls, true);
    let read: Vec<_> = read.calls.iter().map(|call| call.arguments.as_str()).collect();
    assert_eq!(read, [weather, sum]);
    let told = written(Spelling::DeepSeekV32, "", &[PARIS]);
    let calling = Calling::new(Spelling::DeepSeekV32);
    assert!(accepts(&calling, &told) && !accepts(&calling, &told.replace("\"true\"", "\"false\"")));
    // A string that is spelled like a number is one where the tag says so.
    let number = told.replace("Paris", "1");
    let reader = Reader::new(Spelling::DeepSeekV32, &tools);
    assert_eq!(reader.read(&number, true).calls[0].arguments, r#"{"city":"1"}"#);
    assert_eq!(
        reader.read(&number.replace("\"true\"", "\"false\""), true).calls[0].arguments,
        r#"{"city":1}"#
    );
}

/// Reads every prefix of an answer: each result must be a prefix of the whole.
fn grows(reader: &Reader, text: &str, whole: &Answer) {
    for (at, _) in text.char_indices() {
        let part = reader.read(&text[..at], false);
        assert!(whole.content.starts_with(&part.content), "{:?} of {text}", &text[..at]);
        assert!(whole.reasoning.starts_with(&part.reasoning), "{:?} of {text}", &text[..at]);
        assert!(part.calls.len() <= whole.calls.len(), "{:?} of {text}", &text[..at]);
        for (part, whole) in part.calls.iter().zip(&whole.calls) {
            assert_eq!(part.name, whole.name, "{:?} of {text}", &text[..at]);
            assert!(whole.arguments.starts_with(&part.arguments), "{:?} of {text}", &text[..at]);
        }
    }
}

/// Marks of calls, each of which is left out and doubled.
const MARKS: [&str; 51] = [
    "<|tool_call_start|>[",
    "]<|tool_call_end|>",
    "(",
    "<tool_call>",
    "</tool_call>",
    "<function=",
    "</function>",
    "<parameter=",
    "<arg_key>",
    "</arg_key>",
    "</arg_value>",
    "<minimax:tool_call>",
    "</minimax:tool_call>",
    "<invoke name=",
    "</invoke>",
    "<parameter name=",
    "<｜DSML｜function_calls>",
    "</｜DSML｜function_calls>",
    "<｜DSML｜invoke name=",
    "<｜DSML｜parameter name=",
    " string=\"true\"",
    "</｜DSML｜invoke>",
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>",
    "functions.",
    ":12",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
    "<|tool_calls_section_end|>",
    "<|tool_call>",
    "<tool_call|>",
    "<|\"|>",
    "<start_function_call>",
    "<end_function_call>",
    "<escape>",
    "call:",
    "\"name\"",
    "\"arguments\"",
    "\"parameters\"",
    "[TOOL_CALLS]",
    "[ARGS]",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁calls▁end｜>",
    "```json",
    "<|channel|>",
    "<|message|>",
    "to=functions.",
    "commentary",
];

/// Transcripts of two calls (or one, where there can be no more) with one mistake each. A call is required,
/// since a mistake turns many transcripts into free text.
#[test]
fn mutated_transcripts_are_refused() {
    for spelling in Spelling::all() {
        let calling = Calling::new(spelling).choice(Choice::Required);
        let of = |calls: Calls<'_>| written(spelling, "", calls);
        let calls: Calls<'_> = if says(spelling, "", &[PARIS, SUM]) { &[PARIS, SUM] } else { &[SUM] };
        let good = of(calls);
        assert!(accepts(&calling, &good), "{spelling}: {good}");
        let mut bad = vec![
            of(&[("get_wether", r#"{"city": "Paris"}"#)]),
            of(&[("get_weather", r#"{"town": "Paris"}"#)]),
            of(&[("get_weather", r#"{"city": "Paris", "unit": "k"}"#)]),
            of(&[("get_weather", "{}")]),
            of(&[("add", r#"{"a": 1, "b": "x"}"#)]),
            of(&[("add", r#"{"a": 1, "b": 1.5}"#)]),
            of(&[("now", r#"{"zone": 1}"#)]),
        ];
        // Every mark that is left out, doubled or cut off.
        for mark in MARKS {
            if good.contains(mark) {
                bad.push(good.replacen(mark, &mark.repeat(2), 1));
                bad.push(good.replacen(mark, "", 1));
            }
        }
        let last = good.char_indices().next_back().unwrap().0;
        bad.push(good[..last].to_owned());
        bad.push(format!("{good}}}"));
        for text in bad {
            assert!(!accepts(&calling, &text), "{spelling}: {text}");
        }
    }
}

#[test]
fn grammars_follow_the_tool_choice() {
    for spelling in Spelling::all() {
        let calling = Calling::new(spelling);
        let says_text = written(spelling, "It is sunny.", &[]);
        let (paris, sum) = (written(spelling, "", &[PARIS]), written(spelling, "", &[SUM]));
        let with = |choice: Choice, text: &str| accepts(&calling.clone().choice(choice), text);
        assert!(with(Choice::None, &says_text) && !with(Choice::None, &paris), "{spelling}");
        assert!(!with(Choice::Required, &says_text) && with(Choice::Required, &paris), "{spelling}");
        let named = || Choice::Named("add".into());
        assert!(with(named(), &sum) && !with(named(), &paris) && !with(named(), &says_text), "{spelling}");
        if says(spelling, "", &[PARIS, SUM]) {
            let both = written(spelling, "", &[PARIS, SUM]);
            assert!(with(Choice::Required, &both), "{spelling}");
            assert!(!accepts(&calling.clone().parallel(false), &both), "{spelling}");
            assert!(accepts(&calling.clone().parallel(false), &paris), "{spelling}");
        }
    }
}

#[test]
fn thinking_comes_before_calls() {
    let limits = Limits::default();
    for spelling in Spelling::all() {
        let tools = Tools::parse(TOOLS).unwrap();
        let (reader, answer) = (Reader::new(spelling, &tools), written(spelling, "", &[PARIS]));
        let grammar = tools.grammar(&Calling::new(spelling), &limits).unwrap();
        if spelling == Spelling::Harmony {
            // Thoughts are messages among others.
            let text = format!("<|channel|>analysis<|message|>Which city?<|end|><|start|>assistant{answer}");
            let read = reader.read(&text, true);
            assert!(accepts_of(&grammar, &text) && read.reasoning == "Which city?");
            grows(&reader, &text, &read);
            continue;
        }
        let with = |reasoning: Reasoning, text: &str| {
            let thought = Thought::new(&ThoughtMarks::default(), reasoning, []);
            accepts_of(&grammar.after_thought(&thought, &limits).unwrap(), text)
        };
        let text = format!("<think>Which <think> city?</think>\n\n{answer}");
        let open = format!("Which city?\n</think>\n{answer}");
        assert!(with(Reasoning::Optional, &text) && with(Reasoning::Optional, &answer), "{spelling}: {text}");
        assert!(
            with(Reasoning::Required, &text) && !with(Reasoning::Required, &answer),
            "{spelling}: {text}"
        );
        assert!(!with(Reasoning::Off, &text) && with(Reasoning::Off, &answer), "{spelling}: {text}");
        assert!(with(Reasoning::Open, &open) && !with(Reasoning::Open, &answer), "{spelling}: {open}");
        assert!(!with(Reasoning::Open, &format!("a</think></think>{answer}")), "{spelling}");
    }
}

#[test]
fn mistakes_in_lists_have_a_place() {
    let read = |text: &str| {
        Tools::parse(text)
            .and_then(|tools| tools.grammar(&Calling::new(Spelling::Hermes), &Limits::default()))
    };
    for (text, message) in [
        ("{}", "a list of functions must stand here"),
        ("[1]", "a function must stand here, with a name"),
        (r#"[{"type": "web_search"}]"#, "tools of type `web_search` are not supported"),
        (r#"[{"name": "a b"}]"#, "`a b` is no name of a function"),
        (r#"[{"name": "f"}, {"name": "f"}]"#, "two functions are called `f`"),
        (r#"[{"name": "f", "parameters": {"type": "strin"}}]"#, "strin"),
    ] {
        let error = read(text).expect_err(text);
        assert!(error.to_string().contains(message), "{text}: {error}");
        assert!(error.span().is_some(), "{text}: {error}");
    }
    let tools = Tools::parse(TOOLS).unwrap();
    let named = Calling::new(Spelling::Hermes).choice(Choice::Named("ad".into()));
    let error = tools.structural_tag(&named).unwrap_err().to_string();
    assert!(error.contains("there is no function `ad`") && error.contains("did you mean `add`?"), "{error}");
    let none = Tools::parse("[]").unwrap();
    let required = Calling::new(Spelling::Hermes).choice(Choice::Required);
    assert!(none.structural_tag(&required).is_err());
}

/// The lists of OpenAI's two APIs, of MCP and of Anthropic, each with a mistake in the schema of the second
/// function, on line 6.
#[test]
fn mistakes_in_schemas_name_the_function_and_the_place_in_the_list() {
    let mistakes = [
        (r#"{"x": {"type": "strin"}}"#, r#""strin""#, "strin"),
        (r#"{"x": {"type": "string", "pattern": "("}}"#, r#""(""#, "pattern"),
        (r#"{"y": {}, "x": {"anyOf": [{"type": "null"}, {"minimum": "1"}]}}"#, r#""1""#, "minimum"),
        (r#"{"x": {"$ref": "nowhere.json"}}"#, r#""nowhere.json""#, "nowhere.json"),
        (r#"{"a/b~": {"items": {"enum": 3}}}"#, "3", "enum"),
    ];
    let lists: [fn(&str, &str) -> String; 5] = [
        |good, bad| format!("[{{\"type\": \"function\",\n{good}}},\n{{\"type\": \"function\",\n{bad}}}]"),
        |good, bad| {
            let of = |function: &str| format!("{{\"type\": \"function\", \"function\": {{\n{function}}}}}");
            format!("[{},\n{}]", of(good), of(bad))
        },
        |good, bad| {
            let text = format!("{{\"tools\": [{{\n{good}}},\n{{\n{bad}}}]}}");
            text.replace("\"parameters\"", "\"inputSchema\"")
        },
        |good, bad| format!("[{{\n{good}}},{{\n\n{bad}}}]").replace("\"parameters\"", "\"input_schema\""),
        |good, bad| format!("{{\"model\": \"m\", \"tools\": [{{\n{good}}},{{\n\n{bad}}}]}}"),
    ];
    for (properties, at, about) in mistakes {
        let of = |name: &str, properties: &str| {
            let schema = format!("{{\"type\": \"object\",\n  \"properties\": {properties}}}");
            format!("\"name\": \"{name}\", \"parameters\": {schema}")
        };
        for list in lists {
            let text = list(&of("one", r#"{"x": {"type": "object"}}"#), &of("two", properties));
            for spelling in Spelling::all() {
                let tools = Tools::parse(&text).unwrap();
                let read = tools.grammar(&Calling::new(spelling), &Limits::default());
                let error = read.map(|_| ()).expect_err(&text);
                let shown = error.to_string();
                assert!(
                    shown.starts_with("function `two`: ") && shown.contains(about),
                    "{spelling}: {shown}"
                );
                assert_eq!(&text[error.span().unwrap().range()], at, "{spelling}: {shown}");
                assert_eq!(error.places()[0].position().line, 6, "{spelling}: {shown}");
                // Called alone it is the same.
                let alone = Calling::new(spelling).choice(Choice::Named("two".into()));
                assert_eq!(tools.grammar(&alone, &Limits::default()).unwrap_err(), error);
                let other = Calling::new(spelling).choice(Choice::Named("one".into()));
                assert!(tools.grammar(&other, &Limits::default()).is_ok());
            }
        }
    }
}

/// Warnings name the function and the place in the list too.
#[test]
fn warnings_name_the_function_and_the_place_in_the_list() {
    let text =
        r#"[{"name": "f"}, {"name": "g", "parameters": {"type": "object", "additionalProperties": true}}]"#;
    for spelling in Spelling::all() {
        let tools = Tools::parse(text).unwrap();
        let grammar = tools.grammar(&Calling::new(spelling), &Limits::default()).unwrap();
        assert!(!grammar.warnings().is_empty(), "{spelling}");
        for warning in grammar.warnings() {
            assert!(warning.message().starts_with("function `g`: "), "{spelling}: {warning}");
            let place = &text[warning.place().span().range()];
            assert_eq!(place, r#"{"type": "object", "additionalProperties": true}"#, "{spelling}");
        }
    }
}

#[test]
fn lists_of_functions_have_several_forms() {
    let schema = r#"{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}"#;
    let call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>";
    for list in [
        format!(r#"[{{"name": "f", "inputSchema": {schema}, "annotations": {{"title": "F"}}}}]"#),
        format!(
            r#"{{"tools": [{{"name": "f", "inputSchema": {schema}, "parameters": null}}], "more": "x"}}"#
        ),
        format!(r#"[{{"name": "f", "description": "d", "input_schema": {schema}}}]"#),
        format!(
            r#"{{"tools": [{{"type": "function", "function": {{"name": "f", "parameters": {schema}}}}}]}}"#
        ),
    ] {
        let tools = Tools::parse(&list).unwrap();
        let required = Calling::new(Spelling::Hermes).choice(Choice::Required);
        let grammar = tools.grammar(&required, &Limits::default()).unwrap();
        assert!(accepts_of(&grammar, call), "{list}");
        assert!(!accepts_of(&grammar, &call.replace("{\"a\": 1}", "{}")), "{list}");
    }
    let two = r#"[{"name": "f", "parameters": {}, "inputSchema": {}}]"#;
    let error = Tools::parse(two).unwrap_err();
    assert!(error.message().contains("two schemas, `parameters` and `inputSchema`"), "{error}");
    assert!(Tools::parse(r#"{"tools": 3}"#).is_err());
}

/// Bad input: very many functions are refused or read, in bounded time.
#[test]
fn ten_thousand_functions_are_bounded() {
    let list: Vec<String> = (0..10_000).map(|n| format!(r#"{{"name": "f{n}"}}"#)).collect();
    let text = format!("[{}]", list.join(","));
    let tools = Tools::parse(&text).unwrap();
    match tools.grammar(&Calling::new(Spelling::Hermes), &Limits::default()) {
        Ok(grammar) => {
            let call = "<tool_call>\n{\"name\": \"f9999\", \"arguments\": {}}\n</tool_call>";
            assert!(accepts_of(&grammar, call));
        }
        Err(error) => assert!(error.hint().is_some(), "{error}"),
    }
}

/// Tools that take a text: any, of a regular expression, or of a grammar in Lark.
#[test]
fn tools_that_take_a_text_are_held_to_its_grammar() {
    const LIST: &str = r#"[
        {"type": "custom", "name": "any"},
        {"type": "custom", "name": "regex", "format": {
            "type": "grammar", "syntax": "regex", "definition": "a+\\n"}},
        {"type": "custom", "name": "lark", "format": {"type": "grammar", "syntax": "lark",
            "definition": "start: \"say \" /\"[a-z]*\"/ \"\\n\""}}
    ]"#;
    let tools = Tools::parse(LIST).unwrap();
    for spelling in [Spelling::Hermes, Spelling::Mistral, Spelling::DeepSeekV31, Spelling::Harmony] {
        let calling = Calling::new(spelling).choice(Choice::Required);
        let grammar = tools.grammar(&calling, &Limits::default()).unwrap();
        for (name, input, is_one) in [
            ("any", "\"x\"\n", true),
            ("regex", "aa\n", true),
            ("regex", "aa", false),
            ("lark", "say \"hi\"\n", true),
            ("lark", "say \"hi\"", false),
            ("lark", "say hi\n", false),
        ] {
            let arguments = serde_json::json!({ "input": input }).to_string();
            let text = written(spelling, "", &[(name, &arguments)]);
            assert_eq!(accepts_of(&grammar, &text), is_one, "{text}");
            let read = Reader::new(spelling, &tools).read(&text, true);
            assert_eq!((read.calls[0].name.as_str(), read.calls[0].arguments.as_str()), (name, &*arguments));
        }
    }
    let coder = tools.grammar(&Calling::new(Spelling::QwenCoder), &Limits::default()).unwrap_err();
    assert!(coder.message().contains("`lark`"), "{coder}");
}
