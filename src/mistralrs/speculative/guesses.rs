//! Proposers of drafts for the plugin; its only file that knows their interfaces.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{
    CompiledGrammar,
    constraint::Constraint,
    decode::Sampler,
    ids::TokenId,
    proposer::{
        BestOf, CountProposer, Counting, Draft, DraftLength, Drafter, ForcedText, Learning, Lookup, Pass,
        PassCost, Prior, Seen, Site,
    },
    vocab::Tokenizer,
};

/// Proposers for texts of one grammar. Requests share what is learnt; clones share it too.
#[derive(Debug, Clone)]
pub struct Guesses {
    learner: Arc<Mutex<CountProposer>>,
    /// `None`: nothing but the counts guesses.
    forced: Option<ForcedText>,
    /// The least acceptance of the tokens of a draft.
    threshold: f64,
    /// Drafters by length of drafts; most programs use one length. Acceptance is learnt over all texts.
    drafters: Arc<Mutex<Vec<(DraftLength, SharedDrafter)>>>,
}

type SharedDrafter = Arc<Mutex<Drafter>>;

impl Guesses {
    /// Makes guesses for texts of `grammar` by three proposers: a prior, which may be [empty](Prior::new);
    /// forced texts, which the tokenizer splits into tokens; and a lookup of earlier text. With an empty
    /// prior, text that could be [spelled otherwise](ForcedText::with_spellings) counts as forced too.
    #[must_use]
    pub fn new(grammar: &CompiledGrammar, tokenizer: &Tokenizer, prior: Prior, learning: Learning) -> Self {
        let forced = ForcedText::new(tokenizer.clone(), grammar.vocabulary().clone());
        let forced = if prior.summary().observed == 0 { forced.with_spellings() } else { forced };
        let learner = Arc::new(Mutex::new(CountProposer::new(prior, learning)));
        Self { learner, forced: Some(forced), threshold: 0.0, drafters: Arc::default() }
    }

    /// Makes guesses by the paper's proposer (3.6) alone: the token that a prior for `grammar`, which may be
    /// [empty](Prior::new), counted most often at such a place of the grammar.
    #[must_use]
    pub fn of_paper(prior: Prior, learning: Learning) -> Self {
        let counts = CountProposer::new(prior, learning).counting(Counting::paper());
        Self::of_counts(Arc::new(Mutex::new(counts)), None)
    }

    /// Guesses by counts that the caller shares, by text that is forced if that is to be guessed, and by what
    /// came before in the same text; without `forced` by the counts alone.
    #[must_use]
    pub fn of_counts(learner: Arc<Mutex<CountProposer>>, forced: Option<ForcedText>) -> Self {
        Self { learner, forced, threshold: 0.0, drafters: Arc::default() }
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
        let Some(forced) = &self.forced else {
            return Drafter::new(Box::new(Arc::clone(&self.learner)), length);
        };
        let proposer = BestOf::new(vec![
            Box::new(Arc::clone(&self.learner)),
            Box::new(forced.clone()),
            Box::new(Lookup::default()),
        ]);
        Drafter::new(Box::new(proposer), length)
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
mod tests {
    use super::*;
    use crate::{Compiler, Grammar, Limits, Syntax, decode::Sampling, vocab::Vocabulary};

    /// Seconds of a pass by rows, like mistral.rs on two cores: products take twice as long over two to eight
    /// rows as over one.
    fn seconds(rows: usize) -> f64 {
        match rows {
            1 => 0.0126,
            2..=8 => 0.0260 + 0.0005 * f64::from(u32::try_from(rows).unwrap()),
            _ => 0.0340,
        }
    }

    /// Guesses for texts of `[a-d]*`, and their grammar.
    fn guesses() -> (Guesses, CompiledGrammar) {
        let json = r#"{"model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3},
            "unk_token": "a"}, "added_tokens": [], "normalizer": null, "pre_tokenizer": null,
            "post_processor": null, "decoder": null}"#;
        let tokenizer = Tokenizer::from_tokenizer_json(json).unwrap();
        let names = ["a", "b", "c", "d"].into_iter().zip(0..).map(|(name, id)| (TokenId::new(id), name));
        let vocabulary = names.fold(Vocabulary::builder(), |builder, (id, name)| builder.token(id, name));
        let vocabulary = vocabulary.end_of_text(TokenId::new(4)).build().unwrap();
        let grammar = Grammar::parse(Syntax::Regex, "[a-d]*", &Limits::default()).unwrap();
        let grammar = Compiler::new(vocabulary).compile(&grammar).unwrap();
        let guesses = Guesses::new(&grammar, &tokenizer, Prior::new(&grammar), Learning::Online);
        (guesses, grammar)
    }

    /// Time in seconds of each pass of a text, drafted as long as pays, and the tokens of its draft.
    fn passes(
        guesses: &Guesses,
        grammar: &CompiledGrammar,
        cost: &SharedCost,
        text: &[TokenId],
    ) -> Vec<(f64, usize)> {
        let mut guesser = guesses.guesser(15, DraftLength::Auto, cost);
        let draws = CoupledDraws { sampler: Sampler::new(Sampling::greedy(), 1), first: None, prompt: 1 };
        let mut constraint = grammar.constraint();
        let (mut sequence, mut passes, mut left) = (vec![TokenId::new(0)], Vec::new(), text);
        while !left.is_empty() {
            let room = left.len() - 1;
            let draft = guesser.draft(&constraint, &mut sequence, &draws, room, <[_]>::len).to_vec();
            let accepted = draft.iter().zip(left).take_while(|(guess, token)| guess == token).count();
            let (taken, rest) = left.split_at(accepted + 1);
            for &token in taken {
                guesser.observe(&constraint, &mut sequence, &draws, token);
                constraint.advance(token).unwrap();
                sequence.push(token);
            }
            let rows = draft.len() + 1;
            guesser.verified(accepted, rows, seconds(rows));
            passes.push((seconds(rows), draft.len()));
            left = rest;
        }
        passes
    }

    /// Random tokens: `percent` of 100 are `a`, the others uniform.
    fn noise(count: usize, percent: u64) -> Vec<TokenId> {
        let next = |&x: &u64| {
            Some(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
        };
        let states = std::iter::successors(Some(7_u64), next).skip(1);
        let token = |x: u64| if (x >> 33) % 100 < percent { 0 } else { u32::try_from(x >> 62).unwrap() };
        states.map(|x| TokenId::new(token(x))).take(count).collect()
    }

    #[test]
    fn what_narrow_passes_cost_is_learnt_after_a_slow_first_one() {
        let cost = SharedCost::default();
        cost.note(1, 0.040);
        for _ in 0..20 {
            for rows in [1, 2, 4, 8, 17] {
                cost.note(rows, seconds(rows));
            }
        }
        for rows in [2, 4, 8] {
            let (found, right) = (cost.read().relative(Pass::whole(rows)), seconds(rows) / seconds(1));
            assert!((found - right).abs() < 0.01, "{rows} rows: {found}, not {right}");
        }
    }

    #[test]
    fn what_was_measured_on_a_busy_machine_is_forgotten() {
        let cost = SharedCost::default();
        (0..15).for_each(|_| _ = cost.note(4, 9.0));
        (0..SharedCost::MEMORY).for_each(|_| _ = cost.note(1, 0.01));
        assert!(cost.read().seconds(Pass::whole(4)) < 0.1);
    }

    #[test]
    fn requests_at_once_share_what_they_learn() {
        let ((guesses, _), cost) = (guesses(), SharedCost::default());
        let (mut one, other) = (guesses.guesser(15, DraftLength::Auto, &cost), cost.clone());
        let late = guesses.guesser(15, DraftLength::Auto, &cost);
        one.verified(0, 3, 0.5);
        // Both texts are alive until here: neither must end first, nor undo what the other has found out.
        drop(late);
        assert!((other.read().seconds(Pass::whole(3)) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn drafts_that_do_not_pay_are_not_made() {
        for percent in [0, 30, 50, 60, 70, 80, 90] {
            let ((guesses, grammar), cost) = (guesses(), SharedCost::default());
            let found = passes(&guesses, &grammar, &cost, &noise(1500, percent));
            let (took, plain) = (found.iter().map(|pass| pass.0).sum::<f64>(), 1500.0 * seconds(1));
            assert!(plain / took > 0.97, "{percent} %: {took} s, and {plain} s without drafts");
            assert!(found[..50].iter().any(|pass| pass.1 > 0), "it was not even tried");
        }
    }

    #[test]
    fn texts_that_repeat_themselves_are_drafted_for() {
        let ((guesses, grammar), cost) = (guesses(), SharedCost::default());
        let text: Vec<_> = noise(11, 0).into_iter().cycle().take(800).collect();
        let found = passes(&guesses, &grammar, &cost, &text);
        let (took, plain) = (found.iter().map(|pass| pass.0).sum::<f64>(), 800.0 * seconds(1));
        assert!(plain / took > 3.0, "{took} s, and {plain} s without drafts");
    }

    #[test]
    fn memory_grows_with_what_is_learnt() {
        let ((guesses, grammar), cost) = (guesses(), SharedCost::default());
        let before = guesses.memory();
        passes(&guesses, &grammar, &cost, &noise(500, 0));
        let contexts: usize = guesses.prior().summary().levels.iter().map(|level| level.0).sum();
        assert!(guesses.memory() > before + 40 * contexts, "{} for {contexts}", guesses.memory());
    }
}
