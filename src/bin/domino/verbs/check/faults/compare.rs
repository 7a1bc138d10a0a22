//! Comparisons of JSON values, with an answer only where it is certain. Numbers are read as `f64`: these keep
//! the order of the decimals, but decimals that are nearly equal become the same `f64`.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

/// Compares two values for equality; `None` where their numbers may differ by less than `f64` can show.
pub(super) fn equal(one: &Value, other: &Value) -> Option<bool> {
    let all = |same: &mut dyn Iterator<Item = Option<bool>>| {
        let same: Vec<Option<bool>> = same.collect();
        if same.contains(&Some(false)) {
            return Some(false);
        }
        (!same.contains(&None)).then_some(true)
    };
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => match order(one, other)? {
            (Ordering::Equal, sure) => sure.then_some(true),
            _ => Some(false),
        },
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            all(&mut one.iter().zip(other).map(|(one, other)| equal(one, other)))
        }
        (Value::Object(one), Value::Object(other)) if one.len() == other.len() => all(&mut one
            .iter()
            .map(|(name, value)| other.get(name).map_or(Some(false), |other| equal(value, other)))),
        (one, other) => Some(one == other),
    }
}

/// The order of two numbers, and whether numbers that compare as equal certainly are.
fn order(one: &Number, other: &Number) -> Option<(Ordering, bool)> {
    let whole = |number: &Number| number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    if let (Some(one), Some(other)) = (whole(one), whole(other)) {
        return Some((one.cmp(&other), true));
    }
    // Rounding keeps the order of decimals, so different doubles come from different decimals. Short decimals
    // are equal if their doubles are.
    let order = one.as_f64()?.partial_cmp(&other.as_f64()?)?;
    Some((order, false))
}

/// A bound on numbers.
pub(super) struct Bound<'a> {
    number: &'a Number,
    /// True for an upper bound.
    above: bool,
    exclusive: bool,
}

impl<'a> Bound<'a> {
    /// The bound of a keyword; `None` for a keyword that bounds nothing by itself, as `exclusiveMinimum:
    /// true` of draft 4.
    pub(super) fn of(schema: &Map<String, Value>, keyword: &str, value: &'a Value) -> Option<Self> {
        let number = value.as_number()?;
        let above = keyword.ends_with("aximum");
        let other = if above { "exclusiveMaximum" } else { "exclusiveMinimum" };
        let exclusive = keyword == other || schema.get(other) == Some(&Value::Bool(true));
        Some(Self { number, above, exclusive })
    }

    /// Says what is wrong with a number, if anything is; `None` where that is uncertain.
    pub(super) fn of_number(&self, number: &Number) -> Option<Option<String>> {
        let (order, sure) = order(number, self.number)?;
        let (bound, keyword) = (self.number, if self.above { "maximum" } else { "minimum" });
        let past = if self.above { Ordering::Greater } else { Ordering::Less };
        if order == past {
            let side = if self.above { "over" } else { "under" };
            return Some(Some(format!("`{number}` is {side} the {keyword} {bound}")));
        }
        match (order, self.exclusive, sure) {
            (Ordering::Equal, true, true) => {
                Some(Some(format!("`{number}` is the exclusive {keyword} itself")))
            }
            (Ordering::Equal, _, false) => None,
            _ => Some(None),
        }
    }
}
