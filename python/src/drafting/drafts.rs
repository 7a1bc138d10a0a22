//! `Drafter`: guesses of the tokens to come.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use domino::{
    TokenId,
    proposer::{BestOf, CountProposer, DraftLength, Drafter, Learning, Lookup, Prior, Propose, Seen, Site},
};
use pyo3::prelude::*;

use crate::{
    compile::PyCompiled,
    constraint::{PyConstraint, given},
    engine::{guarded, unlocked},
    failure::{Failure, Outcome},
    parts::Parts,
    prior::{PyPrior, show_text},
    proposers::Forced,
    vocabulary::{token_id, token_ids},
};

/// Guesses tokens that the constraint allows, by what it has learnt, by what repeats the prompt and the text,
/// and by what the grammar forces. A draft changes no text: it is verified by the model. One drafter for each
/// text at a time, or one for all if threads do not use it at once.
///
/// `learning`: `online` learns from each token for good, `text` until the text ends, `fixed` not at all.
/// `threshold`: a guess that is less likely to be right ends the draft.
#[pyclass(name = "Drafter", module = "domino_decoding", frozen)]
#[derive(Debug)]
pub(crate) struct PyDrafter {
    parts: Arc<Parts>,
    drafter: Mutex<Drafter>,
    counts: Arc<Mutex<CountProposer>>,
}

impl PyDrafter {
    /// Does `work` with the drafter.
    fn with<T>(&self, work: impl FnOnce(&mut Drafter) -> Outcome<T>) -> Outcome<T> {
        match self.drafter.try_lock() {
            Ok(mut drafter) => guarded(|| work(&mut drafter)),
            Err(TryLockError::WouldBlock) => Err(Failure::Busy("drafter")),
            // Counts that a panic has left half-made can at worst guess badly.
            Err(TryLockError::Poisoned(held)) => guarded(|| work(&mut held.into_inner())),
        }
    }

    /// The tokens before the next one: those given, or those of the text.
    fn before(&self, constraint: &PyConstraint, tokens: Option<Vec<i64>>) -> Outcome<Vec<TokenId>> {
        if !Arc::ptr_eq(&constraint.parts, &self.parts) {
            let hint = "make a Drafter of the Compiled that the constraint is of";
            return Err(Failure::Value(format!("the constraint is of another grammar\nhint: {hint}")));
        }
        match given(tokens)? {
            Some(tokens) => Ok(tokens),
            None => constraint.with(|held| Ok(held.tokens())),
        }
    }
}

#[pymethods]
impl PyDrafter {
    #[new]
    #[pyo3(signature = (compiled, /, *, prior=None, learning="online", threshold=0.4))]
    fn new(
        compiled: PyRef<'_, PyCompiled>,
        prior: Option<PyRef<'_, PyPrior>>,
        learning: &str,
        threshold: f64,
    ) -> Outcome<Self> {
        let parts = Arc::clone(&compiled.parts);
        let learning = match learning {
            "online" => Learning::Online,
            "text" => Learning::PerText,
            "fixed" => Learning::Fixed,
            other => {
                return Err(Failure::Value(format!(
                    "learning is `{other}`; it is one of online, text, fixed"
                )));
            }
        };
        let prior = match prior {
            // It is checked to be for this grammar by reading it again.
            Some(prior) => Prior::from_bytes(&prior.held()?.to_bytes(), &parts.compiled)?,
            None => Prior::new(&parts.compiled),
        };
        let length = DraftLength::up_to(DraftLength::MOST, threshold);
        let length = length.map_err(|error| Failure::Value(error.to_string()))?;
        let counts = Arc::new(Mutex::new(CountProposer::new(prior, learning)));
        let forced = Forced::new(parts.compiled.vocabulary().clone());
        let all: Vec<Box<dyn Propose>> =
            vec![Box::new(forced), Box::new(Arc::clone(&counts)), Box::<Lookup>::default()];
        let drafter = Mutex::new(Drafter::new(Box::new(BestOf::new(all)), length));
        Ok(Self { parts, drafter, counts })
    }

    /// Up to `n` tokens (64 at most) that probably come next, each allowed after those before it. `tokens`:
    /// prompt and text so far, of which the text repeats parts; without it, the constraint's own.
    #[pyo3(signature = (constraint, n, /, *, tokens=None))]
    fn draft(
        &self,
        constraint: &Bound<'_, PyConstraint>,
        n: usize,
        tokens: Option<Vec<i64>>,
    ) -> Outcome<Vec<u32>> {
        let (py, constraint) = (constraint.py(), constraint.get());
        let mut tokens = self.before(constraint, tokens)?;
        unlocked(py, || {
            constraint.with(|held| {
                if held.session.is_ended() {
                    return Err(Failure::Ended);
                }
                let mut site = Site::new(Some(&held.session), &mut tokens, 0.0, &|_, _| 0.0);
                let draft = self.with(|drafter| Ok(drafter.draft(&mut site, n)))?;
                Ok(draft.tokens.into_iter().map(TokenId::raw).collect())
            })
        })
    }

    /// Learns that `token` came where the constraint is: to be called before the constraint advances.
    /// `likely`: tokens with the model's probabilities, of which more is learnt than of the token alone.
    #[pyo3(signature = (constraint, token, /, *, tokens=None, likely=None))]
    fn learn(
        &self,
        constraint: &Bound<'_, PyConstraint>,
        token: i64,
        tokens: Option<Vec<i64>>,
        likely: Option<Vec<(i64, f32)>>,
    ) -> Outcome<()> {
        let (py, constraint) = (constraint.py(), constraint.get());
        let (token, mut tokens) = (token_id(token)?, self.before(constraint, tokens)?);
        let likely = likely.map(|likely| {
            likely
                .into_iter()
                .map(|(token, weight)| Ok((token_id(token)?, weight)))
                .collect::<Outcome<Vec<_>>>()
        });
        let likely = likely.transpose()?;
        unlocked(py, || {
            constraint.with(|held| {
                if !held.session.allows(token)? {
                    return Err(Failure::Refused(token.raw()));
                }
                let mut site = Site::new(Some(&held.session), &mut tokens, 0.0, &|_, _| 0.0);
                self.with(|drafter| {
                    drafter.observe(&mut site, Seen::new(token, likely.as_deref()));
                    Ok(())
                })
            })
        })
    }

    /// Learns all tokens of a text; `prompt` came before them. Raises `RefusedError` at one that cannot
    /// follow.
    #[pyo3(signature = (tokens, /, *, prompt=Vec::new()))]
    fn learn_text(&self, py: Python<'_>, tokens: Vec<i64>, prompt: Vec<i64>) -> Outcome<()> {
        let (tokens, prompt) = (token_ids(&tokens)?, token_ids(&prompt)?);
        unlocked(py, || {
            self.with(|_| {
                let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
                show_text(&mut *counts, &self.parts, prompt, &tokens)
            })
        })
    }

    /// A copy of what it has learnt so far, with the prior that it began with.
    fn prior(&self) -> Outcome<PyPrior> {
        self.with(|_| {
            let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(PyPrior::new(Arc::clone(&self.parts), counts.prior().clone()))
        })
    }
}
