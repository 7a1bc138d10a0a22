//! Rows that choose their tokens where they are: one question a pass, and the texts of rows that come back.

use std::sync::{Arc, Mutex};

use domino::{
    TokenId,
    decode::{DecodeErrorKind, Decoder, DrawError, Generation, Sampling},
    model::{
        Fault, Kept, KeptRows, Logits, Model, RowAnswer, RowChoice, Rows, ScriptedError, ScriptedModel,
        passes::{PassTimes, any_tokens},
    },
    proposer::{CountProposer, DraftLength, Drafter, Learning, Prior},
    vocab::TokenSet,
};

use super::{
    draw::at,
    replay::Recites,
    run::{compiled, model, prompt, shipped, vocabulary},
};
use crate::support::delegate::delegate_model;

/// The questions that rows were asked.
#[derive(Debug, Clone, Default)]
struct Log {
    passes: usize,
    /// Rows of each pass.
    rows: Vec<usize>,
    /// Choices of each question for tokens.
    chosen: Vec<usize>,
    waits: usize,
    /// Questions about one row.
    others: usize,
    /// Lists of tokens that were given.
    lists: usize,
}

/// A scripted model whose rows stay with it, and choose likeliest tokens but draw none.
struct Choosing {
    model: ScriptedModel,
    log: Arc<Mutex<Log>>,
    loses: bool,
    /// Most tokens of a list.
    listed: usize,
}

struct ChoosingRows {
    logits: Logits,
    log: Arc<Mutex<Log>>,
    loses: bool,
    listed: usize,
}

fn likeliest(row: &[f32], allowed: &TokenSet) -> Option<TokenId> {
    let row = &row[..row.len().min(allowed.size())];
    if row.iter().any(|logit| logit.is_nan() || *logit == f32::INFINITY) {
        return None;
    }
    let mut best: Option<(TokenId, f32)> = None;
    for token in allowed.iter().filter(|token| token.index() < row.len()) {
        let logit = row[token.index()];
        if logit > best.map_or(f32::NEG_INFINITY, |(_, most)| most) {
            best = Some((token, logit));
        }
    }
    best.map(|(token, _)| token)
}

impl ChoosingRows {
    fn answer(&self, index: usize, choice: &RowChoice<'_>) -> RowAnswer {
        let row = self.logits.row(index).unwrap();
        let token = likeliest(row, choice.allowed);
        let near = choice.near.zip(token).map(|(far, token)| {
            let top = row[token.index()];
            let near = choice.allowed.iter().filter(|token| top - row[token.index()] < far);
            near.map(|token| (token, row[token.index()])).collect::<Vec<_>>()
        });
        let near = near.filter(|near| near.len() <= self.listed);
        self.log.lock().unwrap().lists += usize::from(near.is_some());
        RowAnswer { token, near }
    }
}

impl KeptRows for ChoosingRows {
    type Error = ScriptedError;

    fn rows(&self) -> usize {
        self.logits.rows()
    }

    fn choose(
        &self,
        first: usize,
        choices: &[RowChoice<'_>],
    ) -> Result<Option<Vec<RowAnswer>>, ScriptedError> {
        if self.loses {
            return Err(ScriptedError::Scripted);
        }
        if choices.iter().any(|choice| choice.draw.is_some()) {
            return Ok(None);
        }
        self.log.lock().unwrap().chosen.push(choices.len());
        Ok(Some((first..).zip(choices).map(|(row, choice)| self.answer(row, choice)).collect()))
    }

    fn row(&self, index: usize) -> Result<Vec<f32>, ScriptedError> {
        self.log.lock().unwrap().others += 1;
        Ok(self.logits.row(index).unwrap().to_vec())
    }

    fn wait(&self) -> Result<(), ScriptedError> {
        self.log.lock().unwrap().waits += 1;
        Ok(())
    }
}

impl Model for Choosing {
    type Error = ScriptedError;

    delegate_model!(model, forward);

    fn begin(
        &mut self,
        tokens: &[TokenId],
        rows: Rows<'_>,
    ) -> Result<Option<Kept<ScriptedError>>, ScriptedError> {
        let logits = self.model.forward(tokens, rows)?;
        let mut log = self.log.lock().unwrap();
        log.passes += 1;
        log.rows.push(logits.rows());
        let Self { loses, listed, .. } = *self;
        Ok(Some(Box::new(ChoosingRows { logits, log: Arc::clone(&self.log), loses, listed })))
    }
}

fn decoder<M: Model>(model: M, grammar: Option<&str>, sampling: Sampling) -> Decoder<M> {
    let builder = Decoder::builder(model).vocabulary(vocabulary()).sampling(sampling).max_new_tokens(30);
    let builder = grammar.into_iter().fold(builder, |builder, name| builder.constraint(shipped(name)));
    builder.build().unwrap()
}

/// A drafter that recites a text with a wrong token now and then.
fn reciting(plain: &Generation) -> Drafter {
    let mut recited = plain.tokens.clone();
    recited.iter_mut().skip(3).step_by(4).for_each(|token| *token = TokenId::new(65));
    Drafter::new(Box::new(Recites(recited)), DraftLength::up_to(5, 0.0).unwrap())
}

fn choosing(model: ScriptedModel, loses: bool) -> (Choosing, Arc<Mutex<Log>>) {
    let log = Arc::default();
    (Choosing { model, log: Arc::clone(&log), loses, listed: 50 }, log)
}

#[test]
fn a_pass_with_a_draft_is_one_question() {
    let (mut accepted, mut refused) = (0, 0);
    for grammar in [None, Some("json"), Some("arithmetic"), Some("c")] {
        for seed in 0..6 {
            let plain = decoder(model(seed), grammar, Sampling::greedy()).generate(&prompt()).unwrap();
            let (choosing, log) = choosing(model(seed), false);
            let mut decoder = decoder(choosing, grammar, Sampling::greedy());
            decoder.set_drafter(Some(reciting(&plain)));
            let found = decoder.generate(&prompt()).unwrap();
            assert_eq!((&found.tokens, found.finish), (&plain.tokens, plain.finish), "{grammar:?} {seed}");
            let log = log.lock().unwrap().clone();
            assert_eq!((log.waits, log.others), (0, 0), "{grammar:?} {seed}");
            assert_eq!((&log.chosen, log.passes), (&log.rows, found.stats.passes), "{grammar:?} {seed}");
            accepted += found.stats.accepted;
            refused += found.stats.drafted - found.stats.accepted;
        }
    }
    assert!(accepted > 50 && refused > 50, "{accepted} {refused}");
}

#[test]
fn a_pass_without_a_draft_is_one_question_too() {
    let (choosing, log) = choosing(model(3), false);
    let plain = decoder(model(3), Some("json"), Sampling::greedy()).generate(&prompt()).unwrap();
    let found = decoder(choosing, Some("json"), Sampling::greedy()).generate(&prompt()).unwrap();
    assert_eq!(found.tokens, plain.tokens);
    let log = log.lock().unwrap();
    assert_eq!((log.chosen.len(), log.passes, log.waits, log.others), (log.passes, log.passes, 0, 0));
}

#[test]
fn rows_that_cannot_draw_are_asked_one_by_one() {
    for sampling in [at(0.7), at(1.0).top_k(4).unwrap(), at(1.0).top_p(0.8).unwrap()] {
        let plain = decoder(model(5), Some("json"), sampling).generate(&prompt()).unwrap();
        let (choosing, log) = choosing(model(5), false);
        let mut decoder = decoder(choosing, Some("json"), sampling);
        decoder.set_drafter(Some(reciting(&plain)));
        assert_eq!(decoder.generate(&prompt()).unwrap().tokens, plain.tokens, "{sampling:?}");
        let log = log.lock().unwrap();
        assert_eq!((log.chosen.len(), log.waits), (0, log.passes), "{sampling:?}");
        assert!(log.others >= log.passes, "{sampling:?}");
    }
}

/// Whoever learns from probabilities is given lists in the same question, and learns the same from them. A
/// row of which there is no list, since too many tokens are near, is brought back.
#[test]
fn priors_learn_the_same_from_lists() {
    let text = std::fs::read_to_string(format!("{}/grammars/json.gbnf", env!("DOMINO_ROOT")));
    let grammar = compiled(&text.unwrap());
    for learning in [Learning::Online, Learning::PerText, Learning::Fixed] {
        let learnt = [None, Some(0), Some(20), Some(usize::MAX)].map(|listed| {
            let log = Arc::<Mutex<Log>>::default();
            let learner = CountProposer::new(Prior::new(&grammar), learning);
            let learner = Arc::new(Mutex::new(learner));
            let mut texts = Vec::new();
            for seed in 0..4 {
                let length = DraftLength::up_to(3, 0.0).unwrap();
                let drafter = Drafter::new(Box::new(Arc::clone(&learner)), length);
                texts.push(match listed {
                    None => drafted(model(seed), drafter),
                    Some(listed) => {
                        let (choosing, _) = choosing(model(seed), false);
                        drafted(Choosing { listed, log: Arc::clone(&log), ..choosing }, drafter)
                    }
                });
            }
            let prior = learner.lock().unwrap().prior().clone();
            let log = log.lock().unwrap().clone();
            (texts, prior, log)
        });
        let [(texts, prior, _), others @ ..] = &learnt;
        for (other, of_other, _) in others {
            assert_eq!(other, texts, "{learning:?}");
            assert!(of_other == prior, "{learning:?}");
        }
        let [none, some, all] = others.each_ref().map(|(.., log)| (log.lists > 0, log.others > 0));
        match learning {
            Learning::Fixed => assert_eq!([none, some, all], [(false, false); 3]),
            _ => assert_eq!([none, some, all], [(false, true), (true, true), (true, false)]),
        }
    }
}

fn drafted<M: Model>(model: M, drafter: Drafter) -> Vec<TokenId> {
    let mut decoder = decoder(model, Some("json"), Sampling::greedy());
    decoder.set_drafter(Some(drafter));
    decoder.generate(&prompt()).unwrap().tokens
}

#[test]
fn passes_are_timed_with_the_choice_of_their_tokens() {
    let (mut choosing, log) = choosing(model(4), false);
    let mut times = PassTimes::default();
    choosing.forward(&prompt(), Rows::Last).unwrap();
    for (count, rows) in [(1, Rows::All), (3, Rows::All), (3, Rows::Last)] {
        times.pass(&mut choosing, &any_tokens(count, vocabulary().size()), rows).unwrap();
        assert_eq!(choosing.position(), prompt().len());
    }
    assert!(times.median(1) > 0.0 && times.median(3) > 0.0);
    let log = log.lock().unwrap();
    assert_eq!((&log.chosen[..], log.waits, log.others), (&[1, 3, 1][..], 0, 0));
}

fn error_of(kind: &DecodeErrorKind) -> DrawError {
    match kind {
        DecodeErrorKind::Logits { error, .. } => *error,
        other => panic!("{other:?}"),
    }
}

/// A row without a token says why, and only when its turn comes.
#[test]
fn rows_that_are_wrong_end_the_run_as_they_do_in_memory() {
    for (fault, at) in
        [(Fault::NotANumber, 9), (Fault::NotANumber, 10), (Fault::Impossible, 9), (Fault::Impossible, 11)]
    {
        let write = |drafted: bool| {
            let plain = decoder(model(2), Some("c"), Sampling::greedy()).generate(&prompt()).unwrap();
            let (choosing, _) = choosing(model(2).fault(at, fault), false);
            let mut decoder = decoder(choosing, Some("c"), Sampling::greedy());
            if drafted {
                decoder.set_drafter(Some(reciting(&plain)));
            }
            let mut steps = decoder.steps(&prompt());
            let error = steps.by_ref().find_map(Result::err).expect("the fault is met");
            (error.kind().clone(), steps.tokens().to_vec())
        };
        let (kind, tokens) = write(true);
        assert_eq!((&kind, &tokens), (&write(false).0, &write(false).1), "{fault:?} {at}");
        assert_eq!(tokens.len(), at - prompt().len(), "{fault:?} {at}");
        match fault {
            Fault::NotANumber => assert!(matches!(error_of(&kind), DrawError::NotFinite(_)), "{kind:?}"),
            _ => assert_eq!(error_of(&kind), DrawError::Impossible),
        }
    }
}

#[test]
fn rows_that_are_lost_in_a_choice_end_the_run() {
    for drafted in [false, true] {
        let plain = decoder(model(4), Some("json"), Sampling::greedy()).generate(&prompt()).unwrap();
        let (choosing, _) = choosing(model(4), true);
        let mut decoder = decoder(choosing, Some("json"), Sampling::greedy());
        if drafted {
            decoder.set_drafter(Some(reciting(&plain)));
        }
        let error = decoder.generate(&prompt()).unwrap_err();
        assert_eq!(*error.kind(), DecodeErrorKind::Model);
    }
}
