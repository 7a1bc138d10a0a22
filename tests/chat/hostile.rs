//! Hostile templates end soon in an error of the right kind, with its line.

use domino::chat::{ChatErrorKind, ChatTemplate, Conversation};

use ChatErrorKind::{Failed, Limit, Refused, Syntax};

/// Renders a template for a short question; returns the kind of its error, or `None` without one.
fn end(template: &str) -> Option<ChatErrorKind> {
    let conversation = Conversation::of_prompt(Some("Be brief."), "Who are you?");
    let rendered = ChatTemplate::parse(template).and_then(|template| template.render(&conversation));
    match rendered {
        Ok(text) => {
            assert!(text.len() < 2 << 20, "{} bytes", text.len());
            None
        }
        Err(error) => {
            let lines = template.lines().count();
            assert!(error.line().is_none_or(|line| (1..=lines).contains(&line)), "{error}");
            Some(error.kind())
        }
    }
}

/// Holds each template against the kind of its error.
fn all_end(templates: &[(&str, ChatErrorKind)]) {
    let mut wrong = Vec::new();
    for (template, kind) in templates {
        let ended = end(template);
        if ended != Some(*kind) {
            wrong.push(format!("{:.200}: {ended:?}, not {kind:?}", template));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn texts_that_grow_are_stopped() {
    all_end(&[
        (&format!("{{% set x = 'ab' %}}{}", "{% set x = x ~ x %}".repeat(60)), Limit),
        (&format!("{{% set x = 'ab' %}}{}", "{% set x = x + x %}".repeat(60)), Limit),
        (
            &format!("{{% set x %}}ab{{% endset %}}{}", "{% set x %}{{ x }}{{ x }}{% endset %}".repeat(60)),
            Limit,
        ),
        (&format!("{{% set x = 'ab' %}}{}", "{% set x = x|replace('', x) %}".repeat(20)), Limit),
        (&format!("{{% set x = 'ab' %}}{}", "{% set x = x.replace('', x) %}".repeat(20)), Limit),
        (&format!("{{% set x = 'a\\nb' %}}{}", "{% set x = x|indent(200) ~ x %}".repeat(60)), Limit),
        (&format!("{{% set x = 'ab' %}}{}", "{% set x = x|list|join(x) %}".repeat(20)), Limit),
        (&format!("{{% set x = 'ab' %}}{}", "{% set x = x.join(x.split('')) %}".repeat(20)), Failed),
        (&format!("{{% set x = ['ab'] %}}{}", "{% set x = x|tojson %}".repeat(60)), Limit),
        (&format!("{{% set x = [1] %}}{}", "{% set x = x + x %}".repeat(60)), Limit),
        (&format!("{{% set x = [1] %}}{}", "{% set x = [x, x] %}".repeat(60)), Limit),
        (&format!("{{% set x = [1] %}}{}", "{% set x = {'a': x, 'b': x} %}".repeat(60)), Limit),
        (
            "{% set n = namespace(x='ab') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
            Limit,
        ),
        (
            "{% for a in ['ab'] %}{% for b in [a ~ a] %}{% for c in range(4000) %}\
             {% set a = b ~ b ~ c %}{{ a }}\
      {% endfor %}{% endfor %}{% endfor %}{{ range(4000)|join(range(4000)|join) }}",
            Limit,
        ),
        (
            "{% macro f(x, n) %}{% if n %}{{ f(x ~ x, n - 1) }}{% endif %}{% endmacro %}{{ f('ab', 45) }}",
            Limit,
        ),
        (
            "{% macro f(x, n) %}{% if n %}{{ f(x + x, n - 1) }}{% endif %}{% endmacro %}{{ f([1], 45) }}",
            Limit,
        ),
    ]);
}

#[test]
fn values_in_values_are_stopped() {
    all_end(&[
        ("{% set n = namespace(x=1) %}{% for i in range(4000) %}{% set n.x = [n.x] %}{% endfor %}", Limit),
        (
            "{% set n = namespace(x=1) %}{% for i in range(4000) %}{% set n.x = {'a': n.x} %}{% endfor %}",
            Limit,
        ),
        ("{% set n = namespace(x=1) %}{% set n.x = n %}{{ n }}", Failed),
        ("{% set n = namespace(x=1) %}{% set n.x = [n] %}{{ n }}", Failed),
        ("{% set n = namespace(x=1) %}{% set m = {'a': n} %}{% set n.x = m %}{{ n }}", Failed),
    ]);
}

#[test]
fn work_without_end_is_stopped() {
    all_end(&[
        (
            "{% for a in range(4000) %}{% for b in range(4000) %}{% for c in range(4000) %}\
             {% endfor %}{% endfor %}\
      {% endfor %}",
            Limit,
        ),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", Limit),
        ("{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(30) }}", Limit),
        ("{% for a in range(4000) %}{% if range(4000)|list|sort %}{% endif %}{% endfor %}", Limit),
        ("{{ range(1000000000)|list }}", Limit),
        ("{{ range(0, 1000000000000, 1)|length }}", Limit),
        ("{{ range(0, 10, 0) }}", Failed),
    ]);
}

#[test]
fn text_between_tags_counts_too() {
    all_end(&[
        (&format!("{{% for a in range(4000) %}}{}{{% endfor %}}", "long text ".repeat(10_000)), Limit),
        (
            &format!(
                "{{% set x %}}{{% for a in range(4000) %}}{}{{% endfor %}}{{% endset %}}",
                "long ".repeat(20_000)
            ),
            Limit,
        ),
        (
            &format!(
                "{{% for a in range(4000) %}}{{% for a in range(4000) %}}{}{{% endfor %}}{{% endfor %}}",
                "t".repeat(50)
            ),
            Limit,
        ),
    ]);
}

#[test]
fn chains_and_nests_are_short() {
    all_end(&[
        (&format!("{{{{ {}1{} }}}}", "(".repeat(10_000), ")".repeat(10_000)), Syntax),
        (&format!("{{{{ {}1{} }}}}", "(".repeat(300), ")".repeat(300)), Limit),
        (&format!("{{{{ {}1{} }}}}", "[".repeat(300), "]".repeat(300)), Limit),
        (&format!("{{{{ 1{} }}}}", " - 1".repeat(30_000)), Syntax),
        (&format!("{{{{ {}1 }}}}", "not ".repeat(30_000)), Syntax),
        (&format!("{{{{ 'a'{} }}}}", "|upper".repeat(30_000)), Syntax),
        (&format!("{{{{ 'a'{} }}}}", " ~ 'a'".repeat(100)), Syntax),
        (&format!("{}{}", "{% if true %}".repeat(5_000), "{% endif %}".repeat(5_000)), Limit),
        (&format!("{{% if false %}}{}{{% endif %}}", "{% elif false %}".repeat(5_000)), Syntax),
    ]);
}

#[test]
fn formats_make_no_long_texts() {
    all_end(&[
        ("{{ 'a' * 1000000000 }}", Syntax),
        ("{{ 10 ** 100000 }}", Syntax),
        ("{{ f(*range(10)) }}", Syntax),
        ("{{ '%999999999d'|format(1) }}", Syntax),
        ("{{ '{:999999999}'.format(1) }}", Syntax),
        ("{{ 'a'|center(1000000000) }}", Syntax),
        ("{{ 'a'|indent(1000000000) }}", Failed),
        ("{{ [1]|tojson(indent=1000000000) }}", Failed),
        ("{{ [1]|batch(1000000000, 0)|list }}", Syntax),
        ("{% set x %}{% for i in range(4000) %}{{ i }}{% endfor %}{% endset %}{{ x.strip(x) }}", Limit),
    ]);
}

#[test]
fn templates_cannot_reach_files() {
    all_end(&[
        ("{% include '/etc/passwd' %}", Syntax),
        ("{% import '/etc/passwd' as x %}", Syntax),
        ("{% from '/etc/passwd' import x %}", Syntax),
        ("{% extends '/etc/passwd' %}", Syntax),
        ("{% block a %}{% endblock %}", Syntax),
        ("{{ ''.__class__.__mro__ }}", Failed),
        ("{{ lipsum.__globals__ }}", Failed),
        ("{{ cycler('a') }}", Syntax),
        ("{{ debug() }}", Syntax),
    ]);
}

#[test]
fn template_features_without_a_bound_are_refused() {
    all_end(&[
        ("{% for x in [1] recursive %}{{ loop([x]) }}{% endfor %}", Syntax),
        ("{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}x{% endcall %}", Syntax),
        ("{% with a = 1 %}{{ a }}{% endwith %}", Syntax),
        ("{% raw %}{{ x }}{% endraw %}", Syntax),
    ]);
}

#[test]
fn texts_that_are_not_jinja_are_errors() {
    all_end(&[
        ("{{ 'a", Syntax),
        ("{% if", Syntax),
        ("{# a", Syntax),
        ("{{ ) }}", Syntax),
        ("{{ (] }}", Syntax),
        ("{{ }}", Syntax),
        ("{% %}", Syntax),
        ("{% endfor %}", Syntax),
        ("{% for x in y %}", Syntax),
        ("{% for x %}{% endfor %}", Syntax),
        ("{% for x if y in z %}{% endfor %}", Syntax),
    ]);
}

#[test]
fn division_by_zero_and_overflow_are_errors() {
    all_end(&[
        ("{{ 1 // 0 }}", Failed),
        ("{{ 1 % 0 }}", Failed),
        ("{{ 170141183460469231731687303715884105727 + 1 }}", Failed),
    ]);
}

#[test]
fn long_templates_are_refused() {
    assert_eq!(end(&"x".repeat(300_000)), Some(Limit));
    assert_eq!(end(&"x".repeat(200_000)), None);
    assert_eq!(end(&format!("a{}b", " ".repeat(10_000))), Some(Syntax));
}

#[test]
fn refusals_of_a_template_keep_its_words() {
    let template = "a\n{% if messages[0].role == 'system' %}\n{{ raise_exception('No system here: ' ~ 1) }}\n\
                    {% endif %}";
    let template = ChatTemplate::parse(template).unwrap();
    let error = template.render(&Conversation::of_prompt(Some("S"), "U")).unwrap_err();
    assert_eq!((error.kind(), error.line()), (Refused, Some(3)));
    assert!(error.to_string().contains("No system here: 1") && error.hint().is_some(), "{error}");
    assert_eq!(template.render(&Conversation::of_prompt(None, "U")).unwrap(), "a\n");
}

/// A long conversation is not refused: what a template may do grows with its messages.
#[test]
fn long_conversations_are_written() {
    let template = ChatTemplate::parse(super::golden::template("qwen3")).unwrap();
    let message = |index: usize| {
        let role = if index.is_multiple_of(2) { "user" } else { "assistant" };
        serde_json::json!({ "role": role, "content": format!("{index} {}", "words ".repeat(20)) })
    };
    let text = template.render(&Conversation::new((0..3_000).map(message).collect())).unwrap();
    assert_eq!(text.matches("<|im_end|>").count(), 3_000);
    let text = template.render(&Conversation::of_prompt(None, &"long ".repeat(400_000))).unwrap();
    assert!(text.len() > 2_000_000);
}
