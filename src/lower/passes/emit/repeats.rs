//! Turns counted repetition into productions, large counts by blocks.

use super::{ProductionEmitter, RepeatKind};
use crate::{limits::LimitExceeded, lower::cfg::symbols::Symbol};

/// Count up to which repetition is written out symbol by symbol; larger ones are made of blocks of this size.
const BLOCK: u32 = 256;

impl ProductionEmitter<'_> {
    /// Repeats `symbol` `min` to `max` times, as a sequence of symbols.
    pub(super) fn repeat(
        &mut self,
        symbol: Symbol,
        min: u32,
        max: Option<u32>,
    ) -> Result<Vec<Symbol>, LimitExceeded> {
        let mut row = Vec::new();
        let tail = match max {
            None if min == 1 => {
                // One production less than `x x*`, and the shape lists have most often.
                let list = self.nonterminal(String::new())?;
                self.produce(list, vec![symbol])?;
                self.produce(list, vec![Symbol::Nonterminal(list), symbol])?;
                return Ok(vec![Symbol::Nonterminal(list)]);
            }
            None => Some((RepeatKind::AnyNumber, 0)),
            // Counted from one place on, so that the parser can compare counts.
            Some(max) if 0 < min && min < max && max <= BLOCK => {
                return Ok(vec![self.counted(symbol, RepeatKind::From(min), max)?]);
            }
            Some(max) => (max > min).then_some((RepeatKind::UpTo, max - min)),
        };
        if min > 0 {
            row.push(self.counted(symbol, RepeatKind::Exactly, min)?);
        }
        if let Some((kind, count)) = tail {
            row.push(self.counted(symbol, kind, count)?);
        }
        Ok(row)
    }

    /// Returns one symbol for a counted repetition. Large counts are made of blocks; each has one
    /// split into blocks and rest. Recursion is as deep as the count has digits to the base [`BLOCK`].
    fn counted(&mut self, symbol: Symbol, kind: RepeatKind, count: u32) -> Result<Symbol, LimitExceeded> {
        if kind == RepeatKind::Exactly && count == 1 {
            return Ok(symbol);
        }
        if let Some(&known) = self.of_repeat.get(&(symbol, kind, count)) {
            return Ok(known);
        }
        let made = self.nonterminal(String::new())?;
        self.of_repeat.insert((symbol, kind, count), Symbol::Nonterminal(made));
        let (blocks, rest) = (count / BLOCK, count % BLOCK);
        match kind {
            RepeatKind::AnyNumber => {
                self.produce(made, Vec::new())?;
                self.produce(made, vec![Symbol::Nonterminal(made), symbol])?;
            }
            RepeatKind::Exactly if count <= BLOCK => self.produce(made, vec![symbol; count as usize])?,
            RepeatKind::Exactly => {
                let block = self.counted(symbol, RepeatKind::Exactly, BLOCK)?;
                let mut row = vec![self.counted(block, RepeatKind::Exactly, blocks)?];
                if rest > 0 {
                    row.push(self.counted(symbol, RepeatKind::Exactly, rest)?);
                }
                self.produce(made, row)?;
            }
            RepeatKind::UpTo if count <= BLOCK => {
                self.produce(made, Vec::new())?;
                self.up_to(made, symbol, 1, count)?;
            }
            RepeatKind::From(least) => self.up_to(made, symbol, least, count)?,
            RepeatKind::UpTo => {
                let block = self.counted(symbol, RepeatKind::Exactly, BLOCK)?;
                let mut fewer = vec![self.counted(symbol, RepeatKind::UpTo, BLOCK - 1)?];
                if blocks > 1 {
                    fewer.insert(0, self.counted(block, RepeatKind::UpTo, blocks - 1)?);
                }
                self.produce(made, fewer)?;
                let mut most = vec![self.counted(block, RepeatKind::Exactly, blocks)?];
                if rest > 0 {
                    most.push(self.counted(symbol, RepeatKind::UpTo, rest)?);
                }
                self.produce(made, most)?;
            }
        }
        Ok(Symbol::Nonterminal(made))
    }

    /// Makes `made ::= cm | ... | cn` for `m` from `least` on, with `c1 ::= x`, `c(i+1) ::= ci x`: counts
    /// from the left, so the parser's stack stays flat.
    fn up_to(&mut self, made: u32, symbol: Symbol, least: u32, count: u32) -> Result<(), LimitExceeded> {
        let mut shorter = None;
        for at in 1..=count {
            let longer = self.nonterminal(String::new())?;
            let row = shorter.map(Symbol::Nonterminal).into_iter().chain([symbol]).collect();
            self.produce(longer, row)?;
            if at >= least {
                self.produce(made, vec![Symbol::Nonterminal(longer)])?;
            }
            shorter = Some(longer);
        }
        Ok(())
    }
}
