//! Terminals as automata: for `&`, `~`, and rules that end as soon as they can.

use crate::{
    grammar::{GrammarError, PatternKind, error::quoted, regex, regular::Language, source::Span},
    ids::ExprId,
    limits::{Budget, LimitExceeded},
};

use super::{
    ast::{Ending, Expr, Kind},
    scope::Meaning,
    translate::{Place, Translated, Translator},
};

impl<'a, 't> Translator<'a, 't, '_> {
    /// The language of a part of a terminal.
    pub(super) fn language(&mut self, expr: &'a Expr<'t>, place: &Place<'a, 't>) -> Translated<Language> {
        let limits = self.limits;
        let made = match &expr.kind {
            Kind::Sequence(_) => {
                let parts = self.languages_of(expr, place)?;
                Language::sequence(&parts, limits)
            }
            Kind::Choice(_) => {
                let parts = self.languages_of(expr, place)?;
                Language::union(&parts, limits)
            }
            Kind::Both(_) => {
                let parts = self.languages_of(expr, place)?;
                let mut all = parts.into_iter();
                match all.next() {
                    Some(first) => all.try_fold(first, |both, part| both.and(&part, limits)),
                    None => Language::texts(limits),
                }
            }
            Kind::Not(part) => self.language(part, place)?.not(limits),
            Kind::Repeat(part, least, most) => self.language(part, place)?.repeat(*least, *most, limits),
            Kind::Name(name) => return self.named(name, expr.span, place),
            _ => match self.leaf(expr)?.kind() {
                PatternKind::Expression(hir) => Language::of(hir, limits),
                PatternKind::Automaton(automaton) => Ok(Language::of_automaton(automaton)),
            },
        };
        made.map_err(|limit| self.limit(limit, expr.span))
    }

    fn languages_of(&mut self, expr: &'a Expr<'t>, place: &Place<'a, 't>) -> Translated<Vec<Language>> {
        expr.parts().iter().map(|part| self.language(part, place)).collect()
    }

    /// The language of a terminal, or of what a parameter stands for.
    fn named(&mut self, name: &str, span: Span, place: &Place<'a, 't>) -> Translated<Language> {
        if let Some(argument) = place.arguments.as_ref().and_then(|arguments| arguments.get(name)) {
            if let Kind::Json(_) | Kind::Nested(_) | Kind::Template(..) = argument.expr.kind {
                return Err(self.no_terminal(name, span));
            }
            let argument_place = Place { lexeme: true, ..argument.place.clone() };
            return self.language(argument.expr, &argument_place);
        }
        let key = place.scope.name(name);
        if let Some(known) = self.languages.get(&key) {
            return Ok(known.clone());
        }
        let made = match place.scope.meaning(name) {
            Some(Meaning::Imported(expression)) => {
                let (pattern, _) = regex::leaf(expression, "", self.limits)?;
                match pattern.kind() {
                    PatternKind::Expression(hir) => {
                        Language::of(hir, self.limits).map_err(|limit| self.limit(limit, span))?
                    }
                    PatternKind::Automaton(automaton) => Language::of_automaton(automaton),
                }
            }
            Some(Meaning::Defined(definition)) if super::ast::is_terminal(name) => {
                // Terminals in terminals: no cycle, but the text may have any number of them.
                if self.depth >= self.limits.regex_nesting {
                    let most = usize::try_from(self.limits.regex_nesting).unwrap_or(usize::MAX);
                    let limit =
                        LimitExceeded::new(Budget::RegexNesting, "levels of terminals in each other", most);
                    return Err(self.limit(limit, span).with_hint("the budget is `Limits::regex_nesting`"));
                }
                self.depth += 1;
                let place = Place { scope: place.scope.clone(), arguments: None, lexeme: true };
                let made = self.language(&definition.body, &place);
                self.depth -= 1;
                made?
            }
            _ => return Err(self.no_terminal(name, span)),
        };
        self.languages.insert(key, made.clone());
        Ok(made)
    }

    fn no_terminal(&self, name: &str, span: Span) -> GrammarError {
        GrammarError::syntax(format!("{} stands for no terminal, and this is one lexeme", quoted(name)))
            .at(self.source(), span, "")
            .with_hint("make it a terminal, with a name of capital letters")
    }

    /// The language of a rule with an option that ends it.
    pub(super) fn ended(
        &mut self,
        body: &'a Expr<'t>,
        ending: &'a Ending<'t>,
        place: &Place<'a, 't>,
    ) -> Translated<Language> {
        let limits = self.limits;
        let text = self.language(body, place)?;
        let (value, keep) = match ending {
            Ending::Lazy => return Ok(text.shortest()),
            Ending::Suffix(value) => (value, true),
            Ending::Stop(value) => (value, false),
        };
        let value_span = value.span;
        // The empty text as an end is that of the whole text: the body ends where it likes.
        if matches!(&value.kind, Kind::Text { text, .. } if text.is_empty()) {
            return Ok(text);
        }
        let end = self.language(value, place)?;
        let made = Language::sequence(&[text, end.clone()], limits).map(|whole| whole.shortest());
        let made = if keep { made } else { made.and_then(|whole| whole.before(&end, limits)) };
        made.map_err(|limit| self.limit(limit, value_span))
    }

    pub(super) fn language_leaf(&mut self, language: &Language, span: Span) -> Translated<ExprId> {
        let automaton = language.automaton(self.limits).map_err(|limit| self.limit(limit, span))?;
        self.pattern(crate::grammar::Pattern::automaton(automaton), span)
    }
}
