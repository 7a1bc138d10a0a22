//! Groups with the names of extensions: which extension a group is, its number, and its form for hints.

use regex_syntax::ast::{Group, GroupKind};

use crate::{
    grammar::{GrammarError, errors::quoted, extension::Extension, source::Span},
    special::TokenClass,
};

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
