//! Warnings of parts of a grammar that its author may not mean, on standard error and in JSON objects, and
//! reports on the keywords of JSON Schemas.

use std::io::{self, Write};

use domino::grammar::GrammarWarning;
use domino::grammar::json_schema::{KeywordReport, KeywordStatus, SchemaReport};
use serde_json::{Map, Value, json};

use crate::terminal::describe::one_line;
use crate::terminal::failure::{Paint, remark};
use crate::terminal::{self, extend};

/// Prints the warnings of the grammar called `name` on standard error.
pub(crate) fn tell(name: &str, warnings: &[GrammarWarning]) {
    for warning in warnings {
        remark!("warning:", "{name}: {warning}");
    }
}

/// Number of open objects that are named.
const MOST_NAMED: usize = 3;

/// Says what objects take beside the members that they list, by their JSON pointers, and what forbids it,
/// such as `option`; `None` without any.
pub(crate) fn open_objects(pointers: &[String], option: &str) -> Option<[String; 2]> {
    let named = pointers.iter().take(MOST_NAMED).map(|pointer| one_line(pointer)).collect::<Vec<_>>();
    let places = match (pointers, pointers.len() - named.len()) {
        ([], _) => return None,
        ([_], _) => format!("the object at {} takes", named[0]),
        (_, 0) => format!("the objects at {} take", named.join(", ")),
        (_, more) => format!("the objects at {} and {more} more take", named.join(", ")),
    };
    Some([
        format!("{places} any keys beside those that the schema lists"),
        format!(
            "`additionalProperties` of false, or {option}, forbids others; true says that they are meant"
        ),
    ])
}

/// Prints on standard error what objects of the grammar called `name` take beside the members that they list.
pub(crate) fn tell_open(name: &str, pointers: &[String]) {
    if let Some([message, hint]) = open_objects(pointers, "--closed") {
        remark!("note:", "{name}: {message}");
        remark!("hint:", "{hint}");
    }
}

/// Adds the warnings to the object, if there are any.
pub(crate) fn with(mut object: Value, warnings: &[GrammarWarning]) -> Value {
    if !warnings.is_empty() {
        object["grammar_warnings"] = list(warnings);
    }
    object
}

/// Lists the warnings as JSON.
pub(crate) fn list(warnings: &[GrammarWarning]) -> Value {
    let warning = |warning: &GrammarWarning| {
        let position = warning.place().position();
        json!({
            "kind": warning.kind().name(), "line": position.line, "column": position.column,
            "message": warning.message(), "hint": warning.hint(),
        })
    };
    Value::Array(warnings.iter().map(warning).collect())
}

/// Reports of the schemas of one file; a list of functions has one for each, under the function's name.
#[derive(Debug)]
pub(crate) struct Reports {
    pub(crate) list: Vec<(Option<String>, SchemaReport)>,
}

impl Reports {
    /// Prints the reports: a line with counts, one with the work, then a line for each keyword.
    pub(crate) fn print(&self, name: &str, out: &mut impl Write) -> io::Result<()> {
        let paint = Paint::for_stdout();
        for (function, report) in &self.list {
            let of = function.as_ref().map_or_else(String::new, |function| format!(" function {function}:"));
            let counts = KeywordStatus::ALL.map(|status| (report.count(status), status));
            let counts: Vec<String> = counts
                .into_iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, status)| format!("{count} {status}"))
                .collect();
            let counts = if counts.is_empty() { "no keywords".to_owned() } else { counts.join(", ") };
            writeln!(out, "{name}:{of} {counts}")?;
            let (work, most) = (report.work, SchemaReport::MOST_WORK);
            writeln!(out, "  combinations took {work} of {most} units of work")?;
            for KeywordReport { pointer, status, note, .. } in &report.keywords {
                let word = format!("{status:<10}");
                let word = match status {
                    KeywordStatus::Enforced => paint.green(&word),
                    KeywordStatus::Annotation => word,
                    _ => paint.red(&word),
                };
                let note = note.as_ref().map_or_else(String::new, |note| format!("  ({note})"));
                writeln!(out, "  {word}  {pointer}{note}")?;
            }
        }
        Ok(())
    }

    /// Makes fields of an object: `keywords` and `counts`, or `functions` with these.
    pub(crate) fn fields(&self) -> Map<String, Value> {
        let of_function = |(function, report): &(Option<String>, SchemaReport)| {
            let mut object = fields(report);
            object.insert("function".to_owned(), json!(function));
            Value::Object(object)
        };
        match &*self.list {
            [(None, report)] => fields(report),
            list => {
                let functions = list.iter().map(of_function).collect();
                Map::from_iter([("functions".to_owned(), Value::Array(functions))])
            }
        }
    }
}

/// Makes fields of an object from a report.
fn fields(report: &SchemaReport) -> Map<String, Value> {
    let counts = KeywordStatus::ALL.map(|status| (status.name().to_owned(), json!(report.count(status))));
    Map::from_iter([
        ("counts".to_owned(), Value::Object(Map::from_iter(counts))),
        ("keywords".to_owned(), Value::Array(keyword_list(report))),
        ("work".to_owned(), json!(report.work)),
        ("most_work".to_owned(), json!(SchemaReport::MOST_WORK)),
        ("error".to_owned(), json!(report.error.as_ref().map(|error| error.message()))),
    ])
}

/// Lists the keywords of a report as JSON.
fn keyword_list(report: &SchemaReport) -> Vec<Value> {
    let one = |keyword: &KeywordReport| {
        let KeywordReport { pointer, keyword, status, note, .. } = keyword;
        json!({ "pointer": pointer, "keyword": keyword, "status": status.name(), "note": note })
    };
    report.keywords.iter().map(one).collect()
}

/// Prints the report on the keywords of a schema.
pub(crate) fn report_keywords(name: &str, reports: &Reports, json: bool) -> anyhow::Result<()> {
    let mut out = terminal::stdout();
    if json {
        let mut object = json!({ "grammar": name });
        extend(&mut object, reports.fields());
        writeln!(out, "{object}")?;
    } else {
        reports.print(name, &mut out)?;
    }
    Ok(())
}
