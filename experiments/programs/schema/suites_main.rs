//! Results of a suite of schemas: counts, refused schemas by keyword, and wrong decisions.
//!
//!     cargo experiment schema_suites -- official FILE REMOTES [draft2020-12] [optional]
//!     cargo experiment schema_suites -- maskbench FILE [EVERY]

use std::{collections::BTreeMap, error::Error, path::Path, time::Duration};

use domino::grammar::json_schema::{Draft, Escapes, Format, Numbers, Order, SchemaOptions, WhiteSpace};
use suites::{Case, Counts, Decider, Outcome};

#[path = "../../../tests/schema/suites.rs"]
mod suites;

/// Least time of a schema that is printed as slow.
const SLOW: Duration = Duration::from_millis(500);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given = |index: usize| arguments.get(index).map(String::as_str);
    let file = |index| given(index).map(Path::new).ok_or("a file is missing");
    let options = SchemaOptions::default().with_white_space(WhiteSpace::Any).with_numbers(Numbers::Any);
    let mut options = options.with_escapes(Escapes::All).with_format(Format::Assert);
    if std::env::var_os("ANY_ORDER").is_some() {
        options = options.with_order(Order::Any);
    }
    let cases = match given(0) {
        Some("official") => {
            let draft = given(3).unwrap_or("draft2020-12");
            let optional = given(4) == Some("optional");
            options = options.with_draft(match draft {
                "draft4" => Draft::Draft4,
                "draft6" => Draft::Draft6,
                "draft7" => Draft::Draft7,
                "draft2019-09" => Draft::Draft201909,
                "draft2020-12" => Draft::Draft202012,
                _ => return Err(format!("no draft is called {draft}").into()),
            });
            options.format = if optional { Format::Assert } else { Format::Annotate };
            options.documents = suites::remotes(file(2)?);
            suites::official(file(1)?, draft, optional)
        }
        Some("maskbench") => {
            let every = given(2).map_or(Ok(1), str::parse)?;
            suites::maskbench(file(1)?).into_iter().step_by(every).collect()
        }
        _ => return Err("say `official` or `maskbench`".into()),
    };
    report(&Decider::new(options), &cases);
    Ok(())
}

fn report(decider: &Decider, cases: &[Case]) {
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut times: Vec<Duration> = Vec::new();
    let (all, groups) = suites::run(decider, cases, |case, outcome, read, rest| {
        times.push(read);
        if read > SLOW || rest > SLOW {
            println!("slow: {}: {read:?} to read, {rest:?} to compile and check", case.name);
        }
        match outcome {
            Outcome::Right => {}
            Outcome::Wrong(valid, invalid) => {
                println!("wrong: {}: valid refused {valid:?}, invalid accepted {invalid:?}", case.name);
            }
            Outcome::Refused(keyword, message) => {
                reasons.entry(keyword.clone()).or_default().push(format!("{}: {message}", case.name));
            }
        }
    });
    for (keyword, messages) in &reasons {
        println!("refused: {keyword}: {}", messages.len());
        messages.iter().take(40).for_each(|message| println!("    {message}"));
    }
    println!("| group | cases | right | valid refused | invalid accepted | refused |");
    println!("|---|---|---|---|---|---|");
    for (group, counts) in groups.iter().filter(|(_, counts)| counts.right < counts.cases) {
        line(group, counts);
    }
    line("all", &all);
    times.sort();
    let rank = |share: usize| times.get(times.len() * share / 1000).copied().unwrap_or_default();
    println!("schema read: p50 {:?}, p99 {:?}, max {:?}", rank(500), rank(990), rank(999));
}

fn line(group: &str, counts: &Counts) {
    let Counts { cases, right, valid_refused, invalid_accepted, refused } = counts;
    println!("| {group} | {cases} | {right} | {valid_refused} | {invalid_accepted} | {refused} |");
}
