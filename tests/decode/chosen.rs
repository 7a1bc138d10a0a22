//! Rows that choose their tokens where they are: one question a pass, and the texts of rows that come back.

use std::sync::{Arc, Mutex};

use domino::{
    TokenId,
    decode::{DecodeErrorKind, Decoder, DrawError, Generation, Sampling},
    model::{
        ChosenTokens, Fault, Kept, KeptRows, Logits, Model, RowChoice, Rows, ScriptedError, ScriptedModel,
    },
    proposer::{CountProposer, DraftLength, Drafter, Learning, Prior},
    vocab::TokenSet,
};

use super::{
    draw::at,
    replay::Recites,
    run::{compiled, model, prompt, shipped, vocabulary},
};

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
}

/// A scripted model whose rows stay with it, and choose likeliest tokens but draw none.
struct Choosing {
    model: ScriptedModel,
    log: Arc<Mutex<Log>>,
    loses: bool,
}

struct ChoosingRows {
    logits: Logits,
    log: Arc<Mutex<Log>>,
    loses: bool,
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

impl KeptRows for ChoosingRows {
    type Error = ScriptedError;

    fn rows(&self) -> usize {
        self.logits.rows()
    }

    fn likeliest(&self, index: usize, allowed: &TokenSet) -> Result<Option<TokenId>, ScriptedError> {
        self.log.lock().unwrap().others += 1;
        Ok(likeliest(self.logits.row(index).unwrap(), allowed))
    }

    fn choose(
        &self,
        first: usize,
        choices: &[RowChoice<'_>],
    ) -> Result<Option<ChosenTokens>, ScriptedError> {
        if self.loses {
            return Err(ScriptedError::Scripted);
        }
        if choices.iter().any(|choice| choice.draw.is_some()) {
            return Ok(None);
        }
        self.log.lock().unwrap().chosen.push(choices.len());
        let row = |index| self.logits.row(first + index).unwrap();
        Ok(Some(choices.iter().enumerate().map(|(index, one)| likeliest(row(index), one.allowed)).collect()))
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

    fn position(&self) -> usize {
        self.model.position()
    }

    fn context(&self) -> usize {
        self.model.context()
    }

    fn vocabulary_size(&self) -> usize {
        self.model.vocabulary_size()
    }

    fn forward(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Result<Logits, ScriptedError> {
        self.model.forward(tokens, rows)
    }

    fn begin(
        &mut self,
        tokens: &[TokenId],
        rows: Rows<'_>,
    ) -> Result<Option<Kept<ScriptedError>>, ScriptedError> {
        let logits = self.model.forward(tokens, rows)?;
        let mut log = self.log.lock().unwrap();
        log.passes += 1;
        log.rows.push(logits.rows());
        Ok(Some(Box::new(ChoosingRows { logits, log: Arc::clone(&self.log), loses: self.loses })))
    }

    fn truncate(&mut self, position: usize) -> Result<(), ScriptedError> {
        self.model.truncate(position)
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
    (Choosing { model, log: Arc::clone(&log), loses }, log)
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

/// Whoever learns from probabilities has rows brought back; then it is those that are chosen from.
#[test]
fn rows_that_are_learnt_from_are_not_asked_to_choose() {
    let text = std::fs::read_to_string(format!("{}/grammars/json.gbnf", env!("CARGO_MANIFEST_DIR")));
    let prior = Prior::new(&compiled(&text.unwrap()));
    let plain = decoder(model(5), Some("json"), Sampling::greedy()).generate(&prompt()).unwrap();
    for (learning, asks) in [(Learning::Online, false), (Learning::Text, false), (Learning::Fixed, true)] {
        let (choosing, log) = choosing(model(5), false);
        let mut decoder = decoder(choosing, Some("json"), Sampling::greedy());
        let proposer = CountProposer::new(prior.clone(), learning);
        let length = DraftLength::up_to(3, 0.0).unwrap();
        decoder.set_drafter(Some(Drafter::new(Box::new(proposer), length)));
        assert_eq!(decoder.generate(&prompt()).unwrap().tokens, plain.tokens, "{learning:?}");
        assert_eq!(!log.lock().unwrap().chosen.is_empty(), asks, "{learning:?}");
    }
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
