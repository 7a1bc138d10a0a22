//! A text with all its mutants in it, each behind a number: mutant schemata, so that all of them are built at
//! once (Untch, Offutt and Harrold, "Mutation analysis using mutant schemata", 1993).

use std::ops::Range;

use crate::points::{Change, Point};

/// Path of the function in the changed sources that asks whether a mutant is on.
pub(crate) const ASK: &str = "crate::mutants::on";

/// Environment variable with the number of the mutant that is on.
pub(crate) const SWITCH: &str = "DOMINO_MUTANT";

/// Environment variable with a file: no mutant is on, and the numbers of those that are asked for go there.
pub(crate) const REACHED: &str = "DOMINO_MUTANTS_REACHED";

/// Source of the module behind [`ASK`], for mutants with numbers below `count`. It is quick, since it is
/// asked in inner loops, and records a place at once, since a process may end in any way.
pub(crate) fn module(count: usize) -> String {
    MODULE.replace("COUNT", &count.to_string()).replace("SWITCH", SWITCH).replace("TRACE", REACHED)
}

const MODULE: &str = r#"
mod mutants {
    use std::io::Write;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

    const NONE: usize = usize::MAX - 2;
    const RECORD: usize = usize::MAX - 1;
    const UNREAD: usize = usize::MAX;
    static ON: AtomicUsize = AtomicUsize::new(UNREAD);
    static REACHED: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];

    #[inline]
    pub(crate) fn on(number: usize) -> bool {
        let on = ON.load(Relaxed);
        if on <= NONE { on == number } else { read_or_record(number) }
    }

    #[cold]
    fn read_or_record(number: usize) -> bool {
        let trace = std::env::var_os("TRACE");
        if ON.load(Relaxed) == UNREAD {
            let switch = std::env::var("SWITCH").ok().and_then(|text| text.parse().ok());
            ON.store(if trace.is_some() { RECORD } else { switch.unwrap_or(NONE) }, Relaxed);
        }
        if ON.load(Relaxed) != RECORD {
            return ON.load(Relaxed) == number;
        }
        if let (false, Some(path)) = (REACHED[number].swap(true, Relaxed), trace) {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            let _ = file.and_then(|mut file| file.write_all(format!("{number}\n").as_bytes()));
        }
        false
    }
}
"#;

/// The text with `points` in it; each has its number.
pub(crate) fn with_mutants(text: &str, points: &[(usize, &Point)]) -> String {
    let mut sorted: Vec<_> = points.to_vec();
    // The outer before the inner.
    sorted.sort_by_key(|(_, point)| (range_of(point).start, usize::MAX - range_of(point).end));
    render(text, 0..text.len(), &sorted)
}

fn range_of(point: &Point) -> Range<usize> {
    match &point.change {
        Change::Operator { whole, .. } | Change::Unary { whole, .. } => whole.clone(),
        Change::Body { at, .. } => *at..*at,
    }
}

/// Renders a part of the text, with the sorted points that lie in it.
fn render(text: &str, part: Range<usize>, points: &[(usize, &Point)]) -> String {
    let mut out = String::new();
    let mut done = part.start;
    let mut rest = points;
    while let Some((_, first)) = rest.first() {
        let range = range_of(first);
        if range.start < done || range.end > part.end {
            rest = &rest[1..];
            continue;
        }
        out.push_str(&text[done..range.start]);
        let same = rest.iter().take_while(|(_, point)| range_of(point) == range).count();
        let inner: Vec<_> = rest[same..].to_vec();
        let sub = |part: &Range<usize>| {
            let within = |range: &Range<usize>| range.start >= part.start && range.end <= part.end;
            let points: Vec<_> = inner.iter().copied().filter(|(_, p)| within(&range_of(p))).collect();
            render(text, part.clone(), &points)
        };
        let mut open = 0;
        for (number, point) in &rest[..same] {
            match &point.change {
                Change::Operator { left, new, right, .. } => {
                    let (left, right) = (sub(left), sub(right));
                    out.push_str(&format!("(if {ASK}({number}) {{ ({left}) {new} ({right}) }} else {{ "));
                    open += 1;
                }
                Change::Unary { operand, .. } => {
                    out.push_str(&format!("(if {ASK}({number}) {{ {} }} else {{ ", sub(operand)));
                    open += 1;
                }
                Change::Body { statement, .. } => {
                    out.push_str(&format!("if {ASK}({number}) {{ {statement} }}"))
                }
            }
        }
        if open > 0 {
            // The original, once more with what is inside.
            let parts = match &rest[0].1.change {
                Change::Operator { left, right, .. } => vec![left.clone(), right.clone()],
                Change::Unary { operand, .. } => vec![operand.clone()],
                Change::Body { .. } => Vec::new(),
            };
            let mut at = range.start;
            for part in parts {
                out.push_str(&text[at..part.start]);
                out.push_str(&sub(&part));
                at = part.end;
            }
            out.push_str(&text[at..range.end]);
            out.push_str(&" })".repeat(open));
        }
        done = range.end;
        rest = &rest[same..];
        rest = &rest[rest.iter().take_while(|(_, p)| range_of(p).start < done).count()..];
    }
    out.push_str(&text[done..part.end]);
    out
}

/// Number of the mutant that a place of a changed text belongs to: the last that is asked for before it, else
/// the first.
pub(crate) fn mutant_at(changed: &str, byte: usize) -> Option<usize> {
    let byte = (0..=byte.min(changed.len())).rev().find(|&at| changed.is_char_boundary(at))?;
    // The error may stand in the question's own line, before the number ends.
    let end = changed[byte..].find(')').map_or(changed.len(), |at| byte + at);
    let number = |at: usize| changed[at + ASK.len() + 1..].split(')').next()?.parse().ok();
    match changed[..end].rfind(ASK) {
        Some(at) => number(at),
        None => number(byte + changed[byte..].find(ASK)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::points::points_of;

    /// A text with every mutant in it is valid Rust, and without the inserted questions it is the original.
    #[test]
    fn a_text_with_all_mutants_in_it_is_valid_rust() {
        let text = "fn f(a: u32, b: u32) -> bool {\n    !(a + 1 < b * 2) && a == b\n}\n";
        let points = points_of("f.rs", text).unwrap();
        assert_eq!(points.len(), 12, "{points:#?}");
        let numbered: Vec<_> = points.iter().enumerate().collect();
        let changed = with_mutants(text, &numbered);
        syn::parse_file(&changed).unwrap();
        for number in 0..points.len() {
            assert!(changed.contains(&format!("{ASK}({number})")), "{number}: {changed}");
        }
        assert_eq!(mutant_at(&changed, changed.find(&format!("{ASK}(3)")).unwrap() + 2), Some(3));
        assert_eq!(with_mutants(text, &[]), text);
    }

    #[test]
    fn a_mutant_is_chosen_by_its_number_beside_the_original() {
        let text = "fn f(a: u32, b: u32) -> bool { a < b }";
        let points = points_of("f.rs", text).unwrap();
        let (number, point) =
            points.iter().enumerate().find(|(_, point)| point.name.contains("`<=`")).unwrap();
        assert_eq!(
            with_mutants(text, &[(number, point)]),
            format!(
                "fn f(a: u32, b: u32) -> bool {{ (if {ASK}({number}) {{ (a) <= (b) }} else {{ a < b }}) }}"
            )
        );
    }

    #[test]
    fn tests_and_constants_are_left_alone() {
        let text = "const A: u32 = 1 + 1; const fn f() -> u32 { 1 + 1 } \
                    #[cfg(test)] mod tests { fn f() -> u32 { 1 + 1 } }";
        assert!(points_of("f.rs", text).unwrap().is_empty());
    }
}
