//! The table of a terminal over a vocabulary: the effect of each state on every token. Independent of the
//! grammar, so grammars share it: the inside of a JSON string is worked out once.

mod like;

use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

use hashbrown::HashMap;

use self::like::{Taken, WalkedRow};
use super::rows::{Ranges, SparseRows, TokenRow};
use super::shortcuts::{
    BoundaryNodes, CharacterIndex, DfaDelta, Home, LikeStates, SpelledFacts, TextLevels, Unbounded,
};
use super::{crossing::Loops, terminal_entry::TerminalEntry};
use crate::limits::{LimitExceeded, Work};
use crate::scanner::{NONE, StringCounts, Strings, TerminalDfa};
use crate::{automata::ByteSet, vocab::ByteTrie};

pub(super) use like::TableRow;

/// Work of making a row or a node, besides a unit a token, the trie nodes walked, and a look at all of the
/// automaton before its first row.
const ROW_WORK: usize = 80;
pub(super) const ENTER_WORK: usize = 8;

/// Least number of bytes that lead on from a state for which it is compared with a common terminal.
const WORTH_KIN: usize = 48;

/// Least number of bytes that lead on from a state for which a repeated class is looked for.
const WORTH_A_CHAIN: usize = 20;

/// Work of a walk over `nodes` trie nodes: 1.5 units a node, as automaton and trie may both be too large for
/// the caches.
pub(super) fn walking(nodes: usize) -> usize {
    nodes + nodes / 2
}

/// The effect of another terminal on tokens that enter it; kept while that terminal is used.
#[derive(Debug)]
struct Crossed {
    into: Weak<TerminalTable>,
    reach: Arc<TokenRow>,
    /// Memory of it, in bytes, unless another table has it too.
    bytes: usize,
}

/// The closest common terminal, its comparison with this one, and a row of it.
type Relative<'a> = (&'a TerminalTable, &'a DfaDelta, Arc<TokenRow>);

/// Number of crossings of one table, past which those into dead terminals are dropped.
const MOST_CROSSINGS: usize = 1_024;

/// The table of one terminal. Rows are made on first use, by whoever asks.
#[derive(Debug)]
pub(crate) struct TerminalTable {
    dfa: Arc<TerminalDfa>,
    loops: OnceLock<Loops>,
    /// Tables of common terminals that this one may resemble.
    common: Box<[Arc<Self>]>,
    /// The closest one, and its comparison with this one.
    delta: OnceLock<(Arc<Self>, DfaDelta)>,
    /// Facts about a common terminal: bytes that end it, the levels of its texts, and trie nodes that leave
    /// them. If it is one of strings, also the state between characters, and the vocabulary's tokens by their
    /// characters.
    ends: OnceLock<Box<[bool; 256]>>,
    home: OnceLock<(Option<Home>, TextLevels)>,
    breaks: BoundaryNodes,
    characters: OnceLock<CharacterIndex>,
    /// Rows by state; made with the first row, since most terminals of a large grammar are in no text.
    rows: OnceLock<Box<[OnceLock<TableRow>]>>,
    /// Rows of states that are made on demand.
    sparse: SparseRows,
    pub(super) strings: OnceLock<StringCounts>,
    /// The unbounded strings, of a terminal that counts characters.
    unbounded: Option<Unbounded>,
    /// Facts about strings whose states are made on demand.
    spelling: Option<SpelledFacts>,
    /// Effects of other terminals on the tokens that go on into them from a state; see
    /// [`crossing`](Self::crossing).
    crossings: Mutex<HashMap<(u32, usize), Crossed>>,
    alike: LikeStates,
    /// Bytes with which the terminal can begin, and where they lead.
    first: Box<[(u8, u32)]>,
    begins: ByteSet,
    bytes: AtomicUsize,
    usage: Usage,
    /// Is it in the cache folder?
    stored: AtomicBool,
}

impl TerminalTable {
    /// Creates a table without rows.
    pub(super) fn new(dfa: Arc<TerminalDfa>, common: impl IntoIterator<Item = Arc<Self>>) -> Self {
        let step = |byte: u8| Some((byte, dfa.step(0, byte)?));
        let first: Box<[(u8, u32)]> = (0..=u8::MAX).filter_map(step).collect();
        Self {
            begins: first.iter().map(|(byte, _)| *byte).collect(),
            dfa,
            loops: OnceLock::new(),
            common: common.into_iter().collect(),
            delta: OnceLock::new(),
            ends: OnceLock::new(),
            home: OnceLock::new(),
            breaks: BoundaryNodes::default(),
            characters: OnceLock::new(),
            rows: OnceLock::new(),
            sparse: SparseRows::default(),
            strings: OnceLock::new(),
            unbounded: None,
            spelling: None,
            crossings: Mutex::default(),
            alike: LikeStates::default(),
            first,
            bytes: AtomicUsize::new(0),
            usage: Usage::default(),
            stored: AtomicBool::new(false),
        }
    }

    /// Creates the table of strings with bounds on their length from that of the unbounded strings.
    pub(super) fn bounded(dfa: Arc<TerminalDfa>, unbounded: Arc<Self>) -> Self {
        Self { unbounded: Some(Unbounded::new(unbounded)), ..Self::new(dfa, None) }
    }

    /// Creates the table of strings whose states are made on demand, with that of the unbounded ones.
    pub(super) fn spelled(dfa: Arc<TerminalDfa>, unbounded: Option<Arc<Self>>) -> Self {
        Self { spelling: Some(SpelledFacts::new(unbounded)), ..Self::new(dfa, None) }
    }

    /// The facts about strings whose states are made on demand.
    pub(super) fn spelling(&self) -> Option<&SpelledFacts> {
        self.spelling.as_ref()
    }

    /// The table of the unbounded strings, if this one counts characters.
    pub(crate) fn unbounded(&self) -> Option<&Arc<Self>> {
        self.unbounded.as_ref().map(Unbounded::table)
    }

    pub(super) fn rows(&self) -> &[OnceLock<TableRow>] {
        self.rows.get_or_init(|| (0..self.dfa.len()).map(|_| OnceLock::new()).collect())
    }

    /// Bytes with which the terminal can begin, ascending, and the states that they lead to.
    pub(crate) fn first(&self) -> &[(u8, u32)] {
        &self.first
    }

    /// Bytes with which the terminal can begin.
    pub(super) fn begins(&self) -> &ByteSet {
        &self.begins
    }

    /// Returns the effect of the terminal in `state` on all tokens. The first use walks the trie; the row is
    /// kept even if that was too much work.
    pub(crate) fn row(
        &self,
        trie: &ByteTrie,
        state: u32,
        work: &mut Work,
    ) -> Result<Arc<TokenRow>, LimitExceeded> {
        if let (Some(unbounded), Some((bounded, _))) = (&self.unbounded, self.dfa.bounded()) {
            return self.bounded_row(unbounded, bounded, (trie, state), work);
        }
        if let Some(spelling) = &self.spelling {
            return self.spelled_row(spelling, (trie, state), work);
        }
        if !self.dfa.is_table() {
            return self.sparse.row(state, || self.walk(trie, state).into(), work);
        }
        self.row_in_table(trie, state, work).map(Arc::clone)
    }

    fn row_in_table(
        &self,
        trie: &ByteTrie,
        state: u32,
        work: &mut Work,
    ) -> Result<&Arc<TokenRow>, LimitExceeded> {
        let mut made = Ok(());
        let look = if self.loops.get().is_none() { self.dfa.transitions().len() / 8 } else { 0 };
        if let Some(row) = self.rows()[state as usize].get() {
            return Ok(&row.reach);
        }
        let like = self.like(trie, state, work)?;
        if let Some((known, from)) = like
            && known.is_alike(trie, from)
        {
            let make = || TableRow { reach: Arc::clone(&known.reach), taken: None, ..*known };
            return Ok(&self.rows()[state as usize].get_or_init(make).reach);
        }
        if self.ways(state) >= WORTH_A_CHAIN
            && let Some((row, looked)) = self.chain_row(trie, state)
        {
            let worked = looked + row.work();
            let made = work.spend(look + ROW_WORK + worked);
            self.add_bytes(row.bytes());
            let row = self.rows()[state as usize].get_or_init(|| TableRow::new(row.into()));
            self.alike.note(state, worked);
            return made.map(|()| &row.reach);
        }
        if let Some(like) = like {
            return self.spliced(trie, state, like, work);
        }
        if let Some(relative) = self.relative(trie, state, work)? {
            return self.row_beside(trie, state, relative, (look, work));
        }
        let row = self.rows()[state as usize].get_or_init(|| {
            let WalkedRow { reach, walked, longest } = self.walk(trie, state);
            self.alike.note(state, walked);
            made = work.spend(look + ROW_WORK + walking(walked) + reach.work());
            TableRow { longest: Some(longest), ..TableRow::new(reach) }
        });
        made.map(|()| &row.reach)
    }

    /// Number of bytes that lead on from a state.
    fn ways(&self, state: u32) -> usize {
        let row = self.dfa.row(state);
        self.dfa.classes().iter().filter(|class| row[usize::from(**class)] != NONE).count()
    }

    /// Returns the effect of the terminal of `into` on the tokens that go on into it where this one, begun in
    /// `state`, may end. Kept for other grammars. Where the row is a common terminal's, so is this.
    pub(super) fn crossing(
        &self,
        trie: &ByteTrie,
        state: u32,
        into: &Arc<Self>,
        work: &mut Work,
    ) -> Result<Arc<TokenRow>, LimitExceeded> {
        if let Some((table, other)) = self.spelled_like(trie, state) {
            return table.crossing(trie, other, into, work);
        }
        let row = self.row(trie, state, work)?;
        if let (Some(unbounded), Some((bounded, _))) = (self.unbounded(), self.dfa.bounded())
            && bounded.room(state).is_some()
        {
            let (of, _) = bounded.place(state);
            // Where the two end at the same trie nodes, tokens go on alike.
            if unbounded.row(trie, of, work)?.exits() == row.exits() {
                return unbounded.crossing(trie, of, into, work);
            }
        }
        let key = (state, Arc::as_ptr(into).addr());
        if let Some(known) = self.crossings().get(&key).filter(|known| known.into.strong_count() > 0) {
            return Ok(Arc::clone(&known.reach));
        }
        let enter = |exits: &Ranges, work: &mut Work| {
            let entrances = TerminalEntry::new(trie, exits, &into.begins, work)?;
            entrances.cross(trie, into, work)
        };
        let partner = match self.delta.get() {
            Some((common, delta)) => delta.partner(state).map(|partner| (common, partner)),
            _ => None,
        };
        // Where the two end at the same trie nodes, tokens go on alike.
        let partner = match partner {
            Some((common, partner)) => {
                let same = common.row(trie, partner, work)?.exits() == row.exits();
                Some((common, partner, same))
            }
            None => None,
        };
        let made = self.rows.get().and_then(|rows| rows[state as usize].get());
        let taken = made.and_then(|row| row.taken.as_ref());
        let reach = match (partner, taken) {
            (Some((common, partner, true)), _) => common.crossing(trie, partner, into, work)?,
            (Some((common, partner, _)), Some(Taken { nodes, exits }))
                if nodes.len() < row.exits().total() =>
            {
                let theirs = common.crossing(trie, partner, into, work)?;
                let own = enter(exits, work)?;
                if own.is_empty() && theirs.is_within(trie, nodes) {
                    theirs
                } else {
                    work.spend(theirs.work())?;
                    Arc::new(own.with(trie, nodes, &theirs))
                }
            }
            _ => Arc::new(enter(row.exits(), work)?),
        };
        let bytes = if Arc::strong_count(&reach) == 1 { reach.bytes() } else { 0 };
        self.keep_crossing(key, Crossed { into: Arc::downgrade(into), reach: Arc::clone(&reach), bytes });
        Ok(reach)
    }

    fn crossings(&self) -> MutexGuard<'_, HashMap<(u32, usize), Crossed>> {
        self.crossings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the closest common terminal, the comparison, and the row of the common one's state beside
    /// `state`, if many tokens may go on there.
    fn relative(
        &self,
        trie: &ByteTrie,
        state: u32,
        work: &mut Work,
    ) -> Result<Option<Relative<'_>>, LimitExceeded> {
        if self.ways(state) < WORTH_KIN {
            return Ok(None);
        }
        let Some((common, delta)) = self.delta(work)? else { return Ok(None) };
        let Some(partner) = delta.partner(state) else { return Ok(None) };
        Ok(Some((common, delta, common.row(trie, partner, work)?)))
    }

    /// Returns the closest common terminal, and the comparison.
    fn delta(&self, work: &mut Work) -> Result<Option<(&Self, &DfaDelta)>, LimitExceeded> {
        let mut made = Ok(());
        let known = match self.delta.get() {
            Some(known) => known,
            None => {
                let Some(common) = self.closest() else { return Ok(None) };
                self.delta.get_or_init(|| {
                    made = work.spend(self.dfa.transitions().len());
                    let delta = DfaDelta::new(&self.dfa, &common.dfa, common.home());
                    self.add_bytes(delta.bytes());
                    (Arc::clone(common), delta)
                })
            }
        };
        made.map(|()| Some((&*known.0, &known.1)))
    }

    /// The state between characters of a common terminal of strings, and the levels of its texts.
    fn home(&self) -> (Option<Home>, TextLevels) {
        *self.home.get_or_init(|| {
            let home = Home::of(&self.dfa);
            (home, TextLevels::new(&self.dfa, home))
        })
    }

    /// Finds the common terminal that ends most alike, and among equals the one that begins most alike.
    fn closest(&self) -> Option<&Arc<Self>> {
        if let [] | [_] = *self.common {
            return self.common.first();
        }
        let ends = self.dfa.last_bytes();
        self.common.iter().min_by_key(|common| {
            let theirs = common.ends.get_or_init(|| Box::new(common.dfa.last_bytes()));
            let ends = ends.iter().zip(theirs.iter()).filter(|(one, other)| one != other).count();
            let begins = |byte: &u8| self.first.iter().any(|(first, _)| first == byte);
            let both = common.first.iter().filter(|(byte, _)| begins(byte)).count();
            (ends, self.first.len() + common.first.len() - 2 * both)
        })
    }

    /// The vocabulary's tokens by their characters in this common terminal. The first use walks the trie.
    fn characters(&self, trie: &ByteTrie, work: &mut Work) -> Result<Option<&CharacterIndex>, LimitExceeded> {
        let Some(home) = self.home.get().and_then(|(home, _)| *home) else { return Ok(None) };
        let mut made = Ok(());
        let characters = self.characters.get_or_init(|| {
            made = work.spend(trie.len() / 2);
            let characters = CharacterIndex::new(trie, &self.dfa, home);
            self.add_bytes(characters.bytes());
            characters
        });
        made.map(|()| Some(characters))
    }

    /// The vocabulary's tokens by their characters, if a state of this table of strings is between
    /// characters: the index of the common terminal, or of this one if it is common. The first use walks the
    /// trie.
    pub(super) fn strings_at(
        &self,
        trie: &ByteTrie,
        state: u32,
        work: &mut Work,
    ) -> Result<Option<&CharacterIndex>, LimitExceeded> {
        let (common, partner) = match self.delta(work)? {
            Some((common, delta)) => (common, delta.partner(state)),
            None => (self, Some(state)),
        };
        let between = common.home().0.and_then(Home::with_an_end);
        if between.is_none() || between != partner {
            return Ok(None);
        }
        common.characters(trie, work)
    }

    /// Builds the index of tokens by their [`characters`](Self::characters) for the closest common terminal,
    /// if this one is a string, which may count them. Otherwise the first step of a text that comes to a
    /// counted string would wait for it. Walks the trie once for each common terminal, and compares the last
    /// bytes of terminals as long as one has no index.
    pub(crate) fn prepare(&self, trie: &ByteTrie) {
        if let Some(unbounded) = self.unbounded() {
            unbounded.prepare(trie);
            // If those are all strings there is no other index. There is no bound to this work.
            let _ = unbounded.strings_at(trie, 1, &mut Work::unlimited());
            return;
        }
        let is_open = |common: &Arc<Self>| common.characters.get().is_none();
        if self.common.iter().any(is_open)
            && self.is_string()
            && let Some(common) = self.closest()
        {
            common.home();
            // There is no bound to this work, so no error.
            let _ = common.characters(trie, &mut Work::unlimited());
        }
    }

    /// May many bytes come at its start, or after its first byte?
    pub(super) fn is_string(&self) -> bool {
        let mut begun = self.first.iter().map(|&(_, to)| to);
        self.ways(0) >= WORTH_KIN || begun.any(|state| self.ways(state) >= WORTH_KIN)
    }

    /// Makes the rows of the start and of the states after each first byte.
    pub(super) fn begin(&self, trie: &ByteTrie, work: &mut Work) {
        for state in self.first.iter().map(|&(_, state)| state).chain([0]) {
            // What is over the budget is made nonetheless.
            let _ = self.row(trie, state, work);
        }
    }

    pub(super) fn loops(&self) -> &Loops {
        self.loops.get_or_init(|| Loops::new(&self.dfa))
    }

    /// The rows of states that are in no table.
    pub(super) fn sparse(&self) -> &SparseRows {
        &self.sparse
    }

    /// Counts memory that was added.
    pub(super) fn add_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Is any row made?
    pub(super) fn has_rows(&self) -> bool {
        self.rows.get().is_some()
    }

    /// The automaton.
    pub(crate) fn dfa(&self) -> &Arc<TerminalDfa> {
        &self.dfa
    }

    /// Is it in the cache folder?
    pub(super) fn is_stored(&self) -> bool {
        self.stored.load(Ordering::Relaxed)
    }

    /// Records that it is in the cache folder. Returns whether it was there already.
    pub(super) fn set_stored(&self) -> bool {
        self.stored.swap(true, Ordering::Relaxed)
    }
}

impl TerminalTable {
    /// The numbers of strings that each state may become, counted on first use.
    fn counts(&self) -> &StringCounts {
        self.strings.get_or_init(|| StringCounts::new(self.dfa()))
    }

    /// Returns, for a terminal that counts characters, the table of the unbounded strings, the state there,
    /// and how many characters may still come.
    fn bounded_at(&self, state: u32) -> Option<(&Self, u32, u32)> {
        let ((bounded, _), unbounded) = self.dfa().bounded().zip(self.unbounded())?;
        let (of, count) = bounded.place(state);
        Some((&**unbounded, of, bounded.lengths().end().saturating_sub(count)))
    }

    /// Returns the number of strings that a state between characters may become.
    pub(crate) fn strings(&self, state: u32) -> Strings {
        match self.bounded_at(state) {
            Some((table, of, left)) if table.counts().are_many_within(table.dfa(), of, left) => Strings::MANY,
            Some(_) => Strings::UNKNOWN,
            None => self.counts().at(state),
        }
    }

    /// Has some prefix, inside the quotes, only finitely many strings?
    pub(crate) fn may_run_out(&self) -> bool {
        self.counts().may_run_out()
    }

    /// Does every continuation of at most `bytes` bytes from this state, which is between characters, keep
    /// [many strings](Strings::are_many)?
    pub(crate) fn never_runs_out(&self, state: u32, bytes: u32) -> bool {
        let Some((table, of, left)) = self.bounded_at(state) else {
            return self.counts().never_run_out(state, bytes);
        };
        let (counts, dfa, least) = (table.counts(), table.dfa(), left.saturating_sub(bytes));
        counts.are_many_within(dfa, of, left) && counts.are_always_many_within(dfa, least)
    }
}

/// The users of a table.
#[derive(Debug, Default)]
struct Usage {
    /// Number of compiled grammars.
    grammars: AtomicUsize,
    /// Time when a grammar last asked for it, by the clock of all tables of a vocabulary.
    last: AtomicU64,
    /// Memory of the crossings, in bytes.
    crossings: AtomicUsize,
}

impl TerminalTable {
    /// Memory of the table and its automaton, in bytes. Constant time. Parts of another table are counted
    /// there.
    pub(crate) fn bytes(&self) -> usize {
        let kept = [
            self.dfa.bytes_alone(),
            self.dfa.bounded().map_or(0, |(bounded, _)| bounded.automaton().bytes()),
            self.loops.get().map_or(0, |loops| loops.bytes()),
            size_of_val(&*self.common) + size_of_val(&*self.first),
            self.ends.get().map_or(0, |ends| size_of_val(&**ends)),
            self.rows.get().map_or(0, |rows| size_of_val(&**rows)),
            self.sparse.bytes() + self.breaks.bytes() + self.alike.bytes(),
            self.strings.get().map_or(0, |strings| strings.bytes()),
            self.unbounded.as_ref().map_or(0, |unbounded| unbounded.bytes()),
            self.spelling().map_or(0, |spelling| spelling.bytes()),
            self.crossings().allocation_size() + self.usage.crossings.load(Ordering::Relaxed),
            self.bytes.load(Ordering::Relaxed),
        ];
        size_of::<Self>() + kept.iter().sum::<usize>()
    }

    /// Counts one more grammar that uses it.
    pub(crate) fn enlist(&self) {
        self.usage.grammars.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one grammar less.
    pub(crate) fn release(&self) {
        self.usage.grammars.fetch_sub(1, Ordering::Relaxed);
    }

    /// Number of compiled grammars that use it; bounded strings beside it do not count.
    pub(crate) fn users(&self) -> usize {
        self.usage.grammars.load(Ordering::Relaxed)
    }

    /// Records that a grammar asks for it now.
    pub(super) fn asked_for(&self, now: u64) {
        self.usage.last.store(now, Ordering::Relaxed);
    }

    /// Time when a grammar last asked for it.
    pub(super) fn last_asked_for(&self) -> u64 {
        self.usage.last.load(Ordering::Relaxed)
    }

    /// Drops the crossings into terminals that no longer exist.
    pub(super) fn forget_dead_crossings(&self) {
        let mut crossings = self.crossings();
        let mut freed = 0;
        crossings.retain(|_, known| {
            let lives = known.into.strong_count() > 0;
            freed += if lives { 0 } else { known.bytes };
            lives
        });
        if crossings.len() < crossings.capacity() / 4 {
            crossings.shrink_to_fit();
        }
        self.usage.crossings.fetch_sub(freed, Ordering::Relaxed);
    }

    /// Keeps a crossing, if there is room.
    fn keep_crossing(&self, key: (u32, usize), crossed: Crossed) {
        if self.crossings().len() >= MOST_CROSSINGS {
            self.forget_dead_crossings();
        }
        let mut crossings = self.crossings();
        if crossings.len() < MOST_CROSSINGS {
            self.usage.crossings.fetch_add(crossed.bytes, Ordering::Relaxed);
            if let Some(before) = crossings.insert(key, crossed) {
                self.usage.crossings.fetch_sub(before.bytes, Ordering::Relaxed);
            }
        }
    }
}
