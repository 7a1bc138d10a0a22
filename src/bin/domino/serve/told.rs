//! Fields by which an answer tells of its grammar beside its texts. Those that would say nothing are left
//! out.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{request::Asked, server::Server, writing::GrammarOrder};
use crate::grammar::{
    keywords::Reports,
    notation::{Notation, relaxed_as_json},
    warned,
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
/// that and they can be read. Reads them once more.
pub(crate) async fn report(server: &Server, asked: &Asked) -> Option<Value> {
    if !asked.schema_report {
        return None;
    }
    let (grammar, tools) = (asked.grammar.clone(), asked.tools.clone());
    let (schemas, named) = (Arc::clone(&server.schemas), server.registry.named().clone());
    let made = tokio::task::spawn_blocking(move || match (grammar, tools) {
        (Some(grammar), _) => {
            let source =
                named.find(&grammar).ok().filter(|source| source.notation == Notation::JsonSchema)?;
            let report = schemas.report(&source.text, &source.options).ok()?;
            Some(Reports { list: vec![(None, report)] })
        }
        (None, tools) => tools?.reports(),
    });
    let reports = made.await.ok().flatten()?;
    Some(Value::Object(reports.fields()))
}
