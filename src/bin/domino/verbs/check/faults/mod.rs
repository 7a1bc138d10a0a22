//! Explanations in the words of a JSON Schema of why the engine has refused a text.
//!
//! They are made only after a refusal, by the validator of the crate `jsonschema`, and printed beside the
//! character that cannot follow, not in its place. Nothing is said where nothing is found wrong: a text may
//! be refused for its white space, or for the order of its members. Of an unfinished value only those faults
//! are told that no further text can mend.

mod begun;

use domino::grammar::json_schema::{Draft, DuplicateKeys, Format, SchemaOptions};
use jsonschema::{Retrieve, Uri, ValidationError, Validator, error::ValidationErrorKind as Kind};
use serde_json::{Value, json};

use self::begun::{begun, doubled};
use crate::terminal::{count, lists};

/// Limit on the faults reported for one text.
const MOST: usize = 8;
/// Limit on the characters of a value that are shown.
const LONGEST: usize = 40;
/// Limit on the values of a list that are named.
const MOST_NAMED: usize = 8;

/// A fault of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SchemaFault {
    /// A sentence, such as "missing required key `city`".
    pub(crate) message: String,
    /// The JSON pointer to the value that is wrong.
    pub(crate) instance: String,
    /// The JSON pointer to the keyword that forbids it, after `#`.
    pub(crate) schema: String,
    /// True if something is missing, so that more text could mend the fault.
    lacks: bool,
}

/// Finds what is wrong with a text by its schema, as far as that can be told. If the text has `ended` too
/// early, only missing parts are faults.
pub(super) fn explain(schema: &str, options: &SchemaOptions, text: &str, ended: bool) -> Vec<SchemaFault> {
    let (Ok(schema), Some(begun)) = (serde_json::from_str::<Value>(schema), begun(text)) else {
        return Vec::new();
    };
    // Another dialect may have other keywords.
    let dialect = schema.get("$schema").and_then(Value::as_str);
    if dialect.is_some_and(|dialect| !dialect.contains("json-schema.org/")) {
        return Vec::new();
    }
    let told = FaultReader { schema: &schema, open: &begun.open, ended };
    let validator = validator(&schema, options);
    let errors = validator.iter().flat_map(|validator| validator.iter_errors(&begun.value));
    let mut faults: Vec<SchemaFault> = errors.flat_map(|error| told.faults(&error)).take(MOST).collect();
    if options.duplicate_keys == DuplicateKeys::Refuse
        && let Some((instance, key)) = doubled(text)
    {
        let message = format!("the key `{key}` comes twice");
        faults.insert(0, SchemaFault { message, instance, schema: String::new(), lacks: false });
    }
    if ended {
        // More text can follow what is there, so only missing parts are faults.
        faults.retain(|fault| fault.lacks);
    }
    faults.truncate(MOST);
    faults
}

/// Makes the validator of a schema; `None` where it cannot be read. A schema that names no draft may have the
/// spellings of any.
fn validator(schema: &Value, options: &SchemaOptions) -> Option<Validator> {
    use jsonschema::Draft as Known;
    let mut read = schema.clone();
    if options.closed == Some(true) {
        close(&mut read);
    }
    let drafts = match options.draft {
        _ if schema.get("$schema").is_some() => vec![None],
        Some(Draft::Draft4) => vec![Some(Known::Draft4)],
        Some(Draft::Draft6) => vec![Some(Known::Draft6)],
        Some(Draft::Draft7) => vec![Some(Known::Draft7)],
        Some(Draft::Draft201909) => vec![Some(Known::Draft201909)],
        _ => [Known::Draft202012, Known::Draft201909, Known::Draft7, Known::Draft4].map(Some).to_vec(),
    };
    drafts.into_iter().find_map(|draft| {
        let usual = jsonschema::options().with_retriever(SchemaDocuments(options.documents.clone()));
        let usual = usual.should_validate_formats(options.format == Format::Assert);
        draft.map_or(usual.clone(), |draft| usual.with_draft(draft)).build(&read).ok()
    })
}

/// The documents that references may lead to, by their addresses.
struct SchemaDocuments(Vec<(String, String)>);

impl Retrieve for SchemaDocuments {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        let found = self.0.iter().find(|(address, _)| address == uri.as_str());
        Ok(serde_json::from_str(&found.ok_or("there is no such document")?.1)?)
    }
}

/// Closes all objects with `properties`, unless the schema says otherwise.
fn close(schema: &mut Value) {
    match schema {
        Value::Array(list) => list.iter_mut().for_each(close),
        Value::Object(keywords) => {
            let inside =
                keywords.iter_mut().filter(|(name, _)| !["const", "default", "enum"].contains(&&***name));
            inside.for_each(|(_, inside)| close(inside));
            let open = ["additionalProperties", "unevaluatedProperties"];
            let mentioned = keywords.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            if open.iter().any(|name| keywords.contains_key(*name)) {
                return;
            }
            if let Some(Value::Object(properties)) = keywords.get_mut("properties") {
                for name in mentioned.iter().filter_map(Value::as_str) {
                    properties.entry(name).or_insert(Value::Bool(true));
                }
                keywords.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
        }
        _ => {}
    }
}

/// Keywords whose faults no further text can mend: the text holds what they forbid.
const LASTING: &str = "\
    type anyOf oneOf falseSchema additionalProperties propertyNames maxProperties maxItems";

/// The words for errors of a validator.
struct FaultReader<'a> {
    schema: &'a Value,
    /// The unfinished values, with their kinds: more may follow in them.
    open: &'a [(String, &'static str)],
    /// True if the text has ended, so that absent parts are missing.
    ended: bool,
}

impl FaultReader<'_> {
    /// The faults that an error is; none where further text may mend it.
    fn faults(&self, error: &ValidationError<'_>) -> Vec<SchemaFault> {
        let (place, keyword) = (error.instance_path().as_str(), error.kind().keyword());
        let schema = error.schema_path().as_str();
        let fault = |instance: String, message: String| {
            let lacks = is_lacking(error);
            SchemaFault { message, instance, schema: schema.to_owned(), lacks }
        };
        if !self.is_certain(error, place, keyword) {
            return Vec::new();
        }
        match error.kind() {
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => self.nearest(error, context),
            Kind::AdditionalProperties { unexpected } => {
                let message = |name: &String| format!("additional property `{name}` is not allowed");
                let mut faults: Vec<SchemaFault> = unexpected
                    .iter()
                    .map(|name| fault(format!("{place}/{}", escaped(name)), message(name)))
                    .collect();
                // Where objects are closed unless they say otherwise, the keyword is not there.
                if let (None, Some(object)) =
                    (self.schema.pointer(schema), schema.strip_suffix("additionalProperties"))
                {
                    faults.iter_mut().for_each(|fault| fault.schema = format!("{object}properties"));
                }
                faults
            }
            Kind::PropertyNames { error: inner } => {
                let name = inner.instance().as_str().unwrap_or_default();
                vec![SchemaFault {
                    message: self.message(inner),
                    instance: format!("{place}/{}", escaped(name)),
                    schema: inner.schema_path().as_str().to_owned(),
                    lacks: false,
                }]
            }
            Kind::UniqueItems => {
                let items = error.instance().as_array().map_or(&[][..], Vec::as_slice);
                let before = |at: usize| items[..at].iter().position(|one| *one == items[at]);
                let twice = (0..items.len()).find_map(|at| Some((at, before(at)?)));
                vec![twice.map_or_else(
                    || fault(place.to_owned(), "two items are equal".to_owned()),
                    |(at, before)| {
                        let message = format!("{} is there twice: item {before} is equal", shown(&items[at]));
                        fault(format!("{place}/{at}"), message)
                    },
                )]
            }
            _ => vec![fault(place.to_owned(), self.message(error))],
        }
    }

    /// True if the error is one whatever may follow, and also by the types of OpenAPI and of Kubernetes.
    fn is_certain(&self, error: &ValidationError<'_>, place: &str, keyword: &str) -> bool {
        let parent = error.schema_path().as_str().rsplit_once('/').map_or("", |(parent, _)| parent);
        let beside = |name: &str| self.schema.pointer(parent).and_then(|schema| schema.get(name));
        let (is_type, instance) = (keyword == "type", error.instance());
        let loose = beside("x-kubernetes-int-or-string").is_some()
            || instance.is_null() && beside("nullable") == Some(&Value::Bool(true));
        if is_type && loose {
            return false;
        }
        // Which branch is meant may be open as well.
        let conditional =
            error.evaluation_path().as_str().split('/').any(|step| ["then", "else"].contains(&step));
        if conditional && !self.open.is_empty() {
            return false;
        }
        match self.open.iter().find(|(pointer, _)| pointer == place) {
            None => true,
            // A number may get more digits.
            Some((_, "value")) => {
                is_type && !(instance.is_number() && self.message(error).contains("an integer"))
            }
            Some(_) if matches!(error.kind(), Kind::OneOfMultipleValid { .. }) => false,
            Some(_) => lists(LASTING, keyword) || self.ended && is_lacking(error),
        }
    }

    /// The fault that no alternative is right, with the faults of the nearest one: first by its type, then by
    /// the constants of members that tell alternatives apart, then by the number of faults.
    fn nearest(
        &self,
        error: &ValidationError<'_>,
        context: &[Vec<ValidationError<'static>>],
    ) -> Vec<SchemaFault> {
        let (place, schema) = (error.instance_path().as_str(), error.schema_path().as_str());
        let found: Vec<Vec<SchemaFault>> = context
            .iter()
            .map(|errors| errors.iter().flat_map(|error| self.faults(error)).collect())
            .collect();
        if found.iter().any(Vec::is_empty) {
            return Vec::new();
        }
        let lacks = |faults: &[SchemaFault]| faults.iter().all(|fault| fault.lacks);
        let distance = |faults: &[SchemaFault]| {
            let other_type = |fault: &SchemaFault| fault.instance == place && fault.schema.ends_with("/type");
            let told_apart =
                |fault: &SchemaFault| fault.schema.ends_with("/const") || fault.schema.ends_with("/enum");
            (
                self.ended && !lacks(faults),
                faults.iter().any(other_type),
                faults.iter().any(told_apart),
                faults.len(),
            )
        };
        let total = found.len();
        let Some((index, nearest)) = found.into_iter().enumerate().min_by_key(|(_, faults)| distance(faults))
        else {
            return Vec::new();
        };
        // The faults of a single branch are told as if they stood outside.
        if total == 1 {
            return nearest;
        }
        let instance = shown(error.instance());
        let message = format!("{instance} fits none of {total} alternatives; #{schema}/{index} is nearest");
        let (instance, schema) = (place.to_owned(), schema.to_owned());
        let outer = SchemaFault { message, instance, schema, lacks: lacks(&nearest) };
        std::iter::once(outer).chain(nearest).collect()
    }

    /// Puts an error into words.
    fn message(&self, error: &ValidationError<'_>) -> String {
        let (instance, path) = (error.instance(), error.schema_path().as_str());
        if let Some(message) = size_message(error.kind(), instance) {
            return message;
        }
        let value = || self.schema.pointer(path).map(Value::to_string).unwrap_or_default();
        let shown = shown(instance);
        match error.kind() {
            Kind::Type { .. } => {
                let names = self.schema.pointer(path);
                let names = names.map_or(&[][..], |names| {
                    names.as_array().map_or(std::slice::from_ref(names), Vec::as_slice)
                });
                let names = alternatives(names.iter().filter_map(Value::as_str).map(article));
                format!("{shown} is {}, and must be {names}", kind(instance))
            }
            Kind::Constant { expected_value } => format!("{shown} is not {}", self::shown(expected_value)),
            Kind::Enum { options } => {
                let options = options.as_array().into_iter().flatten();
                format!("{shown} is not one of {}", alternatives(options.map(self::shown)))
            }
            Kind::FalseSchema => format!("{shown} is not allowed here"),
            Kind::Format { format } => format!("{shown} is not of the format \"{format}\""),
            Kind::Pattern { pattern } => format!("{shown} does not match the pattern {}", json!(pattern)),
            Kind::MultipleOf { .. } => format!("{shown} is no multiple of {}", value()),
            Kind::Contains => match path.rsplit_once('/').map_or("", |(_, keyword)| keyword) {
                "maxContains" => format!("more items as `contains` says than {}", value()),
                "minContains" => format!("fewer items as `contains` wants than {}", value()),
                _ => "0 items as `contains` wants, and at least 1 must be there".to_owned(),
            },
            Kind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                // Of `dependentRequired`, the key that asks for it.
                let asks = |(other, names): &(&String, &Value)| {
                    instance.get(other).is_some()
                        && names.as_array().is_some_and(|names| names.contains(property))
                };
                let asking = self.schema.pointer(path).and_then(Value::as_object);
                let asking = asking.and_then(|asking| asking.iter().find(asks));
                let beside = asking.map_or_else(String::new, |(other, _)| format!(" (beside `{other}`)"));
                format!("missing required key `{name}`{beside}")
            }
            Kind::Not { .. } => format!("{shown} is what `not` forbids"),
            Kind::OneOfMultipleValid { context } => {
                let mut right = (0..context.len()).filter(|&at| context[at].is_empty());
                let (first, second) = (right.next().unwrap_or(0), right.next().unwrap_or(0));
                format!("{shown} fits more than one of `oneOf`: #{path}/{first} and #{path}/{second}")
            }
            _ => error.to_string(),
        }
    }
}

/// Puts an error about the size of an instance into words; `None` for other errors.
fn size_message(kind: &Kind, instance: &Value) -> Option<String> {
    let (side, keyword, bound) = match kind {
        Kind::Maximum { limit } | Kind::ExclusiveMaximum { limit } => ("over", "maximum", limit),
        Kind::Minimum { limit } | Kind::ExclusiveMinimum { limit } => ("under", "minimum", limit),
        Kind::MinLength { limit } | Kind::MinItems { limit } | Kind::MinProperties { limit } => {
            return Some(format!("{}, and at least {limit} must be there", sized(instance)));
        }
        Kind::MaxLength { limit } | Kind::MaxItems { limit } | Kind::MaxProperties { limit } => {
            return Some(format!("{}, and at most {limit} may be there", sized(instance)));
        }
        _ => return None,
    };
    Some(match instance == bound {
        true => format!("`{instance}` is the exclusive {keyword} itself"),
        false => format!("`{instance}` is {side} the {keyword} {bound}"),
    })
}

/// Says how large a text, a list or an object is.
fn sized(instance: &Value) -> String {
    let (what, size, part) = match instance {
        Value::Array(items) => ("array", items.len(), "item"),
        Value::Object(members) => ("object", members.len(), "key"),
        other => ("string", other.as_str().map_or(0, |text| text.chars().count()), "character"),
    };
    format!("the {what} has {}", count(size, part))
}

/// True if more text could mend the error.
fn is_lacking(error: &ValidationError<'_>) -> bool {
    let asks = matches!(
        error.kind(),
        Kind::Required { .. } | Kind::MinProperties { .. } | Kind::MinItems { .. } | Kind::MinLength { .. }
    );
    asks || matches!(error.kind(), Kind::Contains) && !error.schema_path().as_str().ends_with("/maxContains")
}

/// Escapes a name as a step of a JSON pointer.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Shows a value as it is written, cut if it is long.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None => format!("`{text}`"),
    }
}

/// Names the kind of a value, with its article.
fn kind(value: &Value) -> String {
    article(match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    })
}

/// Puts an article before the name of a type.
fn article(name: &str) -> String {
    match name {
        "null" => name.to_owned(),
        "integer" | "array" | "object" => format!("an {name}"),
        _ => format!("a {name}"),
    }
}

/// Joins names with commas, and with "or" before the last.
fn alternatives(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    let more = names.len().saturating_sub(MOST_NAMED);
    match names.split_last() {
        Some((only, [])) => only.clone(),
        Some(_) if more > 0 => format!("{} or {more} more", names[..MOST_NAMED].join(", ")),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => "nothing".to_owned(),
    }
}

/// Writes a fault as a line for people.
pub(crate) fn line(fault: &SchemaFault) -> String {
    let SchemaFault { message, instance, schema, .. } = fault;
    let place = if instance.is_empty() { "at the top".to_owned() } else { format!("at {instance}") };
    format!("by the schema: {message}, {place} (#{schema})")
}

/// Lists faults as JSON.
pub(crate) fn list(faults: &[SchemaFault]) -> Value {
    let one = |fault: &SchemaFault| {
        let SchemaFault { message, instance, schema, .. } = fault;
        json!({ "message": message, "instance": instance, "schema": format!("#{schema}") })
    };
    faults.iter().map(one).collect()
}
