//! Checks that two tokenizers split texts alike. Otherwise a draft model expects other tokens.

use super::{
    draft_model::DraftModel,
    same_tokens::{DraftModelError, DraftModelErrorKind},
};
use crate::{model::Model, vocab::Tokenizer};

impl<M: Model> DraftModel<M> {
    /// Checks that the tokenizer of the draft model splits texts as the model's does. With the feature
    /// `tokenizers`.
    ///
    /// # Errors
    /// If it does not: such a draft model has learnt to expect other tokens.
    pub fn splitting(self, own: &Tokenizer, target: &Tokenizer) -> Result<Self, DraftModelError> {
        same_split(own, target)?;
        Ok(self)
    }
}

/// Checks that a text of words, numbers and signs is split alike: equal tokens do not suffice, since merges
/// can differ.
///
/// # Errors
/// [`DraftModelErrorKind::OtherSplit`] if it is not.
fn same_split(draft: &Tokenizer, model: &Tokenizer) -> Result<(), DraftModelError> {
    const PROBE: &str = "The answer is 1234.5, isn't it?\n\n{\"name\": \"Zo\u{eb}  O'Neill\", \
        \"ids\": [0, -17, 2e10]}\n\tfor (int i = 0; i < n; ++i) { sum += a[i]; }  \
        <item>\u{dc}berm\u{e4}\u{df}ig</item> \u{6771}\u{4eac}";
    let split = |tokenizer: &Tokenizer| tokenizer.encode(PROBE, false).ok();
    let (draft, model) = (split(draft), split(model));
    if draft == model {
        return Ok(());
    }
    let (draft, model) = (draft.unwrap_or_default(), model.unwrap_or_default());
    let after = draft.iter().zip(&model).take_while(|(one, other)| one == other).count();
    Err(DraftModelErrorKind::OtherSplit { after }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tokenizer_that_splits_otherwise_is_refused() {
        const JSON: &str = include_str!("../../../tests/fixtures/byte_level.json");
        let own = Tokenizer::from_tokenizer_json(JSON).unwrap();
        assert_eq!(same_split(&own, &own), Ok(()));
        let mut json: serde_json::Value = serde_json::from_str(JSON).unwrap();
        json["model"]["merges"] = serde_json::json!([]);
        let other = Tokenizer::from_tokenizer_json(&json.to_string()).unwrap();
        let told = same_split(&other, &own).unwrap_err();
        assert!(matches!(told.kind(), DraftModelErrorKind::OtherSplit { .. }), "{told}");
    }
}
