//! Steps and searches for dead ends where the items of some arrays must differ (`uniqueItems`).
//!
//! Only the parser knows which arrays these are: the commas and brackets after their items are terminals of
//! their own. When an item repeats an earlier one, these terminals can no longer come next; threads for
//! arrays without the constraint survive. A token is also refused if every continuation repeats an item (a
//! dead end), which a depth-first search over the beginnings of earlier items finds out.

use hashbrown::{HashMap, HashSet};

use super::{
    array_items::{ArrayItems, Event},
    object_keys::ObjectKeys,
    repeat_candidates::Continuations,
};
use crate::{
    grammar::DistinctItems,
    ids::{ScanStateId, StateId, TokenId, saturating_u32},
    limits::{LimitExceeded, Work},
    machine::StateAutomaton,
    program::Program,
};

/// Is it a byte of a string's character that stands for itself?
fn is_plain(byte: u8) -> bool {
    byte >= b' ' && !matches!(byte, b'"' | b'\\')
}

/// A text's place in the grammar and in its JSON.
type At = (StateId, ArrayItems);

/// A node in the search for dead ends. It has the reader of keys where keys may run out: an object may have
/// to repeat either a key or an item.
pub(crate) struct SearchState {
    pub(crate) state: StateId,
    pub(crate) items: ArrayItems,
    pub(crate) keys: Option<ObjectKeys>,
}

/// Can a string still become one that is not among the items?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Some,
    None,
    Unknown,
}

impl DistinctItems {
    /// Is there an array whose values may all have come?
    pub(crate) fn may_run_out(self) -> bool {
        self.strings_may_run_out || self.numbers_may_run_out
    }
}

impl StateAutomaton {
    /// Returns the place after some bytes, or how many of them can follow.
    pub(crate) fn walk_items(
        &mut self,
        program: &Program,
        (mut state, mut items): At,
        bytes: &[u8],
        work: &mut Work,
    ) -> Result<Result<At, usize>, LimitExceeded> {
        let mut at = 0;
        while at < bytes.len() {
            let (read, event) = items.read(&bytes[at..])?;
            let (to, taken) = self.walk(program, state, &bytes[at..at + read], work)?;
            if taken < read {
                return Ok(Err(at + taken));
            }
            (state, at) = (to, at + read);
            match event {
                Event::End => {}
                Event::Comma => items.decide(self.is_after_new_item(program, state)),
                Event::Repeat => match self.after_repeat(program, state, work)? {
                    Some(left) => state = left,
                    None => return Ok(Err(at - 1)),
                },
            }
        }
        Ok(Ok((state, items)))
    }

    /// Returns the place after some bytes, unless they cannot follow.
    fn walk_place(
        &mut self,
        program: &Program,
        SearchState { state, items, mut keys }: SearchState,
        bytes: &[u8],
        work: &mut Work,
    ) -> Result<Option<SearchState>, LimitExceeded> {
        if let Some(keys) = &mut keys
            && keys.read(bytes)? < bytes.len()
        {
            return Ok(None);
        }
        let led = self.walk_items(program, (state, items), bytes, work)?;
        Ok(led.ok().map(|(state, items)| SearchState { state, items, keys }))
    }

    /// Do the items at hand differ from all before them, whatever comes or if they end here, and the key too?
    fn is_free(&self, SearchState { state, items, keys }: &SearchState, rule: DistinctItems) -> bool {
        let is_new =
            items.are_settled(rule.may_run_out()) || items.are_settled_by_end() && self.may_begin(*state);
        is_new && !keys.as_ref().is_some_and(ObjectKeys::may_run_out)
    }

    /// Can the string at hand, or one that begins here, become more strings than a text can have as items
    /// ([`are_many`](crate::scanner::Strings::are_many))? Then one of them is no item yet.
    fn has_new_strings(
        &mut self,
        program: &Program,
        (state, items): (StateId, &ArrayItems),
        work: &mut Work,
    ) -> Result<bool, LimitExceeded> {
        let inside = if items.is_in_string() { Some(state) } else { self.step(program, state, b'"', work)? };
        let are_many = |scan: ScanStateId| program.strings(scan).are_many();
        Ok(inside.is_some_and(|state| self.goes_on_from(program, state).any(are_many)))
    }

    /// Lists the scanner states from which the text continues: inside its terminals, and at the start of
    /// those that may come next.
    fn goes_on_from<'a>(
        &'a self,
        program: &'a Program,
        state: StateId,
    ) -> impl Iterator<Item = ScanStateId> + 'a {
        let scanner = &program.lowered.scanner;
        let next = self.boundary(state).into_iter().flat_map(|set| self.parser().accepts(set));
        let ends = |scan: &ScanStateId| !scanner.goes_on(*scan);
        let is_boundary = self.boundary(state).is_some();
        let here = self.threads(state).iter().map(|thread| thread.scan);
        here.filter(move |scan| !(is_boundary && ends(scan))).chain(next.map(|&next| scanner.start(next)))
    }

    /// Records whether the string at this state can run out.
    fn look_into(&self, program: &Program, state: StateId, ahead: &mut Continuations) {
        let vocabulary = &program.vocabulary;
        let longest = vocabulary.quoted().longest_backslashed.max(vocabulary.item_ends().longest_opening);
        let longest = saturating_u32(longest);
        let never_runs_out =
            |bytes| self.goes_on_from(program, state).all(|scan| program.never_runs_out(scan, bytes));
        ahead.lasting = never_runs_out(longest);
        ahead.inexhaustible = ahead.lasting && never_runs_out(u32::MAX);
    }

    /// Can a new string always follow the string at hand and a comma?
    fn has_new_strings_behind(
        &mut self,
        program: &Program,
        mut state: StateId,
        work: &mut Work,
    ) -> Result<bool, LimitExceeded> {
        for byte in *b"\"," {
            let Some(to) = self.step(program, state, byte, work)? else { return Ok(false) };
            state = to;
        }
        self.has_new_strings(program, (state, &ArrayItems::default()), work)
    }

    /// Counts the strings that the string at hand may become, by the automata of its terminals, against the
    /// items that begin like it: is one left that is no item yet? Each of `least` next bytes leads to another
    /// string.
    fn strings_left(&self, program: &Program, state: StateId, items: &ArrayItems, least: usize) -> Left {
        if !items.is_in_string() {
            return Left::Unknown;
        }
        let threads = || self.threads(state).iter().map(|thread| thread.scan);
        let most = threads().map(|scan| program.strings(scan).plain).max().unwrap_or(0);
        if items.are_fewer_than(least.max(most as usize)) {
            return Left::Some;
        }
        let is_used = |scan| {
            let strings = program.strings(scan);
            let is_counted = !strings.others && !strings.are_many();
            is_counted && items.have_all(strings.plain as usize, |rest| program.goes_on_by(scan, rest))
        };
        // Where a terminal has ended the string may go on in another.
        let is_inside = self.boundary(state).is_none() && threads().len() > 0;
        if is_inside && threads().all(is_used) { Left::None } else { Left::Unknown }
    }

    /// Does every text that goes on from here repeat an item? A depth-first search that follows the
    /// beginnings of earlier items until another way is found.
    pub(crate) fn is_dead_end(
        &mut self,
        program: &Program,
        at: SearchState,
        rule: DistinctItems,
        work: &mut Work,
    ) -> Result<bool, LimitExceeded> {
        // Behind the first byte of an escape that was begun before, all others count.
        let begun = at.items.is_in_escape();
        // Most places need no search: something new can surely come.
        if self.is_free(&at, rule) || self.has_new_strings(program, (at.state, &at.items), work)? {
            return Ok(false);
        }
        let mut open = vec![at];
        // Items are mostly new without white space and escapes, of which there are many.
        let mut later = Vec::new();
        let mut seen = HashSet::new();
        while let Some(place) = open.pop().or_else(|| later.pop()) {
            let SearchState { state, items, keys } = &place;
            // The keys of an object at hand are among what tells items apart.
            if !seen.insert((*state, items.place())) {
                continue;
            }
            let ways = self.ways(program, *state, work)?;
            work.spend(1 + ways.len())?;
            let least = ways.iter().filter(|&&byte| is_plain(byte)).count();
            // Counting first: the string at hand may have more continuations than the items use up.
            match self.strings_left(program, *state, items, least) {
                Left::Some => return Ok(false),
                Left::None => continue,
                Left::Unknown => {}
            }
            // Then follow each byte that may still lead to a repeat.
            for &byte in &*ways {
                if !begun && items.is_in_vain(byte) {
                    continue;
                }
                let is_in_key = keys.as_ref().is_some_and(ObjectKeys::is_in_key);
                if is_plain(byte) && items.is_left_by(byte) && !is_in_key {
                    return Ok(false);
                }
                let from = SearchState { state: *state, items: items.clone(), keys: keys.clone() };
                if let Some(to) = self.walk_place(program, from, &[byte], work)? {
                    if self.is_free(&to, rule) {
                        return Ok(false);
                    }
                    let is_later = byte == b'\\' || byte <= b' ' && !items.is_in_string();
                    if is_later { later.push(to) } else { open.push(to) }
                }
            }
        }
        Ok(true)
    }

    /// Collects the facts that the candidate tokens of a mask depend on.
    pub(crate) fn ahead(
        &mut self,
        program: &Program,
        (state, items, keys): (StateId, &ArrayItems, Option<&ObjectKeys>),
        rule: DistinctItems,
        work: &mut Work,
    ) -> Result<Continuations, LimitExceeded> {
        let marks = !items.is_flat() || items.is_in_string();
        let mut ahead = Continuations { marks, ..Continuations::default() };
        if items.is_idle() {
            return Ok(ahead);
        }
        // All tokens that end the string at once, with a comma and no more than marks, lead to where these
        // two bytes do.
        if items.is_in_string() {
            if rule.strings_may_run_out {
                self.look_into(program, state, &mut ahead);
            }
            if !items.is_flat() || items.is_in_escape() || !rule.may_run_out() {
                return Ok(ahead);
            }
            ahead.renewing = self.has_new_strings_behind(program, state, work)?;
            if ahead.renewing {
                ahead.marks = false;
            } else if items.are_settled(true) {
                let from = SearchState { state, items: items.clone(), keys: keys.cloned() };
                if let Some(to) = self.walk_place(program, from, b"\",", work)? {
                    ahead.marks = self.is_dead_end(program, to, rule, work)?;
                }
            }
            return Ok(ahead);
        }
        // Outside of strings: look into one that may begin, and at numbers that must go on.
        if items.is_before_value()
            && rule.strings_may_run_out
            && let Some(inside) = self.step(program, state, b'"', work)?
        {
            self.look_into(program, inside, &mut ahead);
        }
        if rule.numbers_may_run_out && items.digits_ahead().is_some() {
            ahead.unended = self.unended(program, state, work)?;
        }
        // All marks with a comma lead to a place of which the comma alone tells.
        if items.is_flat() && rule.may_run_out() && self.step(program, state, b',', work)?.is_some() {
            let from = SearchState { state, items: items.clone(), keys: keys.cloned() };
            ahead.marks = match self.walk_place(program, from, b",", work)? {
                Some(to) => self.is_dead_end(program, to, rule, work)?,
                None => true,
            };
        }
        Ok(ahead)
    }

    /// Returns those tokens that repeat an item, or after which every text does.
    pub(crate) fn repeating(
        &mut self,
        program: &Program,
        (state, items, keys): (StateId, &ArrayItems, Option<&ObjectKeys>),
        tokens: &[TokenId],
        rule: DistinctItems,
        work: &mut Work,
    ) -> Result<Vec<TokenId>, LimitExceeded> {
        let mut found = Vec::new();
        let mut known: HashMap<(StateId, u64), bool> = HashMap::new();
        for &token in tokens {
            let bytes = program.vocabulary.bytes(token).unwrap_or_default();
            work.spend(bytes.len())?;
            let from = SearchState { state, items: items.clone(), keys: keys.cloned() };
            let is_refused = match self.walk_place(program, from, bytes, work)? {
                None => true,
                Some(at)
                    if self.is_free(&at, rule)
                        || self.has_new_strings(program, (at.state, &at.items), work)? =>
                {
                    false
                }
                Some(at) => {
                    let place = (at.state, at.items.place());
                    match known.get(&place) {
                        Some(&known) => known,
                        None => {
                            let dead = self.is_dead_end(program, at, rule, work)?;
                            *known.entry(place).or_insert(dead)
                        }
                    }
                }
            };
            found.extend(is_refused.then_some(token));
        }
        Ok(found)
    }
}
