//! Faults with their places, the certainty that there are none, and the checks that need no further schema:
//! constants, sizes, and unique items.
//!
//! Values of JSON are compared with an answer only where it is certain. Numbers are read as `f64`: these keep
//! the order of the decimals, but decimals that are nearly equal become the same `f64`.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

pub(super) use crate::terminal::count;

/// Limit on the faults that are kept of one place; more would tell nothing.
const MOST: usize = 8;

/// A fault of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SchemaFault {
    /// A sentence, such as "missing required key `city`".
    pub(crate) message: String,
    /// The JSON pointer to the value that is wrong.
    pub(crate) instance: String,
    /// The JSON pointer to the keyword that forbids it, after `#`.
    pub(crate) schema: String,
    /// True if something is missing, so that more text could mend the fault.
    pub(super) lacks: bool,
}

/// The faults of one place. A place without faults is valid if `sure`, and undecided otherwise.
#[derive(Debug, Default)]
pub(super) struct Finding {
    pub(super) faults: Vec<SchemaFault>,
    pub(super) sure: bool,
}

impl Finding {
    pub(super) fn valid() -> Self {
        Self { faults: Vec::new(), sure: true }
    }

    pub(super) fn unknown() -> Self {
        Self { faults: Vec::new(), sure: false }
    }

    pub(super) fn fault(fault: SchemaFault) -> Self {
        Self { faults: vec![fault], sure: true }
    }

    pub(super) fn is_wrong(&self) -> bool {
        !self.faults.is_empty()
    }

    pub(super) fn is_right(&self) -> bool {
        self.faults.is_empty() && self.sure
    }

    /// True if more text could mend all faults.
    pub(super) fn lacks(&self) -> bool {
        self.faults.iter().all(|fault| fault.lacks)
    }

    pub(super) fn and(mut self, other: Self) -> Self {
        self.sure &= other.sure;
        self.faults.extend(other.faults);
        self.faults.truncate(MOST);
        self
    }
}

/// A place in an instance, and one in its schema.
#[derive(Debug, Clone)]
pub(super) struct Whereabouts {
    pub(super) instance: String,
    pub(super) schema: String,
    pub(super) depth: usize,
}

impl Whereabouts {
    /// The place under a keyword, at the same value.
    pub(super) fn under(&self, keyword: &str) -> Self {
        let schema = format!("{}/{}", self.schema, escaped(keyword));
        Self { instance: self.instance.clone(), schema, depth: self.depth + 1 }
    }

    /// The place of a member or an item, at the same keyword.
    pub(super) fn at(&self, name: &str) -> Self {
        Self { instance: format!("{}/{}", self.instance, escaped(name)), ..self.clone() }
    }

    /// Makes a fault of this place.
    pub(super) fn fault(&self, message: String) -> Finding {
        let Self { instance, schema, .. } = self.clone();
        Finding::fault(SchemaFault { message, instance, schema, lacks: false })
    }

    /// Makes a fault that more text could mend.
    pub(super) fn lack(&self, message: String) -> Finding {
        let mut found = self.fault(message);
        found.faults.iter_mut().for_each(|fault| fault.lacks = true);
        found
    }

    pub(super) fn fault_if(&self, wrong: bool, message: impl FnOnce() -> String) -> Finding {
        if wrong { self.fault(message()) } else { Finding::valid() }
    }

    pub(super) fn lack_if(&self, wrong: bool, message: impl FnOnce() -> String) -> Finding {
        if wrong { self.lack(message()) } else { Finding::valid() }
    }
}

/// Escapes a name as a step of a JSON pointer.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Limit on the characters of a value that are shown.
const LONGEST: usize = 40;
/// Limit on the values of a list that are named.
const MOST_NAMED: usize = 8;

/// Shows a value as it is written, cut if it is long.
pub(super) fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= LONGEST {
        return format!("`{text}`");
    }
    let start: String = text.chars().take(LONGEST).collect();
    format!("`{start}…`")
}

/// Names the kind of a value, with its article.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Joins names with commas, and with "or" before the last.
pub(super) fn alternatives(names: &[String]) -> String {
    let more = names.len().saturating_sub(MOST_NAMED);
    match names.split_last() {
        Some((only, [])) => only.clone(),
        Some(_) if more > 0 => format!("{} or {more} more", names[..MOST_NAMED].join(", ")),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => "nothing".to_owned(),
    }
}

/// Checks an instance by `enum` or `const`.
pub(super) fn constant(keyword: &str, value: &Value, instance: &Value, here: &Whereabouts) -> Finding {
    let one = std::slice::from_ref(value);
    let list: &[Value] = match value {
        Value::Array(list) if keyword == "enum" => list,
        _ => one,
    };
    let same: Vec<Option<bool>> = list.iter().map(|allowed| equal(allowed, instance)).collect();
    if same.contains(&Some(true)) {
        return Finding::valid();
    }
    if same.contains(&None) {
        return Finding::unknown();
    }
    let allowed: Vec<String> = list.iter().map(shown).collect();
    here.fault(match keyword {
        "const" => format!("{} is not {}", shown(instance), alternatives(&allowed)),
        _ => format!("{} is not one of {}", shown(instance), alternatives(&allowed)),
    })
}

/// Checks a size by a bound.
pub(super) fn size(
    keyword: &str,
    value: &Value,
    size: usize,
    here: &Whereabouts,
    (what, part): (&str, &str),
) -> Finding {
    let Some(bound) = value.as_u64().and_then(|bound| usize::try_from(bound).ok()) else {
        return Finding::unknown();
    };
    let has = format!("the {what} has {}", count(size, part));
    match keyword.starts_with("min") {
        true => here.lack_if(size < bound, || format!("{has}, and at least {bound} must be there")),
        false => here.fault_if(size > bound, || format!("{has}, and at most {bound} may be there")),
    }
}

/// Finds an item that is there twice.
pub(super) fn twice(items: &[Value], here: &Whereabouts) -> Finding {
    let mut sure = true;
    for (index, item) in items.iter().enumerate() {
        for (before, other) in items[..index].iter().enumerate() {
            match equal(item, other) {
                Some(true) => {
                    let message = format!("{} is there twice: item {before} is equal", shown(item));
                    return here.at(&index.to_string()).fault(message);
                }
                Some(false) => {}
                None => sure = false,
            }
        }
    }
    Finding { faults: Vec::new(), sure }
}

/// Ranks an alternative by its distance from the instance: first by its type, then by the constants of
/// members that tell alternatives apart, then by the number of faults.
pub(super) fn distance(found: &Finding, here: &Whereabouts) -> (bool, bool, usize) {
    let other_type =
        found.faults.iter().any(|fault| fault.instance == here.instance && fault.schema.ends_with("/type"));
    let told_apart =
        |fault: &SchemaFault| fault.schema.ends_with("/const") || fault.schema.ends_with("/enum");
    (other_type, found.faults.iter().any(told_apart), found.faults.len())
}

/// Compares two values for equality; `None` where their numbers may differ by less than `f64` can show.
fn equal(one: &Value, other: &Value) -> Option<bool> {
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
