//! A table of all known keywords, with the role of each.
//!
//! The translation and the report both take their answers from this table, so that neither can call enforced
//! what the other drops.

use super::document::{Documents, NodeId, Value};
use crate::grammar::suggest;

/// The role of a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A keyword that restricts the valid values.
    Asserts,
    /// A keyword that names schemas, or holds those that others refer to.
    Names,
    /// A remark of a draft or of a widely used vocabulary, which restricts nothing.
    Remarks,
    /// A keyword of no known vocabulary.
    Unknown,
}

/// Keywords that restrict values.
pub(super) const ASSERTING: &[&str] = &[
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "properties",
    "patternProperties",
    "additionalProperties",
    "required",
    "minProperties",
    "maxProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "items",
    "prefixItems",
    "additionalItems",
    "minItems",
    "maxItems",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedProperties",
    "unevaluatedItems",
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "nullable",
    "x-kubernetes-int-or-string",
];

/// Keywords that name schemas.
pub(super) const NAMING: &[&str] =
    &["$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$defs", "definitions"];

/// Remarks of the drafts and their hyper-schemas, of OpenAPI, and of editors (Visual Studio Code, IntelliJ)
/// and validators. These are remarks whatever their values are.
pub(super) const REMARKS: &[&str] = &[
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
    "$vocabulary",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "links",
    "base",
    "media",
    "readonly",
    "example",
    "discriminator",
    "xml",
    "externalDocs",
    "markdownDescription",
    "markdownEnumDescriptions",
    "enumDescriptions",
    "enumDeprecated",
    "enumItemLabels",
    "deprecationMessage",
    "markdownDeprecationMessage",
    "errorMessage",
    "patternErrorMessage",
    "defaultSnippets",
    "suggestSortText",
    "doNotSuggest",
    "allowComments",
    "allowTrailingCommas",
    "completionDetail",
    "enumNames",
    "enumTitles",
    "tsType",
    "tsEnumNames",
    "javaType",
    "javaInterfaces",
    "javaName",
    "existingJavaType",
    "extendsJavaClass",
    "propertyOrder",
    "$async",
    "$default",
];

/// Names under which people keep remarks; if the value is a schema, a property may be meant.
const INFORMAL: &[&str] = &[
    "$license",
    "alias",
    "aliases",
    "author",
    "authors",
    "category",
    "comment",
    "comments",
    "copyright",
    "faker",
    "form",
    "group",
    "hidden",
    "icon",
    "label",
    "license",
    "longDescription",
    "name",
    "note",
    "notes",
    "options",
    "order",
    "placeholder",
    "references",
    "self",
    "stability",
    "summary",
    "tags",
    "unit",
    "units",
    "version",
    "visible",
    "widget",
];

/// Keywords by which an object is recognised as a schema; others, such as `format`, occur in remarks too.
const TELLING: &[&str] =
    &["type", "$ref", "properties", "items", "enum", "const", "allOf", "anyOf", "oneOf", "not"];

/// The keywords that are meant by names that are not spelled like them.
const MEANT: &[(&str, &str)] = &[
    ("disallow", "`not`"),
    ("divisibleBy", "`multipleOf`"),
    ("extends", "`allOf`"),
    ("optional", "`required`, which lists the names that are not optional"),
    ("strict", "`additionalProperties` with false"),
    ("strictProperties", "`additionalProperties` with false"),
    ("min", "`minimum`, `minLength` or `minItems`"),
    ("max", "`maximum`, `maxLength` or `maxItems`"),
    ("minValue", "`minimum`"),
    ("maxValue", "`maximum`"),
    ("length", "`minLength` and `maxLength`"),
    ("size", "`minItems` and `maxItems`"),
    ("regex", "`pattern`"),
    ("regexp", "`pattern`"),
    ("values", "`enum`"),
    ("choices", "`enum`"),
    ("value", "`const`"),
    ("constant", "`const`"),
    ("element", "`items`"),
    ("elements", "`items`"),
    ("fields", "`properties`"),
    ("property", "`properties`"),
    ("unique", "`uniqueItems`"),
];

/// The role of a keyword, by its name.
pub(super) fn role(keyword: &str) -> Role {
    if ASSERTING.contains(&keyword) {
        return Role::Asserts;
    }
    if NAMING.contains(&keyword) {
        return Role::Names;
    }
    // OpenAPI's extensions; names marked as private; names with a prefix of a vocabulary.
    let is_extension = keyword.starts_with("x-") || keyword.starts_with("X-");
    let is_private = keyword.starts_with(['_', '/', '@', '#']) || keyword.starts_with("$$");
    let is_prefixed = keyword.contains(':');
    if is_extension || is_private || is_prefixed || REMARKS.contains(&keyword) {
        return Role::Remarks;
    }
    Role::Unknown
}

/// The role of a keyword, by its name and its value.
pub(super) fn role_of(documents: &Documents, keyword: &str, value: NodeId) -> Role {
    match role(keyword) {
        Role::Unknown if INFORMAL.contains(&keyword) && !is_like_schema(documents, value) => Role::Remarks,
        role => role,
    }
}

/// A hint for a keyword that is not known.
pub(super) fn advice(documents: &Documents, keyword: &str, value: NodeId) -> String {
    if let Some((_, meant)) = MEANT.iter().find(|(name, _)| *name == keyword) {
        return format!("did you mean {meant}?");
    }
    let known = ASSERTING.iter().chain(NAMING).chain(REMARKS).copied();
    if let Some(near) = suggest::nearest(keyword, known) {
        return format!("did you mean `{near}`?");
    }
    if is_like_schema(documents, value) {
        return "if it is a property, put it under `properties`".to_owned();
    }
    "if it is a remark, begin its name with `x-`".to_owned()
}

/// True for an object that has a keyword by which schemas are recognised.
fn is_like_schema(documents: &Documents, value: NodeId) -> bool {
    match documents.value(value) {
        Value::Object(members) => members.iter().any(|(key, _)| TELLING.contains(&&**key)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_schema_keyword_has_two_roles() {
        let all: Vec<&str> = [ASSERTING, NAMING, REMARKS, INFORMAL].concat();
        for (index, keyword) in all.iter().enumerate() {
            assert!(!all[..index].contains(keyword), "{keyword}");
        }
        for (keyword, _) in MEANT {
            assert_eq!(role(keyword), Role::Unknown, "{keyword}");
        }
    }
}
