//! XGrammar's additions to GBNF: macros, and options of rules.

use super::{GbnfDialect, lexer::Lexer};
use crate::grammar::{
    errors::{GrammarError, quoted},
    source::Span,
};

/// Limit on the depth of tuples in the arguments of a macro.
const MOST_NESTED: usize = 8;

/// A use of a macro.
#[derive(Debug, Clone)]
pub(super) struct Macro<'t> {
    pub(super) name: &'t str,
    pub(super) arguments: Vec<(MacroValue<'t>, Span)>,
    pub(super) named: Vec<(&'t str, MacroValue<'t>, Span)>,
}

/// An argument of a macro.
#[derive(Debug, Clone)]
pub(super) enum MacroValue<'t> {
    Text(String),
    Number,
    Flag(bool),
    Name(&'t str),
    Tuple(Vec<(MacroValue<'t>, Span)>),
}

impl<'t> Lexer<'t> {
    /// Reads the use of a macro behind its name, if the name is one.
    pub(super) fn call(&mut self, name: &'t str, start: usize) -> Result<Option<Macro<'t>>, GrammarError> {
        if let "Token" | "ExcludeToken" | "TokenTagDispatch" = name {
            let message = format!("the macro {} is about token ids, and is not supported", quoted(name));
            return Err(GrammarError::unsupported(message)
                .at(self.source(), self.here(start), "a grammar here is about text, whatever its tokens are")
                .with_hint("write the token's text as a literal: `\"text\"`"));
        }
        if !matches!(name, "TagDispatch" | "Regex") {
            return Ok(None);
        }
        self.skip_space();
        self.arguments(name).map(Some)
    }

    /// Reads arguments in parentheses behind a name.
    pub(super) fn arguments(&mut self, name: &'t str) -> Result<Macro<'t>, GrammarError> {
        if !self.eat("(") {
            return Err(self.expected(&format!("`(` after the macro {}", quoted(name))));
        }
        let mut call = Macro { name, arguments: Vec::new(), named: Vec::new() };
        loop {
            self.skip_space();
            if self.eat(")") {
                return Ok(call);
            }
            let from = self.at;
            let value = self.value(0)?;
            self.skip_space();
            match value {
                MacroValue::Name(name) if self.eat("=") => {
                    self.skip_space();
                    let value = self.value(0)?;
                    call.named.push((name, value, self.here(from)));
                    self.skip_space();
                }
                value => call.arguments.push((value, self.here(from))),
            }
            if !self.eat(",") && !self.rest().starts_with(')') {
                return Err(self.expected("`,` or `)` after an argument"));
            }
        }
    }

    /// Reads a value: a text in quotes, a tuple, a number, a flag or a name.
    fn value(&mut self, depth: usize) -> Result<MacroValue<'t>, GrammarError> {
        let start = self.at;
        match self.peek() {
            Some('"') => match self.literal()? {
                super::lexer::Token::Literal(bytes) => {
                    Ok(MacroValue::Text(String::from_utf8_lossy(&bytes).into_owned()))
                }
                _ => Err(self.expected("a text")),
            },
            Some('(') if depth < MOST_NESTED => {
                self.at += 1;
                let mut parts = Vec::new();
                loop {
                    self.skip_space();
                    if self.eat(")") {
                        return Ok(MacroValue::Tuple(parts));
                    }
                    let from = self.at;
                    let part = self.value(depth + 1)?;
                    parts.push((part, self.here(from)));
                    self.skip_space();
                    if !self.eat(",") && !self.rest().starts_with(')') {
                        return Err(self.expected("`,` or `)` in a tuple"));
                    }
                }
            }
            Some(c) if c.is_ascii_digit() => {
                let rest = self.rest();
                self.at += rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                Ok(MacroValue::Number)
            }
            Some(c) if self.dialect.is_name(c) => {
                let rest = self.rest();
                self.at += rest.find(|c| !self.dialect.is_name(c)).unwrap_or(rest.len());
                Ok(match &self.text[start..self.at] {
                    "true" => MacroValue::Flag(true),
                    "false" => MacroValue::Flag(false),
                    name => MacroValue::Name(name),
                })
            }
            _ => Err(self.expected("a text, a name, a number, `true`, `false` or a tuple")),
        }
    }

    fn expected(&self, what: &str) -> GrammarError {
        GrammarError::syntax(format!("{what} must come here")).at(self.source(), self.here(self.at), "")
    }

    /// Reads `[name=value, ..]` between the name of a rule and its `::=`. Anything else is left unread.
    pub(super) fn options_of_rule(&mut self, rule: &'t str) -> Result<(), GrammarError> {
        let rest = self.rest();
        let Some(end) = rest.strip_prefix('[').and_then(|inside| inside.find(']')) else { return Ok(()) };
        if !rest[end + 2..].trim_start_matches([' ', '\t']).starts_with("::=") {
            return Ok(());
        }
        let mut at = self.at + 1;
        for option in rest[1..=end].split(',') {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let (name, value) = (name.trim(), value.trim().trim_matches('"'));
            let span = Span::from_range(at..at + option.len());
            at += option.len() + 1;
            match name {
                "capture" => self.captured.push((rule, if value.is_empty() { rule } else { value })),
                "temperature" => self.without_effect.push((name, span)),
                "max_tokens" | "max_chars" => {
                    let message = format!("the option {} of rules is not supported", quoted(name));
                    return Err(GrammarError::unsupported(message)
                        .at(self.source(), span, "")
                        .with_hint("bound the characters by a count: `[a-z]{0,80}`"));
                }
                _ => {
                    return Err(GrammarError::syntax(format!("no option {}", quoted(name)))
                        .at(self.source(), span, "")
                        .with_hint("the options of rules are `capture` and `temperature`"));
                }
            }
        }
        self.at += end + 2;
        Ok(())
    }
}

impl GbnfDialect {
    /// True if the character may be in a name.
    pub(super) fn is_name(self, c: char) -> bool {
        c.is_ascii_alphanumeric() || matches!(c, '-' | '_') || c == '.' && self == Self::XGrammar
    }

    /// The expression for any character.
    pub(super) fn any_character(self) -> &'static str {
        match self {
            Self::LlamaCpp => ".",
            Self::XGrammar => "[^]",
        }
    }
}
