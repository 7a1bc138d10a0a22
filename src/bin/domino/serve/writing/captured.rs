//! Captures of texts: which parts of a text the marked and the named parts of its grammar have matched.
//!
//! They are found by a parse of their own when a text has ended. It may take a text's length cubed, so it has
//! a budget, and is made in the caller's turn by the workers that compile.

use std::{sync::Arc, time::Duration};

use domino::{Cancel, Grammar, Limits};
use serde_json::{Map, Value};

use super::super::grammars::named::{NamedGrammars, Source};
use super::super::{
    access::Caller, args::SchemaRules, asked::grammar::GrammarAsked, problem::Problem, work::Pool,
};
use crate::grammar::{compiled::Capturing, compiler, notation::Notation};

/// Divisor of the usual budget of a parse: many texts end at once here.
const SHARE: usize = 8;

/// The way to find the captures of a request's texts.
#[derive(Debug, Clone)]
pub(crate) struct Captured {
    pub(crate) capturing: Arc<Capturing>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) caller: Caller,
}

impl Captured {
    /// Finds the captures of a text when it is the caller's turn: the field `captures`, and where there are
    /// none the reason.
    pub(crate) async fn fields(&self, text: Vec<u8>) -> Map<String, Value> {
        let capturing = Arc::clone(&self.capturing);
        let found = self.pool.run(&self.caller, move || capturing.fields(&text)).await;
        found.unwrap_or_else(|problem| {
            let error = problem.message().to_owned();
            Map::from_iter([
                ("captures".to_owned(), Value::Null),
                ("captures_error".to_owned(), error.into()),
            ])
        })
    }
}

/// Captures what a grammar marks itself, if it can and does. Linear in grammars that can.
pub(crate) fn marked(source: &Source, grammar: &Grammar) -> Option<Arc<Capturing>> {
    // These two have no marks, and may be large.
    if matches!(source.notation, Notation::Gbnf | Notation::GbnfOfJson | Notation::JsonSchema) {
        return None;
    }
    match Capturing::within(grammar, &[], &capture_limits()) {
        Ok(capturing) => capturing.map(Arc::new),
        Err(error) => {
            tracing::debug!("captures of {}: {error}", source.name);
            None
        }
    }
}

/// Finder of the grammars of requests.
pub(crate) struct GrammarFinder {
    pub(crate) named: NamedGrammars,
    pub(crate) schemas: Arc<SchemaRules>,
    pub(crate) pool: Arc<Pool>,
    /// The time that reading the grammar may take.
    pub(crate) patience: Duration,
}

impl GrammarFinder {
    /// Captures these rules of the grammar that is asked for, which is read once more in the caller's turn:
    /// what is compiled knows of no rules.
    ///
    /// # Errors
    /// If it has no such rule.
    pub(crate) async fn capturing(
        self,
        caller: &Caller,
        asked: GrammarAsked,
        rules: Vec<String>,
    ) -> Result<Arc<Capturing>, Problem> {
        let Self { named, schemas, pool, patience } = self;
        let find = move |cancel: &Cancel| {
            let limits = compiler::limits().cancelled_by(cancel);
            let grammar = named.find(&asked)?.read(&schemas, &limits)?.grammar;
            let found = Capturing::within(&grammar, &rules, &capture_limits()).map_err(|error| {
                Problem::invalid("captures", format!("`captures`: {error}")).with("hint", error.hint())
            })?;
            found.map(Arc::new).ok_or_else(|| Problem::invalid("captures", "`captures` names nothing"))
        };
        pool.run_within(caller, patience, find).await?
    }
}

fn capture_limits() -> Limits {
    let mut limits = compiler::limits();
    limits.captures /= SHARE;
    limits
}
