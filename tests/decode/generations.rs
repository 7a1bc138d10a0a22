//! The shipped model writes texts of the paper's five grammars. Every finished text must be in the language
//! by `domino check` and by a parser that shares nothing with the engine.
//!
//! `DOMINO_GENERATIONS=200 cargo test --release generations -- --nocapture` is the full run and prints a
//! table; without the variable there are fewer texts.

use std::{io::Write, path::Path, process::Stdio};

use domino::{
    Compiler, Grammar, Limits, Syntax, TrailingSpace, Vocabulary,
    decode::{Decoder, Finish, Masking, Sampling},
    model::candle::{CandleModel, LoadOptions},
    oracle::Oracle,
    vocab::Tokenizer,
};
use quick_xml::events::Event;
use serde_json::{Value, json};

use crate::support::program::program;

/// Number of texts without the variable.
const DEFAULT_COUNT: usize = 25;
/// Most tokens of a text.
const MAX_TOKENS: usize = 256;
const TASKS: [&str; 5] = ["json", "gsm8k", "xml_person", "rpg", "c"];

struct Text {
    task: &'static str,
    bytes: String,
    finished: bool,
}

fn repository() -> &'static Path {
    Path::new(env!("DOMINO_ROOT"))
}

fn grammar_text(task: &str) -> String {
    std::fs::read_to_string(repository().join(format!("grammars/paper/{task}.gbnf")))
        .expect("a shipped grammar")
}

fn prompts(task: &str) -> Vec<String> {
    let rows =
        std::fs::read_to_string(repository().join("experiments/train/prompts.jsonl")).expect("prompts");
    rows.lines()
        .map(|row| serde_json::from_str::<Value>(row).expect("a row"))
        .filter(|row| row["task"] == task)
        .map(|row| row["prompt"].as_str().expect("a prompt").to_owned())
        .collect()
}

/// Generates the same number of texts for each task: greedily for each prompt first, then drawn at
/// temperature 1, half of them with top-p, by different seeds.
fn generate(count: usize) -> Vec<Text> {
    let folder = repository().join("models/domino-small");
    let vocabulary = Vocabulary::from_tokenizer_file(&folder).expect("the shipped vocabulary");
    let tokenizer = Tokenizer::from_tokenizer_file(&folder).expect("the shipped tokenizer");
    let mut model = CandleModel::load(&folder, &LoadOptions::default()).expect("the shipped model");
    let mut texts = Vec::new();
    for task in TASKS {
        let grammar =
            Grammar::parse(Syntax::Gbnf, &grammar_text(task), &Limits::default()).expect("a grammar");
        let compiled = Compiler::new(vocabulary.clone()).compile(&grammar).expect("a grammar that compiles");
        let prompts = prompts(task);
        assert_eq!(prompts.len(), 5);
        for number in 0..count.div_ceil(TASKS.len()) {
            let drawn = Sampling::with_temperature(1.0).expect("a temperature");
            let sampling = match number / prompts.len() {
                0 => Sampling::default(),
                round if round % 2 == 0 => drawn.top_p(0.9).expect("a share"),
                _ => drawn,
            };
            let masking = if number % 2 == 0 { Masking::Opportunistic } else { Masking::Always };
            let mut decoder = Decoder::builder(model)
                .vocabulary(vocabulary.clone())
                .constraint(compiled.constraint())
                .sampling(sampling)
                .masking(masking)
                .seed(number as u64)
                .max_new_tokens(MAX_TOKENS)
                .build()
                .expect("a decoder");
            // The table of the documentation counts texts that the model itself ended.
            decoder.options_mut().trailing_space = TrailingSpace::Keep;
            let prompt = tokenizer.encode(&prompts[number % prompts.len()], true).expect("tokens");
            let made = decoder.generate(&prompt).expect("a text");
            // Every grammar of the paper is of UTF-8 texts, but a cut may fall inside a character.
            let bytes = vocabulary.concat(&made.tokens);
            let finished = matches!(made.finish, Finish::Stop | Finish::OnlySpace);
            let bytes = if finished {
                String::from_utf8(bytes).expect("UTF-8")
            } else {
                String::from_utf8_lossy(&bytes).trim_end_matches('\u{fffd}').to_owned()
            };
            texts.push(Text { task, bytes, finished });
            model = decoder.into_model();
        }
    }
    texts
}

/// Judges texts by `domino check --batch`: finished ones as complete texts, the others as prefixes.
fn by_domino_check(texts: &[Text]) -> Vec<bool> {
    let mut child = program()
        .args(["check", "--batch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program");
    let rows: String = texts
        .iter()
        .enumerate()
        .map(|(id, text)| {
            let grammar = grammar_text(text.task);
            let row = json!({"id": id, "syntax": "gbnf", "grammar": grammar, "text": text.bytes,
                "prefix": !text.finished});
            format!("{row}\n")
        })
        .collect();
    let mut input = child.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || input.write_all(rows.as_bytes()).expect("rows are read"));
    let output = child.wait_with_output().expect("an answer");
    writer.join().expect("rows are written");
    assert!(output.status.success(), "{output:?}");
    let answers = String::from_utf8(output.stdout).expect("UTF-8");
    answers
        .lines()
        .map(|row| {
            serde_json::from_str::<Value>(row).expect("a row")["accepted"].as_bool().expect("an answer")
        })
        .collect()
}

/// Judges a finished text by a parser that knows nothing of ours.
fn by_another_parser(text: &Text) -> bool {
    match text.task {
        "json" => serde_json::from_str::<serde_json::Map<String, Value>>(&text.bytes).is_ok(),
        "gsm8k" => serde_json::from_str(&text.bytes).is_ok_and(|value| is_solution(&value)),
        "xml_person" => is_xml(&text.bytes),
        task => {
            let grammar =
                Grammar::parse(Syntax::Gbnf, &grammar_text(task), &Limits::default()).expect("a grammar");
            Oracle::new(&grammar).expect("an oracle").accepts(text.bytes.as_bytes())
        }
    }
}

fn is_solution(value: &Value) -> bool {
    let is_step = |step: &Value| {
        step["step"].is_string() && step["calculation"].is_string() && step["result"].is_number()
    };
    let steps = value["thoughts"].as_array();
    steps.is_some_and(|steps| !steps.is_empty() && steps.iter().all(is_step)) && value["answer"].is_number()
}

/// True for one element, with every tag closed in order.
fn is_xml(text: &str) -> bool {
    let mut reader = quick_xml::Reader::from_str(text);
    reader.config_mut().check_end_names = true;
    let mut depth = 0_i32;
    let mut roots = 0;
    loop {
        match reader.read_event() {
            Ok(Event::Start(_)) => {
                roots += i32::from(depth == 0);
                depth += 1;
            }
            Ok(Event::End(_)) => depth -= 1,
            Ok(Event::Eof) => return depth == 0 && roots == 1,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}

/// True for a number that JSON has but `serde_json` does not hold: the paper's grammars put no bound on
/// digits.
fn is_out_of_range(text: &str) -> bool {
    serde_json::from_str::<Value>(text)
        .is_err_and(|error| error.to_string().starts_with("number out of range"))
}

/// True for a text of the paper's language that is outside of the notation it is named for: the paper's JSON
/// strings may hold raw control characters, its XML bare ampersands. The other parser is the oracle then.
fn is_beyond_notation(text: &Text) -> bool {
    let reason = match text.task {
        "json" | "gsm8k" => text.bytes.bytes().any(|byte| byte < b' ') || is_out_of_range(&text.bytes),
        "xml_person" => text.bytes.contains('&'),
        _ => false,
    };
    let grammar =
        Grammar::parse(Syntax::Gbnf, &grammar_text(text.task), &Limits::default()).expect("a grammar");
    reason && Oracle::new(&grammar).expect("an oracle").accepts(text.bytes.as_bytes())
}

#[test]
fn every_finished_text_is_in_the_language() {
    let count =
        std::env::var("DOMINO_GENERATIONS").map_or(DEFAULT_COUNT, |count| count.parse().expect("a number"));
    let texts = generate(count);
    let checked = by_domino_check(&texts);
    assert_eq!(checked.len(), texts.len());
    let mut wrong = Vec::new();
    println!("task        texts finished  check  other parser  oracle instead");
    for task in TASKS {
        let (mut finished, mut by_check, mut by_other, mut beyond, mut all) = (0, 0, 0, 0, 0);
        for (text, accepted) in texts.iter().zip(&checked).filter(|(text, _)| text.task == task) {
            all += 1;
            if !accepted {
                wrong.push(format!("{task}: refused by domino check: {:?}", text.bytes));
            }
            if !text.finished {
                continue;
            }
            finished += 1;
            by_check += usize::from(*accepted);
            if by_another_parser(text) {
                by_other += 1;
            } else if is_beyond_notation(text) {
                beyond += 1;
            } else {
                wrong.push(format!("{task}: refused by another parser: {:?}", text.bytes));
            }
        }
        println!("{task:<12}{all:>5}{finished:>9}{by_check:>7}{by_other:>14}{beyond:>16}");
        assert!(finished > 0, "{task}: no text was finished");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
