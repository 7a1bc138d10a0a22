//! Answers to requests that fail: OpenAI's error object, with the place in a grammar.

use std::time::Duration;

use super::asked::fields::Endpoint;
use axum::http::{HeaderValue, StatusCode, header::RETRY_AFTER};
use axum::{Json, response::IntoResponse, response::Response};
use domino::{CompileError, GrammarError, grammar::json_schema::SchemaError};
use serde_json::{Value, json};

/// An answer that is an error.
#[derive(Debug, Clone)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    message: String,
    param: Option<String>,
    /// Fields beside OpenAI's: line, column, detail, hint.
    more: Vec<(&'static str, Value)>,
    retry_after: Option<u32>,
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), param: None, more: Vec::new(), retry_after: None }
    }

    /// The request cannot be understood or served as it is.
    #[must_use]
    pub fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// A value of the request is not what it must be (400).
    pub(crate) fn invalid(param: &str, message: impl Into<String>) -> Self {
        Self::bad_request("invalid_value", message).param(param)
    }

    /// The request asks for something that other servers have and this one does not (400).
    #[must_use]
    pub fn unsupported(param: &str, message: impl Into<String>) -> Self {
        Self::bad_request("unsupported", message).param(param)
    }

    /// The request names something that is not there (404).
    pub(crate) fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, message)
    }

    /// The address is there, but takes another method (405).
    pub(crate) fn method(method: &str, path: &str) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "no_such_method", format!("{path} does not take {method}"))
    }

    /// The request has no key, or a wrong one (401).
    pub(crate) fn unauthorized() -> Self {
        let message = "this server needs its API key, as `Authorization: Bearer KEY`";
        Self::new(StatusCode::UNAUTHORIZED, "invalid_api_key", message)
    }

    /// The caller may not use the server, whatever is asked for (403).
    pub(crate) fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message)
    }

    /// The head of the request does not say that the body is JSON (415).
    pub(crate) fn media_type() -> Self {
        let message = "a body must come with `Content-Type: application/json`";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
    }

    /// A body that took longer than `most` to come.
    pub(crate) fn too_slow(most: Duration) -> Self {
        let message = format!(
            "the body of a request must come within {} s (`domino serve --read-timeout`)",
            most.as_secs_f64()
        );
        Self::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", message)
    }

    /// A body that brings fewer than `least` bytes a second.
    pub(crate) fn too_slow_rate(least: u64) -> Self {
        let message = format!("the body of a request must bring {least} bytes a second");
        Self::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", message)
    }

    /// The refusal of a body because the bodies being received fill the `most` bytes for all of them.
    pub(crate) fn bodies_full(most: usize) -> Self {
        let message = format!(
            "the bodies that come now take the {most} bytes there are for them, or your part of it; ask \
             again later (`domino serve --body-memory`)"
        );
        Self::unavailable("bodies_full", message)
    }

    /// No place to wait for a worker, for a caller of whom `own` tasks wait.
    pub(crate) fn work_queue_full(own: usize) -> Self {
        let message = format!(
            "{own} grammars and long prompts of yours wait to be worked on, and as many as may of all; ask \
             again later"
        );
        Self::unavailable("work_queue_full", message)
    }

    /// More texts in one request than there are places.
    pub(crate) fn too_many_texts(asked: usize, places: usize) -> Self {
        let message = format!(
            "`n` is {asked}; this server has {places} places (`domino serve --max-seqs` and --max-queue)"
        );
        Self::invalid("n", message)
    }

    /// A body over the limit of `most` bytes.
    pub(crate) fn too_large(most: usize) -> Self {
        let message = format!("the body of a request may have {most} bytes (`domino serve --max-body`)");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
    }

    /// More requests than the queue holds.
    pub(crate) fn queue_full(most: usize) -> Self {
        let message = format!("all {most} places are taken; ask again later (`domino serve --max-queue`)");
        Self::new(StatusCode::TOO_MANY_REQUESTS, "queue_full", message).retry_after(1)
    }

    /// The server cannot answer now (503); the client is asked to try again in five seconds.
    pub(crate) fn unavailable(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message).retry_after(5)
    }

    /// The engine failed, not the request (500).
    #[must_use]
    pub fn engine(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "engine_error", message)
    }

    /// A grammar that cannot be read; `name` is what the request calls it.
    pub(crate) fn grammar(name: &str, error: &GrammarError) -> Self {
        let place = error.places().first().map(domino::grammar::Location::position);
        let at =
            place.map_or_else(String::new, |place| format!(", line {}, column {}", place.line, place.column));
        let message = format!("{name}{at}: {}", error.message());
        Self::bad_request("invalid_grammar", message).shown(error)
    }

    /// A schema that cannot be read; the message begins with the JSON pointer.
    pub(crate) fn schema(name: &str, error: SchemaError) -> Self {
        let message = format!("{name}: {}", error.message());
        let problem = Self::bad_request("invalid_json_schema", message);
        let problem = problem.with("pointer", error.pointer()).with("keyword", error.keyword());
        problem.shown(&GrammarError::from(error))
    }

    /// Says where in a text a mistake is, shows it, and says what may help.
    fn shown(mut self, error: &GrammarError) -> Self {
        if let Some(place) = error.places().first().map(domino::grammar::Location::position) {
            self = self.with("line", place.line).with("column", place.column);
        }
        if let Some(hint) = error.hint() {
            self = self.with("hint", hint);
        }
        self.with("detail", error.to_string())
    }

    /// Work on a grammar that was cancelled, as nobody waits for it any more.
    pub(crate) fn given_up(error: &dyn std::error::Error) -> Self {
        let line = error.to_string();
        let line = line.lines().next().unwrap_or_default();
        Self::unavailable("grammar_given_up", format!("nobody waits for the grammar: {line}"))
    }

    /// A grammar that cannot be compiled.
    pub(crate) fn compile(name: &str, error: &CompileError) -> Self {
        Self::bad_request("invalid_grammar", format!("{name}: {error}"))
    }

    /// Renames the part of the request that the problem is about, if it is about one.
    pub(crate) fn about(mut self, param: &str) -> Self {
        if self.param.as_deref() == Some("grammar") {
            self.param = Some(param.to_owned());
        }
        self
    }

    /// Names the part of the request that the problem is about.
    #[must_use]
    pub fn param(mut self, param: &str) -> Self {
        self.param = Some(param.to_owned());
        self
    }

    /// Adds a field to the error object.
    pub(crate) fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.more.push((key, value.into()));
        self
    }

    fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// The status of the answer.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    /// Calls the parts of the request what another API calls them, by pairs of names, the longest first.
    pub(crate) fn renamed(mut self, names: &[(&str, &str)]) -> Self {
        for (ours, theirs) in names {
            self.message = self.message.replace(&format!("`{ours}"), &format!("`{theirs}"));
            let rest = self.param.as_deref().and_then(|param| param.strip_prefix(ours));
            if let Some(rest) = rest.filter(|rest| rest.is_empty() || rest.starts_with(['.', '['])) {
                self.param = Some(format!("{theirs}{rest}"));
                break;
            }
        }
        self
    }

    /// The message: one sentence that says what is wrong.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    fn kind(&self) -> &'static str {
        match self.status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::FORBIDDEN => "permission_error",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        }
    }

    /// The object in the form of Anthropic's Messages API.
    pub(crate) fn of_messages(&self) -> Value {
        let mut error = self.to_json();
        error["type"] = "error".into();
        error["error"]["type"] = match (self.kind(), self.status) {
            ("server_error", StatusCode::SERVICE_UNAVAILABLE) => "overloaded_error",
            ("server_error", _) => "api_error",
            (_, StatusCode::NOT_FOUND) => "not_found_error",
            (_, StatusCode::PAYLOAD_TOO_LARGE) => "request_too_large",
            (kind, _) => kind,
        }
        .into();
        error
    }

    /// Answers in the form of the API that was asked.
    pub(crate) fn answer(self, endpoint: Endpoint) -> Response {
        let body = if endpoint == Endpoint::Messages { self.of_messages() } else { self.to_json() };
        let mut response = (self.status, Json(body)).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }

    /// The object, also for an event of a stream that had begun.
    pub(crate) fn to_json(&self) -> Value {
        let kind = self.kind();
        let mut error = json!({
            "message": self.message, "type": kind, "param": self.param, "code": self.code,
        });
        if let Some(object) = error.as_object_mut() {
            object.extend(self.more.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        }
        json!({ "error": error })
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        self.answer(Endpoint::Chat)
    }
}

#[cfg(test)]
mod tests {
    use domino::{Grammar, Limits, Syntax};

    use super::*;

    #[test]
    fn errors_in_a_grammar_have_line_and_column() {
        let error = Grammar::parse(Syntax::Gbnf, "root ::= a\nb ::= ]", &Limits::default()).unwrap_err();
        let problem = Problem::grammar("grammar", &error);
        assert_eq!(problem.status(), StatusCode::BAD_REQUEST);
        let object = problem.to_json();
        let error = &object["error"];
        assert_eq!((error["line"].as_u64(), error["column"].as_u64()), (Some(2), Some(7)), "{error}");
        assert_eq!(error["type"], "invalid_request_error");
        assert!(error["message"].as_str().unwrap().starts_with("grammar, line 2, column 7: "), "{error}");
    }

    #[test]
    fn a_full_queue_says_when_to_ask_again() {
        let response = Problem::queue_full(3).into_response();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert!(response.headers().contains_key(RETRY_AFTER));
    }
}
