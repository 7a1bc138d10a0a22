//! Exit codes, and error messages of one sentence and one hint.
//!
//! Bad input (flags, files, grammars, tokenizers, models) is [`BadInput`] and ends with 2, a budget that is
//! used up with 4; every other error ends with 1.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{error::Error, fmt, process::ExitCode};

use domino::decode::{DecodeError, DecodeErrorKind};
use domino::{Budget, Constraint, LimitExceeded, StepError, StepErrorKind, TextPlace, chat::ChatError};

use crate::terminal::{self, describe};

/// Exit codes, which mean the same in every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The work is done; the text is in the language.
    Success,
    /// The text is not in the language, or the work failed.
    Failure,
    /// Flags or input cannot be used.
    BadInput,
    /// The generated text was cut by `--max-tokens`.
    Cut,
    /// A budget was used up, so there is no answer.
    NoAnswer,
    /// Ctrl-C ended the run.
    Interrupted,
    /// The reader of standard output went away.
    ClosedPipe,
}

impl Exit {
    /// The number that the shell sees.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
            Self::BadInput => 2,
            Self::Cut => 3,
            Self::NoAnswer => 4,
            Self::Interrupted => 130,
            // The number that shells show for SIGPIPE.
            Self::ClosedPipe => 141,
        }
    }

    /// Chooses the exit code for an error.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        let closed = |cause: &(dyn Error + 'static)| {
            cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
        };
        match error {
            _ if error.chain().any(closed) => Self::ClosedPipe,
            _ if error.downcast_ref::<BadInput>().is_some() => Self::BadInput,
            _ if error.chain().any(|cause| cause.is::<LimitExceeded>()) => Self::NoAnswer,
            _ => Self::Failure,
        }
    }
}

/// True if `--quiet` was given.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Silences everything but errors on standard error from now on, if `quiet`.
pub(crate) fn be_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// True if standard error gets nothing but errors.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints a line on standard error, unless `--quiet` was given. If standard error is closed nobody wants the
/// line, so that is no failure.
macro_rules! note {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        if !$crate::terminal::failure::is_quiet() {
            let _ = writeln!(std::io::stderr(), $($words)*);
        }
    }};
}
pub(crate) use note;

/// Prints a line as [`note`] does, behind a word such as "warning:" in colour.
macro_rules! remark {
    ($word:literal, $($words:tt)*) => {{
        let word = $crate::terminal::failure::Paint::for_stderr().cyan($word);
        $crate::terminal::failure::note!("{word} {}", format_args!($($words)*));
    }};
}
pub(crate) use remark;

/// A complaint about input that cannot be used.
#[derive(Debug)]
pub struct BadInput {
    message: String,
    hint: Option<String>,
}

impl BadInput {
    /// Makes an error that says what is wrong.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// Makes an error about `name` from an error of the library.
    pub(crate) fn in_file(name: &str, error: &(dyn Error + 'static)) -> Self {
        Self::from_library(error).about(name)
    }

    /// Makes an error from an error of the library.
    pub(crate) fn from_library(error: &(dyn Error + 'static)) -> Self {
        let Told { sentence, hint } = told(error);
        Self { message: sentence, hint }
    }

    /// Puts the name of the thing in question before the message.
    pub(crate) fn about(self, name: &str) -> Self {
        Self { message: format!("{name}: {}", self.message), ..self }
    }

    /// Adds advice on what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for BadInput {}

/// An error in words for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    /// A sentence that says what went wrong.
    pub(crate) sentence: String,
    /// Advice on what to do about it.
    pub(crate) hint: Option<String>,
}

impl From<ChatError> for BadInput {
    fn from(error: ChatError) -> Self {
        Self { message: error.to_string(), hint: error.hint().map(str::to_owned) }
    }
}

impl Told {
    /// Prints the sentence and the hint on standard error.
    pub(crate) fn print(&self) {
        let paint = Paint::for_stderr();
        // As for notes, a reader who has gone is no failure.
        let _ = writeln!(io::stderr(), "{} {}", paint.red("error:"), self.sentence);
        if let Some(hint) = &self.hint {
            let _ = writeln!(io::stderr(), "{} {hint}", paint.cyan("hint:"));
        }
    }

    /// Joins sentence and hint, for an answer with only one place for both.
    pub(crate) fn line(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}; hint: {hint}", self.sentence),
            None => self.sentence.clone(),
        }
    }
}

/// The mark that the library puts between an error and its hint.
const HINT: &str = "\nhint: ";

/// The beginning of the name of a field of the library's limits.
const FIELD: &str = "`Limits::";

/// Puts an error and its causes into words, each thing said once. A hint for users of the library gives way
/// to one for users of the program.
pub(crate) fn told(error: &(dyn Error + 'static)) -> Told {
    let mut sentence = String::new();
    let mut hint = None;
    let mut cause = Some(error);
    while let Some(error) = cause {
        cause = error.source();
        let whole = match error.downcast_ref::<StepError>().and_then(step_budget) {
            Some((limit, place)) => format!("{limit} after {} bytes of text{}", place.bytes, in_rules(place)),
            None => error.to_string(),
        };
        let (said, advised) =
            whole.split_once(HINT).map_or((&*whole, None), |(said, hint)| (said, Some(hint)));
        if let Some(limit) = error.downcast_ref::<LimitExceeded>() {
            hint = hint.filter(|hint: &String| !hint.contains(FIELD));
            hint.get_or_insert_with(|| advice(limit.budget()));
        } else if let Some(bad) = error.downcast_ref::<BadInput>() {
            hint = bad.hint.clone();
        }
        hint = hint.or_else(|| advised.map(str::to_owned));
        let is_wrapper = error
            .downcast_ref::<DecodeError>()
            .is_some_and(|error| *error.kind() == DecodeErrorKind::Constraint && cause.is_some());
        if is_wrapper || sentence.contains(said) {
            continue;
        }
        if !sentence.is_empty() {
            sentence += ": ";
        }
        sentence += said;
    }
    Told { sentence, hint }
}

/// Puts the error of a step into words as [`told`] does, for a caller who has a better name for its place in
/// the text than a count of bytes. The step began in `state`, whose terminals are named if no rule is known.
pub(crate) fn told_in_place(error: &StepError, state: &Constraint) -> Told {
    let mut told = told(error);
    if let Some((limit, place)) = step_budget(error) {
        told.sentence = format!("{limit}{}", in_rules(place));
    }
    if error.place().is_none_or(|place| place.rules.is_empty()) {
        told.sentence += &in_terminals(state);
    }
    told
}

/// Names the terminals of a state, for the end of a sentence.
pub(crate) fn in_terminals(state: &Constraint) -> String {
    match &*describe::terminals_of(state) {
        [] => String::new(),
        terminals => format!("; in the grammar: {}", terminals.join(", ")),
    }
}

/// The budget that ended a step, with the place.
fn step_budget(error: &StepError) -> Option<(&LimitExceeded, &TextPlace)> {
    match (error.kind(), error.place()) {
        (StepErrorKind::Limit(limit), Some(place)) => Some((limit, place)),
        _ => None,
    }
}

/// Names the rules of a place, for the end of a sentence.
fn in_rules(place: &TextPlace) -> String {
    let names: Vec<String> =
        place.rules.iter().map(|name| format!("`{}`", describe::one_line(name))).collect();
    match names.len() {
        0 => String::new(),
        1 => format!(", in rule {}", names[0]),
        _ => format!(", in rules {}", names.join(", ")),
    }
}

/// Advises a user of the program on a budget that is used up.
fn advice(budget: Budget) -> String {
    let grammar = budget.advice();
    match budget {
        Budget::StepWork | Budget::StepTotal | Budget::TextTotal | Budget::StepTime | Budget::TextTime => {
            // The library's words for these speak of sessions, or of more time themselves.
            let grammar = Budget::StepTotal.advice();
            format!(
                "{grammar} (`domino inspect` warns of such rules); or give a step more time: \
                 `--max-step-seconds SECONDS`"
            )
        }
        Budget::TerminalBytes | Budget::ParserBytes | Budget::StateBytes => {
            format!("{grammar}; or give the grammar more memory: `--max-memory MIB`")
        }
        _ => grammar.to_owned(),
    }
}

/// Reports `error` on standard error, and as an object on standard output if `json`. An error without a code
/// of its own ends with `failure`.
pub(crate) fn report(error: &anyhow::Error, json: bool, failure: Exit) -> ExitCode {
    let exit = Some(Exit::of(error)).filter(|exit| *exit != Exit::Failure).unwrap_or(failure);
    if exit != Exit::ClosedPipe {
        let told = told(error.as_ref());
        if json {
            let object = match &told.hint {
                Some(hint) => serde_json::json!({ "error": told.sentence, "hint": hint }),
                None => serde_json::json!({ "error": told.sentence }),
            };
            // Nothing more can be done for a reader who has gone.
            let _ = writeln!(terminal::stdout(), "{object}");
        }
        told.print();
    }
    ExitCode::from(exit.code())
}

/// A painter that colours words if its reader is a person who wants that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// Makes the painter for standard error.
    pub(crate) fn for_stderr() -> Self {
        Self { on: io::stderr().is_terminal() && wanted() }
    }

    /// Makes the painter for standard output.
    pub(crate) fn for_stdout() -> Self {
        Self { on: io::stdout().is_terminal() && wanted() }
    }

    /// True if it colours anything.
    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    /// Paints `text` red.
    pub(crate) fn red(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    /// Paints `text` green.
    pub(crate) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// Paints `text` cyan.
    pub(crate) fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use anyhow::Context;
    use domino::{Compiler, Grammar, Limits, Syntax};

    use super::*;

    /// Makes an error about a budget of the library, which names a field of `Limits` in its hint.
    fn limited() -> anyhow::Error {
        let grammar = r#"root ::= "a" root "b" | "c""#;
        let grammar = Grammar::parse(Syntax::Gbnf, grammar, &Limits::default()).unwrap();
        let mut limits = Limits::default();
        limits.symbols = 1;
        let vocabulary = crate::grammar::compiler::byte_vocabulary().unwrap();
        let error = Compiler::new(vocabulary).limits(limits).compile(&grammar).map(drop).unwrap_err();
        assert!(error.to_string().contains("Limits::"), "{error}");
        error.into()
    }

    #[test]
    fn budget_errors_are_short_and_without_names_of_the_library() {
        let error = limited().context("cannot go on");
        let Told { sentence, hint } = told(error.as_ref());
        assert!(
            sentence.starts_with("cannot go on: ") && sentence.matches("budget").count() == 1,
            "{sentence}"
        );
        assert!(
            !sentence.contains("hint") && hint.as_ref().is_some_and(|hint| !hint.contains("Limits")),
            "{hint:?}"
        );
        assert_eq!(Exit::of(&error), Exit::NoAnswer);
        // A hint for the user of the program stays as it is.
        let bad = BadInput::in_file("x.regex", limited().as_ref());
        assert_eq!(told(&bad).hint, hint);
        assert_eq!(Exit::of(&bad.into()), Exit::BadInput);
    }

    #[test]
    fn step_errors_name_bytes_and_rules_once() {
        let grammar = r#"root ::= s "z"   s ::= x x x | x x | "a"   x ::= s | "(" s ")""#;
        let grammar = Grammar::parse(Syntax::Gbnf, grammar, &Limits::default()).unwrap();
        let mut limits = Limits::default();
        limits.step_work = 100_000;
        let compiler = Compiler::new(crate::grammar::compiler::byte_vocabulary().unwrap()).limits(limits);
        let mut constraint = compiler.compile(&grammar).unwrap().constraint();
        let mut bytes = 0;
        let error = loop {
            match constraint.advance_bytes(b"a") {
                Ok(taken) => bytes += taken,
                Err(error) => break error,
            }
        };
        let place = error.place().unwrap();
        assert_eq!(place.bytes, bytes);
        let limit = error.source().unwrap().to_string();
        let rules = ", in rules `s`, `root`, `x`";
        let Told { sentence, hint } = told(&error);
        assert_eq!(sentence, format!("{limit} after {bytes} bytes of text{rules}"));
        assert!(hint.as_ref().is_some_and(|hint| hint.contains("--max-step-seconds SECONDS")), "{hint:?}");
        let in_place = told_in_place(&error, &constraint);
        assert_eq!(in_place, Told { sentence: format!("{limit}{rules}"), hint });
        let context = anyhow::Error::from(error).context("cannot go on");
        assert_eq!(told(context.as_ref()).sentence, format!("cannot go on: {sentence}"));
        assert_eq!(Exit::of(&context), Exit::NoAnswer);
    }

    #[test]
    fn hints_about_budgets_name_flags() {
        for (budgets, flag) in [
            (
                &[Budget::StepWork, Budget::StepTotal, Budget::TextTotal, Budget::StepTime, Budget::TextTime]
                    [..],
                "`--max-step-seconds SECONDS`",
            ),
            (&[Budget::ParserBytes, Budget::StateBytes], "`--max-memory MIB`"),
        ] {
            for &budget in budgets {
                let hint = advice(budget);
                assert!(hint.contains(flag) && !hint.contains("::"), "{budget:?}: {hint}");
            }
        }
    }

    #[test]
    fn closed_pipes_are_no_failures() {
        let closed = io::Error::from(io::ErrorKind::BrokenPipe);
        assert_eq!(Exit::of(&Err::<(), _>(closed).context("cannot write").unwrap_err()), Exit::ClosedPipe);
        assert_eq!(Exit::of(&io::Error::from(io::ErrorKind::StorageFull).into()), Exit::Failure);
    }
}
