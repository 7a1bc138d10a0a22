//! Counts of tokens by context, and their mixture: an n-gram model with interpolated back-off.
//!
//! Counts are weights: a token that came counts for one. If the model's probabilities are known they count in
//! its place, since one look at a distribution says more than one sample of it.
//!
//! Contexts of a token go from coarse to rich: the place in the grammar, then with more and more earlier
//! tokens (n-grams). Invariant: their keys are the same in every run for the same grammar and vocabulary;
//! they are in files of users.

use hashbrown::HashMap;

use super::propose::Site;
use crate::ids::{TokenId, as_u64};
use crate::limits::{PRIOR_CONTEXTS, PRIOR_TOKENS};
use crate::split_mix::mixed;
use crate::store::{PayloadReader, PayloadWriter, StoreError};

/// The tokens that followed in one context.
#[derive(Debug, Clone, PartialEq)]
struct Followers {
    /// Number of observations.
    total: f32,
    /// Level of the context; richer ones are higher.
    level: u8,
    /// Sorted by token. Weights add up to at most `total`.
    tokens: Vec<(TokenId, f32)>,
}

/// Followers by context.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Counts {
    contexts: HashMap<u64, Followers>,
    /// Number of tokens in all contexts.
    tokens: usize,
}

impl Followers {
    fn new(level: u8) -> Self {
        Self { total: 0.0, level, tokens: Vec::new() }
    }

    /// Adds `weights`, sorted by token, of `total` observations.
    fn add(&mut self, total: f32, weights: &[(TokenId, f32)]) {
        self.total += total;
        let old = std::mem::take(&mut self.tokens);
        let (mut ours, mut theirs) = (old.into_iter().peekable(), weights.iter().copied().peekable());
        loop {
            let next = match (ours.peek(), theirs.peek()) {
                (Some(a), Some(b)) if a.0 == b.0 => {
                    theirs.next().zip(ours.next()).map(|(b, a)| (a.0, a.1 + b.1))
                }
                (Some(a), Some(b)) if b.0 < a.0 => theirs.next(),
                (None, _) => theirs.next(),
                _ => ours.next(),
            };
            let Some(next) = next else { break };
            self.tokens.push(next);
        }
        if self.tokens.len() > PRIOR_TOKENS {
            self.tokens.select_nth_unstable_by(PRIOR_TOKENS, |a, b| b.1.total_cmp(&a.1));
            self.tokens.truncate(PRIOR_TOKENS);
            self.tokens.sort_unstable_by_key(|&(token, _)| token);
        }
    }
}

impl Counts {
    /// Counts what came, or could have come with these probabilities (sorted by token), in all of the
    /// contexts.
    pub(super) fn add(&mut self, keys: &ContextKeys, weights: &[(TokenId, f32)]) {
        for (level, key) in keys.rich_first() {
            let own = self.contexts.entry(key).or_insert_with(|| Followers::new(level));
            self.tokens -= own.tokens.len();
            own.add(1.0, weights);
            self.tokens += own.tokens.len();
        }
        self.shrink(PRIOR_CONTEXTS);
    }

    /// Adds all counts of `other`.
    pub(super) fn merge(&mut self, other: &Self) {
        for (&key, followers) in &other.contexts {
            let own = self.contexts.entry(key).or_insert_with(|| Followers::new(followers.level));
            self.tokens -= own.tokens.len();
            own.add(followers.total, &followers.tokens);
            self.tokens += own.tokens.len();
        }
        self.shrink(PRIOR_CONTEXTS);
    }

    /// Forgets the contexts with the fewest observations, among equals the richest, until at most `most` are
    /// left; and an eighth more, so that it is not called for each new one.
    pub(super) fn shrink(&mut self, most: usize) {
        if self.contexts.len() <= most {
            return;
        }
        let rank =
            |key: &u64, followers: &Followers| (followers.total.to_bits(), u8::MAX - followers.level, *key);
        let mut ranks: Vec<_> = self.contexts.iter().map(|(key, followers)| rank(key, followers)).collect();
        let drop = ranks.len() - (most - most / 8);
        // Totals are positive, so their bits are in the order of their values.
        let (_, &mut last, _) = ranks.select_nth_unstable(drop - 1);
        self.contexts.retain(|key, followers| rank(key, followers) > last);
        self.count();
    }

    /// Forgets tokens that are a small part of what followed in their context.
    pub(super) fn lighten(&mut self) {
        const LEAST: f32 = 0.003;
        for followers in self.contexts.values_mut() {
            let least = LEAST * followers.total;
            followers.tokens.retain(|&(_, weight)| weight >= least);
        }
        self.count();
    }

    fn count(&mut self) {
        self.tokens = self.contexts.values().map(|followers| followers.tokens.len()).sum();
    }

    /// Approximate memory in bytes. Constant time.
    pub(super) fn memory(&self) -> usize {
        /// Overhead of an allocation: the allocator's, and spare capacity.
        const ALLOCATION: usize = 32;
        let tokens = self.tokens * size_of::<(TokenId, f32)>();
        self.contexts.allocation_size() + self.contexts.len() * ALLOCATION + tokens
    }

    /// Number of contexts.
    pub(super) fn len(&self) -> usize {
        self.contexts.len()
    }

    /// Counts contexts and tokens in them, by level.
    pub(super) fn by_level(&self) -> Vec<(usize, usize)> {
        let mut levels = vec![(0, 0); LEVELS];
        for followers in self.contexts.values() {
            let (contexts, tokens) = &mut levels[usize::from(followers.level)];
            *contexts += 1;
            *tokens += followers.tokens.len();
        }
        levels
    }

    /// Serialises all contexts, by key.
    pub(super) fn write(&self, writer: &mut PayloadWriter) {
        let mut contexts: Vec<_> = self.contexts.iter().collect();
        contexts.sort_unstable_by_key(|(key, _)| **key);
        writer.count(contexts.len());
        for (key, followers) in contexts {
            writer.u64(*key);
            writer.u8(followers.level);
            writer.u32(followers.total.to_bits());
            writer.count(followers.tokens.len());
            for (token, weight) in &followers.tokens {
                writer.u32(token.raw());
                writer.u32(weight.to_bits());
            }
        }
    }

    /// Reads serialised counts of tokens `0..size`.
    pub(super) fn read(reader: &mut PayloadReader<'_>, size: usize) -> Result<Self, StoreError> {
        let wrong = StoreError::malformed;
        let weight = |bits| Some(f32::from_bits(bits)).filter(|weight| weight.is_finite() && *weight > 0.0);
        let count = reader.count(21)?;
        let mut contexts = HashMap::with_capacity(count);
        for _ in 0..count {
            let (key, level) = (reader.u64()?, reader.u8()?);
            let total = weight(reader.u32()?).ok_or_else(|| wrong("a context that was never met"))?;
            let mut tokens = Vec::with_capacity(reader.count(8)?);
            for _ in 0..tokens.capacity() {
                let token = TokenId::new(reader.u32()?);
                let weight = weight(reader.u32()?).ok_or_else(|| wrong("a token without weight"))?;
                tokens.push((token, weight));
            }
            let ordered = tokens.is_sorted_by(|a, b| a.0 < b.0);
            if !ordered || tokens.last().is_some_and(|(token, _)| token.index() >= size) {
                return Err(wrong("tokens out of order, or past the last"));
            }
            if usize::from(level) >= LEVELS {
                return Err(wrong("a context of no known level"));
            }
            if contexts.insert(key, Followers { total, level, tokens }).is_some() {
                return Err(wrong("a context twice"));
            }
        }
        let mut counts = Self { contexts, tokens: 0 };
        counts.count();
        Ok(counts)
    }
}

/// Probabilities of the tokens that followed in the contexts of one place, and how well founded they are.
#[derive(Debug, Default)]
pub(super) struct Mixture {
    /// Share of each token; zero except for the candidates.
    shares: Vec<f32>,
    pub(super) candidates: Vec<TokenId>,
    /// The richest level with observations.
    pub(super) level: usize,
    /// Number of observations at that level.
    pub(super) support: f32,
}

impl Mixture {
    /// Weight of observations in a poorer context relative to those in a richer one.
    const BACK_OFF: f32 = 0.2;
    /// Remaining mass below which poorer contexts are not consulted.
    const LEAST: f32 = 0.02;

    /// Mixes the contexts, rich to poor, by interpolated back-off: a context with more observations takes a
    /// larger share of the remaining mass. The sources are added up, by their factors.
    pub(super) fn fill(&mut self, sources: &[(&Counts, f32)], keys: &ContextKeys) {
        self.clear();
        let back_off = if keys.is_single() { 0.0 } else { Self::BACK_OFF };
        let mut left = 1.0;
        for (level, key) in keys.rich_first() {
            let met =
                || sources.iter().filter_map(|(counts, factor)| Some((counts.contexts.get(&key)?, *factor)));
            let total: f32 = met().map(|(followers, factor)| factor * followers.total).sum();
            if total == 0.0 {
                continue;
            }
            if self.support == 0.0 {
                self.level = usize::from(level);
                self.support = total;
            }
            for (followers, factor) in met() {
                self.add(followers, factor * left / (total + back_off));
            }
            left *= back_off / (total + back_off);
            if left < Self::LEAST {
                break;
            }
        }
    }

    /// Adds what followed; each observation counts for this share.
    fn add(&mut self, followers: &Followers, part: f32) {
        for &(token, weight) in &followers.tokens {
            if token.index() >= self.shares.len() {
                self.shares.resize(token.index() + 1, 0.0);
            }
            let share = &mut self.shares[token.index()];
            if *share == 0.0 {
                self.candidates.push(token);
            }
            *share += part * weight;
        }
    }

    /// Returns the probability of a candidate.
    pub(super) fn share(&self, token: TokenId) -> f64 {
        self.shares.get(token.index()).copied().unwrap_or_default().into()
    }

    fn clear(&mut self) {
        for token in self.candidates.drain(..) {
            self.shares[token.index()] = 0.0;
        }
        self.level = 0;
        self.support = 0.0;
    }
}

/// Number of earlier tokens that count at each level, besides the place in the grammar. The first level is
/// the scanner's states alone.
const TOKENS: [usize; LEVELS] = [0, 0, 1, 2, 3, 4, 6];
/// Number of levels.
pub(super) const LEVELS: usize = 7;

/// The levels as they are written to files.
const LEVEL_NUMBERS: [u8; LEVELS] = [0, 1, 2, 3, 4, 5, 6];

/// The contexts of one token, coarse to rich. Richer ones may be missing at the start of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct ContextKeys {
    keys: [u64; LEVELS],
    /// The coarsest level that counts.
    first: usize,
    len: usize,
}

impl ContextKeys {
    /// Computes the contexts of the next token.
    pub(super) fn at(site: &Site<'_>) -> Self {
        let context = site.context();
        let tokens = site.tokens();
        let mut keys = [mixed(0, context.alpha()); LEVELS];
        let (mut hash, mut counted, mut len) = (mixed(context.alpha(), context.beta()), 0, 1);
        let mut before = tokens.iter().rev();
        for (level, &count) in TOKENS.iter().enumerate().skip(1) {
            while counted < count
                && let Some(token) = before.next()
            {
                hash = mixed(hash, u64::from(token.raw()));
                counted += 1;
            }
            if counted < count {
                break;
            }
            keys[level] = mixed(hash, as_u64(level));
            len = level + 1;
        }
        Self { keys, first: 0, len }
    }

    /// Keeps the place in the grammar alone (the paper's alpha and beta): no earlier tokens, no back-off.
    pub(super) fn of_place(self) -> Self {
        Self { first: 1, len: 2, ..self }
    }

    /// Is there only one context, with nothing to back off to?
    fn is_single(&self) -> bool {
        self.len - self.first == 1
    }

    /// Iterates over the keys with their levels, rich to coarse.
    fn rich_first(&self) -> impl Iterator<Item = (u8, u64)> + '_ {
        let (levels, keys) = (&LEVEL_NUMBERS[..self.len], &self.keys[..self.len]);
        levels.iter().copied().zip(keys.iter().copied()).skip(self.first).rev()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists the contexts by key, with observations, level and weights of tokens 0 and on.
    fn counts(contexts: &[(u64, f32, u8, &[f32])]) -> Counts {
        let followers = |&(key, total, level, weights): &(u64, f32, u8, &[f32])| {
            let tokens = (0..).map(TokenId::new).zip(weights.iter().copied()).collect();
            (key, Followers { total, level, tokens })
        };
        let mut counts = Counts { contexts: contexts.iter().map(followers).collect(), tokens: 0 };
        counts.count();
        counts
    }

    fn keys(counts: &Counts) -> Vec<u64> {
        let mut keys: Vec<u64> = counts.contexts.keys().copied().collect();
        keys.sort_unstable();
        keys
    }

    #[test]
    fn rare_tokens_of_a_context_are_forgotten_by_their_share() {
        let mut some = counts(&[(1, 1000.0, 0, &[2.0, 4.0, 900.0]), (2, 1.0, 0, &[0.5, 0.002])]);
        some.lighten();
        let left =
            |key: u64| some.contexts[&key].tokens.iter().map(|&(_, weight)| weight).collect::<Vec<_>>();
        assert_eq!((left(1), left(2), some.tokens), (vec![4.0, 900.0], vec![0.5], 3));
    }

    /// Forgets an eighth more than needed: first the least frequent, then the richest, then by key.
    #[test]
    fn contexts_seen_least_are_forgotten() {
        let all: Vec<(u64, f32, u8, &[f32])> = vec![
            (1, 3.0, 0, &[1.0, 1.0]),
            (2, 1.0, 3, &[1.0]),
            (3, 1.0, 1, &[1.0]),
            (4, 2.0, 0, &[1.0]),
            (5, 1.0, 1, &[1.0]),
            (6, 9.0, 6, &[1.0]),
            (7, 9.0, 6, &[1.0]),
            (8, 9.0, 6, &[1.0]),
            (9, 9.0, 6, &[1.0]),
        ];
        let mut some = counts(&all);
        some.shrink(9);
        assert_eq!(some.len(), 9);
        some.shrink(8);
        assert_eq!(keys(&some), [1, 4, 5, 6, 7, 8, 9]);
        assert_eq!(some.tokens, 8);
        some.shrink(4);
        assert_eq!(keys(&some), [6, 7, 8, 9]);
    }

    #[test]
    fn memory_of_counts_is_that_of_tokens_and_contexts() {
        let few = counts(&[(1, 1.0, 0, &[0.5])]);
        let many = counts(&[(1, 1.0, 0, &[0.001; 500])]);
        assert_eq!(many.memory() - few.memory(), 499 * 8);
        assert!(few.memory() > 8 + size_of::<(u64, Followers)>());
        // In a table as large.
        let some = counts(&[(1, 1.0, 0, &[0.5]), (2, 1.0, 0, &[0.5]), (3, 1.0, 0, &[0.5])]);
        assert_eq!(some.memory() - few.memory(), 2 * (32 + 8));
    }
    #[test]
    fn impossible_weights_are_not_read() {
        let read = |total: f32, weight: f32| {
            let mut writer = PayloadWriter::default();
            counts(&[(1, total, 0, &[weight])]).write(&mut writer);
            Counts::read(&mut PayloadReader::new(&writer.finish()), 1).is_ok()
        };
        assert!(read(1.0, 0.5));
        for wrong in [0.0, -1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(!read(wrong, 0.5) && !read(1.0, wrong), "{wrong}");
        }
    }
}
