//! Messages and tools as values of a template.

use std::{collections::HashMap, sync::Arc};

use minijinja::{
    Error, State, Value,
    value::{Enumerator, Object, ObjectRepr},
};
use serde_json::Value as Json;

use super::{budget::RenderBudget, methods};

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
        methods::of_mapping(&Value::from_dyn_object(Arc::clone(self)), method, arguments, &self.budget)
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
