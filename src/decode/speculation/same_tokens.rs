//! Checks that two models have the same tokens. A draft model must, as its guesses are ids.

use std::fmt;

use crate::{ids::TokenId, vocab::Vocabulary};

/// Kinds of [`DraftModelError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DraftModelErrorKind {
    /// A token is another text in the two vocabularies, or is in one of them only. Special tokens, by their
    /// names, may be in one only, as those for padding and chats are.
    OtherToken {
        /// The first such token.
        token: TokenId,
        /// Its text or name for the draft model, if it has one.
        draft: Option<String>,
        /// Its text or name for the model, if it has one.
        model: Option<String>,
    },
    /// The draft model has no logits for some tokens.
    RowsTooShort {
        /// One more than the vocabulary's highest id.
        vocabulary: usize,
        /// Length of the draft model's rows of logits.
        rows: usize,
    },
    /// The tokens are the same, but texts are split differently.
    OtherSplit {
        /// Number of tokens of a certain text before the two differ.
        after: usize,
    },
}

/// A draft model whose tokens differ from those of its target model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftModelError {
    kind: DraftModelErrorKind,
}

impl DraftModelError {
    /// The kind of the difference.
    #[must_use]
    pub fn kind(&self) -> &DraftModelErrorKind {
        &self.kind
    }

    /// Advice.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        "a draft model needs the tokenizer of the model: take a smaller model of the same family"
    }
}

impl From<DraftModelErrorKind> for DraftModelError {
    fn from(kind: DraftModelErrorKind) -> Self {
        Self { kind }
    }
}

impl fmt::Display for DraftModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named =
            |name: &Option<String>| name.as_ref().map_or("nothing".to_owned(), |name| format!("{name:?}"));
        match &self.kind {
            DraftModelErrorKind::OtherToken { token, draft, model } => write!(
                f,
                "the draft model has another vocabulary: token {token} is {} in it, and {} in the model's",
                named(draft),
                named(model)
            ),
            DraftModelErrorKind::RowsTooShort { vocabulary, rows } => write!(
                f,
                "the draft model has logits for {rows} tokens only, and the vocabulary has {vocabulary}"
            ),
            DraftModelErrorKind::OtherSplit { after } => write!(
                f,
                "the draft model has another tokenizer: with the same tokens it splits a text otherwise, \
                 from token {after} on"
            ),
        }
    }
}

impl std::error::Error for DraftModelError {}

/// The spelling of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenSpelling<'a> {
    Text(&'a [u8]),
    Special(&'a str),
    None,
}

impl<'a> TokenSpelling<'a> {
    fn of(vocabulary: &'a Vocabulary, token: TokenId) -> Self {
        let special = || vocabulary.name(token).map_or(Self::None, Self::Special);
        vocabulary.bytes(token).map_or_else(special, Self::Text)
    }

    /// Is it the same in both, or special in only one of them?
    fn agrees(self, other: Self) -> bool {
        self == other
            || matches!((self, other), (Self::None, Self::Special(_)) | (Self::Special(_), Self::None))
    }

    fn shown(self) -> Option<String> {
        match self {
            Self::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            Self::Special(name) => Some(name.to_owned()),
            Self::None => None,
        }
    }
}

/// Checks that all tokens are the same. One pass over both.
///
/// # Errors
/// [`DraftModelErrorKind::OtherToken`] with the first differing token.
pub(super) fn same_tokens(draft: &Vocabulary, model: &Vocabulary) -> Result<(), DraftModelError> {
    if draft.fingerprint() == model.fingerprint() {
        return Ok(());
    }
    for token in (0..draft.size().max(model.size())).filter_map(TokenId::from_index) {
        let (draft, model) = (TokenSpelling::of(draft, token), TokenSpelling::of(model, token));
        if !draft.agrees(model) {
            let (draft, model) = (draft.shown(), model.shown());
            return Err(DraftModelErrorKind::OtherToken { token, draft, model }.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::VocabularyBuilder;

    fn builder() -> VocabularyBuilder {
        let texts = ["a", "b", "ab"].into_iter().zip(0..);
        let builder =
            texts.fold(Vocabulary::builder(), |builder, (text, id)| builder.token(TokenId::new(id), text));
        builder.special(TokenId::new(4), "<end>").end_of_text(TokenId::new(4))
    }

    /// Returns the difference, with the vocabularies in either order.
    fn difference(other: VocabularyBuilder) -> Option<u32> {
        let (one, other) = (builder().build().unwrap(), other.build().unwrap());
        let token = |result: Result<(), DraftModelError>| {
            result.err().map(|error| match error.kind() {
                DraftModelErrorKind::OtherToken { token, .. } => token.raw(),
                other => panic!("{other:?}"),
            })
        };
        let (there, back) = (token(same_tokens(&one, &other)), token(same_tokens(&other, &one)));
        assert_eq!(there, back);
        there
    }

    #[test]
    fn texts_must_be_the_same_and_special_tokens_may_be_missing() {
        let id = TokenId::new;
        assert_eq!(difference(builder()), None);
        assert_eq!(difference(builder().special(id(9), "<pad>").special(id(3), "<hole>")), None);
        // Another token ends the text: that is the business of the grammar, and of the model.
        assert_eq!(difference(builder().end_of_text(id(7))), None);
        assert_eq!(difference(builder().token(id(3), "c")), Some(3));
        assert_eq!(difference(builder().token(id(9), "a")), Some(9));
        let other = Vocabulary::builder().token(id(0), "a").token(id(1), "B").token(id(2), "ab");
        assert_eq!(difference(other.special(id(4), "<end>").end_of_text(id(4))), Some(1));
        let other = Vocabulary::builder().token(id(0), "a").token(id(1), "b").token(id(2), "ab");
        assert_eq!(difference(other.special(id(4), "<stop>").end_of_text(id(4))), Some(4));
    }

    #[test]
    fn an_error_names_the_token_that_differs() {
        let one = builder().build().unwrap();
        let other = builder().token(TokenId::new(3), "c").build().unwrap();
        let told = same_tokens(&one, &other).unwrap_err();
        assert!(told.to_string().contains("token 3 is nothing in it, and \"c\" in the model's"), "{told}");
        assert!(told.hint().contains("same family"));
    }
}
