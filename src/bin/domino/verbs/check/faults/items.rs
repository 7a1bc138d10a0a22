//! Checks of arrays by the keywords about arrays.

use serde_json::{Map, Value};

use super::finding::{Finding, Whereabouts};
use super::sizes::{size, twice};
use super::{walk::SchemaWalk, words::count};

impl SchemaWalk<'_> {
    /// Checks an array by one keyword.
    pub(super) fn of_array(
        &self,
        schema: &Map<String, Value>,
        (keyword, value): (&str, &Value),
        items: &[Value],
        here: &Whereabouts,
    ) -> Finding {
        let each = |schemas: &dyn Fn(usize) -> Option<(Whereabouts, Value)>| {
            items.iter().enumerate().fold(Finding::valid(), |found, (index, item)| match schemas(index) {
                Some((place, schema)) => found.and(self.schema(&schema, item, &place.at(&index.to_string()))),
                None => found,
            })
        };
        let listed =
            |list: &[Value]| each(&|index| Some((here.under(&index.to_string()), list.get(index)?.clone())));
        match (keyword, value) {
            ("minItems" | "maxItems", _) => size(keyword, value, items.len(), here, ("array", "item")),
            ("prefixItems" | "items", Value::Array(list)) => listed(list),
            ("items", _) => {
                let first = schema.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
                each(&|index| (index >= first).then(|| (here.clone(), value.clone())))
            }
            ("additionalItems", _) => match schema.get("items") {
                Some(Value::Array(list)) => {
                    each(&|index| (index >= list.len()).then(|| (here.clone(), value.clone())))
                }
                _ => Finding::valid(),
            },
            ("uniqueItems", Value::Bool(true)) => twice(items, here),
            ("contains", _) => self.contains(schema, value, items, here),
            ("unevaluatedItems" | "$dynamicRef" | "$recursiveRef", _) => Finding::unknown(),
            _ => Finding::valid(),
        }
    }

    fn contains(
        &self,
        schema: &Map<String, Value>,
        value: &Value,
        items: &[Value],
        here: &Whereabouts,
    ) -> Finding {
        let found: Vec<Finding> = items.iter().map(|item| self.schema(value, item, here)).collect();
        if found.iter().any(|found| !found.is_wrong() && !found.sure) {
            return Finding::unknown();
        }
        let right = found.iter().filter(|found| found.is_right()).count();
        let bound =
            |name: &str| schema.get(name).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        let (least, most) = (bound("minContains").unwrap_or(1), bound("maxContains").unwrap_or(usize::MAX));
        let have = count(right, "item");
        here.lack_if(right < least, || {
            format!("{have} as `contains` wants, and at least {least} must be there")
        })
        .and(
            here.fault_if(right > most, || {
                format!("{have} as `contains` says, and at most {most} are allowed")
            }),
        )
    }
}
