//! Reports on the keywords of JSON Schemas, for people and as JSON.

use std::io::{self, Write};

use domino::grammar::json_schema::{KeywordReport, KeywordStatus, SchemaReport};
use serde_json::{Map, Value, json};

use crate::terminal::{failure::Paint, json::extend, stdout};

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
        ("keywords".to_owned(), Value::Array(list(report))),
        ("work".to_owned(), json!(report.work)),
        ("most_work".to_owned(), json!(SchemaReport::MOST_WORK)),
        ("error".to_owned(), json!(report.error.as_ref().map(|error| error.message()))),
    ])
}

/// Lists the keywords of a report as JSON.
fn list(report: &SchemaReport) -> Vec<Value> {
    let one = |keyword: &KeywordReport| {
        let KeywordReport { pointer, keyword, status, note, .. } = keyword;
        json!({ "pointer": pointer, "keyword": keyword, "status": status.name(), "note": note })
    };
    report.keywords.iter().map(one).collect()
}

/// Prints the report on the keywords of a schema.
pub(crate) fn report(name: &str, reports: &Reports, json: bool) -> anyhow::Result<()> {
    let mut out = stdout::lock();
    if json {
        let mut object = json!({ "grammar": name });
        extend(&mut object, reports.fields());
        writeln!(out, "{object}")?;
    } else {
        reports.print(name, &mut out)?;
    }
    Ok(())
}
