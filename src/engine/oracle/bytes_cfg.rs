//! Turns the grammar IR into one context-free grammar over bytes.
//!
//! Every expression and every node of a pattern becomes a nonterminal of its own, by the rule that defines
//! its meaning. Productions that derive nothing are removed at the end.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use regex_syntax::hir::{Class, Hir, HirKind};
use regex_syntax::utf8::Utf8Sequences;

use crate::grammar::{
    AnyOrder, Automaton, Expr, Grammar, PatternKind,
    decisions::{DecisionDiagram, ListEnd},
    spelled::Unfolded,
};
use crate::ids::{ExprId, as_index, number};
use crate::limits::{Budget, LimitExceeded};

/// Bound on symbols: more are not for brute force.
pub(super) const MAX_SYMBOLS: usize = 50_000_000;

/// A symbol of a right-hand side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OracleSymbol {
    /// One byte of an inclusive range.
    Byte(u8, u8),
    /// A nonterminal.
    Nonterminal(u32),
    /// The end of a production for this nonterminal.
    End(u32),
}

/// A grammar over bytes. All productions lie in one array, each closed by [`OracleSymbol::End`], so a
/// position in it is a dotted rule.
#[derive(Debug)]
pub(super) struct BytesCfg {
    symbols: Vec<OracleSymbol>,
    /// First positions of the productions of each nonterminal.
    starts: Vec<Vec<u32>>,
    nullable: Vec<bool>,
    start: u32,
}

impl BytesCfg {
    /// Builds the grammar over bytes that means `grammar`, with fewer than `symbols` symbols.
    pub(super) fn new(grammar: &Grammar, symbols: usize) -> Result<Self, OracleError> {
        let mut builder = Builder { max_symbols: symbols.min(MAX_SYMBOLS), ..Builder::default() };
        // Nonterminals first of all rules, then of all expressions, numbered as they are there.
        let first = number(grammar.rules().len(), NONTERMINALS)?;
        for _ in 0..as_index(first) + grammar.exprs().len() {
            builder.nonterminal()?;
        }
        let of_expr = |number: u32| first + number;
        for rule in grammar.rules() {
            let body = of_expr(grammar.rule_body(rule).raw());
            builder.production(rule.raw(), &[OracleSymbol::Nonterminal(body)])?;
        }
        for (expr, meaning) in grammar.exprs() {
            let head = of_expr(expr.raw());
            match meaning {
                Expr::Pattern(pattern) => match pattern.kind() {
                    PatternKind::Expression(hir) => builder.pattern(head, hir)?,
                    PatternKind::Automaton(automaton) => builder.automaton(head, automaton)?,
                    PatternKind::LengthBounded(bounded) => {
                        builder.automaton(head, &bounded.product(builder.max_symbols)?)?;
                    }
                    PatternKind::Spelled(spelled) => {
                        builder.automaton(head, &spelled.product(builder.max_symbols)?)?;
                    }
                    PatternKind::Substrings(text) => builder.substrings(head, text)?,
                },
                Expr::Rule(rule) => builder.production(head, &[OracleSymbol::Nonterminal(rule.raw())])?,
                Expr::Sequence(parts) => {
                    let body: Vec<_> =
                        parts.iter().map(|part| OracleSymbol::Nonterminal(of_expr(part.raw()))).collect();
                    builder.production(head, &body)?;
                }
                Expr::Alternatives(parts) => {
                    for part in parts {
                        builder.production(head, &[OracleSymbol::Nonterminal(of_expr(part.raw()))])?;
                    }
                }
                Expr::Repeat { part, min, max } => builder.repeat(head, of_expr(part.raw()), *min, *max)?,
                Expr::AnyOrder(parts) => {
                    let parts = parts.map(|part| ExprId::new(of_expr(part.raw())));
                    builder.any_order(head, &parts)?;
                }
            }
        }
        Ok(builder.finish(grammar.root().raw()))
    }

    /// Returns the symbol after the dot.
    pub(super) fn symbol(&self, position: u32) -> OracleSymbol {
        self.symbols[as_index(position)]
    }

    /// Returns the dotted rules of a nonterminal with the dot in front.
    pub(super) fn productions(&self, nonterminal: u32) -> &[u32] {
        &self.starts[as_index(nonterminal)]
    }

    /// Does the nonterminal derive the empty string?
    pub(super) fn is_nullable(&self, nonterminal: u32) -> bool {
        self.nullable[as_index(nonterminal)]
    }

    /// The start symbol.
    pub(super) fn start(&self) -> u32 {
        self.start
    }

    /// Number of nonterminals.
    pub(super) fn nonterminals(&self) -> usize {
        self.starts.len()
    }

    /// Does the start symbol derive anything?
    pub(super) fn has_sentence(&self) -> bool {
        !self.productions(self.start).is_empty()
    }
}

/// The things that numbers may run out for, in words.
const NONTERMINALS: &str = "nonterminals of a grammar over bytes";
const SYMBOLS: &str = "symbols of a grammar over bytes";

/// A production, as the place of its symbols.
#[derive(Debug)]
struct Production {
    head: u32,
    /// Number of the first symbol.
    first: u32,
    body: Range<usize>,
}

/// Collects productions.
#[derive(Debug, Default)]
struct Builder {
    symbols: Vec<OracleSymbol>,
    productions: Vec<Production>,
    nonterminals: usize,
    max_symbols: usize,
}

impl Builder {
    fn nonterminal(&mut self) -> Result<u32, LimitExceeded> {
        let fresh = number(self.nonterminals, NONTERMINALS)?;
        self.nonterminals += 1;
        Ok(fresh)
    }

    /// Adds a production, within the limit of symbols.
    fn production(&mut self, head: u32, body: &[OracleSymbol]) -> Result<(), LimitExceeded> {
        // Nonterminals count too: one without productions still takes space.
        if self.symbols.len() + self.nonterminals + body.len() >= self.max_symbols {
            return Err(LimitExceeded::new(Budget::Fixed, SYMBOLS, self.max_symbols));
        }
        let (first, start) = (number(self.symbols.len(), SYMBOLS)?, self.symbols.len());
        self.symbols.extend_from_slice(body);
        self.productions.push(Production { head, first, body: start..self.symbols.len() });
        self.symbols.push(OracleSymbol::End(head));
        Ok(())
    }

    /// Makes `head` derive what `hir` matches. A worklist instead of recursion, for deep patterns.
    fn pattern(&mut self, head: u32, hir: &Hir) -> Result<(), OracleError> {
        let mut work = vec![(head, hir)];
        while let Some((head, hir)) = work.pop() {
            match hir.kind() {
                HirKind::Empty => self.production(head, &[])?,
                HirKind::Literal(literal) => {
                    let body: Vec<_> = literal.0.iter().map(|&byte| OracleSymbol::Byte(byte, byte)).collect();
                    self.production(head, &body)?;
                }
                HirKind::Class(class) => self.class(head, class)?,
                HirKind::Look(_) => return Err(OracleError::LookAround),
                HirKind::Repetition(repetition) => {
                    let part = self.nonterminal()?;
                    self.repeat(head, part, repetition.min, repetition.max)?;
                    work.push((part, &repetition.sub));
                }
                HirKind::Capture(capture) => work.push((head, &capture.sub)),
                HirKind::Concat(parts) => {
                    let mut body = Vec::with_capacity(parts.len());
                    for part in parts {
                        let symbol = self.nonterminal()?;
                        body.push(OracleSymbol::Nonterminal(symbol));
                        work.push((symbol, part));
                    }
                    self.production(head, &body)?;
                }
                HirKind::Alternation(parts) => work.extend(parts.iter().map(|part| (head, part))),
            }
        }
        Ok(())
    }

    /// Makes `head` derive what the automaton accepts: a nonterminal for each state reads a byte and goes on.
    fn automaton(&mut self, head: u32, automaton: &Automaton) -> Result<(), LimitExceeded> {
        let states = automaton.states().iter().map(|_| self.nonterminal());
        let states = states.collect::<Result<Vec<u32>, _>>()?;
        self.production(head, &[OracleSymbol::Nonterminal(states[0])])?;
        for (state, &from) in automaton.states().iter().zip(&states) {
            if state.accepts {
                self.production(from, &[])?;
            }
            for edge in &state.edges {
                let rest = OracleSymbol::Nonterminal(states[as_index(edge.to)]);
                self.production(from, &[OracleSymbol::Byte(edge.first, edge.last), rest])?;
            }
        }
        Ok(())
    }

    /// Makes `head` derive the substrings of whole characters: a nonterminal for each place reads its byte
    /// and goes on.
    fn substrings(&mut self, head: u32, text: &str) -> Result<(), LimitExceeded> {
        let places = (0..=text.len()).map(|_| self.nonterminal()).collect::<Result<Vec<u32>, _>>()?;
        for (at, &from) in places.iter().enumerate() {
            if text.is_char_boundary(at) {
                self.production(head, &[OracleSymbol::Nonterminal(from)])?;
                self.production(from, &[])?;
            }
            if let Some(&byte) = text.as_bytes().get(at) {
                self.production(
                    from,
                    &[OracleSymbol::Byte(byte, byte), OracleSymbol::Nonterminal(places[at + 1])],
                )?;
            }
        }
        Ok(())
    }

    /// Makes `head` derive the characters (in UTF-8) or the bytes of `class`.
    fn class(&mut self, head: u32, class: &Class) -> Result<(), LimitExceeded> {
        match class {
            Class::Unicode(class) => {
                for range in class.ranges() {
                    for sequence in Utf8Sequences::new(range.start(), range.end()) {
                        let body: Vec<_> = sequence
                            .as_slice()
                            .iter()
                            .map(|range| OracleSymbol::Byte(range.start, range.end))
                            .collect();
                        self.production(head, &body)?;
                    }
                }
            }
            Class::Bytes(class) => {
                for range in class.ranges() {
                    self.production(head, &[OracleSymbol::Byte(range.start(), range.end())])?;
                }
            }
        }
        Ok(())
    }

    /// Makes `head` derive `min` to `max` times `part`, with one nonterminal for each count.
    fn repeat(&mut self, head: u32, part: u32, min: u32, max: Option<u32>) -> Result<(), LimitExceeded> {
        let (head, part) = (&mut { head }, OracleSymbol::Nonterminal(part));
        for _ in 0..min {
            let rest = self.nonterminal()?;
            self.production(*head, &[part, OracleSymbol::Nonterminal(rest)])?;
            *head = rest;
        }
        let Some(max) = max else {
            // What `head` derives otherwise, as an alternative of a pattern, is not repeated.
            let list = self.nonterminal()?;
            self.production(*head, &[OracleSymbol::Nonterminal(list)])?;
            self.production(list, &[])?;
            return self.production(list, &[OracleSymbol::Nonterminal(list), part]);
        };
        for _ in min..max {
            let rest = self.nonterminal()?;
            self.production(*head, &[])?;
            self.production(*head, &[part, OracleSymbol::Nonterminal(rest)])?;
            *head = rest;
        }
        self.production(*head, &[])
    }

    /// Makes `head` derive all orders of the parts, with one nonterminal for each state of the list: the
    /// names, the number of parts and the marks that have come. `of` holds nonterminals in the place of
    /// expressions.
    fn any_order(&mut self, head: u32, of: &AnyOrder) -> Result<(), LimitExceeded> {
        // The names that have come with the numbers of their parts, the count, the marks, and how many of the
        // names in order are passed.
        type Come = (BTreeMap<u32, u32>, u64, u8, u32);
        let nonterminal = |part: ExprId| OracleSymbol::Nonterminal(part.raw());
        let told_apart = of.decisions.iter().flat_map(|diagram| diagram.ends.iter().flatten());
        let told_apart = told_apart.map(|end| end.min.max(end.max.map_or(0, |max| max + 1)));
        let most = of.max.unwrap_or(of.min.max(1)).max(told_apart.max().unwrap_or(0));
        let (start, mut open) = (Come::default(), Vec::new());
        let mut known: HashMap<Come, u32> = HashMap::from([(start.clone(), head)]);
        open.push(start);
        while let Some(come) = open.pop() {
            let (names, count, marks, passed) = &come;
            let from = known[&come];
            let complete = (0..).zip(&of.required).all(|(name, &must)| !must || names.contains_key(&name));
            let decided = of.decisions.as_ref().is_none_or(|of| may_be(of, names, *count, *marks));
            if complete && decided && *count >= of.min.max(1) && marks & of.marks == of.marks {
                self.production(from, &[])?;
            }
            for (number, part) in (0..).zip(&of.parts) {
                let again = part.name.is_some_and(|name| names.contains_key(&name));
                let ordered = of.decisions.as_ref().map_or(0, |diagram| diagram.ordered);
                let place = part.name.map_or(ordered, |name| name.min(ordered));
                if again || place < *passed || of.max.is_some_and(|max| *count >= max) {
                    continue;
                }
                let names = names.iter().map(|(&name, &part)| (name, part));
                let names = names.chain(part.name.map(|name| (name, number))).collect();
                let after = (names, (count + 1).min(most), marks | part.marks, place);
                let to = match known.get(&after) {
                    Some(&to) => to,
                    None => {
                        let to = self.nonterminal()?;
                        known.insert(after.clone(), to);
                        open.push(after);
                        to
                    }
                };
                let body = [nonterminal(of.separator), nonterminal(part.expr), OracleSymbol::Nonterminal(to)];
                self.production(from, if *count == 0 { &body[1..] } else { &body })?;
            }
        }
        Ok(())
    }

    /// Marks the nonterminals that derive some string: of any bytes, or the empty one.
    fn derive_something(&self, bytes: AllowedBytes) -> Vec<bool> {
        let mut derives = vec![false; self.nonterminals];
        // In which productions a nonterminal stands, and how many symbols of a production are open.
        let mut uses: Vec<Vec<usize>> = vec![Vec::new(); self.nonterminals];
        let mut open = Vec::with_capacity(self.productions.len());
        let mut work = Vec::new();
        for (index, production) in self.productions.iter().enumerate() {
            let mut count = 0;
            for symbol in &self.symbols[production.body.clone()] {
                match *symbol {
                    OracleSymbol::Byte(..) if bytes == AllowedBytes::Any => {}
                    OracleSymbol::Byte(..) => count += 1,
                    OracleSymbol::Nonterminal(part) => {
                        uses[as_index(part)].push(index);
                        count += 1;
                    }
                    OracleSymbol::End(_) => {}
                }
            }
            open.push(count);
            if count == 0 {
                work.push(production.head);
            }
        }
        while let Some(nonterminal) = work.pop() {
            if std::mem::replace(&mut derives[as_index(nonterminal)], true) {
                continue;
            }
            for &index in &uses[as_index(nonterminal)] {
                open[index] -= 1;
                if open[index] == 0 {
                    work.push(self.productions[index].head);
                }
            }
        }
        derives
    }

    /// Builds the grammar from the productive productions.
    fn finish(self, start: u32) -> BytesCfg {
        let productive = self.derive_something(AllowedBytes::Any);
        let nullable = self.derive_something(AllowedBytes::None);
        let mut starts = vec![Vec::new(); self.nonterminals];
        for production in &self.productions {
            let is_productive = self.symbols[production.body.clone()].iter().all(|symbol| match *symbol {
                OracleSymbol::Nonterminal(part) => productive[as_index(part)],
                OracleSymbol::Byte(..) | OracleSymbol::End(_) => true,
            });
            if is_productive {
                starts[as_index(production.head)].push(production.first);
            }
        }
        BytesCfg { symbols: self.symbols, starts, nullable, start }
    }
}

/// True if a list of exactly these parts follows a path of its diagram.
fn may_be(diagram: &DecisionDiagram, names: &BTreeMap<u32, u32>, count: u64, marks: u8) -> bool {
    let mut place = 0;
    while let Some(node) = diagram.nodes.get(as_index(place)) {
        let taken = |&&(part, _): &&(u32, u32)| names.get(&node.name) == Some(&part);
        let to = match names.get(&node.name) {
            Some(_) => node.parts.iter().find(taken).map(|&(_, to)| to),
            None => node.absent,
        };
        let Some(to) = to else { return false };
        place = to;
    }
    let ends = diagram.ends.get(as_index(place) - diagram.nodes.len());
    ends.is_some_and(|ends| {
        let within = |end: &ListEnd| count >= end.min && end.max.is_none_or(|max| count <= max);
        ends.iter().any(|end| marks == end.marks && within(end))
    })
}

/// The bytes that a derivation may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AllowedBytes {
    Any,
    None,
}

/// The reason why there is no [`Oracle`](super::Oracle) for a grammar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OracleError {
    /// A pattern has look-around, which [`Pattern`](crate::grammar::Pattern) excludes.
    #[error("a pattern has look-around")]
    LookAround,
    /// The grammar is [greedy](crate::grammar::Grammar::is_greedy): which texts it has is not said by its
    /// rules alone.
    #[error("texts are split into terminals greedily")]
    Greedy,
    /// The grammar asks for tokens of a model.
    #[error("the grammar asks for tokens of a model")]
    Tokens,
    /// The items of some arrays of the grammar [differ](crate::grammar::Grammar::distinct_items), which its
    /// rules do not say.
    #[error("items of arrays must differ")]
    Items,
    /// The grammar is too large over bytes.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
}
