//! Suites of schemas: the counts must not drop.

use domino::grammar::json_schema::{Draft, Format};

use super::{
    checking,
    suites::{self, Case, Counts, Decider, Outcome},
};
use crate::shared_data::shared;

/// Decides cases and shows what is not right.
fn counted(decider: &Decider, cases: &[Case]) -> Counts {
    let (counts, _) = suites::run(decider, cases, |case, outcome, _, _| {
        if *outcome != Outcome::Right {
            println!("{}: {outcome:?}", case.name);
        }
    });
    println!("{counts:?}");
    counts
}

fn official(draft: &str, meaning: Draft) -> Option<Counts> {
    let file = shared("data/jsonschema/official_suite.jsonl")?;
    let remotes = shared("data/jsonschema/official_suite_remotes.jsonl")?;
    let mut options = checking().with_draft(meaning).with_format(Format::Annotate);
    options.documents = suites::remotes(&remotes);
    Some(counted(&Decider::new(options), &suites::official(&file, draft, false)))
}

#[test]
fn official_2020_12() {
    let Some(counts) = official("draft2020-12", Draft::Draft202012) else { return };
    assert_eq!(counts.invalid_accepted, 0);
    assert!(counts.right * 100 >= counts.cases * 97, "{counts:?}");
}

#[test]
fn official_7() {
    let Some(counts) = official("draft7", Draft::Draft7) else { return };
    assert_eq!(counts.invalid_accepted, 0);
    assert!(counts.right * 100 >= counts.cases * 97, "{counts:?}");
}

/// Each tenth schema, in the order of the schema: valid instances that stand in another order count as
/// refused.
#[test]
fn maskbench() {
    let Some(file) = shared("data/jsonschema/maskbench_sample.jsonl") else { return };
    let options = checking().with_order(domino::grammar::json_schema::Order::Schema);
    let cases: Vec<Case> = suites::maskbench(&file).into_iter().step_by(10).collect();
    let counts = counted(&Decider::new(options), &cases);
    assert_eq!(counts.invalid_accepted, 0);
    assert!(counts.refused * 100 <= cases.len() * 2, "{counts:?}");
    assert!(counts.valid_refused * 100 <= cases.len() * 6, "{counts:?}");
}
