//! Numbers of schemas, written plainly: random schemas against validation keyword by keyword.

use domino::grammar::json_schema::{Draft, Numbers, SchemaErrorKind, SchemaOptions};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Schema, checking};

/// Denominator of the numbers in schemas and texts.
const UNIT: i64 = 1_000;

/// A number in thousandths as JSON.
fn value(thousandths: i64) -> Value {
    match thousandths % UNIT {
        0 => json!(thousandths / UNIT),
        _ => json!(thousandths as f64 / 1_000.0),
    }
}

fn quarter() -> impl Strategy<Value = i64> {
    (-40..40_i64).prop_map(|quarters| quarters * 250)
}

fn schema() -> impl Strategy<Value = Value> {
    let bound = prop::sample::select(vec!["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]);
    let steps = prop::sample::select(vec![100, 250, 500, 1_000, 1_500, 2_000, 3_000]);
    let types =
        vec![json!("integer"), json!("number"), json!(["integer", "null"]), json!(["string", "number"])];
    let leaf = prop_oneof![
        prop::sample::select(types).prop_map(|names| json!({ "type": names })),
        (bound, quarter()).prop_map(|(name, bound)| json!({ name: value(bound) })),
        steps.prop_map(|step| json!({ "multipleOf": value(step) })),
        prop::collection::vec(quarter(), 1..5)
            .prop_map(|list| json!({ "enum": list.into_iter().map(value).collect::<Vec<_>>() })),
        quarter().prop_map(|number| json!({ "const": value(number) })),
    ];
    leaf.prop_recursive(3, 10, 3, |inner| {
        let several = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            2 => several.clone().prop_map(|parts| json!({ "allOf": parts })),
            1 => several.prop_map(|parts| json!({ "anyOf": parts })),
            1 => inner.prop_map(|part| json!({ "not": part })),
        ]
    })
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![quarter(), -9_999..9_999_i64, (-120..120_i64).prop_map(|whole| whole * UNIT)]
}

fn thousandths(value: &Value) -> i64 {
    (value.as_f64().unwrap() * 1_000.0).round() as i64
}

/// Validates a number, keyword by keyword.
fn is_valid(schema: &Value, number: i64) -> bool {
    let is = |kind: &Value| kind == "number" || kind == "integer" && number % UNIT == 0;
    schema.as_object().unwrap().iter().all(|(keyword, value)| match keyword.as_str() {
        "type" => value.as_array().map_or_else(|| is(value), |kinds| kinds.iter().any(is)),
        "minimum" => number >= thousandths(value),
        "maximum" => number <= thousandths(value),
        "exclusiveMinimum" => number > thousandths(value),
        "exclusiveMaximum" => number < thousandths(value),
        "multipleOf" => number % thousandths(value) == 0,
        "const" => number == thousandths(value),
        "enum" => value.as_array().unwrap().iter().any(|one| number == thousandths(one)),
        "allOf" => value.as_array().unwrap().iter().all(|part| is_valid(part, number)),
        "anyOf" => value.as_array().unwrap().iter().any(|part| is_valid(part, number)),
        "not" => !is_valid(value, number),
        other => panic!("{other}"),
    })
}

/// Numbers that tell schemas apart: all that they name, numbers between, and some past them.
fn grid() -> impl Iterator<Item = i64> {
    (-600..=600).map(|place| place * 25)
}

/// Spellings of a number: the shortest, plain ones with an exponent or zeros, and needless ones.
fn spellings(number: i64) -> (String, Vec<String>, Vec<String>) {
    let plain =
        if number % UNIT == 0 { (number / UNIT).to_string() } else { (number as f64 / 1_000.0).to_string() };
    let (mantissa, power) = format!("{:e}", number as f64 / 1_000.0).split_once('e').map_or_else(
        || unreachable!("it is written with an exponent"),
        |(mantissa, power)| (mantissa.to_owned(), power.to_owned()),
    );
    let point = if plain.contains('.') { "" } else { "." };
    let mut odd = vec![
        format!("{plain}{point}000"),
        format!("{mantissa}e0{}", power.trim_start_matches('-')).replace("e00", "e0"),
        format!("{mantissa}{point}0e{power}"),
        format!("{plain}e0"),
    ];
    odd.extend((number == 0).then(|| "-0".to_owned()));
    let (zero, digits) =
        (format!("{plain}{point}0"), plain.split_once('.').map_or(0, |(_, digits)| digits.len()));
    let mut others = Vec::new();
    if digits < 2 { &mut others } else { &mut odd }.push(zero);
    others.extend((digits == 0).then(|| format!("{plain}.00")));
    others.extend((number != 0 && power != "0").then(|| format!("{mantissa}e{power}")));
    (plain, others, odd)
}

/// The digits before an exponent, in thousandths, if it has one.
fn mantissa(text: &str) -> Option<i64> {
    let (mantissa, _) = text.split_once('e')?;
    Some((mantissa.parse::<f64>().expect("a number") * 1_000.0).round() as i64)
}

/// True if a valid number without exponent begins with the digits of this one, which has one digit before
/// the point. Bounds and single numbers of schemas are less than 11 in size and divisors at most 3, so
/// numbers of two digits tell about all longer ones.
fn goes_on(schema: &Value, digits: i64) -> bool {
    let (sign, size) = (digits.signum(), digits.abs());
    let step = [1_000, 100, 10, 1].into_iter().find(|step| size % step == 0).unwrap_or(1);
    // Between the numbers that schemas name all are alike. One more than a multiple of 25 is none of these.
    let any = |mut range: std::ops::Range<i64>| {
        range.any(|size| [0, 1].contains(&(size % 25)) && is_valid(schema, sign * size))
    };
    any(size..size + step) || is_valid(schema, digits) || step == UNIT && any(size * 10..(size + step) * 10)
}

/// True if numbers of any size are valid.
fn is_unbounded(schema: &Value) -> bool {
    (20_000..26_001).any(|size| [size, -size].into_iter().any(|number| is_valid(schema, number)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A text is taken if and only if its value is valid and it is plain.
    #[test]
    fn plain_texts_of_valid_numbers_are_taken(
        schema in schema(),
        numbers in prop::collection::vec(number(), 40),
    ) {
        let text = schema.to_string();
        let members: Vec<bool> = grid().map(|number| is_valid(&schema, number)).collect();
        let whole = grid().zip(&members).all(|(number, valid)| !valid || number % UNIT == 0);
        let is_dense = members.windows(2).any(|pair| pair[0] && pair[1]);
        let plain = match Schema::new(&SchemaOptions::default(), &text) {
            Ok(plain) => plain,
            Err(error) => {
                prop_assert_eq!(error.kind(), &SchemaErrorKind::NoInstance, "{}: {}", text, error);
                prop_assert!(!members.contains(&true), "{}", text);
                return Ok(());
            }
        };
        let any = Schema::new(&checking(), &text).unwrap();
        for number in numbers {
            let valid = is_valid(&schema, number);
            let (short, others, odd) = spellings(number);
            prop_assert_eq!(plain.accepts(&short), valid, "{} under {}", short, text);
            prop_assert_eq!(any.accepts(&short), valid, "{} under {}", short, text);
            for other in others {
                prop_assert_eq!(any.accepts(&other), valid, "{} under {}", other, text);
                // No number that stands alone.
                let is_inside = |number| [-25, 0, 25].iter().all(|more| is_valid(&schema, number + more));
                let digits = mantissa(&other);
                let is_brought = digits.is_some_and(|digits| !goes_on(&schema, digits))
                    && (other.contains("e-") || !is_unbounded(&schema));
                if whole || !valid || is_brought {
                    prop_assert!(!plain.accepts(&other), "{} under {}", other, text);
                } else if is_dense && is_inside(number) && digits.is_none_or(is_inside) {
                    prop_assert!(plain.accepts(&other), "{} under {}", other, text);
                }
            }
            for odd in odd {
                prop_assert!(!plain.accepts(&odd), "{} under {}", odd, text);
            }
        }
    }

    /// Listed numbers have one text each, wherever they stand.
    #[test]
    fn listed_numbers_have_one_text(list in prop::collection::vec(quarter(), 1..6), deep in any::<bool>()) {
        let list: Vec<i64> = list.into_iter().collect();
        let inner = json!({ "enum": list.iter().map(|&number| value(number)).collect::<Vec<_>>() });
        let deeper = json!({ "const": { "a": [value(list[0])] } });
        let schema = if deep { deeper } else { inner }.to_string();
        let plain = Schema::new(&SchemaOptions::default(), &schema).unwrap();
        let around = |text: &str| if deep { format!("{{\"a\": [{text}]}}") } else { text.to_owned() };
        let (short, scientific, odd) = spellings(list[0]);
        prop_assert!(plain.accepts(&around(&short)), "{}", short);
        for text in scientific.into_iter().chain(odd) {
            prop_assert!(!plain.accepts(&around(&text)), "{}", text);
        }
    }
}

/// Schemas with names of integer types, combined in all ways.
fn typed() -> impl Strategy<Value = Value> {
    let bound = prop::sample::select(vec!["minimum", "exclusiveMaximum"]);
    let leaf = prop_oneof![
        prop::sample::select(vec!["int8", "uint8", "int16"]).prop_map(|name| json!({ "format": name })),
        Just(json!({ "type": "integer" })),
        (bound, -300..300_i64).prop_map(|(name, bound)| json!({ name: bound })),
        (-300..300_i64).prop_map(|number| json!({ "const": number })),
    ];
    leaf.prop_recursive(3, 10, 3, |inner| {
        let several = prop::collection::vec(inner.clone(), 1..4);
        let kind = prop::sample::select(vec!["allOf", "anyOf", "oneOf"]);
        prop_oneof![
            3 => (kind, several).prop_map(|(kind, parts)| json!({ kind: parts })),
            1 => inner.prop_map(|part| json!({ "not": part })),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// What is written within integer types is valid for those who take their names for remarks.
    #[test]
    fn what_is_written_within_types_is_valid(
        schema in typed(),
        numbers in prop::collection::vec(-400..400_i64, 40),
    ) {
        let text = schema.to_string();
        let [written, valid] =
            [SchemaOptions::default(), checking()].map(|options| Schema::new(&options, &text));
        prop_assert_eq!(written.is_ok(), valid.is_ok(), "{}", text);
        let (Ok(written), Ok(valid)) = (written, valid) else { return Ok(()) };
        for number in numbers.into_iter().chain([-129, -128, -1, 0, 127, 128, 255, 256, 32_768]) {
            let number = number.to_string();
            prop_assert!(!written.accepts(&number) || valid.accepts(&number), "{} under {}", number, text);
        }
    }
}

#[test]
fn typed_parsers_read_what_is_written() {
    let plain = |schema: &str| Schema::new(&SchemaOptions::default(), schema).unwrap();
    for (schema, accepted, refused) in [
        (
            r#"{"type": "integer", "enum": [1, 2, 3]}"#,
            &["2"][..],
            &["2.00000", "2.00e0", "2.0", "2e0", "0.2e1"][..],
        ),
        (r#"{"enum": [1.0, 2.0]}"#, &["1", "2"], &["1.0", "2.0"]),
        (r#"{"const": 2}"#, &["2"], &["2.00e+0000", "2.0"]),
        (r#"{"const": {"a": [2.50, 1e2]}}"#, &[r#"{"a": [2.5, 100]}"#], &[r#"{"a": [2.50, 100]}"#]),
        (r#"{"type": "integer", "minimum": 0}"#, &["33", "0"], &["33.0", "-0", "3.3e1"]),
        (
            r#"{"type": "number"}"#,
            &["2.5", "2.50", "2.0", "1e5"],
            &["1.758e9000000", "2.500", "1e400", "-0.0"],
        ),
        (r#"{"type": "number", "minimum": 0, "maximum": 1}"#, &["0.2", "1e-5"], &["2e-1", "2", "2.5e-7"]),
        (r#"{"type": "number", "multipleOf": 1}"#, &["3"], &["3.0", "3e0", "1e1", "18446744073709551616"]),
        (
            r#"{"type": "integer"}"#,
            &["123456789012345678", "-1234567890123456789", "9999999999999999999"],
            &["10000000000000000000", "-9999999999999999999"],
        ),
        (r#"{"type": "integer", "format": "int32"}"#, &["2147483647", "-2147483648"], &["2147483648"]),
        (r#"{"type": "integer", "format": "uint64"}"#, &["18446744073709551615"], &["-1"]),
        (r#"{"multipleOf": 2, "minimum": 1, "type": ["number", "null"]}"#, &["2", "null"], &["2.0", "4e0"]),
        (r#"{"allOf": [{"type": "number"}, {"type": "integer"}]}"#, &["3"], &["3.0"]),
        (r#"{"type": "integer", "minimum": 1e30}"#, &["1000000000000000000000000000000"], &["1e30", "2"]),
        (r#"{"type": "number", "multipleOf": 0.01}"#, &["19.99", "19.9", "19.90"], &["19.900", "19.999"]),
        (
            r#"{"type": "array", "items": {"type": "integer"}, "uniqueItems": true}"#,
            &["[1, 10]"],
            &["[1, 1]"],
        ),
    ] {
        let ours = plain(schema);
        for text in accepted {
            assert!(ours.accepts(text), "{schema} must accept {text}");
        }
        for text in refused {
            assert!(!ours.accepts(text), "{schema} must refuse {text}");
        }
    }
}

#[test]
fn all_spellings_of_a_number_are_taken_on_request() {
    let any = SchemaOptions::default().with_numbers(Numbers::Any);
    let two = Schema::new(&any, r#"{"const": 2}"#).unwrap();
    for text in ["2", "2.0", "2.00e+0000", "2E0"] {
        assert!(two.accepts(text), "{text}");
    }
    let fourth = Schema::new(&any.with_draft(Draft::Draft4), r#"{"type": "integer"}"#).unwrap();
    assert!(fourth.accepts("-0") && !fourth.accepts("1.0"));
}
