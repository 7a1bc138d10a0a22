//! llguidance as an engine of the comparison, used as in the main package's `benches/compare`: one parser for
//! a grammar, for each text a copy of it that shares the lexer's tables, and no forcing of tokens.

use std::sync::Arc;

use llguidance::{
    Matcher, ParserFactory,
    api::TopLevelGrammar,
    toktrie::{ApproximateTokEnv, SimpleVob, TokRxInfo, TokTrie},
};
use peers::{Engine, Tokens, timed};

/// A compiled grammar, and the text that is being written.
struct Compiled {
    template: Matcher,
    text: Matcher,
    mask: SimpleVob,
}

impl Engine for Compiled {
    fn start(&mut self) {
        self.text = self.template.clone();
    }

    fn mask(&mut self) {
        self.mask = self.text.compute_mask_or_eos().expect("a mask");
    }

    fn allowed(&self) -> Vec<usize> {
        self.mask.iter().map(|id| id as usize).collect()
    }

    fn holds(&self, token: u32) -> bool {
        self.mask.get(token as usize)
    }

    fn commit(&mut self, token: u32) -> bool {
        self.text.consume_token(token).is_ok()
    }
}

fn tables(tokens: &Tokens) -> ParserFactory {
    let size = u32::try_from(tokens.spelt.len()).expect("ids of 32 bits");
    let words: Vec<Vec<u8>> = tokens.spelt.iter().map(|text| text.clone().unwrap_or_default()).collect();
    let trie = TokTrie::from(&TokRxInfo::new(size, tokens.eos), &words);
    let env: llguidance::toktrie::TokEnv = Arc::new(ApproximateTokEnv::new(trie));
    let mut factory = ParserFactory::new_simple(&env).expect("a factory");
    factory.quiet();
    factory
}

fn main() {
    peers::run("1.9.1", tables, |factory, grammar| {
        let (template, time) =
            timed(|| Matcher::new(factory.create_parser(TopLevelGrammar::from_lark(grammar.to_owned()))));
        assert!(!template.is_error(), "{:?}", template.get_error());
        (Compiled { text: template.clone(), template, mask: SimpleVob::new() }, time)
    });
}
