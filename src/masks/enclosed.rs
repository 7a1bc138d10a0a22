//! Tokens of a mask that span strings in quotes: the only ones in which a key can begin and end.
//!
//! They are filed with the mask, so that a reader of keys looks at a handful of tokens, and at none for most
//! masks, in place of all.

use std::sync::Arc;

use crate::{
    ids::TokenId,
    vocab::{Quoted, TokenSet},
};

/// A shared [`Enclosed`], or `None` if it is empty, as most are: copying `None` counts no references.
pub(crate) type SharedEnclosed = Option<Arc<Enclosed>>;

/// Tokens of a mask with at least two quotes. Few masks have any.
#[derive(Debug, Default)]
pub(crate) struct Enclosed {
    three: Box<[TokenId]>,
    four: Box<[TokenId]>,
    /// Numbers of strings in [`Quoted::enclosing`], with the tokens that have it in their first quotes.
    strings: Box<[(usize, Box<[TokenId]>)]>,
}

impl Enclosed {
    /// Filters the vocabulary's lists of such tokens by the mask: a look-up each.
    fn new(quoted: &Quoted, mask: &TokenSet) -> Self {
        let within = |tokens: &[TokenId]| -> Box<[TokenId]> {
            tokens.iter().copied().filter(|&token| mask.contains(token)).collect()
        };
        let strings = quoted.enclosing.iter().map(|string| within(&string.tokens)).enumerate();
        Self {
            three: within(&quoted.by_count[2]),
            four: within(&quoted.by_count[3]),
            strings: strings.filter(|(_, tokens)| !tokens.is_empty()).collect(),
        }
    }

    /// Does the same as [`new`](Self::new), shared; `None` if it is empty.
    pub(crate) fn shared(quoted: &Quoted, mask: &TokenSet) -> SharedEnclosed {
        let enclosed = Self::new(quoted, mask);
        let is_any = enclosed.three.len() + enclosed.four.len() + enclosed.strings.len() > 0;
        is_any.then(|| Arc::new(enclosed))
    }

    /// Tokens with at least three quotes.
    pub(crate) fn of_three(&self) -> &[TokenId] {
        &self.three
    }

    /// Tokens with at least four quotes.
    pub(crate) fn of_four(&self) -> &[TokenId] {
        &self.four
    }

    /// Tokens with two or three quotes: the string in the first two, most bytes before it, and the tokens.
    pub(crate) fn strings<'a>(
        &'a self,
        quoted: &'a Quoted,
    ) -> impl Iterator<Item = (&'a [u8], usize, &'a [TokenId])> {
        self.strings.iter().filter_map(|(number, tokens)| {
            let string = quoted.enclosing.get(*number)?;
            Some((&*string.spelt, string.before, &**tokens))
        })
    }

    /// Memory beside the value itself, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let listed = self.strings.iter().map(|(_, tokens)| size_of_val::<[TokenId]>(tokens));
        size_of_val(&*self.three)
            + size_of_val(&*self.four)
            + size_of_val(&*self.strings)
            + listed.sum::<usize>()
    }
}
