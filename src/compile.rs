//! The pipeline, called in order: grammar -> terminals and productions -> a machine for constraints.

use std::sync::Arc;

use crate::{
    constraint::{Constraint, Host, Program},
    grammar::Grammar,
    limits::Limits,
    lower::{CompileError, lower},
    subterminal::Lookahead,
    vocab::Vocabulary,
};

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
        let program = Arc::new(Program {
            lowered,
            vocabulary: self.vocabulary.clone(),
            lookahead: self.lookahead,
            limits: self.limits.clone(),
        });
        let host = Host::new(&program).map_err(CompileError::limit)?;
        Ok(CompiledGrammar { program, host })
    }
}

/// A grammar ready to constrain. Cloning is cheap; `Send` and `Sync`.
#[derive(Debug, Clone)]
pub struct CompiledGrammar {
    program: Arc<Program>,
    host: Host,
}

impl CompiledGrammar {
    /// A fresh session at the start of a text. Sessions share what they find out about the grammar.
    #[must_use]
    pub fn constraint(&self) -> Constraint {
        Constraint::new(Arc::clone(&self.program), self.host.clone())
    }

    /// What its sessions run.
    pub(crate) fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The vocabulary it was compiled for.
    #[must_use]
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.program.vocabulary
    }

    /// The lookahead it was compiled with.
    #[must_use]
    pub fn lookahead(&self) -> Lookahead {
        self.program.lookahead
    }
}
