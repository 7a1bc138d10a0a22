//! Turns expressions into terminals and productions.
//!
//! Afterwards no terminal matches the empty string (`t` that did is now `t' | epsilon`), terminals of equal
//! languages are one terminal, and repetition is left recursion, so that a list of any length comes back to
//! the same parser state. Works through a list of open nonterminals, never by recursion.

use std::sync::Arc;

use hashbrown::HashMap;
use regex_syntax::hir::Hir;

use super::leaves::{LeafDfa, TerminalAutomata, leaves};
use super::regular::{Regular, uncounted};
use super::rewrite::WorkGrammar;
use crate::grammar::{AnyOrder, Automaton, Expr, LengthBounded, PatternKind, Span};
use crate::ids::{ExprId, RuleId};
use crate::limits::{Budget, LimitExceeded, Limits};
use crate::lower::{
    cfg::{EmittedList, Symbol},
    error::CompileError,
    provenance::{RuleSymbol, SymbolOrigin, shown, shown_kind, shown_literal},
};
use crate::scanner::{self, TerminalDfa};

/// Productions and terminals, not yet reduced.
#[derive(Debug)]
pub(in crate::lower) struct Emitted {
    pub(in crate::lower) productions: Vec<(u32, Vec<Symbol>)>,
    /// Origin of each nonterminal.
    pub(in crate::lower) nonterminals: Vec<SymbolOrigin>,
    pub(in crate::lower) terminals: TerminalAutomata,
    /// Names; `None` for a terminal that is named after its automaton.
    pub(in crate::lower) terminal_names: Vec<Option<String>>,
    /// Does each terminal stand only after items that are new in their array?
    pub(in crate::lower) after_new: Vec<bool>,
    /// Origin of each terminal's first occurrence.
    pub(in crate::lower) terminal_origins: Vec<SymbolOrigin>,
    /// Symbol of each rule that was looked at by itself.
    pub(in crate::lower) rules: Vec<Option<RuleSymbol>>,
    /// Rules that became part of a terminal together with what mentions them, and that terminal's symbol.
    pub(in crate::lower) absorbed: Vec<(RuleId, Symbol)>,
    pub(in crate::lower) lists: Vec<EmittedList>,
    pub(in crate::lower) root: Symbol,
}

/// Number of NFA states per DFA state of the folding budget up to which folding is tried.
const NFA_PER_DFA_STATE: usize = 2;
/// Length of a literal, in bytes, beyond which it becomes several terminals.
const LITERAL_BYTES: usize = 1_024;
/// Number of notes about rules that became part of terminals.
const MAX_ABSORBED: usize = 1 << 16;
/// Number of expressions too large to fold after which no more are tried. A few ms each.
const MAX_UNFOLDABLE: usize = 400;
/// Factor on the folding budget for expressions that would be within it without bounds on their counts, and
/// number of their NFA states after which no more are tried. Rows and trees of the states in the middle of a
/// count are shared, so that the states cost the automaton alone. Names of up to 64 characters need no more
/// (`experiments/programs/engine/RESULTS.md`, counted terminals).
const COUNTED_FACTOR: usize = 2;
const MAX_COUNTED: usize = 1 << 16;

/// Turns everything below the root into symbols.
pub(in crate::lower) fn emit(
    work: &WorkGrammar,
    regular: &Regular,
    limits: &Limits,
) -> Result<Emitted, CompileError> {
    let mut emitter = ProductionEmitter {
        work,
        regular,
        limits,
        out: Emitted {
            productions: Vec::new(),
            nonterminals: Vec::new(),
            terminals: TerminalAutomata::default(),
            terminal_names: Vec::new(),
            after_new: Vec::new(),
            terminal_origins: Vec::new(),
            rules: vec![None; work.rule_count()],
            absorbed: Vec::new(),
            lists: Vec::new(),
            root: Symbol::Nonterminal(0),
        },
        here: (work.root(), work.rule_span(work.root())),
        of_expr: HashMap::new(),
        of_dfa: HashMap::new(),
        of_automaton: HashMap::new(),
        of_bounded: HashMap::new(),
        leaves: leaves(work.exprs(), limits),
        of_repeat: HashMap::new(),
        open: Vec::new(),
        unfoldable: 0,
        counted: 0,
        symbols: 0,
    };
    emitter.out.root = emitter.rule(work.root())?;
    while let Some((nonterminal, body)) = emitter.open.pop() {
        let origin = &emitter.out.nonterminals[nonterminal as usize];
        emitter.here = (origin.rule, origin.span);
        emitter.productions(nonterminal, body)?;
    }
    Ok(emitter.out)
}

/// The length-bounded string of a pattern that is one.
fn bounded_of(kind: &PatternKind) -> Option<&LengthBounded> {
    match kind {
        PatternKind::LengthBounded(bounded) => Some(bounded),
        _ => None,
    }
}

/// The name of a terminal, if the terminal is new.
struct NewTerminal<'a> {
    made: &'a dyn Fn() -> String,
    /// Derive the name from the automaton when it is first displayed? Most names never are.
    late: bool,
}

struct ProductionEmitter<'a> {
    work: &'a WorkGrammar,
    regular: &'a Regular,
    limits: &'a Limits,
    out: Emitted,
    /// The rule being processed, and the place in the text.
    here: (RuleId, Span),
    of_expr: HashMap<ExprId, Symbol>,
    /// Symbols by automaton, and by whether the terminal stands only after new items.
    of_dfa: HashMap<(Arc<TerminalDfa>, bool), Symbol>,
    of_automaton: HashMap<(&'a Automaton, bool), Symbol>,
    of_bounded: HashMap<&'a LengthBounded, Symbol>,
    /// DFAs of leaves that were not met yet.
    leaves: HashMap<&'a Automaton, LeafDfa>,
    of_repeat: HashMap<(Symbol, RepeatKind, u32), Symbol>,
    /// Nonterminals whose productions are still to be made.
    open: Vec<(u32, ExprId)>,
    /// Number of expressions whose automata turned out too large to fold.
    unfoldable: usize,
    /// Number of NFA states of expressions that were tried for their counts.
    counted: usize,
    symbols: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum RepeatKind {
    Exactly,
    UpTo,
    /// At least as many as given.
    From(u32),
    AnyNumber,
}

impl ProductionEmitter<'_> {
    fn nonterminal(&mut self, name: String) -> Result<u32, LimitExceeded> {
        let id =
            u32::try_from(self.out.nonterminals.len()).ok().filter(|&id| (id as usize) < self.limits.symbols);
        let (rule, span) = self.here;
        self.out.nonterminals.push(SymbolOrigin { name, rule, span });
        id.ok_or_else(|| self.exceeded())
    }

    fn exceeded(&self) -> LimitExceeded {
        LimitExceeded::new(Budget::Symbols, "symbols of the context-free grammar", self.limits.symbols)
    }

    fn produce(&mut self, nonterminal: u32, symbols: Vec<Symbol>) -> Result<(), LimitExceeded> {
        self.symbols += symbols.len() + 1;
        if self.symbols > self.limits.symbols {
            return Err(self.exceeded());
        }
        self.out.productions.push((nonterminal, symbols));
        self.limits.look()
    }

    fn rule(&mut self, rule: RuleId) -> Result<Symbol, CompileError> {
        if let Some(known) = &self.out.rules[rule.index()] {
            return Ok(known.symbol);
        }
        let (name, body) = (self.work.name(rule).to_owned(), self.work.body(rule));
        let mention = std::mem::replace(&mut self.here, (rule, self.work.rule_span(rule)));
        let folded = self.folded(body, Some(&name))?;
        let symbol = match folded {
            Some(symbol) => symbol,
            None => {
                let nonterminal = self.nonterminal(name)?;
                self.open.push((nonterminal, body));
                Symbol::Nonterminal(nonterminal)
            }
        };
        self.here = mention;
        let regular = self.regular.is_regular(body);
        self.out.rules[rule.index()] = Some(RuleSymbol { symbol, folded: folded.is_some(), regular });
        Ok(symbol)
    }

    fn expr(&mut self, expr: ExprId) -> Result<Symbol, CompileError> {
        if let Expr::Rule(rule) = self.work.expr(expr) {
            return self.rule(*rule);
        }
        if let Some(&symbol) = self.of_expr.get(&expr) {
            return Ok(symbol);
        }
        let whole = self.narrow(expr);
        let symbol = match self.folded(expr, None)? {
            Some(symbol) => symbol,
            None => {
                let nonterminal = self.nonterminal(String::new())?;
                self.open.push((nonterminal, expr));
                Symbol::Nonterminal(nonterminal)
            }
        };
        self.here.1 = whole;
        self.of_expr.insert(expr, symbol);
        Ok(symbol)
    }

    /// Sets the place being processed to `expr`; returns the previous place.
    fn narrow(&mut self, expr: ExprId) -> Span {
        let whole = self.here.1;
        let span = self.work.expr_span(expr);
        if span != Span::default() {
            self.here.1 = span;
        }
        whole
    }

    /// Folds the expression into one terminal, if it is a leaf, or regular and small enough.
    fn folded(&mut self, expr: ExprId, name: Option<&str>) -> Result<Option<Symbol>, CompileError> {
        if let Expr::Pattern(pattern) = self.work.expr(expr) {
            if let Some(literal) = pattern.as_literal().filter(|literal| literal.len() > LITERAL_BYTES) {
                return Ok(Some(self.long_literal(literal)?));
            }
            let (kind, after_new) = (pattern.kind(), pattern.is_after_new_item());
            if let Some(&symbol) = bounded_of(kind).and_then(|bounded| self.of_bounded.get(bounded)) {
                return Ok(Some(symbol));
            }
            let (dfa, automaton) = match kind {
                PatternKind::Automaton(automaton) => {
                    if let Some(&symbol) = self.of_automaton.get(&(automaton, after_new)) {
                        return Ok(Some(symbol));
                    }
                    (self.leaves.remove(automaton), Some(automaton))
                }
                _ => (None, None),
            };
            let build = || scanner::build_pattern(kind, self.limits.dfa_states, self.limits);
            let dfa = dfa.unwrap_or_else(build).map_err(CompileError::limit)?;
            let bounded = bounded_of(kind);
            let is_spelled = matches!(kind, PatternKind::Spelled(_));
            let late = name.is_none() && (automaton.is_some() || bounded.is_some() || is_spelled);
            let name = || name.map_or_else(|| shown_kind(kind), str::to_owned);
            let symbol = self.terminal(dfa, after_new, NewTerminal { made: &name, late })?;
            self.of_automaton.extend(automaton.map(|automaton| ((automaton, after_new), symbol)));
            self.of_bounded.extend(bounded.map(|bounded| (bounded, symbol)));
            return Ok(Some(symbol));
        }
        let worth_trying = self.limits.fold_states.saturating_mul(NFA_PER_DFA_STATE);
        let most_counted = worth_trying.saturating_mul(COUNTED_FACTOR);
        if self.unfoldable >= MAX_UNFOLDABLE
            || !self.regular.is_within_uncounted(expr, most_counted, worth_trying)
        {
            return Ok(None);
        }
        let hir = self.regular.hir(self.work, expr);
        let small = if self.regular.is_within(expr, worth_trying) { self.small(&hir) } else { None };
        let Some(dfa) = small.or_else(|| self.small_uncounted(expr, &hir)) else {
            self.unfoldable += 1;
            return Ok(None);
        };
        let name = || name.map_or_else(|| shown(&hir), str::to_owned);
        let symbol = self.terminal(dfa, false, NewTerminal { made: &name, late: false })?;
        self.absorb(expr, symbol);
        Ok(Some(symbol))
    }

    /// Builds the automaton of an expression, which is `None` if its language is empty; `None` if it is over
    /// the folding budget. Minimisation may bring a larger one under it.
    fn small(&self, hir: &Hir) -> Option<Option<TerminalDfa>> {
        let fold_states = self.limits.fold_states;
        let dfa = scanner::build(hir, fold_states.saturating_mul(NFA_PER_DFA_STATE), self.limits).ok()?;
        dfa.as_ref().is_none_or(|dfa| dfa.len() <= fold_states).then_some(dfa)
    }

    /// Builds the automaton of an expression that would be within the folding budget without bounds on its
    /// counts.
    fn small_uncounted(&mut self, expr: ExprId, hir: &Hir) -> Option<Option<TerminalDfa>> {
        let without = uncounted(hir);
        if without == *hir || self.counted >= MAX_COUNTED || self.small(&without).is_none() {
            return None;
        }
        self.counted += self.regular.size(expr);
        let most = self.limits.fold_states.saturating_mul(COUNTED_FACTOR).min(self.limits.dfa_states);
        scanner::build(hir, most, self.limits).ok()
    }

    /// Records that all rules below `expr` are part of the terminal of `symbol`.
    fn absorb(&mut self, expr: ExprId, symbol: Symbol) {
        let mut open = vec![expr];
        while let Some(expr) = open.pop() {
            if self.out.absorbed.len() >= MAX_ABSORBED {
                return;
            }
            match self.work.expr(expr) {
                Expr::Pattern(_) => {}
                Expr::Rule(rule) => {
                    self.out.absorbed.push((*rule, symbol));
                    open.push(self.work.body(*rule));
                }
                Expr::Sequence(parts) | Expr::Alternatives(parts) => open.extend(parts),
                Expr::Repeat { part, .. } => open.push(*part),
                Expr::AnyOrder(parts) => open.extend(parts.exprs()),
            }
        }
    }

    /// Splits a literal into pieces, so that no automaton is larger than a piece.
    fn long_literal(&mut self, literal: &[u8]) -> Result<Symbol, CompileError> {
        let whole = self.nonterminal(shown_literal(literal))?;
        let mut pieces = Vec::new();
        for piece in literal.chunks(LITERAL_BYTES) {
            let name = NewTerminal { made: &|| shown_literal(piece), late: false };
            pieces.push(self.terminal(TerminalDfa::literal(piece), false, name)?);
        }
        self.produce(whole, pieces)?;
        Ok(Symbol::Nonterminal(whole))
    }

    /// Returns the symbol of a byte language: a terminal, split off from the empty string if it has that.
    fn terminal(
        &mut self,
        dfa: Option<TerminalDfa>,
        after_new: bool,
        name: NewTerminal<'_>,
    ) -> Result<Symbol, LimitExceeded> {
        let Some(dfa) = dfa else { return Ok(Symbol::Nonterminal(self.nonterminal((name.made)())?)) };
        let dfa = (Arc::new(dfa), after_new);
        if let Some(&symbol) = self.of_dfa.get(&dfa) {
            return Ok(symbol);
        }
        let symbol = if dfa.0.accepts_empty() {
            let text = (name.made)();
            let nonterminal = self.nonterminal(text.clone())?;
            self.produce(nonterminal, Vec::new())?;
            if let Some(rest) = dfa.0.without_empty() {
                let name = NewTerminal { made: &|| text.clone(), late: false };
                let rest = self.terminal(Some(rest), after_new, name)?;
                self.produce(nonterminal, vec![rest])?;
            }
            Symbol::Nonterminal(nonterminal)
        } else {
            let id = u32::try_from(self.out.terminals.len()).map_err(|_| self.exceeded())?;
            self.out.terminals.push(Arc::clone(&dfa.0), self.limits)?;
            self.out.after_new.push(after_new);
            self.out.terminal_names.push((!name.late).then(|| (name.made)()));
            let (rule, span) = self.here;
            self.out.terminal_origins.push(SymbolOrigin { name: String::new(), rule, span });
            Symbol::Terminal(id)
        };
        self.of_dfa.insert(dfa, symbol);
        Ok(symbol)
    }

    /// Makes the productions of one open nonterminal. Alternatives inside alternatives are flattened.
    fn productions(&mut self, nonterminal: u32, body: ExprId) -> Result<(), CompileError> {
        let work = self.work;
        let mut open = vec![body];
        while let Some(expr) = open.pop() {
            match work.expr(expr) {
                Expr::Alternatives(parts) if expr == body || self.unfolded(expr)? => {
                    open.extend(parts.iter().rev())
                }
                Expr::Sequence(parts) if expr == body || self.unfolded(expr)? => {
                    let symbols = parts.iter().map(|&part| self.expr(part)).collect::<Result<_, _>>()?;
                    self.produce(nonterminal, symbols)?;
                }
                Expr::Repeat { part, min, max } if expr == body => {
                    let symbol = self.expr(*part)?;
                    let symbols = self.repeat(symbol, *min, *max)?;
                    self.produce(nonterminal, symbols)?;
                }
                Expr::AnyOrder(parts) if expr == body => self.any_order(nonterminal, parts)?,
                _ => {
                    let symbol = self.expr(expr)?;
                    self.produce(nonterminal, vec![symbol])?;
                }
            }
        }
        Ok(())
    }

    /// Makes the productions of a list in any order, and records the rest. Each part has a symbol of its own,
    /// so that the parser knows which have come.
    fn any_order(&mut self, list: u32, of: &AnyOrder) -> Result<(), CompileError> {
        let separator = self.expr(of.separator)?;
        let part = self.nonterminal(String::new())?;
        let any = Symbol::Nonterminal(part);
        self.produce(list, vec![any])?;
        self.produce(list, vec![Symbol::Nonterminal(list), separator, any])?;
        let mut parts = Vec::with_capacity(of.parts.len());
        for one in &of.parts {
            let symbol = self.expr(one.expr)?;
            let number = self.nonterminal(String::new())?;
            self.produce(number, vec![symbol])?;
            self.produce(part, vec![Symbol::Nonterminal(number)])?;
            parts.push(number);
        }
        self.out.lists.push(EmittedList { list, part, parts, separator, of: of.clone() });
        Ok(())
    }

    /// Must the expression stay apart, since it cannot be folded into a terminal?
    fn unfolded(&mut self, expr: ExprId) -> Result<bool, CompileError> {
        if self.of_expr.contains_key(&expr) {
            return Ok(false);
        }
        let whole = self.narrow(expr);
        let folded = self.folded(expr, None)?;
        self.here.1 = whole;
        if let Some(symbol) = folded {
            self.of_expr.insert(expr, symbol);
        }
        Ok(folded.is_none())
    }
}

// Counted repetition becomes productions, large counts by blocks.

/// Count up to which repetition is written out symbol by symbol; larger ones are made of blocks of this size.
const BLOCK: u32 = 256;

impl ProductionEmitter<'_> {
    /// Repeats `symbol` `min` to `max` times, as a sequence of symbols.
    fn repeat(&mut self, symbol: Symbol, min: u32, max: Option<u32>) -> Result<Vec<Symbol>, LimitExceeded> {
        let mut row = Vec::new();
        let tail = match max {
            None if min == 1 => {
                // One production less than `x x*`, and the shape lists have most often.
                let list = self.nonterminal(String::new())?;
                self.produce(list, vec![symbol])?;
                self.produce(list, vec![Symbol::Nonterminal(list), symbol])?;
                return Ok(vec![Symbol::Nonterminal(list)]);
            }
            None => Some((RepeatKind::AnyNumber, 0)),
            // Counted from one place on, so that the parser can compare counts.
            Some(max) if 0 < min && min < max && max <= BLOCK => {
                return Ok(vec![self.counted(symbol, RepeatKind::From(min), max)?]);
            }
            Some(max) => (max > min).then_some((RepeatKind::UpTo, max - min)),
        };
        if min > 0 {
            row.push(self.counted(symbol, RepeatKind::Exactly, min)?);
        }
        if let Some((kind, count)) = tail {
            row.push(self.counted(symbol, kind, count)?);
        }
        Ok(row)
    }

    /// Returns one symbol for a counted repetition. Large counts are made of blocks; each has one
    /// split into blocks and rest. Recursion is as deep as the count has digits to the base [`BLOCK`].
    fn counted(&mut self, symbol: Symbol, kind: RepeatKind, count: u32) -> Result<Symbol, LimitExceeded> {
        if kind == RepeatKind::Exactly && count == 1 {
            return Ok(symbol);
        }
        if let Some(&known) = self.of_repeat.get(&(symbol, kind, count)) {
            return Ok(known);
        }
        let made = self.nonterminal(String::new())?;
        self.of_repeat.insert((symbol, kind, count), Symbol::Nonterminal(made));
        let (blocks, rest) = (count / BLOCK, count % BLOCK);
        match kind {
            RepeatKind::AnyNumber => {
                self.produce(made, Vec::new())?;
                self.produce(made, vec![Symbol::Nonterminal(made), symbol])?;
            }
            RepeatKind::Exactly if count <= BLOCK => self.produce(made, vec![symbol; count as usize])?,
            RepeatKind::Exactly => {
                let block = self.counted(symbol, RepeatKind::Exactly, BLOCK)?;
                let mut row = vec![self.counted(block, RepeatKind::Exactly, blocks)?];
                if rest > 0 {
                    row.push(self.counted(symbol, RepeatKind::Exactly, rest)?);
                }
                self.produce(made, row)?;
            }
            RepeatKind::UpTo if count <= BLOCK => {
                self.produce(made, Vec::new())?;
                self.up_to(made, symbol, 1, count)?;
            }
            RepeatKind::From(least) => self.up_to(made, symbol, least, count)?,
            RepeatKind::UpTo => {
                let block = self.counted(symbol, RepeatKind::Exactly, BLOCK)?;
                let mut fewer = vec![self.counted(symbol, RepeatKind::UpTo, BLOCK - 1)?];
                if blocks > 1 {
                    fewer.insert(0, self.counted(block, RepeatKind::UpTo, blocks - 1)?);
                }
                self.produce(made, fewer)?;
                let mut most = vec![self.counted(block, RepeatKind::Exactly, blocks)?];
                if rest > 0 {
                    most.push(self.counted(symbol, RepeatKind::UpTo, rest)?);
                }
                self.produce(made, most)?;
            }
        }
        Ok(Symbol::Nonterminal(made))
    }

    /// Makes `made ::= cm | ... | cn` for `m` from `least` on, with `c1 ::= x`, `c(i+1) ::= ci x`: counts
    /// from the left, so the parser's stack stays flat.
    fn up_to(&mut self, made: u32, symbol: Symbol, least: u32, count: u32) -> Result<(), LimitExceeded> {
        let mut shorter = None;
        for at in 1..=count {
            let longer = self.nonterminal(String::new())?;
            let row = shorter.map(Symbol::Nonterminal).into_iter().chain([symbol]).collect();
            self.produce(longer, row)?;
            if at >= least {
                self.produce(made, vec![Symbol::Nonterminal(longer)])?;
            }
            shorter = Some(longer);
        }
        Ok(())
    }
}
