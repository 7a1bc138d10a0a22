//! Priors: counts learnt before a text begins, for one grammar and vocabulary, kept in files.

use super::counts::{ContextKeys, Counts};
use super::{calibration::Calibration, propose::Seen};
use crate::ids::{TokenId, as_index, saturating_u32};
use crate::store::{Kind, PayloadKey, PayloadReader, PayloadWriter, StoreError, open, seal};
use crate::{CompiledGrammar, Lookahead, Terminals};

/// Counts of tokens by context for one grammar and one vocabulary, and how well guesses made of them did.
#[derive(Debug, Clone, PartialEq)]
pub struct Prior {
    grammar: String,
    vocabulary: String,
    /// Bound on ids of the vocabulary.
    size: usize,
    label: String,
    /// The lookahead of the texts that it was learnt from.
    lookahead: Lookahead,
    terminals: Terminals,
    observed: u64,
    pub(super) counts: Counts,
    pub(super) calibration: Calibration,
}

/// A summary of a prior, for people.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PriorSummary {
    /// A description of its source, by its maker.
    pub label: String,
    /// Fingerprint of the grammar.
    pub grammar: String,
    /// Fingerprint of the vocabulary.
    pub vocabulary: String,
    /// The lookahead it was learnt with.
    pub lookahead: Lookahead,
    /// The terminals it was learnt with.
    pub terminals: Terminals,
    /// Number of tokens that it learnt from.
    pub observed: u64,
    /// Numbers of contexts, and of tokens that followed in them, by level: from the scanner's state alone to
    /// the place in the grammar and the six tokens before.
    pub levels: Vec<(usize, usize)>,
    /// Number of guesses while learning, each made before its token was learnt.
    pub guesses: u64,
    /// Number of right ones among them.
    pub right: u64,
}

/// Kinds of [`PriorError`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PriorErrorKind {
    /// The file cannot be used, whatever the grammar.
    #[error("{0}")]
    File(#[source] StoreError),
    /// The prior was learnt for another grammar.
    #[error("learnt for another grammar ({label:?}): {found:.16}, and this is {ours:.16}")]
    OtherGrammar {
        /// Fingerprint of the grammar it is for.
        found: String,
        /// Fingerprint of the grammar it was to be used for.
        ours: String,
        /// The description of its source.
        label: String,
    },
    /// The prior was learnt over other terminals of what may be the same grammar: its contexts mean nothing
    /// here.
    #[error("learnt over other terminals ({label:?}): {found:?}, and these are {ours:?}")]
    OtherTerminals {
        /// The terminals it is for.
        found: Terminals,
        /// The terminals it was to be used for.
        ours: Terminals,
        /// The description of its source.
        label: String,
    },
    /// The prior was learnt for another vocabulary.
    #[error("learnt for another vocabulary ({label:?}): {found:.16}, and this is {ours:.16}")]
    OtherVocabulary {
        /// Fingerprint of the vocabulary it is for.
        found: String,
        /// Fingerprint of the vocabulary it was to be used for.
        ours: String,
        /// The description of its source.
        label: String,
    },
}

/// A prior that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct PriorError {
    #[from]
    kind: PriorErrorKind,
}

impl PriorError {
    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> &PriorErrorKind {
        &self.kind
    }

    /// Advice.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match &self.kind {
            PriorErrorKind::File(error) => error.hint(),
            PriorErrorKind::OtherTerminals { .. } => {
                "use the terminals it was learnt over, or learn one with these: `--terminals`"
            }
            _ => "learn one for this grammar and model with `domino learn`",
        }
    }
}

impl From<StoreError> for PriorError {
    fn from(error: StoreError) -> Self {
        PriorErrorKind::File(error).into()
    }
}

/// Returns the key of all priors: the grammar and vocabulary are in the contents, so that messages can name
/// them.
fn key() -> PayloadKey {
    PayloadKey::of(&[b"prior"])
}

impl Prior {
    /// Creates an empty prior for texts of `grammar`. Costs a hash over the grammar's tables.
    #[must_use]
    pub fn new(grammar: &CompiledGrammar) -> Self {
        let vocabulary = grammar.vocabulary();
        Self {
            grammar: grammar.grammar_hash(),
            vocabulary: PayloadKey::of(&[vocabulary.fingerprint()]).hex(),
            size: vocabulary.size(),
            label: String::new(),
            lookahead: grammar.lookahead(),
            terminals: grammar.terminals(),
            observed: 0,
            counts: Counts::default(),
            calibration: Calibration::default(),
        }
    }

    /// Sets a short description of its source.
    pub fn set_label(&mut self, label: impl Into<String>) {
        self.label = label.into();
    }

    /// The lookahead it was learnt with. Contexts do not depend on it, so a prior is of use with any other,
    /// but it has counted tokens that other masks allowed.
    #[must_use]
    pub fn lookahead(&self) -> Lookahead {
        self.lookahead
    }

    /// The terminals it was learnt with.
    #[must_use]
    pub fn terminals(&self) -> Terminals {
        self.terminals
    }

    /// Returns the number of tokens that it learnt from. Constant time.
    #[must_use]
    pub fn observed(&self) -> u64 {
        self.observed
    }

    /// Returns the fingerprint of the grammar that it is for.
    #[must_use]
    pub fn grammar(&self) -> &str {
        &self.grammar
    }

    /// Returns the fingerprint of the vocabulary that it is for.
    #[must_use]
    pub fn vocabulary(&self) -> &str {
        &self.vocabulary
    }

    /// Reads the prior of a file for texts of `grammar`.
    ///
    /// # Errors
    /// If it is not a prior, is damaged, was written by another version, or was learnt for another grammar,
    /// other terminals or another vocabulary.
    pub fn from_bytes(file: &[u8], grammar: &CompiledGrammar) -> Result<Self, PriorError> {
        let prior = Self::open(file)?;
        prior.check(&Self::new(grammar))?;
        Ok(prior)
    }

    /// Reads the prior of a file, whatever it is for.
    ///
    /// # Errors
    /// If it is not a prior, is damaged, or was written by another version.
    pub fn open(file: &[u8]) -> Result<Self, PriorError> {
        let mut reader = PayloadReader::new(open(file, Kind::Prior, &key())?);
        let (grammar, vocabulary) = (reader.str()?.to_owned(), reader.str()?.to_owned());
        let label = reader.str()?.to_owned();
        let size = as_index(reader.u32()?);
        if size > crate::limits::VOCABULARY_IDS as usize {
            return Err(StoreError::malformed("too many tokens").into());
        }
        let observed = reader.u64()?;
        let calibration = Calibration::read(&mut reader)?;
        let counts = Counts::read(&mut reader, size)?;
        let (lookahead, terminals) = read_reach(&mut reader)?;
        reader.finish()?;
        Ok(Self { grammar, vocabulary, size, label, lookahead, terminals, observed, counts, calibration })
    }

    /// Serialises the prior for a file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = PayloadWriter::default();
        writer.str(&self.grammar);
        writer.str(&self.vocabulary);
        writer.str(&self.label);
        // A size that does not fit is refused by whoever reads it, as any above the limit is.
        writer.u32(saturating_u32(self.size));
        writer.u64(self.observed);
        self.calibration.write(&mut writer);
        self.counts.write(&mut writer);
        write_reach(&mut writer, self.lookahead, self.terminals);
        seal(Kind::Prior, &key(), &writer.finish())
    }

    /// Adds all counts of `other`. The label, lookahead and terminals stay.
    ///
    /// # Errors
    /// If it is for another grammar or vocabulary; nothing has changed then.
    pub fn merge(&mut self, other: &Self) -> Result<(), PriorError> {
        other.check(self)?;
        self.observed += other.observed;
        self.counts.merge(&other.counts);
        self.calibration.merge(&other.calibration);
        Ok(())
    }

    /// Forgets the least frequent contexts until at most `contexts` are left, and rare tokens in the others.
    pub fn shrink(&mut self, contexts: usize) {
        self.counts.lighten();
        self.counts.shrink(contexts);
    }

    /// Summarises its contents.
    #[must_use]
    pub fn summary(&self) -> PriorSummary {
        let (guesses, right) = self.calibration.total();
        PriorSummary {
            label: self.label.clone(),
            grammar: self.grammar.clone(),
            vocabulary: self.vocabulary.clone(),
            lookahead: self.lookahead,
            terminals: self.terminals,
            observed: self.observed,
            levels: self.counts.by_level(),
            guesses,
            right,
        }
    }

    /// Approximate memory in bytes. Constant time.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.counts.memory()
    }

    /// Has it learnt nothing?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.len() == 0
    }

    /// Counts what was seen in these contexts.
    pub(super) fn learn(&mut self, keys: &ContextKeys, seen: Seen<'_>) {
        self.counts.add(keys, &weights(seen, self.size));
        self.observed += 1;
    }

    /// Bound on ids of the vocabulary.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Refuses a prior that is for something else than `ours`.
    fn check(&self, ours: &Self) -> Result<(), PriorError> {
        let label = self.label.clone();
        if self.grammar != ours.grammar && self.terminals != ours.terminals {
            let (found, ours) = (self.terminals, ours.terminals);
            return Err(PriorErrorKind::OtherTerminals { found, ours, label }.into());
        }
        if self.grammar != ours.grammar {
            let (found, ours) = (self.grammar.clone(), ours.grammar.clone());
            return Err(PriorErrorKind::OtherGrammar { found, ours, label }.into());
        }
        if self.vocabulary != ours.vocabulary || self.size != ours.size {
            let (found, ours) = (self.vocabulary.clone(), ours.vocabulary.clone());
            return Err(PriorErrorKind::OtherVocabulary { found, ours, label }.into());
        }
        Ok(())
    }
}

/// Version of the form in which files record lookahead and terminals.
const REACH_FORM: u8 = 1;

/// Serialises lookahead and terminals, after all else; nothing if they are the defaults, as in files from
/// before they were recorded.
fn write_reach(writer: &mut PayloadWriter, lookahead: Lookahead, terminals: Terminals) {
    if (lookahead, terminals) == Default::default() {
        return;
    }
    writer.u8(REACH_FORM);
    writer.u8(match terminals {
        Terminals::Folded => 0,
        Terminals::Written => 1,
    });
    match lookahead {
        Lookahead::Unbounded => writer.u8(0),
        Lookahead::Terminals(k) => {
            writer.u8(1);
            writer.u32(k);
        }
    }
}

/// Reads the lookahead and terminals that a prior was learnt with.
fn read_reach(reader: &mut PayloadReader<'_>) -> Result<(Lookahead, Terminals), StoreError> {
    if reader.rest().is_empty() {
        return Ok(Default::default());
    }
    if reader.u8()? != REACH_FORM {
        return Err(StoreError::malformed("an unknown form of lookahead"));
    }
    let terminals = match reader.u8()? {
        0 => Terminals::Folded,
        1 => Terminals::Written,
        _ => return Err(StoreError::malformed("unknown terminals")),
    };
    let lookahead = match reader.u8()? {
        0 => Lookahead::Unbounded,
        1 => Lookahead::Terminals(reader.u32()?),
        _ => return Err(StoreError::malformed("an unknown lookahead")),
    };
    Ok((lookahead, terminals))
}

/// Returns the weights of tokens `0..size`, sorted by token: the model's probabilities if they are known,
/// otherwise the token that came.
pub(super) fn weights(seen: Seen<'_>, size: usize) -> Vec<(TokenId, f32)> {
    let mut weights = seen.likely.map_or_else(|| vec![(seen.token, 1.0)], <[_]>::to_vec);
    weights.retain(|(token, weight)| token.index() < size && *weight > 0.0);
    weights.sort_unstable_by_key(|&(token, _)| token);
    weights.dedup_by_key(|(token, _)| *token);
    weights
}
