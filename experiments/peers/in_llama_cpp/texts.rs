//! Texts of a grammar by llama.cpp, one engine with five ways to keep to it, as a program of an experiment's
//! definition (docs/speculation-reference.md has the lines of JSON that it reads and writes).
//!
//! Usage: `texts free|gbnf|llguidance|masks|drafts`. The first three draw with llama.cpp's own samplers, as
//! its server does: a token is drawn without the grammar, and again with it where the grammar refuses the
//! first. `masks` and `drafts` are Domino's; drafts learn from text to text.

use std::io::BufRead;
use std::sync::{Arc, Mutex};
use std::{error::Error, num::NonZeroUsize, path::PathBuf, time::Instant};

use domino::decode::{Decoder, Finish, Sampling};
use domino::proposer::{CountProposer, DraftLength, DraftRecipe, Learning, Prior};
use domino::{Compiler, Grammar, Limits, Syntax, TokenId, vocab::Tokenizer};
use domino_llama_cpp::{LlamaCppModel, LlamaCppOptions};
use llama_cpp_2::context::{LlamaContext, params::LlamaContextParams};
use llama_cpp_2::model::{LlamaModel, params::LlamaModelParams};
use llama_cpp_2::token::{LlamaToken, data::LlamaTokenData, data_array::LlamaTokenDataArray};
use llama_cpp_2::{llama_backend::LlamaBackend, llama_batch::LlamaBatch, sampling::LlamaSampler};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

/// Tokens that a text has room for, its prompt included.
const CONTEXT: u32 = 4096;

type Failed = Box<dyn Error>;

#[derive(Deserialize)]
struct Job {
    model: PathBuf,
    threads: NonZeroUsize,
    /// The texts of the grammar by notation, in `texts`.
    grammar: Value,
}

#[derive(Deserialize)]
struct Asked {
    prompt: Vec<u32>,
    max_tokens: usize,
    temperature: f32,
    seed: u64,
}

#[derive(Serialize, Default)]
struct Written {
    tokens: Vec<u32>,
    finish: &'static str,
    seconds: f64,
    first_seconds: f64,
    passes: usize,
    drafted: usize,
    accepted: usize,
}

fn main() -> Result<(), Failed> {
    let way = std::env::args().nth(1).unwrap_or_default();
    let job: Job = read()?.ok_or("nothing was asked")?;
    match way.as_str() {
        "free" | "gbnf" | "llguidance" => by_samplers(&way, &job),
        "masks" | "drafts" => by_domino(way == "drafts", &job),
        _ => Err("usage: texts free|gbnf|llguidance|masks|drafts".into()),
    }
}

/// Reads a line; `None` after the last one.
fn read<T: DeserializeOwned>() -> Result<Option<T>, Failed> {
    let mut line = String::new();
    let bytes = std::io::stdin().lock().read_line(&mut line)?;
    Ok(if bytes == 0 { None } else { Some(serde_json::from_str(&line)?) })
}

/// The text of the grammar in a notation.
fn notation<'a>(job: &'a Job, name: &str) -> Result<&'a str, Failed> {
    Ok(job.grammar["texts"][name].as_str().ok_or_else(|| format!("the grammar is not there in {name}"))?)
}

/// A grammar with dashes in the names of its rules, and each rule on a line: llama.cpp reads no others.
fn for_llama_cpp(text: &str) -> String {
    let (mut out, mut chars) = (String::new(), text.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '"' | '[' => {
                let end = if c == '[' { ']' } else { c };
                out.push(c);
                while let Some(inside) = chars.next() {
                    out.push(inside);
                    match inside {
                        '\\' => out.extend(chars.next()),
                        _ if inside == end => break,
                        _ => {}
                    }
                }
            }
            // Up to the end of the line, which may go on in the next one.
            '#' => while chars.next_if(|&c| c != '\n').is_some() {},
            '\n' if matches!(chars.peek(), Some(' ' | '\t')) => out.push(' '),
            '_' => out.push('-'),
            c => out.push(c),
        }
    }
    out
}

fn by_domino(drafts: bool, job: &Job) -> Result<(), Failed> {
    let mut options = LlamaCppOptions::default();
    (options.threads, options.context) = (Some(job.threads), Some(usize::try_from(CONTEXT)?));
    let model = LlamaCppModel::load(&job.model, &options)?;
    let begun = Instant::now();
    let grammar = Grammar::parse(Syntax::Gbnf, notation(job, "gbnf")?, &Limits::default())?;
    let compiled = Compiler::new(model.vocabulary()?).compile(&grammar)?;
    println!("{}", json!({ "compile_seconds": begun.elapsed().as_secs_f64() }));
    let tokenizer = Tokenizer::from_tokenizer_file(&job.model)?;
    let recipe = DraftRecipe::standard(&tokenizer, compiled.vocabulary(), false);
    let counts = Arc::new(Mutex::new(CountProposer::new(Prior::new(&compiled), Learning::Online)));
    let builder = Decoder::builder(model).vocabulary(compiled.vocabulary().clone());
    let mut decoder = builder.constraint(compiled.constraint()).build()?;
    while let Some(asked) = read::<Asked>()? {
        let options = decoder.options_mut();
        (options.seed, options.max_new_tokens) = (asked.seed, asked.max_tokens);
        options.sampling = Sampling::with_temperature(f64::from(asked.temperature))?;
        // What passes cost is measured before the first text, and while texts are written.
        let cost = decoder.drafter().map(|drafter| drafter.pass_cost().clone()).unwrap_or_default();
        let drafter = || recipe.drafter(Box::new(Arc::clone(&counts)), None, DraftLength::Auto).cost(cost);
        decoder.set_drafter(drafts.then(drafter));
        decoder.calibrate()?;
        let prompt: Vec<TokenId> = asked.prompt.into_iter().map(TokenId::new).collect();
        let begun = Instant::now();
        let mut steps = decoder.steps(&prompt);
        let mut first = None;
        while let Some(step) = steps.next() {
            step?;
            first.get_or_insert_with(|| begun.elapsed());
        }
        let seconds = begun.elapsed().as_secs_f64();
        let written = Written {
            tokens: steps.tokens().iter().map(|token| token.raw()).collect(),
            finish: if steps.finish() == Some(Finish::Length) { "length" } else { "stop" },
            seconds,
            first_seconds: first.map_or(seconds, |first| first.as_secs_f64()),
            passes: steps.stats().passes,
            drafted: steps.stats().drafted,
            accepted: steps.stats().accepted,
        };
        println!("{}", serde_json::to_string(&written)?);
    }
    Ok(())
}

fn by_samplers(way: &str, job: &Job) -> Result<(), Failed> {
    let backend = LlamaBackend::init()?;
    let model = LlamaModel::load_from_file(&backend, &job.model, &LlamaModelParams::default())?;
    let threads = i32::try_from(job.threads.get())?;
    let params = LlamaContextParams::default().with_n_ctx(std::num::NonZeroU32::new(CONTEXT));
    let params = params.with_n_batch(CONTEXT).with_n_threads(threads).with_n_threads_batch(threads);
    let mut context = model.new_context(&backend, params)?;
    let begun = Instant::now();
    let tokens = || LlamaSampler::llguidance_tok_env(&model);
    let factory = (way == "llguidance").then(|| llguidance::ParserFactory::new_simple(&tokens()));
    let factory = factory.transpose()?;
    let grammar = || -> Result<Option<LlamaSampler>, Failed> {
        match &factory {
            Some(factory) => {
                let lark = llguidance::api::TopLevelGrammar::from_lark(notation(job, "lark")?.to_owned());
                let parser = factory.create_parser(lark);
                Ok(Some(llguidance::Matcher::new(parser).into()))
            }
            None if way == "gbnf" => {
                let text = for_llama_cpp(notation(job, "gbnf")?);
                Ok(Some(LlamaSampler::grammar(&model, &text, "root")?))
            }
            None => Ok(None),
        }
    };
    grammar()?;
    println!("{}", json!({ "compile_seconds": begun.elapsed().as_secs_f64() }));
    while let Some(asked) = read::<Asked>()? {
        // As with each request to llama.cpp's server, the grammar is read anew.
        let begun = Instant::now();
        let written = text(&model, &mut context, &asked, grammar()?)?;
        let written = Written { seconds: begun.elapsed().as_secs_f64(), ..written };
        println!("{}", serde_json::to_string(&written)?);
    }
    Ok(())
}

/// Writes a text with llama.cpp's samplers.
fn text(
    model: &LlamaModel,
    context: &mut LlamaContext<'_>,
    asked: &Asked,
    mut grammar: Option<LlamaSampler>,
) -> Result<Written, Failed> {
    // Seeds have 32 bits there.
    let draws = LlamaSampler::dist(u32::try_from(asked.seed & u64::from(u32::MAX))?);
    let mut draw = LlamaSampler::chain_simple([LlamaSampler::temp(asked.temperature), draws]);
    context.clear_kv_cache();
    let begun = Instant::now();
    let prompt = asked.prompt.iter().map(|&token| Ok(LlamaToken::new(i32::try_from(token)?)));
    let mut next: Vec<LlamaToken> = prompt.collect::<Result<_, Failed>>()?;
    let mut written = Written { finish: "length", ..Written::default() };
    while written.tokens.len() < asked.max_tokens {
        context.decode(&mut LlamaBatch::get_one(&next)?)?;
        written.passes += 1;
        let last = i32::try_from(next.len())? - 1;
        let mut all = context.token_data_array_ith(last);
        draw.apply(&mut all);
        let mut token = all.selected_token().ok_or("nothing was drawn")?;
        if let Some(grammar) = &mut grammar {
            let mut alone = LlamaTokenDataArray::new(vec![LlamaTokenData::new(token, 1.0, 0.0)], false);
            grammar.apply(&mut alone);
            if alone.data.iter().all(|token| token.logit() == f32::NEG_INFINITY) {
                let mut all = context.token_data_array_ith(last);
                grammar.apply(&mut all);
                draw.apply(&mut all);
                token = all.selected_token().ok_or("nothing may follow")?;
            }
            grammar.accept(token);
        }
        if written.tokens.is_empty() {
            written.first_seconds = begun.elapsed().as_secs_f64();
        }
        if model.vocab().is_eog(token) {
            written.finish = "stop";
            break;
        }
        written.tokens.push(u32::try_from(token.0)?);
        next = vec![token];
    }
    Ok(written)
}
