//! Budgets of rendering: work, the size of a value, output.
//!
//! Work is counted in bytes and values that are looked at; instructions are counted by minijinja besides.

use std::sync::{Arc, atomic::AtomicUsize, atomic::Ordering};

use minijinja::{Error, ErrorKind, Value, value::ValueIter, value::ValueKind};
use serde_json::Value as Json;

/// Limit on instructions: a constant, and an addition for each value of the messages and tools.
const FUEL: u64 = 200_000;
const FUEL_EACH: u64 = 500;
/// Limit on the bytes and values looked at: a constant, and an addition for each byte of the messages.
const WORK: usize = 16 << 20;
const WORK_EACH: usize = 1_000;
/// Limit on the bytes and values in one value: a constant, and an addition for each byte of the messages.
const VALUE: usize = 64 << 10;
const VALUE_EACH: usize = 4;
/// Limit on the bytes of output: a constant, and an addition for each byte of the messages.
const OUTPUT: usize = 1 << 20;
const OUTPUT_EACH: usize = 16;
/// Limit on the nesting of values.
const DEPTH: usize = 64;
/// Limit on the items of a list or a mapping, beyond the number of values in the messages.
pub(super) const ITEMS: usize = 4_096;

/// The budget of one rendering.
#[derive(Debug, Clone)]
pub(super) struct RenderBudget {
    state: Arc<BudgetState>,
}

#[derive(Debug)]
struct BudgetState {
    fuel: u64,
    most_value: usize,
    most_items: usize,
    most_output: usize,
    work: AtomicUsize,
    output: AtomicUsize,
}

impl RenderBudget {
    /// The budget of a rendering with these inputs.
    pub(super) fn of(inputs: &Json) -> Self {
        let (values, bytes) = size(inputs);
        let state = BudgetState {
            fuel: FUEL.saturating_add((values as u64).saturating_mul(FUEL_EACH)),
            most_value: VALUE.saturating_add((values + bytes).saturating_mul(VALUE_EACH)),
            most_items: ITEMS.saturating_add(values + bytes),
            most_output: OUTPUT.saturating_add(bytes.saturating_mul(OUTPUT_EACH)),
            work: AtomicUsize::new(WORK.saturating_add((values + bytes).saturating_mul(WORK_EACH))),
            output: AtomicUsize::new(0),
        };
        Self { state: Arc::new(state) }
    }

    /// The instructions that minijinja may execute.
    pub(super) fn fuel(&self) -> u64 {
        self.state.fuel
    }

    /// The greatest length of the rendered text, in bytes.
    pub(super) fn most_text(&self) -> usize {
        self.state.most_output
    }

    /// Counts work.
    ///
    /// # Errors
    /// If none is left.
    pub(super) fn work(&self, amount: usize) -> Result<(), Error> {
        let take = |left: usize| left.checked_sub(amount);
        let taken = self.state.work.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.map(drop).map_err(|_| passed("the template does more work than the messages are worth"))
    }

    /// Checks that a text of this length may be made, and counts its work.
    ///
    /// # Errors
    /// If it is longer than a value may be, or if no work is left.
    pub(super) fn text(&self, length: Option<usize>) -> Result<(), Error> {
        self.fits(length)?;
        self.work(length.unwrap_or(0))
    }

    /// Checks that a text of this length may be made; `None` stands for a length that overflows.
    ///
    /// # Errors
    /// If it is longer than a value may be.
    pub(super) fn fits(&self, length: Option<usize>) -> Result<(), Error> {
        match length {
            Some(length) if length <= self.state.most_value => Ok(()),
            _ => Err(passed("a value of the template grows without bound")),
        }
    }

    /// Counts output, also that of captures.
    ///
    /// # Errors
    /// If there is too much of it.
    pub(super) fn output(&self, length: usize) -> Result<(), Error> {
        let before = self.state.output.fetch_add(length, Ordering::Relaxed);
        if before.saturating_add(length) > self.state.most_output {
            return Err(passed("the template writes without end"));
        }
        self.work(length)
    }

    /// Measures a value that is kept, and turns iterators into lists.
    ///
    /// # Errors
    /// If it is too large or nested too deeply, or holds a namespace, which could hold it in turn. A
    /// namespace by itself is let through if `namespaces` is true.
    pub(super) fn held(&self, value: &Value, namespaces: bool) -> Result<Value, Error> {
        let kept = self.listed(value)?;
        let mut left = self.state.most_value;
        if is_namespace(value) && !namespaces {
            return Err(nested());
        }
        self.measure(&kept, 0, &mut left)?;
        self.work(self.state.most_value - left)?;
        Ok(kept)
    }

    /// The items of an iterable as a list; any other value unchanged.
    fn listed(&self, value: &Value) -> Result<Value, Error> {
        if value.kind() != ValueKind::Iterable {
            return Ok(value.clone());
        }
        Ok(Value::from(self.items(value)?))
    }

    /// The items of a list, or the keys of a mapping.
    ///
    /// # Errors
    /// If it is neither, or if there are too many.
    pub(super) fn items(&self, value: &Value) -> Result<Vec<Value>, Error> {
        let items: Vec<Value> = value.try_iter()?.take(self.state.most_items.saturating_add(1)).collect();
        self.list(items.len())?;
        self.work(items.len())?;
        Ok(items)
    }

    /// Checks that a list may have this many items.
    ///
    /// # Errors
    /// If it may not.
    pub(super) fn list(&self, items: usize) -> Result<(), Error> {
        match items <= self.state.most_items {
            true => Ok(()),
            false => Err(passed("a list of the template is too long")),
        }
    }

    fn measure(&self, value: &Value, depth: usize, left: &mut usize) -> Result<(), Error> {
        if depth > DEPTH {
            return Err(passed("values are nested too deeply"));
        }
        let is_map = value.kind() == ValueKind::Map;
        let size = value.as_str().map_or(1, |text| text.len() + 1);
        *left =
            left.checked_sub(size).ok_or_else(|| passed("a value of the template grows without bound"))?;
        let inside: ValueIter = match value.kind() {
            ValueKind::Map | ValueKind::Seq | ValueKind::Iterable => value.try_iter()?,
            _ => return Ok(()),
        };
        for item in inside {
            let of_key = if is_map { Some(value.get_item(&item)?) } else { None };
            for part in std::iter::once(&item).chain(&of_key) {
                if is_namespace(part) {
                    return Err(nested());
                }
                self.measure(part, depth + 1, left)?;
            }
        }
        Ok(())
    }
}

/// The number of values, and of bytes in texts.
fn size(value: &Json) -> (usize, usize) {
    let sum = |sizes: &mut dyn Iterator<Item = (usize, usize)>| {
        sizes.fold((1, 0), |(values, bytes), size| (values + size.0, bytes + size.1))
    };
    match value {
        Json::String(text) => (1, text.len()),
        Json::Array(items) => sum(&mut items.iter().map(size)),
        Json::Object(members) => sum(&mut members.iter().map(|(name, value)| {
            let (values, bytes) = size(value);
            (values, bytes + name.len())
        })),
        _ => (1, 8),
    }
}

fn is_namespace(value: &Value) -> bool {
    value.as_object().is_some_and(|object| object.type_name().ends_with("Namespace"))
}

/// The error of an exceeded limit, which has the kind `OutOfFuel`.
pub(super) fn passed(message: &'static str) -> Error {
    Error::new(ErrorKind::OutOfFuel, message)
}

fn nested() -> Error {
    Error::new(ErrorKind::InvalidOperation, "a namespace inside of another value is not supported")
}
