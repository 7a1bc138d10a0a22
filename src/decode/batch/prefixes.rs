//! Caches the keys and values of prompts' prefixes: an LRU cache of blocks of tokens in a tree, as in vLLM's
//! automatic prefix caching and SGLang's radix attention, but with copies of the blocks.
//!
//! Invariants: what a block holds is a function of its tokens and of those before it, and was computed by the
//! same model, so a prompt that begins with it goes on to the bit as if it were read; a block is found only
//! in the scope of its prompt; the blocks take no more than the budget, and the least recently used one goes
//! first, the end of a prefix before its beginning.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
};

use crate::{
    ids::TokenId,
    model::{BatchModel, KvCopy},
};

/// Predecessor of a block: none in a scope, or another block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Parent {
    Scope(u64),
    Block(u64),
}

type BlockKey = (Parent, Box<[TokenId]>);

#[derive(Debug)]
struct PrefixBlock {
    key: BlockKey,
    copy: KvCopy,
    depth: usize,
    used: u64,
}

/// The cached blocks.
#[derive(Debug, Default)]
pub(super) struct Prefixes {
    /// Most bytes of all blocks; 0: nothing is kept.
    budget: usize,
    bytes: usize,
    names: HashMap<BlockKey, u64>,
    blocks: HashMap<u64, PrefixBlock>,
    /// Blocks by the time of their last use; of equal times the deepest first.
    order: BTreeSet<(u64, Reverse<usize>, u64)>,
    /// Source of times and of names of blocks.
    next: u64,
}

impl Prefixes {
    /// An empty cache that keeps up to `budget` bytes.
    pub(super) fn new(budget: usize) -> Self {
        Self { budget, ..Self::default() }
    }

    /// Bytes of all cached blocks.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies the longest cached prefix of `tokens` without its last one to an empty `place` of the model.
    /// Returns the number of tokens copied.
    pub(super) fn fill<B: BatchModel>(
        &mut self,
        model: &mut B,
        place: usize,
        tokens: &[TokenId],
        scope: u64,
    ) -> usize {
        let Some(size) = model.copied_block().filter(|_| self.budget > 0) else { return 0 };
        self.next += 1;
        let now = self.next;
        let (mut parent, mut done) = (Parent::Scope(scope), 0);
        for block in tokens[..tokens.len().saturating_sub(1)].chunks_exact(size) {
            let Some(&name) = self.names.get(&(parent, Box::from(block))) else { break };
            let Some(found) = self.blocks.get(&name) else { break };
            if !model.copy_in(place, &found.copy) {
                break;
            }
            self.touch(name, now);
            (parent, done) = (Parent::Block(name), done + size);
        }
        done
    }

    /// Caches the keys and values of `tokens`, which `place` of the model has seen.
    pub(super) fn keep<B: BatchModel>(&mut self, model: &B, place: usize, tokens: &[TokenId], scope: u64) {
        let Some(size) = model.copied_block().filter(|_| self.budget > 0) else { return };
        self.next += 1;
        let now = self.next;
        let mut parent = Parent::Scope(scope);
        for (depth, block) in tokens.chunks_exact(size).enumerate() {
            let key = (parent, Box::from(block));
            let name = match self.names.get(&key) {
                Some(&name) => name,
                None => {
                    let range = depth * size..(depth + 1) * size;
                    let Some(copy) = model.copy_out(place, range) else { return };
                    if copy.bytes() > self.budget {
                        return;
                    }
                    self.add(PrefixBlock { key, copy, depth, used: now })
                }
            };
            self.touch(name, now);
            parent = Parent::Block(name);
        }
        self.trim();
    }

    fn add(&mut self, block: PrefixBlock) -> u64 {
        self.next += 1;
        let name = self.next;
        self.bytes += block.copy.bytes();
        self.names.insert(block.key.clone(), name);
        self.order.insert((block.used, Reverse(block.depth), name));
        self.blocks.insert(name, block);
        name
    }

    fn touch(&mut self, name: u64, now: u64) {
        let Some(block) = self.blocks.get_mut(&name) else { return };
        self.order.remove(&(block.used, Reverse(block.depth), name));
        block.used = now;
        self.order.insert((now, Reverse(block.depth), name));
    }

    /// Drops the least recently used blocks until the rest is within the budget. Using a block uses all
    /// before it, so no block goes before those behind it.
    fn trim(&mut self) {
        while self.bytes > self.budget
            && let Some((_, _, name)) = self.order.pop_first()
        {
            if let Some(block) = self.blocks.remove(&name) {
                self.bytes -= block.copy.bytes();
                self.names.remove(&block.key);
            }
        }
    }
}
