//! Checks of objects by the keywords about objects.

use serde_json::{Map, Value};

use super::finding::{Finding, Whereabouts};
use super::{sizes::size, walk::SchemaWalk};

impl SchemaWalk<'_> {
    /// Checks an object by one keyword.
    pub(super) fn of_object(
        &self,
        schema: &Map<String, Value>,
        (keyword, value): (&str, &Value),
        members: &Map<String, Value>,
        here: &Whereabouts,
    ) -> Finding {
        let missing = |names: &Value, because: &str| {
            let names = names.as_array().into_iter().flatten().filter_map(Value::as_str);
            let absent = names.filter(|name| !members.contains_key(*name));
            absent.fold(Finding::valid(), |found, name| {
                found.and(here.lack(format!("missing required key `{name}`{because}")))
            })
        };
        match keyword {
            "required" => missing(value, ""),
            "minProperties" | "maxProperties" => size(keyword, value, members.len(), here, ("object", "key")),
            "dependentRequired" | "dependencies" | "dependentSchemas" => {
                let asked = value.as_object().into_iter().flatten();
                let asked = asked.filter(|(name, _)| members.contains_key(*name));
                asked.fold(Finding::valid(), |found, (name, asks)| {
                    found.and(match asks {
                        Value::Array(_) => missing(asks, &format!(" (beside `{name}`)")),
                        schema => {
                            let whole = Value::Object(members.clone());
                            self.schema(schema, &whole, &here.under(name))
                        }
                    })
                })
            }
            "propertyNames" => members.keys().fold(Finding::valid(), |found, name| {
                let key = Value::String(name.clone());
                found.and(self.schema(value, &key, &here.at(name)))
            }),
            "properties" => self.listed(schema, value, members, here),
            "patternProperties" => {
                let patterns = value.as_object().into_iter().flatten();
                let pairs = patterns.flat_map(|pattern| members.iter().map(move |member| (pattern, member)));
                pairs.fold(Finding::valid(), |found, ((pattern, schema), (name, member))| {
                    found.and(match self.matches(pattern, name) {
                        Some(true) => self.schema(schema, member, &here.under(pattern).at(name)),
                        Some(false) => Finding::valid(),
                        None => Finding::unknown(),
                    })
                })
            }
            "additionalProperties" => self.additional(schema, value, members, here),
            "unevaluatedProperties" | "$dynamicRef" | "$recursiveRef" => Finding::unknown(),
            _ => Finding::valid(),
        }
    }

    /// Checks the members that `properties` names; where objects are closed, all others are faults.
    fn listed(
        &self,
        schema: &Map<String, Value>,
        value: &Value,
        members: &Map<String, Value>,
        here: &Whereabouts,
    ) -> Finding {
        let listed = value.as_object().into_iter().flatten();
        let found = listed.fold(Finding::valid(), |found, (name, schema)| match members.get(name) {
            Some(member) => found.and(self.schema(schema, member, &here.under(name).at(name))),
            None => found,
        });
        let open = ["additionalProperties", "unevaluatedProperties"];
        match self.closed && !open.iter().any(|key| schema.contains_key(*key)) {
            true => found.and(self.additional(schema, &Value::Bool(false), members, here)),
            false => found,
        }
    }

    /// Asks the engine whether the pattern of `patternProperties` matches a key.
    fn matches(&self, pattern: &str, key: &str) -> Option<bool> {
        let schema = serde_json::json!({ "type": "string", "pattern": pattern });
        (self.engine)(&schema, &key.into())
    }

    /// Checks the members that neither `properties` nor `patternProperties` name.
    fn additional(
        &self,
        schema: &Map<String, Value>,
        value: &Value,
        members: &Map<String, Value>,
        here: &Whereabouts,
    ) -> Finding {
        let listed = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array).filter(|_| self.closed);
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        members.iter().fold(Finding::valid(), |found, (name, member)| {
            let mentioned = required.is_some_and(|list| list.iter().any(|one| one == name.as_str()));
            if mentioned || listed.is_some_and(|listed| listed.contains_key(name)) {
                return found;
            }
            for pattern in patterns.into_iter().flat_map(Map::keys) {
                match self.matches(pattern, name) {
                    Some(true) => return found,
                    Some(false) => {}
                    None => return found.and(Finding::unknown()),
                }
            }
            found.and(match value {
                Value::Bool(false) => {
                    here.at(name).fault(format!("additional property `{name}` is not allowed"))
                }
                value => self.schema(value, member, &here.at(name)),
            })
        })
    }
}
