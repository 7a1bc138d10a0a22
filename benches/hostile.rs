//! Hostile grammars and texts, held against the bounds: 2 s and 1 GB to compile, 50 ms a step.
//!
//! `cargo measure hostile -- [FILTER]`. Every case runs in a process of its own, over a large vocabulary with
//! long runs of spaces, `a` and brackets in it: a real one of 131k tokens where `DOMINO_SHARED` names a
//! folder that has it, else the shipped one of 32k. The first line says which. Times are processor time, so
//! other work on the machine does not count. A step is each of `mask`, `allows` and `advance`, along the
//! case's text by single bytes, by the longest tokens, and along random tokens; and by the longest tokens on
//! the grammar compiled anew and explored, whose time is from the grammar's text on. Exits with 1 if a bound
//! is exceeded.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use domino::{
    CompiledGrammar, Compiler, Constraint, Grammar, Limits, StepError, StepErrorKind, TokenId, Vocabulary,
};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

#[path = "../tests/hostile/grammars.rs"]
mod grammars;

use grammars::{Case, bits, cases};

/// Bounds of compiling and of a step.
const COMPILE: Duration = Duration::from_secs(2);
const MEMORY_KB: u64 = 1 << 20;
const STEP: Duration = Duration::from_millis(50);
/// Processor time after which a text is not followed further.
const ENOUGH: Duration = Duration::from_secs(4);
/// Steps along random tokens.
const RANDOM_STEPS: usize = 400;

/// Processor time of this process so far.
fn now() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().expect("seconds"), time.tv_nsec.try_into().expect("nanoseconds"))
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begun = now();
    let done = work();
    (done, now() - begun)
}

/// A number of this process's status, in KiB; 0 where the system does not tell.
fn status(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// The vocabulary of 131k tokens, if the shared data has it.
fn large() -> Option<PathBuf> {
    let shared = env::var_os("DOMINO_SHARED")?;
    let file = Path::new(&shared).join("data/tokenizers/tekken-131k/tokenizer.json");
    file.exists().then_some(file)
}

/// The vocabulary that comes with the repository.
fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/domino-small/tokenizer.json")
}

/// A real vocabulary, with long runs of what hostile texts repeat.
fn vocabulary() -> Vocabulary {
    let real = Vocabulary::from_tokenizer_file(large().unwrap_or_else(shipped)).expect("a vocabulary");
    let mut builder =
        Vocabulary::builder().end_of_text(real.end_of_text().iter().copied().next().expect("an end"));
    for (token, bytes) in real.text_tokens() {
        builder = builder.token(token, bytes);
    }
    let mut next = u32::try_from(real.size()).expect("a size");
    let runs = [" ", "a", "b", "(", ")", "[", "ab", "\n ", "a "].map(|unit| unit.as_bytes());
    for unit in runs {
        for length in (0..10).map(|power| 2 << power).chain([1000, 999, 127, 31, 3]) {
            builder = builder.token(TokenId::new(next), unit.repeat(length / unit.len() + 1));
            next += 1;
        }
    }
    builder.build().expect("a vocabulary")
}

/// Greatest costs of a case.
#[derive(Default)]
struct Cost {
    steps: usize,
    total: Duration,
    worst: [Duration; 3],
    ended: Vec<String>,
}

impl Cost {
    /// Times a step of a kind; notes the error that ended it.
    fn step<T>(&mut self, kind: usize, work: impl FnOnce() -> Result<T, StepError>) -> Option<T> {
        let (done, time) = timed(work);
        self.worst[kind] = self.worst[kind].max(time);
        self.total += time;
        match done {
            Ok(done) => Some(done),
            Err(error) => {
                let what = match error.kind() {
                    StepErrorKind::Limit(limit) => limit.budget().field().unwrap_or("fixed").to_owned(),
                    kind => format!("{kind:?}"),
                };
                self.ended.push(format!("{what} at {}", self.steps));
                None
            }
        }
    }

    /// Follows tokens that `next` chooses from the mask.
    fn walk(
        &mut self,
        mut constraint: Constraint,
        mut next: impl FnMut(&domino::TokenSet) -> Option<TokenId>,
    ) {
        self.steps = 0;
        self.total = Duration::ZERO;
        while self.total < ENOUGH {
            if self.step(0, || constraint.mask().map(|_| ())).is_none() {
                return;
            }
            let Some(token) = constraint.mask().ok().and_then(&mut next) else { break };
            // A clone without a mask answers `allows` by itself.
            let mut other = constraint.clone();
            if self.step(2, || other.advance(token)).is_none() {
                return;
            }
            constraint = other;
            let asked = TokenId::new(token.raw() ^ 1);
            if self.step(1, || constraint.allows(asked)).is_none() {
                return;
            }
            self.steps += 1;
        }
        self.ended.push(format!("{}", self.steps));
    }
}

/// The tokens of a text: single bytes, or the longest that fit.
fn tokens(vocabulary: &Vocabulary, text: &[u8], longest: bool) -> Vec<TokenId> {
    let mut by_bytes = std::collections::HashMap::new();
    let mut most = 1;
    for (token, bytes) in vocabulary.text_tokens().filter(|(_, bytes)| longest || bytes.len() == 1) {
        by_bytes.insert(bytes.to_vec(), token);
        most = most.max(bytes.len());
    }
    let (mut at, mut found) = (0, Vec::new());
    while at < text.len() {
        let lengths = (1..=most.min(text.len() - at)).rev();
        let Some((token, length)) =
            lengths.filter_map(|length| Some((*by_bytes.get(&text[at..at + length])?, length))).next()
        else {
            break;
        };
        found.push(token);
        at += length;
    }
    found
}

/// Runs a case and prints its costs.
fn run(case: &Case) {
    let vocabulary = vocabulary();
    let before = status("VmRSS");
    let compile = || {
        let limits = Limits::default();
        let grammar = Grammar::parse(case.syntax, &case.grammar, &limits)
            .map_err(|error| error.message().to_owned())?;
        Compiler::new(vocabulary.clone()).limits(limits).compile(&grammar).map_err(|error| error.to_string())
    };
    let (compiled, compile_time) = timed(compile);
    let compile_kb = status("VmHWM").saturating_sub(before);
    let mut cost = Cost::default();
    let mut explore = Duration::ZERO;
    match compiled {
        Err(error) => cost.ended.push(error.lines().next().unwrap_or_default().to_owned()),
        Ok(compiled) => {
            for longest in [false, true] {
                let mut text = tokens(&vocabulary, &case.text, longest).into_iter();
                cost.walk(compiled.constraint(), |_| text.next());
            }
            let mut random = bits(RANDOM_STEPS * 20);
            let mut left = RANDOM_STEPS;
            cost.walk(compiled.constraint(), |mask| {
                left = left.checked_sub(1)?;
                let count = mask.iter().filter(|&token| !vocabulary.is_end_of_text(token)).count();
                let at = (0..20).filter_map(|_| random.next()).fold(0, |sum, bit| sum * 2 + usize::from(bit));
                mask.iter().filter(|&token| !vocabulary.is_end_of_text(token)).nth(at % count.max(1))
            });
            let (explored, time) = timed(|| {
                let explored = compile();
                explored.as_ref().map(CompiledGrammar::explore).ok();
                explored
            });
            explore = time;
            if let Ok(explored) = explored {
                let mut text = tokens(&vocabulary, &case.text, true).into_iter();
                cost.walk(explored.constraint(), |_| text.next());
            }
        }
    }
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "{}",
        json!({
            "compile_ms": ms(compile_time), "explore_ms": ms(explore), "compile_kb": compile_kb,
            "worst_ms": cost.worst.map(ms),
            "peak_kb": status("VmHWM").saturating_sub(before), "ended": cost.ended.join(" | "),
        })
    );
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let cases = cases();
    if let [flag, name] = &arguments[..]
        && flag == "--case"
    {
        run(cases.iter().find(|case| case.name == name).expect("a case"));
        return ExitCode::SUCCESS;
    }
    let this = env::current_exe().expect("this program");
    let mut exceeded = 0;
    match large() {
        Some(file) => println!("vocabulary: {}", file.display()),
        None => println!(
            "vocabulary: the shipped one of 32k tokens. The one of 131k, by which the record is, is missing: \
             DOMINO_SHARED names the folder that has data/tokenizers/tekken-131k/tokenizer.json"
        ),
    }
    println!(
        "{:<36} {:>9} {:>8} {:>10} {:>9} {:>9} {:>9} {:>8}  steps or why none followed: bytes \
         | longest tokens | random tokens | longest tokens, explored",
        "case", "compile ms", "MB", "explore ms", "mask ms", "allows ms", "advance ms", "peak MB"
    );
    for case in cases.iter().filter(|case| arguments.iter().all(|filter| case.name.contains(filter.as_str())))
    {
        let output = Command::new(&this).args(["--case", case.name]).output().expect("a process");
        let Ok(cost) = serde_json::from_slice::<Value>(&output.stdout) else {
            println!("{:<36} {}", case.name, String::from_utf8_lossy(&output.stderr));
            exceeded += 1;
            continue;
        };
        let number = |field: &str| cost[field].as_f64().expect("a number");
        let worst: Vec<f64> = (0..3).map(|kind| cost["worst_ms"][kind].as_f64().expect("a number")).collect();
        let most = COMPILE.as_secs_f64() * 1e3;
        let over = number("compile_ms") > most
            || number("explore_ms") > most
            || number("compile_kb").max(number("peak_kb")) > MEMORY_KB as f64
            || worst.iter().any(|&ms| ms > STEP.as_secs_f64() * 1e3);
        exceeded += usize::from(over);
        println!(
            "{:<36} {:>9.1} {:>8.1} {:>10.1} {:>9.2} {:>9.2} {:>9.2} {:>8.1}  {}{}",
            case.name,
            number("compile_ms"),
            number("compile_kb") / 1024.0,
            number("explore_ms"),
            worst[0],
            worst[1],
            worst[2],
            number("peak_kb") / 1024.0,
            if over { "EXCEEDED " } else { "" },
            cost["ended"].as_str().expect("words"),
        );
    }
    if exceeded > 0 {
        println!("{exceeded} cases exceed {COMPILE:?}, {MEMORY_KB} KiB or {STEP:?}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
