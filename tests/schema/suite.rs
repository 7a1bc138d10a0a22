//! Suites of schemas: the counts must not drop.

use domino::grammar::json_schema::{Draft, Format, Order};

use super::{
    checking,
    suites::{self, Case, Counts, Decider, Outcome},
};
use crate::support::shared_data::shared;

/// Decides cases and prints those that are not right.
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
fn the_official_suite_of_2020_12_is_mostly_right() {
    let Some(counts) = official("draft2020-12", Draft::Draft202012) else { return };
    assert_eq!(counts.invalid_accepted, 0);
    assert!(counts.right * 100 >= counts.cases * 97, "{counts:?}");
}

#[test]
fn the_official_suite_of_draft_7_is_mostly_right() {
    let Some(counts) = official("draft7", Draft::Draft7) else { return };
    assert_eq!(counts.invalid_accepted, 0);
    assert!(counts.right * 100 >= counts.cases * 97, "{counts:?}");
}

/// Counts of every tenth schema of MaskBench.
fn maskbench(order: Order) -> Option<Counts> {
    let file = shared("data/jsonschema/maskbench_sample.jsonl")?;
    let cases: Vec<Case> = suites::maskbench(&file).into_iter().step_by(10).collect();
    let counts = counted(&Decider::new(checking().with_order(order)), &cases);
    assert_eq!(counts.invalid_accepted, 0);
    assert!(counts.refused * 100 <= cases.len() * 2, "{counts:?}");
    Some(counts)
}

/// MaskBench in the schema's order: valid instances in another order count as refused, and only those: the
/// next test has none. Schemas with `uniqueItems` were refused when the second bound was set, so they are not
/// among its cases.
#[test]
fn maskbench_is_mostly_right_in_the_schemas_order() {
    let Some(counts) = maskbench(Order::Schema) else { return };
    assert!(counts.right * 100 >= counts.cases * 93, "{counts:?}");
    let Some(file) = shared("data/jsonschema/maskbench_sample.jsonl") else { return };
    let mut cases: Vec<Case> = suites::maskbench(&file).into_iter().step_by(10).collect();
    cases.retain(|case| !case.schema.contains("uniqueItems"));
    let counts = counted(&Decider::new(checking().with_order(Order::Schema)), &cases);
    assert!(counts.valid_refused * 100 <= cases.len() * 6, "{counts:?}");
}

#[test]
fn valid_maskbench_instances_are_accepted_in_any_order() {
    let Some(counts) = maskbench(Order::Any) else { return };
    assert_eq!(counts.valid_refused, 0);
}
