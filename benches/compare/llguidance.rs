//! llguidance as an engine of the comparison.
//!
//! It is used as in a server: tables of the vocabulary once, a parser for each grammar, and for each text a
//! copy of that parser, which shares the lexer's tables with all others. Its lexemes are greedy, so not all
//! of its masks are exact.

use std::{fmt, path::Path, sync::Arc};

use domino::TokenId;
use llguidance::{
    Matcher, ParserFactory,
    api::TopLevelGrammar,
    toktrie::{ApproximateTokEnv, SimpleVob},
};
use toktrie_hf_tokenizers::{ByteTokenizer, ByteTokenizerEnv};

use crate::trace::walk::{Digest, Engine};

/// A vocabulary with its tables.
pub(crate) struct Tables {
    factory: ParserFactory,
}

impl Tables {
    /// Reads a `tokenizer.json` whose texts end with `eos`.
    ///
    /// With `forcing`, a mask holds only the tokenizer's own token where a single text can follow, which is
    /// quicker and not exact.
    pub(crate) fn read(tokenizer: &Path, eos: TokenId, forcing: bool) -> Result<Self, String> {
        let mut tokens = ByteTokenizer::from_file(tokenizer).map_err(say)?;
        tokens.set_eos_token(eos.raw());
        let exact = ByteTokenizerEnv::new(tokens, None).map_err(say)?;
        let env = if forcing { exact.to_env() } else { Arc::new(ApproximateTokEnv::new(exact.tok_trie)) };
        let mut factory = ParserFactory::new_simple(&env).map_err(say)?;
        factory.quiet();
        Ok(Self { factory })
    }

    /// Compiles a grammar in its dialect of Lark.
    pub(crate) fn compile(&self, lark: &str) -> Result<Compiled, String> {
        let trie = self.factory.tok_env().tok_trie();
        let (eos, size) = (TokenId::new(trie.eos_token()), trie.vocab_size());
        let template = Matcher::new(self.factory.create_parser(TopLevelGrammar::from_lark(lark.to_owned())));
        match template.get_error() {
            Some(error) => Err(error),
            None => Ok(Compiled { template, eos, size }),
        }
    }
}

/// A compiled grammar.
pub(crate) struct Compiled {
    template: Matcher,
    eos: TokenId,
    size: usize,
}

/// A text that is being written.
pub(crate) struct Request {
    matcher: Matcher,
    mask: SimpleVob,
}

impl Engine for Compiled {
    type Request = Request;
    type Error = String;

    fn start(&self) -> Result<Request, String> {
        Ok(Request { matcher: self.template.clone(), mask: SimpleVob::new() })
    }

    fn mask(&self, request: &mut Request) -> Result<(), String> {
        request.mask = request.matcher.compute_mask_or_eos().map_err(say)?;
        Ok(())
    }

    fn holds(&self, request: &mut Request, token: TokenId) -> Result<bool, String> {
        Ok(request.mask.get(token.index()))
    }

    fn digest(&self, request: &mut Request) -> Result<Digest, String> {
        let allowed = request.mask.iter().map(TokenId::new);
        Ok(Digest::new(allowed, self.size, |token| token == self.eos))
    }

    fn allows(&self, request: &mut Request, token: TokenId) -> Result<bool, String> {
        request.matcher.validate_tokens(&[token.raw()]).map(|valid| valid == 1).map_err(say)
    }

    fn commit(&self, request: &mut Request, token: TokenId) -> Result<(), String> {
        request.matcher.consume_token(token.raw()).map_err(say)
    }
}

fn say(error: impl fmt::Display) -> String {
    error.to_string()
}
