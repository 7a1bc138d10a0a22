//! Reads lists of functions as grammars, and the keyword arguments of `Grammar.tools`.

use domino::{
    Limits,
    grammar::tools::{Calling, Choice, Spelling, Tools},
};
use serde_json::Value;

use crate::failure::{Failure, Outcome};

/// Reads how functions are called from the JSON of the keyword arguments.
///
/// # Errors
/// If an option has no such value.
pub(crate) fn calling(options: &Value) -> Outcome<Calling> {
    let text = |name: &str| options.get(name).and_then(Value::as_str);
    let spelling = text("spelling").unwrap_or("hermes");
    let spelling = Spelling::named(spelling).ok_or_else(|| {
        let known: Vec<String> = Spelling::all().map(|spelling| spelling.to_string()).collect();
        Failure::Value(format!(
            "there is no spelling `{spelling}` of calls; it is one of {}",
            known.join(", ")
        ))
    })?;
    let choice = match text("choice").unwrap_or("auto") {
        "auto" => Choice::Auto,
        "none" => Choice::None,
        "required" => Choice::Required,
        name => Choice::Named(name.to_owned()),
    };
    let parallel = options.get("parallel").and_then(Value::as_bool).unwrap_or(true);
    Ok(Calling::new(spelling).choice(choice).parallel(parallel))
}

/// Reads a list of functions as the grammar of their calls.
///
/// # Errors
/// If the list is none, a schema in it cannot be read, or the reading was cancelled.
pub(crate) fn grammar(
    text: &str,
    options: &Value,
    limits: &Limits,
    automata: &domino::AutomataCache,
) -> Outcome<domino::Grammar> {
    let calling = calling(options)?;
    let schemas = match options.get("schemas") {
        Some(schemas) => crate::schema::read(schemas)?,
        None => domino::grammar::json_schema::SchemaOptions::default(),
    };
    let tools = Tools::parse(text)?;
    Ok(tools.grammar_by(&calling, &schemas, limits, automata)?)
}
