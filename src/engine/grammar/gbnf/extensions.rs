//! [Extensions](crate::grammar::extension) in GBNF: their names, directly followed by arguments in
//! parentheses.
//!
//! Without a parenthesis directly behind it, such a name is that of a rule; and so it is if the grammar has a
//! rule of that name.

use regex_syntax::hir::Hir;

use super::{
    Actions, Failure,
    lexer::Lexer,
    macros::{Macro, MacroValue},
    user,
};
use crate::{
    grammar::{
        GrammarError, Pattern,
        errors::quoted,
        extension::{self, Extension},
        regex,
        regular::Language,
        source::Span,
        substring,
    },
    ids::ExprId,
    limits::LimitExceeded,
    special::TokenClass,
};

/// The form of an extension, for hints.
fn form(extension: Extension) -> &'static str {
    match extension {
        Extension::QuotedText => "it is written `QUOTED_TEXT()`",
        Extension::UnquotedText => "it is written `UNQUOTED_TEXT()`",
        Extension::TextUntil => "it is written `TEXT_UNTIL(\"stop\")`, with one stop or more",
        Extension::SubstringOf => "it is written `SUBSTRING_OF(\"some text\")`",
        Extension::DelimitedList => {
            "it is written `DELIMITED_LIST(\"one\", \"two\", delimiter=\", \")`; of \
            rules, `item (\", \" item)*`"
        }
        Extension::DelimitedSubsequenceOf => {
            "it is written `DELIMITED_SUBSEQUENCE_OF(\"one\", \"two\", delimiter=\", \")`"
        }
        Extension::Token(TokenClass::Text) => "it is written `TEXT_TOKEN()`",
        Extension::Token(TokenClass::Paragraph) => "it is written `PARAGRAPH_TOKEN()`",
        Extension::Token(TokenClass::Image) => "it is written `IMAGE()`",
    }
}

impl<'t> Lexer<'t> {
    /// Reads the use of an extension behind its name, if the name is one.
    pub(super) fn extension(&mut self, name: &'t str) -> Result<Option<Macro<'t>>, GrammarError> {
        if !self.rest().starts_with('(') {
            return Ok(None);
        }
        if Extension::named(name).is_none() || self.defines(name) {
            return Ok(None);
        }
        self.arguments(name).map(Some)
    }

    /// True if the text has a rule of this name. Linear, once for each name.
    fn defines(&mut self, name: &'t str) -> bool {
        let (text, dialect) = (self.text, self.dialect);
        *self.defined.entry(name).or_insert_with(|| {
            text.match_indices(name).any(|(at, _)| {
                let whole = !text[..at].ends_with(|c| dialect.is_name(c));
                whole && text[at + name.len()..].trim_start().starts_with("::=")
            })
        })
    }
}

impl<'t> Actions<'t> {
    /// Translates the use of an extension.
    pub(super) fn extension(
        &mut self,
        extension: Extension,
        call: &Macro<'t>,
        span: Span,
    ) -> Result<ExprId, Failure<'t>> {
        let mut texts: Vec<&str> = Vec::with_capacity(call.arguments.len());
        for (value, at) in &call.arguments {
            let MacroValue::Text(text) = value else {
                return Err(self.wrong(
                    *at,
                    format!("an argument of `{extension}` is no text"),
                    form(extension),
                ));
            };
            texts.push(text);
        }
        let mut delimiter = None;
        for (name, value, at) in &call.named {
            match value {
                MacroValue::Text(text)
                    if *name == "delimiter" && extension.is_delimited() && delimiter.is_none() =>
                {
                    delimiter = Some(text);
                }
                _ => {
                    let message = format!("`{extension}` takes no such {}", quoted(name));
                    return Err(self.wrong(*at, message, form(extension)));
                }
            }
        }
        let wrong = match (extension, &texts[..]) {
            (Extension::QuotedText | Extension::UnquotedText | Extension::Token(_), [_, ..]) => {
                Some("takes no argument")
            }
            (Extension::SubstringOf, []) => Some("needs a text"),
            (Extension::SubstringOf, [_, _, ..]) => Some("takes one text"),
            (Extension::SubstringOf, [""]) => Some("needs a text that is not empty"),
            (Extension::TextUntil, []) => Some("needs a stop text"),
            (Extension::TextUntil, stops) if stops.contains(&"") => {
                Some("needs a stop text that is not empty")
            }
            (Extension::DelimitedList | Extension::DelimitedSubsequenceOf, []) => Some("needs elements"),
            (Extension::DelimitedList | Extension::DelimitedSubsequenceOf, _) if delimiter.is_none() => {
                Some("needs a delimiter")
            }
            _ => None,
        };
        if let Some(what) = wrong {
            return Err(self.wrong(span, format!("`{extension}` {what}"), form(extension)));
        }
        let pattern = self.extension_pattern(extension, &texts, delimiter.map_or("", |text| text));
        let pattern = pattern.map_err(|error| user(error.at(self.source, span, "")))?;
        self.pattern(pattern, span)
    }

    fn extension_pattern(
        &self,
        extension: Extension,
        texts: &[&str],
        delimiter: &str,
    ) -> Result<Pattern, GrammarError> {
        let limits = &self.limits;
        if let Some(expression) = extension.expression() {
            return Ok(regex::leaf(&expression, "", limits)?.0);
        }
        let literal = |text: &str| Language::of(&Hir::literal(text.as_bytes()), limits);
        let made = || -> Result<_, LimitExceeded> {
            if extension == Extension::SubstringOf {
                return substring::pattern(texts[0]);
            }
            let languages = texts.iter().map(|text| literal(text)).collect::<Result<Vec<_>, _>>()?;
            let language = if extension.is_delimited() {
                extension::delimited(extension, &languages, &literal(delimiter)?, limits)?
            } else {
                extension::text_until(&Language::union(&languages, limits)?, limits)?
            };
            language.automaton(limits).map(Pattern::automaton)
        };
        made().map_err(|limit| {
            let hint = limit.hint();
            GrammarError::limit(limit).with_hint(hint)
        })
    }
}
