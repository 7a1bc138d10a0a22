//! Extensions in regular expressions: groups with special names, such as `(?P<SUBSTRING_OF>abc)`.
//!
//! [`text`](super::text) finds the groups, replaces those that are short for an expression, and
//! numbers the names of the others, so that each may come more than once. [`take`] reads their arguments in
//! the syntax tree, where texts and alternatives are as written; [`ExtensionUses::pattern`] makes automata of
//! the translated expression, in which flags have had their effect.

use regex_syntax::{
    ast::{self, Ast, Group, GroupKind},
    hir::{Capture, ClassUnicode, ClassUnicodeRange, Hir, HirKind},
};

use super::text::PreparedRegex;
use crate::{
    grammar::{
        Automaton, GrammarError, Pattern,
        errors::quoted,
        extension::{self, Extension},
        regular::Language,
        source::Span,
        substring,
    },
    limits::{Budget, LimitExceeded, Limits},
    special::TokenClass,
};

/// The name of the groups that the alternatives of lists and subsequences become.
const ELEMENT: &str = "ELEMENT";

/// The flags that change the texts that an argument stands for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Folding {
    pub(super) ignore_case: bool,
    pub(super) unicode: bool,
}

/// Reads the arguments that are more than expressions: the texts of `SUBSTRING_OF`, which are taken out but
/// for one character, and the alternatives of lists, which become groups. The nesting limit bounds the
/// recursion.
pub(super) fn take(ast: &mut Ast, prepared: &mut PreparedRegex<'_>) -> Result<(), GrammarError> {
    match ast {
        Ast::Group(group) => {
            if let Some(index) = index(group) {
                match prepared.uses().get(index).map(|used| used.extension) {
                    Some(Extension::SubstringOf) => take_text(group, index, prepared)?,
                    Some(extension) if extension.is_delimited() => take_elements(group, index, prepared)?,
                    _ => {}
                }
            }
            take(&mut group.ast, prepared)
        }
        Ast::Repetition(repetition) => take(&mut repetition.ast, prepared),
        Ast::Alternation(choice) => choice.asts.iter_mut().try_for_each(|part| take(part, prepared)),
        Ast::Concat(concat) => concat.asts.iter_mut().try_for_each(|part| take(part, prepared)),
        _ => Ok(()),
    }
}

fn take_text(group: &mut Group, index: usize, prepared: &mut PreparedRegex<'_>) -> Result<(), GrammarError> {
    let parts = match &*group.ast {
        Ast::Concat(concat) => &concat.asts[..],
        other => std::slice::from_ref(other),
    };
    let mut text = String::new();
    for part in parts {
        let Ast::Literal(literal) = part else {
            let error = GrammarError::syntax("the argument of `SUBSTRING_OF` is a text").at(
                prepared.source(),
                prepared.place(part.span()),
                "not a character",
            );
            return Err(error.with_hint(
                "special characters are made literal by a backslash; flags stand before the group",
            ));
        };
        text.push(literal.c);
    }
    // The group must not be left empty, or repeats of it would be taken for repeats of nothing.
    if let Some(first) = parts.first().cloned() {
        *group.ast = first;
    }
    prepared.uses_mut()[index].text = text;
    Ok(())
}

fn take_elements(group: &mut Group, index: usize, prepared: &PreparedRegex<'_>) -> Result<(), GrammarError> {
    let ExtensionUse { extension, place, ref delimiters, .. } = prepared.uses()[index];
    let wrong = |message: String, place: Span| {
        let error = GrammarError::syntax(message).at(prepared.source(), place, "");
        Err(error.with_hint(format!("it is written {}", form(extension))))
    };
    match delimiters[..] {
        [] => return wrong(format!("`{extension}` has no delimiter"), place),
        [_] => {}
        [_, second, ..] => return wrong(format!("`{extension}` has two delimiters"), second),
    }
    let Ast::Alternation(choice) = &mut *group.ast else {
        return wrong(format!("the delimiter of `{extension}` is no alternative beside its elements"), place);
    };
    let mut found = false;
    for (number, part) in choice.asts.iter_mut().enumerate() {
        if let Ast::Group(group) = part
            && let GroupKind::CaptureName { name, .. } = &group.kind
            && name.name == delimiter(index, 1)
        {
            found = true;
            continue;
        }
        let span = *part.span();
        let name = ast::CaptureName { span, name: format!("{ELEMENT}[{number}]"), index: 0 };
        let element = std::mem::replace(part, Ast::empty(span));
        let kind = GroupKind::CaptureName { starts_with_p: true, name };
        *part = Ast::group(Group { span, kind, ast: Box::new(element) });
    }
    if found {
        Ok(())
    } else {
        wrong(format!("the delimiter of `{extension}` is no alternative"), delimiters[0])
    }
}

/// The extensions of an expression, with what is needed to translate them.
pub(super) struct ExtensionUses<'a, 't> {
    pub(super) prepared: &'a PreparedRegex<'t>,
    /// The flags of extensions, by their numbers, where they matter.
    pub(super) foldings: Vec<(usize, Folding)>,
    pub(super) limits: &'a Limits,
}

impl ExtensionUses<'_, '_> {
    /// The language of an expression with extensions in it.
    pub(super) fn pattern(&self, hir: &Hir) -> Result<Pattern, GrammarError> {
        // The automaton of a text that is the whole expression may be large.
        let mut whole = hir;
        while let HirKind::Capture(group) = whole.kind() {
            match self.used(group) {
                Some((index, ExtensionUse { extension: Extension::SubstringOf, .. })) => {
                    return self.substrings_alone(index);
                }
                Some(_) => break,
                None => whole = &group.sub,
            }
        }
        let language = self.language(hir)?;
        let automaton = language.automaton(self.limits).map_err(|limit| self.limit(limit, 0))?;
        Ok(Pattern::automaton(automaton))
    }

    fn used(&self, group: &Capture) -> Option<(usize, &ExtensionUse)> {
        let index = number(group.name.as_deref()?)?;
        Some((index, self.prepared.uses().get(index)?))
    }

    fn limit(&self, limit: LimitExceeded, index: usize) -> GrammarError {
        let place = self.prepared.uses().get(index).map_or_else(Span::default, |used| used.place);
        let hint = limit.hint();
        GrammarError::limit(limit).at(self.prepared.source(), place, "").with_hint(hint)
    }

    /// The language of a part; [`PATTERN_NESTING`](crate::limits::PATTERN_NESTING) bounds the recursion.
    fn language(&self, hir: &Hir) -> Result<Language, GrammarError> {
        let limited = |limit| self.limit(limit, 0);
        if hir.properties().explicit_captures_len() == 0 {
            return Language::of(hir, self.limits).map_err(limited);
        }
        match hir.kind() {
            HirKind::Capture(group) => match self.used(group) {
                Some((index, used)) => self.extension(index, used, &group.sub),
                None => self.language(&group.sub),
            },
            HirKind::Repetition(repeat) => {
                let part = self.language(&repeat.sub)?;
                part.repeat(repeat.min, repeat.max, self.limits).map_err(limited)
            }
            HirKind::Concat(parts) => {
                let parts = self.languages(parts, Hir::concat)?;
                Language::sequence(&parts, self.limits).map_err(limited)
            }
            HirKind::Alternation(parts) => {
                let parts = self.languages(parts, Hir::alternation)?;
                Language::union(&parts, self.limits).map_err(limited)
            }
            _ => Language::of(hir, self.limits).map_err(limited),
        }
    }

    /// The languages of parts, with neighbours that have no groups joined.
    fn languages(&self, parts: &[Hir], join: fn(Vec<Hir>) -> Hir) -> Result<Vec<Language>, GrammarError> {
        let plain = |part: &Hir| part.properties().explicit_captures_len() == 0;
        let runs = parts.chunk_by(|one, other| plain(one) && plain(other));
        runs.map(|run| match run {
            [part] => self.language(part),
            run => self.language(&join(run.to_vec())),
        })
        .collect()
    }

    fn extension(&self, index: usize, used: &ExtensionUse, argument: &Hir) -> Result<Language, GrammarError> {
        let limits = self.limits;
        let made = match used.extension {
            Extension::SubstringOf => {
                let automaton = self.substrings(index)?;
                if automaton.states().len() > limits.dfa_states {
                    let what = "DFA states of a terminal";
                    let limit = LimitExceeded::new(Budget::DfaStates, what, limits.dfa_states);
                    return Err(self.limit(limit, index));
                }
                Ok(Language::of_automaton(&automaton))
            }
            extension if extension.is_delimited() => {
                let HirKind::Alternation(parts) = argument.kind() else { return self.language(argument) };
                let is_delimiter = |part: &&Hir| match part.kind() {
                    HirKind::Capture(group) => {
                        group.name.as_deref().is_some_and(|name| name.starts_with(DELIMITER))
                    }
                    _ => false,
                };
                let (delimiters, elements): (Vec<&Hir>, Vec<&Hir>) = parts.iter().partition(is_delimiter);
                let of = |parts: Vec<&Hir>| -> Result<Vec<Language>, GrammarError> {
                    parts.into_iter().map(|part| self.language(part)).collect()
                };
                let (delimiters, elements) = (of(delimiters)?, of(elements)?);
                Language::union(&delimiters, limits)
                    .and_then(|delimiter| extension::delimited(extension, &elements, &delimiter, limits))
            }
            _ => {
                let stop = self.language(argument)?;
                if stop.has_empty_text() {
                    let error = GrammarError::syntax("the stop text may be empty").at(
                        self.prepared.source(),
                        used.place,
                        "nothing would come before it",
                    );
                    return Err(error.with_hint("every way to write the stop has a character at least"));
                }
                extension::text_until(&stop, limits)
            }
        };
        made.map_err(|limit| self.limit(limit, index))
    }

    /// The substrings of a text that is the whole expression.
    fn substrings_alone(&self, index: usize) -> Result<Pattern, GrammarError> {
        if self.foldings.iter().any(|(of, folding)| *of == index && folding.ignore_case) {
            return self.substrings(index).map(Pattern::automaton);
        }
        let ExtensionUse { text, .. } = &self.prepared.uses()[index];
        self.of_characters(index)?;
        substring::pattern(text).map_err(|limit| self.limit(limit, index))
    }

    /// The flags under which the characters of a text are taken.
    fn of_characters(&self, index: usize) -> Result<Folding, GrammarError> {
        let ExtensionUse { text, place, .. } = &self.prepared.uses()[index];
        let folding = self.foldings.iter().find(|(of, _)| *of == index).map(|&(_, folding)| folding);
        let folding = folding.unwrap_or(Folding { ignore_case: false, unicode: true });
        if !folding.unicode && !text.is_ascii() {
            let error = GrammarError::unsupported("without the flag `u`, `SUBSTRING_OF` takes ASCII alone");
            return Err(error
                .at(self.prepared.source(), *place, "")
                .with_hint("write `(?-u)` behind it, or in a group of its own"));
        }
        Ok(folding)
    }

    fn substrings(&self, index: usize) -> Result<Automaton, GrammarError> {
        let ExtensionUse { text, .. } = &self.prepared.uses()[index];
        let Folding { ignore_case, unicode } = self.of_characters(index)?;
        let made = if ignore_case {
            substring::of_text_in_any_case(text, |c| cases(c, unicode))
        } else {
            substring::of_text(text)
        };
        made.map_err(|limit| self.limit(limit, index))
    }
}

/// The characters that differ from one only by case, ascending.
fn cases(c: char, unicode: bool) -> Vec<char> {
    if !unicode {
        let mut both = vec![c.to_ascii_uppercase(), c.to_ascii_lowercase()];
        both.dedup();
        return both;
    }
    let mut class = ClassUnicode::new([ClassUnicodeRange::new(c, c)]);
    class.case_fold_simple();
    class.iter().flat_map(|range| range.start()..=range.end()).collect()
}

/// The name of the group that is the delimiter in a list or subsequence.
pub(super) const DELIMITER: &str = "DELIMITER";

const OWN_GROUP: &str = "a group that is no extension may have any name in small letters";

/// A group with the name of an extension.
#[derive(Debug)]
pub(super) struct ExtensionUse {
    pub(super) extension: Extension,
    /// The head of the group.
    pub(super) place: Span,
    /// The heads of the groups in it that are named [`DELIMITER`].
    pub(super) delimiters: Vec<Span>,
    /// The text of a [`SubstringOf`](Extension::SubstringOf).
    pub(super) text: String,
}

impl ExtensionUse {
    pub(super) fn new(extension: Extension, place: Span) -> Self {
        Self { extension, place, delimiters: Vec::new(), text: String::new() }
    }
}

/// The name of the first, second, ... delimiter of an extension.
pub(super) fn delimiter(index: usize, number: usize) -> String {
    format!("{DELIMITER}[{index}.{number}]")
}

/// The form of an extension, for hints.
pub(super) fn form(extension: Extension) -> &'static str {
    match extension {
        Extension::QuotedText => "`(?P<QUOTED_TEXT>)`",
        Extension::UnquotedText => "`(?P<UNQUOTED_TEXT>)`",
        Extension::TextUntil => "`(?P<TEXT_UNTIL>stop)`",
        Extension::SubstringOf => "`(?P<SUBSTRING_OF>some text)`",
        Extension::DelimitedList => "`(?P<DELIMITED_LIST>element|(?P<DELIMITER>, ))`",
        Extension::DelimitedSubsequenceOf => "`(?P<DELIMITED_SUBSEQUENCE_OF>one|two|(?P<DELIMITER>, ))`",
        Extension::Token(TokenClass::Text) => "`(?P<TEXT_TOKEN>)`",
        Extension::Token(TokenClass::Paragraph) => "`(?P<PARAGRAPH_TOKEN>)`",
        Extension::Token(TokenClass::Image) => "`(?P<IMAGE>)`",
    }
}

/// The extension with the name of a group, if it is one.
///
/// # Errors
/// If the name is in capital letters and nearly that of an extension; without a place yet, with the label for
/// it.
pub(super) fn of_name(name: &str) -> Result<Option<Extension>, (GrammarError, String)> {
    // The names of groups may have brackets, which number those of extensions.
    let plain = name.split('[').next().unwrap_or(name);
    let found = Extension::named(plain);
    if plain == name && found.is_some() {
        return Ok(found);
    }
    let shouted = plain.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'));
    match Extension::nearest(plain).filter(|_| shouted) {
        None => Ok(None),
        Some(meant) => {
            let error =
                GrammarError::syntax(format!("there is no extension {}", quoted(name))).with_hint(OWN_GROUP);
            Err((error, format!("did you mean `{meant}`?")))
        }
    }
}

/// The number of a group, by its name.
pub(super) fn number(name: &str) -> Option<usize> {
    let (plain, rest) = name.split_once('[')?;
    Extension::named(plain)?;
    rest.strip_suffix(']')?.parse().ok()
}

/// The number of the extension that a group is, if it is one.
pub(super) fn index(group: &Group) -> Option<usize> {
    match &group.kind {
        GroupKind::CaptureName { name, .. } => number(&name.name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        grammar::{Grammar, Syntax, mistakes},
        limits::Limits,
    };

    /// Golden file: expressions with a mistake, and the message of each.
    #[test]
    fn mistakes_are_shown_where_they_are() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/grammar/regex/extensions_mistakes.txt");
        mistakes::check(include_str!("extensions_mistakes.txt"), path, |text| {
            Grammar::parse(Syntax::Regex, text, &Limits::default())
        });
    }
}
