//! Promise 4, lossless speculation: whatever a proposer guesses, a speculative run has the tokens, the end
//! and the errors of the plain run; opportunistic masking changes nothing either.

use domino::{
    Constraint, Lookahead, TokenId,
    decode::{
        DecodeErrorKind, DecodeOptions, Decoder, DraftMask, DraftModel, Finish, Masking, Penalties, Sampling,
    },
    model::{Fault, ScriptedModel},
    proposer::{BestOf, DraftLength, Drafter, Guess, Pass, PassCost, Propose, Seen, Site},
};
use proptest::prelude::*;

use super::{
    generate::{Case, World, case, config},
    grammars::specials::with_specials,
};

const PROMPT: [TokenId; 2] = [TokenId::new(0), TokenId::new(1)];
const CONTEXT: usize = 40;

/// Results of a run that must not depend on drafts.
#[derive(Debug, Clone, PartialEq)]
struct Outcome {
    tokens: Vec<TokenId>,
    finish: Option<Finish>,
    error: Option<DecodeErrorKind>,
    complete: bool,
    interventions: usize,
}

/// A proposer of anything: the truth, other tokens, forbidden or missing ones, with any acceptance.
#[derive(Debug)]
struct Liar {
    truth: Vec<TokenId>,
    size: u32,
    choices: Vec<u16>,
    next: usize,
    /// True if every third guess is the truth.
    honest: bool,
}

impl Propose for Liar {
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        self.next += 1;
        let choice = *self.choices.get(self.next % self.choices.len().max(1))?;
        let truth = self.truth.get(site.tokens().len() - PROMPT.len()).copied();
        let any = TokenId::new(u32::from(choice) % (self.size + 2));
        let token = match choice % 8 {
            0 => TokenId::new(u32::MAX),
            1 => any,
            2 => (0..self.size).map(TokenId::new).find(|&token| site.allows(token))?,
            3 if !self.honest => any,
            _ => truth.unwrap_or(any),
        };
        let acceptance = [0.9, 0.2, f64::NAN, f64::INFINITY, -1.0, 1.0, 0.6][usize::from(choice / 8) % 7];
        Some(Guess { token, acceptance })
    }

    fn observe(&mut self, site: &mut Site<'_>, seen: Seen<'_>) {
        assert!(site.drafted() == 0 && site.allows(seen.token));
        let likely = seen.likely.expect("it was asked for");
        assert!(likely.iter().all(|&(token, share)| site.allows(token) && share > 0.0));
    }

    fn learns(&self) -> bool {
        self.honest
    }

    fn wants_likely(&self) -> bool {
        true
    }
}

fn model(world: &World, seed: u64) -> ScriptedModel {
    let model = ScriptedModel::new(world.vocabulary.size(), CONTEXT, seed);
    // Some rows cannot be used. A draft may see them where the plain run does not.
    match seed % 5 {
        0 => model.fault(6, Fault::Pass).fault(9, Fault::NotANumber),
        1 => model.fault(7, Fault::Impossible),
        _ => model,
    }
}

fn run(
    world: &World,
    constraint: Option<&Constraint>,
    options: &DecodeOptions,
    drafter: Option<Drafter>,
) -> (Outcome, domino::decode::DecodeStats) {
    let mut builder = Decoder::builder(model(world, options.seed))
        .vocabulary(world.vocabulary.clone())
        .options(options.clone());
    builder = constraint.into_iter().cloned().fold(builder, domino::decode::DecoderBuilder::constraint);
    let mut decoder =
        drafter.into_iter().fold(builder, domino::decode::DecoderBuilder::drafter).build().unwrap();
    let mut steps = decoder.steps(&PROMPT);
    let mut error = None;
    for step in steps.by_ref() {
        error = step.err().map(|error| error.kind().clone());
    }
    let outcome = Outcome {
        tokens: steps.tokens().to_vec(),
        finish: steps.finish(),
        error,
        complete: steps.is_complete(),
        interventions: steps.stats().interventions,
    };
    let stats = *steps.stats();
    (outcome, stats)
}

/// Ways of sampling.
fn samplings() -> impl Strategy<Value = Sampling> {
    let drawn =
        (prop::sample::select(vec![0.3, 1.0, 1.7]), 0..4_u8, 1..5_usize).prop_map(|(heat, cut, k)| {
            let sampling = Sampling::with_temperature(heat).unwrap();
            match cut {
                0 => sampling,
                1 => sampling.top_k(k).unwrap(),
                2 => sampling.top_p(0.8).unwrap(),
                _ => sampling.min_p(0.1).unwrap(),
            }
        });
    prop_oneof![1 => Just(Sampling::greedy()), 3 => drawn]
}

const MASKINGS: [Masking; 3] = [Masking::Ahead, Masking::Always, Masking::Opportunistic];

fn options() -> impl Strategy<Value = DecodeOptions> {
    (samplings(), any::<bool>(), 0..MASKINGS.len(), any::<u64>()).prop_map(
        |(sampling, penalised, masking, seed)| {
            let mut options = DecodeOptions::default();
            options.sampling = sampling;
            options.seed = seed;
            options.max_new_tokens = 12;
            if penalised {
                options.penalties = Penalties::none().repeat(1.5).unwrap().frequency(0.4).unwrap();
            }
            options.masking = MASKINGS[masking];
            options
        },
    )
}

fn lengths() -> impl Strategy<Value = DraftLength> {
    let fixed = (1..8_usize, 0.0..1.0_f64).prop_map(|(most, least)| DraftLength::up_to(most, least).unwrap());
    prop_oneof![Just(DraftLength::Auto), fixed]
}

/// A draft model: the model itself or another one, masked or not, alone or beside the liar.
#[derive(Debug, Clone, Copy)]
struct Second {
    itself: bool,
    masked: bool,
    alone: bool,
}

fn second() -> impl Strategy<Value = Option<Second>> {
    let drawn = any::<(bool, bool, bool)>();
    prop::option::of(drawn.prop_map(|(itself, masked, alone)| Second { itself, masked, alone }))
}

impl Second {
    /// Builds the proposer.
    fn with(self, liar: Liar, world: &World, seed: u64) -> Box<dyn Propose> {
        let model = model(world, if self.itself { seed } else { seed.wrapping_add(1) });
        let draft = DraftModel::new(model, &world.vocabulary, &world.vocabulary).unwrap();
        let draft = draft.mask(if self.masked { DraftMask::On } else { DraftMask::Off });
        match self.alone {
            true => Box::new(draft),
            false => Box::new(BestOf::new(vec![Box::new(liar)]).with_expensive(Box::new(draft))),
        }
    }
}

fn check(
    case: &Case,
    options: &DecodeOptions,
    length: DraftLength,
    free: bool,
    honest: bool,
    second: Option<Second>,
) {
    let world = case.build();
    let Some(compiled) = world.compile(Lookahead::Unbounded) else { return };
    let constraint = compiled.constraint();
    let constraint = if free { None } else { Some(&constraint) };
    let (plain, cost) = run(&world, constraint, options, None);
    for masking in MASKINGS {
        let mut other = options.clone();
        other.masking = masking;
        let (mut got, mut expected) = (run(&world, constraint, &other, None).0, plain.clone());
        if [masking, options.masking].contains(&Masking::Ahead) && constraint.is_some() {
            // It does not count them, and of a row without hope and a mask without tokens it sees the mask
            // first.
            (got.interventions, expected.interventions) = (0, 0);
            if got.error.is_some() && expected.error.is_some() {
                got.error.clone_from(&expected.error);
            }
        }
        assert_eq!(got, expected);
    }
    let size = u32::try_from(world.vocabulary.size()).unwrap();
    let (truth, choices) = (plain.tokens.clone(), case.choices.clone());
    let liar = Liar { truth, size, choices, next: 0, honest };
    // Drafts are as good as free, so that there are some; but clocks have their say.
    let mut cheap = PassCost::default();
    for pass in cheap.unmeasured(false) {
        cheap.observe(Pass { whole: 0, ..pass }, 1.0);
    }
    let proposer = match second {
        Some(second) => second.with(liar, &world, options.seed),
        None => Box::new(liar),
    };
    let drafter = Drafter::new(proposer, length).cost(cheap);
    let (speculative, stats) = run(&world, constraint, options, Some(drafter));
    assert_eq!(speculative, plain);
    assert_eq!((stats.draws, stats.tokens), (cost.draws, cost.tokens));
    assert!(stats.accepted <= stats.drafted);
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn drafts_do_not_change_the_text(
        case in case(24),
        options in options(),
        length in lengths(),
        free in prop::bool::weighted(0.1),
        honest: bool,
        second in second(),
    ) {
        check(&case, &options, length, free, honest, second);
    }
}

proptest! {
    #![proptest_config(config(200))]

    /// Drafts stop before special tokens, such as those around a call of a tool, until these are verified.
    #[test]
    fn drafts_across_special_tokens_do_not_change_the_text(
        case in case(24),
        options in options(),
        length in lengths(),
        honest: bool,
        second in second(),
    ) {
        check(&with_specials(&case), &options, length, false, honest, second);
    }
}

/// A proposer of the truth.
#[derive(Debug)]
struct Oracle(Vec<TokenId>);

impl Propose for Oracle {
    fn guess(&mut self, site: &mut Site<'_>) -> Option<Guess> {
        let token = *self.0.get(site.tokens().len() - PROMPT.len())?;
        Some(Guess { token, acceptance: 1.0 })
    }
}

/// The truth is accepted, so the test above is not one of empty drafts.
#[test]
fn drafts_that_are_right_are_accepted() {
    let vocabulary = domino::Vocabulary::builder()
        .token(TokenId::new(0), "a")
        .token(TokenId::new(1), "b")
        .end_of_text(TokenId::new(2))
        .build()
        .unwrap();
    let grammar = domino::Grammar::parse(domino::Syntax::Regex, "[ab]{20}", &domino::Limits::default());
    let compiled = domino::Compiler::new(vocabulary.clone()).compile(&grammar.unwrap()).unwrap();
    let decode = |drafter: Option<Drafter>| {
        let builder = Decoder::builder(ScriptedModel::new(3, 64, 5))
            .vocabulary(vocabulary.clone())
            .constraint(compiled.constraint())
            .sampling(Sampling::with_temperature(1.0).unwrap());
        let mut decoder =
            drafter.into_iter().fold(builder, domino::decode::DecoderBuilder::drafter).build().unwrap();
        decoder.generate(&PROMPT).unwrap()
    };
    let plain = decode(None);
    assert_eq!((plain.tokens.len(), plain.stats.passes), (20, 20));
    let length = DraftLength::up_to(4, 0.5).unwrap();
    let found = decode(Some(Drafter::new(Box::new(Oracle(plain.tokens.clone())), length)));
    assert_eq!(found.tokens, plain.tokens);
    // The prompt's pass gives one token, and four more give four and the one after, but for the last, after
    // which nothing can follow.
    assert_eq!((found.stats.passes, found.stats.drafted, found.stats.accepted), (5, 16, 16));
}
