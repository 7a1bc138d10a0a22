//! Instances close to the border of a schema: valid ones, and invalid ones a single change away.

use std::collections::BTreeMap;

use jsonschema::Validator;
use serde_json::{Map, Value};

/// Most valid instances taken for a schema.
const MOST: usize = 6;

/// A change of one place of an instance.
#[derive(Debug, Clone)]
pub struct Change {
    /// Number of a value inside of the instance, modulo their count.
    pub place: usize,
    /// Kind of change: see [`Change::apply`].
    pub what: u8,
    /// Key of a new member.
    pub key: String,
    /// New value.
    pub value: Value,
}

/// All values inside of one, itself first.
fn places(value: &Value, pointer: &str, found: &mut Vec<String>) {
    found.push(pointer.to_owned());
    match value {
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                places(item, &format!("{pointer}/{at}"), found);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                places(member, &format!("{pointer}/{key}"), found);
            }
        }
        _ => {}
    }
}

impl Change {
    /// The instance with this change.
    fn apply(&self, instance: &Value) -> Value {
        let mut found = Vec::new();
        places(instance, "", &mut found);
        let mut changed = instance.clone();
        let place = changed.pointer_mut(&found[self.place % found.len()]).expect("a place of it");
        match (self.what % 4, place) {
            (0, Value::Array(items)) if !items.is_empty() => drop(items.remove(self.place % items.len())),
            (0, Value::Object(members)) if !members.is_empty() => {
                let key = members.keys().nth(self.place % members.len()).expect("within").clone();
                members.remove(&key);
            }
            (1, Value::Array(items)) => items.push(self.value.clone()),
            (1, Value::Object(members)) => drop(members.insert(self.key.clone(), self.value.clone())),
            (2, Value::String(text)) => text.push('b'),
            (3, Value::String(text)) => drop(text.pop()),
            (2 | 3, place @ Value::Number(_)) => {
                let by = if self.what % 4 == 2 { 1.0 } else { -1.0 };
                // Sums of quarters and small integers are exact.
                *place = Value::from(place.as_f64().expect("small") + by);
            }
            (_, place) => *place = self.value.clone(),
        }
        changed
    }
}

/// Valid instances among these and those one change away, and of each the first change that makes it
/// invalid.
pub fn pairs(judge: &Validator, instances: &[Value], changes: &[Change]) -> Vec<(Value, bool)> {
    let mut valid: Vec<Value> = Vec::new();
    let near = instances.iter().zip(changes.iter().cycle()).map(|(instance, change)| change.apply(instance));
    for instance in instances.iter().cloned().chain(near) {
        if valid.len() < MOST && !valid.contains(&instance) && judge.is_valid(&instance) {
            valid.push(instance);
        }
    }
    let mut invalid: Vec<Value> = Vec::new();
    for (at, instance) in valid.iter().enumerate() {
        let start = at * changes.len() / MOST;
        let mut others = changes.iter().cycle().skip(start).take(changes.len());
        let found = others.find_map(|change| {
            Some(change.apply(instance)).filter(|other| !invalid.contains(other) && !judge.is_valid(other))
        });
        invalid.extend(found);
    }
    // Instances that no change makes invalid say little.
    valid.truncate(invalid.len().max(1));
    let valid = valid.into_iter().map(|instance| (instance, true));
    valid.chain(invalid.into_iter().map(|instance| (instance, false))).collect()
}

/// Numbers of valid and invalid pairs, in all and by keyword.
#[derive(Debug, Default)]
pub struct Counts {
    pub all: [usize; 2],
    pub keywords: BTreeMap<String, [usize; 2]>,
}

impl Counts {
    /// Counts pairs of one schema.
    pub fn add(&mut self, schema: &Value, pairs: &[(Value, bool)]) {
        let valid = pairs.iter().filter(|(_, valid)| *valid).count();
        let both = [valid, pairs.len() - valid];
        let mut found = Vec::new();
        keywords(schema, &mut found);
        found.sort();
        found.dedup();
        let add = |counts: &mut [usize; 2]| *counts = [counts[0] + both[0], counts[1] + both[1]];
        found.into_iter().for_each(|keyword| add(self.keywords.entry(keyword).or_default()));
        add(&mut self.all);
    }
}

/// Keywords of a schema and of all schemas in it, without `$defs`, which every schema has, and remarks.
fn keywords(schema: &Value, found: &mut Vec<String>) {
    let Value::Object(members) = schema else { return };
    for (keyword, value) in members {
        if ["$defs", "examples"].contains(&keyword.as_str()) {
            continue;
        }
        found.push(keyword.clone());
        match (keyword.as_str(), value) {
            ("enum" | "const" | "dependentRequired", _) => {}
            ("properties" | "patternProperties" | "dependentSchemas", Value::Object(named)) => {
                named.values().for_each(|schema| keywords(schema, found));
            }
            (_, Value::Array(schemas)) => schemas.iter().for_each(|schema| keywords(schema, found)),
            (_, schema) => keywords(schema, found),
        }
    }
}

/// The values that a schema itself names, which random ones seldom hit.
pub fn named(schema: &Value, found: &mut Vec<Value>) {
    match schema {
        Value::Array(parts) => parts.iter().for_each(|part| named(part, found)),
        Value::Object(members) => {
            for (keyword, value) in members {
                match (keyword.as_str(), value) {
                    ("const", value) => found.push(value.clone()),
                    ("enum", Value::Array(values)) => found.extend(values.iter().cloned()),
                    ("properties", Value::Object(schemas)) => found.push(Value::Object(example(schemas))),
                    _ => {}
                }
                named(value, found);
            }
        }
        _ => {}
    }
}

/// An object with a member for each property whose schema names a value.
fn example(schemas: &Map<String, Value>) -> Map<String, Value> {
    let mut members = Map::new();
    for (key, schema) in schemas {
        let mut values = Vec::new();
        named(schema, &mut values);
        members.extend(values.into_iter().next().map(|value| (key.clone(), value)));
    }
    members
}
