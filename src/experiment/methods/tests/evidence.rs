//! Warm-ups that see no measured prompt, and texts that are judged alike.

use std::sync::{Arc, Mutex};

use delegate::delegate_model;

use super::*;
use crate::{
    experiment::End,
    model::{Logits, Rows, ScriptedError},
};

#[path = "../../../../tests/support/delegate.rs"]
mod delegate;

/// A model that records its prompts.
struct Noting {
    model: ScriptedModel,
    prompts: Arc<Mutex<Vec<Vec<TokenId>>>>,
}

impl Model for Noting {
    type Error = ScriptedError;

    delegate_model!(model);

    fn forward(&mut self, tokens: &[TokenId], rows: Rows<'_>) -> Result<Logits, ScriptedError> {
        if self.model.position() == 0 {
            self.prompts.lock().unwrap().push(tokens.to_vec());
        }
        self.model.forward(tokens, rows)
    }
}

/// Returns the rows of a definition, and the prompts that a model got before the first row.
fn noted(rest: &str) -> (Vec<Row>, Vec<String>) {
    struct First(Arc<Mutex<Vec<Vec<TokenId>>>>, Option<usize>);

    impl Watch for First {
        fn made(&mut self, _row: &Row) {
            let given = self.0.lock().unwrap().len();
            self.1.get_or_insert(given);
        }
    }

    let text = format!(
        "name = \"w\"\ngrammars = [\"small\"]\nmethods = [\"paper\", \"masks\"]\nmax_tokens = 8\n\
         prompts = [\"A: \", \"B: \", \"C: \"]\n{rest}"
    );
    let folder = tempfile::tempdir().unwrap();
    let definition = Definition::parse(&text, "", Path::new(""), false, &shipped).unwrap();
    let header = Header::new(&definition, None, Vec::new(), std::time::UNIX_EPOCH);
    let mut records = Records::open(folder.path(), &header).unwrap();
    let prompts = Arc::default();
    let mut watch = First(Arc::clone(&prompts), None);
    let mut load = |_| {
        let Loaded { model, vocabulary, tokenizer, .. } = loaded();
        let model = Noting { model, prompts: Arc::clone(&prompts) };
        Ok(Loaded { model, vocabulary, tokenizer, priors: None, template: None })
    };
    run(&Plan::new(definition, None), &mut records, &mut load, &mut watch).unwrap();
    drop(records);
    let (_, rows) = read(folder.path()).unwrap();
    let (_, vocabulary) = tokenizer();
    let before = prompts.lock().unwrap()[..watch.1.unwrap()].to_vec();
    let text = |tokens: &Vec<TokenId>| String::from_utf8(vocabulary.concat(tokens)).unwrap();
    (rows, before.iter().map(text).collect())
}

/// By default, and where prompts are given for warm-ups, these and the uncounted run use prompts that are not
/// measured; by name they use the measured ones, which rows then record.
#[test]
fn warm_ups_do_not_see_measured_prompts() {
    for (rest, measured, learnt, seen) in [
        ("warm_ups = 4", 2, &["C: "][..], [false, false, false]),
        ("warm_ups = 4\ntemperatures = [0]", 2, &["C: "], [false, false, false]),
        ("warm_ups = 4\nwarm_up_prompts = [\"V: \", \"W: \"]", 3, &["V: ", "W: "], [false; 3]),
        ("warm_ups = 4\nwarm_up_prompts = [\"V: \", \"B: \"]", 3, &["V: ", "B: "], [false, true, false]),
        ("warm_ups = 2\nwarm_up_prompts = \"measured\"", 3, &["A: ", "B: "], [true, true, false]),
        (
            "warm_ups = 1\nwarm_up_prompts = \"measured\"\ntemperatures = [0]",
            3,
            &["A: "],
            [true, false, false],
        ),
    ] {
        let (rows, before) = noted(rest);
        assert_eq!(rows.len(), 2 * measured, "{rest}");
        // The last prompts before the first row are its own, once to write it and then to measure it.
        let own = before.iter().rev().take_while(|prompt| prompt.starts_with("A:")).count();
        let warm_ups = if learnt.contains(&"A: ") { &before[..] } else { &before[..before.len() - own] };
        for prompt in learnt {
            assert!(warm_ups.iter().any(|given| given.starts_with(prompt)), "{rest}: {before:?}");
        }
        let is_learnt = |given: &String| learnt.iter().any(|prompt| given.starts_with(prompt));
        let others: Vec<&String> = warm_ups.iter().filter(|given| !is_learnt(given)).collect();
        // What passes cost is measured on tokens of no prompt.
        let measured: Vec<&&String> = others.iter().filter(|given| given.contains(": ")).collect();
        assert!(measured.is_empty(), "{rest}: {measured:?}");
        for row in &rows {
            let expected = (row.run.method == "paper").then_some(seen[row.run.prompt]);
            assert_eq!(row.seen, expected, "{rest}: {}", row.run.key());
        }
    }
}

/// Stop strings end texts of all methods, and the judgement does not depend on the method.
#[test]
fn all_methods_are_judged_alike() {
    let definition = "name = \"j\"\ngrammars = [\"small\"]\nprompts = [\"A: \", \"B: \"]\nmax_tokens = 24\n\
        seeds = { from = 0, count = 12 }\nstop = [\"e\", \"\\n\"]\nfirst_value = true\n\
        warm_up_prompts = [\"W\"]\nmethods = [\"unconstrained\", \"masks\", \"always\", \"rejection\", \
        \"online\", \"templates\", \"templates-flexible\", \"ours\", \"canonical\", \"conditional-2\"]";
    let folder = tempfile::tempdir().unwrap();
    let made = rows(definition, folder.path());
    let (tokenizer, vocabulary) = tokenizer();
    let grammar = Grammar::parse(Syntax::Gbnf, GRAMMAR, &crate::Limits::default()).unwrap();
    let compiled = Compiler::new(vocabulary).compile(&grammar).unwrap();
    assert!(tokenizer.encode("A: ", true).is_ok());
    for row in &made {
        let judged = row.judged.as_deref().unwrap();
        assert!(!judged.contains(['e', '\n']), "{}: {judged:?}", row.run.key());
        let mut constraint = compiled.constraint();
        let taken = constraint.advance_bytes(judged.as_bytes()).unwrap();
        let whole = taken == judged.len() && constraint.is_complete();
        assert_eq!(row.well_formed, whole, "{}: {judged:?} of {:?}", row.run.key(), row.text);
        if row.text.contains(['e', '\n']) {
            assert_eq!(row.finish, End::Stop, "{}", row.run.key());
        }
    }
    let of = |method: &'static str| made.iter().filter(move |row| row.run.method == method);
    // Methods of the same masks write, and stop, alike.
    for method in ["always", "rejection", "online", "ours"] {
        let judged = |row: &Row| (row.judged.clone(), row.tokens.clone(), row.finish);
        assert!(of(method).map(judged).eq(of("masks").map(judged)), "{method}");
    }
    let stopped = |method| of(method).filter(|row| row.finish == End::Stop).count();
    assert!(["unconstrained", "masks", "online"].into_iter().all(|method| stopped(method) > 0));
    let plain = rows(&definition.replace("first_value = true\n", ""), &folder.path().join("plain"));
    assert!(plain.iter().all(|row| row.judged.is_some()));
    let without = definition.replace("first_value = true\n", "").replace("stop = [\"e\", \"\\n\"]\n", "");
    assert!(rows(&without, &folder.path().join("without")).iter().all(|row| row.judged.is_none()));
}

/// All refinements but one write what masks write, and the missing refinement is not used.
#[test]
fn leaving_out_a_refinement_changes_no_text() {
    let names: Vec<String> = Refinement::ALL.iter().map(|(_, name)| format!("\"ours-{name}\"")).collect();
    let definition = format!(
        "name = \"l\"\ngrammars = [\"small\"]\nprompts = [\"A: \", \"B: \"]\nmax_tokens = 24\nwarm_ups = 3\n\
         methods = [\"masks\", \"ours\", {}]\nthreshold = [0.05]",
        names.join(", ")
    );
    let folder = tempfile::tempdir().unwrap();
    let made = rows(&definition, folder.path());
    assert_eq!(made.len(), 2 + Refinement::ALL.len());
    assert!(made.iter().all(|row| row.tokens == made[0].tokens), "texts differ");
    let lengths = |row: &Row| (row.run.method == "ours-adaptive") == row.run.s.is_some();
    assert!(made.iter().all(lengths));
}
