//! Fields by which an answer tells of its grammar beside its texts. Those that would say nothing are left
//! out.

use std::sync::Arc;

use domino::Cancel;
use serde_json::{Map, Value};

use super::super::{
    access::caller::Caller, asked::request::Asked, problem::Problem, server::Server, writing::GrammarOrder,
};
use crate::grammar::{
    compiler,
    notation::{Notation, relaxed_as_json},
    warned::{self, Reports},
};

/// Makes the fields `relaxed`, `grammar_warnings` and `schema_report`.
pub(crate) fn of_grammar(order: Option<&GrammarOrder>, report: Option<Value>) -> Map<String, Value> {
    let mut told = Map::new();
    if let Some(GrammarOrder { grammar, calls, .. }) = order {
        if !grammar.relaxed.is_empty() {
            told.insert("relaxed".to_owned(), relaxed_as_json(&grammar.relaxed).into());
        }
        let warnings = grammar.grammar.grammar_warnings();
        if !warnings.is_empty() {
            let mut list = warned::list(warnings);
            // Those of tools have places in the tags that were made of them, which nobody has seen.
            if calls.is_some() {
                list.as_array_mut().into_iter().flatten().for_each(without_place);
            }
            told.insert("grammar_warnings".to_owned(), list);
        }
    }
    told.extend(report.map(|report| ("schema_report".to_owned(), report)));
    told
}

fn without_place(warning: &mut Value) {
    if let Value::Object(warning) = warning {
        warning.retain(|key, _| key != "line" && key != "column");
    }
}

/// Reports what becomes of the keywords of the schema, or of those of the functions, if the request asks for
/// that and they can be read in the time that a grammar may take. Reads them once more, in the caller's turn.
///
/// # Errors
/// If too much work waits.
pub(crate) async fn report(
    server: &Server,
    asked: &Asked,
    caller: &Caller,
) -> Result<Option<Value>, Problem> {
    if !asked.schema_report {
        return Ok(None);
    }
    let (grammar, tools) = (asked.grammar.clone(), asked.tools.clone());
    let (schemas, named) = (Arc::clone(&server.schemas), server.registry.named().clone());
    let work = move |cancel: &Cancel| -> Option<Reports> {
        let limits = compiler::limits().cancelled_by(cancel);
        let Some(grammar) = grammar else { return tools?.reports(&limits) };
        let source = named.find(&grammar).ok().filter(|source| source.notation == Notation::JsonSchema)?;
        let report = schemas.report(&source.text, &source.options, &limits).ok()?;
        Some(Reports { list: vec![(None, report)] })
    };
    let made = server.registry.pool().run_within(caller, server.limits.compile, work).await?;
    Ok(made.map(|reports| Value::Object(reports.fields())))
}
