//! `grammar_options`: options for the schemas of a request, wherever they stand in it.
//!
//! Invariant: an option is either taken by a schema of the request or refused by name.

use domino::grammar::json_schema::SchemaOptions;
use serde_json::{Map, Value};

use super::{
    super::{args::SchemaRules, problem::Problem},
    schemas,
};
use crate::{flags::schema::RowOptions, grammar::notation::Notation};

const FIELD: &str = "grammar_options";

/// Options for the schemas of a request, where these say nothing themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OptionsAsked {
    /// The server's options, under those of the request.
    options: SchemaOptions,
    /// Names of the options that the request gives.
    given: Vec<&'static str>,
}

impl OptionsAsked {
    /// Takes the options out of a body.
    ///
    /// # Errors
    /// If there is no such option, or no such value of it.
    pub(crate) fn read(body: &mut Map<String, Value>, rules: &SchemaRules) -> Result<Self, Problem> {
        let Some(value) = body.shift_remove(FIELD) else {
            return Ok(Self { options: rules.options.clone(), given: Vec::new() });
        };
        let Value::Object(object) = value else {
            let message = format!("`{FIELD}` must be an object, such as {{\"whitespace\": \"compact\"}}");
            return Err(Problem::invalid(FIELD, message));
        };
        let options = schemas::options(&object, FIELD, &[], &rules.options)?;
        let is_given = |name: &&str| object.get(*name).is_some_and(|value| !value.is_null());
        Ok(Self { options, given: RowOptions::NAMES.into_iter().filter(is_given).collect() })
    }

    /// The options for a schema that says nothing itself.
    pub(crate) fn options(&self) -> &SchemaOptions {
        &self.options
    }

    /// Does the request give any?
    pub(crate) fn is_given(&self) -> bool {
        !self.given.is_empty()
    }

    /// Checks that schemas of a grammar in this notation take what the request gives. `None`: the request
    /// has no schema.
    ///
    /// # Errors
    /// If they do not.
    pub(crate) fn check(&self, notation: Option<Notation>) -> Result<(), Problem> {
        let taken = match notation {
            Some(notation) => notation.schema_flags(),
            None => Some(&[][..]),
        };
        let Some(taken) = taken else { return Ok(()) };
        let taken: Vec<String> =
            taken.iter().map(|flag| flag.trim_start_matches('-').replace('-', "_")).collect();
        let Some(name) = self.given.iter().find(|name| !taken.iter().any(|taken| taken == *name)) else {
            return Ok(());
        };
        if taken.is_empty() {
            let message = format!("`{FIELD}` is for JSON Schemas, and the request has none");
            return Err(Problem::unsupported(FIELD, message).with("hint", "leave it out"));
        }
        let param = format!("{FIELD}.{name}");
        let message = format!("`{param}` is for a JSON Schema that is the whole text");
        let hint = format!("schemas inside of tags, functions and Lark take {} here", taken.join(", "));
        Err(Problem::unsupported(&param, message).with("hint", hint))
    }
}

#[cfg(test)]
mod tests {
    use domino::grammar::json_schema::{Escapes, Order, WhiteSpace};
    use serde_json::json;

    use super::*;

    fn read(options: Value) -> Result<OptionsAsked, Problem> {
        let usual = SchemaOptions::default().with_order(Order::Any);
        let rules = SchemaRules { options: usual, ..SchemaRules::default() };
        let mut body = json!({ FIELD: options }).as_object().unwrap().clone();
        let read = OptionsAsked::read(&mut body, &rules);
        assert!(body.is_empty());
        read
    }

    fn refused(problem: &Problem) -> (String, String) {
        let error = problem.to_json()["error"].clone();
        let text = |key: &str| error[key].as_str().unwrap().to_owned();
        (text("code"), text("param"))
    }

    #[test]
    fn options_of_a_request_override_those_of_the_server() {
        let asked = read(json!({ "whitespace": "compact", "escapes": "all", "draft": null })).unwrap();
        let wanted = SchemaOptions::default().with_order(Order::Any).with_escapes(Escapes::All);
        assert_eq!(*asked.options(), wanted.with_white_space(WhiteSpace::Compact));
        assert!(asked.is_given() && !read(json!({})).unwrap().is_given());
        assert!(!read(json!({ "order": null })).unwrap().is_given());
    }

    #[test]
    fn unknown_or_wrong_options_are_refused_by_name() {
        for (options, code, param) in [
            (json!("compact"), "invalid_value", "grammar_options"),
            (json!([]), "invalid_value", "grammar_options"),
            (json!({ "whitespace": "loose" }), "invalid_value", "grammar_options.whitespace"),
            (json!({ "order": 1 }), "invalid_value", "grammar_options.order"),
            (json!({ "escapes": "none" }), "invalid_value", "grammar_options.escapes"),
            (json!({ "numbers": true }), "invalid_value", "grammar_options.numbers"),
            (json!({ "max_depth": -1 }), "invalid_value", "grammar_options.max_depth"),
            (json!({ "white_space": "compact" }), "unknown_parameter", "grammar_options.white_space"),
            (json!({ "documents": "/etc" }), "unknown_parameter", "grammar_options.documents"),
        ] {
            let problem = read(options.clone()).unwrap_err();
            assert_eq!(refused(&problem), (code.to_owned(), param.to_owned()), "{options}");
        }
    }

    #[test]
    fn options_that_no_schema_of_the_request_takes_are_refused() {
        let all = [Notation::JsonSchema, Notation::StructuralTag, Notation::Lark, Notation::Gbnf];
        for (option, takes) in [
            (json!({ "whitespace": "compact" }), [true, true, false, false]),
            (json!({ "order": "schema" }), [true, true, false, false]),
            (json!({ "escapes": "all" }), [true, true, true, false]),
            (json!({ "numbers": "any" }), [true, true, true, false]),
            (json!({ "format": "assert" }), [true, true, true, false]),
            (json!({ "closed": true }), [true, true, false, false]),
            (json!({ "lenient": false }), [true, false, false, false]),
            (json!({ "max_depth": 2 }), [true, false, false, false]),
        ] {
            let asked = read(option.clone()).unwrap();
            for (notation, takes) in all.into_iter().zip(takes) {
                assert_eq!(asked.check(Some(notation)).is_ok(), takes, "{option} {notation:?}");
            }
            let none = refused(&asked.check(None).unwrap_err());
            assert_eq!(none, ("unsupported".to_owned(), "grammar_options".to_owned()));
        }
        assert!(read(json!({})).unwrap().check(None).is_ok());
    }
}
