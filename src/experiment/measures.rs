//! Measures of a text after it was generated, by one more pass over prompt and text with whole rows and a
//! replay of the constraint: so the measures disturb no timed run.

use super::{
    coupling::{Coupled, Coupling},
    judged::{Judged, Judging},
    methods::{MethodError, Outcome},
};
use crate::{
    compile::CompiledGrammar,
    decode::{DecodeError, Decoder, Finish, log_kept, log_sum, possible},
    ids::TokenId,
    model::{Model, Rows},
    proposer::ForcedText,
    session::{Constraint, Patience},
    vocab::{TokenSet, Tokenizer, Vocabulary},
};

/// The measures of one text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Measures {
    /// Log of the probability that the masks kept, summed over steps.
    pub(super) log_kept: Option<f64>,
    /// Negative log-likelihood under the model.
    pub(super) nll: f64,
    /// Agreement of the counts that drafted it with the model.
    pub(super) coupling: Option<Coupling>,
    /// Tokens that the tokenizer makes of the text.
    pub(super) canonical: Option<Vec<TokenId>>,
    pub(super) forced_tokens: Option<usize>,
    pub(super) forced_bytes: Option<usize>,
    /// The part of the text that counts.
    pub(super) judged: Judged,
    pub(super) prefix: bool,
}

/// The inputs of measuring.
pub(super) struct Meter<'a> {
    pub(super) vocabulary: &'a Vocabulary,
    pub(super) tokenizer: &'a Tokenizer,
    /// All tokens that can be generated.
    pub(super) possible: TokenSet,
    /// The grammar with unbounded lookahead.
    pub(super) exact: &'a CompiledGrammar,
    pub(super) judging: Judging,
}

impl<'a> Meter<'a> {
    pub(super) fn new(tokenizer: &'a Tokenizer, exact: &'a CompiledGrammar, judging: Judging) -> Self {
        let vocabulary = exact.vocabulary();
        Self { vocabulary, tokenizer, possible: possible(vocabulary), exact, judging }
    }

    /// Measures a text that follows `prompt`. `constraint` is the one it was made under, at the beginning;
    /// `coupled` holds the counts that drafted it.
    pub(super) fn measure<M: Model>(
        &self,
        model: &mut M,
        prompt: &[TokenId],
        outcome: &Outcome,
        temperature: f64,
        constraint: Option<Constraint>,
        mut coupled: Option<Coupled>,
    ) -> Result<Measures, MethodError> {
        let constrained = constraint.is_some();
        let mut exact = self.exact.constraint().patient(Patience::whole());
        let taken = exact.advance_bytes(&outcome.text).map_err(DecodeError::from)?;
        let prefix = taken == outcome.text.len();
        // Tokens that were inserted were not drawn under a mask, and another engine's own constraint may mean
        // another language by the same grammar.
        let weigh = temperature > 0.0 && outcome.inserted.is_none() && prefix;
        let constraint = constraint.filter(|_| weigh).map(|constraint| constraint.patient(Patience::whole()));
        let weighed = constraint.is_some();
        let text = (&outcome.tokens[..], outcome.finish == Finish::Stop);
        let (nll, log_kept) =
            self.likelihood(model, prompt, text, temperature, (constraint, coupled.as_mut()))?;
        let start = self.exact.constraint();
        Ok(Measures {
            log_kept,
            nll,
            coupling: coupled.filter(|_| weighed).map(|coupled| coupled.found),
            canonical: self.tokenizer.alone(self.vocabulary, &outcome.text),
            forced_tokens: constrained.then(|| self.forced_tokens(&outcome.tokens)),
            forced_bytes: if constrained { ForcedText::count(&start, &outcome.text) } else { None },
            judged: self.judging.judge(&outcome.text, self.exact)?,
            prefix,
        })
    }

    /// Returns the negative log-likelihood of tokens behind a prompt.
    pub(super) fn nll<M: Model>(
        &self,
        model: &mut M,
        prompt: &[TokenId],
        tokens: &[TokenId],
    ) -> Result<f64, MethodError> {
        let (nll, _) = self.likelihood(model, prompt, (tokens, false), 1.0, (None, None))?;
        Ok(nll)
    }

    /// Returns the negative log-likelihood of the tokens of a text, and the log of the probability that the
    /// masks kept, that of its end included if it ended.
    fn likelihood<M: Model>(
        &self,
        model: &mut M,
        prompt: &[TokenId],
        (tokens, ends): (&[TokenId], bool),
        temperature: f64,
        (mut constraint, mut coupled): (Option<Constraint>, Option<&mut Coupled>),
    ) -> Result<(f64, Option<f64>), MethodError> {
        /// Number of rows held at once.
        const ROWS: usize = 32;
        let constrained = constraint.is_some();
        let (mut nll, mut kept) = (0.0, 0.0);
        // Row i is about token i; the last one about what ends the text.
        let wanted = tokens.len() + usize::from(ends && constrained);
        let sequence = [prompt, tokens].concat();
        model.truncate(0).map_err(DecodeError::model)?;
        if prompt.len() > 1 {
            model.forward(&prompt[..prompt.len() - 1], Rows::Last).map_err(DecodeError::model)?;
        }
        let mut next = 0;
        while next < wanted {
            let rows = (wanted - next).min(ROWS);
            let from = prompt.len() - 1 + next;
            let pass = &sequence[from..from + rows];
            let logits = model.forward(pass, Rows::All).map_err(DecodeError::model)?;
            for index in 0..rows {
                let row = logits.row(index).unwrap_or_default();
                let token = tokens.get(next + index);
                if let Some(token) = token {
                    nll -= f64::from(row.get(token.index()).copied().unwrap_or(f32::NEG_INFINITY))
                        - log_sum(row.iter().copied(), 1.0);
                }
                if let Some(constraint) = &mut constraint {
                    let mask = constraint.mask().map_err(DecodeError::from)?;
                    kept += log_kept(row, mask, &self.possible, temperature);
                    if let Some(&token) = token {
                        if let Some(coupled) = &mut coupled {
                            coupled.see(row, constraint, token)?;
                        }
                        constraint.advance(token).map_err(DecodeError::from)?;
                    }
                }
            }
            next += rows;
        }
        Ok((nll, constrained.then_some(kept)))
    }

    /// Counts the tokens whose whole text was forced: at each of their bytes no other could follow.
    fn forced_tokens(&self, tokens: &[TokenId]) -> usize {
        let mut constraint = self.exact.constraint().patient(Patience::whole());
        let mut forced = 0;
        for &token in tokens {
            let bytes = self.vocabulary.bytes(token).unwrap_or_default();
            let mut whole = !bytes.is_empty();
            for &byte in bytes {
                whole = whole
                    && !constraint.is_complete()
                    && constraint.next_bytes().is_ok_and(|next| next == [byte]);
                if constraint.advance_bytes(&[byte]) != Ok(1) {
                    return forced;
                }
            }
            forced += usize::from(whole);
        }
        forced
    }
}

/// A text cut into tokens in other ways: by the tokenizer, and as the model would choose them.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    pub(super) canonical_nll: Option<f64>,
    pub(super) preferred: Option<bool>,
    pub(super) preferred_tokens: Option<usize>,
    pub(super) preferred_nll: Option<f64>,
}

impl Cuts {
    /// Cuts an outcome's text again and measures both cuts.
    pub(super) fn new<M: Model>(
        decoder: &mut Decoder<M>,
        meter: &Meter<'_>,
        prompt: &[TokenId],
        outcome: &Outcome,
        canonical: Option<&[TokenId]>,
    ) -> Result<Self, MethodError> {
        let tokens = decoder.retokenize(prompt, &outcome.text)?;
        let model = decoder.model_mut();
        let canonical_nll = canonical.map(|tokens| meter.nll(model, prompt, tokens)).transpose()?;
        Ok(Self {
            canonical_nll,
            preferred: Some(tokens == outcome.tokens),
            preferred_tokens: Some(tokens.len()),
            preferred_nll: Some(meter.nll(model, prompt, &tokens)?),
        })
    }
}
