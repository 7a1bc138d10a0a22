//! Domino under the harness for JSON Schema engines: lines of JSON in, lines of JSON out.
//!
//!     schema_engine [--digest] [--order any] [--plain-numbers] [--cold] [--lenient] [--cpu] [--no-rehearsal]
//!
//! The first line is `{"vocab": FILE of id, tab, bytes in hexadecimal, "eos": ID}`, answered with `{"ready":
//! true, "call_us": what an empty call takes}`. Each further line is a schema with texts as tokens, answered
//! with the time from the schema's text to its first mask and its parts, the time of each mask and each step,
//! and the time of each step when the texts come a second time. Tables of the vocabulary are kept between
//! schemas unless `--cold` is given. Numbers may be written in any way unless `--plain-numbers` is. With
//! `--cpu` times are of this thread's processor, in which a busy machine shows less; the call that asks for
//! it takes 0.2 us or so, which each time then holds. With `--digest` there are no times but one hash of all
//! masks of a schema's texts, by which two programs are compared bit for bit.

/// The allocator of the program `domino`.
#[path = "../../../src/bin/domino/allocator.rs"]
mod allocator;
/// Settings of memory, as in `domino serve`.
#[path = "../../../src/bin/domino/serve/memory.rs"]
mod memory;
mod vocabulary;

use std::{
    error::Error,
    hash::{DefaultHasher, Hash, Hasher},
    io::{BufRead, Write},
    sync::OnceLock,
    time::Instant,
};

use domino::{
    CompiledGrammar, Compiler, Limits, TokenId,
    grammar::json_schema::{Escapes, Format, Numbers, Order, SchemaOptions},
};
use serde::Deserialize;
use serde_json::{Value, json};
use vocabulary::Head;

/// Bytes of an error message that are passed on.
const MOST_MESSAGE: usize = 300;
/// Number of empty calls, whose median is the cost of one.
const EMPTY_CALLS: usize = 2_001;

#[derive(Debug, Deserialize)]
struct Job {
    id: Value,
    schema: Value,
    tests: Vec<Test>,
}

#[derive(Debug, Deserialize)]
struct Test {
    tokens: Vec<u32>,
    valid: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    allocator::keep_memory();
    memory::take_ahead(None);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    CPU.get_or_init(|| has("--cpu"));
    let order = if has("any") { Order::Any } else { Order::Schema };
    // Texts are others', with numbers and escapes in all spellings.
    let numbers = if has("--plain-numbers") { Numbers::Plain } else { Numbers::Any };
    let options = SchemaOptions::default().with_order(order).with_lenient(has("--lenient"));
    let options = options.with_numbers(numbers).with_escapes(Escapes::All).with_format(Format::Assert);
    let mut lines = std::io::stdin().lock().lines();
    let mut out = std::io::stdout().lock();
    let head: Head = serde_json::from_str(&lines.next().ok_or("no first line")??)?;
    let vocabulary = head.vocabulary()?;
    let mut limits = Limits::default();
    if has("--no-rehearsal") {
        limits.rehearsal = 0;
    }
    let mut compiler = Compiler::new(vocabulary.clone()).limits(limits.clone());
    compiler.prepare(&options.kinds_of_values_with(&limits, compiler.automata())?.grammar)?;
    let call = empty_call(&compiler)?;
    writeln!(out, "{}", json!({ "ready": true, "call_us": call }))?;
    out.flush()?;
    for line in lines {
        let job: Job = serde_json::from_str(&line?)?;
        if has("--cold") {
            compiler = Compiler::new(vocabulary.clone()).limits(limits.clone());
        }
        let told = if has("--digest") { digest } else { answer };
        writeln!(out, "{}", told(&compiler, &options, &job))?;
        out.flush()?;
    }
    Ok(())
}

/// Median time of an almost empty call, in microseconds.
fn empty_call(compiler: &Compiler) -> Result<f64, Box<dyn Error>> {
    let schema = SchemaOptions::default().parse(r#"{"type": "integer"}"#, &Limits::default())?;
    let state = compiler.compile(&schema.grammar)?.constraint();
    let mut times: Vec<f64> = Vec::with_capacity(EMPTY_CALLS);
    for _ in 0..EMPTY_CALLS {
        let start = Moment::now();
        std::hint::black_box(state.is_complete());
        times.push(micros(start));
    }
    times.sort_by(f64::total_cmp);
    Ok(times[EMPTY_CALLS / 2])
}

/// True if processor time is asked for.
static CPU: OnceLock<bool> = OnceLock::new();

/// A moment, by the clock that was asked for.
#[derive(Debug, Clone, Copy)]
enum Moment {
    Wall(Instant),
    Cpu(f64),
}

impl Moment {
    fn now() -> Self {
        if CPU.get() != Some(&true) {
            return Self::Wall(Instant::now());
        }
        Self::Cpu(processor())
    }
}

/// Microseconds of processor time of this thread.
fn processor() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

fn micros(start: Moment) -> f64 {
    match start {
        Moment::Wall(start) => start.elapsed().as_secs_f64() * 1e6,
        Moment::Cpu(start) => processor() - start,
    }
}

fn answer(compiler: &Compiler, options: &SchemaOptions, job: &Job) -> Value {
    let text = job.schema.to_string();
    let start = Moment::now();
    let first = || -> Result<(CompiledGrammar, [f64; 3]), String> {
        let schema = options.parse_with(&text, &Limits::default(), compiler.automata());
        let schema = schema.map_err(|error| error.to_string())?;
        let read = micros(start);
        let compiled = compiler.compile(&schema.grammar).map_err(|error| error.to_string())?;
        let made = micros(start);
        compiled.constraint().mask().map_err(|error| error.to_string())?;
        Ok((compiled, [read, made - read, micros(start) - made]))
    };
    let (compiled, parts) = match first() {
        Ok(compiled) => compiled,
        Err(error) => {
            let error: String = error.chars().take(MOST_MESSAGE).collect();
            return json!({ "id": job.id, "engine": "domino", "status": "refused", "error": error });
        }
    };
    let first_mask = parts.iter().sum::<f64>();
    let (mut steps, mut masks, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    for (number, test) in job.tests.iter().enumerate() {
        let accepted = accepts(&compiled, &test.tokens, &mut steps, Some(&mut masks));
        if accepted != test.valid {
            wrong.push(json!([number, if test.valid { "valid refused" } else { "invalid accepted" }]));
        }
    }
    let mut second = Vec::with_capacity(steps.len());
    for test in &job.tests {
        accepts(&compiled, &test.tokens, &mut second, None);
    }
    let status = if wrong.is_empty() { "ok" } else { "wrong" };
    json!({
        "id": job.id, "engine": "domino", "status": status, "ttfm_us": first_mask, "ttfm_parts_us": parts,
        "steps_us": steps, "masks_us": masks, "second_us": second, "tests": job.tests.len(), "wrong": wrong,
    })
}

/// Hashes all masks along a schema's texts, and the verdict on each text.
fn digest(compiler: &Compiler, options: &SchemaOptions, job: &Job) -> Value {
    let schema = options.parse_with(&job.schema.to_string(), &Limits::default(), compiler.automata());
    let compiled = schema.map_err(|error| error.to_string());
    let compiled = compiled.and_then(|schema| compiler.compile(&schema.grammar).map_err(|e| e.to_string()));
    let compiled = match compiled {
        Ok(compiled) => compiled,
        Err(_) => return json!({ "id": job.id, "status": "refused" }),
    };
    let (mut hasher, mut masks) = (DefaultHasher::new(), 0);
    for test in &job.tests {
        let mut state = compiled.constraint();
        for &token in &test.tokens {
            let Ok(mask) = state.mask() else { break };
            mask.words().hash(&mut hasher);
            masks += 1;
            if state.advance(TokenId::new(token)).is_err() {
                break;
            }
        }
        state.is_complete().hash(&mut hasher);
    }
    json!({ "id": job.id, "masks": masks, "digest": format!("{:016x}", hasher.finish()) })
}

/// True if the text is accepted token by token; a step that exhausts its budget refuses. Without `masks` the
/// clock is read once less in each step.
fn accepts(
    compiled: &CompiledGrammar,
    tokens: &[u32],
    steps: &mut Vec<f64>,
    mut masks: Option<&mut Vec<f64>>,
) -> bool {
    let mut state = compiled.constraint();
    for &token in tokens {
        let token = TokenId::new(token);
        let start = Moment::now();
        let allowed = state.mask().is_ok_and(|mask| mask.contains(token));
        if let Some(masks) = &mut masks {
            masks.push(micros(start));
        }
        let advanced = allowed && state.advance(token).is_ok();
        steps.push(micros(start));
        if !advanced {
            return false;
        }
    }
    state.is_complete()
}
