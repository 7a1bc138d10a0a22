//! Comparisons of each operation with its definition, on all short texts.

use proptest::prelude::*;

use super::*;

/// Expressions over `a` and `b`, some of which overlap, and one of which is empty.
const EXPRESSIONS: [&str; 10] =
    ["a*", "(?:ab)+", "a|b", "b?a", "(?s:.*)ab", "a{2,3}b*", "[a&&b]", "", "(?:a|ab)(?:b|ba)?", "[ab]*b"];

fn limits() -> Limits {
    Limits::default()
}

fn language(expression: &str) -> Language {
    let hir = regex_syntax::ParserBuilder::new().utf8(false).build().parse(expression).unwrap();
    Language::of(&hir, &limits()).unwrap()
}

fn has(language: &Language, text: &str) -> bool {
    let automaton = language.automaton(&limits()).unwrap();
    let mut at = 0_usize;
    for byte in text.bytes() {
        let mut edges = automaton.states()[at].edges.iter();
        let Some(edge) = edges.find(|edge| (edge.first..=edge.last).contains(&byte)) else { return false };
        at = edge.to as usize;
    }
    automaton.states()[at].accepts
}

/// All texts of up to six letters, of two kinds.
fn texts() -> Vec<String> {
    let mut all = vec![String::new()];
    let mut last = all.clone();
    for _ in 0..6 {
        last = last.iter().flat_map(|text| [format!("{text}a"), format!("{text}b")]).collect();
        all.extend(last.iter().cloned());
    }
    all
}

/// All ways to cut a text in two.
fn cuts(text: &str) -> impl Iterator<Item = (&str, &str)> {
    (0..=text.len()).map(|at| text.split_at(at))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn operations_on_languages_agree_with_sets_of_texts(
        one in prop::sample::select(EXPRESSIONS.as_slice()),
        other in prop::sample::select(EXPRESSIONS.as_slice()),
        (min, more) in (0_u32..3, prop::option::of(0_u32..3)),
    ) {
        let (one, other, limits) = (language(one), language(other), limits());
        let max = more.map(|more| min + more);
        let (both, without) = (one.and(&other, &limits).unwrap(), one.minus(&other, &limits).unwrap());
        let either = Language::union(&[one.clone(), other.clone()], &limits).unwrap();
        let not = one.not(&limits).unwrap();
        let sequence = Language::sequence(&[one.clone(), other.clone()], &limits).unwrap();
        let shortest = one.shortest();
        let repeat = one.repeat(min, max, &limits).unwrap();
        let mut repeated: Vec<Language> = vec![language("")];
        for _ in 0..8 {
            let last = repeated.last().unwrap();
            repeated.push(Language::sequence(&[last.clone(), one.clone()], &limits).unwrap());
        }
        for text in texts() {
            let (in_one, in_other) = (has(&one, &text), has(&other, &text));
            prop_assert_eq!(has(&both, &text), in_one && in_other, "{}", text);
            prop_assert_eq!(has(&without, &text), in_one && !in_other, "{}", text);
            prop_assert_eq!(has(&either, &text), in_one || in_other, "{}", text);
            prop_assert_eq!(has(&not, &text), !in_one, "{}", text);
            let split = cuts(&text).any(|(left, right)| has(&one, left) && has(&other, right));
            prop_assert_eq!(has(&sequence, &text), split, "{}", text);
            let earlier = cuts(&text).any(|(left, right)| !right.is_empty() && has(&one, left));
            prop_assert_eq!(has(&shortest, &text), in_one && !earlier, "{}", text);
            // A text of six letters has at most six non-empty parts.
            let times = usize::try_from(min).unwrap()..=usize::try_from(max.unwrap_or(8)).unwrap();
            let some = repeated[times].iter().any(|part| has(part, &text));
            prop_assert_eq!(has(&repeat, &text), some, "{}", text);
        }
    }

    #[test]
    fn before_has_the_texts_that_a_suffix_completes(
        one in prop::sample::select(EXPRESSIONS.as_slice()),
        suffix in prop::sample::select(EXPRESSIONS.as_slice()),
    ) {
        let (one, suffix, limits) = (language(one), language(suffix), limits());
        let before = one.before(&suffix, &limits).unwrap();
        let all = texts();
        let suffixes: Vec<&String> = all.iter().filter(|text| has(&suffix, text)).collect();
        for text in all.iter().filter(|text| text.len() <= 3) {
            // The expressions are small: if a suffix completes the text, one of at most six letters does.
            let completed = suffixes.iter().any(|suffix| has(&one, &format!("{text}{suffix}")));
            prop_assert_eq!(has(&before, text), completed, "{}", text);
        }
    }
}

#[test]
fn complements_are_of_whole_characters() {
    let not = language("(?s:.)").not(&limits()).unwrap();
    assert!(has(&not, "") && has(&not, "éé") && !has(&not, "é"));
    let bytes = not.automaton(&limits()).unwrap();
    assert!(!bytes.states()[0].edges.iter().any(|edge| (edge.first..=edge.last).contains(&0xFF)));
}

#[test]
fn budgets_end_in_errors() {
    let tight = Limits { dfa_states: 50, ..limits() };
    let hard = language("[ab]*a");
    let tail = language("[ab]").repeat(10, Some(10), &limits()).unwrap();
    assert!(Language::sequence(&[hard, tail], &tight).is_err());
    let small = Limits { nfa_bytes: 1000, ..limits() };
    assert!(language("[a-z]+b").repeat(100, Some(100), &small).is_err());
    let few = Limits { terminal_bytes: 10, ..limits() };
    assert!(language("[a-z]+b").before(&language("b"), &few).is_err());
}
