//! A proposer that asks a second, smaller language model: speculative decoding with a draft model.
//!
//! The draft model's row is masked by a fork of the constraint, as the model's is ("Automata-based
//! constraints for language model decoding", arXiv 2407.08103, 5.3), and the guess is drawn from it with the
//! same noise as the model's own draw (Gumbel coupling): if the two distributions are equal, the guess is the
//! sampled token. A guess costs a pass of the draft model over what it has not read, and none where only a
//! single token may follow.
//!
//! The two models must have the same tokens, as guesses are ids, and their tokenizers must split texts alike:
//! otherwise a draft model expects other tokens. Both are checked.
//!
//! Invariant: the draft model's cache is a prefix of the text and its draft. Refused tokens are cut off
//! before the next pass, so a guess is that of a draft model which has read nothing else.

use std::fmt;

use crate::model::{Logits, Model, Rows};
use crate::proposer::{Drawn, EXPECTED, Guess, Median, Propose, Rate, Seen, Site, kind_of_margin};
#[cfg(feature = "tokenizers")]
use crate::vocab::Tokenizer;
use crate::vocab::{TokenSet, Vocabulary};
use crate::{clock::Instant, ids::TokenId};

/// Is the draft model kept to the grammar?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DraftMask {
    /// Yes: it guesses only tokens that may follow.
    #[default]
    On,
    /// No: a guess that the grammar forbids ends the draft. For measuring what the mask is worth.
    Off,
}

/// Counts of the guesses of a draft model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DraftTally {
    /// Number of guesses, used or not.
    pub guessed: usize,
    /// Number of guesses that the text has reached: all before them was right, and the next token was drawn.
    pub judged: usize,
    /// Number of reached guesses that were the token drawn.
    pub right: usize,
}

/// Guesses what a second model would draw. For one text at a time; in a batch each text needs one of its own.
///
/// ```
/// use domino::{
///     Vocabulary, TokenId,
///     decode::{Decoder, DraftModel},
///     model::ScriptedModel,
///     proposer::{DraftLength, Drafter},
/// };
///
/// let builder = Vocabulary::builder().token(TokenId::new(0), "a").token(TokenId::new(1), "b");
/// let vocabulary = builder.end_of_text(TokenId::new(2)).build()?;
/// let draft = DraftModel::new(ScriptedModel::new(3, 64, 7), &vocabulary, &vocabulary)?;
/// let drafter = Drafter::new(Box::new(draft), DraftLength::up_to(4, 0.0)?);
/// let model = ScriptedModel::new(3, 64, 7);
/// let mut decoder = Decoder::builder(model).vocabulary(vocabulary).drafter(drafter).build()?;
/// let stats = decoder.generate(&[TokenId::new(0)])?.stats;
/// // The two models are the same.
/// assert_eq!(stats.accepted, stats.drafted);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DraftModel<M: Model> {
    model: M,
    /// The tokens in the model's cache.
    read: Vec<TokenId>,
    mask: DraftMask,
    /// The tokens that end a text.
    ends: Vec<TokenId>,
    /// Rates of right guesses, by whether draws are greedy and by the kind of their margin.
    rates: [[Rate; EXPECTED.len()]; 2],
    /// Rate of right guesses of all kinds.
    rate: Rate,
    /// The sequence, draft included, at which it last guessed.
    asked: Vec<TokenId>,
    /// Guesses in that draft that the text has not reached yet, in order of position.
    open: Vec<Open>,
    /// Seconds of a pass for a guess.
    seconds: Option<Median>,
    /// Number of guesses declined since the last one, as they were not worth their time.
    declined: usize,
    tally: DraftTally,
}

/// A guess that may still be judged.
#[derive(Debug, Clone, Copy)]
struct Open {
    /// Position in the whole sequence.
    position: usize,
    token: TokenId,
    greedy: bool,
    /// Kind of its margin.
    kind: usize,
}

impl<M: Model> DraftModel<M> {
    /// Number of declined guesses after which one is made anyway, to see whether they have become cheaper.
    const PATIENCE: usize = 64;

    /// Creates a proposer that asks `model`, whose vocabulary is `own`, for a model of vocabulary `target`.
    /// One pass over both vocabularies.
    ///
    /// # Errors
    /// If a token is another text in the two vocabularies, or the draft model has no logits for some.
    pub fn new(model: M, own: &Vocabulary, target: &Vocabulary) -> Result<Self, DraftModelError> {
        same_tokens(own, target)?;
        let (vocabulary, rows) = (target.size(), model.vocabulary_size());
        if rows < vocabulary {
            return Err(DraftModelErrorKind::RowsTooShort { vocabulary, rows }.into());
        }
        Ok(Self {
            model,
            read: Vec::new(),
            mask: DraftMask::On,
            ends: target.end_of_text().to_vec(),
            rates: [EXPECTED.map(Rate::expecting); 2],
            rate: Rate::expecting(0.8),
            asked: Vec::new(),
            open: Vec::new(),
            seconds: None,
            declined: 0,
            tally: DraftTally::default(),
        })
    }

    /// Checks that the tokenizer of the draft model splits texts as the model's does. With the feature
    /// `tokenizers`.
    ///
    /// # Errors
    /// If it does not: such a draft model has learnt to expect other tokens.
    #[cfg(feature = "tokenizers")]
    pub fn splitting(self, own: &Tokenizer, target: &Tokenizer) -> Result<Self, DraftModelError> {
        same_split(own, target)?;
        Ok(self)
    }

    /// Sets whether it is kept to the grammar. Default: yes.
    #[must_use]
    pub fn mask(self, mask: DraftMask) -> Self {
        Self { mask, ..self }
    }

    /// The counts of its guesses so far.
    #[must_use]
    pub fn tally(&self) -> DraftTally {
        self.tally
    }

    /// Returns the model.
    #[must_use]
    pub fn into_model(self) -> M {
        self.model
    }

    /// Makes a pass of the draft model over those of `tokens` that it has not read, at least the last one.
    /// `None` if the pass fails, or they do not fit in the context.
    fn pass(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Option<Logits> {
        if tokens.is_empty() || tokens.len() > self.model.context() {
            return None;
        }
        let both = self.read.iter().zip(&tokens[..tokens.len() - 1]);
        let common = both.take_while(|(one, other)| one == other).count();
        let passed = self.model.truncate(common).and_then(|()| {
            self.read.truncate(common);
            self.model.forward(&tokens[common..], rows)
        });
        match passed {
            Ok(logits) => {
                self.read.extend_from_slice(&tokens[common..]);
                Some(logits)
            }
            Err(error) => {
                tracing::debug!("a pass of the draft model failed: {error}");
                None
            }
        }
    }

    /// Draws the draft model's token for this place; `None` if a pass for it is not worth its time.
    fn drawn(&mut self, site: &mut Site<'_>) -> Option<Drawn> {
        if self.mask == DraftMask::Off || !site.is_constrained() {
            let logits = self.timed_pass(site, Rows::Last)?;
            return site.draw_freely(logits.last()?);
        }
        let mask = site.mask()?.clone();
        if mask.len() == 1 {
            return mask.iter().next().map(|token| Drawn { token, margin: f64::INFINITY });
        }
        let logits = self.timed_pass(site, Rows::Among(std::slice::from_ref(&mask)))?;
        site.draw(logits.last()?)
    }

    /// Makes the pass for a guess at a site, unless it is not worth its time.
    fn timed_pass(&mut self, site: &Site<'_>, rows: Rows<'_>) -> Option<Logits> {
        let retried = self.declined >= Self::PATIENCE;
        if let (Some(worth), Some(seconds)) = (site.worth(), &self.seconds)
            && seconds.value() > worth * self.rate.value()
            && !retried
        {
            self.declined += 1;
            return None;
        }
        let start = Instant::now();
        let logits = self.pass(site.tokens(), rows);
        let took = start.elapsed().as_secs_f64();
        match &mut self.seconds {
            Some(median) if !retried => median.add(took),
            _ => self.seconds = Some(Median::of(took)),
        }
        self.declined = 0;
        logits
    }
}

impl<M: Model> Propose for DraftModel<M> {
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        if site.is_thinking() {
            return None;
        }
        let Drawn { token, margin } = self.drawn(site)?;
        // Where there is a grammar, it ends the draft.
        if !site.is_constrained() && self.ends.contains(&token) {
            return None;
        }
        let (position, greedy, kind) = (site.tokens().len(), site.is_greedy(), kind_of_margin(margin));
        self.asked.clear();
        self.asked.extend_from_slice(site.tokens());
        self.open.retain(|open| open.position < position);
        self.open.push(Open { position, token, greedy, kind });
        self.tally.guessed += 1;
        let rate = self.rates[usize::from(greedy)][kind].value();
        Some(Guess { token, acceptance: if margin.is_infinite() { 1.0 } else { rate } })
    }

    fn read(&mut self, tokens: &[TokenId]) {
        // It may be another text, with other noise.
        self.open.clear();
        let nothing = TokenSet::empty(self.model.vocabulary_size());
        self.pass(tokens, Rows::Among(&[nothing]));
    }

    fn observe(&mut self, site: &mut Site<'_>, seen: Seen<'_>) {
        let position = site.tokens().len();
        self.open.retain(|open| open.position >= position);
        let open = self.open.first().copied().filter(|open| open.position == position);
        let Some(Open { token, greedy, kind, .. }) = open.filter(|_| self.asked.starts_with(site.tokens()))
        else {
            return;
        };
        let right = token == seen.token;
        self.rates[usize::from(greedy)][kind].note(right);
        self.rate.note(right);
        self.tally.judged += 1;
        self.tally.right += usize::from(right);
    }

    fn learns(&self) -> bool {
        true
    }

    fn may_miss(&self) -> bool {
        true
    }
}

impl<M: Model> fmt::Debug for DraftModel<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DraftModel")
            .field("read", &self.read.len())
            .field("mask", &self.mask)
            .field("tally", &self.tally)
            .finish_non_exhaustive()
    }
}

/// Kinds of [`DraftModelError`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DraftModelErrorKind {
    /// A token is another text in the two vocabularies, or is in one of them only. Special tokens, by their
    /// names, may be in one only, as those for padding and chats are.
    #[error(
        "the draft model has another vocabulary: token {token} is {} in it, and {} in the model's",
        named(.draft.as_ref()), named(.model.as_ref())
    )]
    OtherToken {
        /// The first such token.
        token: TokenId,
        /// Its text or name for the draft model, if it has one.
        draft: Option<String>,
        /// Its text or name for the model, if it has one.
        model: Option<String>,
    },
    /// The draft model has no logits for some tokens.
    #[error("the draft model has logits for {rows} tokens only, and the vocabulary has {vocabulary}")]
    RowsTooShort {
        /// One more than the vocabulary's highest id.
        vocabulary: usize,
        /// Length of the draft model's rows of logits.
        rows: usize,
    },
    /// The tokens are the same, but texts are split differently.
    #[error(
        "the draft model has another tokenizer: with the same tokens it splits a text otherwise, from token \
         {after} on"
    )]
    OtherSplit {
        /// Number of tokens of a certain text before the two differ.
        after: usize,
    },
}

/// A draft model whose tokens differ from those of its target model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct DraftModelError {
    #[from]
    kind: DraftModelErrorKind,
}

impl DraftModelError {
    /// The kind of the difference.
    #[must_use]
    pub fn kind(&self) -> &DraftModelErrorKind {
        &self.kind
    }

    /// Advice.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        "a draft model needs the tokenizer of the model: take a smaller model of the same family"
    }
}

/// A token of one of the two vocabularies, in words.
fn named(token: Option<&String>) -> String {
    token.map_or("nothing".to_owned(), |token| format!("{token:?}"))
}

/// The spelling of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenSpelling<'a> {
    Text(&'a [u8]),
    Special(&'a str),
    None,
}

impl<'a> TokenSpelling<'a> {
    fn of(vocabulary: &'a Vocabulary, token: TokenId) -> Self {
        let special = || vocabulary.name(token).map_or(Self::None, Self::Special);
        vocabulary.bytes(token).map_or_else(special, Self::Text)
    }

    /// Is it the same in both, or special in only one of them?
    fn agrees(self, other: Self) -> bool {
        self == other
            || matches!((self, other), (Self::None, Self::Special(_)) | (Self::Special(_), Self::None))
    }

    fn shown(self) -> Option<String> {
        match self {
            Self::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            Self::Special(name) => Some(name.to_owned()),
            Self::None => None,
        }
    }
}

/// Checks that all tokens are the same. One pass over both.
///
/// # Errors
/// [`DraftModelErrorKind::OtherToken`] with the first differing token.
fn same_tokens(draft: &Vocabulary, model: &Vocabulary) -> Result<(), DraftModelError> {
    if draft.fingerprint() == model.fingerprint() {
        return Ok(());
    }
    for token in (0..draft.size().max(model.size())).filter_map(TokenId::from_index) {
        let (draft, model) = (TokenSpelling::of(draft, token), TokenSpelling::of(model, token));
        if !draft.agrees(model) {
            let (draft, model) = (draft.shown(), model.shown());
            return Err(DraftModelErrorKind::OtherToken { token, draft, model }.into());
        }
    }
    Ok(())
}

/// Checks that a text of words, numbers and signs is split alike: equal tokens do not suffice, since merges
/// can differ.
///
/// # Errors
/// [`DraftModelErrorKind::OtherSplit`] if it is not.
#[cfg(feature = "tokenizers")]
fn same_split(draft: &Tokenizer, model: &Tokenizer) -> Result<(), DraftModelError> {
    const PROBE: &str = "The answer is 1234.5, isn't it?\n\n{\"name\": \"Zo\u{eb}  O'Neill\", \
        \"ids\": [0, -17, 2e10]}\n\tfor (int i = 0; i < n; ++i) { sum += a[i]; }  \
        <item>\u{dc}berm\u{e4}\u{df}ig</item> \u{6771}\u{4eac}";
    let split = |tokenizer: &Tokenizer| tokenizer.encode(PROBE, false).ok();
    let (draft, model) = (split(draft), split(model));
    if draft == model {
        return Ok(());
    }
    let (draft, model) = (draft.unwrap_or_default(), model.unwrap_or_default());
    let after = draft.iter().zip(&model).take_while(|(one, other)| one == other).count();
    Err(DraftModelErrorKind::OtherSplit { after }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ScriptedModel;

    /// Tests guesses with passes that take no time, and all of it.
    #[test]
    fn a_guess_that_is_not_worth_its_time_is_not_made() {
        let builder = Vocabulary::builder().token(TokenId::new(0), "a").token(TokenId::new(1), "b");
        let vocabulary = builder.end_of_text(TokenId::new(2)).build().unwrap();
        let mut draft = DraftModel::new(ScriptedModel::new(3, 64, 1), &vocabulary, &vocabulary).unwrap();
        let drawn = Drawn { token: TokenId::new(0), margin: 1.0 };
        let draw = |_: &[f32], _: &[TokenId], _: Option<&TokenSet>| Some(drawn);
        let mut guesses = |worth: Option<f64>, times: usize| {
            let mut made = 0;
            for _ in 0..times {
                let mut tokens = vec![TokenId::new(1); 4];
                let mut site = Site::new(None, &mut tokens, 0.0, &|_, _| 0.0).drawing(&draw);
                site.set_worth(worth);
                made += usize::from(draft.guess(&mut site).is_some());
            }
            made
        };
        // What it takes is not known before the first one, and then asked again seldom.
        assert_eq!(guesses(Some(1e-12), 1), 1);
        assert_eq!(guesses(Some(1e-12), 64), 0);
        assert_eq!(guesses(Some(1e-12), 65), 1);
        assert_eq!(guesses(Some(1e9), 10), 10);
        assert_eq!(guesses(None, 10), 10);
    }
}

#[cfg(test)]
mod same_tokens_tests {
    use super::*;
    use crate::vocab::VocabularyBuilder;

    fn builder() -> VocabularyBuilder {
        let texts = ["a", "b", "ab"].into_iter().zip(0..);
        let builder =
            texts.fold(Vocabulary::builder(), |builder, (text, id)| builder.token(TokenId::new(id), text));
        builder.special(TokenId::new(4), "<end>").end_of_text(TokenId::new(4))
    }

    /// Returns the difference, with the vocabularies in either order.
    fn difference(other: VocabularyBuilder) -> Option<u32> {
        let (one, other) = (builder().build().unwrap(), other.build().unwrap());
        let token = |result: Result<(), DraftModelError>| {
            result.err().map(|error| match error.kind() {
                DraftModelErrorKind::OtherToken { token, .. } => token.raw(),
                other => panic!("{other:?}"),
            })
        };
        let (there, back) = (token(same_tokens(&one, &other)), token(same_tokens(&other, &one)));
        assert_eq!(there, back);
        there
    }

    #[test]
    fn texts_must_be_the_same_and_special_tokens_may_be_missing() {
        let id = TokenId::new;
        assert_eq!(difference(builder()), None);
        assert_eq!(difference(builder().special(id(9), "<pad>").special(id(3), "<hole>")), None);
        // Another token ends the text: that is the business of the grammar, and of the model.
        assert_eq!(difference(builder().end_of_text(id(7))), None);
        assert_eq!(difference(builder().token(id(3), "c")), Some(3));
        assert_eq!(difference(builder().token(id(9), "a")), Some(9));
        let other = Vocabulary::builder().token(id(0), "a").token(id(1), "B").token(id(2), "ab");
        assert_eq!(difference(other.special(id(4), "<end>").end_of_text(id(4))), Some(1));
        let other = Vocabulary::builder().token(id(0), "a").token(id(1), "b").token(id(2), "ab");
        assert_eq!(difference(other.special(id(4), "<stop>").end_of_text(id(4))), Some(4));
    }

    #[test]
    fn an_error_names_the_token_that_differs() {
        let one = builder().build().unwrap();
        let other = builder().token(TokenId::new(3), "c").build().unwrap();
        let told = same_tokens(&one, &other).unwrap_err();
        assert!(told.to_string().contains("token 3 is nothing in it, and \"c\" in the model's"), "{told}");
        assert!(told.hint().contains("same family"));
    }
}

#[cfg(test)]
#[cfg(feature = "tokenizers")]
mod same_split_tests {
    use super::*;

    #[test]
    fn a_tokenizer_that_splits_otherwise_is_refused() {
        const JSON: &str = include_str!("../../../tests/fixtures/byte_level.json");
        let own = Tokenizer::from_tokenizer_json(JSON).unwrap();
        assert_eq!(same_split(&own, &own), Ok(()));
        let mut json: serde_json::Value = serde_json::from_str(JSON).unwrap();
        json["model"]["merges"] = serde_json::json!([]);
        let other = Tokenizer::from_tokenizer_json(&json.to_string()).unwrap();
        let told = same_split(&other, &own).unwrap_err();
        assert!(matches!(told.kind(), DraftModelErrorKind::OtherSplit { .. }), "{told}");
    }
}
