//! Tables of results for people.

use crate::{
    lane::Outcome,
    peers::{self, Peer},
};

/// The columns of a comparison: a heading and the number, in us or, where it says so, in ms.
type Column = (&'static str, fn(&Outcome) -> Option<f64>);

const COLUMNS: [Column; 9] = [
    ("warm mean", |outcome| outcome.warm.map(|spread| spread.mean)),
    ("p50", |outcome| outcome.warm.map(|spread| spread.p50)),
    ("p99", |outcome| outcome.warm.map(|spread| spread.p99)),
    ("first mean", |outcome| outcome.first.map(|spread| spread.mean)),
    ("p99", |outcome| outcome.first.map(|spread| spread.p99)),
    ("commit p50", |outcome| outcome.commit.map(|spread| spread.p50)),
    ("allows p50", |outcome| outcome.allows.map(|spread| spread.p50)),
    ("compile ms", |outcome| outcome.compile.map(|spread| spread.p50 / 1e3)),
    ("to mask ms", |outcome| outcome.text_to_mask.map(|spread| spread.p50 / 1e3)),
];

/// Prints the head of a table of comparisons.
pub(crate) fn head(title: &str) {
    println!("\n{title}");
    print!("{:<14}{:<22}", "", "us");
    COLUMNS.iter().for_each(|(heading, _)| print!("{heading:>12}"));
    println!("  masks not as expected, texts refused");
}

/// Prints the outcomes of one grammar, and the times of the last engine relative to each other one.
pub(crate) fn rows(grammar: &str, outcomes: &[Outcome]) {
    for (number, outcome) in outcomes.iter().enumerate() {
        print!("{:<14}{:<22}", if number == 0 { grammar } else { "" }, outcome.name);
        COLUMNS.iter().for_each(|(_, of)| print!("{:>12}", number_of(of(outcome))));
        println!("  {} of {}, {}", outcome.wrong, outcome.masks, outcome.rejected);
    }
    if let Some((last, others)) = outcomes.split_last() {
        others.iter().for_each(|other| ratio(other, last));
    }
    for outcome in outcomes {
        if let Some(complaint) = &outcome.complaint {
            println!("{:<14}{}: {complaint}", "", outcome.name);
        }
    }
}

fn ratio(one: &Outcome, other: &Outcome) {
    print!("{:<14}{:<22}", "", format!("  to {}", one.name));
    for (_, of) in COLUMNS {
        let ratio = of(one).zip(of(other)).filter(|(one, _)| *one > 0.0).map(|(one, other)| other / one);
        print!("{:>12}", ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}x")));
    }
    println!();
}

/// Prints the other engines, which did not run.
pub(crate) fn ceiling(tokens: &str, peers: &[Peer]) {
    println!("\nOther engines, {tokens} tokens, {}: warm mean / first mean us, compile ms", peers::MEASURED);
    print!("{:<46}", "");
    peers::GRAMMARS.iter().for_each(|grammar| print!("{grammar:>20}"));
    println!();
    for peer in peers {
        print!("{:<46}", peer.name);
        for (warm, first, compile) in peer.cells {
            let first = first.map_or_else(String::new, |first| format!(" / {first}"));
            let compile = compile.map_or_else(String::new, |compile| format!(", {compile}"));
            print!("{:>20}", format!("{warm}{first}{compile}"));
        }
        println!();
    }
}

fn number_of(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"))
}
