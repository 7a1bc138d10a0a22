//! The program that a machine runs: a grammar, lowered, with all that it needs of one vocabulary.

use std::sync::{Arc, OnceLock};

use hashbrown::HashSet;

use super::{
    blank_rests::BlankRests, resolved_tokens::ResolvedTokens, scarce_keys::ScarceKeys,
    shortest_lengths::ShortestLengths, token_class::ResolvedClass,
};
use crate::{
    cores,
    ids::{ScanStateId, TerminalId, TokenId},
    limits::{LimitExceeded, Limits},
    lower::{Follow, Lowered, Terminals},
    scanner::Strings,
    store::{PayloadKey, PayloadWriter},
    subterminal::{Forest, Lookahead, TerminalTable, TreeInputs, VocabularyTables},
    vocab::Vocabulary,
};

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
    pub(super) fn is_before_colon(&self, terminal: TerminalId) -> bool {
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
