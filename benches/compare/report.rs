//! The tables that people read.

use crate::{
    lane::Outcome,
    peers::{self, Peer},
    trace::spread::Spread,
};

/// The columns of a comparison: a heading and the number, in us or, for compiling, in ms.
type Column = (&'static str, fn(&Outcome) -> Option<f64>);

const COLUMNS: [Column; 8] = [
    ("warm mean", |outcome| outcome.warm.map(|spread| spread.mean)),
    ("p50", |outcome| outcome.warm.map(|spread| spread.p50)),
    ("p99", |outcome| outcome.warm.map(|spread| spread.p99)),
    ("first mean", |outcome| outcome.first.map(|spread| spread.mean)),
    ("p99", |outcome| outcome.first.map(|spread| spread.p99)),
    ("commit p50", |outcome| outcome.commit.map(|spread| spread.p50)),
    ("allows p50", |outcome| outcome.allows.map(|spread| spread.p50)),
    ("compile ms", |outcome| outcome.compile.map(|Spread { p50, .. }| p50 / 1e3)),
];

/// The head of a table of comparisons.
pub(crate) fn head(title: &str) {
    println!("\n{title}");
    print!("{:<14}{:<12}", "", "us");
    COLUMNS.iter().for_each(|(heading, _)| print!("{heading:>11}"));
    println!("  masks not as expected, texts refused");
}

/// Two outcomes of one grammar, and how often the second takes the time of the first.
pub(crate) fn pair(grammar: &str, one: &Outcome, other: &Outcome) {
    for (label, outcome) in [(grammar, one), ("", other)] {
        print!("{label:<14}{:<12}", outcome.name);
        COLUMNS.iter().for_each(|(_, of)| print!("{:>11}", number(of(outcome))));
        println!("  {} of {}, {}", outcome.wrong, outcome.masks, outcome.rejected);
    }
    print!("{:<14}{:<12}", "", "ratio");
    for (_, of) in COLUMNS {
        let ratio = of(one).zip(of(other)).filter(|(one, _)| *one > 0.0).map(|(one, other)| other / one);
        print!("{:>11}", ratio.map_or_else(String::new, |ratio| format!("{ratio:.1}x")));
    }
    println!();
    for outcome in [one, other] {
        if let Some(complaint) = &outcome.complaint {
            println!("{:<14}{}: {complaint}", "", outcome.name);
        }
    }
}

/// The other engines, which did not run.
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

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}"))
}
