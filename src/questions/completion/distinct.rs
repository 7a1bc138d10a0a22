//! Finds the shortest completion that repeats no key and no item.
//!
//! Method: A* over pairs of constraint state and JSON readers, byte by byte. The lower bound is the state's
//! distance to a complete text when repeats are allowed.

use std::{cmp::Reverse, collections::BinaryHeap};

use hashbrown::HashSet;

use super::CompletionSearch;
use crate::{ids::StateId, json_readers::JsonReaders, limits::LimitExceeded};

/// A node of the search, with the node and byte that led to it.
struct DetourNode {
    state: StateId,
    readers: JsonReaders,
    from: Option<(usize, u8)>,
    length: u64,
}

impl CompletionSearch<'_> {
    /// Returns the bytes of the shortest such completion; `None` if there is none. Costs a visit for each
    /// node that is nearer than that, and each byte.
    pub(super) fn past_readers(
        &mut self,
        start: StateId,
        readers: &JsonReaders,
    ) -> Result<Option<Vec<u8>>, LimitExceeded> {
        let mut stops = vec![DetourNode { state: start, readers: readers.clone(), from: None, length: 0 }];
        let mut open = BinaryHeap::from([Reverse((self.distance(start)?, 0))]);
        let mut seen = HashSet::new();
        while let Some(Reverse((_, at))) = open.pop() {
            let (state, length) = (stops[at].state, stops[at].length);
            if self.machine.is_complete(state) {
                return Ok(Some(text_to(&stops, at)));
            }
            if !seen.insert((state, stops[at].readers.place())) {
                continue;
            }
            for byte in 0..=u8::MAX {
                self.visit()?;
                let (program, work) = (self.program, &mut self.work);
                if self.machine.step(program, state, byte, work)?.is_none() {
                    continue;
                }
                let before = &stops[at].readers;
                let led = self.machine.step_with_readers(program, (state, before), byte, work)?;
                let Some((to, readers)) = led else { continue };
                let rest = self.distance(to)?;
                if rest < u64::MAX {
                    open.push(Reverse((rest.saturating_add(length + 1), stops.len())));
                    stops.push(DetourNode { state: to, readers, from: Some((at, byte)), length: length + 1 });
                }
            }
        }
        Ok(None)
    }
}

/// Returns the bytes on the way to a node.
fn text_to(stops: &[DetourNode], mut at: usize) -> Vec<u8> {
    let mut text = Vec::new();
    while let Some((before, byte)) = stops[at].from {
        text.push(byte);
        at = before;
    }
    text.reverse();
    text
}
