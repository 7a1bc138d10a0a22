//! Masks of schemas, a token at a time, for `differential.py`: lines of JSON in, lines of JSON out.
//!
//!     schema_masks [--order any] [--lenient] [--annotate]
//!
//! The first line is the same as that of `schema_engine`. Then `{"schema": SCHEMA, "candidates": [ID]}` takes
//! a new schema, answered with `{"bytes": 0}` or `{"error": MESSAGE}`; `{"start": true}` begins a text and
//! `{"token": ID}` goes on, both answered with what may follow:
//!
//! | field | |
//! |---|---|
//! | `allowed` | for each candidate `1` or `0` |
//! | `complete` | may the text end here? |
//! | `count` | tokens in the mask |
//! | `parser` | those of them that leave the terminal they begin in, so that the parser decides |
//! | `us` | time of the mask, in microseconds |
//! | `bytes` | memory of the schema's machine so far |
//!
//! A token that is not allowed is answered with `{"error": MESSAGE}`.

mod vocabulary;

use std::{
    error::Error,
    io::{BufRead, Write},
    time::Instant,
};

use domino::{
    CompiledGrammar, Compiler, Constraint, Limits, Lookahead, TokenId,
    grammar::json_schema::{Escapes, Format, Numbers, Order, SchemaOptions},
};
use serde::Deserialize;
use serde_json::{Value, json};
use vocabulary::Head;

/// Bytes of an error message that are passed on.
const MOST_MESSAGE: usize = 300;

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Job {
    Schema { schema: Value, candidates: Vec<u32> },
    Token { token: u32 },
    Start {},
}

/// A schema at two lookaheads.
struct Compilers {
    /// Masks as they are.
    exact: Compiler,
    /// Only tokens that stay in a terminal.
    inside: Compiler,
    options: SchemaOptions,
}

/// A schema and its text so far.
struct Session {
    compiled: CompiledGrammar,
    inside: CompiledGrammar,
    candidates: Vec<TokenId>,
    text: Option<(Constraint, Constraint)>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let options = SchemaOptions::default()
        .with_order(if has("any") { Order::Any } else { Order::Schema })
        .with_lenient(has("--lenient"))
        .with_numbers(Numbers::Any)
        .with_escapes(Escapes::All)
        .with_format(if has("--annotate") { Format::Annotate } else { Format::Assert });
    let mut lines = std::io::stdin().lock().lines();
    let mut out = std::io::stdout().lock();
    let head: Head = serde_json::from_str(&lines.next().ok_or("no first line")??)?;
    let vocabulary = head.vocabulary()?;
    let compilers = Compilers {
        exact: Compiler::new(vocabulary.clone()),
        inside: Compiler::new(vocabulary).lookahead(Lookahead::Terminals(0)),
        options,
    };
    writeln!(out, "{}", json!({ "ready": true }))?;
    out.flush()?;
    let mut session = None;
    for line in lines {
        let job: Job = serde_json::from_str(&line?)?;
        let answer = answer(&compilers, &mut session, job).unwrap_or_else(|error| {
            let error: String = error.to_string().chars().take(MOST_MESSAGE).collect();
            json!({ "error": error })
        });
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

fn answer(compilers: &Compilers, session: &mut Option<Session>, job: Job) -> Result<Value, Box<dyn Error>> {
    let (session, token) = match (job, session) {
        (Job::Schema { schema, candidates }, session) => {
            *session = None;
            let grammar = compilers.options.parse(&schema.to_string(), &Limits::default())?.grammar;
            *session = Some(Session {
                compiled: compilers.exact.compile(&grammar)?,
                inside: compilers.inside.compile(&grammar)?,
                candidates: candidates.into_iter().map(TokenId::new).collect(),
                text: None,
            });
            return Ok(json!({ "bytes": 0 }));
        }
        (_, None) => return Err("there is no schema".into()),
        (Job::Start {}, Some(session)) => (session, None),
        (Job::Token { token }, Some(session)) => (session, Some(TokenId::new(token))),
    };
    let text = match (token, session.text.take()) {
        (None, _) => session.text.insert((session.compiled.constraint(), session.inside.constraint())),
        (Some(_), None) => return Err("there is no text".into()),
        (Some(token), Some((mut exact, mut inside))) => {
            exact.advance(token)?;
            // The token's bytes, since the token itself may not be allowed there.
            inside.advance_bytes(session.compiled.vocabulary().bytes(token).unwrap_or_default())?;
            session.text.insert((exact, inside))
        }
    };
    let (exact, inside) = text;
    let start = Instant::now();
    let mask = exact.mask()?;
    let us = start.elapsed().as_secs_f64() * 1e6;
    let count = mask.len();
    let allowed: String =
        session.candidates.iter().map(|&token| if mask.contains(token) { '1' } else { '0' }).collect();
    let stays = inside.mask()?.len();
    Ok(json!({
        "allowed": allowed, "complete": exact.is_complete(), "count": count,
        "parser": count.saturating_sub(stays), "us": us, "bytes": session.compiled.memory().total(),
    }))
}
