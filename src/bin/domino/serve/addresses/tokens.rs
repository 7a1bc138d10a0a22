//! Tokens of texts and back, without a text being written: `/tokenize` and `/detokenize` as other servers
//! have them, and the count of a request to the Messages API.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use axum::{Json, extract::Request, extract::State};
use domino::TokenId;
use serde_json::{Map, Value, json};

use super::super::asked::{self, fields, fields::Endpoint};
use super::super::{access::Caller, problem::Problem, prompts::PromptAsked, server::Server};
use super::handlers::text_of;

/// The tokens of a `prompt` (or `content`), or of `messages`.
pub(super) async fn tokenize(State(server): State<Arc<Server>>, request: Request) -> Response {
    let read = |body: &[u8]| {
        let mut body = object(body)?;
        let endpoint = if body.contains_key("messages") { Endpoint::Chat } else { Endpoint::Completions };
        if let Some(content) = body.shift_remove("content") {
            body.insert("prompt".to_owned(), content);
        }
        server.read(Value::Object(body).to_string().as_bytes(), endpoint)
    };
    let answer = |tokens: &[TokenId]| {
        let tokens: Vec<u32> = tokens.iter().map(|token| token.raw()).collect();
        json!({ "count": tokens.len(), "max_model_len": server.model.context, "tokens": tokens })
    };
    of_prompt(&server, request, read, answer).await.unwrap_or_else(IntoResponse::into_response)
}

/// The number of tokens of the prompt of a request to the Messages API.
pub(super) async fn count(State(server): State<Arc<Server>>, request: Request) -> Response {
    let read = |body: &[u8]| server.read(body, Endpoint::Messages);
    let answer = |tokens: &[TokenId]| json!({ "input_tokens": tokens.len() });
    let answered = of_prompt(&server, request, read, answer).await;
    answered.unwrap_or_else(|problem| problem.answer(Endpoint::Messages))
}

/// The text of `tokens`, without special ones.
pub(super) async fn detokenize(State(server): State<Arc<Server>>, request: Request) -> Response {
    let read = |body: &[u8]| -> Result<Vec<TokenId>, Problem> {
        let body = object(body)?;
        fields::of_object(&body, "detokenize", &["model", "tokens"])?;
        let number = |token: &Value| u32::try_from(token.as_u64()?).ok().map(TokenId::new);
        let tokens = body.get("tokens").and_then(Value::as_array);
        let tokens = tokens.and_then(|tokens| tokens.iter().map(number).collect());
        tokens.ok_or_else(|| Problem::invalid("tokens", "`tokens` must be a list of the numbers of tokens"))
    };
    match asked::read(request, &server.limits, &server.bodies, read).await {
        Ok(tokens) => {
            let text = text_of(&server.model.vocabulary, &tokens);
            Json(json!({ "prompt": text, "content": text })).into_response()
        }
        Err(problem) => problem.into_response(),
    }
}

/// Answers with what is made of the tokens of a request's prompt.
async fn of_prompt(
    server: &Server,
    request: Request,
    read: impl FnOnce(&[u8]) -> Result<asked::Asked, Problem>,
    answer: impl FnOnce(&[TokenId]) -> Value,
) -> Result<Response, Problem> {
    let caller = Caller::of(request.extensions());
    let mut prompts = asked::read(request, &server.limits, &server.bodies, read).await?.prompts;
    let prompt: Option<PromptAsked> = if prompts.len() == 1 { prompts.pop() } else { None };
    let prompt = prompt.ok_or_else(|| Problem::invalid("prompt", "`prompt` must be one text"))?;
    let tokens = server.prompts.read(server.registry.pool(), &caller, prompt).await?;
    Ok(Json(answer(&tokens)).into_response())
}

fn object(body: &[u8]) -> Result<Map<String, Value>, Problem> {
    let read = serde_json::from_slice(body);
    read.map_err(|error| Problem::bad_request("invalid_json", format!("the body is no JSON object: {error}")))
}
