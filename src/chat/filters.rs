//! The environment of a template: filters, tests and functions of Jinja2 and transformers, each within a
//! budget, and dates as `strftime` writes them, in UTC.

use std::sync::Arc;

use minijinja::{Environment, Error, ErrorKind, Value, value::Kwargs, value::Rest, value::ValueKind};

use super::admission::{HELD, HELD_INSIDE};
use super::methods::{self, joined, replaced};
use super::{budget::RenderBudget, budget::passed, python, python::JsonLayout};

/// Limit on the depth of calls, of which each call of a macro counts as four.
const RECURSION: usize = 200;
/// Filters of minijinja that Jinja2 lacks, or that make texts and lists of any length.
const LEFT_OUT: [&str; 9] = ["batch", "slice", "zip", "chain", "pprint", "format", "lines", "split", "bool"];

/// Filters that look at whole lists, at each item a few times.
const COUNTED: [&str; 9] = ["sort", "unique", "min", "max", "sum", "dictsort", "groupby", "reverse", "items"];
const LOOKS: usize = 16;

/// The error that a template raises by `raise_exception`, with its words.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refusal(pub(super) String);

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
        env.add_function("strftime_now", move |format: &str| strftime(unix, format));
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
    let given = |name: &'static str, place: usize| python::given(places, names, name, place);
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

/// The names of months and, below, of weekdays in the C locale.
const MONTHS: &str = "January February March April May June July August September October November December";
const DAYS: &str = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday";
/// The seconds of a day.
const DAY: u64 = 86_400;

/// A moment of the Gregorian calendar.
struct CalendarMoment {
    year: u64,
    /// The month of the year, from 1.
    month: u64,
    day: u64,
    /// The day of the year, from 1.
    day_of_year: u64,
    /// The day of the week; Sunday is 0.
    weekday: u64,
    seconds: u64,
}

impl CalendarMoment {
    /// The moment `unix` seconds after the beginning of 1970. Days are counted from 1 March of the year 0, by
    /// eras of 400 years.
    fn of(unix: u64) -> Self {
        let days = unix / DAY + 719_468;
        let (era, of_era) = (days / 146_097, days % 146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted = (5 * of_year + 2) / 153;
        let (day, month) =
            (of_year - (153 * shifted + 2) / 5 + 1, if shifted < 10 { shifted + 3 } else { shifted - 9 });
        let year = year_of_era + era * 400 + u64::from(month <= 2);
        let is_leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
        let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
        let begun = before.iter().zip(1..).find(|&(_, number)| number == month).map_or(0, |(days, _)| *days);
        let day_of_year = begun + day + u64::from(is_leap && month > 2);
        Self { year, month, day, day_of_year, weekday: (unix / DAY + 4) % 7, seconds: unix % DAY }
    }
}

/// Formats the moment `unix` seconds after the beginning of 1970. Unknown directives stay as they are.
fn strftime(unix: u64, format: &str) -> String {
    let moment = CalendarMoment::of(unix);
    let (hour, minute, second) = (moment.seconds / 3600, moment.seconds / 60 % 60, moment.seconds % 60);
    let name = |names: &'static str, index: u64| {
        usize::try_from(index).ok().and_then(|index| names.split(' ').nth(index)).unwrap_or_default()
    };
    let (month, weekday) = (name(MONTHS, moment.month - 1), name(DAYS, moment.weekday));
    let hour_of_twelve = (hour + 11) % 12 + 1;
    let mut out = String::new();
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut directive = rest.next();
        let is_plain = directive == Some('-');
        if is_plain {
            directive = rest.next();
        }
        let two = |number: u64| if is_plain { number.to_string() } else { format!("{number:02}") };
        match directive {
            Some('Y') => out.push_str(&moment.year.to_string()),
            Some('y') => out.push_str(&two(moment.year % 100)),
            Some('m') => out.push_str(&two(moment.month)),
            Some('d') => out.push_str(&two(moment.day)),
            Some('e') => out.push_str(&format!("{:2}", moment.day)),
            Some('j') => out.push_str(&format!("{:03}", moment.day_of_year)),
            Some('B') => out.push_str(month),
            Some('b' | 'h') => out.push_str(&month[..3]),
            Some('A') => out.push_str(weekday),
            Some('a') => out.push_str(&weekday[..3]),
            Some('H') => out.push_str(&two(hour)),
            Some('I') => out.push_str(&two(hour_of_twelve)),
            Some('M') => out.push_str(&two(minute)),
            Some('S') => out.push_str(&two(second)),
            Some('p') => out.push_str(if hour < 12 { "AM" } else { "PM" }),
            Some('F') => {
                out.push_str(&format!("{}-{:02}-{:02}", moment.year, moment.month, moment.day));
            }
            Some('T') => out.push_str(&format!("{hour:02}:{minute:02}:{second:02}")),
            Some('%') => out.push('%'),
            other => {
                out.push('%');
                out.extend(is_plain.then_some('-'));
                out.extend(other);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (unix, all) in [
            (0, "1970-01-01 Thu 001"),
            (951_782_400, "2000-02-29 Tue 060"),
            (1_721_952_000, "2024-07-26 Fri 208"),
            (1_735_603_200, "2024-12-31 Tue 366"),
            (4_107_542_400, "2100-03-01 Mon 060"),
        ] {
            assert_eq!(strftime(unix, "%F %a %j"), all);
        }
        let text =
            strftime(1_721_952_000 + 13 * 3600 + 5 * 60 + 9, "%d %b %Y, %A %-d %B %y %H:%M:%S %I %p %% %Q");
        assert_eq!(text, "26 Jul 2024, Friday 26 July 24 13:05:09 01 PM % %Q");
        assert_eq!(strftime(DAY * 2, "%-d %e %-m %T%"), "3  3 1 00:00:00%");
    }
}
