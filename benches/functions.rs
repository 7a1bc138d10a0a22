//! From a list of functions to the first mask, by Domino and by llguidance in turns: `cargo measure
//! functions`.
//!
//! `--functions N` (default 400), `--rounds N` (default 9). The functions have 10 to 20 parameters each, made
//! from fixed words by a fixed seed: strings, numbers, choices, lists and objects. Domino gets the list as
//! OpenAI's API has it and reads it in the spelling of Hermes; llguidance gets the same calls as a grammar in
//! its Lark, written beforehand. Each round begins with the vocabulary and nothing else. The vocabulary is
//! the shared one of 131k tokens, and the allocator that of the program `domino`, for both; without `DOMINO_SHARED` there is nothing to measure, and it fails.

use std::{
    env,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use clap::Parser;
use domino::{
    Compiler, Limits, Vocabulary,
    grammar::tools::{Calling, Spelling, Tools},
};
use llguidance::{Matcher, ParserFactory, api::TopLevelGrammar, toktrie::ApproximateTokEnv};
use serde_json::{Map, Value, json};
use toktrie_hf_tokenizers::{ByteTokenizer, ByteTokenizerEnv};

/// That of the program. llguidance is as fast with it as any program can have it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measure the first mask of many functions.
#[derive(Debug, Parser)]
struct Args {
    /// How many functions.
    #[arg(long, default_value_t = 400)]
    functions: usize,
    /// How often each engine begins anew.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
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

/// Draws (xorshift64*, Vigna 2016): the same on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).unwrap_or(0) % bound
    }

    /// So many different words.
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

/// Names and parameters.
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

/// The list of functions of OpenAI's API.
fn listed(functions: &[(String, Value)]) -> String {
    let function = |(name, parameters): &(String, Value)| {
        let function = json!({ "name": name, "parameters": parameters });
        json!({ "type": "function", "function": function })
    };
    Value::from(functions.iter().map(function).collect::<Vec<_>>()).to_string()
}

/// The same calls within free text, in llguidance's Lark.
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
    for _ in 0..args.rounds {
        let begun = Instant::now();
        let limits = Limits::default();
        let grammar = Tools::parse(&listed)?.grammar(&Calling::new(Spelling::Hermes), &limits)?;
        let mut constraint = Compiler::new(vocabulary.clone()).compile(&grammar)?.constraint();
        let mask = constraint.mask()?;
        ours.push(begun.elapsed());
        tokens.0 = mask.iter().count();

        let begun = Instant::now();
        let mut matcher = Matcher::new(factory.create_parser(TopLevelGrammar::from_lark(lark.clone())));
        let mask = matcher.compute_mask_or_eos()?;
        theirs.push(begun.elapsed());
        tokens.1 = mask.iter().count();
    }
    time("domino", &mut ours, tokens.0);
    time("llguidance", &mut theirs, tokens.1);
    Ok(())
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
