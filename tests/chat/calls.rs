//! Calls as chat templates write them: the template shows its spelling, whose grammar accepts them and whose
//! reader gives them back.
//!
//! Templates of the fixtures, and short ones in the manner of their families.

use domino::{
    Limits,
    chat::{ChatTemplate, Conversation},
    grammar::tools::{Calling, Choice, Spelling, Tools, calls::Reader},
};
use serde_json::{Value, json};

use super::golden::template;
use crate::grammar::tools::accepts_of;

/// A template of messages: `before` and `after` the calls of one, each of which is written by `call`.
fn short(begin: &str, before: &str, call: &str, after: &str) -> String {
    format!(
        "{begin}{{%- for m in messages %}}{{% if m.role == 'assistant' %}}{{{{- '[model]' + m.content }}}}\
         {{%- if m.tool_calls %}}{before}\
         {{%- for call in m.tool_calls %}}{{%- set f = call.function %}}{call}{{%- endfor %}}\
         {after}{{%- endif %}}{{{{- '[end]' }}}}\
         {{%- else %}}{{{{- '[user]' + m.content + '[end]' }}}}{{%- endif %}}{{%- endfor %}}\
         {{%- if add_generation_prompt %}}{{{{- '[model]' }}}}{{%- endif %}}"
    )
}

/// Writes arguments one by one, by a template of key `k` and value `v`.
fn each(argument: &str) -> String {
    format!("{{%- for k, v in f.arguments.items() %}}{argument}{{%- endfor %}}")
}

const VALUE: &str = "{{ v if v is string else v | tojson }}";

/// A template of GLM, in which tags are on lines of their own or not.
fn glm(line: &str) -> String {
    let argument = each(&format!(
        "{{{{- '<arg_key>' + k + '</arg_key>{line}<arg_value>' }}}}{VALUE}{{{{- '</arg_value>{line}' }}}}"
    ));
    let call = format!("{{{{- '\\n<tool_call>' + f.name + '{line}' }}}}{argument}{{{{- '</tool_call>' }}}}");
    short("", "", &call, "")
}

/// A template of DeepSeek V3.2 or V4.
fn dsml(tag: &str) -> String {
    let told = "('true' if v is string else 'false')";
    let argument = each(&format!(
        "{{{{- '\\n<' + d + 'parameter name=\"' + k + '\" string=\"' + {told} + '\">' }}}}{VALUE}\
     {{{{- '</' + d + 'parameter>' }}}}"
    ));
    short(
        "{%- set d = '｜DSML｜' %}",
        &format!("{{{{- '\\n\\n<' + d + '{tag}>' }}}}"),
        &format!(
            "{{{{- '\\n<' + d + 'invoke name=\"' + f.name + '\">' }}}}{argument}\
         {{{{- '\\n</' + d + 'invoke>' }}}}"
        ),
        &format!("{{{{- '\\n</' + d + '{tag}>' }}}}"),
    )
}

/// A template of Gemma 4 or FunctionGemma.
fn gemma(begin: &str, mark: &str, end: &str) -> String {
    let value = format!(
        "{{%- macro value(v) %}}{{%- if v is string %}}{{{{- '{mark}' + v + '{mark}' }}}}\
     {{%- elif v is boolean or v is none %}}{{{{- v | tojson }}}}\
     {{%- elif v is mapping %}}{{{{- '{{' }}}}\
     {{%- for key, one in v | dictsort %}}{{{{- key + ':' }}}}{{{{- value(one) }}}}\
     {{%- if not loop.last %}}{{{{- ',' }}}}{{%- endif %}}{{%- endfor %}}{{{{- '}}' }}}}\
     {{%- elif v is sequence %}}{{{{- '[' }}}}\
     {{%- for one in v %}}{{{{- value(one) }}}}\
     {{%- if not loop.last %}}{{{{- ',' }}}}{{%- endif %}}{{%- endfor %}}{{{{- ']' }}}}\
     {{%- else %}}{{{{- v }}}}{{%- endif %}}{{%- endmacro %}}"
    );
    let call = format!("{{{{- '{begin}call:' + f.name }}}}{{{{- value(f.arguments) }}}}{{{{- '{end}' }}}}");
    short(&value, "", &call, "")
}

/// Families, with templates that write calls as theirs do, and the texts that end their messages.
fn templates() -> Vec<(Spelling, String, &'static str)> {
    let minimax =
        each(&format!("{{{{- '<parameter name=\"' + k + '\">' }}}}{VALUE}{{{{- '</parameter>\\n' }}}}"));
    vec![
        (Spelling::Hermes, template("qwen2.5"), "<|im_end|>\n"),
        (Spelling::Glm, glm("\\n"), "[end]"),
        (Spelling::Glm, glm(""), "[end]"),
        (
            Spelling::MiniMax,
            short(
                "",
                "{{- '\\n<minimax:tool_call>\\n' }}",
                &format!(
                    "{{{{- '<invoke name=\"' + f.name + '\">\\n' }}}}{minimax}{{{{- '</invoke>\\n' }}}}"
                ),
                "{{- '</minimax:tool_call>' }}",
            ),
            "[end]",
        ),
        (Spelling::DeepSeekV32, dsml("function_calls"), "[end]"),
        (Spelling::DeepSeekV4, dsml("tool_calls"), "[end]"),
        (Spelling::Gemma, gemma("<|tool_call>", "<|\"|>", "<tool_call|>"), "[end]"),
        (Spelling::FunctionGemma, gemma("<start_function_call>", "<escape>", "<end_function_call>"), "[end]"),
        (
            Spelling::Lfm2,
            short(
                "{%- set about = 'List of tools: <|im_start|>' %}\
                 {%- macro value(v) %}{%- if v is none %}{{- 'None' }}{%- elif v is boolean %}\
                 {{- 'True' if v else 'False' }}{%- else %}{{- v | tojson }}{%- endif %}{%- endmacro %}",
                "{{- '<|tool_call_start|>[' }}",
                "{%- if not loop.first %}{{- ', ' }}{%- endif %}{{- f.name + '(' }}\
                 {%- for k, v in f.arguments.items() %}{%- if not loop.first %}{{- ', ' }}{%- endif %}\
                 {{- k + '=' }}{{- value(v) }}{%- endfor %}{{- ')' }}",
                "{{- ']<|tool_call_end|>' }}",
            ),
            "[end]",
        ),
        (
            Spelling::Kimi,
            short(
                "",
                "{{- '<|tool_calls_section_begin|>' }}",
                "{{- '<|tool_call_begin|>functions.' + f.name + ':' + loop.index0 | string }}\
                 {{- '<|tool_call_argument_begin|>' + f.arguments | tojson + '<|tool_call_end|>' }}",
                "{{- '<|tool_calls_section_end|>' }}",
            ),
            "[end]",
        ),
    ]
}

#[test]
fn calls_of_templates_are_in_the_grammar_and_read_back() {
    let parameters = json!({ "type": "object", "required": ["city"], "properties": {
        "city": { "type": "string" }, "unit": { "enum": ["c", "f"] }, "exact": { "type": "boolean" },
        "days": { "type": "array", "items": { "type": "integer" } },
        "note": { "type": ["string", "null"] },
    } });
    let list = json!([{ "type": "function", "function": { "name": "weather", "parameters": parameters } },
        { "type": "function", "function": { "name": "now" } }]);
    let text = list.to_string();
    let tools = Tools::parse(&text).unwrap();
    let call =
        |name: &str, arguments: &Value| json!({ "function": { "name": name, "arguments": arguments } });
    let full =
        json!({ "city": " São\n\"Paulo\" <b>", "unit": "c", "exact": true, "days": [1, 2], "note": null });
    let (city, none) = (json!({ "city": "1", "note": "x" }), json!({}));
    for (spelling, source, end) in templates() {
        assert_eq!(Spelling::of_chat_template(&source), Some(spelling), "{source}");
        let template = ChatTemplate::parse(source).unwrap();
        let user = json!({ "role": "user", "content": "Hello" });
        let render = |messages: Vec<Value>, ask: bool| {
            template.render(&Conversation::new(messages).with_generation_prompt(ask)).unwrap()
        };
        let prompt = render(vec![user.clone()], true);
        for (content, calls) in [
            ("", vec![("weather", &full)]),
            ("I look.", vec![("weather", &city), ("now", &none), ("weather", &full)]),
        ] {
            let written = calls.iter().map(|(name, arguments)| call(name, arguments)).collect::<Vec<_>>();
            let message = json!({ "role": "assistant", "content": content, "tool_calls": written });
            let whole = render(vec![user.clone(), message], false);
            let answer = whole.strip_prefix(&prompt).and_then(|rest| rest.strip_suffix(end)).unwrap();
            for choice in [Choice::Auto, Choice::Required] {
                let is_in = content.is_empty() || choice == Choice::Auto;
                let calling = Calling::new(spelling).choice(choice);
                let grammar = tools.grammar(&calling, &Limits::default()).unwrap();
                assert_eq!(accepts_of(&grammar, answer), is_in, "{spelling}: {answer}");
            }
            let read = Reader::new(spelling, &tools).read(answer, true);
            assert_eq!(read.content, content, "{spelling}: {answer}");
            let found = read
                .calls
                .iter()
                .map(|call| (call.name.as_str(), serde_json::from_str::<Value>(&call.arguments).unwrap()));
            let wanted = calls.iter().map(|&(name, arguments)| (name, arguments.clone()));
            assert_eq!(found.collect::<Vec<_>>(), wanted.collect::<Vec<_>>(), "{spelling}: {answer}");
        }
    }
}
