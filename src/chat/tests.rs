//! Tests of splitting and rewriting templates.

use super::admission::{HELD, HELD_INSIDE, TemplatePiece, admit, lines, pieces};
use super::{ChatErrorKind, ChatTemplate, Conversation};

#[test]
fn pieces_of_a_template_cover_all_of_it() {
    for source in [
        "",
        "plain } text %} {",
        "a {{ b }} c {% if d %} {# e }} %} #}{% endif %}\n",
        "{{ {'a': {'b': '}}'}} }}{{ \"%}\" }}{%- set x = '{{ \\' }}' -%}",
        "{{a}}{{ [1, (2, 3)][0] -}} \u{e4}\u{1f600} {{- 'ü' +}}",
    ] {
        let mut at = 0;
        for piece in pieces(source).unwrap() {
            let range = match piece {
                TemplatePiece::Text(range) | TemplatePiece::Comment(range) => range,
                TemplatePiece::Tag(tag) => {
                    assert_eq!(tag.line, lines(&source[..tag.range.start]) + 1);
                    assert!(tag.tokens.iter().all(|token| tag.range.contains(&token.range.start)));
                    tag.range
                }
            };
            assert_eq!(range.start, at, "{source}");
            at = range.end;
        }
        assert_eq!(at, source.len());
    }
}

#[test]
fn values_that_a_template_keeps_are_measured() {
    let admitted = |source: &str| admit(source).unwrap();
    assert_eq!(admitted("{% set x = a == b %}"), format!("{{% set x = ( a == b )|{HELD} %}}"));
    assert_eq!(admitted("{%- set n.x = '=' -%}"), format!("{{%- set n.x = ( '=' )|{HELD_INSIDE} -%}}"));
    let looped = format!("{{% for a, b in ( c )|{HELD} if a %}}{{% endfor %}}");
    assert_eq!(admitted("{% for a, b in c if a %}{% endfor %}"), looped);
    let defined = format!(
        "{{% macro m(a, b=[1, 2], c=(d)) -%}}{}",
        ["a", "b", "c"].map(|name| { format!("{{% set {name} = ({name})|{HELD} -%}}") }).concat()
    );
    assert_eq!(admitted("{% macro m(a, b=[1, 2], c=(d)) -%}"), defined);
    let captured = "{% set x | upper %}a{% endset +%}";
    assert_eq!(admitted(captured), format!("{captured}{{% set  x  = ( x )|{HELD} +%}}"));
    for unchanged in ["a {{ b ~ c }} {# d #}", "{% if a in b %}{% endif %}", " short text ", "{{ 'a\\'b' }}"]
    {
        assert_eq!(admitted(unchanged), unchanged);
    }
    assert_eq!(admitted("{% generation -%}a{%- endgeneration %}"), "{% if true -%}a{%- endif %}");
}

/// Errors name the lines of the template, so rewriting keeps them.
#[test]
fn rewriting_a_template_keeps_its_line_numbers() {
    let text = "A text between tags that is longer than is let in as it is,\nof 'several' lines\nand a \\.";
    let source = format!(
        "{text}\n{{% macro m(a,\n b) %}}\n{text}\n{{% endmacro %}}{{% set x\n = 1 %}}\n{{{{ x.y.z }}}}"
    );
    let lines_of = |text: &str| text.matches('\n').count();
    assert_eq!(lines_of(&admit(&source).unwrap()), lines_of(&source));
    let template = ChatTemplate::parse(source.as_str()).unwrap();
    let error = template.render(&Conversation::of_prompt(None, "")).unwrap_err();
    assert_eq!((error.kind(), error.line()), (ChatErrorKind::Failed, Some(lines_of(&source) + 1)), "{error}");
}

#[test]
fn all_spellings_of_a_tool_render_in_one_form() {
    let template = ChatTemplate::parse("{% for tool in tools %}{{ tool|tojson }}\n{% endfor %}").unwrap();
    let parameters = serde_json::json!({"type": "object"});
    let whole = r#"{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}"#;
    for tool in [
        serde_json::json!({"type": "function", "function": {"name": "f", "parameters": parameters}}),
        serde_json::json!({"function": {"name": "f", "parameters": parameters}}),
        serde_json::json!({"type": "function", "name": "f", "parameters": parameters}),
        serde_json::json!({"name": "f", "inputSchema": parameters}),
        serde_json::json!({"name": "f", "input_schema": parameters}),
    ] {
        let conversation = Conversation::of_prompt(None, "").with_tools(&[tool]);
        assert_eq!(template.render(&conversation).unwrap().trim_end(), whole);
    }
    assert_eq!(template.render(&Conversation::of_prompt(None, "").with_tools(&[])).unwrap(), "");
}

#[test]
fn the_system_message_comes_once_and_first() {
    let template =
        ChatTemplate::parse("{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}").unwrap();
    let text = |conversation: &Conversation| template.render(conversation).unwrap();
    let user = Conversation::of_prompt(None, "U");
    assert_eq!(text(&user.clone().with_system("S")), "system:S;user:U;");
    assert_eq!(text(&user.with_system("S").with_system("T")), "system:S;user:U;");
}
