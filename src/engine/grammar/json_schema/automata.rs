//! A cache of automata that many schemas share, such as that of the numbers from 0 on.

use std::{
    any::Any,
    fmt,
    hash::{Hash, Hasher},
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
};

use hashbrown::HashMap;

use super::{dfa::CharDfa, leaf::LeafError};
use crate::{grammar::Automaton, limits::AUTOMATA_BYTES};

/// An LRU cache of automata that schemas share (numbers with bounds, formats, white space).
///
/// It is for callers that read many schemas: a schema that uses some of them is read in a fraction of the
/// time. Clones are handles of the same cache; it is `Send` and `Sync`. A
/// [`Compiler`](crate::Compiler::automata) has one. Grammars are the same with and without it. At most
/// [`AUTOMATA_BYTES`] bytes are kept; the automata least recently used are dropped first.
///
/// # Example
/// ```
/// use domino::{AutomataCache, Grammar, Limits, Syntax};
///
/// let (automata, limits) = (AutomataCache::new(), Limits::default());
/// for schema in [r#"{"type": "integer"}"#, r#"{"items": {"type": "integer"}}"#] {
///     Grammar::parse_with(Syntax::JsonSchema, schema, &limits, &automata)?;
/// }
/// assert!(automata.bytes() > 0);
/// automata.clear();
/// assert_eq!(automata.bytes(), 0);
/// # Ok::<(), domino::GrammarError>(())
/// ```
#[derive(Clone, Default)]
pub struct AutomataCache {
    known: Arc<Mutex<Known>>,
    /// True for the cache of a single call, which takes fixed automata from the process.
    is_of_one_call: bool,
}

/// Automata of fixed recipes, for calls without a cache: a few dozen, of less than 3 MB in all.
static FIXED: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Known {
    entries: HashMap<Box<dyn Recipe>, Entry>,
    /// A logical clock that goes up with every use.
    clock: u64,
}

struct Entry {
    made: CachedValue,
    used: u64,
}

/// A cached value.
#[derive(Clone)]
enum CachedValue {
    Automaton(Automaton),
    /// A language, with its automaton over bytes once that is made.
    Language(CharDfa),
}

/// A cache key: a description of how an automaton is made. Each kind of automaton has a type of its own.
pub(super) trait Recipe: Any + Send + Sync {
    /// Memory of the recipe, in bytes.
    fn bytes(&self) -> usize;
    /// True for the few recipes that do not depend on schemas.
    fn is_fixed(&self) -> bool;
    fn is(&self, other: &dyn Recipe) -> bool;
    fn hash_into(&self, hasher: &mut dyn Hasher);
}

/// Implements [`Recipe`] for a type with `Eq` and `Hash`, from functions for its memory in bytes beyond its
/// own size, and for whether it is fixed.
macro_rules! recipe {
    ($type:ty, $bytes:expr, $is_fixed:expr) => {
        impl $crate::grammar::json_schema::automata::Recipe for $type {
            fn bytes(&self) -> usize {
                let bytes: fn(&Self) -> usize = $bytes;
                size_of::<Self>() + bytes(self)
            }

            fn is_fixed(&self) -> bool {
                let is_fixed: fn(&Self) -> bool = $is_fixed;
                is_fixed(self)
            }

            fn is(&self, other: &dyn $crate::grammar::json_schema::automata::Recipe) -> bool {
                (other as &dyn std::any::Any).downcast_ref::<Self>().is_some_and(|other| other == self)
            }

            fn hash_into(&self, mut hasher: &mut dyn std::hash::Hasher) {
                std::hash::Hash::hash(&std::any::TypeId::of::<Self>(), &mut hasher);
                std::hash::Hash::hash(self, &mut hasher);
            }
        }
    };
}
pub(super) use recipe;

impl PartialEq for dyn Recipe {
    fn eq(&self, other: &Self) -> bool {
        self.is(other)
    }
}

impl Eq for dyn Recipe {}

impl Hash for dyn Recipe {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash_into(state);
    }
}

impl CachedValue {
    fn bytes(&self) -> usize {
        match self {
            Self::Automaton(automaton) => automaton.bytes(),
            Self::Language(language) => language.bytes(),
        }
    }
}

impl Known {
    /// Memory of an entry of the map, without what it points to.
    const ENTRY: usize = size_of::<(Box<dyn Recipe>, Entry)>() + 1;

    fn bytes(&self) -> usize {
        let entries = self.entries.iter().map(|(key, entry)| key.bytes() + entry.made.bytes());
        entries.sum::<usize>() + self.entries.capacity() * Self::ENTRY
    }

    /// Drops the least recently used entries until at most `most` bytes are kept.
    fn trim(&mut self, most: usize) {
        let mut bytes = self.bytes();
        if bytes <= most {
            return;
        }
        let mut uses: Vec<u64> = self.entries.values().map(|entry| entry.used).collect();
        uses.sort_unstable();
        let mut weights: HashMap<u64, usize> = HashMap::with_capacity(uses.len());
        for (key, entry) in &self.entries {
            weights.insert(entry.used, key.bytes() + entry.made.bytes());
        }
        let mut last = 0;
        for used in uses {
            if bytes <= most {
                break;
            }
            bytes = bytes.saturating_sub(weights.get(&used).copied().unwrap_or(0));
            last = used;
        }
        self.entries.retain(|_, entry| entry.used > last);
    }
}

impl AutomataCache {
    /// Makes an empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A cache for a single call. Automata that do not depend on schemas are made once for the process.
    pub(crate) fn of_one_call() -> Self {
        Self { is_of_one_call: true, ..Self::default() }
    }

    /// Memory of the cached automata, in bytes. Linear in their number.
    #[must_use]
    pub fn bytes(&self) -> usize {
        lock(&self.known).bytes()
    }

    /// Empties the cache. Grammars that were read keep their automata.
    pub fn clear(&self) {
        *lock(&self.known) = Known::default();
    }

    /// Drops the least recently used automata until the rest takes no more than `most` bytes.
    pub(crate) fn trim(&self, most: usize) {
        lock(&self.known).trim(most);
    }

    /// The automaton of a recipe, which `make` makes if it is not cached.
    ///
    /// # Errors
    /// Any error of `make`, which is not cached.
    pub(super) fn automaton(
        &self,
        recipe: impl Recipe,
        make: impl FnOnce() -> Result<Automaton, LeafError>,
    ) -> Result<Automaton, LeafError> {
        if let Some(CachedValue::Automaton(known)) = self.find(&recipe) {
            return Ok(known);
        }
        // The lock is not held while the automaton is made; two threads may make the same.
        let made = make()?;
        self.keep(Box::new(recipe), CachedValue::Automaton(made.clone()));
        Ok(made)
    }

    /// The language of a recipe, cached with its automaton over bytes once that is made.
    pub(super) fn language(
        &self,
        recipe: impl Recipe,
        make: impl FnOnce() -> Result<CharDfa, LeafError>,
    ) -> Result<CharDfa, LeafError> {
        if let Some(CachedValue::Language(known)) = self.find(&recipe) {
            return Ok(known);
        }
        let made = make()?;
        self.keep(Box::new(recipe), CachedValue::Language(made.clone()));
        Ok(made)
    }

    fn find(&self, recipe: &dyn Recipe) -> Option<CachedValue> {
        let mut known = self.place_of(recipe);
        known.clock += 1;
        let now = known.clock;
        let entry = known.entries.get_mut(recipe)?;
        entry.used = now;
        Some(entry.made.clone())
    }

    fn keep(&self, recipe: Box<dyn Recipe>, made: CachedValue) {
        if made.bytes() > AUTOMATA_BYTES / 2 {
            return;
        }
        let mut known = self.place_of(&*recipe);
        known.clock += 1;
        let used = known.clock;
        known.entries.insert(recipe, Entry { made, used });
        known.trim(AUTOMATA_BYTES);
    }

    /// The cache for the automaton of a recipe: the process's or this one.
    fn place_of(&self, recipe: &dyn Recipe) -> MutexGuard<'_, Known> {
        lock(if self.is_of_one_call && recipe.is_fixed() { &FIXED } else { &self.known })
    }
}

fn lock(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for AutomataCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = lock(&self.known);
        f.debug_struct("AutomataCache").field("automata", &known.entries.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar::automaton::{Edge, State};

    #[derive(PartialEq, Eq, Hash)]
    struct One(usize);
    recipe!(One, |_| 0, |_| false);

    /// A second kind of recipe, whose values have the same hashes.
    #[derive(PartialEq, Eq, Hash)]
    struct Other(usize);
    recipe!(Other, |_| 0, |_| true);

    fn of_states(count: usize) -> Automaton {
        let edge = |to: usize| Edge { first: b'a', last: b'a', to: u32::try_from(to).unwrap() };
        let state = |at: usize| State { accepts: at + 1 == count, edges: vec![edge((at + 1) % count)] };
        Automaton::new((0..count).map(state).collect()).unwrap()
    }

    /// True if the automaton had to be made.
    fn asked(cache: &AutomataCache, key: impl Recipe, states: usize) -> bool {
        let mut made = false;
        let automaton = cache.automaton(key, || {
            made = true;
            Ok(of_states(states))
        });
        assert_eq!(automaton.unwrap().states().len(), states);
        made
    }

    #[test]
    fn small_automata_are_made_once() {
        let cache = AutomataCache::new();
        assert!(asked(&cache, One(1), 2) && !asked(&cache, One(1), 2));
        assert!(asked(&cache, Other(1), 3) && !asked(&cache, Other(1), 3) && !asked(&cache, One(1), 2));
        let large = AUTOMATA_BYTES / of_states(64).bytes() * 64;
        assert!(asked(&cache, One(2), large) && asked(&cache, One(2), large));
        assert!(cache.automaton(One(3), || Err(LeafError::Number(String::new()))).is_err());
        assert!(asked(&cache, One(3), 4));
        cache.clone().clear();
        assert!(cache.bytes() == 0 && asked(&cache, One(1), 2) && cache.bytes() > 0);
    }

    #[test]
    fn the_least_recently_used_automaton_is_evicted_first() {
        let cache = AutomataCache::new();
        let part = AUTOMATA_BYTES / of_states(64).bytes() * 64 / 5;
        asked(&cache, Other(0), 2);
        for key in 0..40 {
            assert!(asked(&cache, One(key), part) && !asked(&cache, Other(0), 2));
            assert!(cache.bytes() <= AUTOMATA_BYTES, "{}", cache.bytes());
        }
        assert!(!asked(&cache, One(39), part) && asked(&cache, One(1), part));
    }

    #[test]
    fn fixed_automata_are_shared_by_calls_without_a_cache() {
        let calls = || AutomataCache::of_one_call();
        asked(&calls(), Other(7), 5);
        assert!(!asked(&calls(), Other(7), 5) && asked(&AutomataCache::new(), Other(7), 5));
        assert!(asked(&calls(), One(7), 5) && asked(&calls(), One(7), 5));
    }

    #[test]
    fn languages_are_weighed_with_their_automata() {
        let cache = AutomataCache::new();
        let language = cache.language(One(0), || CharDfa::of(["abc", "abd"])).unwrap();
        let before = cache.bytes();
        language.spelled(|_| Ok(of_states(100))).unwrap();
        assert_eq!(cache.bytes() - before, of_states(100).bytes());
    }
}
