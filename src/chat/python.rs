//! Writes values as Python does: `str` and `repr`, and JSON like its `json.dumps`.

use minijinja::{Error, ErrorKind, Value, value::Kwargs, value::ValueKind};

use super::budget::{RenderBudget, passed};

/// Limit on the nesting of values that are written.
const DEPTH: usize = 64;

/// The text that an expression writes: `str(value)`, or nothing if it is undefined.
///
/// # Errors
/// If the value is too large or nested too deeply.
pub(super) fn text(value: &Value, budget: &RenderBudget) -> Result<String, Error> {
    let mut out = String::new();
    match value.as_str() {
        Some(text) => {
            budget.text(Some(text.len()))?;
            out.push_str(text);
        }
        None if value.is_undefined() => {}
        None => PythonWriter { out: &mut out, budget, layout: None }.write(value, 0)?,
    }
    Ok(out)
}

/// An argument by its name, or else by its place.
///
/// # Errors
/// If the name has a value that cannot be read.
pub(super) fn given(
    places: &[Value],
    names: &Kwargs,
    name: &'static str,
    place: usize,
) -> Result<Option<Value>, Error> {
    let named: Option<Value> = names.get(name)?;
    Ok(named.or_else(|| places.get(place).cloned()))
}

/// The layout of JSON.
pub(super) struct JsonLayout {
    ascii: bool,
    sorted: bool,
    /// The indent of one level; `None` writes all on one line.
    indent: Option<String>,
    separators: [String; 2],
}

impl JsonLayout {
    /// Reads the arguments of `tojson` in transformers: `ensure_ascii`, `indent`, `separators`, `sort_keys`,
    /// by name or by position.
    ///
    /// # Errors
    /// If there are others, or if one has a wrong value.
    pub(super) fn of(places: &[Value], names: &Kwargs) -> Result<Self, Error> {
        let given = |name: &'static str, place: usize| -> Result<Option<Value>, Error> {
            Ok(given(places, names, name, place)?.filter(|value| !value.is_none()))
        };
        let is_true = |value: Option<Value>| value.is_some_and(|value| value.is_true());
        let indent = match given("indent", 1)? {
            None => None,
            Some(value) if value.as_str().is_some() => value.as_str().map(str::to_owned),
            Some(value) => {
                let wrong = || Error::new(ErrorKind::InvalidOperation, "tojson: `indent` is no small number");
                let width = value.as_i64().ok_or_else(wrong)?;
                Some(" ".repeat(
                    usize::try_from(width.max(0)).ok().filter(|&width| width <= 16).ok_or_else(wrong)?,
                ))
            }
        };
        let separators = match given("separators", 2)? {
            Some(pair) => {
                let part = |index| pair.get_item_by_index(index).map(|part| part.to_string());
                [part(0)?, part(1)?]
            }
            None => [if indent.is_some() { "," } else { ", " }.to_owned(), ": ".to_owned()],
        };
        let layout = Self {
            ascii: is_true(given("ensure_ascii", 0)?),
            sorted: is_true(given("sort_keys", 3)?),
            indent,
            separators,
        };
        names.assert_all_used()?;
        Ok(layout)
    }
}

/// Implements `json.dumps(value)`.
///
/// # Errors
/// If the value has no form in JSON, is too large or nested too deeply.
pub(super) fn json(value: &Value, layout: &JsonLayout, budget: &RenderBudget) -> Result<String, Error> {
    let mut out = String::new();
    PythonWriter { out: &mut out, budget, layout: Some(layout) }.write(value, 0)?;
    Ok(out)
}

struct PythonWriter<'a> {
    out: &'a mut String,
    budget: &'a RenderBudget,
    /// The layout of JSON; `None` for `repr`.
    layout: Option<&'a JsonLayout>,
}

impl PythonWriter<'_> {
    /// Writes a value. Counts its work, and refuses a text that has grown too long.
    fn write(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > DEPTH {
            return Err(passed("values are nested too deeply"));
        }
        let text = value.as_str().unwrap_or_default();
        self.budget.work(1 + text.len())?;
        self.budget.fits(Some(self.out.len()))?;
        match (value.kind(), self.layout) {
            (ValueKind::Bool, None) => self.out.push_str(if value.is_true() { "True" } else { "False" }),
            (ValueKind::Bool, Some(_)) => self.out.push_str(if value.is_true() { "true" } else { "false" }),
            (ValueKind::None, layout) => self.out.push_str(layout.map_or("None", |_| "null")),
            (ValueKind::String, None) => quoted(self.out, text),
            (ValueKind::String, Some(layout)) => json_string(self.out, text, layout.ascii),
            (ValueKind::Number, None) => self.out.push_str(&number(value)),
            (ValueKind::Number, Some(_)) => {
                self.out.push_str(&number(value).replace("inf", "Infinity").replace("nan", "NaN"))
            }
            (ValueKind::Seq | ValueKind::Iterable, _) => {
                let items = self.budget.items(value)?;
                self.brackets(['[', ']'], depth, items, |writer, item| writer.write(&item, depth + 1))?;
            }
            (ValueKind::Map, layout) => {
                let mut keys = self.budget.items(value)?;
                if layout.is_some_and(|layout| layout.sorted) {
                    keys.sort();
                }
                self.brackets(['{', '}'], depth, keys, |writer, key| {
                    writer.key(&key, depth + 1)?;
                    writer.write(&value.get_item(&key)?, depth + 1)
                })?;
            }
            (ValueKind::Undefined, None) => self.out.push_str("Undefined"),
            // Functions and macros: nobody writes these on purpose.
            (_, None) => self.out.push_str("<object>"),
            (kind, Some(_)) => {
                let message = format!("tojson: {kind} has no form in JSON");
                return Err(Error::new(ErrorKind::InvalidOperation, message));
            }
        }
        Ok(())
    }

    /// Writes a key of a mapping, with what stands between it and its value.
    fn key(&mut self, key: &Value, depth: usize) -> Result<(), Error> {
        let Some(layout) = self.layout else {
            self.write(key, depth)?;
            self.out.push_str(": ");
            return Ok(());
        };
        let name = match key.kind() {
            ValueKind::Bool => key.to_string(),
            ValueKind::None => "null".to_owned(),
            _ => key.as_str().map_or_else(|| number(key), str::to_owned),
        };
        json_string(self.out, &name, layout.ascii);
        self.out.push_str(&layout.separators[1]);
        Ok(())
    }

    /// Writes items between brackets, each with `write`.
    fn brackets(
        &mut self,
        [open, close]: [char; 2],
        depth: usize,
        items: Vec<Value>,
        mut write: impl FnMut(&mut Self, Value) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let layout = self.layout;
        let between = layout.map_or(", ", |layout| &*layout.separators[0]);
        let line = |out: &mut String, depth: usize| {
            if let Some(indent) = layout.and_then(|layout| layout.indent.as_ref()) {
                out.push('\n');
                (0..depth).for_each(|_| out.push_str(indent));
            }
        };
        self.out.push(open);
        let is_empty = items.is_empty();
        for (index, item) in items.into_iter().enumerate() {
            self.out.push_str(if index > 0 { between } else { "" });
            line(self.out, depth + 1);
            write(self, item)?;
        }
        if !is_empty {
            line(self.out, depth);
        }
        self.out.push(close);
        Ok(())
    }
}

/// A number as Python writes it: floats with the fewest digits that identify them, with an exponent from 1e16
/// on and below 1e-4.
fn number(value: &Value) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    let Ok(float) = f64::try_from(value.clone()) else { return value.to_string() };
    if !float.is_finite() {
        return if float.is_nan() {
            "nan"
        } else if float > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .to_owned();
    }
    let size = float.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{float:e}");
        return match text.split_once('e') {
            Some((digits, exponent)) => {
                let (sign, exponent) = match exponent.strip_prefix('-') {
                    Some(rest) => ('-', rest),
                    None => ('+', exponent),
                };
                format!("{digits}e{sign}{exponent:0>2}")
            }
            None => text,
        };
    }
    let text = float.to_string();
    if text.contains('.') { text } else { text + ".0" }
}

/// Writes the `repr` of a string.
fn quoted(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if u32::from(c) < 0x20 || u32::from(c) == 0x7f => {
                out.push_str(&format!("\\x{:02x}", u32::from(c)))
            }
            c => out.push(c),
        }
    }
    out.push(quote);
}

/// Writes a string in JSON.
fn json_string(out: &mut String, text: &str, ascii: bool) {
    for c in serde_json::Value::from(text).to_string().chars() {
        match ascii && !c.is_ascii() {
            true => {
                c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")))
            }
            false => out.push(c),
        }
    }
}
