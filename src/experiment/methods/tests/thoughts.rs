//! Texts behind thoughts: the same with and without drafts, and measured as answers.

use super::*;
use crate::{
    experiment::End,
    grammar::{Reasoning, Thought, ThoughtMarks},
};

/// Most tokens of thoughts here.
const THINK: usize = 12;

const THINKING: &str = r#"
name = "thoughts"
grammars = ["small"]
prompts = ["A: ", "Another one"]
methods = [
  "unconstrained", "masks", { name = "masks", think = 12 }, { name = "always", think = 12 },
  { name = "opportunistic", think = 12 }, { name = "forced", think = 12 }, { name = "ours", think = 12 },
  { name = "paper", think = 12 }, { name = "paper+gumbel", think = 12 }, { name = "naive", think = 12 },
  { name = "draft_model", think = 12 }, { name = "draft_model-unmasked", think = 12 },
  { name = "draft_model-joint", think = 12 }, { name = "masks", think = 9 },
]
draft_model = "the same"
temperatures = [0, 1]
seeds = [0, 1]
max_tokens = 64
warm_ups = 2
warm_up_prompts = ["Warm: "]
threshold = [0.05]
"#;

/// Drafts change no token of thought and answer; the answer is in the language, or begins a text of it.
#[test]
fn thoughts_come_first_and_drafts_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let made = rows(THINKING, folder.path());
    let of = |method: &'static str, think: Option<usize>| {
        made.iter().filter(move |row| (&*row.run.method, row.run.think) == (method, think))
    };
    let mut ended = 0;
    for row in made.iter().filter(|row| row.run.think.is_some()) {
        let (think, thought) = (row.run.think.unwrap(), row.thought_tokens.unwrap());
        // A character is ended first, by three tokens at most; the closing mark has up to eight, and two line
        // feeds may follow it.
        assert!((1..=think + 13).contains(&thought), "{row:?}");
        assert!(row.text.starts_with("<think>") && row.text[..row.answer_at.unwrap()].contains("</think>"));
        assert!(!row.answer().contains("</think>") && row.judged.as_deref() == Some(row.answer()));
        assert_eq!(row.answer_tokens() + thought, row.tokens.len());
        assert_eq!(row.well_formed, row.complete, "{row:?}");
        assert!(row.prefix && row.reproduced.is_none(), "{row:?}");
        ended += usize::from(row.finish == End::Stop && row.well_formed);
    }
    assert!(ended > 0, "no text ended");
    for method in ["always", "opportunistic", "forced", "ours", "paper", "paper+gumbel"] {
        assert_eq!(of(method, Some(THINK)).count(), 8, "{method}");
    }
    let alike = ["masks", "naive"];
    for masks in of("masks", Some(THINK)) {
        let same = |other: &&Row| {
            let (one, other) = (&masks.run, &other.run);
            (one.prompt, one.seed, one.temperature.to_bits(), one.think)
                == (other.prompt, other.seed, other.temperature.to_bits(), other.think)
                && !alike.contains(&&*other.method)
        };
        assert_eq!(made.iter().filter(same).count(), 9);
        for other in made.iter().filter(same) {
            assert_eq!((&other.tokens, &other.text), (&masks.tokens, &masks.text), "{}", other.run.key());
            assert_eq!((other.answer_at, other.finish), (masks.answer_at, masks.finish));
        }
    }
    for method in ["paper", "draft_model", "draft_model-unmasked"] {
        assert!(of(method, Some(THINK)).map(|row| row.drafted).sum::<usize>() > 0, "{method}");
    }
    for row in of("masks", None).chain(of("unconstrained", None)) {
        assert_eq!((row.thought_tokens, row.answer_at, &row.judged), (None, None, &None));
        assert_eq!((row.answer(), row.answer_tokens()), (&*row.text, row.tokens.len()));
    }
}

/// Likelihood and kept probability are those of the answer behind prompt and thought.
#[test]
fn answers_alone_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    let only = THINKING.replace("temperatures = [0, 1]", "temperatures = [0.7]");
    let made = rows(&only, folder.path());
    let (tokenizer, vocabulary) = tokenizer();
    let grammar = Grammar::parse(Syntax::Gbnf, GRAMMAR, &crate::Limits::default()).unwrap();
    let thought = Thought::new(&ThoughtMarks::default(), Reasoning::Required, []);
    let behind = grammar.after_thought(&thought, &crate::Limits::default()).unwrap();
    let compiled = Compiler::new(vocabulary.clone()).compile(&behind).unwrap();
    let possible = crate::decode::possible(&vocabulary);
    let mut compared = 0;
    for row in made.iter().filter(|row| (&*row.run.method, row.run.think) == ("masks", Some(THINK))) {
        let tokens: Vec<TokenId> = row.tokens.iter().copied().map(TokenId::new).collect();
        let (thought, answer) = tokens.split_at(row.thought_tokens.unwrap());
        // Only where the answer begins with a token.
        if vocabulary.concat(answer) != row.answer().as_bytes() {
            continue;
        }
        let mut prompt = tokenizer.encode(["A: ", "Another one"][row.run.prompt], true).unwrap();
        prompt.extend(thought);
        let mut model = loaded().model;
        let mut constraint = compiled.constraint().reasoning_tokens(Some(THINK));
        thought.iter().for_each(|&token| constraint.advance(token).unwrap());
        let mut logits = model.forward(&prompt, crate::model::Rows::Last).unwrap();
        let end = (row.finish == End::Stop).then(|| vocabulary.end_of_text()[0]);
        let (mut kept, mut nll) = (0.0, 0.0);
        for token in answer.iter().copied().chain(end) {
            let last = logits.last().unwrap();
            let weight = |token: TokenId, t: f64| (f64::from(last[token.index()]) / t).exp();
            let sum = |set: &crate::TokenSet| set.iter().map(|token| weight(token, 0.7)).sum::<f64>();
            kept += (sum(constraint.mask().unwrap()) / sum(&possible)).ln();
            if Some(token) != end {
                let all: f64 = (0..last.len()).map(|id| weight(TokenId::from_index(id).unwrap(), 1.0)).sum();
                nll -= (weight(token, 1.0) / all).ln();
            }
            constraint.advance(token).unwrap();
            logits = model.forward(&[token], crate::model::Rows::Last).unwrap();
        }
        assert!((row.nll.unwrap() - nll).abs() < 1e-6, "{row:?} {nll}");
        assert!((row.log_kept.unwrap() - kept).abs() < 1e-6, "{row:?} {kept}");
        assert!((row.perplexity().unwrap() - (nll / as_f64(answer.len())).exp()).abs() < 1e-6);
        compared += 1;
    }
    assert!(compared > 0);
}

/// A thought that takes all tokens has no answer, which is not well-formed even where the empty text is.
#[test]
fn a_text_without_an_end_of_its_thought_has_no_answer() {
    let empty = |_: &str| Some("root ::= [a-z]*");
    let text = "name = \"t\"\ngrammars = [\"small\"]\nprompts = [\"A: \"]\nmax_tokens = 8\n\
        seeds = { from = 0, count = 4 }\nmethods = [{ name = \"masks\", think = 7 }]";
    let definition = Definition::parse(text, "", Path::new(""), false, &empty).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let made = rows_of(definition, folder.path());
    assert!(made.iter().any(|row| row.answer_at == Some(row.text.len())));
    for row in made.iter().filter(|row| !row.text.contains("</think>")) {
        assert_eq!((row.answer(), row.answer_tokens(), row.finish), ("", 0, End::Length));
        assert!(!row.well_formed && !row.complete && row.log_kept.is_none(), "{row:?}");
        assert_eq!((row.perplexity(), row.run.k), (None, Some(K::Infinite)));
    }
}
