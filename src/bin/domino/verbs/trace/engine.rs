//! Domino as an engine that a walk can measure.

use clap::ValueEnum;
use domino::{
    CompiledGrammar, Compiler, Constraint, Lookahead, Patience, StepError, Terminals, TokenId, Vocabulary,
};
use serde::Serialize;

use super::walk::{Digest, Engine};

/// The time at which subterminal trees are grown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Trees {
    /// Grown when a text first needs them; the mask that needs them then takes longer.
    #[default]
    Lazy,
    /// All grown while compiling, which then takes longer.
    Eager,
    /// All grown while compiling, and masks made of the places that texts come to first; compiling then takes
    /// longest.
    Explored,
}

/// The tables of a grammar's terminals that are there when it is compiled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Tables {
    /// None: what terminals do to the vocabulary is worked out within the measured time.
    #[default]
    Cold,
    /// All: the same terminals were compiled for the same vocabulary before, as in a server after its first
    /// grammars.
    Kept,
}

/// Limits the threads of everything that is measured. Only the first call in a process counts.
pub(crate) fn at_most(threads: usize) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).use_current_thread();
    if let Err(error) = pool.build_global() {
        tracing::warn!("more threads than {threads} may be at work: {error}");
    }
}

/// A maker of compiled grammars for measuring.
#[derive(Debug)]
pub(crate) struct Setup {
    vocabulary: Vocabulary,
    lookahead: Lookahead,
    terminals: Terminals,
    trees: Trees,
    kept: Option<Compiler>,
}

impl Setup {
    /// Makes a setup with cold tables.
    pub(crate) fn new(vocabulary: Vocabulary, lookahead: Lookahead, trees: Trees) -> Self {
        Self { vocabulary, lookahead, terminals: Terminals::default(), trees, kept: None }
    }

    /// Sets the terminals.
    pub(crate) fn over(mut self, terminals: Terminals) -> Self {
        self.terminals = terminals;
        self
    }

    fn fresh(&self) -> Compiler {
        Compiler::new(self.vocabulary.clone())
            .patience(Patience::whole())
            .lookahead(self.lookahead)
            .terminals(self.terminals)
    }

    /// Fills the tables of this grammar's terminals and keeps them from now on.
    pub(crate) fn keep_tables<E>(
        &mut self,
        compile: impl FnOnce(&Compiler) -> Result<CompiledGrammar, E>,
    ) -> Result<(), E> {
        let compiler = self.fresh();
        compile(&compiler)?.grow_trees();
        self.kept = Some(compiler);
        Ok(())
    }

    /// Compiles a grammar that has seen no text.
    pub(crate) fn compile<E>(
        &self,
        compile: impl FnOnce(&Compiler) -> Result<CompiledGrammar, E>,
    ) -> Result<Compiled, E> {
        let grammar = match &self.kept {
            Some(compiler) => compile(compiler)?,
            None => compile(&self.fresh())?,
        };
        match self.trees {
            Trees::Lazy => {}
            Trees::Eager => grammar.grow_trees(),
            Trees::Explored => {
                grammar.explore();
            }
        }
        Ok(Compiled { grammar })
    }
}

/// A compiled grammar.
#[derive(Debug)]
pub(crate) struct Compiled {
    grammar: CompiledGrammar,
}

impl Engine for Compiled {
    type Request = Constraint;
    type Error = StepError;

    fn start(&self) -> Result<Constraint, StepError> {
        Ok(self.grammar.constraint())
    }

    fn mask(&self, request: &mut Constraint) -> Result<(), StepError> {
        request.mask().map(|_| ())
    }

    fn holds(&self, request: &mut Constraint, token: TokenId) -> Result<bool, StepError> {
        Ok(request.mask()?.contains(token))
    }

    fn digest(&self, request: &mut Constraint) -> Result<Digest, StepError> {
        let vocabulary = self.grammar.vocabulary();
        Ok(Digest::new(request.mask()?.iter(), vocabulary.size(), |token| vocabulary.is_end_of_text(token)))
    }

    fn allows(&self, request: &mut Constraint, token: TokenId) -> Result<bool, StepError> {
        request.allows(token)
    }

    fn commit(&self, request: &mut Constraint, token: TokenId) -> Result<(), StepError> {
        request.advance(token)
    }
}
