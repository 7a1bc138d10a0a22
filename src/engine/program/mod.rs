//! A grammar, ready for texts: what it is lowered to, with all that it needs of one vocabulary.
//!
//! All texts of a grammar share its [`Program`]. *Invariant:* it never changes. What is worked out late (the
//! lengths of shortest texts, the rests that are white space, the keys that can run out, the trees that were
//! grown ahead) is a function of it alone, and is filled in once.
//!
//! Above it are the masks and the machine, which run it. It knows of neither; of threads, in which both
//! count, it says only what one is ([`Thread`]).

mod resolved_tokens;
mod white_space;

use std::sync::{Arc, OnceLock};

use hashbrown::HashSet;

use self::white_space::BlankRests;
use crate::cores;
use crate::ids::{ScanStateId, SetId, TerminalId, TokenId};
use crate::limits::{LimitExceeded, Limits};
use crate::lower::{Follow, Lowered, Terminals, rests};
use crate::scanner::{Scanner, Strings};
use crate::store::{PayloadKey, PayloadWriter};
use crate::subterminal::{Forest, Lookahead, TerminalTable, TreeInputs, VocabularyTables};
use crate::vocab::{TokenSet, Vocabulary};

pub(crate) use resolved_tokens::{MemberSpelling, ResolvedClass, ResolvedTokens, asks_for_marks};
pub(crate) use white_space::is_blank;

/// Least number of terminals for which another core works out which of them may follow which.
const WORTH_A_THREAD: usize = 256;

/// Immutable data shared by all sessions of a grammar. Only the lazily computed fields are filled in later.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) lowered: Lowered,
    /// The vocabulary, with the special tokens spelled out that the grammar asks for.
    pub(crate) vocabulary: Vocabulary,
    pub(crate) asked: ResolvedTokens,
    /// The tokens of the classes that the grammar asks for.
    pub(crate) classes: Vec<ResolvedClass>,
    pub(crate) lookahead: Lookahead,
    pub(crate) terminals: Terminals,
    pub(crate) limits: Limits,
    /// Tables by terminal; shared with other grammars.
    pub(crate) tables: Vec<Arc<TerminalTable>>,
    follow: Follow,
    lengths: OnceLock<ShortestLengths>,
    blank_rests: OnceLock<BlankRests>,
    /// The keys that may run out, if some may.
    scarce: OnceLock<Option<Arc<ScarceKeys>>>,
    /// All trees, if they were grown ahead.
    pub(crate) grown: OnceLock<Arc<Forest>>,
}

/// Every table once, including the tables of unbounded strings that length-bounded terminals count on.
fn distinct(tables: &[Arc<TerminalTable>]) -> impl Iterator<Item = &Arc<TerminalTable>> {
    let mut met = HashSet::with_capacity(tables.len());
    let all = tables.iter().flat_map(|table| [Some(table), table.of_any_length()]).flatten();
    all.filter(move |table| met.insert(Arc::as_ptr(table)))
}

impl Drop for Program {
    fn drop(&mut self) {
        distinct(&self.tables).for_each(|table| table.release());
    }
}

impl Program {
    /// Is there an object of which all keys may have come?
    pub(crate) fn keys_may_run_out(&self) -> bool {
        self.lowered.keys.is_some_and(|rule| rule.may_run_out)
    }

    /// The strings that may become of a scanner state between the characters of a string.
    pub(crate) fn strings(&self, state: ScanStateId) -> Strings {
        let scanner = &self.lowered.scanner;
        self.tables[scanner.terminal(state).index()].strings(scanner.local(state))
    }

    /// Does every continuation of at most `bytes` bytes from a scanner state keep
    /// [many strings](Strings::are_many)?
    pub(crate) fn never_runs_out(&self, state: ScanStateId, bytes: u32) -> bool {
        let scanner = &self.lowered.scanner;
        self.tables[scanner.terminal(state).index()].never_runs_out(scanner.local(state), bytes)
    }

    /// Does this string, without its opening quote and without escapes, go on from a scanner state?
    pub(crate) fn goes_on_by(&self, state: ScanStateId, rest: &[u8]) -> bool {
        let scanner = &self.lowered.scanner;
        let dfa = scanner.dfa(scanner.terminal(state));
        dfa.takes(scanner.local(state), rest.iter().chain(b"\"").copied())
    }

    /// The key terminals that can run out; `None` if no key can. Computed on first use.
    pub(crate) fn scarce_keys(&self) -> Option<&Arc<ScarceKeys>> {
        let scarce = || self.keys_may_run_out().then(|| Arc::new(ScarceKeys::new(self)));
        self.scarce.get_or_init(scarce).as_ref()
    }

    /// Can a terminal that begins with a colon follow this one?
    fn is_before_colon(&self, terminal: TerminalId) -> bool {
        self.follow.of(terminal).any(|next| self.lowered.scanner.dfa(next).takes(0, [b':']))
    }

    /// A program without trees. Terminals may have much in common with those of the tables `common`.
    ///
    /// # Errors
    /// If the work was cancelled.
    pub(crate) fn new(
        mut lowered: Lowered,
        tables: &VocabularyTables,
        mut asked: ResolvedTokens,
        common: &[Arc<TerminalTable>],
        reach: (Lookahead, Terminals),
        limits: Limits,
    ) -> Result<Self, LimitExceeded> {
        let count = lowered.scanner.terminal_count();
        let follow = || Follow::new(&lowered.cfg, count);
        let room = limits.terminal_bytes;
        let make = || {
            let dfas = lowered.scanner.dfas().iter();
            dfas.map(|dfa| limits.look().map(|()| tables.of_within(dfa, common, room))).collect()
        };
        let (own, follow): (Result<Vec<Arc<TerminalTable>>, LimitExceeded>, _) =
            if count >= WORTH_A_THREAD { cores::beside(make, follow) } else { (make(), follow()) };
        let own = own?;
        lowered.scanner.share(own.iter().map(|table| Arc::clone(table.dfa())));
        distinct(&own).for_each(|table| table.enlist());
        Ok(Self {
            tables: own,
            vocabulary: tables.vocabulary().clone(),
            classes: std::mem::take(&mut asked.classes),
            asked,
            follow,
            lowered,
            lookahead: reach.0,
            terminals: reach.1,
            // Sessions outlive whoever waited for the compiling.
            limits: Limits { cancel: None, ..limits },
            lengths: OnceLock::new(),
            blank_rests: OnceLock::new(),
            scarce: OnceLock::new(),
            grown: OnceLock::new(),
        })
    }

    /// Memory of the lowered grammar, in bytes. Linear in its names.
    pub(crate) fn bytes(&self) -> usize {
        let Lowered { cfg, scanner, after_new, .. } = &self.lowered;
        let late = self.lengths.get().map_or(0, |lengths| lengths.bytes())
            + self.blank_rests.get().map_or(0, |rests| rests.bytes());
        let tables = self.tables.capacity() * size_of::<Arc<TerminalTable>>();
        let names = self.lowered.source_bytes() + after_new.capacity();
        size_of::<Self>() + cfg.bytes() + scanner.index_bytes() + names + tables + self.follow.bytes() + late
    }

    /// Memory of the terminals that no other grammar uses, in bytes.
    pub(crate) fn terminal_bytes(&self) -> usize {
        let own = distinct(&self.tables).filter(|table| table.users() == 1);
        own.map(|table| table.bytes()).sum()
    }

    /// Returns the text that a token adds: its bytes, or the name of a special token that the grammar asks
    /// for.
    pub(crate) fn text_of(&self, token: TokenId) -> &[u8] {
        let asked = &self.asked.vocabulary;
        match (asked.bytes(token), self.vocabulary.bytes(token)) {
            (Some(bytes), _) => bytes,
            (None, Some(_)) => asked.name(token).unwrap_or_default().as_bytes(),
            (None, None) => self.name_by_class(token).unwrap_or_default(),
        }
    }

    /// Cache key of the trees: distinguishes grammar, vocabulary and options.
    pub(crate) fn key(&self) -> PayloadKey {
        let mut writer = self.written();
        writer.count(self.limits.tree_bytes);
        PayloadKey::of(&[self.vocabulary.fingerprint(), &writer.finish()])
    }

    /// Cache key of the grammar alone, whatever the vocabulary and the options.
    pub(crate) fn grammar_key(&self) -> PayloadKey {
        PayloadKey::of(&[&self.written().finish()])
    }

    /// Serializes productions and automata.
    fn written(&self) -> PayloadWriter {
        let mut writer = PayloadWriter::with_capacity(self.lowered.scanner.bytes());
        self.lowered.cfg.write(&mut writer);
        self.lowered.scanner.dfas().iter().for_each(|dfa| dfa.write(&mut writer));
        // Grammars without it keep the keys that they had before there was any.
        if self.lowered.greedy {
            writer.count(1);
        }
        writer
    }

    /// Returns the inputs from which trees are made.
    pub(crate) fn inputs(&self) -> TreeInputs<'_> {
        TreeInputs {
            scanner: &self.lowered.scanner,
            follow: &self.follow,
            tables: &self.tables,
            trie: self.vocabulary.trie(),
        }
    }

    /// Returns the lengths of the shortest texts. Computed on first use, linear in the grammar.
    pub(crate) fn lengths(&self) -> &ShortestLengths {
        self.lengths.get_or_init(|| ShortestLengths::new(&self.lowered))
    }

    /// Tells which rests of productions are white space. Worked out when it is first asked for, linear in
    /// the grammar.
    pub(crate) fn blank_rests(&self) -> &BlankRests {
        self.blank_rests.get_or_init(|| BlankRests::new(&self.lowered))
    }
}

impl Program {
    /// Replaces the tokens that stand for classes in a mask by the members of the classes.
    pub(crate) fn widened(&self, mask: &TokenSet) -> TokenSet {
        let mut wide = TokenSet::empty(self.asked.vocabulary.size());
        mask.iter().for_each(|token| wide.insert(token));
        let there = self.classes.iter().filter(|class| mask.contains(class.id));
        there.for_each(|class| wide.union_with(&class.tokens));
        wide
    }

    /// The name of a special token that a class asks for.
    fn name_by_class(&self, token: TokenId) -> Option<&[u8]> {
        self.classes.iter().find_map(|class| class.name(token, &self.asked.vocabulary))
    }

    /// Lists the special tokens that are members of classes.
    pub(crate) fn specials_of_classes(&self) -> impl Iterator<Item = TokenId> + '_ {
        let is_asked = |id: TokenId| self.classes.iter().any(|class| class.tokens.contains(id));
        let vocabulary = Some(&self.asked.vocabulary).filter(|_| !self.classes.is_empty());
        let specials = vocabulary.into_iter().flat_map(Vocabulary::special_tokens);
        specials.map(|(id, _)| id).filter(move |&id| is_asked(id))
    }
}

/// The key terminals with a prefix that few keys share. A key has run out if all keys that it can become have
/// come, and those are keys of its terminal. So while an object has no key of these terminals, none runs out.
#[derive(Debug)]
pub(crate) struct ScarceKeys {
    tables: Vec<Arc<TerminalTable>>,
    /// Does every key count, since the grammar promises nothing about its key terminals?
    are_all: bool,
}

impl ScarceKeys {
    /// May this key be of such a terminal? Walks it through each terminal; most walks end at the first byte.
    pub(crate) fn may_have(&self, key: &str) -> bool {
        // With escapes it has other spellings.
        let is_escaped = |byte: u8| byte < b' ' || matches!(byte, b'"' | b'\\');
        self.are_all
            || !self.tables.is_empty() && key.bytes().any(is_escaped)
            || self.tables.iter().any(|table| may_run_out_along(table, key))
    }
}

/// Is the key, in quotes, a text of the terminal, with a prefix that few of its texts share?
fn may_run_out_along(table: &TerminalTable, key: &str) -> bool {
    let (dfa, mut are_few) = (table.dfa(), false);
    if dfa.spelled().is_some() {
        // How many there are is not known there. Behind the closing quote all texts end.
        return dfa.takes(0, std::iter::once(b'"').chain(key.bytes()).chain([b'"']));
    }
    let Some(mut state) = dfa.step(0, b'"') else { return false };
    for byte in key.bytes().chain([b'"']) {
        are_few = are_few || !table.strings(state).are_many();
        let Some(next) = dfa.step(state, byte) else { return false };
        state = next;
    }
    are_few && dfa.accepts(state)
}

impl ScarceKeys {
    /// Collects the terminals of a JSON grammar whose keys may run out. Linear in the automata of its keys.
    fn new(program: &Program) -> Self {
        let are_all = !program.lowered.keys.is_some_and(|rule| rule.are_terminals);
        let count = if are_all { 0 } else { program.tables.len() };
        let is_scarce = |at: &usize| {
            let key = TerminalId::from_index(*at).filter(|&terminal| program.is_before_colon(terminal));
            key.is_some() && may_run_out(&program.tables[*at])
        };
        let scarce = (0..count).filter(is_scarce);
        let tables = scarce.map(|at| Arc::clone(&program.tables[at])).collect();
        Self { tables, are_all }
    }
}

/// Has the terminal a prefix that few of its strings share? A terminal of one string does not count: the
/// grammar promises that its key is new.
fn may_run_out(table: &TerminalTable) -> bool {
    let dfa = table.dfa();
    let Some(start) = dfa.step(0, b'"') else { return false };
    let is_named = table.strings(start) == Strings { plain: 1, others: false };
    table.may_run_out() && !is_named
}

/// Shortest lengths of texts of a grammar, in bytes.
#[derive(Debug)]
pub(crate) struct ShortestLengths {
    /// Shortest rest of the production, by dot.
    pub(crate) rests: Vec<u64>,
    /// Shortest rest of the terminal, by scanner state, of terminals with tables.
    scans: Vec<u32>,
}

impl ShortestLengths {
    /// Memory, in bytes.
    fn bytes(&self) -> usize {
        size_of_val(&*self.rests) + size_of_val(&*self.scans)
    }

    /// Computes all lengths. Linear in the grammar.
    fn new(lowered: &Lowered) -> Self {
        let (mut terminals, mut scans) = (Vec::new(), Vec::new());
        for dfa in lowered.scanner.dfas() {
            let start = match dfa.unlisted_distance(0) {
                Some(distance) => distance,
                None => {
                    let start = scans.len();
                    scans.extend(dfa.distances());
                    scans[start]
                }
            };
            terminals.push(u64::from(start));
        }
        Self { rests: rests(&lowered.cfg, &terminals), scans }
    }

    /// Returns the fewest bytes after which the terminal of a state may end.
    pub(crate) fn scan(&self, scanner: &Scanner, state: ScanStateId) -> u64 {
        let unlisted = || scanner.dfa(scanner.terminal(state)).unlisted_distance(scanner.local(state));
        let known = self.scans.get(state.index()).copied();
        u64::from(known.or_else(unlisted).unwrap_or_default())
    }
}

/// A terminal that was started in the parser set `set`, and where its scanner is. The state of the scanner
/// names the terminal, so that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Thread {
    pub(crate) set: SetId,
    pub(crate) scan: ScanStateId,
}
