//! Views of a compiled grammar, for authors who want to know why theirs is slow.
//!
//! [`CompiledGrammar::inspect`] looks at all stages: rules and their lowered form, terminals, their automata,
//! subterminal trees; [`Constraint::parser_sets`](crate::Constraint::parser_sets) and
//! [`Constraint::state_sizes`](crate::Constraint::state_sizes) at the state that a text has led to. All views
//! are owned, plain data; numbers in them mean something within one compiled grammar only. Nothing here
//! changes what a grammar allows.

mod marks;
mod rules;
mod sets;
mod terminals;
mod warnings;

use std::{sync::Arc, time::Duration};

use self::marks::SymbolFacts;
use crate::{compile::CompiledGrammar, lower::RuleFate, program::Program, subterminal::TerminalTable};

pub use rules::{Became, NonterminalView, RuleView, SymbolView};
pub use sets::{ItemOrigin, ItemView, SetView, SetsView, StateSizes};
pub use terminals::{
    AutomatonView, ByteRange, StateView, TerminalView, TransitionView, TreeNodeView, TreeView,
};
pub use warnings::{Warning, WarningKind};

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

/// Sizes of the stages of a compiled grammar.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sizes {
    /// Rules of the source.
    pub rules: usize,
    /// Rules that are a terminal, or a part of one.
    pub folded_rules: usize,
    /// Rules whose recursion became repetition.
    pub rewritten_rules: usize,
    /// Nonterminals, the start included.
    pub nonterminals: usize,
    /// Productions.
    pub productions: usize,
    /// Symbols in all productions.
    pub symbols: usize,
    /// Terminals.
    pub terminals: usize,
    /// States of all terminals' DFAs: scanner states.
    pub scanner_states: usize,
    /// Classes of bytes that the grammar distinguishes.
    pub byte_classes: usize,
    /// Ids of the vocabulary.
    pub vocabulary: usize,
}

/// Memory of a part of a compiled grammar.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryView {
    /// The part, in words.
    pub part: &'static str,
    /// Approximate number of bytes.
    pub bytes: usize,
}

/// The time of a pass of the compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PassTime {
    /// The pass, in words.
    pub pass: &'static str,
    /// The time of the pass.
    pub time: Duration,
}

impl Inspection {
    /// Sizes of the stages. Linear in the rules and nonterminals.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        let lowered = &self.program().lowered;
        let (cfg, scanner, rules) = (&lowered.cfg, &lowered.scanner, &lowered.provenance.rules);
        let productions = self.nonterminals().map(|nonterminal| nonterminal.productions).sum();
        let folded = |fate| matches!(fate, RuleFate::Absorbed | RuleFate::Terminal(_));
        Sizes {
            rules: rules.len(),
            folded_rules: rules.iter().filter(|rule| folded(rule.fate)).count(),
            rewritten_rules: rules.iter().filter(|rule| rule.recursion.is_some()).count(),
            nonterminals: cfg.nonterminal_count(),
            productions,
            symbols: cfg.dot_count() - productions,
            terminals: scanner.terminal_count(),
            scanner_states: scanner.state_count(),
            byte_classes: scanner.byte_class_count(),
            vocabulary: self.program().vocabulary.size(),
        }
    }

    /// Approximate memory of each part now. Sessions' parser sets, constraint states and masks are apart; see
    /// [`Limits`](crate::Limits) for the cost of a unit of them.
    #[must_use]
    pub fn memory(&self) -> Vec<MemoryView> {
        let program = self.program();
        let trees = program.grown.get().map_or(0, |forest| forest.bytes());
        let without_automaton = |table: &Arc<TerminalTable>| table.bytes() - table.dfa().bytes_alone();
        let tables = program.tables.iter().map(without_automaton).sum();
        [
            ("productions", program.lowered.cfg.bytes()),
            ("names and places of the source", program.lowered.source_bytes()),
            ("automata", program.lowered.scanner.bytes()),
            ("terminals' tables over the vocabulary, shared with other grammars", tables),
            ("subterminal trees grown ahead", trees),
        ]
        .into_iter()
        .map(|(part, bytes)| MemoryView { part, bytes })
        .collect()
    }

    /// Times of the passes that lowered the grammar when it was compiled, in order.
    pub fn pass_times(&self) -> impl ExactSizeIterator<Item = PassTime> + '_ {
        self.program().lowered.times.iter().map(|&(pass, time)| PassTime { pass, time })
    }
}
