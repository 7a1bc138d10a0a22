//! A class of tokens: its members, and their spelling in texts.

use crate::{
    ids::TokenId,
    limits::{LimitExceeded, Work},
    special::{self, TokenClass},
    vocab::{TokenSet, Vocabulary},
};

/// Names of special tokens that stand for an image, in the vocabularies of models that have one.
const IMAGES: [&str; 8] = [
    "<image>",
    "<|image|>",
    "<|image_pad|>",
    "<image_soft_token>",
    "<|image_1|>",
    "[IMG]",
    "<img>",
    "<IMG_CONTEXT>",
];

/// Lists the tokens of a class.
pub(super) fn members(class: TokenClass, vocabulary: &Vocabulary) -> Box<dyn Iterator<Item = TokenId> + '_> {
    // Those with this byte are no text where there are classes.
    let text = vocabulary.text_tokens().filter(|(_, bytes)| !bytes.contains(&special::MARK));
    match class {
        TokenClass::Text => Box::new(text.map(|(id, _)| id)),
        TokenClass::Paragraph => {
            Box::new(text.filter(|(_, bytes)| !bytes.contains(&b'\n')).map(|(id, _)| id))
        }
        TokenClass::Image => {
            let images = vocabulary.special_tokens().filter(|(_, name)| IMAGES.contains(name));
            Box::new(images.map(|(id, _)| id))
        }
    }
}

/// Spelling of a class's members in texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemberSpelling {
    /// Members are spelled by their bytes; special tokens not at all.
    Unnamed,
    /// Members are spelled by their bytes, special tokens by their names.
    Named,
    /// There is no model: any text may be a token.
    Unknown,
}

/// A class that a grammar asks for.
#[derive(Debug)]
pub(crate) struct ResolvedClass {
    /// The token that stands for it.
    pub(crate) id: TokenId,
    /// The bytes of that token.
    pub(crate) spelled: Vec<u8>,
    pub(crate) tokens: TokenSet,
    pub(crate) members: MemberSpelling,
    /// The token of the class with the fewest bytes, of text if there is one, for completions.
    pub(crate) shortest: TokenId,
}

impl ResolvedClass {
    /// Creates a class of these tokens under this name; `None` if there are none.
    pub(super) fn new(
        id: TokenId,
        marked: &str,
        tokens: TokenSet,
        members: MemberSpelling,
        vocabulary: &Vocabulary,
    ) -> Option<Self> {
        let length = |&token: &TokenId| {
            let text = vocabulary.bytes(token).map(<[u8]>::len);
            (text.is_none(), text.or_else(|| vocabulary.name(token).map(str::len)))
        };
        let shortest = tokens.iter().min_by_key(length)?;
        Some(Self { id, spelled: special::spelled(marked), tokens, members, shortest })
    }

    /// Returns the name that spells a special token of the class in texts.
    pub(crate) fn name<'v>(&self, token: TokenId, vocabulary: &'v Vocabulary) -> Option<&'v [u8]> {
        let named = self.members != MemberSpelling::Unnamed && self.tokens.contains(token);
        if named { vocabulary.name(token).map(str::as_bytes) } else { None }
    }

    /// Returns the offsets where tokens of the class end that begin at `from`. `spelled` is the grammar's
    /// vocabulary, besides that of the model.
    pub(crate) fn ends(
        &self,
        (spelled, vocabulary): (&Vocabulary, &Vocabulary),
        bytes: &[u8],
        from: usize,
        work: &mut Work,
    ) -> Result<Vec<usize>, LimitExceeded> {
        let mut found = Vec::new();
        let trie = spelled.trie();
        // Without a model these are all special tokens but the one that is excluded.
        let is_other = |token: TokenId| {
            let bytes = spelled.bytes(token).filter(|bytes| bytes.starts_with(&[special::MARK]));
            bytes.is_some_and(|bytes| self.spelled.get(2..) != bytes.get(1..))
        };
        let is_member = |token: TokenId| {
            self.tokens.contains(token) || self.members == MemberSpelling::Unknown && is_other(token)
        };
        let (mut node, mut end) = (trie.root_child(bytes[from]), from + 1);
        while let Some(at) = node {
            work.spend(1)?;
            let mut tokens = trie.tokens_at(trie.own_tokens(at)).iter();
            found.extend(tokens.any(|&token| is_member(token)).then_some(end));
            node = bytes.get(end).and_then(|&byte| trie.child(at, byte));
            end += 1;
        }
        if self.members == MemberSpelling::Named {
            for (token, name) in vocabulary.special_tokens() {
                work.spend(1)?;
                // The name of one that is spelled out is text.
                let is_named = self.tokens.contains(token) && spelled.bytes(token).is_none();
                let stands = !name.is_empty() && bytes[from..].starts_with(name.as_bytes());
                found.extend((is_named && stands).then(|| from + name.len()));
            }
        }
        Ok(found)
    }
}
