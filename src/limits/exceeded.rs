//! The errors of budgets: which one was reached, what it counts, and what helps.

use std::{fmt, time::Duration};

/// The budgets that can end in an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Budget {
    /// [`Limits::grammar_bytes`](crate::Limits::grammar_bytes).
    GrammarBytes,
    /// [`Limits::regex_bytes`](crate::Limits::regex_bytes).
    RegexBytes,
    /// [`Limits::expressions`](crate::Limits::expressions).
    Expressions,
    /// [`Limits::repeat`](crate::Limits::repeat).
    Repeat,
    /// [`Limits::regex_nesting`](crate::Limits::regex_nesting).
    RegexNesting,
    /// [`Limits::dfa_states`](crate::Limits::dfa_states).
    DfaStates,
    /// [`Limits::nfa_bytes`](crate::Limits::nfa_bytes).
    NfaBytes,
    /// [`Limits::symbols`](crate::Limits::symbols).
    Symbols,
    /// [`Limits::terminal_bytes`](crate::Limits::terminal_bytes).
    TerminalBytes,
    /// [`Limits::parser_bytes`](crate::Limits::parser_bytes).
    ParserBytes,
    /// [`Limits::state_bytes`](crate::Limits::state_bytes).
    StateBytes,
    /// [`Limits::step_work`](crate::Limits::step_work). The step called again goes on where it stopped.
    StepWork,
    /// [`Limits::step_units`](crate::Limits::step_units).
    StepTotal,
    /// [`Limits::text_units`](crate::Limits::text_units).
    TextTotal,
    /// The time that [`Patience`](crate::Patience) gives one step.
    StepTime,
    /// The time that [`Patience`](crate::Patience) gives the long steps of one text.
    TextTime,
    /// [`Limits::completion_visits`](crate::Limits::completion_visits).
    CompletionVisits,
    /// [`Limits::captures`](crate::Limits::captures).
    Captures,
    /// The time of a [`Cancel::after`](crate::Cancel::after) that the work was given.
    CompileTime,
    /// No budget: somebody ended the work by [`Cancel::cancel`](crate::Cancel::cancel).
    Cancelled,
    /// A size that no setting can raise.
    Fixed,
}

impl Budget {
    /// The field of [`Limits`](crate::Limits), if it is one.
    #[must_use]
    pub fn field(self) -> Option<&'static str> {
        Some(match self {
            Self::GrammarBytes => "grammar_bytes",
            Self::RegexBytes => "regex_bytes",
            Self::Expressions => "expressions",
            Self::Repeat => "repeat",
            Self::RegexNesting => "regex_nesting",
            Self::DfaStates => "dfa_states",
            Self::NfaBytes => "nfa_bytes",
            Self::Symbols => "symbols",
            Self::TerminalBytes => "terminal_bytes",
            Self::ParserBytes => "parser_bytes",
            Self::StateBytes => "state_bytes",
            Self::StepWork => "step_work",
            Self::StepTotal => "step_units",
            Self::TextTotal => "text_units",
            Self::CompletionVisits => "completion_visits",
            Self::Captures => "captures",
            Self::StepTime | Self::TextTime | Self::CompileTime | Self::Cancelled | Self::Fixed => {
                return None;
            }
        })
    }

    /// Advice for the author of a grammar.
    #[must_use]
    pub fn advice(self) -> &'static str {
        match self {
            Self::GrammarBytes | Self::Expressions => "split the grammar, or leave out what is not needed",
            Self::RegexBytes => "split the expression, or write it as a grammar of several rules",
            Self::Repeat => "allow any number (`*`), or nest counts: `(x{100}){100}`",
            Self::RegexNesting => "give the inner groups names of their own, as rules of a grammar",
            Self::TerminalBytes => {
                "bring counts and classes of the patterns down, or let fewer of them have both"
            }
            Self::DfaStates | Self::NfaBytes => {
                "split the terminal into rules, or bring its counts and classes down"
            }
            Self::Symbols => "bring counts down, or allow any number (`*`)",
            Self::ParserBytes | Self::StateBytes => {
                "the text nests too deep, or the grammar reads it in too many ways: look for alternatives \
                 that match the same text, and for optional or repeated parts next to each other that do"
            }
            Self::StepWork => {
                "call the step again, which goes on where it stopped, or have the session do so: \
                 `Constraint::patient`"
            }
            Self::StepTotal | Self::TextTotal => {
                "the grammar reads the text here in very many ways: look for alternatives that match the \
                 same text, and for optional or repeated parts next to each other that do"
            }
            Self::StepTime | Self::TextTime => {
                "give it more time; or look for alternatives of the grammar that match the same text, and \
                 for optional or repeated parts next to each other that do"
            }
            Self::CompletionVisits => {
                "every end of the text is far, or there are very many: end texts nearer to one"
            }
            Self::Captures => {
                "ask for captures of shorter texts; or look for alternatives of the grammar that match the \
                 same text, and for optional or repeated parts next to each other that do"
            }
            Self::CompileTime => "give it more time, or make the grammar smaller",
            Self::Cancelled => {
                "the grammar may be right: ask for it again, with a handle that is not cancelled"
            }
            Self::Fixed => "make the grammar smaller",
        }
    }
}

/// A budget was reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitExceeded {
    budget: Budget,
    what: &'static str,
    limit: u64,
}

impl LimitExceeded {
    /// Creates an error: `budget` allows `limit` of `what`, with its unit, as in "DFA states of a terminal".
    #[must_use]
    pub fn new(budget: Budget, what: &'static str, limit: usize) -> Self {
        Self { budget, what, limit: limit as u64 }
    }

    /// Creates the error of a time that is over; `what` says the unit, milliseconds.
    pub(crate) fn of_time(budget: Budget, what: &'static str, time: Duration) -> Self {
        let limit = time.as_secs().saturating_mul(1_000).saturating_add(time.subsec_millis().into());
        Self { budget, what, limit }
    }

    /// Creates the error of automata of a grammar that take more than `limit` bytes.
    pub(crate) fn of_terminals(limit: usize) -> Self {
        Self::new(Budget::TerminalBytes, "bytes of the terminals' automata", limit)
    }

    /// The budget that is used up.
    #[must_use]
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// The budget in words.
    #[must_use]
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// The value of the budget.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// True if this is no budget of the grammar: somebody has ended the work by its
    /// [`Cancel`](crate::Cancel), or the time of that is over.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        matches!(self.budget, Budget::Cancelled | Budget::CompileTime)
    }

    /// Advice in one line.
    #[must_use]
    pub fn hint(&self) -> String {
        let advice = self.budget.advice();
        match self.budget.field() {
            Some(field) => format!("{advice}; or raise `Limits::{field}`"),
            None => advice.to_owned(),
        }
    }
}

impl fmt::Display for LimitExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.budget {
            Budget::Cancelled => f.write_str("the work on the grammar was cancelled"),
            _ => write!(f, "the budget of {} {} is used up", self.limit, self.what),
        }
    }
}

impl std::error::Error for LimitExceeded {}
