//! Walks an instance and its schema, keyword by keyword, to say in the schema's words what is wrong.
//!
//! It knows the commonest keywords and asks the engine about patterns and formats. It is no validator: where
//! it cannot tell, it says nothing, and [`Found::sure`] is false, so that nothing is built on its silence.

use std::cell::Cell;

use serde_json::{Map, Value};

use super::{
    compare::{Bound, equal},
    references::References,
    words::{alternatives, count, kind, shown},
};

/// Faults that are kept of one place; more tell nothing.
const MOST: usize = 8;
/// Nested schemas that are looked into.
const DEEPEST: usize = 64;
/// Schemas that are looked at in all.
const STEPS: usize = 100_000;

/// One thing that is wrong with an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// A sentence, such as "missing required key `city`".
    pub(crate) message: String,
    /// The JSON pointer to the value that is wrong.
    pub(crate) instance: String,
    /// The JSON pointer to the keyword that says so, after `#`.
    pub(crate) schema: String,
    /// Is something not there yet, so that more text could mend it?
    pub(super) lacks: bool,
}

/// What was found at one place. Without faults it is valid if `sure`, and else nobody knows.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) faults: Vec<Fault>,
    pub(super) sure: bool,
}

impl Found {
    fn valid() -> Self {
        Self { faults: Vec::new(), sure: true }
    }

    fn unknown() -> Self {
        Self { faults: Vec::new(), sure: false }
    }

    fn fault(fault: Fault) -> Self {
        Self { faults: vec![fault], sure: true }
    }

    fn is_wrong(&self) -> bool {
        !self.faults.is_empty()
    }

    fn is_right(&self) -> bool {
        self.faults.is_empty() && self.sure
    }

    /// Could more text mend it?
    fn lacks(&self) -> bool {
        self.faults.iter().all(|fault| fault.lacks)
    }

    fn and(mut self, other: Self) -> Self {
        self.sure &= other.sure;
        self.faults.extend(other.faults);
        self.faults.truncate(MOST);
        self
    }
}

/// Where a walk is.
#[derive(Debug, Clone)]
struct Place {
    instance: String,
    schema: String,
    depth: usize,
}

impl Place {
    /// The place under a keyword, at the same value.
    fn under(&self, keyword: &str) -> Self {
        let schema = format!("{}/{}", self.schema, escaped(keyword));
        Self { instance: self.instance.clone(), schema, depth: self.depth + 1 }
    }

    /// The place of a member or an item, at the same keyword.
    fn at(&self, name: &str) -> Self {
        Self { instance: format!("{}/{}", self.instance, escaped(name)), ..self.clone() }
    }

    /// A fault of this place.
    fn fault(&self, message: String) -> Found {
        let Self { instance, schema, .. } = self.clone();
        Found::fault(Fault { message, instance, schema, lacks: false })
    }

    /// A fault that more text could mend.
    fn lack(&self, message: String) -> Found {
        let mut found = self.fault(message);
        found.faults.iter_mut().for_each(|fault| fault.lacks = true);
        found
    }

    fn fault_if(&self, wrong: bool, message: impl FnOnce() -> String) -> Found {
        if wrong { self.fault(message()) } else { Found::valid() }
    }

    fn lack_if(&self, wrong: bool, message: impl FnOnce() -> String) -> Found {
        if wrong { self.lack(message()) } else { Found::valid() }
    }
}

/// A name as a step of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// How a schema is read.
pub(super) struct Walk<'a> {
    pub(super) references: References<'a>,
    /// Is `1.0` no integer, as in draft 4?
    pub(super) only_digits: bool,
    /// Are objects closed that do not say otherwise?
    pub(super) closed: bool,
    /// Do formats restrict strings?
    pub(super) formats: bool,
    /// Asks the engine whether an instance is one of a small schema.
    pub(super) engine: &'a dyn Fn(&Value, &Value) -> Option<bool>,
    pub(super) steps: Cell<usize>,
    /// Values that are only begun: more may follow in them.
    pub(super) open: &'a [(String, &'static str)],
    /// Does the text end there, so that what is not there is missing?
    pub(super) ended: bool,
}

/// Keywords that no more text mends: what they forbid is there.
const LASTING: &[&str] = &[
    "$ref",
    "allOf",
    "anyOf",
    "oneOf",
    "properties",
    "patternProperties",
    "additionalProperties",
    "propertyNames",
    "maxProperties",
    "prefixItems",
    "items",
    "additionalItems",
    "maxItems",
];
/// Keywords that ask for something which more text may bring.
const LACKING: &[&str] = &["required", "dependentRequired", "minProperties", "minItems"];

impl Walk<'_> {
    /// What is wrong with an instance of the whole schema.
    pub(super) fn whole(&self, instance: &Value) -> Found {
        let place = Place { instance: String::new(), schema: String::new(), depth: 0 };
        self.schema(self.references.root, instance, &place)
    }

    fn schema(&self, schema: &Value, instance: &Value, place: &Place) -> Found {
        self.steps.set(self.steps.get() + 1);
        if place.depth > DEEPEST || self.steps.get() > STEPS {
            return Found::unknown();
        }
        let schema = match schema {
            Value::Bool(true) => return Found::valid(),
            Value::Bool(false) => return place.fault(format!("{} is not allowed here", shown(instance))),
            Value::Object(schema) => schema,
            _ => return Found::unknown(),
        };
        if let Some(reference) = schema.get("$ref").filter(|_| self.references.alone) {
            return self.reference(reference, instance, &place.under("$ref"));
        }
        let begun = self.begun(place);
        let kind = self.kind(schema, instance, place);
        if begun == Some("value") && !kind.is_wrong() {
            return Found::unknown();
        }
        if kind.is_wrong() {
            // What else a schema says is about values of its types.
            return kind;
        }
        let mut found = kind;
        for (keyword, value) in schema {
            let here = place.under(keyword);
            let lasts = LASTING.contains(&&**keyword) || (self.ended && LACKING.contains(&&**keyword));
            found = found.and(match begun.is_none() || lasts {
                true => self.keyword(schema, (keyword, value), instance, &here),
                false => Found::unknown(),
            });
        }
        found
    }

    /// Is the value of a place only begun, and what is it?
    fn begun(&self, place: &Place) -> Option<&'static str> {
        self.open.iter().find(|(pointer, _)| *pointer == place.instance).map(|&(_, kind)| kind)
    }

    fn reference(&self, reference: &Value, instance: &Value, place: &Place) -> Found {
        let Some((schema, pointer)) = reference.as_str().and_then(|address| self.references.find(address))
        else {
            return Found::unknown();
        };
        self.schema(schema, instance, &Place { schema: pointer, ..place.clone() })
    }

    /// What one keyword says.
    fn keyword(
        &self,
        schema: &Map<String, Value>,
        (keyword, value): (&str, &Value),
        instance: &Value,
        here: &Place,
    ) -> Found {
        match (keyword, instance) {
            ("$ref", _) => self.reference(value, instance, here),
            ("enum" | "const", _) => constant(keyword, value, instance, here),
            ("allOf" | "anyOf" | "oneOf", _) => self.several(keyword, value, instance, here),
            ("not", _) => {
                let inside = self.schema(value, instance, here);
                let wrong = || format!("{} is what `not` forbids", shown(instance));
                match (inside.is_right(), inside.is_wrong()) {
                    (true, _) => here.fault(wrong()),
                    (false, true) => Found::valid(),
                    (false, false) => Found::unknown(),
                }
            }
            ("if", _) => self.condition(schema, value, instance, here),
            ("minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum", Value::Number(number)) => {
                match Bound::of(schema, keyword, value) {
                    Some(bound) => bound.of_number(number).map_or_else(Found::unknown, |fault| {
                        fault.map_or_else(Found::valid, |message| here.fault(message))
                    }),
                    None => Found::valid(),
                }
            }
            ("multipleOf", Value::Number(_)) => self.asked(keyword, value, instance, here, "number"),
            ("pattern", Value::String(_)) => self.asked(keyword, value, instance, here, "string"),
            ("format", Value::String(_)) if self.formats => {
                self.asked(keyword, value, instance, here, "string")
            }
            ("minLength" | "maxLength", Value::String(text)) => {
                size(keyword, value, text.chars().count(), here, ("string", "character"))
            }
            (_, Value::Object(members)) => self.of_object(schema, (keyword, value), members, here),
            (_, Value::Array(items)) => self.of_array(schema, (keyword, value), items, here),
            ("unevaluatedProperties" | "unevaluatedItems" | "$dynamicRef" | "$recursiveRef", _) => {
                Found::unknown()
            }
            _ => Found::valid(),
        }
    }

    /// What `type` says, with the spellings of OpenAPI and of Kubernetes.
    fn kind(&self, schema: &Map<String, Value>, instance: &Value, place: &Place) -> Found {
        let names: Vec<&str> = match schema.get("type") {
            None => return Found::valid(),
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            Some(_) => return Found::unknown(),
        };
        let nullable = instance.is_null() && schema.get("nullable") == Some(&Value::Bool(true));
        let loose = schema.get("x-kubernetes-int-or-string").is_some();
        // Of a number more digits may come.
        let number = instance.is_number() && self.begun(place).is_some() && names.contains(&"integer");
        if nullable || loose || number || names.iter().any(|name| self.is_of(instance, name)) {
            return if loose { Found::unknown() } else { Found::valid() };
        }
        let article = |name: &str| match name {
            "null" => name.to_owned(),
            "integer" | "array" | "object" => format!("an {name}"),
            _ => format!("a {name}"),
        };
        let names: Vec<String> = names.into_iter().map(article).collect();
        let message =
            format!("{} is {}, and must be {}", shown(instance), kind(instance), alternatives(&names));
        place.under("type").fault(message)
    }

    fn is_of(&self, instance: &Value, name: &str) -> bool {
        match name {
            "integer" => instance.as_number().is_some_and(|number| {
                let whole = || number.as_f64().is_some_and(|value| value.fract() == 0.0) && !self.only_digits;
                number.is_i64() || number.is_u64() || whole()
            }),
            "number" => instance.is_number(),
            "string" => instance.is_string(),
            "boolean" => instance.is_boolean(),
            "null" => instance.is_null(),
            "array" => instance.is_array(),
            "object" => instance.is_object(),
            // Nobody knows such a type: the schema would not have been read.
            _ => true,
        }
    }

    /// What the engine says of one keyword alone.
    fn asked(&self, keyword: &str, value: &Value, instance: &Value, here: &Place, kind: &str) -> Found {
        let mut schema =
            Map::from_iter([("type".to_owned(), kind.into()), (keyword.to_owned(), value.clone())]);
        if let Some(draft) = self.references.root.get("$schema") {
            schema.insert("$schema".to_owned(), draft.clone());
        }
        let message = || match keyword {
            "multipleOf" => format!("{} is no multiple of {value}", shown(instance)),
            "pattern" => format!("{} does not match the pattern {value}", shown(instance)),
            _ => format!("{} is not of the format {value}", shown(instance)),
        };
        match (self.engine)(&Value::Object(schema), instance) {
            Some(valid) => here.fault_if(!valid, message),
            None => Found::unknown(),
        }
    }

    fn several(&self, keyword: &str, value: &Value, instance: &Value, here: &Place) -> Found {
        let Some(schemas) = value.as_array() else { return Found::unknown() };
        let found: Vec<(Place, Found)> = schemas
            .iter()
            .enumerate()
            .map(|(index, schema)| {
                let place = here.under(&index.to_string());
                let found = self.schema(schema, instance, &place);
                (place, found)
            })
            .collect();
        if keyword == "allOf" {
            return found.into_iter().fold(Found::valid(), |all, (_, found)| all.and(found));
        }
        let right: Vec<usize> = (0..found.len()).filter(|&index| found[index].1.is_right()).collect();
        if let [first, second, ..] = right[..]
            && keyword == "oneOf"
        {
            let (first, second) = (&found[first].0.schema, &found[second].0.schema);
            let message =
                format!("{} fits more than one of `oneOf`: #{first} and #{second}", shown(instance));
            return here.fault(message);
        }
        if !found.iter().all(|(_, found)| found.is_wrong()) {
            let decided = match keyword {
                "anyOf" => !right.is_empty(),
                _ => found.iter().all(|(_, found)| found.sure || found.is_wrong()),
            };
            return Found { faults: Vec::new(), sure: decided };
        }
        let total = found.len();
        // One branch of its own is told as if it stood there.
        let Some((place, nearest)) =
            found.into_iter().min_by_key(|(_, found)| (self.ended && !found.lacks(), distance(found, here)))
        else {
            return here.fault(format!("{} is not allowed: `{keyword}` is empty", shown(instance)));
        };
        if total == 1 {
            return nearest;
        }
        let message =
            format!("{} fits none of {total} alternatives; #{} is nearest", shown(instance), place.schema);
        let lacks = nearest.lacks();
        let mut outer = here.fault(message);
        outer.faults.iter_mut().for_each(|fault| fault.lacks = lacks);
        outer.and(nearest)
    }

    fn condition(&self, schema: &Map<String, Value>, test: &Value, instance: &Value, here: &Place) -> Found {
        let inside = self.schema(test, instance, here);
        let branch = match (inside.is_right(), inside.is_wrong()) {
            (true, _) => "then",
            (false, true) => "else",
            (false, false) => return Found::unknown(),
        };
        let parent = here.schema.strip_suffix("/if").unwrap_or(&here.schema);
        let place = Place { schema: format!("{parent}/{branch}"), ..here.clone() };
        schema.get(branch).map_or_else(Found::valid, |schema| self.schema(schema, instance, &place))
    }

    fn of_object(
        &self,
        schema: &Map<String, Value>,
        (keyword, value): (&str, &Value),
        members: &Map<String, Value>,
        here: &Place,
    ) -> Found {
        let missing = |names: &Value, because: &str| {
            let names = names.as_array().into_iter().flatten().filter_map(Value::as_str);
            let absent = names.filter(|name| !members.contains_key(*name));
            absent.fold(Found::valid(), |found, name| {
                found.and(here.lack(format!("missing required key `{name}`{because}")))
            })
        };
        match keyword {
            "required" => missing(value, ""),
            "minProperties" | "maxProperties" => size(keyword, value, members.len(), here, ("object", "key")),
            "dependentRequired" | "dependencies" | "dependentSchemas" => {
                let asked = value.as_object().into_iter().flatten();
                let asked = asked.filter(|(name, _)| members.contains_key(*name));
                asked.fold(Found::valid(), |found, (name, asks)| {
                    found.and(match asks {
                        Value::Array(_) => missing(asks, &format!(" (beside `{name}`)")),
                        schema => {
                            let whole = Value::Object(members.clone());
                            self.schema(schema, &whole, &here.under(name))
                        }
                    })
                })
            }
            "propertyNames" => members.keys().fold(Found::valid(), |found, name| {
                let key = Value::String(name.clone());
                found.and(self.schema(value, &key, &here.at(name)))
            }),
            "properties" => {
                let listed = value.as_object().into_iter().flatten();
                let found = listed.fold(Found::valid(), |found, (name, schema)| match members.get(name) {
                    Some(member) => found.and(self.schema(schema, member, &here.under(name).at(name))),
                    None => found,
                });
                let open = ["additionalProperties", "unevaluatedProperties"];
                match self.closed && !open.iter().any(|key| schema.contains_key(*key)) {
                    true => found.and(self.additional(schema, &Value::Bool(false), members, here)),
                    false => found,
                }
            }
            "patternProperties" => {
                let patterns = value.as_object().into_iter().flatten();
                let pairs = patterns.flat_map(|pattern| members.iter().map(move |member| (pattern, member)));
                pairs.fold(Found::valid(), |found, ((pattern, schema), (name, member))| {
                    found.and(match self.matches(pattern, name) {
                        Some(true) => self.schema(schema, member, &here.under(pattern).at(name)),
                        Some(false) => Found::valid(),
                        None => Found::unknown(),
                    })
                })
            }
            "additionalProperties" => self.additional(schema, value, members, here),
            "unevaluatedProperties" | "$dynamicRef" | "$recursiveRef" => Found::unknown(),
            _ => Found::valid(),
        }
    }

    /// Does the pattern of `patternProperties` match a key?
    fn matches(&self, pattern: &str, key: &str) -> Option<bool> {
        let schema = serde_json::json!({ "type": "string", "pattern": pattern });
        (self.engine)(&schema, &key.into())
    }

    /// Members that neither `properties` nor `patternProperties` name.
    fn additional(
        &self,
        schema: &Map<String, Value>,
        value: &Value,
        members: &Map<String, Value>,
        here: &Place,
    ) -> Found {
        let listed = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array).filter(|_| self.closed);
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        members.iter().fold(Found::valid(), |found, (name, member)| {
            let mentioned = required.is_some_and(|list| list.iter().any(|one| one == name.as_str()));
            if mentioned || listed.is_some_and(|listed| listed.contains_key(name)) {
                return found;
            }
            for pattern in patterns.into_iter().flat_map(Map::keys) {
                match self.matches(pattern, name) {
                    Some(true) => return found,
                    Some(false) => {}
                    None => return found.and(Found::unknown()),
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

    fn of_array(
        &self,
        schema: &Map<String, Value>,
        (keyword, value): (&str, &Value),
        items: &[Value],
        here: &Place,
    ) -> Found {
        let each = |schemas: &dyn Fn(usize) -> Option<(Place, Value)>| {
            items.iter().enumerate().fold(Found::valid(), |found, (index, item)| match schemas(index) {
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
                _ => Found::valid(),
            },
            ("uniqueItems", Value::Bool(true)) => twice(items, here),
            ("contains", _) => self.contains(schema, value, items, here),
            ("unevaluatedItems" | "$dynamicRef" | "$recursiveRef", _) => Found::unknown(),
            _ => Found::valid(),
        }
    }

    fn contains(&self, schema: &Map<String, Value>, value: &Value, items: &[Value], here: &Place) -> Found {
        let found: Vec<Found> = items.iter().map(|item| self.schema(value, item, here)).collect();
        if found.iter().any(|found| !found.is_wrong() && !found.sure) {
            return Found::unknown();
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

/// What `enum` and `const` say.
fn constant(keyword: &str, value: &Value, instance: &Value, here: &Place) -> Found {
    let one = std::slice::from_ref(value);
    let list: &[Value] = match value {
        Value::Array(list) if keyword == "enum" => list,
        _ => one,
    };
    let same: Vec<Option<bool>> = list.iter().map(|allowed| equal(allowed, instance)).collect();
    if same.contains(&Some(true)) {
        return Found::valid();
    }
    if same.contains(&None) {
        return Found::unknown();
    }
    let allowed: Vec<String> = list.iter().map(shown).collect();
    here.fault(match keyword {
        "const" => format!("{} is not {}", shown(instance), alternatives(&allowed)),
        _ => format!("{} is not one of {}", shown(instance), alternatives(&allowed)),
    })
}

/// What bounds on a size say.
fn size(keyword: &str, value: &Value, size: usize, here: &Place, (what, part): (&str, &str)) -> Found {
    let Some(bound) = value.as_u64().and_then(|bound| usize::try_from(bound).ok()) else {
        return Found::unknown();
    };
    let has = format!("the {what} has {}", count(size, part));
    match keyword.starts_with("min") {
        true => here.lack_if(size < bound, || format!("{has}, and at least {bound} must be there")),
        false => here.fault_if(size > bound, || format!("{has}, and at most {bound} may be there")),
    }
}

/// What `uniqueItems` says.
fn twice(items: &[Value], here: &Place) -> Found {
    let mut sure = true;
    for (index, item) in items.iter().enumerate() {
        for (before, other) in items[..index].iter().enumerate() {
            match equal(item, other) {
                Some(true) => {
                    let message = format!("{} is there twice: item {before} is equal", shown(item));
                    return here.at(&index.to_string()).fault(message);
                }
                Some(false) => {}
                None => sure = false,
            }
        }
    }
    Found { faults: Vec::new(), sure }
}

/// How far an alternative is from what stands there, the nearest least: its type, then what tells alternatives
/// apart (constants of members), then how many faults there are.
fn distance(found: &Found, here: &Place) -> (bool, bool, usize) {
    let other_type =
        found.faults.iter().any(|fault| fault.instance == here.instance && fault.schema.ends_with("/type"));
    let told_apart = |fault: &Fault| fault.schema.ends_with("/const") || fault.schema.ends_with("/enum");
    (other_type, found.faults.iter().any(told_apart), found.faults.len())
}
