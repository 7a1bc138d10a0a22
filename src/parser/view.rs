//! The contents of sets, for display.

use super::{core::RuleStart, item::Item, parser::Parser};
use crate::{
    grammar::any_order::Chosen,
    ids::{SetId, TerminalId},
    lower::{Cfg, DottedRule},
};

/// The set in which an item was predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Predicted {
    /// The item was predicted before any text.
    AtStart,
    /// The item was predicted in an earlier set.
    In(SetId),
    /// The item was predicted in the set itself.
    Here,
}

impl Parser {
    /// Lists the items of a set: first its kernel, then its own predictions.
    pub(crate) fn items<'a>(
        &'a self,
        cfg: &'a Cfg,
        set: SetId,
    ) -> impl Iterator<Item = (DottedRule, Predicted)> + 'a {
        let plain = |dot| self.sets().lists().plain(cfg, dot);
        let of = move |item: &Item| match item.origin {
            origin if origin == Item::START.origin => (plain(item.dot), Predicted::AtStart),
            origin => (plain(item.dot), Predicted::In(origin)),
        };
        let here = |(dot, begun)| (begun == RuleStart::Here).then_some((dot, Predicted::Here));
        let predicted = self.sets().core(set).rules().filter_map(here);
        self.sets().kernel(set).iter().map(of).chain(predicted)
    }

    /// Lists the dotted rules of a set that were predicted in earlier ones, each with the parts of a list
    /// that have come.
    pub(crate) fn kernel_dots<'a>(
        &'a self,
        cfg: &'a Cfg,
        set: SetId,
    ) -> impl Iterator<Item = (DottedRule, Option<&'a Chosen>)> + 'a {
        let lists = self.sets().lists();
        let of = |item: &Item| (lists.plain(cfg, item.dot), lists.chosen(cfg, item.dot));
        self.sets().kernel(set).iter().map(of)
    }

    /// Number of items of a set that were predicted in earlier ones.
    pub(crate) fn kernel_len(&self, set: SetId) -> usize {
        self.sets().kernel(set).len()
    }

    /// Lists the terminals that may follow, each with the set it leads to if that is memoised.
    pub(crate) fn known_shifts(&self, set: SetId) -> impl Iterator<Item = (TerminalId, Option<SetId>)> + '_ {
        self.accepts(set).iter().map(move |&terminal| (terminal, self.known_shift(set, terminal)))
    }
}
