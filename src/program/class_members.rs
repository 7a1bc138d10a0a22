//! The members of classes of tokens: what a class adds to a mask, and the names that it gives to tokens.

use super::program::Program;
use crate::{
    ids::TokenId,
    vocab::{TokenSet, Vocabulary},
};

impl Program {
    /// Replaces the tokens that stand for classes in a mask by the members of the classes.
    pub(crate) fn widened(&self, mask: &TokenSet) -> TokenSet {
        let mut wide = TokenSet::empty(self.asked.vocabulary.size());
        mask.iter().for_each(|token| wide.insert(token));
        let there = self.classes.iter().filter(|class| mask.contains(class.id));
        there.for_each(|class| wide.union_with(&class.tokens));
        wide
    }

    /// The name of a special token that a class asks for.
    pub(super) fn name_by_class(&self, token: TokenId) -> Option<&[u8]> {
        self.classes.iter().find_map(|class| class.name(token, &self.asked.vocabulary))
    }

    /// Lists the special tokens that are members of classes.
    pub(crate) fn specials_of_classes(&self) -> impl Iterator<Item = TokenId> + '_ {
        let is_asked = |id: TokenId| self.classes.iter().any(|class| class.tokens.contains(id));
        let vocabulary = Some(&self.asked.vocabulary).filter(|_| !self.classes.is_empty());
        let specials = vocabulary.into_iter().flat_map(Vocabulary::special_tokens);
        specials.map(|(id, _)| id).filter(move |&id| is_asked(id))
    }
}
