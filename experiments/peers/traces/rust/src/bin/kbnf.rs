//! kbnf as an engine of the comparison.
//!
//! kbnf ends a text as soon as it can, so its grammars end in a mark that only the end of text spells. Tokens
//! that are a prefix of that mark are taken out of masks that allow the end of text, where no such token can
//! follow.
//! can follow.

use ahash::AHashMap;
use kbnf::{Engine as Kbnf, EngineLike, Token, Vocabulary};
use peers::{Engine, Tokens, timed};

/// The mark, which only the end of text spells.
const MARK: &str = "\u{10FFFF}";

/// A vocabulary for kbnf.
struct Tables {
    vocabulary: Vocabulary,
    eos: usize,
    beginnings: Vec<usize>,
}

/// A compiled grammar; its cache outlives a text.
struct Compiled<'a> {
    kbnf: Kbnf,
    tables: &'a Tables,
}

impl Engine for Compiled<'_> {
    fn start(&mut self) {
        self.kbnf.reset();
    }

    fn mask(&mut self) {
        self.kbnf.compute_allowed_token_ids();
    }

    fn allowed(&self) -> Vec<usize> {
        let mask = self.kbnf.allowed_token_ids_from_last_computation();
        let ends = mask.contains(self.tables.eos);
        mask.ones().filter(|id| !(ends && self.tables.beginnings.contains(id))).collect()
    }

    fn holds(&self, token: u32) -> bool {
        self.kbnf.allowed_token_ids_from_last_computation().contains(token as usize)
    }

    fn commit(&mut self, token: u32) -> bool {
        self.kbnf.try_accept_new_token(token).is_ok()
    }
}

fn tables(tokens: &Tokens) -> Tables {
    let spelt = (0..).zip(&tokens.spelt).filter_map(|(id, text)| Some((id, text.clone()?)));
    let mut spelt: AHashMap<u32, Vec<u8>> = spelt.collect();
    let begins = |&(_, text): &(&u32, &Vec<u8>)| MARK.as_bytes().starts_with(text);
    let beginnings = spelt.iter().filter(begins).map(|(&id, _)| id as usize).collect();
    spelt.insert(tokens.eos, MARK.as_bytes().to_vec());
    let strings = spelt.iter().map(|(&id, text)| (id, String::from_utf8_lossy(text).into_owned())).collect();
    let bytes = spelt.into_iter().map(|(id, text)| (id, Token(text.into_boxed_slice()))).collect();
    let vocabulary = Vocabulary::new(bytes, strings).expect("a vocabulary");
    Tables { vocabulary, eos: tokens.eos as usize, beginnings }
}

fn main() {
    let tables_of = |tokens: &Tokens| &*Box::leak(Box::new(tables(tokens)));
    peers::run("0.5.7", tables_of, |tables, grammar| {
        let copy = tables.vocabulary.clone();
        let (kbnf, time) = timed(|| Kbnf::new(grammar, copy).expect("the grammar compiles"));
        (Compiled { kbnf, tables }, time)
    });
}
