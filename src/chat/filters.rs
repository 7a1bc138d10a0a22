//! The environment of a template: filters, tests and functions of Jinja2 and transformers, each within a
//! budget.

use std::{fmt, sync::Arc};

use minijinja::{
    Environment, Error, ErrorKind, Value,
    value::{Kwargs, Rest, ValueKind},
};

use super::{
    admission::{HELD, HELD_INSIDE},
    budget::{RenderBudget, passed},
    date,
    methods::{self, joined, replaced},
    python::{self, JsonLayout},
};

/// Limit on the depth of calls, of which each call of a macro counts as four.
const RECURSION: usize = 200;
/// Filters of minijinja that Jinja2 lacks, or that make texts and lists of any length.
const LEFT_OUT: [&str; 9] = ["batch", "slice", "zip", "chain", "pprint", "format", "lines", "split", "bool"];

/// Filters that look at whole lists, at each item a few times.
const COUNTED: [&str; 9] = ["sort", "unique", "min", "max", "sum", "dictsort", "groupby", "reverse", "items"];
const LOOKS: usize = 16;

/// The error that a template raises by `raise_exception`, with its words.
#[derive(Debug)]
pub(super) struct Refusal(pub(super) String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

/// An environment for rendering one template. `date` is the result of `strftime_now`, in seconds since 1970.
pub(super) fn environment(budget: &RenderBudget, date: Option<u64>) -> Environment<'static> {
    let mut env = Environment::new();
    env.set_trim_blocks(true);
    env.set_lstrip_blocks(true);
    env.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    env.set_recursion_limit(RECURSION);
    env.set_fuel(Some(budget.fuel()));
    let own = budget.clone();
    env.set_formatter(move |out, _, value| {
        let written = match value.as_str() {
            Some(text) => {
                own.output(text.len())?;
                out.write_str(text)
            }
            None => {
                let text = python::text(value, &own)?;
                own.output(text.len())?;
                out.write_str(&text)
            }
        };
        written.map_err(Error::from)
    });
    let own = budget.clone();
    env.set_unknown_method_callback(move |_, value, method, arguments| {
        methods::call(value, method, arguments, &own)
    });
    functions(&mut env, budget, date);
    LEFT_OUT.iter().for_each(|name| env.remove_filter(name));
    filters(&mut env, budget);
    // Strings are sequences in Python.
    env.add_test("sequence", |value: &Value| {
        matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable | ValueKind::String | ValueKind::Map)
    });
    env.add_test("iterable", |value: &Value| {
        matches!(
            value.kind(),
            ValueKind::Seq | ValueKind::Iterable | ValueKind::String | ValueKind::Map | ValueKind::Undefined
        )
    });
    env
}

fn functions(env: &mut Environment<'static>, budget: &RenderBudget, date: Option<u64>) {
    env.remove_global("debug");
    env.add_function("raise_exception", |message: Value| -> Result<Value, Error> {
        let error = Error::new(ErrorKind::InvalidOperation, "the template raises an exception");
        Err(error.with_source(Refusal(message.to_string())))
    });
    let own = budget.clone();
    env.add_function("range", move |first: i64, end: Option<i64>, step: Option<i64>| {
        let (start, end, step) =
            (if end.is_some() { first } else { 0 }, end.unwrap_or(first), step.unwrap_or(1));
        let distance = if step > 0 { end.saturating_sub(start) } else { start.saturating_sub(end) };
        let Some(size) = step.checked_abs().filter(|&size| size > 0) else {
            return Err(Error::new(ErrorKind::InvalidOperation, "range: the step is 0"));
        };
        let count = usize::try_from(distance.max(0).cast_unsigned().div_ceil(size.cast_unsigned()));
        let count = count.map_err(|_| passed("a list of the template is too long"))?;
        own.list(count)?;
        own.work(count)?;
        Ok(Value::from((0..).map(|n: i64| Value::from(start + n * step)).take(count).collect::<Vec<_>>()))
    });
    if let Some(unix) = date {
        env.add_function("strftime_now", move |format: &str| date::strftime(unix, format));
    }
}

/// Wraps minijinja's filters that look at whole lists, and counts their looks as work.
fn counted(env: &mut Environment<'static>, budget: &RenderBudget) {
    let plain = Arc::new(Environment::new());
    for name in COUNTED {
        let (plain, own) = (Arc::clone(&plain), budget.clone());
        env.add_filter(name, move |value: &Value, rest: Rest<Value>| {
            let length = value.as_str().map(str::len).or_else(|| value.len()).unwrap_or(1);
            own.work(LOOKS * length)?;
            let arguments: Vec<Value> = std::iter::once(value.clone()).chain(rest.iter().cloned()).collect();
            plain.empty_state().apply_filter(name, &arguments)
        });
    }
}

fn filters(env: &mut Environment<'static>, budget: &RenderBudget) {
    counted(env, budget);
    number_filters(env);
    let own = budget.clone();
    env.add_filter(HELD, move |value: &Value| own.held(value, true));
    let own = budget.clone();
    env.add_filter(HELD_INSIDE, move |value: &Value| own.held(value, false));
    let own = budget.clone();
    env.add_filter("tojson", move |value: &Value, places: Rest<Value>, names: Kwargs| {
        python::json(value, &JsonLayout::of(&places, &names)?, &own)
    });
    let own = budget.clone();
    env.add_filter("string", move |value: &Value| python::text(value, &own));
    let own = budget.clone();
    env.add_filter("list", move |value: &Value| characters(value, &own));
    let own = budget.clone();
    env.add_filter("join", move |parts: &Value, between: Option<String>, names: Kwargs| {
        let attribute: Option<String> = names.get("attribute")?;
        let between = between.or(names.get("d")?).unwrap_or_default();
        names.assert_all_used()?;
        let parts = match attribute {
            Some(name) => {
                let parts = own.items(parts)?.into_iter().map(|part| part.get_attr(&name));
                Value::from(parts.collect::<Result<Vec<_>, _>>()?)
            }
            None => parts.clone(),
        };
        joined(&characters(&parts, &own)?, &between, &own)
    });
    let own = budget.clone();
    env.add_filter("replace", move |value: &Value, old: String, new: String, count: Option<i64>| {
        replaced(&python::text(value, &own)?, &old, &new, count, &own)
    });
    let own = budget.clone();
    env.add_filter("trim", move |value: &Value, chars: Option<Value>| {
        let text = Value::from(python::text(value, &own)?);
        methods::call(&text, "strip", chars.as_slice(), &own)
    });
    for name in ["upper", "lower", "capitalize", "title"] {
        let own = budget.clone();
        env.add_filter(name, move |value: &Value| {
            methods::call(&Value::from(python::text(value, &own)?), name, &[], &own)
        });
    }
    for name in ["length", "count"] {
        env.add_filter(name, |value: &Value| match value.as_str() {
            Some(text) => Ok(text.chars().count()),
            None if value.is_undefined() => Ok(0),
            None => value.len().ok_or_else(|| {
                Error::new(ErrorKind::InvalidOperation, format!("{} has no length", value.kind()))
            }),
        });
    }
    let own = budget.clone();
    env.add_filter("indent", move |value: &Value, places: Rest<Value>, names: Kwargs| {
        indented(&python::text(value, &own)?, &places, &names, &own)
    });
}

fn number_filters(env: &mut Environment<'static>) {
    env.add_filter("int", |value: &Value, default: Option<Value>| {
        let float = number(value).filter(|number| number.abs() < 1e18);
        let whole = value.as_i64().or_else(|| value.as_str()?.trim().parse().ok());
        #[expect(clippy::cast_possible_truncation, reason = "below 2^63, and cut as Python cuts it")]
        let whole = whole.or(float.map(|float| float as i64));
        whole.map(Value::from).or(default).unwrap_or_else(|| Value::from(0))
    });
    env.add_filter("float", |value: &Value, default: Option<Value>| {
        number(value).map(Value::from).or(default).unwrap_or_else(|| Value::from(0.0))
    });
}

/// The number, or the number that a text spells.
fn number(value: &Value) -> Option<f64> {
    match value.as_str() {
        Some(text) => text.trim().parse().ok(),
        None => f64::try_from(value.clone()).ok(),
    }
}

/// The items of a list, or the characters of a text.
fn characters(value: &Value, budget: &RenderBudget) -> Result<Value, Error> {
    let Some(text) = value.as_str() else {
        return Ok(Value::from(if value.is_undefined() { Vec::new() } else { budget.items(value)? }));
    };
    budget.text(text.len().checked_mul(size_of::<Value>()))?;
    Ok(Value::from(text.chars().map(|c| Value::from(c.to_string())).collect::<Vec<_>>()))
}

/// Implements Jinja2's `indent(width=4, first=False, blank=False)`.
fn indented(text: &str, places: &[Value], names: &Kwargs, budget: &RenderBudget) -> Result<String, Error> {
    let given = |name: &'static str, place: usize| -> Result<Option<Value>, Error> {
        let named: Option<Value> = names.get(name)?;
        Ok(named.or_else(|| places.get(place).cloned()))
    };
    let width = given("width", 0)?;
    let is_true = |value: Option<Value>| value.is_some_and(|value| value.is_true());
    let (first, blank) = (is_true(given("first", 1)?), is_true(given("blank", 2)?));
    names.assert_all_used()?;
    let before = match &width {
        None => "    ".to_owned(),
        Some(value) => match (value.as_str(), value.as_usize()) {
            (Some(text), _) => text.to_owned(),
            (None, Some(width)) if width <= 256 => " ".repeat(width),
            _ => return Err(Error::new(ErrorKind::InvalidOperation, "indent: the width is no small number")),
        },
    };
    let lines = text.matches('\n').count() + 1;
    budget.text(lines.checked_mul(before.len()).and_then(|more| more.checked_add(text.len())))?;
    let mut out = String::new();
    for (index, line) in text.split('\n').enumerate() {
        out.push_str(if index > 0 { "\n" } else { "" });
        let indents = if index == 0 { first } else { blank || !line.is_empty() };
        out.push_str(if indents { &before } else { "" });
        out.push_str(line);
    }
    Ok(out)
}
