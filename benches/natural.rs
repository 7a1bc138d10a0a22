//! Masks and steps of natural grammars, on all vocabularies at hand: `cargo measure natural -- [OPTIONS]`.
//!
//! `--grammars FROM..TO` numbers of random grammars (default 0..64), `--file GRAMMAR` one grammar instead,
//! `--vocabulary NAME` those whose names contain it, `--steps N` tokens of each text (default 40).
//! Vocabularies are those of `DOMINO_SHARED`, and the shipped one. For each vocabulary: the first mask, the
//! slowest mask and step, and every budget error. Exits with 1 if there was one.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use domino::{Compiler, Grammar, Limits, Patience, StepError, Syntax, TokenId, Vocabulary};
use rustix::time::{ClockId, clock_gettime};

#[path = "../tests/grammar/natural/grammars.rs"]
mod grammars;

use grammars::{Dice, grammar};

/// A grammar to be measured, with a name and the seed of its walk.
struct Question {
    grammars: Vec<(String, Syntax, String, u64)>,
    vocabulary: String,
    steps: usize,
}

fn question() -> Question {
    let mut question = Question { grammars: Vec::new(), vocabulary: String::new(), steps: 40 };
    let (mut from, mut to) = (0, 64);
    let mut arguments = env::args().skip(1).filter(|argument| argument != "--bench");
    while let Some(argument) = arguments.next() {
        let value = arguments.next().unwrap_or_else(|| panic!("{argument} wants a value"));
        match argument.as_str() {
            "--grammars" => {
                let (first, last) = value.split_once("..").expect("FROM..TO");
                (from, to) = (first.parse().expect("a number"), last.parse().expect("a number"));
            }
            "--file" => {
                let text = fs::read_to_string(&value).expect("a grammar file");
                let syntax = if value.ends_with(".regex") { Syntax::Regex } else { Syntax::Gbnf };
                question.grammars.push((value, syntax, text, 1));
            }
            "--vocabulary" => question.vocabulary = value,
            "--steps" => question.steps = value.parse().expect("a number"),
            other => panic!("unknown option {other}"),
        }
    }
    if question.grammars.is_empty() {
        question.grammars = (from..to)
            .map(|number| {
                let (kind, text) = grammar(number);
                (format!("{number} ({kind})"), Syntax::Gbnf, text, number + 1)
            })
            .collect();
    }
    question
}

/// The vocabularies at hand, by name.
fn vocabularies() -> Vec<(String, PathBuf)> {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/domino-small");
    let mut found = vec![("domino-small".to_owned(), shipped)];
    if let Some(shared) = env::var_os("DOMINO_SHARED") {
        let folder = Path::new(&shared).join("data/tokenizers");
        let folders = fs::read_dir(folder).into_iter().flatten().flatten();
        found.extend(folders.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path())));
    }
    found.sort();
    found
}

/// Costs of a grammar.
#[derive(Default, Clone, Copy)]
struct Cost {
    first: Duration,
    mask: Duration,
    advance: Duration,
    steps: usize,
    /// Masks that took longer than [`SLOW`].
    slow: usize,
}

/// Longest time that a mask or a step should take.
const SLOW: Duration = Duration::from_millis(20);

/// Processor time of this thread, so that other work on the machine does not count.
fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().expect("seconds"), time.tv_nsec.try_into().expect("nanoseconds"))
}

/// Runs `work`, and notes its time if it is the slowest so far. Also returns whether it was slow.
fn timed<T>(slowest: &mut Duration, work: impl FnOnce() -> T) -> (T, bool) {
    let start = now();
    let done = work();
    let taken = now() - start;
    *slowest = (*slowest).max(taken);
    (done, taken > SLOW)
}

/// Follows random tokens, signs more often than letters.
fn walk(
    vocabulary: &Vocabulary,
    grammar: &Grammar,
    steps: usize,
    seed: u64,
) -> (Cost, Result<(), StepError>) {
    let mut cost = Cost::default();
    let compiled = Compiler::new(vocabulary.clone()).compile(grammar).expect("a grammar that compiles");
    let mut constraint = compiled.constraint().patient(Patience::whole());
    let dice = &mut Dice::new(seed);
    let mut walk = || -> Result<(), StepError> {
        let (first, slow) = timed(&mut cost.first, || constraint.mask().map(|_| ()));
        first?;
        cost.slow += usize::from(slow);
        for _ in 0..steps {
            let (mask, slow) = timed(&mut cost.mask, || constraint.mask().cloned());
            let mask = mask?;
            cost.slow += usize::from(slow);
            let tokens: Vec<TokenId> =
                mask.iter().filter(|&token| !vocabulary.is_end_of_text(token)).collect();
            let Some(&last) = tokens.last() else { break };
            let signs = |token: &TokenId| {
                let bytes = vocabulary.bytes(*token).unwrap_or_default();
                bytes.iter().filter(|byte| !byte.is_ascii_alphanumeric()).count()
            };
            let some: Vec<TokenId> = (0..6).map(|_| tokens[dice.below(tokens.len())]).collect();
            let token = if dice.below(2) == 0 {
                some.iter().copied().max_by_key(signs).unwrap_or(last)
            } else {
                some[0]
            };
            timed(&mut cost.advance, || constraint.advance(token)).0?;
            cost.steps += 1;
        }
        Ok(())
    };
    let ended = walk();
    (cost, ended)
}

fn main() -> ExitCode {
    let question = question();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let mut errors = 0;
    for (name, folder) in vocabularies() {
        if !name.contains(&question.vocabulary) {
            continue;
        }
        let vocabulary = Vocabulary::from_tokenizer_file(&folder).expect("a vocabulary");
        let mut worst = Cost::default();
        let mut firsts: Vec<Duration> = Vec::new();
        let mut slow_masks = 0;
        for (grammar, syntax, text, seed) in &question.grammars {
            let parsed = Grammar::parse(*syntax, text, &Limits::default())
                .unwrap_or_else(|error| panic!("{grammar}: {error}\n{text}"));
            let (cost, ended) = walk(&vocabulary, &parsed, question.steps, *seed);
            firsts.push(cost.first);
            if let Err(error) = &ended {
                errors += 1;
                println!("{name} {grammar}: after {} steps: {error}", cost.steps);
            }
            if cost.slow > 0 || cost.advance > SLOW || question.grammars.len() < 8 {
                println!(
                    "{name} {grammar}: first mask {:.2} ms, slowest mask {:.2} ms, step {:.2} ms, {} steps",
                    ms(cost.first),
                    ms(cost.mask),
                    ms(cost.advance),
                    cost.steps
                );
            }
            slow_masks += cost.slow;
            worst.mask = worst.mask.max(cost.mask);
            worst.advance = worst.advance.max(cost.advance);
        }
        firsts.sort_unstable();
        println!(
            "{name}: {} grammars, first mask median {:.2} ms, at most {:.2} ms; slowest mask {:.2} ms, \
             step {:.2} ms; {slow_masks} masks over 20 ms",
            firsts.len(),
            ms(firsts[firsts.len() / 2]),
            ms(firsts[firsts.len() - 1]),
            ms(worst.mask),
            ms(worst.advance)
        );
    }
    if errors > 0 {
        println!("{errors} budget errors");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
