//! Messages and tools as values of a template, with the methods of Python's strings, dictionaries and lists.

use std::{collections::HashMap, sync::Arc};

use minijinja::value::{Enumerator, Kwargs, Object, ObjectRepr, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State, Value};
use serde_json::Value as Json;

use super::budget::{RenderBudget, passed};

/// Limit on the characters that `strip` looks for, since it compares each with each.
const STRIPPED: usize = 256;

/// Calls a method of a value.
///
/// # Errors
/// If there is no such method, its arguments are wrong, or its result is too large.
pub(super) fn call(
    value: &Value,
    method: &str,
    arguments: &[Value],
    budget: &RenderBudget,
) -> Result<Value, Error> {
    match (value.kind(), value.as_str()) {
        (_, Some(text)) => {
            budget.work(text.len())?;
            of_text(text, method, arguments, budget)
        }
        (ValueKind::Map, None) => of_mapping(value, method, arguments, budget),
        (ValueKind::Seq | ValueKind::Iterable, None) => of_list(value, method, arguments, budget),
        _ => Err(unknown(value, method)),
    }
}

fn unknown(value: &Value, method: &str) -> Error {
    Error::new(ErrorKind::UnknownMethod, format!("{} has no method named {method}", value.kind()))
}

fn of_mapping(
    value: &Value,
    method: &str,
    arguments: &[Value],
    budget: &RenderBudget,
) -> Result<Value, Error> {
    let get = |key: &Value| value.get_item(key);
    match method {
        "get" => {
            let (key, default): (Value, Option<Value>) = from_args(arguments)?;
            let found = get(&key)?;
            Ok(if found.is_undefined() { default.unwrap_or_else(|| Value::from(())) } else { found })
        }
        "keys" | "values" | "items" => {
            let () = from_args(arguments)?;
            let keys = budget.items(value)?.into_iter();
            let list: Result<Vec<Value>, Error> = match method {
                "keys" => keys.map(Ok).collect(),
                "values" => keys.map(|key| get(&key)).collect(),
                _ => keys.map(|key| get(&key).map(|value| Value::from(vec![key, value]))).collect(),
            };
            list.map(Value::from)
        }
        // The member may be callable, such as a macro of a namespace.
        _ => match get(&Value::from(method))? {
            member if member.is_undefined() => Err(unknown(value, method)),
            _ => Err(Error::new(ErrorKind::InvalidOperation, format!("`{method}` is no function"))),
        },
    }
}

fn of_list(value: &Value, method: &str, arguments: &[Value], budget: &RenderBudget) -> Result<Value, Error> {
    let (what,): (Value,) = match method {
        "count" | "index" => from_args(arguments)?,
        _ => return Err(unknown(value, method)),
    };
    let items = budget.items(value)?;
    if method == "count" {
        return Ok(Value::from(items.iter().filter(|item| **item == what).count()));
    }
    let missing = || Error::new(ErrorKind::InvalidOperation, "index: it is not in the list");
    items.iter().position(|item| *item == what).map(Value::from).ok_or_else(missing)
}

fn of_text(text: &str, method: &str, arguments: &[Value], budget: &RenderBudget) -> Result<Value, Error> {
    if let Some(answer) = of_letters(text, method) {
        return from_args(arguments).map(|()| answer);
    }
    match method {
        "strip" | "lstrip" | "rstrip" => {
            let (chars,): (Option<String>,) = from_args(arguments)?;
            stripped(text, method, chars.as_deref())
        }
        "startswith" | "endswith" => {
            let (what,): (Value,) = from_args(arguments)?;
            let fits = |part: &str| match method {
                "startswith" => text.starts_with(part),
                _ => text.ends_with(part),
            };
            match what.as_str() {
                Some(part) => Ok(Value::from(fits(part))),
                None => {
                    Ok(Value::from(budget.items(&what)?.iter().any(|part| part.as_str().is_some_and(fits))))
                }
            }
        }
        "removeprefix" | "removesuffix" => {
            let (part,): (&str,) = from_args(arguments)?;
            let rest =
                if method == "removeprefix" { text.strip_prefix(part) } else { text.strip_suffix(part) };
            Ok(Value::from(rest.unwrap_or(text)))
        }
        "find" | "rfind" | "index" | "count" => found(text, method, arguments),
        "replace" => {
            let (old, new, count): (&str, &str, Option<i64>) = from_args(arguments)?;
            replaced(text, old, new, count, budget).map(Value::from)
        }
        "join" => {
            let (parts,): (Value,) = from_args(arguments)?;
            joined(&parts, text, budget).map(Value::from)
        }
        "split" | "rsplit" => split(text, method == "rsplit", arguments, budget),
        "splitlines" => {
            let (ends,): (Option<bool>,) = from_args(arguments)?;
            let parts: Vec<&str> = match ends {
                Some(true) => text.split_inclusive('\n').collect(),
                _ => text.lines().collect(),
            };
            list(parts, budget)
        }
        _ => Err(unknown(&Value::from(text), method)),
    }
}

/// Methods without arguments: tests of letters, and changes of case.
fn of_letters(text: &str, method: &str) -> Option<Value> {
    let every = |test: fn(char) -> bool| Value::from(!text.is_empty() && text.chars().all(test));
    let cased = |own: fn(char) -> bool, other: fn(char) -> bool| {
        Value::from(text.chars().any(own) && !text.chars().any(other))
    };
    Some(match method {
        "upper" => Value::from(text.to_uppercase()),
        "lower" => Value::from(text.to_lowercase()),
        "title" => Value::from(titled(text, true)),
        "capitalize" => Value::from(titled(text, false)),
        "isdigit" | "isnumeric" | "isdecimal" => every(char::is_numeric),
        "isalpha" => every(char::is_alphabetic),
        "isalnum" => every(char::is_alphanumeric),
        "isspace" => every(char::is_whitespace),
        "isascii" => Value::from(text.is_ascii()),
        "isupper" => cased(char::is_uppercase, char::is_lowercase),
        "islower" => cased(char::is_lowercase, char::is_uppercase),
        _ => return None,
    })
}

/// Capitalises each word, or only the text: a capital first, small letters behind it.
fn titled(text: &str, words: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_first = true;
    for c in text.chars() {
        if is_first {
            out.extend(c.to_uppercase());
        } else {
            out.extend(c.to_lowercase());
        }
        is_first = words && !c.is_alphabetic();
    }
    out
}

fn stripped(text: &str, method: &str, chars: Option<&str>) -> Result<Value, Error> {
    let chars: Option<Vec<char>> = chars.map(|chars| chars.chars().collect());
    if chars.as_ref().is_some_and(|chars| chars.len() > STRIPPED) {
        return Err(passed("strip looks for too many characters"));
    }
    let goes = |c: char| chars.as_ref().map_or_else(|| c.is_whitespace(), |chars| chars.contains(&c));
    let text = if method == "rstrip" { text } else { text.trim_start_matches(goes) };
    Ok(Value::from(if method == "lstrip" { text } else { text.trim_end_matches(goes) }))
}

/// Implements `find`, `rfind`, `index` and `count`. Places are counted in characters, as in Python.
fn found(text: &str, method: &str, arguments: &[Value]) -> Result<Value, Error> {
    let (part,): (&str,) = from_args(arguments)?;
    if method == "count" {
        let count = if part.is_empty() { text.chars().count() + 1 } else { text.matches(part).count() };
        return Ok(Value::from(count));
    }
    let at = if method == "rfind" { text.rfind(part) } else { text.find(part) };
    match at {
        Some(at) => Ok(Value::from(text[..at].chars().count())),
        None if method == "index" => Err(Error::new(ErrorKind::InvalidOperation, "substring not found")),
        None => Ok(Value::from(-1)),
    }
}

/// Implements `text.replace(old, new, count)`.
///
/// # Errors
/// If the result is too long.
pub(super) fn replaced(
    text: &str,
    old: &str,
    new: &str,
    count: Option<i64>,
    budget: &RenderBudget,
) -> Result<String, Error> {
    let most = match count {
        Some(count) if count >= 0 => usize::try_from(count).ok(),
        _ => None,
    };
    let places = if old.is_empty() { text.chars().count() + 1 } else { text.matches(old).count() };
    let places = most.map_or(places, |most| places.min(most));
    budget.text(places.checked_mul(new.len()).and_then(|more| more.checked_add(text.len())))?;
    Ok(match most {
        Some(most) => text.replacen(old, new, most),
        None => text.replace(old, new),
    })
}

/// Implements `between.join(parts)`; parts that are no strings are written as by Python's `str`.
///
/// # Errors
/// If the result is too long.
pub(super) fn joined(parts: &Value, between: &str, budget: &RenderBudget) -> Result<String, Error> {
    let mut out = String::new();
    for (index, part) in budget.items(parts)?.iter().enumerate() {
        if index > 0 {
            out.push_str(between);
        }
        out.push_str(&super::python::text(part, budget)?);
        budget.fits(Some(out.len()))?;
    }
    budget.work(out.len())?;
    Ok(out)
}

fn split(text: &str, from_end: bool, arguments: &[Value], budget: &RenderBudget) -> Result<Value, Error> {
    let (between, most, names): (Option<Value>, Option<i64>, Kwargs) = from_args(arguments)?;
    let between = between.or(names.get("sep")?).filter(|between| !between.is_none());
    let most: Option<i64> = most.or(names.get("maxsplit")?);
    names.assert_all_used()?;
    // The number of parts, which is one more than that of cuts; `None` for all.
    let most = most.and_then(|most| usize::try_from(most).ok()?.checked_add(1));
    let Some(between) = between else {
        if from_end && most.is_some() {
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                "rsplit without a separator is not supported",
            ));
        }
        return list(by_spaces(text, most), budget);
    };
    let between = between.as_str().filter(|between| !between.is_empty());
    let between = between.ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "split: empty separator"))?;
    budget.work(text.len())?;
    let most = most.unwrap_or(usize::MAX);
    if !from_end {
        return list(text.splitn(most, between).collect(), budget);
    }
    let mut parts: Vec<&str> = text.rsplitn(most, between).collect();
    parts.reverse();
    list(parts, budget)
}

/// Splits at runs of white space, into at most `most` parts.
fn by_spaces(text: &str, most: Option<usize>) -> Vec<&str> {
    let (mut parts, mut rest) = (Vec::new(), text.trim_start());
    while !rest.is_empty() {
        if most == Some(parts.len() + 1) {
            parts.push(rest);
            break;
        }
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        parts.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    parts
}

fn list(parts: Vec<&str>, budget: &RenderBudget) -> Result<Value, Error> {
    budget.list(parts.len())?;
    Ok(Value::from(parts.into_iter().map(Value::from).collect::<Vec<_>>()))
}

/// A mapping whose methods take precedence over keys of the same name, as in Python: schemas have keys such
/// as `items`.
#[derive(Debug)]
struct Mapping {
    names: Vec<Arc<str>>,
    values: HashMap<Arc<str>, Value>,
    budget: RenderBudget,
}

impl Object for Mapping {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.values.get(key.as_str()?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.names.iter().map(|name| Value::from(Arc::clone(name))).collect())
    }

    fn call_method(
        self: &Arc<Self>,
        _: &State<'_, '_>,
        method: &str,
        arguments: &[Value],
    ) -> Result<Value, Error> {
        of_mapping(&Value::from_dyn_object(Arc::clone(self)), method, arguments, &self.budget)
    }
}

/// Converts a value of JSON, whose methods will use this budget.
pub(super) fn value(json: &Json, budget: &RenderBudget) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(bool) => Value::from(*bool),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::from(number),
            (None, Some(number)) => Value::from(number),
            (None, None) => Value::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => Value::from(items.iter().map(|item| value(item, budget)).collect::<Vec<_>>()),
        Json::Object(members) => {
            let names: Vec<Arc<str>> = members.keys().map(|name| Arc::from(name.as_str())).collect();
            let values = members.values().map(|member| value(member, budget));
            let values = names.iter().cloned().zip(values).collect();
            Value::from_object(Mapping { names, values, budget: budget.clone() })
        }
    }
}
