//! Measures of a text after it was generated, by one more pass over prompt and text with whole rows and a
//! replay of the constraint: so the measures disturb no timed run.
//!
//! Judging finds the part of a text that counts, and whether it is in the language. It is the same for all
//! methods, so that a text without a constraint is not wrong for what comes after a whole answer.
//!
//! The acceptance of guesses by counts is compared with its upper bound. Two draws, one from the counts'
//! distribution q and one from the model's p under its mask, can be made so that they agree with probability
//! `sum of min(p, q)` = 1 - TV, and no more often: maximal coupling, which speculative sampling by rejection
//! reaches. Guesses here share the noise of the draw instead (Gumbel coupling), which needs to know neither
//! distribution when it verifies, and agree a little less often: at least (1 - TV) / (1 + TV).

use std::ops::Range;

use super::methods::{MethodError, Outcome};
use crate::decode::{
    DecodeError, Decoder, Finish, Sampler, StopStrings, likely, log_kept, log_sum, possible,
};
use crate::grammar::{Thought, ThoughtPlace};
use crate::model::{Model, Rows};
use crate::proposer::{CountProposer, ForcedText, Propose, Seen, Site};
use crate::vocab::{TokenSet, Tokenizer, Vocabulary};
use crate::{CompiledGrammar, ids::TokenId};
use crate::{Constraint, Patience, ThoughtWatch};

/// The measures of one text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Measures {
    /// Log of the probability that the masks kept, summed over steps.
    pub(super) log_kept: Option<f64>,
    /// Negative log-likelihood under the model.
    pub(super) nll: f64,
    /// Agreement of the counts that drafted it with the model.
    pub(super) coupling: Option<Coupling>,
    /// Tokens that the tokenizer makes of the text.
    pub(super) canonical: Option<Vec<TokenId>>,
    pub(super) forced_tokens: Option<usize>,
    pub(super) forced_bytes: Option<usize>,
    /// The part of the text that counts.
    pub(super) judged: Judged,
    pub(super) prefix: bool,
}

/// The inputs of measuring.
pub(super) struct Meter<'a> {
    pub(super) vocabulary: &'a Vocabulary,
    pub(super) tokenizer: &'a Tokenizer,
    /// All tokens that can be generated.
    pub(super) possible: TokenSet,
    /// The grammar with unbounded lookahead.
    pub(super) exact: &'a CompiledGrammar,
    pub(super) judging: Judging,
    /// Number of the first token's bytes that are before the text, as those of a thought.
    before: usize,
}

impl<'a> Meter<'a> {
    pub(super) fn new(tokenizer: &'a Tokenizer, exact: &'a CompiledGrammar, judging: Judging) -> Self {
        let vocabulary = exact.vocabulary();
        Self { vocabulary, tokenizer, possible: possible(vocabulary), exact, judging, before: 0 }
    }

    /// Sets how many of the first token's bytes are before the text.
    pub(super) fn before(self, before: usize) -> Self {
        Self { before, ..self }
    }

    /// Measures a text that follows `prompt`, in which is also the thought before it, if there is one.
    /// `constraint` is the one it was made under, at the beginning; `coupled` holds the counts that drafted
    /// it.
    pub(super) fn measure<M: Model>(
        &self,
        model: &mut M,
        prompt: &[TokenId],
        outcome: &Outcome,
        temperature: f64,
        constraint: Option<Constraint>,
        mut coupled: Option<Coupled>,
    ) -> Result<Measures, MethodError> {
        let constrained = constraint.is_some();
        let mut exact = self.exact.constraint().patient(Patience::whole());
        let taken = exact.advance_bytes(&outcome.text).map_err(DecodeError::from)?;
        let prefix = taken == outcome.text.len();
        // Tokens that were inserted were not drawn under a mask, and another engine's own constraint may mean
        // another language by the same grammar.
        let weigh = temperature > 0.0 && outcome.inserted.is_none() && prefix;
        let constraint = constraint.filter(|_| weigh).map(|constraint| constraint.patient(Patience::whole()));
        let weighed = constraint.is_some();
        let text = (&outcome.tokens[..], outcome.finish == Finish::Stop);
        let (nll, log_kept) =
            self.likelihood(model, prompt, text, temperature, (constraint, coupled.as_mut()))?;
        let start = self.exact.constraint();
        Ok(Measures {
            log_kept,
            nll,
            coupling: coupled.filter(|_| weighed).map(|coupled| coupled.found),
            canonical: self.tokenizer.alone(self.vocabulary, &outcome.text).filter(|_| self.before == 0),
            forced_tokens: constrained.then(|| self.forced_tokens(&outcome.tokens)),
            forced_bytes: if constrained { ForcedText::count(&start, &outcome.text) } else { None },
            judged: self.judging.judge(&outcome.text, self.exact)?,
            prefix,
        })
    }

    /// Returns the negative log-likelihood of tokens behind a prompt.
    pub(super) fn nll<M: Model>(
        &self,
        model: &mut M,
        prompt: &[TokenId],
        tokens: &[TokenId],
    ) -> Result<f64, MethodError> {
        let (nll, _) = self.likelihood(model, prompt, (tokens, false), 1.0, (None, None))?;
        Ok(nll)
    }

    /// Returns the negative log-likelihood of the tokens of a text, and the log of the probability that the
    /// masks kept, that of its end included if it ended.
    fn likelihood<M: Model>(
        &self,
        model: &mut M,
        prompt: &[TokenId],
        (tokens, ends): (&[TokenId], bool),
        temperature: f64,
        (mut constraint, mut coupled): (Option<Constraint>, Option<&mut Coupled>),
    ) -> Result<(f64, Option<f64>), MethodError> {
        /// Number of rows held at once.
        const ROWS: usize = 32;
        let constrained = constraint.is_some();
        let (mut nll, mut kept) = (0.0, 0.0);
        // Row i is about token i; the last one about what ends the text.
        let wanted = tokens.len() + usize::from(ends && constrained);
        let sequence = [prompt, tokens].concat();
        model.truncate(0).map_err(DecodeError::model)?;
        if prompt.len() > 1 {
            model.forward(&prompt[..prompt.len() - 1], Rows::Last).map_err(DecodeError::model)?;
        }
        let mut next = 0;
        while next < wanted {
            let rows = (wanted - next).min(ROWS);
            let from = prompt.len() - 1 + next;
            let pass = &sequence[from..from + rows];
            let logits = model.forward(pass, Rows::All).map_err(DecodeError::model)?;
            for index in 0..rows {
                let row = logits.row(index).unwrap_or_default();
                let token = tokens.get(next + index);
                if let Some(token) = token {
                    nll -= f64::from(row.get(token.index()).copied().unwrap_or(f32::NEG_INFINITY))
                        - log_sum(row.iter().copied(), 1.0);
                }
                if let Some(constraint) = &mut constraint {
                    let mask = constraint.mask().map_err(DecodeError::from)?;
                    kept += log_kept(row, mask, &self.possible, temperature);
                    if let Some(&token) = token {
                        if let Some(coupled) = &mut coupled {
                            coupled.see(row, constraint, token)?;
                        }
                        constraint.advance(token).map_err(DecodeError::from)?;
                    }
                }
            }
            next += rows;
        }
        Ok((nll, constrained.then_some(kept)))
    }

    /// Counts the tokens whose whole text was forced: at each of their bytes no other could follow.
    fn forced_tokens(&self, tokens: &[TokenId]) -> usize {
        let mut constraint = self.exact.constraint().patient(Patience::whole());
        let (mut forced, mut before) = (0, self.before);
        for &token in tokens {
            let bytes = self.vocabulary.bytes(token).unwrap_or_default();
            let bytes = bytes.get(std::mem::take(&mut before)..).unwrap_or_default();
            let mut whole = !bytes.is_empty();
            for &byte in bytes {
                whole = whole
                    && !constraint.is_complete()
                    && constraint.next_bytes().is_ok_and(|next| next == [byte]);
                if constraint.advance_bytes(&[byte]) != Ok(1) {
                    return forced;
                }
            }
            forced += usize::from(whole);
        }
        forced
    }
}

/// The part of a text behind its thought, which alone is measured.
#[derive(Debug)]
pub(super) struct ThoughtAnswer {
    /// The prompt with the tokens of the thought, its marks and the line feeds behind them.
    pub(super) prompt: Vec<TokenId>,
    /// The answer, with the cost of the whole text.
    pub(super) outcome: Outcome,
    /// Number of the first token's bytes that are the thought's.
    pub(super) before: usize,
    /// Number of tokens before the answer.
    pub(super) thought_tokens: usize,
    /// Byte of the text at which the answer begins.
    pub(super) at: usize,
    /// Has the thought ended? Otherwise there is no answer, not even an empty one.
    pub(super) begun: bool,
}

impl ThoughtAnswer {
    /// Finds the answer behind the thought of a text. `grammar` is that of thought and answer. Linear.
    pub(super) fn new(
        thought: &Thought,
        grammar: &CompiledGrammar,
        prompt: &[TokenId],
        outcome: &Outcome,
    ) -> Self {
        let mut watch = ThoughtWatch::new(thought.clone(), grammar.vocabulary().clone());
        outcome.tokens.iter().for_each(|&token| watch.push(token, grammar.text_of(token)));
        let begun = watch.place() == ThoughtPlace::Behind;
        let text = if begun { watch.split(&outcome.text, true).1 } else { &[] };
        let at = outcome.text.len() - text.len();
        let (mut thought_tokens, mut end) = (0, 0);
        for token in &outcome.tokens {
            let next = end + grammar.text_of(*token).len();
            if next > at {
                break;
            }
            (thought_tokens, end) = (thought_tokens + 1, next);
        }
        let (before, behind) = outcome.tokens.split_at(thought_tokens);
        let tokens = behind.to_vec();
        Self {
            prompt: [prompt, before].concat(),
            before: if tokens.is_empty() { 0 } else { at - end },
            thought_tokens,
            at,
            begun,
            outcome: Outcome { tokens, text: text.to_vec(), ..outcome.clone() },
        }
    }
}

/// A text cut into tokens in other ways: by the tokenizer, and as the model would choose them.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    pub(super) canonical_nll: Option<f64>,
    pub(super) preferred: Option<bool>,
    pub(super) preferred_tokens: Option<usize>,
    pub(super) preferred_nll: Option<f64>,
}

impl Cuts {
    /// Cuts an outcome's text again and measures both cuts.
    pub(super) fn new<M: Model>(
        decoder: &mut Decoder<M>,
        meter: &Meter<'_>,
        prompt: &[TokenId],
        outcome: &Outcome,
        canonical: Option<&[TokenId]>,
    ) -> Result<Self, MethodError> {
        let tokens = decoder.retokenize(prompt, &outcome.text)?;
        let model = decoder.model_mut();
        let canonical_nll = canonical.map(|tokens| meter.nll(model, prompt, tokens)).transpose()?;
        Ok(Self {
            canonical_nll,
            preferred: Some(tokens == outcome.tokens),
            preferred_tokens: Some(tokens.len()),
            preferred_nll: Some(meter.nll(model, prompt, &tokens)?),
        })
    }
}

/// Ways to find the part that counts.
#[derive(Debug, Clone, Default)]
pub(super) struct Judging {
    /// A text is cut before the first of these.
    pub(super) stop: StopStrings,
    /// Is only the longest beginning that is in the language judged?
    pub(super) first_value: bool,
}

/// A text that was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Judged {
    /// The bytes that count.
    pub(super) part: Range<usize>,
    /// Are they in the language?
    pub(super) well_formed: bool,
    /// Was a stop string found?
    pub(super) stopped: bool,
}

impl Judging {
    /// Is a part of the text judged, not all of it?
    pub(super) fn is_partial(&self) -> bool {
        self.first_value || !self.stop.is_empty()
    }

    /// Judges a text by its grammar. With `first_value` by its longest beginning in the language, with or
    /// without the white space in front: of numbers by `12` and not by `1`.
    pub(super) fn judge(&self, text: &[u8], exact: &CompiledGrammar) -> Result<Judged, DecodeError> {
        let cut = self.stop.find(text);
        let (end, stopped) = (cut.unwrap_or(text.len()), cut.is_some());
        let start = || exact.constraint().patient(Patience::whole());
        if !self.first_value {
            let mut whole = start();
            let well_formed = whole.advance_bytes(&text[..end])? == end && whole.is_complete();
            return Ok(Judged { part: 0..end, well_formed, stopped });
        }
        let blank = text[..end].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let mut found = longest(start(), &text[..end])?.map(|length| 0..length);
        if blank > 0 && found.as_ref().is_none_or(|part| part.end <= blank) {
            let behind = longest(start(), &text[blank..end])?.map(|length| blank..blank + length);
            found = behind.filter(|part| !part.is_empty()).or(found);
        }
        let well_formed = found.is_some();
        Ok(Judged { part: found.unwrap_or(blank..end), well_formed, stopped })
    }
}

/// Returns the length of the longest prefix in the language.
fn longest(mut constraint: Constraint, text: &[u8]) -> Result<Option<usize>, DecodeError> {
    let mut found = constraint.is_complete().then_some(0);
    for (at, byte) in text.iter().enumerate() {
        if constraint.advance_bytes(&[*byte])? == 0 {
            break;
        }
        if constraint.is_complete() {
            found = Some(at + 1);
        }
    }
    Ok(found)
}

/// The result for a text.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Coupling {
    /// Number of tokens that were looked at.
    pub(super) positions: usize,
    /// Sum of 1 - TV over them.
    pub(super) overlap: f64,
    /// Number of guesses that were the token that came.
    pub(super) guessed: usize,
}

/// Follows a text with the counts that drafted it.
#[derive(Debug)]
pub(super) struct Coupled {
    counts: CountProposer,
    sampler: Sampler,
    /// Prompt and text so far.
    tokens: Vec<TokenId>,
    pub(super) found: Coupling,
}

impl Coupled {
    /// Follows a text behind `prompt` that `sampler` drew. `counts` are those from before the text.
    pub(super) fn new(counts: CountProposer, sampler: Sampler, prompt: &[TokenId]) -> Self {
        Self { counts, sampler, tokens: prompt.to_vec(), found: Coupling::default() }
    }

    /// Compares at the place where `token` came from `row`, under `constraint`. One pass over the mask.
    fn see(&mut self, row: &[f32], constraint: &mut Constraint, token: TokenId) -> Result<(), DecodeError> {
        let temperature = self.sampler.sampling().temperature();
        let mask = constraint.mask()?.clone();
        let noise = |position, token| self.sampler.noise(position, token);
        let mut site = Site::new(Some(constraint), &mut self.tokens, temperature, &noise);
        // A token that ends a thought and begins the answer: counts say nothing there.
        if site.is_thinking() {
            drop(site);
            self.tokens.push(token);
            return Ok(());
        }
        let guess = self.counts.guess(&mut site);
        let shares = tempered(self.counts.shares(&mut site), temperature);
        let logit = |token: TokenId| row.get(token.index()).copied().unwrap_or(f32::NEG_INFINITY);
        let logits: Vec<f32> = mask.iter().map(logit).collect();
        let all = log_sum(logits.into_iter(), temperature);
        let model = |token: TokenId| (f64::from(logit(token)) / temperature - all).exp();
        self.found.positions += 1;
        self.found.overlap += shares.iter().map(|&(token, share)| share.min(model(token))).sum::<f64>();
        self.found.guessed += usize::from(guess.is_some_and(|guess| guess.token == token));
        if self.counts.learns() {
            let thought = self.counts.wants_likely().then(|| likely(row, &mask));
            self.counts.observe(&mut site, Seen::new(token, thought.as_deref()));
        }
        drop(site);
        self.tokens.push(token);
        Ok(())
    }
}

/// Applies a temperature to probabilities at temperature 1.
fn tempered(mut shares: Vec<(TokenId, f64)>, temperature: f64) -> Vec<(TokenId, f64)> {
    let largest = shares.iter().map(|(_, share)| *share).fold(0.0, f64::max);
    shares.iter_mut().for_each(|(_, share)| *share = (*share / largest).powf(1.0 / temperature));
    let sum: f64 = shares.iter().map(|(_, share)| *share).sum();
    shares.iter_mut().for_each(|(_, share)| *share /= sum);
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Compiler, Grammar, Limits, Syntax, Vocabulary};

    const OBJECT: &str = "root ::= \"{\" ws (\"a\" ws)* \"}\" ws\nws ::= [ \\n]*";

    fn grammar(text: &str) -> CompiledGrammar {
        let vocabulary = include_str!("../../tests/fixtures/byte_level.json");
        let vocabulary = Vocabulary::from_tokenizer_json(vocabulary).unwrap();
        let grammar = Grammar::parse(Syntax::Gbnf, text, &Limits::default()).unwrap();
        Compiler::new(vocabulary).compile(&grammar).unwrap()
    }

    fn judged(grammar: &CompiledGrammar, stop: &[&str], first_value: bool, text: &str) -> (String, bool) {
        let judging = Judging { stop: StopStrings::new(stop.iter().copied()).unwrap(), first_value };
        let Judged { part, well_formed, .. } = judging.judge(text.as_bytes(), grammar).unwrap();
        (text[part].to_owned(), well_formed)
    }

    #[test]
    fn the_longest_complete_beginning_is_judged() {
        let object = grammar(OBJECT);
        for (text, part, well_formed) in [
            ("{a}", "{a}", true),
            (" {a}", "{a}", true),
            ("\n\t {a}Q: more", "{a}", true),
            ("{a}\n\nQ: {b}", "{a}\n\n", true),
            ("{a} {aa}", "{a} ", true),
            ("{a", "{a", false),
            (" {b}", "{b}", false),
            ("", "", false),
            ("so: {a}", "so: {a}", false),
        ] {
            assert_eq!(judged(&object, &[], true, text), (part.to_owned(), well_formed), "{text:?}");
        }
        // Of numbers the whole one, and white space where the language has it.
        let number = grammar("root ::= [0-9]+");
        assert_eq!(judged(&number, &[], true, " 123 and"), ("123".to_owned(), true));
        let blank = grammar("root ::= \" \" [a-z]+");
        assert_eq!(judged(&blank, &[], true, " word."), (" word".to_owned(), true));
        let maybe = grammar("root ::= [a-z]*");
        assert_eq!(judged(&maybe, &[], true, " word."), ("word".to_owned(), true));
        assert_eq!(judged(&maybe, &[], true, " 7"), (String::new(), true));
    }

    #[test]
    fn stop_strings_cut_the_judged_part() {
        let object = grammar(OBJECT);
        for (stop, text, part, well_formed) in [
            (&["Q:"][..], "{a}\nQ: and", "{a}\n", true),
            (&["Q:"], "{a", "{a", false),
            (&["\n\n", "Q"], "{a}\n\nQ", "{a}", true),
            (&["}"], "{a}", "{a", false),
            (&[], "{a}x", "{a}x", false),
        ] {
            assert_eq!(judged(&object, stop, false, text), (part.to_owned(), well_formed), "{text:?}");
        }
        assert_eq!(judged(&object, &["x"], true, " {a} x"), ("{a} ".to_owned(), true));
        // What is behind the stop string does not count, however good it is.
        assert_eq!(judged(&object, &["Q"], true, "no Q{a}"), ("no ".to_owned(), false));
    }

    /// The judged part is in the language if any prefix is, by trying all of them.
    #[test]
    fn the_judged_part_is_that_of_trying_all_beginnings() {
        let object = grammar(OBJECT);
        let letters = ["{", "}", "a", " ", "\n", "Q"];
        let mut texts = vec![String::new()];
        for length in 0..5 {
            let from = texts.iter().filter(|text| text.len() == length).cloned().collect::<Vec<_>>();
            texts.extend(from.iter().flat_map(|text| letters.map(|letter| format!("{text}{letter}"))));
        }
        for text in &texts {
            let inner = text.trim_start();
            let is_in = |part: &str| judged(&object, &[], false, part).1;
            let any = (0..=inner.len()).rev().find(|end| is_in(&inner[..*end]));
            let found = judged(&object, &[], true, text);
            assert_eq!(found.1, any.is_some(), "{text:?}");
            assert_eq!(found.0, any.map_or(inner, |end| &inner[..end]), "{text:?}");
        }
    }
}

#[cfg(test)]
mod coupling_tests {
    use super::*;
    use crate::{
        Compiler, Grammar, Limits, Syntax, Vocabulary,
        decode::Sampling,
        proposer::{Counting, Learning, Prior},
    };

    const LETTERS: [u32; 4] = [97, 98, 99, 100];

    fn token(id: u32) -> TokenId {
        TokenId::new(id)
    }

    /// Counts of letters that came so often before, at the only place there is.
    fn counts(start: &Constraint, prior: Prior, came: [usize; 4]) -> CountProposer {
        let counting = Counting { tokens_before: false, soft: false, coupled: true };
        let mut counts = CountProposer::new(prior, Learning::Online).counting(counting);
        for (letter, times) in LETTERS.into_iter().zip(came) {
            for _ in 0..times {
                let mut tokens = vec![token(120)];
                let mut site = Site::new(Some(start), &mut tokens, 1.0, &|_, _| 0.0);
                counts.observe(&mut site, Seen::new(token(letter), None));
            }
        }
        let frozen = counts.prior().clone();
        CountProposer::new(frozen, Learning::Fixed).counting(counting)
    }

    /// Tests one place with known distributions: the overlap is the sum of the lesser probabilities, draws
    /// with the same noise agree between the lower bound and it, and draws with other noise less often.
    #[test]
    fn gumbel_coupling_is_close_to_maximal() {
        let vocabulary = Vocabulary::builder().all_bytes().end_of_text(token(256)).build().unwrap();
        let grammar = Grammar::parse(Syntax::Gbnf, "root ::= [a-d]+ \"!\"", &Limits::default()).unwrap();
        let compiled = Compiler::new(vocabulary).compile(&grammar).unwrap();
        for (temperature, logits) in [(1.0, [0.0_f32, 1.0, -1.0, 0.5]), (0.5, [0.7, 0.0, 0.2, -2.0])] {
            let start = compiled.constraint();
            let counts = counts(&start, Prior::new(&compiled), [8, 4, 2, 2]);
            let mut row = [20.0_f32; 257];
            LETTERS.iter().zip(logits).for_each(|(id, logit)| row[token(*id).index()] = logit);
            let shares = |weights: [f64; 4]| {
                let powered = weights.map(|weight| weight.powf(1.0 / temperature));
                powered.map(|weight| weight / powered.iter().sum::<f64>())
            };
            let p = shares(logits.map(|logit| f64::from(logit).exp()));
            let q = shares([8.0, 4.0, 2.0, 2.0]);
            let overlap: f64 = p.iter().zip(q).map(|(p, q)| p.min(q)).sum();
            let (mut agreed, mut apart) = (0.0, 0.0);
            let draws = 4000;
            for seed in 0..draws {
                let sampling = Sampling::with_temperature(temperature).unwrap();
                let sampler = Sampler::new(sampling, seed);
                let mut constraint = start.fork();
                let drawn = |sampler: &Sampler| {
                    let mask = start.clone().mask().unwrap().clone();
                    sampler.draw(&row, &mask, 1).unwrap()
                };
                let mut see = |token| {
                    let mut coupled = Coupled::new(counts.another(), sampler.clone(), &[TokenId::new(120)]);
                    coupled.see(&row, &mut constraint, token).unwrap();
                    assert_eq!(coupled.found.positions, 1);
                    assert!((coupled.found.overlap - overlap).abs() < 1e-6, "{:?} {overlap}", coupled.found);
                    f64::from(u32::try_from(coupled.found.guessed).unwrap()) / 4000.0
                };
                agreed += see(drawn(&sampler));
                apart += see(drawn(&Sampler::new(sampling, seed + draws)));
            }
            let least = overlap / (2.0 - overlap);
            assert!(agreed < overlap + 0.03 && agreed > least - 0.03, "{agreed} {overlap} {least}");
            assert!(apart < agreed - 0.1, "{apart} {agreed}");
        }
    }

    #[test]
    fn tempering_no_counts_gives_no_distribution() {
        assert!(tempered(Vec::new(), 1.0).is_empty());
    }
}
