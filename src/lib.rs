//! Domino makes a language model write only text of a given grammar, and bends the model as little as
//! possible. It follows DOMINO ("Guiding LLMs The Right Way", arXiv 2403.06988).
//!
//! ```
//! use domino::{Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary};
//!
//! // Once per model:
//! let vocabulary = Vocabulary::builder()
//!     .token(TokenId::new(0), "{\"")
//!     .token(TokenId::new(1), "a")
//!     .token(TokenId::new(2), "\": 1}")
//!     .end_of_text(TokenId::new(3))
//!     .build()?;
//! // Once per grammar:
//! let grammar = r#"root ::= "{" pair "}"   pair ::= "\"" [a-z]+ "\": " [0-9]+"#;
//! let grammar = Grammar::parse(Syntax::Gbnf, grammar, &Limits::default())?;
//! let compiled = Compiler::new(vocabulary).compile(&grammar)?;
//! // Once per text:
//! let mut constraint = compiled.constraint();
//! for token in [0, 1, 2].map(TokenId::new) {
//!     assert!(constraint.mask()?.contains(token));
//!     constraint.advance(token)?;
//! }
//! assert!(constraint.is_complete());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Words
//!
//! | word | meaning | type |
//! |---|---|---|
//! | vocabulary | token id -> bytes, special tokens apart | [`Vocabulary`] |
//! | grammar | rules over expressions, whatever the notation | [`Grammar`] |
//! | terminal | a non-empty byte-regular language that the grammar uses as a leaf | `scanner::TerminalDfa` |
//! | scanner state | inside a terminal, at a state of its DFA | [`ids::ScanStateId`] |
//! | subterminal | what a token does to a terminal: *full*, *start*, *end*, *continuation* (paper, 3.3) | `subterminal` |
//! | subterminal tree | the terminal sequences that tokens spell from a scanner state on (paper, Alg. 2) | `subterminal::Forest` |
//! | parser set | a canonical Earley set; its id is the stack | [`ids::SetId`] |
//! | thread | a terminal started in a parser set, and where its scanner is | `program::Thread` |
//! | boundary | the parser set in which the next terminal starts | `machine::states` |
//! | constraint state | threads and boundary: all that the text so far means for what may follow | [`ids::StateId`] |
//! | lookahead `k` | how many terminals past the current one a token may reach | [`Lookahead`] |
//! | folded, written terminals | the largest regular parts; those of a lexer | [`Terminals`] |
//! | mask | the tokens that may follow | [`TokenSet`] |
//! | alpha, beta | scanner states, and the parser's state with its stack forgotten: what counts are filed under (paper, 3.6) | [`Context`] |
//! | prior | counts learnt before | [`proposer::Prior`] |
//! | draft | guessed tokens, to be verified in one pass | [`proposer::Draft`] |
//!
//! # Map
//!
//! Modules stand in the order in which data flows, and use only those above them. The engine knows
//! nothing of models, models know nothing of grammars; both meet in [`decode`].
//!
//! * `clock`, `cores`: the time, if there is a clock, and other cores, if there are any.
//! * `automata`: sets and classes of bytes, compressed sparse rows, hash consing (equal values as equal
//!   numbers), components of graphs, minimal automata.
//! * [`limits`], [`ids`]: budgets, and the handle that ends work on a grammar; indices, and lists whose
//!   things all have numbers.
//! * `split_mix`: mixing of bits, for hashes and random numbers.
//! * [`store`]: what was worked out once, in sealed files and a cache folder.
//! * `gguf`: what a GGUF file says before its tensors.
//! * `special`: special tokens in grammars, as byte strings that no text has.
//! * [`vocab`]: `tokenizer.json` or GGUF -> tokens and their bytes, as a byte trie.
//! * `chat` (feature `chat`): messages -> prompts, by a model's chat template.
//! * [`grammar`]: notations -> IR. One room per notation, no analysis.
//! * `scanner`: patterns -> minimal byte DFAs.
//! * `lower`: IR -> terminals and a reduced context-free grammar.
//! * `subterminal`: vocabulary x terminals, as tables that grammars share and trees that grow when needed or
//!   ahead.
//! * `parser`: Earley sets, hash-consed; moves between them, memoised.
//! * `program`: a compiled grammar with what it needs of one vocabulary; shared by its texts, never changed.
//! * `masks`: the tokens that may follow, by trees, and a cache of them.
//! * `machine`: the lazy automaton that texts run on, byte by byte; shared by the texts of a grammar.
//! * `json_readers`: what no grammar can say: that no key and no item comes twice.
//! * `session`: the type that users hold: a text, its mask, rollback.
//! * `questions`: what people ask of a text: completions, terminals, the characters that may come next.
//! * `captures`: which parts of a text named rules and groups have matched.
//! * `compile`: the pipeline, called in order.
//! * `oracle` (feature `oracle`): a slow, obvious decider that shares only the IR with the engine, and with
//!   its lookahead the lowered grammar.
//! * [`inspect`]: views of every stage, for people.
//! * [`proposer`]: guesses of the tokens to come, learnt by place in the grammar; drafts as long as pays.
//! * [`shipped`]: grammars that come with the library.
//! * [`model`]: logits for tokens. [`decode`]: sampling and the loop.
//! * `experiment` (feature `experiments`): grids of runs, their records, and what they add up to.
//!
//! # Features
//!
//! `candle`, `chat`, `hub` and `tokenizers` (prompts to tokens) are on by default, and turn on `simd` and
//! `threads`. Without any the library has some 40 crates, the same masks and the same
//! draws, all made by the calling thread, and it runs on `wasm32-unknown-unknown`. `docs/library.md` has all
//! features.
//!
//! # Promises
//!
//! Each has a test that can fail, under `tests/promises`:
//!
//! 1. *Sound*: what is generated is a prefix of a text of the language, and such a text when it ends by end
//!    of text.
//! 2. *Minimally invasive*: with unbounded lookahead a token is in the mask if and only if a text of the
//!    language goes on like this. The language of a schema is that of the spelling that its
//!    [options](grammar::json_schema::SchemaOptions) name.
//! 3. *k-monotone*: the mask for `k` is a subset of that for `k + 1`.
//! 4. *Lossless*: a draft that is verified in one pass and rolled back where it is wrong changes no token;
//!    nor does asking before masking.
//! 5. *Rollback exact*: `n` steps and their rollback lead back to the same state.
//! 6. *Bounded*: hostile grammars and inputs end in an error value within [`Limits`], never in a panic or a
//!    hang.

#![cfg_attr(
    not(test),
    warn(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::todo,
        clippy::unimplemented,
        clippy::print_stdout,
        clippy::print_stderr,
        clippy::cast_possible_truncation
    )
)]

#[cfg(feature = "chat")]
pub mod chat;

pub mod proposer;

pub mod model;

pub mod decode;

pub mod shipped;

#[cfg(feature = "experiments")]
pub mod experiment;

#[cfg(feature = "oracle")]
#[doc(hidden)]
pub use domino_engine::further;
#[cfg(feature = "oracle")]
#[doc(inline)]
pub use domino_engine::oracle;
#[doc(inline)]
pub use domino_engine::{
    AutomataCache, Budget, Cancel, Capture, CaptureError, Captures, CompileError, CompileErrorKind,
    CompiledGrammar, Compiler, CompilerMemory, Completion, Constraint, Context, Exploration, Grammar,
    GrammarError, LimitExceeded, Limits, Lookahead, Memory, NextChars, Patience, StepError, StepErrorKind,
    Syntax, TerminalRun, Terminals, TextPlace, ThoughtWatch, ThreadView, TokenId, TokenSet, TrailingSpace,
    TreeProgress, Vocabulary, VocabularyError, grammar, ids, inspect, limits, store, vocab,
};
use domino_engine::{TextEnd, clock, cores, split_mix};

/// The programs in the pages, as doctests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../README.md")]
    mod readme {}

    #[cfg(all(feature = "candle", feature = "tokenizers"))]
    #[doc = include_str!("../docs/library.md")]
    mod library {}

    #[doc = include_str!("../docs/compare.md")]
    mod compare {}

    #[doc = include_str!("../docs/json-schema.md")]
    mod json_schema {}
}
