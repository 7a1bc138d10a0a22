//! Candidate tokens where the items of some arrays must differ: a superset of the tokens that repeat an item
//! or lead to a dead end, from lists that the vocabulary has by what tokens do to items (`ItemEnds`,
//! `Quoted`). Only candidates are walked byte by byte. Which lists count depends on the place of the text:
//!
//! | the text is | a token is a candidate if it |
//! |---|---|
//! | in no array whose items are compared | ends a value and opens an array |
//! | in items that are all known to be new | has a comma: the next item may repeat one |
//! | inside a part of an item, and no value runs out | has a bracket that may end the item |
//! | in a string otherwise | ends it as an earlier string ended, or after an escape, or has more behind its end |
//! | elsewhere | ends a value, or begins one that may have run out |
//!
//! A value runs out where all that it may become has come: then the beginnings of earlier items count too.

use std::sync::Arc;

use super::{
    array_items::ArrayItems,
    object_keys::{node_of, nodes_along},
};
use crate::{
    grammar::DistinctItems,
    ids::TokenId,
    program::Program,
    vocab::{TokenSet, has_bracket},
};

/// Facts about a place that the machine finds out before it looks at the mask.
#[derive(Debug, Default)]
pub(crate) struct Continuations {
    /// May a comma or bracket lead to a dead end, where every text repeats an item?
    pub(super) marks: bool,
    /// Can a new item always come after the string at hand and a comma?
    pub(super) renewing: bool,
    /// Do all continuations of the string at hand, or of one that may begin, keep many strings?
    pub(super) inexhaustible: bool,
    /// Does the same hold for the continuations by one token that has a backslash or opens a string?
    pub(super) lasting: bool,
    /// Tokens of digits behind which the number must go on, as far as they matter.
    pub(super) unended: Arc<[TokenId]>,
}

impl ArrayItems {
    /// Returns the tokens of a mask that may repeat an item or lead to a dead end. No false negatives, no
    /// token twice.
    pub(crate) fn suspects(
        &self,
        program: &Program,
        mask: &TokenSet,
        rule: DistinctItems,
        ahead: &Continuations,
    ) -> Vec<TokenId> {
        let (vocabulary, trie) = (&program.vocabulary, program.vocabulary.trie());
        let (ends, quoted) = (vocabulary.item_ends(), vocabulary.quoted());
        let mut found: Vec<TokenId> = Vec::new();
        match (self.is_in_string(), self.is_idle()) {
            (true, true) => found.extend(&ends.past_end_opening),
            (false, true) => found.extend(&ends.ends_opening),
            // All items at hand are new: only another item that begins can repeat one.
            (in_string, false) if self.are_settled(true) => {
                let renewing = if in_string { &ends.renewing_in_string } else { &ends.renewing };
                let commas = if self.is_item() { &renewing.any } else { &renewing.behind_bracket };
                found.extend(&commas.with_more);
                if self.is_in_escape() {
                    found.extend(&quoted.by_count[0]);
                }
                if rule.may_run_out() && ahead.marks {
                    found.extend(&commas.alone);
                } else if rule.may_run_out() && in_string && !ahead.renewing {
                    // A token with more of the string makes another item, which `marks` does not cover.
                    let goes_on = |token: &&TokenId| {
                        vocabulary.bytes(**token).is_some_and(|bytes| !bytes.starts_with(b"\""))
                    };
                    found.extend(commas.alone.iter().filter(goes_on));
                }
            }
            // The items at hand must end to repeat one, and they end in brackets.
            (true, false) if !(self.is_item() || rule.may_run_out()) => {
                found.extend(&ends.renewing_in_string.behind_bracket.with_more);
                if self.is_in_part(ends.longest) {
                    found.extend(&quoted.by_count[0]);
                } else {
                    found.extend(&quoted.escaping);
                    let rests = self.rests();
                    let by_end = rests.iter().filter(|rest| rest.len() <= ends.longest);
                    found.extend(by_end.filter_map(|&rest| ends.by_end.get(rest)).flatten());
                }
                found.retain(|&token| {
                    mask.contains(token) && vocabulary.bytes(token).is_some_and(has_bracket)
                });
            }
            (false, false) if !(self.is_item() || rule.may_run_out()) => found.extend(&ends.bracketed),
            (true, false) => {
                found.extend(&ends.past_end);
                if rule.may_run_out() && !ahead.renewing || self.is_in_part(ends.longest) {
                    found.extend(&quoted.by_count[0]);
                }
                let may_run_out = rule.strings_may_run_out && !ahead.inexhaustible;
                if may_run_out && self.is_in_part(ends.longest) {
                    return mask.iter().collect();
                }
                if self.is_any() {
                    found.extend(&quoted.escaping);
                    let rests = self.rests();
                    let by_end = rests.iter().filter(|rest| rest.len() <= ends.longest);
                    found.extend(by_end.filter_map(|&rest| ends.by_end.get(rest)).flatten());
                    if may_run_out {
                        if !ahead.lasting {
                            found.extend(&quoted.backslashed);
                        }
                        let nodes = rests.iter().flat_map(|rest| nodes_along(trie, rest));
                        found.extend(nodes.flat_map(|node| trie.tokens_at(trie.own_tokens(node))));
                    }
                }
            }
            (false, false) => {
                if ahead.marks {
                    found.extend(&ends.marks);
                }
                if !self.is_flat() {
                    found.extend(&ends.blanks);
                }
                if !(self.is_any() || rule.may_run_out()) {
                    found.extend(&ends.ends);
                } else {
                    found.extend(ends.outside.common(mask));
                    if !ahead.lasting {
                        found.extend(ends.opening.common(mask));
                    }
                    match self.digits_ahead() {
                        _ if !rule.numbers_may_run_out => {}
                        Some(rests) => {
                            found.extend(&*ahead.unended);
                            let nodes = rests.iter().filter_map(|rest| node_of(trie, rest));
                            found.extend(nodes.flat_map(|node| trie.tokens_at(trie.own_tokens(node))));
                        }
                        None => found.extend(&ends.digits),
                    }
                    if rule.strings_may_run_out && !ahead.inexhaustible {
                        if !ahead.lasting {
                            found.extend(&quoted.backslashed);
                        }
                        for rest in self.rests() {
                            let spelt = [b"\"", rest].concat();
                            let nodes = nodes_along(trie, &spelt);
                            found.extend(nodes.flat_map(|node| trie.tokens_at(trie.own_tokens(node))));
                        }
                    }
                }
            }
        }
        found.retain(|&token| mask.contains(token));
        found.sort_unstable();
        found.dedup();
        found
    }
}
