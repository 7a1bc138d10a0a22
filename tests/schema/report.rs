//! Reports of keywords are true: an enforced keyword can refuse a text, a remark changes nothing, and a
//! refused keyword is named.

use std::collections::BTreeSet;

use domino::{
    Limits,
    grammar::{
        GrammarWarningKind,
        json_schema::{Draft, KeywordStatus, SchemaErrorKind, SchemaOptions, SchemaReport},
    },
};
use serde_json::{Value, json};

use super::{
    Schema, checking,
    drafts::{has, place, table},
};

fn report(options: &SchemaOptions, schema: &Value) -> SchemaReport {
    options.report(&schema.to_string(), &Limits::default()).unwrap()
}

/// Pointers and statuses of a report.
fn told(options: &SchemaOptions, schema: &Value) -> Vec<(String, KeywordStatus)> {
    report(options, schema).keywords.into_iter().map(|one| (one.pointer, one.status)).collect()
}

/// The schema without the keyword at a pointer.
fn without(schema: &Value, pointer: &str) -> Value {
    let mut schema = schema.clone();
    let (around, keyword) = pointer.trim_start_matches('#').rsplit_once('/').unwrap();
    let keyword = keyword.replace("~1", "/").replace("~0", "~");
    let object = schema.pointer_mut(around).and_then(Value::as_object_mut).unwrap();
    object.shift_remove(&keyword).unwrap();
    schema
}

/// Values of all kinds, beside those of a row.
fn probes() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(1),
        json!(-1.5),
        json!("a"),
        json!([]),
        json!([1, "a"]),
        json!({"a": 1}),
    ]
}

/// The verdicts of a schema on values; `None` if it is refused.
fn verdicts(options: &SchemaOptions, schema: &Value, values: &[Value]) -> Option<Vec<bool>> {
    let schema = Schema::new(options, &schema.to_string()).ok()?;
    Some(values.iter().map(|value| schema.accepts(&value.to_string())).collect())
}

/// The table of all keywords in all drafts: a keyword reported as a remark can be removed without changing a
/// verdict, and each keyword that restricts values is reported as enforced where removing it changes one.
#[test]
fn enforced_keywords_can_refuse_and_remarks_change_nothing() {
    let (table, mut witnesses, mut remarks) = (table(), BTreeSet::new(), 0);
    for row in table.rows.iter().filter(|row| row.refused.is_none()) {
        for (draft, (name, option)) in Draft::NAMED.iter().enumerate().filter(|(at, _)| row.holds_in(*at)) {
            let options = checking().with_draft(*option);
            let values: Vec<Value> = row.valid.iter().chain(&row.invalid).cloned().chain(probes()).collect();
            let all = verdicts(&options, &row.schema, &values).unwrap();
            let report = report(&options, &row.schema);
            assert!(report.error.is_none(), "{name}: {}", row.schema);
            for one in &report.keywords {
                let rest = verdicts(&options, &without(&row.schema, &one.pointer), &values);
                match one.status {
                    KeywordStatus::Enforced if rest.as_ref() != Some(&all) => {
                        witnesses.insert((one.keyword.clone(), draft));
                    }
                    KeywordStatus::Enforced => {}
                    KeywordStatus::Annotation | KeywordStatus::Unknown => {
                        remarks += 1;
                        assert_eq!(
                            rest.as_ref(),
                            Some(&all),
                            "{name}: {} without {}",
                            row.schema,
                            one.pointer
                        );
                    }
                    other => panic!("{name}: {}: {} is {other}", row.schema, one.pointer),
                }
            }
        }
    }
    let mut missing = Vec::new();
    for (keyword, drafts) in &table.keywords {
        let without = |draft: &usize| !witnesses.contains(&(keyword.clone(), *draft));
        let drafts = (0..Draft::NAMED.len()).filter(|&draft| has(drafts, draft));
        missing.extend(drafts.filter(without).map(|draft| format!("{keyword} in {}", Draft::NAMED[draft].0)));
    }
    assert!(missing.is_empty(), "{missing:?}");
    assert!(remarks > 100, "{remarks}");
}

/// Keywords of the page's table are all known; those that the tables of drafts lack are tested here.
#[test]
fn keywords_of_the_page_are_known() {
    let page = include_str!("../../docs/json-schema.md");
    let rows = page.lines().skip_while(|line| *line != "| keywords | how |").skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let named: Vec<&str> =
        rows.flat_map(|row| row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2)).collect();
    assert!(named.len() > 50, "{named:?}");
    let table = table();
    for keyword in named {
        if table.keywords.contains_key(keyword) {
            continue;
        }
        let (schema, text) = match keyword {
            "nullable" => (json!({"type": "string", "nullable": true}), json!(null)),
            "x-kubernetes-int-or-string" => (json!({"x-kubernetes-int-or-string": true}), json!([])),
            other => panic!("{other} is in no test"),
        };
        let pointer = format!("#/{keyword}");
        assert!(
            told(&checking(), &schema).contains(&(pointer.clone(), KeywordStatus::Enforced)),
            "{keyword}"
        );
        let values = [text];
        let changed = verdicts(&checking(), &without(&schema, &pointer), &values);
        assert_ne!(verdicts(&checking(), &schema, &values), changed, "{keyword}");
    }
}

/// Keywords without effect where they stand, each beside one that gives it effect.
#[test]
fn keywords_without_effect_are_reported_as_annotations() {
    let values = [&probes()[..], &[json!([1, 2, 3]), json!({"a": 1, "b": 2}), json!("2020-01-01")]].concat();
    for (schema, pointer) in [
        (json!({"then": {"type": "string"}, "minLength": 2}), "#/then"),
        (json!({"else": {"type": "string"}}), "#/else"),
        (json!({"if": {"type": "string"}}), "#/if"),
        (json!({"minContains": 2}), "#/minContains"),
        (json!({"maxContains": 0}), "#/maxContains"),
        (json!({"items": {"type": "integer"}, "additionalItems": false}), "#/additionalItems"),
        (json!({"additionalItems": false}), "#/additionalItems"),
        (json!({"exclusiveMinimum": true}), "#/exclusiveMinimum"),
        (json!({"nullable": true, "enum": [1]}), "#/nullable"),
        (json!({"required": true, "type": "object"}), "#/required"),
        (json!({"format": "int32", "type": "integer"}), "#/format"),
        (json!({"$schema": "https://example.org/own"}), "#/$schema"),
        (json!({"$defs": {"a": {"type": "string"}}}), "#/$defs/a/type"),
        (json!({"x-kubernetes-int-or-string": false}), "#/x-kubernetes-int-or-string"),
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {}},
                "$ref": "#/definitions/a", "minLength": 9}),
            "#/minLength",
        ),
        (json!({"$schema": "http://json-schema.org/draft-04/schema#", "const": 1}), "#/const"),
        (
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "string", "nullable": true}),
            "#/nullable",
        ),
    ] {
        let status = told(&checking(), &schema);
        assert!(status.contains(&(pointer.to_owned(), KeywordStatus::Annotation)), "{schema}: {status:?}");
        let all = verdicts(&checking(), &schema, &values);
        assert!(all.is_some(), "{schema}");
        assert_eq!(verdicts(&checking(), &without(&schema, pointer), &values), all, "{schema}");
    }
}

#[test]
fn reports_name_every_refused_keyword() {
    let back_reference = r"(a)\1";
    let schema = json!({
        "title": "t",
        "properties": {
            "a": {"type": "string", "pattern": back_reference},
            "b": {"type": "text", "minLength": -1},
            "c": {"type": "string", "pattern": back_reference, "maxLength": 3},
            "d": {"$ref": "#/nowhere"}
        }
    });
    let report = report(&checking(), &schema);
    let refused: Vec<&str> = report
        .keywords
        .iter()
        .filter(|one| one.status == KeywordStatus::Refused)
        .map(|one| one.pointer.as_str())
        .collect();
    let want = [
        "#/properties/a/pattern",
        "#/properties/b/type",
        "#/properties/b/minLength",
        "#/properties/c/pattern",
        "#/properties/d/$ref",
    ];
    assert_eq!(refused, want, "{report:?}");
    assert!(report.error.is_some());
    assert!(report.keywords.iter().all(|one| one.status != KeywordStatus::Refused || one.note.is_some()));

    let inexact =
        json!({"type": "object", "properties": {"a": {"pattern": back_reference}, "b": {"minLength": 1}}});
    let pattern = "#/properties/a/pattern".to_owned();
    assert!(told(&checking(), &inexact).contains(&(pattern.clone(), KeywordStatus::Refused)));
    let lenient = checking().with_lenient(true);
    assert!(told(&lenient, &inexact).contains(&(pattern, KeywordStatus::Relaxed)));
    assert!(super::report::report(&lenient, &inexact).error.is_none());
    assert!(SchemaOptions::default().report("{", &Limits::default()).is_err());
    // A keyword that is ignored along with another one is not called enforced.
    for (schema, pointer, text) in [
        (
            json!({"patternProperties": {back_reference: {}}, "additionalProperties": false}),
            "#/additionalProperties",
            json!({"x": 1}),
        ),
        (
            json!({"propertyNames": {"pattern": back_reference, "maxLength": 1}}),
            "#/propertyNames/maxLength",
            json!({"xx": 1}),
        ),
    ] {
        assert!(told(&lenient, &schema).contains(&(pointer.to_owned(), KeywordStatus::Relaxed)), "{schema}");
        assert_eq!(verdicts(&lenient, &schema, &[text]), Some(vec![true]), "{schema}");
    }
}

/// A report and a reading agree on whether there is a grammar.
#[test]
fn reports_agree_with_reading_on_errors() {
    for row in table().rows {
        for (_, option) in Draft::NAMED.iter().filter(|(name, _)| row.holds_in(place(name))) {
            for options in [checking().with_draft(*option), checking().with_draft(*option).with_lenient(true)]
            {
                let read = options.parse(&row.schema.to_string(), &Limits::default());
                let report = report(&options, &row.schema);
                assert_eq!(read.is_err(), report.error.is_some(), "{}", row.schema);
                let named = report.count(KeywordStatus::Refused) > 0;
                let of_whole = matches!(&read, Err(error) if *error.kind() == SchemaErrorKind::NoInstance);
                assert!(named == read.is_err() || of_whole, "{}: {report:?}", row.schema);
            }
        }
    }
}

/// Targets of references are read, whatever the keywords on the way are called.
#[test]
fn targets_of_references_are_read_wherever_they_are() {
    let schema = json!({
        "$ref": "#/components/schemas/a",
        "components": {"schemas": {"a": {"type": "string", "minLenght": 1}, "unused": {"type": "text"}}}
    });
    let status = told(&checking(), &schema);
    assert!(status.contains(&("#/components".to_owned(), KeywordStatus::Annotation)), "{status:?}");
    assert!(
        status.contains(&("#/components/schemas/a/type".to_owned(), KeywordStatus::Enforced)),
        "{status:?}"
    );
    let unknown = ("#/components/schemas/a/minLenght".to_owned(), KeywordStatus::Unknown);
    assert!(status.contains(&unknown), "{status:?}");
    assert!(status.iter().all(|(pointer, _)| !pointer.contains("unused")), "{status:?}");
    let other = r#"{"$id": "https://example.org/b", "type": "string", "minLenght": 2}"#;
    let options = checking().with_document("https://example.org/b", other);
    let status = told(&options, &json!({"$ref": "https://example.org/b"}));
    assert!(
        status.contains(&("https://example.org/b#/type".to_owned(), KeywordStatus::Enforced)),
        "{status:?}"
    );
}

/// Warnings of a schema, with their messages.
fn warned(schema: &Value) -> Vec<(GrammarWarningKind, String, String)> {
    let schema = checking().parse(&schema.to_string(), &Limits::default()).unwrap();
    let warnings = schema.grammar.warnings().iter();
    warnings.map(|one| (one.kind(), one.message().to_owned(), one.hint().to_owned())).collect()
}

#[test]
fn unknown_keywords_are_warned_of_once_with_the_nearest() {
    for (keyword, meant) in [
        ("minItem", "`minItems`"),
        ("maxlength", "`maxLength`"),
        ("min_length", "`minLength`"),
        ("additonalProperties", "`additionalProperties`"),
        ("Required", "`required`"),
        ("property", "`properties`"),
        ("descripton", "`description`"),
        ("divisibleBy", "`multipleOf`"),
        ("disallow", "`not`"),
        ("extends", "`allOf`"),
        ("regex", "`pattern`"),
        ("requierd", "`required`"),
        ("emum", "`enum`"),
        ("patern", "`pattern`"),
    ] {
        let schema = json!({"items": {keyword: 2}, "contains": {keyword: 3}});
        let warnings = warned(&schema);
        let [(GrammarWarningKind::UnknownKeyword, message, hint)] = &*warnings else {
            panic!("{warnings:?}")
        };
        assert!(message.contains(&format!("`{keyword}`")) && hint.contains(meant), "{message} {hint}");
    }
    let stray = warned(&json!({"type": "object", "age": {"type": "integer"}}));
    assert!(stray[0].2.contains("`properties`"), "{stray:?}");
    let many: serde_json::Map<String, Value> = (0..50).map(|at| (format!("zzz{at}"), json!(1))).collect();
    let many = warned(&Value::Object(many));
    assert!(many.len() == 20 && many[19].1.contains("30 more"), "{many:?}");
}

#[test]
fn keywords_of_another_draft_are_warned_of() {
    let draft = |number: &str| format!("http://json-schema.org/draft-{number}/schema#");
    for (schema, words) in [
        (json!({"$schema": draft("04"), "const": 1}), "draft 4"),
        (json!({"$schema": draft("07"), "dependentRequired": {"a": ["b"]}}), "draft 7"),
        (
            json!({"$schema": draft("07"), "$ref": "#/definitions/a", "definitions": {"a": {}}, "not": {}}),
            "`$ref`",
        ),
        (json!({"$schema": draft("07"), "type": "string", "nullable": true}), "OpenAPI"),
        (json!({"properties": {"a": {"required": true}}}), "draft 3"),
    ] {
        let warnings = warned(&schema);
        let [(GrammarWarningKind::WithoutEffect, message, _)] = &*warnings else {
            panic!("{schema}: {warnings:?}")
        };
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn remarks_are_not_warned_of() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#", "$id": "https://example.org/a", "$comment": "c",
        "title": "t", "description": "d", "default": {}, "examples": [{}], "readOnly": true,
        "deprecated": true,
        "x-go-type": "T", "X-Order": 1, "example": 1, "discriminator": {"propertyName": "a"}, "xml": {},
        "externalDocs": {"url": "u"}, "markdownDescription": "m", "enumDescriptions": [], "_comment": "c",
        "meta:license": [], "@type": "T", "//": "c", "name": "n", "version": "1", "self": {"format": "f"},
        "links": [],
        "javaType": "T",
        "properties": {"minItem": {"default": 1, "enum": [{"minItem": 2}]}, "name": {"const": {"typo": 1}}},
        "definitions": {"typo": {"title": "t"}}
    });
    assert_eq!(warned(&schema), []);
}

#[test]
fn drafts_before_4_are_refused_by_name() {
    for address in [
        "http://json-schema.org/draft-03/schema#",
        "http://json-schema.org/draft-03/schema",
        "https://json-schema.org/draft-03/schema#",
        "http://json-schema.org/draft-02/schema",
        "https://json-schema.org/draft-01/schema#",
        "http://json-schema.org/draft-03/hyper-schema#",
    ] {
        for options in [checking(), checking().with_draft(Draft::Draft7), checking().with_lenient(true)] {
            let schema = json!({"$schema": address, "properties": {"a": {"divisibleBy": 5}}});
            let error = options.parse(&schema.to_string(), &Limits::default()).unwrap_err();
            assert_eq!((error.pointer(), error.keyword()), ("#", Some("$schema")));
            assert!(
                error.message().contains("drafts 3") && error.hint().unwrap().contains("multipleOf"),
                "{error}"
            );
            let status = told(&options, &schema);
            assert!(status.contains(&("#/$schema".to_owned(), KeywordStatus::Refused)), "{status:?}");
        }
    }
}
