//! How the program ends, and how it tells what went wrong.
//!
//! Bad input (flags, files, grammars, tokenizers, models) is [`BadInput`] and ends with 2; every other
//! error ends with 1.

use std::{
    fmt,
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

/// Exit codes, the same for every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done; the text is in the language.
    Success,
    /// The text is not in the language, or the work failed.
    Failure,
    /// Flags or input that cannot be used.
    BadInput,
    /// The generated text was cut by `--max-tokens`.
    Cut,
    /// Ended by Ctrl-C.
    Interrupted,
}

impl Exit {
    /// The number the shell sees.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
            Self::BadInput => 2,
            Self::Cut => 3,
            Self::Interrupted => 130,
        }
    }
}

/// Input that cannot be used.
#[derive(Debug)]
pub(crate) struct BadInput {
    message: String,
    hint: Option<String>,
}

impl BadInput {
    /// Says what is wrong.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// Says what to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for BadInput {}

/// Tells about `error` on standard error, and as an object on standard output if `json`.
pub(crate) fn report(error: &anyhow::Error, json: bool) -> ExitCode {
    let broken_pipe = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    if error.chain().any(broken_pipe) {
        return ExitCode::from(Exit::Failure.code());
    }
    let bad_input = error.downcast_ref::<BadInput>();
    if json {
        let object = serde_json::json!({ "error": format!("{error:#}") });
        // Nothing more can be done for a reader who has gone.
        let _ = writeln!(io::stdout().lock(), "{object}");
    }
    let paint = Paint::for_stderr();
    eprintln!("{} {error:#}", paint.red("error:"));
    if let Some(hint) = bad_input.and_then(|bad| bad.hint.as_deref()) {
        eprintln!("{} {hint}", paint.cyan("hint:"));
    }
    let exit = if bad_input.is_some() { Exit::BadInput } else { Exit::Failure };
    ExitCode::from(exit.code())
}

/// Colours, if the reader is a person who wants them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// For standard error.
    pub(crate) fn for_stderr() -> Self {
        Self { on: io::stderr().is_terminal() && wanted() }
    }

    /// For standard output.
    pub(crate) fn for_stdout() -> Self {
        Self { on: io::stdout().is_terminal() && wanted() }
    }

    /// Is there colour at all?
    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    /// `text` in red.
    pub(crate) fn red(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    /// `text` in green.
    pub(crate) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// `text` in cyan.
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
