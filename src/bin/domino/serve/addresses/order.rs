//! Makes the engine's order of what a request asks for: its grammar compiled, its prompts as tokens.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use domino::{Cancel, TokenId, Vocabulary};

use super::super::{
    access::caller::Caller,
    asked::{
        captures::CapturesAsked,
        grammar::GrammarAsked,
        request::Asked,
        tools::{ToolsAsked, reasoning},
    },
    engines::{client::Client, kept_files},
    grammars::registry::Prepared,
    problem::Problem,
    prompts::PromptAsked,
    server::Server,
    writing::{
        GrammarOrder, Order, PromptOrder,
        captured::{Captured, GrammarFinder},
    },
};
use crate::grammar::compiler::{self, Reach};

/// The name that any server's model has beside its own.
pub(super) const DEFAULT_MODEL: &str = "default";

/// Makes the engine's order of a request. The request holds its places until the order is dropped.
pub(super) async fn order(server: &Arc<Server>, asked: Asked, caller: &Caller) -> Result<Order, Problem> {
    static REQUESTS: AtomicU64 = AtomicU64::new(0);
    check_model(server, asked.model.as_deref())?;
    let mut options = asked.drawing.options.clone();
    options.masking = asked.reach.masking.unwrap_or(server.masking);
    let reach = asked.reach.reach(server.reach);
    server.engine.check(&options)?;
    let size = server.model.vocabulary.size();
    if let Some(token) = options.bias.tokens().find(|token| token.index() >= size) {
        let message = format!("`logit_bias`: there is no token {token}; the model has {size}");
        return Err(Problem::invalid("logit_bias", message));
    }
    if asked.tools.is_some() && options.logprobs.is_some() {
        let message = "log-probabilities of an answer that may call functions are not served";
        return Err(Problem::unsupported("logprobs", message));
    }
    let places = Arc::new(server.gate.enter(asked.prompts.len().saturating_mul(asked.choices))?);
    let mut grammar = match asked.grammar {
        Some(grammar) => Some(grammar_order(server, caller, grammar.reaching(reach), asked.captures).await?),
        None => None,
    };
    let mut prompts = Vec::with_capacity(asked.prompts.len());
    for prompt in asked.prompts {
        let text = match &prompt {
            PromptAsked::Text(text) if asked.echo => Some(text.clone()),
            _ => None,
        };
        let tokens = server.prompts.read(server.registry.pool(), caller, prompt).await?;
        // Past its context the model has no room.
        let left = server.model.context.saturating_sub(tokens.len());
        let most = asked.drawing.most.map_or(left, |most| most.min(left));
        let echo = asked.echo.then(|| text.unwrap_or_else(|| text_of(&server.model.vocabulary, &tokens)));
        prompts.push(PromptOrder { tokens, most, echo });
    }
    if let (Some(tools), Some(prompt)) = (&asked.tools, prompts.first()) {
        grammar = Some(tools_order(server, caller, (tools, reach), &prompt.tokens).await?);
    }
    let client = Client(caller.number());
    let shared = if server.share_caches { Client::default() } else { client };
    if let Some(grammar) = &grammar {
        read_counts(server, caller, shared, &grammar.grammar).await;
    }
    // Set for each text.
    options.seed = 0;
    options.prompt_logprobs = asked.echo && options.logprobs.is_some();
    Ok(Order {
        prompts,
        choices: asked.choices,
        options,
        seed: asked.seed.unwrap_or_else(random),
        stops: asked.drawing.stops,
        finish: asked.finish.unwrap_or(server.finish),
        grammar,
        client,
        shared,
        request: REQUESTS.fetch_add(1, Ordering::Relaxed),
        places,
    })
}

/// Makes the part of an order that is about its grammar, and the parts of that whose texts are listed.
async fn grammar_order(
    server: &Server,
    caller: &Caller,
    asked: GrammarAsked,
    captures: CapturesAsked,
) -> Result<GrammarOrder, Problem> {
    let grammar = server.registry.get(caller, asked.clone()).await?;
    let pool = Arc::clone(server.registry.pool());
    let capturing = match captures {
        CapturesAsked::Off => None,
        CapturesAsked::Marked => grammar.captures.clone(),
        CapturesAsked::Rules(rules) => {
            let (named, schemas) = (server.registry.named().clone(), Arc::clone(&server.schemas));
            let finder =
                GrammarFinder { named, schemas, pool: Arc::clone(&pool), patience: server.limits.compile };
            Some(finder.capturing(caller, asked, rules).await?)
        }
    };
    let captured = capturing.map(|capturing| Captured { capturing, pool, caller: caller.clone() });
    Ok(GrammarOrder { grammar, calls: None, captured })
}

/// Makes the same of an answer to a prompt that may call functions. A mistake in a schema of a function is
/// told with its place in the list of functions, which is looked for in the caller's turn.
async fn tools_order(
    server: &Server,
    caller: &Caller,
    (tools, reach): (&ToolsAsked, Option<Reach>),
    prompt: &[TokenId],
) -> Result<GrammarOrder, Problem> {
    let model = &server.model;
    let (tags, reader) = tools.tags(reasoning(&model.vocabulary, prompt, model.thinks))?;
    match server.registry.get(caller, tools.grammar(tags).reaching(reach)).await {
        Ok(grammar) => Ok(GrammarOrder { grammar, calls: Some(reader), captured: None }),
        Err(problem) if !problem.status().is_client_error() => Err(problem),
        Err(problem) => {
            let tools = tools.clone();
            let look = move |cancel: &Cancel| tools.mistake(&compiler::limits().cancelled_by(cancel));
            let mistake = server.registry.pool().run_within(caller, server.limits.compile, look).await;
            Err(mistake.ok().flatten().unwrap_or(problem))
        }
    }
}

/// Reads what texts of the grammar have taught before this run, if that is kept and was not read yet.
async fn read_counts(server: &Server, caller: &Caller, shared: Client, grammar: &Prepared) {
    let Some(guesses) = grammar.guesses.clone().filter(|guesses| guesses.are_on_disk(shared)) else { return };
    let name = if server.share_caches { Some("shared".to_owned()) } else { caller.lasting() };
    let Some(name) = name.map(|name| kept_files::plain(&name)) else { return };
    let grammar = grammar.grammar.clone();
    // Without them the texts are the same.
    let _ = tokio::task::spawn_blocking(move || guesses.read(shared, &name, &grammar)).await;
}

/// The text of a prompt of tokens, without special ones.
fn text_of(vocabulary: &Vocabulary, tokens: &[TokenId]) -> String {
    let bytes = tokens.iter().flat_map(|&token| vocabulary.bytes(token).unwrap_or_default());
    String::from_utf8_lossy(&bytes.copied().collect::<Vec<u8>>()).into_owned()
}

/// Refuses the name of another model.
fn check_model(server: &Server, asked: Option<&str>) -> Result<(), Problem> {
    let name = &server.model.name;
    match asked {
        Some(asked) if asked != name && asked != DEFAULT_MODEL => {
            let message =
                format!("there is no model {asked:?}; this server's is {name:?}, or \"{DEFAULT_MODEL}\"");
            Err(Problem::not_found("model_not_found", message).param("model"))
        }
        _ => Ok(()),
    }
}

/// Makes a seed for a request that names none.
fn random() -> u64 {
    RandomState::new().hash_one(Instant::now())
}
