//! An LRU approximation for masks by constraint state: second chance (clock) in bounded memory.
//!
//! States with equal masks share one. When room is short, the clock's hand evicts the next mask that nobody
//! has asked for since its last pass. So a text that never comes back to where it was does not push out the
//! masks that others use.

use std::sync::Arc;

use hashbrown::{HashMap, HashTable};

use crate::ids::{StateId, TokenId, as_index};
use crate::vocab::{Quoted, TokenSet};

/// Stands for no slot and no state.
const NONE: u32 = u32::MAX;

/// A mask before the readers of keys and items have taken from it.
#[derive(Debug, Clone)]
pub(crate) struct GrammarMask {
    pub(crate) tokens: Arc<TokenSet>,
    /// Used only where there is a reader of keys.
    pub(crate) enclosed: SharedEnclosed,
}

/// The slot of a state's mask, and the next state with the same mask.
#[derive(Debug, Clone, Copy)]
struct MaskLink {
    slot: u32,
    next: u32,
}

/// A mask and its states.
#[derive(Debug)]
struct MaskSlot {
    /// `None` once the mask was evicted.
    mask: Option<Arc<TokenSet>>,
    hash: u64,
    /// Set when the mask is asked for, cleared when the hand passes.
    used: bool,
    /// The last state that got this mask.
    first: u32,
    /// Number of masks that were in this slot before.
    age: u32,
    /// The tokens that span strings; valid once `knows_enclosed` is set, which is when they are first asked
    /// for.
    enclosed: SharedEnclosed,
    knows_enclosed: bool,
}

/// The parts that a mask is the union of: their addresses, ascending, each once.
type MaskParts = [usize];

/// Masks by state. A hit is a lookup by index.
#[derive(Debug)]
pub(crate) struct MaskCache {
    /// Links by state, up to the highest state that had a mask.
    links: Vec<MaskLink>,
    slots: Vec<MaskSlot>,
    /// Number of slots, less than `NONE`.
    count: u32,
    by_mask: HashTable<u32>,
    /// Slots and their ages by recipe; a different age means that the slot has another mask now.
    by_recipe: HashMap<Box<MaskParts>, (u32, u32)>,
    /// Bytes of the recipes.
    recipes: usize,
    hand: usize,
    /// Slots without a mask.
    vacant: Vec<u32>,
    /// Memory of the masks, in bytes, and its bound.
    bytes: usize,
    max_bytes: usize,
}

impl MaskCache {
    /// A cache that holds at most `max_bytes` of masks.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            links: Vec::new(),
            slots: Vec::new(),
            count: 0,
            by_mask: HashTable::new(),
            by_recipe: HashMap::new(),
            recipes: 0,
            hand: 0,
            vacant: Vec::new(),
            bytes: 0,
            max_bytes,
        }
    }

    /// The mask of `state`, if it is here.
    pub(crate) fn get(&mut self, state: StateId) -> Option<Arc<TokenSet>> {
        let slot = self.slots.get_mut(self.links.get(state.index())?.slot as usize)?;
        slot.used = true;
        slot.mask.clone()
    }

    /// Returns the tokens of a state's mask that span strings, computing them on first use. `None` if the
    /// mask is not cached.
    pub(crate) fn enclosed(
        &mut self,
        state: StateId,
        make: impl FnOnce(&TokenSet) -> SharedEnclosed,
    ) -> Option<SharedEnclosed> {
        let slot = self.slots.get_mut(self.links.get(state.index())?.slot as usize)?;
        if !slot.knows_enclosed {
            slot.enclosed = make(slot.mask.as_ref()?);
            slot.knows_enclosed = true;
            self.bytes += slot.enclosed.as_ref().map_or(0, |enclosed| enclosed.bytes());
        }
        Some(slot.enclosed.clone())
    }

    /// Returns the mask of `state`, with its tokens that span strings if they are wanted; `None` if either is
    /// not cached. `held` is the caller's last mask: an equal one is moved out, not cloned, since an atomic
    /// reference count costs more than the comparison.
    pub(crate) fn following(
        &mut self,
        state: StateId,
        held: &mut Option<Arc<TokenSet>>,
        with_enclosed: bool,
    ) -> Option<GrammarMask> {
        let slot = self.slots.get_mut(self.links.get(state.index())?.slot as usize)?;
        if with_enclosed && !slot.knows_enclosed {
            return None;
        }
        let mask = slot.mask.as_ref()?;
        slot.used = true;
        let tokens = held.take_if(|held| Arc::ptr_eq(held, mask)).unwrap_or_else(|| Arc::clone(mask));
        Some(GrammarMask { tokens, enclosed: if with_enclosed { slot.enclosed.clone() } else { None } })
    }

    /// Files a mask under a state that has none yet. Returns it, or the equal mask that was cached before.
    /// Costs a pass over the mask, and a step for each state whose mask is evicted.
    pub(crate) fn keep(&mut self, state: StateId, mask: Arc<TokenSet>) -> Arc<TokenSet> {
        if mask_bytes(&mask) > self.max_bytes {
            return mask;
        }
        let hash = mask.hash64();
        let is_it = |&slot: &u32| self.slots[as_index(slot)].mask.as_ref() == Some(&mask);
        let at = match self.by_mask.find(hash, is_it) {
            Some(&known) => known,
            None => self.add(Arc::clone(&mask), hash),
        };
        self.link(state, at).unwrap_or(mask)
    }

    /// Does the same as [`keep`](Self::keep) for a mask that was made of these parts.
    pub(super) fn keep_made(
        &mut self,
        state: StateId,
        mask: Arc<TokenSet>,
        recipe: &MaskParts,
    ) -> Arc<TokenSet> {
        let mask = self.keep(state, mask);
        // A mask that is too large to be kept has no slot.
        let at = self.links.get(state.index()).map_or(NONE, |link| link.slot);
        let bytes = size_of_val(recipe) + size_of::<(Box<MaskParts>, u64)>();
        if let Some(slot) = self.slots.get(at as usize)
            && bytes <= self.max_bytes / RECIPES
        {
            let known = (at, slot.age);
            if self.recipes + bytes > self.max_bytes / RECIPES {
                self.forget_recipes();
            }
            self.recipes += bytes;
            self.by_recipe.insert(recipe.into(), known);
        }
        mask
    }

    /// Returns the mask made of these parts, if it is still cached, and files it under `state` too.
    pub(super) fn made_of(&mut self, state: StateId, recipe: &MaskParts) -> Option<Arc<TokenSet>> {
        let &(at, age) = self.by_recipe.get(recipe)?;
        let slot = self.slots.get_mut(at as usize).filter(|slot| slot.age == age)?;
        slot.used = true;
        self.link(state, at)
    }

    /// Forgets all recipes, since the parts are gone.
    pub(super) fn forget_recipes(&mut self) {
        self.by_recipe.clear();
        self.recipes = 0;
    }

    /// Files the mask of a slot under a state that has none yet.
    fn link(&mut self, state: StateId, at: u32) -> Option<Arc<TokenSet>> {
        if state.index() >= self.links.len() {
            self.links.resize(state.index() + 1, MaskLink { slot: NONE, next: NONE });
        }
        let slot = &mut self.slots[as_index(at)];
        self.links[state.index()] = MaskLink { slot: at, next: slot.first };
        slot.first = state.raw();
        slot.mask.clone()
    }

    /// Is half of the memory free, all recipes and one more mask over `size` tokens included?
    pub(crate) fn is_half_empty(&self, size: usize) -> bool {
        let most = size.div_ceil(WORD) * size_of::<u64>() + MASK_BYTES;
        self.bytes + most + self.max_bytes / RECIPES <= self.max_bytes / 2
    }

    /// Memory, in bytes. Evicted masks that sessions still hold are not counted.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + size_of_val(&*self.links) + self.recipes
    }

    /// Puts a mask that is not cached into a slot; evicts others until there is room.
    fn add(&mut self, mask: Arc<TokenSet>, hash: u64) -> u32 {
        let bytes = mask_bytes(&mask);
        let no_slot = |cache: &Self| cache.vacant.is_empty() && cache.slots.len() >= NONE as usize;
        while self.bytes + bytes > self.max_bytes || no_slot(self) {
            self.free();
        }
        self.bytes += bytes;
        let slot = MaskSlot {
            mask: Some(mask),
            hash,
            used: false,
            first: NONE,
            age: 0,
            enclosed: None,
            knows_enclosed: false,
        };
        let at = match self.vacant.pop() {
            Some(at) => {
                let age = self.slots[as_index(at)].age;
                self.slots[as_index(at)] = MaskSlot { age, ..slot };
                at
            }
            None => {
                self.slots.push(slot);
                let at = self.count;
                self.count += 1;
                at
            }
        };
        self.by_mask.insert_unique(hash, at, |&slot| self.slots[as_index(slot)].hash);
        at
    }

    /// Evicts the next mask that was not asked for since the hand last passed (second chance).
    fn free(&mut self) {
        let mask = loop {
            let slot = &mut self.slots[self.hand];
            if !std::mem::take(&mut slot.used)
                && let Some(mask) = slot.mask.take()
            {
                break mask;
            }
            self.hand = (self.hand + 1) % self.slots.len();
        };
        let at = self.hand;
        self.hand = (at + 1) % self.slots.len();
        let slot = &mut self.slots[at];
        self.bytes -= mask_bytes(&mask) + slot.enclosed.take().map_or(0, |enclosed| enclosed.bytes());
        slot.knows_enclosed = false;
        slot.age = slot.age.wrapping_add(1);
        let mut state = std::mem::replace(&mut slot.first, NONE);
        while let Some(link) = self.links.get_mut(state as usize) {
            state = std::mem::replace(link, MaskLink { slot: NONE, next: NONE }).next;
        }
        if let Ok(entry) = self.by_mask.find_entry(self.slots[at].hash, |&slot| slot as usize == at) {
            self.vacant.push(*entry.get());
            entry.remove();
        }
    }
}

/// Recipes take at most an eighth of the memory that masks may take, in addition to it.
const RECIPES: usize = 8;

/// Memory of a mask beside its tokens, in bytes: the set, the counts of its `Arc`, the slot, and at most two
/// numbers in the table.
const MASK_BYTES: usize = size_of::<TokenSet>() + 16 + size_of::<MaskSlot>() + 8;
/// Tokens per word of a bitset; a list takes less.
const WORD: usize = 64;

/// Memory of a mask in bytes.
fn mask_bytes(mask: &TokenSet) -> usize {
    mask.bytes() + MASK_BYTES
}

// Tokens of a mask that span strings in quotes are the only ones in which a key can begin and end.
// They are filed with the mask, so that a reader of keys looks at a handful of tokens, and at none for most
// masks, in place of all.

/// A shared [`Enclosed`], or `None` if it is empty, as most are: copying `None` counts no references.
pub(crate) type SharedEnclosed = Option<Arc<Enclosed>>;

/// Tokens of a mask with at least two quotes. Few masks have any.
#[derive(Debug, Default)]
pub(crate) struct Enclosed {
    three: Box<[TokenId]>,
    four: Box<[TokenId]>,
    /// Numbers of strings in [`Quoted::enclosing`], with the tokens that have it in their first quotes.
    strings: Box<[(usize, Box<[TokenId]>)]>,
}

impl Enclosed {
    /// Filters the vocabulary's lists of such tokens by the mask: a look-up each.
    fn new(quoted: &Quoted, mask: &TokenSet) -> Self {
        let within = |tokens: &[TokenId]| -> Box<[TokenId]> {
            tokens.iter().copied().filter(|&token| mask.contains(token)).collect()
        };
        let strings = quoted.enclosing.iter().map(|string| within(&string.tokens)).enumerate();
        Self {
            three: within(&quoted.by_count[2]),
            four: within(&quoted.by_count[3]),
            strings: strings.filter(|(_, tokens)| !tokens.is_empty()).collect(),
        }
    }

    /// Does the same as [`new`](Self::new), shared; `None` if it is empty.
    pub(crate) fn shared(quoted: &Quoted, mask: &TokenSet) -> SharedEnclosed {
        let enclosed = Self::new(quoted, mask);
        let is_any = enclosed.three.len() + enclosed.four.len() + enclosed.strings.len() > 0;
        is_any.then(|| Arc::new(enclosed))
    }

    /// Tokens with at least three quotes.
    pub(crate) fn of_three(&self) -> &[TokenId] {
        &self.three
    }

    /// Tokens with at least four quotes.
    pub(crate) fn of_four(&self) -> &[TokenId] {
        &self.four
    }

    /// Tokens with two or three quotes: the string in the first two, most bytes before it, and the tokens.
    pub(crate) fn strings<'a>(
        &'a self,
        quoted: &'a Quoted,
    ) -> impl Iterator<Item = (&'a [u8], usize, &'a [TokenId])> {
        self.strings.iter().filter_map(|(number, tokens)| {
            let string = quoted.enclosing.get(*number)?;
            Some((&*string.spelt, string.before, &**tokens))
        })
    }

    /// Memory beside the value itself, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let listed = self.strings.iter().map(|(_, tokens)| size_of_val::<[TokenId]>(tokens));
        size_of_val(&*self.three)
            + size_of_val(&*self.four)
            + size_of_val(&*self.strings)
            + listed.sum::<usize>()
    }
}

#[cfg(test)]
mod tests;
