//! Comparisons with exact arithmetic on small numbers: a decimal of four places is a count of
//! ten-thousandths.

use proptest::prelude::*;

use super::*;

const UNIT: i64 = 10_000;

/// An expression for a set.
#[derive(Debug, Clone)]
enum Tree {
    AtLeast(i64, bool),
    AtMost(i64, bool),
    Multiples(i64),
    Integers,
    Plain,
    Of(Vec<i64>),
    Not(Box<Tree>),
    And(Box<Tree>, Box<Tree>),
    Or(Box<Tree>, Box<Tree>),
}

fn decimal(units: i64) -> Decimal {
    Decimal::new(units.into(), -4)
}

impl Tree {
    fn set(&self) -> NumberSet {
        match self {
            Self::AtLeast(bound, exclusive) => NumberSet::at_least(&decimal(*bound), *exclusive),
            Self::AtMost(bound, exclusive) => NumberSet::at_most(&decimal(*bound), *exclusive),
            Self::Multiples(divisor) => NumberSet::multiples_of(&decimal(*divisor)).unwrap(),
            Self::Integers => NumberSet::integers(Integers::ByValue),
            Self::Plain => NumberSet::integers(Integers::BySpelling),
            Self::Of(numbers) => NumberSet::of(numbers.iter().map(|&number| decimal(number))),
            Self::Not(of) => of.set().complement().unwrap(),
            Self::And(left, right) => left.set().intersect(&right.set()).unwrap(),
            Self::Or(left, right) => left.set().union(&right.set()).unwrap(),
        }
    }

    /// True if the number is in the set; `plain` if it is written as an integer.
    fn has(&self, units: i64, plain: bool) -> bool {
        match self {
            Self::AtLeast(bound, exclusive) => units > *bound || (units == *bound && !exclusive),
            Self::AtMost(bound, exclusive) => units < *bound || (units == *bound && !exclusive),
            Self::Multiples(divisor) => units % divisor == 0,
            Self::Integers => units % UNIT == 0,
            Self::Plain => plain,
            Self::Of(numbers) => numbers.contains(&units),
            Self::Not(of) => !of.has(units, plain),
            Self::And(left, right) => left.has(units, plain) && right.has(units, plain),
            Self::Or(left, right) => left.has(units, plain) || right.has(units, plain),
        }
    }
}

/// Numbers of a few sizes, near each other, so that bounds and numbers meet.
fn units() -> impl Strategy<Value = i64> {
    prop_oneof![
        (-12..12_i64).prop_map(|number| number * UNIT),
        (-30..30_i64).prop_map(|number| number * UNIT / 4),
        -40..40_i64,
        (-2000..2000_i64).prop_map(|number| number * UNIT),
        Just(0),
    ]
}

fn tree() -> impl Strategy<Value = Tree> {
    let divisors =
        prop::sample::select(vec![1, 5, 100, 2_500, 10_000, 15_000, 30_000, 40_000, 1_000_000, 120_000]);
    let leaf = prop_oneof![
        (units(), any::<bool>()).prop_map(|(bound, exclusive)| Tree::AtLeast(bound, exclusive)),
        (units(), any::<bool>()).prop_map(|(bound, exclusive)| Tree::AtMost(bound, exclusive)),
        divisors.prop_map(Tree::Multiples),
        Just(Tree::Integers),
        Just(Tree::Plain),
        prop::collection::vec(units(), 0..4).prop_map(Tree::Of),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|of| Tree::Not(Box::new(of))),
            (inner.clone(), inner.clone()).prop_map(|(left, right)| Tree::And(left.into(), right.into())),
            (inner.clone(), inner).prop_map(|(left, right)| Tree::Or(left.into(), right.into())),
        ]
    })
}

/// The value of a text in ten-thousandths; true if it is written as an integer. `None` past four places.
fn meaning(text: &str) -> Option<(i64, bool)> {
    let (mantissa, power) = match text.split_once(['e', 'E']) {
        Some((mantissa, power)) => (mantissa, power.parse::<i32>().unwrap()),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: i128 = format!("{whole}{fraction}").parse().unwrap();
    let shift = power + 4 - i32::try_from(fraction.len()).unwrap();
    let units = if shift >= 0 {
        digits.checked_mul(10_i128.checked_pow(shift.unsigned_abs())?)?
    } else {
        let divisor = 10_i128.checked_pow(shift.unsigned_abs())?;
        (digits % divisor == 0).then_some(digits / divisor)?
    };
    Some((i64::try_from(units).ok()?, !text.contains(['e', 'E', '.'])))
}

/// The texts that writers use for a number: as it is, as floats, with exponents.
fn usual(units: i64) -> Vec<String> {
    let (size, sign) = (units.unsigned_abs(), if units < 0 { "-" } else { "" });
    let (whole, rest) = (size / 10_000, size % 10_000);
    let fraction = format!("{rest:04}");
    let fraction = fraction.trim_end_matches('0');
    let float = units as f64 / 10_000.0;
    let mut texts = vec![format!("{float:e}"), format!("{float:e}").to_uppercase(), format!("{float:?}")];
    if fraction.is_empty() {
        texts.extend([format!("{sign}{whole}"), format!("{sign}{whole}.0"), format!("{sign}{whole}.000")]);
    } else {
        texts.extend([format!("{sign}{whole}.{fraction}"), format!("{sign}{whole}.{fraction}00")]);
    }
    let (mantissa, power) = texts[0].split_once('e').unwrap();
    let power: i32 = power.parse().unwrap();
    texts.push(format!("{mantissa}e{power:+03}"));
    texts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn sets_of_numbers_agree_with_their_definition(
        tree in tree(), numbers in prop::collection::vec(units(), 30),
    ) {
        let set = tree.set();
        for units in numbers {
            let expected = tree.has(units, units % UNIT == 0);
            prop_assert_eq!(set.contains(&decimal(units)), expected, "{} in {:?}", units, set);
        }
        let none = set.intersect(&set.complement().unwrap()).unwrap();
        prop_assert!(none.is_empty(), "{:?}", none);
        prop_assert!(set.union(&set.complement().unwrap()).unwrap().is_all());
    }

    #[test]
    fn usual_texts_of_members_are_accepted_and_no_others(
        tree in tree(),
        numbers in prop::collection::vec(units(), 12),
    ) {
        let texts = tree.set().texts(&AutomataCache::new()).unwrap();
        for units in numbers {
            for text in usual(units) {
                let plain = !text.contains(['e', 'E', '.']);
                prop_assert_eq!(texts.contains(&text), tree.has(units, plain), "{}", text);
            }
        }
    }

    #[test]
    fn texts_that_are_accepted_are_of_members(
        tree in tree(),
        odd in prop::collection::vec(r"-?(0|[1-9][0-9]{0,3})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,2})?", 40),
    ) {
        let texts = tree.set().texts(&AutomataCache::new()).unwrap();
        for text in odd {
            if let Some((units, plain)) = meaning(&text).filter(|_| texts.contains(&text)) {
                prop_assert!(tree.has(units, plain), "{}", text);
            }
        }
        for text in ["", "-", "+1", "01", "1.", ".5", "1e", "1e+", "--1", "1-", "0x1", "1.5.2", " 1", "NaN"] {
            prop_assert!(!texts.contains(text), "{}", text);
        }
    }

    #[test]
    fn few_numbers_are_listed(tree in tree(), low in -20..20_i64, width in 0..12_i64) {
        let window = Tree::And(
            Box::new(Tree::AtLeast(low * UNIT / 2, false)),
            Box::new(Tree::AtMost((low + width) * UNIT / 2, false)),
        );
        let quarters = Tree::And(Box::new(tree), Box::new(Tree::Multiples(2_500)));
        let tree = Tree::And(Box::new(quarters), Box::new(window));
        let range = (low * 2..=(low + width) * 2).map(|quarter| quarter * 2_500);
        let expected: Vec<Decimal> =
            range.filter(|&units| tree.has(units, units % UNIT == 0) || tree.has(units, false))
                .map(decimal).collect();
        let set = tree.set();
        prop_assert_eq!(set.as_finite(100), Some(expected.clone()));
        prop_assert_eq!(set.is_empty(), expected.is_empty());
        if let Some(fewer) = expected.len().checked_sub(1) {
            prop_assert_eq!(set.as_finite(fewer), None);
        }
    }

    #[test]
    fn decimals_are_exact(left in units(), right in units(), zeros in 0..5_usize) {
        let places = left.unsigned_abs() % UNIT.unsigned_abs();
        let text = format!("{}.{places:04}{}", left / UNIT, "0".repeat(zeros));
        let text = if left < 0 && left / UNIT == 0 { format!("-{text}") } else { text };
        prop_assert_eq!(Decimal::parse(&text).unwrap(), decimal(left));
        prop_assert_eq!(decimal(left).cmp(&decimal(right)), left.cmp(&right));
        let whole = u64::try_from(left).ok().filter(|left| left % 10_000 == 0).map(|left| left / 10_000);
        prop_assert_eq!(decimal(left).to_u64(), whole);
        if right != 0 {
            prop_assert_eq!(decimal(left).is_multiple_of(&decimal(right)), left % right == 0);
        }
    }
}

fn parsed(text: &str) -> Decimal {
    Decimal::parse(text).unwrap()
}

#[test]
fn texts_that_are_no_numbers_are_refused() {
    for text in ["", "-", "01", "1.", ".1", "+1", "1e", "1e1.5", "NaN", "1 ", "0x1", "1e99999999999999999999"]
    {
        assert!(Decimal::parse(text).is_err(), "{text}");
    }
    assert_eq!(parsed("-0.0e7"), Decimal::from(0));
    assert_eq!(parsed("1.50e2"), Decimal::from(150));
    assert_eq!(parsed("0e99999999999999999999"), Decimal::from(0));
}

#[test]
fn extreme_numbers_stay_bounded() {
    let long = "7".repeat(400);
    for (low, high, inside, outside) in [
        ("1e-300", "1e300", "3.7e-299", "9.9e-301"),
        (&*long, "1e400", "8e399", "7.7e399"),
        ("-1e300", "-1e-300", "-0.5", "0"),
    ] {
        let set = NumberSet::at_least(&parsed(low), false);
        let set = set.intersect(&NumberSet::at_most(&parsed(high), true)).unwrap();
        let texts = set.texts(&AutomataCache::new()).unwrap();
        assert!(texts.contains(inside), "{inside}");
        assert!(texts.contains(low) || low.contains("1e"), "{low}");
        assert!(!texts.contains(outside) && !texts.contains(high), "{outside}");
    }
    let tiny = NumberSet::multiples_of(&parsed("1e-300")).unwrap().texts(&AutomataCache::new()).unwrap();
    assert!(tiny.contains("0.1") && tiny.contains("5e-300") && !tiny.contains("5e-301"));
    let large = NumberSet::multiples_of(&parsed("1000000007")).unwrap();
    assert!(matches!(large.texts(&AutomataCache::new()), Err(LeafError::Budget { .. })));
    let few = large.intersect(&NumberSet::at_most(&parsed("5e9"), false)).unwrap();
    let few = few.intersect(&NumberSet::at_least(&parsed("1"), false)).unwrap();
    assert_eq!(few.as_finite(10).map(|numbers| numbers.len()), Some(4));
    assert!(few.texts(&AutomataCache::new()).unwrap().contains("3000000021"));
    let hundred = NumberSet::multiples_of(&parsed("1000003")).unwrap();
    let hundred = hundred.intersect(&NumberSet::at_most(&parsed("1e8"), false)).unwrap();
    let hundred = hundred
        .intersect(&NumberSet::at_least(&parsed("0"), false))
        .unwrap()
        .texts(&AutomataCache::new())
        .unwrap();
    assert!(hundred.contains("99000297") && hundred.contains("0") && !hundred.contains("99000298"));
    assert!(NumberSet::multiples_of(&parsed("0")).is_err());
}

#[test]
fn large_floats_keep_their_exponents() {
    let integers = NumberSet::integers(Integers::ByValue).texts(&AutomataCache::new()).unwrap();
    for text in ["1e+22", "1.2345678901234567e+30", "1.5e1", "1e0", "-3E5", "0e-7", "12.000"] {
        assert!(integers.contains(text), "{text}");
    }
    for text in ["1.5e0", "1e-1", "1.25e1", "0.5"] {
        assert!(!integers.contains(text), "{text}");
    }
    let positive = NumberSet::at_least(&Decimal::from(0), true).texts(&AutomataCache::new()).unwrap();
    assert!(positive.contains("5e-324") && positive.contains("1.7976931348623157e+308"));
    assert!(!positive.contains("-1e-9") && !positive.contains("0e5"));
}

#[test]
fn long_lists_are_written_as_usual() {
    let numbers = NumberSet::of((0..3_000).map(|number| decimal(number * 7_919)));
    let texts = numbers.texts(&AutomataCache::new()).unwrap();
    for number in (0..3_000).step_by(97) {
        for text in usual(number * 7_919).into_iter().filter(|text| !text.ends_with("00")) {
            assert!(texts.contains(&text), "{text}");
        }
    }
    assert!(!texts.contains("1") && !texts.contains("0.7918"));
}
