//! Every keyword in every draft, from a table of valid instances, invalid ones, and refused schemas.

use std::{collections::BTreeMap, fs, path::Path};

use domino::grammar::json_schema::{Draft, SchemaErrorKind, SchemaOptions};
use serde::Deserialize;
use serde_json::Value;

use super::{Schema, checking};

/// Values of `$schema`, in the order of [`Draft::NAMED`].
const ADDRESSES: [&str; 5] = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
];

#[derive(Debug, Deserialize)]
pub(super) struct Table {
    /// Keywords, with the first and the last draft that has them.
    pub(super) keywords: BTreeMap<String, (String, String)>,
    pub(super) rows: Vec<Row>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Row {
    pub(super) keyword: String,
    /// The first and the last draft that the row holds in; all drafts if absent.
    #[serde(default)]
    drafts: Option<(String, String)>,
    pub(super) schema: Value,
    #[serde(default)]
    pub(super) valid: Vec<Value>,
    #[serde(default)]
    pub(super) invalid: Vec<Value>,
    /// The keyword that the error names or points to, if the schema is refused.
    #[serde(default)]
    pub(super) refused: Option<String>,
}

pub(super) fn table() -> Table {
    let path = Path::new(env!("DOMINO_ROOT")).join("tests/fixtures/schema/drafts.json");
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Index of a draft in [`Draft::NAMED`].
pub(super) fn place(name: &str) -> usize {
    Draft::NAMED.iter().position(|(known, _)| *known == name).unwrap_or_else(|| panic!("draft {name}"))
}

pub(super) fn has((first, last): &(String, String), draft: usize) -> bool {
    (place(first)..=place(last)).contains(&draft)
}

impl Row {
    pub(super) fn holds_in(&self, draft: usize) -> bool {
        self.drafts.as_ref().is_none_or(|drafts| has(drafts, draft))
    }

    /// Descriptions of wrong results under these options.
    fn mistakes(&self, options: &SchemaOptions, schema: &Value) -> Vec<String> {
        let ours = match (Schema::new(options, &schema.to_string()), &self.refused) {
            (Err(error), Some(keyword)) => {
                let place = format!("/{keyword}");
                let named = error.keyword() == Some(keyword) || error.pointer().ends_with(&place);
                let named = named && *error.kind() != SchemaErrorKind::NoInstance;
                return if named { Vec::new() } else { vec![format!("another error: {error}")] };
            }
            (Ok(_), Some(keyword)) => return vec![format!("{keyword} is not refused")],
            (Err(error), None) => return vec![format!("refused: {error}")],
            (Ok(ours), None) => ours,
        };
        let valid = self.valid.iter().map(|instance| (instance, true));
        let invalid = self.invalid.iter().map(|instance| (instance, false));
        valid
            .chain(invalid)
            .filter(|(instance, valid)| ours.accepts(&instance.to_string()) != *valid)
            .map(|(instance, valid)| format!("{instance} is {}", if valid { "refused" } else { "accepted" }))
            .collect()
    }
}

/// A draft means the same whether the options or the schema name it.
#[test]
fn keywords_mean_what_their_drafts_say() {
    let mut mistakes = Vec::new();
    let mut pairs = 0;
    for row in table().rows {
        for (draft, (name, option)) in Draft::NAMED.iter().enumerate().filter(|(at, _)| row.holds_in(*at)) {
            let mut named = row.schema.clone();
            named.as_object_mut().unwrap().insert("$schema".to_owned(), ADDRESSES[draft].into());
            for (how, options, schema) in
                [("option", checking().with_draft(*option), &row.schema), ("$schema", checking(), &named)]
            {
                pairs += row.valid.len() + row.invalid.len();
                let found = row.mistakes(&options, schema);
                mistakes.extend(found.into_iter().map(|what| format!("{name} ({how}): {schema}: {what}")));
            }
        }
    }
    println!("{pairs} pairs");
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

/// The table has rows that can fail for each keyword in each draft: where the draft has it, valid and invalid
/// instances.
#[test]
fn the_table_has_every_keyword_in_every_draft() {
    let table = table();
    let mut missing = Vec::new();
    for (keyword, drafts) in &table.keywords {
        for (draft, (name, _)) in Draft::NAMED.iter().enumerate() {
            let mut rows = table.rows.iter().filter(|row| row.keyword == *keyword && row.holds_in(draft));
            let told = if has(drafts, draft) {
                rows.any(|row| !row.valid.is_empty() && !row.invalid.is_empty())
            } else {
                // A value that another draft forbids is allowed here, or the schema is refused.
                rows.any(|row| !row.valid.is_empty() || row.refused.is_some())
            };
            missing.extend((!told).then(|| format!("{keyword} in {name}")));
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
    let unknown: Vec<&String> = table
        .rows
        .iter()
        .map(|row| &row.keyword)
        .filter(|name| !table.keywords.contains_key(*name))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
