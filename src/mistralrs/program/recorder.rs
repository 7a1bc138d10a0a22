//! A logits processor that records the tokens which the engine accepts, behind the processor that draws.

use std::sync::{Arc, Mutex, PoisonError};

use domino_cli::texts::Pulse;
use mistralrs_candle::{DType, Result, Tensor};
use mistralrs_core::CustomLogitsProcessor;
use tokio::sync::mpsc::UnboundedSender;

/// Sends the tokens that are taken. It stands behind the processor that draws, so that each row has exactly
/// one token above minus infinity.
#[derive(Debug)]
pub(super) struct Recorder {
    taken: UnboundedSender<u32>,
    rounds: Mutex<Rounds>,
    pulse: Arc<Pulse>,
}

impl Recorder {
    /// A recorder for an engine that draws each token once or, with `drafts`, draws drafts first.
    pub(super) fn new(taken: UnboundedSender<u32>, pulse: Arc<Pulse>, drafts: bool) -> Self {
        let rounds = if drafts { Rounds::Before } else { Rounds::None };
        Self { taken, rounds: Mutex::new(rounds), pulse }
    }
}

impl CustomLogitsProcessor for Recorder {
    fn apply(&self, logits: &Tensor, context: &[u32]) -> Result<Tensor> {
        self.pulse.beat();
        let taken = self.rounds.lock().unwrap_or_else(PoisonError::into_inner).is_taken(context.len());
        if taken {
            let row: Vec<f32> = logits.to_dtype(DType::F32)?.flatten_all()?.to_vec1()?;
            let token = row.iter().position(|&logit| logit > f32::NEG_INFINITY);
            if let Some(token) = token.and_then(|token| u32::try_from(token).ok()) {
                // Whoever does not listen has cancelled.
                let _ = self.taken.send(token);
            }
        }
        Ok(logits.clone())
    }
}

/// Draws that are taken into the text. An engine that speculates draws by rounds: the tokens of a draft, each
/// with a context that is longer by one, then the tokens that the target takes, all with the context from
/// before the draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rounds {
    /// The engine does not speculate: every token is taken.
    None,
    /// The first round has yet to begin.
    Before,
    Drafting {
        base: usize,
        drawn: usize,
    },
    Taking {
        base: usize,
    },
}

impl Rounds {
    /// Is the token taken that is drawn after a context of `length` tokens?
    fn is_taken(&mut self, length: usize) -> bool {
        *self = match *self {
            Self::None => return true,
            Self::Drafting { base, drawn } if length == base + drawn => {
                Self::Drafting { base, drawn: drawn + 1 }
            }
            Self::Drafting { base, .. } | Self::Taking { base } if length == base => Self::Taking { base },
            _ => Self::Drafting { base: length, drawn: 1 },
        };
        matches!(self, Self::Taking { .. })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use mistralrs_candle::Device;

    use super::*;

    fn pulse() -> Arc<Pulse> {
        Arc::new(Pulse::new(Duration::from_secs(1)))
    }

    /// Lengths of contexts, and whether the token is taken: each round drafts `draft` tokens, and takes the
    /// number in `rounds`.
    fn calls(draft: usize, rounds: &[usize]) -> Vec<(usize, bool)> {
        let mut base = 7;
        let mut calls = Vec::new();
        for &taken in rounds {
            calls.extend((0..draft).map(|drawn| (base + drawn, false)));
            calls.extend((0..taken).map(|_| (base, true)));
            base += taken;
        }
        calls
    }

    #[test]
    fn rounds_take_only_the_draws_of_the_target_model() {
        for (draft, taken) in
            [(1, &[1, 1, 1][..]), (2, &[1, 2, 1, 1, 2]), (4, &[4, 1, 3, 2, 4, 4, 1]), (8, &[8, 8, 1, 1])]
        {
            let mut rounds = Rounds::Before;
            for (length, is_taken) in calls(draft, taken) {
                assert_eq!(rounds.is_taken(length), is_taken, "{draft} {taken:?} {length}");
            }
        }
    }

    #[test]
    fn the_recorder_sends_the_last_token_and_keeps_the_row() {
        let (sender, mut tokens) = tokio::sync::mpsc::unbounded_channel();
        let recorder = Recorder::new(sender, pulse(), false);
        let row = Tensor::new(&[f32::NEG_INFINITY, f32::NEG_INFINITY, 1.0, f32::NEG_INFINITY], &Device::Cpu)
            .unwrap();
        let after = recorder.apply(&row, &[1, 2]).unwrap();
        assert_eq!(after.to_vec1::<f32>().unwrap(), row.to_vec1::<f32>().unwrap());
        assert_eq!(tokens.try_recv(), Ok(2));
    }
}
