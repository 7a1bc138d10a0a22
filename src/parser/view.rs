//! What is in a set, for display.

use super::{core::Begun, item::Item, parser::Parser};
use crate::{
    ids::{SetId, TerminalId},
    lower::Dot,
};

/// Where an item was predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Predicted {
    /// Before any text.
    AtStart,
    /// In an earlier set.
    In(SetId),
    /// In the set itself.
    Here,
}

impl Parser {
    /// The items of a set: first its kernel, then what was predicted in it.
    pub(crate) fn items(&self, set: SetId) -> impl Iterator<Item = (Dot, Predicted)> + '_ {
        let of = |item: &Item| match item.origin {
            origin if origin == Item::START.origin => (item.dot, Predicted::AtStart),
            origin => (item.dot, Predicted::In(origin)),
        };
        let here = |(dot, begun)| (begun == Begun::Here).then_some((dot, Predicted::Here));
        let predicted = self.sets().core(set).rules().filter_map(here);
        self.sets().kernel(set).iter().map(of).chain(predicted)
    }

    /// Items of a set that were predicted in earlier ones.
    pub(crate) fn kernel_len(&self, set: SetId) -> usize {
        self.sets().kernel(set).len()
    }

    /// The terminals that may follow, each with the set it leads to if that was asked for already.
    pub(crate) fn known_shifts(&self, set: SetId) -> impl Iterator<Item = (TerminalId, Option<SetId>)> + '_ {
        self.accepts(set).iter().map(move |&terminal| (terminal, self.known_shift(set, terminal)))
    }
}
