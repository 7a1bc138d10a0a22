//! Proposers of drafts for the plugin; its only file that knows their interfaces.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domino::{
    CompiledGrammar, Constraint,
    decode::Sampler,
    ids::TokenId,
    proposer::{
        CountProposer, Counting, Draft, DraftLength, DraftRecipe, Drafter, Learning, Pass, PassCost, Prior,
        Seen, Site,
    },
    vocab::Tokenizer,
};

/// Proposers for texts of one grammar. Requests share what is learnt; clones share it too.
#[derive(Debug, Clone)]
pub struct Guesses {
    learner: Arc<Mutex<CountProposer>>,
    /// The proposers beside the counts.
    recipe: DraftRecipe,
    /// The least acceptance of the tokens of a draft.
    threshold: f64,
    /// Drafters by length of drafts; most programs use one length. Acceptance is learnt over all texts.
    drafters: Arc<Mutex<Vec<(DraftLength, SharedDrafter)>>>,
}

type SharedDrafter = Arc<Mutex<Drafter>>;

impl Guesses {
    /// Makes guesses for texts of `grammar` by the [standard](DraftRecipe::standard) recipe: a prior, which
    /// may be [empty](Prior::new); with an empty one forced text, which the tokenizer splits into tokens; and
    /// a lookup of earlier text.
    #[must_use]
    pub fn new(grammar: &CompiledGrammar, tokenizer: &Tokenizer, prior: Prior, learning: Learning) -> Self {
        let known = prior.summary().observed > 0;
        let recipe = DraftRecipe::standard(tokenizer, grammar.vocabulary(), known);
        Self::of_counts(Arc::new(Mutex::new(CountProposer::new(prior, learning))), recipe)
    }

    /// Makes guesses by the paper's proposer (3.6) alone: the token that a prior for `grammar`, which may be
    /// [empty](Prior::new), counted most often at such a place of the grammar.
    #[must_use]
    pub fn of_paper(prior: Prior, learning: Learning) -> Self {
        let counts = CountProposer::new(prior, learning).counting(Counting::paper());
        Self::of_counts(Arc::new(Mutex::new(counts)), DraftRecipe::counts_alone())
    }

    /// Guesses by counts that the caller shares, and by the other proposers of the recipe.
    #[must_use]
    pub fn of_counts(learner: Arc<Mutex<CountProposer>>, recipe: DraftRecipe) -> Self {
        Self { learner, recipe, threshold: 0.0, drafters: Arc::default() }
    }

    /// Drafts only tokens that are accepted with at least this probability, from 0 to 1, as far as it is
    /// known. For drafts [of a fixed length](super::GrammarSpeculativeLoader::with_gamma): others weigh that
    /// themselves.
    #[must_use]
    pub fn at_least(self, threshold: f64) -> Self {
        Self { threshold: threshold.clamp(0.0, 1.0), drafters: Arc::default(), ..self }
    }

    /// The counts learnt so far, as a prior that can be saved.
    #[must_use]
    pub fn prior(&self) -> Prior {
        held(&self.learner).prior().clone()
    }

    /// Memory of the counts, in bytes. Constant time.
    #[must_use]
    pub fn memory(&self) -> usize {
        held(&self.learner).prior().memory()
    }

    /// Makes the guesser of one request; `cost` has the times of passes.
    pub(super) fn guesser(&self, most: usize, length: DraftLength, cost: &SharedCost) -> Guesser {
        let length = length.at_least(self.threshold).unwrap_or(length);
        let mut drafters = held(&self.drafters);
        let known =
            drafters.iter().find(|(known, _)| *known == length).map(|(_, drafter)| Arc::clone(drafter));
        let drafter = known.unwrap_or_else(|| {
            let drafter = Arc::new(Mutex::new(self.drafter(length)));
            drafters.push((length, Arc::clone(&drafter)));
            drafter
        });
        Guesser { drafter: Some(drafter), draft: Draft::default(), most, cost: cost.clone() }
    }

    fn drafter(&self, length: DraftLength) -> Drafter {
        self.recipe.drafter(Box::new(Arc::clone(&self.learner)), None, length)
    }
}

/// Times of an engine's passes, measured by its requests. Cloning shares them.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedCost(Arc<Mutex<MeasuredPasses>>);

/// Measurements of passes.
#[derive(Debug, Default)]
struct MeasuredPasses {
    cost: PassCost,
    /// Times that drafts must earn: those of `cost` plus a [margin](SharedCost::MARGIN).
    price: PassCost,
    passes: usize,
}

impl SharedCost {
    /// Passes after which all measurements start anew. Times measured while other work took the processors
    /// would otherwise prevent drafts for ever, and so their own correction.
    const MEMORY: usize = 2_000;
    /// Factor of the price of a drafted pass over its cost. Acceptance is an estimate, and the draft that
    /// seems best is most often one whose acceptance is estimated too high (winner's curse).
    const MARGIN: f64 = 1.1;

    pub(super) fn read(&self) -> PassCost {
        held(&self.0).cost.clone()
    }

    /// Notes that a pass of `rows` rows took `seconds`, and returns the estimated time of such a pass.
    ///
    /// Upstream computes every row whole, so there is one curve, by rows. The other curve of [`PassCost`], of
    /// the cost of whole rows, would only get what passes take beyond a straight line through the first pass
    /// ever noted, which is a slow one.
    fn note(&self, rows: usize, seconds: f64) -> f64 {
        let pass = Pass { tokens: rows, whole: 0 };
        let mut measured = held(&self.0);
        if measured.passes == Self::MEMORY {
            *measured = MeasuredPasses::default();
        }
        measured.passes += 1;
        measured.cost.observe(pass, seconds);
        measured.price.observe(pass, if rows > 1 { Self::MARGIN * seconds } else { seconds });
        measured.cost.seconds(pass)
    }
}

/// Drafts the texts of one request.
#[derive(Debug, Default)]
pub(super) struct Guesser {
    drafter: Option<SharedDrafter>,
    draft: Draft,
    /// Most tokens of a draft.
    most: usize,
    cost: SharedCost,
}

/// Draws of a request's tokens, which guesses are coupled to.
#[derive(Debug, Clone)]
pub(super) struct CoupledDraws {
    pub(super) sampler: Sampler,
    /// Position of the text's first token in the draws. Default: the number of tokens of the prompt.
    pub(super) first: Option<usize>,
    /// Number of tokens of the prompt.
    pub(super) prompt: usize,
}

impl CoupledDraws {
    /// Position in the draws of the token at this index of the sequence.
    pub(super) fn position(&self, index: usize) -> usize {
        self.first.unwrap_or(self.prompt) + index.saturating_sub(self.prompt)
    }

    fn noise(&self, index: usize, token: TokenId) -> f64 {
        self.sampler.noise(self.position(index), token)
    }
}

impl Guesser {
    /// Drafts up to `room` tokens after `sequence`. `keep` says how many tokens of a draft are kept.
    pub(super) fn draft(
        &mut self,
        constraint: &Constraint,
        sequence: &mut Vec<TokenId>,
        draws: &CoupledDraws,
        room: usize,
        keep: impl FnOnce(&[TokenId]) -> usize,
    ) -> &[TokenId] {
        self.draft = Draft::default();
        if let Some(drafter) = self.drafter.as_ref().filter(|_| room > 0) {
            let noise = |index, token| draws.noise(index, token);
            let mut site =
                Site::new(Some(constraint), sequence, draws.sampler.sampling().temperature(), &noise);
            let measured = held(&self.cost.0);
            self.draft = held(drafter).draft_at(&mut site, room.min(self.most), &measured.price);
            let kept = keep(&self.draft.tokens);
            self.draft.tokens.truncate(kept);
            self.draft.acceptance.truncate(kept);
        }
        &self.draft.tokens
    }

    /// True if a proposer learns from what comes.
    pub(super) fn learns(&self) -> bool {
        self.drafter.as_ref().is_some_and(|drafter| held(drafter).learns())
    }

    /// Observes that `token` came after `sequence`, where `constraint` was.
    pub(super) fn observe(
        &mut self,
        constraint: &Constraint,
        sequence: &mut Vec<TokenId>,
        draws: &CoupledDraws,
        token: TokenId,
    ) {
        if let Some(drafter) = &self.drafter {
            let noise = |index, token| draws.noise(index, token);
            let mut site =
                Site::new(Some(constraint), sequence, draws.sampler.sampling().temperature(), &noise);
            held(drafter).observe(&mut site, Seen::new(token, None));
        }
    }

    /// Accounts for the last draft, whose pass had `rows` rows. `seconds` includes all that belongs to the
    /// pass.
    pub(super) fn verified(&mut self, accepted: usize, rows: usize, seconds: f64) {
        let draft = std::mem::take(&mut self.draft);
        if let Some(drafter) = &self.drafter {
            let seconds = self.cost.note(rows, seconds);
            held(drafter).verified(&draft, accepted, seconds);
        }
    }
}

/// Locks a mutex, poisoned or not: a thread that panicked can at worst have left bad guesses.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
