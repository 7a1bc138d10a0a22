//! Budgets by name: `limits={"step_work": 1000}`.

use domino::{Cancel, Limits};
use pyo3::{prelude::*, types::PyDict};

use crate::failure::{Failure, Outcome};

macro_rules! fields {
    ($($field:ident),* $(,)?) => {
        /// The names of all budgets.
        pub(crate) const NAMES: &[&str] = &[$(stringify!($field)),*];

        /// Sets the budget of this name; `None` if there is none.
        fn set(limits: &mut Limits, name: &str, value: u64) -> Option<Result<(), std::num::TryFromIntError>> {
            match name {
                $(stringify!($field) => Some(value.try_into().map(|value| limits.$field = value)),)*
                _ => None,
            }
        }

        /// All budgets with their names.
        fn pairs(limits: &Limits) -> Vec<(&'static str, serde_json::Value)> {
            vec![$((stringify!($field), limits.$field.into())),*]
        }
    };
}

fields! {
    grammar_bytes, regex_bytes, expressions, repeat, regex_nesting, dfa_states, fold_states, nfa_bytes,
    symbols, terminal_bytes, parser_bytes, state_bytes, step_work, step_units, tree_work, text_units,
    tree_bytes, mask_bytes, exploration, rehearsal, rehearsal_size, ahead, completion_visits, captures,
    history,
}

/// The default budgets, with a handle that cancels the work.
pub(crate) fn cancelled_by(cancel: Option<&Cancel>) -> Limits {
    cancel.map_or_else(Limits::default, |cancel| Limits::default().cancelled_by(cancel))
}

/// Reads budgets from a `dict`; the others are the defaults.
///
/// # Errors
/// If a name is not one of a budget, or a value is no number that fits.
pub(crate) fn read(given: Option<&Bound<'_, PyDict>>) -> Outcome<Limits> {
    let mut limits = Limits::default();
    for (name, value) in given.into_iter().flatten() {
        let name: String = name.extract().map_err(|_| Failure::Type("limits are named by strings".into()))?;
        let value: u64 = value
            .extract()
            .map_err(|_| Failure::Value(format!("the limit `{name}` must be a whole number from 0 on")))?;
        apply(&mut limits, &name, value)?;
    }
    Ok(limits)
}

/// Writes the budgets as JSON.
pub(crate) fn to_json(limits: &Limits) -> serde_json::Value {
    pairs(limits).into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Reads what [`to_json`] wrote.
///
/// # Errors
/// As [`read`].
pub(crate) fn from_json(json: &serde_json::Value) -> Outcome<Limits> {
    let mut limits = Limits::default();
    for (name, value) in json.as_object().into_iter().flatten() {
        let value = value.as_u64().ok_or_else(|| Failure::Value(format!("the limit `{name}`: no number")))?;
        apply(&mut limits, name, value)?;
    }
    Ok(limits)
}

fn apply(limits: &mut Limits, name: &str, value: u64) -> Outcome<()> {
    match set(limits, name, value) {
        Some(Ok(())) => Ok(()),
        Some(Err(_)) => Err(Failure::Value(format!("the limit `{name}` is too large: {value}"))),
        None => {
            let near = domino::grammar::suggest::did_you_mean(name, NAMES.iter().copied());
            let near = near.unwrap_or_else(|| format!("one of {}", NAMES.join(", ")));
            Err(Failure::Value(format!("there is no limit `{name}`\nhint: {near}")))
        }
    }
}
