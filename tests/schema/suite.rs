//! Suites of schemas: the counts must not drop.

use std::io::{self, Write};

use domino::grammar::json_schema::{Draft, Format, Order, SchemaOptions, WhiteSpace};
use serde::Serialize;
use serde_json::{
    Serializer, Value,
    ser::{CompactFormatter, Formatter, PrettyFormatter},
};

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

/// Writes JSON as Python's `json.dumps` does by default: a blank behind each comma and colon.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b": ")
    }
}

fn laid_out(value: &Value, formatter: impl Formatter) -> String {
    let mut text = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut text, formatter)).expect("a value");
    String::from_utf8(text).expect("UTF-8")
}

/// The levels of arrays and objects.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// The valid texts of a case that are no deeper than eight levels, in the layouts of `json.dumps`: by
/// default, with `separators=(",", ":")`, and with `indent=2`, `indent=4` and `indent="\t"`.
fn in_all_layouts(case: Case) -> Case {
    let valid = case.tests.iter().filter(|(_, valid)| *valid);
    let values = valid.map(|(text, _)| serde_json::from_str::<Value>(text).expect("JSON"));
    let texts = values.filter(|value| depth(value) <= 8).flat_map(|value| {
        let indented = ["  ", "    ", "\t"];
        let indented = indented.map(|by| laid_out(&value, PrettyFormatter::with_indent(by.as_bytes())));
        [laid_out(&value, Spaced), laid_out(&value, CompactFormatter)].into_iter().chain(indented)
    });
    Case { tests: texts.map(|text| (text, true)).collect(), ..case }
}

/// What programs write has white space that is written too: no text is refused but those that are refused
/// with any white space. `DOMINO_MASKBENCH_STEP=1` looks at all schemas.
#[test]
fn maskbench_is_accepted_in_the_layouts_of_programs() {
    let Some(file) = shared("data/jsonschema/maskbench_sample.jsonl") else { return };
    let step = std::env::var("DOMINO_MASKBENCH_STEP").map_or(10, |step| step.parse().expect("a number"));
    let written = SchemaOptions::default().with_order(Order::Any);
    let [any, written] = [WhiteSpace::Any, written.white_space]
        .map(|white_space| Decider::new(written.clone().with_white_space(white_space)));
    let (mut texts, mut refused) = (0, 0);
    for case in suites::maskbench(&file).into_iter().step_by(step).map(in_all_layouts) {
        let of_others = match any.decide(&case).0 {
            Outcome::Right => 0,
            Outcome::Wrong(refused, _) => refused.len(),
            Outcome::Refused(..) => continue,
        };
        let all = match written.decide(&case).0 {
            Outcome::Right => 0,
            Outcome::Wrong(refused, _) => refused.len(),
            Outcome::Refused(..) => case.tests.len(),
        };
        texts += case.tests.len() - of_others;
        refused += all - of_others;
        if all > of_others {
            println!("{}: {} refused", case.name, all - of_others);
        }
    }
    println!("{refused} of {texts} texts are refused for their white space");
    assert!(texts > 1_000 && refused * 1_000 <= texts, "{refused} of {texts}");
}
