//! What the plugin asks of proposers: the one file of it that knows their interfaces.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{
    CompiledGrammar,
    constraint::Constraint,
    decode::Sampler,
    ids::TokenId,
    proposer::{
        BestOf, CountProposer, Draft, DraftLength, Drafter, ForcedText, Learning, Lookup, Pass, PassCost,
        Prior, Seen, Site,
    },
    vocab::Tokenizer,
};

/// What guesses texts of one grammar. Its requests share what it learns from them; cloning shares it too.
#[derive(Debug, Clone)]
pub struct Guesses {
    learner: Arc<Mutex<CountProposer>>,
    tokenizer: Tokenizer,
    grammar: CompiledGrammar,
}

impl Guesses {
    /// Guesses for texts of `grammar`, by a prior for it, which may be [empty](Prior::new), by texts that are forced (which
    /// the tokenizer splits into tokens), and by what came before in the same text.
    #[must_use]
    pub fn new(grammar: &CompiledGrammar, tokenizer: &Tokenizer, prior: Prior, learning: Learning) -> Self {
        let learner = Arc::new(Mutex::new(CountProposer::new(prior, learning)));
        Self { learner, tokenizer: tokenizer.clone(), grammar: grammar.clone() }
    }

    /// What is known by now, to be saved as a prior.
    #[must_use]
    pub fn prior(&self) -> Prior {
        self.learner.lock().unwrap_or_else(PoisonError::into_inner).prior().clone()
    }

    /// The guesser of one request, with what passes cost.
    pub(super) fn guesser(&self, most: usize, length: DraftLength, cost: &SharedCost) -> Guesser {
        let proposer = BestOf::new(vec![
            Box::new(Arc::clone(&self.learner)),
            Box::new(ForcedText::new(self.tokenizer.clone(), self.grammar.vocabulary().clone())),
            Box::new(Lookup::default()),
        ]);
        let drafter = Drafter::new(Box::new(proposer), length).cost(cost.read());
        Guesser { drafter: Some(drafter), draft: Draft::default(), most, cost: cost.clone() }
    }
}

/// What passes of an engine cost, as its requests found out. Cloning shares it.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedCost(Arc<Mutex<PassCost>>);

impl SharedCost {
    pub(super) fn read(&self) -> PassCost {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn write(&self, cost: &PassCost) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone_from(cost);
    }
}

/// Drafts the texts of one request.
#[derive(Debug, Default)]
pub(super) struct Guesser {
    drafter: Option<Drafter>,
    draft: Draft,
    /// Most tokens of a draft.
    most: usize,
    cost: SharedCost,
}

/// How the tokens of a request are drawn: guesses are coupled to the draws.
#[derive(Debug, Clone)]
pub(super) struct Draws {
    pub(super) sampler: Sampler,
    /// Position of the text's first token, as draws count.
    pub(super) first: usize,
    /// Tokens of the prompt.
    pub(super) prompt: usize,
}

impl Draws {
    /// As draws count, the position of the token at this index of the sequence.
    pub(super) fn position(&self, index: usize) -> usize {
        self.first + index.saturating_sub(self.prompt)
    }

    fn noise(&self, index: usize, token: TokenId) -> f64 {
        self.sampler.noise(self.position(index), token)
    }
}

impl Guesser {
    /// A draft of up to `room` tokens after `sequence`, of which `keep` says how many tokens are kept.
    pub(super) fn draft(
        &mut self,
        constraint: &Constraint,
        sequence: &mut Vec<TokenId>,
        draws: &Draws,
        room: usize,
        keep: impl FnOnce(&[TokenId]) -> usize,
    ) -> &[TokenId] {
        self.draft = Draft::default();
        if let Some(drafter) = self.drafter.as_mut().filter(|_| room > 0) {
            let noise = |index, token| draws.noise(index, token);
            let mut site =
                Site::new(Some(constraint), sequence, draws.sampler.sampling().temperature(), &noise);
            self.draft = drafter.draft(&mut site, room.min(self.most));
            let kept = keep(&self.draft.tokens);
            self.draft.tokens.truncate(kept);
            self.draft.acceptance.truncate(kept);
        }
        &self.draft.tokens
    }

    /// Does it want to see what comes?
    pub(super) fn learns(&self) -> bool {
        self.drafter.as_ref().is_some_and(Drafter::learns)
    }

    /// Sees that `token` came after `sequence`, where `constraint` was.
    pub(super) fn observe(
        &mut self,
        constraint: &Constraint,
        sequence: &mut Vec<TokenId>,
        draws: &Draws,
        token: TokenId,
    ) {
        if let Some(drafter) = &mut self.drafter {
            let noise = |index, token| draws.noise(index, token);
            let mut site =
                Site::new(Some(constraint), sequence, draws.sampler.sampling().temperature(), &noise);
            drafter.observe(&mut site, Seen::new(token, None));
        }
    }

    /// Accounts for the last draft, whose pass had so many rows.
    pub(super) fn verified(&mut self, accepted: usize, rows: usize, seconds: f64) {
        let draft = std::mem::take(&mut self.draft);
        if let Some(drafter) = &mut self.drafter {
            drafter.passed(Pass::whole(rows), seconds);
            drafter.verified(&draft, accepted, seconds);
        }
    }
}

impl Drop for Guesser {
    fn drop(&mut self) {
        if let Some(drafter) = &self.drafter {
            self.cost.write(drafter.pass_cost());
        }
    }
}
