//! The pipeline, called in order: grammar -> terminals and productions -> a machine for constraints.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{
    constraint::{Constraint, Machine},
    grammar::Grammar,
    limits::{LimitExceeded, Limits},
    lower::{Lowered, lower},
    vocab::Vocabulary,
};

/// How many terminals past the current one a token may reach (the paper's `k`, 3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Lookahead {
    /// At most this many: a token may be refused that the language allows, never the other way round.
    Terminals(u32),
    /// Any number: the mask is exact, the constraint minimally invasive.
    #[default]
    Unbounded,
}

/// Compiles grammars for one vocabulary. Configured once, used for many grammars.
#[derive(Debug, Clone)]
pub struct Compiler {
    vocabulary: Vocabulary,
    lookahead: Lookahead,
    limits: Limits,
}

impl Compiler {
    /// A compiler with unbounded lookahead and default budgets.
    #[must_use]
    pub fn new(vocabulary: Vocabulary) -> Self {
        Self { vocabulary, lookahead: Lookahead::default(), limits: Limits::default() }
    }

    /// Sets the lookahead `k`.
    #[must_use]
    pub fn lookahead(mut self, lookahead: Lookahead) -> Self {
        self.lookahead = lookahead;
        self
    }

    /// Sets the budgets.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Compiles a grammar. Trees and parser sets are built later, when texts first need them.
    ///
    /// Roughly linear in the grammar, apart from the terminals' automata, whose size is bounded by
    /// [`Limits::dfa_states`].
    ///
    /// # Errors
    /// If the grammar has no sentence at all, or a budget is used up.
    ///
    /// # Example
    /// ```
    /// use domino::{Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary};
    ///
    /// let vocabulary = Vocabulary::builder()
    ///     .token(TokenId::new(0), "a")
    ///     .token(TokenId::new(1), "ab")
    ///     .token(TokenId::new(2), "c")
    ///     .end_of_text(TokenId::new(3))
    ///     .build()?;
    /// let grammar = Grammar::parse(Syntax::Gbnf, r#"root ::= "a" ("b" "c")*"#, &Limits::default())?;
    /// let mut constraint = Compiler::new(vocabulary).compile(&grammar)?.constraint();
    /// assert!(constraint.allows(TokenId::new(1))?);
    /// constraint.advance(TokenId::new(1))?;
    /// assert_eq!(constraint.forced()?, Some(TokenId::new(2)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compile(&self, grammar: &Grammar) -> Result<CompiledGrammar, CompileError> {
        let lowered = lower(grammar, &self.limits)?;
        tracing::debug!(
            terminals = lowered.scanner.terminal_count(),
            nonterminals = lowered.cfg.nonterminal_count(),
            "lowered a grammar"
        );
        let shared = Arc::new(Shared {
            lowered,
            vocabulary: self.vocabulary.clone(),
            lookahead: self.lookahead,
            limits: self.limits.clone(),
        });
        let machine = new_machine(&shared).map_err(CompileError::limit)?;
        Ok(CompiledGrammar { shared, machine: Arc::new(Mutex::new(machine)) })
    }
}

/// What all sessions of a grammar read and none changes.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) lowered: Lowered,
    pub(crate) vocabulary: Vocabulary,
    pub(crate) lookahead: Lookahead,
    pub(crate) limits: Limits,
}

type SharedMachine = Arc<Mutex<Machine>>;

fn new_machine(shared: &Shared) -> Result<SharedMachine, LimitExceeded> {
    Ok(Arc::new(Mutex::new(Machine::new(shared)?)))
}

/// A grammar ready to constrain. Cloning is cheap; `Send` and `Sync`.
#[derive(Debug, Clone)]
pub struct CompiledGrammar {
    shared: Arc<Shared>,
    /// The machine that new sessions get; replaced when it is worn, while older sessions keep theirs.
    machine: Arc<Mutex<SharedMachine>>,
}

impl CompiledGrammar {
    /// A fresh session at the start of a text. Sessions share what they find out about the grammar.
    #[must_use]
    pub fn constraint(&self) -> Constraint {
        let mut machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
        let worn = machine.lock().unwrap_or_else(PoisonError::into_inner).is_worn(&self.shared);
        // Making the start failed at most in `compile`, with the same budgets.
        if worn && let Ok(fresh) = new_machine(&self.shared) {
            *machine = fresh;
        }
        Constraint::new(Arc::clone(&self.shared), Arc::clone(&machine))
    }

    /// The vocabulary it was compiled for.
    #[must_use]
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.shared.vocabulary
    }

    /// The lookahead it was compiled with.
    #[must_use]
    pub fn lookahead(&self) -> Lookahead {
        self.shared.lookahead
    }
}

/// Kinds of [`CompileError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompileErrorKind {
    /// The grammar has no sentence at all, such as `root ::= root`.
    EmptyLanguage,
    /// A budget is used up.
    Limit(LimitExceeded),
}

/// A grammar that cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileError {
    kind: CompileErrorKind,
}

impl CompileError {
    pub(crate) fn new(kind: CompileErrorKind) -> Self {
        Self { kind }
    }

    pub(crate) fn limit(limit: LimitExceeded) -> Self {
        Self::new(CompileErrorKind::Limit(limit))
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> &CompileErrorKind {
        &self.kind
    }
}

impl std::fmt::Display for CompileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            CompileErrorKind::EmptyLanguage => f.write_str(
                "the grammar has no sentence: every way through its start rule needs a rule that never ends\n\
                 hint: give each recursive rule an alternative that does not use it, as in `list ::= item | item \",\" list`",
            ),
            CompileErrorKind::Limit(limit) => {
                write!(f, "{limit}\nhint: split large terminals or counts, or raise the budget in `Limits`")
            }
        }
    }
}

impl std::error::Error for CompileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            CompileErrorKind::EmptyLanguage => None,
            CompileErrorKind::Limit(limit) => Some(limit),
        }
    }
}

impl From<LimitExceeded> for CompileError {
    fn from(limit: LimitExceeded) -> Self {
        Self::limit(limit)
    }
}
