//! Writes Python's values as JSON.

use pyo3::{
    prelude::*,
    types::{PyDict, PyString},
};

use crate::failure::Outcome;

/// The text of a JSON value: a string as it is, anything else by Python's `json.dumps`.
///
/// # Errors
/// Where `json` cannot write it.
pub(crate) fn json_text(value: &Bound<'_, PyAny>) -> Outcome<String> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_cow()?.into_owned());
    }
    let keywords = PyDict::new(value.py());
    keywords.set_item("ensure_ascii", false)?;
    keywords.set_item("allow_nan", false)?;
    let json = value.py().import("json")?;
    Ok(json.call_method("dumps", (value,), Some(&keywords))?.extract()?)
}
