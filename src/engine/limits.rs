//! Every budget in one place: its unit, its default, and what a unit costs.
//!
//! Budgets that one may want to change for one grammar are in [`Limits`]; the others are constants. A budget
//! that is reached ends in an error of the call (a [`LimitExceeded`] inside it for grammars), never in a
//! panic, a hang or an abort.
//!
//! The errors of budgets are here too, and [`Cancel`], the handle that ends work on a grammar from another
//! thread or after a time.
//!
//! Costs are orders of magnitude, from the sizes of the types and from single runs on two cores of an x86-64
//! server; they tell which budget to turn, not how long a call takes.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use std::{fmt, time::Duration};

use crate::clock::Instant;

/// Budgets for reading grammars, compiling them and running constraints.
///
/// Plain numbers: any value is legal. Zero forbids what the budget counts. Besides them it has the
/// [handle](Self::cancel) by which others end the work.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Length of a grammar or regex text, in UTF-8 bytes. Default: 64 MiB. Cost: 0.2 us and 60 bytes a byte.
    pub grammar_bytes: usize,
    /// Length of a regular expression, in bytes of UTF-8. Default: 1 MiB. Cost: up to 10 us and 200 bytes of
    /// memory a byte; a class with a name, such as `\w`, counts as 96 bytes.
    pub regex_bytes: usize,
    /// Expressions of a grammar's IR, and groups open at once in its text. Default: 4,000,000, of 64 bytes.
    pub expressions: usize,
    /// Largest count in `{m,n}`. Default: 100,000.
    pub repeat: u32,
    /// Depth of groups and repeats in a regular expression. Default: 250. Later stages use stack for each.
    pub regex_nesting: u32,
    /// States of one terminal's DFA before it is minimised; eight times as many where a notation makes it
    /// minimal, as for the substrings of a text. Default: 20,000. Cost: 0.1 ms and 2 KiB each to compile.
    pub dfa_states: usize,
    /// States up to which a regular rule is folded into one terminal, those that only bounds on counts need
    /// left out: with them twice as many. Default: 64. Larger values make fewer, larger terminals; with
    /// unbounded lookahead masks are the same.
    pub fold_states: usize,
    /// Memory of one terminal's NFA, in bytes. Default: 4 MiB.
    pub nfa_bytes: usize,
    /// Symbols in all productions of the context-free grammar. Default: 4,000,000. Cost: about 16 bytes each.
    pub symbols: usize,
    /// Memory of the automata of a grammar's terminals, in bytes, also before it is compiled, and of the
    /// states that are numbered as texts come to them (large counts). Default: 144 MiB. Cost: about 30 bytes
    /// a numbered state.
    pub terminal_bytes: usize,
    /// Memory of the Earley sets that a compiled grammar keeps, in bytes. Default: 128 MiB. Cost: about 100 a
    /// set, and 8 for each further way to read the text; a level of nesting is a set or two.
    pub parser_bytes: usize,
    /// Memory of the constraint states that a compiled grammar keeps, in bytes. Default: 64 MiB. Cost: about
    /// 50 a state, and 4 for each class of bytes once it is left in several ways.
    pub state_bytes: usize,
    /// Work of one piece of a step: of `mask`, `allows`, `advance`, or 64 bytes of `advance_bytes`. Default:
    /// 1,750,000 units, of 5 to 15 ns each, so that a piece ends within 50 ms on a busy machine too. An
    /// Earley item costs 6 when made and 2 when found again; a thread 2 to 8 a byte; a place of the parser in
    /// a tree 8; a trie node 1 to 1.5. The results of a piece are kept: the step called again goes on where
    /// it stopped. Where a piece was too small for any result, the next one is twice as large.
    pub step_work: usize,
    /// Work of one step in all its pieces, in units for each node of the vocabulary's trie (at least 65,536):
    /// what a [patient](crate::Patience::whole) session spends on a mask, or on a byte of text, before it
    /// gives up. Default: 256: 17 million units with a small vocabulary, 150 million with 200,000 tokens.
    pub step_units: usize,
    /// Work that trees may take for one mask, besides a unit for each trie node, before the vocabulary's trie
    /// is walked instead: slower where trees are there, faster where they would have to grow. Default:
    /// 100,000; with 0 trees are never tried. Masks are the same.
    pub tree_work: usize,
    /// Work of all steps of one text, in the unit of `step_units`. Default: 65,536.
    pub text_units: usize,
    /// Memory of the subterminal trees of a compiled grammar, in bytes; past it masks are made by walking the
    /// trie. Default: 64 MiB. Cost: about 150 bytes a node, and the tokens it holds.
    pub tree_bytes: usize,
    /// Memory of the masks that a compiled grammar keeps, in bytes; others are made again. Default: 32 MiB.
    /// Cost: about 100 bytes, and four for each allowed token if that is at most one of 128 in the
    /// vocabulary, otherwise a bit for each token of the vocabulary (2,000 such masks for 131k tokens).
    pub mask_bytes: usize,
    /// Work of making masks [ahead](crate::CompiledGrammar::explore). Default: 1,000,000 units, 4 to 20 ms.
    pub exploration: usize,
    /// Warm-up: work of making masks along made-up texts, before a grammar's first mask. Default: 700,000
    /// units of `step_work`, 3 to 6 ms; 0 turns it off. A mask begun is made whole. Masks are the same.
    pub rehearsal: usize,
    /// Grammar size, in bytes of automata and productions, that gets the full warm-up budget; smaller
    /// grammars get (size/this)^3 of it. Default: 280,000; a JSON Schema of ten members has about 100,000.
    pub rehearsal_size: usize,
    /// Work of another core, if there is one, from compiling on: rows of terminals that texts ask for first.
    /// Default: 10,000,000 units of `step_work`, far more than most grammars need; 0 turns it off. Masks are
    /// the same.
    pub ahead: usize,
    /// Items, tokens and bytes looked at to find one shortest completion, which cannot have more bytes
    /// either. Default: 4,000,000. Cost: about 0.1 us each.
    pub completion_visits: usize,
    /// Items and links of the parse of one text for its [captures](crate::Captures). Default: 8,000,000.
    /// Cost: 60 bytes and 0.15 us each; a byte of text takes 5 to 20 if one byte of lookahead suffices.
    pub captures: usize,
    /// Steps of a session that can be rolled back. Default: 65,536. Cost: eight bytes each.
    pub history: usize,
    /// The handle by which another thread, or a time, ends the reading and compiling of grammars. Default:
    /// none. Sessions of a compiled grammar do not look at it.
    pub cancel: Option<Cancel>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            grammar_bytes: 64 << 20,
            regex_bytes: 1 << 20,
            expressions: 4_000_000,
            repeat: 100_000,
            regex_nesting: 250,
            dfa_states: 20_000,
            fold_states: 64,
            nfa_bytes: 4 << 20,
            symbols: 4_000_000,
            terminal_bytes: 144 << 20,
            parser_bytes: 128 << 20,
            state_bytes: 64 << 20,
            step_work: 1_750_000,
            step_units: 256,
            text_units: 65_536,
            tree_work: 100_000,
            tree_bytes: 64 << 20,
            mask_bytes: 32 << 20,
            exploration: 1_000_000,
            rehearsal: 700_000,
            rehearsal_size: 280_000,
            ahead: 10_000_000,
            completion_visits: 4_000_000,
            captures: 8_000_000,
            history: 65_536,
            cancel: None,
        }
    }
}

/// Least number of trie nodes for which the totals of steps and texts are computed.
const LEAST_NODES: usize = 1 << 16;

impl Limits {
    /// Sets the memory of all that a compiled grammar keeps to `bytes` bytes in the proportions of the
    /// defaults: automata, parser sets, constraint states, trees and masks.
    #[must_use]
    pub fn memory(mut self, bytes: usize) -> Self {
        let default = Self::default();
        let machine = default.parser_bytes + default.state_bytes + default.tree_bytes + default.mask_bytes;
        let all = default.terminal_bytes + machine;
        // In steps of a 1,024th, so that nothing overflows.
        let part = |of: usize| (bytes / 1024).saturating_mul(of / (all / 1024));
        self.terminal_bytes = part(default.terminal_bytes);
        self.parser_bytes = part(default.parser_bytes);
        self.state_bytes = part(default.state_bytes);
        self.tree_bytes = part(default.tree_bytes);
        self.mask_bytes = part(default.mask_bytes);
        self
    }

    /// Sets the handle by which another thread, or a time, ends the reading and compiling of grammars.
    #[must_use]
    pub fn cancelled_by(self, cancel: &Cancel) -> Self {
        Self { cancel: Some(cancel.clone()), ..self }
    }

    /// Checks that nobody has cancelled the work: called wherever work is counted.
    ///
    /// # Errors
    /// If somebody has, or its time is over.
    pub(crate) fn look(&self) -> Result<(), LimitExceeded> {
        self.cancel.as_ref().map_or(Ok(()), Cancel::look)
    }

    /// Units of one step over a vocabulary whose trie has `nodes` nodes; at least one piece.
    pub(crate) fn step_total(&self, nodes: usize) -> usize {
        self.step_units.saturating_mul(nodes.max(LEAST_NODES)).max(self.step_work)
    }

    /// Units of one text over such a vocabulary.
    pub(crate) fn text_total(&self, nodes: usize) -> usize {
        self.text_units.saturating_mul(nodes.max(LEAST_NODES)).max(self.step_work)
    }
}

/// Memory of one compiler's vocabulary-terminal tables, in bytes, past which unused ones are dropped (LRU).
pub const TABLE_BYTES: usize = 256 << 20;

/// Memory of an [`AutomataCache`](crate::AutomataCache), in bytes, past which the least recently used are
/// dropped.
pub const AUTOMATA_BYTES: usize = 16 << 20;

/// Work of growing all trees of a grammar ahead, in the units of [`Limits::step_work`]; past it the rest
/// grows when texts need it. About 0.1 s, several times what C takes with 131k tokens.
pub const GROWING_WORK: usize = 10_000_000;

/// Work of [preparing](crate::Compiler::prepare) a compiler, in the same units.
pub const PREPARING_WORK: usize = 10_000_000;

/// Bound on token ids of a vocabulary, so that a stray id cannot cost gigabytes. Four bytes each.
pub const VOCABULARY_IDS: u32 = 1 << 24;

/// Bytes of all tokens of a vocabulary together. Each may be a node of the trie, of 12 bytes.
pub const VOCABULARY_BYTES: usize = 1 << 28;

/// Bytes of the keys of the objects that are open at a place of a text, if keys must be distinct. About twice
/// as many bytes of memory.
pub const KEY_BYTES: usize = 16 << 20;

/// Bytes of the items, and of their parts, of the arrays that are open at a place of a text, if items of some
/// array must be distinct. About four times as many bytes of memory.
pub const ITEM_BYTES: usize = 16 << 20;

/// Bytes of all files in a cache folder, unless it is given another budget. Reading one takes about 0.5 ms
/// and 1 MB of memory for each MB of it.
pub const CACHE_BYTES: u64 = 1 << 30;

/// Depth of a pattern beyond which it is refused: automata are built by recursion over it, a few hundred
/// bytes of stack a level. The parser of regular expressions has [`Limits::regex_nesting`] on its own form,
/// which is never shallower.
pub const PATTERN_NESTING: usize = 300;

/// States of an automaton that comes as a leaf of a grammar: enough for the substrings of 1 MiB of ASCII.
/// About 50 bytes each; a terminal made of it has [`Limits::dfa_states`] at most.
pub const AUTOMATON_STATES: usize = 1 << 21;

/// Bytes of a text whose substrings are a terminal: a large book. A byte of a quotation takes a pass over the
/// places where the quotation so far stands in it, which are few unless the text repeats itself.
pub const SUBSTRING_BYTES: usize = 1 << 23;

/// Longest header of a safetensors file, in bytes; the limit of the format.
pub const SAFETENSORS_HEADER_BYTES: u64 = 100_000_000;

/// Numbers in any one tensor, which keeps products of sizes far from overflow. The bound for a whole model is
/// `LoadOptions::memory_limit`. 2^40, or 2^28 where an address has 32 bits.
pub const TENSOR_ELEMENTS: usize = match 1_usize.checked_shl(40) {
    Some(elements) => elements,
    None => 1 << 28,
};

/// Contexts of a prior; past it the least frequent are forgotten. About 60 bytes each, and 8 for each token.
pub const PRIOR_CONTEXTS: usize = 200_000;

/// Tokens of one context of a prior; past it the least likely are forgotten.
pub const PRIOR_TOKENS: usize = 128;

/// Tokens of context that a model gets by default at least, where it was made for as many: a prompt of some
/// pages and an answer. Memory: see `CandleModel::estimate`.
pub const DEFAULT_CONTEXT: usize = 4096;

/// Tokens generated at most by default.
pub const DEFAULT_NEW_TOKENS: usize = 512;

/// The work left to one step, in units of [`Limits::step_work`].
#[derive(Debug)]
pub(crate) struct Work {
    left: usize,
    limit: usize,
    /// Was anything found that the step called again does not have to find once more?
    kept: bool,
}

impl Work {
    /// Creates the whole budget of a step.
    pub(crate) fn of_a_step(limits: &Limits) -> Self {
        Self::new(limits.step_work)
    }

    /// Creates a budget without a bound.
    pub(crate) fn unlimited() -> Self {
        Self::new(usize::MAX)
    }

    /// Creates a budget of this many units.
    pub(crate) fn new(units: usize) -> Self {
        Self { left: units, limit: units, kept: false }
    }

    /// Is less than half of it left?
    pub(crate) fn is_half_spent(&self) -> bool {
        self.left < self.limit / 2
    }

    /// The units at the start.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// The units left.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// The units spent; all of them once there were too few.
    pub(crate) fn spent(&self) -> usize {
        self.limit - self.left
    }

    /// Notes that a result was memoised: the step called again goes on from there.
    pub(crate) fn keep(&mut self) {
        self.kept = true;
    }

    /// Was anything memoised? If not, the step called again with as much work comes no further.
    pub(crate) fn has_kept(&self) -> bool {
        self.kept
    }

    /// Charges the work of a part that had a budget of its own.
    pub(crate) fn spend_part(&mut self, part: &Self) -> Result<(), LimitExceeded> {
        self.kept |= part.kept;
        self.spend(part.spent())
    }

    /// Charges work that is about to be done or was just done.
    pub(crate) fn spend(&mut self, units: usize) -> Result<(), LimitExceeded> {
        match self.left.checked_sub(units) {
            Some(left) => self.left = left,
            None => {
                self.left = 0;
                return Err(LimitExceeded::new(Budget::StepWork, "units of work of one step", self.limit));
            }
        }
        Ok(())
    }
}

/// A handle that ends the reading and compiling of grammars from another thread, or once a time is over.
///
/// It is given to the work by [`Limits::cancel`](crate::Limits::cancel) or by
/// [`Compiler::cancelled_by`](crate::Compiler::cancelled_by), and ends it in an error of
/// [`Budget::Cancelled`] or [`Budget::CompileTime`]. The work looks at it once for each expression, automaton
/// and terminal, and before each pass over a grammar; these take up to some tenths of a second for the
/// largest grammars within the default budgets. Work that was given a handle that is cancelled already always
/// ends in that error. What is cancelled stays cancelled: new work takes a new handle. Caches keep only what
/// was finished, so a compiler goes on as if the work had never been asked for.
///
/// Clones are the same handle. It is `Send` and `Sync`; a look costs a nanosecond, and some 30 with a time.
///
/// # Example
/// ```
/// use domino::{Budget, Cancel, Compiler, Syntax, TokenId, Vocabulary};
///
/// let vocabulary = Vocabulary::builder().all_bytes().end_of_text(TokenId::new(256)).build()?;
/// let compiler = Compiler::new(vocabulary);
/// let cancel = Cancel::new();
/// let handle = cancel.clone();
/// std::thread::spawn(move || handle.cancel()).join().expect("a thread");
/// let error = compiler.cancelled_by(&cancel).parse(Syntax::Regex, "[a-z]+").unwrap_err();
/// assert!(error.is_cancelled());
/// // The compiler itself has no handle.
/// compiler.compile(&compiler.parse(Syntax::Regex, "[a-z]+")?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<CancelFlag>);

#[derive(Debug, Default)]
struct CancelFlag {
    cancelled: AtomicBool,
    /// The time limit, if there is one: the moment at which it began, and how long it lasts.
    time: Option<(Instant, Duration)>,
    /// The looks taken, and the one that cancels.
    #[cfg(test)]
    looks: (std::sync::atomic::AtomicUsize, Option<usize>),
}

impl PartialEq for Cancel {
    /// Compares whether both are the same handle.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Cancel {}

impl Cancel {
    /// Makes a handle that is not cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a handle that is cancelled by itself once this time is over, counted from now on, if nobody
    /// cancels it before. On `wasm32-unknown-unknown`, where there is no clock, the time is never over.
    #[must_use]
    pub fn after(time: Duration) -> Self {
        Self(Arc::new(CancelFlag { time: Some((Instant::now(), time)), ..CancelFlag::default() }))
    }

    /// Ends all work that has this handle, now and later. It does not wait for the work to end.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// True once [`cancel`](Self::cancel) was called or the time is over.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.look().is_err()
    }

    /// Checks that the work may go on.
    ///
    /// # Errors
    /// If it may not.
    pub(crate) fn look(&self) -> Result<(), LimitExceeded> {
        #[cfg(test)]
        self.count_look();
        if self.0.cancelled.load(Ordering::Relaxed) {
            return Err(LimitExceeded::new(Budget::Cancelled, "looks at the handle", 0));
        }
        match self.0.time {
            Some((start, time)) if start.elapsed() >= time => {
                Err(LimitExceeded::of_time(Budget::CompileTime, "milliseconds of work on a grammar", time))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
impl Cancel {
    /// Makes a handle that is cancelled by the look after `looks` others: the same place on every machine.
    pub(crate) fn at_look(looks: usize) -> Self {
        Self(Arc::new(CancelFlag { looks: (0.into(), Some(looks)), ..CancelFlag::default() }))
    }

    /// Number of looks that were taken.
    pub(crate) fn looks(&self) -> usize {
        self.0.looks.0.load(Ordering::Relaxed)
    }

    fn count_look(&self) {
        let (taken, last) = &self.0.looks;
        if Some(taken.fetch_add(1, Ordering::Relaxed)) == *last {
            self.cancel();
        }
    }
}

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
    /// The field of [`Limits`], if it is one.
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
    /// [`Cancel`], or the time of that is over.
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
