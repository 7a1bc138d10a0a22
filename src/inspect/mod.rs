//! Views of a compiled grammar, for authors who want to know why theirs is slow.
//!
//! [`CompiledGrammar::inspect`] looks at all stages: rules and their lowered form, terminals, their automata,
//! subterminal trees; [`Constraint::parser_sets`](crate::Constraint::parser_sets) and
//! [`Constraint::state_sizes`](crate::Constraint::state_sizes) at the state that a text has led to. All views
//! are owned, plain data; numbers in them mean something within one compiled grammar only. Nothing here
//! changes what a grammar allows.

mod automaton;
mod marks;
mod rules;
mod sets;
mod sizes;
mod terminals;
mod trees;
mod warnings;

use std::sync::Arc;

pub use automaton::{AutomatonView, ByteRange, StateView, TransitionView};
pub use rules::{Became, NonterminalView, RuleView, SymbolView};
pub use sets::{ItemOrigin, ItemView, SetView, SetsView, StateSizes};
pub use sizes::{MemoryView, PassTime, Sizes};
pub use terminals::TerminalView;
pub use trees::{TreeNodeView, TreeView};
pub use warnings::{Warning, WarningKind};

use self::marks::SymbolFacts;
use crate::{compile::CompiledGrammar, program::Program};

/// A look inside a compiled grammar.
#[derive(Debug, Clone)]
pub struct Inspection {
    grammar: CompiledGrammar,
    marks: Arc<SymbolFacts>,
}

impl Inspection {
    fn program(&self) -> &Program {
        self.grammar.program()
    }
}

impl CompiledGrammar {
    /// Looks inside. Linear in the grammar's productions; the views are made when they are asked for.
    ///
    /// # Example
    /// ```
    /// use domino::{Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary, inspect::Became};
    ///
    /// let vocabulary = Vocabulary::builder().token(TokenId::new(0), "a");
    /// let vocabulary = vocabulary.end_of_text(TokenId::new(1)).build()?;
    /// let grammar = r#"root ::= "(" root ")" | digits   digits ::= [0-9] digits | [0-9]"#;
    /// let grammar = Grammar::parse(Syntax::Gbnf, grammar, &Limits::default())?;
    /// let inspection = Compiler::new(vocabulary).compile(&grammar)?.inspect();
    /// let digits = inspection.rules().find(|rule| rule.name == "digits").ok_or("no such rule")?;
    /// assert!(digits.right_recursion && matches!(digits.became, Became::Terminal { .. }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn inspect(&self) -> Inspection {
        let marks = Arc::new(SymbolFacts::new(&self.program().lowered));
        Inspection { grammar: self.clone(), marks }
    }
}
