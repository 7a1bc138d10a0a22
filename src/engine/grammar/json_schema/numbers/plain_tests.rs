//! Comparisons of plain texts with the predicate that defines them, and with parsers of types.

use proptest::prelude::*;

use super::*;

fn parsed(text: &str) -> Decimal {
    Decimal::parse(text).unwrap()
}

fn plain(set: &NumberSet) -> CharDfa {
    plain::texts(&set.values, set.plain.as_ref(), &AutomataCache::new()).unwrap()
}

fn of(bounds: &[(&str, bool)]) -> NumberSet {
    bounds.iter().fold(NumberSet::all(), |set, (bound, is_most)| {
        let bound = parsed(bound);
        let part =
            if *is_most { NumberSet::at_most(&bound, false) } else { NumberSet::at_least(&bound, false) };
        set.intersect(&part).unwrap()
    })
}

fn integers() -> NumberSet {
    NumberSet::integers(Integers::ByValue)
}

fn all_are(texts: &CharDfa, accepted: &[&str], refused: &[&str]) {
    for text in accepted {
        assert!(texts.contains(text), "{text}");
    }
    for text in refused {
        assert!(!texts.contains(text), "{text}");
    }
}

#[test]
fn whole_numbers_are_digits_of_64_bits() {
    let whole = plain(&integers());
    let (least, most) = (i64::MIN.to_string(), i64::MAX.to_string());
    all_are(&whole, &["0", "7", "-1", "100", &least, &most], &["-0", "1.0", "1e2", "1E0", "0.0", "01", ""]);
    let nines = "9".repeat(19);
    all_are(&whole, &[&nines], &["-9223372036854775809", "10000000000000000000", "18446744073709551615"]);
    // The 20 digits of unsigned numbers, where there are no others or the set names such a number.
    let largest = "18446744073709551615";
    for bounds in [&[("0", false)], &[("1", false)], &[(largest, true)], &[("1e19", true)]] {
        let most = if bounds[0].0 == "1e19" { "10000000000000000000" } else { largest };
        let unsigned = plain(&of(bounds).intersect(&integers()).unwrap());
        all_are(&unsigned, &["7", &nines, most], &["18446744073709551616", "99999999999999999999"]);
    }
    all_are(&plain(&of(&[("-1", false)]).intersect(&integers()).unwrap()), &["-1", &nines], &[largest]);
    let threes = plain(&NumberSet::multiples_of(&parsed("3")).unwrap());
    all_are(&threes, &["0", "3", "-6", &nines], &["1", "3.0", "3e0", "10000000000000000002"]);
    // Remainders and digits are too many for one automaton: without a bound, but plain.
    let large = plain(&NumberSet::multiples_of(&parsed("4999")).unwrap());
    let past = parsed("4999").times(&10_000_000_000_000_000_000_u64.into());
    all_are(&large, &["4999", "-9998", &plain::fixed(&past)], &["4999.0", "4.999e3", "1"]);
    // Half of the multiples of one half within narrow bounds is whole.
    let halves = NumberSet::multiples_of(&parsed("0.5")).unwrap();
    let one = halves.intersect(&of(&[("0.6", false), ("1.4", true)])).unwrap();
    all_are(&plain(&one), &["1"], &["1.0", "1e0", "0.5", "0"]);
}

#[test]
fn whole_numbers_past_64_bits_need_a_bound_past_64_bits() {
    let within = |bounds: &[(&str, bool)]| plain(&of(bounds).intersect(&integers()).unwrap());
    let past = "18446744073709551616";
    let far = format!("1{}", "0".repeat(30));
    all_are(&within(&[("0", false)]), &["18446744073709551615"], &[past, &far]);
    all_are(&within(&[("1e30", false)]), &[&far, &format!("{far}7")], &[past, "1e30", "0"]);
    all_are(
        &within(&[("1e30", true)]),
        &["0", past, &far, "-5"],
        &[&format!("{far}0"), "-9223372036854775809"],
    );
    all_are(&within(&[("-1e30", false)]), &["-9223372036854775809", &format!("-{far}")], &[past]);
    // The set may begin right behind the numbers that 64 bits hold.
    let behind = NumberSet::at_least(&parsed("18446744073709551615"), true).intersect(&integers()).unwrap();
    all_are(&plain(&behind), &[past, &far], &["18446744073709551615"]);
    let listed = NumberSet::of(["36893488147419103232", "1e22", "2"].map(parsed));
    all_are(&plain(&listed), &["36893488147419103232", "10000000000000000000000", "2"], &["1e22", "2.0"]);
    let large = NumberSet::multiples_of(&parsed("1e20")).unwrap();
    all_are(&plain(&large), &["0", "100000000000000000000", "-300000000000000000000"], &["1e20", "1"]);
    let float = format!("1{}", "0".repeat(308));
    all_are(&within(&[("1e300", false)]), &[&float], &[&format!("{float}0"), &far]);
    let huge = format!("1{}", "0".repeat(400));
    all_are(&within(&[("1e400", false)]), &[&huge, &format!("{huge}1")], &[&float]);
}

#[test]
fn other_numbers_are_short_and_finite() {
    let all = plain(&NumberSet::all());
    all_are(
        &all,
        &["0", "2", "-2.5", "0.001", "1e5", "1.5E+300", "2e-7", "-5e-324", "1.7976931348623157e308", "1e22"],
        &[
            "2.000", "2.500", "-0", "-0.0", "-0.00", "0.000", "0e5", "1e05", "1e+05", "1e-07", "1e0",
            "1.50e3", "1.0e3", "12e3", "0.5e1",
        ],
    );
    // Texts of prices, and of the floats of typed languages.
    all_are(
        &all,
        &["0.0", "0.00", "2.0", "-2.0", "2.00", "2.50", "19.90", "-0.50", "100.00"],
        &["2.5000", "19.900", "00.0", "0.000"],
    );
    all_are(
        &all,
        &[],
        &["1.7976931348623158e308", "1e309", "-1e309", "1e-324", "1e9000000", "1.758e9000000"],
    );
    all_are(
        &all,
        &[&"9".repeat(19), &format!("-{}.5", "9".repeat(19))],
        &[&"9".repeat(20), &"1".repeat(310)],
    );
    let sevens = "7".repeat(17);
    let long =
        [format!("3.{sevens}"), format!("-0.{sevens}"), format!("0.00000{sevens}"), format!("3.{sevens}e9")];
    long.iter().for_each(|text| all_are(&all, &[text], &[&text.replacen('7', "77", 1)]));
    all_are(&all, &["2e-7"], &["0.0000002", &format!("0.{}1", "0".repeat(400))]);
    let unsigned = plain(&of(&[("0.5", false)]));
    all_are(&unsigned, &[&format!("{}.25", "9".repeat(20))], &[&"9".repeat(21)]);
    let large = plain(&of(&[("1e30", true)]));
    all_are(&large, &[&"9".repeat(30), "1e30", "-9"], &[&"9".repeat(31), &format!("-{}", "9".repeat(20))]);
    // The only numbers of a set may have more digits than others.
    let narrow = [("0.12345678901234567892", false), ("0.12345678901234567894", true)];
    all_are(&plain(&of(&narrow)), &["0.12345678901234567893"], &["0.1234567890123456789"]);
    let steps = plain(&NumberSet::multiples_of(&parsed("0.25")).unwrap());
    all_are(
        &steps,
        &["0.25", "-7.5", "-7.50", "3.0", "2e300", &"4".repeat(19)],
        &["0.250", "1e309", "1e0", "0.3", "0.30", "-0", &"4".repeat(20)],
    );
    let tiny = plain(&of(&[("1e-400", false), ("1e-390", true)]));
    all_are(&tiny, &["1e-400", "1.5e-395"], &["1e-401", "1e-5"]);
}

/// Ranges of types narrow what is written, and nothing else.
#[test]
fn integer_types_hold_of_what_is_written() {
    let typed = |name| NumberSet::writing_type(name, Integers::ByValue).unwrap().unwrap();
    for (name, least, most) in [
        ("int8", "-128", "127"),
        ("int16", "-32768", "32767"),
        ("int32", "-2147483648", "2147483647"),
        ("int64", "-9223372036854775808", "9223372036854775807"),
        ("int", "-9223372036854775808", "9223372036854775807"),
        ("uint8", "0", "255"),
        ("uint16", "0", "65535"),
        ("uint32", "0", "4294967295"),
        ("uint64", "0", "18446744073709551615"),
        ("uint", "0", "18446744073709551615"),
    ] {
        let set = typed(name).intersect(&integers()).unwrap();
        let next = |text: &str, by: i128| (text.parse::<i128>().unwrap() + by).to_string();
        let (before, after) = (next(least, -1), next(most, 1));
        all_are(&plain(set.part()), &[least, most, "7"], &[&before, &after, "1.0"]);
        assert!(set.contains(&parsed(&before)) && set.contains(&parsed(&after)), "{name}");
        assert!(typed(name).complement().unwrap().is_empty() && !typed(name).is_all(), "{name}");
        // Either of two sets, and all of the first that are not in the other.
        let either = typed(name).union(&NumberSet::of([parsed(&after)])).unwrap();
        all_are(&plain(either.part()), &[&after, most], &[&before]);
        let others = set.subtract(&NumberSet::of([parsed(most)])).unwrap();
        all_are(&plain(others.part()), &[least], &[most, &after]);
        // A set without a number of the type is written as if there were none.
        let beyond = set.intersect(&NumberSet::at_least(&parsed(&after), false)).unwrap();
        all_are(&plain(beyond.part()), &[&after], &[most]);
    }
    assert_eq!(NumberSet::writing_type("int4", Integers::ByValue), Ok(None));
}

#[test]
fn numbers_that_stand_alone_have_one_text() {
    for (number, text, others) in [
        ("2", "2", &["2.0", "2e0", "0.2e1"][..]),
        ("15", "15", &["1.5e1", "15.0"]),
        ("1.50", "1.5", &["1.50", "1.5e0"]),
        ("-0.0", "0", &["-0", "0.0"]),
        ("1e20", "100000000000000000000", &["1e20", "1e+20"]),
        ("1e21", "1e+21", &["1e21", "1000000000000000000000"]),
        ("0.000001", "0.000001", &["1e-6"]),
        ("-1.5e-7", "-1.5e-7", &["-0.00000015", "-1.5E-7", "-1.5e-07"]),
        ("123456789012345678901.5", "123456789012345678901.5", &[]),
    ] {
        // The set has a fraction too, so that it is not one of whole numbers.
        let set = NumberSet::of([parsed(number), parsed("0.75")]);
        all_are(&plain(&set), &[text, "0.75"], others);
        all_are(&plain(&set), &[], &["7.5e-1", "0.750"]);
        let above = NumberSet::at_least(&parsed("1e25"), false);
        all_are(&plain(&set.union(&above).unwrap()), &[text, "1e25", "2.5E+30"], others);
    }
    let digits = format!("1{}", "0".repeat(4_000));
    all_are(&plain(&NumberSet::of([parsed("1e4000")])), &[&digits], &["1e4000"]);
    let few = NumberSet::multiples_of(&parsed("1e4000")).unwrap();
    let few = few.intersect(&of(&[("1", false), ("3e4000", true)])).unwrap();
    all_are(&plain(&few), &[&digits, &format!("2{}", &digits[1..])], &["1e4000", "0"]);
}

#[test]
fn integers_of_draft_4_may_need_a_point() {
    let plain_integers = NumberSet::integers(Integers::BySpelling);
    all_are(&plain(&plain_integers), &["1", "-3", "0"], &["1.0", "-0", "1e2"]);
    let others = plain_integers.complement().unwrap();
    all_are(
        &plain(&others),
        &["1.0", "-2.0", "0.0", "1.5", "1.50", "1e2"],
        &["1", "1.000", "1.500", "0", "-0.0", "1e0"],
    );
    let one = others.intersect(&NumberSet::of([parsed("1")])).unwrap();
    all_are(&plain(&one), &["1.0"], &["1", "1e0", "1.00"]);
}

#[test]
fn exponents_do_not_bring_a_number_into_its_set() {
    // The 2 of `2e-1` would have to be followed by one, which no model means that writes 2.
    let share = plain(&of(&[("0", false), ("1", true)]));
    all_are(
        &share,
        &["0", "1", "1.0", "0.25", "0.0000002", "1e-5", "1E-300"],
        &["2", "2e-1", "2.5e-7", "9.9E-1", "1.5e-1", "-1e-5"],
    );
    let stars = plain(&of(&[("-3", false), ("5", true)]));
    all_are(&stars, &["-3", "5", "4.5e-2", "5e-1", "-2.5e-7"], &["5.5e-1", "6e-1", "-3.5e-1", "-4e-3"]);
    // Two digits and more, where the set ends.
    let adults = plain(&of(&[("18", false), ("99.5", true)]));
    all_are(&adults, &["18", "99.5", "2e1", "50.25"], &["5.5e1", "2.5e1", "1.8e1"]);
    // A large number may have no other text.
    let large = plain(&of(&[("18", false)]));
    all_are(&large, &["5.5e300", "2.5e1", "1e2", "18.5"], &["1e-2"]);
    let below = plain(&of(&[("-18", true)]));
    all_are(&below, &["-5.5e300", "-18.5"], &["-18.5e-1", "-5.5e-1"]);
    // Numbers that nobody writes without exponent.
    all_are(&plain(&of(&[("0", false), ("1e-9", true)])), &["2.5e-10", "1e-9", "0"], &["1e-8"]);
    // Values of `enum` stay as they are written.
    let rates = NumberSet::of(["2.5e-7", "0.5"].map(parsed)).union(&NumberSet::of([parsed("1e-9")])).unwrap();
    all_are(&plain(&rates), &["2.5e-7", "0.5", "1e-9"], &["5e-1"]);
}

/// True if a text looks like a plain one.
fn is_usual(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, power) = unsigned.split_once(['e', 'E']).map_or((unsigned, None), |(m, p)| (m, Some(p)));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').map_or((mantissa, None), |(w, f)| (w, Some(f)));
    let no_zeros_lead = digits(whole) && (whole == "0" || !whole.starts_with('0'));
    let no_zeros_end = fraction.is_none_or(|fraction| {
        let may_end_in_zeros = power.is_none() && fraction.len() <= 2;
        digits(fraction) && (may_end_in_zeros || !fraction.ends_with('0'))
    });
    let one_digit = power.is_none_or(|_| whole.len() == 1 && whole != "0");
    let has_power = power.is_none_or(|power| {
        let power = power.strip_prefix(['-', '+']).unwrap_or(power);
        digits(power) && !power.starts_with('0')
    });
    let negative_zero =
        text.starts_with('-') && power.is_none() && !mantissa.contains(|c| matches!(c, '1'..='9'));
    no_zeros_lead && no_zeros_end && one_digit && has_power && !negative_zero
}

/// True if a text has no more digits than every set allows: 19 before the point, 17 behind it, and up to 5
/// zeros before these in a number less than 1.
fn has_few_digits(text: &str) -> bool {
    let unsigned = text.trim_start_matches('-').split(['e', 'E']).next().unwrap_or_default();
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let behind = if whole == "0" { fraction.trim_start_matches('0') } else { fraction };
    whole.len() <= 19 && behind.len() <= 17 && (behind.is_empty() || fraction.len() - behind.len() <= 5)
}

fn is_digits(text: &str) -> bool {
    is_usual(text) && !text.contains(['.', 'e', 'E'])
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        r"-?(0|[1-9][0-9]{0,3})(\.[0-9]{1,4})?([eE][+-]?[0-9]{1,3})?",
        r"-?[1-9](\.[0-9]{0,3}[1-9])?[eE][+-]?[1-9][0-9]{0,2}",
        r"-?[1-9][0-9]{17,21}",
        any::<f64>().prop_map(|float| format!("{float}")),
        any::<f64>().prop_map(|float| format!("{float:e}")),
    ]
}

/// True if a number of a set with one bound or none, of less than 100 in size, begins with these digits.
fn may_end(set: &NumberSet, digits: &str) -> bool {
    let more = if digits.contains('.') { "9".repeat(24) } else { "99".to_owned() };
    [digits, &format!("{digits}{more}")].iter().any(|text| set.contains(&parsed(text)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The texts of all numbers and of all integers are those of the predicate that their types can hold.
    #[test]
    fn plain_texts_are_those_of_the_predicate(texts in prop::collection::vec(text(), 40)) {
        let (all, whole) = (plain(&NumberSet::all()), plain(&integers()));
        for text in texts.iter().filter(|text| !text.contains(['i', 'N'])) {
            let number = text.parse::<f64>().unwrap();
            let is_lost = number == 0.0 && text.contains(['e', 'E']) && !parsed(text).is_zero();
            let held = number.is_finite() && !is_lost;
            // Larger numbers are rounded to the largest, and smaller ones to the smallest; nobody writes
            // these two.
            if number.abs() == f64::MAX || number.abs() == f64::from_bits(1) {
                continue;
            }
            let few = has_few_digits(text);
            prop_assert_eq!(all.contains(text), is_usual(text) && held && few, "{}", text);
            let held = text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok();
            prop_assert_eq!(whole.contains(text), is_digits(text) && held && few, "{}", text);
        }
    }

    /// No value of 64 bits is lost, whatever the bounds, but for those of 20 digits in a set with negative
    /// numbers that names none of 20 digits.
    #[test]
    fn integers_of_64_bits_have_a_text(signed: i64, unsigned: u64, low: i64, high: u64) {
        for bounds in [&[][..], &[(low.to_string(), false)], &[(high.to_string(), true)]] {
            let bounds: Vec<(&str, bool)> = bounds.iter().map(|(text, most)| (&**text, *most)).collect();
            let set = of(&bounds).intersect(&integers()).unwrap();
            let texts = plain(&set);
            let is_roomy = |&(bound, most): &(&str, bool)| match most {
                true => bound.len() == 20,
                false => !bound.starts_with('-'),
            };
            let most = if bounds.iter().any(is_roomy) { 20 } else { 19 };
            for text in [signed.to_string(), unsigned.to_string(), low.to_string(), high.to_string()] {
                let fits = text.trim_start_matches('-').len() <= most;
                prop_assert_eq!(texts.contains(&text), set.contains(&parsed(&text)) && fits, "{}", text);
                let odd = [text.clone() + ".0", text + "e0"];
                prop_assert!(odd.iter().all(|text| !texts.contains(text)), "{:?}", odd);
            }
        }
    }

    /// Every float has a text, and those in the fewest digits, as `serde_json` writes them, but for those
    /// whose exponent brings them into the set. Needless digits are refused where there are no bounds.
    #[test]
    fn floats_have_their_shortest_texts(
        bits: u64, near in -1e3..1e3_f64, bound: f64, least in any::<bool>(),
    ) {
        let bounded = bound.is_finite().then(|| {
            let bound = parsed(&format!("{bound:e}"));
            if least { NumberSet::at_least(&bound, false) } else { NumberSet::at_most(&bound, false) }
        });
        for float in [f64::from_bits(bits), near].into_iter().filter(|float| float.is_finite()) {
            let serde = serde_json::to_string(&float).unwrap();
            let scientific = format!("{float:e}");
            for set in bounded.iter().chain([&NumberSet::all()]) {
                let texts = plain(set);
                let all = [&*format!("{float}"), &serde, &scientific];
                for text in all {
                    let needless = ["-0", "-0.0"].contains(&text) || text.ends_with("e0");
                    let brought = text.split_once("e-").is_some_and(|(digits, _)| !may_end(set, digits));
                    let wanted = set.contains(&parsed(text)) && !needless && !brought;
                    if has_few_digits(text) || set.is_all() {
                        prop_assert_eq!(texts.contains(text), wanted && has_few_digits(text), "{}", text);
                    } else {
                        prop_assert!(wanted || !texts.contains(text), "{}", text);
                    }
                }
                let is_written = all.iter().any(|text| texts.contains(text)) || float == 0.0;
                prop_assert_eq!(is_written, set.contains(&parsed(&serde)), "{}", serde);
            }
        }
    }

    /// Numbers that `written` says have a text have one.
    #[test]
    fn sets_reported_as_writable_have_a_text(
        low in prop::sample::select(vec!["-1e400", "-1e30", "-7", "0", "1", "1e19", "18446744073709551610"]),
        high in prop::sample::select(vec!["1e-320", "3", "1e19", "18446744073709551617", "1e30", "1e309"]),
        divisor in prop::sample::select(vec!["1", "2", "7e17", "0.5", "1e19"]),
        sides in 0..4_u8,
        count in -2_000..2_000_i64,
    ) {
        let mut set = NumberSet::multiples_of(&parsed(divisor)).unwrap();
        for (side, bound, most) in [(1, low, false), (2, high, true)] {
            if sides & side > 0 {
                set = set.intersect(&of(&[(bound, most)])).unwrap();
            }
        }
        let (texts, written) = (plain(&set), set.written(Numbers::Plain).unwrap());
        prop_assert_eq!(texts.is_empty(), set.is_empty());
        prop_assert_eq!(written.is_empty(), set.is_empty());
        for number in [low, high, "0", "1e400", "-1e29", "2e30", "4e308"].map(parsed).into_iter()
            .chain([parsed(divisor).times(&count.into())])
        {
            let (sign, digits, decade) = texts::parts(&number);
            let scientific = format!("{sign}{}.{}e{decade}", &digits[..1], &digits[1..]).replace(".e", "e");
            let fixed = plain::fixed(&number);
            let is_written = [&fixed, &scientific].into_iter().any(|text| texts.contains(text));
            // What has more digits than are written has a text only where the set names such a number.
            if has_few_digits(&fixed) || has_few_digits(&scientific) {
                prop_assert_eq!(is_written, written.contains(&number), "{}", scientific);
            } else {
                prop_assert!(!is_written || written.contains(&number), "{}", scientific);
            }
        }
    }
}
