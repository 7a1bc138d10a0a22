//! Methods against each other, and against their descriptions.

use std::path::Path;

use super::*;
use crate::{
    Compiler, Grammar, Lookahead, Syntax, Vocabulary,
    experiment::{Definition, Ended, Header, Loaded, Others, Plan, Records, Row, Watch, read, run, run_with},
    ids::as_f64,
    model::ScriptedModel,
};

mod evidence;
mod naive;
mod templates;
mod thoughts;

const BYTE_LEVEL: &str = include_str!("../../../../tests/fixtures/byte_level.json");
const GRAMMAR: &str = r#"root ::= object
object ::= "{" ws (pair ("," ws pair)*)? "}" ws
pair ::= string ":" ws value
string ::= "\"" [a-zA-Z0-9 ]* "\"" ws
value ::= object | string | ("true" | "false" | "null") ws
ws ::= [ \n]*"#;

fn tokenizer() -> (Tokenizer, Vocabulary) {
    let tokenizer = Tokenizer::from_tokenizer_json(BYTE_LEVEL).unwrap();
    (tokenizer, Vocabulary::from_tokenizer_json(BYTE_LEVEL).unwrap())
}

fn shipped(name: &str) -> Option<&'static str> {
    (name == "small").then_some(GRAMMAR)
}

/// All rows of a definition, by a model that writes noise.
fn rows(definition: &str, folder: &Path) -> Vec<Row> {
    rows_of(Definition::parse(definition, "", Path::new(""), false, &shipped).unwrap(), folder)
}

fn rows_of(definition: Definition, folder: &Path) -> Vec<Row> {
    made(definition, folder, Others::default()).unwrap()
}

/// Makes all rows of a definition in which other engines may take part.
pub(super) fn made_with(
    definition: &str,
    folder: &Path,
    others: Others<'_>,
) -> Result<Vec<Row>, ExperimentError> {
    made(Definition::parse(definition, "", Path::new(""), false, &shipped).unwrap(), folder, others)
}

fn made(definition: Definition, folder: &Path, others: Others<'_>) -> Result<Vec<Row>, ExperimentError> {
    struct Silent;

    impl Watch for Silent {}

    let header = Header::new(&definition, None, Vec::new(), std::time::UNIX_EPOCH);
    let mut records = Records::open(folder, &header)?;
    let plan = Plan::new(definition, None);
    let ended = run_with(&plan, &mut records, &mut |_| Ok(loaded()), &mut Silent, others)?;
    assert_eq!(ended, Ended::Complete);
    drop(records);
    Ok(read(folder)?.1)
}

pub(super) fn loaded() -> Loaded<ScriptedModel> {
    let (tokenizer, vocabulary) = tokenizer();
    Loaded {
        model: ScriptedModel::new(vocabulary.size(), 512, 3),
        vocabulary,
        tokenizer,
        priors: None,
        template: None,
    }
}

const DEFINITION: &str = r#"
name = "methods"
grammars = ["small"]
prompts = ["A: ", "Another one"]
methods = [
  "unconstrained", "masks", "always", "opportunistic", "rejection", "online", "forced", "ours", "shipped",
  "naive", "paper",
  "paper+folded", "paper+ngrams", "paper+soft", "paper+gumbel", "paper+text", "paper+lookup",
  "paper+adaptive", "paper+rows", "draft_model", "draft_model-unmasked", "draft_model-joint",
]
draft_model = "the same"
temperatures = [0, 1]
seeds = [0, 1]
max_tokens = 24
warm_ups = 2
warm_up_prompts = ["Warm: "]
threshold = [0.05]
"#;

/// Methods with the same mask give the same tokens, whatever they draft and whenever they ask; and a second
/// run of the definition gives the same again.
#[test]
fn the_same_noise_gives_the_same_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let made = rows(DEFINITION, &folder.path().join("one"));
    let exact = |row: &&Row| row.run.method == "masks";
    let mut compared = 0;
    for row in made.iter().filter(exact) {
        let alike = |other: &&Row| {
            let (one, other) = (&other.run, &row.run);
            (one.prompt, one.seed, one.temperature.to_bits())
                == (other.prompt, other.seed, other.temperature.to_bits())
                && !["unconstrained", "naive"].contains(&&*one.method)
        };
        for other in made.iter().filter(alike) {
            assert_eq!(other.tokens, row.tokens, "{}", other.run.key());
            assert_eq!((other.finish, other.complete, &other.text), (row.finish, row.complete, &row.text));
            compared += 1;
        }
    }
    assert_eq!(compared, 2 * 2 * 2 * 20);
    assert!(made.iter().filter(|row| row.run.method != "unconstrained").all(|row| row.prefix));
    assert!(made.iter().any(|row| row.run.method == "unconstrained" && !row.prefix));
    let of = |method: &'static str| made.iter().filter(move |row| row.run.method == method);
    assert!(of("paper").map(|row| row.drafted).sum::<usize>() > 0);
    assert!(of("rejection").map(|row| row.redraws.unwrap()).sum::<usize>() > 0);
    assert!(of("always").zip(of("rejection")).all(|(one, other)| one.interventions == other.interventions));
    assert!(of("masks").all(|row| row.interventions.is_none() && row.drafted == 0));
    // The draft model is the model: it is always right, but without a mask where its choice is forbidden.
    let sums = |method: &'static str| {
        let sum = |count: fn(&Row) -> usize| of(method).map(count).sum::<usize>();
        (sum(|row| row.drafted), sum(|row| row.accepted), sum(|row| row.passes))
    };
    let (masked, unmasked) = (sums("draft_model"), sums("draft_model-unmasked"));
    assert!(masked.0 == masked.1 && unmasked.0 == unmasked.1 && masked.0 > unmasked.0 && unmasked.0 > 0);
    assert!(2 * masked.2 < sums("masks").2 && masked.2 < unmasked.2, "{masked:?} {unmasked:?}");
    assert!(sums("draft_model-joint").2 < sums("masks").2);
    let again = rows(DEFINITION, &folder.path().join("two"));
    let tokens =
        |rows: &[Row]| rows.iter().map(|row| (row.run.key(), row.tokens.clone())).collect::<Vec<_>>();
    assert_eq!(tokens(&again), tokens(&made));
}

/// Texts are cut again as algorithm 3 and the tokenizer cut them, and the cuts are as likely as the model
/// says.
#[test]
fn texts_are_retokenised_as_the_tokenizer_would() {
    let definition = "name = \"c\"\ngrammars = [\"small\"]\nprompts = [\"A: \"]\nmax_tokens = 12\n\
        retokenize = true\nseeds = { from = 0, count = 12 }\nmethods = [\"masks\", \"canonical\"]";
    let folder = tempfile::tempdir().unwrap();
    let made = rows(definition, folder.path());
    let Loaded { model, vocabulary, tokenizer, .. } = loaded();
    let mut decoder = Decoder::builder(model).vocabulary(vocabulary.clone()).build().unwrap();
    let prompt = tokenizer.encode("A: ", true).unwrap();
    let mut others = 0;
    for row in &made {
        let tokens: Vec<TokenId> = row.tokens.iter().map(|&token| TokenId::new(token)).collect();
        let cut = decoder.retokenize(&prompt, &vocabulary.concat(&tokens)).unwrap();
        let again: f64 =
            decoder.replay(&prompt, &cut, 0).unwrap().iter().map(|token| -token.logprobs.taken.model).sum();
        let near = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 1e-3;
        assert_eq!((row.preferred, row.preferred_tokens), (Some(cut == tokens), Some(cut.len())));
        assert!(near(row.preferred_nll, again), "{:?} {again}", row.preferred_nll);
        if row.canonical == Some(true) {
            assert!(near(row.canonical_nll, row.nll.unwrap()));
        } else {
            others += 1;
        }
    }
    assert!(others > 0 && made.iter().any(|row| row.canonical == Some(true)));
    assert!(made.iter().any(|row| row.preferred == Some(false)));
    let plain = rows(&definition.replace("retokenize = true\n", ""), &folder.path().join("plain"));
    assert!(plain.iter().all(|row| row.preferred.is_none() && row.canonical_nll.is_none()));
}

/// One particle writes the texts of masks; several write texts of which masks keep more.
#[test]
fn several_particles_write_texts_that_masks_keep_more_of() {
    let definition = "name = \"c\"\ngrammars = [\"small\"]\nprompts = [\"A: \"]\nmax_tokens = 24\n\
        seeds = { from = 0, count = 30 }\nmethods = [\"masks\", \"conditional-1\", \"conditional-6\"]";
    let folder = tempfile::tempdir().unwrap();
    let made = rows(definition, folder.path());
    let of = |method: &'static str| made.iter().filter(move |row| row.run.method == method);
    for (one, masks) in of("conditional-1").zip(of("masks")) {
        assert_eq!((&one.tokens, &one.text), (&masks.tokens, &masks.text));
    }
    assert_eq!(of("conditional-6").filter(|row| row.prefix).count(), 30);
    let complete = |method| of(method).filter(|row| row.complete).count();
    assert!(complete("conditional-6") >= complete("masks"));
    let kept = |method| of(method).filter_map(|row| row.log_kept).sum::<f64>() / 30.0;
    assert!(kept("conditional-6") > 1.0 + kept("masks"), "{} {}", kept("conditional-6"), kept("masks"));
}

/// Priors of several sizes are points of the grid, for methods that learn: more texts, more drafts; and the
/// overlap of counts and model is between 0 and 1.
#[test]
fn sizes_of_the_prior_are_points_of_the_grid() {
    let measured = DEFINITION.replace(r#"warm_up_prompts = ["Warm: "]"#, r#"warm_up_prompts = "measured""#);
    let definition = measured.replace("warm_ups = 2", "warm_ups = [1, 6]").replace("[0, 1]", "[1]");
    let folder = tempfile::tempdir().unwrap();
    let made = rows(&definition, folder.path());
    let of = |method: &'static str, texts: Option<usize>| {
        made.iter().filter(move |row| (&*row.run.method, row.run.warm_ups) == (method, texts))
    };
    for method in ["masks", "forced", "shipped", "naive"] {
        assert_eq!((of(method, None).count(), of(method, Some(1)).count()), (2, 0), "{method}");
    }
    for method in ["paper", "paper+gumbel", "ours"] {
        assert_eq!((of(method, Some(1)).count(), of(method, Some(6)).count()), (2, 2), "{method}");
        for (masks, other) in of("masks", None).zip(of(method, Some(6))) {
            assert_eq!((&masks.tokens, other.positions), (&other.tokens, Some(other.tokens.len())));
        }
        let overlap = |texts| of(method, Some(texts)).filter_map(|row| row.overlap).sum::<f64>();
        assert!(0.0 < overlap(6) && of(method, Some(6)).all(|row| row.overlap < row.positions.map(as_f64)));
        assert!(overlap(1) < overlap(6), "{method}: {} {}", overlap(1), overlap(6));
    }
    assert!(of("masks", None).all(|row| row.overlap.is_none() && row.guessed.is_none()));
    let mut keys: Vec<String> = made.iter().map(|row| row.run.key()).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), made.len());
}

/// The point where a run was stopped makes no difference to the tokens of the others.
#[test]
fn a_resumed_run_makes_the_same_rows() {
    struct For(usize);

    impl Watch for For {
        fn made(&mut self, _row: &Row) {
            self.0 = self.0.saturating_sub(1);
        }

        fn stops(&self) -> bool {
            self.0 == 0
        }
    }

    let folder = tempfile::tempdir().unwrap();
    let whole = rows(DEFINITION, &folder.path().join("whole"));
    let parts = folder.path().join("parts");
    let definition = Definition::parse(DEFINITION, "", Path::new(""), false, &shipped).unwrap();
    let header = Header::new(&definition, None, Vec::new(), std::time::UNIX_EPOCH);
    let plan = Plan::new(definition, None);
    let mut made = 0;
    loop {
        let mut records = Records::open(&parts, &header).unwrap();
        assert_eq!(records.len(), made);
        made = whole.len().min(made + 53);
        let ended = run(&plan, &mut records, &mut |_| Ok(loaded()), &mut For(53)).unwrap();
        if ended == Ended::Complete {
            break;
        }
    }
    let (_, rows) = read(&parts).unwrap();
    let tokens =
        |rows: &[Row]| rows.iter().map(|row| (row.run.key(), row.tokens.clone())).collect::<Vec<_>>();
    assert_eq!(tokens(&rows), tokens(&whole));
    let turns: Vec<usize> = rows.iter().map(|row| row.turn).collect();
    assert_eq!(turns, (0..whole.len()).collect::<Vec<_>>());
}

/// Kept probability and likelihood of texts, against sums over whole rows that are written down step by step.
#[test]
fn measures_are_sums_over_the_steps_of_a_text() {
    let folder = tempfile::tempdir().unwrap();
    let made = rows(&DEFINITION.replace("temperatures = [0, 1]", "temperatures = [0.7]"), folder.path());
    let (tokenizer, vocabulary) = tokenizer();
    let grammar = Grammar::parse(Syntax::Gbnf, GRAMMAR, &crate::Limits::default()).unwrap();
    let compiled = Compiler::new(vocabulary.clone()).compile(&grammar).unwrap();
    let possible = crate::decode::possible(&vocabulary);
    let mut ended = 0;
    for row in made.iter().filter(|row| row.run.method == "masks") {
        let prompt = tokenizer.encode(["A: ", "Another one"][row.run.prompt], true).unwrap();
        let mut model = loaded().model;
        let mut constraint = compiled.constraint();
        let (mut kept, mut nll) = (0.0, 0.0);
        let mut rows = model.forward(&prompt, crate::model::Rows::Last).unwrap();
        let tokens: Vec<TokenId> = row.tokens.iter().copied().map(TokenId::new).collect();
        let end = (row.finish == crate::experiment::End::Stop).then(|| vocabulary.end_of_text()[0]);
        ended += usize::from(end.is_some());
        for token in tokens.iter().copied().chain(end) {
            let logits = rows.last().unwrap();
            let weight = |token: TokenId, t: f64| (f64::from(logits[token.index()]) / t).exp();
            let mask = constraint.mask().unwrap();
            let sum = |set: &crate::TokenSet| set.iter().map(|token| weight(token, 0.7)).sum::<f64>();
            kept += (sum(mask) / sum(&possible)).ln();
            if Some(token) != end {
                let all: f64 =
                    (0..logits.len()).map(|id| weight(TokenId::from_index(id).unwrap(), 1.0)).sum();
                nll -= (weight(token, 1.0) / all).ln();
            }
            constraint.advance(token).unwrap();
            rows = model.forward(&[token], crate::model::Rows::Last).unwrap();
        }
        assert!((row.log_kept.unwrap() - kept).abs() < 1e-6, "{row:?} {kept}");
        assert!((row.nll.unwrap() - nll).abs() < 1e-6, "{row:?} {nll}");
        assert_eq!(row.well_formed, end.is_some());
    }
    assert!(ended > 0, "no text ended");
}

/// The paper's counts, as a table of tables: the token that came most often at a place, and its share.
#[test]
fn paper_counts_are_a_table() {
    use std::collections::BTreeMap;

    use crate::proposer::{CountProposer, Learning, Propose, Seen, Site};

    let (tokenizer, vocabulary) = tokenizer();
    let grammar = Grammar::parse(Syntax::Gbnf, GRAMMAR, &crate::Limits::default()).unwrap();
    let compiled = Compiler::new(vocabulary).terminals(Terminals::Written).compile(&grammar).unwrap();
    let counting = Refinements::default().counting();
    let mut proposer = CountProposer::new(Prior::new(&compiled), Learning::Online).counting(counting);
    assert!(!proposer.wants_likely());
    let mut table: BTreeMap<(u64, u64), BTreeMap<TokenId, f64>> = BTreeMap::new();
    let mut guessed = 0;
    for text in ["{\"a\": true, \"b\": null}", "{\"a\": true, \"c\": {\"d\": true}}", "{\"a\": \"a\"}"] {
        let mut constraint = compiled.constraint();
        let mut sequence = Vec::new();
        for token in tokenizer.encode(text, false).unwrap() {
            let noise = |_, token: TokenId| f64::from(token.raw());
            let mut site = Site::new(Some(&constraint), &mut sequence, 1.0, &noise);
            let counts = table.entry((site.context().alpha(), site.context().beta())).or_default();
            let total: f64 = counts.values().sum();
            let most = counts.values().copied().fold(0.0, f64::max);
            match proposer.guess(&mut site) {
                Some(guess) => {
                    guessed += 1;
                    assert!((guess.acceptance - most / total).abs() < 1e-6, "{guess:?} {counts:?}");
                    assert!((counts[&guess.token] - most).abs() < 1e-9, "{guess:?} {counts:?}");
                }
                None => assert!(counts.is_empty(), "{counts:?}"),
            }
            // What the model thought does not count.
            let likely = [(TokenId::new(1), 1.0)];
            let seen = if proposer.wants_likely() { Some(&likely[..]) } else { None };
            proposer.observe(&mut site, Seen::new(token, seen));
            *counts.entry(token).or_default() += 1.0;
            drop(site);
            constraint.advance(token).unwrap();
            sequence.push(token);
        }
    }
    assert!(guessed > 10, "{guessed}");
}

/// The mask is what asking for every token gives.
#[test]
fn online_masks_equal_the_compiled_masks() {
    let (_, vocabulary) = tokenizer();
    let grammar = Grammar::parse(Syntax::Gbnf, GRAMMAR, &crate::Limits::default()).unwrap();
    let possible = crate::decode::possible(&vocabulary);
    for lookahead in [Lookahead::Unbounded, Lookahead::Terminals(0)] {
        let compiler = Compiler::new(vocabulary.clone()).lookahead(lookahead);
        let mut constraint = compiler.compile(&grammar).unwrap().constraint();
        let mut seed = 5_usize;
        for _ in 0..40 {
            let asked = rejection::mask(&constraint.fork(), &possible).unwrap();
            assert_eq!(asked, *constraint.mask().unwrap());
            seed = seed.wrapping_mul(48_271) % 2_147_483_647;
            let texts: Vec<TokenId> =
                asked.iter().filter(|token| !vocabulary.is_end_of_text(*token)).collect();
            let Some(token) = texts.get(seed % texts.len().max(1)) else { return };
            constraint.advance(*token).unwrap();
        }
    }
}
