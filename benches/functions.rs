//! Times from a list of functions to the first mask, and of a call of each function after that, by Domino and
//! llguidance in turns: `cargo measure functions`.
//!
//! `--functions N` (default 400), `--rounds N` (default 9), `--calls N` (default 400): number of functions
//! called, one text each, with each engine's mask and commit timed at every token. The functions have 10 to
//! 20 parameters each, made from fixed words by a fixed seed: strings, numbers, choices, lists and objects.
//! Domino gets the list as OpenAI's API has it and reads it in the spelling of Hermes; llguidance gets the
//! same calls as a grammar in its Lark, written beforehand. Each round begins with the vocabulary and nothing
//! else. The vocabulary is the shared one of 131k tokens, and the allocator that of the program `domino`, for
//! both. Without `DOMINO_SHARED` there is nothing to measure, and it fails.

use std::{
    env,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use clap::Parser;
use domino::{
    Compiler, Limits, TokenId, Vocabulary,
    grammar::tools::{Calling, Spelling, Tools},
};
use llguidance::{Matcher, ParserFactory, api::TopLevelGrammar, toktrie::ApproximateTokEnv};
use serde_json::{Map, Value, json};
use toktrie_hf_tokenizers::{ByteTokenizer, ByteTokenizerEnv};

/// The allocator of the program. llguidance is as fast with it as any program can have it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measure the first mask of many functions.
#[derive(Debug, Parser)]
struct Args {
    /// Number of functions.
    #[arg(long, default_value_t = 400)]
    functions: usize,
    /// Number of rounds, in which each engine begins anew.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Number of functions called along texts, after the last round.
    #[arg(long, default_value_t = 400)]
    calls: usize,
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Names of functions, parameters and choices.
const WORDS: [&str; 48] = [
    "account", "address", "amount", "author", "branch", "brand", "category", "channel", "city", "color",
    "comment", "country", "currency", "customer", "date", "duration", "email", "event", "file", "filter",
    "format", "group", "height", "host", "image", "issue", "label", "language", "level", "limit", "message",
    "mode", "month", "offset", "order", "owner", "page", "price", "priority", "product", "project",
    "quantity", "query", "region", "service", "status", "timezone", "user",
];

/// A random generator (xorshift64*, Vigna 2016), the same on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).unwrap_or(0) % bound
    }

    /// Draws `count` different words.
    fn words(&mut self, count: usize) -> Vec<&'static str> {
        let mut left = WORDS.to_vec();
        (0..count).map(|_| left.swap_remove(self.below(left.len()))).collect()
    }
}

fn parameter(dice: &mut Dice) -> Value {
    match dice.below(20) {
        0..=6 => json!({ "type": "string" }),
        7..=9 => json!({ "type": "integer" }),
        10..=11 => json!({ "type": "number" }),
        12..=13 => json!({ "type": "boolean" }),
        14..=16 => {
            let many = 2 + dice.below(5);
            json!({ "enum": dice.words(many) })
        }
        17 => json!({ "type": "array", "items": { "type": "string" } }),
        18 => json!({ "type": "array", "items": { "type": "integer" } }),
        _ => {
            let strings =
                dice.words(3).into_iter().map(|name| (name.to_owned(), json!({ "type": "string" })));
            let strings: Map<String, Value> = strings.collect();
            json!({ "type": "object", "properties": strings, "additionalProperties": false })
        }
    }
}

/// Makes functions: names and parameters.
fn functions(count: usize) -> Vec<(String, Value)> {
    let mut dice = Dice(7);
    let function = |number| {
        let many = 10 + dice.below(11);
        let names = dice.words(many);
        let properties = names.iter().map(|name| ((*name).to_owned(), parameter(&mut dice)));
        let properties: Map<String, Value> = properties.collect();
        let parameters = json!({
            "type": "object", "properties": properties, "required": names[..many / 2],
            "additionalProperties": false,
        });
        (format!("{}_{number}", names[0]), parameters)
    };
    (0..count).map(function).collect()
}

/// An argument that a parameter's schema allows.
fn argument(dice: &mut Dice, schema: &Value) -> Value {
    if let Some(choices) = schema["enum"].as_array() {
        return choices[dice.below(choices.len())].clone();
    }
    match schema["type"].as_str() {
        Some("integer") => json!(dice.below(100_000)),
        Some("number") => json!(f64::from(u32::try_from(dice.below(100_000)).unwrap_or(0)) / 8.0),
        Some("boolean") => json!(dice.below(2) == 0),
        Some("array") => {
            let many = dice.below(4);
            (0..many).map(|_| argument(dice, &schema["items"])).collect()
        }
        Some("object") => {
            let parts = schema["properties"].as_object().into_iter().flatten();
            parts.map(|(name, part)| (name.clone(), argument(dice, part))).collect()
        }
        _ => {
            let many = 1 + dice.below(8);
            dice.words(many).join(" ").into()
        }
    }
}

/// Calls of the first `count` functions, in the spelling of Hermes.
fn calls(functions: &[(String, Value)], count: usize) -> Vec<String> {
    let mut dice = Dice(11);
    let call = |(name, parameters): &(String, Value)| {
        let arguments = argument(&mut dice, parameters);
        format!("<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {arguments}}}\n</tool_call>")
    };
    functions.iter().take(count).map(call).collect()
}

/// The functions as a list of OpenAI's API.
fn listed(functions: &[(String, Value)]) -> String {
    let function = |(name, parameters): &(String, Value)| {
        let function = json!({ "name": name, "parameters": parameters });
        json!({ "type": "function", "function": function })
    };
    Value::from(functions.iter().map(function).collect::<Vec<_>>()).to_string()
}

/// A grammar of the same calls within free text, in llguidance's Lark.
fn lark(functions: &[(String, Value)]) -> String {
    let mut text = String::from(
        "start: (begin call \"}\\n</tool_call>\")* FREE\nFREE: /(.|\\n)*/\n\
         begin[lazy]: /(.|\\n)*<tool_call>\\n\\{\"name\": \"/\n",
    );
    let calls: Vec<String> = (0..functions.len()).map(|number| format!("call_{number}")).collect();
    text += &format!("call: {}\n", calls.join(" | "));
    for (number, (name, parameters)) in functions.iter().enumerate() {
        text += &format!("call_{number}: \"{name}\\\", \\\"arguments\\\": \" %json {parameters}\n");
    }
    text
}

fn time(name: &str, times: &mut [Duration], tokens: usize) {
    times.sort();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let (least, median) = (milliseconds(times[0]), milliseconds(times[times.len() / 2]));
    println!("{name:<11} first mask {least:>7.1} ms at least, {median:>7.1} ms median; {tokens} tokens");
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let shared = env::var_os("DOMINO_SHARED").map(PathBuf::from);
    let shared = shared.ok_or("DOMINO_SHARED names no folder with tokenizers")?;
    let file = shared.join("data/tokenizers/tekken-131k/tokenizer.json");
    let vocabulary = Vocabulary::from_tokenizer_file(&file)?;
    let factory = factory(&file)?;
    let functions = functions(args.functions);
    let (listed, lark) = (listed(&functions), lark(&functions));
    println!(
        "{} functions, {} bytes as a list, {} rounds, {} threads",
        args.functions,
        listed.len(),
        args.rounds,
        rayon::current_num_threads()
    );
    let (mut ours, mut theirs, mut tokens) = (Vec::new(), Vec::new(), (0, 0));
    let texts: Vec<Vec<u32>> =
        calls(&functions, args.calls).iter().map(|text| factory.tok_env().tokenize(text)).collect();
    let mut last = None;
    for _ in 0..args.rounds {
        let begun = Instant::now();
        let limits = Limits::default();
        let grammar = Tools::parse(&listed)?.grammar(&Calling::new(Spelling::Hermes), &limits)?;
        let compiled = Compiler::new(vocabulary.clone()).compile(&grammar)?;
        let mut constraint = compiled.constraint();
        let mask = constraint.mask()?;
        ours.push(begun.elapsed());
        tokens.0 = mask.iter().count();

        let begun = Instant::now();
        let mut matcher = Matcher::new(factory.create_parser(TopLevelGrammar::from_lark(lark.clone())));
        let mask = matcher.compute_mask_or_eos()?;
        theirs.push(begun.elapsed());
        tokens.1 = mask.iter().count();
        last = Some((compiled, matcher));
    }
    time("domino", &mut ours, tokens.0);
    time("llguidance", &mut theirs, tokens.1);
    let Some((compiled, matcher)) = last else { return Ok(()) };
    let mut idle: Vec<Duration> = (0..IDLE).map(|_| Instant::now().elapsed()).collect();
    idle.sort();
    println!("no work at all takes {} ns, which is in each step", idle[IDLE / 2].as_nanos());
    for turn in ["first", "second"] {
        // One engine after the other: what they read of memory does not fit into the caches for both.
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for text in &texts {
            let mut constraint = compiled.constraint();
            for &token in text {
                let begun = Instant::now();
                let allowed = constraint.mask()?.contains(TokenId::new(token));
                constraint.advance(TokenId::new(token))?;
                ours.push(begun.elapsed());
                assert!(allowed, "a token of a call that our mask lacks");
            }
        }
        for text in &texts {
            let mut matcher = matcher.deep_clone();
            for &token in text {
                let begun = Instant::now();
                let allowed = matcher.compute_mask()?.is_allowed(token);
                matcher.consume_token(token)?;
                theirs.push(begun.elapsed());
                assert!(allowed, "a token of a call that llguidance's mask lacks");
            }
        }
        steps("domino", turn, &mut ours);
        steps("llguidance", turn, &mut theirs);
    }
    Ok(())
}

/// Number of empty measurements, whose median is the clock's own time.
const IDLE: usize = 2_001;

/// Prints times of mask and commit along the texts.
fn steps(name: &str, turn: &str, times: &mut [Duration]) {
    times.sort();
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let mean = micros(times.iter().sum()) / times.len() as f64;
    let [median, most, rare] =
        [2, 100, 1_000].map(|part| micros(times[times.len() - 1 - times.len() / part]));
    println!(
        "{name:<11} {turn:<6} texts, {} steps: mean {mean:>7.2} us, p50 {median:>6.2}, p99 {most:>7.1}, \
         p99.9 {rare:>7.1}, max {:>7.1}",
        times.len(),
        micros(times[times.len() - 1]),
    );
}

fn factory(file: &Path) -> Result<ParserFactory, Box<dyn std::error::Error>> {
    let mut tokens = ByteTokenizer::from_file(file)?;
    tokens.set_eos_token(2);
    let exact = ByteTokenizerEnv::new(tokens, None)?;
    let env: std::sync::Arc<ApproximateTokEnv> = std::sync::Arc::new(ApproximateTokEnv::new(exact.tok_trie));
    let mut factory = ParserFactory::new_simple(&(env as _))?;
    factory.quiet();
    Ok(factory)
}
