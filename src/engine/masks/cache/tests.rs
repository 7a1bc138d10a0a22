//! The cache of masks, held against a plain map.

use hashbrown::HashMap;
use proptest::prelude::*;

use super::*;
use crate::ids::TokenId;

const SIZE: usize = 2_000;

/// A mask for each number; some are equal.
fn mask(number: u32) -> TokenSet {
    let mut mask = TokenSet::empty(SIZE);
    for token in 0..SIZE {
        if token.is_multiple_of(number as usize % 11 + 2) {
            mask.insert(TokenId::from_index(token).unwrap());
        }
    }
    mask
}

/// Memory of each of them.
fn each() -> usize {
    mask_bytes(&mask(0))
}

fn room(masks: usize) -> MaskCache {
    MaskCache::new(each() * masks + each() / 2)
}

proptest! {
    /// The cache gives back what was filed, whatever was evicted in between, and holds no more than it
    /// may.
    #[test]
    fn the_cache_returns_the_filed_masks_within_its_room(
        masks in 0..6_usize,
        states in prop::collection::vec(0..40_u32, 0..200),
    ) {
        let mut cache = room(masks);
        let mut held: HashMap<TokenSet, Arc<TokenSet>> = HashMap::new();
        for state in states.into_iter().map(StateId::new) {
            let found =
                cache.get(state).unwrap_or_else(|| cache.keep(state, Arc::new(mask(state.raw()))));
            prop_assert_eq!(&*found, &mask(state.raw()));
            prop_assert_eq!(cache.get(state).is_some(), masks > 0);
            prop_assert!(cache.slots.len() <= masks);
            prop_assert_eq!(cache.by_mask.len(), cache.slots.len());
            held.insert(mask(state.raw()), found);
            let there = (0..40).filter_map(|state| cache.get(StateId::new(state)));
            for found in there.collect::<Vec<_>>() {
                let other = &held[&*found];
                prop_assert!(Arc::ptr_eq(&found, other) || Arc::strong_count(other) == 1);
            }
        }
    }
}

proptest! {
    /// Masks of many sizes, lists and bits, never take more than the room for them.
    #[test]
    fn counted_bytes_are_those_of_the_masks_held(
        room in 0..9_000_usize,
        masks in prop::collection::vec(prop::collection::btree_set(0..2_560_u32, 0..30), 0..60),
    ) {
        let mut cache = MaskCache::new(room);
        for (state, tokens) in (0..).map(StateId::new).zip(masks) {
            let mask = TokenSet::of(tokens.into_iter().map(TokenId::new).collect(), 2_560);
            let bytes = mask_bytes(&mask);
            prop_assert_eq!(&*cache.keep(state, Arc::new(mask.clone())), &mask);
            let found = cache.get(state);
            prop_assert_eq!(found.as_deref(), (bytes <= room).then_some(&mask));
            let there = cache.slots.iter().filter_map(|slot| slot.mask.as_deref());
            let (count, held) = there.fold((0, 0), |(n, all), mask| (n + 1, all + mask_bytes(mask)));
            prop_assert_eq!(cache.bytes, held);
            prop_assert!(held <= room);
            prop_assert_eq!(cache.by_mask.len(), count);
            prop_assert_eq!(cache.slots.len(), count + cache.vacant.len());
        }
    }
}

/// The memory that [`Limits::mask_bytes`](crate::Limits::mask_bytes) promises.
#[test]
fn masks_are_a_bit_for_each_token_and_little_more() {
    let bits = 64_000 / 8;
    let mut mask = TokenSet::empty(64_000);
    (0..64_000).map(TokenId::new).for_each(|token| mask.insert(token));
    assert!((bits + size_of::<MaskSlot>()..=bits + 96).contains(&mask_bytes(&mask)));
    let few = TokenSet::of(vec![TokenId::new(3), TokenId::new(5)], 64_000);
    assert!(mask_bytes(&few) < 128);
}

#[test]
fn equal_masks_share_one_entry() {
    let mut cache = room(1);
    let (one, other) =
        (cache.keep(StateId::new(3), Arc::new(mask(0))), cache.keep(StateId::new(0), Arc::new(mask(11))));
    assert!(Arc::ptr_eq(&one, &other));
    assert!(cache.get(StateId::new(1)).is_none());
}

#[test]
fn a_recipe_is_known_while_its_mask_is_cached() {
    let mut cache = room(2);
    let states: Vec<StateId> = (0..9).map(StateId::new).collect();
    let made = cache.keep_made(states[0], Arc::new(mask(0)), &[1, 2]);
    assert!(cache.made_of(states[1], &[1]).is_none());
    assert!(cache.made_of(states[1], &[1, 2]).is_some_and(|found| Arc::ptr_eq(&found, &made)));
    assert!(cache.get(states[1]).is_some_and(|found| Arc::ptr_eq(&found, &made)));
    // Once in use, then no more.
    (3..8).for_each(|state| _ = cache.keep(states[state], Arc::new(mask(state as u32))));
    assert!(cache.get(states[1]).is_none() && cache.made_of(states[1], &[1, 2]).is_none());
    cache.keep_made(states[2], Arc::new(mask(1)), &[3]);
    assert!(cache.bytes() >= 2 * each() + size_of::<usize>());
    cache.forget_recipes();
    assert!(cache.get(states[2]).is_some() && cache.made_of(states[8], &[3]).is_none());
}

/// A mask that is too large is not kept, and neither is its recipe.
#[test]
fn masks_larger_than_the_room_are_not_kept() {
    let mut cache = MaskCache::new(mask_bytes(&TokenSet::empty(SIZE)));
    cache.keep(StateId::new(5), Arc::new(TokenSet::empty(SIZE)));
    cache.keep_made(StateId::new(2), Arc::new(mask(0)), &[1]);
    assert!(cache.get(StateId::new(2)).is_none() && cache.made_of(StateId::new(3), &[1]).is_none());
    assert!(cache.get(StateId::new(5)).is_some());
}

#[test]
fn masks_in_use_are_not_evicted() {
    let mut cache = room(4);
    let used = cache.keep(StateId::new(0), Arc::new(mask(0)));
    for state in 1..11 {
        cache.keep(StateId::new(state), Arc::new(mask(state)));
        assert!(cache.get(StateId::new(0)).is_some_and(|found| Arc::ptr_eq(&found, &used)), "{state}");
    }
    assert!(cache.get(StateId::new(1)).is_none());
}
