//! Objects of JSON that commands print.

use serde_json::{Map, Value};

/// Adds fields to an object of JSON.
pub(crate) fn extend(object: &mut Value, fields: Map<String, Value>) {
    if let Value::Object(object) = object {
        object.extend(fields);
    }
}
