//! Captures: the bytes of a text that the named parts of its grammar have matched.
//!
//! Masks need to know only whether there is a parse. So the engine's parser keeps no links between items, and
//! the compiled grammar has folded rules into terminals: neither can tell what a rule has matched. Captures
//! are found apart from them, from the grammar as it was read, when they are asked for. `network` makes a
//! recursive transition network of the grammar. `chart` reads the text with it in all ways (Earley's
//! algorithm, cubic at worst, linear for grammars that a byte of lookahead decides). `walk` takes one of
//! these ways, and finds what is decided of a text that is still being written.

mod chart;
mod facts;
mod network;
#[cfg(test)]
mod tests;
mod walk;

use std::ops::Range;

use self::{
    chart::{Chart, Extent, Spending},
    facts::NetworkFacts,
    network::{Network, Node},
    walk::{ChartWalk, FoundCapture},
};
use crate::{
    grammar::{Grammar, Thought, suggest},
    ids::{RuleId, as_index},
    json_readers::has_key_twice,
    limits::{Budget, LimitExceeded, Limits},
    special,
};

/// Finds what the named parts of a grammar match in texts.
///
/// Named parts are the named groups of its regular expressions, the rules that it marks itself
/// (`rule[capture]` of Lark and EBNF), and any rules whose names are given.
///
/// If a text can be read in several ways, the one counts that a backtracking matcher finds first, as in Perl
/// and in Rust's `regex`: alternatives are tried in their order, repeats go on as long as they can (lazy ones
/// end as soon as they can), parts in any order are tried in their order, and an automaton, which has no
/// order, takes the longest text. If a rule can derive itself, a way without such a cycle is taken.
///
/// # Examples
/// ```
/// use domino::{Captures, Grammar, Limits, Syntax};
///
/// let limits = Limits::default();
/// let grammar = Grammar::parse(Syntax::Gbnf, r#"root ::= key "=" key   key ::= [a-z]+"#, &limits)?;
/// let captures = Captures::new(&grammar, &["key"], &limits)?;
/// let found = captures.of(b"size=big")?.expect("in the language");
/// let spans: Vec<_> = found.iter().map(|capture| (capture.name, capture.span.clone())).collect();
/// assert_eq!(spans, [("key", 0..4), ("key", 5..8)]);
/// assert_eq!(captures.of(b"size=")?, None);
/// // Decided captures of a text that is not whole: the second key may still grow.
/// assert_eq!(captures.so_far(b"size=big")?, found[..1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Captures {
    network: Network,
    facts: NetworkFacts,
    /// True if there are special tokens, so that texts have marks.
    specials: bool,
    /// True if no object may have a key twice.
    keys: bool,
    /// The thought before texts.
    thought: Option<Thought>,
    limit: usize,
    /// Approximate memory in bytes.
    memory: usize,
}

/// A part of a text that has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture<'n> {
    /// The name of the rule or of the group, or the name that the grammar gives it.
    pub name: &'n str,
    /// The bytes of the text, in which special tokens have their names. May be empty.
    pub span: Range<usize>,
}

/// The reason why there are no [`Captures`] of a grammar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The grammar has no rule and no group of this name.
    #[error("the grammar has no rule or group `{name}`")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// An existing name that may be meant.
        nearest: Option<String>,
    },
    /// The grammar is too large.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
}

impl CaptureError {
    /// A hint, in one line.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Unknown { nearest: Some(nearest), .. } => format!("did you mean `{nearest}`?"),
            Self::Unknown { .. } => {
                "name a rule of the grammar, or a group `(?P<name>...)` of a regular expression in it"
                    .to_owned()
            }
            Self::Limit(limit) => limit.hint(),
        }
    }
}

impl Captures {
    /// Prepares the captures of `grammar`: of the parts that it names itself, and of the rules with these
    /// names. Linear in the grammar.
    ///
    /// # Errors
    /// If there is no rule or group of a name, if the grammar has more places than `limits.symbols`, or if
    /// the work was [cancelled](Limits::cancel).
    pub fn new(grammar: &Grammar, names: &[&str], limits: &Limits) -> Result<Self, CaptureError> {
        let mut captured: Vec<(RuleId, &str)> = grammar.captured().collect();
        let mut unknown = Vec::new();
        for &name in names {
            let rule = grammar.rules().find(|&rule| grammar.rule_name(rule) == name);
            rule.map_or_else(|| unknown.push(name), |rule| captured.push((rule, name)));
        }
        limits.look()?;
        let network = Network::new(grammar, &captured, limits.symbols)?;
        limits.look()?;
        let known = |name: &str| network.names.iter().any(|known| known == name);
        if let Some(&name) = unknown.iter().find(|name| !known(name)) {
            let rules = grammar.rules().map(|rule| grammar.rule_name(rule));
            let candidates = network.names.iter().map(String::as_str).chain(rules);
            let nearest = suggest::nearest(name, candidates).map(str::to_owned);
            return Err(CaptureError::Unknown { name: name.to_owned(), nearest });
        }
        Ok(Self {
            facts: NetworkFacts::new(&network),
            memory: memory(&network),
            network,
            specials: !grammar.specials().is_empty(),
            keys: grammar.distinct_keys().is_some(),
            thought: grammar.thought().cloned(),
            limit: limits.captures,
        })
    }

    /// The names of the captures; empty if nothing can be captured.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.network.names.iter().map(String::as_str)
    }

    /// Returns the approximate memory in bytes. Constant time.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// The captures of a text, given as [`Constraint::advance_bytes`](crate::Constraint::advance_bytes) takes
    /// it ([`Grammar::spell`]). They are in the order of where they begin, outer ones before those inside of
    /// them. A part that has matched several times comes several times. `None` if the text is not in the
    /// language, where [items that must differ](Grammar::distinct_items) are not compared.
    ///
    /// Cubic in the text at worst, linear where a byte of lookahead decides the parse.
    ///
    /// # Errors
    /// If [`Limits::captures`] is used up.
    pub fn of(&self, text: &[u8]) -> Result<Option<Vec<Capture<'_>>>, LimitExceeded> {
        if self.keys && has_key_twice(text, self.thought.as_ref())? {
            return Ok(None);
        }
        let mut budget = Spending::new(self.limit);
        let chart = self.chart(text, Extent::Whole, &mut budget)?;
        let Some(end) = chart.end else { return Ok(None) };
        let mut walk = ChartWalk::new(&self.network, &self.facts, &chart, &mut budget);
        walk.through(vec![end])?;
        let found = walk.found;
        Ok(Some(self.captures(text, found)))
    }

    /// The captures that every text with this beginning has, in the same order, up to the first place that a
    /// continuation may still change. A part that may go on is not among them. Empty if no text begins like
    /// this. Costs as much as [`of`](Self::of).
    ///
    /// # Errors
    /// If [`Limits::captures`] is used up.
    pub fn so_far(&self, text: &[u8]) -> Result<Vec<Capture<'_>>, LimitExceeded> {
        if self.keys && has_key_twice(text, self.thought.as_ref())? {
            return Ok(Vec::new());
        }
        let mut budget = Spending::new(self.limit);
        let chart = self.chart(text, Extent::Beginning, &mut budget)?;
        let mut walk = ChartWalk::new(&self.network, &self.facts, &chart, &mut budget);
        walk.so_far()?;
        let found = walk.found;
        Ok(self.captures(text, found))
    }

    fn chart(&self, text: &[u8], extent: Extent, budget: &mut Spending) -> Result<Chart, LimitExceeded> {
        // Offsets have 32 bits.
        if u32::try_from(text.len()).is_err() {
            let most = as_index(u32::MAX);
            return Err(LimitExceeded::new(Budget::Fixed, "bytes of a text with captures", most));
        }
        Chart::new(&self.network, &self.facts, text, extent, budget)
    }

    /// Maps captures to places of the text in which special tokens have their names.
    fn captures(&self, text: &[u8], found: Vec<FoundCapture>) -> Vec<Capture<'_>> {
        let mut shown: Vec<usize> = Vec::new();
        if self.specials {
            shown.push(0);
            shown.extend(text.iter().scan(0, |shown, &byte| {
                *shown += usize::from(byte != special::MARK);
                Some(*shown)
            }));
        }
        let place = |at: u32| shown.get(at as usize).copied().unwrap_or(at as usize);
        let capture = |FoundCapture { name, start, end }: FoundCapture| {
            let span = place(start)..place(end?);
            Some(Capture { name: &self.network.names[name], span })
        };
        found.into_iter().filter_map(capture).collect()
    }
}

/// Estimates the memory of a network and of the facts about it, in bytes. Linear.
fn memory(network: &Network) -> usize {
    /// Bytes of the facts about a node.
    const FACTS: usize = 96;
    let inside = |node: &Node| match node {
        Node::Ways(ways) => size_of_val(&ways[..]),
        Node::Text(text, _) => text.len(),
        Node::Character(class, _) => size_of_val(class.ranges()),
        Node::Byte(class, _) => size_of_val(class.ranges()),
        _ => 0,
    };
    network.nodes().iter().map(|node| size_of::<Node>() + FACTS + inside(node)).sum()
}
