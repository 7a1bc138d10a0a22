//! Lengths of drafts, and guesses of proposers.

use std::sync::{Arc, Mutex};

use domino::{
    Compiler, Grammar, Limits, Syntax, TokenId, Vocabulary,
    proposer::{
        BestOf, CountProposer, DraftLength, DraftLengthError, Drafter, ForcedText, Guess, Learning, Lookup,
        Pass, PassCost, Prior, Propose, Seen, Site,
    },
    vocab::Tokenizer,
};

use super::{LISTS, compiled, learnt};

const BYTE_LEVEL: &str = include_str!("../fixtures/byte_level.json");
const NO_NOISE: domino::proposer::Noise<'static> = &|_, _| 0.0;

/// A proposer of one guess.
#[derive(Debug)]
struct Always(Guess);

impl Propose for Always {
    fn guess(&mut self, _: &mut Site<'_>) -> Option<Guess> {
        Some(self.0)
    }
}

fn always(token: u32, acceptance: f64) -> Box<dyn Propose> {
    Box::new(Always(Guess { token: TokenId::new(token), acceptance }))
}

/// A proposer of one guess that counts how often it is asked.
#[derive(Debug)]
struct Asked {
    guess: Guess,
    times: usize,
    may_miss: bool,
}

impl Propose for Asked {
    fn guess(&mut self, _: &mut Site<'_>) -> Option<Guess> {
        self.times += 1;
        Some(self.guess)
    }

    fn learns(&self) -> bool {
        true
    }

    fn may_miss(&self) -> bool {
        self.may_miss
    }
}

/// A proposer of guesses with this acceptance, behind a counter, and a drafter that asks it.
fn asked(acceptance: f64, may_miss: bool) -> (Arc<Mutex<Asked>>, Drafter) {
    let guess = Guess { token: TokenId::new(1), acceptance };
    let asked = Arc::new(Mutex::new(Asked { guess, times: 0, may_miss }));
    let drafter = Drafter::new(Box::new(Arc::clone(&asked)), DraftLength::Auto).cost(curve(0.5));
    (asked, drafter)
}

/// Lengths of drafts over `passes` passes in which every token is accepted.
fn lengths(drafter: &mut Drafter, passes: usize) -> Vec<usize> {
    let mut tokens = vec![TokenId::new(1)];
    let pass = |_| {
        let draft = drafter.draft(&mut Site::new(None, &mut tokens, 0.0, NO_NOISE), 3);
        let length = draft.tokens.len();
        let seconds = drafter.pass_cost().seconds(Pass::whole(1 + length));
        drafter.verified(&draft, length, seconds);
        length
    };
    (0..passes).map(pass).collect()
}

/// A cost curve on which a pass over n tokens costs 1 + slope (n - 1).
fn curve(slope: f64) -> PassCost {
    let mut curve = PassCost::default();
    for tokens in 1..=65_u32 {
        let pass = Pass { tokens: tokens.try_into().unwrap(), whole: 0 };
        curve.observe(pass, 1.0 + slope * (f64::from(tokens) - 1.0));
    }
    curve
}

/// Length of the draft that pays for guesses of this acceptance.
fn paying(acceptance: f64, slope: f64, room: usize) -> usize {
    let mut drafter = Drafter::new(always(1, acceptance), DraftLength::Auto).cost(curve(slope));
    assert!(drafter.unmeasured(false).is_empty());
    let mut tokens = vec![TokenId::new(1)];
    drafter.draft(&mut Site::new(None, &mut tokens, 0.0, NO_NOISE), room).tokens.len()
}

#[test]
fn drafts_are_as_long_as_pays() {
    // The n-th token comes with probability a^n, and costs what a token takes otherwise.
    for (acceptance, slope, expected) in
        [(0.5, 0.3, 1), (0.5, 0.2, 2), (0.5, 0.6, 0), (0.9, 0.3, 11), (0.9, 1.1, 0), (1.0, 0.1, 64)]
    {
        assert_eq!(paying(acceptance, slope, 1000), expected, "{acceptance} {slope}");
    }
    // One that is worth just what it costs is not drafted.
    assert_eq!(paying(0.5, 0.5, 1000), 0);
    assert_eq!(paying(1.0, 0.1, 7), 7);
    assert_eq!(paying(1.0, 0.1, 0), 0);
}

#[test]
fn guesses_that_are_never_right_end_drafting() {
    let mut drafter = Drafter::new(always(1, 0.9), DraftLength::Auto).cost(curve(0.3));
    let mut tokens = vec![TokenId::new(1)];
    let mut lengths = Vec::new();
    for _ in 0..400 {
        let draft = drafter.draft(&mut Site::new(None, &mut tokens, 0.0, NO_NOISE), 20);
        lengths.push(draft.tokens.len());
        let seconds = drafter.pass_cost().seconds(Pass::whole(1 + draft.tokens.len()));
        drafter.verified(&draft, 0, seconds);
    }
    assert!(lengths[0] > 8, "{lengths:?}");
    // It tries again, but seldom.
    let late = &lengths[100..];
    assert!(late.iter().filter(|&&length| length > 0).count() * 50 < late.len(), "{lengths:?}");
}

#[test]
fn a_proposer_that_does_not_pay_is_hardly_asked() {
    // A guess that is right once in five times may cost half a pass: there is no draft.
    let (proposer, mut drafter) = asked(0.2, true);
    let found = lengths(&mut drafter, 2000);
    assert!(found.iter().all(|length| *length == 0));
    let times = proposer.lock().unwrap().times;
    assert!((20..80).contains(&times), "asked {times} times");
    // The proposer is asked again once it is found to be worth it, and then always.
    proposer.lock().unwrap().guess.acceptance = 0.9;
    let found = lengths(&mut drafter, 200);
    let first = found.iter().position(|length| *length > 0).unwrap();
    assert!(first <= 64 && found[first..].iter().all(|length| *length > 0), "{found:?}");
}

#[test]
fn learning_pauses_with_drafting_if_it_may_miss_tokens() {
    for (acceptance, may_miss) in [(0.2, true), (0.2, false), (0.9, true)] {
        let (_, mut drafter) = asked(acceptance, may_miss);
        let (mut drafted, mut learnt) = (0, 0);
        for _ in 0..500 {
            drafted += usize::from(lengths(&mut drafter, 1)[0] > 0);
            learnt += usize::from(drafter.learns());
        }
        let pays = acceptance > 0.5;
        assert_eq!(drafted == 500, pays, "{drafted}");
        assert_eq!(learnt < 50, !pays && may_miss, "{learnt}");
        assert!(learnt == 500 || may_miss, "{learnt}");
    }
}

#[test]
fn guesses_end_where_no_draft_can_gain_any_more() {
    // The second token of two is worth less than it costs, so a third guess is not asked for.
    let (proposer, mut drafter) = asked(0.6, true);
    assert_eq!(lengths(&mut drafter, 1), [1]);
    assert_eq!(proposer.lock().unwrap().times, 2);
    // Not even a sure guess would pay.
    let (proposer, drafter) = asked(0.6, true);
    assert_eq!(lengths(&mut drafter.cost(curve(1.1)), 1), [0]);
    assert_eq!(proposer.lock().unwrap().times, 0);
    // The second token costs a whole pass and the third nothing, so that both may pay; after two guesses a
    // third one could no longer make up for them.
    let (proposer, drafter) = asked(0.45, true);
    let mut cost = PassCost::default();
    for (tokens, seconds) in [(1, 1.0), (2, 2.0), (9, 2.0)] {
        cost.observe(Pass { tokens, whole: 0 }, seconds);
    }
    assert_eq!(lengths(&mut drafter.cost(cost), 1), [0]);
    assert_eq!(proposer.lock().unwrap().times, 2);
}

#[test]
fn a_combination_may_miss_texts_only_if_all_that_learn_may() {
    let grammar = compiled(LISTS);
    let counts = |learning| Box::new(CountProposer::new(Prior::new(&grammar), learning)) as Box<dyn Propose>;
    let both = |learning| BestOf::new(vec![counts(learning), Box::new(Lookup::default())]);
    assert!(both(Learning::PerText).may_miss() && both(Learning::Fixed).may_miss());
    assert!(!both(Learning::Online).may_miss() && !both(Learning::Online).is_shared());
    let shared = |learning| BestOf::new(vec![Box::new(Arc::new(Mutex::new(counts(learning))))]);
    assert!(shared(Learning::PerText).is_shared() && shared(Learning::PerText).may_miss());
    assert!(!shared(Learning::Online).may_miss());
}

#[test]
fn only_a_proposer_that_learns_wants_likely_tokens() {
    let grammar = compiled(LISTS);
    for learning in [Learning::Fixed, Learning::PerText, Learning::Online] {
        let counts = CountProposer::new(Prior::new(&grammar), learning);
        let made = Drafter::new(Box::new(BestOf::new(vec![Box::new(counts)])), DraftLength::Auto);
        assert_eq!([made.learns(), made.wants_likely()], [learning != Learning::Fixed; 2], "{learning:?}");
    }
}

#[test]
fn drafts_keep_to_their_threshold_and_length() {
    let draft = |acceptance: f64, length: DraftLength| {
        let mut tokens = Vec::new();
        let mut site = Site::new(None, &mut tokens, 0.0, NO_NOISE);
        Drafter::new(always(1, acceptance), length).draft(&mut site, 10).tokens.len()
    };
    let length = DraftLength::up_to(4, 0.5).unwrap();
    assert_eq!([0.6, 0.4, f64::NAN].map(|acceptance| draft(acceptance, length)), [4, 0, 0]);
    assert_eq!(DraftLength::up_to(0, 0.5), Err(DraftLengthError::Tokens(0)));
    assert_eq!(DraftLength::up_to(usize::MAX, 0.5), Err(DraftLengthError::Tokens(usize::MAX)));
    assert!(matches!(DraftLength::up_to(1, f64::NAN), Err(DraftLengthError::Threshold(_))));
    assert!(matches!(DraftLength::up_to(1, 1.5), Err(DraftLengthError::Threshold(_))));
}

#[test]
fn the_surest_proposer_is_taken_and_earlier_ones_preferred() {
    let mut tokens = Vec::new();
    let mut best = |acceptances: &[f64]| {
        let all = (1..).zip(acceptances).map(|(token, &acceptance)| always(token, acceptance));
        let guess = BestOf::new(all.collect()).guess(&mut Site::new(None, &mut tokens, 0.0, NO_NOISE));
        guess.map(|guess| guess.token.raw())
    };
    assert_eq!(best(&[]), None);
    assert_eq!(best(&[0.4, 0.7, 0.7]), Some(2));
    // An earlier proposer is trusted more.
    assert_eq!(best(&[0.4, 0.55, 0.7, 0.75]), Some(3));
    assert_eq!(best(&[0.98, 0.1, 1.0]), Some(1));
}

/// An expensive proposer is heard unless another is clearly surer, and not asked where one is sure.
#[test]
fn the_expensive_proposer_is_asked_last_and_trusted_most() {
    let mut tokens = Vec::new();
    let mut best = |cheap: f64, dear: f64| {
        let guess = Guess { token: TokenId::new(9), acceptance: dear };
        let asked = Arc::new(Mutex::new(Asked { guess, times: 0, may_miss: false }));
        let mut both = BestOf::new(vec![always(1, cheap)]).with_expensive(Box::new(Arc::clone(&asked)));
        let guess = both.guess(&mut Site::new(None, &mut tokens, 0.0, NO_NOISE)).unwrap();
        let times = asked.lock().unwrap().times;
        assert!(both.learns() && !both.may_miss() && both.is_shared());
        (guess.token.raw(), times)
    };
    assert_eq!(best(0.5, 0.4), (9, 1));
    assert_eq!(best(0.7, 0.4), (1, 1));
    assert_eq!(best(0.98, 1.0), (1, 0));
}

#[test]
fn illegal_guesses_end_drafts() {
    let grammar = compiled(LISTS);
    let constraint = grammar.constraint();
    let mut tokens = vec![TokenId::new(1)];
    for token in [0, 1, 700, u32::MAX] {
        let mut site = Site::new(Some(&constraint), &mut tokens, 0.0, NO_NOISE);
        assert!(!site.push(TokenId::new(token)));
        let mut drafter = Drafter::new(always(token, 1.0), DraftLength::up_to(9, 0.0).unwrap());
        assert!(drafter.draft(&mut site, 9).tokens.is_empty());
    }
    assert_eq!(tokens.len(), 1);
}

#[test]
fn a_site_takes_its_tokens_back_when_dropped() {
    let grammar = compiled(LISTS);
    let constraint = grammar.constraint();
    let mut tokens = vec![TokenId::new(5)];
    let mut site = Site::new(Some(&constraint), &mut tokens, 1.0, NO_NOISE);
    let before = site.context();
    // "[" is the nineteenth token.
    assert!(site.push(TokenId::new(19)) && site.drafted() == 1 && site.context() != before);
    drop(site);
    assert_eq!(tokens.len(), 1);
    assert_eq!(constraint.steps(), 0);
}

/// Coupled guesses (Gumbel-max with the model's own probabilities) are nearly always the draw; a guess of the
/// likeliest token is not.
#[test]
fn coupled_guesses_are_nearly_always_the_draw() {
    let grammar = compiled(r#"root ::= [a-h]"#);
    let mut prior = CountProposer::new(Prior::new(&grammar), Learning::Online);
    let constraint = grammar.constraint();
    let shares: Vec<(TokenId, f32)> =
        (1..9_u8).map(|n| (TokenId::new(n.into()), f32::from(n) / 36.0)).collect();
    let noises: Vec<f64> =
        (0..4000_u32).map(|n| f64::from(n.wrapping_mul(2_654_435_769)) / 4_294_967_296.0).collect();
    let gumbel = |position: usize, token: TokenId| {
        -(-((noises[(position * 17 + token.index() * 331) % 4000] + 1e-4) / 1.001).ln()).ln()
    };
    let mut right = 0;
    for position in 1..300 {
        let mut tokens = vec![TokenId::new(1); position];
        let drawn = shares
            .iter()
            .max_by(|a, b| {
                let score = |share: &(TokenId, f32)| f64::from(share.1).ln() + gumbel(position, share.0);
                score(a).total_cmp(&score(b))
            })
            .unwrap()
            .0;
        let mut site = Site::new(Some(&constraint), &mut tokens, 1.0, &gumbel);
        if position > 1 {
            right += usize::from(prior.guess(&mut site).unwrap().token == drawn);
        }
        prior.observe(&mut site, Seen::new(drawn, Some(&shares)));
    }
    assert!(right > 290, "{right}");
    assert!(prior.prior().summary().right > 290);
}

#[test]
fn lookup_guesses_an_allowed_repeat_of_the_prompt() {
    let grammar = compiled(LISTS);
    let constraint = grammar.constraint();
    // After "a[" came "b" in the prompt, which is not allowed at the start; "[" is.
    let mut tokens: Vec<TokenId> = [1, 19, 2, 4, 19, 4].map(TokenId::new).to_vec();
    let mut site = Site::new(Some(&constraint), &mut tokens, 0.0, NO_NOISE);
    let guess = Lookup::default().guess(&mut site).unwrap();
    assert_eq!(guess.token, TokenId::new(19));
    let mut tokens: Vec<TokenId> = [1, 2, 1].map(TokenId::new).to_vec();
    assert!(Lookup::default().guess(&mut Site::new(Some(&constraint), &mut tokens, 0.0, NO_NOISE)).is_none());
}

#[test]
fn a_learnt_prior_says_what_comes() {
    let grammar = compiled(LISTS);
    let prior = learnt(&grammar, 0..20);
    let mut proposer = CountProposer::new(prior.clone(), Learning::Fixed);
    assert!(!proposer.learns());
    let constraint = grammar.constraint();
    let mut tokens = vec![TokenId::new(1)];
    let mut site = Site::new(Some(&constraint), &mut tokens, 0.0, NO_NOISE);
    let guess = proposer.guess(&mut site).unwrap();
    assert!(site.push(guess.token));
    assert_eq!(proposer.prior(), &prior);
}

#[test]
fn a_text_is_learnt_until_it_ends() {
    let grammar = compiled(LISTS);
    let prior = Prior::new(&grammar);
    let mut proposer = CountProposer::new(prior.clone(), Learning::PerText);
    let constraint = grammar.constraint();
    let open = TokenId::new(19);
    let mut tokens = vec![TokenId::new(1)];
    let guess = |proposer: &mut CountProposer, tokens: &mut Vec<TokenId>| {
        proposer.guess(&mut Site::new(Some(&constraint), tokens, 0.0, NO_NOISE)).map(|guess| guess.token)
    };
    assert_eq!(guess(&mut proposer, &mut tokens), None);
    let likely = [(TokenId::new(20), 0.2), (open, 0.8)];
    proposer.observe(
        &mut Site::new(Some(&constraint), &mut tokens, 0.0, NO_NOISE),
        Seen::new(open, Some(&likely)),
    );
    assert_eq!(guess(&mut proposer, &mut tokens), Some(open));
    assert_eq!(proposer.prior(), &prior);
    assert_eq!(guess(&mut proposer.another(), &mut tokens), None);
    // The next text begins the same way; its lesson replaces the old one.
    let twice = TokenId::new(26);
    proposer.observe(
        &mut Site::new(Some(&constraint), &mut tokens, 0.0, NO_NOISE),
        Seen::new(twice, Some(&[(twice, 1.0)])),
    );
    assert_eq!(guess(&mut proposer, &mut tokens), Some(twice));
}

#[test]
fn a_text_with_unseen_tokens_is_still_the_same_text() {
    let grammar = compiled(LISTS);
    let mut proposer = CountProposer::new(Prior::new(&grammar), Learning::PerText);
    let constraint = grammar.constraint();
    let (open, twice) = (TokenId::new(19), TokenId::new(26));
    let mut observe = |tokens: &[u32], token: TokenId| {
        let mut tokens: Vec<TokenId> = tokens.iter().copied().map(TokenId::new).collect();
        let mut site = Site::new(Some(&constraint), &mut tokens, 0.0, NO_NOISE);
        proposer.observe(&mut site, Seen::new(token, Some(&[(token, 1.0)])));
        let guess = |proposer: &mut CountProposer, first: u32| {
            let mut tokens = vec![TokenId::new(first)];
            proposer
                .guess(&mut Site::new(Some(&constraint), &mut tokens, 0.0, NO_NOISE))
                .map(|guess| guess.token)
        };
        [1, 2].map(|first| guess(&mut proposer, first))
    };
    assert_eq!(observe(&[1], open)[0], Some(open));
    // The text goes on, two tokens later: its beginning is still known.
    assert_eq!(observe(&[1, 19, 5, 2], twice), [Some(open), Some(twice)]);
    // Another text of the same length: nothing of the first one is known.
    assert_ne!(observe(&[3, 19, 5, 2, 26, 2], twice)[0], Some(open));
}

#[test]
fn a_token_far_ahead_of_its_rivals_is_a_surer_guess() {
    let grammar = compiled(LISTS);
    let constraint = grammar.constraint();
    let acceptance = |likely: &[(u32, f32)]| {
        let mut proposer = CountProposer::new(Prior::new(&grammar), Learning::PerText);
        let likely: Vec<_> = likely.iter().map(|&(token, share)| (TokenId::new(token), share)).collect();
        let mut tokens = vec![TokenId::new(1)];
        let mut site = Site::new(Some(&constraint), &mut tokens, 0.0, NO_NOISE);
        proposer.observe(&mut site, Seen::new(likely[0].0, Some(&likely)));
        proposer.guess(&mut site).unwrap().acceptance
    };
    // "[" and "[[" may come, in either order; "]" may not, and is no rival however likely it was.
    let clear = acceptance(&[(19, 0.9), (26, 0.05)]);
    assert_eq!(acceptance(&[(19, 0.05), (26, 0.9)]), clear);
    assert_eq!(acceptance(&[(20, 0.5), (19, 0.36), (26, 0.02)]), clear);
    for close in [[(19, 0.5), (26, 0.45)], [(19, 0.45), (26, 0.5)]] {
        assert!(acceptance(&close) < clear, "{close:?}");
    }
}

/// Acceptance is the accepted share: the prior belief counts as eight guesses, and the last 256 count.
#[test]
fn acceptance_is_the_share_of_guesses_that_were_right() {
    let tokenizer = Tokenizer::from_tokenizer_json(BYTE_LEVEL).unwrap();
    let vocabulary = Vocabulary::from_tokenizer_json(BYTE_LEVEL).unwrap();
    let grammar = Grammar::parse(Syntax::Gbnf, r#"root ::= "truefalse""#, &Limits::default()).unwrap();
    let constraint = Compiler::new(vocabulary.clone()).compile(&grammar).unwrap().constraint();
    let lookup: Box<dyn Propose> = Box::new(Lookup::default());
    let forced: Box<dyn Propose> = Box::new(ForcedText::new(tokenizer, vocabulary));
    for (mut proposer, constraint) in [(lookup, None), (forced, Some(&constraint))] {
        let mut tokens = vec![TokenId::new(1); 20];
        let mut site = Site::new(constraint, &mut tokens, 0.0, NO_NOISE);
        let Guess { token, acceptance: first } = proposer.guess(&mut site).unwrap();
        let mut after = |right: usize| {
            (0..right).for_each(|_| proposer.observe(&mut site, Seen::new(token, None)));
            proposer.observe(&mut site, Seen::new(TokenId::new(2), None));
            proposer.guess(&mut site).unwrap().acceptance
        };
        let (early, late) = (after(3), after(10_000));
        assert!((early - (8.0 * first + 3.0) / 12.0).abs() < 1e-9, "{early} {proposer:?}");
        assert!((late - 256.0 / 257.0).abs() < 1e-9, "{late} {proposer:?}");
    }
}
