//! Terminals as automata: for `&`, `~`, and for rules that end as soon as they can.

use crate::{
    grammar::{
        GrammarError, Pattern, PatternKind, errors::quoted, regex, regular::Language, source::Span,
        spelled::Unfolded, substring,
    },
    ids::{ExprId, as_index},
    limits::{Budget, LimitExceeded, Limits},
};

use super::{
    Lexing,
    scope::Meaning,
    syntax::{Ending, ExprKind, LarkExpr, is_terminal},
    translate::{ExprSite, LarkResult, LarkTranslator},
};

/// The language of a rule that ends as soon as it can.
#[derive(Debug)]
pub(super) struct LazyLanguage {
    /// The texts of the rule.
    pub(super) text: Language,
    /// The texts that a lexer has read when the rule is complete.
    pub(super) whole: Language,
}

/// The language of a leaf of a grammar.
fn language_of(kind: &PatternKind, limits: &Limits) -> Result<Language, LimitExceeded> {
    let automaton = match kind {
        PatternKind::Expression(hir) => return Language::of(hir, limits),
        PatternKind::Automaton(automaton) => automaton,
        PatternKind::Substrings(text) => &substring::of_text(text)?,
        PatternKind::LengthBounded(bounded) => &bounded.product(limits.dfa_states)?,
        PatternKind::Spelled(spelled) => &spelled.product(limits.dfa_states)?,
    };
    Ok(Language::of_automaton(automaton))
}

impl<'a, 't> LarkTranslator<'a, 't, '_> {
    /// The language of a part of a terminal.
    pub(super) fn language(
        &mut self,
        expr: &'a LarkExpr<'t>,
        place: &ExprSite<'a, 't>,
    ) -> LarkResult<Language> {
        let limits = self.limits;
        let made = match &expr.kind {
            ExprKind::Sequence(_) => {
                let parts = self.languages_of(expr, place)?;
                Language::sequence(&parts, limits)
            }
            ExprKind::Choice(_) => {
                let parts = self.languages_of(expr, place)?;
                Language::union(&parts, limits)
            }
            ExprKind::Both(_) => {
                let parts = self.languages_of(expr, place)?;
                let mut all = parts.into_iter();
                match all.next() {
                    Some(first) => all.try_fold(first, |both, part| both.and(&part, limits)),
                    None => Language::texts(limits),
                }
            }
            ExprKind::Not(part) => self.language(part, place)?.not(limits),
            ExprKind::Repeat(part, least, most) => self.language(part, place)?.repeat(*least, *most, limits),
            ExprKind::Name(name) => return self.named(name, expr.span, place),
            _ => {
                let leaf = self.leaf(expr)?;
                if let Some(class) = leaf.classes().first() {
                    return Err(self.no_automaton(class.name(), expr.span));
                }
                language_of(leaf.kind(), limits)
            }
        };
        made.map_err(|limit| self.limit(limit, expr.span))
    }

    fn languages_of(
        &mut self,
        expr: &'a LarkExpr<'t>,
        place: &ExprSite<'a, 't>,
    ) -> LarkResult<Vec<Language>> {
        expr.parts().iter().map(|part| self.language(part, place)).collect()
    }

    /// The language of a terminal, or of a parameter's value.
    fn named(&mut self, name: &str, span: Span, place: &ExprSite<'a, 't>) -> LarkResult<Language> {
        if let Some(argument) = place.arguments.as_ref().and_then(|arguments| arguments.get(name)) {
            if let ExprKind::Json(_) | ExprKind::Nested(_) | ExprKind::Template(..) = argument.expr.kind {
                return Err(self.no_terminal(name, span));
            }
            let argument_place = ExprSite { lexeme: true, ..argument.place.clone() };
            return self.language(argument.expr, &argument_place);
        }
        let key = place.scope.name(name);
        if let Some(known) = self.languages.get(&key) {
            return Ok(known.clone());
        }
        let made = match place.scope.meaning(name) {
            Some(Meaning::Imported(expression)) => {
                let (pattern, _) = regex::leaf(expression, "", self.limits)?;
                language_of(pattern.kind(), self.limits).map_err(|limit| self.limit(limit, span))?
            }
            Some(Meaning::Defined(definition)) if is_terminal(name) => {
                // Terminals in terminals have no cycle, but may be nested as deep as the text likes.
                if self.depth >= self.limits.regex_nesting {
                    let most = as_index(self.limits.regex_nesting);
                    let limit =
                        LimitExceeded::new(Budget::RegexNesting, "levels of terminals in each other", most);
                    return Err(self.limit(limit, span).with_hint("the budget is `Limits::regex_nesting`"));
                }
                self.depth += 1;
                let place = ExprSite { scope: place.scope.clone(), arguments: None, lexeme: true };
                let made = self.language(&definition.body, &place);
                self.depth -= 1;
                made?
            }
            _ => return Err(self.no_terminal(name, span)),
        };
        self.languages.insert(key, made.clone());
        Ok(made)
    }

    fn no_automaton(&self, class: &str, span: Span) -> GrammarError {
        GrammarError::unsupported(format!(
            "{} is one token of the model, and this is about text",
            quoted(class)
        ))
        .at(self.source(), span, "")
        .with_hint("`&`, `~`, `lazy` and the like, and greedy lexing, are for text")
    }

    fn no_terminal(&self, name: &str, span: Span) -> GrammarError {
        GrammarError::syntax(format!("{} stands for no terminal, and this is one lexeme", quoted(name)))
            .at(self.source(), span, "")
            .with_hint("make it a terminal, with a name of capital letters")
    }

    /// The language of a rule with an option that ends it, and what a lexer has read when it stops: for
    /// `stop` that includes the stop, which is not part of the rule's text.
    pub(super) fn ended(
        &mut self,
        body: &'a LarkExpr<'t>,
        ending: &'a Ending<'t>,
        place: &ExprSite<'a, 't>,
    ) -> LarkResult<LazyLanguage> {
        let limits = self.limits;
        let text = self.language(body, place)?;
        let (value, keep) = match ending {
            Ending::Lazy => {
                let text = text.shortest();
                return Ok(LazyLanguage { whole: text.clone(), text });
            }
            Ending::Suffix(value) => (value, true),
            Ending::Stop(value) => (value, false),
        };
        let value_span = value.span;
        let exceeded = |translator: &Self, limit| translator.limit(limit, value_span);
        // An empty end is the end of the whole text: the body may end anywhere.
        if matches!(&value.kind, ExprKind::Text { text, .. } if text.is_empty()) {
            let whole = Language::union(&[], limits).map_err(|limit| exceeded(self, limit))?;
            return Ok(LazyLanguage { text, whole });
        }
        let end = self.language(value, place)?;
        let whole = Language::sequence(&[text, end.clone()], limits).map(|whole| whole.shortest());
        let whole = whole.map_err(|limit| exceeded(self, limit))?;
        let text = if keep { Ok(whole.clone()) } else { whole.before(&end, limits) };
        Ok(LazyLanguage { text: text.map_err(|limit| exceeded(self, limit))?, whole })
    }

    /// Writes an expression as one terminal, whatever is beside it.
    pub(super) fn one_terminal(
        &mut self,
        expr: &'a LarkExpr<'t>,
        place: &ExprSite<'a, 't>,
    ) -> LarkResult<ExprId> {
        let language = self.language(expr, place)?;
        self.language_leaf(&language, expr.span)
    }

    /// Writes a leaf; with greedy lexing one that stays a terminal of its own.
    pub(super) fn terminal(&mut self, pattern: Pattern, span: Span) -> LarkResult<ExprId> {
        match (self.lexing, pattern.kind()) {
            (Lexing::Greedy, PatternKind::Expression(hir)) => {
                if let Some(class) = pattern.classes().first() {
                    return Err(self.no_automaton(class.name(), span));
                }
                let language = Language::of(hir, self.limits).map_err(|limit| self.limit(limit, span))?;
                self.language_leaf(&language, span)
            }
            _ => self.pattern(pattern, span),
        }
    }

    pub(super) fn language_leaf(&mut self, language: &Language, span: Span) -> LarkResult<ExprId> {
        let automaton = language.automaton(self.limits).map_err(|limit| self.limit(limit, span))?;
        self.pattern(Pattern::automaton(automaton), span)
    }
}
