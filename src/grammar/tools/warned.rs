//! Warnings and reports of the schemas in a list of functions, with the functions' names and places in the list.

use super::{
    super::{
        Grammar, GrammarWarning, GrammarWarningKind,
        error::{MOST_SHOWN, quoted},
        json_schema::{SchemaError, SchemaOptions, SchemaReport, keyword_warnings},
        source::Source,
        structural,
    },
    Tools,
};
use crate::limits::Limits;

impl Tools<'_> {
    /// What becomes of each keyword of the schemas of arguments, with the names of their functions, in the
    /// list's order; functions without arguments are left out. Schemas are read as in
    /// [`grammar`](Self::grammar).
    ///
    /// # Errors
    /// As [`SchemaOptions::report`](crate::grammar::json_schema::SchemaOptions::report).
    pub fn reports(&self, limits: &Limits) -> Result<Vec<(&str, SchemaReport)>, SchemaError> {
        let mut reports = Vec::with_capacity(self.tools.len());
        let options = structural::schema_options(&SchemaOptions::default());
        for tool in &self.tools {
            if let Some((schema, _)) = tool.parameters {
                reports.push((tool.name.as_str(), options.report(schema, limits)?));
            }
        }
        Ok(reports)
    }

    /// The grammar of the list with the warnings of keywords where they stand in the list, instead of in the tag
    /// that the grammar was made of.
    pub(super) fn warned(&self, mut grammar: Grammar) -> Grammar {
        let is_of_keyword = |warning: &GrammarWarning| {
            matches!(warning.kind(), GrammarWarningKind::UnknownKeyword | GrammarWarningKind::WithoutEffect)
        };
        let (mut untold, mut warnings): (Vec<_>, Vec<_>) =
            std::mem::take(&mut grammar.warnings).into_iter().partition(is_of_keyword);
        let source = Source::new(self.text);
        let options = structural::schema_options(&SchemaOptions::default());
        for tool in &self.tools {
            let Some((schema, span)) = tool.parameters.filter(|_| !untold.is_empty()) else { continue };
            for warning in keyword_warnings(&options, schema) {
                let Some(place) = untold.iter().position(|one| one.message() == warning.message()) else {
                    continue;
                };
                untold.remove(place);
                let moved = warning.moved(source, |inner| inner.shifted(span.start));
                warnings.push(moved.of_part(&format!("function {}", quoted(&tool.name))));
            }
        }
        warnings.extend(untold);
        warnings.truncate(MOST_SHOWN);
        grammar.warnings = warnings;
        grammar
    }
}
