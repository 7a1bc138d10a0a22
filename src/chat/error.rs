//! Errors of chat templates and of rendering.

use std::fmt;

/// The kind of a [`ChatError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChatErrorKind {
    /// A file cannot be read.
    Io,
    /// A file that should have a template is damaged, or has something else in its place.
    Malformed,
    /// The template is not Jinja, or uses a part of it that is not supported.
    Syntax,
    /// The template itself refuses the messages, by `raise_exception`.
    Refused,
    /// The template fails on these messages, for example at a value that does not exist.
    Failed,
    /// A limit on size, work, depth or output is exceeded.
    Limit,
}

/// A chat template that cannot be used, or does not take these messages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ChatError {
    kind: ChatErrorKind,
    message: String,
    place: Option<String>,
    line: Option<usize>,
    hint: Option<&'static str>,
}

impl ChatError {
    pub(super) fn new(kind: ChatErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), place: None, line: None, hint: None }
    }

    pub(super) fn syntax(line: usize, message: impl Into<String>) -> Self {
        Self::new(ChatErrorKind::Syntax, message).on_line(Some(line))
    }

    /// Names the file, unless one is named already.
    pub(super) fn at(mut self, place: &dyn fmt::Display) -> Self {
        self.place.get_or_insert_with(|| place.to_string());
        self
    }

    /// Sets the line of the template, from 1, if it is known.
    pub(super) fn on_line(mut self, line: Option<usize>) -> Self {
        self.line = line;
        self
    }

    pub(super) fn with_hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }

    /// The kind of the error, for programs.
    #[must_use]
    pub fn kind(&self) -> ChatErrorKind {
        self.kind
    }

    /// The line of the template, from 1, if it is known.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// A hint, if there is one.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        self.hint
    }
}

impl fmt::Display for ChatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        match self.line {
            Some(line) => write!(f, "chat template, line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}
