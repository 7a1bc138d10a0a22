//! The written lexicalisation: finds the terminals that a lexer for the grammar would have.
//!
//! One pass over the expressions, parts before wholes, decides for each whether it is a *lexeme*: a stretch
//! of characters that may be a terminal or a part of one, as defined at
//! [`Terminals::Written`](crate::Terminals::Written). Sequences that are no lexemes are regrouped, so that
//! neighbours that are one terminal become one expression. The language stays the same.

use super::rewrite::WorkGrammar;
use crate::{
    grammar::Expr,
    ids::{ExprId, RuleId},
    limits::{LimitExceeded, Limits},
};

/// Factor on [`Limits::fold_states`] for written terminals: this lexicalisation is about which parts are
/// terminals, so automata may be larger before that is given up.
pub(in crate::lower) const STATES_FACTOR: usize = 16;

/// The other rules that a lexeme mentions, apart from those of single characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Names {
    None,
    /// Rules that nothing else mentions.
    Own,
    /// Some rules that others mention too: they are tokens of their own.
    Shared,
}

/// A stretch of characters that may be a terminal or a part of one.
#[derive(Debug, Clone, Copy)]
struct Lexeme {
    /// Has it a class? A stretch without one is left to its literals.
    class: bool,
    /// Is each of its texts one character?
    single: bool,
    /// Is it a character, or a choice of one and of bounded texts, such as escapes?
    character: bool,
    /// Is there a longest text?
    bounded: bool,
    /// Has it any number of repeats of a class?
    long: bool,
    /// Is it a literal, or a choice of literals, that must be there?
    literal: bool,
    /// Has it such a literal as a part?
    literals: bool,
    names: Names,
    /// Must one of those rules be there?
    required: bool,
    /// Is it a terminal even where it is not the whole of a rule?
    alone: bool,
}

impl Lexeme {
    const EMPTY: Self = Self {
        class: false,
        single: false,
        character: false,
        bounded: true,
        long: false,
        literal: false,
        literals: false,
        names: Names::None,
        required: false,
        alone: true,
    };

    /// A regular expression, whose inside does not matter.
    const REGEX: Self = Self { class: true, bounded: false, long: true, ..Self::EMPTY };

    /// Returns a literal as a lexeme; `None` for a word, which is a token by itself.
    fn literal(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() {
            return Some(Self::EMPTY);
        }
        let text = String::from_utf8_lossy(bytes);
        let (characters, letters) =
            (text.chars().count(), text.chars().filter(|c| c.is_alphabetic()).count());
        let word = letters > 1 || letters > 0 && characters > 2;
        let single = characters == 1;
        (!word).then_some(Self { single, literal: true, literals: true, alone: false, ..Self::EMPTY })
    }

    /// Appends `next`, as long as the result is one lexeme.
    fn then(self, next: Self) -> Option<Self> {
        let names = self.names.max(next.names);
        let literals = self.literals || next.literal;
        let apart = self.literal && next.literal
            || names == Names::Shared
            || names == Names::Own && literals
            || self.required && next.required;
        (!apart).then_some(Self {
            class: self.class || next.class,
            single: false,
            character: false,
            bounded: self.bounded && next.bounded,
            long: self.long || next.long,
            // Only the last part counts: the next one stands beside it.
            literal: next.literal,
            literals,
            names,
            required: self.required || next.required,
            alone: !literals,
        })
    }

    /// Returns the choice of these.
    fn any(parts: &[Self]) -> Self {
        let beside_one = parts.iter().any(|part| part.character);
        let bounded = parts.iter().all(|part| part.bounded);
        let all_single = parts.iter().all(|part| part.single);
        // An alternative to a character is a character in other words: an escape.
        let names = |part: &Self| if beside_one && part.bounded { Names::None } else { part.names };
        let all_literals = parts.iter().all(|part| part.literal);
        Self {
            // Digits may be listed one by one.
            class: all_single || parts.iter().any(|part| part.class),
            single: all_single,
            character: beside_one && bounded || all_single,
            bounded,
            long: parts.iter().any(|part| part.long),
            literal: all_literals && !all_single,
            literals: all_literals && !all_single,
            names: parts.iter().map(names).max().unwrap_or(Names::None),
            required: parts.iter().any(|part| part.required),
            alone: beside_one || parts.iter().all(|part| part.alone || part.literal),
        }
    }

    /// Repeats the lexeme; `None` if that makes several lexemes.
    fn repeated(self, min: u32, max: Option<u32>) -> Option<Self> {
        if max.is_some_and(|max| max <= 1) {
            let required = min > 0 && self.required;
            let once = Self { single: false, character: false, required, ..self };
            return Some(Self { literal: false, literals: false, ..once });
        }
        let apart = self.long || self.names == Names::Shared;
        let once = min > 0 && self.literal;
        (!apart).then_some(Self {
            // One character any number of times is a class of one character.
            class: self.class || self.single,
            single: false,
            character: false,
            bounded: self.bounded && max.is_some(),
            long: self.class && max.is_none(),
            literal: once,
            literals: once,
            alone: self.alone || self.literal,
            ..self
        })
    }

    /// Is it one terminal?
    fn is_token(self) -> bool {
        self.class && self.names != Names::Shared
    }
}

/// Regroups the rules, given callees first. Returns the expressions that are terminals, by number. `O(n log
/// n)`.
pub(in crate::lower) fn separate(
    work: &mut WorkGrammar,
    components: &[Vec<RuleId>],
    limits: &Limits,
) -> Result<Vec<bool>, LimitExceeded> {
    let mut pass = LexemePass {
        mentions: work.mention_counts(components),
        rules: vec![None; work.rule_count()],
        known: vec![None; work.exprs().len()],
        renamed: (0..work.exprs().len()).filter_map(ExprId::from_index).collect(),
        seen: vec![false; work.exprs().len()],
        tokens: Vec::new(),
        limits,
    };
    for &rule in components.iter().flatten() {
        pass.rule(work, rule)?;
    }
    let mut tokens = vec![false; work.exprs().len()];
    pass.tokens.iter().for_each(|token| tokens[token.index()] = true);
    Ok(tokens)
}

struct LexemePass<'a> {
    /// Number of rules that mention each rule.
    mentions: Vec<u32>,
    /// Lexemes of the rules' bodies; `None` where they are none, or recursive.
    rules: Vec<Option<Lexeme>>,
    /// Lexemes of the original expressions.
    known: Vec<Option<Lexeme>>,
    /// New number of each expression.
    renamed: Vec<ExprId>,
    seen: Vec<bool>,
    tokens: Vec<ExprId>,
    limits: &'a Limits,
}

impl LexemePass<'_> {
    /// Finds the tokens in the body of a rule, parts first, and regroups everything else.
    fn rule(&mut self, work: &mut WorkGrammar, rule: RuleId) -> Result<(), LimitExceeded> {
        for expr in work.unseen_below(rule, &mut self.seen) {
            let lexeme = self.lexeme(work, expr);
            self.known[expr.index()] = lexeme;
            if lexeme.is_some_and(|lexeme| lexeme.alone && lexeme.is_token()) {
                self.tokens.push(expr);
            } else {
                self.renamed[expr.index()] = self.regrouped(work, expr)?;
            }
        }
        let body = work.body(rule);
        let lexeme = self.known[body.index()];
        self.rules[rule.index()] = lexeme;
        if lexeme.is_some_and(Lexeme::is_token) {
            self.tokens.push(body);
        } else {
            work.set_body(rule, self.renamed[body.index()]);
        }
        Ok(())
    }

    /// Returns an expression as a lexeme, from those of its parts; `None` if it is none.
    fn lexeme(&self, work: &WorkGrammar, expr: ExprId) -> Option<Lexeme> {
        if work.is_regex(expr) {
            return Some(Lexeme::REGEX);
        }
        let known = |part: &ExprId| self.known[part.index()];
        match work.expr(expr) {
            // An automaton is a terminal by itself, whatever stands beside it.
            Expr::Pattern(pattern) if pattern.hir().is_none() => None,
            Expr::Pattern(pattern) => match pattern.as_literal() {
                Some(literal) => Lexeme::literal(literal),
                None => Some(Lexeme { class: true, single: true, character: true, ..Lexeme::EMPTY }),
            },
            Expr::Rule(rule) => self.rules[rule.index()].map(|body| self.mention(*rule, body)),
            Expr::Sequence(parts_of) => {
                let mut parts = parts_of.iter();
                let Some(first) = parts.next() else { return Some(Lexeme::EMPTY) };
                let whole = parts.try_fold(known(first)?, |whole, part| whole.then(known(part)?))?;
                let quoted = self.quoted(work, parts_of, 0) == Some(parts_of.len());
                Some(Lexeme { literal: false, alone: whole.alone || quoted, ..whole })
            }
            Expr::Alternatives(parts) => {
                let parts: Option<Vec<Lexeme>> = parts.iter().map(known).collect();
                parts.filter(|parts| !parts.is_empty()).map(|parts| Lexeme::any(&parts))
            }
            Expr::Repeat { part, min, max } => {
                let part = known(part)?;
                // Repetition that was recursion is a list, unless of characters.
                if work.is_rewritten(expr) && !part.single {
                    return None;
                }
                part.repeated(*min, *max)
            }
            Expr::AnyOrder(_) => None,
        }
    }

    /// Returns the lexeme of a mention of a rule with this body.
    fn mention(&self, rule: RuleId, body: Lexeme) -> Lexeme {
        if body.character || body.literal {
            return Lexeme { alone: body.character, ..body };
        }
        let own = self.mentions[rule.index()] <= 1;
        let names = if own { body.names.max(Names::Own) } else { Names::Shared };
        // The rule is a terminal by itself where it is not a part of a larger one.
        Lexeme { names, required: true, literals: false, alone: false, ..body }
    }

    /// Regroups an expression that is no terminal, over its regrouped parts.
    fn regrouped(&mut self, work: &mut WorkGrammar, expr: ExprId) -> Result<ExprId, LimitExceeded> {
        let new = |parts: &[ExprId]| -> Vec<ExprId> {
            parts.iter().map(|part| self.renamed[part.index()]).collect()
        };
        let regrouped = match work.expr(expr).clone() {
            Expr::Pattern(_) | Expr::Rule(_) => return Ok(expr),
            Expr::Alternatives(parts) => Expr::Alternatives(new(&parts)),
            Expr::Repeat { part, min, max } => Expr::Repeat { part: self.renamed[part.index()], min, max },
            Expr::Sequence(parts) => Expr::Sequence(self.stretches(work, &parts)?),
            Expr::AnyOrder(parts) => Expr::AnyOrder(Box::new(parts.map(|part| self.renamed[part.index()]))),
        };
        if regrouped == *work.expr(expr) { Ok(expr) } else { work.push(regrouped, self.limits) }
    }

    /// Returns the parts of a sequence, with neighbours that are one terminal joined.
    fn stretches(&mut self, work: &mut WorkGrammar, parts: &[ExprId]) -> Result<Vec<ExprId>, LimitExceeded> {
        let mut row = Vec::new();
        let mut at = 0;
        while at < parts.len() {
            let end = match self.quoted(work, parts, at) {
                Some(end) => end,
                None => self.stretch(parts, at).max(at + 1),
            };
            if end == at + 1 {
                row.push(self.renamed[parts[at].index()]);
            } else {
                // As they were: what is in a terminal is not taken apart.
                let token = work.sequence(parts[at..end].to_vec(), self.limits)?;
                self.tokens.push(token);
                row.push(token);
            }
            at = end;
        }
        Ok(row)
    }

    /// Returns the end of the longest stretch that begins at `from`, has a class and no literal that must be
    /// there; `from` if there is none.
    fn stretch(&self, parts: &[ExprId], from: usize) -> usize {
        let plain = |at: usize| {
            let part = *parts.get(at)?;
            self.known[part.index()].filter(|part| !part.literal && part.names != Names::Shared)
        };
        let Some(mut whole) = plain(from) else { return from };
        let mut end = from + 1;
        while let Some(longer) = plain(end).and_then(|part| whole.then(part)) {
            (whole, end) = (longer, end + 1);
        }
        if whole.is_token() { end } else { from }
    }

    /// Returns the end of a stretch in quotes that begins at `from`.
    fn quoted(&self, work: &WorkGrammar, parts: &[ExprId], from: usize) -> Option<usize> {
        let literal = |at: usize| match work.expr(*parts.get(at)?) {
            Expr::Pattern(pattern) => pattern.as_literal(),
            _ => None,
        };
        let quote = literal(from).filter(|_| self.known[parts[from].index()].is_some())?;
        let end = self.stretch(parts, from + 1);
        (end > from + 1 && literal(end) == Some(quote)).then_some(end + 1)
    }
}
