//! A walk through an instance and its schema, keyword by keyword, that says in the schema's words what is
//! wrong.
//!
//! It knows the commonest keywords and asks the engine about patterns and formats. It is no validator: where
//! the answer is uncertain it finds no fault and [`Finding::sure`] is false, so that nobody takes the silence
//! for an answer.

use std::cell::Cell;

use serde_json::{Map, Value};

use super::finding::{
    Bound, Finding, Whereabouts, alternatives, constant, count, distance, kind, shown, size, twice,
};

/// Limit on the depth of nested schemas.
const DEEPEST: usize = 64;
/// Limit on the schemas visited in all.
const STEPS: usize = 100_000;

/// A schema, and the rules by which it is read.
pub(super) struct SchemaWalk<'a> {
    pub(super) references: References<'a>,
    /// True if `1.0` is no integer, as in draft 4.
    pub(super) only_digits: bool,
    /// True if objects are closed unless the schema says otherwise.
    pub(super) closed: bool,
    /// True if formats restrict strings.
    pub(super) formats: bool,
    /// A function that asks the engine whether an instance (second) is valid by a small schema (first).
    pub(super) engine: &'a dyn Fn(&Value, &Value) -> Option<bool>,
    pub(super) steps: Cell<usize>,
    /// The unfinished values, with their kinds: more may follow in them.
    pub(super) open: &'a [(String, &'static str)],
    /// True if the text has ended, so that absent parts are missing.
    pub(super) ended: bool,
}

/// Keywords whose faults no further text can mend: the text holds what they forbid.
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
/// Keywords whose faults more text may mend: they ask for more.
const LACKING: &[&str] = &["required", "dependentRequired", "minProperties", "minItems"];

impl SchemaWalk<'_> {
    /// Finds what is wrong with an instance of the whole schema.
    pub(super) fn whole(&self, instance: &Value) -> Finding {
        let place = Whereabouts { instance: String::new(), schema: String::new(), depth: 0 };
        self.schema(self.references.root, instance, &place)
    }

    pub(super) fn schema(&self, schema: &Value, instance: &Value, place: &Whereabouts) -> Finding {
        self.steps.set(self.steps.get() + 1);
        if place.depth > DEEPEST || self.steps.get() > STEPS {
            return Finding::unknown();
        }
        let schema = match schema {
            Value::Bool(true) => return Finding::valid(),
            Value::Bool(false) => return place.fault(format!("{} is not allowed here", shown(instance))),
            Value::Object(schema) => schema,
            _ => return Finding::unknown(),
        };
        if let Some(reference) = schema.get("$ref").filter(|_| self.references.alone) {
            return self.reference(reference, instance, &place.under("$ref"));
        }
        let begun = self.begun(place);
        let kind = self.kind(schema, instance, place);
        if begun == Some("value") && !kind.is_wrong() {
            return Finding::unknown();
        }
        if kind.is_wrong() {
            // The other keywords speak of values of the schema's types.
            return kind;
        }
        let mut found = kind;
        for (keyword, value) in schema {
            let here = place.under(keyword);
            let lasts = LASTING.contains(&&**keyword) || (self.ended && LACKING.contains(&&**keyword));
            found = found.and(match begun.is_none() || lasts {
                true => self.keyword(schema, (keyword, value), instance, &here),
                false => Finding::unknown(),
            });
        }
        found
    }

    /// The kind of the value of a place, if the value is unfinished.
    fn begun(&self, place: &Whereabouts) -> Option<&'static str> {
        self.open.iter().find(|(pointer, _)| *pointer == place.instance).map(|&(_, kind)| kind)
    }

    fn reference(&self, reference: &Value, instance: &Value, place: &Whereabouts) -> Finding {
        let Some((schema, pointer)) = reference.as_str().and_then(|address| self.references.find(address))
        else {
            return Finding::unknown();
        };
        self.schema(schema, instance, &Whereabouts { schema: pointer, ..place.clone() })
    }

    /// Checks an instance by one keyword.
    fn keyword(
        &self,
        schema: &Map<String, Value>,
        (keyword, value): (&str, &Value),
        instance: &Value,
        here: &Whereabouts,
    ) -> Finding {
        match (keyword, instance) {
            ("$ref", _) => self.reference(value, instance, here),
            ("enum" | "const", _) => constant(keyword, value, instance, here),
            ("allOf" | "anyOf" | "oneOf", _) => self.several(keyword, value, instance, here),
            ("not", _) => {
                let inside = self.schema(value, instance, here);
                let wrong = || format!("{} is what `not` forbids", shown(instance));
                match (inside.is_right(), inside.is_wrong()) {
                    (true, _) => here.fault(wrong()),
                    (false, true) => Finding::valid(),
                    (false, false) => Finding::unknown(),
                }
            }
            ("if", _) => self.condition(schema, value, instance, here),
            ("minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum", Value::Number(number)) => {
                match Bound::of(schema, keyword, value) {
                    Some(bound) => bound.of_number(number).map_or_else(Finding::unknown, |fault| {
                        fault.map_or_else(Finding::valid, |message| here.fault(message))
                    }),
                    None => Finding::valid(),
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
                Finding::unknown()
            }
            _ => Finding::valid(),
        }
    }

    /// Checks an instance by `type`, with the spellings of OpenAPI and of Kubernetes.
    fn kind(&self, schema: &Map<String, Value>, instance: &Value, place: &Whereabouts) -> Finding {
        let names: Vec<&str> = match schema.get("type") {
            None => return Finding::valid(),
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            Some(_) => return Finding::unknown(),
        };
        let nullable = instance.is_null() && schema.get("nullable") == Some(&Value::Bool(true));
        let loose = schema.get("x-kubernetes-int-or-string").is_some();
        // A number may get more digits.
        let number = instance.is_number() && self.begun(place).is_some() && names.contains(&"integer");
        if nullable || loose || number || names.iter().any(|name| self.is_of(instance, name)) {
            return if loose { Finding::unknown() } else { Finding::valid() };
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
            // The type is unknown: such a schema would not have been read.
            _ => true,
        }
    }

    /// Asks the engine about one keyword alone.
    fn asked(
        &self,
        keyword: &str,
        value: &Value,
        instance: &Value,
        here: &Whereabouts,
        kind: &str,
    ) -> Finding {
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
            None => Finding::unknown(),
        }
    }

    fn several(&self, keyword: &str, value: &Value, instance: &Value, here: &Whereabouts) -> Finding {
        let Some(schemas) = value.as_array() else { return Finding::unknown() };
        let found: Vec<(Whereabouts, Finding)> = schemas
            .iter()
            .enumerate()
            .map(|(index, schema)| {
                let place = here.under(&index.to_string());
                let found = self.schema(schema, instance, &place);
                (place, found)
            })
            .collect();
        if keyword == "allOf" {
            return found.into_iter().fold(Finding::valid(), |all, (_, found)| all.and(found));
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
            return Finding { faults: Vec::new(), sure: decided };
        }
        let total = found.len();
        // The faults of a single branch are told as if they stood outside.
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

    fn condition(
        &self,
        schema: &Map<String, Value>,
        test: &Value,
        instance: &Value,
        here: &Whereabouts,
    ) -> Finding {
        let inside = self.schema(test, instance, here);
        let branch = match (inside.is_right(), inside.is_wrong()) {
            (true, _) => "then",
            (false, true) => "else",
            (false, false) => return Finding::unknown(),
        };
        let parent = here.schema.strip_suffix("/if").unwrap_or(&here.schema);
        let place = Whereabouts { schema: format!("{parent}/{branch}"), ..here.clone() };
        schema.get(branch).map_or_else(Finding::valid, |schema| self.schema(schema, instance, &place))
    }
}

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

impl SchemaWalk<'_> {
    /// Checks an array by one keyword.
    fn of_array(
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

/// A schema, and the rules by which its references are read.
pub(super) struct References<'a> {
    pub(super) root: &'a Value,
    /// True if all keywords beside `$ref` are ignored, as in drafts 4 to 7.
    pub(super) alone: bool,
    /// True if schemas inside have names of their own, to which references may be relative.
    named: bool,
}

impl<'a> References<'a> {
    pub(super) fn new(root: &'a Value, alone: bool) -> Self {
        Self { root, alone, named: children(root).any(has_name) }
    }

    /// Finds the schema at an address in this document, with its JSON pointer; `None` where that is
    /// uncertain.
    pub(super) fn find(&self, address: &str) -> Option<(&'a Value, String)> {
        let fragment = address.strip_prefix('#').filter(|_| !self.named)?;
        let pointer = decoded(fragment)?;
        if pointer.is_empty() || pointer.starts_with('/') {
            return Some((self.root.pointer(&pointer)?, pointer));
        }
        None
    }
}

/// The values directly inside a value.
fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => Box::new(std::iter::empty()),
    }
}

/// True if the value, or any value inside, has a name that references are relative to.
fn has_name(value: &Value) -> bool {
    let named = ["$id", "id"].into_iter().any(|key| value.get(key).is_some_and(Value::is_string));
    named || children(value).any(has_name)
}

/// Decodes the percent signs of a fragment.
fn decoded(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = behind;
    }
    String::from_utf8(bytes).ok()
}
